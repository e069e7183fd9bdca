package pgcatalog

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// The views of information_schema about relations. Materialized views are in
// them as views, which PostgreSQL leaves out: tools that browse by
// information_schema alone would not see the objects that matter most here.

func init() {
	personal := func(f func(m *model, e Env, f *filler)) definition { return definition{compute: f, personal: true} }
	define(map[string]definition{
		".information_schema_catalog_name": personal(func(_ *model, e Env, f *filler) { f.rows(row{"catalog_name": e.Database()}) }),
		".schemata":                        personal(schemata),
		".tables":                          personal(infoTables),
		".columns":                         personal(infoColumns),
		".column_udt_usage":                personal(columnTypes),
		".element_types":                   personal(elementTypes),
		".views":                           personal(infoViews),
		".view_table_usage":                personal(viewTables),
		".character_sets":                  personal(characterSets),
		".collations":                      personal(collations),
		".table_constraints":               personal(tableConstraints),
		".check_constraints":               personal(checkConstraints),
		".key_column_usage":                personal(keyColumns),
		".constraint_column_usage":         personal(constraintColumns),
		".constraint_table_usage":          personal(constraintTables),
	})
}

func yesNo(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}

func schemata(m *model, e Env, f *filler) {
	f.n = len(m.schemas)
	f.all(e.Database(), "catalog_name")
	f.text("schema_name", func(i int) string { return m.schemas[i].Name })
	f.all(e.User(), "schema_owner")
}

// insertable reports whether INSERT applies.
func (r *rel) insertable() bool { return r.obj.Kind == catalog.KindTable }

func infoTables(m *model, e Env, f *filler) {
	rs := m.ofKind("rvm")
	f.n = len(rs)
	f.all(e.Database(), "table_catalog")
	f.text("table_schema", func(i int) string { return rs[i].schema })
	f.text("table_name", func(i int) string { return rs[i].name })
	f.text("table_type", func(i int) string {
		if rs[i].isView() {
			return "VIEW"
		}
		return "BASE TABLE"
	})
	f.text("is_insertable_into", func(i int) string { return yesNo(rs[i].events(e)&(1<<3) != 0) })
	f.all("NO", "is_typed")
}

// typeDetails are what information_schema says of a type; -1 is for NULL.
type typeDetails struct {
	maxLength, octets, precision, radix, scale, datetime int64
	interval                                             string
}

// octetsUnlimited is the length of a text without a limit.
const octetsUnlimited = 1 << 30

func detailsOf(t types.Type) typeDetails {
	d := typeDetails{-1, -1, -1, -1, -1, -1, ""}
	switch t.OID {
	case types.OIDText:
		d.octets = octetsUnlimited
	case types.OIDVarchar, types.OIDBPChar:
		d.octets = octetsUnlimited
		if t.Mod >= 4 {
			d.maxLength = int64(t.Mod - 4)
			d.octets = 4 * d.maxLength
		}
	case types.OIDInt2:
		d.precision, d.radix, d.scale = 16, 2, 0
	case types.OIDInt4:
		d.precision, d.radix, d.scale = 32, 2, 0
	case types.OIDInt8:
		d.precision, d.radix, d.scale = 64, 2, 0
	case types.OIDFloat4:
		d.precision, d.radix = 24, 2
	case types.OIDFloat8:
		d.precision, d.radix = 53, 2
	case types.OIDNumeric:
		d.radix = 10
		if t.Mod >= 4 {
			d.precision, d.scale = int64((t.Mod-4)>>16&0xffff), int64((t.Mod-4)&0x7ff^1024)-1024
		}
	case types.OIDDate:
		d.datetime = 0
	case types.OIDTime, types.OIDTimeTZ, types.OIDTimestamp, types.OIDTimestampTZ:
		d.datetime = 6
		if t.Mod >= 0 {
			d.datetime = int64(t.Mod)
		}
	case types.OIDInterval:
		d.datetime = 6
		if p := t.Mod & 0xffff; t.Mod >= 0 && p != 0xffff {
			d.datetime = int64(p)
		}
		if fields, ok := strings.CutPrefix(t.String(), "interval "); ok {
			fields, _, _ = strings.Cut(fields, "(")
			d.interval = strings.ToUpper(fields)
		}
	}
	return d
}

// behind is the type that a domain is made of; others are themselves.
func behind(t types.Type) types.Type {
	if t.OID.IsDomain() {
		return types.Lookup(t.OID).Definition.Base
	}
	return t
}

// dataTypeName is information_schema's data_type.
func dataTypeName(t types.Type) string {
	switch i := types.Lookup(t.OID); {
	case i == nil:
		return "USER-DEFINED"
	case i.IsArray():
		return "ARRAY"
	case i.Kind == 'd' && !i.Definition.Base.OID.IsDomain():
		return dataTypeName(i.Definition.Base)
	case t.OID.IsAnonymous(): // struct<…> and map(…): not PostgreSQL's
		return t.OID.Name()
	case t.OID >= types.FirstUser:
		return "USER-DEFINED"
	}
	return t.OID.Name()
}

func (f *filler) number(name string, g func(i int) int64) {
	f.each(name, func(i int, b *columnar.Builder) {
		if x := g(i); x >= 0 {
			appendInt(b, x)
		} else {
			b.Null()
		}
	})
}

// dataType fills the columns that describe a type in columns and the like.
func (f *filler) dataType(typ func(i int) types.Type) {
	ds := make([]typeDetails, f.n)
	for i := range ds {
		ds[i] = detailsOf(typ(i))
	}
	f.text("data_type", func(i int) string { return dataTypeName(typ(i)) })
	f.number("character_maximum_length", func(i int) int64 { return ds[i].maxLength })
	f.number("character_octet_length", func(i int) int64 { return ds[i].octets })
	f.number("numeric_precision", func(i int) int64 { return ds[i].precision })
	f.number("numeric_precision_radix", func(i int) int64 { return ds[i].radix })
	f.number("numeric_scale", func(i int) int64 { return ds[i].scale })
	f.number("datetime_precision", func(i int) int64 { return ds[i].datetime })
	f.some("interval_type", func(i int) string { return ds[i].interval })
}

// collation fills the collation of columns that do not have the default one.
func (f *filler) collation(database string, typ func(i int) types.Type) {
	c := func(i int) bool { return infoOf(typ(i)).Collation == 950 }
	pick := func(s string) func(i int) string {
		return func(i int) string {
			if c(i) {
				return s
			}
			return ""
		}
	}
	f.some("collation_catalog", pick(database))
	f.some("collation_schema", pick(catalog.SchemaPgCatalog))
	f.some("collation_name", pick("C"))
}

func (m *model) tableAttrs() []attr {
	return m.attrs(func(r *rel) bool { return r.table == nil && r.kind != 'c' })
}

func infoColumns(m *model, e Env, f *filler) {
	as := m.tableAttrs()
	f.n = len(as)
	f.all(e.Database(), "table_catalog", "udt_catalog")
	f.text("table_schema", func(i int) string { return as[i].rel.schema })
	f.text("table_name", func(i int) string { return as[i].rel.name })
	f.text("column_name", func(i int) string { return as[i].col.Name })
	f.int("ordinal_position", func(i int) int64 { return int64(as[i].num) })
	f.some("column_default", func(i int) string {
		if as[i].hasDefault() {
			return m.shortDefault(as[i].col.Default, as[i].col.Type)
		}
		return ""
	})
	f.text("is_nullable", func(i int) string {
		return yesNo(as[i].rel.kind != 'r' || !as[i].col.NotNull && !notNullDomain(as[i].col.Type))
	})
	typ := func(i int) types.Type { return as[i].col.Type }
	f.dataType(typ)
	f.collation(e.Database(), typ)
	f.text("udt_schema", func(i int) string { return typeSchema(behind(typ(i))) })
	f.text("udt_name", func(i int) string { return infoOf(behind(typ(i))).Name })
	domain := func(i int, s string) string {
		if typ(i).OID.IsDomain() {
			return s
		}
		return ""
	}
	f.some("domain_catalog", func(i int) string { return domain(i, e.Database()) })
	f.some("domain_schema", func(i int) string { return domain(i, typeSchema(typ(i))) })
	f.some("domain_name", func(i int) string { return domain(i, infoOf(typ(i)).Name) })
	f.text("dtd_identifier", func(i int) string { return strconv.Itoa(as[i].num) })
	f.all("NO", "is_self_referencing", "identity_cycle")
	table := func(i int) bool { return as[i].rel.kind == 'r' }
	f.text("is_identity", func(i int) string { return yesNo(table(i) && as[i].col.Identity != "") })
	f.some("identity_generation", func(i int) string { return strings.ToUpper(as[i].col.Identity) })
	f.text("is_generated", func(i int) string {
		if table(i) && as[i].col.Generated != "" {
			return "ALWAYS"
		}
		return "NEVER"
	})
	f.some("generation_expression", func(i int) string { return as[i].col.Generated })
	f.text("is_updatable", func(i int) string { return yesNo(as[i].rel.columnUpdatable(e, as[i].num)) })
}

// notNullDomain reports whether t is a domain that admits no NULL.
func notNullDomain(t types.Type) bool { return t.OID.IsDomain() && infoOf(t).Definition.NotNull }

// typeSchema is where a type is.
func typeSchema(t types.Type) string {
	if s := infoOf(t).Schema; s != "" {
		return s
	}
	return catalog.SchemaPgCatalog
}

func columnTypes(m *model, e Env, f *filler) {
	as := m.tableAttrs()
	f.n = len(as)
	f.all(e.Database(), "udt_catalog", "table_catalog")
	f.text("udt_schema", func(i int) string { return typeSchema(as[i].col.Type.Storage()) })
	f.text("udt_name", func(i int) string { return infoOf(as[i].col.Type.Storage()).Name })
	f.text("table_schema", func(i int) string { return as[i].rel.schema })
	f.text("table_name", func(i int) string { return as[i].rel.name })
	f.text("column_name", func(i int) string { return as[i].col.Name })
}

func elementTypes(m *model, e Env, f *filler) {
	var as []attr
	for _, a := range m.tableAttrs() {
		if infoOf(a.col.Type).IsArray() {
			as = append(as, a)
		}
	}
	f.n = len(as)
	f.all(e.Database(), "object_catalog", "udt_catalog")
	f.text("object_schema", func(i int) string { return as[i].rel.schema })
	f.text("object_name", func(i int) string { return as[i].rel.name })
	f.all("TABLE", "object_type")
	f.text("collection_type_identifier", func(i int) string { return strconv.Itoa(as[i].num) })
	f.text("data_type", func(i int) string { return dataTypeName(as[i].col.Type.ElemType()) })
	f.all(catalog.SchemaPgCatalog, "udt_schema")
	f.text("udt_name", func(i int) string { return infoOf(as[i].col.Type.ElemType()).Name })
	f.text("dtd_identifier", func(i int) string { return "a" + strconv.Itoa(as[i].num) })
}

func infoViews(m *model, e Env, f *filler) {
	rs := m.ofKind("vm")
	f.n = len(rs)
	f.all(e.Database(), "table_catalog")
	f.text("table_schema", func(i int) string { return rs[i].schema })
	f.text("table_name", func(i int) string { return rs[i].name })
	f.some("view_definition", func(i int) string { return rs[i].viewDef() })
	f.text("check_option", func(i int) string { return cmp.Or(strings.ToUpper(rs[i].option("check_option")), "NONE") })
	f.text("is_updatable", func(i int) string { return yesNo(rs[i].events(e)&(1<<2|1<<4) == 1<<2|1<<4) })
	f.text("is_insertable_into", func(i int) string { return yesNo(rs[i].events(e)&(1<<3) != 0) })
	f.all("NO", "is_trigger_updatable", "is_trigger_deletable", "is_trigger_insertable_into")
}

func viewTables(m *model, e Env, f *filler) {
	type use struct{ view, table *rel }
	var us []use
	for _, r := range m.ofKind("vm") {
		for _, d := range r.obj.Deps {
			if o := m.snap.ByID(d); o != nil && m.byOID[o.OID] != nil && o.Relation() {
				us = append(us, use{r, m.byOID[o.OID]})
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

// infoConstraint is a constraint as information_schema sees it: NOT NULL is a
// check with a name made of numbers.
type infoConstraint struct {
	name   string
	kind   string
	table  *rel
	clause string
	unique bool
}

func (m *model) infoConstraints() []infoConstraint {
	var out []infoConstraint
	for _, c := range m.constraints() {
		x := infoConstraint{name: c.name, table: c.table}
		switch c.kind {
		case 'p':
			x.kind = "PRIMARY KEY"
		case 'u':
			x.kind, x.unique = "UNIQUE", true
		default:
			x.kind, x.clause = "CHECK", "(("+c.expr+"))"
		}
		out = append(out, x)
	}
	for _, r := range m.ofKind("r") {
		for num, c := range r.attrs {
			if c.NotNull {
				name := strconv.Itoa(int(r.nsp)) + "_" + strconv.Itoa(int(r.oid)) + "_" + strconv.Itoa(num) + "_not_null"
				out = append(out, infoConstraint{name: name, kind: "CHECK", table: r, clause: c.Name + " IS NOT NULL"})
			}
		}
	}
	return out
}

func tableConstraints(m *model, e Env, f *filler) {
	cs := m.infoConstraints()
	f.n = len(cs)
	f.all(e.Database(), "constraint_catalog", "table_catalog")
	f.text("constraint_schema", func(i int) string { return cs[i].table.schema })
	f.text("constraint_name", func(i int) string { return cs[i].name })
	f.same("table_schema", "constraint_schema")
	f.text("table_name", func(i int) string { return cs[i].table.name })
	f.text("constraint_type", func(i int) string { return cs[i].kind })
	f.all("NO", "is_deferrable", "initially_deferred")
	f.all("YES", "enforced")
	f.some("nulls_distinct", func(i int) string {
		if cs[i].unique {
			return "YES"
		}
		return ""
	})
}

func checkConstraints(m *model, e Env, f *filler) {
	var cs []infoConstraint
	for _, c := range m.infoConstraints() {
		if c.clause != "" {
			cs = append(cs, c)
		}
	}
	ofTables := len(cs)
	ds := m.domainConstraints()
	for _, c := range ds {
		cs = append(cs, infoConstraint{name: c.name, clause: "((" + c.expr + "))"})
	}
	f.n = len(cs)
	f.all(e.Database(), "constraint_catalog")
	f.text("constraint_schema", func(i int) string {
		if i >= ofTables {
			return ds[i-ofTables].domain.Schema
		}
		return cs[i].table.schema
	})
	f.text("constraint_name", func(i int) string { return cs[i].name })
	f.text("check_clause", func(i int) string { return cs[i].clause })
}

// keyColumn is a column of a constraint.
type keyColumn struct {
	c   constraintRow
	col int
	pos int
}

func (m *model) keyColumns(checks bool) []keyColumn {
	var out []keyColumn
	for _, c := range m.constraints() {
		if c.kind == 'c' && !checks {
			continue
		}
		for pos, k := range c.key {
			out = append(out, keyColumn{c, k, pos + 1})
		}
	}
	return out
}

func (f *filler) keyColumns(e Env, ks []keyColumn) {
	f.n = len(ks)
	f.all(e.Database(), "constraint_catalog", "table_catalog")
	f.text("constraint_schema", func(i int) string { return ks[i].c.table.schema })
	f.text("constraint_name", func(i int) string { return ks[i].c.name })
	f.same("table_schema", "constraint_schema")
	f.text("table_name", func(i int) string { return ks[i].c.table.name })
	f.text("column_name", func(i int) string { return ks[i].c.table.obj.Columns[ks[i].col].Name })
}

func keyColumns(m *model, e Env, f *filler) {
	ks := m.keyColumns(false)
	f.keyColumns(e, ks)
	f.int("ordinal_position", func(i int) int64 { return int64(ks[i].pos) })
}

func constraintColumns(m *model, e Env, f *filler) { f.keyColumns(e, m.keyColumns(true)) }

func constraintTables(m *model, e Env, f *filler) {
	var cs []constraintRow
	for _, c := range m.constraints() {
		if c.kind != 'c' {
			cs = append(cs, c)
		}
	}
	f.n = len(cs)
	f.all(e.Database(), "constraint_catalog", "table_catalog")
	f.text("table_schema", func(i int) string { return cs[i].table.schema })
	f.text("table_name", func(i int) string { return cs[i].table.name })
	f.same("constraint_schema", "table_schema")
	f.text("constraint_name", func(i int) string { return cs[i].name })
}
