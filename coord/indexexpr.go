package coord

import (
	"slices"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// indexKey finds the key and the rows of a new index x on t.
func (s *Session) indexKey(x, t *catalog.Object, text string, n *parser.CreateIndex) error {
	seen := map[string]bool{}
	var names []string
	for i := range n.Keys {
		k := &n.Keys[i]
		part := t.Column(k.Column)
		switch {
		case k.Column != "" && part < 0:
			return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" does not exist", k.Column)
		case k.Column == "":
			e, err := s.indexExpr(x, t, text, &k.Expr, "index expressions", types.Unknown)
			if err != nil {
				return err
			}
			if c, ok := e.(*expr.Column); ok {
				part = c.Index
				break
			}
			if !hasOrder(e.Type()) {
				return pgerror.New(pgerror.UndefinedObject, "data type %s has no default operator class for access method \"btree\"", types.Of(e.Type().OID)).
					WithHint("You must specify an operator class for the index or define a default operator class for the data type.")
			}
			part = catalog.ExprKey(len(x.Exprs))
			n := s.storedExpr(t, k.Expr.SQL, e)
			n.Name = freeColumn(names, planner.IndexColumnName(s.bindContext(nil), text, &k.Expr))
			x.Exprs = append(x.Exprs, n)
		}
		if name := x.KeyText(part, t.Columns, quoteName); !seen[name] {
			seen[name] = true
			x.Key = append(x.Key, part)
			x.Orders = append(x.Orders, writtenOrder(k))
			if i, ok := catalog.ExprOf(part); ok {
				names = append(names, x.Exprs[i].Name)
			} else {
				names = append(names, t.Columns[part].Name)
			}
		}
	}
	if !slices.ContainsFunc(x.Orders, func(k catalog.KeyOrder) bool { return k != 0 }) {
		x.Orders = nil
	}
	if n.Where == nil {
		return nil
	}
	e, err := s.indexExpr(x, t, text, n.Where, "index predicates", types.Unknown)
	if err == nil {
		e, err = expr.CoerceToBool(e, "WHERE", 0)
	}
	if err == nil {
		if x.Where = s.storedExpr(t, n.Where.SQL, e).SQL; x.Where == n.Where.SQL {
			if _, ok := e.(*expr.Column); !ok {
				x.Where = "(" + x.Where + ")"
			}
		}
	}
	return err
}

// writtenOrder is the order that a definition asks for.
func writtenOrder(k *parser.IndexKey) (o catalog.KeyOrder) {
	if k.Desc {
		o |= catalog.OrderDesc
	}
	if k.NullsFirst {
		o |= catalog.OrderNullsFirst
	}
	return o
}

// freeColumn is a name that is not among names: the one wished, with a number if
// need be.
func freeColumn(names []string, name string) string {
	free := name
	for i := 1; slices.Contains(names, free); i++ {
		free = name + strconv.Itoa(i)
	}
	return free
}

// indexExpr binds an expression of an index x, which depends on the functions and types in it: they
// are part of what is stored, but go with it.
func (s *Session) indexExpr(x, t *catalog.Object, text string, e *parser.Expr, context string, typ types.Type) (expr.Expr, error) {
	v, err := planner.BindExpr(s.bindContext(nil), text, e, t, context, typ)
	if err == nil {
		v, err = expr.FoldLiterals(v, s.exprContext())
	}
	if err != nil {
		return nil, err
	}
	deps, err := planner.ExprDeps(s.bindContext(nil), e.SQL, t)
	if err != nil {
		return nil, err
	}
	for _, id := range deps {
		if o := s.snapshot().ByID(id); o != nil && (o.Function != nil || o.Def != nil) && !slices.Contains(x.Deps, id) {
			x.Deps = append(x.Deps, id)
		}
	}
	if expr.VolatilityOf(v) != expr.Immutable {
		return nil, pgerror.New(pgerror.InvalidObjectDefinition, "functions in %s must be marked IMMUTABLE", strings.TrimSuffix(context, "s"))
	}
	return v, nil
}

// storedExpr is an expression of an index as the catalog has it: as it is printed,
// if that means the same, else as it was written.
func (s *Session) storedExpr(t *catalog.Object, written string, e expr.Expr) catalog.IndexExpr {
	x := catalog.IndexExpr{SQL: written, Type: e.Type()}
	if printed := expr.String(e, func(c *expr.Column) string { return parser.QuoteIdent(t.Columns[c.Index].Name) }); printed != written {
		if b := s.c.bindOver(s.snapshot(), t, printed, e.Type()); b != nil && expr.Equal(b, e) {
			x.SQL = printed
		}
	}
	if c, ok := e.(*expr.Call); ok && !c.Fn.Operator && strings.HasPrefix(x.SQL, c.Fn.Name+"(") {
		x.Call = true
	}
	return x
}

// bindOver binds an expression over the columns of a relation in the way of what is
// stored, nil if it cannot be.
func (c *Coordinator) bindOver(cat *catalog.Snapshot, t *catalog.Object, text string, typ types.Type) expr.Expr {
	x, err := parser.ParseExpr(text)
	if err != nil {
		return nil
	}
	e, err := planner.BindExpr(c.bindContext(cat), text, &x, t, "index expressions", typ)
	if err != nil {
		return nil
	}
	return e
}

// indexForm is the expressions of an index, bound.
type indexForm struct {
	of, table    *catalog.Object
	exprs, preds []expr.Expr
}

// indexForm binds the expressions of an index x on t, once for a version of both;
// nil if they cannot be.
func (c *Coordinator) indexForm(cat *catalog.Snapshot, t, x *catalog.Object) *indexForm {
	if v, ok := c.forms.Load(x.ID); ok {
		if f := v.(*indexForm); f.of == x && f.table == t {
			return f
		}
	}
	f := &indexForm{of: x, table: t}
	cols := planColumns(t)
	for _, e := range x.Exprs {
		b := c.bindOver(cat, t, e.SQL, types.Unknown)
		if b == nil {
			return nil
		}
		f.exprs = append(f.exprs, planner.Simplified(b, cols))
	}
	if x.Where != "" {
		b := c.bindOver(cat, t, x.Where, types.Bool)
		if b == nil {
			return nil
		}
		f.preds = []expr.Expr{planner.Simplified(b, cols)}
	}
	c.forms.Store(x.ID, f)
	return f
}

// indexProgram computes the expressions of an index, nil if that cannot fail: a row
// of a table for which it does is refused.
func (s *Session) indexProgram(cat *catalog.Snapshot, t, x *catalog.Object) (*expr.Program, error) {
	if x.Plain() {
		return nil, nil
	}
	f := s.c.indexForm(cat, t, x)
	if f == nil || !slices.ContainsFunc(slices.Concat(f.exprs, f.preds), func(e expr.Expr) bool { return !expr.IsTotal(e) }) {
		return nil, nil
	}
	return expr.Compile(expr.MapFilterProject{Filters: f.preds, Outputs: f.exprs})
}

// verifyIndex computes the expressions of a new index for the rows that its table has.
func (s *Session) verifyIndex(t, x *catalog.Object) error {
	prog, err := s.indexProgram(s.snapshot(), t, x)
	if prog == nil || err != nil || t.Kind != catalog.KindTable {
		return err
	}
	rows, err := s.presentRows(t)
	if err != nil {
		return err
	}
	for _, d := range rows {
		if _, _, errs := prog.Apply(s.exprContext(), &d.Batch, nil); len(errs) > 0 {
			return errs[0].Err
		}
	}
	return nil
}

// indexQuery is the query whose rows an index keeps: those of its table, with the
// expressions of its key.
func indexQuery(t, x *catalog.Object) string {
	var b strings.Builder
	b.WriteString("SELECT *")
	for _, e := range x.Exprs {
		b.WriteString(", (" + e.SQL + ")")
	}
	b.WriteString(" FROM " + quoteName(t.Schema) + "." + quoteName(t.Name) + x.WhereText())
	return b.String()
}

// retypeIndex finds out again the types of the expressions of an index, whose table
// has another form.
func (s *Session) retypeIndex(t, x *catalog.Object) {
	if len(x.Exprs) == 0 {
		return
	}
	exprs := make([]catalog.IndexExpr, len(x.Exprs))
	for i, e := range x.Exprs {
		if b := s.c.bindOver(s.snapshot(), t, e.SQL, types.Unknown); b != nil {
			e.Type = b.Type()
		}
		exprs[i] = e
	}
	x.Exprs = exprs
}

// renameInIndexes gives a column its new name in the expressions of the indexes of
// a relation.
func (d *ddlState) renameInIndexes(id plan.ObjectID, old, name string) error {
	for _, u := range d.cat.Users(id) {
		if u.Kind != catalog.KindIndex || u.Table != id || u.Plain() {
			continue
		}
		nu := *u
		nu.Exprs = append([]catalog.IndexExpr(nil), u.Exprs...)
		texts := []*string{&nu.Where}
		for i := range nu.Exprs {
			texts = append(texts, &nu.Exprs[i].SQL)
		}
		for _, text := range texts {
			if *text == "" {
				continue
			}
			n, err := planner.RenameInExpr(*text, old, name)
			if err != nil {
				return err
			}
			*text = n
		}
		d.apply(catalog.Change{Put: &nu})
	}
	return nil
}

// indexUses reports whether an expression of an index uses a column of the table.
func (t *tableAlter) indexUses(x *catalog.Object, col int) (bool, error) {
	texts := []string{x.Where}
	for _, e := range x.Exprs {
		texts = append(texts, e.SQL)
	}
	for _, text := range texts {
		if text == "" {
			continue
		}
		if used, err := t.expressionUses(text, col); used || err != nil {
			return used, err
		}
	}
	return false, nil
}

// indexes lists the keys by which a collection can be looked up: its own and
// those of its indexes.
func (s *Session) indexes(id plan.ObjectID) []planner.Index {
	cat := s.snapshot()
	o := cat.ByID(id)
	if o == nil || o.Kind == catalog.KindVirtual || s.rewritten(id) || s.ownObject(id) {
		return nil
	}
	var out []planner.Index
	add := func(x *catalog.Object, key []int, unique bool) {
		if len(key) == 0 || len(key) == len(o.Columns) && len(o.PrimaryKey) == 0 && x == o {
			return
		}
		ix := planner.Index{ID: x.ID, Key: key, Unique: unique}
		for _, k := range key {
			ix.Names = append(ix.Names, x.KeyText(k, o.Columns, func(name string) string { return name }))
			t := x.KeyType(k, o.Columns)
			if bitwiseEqual(t) {
				continue
			}
			if ix.Unequal = true; !hasOrder(t) {
				ix.Useless = "values of type " + types.Of(t.OID).String() + " have no order"
			}
		}
		if x.Index != nil && x.Index.Encoded {
			if ix.Unequal = false; len(x.Exprs) > 0 {
				ix.Useless = "the values of its expressions are only there in an encoded form"
			}
		}
		if x != o && !x.Plain() {
			f := s.c.indexForm(cat, o, x)
			if f == nil {
				return
			}
			ix.Exprs, ix.Preds = f.exprs, f.preds
		}
		out = append(out, ix)
	}
	add(o, collectionKey(o), len(o.PrimaryKey) > 0 || len(o.Key) > 0)
	for _, u := range cat.Users(id) {
		if u.Kind == catalog.KindIndex && u.Table == id {
			if u.Index != nil && u.Index.Internal {
				continue
			}
			add(u, u.Key, u.UniqueIndex())
			coll := s.c.collection(u.ID)
			last := len(out) - 1
			switch {
			case last < 0 || out[last].ID != u.ID || out[last].Useless != "":
			case coll == nil || !coll.isReady():
				out[last].Useless = "it is not filled yet"
			case coll.failed.Load() != nil:
				out[last].Useless = "it has failed: " + (*coll.failed.Load()).Error()
			}
		}
	}
	return out
}
