package render_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/columnar"
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
