package pgwire

import (
	"encoding/binary"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// The encodings that have their own code here are those of package types.
func TestEncodings(t *testing.T) {
	values := map[types.OID][]string{
		types.OIDBool: {"t", "f"}, types.OIDInt2: {"-32768", "7"}, types.OIDInt4: {"-2147483648", "7"},
		types.OIDInt8: {"-9223372036854775808", "7"}, types.OIDOid: {"4294967295", "0"}, types.OIDFloat4: {"1.5", "NaN"},
		types.OIDFloat8: {"-0", "1e300", "-Infinity"}, types.OIDNumeric: {"-12.50", "NaN"}, types.OIDText: {"", "a\u00e9"},
		types.OIDVarchar: {"x"}, types.OIDBPChar: {"x  "}, types.OIDName: {"n"}, types.OIDChar: {"c"}, types.OIDBytea: {`\x00ff`},
		types.OIDDate: {"2020-02-29", "infinity"}, types.OIDTime: {"23:59:59.5"}, types.OIDTimestamp: {"2020-02-29 01:02:03.4", "-infinity"},
		types.OIDTimestampTZ: {"2020-02-29 01:02:03.4+05"}, types.OIDInterval: {"1 mon 2 days 03:00:00"},
		types.OIDUUID: {"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, types.OIDJSON: {`{"a": 1}`}, types.OIDJSONB: {`{"a": 1}`},
		types.OIDInt4Array: {"{1,NULL,3}"}, types.OIDTextArray: {`{a,"b c"}`},
	}
	for oid, texts := range values {
		typ := types.Of(oid)
		b := columnar.NewBuilder(typ.Kind(), len(texts))
		for _, s := range texts {
			if err := types.ParseText(b, typ, s, nil); err != nil {
				t.Fatalf("%s %q: %v", oid.Name(), s, err)
			}
		}
		v := b.Build()
		for i, s := range texts {
			for format := range uint16(2) {
				e := encoder{encodingOf(typ, format), typ}
				got := e.append(nil, v, i, nil)
				want := types.AppendText(nil, typ, v, i, nil)
				if format == 1 {
					want = types.AppendBinary(nil, typ, v, i)
				}
				if string(got[4:]) != string(want) || binary.BigEndian.Uint32(got) != uint32(len(want)) {
					t.Errorf("%s %q in format %d: %x, want %x", oid.Name(), s, format, got[4:], want)
				}
			}
		}
	}
}
