package coord

import (
	"context"
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// presentExtensions are what PostgreSQL's scripts ask for that needs no extension here:
// what every database of PostgreSQL has, and what functions are built in.
var presentExtensions = []string{"plpgsql", "pgcrypto"}

// extension runs CREATE EXTENSION and DROP EXTENSION.
func (s *Session) extension(st *pg.Node, w pgwire.ResultWriter) (string, error) {
	notice := func(format, name string) {
		w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: fmt.Sprintf(format, name)})
	}
	if n := st.GetCreateExtensionStmt(); n != nil {
		switch {
		case !slices.Contains(presentExtensions, n.Extname):
			return "", pgerror.New(pgerror.FeatureNotSupported, "extension \"%s\" is not available", n.Extname).WithHint("%s", hintBuiltIn)
		case n.IfNotExists:
			notice("extension \"%s\" already exists, skipping", n.Extname)
			return "CREATE EXTENSION", nil
		}
		return "", pgerror.New(pgerror.DuplicateObject, "extension \"%s\" already exists", n.Extname)
	}
	for _, x := range st.GetDropStmt().Objects {
		name := x.GetString_().GetSval()
		switch {
		case slices.Contains(presentExtensions, name):
			return "", pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop extension %s because it is required by the database system", name)
		case !st.GetDropStmt().MissingOk:
			return "", pgerror.New(pgerror.UndefinedObject, "extension \"%s\" does not exist", name)
		}
		notice("extension \"%s\" does not exist, skipping", name)
	}
	return "DROP EXTENSION", nil
}

// createSchemaWith runs CREATE SCHEMA with the statements of what is to be in it: those
// that make sequences first, then tables, views and indexes.
func (s *Session) createSchemaWith(ctx context.Context, n *pg.CreateSchemaStmt, w pgwire.ResultWriter) (string, error) {
	name := n.Schemaname
	if name == "" {
		name = n.Authrole.GetRolename()
	}
	d, err := s.beginDDL(ctx)
	if err != nil {
		return "", err
	}
	phases := make([][]*pg.Node, 5)
	for _, e := range n.SchemaElts {
		at, r := schemaElement(e)
		if r != nil && r.Schemaname != "" && r.Schemaname != name {
			return "", pgerror.New(pgerror.InvalidSchemaDefinition, "CREATE specifies a schema (%s) different from the one being created (%s)", r.Schemaname, name)
		}
		phases[at] = append(phases[at], e)
	}
	if err := s.createSchema(d, &parser.CreateSchema{Name: parser.Name{Name: name}}, w); err != nil {
		return "", err
	}
	path := s.set.path
	s.set.path = append([]string{name}, path...)
	s.set.version++
	defer func() { s.set.path = path; s.set.version++ }()
	for _, e := range slices.Concat(phases...) {
		sql, err := parser.DeparseStatement(e)
		if err != nil {
			return "", err
		}
		stmts, err := parser.Parse(sql)
		if err != nil {
			return "", noPosition(err)
		}
		p := &prepared{sql: sql, stmt: &stmts[0]}
		if g := e.GetGrantStmt(); g != nil {
			continue
		}
		if _, err := s.execDDL(ctx, p, w); err != nil {
			return "", noPosition(err)
		}
	}
	return "CREATE SCHEMA", nil
}

// schemaElement is the phase in which a part of CREATE SCHEMA is made, and the relation
// that it names.
func schemaElement(e *pg.Node) (phase int, r *pg.RangeVar) {
	switch n := e.Node.(type) {
	case *pg.Node_CreateSeqStmt:
		return 0, n.CreateSeqStmt.Sequence
	case *pg.Node_CreateStmt:
		return 1, n.CreateStmt.Relation
	case *pg.Node_ViewStmt:
		return 2, n.ViewStmt.View
	case *pg.Node_IndexStmt:
		return 3, n.IndexStmt.Relation
	}
	return 4, nil
}
