package expr

import (
	"hash/maphash"
	"math/bits"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// minSet is the length from which a list of constants becomes a hashed set;
// shorter ones are compared one by one.
const minSet = 5

// makeIn compiles IN: a hashed set over a long list of constants, else a
// disjunction of comparisons.
func (c *compiler) makeIn(e *InList) (*node, error) {
	if set, err := newConstSet(e); err != nil {
		return nil, err
	} else if set != nil {
		arg, err := c.compile(KeyNorm(set.arg))
		if err != nil {
			return nil, err
		}
		return c.node(node{op: opIn, args: []*node{arg}, set: set}), nil
	}
	or := &Logic{}
	for _, item := range e.List {
		or.Args = append(or.Args, &Call{Fn: e.Op, Args: []Expr{e.Arg, item}, Typ: types.Bool, Pos: e.Pos})
	}
	if len(or.Args) == 1 {
		return c.make(or.Args[0])
	}
	return c.make(or)
}

// constSet is the values of a list of constants, normalized so that equality is
// equality of bits. Integers are in an open-addressing table themselves, with 0
// for a free place; other values by their index.
type constSet struct {
	arg     Expr
	vals    *columnar.Vec
	table   []uint32 // 1 + index into vals; 0: free
	ints    []int64
	hasZero bool
	shift   uint // of the hash of an integer to its place
	mask    uint64
	hasNull bool
	seed    maphash.Seed
}

// newConstSet makes the set of e; nil if e does not qualify.
func newConstSet(e *InList) (*constSet, error) {
	l, r := e.Op.Args[0], e.Op.Args[1]
	if e.Op.Fuzzy || l.OID == types.OIDRecord {
		return nil, nil
	}
	if len(e.List) < minSet && VolatilityOf(e.Arg) != Volatile { // one value is compared with all
		return nil, nil
	}
	s := &constSet{arg: e.Arg, seed: maphash.MakeSeed()}
	if l.OID != r.OID {
		// Integers of two widths are compared as the wider one.
		if categoryOf(l.OID) != catNumeric || categoryOf(r.OID) != catNumeric {
			return nil, nil
		}
		wide, ok := commonOID([]types.OID{l.OID, r.OID})
		if !ok {
			return nil, nil
		}
		arg, err := coerce(e.Arg, types.Of(wide), CastImplicit, 0)
		if err != nil {
			return nil, nil
		}
		s.arg, r = arg, types.Of(wide)
	}
	b := columnar.NewBuilder(r.Kind(), len(e.List))
	for _, item := range e.List {
		if _, ok := item.(*Const); !ok {
			return nil, nil
		}
		item, err := coerce(item, r, CastImplicit, 0)
		if err != nil {
			return nil, nil
		}
		v, err := EvalConst(KeyNorm(item), &Context{})
		if err != nil {
			return nil, nil
		}
		if v.Val.Null(0) {
			s.hasNull = true
		} else {
			b.AppendFrom(v.Val, 0)
		}
	}
	s.vals = b.Build()
	s.index()
	return s, nil
}

func (s *constSet) index() {
	size := 8
	for size < 2*s.vals.Len() {
		size *= 2
	}
	s.mask = uint64(size - 1)
	switch s.vals.Kind() {
	case columnar.KindInt16, columnar.KindInt32, columnar.KindInt64:
		s.ints, s.shift = make([]int64, size), uint(64-bits.Len(uint(size-1)))
		for i := range s.vals.Len() {
			s.addInt(intAt(s.vals, i))
		}
		return
	}
	s.table = make([]uint32, size)
	for i := range s.vals.Len() {
		h := s.hash(s.vals, i)
		for ; s.table[h&s.mask] != 0; h++ {
		}
		s.table[h&s.mask] = uint32(i + 1)
	}
}

// fibonacci is 2^64 divided by the golden ratio: multiplying by it spreads
// integers over the high bits.
const fibonacci = 0x9E3779B97F4A7C15

func (s *constSet) addInt(k int64) {
	if k == 0 {
		s.hasZero = true
		return
	}
	h := uint64(k) * fibonacci >> s.shift
	for ; s.ints[h&s.mask] != 0; h++ {
	}
	s.ints[h&s.mask] = k
}

// findInts looks integers up.
func findInts[T integer](s *constSet, dst []bool, vals []T) {
	table, mask, shift := s.ints, s.mask, s.shift
	for i, v := range vals {
		k := int64(v)
		if k == 0 {
			dst[i] = s.hasZero
			continue
		}
		h := uint64(k) * fibonacci >> shift
		e := table[h&mask]
		for e != k && e != 0 {
			h++
			e = table[h&mask]
		}
		dst[i] = e == k
	}
}

func mix(h uint64) uint64 {
	h ^= h >> 32
	h *= fibonacci
	return h ^ h>>29
}

// hash of value i of v, of the set's kind.
func (s *constSet) hash(v *columnar.Vec, i int) uint64 {
	switch v.Kind() {
	case columnar.KindBytes:
		return maphash.Bytes(s.seed, v.Bytes(i))
	case columnar.KindFixed16:
		u := v.U128s()[i]
		return mix(u.Hi ^ mix(u.Lo))
	case columnar.KindFloat64:
		fixed, _, _ := v.Raw()
		return mix(wordsOf(fixed)[i])
	}
	fixed, _, _ := v.Raw()
	h, w := uint64(0), v.Kind().Width()
	for _, b := range fixed[i*w : (i+1)*w] {
		h = h<<8 | uint64(b)
	}
	return mix(h)
}

// eval is the three-valued membership of each value of v.
func (s *constSet) eval(x *Eval, v *columnar.Vec) *columnar.Vec {
	dst, out := Result[bool](x, v.Len())
	switch v.Kind() {
	case columnar.KindInt16:
		findInts(s, dst, v.Int16s())
	case columnar.KindInt32:
		findInts(s, dst, v.Int32s())
	case columnar.KindInt64:
		findInts(s, dst, v.Int64s())
	case columnar.KindFixed16:
		findFixed[columnar.U128](s, dst, v)
	case columnar.KindBool:
		findFixed[bool](s, dst, v)
	default:
		s.findBytes(dst, v)
	}
	if s.hasNull {
		nulls := columnar.NewBitmap(len(dst))
		for i, found := range dst {
			if !found {
				nulls.Set(i)
			}
		}
		out = out.WithNulls(nulls)
	}
	if v.Nulls() != nil {
		out = overlay(out, v.Nulls())
	}
	return out
}

// findFixed looks fixed-width values up.
func findFixed[T columnar.Fixed](s *constSet, dst []bool, v *columnar.Vec) {
	have := columnar.Values[T](s.vals)
	for i, p := range columnar.Values[T](v) {
		found := false
		for h := s.hash(v, i); ; h++ {
			k := s.table[h&s.mask]
			if k == 0 {
				break
			}
			if have[k-1] == p {
				found = true
				break
			}
		}
		dst[i] = found
	}
}

// findBytes looks up byte strings, and floats by their bits.
func (s *constSet) findBytes(dst []bool, v *columnar.Vec) {
	w := v.Kind().Width()
	at := func(v *columnar.Vec, i int) []byte {
		if w == 0 {
			return v.Bytes(i)
		}
		fixed, _, _ := v.Raw()
		return fixed[i*w : (i+1)*w]
	}
	for i := range dst {
		p := at(v, i)
		found := false
		for h := s.hash(v, i); ; h++ {
			k := s.table[h&s.mask]
			if k == 0 {
				break
			}
			if string(at(s.vals, int(k-1))) == string(p) {
				found = true
				break
			}
		}
		dst[i] = found
	}
}
