package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// upstream makes a database of its own on the test PostgreSQL.
func upstream(t *testing.T) (*pgx.Conn, string) {
	t.Helper()
	dsn := need(t, "STREAMDB_TEST_PG_DSN")
	ctx := context.Background()
	admin, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("e2e_%d", rand.Int64())
	exec1(t, admin, "CREATE DATABASE "+name)
	cfg := admin.Config().Copy()
	cfg.Database = name
	up, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		up.Close(ctx)
		for range 50 {
			_, _ = admin.Exec(ctx, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = '"+name+"' AND NOT active")
			if _, err = admin.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		admin.Close(ctx)
	})
	conn := fmt.Sprintf("CREATE CONNECTION up TO POSTGRES (HOST '%s', PORT %d, USER '%s', DATABASE '%s', SSL MODE disable)", cfg.Host, cfg.Port, cfg.User, name)
	return up, conn
}

// TestPostgresSource follows a publication: snapshot, inserts, updates (keys
// too), deletes, truncates, unchanged TOAST, transactions whole, and what
// happened while the server was down.
func TestPostgresSource(t *testing.T) {
	up, createConn := upstream(t)
	exec1(t, up,
		"CREATE TABLE account (id int PRIMARY KEY, balance numeric(12,2) NOT NULL, note text)",
		"ALTER TABLE account ALTER note SET STORAGE EXTERNAL",
		"INSERT INTO account SELECT i, 100, repeat('x', 3000) FROM generate_series(1, 500) i",
		"CREATE TABLE event (a int, b text)", "ALTER TABLE event REPLICA IDENTITY FULL",
		`INSERT INTO event VALUES (1, 'a'), (1, 'a'), (2, E'tab\tnl\nback\\'), (3, NULL)`,
		"CREATE PUBLICATION pub FOR TABLE account, event")
	s := serve(t, t.TempDir())
	c := s.connect()
	exec1(t, c, createConn, "CREATE SOURCE shop FROM POSTGRES CONNECTION up (PUBLICATION 'pub') FOR ALL TABLES",
		"CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS s, count(*) AS n, sum(length(note)) AS l FROM account")
	if got := text(t, c, "SELECT * FROM total"); got != "50000.00,500,1500000" {
		t.Fatalf("snapshot: %s", got)
	}
	if got := text(t, c, "SELECT a, b FROM event ORDER BY a"); got != "1,a\n1,a\n2,tab\tnl\nback\\\n3,NULL" {
		t.Fatalf("snapshot of a table without a key: %q", got)
	}
	exec1(t, up, "UPDATE account SET balance = balance + 1 WHERE id = 1", // leaves TOAST unchanged
		"UPDATE account SET id = 1000 WHERE id = 2", "DELETE FROM account WHERE id = 3",
		"DELETE FROM event WHERE ctid = '(0,1)'", "UPDATE event SET b = 'z' WHERE a = 3")
	eventually(t, c, "SELECT * FROM total", "49901.00,499,1497000")
	eventually(t, c, "SELECT id, length(note) FROM account WHERE id IN (1, 2, 1000) ORDER BY id", "1,3000\n1000,3000")
	eventually(t, c, "SELECT a, b FROM event WHERE a <> 2 ORDER BY a", "1,a\n3,z")
	s.kill()
	exec1(t, up, "UPDATE account SET balance = 0", "INSERT INTO account VALUES (7, 5, NULL) ON CONFLICT (id) DO UPDATE SET balance = 5", "TRUNCATE event", "INSERT INTO event VALUES (9, 'after')")
	s.start()
	c = s.connect()
	eventually(t, c, "SELECT s, n FROM total", "5.00,499")
	eventually(t, c, "SELECT a, b FROM event", "9,after")
	exec1(t, c, "DROP SOURCE shop CASCADE")
	if got := text(t, up, "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"); got != "0" {
		t.Fatalf("%s slots are left upstream", got)
	}
}

// TestUpstreamTransactionsAreWhole moves money between accounts upstream: the
// total that a view shows may never differ.
func TestUpstreamTransactionsAreWhole(t *testing.T) {
	up, createConn := upstream(t)
	exec1(t, up, "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL)",
		"INSERT INTO account SELECT i, 1000 FROM generate_series(1, 20) i", "CREATE PUBLICATION pub FOR TABLE account")
	s := serve(t, t.TempDir())
	c := s.connect()
	exec1(t, c, createConn, "CREATE SOURCE bank FROM POSTGRES CONNECTION up (PUBLICATION 'pub') FOR TABLES (account)",
		"CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS s FROM account",
		"CREATE MATERIALIZED VIEW detail AS SELECT id, balance FROM account")
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx := context.Background()
		for range 500 {
			tx, err := up.Begin(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			amount, a, b := rand.IntN(100), rand.IntN(20)+1, rand.IntN(20)+1
			_, err1 := tx.Exec(ctx, "UPDATE account SET balance = balance - $1 WHERE id = $2", amount, a)
			_, err2 := tx.Exec(ctx, "UPDATE account SET balance = balance + $1 WHERE id = $2", amount, b)
			if err := tx.Commit(ctx); err != nil || err1 != nil || err2 != nil {
				t.Error(err, err1, err2)
				return
			}
		}
	}()
	for reads := 0; ; reads++ {
		select {
		case <-done:
			if reads == 0 {
				t.Fatal("no reads")
			}
			want := text(t, up, "SELECT id, balance FROM account ORDER BY id")
			eventually(t, c, "SELECT id, balance FROM detail ORDER BY id", want)
			return
		default:
		}
		if got := text(t, c, "SELECT (SELECT s FROM total), (SELECT sum(balance) FROM detail)"); got != "20000,20000" {
			t.Fatalf("read %d: total and sum of the details are %s", reads, got)
		}
	}
}
