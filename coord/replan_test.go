package coord_test

import (
	"context"
	"testing"
)

// TestLoosenedTables takes from tables what the plans of views rely on: keys,
// foreign keys and NOT NULL. The views are right with the rows that come then,
// also those over other views, and after a restart.
func TestLoosenedTables(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	a := d.connect()
	for _, q := range []string{
		"CREATE TABLE p (id int PRIMARY KEY, x int)",
		"CREATE TABLE t (id int PRIMARY KEY, a int NOT NULL, u int NOT NULL UNIQUE, f int CONSTRAINT tf REFERENCES p)",
		"INSERT INTO p VALUES (1, 1), (2, 2)",
		"INSERT INTO t VALUES (1, 1, 1, 1), (2, 2, 2, NULL)",
		"CREATE VIEW v AS SELECT u, a FROM t",
		"CREATE MATERIALIZED VIEW nulls AS SELECT id FROM t WHERE a IS NULL",
		"CREATE MATERIALIZED VIEW uniq AS SELECT DISTINCT u, a FROM v",
		"CREATE MATERIALIZED VIEW refs AS SELECT t.id FROM t JOIN p ON t.f = p.id",
		"CREATE MATERIALIZED VIEW grouped AS SELECT u, count(*) AS n FROM t GROUP BY u",
		"CREATE MATERIALIZED VIEW over AS SELECT u FROM uniq WHERE a IS NULL",
		"CREATE MATERIALIZED VIEW keyed AS SELECT u, a FROM t",
		"ALTER TABLE t ALTER a DROP NOT NULL",
		"ALTER TABLE t DROP CONSTRAINT tf",
		"BEGIN; ALTER TABLE t DROP CONSTRAINT t_u_key; INSERT INTO t VALUES (3, NULL, 2, 1), (4, NULL, 2, 9), (5, 5, 2, 9); COMMIT",
	} {
		d.exec(a, q)
	}
	check := func() {
		t.Helper()
		for q, want := range map[string]string{
			"SELECT * FROM nulls ORDER BY 1":                     "3\n4",
			"SELECT * FROM uniq ORDER BY 1, 2":                   "1,1\n2,2\n2,5\n2,",
			"SELECT * FROM refs ORDER BY 1":                      "1\n3",
			"SELECT * FROM grouped ORDER BY 1":                   "1,1\n2,4",
			"SELECT * FROM over":                                 "2",
			"SELECT count(*) FROM keyed WHERE u = 2":             "4",
			"SELECT DISTINCT u FROM keyed ORDER BY 1":            "1\n2",
			"SELECT DISTINCT u, a FROM t WHERE u = 2 ORDER BY 2": "2,2\n2,5\n2,",
		} {
			if got := d.text(a, q); got != want {
				t.Errorf("%s: %q, want %q", q, got, want)
			}
		}
	}
	check()
	a.Close(context.Background())
	d.close()
	d = open(t, dir)
	a = d.connect()
	check()
	a.Close(context.Background())
	d.close()
}
