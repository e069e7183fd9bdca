package coord

import (
	"context"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// The kinds of changes, as RisingWave numbers them.
const (
	changeInsert    = 1
	changeDelete    = 2
	changeUpdateNew = 3 // the new row of an update
	changeUpdateOld = 4 // the row before it
)

// changelogSchema is where the changes are a relation while the query over them is
// bound. A user's schema cannot have the name.
const changelogSchema = "pg_changelog"

// bindChangelog binds the query of a changelog sink, over the relation of the changes.
func bindChangelog(cat *catalog.Snapshot, o *catalog.Object, c *catalog.Changelog) (*planner.Query, error) {
	rel := &catalog.Object{ID: planner.ChangelogID, Schema: changelogSchema, Name: c.Name, Kind: catalog.KindVirtual}
	for _, x := range o.Columns {
		rel.Columns = append(rel.Columns, catalog.Column{Name: x.Name, Type: x.Type})
	}
	rel.Columns = append(rel.Columns, catalog.Column{Name: "changelog_op", Type: types.Int2, NotNull: true})
	ctx := &planner.Context{Catalog: cat.Apply(catalog.Change{PutSchema: &catalog.Schema{Name: changelogSchema}}, catalog.Change{Put: rel}),
		Database: databaseName, SearchPath: []string{changelogSchema}}
	query, err := parser.ParseQuery(c.Query)
	if err != nil {
		return nil, err
	}
	q, err := planner.BindQuery(ctx, c.Query, &query)
	if err != nil {
		return nil, err
	}
	if len(q.Params) > 0 {
		return nil, pgerror.New(pgerror.UndefinedParameter, "there is no parameter $1")
	}
	for _, id := range q.DeepDeps {
		if id != planner.ChangelogID {
			return nil, pgerror.Unsupported("another relation, function or type of a user's beside a changelog")
		}
	}
	return q, nil
}

// changelogInto completes the definition of a sink of changes. It gives the columns of
// what is inserted.
func (s *Session) changelogInto(d *ddlState, o *catalog.Object, p *prepared, n *parser.CreateSink) ([]catalog.Column, error) {
	of := d.cat.Resolve(catalog.KindTable, n.Changelog.Of.Schema, n.Changelog.Of.Name, s.relationPath())
	c := &catalog.Changelog{Name: n.Changelog.Name, Of: of.ID, Query: n.Query.SQL}
	if o.Column("changelog_op") >= 0 {
		return nil, pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", "changelog_op")
	}
	q, err := bindChangelog(d.cat, o, c)
	if err != nil {
		return nil, noPosition(err)
	}
	if err := s.planView(&catalog.Object{}, q); err != nil {
		return nil, err
	}
	rel, err := planner.Optimize(q.Collection(), planner.Options{Maintained: true})
	if err != nil {
		return nil, err
	}
	plan.Walk(rel, func(r plan.Rel) bool {
		switch r := r.(type) {
		case *plan.Get, *plan.Filter, *plan.Project, *plan.FlatMap:
		case *plan.SetOp:
			if r.Kind != plan.Union || !r.All {
				err = pgerror.Unsupported("a set operation over a changelog")
			}
		default:
			err = pgerror.Unsupported("a query over a changelog that is not row by row").
				WithHint("Filter and compute columns of each change; joins and groups are for queries over the table.")
		}
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	if c.Columns, err = viewColumns(q, nil); err != nil {
		return nil, err
	}
	o.Sink.Changelog = c
	return c.Columns, nil
}

// changes gives what a changelog sink inserts for rows that come and go: a row of each
// kind with one key is an update.
func (k *runningSink) changes(ctx context.Context, o *catalog.Object, come, gone *dataflow.Delta) (columnar.Batch, error) {
	in := columnar.Batch{}
	bs := make([]*columnar.Builder, len(o.Columns))
	for c, x := range o.Columns {
		bs[c] = columnar.NewBuilder(x.Type.Kind(), come.N+gone.N)
	}
	ops := columnar.NewBuilder(columnar.KindInt16, come.N+gone.N)
	add := func(d *dataflow.Delta, i int, op int16) {
		for range max(d.Diffs[i], 0) {
			for c := range bs {
				bs[c].AppendFrom(d.Cols[c], i)
			}
			ops.Int16(op)
			in.N++
		}
	}
	ts := columnTypes(o.Columns, o.Key)
	by := map[string]int{} // the rows that come, by keys that are unique
	var buf []byte
	if len(o.Key) < len(o.Columns) {
		for i := range come.N {
			buf = appendKey(buf[:0], &come.Batch, o.Key, ts, i)
			by[string(buf)] = i
		}
	}
	updates := make([]bool, come.N)
	for i := range gone.N {
		buf = appendKey(buf[:0], &gone.Batch, o.Key, ts, i)
		if j, ok := by[string(buf)]; ok {
			updates[j] = true
			add(gone, i, changeUpdateOld)
			add(come, j, changeUpdateNew)
		} else {
			add(gone, i, changeDelete)
		}
	}
	for i := range come.N {
		if !updates[i] {
			add(come, i, changeInsert)
		}
	}
	for _, b := range append(bs, ops) {
		in.Cols = append(in.Cols, b.Build())
	}
	r := &writeRun{writer: &writer{s: k.s, ctx: ctx}, reader: &reader{s: k.s, ctx: k.s.exprContext()}}
	r.reader.give(planner.ChangelogID, &in)
	out, err := r.query(k.changelog)
	if err != nil {
		return columnar.Batch{}, err
	}
	return *firstCols(out, len(o.Sink.Changelog.Columns)), nil
}
