package expr

import (
	"github.com/streamdb/streamdb/columnar"
)

// merger assembles a vector from parts that were computed for disjoint rows.
type merger struct {
	kind  columnar.Kind
	n     int
	parts []mergePart
}

type mergePart struct {
	v    *columnar.Vec // len(rows) values, or one for all
	rows []uint32      // ascending
}

func (m *merger) add(v *columnar.Vec, rows []uint32) {
	if len(rows) > 0 {
		m.parts = append(m.parts, mergePart{v, rows})
	}
}

// build is the vector; rows without a part are NULL.
func (m *merger) build(x *Eval) *columnar.Vec {
	if len(m.parts) == 1 && len(m.parts[0].rows) == m.n {
		return m.parts[0].v
	}
	if m.kind == columnar.KindBytes {
		return m.buildBytes()
	}
	covered := 0
	for _, p := range m.parts {
		covered += len(p.rows)
	}
	out := x.resultOf(m.kind, m.n)
	var nulls columnar.Bitmap
	if covered < m.n {
		fixed, _, _ := out.Raw()
		clear(fixed)
		nulls = ones(m.n)
	}
	for _, p := range m.parts {
		scatter(out, p.v, p.rows)
		nulls = p.markNulls(nulls, m.n)
	}
	if nulls == nil {
		return out
	}
	return out.WithNulls(nulls)
}

// markNulls notes in nulls which rows of the part are NULL; nulls nil means
// that there is none yet.
func (p *mergePart) markNulls(nulls columnar.Bitmap, n int) columnar.Bitmap {
	if p.v.Nulls() == nil && nulls == nil {
		return nil
	}
	if nulls == nil {
		nulls = columnar.NewBitmap(n)
	}
	one := p.v.Len() == 1
	for j, i := range p.rows {
		if one {
			j = 0
		}
		if p.v.Null(j) {
			nulls.Set(int(i))
		} else {
			nulls.Clear(int(i))
		}
	}
	return nulls
}

func scatter(dst, v *columnar.Vec, rows []uint32) {
	switch dst.Kind() {
	case columnar.KindBool:
		scatterFixed[bool](dst, v, rows)
	case columnar.KindInt16:
		scatterFixed[int16](dst, v, rows)
	case columnar.KindInt32:
		scatterFixed[int32](dst, v, rows)
	case columnar.KindInt64:
		scatterFixed[int64](dst, v, rows)
	case columnar.KindFloat32:
		scatterFixed[float32](dst, v, rows)
	case columnar.KindFloat64:
		scatterFixed[float64](dst, v, rows)
	case columnar.KindFixed16:
		scatterFixed[columnar.U128](dst, v, rows)
	}
}

func scatterFixed[T columnar.Fixed](dst, v *columnar.Vec, rows []uint32) {
	d, s := columnar.Values[T](dst), columnar.Values[T](v)
	if len(s) == 1 {
		for _, i := range rows {
			d[i] = s[0]
		}
		return
	}
	for j, i := range rows {
		d[i] = s[j]
	}
}

func (m *merger) buildBytes() *columnar.Vec {
	from := make([]uint16, m.n) // 1 + part
	size := 0
	for k, p := range m.parts {
		for _, i := range p.rows {
			from[i] = uint16(k + 1)
		}
		_, offs, _ := p.v.Raw()
		if l := int(offs[p.v.Len()] - offs[0]); p.v.Len() == 1 {
			size += l * len(p.rows)
		} else {
			size += l
		}
	}
	offs := make([]uint32, m.n+1)
	data := make([]byte, 0, size)
	next := make([]int, len(m.parts))
	var nulls columnar.Bitmap
	for i, k := range from {
		null := k == 0
		if !null {
			p := &m.parts[k-1]
			j := next[k-1]
			next[k-1]++
			if p.v.Len() == 1 {
				j = 0
			}
			null = p.v.Null(j)
			data = append(data, p.v.Bytes(j)...)
		}
		if null {
			if nulls == nil {
				nulls = columnar.NewBitmap(m.n)
			}
			nulls.Set(i)
		}
		offs[i+1] = uint32(len(data))
	}
	return columnar.FromBytes(offs, data, nulls)
}

// split divides the rows of a frame by a condition: those where it is true, and
// the others. Both are rows of the frame.
func (x *Eval) split(cond *columnar.Vec, n int) (yes, no []uint32) {
	yes, no = x.indexes(n), x.indexes(n)
	if cond.Len() == 1 && n != 1 {
		all := no
		if cond.Bools()[0] {
			all = yes
		}
		for i := range all {
			all[i] = uint32(i)
		}
		if cond.Bools()[0] {
			return yes, nil
		}
		return nil, no
	}
	y, k := 0, 0
	for i, b := range rawBools(cond) {
		yes[y] = uint32(i)
		no[k] = uint32(i)
		y += int(b)
		k += int(b ^ 1)
		if y == n || k == n {
			break
		}
	}
	return yes[:y], no[:k]
}

// compose maps rows of a frame to rows of the frame that base indexes.
func (x *Eval) compose(base, rows []uint32) []uint32 {
	if base == nil {
		return rows
	}
	out := x.indexes(len(rows))
	for i, r := range rows {
		out[i] = base[r]
	}
	return out
}

// caseWhen evaluates CASE: each branch for the rows that choose it.
func (x *Eval) caseWhen(n *node, f *frame) *columnar.Vec {
	whens := n.args
	var els *node
	if n.els {
		els = whens[len(whens)-1]
		whens = whens[:len(whens)-1]
	}
	if n.light && n.kind != columnar.KindBytes && f.n > 1 {
		return x.caseDense(n, whens, els, f)
	}
	m := merger{kind: n.kind, n: f.n}
	rest := f
	var base []uint32 // rows of f that rest stands for; nil: all
	for k := 0; k < len(whens) && rest.n > 0; k += 2 {
		yes, no := x.split(x.eval(whens[k], rest), rest.n)
		if len(yes) > 0 {
			g := rest
			if len(yes) < rest.n {
				g = x.child(rest, yes)
			}
			m.add(x.eval(whens[k+1], g), x.compose(base, yes))
		}
		if len(no) < rest.n {
			rest, base = x.child(rest, no), x.compose(base, no)
		}
	}
	if els != nil && rest.n > 0 {
		m.add(x.eval(els, rest), x.compose(base, x.identity(rest.n)))
	}
	return m.build(x)
}

// identity is the row numbers 0 to n-1.
func (x *Eval) identity(n int) []uint32 {
	out := x.indexes(n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

// caseDense evaluates all of a light CASE over all rows and blends the
// branches, the last first.
func (x *Eval) caseDense(n *node, whens []*node, els *node, f *frame) *columnar.Vec {
	out := x.resultOf(n.kind, f.n)
	var nulls columnar.Bitmap
	if els != nil {
		v := x.expand(x.eval(els, f), f.n)
		dst, _, _ := out.Raw()
		src, _, _ := v.Raw()
		copy(dst, src)
		nulls = append(nulls, v.Nulls()...)
	} else {
		dst, _, _ := out.Raw()
		clear(dst)
		nulls = ones(f.n)
	}
	for k := len(whens) - 2; k >= 0; k -= 2 {
		cond := rawBools(x.expand(x.eval(whens[k], f), f.n))
		then := x.eval(whens[k+1], f)
		blend(out, then, cond)
		nulls = blendNulls(nulls, then, cond)
	}
	if nulls == nil {
		return out
	}
	return out.WithNulls(nulls)
}

func blendNulls(nulls columnar.Bitmap, then *columnar.Vec, cond []byte) columnar.Bitmap {
	tn := then.Nulls()
	if tn == nil && nulls == nil {
		return nil
	}
	if nulls == nil {
		nulls = columnar.NewBitmap(len(cond))
	}
	one := then.Len() == 1 && len(cond) != 1
	for i, c := range cond {
		if c == 0 {
			continue
		}
		j := i
		if one {
			j = 0
		}
		if tn != nil && tn.Get(j) {
			nulls.Set(i)
		} else {
			nulls.Clear(i)
		}
	}
	return nulls
}

func blend(out, then *columnar.Vec, cond []byte) {
	switch out.Kind() {
	case columnar.KindBool:
		blendFixed[bool](out, then, cond)
	case columnar.KindInt16:
		blendFixed[int16](out, then, cond)
	case columnar.KindInt32:
		blendFixed[int32](out, then, cond)
	case columnar.KindInt64:
		blendFixed[int64](out, then, cond)
	case columnar.KindFloat32:
		blendFixed[float32](out, then, cond)
	case columnar.KindFloat64:
		blendFixed[float64](out, then, cond)
	case columnar.KindFixed16:
		blendFixed[columnar.U128](out, then, cond)
	}
}

func blendFixed[T columnar.Fixed](out, then *columnar.Vec, cond []byte) {
	d, s := columnar.Values[T](out), columnar.Values[T](then)
	d = d[:len(cond)]
	if len(s) == 1 {
		c := s[0]
		for i, b := range cond {
			v := d[i]
			if b != 0 {
				v = c
			}
			d[i] = v
		}
		return
	}
	s = s[:len(cond)]
	for i, b := range cond {
		v := d[i]
		if b != 0 {
			v = s[i]
		}
		d[i] = v
	}
}

// coalesce evaluates each argument for the rows where the earlier are NULL.
func (x *Eval) coalesce(n *node, f *frame) *columnar.Vec {
	first := x.eval(n.args[0], f)
	if first.Nulls() == nil {
		return first
	}
	m := merger{kind: n.kind, n: f.n}
	rest := f
	var base []uint32
	for k, a := range n.args {
		v := x.eval(a, rest)
		if v.Nulls() == nil || k == len(n.args)-1 {
			m.add(v, x.compose(base, x.identity(rest.n)))
			break
		}
		null := x.isNull(x.expand(v, rest.n), true)
		have, lack := x.split(null, rest.n)
		if len(have) > 0 {
			m.add(x.gather(v, rest.n, have), x.compose(base, have))
		}
		if len(lack) == 0 {
			break
		}
		if len(lack) < rest.n {
			rest, base = x.child(rest, lack), x.compose(base, lack)
		}
	}
	return m.build(x)
}
