package differential

import (
	"bytes"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// An orderLayout is how the rows of a group are laid out so that the physical
// order of the layout's columns is the order asked for:
//
//	the key columns | for each ordering column a transformed one | the others
//
// A descending column is stored as values of the reverse order, and before a
// column whose NULLs come first stands a bool that is false for them. Nothing is
// lost: restore gives the original columns back.
type orderLayout struct {
	kinds []columnar.Kind // of the original
	key   []int
	items []orderItem
	rest  []int

	laid    []columnar.Kind // of the layout
	ordered int             // columns after the key that make up the order asked for
}

type orderItem struct {
	col  int
	desc bool
	flag bool // a bool says where it is not NULL
}

func newOrderLayout(kinds []columnar.Kind, key []int, order []Order) *orderLayout {
	l := &orderLayout{kinds: kinds, key: key}
	used := make([]bool, len(kinds))
	for _, c := range key {
		used[c] = true
		l.laid = append(l.laid, kinds[c])
	}
	for _, o := range order {
		if used[o.Col] {
			continue // constant in a group, or given by an earlier column
		}
		used[o.Col] = true
		it := orderItem{col: o.Col, desc: o.Desc, flag: o.NullsFirst && !o.NotNull}
		l.items = append(l.items, it)
		if it.flag {
			l.laid = append(l.laid, columnar.KindBool)
		}
		l.laid = append(l.laid, reversedKind(kinds[o.Col], o.Desc))
	}
	l.ordered = len(l.laid) - len(key)
	for c, k := range kinds {
		if !used[c] {
			l.rest = append(l.rest, c)
			l.laid = append(l.laid, k)
		}
	}
	return l
}

// rowKinds are the columns of the layout after the key.
func (l *orderLayout) rowKinds() []columnar.Kind { return l.laid[len(l.key):] }

// plain reports whether the layout only reorders columns.
func (l *orderLayout) plain() bool {
	return !slices.ContainsFunc(l.items, func(it orderItem) bool { return it.flag || it.desc })
}

// lay gives the columns of the layout.
func (l *orderLayout) lay(b *columnar.Batch) columnar.Batch {
	out := columnar.Batch{Cols: make([]*columnar.Vec, 0, len(l.laid)), N: b.N}
	for _, c := range l.key {
		out.Cols = append(out.Cols, b.Cols[c])
	}
	for _, it := range l.items {
		v := b.Cols[it.col]
		if it.flag {
			out.Cols = append(out.Cols, notNull(v))
		}
		if it.desc {
			v = reversed(v)
		}
		out.Cols = append(out.Cols, v)
	}
	for _, c := range l.rest {
		out.Cols = append(out.Cols, b.Cols[c])
	}
	return out
}

// layDelta is lay of a delta.
func (l *orderLayout) layDelta(d *dataflow.Delta) *dataflow.Delta {
	return &dataflow.Delta{Batch: l.lay(&d.Batch), Diffs: d.Diffs}
}

// restore gives the original columns of columns of the layout.
func (l *orderLayout) restore(cols []*columnar.Vec) []*columnar.Vec {
	out := make([]*columnar.Vec, len(l.kinds))
	for i, c := range l.key {
		out[c] = cols[i]
	}
	at := len(l.key)
	for _, it := range l.items {
		if it.flag {
			at++
		}
		out[it.col] = cols[at]
		if it.desc {
			out[it.col] = unreversed(cols[at], l.kinds[it.col])
		}
		at++
	}
	for _, c := range l.rest {
		out[c] = cols[at]
		at++
	}
	return out
}

func notNull(v *columnar.Vec) *columnar.Vec {
	out := columnar.MakeFixed(columnar.KindBool, v.Len())
	bs := out.Bools()
	for i := range bs {
		bs[i] = !v.Null(i)
	}
	return out
}

// reversedKind is the kind of a descending column in the layout: floats become
// integers, the others keep theirs.
func reversedKind(k columnar.Kind, desc bool) columnar.Kind {
	switch {
	case !desc:
	case k == columnar.KindFloat32:
		return columnar.KindInt32
	case k == columnar.KindFloat64:
		return columnar.KindInt64
	}
	return k
}

// reversed gives values in the reverse of the order of v's, from which
// unreversed finds v's. NULLs stay NULL.
func reversed(v *columnar.Vec) *columnar.Vec {
	if v.Kind() == columnar.KindBytes {
		return mapBytes(v, reverseBytes)
	}
	n := v.Len()
	out := columnar.MakeFixed(reversedKind(v.Kind(), true), n)
	switch v.Kind() {
	case columnar.KindBool:
		mapFixed(v.Bools(), out.Bools(), func(x bool) bool { return !x })
	case columnar.KindInt16:
		mapFixed(v.Int16s(), out.Int16s(), func(x int16) int16 { return ^x })
	case columnar.KindInt32:
		mapFixed(v.Int32s(), out.Int32s(), func(x int32) int32 { return ^x })
	case columnar.KindInt64:
		mapFixed(v.Int64s(), out.Int64s(), func(x int64) int64 { return ^x })
	case columnar.KindFloat32:
		mapFixed(v.Float32s(), out.Int32s(), func(x float32) int32 { return int32(^uint32(f32Word(x)) ^ 1<<31) })
	case columnar.KindFloat64:
		mapFixed(v.Float64s(), out.Int64s(), func(x float64) int64 { return wordInt(^f64Word(x)) })
	case columnar.KindFixed16:
		mapFixed(v.U128s(), out.U128s(), func(x columnar.U128) columnar.U128 { return columnar.U128{Hi: ^x.Hi, Lo: ^x.Lo} })
	}
	return withZeroNulls(out, v.Nulls())
}

func unreversed(v *columnar.Vec, kind columnar.Kind) *columnar.Vec {
	out := columnar.MakeFixed(kind, v.Len())
	switch kind {
	case columnar.KindBytes:
		return mapBytes(v, unreverseBytes)
	case columnar.KindFloat32:
		mapFixed(v.Int32s(), out.Float32s(), func(x int32) float32 { return wordF32(uint64(^(uint32(x) ^ 1<<31))) })
	case columnar.KindFloat64:
		mapFixed(v.Int64s(), out.Float64s(), func(x int64) float64 { return wordF64(^intWord(x)) })
	default:
		return reversed(v)
	}
	return withZeroNulls(out, v.Nulls())
}

func mapFixed[T, U columnar.Fixed](in []T, out []U, f func(T) U) {
	for i, x := range in {
		out[i] = f(x)
	}
}

// withZeroNulls makes slots NULL, and zero as they must be.
func withZeroNulls(v *columnar.Vec, nulls columnar.Bitmap) *columnar.Vec {
	if nulls == nil {
		return v
	}
	fixed, _, _ := v.Raw()
	w := v.Kind().Width()
	for i := range v.Len() {
		if nulls.Get(i) {
			clear(fixed[i*w : (i+1)*w])
		}
	}
	return v.WithNulls(nulls)
}

func mapBytes(v *columnar.Vec, f func(dst, b []byte) []byte) *columnar.Vec {
	out := columnar.NewBuilder(columnar.KindBytes, v.Len())
	for i := range v.Len() {
		if v.Null(i) {
			out.Null()
			continue
		}
		b := v.Bytes(i)
		out.Extend(func(dst []byte) []byte { return f(dst, b) })
	}
	return out.Build()
}

// reverseBytes appends a string that sorts in reverse: a zero byte is escaped as
// 0 255, the end marked by 0 0, and all complemented.
func reverseBytes(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			break
		}
		dst = appendComplement(dst, b[:i])
		dst = append(dst, 255, 0)
		b = b[i+1:]
	}
	return append(appendComplement(dst, b), 255, 255)
}

func unreverseBytes(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, 255)
		dst = appendComplement(dst, b[:i])
		if b[i+1] == 255 {
			return dst
		}
		dst = append(dst, 0)
		b = b[i+2:]
	}
}

func appendComplement(dst, b []byte) []byte {
	for _, x := range b {
		dst = append(dst, ^x)
	}
	return dst
}
