package pgcatalog

import (
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

func init() {
	define(map[string]definition{
		"pg_namespace":  {compute: namespaces},
		"pg_class":      {compute: classes, patch: withTuples},
		"pg_attribute":  {compute: attributes},
		"pg_attrdef":    {compute: attrdefs, pathed: true},
		"pg_index":      {compute: indexes},
		"pg_constraint": {compute: constraints},
	})
}

func namespaces(m *model, _ Env, f *filler) {
	f.n = len(m.schemas)
	f.oid("oid", func(i int) uint32 { return m.schemas[i].OID })
	f.text("nspname", func(i int) string { return m.schemas[i].Name })
	f.all(roleOID, "nspowner")
}

func classes(m *model, _ Env, f *filler) {
	rs := m.rels
	f.n = len(rs)
	f.oid("oid", func(i int) uint32 { return rs[i].oid })
	f.text("relname", func(i int) string { return rs[i].name })
	f.oid("relnamespace", func(i int) uint32 { return rs[i].nsp })
	f.oid("reltype", func(i int) uint32 { return rs[i].rowType })
	f.all(roleOID, "relowner")
	f.oid("relam", func(i int) uint32 {
		switch rs[i].kind {
		case 'i':
			return amBtree
		case 'v', 'S', 'c':
			return 0
		}
		return amHeap
	})
	f.oid("relfilenode", func(i int) uint32 {
		if rs[i].kind == 'v' || rs[i].kind == 'c' {
			return 0
		}
		return rs[i].oid
	})
	f.bool("relhasindex", func(i int) bool { return len(rs[i].indexes) > 0 })
	f.char("relpersistence", func(i int) byte {
		if o := rs[i].owner(); o != nil && o.Temporary {
			return 't'
		}
		return 'p'
	})
	f.each("reloptions", func(i int, b *columnar.Builder) {
		list := rs[i].options()
		if list == nil {
			b.Null()
			return
		}
		b.Extend(func(dst []byte) []byte { return textArray(dst, types.OIDText, list) })
	})
	f.char("relkind", func(i int) byte { return rs[i].kind })
	f.int("relnatts", func(i int) int64 { return int64(rs[i].natts()) })
	f.int("relchecks", func(i int) int64 {
		if rs[i].obj == nil {
			return 0
		}
		return int64(len(rs[i].obj.Checks))
	})
	// Foreign keys are triggers in PostgreSQL: psql looks for them then only.
	f.bool("relhastriggers", func(i int) bool { return m.hasTriggers(rs[i]) })
	f.bool("relhasrules", func(i int) bool { return rs[i].isView() })
	f.all(true, "relispopulated")
	f.char("relreplident", func(i int) byte {
		if (rs[i].kind == 'r' || rs[i].kind == 'm') && !rs[i].system() {
			return 'd'
		}
		return 'n'
	})
}

// withTuples adds the estimated numbers of rows, which change without the catalog.
func withTuples(m *model, e Env, b *columnar.Batch) *columnar.Batch {
	r := relationByOID(oidPgClass)
	v := columnar.MakeFixed(columnar.KindFloat32, len(m.rels))
	est := v.Float32s()
	for i, x := range m.rels {
		est[i] = float32(m.tuples(e, x))
	}
	out := &columnar.Batch{N: b.N, Cols: slices.Clone(b.Cols)}
	out.Cols[r.index["reltuples"]] = v
	return out
}

// tuples is pg_class.reltuples: -1 where nothing is known.
func (m *model) tuples(e Env, r *rel) float64 {
	switch {
	case r.table != nil:
		return m.tuples(e, r.table)
	case r.obj.Kind == catalog.KindView:
		return 0
	case r.system():
		return -1
	}
	return e.Rows(r.obj.ID)
}

// attr is a row of pg_attribute.
type attr struct {
	rel *rel
	num int
	col *catalog.Column
}

// attrs are the columns of all relations, in the order of pg_attribute; keep
// chooses relations, nil all.
func (m *model) attrs(keep func(r *rel) bool) []attr {
	n := 0
	for _, r := range m.rels {
		n += r.natts()
	}
	out := make([]attr, 0, n)
	for _, r := range m.rels {
		if keep != nil && !keep(r) {
			continue
		}
		for num, c := range r.attrs {
			out = append(out, attr{r, num, c})
		}
	}
	return out
}

// systemColumns are the columns that can be read of every table, by their numbers from -2
// down.
var systemColumns = []catalog.Column{{Name: "xmin", Type: types.Of(types.OIDXid)}, {Name: "cmin", Type: types.Of(types.OIDCid)},
	{Name: "xmax", Type: types.Of(types.OIDXid)}, {Name: "cmax", Type: types.Of(types.OIDCid)}, {Name: "tableoid", Type: types.Oid}}

var unknownType = &types.Info{Name: "text", Len: -1, Align: 'i', Storage: 'x'}

// infoOf describes the type of a column.
func infoOf(t types.Type) *types.Info {
	if i := types.Lookup(t.OID); i != nil {
		return i
	}
	return unknownType
}

func attributes(m *model, _ Env, f *filler) {
	as := m.attrs(nil)
	for _, r := range m.ofKind("rmS") {
		for i := range systemColumns {
			as = append(as, attr{r, -2 - i, &systemColumns[i]})
		}
	}
	f.n = len(as)
	f.oid("attrelid", func(i int) uint32 { return as[i].rel.oid })
	f.text("attname", func(i int) string { return as[i].col.Name })
	f.oid("atttypid", func(i int) uint32 { return uint32(as[i].col.Type.OID) })
	f.int("attstattarget", func(i int) int64 {
		if as[i].rel.system() || as[i].num < 0 {
			return 0
		}
		return -1
	})
	f.int("attlen", func(i int) int64 { return int64(infoOf(as[i].col.Type).Len) })
	f.int("attnum", func(i int) int64 { return int64(as[i].num) })
	f.int("attndims", func(i int) int64 {
		if infoOf(as[i].col.Type).IsArray() {
			return 1
		}
		return 0
	})
	f.all(-1, "attcacheoff")
	f.int("atttypmod", func(i int) int64 { return int64(as[i].col.Type.Mod) })
	f.bool("attbyval", func(i int) bool { return infoOf(as[i].col.Type).ByVal })
	f.char("attalign", func(i int) byte { return infoOf(as[i].col.Type).Align })
	f.char("attstorage", func(i int) byte { return infoOf(as[i].col.Type).Storage })
	f.bool("attnotnull", func(i int) bool {
		return as[i].rel.kind == 'S' || as[i].rel.kind == 'r' && as[i].col.NotNull || as[i].num < 0
	})
	f.bool("atthasdef", func(i int) bool { return as[i].hasDefault() })
	f.char("attidentity", func(i int) byte {
		switch {
		case as[i].rel.kind != 'r' || as[i].col.Identity == "":
			return 0
		case as[i].col.Identity == catalog.IdentityAlways:
			return 'a'
		}
		return 'd'
	})
	f.char("attgenerated", func(i int) byte {
		if as[i].rel.kind == 'r' && as[i].col.Generated != "" {
			return 's'
		}
		return 0
	})
	f.all(true, "attislocal")
	f.oid("attcollation", func(i int) uint32 {
		for oid, name := range collationNames() {
			if c := as[i].col.Collation; c != "" && name == c {
				return oid
			}
		}
		return infoOf(as[i].col.Type).Collation
	})
}

func (a attr) hasDefault() bool {
	return (a.rel.kind == 'r' || a.rel.kind == 'v') && a.col.Identity == "" && (a.col.Default != "" || a.col.Generated != "")
}

// shortDefault is a default as it is shown: that of a serial column names its
// sequence as the search path finds it, and a string says its type.
func (m *model) shortDefault(e Env, text string, t types.Type) string {
	r := NewReader(e)
	name, ok := sequenceOf(text)
	if !ok {
		return r.typedText(m, text, t)
	}
	x, err := r.relation(name)
	if err != nil {
		return text
	}
	return "nextval('" + strings.ReplaceAll(r.relName(m, x), "'", "''") + "'::regclass)"
}

// typedText adds to a string, if text is but one, the type that it is read as.
func (r *Reader) typedText(m *model, text string, t types.Type) string {
	if len(text) < 2 || text[0] != '\'' || text[len(text)-1] != '\'' || strings.Contains(strings.ReplaceAll(text[1:len(text)-1], "''", ""), "'") {
		return text
	}
	t = t.Storage()
	switch info := infoOf(t); {
	case info.Category == 'N' || info.Category == 'B':
		return text
	case t.OID == types.OIDBPChar:
		return text + "::bpchar"
	}
	name, ok := r.typeName(m, uint32(t.OID))
	if !ok {
		return text
	}
	return text + "::" + name
}

// owner is the object that the relation is of, or of whose table it is an index.
func (r *rel) owner() *catalog.Object {
	if r.table != nil {
		return r.table.obj
	}
	return r.obj
}

func (m *model) defaults() []attr {
	var out []attr
	for _, r := range m.rels {
		if r.kind != 'r' && r.kind != 'v' || r.system() {
			continue
		}
		for num, c := range r.attrs {
			if a := (attr{r, num, c}); a.hasDefault() {
				out = append(out, a)
			}
		}
	}
	return out
}

// attrdefOID is that of the i-th default value of all.
func attrdefOID(i int) uint32 { return 1<<30 + uint32(i) }

func attrdefs(m *model, e Env, f *filler) {
	ds := m.defaults()
	f.n = len(ds)
	f.oid("oid", func(i int) uint32 { return attrdefOID(i) })
	f.oid("adrelid", func(i int) uint32 { return ds[i].rel.oid })
	f.int("adnum", func(i int) int64 { return int64(ds[i].num) })
	f.text("adbin", func(i int) string { return m.shortDefault(e, ds[i].col.Default, ds[i].col.Type) + ds[i].col.Generated })
}

// indexRels are the rows of pg_class that are indexes.
func (m *model) indexRels() []*rel {
	var out []*rel
	for _, r := range m.rels {
		if r.table != nil {
			out = append(out, r)
		}
	}
	return out
}

func indexes(m *model, _ Env, f *filler) {
	xs := m.indexRels()
	f.n = len(xs)
	f.oid("indexrelid", func(i int) uint32 { return xs[i].oid })
	f.oid("indrelid", func(i int) uint32 { return xs[i].table.oid })
	f.int("indnatts", func(i int) int64 { return int64(len(xs[i].key)) })
	f.same("indnkeyatts", "indnatts")
	f.bool("indisunique", func(i int) bool { return xs[i].unique })
	f.bool("indnullsnotdistinct", func(i int) bool { return xs[i].nullsNotDistinct() })
	f.bool("indisprimary", func(i int) bool { return xs[i].constraint == 'p' })
	f.all(true, "indimmediate", "indisvalid", "indisready", "indislive")
	f.extend("indkey", func(i int, dst []byte) []byte {
		key := slices.Clone(xs[i].key)
		for j, k := range key {
			key[j] = max(k, -1) // an expression's is 0
		}
		return attrArray(dst, key, 0)
	})
	f.some("indexprs", func(i int) string { return xs[i].exprs() })
	f.some("indpred", func(i int) string {
		if xs[i].obj == nil {
			return ""
		}
		return xs[i].obj.Where
	})
	each := func(name string, g func(t types.Type) uint32) {
		var oids []uint32
		f.extend(name, func(i int, dst []byte) []byte {
			oids = oids[:0]
			for _, k := range xs[i].key {
				oids = append(oids, g(xs[i].keyColumn(k).Type))
			}
			return oidVector(dst, oids)
		})
	}
	each("indcollation", func(t types.Type) uint32 { return infoOf(t).Collation })
	each("indclass", opclassOf)
	f.extend("indoption", func(i int, dst []byte) []byte {
		v := columnar.MakeFixed(columnar.KindInt16, len(xs[i].key))
		for k := range v.Int16s() {
			v.Int16s()[k] = int16(xs[i].order(k))
		}
		return types.AppendArray(dst, types.OIDInt2, []types.Dim{{Len: int32(len(xs[i].key))}}, v, 0, len(xs[i].key))
	})
}

// constraintRow is a row of pg_constraint.
type constraintRow struct {
	oid   uint32
	name  string
	kind  byte
	table *rel
	index *rel   // of a key
	expr  string // of a check
	key   []int

	foreign *catalog.ForeignKey
	ref     *rel // of a foreign key: the table that it refers to
	invalid bool
	comment string
	domain  *catalog.Object // of a domain, which has no table
}

// domainConstraints are the checks of domains.
func (m *model) domainConstraints() []constraintRow {
	var out []constraintRow
	for _, o := range m.userTypes() {
		out = append(out, constraintsOfDomain(o)...)
	}
	return out
}

func constraintsOfDomain(o *catalog.Object) []constraintRow {
	var out []constraintRow
	for i, c := range o.Def.Checks {
		out = append(out, constraintRow{oid: implied(o.OID, impliedCheck+i), name: c.Name, kind: 'c', expr: valueWords(c.Expr),
			invalid: c.NotValid, comment: c.Comment, domain: o})
	}
	return out
}

// constraints are those of a table.
func (m *model) constraintsOf(r *rel) []constraintRow {
	if r.table != nil || r.system() {
		return nil
	}
	var out []constraintRow
	for _, x := range r.indexes {
		if x.constraint != 0 {
			out = append(out, constraintRow{oid: x.oid + impliedKey<<24, name: x.name, kind: x.constraint, table: r, index: x, key: x.key, comment: r.keyComment(x.name)})
		}
	}
	for i, c := range r.obj.Checks {
		out = append(out, constraintRow{oid: implied(r.oid, impliedCheck+i), name: c.Name, kind: 'c', table: r, expr: c.Expr,
			key: columnsIn(c.Expr, r.obj.Columns), invalid: c.NotValid, comment: c.Comment})
	}
	for i := range r.obj.Foreign {
		fk := &r.obj.Foreign[i]
		row := constraintRow{oid: implied(r.oid, min(impliedForeign+i, impliedCheck-1)), name: fk.Name, kind: 'f', table: r,
			key: fk.Columns, foreign: fk, ref: m.byID[fk.RefTable], invalid: fk.NotValid, comment: fk.Comment}
		if row.ref != nil {
			for _, x := range row.ref.indexes {
				if x.unique && slices.Equal(x.key, fk.RefColumns) && (x.obj == nil || x.obj.Plain()) {
					row.index = x
				}
			}
			out = append(out, row)
		}
	}
	return out
}

// keyComment is the comment on a key of a table.
func (r *rel) keyComment(name string) string {
	for _, k := range r.obj.Keys() {
		if k.Name == name {
			return k.Comment
		}
	}
	return ""
}

func (m *model) constraints() []constraintRow {
	var out []constraintRow
	for _, r := range m.rels {
		out = append(out, m.constraintsOf(r)...)
	}
	return out
}

// constraint finds a constraint by its OID, nil if there is none.
func (m *model) constraint(oid uint32) *constraintRow {
	if oid>>24 < impliedPrimary {
		return nil
	}
	var all []constraintRow
	if r := m.byOID[oid&(1<<24-1)]; r == nil {
		if o := m.snap.ByOID(oid & (1<<24 - 1)); o != nil && o.Def != nil {
			all = constraintsOfDomain(o)
		}
	} else if r.table != nil { // of a key's index
		all = m.constraintsOf(r.table)
	} else {
		all = m.constraintsOf(r)
	}
	for _, c := range all {
		if c.oid == oid {
			return &c
		}
	}
	return nil
}

// columnsIn are the columns that an expression names.
func columnsIn(expr string, cols []catalog.Column) []int {
	var out []int
	for _, w := range words(expr) {
		i := slices.IndexFunc(cols, func(c catalog.Column) bool { return c.Name == w })
		if i >= 0 && !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

// actionCodes are the letters of what a foreign key does.
var actionCodes = map[string]byte{"": 'a', "restrict": 'r', "cascade": 'c', "set null": 'n', "set default": 'd'}

func constraints(m *model, _ Env, f *filler) {
	cs := append(m.constraints(), m.domainConstraints()...)
	f.n = len(cs)
	f.oid("oid", func(i int) uint32 { return cs[i].oid })
	f.text("conname", func(i int) string { return cs[i].name })
	f.oid("connamespace", func(i int) uint32 {
		if d := cs[i].domain; d != nil {
			return m.snap.Schema(d.Schema).OID
		}
		return cs[i].table.nsp
	})
	f.oid("contypid", func(i int) uint32 {
		if d := cs[i].domain; d != nil {
			return d.OID
		}
		return 0
	})
	f.char("contype", func(i int) byte { return cs[i].kind })
	f.all(true, "conislocal")
	f.bool("convalidated", func(i int) bool { return !cs[i].invalid })
	f.bool("condeferrable", func(i int) bool { return cs[i].foreign != nil && cs[i].foreign.Deferrable })
	f.bool("condeferred", func(i int) bool { return cs[i].foreign != nil && cs[i].foreign.Deferred })
	f.oid("confrelid", func(i int) uint32 {
		if cs[i].ref == nil {
			return 0
		}
		return cs[i].ref.oid
	})
	f.oid("conrelid", func(i int) uint32 {
		if cs[i].domain != nil {
			return 0
		}
		return cs[i].table.oid
	})
	f.oid("conindid", func(i int) uint32 {
		if cs[i].index == nil {
			return 0
		}
		return cs[i].index.oid
	})
	action := func(name string, of func(f *catalog.ForeignKey) string) {
		f.char(name, func(i int) byte {
			if cs[i].foreign == nil {
				return ' '
			}
			return actionCodes[of(cs[i].foreign)]
		})
	}
	action("confupdtype", func(f *catalog.ForeignKey) string { return f.OnUpdate })
	action("confdeltype", func(f *catalog.ForeignKey) string { return f.OnDelete })
	f.char("confmatchtype", func(i int) byte {
		switch {
		case cs[i].foreign == nil:
			return ' '
		case cs[i].foreign.MatchFull:
			return 'f'
		}
		return 's'
	})
	operators := func(name string, of func(fk, ref types.Type) uint32) {
		f.each(name, func(i int, b *columnar.Builder) {
			fk := cs[i].foreign
			if fk == nil {
				b.Null()
				return
			}
			oids := make([]uint32, len(fk.Columns))
			for k := range oids {
				oids[k] = of(cs[i].table.obj.Columns[fk.Columns[k]].Type, cs[i].ref.obj.Columns[fk.RefColumns[k]].Type)
			}
			b.Bytes(oidArray(nil, oids))
		})
	}
	operators("conpfeqop", func(fk, ref types.Type) uint32 {
		if o := operatorNamed("=", uint32(ref.Storage().OID), uint32(fk.Storage().OID)); o != 0 {
			return o
		}
		return equalityOf(ref)
	})
	operators("conppeqop", func(_, ref types.Type) uint32 { return equalityOf(ref) })
	operators("conffeqop", func(fk, _ types.Type) uint32 { return equalityOf(fk) })
	f.each("confdelsetcols", func(i int, b *columnar.Builder) {
		if cs[i].foreign == nil || cs[i].foreign.SetColumns == nil {
			b.Null()
			return
		}
		b.Bytes(attrArray(nil, cs[i].foreign.SetColumns, 1))
	})
	f.each("confkey", func(i int, b *columnar.Builder) {
		if cs[i].foreign == nil {
			b.Null()
			return
		}
		b.Bytes(attrArray(nil, cs[i].foreign.RefColumns, 1))
	})
	f.bool("connoinherit", func(i int) bool { return cs[i].kind != 'c' })
	f.each("conkey", func(i int, b *columnar.Builder) {
		if cs[i].key == nil {
			b.Null()
			return
		}
		b.Bytes(attrArray(nil, cs[i].key, 1))
	})
	f.some("conbin", func(i int) string {
		if cs[i].expr == "" {
			return ""
		}
		return "(" + cs[i].expr + ")"
	})
}
