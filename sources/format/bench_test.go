package format

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/hamba/avro/v2"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/types"
)

// bid is Nexmark's, which the benchmarks decode.
type bid struct {
	Auction  int64  `json:"auction" avro:"auction"`
	Bidder   int64  `json:"bidder" avro:"bidder"`
	Price    int64  `json:"price" avro:"price"`
	Channel  string `json:"channel" avro:"channel"`
	URL      string `json:"url" avro:"url"`
	DateTime string `json:"dateTime" avro:"-"`
	Millis   int64  `json:"-" avro:"dateTime"`
	Extra    string `json:"extra" avro:"extra"`
}

const bidSchema = `{"type":"record","name":"Bid","fields":[
	{"name":"auction","type":"long"},{"name":"bidder","type":"long"},{"name":"price","type":"long"},
	{"name":"channel","type":"string"},{"name":"url","type":"string"},
	{"name":"dateTime","type":{"type":"long","logicalType":"timestamp-millis"}},
	{"name":"extra","type":"string"}]}`

var bidColumns = []sources.Column{
	{Name: "auction", Type: types.Int8}, {Name: "bidder", Type: types.Int8}, {Name: "price", Type: types.Int8},
	{Name: "channel", Type: types.Text}, {Name: "url", Type: types.Text},
	{Name: "dateTime", Type: types.TimestampTZ}, {Name: "extra", Type: types.Text},
}

// bids makes records of 242 bytes as JSON, 152 as Avro, on average.
func bids(n int) []bid {
	r := rand.New(rand.NewPCG(1, 1))
	letters := func(k int) string {
		b := make([]byte, k)
		for i := range b {
			b[i] = byte('a' + r.IntN(26))
		}
		return string(b)
	}
	out := make([]bid, n)
	for i := range out {
		ms := int64(1_436_918_400_000) + r.Int64N(86_400_000)
		out[i] = bid{
			Auction: 1000 + r.Int64N(100_000), Bidder: 1000 + r.Int64N(1_000_000), Price: 100 + r.Int64N(100_000_000),
			Channel: "channel-" + fmt.Sprint(r.IntN(10_000)),
			URL:     "https://www.nexmark.com/" + letters(5) + "/" + letters(5) + "/" + letters(4) + "/item.htm?query=1",
			Millis:  ms, Extra: letters(64),
		}
		ts := types.AppendTimestamp(nil, (ms-types.UnixEpochSecond*1000)*1000)
		for len(ts) < 23 {
			if len(ts) == 19 {
				ts = append(ts, '.')
			}
			ts = append(ts, '0')
		}
		out[i].DateTime = string(ts)
	}
	return out
}

const benchRows = 1 << 12

func benchmarkDecode(b *testing.B, d Decoder, cols []sources.Column, recs [][]byte) {
	b.Helper()
	total := 0
	for _, r := range recs {
		total += len(r)
	}
	ctx := context.Background()
	bs := make([]*columnar.Builder, len(cols))
	for i, c := range cols {
		bs[i] = columnar.NewPooledBuilder(c.Type.Kind(), len(recs))
	}
	b.SetBytes(int64(total))
	b.ReportAllocs()
	start := cpuTime()
	for b.Loop() {
		for _, r := range recs {
			if err := d.Decode(ctx, bs, r); err != nil {
				b.Fatal(err)
			}
		}
		for i := range bs {
			bs[i].Build().Recycle()
		}
	}
	n := float64(b.N) * float64(len(recs))
	cpu := cpuTime() - start
	b.ReportMetric(n/cpu.Seconds()/1e6, "Mrecords/cpu-s")
	b.ReportMetric(float64(cpu.Nanoseconds())/n, "cpu-ns/record")
	b.ReportMetric(float64(total)/float64(len(recs)), "B/record")
}

// cpuTime is the processor time of this process: what a rate must be measured
// in on a machine that others use too.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func avroBids(tb testing.TB) [][]byte {
	s := avro.MustParse(bidSchema)
	var recs [][]byte
	for _, x := range bids(benchRows) {
		enc, err := avro.Marshal(s, x)
		if err != nil {
			tb.Fatal(err)
		}
		recs = append(recs, enc)
	}
	return recs
}

func BenchmarkAvroBid(b *testing.B) {
	s, err := ParseAvro(bidSchema)
	if err != nil {
		b.Fatal(err)
	}
	cols, fields := s.Columns("data")
	d, err := NewAvro(AvroOptions{Reader: s, Columns: fields})
	if err != nil {
		b.Fatal(err)
	}
	benchmarkDecode(b, d, cols, avroBids(b))
}

func jsonBids(tb testing.TB) [][]byte {
	var recs [][]byte
	for _, x := range bids(benchRows) {
		enc, err := json.Marshal(x)
		if err != nil {
			tb.Fatal(err)
		}
		recs = append(recs, enc)
	}
	return recs
}

func jsonFields(cols []sources.Column) []Column {
	var out []Column
	for _, c := range cols {
		out = append(out, Column{Field: c.Name, Type: c.Type})
	}
	return out
}

func BenchmarkJSONBid(b *testing.B) {
	benchmarkDecode(b, NewJSON(JSONOptions{Columns: jsonFields(bidColumns)}), bidColumns, jsonBids(b))
}

// BenchmarkJSONBidInts decodes three numbers and checks the rest.
func BenchmarkJSONBidInts(b *testing.B) {
	cols := bidColumns[:3]
	benchmarkDecode(b, NewJSON(JSONOptions{Columns: jsonFields(cols)}), cols, jsonBids(b))
}

// BenchmarkJSONBidJSONB keeps the record as one jsonb value.
func BenchmarkJSONBidJSONB(b *testing.B) {
	cols := []sources.Column{{Name: "data", Type: types.JSONB}}
	benchmarkDecode(b, NewJSON(JSONOptions{Columns: []Column{{Type: types.JSONB}}}), cols, jsonBids(b))
}

// BenchmarkLibraryJSON and BenchmarkLibraryAvro are what general libraries take.
func BenchmarkLibraryJSON(b *testing.B) {
	recs := jsonBids(b)
	start := cpuTime()
	for b.Loop() {
		for _, r := range recs {
			var x bid
			if err := json.Unmarshal(r, &x); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N)/float64(len(recs)), "cpu-ns/record")
}

func BenchmarkLibraryAvro(b *testing.B) {
	recs, s := avroBids(b), avro.MustParse(bidSchema)
	start := cpuTime()
	for b.Loop() {
		for _, r := range recs {
			var x bid
			if err := avro.Unmarshal(s, r, &x); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N)/float64(len(recs)), "cpu-ns/record")
}
