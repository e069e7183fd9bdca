package sqlsmith

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Query is a random query.
type Query struct {
	SQL     string
	Columns int
	// Ordered: its rows come in one order.
	Ordered bool
	// Wrong is how much in it was made wrong on purpose.
	Wrong int
}

// Query writes a query.
func (g *Gen) Query() Query {
	g.start()
	ts := g.types(1 + g.rng.IntN(4))
	q := Query{Columns: len(ts)}
	if g.pick(3) {
		with := g.with(2)
		if g.pick(2) {
			q.SQL, q.Ordered = with+g.ordered(3, ts, 0), true
		} else {
			q.SQL = with + g.block(3, ts)
		}
	} else if g.pick(3) {
		q.SQL, q.Ordered = g.ordered(3, ts, 0), true
	} else {
		q.SQL = g.query(4, ts)
	}
	q.Wrong = g.wrong
	return q
}

// query is a query with columns of the types: a block, a set operation, or an
// ordered and limited one.
func (g *Gen) query(depth int, ts []Type) string {
	if depth > 0 {
		switch g.rng.IntN(9) {
		case 0, 1:
			l, r := g.query(depth-1, ts), g.query(depth-1, ts)
			if g.slip() {
				r = g.query(depth-1, append(slices.Clone(ts), Int4))
			}
			return "(" + l + ")" + g.choose(" UNION ", " UNION ALL ", " INTERSECT ", " INTERSECT ALL ", " EXCEPT ", " EXCEPT ALL ") + "(" + r + ")"
		case 2:
			return g.ordered(depth-1, ts, 0)
		case 3:
			if g.pick(2) {
				n := len(g.ctes)
				sql := g.with(depth-1) + g.block(depth-1, ts)
				g.ctes = g.ctes[:n]
				return sql
			}
		}
	}
	return g.block(depth, ts)
}

// ordered is a query ordered by all its columns and limited; limit 0: any.
func (g *Gen) ordered(depth int, ts []Type, limit int) string {
	sql := g.plain(depth, ts)
	perm := g.rng.Perm(len(ts))
	var by []string
	for _, i := range perm {
		by = append(by, strconv.Itoa(i+1)+g.choose("", "", " DESC", " DESC NULLS LAST", " NULLS FIRST"))
	}
	sql += " ORDER BY " + strings.Join(by, ", ")
	if limit > 0 {
		return sql + " LIMIT " + strconv.Itoa(limit) + g.choose("", "", " OFFSET 1")
	}
	n := strconv.Itoa(g.rng.IntN(6))
	return sql + g.choose("", " LIMIT "+n, " OFFSET "+n, " LIMIT "+n+" OFFSET 2", " FETCH FIRST "+n+" ROWS WITH TIES", " LIMIT ALL", " FETCH FIRST ROW ONLY",
		" LIMIT (SELECT count(*) FROM "+g.Tables[0].Name+")")
}

// plain is a block that an ORDER BY may follow.
func (g *Gen) plain(depth int, ts []Type) string {
	sql := g.block(depth, ts)
	if strings.HasPrefix(sql, "(") {
		sql = "SELECT * FROM " + sql + " o"
	}
	return sql
}

// block is one SELECT or VALUES.
func (g *Gen) block(depth int, ts []Type) string {
	switch g.rng.IntN(12) {
	case 0:
		var rows []string
		for range 1 + g.rng.IntN(3) {
			rows = append(rows, "("+g.list(ts, depth-1)+")")
		}
		return "VALUES " + strings.Join(rows, ", ")
	case 1, 2, 3:
		return g.grouped(depth, ts)
	case 4, 5:
		return g.windowed(depth, ts)
	case 6:
		return g.distinctOn(depth, ts)
	case 7:
		if depth > 0 {
			return g.using(depth, ts)
		}
	}
	f := g.from(depth)
	defer f.pop()
	list := g.list(ts, depth)
	if g.pick(12) {
		list = g.srf(ts, depth)
	}
	return "SELECT " + g.choose("", "", "", "DISTINCT ") + list + f.sql + g.where(depth)
}

// list is expressions of the types.
func (g *Gen) list(ts []Type, depth int) string {
	out := make([]string, len(ts))
	for i, t := range ts {
		out[i] = g.expr(t, depth)
	}
	return strings.Join(out, ", ")
}

// srf is a list of which one or two expressions return sets.
func (g *Gen) srf(ts []Type, depth int) string {
	out := make([]string, len(ts))
	for i, t := range ts {
		out[i] = g.expr(t, depth-1)
		if t == Int4 {
			out[i] = g.choose("generate_series(1, least("+g.leaf(Int4)+", 3))", "unnest("+g.leaf(IntArray)+")", "generate_series(0, 1) + "+fmt.Sprint(g.rng.IntN(3)))
		}
	}
	return strings.Join(out, ", ")
}

func (g *Gen) where(depth int) string {
	if g.slip() {
		return " WHERE " + g.choose("count(*) > 1", "row_number() OVER () = 1", g.leaf(Int4), "generate_series(1, 2) = 1")
	}
	if g.pick(3) {
		return ""
	}
	return " WHERE " + g.cond(depth)
}

// grouped is a SELECT with GROUP BY, GROUPING SETS or aggregates alone.
func (g *Gen) grouped(depth int, ts []Type) string {
	f := g.from(depth)
	defer f.pop()
	where := g.where(depth)
	top := len(g.scopes) - 1
	full := g.scopes[top]
	var keys scope
	for range g.rng.IntN(4) {
		if c, ok := g.anyColumn(); ok && !slices.Contains(keys, c) {
			keys = append(keys, c)
		}
	}
	if g.pick(4) {
		t := []Type{Int4, Text, Numeric}[g.rng.IntN(3)]
		g.local = true
		e := g.compound(t, 1, func(t Type) string { return g.leaf(t) })
		g.local = false
		// (PostgreSQL does not sort by a constant key that a grouping set leaves out.)
		if namesColumn.MatchString(e) {
			keys = append(keys, ref{e, t})
		}
	}
	by, sets := "", false
	if len(keys) > 0 {
		by, sets = g.groupBy(keys)
	}
	// Outputs: keys, aggregates, and expressions over both.
	out := make([]string, len(ts))
	for i, t := range ts {
		k := g.columnOf(keys, t)
		switch {
		case k != "" && g.pick(2):
			out[i] = k
		case k != "" && g.pick(2):
			out[i] = "coalesce(" + g.aggregate(t) + ", " + k + ")"
		case sets && t == Int4 && g.pick(2):
			out[i] = "grouping(" + keys[g.rng.IntN(len(keys))].sql + ")"
		case g.pick(6) && depth > 0:
			g.scopes[top] = plainRefs(keys)
			out[i] = g.expr(t, depth-1)
			g.scopes[top] = full
		case t == Int8 && g.pick(3):
			out[i] = "rank() OVER (ORDER BY " + g.aggregate(g.comparableType()) + ")"
		case t == Numeric && g.pick(3):
			out[i] = "sum(" + g.aggregate(Int8) + ") OVER (" + g.choose("", "ORDER BY "+g.aggregate(Int4)) + ")"
		default:
			out[i] = g.aggregate(t)
		}
		if g.slip() {
			out[i] = g.leaf(t)
		}
	}
	having := ""
	if g.pick(4) {
		having = " HAVING " + g.aggregate(Int8) + g.compare() + strconv.Itoa(g.rng.IntN(3))
		if depth > 0 && g.pick(3) {
			g.scopes[top] = plainRefs(keys)
			having += g.choose(" AND ", " OR ") + g.cond(depth-1)
			g.scopes[top] = full
		}
	}
	return "SELECT " + g.choose("", "", "", "DISTINCT ") + strings.Join(out, ", ") + f.sql + where + by + having
}

// namesColumn finds a column of some item of FROM.
var namesColumn = regexp.MustCompile(`\bt\d+\.`)

// plainRefs are the keys that are columns and not expressions.
func plainRefs(keys scope) scope {
	var out scope
	for _, k := range keys {
		if !strings.ContainsAny(k.sql, " ()'") {
			out = append(out, k)
		}
	}
	return out
}

func (g *Gen) groupBy(keys scope) (sql string, sets bool) {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = k.sql
	}
	list := strings.Join(all, ", ")
	if !g.pick(4) {
		return " GROUP BY " + g.choose("", "", "", "DISTINCT ") + list, false
	}
	switch g.rng.IntN(4) {
	case 0:
		return " GROUP BY ROLLUP (" + list + ")", true
	case 1:
		return " GROUP BY CUBE (" + list + ")", true
	case 2:
		return " GROUP BY " + all[0] + ", ROLLUP (" + list + ")", true
	}
	return " GROUP BY GROUPING SETS ((" + list + "), (" + all[len(all)-1] + "), ()" + g.choose("", ", ()", ", "+all[0]) + ")", true
}

// distinctOn is DISTINCT ON, ordered by all that is shown.
func (g *Gen) distinctOn(depth int, ts []Type) string {
	f := g.from(depth)
	defer f.pop()
	out, by := make([]string, len(ts)), make([]string, 0, len(ts))
	for i, t := range ts {
		out[i] = g.expr(t, min(depth, 1))
		by = append(by, strconv.Itoa(i+1)+g.choose("", " DESC", " NULLS FIRST"))
	}
	n := 1 + g.rng.IntN(len(ts))
	on := make([]string, n)
	for i := range on {
		on[i] = strconv.Itoa(i + 1)
	}
	return "(SELECT DISTINCT ON (" + strings.Join(on, ", ") + ") " + strings.Join(out, ", ") + f.sql + g.where(depth) + " ORDER BY " + strings.Join(by, ", ") + ")"
}

// using is a join whose columns are merged by USING or NATURAL.
func (g *Gen) using(depth int, ts []Type) string {
	l, r := g.Tables[g.rng.IntN(len(g.Tables))], g.Tables[g.rng.IntN(len(g.Tables))]
	var common []string
	var sc scope
	for _, c := range l.Columns {
		if slices.ContainsFunc(r.Columns, func(d Column) bool { return c.Name == d.Name }) && c.Type != JSONB {
			common = append(common, c.Name)
		}
	}
	g.rng.Shuffle(len(common), func(i, j int) { common[i], common[j] = common[j], common[i] })
	common = common[:min(len(common), 1+g.rng.IntN(2))]
	for _, n := range common {
		i := slices.IndexFunc(l.Columns, func(c Column) bool { return c.Name == n })
		sc = append(sc, ref{n, l.Columns[i].Type})
	}
	for i, t := range []Table{l, r} {
		for _, c := range t.Columns {
			sc = append(sc, ref{[]string{"ul.", "ur."}[i] + c.Name, c.Type})
		}
	}
	g.scopes = append(g.scopes, sc)
	sql := "SELECT " + g.list(ts, depth-1) + " FROM " + l.Name + " ul" + g.choose(" ", " LEFT ", " RIGHT ", " FULL ", " INNER ") + "JOIN " + r.Name + " ur USING (" + strings.Join(common, ", ") + ")" + g.where(depth-1)
	g.scopes = g.scopes[:len(g.scopes)-1]
	return sql
}

// with is a WITH clause; its queries can be selected from.
func (g *Gen) with(depth int) string {
	var parts []string
	word := "WITH "
	for range 1 + g.rng.IntN(2) {
		g.alias++
		name := fmt.Sprintf("w%d", g.alias)
		if g.pick(3) {
			word = "WITH RECURSIVE "
			parts = append(parts, g.recursive(name))
			continue
		}
		it := item{name: name}
		ts := g.types(1 + g.rng.IntN(3))
		for i, t := range ts {
			it.cols = append(it.cols, Column{Name: fmt.Sprintf("x%d", i), Type: t})
		}
		saved := g.scopes
		if g.pick(3) {
			g.scopes = nil
		}
		parts = append(parts, name+"("+columnNames(it.cols)+") AS "+g.choose("", "", "MATERIALIZED ", "NOT MATERIALIZED ")+"("+g.query(depth, ts)+")")
		g.scopes = saved
		g.ctes = append(g.ctes, it)
	}
	return word + strings.Join(parts, ", ") + " "
}

func columnNames(cols []Column) string {
	out := make([]string, len(cols))
	for i, c := range cols {
		out[i] = c.Name
	}
	return strings.Join(out, ", ")
}

// recursive is a recursive query that ends.
func (g *Gen) recursive(name string) string {
	edges, start := g.Tables[g.rng.IntN(len(g.Tables))].Name, g.Tables[g.rng.IntN(len(g.Tables))].Name
	it := item{name: name, cols: []Column{{Name: "x", Type: Int4}, {Name: "y", Type: Int4}}}
	sql := ""
	switch g.rng.IntN(5) {
	case 4: // a step over the last rows only
		sql = name + "(x, y) AS (SELECT a, 0 FROM " + start + g.choose(" UNION ALL ", " UNION ") + "SELECT " + g.choose("DISTINCT e.b", "e.b", "max(e.b) OVER (PARTITION BY x)") +
			", y + 1 FROM " + name + " JOIN (SELECT DISTINCT a, b FROM " + edges + ") e ON e.a = " + name + ".x WHERE y < 3)"
	case 0: // reachability
		sql = name + "(x, y) AS (SELECT a, b FROM " + start + " UNION SELECT e.a, " + name + ".y FROM " + name + " JOIN " + edges + " e ON e.b = " + name + ".x)"
	case 1: // by steps
		sql = name + "(x, y) AS (SELECT a, 0 FROM " + start + g.choose(" UNION ALL ", " UNION ") + "SELECT e.b, " + name + ".y + 1 FROM " + name + " JOIN " + edges +
			" e ON e.a = " + name + ".x WHERE " + name + ".y < 2)"
		if g.pick(2) {
			sql += g.choose(" SEARCH DEPTH FIRST BY x SET o", " SEARCH BREADTH FIRST BY x, y SET o")
		}
	case 2: // with cycles found
		sql = name + "(x, y) AS (SELECT DISTINCT a, b FROM " + start + " WHERE a IS NOT NULL UNION ALL SELECT e.a, e.b FROM " + name + " JOIN (SELECT DISTINCT a, b FROM " + edges +
			" WHERE a < 4) e ON e.a = " + name + ".y) CYCLE x, y SET c" + g.choose("", " TO 'Y' DEFAULT 'N'") + " USING path"
	default: // a counter with an outer join
		sql = name + "(x, y) AS (VALUES (0, 3) UNION ALL SELECT x + 1, e.a FROM " + name + " LEFT JOIN (SELECT DISTINCT a FROM " + edges + " WHERE a < 5) e ON e.a = x WHERE x < 3)"
	}
	g.ctes = append(g.ctes, it)
	return sql
}
