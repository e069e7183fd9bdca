package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// tracking is the SEARCH and CYCLE clauses of a recursive query. What they add
// travels as columns behind those of the query: the non-recursive term sets them
// out, and the recursive term carries them along, where it cannot name them, and
// is wrapped to compute the next ones:
//
//	SEARCH DEPTH FIRST    seq: ARRAY[ROW(by)], then seq || ROW(by)
//	SEARCH BREADTH FIRST  depth, seq: 0, ROW(0, by), then depth+1, ROW(depth+1, by)
//	CYCLE                 mark, path: DEFAULT, ARRAY[ROW(by)], then
//	                      CASE WHEN ROW(by) = ANY (path) THEN TO ELSE DEFAULT END, path || ROW(by)
//	                      of rows whose mark is not TO
type tracking struct {
	b       *binder
	c       *cte
	cols    []plan.Column // the added columns
	search  *pg.CTESearchClause
	cycle   *pg.CTECycleClause
	by, key []int // columns that SEARCH and CYCLE look at
	mark    expr.Expr
	dflt    expr.Expr
	n       int // of the query's own columns
}

// carriedColumn is the prefix of the names under which a recursive term carries
// the added columns; no identifier has a NUL byte.
const carriedColumn = "\x00tracked"

// track checks the SEARCH and CYCLE clauses, whose columns c.cols are; nil if
// there are none.
func (b *binder) track(c *cte, q *pg.SelectStmt, parent *scope, ctes *cteScope) (*tracking, error) {
	t := &tracking{b: b, c: c, search: c.node.SearchClause, cycle: c.node.CycleClause, n: len(c.cols)}
	if t.search == nil && t.cycle == nil {
		return nil, nil
	}
	for side, s := range map[string]*pg.SelectStmt{"left": q.Larg, "right": q.Rarg} {
		if s.Op != pg.SetOperation_SETOP_NONE || side == "right" && len(s.ValuesLists) > 0 {
			return nil, pgerror.New(pgerror.SyntaxError, "with a SEARCH or CYCLE clause, the %s side of the UNION must be a SELECT", side).At(b.pos(c.node.Location))
		}
	}
	x := exprBinder{binder: b, scope: newScope(parent), ctes: ctes}
	if err := t.searchClause(); err != nil {
		return nil, err
	}
	return t, t.cycleClause(x)
}

// columns finds the columns that a clause lists.
func (t *tracking) columns(list []*pg.Node, clause string, loc int32) ([]int, error) {
	var out []int
	for _, name := range listNames(list) {
		i := slices.IndexFunc(t.c.cols, func(c outputColumn) bool { return c.name == name })
		switch {
		case i < 0:
			return nil, pgerror.New(pgerror.SyntaxError, "%s column \"%s\" not in WITH query column list", clause, name).At(t.b.pos(loc))
		case slices.Contains(out, i):
			return nil, pgerror.New(pgerror.DuplicateColumn, "%s column \"%s\" specified more than once", clause, name).At(t.b.pos(loc))
		}
		out = append(out, i)
	}
	return out, nil
}

// unused refuses a name for an added column that a column of the query has.
func (t *tracking) unused(name, what string, loc int32) error {
	if slices.ContainsFunc(t.c.cols, func(c outputColumn) bool { return c.name == name }) {
		return pgerror.New(pgerror.SyntaxError, "%s column name \"%s\" already used in WITH query column list", what, name).At(t.b.pos(loc))
	}
	return nil
}

func (t *tracking) searchClause() (err error) {
	s := t.search
	if s == nil {
		return nil
	}
	if t.by, err = t.columns(s.SearchColList, "search", s.Location); err != nil {
		return err
	}
	if err := t.unused(s.SearchSeqColumn, "search sequence", s.Location); err != nil {
		return err
	}
	if s.SearchBreadthFirst {
		t.cols = append(t.cols, plan.Column{Name: "depth", Type: types.Int8}, plan.Column{Name: s.SearchSeqColumn, Type: types.Of(types.OIDRecord)})
	} else {
		t.cols = append(t.cols, plan.Column{Name: s.SearchSeqColumn, Type: types.Of(types.OIDRecordArray)})
	}
	return nil
}

func (t *tracking) cycleClause(x exprBinder) (err error) {
	c := t.cycle
	if c == nil {
		return nil
	}
	if t.key, err = t.columns(c.CycleColList, "cycle", c.Location); err != nil {
		return err
	}
	if t.mark, t.dflt, err = t.marks(x); err != nil {
		return err
	}
	if err := t.unused(c.CycleMarkColumn, "cycle mark", c.Location); err != nil {
		return err
	}
	if err := t.unused(c.CyclePathColumn, "cycle path", c.Location); err != nil {
		return err
	}
	pos := t.b.pos(c.Location)
	switch {
	case c.CycleMarkColumn == c.CyclePathColumn:
		return pgerror.New(pgerror.SyntaxError, "cycle mark column name and cycle path column name are the same").At(pos)
	case t.search != nil && t.search.SearchSeqColumn == c.CycleMarkColumn:
		return pgerror.New(pgerror.SyntaxError, "search sequence column name and cycle mark column name are the same").At(pos)
	case t.search != nil && t.search.SearchSeqColumn == c.CyclePathColumn:
		return pgerror.New(pgerror.SyntaxError, "search sequence column name and cycle path column name are the same").At(pos)
	}
	t.cols = append(t.cols, plan.Column{Name: c.CycleMarkColumn, Type: t.mark.Type()},
		plan.Column{Name: c.CyclePathColumn, Type: types.Of(types.OIDRecordArray)})
	return nil
}

// marks binds TO and DEFAULT.
func (t *tracking) marks(x exprBinder) (mark, dflt expr.Expr, err error) {
	if mark, err = x.expr(t.cycle.CycleMarkValue); err != nil {
		return nil, nil, err
	}
	if dflt, err = x.expr(t.cycle.CycleMarkDefault); err != nil {
		return nil, nil, err
	}
	typ, err := expr.CommonType([]expr.Expr{mark, dflt}, "CYCLE")
	if err != nil {
		return nil, nil, err
	}
	if typ.OID == types.OIDUnknown {
		typ = types.Text
	}
	pos := t.b.pos(t.cycle.Location)
	if mark, err = expr.Coerce(mark, typ, expr.CastImplicit, pos); err != nil {
		return nil, nil, err
	}
	if dflt, err = expr.Coerce(dflt, typ, expr.CastImplicit, pos); err != nil {
		return nil, nil, err
	}
	_, err = expr.NewOp("<>", mark, dflt, pos)
	return mark, dflt, err
}

// row is ROW of some columns, after what comes first in it.
func row(cols []plan.Column, picked []int, first ...expr.Expr) expr.Expr {
	for _, i := range picked {
		first = append(first, plan.RefTo(cols, i))
	}
	return expr.NewRow(first)
}

// start adds the columns to the non-recursive term.
func (t *tracking) start(first plan.Rel) (plan.Rel, error) {
	cols := first.Columns()
	var exprs []expr.Expr
	if t.search != nil {
		if t.search.SearchBreadthFirst {
			exprs = append(exprs, int64Const(0), row(cols, t.by, int64Const(0)))
		} else {
			a, err := expr.NewArray([]expr.Expr{row(cols, t.by)}, 0)
			if err != nil {
				return nil, err
			}
			exprs = append(exprs, a)
		}
	}
	if t.cycle != nil {
		a, err := expr.NewArray([]expr.Expr{row(cols, t.key)}, 0)
		if err != nil {
			return nil, err
		}
		exprs = append(exprs, t.dflt, a)
	}
	return extend(first, exprs, t.cols), nil
}

// carry makes the recursive term output the added columns of its reference to
// the query.
func (t *tracking) carry(s *pg.SelectStmt) (*pg.SelectStmt, error) {
	ref := topReference(s.FromClause, t.c.name)
	if ref == nil {
		return nil, pgerror.New(pgerror.FeatureNotSupported,
			"with a SEARCH or CYCLE clause, the recursive reference to WITH query \"%s\" must be at the top level of its right-hand SELECT", t.c.name)
	}
	name := ref.Relname
	if ref.Alias != nil {
		name = ref.Alias.Aliasname
	}
	s = proto.Clone(s).(*pg.SelectStmt)
	for i := range t.cols {
		col := pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(name), pg.MakeStrNode(carriedName(i))}, -1)
		s.TargetList = append(s.TargetList, pg.MakeResTargetNodeWithVal(col, -1))
	}
	return s, nil
}

func carriedName(i int) string { return carriedColumn + itoa(i) }

// topReference is the reference to a relation in a FROM clause, not in its
// subqueries.
func topReference(from []*pg.Node, name string) *pg.RangeVar {
	for _, n := range from {
		switch n := n.GetNode().(type) {
		case *pg.Node_RangeVar:
			if n.RangeVar.Schemaname == "" && n.RangeVar.Relname == name {
				return n.RangeVar
			}
		case *pg.Node_JoinExpr:
			if r := topReference([]*pg.Node{n.JoinExpr.Larg, n.JoinExpr.Rarg}, name); r != nil {
				return r
			}
		}
	}
	return nil
}

// next computes the columns of the rows that the recursive term has made, behind
// whose own columns are those of the rows that they come from.
func (t *tracking) next(step plan.Rel) (plan.Rel, error) {
	cols := step.Columns()
	at := t.n
	out := plan.Refs(cols)[:t.n]
	if t.search != nil {
		if t.search.SearchBreadthFirst {
			depth, err := expr.NewOp("+", plan.RefTo(cols, at), int64Const(1), 0)
			if err != nil {
				return nil, err
			}
			out = append(out, depth, row(cols, t.by, depth))
			at += 2
		} else {
			seq, err := expr.NewOp("||", plan.RefTo(cols, at), row(cols, t.by), 0)
			if err != nil {
				return nil, err
			}
			out = append(out, seq)
			at++
		}
	}
	if t.cycle != nil {
		going, err := expr.NewOp("<>", plan.RefTo(cols, at), t.mark, 0)
		if err != nil {
			return nil, err
		}
		step = filter(step, going)
		here, path := row(cols, t.key), plan.RefTo(cols, at+1)
		again, err := expr.NewArrayOp("=", here, path, false, 0)
		if err != nil {
			return nil, err
		}
		longer, err := expr.NewOp("||", path, here, 0)
		if err != nil {
			return nil, err
		}
		out = append(out, &expr.Case{Typ: t.mark.Type(), Whens: []expr.When{{Cond: again, Then: t.mark}}, Else: t.dflt}, longer)
	}
	return &plan.Project{Input: step, Exprs: out, Cols: append(cols[:t.n:t.n], t.cols...)}, nil
}

// shown is the query's result: all but the depth.
func (t *tracking) shown(body plan.Rel) plan.Rel {
	picked := span(0, t.n)
	for i, c := range t.cols {
		if t.search != nil && t.search.SearchBreadthFirst && i == 0 {
			continue
		}
		picked = append(picked, t.n+i)
		t.c.cols = append(t.c.cols, outputColumn{name: c.Name})
	}
	return project(body, picked)
}
