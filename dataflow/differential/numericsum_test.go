package differential

import (
	"bytes"
	"math/big"
	"testing"

	"github.com/streamdb/streamdb/decimal"
)

// TestNumericSum compares sums of mixed scales and sizes with decimal.Acc, also
// by way of their durable form, and takes everything back.
func TestNumericSum(t *testing.T) {
	r := testRand(t)
	for round := range 3000 {
		var p numericSums
		var w [numericWords]uint64
		var want decimal.Acc
		scales, size := 1+r.IntN(10), 1+r.IntN(90)
		wild := r.IntN(2) == 0 // more retractions than insertions
		number := func() []byte {
			if round%10 == 0 && r.IntN(8) == 0 {
				return decimal.AppendNaN(nil)
			}
			m := new(big.Int).SetUint64(r.Uint64())
			m.Lsh(m, uint(max(size-64, 0)))
			m.Rsh(m, uint(r.IntN(64)))
			if r.IntN(2) == 0 {
				m.Neg(m)
			}
			b, err := decimal.AppendBig(nil, m, r.IntN(scales)*(1+round%3))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		type entry struct {
			e []byte
			m int64
		}
		var added []entry
		check := func() {
			t.Helper()
			p.settle(&w)
			got, err1 := p.appendTo(nil, &w)
			exp, err2 := want.AppendTo(nil)
			if (err1 == nil) != (err2 == nil) || !bytes.Equal(got, exp) {
				t.Fatalf("sum %s, want %s", decimal.String(got), decimal.String(exp))
			}
		}
		for range r.IntN(30) {
			var e entry
			if len(added) > 0 && r.IntN(3) == 0 {
				i := r.IntN(len(added))
				e = entry{added[i].e, -added[i].m}
				added[i] = added[len(added)-1]
				added = added[:len(added)-1]
			} else {
				e = entry{number(), 1}
				if r.IntN(4) == 0 {
					e.m = int64(r.IntN(1000) + 1)
				}
				if wild && r.IntN(4) == 0 {
					e.m -= 500
				}
				added = append(added, e)
			}
			p.add(&w, e.e, e.m)
			want.Add(e.e, e.m)
			if r.IntN(2) == 0 {
				check()
			}
			if !wild && r.IntN(10) == 0 {
				p.settle(&w)
				state := p.appendState(nil, &w)
				p, w = numericSums{}, [numericWords]uint64{}
				p.loadState(&stateReader{state}, &w)
				check()
			}
		}
		check()
		for _, e := range added {
			p.add(&w, e.e, -e.m)
		}
		p.settle(&w)
		if w != [numericWords]uint64{} || len(p.free) != len(p.all) || len(p.spare) != len(p.counts) {
			t.Fatalf("residue %x; %d of %d sums, %d of %d counts free", w, len(p.free), len(p.all), len(p.spare), len(p.counts))
		}
	}
}
