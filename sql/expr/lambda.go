package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Lambda is `|x, …| body`, an argument of a function that applies it. The body
// is over columns: the parameters, then the arguments of the call from the
// second on, which are what the body takes from around.
type Lambda struct {
	Params []string
	Body   Expr
}

// compile makes what a kernel evaluates of a lambda.
func (l *Lambda) compile() (*node, int, error) {
	var comp compiler
	n, err := comp.compile(l.Body)
	return n, len(comp.nodes), err
}

// lambdaFn is a function that applies a lambda to its first argument.
func lambdaFn(name string, l *Lambda, arg, ret types.Type, bind func(body *node, nodes int) Kernel) *Function {
	return &Function{
		Name: name, Args: []types.Type{arg}, Ret: ret, Volatility: VolatilityOf(l.Body), Lambda: l,
		Bind: func(*Call) (Kernel, error) {
			n, nodes, err := l.compile()
			if err != nil {
				return nil, err
			}
			return bind(n, nodes), nil
		},
	}
}

// elementsOf are the elements of the arrays of all rows, and the row of each.
func elementsOf(arrays *columnar.Vec, kind columnar.Kind, n int) (vals *columnar.Vec, owner []uint32) {
	b := columnar.NewBuilder(kind, n)
	for i := range n {
		if arrays.Null(i) {
			continue
		}
		a := types.ReadArray(arrays.Bytes(i))
		a.AppendElems(b, 0, a.N)
		for range a.N {
			owner = append(owner, uint32(i))
		}
	}
	return b.Build(), owner
}

// around are the columns of a lambda's body: the parameters, and the arguments
// that the body takes from around, for each of the parameters' rows.
func around(params []*columnar.Vec, args []*columnar.Vec, owner []uint32) []*columnar.Vec {
	cols := append([]*columnar.Vec(nil), params...)
	for _, a := range args {
		cols = append(cols, a.Gather(owner))
	}
	return cols
}

// NewArrayTransform is array_transform: an array of what the lambda makes of
// each element. With filter it is array_filter: of the elements for which the
// lambda is true.
func NewArrayTransform(array Expr, l *Lambda, captured []Expr, filter bool, pos int) (Expr, error) {
	elem := array.Type().OID.Elem()
	name, typ := "array_transform", types.Type{OID: l.Body.Type().OID.Array(), Mod: -1}
	if t := l.Body.Type(); t.OID.IsArray() {
		typ = t
	}
	if filter {
		name, typ = "array_filter", array.Type()
		if l.Body.Type().OID != types.OIDBool {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "lambda of array_filter must give boolean, not %s", l.Body.Type()).At(pos)
		}
	}
	if typ.OID == 0 {
		return nil, pgerror.New(pgerror.UndefinedObject, "could not find array type for data type %s", l.Body.Type()).At(pos)
	}
	kernel := func(body *node, nodes int) Kernel {
		return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			vals, owner := elementsOf(args[0], types.Of(elem).Kind(), n)
			made := x.nested(body, nodes, around([]*columnar.Vec{vals}, args[1:], owner), owner)
			if !filter && l.Body.Type().OID.IsArray() {
				return nestMade(x, args[0], n, typ, made)
			}
			return regroup(args[0], n, typ.OID.Elem(), vals, made, filter)
		}
	}
	fn := lambdaFn(name, l, types.Of(array.Type().OID), types.Of(typ.OID), kernel)
	return &Call{Fn: fn, Args: append([]Expr{array}, captured...), Typ: typ, Pos: pos}, nil
}

// nestMade makes arrays of arrays of what a lambda made of the elements.
func nestMade(x *Eval, arrays *columnar.Vec, n int, typ types.Type, made *columnar.Vec) *columnar.Vec {
	out := x.Builder(columnar.KindBytes, n)
	at := 0
	for i := range n {
		if arrays.Null(i) {
			out.Null()
			continue
		}
		size := types.ReadArray(arrays.Bytes(i)).N
		if size == 0 {
			out.Extend(func(dst []byte) []byte { return types.AppendEmptyArray(dst, typ.OID.Elem()) })
		} else if err := collectNested(x, &AggregateCall{Typ: typ}, []*columnar.Vec{made}, at, at+size, out); err != nil {
			x.Fail(i, pgerror.As(err))
			out.Null()
		}
		at += size
	}
	return out.Build()
}

// regroup makes arrays again of what a lambda made of the elements of arrays.
func regroup(arrays *columnar.Vec, n int, elem types.OID, vals, made *columnar.Vec, filter bool) *columnar.Vec {
	out := columnar.NewBuilder(columnar.KindBytes, n)
	at := 0
	for i := range n {
		if arrays.Null(i) {
			out.Null()
			continue
		}
		a := types.ReadArray(arrays.Bytes(i))
		switch {
		case filter:
			kept := columnar.NewBuilder(vals.Kind(), a.N)
			for k := at; k < at+a.N; k++ {
				if !made.Null(k) && made.Bools()[k] {
					kept.AppendFrom(vals, k)
				}
			}
			v := kept.Build()
			out.Extend(func(dst []byte) []byte { return types.AppendList(dst, elem, v, 0, v.Len()) })
		default:
			out.Extend(func(dst []byte) []byte { return types.AppendArray(dst, elem, a.Dims[:a.NDim], made, at, at+a.N) })
		}
		at += a.N
	}
	return out.Build()
}

// onceColumn is the number of the column that stands for a value computed once,
// until its place in a lambda is known.
const onceColumn = 1 << 29

// Once makes an expression that build makes of a value which it may use several
// times: a volatile one is computed once and handed on.
//
//	CASE nextval('s') WHEN 1 THEN a WHEN 2 THEN b END  →  let(nextval('s'), |x| CASE WHEN x = 1 THEN a WHEN x = 2 THEN b END)
func Once(value Expr, pos int, build func(v Expr) (Expr, error)) (Expr, error) {
	if VolatilityOf(value) != Volatile {
		return build(value)
	}
	body, err := build(&Column{Index: onceColumn, Typ: value.Type(), Name: "x"})
	if err != nil {
		return nil, err
	}
	args := []Expr{value}
	var lift func(e Expr) Expr
	lift = func(e Expr) Expr {
		switch c := e.(type) {
		case *Column:
			if c.Index == onceColumn {
				return &Column{Index: 0, Typ: c.Typ, Name: c.Name}
			}
		case *OuterColumn, *Param, *Subquery: // none refers to the value
		default:
			return MapChildren(e, lift)
		}
		args = append(args, e)
		return &Column{Index: len(args) - 1, Typ: e.Type(), Name: "x"}
	}
	l := &Lambda{Params: []string{"x"}, Body: lift(body)}
	fn := lambdaFn("let", l, types.Of(value.Type().OID), l.Body.Type(), func(body *node, nodes int) Kernel {
		return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			rows := make([]uint32, n)
			for i := range rows {
				rows[i] = uint32(i)
			}
			return x.nested(body, nodes, args, rows)
		}
	})
	return &Call{Fn: fn, Args: args, Typ: l.Body.Type(), Pos: pos}, nil
}
