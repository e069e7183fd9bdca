package pgcatalog

import (
	"slices"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// What pg_describe_object and pg_identify_object say of the objects of pg_depend.

// kindNames are what messages call relations.
var kindNames = map[byte]string{'r': "table", 'v': "view", 'm': "materialized view", 'i': "index", 'S': "sequence", 'c': "composite type"}

// description tells what an object is. Text is for people; typ, schema, name and identity
// tell it in the words of pg_identify_object.
type objectDescription struct {
	text                        string
	typ, schema, name, identity string
}

// describe tells of an object, false if there is none.
func (r *Reader) describe(m *model, at address) (objectDescription, bool) {
	switch at.class {
	case oidPgClass:
		if x := m.byOID[at.obj]; x != nil {
			return r.describeRelation(m, x, at.sub)
		}
	case oidPgType:
		return r.describeType(m, at.obj)
	case oidPgProc:
		return r.describeFunction(m, at.obj)
	case oidPgConstr:
		if c := m.constraint(at.obj); c != nil {
			return r.describeConstraint(m, c), true
		}
	case oidPgRewrite:
		if x := m.byOID[at.obj&(1<<24-1)]; x != nil && x.isView() && at.obj == implied(x.oid, impliedRule) {
			return objectDescription{text: "rule _RETURN on " + kindNames[x.kind] + " " + r.relName(m, x), typ: "rule",
				identity: "\"_RETURN\" on " + x.qualified()}, true
		}
	case oidPgTrigger:
		if ts := m.triggers(); at.obj >= triggerOID(0) && at.obj < triggerOID(len(ts)) {
			t := ts[at.obj-triggerOID(0)]
			return objectDescription{text: "trigger " + t.name() + " on table " + r.relName(m, t.on), typ: "trigger",
				identity: quoteIdent(t.name()) + " on " + t.on.qualified()}, true
		}
	case oidPgAttrdef:
		if ds := m.defaults(); at.obj >= attrdefOID(0) && at.obj < attrdefOID(len(ds)) {
			d := ds[at.obj-attrdefOID(0)]
			return objectDescription{text: "default value for column " + d.col.Name + " of " + kindNames[d.rel.kind] + " " + r.relName(m, d.rel), typ: "default value",
				identity: "for " + d.rel.qualified() + "." + quoteIdent(d.col.Name)}, true
		}
	case oidPgDatabase:
		i := slices.Index(databaseOIDs[:], at.obj)
		if names := r.env.Databases(); i >= 0 && i < len(names) {
			return plainDescription("database", names[i], true)
		}
	case oidPgAuthid:
		s, ok := roleName(r.env, at.obj)
		return plainDescription("role", s, ok)
	default:
		return r.describeOther(m, at)
	}
	return objectDescription{}, false
}

// plainDescription is of what has no schema.
func plainDescription(kind, name string, ok bool) (objectDescription, bool) {
	q := quoteIdent(name)
	return objectDescription{kind + " " + name, kind, "", q, q}, ok
}

// describeOther tells of what does not change.
func (r *Reader) describeOther(m *model, at address) (objectDescription, bool) {
	named := func(kind, facts, column string) (objectDescription, bool) {
		t := factsOf(facts)
		for i := range t.rows {
			if uint32(number(t.get(i, "oid"))) == at.obj {
				return plainDescription(kind, t.get(i, column), true)
			}
		}
		return objectDescription{}, false
	}
	switch at.class {
	case oidPgNamespace:
		for _, s := range m.schemas {
			if s.OID == at.obj {
				return plainDescription("schema", s.Name, true)
			}
		}
	case oidPgLanguage:
		return named("language", "pg_language", "lanname")
	case oidPgAm:
		return named("access method", "pg_am", "amname")
	case oidPgCollation:
		d, ok := named("collation", "pg_collation", "collname")
		d.text, d.schema, d.identity = "collation "+d.name, "pg_catalog", "pg_catalog."+d.identity
		return d, ok
	case oidPgTspace:
		return plainDescription("tablespace", map[uint32]string{tablespaceOID: "pg_default", 1664: "pg_global"}[at.obj], at.obj == tablespaceOID || at.obj == 1664)
	case oidPgOperator:
		if s, ok := r.RegName(types.OIDRegoperator, at.obj); ok {
			return objectDescription{text: "operator " + s, typ: "operator", schema: "pg_catalog", identity: "pg_catalog." + s}, true
		}
	}
	return objectDescription{}, false
}

func (r *Reader) describeRelation(m *model, x *rel, sub int) (objectDescription, bool) {
	kind := kindNames[x.kind]
	d := objectDescription{kind + " " + r.relName(m, x), kind, quoteIdent(x.schema), quoteIdent(x.name), x.qualified()}
	if sub == 0 {
		return d, true
	}
	col := x.attrNum(sub)
	if col == nil {
		return objectDescription{}, false
	}
	name := quoteIdent(col.Name)
	return objectDescription{"column " + col.Name + " of " + d.text, kind + " column", d.schema, d.name, d.identity + "." + name}, true
}

func (r *Reader) describeType(m *model, oid uint32) (objectDescription, bool) {
	s, ok := r.typeName(m, oid)
	if !ok {
		return objectDescription{}, false
	}
	d := objectDescription{text: "type " + s, typ: "type", schema: "pg_catalog", name: s}
	if x := m.byType[oid]; x != nil {
		d.schema, d.name = quoteIdent(x.schema), quoteIdent(x.name)
		if d.identity = x.qualified(); oid == x.arrayType {
			d.name, d.identity = quoteIdent(arrayName(x.name)), d.identity+"[]"
		}
		return d, true
	}
	if t := types.Lookup(types.OID(oid)); t != nil {
		d.name, d.identity = quoteIdent(t.Name), t.OID.Name()
		if t.Schema != "" {
			d.schema = quoteIdent(t.Schema)
		}
	} else {
		t := moreTypes().byOID[oid]
		d.schema, d.name, d.identity = quoteIdent(t.Schema), quoteIdent(t.name), s
	}
	if d.schema == "pg_catalog" && isTypeName(d) {
		d.identity = "pg_catalog." + d.identity
	}
	return d, true
}

func (r *Reader) describeFunction(m *model, oid uint32) (objectDescription, bool) {
	p := m.proc(oid)
	if p == nil {
		return objectDescription{}, false
	}
	s, _ := r.RegName(types.OIDRegprocedure, oid)
	kind := map[byte]string{'a': "aggregate", 'p': "procedure"}[p.kind]
	if kind == "" {
		kind = "function"
	}
	args := make([]string, len(p.args))
	for i, a := range p.args {
		t, _ := r.describeType(m, a)
		args[i] = t.identity
	}
	return objectDescription{text: "function " + s, typ: kind, schema: quoteIdent(p.schema()),
		identity: quoteIdent(p.schema()) + "." + quoteIdent(p.name) + "(" + strings.Join(args, ",") + ")"}, true
}

// isTypeName reports whether a built-in type goes by the name that it has in pg_type, which
// belongs to a schema, and not by a word of the grammar.
func isTypeName(d objectDescription) bool {
	return strings.Trim(d.name, `"`) == strings.Trim(d.identity, `"`) || d.name == "_"+strings.TrimSuffix(d.identity, "[]")
}

func (r *Reader) describeConstraint(m *model, c *constraintRow) objectDescription {
	name := quoteIdent(c.name)
	if c.domain != nil {
		return objectDescription{text: "constraint " + c.name, typ: "domain constraint", schema: quoteIdent(c.domain.Schema),
			identity: name + " on " + quoteIdent(c.domain.Schema) + "." + quoteIdent(c.domain.Name)}
	}
	return objectDescription{text: "constraint " + c.name + " on table " + r.relName(m, c.table), typ: "table constraint", schema: quoteIdent(c.table.schema),
		identity: name + " on " + c.table.qualified()}
}

func describeCall(c *call) result {
	d, ok := c.r.describe(c.m, address{c.oid(0), c.oid(1), c.number(2)})
	return orNone(d.text, ok)
}

// identifyObject is pg_identify_object.
func identifyObject(x *expr.Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	at := address{uint32(args[0].Int64s()[i]), uint32(args[1].Int64s()[i]), int(args[2].Int32s()[i])}
	reader, ok := x.Catalog.(*Reader)
	if !ok {
		return 0, pgerror.New(pgerror.InternalError, "pg_identify_object: there is no catalog")
	}
	d, _ := reader.describe(reader.model(), at)
	for k, s := range []string{d.typ, d.schema, d.name, d.identity} {
		if s == "" {
			out[k].Null()
		} else {
			out[k].String(s)
		}
	}
	return 1, nil
}
