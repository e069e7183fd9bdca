package coord_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/streamdb/streamdb/internal/oracle"
)

// differing says why some faulty statements are answered otherwise than by
// PostgreSQL: by the statement.
var differing = map[string]string{
	"SELECT * FROM (SELECT 1)":    newer,
	"SELECT format(variadic 'x')": "VARIADIC of a literal of unknown type is refused",
	"SELECT 'x'::noschema.typ":    "a missing schema is told of as a missing type",
	"SELECT age('x')":             noXid,
	"SELECT sum(a) OVER (ORDER BY s RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t":      "varchar is ordered as itself, not as text",
	"SELECT a FROM t GROUP BY ROLLUP (1)":                                                   order,
	"SELECT * FROM t FULL JOIN u ON t.a > u.id":                                             "every FULL JOIN works",
	"CREATE TEMP TABLE x (a int DEFAULT b)":                                                 "no column can be seen by a DEFAULT",
	"CREATE TEMP TABLE x (a int, CONSTRAINT c CHECK (a > 1), CONSTRAINT c CHECK (a > 2))":   wording,
	"CREATE TYPE mood AS ENUM ('a')":                                                        temporary,
	"CREATE DOMAIN small AS int":                                                            temporary,
	"CREATE TYPE nm AS ENUM ('a', 'a')":                                                     "there is no index of labels whose key could be told",
	"CREATE DOMAIN nd AS nosuch":                                                            position,
	"ALTER TABLE t ALTER COLUMN a TYPE nosuch":                                              position,
	"ALTER TABLE t ADD PRIMARY KEY (a)":                                                     position,
	"DECLARE c CURSOR FOR SELECT 1 ;; FETCH BACKWARD 1 FROM c ;; CLOSE c ;; FETCH 1 FROM c": "every cursor can scroll",
	"SET extra_float_digits = 99":                                                           setting,
	"SET work_mem = 'x'":                                                                    setting,
	"SET statement_timeout = '1 fortnight'":                                                 setting,
	"SET transaction_isolation = 'nosuch'":                                                  setting,
}

const (
	newer     = "PostgreSQL 16 and later allow it"
	noXid     = "there is no function of that name for xid"
	order     = "rows of grouping sets come in another order"
	scanner   = "the scanner of the statement has less to say"
	position  = "the position is another one, or is told where PostgreSQL tells none"
	wording   = "the wording is another one"
	temporary = "the type is not a temporary one here"
	setting   = "the values of this setting are checked less, or told of with less"
)

const errorTables = `SET statement_timeout = 3000; SET timezone = 'UTC';
CREATE TYPE pg_temp.mood AS ENUM ('sad', 'ok'); CREATE DOMAIN pg_temp.small AS int CHECK (VALUE < 10); CREATE TYPE pg_temp.comp AS (p int, q text);
CREATE TEMP SEQUENCE sq;
CREATE TEMP TABLE t (id int PRIMARY KEY, a int, s varchar(5), b int CHECK (b > 0), m mood);
CREATE TEMP TABLE u (id int, a int REFERENCES t);
CREATE TEMP TABLE g (x int, y int GENERATED ALWAYS AS (x + 1) STORED, z int GENERATED ALWAYS AS IDENTITY);
CREATE TEMP TABLE dup (a int, n int);
CREATE TEMP VIEW v AS SELECT id FROM t GROUP BY id;
INSERT INTO t VALUES (1, 10, 'x', 1, 'ok'), (2, 20, 'y', 2, 'sad'); INSERT INTO u VALUES (1, 1), (2, 2); INSERT INTO dup VALUES (1, 1), (1, NULL)`

// TestErrors compares the SQLSTATE, message, detail, hint and position of faulty
// statements with PostgreSQL's.
func TestErrors(t *testing.T) {
	s := oracle.Connect(t)
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	d.exec(c, strings.ReplaceAll(errorTables, "pg_temp.", ""))
	s.Exec(t, errorTables)
	text, err := os.ReadFile("testdata/errors.sql")
	if err != nil {
		t.Fatal(err)
	}
	n, failed := 0, 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "--") {
			continue
		}
		n++
		got, want := replies(c, line), replies(s.Conn, line)
		if strings.Contains(want, "ERROR") {
			failed++
		}
		reason, known := differing[line]
		switch {
		case got != want && !known:
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
		case got == want && known:
			t.Errorf("%s\n is as in PostgreSQL, though it differs because %s", line, reason)
		}
	}
	if n < 300 || failed < n*9/10 {
		t.Errorf("%d statements, of which %d fail: too few", n, failed)
	}
	if len(differing) > n/10 {
		t.Errorf("%d of %d differ", len(differing), n)
	}
}

// replies is what the statements of a line answer, in a transaction that is
// rolled back.
func replies(c *pgx.Conn, line string) string {
	var out []string
	reply(c, "BEGIN")
	for q := range strings.SplitSeq(line, " ;; ") {
		out = append(out, reply(c, q))
	}
	reply(c, "ROLLBACK")
	return strings.ReplaceAll(strings.Join(out, " / "), "pg_temp_", "")
}
