// Package reference is the naive engine: each operator in its batch meaning over
// a Z-set held in a plain map. It is the oracle that tests hold the real engine
// to: for every epoch, what the engine's outputs add up to equals what these
// functions give for what the inputs add up to. It is made to be read, not to be
// fast.
package reference

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// Value is a value of a row: nil (NULL), bool, int16, int32, int64, float32,
// float64, columnar.U128, or string (of KindBytes).
type Value any

// Row is a row.
type Row []Value

// ZSet maps rows to diffs that are not zero.
type ZSet struct{ m map[string]*Entry }

// Entry is a row and its diff.
type Entry struct {
	Row  Row
	Diff int64
}

// New makes a Z-set of rows with diff 1 each.
func New(rows ...Row) *ZSet {
	z := &ZSet{m: map[string]*Entry{}}
	for _, r := range rows {
		z.Add(r, 1)
	}
	return z
}

// encode gives equal rows, and no others, equal strings. Values are equal if
// their bits are.
func encode(r Row) string {
	var b []byte
	for _, v := range r {
		switch x := v.(type) {
		case nil:
			b = append(b, 0)
		case bool:
			b = append(b, 1, 0)
			if x {
				b[len(b)-1] = 1
			}
		case int16:
			b = binary.BigEndian.AppendUint16(append(b, 2), uint16(x))
		case int32:
			b = binary.BigEndian.AppendUint32(append(b, 3), uint32(x))
		case int64:
			b = binary.BigEndian.AppendUint64(append(b, 4), uint64(x))
		case float32:
			b = binary.BigEndian.AppendUint32(append(b, 5), math.Float32bits(x))
		case float64:
			b = binary.BigEndian.AppendUint64(append(b, 6), math.Float64bits(x))
		case columnar.U128:
			b = binary.BigEndian.AppendUint64(append(b, 7), x.Hi)
			b = binary.BigEndian.AppendUint64(b, x.Lo)
		case string:
			b = binary.AppendUvarint(append(b, 8), uint64(len(x)))
			b = append(b, x...)
		default:
			panic(fmt.Sprintf("reference: value of type %T", v))
		}
	}
	return string(b)
}

// Add adds diff times a row.
func (z *ZSet) Add(r Row, diff int64) {
	if diff == 0 {
		return
	}
	k := encode(r)
	e := z.m[k]
	if e == nil {
		e = &Entry{Row: r}
		z.m[k] = e
	}
	if e.Diff += diff; e.Diff == 0 {
		delete(z.m, k)
	}
}

// AddAll adds factor times another Z-set.
func (z *ZSet) AddAll(o *ZSet, factor int64) {
	for _, e := range o.m {
		z.Add(e.Row, factor*e.Diff)
	}
}

// AddDelta adds the rows of a delta.
func (z *ZSet) AddDelta(d *dataflow.Delta) {
	for i := range d.N {
		r := make(Row, len(d.Cols))
		for c, v := range d.Cols {
			r[c] = ValueAt(v, i)
		}
		z.Add(r, d.Diff(i))
	}
}

// ValueAt is value i of a vector.
func ValueAt(v *columnar.Vec, i int) Value {
	if v.Null(i) {
		return nil
	}
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
	case columnar.KindFixed16:
		return v.U128s()[i]
	}
	return string(v.Bytes(i))
}

// Append appends a value to a builder of its kind.
func Append(b *columnar.Builder, v Value) {
	switch x := v.(type) {
	case nil:
		b.Null()
	case bool:
		b.Bool(x)
	case int16:
		b.Int16(x)
	case int32:
		b.Int32(x)
	case int64:
		b.Int64(x)
	case float32:
		b.Float32(x)
	case float64:
		b.Float64(x)
	case columnar.U128:
		b.U128(x)
	case string:
		b.String(x)
	}
}

// Delta makes a delta of rows of the given kinds.
func Delta(kinds []columnar.Kind, entries []Entry) *dataflow.Delta {
	bs := make([]*columnar.Builder, len(kinds))
	for c, k := range kinds {
		bs[c] = columnar.NewBuilder(k, len(entries))
	}
	d := &dataflow.Delta{Batch: columnar.Batch{N: len(entries)}, Diffs: make([]dataflow.Diff, len(entries))}
	for i, e := range entries {
		for c := range kinds {
			Append(bs[c], e.Row[c])
		}
		d.Diffs[i] = e.Diff
	}
	for _, b := range bs {
		d.Cols = append(d.Cols, b.Build())
	}
	return d
}

// Len is the number of distinct rows; Diff the diff of a row.
func (z *ZSet) Len() int { return len(z.m) }

// Diff is the diff of a row.
func (z *ZSet) Diff(r Row) int64 {
	if e := z.m[encode(r)]; e != nil {
		return e.Diff
	}
	return 0
}

// Entries lists the rows in physical order.
func (z *ZSet) Entries() []Entry {
	out := make([]Entry, 0, len(z.m))
	for _, e := range z.m {
		out = append(out, *e)
	}
	sort.Slice(out, func(i, j int) bool { return CompareRows(out[i].Row, out[j].Row) < 0 })
	return out
}

// Equal reports whether two Z-sets are the same.
func (z *ZSet) Equal(o *ZSet) bool {
	if len(z.m) != len(o.m) {
		return false
	}
	for k, e := range z.m {
		if x := o.m[k]; x == nil || x.Diff != e.Diff {
			return false
		}
	}
	return true
}

// Difference describes how z differs from what is wanted, at most `limit` rows.
func (z *ZSet) Difference(want *ZSet, limit int) string {
	d := New()
	d.AddAll(z, 1)
	d.AddAll(want, -1)
	var b strings.Builder
	for i, e := range d.Entries() {
		if i == limit {
			fmt.Fprintf(&b, "… %d more\n", d.Len()-limit)
			break
		}
		fmt.Fprintf(&b, "%v: have %d, want %d\n", e.Row, z.Diff(e.Row), want.Diff(e.Row))
	}
	return b.String()
}

// Compare orders values of one kind physically, NULL last (see columnar).
func Compare(a, b Value) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	switch x := a.(type) {
	case bool:
		return cmp.Compare(number(x), number(b.(bool)))
	case int16:
		return cmp.Compare(x, b.(int16))
	case int32:
		return cmp.Compare(x, b.(int32))
	case int64:
		return cmp.Compare(x, b.(int64))
	case float32:
		return compareFloats(float64(x), float64(b.(float32)))
	case float64:
		return compareFloats(x, b.(float64))
	case columnar.U128:
		y := b.(columnar.U128)
		return cmp.Or(cmp.Compare(x.Hi, y.Hi), cmp.Compare(x.Lo, y.Lo))
	}
	return bytes.Compare([]byte(a.(string)), []byte(b.(string)))
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compareFloats has NaN greatest and -0 before +0.
func compareFloats(a, b float64) int {
	switch {
	case a != a && b != b:
		return 0
	case a != a:
		return 1
	case b != b:
		return -1
	case a == b:
		return number(math.Signbit(b)) - number(math.Signbit(a))
	}
	return cmp.Compare(a, b)
}

// CompareRows orders rows column by column.
func CompareRows(a, b Row) int {
	for i := range a {
		if c := Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}
