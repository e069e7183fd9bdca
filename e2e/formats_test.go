package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestKafkaFormats reads the formats that need no registry, through psql.
func TestKafkaFormats(t *testing.T) {
	broker := need(t, "STREAMDB_TEST_KAFKA")
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DisableClientMetrics())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	topic := func(name string, values ...string) {
		t.Helper()
		if _, err := kadm.NewClient(client).CreateTopic(context.Background(), 1, 1, nil, name); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			r := &kgo.Record{Topic: name, Key: fmt.Append(nil, "k", i%2), Value: []byte(v), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("v")}}}
			if err := client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	id := fmt.Sprint(time.Now().UnixNano())
	topic("json-"+id, `{"a": 1, "b": "x", "c": [1, 2]}`, `{"a": null, "b": "y"}`, `{"a": `, `{"a": "many", "b": "z"}`)
	topic("text-"+id, "one", "tab\there", "\xff")
	topic("csv-"+id, `1,"quo""ted",2.5`, `2,,`, `x,y`)
	script := strings.NewReplacer("$broker", broker, "$id", id).Replace(`
CREATE SOURCE j FROM KAFKA BROKER '$broker' TOPIC 'json-$id' FORMAT JSON;
SELECT data ->> 'a', data -> 'c' -> 1, data ->> 'b' FROM j ORDER BY 3;
SELECT count(*), bool_and(reason <> '') FROM j_errors;
CREATE SOURCE jd (a int, b text) WITH (connector = 'kafka', topic = 'json-$id', properties.bootstrap.server = '$broker', scan.startup.mode = 'earliest') FORMAT PLAIN ENCODE JSON;
SELECT * FROM jd ORDER BY b;
SELECT count(*) FROM jd_errors;
CREATE SOURCE tx FROM KAFKA BROKER '$broker' TOPIC 'text-$id' FORMAT TEXT INCLUDE KEY, PARTITION, OFFSET AS o, HEADERS;
SELECT text, key, partition, o, headers IS NOT NULL FROM tx ORDER BY o;
SELECT raw FROM tx_errors;
CREATE SOURCE latest FROM KAFKA BROKER '$broker' TOPIC 'text-$id' KEY FORMAT TEXT VALUE FORMAT TEXT ENVELOPE UPSERT;
SELECT * FROM latest ORDER BY 1;
CREATE SOURCE b FROM KAFKA BROKER '$broker' TOPIC 'text-$id' FORMAT BYTES;
SELECT data FROM b ORDER BY 1;
CREATE SOURCE c FROM KAFKA BROKER '$broker' TOPIC 'csv-$id' FORMAT CSV WITH 3 COLUMNS;
SELECT * FROM c ORDER BY 1;
SELECT count(*) FROM c_errors;
`)
	want := strings.ReplaceAll(`1|2|x
||y
many||z
1|t
1|x
|y
2
one|\x6b30|0|0|t
tab~here|\x6b31|0|1|t
\xff
k0|one
k1|tab~here
\x6f6e65
\x7461620968657265
\xff
1|quo"ted|2.5
2||
1
`, "~", "\t")
	if got := serve(t, t.TempDir()).psql(script); got != want {
		t.Errorf("psql prints (+) something else than it should (-):\n%s", lineDiff(want, got))
	}
}
