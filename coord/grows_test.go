package coord_test

import (
	"context"
	"strings"
	"testing"
)

// TestGrowingViews looks that views over what only grows are known to grow, so that
// views over them take the cheap forms, before and after a restart; and that they
// do not once what they are made of may shrink.
func TestGrowingViews(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	a := d.connect()
	for _, q := range []string{
		"CREATE TABLE e (k int, v int) APPEND ONLY", "CREATE TABLE t (k int, v int)",
		"CREATE VIEW source AS SELECT * FROM e",
		"CREATE MATERIALIZED VIEW big AS SELECT k, v FROM source WHERE v > 10",
		"CREATE MATERIALIZED VIEW greatest_of AS SELECT k, max(v) AS m FROM big GROUP BY k",
		"CREATE MATERIALIZED VIEW latest AS SELECT DISTINCT ON (k) k, v FROM big ORDER BY k, v",
		"INSERT INTO e SELECT i % 3, i FROM generate_series(1, 30) i",
	} {
		d.exec(a, q)
	}
	check := func(want string, cheap bool) {
		t.Helper()
		got := d.text(a, "SELECT g.k, m, v FROM greatest_of g JOIN latest l ON l.k = g.k ORDER BY 1")
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
		for _, v := range []string{"greatest_of", "latest"} {
			if p := d.text(a, "EXPLAIN MATERIALIZED VIEW "+v); strings.Contains(strings.Split(p, "\n")[0], "append-only") != cheap {
				t.Errorf("%s is planned as\n%s", v, p)
			}
		}
	}
	check("0,30,12\n1,28,13\n2,29,11", true)
	a.Close(context.Background())
	d.close()
	d = open(t, dir)
	a = d.connect()
	d.exec(a, "INSERT INTO e VALUES (0, 100), (0, 11)")
	check("0,100,11\n1,28,13\n2,29,11", true)
	d.exec(a, "CREATE OR REPLACE VIEW source AS SELECT * FROM t")
	d.exec(a, "INSERT INTO t VALUES (0, 20), (0, 30), (1, 40)")
	d.exec(a, "DELETE FROM t WHERE v = 30")
	check("0,20,20\n1,40,40", false)
	a.Close(context.Background())
	d.close()
}
