package pgcatalog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// The views of information_schema about columns and what has a type.

func init() {
	define(map[string]definition{
		".columns":              {compute: infoColumns, personal: true, pathed: true},
		".column_udt_usage":     personal(columnTypes),
		".column_domain_usage":  personal(columnDomains),
		".column_column_usage":  personal(columnColumns),
		".element_types":        personal(elementTypes),
		".data_type_privileges": personal(dataTypes),
		".attributes":           personal(attributesOfTypes),
		".domains":              personal(infoDomains),
		".domain_udt_usage":     personal(domainTypes),
		".user_defined_types":   personal(userDefinedTypes),
	})
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
	case types.OIDBit, types.OIDVarbit:
		if t.Mod >= 0 {
			d.maxLength = int64(t.Mod)
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
		ds[i] = detailsOf(behind(typ(i)))
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
	f.collations(database, func(i int) string {
		if infoOf(typ(i)).Collation == 950 {
			return "C"
		}
		return ""
	})
}

// collations fills the collations that columns have by their names, "" for the default one.
func (f *filler) collations(database string, name func(i int) string) {
	with := func(s string) func(i int) string {
		return func(i int) string {
			if name(i) != "" {
				return s
			}
			return ""
		}
	}
	f.some("collation_catalog", with(database))
	f.some("collation_schema", with(catalog.SchemaPgCatalog))
	f.some("collation_name", name)
}

// tableAttrs are the columns of tables and views.
func (m *model) tableAttrs() []attr {
	return m.attrs(func(r *rel) bool { return strings.IndexByte("rvm", r.kind) >= 0 })
}

// identityOf finds the sequence of an identity column, nil for other columns.
func (m *model) identityOf(a attr) *catalog.Sequence {
	if a.rel.kind != 'r' || a.col.Identity == "" {
		return nil
	}
	for _, u := range m.snap.Users(a.rel.obj.ID) {
		if q := u.Sequence; q != nil && q.Identity && q.Table == a.rel.obj.ID && q.Column == a.col.Name {
			return q
		}
	}
	for _, r := range m.ofKind("S") {
		if q := r.obj.Sequence; q.Identity && q.Table == a.rel.obj.ID && q.Column == a.col.Name {
			return q
		}
	}
	return nil
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
		if as[i].hasDefault() && as[i].col.Generated == "" {
			return m.shortDefault(e, as[i].col.Default, as[i].col.Type)
		}
		return ""
	})
	f.text("is_nullable", func(i int) string {
		return yesNo(!(as[i].rel.kind == 'r' && as[i].col.NotNull) && !notNullDomain(as[i].col.Type))
	})
	typ := func(i int) types.Type { return as[i].col.Type }
	f.dataType(typ)
	f.collations(e.Database(), func(i int) string {
		if c := as[i].col.Collation; c != "" || infoOf(typ(i)).Collation != 950 {
			return c
		}
		return "C"
	})
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
	f.all("NO", "is_self_referencing")
	m.identities(f, as)
	f.text("is_generated", func(i int) string {
		if as[i].rel.kind == 'r' && as[i].col.Generated != "" {
			return "ALWAYS"
		}
		return "NEVER"
	})
	f.some("generation_expression", func(i int) string { return as[i].col.Generated })
	f.text("is_updatable", func(i int) string { return yesNo(m.columnChanges(e, as[i].rel, as[i].num)) })
}

// identities tells of identity columns.
func (m *model) identities(f *filler, as []attr) {
	seqs := make([]*catalog.Sequence, len(as))
	for i, a := range as {
		seqs[i] = m.identityOf(a)
	}
	f.text("is_identity", func(i int) string { return yesNo(as[i].rel.kind == 'r' && as[i].col.Identity != "") })
	f.some("identity_generation", func(i int) string { return strings.ToUpper(as[i].col.Identity) })
	number := func(name string, g func(q *catalog.Sequence) int64) {
		f.some(name, func(i int) string {
			if seqs[i] == nil {
				return ""
			}
			return strconv.FormatInt(g(seqs[i]), 10)
		})
	}
	number("identity_start", func(q *catalog.Sequence) int64 { return q.Start })
	number("identity_increment", func(q *catalog.Sequence) int64 { return q.Increment })
	number("identity_minimum", func(q *catalog.Sequence) int64 { return q.Min })
	number("identity_maximum", func(q *catalog.Sequence) int64 { return q.Max })
	f.text("identity_cycle", func(i int) string { return yesNo(seqs[i] != nil && seqs[i].Cycle) })
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

// placed fills the columns that name a column of a table.
func (f *filler) placed(as []attr) {
	f.text("table_schema", func(i int) string { return as[i].rel.schema })
	f.text("table_name", func(i int) string { return as[i].rel.name })
	f.text("column_name", func(i int) string { return as[i].col.Name })
}

func columnTypes(m *model, e Env, f *filler) {
	as := m.tableAttrs()
	f.n = len(as)
	f.all(e.Database(), "udt_catalog", "table_catalog")
	f.text("udt_schema", func(i int) string { return typeSchema(behind(as[i].col.Type)) })
	f.text("udt_name", func(i int) string { return infoOf(behind(as[i].col.Type)).Name })
	f.placed(as)
}

func columnDomains(m *model, e Env, f *filler) {
	as := slices.DeleteFunc(m.tableAttrs(), func(a attr) bool { return !a.col.Type.OID.IsDomain() })
	f.n = len(as)
	f.all(e.Database(), "domain_catalog", "table_catalog")
	f.text("domain_schema", func(i int) string { return typeSchema(as[i].col.Type) })
	f.text("domain_name", func(i int) string { return infoOf(as[i].col.Type).Name })
	f.placed(as)
}

// columnColumns tells which columns generated ones are computed from.
func columnColumns(m *model, e Env, f *filler) {
	type use struct {
		attr
		from int
	}
	var us []use
	for _, a := range m.tableAttrs() {
		if a.rel.kind == 'r' && a.col.Generated != "" {
			for _, c := range columnsIn(a.col.Generated, a.rel.obj.Columns) {
				us = append(us, use{a, c})
			}
		}
	}
	f.n = len(us)
	f.all(e.Database(), "table_catalog")
	f.text("table_schema", func(i int) string { return us[i].rel.schema })
	f.text("table_name", func(i int) string { return us[i].rel.name })
	f.text("column_name", func(i int) string { return us[i].rel.obj.Columns[us[i].from].Name })
	f.text("dependent_column", func(i int) string { return us[i].col.Name })
}

// typed is something that has a type: a column, an attribute, an argument.
type typed struct {
	schema, name, kind, id string
	typ                    types.Type
}

// relTyped are the columns of relations, and the attributes of composite types.
func (m *model) relTyped() []typed {
	var out []typed
	for _, a := range m.attrs(func(r *rel) bool { return strings.IndexByte("rvmc", r.kind) >= 0 }) {
		kind := "TABLE"
		if a.rel.kind == 'c' {
			kind = "USER-DEFINED TYPE"
		}
		out = append(out, typed{a.rel.schema, a.rel.name, kind, strconv.Itoa(a.num), a.col.Type})
	}
	for _, o := range m.domains() {
		out = append(out, typed{o.Schema, o.Name, "DOMAIN", "1", o.Def.Base})
	}
	return out
}

// elementTypes tells what arrays are made of.
func elementTypes(m *model, e Env, f *filler) {
	xs := m.relTyped()
	for _, p := range m.allProcs() {
		for i, a := range p.args {
			xs = append(xs, typed{p.schema(), p.specific(), "ROUTINE", strconv.Itoa(i + 1), types.Of(types.OID(a))})
		}
		if p.kind != 'p' {
			xs = append(xs, typed{p.schema(), p.specific(), "ROUTINE", "0", p.returns()})
		}
	}
	xs = slices.DeleteFunc(xs, func(x typed) bool { i := infoOf(x.typ); return i.Elem == 0 || i.Len != -1 })
	f.n = len(xs)
	f.all(e.Database(), "object_catalog", "udt_catalog")
	f.text("object_schema", func(i int) string { return xs[i].schema })
	f.text("object_name", func(i int) string { return xs[i].name })
	f.text("object_type", func(i int) string { return xs[i].kind })
	f.text("collection_type_identifier", func(i int) string { return xs[i].id })
	elem := func(i int) types.Type { return types.Of(infoOf(xs[i].typ).Elem) }
	f.text("data_type", func(i int) string {
		if elem(i).OID >= types.FirstUser {
			return "USER-DEFINED"
		}
		return elem(i).OID.Name()
	})
	f.collation(e.Database(), elem)
	f.text("udt_schema", func(i int) string { return typeSchema(elem(i)) })
	f.text("udt_name", func(i int) string { return infoOf(elem(i)).Name })
	f.text("dtd_identifier", func(i int) string { return "a" + xs[i].id })
}

// dataTypes lists what has a type.
func dataTypes(m *model, e Env, f *filler) {
	xs := m.relTyped()
	for _, p := range m.allProcs() {
		for i := range p.arguments() {
			xs = append(xs, typed{schema: p.schema(), name: p.specific(), kind: "ROUTINE", id: strconv.Itoa(i + 1)})
		}
		id := "0"
		if p.kind == 'p' {
			id = ""
		}
		xs = append(xs, typed{schema: p.schema(), name: p.specific(), kind: "ROUTINE", id: id})
	}
	f.n = len(xs)
	f.all(e.Database(), "object_catalog")
	f.text("object_schema", func(i int) string { return xs[i].schema })
	f.text("object_name", func(i int) string { return xs[i].name })
	f.text("object_type", func(i int) string { return xs[i].kind })
	f.some("dtd_identifier", func(i int) string { return xs[i].id })
}

// attributesOfTypes are those of composite types.
func attributesOfTypes(m *model, e Env, f *filler) {
	as := m.attrs(func(r *rel) bool { return r.kind == 'c' })
	f.n = len(as)
	typ := func(i int) types.Type { return as[i].col.Type }
	f.all(e.Database(), "udt_catalog", "attribute_udt_catalog")
	f.text("udt_schema", func(i int) string { return as[i].rel.schema })
	f.text("udt_name", func(i int) string { return as[i].rel.name })
	f.text("attribute_name", func(i int) string { return as[i].col.Name })
	f.int("ordinal_position", func(i int) int64 { return int64(as[i].num) })
	f.text("is_nullable", func(i int) string { return yesNo(!notNullDomain(typ(i))) })
	f.dataType(typ)
	f.text("data_type", func(i int) string { return argumentTypeName(typ(i)) })
	f.collation(e.Database(), typ)
	f.text("attribute_udt_schema", func(i int) string { return typeSchema(typ(i)) })
	f.text("attribute_udt_name", func(i int) string { return infoOf(typ(i)).Name })
	f.text("dtd_identifier", func(i int) string { return strconv.Itoa(as[i].num) })
	f.all("NO", "is_derived_reference_attribute")
}

// domains are the users' domains.
func (m *model) domains() []*catalog.Object {
	return slices.DeleteFunc(m.userTypes(), func(o *catalog.Object) bool { return o.Def.Kind != 'd' })
}

func infoDomains(m *model, e Env, f *filler) {
	ds := m.domains()
	f.n = len(ds)
	base := func(i int) types.Type { return ds[i].Def.Base }
	f.all(e.Database(), "domain_catalog", "udt_catalog")
	f.text("domain_schema", func(i int) string { return ds[i].Schema })
	f.text("domain_name", func(i int) string { return ds[i].Name })
	f.dataType(func(i int) types.Type { return types.Of(types.OID(ds[i].OID)) })
	f.collation(e.Database(), base)
	f.some("domain_default", func(i int) string { return m.shortDefault(e, ds[i].Def.Default, base(i)) })
	f.text("udt_schema", func(i int) string { return typeSchema(base(i)) })
	f.text("udt_name", func(i int) string { return infoOf(base(i)).Name })
	f.all("1", "dtd_identifier")
}

func domainTypes(m *model, e Env, f *filler) {
	ds := m.domains()
	f.n = len(ds)
	f.all(e.Database(), "udt_catalog", "domain_catalog")
	f.text("udt_schema", func(i int) string { return typeSchema(ds[i].Def.Base) })
	f.text("udt_name", func(i int) string { return infoOf(ds[i].Def.Base).Name })
	f.text("domain_schema", func(i int) string { return ds[i].Schema })
	f.text("domain_name", func(i int) string { return ds[i].Name })
}

func userDefinedTypes(m *model, e Env, f *filler) {
	rs := m.ofKind("c")
	f.n = len(rs)
	f.all(e.Database(), "user_defined_type_catalog")
	f.text("user_defined_type_schema", func(i int) string { return rs[i].schema })
	f.text("user_defined_type_name", func(i int) string { return rs[i].name })
	f.all("STRUCTURED", "user_defined_type_category")
	f.all("YES", "is_instantiable")
}
