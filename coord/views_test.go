package coord_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestViewsKeepTheirMeaning checks what a view's stored text must keep: its
// operators' order, its columns, its schema, also through renames; and that a
// transaction sees its own changes in views.
func TestViewsKeepTheirMeaning(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	for _, sql := range []string{
		"CREATE TABLE dw (a bool, b bool)", "INSERT INTO dw VALUES (NULL, true), (true, true)",
		"CREATE VIEW dv AS SELECT (NOT a) IS NULL AS x, (a AND b) IS NULL AS y FROM dw",
		"CREATE MATERIALIZED VIEW dm AS SELECT (NOT a) IS NULL AS x, (a AND b) IS NULL AS y FROM dw",
		"CREATE SCHEMA s", `CREATE TABLE s.t (x int, "Odd" int)`, "SET search_path TO s, public",
		"CREATE MATERIALIZED VIEW m AS SELECT * FROM t", "INSERT INTO t VALUES (1, 2)",
	} {
		d.exec(c, sql)
	}
	check := func(sql, want string) {
		t.Helper()
		if got := d.text(c, sql); got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
	check("SELECT * FROM dv ORDER BY 1", "f,f\nt,t")
	check("SELECT * FROM dm ORDER BY 1", "f,f\nt,t")
	d.exec(c, "BEGIN")
	d.exec(c, "INSERT INTO t VALUES (3, 4)")
	check("SELECT * FROM m ORDER BY x", "1,2\n3,4")
	d.exec(c, "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t")
	check("SELECT n FROM n", "2")
	d.exec(c, "ALTER TABLE t ADD COLUMN z int DEFAULT 7")
	check("SELECT * FROM t ORDER BY x", "1,2,7\n3,4,7")
	d.exec(c, "COMMIT")
	check("SELECT * FROM m ORDER BY x", "1,2\n3,4")
	check("SELECT n FROM n", "2")
	d.exec(c, "ALTER TABLE t RENAME TO renamed")
	d.exec(c, "INSERT INTO renamed VALUES (5, 6)")
	check("SELECT count(*) FROM m", "3")
	for sql, code := range map[string]string{
		"CREATE MATERIALIZED VIEW bad AS SELECT now()":                   "0A000",
		"CREATE MATERIALIZED VIEW bad AS SELECT random()":                "42P17",
		"SELECT * FROM dw AS OF TIMESTAMP '2020-01-01'":                  "55000",
		"SELECT count(*) FROM generate_series(1, 100000000000::numeric)": "54000",
		"DROP TABLE dw": "2BP01",
	} {
		_, err := c.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol)
		if err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("%s: %v, want SQLSTATE %s", sql, err, code)
		}
	}
}

// TestManyViews makes and drops views one after the other: each is complete
// when it is first read.
func TestManyViews(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	d.exec(c, "CREATE TABLE h (a int, b int)")
	d.exec(c, "INSERT INTO h SELECT i, i % 3 FROM generate_series(1, 30) i")
	n := 300
	if testing.Short() {
		n = 50
	}
	for i := range n {
		d.exec(c, fmt.Sprintf("CREATE MATERIALIZED VIEW h_%d AS SELECT b, count(*) AS c FROM h GROUP BY b", i))
		if got := d.text(c, fmt.Sprintf("SELECT b, c FROM h_%d ORDER BY b", i)); got != "0,10\n1,10\n2,10" {
			t.Fatalf("view %d: %s", i, got)
		}
		d.exec(c, fmt.Sprintf("DROP MATERIALIZED VIEW h_%d", i))
	}
}

// A table may be dropped with its views while these still take in what it holds:
// nothing of it is in the way of what comes after.
func TestDropDuringHydration(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	for range 40 {
		var b strings.Builder
		b.WriteString("CREATE TABLE gone (a int); INSERT INTO gone VALUES (1);")
		for i := range 10 {
			fmt.Fprintf(&b, "CREATE MATERIALIZED VIEW v%d AS SELECT a + %d AS a FROM gone;", i, i)
		}
		for text := range strings.SplitSeq(b.String()+"DROP TABLE gone CASCADE", ";") {
			d.exec(c, text)
		}
	}
	d.exec(c, "CREATE TABLE gone (a int)")
	d.exec(c, "CREATE MATERIALIZED VIEW v0 AS SELECT a FROM gone")
	d.exec(c, "INSERT INTO gone VALUES (7)")
	if got := d.text(c, "SELECT a FROM v0"); got != "7" {
		t.Errorf("the view says %q", got)
	}
}

// A condition that fails is not met where a cheaper one is not true, whichever is
// written first; of two that cost the same, the first written is met first.
func TestCheapConditionsFirst(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	d.exec(c, "CREATE TABLE big (a int, b int, n int)")
	d.exec(c, "INSERT INTO big VALUES (70000, 70000, NULL)")
	for i, where := range []string{
		"a * b * a > 0 AND a < 7",
		"(a * b * a * a * b * a) IS NOT NULL AND NOT a BETWEEN 35 * -b AND NULL",
		"a / (b - 70000) * 2 = 1 AND n IN (1, 2)",
		"a < 7 AND a * b = 0",
		"a + 0 < 7 AND a * b = 0",
	} {
		q := "SELECT a FROM big WHERE " + where
		d.exec(c, fmt.Sprintf("CREATE MATERIALIZED VIEW cheap%d AS %s", i, q))
		if got := d.text(c, q) + d.text(c, fmt.Sprintf("SELECT * FROM cheap%d", i)); got != "" {
			t.Errorf("%s: %s", where, got)
		}
	}
	if _, err := c.Exec(context.Background(), "SELECT a FROM big WHERE a * b = 0 AND a + 0 < 7", pgx.QueryExecModeSimpleProtocol); err == nil {
		t.Error("what is written first is not met first")
	}
}
