package coord_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/streamdb/streamdb/internal/oracle"
)

// TestIndexExpressions makes indexes on expressions and of some of the rows, and
// looks that queries that they serve are looked up in them, with the right rows,
// also after changes of rows and columns and after a restart; and that what
// PostgreSQL shows of them is what it shows of its own.
func TestIndexExpressions(t *testing.T) {
	pg := oracle.Connect(t)
	dir := t.TempDir()
	d := open(t, dir)
	a := d.connect()
	both := func(sql string) {
		t.Helper()
		x, y := answer(a, sql), answer(pg.Conn, sql)
		if x != y {
			t.Errorf("%s\nstreamdb:\n%s\nPostgreSQL:\n%s", sql, x, y)
		}
	}
	for _, sql := range []string{
		"CREATE SCHEMA ixe; SET search_path = ixe",
		"CREATE TABLE t (id int PRIMARY KEY, a int, b int, c text, n numeric, ok bool)",
		"INSERT INTO t SELECT i, i % 50, i % 7, 'Name ' || i % 100, i / 4.0, i % 3 = 0 FROM generate_series(1, 3000) i",
		"CREATE INDEX ON t (lower(c))",
		"CREATE INDEX sums ON t (a, (a + b))",
		"CREATE TABLE u (id int PRIMARY KEY, d text, e int)",
		"INSERT INTO u SELECT id, CASE WHEN id % 9 > 0 THEN c END, CASE WHEN id % 7 > 0 THEN a END FROM t",
		"CREATE INDEX plain ON u (d)",
		"CREATE INDEX two ON u (e, d)",
		"CREATE INDEX doubled ON u ((e + e))",
		"CREATE INDEX part ON t (b) WHERE a > 10 AND ok",
		"CREATE INDEX ON t ((a * 2)) WHERE c IS NOT NULL",
		"CREATE INDEX ON t ((a * 2), abs(b), (a * 3), upper(c))",
		"CREATE INDEX bad ON t ((random()))", "CREATE INDEX bad ON t (a) WHERE now() > '2020-01-01'",
		"CREATE INDEX bad ON t ((nope + 1))", "CREATE INDEX bad ON t ((a + 1)) WHERE a", "CREATE INDEX bad ON t ((sum(a)))",
		"CREATE INDEX bad ON t (((SELECT 1)))", "CREATE INDEX bad ON t ((1 / (a - 20)))",
		"CREATE INDEX guarded ON t ((1 / (id - 7000))) WHERE a = 49", "INSERT INTO t VALUES (7000, 49, 1)", "INSERT INTO t VALUES (7000, 48, 1)",
		"UPDATE t SET a = 49 WHERE id = 7000",
	} {
		both(sql)
	}
	defer pg.Exec(t, "ROLLBACK; DROP SCHEMA IF EXISTS ixe CASCADE")
	defs := "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'ixe'"
	keys := "SELECT c.relname, x.indkey, x.indnatts, x.indpred IS NULL, x.indexprs IS NULL, pg_get_indexdef(c.oid, 1, true), (SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = c.oid) FROM pg_index x JOIN pg_class c ON c.oid = indexrelid WHERE relnamespace = 'ixe'::regnamespace"
	queries := []struct{ sql, index string }{
		{"SELECT id FROM t WHERE lower(c) = 'name 7'", "t_lower_idx"},
		{"SELECT id FROM t WHERE lower(c) IN ('name 7', 'name 8') AND a < 30", "t_lower_idx"},
		{"SELECT id FROM t WHERE a + b = 5 AND a = 3", "sums"},
		{"SELECT id, b FROM t WHERE b = 3 AND a > 10 AND ok", "part"},
		{"SELECT id, b FROM t WHERE b = 3 AND a = 20 AND ok", "part"},
		{"SELECT id, b FROM t WHERE b IN (3, 4) AND a >= 11 AND ok AND n > 3", "part"},
		{"SELECT id, b FROM t WHERE b = 3 AND a > 9 AND ok", "sums"},
		{"SELECT id, b FROM t WHERE b = 3 AND a > 10", "sums"},
		{"SELECT id FROM t WHERE a * 2 = 10 AND c > 'Name 2'", "t_expr_idx"},
		{"SELECT id FROM t WHERE a * 2 = 10", "t_expr_abs_expr1_upper_idx"},
		{"SELECT id FROM t WHERE abs(b) = 1 AND a * 3 = 9 AND upper(c) = 'NAME 3' AND a * 2 = 6", "t_expr_abs_expr1_upper_idx"},
		{"SELECT id FROM t WHERE upper(c) = 'NAME 7'", ""},
		{"SELECT id FROM u WHERE d IS NULL", "plain"},
		{"SELECT id FROM u WHERE d IS NOT DISTINCT FROM NULL", "plain"},
		{"SELECT id FROM u WHERE d IS NOT DISTINCT FROM 'Name 3'", "plain"},
		{"SELECT id FROM u WHERE d IS NOT DISTINCT FROM (SELECT NULL::text)", "plain"},
		{"SELECT id FROM u WHERE e = 3 AND d IS NULL", "two"},
		{"SELECT id FROM u WHERE e IS NULL AND d IN ('Name 3', 'Name 7')", "plain"},
		{"SELECT id FROM u WHERE e IS NULL AND d > 'Name 98'", "two"},
		{"SELECT id FROM u WHERE d IS NULL AND d = 'Name 3'", "plain"},
		{"SELECT id FROM u WHERE e + e IS NULL", "doubled"},
		{"SELECT id FROM u WHERE (e = 3 AND d = 'Name 3') OR d IS NULL", "plain"},
		{"SELECT id FROM u WHERE d IS NOT NULL AND e IS NULL", "two"},
		{"SELECT x.v, u.id FROM (VALUES ('Name 3'), (NULL), ('Name 7'), ('Name 3')) x(v) JOIN u ON u.d = x.v", "plain"},
		{"SELECT x.v, u.id FROM (VALUES ('Name 3'), (NULL), ('No')) x(v) LEFT JOIN u ON u.d = x.v AND u.e > 3", "plain"},
		{"SELECT x.v FROM (VALUES ('Name 3'), (NULL), ('No'), ('No')) x(v) WHERE NOT EXISTS (SELECT FROM u WHERE u.d = x.v)", "plain"},
		{"SELECT x.id, y.id FROM u x JOIN u y ON x.d = y.d WHERE x.id IN (30, 31)", "plain"},
	}
	check := func() {
		t.Helper()
		both(defs)
		both(keys)
		for _, q := range queries {
			both(q.sql)
			plan := ""
			for range 100 { // until the index is filled
				if plan = answer(a, "EXPLAIN "+q.sql); q.index == "" || strings.Contains(plan, "index="+q.index) {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			if q.index != "" && !strings.Contains(plan, "index="+q.index) || q.index == "" && strings.Contains(plan, "lookup=") {
				t.Errorf("%s\nshould look up in %q:\n%s", q.sql, q.index, plan)
			}
		}
	}
	check()
	for _, sql := range []string{
		"UPDATE t SET c = 'name 7', a = a + 1 WHERE id % 40 = 1", "DELETE FROM t WHERE b = 3 AND id < 100",
		"INSERT INTO t SELECT i, 12, 3, 'NAME 7', 1, true FROM generate_series(4000, 4010) i",
		"BEGIN; INSERT INTO t VALUES (5000, 12, 3, 'naMe 7', 1, true)",
	} {
		both(sql)
	}
	check()
	both("COMMIT")
	both("ALTER TABLE t ADD COLUMN z int DEFAULT 3")
	both("ALTER TABLE t RENAME COLUMN c TO \"the Name\"")
	for i := range queries {
		for _, from := range []string{"(c)", " c > "} {
			queries[i].sql = strings.ReplaceAll(queries[i].sql, from, strings.Replace(from, "c", "\"the Name\"", 1))
		}
	}
	check()
	both("ALTER TABLE t DROP COLUMN n")
	queries[5].sql = strings.Replace(queries[5].sql, " AND n > 3", "", 1)
	check()
	a.Close(context.Background())
	d.close()
	d = open(t, dir)
	a = d.connect()
	d.exec(a, "SET search_path = ixe")
	check()
	both("ALTER TABLE t DROP COLUMN ok")
	both(defs)
	a.Close(context.Background())
	d.close()
}

// TestUnusedIndexes looks that EXPLAIN tells of indexes that nothing can be looked up
// by.
func TestUnusedIndexes(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	a := d.connect()
	defer a.Close(context.Background())
	for _, sql := range []string{
		"CREATE TABLE t (id int PRIMARY KEY, a int, n numeric, UNIQUE (n))", "CREATE INDEX by_a ON t (a)", "CREATE INDEX by_n ON t (n, a)",
	} {
		d.exec(a, sql)
	}
	got := ""
	for range 100 { // until the indexes are filled
		if got = d.text(a, "EXPLAIN (VERBOSE) SELECT * FROM t WHERE n = 3 AND a = 2"); !strings.Contains(got, "not filled yet") {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, want := range []string{
		"Not used: the key of public.t: no value or bound of id is given",
		"Not used: index by_n: another one is better",
		"Not used: index by_a: another one is better",
		"lookup=('3'::numeric) index=t_n_key",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
