package kafka

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/types"
)

// counter is a feed that adds up the first column.
type counter struct {
	rows, sum, errors atomic.Int64
	done              chan struct{}
	want              int64
}

func (c *counter) Push(_ context.Context, ch *sources.Chunk) error {
	for _, t := range ch.Tables {
		for _, x := range t.Rows.Cols[0].Int64s() {
			c.sum.Add(x)
		}
		c.rows.Add(int64(t.Rows.N))
	}
	c.errors.Add(int64(len(ch.Errors)))
	if c.rows.Load()+c.errors.Load() >= c.want {
		select {
		case <-c.done:
		default:
			close(c.done)
		}
	}
	return nil
}

func (c *counter) SetStatus(sources.Status) {}

func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestMillion reads a million small records, all of them and once, and logs how
// fast.
func TestMillion(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	c := newCluster(t)
	topic := c.topic(4)
	const n = 1_000_000
	want := int64(0)
	var failed atomic.Int64
	for i := range int64(n) {
		want += i
		r := &kgo.Record{Topic: topic, Partition: int32(i % 4), Value: fmt.Appendf(nil, `{"id":%d,"name":"name %d","price":%d.25}`, i, i%1000, i%777)}
		c.cl.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Add(1)
			}
		})
	}
	if err := c.cl.Flush(context.Background()); err != nil || failed.Load() > 0 {
		t.Fatalf("%v, %d records could not be produced", err, failed.Load())
	}
	s := declare(t, c.options(topic, "format", "json"), columns("id", types.Int8, "name", types.Text, "price", types.Numeric))
	f := &counter{done: make(chan struct{}), want: n}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	began, cpu := time.Now(), cpuTime(t)
	go func() { ended <- s.Run(ctx, nil, f) }()
	select {
	case <-f.done:
	case <-time.After(5 * time.Minute):
		t.Errorf("only %d rows", f.rows.Load())
	}
	took, used := time.Since(began), cpuTime(t)-cpu
	cancel()
	<-ended
	if f.rows.Load() != n || f.sum.Load() != want || f.errors.Load() != 0 {
		t.Errorf("%d rows, sum %d, %d errors; want %d, %d, 0", f.rows.Load(), f.sum.Load(), f.errors.Load(), n, want)
	}
	t.Logf("%.2f M records/s, %.2f us of CPU a record", n/took.Seconds()/1e6, float64(used.Microseconds())/n)
}
