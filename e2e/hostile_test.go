package e2e

import (
	"context"
	bits "encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/twmb/franz-go/pkg/kgo"
)

// usage is what a server must not leak.
type usage struct{ goroutines, files float64 }

func (s *instance) usage() usage {
	s.t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		s.t.Skip(err)
	}
	return usage{s.metric("go_goroutines"), float64(len(fds))}
}

// checkLeaks waits until the server uses about what it did before.
func (s *instance) checkLeaks(before usage) {
	s.t.Helper()
	var now usage
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if now = s.usage(); now.goroutines <= before.goroutines+5 && now.files <= before.files+5 {
			return
		}
	}
	s.t.Errorf("before: %v goroutines and %v files, after: %v and %v", before.goroutines, before.files, now.goroutines, now.files)
}

// startupMessage begins a connection as a client does.
func startupMessage() []byte {
	b, err := (&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "tester", "database": "streamdb"}}).Encode(nil)
	if err != nil {
		panic(err)
	}
	return b
}

// TestGarbageOnTheWire sends what no client should: nothing of it may hurt the
// server or those who talk to it meanwhile, nor stay.
func TestGarbageOnTheWire(t *testing.T) {
	s := serve(t, t.TempDir())
	c := s.connect()
	exec1(t, c, "CREATE TABLE t (a int)", "INSERT INTO t SELECT generate_series(1, 1000)")
	_ = text(t, c, "SELECT sum(a) FROM t")
	before := s.usage()
	seed := testSeed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	message := func(kind byte, length uint32, body []byte) []byte {
		return append(bits.BigEndian.AppendUint32([]byte{kind}, length), body...)
	}
	query := func(sql string) []byte { return message('Q', uint32(len(sql)+5), append([]byte(sql), 0)) }
	var attacks [][]byte
	for range 60 {
		attacks = append(attacks, noise(1+rnd.IntN(200)), append(startupMessage(), noise(1+rnd.IntN(200))...))
	}
	for _, kind := range []byte("QPBEDSCHXdcfFp\x00\xff") {
		for _, length := range []uint32{0, 3, 4, 5, 100, 1 << 20, 1<<30 - 1, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
			attacks = append(attacks, append(startupMessage(), message(kind, length, noise(rnd.IntN(100)))...))
		}
	}
	attacks = append(attacks,
		[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		bits.BigEndian.AppendUint32(bits.BigEndian.AppendUint32(nil, 1<<31-1), 196608),        // a startup packet of 2 GiB
		bits.BigEndian.AppendUint32(bits.BigEndian.AppendUint32(nil, 8), 99<<16),              // version 99
		bits.BigEndian.AppendUint32(bits.BigEndian.AppendUint32(nil, 8), 80877103),            // SSL, then nothing
		append(startupMessage(), query("SELECT \xff\xfe")...),                                 // not UTF-8
		append(startupMessage(), query("SELECT "+strings.Repeat("(", 100000))...),             // deep
		append(startupMessage(), query("SELECT "+strings.Repeat("1+", 50000)+"1")...),         // long
		append(startupMessage(), query(strings.Repeat("SELECT 1;", 10000))...),                // many
		append(startupMessage(), message('B', 10, []byte{0, 0, 0xff, 0xff, 0xff, 0xff})...),   // 65535 formats that are not there
		append(startupMessage(), message('B', 12, []byte{0, 0, 0, 0, 0x7f, 0xff, 0, 0})...),   // 32767 parameters that are not there
		append(startupMessage(), append(query("COPY t FROM STDIN"), noise(500)...)...),        // noise as COPY data
		append(startupMessage(), append(query("COPY t FROM STDIN"), query("SELECT 1")...)...)) // a query within COPY
	var wg sync.WaitGroup
	todo := make(chan []byte)
	for range 4 {
		wg.Go(func() {
			for b := range todo {
				attack(t, s.addr, b)
			}
		})
	}
	for i, b := range attacks {
		todo <- b
		if i%20 == 0 {
			if got := text(t, c, "SELECT sum(a) FROM t"); got != "500500" {
				t.Errorf("meanwhile another client reads %s", got)
			}
		}
	}
	close(todo)
	wg.Wait()
	// Half-open clients: connected, started, within a transaction; then silent,
	// and gone without a word.
	var open []net.Conn
	for i := range 30 {
		nc, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, nc)
		if i%3 > 0 {
			_, _ = nc.Write(startupMessage())
		}
		if i%3 > 1 {
			_, _ = nc.Write(query("BEGIN; DELETE FROM t WHERE a = 1"))
		}
	}
	if got := text(t, c, "SELECT sum(a) FROM t"); got != "500500" {
		t.Errorf("beside half-open clients another one reads %s", got)
	}
	for _, nc := range open {
		if tc, ok := nc.(*net.TCPConn); ok {
			_ = tc.SetLinger(0) // a reset
		}
		_ = nc.Close()
	}
	exec1(t, c, "DELETE FROM t WHERE a = 1") // no lock is left
	// A client that asks for much and does not read it.
	slow, err := pgconn.Connect(context.Background(), s.dsn())
	if err != nil {
		t.Fatal(err)
	}
	h, err := slow.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = h.Conn.Write(query("SELECT repeat('x', 1000) FROM generate_series(1, 100000000)"))
	time.Sleep(300 * time.Millisecond)
	exec1(t, c, "INSERT INTO t VALUES (1)")
	if heap := s.metric("go_memstats_heap_inuse_bytes"); heap > 500<<20 {
		t.Errorf("a client that does not read costs %.0f MiB", heap/(1<<20))
	}
	_ = h.Conn.Close()
	s.checkLeaks(before)
	if strings.Contains(s.log.tail(1<<20), "panic") {
		t.Errorf("something panicked:\n%s", s.log.tail(4000))
	}
	s.stop()
}

// attack sends bytes and reads what comes back until the server is tired of it
// or silent.
func attack(t *testing.T, addr string, b []byte) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(150 * time.Millisecond))
	_, _ = nc.Write(b)
	_, _ = io.Copy(io.Discard, nc)
}

// proxy passes connections on to an address, until it is cut.
type proxy struct {
	l      net.Listener
	target string
	mu     sync.Mutex
	conns  map[net.Conn]bool
	down   bool
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: target, conns: map[net.Conn]bool{}}
	t.Cleanup(func() { l.Close(); p.set(true) })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(in)
		}
	}()
	return p
}

func (p *proxy) serve(in net.Conn) {
	defer in.Close()
	p.mu.Lock()
	down := p.down
	p.mu.Unlock()
	if down {
		return
	}
	out, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer out.Close()
	p.mu.Lock()
	p.conns[in], p.conns[out] = true, true
	p.mu.Unlock()
	done := make(chan struct{}, 2)
	pass := func(to, from net.Conn) { _, _ = io.Copy(to, from); done <- struct{}{} }
	go pass(in, out)
	go pass(out, in)
	<-done
	p.mu.Lock()
	delete(p.conns, in)
	delete(p.conns, out)
	p.mu.Unlock()
}

// set cuts all connections and refuses new ones, or lets them through again.
func (p *proxy) set(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	if down {
		for c := range p.conns {
			_ = c.Close()
		}
	}
}

// TestUpstreamGoesAway cuts the way to the upstream PostgreSQL, several times,
// while it changes: the source says what is wrong, and has everything once it is
// back.
func TestUpstreamGoesAway(t *testing.T) {
	up, createConn := upstream(t)
	cfg := up.Config()
	p := newProxy(t, fmt.Sprintf("%s:%d", cfg.Host, cfg.Port))
	_, port, _ := net.SplitHostPort(p.l.Addr().String())
	exec1(t, up, "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL)", "INSERT INTO account SELECT i, 100 FROM generate_series(1, 50) i", "CREATE PUBLICATION pub FOR ALL TABLES")
	s := serve(t, t.TempDir(), "--checkpoint-interval", "300ms")
	c := s.connect()
	exec1(t, c, strings.Replace(createConn, fmt.Sprintf("PORT %d", cfg.Port), "PORT "+port, 1),
		"CREATE SOURCE bank FROM POSTGRES CONNECTION up (PUBLICATION 'pub') FOR ALL TABLES", "CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS s, count(*) AS n FROM account")
	eventually(t, c, "SELECT s, n FROM total", "5000,50")
	before := s.usage()
	for round := range 3 {
		p.set(true)
		exec1(t, up, "UPDATE account SET balance = balance + 1 WHERE id <= 25", "UPDATE account SET balance = balance - 1 WHERE id BETWEEN 26 AND 50", fmt.Sprintf("INSERT INTO account VALUES (%d, 0)", 100+round))
		eventually(t, c, "SELECT state <> 'running' AND error <> '' FROM streamdb_internal.sources WHERE name = 'bank'", "t")
		if got := text(t, c, "SELECT s, n FROM total"); got != fmt.Sprintf("5000,%d", 50+round) {
			t.Errorf("while the upstream is away, the view is %s", got)
		}
		if round == 1 {
			s.kill() // and starts while it is away
			s.start("--checkpoint-interval", "300ms")
			c = s.connect()
			if got := text(t, c, "SELECT s, n FROM total"); got != fmt.Sprintf("5000,%d", 50+round) {
				t.Errorf("after a restart without the upstream, the view is %s", got)
			}
		}
		p.set(false)
		eventually(t, c, "SELECT s, n FROM total", fmt.Sprintf("5000,%d", 51+round))
		eventually(t, c, "SELECT state, error FROM streamdb_internal.sources WHERE name = 'bank'", "running,")
		eventually(t, c, "SELECT id, balance FROM account ORDER BY id", text(t, up, "SELECT id, balance FROM account ORDER BY id"))
	}
	s.checkLeaks(before)
}

// TestRegistryGoesAway takes the schema registry away before a schema is known:
// the source waits for it, and loses nothing.
func TestRegistryGoesAway(t *testing.T) {
	shop := newShop(t)
	u, err := url.Parse(shop.registry)
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, u.Host)
	u.Host = p.l.Addr().String()
	for i := range int64(10) {
		shop.order(i, 1, 100, "paid")
	}
	s := serve(t, t.TempDir())
	c := s.connect()
	exec1(t, c, fmt.Sprintf("CREATE SOURCE orders FROM KAFKA BROKER '%s' TOPIC '%s' FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '%s'", shop.broker, shop.topic, u))
	eventually(t, c, "SELECT count(*), sum(amount) FROM orders", "10,10.00")
	p.set(true)
	shop.order(10, 1, 100, "paid") // of a schema that is known
	eventually(t, c, "SELECT count(*) FROM orders", "11")
	// A schema that is not known yet.
	evolved := strings.Replace(orderSchema, `"default":null}]`, `"default":null},{"name":"note","type":["null","string"],"default":null}]`, 1)
	id := shop.register("-value", evolved)
	record := bits.BigEndian.AppendUint32([]byte{0}, id)
	record = append(record, 22, 2, 2, 100, 2, 8)
	record = append(append(record, "paid"...), 0)
	shop.put(&kgo.Record{Value: record})
	time.Sleep(500 * time.Millisecond)
	if got := text(t, c, "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM orders_errors)"); got != "11,0" {
		t.Errorf("while the registry is away: %s", got)
	}
	if _, err := textErr(c, fmt.Sprintf("CREATE SOURCE second FROM KAFKA BROKER '%s' TOPIC '%s' FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '%s'", shop.broker, shop.topic, u)); err == nil {
		t.Error("a source is made without its registry")
	}
	p.set(false)
	eventually(t, c, "SELECT count(*), sum(amount), max(id) FROM orders", "12,12.00,11")
	eventually(t, c, "SELECT count(*) FROM orders_errors", "0")
}
