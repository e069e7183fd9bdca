package differential

import (
	"bytes"
	"fmt"
	"testing"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
)

// TestHashIndex drives the index through growth, splits and gap closing, also
// with hashes that share their high or low bits, against a map.
func TestHashIndex(t *testing.T) {
	r := testRand(t)
	for _, mask := range []uint32{1<<32 - 1, 0xffff, 0xffff0000, 0x3ff00} {
		x := newHashIndex()
		rows := map[uint32]uint32{}
		var live []uint32
		for row := range uint32(30_000) {
			h := r.Uint32() & mask
			x.insert(h, row)
			rows[row] = h
			live = append(live, row)
			if r.IntN(3) == 0 {
				i := r.IntN(len(live))
				x.remove(rows[live[i]], live[i])
				delete(rows, live[i])
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			}
		}
		check := func() {
			t.Helper()
			seen := map[*segmentMeta]bool{}
			n := 0
			for i, s := range x.dir {
				if seen[s.meta] {
					continue
				}
				seen[s.meta] = true
				s.each(func(h, row uint32) {
					n++
					if rows[row] != h {
						t.Fatalf("row %d has hash %x, want %x", row, h, rows[row])
					}
					if d := &x.dir[h>>x.shift]; d.meta != s.meta {
						t.Fatalf("row %d is in segment %d, its hash leads elsewhere", row, i)
					}
				})
			}
			if n != len(rows) || x.n != len(rows) {
				t.Fatalf("%d entries, count %d, want %d", n, x.n, len(rows))
			}
		}
		check()
		for _, row := range live {
			s := &x.dir[rows[row]>>x.shift]
			for i := rows[row] & s.mask; uint32(*s.slot(i))-1 != row; i = (i + 1) & s.mask {
				if *s.slot(i) == 0 {
					t.Fatalf("row %d cannot be reached", row)
				}
			}
		}
		for _, row := range live {
			x.remove(rows[row], row)
			delete(rows, row)
		}
		check()
	}
}

func TestArena(t *testing.T) {
	r := testRand(t)
	var a arena
	type block struct {
		ref uint64
		b   []byte
	}
	var live []block
	for i := range 40_000 {
		if len(live) > 0 && r.IntN(5) < 2 {
			j := r.IntN(len(live))
			l := live[j]
			if !bytes.Equal(a.bytes(l.ref, len(l.b)), l.b) {
				t.Fatalf("block %x of %d bytes was overwritten", l.ref, len(l.b))
			}
			a.release(l.ref, len(l.b))
			live[j] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		n := 1 + r.IntN(200)
		if i%500 == 0 {
			n = 1 + r.IntN(2<<20)/(1+r.IntN(50))
		}
		b := bytes.Repeat([]byte{byte(r.Uint32())}, n)
		ref := a.alloc(n)
		if ref == 0 || ref >= 1<<34 {
			t.Fatalf("ref %x", ref)
		}
		copy(a.bytes(ref, n), b)
		live = append(live, block{ref, b})
	}
	for _, l := range live {
		if !bytes.Equal(a.bytes(l.ref, len(l.b)), l.b) {
			t.Fatalf("block %x of %d bytes was overwritten", l.ref, len(l.b))
		}
		a.release(l.ref, len(l.b))
	}
	if a.used != 0 {
		t.Fatalf("%d bytes in use", a.used)
	}
	for n := 1; n <= arenaChunk; n++ {
		if c, u := arenaClass(n); u < n || arenaUnits(c) != u || c >= arenaClasses {
			t.Fatalf("class of %d units: %d of %d", n, c, u)
		}
	}
}

var allKinds = []columnar.Kind{
	columnar.KindBool, columnar.KindInt16, columnar.KindInt32, columnar.KindInt64,
	columnar.KindFloat32, columnar.KindFloat64, columnar.KindFixed16, columnar.KindBytes,
}

// TestRowCodec checks that rows of words compare as their columns do, and come
// back unchanged.
func TestRowCodec(t *testing.T) {
	r := testRand(t)
	for range 200 {
		kinds := make([]columnar.Kind, 1+r.IntN(5))
		for i := range kinds {
			kinds[i] = allKinds[r.IntN(len(allKinds))]
		}
		n := 1 + r.IntN(60)
		cols := make([]*columnar.Vec, len(kinds))
		for c, k := range kinds {
			b := columnar.NewBuilder(k, n)
			for range n {
				appendRandom(r, b, 6, c%2 == 0)
			}
			cols[c] = b.Build()
		}
		k := newRowCodec(kinds, false)
		var ar arena
		rows := make([]uint32, n)
		for i := range rows {
			rows[i] = uint32(n - 1 - i)
		}
		enc := make([]uint64, n*k.words)
		k.encode(cols, rows, enc)
		ptrs := make([]unsafe.Pointer, n)
		for i, row := range rows {
			p := unsafe.Pointer(&enc[i*k.words])
			k.tails(p, cols, int(row), &ar)
			ptrs[row] = p
		}
		for i := range n {
			for j := range n {
				got, want := k.compare(ptrs[i], ptrs[j], &ar), columnar.CompareRows(cols, i, cols, j)
				if (got < 0) != (want < 0) || (got > 0) != (want > 0) {
					t.Fatalf("kinds %v: rows %s and %s compare %d, want %d", kinds, rowText(cols, i), rowText(cols, j), got, want)
				}
			}
		}
		for c := range cols {
			back := make([]uint32, n)
			for i, row := range rows {
				back[row] = uint32(i)
			}
			v := k.decode(c, newRowSet(enc, k.words, back), &ar)
			for i := range n {
				if !columnar.EqualAt(v, i, cols[c], i) {
					t.Fatalf("kind %v: %s came back as %s", kinds[c], rowText(cols[c:c+1], i), rowText([]*columnar.Vec{v}, i))
				}
			}
		}
		for _, p := range ptrs {
			k.free(p, &ar)
		}
		if ar.used != 0 {
			t.Fatalf("%d bytes of tails left", ar.used)
		}
	}
}

func rowText(cols []*columnar.Vec, i int) string {
	s := "("
	for c, v := range cols {
		if c > 0 {
			s += ", "
		}
		switch {
		case v.Null(i):
			s += "NULL"
		case v.Kind() == columnar.KindBytes:
			s += fmt.Sprintf("%q", v.Bytes(i))
		default:
			s += fmt.Sprint(fixedAt(v, i))
		}
	}
	return s + ")"
}

func fixedAt(v *columnar.Vec, i int) any {
	switch v.Kind() {
	case columnar.KindBool:
		return v.Bools()[i]
	case columnar.KindInt16:
		return v.Int16s()[i]
	case columnar.KindInt32:
		return v.Int32s()[i]
	case columnar.KindInt64:
		return v.Int64s()[i]
	case columnar.KindFloat32:
		return v.Float32s()[i]
	case columnar.KindFloat64:
		return v.Float64s()[i]
	}
	return v.U128s()[i]
}
