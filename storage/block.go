package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/zstd"
)

// Codec is how a block is stored.
type Codec uint8

// The codecs. A raw block is mapped and read without a copy. A compressed one
// is decoded into the heap at each open: for cold data, and what is read once.
const (
	Raw Codec = iota
	Zstd
)

// A block file is blocks one after the other. A block is a header and the
// stored bytes, padded so that the next header starts at a multiple of 64;
// opened bytes start at such a multiple too.
//
//	header: magic u32, crc u32, id u64, stored u64, length u64,
//	        payload crc u32, codec u8, zeros up to 64
//
// Small blocks share a pack, which ends with the commit that first lists it or
// when it is full; a big block has a file of its own. Files never change once
// synced, but for holes where dead blocks were.
const (
	blockMagic      = 0x4b424453 // "SDBK"
	blockAlign      = 64
	blockHeaderSize = 64
)

func makeBlockID(file uint32, off int64) BlockID {
	return BlockID(uint64(file)<<32 | uint64(off/blockAlign))
}

func (id BlockID) file() uint32  { return uint32(id >> 32) }
func (id BlockID) offset() int64 { return int64(uint32(id)) * blockAlign }

func (id BlockID) String() string { return fmt.Sprintf("%d/%d", id.file(), id.offset()) }

type blockHeader struct {
	id         BlockID
	stored     uint64
	length     uint64
	payloadCRC uint32
	codec      Codec
}

func (h *blockHeader) put(b []byte) {
	clear(b[:blockHeaderSize])
	binary.LittleEndian.PutUint32(b[0:], blockMagic)
	binary.LittleEndian.PutUint64(b[8:], uint64(h.id))
	binary.LittleEndian.PutUint64(b[16:], h.stored)
	binary.LittleEndian.PutUint64(b[24:], h.length)
	binary.LittleEndian.PutUint32(b[32:], h.payloadCRC)
	b[36] = byte(h.codec)
	binary.LittleEndian.PutUint32(b[4:], checksum(b[8:blockHeaderSize]))
}

func (h *blockHeader) get(b []byte) bool {
	if binary.LittleEndian.Uint32(b) != blockMagic || binary.LittleEndian.Uint32(b[4:]) != checksum(b[8:blockHeaderSize]) {
		return false
	}
	h.id = BlockID(binary.LittleEndian.Uint64(b[8:]))
	h.stored = binary.LittleEndian.Uint64(b[16:])
	h.length = binary.LittleEndian.Uint64(b[24:])
	h.payloadCRC = binary.LittleEndian.Uint32(b[32:])
	h.codec = Codec(b[36])
	return true
}

func alignUp(n int64) int64 { return (n + blockAlign - 1) &^ (blockAlign - 1) }

// alignedBytes returns n zero bytes that start at a multiple of 64.
func alignedBytes(n int) []byte {
	b := make([]byte, n+blockAlign-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (blockAlign - 1))
	return b[skip : skip+n : skip+n]
}

// block is one block of a file, under the mutex of blocks. It lives while its
// writer (pending), the last checkpoint (refs) or a reader wants it.
type block struct {
	id       BlockID
	bytes    int64 // with header and padding
	pending  bool
	refs     int32
	readers  int32
	verified atomic.Bool
	bad      error // found by verification in the background
}

func (b *block) dead() bool { return !b.pending && b.refs == 0 && b.readers == 0 }

// blockFile is one file of blocks, under the mutex of blocks.
type blockFile struct {
	number  uint32
	path    string
	size    int64
	sealed  bool
	blocks  map[BlockID]*block
	live    int64 // bytes of blocks that are not dead
	punched int64 // dead bytes when holes were last punched
	data    []byte
	noMap   bool // the file system cannot map: read instead
}

// blocks holds the block files of a store.
type blocks struct {
	fs     FS
	dir    string
	opts   *Options
	logger *slog.Logger
	stats  *counters
	enc    *zstd.Encoder
	dec    *zstd.Decoder

	packMu       sync.Mutex // serializes writing to the pack, and sealing it
	pack         *blockFile
	packFile     vfs.File
	packBuf      []byte
	packUnsynced int64
	dirDirty     atomic.Bool // a file was created since the directory was synced

	mu       sync.Mutex
	files    map[uint32]*blockFile
	nextFile uint32
	err      error // a sync has failed
	closed   bool

	upkeep upkeep
}

// WriteBlock's work: see Store.WriteBlock.
func (b *blocks) write(codec Codec, parts [][]byte) (BlockID, int64, error) {
	h := blockHeader{codec: Raw}
	for _, p := range parts {
		h.length += uint64(len(p))
	}
	if codec == Zstd {
		if packed := b.compress(parts, h.length); packed != nil {
			parts, h.codec = [][]byte{packed}, Zstd
		}
	}
	for _, p := range parts {
		h.stored += uint64(len(p))
		h.payloadCRC = crc32.Update(h.payloadCRC, castagnoli, p)
	}
	bytes := blockHeaderSize + alignUp(int64(h.stored))
	if err := b.usable(); err != nil {
		return 0, 0, err
	}
	if err := checkFree(b.fs, b.dir, b.opts.MinFreeBytes+uint64(bytes)); err != nil {
		return 0, 0, err
	}
	var id BlockID
	var err error
	if bytes >= b.opts.PackBytes/4 {
		id, err = b.writeOwnFile(h, parts, bytes)
	} else {
		id, err = b.writePack(h, parts, bytes)
	}
	if err != nil {
		return 0, 0, diskError(err)
	}
	b.stats.blocksWritten.Add(1)
	b.stats.blockBytesWritten.Add(bytes)
	return id, bytes, nil
}

// compress is nil if it does not make the block a good deal smaller.
func (b *blocks) compress(parts [][]byte, length uint64) []byte {
	raw := parts[0:1:1]
	if len(parts) != 1 {
		joined := make([]byte, 0, length)
		for _, p := range parts {
			joined = append(joined, p...)
		}
		raw = [][]byte{joined}
	}
	packed := b.enc.EncodeAll(raw[0], make([]byte, 0, length/2))
	if uint64(len(packed)) > length-length/8 {
		return nil
	}
	return packed
}

func (b *blocks) usable() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	return b.err
}

func (b *blocks) create() (*blockFile, vfs.File, error) {
	b.mu.Lock()
	n := b.nextFile
	b.nextFile++
	b.mu.Unlock()
	f := &blockFile{number: n, path: b.fs.PathJoin(b.dir, blockFileName(n)), blocks: map[BlockID]*block{}}
	w, err := b.fs.OpenReadWrite(f.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, nil, err
	}
	b.dirDirty.Store(true)
	return f, w, nil
}

func blockFileName(n uint32) string { return fmt.Sprintf("%010d.blk", n) }

// writeOwnFile writes and syncs a file with one block.
func (b *blocks) writeOwnFile(h blockHeader, parts [][]byte, bytes int64) (BlockID, error) {
	f, w, err := b.create()
	if err != nil {
		return 0, err
	}
	h.id = makeBlockID(f.number, 0)
	err = b.writeParts(f, w, 0, h, parts, make([]byte, blockHeaderSize))
	if err == nil {
		err = b.sync(f, w)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return 0, errors.Join(err, b.fs.Remove(f.path))
	}
	f.size, f.sealed = bytes, true
	b.add(f, h.id, bytes)
	return h.id, nil
}

// writePack adds a block to the pack.
func (b *blocks) writePack(h blockHeader, parts [][]byte, bytes int64) (BlockID, error) {
	b.packMu.Lock()
	defer b.packMu.Unlock()
	if b.pack != nil && b.pack.size+bytes > b.opts.PackBytes {
		if err := b.sealPack(); err != nil {
			return 0, err
		}
	}
	if b.pack == nil {
		f, w, err := b.create()
		if err != nil {
			return 0, err
		}
		b.pack, b.packFile = f, w
	}
	h.id = makeBlockID(b.pack.number, b.pack.size)
	// After a failed write the next block goes to the same place.
	if b.packBuf == nil {
		b.packBuf = make([]byte, packBufBytes)
	}
	if err := b.writeParts(b.pack, b.packFile, b.pack.size, h, parts, b.packBuf); err != nil {
		return 0, err
	}
	b.mu.Lock()
	b.pack.size += bytes
	b.mu.Unlock()
	b.add(b.pack, h.id, bytes)
	if b.packUnsynced += bytes; b.packUnsynced >= syncStride {
		b.packUnsynced = 0
		return h.id, b.sync(b.pack, b.packFile)
	}
	return h.id, nil
}

func (b *blocks) add(f *blockFile, id BlockID, bytes int64) {
	bl := &block{id: id, bytes: bytes, pending: true}
	bl.verified.Store(true) // this process has computed the checksum
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files[f.number] = f
	f.blocks[id] = bl
	f.live += bytes
}

const packBufBytes = 64 << 10

// syncStride is how much is written before it is synced. The log shares the
// disk: behind one sync of 64 MiB its own take 20 to 30 ms in the 99th
// percentile, behind strides of 4 MiB 5 to 10 ms.
const syncStride = 4 << 20

// writeParts writes a block at off. Small parts are gathered in buf, which has
// room for a header at least.
func (b *blocks) writeParts(f *blockFile, w vfs.File, off int64, h blockHeader, parts [][]byte, buf []byte) error {
	h.put(buf)
	buf = buf[:blockHeaderSize]
	end := off + syncStride
	write := func(p []byte) error {
		for len(p) > 0 {
			n, err := w.WriteAt(p[:min(int64(len(p)), end-off)], off)
			if err != nil {
				return err
			}
			p = p[n:]
			if off += int64(n); off == end {
				end += syncStride
				if err := b.sync(f, w); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, p := range parts {
		if len(buf)+len(p) > cap(buf) && len(buf) > 0 {
			if err := write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
		if len(p) > cap(buf) {
			if err := write(p); err != nil {
				return err
			}
			continue
		}
		buf = append(buf, p...)
	}
	var zeros [blockAlign]byte
	pad := alignUp(int64(h.stored)) - int64(h.stored)
	return write(append(buf, zeros[:pad]...))
}

// sync makes a file's data durable. After a failure nobody knows what the disk
// holds, so nothing more is taken.
func (b *blocks) sync(f *blockFile, w vfs.File) error {
	start := b.opts.Now()
	if err := w.SyncData(); err != nil {
		err = failure("sync "+f.path, err)
		b.mu.Lock()
		b.err = err
		b.mu.Unlock()
		return err
	}
	b.stats.blockSync.observe(b.opts.Now().Sub(start))
	return nil
}

// sealPack syncs and closes the pack; packMu is held.
func (b *blocks) sealPack() error {
	f, w := b.pack, b.packFile
	if f == nil {
		return nil
	}
	if err := b.sync(f, w); err != nil {
		return err
	}
	b.pack, b.packFile, b.packUnsynced = nil, nil, 0
	b.mu.Lock()
	f.sealed = true
	b.tidy(f)
	b.mu.Unlock()
	return w.Close()
}

// syncAll makes every block written so far durable; seal also ends the pack.
func (b *blocks) syncAll(seal bool) error {
	if err := b.usable(); err != nil {
		return err
	}
	b.packMu.Lock()
	defer b.packMu.Unlock()
	if b.pack != nil {
		if seal {
			if err := b.sealPack(); err != nil {
				return err
			}
		} else if err := b.sync(b.pack, b.packFile); err != nil {
			return err
		}
	}
	if b.dirDirty.Swap(false) {
		if err := syncDir(b.fs, b.dir); err != nil {
			b.dirDirty.Store(true)
			return err
		}
	}
	return nil
}

// find gives a live block; the mutex is held.
func (b *blocks) find(id BlockID) (*blockFile, *block, error) {
	if f := b.files[id.file()]; f != nil {
		if bl := f.blocks[id]; bl != nil {
			return f, bl, nil
		}
	}
	return nil, nil, fmt.Errorf("block %s: %w", id, ErrNotFound)
}

// open gives a block's bytes and keeps the block while they are in use.
func (b *blocks) open(id BlockID) ([]byte, func(), error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, nil, ErrClosed
	}
	f, bl, err := b.find(id)
	if err == nil {
		err = bl.bad
	}
	if err != nil {
		b.mu.Unlock()
		return nil, nil, err
	}
	bl.readers++
	data := b.mapping(f)
	b.mu.Unlock()

	data, err = b.read(f, bl, data)
	if err != nil {
		b.release(f, bl)
		return nil, nil, err
	}
	var once atomic.Bool
	return data, func() {
		if !once.Swap(true) {
			b.release(f, bl)
		}
	}, nil
}

// mapping is the file in memory, nil if it has to be read; the mutex is held.
// A pack that still grows is mapped up to its greatest size: addresses beyond
// its end are never touched.
func (b *blocks) mapping(f *blockFile) []byte {
	if f.data != nil || f.noMap {
		return f.data
	}
	r, err := b.fs.Open(f.path)
	if err != nil {
		return nil // reading tells the cause
	}
	defer r.Close()
	size := f.size
	if !f.sealed {
		size = b.opts.PackBytes
	}
	if r.Fd() != vfs.InvalidFd {
		if f.data, err = mapFile(r.Fd(), int(size)); err == nil {
			b.stats.mapped.Add(size)
			return f.data
		}
		b.logger.Warn("cannot map a block file, reading it instead", "file", f.path, "error", err)
	}
	f.noMap = true
	return nil
}

// read gives the decoded bytes of a block, verified unless it is a big one.
func (b *blocks) read(f *blockFile, bl *block, data []byte) ([]byte, error) {
	off := bl.id.offset()
	mapped := data != nil
	if mapped {
		data = data[off : off+bl.bytes : off+bl.bytes]
	} else {
		data = alignedBytes(int(bl.bytes))
		if err := readFile(b.fs, f.path, data, off); err != nil {
			return nil, err
		}
	}
	var h blockHeader
	if !h.get(data) || h.id != bl.id || blockHeaderSize+alignUp(int64(h.stored)) != bl.bytes {
		return nil, b.corrupt(f, off, "bad block header")
	}
	body := data[blockHeaderSize : blockHeaderSize+h.stored : blockHeaderSize+h.stored]
	if !bl.verified.Load() {
		if h.codec == Raw && mapped && int64(h.stored) > b.opts.VerifyBytes {
			b.verifyLater(verification{f, bl, body, h.payloadCRC})
		} else if checksum(body) != h.payloadCRC {
			return nil, b.corrupt(f, off, "block checksum mismatch")
		} else {
			bl.verified.Store(true)
		}
	}
	switch h.codec {
	case Raw:
		return body, nil
	case Zstd:
		out, err := b.dec.DecodeAll(body, alignedBytes(int(h.length))[:0])
		if err != nil || uint64(len(out)) != h.length {
			return nil, b.corrupt(f, off, fmt.Sprintf("block does not decompress: %v", err))
		}
		return out, nil
	}
	return nil, b.corrupt(f, off, fmt.Sprintf("unknown block codec %d", h.codec))
}

func readFile(fs FS, path string, p []byte, off int64) error {
	f, err := fs.Open(path)
	if err != nil {
		return err
	}
	_, err = f.ReadAt(p, off)
	if err == io.EOF {
		err = nil // what is missing reads as zeros, which no checksum takes
	}
	return errors.Join(err, f.Close())
}

func (b *blocks) corrupt(f *blockFile, off int64, reason string) error {
	b.stats.corruptions.Add(1)
	return &CorruptionError{File: f.path, Offset: off, Reason: reason}
}

func (b *blocks) release(f *blockFile, bl *block) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bl.readers--
	b.drop(f, bl)
}
