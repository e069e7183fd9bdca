package coord_test

import (
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
)

// volatileQueries see how often, and in which order, their calls are made.
var volatileQueries = []string{
	// In the order of the result, and only for what is wanted of it.
	"SELECT a, nextval('s') FROM t ORDER BY a DESC",
	"SELECT a, nextval('s') FROM t ORDER BY a LIMIT 3 OFFSET 2",
	"SELECT nextval('s') FROM generate_series(1, 1000) LIMIT 3",
	"SELECT g FROM generate_series(1, 9) g LIMIT 9223372036854775807 OFFSET 3",
	"SELECT k, nextval('s') FROM keyed ORDER BY k DESC LIMIT 2 OFFSET 1",
	"SELECT a, nextval('s') AS n FROM t ORDER BY n, a LIMIT 0",
	"WITH c AS (SELECT a FROM t) SELECT c.a, nextval('s'), (SELECT max(a) FROM c) + nextval('s') FROM c ORDER BY c.a DESC",
	"SELECT a % 2 AS k, count(*), nextval('s') FROM t GROUP BY 1 ORDER BY 1 DESC",
	"SELECT a, row_number() OVER (ORDER BY b), nextval('s') FROM t ORDER BY a",
	"SELECT a, CASE WHEN a > 3 THEN nextval('s') END FROM t ORDER BY a",
	"SELECT a, nextval('s') FROM t ORDER BY a FETCH FIRST 10 ROWS WITH TIES",
	"SELECT sum(n) FROM (SELECT nextval('s') AS n FROM t ORDER BY a LIMIT 3) q",
	"INSERT INTO filled (a) SELECT a FROM t ORDER BY a DESC RETURNING *",
	"INSERT INTO filled SELECT nextval('s'), a FROM t ORDER BY a DESC RETURNING *",
	// All of a row before those of the next.
	"SELECT nextval('s'), nextval('s') FROM generate_series(1, 3)",
	"SELECT nextval('s') + currval('s'), lastval() FROM generate_series(1, 3)",
	"SELECT g FROM generate_series(1, 6) g WHERE nextval('s') % 2 = 0 AND currval('s') > 2",
	"SELECT setval('s', g), nextval('s') FROM generate_series(5, 7) g",
	"SELECT a, set_config('a.b', a::text, false), current_setting('a.b') FROM t ORDER BY a DESC",
	// For rows that there are in the end, each time that they occur.
	"SELECT a, nextval('s') FROM (SELECT a FROM t ORDER BY a LIMIT 3) q ORDER BY 1",
	"SELECT count(*), sum(n) FROM (SELECT nextval('s') AS n FROM (SELECT a FROM t ORDER BY a LIMIT 3) q) r",
	"SELECT count(*), sum(n) FROM (SELECT nextval('s') AS n FROM (SELECT DISTINCT a FROM d) q) r",
	"SELECT count(*), sum(n) FROM (SELECT nextval('s') AS n FROM (SELECT a, count(*) FROM d GROUP BY a) q) r",
	"SELECT count(*), sum(n) FROM (SELECT nextval('s') AS n FROM d LEFT JOIN t USING (a)) r",
	"SELECT count(*), sum(n) FROM (SELECT nextval('s') AS n FROM d FULL JOIN t USING (a)) r",
	"SELECT count(*), sum(n) FROM (SELECT nextval('s') AS n FROM (SELECT a FROM d EXCEPT SELECT a FROM t WHERE a > 7) q) r",
	"SELECT count(*), sum(n) FROM (SELECT nextval('s') AS n FROM d) r",
	"SELECT count(*), sum(n) FROM (SELECT nextval('s') AS n FROM (SELECT a FROM d UNION ALL SELECT a FROM d) q) r",
	"SELECT count(*) FROM (SELECT a FROM d ORDER BY a LIMIT 5) q WHERE nextval('s') > 0",
	"SELECT count(*) FROM d JOIN t ON d.a = t.a AND nextval('s') > 0",
	"SELECT count(DISTINCT r) = count(*) FROM (SELECT random() AS r FROM d) q",
}

// TestVolatileCalls compares the results of calls that depend on those before with
// PostgreSQL's, outside of a transaction and in one that has changed what is read.
func TestVolatileCalls(t *testing.T) {
	pg := oracle.Connect(t)
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	const schema = "volatile_calls"
	pg.Exec(t, "DROP SCHEMA IF EXISTS "+schema+" CASCADE")
	defer pg.Exec(t, "DROP SCHEMA IF EXISTS "+schema+" CASCADE")
	both := func(sql string) {
		t.Helper()
		if a, b := answer(c, sql), answer(pg.Conn, sql); a != b {
			t.Errorf("%s\nstreamdb:\n%s\nPostgreSQL:\n%s\n%s", sql, a, b, answer(c, "EXPLAIN "+sql))
		}
	}
	for _, sql := range []string{
		"CREATE SCHEMA " + schema + "; SET search_path = " + schema,
		"CREATE SEQUENCE s; CREATE TABLE t (a int, b text); CREATE TABLE d (a int); CREATE TABLE keyed (k int PRIMARY KEY)",
		"CREATE TABLE filled (id bigint DEFAULT nextval('s'), a int)",
		"INSERT INTO t SELECT i * 7 % 10, 'x' || i FROM generate_series(1, 10) i",
		"INSERT INTO d SELECT generate_series(1, 5); INSERT INTO d SELECT generate_series(4, 9); INSERT INTO d SELECT generate_series(4, 9)",
		"INSERT INTO keyed SELECT generate_series(1, 9)",
	} {
		both(sql)
	}
	for range 2 {
		for _, sql := range volatileQueries {
			both("SELECT setval('s', 1, false)")
			both(sql)
			both("SELECT nextval('s')")
		}
		both("BEGIN; DELETE FROM d WHERE a IN (5, 9); DELETE FROM t WHERE a = 4; UPDATE keyed SET k = k + 10 WHERE k > 7")
	}
	both("ROLLBACK")
}
