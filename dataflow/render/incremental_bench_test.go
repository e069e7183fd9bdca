package render_test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

var (
	maxState  = flag.Int("state", 10_000, "rows of the largest state of TestIncrementalCost")
	reps      = flag.Int("changes", 20, "how many rows TestIncrementalCost inserts, updates and deletes")
	someViews = flag.String("views", "", "a part of the names of the views of TestIncrementalCost")
)

// spot is where the rows that change are.
type spot uint8

const (
	middle spot = iota // of the ids, of a group of 1,000 rows, and anywhere in the order of k
	end                // of the ids
	begin              // of the ids
	top                // those with the greatest k
	inner              // nodes of the tree with some hundred nodes below them
)

// incremental are views over one table e (id, g, k, v) of n rows, and for the
// second table's sake f, its copy. id is 0 to n-1 and unique, g the row's group
// (of 1,000 rows), k random, v small.
var incremental = []struct {
	name, sql string
	at        spot
}{
	{"sum", "SELECT sum(v) FROM e", middle},
	{"sum by group", "SELECT g, sum(v) FROM e GROUP BY g", middle},
	{"min, max", "SELECT min(k), max(k) FROM e", middle},
	{"min, max: the greatest goes", "SELECT min(k), max(k) FROM e", top},
	{"count distinct", "SELECT count(DISTINCT k) FROM e", middle},
	{"percentile_disc", "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM e", middle},
	{"percentile_cont of 3 fractions, and count", "SELECT percentile_cont('{0.1,0.5,0.9}'::float8[]) WITHIN GROUP (ORDER BY k), count(*) FROM e", middle},
	{"percentile_cont by group", "SELECT g, percentile_cont(0.9) WITHIN GROUP (ORDER BY k) FROM e GROUP BY g", middle},
	{"mode", "SELECT mode() WITHIN GROUP (ORDER BY k) FROM e", middle},
	{"string_agg by group", "SELECT g, string_agg(v::text, ',' ORDER BY k) FROM e GROUP BY g", middle},
	{"array_agg by group", "SELECT g, array_agg(v ORDER BY k) FROM e GROUP BY g", middle},
	{"top 10", "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY k DESC) AS n FROM e) s WHERE n <= 10", middle},
	{"top 10: the greatest goes", "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY k DESC) AS n FROM e) s WHERE n <= 10", top},
	{"top 3 by group", "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY k DESC) AS n FROM e) s WHERE n <= 3", middle},
	{"lag, lead", "SELECT id, lag(v) OVER w, lead(v) OVER w FROM e WINDOW w AS (ORDER BY k, id)", middle},
	{"lag, lead by group", "SELECT id, lag(v) OVER w, lead(v) OVER w FROM e WINDOW w AS (PARTITION BY g ORDER BY k, id)", middle},
	{"moving average of 11 rows", "SELECT id, avg(v) OVER (ORDER BY k, id ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING) FROM e", middle},
	{"moving average by RANGE", "SELECT id, avg(v) OVER (ORDER BY id RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING) FROM e", middle},
	{"running max", "SELECT id, max(v) OVER (ORDER BY k, id) FROM e", middle},
	{"first_value, last_value of the partition", "SELECT id, first_value(v) OVER w, last_value(v) OVER w FROM e WINDOW w AS (ORDER BY k, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)", middle},
	{"running sum, at the end", "SELECT id, sum(v) OVER (ORDER BY id) FROM e", end},
	{"row_number, rank, dense_rank at the end", "SELECT id, row_number() OVER w, rank() OVER w, dense_rank() OVER w FROM e WINDOW w AS (ORDER BY id)", end},
	{"running sum to 5 before by RANGE, at the end", "SELECT id, sum(v) OVER (ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND 5 PRECEDING) FROM e", end},
	{"running min without the row itself", "SELECT id, min(v) OVER (ORDER BY k, id ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) FROM e", middle},
	{"last value that is not NULL", "SELECT id, last_value(nullif(v, 3)) IGNORE NULLS OVER w, lag(nullif(v, 4)) IGNORE NULLS OVER w FROM e WINDOW w AS (ORDER BY k, id)", middle},
	{"sum of what follows, at the begin", "SELECT id, sum(v) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM e", begin},
	{"running sum by group", "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id) FROM e", middle},
	{"rank by group", "SELECT id, rank() OVER (PARTITION BY g ORDER BY k) FROM e", middle},
	{"ntile, percent_rank by group", "SELECT id, ntile(10) OVER w, percent_rank() OVER w FROM e WINDOW w AS (PARTITION BY g ORDER BY k, id)", middle},
	{"max over the partition", "SELECT id, max(k) OVER (PARTITION BY g) FROM e", middle},
	{"outer join", "SELECT e.id, f.v FROM e FULL JOIN f ON e.id = f.id", middle},
	{"INTERSECT ALL", "SELECT v, g FROM e INTERSECT ALL SELECT v, g FROM f", middle},
	{"EXCEPT", "SELECT id FROM e EXCEPT SELECT id FROM f WHERE v > 3", middle},
	{"reachability: a leaf", reachability, middle},
	{"reachability: an inner node", reachability, inner},
	{"by nature: running sum", "SELECT id, sum(v) OVER (ORDER BY id) FROM e", middle},
	{"by nature: row_number", "SELECT id, row_number() OVER (ORDER BY k, id) FROM e", middle},
	{"by nature: percent_rank at the end", "SELECT id, percent_rank() OVER (ORDER BY id) FROM e", end},
	{"by nature: array_agg", "SELECT array_agg(v) FROM e", middle},
}

// reachability is over a graph in which every node has an edge from its parent in
// a tree of three children a node, and one from a random node.
const reachability = "WITH RECURSIVE x AS (SELECT (id - 1) / 3 AS a, id AS b FROM e UNION ALL SELECT k, id FROM e), " +
	"r AS (SELECT 0::int8 AS id UNION SELECT x.b FROM r JOIN x ON x.a = r.id) SELECT * FROM r"

// TestIncrementalCost measures the processor time of one row inserted, updated
// and deleted in views over states of growing size. It logs them, as multiples
// of a plain sum's too; with -state=1000000 it is what docs/benchmarks tells.
// -views is a part of the names of those to measure, besides the first.
func TestIncrementalCost(t *testing.T) {
	sizes := []int{}
	for n := 10_000; n <= *maxState; n *= 10 {
		sizes = append(sizes, n)
	}
	base := map[int]time.Duration{}
	for i, q := range incremental {
		if i > 0 && !strings.Contains(q.name, *someViews) {
			continue
		}
		var line []string
		for _, n := range sizes {
			c, first := changeCost(t, q.sql, n, q.at)
			if i == 0 {
				base[n] = max(c[0], c[1], c[2])
			}
			line = append(line, fmt.Sprintf("%v %v %v (%.0fx; first %v)", c[0], c[1], c[2], float64(max(c[0], c[1], c[2]))/float64(base[n]), first))
		}
		t.Logf("| %s | %s |", q.name, strings.Join(line, " | "))
	}
}

// eRows is rows of e by their ids.
func eRows(n int, ids []int64, bump int64) columnar.Batch {
	cols := [4][]int64{}
	for _, id := range ids {
		k := randomK(n, id)
		cols[0], cols[1], cols[2], cols[3] = append(cols[0], id), append(cols[1], id/1000), append(cols[2], k+bump), append(cols[3], k%10+bump)
	}
	b := columnar.Batch{N: len(ids)}
	for _, c := range cols {
		b.Cols = append(b.Cols, columnar.FromSlice(c, nil))
	}
	return b
}

func randomK(n int, id int64) int64 {
	return int64(rand.New(rand.NewPCG(uint64(id), 7)).IntN(n))
}

// changing are the ids of the rows that come and go.
func changing(n, count int, at spot) []int64 {
	ids := make([]int64, count)
	for i := range ids {
		switch at {
		case middle:
			ids[i] = int64((n/2 + 37*i) % n)
		case end:
			ids[i] = int64(n - count + i)
		case begin:
			ids[i] = int64(count - i)
		case inner:
			ids[i] = int64(n/300 + i)
		}
	}
	if at == top {
		all := make([]int64, n)
		for i := range all {
			all[i] = int64(i)
		}
		slices.SortFunc(all, func(a, b int64) int { return cmp.Compare(randomK(n, b), randomK(n, a)) })
		copy(ids, all)
	}
	return ids
}

// changeCost is the processor time of an insertion, an update and a deletion of
// one row, and that of the first change, which may make indexes.
func changeCost(t *testing.T, sql string, n int, at spot) (out [3]time.Duration, first time.Duration) {
	d := newDB()
	d.exec(t, "CREATE TABLE e (id int8, g int8, k int8, v int8); CREATE TABLE f (id int8, g int8, k int8, v int8)")
	m, err := d.maintain(sql, 1)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	reps := *reps
	changes := changing(n, reps, at)
	ids := make([]int64, 0, n)
	for i := range int64(n) {
		if !slices.Contains(changes, i) {
			ids = append(ids, i)
		}
	}
	epoch := dataflow.Epoch(1)
	push := func(x *dataflow.Delta, tables ...string) time.Duration {
		begun := processorTime()
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
		return processorTime() - begun
	}
	m.df.Start()
	push(&dataflow.Delta{Batch: eRows(n, ids, 0)}, "e", "f")
	for m.df.Circuit.Work(1 << 20) {
	}
	change := func(kind int, id int64) time.Duration {
		switch kind {
		case 0:
			return push(&dataflow.Delta{Batch: eRows(n, []int64{id}, 0)}, "e")
		case 1:
			two := columnar.ConcatBatches([]columnar.Kind{columnar.KindInt64, columnar.KindInt64, columnar.KindInt64, columnar.KindInt64}, ptr(eRows(n, []int64{id}, 0)), ptr(eRows(n, []int64{id}, 1)))
			return push(&dataflow.Delta{Batch: two, Diffs: []dataflow.Diff{-1, 1}}, "e")
		}
		return push(&dataflow.Delta{Batch: eRows(n, []int64{id}, 1), Diffs: []dataflow.Diff{-1}}, "e")
	}
	first = change(0, changes[0])
	change(1, changes[0])
	if change(2, changes[0]) > 10*time.Millisecond {
		reps = 2
	}
	runtime.GC()
	for kind := range out {
		var sum time.Duration
		for i := range reps {
			if kind == 2 {
				i = reps - 1 - i
			}
			sum += change(kind, changes[i])
		}
		out[kind] = (sum / time.Duration(reps)).Round(100 * time.Nanosecond)
	}
	return out, first.Round(100 * time.Nanosecond)
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
