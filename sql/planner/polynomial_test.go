package planner

import (
	"fmt"
	"strings"
	"testing"
)

// joinShapes are joins of n tables t0 … (a int PRIMARY KEY, b int, c text).
var joinShapes = map[string]func(n int) string{
	"chain": func(n int) string {
		return joinOf(n, func(i int) string { return fmt.Sprintf("t%d.b = t%d.a", i-1, i) })
	},
	"star": func(n int) string {
		return joinOf(n, func(i int) string { return fmt.Sprintf("t0.b = t%d.a", i) })
	},
	"every pair": func(n int) string {
		return joinOf(n, func(i int) string {
			var on []string
			for j := range i {
				on = append(on, fmt.Sprintf("t%d.b + t%d.b > %d", j, i, i))
			}
			return strings.Join(on, " AND ")
		})
	},
	"outer": func(n int) string {
		from := "t0"
		for i := 1; i < n; i++ {
			from += fmt.Sprintf(" LEFT JOIN t%d ON t%d.b = t%d.a", i, i-1, i)
		}
		return "SELECT t0.c FROM " + from + " WHERE t0.b > 7"
	},
}

func joinOf(n int, on func(i int) string) string {
	var from, where []string
	for i := range n {
		from = append(from, fmt.Sprintf("t%d", i))
		if i > 0 {
			where = append(where, on(i))
		}
	}
	return "SELECT * FROM " + strings.Join(from, ", ") + " WHERE t0.a > 7 AND " + strings.Join(where, " AND ")
}

// planned is the work of planning a join.
func planned(t testing.TB, shape string, n int) func() {
	cat := newTestCatalog()
	for i := range n {
		if err := cat.ddl(fmt.Sprintf("CREATE TABLE t%d (a int PRIMARY KEY, b int, c text)", i)); err != nil {
			t.Fatal(err)
		}
	}
	sql := joinShapes[shape](n)
	return func() {
		b, err := cat.bindText(sql)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Optimize(b.(*Query).Rel, Options{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPlanningIsPolynomial counts what the planner allocates for joins of more and
// more tables: it must grow no faster than their third power (the predicates of
// every pair make the input itself grow with the second).
func TestPlanningIsPolynomial(t *testing.T) {
	for shape := range joinShapes {
		t.Run(shape, func(t *testing.T) {
			last := 0.0
			for _, n := range []int{8, 16, 32, 64} {
				allocs := testing.AllocsPerRun(1, planned(t, shape, n))
				t.Logf("%d tables: %.0f allocations", n, allocs)
				if last > 0 && allocs > 9*last {
					t.Errorf("%d tables take %.0f allocations, half of them %.0f", n, allocs, last)
				}
				last = allocs
			}
		})
	}
}

// BenchmarkPlanJoins plans joins of 64 tables.
func BenchmarkPlanJoins(b *testing.B) {
	for shape := range joinShapes {
		run := planned(b, shape, 64)
		b.Run(shape, func(b *testing.B) {
			for b.Loop() {
				run()
			}
		})
	}
}
