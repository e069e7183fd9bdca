package planner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// BenchmarkBind measures parsing, binding and optimizing apart, for statements that a
// client may send often.
func BenchmarkBind(b *testing.B) {
	cat := newTestCatalog()
	if err := cat.ddl("CREATE TABLE t (a int PRIMARY KEY, b text, c numeric(10,2), d bigint, e timestamptz); CREATE TABLE s (a int, b date, c timestamp)"); err != nil {
		b.Fatal(err)
	}
	var rows strings.Builder
	for i := range 1000 {
		if i > 0 {
			rows.WriteString(", ")
		}
		fmt.Fprintf(&rows, "(%d, 'text %d', %d.5, %d, '2020-01-01 00:00:%02d+00')", i, i, i, i, i%60)
	}
	dates := "INSERT INTO s VALUES " + strings.Repeat("(1, '1996-03-13', '2020-01-01 00:00:07'), ", 999) + "(1, '1996-03-13', '2020-01-01 00:00:07')"
	for name, text := range map[string]string{
		"dates": dates,
		"point": "SELECT * FROM t WHERE a = 42",
		"join":  "SELECT x.a, count(*) FROM t x JOIN t y ON x.a = y.d WHERE x.b = 'k' AND y.c > 5 GROUP BY x.a ORDER BY 2 DESC LIMIT 10",
		"or": "SELECT a FROM t WHERE (a > 93 AND (((c >= 55.99 OR d <= 1 OR d >= 24 AND d IN (84, 92, 96, 26) OR d >= 53 AND c > 6.22) AND a >= 33 OR " +
			"((a >= 6 AND d < 27 AND a > 78) OR c > 90.47 OR d IN (79, 47) AND c > 57.55 OR c < 77.85 OR (d = 36 OR a < 90) AND d <= 44) OR " +
			"c IN (62.81, 85.85, 44.58) OR d IS NULL) AND (d IN (52, 58, 51, 90) OR d >= 55))) OR a < 40 OR d BETWEEN 4 AND 79 AND d >= 51",
		"insert": "INSERT INTO t VALUES " + rows.String(),
	} {
		b.Run("parse/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := parser.Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
		stmts, err := parser.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("bind/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Bind(cat.context(), &stmts[0]); err != nil {
					b.Fatal(err)
				}
			}
		})
		bound, err := Bind(cat.context(), &stmts[0])
		if err != nil {
			b.Fatal(err)
		}
		q, ok := bound.(*Query)
		if !ok {
			continue
		}
		b.Run("optimize/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Optimize(q.Rel, Options{Indexes: func(id plan.ObjectID) []Index { return cat.indexes[id] }}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
