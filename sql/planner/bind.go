package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// Catalog is what binding asks of the catalog; *catalog.Snapshot is one.
type Catalog interface {
	// Get finds an object by its kind's name space, schema and name.
	Get(k catalog.Kind, schema, name string) *catalog.Object
	// Schema is the schema of that name, nil if there is none.
	Schema(name string) *catalog.Schema
	// Types are the types of a schema.
	Types(schema string) []*catalog.Object
	// ByID is the object with the id, nil if there is none.
	ByID(id plan.ObjectID) *catalog.Object
	// Functions are the functions of a name in a schema, nil if there are none.
	Functions(schema, name string) []*catalog.Object
}

// Context is what binding a statement depends on besides the statement.
type Context struct {
	Catalog  Catalog
	Database string
	// SearchPath are the schemas of unqualified names in order; pg_catalog is
	// searched before them unless it is among them.
	SearchPath []string
	// ParamTypes are the declared types of $1, $2, …; 0 is left to inference.
	ParamTypes []types.OID
	// Session gives literals like 'today'::date and 't'::regclass their
	// meaning; nil leaves them as calls.
	Session *expr.Context
	// Expand says that a materialized view is to be computed from its definition
	// and not read: within a transaction that has changed what it is made of.
	// Nil: never.
	Expand func(o *catalog.Object) bool
	// Stars, if not nil, is told what each * of the statement's own text stands
	// for, so that Qualify can write it out.
	Stars map[*pg.ResTarget][]string
	// TempSchema is the schema that pg_temp stands for.
	TempSchema string
	// Upsert lets INSERT without ON CONFLICT replace the rows whose primary key
	// it has, where the table does not say otherwise.
	Upsert bool
	// Arguments are set while a statement of a function is bound.
	Arguments *Arguments
	trace     *columnTrace
	attribute *attributeUses
}

// Bound is a statement with its names and types resolved: *Query or *Write.
type Bound interface{ bound() }

// ResultColumn is a column of a result.
type ResultColumn struct {
	plan.Column
	// TableOID and AttrNum tell the table column that it is, if it is just one.
	Domain   types.OID // that is its type as PostgreSQL has it, 0 for none
	TableOID uint32
	AttrNum  int16
}

// Declared is the type of the column as PostgreSQL has it: a domain, if it is one.
func (c ResultColumn) Declared() types.Type {
	if c.Domain != 0 {
		return types.Of(c.Domain)
	}
	return c.Type
}

// Query is a bound query. Rel is of the bound stage; its root is a plan.Sort
// if the query has ORDER BY, LIMIT or OFFSET. Rel may have more columns than
// Columns: those after are only there to order by.
type Query struct {
	Rel     plan.Rel
	Columns []ResultColumn
	Params  []types.Type
	// Deps are the catalog objects that the query uses directly, in order of
	// first use; DeepDeps also those that the views among them use.
	Deps     []plan.ObjectID
	DeepDeps []plan.ObjectID
	// Steps are the WITH queries that change tables.
	Steps []Step
	// Calls are those of functions that change tables for each row of Rel: they
	// are run in the order of the rows.
	Calls []Call
}

// WriteKind is the kind of a statement that changes a table.
type WriteKind uint8

// The kinds of writes.
const (
	WriteInsert WriteKind = iota + 1
	WriteUpdate
	WriteDelete
	WriteMerge
)

func (k WriteKind) String() string { return [...]string{"", "INSERT", "UPDATE", "DELETE", "MERGE"}[k] }

// Write is a bound INSERT, UPDATE, DELETE or MERGE. Rel yields, by kind:
//
//	INSERT  the rows of VALUES or of the query, from which Row makes those of the table
//	UPDATE  the old row, the new row, the columns of FROM
//	DELETE  the old row, the columns of USING
//	MERGE   the old row (NULLs if there is none), the new row, the source's columns, the number of the action
//
// Generated columns are not computed in new rows.
type Write struct {
	Kind  WriteKind
	Table *catalog.Object
	Rel   plan.Rel
	// Row has the value of each column of the table, over the columns of Rel.
	Row      []expr.Expr
	Conflict *Conflict
	// Actions are what the actions of MERGE do, the first is number 1.
	Actions []WriteKind
	// Joined says that Rel may give a row of the table several times.
	Joined    bool
	Returning *Returning
	// ViewChecks are over the new row: those of the view that the statement names.
	ViewChecks []ViewCheck
	Steps      []Step
	Params     []types.Type
	DeepDeps   []plan.ObjectID
}

// Conflict is ON CONFLICT.
type Conflict struct {
	// Keys are the names of the keys whose conflicts are handled; nil: all.
	Keys []string
	// Rel, nil for DO NOTHING, reads the conflicts from the relation Input: the
	// present row, the row proposed and a number. It yields the present row, the
	// new row and the number, for those that WHERE admits.
	Input plan.ObjectID
	Rel   plan.Rel
	// Policy is set if this is what the table does, and not what the statement
	// says: rows proposed with one key count as one after the other.
	Policy string
}

// Returning is a RETURNING clause: Exprs are over the rows that the statement
// has changed, which are the new row (the old one where a row is deleted), then
// the columns of FROM, USING or the source of MERGE, and what MERGE did as text.
type Returning struct {
	Exprs   []expr.Expr
	Columns []ResultColumn
	// Rel is set if there are subqueries: it reads the rows, with their numbers
	// as a further column, from the relation Input and yields the results in order.
	Input plan.ObjectID
	Rel   plan.Rel
}

// Step is a WITH query that is run before the statement: one that changes a
// table, or one beside such; or a call of a function that changes tables. What it
// returns is read as the relation ID.
type Step struct {
	ID    plan.ObjectID
	Call  *Call
	Write *Write // nil: a query
	Query plan.Rel
	Cols  []plan.Column
}

// transientBase is where the ids of relations begin that exist only while a
// statement runs.
const transientBase = plan.ObjectID(1) << 50

// Transient reports whether an id is of a relation that exists only while a
// statement runs.
func Transient(id plan.ObjectID) bool { return id >= transientBase }

// Writes reports whether running the query changes tables.
func (q *Query) Writes() bool { return len(q.Steps) > 0 || len(q.Calls) > 0 }

func (*Query) bound() {}
func (*Write) bound() {}

// Rows is Rel, for an INSERT with the rows of the table made of it: what EXPLAIN
// shows.
func (w *Write) Rows() plan.Rel {
	if w.Kind != WriteInsert {
		return w.Rel
	}
	rel := w.Rel
	if s, ok := rel.(*plan.Sort); ok {
		if rel = s.Input; s.Limit != nil || s.Offset != nil {
			rel = &plan.TopK{Input: rel, Order: s.Order, Limit: s.Limit, Offset: s.Offset}
		}
	}
	p := &plan.Project{Input: rel, Exprs: w.Row}
	for i, c := range w.Table.Columns {
		p.Cols = append(p.Cols, plan.Column{Name: c.Name, Type: c.Type, NotNull: neverNullIn(w.Row[i], rel.Columns())})
	}
	return p
}

// Collection is the query as a collection, without an order: what a view or a
// subscription maintains. It has exactly the columns of q.Columns.
func (q *Query) Collection() plan.Rel {
	rel := q.Rel
	if s, ok := rel.(*plan.Sort); ok {
		rel = s.Input
		if s.Limit != nil || s.Offset != nil {
			rel = &plan.TopK{Input: s.Input, Order: s.Order, Limit: s.Limit, Offset: s.Offset}
		}
	}
	return firstColumns(rel, len(q.Columns))
}
