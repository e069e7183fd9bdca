package pgcatalog

import (
	"sync"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/types"
)

// namedTypes are PostgreSQL's types that have a row in pg_type here, but no values:
// clients look up their OIDs, and nothing can be cast to them.
type namedTypes struct {
	rows   []typeRow
	byOID  map[uint32]*typeRow
	byName map[relName]*typeRow
}

var moreTypes = sync.OnceValue(func() *namedTypes {
	t := factsOf("pg_type")
	schemas := map[string]uint32{catalog.SchemaPgCatalog: nspCatalog}
	for _, s := range catalog.Empty().Schemas() {
		schemas[s.Name] = s.OID
	}
	out := &namedTypes{rows: make([]typeRow, len(t.rows)), byOID: map[uint32]*typeRow{}, byName: map[relName]*typeRow{}}
	for i := range t.rows {
		get := func(col string) string { return t.get(i, col) }
		num := func(col string) int64 { return number(t.get(i, col)) }
		info := &types.Info{OID: types.OID(num("oid")), Name: get("typname"), Schema: get("nspname"), Len: int16(num("typlen")), ByVal: get("typbyval") == "1",
			Kind: get("typtype")[0], Category: get("typcategory")[0], Preferred: get("typispreferred") == "1", Elem: types.OID(num("typelem")),
			Array: types.OID(num("typarray")), Align: get("typalign")[0], Storage: get("typstorage")[0], Collation: uint32(num("typcollation")),
			Input: get("typinput"), Output: get("typoutput"), Receive: get("typreceive"), Send: get("typsend"), ModIn: get("typmodin"),
			ModOut: get("typmodout"), Subscript: get("typsubscript")}
		if info.Kind == 'd' {
			info.Definition = &types.Definition{Kind: 'd', Base: types.Type{OID: types.OID(num("typbasetype")), Mod: int32(num("typtypmod"))}}
		}
		r := &out.rows[i]
		*r = typeRow{oid: uint32(info.OID), nsp: schemas[info.Schema], name: info.Name, elem: uint32(info.Elem), array: uint32(info.Array), Info: info}
		out.byOID[r.oid], out.byName[relName{info.Schema, info.Name}] = r, r
	}
	return out
})

// moreTypeName is the name of one of them as format_type prints it, "" for others.
func (r *Reader) moreTypeName(oid uint32) string {
	t := moreTypes().byOID[oid]
	switch {
	case t == nil:
		return ""
	case t.elem != 0:
		return r.moreTypeName(t.elem) + "[]"
	case t.Schema == catalog.SchemaPgCatalog || r.typeVisible(t.Schema, t.name):
		return quoteIdent(t.name)
	}
	return quoteIdent(t.Schema) + "." + quoteIdent(t.name)
}

// moreTypeOID finds one of them by its name, 0 if there is none; no schema stands for
// the search path.
func (r *Reader) moreTypeOID(schema, name string, array bool) uint32 {
	path := []string{schema}
	if schema == "" {
		path = append([]string{catalog.SchemaPgCatalog}, r.env.SearchPath()...)
	}
	for _, s := range path {
		if t := moreTypes().byName[relName{s, name}]; t != nil && array {
			return t.array
		} else if t != nil {
			return t.oid
		}
	}
	return 0
}
