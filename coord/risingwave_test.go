package coord_test

import (
	"strings"
	"testing"
)

// TestVersionColumns checks the tables of RisingWave's ON CONFLICT … WITH VERSION
// COLUMN: a row of a version that comes before that of the row present is passed over,
// within a statement and between statements.
func TestVersionColumns(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	d.exec(c, "CREATE TABLE o (k int PRIMARY KEY, v int, x text) ON CONFLICT OVERWRITE WITH VERSION COLUMN (v)")
	d.exec(c, "CREATE TABLE p (k int PRIMARY KEY, v int, w int, x text, y text) ON CONFLICT DO UPDATE IF NOT NULL WITH VERSION COLUMN (v, w)")
	expect := func(q, want string) {
		t.Helper()
		if got := d.text(c, q); got != want {
			t.Errorf("%s: %q, want %q", q, got, want)
		}
	}
	d.exec(c, "INSERT INTO o VALUES (1, 5, 'a'), (1, 7, 'b'), (1, 6, 'c'), (2, NULL, 'd')")
	expect("SELECT * FROM o ORDER BY k", "1,7,b\n2,,d")
	d.exec(c, "INSERT INTO o VALUES (1, 6, 'e'), (2, NULL, 'f'), (2, 1, 'g'), (2, NULL, 'h')")
	expect("SELECT * FROM o ORDER BY k", "1,7,b\n2,1,g")
	d.exec(c, "INSERT INTO o VALUES (1, 7, 'same'), (2, NULL, 'i')")
	expect("SELECT * FROM o ORDER BY k", "1,7,same\n2,1,g")
	d.exec(c, "INSERT INTO o VALUES (1, 1, 'j') ON CONFLICT (k) DO UPDATE SET x = excluded.x") // what the statement says counts
	expect("SELECT * FROM o WHERE k = 1", "1,7,j")

	d.exec(c, "INSERT INTO p VALUES (1, 5, 1, 'a', 'b')")
	// The row (4, …) is passed over though the one after it is not; x stays.
	d.exec(c, "INSERT INTO p VALUES (1, 4, 9, 'old', 'old'), (1, 5, 2, NULL, 'c'), (1, 5, 1, 'older', NULL), (2, 1, NULL, 'q', NULL)")
	expect("SELECT * FROM p ORDER BY k", "1,5,2,a,c\n2,1,,q,")
	d.exec(c, "INSERT INTO p VALUES (2, 1, 0, NULL, 'r'), (2, NULL, 5, 'no', 'no')")
	expect("SELECT * FROM p WHERE k = 2", "2,1,0,q,r")

	for q, code := range map[string]string{
		"CREATE TABLE e (k int PRIMARY KEY, v int) ON CONFLICT IGNORE WITH VERSION COLUMN (v)":       "42P16",
		"CREATE TABLE e (k int PRIMARY KEY, v int) ON CONFLICT OVERWRITE WITH VERSION COLUMN (z)":    "42703",
		"CREATE TABLE e (k int PRIMARY KEY, v int) ON CONFLICT OVERWRITE WITH VERSION COLUMN (k)":    "42P16",
		"CREATE TABLE e (k int PRIMARY KEY, v int) ON CONFLICT OVERWRITE WITH VERSION COLUMN (v, v)": "42701",
		"ALTER TABLE o DROP COLUMN v": "2BP01",
	} {
		if _, err := c.Exec(t.Context(), q); err == nil || !strings.Contains(err.Error(), "SQLSTATE "+code) {
			t.Errorf("%s: %v, want %s", q, err, code)
		}
	}
	d.exec(c, "ALTER TABLE p RENAME v TO major")
	d.exec(c, "ALTER TABLE p DROP COLUMN x")
	d.close()
	d = open(t, dir)
	defer d.close()
	c = d.connect()
	d.exec(c, "INSERT INTO p VALUES (1, 5, 1, 'no'), (1, 6, 0, 'yes')")
	expect("SELECT * FROM p WHERE k = 1", "1,6,0,yes")
	expect("SHOW CREATE TABLE p", "public.p,CREATE TABLE \"public\".\"p\" (\"k\" integer NOT NULL, \"major\" integer, \"w\" integer, \"y\" text, PRIMARY KEY (\"k\")) ON CONFLICT DO UPDATE IF NOT NULL WITH VERSION COLUMN (\"major\", \"w\")")
}

// TestRisingWaveCommands checks what the commands of RisingWave and Materialize answer
// that PostgreSQL does not have, and that those without a meaning here are passed over.
func TestRisingWaveCommands(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	for _, q := range []string{
		"CREATE TABLE t (id int PRIMARY KEY, at timestamptz AS proctime(), s struct<a int, b struct<c text>>)",
		"CREATE TABLE u (v1 int, v2 int)",
		"CREATE INDEX tx ON t (at)", "COMMENT ON TABLE t IS 'things'", "COMMENT ON COLUMN t.id IS 'key'",
		"CREATE MATERIALIZED VIEW m AS SELECT v1, count(*) AS n FROM u GROUP BY v1 EMIT IMMEDIATELY",
		"CREATE FUNCTION twice(x int) RETURNS int LANGUAGE sql AS 'SELECT 2 * x'",
		"ALTER TABLE t SET PARALLELISM TO adaptive DEFERRED", "ALTER MATERIALIZED VIEW m SET BACKFILL_RATE_LIMIT TO DEFAULT",
		"ALTER MATERIALIZED VIEW m SET RESOURCE_GROUP TO 'x'", "ALTER MATERIALIZED VIEW m RESET RESOURCE_GROUP",
		"ALTER SYSTEM SET barrier_interval_ms = 500", "ALTER DEFAULT PRIVILEGES FOR ROLE a GRANT SELECT ON TABLES TO b",
		"GRANT SELECT ON ALL MATERIALIZED VIEWS IN SCHEMA public TO a", "RECOVER", "USE streamdb", "SET database = streamdb",
		"SET backfill_rate_limit = 3", "CREATE SCHEMA a", "CREATE SCHEMA b", "CREATE TABLE a.x (i int)", "CREATE VIEW b.y AS SELECT * FROM a.x",
		"ALTER SCHEMA a SWAP WITH b", "INSERT INTO t (id) VALUES (1)", "INSERT INTO b.x VALUES (3)",
		"CREATE CLUSTER big SIZE = '50cc', REPLICATION FACTOR 2", "ALTER CLUSTER big SET (SIZE '100cc') WITH (WAIT FOR '1s')",
	} {
		d.exec(c, q)
	}
	for q, want := range map[string]string{
		"DESCRIBE t": "id,integer,false,key\nat,timestamp with time zone,false,\ns,struct<a integer, b struct<c text>>,false,\n" +
			"s.a,integer,false,\ns.b,struct<c text>,false,\ns.b.c,text,false,\n" +
			"primary key,id,,\ndistribution key,id,,\ntx,index(at) include(id, s) distributed by(at),,\ntable description,t,,things",
		"DESCRIBE u":                               "v1,integer,false,\nv2,integer,false,\n_row_id,uuid,true,\nprimary key,_row_id,,\ndistribution key,_row_id,,\ntable description,u,,",
		"DESCRIBE m":                               "v1,integer,false,\nn,bigint,false,\nprimary key,v1,,\ndistribution key,v1,,\ntable description,m,,",
		"SHOW FUNCTIONS":                           "twice,integer,integer,sql,",
		"SHOW CREATE FUNCTION twice":               "public.twice,CREATE OR REPLACE FUNCTION public.twice(x integer)\n RETURNS integer\n LANGUAGE sql\nAS $function$SELECT 2 * x$function$",
		"SHOW TABLES WHERE name > 't'":             "u,",
		"SHOW TABLES WHERE name = 'none'":          "",
		"SHOW SECRETS WHERE name IS NULL":          "",
		"SHOW COLUMNS FROM u WHERE name ~ '2'":     "v2,true,integer,",
		"SELECT at <= now() FROM t":                "t",
		"SELECT * FROM a.y":                        "3",
		"SELECT proctime() = current_timestamp":    "t",
		"SHOW database":                            "streamdb",
		"SELECT count(*) FROM pg_proc WHERE false": "0",
	} {
		if got := d.text(c, q); got != want {
			t.Errorf("%s: %q, want %q", q, got, want)
		}
	}
	if got := d.text(c, "SHOW PROCESSLIST"); !strings.Contains(got, "SHOW PROCESSLIST") {
		t.Errorf("SHOW PROCESSLIST: %q", got)
	}
	for q, code := range map[string]string{
		"SHOW TABLES WHERE nothing = 1": "42703",
		"SHOW CREATE FUNCTION thrice":   "42883",
		"USE other":                     "3D000",
		"ALTER SCHEMA a SWAP WITH c":    "3F000",
		"KILL 1":                        "0A000",
		"CREATE MATERIALIZED VIEW v AS SELECT proctime() FROM u":            "0A000",
		"CREATE TABLE w (i int) ENGINE = iceberg":                           "0A000",
		"ALTER SYSTEM SET work_mem = 3":                                     "0A000",
		"CREATE DATABASE IF NOT EXISTS d WITH OWNER = a":                    "0A000",
		"ALTER TABLE t REFRESH SCHEMA":                                      "0A000",
		"CREATE FUNCTION f(int) RETURNS int LANGUAGE x AS f USING LINK 'x'": "0A000",
	} {
		if _, err := c.Exec(t.Context(), q); err == nil || !strings.Contains(err.Error(), "SQLSTATE "+code) {
			t.Errorf("%s: %v, want %s", q, err, code)
		}
	}
}
