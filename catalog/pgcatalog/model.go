package pgcatalog

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// The OIDs that PostgreSQL gives to what every cluster has.
const (
	oidPgType      = 1247
	oidPgProc      = 1255
	oidPgClass     = 1259
	oidPgAttrdef   = 2604
	oidPgConstr    = 2606
	oidPgNamespace = 2615
	oidPgRewrite   = 2618
	oidPgTrigger   = 2620
	oidPgAuthid    = 1260
	oidPgLanguage  = 2612
	oidPgAm        = 2601
	oidPgOperator  = 2617
	oidPgCollation = 3456
	oidPgTspace    = 1213
	oidPgDatabase  = 1262

	amHeap, amBtree = 2, 403
	nspCatalog      = 11
	nspPublic       = 2200
	roleOID         = 10 // the one role, which owns everything
	databaseOID     = 16384
	tablespaceOID   = 1663
	encodingUTF8    = 6
)

// What an object implies has an OID that is made of the object's own, so that
// it stays the same as long as the object is there. OIDs of relations are below
// 1<<24; the bits above tell what kind of implied object it is.
const (
	impliedRule      = 3
	impliedComposite = 3  // of a type, which has no rule
	impliedRole      = 2  // of a name
	impliedPrimary   = 4  // the index
	impliedKey       = 32 // added to that of its index, the constraint
	impliedForeign   = 40 // and following
	impliedCheck     = 70 // and following
	impliedLast      = 127
)

func implied(oid uint32, what int) uint32 {
	return uint32(min(what, impliedLast))<<24 | oid&(1<<24-1)
}

// rel is a row of pg_class.
type rel struct {
	obj                *catalog.Object // nil for an index that a key implies
	sys                *relation       // of a system catalog
	oid, nsp           uint32
	kind               byte // relkind
	schema, name       string
	rowType, arrayType uint32 // 0 for an index
	indexes            []*rel

	// Of an index:
	table      *rel
	key        []int
	unique     bool
	constraint byte // 'p', 'u', 0
}

// attrs are the columns that the relation shows, with their numbers.
func (r *rel) attrs(yield func(num int, c *catalog.Column) bool) {
	if r.table != nil {
		for i, k := range r.key {
			if !yield(i+1, r.keyColumn(k)) {
				return
			}
		}
		return
	}
	for i := range r.obj.Columns {
		if !r.obj.Columns[i].Hidden && !yield(i+1, &r.obj.Columns[i]) {
			return
		}
	}
}

// keyColumn is a part of an index's key as a column.
func (r *rel) keyColumn(key int) *catalog.Column {
	if i, ok := catalog.ExprOf(key); ok {
		x := r.obj.Exprs[i]
		return &catalog.Column{Name: x.Name, Type: x.Type}
	}
	return &r.table.obj.Columns[key]
}

// exprs lists the expressions of an index, "" if it has none.
func (r *rel) exprs() string {
	if r.obj == nil {
		return ""
	}
	out := make([]string, len(r.obj.Exprs))
	for i, x := range r.obj.Exprs {
		out[i] = x.SQL
	}
	return strings.Join(out, ", ")
}

// natts is pg_class.relnatts.
func (r *rel) natts() int {
	if r.table != nil {
		return len(r.key)
	}
	return len(r.obj.Columns)
}

// option is an option of a view, "" for none.
func (r *rel) option(name string) string {
	if r.kind != 'v' || r.obj == nil {
		return ""
	}
	return r.obj.Options[name]
}

// options are those of a view as pg_class has them.
func (r *rel) options() []string {
	var out []string
	for _, name := range []string{"check_option", "security_barrier", "security_invoker"} {
		if v := r.option(name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// isView reports whether the relation has a defining query.
func (r *rel) isView() bool { return r.kind == 'v' || r.kind == 'm' }

// system reports whether the relation is not a user's.
func (r *rel) system() bool { return r.obj != nil && r.obj.Kind == catalog.KindVirtual }

type relName struct{ schema, name string }

// model is what the system catalogs show of one catalog snapshot. Relations of
// it are computed when they are first read, and kept.
type model struct {
	snap    *catalog.Snapshot
	rels    []*rel // by OID; indexes that keys imply after the others
	byOID   map[uint32]*rel
	byName  map[relName]*rel
	byID    map[plan.ObjectID]*rel
	byType  map[uint32]*rel // by the OIDs of row types and their arrays
	schemas []*catalog.Schema

	commented  sync.Once // what follows is made
	comments   []description
	commentsOn map[uint32][]description // by OID, without those on columns

	// What sessions have told of views: their updatable columns, and those that they use.
	updatable, uses sync.Map

	mu     sync.Mutex
	cached map[cacheKey]*cacheEntry
}

type cacheKey struct {
	rel                  *relation
	database, user, path string
}

type cacheEntry struct {
	once  sync.Once
	batch *columnar.Batch
}

// latest are the models of the catalogs that were read last: that of a session
// in a transaction with DDL is not the others'.
var latest [4]atomic.Pointer[model]

// modelOf is the model of a session's catalog.
func modelOf(e Env) *model {
	s := e.Snapshot()
	kept := &latest[s.Version%uint64(len(latest))]
	if m := kept.Load(); m != nil && m.snap == s {
		return m
	}
	m := newModel(s)
	kept.Store(m)
	return m
}

func newModel(s *catalog.Snapshot) *model {
	objs := s.Objects()
	m := &model{
		snap: s, byOID: make(map[uint32]*rel, 2*len(objs)), byName: make(map[relName]*rel, 2*len(objs)),
		byType: make(map[uint32]*rel, 2*len(objs)), byID: make(map[plan.ObjectID]*rel, len(objs)), cached: map[cacheKey]*cacheEntry{}, schemas: s.Schemas(),
	}
	nsp := map[string]uint32{}
	for _, sc := range m.schemas {
		nsp[sc.Name] = sc.OID
	}
	tables := make(map[plan.ObjectID]*rel, len(objs))
	for _, o := range objs {
		if !o.Relation() {
			continue
		}
		r := &rel{obj: o, oid: o.OID, nsp: nsp[o.Schema], kind: relkind(o), schema: o.Schema, name: o.Name}
		if r.sys = relationByOID(o.OID); r.sys != nil && o.Kind == catalog.KindVirtual {
			r.rowType, r.arrayType = r.sys.rowType, r.sys.arrayType
		}
		if r.rowType == 0 && r.kind != 'S' {
			r.rowType = uint32(types.RowOf(o.OID))
			r.arrayType = r.rowType + 1
		}
		tables[o.ID], m.byID[o.ID] = r, r
		m.add(r)
	}
	for _, o := range objs {
		if o.Def != nil && o.Def.Kind == 'c' {
			m.add(compositeRel(o, nsp[o.Schema]))
		}
	}
	for _, o := range objs {
		t := tables[o.Table]
		if o.Kind != catalog.KindIndex || t == nil || o.Index != nil && o.Index.Internal {
			continue
		}
		x := &rel{obj: o, oid: o.OID, name: o.Name, table: t, key: o.Key, unique: o.UniqueIndex()}
		if o.Index != nil && o.Index.Constraint {
			x.constraint = 'u'
		}
		m.addIndex(x)
	}
	slices.SortFunc(m.rels, func(a, b *rel) int { return int(int64(a.oid) - int64(b.oid)) })
	for _, r := range slices.Clone(m.rels) {
		if r.table == nil && r.obj.Kind != catalog.KindVirtual {
			m.addPrimary(r)
		}
	}
	return m
}

func relkind(o *catalog.Object) byte {
	switch o.Kind {
	case catalog.KindView:
		return 'v'
	case catalog.KindMaterializedView:
		return 'm'
	case catalog.KindSequence:
		return 'S'
	case catalog.KindVirtual:
		if s := relationByOID(o.OID); s == nil || s.kind == 'v' {
			return 'v'
		}
	}
	return 'r'
}

// compositeRel is the row of pg_class that belongs to a composite type.
func compositeRel(o *catalog.Object, nsp uint32) *rel {
	c := *o
	for _, f := range o.Def.Fields {
		c.Columns = append(c.Columns, catalog.Column{Name: f.Name, Type: f.Type, Comment: f.Comment})
	}
	return &rel{obj: &c, oid: implied(o.OID, impliedComposite), nsp: nsp, kind: 'c', schema: o.Schema, name: o.Name, rowType: o.OID, arrayType: uint32(o.Def.Array)}
}

func (m *model) add(r *rel) {
	m.rels = append(m.rels, r)
	m.byOID[r.oid] = r
	m.byName[relName{r.schema, r.name}] = r
	if r.rowType != 0 {
		m.byType[r.rowType], m.byType[r.arrayType] = r, r
	}
}

func (m *model) addIndex(r *rel) {
	r.kind, r.nsp, r.schema = 'i', r.table.nsp, r.table.schema
	r.table.indexes = append(r.table.indexes, r)
	m.add(r)
}

// addPrimary adds the index of a primary key, which has no object of its own.
func (m *model) addPrimary(r *rel) {
	o := r.obj
	if len(o.PrimaryKey) == 0 {
		return
	}
	name := catalog.ObjectName(r.name, "", "pkey")
	if o.Primary != nil {
		name = o.Primary.Name
	}
	m.addIndex(&rel{oid: implied(o.OID, impliedPrimary), name: name, table: r, key: o.PrimaryKey, unique: true, constraint: 'p'})
}

// maxName is the greatest length of an identifier in bytes.
const maxName = 63

// read is the content of a system relation.
func (m *model) read(r *relation, e Env) *columnar.Batch {
	if r.compute == nil {
		return newFiller(r).batch()
	}
	if r.live {
		f := newFiller(r)
		r.compute(m, e, f)
		return f.batch()
	}
	k := cacheKey{rel: r}
	if r.pathed {
		k.path = strings.Join(e.SearchPath(), "\x00")
	}
	if r.personal {
		k.database, k.user = e.Database(), e.User()
	}
	m.mu.Lock()
	c := m.cached[k]
	if c == nil {
		c = &cacheEntry{}
		m.cached[k] = c
	}
	m.mu.Unlock()
	c.once.Do(func() {
		f := newFiller(r)
		r.compute(m, e, f)
		c.batch = f.batch()
	})
	if r.patch != nil {
		return r.patch(m, e, c.batch)
	}
	return c.batch
}
