package pgcatalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
)

// The views of information_schema about schemas and relations. Materialized views
// are in them as views, which PostgreSQL leaves out: tools that browse by
// information_schema alone would not see the objects that matter most here.

// personal is the definition of what depends on the names of the database and the user.
func personal(f func(m *model, e Env, f *filler)) definition {
	return definition{compute: f, personal: true}
}

func init() {
	define(map[string]definition{
		".information_schema_catalog_name": personal(func(_ *model, e Env, f *filler) { f.rows(row{"catalog_name": e.Database()}) }),
		".schemata":                        personal(schemata),
		".tables":                          personal(infoTables),
		".views":                           personal(infoViews),
		".view_table_usage":                personal(viewTables),
		".view_column_usage":               personal(viewColumns),
		".view_routine_usage":              personal(viewRoutines),
		".character_sets":                  personal(characterSets),
		".collations":                      personal(collations),
	})
}

func yesNo(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}

// own reports whether a schema is neither a user's nor one that PostgreSQL has:
// tools would take it for a user's.
func own(s *catalog.Schema) bool {
	return s.System && s.Name != catalog.SchemaPgCatalog && s.Name != catalog.SchemaInformation
}

func schemata(m *model, e Env, f *filler) {
	ss := slices.DeleteFunc(slices.Clone(m.schemas), own)
	f.n = len(ss)
	f.all(e.Database(), "catalog_name")
	f.text("schema_name", func(i int) string { return ss[i].Name })
	f.all(e.User(), "schema_owner")
}

// The commands in the bit set of pg_relation_is_updatable.
const (
	updatableRows = 1<<2 | 1<<4          // UPDATE and DELETE
	updatableAll  = updatableRows | 1<<3 // and INSERT
	deletable     = 1 << 4
)

// changes are the commands that can change the relation, as a bit set.
func (m *model) changes(e Env, r *rel) int64 {
	switch {
	case r.table != nil || r.obj == nil:
	case r.obj.Kind == catalog.KindTable:
		return updatableAll
	case r.obj.Kind == catalog.KindView:
		cols := m.viewUpdatable(e, r)
		switch {
		case slices.Contains(cols, true):
			return updatableAll
		case cols != nil:
			return deletable
		}
	}
	return 0
}

// columnChanges reports whether a column can be set by UPDATE in rows that can be deleted.
func (m *model) columnChanges(e Env, r *rel, num int) bool {
	if m.changes(e, r)&updatableRows != updatableRows {
		return false
	}
	return r.obj.Kind == catalog.KindTable || num <= len(m.viewUpdatable(e, r)) && m.viewUpdatable(e, r)[num-1]
}

// viewUpdatable says of a view's columns which can be set, nil if its rows cannot be changed.
func (m *model) viewUpdatable(e Env, r *rel) []bool {
	if x, ok := m.updatable.Load(r); ok {
		return x.([]bool)
	}
	x := e.Updatable(r.obj)
	m.updatable.Store(r, x)
	return x
}

// columnUses are the columns of relations that a view's query names.
func (m *model) columnUses(e Env, r *rel) []columnUse {
	if x, ok := m.uses.Load(r); ok {
		return x.([]columnUse)
	}
	var out []columnUse
	for _, u := range e.ColumnUses(r.obj) {
		if t := m.byID[u.Relation]; t != nil && !slices.Contains(out, columnUse{t, u.Column}) {
			out = append(out, columnUse{t, u.Column})
		}
	}
	m.uses.Store(r, out)
	return out
}

// columnUse is a column that a query uses, by its place in the relation.
type columnUse struct {
	rel *rel
	col int
}

func infoTables(m *model, e Env, f *filler) {
	rs := m.ofKind("rvm")
	f.n = len(rs)
	f.all(e.Database(), "table_catalog")
	f.text("table_schema", func(i int) string { return rs[i].schema })
	f.text("table_name", func(i int) string { return rs[i].name })
	f.text("table_type", func(i int) string {
		switch {
		case rs[i].isView():
			return "VIEW"
		case rs[i].obj.Temporary:
			return "LOCAL TEMPORARY"
		}
		return "BASE TABLE"
	})
	f.text("is_insertable_into", func(i int) string { return yesNo(m.changes(e, rs[i])&(1<<3) != 0) })
	f.all("NO", "is_typed")
}

func infoViews(m *model, e Env, f *filler) {
	rs := slices.DeleteFunc(m.ofKind("vm"), func(r *rel) bool { return own(m.snap.Schema(r.schema)) })
	f.n = len(rs)
	f.all(e.Database(), "table_catalog")
	f.text("table_schema", func(i int) string { return rs[i].schema })
	f.text("table_name", func(i int) string { return rs[i].name })
	f.some("view_definition", func(i int) string { return rs[i].viewDef() })
	f.text("check_option", func(i int) string {
		return cmp.Or(strings.ToUpper(rs[i].option("check_option")), "NONE")
	})
	f.text("is_updatable", func(i int) string { return yesNo(m.changes(e, rs[i])&updatableRows == updatableRows) })
	f.text("is_insertable_into", func(i int) string { return yesNo(m.changes(e, rs[i])&(1<<3) != 0) })
	f.all("NO", "is_trigger_updatable", "is_trigger_deletable", "is_trigger_insertable_into")
}

// usersViews are the views that have a query.
func (m *model) usersViews() []*rel {
	return slices.DeleteFunc(m.ofKind("vm"), func(r *rel) bool { return r.obj.Query == "" })
}

func viewTables(m *model, e Env, f *filler) {
	type use struct{ view, table *rel }
	var us []use
	for _, r := range m.usersViews() {
		for _, d := range r.obj.Deps {
			if t := m.byID[d]; t != nil && t.kind != 'S' {
				us = append(us, use{r, t})
			}
		}
	}
	f.n = len(us)
	f.all(e.Database(), "view_catalog", "table_catalog")
	f.text("view_schema", func(i int) string { return us[i].view.schema })
	f.text("view_name", func(i int) string { return us[i].view.name })
	f.text("table_schema", func(i int) string { return us[i].table.schema })
	f.text("table_name", func(i int) string { return us[i].table.name })
}

func viewColumns(m *model, e Env, f *filler) {
	type use struct {
		view *rel
		columnUse
	}
	var us []use
	for _, r := range m.usersViews() {
		for _, u := range m.columnUses(e, r) {
			if u.rel.kind != 'S' {
				us = append(us, use{r, u})
			}
		}
	}
	f.n = len(us)
	f.all(e.Database(), "view_catalog", "table_catalog")
	f.text("view_schema", func(i int) string { return us[i].view.schema })
	f.text("view_name", func(i int) string { return us[i].view.name })
	f.text("table_schema", func(i int) string { return us[i].rel.schema })
	f.text("table_name", func(i int) string { return us[i].rel.name })
	f.text("column_name", func(i int) string { return us[i].rel.obj.Columns[us[i].col].Name })
}

func viewRoutines(m *model, e Env, f *filler) {
	type use struct {
		view *rel
		proc *proc
	}
	var us []use
	for _, r := range m.usersViews() {
		for _, d := range r.obj.Deps {
			if o := m.snap.ByID(d); o != nil && o.Function != nil {
				us = append(us, use{r, userProc(o)})
			}
		}
	}
	f.n = len(us)
	f.all(e.Database(), "table_catalog", "specific_catalog")
	f.text("table_schema", func(i int) string { return us[i].view.schema })
	f.text("table_name", func(i int) string { return us[i].view.name })
	f.text("specific_schema", func(i int) string { return us[i].proc.schema() })
	f.text("specific_name", func(i int) string { return us[i].proc.specific() })
}

func characterSets(_ *model, e Env, f *filler) {
	f.rows(row{"character_set_name": "UTF8", "character_repertoire": "UCS", "form_of_use": "UTF8", "default_collate_catalog": e.Database(),
		"default_collate_schema": catalog.SchemaPgCatalog, "default_collate_name": "C"})
}

func collations(_ *model, e Env, f *filler) {
	t := factsOf("pg_collation")
	f.n = len(t.rows)
	f.all(e.Database(), "collation_catalog")
	f.all(catalog.SchemaPgCatalog, "collation_schema")
	f.text("collation_name", func(i int) string { return t.get(i, "collname") })
	f.all("NO PAD", "pad_attribute")
}
