package types

import (
	"encoding/binary"
	"math"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/textsearch"
)

// NeedsSortKey reports whether the physical order of t's values is not their
// SQL order, so that SortKeyVec is not the identity.
func NeedsSortKey(t Type) bool {
	t = t.Storage()
	return NeedsNorm(t) || unsigned(t.OID) || t.OID == OIDTimeTZ || t.OID == OIDBit || t.OID == OIDVarbit || t.OID == OIDTSVector || t.OID.IsArray() || t.OID.Subtype() != 0
}

// SortKeyKind is the physical kind of SortKeyVec's result.
func SortKeyKind(t Type) columnar.Kind {
	switch k := t.Kind(); {
	case !NeedsSortKey(t), k == columnar.KindFloat32, k == columnar.KindFloat64, k == columnar.KindFixed16:
		return k
	}
	return columnar.KindBytes
}

// SortKeyVec gives keys whose physical order is the SQL order of the values,
// equal where those are equal. NULLs stay.
func SortKeyVec(t Type, v *columnar.Vec) *columnar.Vec {
	if !NeedsSortKey(t) {
		return v
	}
	t = t.Storage()
	switch v.Kind() {
	case columnar.KindFloat32, columnar.KindFloat64:
		return NormVec(t, v)
	case columnar.KindFixed16:
		key := timeTZKey
		if t.OID == OIDInterval {
			key = intervalKey
		}
		out := columnar.MakeFixed(columnar.KindFixed16, v.Len())
		from, to := v.U128s(), out.U128s()
		for i, x := range from {
			if !v.Null(i) {
				to[i] = key(x)
			}
		}
		return out.WithNulls(v.Nulls())
	}
	b := columnar.NewBuilder(columnar.KindBytes, v.Len())
	for i := range v.Len() {
		if v.Null(i) {
			b.Null()
			continue
		}
		b.Extend(func(dst []byte) []byte {
			if t.OID == OIDBPChar {
				return append(dst, TrimBPChar(v.Bytes(i))...)
			}
			return appendSortKey(dst, t, at(v, i))
		})
	}
	return b.Build()
}

// AppendSortKey appends a key of value row of v (not NULL) whose byte order is
// the SQL order. No key is a prefix of another, so that keys can be joined.
func AppendSortKey(dst []byte, t Type, v *columnar.Vec, row int) []byte {
	return appendSortKey(dst, t, at(v, row))
}

func appendSortKey(dst []byte, t Type, d datum) []byte {
	if t.OID >= FirstUser {
		if t = t.Storage(); t.OID.IsComposite() {
			t = Record
		}
	}
	switch t.Kind() {
	case columnar.KindBool:
		return append(dst, byte(d.u.Lo))
	case columnar.KindInt16:
		return binary.BigEndian.AppendUint16(dst, uint16(d.u.Lo)^1<<15)
	case columnar.KindInt32:
		return binary.BigEndian.AppendUint32(dst, uint32(d.u.Lo)^1<<31)
	case columnar.KindInt64:
		if unsigned(t.OID) {
			return binary.BigEndian.AppendUint64(dst, d.u.Lo)
		}
		return binary.BigEndian.AppendUint64(dst, d.u.Lo^1<<63)
	case columnar.KindFloat32:
		return appendFloatKey(dst, float64(d.f32()))
	case columnar.KindFloat64:
		return appendFloatKey(dst, d.f64())
	case columnar.KindFixed16:
		u := d.u
		switch t.OID {
		case OIDInterval:
			u = intervalKey(u)
		case OIDTimeTZ:
			u = timeTZKey(u)
		}
		dst = binary.BigEndian.AppendUint64(dst, u.Hi)
		return binary.BigEndian.AppendUint64(dst, u.Lo)
	}
	switch t.OID {
	case OIDNumeric:
		return decimal.SortKey(dst, d.b)
	case OIDBPChar:
		return appendBytesKey(dst, TrimBPChar(d.b))
	case OIDBit, OIDVarbit:
		n, data := Bits(d.b)
		return binary.BigEndian.AppendUint32(appendBytesKey(dst, data), uint32(n))
	case OIDJSONB:
		return appendJSONKey(dst, d.b, true)
	case OIDTSVector:
		return textsearch.AppendVectorKey(dst, d.b)
	case OIDTSQuery:
		return textsearch.AppendQueryKey(dst, d.b)
	case OIDRecord:
		return appendRecordKey(dst, d.b)
	}
	if t.OID.IsArray() {
		return appendArrayKey(dst, d.b)
	}
	if i := Lookup(t.OID); i != nil && i.Subtype != 0 {
		if i.Range != 0 {
			return appendMultirangeKey(dst, i.Range, ReadMultirange(i.Range, d.b))
		}
		return appendRangeKey(dst, t.OID, ReadRange(t.OID, d.b))
	}
	return appendBytesKey(dst, d.b)
}

func appendFloatKey(dst []byte, f float64) []byte {
	if f != f {
		f = NaN
	}
	u := math.Float64bits(f + 0)
	if u>>63 != 0 {
		u = ^u
	} else {
		u |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(dst, u)
}

// The bytes that structure keys. A string ends with {0, keyEnd}; a zero byte
// in it is {0, keyZero}. Elements have keyValue or keyNull before them; a list
// of them ends with keyEnd.
const (
	keyEnd   = 0x00
	keyZero  = 0xFF
	keyValue = 0x01
	keyNull  = 0x02
)

func appendBytesKey(dst, b []byte) []byte {
	for _, c := range b {
		if dst = append(dst, c); c == 0 {
			dst = append(dst, keyZero)
		}
	}
	return append(dst, 0, keyEnd)
}

func appendArrayKey(dst, p []byte) []byte {
	a := ReadArray(p)
	t := Of(a.Elem)
	for i := range a.N {
		if a.Null(i) {
			dst = append(dst, keyNull)
			continue
		}
		dst = appendSortKey(append(dst, keyValue), t, a.datum(i))
	}
	dst = append(dst, keyEnd, byte(a.NDim))
	for _, d := range a.Dims[:a.NDim] {
		dst = binary.BigEndian.AppendUint32(dst, uint32(d.Len)^1<<31)
	}
	for _, d := range a.Dims[:a.NDim] {
		dst = binary.BigEndian.AppendUint32(dst, uint32(d.Lower)^1<<31)
	}
	return dst
}

func appendRecordKey(dst, p []byte) []byte {
	r := ReadRecord(p)
	for i := range r.N {
		if r.Null(i) {
			dst = append(dst, keyNull)
			continue
		}
		dst = appendSortKey(append(dst, keyValue), r.Type(i), r.datum(i))
	}
	return append(dst, keyEnd)
}

func appendJSONKey(dst []byte, j JSONDoc, top bool) []byte {
	k := j.Kind()
	if top && k == JSONKindArray && j.Len() == 0 {
		return append(dst, 0)
	}
	dst = append(dst, byte(1+jsonRank(k)))
	switch k {
	case JSONKindString:
		return appendBytesKey(dst, j.Str())
	case JSONKindNumber:
		return decimal.SortKey(dst, j.Number())
	case JSONKindFalse:
		return append(dst, 0)
	case JSONKindTrue:
		return append(dst, 1)
	case JSONKindNull:
		return dst
	}
	n := j.Len()
	dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	for i := range n {
		if k == JSONKindArray {
			dst = appendJSONKey(dst, j.Elem(i), false)
			continue
		}
		dst = appendBytesKey(dst, j.Key(i))
		dst = appendJSONKey(dst, j.Value(i), false)
	}
	return dst
}
