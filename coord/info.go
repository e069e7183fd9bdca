package coord

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

func textColumns(names ...string) []pgwire.Column {
	out := make([]pgwire.Column, len(names))
	for i, n := range names {
		out[i] = pgwire.Column{Name: n, Type: types.Text}
	}
	return out
}

// utilityColumns are the result columns of statements that are not queries.
func (s *Session) utilityColumns(p *prepared) ([]pgwire.Column, error) {
	switch n := p.stmt.Node.(type) {
	case *parser.ShowVariable:
		if n.Name == "all" {
			return textColumns("name", "setting", "description"), nil
		}
		return textColumns(settingDisplay(variableName(n.Name))), nil
	case *parser.ShowCreate:
		return textColumns("name", "create_sql"), nil
	case *parser.Show:
		cols, _, err := s.show(n)
		return cols, err
	case *parser.Explain:
		cols := textColumns("QUERY PLAN")
		switch n.Format {
		case "json":
			cols[0].Type = types.JSON
		case "xml":
			cols[0].Type = types.XML
		}
		return cols, nil
	case *parser.Subscribe:
		return s.subscribeColumns(p, n)
	case *parser.Fetch:
		if c := s.portals[n.Cursor]; c != nil && !n.Move {
			return c.columns(), nil
		}
	case *parser.Postgres:
		if c := n.Stmt.GetCallStmt(); c != nil {
			o, _, err := s.boundCall(p, c)
			if err != nil {
				return nil, err
			}
			return callColumns(o.Function), nil
		}
		if e := n.Stmt.GetExecuteStmt(); e != nil {
			if q := s.stmts[e.Name]; q != nil {
				return q.columns, nil
			}
		}
	}
	return nil, nil
}

// variableName maps the several spellings of a setting in SHOW.
func variableName(n string) string {
	switch strings.ToLower(n) {
	case "time zone":
		return "timezone"
	case "transaction isolation level":
		return "transaction_isolation"
	case "session authorization":
		return "session_authorization"
	case "names":
		return "client_encoding"
	}
	return strings.ToLower(n)
}

// execInfo answers SHOW and EXPLAIN.
func (s *Session) execInfo(ctx context.Context, p *prepared, w pgwire.ResultWriter) (string, error) {
	var rows [][]string
	cols := p.columns
	var err error
	switch n := p.stmt.Node.(type) {
	case *parser.ShowVariable:
		rows, err = s.showVariable(n)
	case *parser.ShowCreate:
		rows, err = s.showCreate(n)
	case *parser.Show:
		cols, rows, err = s.show(n)
	case *parser.Explain:
		var text string
		text, err = s.explain(ctx, p, n)
		text = strings.TrimRight(text, "\n")
		lines := []string{text}
		if n.Format == "" || strings.HasSuffix(n.Format, "text") { // a document is one value
			lines = strings.Split(text, "\n")
		}
		for _, l := range lines {
			rows = append(rows, []string{l})
		}
	}
	if err != nil {
		return "", err
	}
	if err := w.Begin(cols); err != nil {
		return "", err
	}
	if err := w.Rows(textBatch(rows, len(cols)), 0, len(rows)); err != nil {
		return "", err
	}
	return p.stmt.Node.Tag(), nil
}

func (s *Session) showVariable(n *parser.ShowVariable) ([][]string, error) {
	name := variableName(n.Name)
	if name == "all" {
		var rows [][]string
		for _, x := range s.set.all() {
			rows = append(rows, x[:])
		}
		return rows, nil
	}
	if name == "mz_version" || name == "streamdb_version" {
		return [][]string{{versionText()}}, nil
	}
	v, ok := s.set.get(name)
	if !ok {
		return nil, pgerror.New(pgerror.UndefinedObject, "unrecognized configuration parameter \"%s\"", n.Name)
	}
	return [][]string{{v}}, nil
}

func (s *Session) showCreate(n *parser.ShowCreate) ([][]string, error) {
	d := &ddlState{cat: s.snapshot()}
	if n.Kind == parser.ObjectFunction {
		return s.showCreateFunction(d.cat, n.Name)
	}
	o, err := s.find(d, n.Kind, n.Name)
	if err != nil {
		e := *pgerror.As(err)
		e.Hint = "" // it tells how to drop
		return nil, &e
	}
	return [][]string{{o.Schema + "." + o.Name, o.SQL}}, nil
}

// show lists objects.
func (s *Session) show(n *parser.Show) ([]pgwire.Column, [][]string, error) {
	cat := s.snapshot()
	var cols []pgwire.Column
	var rows [][]string
	var err error
	kinds := map[string][]catalog.Kind{
		"tables": {catalog.KindTable}, "sources": {catalog.KindSource}, "views": {catalog.KindView},
		"materialized views": {catalog.KindMaterializedView}, "connections": {catalog.KindConnection},
		"secrets": {catalog.KindSecret}, "subscriptions": {catalog.KindSubscription}, "sinks": {catalog.KindSink},
		"objects": {catalog.KindTable, catalog.KindSource, catalog.KindView, catalog.KindMaterializedView, catalog.KindIndex, catalog.KindConnection, catalog.KindSecret, catalog.KindSink},
	}
	switch k := n.Kind; k {
	case "schemas":
		cols = textColumns("name", "comment")
		for _, sc := range cat.Schemas() {
			rows = append(rows, []string{sc.Name, ""})
		}
	case "databases":
		cols = textColumns("name", "comment")
		rows = [][]string{{s.database, ""}}
	case "clusters":
		cols = textColumns("name", "comment")
		rows = [][]string{{defaultCluster, ""}}
		for _, o := range cat.Objects() {
			if o.Kind == catalog.KindCluster {
				rows = append(rows, []string{o.Name, o.Comment})
			}
		}
	case "columns":
		cols, rows, err = s.showColumns(cat, n)
	case "relation":
		cols, rows, err = s.describeRelation(cat, n)
	case "indexes":
		cols, rows, err = s.showIndexes(cat, n)
	case "functions":
		cols, rows, err = s.showFunctions(cat, n)
	case "types":
		cols, rows, err = s.showTypes(cat, n)
	case "processlist":
		cols, rows = s.showSessions()
	case "cursors":
		cols, rows = s.showCursors()
	case "parameters":
		cols = textColumns("name", "value", "description", "mutable")
	case "cluster replicas":
		cols = textColumns("cluster", "replica", "size", "ready", "comment")
	case "network policies":
		cols = textColumns("name", "rules", "comment")
	case "privileges", "system privileges", "default privileges":
		cols = textColumns("grantor", "grantee", "database", "schema", "name", "object_type", "privilege_type")
	case "role membership":
		cols = textColumns("role", "member", "grantor")
	case "roles", "users":
		cols = textColumns("name", "comment")
		rows = [][]string{{s.user, ""}}
	case "jobs", "progress":
		cols = textColumns("name", "schema", "rows", "total")
		rows = s.c.hydrationRows(cat)
	case "subsources", "internal tables":
		cols = textColumns("name", "comment")
	default:
		ks, ok := kinds[k]
		if !ok {
			return nil, nil, pgerror.Unsupported("SHOW " + strings.ToUpper(k))
		}
		cols, rows, err = s.showObjects(cat, n, ks)
	}
	if err != nil {
		return nil, nil, err
	}
	rows = filterShow(rows, n)
	if n.Where != nil {
		rows, err = s.whereShown(cols, rows, n.Where)
	}
	return cols, rows, err
}

// filterShow keeps the rows whose name is LIKE the pattern.
func filterShow(rows [][]string, n *parser.Show) [][]string {
	if n.Like == nil {
		return rows
	}
	return slices.DeleteFunc(rows, func(r []string) bool { return !likeMatch(r[0], *n.Like) })
}

// likeMatch is SQL's LIKE without an escape.
func likeMatch(s, pattern string) bool {
	if pattern == "" {
		return s == ""
	}
	switch pattern[0] {
	case '%':
		for i := range len(s) + 1 {
			if likeMatch(s[i:], pattern[1:]) {
				return true
			}
		}
		return false
	case '_':
		return s != "" && likeMatch(s[1:], pattern[1:])
	}
	return s != "" && s[0] == pattern[0] && likeMatch(s[1:], pattern[1:])
}

// showSchemas are the schemas that a SHOW is about.
func (s *Session) showSchemas(cat *catalog.Snapshot, n *parser.Show) ([]string, error) {
	if n.In == nil {
		return s.searchPath(), nil
	}
	if cat.Schema(n.In.Name) == nil {
		return nil, pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", n.In.Name)
	}
	return []string{n.In.Name}, nil
}

func (s *Session) showObjects(cat *catalog.Snapshot, n *parser.Show, kinds []catalog.Kind) ([]pgwire.Column, [][]string, error) {
	schemas, err := s.showSchemas(cat, n)
	if err != nil {
		return nil, nil, err
	}
	cols := textColumns("name", "comment")
	switch n.Kind {
	case "objects":
		cols = textColumns("name", "type", "comment")
	case "sources":
		cols = textColumns("name", "type", "state", "comment")
	case "connections":
		cols = textColumns("name", "type", "comment")
	case "materialized views":
		cols = textColumns("name", "cluster", "comment")
	}
	var rows [][]string
	for _, o := range cat.Objects() {
		if !slices.Contains(kinds, o.Kind) || !slices.Contains(schemas, o.Schema) || n.Cluster != "" && o.Cluster != n.Cluster {
			continue
		}
		row := []string{o.Name}
		switch n.Kind {
		case "objects":
			row = append(row, o.Kind.String())
		case "sources":
			typ, state := o.Options["connector"], ""
			if o.Parent != 0 {
				typ = "subsource"
				if o.Options["role"] == "errors" {
					typ = "errors"
				}
			} else if st := s.c.sourceStatus(o.ID); st != nil {
				state = st.State
			}
			row = append(row, typ, state)
		case "connections":
			row = append(row, o.Options["connector"])
		case "materialized views":
			row = append(row, o.Cluster)
		}
		rows = append(rows, append(row, o.Comment))
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return cols, rows, nil
}

func (s *Session) showRelation(cat *catalog.Snapshot, n *parser.Name) (*catalog.Object, error) {
	o := cat.Resolve(catalog.KindTable, n.Schema, n.Name, s.relationPath())
	if o == nil {
		return nil, undefinedRelation(n.Schema, n.Name)
	}
	return o, nil
}

func (s *Session) showColumns(cat *catalog.Snapshot, n *parser.Show) ([]pgwire.Column, [][]string, error) {
	cols := textColumns("name", "nullable", "type", "comment")
	if n.In == nil {
		return nil, nil, pgerror.New(pgerror.SyntaxError, "SHOW COLUMNS needs FROM a relation")
	}
	o, err := s.showRelation(cat, n.In)
	if err != nil {
		return nil, nil, err
	}
	var rows [][]string
	for _, c := range o.Columns {
		rows = append(rows, []string{c.Name, fmt.Sprint(!c.NotNull), typeName(c.Type), c.Comment})
	}
	return cols, rows, nil
}

func (s *Session) showIndexes(cat *catalog.Snapshot, n *parser.Show) ([]pgwire.Column, [][]string, error) {
	cols := textColumns("name", "on", "cluster", "key", "comment")
	var rows [][]string
	var on *catalog.Object
	if n.In != nil {
		var err error
		if on, err = s.showRelation(cat, n.In); err != nil && (n.In.Schema != "" || cat.Schema(n.In.Name) == nil) {
			return nil, nil, err
		}
	}
	for _, o := range cat.Objects() {
		if o.Kind != catalog.KindIndex || on != nil && o.Table != on.ID || on == nil && n.In != nil && o.Schema != n.In.Name || n.Cluster != "" && o.Cluster != placement(cat, n.Cluster) || o.Index != nil && o.Index.Internal {
			continue
		}
		t := cat.ByID(o.Table)
		key := make([]string, len(o.Key))
		for i, k := range o.Key {
			key[i] = o.KeyText(k, o.Columns, func(name string) string { return name })
		}
		rows = append(rows, []string{o.Name, t.Name, o.Cluster, "{" + strings.Join(key, ",") + "}", o.Comment})
	}
	return cols, rows, nil
}

// hydrationRows lists the views that are being hydrated.
func (c *Coordinator) hydrationRows(cat *catalog.Snapshot) [][]string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var rows [][]string
	for _, id := range sortedIDs(c.hydrations) {
		h := c.hydrations[id]
		if o := cat.ByID(id); o != nil {
			rows = append(rows, []string{o.Name, o.Schema, fmt.Sprint(h.rows.Load()), fmt.Sprint(h.total.Load())})
		}
	}
	return rows
}

func (c *Coordinator) sourceStatus(id plan.ObjectID) *sources.Status {
	c.mu.RLock()
	s := c.sources[id]
	c.mu.RUnlock()
	if s == nil {
		return nil
	}
	st := s.currentStatus()
	return &st
}
