package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// command runs the binary to its end and gives its output and exit status.
func command(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("streamdb %s did not end:\n%s%s", strings.Join(args, " "), &out, &errs)
	}
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// TestCommandLine tries what the command line takes and refuses: 0 for what was
// asked for, 2 for what cannot be meant, with a text that helps.
func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	for _, x := range []struct {
		args           []string
		status         int
		stdout, stderr string // substrings
	}{
		{[]string{"version"}, 0, "streamdb 0.", ""},
		{[]string{"--version"}, 0, "streamdb 0.", ""},
		{[]string{"help"}, 0, "commands:", ""},
		{[]string{"--help"}, 0, "commands:", ""},
		{nil, 2, "", "usage: streamdb COMMAND"},
		{[]string{"sevre"}, 2, "", `unknown command "sevre"`},
		{[]string{"ser"}, 2, "", `did you mean "serve"?`},
		{[]string{"serve", "--help"}, 0, "-data-dir", ""},
		{[]string{"demo", "--help"}, 0, "-pg-addr", ""},
		{[]string{"slt", "--help"}, 0, "-junit", ""},
		{[]string{"bench", "--help"}, 0, "bench nexmark", ""},
		{[]string{"serve"}, 2, "", "--data-dir is required"},
		{[]string{"serve", "--data-dri", dir}, 2, "", "data-dri"},
		{[]string{"serve", "--data-dir", dir, "extra"}, 2, "", `unexpected argument "extra"`},
		{[]string{"serve", "--data-dir", dir, "--memory-limit", "lots"}, 2, "", "512MiB"},
		{[]string{"serve", "--data-dir", dir, "--memory-limit", "1MiB"}, 2, "", "at least 64MiB"},
		{[]string{"serve", "--data-dir", dir, "--pg-addr", "6875"}, 2, "", "host:port"},
		{[]string{"serve", "--data-dir", dir, "--pg-addr", "127.0.0.1:notaport"}, 2, "", "is not a port"},
		{[]string{"serve", "--data-dir", dir, "--pg-addr", "127.0.0.1:99999"}, 2, "", "is not a port"},
		{[]string{"serve", "--data-dir", dir, "--log-level", "loud"}, 2, "", "log-level"},
		{[]string{"serve", "--data-dir", dir, "--log-format", "xml"}, 2, "", "text or json"},
		{[]string{"serve", "--data-dir", dir, "--tls-cert", "x.pem"}, 2, "", "--tls-cert and --tls-key go together"},
		{[]string{"serve", "--data-dir", dir, "--tls-cert", "x.pem", "--tls-key", "y.pem"}, 1, "", "TLS certificate"},
		{[]string{"serve", "--data-dir", dir, "--password-file", "nope"}, 1, "", "password file"},
		{[]string{"serve", "--data-dir", dir, "--checkpoint-interval", "0s"}, 2, "", "must be positive"},
		{[]string{"serve", "--data-dir", dir, "--max-connections", "0"}, 2, "", "at least 1"},
		{[]string{"serve", "--data-dir", binary}, 1, "", "not a directory"},
		{[]string{"demo", "--rate", "1"}, 2, "", "rate"},
		{[]string{"slt"}, 2, "", "no paths"},
		{[]string{"slt", "--nonsense", "x"}, 2, "", "nonsense"},
		{[]string{"slt", filepath.Join(dir, "none.slt")}, 2, "", "none.slt"},
		{[]string{"bench", "nexmark", "--queries", "q99"}, 1, "", `unknown query "q99"`},
	} {
		out, errs, status := command(t, x.args...)
		if status != x.status || !strings.Contains(out, x.stdout) || !strings.Contains(errs, x.stderr) || x.status != 0 && out != "" {
			t.Errorf("streamdb %s: status %d, stdout %q, stderr %q; want %d, %q, %q", strings.Join(x.args, " "), status, out, errs, x.status, x.stdout, x.stderr)
		}
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestServe follows a server through its life: ready, healthy, measured, its
// directory locked, stopped by each signal; and what it was told is there again.
func TestServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for", "it")
	s := serve(t, dir, "--memory-limit", "256MiB", "--log-format", "json", "--log-level", "debug")
	c := s.connect()
	exec1(t, c, "CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)", "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
	for path, want := range map[string]string{"healthz": "ok", "readyz": ""} {
		if status, body := get(t, "http://"+s.http+"/"+path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
	if status, _ := get(t, "http://"+s.http+"/nothing"); status != 404 {
		t.Errorf("an unknown path: %d", status)
	}
	_, metrics := get(t, "http://"+s.http+"/metrics")
	for _, name := range []string{"go_goroutines", "process_open_fds", "streamdb_"} {
		if !strings.Contains(metrics, name) {
			t.Errorf("no metric %s", name)
		}
	}
	line := regexp.MustCompile(`(?m)^streamdb\S+ \S+$`)
	if !line.MatchString(metrics) {
		t.Errorf("no metric of streamdb's own")
	}
	// A second server over the same directory, and one over the same address.
	if out, errs, status := command(t, "serve", "--data-dir", dir, "--pg-addr", "127.0.0.1:0", "--http-addr", ""); status != 1 || !strings.Contains(errs, "stop the other server") || out != "" {
		t.Errorf("a directory in use: %d %q %q", status, out, errs)
	}
	if _, errs, status := command(t, "serve", "--data-dir", t.TempDir(), "--pg-addr", s.addr, "--http-addr", ""); status != 1 || !strings.Contains(errs, "address already in use") {
		t.Errorf("an address in use: %d %q", status, errs)
	}
	for _, line := range strings.Split(strings.TrimSpace(s.log.tail(1<<20)), "\n") {
		var entry struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Level == "" || entry.Msg == "" {
			t.Errorf("log line %q: %v", line, err)
		}
	}
	// SIGTERM and SIGINT end it with status 0; open connections are told why.
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		c := s.connect()
		if err := s.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if err := s.cmd.Wait(); err != nil {
			t.Errorf("%v: %v", sig, err)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%v took %v", sig, took)
		}
		var pe *pgconn.PgError
		if _, err := c.Exec(context.Background(), "SELECT 1"); !errors.As(err, &pe) || pe.Code != "57P01" {
			t.Errorf("a client of a server that is stopped by %v sees %v", sig, err)
		}
		s.start()
		if got := text(t, s.connect(), "SELECT (SELECT n FROM v), (SELECT count(*) FROM t)"); got != "1,1" {
			t.Errorf("after %v: %s", sig, got)
		}
	}
	secondSignal(t, s)
	newerVersion(t, dir)
}

// secondSignal ends a server whose stop is held up, at once.
func secondSignal(t *testing.T, s *instance) {
	t.Helper()
	c := s.connect()
	go func() { _, _ = c.Exec(context.Background(), "SELECT count(*) FROM generate_series(1, 100000000000)") }()
	time.Sleep(300 * time.Millisecond)
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	time.Sleep(300 * time.Millisecond)
	begun := time.Now()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
	if took := time.Since(begun); took > time.Second || s.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the second signal took %v, exit status %d", took, s.cmd.ProcessState.ExitCode())
	}
	s.cmd = nil
}

// newerVersion changes the directory's version, which must be refused.
func newerVersion(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(dir, "FORMAT")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("streamdb data format 99\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, errs, status := command(t, "serve", "--data-dir", dir, "--pg-addr", "127.0.0.1:0", "--http-addr", ""); status != 1 || !strings.Contains(errs, "newer") {
		t.Errorf("a directory of version 99 (ours says %q): %d %q", old, status, errs)
	}
}

// TestDemo starts the demo as a user does, reads its views until they move, and
// ends it with Ctrl-C.
func TestDemo(t *testing.T) {
	addr := freePort(t)
	var errs lockedBuffer
	out := &lockedBuffer{}
	cmd := exec.Command(binary, "demo", "--pg-addr", addr, "--http-addr", freePort(t))
	cmd.Stdout, cmd.Stderr = out, &errs
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(out.tail(1<<20), "Ctrl-C"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the demo does not get ready: %s%s", out.tail(1000), errs.tail(1000))
		}
	}
	c, err := pgx.Connect(context.Background(), "postgres://streamdb@"+addr+"/streamdb?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	// The psql line and the statements that it proposes.
	shown := out.tail(1 << 20)
	host, port, _ := net.SplitHostPort(addr)
	if want := "psql -h " + host + " -p " + port + " -U streamdb streamdb"; !strings.Contains(shown, want) {
		t.Errorf("no line %q in\n%s", want, shown)
	}
	_, try, _ := strings.Cut(shown, "and try:")
	try, _, _ = strings.Cut(try, "Ctrl-C")
	tried := 0
	for _, q := range strings.Split(try, "\n") {
		q = strings.TrimSpace(q)
		if q == "" || strings.HasPrefix(q, `\`) || strings.HasPrefix(q, "COPY (SUBSCRIBE") {
			continue
		}
		tried++
		if _, err := textErr(c, strings.TrimSuffix(q, ";")); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
	if tried < 4 {
		t.Errorf("only %d statements to try", tried)
	}
	for _, view := range []string{"open_orders", "courier_load", "latest_position", "sla_by_zone"} {
		before := text(t, c, "SELECT * FROM "+view+" ORDER BY 1, 2, 3")
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if text(t, c, "SELECT * FROM "+view+" ORDER BY 1, 2, 3") != before {
				break
			}
			if time.Now().After(end) {
				t.Errorf("the view %s does not change", view)
				break
			}
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || errs.tail(1000) != "" {
		t.Errorf("Ctrl-C: %v, stderr %q", err, errs.tail(1000))
	}
	for _, e := range cmd.Env {
		if dir, ok := strings.CutPrefix(e, "TMPDIR="); ok {
			if left, _ := os.ReadDir(dir); len(left) > 0 && dir != os.Getenv("TMPDIR") {
				t.Errorf("the demo leaves %v behind", left[0].Name())
			}
		}
	}
}

// certificate makes a certificate for the loopback address.
func certificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "streamdb test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(crand.Reader, tmpl, tmpl, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	pk, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := errors.Join(os.WriteFile(cert, certPEM, 0o600), os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pk}), 0o600)); err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return cert, key, roots
}

// TestSecureConnections uses a certificate and passwords, through pgx and psql.
func TestSecureConnections(t *testing.T) {
	ctx := context.Background()
	cert, key, roots := certificate(t)
	passwords := filepath.Join(t.TempDir(), "passwords")
	if err := os.WriteFile(passwords, []byte("# who may come in\nann:pa:ss word\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, t.TempDir(), "--tls-cert", cert, "--tls-key", key, "--password-file", passwords)
	connect := func(user, password, mode string) (*pgx.Conn, error) {
		cfg, err := pgx.ParseConfig("postgres://" + user + "@" + s.addr + "/streamdb?sslmode=" + mode)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Password = password
		if mode == "require" {
			cfg.TLSConfig = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
		}
		return pgx.ConnectConfig(ctx, cfg)
	}
	for _, mode := range []string{"require", "disable"} {
		c, err := connect("ann", "pa:ss word", mode)
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		if _, isTLS := c.PgConn().Conn().(*tls.Conn); isTLS != (mode == "require") {
			t.Errorf("%s: TLS %v", mode, isTLS)
		}
		if got := text(t, c, "SELECT current_user, repeat('x', 100000) = repeat('x', 100000)"); got != "ann,t" {
			t.Errorf("%s: %s", mode, got)
		}
		// A cancel request goes over a connection of its own, TLS too.
		cctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		go func() { <-cctx.Done(); _ = c.PgConn().CancelRequest(ctx) }()
		_, err = c.Exec(ctx, "SELECT count(*) FROM generate_series(1, 100000000000)")
		cancel()
		var pe *pgconn.PgError
		if !errors.As(err, &pe) || pe.Code != "57014" {
			t.Errorf("%s: cancelled: %v", mode, err)
		}
		if got := text(t, c, "SELECT 1"); got != "1" {
			t.Errorf("%s: after a cancel: %s", mode, got)
		}
		c.Close(ctx)
	}
	for _, x := range [][2]string{{"ann", "wrong"}, {"ann", ""}, {"bob", "pa:ss word"}} {
		_, err := connect(x[0], x[1], "require")
		var pe *pgconn.PgError
		if !errors.As(err, &pe) || pe.Code != "28P01" {
			t.Errorf("user %s with password %q: %v", x[0], x[1], err)
		}
	}
	if out := psqlScript(t, "host=127.0.0.1 port="+s.addr[strings.LastIndexByte(s.addr, ':')+1:]+" user=ann password='pa:ss word' dbname=streamdb sslmode=verify-ca sslrootcert="+cert, "SELECT 1 AS one;\n\\conninfo\n"); !strings.Contains(out, "(1 row)") || !strings.Contains(out, "SSL connection") {
		t.Errorf("psql over TLS: %s", out)
	}
}

// TestParameterStatus checks what drivers insist on at the start.
func TestParameterStatus(t *testing.T) {
	c := serve(t, t.TempDir()).connect()
	for name, want := range map[string]string{"server_version": "15", "server_encoding": "UTF8", "client_encoding": "UTF8", "DateStyle": "ISO, MDY", "IntervalStyle": "postgres", "TimeZone": "UTC",
		"integer_datetimes": "on", "standard_conforming_strings": "on", "is_superuser": "on", "session_authorization": "tester", "application_name": "", "default_transaction_read_only": "off", "in_hot_standby": "off"} {
		if got := c.PgConn().ParameterStatus(name); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestSltCommand runs the sqllogictest runner: embedded and over the wire, in
// parallel, with its reports, its exit status, and its update mode.
func TestSltCommand(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := write("good.slt", "statement ok\nCREATE TABLE t (a INT)\n\nstatement ok\nINSERT INTO t VALUES (1), (2)\n\nquery I rowsort\nSELECT a FROM t\n----\n1\n2\n\nstatement error\nSELECT nope\n")
	also := write("also.test", "statement ok\nCREATE TABLE t (a INTEGER, b VARCHAR(10))\n\nquery I nosort\nSELECT count(*) FROM t\n----\n0\n")
	bad := write("bad.slt", "query I\nSELECT 1 + 1\n----\n3\n")
	junit, report := filepath.Join(dir, "junit.xml"), filepath.Join(dir, "report.json")
	out, errs, status := command(t, "slt", good, also)
	if status != 0 {
		t.Errorf("good files: %d %s %s", status, out, errs)
	}
	out, errs, status = command(t, "slt", "--jobs", "2", "--junit", junit, "--json", report, dir)
	if status != 1 || !strings.Contains(out+errs, "bad.slt:1") {
		t.Errorf("a directory with a bad file: %d\n%s\n%s", status, out, errs)
	}
	if b, err := os.ReadFile(junit); err != nil || !strings.Contains(string(b), "<failure") || !strings.Contains(string(b), "<testsuite") {
		t.Errorf("junit: %s %v", b, err)
	}
	var parsed any
	if b, err := os.ReadFile(report); err != nil || json.Unmarshal(b, &parsed) != nil || !strings.Contains(string(b), "bad.slt") {
		t.Errorf("json: %s %v", b, err)
	}
	s := serve(t, t.TempDir())
	if out, errs, status := command(t, "slt", "--dsn", s.dsn(), good); status != 0 {
		t.Errorf("over the wire: %d %s %s", status, out, errs)
	}
	if _, _, status := command(t, "slt", "--dsn", "postgres://x@127.0.0.1:1/x", good); status == 0 {
		t.Errorf("a server that is not there: %d", status)
	}
	if out, errs, status := command(t, "slt", "--update", bad); status != 0 {
		t.Errorf("update: %d %s %s", status, out, errs)
	}
	if b, _ := os.ReadFile(bad); string(b) != "query I\nSELECT 1 + 1\n----\n2\n" {
		t.Errorf("updated: %q", b)
	}
	if _, _, status := command(t, "slt", dir); status != 0 {
		t.Errorf("after the update: %d", status)
	}
}
