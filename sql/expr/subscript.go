package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Subscript is one step of `expr[i]` or `expr[lo:hi]`.
type Subscript struct {
	Slice  bool
	Lo, Hi Expr // Lo is the index unless Slice; a nil bound of a slice is open
}

// NewSubscript makes arg[…][…] over an array or jsonb.
func NewSubscript(arg Expr, subs []Subscript, pos int) (Expr, error) {
	t := arg.Type()
	if t.OID == types.OIDJSONB {
		return subscriptJSON(arg, subs, pos)
	}
	if t.OID.IsMap() && !subs[0].Slice && subs[0].Lo != nil {
		e, err := mapAccess("map_access", []Expr{arg, subs[0].Lo}, pos)
		if err != nil || len(subs) == 1 {
			return e, err
		}
		return NewSubscript(e, subs[1:], pos)
	}
	if _, _, ok := fixedArray(t.OID); ok {
		return subscriptFixed(arg, subs, pos)
	}
	if t.OID.Elem() == 0 {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "cannot subscript type %s because it does not support subscripting", t.OID).At(pos)
	}
	slice := false
	for _, s := range subs {
		slice = slice || s.Slice
	}
	if len(subs) > types.MaxDims {
		return nil, pgerror.New(pgerror.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", len(subs), types.MaxDims).At(pos)
	}
	args := []Expr{arg}
	for _, s := range subs {
		lo, hi := s.Lo, s.Hi
		if slice && !s.Slice {
			// Beside a slice a plain subscript n means 1:n.
			lo, hi = Int4Const(1), s.Lo
		}
		for k, e := range []Expr{lo, hi} {
			if k == 1 && !slice {
				break
			}
			if e == nil {
				e = openBound
			} else {
				var err error
				if !CanCoerce(e.Type(), types.Int4, CastAssignment) {
					return nil, pgerror.New(pgerror.DatatypeMismatch, "array subscript must have type integer").At(PosOf(e)).At(pos)
				}
				if e, err = coerce(e, types.Int4, CastAssignment, pos); err != nil {
					return nil, err
				}
			}
			args = append(args, e)
		}
	}
	if slice {
		return &Call{Fn: subscriptFunc(t.OID, len(args), true), Args: args, Typ: types.Of(t.OID), Pos: pos}, nil
	}
	return &Call{Fn: subscriptFunc(t.OID, len(args), false), Args: args, Typ: t.ElemType(), Pos: pos}, nil
}

// openBound stands for the bound that a slice leaves out.
var openBound = &Const{Val: columnar.FromSlice([]bool{false}, nil), Typ: types.Bool}

// subscriptJSON is a path into the document: a subscript of a value that is neither
// array nor object gives NULL, where -> takes it for an array of one.
func subscriptJSON(arg Expr, subs []Subscript, pos int) (Expr, error) {
	path, _, err := subscriptPath(subs, pos)
	if err != nil {
		return nil, err
	}
	return NewOp("#>", arg, path, pos)
}

// subscriptPath is subscripts of jsonb as an array of texts; number tells whether the
// first is a number.
func subscriptPath(subs []Subscript, pos int) (path Expr, number bool, err error) {
	steps := make([]Expr, len(subs))
	for i, s := range subs {
		if s.Slice {
			return nil, false, pgerror.New(pgerror.DatatypeMismatch, "jsonb subscript does not support slices").At(pos)
		}
		key := s.Lo
		if t := key.Type().OID; t != types.OIDInt4 && t != types.OIDText {
			to := types.Text
			if t != types.OIDUnknown && CanCoerce(key.Type(), types.Int4, CastImplicit) {
				to = types.Int4
			} else if t != types.OIDUnknown && !CanCoerce(key.Type(), types.Text, CastImplicit) {
				return nil, false, pgerror.New(pgerror.DatatypeMismatch, "subscript type %s is not supported", key.Type().OID).
					WithHint("jsonb subscript must be coercible to either integer or text.").At(PosOf(key)).At(pos)
			}
			if key, err = coerce(key, to, CastImplicit, pos); err != nil {
				return nil, false, err
			}
		}
		number = number || i == 0 && key.Type().OID == types.OIDInt4
		if steps[i], err = Coerce(key, types.Text, CastExplicit, pos); err != nil {
			return nil, false, err
		}
	}
	path, err = NewArray(steps, pos)
	return path, number, err
}

// subscriptFunc takes an element or a slice of an array.
func subscriptFunc(array types.OID, args int, slice bool) *Function {
	what, ret, kernel := "subscript", types.Of(array.Elem()), subscriptElem
	if slice {
		what, ret, kernel = "slice", types.Of(array), subscriptSlice
	}
	return makeOnce(fnKey(what, array, types.OID(args)), func() *Function {
		sig := append([]types.Type{types.Of(array)}, slicesRepeat(types.Int4, args-1)...)
		return &Function{Name: what, Args: sig, Ret: ret, Strict: true, Total: true, Consts: ScalarConsts, Eval: RowKernel(kernel)}
	})
}

func subscriptElem(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	arr := types.ReadArray(a.Bytes(0, i))
	var subs [types.MaxDims]int32
	n := len(a) - 1
	for k := range n {
		subs[k] = a.Int32(k+1, i)
	}
	at := -1
	if n == arr.NDim {
		at = arr.Index(subs[:n])
	}
	if at < 0 || arr.Null(at) {
		out.Null()
	} else {
		arr.AppendElem(out, at)
	}
	return nil
}

// subscriptSlice cuts a[lo:hi][…]; the result's subscripts start from 1.
func subscriptSlice(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	arr := types.ReadArray(a.Bytes(0, i))
	n := (len(a) - 1) / 2
	empty := func() *pgerror.Error {
		out.Extend(func(dst []byte) []byte { return types.AppendEmptyArray(dst, arr.Elem) })
		return nil
	}
	if n > arr.NDim || arr.NDim == 0 {
		return empty()
	}
	var lo, hi [types.MaxDims]int32
	dims := make([]types.Dim, arr.NDim)
	for d := range arr.NDim {
		lo[d], hi[d] = arr.Dims[d].Lower, arr.Dims[d].Upper()
		if d < n {
			if v := a[1+2*d]; v.Kind() == columnar.KindInt32 {
				lo[d] = max(lo[d], a.Int32(1+2*d, i))
			}
			if v := a[2+2*d]; v.Kind() == columnar.KindInt32 {
				hi[d] = min(hi[d], a.Int32(2+2*d, i))
			}
		}
		if lo[d] > hi[d] {
			return empty()
		}
		dims[d] = types.Dim{Len: hi[d] - lo[d] + 1, Lower: 1}
	}
	b := columnar.NewBuilder(arr.Kind(), arr.N)
	at := lo
	for {
		arr.AppendElem(b, arr.Index(at[:arr.NDim]))
		d := arr.NDim - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] <= hi[d] {
				break
			}
			at[d] = lo[d]
		}
		if d < 0 {
			break
		}
	}
	vals := b.Build()
	out.Extend(func(dst []byte) []byte { return types.AppendArray(dst, arr.Elem, dims, vals, 0, vals.Len()) })
	return nil
}
