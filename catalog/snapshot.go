package catalog

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// The schemas that always exist.
const (
	SchemaPgCatalog   = "pg_catalog"
	SchemaInformation = "information_schema"
	SchemaInternal    = "streamdb_internal"
	SchemaPublic      = "public"
	// SchemaRisingWave has what RisingWave's clients ask for by its names.
	SchemaRisingWave = "rw_catalog"
	// SchemaMaterialize and SchemaMaterializeInternal have what Materialize's do.
	SchemaMaterialize         = "mz_catalog"
	SchemaMaterializeInternal = "mz_internal"
	// SchemaTemp stands for the schema of the session's temporary objects.
	SchemaTemp = "pg_temp"
)

// Schema is a namespace.
type Schema struct {
	Name   string
	OID    uint32
	System bool
	// Temporary is the schema of a session's temporary objects.
	Temporary bool
	Comment   string `json:",omitempty"`
}

// space is a name space: relations and indexes share one (as pg_class does),
// connections, secrets, sinks and clusters have one each.
func space(k Kind) Kind {
	switch k {
	case KindSource, KindView, KindMaterializedView, KindIndex, KindVirtual, KindSequence:
		return KindTable
	}
	return k
}

// LastSchemas are where a name without a schema is looked for after the search path.
var LastSchemas = []string{SchemaRisingWave, SchemaMaterialize}

type name struct {
	space  Kind
	schema string
	name   string
}

// Snapshot is the catalog at one version. It is immutable and safe to share.
type Snapshot struct {
	Version uint64
	objects layered[plan.ObjectID]
	list    []*Object // by id
	names   layered[name]
	schemas map[string]*Schema
	oids    layered[uint32]
	users   map[plan.ObjectID][]plan.ObjectID // reverse of uses
	refs    map[plan.ObjectID][]plan.ObjectID // the tables with foreign keys to one
	types   map[types.OID]*Object
	funcs   map[[2]string][]plan.ObjectID // the functions of a schema and name
}

// Empty is a catalog with the system schemas and public only.
func Empty() *Snapshot {
	s := &Snapshot{
		schemas: map[string]*Schema{},
		types:   map[types.OID]*Object{},
		users:   map[plan.ObjectID][]plan.ObjectID{},
		refs:    map[plan.ObjectID][]plan.ObjectID{},
		funcs:   map[[2]string][]plan.ObjectID{},
	}
	for _, sc := range []Schema{
		{Name: SchemaPgCatalog, OID: 11, System: true}, {Name: SchemaInformation, OID: 13200, System: true},
		{Name: SchemaInternal, OID: 13300, System: true}, {Name: SchemaRisingWave, OID: 13310, System: true},
		{Name: SchemaMaterialize, OID: 13311, System: true}, {Name: SchemaMaterializeInternal, OID: 13312, System: true}, {Name: SchemaPublic, OID: 2200},
	} {
		s.schemas[sc.Name] = &sc
	}
	return s
}

// Change is one edit of a catalog: exactly one field is set.
type Change struct {
	Put        *Object
	Drop       plan.ObjectID
	PutSchema  *Schema
	DropSchema string
	// Rebuild says that the content of an object begins anew: its definition
	// has changed under the same id. It is for who keeps the content.
	Rebuild plan.ObjectID
	// Temporary says that the change is of a temporary object: it is not stored.
	Temporary bool
}

// Stored is the catalog without temporary objects; s itself if there are none.
func (s *Snapshot) Stored() *Snapshot {
	var gone []Change
	for _, o := range s.list {
		if o.Temporary {
			gone = append(gone, Change{Drop: o.ID})
		}
	}
	for _, sc := range s.schemas {
		if sc.Temporary {
			gone = append(gone, Change{DropSchema: sc.Name})
		}
	}
	if gone == nil {
		return s
	}
	return s.Apply(gone...)
}

// Apply makes the next version. Puts replace the object of the same id.
func (s *Snapshot) Apply(changes ...Change) *Snapshot {
	n := &Snapshot{
		Version: s.Version + 1,
		objects: s.objects.next(),
		list:    slices.Grow(slices.Clone(s.list), len(changes)),
		names:   s.names.next(),
		schemas: maps.Clone(s.schemas),
		oids:    s.oids.next(),
		types:   maps.Clone(s.types),
		users:   maps.Clone(s.users),
		refs:    maps.Clone(s.refs),
		funcs:   maps.Clone(s.funcs),
	}
	for _, c := range changes {
		switch {
		case c.Put != nil:
			n.remove(c.Put.ID)
			n.insert(c.Put)
		case c.Drop != 0:
			n.remove(c.Drop)
		case c.PutSchema != nil:
			n.schemas[c.PutSchema.Name] = c.PutSchema
		case c.DropSchema != "":
			delete(n.schemas, c.DropSchema)
		}
	}
	return n
}

// uses are the objects that o depends on: those that it names, and the types of
// its columns or in its definition.
func (s *Snapshot) uses(o *Object) []plan.ObjectID {
	ids := o.Deps
	add := func(t types.OID) {
		if e := t.Elem(); e != 0 && !t.IsRow() {
			t = e
		}
		if rel := t.Relation(); rel != 0 {
			// the relation may come later, when a catalog is read
			if id := plan.ObjectID(rel - uint32(types.FirstUser)); id != o.ID && !slices.Contains(ids, id) {
				ids = append(slices.Clip(ids), id)
			}
		} else if t >= types.FirstUser {
			if d := s.types[t]; d != nil && d.ID != o.ID && !slices.Contains(ids, d.ID) {
				ids = append(slices.Clip(ids), d.ID)
			}
		}
	}
	for i := range o.Columns {
		add(o.Columns[i].Type.OID)
	}
	if f := o.Function; f != nil {
		add(f.Returns.OID)
		for _, a := range f.Args {
			add(a.Type.OID)
		}
		for _, a := range f.Table {
			add(a.Type.OID)
		}
	}
	if o.Def != nil {
		add(o.Def.Base.OID)
		add(o.Def.Subtype)
		for _, f := range o.Def.Fields {
			add(f.Type.OID)
		}
	}
	return ids
}

func (s *Snapshot) insert(o *Object) {
	if o.RowType() != 0 {
		o.define()
	}
	if o.Def != nil {
		o.define()
		for _, t := range types.UserDefined(types.OID(o.OID)) {
			s.types[t.OID] = o
		}
	}
	s.objects.set(o.ID, o)
	i, _ := s.place(o.ID)
	s.list = slices.Insert(s.list, i, o)
	s.names.set(nameOf(o), o)
	if o.Function != nil {
		addLink(s.funcs, [2]string{o.Schema, o.Name}, o.ID)
	}
	s.oids.set(o.OID, o)
	for _, d := range s.uses(o) {
		addLink(s.users, d, o.ID)
	}
	if o.Sequence != nil && o.Sequence.Table != 0 {
		addLink(s.users, o.Sequence.Table, o.ID)
	}
	for _, f := range o.Foreign {
		addLink(s.refs, f.RefTable, o.ID)
	}
}

func (s *Snapshot) remove(id plan.ObjectID) {
	o := s.objects.get(id)
	if o == nil {
		return
	}
	s.objects.set(id, nil)
	if i, ok := s.place(id); ok {
		s.list = slices.Delete(s.list, i, i+1)
	}
	s.oids.set(o.OID, nil)
	if o.Def != nil {
		defer maps.DeleteFunc(s.types, func(_ types.OID, x *Object) bool { return x == o })
	}
	k := nameOf(o)
	if o.Function != nil {
		dropLink(s.funcs, [2]string{o.Schema, o.Name}, id)
	}
	if s.names.get(k) == o {
		s.names.set(k, nil)
	}
	for _, d := range s.uses(o) {
		dropLink(s.users, d, id)
	}
	if o.Sequence != nil && o.Sequence.Table != 0 {
		dropLink(s.users, o.Sequence.Table, id)
	}
	for _, f := range o.Foreign {
		dropLink(s.refs, f.RefTable, id)
	}
}

// nameOf is the name that an object is found by: functions have the types of
// their arguments in it.
func nameOf(o *Object) name {
	n := name{space(o.Kind), o.Schema, o.Name}
	if o.Function != nil {
		n.name = o.Function.Key(o.Name)
	}
	return n
}

// Signature is a function's name with the types of its arguments.
func (f *Function) Signature(name string) string {
	ts := make([]string, len(f.Args))
	for i, a := range f.Args {
		ts[i] = types.Of(a.Type.OID).String()
	}
	return name + "(" + strings.Join(ts, ", ") + ")"
}

// Key is the name under which a snapshot has a function: types keep their numbers when
// they are renamed.
func (f *Function) Key(name string) string {
	for _, a := range f.Args {
		name += "," + strconv.FormatUint(uint64(a.Type.OID), 10)
	}
	return name
}

// Functions are the functions of a name in a schema, by id; nil if there are none.
func (s *Snapshot) Functions(schema, nm string) []*Object {
	return s.objectsOf(s.funcs[[2]string{schema, nm}])
}

// addLink and dropLink edit a list of links without changing the one that an
// earlier snapshot shares.
func addLink[K comparable](m map[K][]plan.ObjectID, to K, from plan.ObjectID) {
	if !slices.Contains(m[to], from) {
		m[to] = append(slices.Clone(m[to]), from)
	}
}

func dropLink[K comparable](m map[K][]plan.ObjectID, to K, from plan.ObjectID) {
	m[to] = slices.DeleteFunc(slices.Clone(m[to]), func(u plan.ObjectID) bool { return u == from })
	if len(m[to]) == 0 {
		delete(m, to)
	}
}

// References are the tables with foreign keys to a table, by id.
func (s *Snapshot) References(id plan.ObjectID) []*Object { return s.objectsOf(s.refs[id]) }

func (s *Snapshot) objectsOf(ids []plan.ObjectID) []*Object {
	var out []*Object
	for _, u := range ids {
		out = append(out, s.objects.get(u))
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// define makes a type, or that of a relation's rows, known to package types.
func (o *Object) define() {
	if o.Def != nil {
		types.Define(types.OID(o.OID), o.Schema, o.Name, o.Def)
		return
	}
	fields := make([]types.Field, 0, len(o.Columns))
	for i := range o.Columns {
		if c := &o.Columns[i]; !c.Hidden {
			fields = append(fields, types.Field{Name: c.Name, Type: c.Type})
		}
	}
	types.DefineRow(o.OID, o.Schema, o.Name, fields)
}

// RowType is the type of a relation's rows, 0 for what has none.
func (o *Object) RowType() types.OID {
	switch o.Kind {
	case KindTable, KindSource, KindView, KindMaterializedView:
		return types.RowOf(o.OID)
	}
	return 0
}

// OfType reports whether t is the type that the object is, or that of its rows, or
// one made with it: of its arrays, its multirange.
func (o *Object) OfType(t types.OID) bool {
	if r := o.RowType(); r != 0 {
		return t == r || t == r.Array()
	}
	return o.Def != nil && slices.ContainsFunc(types.UserDefined(types.OID(o.OID)), func(i *types.Info) bool { return i.OID == t })
}

// DefineTypes makes the types known as they are in this version: after a
// transaction that changed them was given up.
func (s *Snapshot) DefineTypes() {
	for _, o := range s.Objects() {
		if o.Def != nil || o.RowType() != 0 {
			o.define()
		}
	}
}

// ByID is the object with the id, nil if there is none.
func (s *Snapshot) ByID(id plan.ObjectID) *Object { return s.objects.get(id) }

// ByOID is the object with the pg_class OID, nil if there is none.
func (s *Snapshot) ByOID(oid uint32) *Object { return s.oids.get(oid) }

// Get finds an object by its kind's name space, schema and name.
func (s *Snapshot) Get(k Kind, schema, nm string) *Object {
	return s.names.get(name{space(k), schema, nm})
}

// Resolve finds an object along a search path; schema "" means the path.
func (s *Snapshot) Resolve(k Kind, schema, nm string, path []string) *Object {
	if schema != "" {
		return s.Get(k, schema, nm)
	}
	for _, p := range path {
		if o := s.Get(k, p, nm); o != nil {
			return o
		}
	}
	return nil
}

// Schema is the schema of that name, nil if there is none.
func (s *Snapshot) Schema(nm string) *Schema { return s.schemas[nm] }

// Types lists the types of a schema, by their OIDs.
func (s *Snapshot) Types(schema string) []*Object {
	var out []*Object
	for oid, o := range s.types {
		if o.Schema == schema && oid == types.OID(o.OID) {
			out = append(out, o)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].OID < out[j].OID })
	return out
}

// Schemas lists the schemas by name.
func (s *Snapshot) Schemas() []*Schema {
	out := slices.Collect(maps.Values(s.schemas))
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Objects lists the objects by id. The list is the snapshot's own: it is not to be
// written.
func (s *Snapshot) Objects() []*Object { return s.list }

// place is where the object of an id is, or would be, in the list.
func (s *Snapshot) place(id plan.ObjectID) (int, bool) {
	return slices.BinarySearchFunc(s.list, id, func(o *Object, id plan.ObjectID) int { return cmp.Compare(o.ID, id) })
}

// Users are the direct users of an object, by id.
func (s *Snapshot) Users(id plan.ObjectID) []*Object { return s.objectsOf(s.users[id]) }

// Closure is the ids together with all their transitive users, users last in
// each chain (dependency order).
func (s *Snapshot) Closure(ids ...plan.ObjectID) []*Object {
	seen := map[plan.ObjectID]bool{}
	var out []*Object
	var visit func(id plan.ObjectID)
	visit = func(id plan.ObjectID) {
		if seen[id] {
			return
		}
		seen[id] = true
		for _, u := range s.Users(id) {
			visit(u.ID)
		}
		if o := s.objects.get(id); o != nil {
			out = append(out, o)
		}
	}
	for _, id := range ids {
		visit(id)
	}
	slices.Reverse(out)
	return out
}

// Owned says whether user goes away with used without CASCADE, as indexes go
// with their table and subsources with their source.
func Owned(user, used *Object) bool {
	return (user.Kind == KindIndex && user.Table == used.ID) || user.Parent == used.ID ||
		user.Sequence != nil && user.Sequence.Table == used.ID
}

// PrimaryNamed is the table in a schema whose primary key has the name, nil if
// there is none.
func (s *Snapshot) PrimaryNamed(schema, name string) *Object {
	for _, o := range s.list {
		if o.Primary != nil && o.Schema == schema && o.Primary.Name == name {
			return o
		}
	}
	return nil
}
