package pgcatalog

import (
	"slices"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

func init() {
	cached := func(f func(m *model, e Env, f *filler)) definition { return definition{compute: f} }
	live := func(f func(m *model, e Env, f *filler)) definition { return definition{compute: f, live: true} }
	define(map[string]definition{
		"pg_description": cached(descriptions),
		"pg_rewrite":     cached(rewrites),
		"pg_tables":      personal(pgTables),
		"pg_views":       personal(pgViews),
		"pg_matviews":    personal(pgMatviews),
		"pg_indexes":     cached(pgIndexes),
	})
	for _, prefix := range []string{"pg_stat_", "pg_stat_xact_", "pg_statio_"} {
		for _, which := range []string{"all", "sys", "user"} {
			define(map[string]definition{
				prefix + which + "_tables":  live(tableStats),
				prefix + which + "_indexes": cached(indexStats),
			})
		}
	}
}

// description is a row of pg_description.
type description struct {
	obj, class uint32
	sub        int
	text       string
}

// schemaDescriptions are those of the schemas that always exist.
var schemaDescriptions = []description{
	{nspCatalog, oidPgNamespace, 0, "system catalog schema"},
	{nspPublic, oidPgNamespace, 0, "standard public schema"},
}

func (m *model) descriptions() []description {
	m.commented.Do(func() {
		m.comments = m.describe()
		m.commentsOn = make(map[uint32][]description)
		for _, d := range m.comments {
			if d.sub == 0 {
				m.commentsOn[d.obj] = append(m.commentsOn[d.obj], d)
			}
		}
	})
	return m.comments
}

func (m *model) describe() []description {
	var out []description
	add := func(oid, class uint32, sub int, comment string) {
		if comment != "" {
			out = append(out, description{oid, class, sub, comment})
		}
	}
	for _, s := range m.schemas {
		standard := slices.IndexFunc(schemaDescriptions, func(d description) bool { return d.obj == s.OID })
		if s.Comment == "" && standard >= 0 {
			out = append(out, schemaDescriptions[standard])
		}
		add(s.OID, oidPgNamespace, 0, s.Comment)
	}
	for _, o := range m.snap.Objects() {
		switch {
		case o.Def != nil:
			add(o.OID, oidPgType, 0, o.Comment)
		case o.Function != nil:
			add(o.OID, oidPgProc, 0, o.Comment)
		}
	}
	for _, r := range m.rels {
		if r.obj == nil {
			if p := r.table.obj.Primary; p != nil && r.constraint == 'p' {
				add(r.oid, oidPgClass, 0, p.IndexComment)
			}
			continue
		}
		if r.obj.Def == nil {
			add(r.oid, oidPgClass, 0, r.obj.Comment)
		}
		if r.table != nil {
			continue // its columns are those of the table
		}
		for num, c := range r.attrs {
			add(r.oid, oidPgClass, num, c.Comment)
		}
	}
	for _, c := range append(m.constraints(), m.domainConstraints()...) {
		add(c.oid, oidPgConstr, 0, c.comment)
	}
	return out
}

func descriptions(m *model, _ Env, f *filler) {
	ds := m.descriptions()
	f.n = len(ds)
	f.oid("objoid", func(i int) uint32 { return ds[i].obj })
	f.oid("classoid", func(i int) uint32 { return ds[i].class })
	f.int("objsubid", func(i int) int64 { return int64(ds[i].sub) })
	f.text("description", func(i int) string { return ds[i].text })
}

// ofKind are the relations of the given kinds.
func (m *model) ofKind(kinds string) []*rel {
	var out []*rel
	for _, r := range m.rels {
		if strings.IndexByte(kinds, r.kind) >= 0 {
			out = append(out, r)
		}
	}
	return out
}

func rewrites(m *model, _ Env, f *filler) {
	var rs []*rel
	for _, r := range m.ofKind("vm") {
		if !r.system() {
			rs = append(rs, r)
		}
	}
	f.n = len(rs)
	f.oid("oid", func(i int) uint32 { return implied(rs[i].oid, impliedRule) })
	f.all("_RETURN", "rulename")
	f.oid("ev_class", func(i int) uint32 { return rs[i].oid })
	f.all(byte('1'), "ev_type")
	f.all(byte('O'), "ev_enabled")
	f.all(true, "is_instead")
	f.all("<>", "ev_qual")
	f.text("ev_action", func(i int) string { return rs[i].obj.Query })
}

// viewDef is what pg_get_viewdef gives, "" for system views.
func (r *rel) viewDef() string {
	if r.obj == nil || !r.isView() || r.obj.Query == "" {
		return ""
	}
	return " " + strings.TrimRight(r.obj.Query, " ;\n") + ";"
}

func (m *model) relColumns(f *filler, rs []*rel, schema, name, owner string, user string) {
	f.n = len(rs)
	f.text(schema, func(i int) string { return rs[i].schema })
	f.text(name, func(i int) string { return rs[i].name })
	if owner != "" {
		f.all(user, owner)
	}
}

func pgTables(m *model, e Env, f *filler) {
	rs := m.ofKind("r")
	m.relColumns(f, rs, "schemaname", "tablename", "tableowner", e.User())
	f.bool("hasindexes", func(i int) bool { return len(rs[i].indexes) > 0 })
	f.bool("hastriggers", func(i int) bool { return m.hasTriggers(rs[i]) })
	f.all(false, "hasrules", "rowsecurity")
}

func pgViews(m *model, e Env, f *filler) {
	rs := m.ofKind("v")
	m.relColumns(f, rs, "schemaname", "viewname", "viewowner", e.User())
	f.some("definition", func(i int) string { return rs[i].viewDef() })
}

func pgMatviews(m *model, e Env, f *filler) {
	rs := m.ofKind("m")
	m.relColumns(f, rs, "schemaname", "matviewname", "matviewowner", e.User())
	f.bool("hasindexes", func(i int) bool { return len(rs[i].indexes) > 0 })
	f.all(true, "ispopulated")
	f.some("definition", func(i int) string { return rs[i].viewDef() })
}

func pgIndexes(m *model, _ Env, f *filler) {
	xs := m.indexRels()
	f.n = len(xs)
	f.text("schemaname", func(i int) string { return xs[i].schema })
	f.text("tablename", func(i int) string { return xs[i].table.name })
	f.text("indexname", func(i int) string { return xs[i].name })
	f.text("indexdef", func(i int) string { return xs[i].indexDef(xs[i].table.qualified(), false) })
}

// inStatistics chooses relations by the name of a statistics view: all, the
// system's or the users'.
func inStatistics(view string, r *rel) bool {
	system := r.nsp == nspCatalog || r.schema == "information_schema"
	switch {
	case strings.Contains(view, "_sys_"):
		return system
	case strings.Contains(view, "_user_"):
		return !system
	}
	return true
}

func statRels(rs []*rel, view string) []*rel {
	var out []*rel
	for _, r := range rs {
		if inStatistics(view, r) {
			out = append(out, r)
		}
	}
	return out
}

// zeros fills the counters of a statistics view: nothing is counted.
func (f *filler) zeros() {
	for i, c := range f.rel.columns {
		if c.Type.OID == types.OIDInt8 && f.cols[i] == nil {
			f.cols[i] = columnar.MakeFixed(columnar.KindInt64, f.n)
		}
	}
}

func tableStats(m *model, e Env, f *filler) {
	rs := statRels(m.ofKind("rm"), f.rel.name)
	m.relColumns(f, rs, "schemaname", "relname", "", "")
	f.oid("relid", func(i int) uint32 { return rs[i].oid })
	if _, ok := f.rel.index["n_live_tup"]; ok {
		f.int("n_live_tup", func(i int) int64 { return int64(max(m.tuples(e, rs[i]), 0)) })
	}
	f.zeros()
}

func indexStats(m *model, _ Env, f *filler) {
	xs := statRels(m.indexRels(), f.rel.name)
	f.n = len(xs)
	f.oid("relid", func(i int) uint32 { return xs[i].table.oid })
	f.oid("indexrelid", func(i int) uint32 { return xs[i].oid })
	f.text("schemaname", func(i int) string { return xs[i].schema })
	f.text("relname", func(i int) string { return xs[i].table.name })
	f.text("indexrelname", func(i int) string { return xs[i].name })
	f.zeros()
}
