package differential

import (
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow/differential/reference"
)

// TestOrderLayout checks that the layout sorts as asked, and that nothing is lost.
func TestOrderLayout(t *testing.T) {
	r := testRand(t)
	for range 300 {
		kinds := make([]columnar.Kind, 1+r.IntN(5))
		cols := make([]*columnar.Vec, len(kinds))
		n := r.IntN(40)
		for c := range kinds {
			kinds[c] = allKinds[r.IntN(len(allKinds))]
			b := columnar.NewBuilder(kinds[c], n)
			for range n {
				appendRandom(r, b, 6, r.IntN(2) == 0)
			}
			cols[c] = b.Build()
		}
		perm := r.Perm(len(kinds))
		k := r.IntN(len(kinds))
		var order []Order
		var want []reference.Order
		for range r.IntN(4) {
			o := Order{Col: r.IntN(len(kinds)), Desc: r.IntN(2) == 0, NullsFirst: r.IntN(2) == 0}
			o.NotNull = !cols[o.Col].HasNulls()
			order = append(order, o)
			want = append(want, reference.Order{Col: o.Col, Desc: o.Desc, NullsFirst: o.NullsFirst})
		}
		l := newOrderLayout(kinds, perm[:k], order)
		b := columnar.Batch{Cols: cols, N: n}
		laid := l.lay(&b)
		for c, v := range laid.Cols {
			if v.Kind() != l.laid[c] {
				t.Fatalf("column %d is %v, want %v", c, v.Kind(), l.laid[c])
			}
		}
		back := l.restore(laid.Cols)
		for i := range n {
			if !columnar.EqualRows(cols, i, back, i) {
				t.Fatalf("%s came back as %s", rowText(cols, i), rowText(back, i))
			}
			for j := range n {
				if !columnar.EqualRows(laid.Cols[:k], i, laid.Cols[:k], j) {
					continue
				}
				rows := laid.Cols[k:]
				got := columnar.CompareRows(rows, i, rows, j)
				x, y := rowAt(cols, i), rowAt(cols, j)
				if w := reference.CompareOrdered(want, x, y); sign(got) != sign(w) {
					t.Fatalf("order %+v, key %v: %v and %v compare %d, want %d", order, perm[:k], x, y, got, w)
				}
				peers := columnar.CompareRows(rows[:l.ordered], i, rows[:l.ordered], j) == 0
				if w := reference.Peers(want, x, y); peers != w {
					t.Fatalf("order %+v: %v and %v are peers: %v, want %v", order, x, y, peers, w)
				}
			}
		}
	}
}

func sign(x int) int {
	switch {
	case x < 0:
		return -1
	case x > 0:
		return 1
	}
	return 0
}

func rowAt(cols []*columnar.Vec, i int) reference.Row {
	r := make(reference.Row, len(cols))
	for c, v := range cols {
		r[c] = reference.ValueAt(v, i)
	}
	return r
}
