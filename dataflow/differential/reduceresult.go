package differential

import (
	"bytes"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
)

// failure is why an output cannot be given.
type failure uint8

const (
	failNone failure = iota
	failBigint
	failFloat
	failNumeric
)

// failures are the errors of PostgreSQL for them.
var failures = [...][2]string{
	failBigint:  {"22003", "bigint out of range"},
	failFloat:   {"22003", "value out of range: overflow"},
	failNumeric: {"22003", "value overflows numeric format"},
}

// anyFails is a quick look whether check may find anything in the selected rows.
func (s *spillPools) anyFails(o *output, slots rowSet) bool {
	var bad uint64
	switch {
	case o.acc.op == accWide:
		for _, r := range slots.sel {
			p := slots.at(r)
			bad |= *wordAt(p, o.acc.at+1) ^ uint64(int64(*wordAt(p, o.acc.at))>>63)
		}
	case o.acc.op == accNumeric:
		for _, r := range slots.sel {
			bad |= *wordAt(slots.at(r), o.acc.at+3) & sumAcc
		}
	default:
		return true
	}
	return bad != 0
}

// check reports whether the output can be given for the slots at p.
func (s *spillPools) check(o *output, p unsafe.Pointer) failure {
	if o.count != nil && int64(*wordAt(p, o.count.at)) <= 0 {
		return failNone
	}
	switch o.acc.op {
	case accWide:
		if int64(*wordAt(p, o.acc.at+1)) != int64(*wordAt(p, o.acc.at))>>63 {
			return failBigint
		}
	case accNumeric:
		w := numericSlots(p, o.acc.at)
		if w[3]&sumAcc != 0 {
			if _, err := s.nums.appendTo(nil, w); err != nil {
				return failNumeric
			}
		}
	case accFloat:
		w := floatSlots(p, o.acc.at)
		if w[3]>>wideShift == 0 && o.out == columnar.KindFloat64 && floatBase(w)+192 < 1024 {
			return failNone
		}
		var ok bool
		if o.out == columnar.KindFloat64 {
			_, ok = s.wide.float64(w)
		} else {
			_, ok = s.wide.float32(w)
		}
		if !ok {
			return failFloat
		}
	}
	return failNone
}

// compare marks the rows of a block whose output o may differ between old and
// new slots.
func (s *spillPools) compare(o *output, olds, news rowSet, changed []bool) {
	if o.count != nil {
		for i := range changed {
			was := *(*int64)(unsafe.Add(olds.at(uint32(i)), o.count.at*8)) > 0
			is := *(*int64)(unsafe.Add(news.at(uint32(i)), o.count.at*8)) > 0
			changed[i] = changed[i] || was != is
		}
	}
	switch o.op {
	case AggBoolAnd, AggBoolOr, AggBitAnd, AggBitOr:
		for i := range changed {
			if !changed[i] && o.bits(olds.at(uint32(i))) != o.bits(news.at(uint32(i))) {
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

func compareWords(at, words int, olds, news rowSet, changed []bool) {
	for j := at; j < at+words; j++ {
		p, q := unsafe.Add(olds.base, j*8), unsafe.Add(news.base, j*8)
		for i := range changed {
			if *(*uint64)(unsafe.Add(p, uintptr(i)*olds.stride)) != *(*uint64)(unsafe.Add(q, uintptr(i)*news.stride)) {
				changed[i] = true
			}
		}
	}
}

// compareSums compares sums that may be kept outside of their slots.
func (s *spillPools) compareSums(a *accumulator, olds, news rowSet, changed []bool) {
	compareWords(a.at, 3, olds, news, changed)
	for i := range changed {
		x, y := *wordAt(olds.at(uint32(i)), a.at+3), *wordAt(news.at(uint32(i)), a.at+3)
		if x == y || changed[i] {
			continue
		}
		if a.op == accNumeric {
			changed[i] = s.numericsDiffer(x, y)
			continue
		}
		xi, yi := x>>wideShift, y>>wideShift
		changed[i] = xi == 0 || yi == 0 || *s.wide.all[xi-1] != *s.wide.all[yi-1]
	}
}

// numericsDiffer compares numeric sums with equal words but the last.
func (s *spillPools) numericsDiffer(x, y uint64) bool {
	i, xacc := accOf(x)
	j, yacc := accOf(y)
	if !xacc || !yacc {
		return xacc != yacc || (x^y)&sumScale != 0
	}
	b, err1 := s.nums.all[i].AppendTo(nil)
	c, err2 := s.nums.all[j].AppendTo(nil)
	return (err1 == nil) != (err2 == nil) || !bytes.Equal(b, c)
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

// result appends the output of the selected rows to a column.
func (s *spillPools) result(o *output, slots rowSet, out *outColumn) {
	if out.kind == columnar.KindBytes {
		s.resultBytes(o, slots, out)
		return
	}
	at := out.n
	switch o.op {
	case AggCount:
		out.appendRaw(slots, o.acc.at)
		return
	case AggSum:
		s.resultSum(o, slots, out)
	case AggMin, AggMax:
		resultExtreme(o, slots, out)
	case AggSxx, AggSxy:
		vals := out.fixed.Float64s()[at:]
		for i, r := range slots.sel {
			p := slots.at(r)
			if n := int64(*wordAt(p, o.count.at)); n > 0 {
				vals[i] = s.wide.crossDeviation(n, floatSlots(p, o.xs[0].at), floatSlots(p, o.xs[1].at), floatSlots(p, o.acc.at))
			}
		}
		out.n += len(slots.sel)
	default:
		resultBits(o, slots, out)
	}
	// Without a value it is NULL.
	fixed, _, _ := out.fixed.Raw()
	w := out.kind.Width()
	for i, r := range slots.sel {
		if int64(*wordAt(slots.at(r), o.count.at)) <= 0 {
			out.setNull(at + i)
			clear(fixed[(at+i)*w : (at+i+1)*w])
		}
	}
}

func (s *spillPools) resultSum(o *output, slots rowSet, out *outColumn) {
	switch o.out {
	case columnar.KindInt64:
		out.appendRaw(slots, o.acc.at)
		return
	case columnar.KindFloat64:
		vals := out.fixed.Float64s()[out.n:]
		for i, r := range slots.sel {
			vals[i], _ = s.wide.float64(floatSlots(slots.at(r), o.acc.at))
		}
	case columnar.KindFloat32:
		vals := out.fixed.Float32s()[out.n:]
		for i, r := range slots.sel {
			vals[i], _ = s.wide.float32(floatSlots(slots.at(r), o.acc.at))
		}
	}
	out.n += len(slots.sel)
}

func resultBits(o *output, slots rowSet, out *outColumn) {
	at := out.n
	for i, r := range slots.sel {
		x := o.bits(slots.at(r))
		switch o.out {
		case columnar.KindBool:
			out.fixed.Bools()[at+i] = x != 0
		case columnar.KindInt16:
			out.fixed.Int16s()[at+i] = int16(x)
		case columnar.KindInt32:
			out.fixed.Int32s()[at+i] = int32(x)
		case columnar.KindInt64:
			out.fixed.Int64s()[at+i] = int64(x)
		}
	}
	out.n += len(slots.sel)
}

// resultExtreme appends extremes of a fixed kind. The slots of a minimum that
// only grows hold complements.
func resultExtreme(o *output, slots rowSet, out *outColumn) {
	if o.acc.op == accBest || o.acc.desc {
		out.appendWords(slots, o.acc.at, nil)
		return
	}
	n := o.acc.words
	flipped := make([]uint64, len(slots.sel)*n)
	for i, r := range slots.sel {
		p := slots.at(r)
		for j := range n {
			flipped[i*n+j] = ^*wordAt(p, o.acc.at+j)
		}
	}
	out.appendWords(newRowSet(flipped, n, allRows(len(slots.sel))), 0, nil)
}

// resultBytes appends outputs of kind Bytes: numerics, or extremes.
func (s *spillPools) resultBytes(o *output, slots rowSet, out *outColumn) {
	for _, r := range slots.sel {
		p := slots.at(r)
		if o.count != nil && int64(*wordAt(p, o.count.at)) <= 0 {
			out.bytes.Null()
			continue
		}
		w := wordAt(p, o.acc.at)
		switch o.acc.op {
		case accNarrow:
			out.bytes.Extend(func(dst []byte) []byte { return decimal.AppendInt64(dst, int64(*w)) })
		case accWide:
			out.bytes.Extend(func(dst []byte) []byte { return decimal.AppendInt128(dst, int64(*wordAt(p, o.acc.at+1)), *w) })
		case accNumeric:
			out.bytes.Extend(func(dst []byte) []byte {
				dst, _ = s.nums.appendTo(dst, numericSlots(p, o.acc.at)) // in range: see check
				return dst
			})
		default:
			out.appendBytes((*[2]uint64)(unsafe.Pointer(w)), &s.ar)
			out.n--
		}
	}
	out.n += len(slots.sel)
}
