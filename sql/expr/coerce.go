package expr

import (
	"sync"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// pathKind is how one type becomes another (find_coercion_pathway).
type pathKind uint8

const (
	pathNone    pathKind = iota
	pathRelabel          // same physical form
	pathFunc             // by a cast function
	pathArray            // element by element
	pathParts            // field by field, or keys and values
	pathIO               // through the text form
)

// findPath is the way from one type to another that the context allows.
func findPath(from, to types.OID, ctx CastContext) (pathKind, *Function) {
	if to.IsDomain() {
		to = types.Of(to).Storage().OID
	}
	if from == to || to == types.OIDRecord && from.IsComposite() {
		return pathRelabel, nil
	}
	if from == types.OIDRecord && to.IsComposite() {
		return pathNone, nil // but of a row constructor
	}
	if (from.IsAnonymous() || to.IsAnonymous()) && sameParts(from, to, ctx) {
		return pathParts, nil
	}
	if c := registry.casts[[2]types.OID{from, to}]; c != nil {
		if ctx < c.Context {
			return pathNone, nil
		}
		if c.Fn == nil {
			return pathRelabel, nil
		}
		return pathFunc, c.Fn
	}
	if from >= types.FirstUser && from.Multirange() == to && to != 0 && ctx == CastExplicit {
		fns := constructorsOf(from)
		return pathFunc, fns[len(fns)-1]
	}
	fe, te := from.Elem(), to.Elem()
	if fe != 0 && te != 0 && to != types.OIDInt2Vector && to != types.OIDOidVector {
		if kind, _ := findPath(fe, te, ctx); kind != pathNone {
			return pathArray, nil
		}
	}
	if isPseudo(from) && from != types.OIDRecord && from.Elem() != types.OIDRecord || isPseudo(to) {
		return pathNone, nil
	}
	// Every type can be assigned to a string, and explicitly made from one.
	if ctx >= CastAssignment && categoryOf(to) == catString ||
		ctx >= CastExplicit && categoryOf(from) == catString {
		return pathIO, nil
	}
	return pathNone, nil
}

func isPseudo(o types.OID) bool { return categoryOf(o) == catPseudo }

// CanCoerce reports whether a cast from one type to another is allowed.
// Unknown (a literal or an undetermined parameter) can become anything.
func CanCoerce(from, to types.Type, ctx CastContext) bool {
	return canCoerce(from.OID, to.OID, ctx)
}

func canCoerce(from, to types.OID, ctx CastContext) bool {
	if from == to || to == types.OIDAny || isPolymorphic(to) || from == types.OIDUnknown || from == types.OIDRecord && types.Of(to).Storage().OID.IsComposite() {
		return true
	}
	if from.Elem() == types.OIDRecord && to.Elem().IsAnonymous() && to.Elem().IsComposite() {
		return true
	}
	kind, _ := findPath(from, to, ctx)
	return kind != pathNone
}

// coerce converts e to a type, or fails.
func coerce(e Expr, to types.Type, ctx CastContext, pos int) (Expr, error) {
	out, err := coerceBase(e, to, ctx, pos)
	if err != nil {
		return nil, err
	}
	return coerceLength(out, to, ctx, pos), nil
}

// coerceBase converts without looking at the modifier.
func coerceBase(e Expr, to types.Type, ctx CastContext, pos int) (Expr, error) {
	from := e.Type()
	if to.OID.IsDomain() {
		return coerceDomain(e, to.OID, ctx, pos)
	}
	if r, ok := e.(*Row); ok && from.OID == types.OIDRecord && to.OID.IsComposite() {
		return coerceRow(r, to.OID, ctx, pos)
	}
	if from.OID == types.OIDRecord && to.OID.IsComposite() && IsNullConst(e) {
		return NullConst(types.Of(to.OID)), nil
	}
	if from.OID == to.OID || to.OID == types.OIDAny || isPolymorphic(to.OID) {
		return e, nil
	}
	if from.OID == types.OIDUnknown {
		return coerceUnknown(e, to, ctx, pos)
	}
	if a, ok := e.(*ArrayCtor); ok && to.OID.Elem() != 0 && (ctx == CastExplicit || to.OID.IsAnonymous() && from.OID == types.OIDRecordArray) {
		return NewArrayOf(a.Elems, to, pos)
	}
	kind, fn := findPath(from.OID, to.OID, ctx)
	base := types.Of(to.OID)
	switch kind {
	case pathRelabel:
		return newCast(relabelFunc(from.OID, to.OID), e, base, pos), nil
	case pathFunc:
		if len(fn.Args) > 1 {
			return castWithModifier(fn, e, to, ctx, pos), nil
		}
		return newCast(fn, e, base, pos), nil
	case pathArray:
		return newCast(arrayCastFunc(from.OID, to.OID, ctx), e, base, pos), nil
	case pathParts:
		return newCast(partsCastFunc(from.OID, to.OID, ctx), e, base, pos), nil
	case pathIO:
		return newCast(ioCastFunc(from.OID, to.OID), e, base, pos), nil
	}
	if ctx == CastExplicit {
		return nil, pgerror.New(pgerror.CannotCoerce, "cannot cast type %s to %s", from.OID, to.OID).At(pos)
	}
	return nil, pgerror.New(pgerror.DatatypeMismatch, "cannot convert type %s to %s", from.OID, to.OID).At(pos)
}

// castWithModifier calls a cast function that takes the target's modifier, and
// perhaps whether the cast is explicit.
func castWithModifier(fn *Function, e Expr, to types.Type, ctx CastContext, pos int) Expr {
	args := []Expr{e, Int4Const(to.Mod)}
	if len(fn.Args) == 3 {
		args = append(args, BoolConst(ctx == CastExplicit))
	}
	return &Call{Fn: fn, Args: args, Typ: to, Pos: pos, Cast: true}
}

func newCast(fn *Function, e Expr, typ types.Type, pos int) Expr {
	return &Call{Fn: fn, Args: []Expr{e}, Typ: typ, Pos: pos, Cast: true}
}

// Relabeled is a value under another type of the same physical form.
func Relabeled(e Expr, typ types.Type) Expr {
	return newCast(relabelFunc(e.Type().OID, typ.OID), e, typ, 0)
}

// coerceUnknown gives a literal or a parameter of unknown type its type.
func coerceUnknown(e Expr, to types.Type, ctx CastContext, pos int) (Expr, error) {
	switch e := e.(type) {
	case *Param:
		e.Typ = types.Of(to.OID)
		return e, nil
	case *Const:
		return literal(e, to, ctx)
	}
	// The output of a subquery whose literal was left unknown.
	base := types.Of(to.OID)
	return newCast(ioCastFunc(types.OIDText, to.OID), newCast(relabelFunc(types.OIDUnknown, types.OIDText), e, types.Text, pos), base, pos), nil
}

// literal reads a string literal as a value of a type. A literal whose meaning
// depends on the session becomes a call that FoldLiterals evaluates.
func literal(c *Const, to types.Type, ctx CastContext) (Expr, error) {
	base := types.Of(to.OID)
	if c.Val.Null(0) {
		return &Const{Val: NullVec(base), Typ: base, Pos: c.Pos}, nil
	}
	if sessionInput(to, c.Val.Bytes(0)) {
		lit := &Const{Val: c.Val, Typ: types.Text, Pos: c.Pos}
		return &Call{Fn: literalFunc(to), Args: []Expr{lit}, Typ: base, Pos: c.Pos, Cast: true}, nil
	}
	out := columnar.NewBuilder(base.Kind(), 1)
	if err := parseText(nil, to.OID, inputMod(to), c.Val.Bytes(0), out); err != nil {
		return nil, pgerror.As(err).At(c.Pos)
	}
	return &Const{Val: out.Build(), Typ: base, Pos: c.Pos}, nil
}

// coerceLength applies the length coercion of to's modifier.
func coerceLength(e Expr, to types.Type, ctx CastContext, pos int) Expr {
	from := e.Type()
	if to.Mod < 0 || from == to {
		return e
	}
	fn, arr := registry.lengths[to.OID], false
	if fn == nil {
		if fn = registry.lengths[to.OID.Elem()]; fn == nil {
			return e
		}
		arr = true
	}
	if IsNullConst(e) {
		return &Const{Val: e.(*Const).Val, Typ: to, Pos: pos}
	}
	if arr {
		fn = arrayLengthFunc(to.OID, fn)
	}
	return castWithModifier(fn, e, to, ctx, pos)
}

// made holds the functions that are made on demand, so that equal casts share
// one Function.
var made sync.Map // string -> *Function

// makeOnce returns the function of that key, made by f the first time.
func makeOnce(key string, f func() *Function) *Function {
	if fn, ok := made.Load(key); ok {
		return fn.(*Function)
	}
	fn, _ := made.LoadOrStore(key, f())
	return fn.(*Function)
}

// relabelFunc is the cast between two types of one physical form.
func relabelFunc(from, to types.OID) *Function {
	return makeOnce(fnKey("relabel", from, to), func() *Function {
		return &Function{
			Name: typName(to), Args: []types.Type{types.Of(from)}, Ret: types.Of(to),
			Strict: true, Total: true, Relabel: true,
		}
	})
}

func fnKey(what string, oids ...types.OID) string {
	b := make([]byte, 0, len(what)+4*len(oids))
	b = append(b, what...)
	for _, o := range oids {
		b = append(b, byte(o>>24), byte(o>>16), byte(o>>8), byte(o))
	}
	return string(b)
}

// StripRelabel removes the casts from e that do not change its physical form
// (varchar to text).
func StripRelabel(e Expr) Expr {
	for {
		c, ok := e.(*Call)
		if !ok || !c.Fn.Relabel {
			return e
		}
		e = c.Args[0]
	}
}

// NullVec is a vector of length 1 that is NULL.
func NullVec(t types.Type) *columnar.Vec {
	b := columnar.NewBuilder(t.Kind(), 1)
	b.Null()
	return b.Build()
}

// NullConst is the literal NULL of a type.
func NullConst(t types.Type) *Const { return &Const{Val: NullVec(t), Typ: t} }

// Int4Const, Int8Const, BoolConst, Float8Const and TextConst are literals.
func Int4Const(v int32) *Const {
	return &Const{Val: columnar.FromSlice([]int32{v}, nil), Typ: types.Int4}
}

// Int8Const is a literal of type int8.
func Int8Const(v int64) *Const {
	return &Const{Val: columnar.FromSlice([]int64{v}, nil), Typ: types.Int8}
}

// BoolConst is TRUE or FALSE.
func BoolConst(v bool) *Const {
	return &Const{Val: columnar.FromSlice([]bool{v}, nil), Typ: types.Bool}
}

// Float8Const is a literal of type float8.
func Float8Const(v float64) *Const {
	return &Const{Val: columnar.FromSlice([]float64{v}, nil), Typ: types.Float8}
}

// TextConst is a literal of type text.
func TextConst(v string) *Const {
	return &Const{Val: columnar.FromBytes([]uint32{0, uint32(len(v))}, []byte(v), nil), Typ: types.Text}
}

// UnknownConst is a string literal whose type is not determined yet.
func UnknownConst(v string, pos int) *Const {
	c := TextConst(v)
	c.Typ, c.Pos = types.Unknown, pos
	return c
}

// inputMod is the modifier that the input function of a literal gets: only
// interval's changes the meaning of the text (INTERVAL '1' DAY).
func inputMod(t types.Type) int32 {
	if t.OID == types.OIDInterval {
		return t.Mod
	}
	return -1
}
