package pgcatalog

import (
	"slices"
	"strings"

	"github.com/streamdb/streamdb/sql/types"
)

func init() {
	define(map[string]definition{"pg_depend": {compute: depends}})
}

// address is an object as pg_depend has it.
type address struct {
	class, obj uint32
	sub        int
}

// depend is a row of pg_depend: an object, and what it refers to.
type depend struct {
	address
	ref  address
	kind byte
}

// dependencies collects the rows of pg_depend.
type dependencies struct {
	m    *model
	e    Env
	list []depend
}

func (d *dependencies) add(from, to address, kind byte) {
	d.list = append(d.list, depend{from, to, kind})
}

// onType adds that an object is of a type, if that is a user's.
func (d *dependencies) onType(from address, t types.OID) {
	if t >= types.FirstUser && !t.IsAnonymous() {
		d.add(from, address{oidPgType, uint32(t), 0}, 'n')
	}
}

// depends lists what user objects depend on, as far as PostgreSQL would: not on
// what belongs to the system.
func depends(m *model, e Env, f *filler) {
	d := &dependencies{m: m, e: e}
	for _, r := range m.rels {
		switch {
		case r.system():
		case r.table != nil:
			d.index(r)
		default:
			d.relation(r)
		}
	}
	for _, c := range m.constraints() {
		d.constraint(&c)
	}
	for _, c := range m.domainConstraints() {
		d.add(address{oidPgConstr, c.oid, 0}, address{oidPgType, c.domain.OID, 0}, 'a')
	}
	for _, t := range m.triggers() {
		d.add(address{oidPgTrigger, t.oid, 0}, address{oidPgConstr, t.key.oid, 0}, 'i')
	}
	for i, a := range m.defaults() {
		d.deflt(address{oidPgAttrdef, attrdefOID(i), 0}, a)
	}
	d.types()
	d.functions()
	ds := d.list
	f.n = len(ds)
	f.oid("classid", func(i int) uint32 { return ds[i].class })
	f.oid("objid", func(i int) uint32 { return ds[i].obj })
	f.int("objsubid", func(i int) int64 { return int64(ds[i].sub) })
	f.oid("refclassid", func(i int) uint32 { return ds[i].ref.class })
	f.oid("refobjid", func(i int) uint32 { return ds[i].ref.obj })
	f.int("refobjsubid", func(i int) int64 { return int64(ds[i].ref.sub) })
	f.char("deptype", func(i int) byte { return ds[i].kind })
}

// index adds that an index is of its constraint, or of the columns that it reads.
func (d *dependencies) index(r *rel) {
	from := address{oidPgClass, r.oid, 0}
	if r.constraint != 0 {
		d.add(from, address{oidPgConstr, r.oid + impliedKey<<24, 0}, 'i')
		return
	}
	cols := slices.DeleteFunc(slices.Clone(r.key), func(k int) bool { return k < 0 })
	for _, c := range columnsIn(r.exprs()+" "+r.obj.Where, r.table.obj.Columns) {
		if !slices.Contains(cols, c) {
			cols = append(cols, c)
		}
	}
	for _, c := range cols {
		d.add(from, address{oidPgClass, r.table.oid, c + 1}, 'a')
	}
	if len(cols) == 0 {
		d.add(from, address{oidPgClass, r.table.oid, 0}, 'a')
	}
}

// relation adds what a table, view or sequence depends on.
func (d *dependencies) relation(r *rel) {
	m, from := d.m, address{oidPgClass, r.oid, 0}
	row := address{oidPgType, r.rowType, 0}
	if r.rowType != 0 {
		d.add(address{oidPgType, r.arrayType, 0}, row, 'i')
	}
	switch {
	case r.kind == 'c':
		d.add(from, row, 'i')
	case r.rowType != 0:
		d.add(row, from, 'i')
		fallthrough
	default:
		d.add(from, address{oidPgNamespace, r.nsp, 0}, 'n')
	}
	for num, c := range r.attrs {
		d.onType(address{oidPgClass, r.oid, num}, c.Type.OID)
	}
	if q := r.obj.Sequence; q != nil && q.Table != 0 && m.byID[q.Table] != nil {
		t := m.byID[q.Table]
		kind := byte('a')
		if q.Identity {
			kind = 'i'
		}
		d.add(from, address{oidPgClass, t.oid, t.obj.Column(q.Column) + 1}, kind)
	}
	if p := m.snap.ByID(r.obj.Parent); p != nil {
		d.add(from, address{oidPgClass, p.OID, 0}, 'a')
	}
	if r.isView() {
		d.rule(r)
	}
}

// rule adds what the query of a view reads.
func (d *dependencies) rule(r *rel) {
	from, view := address{oidPgRewrite, implied(r.oid, impliedRule), 0}, address{oidPgClass, r.oid, 0}
	d.add(from, view, 'i')
	d.add(from, view, 'n')
	byColumn := map[*rel]bool{}
	for _, u := range d.m.columnUses(d.e, r) {
		if byColumn[u.rel] = true; !u.rel.system() {
			d.add(from, address{oidPgClass, u.rel.oid, u.col + 1}, 'n')
		}
	}
	for _, id := range r.obj.Deps {
		o := d.m.snap.ByID(id)
		switch t := d.m.byID[id]; {
		case o == nil:
		case o.Function != nil:
			d.add(from, address{oidPgProc, o.OID, 0}, 'n')
		case t != nil && !t.system() && !byColumn[t]:
			d.add(from, address{oidPgClass, t.oid, 0}, 'n')
		}
	}
}

func (d *dependencies) constraint(c *constraintRow) {
	from := address{oidPgConstr, c.oid, 0}
	for _, k := range c.key {
		d.add(from, address{oidPgClass, c.table.oid, k + 1}, 'a')
		if c.kind == 'c' {
			d.add(from, address{oidPgClass, c.table.oid, k + 1}, 'n')
		}
	}
	if c.foreign == nil {
		return
	}
	for _, k := range c.foreign.RefColumns {
		d.add(from, address{oidPgClass, c.ref.oid, k + 1}, 'n')
	}
	if c.index != nil {
		d.add(from, address{oidPgClass, c.index.oid, 0}, 'n')
	}
}

// deflt adds what the default or the expression of a column reads.
func (d *dependencies) deflt(from address, a attr) {
	own := address{oidPgClass, a.rel.oid, a.num}
	if a.col.Generated != "" {
		d.add(from, own, 'i')
		for _, c := range columnsIn(a.col.Generated, a.rel.obj.Columns) {
			d.add(from, address{oidPgClass, a.rel.oid, c + 1}, 'n')
		}
		return
	}
	d.add(from, own, 'a')
	d.onType(from, a.col.Type.OID) // what it is converted to
	if name, ok := sequenceOf(a.col.Default); ok {
		if x, err := NewReader(d.e).relation(name); err == nil {
			d.add(from, address{oidPgClass, x.oid, 0}, 'n')
		}
	}
}

// types adds what the users' types depend on.
func (d *dependencies) types() {
	for _, o := range d.m.userTypes() {
		own := address{oidPgType, o.OID, 0}
		d.add(own, address{oidPgNamespace, d.m.snap.Schema(o.Schema).OID, 0}, 'n')
		if o.Def.Kind == 'c' {
			continue // the rest is with its relation
		}
		d.add(address{oidPgType, uint32(o.Def.Array), 0}, own, 'i')
		switch o.Def.Kind {
		case 'd':
			d.onType(own, o.Def.Base.OID)
		case 'r':
			d.onType(own, o.Def.Subtype)
			multi := address{oidPgType, uint32(o.Def.Multirange), 0}
			d.add(multi, own, 'i')
			d.add(multi, address{oidPgNamespace, d.m.snap.Schema(o.Schema).OID, 0}, 'n')
			d.add(address{oidPgType, uint32(o.Def.MultirangeArray), 0}, multi, 'i')
		}
	}
}

// functions adds what functions depend on.
func (d *dependencies) functions() {
	for _, o := range d.m.snap.Objects() {
		if o.Function == nil {
			continue
		}
		own := address{oidPgProc, o.OID, 0}
		d.add(own, address{oidPgNamespace, d.m.snap.Schema(o.Schema).OID, 0}, 'n')
		seen := []types.OID{o.Function.Returns.OID}
		for _, a := range parameterList(o.Function) {
			if !slices.Contains(seen, a.Type.OID) {
				seen = append(seen, a.Type.OID)
			}
		}
		for _, t := range seen {
			d.onType(own, t)
		}
	}
}

// sequenceOf is the name of the sequence that a default takes its value from.
func sequenceOf(deflt string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(deflt, "nextval('")
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(rest, "'::regclass)")
	return strings.ReplaceAll(name, "''", "'"), ok
}
