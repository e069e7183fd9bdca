package expr

import (
	"slices"

	"bytes"
	"reflect"

	"github.com/streamdb/streamdb/columnar"
)

// Equal reports whether two expressions are the same but for positions and
// column names. Two uses of a volatile function are equal too: it is for the
// user of the result to ask VolatilityOf.
func Equal(a, b Expr) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || a.Type() != b.Type() {
		return false
	}
	switch a := a.(type) {
	case *Column:
		b, ok := b.(*Column)
		return ok && a.Index == b.Index
	case *Const:
		b, ok := b.(*Const)
		return ok && equalValue(a.Val, b.Val)
	case *Param:
		b, ok := b.(*Param)
		return ok && a.Index == b.Index
	case *OuterColumn:
		b, ok := b.(*OuterColumn)
		return ok && a.Index == b.Index && a.Depth == b.Depth
	case *Call:
		b, ok := b.(*Call)
		return ok && (a.Fn == b.Fn || sameLambda(a.Fn, b.Fn)) && a.Variadic == b.Variadic && equalAll(a.Args, b.Args)
	case *Logic:
		b, ok := b.(*Logic)
		return ok && a.And == b.And && equalAll(a.Args, b.Args)
	case *Not:
		b, ok := b.(*Not)
		return ok && Equal(a.Arg, b.Arg)
	case *IsNull:
		b, ok := b.(*IsNull)
		return ok && a.Not == b.Not && Equal(a.Arg, b.Arg)
	case *Case:
		b, ok := b.(*Case)
		return ok && equalCase(a, b)
	case *Coalesce:
		b, ok := b.(*Coalesce)
		return ok && equalAll(a.Args, b.Args)
	case *ArrayCtor:
		b, ok := b.(*ArrayCtor)
		return ok && equalAll(a.Elems, b.Elems)
	case *Row:
		b, ok := b.(*Row)
		return ok && slices.Equal(a.Names, b.Names) && equalAll(a.Fields, b.Fields)
	case *InList:
		b, ok := b.(*InList)
		return ok && a.Op == b.Op && Equal(a.Arg, b.Arg) && equalAll(a.List, b.List)
	case *ArrayOp:
		b, ok := b.(*ArrayOp)
		return ok && a.All == b.All && a.Op == b.Op && Equal(a.Left, b.Left) && Equal(a.Right, b.Right)
	case *JSONExpr:
		b, ok := b.(*JSONExpr)
		return ok && a.equal(&b.JSONSpec) && (a.OnEmpty == nil) == (b.OnEmpty == nil) && equalAll(a.operands(), b.operands())
	case *Subquery:
		b, ok := b.(*Subquery)
		return ok && a.Kind == b.Kind && Equal(a.Test, b.Test) && reflect.DeepEqual(a.Rel, b.Rel)
	}
	return false
}

func equalAll(a, b []Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equalCase(a, b *Case) bool {
	if len(a.Whens) != len(b.Whens) || (a.Else == nil) != (b.Else == nil) {
		return false
	}
	for i, w := range a.Whens {
		if !Equal(w.Cond, b.Whens[i].Cond) || !Equal(w.Then, b.Whens[i].Then) {
			return false
		}
	}
	return a.Else == nil || Equal(a.Else, b.Else)
}

func equalValue(a, b *columnar.Vec) bool {
	if a.Kind() != b.Kind() || a.Null(0) != b.Null(0) {
		return false
	}
	return a.Null(0) || bytes.Equal(valueBytes(a), valueBytes(b))
}

// valueBytes is the bytes of the one value of v.
func valueBytes(v *columnar.Vec) []byte {
	if v.Kind() == columnar.KindBytes {
		return v.Bytes(0)
	}
	fixed, _, _ := v.Raw()
	return fixed[:v.Kind().Width()]
}

// Hash is equal for equal expressions.
func Hash(e Expr) uint64 {
	h := hasher(14695981039346656037)
	h.expr(e)
	return uint64(h)
}

// hasher is FNV-1a over words.
type hasher uint64

func (h *hasher) word(w uint64) { *h = (*h ^ hasher(w)) * 1099511628211 }

func (h *hasher) bytes(b []byte) {
	for _, c := range b {
		h.word(uint64(c))
	}
}

func (h *hasher) expr(e Expr) {
	if e == nil {
		h.word(0)
		return
	}
	switch e := e.(type) {
	case *Column:
		h.word(1)
		h.word(uint64(e.Index))
	case *Const:
		h.word(2)
		h.word(uint64(e.Typ.OID))
		if !e.Val.Null(0) {
			h.bytes(valueBytes(e.Val))
		}
	case *Param:
		h.word(3)
		h.word(uint64(e.Index))
	case *OuterColumn:
		h.word(4)
		h.word(uint64(e.Index)<<8 | uint64(e.Depth))
	case *Call:
		h.word(5)
		h.bytes([]byte(e.Fn.Name))
	case *Logic:
		h.word(6)
	case *Not:
		h.word(8)
	case *IsNull:
		h.word(9)
	case *Case:
		h.word(11)
	case *Coalesce:
		h.word(12)
	case *ArrayCtor:
		h.word(13)
	case *Row:
		h.word(14)
	case *InList:
		h.word(15)
	case *ArrayOp:
		h.word(16)
	case *Subquery:
		h.word(17)
	case *JSONExpr:
		h.word(18)
		h.word(uint64(e.Op))
	}
	Children(e, h.expr)
}

// sameLambda reports whether two functions apply the same lambda.
func sameLambda(a, b *Function) bool {
	return a.Lambda != nil && b.Lambda != nil && a.Name == b.Name && Equal(a.Lambda.Body, b.Lambda.Body)
}
