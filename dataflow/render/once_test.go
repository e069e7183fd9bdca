package render_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential/trace"
	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// slowReader ends the context after some reads.
type slowReader struct {
	*db
	reads  int
	cancel func()
}

func (r *slowReader) Snapshot(ctx context.Context, get *plan.Get) iter.Seq2[*dataflow.Delta, error] {
	return func(yield func(*dataflow.Delta, error) bool) {
		for d, err := range r.db.Snapshot(ctx, get) {
			if r.reads--; r.reads == 0 {
				r.cancel()
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// TestCancelledBefore runs queries of constants whose context has ended: no rows without
// an error would be a wrong answer.
func TestCancelledBefore(t *testing.T) {
	d, _ := genDB(t)
	cause := errors.New("the user is gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	for _, sql := range []string{
		"SELECT a + 1 FROM (VALUES (1), (2)) v(a)",
		"SELECT a FROM (VALUES (1), (2)) v(a) WHERE a > 1 ORDER BY a",
		"SELECT count(*) FROM (VALUES (1), (2)) v(a)",
		"SELECT pg_sleep(0.001)",
	} {
		q, err := d.bind(sql)
		if err != nil {
			t.Fatal(err)
		}
		if err := render.RunOnce(ctx, q.Rel, d, render.Options{Context: session()}, func(*columnar.Batch) error { return nil }); !errors.Is(err, cause) {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestCancel ends the context of queries at every read: they must end with the
// cause, and soon.
func TestCancel(t *testing.T) {
	d, _ := genDB(t)
	cause := errors.New("the user is gone")
	for _, sql := range []string{
		"SELECT a FROM r WHERE b > 0",
		"SELECT count(*) FROM r JOIN q ON r.a = q.a",
		"WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT x.n + 1 FROM x, p WHERE p.a = 1) SELECT n FROM x",
	} {
		q, err := d.bind(sql)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := planner.Optimize(q.Rel, planner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for reads := range 3 {
			ctx, cancel := context.WithCancelCause(context.Background())
			r := &slowReader{db: d, reads: reads, cancel: func() { cancel(cause) }}
			time.AfterFunc(50*time.Millisecond, r.cancel) // the recursion has no end of its own
			err := render.RunOnce(ctx, rel, r, render.Options{Context: session()}, func(*columnar.Batch) error { return nil })
			if endless := strings.Contains(sql, "RECURSIVE"); (endless || reads == 1) && !errors.Is(err, cause) {
				t.Errorf("%s, cancelled at read %d: %v", sql, reads, err)
			}
			cancel(nil)
		}
	}
}

// TestStopEmitting ends a run by an error of its receiver.
func TestStopEmitting(t *testing.T) {
	d, _ := genDB(t)
	enough := errors.New("enough")
	for _, sql := range []string{"SELECT a FROM r", "SELECT a FROM r ORDER BY a", "SELECT a, count(*) FROM r GROUP BY a"} {
		q, err := d.bind(sql)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := planner.Optimize(q.Rel, planner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		err = render.RunOnce(context.Background(), rel, d, render.Options{Context: session()}, func(*columnar.Batch) error {
			calls++
			return enough
		})
		if !errors.Is(err, enough) || calls != 1 {
			t.Errorf("%s: %v after %d calls", sql, err, calls)
		}
	}
}

// TestLimitStreams checks that an unordered limit over an append-only table
// stops reading it.
func TestLimitStreams(t *testing.T) {
	d := newDB()
	d.exec(t, "CREATE TABLE log (x int) APPEND ONLY")
	for i := range 10 {
		d.exec(t, fmt.Sprintf("INSERT INTO log VALUES (%d), (%d)", 2*i, 2*i+1))
	}
	r := &slowReader{db: d}
	q, err := d.bind("SELECT x FROM log LIMIT 3")
	if err != nil {
		t.Fatal(err)
	}
	rel, err := planner.Optimize(q.Rel, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = render.RunOnce(context.Background(), rel, r, render.Options{Context: session()}, func(b *columnar.Batch) error {
		n += b.N
		return nil
	})
	if err != nil || n != 3 || -r.reads > 2 {
		t.Errorf("%d rows of %d deltas, %v", n, -r.reads, err)
	}
}

// TestSharedArrangements runs joins over arrangements that another dataflow
// maintains, and compares them with private ones.
func TestSharedArrangements(t *testing.T) {
	for _, sql := range []string{
		"SELECT r.b, q.s FROM r JOIN q ON r.a = q.a",
		"SELECT r.b, q.s FROM r LEFT JOIN q ON r.a = q.a AND r.b < q.b",
		"SELECT r.b FROM r WHERE NOT EXISTS (SELECT 1 FROM q WHERE q.a = r.a)",
		"SELECT x.b, y.b FROM r x JOIN r y ON x.a = y.a JOIN p ON p.a = x.a",
	} {
		d, _ := genDB(t)
		shared := map[string]*trace.Trace{}
		opts := render.Options{Context: session(), Partitions: 2, Arranged: func(id plan.ObjectID, key []int) *trace.Trace {
			k := fmt.Sprint(id, key)
			if shared[k] == nil {
				tab := d.tables[id]
				kinds := make([]columnar.Kind, len(tab.obj.Columns))
				for i, c := range tab.obj.Columns {
					kinds[i] = c.Type.Kind()
				}
				shared[k] = trace.New(trace.NewLayout(kinds, key), 2)
				shared[k].Append(1, tab.deltas)
				shared[k].Seal(1)
			}
			return shared[k]
		}}
		m, err := d.maintainWith(sql, opts)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.df.Shared) == 0 {
			t.Errorf("%s shares nothing", sql)
		}
		m.step(1)
		for epoch := dataflow.Epoch(2); epoch < 6; epoch++ {
			x := &dataflow.Delta{}
			id := plan.ObjectID(1 + epoch%2)
			tab := d.tables[id]
			x.Batch = tab.deltas[0].Batch.Slice(int(epoch)%4, int(epoch)%4+3)
			x.Diffs = slices.Repeat([]int64{1 - 2*int64(epoch/2%2)}, 3)
			for k, tr := range shared {
				if strings.HasPrefix(k, fmt.Sprint(id, " ")) {
					tr.Append(epoch, []*dataflow.Delta{x})
				}
				tr.Seal(epoch)
			}
			tab.deltas = append(tab.deltas, x)
			m.push(id, x)
			m.step(epoch)
			want, err := d.query(sql)
			if err != nil {
				t.Fatal(err)
			}
			if got, code := m.result(); code != "" || !slices.Equal(got, sorted(want)) {
				t.Errorf("%s, epoch %d:\n%v %s\nwant %v", sql, epoch, got, code, sorted(want))
			}
		}
		m.df.Circuit.Close()
	}
}
