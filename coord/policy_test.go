package coord_test

import (
	"strings"
	"testing"
)

// TestTablePolicy checks what tables with ON CONFLICT of their own do with taken
// keys, also among the rows of one statement, and that struct<…> columns change
// their form field by field; all of it again after a restart.
func TestTablePolicy(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	for _, p := range []struct{ policy, want string }{
		{"OVERWRITE", "1,5,\n2,9,9\n3,,6"},
		{"IGNORE", "1,4,2\n2,,3\n3,4,5"},
		{"DO UPDATE IF NOT NULL", "1,5,2\n2,9,9\n3,4,6"},
	} {
		name := "t_" + strings.ToLower(p.policy[:2])
		d.exec(c, "CREATE TABLE "+name+" (a int PRIMARY KEY, b int, c int) ON CONFLICT "+p.policy)
		d.exec(c, "CREATE MATERIALIZED VIEW v"+name+" AS SELECT * FROM "+name)
		d.exec(c, "INSERT INTO "+name+" VALUES (1, 4, 2), (2, NULL, 3)")
		d.exec(c, "INSERT INTO "+name+" VALUES (3, 4, 5), (3, NULL, 6), (1, 5, NULL)")
		d.exec(c, "INSERT INTO "+name+" (c, b, a) VALUES (9, 9, 2)")
		if got := d.text(c, "SELECT * FROM v"+name+" ORDER BY a"); got != p.want {
			t.Errorf("ON CONFLICT %s: %q, want %q", p.policy, got, p.want)
		}
		d.exec(c, "DELETE FROM "+name)
		d.exec(c, "INSERT INTO "+name+" VALUES (1, 4, 2), (2, NULL, 3)")
		if _, err := c.PgConn().CopyFrom(t.Context(), strings.NewReader("3\t4\t5\n3\t\\N\t6\n1\t5\t\\N\n2\t9\t9\n"), "COPY "+name+" FROM STDIN"); err != nil {
			t.Fatal(err)
		}
		if got := d.text(c, "SELECT * FROM v"+name+" ORDER BY a"); got != p.want {
			t.Errorf("COPY, ON CONFLICT %s: %q, want %q", p.policy, got, p.want)
		}
		if got := d.text(c, "SELECT * FROM "+name+" ORDER BY a"); got != p.want {
			t.Errorf("ON CONFLICT %s: %q, want %q", p.policy, got, p.want)
		}
	}
	d.exec(c, "CREATE TABLE s (v struct<a int, b struct<c int, d text>>[], m map(text, int))")
	d.exec(c, "INSERT INTO s VALUES (ARRAY[row(1, row(2, 'x')), NULL], MAP {'k': 1})")
	d.exec(c, "INSERT INTO s VALUES (NULL, NULL)")
	d.exec(c, "ALTER TABLE s ALTER COLUMN v TYPE struct<b struct<d text, e int>, a bigint>[]")
	d.exec(c, "CREATE MATERIALIZED VIEW w AS SELECT (v[1]).b AS b, (v[1]).a AS a, m['k'] AS k, v FROM s")
	check := func() {
		t.Helper()
		if got, want := d.text(c, "SELECT b::text, a, k, v::text FROM w ORDER BY a"), "(x,),1,1,{\"(\\\"(x,)\\\",1)\",NULL}\n,,,"; got != want {
			t.Errorf("after ALTER TYPE: %q, want %q", got, want)
		}
	}
	check()
	d.exec(c, "INSERT INTO s VALUES (NULL, NULL), (ARRAY[row(row('y', 3), 4)], MAP {'k': 2}), (NULL, MAP {'k': 3})")
	d.exec(c, "DELETE FROM s WHERE m['k'] > 1 OR v IS NULL")
	d.exec(c, "INSERT INTO s VALUES (NULL, NULL)")
	check()
	d.exec(c, "CREATE TABLE s2 (v struct<a int, b text>)")
	d.exec(c, "INSERT INTO s2 VALUES (row(1, 'x'))")
	d.exec(c, "CREATE MATERIALIZED VIEW w2 AS SELECT (v).a FROM s2")
	d.exec(c, "ALTER TABLE s2 ALTER COLUMN v TYPE struct<c text, a int>")
	d.exec(c, "INSERT INTO s2 VALUES (row('y', 2))")
	if got, want := d.text(c, "SELECT v::text, (SELECT sum(a) FROM w2) FROM s2 ORDER BY 1"), "(,1),3\n(y,2),3"; got != want {
		t.Errorf("a column of a view with other fields: %q, want %q", got, want)
	}
	for _, form := range []string{"struct<c text>", "struct<a text, c text>"} {
		if _, err := c.Exec(t.Context(), "ALTER TABLE s2 ALTER COLUMN v TYPE "+form); err == nil {
			t.Errorf("a column of a view becomes %s", form)
		}
	}
	d.close()
	d = open(t, dir)
	defer d.close()
	c = d.connect()
	check()
	d.exec(c, "INSERT INTO t_ov VALUES (1, 7, 7)")
	if got, want := d.text(c, "SELECT b, c FROM vt_ov WHERE a = 1"), "7,7"; got != want {
		t.Errorf("after a restart: %q, want %q", got, want)
	}
}
