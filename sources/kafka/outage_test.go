package kafka

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamdb/streamdb/sources"
)

// ownBroker is a broker that a test may stop.
type ownBroker struct {
	t    *testing.T
	dir  string
	jars string
	port int
	cmd  *exec.Cmd
}

// startOwnBroker starts a broker of the kind that scripts/services.sh installs.
// more, if not nil, gives further properties (later ones count) and arguments
// for formatting its storage.
func startOwnBroker(t *testing.T, more func(b *ownBroker, controller int) (props string, format []string)) *ownBroker {
	t.Helper()
	service(t, "STREAMDB_TEST_KAFKA")
	jars, err := filepath.Abs("../../.deps/kafka")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(jars, ".complete")); err != nil {
		if os.Getenv("STREAMDB_REQUIRE_ALL") == "1" {
			t.Fatal(err)
		}
		t.Skip("Kafka is not installed in .deps")
	}
	b := &ownBroker{t: t, dir: t.TempDir(), jars: jars + "/*", port: freePort(t)}
	controller := freePort(t)
	props := fmt.Sprintf(`process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%[2]d
listeners=PLAINTEXT://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d
advertised.listeners=PLAINTEXT://127.0.0.1:%[1]d
controller.listener.names=CONTROLLER
log.dirs=%[3]s/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
`, b.port, controller, b.dir)
	args := []string{"-cp", b.jars, "kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", b.dir + "/server.properties"}
	if more != nil {
		p, format := more(b, controller)
		props += p
		args = append(args, format...)
	}
	if err := os.WriteFile(b.dir+"/server.properties", []byte(props), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("java", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (b *ownBroker) addr() string { return fmt.Sprintf("127.0.0.1:%d", b.port) }

func (b *ownBroker) start() {
	b.t.Helper()
	began := time.Now()
	defer func() { b.t.Logf("the broker took %s to start", time.Since(began).Round(time.Millisecond)) }()
	log, err := os.Create(b.dir + "/log")
	if err != nil {
		b.t.Fatal(err)
	}
	defer log.Close()
	b.cmd = exec.Command("java", "-Xmx256m", "-cp", b.jars, "kafka.Kafka", b.dir+"/server.properties")
	b.cmd.Stdout, b.cmd.Stderr = log, log
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr()), kgo.DisableClientMetrics())
	if err != nil {
		b.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	for cl.Ping(ctx) != nil {
		if ctx.Err() != nil {
			text, _ := os.ReadFile(b.dir + "/log")
			b.t.Fatalf("the broker did not start: %s", text)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// stop ends the broker at once.
func (b *ownBroker) stop() {
	if b.cmd == nil {
		return
	}
	if err := b.cmd.Process.Kill(); err != nil {
		b.t.Error(err)
	}
	_ = b.cmd.Wait() // its exit status tells of the signal
	b.cmd = nil
}

// TestBrokerOutage goes on by itself when the broker returns, tells that it is
// gone meanwhile, and neither loses nor repeats a record.
func TestBrokerOutage(t *testing.T) {
	b := startOwnBroker(t, nil)
	c := clusterAt(t, b.addr())
	c.create("t", 2, nil)
	c.produce(rec("t", 0, "-", "a"), rec("t", 1, "-", "b"))
	opts := c.options("t", "format", "text")
	s := declare(t, opts, nil)
	r := start(t, s, nil, newSink(s))
	r.until(t, "the snapshot", ready)
	b.stop()
	r.until(t, "the stall to be told", func(k *sink) bool { return k.status.State == "stalled" })
	if e := r.status.Error; !strings.Contains(e, b.addr()) {
		t.Errorf("status error %q does not name the broker", e)
	}
	b.start()
	c2 := clusterAt(t, b.addr())
	c2.produce(rec("t", 0, "-", "c"), rec("t", 1, "-", "d"))
	r.until(t, "the records after it", func(k *sink) bool { return k.records == 4 })
	r.until(t, "the recovery to be told", func(k *sink) bool { return k.status.State == "running" && k.status.Error == "" })
	pos := r.stop()
	equal(t, r.content(), []string{"a", "b", "c", "d"})

	// A source that starts while the broker is away waits for it.
	b.stop()
	s = again(t, s, opts)
	r = start(t, s, pos, newSink(s))
	r.until(t, "the stall to be told", func(k *sink) bool {
		return k.status.State == "stalled" && strings.Contains(k.status.Error, "connection refused")
	})
	b.start()
	c3 := clusterAt(t, b.addr())
	c3.produce(rec("t", 0, "-", "e"))
	r.until(t, "the record after it", func(k *sink) bool { return k.records == 1 })
	r.stop()
	equal(t, r.content(), []string{"e"})
}

// TestRetentionWhileRunning loses records to deletion between two sessions.
func TestRetentionWhileRunning(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(1)
	for i := range 100 {
		c.produce(rec(topic, 0, "-", fmt.Sprint(i)))
	}
	s := declare(t, c.options(topic, "format", "text"), nil)
	k := newSink(s)
	// The source is held up at offset 0 while its next records are deleted.
	var held atomic.Bool
	held.Store(true)
	k.gate = func(ch *sources.Chunk) error {
		if len(ch.Tables) > 0 && held.CompareAndSwap(true, false) {
			offs := kadm.Offsets{}
			offs.Add(kadm.Offset{Topic: topic, Partition: 0, At: 60})
			if _, err := c.adm.DeleteRecords(context.Background(), offs); err != nil {
				t.Error(err)
			}
			return fmt.Errorf("refused once")
		}
		return nil
	}
	r := start(t, s, nil, k)
	r.until(t, "the rest", at(map[int]int64{0: 100}))
	r.stop()
	if len(r.rows) != 40 || len(r.errors) != 1 || !strings.Contains(r.errors[0].Reason, "offsets 0 to 59 are missing") {
		t.Errorf("%d rows, errors %v", len(r.rows), reasons(r.errors))
	}
}

// TestRegistryOutage waits for a registry that is away, and tells so.
func TestRegistryOutage(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(1)
	target, err := url.Parse(service(t, "STREAMDB_TEST_REGISTRY"))
	if err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host}) }, Transport: &http.Transport{DisableKeepAlives: true}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); user != "u" || pass != "p" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if down.Load() {
			http.Error(w, `{"error_code":50003,"message":"away"}`, http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer srv.Close()
	const schema = `{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}`
	id := register(t, topic+"-value", schema)
	opts := c.options(topic, "format", "avro", "registry.url", srv.URL+target.Path, "registry.username", "u", "registry.password", "wrong")
	if _, err := New(context.Background(), sources.Config{Options: opts}); err == nil || !strings.Contains(err.Error(), "refuses this user name") {
		t.Errorf("wrong password: %v", err)
	}
	opts["registry.password"] = "p"
	s := declare(t, opts, nil)
	down.Store(true)
	r := start(t, s, nil, newSink(s))
	r.until(t, "readiness", ready)
	c.produce(&kgo.Record{Topic: topic, Value: encode(t, id, schema, map[string]any{"a": int64(1)})})
	r.until(t, "the stall to be told", func(k *sink) bool { return k.status.State == "stalled" && strings.Contains(k.status.Error, "away") })
	down.Store(false)
	r.until(t, "the record", func(k *sink) bool { return k.records == 1 })
	r.until(t, "the recovery to be told", func(k *sink) bool { return k.status.State == "running" })
	r.stop()
	equal(t, r.content(), []string{"1"})
	if len(r.errors) > 0 {
		t.Errorf("errors %v", reasons(r.errors))
	}
}
