package coord_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/streamdb/streamdb/internal/oracle"
)

// ranger makes random reads of one table by values and bounds of its keys.
type ranger struct {
	rnd *rand.Rand
}

func (g *ranger) pick(list ...string) string { return list[g.rnd.IntN(len(list))] }
func (g *ranger) n(n int) int                { return g.rnd.IntN(n) }

const rangeTable = `CREATE TABLE r (id int PRIMARY KEY, a int, b bigint, c text COLLATE "C", v varchar(9) COLLATE "C", n numeric, f float8,
	d date, ts timestamptz, p char(4) COLLATE "C", i interval, o bool, s smallint NOT NULL, u numeric UNIQUE)`

var rangeIndexes = []string{
	"CREATE INDEX ON r (a, b)", "CREATE INDEX ON r (c, a)", "CREATE INDEX ON r (v)", "CREATE INDEX ON r (n, s)", "CREATE INDEX ON r (f)",
	"CREATE INDEX ON r (d, ts)", "CREATE INDEX ON r (p)", "CREATE INDEX ON r (i)", "CREATE INDEX ON r (s, id)", "CREATE INDEX ON r ((a + b))",
	"CREATE INDEX ON r (upper(c)) WHERE o", "CREATE INDEX ON r (ts) WHERE n > 2",
}

// value is a literal for a column.
func (g *ranger) value(col string) string {
	switch col {
	case "id":
		return strconv.Itoa(g.n(400))
	case "a", "b", "s":
		return g.pick(strconv.Itoa(g.n(12)-3), strconv.Itoa(g.n(12)-3), strconv.Itoa(g.n(12)-3)+"::int8", strconv.Itoa(g.n(12)-3)+"::int2")
	case "c", "v", "p":
		return "'" + g.pick("", "a", "ab", "abc", "abd", "b", "z", "é", "a_b", "a ") + g.pick("", "", "x", "%") + "'"
	case "n", "u":
		return g.pick("1", "1.0", "1.00", "2.5", "2.50", "-3", "'NaN'::numeric", "7", "1e20", "0", strconv.Itoa(g.n(300)))
	case "f":
		return g.pick("1::float8", "0::float8", "'-0'::float8", "'NaN'::float8", "2.5::float8", "'-inf'::float8", "3::float8")
	case "d":
		return fmt.Sprintf("'2024-01-%02d'::date", 1+g.n(12))
	case "ts":
		return fmt.Sprintf("'2024-01-%02d %02d:00+00'::timestamptz", 1+g.n(4), g.n(24))
	case "i":
		return g.pick("'1 month'", "'30 days'", "'720:00:00'", "'1 day'", "'24:00:00'", "'-1 day'") + "::interval"
	}
	return g.pick("true", "false")
}

var rangeColumns = []string{"id", "a", "b", "c", "v", "n", "f", "d", "ts", "p", "i", "o", "s", "u"}

// row is a new row.
func (g *ranger) row(id int) string {
	vals := []string{strconv.Itoa(id)}
	for _, c := range rangeColumns[1 : len(rangeColumns)-1] {
		if c != "s" && g.n(7) == 0 {
			vals = append(vals, "NULL")
			continue
		}
		vals = append(vals, g.value(c))
	}
	return "(" + strings.Join(append(vals, g.pick("NULL", fmt.Sprintf("%d.%s", id, g.pick("0", "00", "5")))), ", ") + ")"
}

func (g *ranger) change() string {
	switch g.n(4) {
	case 0:
		return fmt.Sprintf("DELETE FROM r WHERE %s", g.cond())
	case 1:
		c := g.pick("a", "b", "c", "n", "d", "s", "f", "v")
		return fmt.Sprintf("UPDATE r SET %s = %s WHERE %s", c, g.value(c), g.cond())
	}
	from := g.n(400)
	var rows []string
	for i := range 1 + g.n(30) {
		rows = append(rows, g.row(from+i))
	}
	return "INSERT INTO r VALUES " + strings.Join(rows, ", ") + " ON CONFLICT DO NOTHING"
}

// cond is a condition on one column, or on two as a row.
func (g *ranger) cond() string {
	c := rangeColumns[g.n(len(rangeColumns))]
	v := func() string { return g.value(c) }
	switch g.n(14) {
	case 0, 1:
		return c + " = " + v()
	case 11:
		return fmt.Sprintf("%s = ANY (ARRAY[%s, %s, %s, %s])", c, v(), v(), g.pick("NULL", v()), v())
	case 12:
		a, b := "a", "b"
		if g.n(3) == 0 {
			a, b = "n", "s"
		}
		row := func() string { return "(" + g.value(a) + ", " + g.value(b) + ")" }
		return fmt.Sprintf("(%s, %s) IN (%s, %s, %s)", a, b, row(), row(), row())
	case 2, 3:
		return c + g.pick(" < ", " <= ", " > ", " >= ") + v()
	case 4:
		return fmt.Sprintf("%s BETWEEN %s AND %s", c, v(), v())
	case 5:
		return fmt.Sprintf("%s IN (%s, %s, %s)", c, v(), v(), v())
	case 6:
		return fmt.Sprintf("%s >= %s AND %s < %s", c, v(), c, v())
	case 7:
		return g.pick("c", "v") + " LIKE '" + g.pick("a%", "ab%", "a_%", "abc", "%b", "a\\_%", "é%", "") + "'"
	case 8:
		return g.pick("starts_with(c, 'ab')", "c ^@ 'a'", "c ~ '^ab'", "c ~ '^abc?'", "upper(c) LIKE 'A%' AND o", "upper(c) = 'AB' AND o")
	case 9:
		return fmt.Sprintf("a = %s AND b %s %s", g.value("a"), g.pick("=", "<", ">="), g.value("b"))
	case 10:
		return g.pick(
			fmt.Sprintf("(s, id) > (%s, %s)", g.value("s"), g.value("id")),
			fmt.Sprintf("(a, b) <= (%s, %s)", g.value("a"), g.value("b")),
			fmt.Sprintf("a + b = %s", g.value("a")), fmt.Sprintf("a + b < %s", g.value("a")),
			fmt.Sprintf("n = %s AND s > %s", g.value("n"), g.value("s")),
			fmt.Sprintf("ts > %s AND n > 3", g.value("ts")))
	}
	return c + g.pick(" IS NULL", " IS NOT NULL", " > NULL", " = NULL")
}

// query makes a query and says whether its rows come in an order.
func (g *ranger) query() (sql string, ordered bool) {
	where := ""
	if g.n(5) > 0 {
		where = " WHERE " + g.cond()
		if g.n(2) == 0 {
			where += " AND " + g.cond()
		}
		if g.n(6) == 0 {
			where += " OR " + g.cond()
		}
	}
	switch g.n(6) {
	case 0, 1:
		return "SELECT * FROM r" + where, false
	case 2:
		return "SELECT count(*), sum(id) FROM r" + where, false
	case 3:
		k := g.pick("a", "s", "d", "n", "c")
		return fmt.Sprintf("SELECT x.id, y.id FROM (SELECT id, s FROM r%s ORDER BY %s%s, id LIMIT %d) x JOIN r y ON y.id = x.s", where, k, g.dir(), 1+g.n(9)), false
	}
	keys := g.pick("id", "a, b, id", "c, a, id", "n, s, id", "s, id", "f, id", "d, ts, id", "i, id", "p, id", "a + b, id", "id, a", "u, id")
	dir := g.dir()
	return fmt.Sprintf("SELECT * FROM r%s ORDER BY %s%s LIMIT %d OFFSET %d", where, strings.ReplaceAll(keys, ",", dir+","), dir, g.n(20), max(g.n(8)-4, 0)), true
}

func (g *ranger) dir() string {
	return g.pick("", "", " DESC", " DESC", " NULLS FIRST", " DESC NULLS LAST")
}

// TestRandomRanges reads a table by random values and bounds of its keys, and in
// their order, and changes it by such, and compares with PostgreSQL.
func TestRandomRanges(t *testing.T) {
	pg := oracle.Connect(t)
	seed, rounds := randomly(t, 2)
	dir := t.TempDir()
	d := open(t, dir)
	defer func() { d.close() }()
	looked, sorted := 0, 0
	for round := range rounds {
		c := d.connect()
		schema := fmt.Sprintf("r%x_%d", seed&0xffffffff, round)
		defer pg.Exec(t, "ROLLBACK; DROP SCHEMA IF EXISTS "+schema+" CASCADE")
		g := &ranger{rnd: rand.New(rand.NewPCG(seed, uint64(round)))}
		both := func(sql string, ask func(*pgx.Conn, string) string) {
			t.Helper()
			a, b := ask(c, sql), ask(pg.Conn, sql)
			if a != b && (!strings.HasPrefix(a, "ERROR ") || !strings.HasPrefix(b, "ERROR ") || a[:11] != b[:11]) {
				t.Fatalf("round %d: %s\nstreamdb:\n%s\nPostgreSQL:\n%s\n%s", round, sql, a, b, answer(c, "EXPLAIN "+sql))
			}
		}
		both("CREATE SCHEMA "+schema+"; SET search_path = "+schema+"; SET TimeZone = 'UTC'", answer)
		both(rangeTable, answer)
		for _, sql := range rangeIndexes {
			both(sql, answer)
		}
		for range 25 {
			block := g.n(4) == 0
			if block {
				both("BEGIN", answer)
			}
			for range 1 + g.n(2) {
				both(g.change(), answer)
			}
			for range 12 {
				sql, ordered := g.query()
				if !ordered {
					both(sql, answer)
				} else {
					both(sql, answerInOrder)
				}
				plan := answer(c, "EXPLAIN "+sql)
				if strings.Contains(plan, " lookup=") {
					looked++
				}
				if strings.Contains(plan, " in order of ") {
					sorted++
				}
			}
			if block {
				both(g.pick("COMMIT", "ROLLBACK"), answer)
			}
		}
		c.Close(context.Background())
		if round%2 == 0 {
			d.close()
			d = open(t, dir)
		}
	}
	if looked < 100*rounds || sorted < 10*rounds {
		t.Errorf("%d lookups, %d reads in order", looked, sorted)
	}
	t.Logf("%d lookups, %d reads in order", looked, sorted)
}

// answerInOrder is answer with the rows in the order in which they came.
func answerInOrder(c *pgx.Conn, sql string) string {
	rs, err := c.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		return answer(c, sql)
	}
	var b strings.Builder
	for _, row := range rs[0].Rows {
		for _, v := range row {
			fmt.Fprintf(&b, "%s|", v)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

var rowsRead = regexp.MustCompile(`Rows Read: (\d+)`)

// TestRowsRead looks that reads by keys cost in proportion to what they return.
func TestRowsRead(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	a := d.connect()
	defer a.Close(context.Background())
	const n = 40000
	for _, sql := range []string{
		"CREATE TABLE t (id int PRIMARY KEY, a int, b int, c text, n numeric UNIQUE, f float8)",
		fmt.Sprintf("INSERT INTO t SELECT i, i %% 1000, i, 'k' || i, i / 4.0, i FROM generate_series(1, %d) i", n),
		"CREATE INDEX ON t (a, b)", "CREATE INDEX ON t (c)", "CREATE INDEX ON t (f)",
		"CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n, sum(b) AS s FROM t GROUP BY a",
		"SELECT count(*) FROM v",
	} {
		d.exec(a, sql)
	}
	for range 500 { // until the indexes are filled
		if s := d.text(a, "EXPLAIN (VERBOSE) SELECT * FROM t WHERE id < 0 AND c = 'k' AND a = 1 AND f = 1"); !strings.Contains(s, "not filled") {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, q := range []struct {
		sql  string
		rows int
	}{
		{"SELECT * FROM t WHERE id > 39990", 10},
		{"SELECT * FROM t WHERE id BETWEEN 100 AND 119", 20},
		{"SELECT * FROM t WHERE a = 7 AND b > 30000", 10},
		{"SELECT * FROM t WHERE a IN (7, 8) AND b > 30000", 20},
		{"SELECT * FROM t WHERE id = ANY ('{5, 6, 5, NULL, 7000000}')", 2},
		{"SELECT * FROM t WHERE id = ANY ('{5, 6, 70000000000}'::int8[])", 2},
		{"SELECT * FROM t WHERE a = 7", 40},
		{"SELECT * FROM t WHERE c LIKE 'k1234%'", 11},
		{"SELECT * FROM t WHERE n = 2.50", 1},
		{"SELECT * FROM t WHERE n > 9999.5", 2},
		{"SELECT * FROM t WHERE f = 17", 1},
		{"SELECT * FROM t ORDER BY id LIMIT 5", 64},
		{"SELECT * FROM t ORDER BY id DESC LIMIT 100", 64 + 128},
		{"SELECT * FROM t WHERE a = 7 ORDER BY b DESC LIMIT 2", 40},
		{"SELECT * FROM t WHERE (a, b) > (998, 20998) ORDER BY a, b LIMIT 10", 64},
		{"SELECT * FROM t WHERE b % 2 = 0 ORDER BY id LIMIT 30", 64},
		{"SELECT * FROM v WHERE a < 5", 5},
		{"SELECT * FROM (SELECT id FROM t ORDER BY f LIMIT 3) x JOIN t USING (id)", 64 + 3},
		{"SELECT * FROM t WHERE id <= 20000", n}, // a scan is faster
	} {
		text := d.text(a, "EXPLAIN ANALYZE "+q.sql)
		m := rowsRead.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%s\n%s", q.sql, text)
		}
		if got, _ := strconv.Atoi(m[1]); got > q.rows {
			t.Errorf("%s reads %d rows, not %d\n%s", q.sql, got, q.rows, text)
		}
	}
}
