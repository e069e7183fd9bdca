// Package catalog is the named objects of the database, their versions and
// their dependencies. A Snapshot is an immutable value; a change makes a new
// one. It keeps the SQL text of views, not their plans.
package catalog

import (
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
)

func (k Kind) String() string {
	return [...]string{"", "table", "source", "view", "materialized view", "index", "connection", "secret", "sink", "cluster", "table"}[k]
}

// Column is a column of a relation.
type Column struct {
	Name    string
	Type    types.Type
	NotNull bool
	Default string // SQL text, "" for none
	Comment string
	Hidden  bool // not part of SELECT *
}

// Object is one named object. It is immutable.
type Object struct {
	ID      plan.ObjectID
	OID     uint32 // for pg_catalog; unique
	Schema  string
	Name    string
	Kind    Kind
	Columns []Column
	// PrimaryKey and Unique are column indexes.
	PrimaryKey []int
	Unique     [][]int
	Checks     []Check
	// SQL is the normalized CREATE statement, as SHOW CREATE prints it; for
	// views Query is the defining query with all names qualified.
	SQL   string
	Query string
	// Table and Key are of an index: the indexed relation and its columns.
	Table plan.ObjectID
	Key   []int
	// Deps are the objects that this one uses.
	Deps []plan.ObjectID
	// Rows are the sizes of what a materialized view reads, when it was made:
	// its plan, and so its stored state, does not change with them.
	Rows       map[plan.ObjectID]float64 `json:",omitempty"`
	Cluster    string
	AppendOnly bool
	Comment    string
	// Options are the parsed options of connections, sources, sinks (never
	// secrets: those are referred to by name).
	Options map[string]string
	// Parent is the source that owns this subsource or error relation.
	Parent plan.ObjectID
}

// Check is a CHECK constraint.
type Check struct{ Name, Expr string }

// Relation reports whether the object can be selected from.
func (o *Object) Relation() bool {
	switch o.Kind {
	case KindTable, KindSource, KindView, KindMaterializedView, KindVirtual:
		return true
	}
	return false
}
