package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestSinksKilled kills the server at random instants while clients insert, update
// and delete what sinks deliver into tables. Each transaction is delivered as a whole
// and once: a table without a key would show the second time.
func TestSinksKilled(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	s := serve(t, t.TempDir(), "--checkpoint-interval", "200ms")
	c := s.connect()
	exec1(t, c, "CREATE TABLE pos (n bigint PRIMARY KEY, v bigint)", "CREATE TABLE neg (n bigint, v bigint)",
		"CREATE TABLE account (id int PRIMARY KEY, balance bigint)", "INSERT INTO account SELECT i, 100 FROM generate_series(1, 40) i",
		"CREATE TABLE keyed (n bigint PRIMARY KEY, v bigint)", "CREATE TABLE plain (v bigint)",
		"CREATE TABLE copy (id int, balance bigint)", "CREATE TABLE total (k int PRIMARY KEY, s numeric, n bigint)",
		"CREATE SINK to_keyed INTO keyed FROM pos",
		"CREATE MATERIALIZED VIEW both_signs AS SELECT v FROM pos UNION ALL SELECT v FROM neg", "CREATE SINK to_plain INTO plain FROM both_signs",
		"CREATE SINK to_copy INTO copy FROM account", "CREATE SINK to_total INTO total AS SELECT 1, sum(balance), count(*) FROM copy")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var w writer
	wg.Go(func() { w.run(ctx, s.dsn()) })
	wg.Go(func() {
		r := rand.New(rand.NewPCG(seed, 2))
		for ctx.Err() == nil {
			c, err := pgx.Connect(ctx, s.dsn())
			for err == nil && ctx.Err() == nil {
				x := r.IntN(30)
				_, err = c.Exec(ctx, fmt.Sprintf("BEGIN; UPDATE account SET balance = balance - %d WHERE id = %d; UPDATE account SET balance = balance + %d WHERE id = %d; COMMIT",
					x, r.IntN(40)+1, x, r.IntN(40)+1), pgx.QueryExecModeSimpleProtocol)
			}
			if c != nil {
				c.Close(context.Background())
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	for i := range crashes(t) {
		time.Sleep(time.Duration(50+rnd.IntN(700)) * time.Millisecond)
		s.kill()
		s.start("--checkpoint-interval", "200ms")
		c := s.connect()
		for _, q := range []struct{ sql, want string }{
			{"SELECT coalesce(sum(v), 0) FROM plain", "0"},
			{"SELECT sum(balance), count(*) FROM copy", "4000,40"},
			{"SELECT s, n FROM total", "4000,40"},
			{"SELECT count(*) FROM (SELECT * FROM keyed EXCEPT SELECT * FROM pos) x", "0"},
			{"SELECT count(*) - count(DISTINCT v) FROM plain", "0"},
		} {
			if got, err := textErr(c, q.sql); err != nil || i > 0 && got != q.want {
				t.Errorf("after crash %d, %s: %q (%v), want %q", i, q.sql, got, err, q.want)
			}
		}
		exec1(t, c, "FLUSH")
		c.Close(context.Background())
		if t.Failed() {
			break
		}
	}
	cancel()
	wg.Wait()
	c = s.connect()
	exec1(t, c, "FLUSH")
	for name, query := range map[string]string{"keyed": "SELECT * FROM pos", "plain": "SELECT v FROM both_signs", "copy": "SELECT * FROM account"} {
		if got := text(t, c, diffQuery(name, query)); got != "0" {
			t.Errorf("%s rows of %s differ", got, name)
		}
	}
	if got := text(t, c, "SELECT count(*) FROM streamdb_internal.sinks WHERE state <> 'running' OR pending <> 0"); got != "0" {
		t.Errorf("%s sinks have not delivered", got)
	}
	t.Logf("%d transactions acknowledged", w.acked.Load())
	s.stop()
}

// TestOwnFiles runs the sqllogictest files of what PostgreSQL does not have.
func TestOwnFiles(t *testing.T) {
	if out, errs, status := command(t, "slt", "-init-sql", "SET rw_implicit_flush TO true", "../sqllogictest/testdata/streamdb"); status != 0 {
		t.Errorf("status %d\n%s\n%s", status, out, errs)
	}
}
