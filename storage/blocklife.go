package storage

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// upkeep is what a background goroutine does for the block files, so that
// nobody waits for it: removing dead files, punching holes where dead blocks
// were, and verifying big blocks that are in use already.
type upkeep struct {
	wake    sync.Cond // uses the mutex of blocks
	remove  []*blockFile
	punch   []*blockFile
	verify  []verification
	working bool // on files, outside of the mutex
	holds   int  // backups in progress: files stay as they are
	wg      sync.WaitGroup
}

type verification struct {
	f    *blockFile
	bl   *block
	body []byte
	crc  uint32
}

// start begins the upkeep.
func (b *blocks) start() {
	b.upkeep.wg.Add(1)
	go b.maintain()
}

func (b *blocks) maintain() {
	u := &b.upkeep
	defer u.wg.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		switch {
		case len(u.remove) > 0 && (u.holds == 0 || b.closed):
			f := u.remove[0]
			u.remove = u.remove[1:]
			b.unlocked(func() { b.removeFile(f) })
		case b.closed:
			for _, v := range u.verify {
				v.bl.readers--
			}
			u.verify = nil
			return
		case len(u.verify) > 0:
			v := u.verify[0]
			u.verify = u.verify[1:]
			b.unlocked(func() { b.verifyNow(v) })
		case len(u.punch) > 0 && u.holds == 0:
			f := u.punch[0]
			u.punch = u.punch[1:]
			if b.files[f.number] == f {
				holes := f.holes()
				f.punched = f.size - f.live
				b.unlocked(func() { b.punchFile(f, holes) })
			}
		default:
			u.wake.Wait()
		}
	}
}

// unlocked runs f outside of the mutex.
func (b *blocks) unlocked(f func()) {
	b.upkeep.working = true
	b.mu.Unlock()
	f()
	b.mu.Lock()
	b.upkeep.working = false
	b.upkeep.wake.Broadcast()
}

func (b *blocks) removeFile(f *blockFile) {
	if f.data != nil {
		b.stats.mapped.Add(-int64(len(f.data)))
		if err := unmapFile(f.data); err != nil {
			b.logger.Error("cannot unmap a block file", "file", f.path, "error", err)
		}
	}
	if err := b.fs.Remove(f.path); err != nil {
		b.logger.Error("cannot remove a block file", "file", f.path, "error", err)
	}
}

// verifyLater queues the check of a big block that is given out meanwhile; the
// queue counts as a reader of it.
func (b *blocks) verifyLater(v verification) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range b.upkeep.verify {
		if q.bl == v.bl {
			return
		}
	}
	v.bl.readers++
	b.upkeep.verify = append(b.upkeep.verify, v)
	b.upkeep.wake.Broadcast()
}

func (b *blocks) verifyNow(v verification) {
	var err *CorruptionError
	if !v.bl.verified.Load() {
		if checksum(v.body) == v.crc {
			v.bl.verified.Store(true)
		} else {
			errors.As(b.corrupt(v.f, v.bl.id.offset(), "block checksum mismatch"), &err)
		}
	}
	if err != nil {
		b.logger.Error("found corruption", "error", err)
		if b.opts.OnCorruption != nil {
			b.opts.OnCorruption(err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		v.bl.bad = err
	}
	v.bl.readers--
	b.drop(v.f, v.bl)
}

// holes are the ranges that no living block needs; the mutex is held.
func (f *blockFile) holes() [][2]int64 {
	live := make([]*block, 0, len(f.blocks))
	for _, bl := range f.blocks {
		live = append(live, bl)
	}
	slices.SortFunc(live, func(x, y *block) int { return int(x.id.offset()>>6) - int(y.id.offset()>>6) })
	const page = 4096
	var holes [][2]int64
	from := int64(0)
	hole := func(to int64) {
		lo, hi := (from+page-1)&^(page-1), to&^(page-1)
		if lo < hi {
			holes = append(holes, [2]int64{lo, hi})
		}
	}
	for _, bl := range live {
		hole(bl.id.offset())
		from = bl.id.offset() + bl.bytes
	}
	hole(f.size)
	return holes
}

// punchFile gives the space of dead blocks back, unless a backup shares the
// file. It only saves space, so that failure is no error.
func (b *blocks) punchFile(f *blockFile, holes [][2]int64) {
	w, err := b.fs.OpenReadWrite(f.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return
	}
	defer w.Close()
	if w.Fd() == vfs.InvalidFd {
		return
	}
	if links, _, err := fileUsage(w.Fd()); err != nil || links != 1 {
		return
	}
	for _, h := range holes {
		if err := punchHole(w.Fd(), h[0], h[1]-h[0]); err != nil {
			return
		}
		b.stats.punched.Add(h[1] - h[0])
	}
}

// drop forgets a block that nobody wants any more; the mutex is held.
func (b *blocks) drop(f *blockFile, bl *block) {
	if !bl.dead() || f.blocks[bl.id] != bl {
		return
	}
	delete(f.blocks, bl.id)
	f.live -= bl.bytes
	b.tidy(f)
}

// tidy asks for the removal of a dead file, or for holes in one that is mostly
// dead; the mutex is held.
func (b *blocks) tidy(f *blockFile) {
	u := &b.upkeep
	if !f.sealed {
		return
	}
	if len(f.blocks) == 0 {
		delete(b.files, f.number)
		u.remove = append(u.remove, f)
		u.wake.Broadcast()
		return
	}
	dead := f.size - f.live
	if dead > f.size/2 && dead-f.punched > f.size/8 && !slices.Contains(u.punch, f) {
		u.punch = append(u.punch, f)
		u.wake.Broadcast()
	}
}

// forget ends the writer's interest in blocks.
func (b *blocks) forget(ids []BlockID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if f, bl, err := b.find(id); err == nil {
			bl.pending = false
			b.drop(f, bl)
		}
	}
}

// retain adds the checkpoint's references to blocks, all or none.
func (b *blocks) retain(refs []BlockRef) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range refs {
		_, bl, err := b.find(refs[i].ID)
		if err == nil && bl.bytes != refs[i].Bytes {
			err = fmt.Errorf("block %s has %d bytes, not %d", bl.id, bl.bytes, refs[i].Bytes)
		}
		if err != nil {
			b.unref(refs[:i])
			return err
		}
		bl.refs++
	}
	return nil
}

// unref takes references back; the mutex is held.
func (b *blocks) unref(refs []BlockRef) {
	for i := range refs {
		if f, bl, err := b.find(refs[i].ID); err == nil {
			bl.refs--
			b.drop(f, bl)
		}
	}
}

// cede gives the references of a failed commit back.
func (b *blocks) cede(refs []BlockRef) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unref(refs)
}

// adopt ends the writer's interest in the blocks of a checkpoint, and the
// checkpoint's in those that it no longer lists.
func (b *blocks) adopt(added, removed []BlockRef) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range added {
		if _, bl, err := b.find(added[i].ID); err == nil {
			bl.pending = false
		}
	}
	b.unref(removed)
}

// load takes up the files of the last process: those that the checkpoint
// refers to stay, all others are left-overs and go.
func (b *blocks) load(refs []BlockRef, nextFile uint32) error {
	b.nextFile = max(nextFile, 1)
	b.files = map[uint32]*blockFile{}
	b.upkeep.wake.L = &b.mu
	for i := range refs {
		if err := b.loadRef(&refs[i]); err != nil {
			return err
		}
	}
	names, err := b.fs.List(b.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		var n uint32
		if _, err := fmt.Sscanf(name, "%d.blk", &n); err == nil && name == blockFileName(n) {
			b.nextFile = max(b.nextFile, n+1)
			if b.files[n] != nil {
				continue
			}
		}
		if err := b.fs.RemoveAll(b.fs.PathJoin(b.dir, name)); err != nil {
			return err
		}
	}
	for _, f := range b.files {
		b.tidy(f)
	}
	return nil
}

func (b *blocks) loadRef(r *BlockRef) error {
	f := b.files[r.ID.file()]
	if f == nil {
		f = &blockFile{number: r.ID.file(), sealed: true, blocks: map[BlockID]*block{}}
		f.path = b.fs.PathJoin(b.dir, blockFileName(f.number))
		st, err := b.fs.Stat(f.path)
		if isNotExist(err) {
			return &CorruptionError{File: f.path, Reason: "block file is missing"}
		} else if err != nil {
			return err
		}
		f.size = st.Size()
		b.files[f.number] = f
	}
	if end := r.ID.offset() + r.Bytes; r.Bytes < blockHeaderSize || end > f.size {
		return &CorruptionError{File: f.path, Offset: f.size, Reason: fmt.Sprintf("block file ends before offset %d", end)}
	}
	bl := f.blocks[r.ID]
	if bl == nil {
		bl = &block{id: r.ID, bytes: r.Bytes}
		f.blocks[r.ID] = bl
		f.live += r.Bytes
	}
	bl.refs++
	return nil
}

// hold keeps all files as they are until unhold, once work on one has ended.
func (b *blocks) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.upkeep.holds++
	for b.upkeep.working {
		b.upkeep.wake.Wait()
	}
}

func (b *blocks) unhold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.upkeep.holds--
	b.upkeep.wake.Broadcast()
}

// listed is the paths of the files that hold a block of the checkpoint.
func (b *blocks) listed() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var paths []string
	for _, f := range b.files {
		for _, bl := range f.blocks {
			if bl.refs > 0 {
				paths = append(paths, f.path)
				break
			}
		}
	}
	slices.Sort(paths)
	return paths
}

// close ends the upkeep and unmaps. What readers still use stays mapped for
// the life of the process, and is reported.
func (b *blocks) close() error {
	b.packMu.Lock()
	defer b.packMu.Unlock()
	b.mu.Lock()
	b.closed = true
	b.upkeep.wake.Broadcast()
	b.mu.Unlock()
	b.upkeep.wg.Wait()
	var errs []error
	if b.packFile != nil {
		errs = append(errs, b.packFile.Close())
		b.pack, b.packFile = nil, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	inUse := 0
	for _, f := range b.files {
		readers := 0
		for _, bl := range f.blocks {
			readers += int(bl.readers)
		}
		inUse += readers
		if f.data != nil && readers == 0 {
			errs = append(errs, unmapFile(f.data))
			f.data = nil
		}
	}
	if inUse > 0 {
		errs = append(errs, fmt.Errorf("%d blocks are still open", inUse))
	}
	b.dec.Close()
	return errors.Join(errs...)
}

// nextNumber is a file number from which on none has been used.
func (b *blocks) nextNumber() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return uint64(b.nextFile)
}

// fileAt is the path of the file that is mapped at an address, with the offset.
func (b *blocks) fileAt(addr uintptr) (path string, off int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.files {
		start := uintptr(unsafe.Pointer(unsafe.SliceData(f.data)))
		if f.data != nil && addr >= start && addr < start+uintptr(len(f.data)) {
			return f.path, int64(addr - start)
		}
	}
	return "", 0
}

// usage sums up the files.
func (b *blocks) usage() (files, count int, fileBytes, liveBytes int64, open int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.files {
		fileBytes += f.size
		liveBytes += f.live
		count += len(f.blocks)
		for _, bl := range f.blocks {
			open += int(bl.readers)
		}
	}
	return len(b.files), count, fileBytes, liveBytes, open
}
