package coord_test

import "testing"

// TestWideJoin joins a long value with many rows, with and without a
// condition on the pair, ad hoc and maintained: pairs are made by their bytes, too.
func TestWideJoin(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	d.exec(c, "CREATE TABLE h (id int, x text)")
	d.exec(c, "CREATE TABLE n (i int, k int)")
	d.exec(c, "INSERT INTO n SELECT i, 1 FROM generate_series(1, 300) i")
	d.exec(c, "INSERT INTO h VALUES (1, repeat('a', 250000))")
	for _, q := range []string{
		"SELECT count(*), sum(length(x || i)) FROM n, h WHERE length(x || i::text) > 250001",
		"SELECT count(*), sum(length(x || i)) FROM n JOIN h ON h.id = n.k WHERE n.i > 9",
	} {
		if got := d.text(c, q); got != "291,72750783" {
			t.Errorf("%s: %s", q, got)
		}
	}
	d.exec(c, "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(length(x || i)) AS s FROM n JOIN h ON h.id = n.k")
	d.exec(c, "UPDATE h SET x = x || 'b'")
	if got := d.text(c, "SELECT n, s FROM v"); got != "300,75001092" {
		t.Errorf("the view: %s", got)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
