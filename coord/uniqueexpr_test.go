package coord_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
)

// TestUniqueExpressions enforces unique indexes on expressions and of some of the
// rows: answers, errors and rows are those of PostgreSQL, in transactions, with ON
// CONFLICT, for changes of the table and after restarts.
func TestUniqueExpressions(t *testing.T) {
	pg := oracle.Connect(t)
	seed, rounds := randomly(t, 4)
	dir := t.TempDir()
	d := open(t, dir)
	a := d.connect()
	defer pg.Exec(t, "ROLLBACK; DROP SCHEMA IF EXISTS uxe CASCADE")
	var log []string
	both := func(sql string) {
		t.Helper()
		log = append(log, sql+";")
		x, y := answer(a, sql), answer(pg.Conn, sql)
		if x != y {
			t.Fatalf("after\n%s\nstreamdb:\n%s\nPostgreSQL:\n%s", strings.Join(log, "\n"), x, y)
		}
	}
	for _, sql := range []string{
		"CREATE SCHEMA uxe; SET search_path = uxe",
		"CREATE TABLE t (id int, a int, b int, c text, n numeric, ok bool)",
		"INSERT INTO t VALUES (1, 1, 1, 'A', 1.0, true), (2, 1, 2, 'a', 1.00, false)",
		"CREATE UNIQUE INDEX ON t (lower(c))", "CREATE UNIQUE INDEX ON t (n)", "CREATE UNIQUE INDEX ON t (a) WHERE b > 0", "CREATE UNIQUE INDEX ON t ((a + b), n) WHERE ok",
		"DELETE FROM t WHERE id = 2",
		"CREATE UNIQUE INDEX low ON t (lower(c))", "CREATE UNIQUE INDEX part ON t (a) WHERE b > 3", "CREATE UNIQUE INDEX nums ON t ((n * 2.5)) WHERE ok",
		"INSERT INTO t VALUES (3, 3, 3, 'a', 7, true)", "INSERT INTO t VALUES (3, 3, 3, 'b', 7, true), (4, 4, 4, 'B', 8, true)",
		"INSERT INTO t VALUES (3, 3, 4, 'b', 7, true), (4, 3, 5, 'c', 8, true)", "INSERT INTO t VALUES (3, 3, 3, 'b', 1, true)",
		"INSERT INTO t VALUES (3, 3, 3, 'b', 1.00, false), (4, 3, 2, 'd', NULL, true), (5, 3, NULL, 'e', NULL, true), (6, 3, 6, NULL, 6, true)",
		"UPDATE t SET b = 9 WHERE id = 3", "UPDATE t SET ok = true WHERE id = 3", "UPDATE t SET c = 'x' || id",
		"INSERT INTO t VALUES (7, 8, 8, 'X3', 9, true) ON CONFLICT (lower(c)) DO UPDATE SET a = excluded.a, n = t.n + 100",
		"INSERT INTO t VALUES (7, 3, 8, 'new', 9, true) ON CONFLICT (a) WHERE b > 3 DO UPDATE SET c = excluded.c",
		"INSERT INTO t VALUES (7, 3, 8, 'new2', 9, true) ON CONFLICT (a) WHERE b > 5 DO NOTHING",
		"INSERT INTO t VALUES (7, 3, 8, 'new2', 9, true) ON CONFLICT (a) DO NOTHING",
		"INSERT INTO t VALUES (7, 3, 8, 'new2', 9, true) ON CONFLICT (a) WHERE b > 2 DO NOTHING",
		"INSERT INTO t VALUES (7, 3, 8, 'new2', 9, true) ON CONFLICT (upper(c)) DO NOTHING",
		"INSERT INTO t VALUES (7, 3, 8, 'new2', 9, true) ON CONFLICT DO NOTHING", "INSERT INTO t VALUES (7, 3, 8, 'new2', 9, true) ON CONFLICT ON CONSTRAINT low DO NOTHING",
		"CREATE TABLE r (x text REFERENCES t (c))", "ALTER TABLE t ADD COLUMN z int DEFAULT 1", "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'uxe'",
		"SELECT count(*) FROM pg_constraint WHERE connamespace = 'uxe'::regnamespace",
		"INSERT INTO t VALUES (8, 8, 8, 'X5', 9, true, 1)", "ALTER TABLE t ALTER COLUMN a TYPE bigint", "INSERT INTO t VALUES (8, 3, 8, 'X50', 90, true, 1)",
		"BEGIN; INSERT INTO t VALUES (9, 50, 8, 'New9', 91, true, 1); INSERT INTO t VALUES (9, 51, 8, 'nEw9', 92, true, 1)", "ROLLBACK",
	} {
		both(sql)
	}
	r := rand.New(rand.NewPCG(seed, 3))
	for range rounds {
		for range 60 {
			both(uniqueChange(r))
		}
		both("SELECT * FROM t")
		both("SELECT id FROM t WHERE lower(c) = 'c1'")
		a.Close(context.Background())
		d.close()
		d = open(t, dir)
		a = d.connect()
		d.exec(a, "SET search_path = uxe")
	}
	for _, sql := range []string{
		"SELECT * FROM t", "ALTER TABLE t DROP COLUMN b", "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'uxe'",
		"UPDATE t SET a = 1", "DROP INDEX low", "UPDATE t SET c = 'same'", "DROP INDEX nums", "UPDATE t SET n = 1, ok = true", "SELECT * FROM t",
	} {
		both(sql)
	}
	a.Close(context.Background())
	d.close()
}

func uniqueChange(r *rand.Rand) string {
	n := func(k int) string {
		if r.IntN(9) == 0 {
			return "NULL"
		}
		return fmt.Sprint(r.IntN(k))
	}
	c := fmt.Sprintf("'%c%d'", "cC"[r.IntN(2)], r.IntN(12))
	switch r.IntN(6) {
	case 0, 1:
		return fmt.Sprintf("INSERT INTO t VALUES (%d, %s, %s, %s, %s, %v, 1)", 100+r.IntN(1000), n(20), n(8), c, n(30), r.IntN(2) == 0)
	case 2:
		target := []string{"", "(lower(c))", "(a) WHERE b > 3", "((n * 2.5)) WHERE ok"}[r.IntN(4)]
		action := "NOTHING"
		if target != "" && r.IntN(2) == 0 {
			action = fmt.Sprintf("UPDATE SET id = excluded.id, b = %s", n(8))
		}
		return fmt.Sprintf("INSERT INTO t VALUES (%d, %s, %s, %s, %s, %v, 1) ON CONFLICT %s DO %s", 100+r.IntN(1000), n(20), n(8), c, n(30), r.IntN(2) == 0, target, action)
	case 3:
		return fmt.Sprintf("UPDATE t SET b = %s, ok = NOT ok WHERE a = %d", n(8), r.IntN(20))
	case 4:
		return fmt.Sprintf("DELETE FROM t WHERE id %% 5 = %d AND a > %d", r.IntN(5), r.IntN(20))
	}
	return fmt.Sprintf("UPDATE t SET c = %s, n = n + 1 WHERE a = %d", c, r.IntN(20))
}
