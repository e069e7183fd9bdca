package types

import (
	"encoding/binary"
	"math"
	"time"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/xml"
)

// Options are what the text forms depend on besides the value. A nil *Options
// means the defaults.
type Options struct {
	// Location is the TimeZone setting; nil: UTC.
	Location *time.Location
	// Style is the settings DateStyle and IntervalStyle.
	Style TimeStyle
	// Now is the start of the transaction: what 'now' and 'today' refer to.
	Now time.Time
	// FloatDigits, if not 0, asks for so many significant digits of double
	// precision (15 + extra_float_digits, where that is not positive) instead
	// of the shortest text that reads back as the same number.
	FloatDigits int
	// ByteaEscape selects bytea's old output form (bytea_output = escape).
	ByteaEscape bool
	// XMLDocument says that xml values are documents (xmloption = document).
	XMLDocument bool
	// Names resolves the names of reg* types; nil: they are numbers.
	Names NameResolver
}

// NameResolver gives reg* types their text forms.
type NameResolver interface {
	// RegName is the text form of value oid of reg type t, false if it has none.
	RegName(t OID, oid uint32) (string, bool)
	// RegOID finds the object that name denotes for reg type t.
	RegOID(t OID, name string) (uint32, error)
}

func (o *Options) location() *time.Location {
	if o == nil || o.Location == nil {
		return time.UTC
	}
	return o.Location
}

func (o *Options) xmlMode() xml.Mode {
	if o != nil && o.XMLDocument {
		return xml.Document
	}
	return xml.Content
}

func (o *Options) now() time.Time {
	if o == nil || o.Now.IsZero() {
		return time.Now()
	}
	return o.Now
}

// datum is one value that is not NULL: the bits of a fixed-width one, or the
// bytes of a variable one.
type datum struct {
	u columnar.U128 // Lo alone for widths up to 8, sign-extended for integers
	b []byte
}

func at(v *columnar.Vec, i int) datum {
	switch v.Kind() {
	case columnar.KindBool:
		if v.Bools()[i] {
			return datum{u: columnar.U128{Lo: 1}}
		}
		return datum{}
	case columnar.KindInt16:
		return datum{u: columnar.U128{Lo: uint64(v.Int16s()[i])}}
	case columnar.KindInt32:
		return datum{u: columnar.U128{Lo: uint64(v.Int32s()[i])}}
	case columnar.KindInt64:
		return datum{u: columnar.U128{Lo: uint64(v.Int64s()[i])}}
	case columnar.KindFloat32:
		return datum{u: columnar.U128{Lo: uint64(math.Float32bits(v.Float32s()[i]))}}
	case columnar.KindFloat64:
		return datum{u: columnar.U128{Lo: math.Float64bits(v.Float64s()[i])}}
	case columnar.KindFixed16:
		return datum{u: v.U128s()[i]}
	}
	return datum{b: v.Bytes(i)}
}

// rawDatum reads a value of kind k as arrays and records store it: if it has
// fixed width, little-endian as in the memory of a vector.
func rawDatum(k columnar.Kind, b []byte) datum {
	switch k {
	case columnar.KindBool:
		return datum{u: columnar.U128{Lo: uint64(b[0])}}
	case columnar.KindInt16:
		return datum{u: columnar.U128{Lo: uint64(int16(binary.LittleEndian.Uint16(b)))}}
	case columnar.KindInt32:
		return datum{u: columnar.U128{Lo: uint64(int32(binary.LittleEndian.Uint32(b)))}}
	case columnar.KindFloat32:
		return datum{u: columnar.U128{Lo: uint64(binary.LittleEndian.Uint32(b))}}
	case columnar.KindInt64, columnar.KindFloat64:
		return datum{u: columnar.U128{Lo: binary.LittleEndian.Uint64(b)}}
	case columnar.KindFixed16:
		return datum{u: columnar.U128{Hi: binary.LittleEndian.Uint64(b), Lo: binary.LittleEndian.Uint64(b[8:])}}
	}
	return datum{b: b}
}

// appendRaw appends a value in the form that rawDatum reads.
func (d datum) appendRaw(dst []byte, k columnar.Kind) []byte {
	switch k {
	case columnar.KindBool:
		return append(dst, byte(d.u.Lo))
	case columnar.KindInt16:
		return binary.LittleEndian.AppendUint16(dst, uint16(d.u.Lo))
	case columnar.KindInt32, columnar.KindFloat32:
		return binary.LittleEndian.AppendUint32(dst, uint32(d.u.Lo))
	case columnar.KindInt64, columnar.KindFloat64:
		return binary.LittleEndian.AppendUint64(dst, d.u.Lo)
	case columnar.KindFixed16:
		dst = binary.LittleEndian.AppendUint64(dst, d.u.Hi)
		return binary.LittleEndian.AppendUint64(dst, d.u.Lo)
	}
	return append(dst, d.b...)
}

// appendTo appends the value to a builder of kind k.
func (d datum) appendTo(b *columnar.Builder) {
	switch b.Kind() {
	case columnar.KindBool:
		b.Bool(d.u.Lo != 0)
	case columnar.KindInt16:
		b.Int16(int16(d.u.Lo))
	case columnar.KindInt32:
		b.Int32(int32(d.u.Lo))
	case columnar.KindInt64:
		b.Int64(int64(d.u.Lo))
	case columnar.KindFloat32:
		b.Float32(math.Float32frombits(uint32(d.u.Lo)))
	case columnar.KindFloat64:
		b.Float64(math.Float64frombits(d.u.Lo))
	case columnar.KindFixed16:
		b.U128(d.u)
	default:
		b.Bytes(d.b)
	}
}

func (d datum) int() int64   { return int64(d.u.Lo) }
func (d datum) f32() float32 { return math.Float32frombits(uint32(d.u.Lo)) }
func (d datum) f64() float64 { return math.Float64frombits(d.u.Lo) }
func (d datum) isTrue() bool { return d.u.Lo != 0 }

// AppendText appends the text form of value row of v, which has type t and is
// not NULL.
func AppendText(dst []byte, t Type, v *columnar.Vec, row int, o *Options) []byte {
	return appendText(dst, t, at(v, row), o)
}

// AppendBinary appends the binary form (that of the type's send function) of
// value row of v, which has type t and is not NULL.
func AppendBinary(dst []byte, t Type, v *columnar.Vec, row int) []byte {
	return appendBinary(dst, t, at(v, row))
}

// ParseText appends to b the value of type t whose text form is s, as the
// type's input function reads it; t's modifier applies. After an error nothing
// has been appended.
func ParseText(b *columnar.Builder, t Type, s string, o *Options) error {
	return parseText(b, t, s, o)
}

// ParseTextBytes is ParseText of bytes, which it does not keep.
func ParseTextBytes(b *columnar.Builder, t Type, s []byte, o *Options) error {
	return parseText(b, t, unsafe.String(unsafe.SliceData(s), len(s)), o)
}

// ParseBinary appends to b the value of type t whose binary form is data, as
// the type's receive function reads it; t's modifier applies. After an error
// nothing has been appended.
func ParseBinary(b *columnar.Builder, t Type, data []byte) error {
	return parseBinary(b, t, data)
}

func errInput(typ, s string) error {
	return pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", typ, s)
}

func errNoInput(t Type) error {
	return pgerror.New(pgerror.FeatureNotSupported, "cannot accept a value of type %s", t.OID)
}
