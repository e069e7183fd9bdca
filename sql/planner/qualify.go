package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/parser"
)

// Qualify gives the text of a query in which every relation is named with its
// schema, so that it means the same under any search path: what the catalog
// keeps of a view. The query must have been bound before in ctx; each * that
// ctx.Stars knows is written out, as a view's columns are those of its creation.
// It changes the query's tree.
func Qualify(ctx *Context, q *parser.Query) (string, error) {
	z := &qualifier{ctx: ctx}
	z.message(q.Stmt.ProtoReflect(), nil)
	return parser.Deparse(q.Stmt)
}

// starTargets writes what a * stands for as a select list; nil if a column
// could not be named unambiguously.
func starTargets(items []selectItem) []*pg.Node {
	var out []*pg.Node
	seen := map[[2]string]bool{}
	for _, it := range items {
		k := [2]string{it.entry, it.name}
		if seen[k] || it.name == "" {
			return nil
		}
		seen[k] = true
		var fields []*pg.Node
		if it.entry != "" {
			fields = append(fields, pg.MakeStrNode(it.entry))
		}
		fields = append(fields, pg.MakeStrNode(it.name))
		out = append(out, pg.MakeResTargetNodeWithVal(pg.MakeColumnRefNode(fields, -1), -1))
	}
	return out
}

// expandStars replaces the stars of a select list.
func (z *qualifier) expandStars(list []*pg.Node) []*pg.Node {
	var out []*pg.Node
	for _, n := range list {
		if t := z.ctx.Stars[n.GetResTarget()]; t != nil {
			out = append(out, t...)
		} else {
			out = append(out, n)
		}
	}
	return out
}

// RenameRelation gives the text of a stored query with one relation's name
// replaced by another.
func RenameRelation(query, schema, name, newSchema, newName string) (string, error) {
	q, err := parser.ParseQuery(query)
	if err != nil {
		return "", err
	}
	stmt := proto.Clone(q.Stmt).(*pg.Node)
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		if rv, ok := m.Interface().(*pg.RangeVar); ok {
			if rv.Schemaname == schema && rv.Relname == name {
				if rv.Alias == nil {
					rv.Alias = &pg.Alias{Aliasname: name}
				}
				rv.Schemaname, rv.Relname = newSchema, newName
			}
			return
		}
		m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			switch {
			case fd.Kind() != protoreflect.MessageKind:
			case fd.IsList():
				l := v.List()
				for i := range l.Len() {
					visit(l.Get(i).Message())
				}
			default:
				visit(v.Message())
			}
			return true
		})
	}
	visit(stmt.ProtoReflect())
	return parser.Deparse(stmt)
}

type qualifier struct{ ctx *Context }

// message visits a node; ctes are the names that WITH clauses around it bind.
func (z *qualifier) message(m protoreflect.Message, ctes []string) {
	switch n := m.Interface().(type) {
	case *pg.RangeVar:
		z.relation(n, ctes)
		return
	case *pg.RangeFunction:
		if c, ok := timeWindow(n); ok {
			z.windowed(c.Args[0].GetColumnRef(), ctes)
		}
	case *pg.SelectStmt:
		ctes = bindWith(ctes, n.WithClause)
		n.TargetList = z.expandStars(n.TargetList)
	case *pg.InsertStmt:
		ctes = bindWith(ctes, n.WithClause)
	case *pg.UpdateStmt:
		ctes = bindWith(ctes, n.WithClause)
	case *pg.DeleteStmt:
		ctes = bindWith(ctes, n.WithClause)
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Kind() != protoreflect.MessageKind:
		case fd.IsList():
			l := v.List()
			for i := range l.Len() {
				z.message(l.Get(i).Message(), ctes)
			}
		default:
			z.message(v.Message(), ctes)
		}
		return true
	})
}

// bindWith adds the names of a WITH clause. A CTE that is not recursive does
// not see itself or later ones; that a table of the same name is meant there
// is rare, and such a query is kept as it was written.
func bindWith(ctes []string, w *pg.WithClause) []string {
	if w == nil {
		return ctes
	}
	ctes = slices.Clone(ctes)
	for _, c := range w.Ctes {
		ctes = append(ctes, c.GetCommonTableExpr().GetCtename())
	}
	return ctes
}

func (z *qualifier) relation(n *pg.RangeVar, ctes []string) {
	n.Catalogname = ""
	if n.Schemaname != "" || slices.Contains(ctes, n.Relname) {
		return
	}
	path := z.ctx.SearchPath
	if !slices.Contains(path, catalog.SchemaPgCatalog) {
		path = append([]string{catalog.SchemaPgCatalog}, path...)
	}
	for _, s := range path {
		if o := z.ctx.Catalog.Get(catalog.KindTable, s, n.Relname); o != nil && o.Relation() {
			n.Schemaname = s
			return
		}
	}
}

// windowed qualifies the relation of TUMBLE and HOP, which stands as a column.
func (z *qualifier) windowed(ref *pg.ColumnRef, ctes []string) {
	if ref == nil || len(ref.Fields) != 1 {
		return
	}
	n := &pg.RangeVar{Relname: ref.Fields[0].GetString_().GetSval()}
	if z.relation(n, ctes); n.Schemaname != "" {
		ref.Fields = []*pg.Node{pg.MakeStrNode(n.Schemaname), pg.MakeStrNode(n.Relname)}
	}
}
