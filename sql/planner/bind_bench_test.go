package planner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/sql/parser"
)

// BenchmarkBind measures parsing and binding apart, for statements that a
// client may send often.
func BenchmarkBind(b *testing.B) {
	cat := newTestCatalog()
	if err := cat.ddl("CREATE TABLE t (a int PRIMARY KEY, b text, c numeric(10,2), d bigint, e timestamptz)"); err != nil {
		b.Fatal(err)
	}
	var rows strings.Builder
	for i := range 1000 {
		if i > 0 {
			rows.WriteString(", ")
		}
		fmt.Fprintf(&rows, "(%d, 'text %d', %d.5, %d, '2020-01-01 00:00:%02d+00')", i, i, i, i, i%60)
	}
	for name, text := range map[string]string{
		"point":  "SELECT * FROM t WHERE a = 42",
		"join":   "SELECT x.a, count(*) FROM t x JOIN t y ON x.a = y.d WHERE x.b = 'k' AND y.c > 5 GROUP BY x.a ORDER BY 2 DESC LIMIT 10",
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
	}
}
