package coord

import (
	"context"
	"fmt"
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// tableAlter is one action of ALTER TABLE on the table o, of which newTable.o is
// the copy that it changes.
type tableAlter struct {
	newTable
	ctx context.Context
	p   *prepared
	a   *parser.AlterCmd
	old *catalog.Object
	col int // of the action's column
	w   pgwire.ResultWriter
}

// alterTable changes the columns or constraints of a table. Where the form of
// its rows changes, the table's content is rewritten into a new collection at
// the epoch of the change, under the same id.
func (s *Session) alterTable(ctx context.Context, d *ddlState, p *prepared, a *parser.AlterCmd, o, c *catalog.Object, w pgwire.ResultWriter) error {
	t := &tableAlter{newTable: newTable{s: s, d: d, text: p.stmt.Text, o: c}, ctx: ctx, p: p, a: a, old: o, col: o.Column(a.Column), w: w}
	switch a.Action {
	case parser.AlterAddColumn:
		return t.addColumn()
	case parser.AlterAddConstraint:
		return t.addConstraint()
	case parser.AlterDropConstraint:
		return t.dropConstraint()
	case parser.AlterConstraintTiming:
		return t.retime()
	case parser.AlterRenameConstraint:
		return t.renameConstraint()
	case parser.AlterValidate:
		return t.validate()
	}
	if t.col < 0 {
		if a.Action == parser.AlterDropColumn && a.IfExists {
			w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion,
				Message: fmt.Sprintf("column \"%s\" of relation \"%s\" does not exist, skipping", a.Column, o.Name)})
			return nil
		}
		if a.Action == parser.AlterRenameColumn {
			return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" does not exist", a.Column)
		}
		return undefinedColumn(a.Column, o)
	}
	switch a.Action {
	case parser.AlterRenameColumn:
		return t.renameColumn()
	case parser.AlterDropColumn:
		return t.dropColumn()
	case parser.AlterColumnType:
		return t.retype()
	}
	return t.alterColumn(&c.Columns[t.col])
}

func undefinedColumn(name string, o *catalog.Object) error {
	return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, o.Name)
}

// alterColumn carries out what leaves the rows as they are.
func (t *tableAlter) alterColumn(c *catalog.Column) error {
	switch t.a.Action {
	case parser.AlterSetDefault:
		if detail := identityOrGenerated(c, t.old); detail != nil {
			return detail
		}
		if _, err := t.s.bindDefault(t.text, t.a.Expr, c.Name, c.Type); err != nil {
			return noPosition(err)
		}
		c.Default = t.s.fixed(t.a.Expr.SQL, nil, c.Type)
	case parser.AlterDropDefault:
		if detail := identityOrGenerated(c, t.old); detail != nil {
			return detail
		}
		c.Default = ""
	case parser.AlterSetNotNull:
		if err := t.noNulls(t.col); err != nil {
			return err
		}
		c.NotNull = true
	case parser.AlterDropNotNull:
		if slices.Contains(t.old.PrimaryKey, t.col) {
			return pgerror.New(pgerror.InvalidTableDefinition, "column \"%s\" is in a primary key", t.a.Column)
		}
		if c.Identity != "" {
			return pgerror.New(pgerror.SyntaxError, "column \"%s\" of relation \"%s\" is an identity column", t.a.Column, t.old.Name)
		}
		c.NotNull = false
	case parser.AlterDropExpression:
		if c.Generated == "" {
			return t.ifExists(pgerror.New(pgerror.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" is not a stored generated column", c.Name, t.old.Name))
		}
		c.Generated = ""
	default:
		return t.identity(c)
	}
	t.put()
	return nil
}

func identityOrGenerated(c *catalog.Column, o *catalog.Object) error {
	switch {
	case c.Identity != "":
		return pgerror.New(pgerror.SyntaxError, "column \"%s\" of relation \"%s\" is an identity column", c.Name, o.Name)
	case c.Generated != "":
		return pgerror.New(pgerror.SyntaxError, "column \"%s\" of relation \"%s\" is a generated column", c.Name, o.Name)
	}
	return nil
}

// identity adds, changes or drops what makes an identity column.
func (t *tableAlter) identity(c *catalog.Column) error {
	switch t.a.Action {
	case parser.AlterAddIdentity:
		switch {
		case !c.NotNull:
			return pgerror.New(pgerror.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" must be declared NOT NULL before identity can be added", c.Name, t.old.Name)
		case c.Identity != "":
			return pgerror.New(pgerror.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" is already an identity column", c.Name, t.old.Name)
		case c.Default != "":
			return pgerror.New(pgerror.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" already has a default value", c.Name, t.old.Name)
		}
		c.Identity = t.a.NewName
		if err := t.sequenceFor(t.col, t.a.Sequence); err != nil {
			return err
		}
		t.put()
		return nil
	}
	if c.Identity == "" {
		return t.ifExists(pgerror.New(pgerror.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" is not an identity column", c.Name, t.old.Name))
	}
	seq := t.ownedSequence(c.Name)
	if t.a.Action == parser.AlterDropIdentity {
		c.Identity, c.Default = "", ""
		if seq != nil {
			t.o.Deps = slices.DeleteFunc(t.o.Deps, func(d plan.ObjectID) bool { return d == seq.ID })
		}
		t.put()
		if seq != nil {
			t.d.apply(catalog.Change{Drop: seq.ID})
		}
		return nil
	}
	if t.a.NewName != "" {
		c.Identity = t.a.NewName
	}
	t.put()
	if seq == nil || len(t.a.Sequence) == 0 {
		return nil
	}
	return t.s.changeSequence(t.d, t.p, seq, t.a.Sequence)
}

// ownedSequence is the sequence that a column of the table owns, nil for none.
func (t *tableAlter) ownedSequence(column string) *catalog.Object {
	for _, u := range t.d.cat.Users(t.old.ID) {
		if u.Sequence != nil && u.Sequence.Table == t.old.ID && u.Sequence.Column == column {
			return u
		}
	}
	return nil
}

// presentRows are the rows of a table that the transaction sees, in deltas
// without negative multiplicities.
func (s *Session) presentRows(o *catalog.Object) ([]*dataflow.Delta, error) {
	var out []*dataflow.Delta
	gone := false // batches have changes, which add up to the rows
	if err := s.eachRow(o, func(d *dataflow.Delta) error {
		out = append(out, cloneDelta(d))
		gone = gone || slices.ContainsFunc(d.Diffs, func(x dataflow.Diff) bool { return x < 0 })
		return nil
	}); err != nil {
		return nil, err
	}
	if !gone {
		return out, nil
	}
	ts := columnTypes(o.Columns, allColumns(o))
	net := map[string]dataflow.Diff{}
	var buf []byte
	for _, d := range out {
		for i := range d.N {
			buf = exactKey(buf[:0], &d.Batch, ts, i)
			net[string(buf)] += d.Diff(i)
		}
	}
	for k, d := range out {
		var keep []uint32
		var diffs []dataflow.Diff
		for i := range d.N {
			buf = exactKey(buf[:0], &d.Batch, ts, i)
			if n := net[string(buf)]; n > 0 {
				keep, diffs = append(keep, uint32(i)), append(diffs, n)
				net[string(buf)] = 0
			}
		}
		out[k] = &dataflow.Delta{Batch: d.Gather(keep), Diffs: diffs}
	}
	return out, nil
}

// eachRow gives the committed rows of a table and the changes of the transaction.
func (s *Session) eachRow(o *catalog.Object, f func(*dataflow.Delta) error) error {
	var err error
	if coll := s.c.collection(o.ID); coll != nil && !s.rewritten(o.ID) {
		sn, e := snapshotTrace(coll.rows, s.c.timeline.ingest.done.get())
		if e != nil {
			return e
		}
		if sn != nil {
			defer sn.Release()
			sn.Scan(func(dl *dataflow.Delta) bool {
				err = f(dl)
				return err == nil
			})
		}
	}
	for _, dl := range s.tx.pending(o.ID) {
		if err == nil {
			err = f(dl)
		}
	}
	return err
}

// noNulls checks that a column has no NULL.
func (t *tableAlter) noNulls(col int) error {
	rows, err := t.s.presentRows(t.old)
	if err != nil {
		return err
	}
	for _, d := range rows {
		if d.N > 0 && d.Cols[col].HasNulls() && hasNullIn(d.Cols[col], d.N) {
			return containsNulls(t.old.Columns[col].Name, t.old)
		}
	}
	return nil
}

func hasNullIn(v *columnar.Vec, n int) bool {
	for i := range n {
		if v.Null(i) {
			return true
		}
	}
	return false
}

func containsNulls(column string, o *catalog.Object) error {
	e := pgerror.New(pgerror.NotNullViolation, "column \"%s\" of relation \"%s\" contains null values", column, o.Name)
	e.Schema, e.Table, e.Column = o.Schema, o.Name, column
	return e
}

// viewsOn are the views whose definitions use a column of the table.
func (t *tableAlter) viewsOn(col int) ([]*catalog.Object, error) {
	var out []*catalog.Object
	for _, u := range t.d.cat.Users(t.old.ID) {
		if u.Query == "" {
			continue
		}
		uses, err := planner.UsesColumn(t.s.c.bindContext(t.d.cat), u.Query, t.old.ID, col)
		if err != nil {
			return nil, err
		}
		if uses {
			out = append(out, u)
		}
	}
	return out, nil
}

// renameColumn runs RENAME COLUMN: views and the table's own expressions that
// use the column name it anew.
func (t *tableAlter) renameColumn() error {
	if t.o.Column(t.a.NewName) >= 0 {
		return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", t.a.NewName, t.old.Name)
	}
	if err := notSystemColumn(t.a.NewName); err != nil {
		return err
	}
	views, err := t.viewsOn(t.col)
	if err != nil {
		return err
	}
	before := t.s.c.bindContext(t.d.cat)
	t.o.Columns[t.col].Name = t.a.NewName
	rename := func(text *string) {
		if err == nil && *text != "" {
			*text, err = planner.RenameInExpr(*text, t.a.Column, t.a.NewName)
		}
	}
	for i := range t.o.Checks {
		rename(&t.o.Checks[i].Expr)
	}
	for i := range t.o.Columns {
		rename(&t.o.Columns[i].Generated)
	}
	if err != nil {
		return err
	}
	if err := t.d.renameInIndexes(t.o.ID, t.a.Column, t.a.NewName); err != nil {
		return err
	}
	seq := t.ownedSequence(t.a.Column)
	t.put()
	if seq != nil {
		nq := seq.Clone()
		nq.Sequence.Column = t.a.NewName
		t.d.apply(catalog.Change{Put: nq})
	}
	for _, v := range views {
		nv := *v
		if nv.Query, err = planner.RenameColumn(before, t.s.c.bindContext(t.d.cat), v.Query, t.old, t.col, t.a.NewName); err != nil {
			return err
		}
		nv.SQL = definitionSQL(t.d.cat, &nv)
		t.d.apply(catalog.Change{Put: &nv})
	}
	t.d.renameInSinks(t.o.ID, t.a.Column, t.a.NewName)
	return nil
}

// addColumn runs ADD COLUMN.
func (t *tableAlter) addColumn() error {
	def := t.a.ColumnDef
	if t.o.Column(def.Name) >= 0 {
		if t.a.IfNotExists {
			t.w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.DuplicateColumn,
				Message: fmt.Sprintf("column \"%s\" of relation \"%s\" already exists, skipping", def.Name, t.o.Name)})
			return nil
		}
		return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", def.Name, t.o.Name)
	}
	if err := t.s.lock(t.ctx, t.old, true); err != nil {
		return err
	}
	col, err := t.s.column(t.text, t.o.Name, def)
	if err != nil {
		return err
	}
	t.o.Columns = append(t.o.Columns, col)
	if err := t.columnRules(def); err != nil {
		return err
	}
	for _, list := range [][]parser.Constraint{def.Keys, def.Checks, def.References} {
		for i := range list {
			if err := t.constraint(&list[i]); err != nil {
				return err
			}
		}
	}
	t.known()
	val, err := t.s.defaultExpr(&t.o.Columns[len(t.o.Columns)-1], true)
	if err != nil {
		return err
	}
	if err := notWithinItself(t.old, col.Type); err != nil {
		return err
	}
	if !expr.IsNullConst(expr.StripRelabel(val)) {
		if err := rowTypeUsed(t.d.cat, t.old); err != nil {
			return err
		}
	}
	if err := t.rewrite(append(plan.Refs(planColumns(t.old)), val)); err != nil {
		return err
	}
	if err := t.reshapeRows(); err != nil {
		return err
	}
	return t.verifyNew()
}

// verifyNew checks the rows against the keys and foreign keys that the table did
// not have before.
func (t *tableAlter) verifyNew() error {
	for i, k := range t.o.Keys() {
		if !slices.ContainsFunc(t.old.Keys(), func(x catalog.Key) bool { return x.Name == k.Name }) {
			if err := t.s.verifyKey(t.o, &t.o.Keys()[i]); err != nil {
				return err
			}
		}
	}
	for i := range t.o.Foreign {
		if fk := &t.o.Foreign[i]; !slices.ContainsFunc(t.old.Foreign, func(x catalog.ForeignKey) bool { return x.Name == fk.Name }) && !fk.NotValid {
			if err := t.s.verifyForeign(t.ctx, t.o, fk); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropColumn runs DROP COLUMN.
func (t *tableAlter) dropColumn() error {
	g := t.s.newDropping(t.d, []piece{{obj: t.old, kind: partColumn, n: t.col}}, nil)
	return g.run(t.a.Cascade, fmt.Sprintf("column %s of %s", parser.QuoteIdent(t.a.Column), g.describe(t.old)), t.w)
}

// removeColumns takes columns out of a table and its rows.
func (t *tableAlter) removeColumns(gone []int) error {
	if err := t.s.lock(t.ctx, t.old, true); err != nil {
		return err
	}
	slices.Sort(gone)
	for _, col := range slices.Backward(gone) {
		if err := t.withoutColumn(col); err != nil {
			return err
		}
	}
	var outs []expr.Expr
	for i, e := range plan.Refs(planColumns(t.old)) {
		if !slices.Contains(gone, i) {
			outs = append(outs, e)
		}
	}
	if err := t.rewrite(outs); err != nil {
		return err
	}
	return t.reshapeRows()
}

// generatedFrom are the generated columns that use a column.
func (t *tableAlter) generatedFrom(col int) ([]int, error) {
	var out []int
	for i, c := range t.old.Columns {
		if c.Generated == "" || i == col {
			continue
		}
		used, err := t.expressionUses(c.Generated, col)
		if err != nil {
			return nil, err
		}
		if used {
			out = append(out, i)
		}
	}
	return out, nil
}

// expressionUses reports whether an expression of the table's definition uses a column.
func (t *tableAlter) expressionUses(text string, col int) (bool, error) {
	x, err := parser.ParseExpr(text)
	if err != nil {
		return false, err
	}
	e, err := planner.BindExpr(t.s.bindContext(nil), text, &x, t.old, "expressions", types.Unknown)
	if err != nil {
		return false, err
	}
	return expr.Any(e, func(n expr.Expr) bool { c, ok := n.(*expr.Column); return ok && c.Index == col }), nil
}

// withoutColumn takes a column out of the table's definition, with the
// constraints, indexes and sequences that use it.
func (t *tableAlter) withoutColumn(col int) error {
	o := t.o
	name := o.Columns[col].Name
	var checks []catalog.Check
	for _, ck := range o.Checks {
		used, err := t.expressionUses(ck.Expr, t.old.Column(name))
		if err != nil {
			return err
		}
		if !used {
			checks = append(checks, ck)
		}
	}
	o.Checks = checks
	for _, k := range o.Keys() {
		if slices.Contains(k.Columns, col) {
			if err := t.removeKey(&k, true); err != nil {
				return err
			}
		}
	}
	for _, fk := range slices.Clone(o.Foreign) {
		if slices.Contains(fk.Columns, col) {
			t.removeForeign(&fk)
		}
	}
	if seq := t.ownedSequence(name); seq != nil {
		o.Deps = slices.DeleteFunc(o.Deps, func(d plan.ObjectID) bool { return d == seq.ID })
		t.d.apply(catalog.Change{Put: t.o}, catalog.Change{Drop: seq.ID})
	}
	if slices.Contains(o.Version, col) {
		return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop column %s of table %s because it is its version column", name, o.Name)
	}
	o.Columns = slices.Delete(o.Columns, col, col+1)
	o.PrimaryKey, o.Version = shiftKey(o.PrimaryKey, col), shiftKey(o.Version, col)
	if o.Primary != nil {
		o.Primary.Columns = o.PrimaryKey
	}
	for i := range o.Unique {
		o.Unique[i].Columns = shiftKey(o.Unique[i].Columns, col)
	}
	for i := range o.Foreign {
		f := &o.Foreign[i]
		f.Columns, f.SetColumns = shiftKey(f.Columns, col), shiftKey(f.SetColumns, col)
		if f.RefTable == o.ID {
			f.RefColumns = shiftKey(f.RefColumns, col)
		}
	}
	for _, r := range t.d.cat.References(o.ID) {
		if r.ID == o.ID {
			continue
		}
		nr := r.Clone()
		for i := range nr.Foreign {
			if nr.Foreign[i].RefTable == o.ID {
				nr.Foreign[i].RefColumns = shiftKey(nr.Foreign[i].RefColumns, col)
			}
		}
		t.d.apply(catalog.Change{Put: nr})
	}
	for _, u := range t.d.cat.Users(o.ID) {
		if u.Kind != catalog.KindIndex || u.Table != o.ID {
			continue
		}
		used, err := t.indexUses(u, t.old.Column(name))
		if err != nil {
			return err
		}
		if used || slices.Contains(u.Key, col) {
			dropFromKeys(o, u.ID)
			t.d.apply(catalog.Change{Drop: u.ID})
			continue
		}
		nu := *u
		nu.Key = shiftKey(u.Key, col)
		t.d.apply(catalog.Change{Put: &nu})
	}
	return nil
}

// shiftKey is a key after a column is gone.
func shiftKey(key []int, col int) []int {
	var out []int
	for _, k := range key {
		switch {
		case k > col:
			out = append(out, k-1)
		case k < col:
			out = append(out, k)
		}
	}
	return out
}

// rewrite gives the table the form of its new definition: outs make the new
// rows of the old ones. What is generated is computed anew, and all rules are
// checked.
func (t *tableAlter) rewrite(outs []expr.Expr) error {
	prog, err := expr.Compile(expr.MapFilterProject{Outputs: outs})
	if err != nil {
		return err
	}
	return t.rewriteRows(func(b columnar.Batch) (columnar.Batch, error) {
		out, _, errs := prog.Apply(t.s.exprContext(), &b, nil)
		if len(errs) > 0 {
			return out, errs[0].Err
		}
		out, err := t.s.generate(t.o, out)
		if err != nil {
			return out, err
		}
		return out, t.satisfied(out)
	})
}

// satisfied checks rows against NOT NULL and CHECK, as ALTER TABLE tells of them; those
// that are NOT VALID count for new rows only.
func (t *tableAlter) satisfied(rows columnar.Batch) error {
	for c, col := range t.o.Columns {
		if (col.NotNull || slices.Contains(t.o.PrimaryKey, c)) && hasNullIn(rows.Cols[c], rows.N) {
			return containsNulls(col.Name, t.o)
		}
	}
	o := *t.o
	o.Checks = slices.DeleteFunc(slices.Clone(o.Checks), func(c catalog.Check) bool { return c.NotValid })
	var v violation
	if err := t.s.checkRows(&o, rows, &v); err != nil {
		return err
	}
	return violatedBySome(v.error(), t.o)
}

// violatedBySome is the error of a CHECK that is added.
func violatedBySome(err error, o *catalog.Object) error {
	if err == nil {
		return nil
	}
	e := *pgerror.As(err)
	if e.Code == pgerror.CheckViolation {
		e.Message = fmt.Sprintf("check constraint \"%s\" of relation \"%s\" is violated by some row", e.Constraint, o.Name)
		e.Detail = ""
	}
	return &e
}

// rewriteRows gives a table a new form: its rows go through f into a new
// collection, which replaces the old one when the transaction commits.
func (t *tableAlter) rewriteRows(f func(columnar.Batch) (columnar.Batch, error)) error {
	s := t.s
	rows, err := s.presentRows(t.old)
	if err != nil {
		return err
	}
	for _, d := range rows {
		if d.N == 0 {
			continue
		}
		out, err := f(d.Batch)
		if err != nil {
			return err
		}
		d.Batch = out
	}
	s.tx.keepWrites()
	kept := make([]tableWrite, 0, len(s.tx.writes))
	for _, w := range s.tx.writes {
		if w.id != t.o.ID {
			kept = append(kept, w)
		}
	}
	s.tx.writes, s.tx.keyed = kept, nil
	for _, r := range rows {
		s.tx.write(t.o.ID, r)
	}
	t.d.rebuilt[t.o.ID] = true
	t.put()
	for _, u := range t.d.cat.Closure(t.o.ID) {
		if u.Kind == catalog.KindIndex || u.Kind == catalog.KindMaterializedView || u.Sink != nil && u.Sink.Into != t.o.ID {
			t.d.rebuilt[u.ID] = true
		}
	}
	return nil
}
