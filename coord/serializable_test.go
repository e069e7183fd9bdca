package coord_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestWriteSkew lets two transactions read what the other one writes: one of them
// must fail if they are SERIALIZABLE.
func TestWriteSkew(t *testing.T) {
	for _, c := range []struct{ name, read, write string }{
		{"table", "SELECT sum(v) FROM #", "UPDATE @ SET v = v - 1"},
		{"view", "SELECT s FROM sum_#", "UPDATE @ SET v = v - 1"},
		{"insert", "SELECT sum(v) FROM #", "INSERT INTO @ VALUES (9, 9)"},
		{"subquery", "SELECT 1", "INSERT INTO @ SELECT 8, sum(v) FROM #"},
		{"index", "SELECT v FROM # WHERE v = 1", "DELETE FROM @"},
	} {
		for _, serializable := range []bool{true, false} {
			t.Run(fmt.Sprint(c.name, serializable), func(t *testing.T) {
				d := open(t, t.TempDir())
				defer d.close()
				x, y := d.connect(), d.connect()
				for _, tab := range []string{"a", "b"} {
					d.exec(x, "CREATE TABLE "+tab+" (id int, v bigint)")
					d.exec(x, "CREATE INDEX ON "+tab+" (v)")
					d.exec(x, "CREATE MATERIALIZED VIEW sum_"+tab+" AS SELECT sum(v) AS s FROM "+tab)
					d.exec(x, "INSERT INTO "+tab+" VALUES (1, 1)")
				}
				level := "REPEATABLE READ"
				if serializable {
					level = "SERIALIZABLE"
				}
				at := func(sql, tab string) string {
					return strings.NewReplacer("@", tab, "#", map[string]string{"a": "b", "b": "a"}[tab]).Replace(sql)
				}
				for conn, tab := range map[*pgx.Conn]string{x: "a", y: "b"} {
					d.exec(conn, "BEGIN ISOLATION LEVEL "+level)
					d.text(conn, at(c.read, tab))
				}
				d.exec(x, at(c.write, "a"))
				d.exec(y, at(c.write, "b"))
				d.exec(x, "COMMIT")
				_, err := y.Exec(t.Context(), "COMMIT")
				var e *pgconn.PgError
				if failed := errors.As(err, &e) && e.Code == "40001"; failed != serializable {
					t.Errorf("the second commit gives %v", err)
				}
				// What only reads never fails.
				d.exec(y, "BEGIN ISOLATION LEVEL SERIALIZABLE")
				d.text(y, "SELECT count(*) FROM a, sum_b")
				d.exec(x, "INSERT INTO a VALUES (3, 3)")
				d.text(y, "SELECT count(*) FROM a, sum_b")
				d.exec(y, "COMMIT")
			})
		}
	}
}

// TestSerializableInvariant runs many transactions at once, each of which keeps an
// invariant over two tables if it is alone.
func TestSerializableInvariant(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	admin := d.connect()
	d.exec(admin, "CREATE TABLE a (id int PRIMARY KEY, v int)")
	d.exec(admin, "CREATE TABLE b (id int PRIMARY KEY, v int)")
	d.exec(admin, "CREATE MATERIALIZED VIEW total AS SELECT (SELECT coalesce(sum(v), 0) FROM a) + (SELECT coalesce(sum(v), 0) FROM b) AS s")
	d.exec(admin, "INSERT INTO a VALUES (1, 30)")
	d.exec(admin, "INSERT INTO b VALUES (1, 30)")
	var wg sync.WaitGroup
	conns := make([]*pgx.Conn, 4)
	for i := range conns {
		conns[i] = d.connect()
	}
	for i, c := range conns {
		wg.Go(func() {
			tab := []string{"a", "b"}[i%2]
			for range 60 {
				err := withdraw(c, tab)
				var e *pgconn.PgError
				if err != nil && !(errors.As(err, &e) && e.Code == "40001") {
					t.Errorf("%v", err)
				}
			}
		})
	}
	wg.Wait()
}

// withdraw takes all that two tables have together from one of them, or puts
// something into it if that is nothing: the sum is never negative.
func withdraw(c *pgx.Conn, tab string) error {
	ctx := context.Background()
	tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable})
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	var s int
	if err := tx.QueryRow(ctx, "SELECT s FROM total").Scan(&s); err != nil {
		return err
	}
	switch {
	case s < 0:
		return fmt.Errorf("the sum is %d", s)
	case s == 0:
		s = -20
	}
	if _, err := tx.Exec(ctx, "UPDATE "+tab+" SET v = v - $1", s); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
