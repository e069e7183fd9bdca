package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// boolTests are the functions behind IS [NOT] TRUE and IS [NOT] FALSE.
var boolTests = map[BoolTest]*Function{
	IsTrue:     boolTest("IS TRUE", true, false),
	IsNotTrue:  boolTest("IS NOT TRUE", true, true),
	IsFalse:    boolTest("IS FALSE", false, false),
	IsNotFalse: boolTest("IS NOT FALSE", false, true),
}

func boolTest(name string, want, not bool) *Function {
	return &Function{
		Name: name, Args: []types.Type{types.Bool}, Ret: types.Bool, Total: true, Operator: true, Postfix: true,
		Eval: func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			dst, out := Result[bool](x, n)
			v := args[0]
			for i, b := range v.Bools()[:n] {
				dst[i] = (b == want && !v.Null(i)) != not
			}
			return out
		},
	}
}

const distinctName = "IS DISTINCT FROM"

// distinctFunc is IS DISTINCT FROM over the equality operator eq.
func distinctFunc(eq *Function, args []Expr) *Function {
	l, r := args[0].Type().OID, args[1].Type().OID
	return makeOnce(fnKey("distinct", l, r), func() *Function {
		return &Function{
			Name: distinctName, Operator: true, Args: []types.Type{types.Of(l), types.Of(r)}, Ret: types.Bool,
			Total: eq.Total, Volatility: eq.Volatility, Consts: eq.Consts,
			Bind: func(c *Call) (Kernel, error) {
				kernel, call, err := bindWith(eq, c)
				if err != nil {
					return nil, err
				}
				return distinctKernel(kernel, call), nil
			},
		}
	})
}

// bindWith is the kernel of fn over the arguments of the call c.
func bindWith(fn *Function, c *Call) (Kernel, *Call, error) {
	call := &Call{Fn: fn, Args: c.Args, Typ: fn.Ret, Pos: c.Pos}
	if fn.Bind == nil {
		return fn.Eval, call, nil
	}
	kernel, err := fn.Bind(call)
	return kernel, call, err
}

func distinctKernel(eq Kernel, call *Call) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a := Args(args)
		old := x.skip
		if args[0].HasNulls() || args[1].HasNulls() {
			x.skip = columnar.NewBitmap(n)
			for i := range n {
				if a.anyNull(i) {
					x.skip.Set(i)
				}
			}
		}
		same := eq(call, x, args, n).Bools()
		dst, out := Result[bool](x, n)
		for i := range dst {
			dst[i] = !same[i]
		}
		if x.skip != nil {
			for i := range dst {
				if x.skip.Get(i) {
					dst[i] = a.Null(0, i) != a.Null(1, i)
				}
			}
		}
		x.skip = old
		return out
	}
}

// minMaxFunc is GREATEST or LEAST of n arguments of one type; better is the
// operator that says that its first argument wins.
func minMaxFunc(name string, typ types.Type, better *Function, n int) *Function {
	return makeOnce(fnKey(name, typ.OID, types.OID(n)), func() *Function {
		return &Function{
			Name: name, Args: slicesRepeat(typ, n), Ret: typ, Total: better.Total, Volatility: better.Volatility, Consts: ExpandConsts,
			Bind: func(c *Call) (Kernel, error) {
				pair := &Call{Args: []Expr{c.Args[0], c.Args[0]}}
				kernel, call, err := bindWith(better, pair)
				if err != nil {
					return nil, err
				}
				return minMaxKernel(kernel, call), nil
			},
		}
	})
}

// minMaxKernel folds the arguments: NULLs are passed over.
func minMaxKernel(better Kernel, call *Call) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		best := args[0]
		old := x.skip
		for _, v := range args[1:] {
			x.skip = orNulls(best.Nulls(), v.Nulls())
			wins := better(call, x, []*columnar.Vec{v, best}, n).Bools()
			take, keep := x.indexes(n)[:0], x.indexes(n)[:0]
			for i := range n {
				if !v.Null(i) && (best.Null(i) || wins[i]) {
					take = append(take, uint32(i))
				} else {
					keep = append(keep, uint32(i))
				}
			}
			m := merger{kind: best.Kind(), n: n}
			m.add(x.gather(v, -1, take), take)
			m.add(x.gather(best, -1, keep), keep)
			best = m.build(x)
		}
		x.skip = old
		return best
	}
}
