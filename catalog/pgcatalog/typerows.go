package pgcatalog

import (
	"strings"

	"github.com/streamdb/streamdb/sql/types"
)

func init() {
	define(map[string]definition{"pg_type": {compute: pgTypes}})
}

// typeRow is a row of pg_type.
type typeRow struct {
	oid, nsp    uint32
	name        string
	relid       uint32
	elem, array uint32
	*types.Info
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
	for _, r := range m.rels {
		if r.rowType != 0 {
			out = append(out, typeRow{r.rowType, r.nsp, r.name, r.oid, 0, r.arrayType, compositeInfo},
				typeRow{r.arrayType, r.nsp, arrayName(r.name), 0, r.rowType, 0, compositeArrayInfo})
		}
	}
	return out
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
	f.all(byte(','), "typdelim")
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
			if t.Subscript == "array_subscript_handler" && t.Category == 'A' && strings.HasPrefix(t.Input, "array_") {
				return "array_typanalyze"
			}
			return "-"
		},
	} {
		f.oid(name, func(i int) uint32 { return supportProc(fn(ts[i].Info)) })
	}
	f.char("typalign", func(i int) byte { return ts[i].Align })
	f.char("typstorage", func(i int) byte { return ts[i].Storage })
	f.all(-1, "typtypmod")
	f.oid("typcollation", func(i int) uint32 { return ts[i].Collation })
}
