package render_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/sql/planner"
)

// tinyQueries are of the kind that test suites run by the million.
var tinyQueries = []struct{ name, sql string }{
	{"const", "SELECT 1 + 2"},
	{"scan", "SELECT a, b FROM t"},
	{"filter", "SELECT a + 1, b FROM t WHERE a > 3 AND b <> 7"},
	{"sort", "SELECT a, b FROM t WHERE a > 3 ORDER BY b DESC, a"},
	{"aggregate", "SELECT count(*), sum(a) FROM t"},
	{"group", "SELECT b, count(*) FROM t GROUP BY b"},
	{"join", "SELECT t.a, s.b FROM t JOIN s ON t.a = s.a WHERE t.b > 2"},
	{"exists", "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.a = t.a)"},
	{"scalar", "SELECT a, (SELECT max(b) FROM s WHERE s.a = t.a) FROM t"},
	{"window", "SELECT a, row_number() OVER (PARTITION BY b ORDER BY a) FROM t"},
}

func tinyDB(b *testing.B) *db {
	d := newDB()
	d.exec(b, "CREATE TABLE t (a int, b int, c text); CREATE TABLE s (a int, b int)")
	d.exec(b, "INSERT INTO t VALUES (1, 2, 'x'), (2, 3, 'y'), (3, 4, 'z'), (4, 5, 'x'), (5, 6, 'y'), (6, 7, 'z'), (7, 8, NULL), (8, 9, 'w')")
	d.exec(b, "INSERT INTO s VALUES (1, 2), (2, 3), (2, 4), (9, 9)")
	return d
}

func discard(*columnar.Batch) error { return nil }

// BenchmarkTiny measures what a small query costs: to optimize, and to run.
func BenchmarkTiny(b *testing.B) {
	for _, q := range tinyQueries {
		d := tinyDB(b)
		bound, err := d.bind(q.sql)
		if err != nil {
			b.Fatal(err)
		}
		rel, err := planner.Optimize(bound.Rel, planner.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(q.name+"/bind", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.bind(q.sql); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(q.name+"/optimize", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := planner.Optimize(bound.Rel, planner.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(q.name+"/run", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := render.RunOnce(context.Background(), rel, d, render.Options{Context: session()}, discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPlanJoins measures planning as the number of joined tables grows.
func BenchmarkPlanJoins(b *testing.B) {
	for _, n := range []int{4, 16, 64} {
		b.Run(fmt.Sprintf("tables=%d", n), func(b *testing.B) {
			d := newDB()
			var from, where []string
			for i := range n {
				d.exec(b, fmt.Sprintf("CREATE TABLE t%d (id int PRIMARY KEY, a int, b int, c text)", i))
				from = append(from, fmt.Sprintf("t%d", i))
				if i > 0 {
					where = append(where, fmt.Sprintf("t%d.a = t%d.id", i/2, i))
				}
			}
			bound, err := d.bind("SELECT t0.c FROM " + strings.Join(from, ", ") + " WHERE " + strings.Join(where, " AND "))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := planner.Optimize(bound.Rel, planner.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// bigDB has a table of n rows in chunks, its columns in a cheap pattern.
func bigDB(b testing.TB, n int) *db {
	d := newDB()
	d.exec(b, "CREATE TABLE f (id int, k int, v bigint, s text) APPEND ONLY; CREATE TABLE dim (k int PRIMARY KEY, g int)")
	const chunk = 1 << 16
	for at := 0; at < n; at += chunk {
		m := min(chunk, n-at)
		id, k, v := make([]int32, m), make([]int32, m), make([]int64, m)
		s := columnar.NewBuilder(columnar.KindBytes, m)
		for i := range m {
			r := uint32(at+i) * 2654435761
			id[i], k[i], v[i] = int32(at+i), int32(r%10000), int64(r%1000)
			s.String(names[r%uint32(len(names))])
		}
		d.tables[1].deltas = append(d.tables[1].deltas, &dataflow.Delta{Batch: columnar.Batch{N: m, Cols: []*columnar.Vec{
			columnar.FromSlice(id, nil), columnar.FromSlice(k, nil), columnar.FromSlice(v, nil), s.Build(),
		}}})
	}
	k, g := make([]int32, 10000), make([]int32, 10000)
	for i := range k {
		k[i], g[i] = int32(i), int32(i%100)
	}
	d.tables[2].deltas = []*dataflow.Delta{{Batch: columnar.Batch{N: len(k), Cols: []*columnar.Vec{
		columnar.FromSlice(k, nil), columnar.FromSlice(g, nil),
	}}}}
	return d
}

var names = []string{"apple", "pear", "plum", "cherry", "quince", "medlar", "sloe"}

// bigQueries are queries over many rows.
var bigQueries = []struct{ name, sql string }{
	{"filter", "SELECT id, v + 1 FROM f WHERE v < 500"},
	{"group", "SELECT k, count(*), sum(v) FROM f GROUP BY k"},
	{"grouptext", "SELECT s, count(*), max(v) FROM f GROUP BY s"},
	{"join", "SELECT dim.g, sum(f.v) FROM f JOIN dim ON f.k = dim.k GROUP BY dim.g"},
	{"sortlimit", "SELECT id, v FROM f ORDER BY v DESC, id LIMIT 10"},
	{"sort", "SELECT id FROM f ORDER BY v, id"},
	{"topk", "SELECT * FROM (SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY v DESC, id) AS n FROM f) q WHERE n <= 3"},
	{"distinct", "SELECT count(DISTINCT k) FROM f"},
	{"window", "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY id ROWS 2 PRECEDING) FROM f"},
	{"outer", "SELECT dim.k, f.id FROM dim LEFT JOIN f ON f.k = dim.k AND f.v > dim.g * 9"},
}

// BenchmarkOnce measures one-off queries over a million rows.
func BenchmarkOnce(b *testing.B) {
	const n = 1 << 20
	d := bigDB(b, n)
	for _, q := range bigQueries {
		bound, err := d.bind(q.sql)
		if err != nil {
			b.Fatal(err)
		}
		rel, err := planner.Optimize(bound.Rel, planner.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(q.name, func(b *testing.B) {
			for b.Loop() {
				if err := render.RunOnce(context.Background(), rel, d, render.Options{Context: session()}, discard); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
