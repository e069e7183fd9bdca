package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// isHypothetical reports whether WITHIN GROUP makes a hypothetical-set aggregate
// of a window function.
func isHypothetical(name string) bool {
	switch name {
	case "rank", "dense_rank", "percent_rank", "cume_dist":
		return true
	}
	return false
}

// hypotheticalSet binds rank(args) WITHIN GROUP (ORDER BY …) and its kin: what
// the window function would give for a row of these values. All of them are
// counts of the rows that sort before that row, or not after it, so they are
// kept up to date as counts are.
func (x exprBinder) hypotheticalSet(f *pg.FuncCall, name string, pos int) (expr.Expr, error) {
	direct, _, err := x.args(f)
	if err != nil {
		return nil, err
	}
	order, err := x.sortExprs(f.AggOrder, keepUnknown)
	if err != nil {
		return nil, err
	}
	if len(direct) != len(order) {
		all := append([]expr.Expr(nil), direct...)
		for _, o := range order {
			all = append(all, o.Expr)
		}
		return nil, pgerror.As(x.noFunction(name, all, pos)).WithHint(
			"To use the hypothetical-set aggregate %s, the number of hypothetical direct arguments (here %d) must match the number of ordering columns (here %d).",
			name, len(direct), len(order))
	}
	if f.AggDistinct {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot use DISTINCT with WITHIN GROUP").At(pos)
	}
	for i := range order {
		typ, err := expr.CommonType([]expr.Expr{order[i].Expr, direct[i]}, "WITHIN GROUP")
		if err != nil {
			return nil, err
		}
		if typ = types.Of(typ.OID); typ.OID == types.OIDUnknown {
			typ = types.Text
		}
		if direct[i], err = expr.Coerce(direct[i], typ, expr.CastImplicit, pos); err != nil {
			return nil, err
		}
		if order[i].Expr, err = expr.Coerce(order[i].Expr, typ, expr.CastImplicit, pos); err != nil {
			return nil, err
		}
	}
	filter, err := x.filterClause(f.AggFilter)
	if err != nil {
		return nil, err
	}
	return x.hypotheticalCounts(name, hypothetical{x: x, pos: pos, direct: direct, order: order, filter: filter})
}

// hypothetical is a call of a hypothetical-set aggregate.
type hypothetical struct {
	x      exprBinder
	pos    int
	direct []expr.Expr
	order  []plan.SortExpr
	filter expr.Expr
}

// hypotheticalCounts makes the value from counts.
func (x exprBinder) hypotheticalCounts(name string, h hypothetical) (expr.Expr, error) {
	before, err := h.before(0, false)
	if err != nil {
		return nil, err
	}
	one := int64Const(1)
	if name == "dense_rank" {
		row := make([]expr.Expr, len(h.order))
		for i, o := range h.order {
			row[i] = o.Expr
		}
		n, err := h.count([]expr.Expr{expr.NewRow(row)}, true, before)
		if err != nil {
			return nil, err
		}
		return expr.NewOp("+", n, one, h.pos)
	}
	if name == "cume_dist" {
		if before, err = h.before(0, true); err != nil {
			return nil, err
		}
	}
	n, err := h.count(nil, false, before)
	if err != nil {
		return nil, err
	}
	if name == "rank" {
		return expr.NewOp("+", n, one, h.pos)
	}
	all, err := h.count(nil, false, nil)
	if err != nil {
		return nil, err
	}
	ratio := func(a, b expr.Expr) (expr.Expr, error) {
		a, err := expr.Coerce(a, types.Float8, expr.CastExplicit, h.pos)
		if err != nil {
			return nil, err
		}
		if b, err = expr.Coerce(b, types.Float8, expr.CastExplicit, h.pos); err != nil {
			return nil, err
		}
		return expr.NewOp("/", a, b, h.pos)
	}
	if name == "cume_dist" {
		if n, err = expr.NewOp("+", n, one, h.pos); err != nil {
			return nil, err
		}
		if all, err = expr.NewOp("+", all, one, h.pos); err != nil {
			return nil, err
		}
		return ratio(n, all)
	}
	share, err := ratio(n, all)
	if err != nil {
		return nil, err
	}
	zero, err := expr.Coerce(int64Const(0), types.Float8, expr.CastExplicit, h.pos)
	if err != nil {
		return nil, err
	}
	return &expr.Case{Typ: types.Float8, Whens: []expr.When{{Cond: mustOp("=", all, int64Const(0)), Then: zero}}, Else: share}, nil
}

// before is the condition that a row of the group sorts before the hypothetical
// one by the ordering from column i on, or (orSame) is its peer.
func (h *hypothetical) before(i int, orSame bool) (expr.Expr, error) {
	if i == len(h.order) {
		return boolConst(orSame), nil
	}
	o, d := h.order[i], h.direct[i]
	op := "<"
	if o.Desc {
		op = ">"
	}
	less, err := expr.NewOp(op, o.Expr, d, h.pos)
	if err != nil {
		return nil, err
	}
	// Where one is NULL, the comparison is.
	nulls, err := expr.NewLogic(true, []expr.Expr{expr.NewIsNull(o.Expr, !o.NullsFirst), expr.NewIsNull(d, o.NullsFirst)}, h.pos)
	if err != nil {
		return nil, err
	}
	if less, err = expr.NewCoalesce([]expr.Expr{less, nulls}, h.pos); err != nil {
		return nil, err
	}
	rest, err := h.before(i+1, orSame)
	if err != nil {
		return nil, err
	}
	same, err := expr.NewDistinct(o.Expr, d, true, h.pos)
	if err != nil {
		return nil, err
	}
	if rest, err = expr.NewLogic(true, []expr.Expr{same, rest}, h.pos); err != nil {
		return nil, err
	}
	return expr.NewLogic(false, []expr.Expr{less, rest}, h.pos)
}

// count is count(*) or count(args) of the rows that pass a condition besides the
// call's own FILTER.
func (h *hypothetical) count(args []expr.Expr, distinct bool, cond expr.Expr) (expr.Expr, error) {
	call := plan.AggCall{Distinct: distinct, Pos: h.pos, Filter: h.filter}
	switch {
	case cond != nil && call.Filter != nil:
		both, err := expr.NewLogic(true, []expr.Expr{call.Filter, cond}, h.pos)
		if err != nil {
			return nil, err
		}
		call.Filter = both
	case cond != nil:
		call.Filter = cond
	}
	var err error
	if call.Fn, call.Args, call.Typ, err = expr.ResolveAggregate("count", args, expr.CallOptions{Pos: h.pos, Star: args == nil}); err != nil {
		return nil, err
	}
	return h.x.placeAggregate(call, h.direct, h.pos)
}
