package types

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// The form of a range: a byte of rangeFlags, then each bound that it has, as
// records store a field; before a lower bound of variable width its length
// (uint32, little-endian). The form of a multirange: the OID of the range type,
// the number of ranges, then each with its length before it (all uint32). Ranges of discrete
// types are kept in the canonical form [a,b), multiranges sorted and without
// ranges that touch: equal values have equal forms where those of the bounds do.

// rangeFlags say which bounds there are, as on the wire.
type rangeFlags = byte

const (
	rangeEmpty    rangeFlags = 1 << iota
	rangeLowerInc            // the lower bound is in the range
	rangeUpperInc
	rangeLowerInf // there is no lower bound
	rangeUpperInf
	rangeFlagsAll = 1<<iota - 1
)

// rangeTypes are the built-in ranges: their subtypes and their multiranges.
var rangeTypes = []struct{ oid, sub, multi OID }{
	{OIDInt4Range, OIDInt4, 4451}, {OIDNumRange, OIDNumeric, 4532}, {OIDTsRange, OIDTimestamp, 4533},
	{OIDTsTzRange, OIDTimestampTZ, 4534}, {OIDDateRange, OIDDate, 4535}, {OIDInt8Range, OIDInt8, 4536},
}

func initRanges() {
	for _, r := range rangeTypes {
		rng, multi := Lookup(r.oid), Lookup(r.multi)
		rng.Subtype, rng.Multirange = r.sub, r.multi
		multi.Subtype, multi.Range = r.sub, r.oid
	}
}

// Subtype is the type of the bounds of a range or multirange type, 0 for others.
func (o OID) Subtype() OID {
	if t := Lookup(o); t != nil {
		return t.Subtype
	}
	return 0
}

// IsRange reports whether o is a range type.
func (o OID) IsRange() bool {
	t := Lookup(o)
	return t != nil && t.Multirange != 0
}

// IsMultirange reports whether o is a multirange type.
func (o OID) IsMultirange() bool {
	t := Lookup(o)
	return t != nil && t.Range != 0
}

// IsEnum reports whether o is an enum type.
func (o OID) IsEnum() bool {
	t := Lookup(o)
	return t != nil && t.Kind == 'e'
}

// Multirange is the multirange type of a range type, 0 for others.
func (o OID) Multirange() OID {
	if t := Lookup(o); t != nil {
		return t.Multirange
	}
	return 0
}

// RangeType is the range type of a multirange type, 0 for others.
func (o OID) RangeType() OID {
	if t := Lookup(o); t != nil {
		return t.Range
	}
	return 0
}

// Bound is one end of a range.
type Bound struct {
	Inf   bool // there is none
	Inc   bool // it is in the range
	lower bool
	val   datum
}

// NewBound is a bound at value row of v.
func NewBound(v *columnar.Vec, row int, inc bool) Bound { return Bound{Inc: inc, val: at(v, row)} }

// AppendTo appends the value of the bound to a builder of the subtype's kind,
// NULL if there is none.
func (b Bound) AppendTo(out *columnar.Builder) {
	if b.Inf {
		out.Null()
		return
	}
	b.val.appendTo(out)
}

// Range is a range taken apart. It shares the memory of what it was read from.
type Range struct {
	Empty        bool
	Lower, Upper Bound
}

// ReadRange takes the form of a range of type t apart.
func ReadRange(t OID, b []byte) Range {
	f := b[0]
	if f&rangeEmpty != 0 {
		return Range{Empty: true}
	}
	r := Range{
		Lower: Bound{Inf: f&rangeLowerInf != 0, Inc: f&rangeLowerInc != 0, lower: true},
		Upper: Bound{Inf: f&rangeUpperInf != 0, Inc: f&rangeUpperInc != 0},
	}
	k := Of(t.Subtype()).Kind()
	b = b[1:]
	if !r.Lower.Inf {
		w := k.Width()
		if k == columnar.KindBytes {
			w = int(binary.LittleEndian.Uint32(b))
			b = b[4:]
		}
		r.Lower.val = rawDatum(k, b[:w:w])
		b = b[w:]
	}
	if !r.Upper.Inf {
		r.Upper.val = rawDatum(k, b)
	}
	return r
}

// Append appends the form of a range of type t.
func (r Range) Append(dst []byte, t OID) []byte {
	if r.Empty {
		return append(dst, rangeEmpty)
	}
	dst = append(dst, r.flags())
	k := Of(t.Subtype()).Kind()
	if !r.Lower.Inf {
		if k == columnar.KindBytes {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(r.Lower.val.b)))
		}
		dst = r.Lower.val.appendRaw(dst, k)
	}
	if !r.Upper.Inf {
		dst = r.Upper.val.appendRaw(dst, k)
	}
	return dst
}

func (r Range) flags() rangeFlags {
	if r.Empty {
		return rangeEmpty
	}
	var f rangeFlags
	for _, x := range [...]struct {
		on   bool
		flag rangeFlags
	}{{r.Lower.Inc, rangeLowerInc}, {r.Upper.Inc, rangeUpperInc}, {r.Lower.Inf, rangeLowerInf}, {r.Upper.Inf, rangeUpperInf}} {
		if x.on {
			f |= x.flag
		}
	}
	return f
}

// compareValues orders bounds by their values only.
func compareValues(sub Type, a, b Bound) int {
	switch {
	case a.Inf && b.Inf && a.lower == b.lower:
		return 0
	case a.Inf && a.lower, b.Inf && !b.lower:
		return -1
	case a.Inf, b.Inf:
		return 1
	}
	return compareDatum(sub, a.val, b.val)
}

// compareBounds orders bounds: a lower bound that is not in its range comes
// after its value, an upper one before.
func compareBounds(sub Type, a, b Bound) int {
	if c := compareValues(sub, a, b); c != 0 || a.Inf {
		return c
	}
	side := func(x Bound) int {
		switch {
		case x.Inc:
			return 0
		case x.lower:
			return 1
		}
		return -1
	}
	return cmp.Compare(side(a), side(b))
}

// MakeRange is the range of type t between two bounds, in canonical form.
func MakeRange(t OID, lower, upper Bound) (Range, error) {
	sub := Of(t.Subtype())
	lower.lower, upper.lower = true, false
	lower.Inc, upper.Inc = lower.Inc && !lower.Inf, upper.Inc && !upper.Inf
	r, err := checkRange(sub, lower, upper)
	if err != nil || r.Empty {
		return r, err
	}
	switch sub.OID {
	case OIDInt4, OIDInt8, OIDDate:
	default:
		return r, nil
	}
	if !lower.Inf && !lower.Inc {
		if r.Lower, err = nextBound(sub, r.Lower); err != nil {
			return r, err
		}
	}
	if !upper.Inf && upper.Inc {
		if r.Upper, err = nextBound(sub, r.Upper); err != nil {
			return r, err
		}
	}
	return checkRange(sub, r.Lower, r.Upper)
}

func checkRange(sub Type, lower, upper Bound) (Range, error) {
	switch c := compareValues(sub, lower, upper); {
	case c > 0:
		return Range{}, pgerror.New(pgerror.DataException, "range lower bound must be less than or equal to range upper bound")
	case c == 0 && !(lower.Inc && upper.Inc) && !lower.Inf && !upper.Inf:
		return Range{Empty: true}, nil
	}
	return Range{Lower: lower, Upper: upper}, nil
}

// nextBound moves the bound of a discrete range to the next value, which is then
// in the range if the old one was not. An infinite date has no next.
func nextBound(sub Type, b Bound) (Bound, error) {
	v := b.val.int()
	switch sub.OID {
	case OIDInt4:
		if v == math.MaxInt32 {
			return b, pgerror.New(pgerror.NumericValueOutOfRange, "integer out of range")
		}
	case OIDInt8:
		if v == math.MaxInt64 {
			return b, pgerror.New(pgerror.NumericValueOutOfRange, "bigint out of range")
		}
	default:
		if v == math.MaxInt32 || v == math.MinInt32 {
			return b, nil
		}
		if !validDate(int32(v + 1)) {
			return b, pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range")
		}
	}
	b.val.u.Lo, b.Inc = uint64(v+1), !b.Inc
	return b, nil
}

// RangeOps are the operations on ranges of one type. Ranges that they return
// share the memory of their arguments.
type RangeOps struct {
	Type OID
	sub  Type
}

// OpsOf are the operations on a range type.
func OpsOf(t OID) RangeOps { return RangeOps{t, Of(t.Subtype())} }

// Compare orders ranges: the empty one first, then by the lower bounds, then by
// the upper ones.
func (o RangeOps) Compare(a, b Range) int {
	switch {
	case a.Empty && b.Empty:
		return 0
	case a.Empty:
		return -1
	case b.Empty:
		return 1
	}
	if c := compareBounds(o.sub, a.Lower, b.Lower); c != 0 {
		return c
	}
	return compareBounds(o.sub, a.Upper, b.Upper)
}

// ContainsValue reports whether value row of v is in r.
func (o RangeOps) ContainsValue(r Range, v *columnar.Vec, row int) bool {
	if r.Empty {
		return false
	}
	x := at(v, row)
	if !r.Lower.Inf {
		if c := compareDatum(o.sub, r.Lower.val, x); c > 0 || c == 0 && !r.Lower.Inc {
			return false
		}
	}
	if !r.Upper.Inf {
		if c := compareDatum(o.sub, r.Upper.val, x); c < 0 || c == 0 && !r.Upper.Inc {
			return false
		}
	}
	return true
}

// Contains reports whether all of b is in a.
func (o RangeOps) Contains(a, b Range) bool {
	switch {
	case b.Empty:
		return true
	case a.Empty:
		return false
	}
	return compareBounds(o.sub, a.Lower, b.Lower) <= 0 && compareBounds(o.sub, a.Upper, b.Upper) >= 0
}

// Overlaps reports whether a and b have a value in common.
func (o RangeOps) Overlaps(a, b Range) bool {
	return !a.Empty && !b.Empty && compareBounds(o.sub, a.Lower, b.Upper) <= 0 && compareBounds(o.sub, b.Lower, a.Upper) <= 0
}

// Before reports whether all of a is less than all of b.
func (o RangeOps) Before(a, b Range) bool {
	return !a.Empty && !b.Empty && compareBounds(o.sub, a.Upper, b.Lower) < 0
}

// OverLeft reports whether a does not reach beyond the upper end of b.
func (o RangeOps) OverLeft(a, b Range) bool {
	return !a.Empty && !b.Empty && compareBounds(o.sub, a.Upper, b.Upper) <= 0
}

// OverRight reports whether a does not reach beyond the lower end of b.
func (o RangeOps) OverRight(a, b Range) bool {
	return !a.Empty && !b.Empty && compareBounds(o.sub, a.Lower, b.Lower) >= 0
}

// Adjacent reports whether a and b touch and have no value in common.
func (o RangeOps) Adjacent(a, b Range) bool {
	return !a.Empty && !b.Empty && (o.touch(a.Upper, b.Lower) || o.touch(b.Upper, a.Lower))
}

// touch reports whether there is nothing between an upper and a lower bound.
func (o RangeOps) touch(upper, lower Bound) bool {
	switch c := compareValues(o.sub, upper, lower); {
	case upper.Inf || lower.Inf || c > 0:
		return false
	case c == 0:
		return upper.Inc != lower.Inc
	}
	upper.Inc, lower.Inc = !upper.Inc, !lower.Inc
	between, err := MakeRange(o.Type, upper, lower)
	return err == nil && between.Empty
}

// Hull is the smallest range that contains a and b.
func (o RangeOps) Hull(a, b Range) Range {
	switch {
	case a.Empty:
		return b
	case b.Empty:
		return a
	}
	if compareBounds(o.sub, b.Lower, a.Lower) < 0 {
		a.Lower = b.Lower
	}
	if compareBounds(o.sub, b.Upper, a.Upper) > 0 {
		a.Upper = b.Upper
	}
	return a
}

// Union is what is in a or b, which must overlap or touch.
func (o RangeOps) Union(a, b Range) (Range, error) {
	if !a.Empty && !b.Empty && !o.Overlaps(a, b) && !o.Adjacent(a, b) {
		return a, pgerror.New(pgerror.DataException, "result of range union would not be contiguous")
	}
	return o.Hull(a, b), nil
}

// Intersect is what is in both.
func (o RangeOps) Intersect(a, b Range) Range {
	if !o.Overlaps(a, b) {
		return Range{Empty: true}
	}
	if compareBounds(o.sub, b.Lower, a.Lower) > 0 {
		a.Lower = b.Lower
	}
	if compareBounds(o.sub, b.Upper, a.Upper) < 0 {
		a.Upper = b.Upper
	}
	return a
}

// cut is what is left of a without b: two ranges, either may be empty.
func (o RangeOps) cut(a, b Range) (left, right Range) {
	if !o.Overlaps(a, b) {
		return a, Range{Empty: true}
	}
	left, right = Range{Empty: true}, Range{Empty: true}
	if compareBounds(o.sub, a.Lower, b.Lower) < 0 {
		end := b.Lower
		end.Inc = !end.Inc
		left, _ = MakeRange(o.Type, a.Lower, end) // no error: the bounds are in order
	}
	if compareBounds(o.sub, a.Upper, b.Upper) > 0 {
		start := b.Upper
		start.Inc = !start.Inc
		right, _ = MakeRange(o.Type, start, a.Upper)
	}
	return left, right
}

// Minus is what is in a and not in b; that must be one range.
func (o RangeOps) Minus(a, b Range) (Range, error) {
	left, right := o.cut(a, b)
	switch {
	case left.Empty:
		return right, nil
	case right.Empty:
		return left, nil
	}
	return a, pgerror.New(pgerror.DataException, "result of range difference would not be contiguous")
}

// ReadMultirange takes the form of a multirange apart; t is its range type.
func ReadMultirange(t OID, b []byte) []Range {
	out := make([]Range, binary.LittleEndian.Uint32(b[4:]))
	b = b[8:]
	for i := range out {
		n := binary.LittleEndian.Uint32(b)
		out[i] = ReadRange(t, b[4:4+n])
		b = b[4+n:]
	}
	return out
}

// RangeTypeOf is the range type of a multirange by its form.
func RangeTypeOf(b []byte) OID { return OID(binary.LittleEndian.Uint32(b)) }

// AppendMultirange appends the form of a multirange of type t over normalized
// ranges.
func AppendMultirange(dst []byte, t OID, rs []Range) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(t))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(rs)))
	for _, r := range rs {
		mark := len(dst)
		dst = r.Append(append(dst, 0, 0, 0, 0), t)
		binary.LittleEndian.PutUint32(dst[mark:], uint32(len(dst)-mark-4))
	}
	return dst
}

// Normalize sorts ranges and joins those that overlap or touch. It changes rs.
func (o RangeOps) Normalize(rs []Range) []Range {
	rs = slices.DeleteFunc(rs, func(r Range) bool { return r.Empty })
	slices.SortFunc(rs, o.Compare)
	out := rs[:0]
	for _, r := range rs {
		if n := len(out) - 1; n >= 0 && (o.Overlaps(out[n], r) || o.Adjacent(out[n], r)) {
			out[n] = o.Hull(out[n], r)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// IntersectAll is what is in some range of each of two multiranges.
func (o RangeOps) IntersectAll(a, b []Range) []Range {
	var out []Range
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if r := o.Intersect(a[i], b[j]); !r.Empty {
			out = append(out, r)
		}
		if compareBounds(o.sub, a[i].Upper, b[j].Upper) < 0 {
			i++
		} else {
			j++
		}
	}
	return out
}

// MinusAll is what is in a and not in b, both multiranges.
func (o RangeOps) MinusAll(a, b []Range) []Range {
	var out []Range
	for _, rest := range a {
		for _, r := range b {
			var left Range
			if !o.Overlaps(rest, r) {
				continue
			}
			if left, rest = o.cut(rest, r); !left.Empty {
				out = append(out, left)
			}
			if rest.Empty {
				break
			}
		}
		if !rest.Empty {
			out = append(out, rest)
		}
	}
	return out
}

// CompareAll orders multiranges: by their ranges from the first on.
func (o RangeOps) CompareAll(a, b []Range) int { return slices.CompareFunc(a, b, o.Compare) }
