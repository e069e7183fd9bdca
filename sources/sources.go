// Package sources is the contract of a source: discover, snapshot, stream,
// position, acknowledge. A source decodes in its own goroutines into columnar
// chunks and pushes them into a Feed, which binds them to epochs; it knows
// nothing of the engine.
package sources

import (
	"context"
	"time"

	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/types"
)

// Column is a column that a source yields.
type Column struct {
	Name    string
	Type    types.Type
	NotNull bool
}

// Envelope says how records become changes.
type Envelope uint8

// The envelopes. Append: each record is an insert. Upsert: the last record of
// a key is its row; a tombstone deletes it. Changes: the source gives diffs itself.
const (
	EnvelopeAppend Envelope = iota + 1
	EnvelopeUpsert
	EnvelopeChanges
)

// Table is one relation that a source yields (a Kafka source has one, a
// Postgres source one per upstream table).
type Table struct {
	Name     string // local name: schema.table upstream, or "" for the only one
	Columns  []Column
	Key      []int    // of the upsert envelope: key columns
	KeyNames []string // of a declared key: also of columns that discovery finds
	Envelope Envelope
	// Props is what discovery found and must find again in Config.Tables after
	// a restart, such as the schema that the columns were made from.
	Props map[string]string
}

// Op is the operation of an upsert record.
type Op uint8

// The operations of the upsert envelope, stored as int16 in the op column.
const (
	OpUpsert   Op = iota // the row of this key is now these values
	OpDelete             // the row of this key is gone; only key columns count
	OpTruncate           // all rows are gone
)

// Position is a source's place, per partition: an offset or LSN as a number.
// Partition names are the source's own ("0", "1", … for Kafka, "lsn" for Postgres).
type Position map[string]int64

// TableChunk is changes of one table in order. For EnvelopeAppend and
// EnvelopeChanges Rows carries diffs; for EnvelopeUpsert Rows has the table's
// columns and Ops one Op a row, and Unchanged (may be nil) lists per row the
// columns that keep their old value (TOAST) as a bitmap of len(Columns) bits,
// row after row in words.
type TableChunk struct {
	Table     int
	Rows      dataflow.Delta
	Ops       []Op
	Unchanged [][]uint64
	// Truncate says that all rows of the table go before Rows come. It is for
	// tables without the upsert envelope, which has OpTruncate.
	Truncate bool
}

// RecordError is a record that could not be decoded.
type RecordError struct {
	Reason    string
	Partition string
	Offset    int64
	Key       []byte
	Raw       []byte
	At        time.Time
}

// Chunk is atomic: all of it enters in one epoch. Position is the source's
// place after it (only the partitions that moved).
type Chunk struct {
	Tables   []TableChunk
	Errors   []RecordError
	Position Position
	// Snapshot says that this is part of the initial snapshot; SnapshotDone
	// that the snapshot is complete with this chunk. Until then the source's
	// tables are not readable.
	SnapshotDone bool
	// Bytes is the size of the raw records, for statistics and backpressure.
	Bytes int64
}

// Status is the health of a source, shown in the catalog.
type Status struct {
	State   string // starting, snapshot, running, stalled, failed
	Error   string
	Lag     int64 // records or bytes behind, -1 unknown
	Updated time.Time
}

// Feed takes what a source produces. Push blocks under backpressure and fails
// when ctx ends.
type Feed interface {
	Push(ctx context.Context, c *Chunk) error
	SetStatus(Status)
}

// Source is a running instance's code. Run streams from position (empty: from
// the start, with a snapshot where there is one) until ctx ends; transient
// failures are retried inside with backoff and shown by SetStatus; it returns
// only on ctx's end or a failure that no retry can mend.
type Source interface {
	Tables() []Table
	Run(ctx context.Context, from Position, feed Feed) error
	// Durable tells that everything up to position is durable here: the
	// source may acknowledge upstream. It must not block.
	Durable(p Position)
	// Close frees what outlives Run. Drop also removes what the source holds
	// upstream (a replication slot).
	Close() error
	Drop(ctx context.Context) error
}

// Config is how a source is declared, after names and secrets are resolved.
type Config struct {
	Name    string
	ID      uint64            // unique for ever: for slot and group names
	Options map[string]string // connector-specific, lower-case keys
	// Declared is what CREATE SOURCE said of the one table's columns and key;
	// nil: nothing. A column of type unknown was given by name only.
	Declared *Table
	// Tables are those found when the source was created; empty: discover them.
	Tables []Table
}

// Columns is the one table as it was found, or is declared; nil for neither.
func (c *Config) Columns() *Table {
	if len(c.Tables) == 1 {
		return &c.Tables[0]
	}
	return c.Declared
}
