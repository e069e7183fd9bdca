package types

import (
	"fmt"
	"strings"

	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// maxCharLen is the greatest n of varchar(n) and char(n).
const maxCharLen = 10485760

// The bits of an interval modifier's upper half: which fields are meant.
const (
	intervalMonth     = 1 << 1
	intervalYear      = 1 << 2
	intervalDay       = 1 << 3
	intervalHour      = 1 << 10
	intervalMinute    = 1 << 11
	intervalSecond    = 1 << 12
	intervalFullRange = 0x7FFF
	intervalFullPrec  = 0xFFFF
	maxPrecision      = 6 // of fractional seconds
)

// TypmodIn is the modifier of type o from the numbers in parentheses in a
// type's name, as the type's modifier input function computes it.
func TypmodIn(o OID, mods []int32) (int32, error) {
	if e := o.Elem(); e != 0 {
		o = e
	}
	switch o {
	case OIDVarchar, OIDBPChar:
		return charTypmod(o, mods)
	case OIDNumeric:
		return numericTypmod(mods)
	case OIDTime, OIDTimeTZ, OIDTimestamp, OIDTimestampTZ:
		if len(mods) != 1 {
			return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid type modifier")
		}
		kind, tz := "TIMESTAMP", ""
		if o == OIDTime || o == OIDTimeTZ {
			kind = "TIME"
		}
		if o == OIDTimeTZ || o == OIDTimestampTZ {
			tz = " WITH TIME ZONE"
		}
		if mods[0] < 0 {
			return 0, pgerror.New(pgerror.InvalidParameterValue, "%s(%d)%s precision must not be negative", kind, mods[0], tz)
		}
		return min(mods[0], maxPrecision), nil
	case OIDInterval:
		return intervalTypmod(mods)
	case OIDBit, OIDVarbit:
		return bitTypmod(o, mods)
	}
	return 0, pgerror.New(pgerror.SyntaxError, "type modifier is not allowed for type \"%s\"", o.rawName())
}

func (o OID) rawName() string {
	if t := Lookup(o); t != nil {
		return t.Name
	}
	return "???"
}

func charTypmod(o OID, mods []int32) (int32, error) {
	name := "varchar"
	if o == OIDBPChar {
		name = "char"
	}
	switch {
	case len(mods) != 1:
		return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid type modifier")
	case mods[0] < 1:
		return 0, pgerror.New(pgerror.InvalidParameterValue, "length for type %s must be at least 1", name)
	case mods[0] > maxCharLen:
		return 0, pgerror.New(pgerror.InvalidParameterValue, "length for type %s cannot exceed %d", name, maxCharLen)
	}
	return mods[0] + 4, nil
}

func numericTypmod(mods []int32) (int32, error) {
	if len(mods) != 1 && len(mods) != 2 {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid NUMERIC type modifier")
	}
	if mods[0] < 1 || mods[0] > 1000 {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "NUMERIC precision %d must be between 1 and 1000", mods[0])
	}
	scale := int32(0)
	if len(mods) == 2 {
		if scale = mods[1]; scale < -1000 || scale > 1000 {
			return 0, pgerror.New(pgerror.InvalidParameterValue, "NUMERIC scale %d must be between -1000 and 1000", scale)
		}
	}
	return decimal.MakeTypmod(int(mods[0]), int(scale)), nil
}

func intervalTypmod(mods []int32) (int32, error) {
	if len(mods) != 1 && len(mods) != 2 {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid INTERVAL type modifier")
	}
	if _, ok := intervalRanges[mods[0]]; !ok {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid INTERVAL type modifier")
	}
	if len(mods) == 1 {
		if mods[0] == intervalFullRange {
			return -1, nil
		}
		return mods[0]<<16 | intervalFullPrec, nil
	}
	if mods[1] < 0 {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "INTERVAL(%d) precision must not be negative", mods[1])
	}
	return mods[0]<<16 | min(mods[1], maxPrecision), nil
}

// intervalRanges are the sets of fields that an interval can be limited to.
var intervalRanges = map[int32]string{
	intervalYear:                 " year",
	intervalMonth:                " month",
	intervalDay:                  " day",
	intervalHour:                 " hour",
	intervalMinute:               " minute",
	intervalSecond:               " second",
	intervalYear | intervalMonth: " year to month",
	intervalDay | intervalHour:   " day to hour",
	intervalDay | intervalHour | intervalMinute:                  " day to minute",
	intervalDay | intervalHour | intervalMinute | intervalSecond: " day to second",
	intervalHour | intervalMinute:                                " hour to minute",
	intervalHour | intervalMinute | intervalSecond:               " hour to second",
	intervalMinute | intervalSecond:                              " minute to second",
	intervalFullRange:                                            "",
}

// TypmodOut is the modifier as it is written after the type's name: "(10,2)".
func TypmodOut(t Type) string {
	if t.Mod < 0 {
		return ""
	}
	switch t.OID {
	case OIDVarchar, OIDBPChar:
		if t.Mod <= 4 {
			return ""
		}
		return fmt.Sprintf("(%d)", t.Mod-4)
	case OIDNumeric:
		p, s, ok := decimal.SplitTypmod(t.Mod)
		if !ok {
			return ""
		}
		return fmt.Sprintf("(%d,%d)", p, s)
	case OIDTime, OIDTimeTZ, OIDTimestamp, OIDTimestampTZ:
		return fmt.Sprintf("(%d)", t.Mod)
	case OIDInterval:
		s := intervalRanges[t.Mod>>16&intervalFullRange]
		if p := t.Mod & intervalFullPrec; p != intervalFullPrec {
			s += fmt.Sprintf("(%d)", p)
		}
		return s
	}
	return fmt.Sprintf("(%d)", t.Mod)
}

// ParseName finds the built-in type that s names in SQL: "int", "varchar(10)",
// "timestamp(3) with time zone", "pg_catalog.numeric(10,2)[]", "_text". It is
// what regtype input and type names in options need; ok is false if s names
// no built-in type or is not well-formed.
func ParseName(s string) (t Type, ok bool) {
	words, mods, dims, ok := scanTypeName(s)
	if !ok {
		return t, false
	}
	if words[0] == "interval" {
		return parseIntervalName(words, mods, dims)
	}
	name := strings.ReplaceAll(strings.Join(words, " "), ". ", ".")
	o, ok := byAlias[name]
	if !ok {
		if o, ok = ByName(strings.TrimPrefix(name, "pg_catalog.")); !ok {
			return t, false
		}
	}
	t = Of(o)
	switch {
	case name == "float" && len(mods) == 1:
		if mods[0] < 1 || mods[0] > 53 {
			return t, false
		}
		if mods[0] <= 24 {
			t.OID = OIDFloat4
		}
	case len(mods) > 0:
		m, err := TypmodIn(o, mods)
		if err != nil {
			return t, false
		}
		t.Mod = m
	case o == OIDBPChar && name != "bpchar":
		t.Mod = 5 // char means char(1)
	case o == OIDBit:
		t.Mod = 1 // bit means bit(1)
	}
	return withDims(t, dims)
}

func withDims(t Type, dims int) (Type, bool) {
	if dims > 0 && !t.OID.IsArray() { // all numbers of dimensions are one type
		t = t.ArrayType()
	}
	return t, t.OID != 0
}

func parseIntervalName(words []string, mods []int32, dims int) (t Type, ok bool) {
	t = Of(OIDInterval)
	fields := int32(intervalFullRange)
	if len(words) > 1 {
		want := " " + strings.Join(words[1:], " ")
		fields = 0
		for r, name := range intervalRanges {
			if name == want {
				fields = r
			}
		}
		if fields == 0 {
			return t, false
		}
	}
	m, err := intervalTypmod(append([]int32{fields}, mods...))
	if err != nil {
		return t, false
	}
	t.Mod = m
	return withDims(t, dims)
}

// scanTypeName takes a type's name apart: its words in lower case (quoted ones
// as they are), the numbers in parentheses, and the number of [] after it.
func scanTypeName(s string) (words []string, mods []int32, dims int, ok bool) {
	word := func() {
		i := 0
		for i < len(s) && (s[i] == '_' || s[i] == '.' || s[i] >= 0x80 || s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z' || i > 0 && s[i] >= '0' && s[i] <= '9') {
			i++
		}
		words = append(words, strings.ToLower(s[:i]))
		s = s[i:]
	}
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimLeft(s, " \t\n\r\f\v") {
		switch c := s[0]; {
		case c == '"':
			i := strings.IndexByte(s[1:], '"')
			if i < 0 {
				return nil, nil, 0, false
			}
			w := s[1 : i+1]
			if w == "char" {
				w = `"char"` // not the keyword
			}
			words = append(words, w)
			s = s[i+2:]
		case c == '(':
			i := strings.IndexByte(s, ')')
			if i < 0 || mods != nil || len(words) == 0 {
				return nil, nil, 0, false
			}
			for _, f := range strings.Split(s[1:i], ",") {
				n, err := ParseInt4(f)
				if err != nil {
					return nil, nil, 0, false
				}
				mods = append(mods, n)
			}
			s = s[i+1:]
		case c == '[':
			i := strings.IndexByte(s, ']')
			if i < 0 || len(words) == 0 {
				return nil, nil, 0, false
			}
			dims++
			s = s[i+1:]
		default:
			n := len(s)
			if word(); len(s) == n || dims > 0 {
				return nil, nil, 0, false
			}
		}
	}
	if n := len(words); n > 1 && words[n-1] == "array" {
		words, dims = words[:n-1], dims+1
	}
	return words, mods, dims, len(words) > 0
}

// byAlias are the names of types that SQL's grammar knows.
var byAlias = map[string]OID{
	"boolean": OIDBool, "int": OIDInt4, "integer": OIDInt4, "smallint": OIDInt2, "bigint": OIDInt8,
	"real": OIDFloat4, "float": OIDFloat8, "double precision": OIDFloat8, "decimal": OIDNumeric, "dec": OIDNumeric,
	"numeric": OIDNumeric, "character varying": OIDVarchar, "char varying": OIDVarchar, "national character varying": OIDVarchar,
	"national char varying": OIDVarchar, "nchar varying": OIDVarchar, "varchar": OIDVarchar,
	"character": OIDBPChar, "char": OIDBPChar, "national character": OIDBPChar, "national char": OIDBPChar,
	"nchar": OIDBPChar, `"char"`: OIDChar, `pg_catalog."char"`: OIDChar, "bpchar": OIDBPChar,
	"time": OIDTime, "time without time zone": OIDTime, "time with time zone": OIDTimeTZ,
	"timestamp": OIDTimestamp, "timestamp without time zone": OIDTimestamp, "timestamp with time zone": OIDTimestampTZ,
	"interval": OIDInterval, "bit varying": OIDVarbit,
}
