package render_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/streamdb/streamdb/dataflow/render"
)

// TestSortSpills sorts with so little memory that runs go to files, and compares
// with a sort in memory: orders, NULLs, limits and offsets.
func TestSortSpills(t *testing.T) {
	d, _ := genDB(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	files, plain := 0, d.memory
	memory := &render.Memory{Sort: 1 << 10, Temp: func() (*os.File, error) {
		files++
		return os.CreateTemp(t.TempDir(), "run")
	}}
	for _, order := range []string{"1, 2, 3", "3 DESC, 2, 1", "2 NULLS FIRST, 3 DESC NULLS LAST, 1", "1 DESC NULLS FIRST, 3, 2"} {
		for _, limit := range []string{"", fmt.Sprintf(" LIMIT %d OFFSET %d", r.IntN(200), r.IntN(300)), " LIMIT 0"} {
			sql := "SELECT x.a, y.b, 'row ' || coalesce(x.b, 0) AS s FROM r x, r y, q z, p ORDER BY " + order + limit
			want, err := d.query(sql)
			if err != nil {
				t.Fatal(err)
			}
			before := files
			d.memory = memory
			got, err := d.query(sql)
			d.memory = plain
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %d rows, want %d", sql, len(got), len(want))
			}
			if files == before && limit == "" {
				t.Errorf("%s wrote no run", sql)
			}
		}
	}
}
