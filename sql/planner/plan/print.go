package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
)

// maxRows is how many rows of a Constant are printed.
const maxRows = 5

// Format prints a plan as EXPLAIN shows it: one node a line, inputs indented
// below, expressions as SQL over the names of the input's columns. A name that
// occurs more than once is followed by #position. The text is the same for the
// same plan, always: golden tests and fingerprints rely on it.
func Format(r Rel) string {
	p := printer{}
	p.node(r, 0)
	return p.b.String()
}

type printer struct {
	b strings.Builder
}

// node prints r and its inputs.
func (p *printer) node(r Rel, depth int) {
	for range depth {
		p.b.WriteString("  ")
	}
	subs := &subqueries{}
	p.b.WriteString(describe(r, subs))
	p.b.WriteByte('\n')
	for i, s := range subs.rels {
		p.label(depth+1, fmt.Sprintf("subquery %d:", i+1))
		p.node(s, depth+2)
	}
	switch r := r.(type) {
	case *Let:
		p.node(r.Value, depth+1)
		p.label(depth, "In")
		p.node(r.Body, depth+1)
	case *Recursive:
		for i, v := range r.Values {
			kind := "all"
			if r.Distinct[i] {
				kind = "distinct"
			}
			p.label(depth+1, fmt.Sprintf("l%d = (%s)", r.IDs[i], kind))
			p.node(v, depth+2)
		}
		p.label(depth, "In")
		p.node(r.Body, depth+1)
	default:
		Children(r, func(c Rel) { p.node(c, depth+1) })
	}
}

func (p *printer) label(depth int, s string) {
	for range depth {
		p.b.WriteString("  ")
	}
	p.b.WriteString(s)
	p.b.WriteByte('\n')
}

// subqueries collects the relations inside the expressions of a node.
type subqueries struct{ rels []Rel }

// Describe prints one node without its inputs.
func Describe(r Rel) string { return describe(r, &subqueries{}) }

func describe(r Rel, subs *subqueries) string {
	switch r := r.(type) {
	case *Get:
		return describeGet(r)
	case *Constant:
		return describeConstant(r)
	case *Project:
		n := namesOf(r.Input.Columns(), subs)
		items := make([]string, len(r.Exprs))
		for i, e := range r.Exprs {
			items[i] = n.as(e, r.Cols[i].Name)
		}
		return "Project [" + strings.Join(items, ", ") + "]"
	case *Filter:
		return "Filter [" + namesOf(r.Input.Columns(), subs).conj(r.Preds) + "]"
	case *Join:
		return describeJoin(r, subs)
	case *Aggregate:
		return describeAggregate(r, subs)
	case *Distinct:
		return "Distinct"
	case *TopK:
		return describeTopK(r, subs)
	case *Window:
		return describeWindow(r, subs)
	case *SetOp:
		s := [...]string{"", "Union", "Intersect", "Except"}[r.Kind]
		if r.All {
			s += " All"
		}
		return s
	case *FlatMap:
		return describeFlatMap(r, subs)
	case *Let:
		return fmt.Sprintf("Let l%d =", r.ID)
	case *LocalGet:
		return fmt.Sprintf("LocalGet l%d [%s]", r.ID, columnList(r.Cols))
	case *Recursive:
		s := "Recursive"
		if r.Limit > 0 {
			s += fmt.Sprintf(" limit %d", r.Limit)
		}
		if r.FailAtLimit {
			s += " or fail"
		}
		if r.Working {
			s += " by working table"
		}
		return s
	case *Assert:
		n := namesOf(r.Input.Columns(), subs)
		if len(r.Key) == 0 {
			return "Assert at most one row"
		}
		return "Assert at most one row per (" + n.cols(r.Key) + ")"
	case *Sort:
		n := namesOf(r.Input.Columns(), subs)
		return "Sort" + n.order(r.Order) + n.limit(r.Limit, r.Offset)
	}
	return fmt.Sprintf("%T", r)
}

func describeGet(r *Get) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Get %s [%s]", r.Name, columnList(r.Cols))
	n := namesOf(r.Cols, nil)
	for _, k := range r.Keys {
		fmt.Fprintf(&b, " key=(%s)", n.cols(k))
	}
	if r.AppendOnly {
		b.WriteString(" append-only")
	}
	if l := r.Lookup; l != nil {
		b.WriteString(describeLookup(l, n))
		if l.Index != r.ID {
			fmt.Fprintf(&b, " index=%d", l.Index)
		}
	}
	return b.String()
}

func describeLookup(l *Lookup, n *names) string {
	if l.Ordered {
		return describeRange(l, n)
	}
	keys := make([]string, len(l.Values))
	for i, vals := range l.Values {
		parts := make([]string, len(vals))
		for j, v := range vals {
			parts[j] = n.expr(v)
		}
		keys[i] = "(" + strings.Join(parts, ", ") + ")"
	}
	return " lookup=" + strings.Join(keys, ", ")
}

// describeRange tells what a lookup in the order of a key asks for.
func describeRange(l *Lookup, n *names) string {
	name := func(k int) string {
		if k < len(l.Names) {
			return l.Names[k]
		}
		return "#" + strconv.Itoa(k)
	}
	var ranges []string
	fixed := 0
	for _, vals := range l.Values {
		fixed = len(vals)
		var parts []string
		for j, v := range vals {
			parts = append(parts, name(j)+" = "+n.expr(v))
		}
		op := map[bool]string{false: "=", true: ""}
		if b := l.Lower; b != nil {
			parts = append(parts, name(fixed)+" >"+op[b.Open]+" "+n.expr(b.Value))
		}
		if b := l.Upper; b != nil {
			parts = append(parts, name(fixed)+" <"+op[b.Open]+" "+n.expr(b.Value))
		}
		if len(parts) > 0 {
			ranges = append(ranges, "("+strings.Join(parts, " AND ")+")")
		}
	}
	var s string
	if len(ranges) > 0 {
		s = " lookup=" + strings.Join(ranges, ", ")
	}
	if l.First {
		rest := make([]string, 0, len(l.Key))
		for k := fixed; k < len(l.Key); k++ {
			rest = append(rest, name(k))
		}
		s += " in order of " + strings.Join(rest, ", ")
		if l.Desc {
			s += " backward"
		}
	}
	return s
}

func describeConstant(r *Constant) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Constant [%s]", columnList(r.Cols))
	if r.Rows.N == 0 {
		b.WriteString(" empty")
		return b.String()
	}
	for i := 0; i < r.Rows.N && i < maxRows; i++ {
		vals := make([]string, len(r.Cols))
		for j, c := range r.Cols {
			vals[j] = expr.String(&expr.Const{Val: valueAt(r.Rows.Cols[j], i), Typ: c.Type}, nil)
		}
		fmt.Fprintf(&b, " (%s)", strings.Join(vals, ", "))
		if r.Diffs != nil && r.Diffs[i] != 1 {
			fmt.Fprintf(&b, "×%d", r.Diffs[i])
		}
	}
	if r.Rows.N > maxRows { // the rest is told apart by its hash
		sum := uint64(0)
		for i := maxRows; i < r.Rows.N; i++ {
			sum = sum*31 + columnar.HashRow(r.Rows.Cols, i)
		}
		fmt.Fprintf(&b, " … %d rows #%08x", r.Rows.N, uint32(sum^sum>>32))
	}
	return b.String()
}

// valueAt is a vector of length 1 with value i of v.
func valueAt(v *columnar.Vec, i int) *columnar.Vec {
	b := columnar.NewBuilder(v.Kind(), 1)
	b.AppendFrom(v, i)
	return b.Build()
}

func describeJoin(r *Join, subs *subqueries) string {
	s := "Join " + [...]string{"", "inner", "left", "right", "full", "semi", "anti"}[r.Kind]
	if r.Lateral {
		s += " lateral"
	}
	if r.Lookup != nil {
		s += " lookup"
		Walk(r.Right, func(n Rel) bool {
			if g, ok := n.(*Get); ok && g.ID != r.Lookup.Index {
				s += fmt.Sprintf(" index=%d", r.Lookup.Index)
			}
			return true
		})
	}
	if r.Delta != nil {
		s += " delta (" + describePaths(r.Delta) + ")"
	}
	l, rc := r.Left.Columns(), r.Right.Columns()
	all := make([]Column, 0, len(l)+len(rc))
	n := namesOf(append(append(all, l...), rc...), subs)
	if len(r.On) == 0 {
		if r.Kind == JoinInner {
			return strings.Replace(s, "inner", "cross", 1)
		}
		return s
	}
	return s + " [" + n.conj(r.On) + "]"
}

// describePaths writes the paths of a delta join: its inputs are numbered from 1.
func describePaths(paths [][]int) string {
	out := make([]string, len(paths))
	for i, path := range paths {
		steps := make([]string, len(path))
		for j, in := range path {
			steps[j] = strconv.Itoa(in + 1)
		}
		out[i] = strings.Join(steps, "→")
	}
	return strings.Join(out, ", ")
}

func describeAggregate(r *Aggregate, subs *subqueries) string {
	n := namesOf(r.Input.Columns(), subs)
	var parts []string
	if len(r.GroupBy) > 0 {
		g := make([]string, len(r.GroupBy))
		for i, e := range r.GroupBy {
			g[i] = n.as(e, r.Cols[i].Name)
		}
		parts = append(parts, "group ["+strings.Join(g, ", ")+"]")
	}
	if r.GroupingSets != nil {
		sets := make([]string, len(r.GroupingSets))
		for i, set := range r.GroupingSets {
			items := make([]string, len(set))
			for j, c := range set {
				items[j] = ident(r.Cols[c].Name)
			}
			sets[i] = "(" + strings.Join(items, ", ") + ")"
		}
		parts = append(parts, "sets ["+strings.Join(sets, ", ")+"]")
	}
	if len(r.Aggs) > 0 {
		a := make([]string, len(r.Aggs))
		for i := range r.Aggs {
			a[i] = n.agg(&r.Aggs[i])
			if name := r.Cols[len(r.GroupBy)+i].Name; name != "" && name != r.Aggs[i].Fn.Name {
				a[i] += " AS " + ident(name)
			}
		}
		parts = append(parts, "compute ["+strings.Join(a, ", ")+"]")
	}
	if AppendOnly(r.Input) {
		parts = append(parts, "append-only")
	}
	return strings.TrimRight("Aggregate "+strings.Join(parts, " "), " ")
}

func describeTopK(r *TopK, subs *subqueries) string {
	n := namesOf(r.Input.Columns(), subs)
	s := "TopK"
	if len(r.Partition) > 0 {
		s += " per (" + n.cols(r.Partition) + ")"
	}
	s += n.order(r.Order) + n.limit(r.Limit, r.Offset)
	if r.WithTies {
		s += " with ties"
	}
	if r.RowNumber {
		s += " numbered"
	}
	if AppendOnly(r.Input) {
		s += " append-only"
	}
	return s
}

func describeWindow(r *Window, subs *subqueries) string {
	n := namesOf(r.Input.Columns(), subs)
	s := "Window"
	if len(r.Partition) > 0 {
		items := make([]string, len(r.Partition))
		for i, e := range r.Partition {
			items[i] = n.expr(e)
		}
		s += " per (" + strings.Join(items, ", ") + ")"
	}
	s += n.sortExprs(" order by [", r.Order, "]")
	calls := make([]string, len(r.Calls))
	for i := range r.Calls {
		calls[i] = n.call(&r.Calls[i], len(r.Order) > 0)
	}
	return s + " compute [" + strings.Join(calls, ", ") + "]"
}

func describeFlatMap(r *FlatMap, subs *subqueries) string {
	n := namesOf(r.Input.Columns(), subs)
	args := make([]string, len(r.Args))
	for i, a := range r.Args {
		args[i] = n.expr(a)
	}
	s := fmt.Sprintf("FlatMap %s(%s) AS [%s]", r.Fn.Name, strings.Join(args, ", "),
		columnList(r.Cols[Arity(r.Input):]))
	if r.Ordinality {
		s += " with ordinality"
	}
	if r.Outer {
		s += " outer"
	}
	return s
}

func columnList(cols []Column) string {
	n := namesOf(cols, nil)
	all := make([]int, len(cols))
	for i := range all {
		all[i] = i
	}
	return n.cols(all)
}

// names prints expressions over columns.
type names struct {
	columns []Column
	seen    map[string]int
	subs    *subqueries
}

func namesOf(cols []Column, subs *subqueries) *names {
	n := &names{columns: cols, seen: make(map[string]int, len(cols)), subs: subs}
	for _, c := range cols {
		n.seen[c.Name]++
	}
	return n
}

// name is how column i is called.
func (n *names) name(i int) string {
	if i >= len(n.columns) {
		return "#" + strconv.Itoa(i) + "?"
	}
	s := n.columns[i].Name
	if s == "" || s == "?column?" {
		return "#" + strconv.Itoa(i)
	}
	if n.seen[s] > 1 {
		return ident(s) + "#" + strconv.Itoa(i)
	}
	return ident(s)
}

func (n *names) cols(cs []int) string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = n.name(c)
	}
	return strings.Join(out, ", ")
}

func (n *names) expr(e expr.Expr) string {
	if n.subs != nil {
		e = n.mark(e)
	}
	return expr.String(e, func(c *expr.Column) string {
		if c.Index < 0 {
			return c.Name
		}
		return n.name(c.Index)
	})
}

// mark replaces what only the bound stage has by columns that print as text:
// outer columns as ^depth.name, subqueries as kind(number), printed below the node.
func (n *names) mark(e expr.Expr) expr.Expr {
	var f func(expr.Expr) expr.Expr
	f = func(e expr.Expr) expr.Expr {
		switch e := e.(type) {
		case *expr.OuterColumn:
			name := e.Name
			if name == "" || name == "?column?" {
				name = "#" + strconv.Itoa(e.Index)
			}
			return &expr.Column{Index: -1, Typ: e.Typ, Name: strings.Repeat("^", e.Depth) + name}
		case *expr.Subquery:
			n.subs.rels = append(n.subs.rels, e.Rel.(Rel))
			s := fmt.Sprintf("%s(subquery %d", subqueryWord(e.Kind), len(n.subs.rels))
			if e.Test != nil {
				s += ": " + namesOf(e.Rel.(Rel).Columns(), n.subs).expr(e.Test)
			}
			return &expr.Column{Index: -1, Typ: e.Typ, Name: s + ")"}
		}
		return expr.MapChildren(e, f)
	}
	return f(e)
}

func subqueryWord(k expr.SubqueryKind) string {
	switch k {
	case expr.SubqueryExists:
		return "EXISTS"
	case expr.SubqueryAny:
		return "ANY"
	case expr.SubqueryAll:
		return "ALL"
	case expr.SubqueryArray:
		return "ARRAY"
	}
	return ""
}

// as prints `e AS name`, leaving out a name that says nothing new.
func (n *names) as(e expr.Expr, name string) string {
	s := n.expr(e)
	if c, ok := e.(*expr.Column); ok && c.Index < len(n.columns) && n.columns[c.Index].Name == name {
		return s
	}
	if name == "" || name == "?column?" {
		return s
	}
	return s + " AS " + ident(name)
}

func (n *names) conj(es []expr.Expr) string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = n.expr(e)
	}
	return strings.Join(out, " AND ")
}

func (n *names) order(keys []SortKey) string {
	if len(keys) == 0 {
		return ""
	}
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = n.name(k.Col) + direction(k.Desc, k.NullsFirst)
	}
	return " by [" + strings.Join(out, ", ") + "]"
}

func (n *names) sortExprs(before string, keys []SortExpr, after string) string {
	if len(keys) == 0 {
		return ""
	}
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = n.expr(k.Expr) + direction(k.Desc, k.NullsFirst)
	}
	return before + strings.Join(out, ", ") + after
}

// direction is empty for SQL's default: ascending, NULLs as the greatest.
func direction(desc, nullsFirst bool) string {
	s := ""
	if desc {
		s = " DESC"
	}
	if nullsFirst != desc {
		if nullsFirst {
			return s + " NULLS FIRST"
		}
		return s + " NULLS LAST"
	}
	return s
}

func (n *names) limit(limit, offset expr.Expr) string {
	s := ""
	if limit != nil {
		s += " limit " + n.expr(limit)
	}
	if offset != nil {
		s += " offset " + n.expr(offset)
	}
	return s
}

func (n *names) agg(a *AggCall) string {
	args := make([]string, len(a.Args))
	for i, e := range a.Args {
		args[i] = n.expr(e)
	}
	s := a.Fn.Name + "("
	if a.Distinct {
		s += "DISTINCT "
	}
	if a.Fn.Op == expr.AggCountStar {
		s += "*"
	}
	s += strings.Join(args, ", ")
	if a.Fn.Ordered {
		s += ")" + n.sortExprs(" WITHIN GROUP (ORDER BY ", a.OrderBy, ")")
	} else {
		s += n.sortExprs(" ORDER BY ", a.OrderBy, "") + ")"
	}
	if a.Filter != nil {
		s += " FILTER (WHERE " + n.expr(a.Filter) + ")"
	}
	return s
}

func (n *names) call(c *WindowCall, ordered bool) string {
	args := make([]string, len(c.Args))
	for i, e := range c.Args {
		args[i] = n.expr(e)
	}
	name := c.Name
	if c.Agg != nil {
		name = c.Agg.Name
		if c.Agg.Op == expr.AggCountStar {
			args = []string{"*"}
		}
	}
	s := name + "(" + strings.Join(args, ", ") + ")"
	if c.Filter != nil {
		s += " FILTER (WHERE " + n.expr(c.Filter) + ")"
	}
	if c.IgnoreNulls {
		s += " IGNORE NULLS"
	}
	if c.Agg != nil || name == "first_value" || name == "last_value" || name == "nth_value" {
		s += n.frame(c.Frame, ordered)
	}
	return s
}

// frame prints a frame unless it is the default one.
func (n *names) frame(f Frame, ordered bool) string {
	if f.Exclude == ExcludeNone && f.Start.Kind == UnboundedPreceding &&
		((f.Unit == FrameRange && f.End.Kind == CurrentRow) || (!ordered && f.End.Kind == UnboundedFollowing)) {
		return ""
	}
	s := " " + [...]string{"RANGE", "ROWS", "GROUPS"}[f.Unit] + " BETWEEN " + n.bound(f.Start) + " AND " + n.bound(f.End)
	return s + [...]string{"", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES"}[f.Exclude]
}

func (n *names) bound(b FrameBound) string {
	switch b.Kind {
	case UnboundedPreceding:
		return "UNBOUNDED PRECEDING"
	case OffsetPreceding:
		return n.expr(b.Offset) + " PRECEDING"
	case CurrentRow:
		return "CURRENT ROW"
	case OffsetFollowing:
		return n.expr(b.Offset) + " FOLLOWING"
	}
	return "UNBOUNDED FOLLOWING"
}

// ident quotes an identifier if SQL would need it.
func ident(s string) string {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '_' || (c >= 'a' && c <= 'z') || (i > 0 && (c >= '0' && c <= '9' || c == '$')) {
			continue
		}
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}
