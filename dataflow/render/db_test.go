package render_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// db is a database in memory: a catalog, and tables as lists of deltas.
type db struct {
	memory   *render.Memory // of one-off queries
	snap     *catalog.Snapshot
	next     plan.ObjectID
	tables   map[plan.ObjectID]*table
	disabled map[string]bool    // planner rules
	sizes    map[string]float64 // what the planner thinks of tables; nil: it knows no sizes and no indexes
}

// table is a collection as the deltas that made it.
type table struct {
	obj    *catalog.Object
	deltas []*dataflow.Delta
}

func newDB() *db {
	return &db{snap: catalog.Empty(), next: 1, tables: map[plan.ObjectID]*table{}}
}

func (d *db) bindContext() *planner.Context {
	return &planner.Context{Catalog: d.snap, Database: "test", SearchPath: []string{"public"}, Session: session()}
}

// session is what expressions of tests are evaluated in.
func session() *expr.Context {
	now := time.Date(2024, 2, 29, 12, 30, 0, 0, time.UTC)
	return &expr.Context{Now: now, Statement: now, Location: time.UTC, User: "postgres", Database: "test"}
}

// exec runs CREATE TABLE, INSERT, UPDATE and DELETE.
func (d *db) exec(t testing.TB, text string) {
	t.Helper()
	stmts, err := parser.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for i := range stmts {
		if c, ok := stmts[i].Node.(*parser.CreateTable); ok {
			d.create(t, text, c)
			continue
		}
		b, err := planner.Bind(d.bindContext(), &stmts[i])
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		switch b := b.(type) {
		case *planner.Write:
			switch b.Kind {
			case planner.WriteInsert:
				d.change(t, b.Table.ID, b.Rows(), 1)
			case planner.WriteDelete:
				d.change(t, b.Table.ID, b.Rows(), -1)
			case planner.WriteUpdate:
				d.update(t, b)
			}
		default:
			t.Fatalf("%s: a test cannot %T", text, b)
		}
	}
}

func (d *db) create(t testing.TB, text string, n *parser.CreateTable) {
	o := &catalog.Object{ID: d.next, OID: uint32(16384 + d.next), Schema: "public", Name: n.Name.Name, Kind: catalog.KindTable, AppendOnly: n.AppendOnly}
	d.next++
	for i, c := range n.Columns {
		typ, err := planner.ResolveType(d.bindContext(), text, c.Type)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		col := catalog.Column{Name: c.Name, Type: typ, NotNull: c.NotNull || c.PrimaryKey}
		if c.Default != nil {
			col.Default = c.Default.SQL
		}
		o.Columns = append(o.Columns, col)
		if c.PrimaryKey {
			o.PrimaryKey = []int{i}
		}
	}
	d.snap = d.snap.Apply(catalog.Change{Put: o})
	d.tables[o.ID] = &table{obj: o}
}

// change adds the rows of rel to a table with a diff.
func (d *db) change(t testing.TB, id plan.ObjectID, rel plan.Rel, diff int64) {
	tab := d.tables[id]
	var ds []*dataflow.Delta
	d.rows(t, rel, len(tab.obj.Columns), func(b *columnar.Batch) {
		ds = append(ds, &dataflow.Delta{Batch: *b, Diffs: slices.Repeat([]int64{diff}, b.N)})
	})
	tab.deltas = append(tab.deltas, ds...)
}

// update takes the old rows away and adds the new ones.
func (d *db) update(t testing.TB, u *planner.Write) {
	tab := d.tables[u.Table.ID]
	n := len(tab.obj.Columns)
	halves := [2][]int{}
	for i := range 2 * n {
		halves[i/n] = append(halves[i/n], i)
	}
	var ds []*dataflow.Delta
	left := map[string]int64{} // a row is changed once, whatever it joins to
	text := func(b *columnar.Batch, i int) string {
		var out []byte
		for c, col := range tab.obj.Columns {
			if out = append(out, '|'); !b.Cols[c].Null(i) {
				out = types.AppendText(append(out, '='), col.Type, b.Cols[c], i, nil)
			}
		}
		return string(out)
	}
	for _, x := range tab.deltas {
		for i := range x.N {
			left[text(&x.Batch, i)] += x.Diff(i)
		}
	}
	d.rows(t, u.Rel, 2*n, func(b *columnar.Batch) {
		if u.Joined {
			var keep []uint32
			for i := range b.N {
				if x := text(b, i); left[x] > 0 {
					left[x]--
					keep = append(keep, uint32(i))
				}
			}
			kept := b.Gather(keep)
			b = &kept
		}
		for i, diff := range []int64{-1, 1} {
			ds = append(ds, &dataflow.Delta{Batch: b.Select(halves[i]), Diffs: slices.Repeat([]int64{diff}, b.N)})
		}
	})
	tab.deltas = append(tab.deltas, ds...)
}

// rows runs a bound plan for its first n columns.
func (d *db) rows(t testing.TB, rel plan.Rel, n int, f func(b *columnar.Batch)) {
	t.Helper()
	r, err := planner.Optimize(rel, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = render.RunOnce(context.Background(), r, d, render.Options{Context: session(), Columns: n}, func(b *columnar.Batch) error {
		f(b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Snapshot implements render.Reader.
func (d *db) Snapshot(_ context.Context, get *plan.Get) iter.Seq2[*dataflow.Delta, error] {
	return func(yield func(*dataflow.Delta, error) bool) {
		tab := d.tables[get.ID]
		for _, x := range tab.deltas {
			if !yield(picked(tab.lookup(x, get.Lookup), get), nil) {
				return
			}
		}
	}
}

// lookup is the rows of x with the keys wanted. Of a lookup in the order of a key it
// is all rows: what the lookup asks for is asked again above it.
func (tab *table) lookup(x *dataflow.Delta, l *plan.Lookup) *dataflow.Delta {
	if l == nil || l.Ordered {
		return x
	}
	typs := make([]types.Type, len(l.Key))
	for i, k := range l.Key {
		typs[i] = tab.obj.Columns[k].Type
	}
	wanted := map[string]bool{}
	for _, vals := range l.Values {
		b := columnar.Batch{N: 1}
		for _, v := range vals {
			c, err := expr.EvalConst(v, session())
			if err != nil {
				panic(err)
			}
			b.Cols = append(b.Cols, c.Val)
		}
		wanted[rowText(typs, &b, 0)] = true
	}
	keys := x.Batch.Select(l.Key)
	out := &dataflow.Delta{}
	var idx []uint32
	for i := range x.N {
		if wanted[rowText(typs, &keys, i)] {
			idx, out.Diffs = append(idx, uint32(i)), append(out.Diffs, x.Diff(i))
		}
	}
	out.Batch = x.Batch.Gather(idx)
	return out
}

// indexes are the primary keys.
func (d *db) indexes(id plan.ObjectID) []planner.Index {
	if k := d.tables[id].obj.PrimaryKey; k != nil {
		return []planner.Index{{ID: id, Key: k, Unique: true}}
	}
	return nil
}

// size is the size of a table that the planner is told.
func (d *db) size(id plan.ObjectID) float64 {
	if n, ok := d.sizes[d.tables[id].obj.Name]; ok {
		return n
	}
	return -1
}

// picked is a delta of a table with the columns of a read.
func picked(x *dataflow.Delta, get *plan.Get) *dataflow.Delta {
	cols := make([]int, len(get.Cols))
	for i := range cols {
		cols[i] = get.Source(i)
	}
	return &dataflow.Delta{Batch: x.Batch.Select(cols), Diffs: x.Diffs}
}

// bind parses and binds a query.
func (d *db) bind(sql string) (*planner.Query, error) {
	stmts, err := parser.Parse(sql)
	if err != nil {
		return nil, err
	}
	b, err := planner.Bind(d.bindContext(), &stmts[0])
	if err != nil {
		return nil, err
	}
	q, ok := b.(*planner.Query)
	if !ok {
		return nil, fmt.Errorf("not a query: %s", sql)
	}
	return q, nil
}

// query runs a query once: its rows as text, in their order.
func (d *db) query(sql string) ([]string, error) {
	q, err := d.bind(sql)
	if err != nil {
		return nil, err
	}
	opts := planner.Options{Disabled: d.disabled}
	if d.sizes != nil {
		opts.Indexes, opts.Rows = d.indexes, d.size
	}
	rel, err := planner.Optimize(q.Rel, opts)
	if err != nil {
		return nil, err
	}
	return d.run(rel, q.Columns)
}

func (d *db) run(rel plan.Rel, cols []planner.ResultColumn) ([]string, error) {
	var rows []string
	typs := make([]types.Type, len(cols))
	for i, c := range cols {
		typs[i] = c.Type
	}
	err := render.RunOnce(context.Background(), rel, d, render.Options{Context: session(), Columns: len(cols), Partitions: 4, Memory: d.memory}, func(b *columnar.Batch) error {
		for i := range b.N {
			rows = append(rows, rowText(typs, b, i))
		}
		return nil
	})
	return rows, err
}

// rowText is a row as psql shows it without alignment.
func rowText(typs []types.Type, b *columnar.Batch, i int) string {
	var s []byte
	for c, t := range typs {
		if c > 0 {
			s = append(s, '|')
		}
		if b.Cols[c].Null(i) {
			s = append(s, "NULL"...)
		} else {
			s = types.AppendText(s, t, b.Cols[c], i, &types.Options{Location: time.UTC})
		}
	}
	return string(s)
}

// maintained is a query kept up to date by a circuit.
type maintained struct {
	df   *render.Dataflow
	oks  *differential.Output
	errs *differential.Output
	typs []types.Type
	rows map[string]int64 // row text → count
	bad  map[string]int64 // error text → count
}

// maintain makes a circuit for a query and feeds it the tables as they are.
func (d *db) maintain(sql string, partitions int) (*maintained, error) {
	return d.maintainWith(sql, render.Options{Context: session(), Partitions: partitions})
}

func (d *db) maintainWith(sql string, opts render.Options) (*maintained, error) {
	q, err := d.bind(sql)
	if err != nil {
		return nil, err
	}
	rel, err := planner.Optimize(q.Collection(), planner.Options{Maintained: true, Disabled: d.disabled})
	if err != nil {
		return nil, err
	}
	df, err := render.Render(rel, opts)
	if err != nil {
		return nil, err
	}
	m := &maintained{df: df, rows: map[string]int64{}, bad: map[string]int64{}}
	for _, c := range df.Columns {
		m.typs = append(m.typs, c.Type)
	}
	m.oks, m.errs = df.Circuit.Output(df.Oks), df.Circuit.Output(df.Errs)
	df.Start()
	for _, im := range df.Imports {
		for _, x := range d.tables[im.Get.ID].deltas {
			im.Input.Push(picked(x, im.Get))
		}
	}
	return m, nil
}

// push feeds a change of a table.
func (m *maintained) push(id plan.ObjectID, x *dataflow.Delta) {
	for _, im := range m.df.Imports {
		if im.Get.ID == id {
			im.Input.Push(picked(x, im.Get))
		}
	}
}

// step runs an epoch and sums up what comes out.
func (m *maintained) step(epoch dataflow.Epoch) {
	m.df.Circuit.Step(epoch)
	for _, x := range m.oks.Take() {
		for i := range x.N {
			add(m.rows, rowText(m.typs, &x.Batch, i), x.Diff(i))
		}
	}
	for _, x := range m.errs.Take() {
		for i := range x.N {
			add(m.bad, expr.ErrorAt(&x.Batch, i).Code, x.Diff(i))
		}
	}
}

func add(m map[string]int64, k string, n int64) {
	if m[k] += n; m[k] == 0 {
		delete(m, k)
	}
}

// result is the rows, sorted, or one of the errors.
func (m *maintained) result() ([]string, string) {
	if len(m.bad) > 0 {
		codes := make([]string, 0, len(m.bad))
		for c := range m.bad {
			codes = append(codes, c)
		}
		slices.Sort(codes)
		return nil, codes[0]
	}
	var out []string
	for row, n := range m.rows {
		if n < 0 {
			return nil, fmt.Sprintf("%s occurs %d times", row, n)
		}
		for range n {
			out = append(out, row)
		}
	}
	slices.Sort(out)
	return out, ""
}

// sorted is a sorted copy.
func sorted(rows []string) []string {
	out := slices.Clone(rows)
	slices.Sort(out)
	return out
}

// outcome is rows or an error, as the text of a golden file.
func outcome(rows []string, err error) string {
	if err != nil {
		e := pgerror.As(err)
		return fmt.Sprintf("error %s: %s\n", e.Code, e.Message)
	}
	return strings.Join(rows, "\n") + "\n"
}
