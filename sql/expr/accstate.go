package expr

import (
	"encoding/binary"
	"math/big"

	"github.com/streamdb/streamdb/columnar"
)

// SavedAccumulator is an Accumulator whose state can be kept as bytes and loaded
// again. What was added and taken back leaves no trace in them, so that states
// can be told to be equal. All running states but those that collect rows are.
type SavedAccumulator interface {
	Accumulator
	AppendState(dst []byte) []byte
	LoadState(b []byte) error
}

// stateReader takes a state apart.
type stateReader struct{ b []byte }

func (r *stateReader) varint() int64 {
	v, n := binary.Varint(r.b)
	r.b = r.b[max(n, 0):]
	return v
}

func (r *stateReader) part() []byte {
	n := int(r.varint())
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func appendInts(dst []byte, vs ...int64) []byte {
	for _, v := range vs {
		dst = binary.AppendVarint(dst, v)
	}
	return dst
}

func appendPart(dst, p []byte) []byte {
	return append(binary.AppendVarint(dst, int64(len(p))), p...)
}

// AppendState implements SavedAccumulator.
func (a *countAcc) AppendState(dst []byte) []byte { return appendInts(dst, a.n) }

// LoadState implements SavedAccumulator.
func (a *countAcc) LoadState(b []byte) error {
	r := stateReader{b}
	a.n = r.varint()
	return nil
}

// AppendState implements SavedAccumulator.
func (a *intSum) AppendState(dst []byte) []byte { return a.acc.AppendState(appendInts(dst, a.n)) }

// LoadState implements SavedAccumulator.
func (a *intSum) LoadState(b []byte) error {
	r := stateReader{b}
	a.n = r.varint()
	return a.acc.LoadState(r.b)
}

// AppendState implements SavedAccumulator.
func (a *numericVar) AppendState(dst []byte) []byte {
	dst = appendPart(appendInts(dst, a.n), a.sum.AppendState(nil))
	return a.squares.AppendState(dst)
}

// LoadState implements SavedAccumulator.
func (a *numericVar) LoadState(b []byte) error {
	r := stateReader{b}
	a.n = r.varint()
	if err := a.sum.LoadState(r.part()); err != nil {
		return err
	}
	return a.squares.LoadState(r.b)
}

// sums are the exact sums that count.
func (s *floatSums) sums() []*big.Float {
	switch {
	case s.two:
		return []*big.Float{&s.sx, &s.sxx, &s.sy, &s.syy, &s.sxy}
	case s.squares:
		return []*big.Float{&s.sx, &s.sxx}
	}
	return []*big.Float{&s.sx}
}

// AppendState implements SavedAccumulator.
func (s *floatSums) AppendState(dst []byte) []byte {
	dst = appendInts(dst, s.n, s.badX.nan, s.badX.inf, s.badX.negInf, s.badY.nan, s.badY.inf, s.badY.negInf)
	var mant big.Float
	for _, f := range s.sums() {
		// f = mant × 2^exp, as an integer: nothing in f is beyond its precision.
		exp := f.MantExp(&mant)
		bits := int(mant.MinPrec())
		n, _ := mant.SetMantExp(&mant, bits).Int(nil)
		dst = appendInts(dst, int64(n.Sign()), int64(exp-bits))
		dst = appendPart(dst, n.Bytes())
	}
	return dst
}

// LoadState implements SavedAccumulator.
func (s *floatSums) LoadState(b []byte) error {
	s.Reset()
	r := stateReader{b}
	s.n = r.varint()
	for _, v := range []*int64{&s.badX.nan, &s.badX.inf, &s.badX.negInf, &s.badY.nan, &s.badY.inf, &s.badY.negInf} {
		*v = r.varint()
	}
	for _, f := range s.sums() {
		sign, exp := r.varint(), r.varint()
		n := new(big.Int).SetBytes(r.part())
		if sign < 0 {
			n.Neg(n)
		}
		f.SetInt(n)
		if sign != 0 {
			f.SetMantExp(f, int(exp))
		}
	}
	return nil
}

// AppendState implements SavedAccumulator.
func (a *intervalSum) AppendState(dst []byte) []byte {
	dst = appendInts(dst, a.n, a.months, a.days, int64(a.micros.Sign()))
	return append(dst, a.micros.Bytes()...)
}

// LoadState implements SavedAccumulator.
func (a *intervalSum) LoadState(b []byte) error {
	r := stateReader{b}
	a.n, a.months, a.days = r.varint(), r.varint(), r.varint()
	sign := r.varint()
	a.micros.SetBytes(r.b)
	if sign < 0 {
		a.micros.Neg(&a.micros)
	}
	return nil
}

// AppendState implements SavedAccumulator.
func (a *extreme) AppendState(dst []byte) []byte {
	if a.best == nil {
		return dst
	}
	return AppendValue(append(dst, 1), a.best, 0)
}

// LoadState implements SavedAccumulator.
func (a *extreme) LoadState(b []byte) error {
	a.best = nil
	if len(b) > 0 {
		a.best = ReadValue(a.typ.Kind(), b[1:])
	}
	return nil
}

// AppendState implements SavedAccumulator.
func (a *boolAcc) AppendState(dst []byte) []byte { return appendInts(dst, a.n, a.trues) }

// LoadState implements SavedAccumulator.
func (a *boolAcc) LoadState(b []byte) error {
	r := stateReader{b}
	a.n, a.trues = r.varint(), r.varint()
	return nil
}

// AppendState implements SavedAccumulator.
func (a *bitAcc) AppendState(dst []byte) []byte {
	return appendInts(appendInts(dst, a.n), a.ones[:]...)
}

// LoadState implements SavedAccumulator.
func (a *bitAcc) LoadState(b []byte) error {
	r := stateReader{b}
	a.n = r.varint()
	for i := range a.ones {
		a.ones[i] = r.varint()
	}
	return nil
}

// AppendValue appends the bits of a value that is not NULL.
func AppendValue(dst []byte, v *columnar.Vec, i int) []byte {
	if v.Kind() == columnar.KindBytes {
		return append(dst, v.Bytes(i)...)
	}
	fixed, _, _ := v.Raw()
	w := v.Kind().Width()
	return append(dst, fixed[i*w:(i+1)*w]...)
}

// ReadValue is a vector of the one value that AppendValue wrote.
func ReadValue(kind columnar.Kind, b []byte) *columnar.Vec {
	if kind == columnar.KindBytes {
		out := columnar.NewBuilder(kind, 1)
		out.Bytes(b)
		return out.Build()
	}
	out := columnar.MakeFixed(kind, 1)
	fixed, _, _ := out.Raw()
	copy(fixed, b)
	return out
}
