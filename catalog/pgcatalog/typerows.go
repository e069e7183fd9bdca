package pgcatalog

import (
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

func init() {
	define(map[string]definition{
		"pg_type": {compute: pgTypes}, "pg_enum": {compute: pgEnums}, "pg_range": {compute: pgRanges},
	})
}

// typeRow is a row of pg_type.
type typeRow struct {
	oid, nsp    uint32
	name        string
	relid       uint32
	elem, array uint32
	*types.Info
}

// domain is the definition of a domain, nil for other types.
func (t *typeRow) domain() *types.Definition {
	if t.Info.Kind == 'd' {
		return t.Definition
	}
	return nil
}

// Row types of relations and the arrays of them differ in nothing else.
var (
	compositeInfo = &types.Info{Len: -1, Kind: 'c', Category: 'C', Align: 'd', Storage: 'x', Input: "record_in", Output: "record_out",
		Receive: "record_recv", Send: "record_send", ModIn: "-", ModOut: "-", Subscript: "-"}
	compositeArrayInfo = &types.Info{Len: -1, Kind: 'b', Category: 'A', Align: 'd', Storage: 'x', Input: "array_in", Output: "array_out",
		Receive: "array_recv", Send: "array_send", ModIn: "-", ModOut: "-", Subscript: "array_subscript_handler"}
)

// arrayName is the name of the array type of a row type.
func arrayName(name string) string {
	if len(name) >= maxName {
		name = strings.ToValidUTF8(name[:maxName-1], "")
	}
	return "_" + name
}

func (m *model) types() []typeRow {
	infos := types.All()
	out := make([]typeRow, 0, len(infos)+2*len(m.rels))
	for i := range infos {
		t := &infos[i]
		out = append(out, typeRow{uint32(t.OID), nspCatalog, t.Name, 0, uint32(t.Elem), uint32(t.Array), t})
	}
	out = append(out, moreTypes().rows...)
	for _, o := range m.userTypes() {
		for _, t := range types.UserDefined(types.OID(o.OID)) {
			if t.Kind != 'c' && (t.Elem == 0 || o.Def.Kind != 'c') { // those are with the relations
				out = append(out, typeRow{uint32(t.OID), m.snap.Schema(o.Schema).OID, t.Name, 0, uint32(t.Elem), uint32(t.Array), t})
			}
		}
	}
	for _, r := range m.rels {
		if r.rowType != 0 {
			out = append(out, typeRow{r.rowType, r.nsp, r.name, r.oid, 0, r.arrayType, compositeInfo},
				typeRow{r.arrayType, r.nsp, arrayName(r.name), 0, r.rowType, 0, compositeArrayInfo})
		}
	}
	return out
}

// userTypes are the types that users have made, by OID.
func (m *model) userTypes() []*catalog.Object {
	var out []*catalog.Object
	for _, s := range m.schemas {
		out = append(out, m.snap.Types(s.Name)...)
	}
	slices.SortFunc(out, func(a, b *catalog.Object) int { return int(a.OID) - int(b.OID) })
	return out
}

func pgEnums(m *model, _ Env, f *filler) {
	type row struct {
		typ uint32
		num int
		l   types.Label
	}
	var rows []row
	for _, o := range m.userTypes() {
		for i, l := range o.Def.Labels {
			rows = append(rows, row{o.OID, i, l})
		}
	}
	f.n = len(rows)
	f.oid("oid", func(i int) uint32 { return implied(rows[i].typ, impliedKey+rows[i].num) })
	f.oid("enumtypid", func(i int) uint32 { return rows[i].typ })
	f.each("enumsortorder", func(i int, b *columnar.Builder) { b.Float32(float32(rows[i].num + 1)) })
	f.text("enumlabel", func(i int) string { return rows[i].l.Name })
}

func pgRanges(m *model, _ Env, f *filler) {
	var rs []*types.Info
	for _, t := range m.types() {
		if t.Multirange != 0 {
			rs = append(rs, t.Info)
		}
	}
	f.n = len(rs)
	f.oid("rngtypid", func(i int) uint32 { return uint32(rs[i].OID) })
	f.oid("rngsubtype", func(i int) uint32 { return uint32(rs[i].Subtype) })
	f.oid("rngmultitypid", func(i int) uint32 { return uint32(rs[i].Multirange) })
	f.oid("rngsubopc", func(i int) uint32 { return opclassOf(types.Of(rs[i].Subtype)) })
	f.oid("rngcanonical", func(i int) uint32 { return supportProc(rs[i].Name + "_canonical") })
	f.oid("rngsubdiff", func(i int) uint32 { return supportProc(rs[i].Name + "_subdiff") })
}

// analyzer is the function that gathers statistics of a type, "-" for the usual one.
func analyzer(t *types.Info) string {
	switch {
	case t.Kind == 'd':
		if b := types.Lookup(t.Definition.Base.OID); b != nil {
			return analyzer(b)
		}
	case t.Kind == 'r':
		return "range_typanalyze"
	case t.Kind == 'm':
		return "multirange_typanalyze"
	case t.OID == types.OIDTSVector:
		return "ts_typanalyze"
	case t.Subscript == "array_subscript_handler" && strings.HasPrefix(t.Input, "array_"):
		return "array_typanalyze"
	}
	return "-"
}

func pgTypes(m *model, _ Env, f *filler) {
	ts := m.types()
	f.n = len(ts)
	f.oid("oid", func(i int) uint32 { return ts[i].oid })
	f.text("typname", func(i int) string { return ts[i].name })
	f.oid("typnamespace", func(i int) uint32 { return ts[i].nsp })
	f.all(roleOID, "typowner")
	f.int("typlen", func(i int) int64 { return int64(ts[i].Len) })
	f.bool("typbyval", func(i int) bool { return ts[i].ByVal })
	f.char("typtype", func(i int) byte { return ts[i].Kind })
	f.char("typcategory", func(i int) byte { return ts[i].Category })
	f.bool("typispreferred", func(i int) bool { return ts[i].Preferred })
	f.all(true, "typisdefined")
	f.each("typdelim", func(i int, b *columnar.Builder) {
		o := types.OID(ts[i].oid)
		b.Bytes([]byte{max(o.Delimiter(), o.Elem().Delimiter())})
	})
	f.oid("typrelid", func(i int) uint32 { return ts[i].relid })
	f.oid("typelem", func(i int) uint32 { return ts[i].elem })
	f.oid("typarray", func(i int) uint32 { return ts[i].array })
	for name, fn := range map[string]func(t *types.Info) string{
		"typsubscript": func(t *types.Info) string { return t.Subscript },
		"typinput":     func(t *types.Info) string { return t.Input },
		"typoutput":    func(t *types.Info) string { return t.Output },
		"typreceive":   func(t *types.Info) string { return t.Receive },
		"typsend":      func(t *types.Info) string { return t.Send },
		"typmodin":     func(t *types.Info) string { return t.ModIn },
		"typmodout":    func(t *types.Info) string { return t.ModOut },
		"typanalyze": func(t *types.Info) string {
			return analyzer(t)
		},
	} {
		f.oid(name, func(i int) uint32 { return supportProc(fn(ts[i].Info)) })
	}
	f.char("typalign", func(i int) byte { return ts[i].Align })
	f.char("typstorage", func(i int) byte { return ts[i].Storage })
	f.int("typtypmod", func(i int) int64 {
		if d := ts[i].domain(); d != nil {
			return int64(d.Base.Mod)
		}
		return -1
	})
	f.oid("typbasetype", func(i int) uint32 {
		if d := ts[i].domain(); d != nil {
			return uint32(d.Base.OID)
		}
		return 0
	})
	f.bool("typnotnull", func(i int) bool { d := ts[i].domain(); return d != nil && d.NotNull })
	f.int("typndims", func(i int) int64 {
		if d := ts[i].domain(); d != nil && infoOf(d.Base).IsArray() {
			return 1
		}
		return 0
	})
	f.some("typdefault", func(i int) string {
		if d := ts[i].domain(); d != nil {
			return d.Default
		}
		return ""
	})
	f.same("typdefaultbin", "typdefault")
	f.oid("typcollation", func(i int) uint32 { return ts[i].Collation })
}
