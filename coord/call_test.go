package coord_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/streamdb/streamdb/internal/oracle"
)

// TestCalls calls functions that change tables by the extended protocol, in
// transactions, and with errors in them, here and in PostgreSQL.
func TestCalls(t *testing.T) {
	s := oracle.Connect(t)
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	schema := fmt.Sprintf("calls_%d", os.Getpid())
	s.Exec(t, "CREATE SCHEMA "+schema)
	defer s.Exec(t, "DROP SCHEMA "+schema+" CASCADE")
	s.Exec(t, "SET search_path = "+schema)
	ctx := context.Background()
	both := func(sql string, args ...any) {
		t.Helper()
		var answers [2]string
		for i, conn := range []*pgx.Conn{c, s.Conn} {
			rows, err := conn.Query(ctx, sql, args...)
			if err == nil {
				var got []any
				for rows.Next() {
					v, _ := rows.Values()
					got = append(got, v)
				}
				rows.Close()
				answers[i] = fmt.Sprint(got)
				err = rows.Err()
			}
			if err != nil {
				answers[i] = err.Error()
			}
		}
		if answers[0] != answers[1] {
			t.Errorf("%s %v\n got %s\nwant %s", sql, args, answers[0], answers[1])
		}
	}
	for _, sql := range []string{
		"CREATE TABLE t(id int PRIMARY KEY, s text)",
		"CREATE FUNCTION ins(i int, x text) RETURNS int LANGUAGE sql AS 'INSERT INTO t VALUES (i, x) RETURNING id'",
		"CREATE FUNCTION twice(i int) RETURNS SETOF t LANGUAGE sql AS $$INSERT INTO t VALUES (i, 'x'); INSERT INTO t VALUES (i + 1, 'y'); SELECT * FROM t WHERE id IN (i, i + 1) ORDER BY id$$",
		"CREATE FUNCTION outer_fn(i int) RETURNS bigint LANGUAGE sql AS $$SELECT * FROM twice(i); SELECT count(*) FROM t$$",
		"CREATE PROCEDURE pr(i int, OUT n bigint) LANGUAGE sql AS $$DELETE FROM t WHERE id = i; SELECT count(*) FROM t$$",
	} {
		both(sql)
	}
	both("SELECT ins($1, $2)", 1, "one")
	both("SELECT $2::text, ins($1, $2) AS r, 5", 2, "two")
	both("SELECT ins($1, $2)", 2, "again")
	both("SELECT * FROM ins($1, $2)", 3, "three")
	both("SELECT * FROM twice($1) WHERE id > $1", 10)
	both("SELECT (x).s FROM twice($1) x", 20)
	both("SELECT count(*) FROM twice(30) a, twice(40) b")
	both("SELECT ins(id + 100, s) FROM t WHERE id < 5 ORDER BY id DESC")
	both("SELECT outer_fn($1)", 50)
	both("CALL pr(1, NULL)")
	both("SELECT * FROM t ORDER BY id")
	both("BEGIN")
	both("SELECT ins($1, $2)", 200, "in")
	both("CALL pr(200, NULL)")
	both("SELECT ins($1, $2)", 201, "in")
	both("SAVEPOINT a")
	both("SELECT * FROM twice($1)", 200)
	both("ROLLBACK TO a")
	both("SELECT count(*) FROM t")
	both("ROLLBACK")
	both("SELECT * FROM twice($1)", 1) // its second row is there: neither is inserted
	both("SELECT * FROM t ORDER BY id")
	both("WITH n AS (INSERT INTO t VALUES (300, 'w') RETURNING id) SELECT n.id, f FROM n, ins(301, 'f') f")
	both("SELECT count(*) FROM t WHERE id >= 300")
}
