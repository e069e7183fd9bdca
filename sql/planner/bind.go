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
	// ByID is the object with the id, nil if there is none.
	ByID(id plan.ObjectID) *catalog.Object
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
}

// Bound is a statement with its names and types resolved: *Query, *Insert,
// *Update or *Delete.
type Bound interface{ bound() }

// ResultColumn is a column of a result.
type ResultColumn struct {
	plan.Column
	// TableOID and AttrNum tell the table column that it is, if it is just one.
	TableOID uint32
	AttrNum  int16
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
}

// Insert is a bound INSERT: Rel yields whole new rows of Table, with all its
// columns in order.
type Insert struct {
	Table     *catalog.Object
	Rel       plan.Rel
	Returning *Returning
	Params    []types.Type
	DeepDeps  []plan.ObjectID
}

// Update is a bound UPDATE: Rel yields, for each row to change, the old row
// and then the new row.
type Update struct {
	Table     *catalog.Object
	Rel       plan.Rel
	Returning *Returning
	Params    []types.Type
	DeepDeps  []plan.ObjectID
}

// Delete is a bound DELETE: Rel yields the rows to delete.
type Delete struct {
	Table     *catalog.Object
	Rel       plan.Rel
	Returning *Returning
	Params    []types.Type
	DeepDeps  []plan.ObjectID
}

// Returning is a RETURNING clause: Exprs are over the columns of the Rel of
// the statement (which has further columns after the rows if it needs them).
type Returning struct {
	Exprs   []expr.Expr
	Columns []ResultColumn
}

func (*Query) bound()  {}
func (*Insert) bound() {}
func (*Update) bound() {}
func (*Delete) bound() {}

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
