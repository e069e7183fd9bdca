package pgcatalog

import (
	"strconv"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/types"
)

// The views of information_schema about roles, privileges and routines. There
// is one role, which owns all and may do with it what the kind of object allows.

func init() {
	personal := func(f func(m *model, e Env, f *filler)) definition { return definition{compute: f, personal: true} }
	define(map[string]definition{
		".enabled_roles":       personal(func(_ *model, e Env, f *filler) { f.rows(row{"role_name": e.User()}) }),
		".table_privileges":    personal(tablePrivileges),
		".role_table_grants":   personal(tablePrivileges),
		".column_privileges":   personal(columnPrivileges),
		".role_column_grants":  personal(columnPrivileges),
		".routine_privileges":  personal(routinePrivileges),
		".role_routine_grants": personal(routinePrivileges),
		".routines":            personal(routines),
		".parameters":          personal(parameters),
	})
}

var (
	tableRights  = []string{"INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"}
	columnRights = []string{"SELECT", "INSERT", "UPDATE", "REFERENCES"}
	readRights   = []string{"SELECT"}
)

func tablePrivileges(m *model, e Env, f *filler) {
	type grant struct {
		rel   *rel
		right string
	}
	var gs []grant
	for _, r := range m.ofKind("rvm") {
		rights := readRights
		if r.insertable() {
			rights = tableRights
		}
		for _, x := range rights {
			gs = append(gs, grant{r, x})
		}
	}
	f.n = len(gs)
	f.all(e.User(), "grantor", "grantee")
	f.all(e.Database(), "table_catalog")
	f.text("table_schema", func(i int) string { return gs[i].rel.schema })
	f.text("table_name", func(i int) string { return gs[i].rel.name })
	f.text("privilege_type", func(i int) string { return gs[i].right })
	f.all("YES", "is_grantable")
	f.text("with_hierarchy", func(i int) string { return yesNo(gs[i].right == "SELECT") })
}

func columnPrivileges(m *model, e Env, f *filler) {
	type grant struct {
		attr
		right string
	}
	var gs []grant
	for _, a := range m.tableAttrs() {
		rights := readRights
		if a.rel.insertable() {
			rights = columnRights
		}
		for _, x := range rights {
			gs = append(gs, grant{a, x})
		}
	}
	f.n = len(gs)
	f.all(e.User(), "grantor", "grantee")
	f.all(e.Database(), "table_catalog")
	f.text("table_schema", func(i int) string { return gs[i].rel.schema })
	f.text("table_name", func(i int) string { return gs[i].rel.name })
	f.text("column_name", func(i int) string { return gs[i].col.Name })
	f.text("privilege_type", func(i int) string { return gs[i].right })
	f.all("YES", "is_grantable")
}

// specific is the name that tells overloads apart.
func (p *proc) specific() string { return p.name + "_" + strconv.Itoa(int(p.oid)) }

func routinePrivileges(m *model, e Env, f *filler) {
	ps := m.allProcs()
	f.n = len(ps)
	f.all(e.User(), "grantor", "grantee")
	f.all(e.Database(), "specific_catalog", "routine_catalog")
	f.text("specific_schema", func(i int) string { return ps[i].schema() })
	f.same("routine_schema", "specific_schema")
	f.text("specific_name", func(i int) string { return ps[i].specific() })
	f.text("routine_name", func(i int) string { return ps[i].name })
	f.all("EXECUTE", "privilege_type")
	f.all("YES", "is_grantable")
}

func (p *proc) returns() types.Type { return types.Of(types.OID(p.ret)) }

func routines(m *model, e Env, f *filler) {
	ps := m.allProcs()
	f.n = len(ps)
	f.all(e.Database(), "specific_catalog", "routine_catalog", "type_udt_catalog")
	f.text("specific_schema", func(i int) string { return ps[i].schema() })
	f.same("routine_schema", "specific_schema")
	f.some("type_udt_schema", func(i int) string {
		if ps[i].kind == 'p' {
			return ""
		}
		return typeSchema(ps[i].returns())
	})
	f.text("specific_name", func(i int) string { return ps[i].specific() })
	f.text("routine_name", func(i int) string { return ps[i].name })
	f.some("routine_type", func(i int) string {
		return map[byte]string{'f': "FUNCTION", 'p': "PROCEDURE"}[ps[i].kind]
	})
	result := func(f func(types.Type) string) func(i int) string { // a procedure has none
		return func(i int) string {
			if ps[i].kind == 'p' {
				return ""
			}
			return f(ps[i].returns())
		}
	}
	f.some("data_type", result(dataTypeName))
	f.some("type_udt_name", result(func(t types.Type) string { return infoOf(t).Name }))
	f.all("0", "dtd_identifier")
	f.text("routine_body", func(i int) string {
		if ps[i].lang == langSQL {
			return "SQL"
		}
		return "EXTERNAL"
	})
	f.text("routine_definition", func(i int) string { return ps[i].src })
	f.text("external_language", func(i int) string {
		if ps[i].lang == langSQL {
			return "SQL"
		}
		return "INTERNAL"
	})
	f.all("GENERAL", "parameter_style")
	f.text("is_deterministic", func(i int) string { return yesNo(ps[i].volatile == 'i') })
	f.all("MODIFIES", "sql_data_access")
	f.some("is_null_call", func(i int) string {
		if ps[i].kind == 'f' {
			return yesNo(ps[i].strict)
		}
		return ""
	})
	f.all("YES", "schema_level_routine")
	f.all(0, "max_dynamic_result_sets")
	f.all("INVOKER", "security_type")
	f.all("NO", "as_locator", "is_udt_dependent")
}

func parameters(_ *model, e Env, f *filler) {
	type param struct {
		p   *proc
		num int
		arg argument
	}
	var xs []param
	for _, p := range procs().list {
		for i, a := range p.arguments() {
			xs = append(xs, param{p, i + 1, a})
		}
	}
	f.n = len(xs)
	f.all(e.Database(), "specific_catalog", "udt_catalog")
	f.text("specific_schema", func(i int) string { return xs[i].p.schema() })
	f.all(catalog.SchemaPgCatalog, "udt_schema")
	f.text("specific_name", func(i int) string { return xs[i].p.specific() })
	f.int("ordinal_position", func(i int) int64 { return int64(xs[i].num) })
	f.text("parameter_mode", func(i int) string {
		switch xs[i].arg.mode {
		case 'o', 't':
			return "OUT"
		case 'b':
			return "INOUT"
		}
		return "IN"
	})
	f.all("NO", "is_result", "as_locator")
	f.some("parameter_name", func(i int) string { return xs[i].arg.name })
	f.text("data_type", func(i int) string { return dataTypeName(xs[i].arg.typ) })
	f.text("udt_name", func(i int) string { return infoOf(xs[i].arg.typ).Name })
	f.text("dtd_identifier", func(i int) string { return strconv.Itoa(xs[i].num) })
}
