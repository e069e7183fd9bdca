package storage

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/streamdb/streamdb/dataflow"
)

// BenchmarkLogSync is one record at a time: append, and wait until durable.
func BenchmarkLogSync(b *testing.B) {
	for _, size := range []int{300, 64 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			s := openStore(b, filepath.Join(b.TempDir(), "d"), Options{})
			p := payload(1, size)
			var took []time.Duration
			e := dataflow.Epoch(0)
			for b.Loop() {
				e++
				start := time.Now()
				appendWait(b, s, e, p)
				took = append(took, time.Since(start))
				if e%1000 == 0 {
					commit(b, s, &Checkpoint{Epoch: e})
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkLogGroupCommit is many committers at a time.
func BenchmarkLogGroupCommit(b *testing.B) {
	for _, committers := range []int{8, 64, 512} {
		b.Run(fmt.Sprintf("committers=%d", committers), func(b *testing.B) {
			s := openStore(b, filepath.Join(b.TempDir(), "d"), Options{})
			p := payload(1, 300)
			n := 0
			start := time.Now()
			for b.Loop() {
				n++
				var wg sync.WaitGroup
				for range committers {
					wg.Go(func() {
						for range 20 {
							t, err := s.Append(LogRecord{1, p}, nil)
							if err == nil {
								err = t.Wait(context.Background())
							}
							if err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
			}
			st := s.Stats()
			b.ReportMetric(float64(n*committers*20)/time.Since(start).Seconds(), "commits/s")
			b.ReportMetric(float64(st.LogRecordsTotal)/float64(st.LogSync.Count), "commits/sync")
		})
	}
}

// BenchmarkLogPipelined appends without waiting, as a source under load does.
func BenchmarkLogPipelined(b *testing.B) {
	s := openStore(b, filepath.Join(b.TempDir(), "d"), Options{})
	p := payload(1, 64<<10)
	b.SetBytes(int64(len(p)))
	var last Ticket
	e := dataflow.Epoch(0)
	for b.Loop() {
		e++
		var err error
		if last, err = s.Append(LogRecord{e, p}, nil); err != nil {
			b.Fatal(err)
		}
		if e%4000 == 0 {
			commit(b, s, &Checkpoint{Epoch: e - 2000})
		}
	}
	if err := last.Wait(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOpenBlock opens a block that was verified before.
func BenchmarkOpenBlock(b *testing.B) {
	s := openStore(b, b.TempDir(), Options{})
	ref := writeBlock(b, s, Raw, payload(1, 1<<20))
	for b.Loop() {
		_, release, err := s.OpenBlock(ref.ID)
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}

// BenchmarkFirstOpen opens 1-MiB blocks for the first time after a restart,
// which verifies their checksums.
func BenchmarkFirstOpen(b *testing.B) {
	const n = 64
	dir := b.TempDir()
	s := openStore(b, dir, Options{})
	var refs []BlockRef
	for i := range n {
		refs = append(refs, writeBlock(b, s, Raw, payload(uint64(i), 1<<20)))
	}
	commit(b, s, &Checkpoint{Epoch: 1, Objects: []ObjectState{object(1, refs...)}})
	b.SetBytes(n << 20)
	for b.Loop() {
		b.StopTimer()
		closeStore(b, s)
		s = openStore(b, dir, Options{})
		b.StartTimer()
		for _, r := range refs {
			_, release, err := s.OpenBlock(r.ID)
			if err != nil {
				b.Fatal(err)
			}
			release()
		}
	}
}

// BenchmarkWriteBlock writes 64-KiB blocks into packs.
func BenchmarkWriteBlock(b *testing.B) {
	for _, c := range []Codec{Raw, Zstd} {
		b.Run([]string{"raw", "zstd"}[c], func(b *testing.B) {
			s := openStore(b, filepath.Join(b.TempDir(), "d"), Options{})
			p := slices.Repeat(payload(1, 64), 1<<10)
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				s.DeleteBlocks(writeBlock(b, s, c, p).ID)
			}
		})
	}
}

// BenchmarkCommit changes 16 of 1000 parts.
func BenchmarkCommit(b *testing.B) {
	s := openStore(b, b.TempDir(), Options{})
	c := &Checkpoint{Epoch: 1}
	for o := range 60 {
		st := ObjectState{Object: uint64(o), Fingerprint: "0123456789abcdef"}
		for p := range 16 {
			var refs []BlockRef
			for range 8 {
				refs = append(refs, writeBlock(b, s, Raw, payload(1, 4<<10)))
			}
			st.Parts = append(st.Parts, Part{Partition: uint32(p), Blocks: refs})
		}
		c.Objects = append(c.Objects, st)
	}
	commit(b, s, c)
	e := dataflow.Epoch(1)
	for b.Loop() {
		e++
		o := c.Objects[int(e)%60]
		for p := range o.Parts {
			o.Parts[p].Blocks[7] = writeBlock(b, s, Raw, payload(1, 4<<10))
		}
		commit(b, s, &Checkpoint{Epoch: e, Objects: []ObjectState{o}})
	}
}

// BenchmarkOpen opens a store with 10000 blocks and 8 MiB of log.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := openStore(b, dir, Options{})
	c := &Checkpoint{Epoch: 1}
	for o := range 100 {
		st := ObjectState{Object: uint64(o), Fingerprint: "0123456789abcdef", Parts: []Part{{}}}
		for range 100 {
			st.Parts[0].Blocks = append(st.Parts[0].Blocks, writeBlock(b, s, Raw, payload(1, 4<<10)))
		}
		c.Objects = append(c.Objects, st)
	}
	commit(b, s, c)
	for e := dataflow.Epoch(2); e < 130; e++ {
		appendWait(b, s, e, payload(uint64(e), 64<<10))
	}
	for b.Loop() {
		b.StopTimer()
		closeStore(b, s)
		b.StartTimer()
		s = openStore(b, dir, Options{})
	}
}
