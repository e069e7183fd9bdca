package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// BindInto is the INSERT into some columns of a table (none: the first ones) of rows
// that are not of a query: Row is over from. Where the primary key is taken it does
// what the table says, or replaces the row.
func BindInto(ctx *Context, t *catalog.Object, columns []string, from []plan.Column) (*Write, error) {
	b := newBinder(ctx, "", 0)
	b.src.silent = true
	relation := &pg.RangeVar{Schemaname: t.Schema, Relname: t.Name, Inh: true, Location: -1}
	into, err := b.target(relation, "insert into")
	if err != nil {
		return nil, err
	}
	if into.view != nil {
		return nil, pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a table", t.Name)
	}
	stmt := &pg.InsertStmt{Relation: relation}
	for _, c := range columns {
		stmt.Cols = append(stmt.Cols, pg.MakeResTargetNodeWithName(c, -1))
	}
	in := inserter{binder: b, t: into, stmt: stmt, given: make([]expr.Expr, len(t.Columns))}
	if in.into, err = b.insertColumns(into, stmt.Cols); err != nil {
		return nil, err
	}
	if err := b.checkCount(stmt, in.into, len(from), func() int { return 0 }); err != nil {
		return nil, err
	}
	for k := range from {
		c := &t.Columns[in.into[k]]
		if _, err := in.overridden(c); err != nil {
			return nil, err
		}
		if in.given[in.into[k]], err = assign(c, plan.RefTo(from, k), 0); err != nil {
			return nil, err
		}
	}
	out := &Write{Kind: WriteInsert, Table: into.object, Rel: b.transient("sink", from)}
	if out.Row, err = in.row(); err != nil {
		return nil, err
	}
	policy := t.OnConflict
	if policy == "" && t.PrimaryKey != nil {
		policy = catalog.ConflictOverwrite
	}
	if clause := tablePolicy(t, policy); clause != nil {
		if out.Conflict, err = b.onConflict(into, clause, nil); err != nil {
			return nil, err
		}
		out.Conflict.Policy = policy
	}
	return out, nil
}

// ChangelogID is the relation of the changes that the query of a sink AS CHANGELOG is
// over: it exists while they are delivered.
const ChangelogID = transientBase + 1<<40
