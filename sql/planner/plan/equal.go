package plan

import (
	"hash/maphash"
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
)

// Equal reports whether two plans compute the same, node for node (but for the
// names of columns).
func Equal(a, b Rel) bool {
	if a == b {
		return true
	}
	if !equalNode(a, b) {
		return false
	}
	var as, bs []Rel
	Children(a, func(c Rel) { as = append(as, c) })
	Children(b, func(c Rel) { bs = append(bs, c) })
	return slices.EqualFunc(as, bs, Equal)
}

// equalNode compares two nodes without their inputs.
func equalNode(a, b Rel) bool {
	var ea, eb []expr.Expr
	Exprs(a, func(e expr.Expr) { ea = append(ea, e) })
	Exprs(b, func(e expr.Expr) { eb = append(eb, e) })
	if !slices.EqualFunc(ea, eb, expr.Equal) {
		return false
	}
	switch a := a.(type) {
	case *Get:
		b, ok := b.(*Get)
		return ok && a.ID == b.ID && len(a.Cols) == len(b.Cols) && equalSources(a, b)
	case *Constant:
		b, ok := b.(*Constant)
		return ok && equalRows(a, b)
	case *Project:
		_, ok := b.(*Project)
		return ok
	case *Filter:
		_, ok := b.(*Filter)
		return ok
	case *Join:
		b, ok := b.(*Join)
		return ok && a.Kind == b.Kind && a.Lateral == b.Lateral
	case *Aggregate:
		b, ok := b.(*Aggregate)
		return ok && len(a.GroupBy) == len(b.GroupBy) && slices.EqualFunc(a.GroupingSets, b.GroupingSets, slices.Equal[[]int]) &&
			slices.EqualFunc(a.Aggs, b.Aggs, func(x, y AggCall) bool {
				return x.Fn == y.Fn && x.Distinct == y.Distinct && len(x.Args) == len(y.Args) &&
					(x.Filter == nil) == (y.Filter == nil) && equalOrder(x.OrderBy, y.OrderBy)
			})
	case *Distinct:
		_, ok := b.(*Distinct)
		return ok
	case *TopK:
		b, ok := b.(*TopK)
		return ok && slices.Equal(a.Partition, b.Partition) && slices.Equal(a.Order, b.Order) &&
			a.WithTies == b.WithTies && a.RowNumber == b.RowNumber && (a.Limit == nil) == (b.Limit == nil)
	case *Window:
		b, ok := b.(*Window)
		return ok && len(a.Partition) == len(b.Partition) && equalOrder(a.Order, b.Order) &&
			slices.EqualFunc(a.Calls, b.Calls, equalCall)
	case *SetOp:
		b, ok := b.(*SetOp)
		return ok && a.Kind == b.Kind && a.All == b.All
	case *FlatMap:
		b, ok := b.(*FlatMap)
		return ok && a.Fn == b.Fn && a.Ordinality == b.Ordinality && a.Outer == b.Outer
	case *LocalGet:
		b, ok := b.(*LocalGet)
		return ok && a.ID == b.ID
	case *Assert:
		b, ok := b.(*Assert)
		return ok && slices.Equal(a.Key, b.Key)
	case *Sort:
		b, ok := b.(*Sort)
		return ok && slices.Equal(a.Order, b.Order) && (a.Limit == nil) == (b.Limit == nil)
	}
	return false // Let, Recursive: never compared by their users
}

func equalSources(a, b *Get) bool {
	for i := range a.Cols {
		if a.Source(i) != b.Source(i) {
			return false
		}
	}
	return (a.Lookup == nil) == (b.Lookup == nil)
}

func equalRows(a, b *Constant) bool {
	if a.Rows.N != b.Rows.N || len(a.Cols) != len(b.Cols) || !slices.Equal(a.Diffs, b.Diffs) {
		return false
	}
	for i, v := range a.Rows.Cols {
		w := b.Rows.Cols[i]
		if a.Cols[i].Type != b.Cols[i].Type {
			return false
		}
		if v == w {
			continue
		}
		all := evalSame(nil, nil, []*columnar.Vec{v, w}, a.Rows.N).Bools()
		if slices.Contains(all, false) {
			return false
		}
	}
	return true
}

func equalOrder(a, b []SortExpr) bool {
	return slices.EqualFunc(a, b, func(x, y SortExpr) bool { return x.Desc == y.Desc && x.NullsFirst == y.NullsFirst })
}

func equalCall(a, b WindowCall) bool {
	bound := func(x, y FrameBound) bool { return x.Kind == y.Kind && (x.Offset == nil) == (y.Offset == nil) }
	return a.Name == b.Name && a.Agg == b.Agg && len(a.Args) == len(b.Args) && (a.Filter == nil) == (b.Filter == nil) &&
		a.Frame.Unit == b.Frame.Unit && a.Frame.Exclude == b.Frame.Exclude &&
		bound(a.Frame.Start, b.Frame.Start) && bound(a.Frame.End, b.Frame.End)
}

var hashSeed = maphash.MakeSeed()

// Hash is equal for plans that are Equal.
func Hash(r Rel) uint64 {
	h := maphash.Comparable(hashSeed, kindOf(r))
	mix := func(x uint64) { h = (h ^ x) * 0x9E3779B97F4A7C15 }
	Exprs(r, func(e expr.Expr) { mix(expr.Hash(e)) })
	Children(r, func(c Rel) { mix(Hash(c)) })
	return h
}

// kindOf is a number that tells nodes apart by what is cheap to know.
func kindOf(r Rel) [2]uint64 {
	switch r := r.(type) {
	case *Get:
		return [2]uint64{1, uint64(r.ID)<<16 + uint64(len(r.Cols))}
	case *Constant:
		return [2]uint64{2, uint64(r.Rows.N)}
	case *Project:
		return [2]uint64{3}
	case *Filter:
		return [2]uint64{4}
	case *Join:
		return [2]uint64{5, uint64(r.Kind)}
	case *Aggregate:
		return [2]uint64{6, uint64(len(r.Aggs))}
	case *Distinct:
		return [2]uint64{7}
	case *TopK:
		return [2]uint64{8, uint64(len(r.Partition))}
	case *Window:
		return [2]uint64{9, uint64(len(r.Calls))}
	case *SetOp:
		return [2]uint64{10, uint64(r.Kind)}
	case *FlatMap:
		return [2]uint64{11}
	case *LocalGet:
		return [2]uint64{12, uint64(r.ID)}
	}
	return [2]uint64{13}
}
