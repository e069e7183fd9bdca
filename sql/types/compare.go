package types

import (
	"bytes"
	"cmp"
	"math"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/textsearch"
)

// Compare orders value i of a and value j of b, both of type t and not NULL,
// as SQL orders them.
func Compare(t Type, a *columnar.Vec, i int, b *columnar.Vec, j int) int {
	return compareDatum(t, at(a, i), at(b, j))
}

// CompareBytes is Compare for stored forms of a type of KindBytes.
func CompareBytes(t Type, a, b []byte) int { return compareDatum(t, datum{b: a}, datum{b: b}) }

func compareDatum(t Type, x, y datum) int {
	t = t.Storage()
	switch t.Kind() {
	case columnar.KindFloat32:
		return compareFloat(float64(x.f32()), float64(y.f32()))
	case columnar.KindFloat64:
		return compareFloat(x.f64(), y.f64())
	case columnar.KindFixed16:
		switch t.OID {
		case OIDInterval:
			return CompareInterval(UnpackInterval(x.u), UnpackInterval(y.u))
		case OIDTimeTZ:
			return CompareTimeTZ(x.u, y.u)
		}
		if c := cmp.Compare(x.u.Hi, y.u.Hi); c != 0 {
			return c
		}
		return cmp.Compare(x.u.Lo, y.u.Lo)
	case columnar.KindBytes:
		return compareBytes(t, x.b, y.b)
	}
	if unsigned(t.OID) {
		return cmp.Compare(x.u.Lo, y.u.Lo)
	}
	return cmp.Compare(x.int(), y.int())
}

// unsigned reports whether the 64-bit values of a type have no sign.
func unsigned(o OID) bool { return o == OIDPgLSN || o == OIDXid8 }

func compareBytes(t Type, x, y []byte) int {
	switch t.OID {
	case OIDNumeric:
		return decimal.Compare(x, y)
	case OIDBPChar:
		return bytes.Compare(TrimBPChar(x), TrimBPChar(y))
	case OIDBit, OIDVarbit:
		return CompareBits(x, y)
	case OIDJSONB:
		return CompareJSON(x, y)
	case OIDTSVector:
		return textsearch.CompareVectors(x, y)
	case OIDTSQuery:
		return textsearch.CompareQueries(x, y)
	case OIDRecord:
		return compareRecords(x, y)
	}
	if t.OID.IsComposite() {
		return compareRecords(x, y)
	}
	if t.OID.IsArray() {
		return compareArrays(x, y)
	}
	if i := Lookup(t.OID); i != nil && i.Subtype != 0 {
		if i.Range != 0 {
			return OpsOf(i.Range).CompareAll(ReadMultirange(i.Range, x), ReadMultirange(i.Range, y))
		}
		return OpsOf(t.OID).Compare(ReadRange(t.OID, x), ReadRange(t.OID, y))
	}
	return bytes.Compare(x, y)
}

// compareFloat orders NaN after all, and -0 with 0.
func compareFloat(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	case x == y:
		return 0
	case x != x && y != y:
		return 0
	case x != x:
		return 1
	}
	return -1
}

// CompareTimeTZ orders by the moment, then by the zone.
func CompareTimeTZ(x, y columnar.U128) int {
	a, b := timeTZKey(x), timeTZKey(y)
	if a.Hi != b.Hi {
		return cmp.Compare(a.Hi, b.Hi)
	}
	return cmp.Compare(a.Lo, b.Lo)
}

// timeTZKey is ordered physically as the times are.
func timeTZKey(v columnar.U128) columnar.U128 {
	t, west := UnpackTimeTZ(v)
	return columnar.U128{Hi: uint64(t+int64(west)*MicrosPerSecond) ^ 1<<63, Lo: uint64(int64(west)) ^ 1<<63}
}

func compareArrays(x, y []byte) int {
	a, b := ReadArray(x), ReadArray(y)
	t := Of(a.Elem)
	for i := range min(a.N, b.N) {
		switch an, bn := a.Null(i), b.Null(i); {
		case an && bn:
			continue
		case an:
			return 1
		case bn:
			return -1
		}
		if c := compareDatum(t, a.datum(i), b.datum(i)); c != 0 {
			return c
		}
	}
	if c := cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(a.NDim, b.NDim)); c != 0 {
		return c
	}
	for i := range a.NDim {
		if c := cmp.Compare(a.Dims[i].Len, b.Dims[i].Len); c != 0 {
			return c
		}
	}
	for i := range a.NDim {
		if c := cmp.Compare(a.Dims[i].Lower, b.Dims[i].Lower); c != 0 {
			return c
		}
	}
	return 0
}

func compareRecords(x, y []byte) int {
	a, b := ReadRecord(x), ReadRecord(y)
	for i := range min(a.N, b.N) {
		switch an, bn := a.Null(i), b.Null(i); {
		case an && bn:
			continue
		case an:
			return 1
		case bn:
			return -1
		}
		t := a.Type(i)
		if u := b.Type(i); t != u { // not comparable, but in some order
			if c := cmp.Compare(t.OID, u.OID); t.Kind() != u.Kind() {
				return c
			}
		}
		if c := compareDatum(t, a.datum(i), b.datum(i)); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.N, b.N)
}

// SimilarRecords checks that two records can be compared as far as that goes:
// to the first difference of their fields.
func SimilarRecords(x, y []byte) *pgerror.Error {
	a, b := ReadRecord(x), ReadRecord(y)
	for i := range min(a.N, b.N) {
		t, u := a.Type(i).Storage(), b.Type(i).Storage()
		if t.OID != u.OID {
			return pgerror.New(pgerror.DatatypeMismatch, "cannot compare dissimilar column types %s and %s at record column %d", a.Type(i).OID, b.Type(i).OID, i+1)
		}
		if an, bn := a.Null(i), b.Null(i); an && bn {
			continue
		} else if an || bn {
			return nil
		}
		if err := similar(t, a.datum(i), b.datum(i)); err != nil {
			return err
		}
		if compareDatum(t, a.datum(i), b.datum(i)) != 0 {
			return nil
		}
	}
	if a.N != b.N {
		return pgerror.New(pgerror.DatatypeMismatch, "cannot compare record types with different numbers of columns")
	}
	return nil
}

// similar checks two values of one type that may be, or have in them, records.
func similar(t Type, x, y datum) *pgerror.Error {
	switch {
	case t.OID == OIDRecord || t.OID.IsComposite():
		return SimilarRecords(x.b, y.b)
	case t.OID == OIDRecordArray || t.OID.Elem().IsComposite():
		return SimilarArrays(x.b, y.b)
	}
	return nil
}

// SimilarArrays checks two arrays of records as SimilarRecords does records.
func SimilarArrays(x, y []byte) *pgerror.Error {
	a, b := ReadArray(x), ReadArray(y)
	for i := range min(a.N, b.N) {
		if an, bn := a.Null(i), b.Null(i); an && bn {
			continue
		} else if an || bn {
			return nil
		}
		l, r := a.datum(i), b.datum(i)
		if err := SimilarRecords(l.b, r.b); err != nil {
			return err
		}
		if compareRecords(l.b, r.b) != 0 {
			return nil
		}
	}
	return nil
}

// jsonRank is the order of kinds: null, string, number, boolean, array, object.
func jsonRank(k JSONKind) int {
	if k == JSONKindTrue {
		k = JSONKindFalse
	}
	return int(k)
}

// CompareJSON orders jsonb values.
func CompareJSON(x, y JSONDoc) int {
	// An empty array at the top sorts before everything, for history's sake.
	xe := x.Kind() == JSONKindArray && x.Len() == 0
	ye := y.Kind() == JSONKindArray && y.Len() == 0
	if xe != ye && (!x.IsContainer() || !y.IsContainer()) {
		if xe {
			return -1
		}
		return 1
	}
	return compareJSON(x, y)
}

func compareJSON(x, y JSONDoc) int {
	k := x.Kind()
	if c := cmp.Compare(jsonRank(k), jsonRank(y.Kind())); c != 0 {
		return c
	}
	switch k {
	case JSONKindString:
		return bytes.Compare(x.Str(), y.Str())
	case JSONKindNumber:
		return decimal.Compare(x.Number(), y.Number())
	case JSONKindFalse, JSONKindTrue:
		return cmp.Compare(k, y.Kind())
	case JSONKindNull:
		return 0
	}
	n := x.Len()
	if c := cmp.Compare(n, y.Len()); c != 0 {
		return c
	}
	for i := range n {
		if k == JSONKindArray {
			if c := compareJSON(x.Elem(i), y.Elem(i)); c != 0 {
				return c
			}
			continue
		}
		if c := bytes.Compare(x.Key(i), y.Key(i)); c != 0 {
			return c
		}
		if c := compareJSON(x.Value(i), y.Value(i)); c != 0 {
			return c
		}
	}
	return 0
}

// NeedsNorm reports whether t has equal values of different physical form, so
// that NormVec is not the identity.
func NeedsNorm(t Type) bool {
	switch t.OID {
	case OIDNumeric, OIDFloat4, OIDFloat8, OIDInterval, OIDBPChar, OIDJSONB, OIDTSQuery, OIDRecord:
		return true
	}
	if t.OID >= FirstUser {
		if t = t.Storage(); t.OID < FirstUser {
			return NeedsNorm(t)
		}
		if t.OID.IsComposite() {
			return true
		}
	}
	if e := t.OID.Elem(); e != 0 {
		return NeedsNorm(Of(e))
	}
	sub := t.OID.Subtype()
	return sub != 0 && NeedsNorm(Of(sub))
}

// NormVec gives values of type t that are equal in SQL the same physical form,
// that of one of the equal values. NULLs stay.
func NormVec(t Type, v *columnar.Vec) *columnar.Vec {
	if !NeedsNorm(t) {
		return v
	}
	n := v.Len()
	b := columnar.NewBuilder(v.Kind(), n)
	for i := range n {
		if v.Null(i) {
			b.Null()
			continue
		}
		normDatum(t, at(v, i)).appendTo(b)
	}
	return b.Build()
}

func normDatum(t Type, d datum) datum {
	if t.OID >= FirstUser {
		if t = t.Storage(); t.OID.IsComposite() {
			t = Record
		}
	}
	switch t.OID {
	case OIDFloat4:
		f := d.f32()
		if f != f {
			f = float32(NaN)
		}
		return datum{u: columnar.U128{Lo: uint64(math.Float32bits(f + 0))}}
	case OIDFloat8:
		f := d.f64()
		if f != f {
			f = NaN
		}
		return datum{u: columnar.U128{Lo: math.Float64bits(f + 0)}} // -0+0 is 0
	case OIDInterval:
		return datum{u: NormInterval(d.u)}
	case OIDNumeric:
		if s, ok := decimal.Scale(d.b); ok && s > 0 {
			d.b = decimal.Normalize(nil, d.b)
		}
	case OIDBPChar:
		d.b = TrimBPChar(d.b)
	case OIDJSONB:
		d.b = NormJSON(d.b)
	case OIDTSQuery:
		d.b = textsearch.NormQuery(d.b)
	case OIDRecord:
		d.b = normRecord(d.b)
	default:
		if e := t.OID.Elem(); e != 0 && NeedsNorm(Of(e)) {
			d.b = normArray(d.b)
		} else if i := Lookup(t.OID); i != nil && i.Multirange != 0 {
			d.b = normRange(t.OID, ReadRange(t.OID, d.b)).Append(nil, t.OID)
		} else if i != nil && i.Range != 0 {
			rs := ReadMultirange(i.Range, d.b)
			for k := range rs {
				rs[k] = normRange(i.Range, rs[k])
			}
			d.b = AppendMultirange(nil, i.Range, rs)
		}
	}
	return d
}

func normArray(p []byte) []byte {
	a := ReadArray(p)
	t := Of(a.Elem)
	b := columnar.NewBuilder(a.kind, a.N)
	for i := range a.N {
		if a.Null(i) {
			b.Null()
			continue
		}
		normDatum(t, a.datum(i)).appendTo(b)
	}
	return AppendArray(nil, a.Elem, a.Dims[:a.NDim], b.Build(), 0, a.N)
}

func normRecord(p []byte) []byte {
	r := ReadRecord(p)
	var b RecordBuilder
	for i := range r.N {
		if r.Null(i) {
			b.null(r.Type(i))
			continue
		}
		b.field(r.Type(i), normDatum(r.Type(i), r.datum(i)))
	}
	return b.Append(nil)
}

// NormJSON gives equal documents the same bytes: all numbers lose their
// trailing zeros.
func NormJSON(j JSONDoc) JSONDoc {
	if !hasScale(j) {
		return j
	}
	var b JSONBuilder
	addNorm(&b, j)
	return b.Append(nil)
}

func hasScale(j JSONDoc) bool {
	switch j.Kind() {
	case JSONKindNumber:
		s, _ := decimal.Scale(j.Number())
		return s > 0
	case JSONKindArray:
		for i := range j.Len() {
			if hasScale(j.Elem(i)) {
				return true
			}
		}
	case JSONKindObject:
		for i := range j.Len() {
			if hasScale(j.Value(i)) {
				return true
			}
		}
	}
	return false
}

func addNorm(b *JSONBuilder, j JSONDoc) {
	switch j.Kind() {
	case JSONKindNumber:
		b.Number(decimal.Normalize(nil, j.Number()))
	case JSONKindArray:
		b.Begin(false)
		for i := range j.Len() {
			addNorm(b, j.Elem(i))
		}
		b.End()
	case JSONKindObject:
		b.Begin(true)
		for i := range j.Len() {
			b.Key(j.Key(i))
			addNorm(b, j.Value(i))
		}
		b.End()
	default:
		b.Doc(j)
	}
}
