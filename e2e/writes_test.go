package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestConstraintsAfterCrash kills the server before and after a checkpoint:
// keys and foreign keys hold over what was there, sequences give no value twice,
// temporary objects are gone.
func TestConstraintsAfterCrash(t *testing.T) {
	for _, interval := range []string{"1h", "100ms"} {
		t.Run(interval, func(t *testing.T) {
			s := serve(t, t.TempDir(), "--checkpoint-interval", interval)
			c := s.connect()
			exec1(t, c, "CREATE TABLE p (id int PRIMARY KEY, k numeric UNIQUE)", "CREATE TABLE c (id serial PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE)",
				"INSERT INTO p SELECT g, g FROM generate_series(1, 100) g", "INSERT INTO c (p) SELECT g FROM generate_series(1, 100) g",
				"CREATE TEMP TABLE gone (a int)", "INSERT INTO gone VALUES (1)", "ALTER TABLE p ADD COLUMN s text DEFAULT 'x'", "ALTER TABLE p ADD UNIQUE (s, id)",
				"CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM p JOIN c ON c.p = p.id")
			var last int64
			for round := range 3 {
				var id int64
				if err := c.QueryRow(context.Background(), "INSERT INTO c (p) VALUES (1) RETURNING id").Scan(&id); err != nil {
					t.Fatal(err)
				}
				if id <= last {
					t.Fatalf("the sequence gave %d after %d", id, last)
				}
				last = id
				s.kill()
				s.start("--checkpoint-interval", interval)
				c = s.connect()
				for sql, code := range map[string]string{
					"INSERT INTO p VALUES (5, 1000)":                     "23505",
					"INSERT INTO p VALUES (1000, 5.0)":                   "23505",
					"INSERT INTO c (p) VALUES (1000)":                    "23503",
					"UPDATE c SET p = 1000 WHERE id = 3":                 "23503",
					"SELECT * FROM gone":                                 "42P01",
					"INSERT INTO p (id, s) VALUES (2000, 'x'), (7, 'x')": "23505",
				} {
					_, err := c.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol)
					if err == nil || !strings.Contains(err.Error(), code) {
						t.Errorf("round %d: %s: %v, want SQLSTATE %s", round, sql, err, code)
					}
				}
				exec1(t, c, fmt.Sprintf("DELETE FROM p WHERE id = %d", 50+round))
				var n, m int64
				if err := c.QueryRow(context.Background(), "SELECT (SELECT count(*) FROM c), n FROM v").Scan(&n, &m); err != nil {
					t.Fatal(err)
				}
				if want := int64(100); n != want || m != want {
					t.Errorf("round %d: %d rows refer, the view has %d, want %d", round, n, m, want)
				}
			}
		})
	}
}
