package types

import (
	"encoding/binary"
	"math"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/textsearch"
	"github.com/streamdb/streamdb/sql/xml"
)

func appendBinary(dst []byte, t Type, d datum) []byte {
	switch t.OID {
	case OIDFloat8:
		f := d.f64()
		if f != f {
			f = NaN
		}
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(f))
	case OIDFloat4:
		f := d.f32()
		if f != f {
			f = float32(NaN)
		}
		return binary.BigEndian.AppendUint32(dst, math.Float32bits(f))
	case OIDMACAddr:
		dst = binary.BigEndian.AppendUint16(dst, uint16(d.u.Lo>>32))
		return binary.BigEndian.AppendUint32(dst, uint32(d.u.Lo))
	case OIDMACAddr8:
		return binary.BigEndian.AppendUint64(dst, d.u.Lo^1<<63)
	case OIDPoint, OIDLseg, OIDPath, OIDBox, OIDPolygon, OIDLine, OIDCircle:
		return appendGeoBinary(dst, t.OID, d.b)
	case OIDInet, OIDCIDR:
		return appendInetBinary(dst, d.b, t.OID == OIDCIDR)
	case OIDBit, OIDVarbit:
		return appendBitsBinary(dst, d.b)
	case OIDInt8, OIDMoney, OIDTime, OIDTimestamp, OIDTimestampTZ, OIDXid8, OIDPgLSN:
		return binary.BigEndian.AppendUint64(dst, d.u.Lo)
	case OIDInterval:
		i := UnpackInterval(d.u)
		dst = binary.BigEndian.AppendUint64(dst, uint64(i.Micros))
		dst = binary.BigEndian.AppendUint32(dst, uint32(i.Days))
		return binary.BigEndian.AppendUint32(dst, uint32(i.Months))
	case OIDTimeTZ:
		dst = binary.BigEndian.AppendUint64(dst, d.u.Hi)
		return binary.BigEndian.AppendUint32(dst, uint32(d.u.Lo))
	case OIDNumeric:
		return decimal.AppendBinary(dst, d.b)
	case OIDJSONB:
		return JSONDoc(d.b).AppendText(append(dst, 1))
	case OIDJSONPath:
		return appendJSONPath(append(dst, 1), d.b)
	case OIDXML:
		return xml.AppendOutput(dst, d.b)
	case OIDTSVector:
		return textsearch.Vector(d.b).AppendBinary(dst)
	case OIDRecord:
		return appendRecordBinary(dst, d.b)
	}
	if t.OID >= FirstUser {
		switch i := Lookup(t.OID); {
		case i == nil:
		case i.Kind == 'e':
			return appendLabel(dst, t.OID, d.int())
		case i.Kind == 'c':
			return appendRecordBinary(dst, d.b)
		case t.OID.IsMap():
			return appendMapText(dst, d.b, nil)
		case i.Kind == 'd':
			return appendBinary(dst, t.Storage(), d)
		}
	}
	if t.OID.IsArray() {
		return appendArrayBinary(dst, d.b)
	}
	if i := Lookup(t.OID); i != nil && i.Subtype != 0 {
		if i.Range != 0 {
			return appendMultirangeBinary(dst, i.Range, ReadMultirange(i.Range, d.b))
		}
		return appendRangeBinary(dst, t.OID, ReadRange(t.OID, d.b))
	}
	switch t.Kind() {
	case columnar.KindBool:
		return append(dst, byte(d.u.Lo))
	case columnar.KindInt16:
		return binary.BigEndian.AppendUint16(dst, uint16(d.u.Lo))
	case columnar.KindInt32, columnar.KindFloat32, columnar.KindInt64: // oid and its likes
		return binary.BigEndian.AppendUint32(dst, uint32(d.u.Lo))
	case columnar.KindFixed16:
		dst = binary.BigEndian.AppendUint64(dst, d.u.Hi)
		return binary.BigEndian.AppendUint64(dst, d.u.Lo)
	}
	return append(dst, d.b...)
}

// binaryLen is the length of the binary form of the types that have a fixed one.
func binaryLen(t Type) int {
	switch t.OID {
	case OIDOid, OIDXid, OIDCid:
		return 4
	case OIDMACAddr:
		return 6
	case OIDTimeTZ:
		return 12
	}
	switch t.Kind() {
	case columnar.KindBytes:
		return -1
	case columnar.KindInt64:
		if l := Lookup(t.OID); l != nil && l.Len == 4 {
			return 4
		}
	}
	return t.Kind().Width()
}

func errShortMessage() error {
	return pgerror.New(pgerror.ProtocolViolation, "insufficient data left in message")
}

// errNoData is errShortMessage where single bytes are read.
func errNoData() error { return pgerror.New(pgerror.ProtocolViolation, "no data left in message") }

func errBinaryFormat(param string) error {
	return pgerror.New(pgerror.InvalidBinaryRepresentation, "incorrect binary data format%s", param)
}

func parseBinary(b *columnar.Builder, t Type, p []byte) error {
	if t.OID >= FirstUser {
		if i := Lookup(t.OID); i != nil && i.Kind == 'e' {
			if err := CheckUTF8(p); err != nil {
				return err
			}
			x, err := parseLabel(t.OID, string(p))
			return put(b, x, err)
		}
		t = t.Storage()
	}
	if t.OID == OIDMACAddr8 {
		x, err := parseMAC8Binary(p)
		return put(b, x, err)
	}
	n := binaryLen(t)
	if n < 0 {
		return parseBytesBinary(b, t, p)
	}
	if len(p) < n {
		if t.OID == OIDBool || t.OID == OIDMACAddr {
			return errNoData()
		}
		return errShortMessage()
	}
	if len(p) > n {
		return errBinaryFormat("")
	}
	var w uint64
	for _, c := range p[:min(n, 8)] {
		w = w<<8 | uint64(c)
	}
	switch t.Kind() {
	case columnar.KindBool:
		b.Bool(w != 0)
	case columnar.KindInt16:
		b.Int16(int16(w))
	case columnar.KindInt32:
		if t.OID == OIDDate && !validDate(int32(w)) {
			return pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range")
		}
		b.Int32(int32(w))
	case columnar.KindFloat32:
		b.Float32(math.Float32frombits(uint32(w)))
	case columnar.KindFloat64:
		b.Float64(math.Float64frombits(w))
	case columnar.KindInt64:
		return parseInt64Binary(b, t, int64(w))
	default:
		return parseFixed16Binary(b, t, w, p)
	}
	return nil
}

func parseInt64Binary(b *columnar.Builder, t Type, w int64) error {
	switch t.OID {
	case OIDTime:
		if w < 0 || w > MicrosPerDay {
			return pgerror.New(pgerror.DatetimeFieldOverflow, "time out of range")
		}
		w = RoundTime(w, t.Mod)
	case OIDTimestamp, OIDTimestampTZ:
		if !ValidTimestamp(w) {
			return errTimestampRange()
		}
		w = RoundTimestamp(w, t.Mod)
	}
	b.Int64(w)
	return nil
}

func parseFixed16Binary(b *columnar.Builder, t Type, w uint64, p []byte) error {
	switch t.OID {
	case OIDInterval:
		i := Span{Micros: int64(w), Days: int32(binary.BigEndian.Uint32(p[8:])), Months: int32(binary.BigEndian.Uint32(p[12:]))}
		b.U128(i.ApplyTypmod(t.Mod).Pack())
	case OIDTimeTZ:
		if int64(w) < 0 || int64(w) > MicrosPerDay {
			return pgerror.New(pgerror.DatetimeFieldOverflow, "time out of range")
		}
		z := int32(binary.BigEndian.Uint32(p[8:]))
		if z <= -maxZoneSeconds || z >= maxZoneSeconds {
			return pgerror.New(pgerror.InvalidTimeZoneDisplacement, "time zone displacement out of range")
		}
		b.U128(PackTimeTZ(RoundTime(int64(w), t.Mod), z))
	default:
		b.U128(columnar.U128{Hi: w, Lo: binary.BigEndian.Uint64(p[8:])})
	}
	return nil
}

func parseBytesBinary(b *columnar.Builder, t Type, p []byte) (err error) {
	var scratch [64]byte
	buf := scratch[:0]
	switch t.OID {
	case OIDBytea:
		b.Bytes(p)
		return nil
	case OIDNumeric:
		var wide [64]byte
		if t.Mod < 4 {
			buf, err = decimal.ParseBinary(buf, p)
			break
		}
		var v []byte
		if v, err = decimal.ParseBinary(wide[:0], p); err == nil {
			buf, err = decimal.ApplyTypmod(buf, v, t.Mod)
		}
	case OIDPoint, OIDLseg, OIDPath, OIDBox, OIDPolygon, OIDLine, OIDCircle:
		buf, err = parseGeoBinary(buf, t.OID, p)
	case OIDInet, OIDCIDR:
		buf, err = parseInetBinary(buf, p, t.OID == OIDCIDR)
	case OIDBit, OIDVarbit:
		buf, err = parseBitsBinary(buf, t, p)
	case OIDTSVector:
		buf, err = textsearch.ReadVector(buf, p, CheckUTF8[string])
	case OIDTSQuery:
		buf, err = textsearch.ReadQuery(buf, p, CheckUTF8[string])
	case OIDChar:
		if len(p) != 1 {
			return errBinaryFormat("")
		}
		b.Bytes(p)
		return nil
	case OIDJSONB, OIDJSONPath:
		name := t.OID.Name()
		if len(p) == 0 {
			return errShortMessage()
		}
		if p[0] != 1 {
			return pgerror.New(pgerror.InternalError, "unsupported %s version number %d", name, p[0])
		}
		if err = CheckUTF8(p[1:]); err != nil {
			return err
		}
		return ParseTextBytes(b, t, p[1:], nil)
	case OIDText, OIDVarchar, OIDBPChar, OIDName, OIDJSON, OIDXML, OIDUnknown, OIDCString:
		if err = CheckUTF8(p); err != nil {
			return err
		}
		return ParseTextBytes(b, t, p, nil)
	default:
		switch {
		case t.OID.IsArray():
			buf, err = parseArrayBinary(buf, t, p)
		case t.OID.IsRange():
			buf, err = parseRangeBinary(buf, t.OID, p)
		case t.OID.IsComposite():
			buf, err = parseRecordBinary(buf, t.OID, p)
		case t.OID.IsMultirange():
			buf, err = parseMultirangeBinary(buf, t.OID, p)
		default:
			return pgerror.New(pgerror.UndefinedFunction, "no binary input function available for type %s", t.OID)
		}
	}
	if err != nil {
		return err
	}
	b.Bytes(buf)
	return nil
}
