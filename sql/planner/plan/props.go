package plan

import (
	"slices"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/types"
)

// maxKeys bounds how many keys are derived for a node, so that the derivation
// stays polynomial.
const maxKeys = 8

// Keys lists column sets of r that are unique: no two rows agree in all of
// them. An empty set means that there is at most one row. It works on the
// bound stage too, where an outer column counts as a constant.
func Keys(r Rel) [][]int {
	switch r := r.(type) {
	case *Get:
		return notNullKeys(r.Keys, r.Cols)
	case *Constant:
		if r.Rows.N <= 1 {
			return [][]int{{}}
		}
	case *Project:
		return projectKeys(r)
	case *Filter:
		return filterKeys(Keys(r.Input), r.Preds, Arity(r.Input))
	case *Join:
		return joinKeys(r)
	case *Aggregate:
		if r.GroupingSets != nil {
			return nil
		}
		return [][]int{upTo(len(r.GroupBy))}
	case *Distinct:
		return addKey(Keys(r.Input), upTo(Arity(r.Input)))
	case *TopK:
		if IsInt(r.Limit, 1) && !r.WithTies {
			return addKey(Keys(r.Input), r.Partition)
		}
		return Keys(r.Input)
	case *Window:
		return Keys(r.Input)
	case *SetOp:
		return setOpKeys(r)
	case *FlatMap:
		return flatMapKeys(r)
	case *Let:
		return Keys(r.Body)
	case *LocalGet:
		return r.Keys
	case *Recursive:
		return Keys(r.Body)
	case *Assert:
		return addKey(Keys(r.Input), r.Key)
	case *Sort:
		return Keys(r.Input)
	}
	return nil
}

// MaxOneRow reports whether r is known to have at most one row.
func MaxOneRow(r Rel) bool {
	for _, k := range Keys(r) {
		if len(k) == 0 {
			return true
		}
	}
	return false
}

// ExactlyOneRow reports whether r is known to have one row.
func ExactlyOneRow(r Rel) bool {
	switch r := r.(type) {
	case *Constant:
		return r.Rows.N == 1 && r.Diffs == nil
	case *Aggregate:
		return len(r.GroupBy) == 0 && r.GroupingSets == nil
	case *Project:
		return ExactlyOneRow(r.Input)
	case *Assert:
		return ExactlyOneRow(r.Input)
	case *Window:
		return ExactlyOneRow(r.Input)
	case *Distinct:
		return ExactlyOneRow(r.Input)
	case *Let:
		return ExactlyOneRow(r.Body)
	case *Sort:
		return r.Limit == nil && r.Offset == nil && ExactlyOneRow(r.Input)
	case *Join:
		switch r.Kind {
		case JoinInner:
			return len(r.On) == 0 && ExactlyOneRow(r.Left) && ExactlyOneRow(r.Right)
		case JoinLeft:
			return ExactlyOneRow(r.Left) && MaxOneRow(r.Right)
		}
	}
	return false
}

// AppendOnly reports whether no row of r ever goes away.
func AppendOnly(r Rel) bool {
	switch r := r.(type) {
	case *Get:
		return r.AppendOnly
	case *Constant:
		return true
	case *Join:
		return (r.Kind == JoinInner || r.Kind == JoinSemi) && AppendOnly(r.Left) && AppendOnly(r.Right)
	case *SetOp:
		if r.Kind != Union {
			return false
		}
		for _, in := range r.Inputs {
			if !AppendOnly(in) {
				return false
			}
		}
		return r.All || allBitEqual(r.Cols)
	case *Project:
		return AppendOnly(r.Input)
	case *Filter:
		return AppendOnly(r.Input)
	case *Distinct:
		// Of equal rows that do not look the same, another one may be shown later.
		return AppendOnly(r.Input) && allBitEqual(r.Columns())
	case *FlatMap:
		return AppendOnly(r.Input)
	case *Assert:
		return AppendOnly(r.Input)
	case *Let:
		return AppendOnly(r.Body)
	case *LocalGet:
		return r.AppendOnly
	}
	return false
}

func allBitEqual(cols []Column) bool {
	for _, c := range cols {
		if !BitEqual(c.Type) {
			return false
		}
	}
	return true
}

func upTo(n int) []int {
	k := make([]int, n)
	for i := range k {
		k[i] = i
	}
	return k
}

func notNullKeys(keys [][]int, cols []Column) [][]int {
	ok := func(k []int) bool {
		for _, c := range k {
			if !cols[c].NotNull {
				return false
			}
		}
		return true
	}
	for i := range keys {
		if !ok(keys[i]) {
			var out [][]int
			for _, k := range keys {
				if ok(k) {
					out = append(out, k)
				}
			}
			return out
		}
	}
	return keys
}

// addKey adds k unless one of keys is a part of it.
func addKey(keys [][]int, k []int) [][]int {
	for _, o := range keys {
		if Subset(o, k) {
			return keys
		}
	}
	if len(keys) >= maxKeys {
		return keys
	}
	return append(slices.Clip(keys), k)
}

// Subset reports whether every element of a is in b.
func Subset(a, b []int) bool {
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}

func projectKeys(r *Project) [][]int {
	in := Keys(r.Input)
	if len(in) == 0 {
		return nil
	}
	var out [][]int
	for _, k := range in {
		mapped := make([]int, 0, len(k))
		for _, c := range k {
			at := slices.IndexFunc(r.Exprs, func(e expr.Expr) bool {
				col, ok := e.(*expr.Column)
				return ok && col.Index == c
			})
			if at < 0 {
				mapped = nil
				break
			}
			mapped = append(mapped, at)
		}
		if mapped != nil {
			out = addKey(out, mapped)
		}
	}
	return out
}

// filterKeys leaves out of keys the columns that preds bind to constants.
func filterKeys(keys [][]int, preds []expr.Expr, arity int) [][]int {
	if len(keys) == 0 {
		return nil
	}
	fixed := FixedColumns(preds)
	if len(fixed) == 0 {
		return keys
	}
	var out [][]int
	for _, k := range keys {
		rest := make([]int, 0, len(k))
		for _, c := range k {
			if !slices.Contains(fixed, c) {
				rest = append(rest, c)
			}
		}
		out = addKey(out, rest)
	}
	return out
}

// FixedColumns lists the columns that preds bind, by equality, to an
// expression without columns.
func FixedColumns(preds []expr.Expr) []int {
	var out []int
	for _, p := range preds {
		l, r, ok := IsEquality(p)
		if !ok {
			continue
		}
		if c, ok := l.(*expr.Column); ok && !expr.UsesColumns(r) && !slices.Contains(out, c.Index) {
			out = append(out, c.Index)
		}
		if c, ok := r.(*expr.Column); ok && !expr.UsesColumns(l) && !slices.Contains(out, c.Index) {
			out = append(out, c.Index)
		}
	}
	return out
}

// IsEquality gives the two sides of an SQL equality `l = r`.
func IsEquality(e expr.Expr) (l, r expr.Expr, ok bool) {
	c, ok := e.(*expr.Call)
	if !ok || !c.Fn.Operator || c.Fn.Name != "=" || c.Fn.Fuzzy || len(c.Args) != 2 {
		return nil, nil, false
	}
	return c.Args[0], c.Args[1], true
}

func joinKeys(r *Join) [][]int {
	lk := Keys(r.Left)
	if r.Kind == JoinSemi || r.Kind == JoinAnti {
		return lk
	}
	rk := Keys(r.Right)
	nl := Arity(r.Left)
	lcols, rcols := EquiColumns(r.On, nl)
	lUnique := hasKeyIn(lk, lcols)
	rUnique := hasKeyIn(rk, rcols)
	var out [][]int
	if rUnique && (r.Kind == JoinInner || r.Kind == JoinLeft) {
		out = append(out, lk...)
	}
	if lUnique && !r.Lateral && (r.Kind == JoinInner || r.Kind == JoinRight) {
		for _, k := range rk {
			out = addKey(out, shifted(k, nl))
		}
	}
	for _, a := range lk {
		for _, b := range rk {
			if r.Kind == JoinFull && !anyNotNull(a, r.Left) && !anyNotNull(b, r.Right) {
				continue // a row without a partner on either side may look like the other's
			}
			out = addKey(out, append(slices.Clone(a), shifted(b, nl)...))
		}
	}
	return out
}

// anyNotNull reports whether a column of the key is never NULL.
func anyNotNull(key []int, r Rel) bool {
	cols := r.Columns()
	return slices.ContainsFunc(key, func(c int) bool { return cols[c].NotNull })
}

// EquiColumns lists the columns of each side that On equates pairwise.
func EquiColumns(on []expr.Expr, nl int) (left, right []int) {
	for _, p := range on {
		a, b, ok := IsEquality(p)
		if !ok {
			a, b, ok = IsSame(p)
		}
		if !ok {
			continue
		}
		x, ok1 := a.(*expr.Column)
		y, ok2 := b.(*expr.Column)
		if !ok1 || !ok2 {
			continue
		}
		if x.Index >= nl {
			x, y = y, x
		}
		if x.Index < nl && y.Index >= nl {
			left = append(left, x.Index)
			right = append(right, y.Index-nl)
		}
	}
	return left, right
}

func hasKeyIn(keys [][]int, cols []int) bool {
	for _, k := range keys {
		if Subset(k, cols) {
			return true
		}
	}
	return false
}

func shifted(k []int, by int) []int {
	out := make([]int, len(k))
	for i, c := range k {
		out[i] = c + by
	}
	return out
}

func setOpKeys(r *SetOp) [][]int {
	switch {
	case r.Kind == Except:
		keys := Keys(r.Inputs[0])
		if !r.All {
			keys = addKey(keys, upTo(len(r.Cols)))
		}
		return keys
	case r.Kind == Intersect:
		var out [][]int
		for _, in := range r.Inputs {
			for _, k := range Keys(in) {
				out = addKey(out, k)
			}
		}
		if !r.All {
			out = addKey(out, upTo(len(r.Cols)))
		}
		return out
	case !r.All:
		return [][]int{upTo(len(r.Cols))}
	}
	return nil
}

func flatMapKeys(r *FlatMap) [][]int {
	if !r.Ordinality {
		return nil
	}
	var out [][]int
	for _, k := range Keys(r.Input) {
		out = append(out, append(slices.Clone(k), len(r.Cols)-1))
	}
	return out
}

// IsInt reports whether e is the integer constant v.
func IsInt(e expr.Expr, v int64) bool {
	x, ok := IntConst(e)
	return ok && x == v
}

// IntConst is the value of a non-NULL integer constant.
func IntConst(e expr.Expr) (int64, bool) {
	c, ok := e.(*expr.Const)
	if !ok || c.Val.Null(0) {
		return 0, false
	}
	switch c.Typ.OID {
	case types.OIDInt8:
		return c.Val.Int64s()[0], true
	case types.OIDInt4:
		return int64(c.Val.Int32s()[0]), true
	case types.OIDInt2:
		return int64(c.Val.Int16s()[0]), true
	}
	return 0, false
}

// BitEqual reports whether values of a type are equal in SQL exactly if they
// have the same bits: if not, what is keyed by them needs expr.KeyNorm.
func BitEqual(t types.Type) bool {
	if t.Mod >= 0 && (t.OID == types.OIDNumeric || t.OID == types.OIDBPChar) {
		return true // all values have the one scale, or length
	}
	return !types.NeedsNorm(t)
}

// SameBits reports whether values of two types are equal in SQL exactly if they
// have the same bits.
func SameBits(a, b types.Type) bool {
	return a.OID == b.OID && (!types.NeedsNorm(a) || a == b && BitEqual(a))
}
