package expr

import (
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// NewCase makes a searched CASE: whens have bool conditions (coerced here),
// the branches get their common type. For `CASE x WHEN v …` the binder gives
// NewOp("=", x, v) as conditions. els may be nil.
func NewCase(whens []When, els Expr, pos int) (Expr, error) {
	// PostgreSQL looks at ELSE first.
	var results []Expr
	if els != nil {
		results = append(results, els)
	}
	for _, w := range whens {
		results = append(results, w.Then)
	}
	typ, err := matchTypes(results, "CASE")
	if err != nil {
		return nil, pgerror.As(err).At(pos)
	}
	out := &Case{Typ: typ}
	for _, w := range whens {
		cond, err := CoerceToBool(w.Cond, "CASE/WHEN", pos)
		if err != nil {
			return nil, err
		}
		then, err := coerceCommon(w.Then, typ, "CASE/WHEN", pos)
		if err != nil {
			return nil, err
		}
		out.Whens = append(out.Whens, When{Cond: cond, Then: then})
	}
	if els != nil {
		if out.Else, err = coerceCommon(els, typ, "CASE/ELSE", pos); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// coerceCommon coerces to a type that CommonType found.
func coerceCommon(e Expr, typ types.Type, context string, pos int) (Expr, error) {
	if t := e.Type(); !CanCoerce(t, typ, CastImplicit) {
		return nil, pgerror.New(pgerror.CannotCoerce, "%s could not convert type %s to %s", context, t.OID, typ.OID).At(PosOf(e))
	}
	return coerceBase(e, typ, CastImplicit, pos)
}

// coerceAll gives expressions their common type.
func coerceAll(es []Expr, context string, pos int) ([]Expr, types.Type, error) {
	typ, err := CommonType(es, context)
	if err != nil {
		return nil, typ, pgerror.As(err).At(pos)
	}
	out := make([]Expr, len(es))
	for i, e := range es {
		if out[i], err = coerceCommon(e, typ, context, pos); err != nil {
			return nil, typ, err
		}
	}
	return out, typ, nil
}

// NewCoalesce makes COALESCE(args…).
func NewCoalesce(args []Expr, pos int) (Expr, error) {
	args, typ, err := coerceAll(args, "COALESCE", pos)
	if err != nil {
		return nil, err
	}
	return &Coalesce{Args: args, Typ: typ}, nil
}

// NewMinMax makes GREATEST(args…) or LEAST(args…).
func NewMinMax(greatest bool, args []Expr, pos int) (Expr, error) {
	name, op := "LEAST", "<"
	if greatest {
		name, op = "GREATEST", ">"
	}
	args, typ, err := coerceAll(args, name, pos)
	if err != nil {
		return nil, err
	}
	less, err := findOperator(op, []types.OID{typ.OID, typ.OID}, pos)
	if err != nil {
		return nil, pgerror.New(pgerror.UndefinedFunction, "could not identify a comparison function for type %s", typ.OID).At(pos)
	}
	return &Call{Fn: minMaxFunc(name, typ, less, len(args)), Args: args, Typ: typ, Pos: pos}, nil
}

// NewNullIf makes NULLIF(a, b): a unless a = b.
func NewNullIf(a, b Expr, pos int) (Expr, error) {
	return Once(a, pos, func(a Expr) (Expr, error) { return nullIf(a, b, pos) })
}

func nullIf(a, b Expr, pos int) (Expr, error) {
	eq, err := NewOp("=", a, b, pos)
	if err != nil {
		return nil, err
	}
	call, ok := eq.(*Call)
	if !ok || call.Typ.OID != types.OIDBool {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "NULLIF requires = operator to yield boolean").At(pos)
	}
	res := call.Args[0]
	typ := res.Type()
	return &Case{Whens: []When{{Cond: eq, Then: NullConst(typ)}}, Else: res, Typ: typ}, nil
}

// NewArray makes ARRAY[elems…]; elements that are ARRAY[…] themselves make a
// multidimensional array.
func NewArray(elems []Expr, pos int) (Expr, error) {
	if len(elems) == 0 {
		return nil, pgerror.New(pgerror.IndeterminateDatatype, "cannot determine type of empty array").
			WithHint("Explicitly cast to the desired type, for example ARRAY[]::integer[].").At(pos)
	}
	elems, typ, err := coerceAll(elems, "ARRAY", pos)
	if err != nil {
		return nil, err
	}
	if typ.OID.IsArray() {
		return &ArrayCtor{Elems: elems, Typ: typ}, nil
	}
	if typ.OID.Array() == 0 {
		return nil, pgerror.New(pgerror.UndefinedObject, "could not find array type for data type %s", typ.OID).At(pos)
	}
	return &ArrayCtor{Elems: elems, Typ: typ.ArrayType()}, nil
}

// NewArrayOf makes ARRAY[elems…]::typ: the cast applies to the elements.
func NewArrayOf(elems []Expr, typ types.Type, pos int) (Expr, error) {
	out := make([]Expr, len(elems))
	for i, e := range elems {
		to := typ.ElemType()
		nested, ok := e.(*ArrayCtor)
		if ok || e.Type().OID.IsArray() {
			to = typ
		}
		var err error
		if ok {
			out[i], err = NewArrayOf(nested.Elems, typ, pos)
		} else {
			out[i], err = coerce(e, to, CastExplicit, pos)
		}
		if err != nil {
			return nil, err
		}
	}
	return &ArrayCtor{Elems: out, Typ: typ}, nil
}

// NewRow makes ROW(fields…).
func NewRow(fields []Expr) Expr {
	out := &Row{Fields: make([]Expr, len(fields)), Typ: types.Record}
	for i, f := range fields {
		out.Fields[i] = f
		if f.Type().OID == types.OIDUnknown {
			if e, err := coerce(f, types.Text, CastImplicit, 0); err == nil {
				out.Fields[i] = e
				if _, ok := f.(*Const); !ok {
					continue
				}
				if out.literals == nil {
					out.literals = make([]Expr, len(fields))
				}
				out.literals[i] = f
			}
		}
	}
	return out
}

// NewIn makes `arg [NOT] IN (list…)`; arg may be a Row.
func NewIn(arg Expr, list []Expr, not bool, pos int) (Expr, error) {
	e, err := newIn(arg, list, not, pos)
	if err != nil || !not {
		return e, err
	}
	return &Not{Arg: e}, nil
}

func newIn(arg Expr, list []Expr, not bool, pos int) (Expr, error) {
	// Items without columns are compared as one list of one type if they have one.
	var fixed, rest []Expr
	if _, isRow := arg.(*Row); isRow {
		rest = list
	} else {
		for _, e := range list {
			if UsesColumns(e) || Any(e, isOuter) {
				rest = append(rest, e)
			} else {
				fixed = append(fixed, e)
			}
		}
	}
	var out []Expr
	if len(fixed) > 1 {
		in, ok, err := inConstants(arg, fixed, pos)
		if err != nil {
			return nil, err
		}
		if ok {
			out, fixed = append(out, in), nil
		}
	}
	for _, e := range append(fixed, rest...) {
		eq, err := NewOp("=", arg, e, pos)
		if err != nil && not {
			_, err = NewOp("<>", arg, e, pos) // the operator to complain about
		}
		if err == nil {
			eq, err = CoerceToBool(eq, "IN", pos)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, eq)
	}
	if len(out) == 1 {
		return out[0], nil
	}
	return &Logic{Args: out}, nil
}

func isOuter(e Expr) bool {
	switch e.(type) {
	case *OuterColumn, *Subquery:
		return true
	}
	return false
}

// inConstants makes an InList over items of one common type, if they have one.
func inConstants(arg Expr, list []Expr, pos int) (Expr, bool, error) {
	typ, err := CommonType(append([]Expr{arg}, list...), "IN")
	if err != nil || typ.OID == types.OIDRecord || typ.OID.Array() == 0 {
		return nil, false, nil
	}
	items := make([]Expr, len(list))
	for i, e := range list {
		if items[i], err = coerceCommon(e, typ, "IN", pos); err != nil {
			return nil, false, err
		}
	}
	op, err := findOperator("=", []types.OID{arg.Type().OID, typ.OID}, pos)
	if err != nil {
		return nil, false, err
	}
	if arg, err = coerceBase(arg, op.Args[0], CastImplicit, pos); err != nil {
		return nil, false, err
	}
	for i := range items {
		if items[i], err = coerceBase(items[i], op.Args[1], CastImplicit, pos); err != nil {
			return nil, false, err
		}
	}
	return &InList{Op: op, Arg: arg, List: items, Pos: pos}, true, nil
}

// NewBetween makes `arg [NOT] BETWEEN [SYMMETRIC] lo AND hi`.
func NewBetween(arg, lo, hi Expr, not, symmetric bool, pos int) (Expr, error) {
	between := func(lo, hi Expr) (Expr, error) {
		ops, and := [2]string{">=", "<="}, true
		if not {
			ops, and = [2]string{"<", ">"}, false
		}
		l, err := NewOp(ops[0], arg, lo, pos)
		if err != nil {
			return nil, err
		}
		r, err := NewOp(ops[1], arg, hi, pos)
		if err != nil {
			return nil, err
		}
		return NewLogic(and, []Expr{l, r}, pos)
	}
	e, err := between(lo, hi)
	if err != nil || !symmetric {
		return e, err
	}
	s, err := between(hi, lo)
	if err != nil {
		return nil, err
	}
	return NewLogic(not, []Expr{e, s}, pos)
}

// NewDistinct makes `l IS [NOT] DISTINCT FROM r`; both may be Rows.
func NewDistinct(l, r Expr, not bool, pos int) (Expr, error) {
	if lf, rf, ok := rowPair(l, r); ok {
		if len(lf) != len(rf) {
			return nil, errRowLength(pos)
		}
		var parts []Expr
		for i := range lf {
			p, err := NewDistinct(lf[i], rf[i], not, pos)
			if err != nil {
				return nil, err
			}
			parts = append(parts, p)
		}
		return NewLogic(not, parts, pos)
	}
	// A literal NULL asks for IS [NOT] NULL, but for rows: one of NULLs is no NULL here.
	if _, row := l.(*Row); row && isUnknownNull(r) {
		return boolConst(!not), nil
	}
	if _, row := r.(*Row); row && isUnknownNull(l) {
		return boolConst(!not), nil
	}
	if isUnknownNull(r) && !isRecord(l.Type()) {
		return NewIsNull(l, !not), nil
	}
	if isUnknownNull(l) && !isRecord(r.Type()) {
		return NewIsNull(r, !not), nil
	}
	eq, err := NewOp("=", l, r, pos)
	if err != nil {
		return nil, err
	}
	call, ok := eq.(*Call)
	if !ok || call.Typ.OID != types.OIDBool {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "IS DISTINCT FROM requires = operator to yield boolean").At(pos)
	}
	out := &Call{Fn: distinctFunc(call.Fn, call.Args), Args: call.Args, Typ: types.Bool, Pos: pos}
	if not {
		return &Not{Arg: out}, nil
	}
	return out, nil
}

// IsDistinct gives the two sides of `l IS DISTINCT FROM r`.
func IsDistinct(e Expr) (l, r Expr, ok bool) {
	c, ok := e.(*Call)
	if !ok || c.Fn.Name != distinctName {
		return nil, nil, false
	}
	return c.Args[0], c.Args[1], true
}

func isUnknownNull(e Expr) bool { return e.Type().OID == types.OIDUnknown && IsNullConst(e) }

// NewArrayOp makes `left op ANY|ALL (array)`.
func NewArrayOp(op string, left, array Expr, all bool, pos int) (Expr, error) {
	if op == "!=" {
		op = "<>"
	}
	at := array.Type().OID
	elem := at.Elem()
	if at == types.OIDUnknown {
		elem = types.OIDUnknown
	} else if elem == 0 {
		return nil, pgerror.New(pgerror.WrongObjectType, "op ANY/ALL (array) requires array on right side").At(pos)
	} else if elem.IsDomain() {
		elem = types.Of(elem).Storage().OID
		array = Relabeled(array, types.Of(elem.Array()))
	}
	fn, err := findOperator(op, []types.OID{left.Type().OID, elem}, pos)
	if err != nil {
		return nil, err
	}
	if fn.Ret.OID != types.OIDBool {
		return nil, pgerror.New(pgerror.WrongObjectType, "op ANY/ALL (array) requires operator to yield boolean").At(pos)
	}
	g, err := resolveGeneric([]types.OID{left.Type().OID, elem}, []types.OID{fn.Args[0].OID, fn.Args[1].OID})
	if err != nil {
		return nil, pgerror.As(err).At(pos)
	}
	lt, err := g.actual(fn.Args[0])
	if err != nil {
		return nil, pgerror.As(err).At(pos)
	}
	rt, err := g.actual(fn.Args[1])
	if err != nil {
		return nil, pgerror.As(err).At(pos)
	}
	if rt.OID.Array() == 0 {
		return nil, pgerror.New(pgerror.UndefinedObject, "could not find array type for data type %s", rt.OID).At(pos)
	}
	if isRecord(lt) && isRecord(rt) && !(left.Type().OID == elem && elem.IsComposite()) {
		fn = similarOperator(fn)
	}
	if left, err = coerceBase(left, lt, CastImplicit, pos); err != nil {
		return nil, err
	}
	if array, err = coerceBase(array, types.Of(rt.OID.Array()), CastImplicit, pos); err != nil {
		return nil, err
	}
	return &ArrayOp{Op: fn, All: all, Left: left, Right: array, Pos: pos}, nil
}

// NewIsNull makes `arg IS [NOT] NULL`, field by field for a Row.
func NewIsNull(arg Expr, not bool) Expr {
	r, ok := arg.(*Row)
	if !ok || len(r.Fields) == 0 {
		return &IsNull{Arg: arg, Not: not}
	}
	parts := make([]Expr, len(r.Fields))
	for i, f := range r.Fields {
		parts[i] = &IsNull{Arg: f, Not: not}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &Logic{And: true, Args: parts}
}

// BoolTest is the kind of `IS [NOT] TRUE|FALSE|UNKNOWN`.
type BoolTest uint8

// The boolean tests.
const (
	IsTrue BoolTest = iota
	IsNotTrue
	IsFalse
	IsNotFalse
	IsUnknown
	IsNotUnknown
)

// NewBoolTest makes `arg IS [NOT] TRUE|FALSE|UNKNOWN`.
func NewBoolTest(arg Expr, test BoolTest, pos int) (Expr, error) {
	names := [...]string{"IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN", "IS NOT UNKNOWN"}
	arg, err := CoerceToBool(arg, names[test], pos)
	if err != nil {
		return nil, err
	}
	if test == IsUnknown || test == IsNotUnknown {
		return &IsNull{Arg: arg, Not: test == IsNotUnknown}, nil
	}
	return &Call{Fn: boolTests[test], Args: []Expr{arg}, Typ: types.Bool, Pos: pos}, nil
}

// NewLogic makes AND or OR; arguments are coerced to bool, nested ones flattened.
func NewLogic(and bool, args []Expr, pos int) (Expr, error) {
	name := "OR"
	if and {
		name = "AND"
	}
	out := &Logic{And: and}
	for _, a := range args {
		a, err := CoerceToBool(a, name, pos)
		if err != nil {
			return nil, err
		}
		if l, ok := a.(*Logic); ok && l.And == and {
			out.Args = append(out.Args, l.Args...)
		} else {
			out.Args = append(out.Args, a)
		}
	}
	if len(out.Args) == 1 {
		return out.Args[0], nil
	}
	return out, nil
}

// NewNot makes NOT arg.
func NewNot(arg Expr, pos int) (Expr, error) {
	arg, err := CoerceToBool(arg, "NOT", pos)
	if err != nil {
		return nil, err
	}
	return &Not{Arg: arg}, nil
}

// rowPair gives the fields of two row constructors. Whole rows of relations,
// which have names, are records.
func rowPair(l, r Expr) (lf, rf []Expr, ok bool) {
	a, ok1 := l.(*Row)
	b, ok2 := r.(*Row)
	if !ok1 || !ok2 || a.Names != nil || b.Names != nil || a.Typ.OID != types.OIDRecord || b.Typ.OID != types.OIDRecord {
		return nil, nil, false
	}
	return a.Fields, b.Fields, true
}

func errRowLength(pos int) error {
	return pgerror.New(pgerror.SyntaxError, "unequal number of entries in row expressions").At(pos)
}

// compareRows compares row constructors field by field; the order is
// lexicographic and NULL where a NULL field decides.
func compareRows(op string, l, r []Expr, pos int) (Expr, error) {
	if len(l) != len(r) {
		return nil, errRowLength(pos)
	}
	if len(l) == 0 {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot compare rows of zero length").At(pos)
	}
	switch op {
	case "=", "<>":
		parts := make([]Expr, len(l))
		for i := range l {
			p, err := NewOp(op, l[i], r[i], pos)
			if err != nil {
				return nil, err
			}
			parts[i] = p
		}
		return NewLogic(op == "=", parts, pos)
	case "<", "<=", ">", ">=":
		return compareRowsOrdered(op, l, r, pos)
	}
	return nil, pgerror.New(pgerror.FeatureNotSupported, "could not determine interpretation of row comparison operator %s", op).
		WithHint("Row comparison operators must be associated with btree operator families.").At(pos)
}

// compareRowsOrdered makes l1 < r1 OR (l1 = r1 AND …).
func compareRowsOrdered(op string, l, r []Expr, pos int) (Expr, error) {
	// All pairs are resolved by the operator, from the left.
	pairs := make([]*Call, len(l))
	for i := range l {
		e, err := NewOp(op, l[i], r[i], pos)
		if err != nil {
			return nil, err
		}
		c, ok := e.(*Call)
		if !ok {
			return nil, pgerror.Unsupported("comparison of nested rows")
		}
		pairs[i] = c
	}
	var out Expr = pairs[len(pairs)-1]
	for i := len(pairs) - 2; i >= 0; i-- {
		a, b := pairs[i].Args[0], pairs[i].Args[1]
		less, err := NewOp(op[:1], a, b, pos)
		if err != nil {
			return nil, err
		}
		eq, err := NewOp("=", a, b, pos)
		if err != nil {
			return nil, err
		}
		out = &Logic{Args: []Expr{less, &Logic{And: true, Args: []Expr{eq, out}}}}
	}
	return out, nil
}
