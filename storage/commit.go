package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"github.com/streamdb/streamdb/dataflow"
)

// Batch is a set of changes that Commit makes durable together. Later changes
// of a key win. A Batch is filled by one goroutine.
type Batch struct {
	catalog    []change
	secrets    []change
	checkpoint *Checkpoint
}

type change struct {
	name  string
	id    uint64
	value []byte // nil deletes
}

// PutCatalog sets a catalog key.
func (b *Batch) PutCatalog(key string, value []byte) {
	b.catalog = append(b.catalog, change{name: key, value: append([]byte{}, value...)})
}

// DeleteCatalog removes a catalog key, if it exists.
func (b *Batch) DeleteCatalog(key string) { b.catalog = append(b.catalog, change{name: key}) }

// PutSecret sets a secret, which is stored encrypted.
func (b *Batch) PutSecret(id uint64, plain []byte) {
	b.secrets = append(b.secrets, change{id: id, value: append([]byte{}, plain...)})
}

// DeleteSecret removes a secret, if it exists.
func (b *Batch) DeleteSecret(id uint64) { b.secrets = append(b.secrets, change{id: id}) }

// SetCheckpoint makes the batch advance the checkpoint. c must not change
// before Commit has returned. Records of the log up to c.Epoch are given up by
// that commit.
func (b *Batch) SetCheckpoint(c *Checkpoint) { b.checkpoint = c }

// Commit makes a batch durable: all of it, or with an error nothing. The blocks
// of its checkpoint then belong to the checkpoint, and those that only the one
// before listed are deleted. After ErrDiskFull it may be tried again.
func (s *Store) Commit(b *Batch) error {
	if err := s.use(); err != nil {
		return err
	}
	defer s.users.Done()
	start := s.opts.Now()
	if b.checkpoint != nil {
		// Before the lock, so that small commits do not wait for it. What the
		// checkpoint lists is written already.
		if err := s.blocks.syncAll(true); err != nil {
			return diskError(err)
		}
	}
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	pb := s.db.NewBatch()
	defer pb.Close()
	if err := s.encodeChanges(pb, b); err != nil {
		return err
	}
	c := b.checkpoint
	if c == nil {
		return s.update(pb)
	}
	// Only commits change the state, so it may be read without the mutex.
	if err := c.validate(s.state.epoch); err != nil {
		return err
	}
	next, added, removed := s.state.apply(c)
	if err := s.blocks.retain(added); err != nil {
		return err
	}
	s.encodeCheckpoint(pb, c)
	setMeta(pb, metaLog, s.log.mark(c.Epoch).numbers()...)
	setMeta(pb, metaNextFile, s.blocks.nextNumber())
	if err := s.update(pb); err != nil {
		s.blocks.cede(added)
		return err
	}
	s.mu.Lock()
	s.state = next
	s.mu.Unlock()
	s.blocks.adopt(added, removed)
	if err := s.log.release(c.Epoch); err != nil {
		s.logger.Warn("cannot remove log segments", "error", err)
	}
	s.stats.commit.observe(s.opts.Now().Sub(start))
	return nil
}

// Pebble's batches only grow in memory until they are committed; their setters
// have no other way to fail.
func set(pb *pebble.Batch, key, value []byte) { must(pb.Set(key, value, nil)) }
func del(pb *pebble.Batch, key []byte)        { must(pb.Delete(key, nil)) }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func setMeta(pb *pebble.Batch, name string, ns ...uint64) {
	set(pb, metaKey(name), encodeNumbers(ns...))
}

func (m logMark) numbers() []uint64 {
	closed := uint64(0)
	if m.closed {
		closed = 1
	}
	return []uint64{m.needed, m.durable, closed}
}

func (s *Store) encodeChanges(pb *pebble.Batch, b *Batch) error {
	for _, c := range b.catalog {
		if c.value == nil {
			del(pb, catalogKey(c.name))
		} else {
			set(pb, catalogKey(c.name), c.value)
		}
	}
	for _, c := range b.secrets {
		key := numberKey(keySecret, c.id)
		if c.value == nil {
			del(pb, key)
			continue
		}
		sealed, err := s.keys.seal(key, c.value)
		if err != nil {
			return err
		}
		set(pb, key, sealed)
	}
	return nil
}

// encodeCheckpoint writes what differs from the last one.
func (s *Store) encodeCheckpoint(pb *pebble.Batch, c *Checkpoint) {
	setMeta(pb, metaCheckpoint, uint64(c.Epoch))
	dropped := map[uint64]bool{}
	for _, id := range c.DropObjects {
		s.encodeObject(pb, s.state.objects[id], &ObjectState{Object: id})
		del(pb, numberKey(keyObject, id))
		dropped[id] = true
	}
	for i := range c.Objects {
		o := &c.Objects[i]
		old, ok := s.state.objects[o.Object]
		if dropped[o.Object] {
			old, ok = ObjectState{}, false
		}
		if !ok || old.Fingerprint != o.Fingerprint || !bytes.Equal(old.Meta, o.Meta) {
			set(pb, numberKey(keyObject, o.Object), encodeObject(o))
		}
		s.encodeObject(pb, old, o)
	}
	for _, id := range c.DropSources {
		for name := range s.state.sources[id] {
			del(pb, positionKey(id, name))
		}
	}
	for id, ps := range c.Sources {
		for name, p := range ps {
			set(pb, positionKey(id, name), encodeOffset(p))
		}
	}
}

// encodeObject writes the parts of next that differ from old's.
func (s *Store) encodeObject(pb *pebble.Batch, old ObjectState, next *ObjectState) {
	before := make(map[partKey][]BlockRef, len(old.Parts))
	for i := range old.Parts {
		p := &old.Parts[i]
		before[partKey{next.Object, p.Spine, p.Partition}] = p.Blocks
	}
	for i := range next.Parts {
		p := &next.Parts[i]
		k := partKey{next.Object, p.Spine, p.Partition}
		was, ok := before[k]
		if !ok || !sameBlocks(was, p.Blocks) {
			set(pb, k.encode(), encodeBlocks(p.Blocks))
		}
		delete(before, k)
	}
	for k := range before {
		del(pb, k.encode())
	}
}

// Checkpoint is the last committed checkpoint with everything in it, nil if
// there is none. It is shared: nobody may write to it.
func (s *Store) Checkpoint() *Checkpoint {
	s.mu.Lock()
	st := s.state
	s.mu.Unlock()
	return st.checkpoint()
}

// GetCatalog is the value of a catalog key, nil without one.
func (s *Store) GetCatalog(key string) ([]byte, error) { return s.get(catalogKey(key)) }

// ScanCatalog gives all catalog keys with a prefix to fn, in order, as of one
// moment. A value is valid only during the call.
func (s *Store) ScanCatalog(prefix string, fn func(key string, value []byte) error) error {
	return s.scan(catalogKey(prefix), func(key, value []byte) error { return fn(string(key[1:]), value) })
}

// Secret decrypts a secret; ErrNotFound if there is none of this id.
func (s *Store) Secret(id uint64) ([]byte, error) {
	key := numberKey(keySecret, id)
	sealed, err := s.get(key)
	if err != nil {
		return nil, err
	}
	if sealed == nil {
		return nil, fmt.Errorf("secret %d: %w", id, ErrNotFound)
	}
	plain, err := s.keys.open(key, sealed)
	if err != nil {
		return nil, &CorruptionError{File: s.path("meta"), Reason: fmt.Sprintf("secret %d does not decrypt with %s: %v", id, keyFileName, err)}
	}
	return plain, nil
}

func (s *Store) hasSecrets() (bool, error) {
	found := false
	err := s.scan([]byte{keySecret}, func(_, _ []byte) error { found = true; return nil })
	return found, err
}

// get is a copy of a value, not nil if the key exists.
func (s *Store) get(key []byte) ([]byte, error) {
	if err := s.use(); err != nil {
		return nil, err
	}
	defer s.users.Done()
	v, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, s.readError(err)
	}
	return append([]byte{}, v...), closer.Close()
}

func (s *Store) scan(prefix []byte, fn func(key, value []byte) error) error {
	if err := s.use(); err != nil {
		return err
	}
	defer s.users.Done()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return s.readError(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := fn(it.Key(), it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return s.readError(errors.Join(it.Error(), it.Close()))
}

// readError gives Pebble's corruption our name.
func (s *Store) readError(err error) error {
	if errors.Is(err, pebble.ErrCorruption) {
		return &CorruptionError{File: s.path("meta"), Reason: err.Error()}
	}
	return err
}

// metaState is what open needs and the state does not hold.
type metaState struct {
	generation uint64
	log        logMark
	nextFile   uint32
}

// loadMeta reads the last checkpoint and all counters.
func (s *Store) loadMeta() (metaState, error) {
	var m metaState
	s.state = newState()
	parts := map[uint64][]Part{}
	err := s.scan([]byte{keyMeta}, func(key, value []byte) error { return s.loadCounter(&m, string(key[1:]), value) })
	if err != nil {
		return m, err
	}
	if err := s.scan([]byte{keyPart}, func(key, value []byte) error {
		refs, err := decodeBlocks(value)
		if err != nil || len(key) != 17 {
			return s.malformed(key)
		}
		object := binary.BigEndian.Uint64(key[1:])
		parts[object] = append(parts[object], Part{
			Spine: binary.BigEndian.Uint32(key[9:]), Partition: binary.BigEndian.Uint32(key[13:]), Blocks: refs})
		return nil
	}); err != nil {
		return m, err
	}
	if err := s.scan([]byte{keyObject}, func(key, value []byte) error {
		d := decoder{b: value}
		o := ObjectState{Fingerprint: string(d.bytes()), Meta: d.bytes()}
		if d.done() != nil || len(key) != 9 {
			return s.malformed(key)
		}
		o.Object = binary.BigEndian.Uint64(key[1:])
		o.Parts = parts[o.Object]
		s.state.objects[o.Object] = o
		return nil
	}); err != nil {
		return m, err
	}
	return m, s.scan([]byte{keyPosition}, func(key, value []byte) error {
		d := decoder{b: value}
		o := Offset{Offset: d.varint(), Extra: d.bytes()}
		if d.done() != nil || len(key) < 9 {
			return s.malformed(key)
		}
		id := binary.BigEndian.Uint64(key[1:])
		if s.state.sources[id] == nil {
			s.state.sources[id] = Positions{}
		}
		s.state.sources[id][string(key[9:])] = o
		return nil
	})
}

func (s *Store) loadCounter(m *metaState, name string, value []byte) error {
	d := decoder{b: value}
	n := d.uvarint()
	switch name {
	case metaGeneration:
		m.generation = n
	case metaIDs:
		s.ids = idRange{n, n}
	case metaEpochs:
		s.epochs = dataflow.Epoch(n)
	case metaCheckpoint:
		s.state.has, s.state.epoch = true, dataflow.Epoch(n)
	case metaLog:
		m.log = logMark{n, d.uvarint(), d.uvarint() == 1}
	case metaNextFile:
		if n > math.MaxUint32 {
			return s.malformed(metaKey(name))
		}
		m.nextFile = uint32(n)
	}
	if d.done() != nil {
		return s.malformed(metaKey(name))
	}
	return nil
}

func (s *Store) malformed(key []byte) error {
	return &CorruptionError{File: s.path("meta"), Reason: fmt.Sprintf("value of key %q is malformed", key)}
}

// writeMeta stores what changes with each open and close.
func (s *Store) writeMeta(m logMark) error {
	pb := s.db.NewBatch()
	defer pb.Close()
	setMeta(pb, metaGeneration, s.generation)
	setMeta(pb, metaLog, m.numbers()...)
	return s.update(pb)
}
