package coord_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
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

// TestRisingWaveCatalog checks the relations of rw_catalog.
func TestRisingWaveCatalog(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	for _, q := range []string{
		"CREATE TABLE t (id int PRIMARY KEY, v numeric(5,2) NOT NULL, w int GENERATED ALWAYS AS (id + 1) STORED)",
		"COMMENT ON TABLE t IS 'things'", "COMMENT ON COLUMN t.v IS 'value'",
		"CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM t GROUP BY v",
		"CREATE VIEW x AS SELECT * FROM m", "CREATE INDEX i ON t (v, (id + 2))", "CREATE INDEX j ON t (w)",
		"CREATE TABLE target (id int PRIMARY KEY)", "CREATE SINK k INTO target AS SELECT id FROM t",
		"CREATE FUNCTION f(int, text) RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE SECRET pw AS 'x'",
		"CREATE SCHEMA other", "CREATE TABLE other.t (a text)", "FLUSH",
	} {
		d.exec(c, q)
	}
	for q, want := range map[string]string{
		"SELECT t.name, s.name, u.is_super FROM rw_tables t JOIN rw_schemas s ON s.id = t.schema_id JOIN rw_users u ON u.id = t.owner ORDER BY 2, 1": "t,other,t\nt,public,t\ntarget,public,t",
		"SELECT name, definition LIKE 'CREATE MATERIALIZED VIEW%', append_only FROM rw_catalog.rw_materialized_views":                                "m,t,f",
		"SELECT name FROM rw_views": "x",
		"SELECT name, relation_type FROM rw_relations WHERE schema_id = (SELECT id FROM rw_schemas WHERE name = 'public') ORDER BY 1":        "i,index\nj,index\nk,sink\nm,materialized view\nt,table\ntarget,table\nx,view",
		"SELECT x.name, t.name, x.key_columns, x.include_columns FROM rw_indexes x JOIN rw_tables t ON t.id = x.primary_table_id ORDER BY 1": "i,t,{2,0},{}\nj,t,{3},{1,2}",
		"SELECT name, connector, sink_type FROM rw_sinks":                   "k,TABLE,UPSERT",
		"SELECT name, type, arg_type_ids, return_type_id FROM rw_functions": "f,scalar,{23,25},23",
		"SELECT name FROM rw_secrets":                                       "pw",
		"SELECT name FROM rw_databases":                                     "streamdb",
		"SELECT c.name, position, is_primary_key, is_generated, is_nullable, data_type, udt_type FROM rw_columns c JOIN rw_tables t ON t.id = relation_id JOIN rw_schemas s ON s.id = schema_id WHERE t.name = 't' AND s.name = 'public' ORDER BY 2": "id,1,t,f,f,integer,int4\nv,2,f,f,f,numeric(5,2),numeric\nw,3,f,t,t,integer,int4",
		"SELECT a.name, b.name FROM rw_depend d JOIN rw_relations a ON a.id = d.objid JOIN rw_relations b ON b.id = d.refobjid ORDER BY 1, 2":                                                                                                        "i,t\nj,t\nk,t\nk,target\nm,t\nx,m",
		"SELECT relname, objsubid, description FROM rw_description JOIN pg_class c ON c.oid = objoid ORDER BY 2 NULLS FIRST":                                                                                                                         "t,,things\nt,2,value",
		"SELECT name, status FROM rw_streaming_jobs ORDER BY 1, 2":                                                              "i,CREATED\nj,CREATED\nk,CREATED\nm,CREATED\nt,CREATED\nt,CREATED\ntarget,CREATED",
		"SELECT count(*) FROM rw_fragments f JOIN rw_actors a USING (fragment_id) JOIN rw_worker_nodes w ON w.id = a.worker_id": "7",
		"SELECT relationname, relationtype FROM rw_relation_info WHERE schemaname = 'public' ORDER BY 1":                        "i,INDEX\nj,INDEX\nk,SINK\nm,MATERIALIZED VIEW\nt,TABLE\ntarget,TABLE",
		"SELECT name, typarray FROM rw_types WHERE id = 23":                                                                     "int4,1007",
		"SELECT count(*) FROM rw_ddl_progress":                                                                                  "0",
		"SELECT count(*) FROM rw_tables t JOIN pg_class c ON c.oid = t.id AND c.relname = t.name":                               "3",
		"SELECT name FROM rw_system_tables WHERE name IN ('rw_tables', 'pg_class') ORDER BY 1":                                  "pg_class\nrw_tables",
	} {
		if got := d.text(c, q); got != want {
			t.Errorf("%s:\n got %q,\nwant %q", q, got, want)
		}
	}
	for _, name := range strings.Split(d.text(c, "SELECT relname FROM pg_class WHERE relnamespace = 'rw_catalog'::regnamespace"), "\n") {
		d.text(c, "SELECT * FROM rw_catalog."+name)
	}
}

// TestRisingWaveConnectors checks the sources of datagen and the sinks of blackhole.
func TestRisingWaveConnectors(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	for _, q := range []string{
		`CREATE SOURCE g (id int, s struct<a int, b varchar>, xs int[], at timestamp) WITH (connector = 'datagen', fields.id.kind = 'sequence', fields.id.start = '1', fields.id.end = '50',
		   fields.s.a.kind = 'sequence', fields.s.a.start = '10', fields.s.a.end = '1000', fields.xs.length = '2', datagen.rows.per.second = '100000') FORMAT PLAIN ENCODE JSON`,
		`CREATE TABLE h (k int PRIMARY KEY, v float) WITH (connector = 'datagen', fields.k.min = '1', fields.k.max = '3', fields.v.kind = 'sequence', fields.v.start = '1', fields.v.end = '1000', datagen.rows.per.second = '100000')`,
		"CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, sum(id) AS total, sum((s).a) AS a, min(length((s).b)) AS b, min(cardinality(xs)) AS l FROM g",
		"CREATE TABLE t (i int, j int)",
		"CREATE SINK discard FROM t WITH (connector = 'blackhole')",
		"CREATE SINK discard2 AS SELECT i, count(*) AS n FROM t GROUP BY i WITH (connector = 'blackhole', type = 'append-only', force_append_only = 'true')",
		"CREATE SINK IF NOT EXISTS discard FROM t WITH (connector = 'blackhole')",
		"INSERT INTO t VALUES (1, 2)", "FLUSH", "ALTER TABLE t RENAME TO u", "ALTER SINK discard RENAME TO nothing",
	} {
		d.exec(c, q)
	}
	eventually := func(q, want string) {
		t.Helper()
		got := ""
		for range 2000 {
			if got = d.text(c, q); got == want {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Errorf("%s: %q, want %q", q, got, want)
	}
	eventually("SELECT * FROM m", "50,1275,1725,10,2")
	eventually("SELECT count(*), max(v) FROM h", "3,1000")
	expect := func(q, want string) {
		t.Helper()
		if got := d.text(c, q); got != want {
			t.Errorf("%s: %q, want %q", q, got, want)
		}
	}
	check := func() {
		t.Helper()
		expect("SHOW SINKS", "discard2,\nnothing,")
		expect("SELECT name, connector FROM rw_sinks ORDER BY 1", "discard2,BLACKHOLE\nnothing,BLACKHOLE")
		expect("SHOW CREATE SINK nothing", "public.nothing,CREATE SINK \"public\".\"nothing\" AS SELECT t.i, t.j FROM public.u AS t WITH (connector = 'blackhole')")
		expect("SELECT * FROM m", "50,1275,1725,10,2")
	}
	check()
	for q, code := range map[string]string{
		"DROP TABLE u":                           "2BP01",
		"ALTER TABLE u DROP COLUMN i":            "2BP01",
		"ALTER TABLE u ALTER COLUMN i TYPE text": "0A000",
		"CREATE SINK x FROM nothing_here WITH (connector = 'blackhole')":            "42P01",
		"CREATE SINK nothing FROM u WITH (connector = 'blackhole')":                 "42710",
		"CREATE SOURCE e (i int, j int AS i + 1) WITH (connector = 'datagen')":      "0A000",
		"CREATE SOURCE e (i date) WITH (connector = 'datagen')":                     "22023",
		"CREATE SOURCE e WITH (connector = 'datagen')":                              "42601",
		"CREATE SOURCE e (i int) WITH (connector = 'datagen', fields.i.kind = 'x')": "22023",
	} {
		if _, err := c.Exec(t.Context(), q); err == nil || !strings.Contains(err.Error(), "SQLSTATE "+code) {
			t.Errorf("%s: %v, want %s", q, err, code)
		}
	}
	d.close()
	d = open(t, dir)
	defer d.close()
	c = d.connect()
	check()
	d.exec(c, "DROP SINK nothing")
	d.exec(c, "DROP TABLE u CASCADE")
	expect("SHOW SINKS", "")
}

// TestSubscriptionCursors checks RisingWave's subscriptions: what cursors give of the
// changes after they were declared, outside of transactions.
func TestSubscriptionCursors(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	for _, q := range []string{
		"CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
		"CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM t GROUP BY v", "CREATE TABLE bag (v int)",
		"CREATE SUBSCRIPTION s FROM t WITH (retention = '1D')", "CREATE SUBSCRIPTION IF NOT EXISTS s FROM t WITH (retention = '1D')",
		"CREATE SUBSCRIPTION sm FROM m", "CREATE SUBSCRIPTION sb FROM bag",
		"DECLARE c SUBSCRIPTION CURSOR FOR s", "DECLARE f SUBSCRIPTION CURSOR FOR s FULL", "DECLARE now SUBSCRIPTION CURSOR FOR s SINCE now()",
		"DECLARE b SUBSCRIPTION CURSOR FOR s SINCE begin()", "DECLARE m SUBSCRIPTION CURSOR FOR sm", "DECLARE bag SUBSCRIPTION CURSOR FOR sb",
	} {
		d.exec(c, q)
	}
	// fetch leaves the timestamp out, which is NULL for the rows of the snapshot.
	fetch := func(q string) string {
		t.Helper()
		var out []string
		for _, r := range strings.Split(d.text(c, q), "\n") {
			if i := strings.LastIndexByte(r, ','); i >= 0 {
				if r[i+1:] != "" {
					r = r[:i]
				}
				out = append(out, r)
			}
		}
		return strings.Join(out, "\n")
	}
	expect := func(q, want string) {
		t.Helper()
		if got := fetch(q); got != want {
			t.Errorf("%s: %q, want %q", q, got, want)
		}
	}
	expect("FETCH NEXT FROM c", "")
	expect("FETCH 10 FROM f", "1,a,Insert,\n2,b,Insert,")
	d.exec(c, "UPDATE t SET v = 'c' WHERE k = 1")
	d.exec(c, "INSERT INTO t VALUES (3, 'b')")
	d.exec(c, "DELETE FROM t WHERE k = 2")
	d.exec(c, "INSERT INTO bag VALUES (1), (1)")
	d.exec(c, "DELETE FROM bag")
	want := "1,a,UpdateDelete\n1,c,UpdateInsert\n3,b,Insert\n2,b,Delete"
	expect("FETCH NEXT FROM c WITH (timeout = '5s')", "1,a,UpdateDelete")
	expect("FETCH 100 FROM c", "1,c,UpdateInsert\n3,b,Insert\n2,b,Delete")
	expect("FETCH NEXT FROM c", "")
	for _, name := range []string{"f", "now", "b"} {
		expect("FETCH 100 FROM "+name, want)
	}
	if got := fetch("FETCH 100 FROM m"); !strings.Contains(got, "a,1,Delete") || !strings.Contains(got, "c,1,Insert") || !strings.Contains(got, "b,1,UpdateDelete\nb,2,UpdateInsert") {
		t.Errorf("changes of a view: %q", got)
	}
	expect("FETCH 100 FROM bag", "1,Insert\n1,Insert\n1,Delete\n1,Delete")
	d.exec(c, "BEGIN")
	d.exec(c, "INSERT INTO t VALUES (9, 'z')")
	expect("FETCH NEXT FROM c", "")
	d.exec(c, "COMMIT")
	expect("FETCH NEXT FROM c WITH (timeout = '5s')", "9,z,Insert")
	if got := d.text(c, "SHOW SUBSCRIPTION CURSORS"); strings.Count(got, "\n") != 5 {
		t.Errorf("cursors: %q", got)
	}
	d.exec(c, "CLOSE c")
	d.exec(c, "ALTER TABLE t RENAME TO u")
	d.exec(c, "ALTER SUBSCRIPTION s RENAME TO s2")
	d.exec(c, "ALTER SUBSCRIPTION s2 SET RETENTION TO '2D'")
	d.refused(c, "FETCH NEXT FROM c", "34000", "does not exist")
	d.refused(c, "DROP TABLE u", "2BP01", "depend")
	d.refused(c, "DECLARE f SUBSCRIPTION CURSOR FOR s2", "42P03", "already exists")
	d.refused(c, "DECLARE x SUBSCRIPTION CURSOR FOR s", "42704", "does not exist")
	d.refused(c, "CREATE SUBSCRIPTION x FROM u WITH (retention = 'x')", "22023", "retention")
	d.refused(c, "CREATE SUBSCRIPTION x FROM nothing", "42P01", "does not exist")
	d.close()
	d = open(t, dir)
	defer d.close()
	c = d.connect()
	if got := d.text(c, "SELECT name FROM rw_subscriptions ORDER BY 1"); got != "s2\nsb\nsm" {
		t.Errorf("subscriptions: %q", got)
	}
	if got := d.text(c, "SHOW CREATE SUBSCRIPTION s2"); got != "public.s2,CREATE SUBSCRIPTION \"public\".\"s2\" FROM \"public\".\"u\" WITH (retention = '1D')" {
		t.Errorf("definition: %q", got)
	}
	d.exec(c, "DROP SUBSCRIPTION sb, sm")
	d.exec(c, "DROP TABLE u CASCADE")
	if got := d.text(c, "SHOW SUBSCRIPTIONS"); got != "" {
		t.Errorf("subscriptions: %q", got)
	}
}

// TestSubscribeEnvelopes checks Materialize's forms of the output of SUBSCRIBE.
func TestSubscribeEnvelopes(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	d.exec(c, "CREATE TABLE t (v text, k int, w int)")
	d.exec(c, "INSERT INTO t VALUES ('a', 1, 10), ('b', 2, 20)")
	changes := []string{"UPDATE t SET v = 'c' WHERE k = 1", "DELETE FROM t WHERE k = 2", "INSERT INTO t VALUES ('x', 3, 1), ('y', 3, 2)"}
	run := func(form string, counts ...int) string {
		t.Helper()
		d.exec(c, "TRUNCATE t")
		d.exec(c, "INSERT INTO t VALUES ('a', 1, 10), ('b', 2, 20)")
		c2 := d.connect()
		d.exec(c2, "BEGIN")
		d.exec(c2, "DECLARE s CURSOR FOR SUBSCRIBE t "+form)
		var out []string
		for i, n := range counts {
			if i > 0 {
				d.exec(c, changes[i-1])
			}
			for got := 0; got < n; {
				for _, r := range strings.Split(d.text(c2, fmt.Sprintf("FETCH %d s WITH (timeout = '30s')", n-got)), "\n") {
					_, r, _ = strings.Cut(r, ",") // the timestamp
					out = append(out, r)
					got++
				}
			}
			if i == 0 && !strings.Contains(form, "ORDER") {
				slices.Sort(out)
			}
		}
		d.exec(c2, "COMMIT")
		return strings.Join(out, "\n")
	}
	if got, want := run("ENVELOPE UPSERT (KEY (k))", 2, 1, 1, 1), "upsert,1,a,10\nupsert,2,b,20\nupsert,1,c,10\ndelete,2,,\nkey_violation,3,,"; got != want {
		t.Errorf("upsert: %q, want %q", got, want)
	}
	if got, want := run("ENVELOPE DEBEZIUM (KEY (k))", 2, 1, 1, 1), "insert,1,,,a,10\ninsert,2,,,b,20\nupsert,1,a,10,c,10\ndelete,2,b,20,,\nkey_violation,3,,,,"; got != want {
		t.Errorf("debezium: %q, want %q", got, want)
	}
	if got, want := run("WITHIN TIMESTAMP ORDER BY w DESC, mz_diff", 2, 2, 1, 2), "1,b,2,20\n1,a,1,10\n-1,a,1,10\n1,c,1,10\n-1,b,2,20\n1,y,3,2\n1,x,3,1"; got != want {
		t.Errorf("ordered: %q, want %q", got, want)
	}
	for q, code := range map[string]string{
		"SUBSCRIBE t ENVELOPE UPSERT (KEY (z))":                             "42703",
		"SUBSCRIBE t ENVELOPE UPSERT (KEY (k, k))":                          "42701",
		"SUBSCRIBE t WITHIN TIMESTAMP ORDER BY z":                           "42703",
		"SUBSCRIBE t WITHIN TIMESTAMP ORDER BY w + 1":                       "0A000",
		"SUBSCRIBE t ENVELOPE UPSERT (KEY (k)) WITHIN TIMESTAMP ORDER BY w": "42601",
	} {
		if _, err := c.Exec(t.Context(), q); err == nil || !strings.Contains(err.Error(), "SQLSTATE "+code) {
			t.Errorf("%s: %v, want %s", q, err, code)
		}
	}
}

// TestMaterializeCommands checks forms of Materialize: types of lists and maps, its hints,
// its default cluster and its auction house.
func TestMaterializeCommands(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	for _, q := range []string{
		"CREATE TYPE ints AS LIST (ELEMENT TYPE = int4)", "CREATE TYPE prices AS MAP (KEY TYPE = text, VALUE TYPE = numeric)",
		"CREATE TABLE t (a int, l ints, p prices)", "INSERT INTO t VALUES (1, LIST[1, 2], MAP['x' => 2.5]), (2, '{3}', NULL)",
		"SET cluster = quickstart",
		"CREATE MATERIALIZED VIEW m IN CLUSTER quickstart WITH (ASSERT NOT NULL a, RETAIN HISTORY FOR '1 hour') AS SELECT a, max(l[1]) AS l FROM t GROUP BY a OPTIONS (AGGREGATE INPUT GROUP SIZE = 10)",
		"CREATE INDEX i IN CLUSTER quickstart ON m (l)", "CREATE SCHEMA s", "CREATE TABLE s.u (x int)", "CREATE INDEX j ON s.u (x)",
		"ALTER INDEX i SET (RETAIN HISTORY FOR '2 hours')", "ALTER MATERIALIZED VIEW m SET CLUSTER quickstart",
		"CREATE SOURCE house FROM LOAD GENERATOR AUCTION (TICK INTERVAL '1ms', AS OF 100) FOR ALL TABLES",
		"CREATE MATERIALIZED VIEW winning AS SELECT DISTINCT ON (a.id) a.id, b.amount, u.name FROM auctions a JOIN bids b ON b.auction_id = a.id JOIN users u ON u.id = b.buyer ORDER BY a.id, b.amount DESC, b.id",
	} {
		d.exec(c, q)
	}
	for q, want := range map[string]string{
		"SELECT l[2], (p -> 'x'), cardinality(l) FROM t WHERE a = 1": "2,2.5,2",
		"SELECT * FROM m ORDER BY a":                                 "1,1\n2,3",
		"SHOW INDEXES FROM s":                                        "j,u,default,{x},",
		"SHOW INDEXES IN CLUSTER quickstart":                         "i,m,default,{l},\nj,u,default,{x},",
		"SHOW INDEXES ON m WHERE name = 'i'":                         "i,m,default,{l},",
		"SHOW query_mode":                                            "auto",
		"SELECT mz_is_superuser(), mz_version() = version(), mz_uptime() BETWEEN interval '-1 s' AND interval '1 hour', rw_recovery_status()": "t,t,t,RUNNING",
		"SHOW real_time_recency":     "off",
		"SELECT count(*) FROM users": "200",
	} {
		if got := d.text(c, q); got != want {
			t.Errorf("%s: %q, want %q", q, got, want)
		}
	}
	for q, code := range map[string]string{
		"INSERT INTO t VALUES (3, 'x', NULL)":                    "22P02",
		"CREATE CLUSTER r REPLICAS (a (SIZE '25cc'))":            "0A000",
		"CREATE TABLE x FROM SOURCE house (REFERENCE bids)":      "0A000",
		"ALTER MATERIALIZED VIEW m SET CLUSTER other":            "0A000",
		"CREATE SUBSOURCE x (a int)":                             "0A000",
		"CREATE MATERIALIZED VIEW x IN CLUSTER z AS SELECT 1":    "42704",
		"SHOW INDEXES FROM nothing":                              "42P01",
		"CREATE SOURCE x FROM LOAD GENERATOR KEY VALUE (KEYS 3)": "22023",
	} {
		if _, err := c.Exec(t.Context(), q); err == nil || !strings.Contains(err.Error(), "SQLSTATE "+code) {
			t.Errorf("%s: %v, want %s", q, err, code)
		}
	}
}

// TestMaterializeCatalog checks the relations of mz_catalog and mz_internal.
func TestMaterializeCatalog(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	for _, q := range []string{
		"CREATE TABLE t (id int PRIMARY KEY, v numeric(5,2) DEFAULT 1)", "COMMENT ON TABLE t IS 'things'", "COMMENT ON COLUMN t.v IS 'value'",
		"CREATE CLUSTER big", "CREATE MATERIALIZED VIEW m IN CLUSTER big AS SELECT v, count(*) AS n FROM t GROUP BY v",
		"CREATE VIEW x AS SELECT * FROM m", "CREATE INDEX i ON t (v, (id + 2))", "CREATE TYPE mood AS ENUM ('a')",
		"CREATE SOURCE c FROM LOAD GENERATOR COUNTER (EVENTS 1)", "CREATE SINK k FROM t WITH (connector = 'blackhole')", "CREATE SECRET pw AS 'x'", "FLUSH",
	} {
		d.exec(c, q)
	}
	for q, want := range map[string]string{
		"SELECT o.name, o.type, s.name, c.name FROM mz_objects o JOIN mz_schemas s ON s.id = o.schema_id LEFT JOIN mz_clusters c ON c.id = o.cluster_id WHERE o.id LIKE 'u%' ORDER BY 1":                 "c,source,public,default\nc_errors,source,public,default\ni,index,public,default\nk,sink,public,default\nm,materialized-view,public,big\nmood,type,public,\npw,secret,public,\nt,table,public,\nx,view,public,",
		"SELECT name, create_sql LIKE 'CREATE TABLE%' FROM mz_catalog.mz_tables WHERE id LIKE 'u%'":                                                                                                      "t,t",
		"SELECT name, position, nullable, type, \"default\" FROM mz_columns WHERE id = (SELECT id FROM mz_tables WHERE name = 't') ORDER BY 2":                                                           "id,1,f,integer,\nv,2,t,numeric,1",
		"SELECT m.name, definition LIKE 'SELECT%', c.name FROM mz_materialized_views m JOIN mz_clusters c ON c.id = m.cluster_id":                                                                        "m,t,big",
		"SELECT i.name, r.name, k.index_position, k.on_position, k.on_expression FROM mz_indexes i JOIN mz_relations r ON r.id = i.on_id JOIN mz_index_columns k ON k.index_id = i.id ORDER BY 3":        "i,t,1,2,\ni,t,2,,(id + 2)",
		"SELECT a.name, b.name FROM mz_internal.mz_object_dependencies d JOIN mz_objects a ON a.id = d.object_id JOIN mz_objects b ON b.id = d.referenced_object_id WHERE a.type <> 'source' ORDER BY 1": "i,t\nk,t\nm,t\nx,m",
		"SELECT object_type, object_sub_id, comment FROM mz_internal.mz_comments ORDER BY 2 NULLS FIRST":                                                                                                 "table,,things\ntable,2,value",
		"SELECT o.name, hydrated FROM mz_internal.mz_hydration_statuses h JOIN mz_objects o ON o.id = h.object_id ORDER BY 1":                                                                            "i,t\nm,t\nt,t",
		"SELECT name, type FROM mz_sources ORDER BY 1":                                                             "c,load-generator",
		"SELECT name, type FROM mz_internal.mz_source_statuses":                                                    "c,load-generator",
		"SELECT name, type FROM mz_sinks":                                                                          "k,blackhole",
		"SELECT r.name, c.name FROM mz_cluster_replicas r JOIN mz_clusters c ON c.id = r.cluster_id ORDER BY 2":    "r1,big\nr1,default",
		"SELECT s.name, d.name FROM mz_schemas s JOIN mz_databases d ON d.id = s.database_id WHERE s.id LIKE 'u%'": "public,streamdb",
		"SELECT object_type, schema_name FROM mz_internal.mz_object_fully_qualified_names WHERE name = 'x'":        "view,public",
		"SELECT count(*) FROM mz_internal.mz_sessions":                                                             "1",
		"SELECT name, category FROM mz_types":                                                                      "mood,enum",
		"SELECT count(*) FROM mz_tables t JOIN pg_class c ON c.oid = t.oid WHERE t.name = 't'":                     "1",
	} {
		if got := d.text(c, q); got != want {
			t.Errorf("%s:\n got %q,\nwant %q", q, got, want)
		}
	}
	for _, name := range strings.Split(d.text(c, "SELECT relnamespace::regnamespace || '.' || relname FROM pg_class WHERE relnamespace::regnamespace::text LIKE 'mz_%'"), "\n") {
		d.text(c, "SELECT * FROM "+name)
	}
}
