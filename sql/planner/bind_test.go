package planner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/internal/datadriven"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// testCatalog is a catalog that test files build with CREATE statements.
type testCatalog struct {
	snap *catalog.Snapshot
	next plan.ObjectID

	indexes map[plan.ObjectID][]Index
}

func newTestCatalog() *testCatalog { return &testCatalog{snap: catalog.Empty(), next: 1} }

func (c *testCatalog) context() *Context {
	return &Context{Catalog: c.snap, Database: "shop", SearchPath: []string{"public"}}
}

// ddl runs CREATE TABLE, CREATE SOURCE-like tables, views and schemas.
func (c *testCatalog) ddl(text string) error {
	stmts, err := parser.Parse(text)
	if err != nil {
		return err
	}
	for i := range stmts {
		if err := c.create(&stmts[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *testCatalog) create(s *parser.Statement) error {
	switch n := s.Node.(type) {
	case *parser.CreateSchema:
		c.snap = c.snap.Apply(catalog.Change{PutSchema: &catalog.Schema{Name: n.Name.Name, OID: uint32(20000 + c.next)}})
		return nil
	case *parser.CreateTable:
		return c.createTable(s.Text, n)
	case *parser.CreateIndex:
		return c.createIndex(s.Text, n)
	case *parser.CreateView:
		return c.createView(s.Text, n.Name, n.Columns, &n.Query, catalog.KindView)
	case *parser.CreateMaterializedView:
		return c.createView(s.Text, n.Name, n.Columns, &n.Query, catalog.KindMaterializedView)
	}
	return fmt.Errorf("ddl of a test cannot %s", s.Node.Tag())
}

func (c *testCatalog) put(o *catalog.Object, n parser.Name) {
	o.ID, o.OID, o.Schema, o.Name = c.next, uint32(16384+c.next), n.Schema, n.Name
	if o.Schema == "" {
		o.Schema = "public"
	}
	c.next++
	c.snap = c.snap.Apply(catalog.Change{Put: o})
}

func (c *testCatalog) createTable(text string, n *parser.CreateTable) error {
	o := &catalog.Object{Kind: catalog.KindTable, AppendOnly: n.AppendOnly}
	at := map[string]int{}
	for i, d := range n.Columns {
		typ, err := ResolveType(c.context(), text, d.Type)
		if err != nil {
			return err
		}
		col := catalog.Column{Name: d.Name, Type: typ, NotNull: d.NotNull || d.PrimaryKey}
		if d.Default != nil {
			col.Default = d.Default.SQL
		}
		at[d.Name] = i
		o.Columns = append(o.Columns, col)
		if d.PrimaryKey {
			o.PrimaryKey = []int{i}
		}
		if d.Unique {
			o.Unique = append(o.Unique, catalog.Key{Columns: []int{i}})
		}
		for _, f := range d.References {
			c.addForeign(o, f, []int{i})
		}
	}
	for _, k := range n.Constraints {
		if k.Kind == parser.ConstraintForeignKey {
			var cols []int
			for _, name := range k.Columns {
				cols = append(cols, at[name])
			}
			c.addForeign(o, k, cols)
		}
		if k.Kind != parser.ConstraintPrimaryKey && k.Kind != parser.ConstraintUnique {
			continue
		}
		var key []int
		for _, name := range k.Columns {
			key = append(key, at[name])
			if k.Kind == parser.ConstraintPrimaryKey {
				o.Columns[at[name]].NotNull = true
			}
		}
		if k.Kind == parser.ConstraintPrimaryKey {
			o.PrimaryKey = key
		} else {
			o.Unique = append(o.Unique, catalog.Key{Columns: key})
		}
	}
	c.put(o, n.Name)
	return nil
}

// createIndex makes an index that lookups may use.
func (c *testCatalog) createIndex(text string, n *parser.CreateIndex) error {
	t := c.snap.Get(catalog.KindTable, "public", n.On.Name)
	ix := Index{ID: c.next, Unique: n.Unique}
	c.next++
	cols := GetOf(t).Cols
	for i := range n.Keys {
		e, err := BindExpr(c.context(), text, &n.Keys[i].Expr, t, "index expressions", types.Unknown)
		if err != nil {
			return err
		}
		if col, ok := e.(*expr.Column); ok {
			ix.Key = append(ix.Key, col.Index)
			continue
		}
		ix.Key = append(ix.Key, -1-len(ix.Exprs))
		ix.Exprs = append(ix.Exprs, Simplified(e, cols))
	}
	if n.Where != nil {
		e, err := BindExpr(c.context(), text, n.Where, t, "index predicates", types.Bool)
		if err != nil {
			return err
		}
		ix.Preds = []expr.Expr{Simplified(e, cols)}
	}
	if c.indexes == nil {
		c.indexes = map[plan.ObjectID][]Index{}
	}
	c.indexes[t.ID] = append(c.indexes[t.ID], ix)
	return nil
}

// addForeign adds a foreign key to the primary key of a table.
func (c *testCatalog) addForeign(o *catalog.Object, f parser.Constraint, cols []int) {
	to := c.snap.Get(catalog.KindTable, "public", f.RefTable.Name)
	o.Foreign = append(o.Foreign, catalog.ForeignKey{Columns: cols, RefTable: to.ID, RefColumns: to.PrimaryKey, Deferrable: f.Deferrable})
}

func (c *testCatalog) createView(text string, name parser.Name, cols []string, q *parser.Query, kind catalog.Kind) error {
	b, err := BindQuery(c.context(), text, q)
	if err != nil {
		return err
	}
	o := &catalog.Object{Kind: kind, Query: q.SQL, Deps: b.Deps}
	for i, col := range b.Columns {
		k := catalog.Column{Name: col.Name, Type: col.Type, NotNull: col.NotNull}
		if i < len(cols) {
			k.Name = cols[i]
		}
		o.Columns = append(o.Columns, k)
	}
	c.put(o, name)
	return nil
}

// bindText binds the one statement of a text.
func (c *testCatalog) bindText(text string) (Bound, error) {
	stmts, err := parser.Parse(text)
	if err != nil {
		return nil, err
	}
	return Bind(c.context(), &stmts[0])
}

// formatError prints an error as psql shows it, on lines.
func formatError(err error) string {
	e := pgerror.As(err)
	var b strings.Builder
	fmt.Fprintf(&b, "error %s: %s\n", e.Code, e.Message)
	if e.Detail != "" {
		fmt.Fprintf(&b, "detail: %s\n", e.Detail)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "hint: %s\n", e.Hint)
	}
	if e.Pos > 0 {
		fmt.Fprintf(&b, "position: %d\n", e.Pos)
	}
	return b.String()
}

// formatBound prints a bound statement.
func formatBound(b Bound) string {
	var out strings.Builder
	params := func(ps []types.Type) {
		if len(ps) > 0 {
			names := make([]string, len(ps))
			for i, p := range ps {
				names[i] = p.String()
			}
			fmt.Fprintf(&out, "params: %s\n", strings.Join(names, ", "))
		}
	}
	columns := func(what string, cols []ResultColumn) {
		parts := make([]string, len(cols))
		for i, c := range cols {
			parts[i] = c.Name + " " + c.Type.String()
			if c.AttrNum != 0 {
				parts[i] += fmt.Sprintf(" (%d.%d)", c.TableOID-16384, c.AttrNum)
			}
		}
		fmt.Fprintf(&out, "%s: %s\n", what, strings.Join(parts, ", "))
	}
	switch b := b.(type) {
	case *Query:
		columns("columns", b.Columns)
		params(b.Params)
		out.WriteString(plan.Format(b.Rel))
	case *Write:
		params(b.Params)
		for _, st := range b.Steps {
			rel := st.Query
			if st.Write != nil {
				rel = st.Write.Rows()
			}
			out.WriteString("step\n" + plan.Format(rel))
		}
		if b.Returning != nil {
			columns("returning", b.Returning.Columns)
			list := make([]string, len(b.Returning.Exprs))
			for i, e := range b.Returning.Exprs {
				list[i] = expr.String(e, func(c *expr.Column) string { return c.Name })
			}
			fmt.Fprintf(&out, "%s\n", strings.Join(list, ", "))
			if b.Returning.Rel != nil {
				out.WriteString(plan.Format(b.Returning.Rel))
			}
		}
		out.WriteString(strings.ToLower(b.Kind.String()) + " " + b.Table.Name + "\n" + plan.Format(b.Rows()))
		if b.Conflict != nil && b.Conflict.Rel != nil {
			fmt.Fprintf(&out, "on conflict %v do update\n%s", b.Conflict.Keys, plan.Format(b.Conflict.Rel))
		}
	}
	return out.String()
}

// TestBind runs testdata/bind: `ddl` builds the catalog of a file, `bind`
// prints the bound plan of a statement or its error, `cols` only the columns.
func TestBind(t *testing.T) {
	datadriven.Walk(t, "testdata/bind", func(t *testing.T) func(c *datadriven.Case) string {
		cat := newTestCatalog()
		return func(c *datadriven.Case) string {
			switch c.Cmd {
			case "ddl":
				if err := cat.ddl(c.Input); err != nil {
					return formatError(err)
				}
				return "ok\n"
			case "bind", "cols":
				b, err := cat.bindText(c.Input)
				if err != nil {
					return formatError(err)
				}
				if c.Cmd == "cols" {
					head, _, _ := strings.Cut(formatBound(b), "\n")
					return head
				}
				return formatBound(b)
			}
			t.Fatalf("%s: unknown directive %s", c.Pos, c.Cmd)
			return ""
		}
	})
}
