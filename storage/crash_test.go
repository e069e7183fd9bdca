package storage

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/streamdb/streamdb/dataflow"
)

var seed = flag.Uint64("seed", 1, "of the random crash tests")

// promise is what a store has told its user at some moment (got) or may have
// begun to do (asked). After a crash at that moment, the truth lies between.
type promise struct {
	log, askedLog        dataflow.Epoch // records 1…log are durable
	commits, askedCommit int            // commit i is a checkpoint at commitEpoch(i)
	reserved             dataflow.Epoch
	ids                  uint64
	generation           uint64
}

const epochsPerCommit = 5

// commitEpoch leaves some records after it to be replayed.
func commitEpoch(i int) dataflow.Epoch { return dataflow.Epoch(i*epochsPerCommit - 2) }

// commitBlocks are the contents of what commit i lists: one block stays for
// three commits, one is replaced each time, and one has a file of its own.
func commitBlocks(i int) []uint64 { return []uint64{uint64(i), uint64(1000 + i/3), uint64(2000 + i)} }

func commitBlock(n uint64) []byte {
	if n >= 2000 {
		return payload(n, 5000)
	}
	return payload(n, 900)
}

// history runs a store through a fixed history and keeps account of promises.
type history struct {
	mu     sync.Mutex
	p      promise
	next   dataflow.Epoch // to append
	blocks map[uint64]BlockRef
}

func newHistory(p promise) *history { return &history{p: p, next: p.log + 1} }

func (h *history) update(f func(p *promise)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(&h.p)
}

func (h *history) promised() promise {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.p
}

// run goes on up to an epoch, or the first error.
func (h *history) run(s *Store, to dataflow.Epoch) error {
	h.update(func(p *promise) { p.generation = s.Generation() })
	h.blocks = map[uint64]BlockRef{}
	if c := s.Checkpoint(); c != nil {
		for i, n := range commitBlocks(h.p.commits) {
			h.blocks[n] = c.Objects[0].Parts[i].Blocks[0]
		}
	}
	for ; h.next <= to; h.next++ {
		e := h.next
		h.update(func(p *promise) { p.askedLog = e })
		t, err := s.Append(LogRecord{e, payload(uint64(e), 100+int(e%7)*150)}, nil)
		if err != nil {
			return err
		}
		if e%4 == 0 { // leave some to be synced with the next
			if err := t.Wait(context.Background()); err != nil {
				return err
			}
			h.update(func(p *promise) { p.log = e })
		}
		if e%epochsPerCommit == 0 {
			if err := h.commit(s, int(e/epochsPerCommit)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *history) commit(s *Store, i int) error {
	o := ObjectState{Object: 1, Fingerprint: "f"}
	for j, n := range commitBlocks(i) {
		if _, ok := h.blocks[n]; !ok {
			id, size, err := s.WriteBlock(Raw, commitBlock(n))
			if err != nil {
				return err
			}
			h.blocks[n] = BlockRef{ID: id, Bytes: size}
		}
		o.Parts = append(o.Parts, Part{Spine: uint32(j), Blocks: []BlockRef{h.blocks[n]}})
	}
	if err := s.SyncBlocks(); err != nil {
		return err
	}
	var b Batch
	b.PutCatalog("commit", []byte(strconv.Itoa(i)))
	b.PutSecret(7, []byte(strconv.Itoa(i)))
	b.SetCheckpoint(&Checkpoint{Epoch: commitEpoch(i), Objects: []ObjectState{o},
		Sources: map[uint64]Positions{9: {"0": {Offset: int64(i)}}}})
	h.update(func(p *promise) { p.askedCommit = i })
	if err := s.Commit(&b); err != nil {
		return err
	}
	h.update(func(p *promise) { p.commits = i })
	id, err := s.AllocateIDs(50)
	if err != nil {
		return err
	}
	reserve := dataflow.Epoch(i * 1000)
	if err := s.ReserveEpochs(reserve); err != nil {
		return err
	}
	h.update(func(p *promise) { p.ids, p.reserved = id+49, reserve })
	return nil
}

// check opens what a crash left, compares it with what was promised, and gives
// the promise that holds now.
func (p promise) check(s *Store) (promise, error) {
	commits, from := 0, dataflow.Epoch(0)
	if c := s.Checkpoint(); c != nil {
		commits, from = int(c.Sources[9]["0"].Offset), c.Epoch
		if from != commitEpoch(commits) {
			return p, fmt.Errorf("checkpoint %d is at epoch %d", commits, from)
		}
		if err := checkCommit(s, c, commits); err != nil {
			return p, err
		}
	}
	if commits < p.commits || commits > max(p.askedCommit, p.commits) {
		return p, fmt.Errorf("checkpoint %d, promised %d, asked %d", commits, p.commits, p.askedCommit)
	}
	last := from
	if err := s.Replay(from, func(r LogRecord) error {
		if r.Epoch != last+1 || !bytes.Equal(r.Payload, payload(uint64(r.Epoch), len(r.Payload))) {
			return fmt.Errorf("record at epoch %d after %d", r.Epoch, last)
		}
		last = r.Epoch
		return nil
	}); err != nil {
		return p, err
	}
	if last < p.log || last > max(p.askedLog, p.log) {
		return p, fmt.Errorf("log ends at %d, promised %d, asked %d", last, p.log, p.askedLog)
	}
	if g := s.Generation(); g <= p.generation {
		return p, fmt.Errorf("generation %d after %d", g, p.generation)
	}
	if hw := s.EpochHighWater(); hw < max(p.reserved, last) {
		return p, fmt.Errorf("epoch high water %d, reserved %d, last %d", hw, p.reserved, last)
	}
	id, err := s.AllocateIDs(1)
	if err == nil && id <= p.ids {
		err = fmt.Errorf("id %d after %d", id, p.ids)
	}
	p.log, p.askedLog, p.commits, p.askedCommit, p.ids = last, last, commits, commits, id
	return p, err
}

func checkCommit(s *Store, c *Checkpoint, i int) error {
	want := strconv.Itoa(i)
	if v, err := s.GetCatalog("commit"); err != nil || string(v) != want {
		return fmt.Errorf("catalog says %q, checkpoint %s (%w)", v, want, err)
	}
	if v, err := s.Secret(7); err != nil || string(v) != want {
		return fmt.Errorf("secret says %q, checkpoint %s (%w)", v, want, err)
	}
	for j, n := range commitBlocks(i) {
		data, release, err := s.OpenBlock(c.Objects[0].Parts[j].Blocks[0].ID)
		if err != nil {
			return err
		}
		same := bytes.Equal(data, commitBlock(n))
		release()
		if !same {
			return fmt.Errorf("block %d of checkpoint %d has other bytes", j, i)
		}
	}
	return nil
}

// crashFS calls crash before each operation, with whether the operation could
// make a difference to what a crash leaves.
func crashFS(mem *MemFS, crash func(op errorfs.Op, matters bool)) FS {
	return errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpRename, errorfs.OpRemove, errorfs.OpCreate, errorfs.OpLink:
			crash(op, true)
		default:
			crash(op, false)
		}
		return nil
	}))
}

// crashClone is what a crash leaves of mem. Of our own files a percentage of
// what was not synced survives. Pebble is spared that: it takes it for granted
// that directory entries reach the disk in order, which this MemFS does not do.
func crashClone(t *testing.T, mem *MemFS, percent int, r *rand.Rand) *MemFS {
	c := mem.CrashClone(CrashConfig{})
	if percent == 0 {
		return c
	}
	more := mem.CrashClone(CrashConfig{UnsyncedDataPercent: percent, RNG: r})
	for _, dir := range []string{"d/log", "d/blocks"} {
		if _, err := c.Stat(dir); err != nil {
			continue
		}
		err := c.RemoveAll(dir)
		if err == nil {
			_, err = vfs.Clone(more, c, dir, dir, vfs.CloneSync)
		}
		if err != nil {
			t.Error(err)
		}
	}
	return c
}

// leftover is a state that a crash may leave.
type leftover struct {
	fs   *MemFS
	p    promise
	what string
}

// explore runs a history on mem and gathers what crashes at every point of it
// leave: once with nothing unsynced, and once with a part of it.
func explore(t *testing.T, mem *MemFS, p promise, to dataflow.Epoch, r *rand.Rand) []leftover {
	h := newHistory(p)
	var mu sync.Mutex
	var left []leftover
	crash := func(op errorfs.Op, matters bool) {
		before := h.promised()
		mu.Lock() // nobody goes on while a clone is made
		defer mu.Unlock()
		if !matters {
			return
		}
		for _, percent := range []int{0, 50} {
			l := leftover{fs: crashClone(t, mem, percent, r), p: before}
			after := h.promised()
			l.p.askedLog, l.p.askedCommit = after.askedLog, after.askedCommit
			l.what = fmt.Sprintf("crash %d (%d%% of unsynced data) before %v of %s", len(left)/2, percent, op.Kind, op.Path)
			left = append(left, l)
		}
	}
	s, err := Open("d", crashOptions(crashFS(mem, crash)))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.run(s, to), s.Close()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return append(left, leftover{fs: mem, p: h.promised(), what: "close"})
}

func crashOptions(fs FS) Options {
	return Options{FS: fs, SegmentBytes: 4 << 10, PackBytes: 16 << 10, MinFreeBytes: 1}
}

// TestCrashAnywhere crashes a store before every sync, rename, create, link and
// removal of a history, and again within the recoveries from some of those.
func TestCrashAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 0))
	t.Logf("-seed=%d", *seed)
	depth2 := 0
	for i, l := range explore(t, NewMemFS(), promise{}, 40, r) {
		p := verify(t, l)
		if i%23 != 0 || p.log == 0 {
			continue
		}
		// Go on from a second crash in the recovery and in what follows it.
		for j, l2 := range explore(t, l.fs, p, p.log+8, r) {
			l2.what = l.what + "; then " + l2.what
			if j%2 == i%2 {
				verify(t, l2)
				depth2++
			}
		}
	}
	if depth2 < 100 {
		t.Errorf("only %d second crashes", depth2)
	}
}

func verify(t *testing.T, l leftover) promise {
	t.Helper()
	s, err := Open("d", crashOptions(l.fs))
	if err != nil {
		t.Fatalf("%s: %v", l.what, err)
	}
	p, err := l.p.check(s)
	if err != nil {
		t.Fatalf("%s: %v\npromised %+v", l.what, err, l.p)
	}
	h := newHistory(p)
	if err := h.run(s, p.log+6); err != nil {
		t.Fatalf("%s: going on: %v", l.what, err)
	}
	closeStore(t, s)
	h.p.log = h.next - 1
	s, err = Open("d", crashOptions(l.fs))
	if err != nil {
		t.Fatalf("%s: opening again: %v", l.what, err)
	}
	if _, err := h.promised().check(s); err != nil {
		t.Fatalf("%s: opening again: %v", l.what, err)
	}
	closeStore(t, s)
	h.p.generation = s.Generation()
	return h.p
}

// TestFaultsAnywhere makes every write and sync of log and blocks fail in turn,
// then crashes.
func TestFaultsAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 1))
	t.Logf("-seed=%d", *seed)
	for n := int32(0); ; n++ {
		mem := NewMemFS()
		index := errorfs.OnIndex(n)
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			switch op.Kind {
			case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileWriteAt, errorfs.OpOpenDir, errorfs.OpRename, errorfs.OpRemove:
				if strings.Contains(op.Path, "/log") || strings.Contains(op.Path, "/blocks") {
					return index.MaybeError(op)
				}
			}
			return nil
		}))
		h := newHistory(promise{})
		s, err := Open("d", crashOptions(fs))
		if err == nil {
			err = h.run(s, 40)
			if c := s.Close(); err == nil {
				err = c
			}
		}
		l := leftover{fs: crashClone(t, mem, 50, r), p: h.promised(),
			what: fmt.Sprintf("fault at operation %d (%v)", n, err)}
		verify(t, l)
		if err == nil && h.p.askedLog == 40 && index.Load() >= 0 {
			if n < 100 {
				t.Errorf("only %d operations", n)
			}
			return
		}
	}
}

// TestDamageIsNeverServed flips bytes of a closed store's files. Either the
// store tells, or it holds what it should.
func TestDamageIsNeverServed(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 2))
	t.Logf("-seed=%d", *seed)
	mem := NewMemFS()
	left := explore(t, mem, promise{}, 43, r)
	whole := left[len(left)-1]
	told := 0
	for range 400 {
		fs := mem.CrashClone(CrashConfig{})
		dir := "d/" + []string{"log", "blocks"}[r.IntN(2)]
		names, err := fs.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		path := dir + "/" + names[r.IntN(len(names))]
		content, err := readAll(fs, path)
		if err != nil {
			t.Fatal(err)
		}
		off := r.IntN(len(content))
		damage(t, fs, path, off)
		s, err := Open("d", crashOptions(fs))
		if err == nil {
			_, err = whole.p.check(s)
			err = errors.Join(err, s.Close())
		}
		if errors.Is(err, ErrCorruption) {
			told++
		} else if err != nil {
			t.Fatalf("%s damaged at %d: %v", path, off, err)
		}
	}
	if told < 50 {
		t.Errorf("corruption was found %d times only", told)
	}
}

// TestKill9 kills processes that write to a real disk.
func TestKill9(t *testing.T) {
	if dir := os.Getenv("STORAGE_KILL_DIR"); dir != "" {
		killChild(dir)
		return
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := filepath.Join(t.TempDir(), "d")
	r := rand.New(rand.NewPCG(*seed, 3))
	var p promise
	for range 8 {
		p = killOnce(t, dir, p, time.Duration(20+r.IntN(150))*time.Millisecond)
		s := openStore(t, dir, small())
		var err error
		if p, err = p.check(s); err != nil {
			t.Fatalf("%v\npromised %+v", err, p)
		}
		p.generation = s.Generation()
		closeStore(t, s)
	}
	t.Logf("%d epochs, %d commits", p.log, p.commits)
}

// killOnce lets a child run for a while and gives what it had promised.
func killOnce(t *testing.T, dir string, p promise, after time.Duration) promise {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill9$")
	cmd.Env = append(os.Environ(), "STORAGE_KILL_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var timer *time.Timer
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if timer == nil {
			timer = time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
		if _, err := fmt.Sscan(lines.Text(), &p.log, &p.commits, &p.reserved, &p.ids); err != nil {
			t.Fatalf("child says %q", lines.Text())
		}
	}
	if err := cmd.Wait(); err == nil || timer == nil {
		t.Fatalf("the child ended by itself: %v", err)
	}
	p.askedLog, p.askedCommit = p.log+1000, p.commits+1000
	return p
}

// killChild goes on with the history in dir until it is killed, and prints
// each promise.
func killChild(dir string) {
	fail := func(err error) {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	s, err := Open(dir, small())
	if err != nil {
		fail(err)
	}
	p, err := promise{askedLog: dataflow.MaxEpoch, askedCommit: math.MaxInt}.check(s)
	if err != nil {
		fail(err)
	}
	h := newHistory(p)
	for {
		if err := h.run(s, h.next); err != nil {
			fail(err)
		}
		fmt.Println(uint64(h.p.log), h.p.commits, uint64(h.p.reserved), h.p.ids)
	}
}
