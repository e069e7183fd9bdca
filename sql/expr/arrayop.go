package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// arrayOp is a compiled ANY or ALL over an array.
type arrayOp struct {
	all    bool
	elem   columnar.Kind
	call   *Call // the operator over (left, element)
	kernel Kernel
}

// makeArrayOp compiles ANY and ALL. Over a constant array `= ANY` is IN and
// `<> ALL` is NOT IN.
func (c *compiler) makeArrayOp(e *ArrayOp) (*node, error) {
	if k, ok := e.Right.(*Const); ok && !k.Val.Null(0) && !e.All && e.Op.Name == "=" && !e.Op.Fuzzy {
		if list := elements(k); len(list) >= minSet {
			return c.makeIn(&InList{Op: e.Op, Arg: e.Left, List: list, Pos: e.Pos})
		}
	}
	args, err := c.all([]Expr{e.Left, e.Right})
	if err != nil {
		return nil, err
	}
	elem := e.Right.Type().ElemType()
	call := &Call{Fn: e.Op, Args: []Expr{e.Left, &Column{Typ: elem}}, Typ: types.Bool, Pos: e.Pos}
	op := &arrayOp{all: e.All, elem: elem.Kind(), call: call, kernel: e.Op.Eval}
	if e.Op.Bind != nil {
		if op.kernel, err = e.Op.Bind(call); err != nil {
			return nil, err
		}
	}
	return c.node(node{op: opArrayOp, args: args, arrop: op}), nil
}

// elements are the elements of a constant array, nil if it is empty.
func elements(c *Const) []Expr {
	a := types.ReadArray(c.Val.Bytes(0))
	typ := types.Of(a.Elem)
	out := make([]Expr, 0, a.N)
	for i := range a.N {
		b := columnar.NewBuilder(a.Kind(), 1)
		a.AppendElem(b, i)
		out = append(out, &Const{Val: b.Build(), Typ: typ, Pos: c.Pos})
	}
	return out
}

// anyElement is the function of AnyOf; it is not evaluated.
var anyElement = &Function{Name: "ANY", Internal: true, Volatility: Stable}

// AnyOf stands, among the values that are looked up in a key of type t, for each of the
// elements of an array but NULLs. Integers may be of another width.
func AnyOf(array Expr, t types.Type) Expr {
	return &Call{Fn: anyElement, Args: []Expr{array}, Typ: t}
}

// AnyArray is the array of AnyOf.
func AnyArray(e Expr) (array Expr, ok bool) {
	c, ok := e.(*Call)
	if !ok || c.Fn != anyElement {
		return nil, false
	}
	return c.Args[0], true
}

// nullSafe is the function of NullSafe; it is not evaluated.
var nullSafe = &Function{Name: "SAME", Internal: true, Volatility: Stable}

// NullSafe stands, among the values that are looked up in a key, for a value that may
// be NULL, and then finds NULLs: e IS NOT DISTINCT FROM v, e IS NULL.
func NullSafe(v Expr) Expr { return &Call{Fn: nullSafe, Args: []Expr{v}, Typ: v.Type()} }

// NullSafeValue is the value of NullSafe.
func NullSafeValue(e Expr) (v Expr, ok bool) {
	c, ok := e.(*Call)
	if !ok || c.Fn != nullSafe {
		return nil, false
	}
	return c.Args[0], true
}

// AnyValues are the values that e, made by AnyOf, stands for: those of the array's
// elements that a key of e's type can have.
func AnyValues(e Expr, ctx *Context) (*columnar.Vec, error) {
	kind := e.Type().Kind()
	c, err := EvalConst(e.(*Call).Args[0], ctx)
	if err != nil || c.Val.Null(0) {
		return columnar.NewBuilder(kind, 0).Build(), err
	}
	a := types.ReadArray(c.Val.Bytes(0))
	all := columnar.NewBuilder(a.Kind(), a.N)
	a.AppendElems(all, 0, a.N)
	v := all.Build()
	out := columnar.NewBuilder(kind, a.N)
	for i := range a.N {
		switch {
		case v.Null(i):
		case v.Kind() == kind:
			out.AppendFrom(v, i)
		default:
			appendInt(out, kind, intAt(v, i))
		}
	}
	return out.Build(), nil
}

// appendInt appends an integer, if it is one of the kind.
func appendInt(b *columnar.Builder, kind columnar.Kind, n int64) {
	switch {
	case kind == columnar.KindInt64:
		b.Int64(n)
	case kind == columnar.KindInt32 && n == int64(int32(n)):
		b.Int32(int32(n))
	case kind == columnar.KindInt16 && n == int64(int16(n)):
		b.Int16(int16(n))
	}
}

// arrayOp evaluates ANY and ALL: the operator over all elements of all rows at
// once, then three-valued OR or AND per row.
func (x *Eval) arrayOp(n *node, f *frame) *columnar.Vec {
	left, right := x.eval(n.args[0], f), x.eval(n.args[1], f)
	rows := max(left.Len(), right.Len())
	op := n.arrop
	elems := columnar.NewBuilder(op.elem, rows)
	var owner []uint32 // row of each element
	for i := range rows {
		k := i
		if right.Len() == 1 {
			k = 0
		}
		if right.Null(k) {
			continue
		}
		a := types.ReadArray(right.Bytes(k))
		a.AppendElems(elems, 0, a.N)
		for range a.N {
			owner = append(owner, uint32(i))
		}
	}
	state := make([]byte, rows)
	if n.arrop.all {
		for i := range state {
			state[i] = triTrue
		}
	}
	if len(owner) > 0 {
		x.applyElements(op, left, elems.Build(), owner, rows, f, state)
	}
	for i := range state {
		k := i
		if right.Len() == 1 {
			k = 0
		}
		if right.Null(k) {
			state[i] = triNull
		}
	}
	return boolsOf(x, state)
}

// applyElements folds the operator's results for each element into state.
func (x *Eval) applyElements(op *arrayOp, left, elems *columnar.Vec, owner []uint32, rows int, f *frame, state []byte) {
	g := x.newFrame(len(owner), 0)
	g.origin = make([]uint32, len(owner))
	for j, i := range owner {
		g.origin[j] = uint32(f.row(int(i)))
	}
	if left.Len() != 1 {
		left = x.gather(left, -1, owner)
	} else {
		left = x.expand(left, len(owner))
	}
	v := x.apply(op.call, op.kernel, []*columnar.Vec{left, elems}, len(owner), g)
	raw, nulls := rawBools(v), v.Nulls()
	decided := byte(triTrue)
	if op.all {
		decided = triFalse
	}
	for j, i := range owner {
		switch t := tri(raw, nulls, j); {
		case state[i] == decided:
		case t == decided:
			state[i] = decided
		case t == triNull:
			state[i] = triNull
		}
	}
}

// array evaluates ARRAY[…].
func (x *Eval) array(n *node, f *frame) *columnar.Vec {
	args := make([]*columnar.Vec, len(n.args))
	rows := 1
	for i, a := range n.args {
		args[i] = x.eval(a, f)
		if args[i].Len() != 1 {
			rows = f.n
		}
	}
	elem := n.typ.OID.Elem()
	nested := len(n.args) > 0 && n.args[0].typ.OID.IsArray()
	out := x.Builder(columnar.KindBytes, rows)
	old := x.frame
	x.frame, x.skip, x.fan = f, nil, rows == 1 && f.n != 1
	for i := range rows {
		row := columnar.NewBuilder(types.Of(elem).Kind(), len(args))
		if !nested {
			for k := range args {
				v, i := Args(args).row(k, i)
				row.AppendFrom(v, i)
			}
			vals := row.Build()
			out.Extend(func(dst []byte) []byte { return types.AppendList(dst, elem, vals, 0, vals.Len()) })
			continue
		}
		dims, err := nestArrays(args, i, row)
		if err != nil {
			x.Fail(i, err)
			out.Null()
			continue
		}
		vals := row.Build()
		out.Extend(func(dst []byte) []byte { return types.AppendArray(dst, elem, dims, vals, 0, vals.Len()) })
	}
	x.frame, x.fan = old, false
	return out.Build()
}

var errArrayShape = pgerror.New(pgerror.ArraySubscriptError, "multidimensional arrays must have array expressions with matching dimensions")

// nestArrays appends the elements of the arrays of row i to out, and gives the
// dimensions of the array of arrays.
func nestArrays(args []*columnar.Vec, i int, out *columnar.Builder) ([]types.Dim, *pgerror.Error) {
	var first types.Array
	empty := 0
	seen := false
	for k := range args {
		v, i := Args(args).row(k, i)
		var a types.Array
		if !v.Null(i) {
			a = types.ReadArray(v.Bytes(i))
		}
		if a.NDim == 0 {
			empty++
			continue
		}
		if !seen {
			first, seen = a, true
		} else if a.NDim != first.NDim || a.Dims != first.Dims {
			return nil, errArrayShape
		}
		a.AppendElems(out, 0, a.N)
	}
	if !seen {
		return nil, nil
	}
	if empty > 0 {
		return nil, errArrayShape
	}
	if first.NDim == types.MaxDims {
		return nil, pgerror.New(pgerror.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", first.NDim+1, types.MaxDims)
	}
	dims := append([]types.Dim{{Len: int32(len(args)), Lower: 1}}, first.Dims[:first.NDim]...)
	return dims, nil
}

// row evaluates ROW(…).
func (x *Eval) row(n *node, f *frame) *columnar.Vec {
	args := make([]*columnar.Vec, len(n.args))
	rows := 1
	for i, a := range n.args {
		args[i] = x.eval(a, f)
		if args[i].Len() != 1 {
			rows = f.n
		}
	}
	out := x.Builder(columnar.KindBytes, rows)
	r := types.RecordBuilder{Names: n.names}
	for i := range rows {
		for k := range args {
			v, i := Args(args).row(k, i)
			r.Field(n.args[k].typ, v, i)
		}
		out.Extend(r.Append)
	}
	return out.Build()
}
