package types

import (
	_ "embed" // the table of types
	"fmt"
	"strconv"
	"strings"
)

// Info is what pg_type tells of a type.
type Info struct {
	OID       OID
	Name      string // typname
	Len       int16  // typlen: -1 for variable length, -2 for C strings
	ByVal     bool
	Kind      byte // typtype: 'b' base, 'p' pseudo
	Category  byte // typcategory
	Preferred bool // of its category
	Elem      OID  // typelem: element of an array (or vector), 0 for others
	Array     OID  // typarray, 0 if there is none
	// Subtype is what the bounds of a range or multirange are; a range has the
	// multirange over it, a multirange its range.
	Subtype, Multirange, Range OID
	// Schema and Definition are of a user-defined type.
	Schema     string
	Definition *Definition
	Align      byte
	Storage    byte
	Collation  uint32
	// Names of the type's support functions, "-" for none.
	Input, Output, Receive, Send, ModIn, ModOut, Subscript string
}

// IsArray reports whether the type is a true array, not int2vector or oidvector.
func (i *Info) IsArray() bool {
	return i.Subscript == "array_subscript_handler" && i.Elem != 0 && i.Len == -1 && i.Name[0] == '_'
}

//go:embed pg_type.tsv
var pgTypeTSV string

var (
	infos   []Info // by OID
	byOID   = map[OID]*Info{}
	byName  = map[string]*Info{}
	lowOIDs [5120]*Info // the same as byOID, for speed
)

func init() {
	for line := range strings.Lines(pgTypeTSV) {
		if line[0] != '#' {
			infos = append(infos, parseInfo(strings.Split(strings.TrimSuffix(line, "\n"), "\t")))
		}
	}
	for i := range infos {
		t := &infos[i]
		byOID[t.OID], byName[t.Name] = t, t
		if int(t.OID) < len(lowOIDs) {
			lowOIDs[t.OID] = t
		}
	}
	initRanges()
}

func parseInfo(f []string) Info {
	num := func(i int) int64 {
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			panic(fmt.Sprintf("types: pg_type.tsv: %v", err))
		}
		return n
	}
	return Info{
		OID: OID(num(0)), Name: f[1], Len: int16(num(2)), ByVal: f[3] == "1", Kind: f[4][0], Category: f[5][0],
		Preferred: f[6] == "1", Elem: OID(num(7)), Array: OID(num(8)), Align: f[9][0], Storage: f[10][0],
		Collation: uint32(num(11)), Input: f[12], Output: f[13], Receive: f[14], Send: f[15], ModIn: f[16],
		ModOut: f[17], Subscript: f[18],
	}
}

// Lookup finds a type, nil if there is none.
func Lookup(o OID) *Info {
	if int(o) < len(lowOIDs) {
		return lowOIDs[o]
	}
	if o >= FirstUser {
		return lookupUser(o)
	}
	return byOID[o]
}

// All lists the built-in types by OID. It is not to be written.
func All() []Info { return infos }

// ByName finds a built-in type by its pg_type name (int4, _text, …).
func ByName(name string) (OID, bool) {
	if t := byName[name]; t != nil {
		return t.OID, true
	}
	return 0, false
}

// Category is typcategory, 'X' for what is not known.
func (o OID) Category() byte {
	if t := Lookup(o); t != nil {
		return t.Category
	}
	return 'X'
}

// Elem is the element type of an array type (of int2vector and oidvector, too),
// 0 for others.
func (o OID) Elem() OID {
	if t := Lookup(o); t != nil && (t.Category == 'A' || o == OIDRecordArray) {
		return t.Elem
	}
	return 0
}

// Array is the array type of an element type, 0 if there is none.
func (o OID) Array() OID {
	if t := Lookup(o); t != nil {
		return t.Array
	}
	return 0
}

// IsArray reports whether o is an array type.
func (o OID) IsArray() bool { return o.Elem() != 0 }

// ElemType is the type of the elements of an array type; they have its modifier.
func (t Type) ElemType() Type { return Type{OID: t.OID.Elem(), Mod: t.Mod} }

// ArrayType is the array type whose elements are t.
func (t Type) ArrayType() Type { return Type{OID: t.OID.Array(), Mod: t.Mod} }

// sqlNames are the names that format_type uses where they differ from typname.
var sqlNames = map[OID]string{
	OIDBool: "boolean", OIDInt2: "smallint", OIDInt4: "integer", OIDInt8: "bigint", OIDFloat4: "real",
	OIDFloat8: "double precision", OIDVarchar: "character varying", OIDBPChar: "character",
	OIDTime: "time without time zone", OIDTimeTZ: "time with time zone", OIDTimestamp: "timestamp without time zone",
	OIDTimestampTZ: "timestamp with time zone", OIDVarbit: "bit varying", OIDChar: `"char"`, OIDAny: `"any"`,
}

// Name is the type's SQL name without modifier, as it occurs in messages.
func (o OID) Name() string {
	if s, ok := sqlNames[o]; ok {
		return s
	}
	t := Lookup(o)
	switch {
	case t == nil:
		return "???"
	case t.IsArray():
		return t.Elem.Name() + "[]"
	case o >= FirstUser:
		return quoteUser(t)
	}
	return t.Name
}

// String is the type as format_type(oid, mod) prints it: "numeric(10,2)",
// "timestamp(3) with time zone", "character varying(20)[]".
func (t Type) String() string {
	if i := Lookup(t.OID); i != nil && i.IsArray() {
		return Type{OID: i.Elem, Mod: t.Mod}.String() + "[]"
	}
	name := t.OID.Name()
	if t.Mod < 0 {
		switch t.OID {
		case OIDBPChar:
			return "bpchar" // character without a length means character(1)
		case OIDBit:
			return `"bit"` // likewise
		}
		return name
	}
	switch t.OID {
	case OIDTime, OIDTimeTZ, OIDTimestamp, OIDTimestampTZ:
		base, rest, _ := strings.Cut(name, " ")
		return base + TypmodOut(t) + " " + rest
	}
	return name + TypmodOut(t)
}
