package types

import (
	"strconv"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/textsearch"
	"github.com/streamdb/streamdb/sql/xml"
)

func appendText(dst []byte, t Type, d datum, o *Options) []byte {
	switch t.OID {
	case OIDBool:
		if d.isTrue() {
			return append(dst, 't')
		}
		return append(dst, 'f')
	case OIDInt2, OIDInt4, OIDInt8, OIDOid, OIDXid, OIDCid:
		return strconv.AppendInt(dst, d.int(), 10)
	case OIDMoney:
		return AppendMoney(dst, d.int())
	case OIDMACAddr:
		return AppendMAC(dst, d.u.Lo, 6)
	case OIDMACAddr8:
		return AppendMAC(dst, d.u.Lo^1<<63, 8)
	case OIDInet:
		return ReadInet(d.b).AppendText(dst)
	case OIDCIDR:
		return ReadInet(d.b).AppendFull(dst)
	case OIDBit, OIDVarbit:
		return appendBitsText(dst, d.b)
	case OIDFloat4:
		return AppendFloat4(dst, d.f32(), o)
	case OIDFloat8:
		return AppendFloat8(dst, d.f64(), o)
	case OIDNumeric:
		return decimal.AppendText(dst, d.b)
	case OIDText, OIDVarchar, OIDBPChar, OIDName, OIDJSON, OIDUnknown, OIDPgNodeTree, OIDACLItem, OIDCString:
		return append(dst, d.b...)
	case OIDXML:
		return xml.AppendOutput(dst, d.b)
	case OIDJSONPath:
		return appendJSONPath(dst, d.b)
	case OIDTSVector:
		return textsearch.Vector(d.b).AppendText(dst)
	case OIDTSQuery:
		return textsearch.Query(d.b).AppendText(dst)
	case OIDChar:
		return AppendChar(dst, d.b)
	case OIDBytea:
		return AppendBytea(dst, d.b, o)
	case OIDDate:
		return o.style().appendDate(dst, int32(d.int()))
	case OIDTime:
		return AppendTime(dst, d.int())
	case OIDTimeTZ:
		return AppendTimeTZ(dst, d.u)
	case OIDTimestamp:
		return o.style().appendTimestamp(dst, d.int(), nil)
	case OIDTimestampTZ:
		return o.style().appendTimestamp(dst, d.int(), o.location())
	case OIDInterval:
		return o.style().appendInterval(dst, UnpackInterval(d.u))
	case OIDUUID:
		return AppendUUID(dst, d.u)
	case OIDJSONB:
		return JSONDoc(d.b).AppendText(dst)
	case OIDRecord:
		return appendRecordText(dst, d.b, o)
	case OIDInt2Vector, OIDOidVector:
		return appendVectorText(dst, d.b)
	case OIDXid8:
		return strconv.AppendUint(dst, d.u.Lo, 10)
	case OIDPgLSN:
		return AppendLSN(dst, d.u.Lo)
	case OIDVoid:
		return dst
	case OIDPoint, OIDLseg, OIDPath, OIDBox, OIDPolygon, OIDLine, OIDCircle:
		return appendGeoText(dst, t.OID, d.b, o)
	}
	if t.OID.IsArray() {
		return appendArrayText(dst, d.b, o)
	}
	if i := Lookup(t.OID); i != nil && i.Subtype != 0 {
		if i.Range != 0 {
			return appendMultirangeText(dst, i.Range, ReadMultirange(i.Range, d.b), o)
		}
		return appendRangeText(dst, t.OID, ReadRange(t.OID, d.b), o)
	}
	if t.OID >= FirstUser {
		switch i := Lookup(t.OID); {
		case i == nil:
		case i.Kind == 'e':
			return appendLabel(dst, t.OID, d.int())
		case i.Kind == 'c':
			return appendRecordText(dst, d.b, o)
		case t.OID.IsMap():
			return appendMapText(dst, d.b, o)
		case i.Kind == 'd':
			return appendText(dst, t.Storage(), d, o)
		}
	}
	if t.Kind() == columnar.KindInt64 {
		return appendReg(dst, t.OID, uint32(d.u.Lo), o)
	}
	return append(dst, d.b...)
}

// appendReg appends the name of a reg* value, its number if it has no name.
func appendReg(dst []byte, t OID, v uint32, o *Options) []byte {
	if v == 0 {
		return append(dst, '-')
	}
	if o != nil && o.Names != nil {
		if s, ok := o.Names.RegName(t, v); ok {
			return append(dst, s...)
		}
	}
	switch t {
	case OIDRegtype:
		if i := Lookup(OID(v)); i != nil {
			return append(dst, i.OID.Name()...)
		}
	case OIDRegconfig:
		if c := textsearch.ConfigByOID(v); c != nil {
			return append(dst, c.Name...)
		}
	case OIDRegdictionary:
		if d := textsearch.DictByOID(v); d != nil {
			return append(dst, d.Name...)
		}
	}
	return strconv.AppendUint(dst, uint64(v), 10)
}

// AppendLSN appends the text form of a pg_lsn.
func AppendLSN(dst []byte, v uint64) []byte {
	dst = appendUpperHex(dst, v>>32)
	dst = append(dst, '/')
	return appendUpperHex(dst, v&(1<<32-1))
}

func appendUpperHex(dst []byte, v uint64) []byte {
	start := len(dst)
	dst = strconv.AppendUint(dst, v, 16)
	for i := start; i < len(dst); i++ {
		if dst[i] >= 'a' {
			dst[i] -= 'a' - 'A'
		}
	}
	return dst
}

// ParseLSN reads a pg_lsn.
func ParseLSN(s string) (uint64, error) {
	for i := range len(s) {
		if s[i] == '/' {
			hi, err1 := strconv.ParseUint(s[:i], 16, 32)
			lo, err2 := strconv.ParseUint(s[i+1:], 16, 32)
			if err1 != nil || err2 != nil {
				break
			}
			return hi<<32 | lo, nil
		}
	}
	return 0, errInput("pg_lsn", s)
}

// put appends x to b unless err is set.
func put[T columnar.Fixed](b *columnar.Builder, x T, err error) error {
	if err == nil {
		columnar.Append(b, x)
	}
	return err
}

func parseText(b *columnar.Builder, t Type, s string, o *Options) error {
	switch t.OID {
	case OIDBool:
		x, err := ParseBool(s)
		return put(b, x, err)
	case OIDInt2:
		x, err := ParseInt2(s)
		return put(b, x, err)
	case OIDInt4:
		x, err := ParseInt4(s)
		return put(b, x, err)
	case OIDInt8:
		x, err := ParseInt8(s)
		return put(b, x, err)
	case OIDFloat4:
		x, err := ParseFloat4(s)
		return put(b, x, err)
	case OIDFloat8:
		x, err := ParseFloat8(s)
		return put(b, x, err)
	case OIDOid, OIDXid, OIDCid:
		x, err := parseUint(s, t.OID.Name())
		return put(b, int64(x), err)
	case OIDUUID:
		x, err := ParseUUID(s)
		return put(b, x, err)
	case OIDDate:
		x, err := ParseDate(s, o)
		return put(b, x, err)
	case OIDTime:
		x, err := ParseTime(s, t.Mod, o)
		return put(b, x, err)
	case OIDTimeTZ:
		x, err := ParseTimeTZ(s, t.Mod, o)
		return put(b, x, err)
	case OIDTimestamp:
		x, err := ParseTimestamp(s, t.Mod, o)
		return put(b, x, err)
	case OIDTimestampTZ:
		x, err := ParseTimestampTZ(s, t.Mod, o)
		return put(b, x, err)
	case OIDInterval:
		x, err := ParseInterval(s, t.Mod, o)
		return put(b, x.Pack(), err)
	case OIDXid8:
		x, err := ParseInt8(s)
		return put(b, x, err)
	case OIDMoney:
		x, err := ParseMoney(s)
		return put(b, x, err)
	case OIDMACAddr:
		x, err := ParseMAC(s)
		return put(b, x, err)
	case OIDMACAddr8:
		x, err := ParseMAC8(s)
		return put(b, x, err)
	case OIDPgLSN:
		x, err := ParseLSN(s)
		return put(b, int64(x), err)
	}
	if t.OID >= FirstUser {
		if i := Lookup(t.OID); i != nil && i.Kind == 'e' {
			x, err := parseLabel(t.OID, s)
			return put(b, x, err)
		} else if i != nil && i.Kind == 'd' {
			return parseText(b, t.Storage(), s, o)
		}
	}
	if t.Kind() == columnar.KindInt64 {
		x, err := parseReg(t.OID, s, o)
		return put(b, int64(x), err)
	}
	return parseBytesText(b, t, s, o)
}

// parseBytesText is parseText for the types of KindBytes.
func parseBytesText(b *columnar.Builder, t Type, s string, o *Options) (err error) {
	var scratch [64]byte
	buf := scratch[:0]
	switch t.OID {
	case OIDText, OIDUnknown, OIDCString:
		return putText(b, s)
	case OIDVarchar:
		if s, err = FitVarchar(s, t.Mod, false); err != nil {
			return err
		}
		return putText(b, s)
	case OIDName:
		return putText(b, FitName(s))
	case OIDNumeric:
		buf, err = decimal.ParseTypmod(buf, s, t.Mod)
	case OIDBPChar:
		if err = CheckUTF8(s); err == nil {
			buf, err = AppendBPChar(buf, s, t.Mod, false)
		}
	case OIDChar:
		buf = append(buf, ParseChar(s))
	case OIDBytea:
		buf, err = ParseBytea(buf, s)
	case OIDJSON:
		if err = CheckJSON(s); err == nil {
			return putText(b, s)
		}
	case OIDXML:
		if err = CheckUTF8(s); err == nil {
			if err = xml.Check(s, o.xmlMode()); err == nil {
				return putText(b, s)
			}
		}
	case OIDJSONB:
		buf, err = ParseJSONB(buf, s)
	case OIDJSONPath:
		buf, err = parseJSONPath(buf, s)
	case OIDPoint, OIDLseg, OIDPath, OIDBox, OIDPolygon, OIDLine, OIDCircle:
		buf, err = parseGeo(buf, t.OID, s)
	case OIDInet, OIDCIDR:
		var x Inet
		if x, err = ParseInet(s, t.OID == OIDCIDR); err == nil {
			buf = x.Append(buf)
		}
	case OIDTSVector, OIDTSQuery:
		if err = CheckUTF8(s); err != nil {
			return err
		}
		if t.OID == OIDTSVector {
			buf, err = textsearch.ParseVector(buf, s)
		} else {
			buf, err = textsearch.ParseQuery(buf, s)
		}
	case OIDBit, OIDVarbit:
		buf, err = parseBits(buf, t, s)
	case OIDInt2Vector, OIDOidVector:
		buf, err = parseVector(buf, t.OID, s)
	default:
		switch {
		case t.OID.IsArray():
			buf, err = parseArray(buf, t, s, o)
		case t.OID.IsRange():
			buf, err = parseRange(buf, t.OID, s, o)
		case t.OID.IsComposite():
			buf, err = parseRecord(buf, t.OID, s, o)
		case t.OID.IsMap():
			buf, err = parseMap(buf, t.OID, s, o)
		case t.OID.IsMultirange():
			buf, err = parseMultirange(buf, t.OID, s, o)
		default:
			return errNoInput(t)
		}
	}
	if err != nil {
		return err
	}
	b.Bytes(buf)
	return nil
}

func putText(b *columnar.Builder, s string) error {
	if err := CheckUTF8(s); err != nil {
		return err
	}
	b.String(s)
	return nil
}

// parseReg reads a reg* value: "-", a number, or a name.
func parseReg(t OID, s string, o *Options) (uint32, error) {
	if s == "-" {
		return 0, nil
	}
	if s != "" && isDigit(s[0]) {
		if n, err := ParseOid(s); err == nil {
			return n, nil
		}
	}
	if o != nil && o.Names != nil {
		return o.Names.RegOID(t, s)
	}
	switch t {
	case OIDRegtype:
		if typ, ok := ParseName(s); ok {
			return uint32(typ.OID), nil
		}
	case OIDRegconfig, OIDRegdictionary:
		return parseTextSearch(t, s)
	}
	return 0, errInput(t.Name(), s)
}
