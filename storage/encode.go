package storage

import (
	"encoding/binary"
	"errors"

	"github.com/streamdb/streamdb/dataflow"
)

// The keys of the metadata store, by their first byte. Numbers in keys are
// big-endian, so that keys sort as the numbers do.
const (
	keyMeta     = 'm' // name → counters
	keyCatalog  = 'c' // catalog key → its value
	keySecret   = 's' // id → sealed
	keyObject   = 'o' // object → fingerprint, meta
	keyPart     = 'p' // object, spine, partition → blocks
	keyPosition = 'q' // source, partition name → offset
)

const (
	metaGeneration = "generation"
	metaIDs        = "ids"        // first id not handed out to any process
	metaEpochs     = "epochs"     // reserved epochs end here
	metaCheckpoint = "checkpoint" // epoch
	metaLog        = "log"        // logMark
	metaNextFile   = "files"      // next number of a block file
)

func metaKey(name string) []byte    { return append([]byte{keyMeta}, name...) }
func catalogKey(name string) []byte { return append([]byte{keyCatalog}, name...) }

func numberKey(kind byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind}, n)
}

func (k partKey) encode() []byte {
	b := numberKey(keyPart, k.object)
	b = binary.BigEndian.AppendUint32(b, k.spine)
	return binary.BigEndian.AppendUint32(b, k.partition)
}

func positionKey(source uint64, partition string) []byte {
	return append(numberKey(keyPosition, source), partition...)
}

// prefixEnd is the first key after all that start with p.
func prefixEnd(p []byte) []byte {
	end := append([]byte(nil), p...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func encodeNumbers(ns ...uint64) []byte {
	var b []byte
	for _, n := range ns {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func encodeObject(o *ObjectState) []byte {
	return appendBytes(appendBytes(nil, []byte(o.Fingerprint)), o.Meta)
}

func encodeOffset(o Offset) []byte {
	return appendBytes(binary.AppendVarint(nil, o.Offset), o.Extra)
}

func encodeBlocks(refs []BlockRef) []byte {
	b := binary.AppendUvarint(nil, uint64(len(refs)))
	for i := range refs {
		r := &refs[i]
		b = binary.AppendUvarint(b, uint64(r.ID))
		b = binary.AppendVarint(b, r.Bytes)
		b = binary.AppendVarint(b, r.Rows)
		b = binary.AppendUvarint(b, uint64(r.Lower))
		b = binary.AppendUvarint(b, uint64(r.Upper))
		b = binary.AppendUvarint(b, uint64(r.Since))
		b = appendBytes(b, r.Meta)
	}
	return b
}

var errMalformed = errors.New("malformed value")

// decoder reads what the encoders wrote. After a failure it yields zeros, and
// done tells.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uvarint() uint64 {
	n, w := binary.Uvarint(d.b)
	return uint64(advance(d, int64(n), w))
}

func (d *decoder) varint() int64 {
	n, w := binary.Varint(d.b)
	return advance(d, n, w)
}

func advance(d *decoder, n int64, width int) int64 {
	if width <= 0 || d.bad {
		d.bad = true
		return 0
	}
	d.b = d.b[width:]
	return n
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if d.bad || n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	if n == 0 {
		return nil
	}
	b := append([]byte(nil), d.b[:n]...)
	d.b = d.b[n:]
	return b
}

func (d *decoder) done() error {
	if d.bad || len(d.b) > 0 {
		return errMalformed
	}
	return nil
}

func decodeBlocks(b []byte) ([]BlockRef, error) {
	d := decoder{b: b}
	n := d.uvarint()
	if n > uint64(len(b)) { // each takes several bytes
		return nil, errMalformed
	}
	refs := make([]BlockRef, n)
	for i := range refs {
		r := &refs[i]
		r.ID = BlockID(d.uvarint())
		r.Bytes, r.Rows = d.varint(), d.varint()
		r.Lower = dataflow.Epoch(d.uvarint())
		r.Upper = dataflow.Epoch(d.uvarint())
		r.Since = dataflow.Epoch(d.uvarint())
		r.Meta = d.bytes()
	}
	return refs, d.done()
}
