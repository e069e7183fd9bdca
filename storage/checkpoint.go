package storage

import (
	"github.com/streamdb/streamdb/dataflow"
)

// BlockID names an immutable block for ever: the number of its file and its
// place in it. Zero is no block.
type BlockID uint64

// BlockRef is a block as a checkpoint lists it: one batch (or a chunk of one)
// of a spine. Everything but ID and Bytes is the engine's own and comes back
// as it was given.
type BlockRef struct {
	ID    BlockID
	Bytes int64 // as WriteBlock returned it
	Rows  int64
	Lower dataflow.Epoch
	Upper dataflow.Epoch
	Since dataflow.Epoch
	Meta  []byte // small and opaque
}

// Part is the state of one partition of one spine: its blocks in order.
type Part struct {
	Spine     uint32
	Partition uint32
	Blocks    []BlockRef
}

// ObjectState is the whole durable state of one object (table, source, view,
// index) at the checkpoint's epoch.
type ObjectState struct {
	Object      uint64
	Fingerprint string // of plan and format; a mismatch means: rehydrate
	Meta        []byte // small and opaque
	Parts       []Part
}

// Offset is the place of a source in one partition.
type Offset struct {
	Offset int64
	Extra  []byte // opaque, nil for none
}

// Positions is the place of one source, by partition name.
type Positions map[string]Offset

// Checkpoint is the durable state at one epoch. As an argument of
// Batch.SetCheckpoint it is a change: objects and sources that it does not
// name stay as they were, an object that it names is replaced whole, and a
// source's partitions that it names are replaced one by one. As the result of
// Store.Checkpoint it is everything and must not be written to.
type Checkpoint struct {
	Epoch   dataflow.Epoch
	Objects []ObjectState
	Sources map[uint64]Positions

	DropObjects []uint64
	DropSources []uint64
}
