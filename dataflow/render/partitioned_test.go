package render_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/streamdb/streamdb/dataflow/render"
)

// TestPartitioned runs queries in parts of rows in files, with so little memory that
// parts are cut again, and compares with what they give in memory.
func TestPartitioned(t *testing.T) {
	d, _ := genDB(t)
	plain := d.memory
	defer func() { d.memory = plain }()
	files := 0
	full := errors.New("full")
	limit := 0
	memory := &render.Memory{Sort: 1 << 9, Partition: true, Temp: func() (*os.File, error) {
		files++
		return os.CreateTemp(t.TempDir(), "part")
	}, Wrote: func(n int) error {
		if limit > 0 {
			if limit -= n; limit <= 0 {
				return full
			}
		}
		return nil
	}}
	for _, sql := range []string{
		"SELECT x.a, y.b, count(*), sum(x.b) FROM r x, r y, q z GROUP BY x.a, y.b",
		"SELECT DISTINCT x.a, y.b FROM r x, r y, q z",
		"SELECT x.a, y.b, z.a FROM r x JOIN r y ON x.a = y.b LEFT JOIN q z ON z.a = x.b",
		"SELECT x.a, y.b FROM r x FULL JOIN q y ON x.a = y.a AND x.b > 0",
		"SELECT x.a FROM r x WHERE EXISTS (SELECT 1 FROM q y WHERE y.a = x.a) AND NOT EXISTS (SELECT 1 FROM p y WHERE y.a = x.b)",
		"SELECT x.a, x.b, row_number() OVER (PARTITION BY x.a ORDER BY x.b, y.a, y.b) FROM r x, q y",
		"SELECT count(*), sum(n) FROM (SELECT x.a, count(DISTINCT y.b) AS n FROM r x, r y GROUP BY x.a) s",
		"SELECT a FROM r INTERSECT SELECT a FROM q EXCEPT SELECT b FROM p",
		"SELECT a, b FROM r UNION SELECT b, a FROM q ORDER BY 1, 2 LIMIT 7",
		"WITH s AS (SELECT a, sum(b) AS n FROM r GROUP BY a) SELECT x.a, y.n FROM s x JOIN s y ON x.n = y.n AND x.a <= y.a",
		"SELECT a, b FROM (SELECT a, b FROM r UNION ALL SELECT a, b FROM q) u GROUP BY a, b HAVING count(*) > 1 ORDER BY a DESC, b",
		"SELECT x.a::numeric / 2 AS h, count(*) FROM r x GROUP BY x.a::numeric / 2",
	} {
		d.memory = plain
		want, err := d.query(sql)
		if err != nil {
			t.Fatal(sql, err)
		}
		before := files
		d.memory = memory
		got, err := d.query(sql)
		if err != nil {
			t.Fatal(sql, err)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, want %d\n%v\n%v", sql, len(got), len(want), got, want)
		}
		if files == before {
			t.Errorf("%s wrote nothing", sql)
		}
		limit = 100
		if _, err := d.query(sql); !errors.Is(err, full) {
			t.Errorf("%s, with files full: %v", sql, err)
		}
		limit = 0
	}
}
