package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// options are those of a source in Materialize's form.
func (c *cluster) options(topic string, more ...string) map[string]string {
	o := map[string]string{"connector": "kafka", "broker": c.broker, "topic": topic, "topic metadata refresh interval": "200ms"}
	for i := 0; i < len(more); i += 2 {
		o[more[i]] = more[i+1]
	}
	return o
}

// columns are declared columns, as name and type in turn.
func columns(pairs ...any) *sources.Table {
	t := &sources.Table{}
	for i := 0; i < len(pairs); i += 2 {
		t.Columns = append(t.Columns, sources.Column{Name: pairs[i].(string), Type: pairs[i+1].(types.Type)})
	}
	return t
}

// TestFormats reads the same few records in every format.
func TestFormats(t *testing.T) {
	c := newCluster(t)
	for _, x := range []struct {
		name     string
		opts     []string
		declared *sources.Table
		values   []string
		want     []string
		columns  string
		errors   int
	}{
		{"text", []string{"format", "text"}, nil, []string{"a", "", "b\xff"}, []string{"a", ""}, "text text", 1},
		{"bytes", []string{"format", "bytes"}, nil, []string{"a", "\xff"}, []string{`\x61`, `\xff`}, "data bytea", 0},
		{"json", []string{"format", "json"}, nil, []string{`{"b":1, "a":[true]}`, `null`, `{`}, []string{`{"a": [true], "b": 1}`, `null`}, "data jsonb", 1},
		{"json columns", []string{"format", "json"}, columns("id", types.Int8, "name", types.Text),
			[]string{`{"id":1,"name":"x"}`, `{"name":"y","id":2,"z":[]}`, `{"id":"3"}`, `[]`}, []string{"1|x", "2|y", "3|NULL"}, "id bigint,name text", 1},
		{"csv", []string{"format", "csv", "format.columns", "2"}, nil, []string{`1,"a,b"`, `2,`, `3`}, []string{"1|a,b", "2|NULL"}, "column1 text,column2 text", 1},
		{"csv columns", []string{"format", "csv", "format.delimiter", ";"}, columns("a", types.Int4, "b", types.Date),
			[]string{`1;2020-02-29`, `2;2021-02-29`}, []string{"1|2020-02-29"}, "a integer,b date", 1},
		{"csv names", []string{"format", "csv", "format.header", "true", "format.header names", "x,y"}, nil, []string{"1,2"}, []string{"1|2"}, "x text,y text", 0},
		{"avro, schema given", []string{"format", "avro", "format.schema", `{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}`}, nil,
			[]string{"\x00\x00\x00\x00\x09\x04", "\x04", "\x00\x00\x00\x00\x09\x06\x00"}, []string{"2"}, "a bigint", 2},
		{"avro, no header", []string{"format", "avro", "registry.confluent wire format", "false", "format.schema", `{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}`}, nil,
			[]string{"\x04", "\x80"}, []string{"2"}, "a bigint", 1},
		{"avro, one value", []string{"format", "avro", "registry.confluent wire format", "false", "format.schema", `"string"`}, nil,
			[]string{"\x04ab"}, []string{"ab"}, "data text", 0},
		{"renamed", []string{"format", "text"}, columns("line", types.Unknown), []string{"a"}, []string{"a"}, "line text", 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := clusterAt(t, c.broker)
			topic := c.topic(1)
			for _, v := range x.values {
				c.produce(rec(topic, 0, "-", v))
			}
			s := declare(t, c.options(topic, x.opts...), x.declared)
			var cols []string
			for _, col := range s.Tables()[0].Columns {
				cols = append(cols, col.Name+" "+col.Type.OID.Name())
			}
			if got := strings.Join(cols, ","); got != x.columns {
				t.Errorf("columns %s, want %s", got, x.columns)
			}
			r := start(t, s, nil, newSink(s))
			r.until(t, "the snapshot", ready)
			r.stop()
			equal(t, r.content(), x.want)
			if len(r.errors) != x.errors {
				t.Errorf("%d errors, want %d: %v", len(r.errors), x.errors, reasons(r.errors))
			}
		})
	}
}

const orderSchema = `{"type":"record","name":"Order","fields":[
	{"name":"id","type":"long"},{"name":"user_id","type":"int"},
	{"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}},
	{"name":"status","type":["null","string"],"default":null},
	{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}}]}`

// orderSchema2 adds a field, removes one, widens one and changes the order.
const orderSchema2 = `{"type":"record","name":"Order","fields":[
	{"name":"status","type":["null","string"],"default":null},
	{"name":"extra","type":"string","default":"x"},
	{"name":"id","type":"int"},
	{"name":"user_id","type":"int"},
	{"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},
	{"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}}]}`

// TestAvroEvolution reads records of several writers' schemas, and bad ones.
func TestAvroEvolution(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(2)
	registry := service(t, "STREAMDB_TEST_REGISTRY")
	id := register(t, topic+"-value", orderSchema)
	opts := c.options(topic, "format", "avro", "registry.url", registry, "include", "partition\t\tp\t\noffset\t\t\t")
	s := declare(t, opts, nil)
	at1 := time.Date(2024, 2, 3, 4, 5, 6, 789e6, time.UTC)
	put := func(p int32, v []byte) { c.produce(&kgo.Record{Topic: topic, Partition: p, Value: v}) }
	put(0, encode(t, id, orderSchema, map[string]any{"id": int64(1), "user_id": 42, "amount": rat("12.50"), "status": map[string]any{"string": "paid"}, "at": at1}))
	id2 := register(t, topic+"-other", orderSchema2)
	put(1, encode(t, id2, orderSchema2, map[string]any{"id": 2, "user_id": 43, "amount": rat("-0.01"), "status": nil, "at": at1, "extra": "?"}))
	put(1, encode(t, id+1_000_000, orderSchema, map[string]any{"id": int64(3), "user_id": 1, "amount": rat("1.00"), "status": nil, "at": at1}))
	put(1, []byte("garbage"))
	bad := register(t, topic+"-bad", `{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}`)
	put(1, encode(t, bad, `{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}`, map[string]any{"id": "z"}))
	put(0, encode(t, id, orderSchema, map[string]any{"id": int64(4), "user_id": 42, "amount": rat("1.00"), "status": nil, "at": at1}))

	r := start(t, s, nil, newSink(s))
	r.until(t, "the snapshot", ready)
	pos := r.stop()
	want := []string{
		"1|42|12.50|paid|2024-02-03 04:05:06.789+00|0|0",
		"2|43|-0.01|NULL|2024-02-03 04:05:06.789+00|1|0",
		"4|42|1.00|NULL|2024-02-03 04:05:06.789+00|0|1",
	}
	equal(t, r.content(), want)
	if got := strings.Join(reasons(r.errors), "\n"); len(r.errors) != 3 || !strings.Contains(got, "1/1: schema ") || !strings.Contains(got, "1/2: the record does not begin") || !strings.Contains(got, "field \"id\": string was written where long is expected") {
		t.Errorf("errors:\n%s", got)
	}

	// After a restart the reader's schema is still the one of the beginning,
	// although the registry has a newer one.
	register(t, topic+"-value", orderSchema2)
	s2 := again(t, s, opts)
	put(0, encode(t, id2, orderSchema2, map[string]any{"id": 5, "user_id": 43, "amount": rat("7.00"), "status": nil, "at": at1, "extra": "?"}))
	r2 := start(t, s2, pos, newSink(s2))
	r2.until(t, "one more record", func(k *sink) bool { return k.records == 1 })
	r2.stop()
	equal(t, r2.content(), []string{"5|43|7.00|NULL|2024-02-03 04:05:06.789+00|0|2"})
}

// TestUpsert keeps the last record of each key.
func TestUpsert(t *testing.T) {
	c := newCluster(t)
	t.Run("json", func(t *testing.T) {
		c := clusterAt(t, c.broker)
		topic := c.topic(2)
		c.produce(rec(topic, 0, "a", `{"v":1}`), rec(topic, 1, "b", `{"v":2}`), rec(topic, 0, "a", `{"v":3}`), rec(topic, 1, "b", "-"),
			rec(topic, 0, "-", `{"v":4}`), rec(topic, 0, "c", `{"v":`), rec(topic, 1, "d", `{"v":5}`))
		s := declare(t, c.options(topic, "key.format", "text", "format", "json", "envelope", "upsert"), nil)
		r := start(t, s, nil, newSink(s))
		r.until(t, "the snapshot", ready)
		r.stop()
		equal(t, r.content(), []string{`a|{"v": 3}`, `d|{"v": 5}`})
		if len(r.errors) != 2 || r.errors[0].Reason != "the record has no key" {
			t.Errorf("errors: %v", reasons(r.errors))
		}
	})
	t.Run("avro", func(t *testing.T) {
		c := clusterAt(t, c.broker)
		topic := c.topic(1)
		registry := service(t, "STREAMDB_TEST_REGISTRY")
		const keySchema = `{"type":"record","name":"K","fields":[{"name":"id","type":"long"}]}`
		const valSchema = `{"type":"record","name":"V","fields":[{"name":"id","type":"long"},{"name":"name","type":"string"}]}`
		k, v := register(t, topic+"-key", keySchema), register(t, topic+"-value", valSchema)
		put := func(id int64, name string) {
			r := &kgo.Record{Topic: topic, Key: encode(t, k, keySchema, map[string]any{"id": id})}
			if name != "" {
				r.Value = encode(t, v, valSchema, map[string]any{"id": id, "name": name})
			}
			c.produce(r)
		}
		put(1, "a")
		put(2, "b")
		put(1, "c")
		put(2, "")
		put(3, "d")
		s := declare(t, c.options(topic, "format", "avro", "registry.url", registry, "envelope", "upsert"), nil)
		r := start(t, s, nil, newSink(s))
		r.until(t, "the snapshot", ready)
		r.stop()
		equal(t, r.content(), []string{"1|c", "3|d"})
		if n := len(s.Tables()[0].Columns); n != 2 {
			t.Errorf("%d columns: the key's field is there twice", n)
		}
	})
	t.Run("risingwave", func(t *testing.T) {
		c := clusterAt(t, c.broker)
		topic := c.topic(1)
		c.produce(rec(topic, 0, `{"id":1}`, `{"id":1,"v":"a"}`), rec(topic, 0, `2`, `{"id":2,"v":"b"}`), rec(topic, 0, `{"id":1}`, "-"))
		d := columns("id", types.Int4, "v", types.Text)
		d.Key, d.KeyNames = []int{0}, []string{"id"}
		s := declare(t, c.options(topic, "format", "json", "envelope", "upsert", "dialect", "risingwave"), d)
		r := start(t, s, nil, newSink(s))
		r.until(t, "the snapshot", ready)
		r.stop()
		equal(t, r.content(), []string{"2|b"})

		d = columns("id", types.Int4, "v", types.Text)
		d.KeyNames = []string{"rw_key"}
		s = declare(t, c.options(topic, "format", "json", "envelope", "upsert", "dialect", "risingwave", "include", "key\t\trw_key\t"), d)
		r = start(t, s, nil, newSink(s))
		r.until(t, "the snapshot", ready)
		r.stop()
		equal(t, r.content(), []string{`\x32|2|b`})
	})
	t.Run("plain with a primary key", func(t *testing.T) {
		c := clusterAt(t, c.broker)
		topic := c.topic(1)
		c.produce(rec(topic, 0, "-", `{"id":1,"v":"a"}`), rec(topic, 0, "-", `{"id":1,"v":"b"}`))
		d := columns("id", types.Int4, "v", types.Text)
		d.Key, d.KeyNames = []int{0}, []string{"id"}
		opts := c.options(topic, "format", "json", "envelope", "none", "dialect", "risingwave")
		s := declare(t, opts, d)
		opts["envelope"] = "upsert" // as the catalog stores it
		s = again(t, s, opts)
		r := start(t, s, nil, newSink(s))
		r.until(t, "the snapshot", ready)
		r.stop()
		equal(t, r.content(), []string{"1|b"})
	})
}

// TestMetadata includes everything that surrounds a value.
func TestMetadata(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(2)
	r0 := rec(topic, 1, "k", "v")
	r0.Timestamp = time.UnixMilli(1_700_000_000_123)
	r0.Headers = []kgo.RecordHeader{{Key: "h", Value: []byte("x")}, {Key: "n"}, {Key: "b", Value: []byte{0xff}}}
	r1 := rec(topic, 1, "-", "w")
	r1.Timestamp = r0.Timestamp
	c.produce(r0, r1)
	s := declare(t, c.options(topic, "format", "text", "include",
		"partition\t\t\t\noffset\t\to\t\ntimestamp\t\tts\t\nheaders\t\t\t\nkey\t\tmykey\t\nheader\th\thh\t\nheader\tb\thb\tbytes\ntopic\t\t\t"), nil)
	r := start(t, s, nil, newSink(s))
	r.until(t, "the snapshot", ready)
	r.stop()
	equal(t, r.content(), []string{
		`\x6b|v|1|0|2023-11-14 22:13:20.123+00|[{"key": "h", "value": "x"}, {"key": "n", "value": null}, {"key": "b", "value": "\\xff"}]|x|\xff|` + topic,
		`NULL|w|1|1|2023-11-14 22:13:20.123+00|[]|NULL|NULL|` + topic,
	})
}

// TestTransactions shows committed records only, and the snapshot ends behind
// an aborted one.
func TestTransactions(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(1)
	tx, err := kgo.NewClient(kgo.SeedBrokers(c.broker), kgo.TransactionalID(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableClientMetrics())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	ctx := context.Background()
	for _, x := range []struct {
		value  string
		commit kgo.TransactionEndTry
	}{{"a", kgo.TryCommit}, {"b", kgo.TryAbort}, {"c", kgo.TryCommit}, {"d", kgo.TryAbort}} {
		if err := tx.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := tx.ProduceSync(ctx, rec(topic, 0, "-", x.value)).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := tx.EndTransaction(ctx, x.commit); err != nil {
			t.Fatal(err)
		}
	}
	opts := c.options(topic, "format", "text")
	s := declare(t, opts, nil)
	r := start(t, s, nil, newSink(s))
	r.until(t, "the snapshot", ready)
	equal(t, r.content(), []string{"a", "c"})
	if err := tx.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := tx.ProduceSync(ctx, rec(topic, 0, "-", "e")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	equal(t, r.content(), []string{"a", "c"})
	if err := tx.EndTransaction(ctx, kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	r.until(t, "the commit", func(k *sink) bool { return k.records == 3 })
	pos := r.stop()
	// From its position nothing comes twice.
	s = again(t, s, opts)
	r = start(t, s, pos, newSink(s))
	r.until(t, "readiness", ready)
	r.stop()
	equal(t, r.content(), nil)
}

// TestDeadSeed is not troubled by a seed broker that is away.
func TestDeadSeed(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(1)
	c.produce(rec(topic, 0, "-", "a"))
	s := declare(t, c.options(topic, "format", "text", "broker", "127.0.0.1:1,"+c.broker), nil)
	r := start(t, s, nil, newSink(s))
	r.until(t, "the snapshot", ready)
	time.Sleep(2 * time.Second)
	r.stop()
	equal(t, r.content(), []string{"a"})
	if slices.Contains(r.states, "stalled") {
		t.Errorf("states %v: %s", r.states, r.status.Error)
	}
}

// TestStart begins where it was told to.
func TestStart(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(2)
	old := time.Now().Add(-time.Hour)
	for i := range 6 {
		r := rec(topic, int32(i%2), "-", fmt.Sprint(i))
		r.Timestamp = old
		if i >= 4 {
			r.Timestamp = time.Now()
		}
		c.produce(r)
	}
	ms := func(d time.Duration) string { return fmt.Sprint(time.Now().Add(d).UnixMilli()) }
	for _, x := range []struct {
		name string
		opts []string
		want []string
	}{
		{"earliest", []string{"start mode", "earliest"}, []string{"0", "1", "2", "3", "4", "5"}},
		{"offsets", []string{"start offset", "1,2"}, []string{"2", "4", "5"}},
		{"one offset", []string{"start offset", "3"}, []string{"1", "3", "5"}},
		{"offset to come", []string{"start offset", "100, 2"}, []string{"5"}},
		{"timestamp", []string{"start timestamp", ms(-time.Minute)}, []string{"4", "5"}},
		{"relative", []string{"start timestamp", "-60000"}, []string{"4", "5"}},
		{"in the future", []string{"start timestamp", ms(time.Hour)}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			opts := c.options(topic, append(x.opts, "format", "text")...)
			s := declare(t, opts, nil)
			r := start(t, s, nil, newSink(s))
			r.until(t, "the snapshot", ready)
			r.stop()
			equal(t, r.content(), x.want)
		})
	}
	t.Run("latest is kept", func(t *testing.T) {
		opts := c.options(topic, "start mode", "latest", "format", "text")
		s := declare(t, opts, nil)
		r := start(t, s, nil, newSink(s))
		r.until(t, "the snapshot", ready)
		pos := r.stop()
		equal(t, r.content(), nil)
		c.produce(rec(topic, 0, "-", "later"))
		s = again(t, s, opts)
		r = start(t, s, pos, newSink(s))
		r.until(t, "the new record", func(k *sink) bool { return k.records > 0 })
		r.stop()
		equal(t, r.content(), []string{"later"})
	})
}

// TestEmptyTopic is readable at once.
func TestEmptyTopic(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(3)
	s := declare(t, c.options(topic, "format", "text"), nil)
	r := start(t, s, nil, newSink(s))
	r.until(t, "readiness", ready)
	c.produce(rec(topic, 2, "-", "a"))
	r.until(t, "a record", func(k *sink) bool { return k.records == 1 })
	r.until(t, "no lag", func(k *sink) bool { return k.status.Lag == 0 && k.status.State == "running" })
}

// TestNewPartitions reads partitions that are added, from their beginning.
func TestNewPartitions(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(1)
	opts := c.options(topic, "format", "text", "start mode", "latest")
	s := declare(t, opts, nil)
	r := start(t, s, nil, newSink(s))
	r.until(t, "readiness", ready)
	grow := func(n int) {
		t.Helper()
		res, err := c.adm.UpdatePartitions(context.Background(), n, topic)
		if err == nil {
			err = res[topic].Err
		}
		for err == nil { // until the broker tells of them
			var known kadm.TopicDetails
			known, err = c.adm.ListTopics(context.Background(), topic)
			if len(known[topic].Partitions) == n {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatal(err)
	}
	grow(2)
	c2 := clusterAt(t, c.broker) // knows the new partition
	c2.produce(rec(topic, 1, "-", "a"))
	r.until(t, "a record of the new partition", at(map[int]int64{1: 1}))
	pos := r.stop()
	// One that is added while the source is not running.
	grow(3)
	c3 := clusterAt(t, c.broker)
	c3.produce(rec(topic, 2, "-", "b"))
	s = again(t, s, opts)
	r2 := start(t, s, pos, newSink(s))
	r2.until(t, "a record of the third partition", at(map[int]int64{2: 1}))
	r2.stop()
	equal(t, r2.content(), []string{"b"})
}

// TestGap goes on where records are left, and tells what is missing.
func TestGap(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(1)
	for i := range 10 {
		c.produce(rec(topic, 0, "-", fmt.Sprint(i)))
	}
	opts := c.options(topic, "format", "text")
	s := declare(t, opts, nil)
	offs := kadm.Offsets{}
	offs.Add(kadm.Offset{Topic: topic, Partition: 0, At: 6})
	if _, err := c.adm.DeleteRecords(context.Background(), offs); err != nil {
		t.Fatal(err)
	}
	r := start(t, s, sources.Position{"0": 3}, newSink(s))
	r.until(t, "the rest", at(map[int]int64{0: 10}))
	r.stop()
	equal(t, r.content(), []string{"6", "7", "8", "9"})
	if len(r.errors) != 1 || r.errors[0].Offset != 3 || !strings.Contains(r.errors[0].Reason, "offsets 3 to 5 are missing") {
		t.Errorf("errors %v", reasons(r.errors))
	}
}

// TestTopicMadeAnew reads a topic that was deleted and made again from its
// beginning, and says so; a second restart does not do it once more.
func TestTopicMadeAnew(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(1)
	c.produce(rec(topic, 0, "-", "a"), rec(topic, 0, "-", "b"))
	opts := c.options(topic, "format", "text")
	s := declare(t, opts, nil)
	r := start(t, s, nil, newSink(s))
	r.until(t, "the snapshot", ready)
	remake := func(values ...string) {
		t.Helper()
		if _, err := c.adm.DeleteTopics(context.Background(), topic); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		c.create(topic, 1, nil)
		c2 := clusterAt(t, c.broker)
		for _, v := range values {
			c2.produce(rec(topic, 0, "-", v))
		}
	}
	remake("c")
	r.until(t, "the new topic's record", func(k *sink) bool { return k.rows["c"] == 1 })
	pos := r.stop()
	equal(t, r.content(), []string{"a", "b", "c"})
	if len(r.errors) != 1 || !strings.Contains(r.errors[0].Reason, "made anew") {
		t.Errorf("errors %v", reasons(r.errors))
	}
	remake("d", "e", "f")
	s = again(t, s, opts)
	r = start(t, s, pos, newSink(s))
	r.until(t, "the third topic's records", func(k *sink) bool { return k.records == 3 })
	pos = r.stop()
	s = again(t, s, opts)
	r = start(t, s, pos, newSink(s))
	r.until(t, "readiness", ready)
	r.stop()
	equal(t, r.content(), nil)
	if len(r.errors) > 0 {
		t.Errorf("errors %v", reasons(r.errors))
	}
}

// TestGroupOffsets commits what is durable, for others to see.
func TestGroupOffsets(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(1)
	c.produce(rec(topic, 0, "-", "a"), rec(topic, 0, "-", "b"))
	s := declare(t, c.options(topic, "format", "text", "group id prefix", topic+"-"), nil)
	r := start(t, s, nil, newSink(s))
	r.until(t, "the snapshot", ready)
	s.Durable(sources.Position{"0": 2, "topic": 1})
	group := topic + "-streamdb-7"
	end := time.Now().Add(20 * time.Second)
	for {
		o, err := c.adm.FetchOffsets(context.Background(), group)
		if got, ok := o.Lookup(topic, 0); err == nil && ok && got.At == 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no offset was committed: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.stop()
	if err := s.Drop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if o, err := c.adm.FetchOffsets(context.Background(), group); err == nil && len(o) > 0 {
		t.Errorf("the group is still there: %v", o)
	}
	if err := s.Drop(context.Background()); err != nil {
		t.Errorf("a second drop: %v", err)
	}
}

// TestExactlyOnce stops the source at random places, loses what was pushed but
// not kept, and restarts it from what was.
func TestExactlyOnce(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(3)
	const n = 30_000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range n {
			c.cl.Produce(context.Background(), rec(topic, int32(i%3), "-", fmt.Sprint(i)), nil)
			if i%500 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		if err := c.cl.Flush(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	opts := c.options(topic, "format", "text")
	s := declare(t, opts, nil)
	k := newSink(s)
	for round := 0; ; round++ {
		// A crash: the chunk is refused, and the source is stopped.
		crash := errors.New("crash")
		left := 1 + round*2
		k.gate = func(*sources.Chunk) error {
			if left--; left < 0 && round < 12 {
				return crash
			}
			return nil
		}
		pos := sources.Position{}
		k.mu.Lock()
		for p, off := range k.pos {
			pos[p] = off
		}
		k.mu.Unlock()
		r := start(t, again(t, s, opts), pos, k)
		if round >= 12 {
			r.until(t, "all records", func(k *sink) bool { return k.records == n })
			r.stop()
			break
		}
		time.Sleep(50 * time.Millisecond)
		r.stop()
	}
	<-done
	if len(k.rows) != n {
		t.Errorf("%d different rows, want %d", len(k.rows), n)
	}
	for row, times := range k.rows {
		if times != 1 {
			t.Errorf("row %s came %d times", row, times)
		}
	}
}

// TestDeclarations are refused with an error that helps.
func TestDeclarations(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(1)
	registry := service(t, "STREAMDB_TEST_REGISTRY")
	register(t, topic+"-value", orderSchema)
	for _, x := range []struct {
		opts     []string
		declared *sources.Table
		code     string
		message  string
	}{
		{[]string{"topic", topic + "-nothing", "format", "text"}, nil, pgerror.UndefinedObject, "does not exist"},
		{[]string{"broker", "127.0.0.1:1", "format", "text"}, nil, pgerror.ConnectionFailure, "connection refused"},
		{[]string{"format", "avro", "registry.url", registry, "envelope", "upsert"}, nil, pgerror.UndefinedObject, "subject " + topic + "-key"},
		{[]string{"format", "avro", "registry.url", "http://127.0.0.1:1"}, nil, pgerror.ConnectionFailure, "connection refused"},
		{[]string{"format", "avro", "registry.url", "nonsense"}, nil, pgerror.InvalidParameterValue, "invalid schema registry URL"},
		{[]string{"format", "avro"}, nil, pgerror.SyntaxError, "needs a schema registry"},
		{[]string{"format", "avro", "registry.url", registry}, columns("nope", types.Text), pgerror.UndefinedColumn, "no field \"nope\""},
		{[]string{"format", "avro", "registry.url", registry}, columns("id", types.Text), pgerror.DatatypeMismatch, "is of type"},
		{[]string{"format", "text", "colour", "red"}, nil, pgerror.InvalidParameterValue, "unknown option \"colour\""},
		{[]string{"format", "json", "envelope", "upsert"}, nil, pgerror.InvalidObjectDefinition, "format of the keys"},
		{[]string{"format", "json", "envelope", "debezium"}, nil, pgerror.FeatureNotSupported, "DEBEZIUM"},
		{[]string{"format", "protobuf"}, nil, pgerror.FeatureNotSupported, "PROTOBUF"},
		{[]string{"format", "text", "include", "partition\t\ttext\t"}, nil, pgerror.DuplicateColumn, "specified more than once"},
		{[]string{"format", "text", "start offset", "x"}, nil, pgerror.InvalidParameterValue, "START OFFSET"},
		{[]string{"format", "text", "security protocol", "TELEX"}, nil, pgerror.InvalidParameterValue, "SECURITY PROTOCOL"},
		{[]string{"format", "csv"}, nil, pgerror.SyntaxError, "number of columns"},
		{[]string{}, nil, pgerror.SyntaxError, "needs a FORMAT"},
		{[]string{"format", "text"}, columns("a", types.Unknown, "b", types.Unknown), pgerror.InvalidObjectDefinition, "2 names"},
	} {
		_, err := New(context.Background(), sources.Config{Options: c.options(topic, x.opts...), Declared: x.declared})
		if e := pgerror.As(err); err == nil || e == nil || e.Code != x.code || !strings.Contains(e.Message, x.message) {
			t.Errorf("%v: %v (want %s, %s)", x.opts, err, x.code, x.message)
		}
	}
}

// TestValidate tries connections.
func TestValidate(t *testing.T) {
	c := newCluster(t)
	ctx := context.Background()
	if err := Validate(ctx, map[string]string{"broker": c.broker}); err != nil {
		t.Error(err)
	}
	if err := Validate(ctx, map[string]string{"broker": "127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
	if err := Validate(ctx, map[string]string{"broker": c.broker, "security protocol": "SSL"}); err == nil {
		t.Error("a broker without TLS was reached by TLS")
	}
	if err := ValidateRegistry(ctx, map[string]string{"url": service(t, "STREAMDB_TEST_REGISTRY")}); err != nil {
		t.Error(err)
	}
	if err := ValidateRegistry(ctx, map[string]string{"url": "http://127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
}

// TestChunkSize cuts what one poll gives into chunks of bounded size, even if
// it is small until it is decompressed.
func TestChunkSize(t *testing.T) {
	c := newCluster(t)
	topic := c.topic(1)
	big, err := kgo.NewClient(kgo.SeedBrokers(c.broker), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchMaxBytes(90<<20), kgo.BrokerMaxWriteBytes(95<<20),
		kgo.ProducerLinger(2*time.Second), kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.DisableClientMetrics())
	if err != nil {
		t.Fatal(err)
	}
	defer big.Close()
	const n, size = 80, 1 << 20
	for range n {
		big.Produce(context.Background(), &kgo.Record{Value: make([]byte, size)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := big.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := declare(t, c.options(topic, "format", "bytes"), nil)
	k := newSink(s)
	rows, most := 0, int64(0)
	k.gate = func(ch *sources.Chunk) error {
		for i := range ch.Tables {
			rows += ch.Tables[i].Rows.N
		}
		ch.Tables = nil // their text would be long
		most = max(most, ch.Bytes)
		return nil
	}
	r := start(t, s, nil, k)
	r.until(t, "the snapshot", ready)
	r.stop()
	if rows != n || most > maxChunkBytes || k.chunks < 3 {
		t.Errorf("%d rows in %d chunks of up to %d bytes", rows, k.chunks, most)
	}
}
