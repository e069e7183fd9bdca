package differential

import (
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/reference"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
)

// TestUpsert feeds random records, several of a key in an epoch, and compares
// with applying them one by one.
func TestUpsert(t *testing.T) {
	r := testRand(t)
	// Columns: value, op, key, key, unchanged, value.
	kinds := []columnar.Kind{k32, k16, kText, k64, kText, kText}
	data := []int{0, 2, 3, 5}
	start := func(o Options) (*Circuit, *Input, *Output) {
		c := New(o)
		in, s := c.Input(kinds)
		return c, in, c.Output(c.Upsert(s, []int{3, 2}, UpsertOptions{OpCol: 1, UnchangedCol: 4}))
	}
	for range 150 {
		c, in, out := start(randomOptions(r))
		state := map[string]reference.Row{}
		got := reference.New()
		domain := []int{2, 6, 40}[r.IntN(3)]
		truncates := r.IntN(3) == 0
		for epoch := range dataflow.Epoch(15) {
			var entries []reference.Entry
			var records []reference.UpsertRecord
			for range r.IntN(30) {
				row := reference.Row{int32(r.IntN(100)), int16(UpsertPut), "key" + string(rune('a'+r.IntN(domain))), nil, "", "text"}
				if k := r.IntN(domain); k > 0 {
					row[3] = int64(k)
				}
				if r.IntN(3) == 0 {
					row[5] = nil
				}
				rec := reference.UpsertRecord{Unchanged: make([]bool, len(data))}
				switch x := r.IntN(40); {
				case x == 0 && truncates:
					rec.Op, row[1] = 2, int16(UpsertTruncate)
				case x < 12:
					rec.Op, row[1] = 1, int16(UpsertDelete)
				case x < 25:
					m := byte(r.IntN(2)) | byte(r.IntN(2))<<3 // value columns only
					row[4] = string([]byte{m})
					rec.Unchanged[0], rec.Unchanged[3] = m&1 != 0, m&8 != 0
				case x < 28:
					row[4] = nil
				}
				rec.Row = reference.Project(row, data)
				entries = append(entries, reference.Entry{Row: row, Diff: 1})
				records = append(records, rec)
			}
			reference.Upsert(state, []int{1, 2}, records)
			for _, d := range pieces(r, reference.Delta(kinds, entries)) {
				in.Push(d)
			}
			c.Step(epoch + 1)
			if r.IntN(5) == 0 {
				c.Work(r.IntN(100))
			}
			want := reference.Rows(state)
			if zsetOf(got, out.Take()); !got.Equal(want) {
				t.Fatalf("epoch %d\n%s", epoch, got.Difference(want, 10))
			}
			if r.IntN(6) == 0 {
				next, nextIn, nextOut := start(c.opts)
				moveState(t, c, next)
				next.Restored(epoch + 1)
				c, in, out = next, nextIn, nextOut
			}
		}
	}
}

// moveState gives the state of a circuit to another one of the same plan, by way
// of blocks.
func moveState(t *testing.T, from, to *Circuit) {
	t.Helper()
	old, spines := from.Spines(), to.Spines()
	if len(old) != len(spines) {
		t.Fatalf("%d spines, then %d", len(old), len(spines))
	}
	for i, sp := range old {
		var bs []*trace.Batch
		for _, b := range sp.Batches() {
			o, err := trace.OpenBlock(b.AppendBlock(nil), uint64(i+1), nil)
			if err != nil {
				t.Fatal(err)
			}
			bs = append(bs, o)
			b.Release()
		}
		spines[i].Restore(bs)
	}
}

// TestUpsertKeyChange moves a row to another key: the columns that the record
// leaves out come from the row that the record before deleted.
func TestUpsertKeyChange(t *testing.T) {
	c := New(Options{Partitions: 4})
	kinds := []columnar.Kind{k64, kText, k16, kText}
	in, s := c.Input(kinds)
	out := c.Output(c.Upsert(s, []int{0}, UpsertOptions{OpCol: 2, UnchangedCol: 3}))
	put, del := int16(UpsertPut), int16(UpsertDelete)
	in.Push(reference.Delta(kinds, []reference.Entry{
		{Row: reference.Row{int64(1), "long value", put, nil}, Diff: 1},
	}))
	c.Step(1)
	in.Push(reference.Delta(kinds, []reference.Entry{
		{Row: reference.Row{int64(1), nil, del, nil}, Diff: 1},
		{Row: reference.Row{int64(2), nil, put, "\x02"}, Diff: 1},
		{Row: reference.Row{int64(3), nil, put, "\x02"}, Diff: 1},
	}))
	c.Step(2)
	got := zsetOf(reference.New(), out.Take())
	want := reference.New(reference.Row{int64(2), "long value"}, reference.Row{int64(3), nil})
	if !got.Equal(want) {
		t.Fatal(got.Difference(want, 10))
	}
}
