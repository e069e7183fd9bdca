package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// The block form of a batch. Numbers are little-endian u64; every part has a
// length that is a multiple of 8. All that is needed to open a batch is in the
// header and the directory, so that opening touches no page of data.
//
//	block     = header, directory, body…
//	header    = magic|version, flags (1: unkeyed), lower, upper, since,
//	            chunks, columns, keys, columns × kind, keys × key column
//	directory = chunks × (rows, flags (1: diffs), first hash, last hash,
//	            columns × vector head)
//	body      = (of a chunk) vector bodies, [rows × diff], [rows × hash]
const (
	blockMagic   = 0x0001_4543_5254_4453 // "SDTRCE", version 1
	blockUnkeyed = 1
	blockDiffs   = 1
)

// ErrBlock marks bytes that are not a block.
var ErrBlock = errors.New("trace: damaged block")

func badBlock(what string) error { return fmt.Errorf("%w: %s", ErrBlock, what) }

// headSize is the length of header and directory.
func headSize(l *Layout, chunks int) int {
	return 8 * (8 + len(l.Kinds) + len(l.Key) + chunks*(4+2*len(l.Kinds)))
}

// EncodedSize is the length of the batch's block.
func (b *Batch) EncodedSize() int {
	n := headSize(b.layout, len(b.chunks))
	for _, c := range b.chunks {
		n += 8 * (len(c.Diffs) + len(c.Hash))
		for _, v := range c.Cols {
			n += v.Head().BodySize(c.N)
		}
	}
	return n
}

// AppendBlock appends the batch as one self-contained block, which can be used
// in place if it begins at an 8-byte aligned address. len(dst) must be a
// multiple of 8.
func (b *Batch) AppendBlock(dst []byte) []byte {
	dst = b.AppendBlockHead(dst)
	for i := range b.chunks {
		dst = b.AppendBlockBody(dst, i)
	}
	return dst
}

// AppendBlockHead appends the beginning of the block, to be followed by the
// body of each chunk: a big batch need not be in memory twice to be written.
func (b *Batch) AppendBlockHead(dst []byte) []byte {
	put := func(xs ...uint64) {
		for _, x := range xs {
			dst = binary.LittleEndian.AppendUint64(dst, x)
		}
	}
	flags := uint64(0)
	if b.layout.Unkeyed {
		flags |= blockUnkeyed
	}
	put(blockMagic, flags, uint64(b.desc.Lower), uint64(b.desc.Upper), uint64(b.desc.Since),
		uint64(len(b.chunks)), uint64(len(b.layout.Kinds)), uint64(len(b.layout.Key)))
	for _, k := range b.layout.Kinds {
		put(uint64(k))
	}
	for _, c := range b.layout.Key {
		put(uint64(c))
	}
	for _, c := range b.chunks {
		flags, first, last := uint64(0), uint64(0), uint64(0)
		if c.Diffs != nil {
			flags |= blockDiffs
		}
		if c.Hash != nil {
			first, last = c.Hash[0], c.Hash[c.N-1]
		}
		put(uint64(c.N), flags, first, last)
		for _, v := range c.Cols {
			put(v.Head().Words())
		}
	}
	return dst
}

// AppendBlockBody appends the body of chunk i.
func (b *Batch) AppendBlockBody(dst []byte, i int) []byte {
	c := b.chunks[i]
	for _, v := range c.Cols {
		dst = v.AppendBody(dst)
	}
	dst = append(dst, asBytes(c.Diffs)...)
	return append(dst, asBytes(c.Hash)...)
}

func asBytes[T int64 | uint64](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 8*len(s))
}

// OpenBlock makes a batch over a block without copying: it aliases block, which
// must be 8-byte aligned and stay as it is until release (which may be nil) is
// called, once, when the last reference is gone. It is checked for structure,
// not for flipped bits: its keeper has checksums for that.
func OpenBlock(block []byte, id uint64, release func()) (*Batch, error) {
	if len(block) < 64 || uintptr(unsafe.Pointer(unsafe.SliceData(block)))&7 != 0 {
		return nil, badBlock("length or alignment")
	}
	r := blockReader{block: block}
	desc, chunks, err := r.header()
	if err != nil {
		return nil, err
	}
	l := r.layout
	b := &Batch{layout: l, desc: desc, chunks: make([]*Chunk, chunks), exact: l.exact, ones: true, release: release}
	if !l.Unkeyed {
		b.finder.make(chunks)
	}
	for i := range b.chunks {
		if err := r.chunk(b, i); err != nil {
			return nil, err
		}
	}
	b.id.Store(id)
	b.refs.Store(1)
	return b, nil
}

// blockReader reads a block: numbers at at, bodies at body.
type blockReader struct {
	layout   *Layout
	block    []byte
	at, body int
}

func (r *blockReader) num() uint64 {
	x := binary.LittleEndian.Uint64(r.block[r.at:])
	r.at += 8
	return x
}

// header reads up to the directory and makes the layout.
func (r *blockReader) header() (desc Description, chunks int, err error) {
	magic, flags := r.num(), r.num()
	if magic != blockMagic || flags&^blockUnkeyed != 0 {
		return desc, 0, badBlock("magic")
	}
	desc = Description{Lower: dataflow.Epoch(r.num()), Upper: dataflow.Epoch(r.num()), Since: dataflow.Epoch(r.num())}
	n, cols, keys := r.num(), r.num(), r.num()
	if limit := uint64(len(r.block)) / 8; n > limit || cols > limit || keys > limit || 8+cols+keys > limit {
		return desc, 0, badBlock("shape")
	}
	kinds := make([]columnar.Kind, cols)
	for i := range kinds {
		kinds[i] = columnar.Kind(r.num())
	}
	key := make([]int, keys)
	for i := range key {
		c := r.num()
		if c >= cols {
			return desc, 0, badBlock("key")
		}
		key[i] = int(c)
	}
	if flags&blockUnkeyed != 0 {
		r.layout = NewUnkeyedLayout(kinds)
	} else {
		r.layout = NewLayout(kinds, key)
	}
	per := uint64(4 + 2*len(kinds)) // numbers in the directory per chunk
	if n > uint64(len(r.block)-r.at)/8/per {
		return desc, 0, badBlock("number of chunks")
	}
	r.body = headSize(r.layout, int(n))
	return desc, int(n), nil
}

// chunk reads chunk i of b.
func (r *blockReader) chunk(b *Batch, i int) error {
	l := r.layout
	rows, flags, first, last := r.num(), r.num(), r.num(), r.num()
	full := !l.Unkeyed && i+1 < len(b.chunks)
	if rows == 0 || rows > columnar.ChunkRows || full && rows != columnar.ChunkRows || flags&^blockDiffs != 0 {
		return badBlock("chunk")
	}
	n := int(rows)
	c := &Chunk{Batch: columnar.Batch{N: n, Cols: make([]*columnar.Vec, len(l.Kinds))}}
	for k := range c.Cols {
		head, err := columnar.VecHeadOf(r.num(), r.num())
		if err != nil || head.Kind != l.Kinds[k] {
			return badBlock("column")
		}
		v, size, err := head.DecodeBody(r.block[r.body:], n, false)
		if err != nil {
			return badBlock("length of a column")
		}
		c.Cols[k] = v
		r.body += size
		b.widen(size)
	}
	if len(r.block)-r.body < 8*n*int(flags) {
		return badBlock("diffs")
	}
	if flags != 0 {
		c.Diffs = unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(r.block[r.body:]))), n)
		r.body += 8 * n
	}
	if !l.Unkeyed {
		if len(r.block)-r.body < 8*n {
			return badBlock("hashes")
		}
		c.Hash = unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(r.block[r.body:]))), n)
		r.body += 8 * n
		b.finder.set(i, n, first, last)
		b.exact = b.exact && l.exactIn(c.Cols)
	}
	b.ones = b.ones && c.Diffs == nil
	b.overhead += int64(len(c.Diffs)+len(c.Hash)) * 8
	b.chunks[i] = c
	b.rows += n
	return nil
}
