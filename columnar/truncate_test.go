package columnar

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestTruncate takes rows back at random and compares with a plain list.
func TestTruncate(t *testing.T) {
	type val struct {
		null bool
		b    []byte
		i    int64
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, kind := range []Kind{KindInt64, KindBytes} {
		b := NewBuilder(kind, 0)
		var want []val
		for range 20_000 {
			switch r.IntN(8) {
			case 0:
				n := r.IntN(len(want) + 1)
				if r.IntN(2) == 0 {
					n = max(0, len(want)-r.IntN(3))
				}
				b.Truncate(n)
				want = want[:n]
			case 1:
				b.Null()
				want = append(want, val{null: true})
			default:
				v := val{b: bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(5)), i: r.Int64()}
				if kind == KindBytes {
					b.Bytes(v.b)
				} else {
					b.Int64(v.i)
				}
				want = append(want, v)
			}
			if r.IntN(50) != 0 {
				continue
			}
			var v Vec
			b.View(&v)
			if v.Len() != len(want) {
				t.Fatalf("%v: %d values, want %d", kind, v.Len(), len(want))
			}
			for i, w := range want {
				bad := v.Null(i) != w.null
				if kind == KindBytes {
					bad = bad || !bytes.Equal(v.Bytes(i), w.b)
				} else {
					bad = bad || v.Int64s()[i] != w.i
				}
				if bad {
					t.Fatalf("%v: value %d is wrong", kind, i)
				}
			}
		}
	}
}
