package reference

import "sort"

// Map applies a linear function: f emits rows with factors.
func Map(z *ZSet, f func(r Row, emit func(Row, int64))) *ZSet {
	out := New()
	for _, e := range z.m {
		f(e.Row, func(r Row, factor int64) { out.Add(r, factor*e.Diff) })
	}
	return out
}

// Union is the sum of Z-sets.
func Union(zs ...*ZSet) *ZSet {
	out := New()
	for _, z := range zs {
		out.AddAll(z, 1)
	}
	return out
}

// Negate is the Z-set with every diff negated.
func Negate(z *ZSet) *ZSet {
	out := New()
	out.AddAll(z, -1)
	return out
}

// Threshold keeps the rows with a positive diff; Distinct gives those diff 1.
func Threshold(z *ZSet) *ZSet {
	out := New()
	for _, e := range z.m {
		out.Add(e.Row, max(e.Diff, 0))
	}
	return out
}

// Distinct is the set of the rows with a positive diff.
func Distinct(z *ZSet) *ZSet {
	out := New()
	for _, e := range z.m {
		if e.Diff > 0 {
			out.Add(e.Row, 1)
		}
	}
	return out
}

// Intersect has each row as often as both have it (once if not all), Except as
// often as a has it beyond b.
func Intersect(a, b *ZSet, all bool) *ZSet {
	out := New()
	for _, e := range a.m {
		n := min(e.Diff, b.Diff(e.Row))
		if !all {
			n = min(n, 1)
		}
		out.Add(e.Row, max(n, 0))
	}
	return out
}

// Except is EXCEPT [ALL].
func Except(a, b *ZSet, all bool) *ZSet {
	out := New()
	for _, e := range a.m {
		m := max(b.Diff(e.Row), 0)
		switch {
		case all:
			out.Add(e.Row, max(e.Diff-m, 0))
		case e.Diff > 0 && m == 0:
			out.Add(e.Row, 1)
		}
	}
	return out
}

// Project is the given columns of a row.
func Project(r Row, cols []int) Row {
	out := make(Row, len(cols))
	for i, c := range cols {
		out[i] = r[c]
	}
	return out
}

func hasNull(r Row) bool {
	for _, v := range r {
		if v == nil {
			return true
		}
	}
	return false
}

// Join is the pairs of rows with equal keys, left columns first. NULL equals
// NULL only if nullSafe.
func Join(l, r *ZSet, lk, rk []int, nullSafe bool) *ZSet {
	byKey := map[string][]*Entry{}
	for _, e := range r.m {
		k := Project(e.Row, rk)
		if nullSafe || !hasNull(k) {
			byKey[encode(k)] = append(byKey[encode(k)], e)
		}
	}
	out := New()
	for _, e := range l.m {
		for _, f := range byKey[encode(Project(e.Row, lk))] {
			out.Add(append(append(Row(nil), e.Row...), f.Row...), e.Diff*f.Diff)
		}
	}
	return out
}

// Semi is the rows of l with a partner in r (of positive total diff), Anti
// those without.
func Semi(l, r *ZSet, lk, rk []int, nullSafe bool) *ZSet { return half(l, r, lk, rk, nullSafe, true) }

// Anti is the rows of l without a partner in r.
func Anti(l, r *ZSet, lk, rk []int, nullSafe bool) *ZSet { return half(l, r, lk, rk, nullSafe, false) }

func half(l, r *ZSet, lk, rk []int, nullSafe, want bool) *ZSet {
	n := map[string]int64{}
	for _, e := range r.m {
		k := Project(e.Row, rk)
		if nullSafe || !hasNull(k) {
			n[encode(k)] += e.Diff
		}
	}
	out := New()
	for _, e := range l.m {
		if (n[encode(Project(e.Row, lk))] > 0) == want {
			out.Add(e.Row, e.Diff)
		}
	}
	return out
}

// group is the rows with one key.
type group struct {
	key     Row
	entries []Entry
}

// groups cuts a Z-set by key; with global there is one group, even an empty one.
func groups(z *ZSet, key []int, global bool) []*group {
	m := map[string]*group{}
	var out []*group
	add := func(k Row) *group {
		g := m[encode(k)]
		if g == nil {
			g = &group{key: k}
			m[encode(k)] = g
			out = append(out, g)
		}
		return g
	}
	if global {
		add(Row{})
	}
	for _, e := range z.Entries() {
		g := add(Project(e.Row, key))
		g.entries = append(g.entries, e)
	}
	return out
}

// Order is one ordering column; NULLs come first if NullsFirst, else last.
type Order struct {
	Col        int
	Desc       bool
	NullsFirst bool
}

func compareBy(order []Order, a, b Row) int {
	for _, o := range order {
		x, y := a[o.Col], b[o.Col]
		switch {
		case x == nil && y == nil:
			continue
		case x == nil || y == nil:
			if (x == nil) == o.NullsFirst {
				return -1
			}
			return 1
		}
		if c := Compare(x, y); c != 0 {
			if o.Desc {
				return -c
			}
			return c
		}
	}
	return 0
}

// CompareOrdered orders rows by order, ties by the whole row.
func CompareOrdered(order []Order, a, b Row) int {
	if c := compareBy(order, a, b); c != 0 {
		return c
	}
	return CompareRows(a, b)
}

// Peers reports whether rows are equal in the order columns.
func Peers(order []Order, a, b Row) bool { return compareBy(order, a, b) == 0 }

// sorted is the rows of positive diff in an order, ties by the whole row.
func sorted(entries []Entry, order []Order) []Entry {
	var out []Entry
	for _, e := range entries {
		if e.Diff > 0 {
			out = append(out, e)
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		return CompareOrdered(order, out[i].Row, out[j].Row) < 0
	})
	return out
}

// TopK keeps, per group, the rows from offset up to offset+limit (< 0: all), and
// with ties those equal to the last kept one in the order. With number it
// appends the row's number in its group.
func TopK(z *ZSet, part []int, order []Order, limit, offset int64, ties, number bool) *ZSet {
	out := New()
	for _, g := range groups(z, part, false) {
		n := int64(0)
		var last Row
		for _, e := range sorted(g.entries, order) {
			for range e.Diff {
				n++
				in := n > offset && (limit < 0 || n <= offset+limit)
				if !in && ties && last != nil && compareBy(order, last, e.Row) == 0 {
					in = true
				}
				if !in {
					continue
				}
				if n <= offset+limit {
					last = e.Row
				}
				r := e.Row
				if number {
					r = append(append(Row(nil), r...), n)
				}
				out.Add(r, 1)
			}
		}
	}
	return out
}

// GroupMap applies f to each group: its rows of positive diff, sorted.
func GroupMap(z *ZSet, key []int, order []Order, global bool, f func(rows []Entry, emit func(Row, int64))) *ZSet {
	out := New()
	for _, g := range groups(z, key, global) {
		rows := sorted(g.entries, order)
		if len(rows) > 0 || global {
			f(rows, out.Add)
		}
	}
	return out
}

// Iterate computes variables from empty to the fixed point of step, or for
// limit rounds if that is positive.
func Iterate(vars int, limit int, step func(vars []*ZSet) []*ZSet) []*ZSet {
	cur := make([]*ZSet, vars)
	for i := range cur {
		cur[i] = New()
	}
	for round := 0; limit <= 0 || round < limit; round++ {
		next := step(cur)
		same := true
		for i := range next {
			same = same && next[i].Equal(cur[i])
		}
		cur = next
		if same {
			break
		}
	}
	return cur
}

// UpsertRecord is a record of the upsert envelope: op 0 puts Row, 1 deletes the
// row of its key, 2 deletes all rows. Unchanged columns keep their value.
type UpsertRecord struct {
	Op        int
	Row       Row
	Unchanged []bool
}

// Upsert applies records, in order, to the current rows by key.
func Upsert(state map[string]Row, key []int, records []UpsertRecord) {
	var deleted Row
	for _, r := range records {
		k := encode(Project(r.Row, key))
		switch r.Op {
		case 2:
			clear(state)
			deleted = nil
		case 1:
			deleted = state[k]
			delete(state, k)
		default:
			row := append(Row(nil), r.Row...)
			old, ok := state[k]
			if !ok {
				old = deleted
			}
			for c, keep := range r.Unchanged {
				if !keep {
					continue
				}
				row[c] = nil
				if old != nil {
					row[c] = old[c]
				}
			}
			state[encode(Project(row, key))] = row
			deleted = nil
		}
	}
}

// Rows is the Z-set of the current rows.
func Rows(state map[string]Row) *ZSet {
	out := New()
	for _, r := range state {
		out.Add(r, 1)
	}
	return out
}
