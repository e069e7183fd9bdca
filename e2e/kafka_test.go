package e2e

import (
	"bytes"
	"context"
	bits "encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	orderKeySchema = `{"type":"record","name":"OrderKey","fields":[{"name":"id","type":"long"}]}`
	orderSchema    = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"user_id","type":"long"},
		{"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}},
		{"name":"status","type":["null","string"],"default":null}]}`
)

// shop is a topic of orders, with a registry for their schemas.
type shop struct {
	t                       testing.TB
	broker, registry, topic string
	client                  *kgo.Client
	keyID, valueID          uint32
	key, value              avro.Schema
}

func newShop(t testing.TB) *shop {
	t.Helper()
	s := &shop{t: t, broker: need(t, "STREAMDB_TEST_KAFKA"), registry: need(t, "STREAMDB_TEST_REGISTRY"), topic: fmt.Sprintf("orders-%d", time.Now().UnixNano())}
	var err error
	if s.client, err = kgo.NewClient(kgo.SeedBrokers(s.broker), kgo.DefaultProduceTopic(s.topic), kgo.DisableClientMetrics()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	if _, err := kadm.NewClient(s.client).CreateTopic(context.Background(), 3, 1, nil, s.topic); err != nil {
		t.Fatal(err)
	}
	s.keyID, s.valueID = s.register("-key", orderKeySchema), s.register("-value", orderSchema)
	s.key, s.value = avro.MustParse(orderKeySchema), avro.MustParse(orderSchema)
	return s
}

func (s *shop) register(suffix, schema string) uint32 {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"schema": schema})
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.Post(s.registry+"/subjects/"+s.topic+suffix+"/versions", "application/json", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	var id struct{ ID uint32 }
	if err := json.Unmarshal(b, &id); err != nil || id.ID == 0 {
		s.t.Fatalf("registry: %s", b)
	}
	return id.ID
}

// order puts an order into the topic; with status "" it is a tombstone.
func (s *shop) order(id, user, cents int64, status string) {
	s.t.Helper()
	wire := func(id uint32, schema avro.Schema, v any) []byte {
		b, err := avro.Marshal(schema, v)
		if err != nil {
			s.t.Fatal(err)
		}
		return append(bits.BigEndian.AppendUint32([]byte{0}, id), b...)
	}
	r := &kgo.Record{Key: wire(s.keyID, s.key, map[string]any{"id": id})}
	if status != "" {
		r.Value = wire(s.valueID, s.value, map[string]any{"id": id, "user_id": user, "amount": big.NewRat(cents, 100), "status": map[string]any{"string": status}})
	}
	s.put(r)
}

func (s *shop) put(r *kgo.Record) {
	s.t.Helper()
	if err := s.client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// sql fills the places of the broker, the registry and the topic in.
func (s *shop) sql(text string) string {
	return strings.NewReplacer("kafka:9092", s.broker, "http://sr:8081", s.registry, "'orders'", "'"+s.topic+"'").Replace(text)
}

// TestKafkaSpellings declares the same source in three dialects, through psql.
func TestKafkaSpellings(t *testing.T) {
	shop := newShop(t)
	for i := range int64(30) {
		shop.order(i, 40+i%3, 1000+i, []string{"paid", "open"}[i%2])
	}
	s := serve(t, t.TempDir())
	for _, x := range []struct{ name, script, want string }{
		{"streamdb", `
CREATE SOURCE orders FROM KAFKA BROKER 'kafka:9092' TOPIC 'orders'
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://sr:8081';
CREATE MATERIALIZED VIEW revenue_per_user AS
  SELECT user_id, SUM(amount) AS total FROM orders WHERE status = 'paid' GROUP BY user_id;
SELECT * FROM revenue_per_user WHERE user_id = 42;
SELECT count(*), sum(amount) FROM orders;
`, "42|50.70\n30|304.35\n"},
		{"materialize", `
CREATE SECRET registry_password AS 'swordfish';
CREATE CONNECTION kafka_connection TO KAFKA (BROKER 'kafka:9092', SECURITY PROTOCOL = 'PLAINTEXT');
CREATE CONNECTION csr_connection TO CONFLUENT SCHEMA REGISTRY (URL 'http://sr:8081', USERNAME 'tester', PASSWORD SECRET registry_password);
VALIDATE CONNECTION kafka_connection;
VALIDATE CONNECTION csr_connection;
CREATE SOURCE mz_none FROM KAFKA CONNECTION kafka_connection (TOPIC 'orders', START OFFSET (0, 0, 0), GROUP ID PREFIX 'e2e-')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION csr_connection
  INCLUDE KEY AS k, PARTITION, OFFSET AS o, TIMESTAMP AS ts, HEADERS
  ENVELOPE NONE;
SELECT count(*), sum(amount), count(DISTINCT (partition, o)), bool_and(k = id), bool_and(ts > '2020-01-01'), max(headers::text) FROM mz_none;
CREATE SOURCE mz_upsert FROM KAFKA CONNECTION kafka_connection (TOPIC 'orders')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION csr_connection
  ENVELOPE UPSERT;
SELECT count(*), sum(amount) FROM mz_upsert;
`, "30|304.35|30|t|t|[]\n30|304.35\n"},
		{"risingwave", `
CREATE SOURCE rw_plain WITH (connector = 'kafka', topic = 'orders', properties.bootstrap.server = 'kafka:9092', scan.startup.mode = 'earliest')
  FORMAT PLAIN ENCODE AVRO (schema.registry = 'http://sr:8081');
SELECT count(*), sum(amount) FROM rw_plain;
CREATE TABLE rw_upsert (PRIMARY KEY (id)) WITH (connector = 'kafka', topic = 'orders', properties.bootstrap.server = 'kafka:9092', scan.startup.mode = 'earliest')
  FORMAT UPSERT ENCODE AVRO (schema.registry = 'http://sr:8081');
SELECT count(*), sum(amount) FROM rw_upsert;
CREATE TABLE rw_key (PRIMARY KEY (rw_key)) INCLUDE KEY AS rw_key WITH (connector = 'kafka', topic = 'orders', properties.bootstrap.server = 'kafka:9092')
  FORMAT UPSERT ENCODE AVRO (schema.registry = 'http://sr:8081');
SELECT count(*), sum(amount), max(length(rw_key)) FROM rw_key;
`, "30|304.35\n30|304.35\n30|304.35|6\n"},
	} {
		if got := s.psql(shop.sql(x.script)); got != x.want {
			t.Errorf("%s:\n%s\nwant\n%s", x.name, got, x.want)
		}
	}

	// What comes later reaches all of them, and what does not decode none.
	shop.order(5, 42, 100, "paid")
	shop.order(6, 0, 0, "")
	shop.put(&kgo.Record{Value: []byte("garbage")})
	c := s.connect()
	check := func() {
		t.Helper()
		eventually(t, c, "SELECT count(*), sum(amount) FROM orders", "31,305.35")
		eventually(t, c, "SELECT total FROM revenue_per_user WHERE user_id = 42", "51.70")
		for _, rel := range []string{"mz_upsert", "rw_upsert", "rw_key"} {
			eventually(t, c, "SELECT count(*), sum(amount) FROM "+rel, "29,285.24")
		}
		eventually(t, c, "SELECT reason, convert_from(raw, 'UTF8') FROM orders_errors WHERE raw IS NOT NULL", "the record does not begin with a zero byte and a schema id,garbage")
		eventually(t, c, "SELECT count(*) FROM mz_upsert_errors", "1")
		eventually(t, c, "SELECT reason FROM mz_upsert_errors", "the record has no key")
		eventually(t, c, "SELECT name, records, record_errors FROM streamdb_internal.sources WHERE name IN ('orders', 'mz_upsert') ORDER BY name", "mz_upsert,32,1\norders,31,2")
	}
	check()
	s.kill()
	s.start()
	c = s.connect()
	check()
}
