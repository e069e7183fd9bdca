package planner

import (
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/types"
)

// Expressions compute with the types behind domains. Which of them have a
// domain for their type, as far as PostgreSQL says so, is kept beside them.

// declare says that the type of an expression that was just made is a domain; it
// is the expression as it is to be used.
func (b *binder) declare(e expr.Expr, typ types.Type) expr.Expr {
	if typ.OID.IsDomain() {
		b.domains[e] = typ.OID
	} else if b.domains[e] != 0 { // a cast to the type behind a domain does nothing else
		c := copied(e)
		if use, ok := b.refs[e]; ok {
			b.refs[c] = use
		}
		return c
	}
	return e
}

// copied is another node of the same meaning.
func copied(e expr.Expr) expr.Expr {
	switch e := e.(type) {
	case *expr.Column:
		c := *e
		return &c
	case *expr.OuterColumn:
		c := *e
		return &c
	case *expr.Const:
		c := *e
		return &c
	case *expr.Call:
		c := *e
		return &c
	case *expr.Subquery:
		c := *e
		return &c
	case *expr.Coalesce:
		c := *e
		return &c
	case *expr.Case:
		c := *e
		return &c
	}
	return e
}

// declaredType is the type of an expression: a domain, if that is its type.
func (b *binder) declaredType(e expr.Expr) types.Type {
	if d := b.domains[e]; d != 0 {
		return types.Of(d)
	}
	return e.Type()
}

// declareCommon gives an expression the domain that all it is made of have.
func (b *binder) declareCommon(e expr.Expr, of []expr.Expr) expr.Expr {
	if d := b.commonDomain(of); d != 0 {
		b.domains[e] = d
	}
	return e
}

// commonDomain is the domain that all of some expressions have, 0 if there is none.
func (b *binder) commonDomain(of []expr.Expr) types.OID {
	if len(b.domains) == 0 || len(of) == 0 {
		return 0
	}
	d := b.domains[of[0]]
	for _, e := range of[1:] {
		if b.domains[e] != d {
			return 0
		}
	}
	return d
}

// stored is an expression whose type is a domain as one of the type behind it:
// the elements of arrays and the fields of composite types can be such.
func (b *binder) stored(e expr.Expr) expr.Expr {
	if t := e.Type(); t.OID.IsDomain() {
		e = expr.Relabeled(e, t.Storage())
		b.domains[e] = t.OID
	}
	return e
}

// domainType is a type that is a domain, 0 for others.
func domainType(t types.Type) types.OID {
	if t.OID.IsDomain() {
		return t.OID
	}
	return 0
}
