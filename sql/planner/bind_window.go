package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// windowSpec is a window: its partitioning, its order, and the frame.
type windowSpec struct {
	partition []expr.Expr
	order     []plan.SortExpr
	frame     plan.Frame
	// framed says that the frame was written; such a window cannot be copied.
	framed bool
}

// windowCall is a window function call of a query level.
type windowCall struct {
	call plan.WindowCall
	spec *windowSpec
}

// The bits of PostgreSQL's frame options (parsenodes.h).
const (
	frameNondefault        = 0x00001
	frameRange             = 0x00002
	frameRows              = 0x00004
	frameGroups            = 0x00008
	frameBetween           = 0x00010
	frameStartUnboundedPre = 0x00020
	frameEndUnboundedFol   = 0x00100
	frameStartCurrent      = 0x00200
	frameEndCurrent        = 0x00400
	frameStartOffsetPre    = 0x00800
	frameEndOffsetPre      = 0x01000
	frameStartOffsetFol    = 0x02000
	frameExcludeCurrent    = 0x08000
	frameExcludeGroup      = 0x10000
	frameExcludeTies       = 0x20000
)

// namedWindow finds a window among the first n of the WINDOW clause.
func (x exprBinder) namedWindow(name string, n, pos int) (*windowSpec, error) {
	sel := x.scope.sel
	for i, node := range sel.stmt.GetWindowClause()[:n] {
		d := node.GetWindowDef()
		if d.Name != name {
			continue
		}
		if w := sel.named[name]; w != nil {
			return w, nil
		}
		for _, later := range sel.stmt.GetWindowClause()[i+1:] {
			if later.GetWindowDef().Name == name {
				return nil, pgerror.New(pgerror.WindowingError, "window \"%s\" is already defined", name).At(sel.pos(later.GetWindowDef().Location))
			}
		}
		w, err := x.windowDef(d, i)
		if err != nil {
			return nil, err
		}
		if sel.named == nil {
			sel.named = map[string]*windowSpec{}
		}
		sel.named[name] = w
		return w, nil
	}
	return nil, pgerror.New(pgerror.UndefinedObject, "window \"%s\" does not exist", name).At(pos)
}

// over binds what follows OVER.
func (x exprBinder) over(d *pg.WindowDef) (*windowSpec, error) {
	if d.Name != "" {
		return x.namedWindow(d.Name, len(x.scope.sel.stmt.GetWindowClause()), x.pos(d.Location))
	}
	return x.windowDef(d, len(x.scope.sel.stmt.GetWindowClause()))
}

// windowDef binds a window's definition, which may refer to the first n of the WINDOW
// clause.
func (x exprBinder) windowDef(d *pg.WindowDef, n int) (*windowSpec, error) {
	w := &windowSpec{}
	pos := x.pos(d.Location)
	kind := x.scope.kind
	x.scope.kind = inWindow
	defer func() { x.scope.kind = kind }()
	if d.Refname != "" {
		base, err := x.namedWindow(d.Refname, n, pos)
		if err != nil {
			return nil, err
		}
		switch {
		case len(d.PartitionClause) > 0:
			return nil, pgerror.New(pgerror.WindowingError, "cannot override PARTITION BY clause of window \"%s\"", d.Refname).At(pos)
		case len(d.OrderClause) > 0 && len(base.order) > 0:
			return nil, pgerror.New(pgerror.WindowingError, "cannot override ORDER BY clause of window \"%s\"", d.Refname).At(pos)
		case base.framed:
			err := pgerror.New(pgerror.WindowingError, "cannot copy window \"%s\" because it has a frame clause", d.Refname).At(pos)
			if len(d.OrderClause) == 0 && d.FrameOptions&frameNondefault == 0 {
				err = err.WithHint("Omit the parentheses in this OVER clause.")
			}
			return nil, err
		}
		w.partition, w.order = slices.Clone(base.partition), slices.Clone(base.order)
	}
	for _, n := range d.PartitionClause {
		e, err := x.expr(n)
		if err != nil {
			return nil, err
		}
		if e, err = textIfUnknown(e); err != nil {
			return nil, err
		}
		if err := x.noWindows(e, "window definitions", x.pos(nodeLocation(n))); err != nil {
			return nil, err
		}
		w.partition = append(w.partition, e)
	}
	if len(d.OrderClause) > 0 {
		order, err := x.sortExprs(d.OrderClause, resolveUnknown)
		if err != nil {
			return nil, err
		}
		w.order = order
	}
	return w, x.frame(w, d)
}

// sortExprs binds the ORDER BY of a window or an aggregate, where numbers and
// output names mean nothing special.
func (x exprBinder) sortExprs(list []*pg.Node, mode unknownMode) ([]plan.SortExpr, error) {
	var out []plan.SortExpr
	for _, n := range list {
		sb := n.GetSortBy()
		e, err := x.expr(sb.Node)
		if err != nil {
			return nil, err
		}
		if mode == resolveUnknown {
			if e, err = textIfUnknown(e); err != nil {
				return nil, err
			}
		}
		if err := x.checkSortable(e, x.pos(nodeLocation(sb.Node))); err != nil {
			return nil, err
		}
		o := plan.SortExpr{Expr: e}
		if o.Desc, o.NullsFirst, err = x.direction(sb); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// frame reads the frame of a window.
func (x exprBinder) frame(w *windowSpec, d *pg.WindowDef) error {
	o := d.FrameOptions
	w.framed = o&frameNondefault != 0
	unit, name := plan.FrameRange, "RANGE"
	switch {
	case o&frameRows != 0:
		unit, name = plan.FrameRows, "ROWS"
	case o&frameGroups != 0:
		unit, name = plan.FrameGroups, "GROUPS"
	}
	w.frame.Unit = unit
	pos := x.pos(d.Location)
	if unit == plan.FrameGroups && len(w.order) == 0 {
		return pgerror.New(pgerror.WindowingError, "GROUPS mode requires an ORDER BY clause").At(pos)
	}
	switch {
	case o&frameStartCurrent != 0:
		w.frame.Start.Kind = plan.CurrentRow
	case o&frameStartOffsetPre != 0:
		w.frame.Start.Kind = plan.OffsetPreceding
	case o&frameStartOffsetFol != 0:
		w.frame.Start.Kind = plan.OffsetFollowing
	default:
		w.frame.Start.Kind = plan.UnboundedPreceding
	}
	switch {
	case o&frameEndUnboundedFol != 0:
		w.frame.End.Kind = plan.UnboundedFollowing
	case o&frameEndOffsetPre != 0:
		w.frame.End.Kind = plan.OffsetPreceding
	case o&frameEndCurrent != 0, o&frameNondefault == 0, o&frameBetween == 0:
		w.frame.End.Kind = plan.CurrentRow
	default:
		w.frame.End.Kind = plan.OffsetFollowing
	}
	switch {
	case o&frameExcludeCurrent != 0:
		w.frame.Exclude = plan.ExcludeCurrentRow
	case o&frameExcludeGroup != 0:
		w.frame.Exclude = plan.ExcludeGroup
	case o&frameExcludeTies != 0:
		w.frame.Exclude = plan.ExcludeTies
	}
	var err error
	if w.frame.Start.Offset, err = x.frameOffset(w, d.StartOffset, name, pos); err != nil {
		return err
	}
	w.frame.End.Offset, err = x.frameOffset(w, d.EndOffset, name, pos)
	return err
}

// frameOffset binds the offset of a frame bound.
func (x exprBinder) frameOffset(w *windowSpec, n *pg.Node, unit string, pos int) (expr.Expr, error) {
	if n == nil {
		return nil, nil
	}
	at := x.pos(nodeLocation(n))
	e, err := x.expr(n)
	if err != nil {
		return nil, err
	}
	if expr.Any(e, func(e expr.Expr) bool { _, ok := e.(*expr.Column); return ok }) {
		return nil, pgerror.New(pgerror.InvalidColumnReference, "argument of %s must not contain variables", unit).At(at)
	}
	if unit != "RANGE" {
		if !expr.CanCoerce(e.Type(), types.Int8, expr.CastAssignment) {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "argument of %s must be type bigint, not type %s", unit, e.Type()).At(at)
		}
		return expr.Coerce(e, types.Int8, expr.CastAssignment, at)
	}
	if len(w.order) != 1 {
		return nil, pgerror.New(pgerror.WindowingError, "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column").At(pos)
	}
	key := w.order[0].Expr.Type()
	typ, ok := rangeOffsetType(key.OID)
	if !ok {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "RANGE with offset PRECEDING/FOLLOWING is not supported for column type %s", key).At(at)
	}
	if !expr.CanCoerce(e.Type(), typ, expr.CastImplicit) {
		return nil, pgerror.New(pgerror.FeatureNotSupported,
			"RANGE with offset PRECEDING/FOLLOWING is not supported for column type %s and offset type %s", key, e.Type()).
			WithHint("Cast the offset value to an appropriate type.").At(at)
	}
	return expr.Coerce(e, typ, expr.CastImplicit, at)
}

// rangeOffsetType is the type of RANGE offsets over a type.
func rangeOffsetType(o types.OID) (types.Type, bool) {
	switch o {
	case types.OIDInt2, types.OIDInt4, types.OIDInt8:
		return types.Int8, true
	case types.OIDFloat4, types.OIDFloat8:
		return types.Float8, true
	case types.OIDNumeric:
		return types.Numeric, true
	case types.OIDDate, types.OIDTime, types.OIDTimeTZ, types.OIDTimestamp, types.OIDTimestampTZ, types.OIDInterval:
		return types.Interval, true
	}
	return types.Unknown, false
}

// noWindows refuses window functions inside of a clause.
func (x exprBinder) noWindows(e expr.Expr, clause string, pos int) error {
	if hasPlaceholder(e, windowBase, srfBase) {
		return pgerror.New(pgerror.WindowingError, "window functions are not allowed in %s", clause).At(pos)
	}
	return nil
}

// hasPlaceholder reports whether e contains a column with a number in [lo, hi).
func hasPlaceholder(e expr.Expr, lo, hi int) bool { return placeholderIn(e, lo, hi) >= 0 }

// placeholderIn is the number of a column of e in [lo, hi), -1 if there is none.
func placeholderIn(e expr.Expr, lo, hi int) int {
	found := -1
	if e != nil {
		expr.Walk(e, func(n expr.Expr) bool {
			if c, ok := n.(*expr.Column); ok && c.Index >= lo && c.Index < hi && found < 0 {
				found = c.Index
			}
			return found < 0
		})
	}
	return found
}

// pureWindow describes the functions that are only window functions.
type pureWindow struct {
	least, most int // number of arguments
	typ         types.Type
	// value says that the result has the type of the first argument; offset
	// that the second is an int4; dflt that the third is of the first's type.
	value, offset, dflt bool
}

var pureWindows = map[string]pureWindow{
	"row_number":   {typ: types.Int8},
	"rank":         {typ: types.Int8},
	"dense_rank":   {typ: types.Int8},
	"percent_rank": {typ: types.Float8},
	"cume_dist":    {typ: types.Float8},
	"ntile":        {least: 1, most: 1, typ: types.Int4},
	"lag":          {least: 1, most: 3, value: true, offset: true, dflt: true},
	"lead":         {least: 1, most: 3, value: true, offset: true, dflt: true},
	"first_value":  {least: 1, most: 1, value: true},
	"last_value":   {least: 1, most: 1, value: true},
	"nth_value":    {least: 2, most: 2, value: true, offset: true},
}

// IsWindowFunction reports whether name is that of a window function that is no
// aggregate.
func IsWindowFunction(name string) bool {
	_, ok := pureWindows[name]
	return ok
}

// windowFunction binds a call with OVER.
func (x exprBinder) windowFunction(f *pg.FuncCall, name string, args []expr.Expr, ignoreNulls bool, pos int) (expr.Expr, error) {
	sel := x.scope.sel
	if x.scope.kind.window != "" || sel == nil {
		return nil, pgerror.New(pgerror.WindowingError, "window functions are not allowed in %s", x.scope.kind.window).At(pos)
	}
	call := plan.WindowCall{Name: name, Pos: pos}
	var err error
	if f.AggDistinct {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "DISTINCT is not implemented for window functions").At(pos)
	}
	if len(f.AggOrder) > 0 && !f.AggWithinGroup {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "aggregate ORDER BY is not implemented for window functions").At(pos)
	}
	if f.AggWithinGroup {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "OVER is not supported for ordered-set aggregate %s", name).At(pos)
	}
	if w, ok := pureWindows[name]; ok {
		if err := x.pureWindow(&call, w, args, pos); err != nil {
			return nil, err
		}
		if f.AggFilter != nil {
			return nil, pgerror.New(pgerror.FeatureNotSupported, "FILTER is not implemented for non-aggregate window functions").At(pos)
		}
		call.IgnoreNulls = ignoreNulls
	} else {
		opts := expr.CallOptions{Pos: pos, Star: f.AggStar, Variadic: f.FuncVariadic}
		if call.Agg, call.Args, call.Typ, err = expr.ResolveAggregate(name, args, opts); err != nil {
			return nil, err
		}
		if call.Filter, err = x.filterClause(f.AggFilter); err != nil {
			return nil, err
		}
		if ignoreNulls {
			call.Filter = alsoPresent(call.Filter, call.Args[0])
		}
	}
	call.Typ = x.shapedResult(call.Typ, call.Args)
	for _, a := range append(call.Args[:len(call.Args):len(call.Args)], call.Filter) {
		if i := placeholderIn(a, windowBase, srfBase); i >= 0 {
			return nil, pgerror.New(pgerror.WindowingError, "window function calls cannot be nested").At(sel.windows[i-windowBase].call.Pos)
		}
		if err := x.refuseSets("window function calls cannot contain set-returning function calls", a); err != nil {
			return nil, err
		}
	}
	if x.scope.kind == inWindow {
		return nil, pgerror.New(pgerror.WindowingError, "window functions are not allowed in %s", x.scope.kind.window).At(pos)
	}
	spec, err := x.over(f.Over)
	if err != nil {
		return nil, err
	}
	own := *spec // its expressions are rewritten with the level's
	own.partition, own.order = slices.Clone(spec.partition), slices.Clone(spec.order)
	call.Frame = own.frame
	w := windowCall{call: call, spec: &own}
	i := slices.IndexFunc(sel.windows, w.same)
	if i < 0 {
		i = len(sel.windows)
		sel.windows = append(sel.windows, w)
	}
	e := &expr.Column{Index: windowBase + i, Typ: call.Typ, Name: name}
	if pureWindows[name].value && len(args) < 3 {
		return x.declareCommon(e, args[:1]), nil
	}
	return e, nil
}

// same reports whether two calls have the same value for each row.
func (w windowCall) same(o windowCall) bool {
	a, b := &w.call, &o.call
	if a.Name != b.Name || a.Agg != b.Agg || a.IgnoreNulls != b.IgnoreNulls || a.Typ != b.Typ ||
		a.Frame.Unit != b.Frame.Unit || a.Frame.Exclude != b.Frame.Exclude ||
		a.Frame.Start.Kind != b.Frame.Start.Kind || a.Frame.End.Kind != b.Frame.End.Kind ||
		!slices.EqualFunc(w.spec.order, o.spec.order, func(a, b plan.SortExpr) bool { return a.Desc == b.Desc && a.NullsFirst == b.NullsFirst }) {
		return false
	}
	return sameExprs(w.exprs(), o.exprs())
}

// exprs are those that a call is computed by.
func (w windowCall) exprs() []expr.Expr {
	var out []expr.Expr
	for _, e := range append(slices.Clone(w.call.Args), w.call.Filter, w.call.Frame.Start.Offset, w.call.Frame.End.Offset) {
		if e == nil {
			e = boolConst(true) // an argument is never left out where another is not
		}
		out = append(out, e)
	}
	for _, e := range w.spec.exprs() {
		out = append(out, *e)
	}
	return out
}

// pureWindow resolves the arguments of a true window function.
func (x exprBinder) pureWindow(call *plan.WindowCall, w pureWindow, args []expr.Expr, pos int) error {
	if len(args) > 0 && w.most == 0 && call.Name != "row_number" {
		return pgerror.New(pgerror.WrongObjectType, "WITHIN GROUP is required for ordered-set aggregate %s", call.Name).At(pos)
	}
	if len(args) < w.least || len(args) > w.most {
		return x.noFunction(call.Name, args, pos)
	}
	call.Typ = w.typ
	call.Args = append([]expr.Expr(nil), args...)
	var err error
	if call.Name == "ntile" {
		call.Args[0], err = x.argument(call.Name, args, 0, types.Int4, pos)
		return err
	}
	if !w.value {
		return nil
	}
	typ := types.Of(args[0].Type().OID)
	if w.dflt && len(args) == 3 {
		common, err := expr.CommonType([]expr.Expr{args[0], args[2]}, "window function")
		if err != nil {
			return x.noFunction(call.Name, args, pos)
		}
		typ = types.Of(common.OID)
		if call.Args[2], err = expr.Coerce(args[2], typ, expr.CastImplicit, pos); err != nil {
			return err
		}
	}
	if typ.OID == types.OIDUnknown {
		if len(args) < 3 {
			return pgerror.New(pgerror.DatatypeMismatch, "could not determine polymorphic type because input has type unknown")
		}
		typ = types.Text
	}
	call.Typ = typ
	if call.Args[0], err = expr.Coerce(args[0], typ, expr.CastImplicit, pos); err != nil {
		return err
	}
	if w.offset && len(args) > 1 {
		call.Args[1], err = x.argument(call.Name, args, 1, types.Int4, pos)
	}
	return err
}

// argument coerces an argument of a window function.
func (x exprBinder) argument(name string, args []expr.Expr, i int, typ types.Type, pos int) (expr.Expr, error) {
	if !expr.CanCoerce(args[i].Type(), typ, expr.CastImplicit) {
		return nil, x.noFunction(name, args, pos)
	}
	return expr.Coerce(args[i], typ, expr.CastImplicit, pos)
}

// window makes the Window nodes: one for all calls over the same partitioning
// and order.
func (sel *selectState) window() {
	if len(sel.windows) == 0 {
		return
	}
	at := make([]int, len(sel.windows)) // column of each call
	done := make([]bool, len(sel.windows))
	for i := range sel.windows {
		if done[i] {
			continue
		}
		w := &plan.Window{Input: sel.rel, Partition: sel.windows[i].spec.partition, Order: sel.windows[i].spec.order}
		w.Cols = append(w.Cols, sel.rel.Columns()...)
		for j := i; j < len(sel.windows); j++ {
			c := &sel.windows[j]
			if done[j] || !sameWindow(sel.windows[i].spec, c.spec) {
				continue
			}
			done[j], at[j] = true, len(w.Cols)
			w.Calls = append(w.Calls, c.call)
			w.Cols = append(w.Cols, plan.Column{Name: c.call.Name, Type: c.call.Typ})
		}
		sel.rel = w
	}
	sel.resolvePlaceholders(windowBase, srfBase, func(i int) int { return at[i] })
}

func sameWindow(a, b *windowSpec) bool {
	if len(a.partition) != len(b.partition) || len(a.order) != len(b.order) {
		return false
	}
	for i := range a.partition {
		if !expr.Equal(a.partition[i], b.partition[i]) {
			return false
		}
	}
	for i, o := range a.order {
		p := b.order[i]
		if o.Desc != p.Desc || o.NullsFirst != p.NullsFirst || !expr.Equal(o.Expr, p.Expr) {
			return false
		}
	}
	return true
}

// resolvePlaceholders replaces the placeholders with numbers in [lo, hi) by the
// columns that at gives.
func (sel *selectState) resolvePlaceholders(lo, hi int, at func(int) int) {
	fix := func(e expr.Expr) expr.Expr {
		return mapRefs(e, func(c *expr.Column) expr.Expr {
			if c.Index >= lo && c.Index < hi {
				return &expr.Column{Index: at(c.Index - lo), Typ: c.Typ, Name: c.Name}
			}
			return c
		}, func(c *expr.OuterColumn, level int) expr.Expr {
			if level > 0 && c.Depth == level && c.Index >= lo && c.Index < hi {
				return &expr.OuterColumn{Depth: c.Depth, Index: at(c.Index - lo), Typ: c.Typ, Name: c.Name}
			}
			return c
		})
	}
	for i := range sel.items {
		sel.items[i].expr = fix(sel.items[i].expr)
	}
	if sel.qualify != nil {
		sel.qualify = fix(sel.qualify)
	}
	for i := range sel.srfs {
		for j := range sel.srfs[i].args {
			sel.srfs[i].args[j] = fix(sel.srfs[i].args[j])
		}
	}
}
