package coord_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/streamdb/streamdb/internal/oracle"
)

// TestScripts runs the statements of files one by one, and compares what
// PostgreSQL says to each, errors with all their parts. A MAINTAINED VIEW is a
// materialized view here, and a view there.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			s := oracle.Connect(t)
			d := open(t, t.TempDir())
			defer d.close()
			c := d.connect()
			defer c.Close(context.Background())
			schema := fmt.Sprintf("script_%d", os.Getpid())
			s.Exec(t, "CREATE SCHEMA "+schema)
			defer s.Exec(t, "DROP SCHEMA "+schema+" CASCADE")
			s.Exec(t, "SET search_path = "+schema)
			for _, st := range scriptStatements(t, file) {
				ours := strings.Replace(st.sql, "MAINTAINED VIEW", "MATERIALIZED VIEW", 1)
				theirs := strings.Replace(st.sql, "MAINTAINED VIEW", "VIEW", 1)
				if got, want := scriptReply(c, ours), scriptReply(s.Conn, theirs); got != want && !strings.Contains(st.sql, "MAINTAINED VIEW") || got == "" != (want == "") {
					t.Errorf("%s:%d: %s\n got %s\nwant %s", file, st.line, st.sql, got, want)
				}
			}
		})
	}
}

type scriptStatement struct {
	sql  string
	line int
}

// scriptStatements reads a file of statements that end with a semicolon at the
// end of a line; -- at the beginning of a line is a comment.
func scriptStatements(t *testing.T, file string) []scriptStatement {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []scriptStatement
	var st scriptStatement
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "--") || st.sql == "" && strings.TrimSpace(line) == "" {
			continue
		}
		if st.sql == "" {
			st.line = i + 1
		} else {
			st.sql += "\n"
		}
		st.sql += line
		if strings.HasSuffix(line, ";") && strings.Count(st.sql, "$$")%2 == 0 {
			out = append(out, scriptStatement{strings.TrimSuffix(st.sql, ";"), st.line})
			st = scriptStatement{}
		}
	}
	return out
}

// scriptReply is reply with the rows in an order of their own, if the statement has none.
func scriptReply(c *pgx.Conn, sql string) string {
	r := reply(c, sql)
	if strings.Contains(sql, "ORDER BY") || strings.HasPrefix(r, "ERROR") {
		return r
	}
	rows := strings.Split(r, "; ")
	slices.Sort(rows)
	return strings.Join(rows, "; ")
}
