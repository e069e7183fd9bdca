package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/streamdb/streamdb/dataflow"
)

// small makes everything happen with little data.
func small() Options {
	return Options{SegmentBytes: 4 << 10, PackBytes: 16 << 10, MinFreeBytes: 1}
}

func openStore(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

func reopen(t testing.TB, s *Store, o Options) *Store {
	t.Helper()
	closeStore(t, s)
	return openStore(t, s.dir, o)
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func appendWait(t testing.TB, s *Store, epoch dataflow.Epoch, payload []byte) {
	t.Helper()
	ticket, err := s.Append(LogRecord{epoch, payload}, nil)
	if err == nil {
		err = ticket.Wait(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func payload(n uint64, size int) []byte {
	b := make([]byte, max(size, 8))
	r := rand.NewPCG(n, 1)
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], r.Uint64())
	}
	binary.LittleEndian.PutUint64(b, n)
	return b
}

// replayed is the epochs of the log after one, with payloads checked.
func replayed(t testing.TB, s *Store, after dataflow.Epoch) []dataflow.Epoch {
	t.Helper()
	var epochs []dataflow.Epoch
	err := s.Replay(after, func(r LogRecord) error {
		if want := payload(uint64(r.Epoch), len(r.Payload)); !bytes.Equal(r.Payload, want) {
			t.Errorf("epoch %d has another payload", r.Epoch)
		}
		epochs = append(epochs, r.Epoch)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return epochs
}

func upTo(from, to dataflow.Epoch) []dataflow.Epoch {
	var e []dataflow.Epoch
	for ; from <= to; from++ {
		e = append(e, from)
	}
	return e
}

func writeBlock(t testing.TB, s *Store, c Codec, parts ...[]byte) BlockRef {
	t.Helper()
	id, n, err := s.WriteBlock(c, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return BlockRef{ID: id, Bytes: n, Rows: 1}
}

func checkBlock(t testing.TB, s *Store, id BlockID, want []byte) {
	t.Helper()
	got, release, err := s.OpenBlock(id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if !bytes.Equal(got, want) {
		t.Fatalf("block %s has other bytes", id)
	}
	if len(got) > 0 && uintptr(unsafe.Pointer(&got[0]))%64 != 0 {
		t.Fatalf("block %s is not aligned", id)
	}
}

func commit(t testing.TB, s *Store, c *Checkpoint) {
	t.Helper()
	var b Batch
	b.SetCheckpoint(c)
	if err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
}

func object(id uint64, refs ...BlockRef) ObjectState {
	return ObjectState{Object: id, Fingerprint: "f", Parts: []Part{{Spine: 1, Partition: 2, Blocks: refs}}}
}

// settled waits for the upkeep of block files.
func settled(t testing.TB, s *Store) {
	t.Helper()
	for range 1000 {
		s.blocks.mu.Lock()
		u := &s.blocks.upkeep
		busy := u.working || len(u.remove)+len(u.punch)+len(u.verify) > 0
		s.blocks.mu.Unlock()
		if !busy {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("upkeep does not end")
}

func blockFiles(t testing.TB, s *Store) int {
	t.Helper()
	names, err := s.fs.List(s.path("blocks"))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestLogSurvivesReopen(t *testing.T) {
	for name, o := range map[string]Options{"disk": small(), "memory": {FS: NewMemFS(), SegmentBytes: 4 << 10}} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, filepath.Join(t.TempDir(), "d"), o)
			n := dataflow.Epoch(0)
			for range 3 {
				for range 40 {
					n++
					appendWait(t, s, n, payload(uint64(n), int(n)*7))
				}
				s = reopen(t, s, o)
				if got := replayed(t, s, 0); !slices.Equal(got, upTo(1, n)) {
					t.Fatalf("replayed %v, want 1…%d", got, n)
				}
				if got := replayed(t, s, 17); !slices.Equal(got, upTo(18, n)) {
					t.Fatalf("replayed %v, want 18…%d", got, n)
				}
				if s.EpochHighWater() != n || s.DurableEpoch() != n {
					t.Fatalf("high water %d, durable %d, want %d", s.EpochHighWater(), s.DurableEpoch(), n)
				}
			}
		})
	}
}

func TestLogRecordOfAnySize(t *testing.T) {
	o := small()
	o.MaxPendingBytes = 100 << 10
	s := openStore(t, t.TempDir(), o)
	sizes := []int{8, 4000, 4 << 10, 300 << 10, 8, 2 << 20, 4096 - 64 - 48, 256 << 10}
	for i, size := range sizes {
		appendWait(t, s, dataflow.Epoch(i+1), payload(uint64(i+1), size))
	}
	s = reopen(t, s, o)
	if got := replayed(t, s, 0); !slices.Equal(got, upTo(1, dataflow.Epoch(len(sizes)))) {
		t.Fatalf("replayed %v", got)
	}
}

func TestLogRefusesEpochsGoingBack(t *testing.T) {
	s := openStore(t, t.TempDir(), small())
	appendWait(t, s, 5, payload(5, 8))
	appendWait(t, s, 5, payload(5, 8))
	if _, err := s.Append(LogRecord{4, nil}, nil); err == nil {
		t.Fatal("epoch 4 after 5 was taken")
	}
}

func TestLogConcurrentAppends(t *testing.T) {
	o := small()
	o.SegmentBytes, o.MaxPendingBytes = 64<<10, 8<<10
	s := openStore(t, t.TempDir(), o)
	var mu sync.Mutex
	var epoch dataflow.Epoch
	var called []dataflow.Epoch
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				mu.Lock()
				epoch++
				e := epoch
				ticket, err := s.Append(LogRecord{e, payload(uint64(e), 100+int(e%300))}, func(err error) {
					if err == nil {
						called = append(called, e)
					}
				})
				mu.Unlock()
				if err == nil {
					err = ticket.Wait(context.Background())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	syncs := s.Stats().LogSync.Count
	s = reopen(t, s, o)
	if !slices.Equal(called, upTo(1, epoch)) {
		t.Fatalf("called back for %d of %d records, or out of order", len(called), epoch)
	}
	if got := replayed(t, s, 0); !slices.Equal(got, upTo(1, epoch)) {
		t.Fatalf("replayed %d of %d records", len(got), epoch)
	}
	if syncs >= int64(epoch) {
		t.Errorf("%d syncs for %d records", syncs, epoch)
	}
}

func TestLogSegmentsAreReleasedAndReused(t *testing.T) {
	o := small()
	s := openStore(t, t.TempDir(), o)
	for e := dataflow.Epoch(1); e <= 400; e++ {
		appendWait(t, s, e, payload(uint64(e), 400))
		if e%20 == 0 {
			commit(t, s, &Checkpoint{Epoch: e - 3})
		}
		if n := s.Stats().LogSegments; n > 8 {
			t.Fatalf("%d segments at epoch %d", n, e)
		}
	}
	if s.log.nextNumber < 40 {
		t.Fatalf("only %d segments were used", s.log.nextNumber)
	}
	s = reopen(t, s, o)
	if got := replayed(t, s, s.Checkpoint().Epoch); !slices.Equal(got, upTo(398, 400)) {
		t.Fatalf("replayed %v", got)
	}
}

func TestReplayDuringAppends(t *testing.T) {
	s := openStore(t, t.TempDir(), small())
	for e := dataflow.Epoch(1); e <= 50; e++ {
		appendWait(t, s, e, payload(uint64(e), 500))
	}
	n := 0
	err := s.Replay(0, func(r LogRecord) error {
		n++
		appendWait(t, s, 50+dataflow.Epoch(n), payload(1, 500))
		commit(t, s, &Checkpoint{Epoch: 50})
		return nil
	})
	if err != nil || n != 50 {
		t.Fatalf("replayed %d records: %v", n, err)
	}
}

// flip damages one byte of a file.
func flip(t testing.TB, path string, off int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], off); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x40
	if _, err := f.WriteAt(b[:], off); err != nil {
		t.Fatal(err)
	}
}

func wantCorruption(t testing.TB, err error, file string, off int64) {
	t.Helper()
	var c *CorruptionError
	if !errors.Is(err, ErrCorruption) || !errors.As(err, &c) {
		t.Fatalf("got %v, want corruption", err)
	}
	if filepath.Base(c.File) != file || c.Offset != off {
		t.Fatalf("corruption in %s at %d, want %s at %d", c.File, c.Offset, file, off)
	}
}

func TestLogCorruptionIsNamed(t *testing.T) {
	const records, size = 20, 400
	at := func(record int64) int64 { return segmentHeaderSize + record*frameSize(size) }
	for _, c := range []struct {
		name    string
		segment uint64
		off     int64
		want    int64
	}{
		{"payload in the middle", 1, at(2) + 200, at(2)},
		{"header in the middle", 1, at(3) + 20, at(3)},
		{"length in the middle", 1, at(0) + 17, at(0)},
		{"last record of a segment", 1, at(8) + 60, at(8)},
		{"last record of all, after a clean close", 3, at(1) + 100, at(1)},
		{"segment header", 2, 16, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir, small())
			for e := uint64(1); e <= records; e++ {
				appendWait(t, s, dataflow.Epoch(e), payload(e, size))
			}
			closeStore(t, s)
			flip(t, filepath.Join(dir, "log", segmentName(c.segment)), c.off)
			_, err := Open(dir, small())
			wantCorruption(t, err, segmentName(c.segment), c.want)
		})
	}
}

func TestLogMissingSegmentIsNamed(t *testing.T) {
	for segment := uint64(1); segment <= 3; segment++ {
		dir := t.TempDir()
		s := openStore(t, dir, small())
		for e := uint64(1); e <= 20; e++ {
			appendWait(t, s, dataflow.Epoch(e), payload(e, 400))
		}
		closeStore(t, s)
		if err := os.Remove(filepath.Join(dir, "log", segmentName(segment))); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, small()); !errors.Is(err, ErrCorruption) {
			t.Errorf("without segment %d: %v", segment, err)
		}
	}
}

func TestLogSyncFailureIsFinal(t *testing.T) {
	var fail errorfs.Toggle
	fail.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync && strings.HasSuffix(op.Path, ".log") || op.Kind == errorfs.OpFileSyncData {
			return errors.New("disk is gone")
		}
		return nil
	})
	mem := NewMemFS()
	o := small()
	o.FS = errorfs.Wrap(mem, &fail)
	s := openStore(t, "d", o)
	appendWait(t, s, 1, payload(1, 8))
	fail.On()
	ticket, err := s.Append(LogRecord{2, payload(2, 8)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ticket.Wait(context.Background()); !errors.Is(err, ErrFailed) {
		t.Fatalf("got %v, want ErrFailed", err)
	}
	fail.Off()
	if _, err := s.Append(LogRecord{3, payload(3, 8)}, nil); !errors.Is(err, ErrFailed) {
		t.Fatalf("got %v, want ErrFailed", err)
	}
	o.FS = mem
	s = reopen(t, s, o)
	// The record was written: it may be served, but then it must stay.
	if got := replayed(t, s, 0); !slices.Equal(got, upTo(1, 2)) {
		t.Fatalf("replayed %v", got)
	}
	o.FS = mem.CrashClone(CrashConfig{})
	s = openStore(t, "d", o)
	if got := replayed(t, s, 0); !slices.Equal(got, upTo(1, 2)) {
		t.Fatalf("replayed %v after a crash", got)
	}
}

// TestLogCorruptionAfterCrash has no mark of a close or commit to go by: only
// the frames themselves tell what was durable.
func TestLogCorruptionAfterCrash(t *testing.T) {
	mem := NewMemFS()
	o := small()
	o.FS = mem
	s := openStore(t, "d", o)
	for e := uint64(1); e <= 15; e++ {
		appendWait(t, s, dataflow.Epoch(e), payload(e, 400))
	}
	for record := range int64(15) {
		c := mem.CrashClone(CrashConfig{})
		name, at := segmentName(uint64(1+record/9)), segmentHeaderSize+record%9*frameSize(400)
		damage(t, c, "d/log/"+name, int(at)+300)
		o.FS = c
		torn, err := Open("d", o)
		if record < 14 {
			wantCorruption(t, err, name, at)
			continue
		}
		// Of the very last one nobody can know whether it was synced.
		if err != nil {
			t.Fatal(err)
		}
		if got := replayed(t, torn, 0); !slices.Equal(got, upTo(1, 14)) {
			t.Fatalf("replayed %v", got)
		}
		closeStore(t, torn)
	}
}

// TestTornGroupStaysDead has a crash leave a later record of a group and not an
// earlier one. When the log has gone on, the later one must not come back.
func TestTornGroupStaysDead(t *testing.T) {
	mem := NewMemFS()
	o := small()
	o.FS = mem
	closeStore(t, openStore(t, "d", o))
	seg, err := createSegment(mem, "d/log", 9, o.SegmentBytes, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= 3; i++ {
		b := make([]byte, frameHeaderSize)
		fr := frame{length: 8, payloadCRC: checksum(payload(i, 8)), seq: i, durable: min(i-1, 1), epoch: dataflow.Epoch(i)}
		fr.put(b, seg.salt)
		if i == 2 {
			b[20]++
		}
		if _, err := seg.f.WriteAt(append(b, payload(i, 8)...), seg.used); err != nil {
			t.Fatal(err)
		}
		seg.used += frameSize(8)
	}
	if err := errors.Join(seg.f.Sync(), seg.f.Close()); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, "d", o)
	if got := replayed(t, s, 0); !slices.Equal(got, upTo(1, 1)) {
		t.Fatalf("replayed %v", got)
	}
	appendWait(t, s, 2, payload(2, 8))
	s = reopen(t, s, o)
	if got := replayed(t, s, 0); !slices.Equal(got, upTo(1, 2)) {
		t.Fatalf("replayed %v", got)
	}
}

// damage flips bits of one byte of a file in memory.
func damage(t testing.TB, fs *MemFS, path string, off int) {
	t.Helper()
	content, err := readAll(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{content[off] ^ 0x21}, int64(off)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDiskFullRefusesAndRecovers(t *testing.T) {
	mem := NewMemFS()
	o := Options{FS: mem, SegmentBytes: 4 << 10, MinFreeBytes: 64 << 10}
	s := openStore(t, "d", o)
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 40 << 10, TotalBytes: 1 << 20})
	var e uint64
	var err error
	for err == nil && e < 100 {
		var ticket Ticket
		if ticket, err = s.Append(LogRecord{dataflow.Epoch(e + 1), payload(e+1, 400)}, nil); err == nil {
			e++
			err = ticket.Wait(context.Background())
		}
	}
	if !errors.Is(err, ErrDiskFull) {
		t.Fatalf("got %v after %d records, want ErrDiskFull", err, e)
	}
	if _, _, err := s.WriteBlock(Raw, payload(1, 100)); !errors.Is(err, ErrDiskFull) {
		t.Fatalf("block: got %v, want ErrDiskFull", err)
	}
	// The reserve is for what frees space.
	commit(t, s, &Checkpoint{Epoch: 1})
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 8 << 10, TotalBytes: 1 << 20})
	var b Batch
	b.PutCatalog("k", []byte("v"))
	if err := s.Commit(&b); !errors.Is(err, ErrDiskFull) {
		t.Fatalf("commit: got %v, want ErrDiskFull", err)
	}
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 30, TotalBytes: 1 << 30})
	if err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		e++
		appendWait(t, s, dataflow.Epoch(e), payload(e, 400))
	}
	s = reopen(t, s, o)
	if got := replayed(t, s, 1); !slices.Equal(got, upTo(2, dataflow.Epoch(e))) {
		t.Fatalf("replayed %v", got)
	}
}

func TestNoSpaceErrorIsDiskFull(t *testing.T) {
	var fail errorfs.Toggle
	fail.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWriteAt {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	})
	o := small()
	o.FS = errorfs.Wrap(NewMemFS(), &fail)
	s := openStore(t, "d", o)
	first := writeBlock(t, s, Raw, payload(1, 100))
	fail.On()
	for _, size := range []int{100, 10 << 10} {
		if _, _, err := s.WriteBlock(Raw, payload(1, size)); !errors.Is(err, ErrDiskFull) {
			t.Fatalf("got %v, want ErrDiskFull", err)
		}
	}
	fail.Off()
	second := writeBlock(t, s, Raw, payload(2, 100))
	commit(t, s, &Checkpoint{Epoch: 1, Objects: []ObjectState{object(1, first, second)}})
	s = reopen(t, s, o)
	checkBlock(t, s, first.ID, payload(1, 100))
	checkBlock(t, s, second.ID, payload(2, 100))
}

func TestBlocksRoundTrip(t *testing.T) {
	for name, fs := range map[string]FS{"mapped": nil, "memory": NewMemFS()} {
		t.Run(name, func(t *testing.T) {
			o := small()
			o.FS, o.VerifyBytes = fs, 20<<10
			s := openStore(t, filepath.Join(t.TempDir(), "d"), o)
			contents := map[BlockID][]byte{}
			var refs []BlockRef
			for i, size := range []int{8, 64, 65, 1000, 3000, 5000, 100 << 10, 700 << 10} {
				p := payload(uint64(i), size)
				for _, c := range []Codec{Raw, Zstd} {
					for _, parts := range [][][]byte{{p}, {p[:7], nil, p[7:]}, {bytes.Repeat(p[:8], size)}} {
						r := writeBlock(t, s, c, parts...)
						contents[r.ID] = bytes.Join(parts, nil)
						refs = append(refs, r)
					}
				}
			}
			empty := writeBlock(t, s, Raw)
			contents[empty.ID] = nil
			refs = append(refs, empty)
			for id, want := range contents {
				checkBlock(t, s, id, want)
			}
			commit(t, s, &Checkpoint{Epoch: 1, Objects: []ObjectState{object(1, refs...)}})
			s = reopen(t, s, o)
			for range 2 {
				for id, want := range contents {
					checkBlock(t, s, id, want)
				}
				settled(t, s)
			}
			st := s.Stats()
			if st.Blocks != len(refs) || st.BlocksOpen != 0 {
				t.Fatalf("%d blocks, %d open, want %d, 0", st.Blocks, st.BlocksOpen, len(refs))
			}
		})
	}
}

func TestBlockCorruptionIsNamed(t *testing.T) {
	dir := t.TempDir()
	o := small()
	o.VerifyBytes = 64 << 10
	found := make(chan *CorruptionError, 10)
	o.OnCorruption = func(err *CorruptionError) { found <- err }
	s := openStore(t, dir, o)
	a := writeBlock(t, s, Raw, payload(1, 1000))
	b := writeBlock(t, s, Raw, payload(2, 1000))
	c := writeBlock(t, s, Zstd, bytes.Repeat([]byte("abc"), 1000))
	big := writeBlock(t, s, Raw, payload(3, 200<<10))
	commit(t, s, &Checkpoint{Epoch: 1, Objects: []ObjectState{object(1, a, b, c, big)}})
	closeStore(t, s)
	pack, own := blockFileName(a.ID.file()), blockFileName(big.ID.file())
	flip(t, filepath.Join(dir, "blocks", pack), b.ID.offset()+500)
	flip(t, filepath.Join(dir, "blocks", pack), c.ID.offset()+4)
	flip(t, filepath.Join(dir, "blocks", own), 150<<10)
	s = openStore(t, dir, o)
	checkBlock(t, s, a.ID, payload(1, 1000))
	_, _, err := s.OpenBlock(b.ID)
	wantCorruption(t, err, pack, b.ID.offset())
	_, _, err = s.OpenBlock(c.ID)
	wantCorruption(t, err, pack, c.ID.offset())
	// A big block is given out first, and found bad in the background.
	_, release, err := s.OpenBlock(big.ID)
	if err != nil {
		t.Fatal(err)
	}
	release()
	wantCorruption(t, <-found, own, 0)
	settled(t, s)
	_, _, err = s.OpenBlock(big.ID)
	wantCorruption(t, err, own, 0)
	closeStore(t, s)

	if err := Verify(t.Context(), dir, o); !errors.Is(err, ErrCorruption) {
		t.Fatalf("Verify: %v", err)
	}
	if err := os.Truncate(filepath.Join(dir, "blocks", own), 100<<10); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, o)
	wantCorruption(t, err, own, 100<<10)
	if err := os.Remove(filepath.Join(dir, "blocks", own)); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, o)
	wantCorruption(t, err, own, 0)
}

func TestBlockLifetime(t *testing.T) {
	o := small()
	s := openStore(t, t.TempDir(), o)
	gone := func(id BlockID) {
		t.Helper()
		settled(t, s)
		if _, _, err := s.OpenBlock(id); !errors.Is(err, ErrNotFound) {
			t.Fatalf("got %v, want ErrNotFound", err)
		}
	}
	given := writeBlock(t, s, Raw, payload(1, 8<<10))
	s.DeleteBlocks(given.ID)
	gone(given.ID)

	kept := writeBlock(t, s, Raw, payload(2, 8<<10))
	commit(t, s, &Checkpoint{Epoch: 1, Objects: []ObjectState{object(1, kept), object(2, kept)}})
	s.DeleteBlocks(kept.ID) // the checkpoint has it
	checkBlock(t, s, kept.ID, payload(2, 8<<10))
	commit(t, s, &Checkpoint{Epoch: 2, DropObjects: []uint64{1}})
	checkBlock(t, s, kept.ID, payload(2, 8<<10))

	next := writeBlock(t, s, Raw, payload(3, 8<<10))
	later := writeBlock(t, s, Raw, payload(4, 8<<10))
	data, release, err := s.OpenBlock(kept.ID)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s, &Checkpoint{Epoch: 3, Objects: []ObjectState{object(2, next)}})
	if !bytes.Equal(data, payload(2, 8<<10)) { // a reader has it
		t.Fatal("block changed under its reader")
	}
	release()
	release()
	gone(kept.ID)
	checkBlock(t, s, later.ID, payload(4, 8<<10)) // its writer has it
	if n := blockFiles(t, s); n != 2 {
		t.Fatalf("%d block files, want 2", n)
	}
	s = reopen(t, s, o)
	checkBlock(t, s, next.ID, payload(3, 8<<10))
	gone(later.ID)
	if n := blockFiles(t, s); n != 1 {
		t.Fatalf("%d block files, want 1", n)
	}
	reused := writeBlock(t, s, Raw, payload(5, 8<<10))
	if reused.ID.file() <= later.ID.file() {
		t.Fatalf("file %d comes after %d", reused.ID.file(), later.ID.file())
	}
}

func TestCloseReportsOpenBlocks(t *testing.T) {
	s := openStore(t, t.TempDir(), small())
	r := writeBlock(t, s, Raw, payload(1, 100))
	data, release, err := s.OpenBlock(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "1 blocks are still open") {
		t.Fatalf("got %v", err)
	}
	if !bytes.Equal(data, payload(1, 100)) {
		t.Fatal("bytes changed")
	}
	release()
}

func TestHolesArePunched(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("holes are punched on Linux only")
	}
	o := small()
	o.PackBytes = 4 << 20
	s := openStore(t, t.TempDir(), o)
	var refs []BlockRef
	for i := range 32 {
		refs = append(refs, writeBlock(t, s, Raw, payload(uint64(i), 100<<10)))
	}
	commit(t, s, &Checkpoint{Epoch: 1, Objects: []ObjectState{object(1, refs...)}})
	before := allocated(t, s.blocks.files[refs[0].ID.file()].path)
	keep := []BlockRef{refs[3], refs[31]}
	commit(t, s, &Checkpoint{Epoch: 2, Objects: []ObjectState{object(1, keep...)}})
	settled(t, s)
	after := allocated(t, s.blocks.files[refs[0].ID.file()].path)
	if s.Stats().PunchedTotal == 0 || after > before/4 {
		t.Errorf("%d bytes on disk of %d before, punched %d", after, before, s.Stats().PunchedTotal)
	}
	for range 2 {
		checkBlock(t, s, refs[3].ID, payload(3, 100<<10))
		checkBlock(t, s, refs[31].ID, payload(31, 100<<10))
		s = reopen(t, s, o)
	}
}

func allocated(t testing.TB, path string) int64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, n, err := fileUsage(f.Fd())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestGuardNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, small())
	r := writeBlock(t, s, Raw, payload(1, 64<<10))
	data, release, err := s.OpenBlock(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	// A mapped page beyond the end of the file faults as one that cannot be read.
	name := blockFileName(r.ID.file())
	if err := os.Truncate(filepath.Join(dir, "blocks", name), 0); err != nil {
		t.Fatal(err)
	}
	var sink byte
	err = s.Guard(func() error { sink = data[40<<10]; return nil })
	wantCorruption(t, err, name, (40<<10+blockHeaderSize)&^4095|(40<<10+blockHeaderSize)&4095)
	_ = sink
	if err := s.Guard(func() error { return errMalformed }); !errors.Is(err, errMalformed) {
		t.Fatalf("got %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("another panic did not pass")
		}
	}()
	_ = s.Guard(func() error { panic("mine") })
}

func TestCheckpointIsIncrementalAndWhole(t *testing.T) {
	for name, fs := range map[string]FS{"disk": nil, "memory": NewMemFS()} {
		t.Run(name, func(t *testing.T) { testCheckpoint(t, fs) })
	}
}

// testCheckpoint compares with a model under random changes and restarts.
func testCheckpoint(t *testing.T, fs FS) {
	o := small()
	o.FS = fs
	s := openStore(t, filepath.Join(t.TempDir(), "d"), o)
	if s.Checkpoint() != nil {
		t.Fatal("a new store has a checkpoint")
	}
	r := rand.New(rand.NewPCG(1, 2))
	objects := map[uint64]ObjectState{}
	sources := map[uint64]Positions{}
	contents := map[BlockID][]byte{}
	newBlock := func() BlockRef {
		p := payload(r.Uint64(), 8+r.IntN(6000))
		ref := writeBlock(t, s, Codec(r.IntN(2)), p)
		ref.Rows, ref.Lower, ref.Upper, ref.Since = r.Int64N(1000), dataflow.Epoch(r.IntN(9)), dataflow.MaxEpoch, dataflow.Epoch(r.IntN(9))
		if r.IntN(3) == 0 {
			ref.Meta = []byte{1, 2, byte(r.IntN(9))}
		}
		contents[ref.ID] = p
		return ref
	}
	for epoch := dataflow.Epoch(1); epoch <= 60; epoch++ {
		c := &Checkpoint{Epoch: epoch, Sources: map[uint64]Positions{}}
		if id := uint64(r.IntN(6)); r.IntN(3) == 0 {
			c.DropObjects = append(c.DropObjects, id)
			delete(objects, id)
			c.DropSources = append(c.DropSources, id)
			delete(sources, id)
		}
		for range r.IntN(3) {
			o := ObjectState{Object: uint64(r.IntN(6)), Fingerprint: fmt.Sprint(r.IntN(2))}
			if slices.ContainsFunc(c.Objects, func(x ObjectState) bool { return x.Object == o.Object }) {
				continue
			}
			if old, ok := objects[o.Object]; ok && r.IntN(2) == 0 {
				o.Parts = append(o.Parts, old.Parts[0]) // unchanged blocks
			}
			for i := len(o.Parts); i < 1+r.IntN(4); i++ {
				p := Part{Spine: uint32(i), Partition: uint32(i * 3)}
				for range 1 + r.IntN(3) {
					p.Blocks = append(p.Blocks, newBlock())
				}
				o.Parts = append(o.Parts, p)
			}
			if len(o.Parts) == 0 {
				o.Parts = []Part{{Blocks: []BlockRef{newBlock()}}}
			}
			c.Objects = append(c.Objects, o)
			objects[o.Object] = o
		}
		id, partition := uint64(r.IntN(4)), fmt.Sprint(r.IntN(3))
		c.Sources[id] = Positions{partition: {Offset: r.Int64() - 1<<62}}
		if sources[id] == nil {
			sources[id] = Positions{}
		}
		sources[id][partition] = c.Sources[id][partition]
		commit(t, s, c)
		if r.IntN(4) == 0 {
			s = reopen(t, s, o)
		}
		got := s.Checkpoint()
		if got.Epoch != epoch || !reflect.DeepEqual(got.Sources, sources) || len(got.Objects) != len(objects) {
			t.Fatalf("epoch %d: got %+v\nwant objects %v sources %v", epoch, got, objects, sources)
		}
		listed := 0
		for _, g := range got.Objects {
			if !reflect.DeepEqual(g, objects[g.Object]) {
				t.Fatalf("object %d:\ngot  %+v\nwant %+v", g.Object, g, objects[g.Object])
			}
			for _, p := range g.Parts {
				for _, b := range p.Blocks {
					checkBlock(t, s, b.ID, contents[b.ID])
					listed++
				}
			}
		}
		settled(t, s)
		if n := s.Stats().Blocks; n != listed {
			t.Fatalf("%d blocks live, %d listed", n, listed)
		}
	}
}

func TestCommitRefusesNonsense(t *testing.T) {
	s := openStore(t, t.TempDir(), small())
	r := writeBlock(t, s, Raw, payload(1, 100))
	commit(t, s, &Checkpoint{Epoch: 5, Objects: []ObjectState{object(1, r)}})
	wrong := r
	wrong.Bytes++
	twice := object(2, r)
	twice.Parts = append(twice.Parts, twice.Parts[0])
	for name, c := range map[string]*Checkpoint{
		"epoch back":      {Epoch: 4},
		"unknown block":   {Epoch: 6, Objects: []ObjectState{object(1, BlockRef{ID: 12345})}},
		"wrong size":      {Epoch: 6, Objects: []ObjectState{object(1, r, wrong)}},
		"object twice":    {Epoch: 6, Objects: []ObjectState{object(1, r), object(1, r)}},
		"partition twice": {Epoch: 6, Objects: []ObjectState{twice}},
	} {
		var b Batch
		b.PutCatalog("k", []byte("v"))
		b.SetCheckpoint(c)
		if err := s.Commit(&b); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if v, err := s.GetCatalog("k"); v != nil || err != nil {
		t.Fatalf("a refused commit left %q, %v", v, err)
	}
	if got := s.Checkpoint(); got.Epoch != 5 || len(got.Objects) != 1 {
		t.Fatalf("got %+v", got)
	}
	checkBlock(t, s, r.ID, payload(1, 100))
}

func TestCatalogAndSecrets(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, small())
	var b Batch
	for _, k := range []string{"a/1", "a/2", "b/1", "a0"} {
		b.PutCatalog(k, []byte("value of "+k))
	}
	b.PutCatalog("empty", nil)
	b.DeleteCatalog("b/1")
	secret := []byte("correct horse battery staple, and more of the same")
	b.PutSecret(1, secret)
	b.PutSecret(2, nil)
	if err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s, small())
	var keys []string
	if err := s.ScanCatalog("a/", func(k string, v []byte) error {
		keys = append(keys, k)
		if string(v) != "value of "+k {
			t.Errorf("%s has value %q", k, v)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(keys, []string{"a/1", "a/2"}) {
		t.Fatalf("got %v", keys)
	}
	for k, want := range map[string]bool{"a0": true, "b/1": false, "empty": true} {
		if v, err := s.GetCatalog(k); err != nil || (v != nil) != want {
			t.Errorf("%s: %q, %v", k, v, err)
		}
	}
	if got, err := s.Secret(1); err != nil || !bytes.Equal(got, secret) {
		t.Fatalf("got %q, %v", got, err)
	}
	if got, err := s.Secret(2); err != nil || len(got) != 0 {
		t.Fatalf("got %q, %v", got, err)
	}
	if _, err := s.Secret(3); !errors.Is(err, ErrNotFound) {
		t.Fatalf("got %v", err)
	}
	closeStore(t, s)
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, secret) {
			t.Errorf("%s holds the secret in plain text", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, keyFileName)
	if st, err := os.Stat(key); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", st.Mode(), err)
	}
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, small()); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Fatalf("without the key: %v", err)
	}
	if err := os.WriteFile(key, make([]byte, keyBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, small())
	if _, err := s.Secret(1); !errors.Is(err, ErrCorruption) {
		t.Fatalf("with another key: %v", err)
	}
}

func TestNumbersNeverComeBack(t *testing.T) {
	fs := NewMemFS()
	o := Options{FS: fs}
	next := uint64(1)
	for generation := uint64(1); generation <= 5; generation++ {
		s := openStore(t, "d", o)
		if s.Generation() != generation {
			t.Fatalf("generation %d, want %d", s.Generation(), generation)
		}
		for _, n := range []int{1, 1, 7, 100, 1} {
			first, err := s.AllocateIDs(n)
			if err != nil || first < next {
				t.Fatalf("got %d, %v, want ≥ %d", first, err, next)
			}
			next = first + uint64(n)
		}
		for _, e := range []dataflow.Epoch{10, 1000, 999} {
			if err := s.ReserveEpochs(dataflow.Epoch(generation) * e); err != nil {
				t.Fatal(err)
			}
		}
		// A crash, not a close: what was promised was durable by then.
		o.FS = fs.CrashClone(CrashConfig{})
		fs = o.FS.(*MemFS)
		closeStore(t, s)
		s = openStore(t, "d", Options{FS: fs.CrashClone(CrashConfig{})})
		if got := s.EpochHighWater(); got != dataflow.Epoch(generation)*1000 {
			t.Fatalf("high water %d", got)
		}
		closeStore(t, s)
	}
}

func TestOpenRefusals(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, small())
	if _, err := Open(dir, small()); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("second open: %v", err)
	}
	closeStore(t, s)
	format := filepath.Join(dir, "FORMAT")
	if err := os.WriteFile(format, fmt.Appendf(nil, "streamdb data format %d\n", FormatVersion+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, small()); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Fatalf("newer format: %v", err)
	}
	if err := os.WriteFile(format, []byte("streamdb data format 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, small()); err == nil || !strings.Contains(err.Error(), "older version") {
		t.Fatalf("older format: %v", err)
	}
	if err := os.WriteFile(format, []byte("what?"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, small())
	wantCorruption(t, err, "FORMAT", 0)
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(other, small()); err == nil || !strings.Contains(err.Error(), "thesis.tex") {
		t.Fatalf("foreign directory: %v", err)
	}
}

func TestBackupWhileRunning(t *testing.T) {
	for name, fs := range map[string]FS{"disk": nil, "memory": NewMemFS()} {
		t.Run(name, func(t *testing.T) {
			o := small()
			o.FS = fs
			dir := t.TempDir()
			s := openStore(t, filepath.Join(dir, "d"), o)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for e := dataflow.Epoch(1); ; e++ {
					appendWait(t, s, e, payload(uint64(e), 500))
					ref := writeBlock(t, s, Raw, payload(uint64(e), 500))
					if e%5 == 0 {
						commit(t, s, &Checkpoint{Epoch: e, Objects: []ObjectState{object(uint64(e%20), ref)}})
					} else {
						s.DeleteBlocks(ref.ID)
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			})
			var b Batch
			b.PutSecret(1, []byte("x"))
			if err := s.Commit(&b); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				dst := filepath.Join(dir, fmt.Sprint("b", i))
				before := s.DurableEpoch()
				if err := s.Backup(t.Context(), dst); err != nil {
					t.Fatal(err)
				}
				c := openStore(t, dst, o)
				from := dataflow.Epoch(0)
				if cp := c.Checkpoint(); cp != nil {
					from = cp.Epoch
				}
				got := replayed(t, c, from)
				if !slices.Equal(got, upTo(from+1, from+dataflow.Epoch(len(got)))) || from+dataflow.Epoch(len(got)) < before {
					t.Fatalf("backup at %d, log after it %v, durable before it %d", from, got, before)
				}
				if err := c.Backup(t.Context(), dst); err == nil {
					t.Fatal("backup into a full directory")
				}
				// Going on in the copy must not harm the original.
				for e := c.EpochHighWater() + 1; e < c.EpochHighWater()+50; e++ {
					appendWait(t, c, e, payload(uint64(e), 300))
					commit(t, c, &Checkpoint{Epoch: e, DropObjects: []uint64{0, 5, 10, 15}})
					if e > before+200 {
						break
					}
				}
				closeStore(t, c)
			}
			close(stop)
			wg.Wait()
			closeStore(t, s)
			if err := Verify(t.Context(), s.dir, o); err != nil {
				t.Fatal(err)
			}
			if err := Verify(t.Context(), filepath.Join(dir, "b0"), o); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	s := openStore(t, t.TempDir(), small())
	appendWait(t, s, 1, payload(1, 100))
	ref := writeBlock(t, s, Zstd, bytes.Repeat([]byte("x"), 1000))
	checkBlock(t, s, ref.ID, bytes.Repeat([]byte("x"), 1000))
	commit(t, s, &Checkpoint{Epoch: 1, Objects: []ObjectState{object(1, ref)}})
	closeStore(t, s)
	for name, f := range map[string]func() error{
		"Append":     func() error { _, err := s.Append(LogRecord{2, nil}, nil); return err },
		"WriteBlock": func() error { _, _, err := s.WriteBlock(Raw, nil); return err },
		"OpenBlock":  func() error { _, _, err := s.OpenBlock(ref.ID); return err },
		"Commit":     func() error { return s.Commit(&Batch{}) },
		"GetCatalog": func() error { _, err := s.GetCatalog("k"); return err },
		"Allocate":   func() error { _, err := s.AllocateIDs(1); return err },
		"Backup":     func() error { return s.Backup(t.Context(), t.TempDir()) },
		"Close":      s.Close,
	} {
		if err := f(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	var stacks string
	for range 200 {
		buf := make([]byte, 1<<20)
		stacks = string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "storage.(*") && !strings.Contains(stacks, "pebble") && !strings.Contains(stacks, "zstd") {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("goroutines are left:\n%s", stacks)
}

func TestDecodersTakeDamage(t *testing.T) {
	good := encodeBlocks([]BlockRef{{ID: 1 << 40, Bytes: 64, Rows: 3, Lower: 1, Upper: 2, Meta: []byte("m")}, {ID: 7}})
	if _, err := decodeBlocks(good); err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, err := decodeBlocks(good[:n]); err == nil {
			t.Errorf("%d of %d bytes were taken", n, len(good))
		}
	}
	if _, err := decodeBlocks(append(good, 0)); err == nil {
		t.Error("a byte too many was taken")
	}
}
