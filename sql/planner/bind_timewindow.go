package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// timeWindow reports whether a function in FROM is TUMBLE or HOP over a
// relation, and gives its call.
func timeWindow(fn *pg.RangeFunction) (*pg.FuncCall, bool) {
	if len(fn.Functions) != 1 || fn.Ordinality {
		return nil, false
	}
	c := fn.Functions[0].GetList().GetItems()[0].GetFuncCall()
	if c == nil || len(c.Funcname) != 1 || len(c.Args) < 3 {
		return nil, false
	}
	name := c.Funcname[0].GetString_().GetSval()
	first := c.Args[0]
	return c, (name == "tumble" || name == "hop") && (first.GetColumnRef() != nil || first.GetSubLink() != nil)
}

func isTimeWindow(fn *pg.RangeFunction) bool {
	_, ok := timeWindow(fn)
	return ok
}

// timeWindow binds RisingWave's TUMBLE(relation, time, size [, offset]) and
// HOP(relation, time, slide, size [, offset]): the rows of the relation, each
// with the windows that its time falls into. Windows are aligned to the epoch
// plus the offset.
//
//	TUMBLE  window_start = date_bin(size, time, origin)
//	HOP     window_start = every slide from the first window after time - size on
func (f fromBinder) timeWindow(c *pg.FuncCall, fn *pg.RangeFunction, env *scope) (*fromItem, error) {
	item, err := f.windowedRelation(c.Args[0], env)
	if err != nil {
		return nil, err
	}
	s := newScope(env)
	s.lateral, s.entries, s.kind = true, item.entries, inFunction
	w := windowBinder{exprBinder: exprBinder{binder: f.binder, scope: s, ctes: f.ctes}, pos: f.pos(c.Location)}
	args, err := w.exprs(c.Args[1:])
	if err != nil {
		return nil, err
	}
	hop := c.Funcname[0].GetString_().GetSval() == "hop"
	want := 2
	if hop {
		want = 3
	}
	if len(args) < want || len(args) > want+1 {
		return nil, pgerror.New(pgerror.UndefinedFunction, "wrong number of arguments for a time window").At(w.pos)
	}
	if err := w.prepare(args, want); err != nil {
		return nil, err
	}
	rel, err := w.relation(item.rel, args, hop)
	if err != nil {
		return nil, err
	}
	e := item.entries[0]
	typ := args[0].Type()
	at := plan.Arity(rel) - 2
	for i, name := range []string{"window_start", "window_end"} {
		e.columns = append(e.columns, entryColumn{name: name, index: at + i, typ: types.Of(typ.OID)})
	}
	if err := e.rename(fn.Alias, 0); err != nil {
		return nil, err
	}
	return &fromItem{rel: rel, entries: []*entry{e}}, nil
}

// windowedRelation binds the first argument: the name of a relation, or a query.
func (f fromBinder) windowedRelation(n *pg.Node, env *scope) (*fromItem, error) {
	if link := n.GetSubLink(); link != nil {
		return f.rangeSubselect(&pg.RangeSubselect{Subquery: link.Subselect, Alias: &pg.Alias{Aliasname: "window"}}, env)
	}
	ref := n.GetColumnRef()
	r := &pg.RangeVar{Location: ref.Location}
	var names []string
	for _, x := range ref.Fields {
		names = append(names, x.GetString_().GetSval())
	}
	r.Relname = names[len(names)-1]
	if len(names) > 1 {
		r.Schemaname = names[len(names)-2]
	}
	if len(names) > 2 {
		r.Catalogname = names[len(names)-3]
	}
	return f.rangeVar(r, env)
}

// windowBinder makes the expressions of time windows.
type windowBinder struct {
	exprBinder
	pos    int
	origin expr.Expr
}

// prepare coerces the arguments and computes the origin of the windows.
func (w *windowBinder) prepare(args []expr.Expr, want int) error {
	var err error
	switch args[0].Type().OID {
	case types.OIDTimestamp, types.OIDTimestampTZ:
	case types.OIDDate:
		if args[0], err = expr.Coerce(args[0], types.Timestamp, expr.CastImplicit, w.pos); err != nil {
			return err
		}
	default:
		return pgerror.New(pgerror.DatatypeMismatch, "the time column of a window must be a timestamp, not %s", args[0].Type()).At(w.pos)
	}
	for i := range args[1:] {
		if args[i+1], err = expr.Coerce(args[i+1], types.Interval, expr.CastImplicit, w.pos); err != nil {
			return err
		}
	}
	text := "1970-01-01 00:00:00"
	if args[0].Type().OID == types.OIDTimestampTZ {
		text += "+00"
	}
	if w.origin, err = literal(types.Of(args[0].Type().OID), text, 0); err != nil {
		return err
	}
	if len(args) > want {
		w.origin, err = expr.NewOp("+", w.origin, args[want], w.pos)
	}
	return err
}

func (w *windowBinder) bin(size, at expr.Expr) (expr.Expr, error) {
	return expr.NewCall("date_bin", []expr.Expr{size, at, w.origin}, expr.CallOptions{Pos: w.pos})
}

// relation adds window_start and window_end to the rows of in.
func (w *windowBinder) relation(in plan.Rel, args []expr.Expr, hop bool) (plan.Rel, error) {
	size, slide := args[1], args[1]
	if hop {
		size = args[2]
	}
	for _, e := range []expr.Expr{slide, size} {
		if k, ok := e.(*expr.Const); ok && k.Typ.OID == types.OIDInterval && !k.Val.Null(0) &&
			types.CompareInterval(types.UnpackInterval(k.Val.U128s()[0]), types.Span{}) <= 0 {
			return nil, pgerror.New(pgerror.InvalidParameterValue, "the size and the slide of a window must be greater than zero").At(w.pos)
		}
	}
	last, err := w.bin(slide, args[0])
	if err != nil {
		return nil, err
	}
	typ := last.Type()
	if !hop {
		end, err := expr.NewOp("+", last, size, w.pos)
		if err != nil {
			return nil, err
		}
		return extend(in, []expr.Expr{last, end}, []plan.Column{{Name: "window_start", Type: typ}, {Name: "window_end", Type: typ}}), nil
	}
	before, err := expr.NewOp("-", args[0], size, w.pos)
	if err != nil {
		return nil, err
	}
	first, err := w.bin(slide, before)
	if err != nil {
		return nil, err
	}
	if first, err = expr.NewOp("+", first, slide, w.pos); err != nil {
		return nil, err
	}
	set, setArgs, _, err := resolveSet("generate_series", []expr.Expr{first, last, slide}, expr.CallOptions{Pos: w.pos})
	if err != nil {
		return nil, err
	}
	cols := append(in.Columns(), plan.Column{Name: "window_start", Type: typ})
	rel := &plan.FlatMap{Input: in, Fn: set, Args: setArgs, Cols: cols}
	end, err := expr.NewOp("+", plan.RefTo(cols, len(cols)-1), size, w.pos)
	if err != nil {
		return nil, err
	}
	return extend(rel, []expr.Expr{end}, []plan.Column{{Name: "window_end", Type: typ}}), nil
}
