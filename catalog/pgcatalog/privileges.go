package pgcatalog

import (
	"slices"
	"strconv"

	"github.com/streamdb/streamdb/catalog"
)

// The views of information_schema about roles and privileges. There is one role,
// which owns all and may do with it what the kind of object allows.

func init() {
	define(map[string]definition{
		".enabled_roles":       personal(func(_ *model, e Env, f *filler) { f.rows(row{"role_name": e.User()}) }),
		".table_privileges":    personal(tablePrivileges),
		".role_table_grants":   personal(tablePrivileges),
		".column_privileges":   personal(columnPrivileges),
		".role_column_grants":  personal(columnPrivileges),
		".routine_privileges":  personal(routinePrivileges),
		".role_routine_grants": personal(routinePrivileges),
		".usage_privileges":    personal(usagePrivileges),
		".role_usage_grants":   personal(usagePrivileges),
		".udt_privileges":      personal(typePrivileges),
		".role_udt_grants":     personal(typePrivileges),
	})
}

var (
	tableRights  = []string{"INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"}
	columnRights = []string{"SELECT", "INSERT", "UPDATE", "REFERENCES"}
	readRights   = []string{"SELECT"}
)

// readOnly says of a relation that nothing can ever be written to it.
func (r *rel) readOnly() bool { return r.system() || r.kind == 'm' }

func tablePrivileges(m *model, e Env, f *filler) {
	type grant struct {
		rel   *rel
		right string
	}
	var gs []grant
	for _, r := range m.ofKind("rvm") {
		rights := readRights
		if !r.readOnly() {
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
		if !a.rel.readOnly() {
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

// shared fills who has a right to each of n objects: the owner, who may grant it, and
// everyone. It gives the object of a row.
func (f *filler) shared(e Env, n int) func(i int) int {
	f.n = 2 * n
	f.all(e.User(), "grantor")
	f.text("grantee", func(i int) string {
		if i < n {
			return e.User()
		}
		return "PUBLIC"
	})
	f.text("is_grantable", func(i int) string { return yesNo(i < n) })
	return func(i int) int { return i % n }
}

func routinePrivileges(m *model, e Env, f *filler) {
	ps := m.allProcs()
	of := f.shared(e, len(ps))
	f.all(e.Database(), "specific_catalog", "routine_catalog")
	f.text("specific_schema", func(i int) string { return ps[of(i)].schema() })
	f.same("routine_schema", "specific_schema")
	f.text("specific_name", func(i int) string { return ps[of(i)].specific() })
	f.text("routine_name", func(i int) string { return ps[of(i)].name })
	f.all("EXECUTE", "privilege_type")
}

// usagePrivileges are the rights to use domains and collations. PostgreSQL lists sequences
// only after GRANT.
func usagePrivileges(m *model, e Env, f *filler) {
	type grant struct {
		schema, name, kind, to string
		own                    bool
	}
	var gs []grant
	cs := factsOf("pg_collation")
	for i := range cs.rows {
		gs = append(gs, grant{catalog.SchemaPgCatalog, cs.get(i, "collname"), "COLLATION", "PUBLIC", false})
	}
	for _, d := range m.domains() {
		gs = append(gs, grant{d.Schema, d.Name, "DOMAIN", "PUBLIC", false}, grant{d.Schema, d.Name, "DOMAIN", e.User(), true})
	}
	f.n = len(gs)
	f.all(e.User(), "grantor")
	f.text("grantee", func(i int) string { return gs[i].to })
	f.all(e.Database(), "object_catalog")
	f.text("object_schema", func(i int) string { return gs[i].schema })
	f.text("object_name", func(i int) string { return gs[i].name })
	f.text("object_type", func(i int) string { return gs[i].kind })
	f.all("USAGE", "privilege_type")
	f.text("is_grantable", func(i int) string { return yesNo(gs[i].own) })
}

// typePrivileges are the rights to use row types.
func typePrivileges(m *model, e Env, f *filler) {
	rs := slices.DeleteFunc(slices.Clone(m.rels), func(r *rel) bool { return r.rowType == 0 })
	of := f.shared(e, len(rs))
	f.all(e.Database(), "udt_catalog")
	f.text("udt_schema", func(i int) string { return rs[of(i)].schema })
	f.text("udt_name", func(i int) string { return rs[of(i)].name })
	f.all("TYPE USAGE", "privilege_type")
}
