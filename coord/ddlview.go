package coord

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// viewColumns are the columns of a view: the query's, under the names given.
func viewColumns(q *planner.Query, names []string) ([]catalog.Column, error) {
	if len(names) > len(q.Columns) {
		return nil, pgerror.New(pgerror.SyntaxError, "CREATE VIEW specifies more column names than columns")
	}
	out := make([]catalog.Column, len(q.Columns))
	for i, c := range q.Columns {
		out[i] = catalog.Column{Name: c.Name, Type: c.Declared(), NotNull: c.NotNull}
		if i < len(names) {
			out[i].Name = names[i]
		}
		if c.Type.OID == types.OIDUnknown {
			out[i].Type = types.Text
		}
	}
	for i := range out {
		for j := range i {
			if out[i].Name == out[j].Name {
				return nil, pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", out[i].Name)
			}
		}
	}
	return out, nil
}

// boundView is the query of a view, bound and with its names qualified.
func (s *Session) boundView(p *prepared, query *parser.Query) (*planner.Query, string, error) {
	ctx := s.bindContext(nil)
	session := ctx.Session
	ctx.Session = nil // a view does not depend on who reads it, or when
	ctx.Stars = map[*pg.ResTarget][]string{}
	q, err := planner.BindQuery(ctx, p.stmt.Text, query)
	if err != nil {
		return nil, "", err
	}
	if len(q.Params) > 0 {
		return nil, "", pgerror.New(pgerror.UndefinedParameter, "there is no parameter $1")
	}
	sql, err := planner.Qualify(ctx, p.stmt.Text, query)
	if err != nil {
		return nil, "", err
	}
	ctx.Stars = nil
	return planner.FixLiterals(ctx, session, sql, q)
}

func (s *Session) createView(d *ddlState, p *prepared, n *parser.CreateView, w pgwire.ResultWriter) error {
	q, sql, bindErr := s.boundView(p, &n.Query)
	temp := n.Temp || bindErr == nil && s.usesTemporary(d, q)
	schema, exists, err := s.targetIn(d, catalog.KindView, n.Name, temp)
	if err != nil {
		return err
	}
	if exists == nil || !n.OrReplace {
		if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
			return err
		}
	}
	if bindErr != nil {
		return bindErr
	}
	if temp && !n.Temp && n.Name.Schema == "" {
		w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: fmt.Sprintf("view \"%s\" will be a temporary view", n.Name.Name)})
	}
	cols, err := viewColumns(q, n.Columns)
	if err != nil {
		return err
	}
	o := &catalog.Object{Schema: schema, Name: n.Name.Name, Kind: catalog.KindView, Columns: cols, Query: sql, Deps: q.Deps, Temporary: schema == s.tempSchema}
	opts := n.With
	if n.CheckOption != "" {
		opts = append(opts[:len(opts):len(opts)], parser.Option{Name: "check_option", Value: parser.Value{Text: n.CheckOption}})
	}
	if err := s.viewOptions(d, o, opts); err != nil {
		return err
	}
	o.SQL = fmt.Sprintf("CREATE VIEW %s.%s%s%s AS %s", quoteName(schema), quoteName(o.Name), columnList(n.Columns), viewOptionsSQL(o), sql) + checkOptionSQL(o)
	return s.putView(d, o, exists)
}

func columnList(names []string) string {
	if len(names) == 0 {
		return ""
	}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = quoteName(n)
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// putView adds a view, or replaces one of the same kind in its place: what uses
// it is planned anew.
func (s *Session) putView(d *ddlState, o *catalog.Object, exists *catalog.Object) error {
	if exists == nil {
		n, err := s.c.newObject(o)
		if err == nil {
			d.apply(catalog.Change{Put: n})
		}
		return err
	}
	if exists.Kind != o.Kind {
		return pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a %s", exists.Name, o.Kind)
	}
	if err := replaceable(exists, o); err != nil && (o.Kind == catalog.KindView || len(d.cat.Users(exists.ID)) > 0) {
		return err
	}
	o.ID, o.OID, o.Comment = exists.ID, exists.OID, exists.Comment
	for i := range o.Columns {
		if at := exists.Column(o.Columns[i].Name); at >= 0 {
			o.Columns[i].Comment, o.Columns[i].Default = exists.Columns[at].Comment, exists.Columns[at].Default
		}
	}
	d.apply(catalog.Change{Put: o})
	for _, u := range d.cat.Closure(o.ID) {
		if u.Kind == catalog.KindMaterializedView || u.Kind == catalog.KindIndex || u.Sink != nil {
			d.rebuilt[u.ID] = true
		}
	}
	for _, dep := range o.Deps {
		if dep == o.ID {
			return pgerror.New(pgerror.InvalidObjectDefinition, "infinite recursion detected in view \"%s\"", o.Name)
		}
	}
	return nil
}

// replaceable checks that a view keeps its columns, to which others may refer.
func replaceable(old, n *catalog.Object) error {
	if len(n.Columns) < len(old.Columns) {
		return pgerror.New(pgerror.InvalidTableDefinition, "cannot drop columns from view")
	}
	for i, c := range old.Columns {
		if c.Name != n.Columns[i].Name {
			return pgerror.New(pgerror.InvalidTableDefinition, "cannot change name of view column \"%s\" to \"%s\"", c.Name, n.Columns[i].Name).
				WithHint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.")
		}
		if c.Type != n.Columns[i].Type {
			return pgerror.New(pgerror.InvalidTableDefinition, "cannot change data type of view column \"%s\" from %s to %s", c.Name, typeName(c.Type), typeName(n.Columns[i].Type))
		}
	}
	return nil
}

func (s *Session) createMaterializedView(d *ddlState, p *prepared, n *parser.CreateMaterializedView, w pgwire.ResultWriter) error {
	schema, exists, err := s.target(d, catalog.KindMaterializedView, n.Name)
	if err != nil {
		return err
	}
	if exists == nil || !n.OrReplace {
		if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
			return err
		}
	}
	if n.EmitOnWindowClose {
		return pgerror.Unsupported("EMIT ON WINDOW CLOSE")
	}
	q, sql, err := s.boundView(p, &n.Query)
	if err != nil {
		return err
	}
	cols, err := viewColumns(q, n.Columns)
	if err != nil {
		return err
	}
	if s.usesTemporary(d, q) {
		return pgerror.New(pgerror.FeatureNotSupported, "materialized views must not use temporary tables or views")
	}
	cl, err := s.clusterName(d, n.Cluster)
	if err != nil {
		return err
	}
	o := &catalog.Object{Schema: schema, Name: n.Name.Name, Kind: catalog.KindMaterializedView, Columns: cols, Query: sql, Deps: q.Deps, Cluster: cl, Config: s.newJobConfig()}
	for i := range cols {
		if err := notSystemColumn(cols[i].Name); err != nil {
			return err
		}
	}
	if err := s.planView(o, q); err != nil {
		return err
	}
	in := ""
	if cl != defaultCluster {
		in = " IN CLUSTER " + quoteName(cl)
	}
	o.SQL = fmt.Sprintf("CREATE MATERIALIZED VIEW %s.%s%s%s AS %s", quoteName(schema), quoteName(o.Name), columnList(n.Columns), in, sql)
	return s.putView(d, o, exists)
}

// placement is the cluster that a name stands for; quickstart is what Materialize
// calls the default one.
func placement(cat *catalog.Snapshot, name string) string {
	if name == "" || name == "quickstart" && cat.Get(catalog.KindCluster, "", name) == nil {
		return defaultCluster
	}
	return name
}

// clusterName is the cluster that a view is placed on.
func (s *Session) clusterName(d *ddlState, name string) (string, error) {
	if name == "" {
		name, _ = s.set.get("cluster")
	}
	if name = placement(d.cat, name); name == defaultCluster {
		return name, nil
	}
	if d.cat.Get(catalog.KindCluster, "", name) == nil {
		return "", pgerror.New(pgerror.UndefinedObject, "unknown cluster \"%s\"", name)
	}
	return name, nil
}

// planView checks that a view can be maintained, and finds the key of its result.
func (s *Session) planView(o *catalog.Object, q *planner.Query) error {
	o.Rows = map[plan.ObjectID]float64{}
	rel, err := planner.Optimize(q.Collection(), planner.Options{Maintained: true, Rows: func(id plan.ObjectID) float64 {
		n := s.c.estimateRows(id)
		o.Rows[id] = n
		return n
	}})
	if err != nil {
		return err
	}
	var volatile error
	plan.Walk(rel, func(r plan.Rel) bool {
		plan.Exprs(r, func(e expr.Expr) {
			if name := timeFunction(e); name != "" && volatile == nil {
				volatile = pgerror.New(pgerror.FeatureNotSupported, "%s is not supported in a maintained view", name).
					WithHint("A view that is kept up to date changes with its inputs, not with the time of its creation.")
			}
			if name := queryFunction(e); name != "" && volatile == nil {
				volatile = pgerror.New(pgerror.InvalidObjectDefinition, "%s() is not allowed in a maintained view", name).
					WithHint("A view that is kept up to date cannot follow what the query in its argument reads.")
			}
			if v := expr.VolatilityOf(e); v == expr.Volatile && volatile == nil {
				volatile = pgerror.New(pgerror.InvalidObjectDefinition, "volatile functions are not allowed in a maintained view").
					WithHint("The result of a function like random() has no meaning in a view that is kept up to date.")
			}
		})
		return true
	})
	if volatile != nil {
		return volatile
	}
	if _, err := render.Render(rel, render.Options{Partitions: 1, Context: &expr.Context{Location: zoneUTC, Database: databaseName}}); err != nil {
		return err
	}
	o.AppendOnly, o.Grows = false, plan.AppendOnly(rel)
	o.Key = smallestKey(rel)
	return nil
}

// queryFunction names the first function in e that runs a query, "" if there is
// none.
func queryFunction(e expr.Expr) (name string) {
	expr.Walk(e, func(x expr.Expr) bool {
		if c, ok := x.(*expr.Call); ok && c.Fn.Queries && name == "" {
			name = c.Fn.Name
		}
		return name == ""
	})
	return name
}

// timeFunction names the first function in e that tells the time, "" if there
// is none.
func timeFunction(e expr.Expr) (name string) {
	expr.Walk(e, func(x expr.Expr) bool {
		if c, ok := x.(*expr.Call); ok {
			switch c.Fn.Name {
			case "now", "transaction_timestamp", "statement_timestamp", "clock_timestamp", "current_timestamp", "proctime", "current_date",
				"current_time", "localtimestamp", "localtime", "timeofday", "mz_now", "mz_uptime":
				name = c.Fn.Name + "()"
			}
		}
		return name == ""
	})
	return name
}

func (s *Session) createIndex(d *ddlState, p *prepared, n *parser.CreateIndex, w pgwire.ResultWriter) error {
	t := d.cat.Resolve(catalog.KindTable, n.On.Schema, n.On.Name, s.relationPath())
	if t == nil {
		return undefinedRelation(n.On.Schema, n.On.Name)
	}
	if t.Kind == catalog.KindIndex || t.Kind == catalog.KindVirtual {
		return pgerror.New(pgerror.WrongObjectType, "cannot create index on relation \"%s\"", t.Name)
	}
	x := &catalog.Object{}
	if err := s.indexKey(x, t, p.stmt.Text, n); err != nil {
		return err
	}
	key := x.Key
	if len(key) == 0 { // DEFAULT INDEX
		if key = collectionKey(t); len(key) == 0 {
			for i := range t.Columns {
				key = append(key, i)
			}
		}
	}
	x.Key = key
	name := n.Name.Name
	if name == "" {
		name = indexName(d.cat, t, x)
	}
	exists := d.cat.Get(catalog.KindIndex, t.Schema, name)
	if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
		return err
	}
	cl, err := s.clusterName(d, n.Cluster)
	if err != nil {
		return err
	}
	if n.Unique && t.Kind == catalog.KindTable {
		return s.createUniqueIndex(d, t, x, name, n)
	}
	if n.Unique {
		if err := s.provenKey(d, t, x); err != nil {
			return err
		}
	}
	o := &catalog.Object{Schema: t.Schema, Name: name, Kind: catalog.KindIndex, Columns: t.Columns, Table: t.ID, Key: key, Exprs: x.Exprs, Orders: x.Orders, Where: x.Where, Deps: append([]plan.ObjectID{t.ID}, x.Deps...),
		Cluster: cl, Temporary: t.Temporary, Proven: n.Unique}
	if t.Kind == catalog.KindView {
		q, err := planner.BindQuery(s.bindContext(nil), t.Query, mustQuery(t.Query))
		if err != nil {
			return err
		}
		if err := s.planView(&catalog.Object{}, q); err != nil {
			return err
		}
	}
	o.SQL = indexSQL(t, o)
	if o, err = s.c.newObject(o); err != nil {
		return err
	}
	if err := s.verifyIndex(t, o); err != nil {
		return err
	}
	d.apply(catalog.Change{Put: o})
	return nil
}

// provenKey checks that the query of a view makes the columns of a unique index unique:
// a view that is kept up to date cannot refuse a change.
func (s *Session) provenKey(d *ddlState, t, x *catalog.Object) error {
	if (t.Kind == catalog.KindView || t.Kind == catalog.KindMaterializedView) && x.Plain() {
		rel, err := s.c.viewPlan(d.cat, t)
		if err != nil {
			return err
		}
		for _, k := range plan.Keys(rel) {
			if !slices.ContainsFunc(k, func(c int) bool { return !slices.Contains(x.Key, c) }) {
				return nil
			}
		}
	}
	return pgerror.Unsupported("unique index on a " + t.Kind.String() + " whose query does not make its columns unique").
		WithHint("Those of its GROUP BY, DISTINCT or the keys of its tables are unique. An index need not be.")
}

// createUniqueIndex runs CREATE UNIQUE INDEX: a key of the table.
func (s *Session) createUniqueIndex(d *ddlState, t, x *catalog.Object, name string, n *parser.CreateIndex) error {
	c := t.Clone()
	nt := &newTable{s: s, d: d, o: c}
	x, err := nt.indexOf(x, name, &catalog.IndexInfo{Unique: true})
	if err != nil {
		return err
	}
	c.Unique = append(c.Unique, catalog.Key{Name: name, Columns: x.Key, Index: true, Derived: !x.Plain(), Object: x.ID, NullsNotDistinct: n.NullsNotDistinct})
	x.SQL = indexSQL(c, x)
	if err := s.verifyIndex(t, x); err != nil {
		return err
	}
	nt.put()
	return s.verifyKey(c, &c.Unique[len(c.Unique)-1])
}

// mustQuery parses the stored query of a view.
func mustQuery(sql string) *parser.Query {
	q, err := parser.ParseQuery(sql)
	if err != nil {
		panic(fmt.Sprintf("stored query does not parse: %v", err))
	}
	return &q
}

// indexName makes a name as PostgreSQL does: table_columns_idx, with a number
// if that is taken.
func indexName(cat *catalog.Snapshot, t, x *catalog.Object) string {
	base := t.Name
	for _, k := range x.Key {
		if i, ok := catalog.ExprOf(k); ok {
			base += "_" + x.Exprs[i].Name
		} else {
			base += "_" + t.Columns[k].Name
		}
	}
	base = base[:min(len(base), 55)]
	name := base + "_idx"
	for i := 1; cat.Get(catalog.KindIndex, t.Schema, name) != nil; i++ {
		name = fmt.Sprintf("%s_idx%d", base, i)
	}
	return name
}
