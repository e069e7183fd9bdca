package planner

import (
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

func itoa(i int) string { return strconv.Itoa(i) }

// sharedRel is a relation that may be used several times in a statement: a
// view, or a WITH query that refers to nothing outside of itself.
type sharedRel struct {
	id    int
	value plan.Rel
	cols  []plan.Column
	// recursion is, instead of all that, relations that are defined by one another.
	recursion *plan.Recursive
}

func (b *binder) newShared() *sharedRel {
	b.nextID++
	return &sharedRel{id: b.nextID}
}

// complete gives the shared relation its value.
func (b *binder) complete(sh *sharedRel, value plan.Rel) {
	sh.value, sh.cols = value, value.Columns()
	b.shared = append(b.shared, sh)
}

// ref is a use of the relation.
func (sh *sharedRel) ref() plan.Rel {
	return &plan.LocalGet{
		ID: sh.id, Cols: sh.cols, Keys: plan.Keys(sh.value), AppendOnly: plan.AppendOnly(sh.value),
	}
}

// withShared puts the shared relations around a plan: one that is used once
// stands at its place, one that is used more often is computed once.
func (b *binder) withShared(root plan.Rel) plan.Rel {
	sort, _ := root.(*plan.Sort)
	if sort != nil {
		root = sort.Input
	}
	for i := len(b.shared) - 1; i >= 0; i-- {
		sh := b.shared[i]
		if r := sh.recursion; r != nil {
			if slices.ContainsFunc(r.IDs, func(id int) bool { return countLocal(root, id) > 0 }) {
				r.Body = root
				root = r
			}
			continue
		}
		switch countLocal(root, sh.id) {
		case 0:
		case 1:
			root = replaceLocal(root, sh.id, sh.value)
		default:
			root = &plan.Let{ID: sh.id, Value: sh.value, Body: root}
		}
	}
	if sort != nil {
		c := *sort
		c.Input = root
		return &c
	}
	return root
}

// countLocal counts the uses of a binding, in subqueries too.
func countLocal(r plan.Rel, id int) int {
	n := 0
	mapRels(r, func(r plan.Rel) plan.Rel {
		if g, ok := r.(*plan.LocalGet); ok && g.ID == id {
			n++
		}
		return r
	})
	return n
}

// replaceLocal puts a relation in the place of a binding. The relation must
// not refer to outer columns.
func replaceLocal(r plan.Rel, id int, value plan.Rel) plan.Rel {
	return mapRels(r, func(r plan.Rel) plan.Rel {
		if g, ok := r.(*plan.LocalGet); ok && g.ID == id {
			return value
		}
		return r
	})
}

// mapRels rebuilds a plan bottom-up, the relations of its subqueries included.
func mapRels(r plan.Rel, f func(plan.Rel) plan.Rel) plan.Rel {
	var inExpr func(e expr.Expr) expr.Expr
	inExpr = func(e expr.Expr) expr.Expr {
		e = expr.MapChildren(e, inExpr)
		if s, ok := e.(*expr.Subquery); ok {
			if rel := mapRels(s.Rel.(plan.Rel), f); rel != s.Rel {
				c := *s
				c.Rel = rel
				return &c
			}
		}
		return e
	}
	return plan.Rewrite(r, func(r plan.Rel) plan.Rel { return f(plan.MapExprs(r, inExpr)) })
}

// cteScope is the WITH queries in reach, the innermost first.
type cteScope struct {
	parent *cteScope
	ctes   []*cte
}

// cte is a WITH query.
type cte struct {
	name string
	node *pg.CommonTableExpr
	// level is the depth of the scope around the WITH.
	level int
	cols  []outputColumn
	// shared is set for a query that refers to nothing outside; rel is the
	// relation of one that does, and is copied to each use.
	shared *sharedRel
	rel    plan.Rel
	state  cteState
	silent bool // it changes a table and returns nothing
	// of a recursive one, while its recursive part is bound:
	recID   int
	recCols []plan.Column
}

type cteState uint8

const (
	ctePending   cteState = iota // not yet bound: a later item, or a recursive one before its turn
	cteRecursing                 // its recursive part is being bound: a use is a recursion
	cteFirst                     // its non-recursive part is being bound
	cteBound
)

// find is the WITH query of that name that is in reach, nil if there is none.
func (s *cteScope) find(name string) *cte {
	for ; s != nil; s = s.parent {
		for _, c := range s.ctes {
			if c.name == name && c.state != ctePending {
				return c
			}
		}
	}
	return nil
}

// hidden reports whether there is a WITH query of that name out of reach.
func (s *cteScope) hidden(name string) bool {
	for ; s != nil; s = s.parent {
		for _, c := range s.ctes {
			if c.name == name && c.state == ctePending {
				return true
			}
		}
	}
	return false
}

// with binds the queries of a WITH clause.
func (b *binder) with(w *pg.WithClause, parent *scope, outer *cteScope) (*cteScope, error) {
	s := &cteScope{parent: outer}
	stepwise := false // some change tables: all are run one after the other
	for _, n := range w.Ctes {
		c := n.GetCommonTableExpr()
		pos := b.pos(c.Location)
		for _, have := range s.ctes {
			if have.name == c.Ctename {
				return nil, pgerror.New(pgerror.DuplicateAlias, "WITH query name \"%s\" specified more than once", c.Ctename).At(pos)
			}
		}
		if c.Ctequery.GetSelectStmt() == nil {
			if b.depth > 1 || outer != nil || b.inView > 0 || b.inner {
				return nil, pgerror.New(pgerror.FeatureNotSupported, "WITH clause containing a data-modifying statement must be at the top level").At(pos)
			}
			if !b.writes {
				return nil, pgerror.New(pgerror.FeatureNotSupported, "data-modifying statements in WITH are not allowed here").At(pos)
			}
			stepwise = true
		}
		if !w.Recursive || !refersTo(c.Ctequery, c.Ctename) {
			if c.SearchClause != nil || c.CycleClause != nil {
				return nil, pgerror.New(pgerror.SyntaxError, "WITH query is not recursive").At(pos)
			}
		}
		s.ctes = append(s.ctes, &cte{name: c.Ctename, node: c, level: parent.level()})
	}
	order := s.ctes
	if len(s.ctes[0].node.Ctecoltypes) > 0 {
		return s, b.mutualRecursion(s, parent)
	}
	if w.Recursive {
		var err error
		if order, err = b.recursionOrder(s.ctes); err != nil {
			return nil, err
		}
	}
	for _, c := range order {
		var err error
		switch {
		case c.node.Ctequery.GetSelectStmt() == nil:
			err = b.writingCTE(c, s)
		case w.Recursive && refersTo(c.node.Ctequery, c.name):
			err = b.recursiveCTE(c, parent, s)
		default:
			err = b.plainCTE(c, parent, s)
		}
		if err == nil && stepwise {
			err = b.readStep(c)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// plainCTE binds a WITH query that does not refer to itself.
func (b *binder) plainCTE(c *cte, parent *scope, s *cteScope) error {
	q, err := b.query(c.node.Ctequery.GetSelectStmt(), parent, s, resolveUnknown)
	if err != nil {
		return err
	}
	rel := q.wideCollection(false)
	c.cols = q.cols
	if err := c.rename(b); err != nil {
		return err
	}
	b.completeCTE(c, rel)
	return nil
}

// rename gives the columns the names that the WITH item lists.
func (c *cte) rename(b *binder) error {
	names := listNames(c.node.Aliascolnames)
	if len(names) > len(c.cols) {
		return pgerror.New(pgerror.InvalidColumnReference, "WITH query \"%s\" has %d columns available but %d columns specified",
			c.name, len(c.cols), len(names)).At(b.pos(c.node.Location))
	}
	c.cols = append([]outputColumn(nil), c.cols...)
	for i, n := range names {
		c.cols[i].name = n
	}
	return nil
}

// completeCTE decides whether the query can be computed once for all its uses:
// not if it refers to columns around it, or to a recursion in progress.
func (b *binder) completeCTE(c *cte, rel plan.Rel) {
	c.state = cteBound
	if b.selfContained(rel) {
		c.shared = b.newShared()
		b.complete(c.shared, rel)
		return
	}
	c.rel = rel
}

func (b *binder) selfContained(rel plan.Rel) bool {
	free := false
	mapOuter(rel, 0, func(c *expr.OuterColumn, _ int) expr.Expr { free = true; return c })
	mapRels(rel, func(r plan.Rel) plan.Rel {
		if g, ok := r.(*plan.LocalGet); ok && b.recursing[g.ID] {
			free = true
		}
		return r
	})
	return !free
}

// cteRef binds a use of a WITH query.
func (f fromBinder) cteRef(c *cte, r *pg.RangeVar, env *scope) (*fromItem, error) {
	pos := f.pos(r.Location)
	var rel plan.Rel
	switch {
	case c.state == cteFirst:
		return nil, pgerror.New(pgerror.InvalidRecursion,
			"recursive reference to query \"%s\" must not appear within its non-recursive term", c.name).At(pos)
	case c.silent:
		return nil, pgerror.New(pgerror.FeatureNotSupported, "WITH query \"%s\" does not have a RETURNING clause", c.name).At(pos)
	case c.state == cteRecursing:
		rel = &plan.LocalGet{ID: c.recID, Cols: c.recCols}
	case c.shared != nil:
		rel = c.shared.ref()
	default:
		rel = f.moved(c.rel, env.level()-c.level)
	}
	use := boundQuery{rel: rel, cols: c.cols}
	e := use.entry(c.name)
	e.origin = c.name
	if c.state == cteRecursing {
		for i := len(c.cols); i < len(c.recCols); i++ {
			e.columns = append(e.columns, entryColumn{name: carriedName(i - len(c.cols)), index: i, typ: c.recCols[i].Type, hidden: true, merged: true})
		}
	}
	if err := e.rename(r.Alias, 0); err != nil {
		return nil, err
	}
	return &fromItem{rel: rel, entries: []*entry{e}}, nil
}
