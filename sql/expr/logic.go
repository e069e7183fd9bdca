package expr

import (
	"github.com/streamdb/streamdb/columnar"
)

// Three-valued truth, as a byte a row.
const (
	triFalse = 0
	triTrue  = 1
	triNull  = 2
)

// logic evaluates AND and OR. Arguments that are light are combined over all
// rows; another one is evaluated for the undecided rows only.
func (x *Eval) logic(n *node, f *frame) *columnar.Vec {
	acc := x.eval(n.args[0], f)
	for i, a := range n.args[1:] {
		if a.light {
			acc = x.combine(n.and, acc, x.eval(a, f), f.n)
			continue
		}
		return x.logicLazy(n, acc, n.args[1+i:], f)
	}
	return acc
}

// combine is AND or OR of two vectors.
func (x *Eval) combine(and bool, a, b *columnar.Vec, n int) *columnar.Vec {
	if a.Len() == 1 && b.Len() == 1 {
		n = 1
	}
	a, b = x.expand(a, n), x.expand(b, n)
	out := x.resultOf(columnar.KindBool, n)
	p, q, dst := rawBools(a), rawBools(b), rawBools(out)
	pw, qw, dw := wordsOf(p), wordsOf(q), wordsOf(dst)
	for i := range dw {
		if and {
			dw[i] = pw[i] & qw[i]
		} else {
			dw[i] = pw[i] | qw[i]
		}
	}
	for i := 8 * len(dw); i < n; i++ {
		if and {
			dst[i] = p[i] & q[i]
		} else {
			dst[i] = p[i] | q[i]
		}
	}
	an, bn := a.Nulls(), b.Nulls()
	if an == nil && bn == nil {
		return out
	}
	// NULL slots are false. AND is NULL where one side is and the other is not
	// false; OR where one side is and the other is not true.
	nulls := columnar.NewBitmap(n)
	found := false
	for i := range n {
		x, y := tri(p, an, i), tri(q, bn, i)
		if (x == triNull || y == triNull) && (and && x != triFalse && y != triFalse || !and && x != triTrue && y != triTrue) {
			nulls.Set(i)
			found = true
		}
	}
	if !found {
		return out
	}
	return out.WithNulls(nulls)
}

func tri(raw []byte, nulls columnar.Bitmap, i int) byte {
	if nulls != nil && nulls.Get(i) {
		return triNull
	}
	return raw[i]
}

// logicLazy goes on from the value acc of the first arguments with rest, each
// for the rows that are still undecided.
func (x *Eval) logicLazy(n *node, acc *columnar.Vec, rest []*node, f *frame) *columnar.Vec {
	acc = x.expand(acc, f.n)
	state := make([]byte, f.n)
	open := x.indexes(f.n)
	k := 0
	decided := byte(triTrue)
	if n.and {
		decided = triFalse
	}
	raw, nulls := rawBools(acc), acc.Nulls()
	for i := range state {
		state[i] = tri(raw, nulls, i)
		if state[i] != decided {
			open[k] = uint32(i)
			k++
		}
	}
	open = open[:k]
	for _, a := range rest {
		if len(open) == 0 {
			break
		}
		open = x.narrow(a, f, open, state, decided)
	}
	return boolsOf(x, state)
}

// narrow evaluates a for the rows open of f, updates their states, and returns
// those that stay undecided.
func (x *Eval) narrow(a *node, f *frame, open []uint32, state []byte, decided byte) []uint32 {
	g := f
	if len(open) != f.n {
		g = x.child(f, open)
	}
	v := x.expand(x.eval(a, g), g.n)
	raw, nulls := rawBools(v), v.Nulls()
	next := x.indexes(len(open))
	k := 0
	for j, i := range open {
		t := tri(raw, nulls, j)
		if t == decided {
			state[i] = decided
			continue
		}
		if t == triNull {
			state[i] = triNull
		}
		next[k] = i
		k++
	}
	return next[:k]
}

// boolsOf is the bool vector of three-valued states.
func boolsOf(x *Eval, state []byte) *columnar.Vec {
	out := x.resultOf(columnar.KindBool, len(state))
	dst := rawBools(out)
	seen := byte(0)
	for i, t := range state {
		dst[i] = t & 1
		seen |= t
	}
	if seen&triNull == 0 {
		return out
	}
	nulls := columnar.NewBitmap(len(state))
	for i, t := range state {
		nulls[i>>6] |= uint64(t>>1) << (uint(i) & 63)
	}
	return out.WithNulls(nulls)
}
