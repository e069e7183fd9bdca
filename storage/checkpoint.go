package storage

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

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

// partKey names a part within a checkpoint.
type partKey struct {
	object    uint64
	spine     uint32
	partition uint32
}

// state is the last checkpoint, as the store keeps it. What it refers to is
// never changed, only replaced.
type state struct {
	has     bool
	epoch   dataflow.Epoch
	objects map[uint64]ObjectState
	sources map[uint64]Positions
}

func newState() state {
	return state{objects: map[uint64]ObjectState{}, sources: map[uint64]Positions{}}
}

// refs lists every block of the checkpoint, once for each time it is listed.
func (s *state) refs() []BlockRef {
	var refs []BlockRef
	for _, o := range s.objects {
		refs = append(refs, o.refs()...)
	}
	return refs
}

func (o *ObjectState) refs() []BlockRef {
	var refs []BlockRef
	for i := range o.Parts {
		refs = append(refs, o.Parts[i].Blocks...)
	}
	return refs
}

// checkpoint is the state as its reader gets it, objects in order.
func (s *state) checkpoint() *Checkpoint {
	if !s.has {
		return nil
	}
	c := &Checkpoint{Epoch: s.epoch, Sources: maps.Clone(s.sources)}
	for _, id := range slices.Sorted(maps.Keys(s.objects)) {
		c.Objects = append(c.Objects, s.objects[id])
	}
	return c
}

// clone copies what the store must not share with its caller.
func (o *ObjectState) clone() ObjectState {
	c := *o
	c.Meta = bytes.Clone(o.Meta)
	c.Parts = slices.Clone(o.Parts)
	for i := range c.Parts {
		blocks := slices.Clone(c.Parts[i].Blocks)
		for j := range blocks {
			blocks[j].Meta = bytes.Clone(blocks[j].Meta)
		}
		c.Parts[i].Blocks = blocks
	}
	return c
}

// sameBlocks reports whether two parts are written alike.
func sameBlocks(x, y []BlockRef) bool {
	return slices.EqualFunc(x, y, func(a, b BlockRef) bool {
		return a.ID == b.ID && a.Bytes == b.Bytes && a.Rows == b.Rows && a.Lower == b.Lower &&
			a.Upper == b.Upper && a.Since == b.Since && bytes.Equal(a.Meta, b.Meta)
	})
}

// apply is the state after a change, with the block references that come and go.
func (s *state) apply(c *Checkpoint) (next state, added, removed []BlockRef) {
	next = state{has: true, epoch: c.Epoch, objects: maps.Clone(s.objects), sources: maps.Clone(s.sources)}
	for _, id := range c.DropObjects {
		o := next.objects[id]
		removed = append(removed, o.refs()...)
		delete(next.objects, id)
	}
	for i := range c.Objects {
		o := c.Objects[i].clone()
		old := next.objects[o.Object]
		removed = append(removed, old.refs()...)
		added = append(added, o.refs()...)
		next.objects[o.Object] = o
	}
	for _, id := range c.DropSources {
		delete(next.sources, id)
	}
	for id, ps := range c.Sources {
		merged := maps.Clone(next.sources[id])
		if merged == nil {
			merged = Positions{}
		}
		for name, p := range ps {
			merged[name] = Offset{Offset: p.Offset, Extra: bytes.Clone(p.Extra)}
		}
		next.sources[id] = merged
	}
	return next, added, removed
}

// validate finds a change that no engine should ask for.
func (c *Checkpoint) validate(after dataflow.Epoch) error {
	if c.Epoch < after {
		return fmt.Errorf("checkpoint at epoch %d after one at epoch %d", c.Epoch, after)
	}
	seen := map[uint64]bool{}
	for i := range c.Objects {
		o := &c.Objects[i]
		if seen[o.Object] {
			return fmt.Errorf("checkpoint lists object %d twice", o.Object)
		}
		seen[o.Object] = true
		parts := map[partKey]bool{}
		for j := range o.Parts {
			k := partKey{o.Object, o.Parts[j].Spine, o.Parts[j].Partition}
			if parts[k] {
				return fmt.Errorf("checkpoint lists spine %d, partition %d of object %d twice", k.spine, k.partition, k.object)
			}
			parts[k] = true
		}
	}
	return nil
}
