package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// follow subscribes to a relation; the returned function ends that and gives what
// the deltas add up to, once it is what the relation has, or after some time.
func follow(t *testing.T, s *instance, name string) func(c *pgx.Conn) (got, want string) {
	cfg, err := pgconn.ParseConfig(s.dsn())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	sub, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		cancel()
		t.Errorf("%s: %v", name, err)
		return nil
	}
	r, w := io.Pipe()
	var mu sync.Mutex
	f := &feed{rows: map[string]int64{}}
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := sub.CopyTo(ctx, w, "COPY (SUBSCRIBE "+name+" WITH (PROGRESS)) TO STDOUT")
		w.CloseWithError(err)
		mu.Lock()
		failed = err
		mu.Unlock()
	})
	wg.Go(func() {
		sc := bufio.NewScanner(r)
		for sc.Scan() {
			mu.Lock()
			f.add(t, sc.Text())
			mu.Unlock()
		}
	})
	return func(c *pgx.Conn) (got, want string) {
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			var err error
			if want, err = textErr(c, "SELECT * FROM "+name); err != nil {
				want = err.Error()
				break
			}
			w := strings.Split(want, "\n")
			if want == "" {
				w = nil
			}
			slices.Sort(w)
			var g []string
			mu.Lock()
			for row, n := range f.rows {
				for range n {
					g = append(g, strings.ReplaceAll(strings.ReplaceAll(row, "\t", ","), "\\N", "NULL"))
				}
			}
			err = failed
			mu.Unlock()
			slices.Sort(g)
			want, got = strings.Join(w, "\n"), strings.Join(g, "\n")
			if err != nil {
				got = err.Error()
			}
			if got == want {
				break
			}
		}
		cancel()
		wg.Wait()
		sub.Close(context.Background())
		return got, want
	}
}

// TestViewsComeAndGo makes and drops views, on clusters and on each other, while
// writers go on, rows that are dear to process let the clusters lag, and the
// server is restarted: a view equals its query as soon as it is there, and so
// does what its subscribers have been told.
func TestViewsComeAndGo(t *testing.T) {
	seed := testSeed(t)
	s := serve(t, t.TempDir(), "--checkpoint-interval", "150ms")
	c := s.connect()
	exec1(t, c, "CREATE TABLE item (id int PRIMARY KEY, g int, w int)", "CREATE TABLE part (item int, n int)", "CREATE CLUSTER other",
		"INSERT INTO item SELECT i, i % 5, 3 FROM generate_series(1, 40) i", "INSERT INTO part SELECT i % 40, i FROM generate_series(1, 200) i",
		"CREATE MATERIALIZED VIEW base AS SELECT item, count(*) AS c, sum(n) AS s FROM part GROUP BY item",
		"CREATE MATERIALIZED VIEW dear AS SELECT g, count(*) AS n FROM item, LATERAL generate_series(1, w) GROUP BY g",
		"CREATE MATERIALIZED VIEW over IN CLUSTER other AS SELECT c, count(*) AS n FROM base GROUP BY c", // and back in the first cluster
		"CREATE MATERIALIZED VIEW back AS SELECT o.c, o.n, b.item FROM over o JOIN base b ON b.c = o.c")
	queries := []string{
		"SELECT i.id, i.g, b.c, b.s FROM item i LEFT JOIN base b ON b.item = i.id",
		"SELECT g, sum(w) AS s, max(id) AS m FROM item GROUP BY g",
		"SELECT d.g, d.n, i.id FROM dear d JOIN item i ON i.g = d.g AND i.id % 3 = 0",
		"SELECT a.id, b.g FROM item a JOIN item b ON a.id = b.id",
		"SELECT item, s FROM base ORDER BY s DESC, item LIMIT 7",
		"SELECT p.item, p.n, i.g FROM part p JOIN item i ON i.id = p.item WHERE i.g < 3",
		"SELECT id FROM item WHERE NOT EXISTS (SELECT 1 FROM base b WHERE b.item = item.id AND b.c > 4)",
		"SELECT g, id, rank() OVER (PARTITION BY g ORDER BY w, id) AS r FROM item",
		"SELECT k.item, k.n, i.g FROM back k JOIN item i ON i.id = k.item",
		"SELECT DISTINCT g FROM item UNION ALL SELECT c FROM base",
	}
	type view struct {
		name, query string
		end         func(*pgx.Conn) (got, want string)
	}
	made := 0
	end := time.Now().Add(oracleTime(t))
	for round := uint64(0); time.Now().Before(end) && !t.Failed(); round++ {
		ctx, cancel := context.WithTimeout(context.Background(), min(4*time.Second, time.Until(end)))
		var wg sync.WaitGroup
		var mu sync.Mutex
		var kept []view
		for w := range uint64(2) {
			wc := s.connect()
			wg.Go(func() {
				defer wc.Close(context.Background())
				rnd := rand.New(rand.NewPCG(seed, round<<8|w))
				for ctx.Err() == nil {
					id, weight := 1+rnd.IntN(60), rnd.IntN(6)
					if rnd.IntN(40) == 0 {
						weight = 100_000
					}
					sql := fmt.Sprintf("UPDATE item SET w = %d, g = %d WHERE id = %d", weight, rnd.IntN(5), id)
					switch rnd.IntN(6) {
					case 0:
						sql = fmt.Sprintf("DELETE FROM item WHERE id = %d", id)
					case 1:
						sql = fmt.Sprintf("INSERT INTO item VALUES (%d, %d, %d) ON CONFLICT DO NOTHING", id, id%5, weight)
					case 2:
						sql = fmt.Sprintf("INSERT INTO part SELECT %d, i FROM generate_series(1, 3) i", id)
					case 3:
						sql = fmt.Sprintf("DELETE FROM part WHERE item = %d", id)
					}
					if _, err := wc.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
						t.Errorf("%s: %v", sql, err)
						return
					}
				}
			})
		}
		for m := range uint64(2) {
			mc := s.connect()
			wg.Go(func() {
				defer mc.Close(context.Background())
				rnd := rand.New(rand.NewPCG(seed, round<<8|16|m))
				for n := 0; ctx.Err() == nil && !t.Failed(); n++ {
					q, name := queries[rnd.IntN(len(queries))], fmt.Sprintf("v%d_%d_%d", round, m, n)
					in := []string{"", " IN CLUSTER other"}[rnd.IntN(2)]
					exec1(t, mc, "CREATE MATERIALIZED VIEW "+name+in+" AS "+q)
					keep := rnd.IntN(4) == 0
					if keep {
						end := follow(t, s, name)
						mu.Lock()
						kept = append(kept, view{name, q, end})
						mu.Unlock()
					}
					for range 1 + rnd.IntN(4) {
						if got, err := textErr(mc, diffQuery(name, q)); err != nil || got != "0" {
							t.Errorf("%s differs in %s rows (%v): %s", name, got, err, q)
						}
					}
					if !keep {
						exec1(t, mc, "DROP MATERIALIZED VIEW "+name)
					}
				}
			})
		}
		wg.Wait()
		cancel()
		for _, v := range kept {
			if got, want := v.end(c); got != want {
				t.Errorf("the subscriber of %s has\n%s\nof\n%s\n%s", v.name, got, want, v.query)
			}
		}
		c.Close(context.Background())
		if round%2 == 0 {
			s.kill()
		} else {
			s.stop()
		}
		s.start("--checkpoint-interval", "150ms")
		c = s.connect()
		for _, v := range kept {
			if got, err := textErr(c, diffQuery(v.name, v.query)); err != nil || got != "0" {
				t.Errorf("after a restart %s differs in %s rows (%v): %s", v.name, got, err, v.query)
			}
			exec1(t, c, "DROP MATERIALIZED VIEW "+v.name)
			made++
		}
	}
	t.Logf("%d views kept and followed", made)
	if made == 0 {
		t.Error("nothing was tried")
	}
}
