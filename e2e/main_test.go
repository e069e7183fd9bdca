package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// binary is the streamdb that the tests run: that of STREAMDB_TEST_BINARY, or
// built for it.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if binary = os.Getenv("STREAMDB_TEST_BINARY"); binary != "" {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "streamdb-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "streamdb")
		build := exec.Command("go", "build", "-o", binary, "../cmd/streamdb")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "build:", err)
			return 1
		}
		return m.Run()
	}())
}

// need is the value of an environment variable that names a service; without
// it the test is skipped, or fails where everything is required.
func need(t testing.TB, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		if os.Getenv("STREAMDB_REQUIRE_ALL") == "1" {
			t.Fatalf("%s is not set", name)
		}
		t.Skipf("%s is not set", name)
	}
	return v
}

// instance is a running server over a data directory.
type instance struct {
	t    testing.TB
	dir  string
	cmd  *exec.Cmd
	addr string
	http string
	log  *lockedBuffer
	took time.Duration // from start to ready
}

var readyLine = regexp.MustCompile(`is ready: psql -h (\S+) -p (\d+)`)

// freePort finds a port that is free now, so that a restarted server keeps it.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// serve starts a server and waits until it is ready.
func serve(t testing.TB, dir string, flags ...string) *instance {
	t.Helper()
	s := &instance{t: t, dir: dir, addr: freePort(t), http: freePort(t), log: &lockedBuffer{}}
	s.start(flags...)
	t.Cleanup(func() {
		if s.cmd != nil {
			s.kill()
		}
		if t.Failed() {
			t.Logf("server log:\n%s", s.log.tail(4000))
		}
	})
	return s
}

func (s *instance) start(flags ...string) {
	s.t.Helper()
	args := append([]string{"serve", "--data-dir", s.dir, "--pg-addr", s.addr, "--http-addr", s.http}, flags...)
	s.cmd = exec.Command(binary, args...)
	s.cmd.Stderr = s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	begun := time.Now()
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ready := make(chan bool, 1)
	go func() {
		sc := bufio.NewScanner(out)
		for sc.Scan() {
			if readyLine.MatchString(sc.Text()) {
				ready <- true
				break
			}
		}
		_, _ = io.Copy(io.Discard, out)
		close(ready)
	}()
	select {
	case ok := <-ready:
		if !ok {
			_ = s.cmd.Wait()
			s.t.Fatalf("the server did not get ready:\n%s", s.log.tail(4000))
		}
	case <-time.After(60 * time.Second):
		s.t.Fatalf("the server did not get ready in a minute:\n%s", s.log.tail(4000))
	}
	s.took = time.Since(begun)
}

// kill is kill -9.
func (s *instance) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// stop is SIGTERM; the server must end by itself with exit status 0.
func (s *instance) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("stop: %v", err)
	}
	s.cmd = nil
}

func (s *instance) dsn() string {
	return fmt.Sprintf("postgres://tester@%s/streamdb?sslmode=disable", s.addr)
}

func (s *instance) connect() *pgx.Conn {
	s.t.Helper()
	c, err := pgx.Connect(context.Background(), s.dsn())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// psql runs a script through psql and gives what it prints, errors included.
func (s *instance) psql(script string, flags ...string) string {
	s.t.Helper()
	if _, err := exec.LookPath("psql"); err != nil {
		if os.Getenv("STREAMDB_REQUIRE_ALL") == "1" {
			s.t.Fatal("psql is not installed")
		}
		s.t.Skip("psql is not installed")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "psql", append([]string{"-X", "-q", "-A", "-t", "-d", s.dsn(), "-f", "-"}, flags...)...)
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		s.t.Fatalf("psql did not end: %s", out)
	}
	if err != nil && len(out) == 0 {
		s.t.Fatal(err)
	}
	return string(out)
}

// exec runs statements that must succeed.
func exec1(t testing.TB, c *pgx.Conn, sqls ...string) {
	t.Helper()
	for _, q := range sqls {
		if _, err := c.Exec(context.Background(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// text runs a query and joins its rows: values by commas, rows by newlines.
func text(t testing.TB, c *pgx.Conn, q string, args ...any) string {
	t.Helper()
	s, err := textErr(c, q, args...)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return s
}

func textErr(c *pgx.Conn, q string, args ...any) (string, error) {
	rows, err := c.Query(context.Background(), q, append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var b strings.Builder
	for rows.Next() {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		for i, v := range rows.RawValues() {
			if i > 0 {
				b.WriteByte(',')
			}
			if v == nil {
				b.WriteString("NULL")
			} else {
				b.Write(v)
			}
		}
	}
	return b.String(), rows.Err()
}

// eventually waits until a query gives an answer.
func eventually(t testing.TB, c *pgx.Conn, q, want string) {
	t.Helper()
	got := ""
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got, err = textErr(c, q); err == nil && got == want {
			return
		}
	}
	t.Fatalf("%s: got %q (%v), want %q", q, got, err, want)
}
