package coord_test

import "testing"

// TestRowID checks that _row_id tells equal rows apart, the same in views as in
// queries whatever the session's settings, over changes and a restart.
func TestRowID(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	d.exec(c, "CREATE TABLE t (a int, at timestamptz, j json)")
	d.exec(c, "INSERT INTO t VALUES (1, '2024-01-01 00:00+00', '{}'), (1, '2024-01-01 00:00+00', '{}'), (NULL, NULL, NULL), (2, NULL, NULL)")
	d.exec(c, "CREATE MATERIALIZED VIEW v AS SELECT _row_id AS id, t.* FROM t")
	d.exec(c, "SET TimeZone = 'Asia/Tokyo'")
	check := func(rows string) {
		t.Helper()
		if got := d.text(c, "SELECT count(*), count(DISTINCT _row_id), count(DISTINCT id) FROM t JOIN v ON _row_id = id"); got != rows+","+rows+","+rows {
			t.Errorf("rows by their ids: %s, want %s", got, rows)
		}
	}
	check("4")
	d.exec(c, "ALTER TABLE t RENAME COLUMN a TO b")
	d.exec(c, "INSERT INTO t VALUES (1, '2024-01-01 00:00+00', '{}')")
	check("5")
	d.exec(c, "DELETE FROM t WHERE b = 1")
	check("2")
	if got := d.text(c, "SELECT * FROM t WHERE _row_id IN (SELECT id FROM v WHERE b = 2)"); got != "2,," {
		t.Errorf("the row of an id: %q", got)
	}
	d.close()
	d = open(t, dir)
	defer d.close()
	c = d.connect()
	d.exec(c, "INSERT INTO t VALUES (2)")
	check("3")
}
