package planner

import (
	"regexp"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// Qualify gives the text of a query in which every relation is named with its
// schema, so that it means the same under any search path: what the catalog
// keeps of a view. The query must have been bound before in ctx; each * that
// ctx.Stars knows is written out, as a view's columns are those of its creation.
// text is what the query is part of; all else in it stays as it was written.
func Qualify(ctx *Context, text string, q *parser.Query) (string, error) {
	z := &qualifier{ctx: ctx, text: text, base: q.Base}
	z.message(q.Stmt.ProtoReflect(), nil)
	return applyEdits(q.SQL, q.Base, z.edits)
}

// QualifyExpr is Qualify for an expression of a table's definition, without relations.
func QualifyExpr(ctx *Context, text string) (string, error) {
	e, err := parser.ParseExpr(text)
	if err != nil {
		return "", err
	}
	z := &qualifier{ctx: ctx, text: text, base: e.Base}
	z.message(e.Node.ProtoReflect(), nil)
	return applyEdits(text, 0, z.edits)
}

// edit replaces text[at:end] by new.
type edit struct {
	at, end int
	new     string
}

// applyEdits edits sql, which begins at base of the text that the edits count in.
func applyEdits(sql string, base int, edits []edit) (string, error) {
	slices.SortFunc(edits, func(a, b edit) int { return a.at - b.at })
	var out strings.Builder
	at := 0
	for _, e := range edits {
		if e.at-base < at || e.end-base > len(sql) {
			return "", pgerror.New(pgerror.InternalError, "the names of the query cannot be qualified")
		}
		out.WriteString(sql[at : e.at-base])
		out.WriteString(e.new)
		at = e.end - base
	}
	out.WriteString(sql[at:])
	return out.String(), nil
}

// nameEnd is the end of the identifier that begins at text[at].
func nameEnd(text string, at int) int {
	if at < len(text) && text[at] == '"' {
		for i := at + 1; i < len(text); i++ {
			if text[i] == '"' {
				if i+1 < len(text) && text[i+1] == '"' {
					i++
					continue
				}
				return i + 1
			}
		}
		return len(text)
	}
	i := at
	for i < len(text) && (text[i] >= 0x80 || text[i] == '_' || text[i] == '$' || text[i] >= '0' && text[i] <= '9' ||
		text[i] >= 'a' && text[i] <= 'z' || text[i] >= 'A' && text[i] <= 'Z') {
		i++
	}
	return i
}

// starTargets writes what a * stands for as a select list; nil if a column
// could not be named unambiguously.
func starTargets(items []selectItem) []string {
	var out []string
	seen := map[[2]string]bool{}
	for _, it := range items {
		k := [2]string{it.entry, it.name}
		if seen[k] || it.name == "" {
			return nil
		}
		seen[k] = true
		name := parser.QuoteIdent(it.name)
		if it.entry != "" {
			name = parser.QuoteIdent(it.entry) + "." + name
		}
		out = append(out, name)
	}
	return out
}

// expandStars writes out the stars of a select list.
func (z *qualifier) expandStars(list []*pg.Node) {
	for _, n := range list {
		cols := z.ctx.Stars[n.GetResTarget()]
		if cols == nil {
			continue
		}
		at := z.base + int(n.GetResTarget().GetVal().GetColumnRef().GetLocation())
		star := strings.IndexByte(z.text[at:], '*')
		if star < 0 {
			continue
		}
		z.edits = append(z.edits, edit{at, at + star + 1, strings.Join(cols, ", ")})
	}
}

// RenameRelation gives the text of a stored query with one relation's name
// replaced by another.
func RenameRelation(query, schema, name, newSchema, newName string) (string, error) {
	q, err := parser.ParseQuery(query)
	if err != nil {
		return "", err
	}
	var edits []edit
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		if rv, ok := m.Interface().(*pg.RangeVar); ok {
			if rv.Schemaname == schema && rv.Relname == name {
				at := q.Base + int(rv.Location)
				end := relationEnd(query, at)
				text := parser.QuoteIdent(newSchema) + "." + parser.QuoteIdent(newName)
				if rv.Alias == nil {
					text += " AS " + parser.QuoteIdent(name)
				}
				edits = append(edits, edit{at, end, text})
			}
			return
		}
		rangeMessages(m, visit)
	}
	visit(q.Stmt.ProtoReflect())
	return applyEdits(q.SQL, q.Base, edits)
}

// RenameType gives the text of a stored query, or of an expression, with one
// type's name replaced by another.
func RenameType(text string, query bool, schema, name, newSchema, newName string) (string, error) {
	return renameQualified(text, query, schema, name, newSchema, newName, func(m protoreflect.ProtoMessage) ([]*pg.Node, int32) {
		if t, ok := m.(*pg.TypeName); ok {
			return t.Names, t.Location
		}
		return nil, 0
	})
}

// RenameFunction is RenameType for a function.
func RenameFunction(text string, query bool, schema, name, newSchema, newName string) (string, error) {
	return renameQualified(text, query, schema, name, newSchema, newName, func(m protoreflect.ProtoMessage) ([]*pg.Node, int32) {
		if f, ok := m.(*pg.FuncCall); ok {
			return f.Funcname, f.Location
		}
		return nil, 0
	})
}

// renameQualified replaces a name with its schema where nameOf says that such a one
// stands, and at which byte.
func renameQualified(text string, query bool, schema, name, newSchema, newName string, nameOf func(m protoreflect.ProtoMessage) ([]*pg.Node, int32)) (string, error) {
	root, base, err := storedTree(text, query)
	if err != nil {
		return "", err
	}
	var edits []edit
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		if parts, location := nameOf(m.Interface()); len(parts) > 1 {
			if names := listNames(parts[len(parts)-2:]); names[0] == schema && names[1] == name {
				at := base + int(location)
				edits = append(edits, edit{at, relationEnd(text, at), parser.QuoteIdent(newSchema) + "." + parser.QuoteIdent(newName)})
			}
		}
		rangeMessages(m, visit)
	}
	visit(root)
	return applyEdits(text, 0, edits)
}

// storedTree parses a stored text: a query, another statement of a function's
// body, or an expression.
func storedTree(text string, query bool) (root protoreflect.Message, base int, err error) {
	if !query {
		e, err := parser.ParseExpr(text)
		if err != nil {
			return nil, 0, err
		}
		return e.Node.ProtoReflect(), e.Base, nil
	}
	stmts, err := parser.Parse(text)
	if err != nil {
		return nil, 0, err
	}
	switch n := stmts[0].Node.(type) {
	case *parser.Select:
		return n.Query.Stmt.ProtoReflect(), n.Query.Base, nil
	case *parser.Postgres:
		return n.Stmt.ProtoReflect(), n.Base, nil
	}
	return nil, 0, pgerror.New(pgerror.SyntaxError, "not a query")
}

// BodyStatements are the texts of the statements of a function's body.
func BodyStatements(body string) []string {
	stmts, err := parser.Parse(body)
	if err != nil {
		return nil
	}
	out := make([]string, len(stmts))
	for i := range stmts {
		out[i] = stmts[i].SQL()
	}
	return out
}

// RenameSchema is RenameType for a schema: in the names of relations, types and
// functions.
func RenameSchema(text string, query bool, schema, name string) (string, error) {
	if !strings.Contains(text, strings.ReplaceAll(schema, `"`, `""`)) {
		return text, nil
	}
	root, base, err := storedTree(text, query)
	if err != nil {
		return "", err
	}
	var edits []edit
	add := func(location int32) {
		at := base + int(location)
		edits = append(edits, edit{at, nameEnd(text, at), parser.QuoteIdent(name)})
	}
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		switch n := m.Interface().(type) {
		case *pg.RangeVar:
			if n.Schemaname == schema {
				add(n.Location)
			}
		case *pg.FuncCall:
			if len(n.Funcname) == 2 && listNames(n.Funcname)[0] == schema {
				add(n.Location)
			}
		case *pg.TypeName:
			if len(n.Names) == 2 && listNames(n.Names)[0] == schema {
				add(n.Location)
			}
		}
		rangeMessages(m, visit)
	}
	visit(root)
	return applyEdits(text, 0, edits)
}

// RenameLabel gives the text of a stored query, or of an expression over the
// columns of table, with a label of an enum replaced by another in the literals
// that are values of it.
func RenameLabel(ctx *Context, text string, table *catalog.Object, enum types.OID, old, label string) (string, error) {
	var edits []edit
	quoted := parser.QuoteString(old)
	note := func(x expr.Expr) {
		c, ok := x.(*expr.Const)
		if ok && c.Typ.OID == enum && c.Pos > 0 && c.Pos <= len(text) && strings.HasPrefix(text[c.Pos-1:], quoted) {
			e := edit{c.Pos - 1, c.Pos - 1 + len(quoted), parser.QuoteString(label)}
			if !slices.Contains(edits, e) {
				edits = append(edits, e)
			}
		}
	}
	if table != nil {
		e, err := parser.ParseExpr(text)
		if err != nil {
			return "", err
		}
		bound, err := BindExpr(ctx, text, &e, table, "expressions", types.Unknown)
		if err != nil {
			return "", err
		}
		expr.Walk(bound, func(x expr.Expr) bool { note(x); return true })
		return applyEdits(text, 0, edits)
	}
	q, err := parser.ParseQuery(text)
	if err != nil {
		return "", err
	}
	b, err := BindQuery(ctx, text, &q)
	if err != nil {
		return "", err
	}
	eachExpr(b.Rel, note)
	return applyEdits(text, 0, edits)
}

// attributeUses are where a query takes an attribute of a composite type.
type attributeUses struct {
	typ  types.OID
	name string
	at   map[*pg.Node]bool
}

func (a *attributeUses) note(typ types.OID, n *pg.Node) {
	if a != nil && typ == a.typ && n.GetString_().GetSval() == a.name {
		a.at[n] = true
	}
}

// RenameAttribute renames an attribute of a composite type in a query. It fails if
// it cannot tell the attribute from others of its name.
func RenameAttribute(ctx *Context, text string, typ types.OID, old, name string) (string, error) {
	q, err := parser.ParseQuery(text)
	if err != nil {
		return "", err
	}
	c := *ctx
	c.attribute = &attributeUses{typ: typ, name: old, at: map[*pg.Node]bool{}}
	if _, err := BindQuery(&c, text, &q); err != nil {
		return "", err
	}
	var edits []edit
	places := regexp.MustCompile(`[)\]]\s*\.\s*("?` + regexp.QuoteMeta(old) + `\b"?)`)
	for _, m := range places.FindAllStringSubmatchIndex(text, -1) {
		edits = append(edits, edit{m[2], m[3], parser.QuoteIdent(name)})
	}
	if len(edits) != len(c.attribute.at) {
		return "", pgerror.Unsupported("renaming attribute " + old + ", which is not the only thing of that name there")
	}
	return applyEdits(text, 0, edits)
}

// eachExpr visits the expressions of a bound plan, also those of its subqueries.
func eachExpr(rel plan.Rel, f func(expr.Expr)) {
	plan.Walk(rel, func(r plan.Rel) bool {
		plan.Exprs(r, func(e expr.Expr) {
			expr.Walk(e, func(x expr.Expr) bool {
				f(x)
				if s, ok := x.(*expr.Subquery); ok {
					eachExpr(s.Rel.(plan.Rel), f)
				}
				return true
			})
		})
		return true
	})
}

// relationEnd is the end of the qualified name that begins at query[at].
func relationEnd(query string, at int) int {
	const blanks = " \t\n\r"
	end := nameEnd(query, at)
	for {
		rest := strings.TrimLeft(query[end:], blanks)
		if !strings.HasPrefix(rest, ".") {
			return end
		}
		rest = strings.TrimLeft(rest[1:], blanks)
		end = nameEnd(query, len(query)-len(rest))
	}
}

// rangeMessages visits the messages directly within m.
func rangeMessages(m protoreflect.Message, visit func(protoreflect.Message)) {
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

type qualifier struct {
	ctx   *Context
	text  string
	base  int
	edits []edit
}

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
	case *pg.ColumnRef:
		if len(n.Fields) == 4 && n.Fields[3].GetString_() != nil {
			z.dropDatabase(n.Location)
		}
	case *pg.FuncCall:
		if len(n.Funcname) == 3 {
			z.dropDatabase(n.Location)
		}
		z.function(n)
	case *pg.TypeName:
		if len(n.Names) == 3 {
			z.dropDatabase(n.Location)
		}
		z.typeName(n)
	case *pg.SelectStmt:
		ctes = bindWith(ctes, n.WithClause)
		z.expandStars(n.TargetList)
	case *pg.InsertStmt:
		ctes = bindWith(ctes, n.WithClause)
	case *pg.UpdateStmt:
		ctes = bindWith(ctes, n.WithClause)
	case *pg.DeleteStmt:
		ctes = bindWith(ctes, n.WithClause)
	}
	rangeMessages(m, func(x protoreflect.Message) { z.message(x, ctes) })
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

// dropDatabase takes the name of the database away from a qualified name: other
// clients may call it differently.
func (z *qualifier) dropDatabase(location int32) {
	if location < 0 {
		return
	}
	const blanks = " \t\n\r"
	at := z.base + int(location)
	rest := strings.TrimLeft(z.text[nameEnd(z.text, at):], blanks)
	if after, ok := strings.CutPrefix(rest, "."); ok {
		z.edits = append(z.edits, edit{at, len(z.text) - len(strings.TrimLeft(after, blanks)), ""})
	}
}

func (z *qualifier) relation(n *pg.RangeVar, ctes []string) {
	if n.Catalogname != "" {
		z.dropDatabase(n.Location)
	}
	if n.Schemaname != "" || slices.Contains(ctes, n.Relname) {
		return
	}
	path := z.ctx.SearchPath
	if !slices.Contains(path, catalog.SchemaPgCatalog) {
		path = append([]string{catalog.SchemaPgCatalog}, path...)
	}
	for _, s := range append(path[:len(path):len(path)], catalog.LastSchemas...) {
		if o := z.ctx.Catalog.Get(catalog.KindTable, s, n.Relname); o != nil && (o.Relation() || o.PlainIndex()) {
			at := z.base + int(n.Location)
			z.edits = append(z.edits, edit{at, at, parser.QuoteIdent(s) + "."})
			return
		}
	}
}

// function qualifies the name of a function of the catalog.
func (z *qualifier) function(n *pg.FuncCall) {
	if len(n.Funcname) != 1 {
		return
	}
	b := binder{ctx: z.ctx}
	if fs := b.userFunctions(listNames(n.Funcname)); fs != nil {
		at := z.base + int(n.Location)
		z.edits = append(z.edits, edit{at, at, parser.QuoteIdent(fs[0].Schema) + "."})
	}
}

// typeName qualifies the name of a user-defined type.
func (z *qualifier) typeName(n *pg.TypeName) {
	if len(n.Names) != 1 || n.PctType || n.Location < 0 {
		return
	}
	name := listNames(n.Names)
	if _, ok := types.ByName(name[0]); ok {
		return
	}
	b := binder{ctx: z.ctx}
	for _, s := range b.searchPath() {
		o := z.ctx.Catalog.Get(catalog.KindType, s, name[0])
		if o == nil {
			if o = z.ctx.Catalog.Get(catalog.KindTable, s, name[0]); o != nil && o.RowType() == 0 {
				o = nil
			}
		}
		if o != nil {
			at := z.base + int(n.Location)
			z.edits = append(z.edits, edit{at, at, parser.QuoteIdent(s) + "."})
			return
		}
	}
}

// windowed qualifies the relation of TUMBLE and HOP, which stands as a column.
func (z *qualifier) windowed(ref *pg.ColumnRef, ctes []string) {
	if ref == nil || len(ref.Fields) != 1 {
		return
	}
	z.relation(&pg.RangeVar{Relname: ref.Fields[0].GetString_().GetSval(), Location: ref.Location}, ctes)
}
