package coord_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestLaggingCluster lets a cluster fall behind again and again, by rows that are
// dear to process among many small commits: ingestion merges what the cluster has
// not got to, and the views must still be what their queries say.
func TestLaggingCluster(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	explode := "SELECT t.x %% 7 AS k, count(*) AS n, sum(g) AS s FROM %s t, LATERAL generate_series(1, t.x) g GROUP BY 1"
	views := map[string]string{
		"heavy":  fmt.Sprintf(explode, "t"),
		"joined": "SELECT a.id, b.x FROM t a JOIN t b ON a.id = b.id WHERE a.x > 100",
		"top":    "SELECT x, id FROM t ORDER BY x DESC, id LIMIT 5",
	}
	d.exec(c, "CREATE TABLE t (id int PRIMARY KEY, x int)")
	for name, q := range views {
		d.exec(c, "CREATE MATERIALIZED VIEW "+name+" AS "+q)
	}
	d.exec(c, "CREATE CLUSTER far")
	d.exec(c, "CREATE MATERIALIZED VIEW far_away IN CLUSTER far AS SELECT h.k, h.n, j.id FROM heavy h JOIN joined j ON j.x % 7 = h.k")
	var wg sync.WaitGroup
	const writers, rows = 3, 500
	for w := range writers {
		wc := d.connect()
		wg.Go(func() {
			defer wc.Close(context.Background())
			for i := range rows {
				x := 10
				if i%50 == 0 {
					x = 300000
				}
				sql := fmt.Sprintf("INSERT INTO t VALUES (%d, %d)", w*rows+i, x)
				if i%5 == 4 {
					sql = fmt.Sprintf("UPDATE t SET x = x + 1 WHERE id = %d", w*rows+i-2)
				}
				if _, err := wc.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Errorf("%s: %v", sql, err)
				}
			}
		})
	}
	sub := d.connect()
	wg.Go(func() { // a subscriber that reads along adds up to the view
		defer sub.Close(context.Background())
		d.exec(sub, "BEGIN")
		d.exec(sub, "DECLARE s CURSOR FOR SUBSCRIBE joined")
		n := 0
		for n < writers*rows/50 {
			got, err := sub.Query(context.Background(), "FETCH 100 s WITH (timeout = '1s')", pgx.QueryExecModeSimpleProtocol)
			if err != nil {
				t.Errorf("fetch: %v", err)
				return
			}
			for got.Next() {
				n++
			}
			if got.Err() != nil {
				t.Errorf("subscription: %v", got.Err())
				return
			}
		}
	})
	wg.Wait()
	views["far_away"] = "SELECT h.k, h.n, j.id FROM heavy h JOIN joined j ON j.x % 7 = h.k"
	for name, q := range views {
		sql := fmt.Sprintf("SELECT (SELECT count(*) FROM (SELECT * FROM %s EXCEPT ALL (%s)) x), (SELECT count(*) FROM ((%s) EXCEPT ALL SELECT * FROM %s) x)", name, q, q, name)
		if got := d.text(c, sql); got != "0,0" {
			t.Errorf("%s: %s rows too many, too few", name, got)
		}
	}
}
