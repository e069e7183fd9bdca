package render_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/internal/datadriven"
	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
)

var (
	seed    = flag.Uint64("seed", 0, "seed of the random queries; 0: one of the time")
	queries = flag.Int("queries", 150, "how many random queries")
)

// sqlGen writes random SQL over small tables. Every query it writes has one
// answer as a multiset: where it limits rows, it orders by all of them.
type sqlGen struct {
	rng    *rand.Rand
	scopes [][]genColumn // the innermost last
	alias  int
}

type genColumn struct {
	name string
	typ  string // int, text, num
}

// tables of the random queries: columns a, b of int, s of text, n of numeric,
// whose equal values do not all look the same (so that n is never shown).
var genTables = []string{"r", "q", "p"}

func (g *sqlGen) pick(n int) bool { return g.rng.IntN(n) == 0 }

func (g *sqlGen) choose(options ...string) string { return options[g.rng.IntN(len(options))] }

// column is a column of some scope, an outer one with less chance.
func (g *sqlGen) column(typ string) string {
	for i := len(g.scopes) - 1; i >= 0; i-- {
		if i > 0 && g.pick(4) {
			continue
		}
		var fit []string
		for _, c := range g.scopes[i] {
			if c.typ == typ {
				fit = append(fit, c.name)
			}
		}
		if len(fit) > 0 {
			return fit[g.rng.IntN(len(fit))]
		}
	}
	switch typ {
	case "text":
		return "'x'"
	case "num":
		return "1.0"
	}
	return fmt.Sprint(g.rng.IntN(3))
}

func (g *sqlGen) expr(typ string, depth int) string {
	if typ == "text" {
		if g.pick(5) {
			return g.choose("'x'", "'y'", "NULL::text")
		}
		return g.column("text")
	}
	if typ == "num" {
		if g.pick(5) {
			return g.choose("1", "1.00", "0.5", "-0.50")
		}
		return g.column("num")
	}
	n := 12
	if depth <= 0 {
		n = 8
	}
	switch g.rng.IntN(n) {
	case 3:
		return "(" + g.column("num") + " * 2)::int"
	case 0:
		return fmt.Sprint(g.rng.IntN(4))
	case 1:
		return "(" + g.expr(typ, depth-1) + g.choose(" + ", " - ", " * ") + g.expr(typ, depth-1) + ")"
	case 2:
		return "coalesce(" + g.expr(typ, depth-1) + ", " + g.expr(typ, depth-1) + ")"
	case 8:
		return "CASE WHEN " + g.cond(depth-1) + " THEN " + g.expr(typ, depth-1) + " ELSE " + g.expr(typ, depth-1) + " END"
	case 9, 10:
		return g.scalar(depth - 1)
	}
	return g.column("int")
}

// scalar is a subquery with one value.
func (g *sqlGen) scalar(depth int) string {
	from, done := g.from(depth)
	defer done()
	where := g.where(depth)
	if g.pick(3) {
		e := g.expr("int", 0)
		return "(SELECT " + e + " AS v" + from + where + " ORDER BY v" + g.choose("", " DESC") + " LIMIT 1" + g.choose("", "", " OFFSET 1") + ")"
	}
	having := ""
	if g.pick(4) {
		having = " HAVING count(*) " + g.choose(">", "<>", "<") + " " + fmt.Sprint(g.rng.IntN(3))
	}
	return "(SELECT " + g.aggregate(depth) + from + where + having + ")"
}

func (g *sqlGen) aggregate(depth int) string {
	arg := g.expr("int", min(depth, 0))
	agg := g.choose("count(*)", "count("+arg+")", "sum("+arg+")::int", "max("+arg+")", "min("+arg+")", "count(DISTINCT "+arg+")",
		"count(DISTINCT "+g.expr("num", 0)+")", "(sum("+g.expr("num", 0)+") * 2)::int")
	if g.pick(5) {
		agg = strings.Replace(agg, ")", ") FILTER (WHERE "+g.cond(0)+")", 1)
		if strings.HasPrefix(agg, "sum") || strings.Count(agg, ")") != strings.Count(agg, "(") {
			agg = "count(*)"
		}
	}
	return agg
}

func (g *sqlGen) where(depth int) string {
	if g.pick(4) {
		return ""
	}
	return " WHERE " + g.cond(depth)
}

func (g *sqlGen) cond(depth int) string {
	n := 18
	if depth <= 0 {
		n = 9
	}
	switch g.rng.IntN(n) {
	case 6:
		return g.expr("num", 0) + g.choose(" = ", " = ", " <> ", " < ") + g.expr("num", 0)
	case 16:
		return g.expr("num", 0) + g.choose(" IN ", " NOT IN ") + "(" + g.subquery(depth-1, "num") + ")"
	case 17:
		return g.expr("num", 0) + g.choose(" < ", " = ", " <> ") + g.choose("ANY ", "ALL ") + "(" + g.subquery(depth-1, "num") + ")"
	case 0:
		return g.expr("int", depth-1) + " IS " + g.choose("", "NOT ") + "NULL"
	case 1:
		return "(" + g.cond(depth-1) + " AND " + g.cond(depth-1) + ")"
	case 2:
		return "(" + g.cond(depth-1) + " OR " + g.cond(depth-1) + ")"
	case 3:
		return "(NOT " + g.cond(depth-1) + ")"
	case 4:
		return g.expr("text", 0) + g.choose(" = ", " <> ", " < ") + g.expr("text", 0)
	case 5:
		return g.column("int") + " IN (" + fmt.Sprint(g.rng.IntN(3)) + ", " + fmt.Sprint(g.rng.IntN(5)) + ")"
	case 9, 10:
		return g.choose("", "NOT ") + "EXISTS (" + g.subquery(depth-1, "*") + ")"
	case 11, 12:
		return g.expr("int", 0) + g.choose(" IN ", " NOT IN ") + "(" + g.subquery(depth-1, "int") + ")"
	case 13:
		return g.expr("int", 0) + g.choose(" < ", " = ", " >= ", " <> ") + g.choose("ANY ", "ALL ") + "(" + g.subquery(depth-1, "int") + ")"
	case 14:
		return "(" + g.expr("int", 0) + ", " + g.expr("int", 0) + ")" + g.choose(" IN ", " NOT IN ") + "(" + g.subquery(depth-1, "int,int") + ")"
	case 15:
		return g.expr("int", depth-1) + " IS " + g.choose("", "NOT ") + "DISTINCT FROM " + g.expr("int", depth-1)
	}
	return g.expr("int", depth-1) + g.choose(" = ", " = ", " <> ", " < ", " >= ") + g.expr("int", depth-1)
}

// subquery is a SELECT with columns of the types listed ("*": any).
func (g *sqlGen) subquery(depth int, typs string) string {
	if depth > 0 && g.pick(6) && typs != "*" {
		op := g.choose(" UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT ", " EXCEPT ALL ", " INTERSECT ALL ")
		return "(" + g.subquery(depth-1, typs) + op + g.subquery(depth-1, typs) + ")"
	}
	from, done := g.from(depth)
	defer done()
	list := "1"
	if typs != "*" {
		items := strings.Split(typs, ",")
		for i, t := range items {
			items[i] = g.expr(t, min(depth, 1))
		}
		list = strings.Join(items, ", ")
	}
	distinct := ""
	if g.pick(5) {
		distinct = "DISTINCT "
	}
	return "SELECT " + distinct + list + from + g.where(depth)
}

// from is a FROM clause; its columns are in scope until done.
func (g *sqlGen) from(depth int) (sql string, done func()) {
	g.scopes = append(g.scopes, nil)
	top := len(g.scopes) - 1
	sql = " FROM " + g.item(depth, false)
	for range g.rng.IntN(3) {
		if depth < 0 {
			break
		}
		kind := g.choose(", ", " JOIN ", " LEFT JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ", " CROSS JOIN ")
		if kind == ", " || kind == " CROSS JOIN " {
			if g.pick(2) {
				continue
			}
			sql += kind + g.item(depth-1, kind == ", ")
			continue
		}
		before := g.scopes[top]
		item := g.item(depth-1, kind == " LEFT JOIN " || kind == " JOIN ")
		typ := g.choose("int", "int", "num")
		on := g.equi(before, g.scopes[top][len(before):], typ)
		if kind != " FULL JOIN " && g.pick(3) {
			on += " AND " + g.cond(min(depth-1, 1))
		}
		sql += kind + item + " ON " + on
		if strings.Contains(sql, ", ") { // a comma binds less than JOIN: keep to one kind
			sql = " FROM " + strings.Replace(strings.TrimPrefix(sql, " FROM "), ", ", " CROSS JOIN ", -1)
		}
	}
	return sql, func() { g.scopes = g.scopes[:top] }
}

// equi is an equality between columns of two lists, of a type if they have it.
func (g *sqlGen) equi(l, r []genColumn, typ string) string {
	of := func(cs []genColumn, typ string) []string {
		var fit []string
		for _, c := range cs {
			if c.typ == typ {
				fit = append(fit, c.name)
			}
		}
		return fit
	}
	if len(of(l, typ)) == 0 || len(of(r, typ)) == 0 {
		typ = "int"
	}
	return g.choose(of(l, typ)...) + " = " + g.choose(of(r, typ)...)
}

// item is a table or derived table, whose columns join the innermost scope.
func (g *sqlGen) item(depth int, lateral bool) string {
	g.alias++
	name := fmt.Sprintf("t%d", g.alias)
	top := len(g.scopes) - 1
	if depth <= 0 || !g.pick(3) {
		g.scopes[top] = append(g.scopes[top], genColumn{name + ".a", "int"}, genColumn{name + ".b", "int"}, genColumn{name + ".s", "text"}, genColumn{name + ".n", "num"})
		return g.choose(genTables...) + " " + name
	}
	kept := g.scopes
	word := ""
	if lateral && g.pick(2) {
		word = "LATERAL "
	} else {
		g.scopes = kept[:top:top] // FROM items do not see each other
	}
	sql := word + "(" + g.derived(depth-1) + ") " + name + "(x, y)"
	g.scopes = kept
	g.scopes[top] = append(g.scopes[top], genColumn{name + ".x", "int"}, genColumn{name + ".y", "int"})
	return sql
}

// derived is a SELECT with two int columns: grouped, limited, windowed or plain.
func (g *sqlGen) derived(depth int) string {
	switch g.rng.IntN(5) {
	case 0:
		from, done := g.from(depth)
		defer done()
		key, by := g.column("int"), ""
		if g.pick(3) {
			by = ", " + g.column("num")
		}
		return "SELECT " + key + ", " + g.aggregate(depth) + from + g.where(depth) + " GROUP BY " + key + by +
			g.choose("", "", " HAVING count(*) > 1")
	case 1:
		from, done := g.from(depth)
		defer done()
		return "SELECT " + g.expr("int", 0) + " AS l, " + g.expr("int", 0) + " AS m" + from + g.where(depth) +
			" ORDER BY l, m" + g.choose("", " DESC") + " LIMIT " + fmt.Sprint(1+g.rng.IntN(4))
	case 2:
		from, done := g.from(depth)
		defer done()
		w := g.choose("rank() OVER (ORDER BY ", "sum("+g.column("int")+")::int OVER (PARTITION BY ", "count(*) OVER (ORDER BY ",
			"dense_rank() OVER (ORDER BY ")
		w = strings.Replace(w, "::int", "", 1)
		return "SELECT " + g.column("int") + ", (" + w + g.column("int") + "))::int" + from + g.where(depth)
	}
	return g.subquery(depth, "int,int")
}

// query is a whole query.
func (g *sqlGen) query() string {
	g.scopes, g.alias = nil, 0
	if g.pick(3) {
		return g.derived(3)
	}
	return g.subquery(3, g.choose("int", "int,text", "int,int,int"))
}

// genDB is the tables of the random queries.
func genDB(t testing.TB) (*db, []string) {
	d := newDB()
	d.memory = &render.Memory{Sort: 1 << 30, Portion: 1} // joins pass on what they make at once
	setup := []string{
		"CREATE TABLE r (a int, b int, s text, n numeric); CREATE TABLE q (a int, b int, s text, n numeric); CREATE TABLE p (a int PRIMARY KEY, b int NOT NULL, s text, n numeric NOT NULL)",
		"INSERT INTO r VALUES (0, 1, 'x', 1), (1, 1, 'x', 1.0), (1, 1, 'x', 1.0), (1, 2, NULL, 1.00), (2, NULL, 'y', NULL), (NULL, 0, 'y', 0.5), (NULL, NULL, NULL, NULL), (3, 3, 'z', -0.5)",
		"INSERT INTO q VALUES (1, 0, 'x', 1.0), (1, 3, 'y', 0.50), (2, 2, NULL, NULL), (NULL, 1, 'z', 2), (4, NULL, 'x', 1.00), (4, NULL, 'x', 1.00), (0, 0, 'y', 0)",
		"INSERT INTO p VALUES (0, 0, 'x', 0), (1, 2, 'y', 1.0), (2, 2, NULL, 1.00), (3, 1, 'x', 0.5), (5, 0, 'z', 2.0)",
	}
	for _, s := range setup {
		d.exec(t, s)
	}
	return d, setup
}

// seeds are the seeds to run: a fixed one, and one of the time.
func seeds() []uint64 {
	if *seed != 0 {
		return []uint64{*seed}
	}
	return []uint64{1, uint64(time.Now().UnixNano())}
}

// TestRandomQueries runs random queries optimized, with all rules disabled,
// with lookups by keys, and maintained: all must agree.
func TestRandomQueries(t *testing.T) {
	for _, s := range seeds() {
		d, _ := genDB(t)
		plain := d.copy()
		plain.disabled = map[string]bool{}
		for _, r := range planner.Rules() {
			plain.disabled[r] = true
		}
		looking := d.copy()
		looking.sizes = map[string]float64{"r": 8, "q": 7, "p": 1e6}
		g := &sqlGen{rng: rand.New(rand.NewPCG(s, 2))}
		for i := range *queries {
			sql := g.query()
			rows, err := d.query(sql)
			want, wantErr := plain.query(sql)
			if err == nil && wantErr != nil {
				_, err = careful(d).query(sql)
			}
			l, lErr := looking.query(sql)
			if lErr == nil && err != nil {
				_, lErr = careful(looking).query(sql)
			}
			if code(err) != code(lErr) || !slices.Equal(sorted(rows), sorted(l)) {
				t.Fatalf("-seed=%d, query %d:\n%s\nscans:   %v %v\nlookups: %v %v", s, i, sql, sorted(rows), err, sorted(l), lErr)
			}
			if code(err) != code(wantErr) || err == nil && !slices.Equal(sorted(rows), sorted(want)) {
				t.Fatalf("-seed=%d, query %d:\n%s\noptimized: %v %v\nnot:       %v %v", s, i, sql, sorted(rows), err, sorted(want), wantErr)
			}
			if d.checkMaintained(t, &datadriven.Case{Pos: fmt.Sprintf("-seed=%d, query %d", s, i), Input: sql}); t.Failed() {
				return
			}
		}
	}
}

func code(err error) string {
	if err == nil {
		return ""
	}
	return pgerror.As(err).Code
}

// careful is d without the rules that drop what an empty input makes needless: who
// applies them does not meet the errors of rows that nobody needs.
func careful(d *db) *db {
	c := d.copy()
	c.disabled = map[string]bool{"PropagateEmpty": true, "FilterToConstant": true}
	return c
}

// TestRandomQueriesPostgres compares random queries with PostgreSQL.
func TestRandomQueriesPostgres(t *testing.T) {
	srv := oracle.Connect(t)
	for _, s := range seeds() {
		d, setup := genDB(t)
		srv.Exec(t, "ROLLBACK; BEGIN; CREATE SCHEMA rendertest; SET LOCAL search_path TO rendertest")
		for _, sql := range setup {
			srv.Exec(t, sql)
		}
		g := &sqlGen{rng: rand.New(rand.NewPCG(s, 3))}
		sql := ""
		defer func() {
			if e := recover(); e != nil {
				t.Errorf("-seed=%d: panic in %s", s, sql)
				panic(e)
			}
		}()
		for i := range *queries {
			sql = g.query()
			srv.Exec(t, "SAVEPOINT s")
			want, wantErr := pgRows(srv.Conn, sql)
			srv.Exec(t, "ROLLBACK TO s")
			rows, err := d.query(sql)
			if err == nil && wantErr != nil {
				_, err = careful(d).query(sql)
			}
			if code(err) != code(wantErr) || err == nil && !slices.Equal(sorted(rows), sorted(want)) {
				t.Fatalf("-seed=%d, query %d:\n%s\nours:       %v %v\nPostgreSQL: %v %v", s, i, sql, sorted(rows), err, sorted(want), wantErr)
			}
		}
		srv.Exec(t, "ROLLBACK")
	}
}
