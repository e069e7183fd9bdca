package expr

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
)

// scratch recycles the buffers of intermediate vectors from one batch to the
// next: a fresh page costs far more than the work done on it.
type scratch struct {
	free     [32][][]uint64  // by size class: 1<<class words
	used     []scratchVec    // handed out in this evaluation
	recycles bool            // release follows: vectors, too, are used again
	spare    []*columnar.Vec // vectors to use again
	lent     []*columnar.Vec // in this evaluation
	frames   []*frame        // spare frames
	live     []*frame        // frames of this evaluation
}

type scratchVec struct {
	buf []uint64
}

// minScratch is the size in bytes below which recycling does not pay.
const minScratch = 2048

// fixed returns an aligned buffer of n bytes with any content.
func (s *scratch) fixed(n int) []byte {
	if n == 0 {
		return nil
	}
	words := (n + 7) / 8
	if n < minScratch {
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(make([]uint64, words)))), n)
	}
	class := bits.Len(uint(words - 1))
	var buf []uint64
	if l := s.free[class]; len(l) > 0 {
		buf = l[len(l)-1]
		s.free[class] = l[:len(l)-1]
	} else {
		buf = make([]uint64, 1<<class)
	}
	s.used = append(s.used, scratchVec{buf})
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(buf))), n)
}

// release takes the buffers of the evaluation back, but for those in out.
func (s *scratch) release(out []*columnar.Vec) {
	for _, u := range s.used {
		p := unsafe.Pointer(unsafe.SliceData(u.buf))
		kept := false
		for _, v := range out {
			fixed, _, _ := v.Raw()
			if unsafe.Pointer(unsafe.SliceData(fixed)) == p {
				kept = true
				break
			}
		}
		if !kept {
			class := bits.Len(uint(len(u.buf) - 1))
			s.free[class] = append(s.free[class], u.buf)
		}
	}
	clear(s.used)
	s.used = s.used[:0]
	for i, v := range s.lent {
		if s.lent[i] = nil; !slices.Contains(out, v) && len(s.spare) < maxSpare {
			*v = columnar.Vec{}
			s.spare = append(s.spare, v)
		}
	}
	s.lent = s.lent[:0]
	for _, f := range s.live {
		clear(f.vals)
		*f = frame{vals: f.vals[:0]}
		s.frames = append(s.frames, f)
	}
	clear(s.live)
	s.live = s.live[:0]
}

// newFrame makes a frame of n rows with room for the values of nodes nodes.
func (s *scratch) newFrame(n, nodes int) *frame {
	var f *frame
	if l := len(s.frames); l > 0 {
		f = s.frames[l-1]
		s.frames = s.frames[:l-1]
	} else {
		f = new(frame)
	}
	if cap(f.vals) < nodes {
		f.vals = make([]*columnar.Vec, nodes)
	}
	f.vals = f.vals[:nodes]
	f.n = n
	s.live = append(s.live, f)
	return f
}

// child is the frame of the rows sel of f.
func (x *Eval) child(f *frame, sel []uint32) *frame {
	c := x.newFrame(len(sel), len(f.vals))
	c.parent, c.sel, c.cols, c.origin = f, sel, f.cols, f.origin
	if f.rows == nil {
		c.rows = sel
		return c
	}
	c.rows = x.indexes(len(sel))
	for i, s := range sel {
		c.rows[i] = f.rows[s]
	}
	return c
}

// indexes is a scratch slice of n row numbers.
func (x *Eval) indexes(n int) []uint32 {
	b := x.fixed(4 * n)
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// Result makes a vector of n values of T with any content, for a kernel to fill
// completely and return. Its buffer is recycled unless the vector becomes a
// result of the whole evaluation; no other vector may keep a part of it.
func Result[T columnar.Fixed](x *Eval, n int) ([]T, *columnar.Vec) {
	var z T
	b := x.fixed(n * int(unsafe.Sizeof(z)))
	v := x.vector(columnar.KindOf[T](), n, b)
	return columnar.Values[T](v), v
}

// resultOf is Result for a kind.
func (x *Eval) resultOf(kind columnar.Kind, n int) *columnar.Vec {
	return x.vector(kind, n, x.fixed(n*kind.Width()))
}

// maxSpare bounds the spare vectors.
const maxSpare = 256

// vector makes a vector over a buffer.
func (s *scratch) vector(kind columnar.Kind, n int, fixed []byte) *columnar.Vec {
	if !s.recycles {
		return columnar.FromRaw(kind, n, nil, fixed, nil, nil)
	}
	var v *columnar.Vec
	if l := len(s.spare); l > 0 {
		v = s.spare[l-1]
		s.spare = s.spare[:l-1]
	} else {
		v = new(columnar.Vec)
	}
	v.SetRaw(kind, n, fixed)
	s.lent = append(s.lent, v)
	return v
}
