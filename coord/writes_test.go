package coord_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamdb/streamdb/internal/oracle"
)

// writer makes random statements over three tables with constraints.
type writer struct {
	rnd   *rand.Rand
	block bool // within BEGIN
	saved bool // within SAVEPOINT s
}

func (w *writer) pick(list ...string) string { return list[w.rnd.IntN(len(list))] }

// val is a small number as SQL, rarely NULL.
func (w *writer) val(n int) string {
	if w.rnd.IntN(12) == 0 {
		return "NULL"
	}
	return strconv.Itoa(w.rnd.IntN(n))
}

// schema makes the tables, with random actions of the foreign keys.
func (w *writer) schema() []string {
	action := func() string {
		return w.pick("", "ON DELETE CASCADE", "ON DELETE SET NULL", "ON DELETE SET DEFAULT", "ON DELETE RESTRICT") + " " +
			w.pick("", "ON UPDATE CASCADE", "ON UPDATE SET NULL", "ON UPDATE RESTRICT") + " " +
			w.pick("", "", "DEFERRABLE", "DEFERRABLE INITIALLY DEFERRED")
	}
	return []string{
		`CREATE TABLE p (id int PRIMARY KEY, k numeric UNIQUE, s text DEFAULT 'x', d int DEFAULT 5 CHECK (d < 9), g int GENERATED ALWAYS AS (id * 10 + d) STORED,
			UNIQUE (s, d), CHECK (k IS NULL OR k <> id))`,
		"INSERT INTO p SELECT g, g + 100, 's' || g, g FROM generate_series(0, 6) g",
		fmt.Sprintf("CREATE TABLE m (id serial PRIMARY KEY, pid int DEFAULT 1 REFERENCES p %s, v int NOT NULL DEFAULT 3, w int, UNIQUE NULLS NOT DISTINCT (pid, v, w))", action()),
		fmt.Sprintf(`CREATE TABLE l (a int, s text, d bigint, m int REFERENCES m %s, self int, t int UNIQUE REFERENCES l (t) %s,
			FOREIGN KEY (s, d) REFERENCES p (s, d) %s %s)`, action(), action(), w.pick("", "MATCH FULL"), action()),
	}
}

// statement makes a statement; ordered says that its effect does not depend on
// the order of rows.
func (w *writer) statement() (sql string, single bool) {
	v := w.val
	ret := w.pick("", " RETURNING *")
	switch w.rnd.IntN(24) {
	case 0, 1:
		return fmt.Sprintf("INSERT INTO p (id, k, s, d) VALUES (%s, %s, 's%s', %s)%s", v(9), v(12), v(9), w.pick(v(10), "DEFAULT"), ret), true
	case 2:
		return fmt.Sprintf("INSERT INTO p VALUES (%s, %s, 's%s', %s), (%s, %s, DEFAULT, %s)%s", v(9), v(12), v(5), v(10), v(9), v(12), v(10), ret), true
	case 3:
		return fmt.Sprintf("INSERT INTO p (id, k, s, d) VALUES (%s, %s, 's%s', %s), (%s, 77, 'q', 1) ON CONFLICT %s%s", v(9), v(12), v(9), v(9), v(9),
			w.pick("DO NOTHING", "(id) DO NOTHING", "(k) DO NOTHING", "(id) DO UPDATE SET k = excluded.k, s = p.s || '!'",
				"(s, d) DO UPDATE SET d = excluded.d + 1 WHERE p.id < 6", "ON CONSTRAINT p_pkey DO UPDATE SET (s, d) = (SELECT excluded.s, max(d) FROM p)"), ret), true
	case 4, 5, 6:
		return fmt.Sprintf("INSERT INTO m (pid, v, w) VALUES (%s, %s, %s)%s", w.pick(v(9), "DEFAULT"), v(4), v(3), ret), true
	case 7:
		return fmt.Sprintf("INSERT INTO m (pid, v, w) VALUES (%s, %s, %s) ON CONFLICT (pid, v, w) DO %s%s", v(8), v(3), v(2), w.pick("NOTHING", "UPDATE SET w = 50 + m.id"), ret), true
	case 8, 9:
		return fmt.Sprintf("INSERT INTO l (a, s, d, m, t) VALUES (%s, %s, %s, %s, %s)%s", v(5), w.pick("'s1'", "'s2'", "NULL"), v(5), v(12), w.pick("NULL", v(4)), ret), true
	case 10:
		return fmt.Sprintf("INSERT INTO l (a) SELECT a FROM l WHERE a < %s", v(3)), true
	case 11, 12:
		return fmt.Sprintf("UPDATE p SET %s WHERE id = %s%s", w.pick("id = "+v(12), "k = "+v(12), "d = d + 1", "s = 's'||id, d = DEFAULT", "k = k + 0.0"), v(9), ret), true
	case 13:
		return fmt.Sprintf("UPDATE m SET %s WHERE id = %s%s", w.pick("pid = "+v(9), "v = "+v(4), "id = id + 40"), v(12), ret), true
	case 14:
		return fmt.Sprintf("UPDATE l SET a = x.a + 10, m = x.b FROM (VALUES (%s, %s), (7, 1)) x(a, b) WHERE l.a = x.a%s", v(5), v(9), w.pick("", " RETURNING l.a, l.m, x.b")), false
	case 15, 16:
		return fmt.Sprintf("DELETE FROM p WHERE id = %s%s", v(9), ret), true
	case 17:
		return fmt.Sprintf("DELETE FROM m USING p WHERE m.pid = p.id AND p.id = %s AND m.v < %s%s", v(9), v(4), w.pick("", " RETURNING m.id, p.s")), false
	case 18:
		return fmt.Sprintf("DELETE FROM l WHERE a = %s AND m IS NOT DISTINCT FROM %s%s", v(5), v(5), ret), false
	case 19: // one row: PostgreSQL checks keys row by row, in an order of its own
		return fmt.Sprintf(`MERGE INTO p USING (VALUES (%s, %d)) x(id, n) ON p.id = x.id WHEN MATCHED AND n = 1 THEN UPDATE SET d = p.d + n
			WHEN MATCHED THEN %s WHEN NOT MATCHED THEN INSERT (id, k) VALUES (x.id, x.id + 200)`, v(12), 1+w.rnd.IntN(2), w.pick("DELETE", "DO NOTHING", "UPDATE SET s = 'm'||n")), false
	case 20:
		return fmt.Sprintf("WITH x AS (DELETE FROM l WHERE a = %s RETURNING a, m) INSERT INTO l (a, m) SELECT a + 1, m FROM x RETURNING a, m", v(5)), false
	case 21:
		return fmt.Sprintf("WITH x AS (UPDATE m SET v = v + 10 WHERE id = %s RETURNING *), y AS (INSERT INTO l (a) SELECT v FROM x RETURNING a) SELECT (SELECT count(*) FROM m WHERE v > 9), (SELECT count(*) FROM l), a FROM y", v(20)), true
	case 22:
		return w.pick("SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS ALL DEFERRED"), true
	}
	switch {
	case !w.block:
		w.block, w.saved = true, false
		return "BEGIN", true
	case !w.saved:
		w.saved = true
		return "SAVEPOINT s", true
	case w.rnd.IntN(2) == 0:
		return "ROLLBACK TO s", true
	}
	w.block = false
	return w.pick("COMMIT", "COMMIT", "ROLLBACK"), true
}

// answer is what a statement came to: its SQLSTATE, or its tag and rows.
func answer(c *pgx.Conn, sql string) string {
	rs, err := c.PgConn().Exec(context.Background(), sql).ReadAll()
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		if e.Code == "23505" {
			return "ERROR " + e.Code + " " + e.Message + " " + e.Detail
		}
		return "ERROR " + e.Code + " " + e.Message
	}
	if err != nil {
		return "ERROR " + err.Error()
	}
	var out []string
	for _, r := range rs {
		var rows []string
		for _, row := range r.Rows {
			vals := make([]string, len(row))
			for i, v := range row {
				vals[i] = string(v)
				if v == nil {
					vals[i] = "NULL"
				}
			}
			rows = append(rows, strings.Join(vals, "|"))
		}
		slices.Sort(rows)
		out = append(out, r.CommandTag.String()+"\n"+strings.Join(rows, "\n"))
	}
	return strings.Join(out, "\n")
}

// randomly is the seed of a random test and how many rounds it has.
func randomly(t *testing.T, rounds int) (uint64, int) {
	t.Helper()
	seed := uint64(1)
	if s := os.Getenv("STREAMDB_TEST_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d (STREAMDB_TEST_SEED: another, or 0 for a new one)", seed)
	if s := os.Getenv("STREAMDB_TEST_ROUNDS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		rounds = n
	}
	return seed, rounds
}

// TestRandomWrites sends the same random statements to streamdb and to
// PostgreSQL: answers, SQLSTATEs and the rows in the tables must be the same,
// and views over the tables must follow.
func TestRandomWrites(t *testing.T) {
	pg := oracle.Connect(t)
	seed, rounds := randomly(t, 6)
	dir := t.TempDir()
	d := open(t, dir)
	defer func() { d.close() }()
	for round := range rounds {
		c := d.connect()
		schema := fmt.Sprintf("w%x_%d", seed&0xffffffff, round)
		for _, conn := range []*pgx.Conn{c, pg.Conn} {
			for _, sql := range []string{"CREATE SCHEMA " + schema, "SET search_path = " + schema} {
				if a := answer(conn, sql); strings.HasPrefix(a, "ERROR") {
					t.Fatal(sql, a)
				}
			}
		}
		defer pg.Exec(t, "ROLLBACK; DROP SCHEMA IF EXISTS "+schema+" CASCADE")
		randomWrites(t, &writer{rnd: rand.New(rand.NewPCG(seed, uint64(round)))}, d, c, pg.Conn)
		c.Close(context.Background())
		if t.Failed() {
			return
		}
		if round == rounds/2 {
			d.close()
			d = open(t, dir)
		}
	}
}

func randomWrites(t *testing.T, w *writer, d *database, ours, theirs *pgx.Conn) {
	var log []string
	same := func(sql string, single bool) {
		t.Helper()
		log = append(log, sql+";")
		a, b := answer(ours, sql), answer(theirs, sql)
		if a == b {
			return
		}
		if strings.HasPrefix(a, "ERROR ") && strings.HasPrefix(b, "ERROR ") {
			if a[:11] == b[:11] || !single && a[:8] == b[:8] || a[:11] == "ERROR 21000" && b[:8] == "ERROR 23" {
				return // which of several errors is told depends on the order of rows
			}
		}
		t.Fatalf("after\n%s\nstreamdb:\n%s\nPostgreSQL:\n%s", strings.Join(log, "\n"), a, b)
	}
	for _, sql := range w.schema() {
		same(sql, true)
	}
	log = append(log, "-- views")
	d.exec(ours, "CREATE MATERIALIZED VIEW mv AS SELECT p.id, p.g, count(m.id) AS n, sum(l.a) AS a FROM p LEFT JOIN m ON m.pid = p.id LEFT JOIN l ON l.m = m.id GROUP BY p.id, p.g")
	check := func() {
		for _, table := range []string{"p", "m", "l"} {
			same("SELECT * FROM "+table, true)
		}
	}
	for i := range 250 {
		w.step(same)
		if i%25 == 24 {
			check()
		}
	}
	if w.block {
		w.block = false
		same("COMMIT", true)
	}
	check()
	got := answer(ours, "SELECT * FROM mv")
	want := answer(theirs, "SELECT p.id, p.g, count(m.id) AS n, sum(l.a) AS a FROM p LEFT JOIN m ON m.pid = p.id LEFT JOIN l ON l.m = m.id GROUP BY p.id, p.g")
	if got != want {
		t.Fatalf("after\n%s\nthe view has\n%s\nbut should have\n%s", strings.Join(log, "\n"), got, want)
	}
}

// step sends one statement.
func (w *writer) step(send func(sql string, single bool)) {
	sql, single := w.statement()
	send(sql, single)
}
