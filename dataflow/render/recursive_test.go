package render_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/render"
)

// recursions are over a graph g (a, b, w) with cycles.
var recursions = []string{
	"WITH RECURSIVE r AS (SELECT 0 AS n UNION SELECT g.b FROM r JOIN g ON g.a = r.n) SELECT * FROM r",
	"WITH RECURSIVE r AS (SELECT a, b FROM g UNION SELECT r.a, g.b FROM r, g WHERE r.b = g.a AND g.w <> 3) SELECT * FROM r",
	"WITH RECURSIVE r(n, s) AS (SELECT a, 'x' || a FROM g WHERE w = 1 UNION SELECT g.b, r.s FROM r JOIN g ON g.a = r.n JOIN g h ON h.a = g.b) SELECT * FROM r",
	"WITH MUTUALLY RECURSIVE r(a int, b int) AS (SELECT a, b FROM g UNION (SELECT r.a, g.b FROM r JOIN g ON r.b = g.a UNION ALL SELECT r.b, r.a FROM r WHERE r.a < 4)) SELECT count(*), sum(a) FROM r",
	"WITH MUTUALLY RECURSIVE e(a int, b int) AS (SELECT a, b FROM g UNION SELECT o.a, g.b FROM o JOIN g ON g.a = o.b), o(a int, b int) AS (SELECT e.a, g.b FROM e JOIN g ON g.a = e.b) SELECT DISTINCT a, b FROM o",
	"WITH MUTUALLY RECURSIVE e(a int, b int) AS (SELECT a, b FROM g UNION SELECT o.a, g.b FROM o JOIN g ON g.a = o.b), o(a int, b int) AS (SELECT e.a, g.b FROM e JOIN g ON g.a = e.b UNION SELECT a, a FROM e WHERE b = 2) SELECT * FROM o",
	"WITH MUTUALLY RECURSIVE r(a int, b int) AS (SELECT a, b FROM g UNION SELECT x.a, y.b FROM r x JOIN r y ON x.b = y.a) SELECT * FROM r",
}

// TestRecursiveChanges keeps recursions over random graphs up to date while edges
// come and go.
func TestRecursiveChanges(t *testing.T) {
	for _, s := range seeds() {
		rng := rand.New(rand.NewPCG(s, 6))
		for i := range *queries / 2 {
			sql := recursions[i%len(recursions)]
			d := newDB()
			d.exec(t, "CREATE TABLE g (a int, b int, w int)")
			var rows []string
			nodes := 3 + rng.IntN(12)
			for range 2 + rng.IntN(2*nodes) {
				rows = append(rows, fmt.Sprintf("(%d, %d, %d)", rng.IntN(nodes), rng.IntN(nodes), rng.IntN(4)))
			}
			d.exec(t, "INSERT INTO g VALUES "+strings.Join(rows, ", "))
			m, err := d.maintainWith(sql, render.Options{Context: session(), Partitions: 1 << rng.IntN(3)})
			if err != nil {
				t.Fatal(err)
			}
			for epoch := range 10 {
				if epoch > 0 {
					d.nudge(rng, m)
				}
				m.step(dataflow.Epoch(epoch + 1))
				want, err := d.query(sql)
				if got, code := m.result(); err != nil || code != "" || !slices.Equal(sorted(want), got) {
					t.Fatalf("-seed=%d, query %d, epoch %d: %s\nmaintained: %s %v\nonce: %v %v", s, i, epoch, sql, code, got, err, sorted(want))
				}
			}
		}
	}
}
