package coord_test

import (
	"strings"
	"testing"
)

// TestReadIndex checks that an index can be read like a relation, also by views,
// which hold it, and what becomes of them when names change.
func TestReadIndex(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	d.exec(c, "CREATE TABLE t (id int PRIMARY KEY, a int, b int)")
	d.exec(c, "CREATE INDEX i ON t (b, a)")
	d.exec(c, "CREATE INDEX part ON t (b) WHERE a > 1")
	d.exec(c, "INSERT INTO t VALUES (1, 2, 3), (4, 5, 6)")
	d.exec(c, "CREATE MATERIALIZED VIEW v AS SELECT * FROM i")
	d.exec(c, "CREATE VIEW w AS SELECT x.a + x.id AS s, x.b FROM i AS x WHERE b > 3")
	d.exec(c, "UPDATE t SET a = a + 1")
	if got, want := d.text(c, "SELECT * FROM v ORDER BY id"), "3,3,1\n6,6,4"; got != want {
		t.Errorf("view of an index: %q, want %q", got, want)
	}
	for q, code := range map[string]string{
		"DROP INDEX i":                   "2BP01",
		"SELECT * FROM part":             "42809",
		"INSERT INTO i VALUES (1, 2, 3)": "42809",
		"ALTER TABLE t DROP COLUMN a":    "2BP01",
		"CREATE TABLE i (x int)":         "42P07",
	} {
		if _, err := c.Exec(t.Context(), q); err == nil || !strings.Contains(err.Error(), "SQLSTATE "+code) {
			t.Errorf("%s: %v, want %s", q, err, code)
		}
	}
	d.exec(c, "CREATE SCHEMA other")
	d.exec(c, "ALTER TABLE t RENAME COLUMN a TO aa")
	d.exec(c, "ALTER INDEX i RENAME TO j")
	d.exec(c, "ALTER TABLE t SET SCHEMA other")
	d.exec(c, "ALTER TABLE other.t RENAME TO tt")
	d.close()
	d = open(t, dir)
	defer d.close()
	c = d.connect()
	d.exec(c, "INSERT INTO other.tt VALUES (7, 8, 9)")
	if got, want := d.text(c, "SELECT s, b FROM w ORDER BY 1"), "10,6\n15,9"; got != want {
		t.Errorf("view after renames: %q, want %q", got, want)
	}
	if got, want := d.text(c, "SELECT * FROM other.j WHERE b = 9"), "9,8,7"; got != want {
		t.Errorf("index in its new schema: %q, want %q", got, want)
	}
	d.exec(c, "DROP INDEX other.j CASCADE")
	if got := d.text(c, "SELECT count(*) FROM pg_class WHERE relname IN ('v', 'w')"); got != "0" {
		t.Errorf("%s views are left", got)
	}
}

// TestUniqueIndexOfView checks that a unique index of a view is taken where the view's
// query makes its columns unique, and only there.
func TestUniqueIndexOfView(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	d.exec(c, "CREATE TABLE t (id int PRIMARY KEY, a int, b int)")
	d.exec(c, "INSERT INTO t VALUES (1, 2, 3), (4, 2, 6)")
	d.exec(c, "CREATE MATERIALIZED VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a")
	d.exec(c, "CREATE UNIQUE INDEX u ON v (a)")
	d.exec(c, "CREATE UNIQUE INDEX ON v (s, a)")
	for _, sql := range []string{"CREATE UNIQUE INDEX ON v (s)", "CREATE UNIQUE INDEX ON v ((a + 1))"} {
		if _, err := c.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "SQLSTATE 0A000") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	for range 2 {
		if got, want := d.text(c, "SELECT indisunique, pg_get_indexdef(indexrelid) FROM pg_index WHERE indexrelid = 'u'::regclass"), "t,CREATE UNIQUE INDEX u ON public.v USING btree (a)"; got != want {
			t.Errorf("the index is %q, want %q", got, want)
		}
		if got := d.text(c, "SELECT s FROM v WHERE a = 2"); got != "9" {
			t.Errorf("the view has %q", got)
		}
		d.close()
		d = open(t, dir)
		c = d.connect()
	}
	d.close()
}
