// Package catalog is the named objects of the database, their versions and
// their dependencies. A Snapshot is an immutable value; a change makes a new
// one. It keeps the SQL text of views, not their plans.
package catalog

import (
	"maps"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// Kind is the kind of an object.
type Kind uint8

// The kinds.
const (
	KindTable Kind = iota + 1
	KindSource
	KindView
	KindMaterializedView
	KindIndex
	KindConnection
	KindSecret
	KindSink
	KindCluster
	KindVirtual // a relation of pg_catalog, information_schema, streamdb_internal
	KindSequence
	KindFunction
	KindType // a type or domain
	KindSubscription
)

func (k Kind) String() string {
	return [...]string{"", "table", "source", "view", "materialized view", "index", "connection", "secret", "sink", "cluster", "table", "sequence", "function", "type", "subscription"}[k]
}

// Column is a column of a relation.
type Column struct {
	Name    string
	Type    types.Type
	NotNull bool
	Default string // SQL text, "" for none
	Comment string
	Hidden  bool // not part of SELECT *
	// Generated is the expression of a stored generated column, "" for none;
	// Identity is "", IdentityAlways or IdentityByDefault.
	Generated string
	Identity  string
	// Collation is the one that was named, "" for that of the type. All are C.
	Collation string `json:",omitempty"`
}

// The kinds of identity columns.
const (
	IdentityAlways    = "always"
	IdentityByDefault = "by default"
)

// Object is one named object. It is immutable.
type Object struct {
	ID      plan.ObjectID
	OID     uint32 // for pg_catalog; unique
	Schema  string
	Name    string
	Kind    Kind
	Columns []Column
	// PrimaryKey are column indexes.
	PrimaryKey []int
	// Primary is the constraint of the primary key, Unique are the other keys;
	// both of tables only.
	Primary *Key
	Unique  []Key
	Checks  []Check
	Foreign []ForeignKey
	// SQL is the normalized CREATE statement, as SHOW CREATE prints it; for
	// views Query is the defining query with all names qualified.
	SQL   string
	Query string
	// Table and Key are of an index: the indexed relation and its columns.
	Table plan.ObjectID
	Key   []int
	// Exprs are the expressions in an index's key (see ExprKey), Where says which
	// rows it has, "" for all.
	Exprs []IndexExpr `json:",omitempty"`
	// Orders are the orders that an index's definition asks for, by the parts of its
	// key, nil for none: they are shown; nothing goes by them.
	Orders []KeyOrder `json:",omitempty"`
	Where  string     `json:",omitempty"`
	// Proven says of an index of a view that its query makes the key unique.
	Proven bool `json:",omitempty"`
	// Index tells more of an index that is kept together with its table.
	Index *IndexInfo
	// Sequence is of a sequence, Function of a function.
	Sequence *Sequence
	Function *Function
	// Sink is of a sink; not of the collection that it owns, whose Parent it is.
	Sink *Sink `json:",omitempty"`
	// Discards says of a sink that its rows go nowhere, so that nothing computes them.
	Discards bool `json:",omitempty"`
	// Deps are the objects that this one uses.
	Deps []plan.ObjectID
	// Rows are the sizes of what a materialized view reads, when it was made:
	// its plan, and so its stored state, does not change with them.
	Rows       map[plan.ObjectID]float64 `json:",omitempty"`
	Cluster    string
	AppendOnly bool
	// Grows says of a materialized view that its rows never go away.
	Grows bool `json:",omitempty"`
	// OnConflict is what an INSERT without ON CONFLICT does where the primary key
	// is taken: ConflictOverwrite and its kin, "" for an error.
	OnConflict string `json:",omitempty"`
	// Version are the indexes of the columns that OnConflict goes by: a row whose
	// values there come before those of the row present is passed over.
	Version []int `json:",omitempty"`
	Comment string
	// Options are the parsed options of connections, sources, sinks (never
	// secrets: those are referred to by name).
	Options map[string]string
	// Config are the settings of a streaming job in RisingWave's names, as TOML
	// values. They are kept and shown; nothing goes by them.
	Config map[string]string `json:",omitempty"`
	// Def is the definition of a type.
	Def *types.Definition
	// Parent is the source that owns this subsource or error relation.
	Parent plan.ObjectID
	// Temporary objects belong to a session and are not stored. OnCommit is what
	// becomes of a temporary table then: "", "drop" or "delete rows".
	Temporary bool
	OnCommit  string
}

// Clone is a copy to change.
func (o *Object) Clone() *Object {
	c := *o
	c.Columns, c.PrimaryKey, c.Unique, c.Version = slices.Clone(o.Columns), slices.Clone(o.PrimaryKey), slices.Clone(o.Unique), slices.Clone(o.Version)
	c.Checks, c.Foreign, c.Deps = slices.Clone(o.Checks), slices.Clone(o.Foreign), slices.Clone(o.Deps)
	c.Config = maps.Clone(o.Config)
	if o.Primary != nil {
		p := *o.Primary
		c.Primary = &p
	}
	if o.Sequence != nil {
		q := *o.Sequence
		c.Sequence = &q
	}
	if o.Sink != nil {
		k := *o.Sink
		k.Columns = slices.Clone(k.Columns)
		c.Sink = &k
	}
	return &c
}

// Maintained reports whether the object has a dataflow that keeps it: a materialized
// view, an index that is not kept together with its table, a sink.
func (o *Object) Maintained() bool {
	return o.Kind == KindMaterializedView || o.Kind == KindIndex && o.Index == nil || o.Sink != nil
}

// Column finds a column by its name, -1 if there is none.
func (o *Object) Column(name string) int {
	return slices.IndexFunc(o.Columns, func(c Column) bool { return c.Name == name })
}

// maxName is the greatest length of an identifier in bytes.
const maxName = 63

// ObjectName makes a name as PostgreSQL does for what a table implies: up to
// three parts with underscores, the first two cut where the name would be too
// long, the longer one first.
func ObjectName(a, b, label string) string {
	room := maxName - len(label) - 1
	if b != "" {
		room--
	}
	for len(a)+len(b) > room {
		if len(a) > len(b) {
			a = a[:len(a)-1]
		} else {
			b = b[:len(b)-1]
		}
	}
	a, b = strings.ToValidUTF8(a, ""), strings.ToValidUTF8(b, "")
	if b != "" {
		a += "_" + b
	}
	return a + "_" + label
}

// Check is a CHECK constraint.
type Check struct {
	Name, Expr string
	NotValid   bool // the rows from before it need not satisfy it
	Comment    string
}

// Key is a primary key, a UNIQUE constraint or a unique index.
type Key struct {
	Name             string
	Columns          []int
	NullsNotDistinct bool
	Index            bool          // made by CREATE UNIQUE INDEX: not a constraint
	Derived          bool          // by expressions, or of some rows only: see Object; nothing is unique by Columns alone
	Object           plan.ObjectID // the index that enforces it; 0: the table's own order does
	Comment          string
	IndexComment     string `json:",omitempty"` // on the index of a primary key, which is no object
}

// Keys are all keys of a table, the primary key first.
func (o *Object) Keys() []Key {
	if o.Primary == nil {
		return o.Unique
	}
	return append([]Key{*o.Primary}, o.Unique...)
}

// ForeignKey is a FOREIGN KEY constraint. RefColumns are in the order of the key
// of RefTable that they are; Columns go with them.
type ForeignKey struct {
	Name       string
	Columns    []int
	RefTable   plan.ObjectID
	RefColumns []int
	// OnDelete and OnUpdate are "" (no action), "restrict", "cascade", "set
	// null" or "set default"; SetColumns are those that ON DELETE SET sets, nil: all.
	OnDelete, OnUpdate string
	SetColumns         []int
	MatchFull          bool
	Deferrable         bool
	Deferred           bool
	NotValid           bool
	Object             plan.ObjectID // the index of the referring rows by Columns
	Comment            string
}

// IndexInfo is of an index that enforces a key or finds referring rows: the
// timeline keeps it with its table.
type IndexInfo struct {
	Unique     bool
	Constraint bool // belongs to a constraint, which it goes with
	Internal   bool // not shown
	// Encoded says that rows are found by the encoded form of the key, as the
	// equality of its types is not that of their bits.
	Encoded bool
}

// Sequence is the definition of a sequence.
type Sequence struct {
	Type                              types.Type
	Start, Increment, Min, Max, Cache int64
	Cycle                             bool
	// Table and Column are the table and the column that own it, 0 and "" for none.
	Table    plan.ObjectID
	Column   string
	Identity bool // it goes with an identity column
}

// Sink is the definition of a sink into a table. Its object has the query's columns,
// and its collection is what is still to be delivered.
type Sink struct {
	Into    plan.ObjectID
	Columns []string // of the table, in the order of the query's columns
	// Delivered is the object whose collection is the rows of the query that have
	// been delivered.
	Delivered plan.ObjectID
	// InsertsOnly says that rows are not taken away again.
	InsertsOnly bool
	Changelog   *Changelog `json:",omitempty"`
	With        string     // the options, as they are shown
}

// Changelog says of a sink that what it inserts is not the rows of its query, but Query
// over the changes of these: the relation Name, with the rows' columns and the kind of change.
type Changelog struct {
	Name    string
	Of      plan.ObjectID // whose changes it is
	Query   string
	Columns []Column // of the result
}

// Function is the definition of a SQL function.
type Function struct {
	Args       []Argument
	Returns    types.Type
	Set        bool       // returns a set of rows
	Table      []Argument // the columns of RETURNS TABLE or the OUT arguments, nil for none
	Source     string     // the body as it was written
	Body       string     // with the names of relations qualified
	Volatility string     // "immutable", "stable", "volatile"
	Strict     bool
	Procedure  bool `json:",omitempty"` // it is called, and returns what its OUT arguments are
	// Writes says that it is a procedure, or its statements change tables: they are
	// run one after the other, and not part of the query that calls it.
	Writes bool       `json:",omitempty"`
	All    []Argument `json:",omitempty"` // input and output, in their order
}

// Argument is an argument of a function, or a column of what it returns.
type Argument struct {
	Name    string
	Type    types.Type
	Default string // SQL text, "" for none
	Mode    byte   // 'i', 'o', 'b', 'v', 't' as in pg_proc
}

// UniqueIndex reports whether an object is an index whose keys are unique.
func (o *Object) UniqueIndex() bool { return o.Proven || o.Index != nil && o.Index.Unique }

// Relation reports whether the object can be selected from.
func (o *Object) Relation() bool {
	switch o.Kind {
	case KindTable, KindSource, KindView, KindMaterializedView, KindVirtual, KindSequence:
		return true
	}
	return false
}

// PlainIndex reports whether the object is an index of all rows by columns, which
// can be read like a relation.
func (o *Object) PlainIndex() bool {
	return o.Kind == KindIndex && o.Index == nil && len(o.Exprs) == 0 && o.Where == "" && len(o.Key) > 0
}

// What a table does with rows whose primary key is taken.
const (
	ConflictOverwrite = "overwrite"
	ConflictIgnore    = "ignore"
	ConflictNotNull   = "do update if not null" // the values that are not NULL replace those present
)
