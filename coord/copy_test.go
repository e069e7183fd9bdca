package coord_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamdb/streamdb/internal/oracle"
)

// copyCases are COPY statements, those FROM STDIN with their data after a line end.
var copyCases = strings.Split(`COPY cp TO STDOUT
COPY cp TO STDOUT CSV HEADER FORCE QUOTE b
COPY cp TO STDOUT CSV HEADER FORCE QUOTE *
COPY cp TO STDOUT (FORMAT csv, FORCE_QUOTE (b, c), NULL 'NUL')
COPY cp TO STDOUT (FORMAT text, HEADER)
COPY cp TO STDOUT (FORMAT text, QUOTE '"')
COPY cp TO STDOUT (FORMAT text, FORCE_QUOTE *)
COPY cp TO STDOUT (FORMAT csv, DELIMITER 'ab')
COPY cp TO STDOUT (FORMAT csv, DELIMITER '"')
COPY cp TO STDOUT (FORMAT csv, DELIMITER E'\n')
COPY cp TO STDOUT (FORMAT text, DELIMITER 'a')
COPY cp TO STDOUT (FORMAT csv, QUOTE 'ab')
COPY cp TO STDOUT (FORMAT csv, ESCAPE 'ab')
COPY cp TO STDOUT (FORMAT text, ESCAPE 'a')
COPY cp TO STDOUT (FORMAT csv, NULL E'\n')
COPY cp TO STDOUT (FORMAT csv, FORCE_NOT_NULL (b))
COPY cp TO STDOUT (FORMAT csv, FORCE_NULL (b))
COPY cp TO STDOUT (FORMAT foo)
COPY cp TO STDOUT (foo)
COPY cp TO STDOUT (FORMAT csv, FORMAT csv)
COPY cp TO STDOUT (HEADER match)
COPY cp TO STDOUT (HEADER foo)
COPY cp TO STDOUT (ENCODING 'nosuch')
COPY cp TO STDOUT (FORMAT binary, DELIMITER ',')
COPY cp TO STDOUT (FORMAT binary, NULL 'x')
COPY cp TO STDOUT (FORMAT binary, HEADER)
COPY cp TO STDOUT (NULL 'a|b', DELIMITER '|')
COPY cp TO STDOUT (FORMAT csv, NULL '"')
COPY cp (a, a) TO STDOUT
COPY cp (z) TO STDOUT
COPY cp TO STDOUT (FORMAT csv, FORCE_QUOTE (z))
COPY cp (a) TO STDOUT (FORMAT csv, FORCE_QUOTE (b))
COPY cp (c, a) TO STDOUT (FORMAT csv, DELIMITER ';', QUOTE '''', ESCAPE '\')
COPY cp (a) TO STDOUT WHERE a > 1
COPY cps TO STDOUT
COPY cpi TO STDOUT
COPY ci FROM STDIN|1	x	2|2	\N	\N
COPY ci FROM STDIN|1	x
COPY ci FROM STDIN|1	x	2	3
COPY ci FROM STDIN|x	x	2
COPY ci FROM STDIN|
COPY ci (a) FROM STDIN|5
COPY ci FROM STDIN CSV HEADER|a,b,c|10,"q,x",3
COPY ci FROM STDIN (FORMAT csv, HEADER match)|a,b,c|11,h,3
COPY ci FROM STDIN (FORMAT csv, HEADER match)|a,bb,c|11,h,3
COPY ci FROM STDIN (FORMAT csv, HEADER match)|a,b|11,h,3
COPY ci FROM STDIN (FORMAT csv, HEADER match)|a,,c|11,h,3
COPY ci FROM STDIN (HEADER match)|a	b	c|12	h	3
COPY ci FROM STDIN (FORMAT csv, FORCE_NULL (b), FORCE_NOT_NULL (b))|13,"",3|14,,3
COPY ci FROM STDIN (FORMAT csv, FORCE_NULL (z))
COPY ci (a) FROM STDIN (FORMAT csv, FORCE_NULL (b))
COPY ci FROM STDIN (FORMAT csv, FORCE_QUOTE (b))
COPY ci FROM STDIN WHERE a > 20 AND b <> 'no'|20	x	1|21	y	1|22	no	1
COPY ci FROM STDIN WHERE a IN (SELECT 1)
COPY ci FROM STDIN WHERE sum(a) > 1
COPY ci FROM STDIN WHERE z > 1
COPY ci FROM STDIN WHERE a
COPY ci FROM STDIN (FORMAT csv, QUOTE '''', ESCAPE '\')|30,'it\'s',1|31,'un,q',2
COPY ci FROM STDIN CSV|32,"unterminated,1
COPY ci FROM STDIN (FORMAT csv, NULL 'NUL')|33,NUL,NUL|34,"NUL",1
COPY ci (c, b, a) FROM STDIN|1	ord	40
COPY ci (c, c) FROM STDIN
COPY ci (c, zz) FROM STDIN`, "\n")

// TestCopyOptions compares COPY with all its options with PostgreSQL's.
func TestCopyOptions(t *testing.T) {
	s := oracle.Connect(t)
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	schema := fmt.Sprintf("copy_%d", os.Getpid())
	s.Exec(t, "CREATE SCHEMA "+schema)
	defer s.Exec(t, "DROP SCHEMA "+schema+" CASCADE")
	s.Exec(t, "SET search_path = "+schema)
	for _, sql := range []string{
		"CREATE TABLE cp (a int PRIMARY KEY, b text, c text DEFAULT 'cdef')", `INSERT INTO cp VALUES (1, 'tab' || chr(9) || 'here"s', E'back\\slash')`,
		"CREATE SEQUENCE cps", "CREATE INDEX cpi ON cp (b)", "CREATE TABLE ci (a int, b text DEFAULT 'bd', c int DEFAULT 7)",
	} {
		s.Exec(t, sql)
		d.exec(c, sql)
	}
	for _, sql := range copyCases {
		if got, want := copyReply(c, sql), copyReply(s.Conn, sql); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
	rows := "SELECT * FROM ci ORDER BY a, b, c"
	if got, want := reply(c, rows), reply(s.Conn, rows); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
}

// copyReply is what a COPY gives, or the parts of its error.
func copyReply(c *pgx.Conn, sql string) string {
	sql, data, _ := strings.Cut(sql, "|")
	var out bytes.Buffer
	var tag pgconn.CommandTag
	var err error
	if strings.Contains(sql, "FROM STDIN") {
		if data != "" || strings.HasSuffix(sql, "STDIN") {
			data = strings.ReplaceAll(data, "|", "\n") + "\n"
		}
		tag, err = c.PgConn().CopyFrom(context.Background(), strings.NewReader(data), sql)
	} else {
		tag, err = c.PgConn().CopyTo(context.Background(), &out, sql)
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return fmt.Sprintf("%s %s: %s; %s; %s; %s AT %d", e.Severity, e.Code, e.Message, e.Detail, e.Hint, e.Where, e.Position)
	}
	return fmt.Sprint(tag, err, " ", out.String())
}

// TestCopyNewer checks options of COPY that PostgreSQL has from 16 and 17 on.
func TestCopyNewer(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	d.exec(c, "CREATE TABLE t (id int, a text DEFAULT 'first', b int DEFAULT 7, g int GENERATED ALWAYS AS (b + 1) STORED)")
	for _, x := range []struct{ sql, data, want string }{
		{`COPY t FROM STDIN (DEFAULT '\D')`, "1\t\\D\t5\n2\tx\t\\D\n", "COPY 2"},
		{`COPY t FROM STDIN (FORMAT csv, DEFAULT 'D')`, "3,D,D\n4,\"D\",5\n", "COPY 2"},
		{`COPY t FROM STDIN (DEFAULT '\D')`, "\\D\tx\t5\n", "22P04 unexpected default marker in COPY data"},
		{`COPY t FROM STDIN (DEFAULT '\N')`, "", "0A000 NULL specification and DEFAULT specification cannot be the same"},
		{`COPY t FROM STDIN (ON_ERROR ignore)`, "x\ty\t1\n5\ty\tz\n6\tok\t1\n", "COPY 1"},
		{`COPY t FROM STDIN (ON_ERROR stop)`, "x\ty\t1\n", `22P02 invalid input syntax for type integer: "x"`},
		{`COPY t FROM STDIN (ON_ERROR sometimes)`, "", `22023 COPY ON_ERROR "sometimes" not recognized`},
		{`COPY t FROM STDIN (FORMAT csv, FORCE_NULL *)`, "7,\"\",1\n", "COPY 1"},
	} {
		tag, err := c.PgConn().CopyFrom(context.Background(), strings.NewReader(x.data), x.sql)
		got := tag.String()
		if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
			got = e.Code + " " + e.Message
		}
		if got != x.want {
			t.Errorf("%s gives %q, want %q", x.sql, got, x.want)
		}
	}
	if got, want := d.text(c, "SELECT * FROM t ORDER BY id"), "1,first,5,6\n2,x,7,8\n3,first,7,8\n4,D,5,6\n6,ok,1,2\n7,,1,2"; got != want {
		t.Errorf("the table is %q, want %q", got, want)
	}
}
