package coord_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestSharedArrangements maintains joins that look into the arrangements of
// tables and of another view, while rows change on both sides and checkpoints
// are taken, across restarts: every view equals its query computed anew.
func TestSharedArrangements(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	views := []struct {
		name, query string
		shared      int
	}{
		{"j_inner", "SELECT f.id, f.k, d.name FROM fact f JOIN dim d ON d.k = f.k", 1},
		{"j_left", "SELECT f.id, d.name FROM fact f LEFT JOIN dim d ON d.k = f.k", 1},
		{"j_anti", "SELECT d.k FROM dim d WHERE NOT EXISTS (SELECT 1 FROM fact f WHERE f.id = d.k)", 2},
		{"j_self", "SELECT a.id, b.k FROM fact a JOIN fact b ON a.id = b.k", 1},
		{"j_view", "SELECT f.id, s.n FROM fact f JOIN sums s ON s.k = f.k WHERE f.v > 3", 1},
		{"j_filter", "SELECT f.id, d.name FROM fact f JOIN dim d ON d.k = f.k AND d.name < 'dim 5'", 0},
	}
	for _, sql := range []string{
		"CREATE TABLE dim (k int PRIMARY KEY, name text)", "CREATE TABLE fact (id int PRIMARY KEY, k int, v int)",
		"INSERT INTO dim SELECT i, 'dim ' || i FROM generate_series(1, 8) i",
		"INSERT INTO fact SELECT i, i % 12, i FROM generate_series(1, 30) i",
		"CREATE MATERIALIZED VIEW sums AS SELECT k, count(*) AS n, sum(v) AS s FROM fact GROUP BY k",
		"CREATE CLUSTER far", "CREATE MATERIALIZED VIEW j_far IN CLUSTER far AS SELECT f.id, s.n, d.name FROM fact f JOIN sums s ON s.k = f.k JOIN dim d ON d.k = f.k",
	} {
		d.exec(c, sql)
	}
	for _, v := range views {
		d.exec(c, "CREATE MATERIALIZED VIEW "+v.name+" AS "+v.query)
	}
	all := append(views, struct {
		name, query string
		shared      int
	}{"j_far", "SELECT f.id, s.n, d.name FROM fact f JOIN sums s ON s.k = f.k JOIN dim d ON d.k = f.k", 1})
	change := func(r *rand.Rand) string {
		switch r.IntN(7) {
		case 0:
			return fmt.Sprintf("DELETE FROM dim WHERE k = %d", r.IntN(12))
		case 1:
			return fmt.Sprintf("UPDATE dim SET name = 'dim %d' WHERE k = %d", r.IntN(10), r.IntN(12))
		case 2:
			k := r.IntN(12)
			return fmt.Sprintf("INSERT INTO dim SELECT %d, 'dim %d' WHERE NOT EXISTS (SELECT 1 FROM dim WHERE k = %d)", k, r.IntN(10), k)
		case 3:
			return fmt.Sprintf("DELETE FROM fact WHERE id = %d", r.IntN(40))
		case 4:
			return fmt.Sprintf("UPDATE fact SET k = %d, v = v + 1 WHERE id = %d", r.IntN(12), r.IntN(40))
		default:
			id := r.IntN(40)
			return fmt.Sprintf("INSERT INTO fact SELECT %d, %d, %d WHERE NOT EXISTS (SELECT 1 FROM fact WHERE id = %d)", id, r.IntN(12), r.IntN(10), id)
		}
	}
	check := func(c *pgx.Conn) {
		t.Helper()
		for _, v := range all {
			sql := fmt.Sprintf("SELECT (SELECT count(*) FROM (SELECT * FROM %s EXCEPT ALL %s) x), (SELECT count(*) FROM (%s EXCEPT ALL SELECT * FROM %s) x)", v.name, v.query, v.query, v.name)
			if got := d.text(c, sql); got != "0,0" {
				t.Errorf("%s: %s rows too many, too few", v.name, got)
			}
		}
	}
	for round := range 3 {
		check(c) // which waits until they are there
		for _, v := range all {
			if n := d.c.SharedBy(v.name); n != v.shared {
				t.Errorf("round %d: %s shares %d arrangements, want %d", round, v.name, n, v.shared)
			}
		}
		var wg sync.WaitGroup
		for w := range 2 {
			r := rand.New(rand.NewPCG(seed, uint64(round*2+w)))
			wc := d.connect()
			wg.Go(func() {
				defer wc.Close(context.Background())
				for range 60 {
					d.exec(wc, "BEGIN")
					for range 1 + r.IntN(3) {
						if _, err := wc.Exec(context.Background(), change(r), pgx.QueryExecModeSimpleProtocol); err != nil {
							break // a lost race for a key
						}
					}
					d.exec(wc, "COMMIT")
				}
			})
		}
		for range 10 {
			check(c)
		}
		wg.Wait()
		check(c)
		c.Close(context.Background())
		d.close()
		d = open(t, dir)
		c = d.connect()
	}
	check(c)
	c.Close(context.Background())
	d.close()
}
