// Package oracle asks a real PostgreSQL what SQL should do, for the tests that
// compare against it. STREAMDB_TEST_PG_DSN says where it is; without it such
// tests skip, unless STREAMDB_REQUIRE_ALL=1 makes that a failure.
package oracle

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Result is what PostgreSQL made of one expression: a text, NULL or an error.
type Result struct {
	Text    string
	Null    bool
	Code    string // SQLSTATE, "" for success
	Message string
	Detail  string
	Hint    string
}

// String shows the result on one line.
func (r Result) String() string {
	switch {
	case r.Code != "":
		return "ERROR " + r.Code + ": " + r.Message
	case r.Null:
		return "NULL"
	}
	return r.Text
}

// Server is a connection to PostgreSQL.
type Server struct{ Conn *pgx.Conn }

// try evaluates texts as scalar queries one by one and catches their errors.
const try = `
CREATE OR REPLACE FUNCTION pg_temp.try(q text, OUT val text, OUT code text, OUT msg text, OUT det text, OUT hnt text)
LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'SELECT (' || q || ')::text' INTO val;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, msg = MESSAGE_TEXT, det = PG_EXCEPTION_DETAIL, hnt = PG_EXCEPTION_HINT;
END $$`

// Connect opens a session with UTC as its time zone, closed when t ends.
func Connect(t testing.TB) *Server {
	t.Helper()
	dsn := os.Getenv("STREAMDB_TEST_PG_DSN")
	if dsn == "" {
		if os.Getenv("STREAMDB_REQUIRE_ALL") == "1" {
			t.Fatal("STREAMDB_TEST_PG_DSN is not set")
		}
		t.Skip("STREAMDB_TEST_PG_DSN is not set")
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatalf("connect to PostgreSQL: %v", err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	s := &Server{conn}
	s.Exec(t, "SET timezone = 'UTC'; SET client_min_messages = error; "+try)
	return s
}

// Exec runs statements that return nothing.
func (s *Server) Exec(t testing.TB, sql string) {
	t.Helper()
	if _, err := s.Conn.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Eval evaluates SQL expressions, each on its own, as text.
func (s *Server) Eval(t testing.TB, exprs []string) []Result {
	t.Helper()
	const batch = 2000
	out := make([]Result, 0, len(exprs))
	for len(exprs) > 0 {
		n := min(batch, len(exprs))
		rows, err := s.Conn.Query(context.Background(),
			`SELECT r.* FROM unnest($1::text[]) WITH ORDINALITY AS x(q, i), LATERAL pg_temp.try(q) AS r ORDER BY i`, exprs[:n])
		if err != nil {
			t.Fatalf("oracle: %v", err)
		}
		for rows.Next() {
			var val, code, msg, det, hnt *string
			if err := rows.Scan(&val, &code, &msg, &det, &hnt); err != nil {
				t.Fatalf("oracle: %v", err)
			}
			r := Result{Null: val == nil}
			for _, f := range []struct {
				to   *string
				from *string
			}{{&r.Text, val}, {&r.Code, code}, {&r.Message, msg}, {&r.Detail, det}, {&r.Hint, hnt}} {
				if f.from != nil {
					*f.to = *f.from
				}
			}
			out = append(out, r)
		}
		if err := rows.Err(); err != nil {
			t.Fatalf("oracle: %v", err)
		}
		exprs = exprs[n:]
	}
	return out
}

// Quote is s as a SQL string literal.
func Quote(s string) string {
	q := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return "E" + strings.ReplaceAll(q, `\`, `\\`)
	}
	return q
}
