package docs_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestDocumentedSQL runs the SQL blocks of the pages, in order, against a
// server of their own: what the documentation shows must work.
func TestDocumentedSQL(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "streamdb")
	if out, err := exec.Command("go", "build", "-o", bin, "../cmd/streamdb").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, page := range []string{"../README.md", "guide.md", "sql.md"} {
		t.Run(filepath.Base(page), func(t *testing.T) { runPage(t, bin, page) })
	}
}

func runPage(t *testing.T, bin, page string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(bin, "serve", "--data-dir", t.TempDir(), "--pg-addr", addr, "--http-addr", "")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var conn *pgx.Conn
	for conn == nil {
		if conn, err = pgx.Connect(ctx, fmt.Sprintf("postgres://doc@%s/streamdb?sslmode=disable", addr)); err != nil {
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	defer conn.Close(ctx)
	blocks := 0
	for i, part := range strings.Split(string(text), "```") {
		sql, ok := strings.CutPrefix(part, "sql\n")
		if i%2 == 0 || !ok || strings.Contains(sql, "'kafka:") || strings.Contains(sql, "'db'") || strings.Contains(sql, "COPY (SUBSCRIBE") {
			continue
		}
		blocks++
		if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			line := 1 + strings.Count(strings.Join(strings.Split(string(text), "```")[:i], "```"), "\n")
			t.Errorf("%s:%d: %v\n%s", page, line, err, sql)
		}
	}
	if blocks == 0 {
		t.Errorf("%s has no SQL", page)
	}
}
