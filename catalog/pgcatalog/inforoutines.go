package pgcatalog

import (
	"strconv"

	"github.com/streamdb/streamdb/sql/types"
)

// The views of information_schema about functions and procedures.

func init() {
	define(map[string]definition{
		".routines":   {compute: routines, personal: true},
		".parameters": {compute: parameters, personal: true, pathed: true},
	})
}

func (p *proc) returns() types.Type { return types.Of(types.OID(p.ret)) }

func routines(m *model, e Env, f *filler) {
	ps := m.allProcs()
	f.n = len(ps)
	f.all(e.Database(), "specific_catalog", "routine_catalog")
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
	f.some("type_udt_catalog", result(func(types.Type) string { return e.Database() }))
	f.some("data_type", result(argumentTypeName))
	f.some("type_udt_name", result(func(t types.Type) string { return infoOf(t).Name }))
	f.some("dtd_identifier", result(func(types.Type) string { return "0" }))
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

func parameters(m *model, e Env, f *filler) {
	type param struct {
		p   *proc
		num int
		arg argument
	}
	var xs []param
	for _, p := range m.allProcs() {
		for i, a := range p.arguments() {
			xs = append(xs, param{p, i + 1, a})
		}
	}
	f.n = len(xs)
	f.all(e.Database(), "specific_catalog", "udt_catalog")
	f.text("specific_schema", func(i int) string { return xs[i].p.schema() })
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
	f.text("data_type", func(i int) string { return argumentTypeName(xs[i].arg.typ) })
	f.text("udt_schema", func(i int) string { return typeSchema(xs[i].arg.typ) })
	f.text("udt_name", func(i int) string { return infoOf(xs[i].arg.typ).Name })
	f.text("dtd_identifier", func(i int) string { return strconv.Itoa(xs[i].num) })
	f.some("parameter_default", func(i int) string { return m.shortDefault(e, xs[i].arg.deflt, xs[i].arg.typ) })
}

// argumentTypeName is the data_type of what is not looked at through domains.
func argumentTypeName(t types.Type) string {
	if t.OID.IsDomain() {
		return "USER-DEFINED"
	}
	return dataTypeName(t)
}
