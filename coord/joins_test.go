package coord_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/streamdb/streamdb/internal/oracle"
)

// TestRandomJoins keeps views of random joins over tables with keys and foreign
// keys, which plans rely on, under random changes, among them of keys: after each
// step the views, and their queries asked anew, are what PostgreSQL says.
func TestRandomJoins(t *testing.T) {
	pg := oracle.Connect(t)
	seed, rounds := randomly(t, 12)
	dir := t.TempDir()
	d := open(t, dir)
	defer func() { d.close() }()
	deltas := 0
	for round := range rounds {
		c := d.connect()
		schema := fmt.Sprintf("j%x_%d", seed&0xffffffff, round)
		defer pg.Exec(t, "ROLLBACK; DROP SCHEMA IF EXISTS "+schema+" CASCADE")
		both := func(sql string) (ours, theirs string) {
			return answer(c, sql), answer(pg.Conn, sql)
		}
		both("CREATE SCHEMA " + schema + "; SET search_path = " + schema)
		g := &joiner{rnd: rand.New(rand.NewPCG(seed, uint64(round)))}
		randomJoins(t, g, both, c)
		deltas += g.deltas
		c.Close(context.Background())
		if t.Failed() {
			return
		}
		if round%4 == 3 {
			d.close()
			d = open(t, dir)
		}
	}
	if deltas == 0 && rounds > 8 {
		t.Error("no view was a delta join")
	}
	t.Logf("%d delta joins", deltas)
}

func randomJoins(t *testing.T, g *joiner, both func(string) (string, string), c *pgx.Conn) {
	var log []string
	same := func(sql string) {
		t.Helper()
		log = append(log, sql+";")
		a, b := both(sql)
		if a != b && (!strings.HasPrefix(a, "ERROR ") || !strings.HasPrefix(b, "ERROR ") || a[:11] != b[:11]) {
			t.Fatalf("after\n%s\nstreamdb:\n%s\nPostgreSQL:\n%s", strings.Join(log, "\n"), a, b)
		}
	}
	for _, sql := range joinTables {
		same(sql)
	}
	for range 3 {
		same(g.change())
	}
	var queries []string
	for v := range 6 {
		q := g.query()
		queries = append(queries, q)
		same(q)
		create := fmt.Sprintf("CREATE MATERIALIZED VIEW v%d AS %s", v, q)
		if a := answer(c, create); strings.HasPrefix(a, "ERROR") {
			t.Fatalf("%s: %s", create, a)
		}
		if strings.Contains(answer(c, fmt.Sprintf("EXPLAIN MATERIALIZED VIEW v%d", v)), "delta (") {
			g.deltas++
		}
	}
	check := func() {
		t.Helper()
		for v, q := range queries {
			_, want := both(q)
			if got := answer(c, fmt.Sprintf("SELECT * FROM v%d", v)); got != want {
				t.Fatalf("after\n%s\nv%d is\n%s\nbut should be\n%s\n%s", strings.Join(log, "\n"), v, got, want, answer(c, fmt.Sprintf("EXPLAIN MATERIALIZED VIEW v%d", v)))
			}
			if got := answer(c, q); got != want {
				t.Fatalf("after\n%s\n%s\ngives\n%s\nbut should give\n%s", strings.Join(log, "\n"), q, got, want)
			}
		}
	}
	for range 12 {
		sql := g.change()
		if g.n(4) == 0 {
			sql = "BEGIN; " + sql + "; " + g.change() + "; " + g.change() + "; COMMIT"
		}
		same(sql)
		if strings.HasPrefix(sql, "BEGIN") {
			both("ROLLBACK")
		}
		check()
	}
	for _, sql := range []string{
		"ALTER TABLE o DROP CONSTRAINT o_pa_fkey", "ALTER TABLE o ALTER pb DROP NOT NULL", "ALTER TABLE q DROP CONSTRAINT q_u_key",
	} {
		same(sql)
		same("INSERT INTO o VALUES (50, 9, 9, 3, 1), (51, 8, 1, NULL, 2)")
		same("INSERT INTO q VALUES (2, 1, 1), (2, 2, 1), (2, NULL, 2)")
		same("UPDATE o SET pb = NULL WHERE id < 3")
		check()
	}
}

var joinTables = []string{
	"CREATE TABLE p (id int PRIMARY KEY, x int, y int)",
	"CREATE TABLE o (id int PRIMARY KEY, pa int CONSTRAINT o_pa_fkey REFERENCES p, pb int NOT NULL REFERENCES p ON DELETE CASCADE, x int, y int)",
	"CREATE TABLE q (u int NOT NULL CONSTRAINT q_u_key UNIQUE, x int, y int)",
	"CREATE TABLE l (a int, x int, y int)",
}

// joiner writes random joins and changes.
type joiner struct {
	rnd    *rand.Rand
	deltas int // views that were planned as delta joins
}

func (g *joiner) n(n int) int { return g.rnd.IntN(n) }

func (g *joiner) pick(s ...string) string { return s[g.n(len(s))] }

func (g *joiner) value() string {
	if g.n(8) == 0 {
		return "NULL"
	}
	return fmt.Sprint(g.n(6))
}

func (g *joiner) change() string {
	v := g.value
	switch g.n(10) {
	case 0, 1:
		return fmt.Sprintf("INSERT INTO p SELECT i, %s, i %% 3 FROM generate_series(%d, %d) i WHERE i NOT IN (SELECT id FROM p)", v(), g.n(4), 4+g.n(4))
	case 2, 3:
		return fmt.Sprintf("INSERT INTO o SELECT i + %d, (SELECT max(id) FROM p WHERE id < i), id, i %% 4, %s FROM p, generate_series(1, 3) i WHERE i + %[1]d NOT IN (SELECT id FROM o) AND id = (SELECT min(id) FROM p WHERE id >= %[3]d)", g.n(20), v(), g.n(6))
	case 4:
		return fmt.Sprintf("INSERT INTO q SELECT i, i %% 3, %s FROM generate_series(%d, %d) i WHERE i NOT IN (SELECT u FROM q)", v(), g.n(4), 3+g.n(4))
	case 5:
		return fmt.Sprintf("INSERT INTO l VALUES (%s, %s, %s), (%s, %s, %s), (1, 2, 3)", v(), v(), v(), v(), v(), v())
	case 6:
		return fmt.Sprintf("DELETE FROM %s WHERE x = %d OR y = %d", g.pick("o", "q", "l"), g.n(4), g.n(6))
	case 7:
		return fmt.Sprintf("UPDATE %s SET x = %s, y = %s WHERE x = %d OR y IS NULL", g.pick("p", "o", "q", "l"), v(), g.pick("x", "y", v()), g.n(4))
	case 8:
		return fmt.Sprintf("DELETE FROM p WHERE id = %d", g.n(8))
	}
	return fmt.Sprintf("UPDATE o SET pb = (SELECT min(id) FROM p WHERE id >= %d) WHERE id = %d AND EXISTS (SELECT 1 FROM p WHERE id >= %[1]d)", g.n(4), g.n(20))
}

// columnsOf are the columns of the tables.
var columnsOf = map[string][]string{"p": {"id", "x", "y"}, "o": {"id", "pa", "pb", "x", "y"}, "q": {"u", "x", "y"}, "l": {"a", "x", "y"}}

func (g *joiner) query() string {
	if g.n(6) == 0 { // a merged column that is filtered
		return fmt.Sprintf("SELECT x, p.y, l.y AS ly FROM p FULL JOIN l USING (x) WHERE x = %d OR x %s", g.n(5), g.pick("IS NULL", "IN (1, 3)", "> 3"))
	}
	var cols []string
	alias := func(i int) (string, string) {
		t := g.pick("p", "o", "o", "q", "l")
		a := fmt.Sprintf("t%d", i)
		for _, c := range columnsOf[t] {
			cols = append(cols, a+"."+c)
		}
		return t + " " + a, a
	}
	from, _ := alias(0)
	last := cols
	kinds := []string{"JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN"}
	if g.n(2) == 0 {
		kinds = kinds[:1]
	}
	for i := range 1 + g.n(4) {
		before := cols
		cols = nil
		t, _ := alias(i + 1)
		on := g.condition(before, cols)
		cols, last = append(before, cols...), cols
		from = fmt.Sprintf("%s %s %s ON %s", from, g.pick(kinds...), t, on)
	}
	where := "true"
	switch g.n(6) {
	case 0, 1:
		where = fmt.Sprintf("%s = %d OR %s IN (%d, %d)", g.pick(cols...), g.n(5), g.pick(cols...), g.n(5), g.n(5))
	case 2:
		where = fmt.Sprintf("%s IS NOT NULL AND %s < 5", g.pick(cols...), g.pick(cols...))
	case 3:
		t := g.pick("p", "o", "q", "l")
		var inner []string
		for _, c := range columnsOf[t] {
			inner = append(inner, "s."+c)
		}
		where = fmt.Sprintf("%sEXISTS (SELECT 1 FROM %s s WHERE %s)", g.pick("", "NOT "), t, g.condition(cols, inner))
	}
	var out []string
	for i := range 1 + g.n(3) {
		out = append(out, fmt.Sprintf("%s AS c%d", g.pick(g.pick(cols...), g.pick(last...)), i))
	}
	sel := strings.Join(out, ", ")
	switch g.n(5) {
	case 0:
		return fmt.Sprintf("SELECT DISTINCT %s FROM %s WHERE %s", sel, from, where)
	case 1:
		var keys []string
		for _, o := range out {
			keys = append(keys, strings.Fields(o)[0])
		}
		x := g.pick(cols...)
		return fmt.Sprintf("SELECT %s, count(*) AS n, sum(%s) AS s, max(%s) FILTER (WHERE %s > 1) AS m, count(DISTINCT %s) AS d FROM %s WHERE %s GROUP BY %s",
			sel, x, x, g.pick(cols...), g.pick(cols...), from, where, strings.Join(keys, ", "))
	}
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s", sel, from, where)
}

// condition is a random condition over the columns of both sides of a join.
func (g *joiner) condition(left, right []string) string {
	eq := func() string { return g.pick(left...) + " = " + g.pick(right...) }
	key := func() string { // likely a key and what refers to it
		return g.pick(left[0], g.pick(left...)) + " = " + right[0]
	}
	switch g.n(8) {
	case 0, 1:
		return eq()
	case 2:
		return eq() + " AND " + eq()
	case 3:
		return eq() + " OR " + eq()
	case 4:
		return fmt.Sprintf("(%s AND %s > 1 OR %s) AND %s >= %s", eq(), g.pick(right...), key(), g.pick(left...), g.pick(right...))
	}
	return key()
}
