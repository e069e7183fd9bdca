package coord

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// rules are the expressions of a table's definition, compiled.
type rules struct {
	object    *catalog.Object
	cat       *catalog.Snapshot
	generated *expr.Program // the whole row, with the generated columns; nil: none
	checks    []checkRule
	indexes   []*expr.Program // the expressions of indexes that may fail
}

type checkRule struct {
	name string
	prog *expr.Program
}

// rulesOf compiles the rules of a table, once for a version of it.
func (s *Session) rulesOf(t *catalog.Object) (*rules, error) {
	if r := s.rules[t.ID]; r != nil && r.object == t && r.cat == s.snapshot() {
		return r, nil
	}
	r := &rules{object: t, cat: s.snapshot()}
	bind := func(text, context string, typ types.Type) (expr.Expr, error) {
		x, err := parser.ParseExpr(text)
		if err != nil {
			return nil, err
		}
		return planner.BindExpr(s.bindContext(nil), text, &x, t, context, typ)
	}
	outs := plan.Refs(planColumns(t))
	any := false
	for i, c := range t.Columns {
		if c.Generated == "" {
			continue
		}
		e, err := bind(c.Generated, "column generation expressions", c.Type)
		if err != nil {
			return nil, err
		}
		outs[i], any = e, true
	}
	var err error
	if any {
		if r.generated, err = expr.Compile(expr.MapFilterProject{Outputs: outs}); err != nil {
			return nil, err
		}
	}
	for _, ck := range slices.SortedFunc(slices.Values(t.Checks), func(a, b catalog.Check) int { return strings.Compare(a.Name, b.Name) }) {
		e, err := bind(ck.Expr, "check constraints", types.Bool)
		if err != nil {
			return nil, err
		}
		prog, err := expr.Compile(expr.MapFilterProject{Outputs: []expr.Expr{e}})
		if err != nil {
			return nil, err
		}
		r.checks = append(r.checks, checkRule{ck.Name, prog})
	}
	for _, x := range r.cat.Users(t.ID) {
		if x.Kind != catalog.KindIndex || x.Table != t.ID {
			continue
		}
		prog, err := s.indexProgram(r.cat, t, x)
		if err != nil {
			return nil, err
		}
		if prog != nil {
			r.indexes = append(r.indexes, prog)
		}
	}
	if s.rules == nil {
		s.rules = map[plan.ObjectID]*rules{}
	}
	s.rules[t.ID] = r
	return r, nil
}

// generate computes the generated columns of new rows.
func (s *Session) generate(t *catalog.Object, rows columnar.Batch) (columnar.Batch, error) {
	r, err := s.rulesOf(t)
	if err != nil || r.generated == nil || rows.N == 0 {
		return rows, err
	}
	out, _, errs := r.generated.Apply(s.exprContext(), &rows, nil)
	if len(errs) > 0 {
		return rows, errs[0].Err
	}
	return out, nil
}

// violation is the first row of a batch that breaks a rule.
type violation struct {
	row  int
	rank int // of the rule: within a row NOT NULL comes before CHECK before keys
	err  func() error
}

func (v *violation) note(row, rank int, err func() error) {
	if v.err == nil || cmp.Compare(row, v.row) < 0 || row == v.row && rank < v.rank {
		v.row, v.rank, v.err = row, rank, err
	}
}

func (v *violation) error() error {
	if v.err == nil {
		return nil
	}
	return v.err()
}

// checkRows enforces NOT NULL and CHECK.
func (s *Session) checkRows(t *catalog.Object, rows columnar.Batch, v *violation) error {
	for c := range t.Columns {
		s.checkNull(t, rows, c, v)
	}
	r, err := s.rulesOf(t)
	if err != nil {
		return err
	}
	rank := len(t.Columns)
	for _, ck := range r.checks {
		rank++
		out, _, errs := ck.prog.Apply(s.exprContext(), &rows, nil)
		if len(errs) > 0 {
			v.note(errs[0].Row, rank, func() error { return errs[0].Err })
			continue // the rows of out are not those of rows
		}
		ok := out.Cols[0].Bools()
		for i := range rows.N {
			if ok[i] || out.Cols[0].Null(i) {
				continue
			}
			v.note(i, rank, func() error {
				e := pgerror.New(pgerror.CheckViolation, "new row for relation \"%s\" violates check constraint \"%s\"", t.Name, ck.name).
					WithDetail("Failing row contains %s.", s.rowText(t, rows, i))
				e.Schema, e.Table, e.Constraint = t.Schema, t.Name, ck.name
				return e
			})
			break
		}
	}
	for _, prog := range r.indexes {
		rank++
		if _, _, errs := prog.Apply(s.exprContext(), &rows, nil); len(errs) > 0 {
			v.note(errs[0].Row, rank, func() error { return errs[0].Err })
		}
	}
	return nil
}

func (s *Session) checkNull(t *catalog.Object, rows columnar.Batch, c int, v *violation) {
	col := t.Columns[c]
	if !(col.NotNull || slices.Contains(t.PrimaryKey, c)) || !rows.Cols[c].HasNulls() {
		return
	}
	for i := range rows.N {
		if !rows.Cols[c].Null(i) {
			continue
		}
		v.note(i, c, func() error {
			e := pgerror.New(pgerror.NotNullViolation, "null value in column \"%s\" of relation \"%s\" violates not-null constraint", col.Name, t.Name).
				WithDetail("Failing row contains %s.", s.rowText(t, rows, i))
			e.Schema, e.Table, e.Column = t.Schema, t.Name, col.Name
			return e
		})
		return
	}
}

// rowText shows a row in an error's detail.
func (s *Session) rowText(t *catalog.Object, rows columnar.Batch, i int) string {
	b := []byte{'('}
	opts := s.TextOptions()
	for c := range t.Columns {
		if c > 0 {
			b = append(b, ", "...)
		}
		if rows.Cols[c].Null(i) {
			b = append(b, "null"...)
			continue
		}
		v := types.AppendText(nil, t.Columns[c].Type, rows.Cols[c], i, opts)
		if len(v) > 64 {
			v = append(v[:64:64], "..."...)
		}
		b = append(b, v...)
	}
	return string(append(b, ')'))
}

// checkKeys enforces the keys of new rows against the table, the transaction's
// own changes, and each other. old, if not nil, are the rows that they replace.
func (s *Session) checkKeys(ctx context.Context, t *catalog.Object, old *columnar.Batch, rows columnar.Batch, v *violation) error {
	for n, k := range t.Keys() {
		form, err := s.formOf(t, &k)
		if err != nil {
			return err
		}
		now := form.over(s.exprContext(), &rows)
		want := now.wanted(&k)
		have := make([]dataflow.Diff, len(want.keys))
		if err := s.withUnique(ctx, t, &k, want, func(k int, _ *columnar.Batch, _ int, d dataflow.Diff) { have[k] += d }); err != nil {
			return err
		}
		var buf []byte
		if old != nil {
			was := form.over(s.exprContext(), old)
			for i := range old.N {
				if was.counts(&k, i) {
					buf = appendKey(buf[:0], was.rows, was.cols, was.ts, i)
					if x, ok := want.at[string(buf)]; ok {
						have[x]--
					}
				}
			}
		}
		for i, x := range want.of {
			if x < 0 {
				continue
			}
			if have[x]++; have[x] > 1 {
				v.note(i, 1<<20+n, func() error { return s.uniqueViolation(t, &k, &now, i) })
				break
			}
		}
	}
	return nil
}

func (s *Session) uniqueViolation(t *catalog.Object, k *catalog.Key, rows *keyedRows, i int) error {
	e := pgerror.New(pgerror.UniqueViolation, "duplicate key value violates unique constraint \"%s\"", k.Name).
		WithDetail("Key %s already exists.", s.namedKey(s.keyNames(t, k), rows.ts, rows.rows, rows.cols, i))
	e.Schema, e.Table, e.Constraint = t.Schema, t.Name, k.Name
	return e
}

// keyText shows a key as `(a, b)=(1, 2)`: the names of columns of t, and the
// values that row i of rows has in cols.
func (s *Session) keyText(t *catalog.Object, names []int, rows *columnar.Batch, cols []int, i int) string {
	a := make([]string, len(names))
	for j, c := range names {
		a[j] = t.Columns[c].Name
	}
	return s.namedKey(a, columnTypes(t.Columns, names), rows, cols, i)
}

// namedKey is keyText for parts of a key that have other names.
func (s *Session) namedKey(names []string, ts []types.Type, rows *columnar.Batch, cols []int, i int) string {
	b := make([]string, len(names))
	for j, c := range cols {
		b[j] = "null"
		if v := rows.Cols[c]; !v.Null(i) {
			b[j] = string(types.AppendText(nil, ts[j], v, i, s.TextOptions()))
		}
	}
	return "(" + strings.Join(names, ", ") + ")=(" + strings.Join(b, ", ") + ")"
}

// tableChange is what a statement does to a table, for the checks at its end.
type tableChange struct {
	t    *catalog.Object
	gone columnar.Batch // N is 0 if there are none
	rows columnar.Batch
}

// writer carries out the changes of one statement.
type writer struct {
	s       *Session
	ctx     context.Context
	changes []tableChange
	next    int // the first change whose references are not checked yet
	// views are the conditions of the view through which the table is changed.
	views []planner.ViewCheck
	// failing runs the query of such a condition over new rows.
	failing func(c *planner.ViewCheck, rows columnar.Batch) (*columnar.Batch, error)
}

// insert checks new rows and adds them. Their generated columns are computed.
func (w *writer) insert(t *catalog.Object, rows columnar.Batch) error {
	return w.replace(t, nil, rows)
}

// replace checks new rows and puts them in the place of old ones, if old is not nil.
func (w *writer) replace(t *catalog.Object, old *columnar.Batch, rows columnar.Batch) error {
	if rows.N == 0 {
		return nil
	}
	var v violation
	if err := w.s.checkRows(t, rows, &v); err != nil {
		return err
	}
	if err := w.s.checkKeys(w.ctx, t, old, rows, &v); err != nil {
		return err
	}
	if err := v.error(); err != nil {
		return err
	}
	if err := w.checkViews(t, rows); err != nil {
		return err
	}
	c := tableChange{t: t, rows: rows}
	if old != nil {
		c.gone = *old
		w.s.tx.write(t.ID, &dataflow.Delta{Batch: *old, Diffs: repeatDiff(-1, old.N)})
	}
	w.s.tx.write(t.ID, &dataflow.Delta{Batch: rows})
	w.changes = append(w.changes, c)
	return nil
}

// checkViews checks new rows against WITH CHECK OPTION.
func (w *writer) checkViews(t *catalog.Object, rows columnar.Batch) error {
	fails := func(c *planner.ViewCheck, i int) error {
		return pgerror.New(pgerror.WithCheckOptionViolation, "new row violates check option for view \"%s\"", c.View).
			WithDetail("Failing row contains %s.", w.s.rowText(t, rows, i))
	}
	for i := range w.views {
		c := &w.views[i]
		if c.Rel != nil {
			bad, err := w.failing(c, rows)
			if err != nil {
				return err
			}
			if bad.N > 0 {
				return fails(c, int(slices.Min(bad.Cols[0].Int64s()[:bad.N])))
			}
			continue
		}
		prog, err := expr.Compile(expr.MapFilterProject{Outputs: []expr.Expr{c.Cond}})
		if err != nil {
			return err
		}
		out, _, errs := prog.Apply(w.s.exprContext(), &rows, nil)
		if len(errs) > 0 {
			return errs[0].Err
		}
		ok := out.Cols[0].Bools()
		for i := range rows.N {
			if !ok[i] || out.Cols[0].Null(i) {
				return fails(c, i)
			}
		}
	}
	return nil
}

// delete takes rows away.
func (w *writer) delete(t *catalog.Object, rows columnar.Batch) {
	if rows.N == 0 {
		return
	}
	w.s.tx.write(t.ID, &dataflow.Delta{Batch: rows, Diffs: repeatDiff(-1, rows.N)})
	w.changes = append(w.changes, tableChange{t: t, gone: rows})
}

func repeatDiff(d int64, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = d
	}
	return out
}
