package pgwire

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t testing.TB, addr, extra string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), "postgres://joe@"+addr+"/db?sslmode=disable"+extra)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func codeOf(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return fmt.Sprint(err)
}

func TestPgxModes(t *testing.T) {
	_, _, addr := startServer(t, Options{})
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			c := connect(t, addr, "&default_query_exec_mode="+mode)
			for range 3 {
				rows, err := c.Query(t.Context(), "rows 100")
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for rows.Next() {
					var k int64
					var s *string
					if err := rows.Scan(&k, &s); err != nil {
						t.Fatal(err)
					}
					if k != int64(n) || (s == nil) != (n%3 == 2) {
						t.Fatalf("row %d: %d %v", n, k, s)
					}
					n++
				}
				if rows.Err() != nil || n != 100 || rows.CommandTag().String() != "SELECT 100" {
					t.Fatalf("%d rows, tag %q, error %v", n, rows.CommandTag(), rows.Err())
				}
			}
			if _, err := c.Exec(t.Context(), "fail 22012 division by zero"); codeOf(err) != "22012" {
				t.Fatalf("got %v", err)
			}
			if err := c.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestPgxBatchAndCopy(t *testing.T) {
	_, _, addr := startServer(t, Options{})
	c := connect(t, addr, "")
	b := &pgx.Batch{}
	const n = 500
	for i := range n {
		b.Queue("select $1", i)
	}
	res := c.SendBatch(t.Context(), b)
	for i := range n {
		var got int
		if err := res.QueryRow().Scan(&got); err != nil || got != i {
			t.Fatalf("%d: %d %v", i, got, err)
		}
	}
	if err := res.Close(); err != nil {
		t.Fatal(err)
	}
	// large enough to need many reads and to grow the buffer
	data := strings.Repeat(strings.Repeat("x", 999)+"\n", 3000)
	tag, err := c.PgConn().CopyFrom(t.Context(), strings.NewReader(data), "copyin")
	if err != nil || tag.RowsAffected() != 3000 {
		t.Fatalf("copy in: %v %v", tag, err)
	}
	if _, err := c.PgConn().CopyFrom(t.Context(), strings.NewReader(data), "copyin early"); codeOf(err) != "22P04" {
		t.Fatalf("copy in that fails early: %v", err)
	}
	var out bytes.Buffer
	if tag, err = c.PgConn().CopyTo(t.Context(), &out, "copyout 100000"); err != nil || tag.RowsAffected() != 100000 {
		t.Fatalf("copy out: %v %v", tag, err)
	}
	if out.Len() != 588890 || !strings.HasSuffix(out.String(), "\n99999\n") {
		t.Fatalf("copy out gave %d bytes", out.Len())
	}
	rows, err := c.PgConn().Exec(t.Context(), "rows 100000").ReadAll()
	if err != nil || len(rows[0].Rows) != 100000 {
		t.Fatalf("a large result: %v", err)
	}
}

func TestCancel(t *testing.T) {
	s, b, addr := startServer(t, Options{})
	c := connect(t, addr, "").PgConn()
	for i := range 3 {
		done := make(chan error, 1)
		go func() {
			_, err := c.Exec(context.Background(), "sleep").ReadAll()
			done <- err
		}()
		<-b.sleeping
		if i == 2 { // long enough for the watcher to sit on the socket
			time.Sleep(3 * watchInterval)
		}
		// a wrong secret, a wrong pid
		forged := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 16, 4, 210, 22, 46}, c.PID())
		for _, tail := range [][]byte{{1, 2, 3, 4}, {0, 0, 0, 0}} {
			rawCancel(t, addr, append(bytes.Clone(forged), tail...))
		}
		select {
		case err := <-done:
			t.Fatalf("cancelled without the secret: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		if i == 1 {
			if !s.Cancel(c.PID()) || s.Cancel(0) {
				t.Fatal("Cancel does not know its sessions")
			}
		} else if err := c.CancelRequest(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; codeOf(err) != "57014" {
			t.Fatalf("got %v", err)
		}
		<-b.cancelled
		// the session goes on
		if _, err := c.Exec(t.Context(), "select 1").ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	// a request that comes too late hits nothing
	if err := c.CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "select 1").ReadAll(); err != nil {
		t.Fatal(err)
	}
	if n := s.Stats().Cancels; n != 2 {
		t.Fatalf("%d cancels counted", n)
	}
}

func rawCancel(t *testing.T, addr string, msg []byte) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Write(msg); err != nil {
		t.Fatal(err)
	}
	if n, err := nc.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Fatalf("a cancel request was answered: %d %v", n, err)
	}
}

func TestCancelCopyIn(t *testing.T) {
	s, b, addr := startServer(t, Options{})
	p := newPlayer(t, addr)
	p.say("Startup user=joe")
	p.hear(1)
	p.say(`Query "copyin wait"`)
	p.say(`CopyData "1\n"`)
	<-b.sleeping
	time.Sleep(10 * time.Millisecond)
	if !s.Cancel(1) {
		t.Fatal("no session 1")
	}
	got := strings.Join(p.hear(1), "\n")
	p.say("CopyDone")
	p.say(`Query "select 1"`)
	got += "\n" + strings.Join(p.hear(1), "\n")
	if !strings.Contains(got, "57014") || !strings.HasSuffix(got, "CommandComplete SELECT 1\nReadyForQuery I") {
		t.Fatal(got)
	}
}

func TestClientDisconnectCancels(t *testing.T) {
	_, b, addr := startServer(t, Options{})
	for _, pipelined := range []string{"", "X\x00\x00\x00\x04"} {
		p := newPlayer(t, addr)
		p.say("Startup user=joe")
		p.hear(1)
		p.say(`Query "sleep"`)
		<-b.sleeping
		_, _ = io.WriteString(p.nc, pipelined)
		p.nc.Close()
		select {
		case err := <-b.cancelled:
			if err != errClientGone {
				t.Fatalf("cause %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("the statement goes on without its client")
		}
	}
	waitFor(t, "the sessions to end", func() bool { return b.closed.Load() == 2 })
}

// What a watcher reads ahead is not lost.
func TestPipelinedBehindSlowStatement(t *testing.T) {
	s, b, addr := startServer(t, Options{})
	p := newPlayer(t, addr)
	p.say("Startup user=joe")
	p.hear(1)
	p.say(`Query "sleep"`)
	<-b.sleeping
	big := strings.Repeat("x", 100_000)
	for i := range 3 {
		p.say(`Query "select ` + fmt.Sprint(i) + `"`)
		p.say(`Query "notice ` + big + `"`)
		time.Sleep(2 * watchInterval)
	}
	s.Cancel(1)
	got := strings.Join(p.hear(7), "\n")
	if strings.Count(got, big) != 3 || !strings.Contains(got, `DataRow "2"`) || !strings.Contains(got, "57014") {
		t.Fatalf("%.2000s", got)
	}
}

func TestTooManyConnections(t *testing.T) {
	_, b, addr := startServer(t, Options{MaxConns: 2})
	c := connect(t, addr, "")
	connect(t, addr, "")
	if _, err := pgx.Connect(t.Context(), "postgres://joe@"+addr+"/db?sslmode=disable"); codeOf(err) != "53300" {
		t.Fatalf("got %v", err)
	}
	_ = c.Close(t.Context())
	waitFor(t, "the session to end", func() bool { return b.closed.Load() == 1 })
	waitFor(t, "a free place", func() bool {
		c, err := pgx.Connect(t.Context(), "postgres://joe@"+addr+"/db?sslmode=disable")
		if err != nil {
			return false
		}
		return c.Close(t.Context()) == nil
	})
}

func TestStartupTimeout(t *testing.T) {
	s, _, addr := startServer(t, Options{StartupTimeout: 50 * time.Millisecond, Auth: Users{Method: MethodSCRAM}})
	for _, first := range []string{"", "\x00\x00", "\x00\x00\x00\x08\x04\xd2\x16\x2f"} { // nothing, a part, SSLRequest
		p := newPlayer(t, addr)
		_, _ = io.WriteString(p.nc, first)
		_ = p.nc.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := io.ReadAll(p.nc); err != nil {
			t.Fatal(err)
		}
	}
	p := newPlayer(t, addr)
	p.say("Startup user=joe")
	if got := strings.Join(p.hear(1), "\n"); !strings.Contains(got, "canceling authentication due to timeout") {
		t.Fatal(got)
	}
	if st := s.Stats(); st.Refused != 4-3 || st.Accepted != 4 {
		t.Logf("stats %+v", st)
	}
}

func TestWriteTimeout(t *testing.T) {
	_, b, addr := startServer(t, Options{WriteTimeout: 100 * time.Millisecond})
	p := newPlayer(t, addr)
	p.say("Startup user=joe")
	p.hear(1)
	p.say(`Query "copyout 5000000"`) // and nobody reads
	waitFor(t, "the connection to be closed", func() bool { return b.closed.Load() == 1 })
}

func TestShutdown(t *testing.T) {
	s, b, addr := startServer(t, Options{})
	idle, busy := newPlayer(t, addr), newPlayer(t, addr)
	for _, p := range []*player{idle, busy} {
		p.say("Startup user=joe")
		p.hear(1)
	}
	busy.say(`Query "sleep"`)
	<-b.sleeping
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	if got := strings.Join(idle.hear(1), "\n"); got != `ErrorResponse FATAL/FATAL 57P01 "terminating connection due to administrator command"`+"\nclosed" {
		t.Fatal(got)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Fatal("the listener is still open")
	}
	select {
	case err := <-down:
		t.Fatalf("shut down while a statement runs: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	s.Cancel(2)
	if got := strings.Join(busy.hear(2), "\n"); !strings.Contains(got, "57014") || !strings.Contains(got, "57P01") {
		t.Fatal(got)
	}
	if err := <-down; err != nil {
		t.Fatal(err)
	}
}

func TestHardStop(t *testing.T) {
	s, b, addr := startServer(t, Options{})
	p := newPlayer(t, addr)
	p.say("Startup user=joe")
	p.hear(1)
	p.say(`Query "sleep"`)
	<-b.sleeping
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); err != context.DeadlineExceeded {
		t.Fatal(err)
	}
	if b.closed.Load() != 1 {
		t.Fatal("the session was not closed")
	}
}

func TestServeContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, newFakeBackend(), Options{ShutdownGrace: 20 * time.Millisecond}) }()
	c := connect(t, l.Addr().String(), "")
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()); err == nil {
		t.Fatal("still alive")
	}
}

func TestTerminate(t *testing.T) {
	s, b, addr := startServer(t, Options{})
	for i, sql := range []string{"select 1", "sleep"} {
		p := newPlayer(t, addr)
		p.say("Startup user=joe")
		p.hear(1)
		p.say(`Query "` + sql + `"`)
		if sql == "sleep" {
			<-b.sleeping
		} else {
			p.hear(1)
		}
		if !s.Terminate(uint32(i + 1)) {
			t.Fatal("no such session")
		}
		if got := strings.Join(p.hear(1), "\n"); !strings.Contains(got, "FATAL/FATAL 57P01") {
			t.Fatal(got)
		}
	}
}

func testCertificate(t *testing.T) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func TestTLS(t *testing.T) {
	_, b, addr := startServer(t, Options{TLSConfig: testCertificate(t)})
	for _, extra := range []string{"sslmode=require", "sslmode=require&sslnegotiation=direct"} {
		c, err := pgx.Connect(t.Context(), "postgres://joe@"+addr+"/db?"+extra)
		if err != nil {
			t.Fatal(extra, err)
		}
		if _, ok := c.PgConn().Conn().(*tls.Conn); !ok {
			t.Fatal("not encrypted")
		}
		// a watcher that sits on the TLS connection is called off without harm
		done := make(chan error, 1)
		go func() {
			_, err := c.PgConn().Exec(context.Background(), "sleep").ReadAll()
			done <- err
		}()
		<-b.sleeping
		time.Sleep(3 * watchInterval)
		if err := c.PgConn().CancelRequest(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; codeOf(err) != "57014" {
			t.Fatal(err)
		}
		rows, err := c.PgConn().Exec(t.Context(), "rows 100000").ReadAll()
		if err != nil || len(rows[0].Rows) != 100000 {
			t.Fatal(err)
		}
		_ = c.Close(t.Context())
	}
	// plain connections are still served
	connect(t, addr, "")
	// bytes behind an SSLRequest that are not TLS
	p := newPlayer(t, addr)
	_, _ = io.WriteString(p.nc, "\x00\x00\x00\x08\x04\xd2\x16\x2f\x00\x00\x00\x10\x00\x03\x00\x00user\x00joe\x00\x00")
	_ = p.nc.SetReadDeadline(time.Now().Add(5 * time.Second))
	if got, _ := io.ReadAll(p.nc); got[0] != 'S' || !strings.Contains(string(got), "received unencrypted data after SSL request") {
		t.Fatalf("%q", got)
	}
}

func TestEncryptionRefused(t *testing.T) {
	_, _, addr := startServer(t, Options{})
	p := newPlayer(t, addr)
	for _, req := range []string{"\x00\x00\x00\x08\x04\xd2\x16\x30", "\x00\x00\x00\x08\x04\xd2\x16\x2f"} { // GSS, then SSL
		one := make([]byte, 1)
		_, _ = io.WriteString(p.nc, req)
		if _, err := io.ReadFull(p.nc, one); err != nil || one[0] != 'N' {
			t.Fatalf("%q %v", one, err)
		}
	}
	p.say("Startup user=joe")
	if got := p.hear(1); got[len(got)-1] != "ReadyForQuery I" {
		t.Fatal(got)
	}
}

func TestPasswords(t *testing.T) {
	const odd = "pa\u00a0sswörd" // a no-break space is a space
	users := map[string]*Verifier{"joe": NewVerifier("secret"), "odd": NewVerifier(odd)}
	stored, err := ParseVerifier(users["joe"].String())
	if err != nil {
		t.Fatal(err)
	}
	users["joe"] = stored
	for _, method := range []Method{MethodPassword, MethodSCRAM} {
		_, _, addr := startServer(t, Options{Auth: Users{Method: method, Verifiers: users}})
		for _, tc := range []struct{ user, password, want string }{
			{"joe", "secret", ""}, {"joe", "Secret", "28P01"}, {"joe", "", "28P01"}, {"nobody", "secret", "28P01"},
			{"odd", odd, ""}, {"odd", "pa sswörd", ""},
		} {
			cfg, err := pgx.ParseConfig("postgres://" + addr + "/db?sslmode=disable")
			if err != nil {
				t.Fatal(err)
			}
			cfg.User, cfg.Password = tc.user, tc.password
			c, err := pgx.ConnectConfig(t.Context(), cfg)
			if err == nil {
				_ = c.Close(t.Context())
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || codeOf(err) != tc.want) {
				t.Errorf("method %d, %s %q: %v", method, tc.user, tc.password, err)
			}
		}
	}
	_, _, addr := startServer(t, Options{Auth: Users{}})
	if _, err := pgx.Connect(t.Context(), "postgres://joe@"+addr+"/db?sslmode=disable"); codeOf(err) != "28000" {
		t.Fatalf("no method: %v", err)
	}
}

func TestSASLPrep(t *testing.T) {
	for in, want := range map[string]string{"plain": "plain", "a\u00a0b": "a b", "a\u00adb": "ab", "\u2168": "IX", "\u00aa": "a",
		"e\u0301": "\u00e9", "\xff\u00a0": "\xff\u00a0"} {
		if got := saslPrep(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestVerifierForms(t *testing.T) {
	good := NewVerifier("x").String()
	for _, s := range []string{"", "SCRAM-SHA-256$", "md5abc", strings.Replace(good, "4096", "0", 1),
		strings.Replace(good, "$", "%", 2), good[:len(good)-8], good + "="} {
		if _, err := ParseVerifier(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

func TestLocalTrust(t *testing.T) {
	for addr, want := range map[string]Method{"127.0.0.1:1": MethodTrust, "[::1]:1": MethodTrust, "@": MethodTrust, "pipe": MethodTrust,
		"192.0.2.1:1": MethodReject, "[2001:db8::1]:1": MethodReject} {
		c, _ := LocalTrust{}.Credential(t.Context(), "u", "d", ConnInfo{RemoteAddr: addr})
		if c.Method != want {
			t.Errorf("%s: method %d", addr, c.Method)
		}
	}
}
