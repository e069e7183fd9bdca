package expr

import (
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// typName is pg_type.typname: the name of a type's cast functions.
func typName(o types.OID) string {
	if i := types.Lookup(o); i != nil {
		return i.Name
	}
	return "???"
}

// typeByName finds a type whose name can be called like a function.
func typeByName(name string) (types.OID, bool) {
	o, ok := types.ByName(name)
	return o, ok && !isPseudo(o) && o != types.OIDUnknown
}

// Options are what the text forms of values depend on in this context.
func (c *Context) Options() *types.Options {
	if c == nil {
		return nil
	}
	o := &types.Options{Location: c.Location, Style: c.Style, Now: c.Now, FloatDigits: c.FloatDigits, ByteaEscape: c.ByteaEscape, XMLDocument: c.XMLDocument}
	if c.Catalog != nil {
		o.Names = c.Catalog
	}
	return o
}

// options is Context.Options, made once an evaluation.
func (x *Eval) options() *types.Options {
	if x.opts == nil {
		x.opts = x.Context.Options()
	}
	return x.opts
}

// parseText appends the value of a literal.
func parseText(o *types.Options, typ types.OID, mod int32, s []byte, out *columnar.Builder) error {
	return types.ParseTextBytes(out, types.Type{OID: typ, Mod: mod}, s, o)
}

// ioCastFunc is the cast through the text form: to a string type, or from one.
func ioCastFunc(from, to types.OID) *Function {
	return makeOnce(fnKey("io", from, to), func() *Function {
		f := &Function{
			Name: typName(to), Args: []types.Type{types.Of(from)}, Ret: types.Of(to), Strict: true,
			Volatility: max(outputVolatility(from), inputVolatility(to)), Consts: ScalarConsts,
		}
		f.Styled = f.Volatility == Immutable && styledOutput(from)
		if textual(to) {
			f.Total = true
		}
		f.Eval = ioCast(types.Of(from), types.Of(to))
		return f
	})
}

// textual reports whether every text is a value of the type as it stands.
func textual(o types.OID) bool {
	switch o {
	case types.OIDText, types.OIDVarchar, types.OIDBPChar:
		return true
	}
	return false
}

func ioCast(from, to types.Type) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		v, opts := args[0], x.options()
		out := x.Builder(to.Kind(), n)
		var buf []byte
		for i := range n {
			switch {
			case v.Null(i):
				out.Null()
				continue
			case textual(to.OID):
				out.Extend(func(dst []byte) []byte { return types.AppendText(dst, from, v, i, opts) })
				continue
			case textual(from.OID):
				buf = append(buf[:0], v.Bytes(i)...)
			default:
				buf = types.AppendText(buf[:0], from, v, i, opts)
			}
			if err := parseText(opts, to.OID, -1, buf, out); err != nil {
				x.Fail(i, pgerror.As(err))
				out.Null()
			}
		}
		return out.Build()
	}
}

// literalFunc reads a literal with the session at hand.
func literalFunc(to types.Type) *Function {
	mod := inputMod(to)
	return makeOnce(fnKey("literal", to.OID, types.OID(uint32(mod))), func() *Function {
		return &Function{
			Name: typName(to.OID), Args: []types.Type{types.Text}, Ret: types.Of(to.OID), Strict: true,
			Volatility: Stable, Literal: true, Eval: ioCast(types.Text, types.Of(to.OID)),
		}
	})
}

// arrayCastFunc casts arrays element by element.
func arrayCastFunc(from, to types.OID, ctx CastContext) *Function {
	return makeOnce(fnKey("array", from, to, types.OID(ctx)), func() *Function {
		elem, err := coerceBase(&Column{Typ: types.Of(from.Elem())}, types.Of(to.Elem()), ctx, 0)
		if err != nil {
			panic("expr: array cast without an element cast: " + err.Error())
		}
		return &Function{
			Name: typName(to), Args: []types.Type{types.Of(from)}, Ret: types.Of(to), Strict: true,
			Total: IsTotal(elem), Volatility: VolatilityOf(elem),
			Bind: func(*Call) (Kernel, error) { return mapElements(elem, to.Elem()) },
		}
	})
}

// arrayLengthFunc applies the length coercion fn to the elements of an array.
func arrayLengthFunc(typ types.OID, fn *Function) *Function {
	args := append([]types.Type{types.Of(typ)}, fn.Args[1:]...)
	return makeOnce(fnKey("arraylength", typ), func() *Function {
		return &Function{
			Name: typName(typ), Args: args, Ret: types.Of(typ), Strict: true,
			Bind: func(c *Call) (Kernel, error) {
				elem := append([]Expr{&Column{Typ: types.Of(typ.Elem())}}, c.Args[1:]...)
				return mapElements(&Call{Fn: fn, Args: elem, Typ: types.Of(typ.Elem())}, typ.Elem())
			},
		}
	})
}

// mapElements is the kernel that replaces each element of an array, column 0 of
// e, by the value of e, of type elem.
func mapElements(e Expr, elem types.OID) (Kernel, error) {
	var c compiler
	n, err := c.compile(e)
	if err != nil {
		return nil, err
	}
	nodes := len(c.nodes)
	return func(_ *Call, x *Eval, args []*columnar.Vec, rows int) *columnar.Vec {
		v := args[0]
		var flat *columnar.Builder
		var owner []uint32
		for i := range rows {
			if v.Null(i) {
				continue
			}
			a := types.ReadArray(v.Bytes(i))
			if flat == nil {
				flat = columnar.NewBuilder(types.Of(a.Elem).Kind(), rows)
			}
			a.AppendElems(flat, 0, a.N)
			for range a.N {
				owner = append(owner, uint32(i))
			}
		}
		var vals *columnar.Vec
		if len(owner) > 0 {
			vals = x.nested(n, nodes, []*columnar.Vec{flat.Build()}, owner)
		}
		return rebuildArrays(v, vals, elem, rows)
	}, nil
}

// rebuildArrays makes arrays of the shapes of v from new elements.
func rebuildArrays(v, vals *columnar.Vec, elem types.OID, rows int) *columnar.Vec {
	out := columnar.NewBuilder(columnar.KindBytes, rows)
	at := 0
	for i := range rows {
		if v.Null(i) {
			out.Null()
			continue
		}
		a := types.ReadArray(v.Bytes(i))
		from := at
		at += a.N
		out.Extend(func(dst []byte) []byte {
			if a.N == 0 {
				return types.AppendEmptyArray(dst, elem)
			}
			return types.AppendArray(dst, elem, a.Dims[:a.NDim], vals, from, from+a.N)
		})
	}
	return out.Build()
}

// nested evaluates n over other columns within a call; row i of them belongs to
// row owner[i] of the call's arguments, which its errors are reported for.
func (x *Eval) nested(n *node, nodes int, cols []*columnar.Vec, owner []uint32) *columnar.Vec {
	frame, skip, fan := x.frame, x.skip, x.fan
	mark := len(x.errs)
	f := x.newFrame(len(owner), nodes)
	f.cols, f.origin = cols, owner
	x.skip, x.fan = nil, false
	v := x.expand(x.eval(n, f), f.n)
	x.frame, x.skip, x.fan = frame, skip, fan
	if len(x.errs) > mark {
		inner := append([]RowError(nil), x.errs[mark:]...)
		x.errs = x.errs[:mark]
		for _, e := range inner {
			x.Fail(e.Row, e.Err)
		}
	}
	return v
}

// text is b as a string that is not to be kept.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
