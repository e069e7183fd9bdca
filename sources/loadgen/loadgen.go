// Package loadgen is the built-in sources: the Nexmark auction house, a
// delivery company, and a counter. Every event is a function of the seed and
// its number alone, so that a generator goes on after a restart exactly where
// it stopped, and two runs give the same rows.
package loadgen

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// position is the one partition of a generator.
const position = "event"

// maxChunk is the most events in one chunk.
const maxChunk = 1 << 16

// generator makes events [from, to) of a stream.
type generator interface {
	tables() []sources.Table
	generate(from, to int64) []sources.TableChunk
}

// Source runs a generator at a rate, from an event to the last one.
type Source struct {
	gen    generator
	rate   float64 // events a second; 0: as fast as they are taken
	events int64   // 0: for ever
	batch  int64
}

// New makes a generator by its name (nexmark, logistics, auction, counter, datagen) from
// options as declared in SQL: seed, events, rate (events a second, 0 or "max" for no
// limit), and for the counter "max cardinality". The columns are those of datagen.
func New(name string, options map[string]string, columns *sources.Table) (*Source, error) {
	seed, err := intOption(options, "seed", 42)
	if err != nil {
		return nil, err
	}
	events, err := intOption(options, "events", 0)
	if err != nil {
		return nil, err
	}
	s := &Source{events: events, batch: maxChunk}
	defaultRate := 0.0
	switch strings.ToLower(name) {
	case "nexmark":
		n := newNexmark(uint64(seed))
		if n.eventRate, err = rateOption(options, "event rate", 10_000); err != nil {
			return nil, err
		}
		s.gen = n
		defaultRate = 1_000
	case "logistics":
		s.gen = newLogistics(uint64(seed))
		s.batch = 1
		defaultRate = ticksPerSecond
	case "counter":
		card, err := intOption(options, "max cardinality", 0)
		if err != nil {
			return nil, err
		}
		s.gen = &counter{cardinality: card}
		defaultRate = 1
	case "auction":
		s.gen = &auction{uint64(seed), time.Now}
		s.batch = auctionRound
		defaultRate = 1
	case "datagen":
		return newDatagenSource(options, columns)
	default:
		return nil, pgerror.New(pgerror.InvalidParameterValue, "unknown load generator %q", name).
			WithHint("The load generators are NEXMARK, LOGISTICS, AUCTION, COUNTER and DATAGEN.")
	}
	if v, ok := options["tick interval"]; ok {
		d, err := time.ParseDuration(strings.ReplaceAll(v, " ", ""))
		if err != nil || d <= 0 {
			return nil, pgerror.New(pgerror.InvalidParameterValue, "invalid tick interval %q", v).
				WithHint("Give a duration such as '500ms'.")
		}
		defaultRate = float64(time.Second) / float64(d)
	}
	if s.rate, err = rateOption(options, "rate", defaultRate); err != nil {
		return nil, err
	}
	return s, checkOptions(options)
}

func checkOptions(options map[string]string) error {
	known := map[string]bool{"seed": true, "events": true, "rate": true, "event rate": true, "tick interval": true, "max cardinality": true,
		"as of": true, "up to": true} // of Materialize's ticks
	names := make([]string, 0, len(options))
	for k := range options {
		if !known[k] {
			names = append(names, k)
		}
	}
	if len(names) == 0 {
		return nil
	}
	sort.Strings(names)
	return pgerror.New(pgerror.InvalidParameterValue, "unknown load generator option %q", names[0]).
		WithHint("The options are SEED, EVENTS, RATE, EVENT RATE, TICK INTERVAL and MAX CARDINALITY.")
}

func intOption(options map[string]string, name string, def int64) (int64, error) {
	v, ok := options[name]
	if !ok {
		return def, nil
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(v, "_", ""), 10, 64)
	if err != nil || n < 0 {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid value for load generator option %q: %q", name, v)
	}
	return n, nil
}

func rateOption(options map[string]string, name string, def float64) (float64, error) {
	v, ok := options[name]
	if !ok {
		return def, nil
	}
	if strings.EqualFold(v, "max") {
		return 0, nil
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(v, "_", ""), 64)
	if err != nil || !(f >= 0) || f > 1e12 {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid value for load generator option %q: %q", name, v)
	}
	return f, nil
}

// Tables lists what the generator yields.
func (s *Source) Tables() []sources.Table { return s.gen.tables() }

// Run generates from a position on, at the source's rate.
func (s *Source) Run(ctx context.Context, from sources.Position, feed sources.Feed) error {
	n := from[position]
	start, base := time.Now(), n
	feed.SetStatus(sources.Status{State: "running", Updated: start})
	for s.events == 0 || n < s.events {
		to := n + s.batch
		if s.rate > 0 {
			due := base + int64(time.Since(start).Seconds()*s.rate)
			if due <= n {
				wait := time.Duration(float64(n+1-base)/s.rate*float64(time.Second)) - time.Since(start)
				if err := sleep(ctx, min(max(wait, time.Millisecond), time.Second)); err != nil {
					return err
				}
				continue
			}
			to = min(to, due)
		}
		if s.events > 0 {
			to = min(to, s.events)
		}
		c := &sources.Chunk{
			Tables:       s.gen.generate(n, to),
			Position:     sources.Position{position: to},
			SnapshotDone: true,
		}
		for _, t := range c.Tables {
			for _, v := range t.Rows.Cols {
				f, o, d := v.Raw()
				c.Bytes += int64(len(f) + 4*len(o) + len(d))
			}
		}
		if err := feed.Push(ctx, c); err != nil {
			return err
		}
		n = to
	}
	feed.SetStatus(sources.Status{State: "finished", Updated: time.Now()})
	<-ctx.Done()
	return ctx.Err()
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Durable, Close and Drop have nothing to do: a generator holds nothing upstream.
func (s *Source) Durable(sources.Position)   {}
func (s *Source) Close() error               { return nil }
func (s *Source) Drop(context.Context) error { return nil }

// Generate makes the chunks of events [from, to) without running the source.
func (s *Source) Generate(from, to int64) []sources.TableChunk { return s.gen.generate(from, to) }

// rng is SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, OOPSLA 2014), started anew for each event.
type rng struct{ state uint64 }

func eventRNG(seed uint64, n int64) rng {
	return rng{seed ^ uint64(n)*0xD1342543DE82EF95}
}

func (r *rng) next() uint64 {
	r.state += 0x9E3779B97F4A7C15
	z := r.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// counter yields 1, 2, 3, …; with a cardinality only the last so many remain.
type counter struct{ cardinality int64 }

func (c *counter) tables() []sources.Table {
	env := sources.EnvelopeAppend
	if c.cardinality > 0 {
		env = sources.EnvelopeChanges
	}
	return []sources.Table{{Columns: []sources.Column{{Name: "counter", Type: types.Int8, NotNull: true}}, Envelope: env}}
}

func (c *counter) generate(from, to int64) []sources.TableChunk {
	b := columnar.NewBuilder(columnar.KindInt64, int(to-from))
	var diffs []int64
	for n := from; n < to; n++ {
		b.Int64(n + 1)
		if c.cardinality > 0 {
			diffs = append(diffs, 1)
			if n >= c.cardinality {
				b.Int64(n + 1 - c.cardinality)
				diffs = append(diffs, -1)
			}
		}
	}
	ch := sources.TableChunk{}
	ch.Rows.N = b.Len()
	ch.Rows.Cols = []*columnar.Vec{b.Build()}
	ch.Rows.Diffs = diffs
	return []sources.TableChunk{ch}
}

// textPool is random lower-case text to cut strings from: a string costs one copy.
type textPool struct{ text []byte }

func newTextPool(seed uint64, letters string) *textPool {
	r := rng{seed}
	p := &textPool{text: make([]byte, 1<<16)}
	for i := range p.text {
		p.text[i] = letters[r.next()%uint64(len(letters))]
	}
	return p
}

// textRoom is about the bytes of generated texts.
const textRoom = 64

// cut appends n bytes of the pool at a place that h chooses.
func (p *textPool) cut(dst []byte, h uint64, n int) []byte {
	at := int(h % uint64(len(p.text)-n))
	return append(dst, p.text[at:at+n]...)
}

func builders(cols []sources.Column, capacity int) []*columnar.Builder {
	bs := make([]*columnar.Builder, len(cols))
	for i, c := range cols {
		bs[i] = columnar.NewBuilder(c.Type.Kind(), capacity)
		bs[i].ReserveData(textRoom * capacity)
	}
	return bs
}

func chunkOf(table int, bs []*columnar.Builder, diffs []int64) sources.TableChunk {
	ch := sources.TableChunk{Table: table}
	ch.Rows.N = bs[0].Len()
	ch.Rows.Diffs = diffs
	for _, b := range bs {
		ch.Rows.Cols = append(ch.Rows.Cols, b.Build())
	}
	return ch
}

var _ sources.Source = (*Source)(nil)

// String names the source in logs.
func (s *Source) String() string { return fmt.Sprintf("load generator (%g events/s)", s.rate) }
