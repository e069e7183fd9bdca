package differential

import (
	"bytes"
	"sync"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/decimal"
)

// minusOnes are the diffs of a delta of retractions. They are only read.
var minusOnes = sync.OnceValue(func() []int64 {
	m := make([]int64, columnar.ChunkRows)
	for i := range m {
		m[i] = -1
	}
	return m
})

// reduceChange collects the touched groups whose output changes: key, old and
// new slots, a chunk at a time.
type reduceChange struct {
	keys, slots []unsafe.Pointer
	fails       []failure
}

func (c *reduceChange) reset() {
	c.keys, c.slots, c.fails = c.keys[:0], c.slots[:0], c.fails[:0]
}

func (c *reduceChange) add(key, slots unsafe.Pointer) {
	c.keys = append(c.keys, key)
	c.slots = append(c.slots, slots)
}

// emitter sends a delta from an output port.
type emitter interface {
	Emit(port int, d *dataflow.Delta)
}

// finish ends an epoch: it emits what changed in the touched groups, and
// forgets the groups that are gone.
func (s *reducePart) finish(out emitter) {
	for _, d := range s.sets {
		s.sweep(d)
	}
	for lo := 0; lo < len(s.touched); lo += columnar.ChunkRows {
		s.emit(lo, min(lo+columnar.ChunkRows, len(s.touched)), out)
	}
	if s.plan.opts.Global {
		s.started = true
	}
	for i, g := range s.touched {
		p := s.t.at(g.gid)
		*header(p) &^= groupTouched
		if len(s.plan.spills) > 0 {
			s.pools.freeSpills(s.plan.spills, unsafe.Pointer(&s.old[i*s.plan.slots]))
		}
		if *header(p)&groupDurable == 0 && s.empty(unsafe.Add(p, s.t.rest*8)) && s.vacant(p) {
			s.forget(g.gid, g.hash)
		}
	}
	s.pools.bury()
	s.touched, s.old = s.touched[:0], s.old[:0]
}

// emit emits what changed in the groups lo to hi of the touched list.
func (s *reducePart) emit(lo, hi int, out emitter) {
	n := hi - lo
	if cap(s.olds) < n {
		s.olds, s.news = make([]unsafe.Pointer, n), make([]unsafe.Pointer, n)
		s.changed = make([]bool, n)
	}
	olds, news, changed := s.olds[:n], s.news[:n], s.changed[:n]
	clear(changed)
	at := s.t.rest * 8
	for i, g := range s.touched[lo:hi] {
		p := unsafe.Add(s.t.at(g.gid), at)
		olds[i], news[i] = unsafe.Pointer(&s.old[(lo+i)*s.plan.slots]), p
		if len(s.plan.spills) > 0 {
			s.pools.settle(s.plan.spills, p)
		}
	}
	for i := range s.plan.outs {
		s.pools.compare(&s.plan.outs[i], olds, news, changed)
	}
	s.gone.reset()
	s.come.reset()
	for i := range olds {
		was, is := int64(*wordAt(olds[i], 0)) > 0, int64(*wordAt(news[i], 0)) > 0
		if s.plan.opts.Global {
			was, is = s.started, true
		}
		if was == is && (!is || !changed[i]) {
			continue
		}
		key := unsafe.Add(news[i], -at)
		if was {
			s.gone.add(key, olds[i])
		}
		if is {
			s.come.add(key, news[i])
		}
	}
	s.emitRows(&s.gone, -1, out)
	s.emitRows(&s.come, 1, out)
}

// emitRows emits a row for each group of c, or its error.
func (s *reducePart) emitRows(c *reduceChange, diff int64, out emitter) {
	if s.plan.canFail {
		s.emitFailures(c, diff, out)
	}
	n := len(c.keys)
	if n == 0 {
		return
	}
	cols := make([]*columnar.Vec, 0, len(s.plan.keyCols)+len(s.plan.outs))
	for k := range s.plan.keyCols {
		cols = append(cols, s.t.decodeKey(k, c.keys))
	}
	for i := range s.plan.outs {
		cols = append(cols, s.pools.result(&s.plan.outs[i], c.slots))
	}
	d := &dataflow.Delta{Batch: columnar.Batch{Cols: cols, N: n}}
	if diff < 0 {
		d.Diffs = minusOnes()[:n]
	}
	out.Emit(0, d)
}

// emitFailures takes the groups with an output out of range out of c, and emits
// their errors.
func (s *reducePart) emitFailures(c *reduceChange, diff int64, out emitter) {
	c.fails = c.fails[:0]
	k := 0
	for i, p := range c.slots {
		f := failNone
		for j := range s.plan.outs {
			if o := &s.plan.outs[j]; o.canFail() && f == failNone {
				f = s.pools.check(o, p)
			}
		}
		if f != failNone {
			c.fails = append(c.fails, f)
			continue
		}
		c.keys[k], c.slots[k] = c.keys[i], p
		k++
	}
	c.keys, c.slots = c.keys[:k], c.slots[:k]
	if len(c.fails) == 0 {
		return
	}
	code := columnar.NewBuilder(columnar.KindBytes, len(c.fails))
	msg := columnar.NewBuilder(columnar.KindBytes, len(c.fails))
	diffs := make([]int64, len(c.fails))
	for i, f := range c.fails {
		code.String(failures[f][0])
		msg.String(failures[f][1])
		diffs[i] = diff
	}
	b := columnar.Batch{Cols: []*columnar.Vec{code.Build(), msg.Build()}, N: len(c.fails)}
	out.Emit(1, &dataflow.Delta{Batch: b, Diffs: diffs})
}

// compare marks the groups whose output o may differ between old and new slots.
func (s *spillPools) compare(o *output, olds, news []unsafe.Pointer, changed []bool) {
	if o.count != nil {
		for i, p := range olds {
			if (int64(*wordAt(p, o.count.at)) > 0) != (int64(*wordAt(news[i], o.count.at)) > 0) {
				changed[i] = true
			}
		}
	}
	switch o.op {
	case AggBoolAnd, AggBoolOr, AggBitAnd, AggBitOr:
		for i, p := range olds {
			if !changed[i] && o.bits(p) != o.bits(news[i]) {
				changed[i] = true
			}
		}
		return
	case AggSxx, AggSxy:
		compareWords(o.count.at, 1, olds, news, changed)
		s.compareSums(o.xs[0], olds, news, changed)
		s.compareSums(o.xs[1], olds, news, changed)
	}
	switch o.acc.op {
	case accFloat, accProduct, accNumeric:
		s.compareSums(o.acc, olds, news, changed)
	default:
		compareWords(o.acc.at, o.acc.words, olds, news, changed)
	}
}

func compareWords(at, words int, olds, news []unsafe.Pointer, changed []bool) {
	news, changed = news[:len(olds)], changed[:len(olds)]
	for i, p := range olds {
		for j := range words {
			if *wordAt(p, at+j) != *wordAt(news[i], at+j) {
				changed[i] = true
			}
		}
	}
}

// compareSums compares sums that may be kept outside of their slots.
func (s *spillPools) compareSums(a *accumulator, olds, news []unsafe.Pointer, changed []bool) {
	compareWords(a.at, 3, olds, news, changed)
	for i, p := range olds {
		x, y := *wordAt(p, a.at+3), *wordAt(news[i], a.at+3)
		if x == y || changed[i] {
			continue
		}
		xi, yi := x>>32, y>>32
		switch {
		case xi == 0 || yi == 0:
			changed[i] = true
		case a.op == accNumeric:
			b, err1 := s.nums.all[xi-1].AppendTo(nil)
			c, err2 := s.nums.all[yi-1].AppendTo(nil)
			changed[i] = (err1 == nil) != (err2 == nil) || !bytes.Equal(b, c)
		default:
			changed[i] = *s.wide.all[xi-1] != *s.wide.all[yi-1]
		}
	}
}

// bits is the value of a boolean or bitwise aggregate over the slots at p.
func (o *output) bits(p unsafe.Pointer) uint64 {
	n := *wordAt(p, o.count.at)
	switch o.op {
	case AggBoolAnd:
		return boolWord(*wordAt(p, o.acc.at) == n)
	case AggBoolOr:
		return boolWord(int64(*wordAt(p, o.acc.at)) > 0)
	case AggBitXor:
		return *wordAt(p, o.acc.at)
	}
	var x uint64
	for b := range o.acc.words {
		c := *wordAt(p, o.acc.at+b)
		if (o.op == AggBitAnd && c == n) || (o.op == AggBitOr && int64(c) > 0) {
			x |= 1 << b
		}
	}
	return x
}

// result makes the column of an output from the slots at ptrs.
func (s *spillPools) result(o *output, ptrs []unsafe.Pointer) *columnar.Vec {
	if o.out == columnar.KindBytes {
		return s.resultBytes(o, ptrs)
	}
	v := columnar.MakeFixed(o.out, len(ptrs))
	switch o.op {
	case AggCount:
		resultWords(v.Int64s(), ptrs, o.acc.at)
	case AggSum:
		s.resultSum(o, v, ptrs)
	case AggMin, AggMax:
		v = resultExtreme(o, ptrs)
	case AggSxx, AggSxy:
		out := v.Float64s()
		for i, p := range ptrs {
			if n := int64(*wordAt(p, o.count.at)); n > 0 {
				out[i] = s.wide.crossDeviation(n, floatSlots(p, o.xs[0].at), floatSlots(p, o.xs[1].at), floatSlots(p, o.acc.at))
			}
		}
	default:
		resultBits(o, v, ptrs)
	}
	return nullify(o, v, ptrs)
}

func resultWords(out []int64, ptrs []unsafe.Pointer, at int) {
	for i, p := range ptrs {
		out[i] = *(*int64)(unsafe.Add(p, at*8))
	}
}

func (s *spillPools) resultSum(o *output, v *columnar.Vec, ptrs []unsafe.Pointer) {
	switch o.out {
	case columnar.KindInt64:
		resultWords(v.Int64s(), ptrs, o.acc.at)
	case columnar.KindFloat64:
		out := v.Float64s()
		for i, p := range ptrs {
			out[i], _ = s.wide.float64(floatSlots(p, o.acc.at))
		}
	case columnar.KindFloat32:
		out := v.Float32s()
		for i, p := range ptrs {
			out[i], _ = s.wide.float32(floatSlots(p, o.acc.at))
		}
	}
}

func resultBits(o *output, v *columnar.Vec, ptrs []unsafe.Pointer) {
	for i, p := range ptrs {
		x := o.bits(p)
		switch o.out {
		case columnar.KindBool:
			v.Bools()[i] = x != 0
		case columnar.KindInt16:
			v.Int16s()[i] = int16(x)
		case columnar.KindInt32:
			v.Int32s()[i] = int32(x)
		case columnar.KindInt64:
			v.Int64s()[i] = int64(x)
		}
	}
}

// resultExtreme makes a column of extremes of a fixed kind. The slots of a
// minimum that only grows hold complements.
func resultExtreme(o *output, ptrs []unsafe.Pointer) *columnar.Vec {
	if o.acc.op == accBest || o.acc.desc {
		return decodeValues(o.out, ptrs, o.acc.at, nil)
	}
	flipped := make([]uint64, len(ptrs)*o.acc.words)
	places := make([]unsafe.Pointer, len(ptrs))
	for i, p := range ptrs {
		places[i] = unsafe.Pointer(&flipped[i*o.acc.words])
		for j := range o.acc.words {
			flipped[i*o.acc.words+j] = ^*wordAt(p, o.acc.at+j)
		}
	}
	return decodeValues(o.out, places, 0, nil)
}

// nullify sets the outputs without a value to NULL.
func nullify(o *output, v *columnar.Vec, ptrs []unsafe.Pointer) *columnar.Vec {
	if o.count == nil {
		return v
	}
	var nulls columnar.Bitmap
	fixed, _, _ := v.Raw()
	w := v.Kind().Width()
	for i, p := range ptrs {
		if int64(*wordAt(p, o.count.at)) > 0 {
			continue
		}
		if nulls == nil {
			nulls = columnar.NewBitmap(len(ptrs))
		}
		nulls.Set(i)
		clear(fixed[i*w : (i+1)*w])
	}
	if nulls == nil {
		return v
	}
	return v.WithNulls(nulls)
}

// resultBytes makes the column of an output of kind Bytes: a numeric, or an
// extreme.
func (s *spillPools) resultBytes(o *output, ptrs []unsafe.Pointer) *columnar.Vec {
	b := columnar.NewBuilder(columnar.KindBytes, len(ptrs))
	for _, p := range ptrs {
		if o.count != nil && int64(*wordAt(p, o.count.at)) <= 0 {
			b.Null()
			continue
		}
		b.Extend(func(dst []byte) []byte {
			w := wordAt(p, o.acc.at)
			switch o.acc.op {
			case accNarrow:
				return decimal.AppendInt64(dst, int64(*w))
			case accWide:
				return decimal.AppendInt128(dst, int64(*wordAt(p, o.acc.at+1)), *w)
			case accNumeric:
				dst, _ = s.nums.appendTo(dst, numericSlots(p, o.acc.at)) // in range: see check
				return dst
			}
			return appendBytes(dst, (*[2]uint64)(unsafe.Pointer(w)), &s.ar)
		})
	}
	return b.Build()
}
