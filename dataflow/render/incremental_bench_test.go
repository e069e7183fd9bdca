package render_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

var maxState = flag.Int("state", 10_000, "rows of the largest state of TestIncrementalCost")

// incremental are views over one table e (id, g, k, v) of n rows, and for the
// second table's sake f, its copy. id is 0 to n-1 and unique, g the row's group
// (of 1,000 rows), k random, v small.
var incremental = []struct{ name, sql string }{
	{"sum", "SELECT sum(v) FROM e"},
	{"sum by group", "SELECT g, sum(v) FROM e GROUP BY g"},
	{"min, max", "SELECT min(k), max(k) FROM e"},
	{"count distinct", "SELECT count(DISTINCT k) FROM e"},
	{"percentile", "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM e"},
	{"percentile by group", "SELECT g, percentile_cont(0.9) WITHIN GROUP (ORDER BY k) FROM e GROUP BY g"},
	{"string_agg by group", "SELECT g, string_agg(v::text, ',' ORDER BY k) FROM e GROUP BY g"},
	{"top 10", "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY k DESC) AS n FROM e) s WHERE n <= 10"},
	{"top 3 by group", "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY k DESC) AS n FROM e) s WHERE n <= 3"},
	{"lag, lead", "SELECT id, lag(v) OVER w, lead(v) OVER w FROM e WINDOW w AS (ORDER BY k, id)"},
	{"moving average", "SELECT id, avg(v) OVER (ORDER BY k, id ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING) FROM e"},
	{"running sum, at the end", "SELECT id, sum(v) OVER (ORDER BY id) FROM e"},
	{"running sum by group, at the end", "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id) FROM e"},
	{"outer join", "SELECT e.id, f.v FROM e FULL JOIN f ON e.id = f.id"},
	{"INTERSECT ALL", "SELECT v, g FROM e INTERSECT ALL SELECT v, g FROM f"},
	{"EXCEPT", "SELECT id FROM e EXCEPT SELECT id FROM f WHERE v > 3"},
	{"reachability", "WITH RECURSIVE r AS (SELECT id FROM e WHERE id % 1000 = 0 UNION SELECT e.id FROM r JOIN e ON e.id = r.id + 1 AND e.id % 1000 <> 0) SELECT * FROM r"},
}

// TestIncrementalCost measures the processor time of one row inserted, updated
// and deleted in views over states of growing size. It logs them, as multiples
// of a plain sum's too; with -state=1000000 it is what docs/benchmarks tells.
func TestIncrementalCost(t *testing.T) {
	sizes := []int{}
	for n := 10_000; n <= *maxState; n *= 10 {
		sizes = append(sizes, n)
	}
	base := map[int]time.Duration{}
	for _, q := range incremental {
		var line []string
		for _, n := range sizes {
			c := changeCost(t, q.sql, n)
			if base[n] == 0 {
				base[n] = c[0]
			}
			line = append(line, fmt.Sprintf("%v %v %v (%.0fx)", c[0], c[1], c[2], float64(max(c[0], c[1], c[2]))/float64(base[n])))
		}
		t.Logf("| %s | %s |", q.name, strings.Join(line, " | "))
	}
}

// eRows is rows of e by their ids.
func eRows(n int, ids []int64, bump int64) columnar.Batch {
	cols := [4][]int64{}
	for _, id := range ids {
		r := rand.New(rand.NewPCG(uint64(id), 7))
		k := int64(r.IntN(n))
		cols[0], cols[1], cols[2], cols[3] = append(cols[0], id), append(cols[1], id/1000), append(cols[2], k+bump), append(cols[3], k%10+bump)
	}
	b := columnar.Batch{N: len(ids)}
	for _, c := range cols {
		b.Cols = append(b.Cols, columnar.FromSlice(c, nil))
	}
	return b
}

// changeCost is the processor time of an insertion, an update and a deletion of
// one row.
func changeCost(t *testing.T, sql string, n int) (out [3]time.Duration) {
	d := newDB()
	d.exec(t, "CREATE TABLE e (id int8, g int8, k int8, v int8); CREATE TABLE f (id int8, g int8, k int8, v int8)")
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(i)
	}
	all := &dataflow.Delta{Batch: eRows(n, ids, 0)}
	m, err := d.maintain(sql, 1)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	epoch := dataflow.Epoch(1)
	push := func(x *dataflow.Delta, tables ...string) {
		for _, im := range m.df.Imports {
			for _, name := range tables {
				if im.Get.Name == "public."+name {
					im.Input.Push(picked(x, im.Get))
				}
			}
		}
		m.df.Circuit.Step(epoch)
		m.oks.Take()
		m.errs.Take()
		epoch++
	}
	push(all, "e", "f")
	// Changes come at the end of ids, where a running sum has little to do again.
	reps := 20
	if begun := processorTime(); true {
		push(&dataflow.Delta{Batch: eRows(n, []int64{int64(n)}, 0)}, "e")
		push(&dataflow.Delta{Batch: eRows(n, []int64{int64(n)}, 0), Diffs: []dataflow.Diff{-1}}, "e")
		if processorTime()-begun > 20*time.Millisecond {
			reps = 2
		}
	}
	for kind := range out {
		begun := processorTime()
		for i := range reps {
			id := []int64{int64(n + i)}
			switch kind {
			case 0:
				push(&dataflow.Delta{Batch: eRows(n, id, 0)}, "e")
			case 1:
				two := columnar.ConcatBatches([]columnar.Kind{columnar.KindInt64, columnar.KindInt64, columnar.KindInt64, columnar.KindInt64}, ptr(eRows(n, id, 0)), ptr(eRows(n, id, 1)))
				push(&dataflow.Delta{Batch: two, Diffs: []dataflow.Diff{-1, 1}}, "e")
			default:
				id[0] = int64(n + reps - 1 - i)
				push(&dataflow.Delta{Batch: eRows(n, id, 1), Diffs: []dataflow.Diff{-1}}, "e")
			}
		}
		out[kind] = ((processorTime() - begun) / time.Duration(reps)).Round(100 * time.Nanosecond)
	}
	return out
}

func ptr[T any](x T) *T { return &x }

// processorTime is the processor time that the test has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
