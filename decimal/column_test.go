package decimal

import (
	"bytes"
	"math/rand"
	"testing"
)

func TestColumns(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	accepted := 0
	for range 3000 {
		var offs = []uint32{0}
		var data []byte
		var all [][]byte
		scale, mixed := r.Intn(4), r.Intn(8) == 0
		for range r.Intn(40) {
			var e []byte
			s := scale
			if mixed {
				s = r.Intn(3)
			}
			switch r.Intn(12) {
			case 0: // NULL
			case 1:
				e = AppendInt64Scaled(nil, 0, s)
			case 2:
				if mixed {
					e = AppendNaN(nil)
				} else {
					e = AppendInt64Scaled(nil, -1<<62, s)
				}
			case 3:
				if mixed {
					e, _ = Mul(nil, AppendInt64(nil, 1<<62), AppendInt64Scaled(nil, 1<<40, s))
				}
			default:
				e = AppendInt64Scaled(nil, r.Int63()>>r.Intn(63)*int64(1-2*r.Intn(2)), s)
			}
			all, data = append(all, e), append(data, e...)
			offs = append(offs, uint32(len(data)))
		}
		dst := make([]int64, len(all))
		got, ok := UnpackColumn(dst, offs, data)
		if !ok {
			if !mixed {
				t.Fatalf("column of scale %d refused: %v", scale, all)
			}
			continue
		}
		accepted++
		nulls := make([]uint64, len(all)/64+1)
		for i, e := range all {
			if len(e) == 0 {
				nulls[i>>6] |= 1 << (i & 63)
				if dst[i] != 0 {
					t.Fatalf("NULL is %d", dst[i])
				}
			} else if want := AppendInt64Scaled(nil, dst[i], got); !bytes.Equal(want, e) {
				t.Fatalf("%s read as %d at scale %d", String(e), dst[i], got)
			}
		}
		offs2 := make([]uint32, len(offs))
		data2 := PackColumn(make([]byte, PackedSize(len(dst))), offs2, dst, got, nulls)
		if !bytes.Equal(data2, data) {
			t.Fatalf("%x, want %x", data2, data)
		}
		for i := range offs {
			if offs[i] != offs2[i] {
				t.Fatalf("offset %d: %d, want %d", i, offs2[i], offs[i])
			}
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d columns accepted", accepted)
	}
}
