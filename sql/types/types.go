// Package types is SQL's type system: PostgreSQL's types by their OIDs, their
// physical kinds, and their text and binary forms (PostgreSQL manual, chapter
// 8; binary forms after the send/receive functions of each type).
package types

import "github.com/streamdb/streamdb/columnar"

// OID identifies a type as PostgreSQL numbers it.
type OID uint32

// Type is a type with its modifier (varchar(n), numeric(p,s), …; -1 for none,
// encoded as PostgreSQL's atttypmod). It is comparable.
type Type struct {
	OID OID
	Mod int32
}

// Of is the type without a modifier.
func Of(o OID) Type { return Type{OID: o, Mod: -1} }

// Built-in type OIDs (pg_type.dat).
const (
	OIDBool               OID = 16
	OIDBytea              OID = 17
	OIDChar               OID = 18 // "char"
	OIDName               OID = 19
	OIDInt8               OID = 20
	OIDInt2               OID = 21
	OIDInt2Vector         OID = 22
	OIDInt4               OID = 23
	OIDRegproc            OID = 24
	OIDText               OID = 25
	OIDOid                OID = 26
	OIDOidVector          OID = 30
	OIDJSON               OID = 114
	OIDXML                OID = 142
	OIDFloat4             OID = 700
	OIDFloat8             OID = 701
	OIDUnknown            OID = 705
	OIDBPChar             OID = 1042
	OIDVarchar            OID = 1043
	OIDDate               OID = 1082
	OIDTime               OID = 1083
	OIDTimestamp          OID = 1114
	OIDTimestampTZ        OID = 1184
	OIDInterval           OID = 1186
	OIDTimeTZ             OID = 1266
	OIDXid                OID = 28
	OIDCid                OID = 29
	OIDPgNodeTree         OID = 194
	OIDACLItem            OID = 1033
	OIDPgLSN              OID = 3220
	OIDXid8               OID = 5069
	OIDJSONPath           OID = 4072
	OIDNumeric            OID = 1700
	OIDRegprocedure       OID = 2202
	OIDRegoper            OID = 2203
	OIDRegoperator        OID = 2204
	OIDRegclass           OID = 2205
	OIDRegconfig          OID = 3734
	OIDRegdictionary      OID = 3769
	OIDRegcollation       OID = 4191
	OIDRegtype            OID = 2206
	OIDRegrole            OID = 4096
	OIDRegnamespace       OID = 4089
	OIDRecord             OID = 2249
	OIDVoid               OID = 2278
	OIDCString            OID = 2275
	OIDTrigger            OID = 2279
	OIDInternal           OID = 2281
	OIDUUID               OID = 2950
	OIDJSONB              OID = 3802
	OIDAnyElement         OID = 2283
	OIDAnyArray           OID = 2277
	OIDAny                OID = 2276
	OIDAnyNonArray        OID = 2776
	OIDAnyCompatible      OID = 5077
	OIDAnyCompatibleArray OID = 5078

	OIDAnyCompatibleNonArray OID = 5079
	OIDAnyEnum               OID = 3500
	OIDAnyRange              OID = 3831
	OIDAnyMultirange         OID = 4537
	OIDAnyCompatibleRange    OID = 5080

	OIDAnyCompatibleMultirange OID = 4538

	OIDTSVector OID = 3614
	OIDTSQuery  OID = 3615

	OIDPoint     OID = 600
	OIDLseg      OID = 601
	OIDPath      OID = 602
	OIDBox       OID = 603
	OIDPolygon   OID = 604
	OIDLine      OID = 628
	OIDCircle    OID = 718
	OIDCIDR      OID = 650
	OIDMACAddr8  OID = 774
	OIDMACAddr   OID = 829
	OIDInet      OID = 869
	OIDMoney     OID = 790
	OIDBit       OID = 1560
	OIDVarbit    OID = 1562
	OIDInt4Range OID = 3904
	OIDNumRange  OID = 3906
	OIDTsRange   OID = 3908
	OIDTsTzRange OID = 3910
	OIDDateRange OID = 3912
	OIDInt8Range OID = 3926

	OIDBoolArray        OID = 1000
	OIDByteaArray       OID = 1001
	OIDCharArray        OID = 1002
	OIDNameArray        OID = 1003
	OIDInt2Array        OID = 1005
	OIDInt4Array        OID = 1007
	OIDTextArray        OID = 1009
	OIDBPCharArray      OID = 1014
	OIDVarcharArray     OID = 1015
	OIDInt8Array        OID = 1016
	OIDFloat4Array      OID = 1021
	OIDFloat8Array      OID = 1022
	OIDOidArray         OID = 1028
	OIDTimestampArray   OID = 1115
	OIDDateArray        OID = 1182
	OIDTimeArray        OID = 1183
	OIDTimestampTZArray OID = 1185
	OIDIntervalArray    OID = 1187
	OIDNumericArray     OID = 1231
	OIDUUIDArray        OID = 2951
	OIDJSONArray        OID = 199
	OIDXMLArray         OID = 143
	OIDJSONBArray       OID = 3807
	OIDRecordArray      OID = 2287
	OIDTimeTZArray      OID = 1270
	OIDInt2VectorArray  OID = 1006
	OIDOidVectorArray   OID = 1013
	OIDCStringArray     OID = 1263
	OIDACLItemArray     OID = 1034
	OIDRegclassArray    OID = 2210
	OIDRegtypeArray     OID = 2211
)

// The types most used, without modifiers.
var (
	Bool        = Of(OIDBool)
	Bytea       = Of(OIDBytea)
	Int2        = Of(OIDInt2)
	Int4        = Of(OIDInt4)
	Int8        = Of(OIDInt8)
	Float4      = Of(OIDFloat4)
	Float8      = Of(OIDFloat8)
	Numeric     = Of(OIDNumeric)
	Text        = Of(OIDText)
	Varchar     = Of(OIDVarchar)
	BPChar      = Of(OIDBPChar)
	Name        = Of(OIDName)
	Char        = Of(OIDChar)
	Oid         = Of(OIDOid)
	Date        = Of(OIDDate)
	Time        = Of(OIDTime)
	Timestamp   = Of(OIDTimestamp)
	TimestampTZ = Of(OIDTimestampTZ)
	TimeTZ      = Of(OIDTimeTZ)
	Interval    = Of(OIDInterval)
	UUID        = Of(OIDUUID)
	JSON        = Of(OIDJSON)
	JSONB       = Of(OIDJSONB)
	XML         = Of(OIDXML)
	Unknown     = Of(OIDUnknown)
	Void        = Of(OIDVoid)
	Record      = Of(OIDRecord)
)

// Kind is the physical kind that stores t.
//
// The forms: bool 0/1; int2, int4, int8, float4, float8 themselves; oid, xid
// and reg* as int64; money as int64 cents; date as int32 days since 2000-01-01; time as int64
// microseconds of the day; timestamp, timestamptz as int64 microseconds since
// 2000-01-01 UTC (±infinity: the extreme int64, for date the extreme int32);
// timetz as U128{Hi: microseconds of the day, Lo: seconds west of UTC};
// interval as U128{Hi: months(32)<<32 | days(32), Lo: microseconds}; uuid as
// U128 big-endian; macaddr and macaddr8 (with the first bit inverted) as int64;
// inet and cidr in a form of the same order; "char" and all text kinds as UTF-8 bytes; json and xml as their texts;
// bytea raw; numeric as package decimal encodes it; jsonb, arrays (with
// int2vector and oidvector), ranges, geometric values, bit strings and records in the binary forms of this package; tsvector
// and tsquery in those of package textsearch.
func (t Type) Kind() columnar.Kind {
	switch t.OID {
	case OIDBool:
		return columnar.KindBool
	case OIDInt2:
		return columnar.KindInt16
	case OIDInt4, OIDDate:
		return columnar.KindInt32
	case OIDInt8, OIDMoney, OIDMACAddr, OIDMACAddr8, OIDOid, OIDTime, OIDTimestamp, OIDTimestampTZ, OIDXid, OIDCid, OIDXid8, OIDPgLSN,
		OIDRegproc, OIDRegprocedure, OIDRegclass, OIDRegtype, OIDRegrole, OIDRegnamespace,
		OIDRegoper, OIDRegoperator, OIDRegconfig, OIDRegdictionary, OIDRegcollation:
		return columnar.KindInt64
	case OIDFloat4:
		return columnar.KindFloat32
	case OIDFloat8:
		return columnar.KindFloat64
	case OIDInterval, OIDUUID, OIDTimeTZ:
		return columnar.KindFixed16
	}
	if t.OID >= FirstUser {
		return userKind(t.OID)
	}
	return columnar.KindBytes
}
