package trace

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
)

// NewLayout makes the layout of rows of the given kinds, keyed by key.
func NewLayout(kinds []columnar.Kind, key []int) *Layout { panic("being built") }

// Chunk is a run of at most columnar.ChunkRows rows of a batch. Its slices and
// vectors are not to be written, and valid as long as the batch is held.
type Chunk struct {
	columnar.Batch          // all columns, in the layout's order of columns
	Hash           []uint64 // nil in an Unkeyed layout
	Diffs          []dataflow.Diff
}

// Batch is an immutable, sorted, consolidated set of updates; see the package
// comment. It is counted by reference: whoever made it holds one reference,
// and gives it up with Release or by putting the batch into a Spine.
type Batch struct{}

// Layout is the shape of the rows.
func (b *Batch) Layout() *Layout { panic("being built") }

// Desc is the epochs the batch sums up.
func (b *Batch) Desc() Description { panic("being built") }

// Len is the number of rows.
func (b *Batch) Len() int { panic("being built") }

// Chunks is the number of chunks; Chunk gives one.
func (b *Batch) Chunks() int { panic("being built") }

// Chunk is chunk i; row r of the batch is row r%ChunkRows of chunk r/ChunkRows.
func (b *Batch) Chunk(i int) *Chunk { panic("being built") }

// ID is the name that the owner gave the batch when it was persisted; 0 before.
func (b *Batch) ID() uint64 { panic("being built") }

// SetID names the batch. It may be called once, from any goroutine.
func (b *Batch) SetID(id uint64) { panic("being built") }

// Retain adds a reference; Release gives one up.
func (b *Batch) Retain()  { panic("being built") }
func (b *Batch) Release() { panic("being built") }

// Bytes is the memory of payload (data columns) and of overhead (hashes, diffs).
func (b *Batch) Bytes() (payload, overhead int64) { panic("being built") }

// AppendBlock appends the encoding of b to dst: one self-contained block whose
// layout, if it begins at an 8-byte aligned address, can be used in place.
// EncodedSize is its exact length.
func (b *Batch) AppendBlock(dst []byte) []byte { panic("being built") }
func (b *Batch) EncodedSize() int              { panic("being built") }

// OpenBlock makes a batch over an encoded block without copying: the batch
// aliases block, which must be 8-byte aligned and stay unchanged until release
// (which may be nil) is called, once, when the last reference is gone. The
// block is checked for structure, not for flipped bits: its keeper has
// checksums for that.
func OpenBlock(block []byte, id uint64, release func()) (*Batch, error) { panic("being built") }

// Reader is an immutable list of batches, oldest first, read as their sum.
// A Reader does not keep its batches alive; what it was taken from does.
type Reader struct{ Batches []*Batch }

// Len is the number of rows before summing up across batches.
func (r Reader) Len() int { panic("being built") }

// Groups is what Reader.Groups finds: for probe key i the rows
// Ends[i-1]..Ends[i], consolidated and in the layout's order.
type Groups struct {
	Rows  columnar.Batch
	Diffs []dataflow.Diff // nil: all 1
	Ends  []int
}

// Groups fetches all rows of the given keys, batched so that cache misses
// overlap. keys are the key columns of the probes, in the order of Layout.Key,
// sorted by hash (columnar.HashCols of them) and distinct. NULL matches NULL.
// Rows are copies and may be kept.
func (r Reader) Groups(keys []*columnar.Vec, hashes []uint64) *Groups { panic("being built") }

// Scan gives the content in deltas of at most columnar.ChunkRows rows that
// alias the batches (equal rows of different batches are not summed up).
func (r Reader) Scan(yield func(*dataflow.Delta) bool) { panic("being built") }

// Cursor walks a Reader in the layout's order, summing up over the batches. It
// is for tests, small reads and merges of few keys; hot paths use Groups.
func (r Reader) Cursor() *Cursor { panic("being built") }

// Cursor is a position in a Reader: a key, and a row within the key.
type Cursor struct{}

// SeekKey moves to the first key at or after row i of the given key columns.
func (c *Cursor) SeekKey(keys []*columnar.Vec, i int) { panic("being built") }

// StepKey moves to the next key, StepVal to the next row of this key.
func (c *Cursor) StepKey()       { panic("being built") }
func (c *Cursor) StepVal()       { panic("being built") }
func (c *Cursor) KeyValid() bool { panic("being built") }
func (c *Cursor) ValValid() bool { panic("being built") }

// Row is the place of the row: a chunk that holds it, and its index there.
func (c *Cursor) Row() (*Chunk, int) { panic("being built") }

// Diff is the sum of the row's diffs; never 0.
func (c *Cursor) Diff() dataflow.Diff { panic("being built") }
