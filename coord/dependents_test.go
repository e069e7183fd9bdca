package coord_test

import (
	"strings"
	"testing"

	"github.com/streamdb/streamdb/coord"
)

// TestDependents checks that what uses an object and could not be bound any more keeps it
// from a change, and that everything still works after a restart.
func TestDependents(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	for _, sql := range []string{
		"CREATE TYPE k AS (a int, b text)",
		"CREATE TABLE u (id int PRIMARY KEY, c k)",
		"CREATE UNIQUE INDEX i ON u (((c).a))",
		"CREATE UNIQUE INDEX part ON u (id) WHERE (c).a > 0",
		"INSERT INTO u VALUES (1, '(1,x)')",
		"CREATE TYPE l AS (a int, b text)",
		"CREATE TABLE g (id int PRIMARY KEY, c l, d int GENERATED ALWAYS AS ((c).a) STORED, CHECK ((c).a > 0))",
		"CREATE VIEW v AS SELECT x.a FROM (SELECT (c).a FROM g) x",
		"INSERT INTO g VALUES (1, '(1,x)')",
		"CREATE TABLE rows (a int, b int)",
		"CREATE TABLE r (id int PRIMARY KEY, w rows)",
		"CREATE UNIQUE INDEX ir ON r (((w).a))",
		"INSERT INTO r VALUES (1, '(1,2)')",
		"CREATE TABLE p (a int PRIMARY KEY, b int)",
		"CREATE MATERIALIZED VIEW m AS SELECT a, b, count(*) FROM p GROUP BY a",
		"INSERT INTO p VALUES (1, 1)",
		"CREATE TYPE e AS ENUM ('a', 'b')",
		"CREATE TABLE w (id int PRIMARY KEY, t text)",
		"CREATE UNIQUE INDEX ie ON w ((t::e))",
		"INSERT INTO w VALUES (3, 'a')",
	} {
		d.exec(c, sql)
	}
	for _, sql := range []string{
		"ALTER TYPE k DROP ATTRIBUTE a", "ALTER TYPE k DROP ATTRIBUTE a CASCADE", "ALTER TYPE k RENAME ATTRIBUTE a TO aa",
		"ALTER TYPE l DROP ATTRIBUTE a", "ALTER TABLE rows DROP COLUMN a",
		"ALTER TABLE p DROP CONSTRAINT p_pkey",
		"DROP TYPE e",
	} {
		if _, err := c.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s is allowed", sql)
		} else if strings.Contains(err.Error(), "XX000") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	d.exec(c, "ALTER TYPE k ADD ATTRIBUTE z int")
	d.exec(c, "ALTER TYPE e ADD VALUE 'c'")
	for n := range 2 {
		d.close()
		d = open(t, dir)
		c = d.connect()
		id := string(rune('2' + n))
		d.exec(c, "INSERT INTO u VALUES ("+id+", ROW("+id+", 'y', 1)::k)")
		d.exec(c, "INSERT INTO g VALUES ("+id+", '(2,y)')")
		d.exec(c, "INSERT INTO r VALUES ("+id+", '("+id+",2)')")
		if _, err := c.Exec(t.Context(), "INSERT INTO u VALUES (9, '(1,y,)')"); err == nil || !strings.Contains(err.Error(), "23505") {
			t.Errorf("a key that is there: %v", err)
		}
		for sql, want := range map[string]string{
			"SELECT count(*) FROM v WHERE a > 0": id, "SELECT * FROM m": "1,1,1", "SELECT id FROM w WHERE t::e = 'a'": "3",
			"SELECT id FROM u WHERE (c).a = 1": "1", "SELECT sum(d) FROM g": string(rune('3' + 2*n)),
		} {
			if got := d.text(c, sql); got != want {
				t.Errorf("%s: %q, want %q", sql, got, want)
			}
		}
	}
	d.exec(c, "DROP TYPE e CASCADE")
	if got := d.text(c, "SELECT count(*) FROM pg_class WHERE relname = 'ie'"); got != "0" {
		t.Errorf("the index of a dropped type is there")
	}
	d.exec(c, "INSERT INTO w VALUES (7, 'zzz')")
	d.close()
	d = open(t, dir)
	d.close()
}

// TestBrokenIndex opens a data directory with an index whose expression means nothing:
// the rows are there, writes say what is wrong, and go on when the index is dropped.
func TestBrokenIndex(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	d.exec(c, "CREATE TABLE t (id int PRIMARY KEY, a int)")
	d.exec(c, "CREATE UNIQUE INDEX i ON t ((a + a))")
	d.exec(c, "INSERT INTO t VALUES (1, 2)")
	if err := coord.BreakIndexes(d.c); err != nil {
		t.Fatal(err)
	}
	d.close()
	d = open(t, dir)
	defer d.close()
	c = d.connect()
	if got := d.text(c, "SELECT * FROM t"); got != "1,2" {
		t.Errorf("the table has %q", got)
	}
	if _, err := c.Exec(t.Context(), "INSERT INTO t VALUES (2, 3)"); err == nil || !strings.Contains(err.Error(), "SQLSTATE 55000") {
		t.Errorf("a write beside a broken index: %v", err)
	}
	d.exec(c, "DROP INDEX i")
	d.exec(c, "INSERT INTO t VALUES (2, 3)")
}
