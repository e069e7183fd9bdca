package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// oracleTime is how long the randomized tests go on: STREAMDB_TEST_ORACLE, a
// duration, or some seconds.
func oracleTime(t *testing.T) time.Duration {
	if v := os.Getenv("STREAMDB_TEST_ORACLE"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	return 8 * time.Second
}

// testSeed is STREAMDB_TEST_SEED, 1 without it, a new one if that is 0; it is
// printed.
func testSeed(t *testing.T) uint64 {
	seed := uint64(1)
	if v := os.Getenv("STREAMDB_TEST_SEED"); v != "" {
		var err error
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("STREAMDB_TEST_SEED=%d", seed)
	return seed
}

// The tables of the oracle: one with a key, one with a key of two columns, and
// one without, which may hold a row twice.
var oracleTables = []string{
	"CREATE TABLE t1 (c0 int PRIMARY KEY, c1 int, c2 text, c3 numeric(8,2))",
	"CREATE TABLE t2 (c0 int, c1 int, c2 date, PRIMARY KEY (c0, c1))",
	"CREATE TABLE t3 (c0 int, c1 text, c2 date)",
}

var oracleRels = []genRel{{"t1", []genType{genInt, genInt, genText, genNumeric}}, {"t2", []genType{genInt, genInt, genDate}}, {"t3", []genType{genInt, genText, genDate}}}

// change writes a statement that changes a table; its effect is determined.
func (g *queryGen) change() string {
	i := func(n int) string {
		if g.n(8) == 0 {
			return "NULL"
		}
		return fmt.Sprint(g.n(n))
	}
	s := func() string { return g.pick("'a'", "'b'", "'a1'", "'bb'", "NULL", "'ab'", "''") }
	d := func() string { return g.pick("NULL", fmt.Sprintf("date '2024-01-%02d'", 1+g.n(9))) }
	lo := g.n(40)
	switch g.n(10) {
	case 0, 1:
		return fmt.Sprintf("INSERT INTO t1 SELECT i, %s, %s, i / 4.0 FROM generate_series(%d, %d) i WHERE i NOT IN (SELECT c0 FROM t1)", g.pick("i % 5", "i % 3", "NULL", "7"), s(), lo, lo+g.n(6))
	case 2:
		return fmt.Sprintf("INSERT INTO t2 SELECT i, %d, %s FROM generate_series(%d, %d) i WHERE NOT EXISTS (SELECT 1 FROM t2 WHERE c0 = i AND c1 = %[1]d)", g.n(4), d(), lo%10, lo%10+g.n(5))
	case 3, 4:
		return fmt.Sprintf("INSERT INTO t3 VALUES (%s, %s, %s), (%s, %s, %s)", i(6), s(), d(), i(6), s(), d())
	case 5:
		return fmt.Sprintf("UPDATE t1 SET c1 = %s, c3 = c3 + %d.5 WHERE c0 BETWEEN %d AND %d", i(6), g.n(3), lo, lo+4)
	case 6:
		return fmt.Sprintf("UPDATE t3 SET c1 = %s, c2 = c2 + 1 WHERE c0 = %s OR c1 = %s", s(), i(6), s())
	case 7:
		return fmt.Sprintf("DELETE FROM t1 WHERE c0 %% %d = %d", 3+g.n(6), g.n(3))
	case 8:
		return fmt.Sprintf("DELETE FROM t2 WHERE c1 = %d", g.n(4))
	}
	if g.n(6) == 0 {
		return "DELETE FROM t3"
	}
	return fmt.Sprintf("DELETE FROM t3 WHERE c0 = %s", i(6))
}

// sorted gives the rows of a query as sorted lines.
func sorted(c *pgx.Conn, q string) (string, error) {
	got, err := textErr(c, q)
	lines := strings.Split(got, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n"), err
}

// TestRandomViews keeps random views over random tables under random batches of
// changes. After each batch every view must be what its query computed anew is,
// at the same epoch, and what PostgreSQL answers to the query.
func TestRandomViews(t *testing.T) {
	dsn := emptyPostgres(t)
	if dsn == "" {
		need(t, "STREAMDB_TEST_PG_DSN")
	}
	ctx := context.Background()
	pg, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Close(ctx)
	exec1(t, pg, "SET statement_timeout = '1s'")
	c := serve(t, t.TempDir()).connect()
	seed := testSeed(t)
	end := time.Now().Add(oracleTime(t))
	views, compared := 0, 0
	for round := uint64(0); time.Now().Before(end) && !t.Failed(); round++ {
		exec1(t, pg, "DROP SCHEMA IF EXISTS public CASCADE", "CREATE SCHEMA public")
		g := &queryGen{rnd: rand.New(rand.NewPCG(seed, round)), base: slices.Clone(oracleRels)}
		for _, q := range oracleTables {
			exec1(t, pg, q)
			exec1(t, c, "DROP TABLE IF EXISTS "+strings.Fields(q)[2]+" CASCADE", q)
		}
		var queries []string
		for v := range 6 {
			q, ts := g.query(3)
			name := fmt.Sprintf("v%d", v)
			_, pgErr := pg.Exec(ctx, "CREATE VIEW "+name+" AS "+q)
			_, err := c.Exec(ctx, "CREATE MATERIALIZED VIEW "+name+" AS "+q)
			if pgErr != nil {
				t.Logf("PostgreSQL: %v\n%s", pgErr, q) // the generator's mistake
			}
			if (pgErr == nil) != (err == nil) {
				t.Errorf("round %d: PostgreSQL says %v, streamdb %v:\n%s", round, pgErr, err, q)
			}
			if pgErr != nil || err != nil {
				break
			}
			queries = append(queries, q)
			views++
			g.base = append(g.base, genRel{name, ts})
		}
		var history []string
		for range 8 {
			if time.Now().After(end) {
				break
			}
			batch := g.change()
			for range g.n(4) {
				batch += "; " + g.change()
			}
			history = append(history, batch)
			_, pgErr := pg.Exec(ctx, batch, pgx.QueryExecModeSimpleProtocol)
			_, err := c.Exec(ctx, batch, pgx.QueryExecModeSimpleProtocol)
			if pgErr != nil || err != nil {
				t.Fatalf("round %d: PostgreSQL says %v, streamdb %v:\n%s", round, pgErr, err, batch)
			}
			for v, q := range queries {
				name := fmt.Sprintf("v%d", v)
				begun := time.Now()
				want, pgErr := sorted(pg, "SELECT * FROM "+name)
				theirs := time.Since(begun)
				got, err := sorted(c, "SELECT * FROM "+name)
				if pgErr != nil && (strings.Contains(pgErr.Error(), "57014") || strings.Contains(pgErr.Error(), "0A000")) {
					continue // too much for it, or not what it can do
				}
				if (pgErr == nil) != (err == nil) || got != want {
					t.Fatalf("round %d, %s is\n%s\n(%v), PostgreSQL says\n%s\n(%v)\n%s\nafter\n%s\nviews\n%s", round, name, got, err, want, pgErr, q, strings.Join(history, ";\n"), strings.Join(queries, ";\n"))
				}
				if err != nil {
					continue
				}
				if n, err := textErr(c, diffQuery(name, q)); err != nil || n != "0" {
					t.Fatalf("round %d, %s differs from its query computed anew in %s rows (%v):\n%s\nafter\n%s\nviews\n%s", round, name, n, err, q, strings.Join(history, ";\n"), strings.Join(queries, ";\n"))
				}
				compared++
				if took := time.Since(begun); took > 2*time.Second && took > 10*theirs {
					t.Logf("round %d, %s took %v (PostgreSQL: %v):\n%s", round, name, took, theirs, strings.Join(queries[:v+1], ";\n"))
				}
			}
		}
	}
	t.Logf("%d views, %d comparisons", views, compared)
	if views == 0 || compared == 0 {
		t.Error("nothing was compared")
	}
}

// TestConsistentReads reads views while writers run: a view and its query
// computed anew never differ within one statement, and what transactions keep
// holds in every read.
func TestConsistentReads(t *testing.T) {
	s := serve(t, t.TempDir(), "--checkpoint-interval", "200ms")
	seed := testSeed(t)
	c := s.connect()
	exec1(t, c, "CREATE TABLE account (id int PRIMARY KEY, branch int, balance bigint NOT NULL)", "INSERT INTO account SELECT i, i % 7, 1000 FROM generate_series(1, 100) i",
		"CREATE TABLE entry (id bigint, account int, amount bigint)", "CREATE CLUSTER other")
	views := map[string]string{
		"per_branch": "SELECT branch, sum(balance) AS s, count(*) AS n, max(balance) AS m FROM account GROUP BY branch",
		"per_entry":  "SELECT account, sum(amount) AS s, count(*) AS n FROM entry GROUP BY account",
		"joined":     "SELECT a.id, a.branch, a.balance, e.s FROM account a LEFT JOIN (SELECT account, sum(amount) AS s FROM entry GROUP BY account) e ON e.account = a.id",
		"richest":    "SELECT id, balance FROM account ORDER BY balance DESC, id LIMIT 5",
		"ranked":     "SELECT branch, id, balance, row_number() OVER (PARTITION BY branch ORDER BY balance DESC, id) AS rn FROM account",
		"on_views":   "SELECT b.branch, b.s, j.n FROM per_branch b FULL JOIN (SELECT branch, count(*) AS n FROM joined WHERE s IS NOT NULL GROUP BY branch) j ON j.branch = b.branch",
		"dear":       "SELECT branch, count(*) AS n FROM account, LATERAL generate_series(1, balance * 8) GROUP BY branch", // its cluster lags
		"without":    "SELECT id FROM account a WHERE NOT EXISTS (SELECT 1 FROM entry e WHERE e.account = a.id)",
	}
	names := []string{"per_branch", "per_entry", "joined", "richest", "ranked", "on_views", "dear", "without"}
	for i, name := range names {
		cluster := ""
		if i%2 == 1 {
			cluster = " IN CLUSTER other"
		}
		exec1(t, c, "CREATE MATERIALIZED VIEW "+name+cluster+" AS "+views[name])
	}
	ctx, cancel := context.WithTimeout(context.Background(), oracleTime(t))
	defer cancel()
	var wg sync.WaitGroup
	var writes, reads atomic.Int64
	for w := range uint64(3) {
		c := s.connect()
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, w))
			for n := 0; ctx.Err() == nil; n++ {
				a, b, x := rnd.IntN(100)+1, rnd.IntN(100)+1, rnd.IntN(50)
				id := int(w)<<32 | n
				// A transfer, with an entry on both sides.
				sql := fmt.Sprintf("BEGIN; UPDATE account SET balance = balance - %[1]d WHERE id = %[2]d; UPDATE account SET balance = balance + %[1]d WHERE id = %[3]d; INSERT INTO entry VALUES (%[4]d, %[2]d, -%[1]d), (%[4]d, %[3]d, %[1]d); COMMIT", x, a, b, id)
				switch rnd.IntN(8) {
				case 0:
					sql = fmt.Sprintf("UPDATE account SET branch = %d WHERE id = %d", rnd.IntN(7), a)
				case 1: // entries of an id go together
					sql = fmt.Sprintf("DELETE FROM entry WHERE id = %d", int(w)<<32|rnd.IntN(n+1))
				case 2:
					sql = strings.Replace(sql, "COMMIT", "ROLLBACK", 1)
				}
				if _, err := c.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Errorf("%s: %v", sql, err)
					return
				}
				writes.Add(1)
			}
		})
	}
	for r := range 2 {
		c := s.connect()
		wg.Go(func() {
			for n := r; ctx.Err() == nil && !t.Failed(); n++ {
				name := names[n%len(names)]
				for sql, want := range map[string]string{
					diffQuery(name, views[name]): "0",
					"SELECT (SELECT sum(balance) FROM account), (SELECT sum(s) FROM per_branch), (SELECT coalesce(sum(amount), 0) FROM entry), (SELECT coalesce(sum(s), 0) FROM per_entry), (SELECT sum(n) FROM per_branch), (SELECT count(*) FROM joined), (SELECT sum(balance) FROM ranked), (SELECT count(*) FROM entry) - 2 * (SELECT count(DISTINCT id) FROM entry)": "100000,100000,0,0,100,100,100000,0",
				} {
					if got, err := textErr(c, sql); err != nil || got != want {
						t.Errorf("read %d: %s: got %s (%v), want %s", n, sql, got, err, want)
						return
					}
					reads.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d writes, %d reads", writes.Load(), reads.Load())
	if writes.Load() == 0 || reads.Load() == 0 {
		t.Error("nothing was tried")
	}
}
