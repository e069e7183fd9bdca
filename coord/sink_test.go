package coord_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jackc/pgx/v5"

	"github.com/streamdb/streamdb/coord"
)

// refused runs a statement that must fail, and compares its SQLSTATE and message.
func (d *database) refused(c *pgx.Conn, sql, code, message string) {
	d.t.Helper()
	_, err := c.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol)
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Message, message) {
		d.t.Errorf("%s: %v, want %s %q", sql, err, code, message)
	}
}

// sameRows checks that two queries give the same rows.
func (d *database) sameRows(c *pgx.Conn, what, a, b string) {
	d.t.Helper()
	sql := fmt.Sprintf("(SELECT 'more', x.* FROM (%s) x EXCEPT ALL SELECT 'more', x.* FROM (%s) x) UNION ALL (SELECT 'less', x.* FROM (%s) x EXCEPT ALL SELECT 'less', x.* FROM (%s) x) LIMIT 5", a, b, b, a)
	if got := d.text(c, sql); got != "" {
		d.t.Errorf("%s: differs:\n%s", what, got)
	}
}

// TestSinksFollowTheirQueries changes a table at random, from several sessions and
// across restarts, and compares what sinks have made of it with their queries.
func TestSinksFollowTheirQueries(t *testing.T) {
	const seed = 7
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	d.exec(c, `CREATE TABLE src (k int PRIMARY KEY, g int, v int);
		CREATE TABLE other (g int PRIMARY KEY, name text);
		INSERT INTO src SELECT i, i % 7, i FROM generate_series(1, 120) i;
		INSERT INTO other SELECT i, 'n' || i FROM generate_series(0, 4) i`)
	sinks := []struct{ table, cols, query string }{
		{"keyed (k int PRIMARY KEY, v int, d text DEFAULT 'x')", "(v, k)", "SELECT v, k FROM src WHERE v % 3 <> 0"},
		{"plain (g int, v numeric)", "", "SELECT g, v::numeric / 2 FROM src"},
		{"bits (g int, v int)", "", "SELECT g, v % 4 FROM src"},
		{"wide (id serial, g int, at timestamptz DEFAULT clock_timestamp())", "(g)", "SELECT g FROM src WHERE v % 2 = 0"},
		{"sums (g numeric PRIMARY KEY, s bigint, n bigint CHECK (n > 0))", "", "SELECT g::numeric(9,2), sum(v), count(*) FROM src GROUP BY g"},
		{"joined (k int, name text, PRIMARY KEY (name, k))", "", "SELECT k, name FROM src JOIN other USING (g)"},
		// Several rows of a key: the table has one of them.
		{"folded (g int PRIMARY KEY, v int)", "", "SELECT g, v % 5 FROM src"},
	}
	for i, s := range sinks {
		name, _, _ := strings.Cut(s.table, " ")
		d.exec(c, "CREATE TABLE "+s.table)
		if i%2 == 0 {
			d.exec(c, fmt.Sprintf("CREATE SINK to_%s INTO %s%s AS %s", name, name, s.cols, s.query))
		} else {
			d.exec(c, fmt.Sprintf("CREATE MATERIALIZED VIEW of_%s AS %s", name, s.query))
			d.exec(c, fmt.Sprintf("CREATE SINK to_%s INTO %s%s FROM of_%s", name, name, s.cols, name))
		}
	}
	// The rows of others stay.
	d.exec(c, "INSERT INTO plain VALUES (99, 99); INSERT INTO keyed VALUES (-1, -1)")
	check := func(when string) {
		t.Helper()
		d.exec(c, "FLUSH")
		if got := d.text(c, "SELECT name, state, error, pending FROM streamdb_internal.sinks WHERE state <> 'running' OR pending <> 0"); got != "" {
			t.Fatalf("%s: %s", when, got)
		}
		for _, s := range sinks {
			name, _, _ := strings.Cut(s.table, " ")
			cols, query := "*", s.query
			switch name {
			case "keyed":
				cols, query = "v, k", s.query+" UNION ALL SELECT -1, -1"
			case "plain":
				query += " UNION ALL SELECT 99, 99"
			case "wide":
				cols = "g"
			case "folded":
				d.sameRows(c, when+": "+name, "SELECT g FROM folded", "SELECT DISTINCT g FROM src")
				if got := d.text(c, "SELECT * FROM folded EXCEPT "+query); got != "" {
					t.Errorf("%s: rows that the query does not hold: %s", when, got)
				}
				continue
			}
			d.sameRows(c, when+": "+name, "SELECT "+cols+" FROM "+name, query)
		}
	}
	check("at first")
	for round := range 2 {
		var wg sync.WaitGroup
		for w := range 3 {
			rnd := rand.New(rand.NewPCG(seed, uint64(10*round+w)))
			wc := d.connect()
			wg.Go(func() {
				defer wc.Close(context.Background())
				for range 12 {
					k := 40*w + rnd.IntN(40) + 1
					var sql string
					switch rnd.IntN(5) {
					case 0:
						sql = fmt.Sprintf("DELETE FROM src WHERE k BETWEEN %d AND %d", k, k+rnd.IntN(4))
					case 1:
						sql = fmt.Sprintf("INSERT INTO src VALUES (%d, %d, %d) ON CONFLICT (k) DO UPDATE SET g = excluded.g", k, rnd.IntN(7), rnd.IntN(50))
					case 2:
						sql = fmt.Sprintf("UPDATE src SET g = (g + 1) %% 7 WHERE k BETWEEN %d AND %d", k, k+rnd.IntN(10))
					case 3:
						sql = fmt.Sprintf("BEGIN; DELETE FROM src WHERE k = %d; INSERT INTO src VALUES (%d, 3, %d); COMMIT", k, k, rnd.IntN(9))
					default:
						sql = fmt.Sprintf("UPDATE src SET v = v + %d WHERE g = %d", rnd.IntN(3), rnd.IntN(7))
					}
					if _, err := wc.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
						t.Errorf("seed %d: %s: %v", seed, sql, err)
					}
				}
			})
		}
		d.exec(c, fmt.Sprintf("UPDATE other SET name = name || '%d' WHERE g < 3", round))
		wg.Wait()
		check(fmt.Sprintf("seed %d, round %d", seed, round))
		d.close()
		d = open(t, dir)
		c = d.connect()
		check(fmt.Sprintf("seed %d, opened again after round %d", seed, round))
	}
	d.exec(c, "DELETE FROM src")
	check("empty")
	d.close()
}

// TestSinkTransactions moves money between accounts whose copy a sink keeps. No read
// of the copy may see money made or lost, nor a restart a delivery twice.
func TestSinkTransactions(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	d.exec(c, `SET rw_implicit_flush = true; CREATE TABLE account (id int PRIMARY KEY, balance bigint);
		INSERT INTO account SELECT i, 100 FROM generate_series(1, 50) i;
		CREATE TABLE copy (id int, balance bigint)`)
	d.exec(c, "CREATE SINK s INTO copy FROM account")
	if got := d.text(c, "SELECT sum(balance), count(*) FROM copy"); got != "5000,50" {
		t.Fatalf("a CREATE SINK that flushes: %s", got)
	}
	var wg sync.WaitGroup
	for w := range 2 {
		wc := d.connect()
		wg.Go(func() {
			defer wc.Close(context.Background())
			rnd := rand.New(rand.NewPCG(5, uint64(w)))
			for range 40 {
				x := rnd.IntN(20)
				sql := fmt.Sprintf("BEGIN; UPDATE account SET balance = balance - %d WHERE id = %d; UPDATE account SET balance = balance + %d WHERE id = %d; COMMIT",
					x, rnd.IntN(50)+1, x, rnd.IntN(50)+1)
				if _, err := wc.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil && !strings.Contains(err.Error(), "40P01") {
					t.Error(err)
				}
			}
		})
	}
	reads := d.connect()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer reads.Close(context.Background())
		for range 50 {
			if got := d.text(reads, "SELECT sum(balance), count(*) FROM copy"); got != "5000,50" {
				t.Errorf("a read sees %s", got)
			}
		}
	}()
	wg.Wait()
	<-done
	d.exec(c, "FLUSH")
	d.sameRows(c, "copy", "SELECT * FROM copy", "SELECT * FROM account")
	d.close()
	d = open(t, dir)
	c = d.connect()
	d.exec(c, "FLUSH")
	d.sameRows(c, "opened again", "SELECT * FROM copy", "SELECT * FROM account")
	if got := d.text(c, "SELECT deliveries FROM streamdb_internal.sinks"); got != "0" {
		t.Errorf("%s deliveries after a restart without changes", got)
	}
	if got := d.text(c, "SELECT updates FROM streamdb_internal.freshness WHERE kind = 'sink'"); got != "0\n0" {
		t.Errorf("what is pending was computed anew: %s", got)
	}
	// A sink waits for who has changed its table, and FLUSH there does not wait for it.
	d.exec(c, "CREATE TABLE k (id int PRIMARY KEY, balance bigint); CREATE SINK sk INTO k FROM account")
	d.exec(c, "FLUSH")
	d.exec(c, "BEGIN; UPDATE k SET balance = 0 WHERE id = 1")
	c2 := d.connect()
	d.exec(c2, "UPDATE account SET balance = 7 WHERE id <= 2")
	d.exec(c, "FLUSH")
	d.exec(c, "COMMIT")
	d.exec(c2, "FLUSH")
	d.sameRows(c, "after the lock", "SELECT * FROM k", "SELECT * FROM account")
	// Neither does a transaction on both deadlock.
	d.exec(c, "BEGIN; UPDATE account SET balance = 8 WHERE id = 1; UPDATE k SET balance = 9 WHERE id = 50; COMMIT")
	d.exec(c, "FLUSH")
	if got := d.text(c, "SELECT balance FROM k WHERE id IN (1, 50) ORDER BY id"); !strings.HasPrefix(got, "8\n9") {
		t.Errorf("rows of others: %s", got)
	}
	d.close()
}

// TestSinkErrors checks that rows which cannot be delivered stop their sink, that
// the error is told, and that it goes on when they are mended.
func TestSinkErrors(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	d.exec(c, `CREATE TABLE src (k int PRIMARY KEY, v int, r int);
		CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1);
		CREATE TABLE t (k int PRIMARY KEY, v int NOT NULL UNIQUE CHECK (v < 100), r int REFERENCES parent);
		CREATE TABLE free (q int);
		CREATE SINK s INTO t AS SELECT k, v, r FROM src;
		CREATE SINK f INTO free AS SELECT 100 / k FROM src;
		INSERT INTO src VALUES (1, 10, 1)`)
	d.exec(c, "FLUSH")
	const rows, state = "SELECT k, v, r FROM t ORDER BY k", "SELECT state, sqlstate FROM streamdb_internal.sinks WHERE name = 's'"
	for _, x := range []struct{ do, code, mend, want string }{
		{"INSERT INTO src VALUES (2, 200, 1)", "23514", "UPDATE src SET v = 20 WHERE k = 2", "1,10,1\n2,20,1"},
		{"UPDATE src SET v = NULL WHERE k = 2", "23502", "ALTER TABLE t ALTER v DROP NOT NULL", "1,10,1\n2,,1"},
		{"INSERT INTO src VALUES (3, 10, 1)", "23505", "DELETE FROM src WHERE k = 1", "2,,1\n3,10,1"},
		{"INSERT INTO src VALUES (4, 40, 2)", "23503", "INSERT INTO parent VALUES (2)", "2,,1\n3,10,1\n4,40,2"},
		{"UPDATE src SET v = 400 WHERE k = 4", "23514", "ALTER TABLE t DROP CONSTRAINT t_v_check", "2,,1\n3,10,1\n4,400,2"},
		{"ALTER TABLE t ALTER v TYPE date USING NULL; UPDATE src SET v = 4 WHERE k = 4", "42804", "ALTER TABLE t ALTER v TYPE int USING NULL", "2,,1\n3,,1\n4,4,2"},
	} {
		before := d.text(c, "SELECT count(*) FROM free")
		d.exec(c, x.do)
		d.exec(c, "FLUSH")
		if got := d.text(c, state); got != "stopped,"+x.code {
			t.Errorf("after %s: %s, want %s", x.do, got, x.code)
		}
		if got := d.text(c, "SELECT state FROM streamdb_internal.sinks WHERE name = 'f'"); got != "running" {
			t.Errorf("after %s the other sink is %s (it had %s rows)", x.do, got, before)
		}
		if x.code == "23502" { // it stops again at the next start
			d.close()
			d = open(t, dir)
			c = d.connect()
			d.exec(c, "FLUSH")
			if got := d.text(c, state); got != "stopped,"+x.code {
				t.Errorf("opened again: %s", got)
			}
		}
		d.exec(c, x.mend)
		d.exec(c, "FLUSH")
		if got := d.text(c, state); got != "running," {
			t.Errorf("after %s: %s", x.mend, got)
		}
		if got := d.text(c, rows); got != x.want {
			t.Errorf("after %s: %q, want %q", x.mend, got, x.want)
		}
	}
	// A key that the sink does not give values for.
	d.exec(c, "CREATE TABLE late (id serial, v int); CREATE SINK l INTO late (v) AS SELECT k FROM src")
	d.exec(c, "FLUSH")
	d.exec(c, "ALTER TABLE late ADD PRIMARY KEY (id)")
	d.exec(c, "DELETE FROM src WHERE k = 3")
	d.exec(c, "FLUSH")
	if got := d.text(c, "SELECT state, sqlstate FROM streamdb_internal.sinks WHERE name = 'l'"); got != "stopped,22023" {
		t.Errorf("a key without values: %s", got)
	}
	d.exec(c, "ALTER TABLE late DROP CONSTRAINT late_pkey")
	d.exec(c, "FLUSH")
	d.sameRows(c, "without the key", "SELECT v FROM late", "SELECT k FROM src")
	// A row that the query fails for stops it, too.
	d.exec(c, "INSERT INTO src VALUES (0, 1, 1)")
	d.exec(c, "FLUSH")
	if got := d.text(c, "SELECT state, sqlstate FROM streamdb_internal.sinks WHERE name = 'f'"); got != "stopped,22012" {
		t.Errorf("a query that fails: %s", got)
	}
	d.exec(c, "DELETE FROM src WHERE k = 0")
	d.exec(c, "FLUSH")
	d.sameRows(c, "after an error of the query", "SELECT * FROM free", "SELECT 100 / k FROM src")
	d.close()
}

// TestSinkModes checks what the options and the target's form make of changes.
func TestSinkModes(t *testing.T) {
	d := open(t, t.TempDir())
	c := d.connect()
	d.exec(c, `SET rw_implicit_flush = true;
		CREATE TABLE src (k int PRIMARY KEY, v int);
		CREATE TABLE ignoring (k int PRIMARY KEY, v int); CREATE SINK s1 INTO ignoring FROM src WITH (ignore_delete = 'true');
		CREATE TABLE history (n serial, k int, v int) APPEND ONLY;
		CREATE SINK s2 INTO history (k, v) FROM src WITH (type = 'append-only', force_append_only = 'true');
		CREATE TABLE first (k int PRIMARY KEY, v int) ON CONFLICT IGNORE; CREATE SINK s3 INTO first FROM src;
		CREATE TABLE pair (k int PRIMARY KEY, a int, b int) ON CONFLICT DO UPDATE IF NOT NULL;
		CREATE SINK s4 INTO pair (k, a) FROM src; CREATE SINK s5 INTO pair (k, b) AS SELECT k, -v FROM src WHERE k > 1;
		CREATE TABLE named (id int GENERATED ALWAYS AS IDENTITY, v int, twice int GENERATED ALWAYS AS (2 * v) STORED);
		CREATE SINK s6 INTO named (v) AS SELECT v FROM src`)
	for _, x := range []struct{ sql, ignoring, history, first, both, named string }{
		{"INSERT INTO src VALUES (1, 10), (2, 20)", "1,10\n2,20", "1,10\n2,20", "1,10\n2,20", "1,10,\n2,20,-20", "10,20\n20,40"},
		{"UPDATE src SET v = v + 1 WHERE k = 1", "1,11\n2,20", "1,10\n1,11\n2,20", "1,11\n2,20", "1,11,\n2,20,-20", "11,22\n20,40"},
		{"DELETE FROM src WHERE k = 2", "1,11\n2,20", "1,10\n1,11\n2,20", "1,11", "1,11,", "11,22"},
		{"UPDATE pair SET b = 5; UPDATE src SET v = NULL", "1,\n2,20", "1,10\n1,11\n1,\n2,20", "1,", "1,11,5", ","},
	} {
		d.exec(c, x.sql)
		for _, y := range [][2]string{{"SELECT * FROM ignoring ORDER BY k", x.ignoring}, {"SELECT k, v FROM history ORDER BY k, v", x.history},
			{"SELECT * FROM first ORDER BY k", x.first}, {"SELECT * FROM pair ORDER BY k", x.both}, {"SELECT v, twice FROM named ORDER BY v", x.named}} {
			if got := d.text(c, y[0]); got != y[1] {
				t.Errorf("after %s: %s: %q, want %q", x.sql, y[0], got, y[1])
			}
		}
	}
	// Where the first one stays, a row of another's does, too.
	d.exec(c, "INSERT INTO first VALUES (9, 99)")
	d.exec(c, "INSERT INTO src VALUES (9, 1)")
	d.exec(c, "UPDATE src SET v = 2 WHERE k = 9")
	d.exec(c, "DELETE FROM src WHERE k = 9")
	if got := d.text(c, "SELECT * FROM first ORDER BY k"); got != "1,\n9,99" {
		t.Errorf("a row of another's: %q", got)
	}
	d.refused(c, "CREATE SINK x INTO history (k, v) FROM src", "55000", "append-only table")
	d.refused(c, "CREATE SINK x INTO ignoring FROM src WITH (type = 'append-only')", "22023", "cannot be append-only")
	d.refused(c, "CREATE SINK x INTO ignoring (v) AS SELECT v FROM src", "22023", "no value for column \"k\"")
	d.refused(c, "CREATE SINK x INTO ignoring (k, v) AS SELECT k FROM src", "42601", "more target columns than expressions")
	d.refused(c, "CREATE SINK x INTO ignoring AS SELECT k, v, 1 AS w FROM src", "42601", "more expressions than target columns")
	d.refused(c, "CREATE SINK x INTO ignoring AS SELECT k, 'a' || v AS v FROM src", "42804", "column \"v\" is of type integer")
	d.refused(c, "CREATE SINK x INTO named (twice) AS SELECT v FROM src", "428C9", "column \"twice\"")
	d.refused(c, "CREATE SINK x INTO ignoring (k, nope) FROM src", "42703", "column \"nope\"")
	d.refused(c, "CREATE SINK x INTO nope FROM src", "42P01", "nope")
	d.refused(c, "CREATE SINK x INTO ignoring FROM nope", "42P01", "nope")
	d.refused(c, "CREATE SINK x INTO ignoring FROM src WITH (typo = 1)", "22023", "typo")
	d.refused(c, "CREATE SINK x INTO ignoring FROM src WITH (primary_key = 'v')", "22023", "primary key (k)")
	d.refused(c, "CREATE SINK x FROM src WITH (connector = 'kafka')", "0A000", "connector")
	d.refused(c, "CREATE SINK s1 INTO ignoring FROM src", "42710", "already exists")
	d.exec(c, "CREATE SINK IF NOT EXISTS s1 INTO ignoring FROM src")
	d.refused(c, "CREATE SINK x INTO ignoring AS SELECT k, random()::int AS v FROM src", "42P17", "volatile")
	d.exec(c, "CREATE TEMP TABLE tmp (k int, v int)")
	d.refused(c, "CREATE SINK x INTO tmp FROM src", "0A000", "temporary")
	d.refused(c, "CREATE SINK x INTO ignoring FROM tmp", "0A000", "temporary")
	d.close()
}

// TestSinkDefinitions drops, renames and changes what sinks use.
func TestSinkDefinitions(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	d.exec(c, `SET rw_implicit_flush = true; CREATE SCHEMA a; CREATE SCHEMA z;
		CREATE TABLE a.src (k int PRIMARY KEY, v int); CREATE TABLE z.t (k int PRIMARY KEY, v int, extra int);
		CREATE VIEW a.w AS SELECT k, v FROM a.src WHERE v < 10;
		CREATE SINK s INTO z.t (k, v) FROM a.w;
		INSERT INTO a.src SELECT i, i FROM generate_series(1, 12) i`)
	d.refused(c, "DROP TABLE z.t", "2BP01", "other objects depend on it")
	d.refused(c, "DROP VIEW a.w", "2BP01", "other objects depend on it")
	d.refused(c, "ALTER TABLE z.t DROP COLUMN v", "2BP01", "other objects depend on it")
	d.refused(c, "ALTER TABLE a.src DROP COLUMN v", "2BP01", "other objects depend on it")
	d.exec(c, `ALTER TABLE z.t DROP COLUMN extra; ALTER TABLE z.t RENAME v TO w; ALTER TABLE z.t RENAME TO u; ALTER SCHEMA z RENAME TO y;
		ALTER TABLE a.src RENAME v TO x; ALTER VIEW a.w RENAME TO ww; ALTER TABLE y.u ADD COLUMN more int DEFAULT 3; ALTER SINK s RENAME TO s2`)
	if got, want := d.text(c, "SHOW CREATE SINK s2"), `public.s2,CREATE SINK "public"."s2" INTO "y"."u" ("k", "w") AS SELECT w.k, w.v FROM a.ww AS w`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	d.exec(c, "DELETE FROM a.src WHERE k = 3; INSERT INTO a.src VALUES (13, 0)")
	const want = "SELECT k, x, 3 FROM a.src WHERE x < 10"
	d.sameRows(c, "renamed", "SELECT * FROM y.u", want)
	// The query is another one: the difference is delivered.
	d.exec(c, "CREATE OR REPLACE VIEW a.ww AS SELECT k, x AS v FROM a.src WHERE x >= 5")
	d.sameRows(c, "replaced", "SELECT * FROM y.u", "SELECT k, x, 3 FROM a.src WHERE x >= 5")
	d.close()
	d = open(t, dir)
	c = d.connect()
	d.exec(c, "SET rw_implicit_flush = true; UPDATE a.src SET x = 5 WHERE k < 3")
	d.sameRows(c, "opened again", "SELECT * FROM y.u", "SELECT k, x, 3 FROM a.src WHERE x >= 5")
	// Circles.
	d.exec(c, "CREATE TABLE one (k int PRIMARY KEY, v int); CREATE TABLE two (k int PRIMARY KEY, v int); CREATE VIEW o AS SELECT * FROM one; CREATE SINK ot INTO two FROM o")
	d.refused(c, "CREATE SINK x INTO one FROM o", "42P17", "sink \"x\" would feed itself")
	d.refused(c, "CREATE SINK x INTO one FROM one", "42P17", "sink \"x\" would feed itself")
	d.refused(c, "CREATE SINK x INTO one AS WITH l AS CHANGELOG FROM one SELECT k, v FROM l", "42P17", "sink \"x\" would feed itself")
	d.refused(c, "CREATE SINK x INTO one FROM two", "42P17", "sink \"x\" would feed itself")
	d.refused(c, "CREATE OR REPLACE VIEW o AS SELECT * FROM two", "42P17", "sink \"ot\" would feed itself")
	d.refused(c, "ALTER TABLE one ADD FOREIGN KEY (k) REFERENCES two ON DELETE CASCADE", "42P17", "sink \"ot\" would feed itself")
	d.exec(c, "CREATE TABLE three (k int PRIMARY KEY, v int); CREATE SINK th INTO three FROM two; INSERT INTO one VALUES (1, 1), (2, 2)")
	d.sameRows(c, "a chain", "SELECT * FROM three", "SELECT * FROM one")
	// Dropped sinks leave their rows; dropping one in a transaction that is rolled back does nothing.
	d.exec(c, "BEGIN; DROP SINK th; ROLLBACK; UPDATE one SET v = 5")
	d.sameRows(c, "rolled back", "SELECT * FROM three", "SELECT * FROM one")
	d.exec(c, "DROP SINK th; DELETE FROM one")
	if got := d.text(c, "SELECT k FROM three ORDER BY k"); got != "1\n2" {
		t.Errorf("after DROP SINK: %s", got)
	}
	d.exec(c, "DROP TABLE two CASCADE")
	if got := d.text(c, "SELECT name FROM streamdb_internal.sinks"); got != "s2" {
		t.Errorf("sinks left: %s", got)
	}
	d.exec(c, "DROP SCHEMA a CASCADE")
	if got := d.text(c, "SHOW SINKS"); got != "" {
		t.Errorf("sinks left: %s", got)
	}
	if got := d.text(c, "SELECT name FROM streamdb_internal.freshness WHERE kind = 'sink'"); got != "" {
		t.Errorf("what sinks had is left: %s", got)
	}
	d.close()
	open(t, dir).close()
}

// TestSinkPortions gives a new sink much to deliver, in portions.
func TestSinkPortions(t *testing.T) {
	dir := t.TempDir()
	d := openWith(t, dir, coord.Options{CheckpointInterval: 20 * time.Millisecond, SinkPortion: 40_000})
	c := d.connect()
	d.exec(c, `CREATE TABLE src (k int PRIMARY KEY, v text); INSERT INTO src SELECT i, repeat('x', i % 50) FROM generate_series(1, 9000) i;
		CREATE TABLE t (k int PRIMARY KEY, v text); CREATE TABLE h (v text, k int);
		CREATE SINK s INTO t FROM src; CREATE SINK sh INTO h AS SELECT v, k FROM src`)
	for range 3 { // meanwhile
		d.exec(c, "UPDATE src SET v = v || 'y' WHERE k % 3 = 0; DELETE FROM src WHERE k % 1000 = 7")
	}
	d.close() // perhaps amid of it
	d = openWith(t, dir, coord.Options{SinkPortion: 40_000})
	c = d.connect()
	d.exec(c, "UPDATE src SET v = v || 'z'")
	d.exec(c, "FLUSH")
	d.sameRows(c, "with a key", "SELECT * FROM t", "SELECT * FROM src")
	d.sameRows(c, "without one", "SELECT * FROM h", "SELECT v, k FROM src")
	if got := d.text(c, "SELECT name FROM streamdb_internal.sinks WHERE deliveries < 3"); got != "" {
		t.Errorf("not in portions: %s", got)
	}
	d.close()
}

// TestChangelogSinks keeps the changes of a relation in a table.
func TestChangelogSinks(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	d.exec(c, `SET rw_implicit_flush = true; CREATE TABLE src (k int PRIMARY KEY, v int, "V 2" text); CREATE TABLE plain (a int);
		CREATE TABLE log (n serial, k int, v int, op smallint); CREATE TABLE plainlog (a int, op int); CREATE TABLE deleted (k int, upper text);
		INSERT INTO src VALUES (1, 10, 'a');
		CREATE SINK s1 INTO log (k, v, op) AS WITH x AS CHANGELOG FROM src SELECT k, v, changelog_op FROM x;
		CREATE MATERIALIZED VIEW twice AS SELECT a * 2 AS a FROM plain;
		CREATE SINK s2 INTO plainlog AS WITH x AS CHANGELOG FROM twice SELECT * FROM x;
		CREATE SINK s3 INTO deleted AS WITH "X" AS CHANGELOG FROM src SELECT k, upper("V 2") FROM "X" WHERE changelog_op IN (2, 4) WITH (type = 'append-only')`)
	check := func(log, plainlog, deleted string) {
		t.Helper()
		for _, x := range [][2]string{{"SELECT k, v, op FROM log ORDER BY k, n", log}, {"SELECT * FROM plainlog ORDER BY a, op", plainlog}, {"SELECT * FROM deleted ORDER BY k, upper", deleted}} {
			if got := strings.ReplaceAll(d.text(c, x[0]), "\n", " "); got != x[1] {
				t.Errorf("%s: %s, want %s", x[0], got, x[1])
			}
		}
	}
	check("1,10,1", "", "")
	d.exec(c, `INSERT INTO src VALUES (2, 20, 'b'); INSERT INTO plain VALUES (1), (1)`)
	d.exec(c, `UPDATE src SET v = 11, "V 2" = 'c' WHERE k = 1; DELETE FROM src WHERE k = 2; INSERT INTO src VALUES (3, 30, 'd'); UPDATE plain SET a = 3`)
	d.exec(c, "UPDATE src SET v = v; ALTER TABLE src RENAME v TO w; ALTER TABLE src RENAME TO src2")
	const log, plainlog, deleted = "1,10,1 1,10,4 1,11,3 2,20,1 2,20,2 3,30,1", "2,1 2,1 2,2 2,2 6,1 6,1", "1,A 2,B"
	check(log, plainlog, deleted)
	d.close()
	d = open(t, dir)
	c = d.connect()
	d.exec(c, "SET rw_implicit_flush = true")
	check(log, plainlog, deleted)
	d.exec(c, "UPDATE src2 SET w = 0 WHERE k = 3")
	check(log+" 3,30,4 3,0,3", plainlog, deleted+" 3,D")
	if got, want := d.text(c, "SHOW CREATE SINK s3"), `public.s3,CREATE SINK "public"."s3" INTO "public"."deleted" ("k", "upper") AS WITH "X" AS CHANGELOG FROM "public"."src2" SELECT k, upper("V 2") FROM "X" WHERE changelog_op IN (2, 4) WITH (type = 'append-only')`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	d.refused(c, "CREATE MATERIALIZED VIEW m AS WITH x AS CHANGELOG FROM src2 SELECT * FROM x", "0A000", "AS CHANGELOG FROM outside of a sink")
	d.refused(c, "CREATE SINK x INTO plainlog (a) AS WITH x AS CHANGELOG FROM src2 SELECT count(*)::int FROM x", "0A000", "row by row")
	d.refused(c, "CREATE SINK x INTO plainlog (a) AS WITH x AS CHANGELOG FROM src2 SELECT x.k FROM x JOIN src2 USING (k)", "42P01", "src2")
	d.refused(c, "CREATE SINK x INTO plainlog (a) AS WITH x AS CHANGELOG FROM src2 SELECT x.k FROM x JOIN public.src2 USING (k)", "0A000", "another relation")
	d.refused(c, "CREATE SINK x INTO plainlog AS WITH x AS CHANGELOG FROM nope SELECT * FROM x", "42P01", "nope")
	d.refused(c, "CREATE SINK x INTO plain AS WITH x AS CHANGELOG FROM twice SELECT a FROM x", "42P17", "feed itself")
	d.refused(c, "DROP TABLE src2", "2BP01", "other objects depend on it")
	d.close()
}

// TestSinksUnderDDL makes, changes and drops sinks and what they use, while clients
// write. Afterwards the sink that was there throughout has its table right.
func TestSinksUnderDDL(t *testing.T) {
	const rounds = 12
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	d.exec(c, `CREATE TABLE src (k int PRIMARY KEY, v int); CREATE TABLE t (k int PRIMARY KEY, v int); CREATE TABLE u (k int, v int);
		CREATE VIEW w AS SELECT k, v FROM src; CREATE SINK stays INTO t FROM w`)
	var wg sync.WaitGroup
	run := func(statements func(i int) []string) {
		wc := d.connect()
		wg.Go(func() {
			defer wc.Close(context.Background())
			for i := range rounds {
				for _, sql := range statements(i) {
					_, err := wc.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol)
					var e *pgconn.PgError
					if err != nil && (!errors.As(err, &e) || e.Code != "40001" && e.Code != "40P01") {
						t.Errorf("%s: %v", sql, err)
					}
				}
			}
		})
	}
	for w := range 2 {
		run(func(i int) []string {
			return []string{fmt.Sprintf("INSERT INTO src SELECT g, g FROM generate_series(%d, %d) g", 1000*w+10*i, 1000*w+10*i+9),
				fmt.Sprintf("UPDATE src SET v = v + 1 WHERE k %% 7 = %d", i%7), fmt.Sprintf("DELETE FROM src WHERE k = %d", 1000*w+10*i+3)}
		})
	}
	run(func(i int) []string {
		return []string{"CREATE SINK IF NOT EXISTS comes INTO u FROM src", "FLUSH", "DROP SINK IF EXISTS comes"}
	})
	run(func(i int) []string {
		return []string{"ALTER TABLE t ADD COLUMN IF NOT EXISTS more int DEFAULT 1", "ALTER TABLE t DROP COLUMN IF EXISTS more"}
	})
	run(func(i int) []string {
		return []string{fmt.Sprintf("CREATE OR REPLACE VIEW w AS SELECT k, v + %d AS v FROM src WHERE k %% 3 <> %d", i, i%3)}
	})
	run(func(i int) []string {
		return []string{"BEGIN; CREATE TABLE x (k int, v int); CREATE SINK sx INTO x FROM w; COMMIT", "FLUSH", "DROP TABLE x CASCADE"}
	})
	wg.Wait()
	d.exec(c, "ALTER TABLE t DROP COLUMN IF EXISTS more")
	d.exec(c, "FLUSH")
	d.sameRows(c, "the sink that was there", "SELECT * FROM t", "SELECT * FROM w")
	d.close()
	d = open(t, dir)
	c = d.connect()
	d.exec(c, "UPDATE src SET v = -v")
	d.exec(c, "FLUSH")
	d.sameRows(c, "opened again", "SELECT * FROM t", "SELECT * FROM w")
	d.close()
}
