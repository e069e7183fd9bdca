package coord

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// An epoch's log record is a list of entries, each a header and a body padded
// to 8 bytes. Together they are everything that entered the database at the epoch.
const (
	entryDelta     = 1 // object id, delta: changes of a table or source
	entryUpsert    = 2 // object id, delta with op columns: raw upsert records of a source table
	entryPosition  = 3 // source id, JSON of sources.Position
	entryCatalog   = 4 // JSON of []catalog.Change
	entrySnapshot  = 5 // source id: its snapshot is complete
	entryTruncate  = 6 // object id: all its rows go
	entrySequence  = 7 // object id, JSON of sequenceState
	maxRecordBytes = 1 << 30
)

// change is what one object gets at an epoch.
type change struct {
	id     plan.ObjectID
	upsert bool // raw records for the object's upsert state
	clear  bool // all rows of the object go; no delta
	temp   bool // of a temporary table: not in the log
	delta  *dataflow.Delta
}

// record is the content of one epoch.
type record struct {
	changes   []change
	catalog   []catalog.Change
	positions map[plan.ObjectID]sources.Position
	snapshots []plan.ObjectID
	sequences map[plan.ObjectID]sequenceState
}

func (r *record) empty() bool {
	return len(r.changes) == 0 && len(r.catalog) == 0 && len(r.positions) == 0 && len(r.snapshots) == 0 && len(r.sequences) == 0
}

// headerBytes is a tag and a length (4 bytes each) and an object id (8).
const headerBytes = 16

// encode gives the record in a buffer of columnar.GetSlice. All of its parts take
// a multiple of 8 bytes.
func (r *record) encode() ([]byte, error) {
	dst := columnar.GetSlice[uint8](r.size())[:0]
	entry := func(tag uint32, id plan.ObjectID, body func([]byte) []byte) {
		dst = binary.LittleEndian.AppendUint32(dst, tag)
		dst = binary.LittleEndian.AppendUint32(dst, 0)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(id))
		at := len(dst)
		dst = body(dst)
		binary.LittleEndian.PutUint32(dst[at-headerBytes+4:], uint32(len(dst)-at))
		for len(dst)%8 != 0 {
			dst = append(dst, 0)
		}
	}
	if stored := slices.DeleteFunc(slices.Clone(r.catalog), func(c catalog.Change) bool { return c.Temporary }); len(stored) > 0 {
		j, err := json.Marshal(stored)
		if err != nil {
			return nil, fmt.Errorf("encode catalog changes: %w", err)
		}
		entry(entryCatalog, 0, func(d []byte) []byte { return append(d, j...) })
	}
	for _, c := range r.changes {
		if c.temp {
			continue
		}
		tag := uint32(entryDelta)
		if c.upsert {
			tag = entryUpsert
		}
		if c.clear {
			entry(entryTruncate, c.id, func(d []byte) []byte { return d })
			continue
		}
		entry(tag, c.id, func(d []byte) []byte { return columnar.AppendBatch(d, &c.delta.Batch, c.delta.Diffs) })
	}
	for id, p := range r.positions {
		j, err := json.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encode source position: %w", err)
		}
		entry(entryPosition, id, func(d []byte) []byte { return append(d, j...) })
	}
	for id, st := range r.sequences {
		j, err := json.Marshal(st)
		if err != nil {
			return nil, fmt.Errorf("encode sequence: %w", err)
		}
		entry(entrySequence, id, func(d []byte) []byte { return append(d, j...) })
	}
	for _, id := range r.snapshots {
		entry(entrySnapshot, id, func(d []byte) []byte { return d })
	}
	if len(dst) > maxRecordBytes {
		return nil, fmt.Errorf("epoch of %d bytes is over the limit of %d", len(dst), maxRecordBytes)
	}
	return dst, nil
}

// size is about the length of the encoded record.
func (r *record) size() int {
	n := 256
	for _, c := range r.changes {
		if n += headerBytes; !c.clear {
			n += columnar.BatchSize(&c.delta.Batch, c.delta.Diffs)
		}
	}
	return n
}

var errRecord = errors.New("log record is cut short")

// alignedCopy copies b to 8-byte aligned memory.
func alignedCopy(b []byte) []byte {
	v := columnar.MakeFixed(columnar.KindInt64, (len(b)+7)/8)
	fixed, _, _ := v.Raw()
	return fixed[:copy(fixed, b)]
}

// decodeRecord reads a record. It copies src, which need not be aligned.
func decodeRecord(src []byte) (*record, error) {
	b := alignedCopy(src)
	r := &record{positions: map[plan.ObjectID]sources.Position{}, sequences: map[plan.ObjectID]sequenceState{}}
	for len(b) > 0 {
		if len(b) < headerBytes {
			return nil, errRecord
		}
		tag, n := binary.LittleEndian.Uint32(b), int(binary.LittleEndian.Uint32(b[4:]))
		id := plan.ObjectID(binary.LittleEndian.Uint64(b[8:]))
		b = b[headerBytes:]
		if n > len(b) {
			return nil, errRecord
		}
		if err := r.decodeEntry(tag, id, b[:n:n]); err != nil {
			return nil, err
		}
		b = b[min((n+7)&^7, len(b)):]
	}
	return r, nil
}

func (r *record) decodeEntry(tag uint32, id plan.ObjectID, body []byte) error {
	switch tag {
	case entryDelta, entryUpsert:
		batch, diffs, _, err := columnar.DecodeBatch(body, true)
		if err != nil {
			return fmt.Errorf("decode changes of object %d: %w", id, err)
		}
		r.changes = append(r.changes, change{id: id, upsert: tag == entryUpsert, delta: &dataflow.Delta{Batch: batch, Diffs: diffs}})
	case entryPosition:
		var p sources.Position
		if err := json.Unmarshal(body, &p); err != nil {
			return fmt.Errorf("decode source position: %w", err)
		}
		r.positions[id] = p
	case entryCatalog:
		if err := json.Unmarshal(body, &r.catalog); err != nil {
			return fmt.Errorf("decode catalog changes: %w", err)
		}
	case entryTruncate:
		r.changes = append(r.changes, change{id: id, clear: true})
	case entrySequence:
		var st sequenceState
		if err := json.Unmarshal(body, &st); err != nil {
			return fmt.Errorf("decode sequence: %w", err)
		}
		r.sequences[id] = st
	case entrySnapshot:
		r.snapshots = append(r.snapshots, id)
	default:
		return fmt.Errorf("log record has an unknown entry %d", tag)
	}
	return nil
}
