package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// rewrite writes what psql prints into the golden files: of scripts that run
// on both servers what it prints on PostgreSQL.
var rewrite = flag.Bool("rewrite", false, "write the outputs of psql scripts into their golden files")

// psqlScript feeds a script to psql, which echoes it with what it prints.
func psqlScript(t *testing.T, dsn, script string) string {
	t.Helper()
	if _, err := exec.LookPath("psql"); err != nil {
		if os.Getenv("STREAMDB_REQUIRE_ALL") == "1" {
			t.Fatal("psql is not installed")
		}
		t.Skip("psql is not installed")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "psql", "-X", "-a", "-q", "-d", dsn, "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append(os.Environ(), "PGOPTIONS=", "PGTZ=UTC", "LC_ALL=C.UTF-8", "PAGER=")
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("psql did not end: %s", out)
	}
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}

// emptyPostgres makes a database of its own, with the collation C.
func emptyPostgres(t *testing.T) string {
	t.Helper()
	dsn := os.Getenv("STREAMDB_TEST_PG_DSN")
	if dsn == "" {
		return ""
	}
	ctx := context.Background()
	admin, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("e2e_%d", rand.Int64())
	exec1(t, admin, "CREATE DATABASE "+name+" TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
	t.Cleanup(func() {
		_, _ = admin.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
		admin.Close(ctx)
	})
	cfg := admin.Config()
	return fmt.Sprintf("postgres://%s:%s@%s:%d/%s?sslmode=disable", cfg.User, cfg.Password, cfg.Host, cfg.Port, name)
}

// TestPsqlScripts runs the scripts of testdata/psql through psql and compares
// what it prints with the golden texts. A script whose first line is "-- on:
// both" runs on PostgreSQL too, whose output is the golden text.
func TestPsqlScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/psql/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, golden := string(b), strings.TrimSuffix(file, ".sql")+".out"
			both := strings.HasPrefix(script, "-- on: both\n")
			want := ""
			if !*rewrite {
				b, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				want = string(b)
			}
			if pg := ""; both {
				if dsn := emptyPostgres(t); dsn != "" {
					pg = psqlScript(t, dsn, script)
					if *rewrite {
						want = pg
					} else if pg != want {
						t.Errorf("PostgreSQL prints something else than %s:\n%s", golden, lineDiff(want, pg))
					}
				}
			}
			got := psqlScript(t, serve(t, t.TempDir()).dsn(), script)
			if *rewrite {
				if !both {
					want = got
				}
				if err := os.WriteFile(golden, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got != want {
				t.Errorf("streamdb prints something else than %s:\n%s", golden, lineDiff(want, got))
			}
		})
	}
}

// lineDiff shows the lines that differ, each with its place.
func lineDiff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for len(w) > 0 && len(g) > 0 && w[len(w)-1] == g[len(g)-1] {
		w, g = w[:len(w)-1], g[:len(g)-1]
	}
	same := 0
	for same < len(w) && same < len(g) && w[same] == g[same] {
		same++
	}
	var b strings.Builder
	show := func(mark string, lines []string, from int) {
		for i := from; i < min(len(lines), from+20); i++ {
			fmt.Fprintf(&b, "%s%d: %s\n", mark, i+1, lines[i])
		}
	}
	show(" ", w[:same], max(same-4, 0))
	show("-", w, same)
	show("+", g, same)
	return b.String()
}
