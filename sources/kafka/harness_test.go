package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is the address of something that the tests need.
func service(t testing.TB, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		if os.Getenv("STREAMDB_REQUIRE_ALL") == "1" {
			t.Fatalf("%s is not set", name)
		}
		t.Skipf("%s is not set: run scripts/services.sh up", name)
	}
	return v
}

// cluster is the test's side of a broker: producing and administration.
type cluster struct {
	t      testing.TB
	broker string
	cl     *kgo.Client
	adm    *kadm.Client
}

func newCluster(t testing.TB) *cluster {
	return clusterAt(t, service(t, "STREAMDB_TEST_KAFKA"))
}

func clusterAt(t testing.TB, broker string) *cluster {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableClientMetrics())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return &cluster{t: t, broker: broker, cl: cl, adm: kadm.NewClient(cl)}
}

// topic makes a topic that is gone after the test.
func (c *cluster) topic(partitions int32) string {
	c.t.Helper()
	name := fmt.Sprintf("t-%s-%d", strings.NewReplacer("/", "-", "_", "-", "#", "-", ",", "").Replace(c.t.Name()), time.Now().UnixNano())
	c.create(name, partitions, nil)
	c.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := c.adm.DeleteTopics(ctx, name); err != nil {
			c.t.Log(err)
		}
	})
	return name
}

func (c *cluster) create(name string, partitions int32, configs map[string]*string) {
	c.t.Helper()
	r, err := c.adm.CreateTopics(context.Background(), partitions, 1, configs, name)
	if err == nil {
		err = r[name].Err
	}
	if err != nil {
		c.t.Fatal(err)
	}
	// The controller has it; the broker learns of it a little later.
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		ts, err := c.adm.ListTopics(context.Background(), name)
		if err == nil && ts[name].Err == nil && len(ts[name].Partitions) == int(partitions) {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("topic %s does not appear: %v", name, err)
		}
	}
}

// produce writes records in order.
func (c *cluster) produce(recs ...*kgo.Record) {
	c.t.Helper()
	if err := c.cl.ProduceSync(context.Background(), recs...).FirstErr(); err != nil {
		c.t.Fatal(err)
	}
}

// rec makes a record; a key or value of "-" is none.
func rec(topic string, partition int32, key, value string) *kgo.Record {
	r := &kgo.Record{Topic: topic, Partition: partition}
	if key != "-" {
		r.Key = []byte(key)
	}
	if value != "-" {
		r.Value = []byte(value)
	}
	return r
}

// register puts a schema into the registry.
func register(t testing.TB, subject, schema string) int32 {
	t.Helper()
	url := service(t, "STREAMDB_TEST_REGISTRY")
	body, err := json.Marshal(map[string]string{"schema": schema})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url+"/subjects/"+subject+"/versions", "application/vnd.schemaregistry.v1+json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var id struct{ ID int32 }
	if err := json.Unmarshal(b, &id); err != nil || resp.StatusCode != 200 {
		t.Fatalf("registry: %s: %s", resp.Status, b)
	}
	return id.ID
}

// encode makes a record's bytes in Confluent's wire format.
func encode(t testing.TB, id int32, schema string, v any) []byte {
	t.Helper()
	b, err := avro.Marshal(avro.MustParse(schema), v)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(id)), b...)
}

// sink is a feed that keeps what it gets as the engine would: rows with their
// multiplicity, or by key.
type sink struct {
	table *sources.Table
	// gate, if not nil, is called before a chunk is taken; an error refuses it.
	gate func(*sources.Chunk) error

	mu      sync.Mutex
	rows    map[string]int // of the append envelope: text form, how often
	byKey   map[string]string
	errors  []sources.RecordError
	pos     sources.Position
	done    bool
	chunks  int
	records int
	status  sources.Status
	states  []string
}

func newSink(s *Source) *sink {
	t := s.Tables()[0]
	return &sink{table: &t, rows: map[string]int{}, byKey: map[string]string{}, pos: sources.Position{}}
}

func (k *sink) Push(ctx context.Context, c *sources.Chunk) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gate != nil {
		if err := k.gate(c); err != nil {
			return err
		}
	}
	k.chunks++
	for _, t := range c.Tables {
		k.records += t.Rows.N
		for i := range t.Rows.N {
			if k.table.Envelope == sources.EnvelopeAppend {
				k.rows[k.text(&t, i, nil)]++
				continue
			}
			key := k.text(&t, i, k.table.Key)
			switch t.Ops[i] {
			case sources.OpUpsert:
				k.byKey[key] = k.text(&t, i, nil)
			case sources.OpDelete:
				delete(k.byKey, key)
			}
		}
	}
	k.errors = append(k.errors, c.Errors...)
	maps.Copy(k.pos, c.Position)
	k.done = k.done || c.SnapshotDone
	return nil
}

func (k *sink) SetStatus(s sources.Status) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.status = s
	if len(k.states) == 0 || k.states[len(k.states)-1] != s.State {
		k.states = append(k.states, s.State)
	}
}

// text is a row's text form: columns separated by bars.
func (k *sink) text(t *sources.TableChunk, row int, cols []int) string {
	var out []byte
	n := 0
	for i, c := range k.table.Columns {
		if cols != nil && !slices.Contains(cols, i) {
			continue
		}
		if n++; n > 1 {
			out = append(out, '|')
		}
		if v := t.Rows.Cols[i]; v.Null(row) {
			out = append(out, "NULL"...)
		} else {
			out = types.AppendText(out, c.Type, v, row, nil)
		}
	}
	return string(out)
}

// content is the collection's rows, sorted.
func (k *sink) content() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for r, n := range k.rows {
		for range n {
			out = append(out, r)
		}
	}
	out = append(out, slices.Collect(maps.Values(k.byKey))...)
	slices.Sort(out)
	return out
}

func (k *sink) check(f func(*sink) bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return f(k)
}

// running is a source that runs until the test or stop ends it.
type running struct {
	*sink
	s    *Source
	stop func() sources.Position // stops it; what it left off at
}

func declare(t testing.TB, opts map[string]string, declared *sources.Table) *Source {
	t.Helper()
	s, err := New(context.Background(), sources.Config{Name: "s", ID: 7, Options: opts, Declared: declared})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// again makes the source anew as a restart does, from the catalog.
func again(t testing.TB, s *Source, opts map[string]string) *Source {
	t.Helper()
	n, err := New(context.Background(), sources.Config{Name: "s", ID: 7, Options: opts, Tables: s.Tables()})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func start(t testing.TB, s *Source, from sources.Position, k *sink) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, from, k) }()
	var once sync.Once
	stop := func() sources.Position {
		once.Do(func() {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Run: %v", err)
			}
		})
		k.mu.Lock()
		defer k.mu.Unlock()
		return maps.Clone(k.pos)
	}
	t.Cleanup(func() { stop() })
	return &running{sink: k, s: s, stop: stop}
}

// until waits for a condition.
func (r *running) until(t testing.TB, what string, f func(*sink) bool) {
	t.Helper()
	end := time.Now().Add(30 * time.Second)
	for !r.check(f) {
		if time.Now().After(end) {
			r.mu.Lock()
			defer r.mu.Unlock()
			t.Fatalf("waited for %s in vain: %d rows, %d keys, %d errors %v, position %v, status %+v", what, len(r.rows), len(r.byKey), len(r.errors), reasons(r.errors), r.pos, r.status)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func reasons(errs []sources.RecordError) []string {
	var out []string
	for _, e := range errs[:min(len(errs), 5)] {
		out = append(out, fmt.Sprintf("%s/%d: %s", e.Partition, e.Offset, e.Reason))
	}
	return out
}

func at(offsets map[int]int64) func(*sink) bool {
	return func(k *sink) bool {
		for p, off := range offsets {
			if k.pos[strconv.Itoa(p)] < off {
				return false
			}
		}
		return true
	}
}

func ready(k *sink) bool { return k.done }

func equal(t testing.TB, got, want []string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("content:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func rat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic(s)
	}
	return r
}
