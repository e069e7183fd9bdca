package render_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/types"
)

// parallel is an executor of goroutines.
type parallel struct{}

func (parallel) Run(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// TestParallel compares queries over enough rows to be cut into parts, run in
// one goroutine and in several.
func TestParallel(t *testing.T) {
	n := 1 << 17
	if testing.Short() {
		n = 1 << 15
	}
	d := bigDB(t, n)
	for _, q := range bigQueries {
		bound, err := d.bind(q.sql)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := planner.Optimize(bound.Rel, planner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		typs := make([]types.Type, len(bound.Columns))
		for i, c := range bound.Columns {
			typs[i] = c.Type
		}
		run := func(opts render.Options) []string {
			var rows []string
			opts.Context = session()
			err := render.RunOnce(context.Background(), rel, d, opts, func(b *columnar.Batch) error {
				for i := range b.N {
					rows = append(rows, rowText(typs, b, i))
				}
				return nil
			})
			if err != nil {
				t.Fatalf("%s: %v", q.name, err)
			}
			slices.Sort(rows)
			return rows
		}
		if one, many := run(render.Options{}), run(render.Options{Exec: parallel{}, Partitions: 8}); !slices.Equal(one, many) {
			t.Errorf("%s: %d rows in one goroutine, %d in many, or other ones", q.name, len(one), len(many))
		}
	}
}
