package storage

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamdb/streamdb/dataflow"
)

// A segment file is a header and then frames, one a record, each starting at a
// multiple of 8. Its space is allocated before use, so that a sync writes data
// and no metadata; what lies after the last frame is zeros, or frames of the
// file's former life, which the salt in every checksum makes invalid.
//
//	segment header: magic u64, number u64, salt u64, format u32, crc u32
//	frame header:   magic u32, crc u32, payload crc u32, reserved u32,
//	                length u64, seq u64, durable u64, epoch u64
//
// seq counts records without a gap. durable is the last seq that was synced
// when the frame was written: a valid frame with durable ≥ s proves that record
// s was once safely on disk, which tells corruption from a torn tail.
const (
	segmentMagic      = 0x31474f4c42445353 // "SSDBLOG1"
	segmentFormat     = 1
	segmentHeaderSize = 64
	frameMagic        = 0x5e6d4c1a
	frameHeaderSize   = 48
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

type frame struct {
	length     uint64
	payloadCRC uint32
	seq        uint64
	durable    uint64
	epoch      dataflow.Epoch
}

// frameSize is what a record of n bytes occupies.
func frameSize(n int) int64 { return frameHeaderSize + (int64(n)+7)&^7 }

func (f *frame) crc(b []byte, salt uint64) uint32 {
	var s [8]byte
	binary.LittleEndian.PutUint64(s[:], salt)
	return crc32.Update(checksum(s[:]), castagnoli, b[8:frameHeaderSize])
}

// put encodes the header into b.
func (f *frame) put(b []byte, salt uint64) {
	clear(b[:frameHeaderSize])
	binary.LittleEndian.PutUint32(b[8:], f.payloadCRC)
	binary.LittleEndian.PutUint64(b[16:], f.length)
	binary.LittleEndian.PutUint64(b[24:], f.seq)
	binary.LittleEndian.PutUint64(b[32:], f.durable)
	binary.LittleEndian.PutUint64(b[40:], uint64(f.epoch))
	binary.LittleEndian.PutUint32(b[0:], frameMagic)
	binary.LittleEndian.PutUint32(b[4:], f.crc(b, salt))
}

// get decodes a header; false if b does not hold one of this salt.
func (f *frame) get(b []byte, salt uint64) bool {
	if binary.LittleEndian.Uint32(b) != frameMagic ||
		binary.LittleEndian.Uint32(b[4:]) != f.crc(b, salt) {
		return false
	}
	f.payloadCRC = binary.LittleEndian.Uint32(b[8:])
	f.length = binary.LittleEndian.Uint64(b[16:])
	f.seq = binary.LittleEndian.Uint64(b[24:])
	f.durable = binary.LittleEndian.Uint64(b[32:])
	f.epoch = dataflow.Epoch(binary.LittleEndian.Uint64(b[40:]))
	return true
}

// segment is one file of the log. The log's mutex guards the mutable fields.
type segment struct {
	number uint64
	path   string
	salt   uint64
	size   int64
	f      vfs.File // open for writing, nil once full or after recovery

	used     int64 // up to which records are assigned
	synced   int64 // up to which the file is on disk
	queued   int   // records assigned and not yet on disk
	frames   int
	maxEpoch dataflow.Epoch
	reason   string // of recovery, why there are no more frames
}

func segmentName(number uint64) string { return fmt.Sprintf("%016d.log", number) }

// createSegment makes a segment durable under its name, ready for frames. If
// recycled names a file, that file is made over.
func createSegment(fs FS, dir string, number uint64, size int64, recycled string) (*segment, error) {
	var salt [8]byte
	if _, err := rand.Read(salt[:]); err != nil {
		return nil, err
	}
	s := &segment{
		number: number,
		path:   fs.PathJoin(dir, segmentName(number)),
		salt:   binary.LittleEndian.Uint64(salt[:]),
		size:   size,
		used:   segmentHeaderSize,
		synced: segmentHeaderSize,
	}
	tmp := recycled
	if tmp == "" {
		tmp = fs.PathJoin(dir, "new.tmp")
		if err := fs.RemoveAll(tmp); err != nil {
			return nil, err
		}
	} else if err := syncDir(fs, dir); err != nil {
		// The file's former name must be gone before its header changes.
		return nil, err
	}
	f, err := fs.OpenReadWrite(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, diskError(err)
	}
	if err := s.initialize(fs, dir, f, tmp, recycled == ""); err != nil {
		return nil, diskError(errors.Join(err, f.Close(), fs.RemoveAll(tmp)))
	}
	s.f = f
	return s, nil
}

func (s *segment) initialize(fs FS, dir string, f vfs.File, tmp string, fresh bool) error {
	if fresh {
		if err := allocate(f, s.size); err != nil {
			return err
		}
	}
	var h [segmentHeaderSize]byte
	binary.LittleEndian.PutUint64(h[0:], segmentMagic)
	binary.LittleEndian.PutUint64(h[8:], s.number)
	binary.LittleEndian.PutUint64(h[16:], s.salt)
	binary.LittleEndian.PutUint32(h[24:], segmentFormat)
	binary.LittleEndian.PutUint32(h[28:], checksum(h[:28]))
	if _, err := f.WriteAt(h[:], 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := fs.Rename(tmp, s.path); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

// allocate gives f size bytes that later writes need not ask for. File systems
// without preallocation get zeros written.
func allocate(f vfs.File, size int64) error {
	err := f.Preallocate(0, size)
	switch {
	case err == nil:
		// Preallocation keeps the size; a last byte sets it once and for all.
		_, err = f.WriteAt([]byte{0}, size-1)
		return err
	case vfs.IsNoSpaceError(err):
		return err
	}
	zeros := make([]byte, 1<<20)
	for off := int64(0); off < size; off += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-off)], off); err != nil {
			return err
		}
	}
	return nil
}

// openSegment reads the header of an existing segment.
func openSegment(fs FS, dir string, number uint64) (*segment, error) {
	s := &segment{number: number, path: fs.PathJoin(dir, segmentName(number))}
	f, err := fs.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	s.size = st.Size()
	var h [segmentHeaderSize]byte
	if _, err := f.ReadAt(h[:], 0); err != nil && err != io.EOF {
		return nil, err
	}
	if binary.LittleEndian.Uint64(h[0:]) != segmentMagic ||
		binary.LittleEndian.Uint32(h[28:]) != checksum(h[:28]) ||
		binary.LittleEndian.Uint64(h[8:]) != number {
		return nil, &CorruptionError{File: s.path, Reason: "bad segment header"}
	}
	s.salt = binary.LittleEndian.Uint64(h[16:])
	return s, nil
}

// segmentReader reads ranges of a file through one growing buffer.
type segmentReader struct {
	f     vfs.File
	size  int64
	buf   []byte
	start int64 // of buf in the file
}

const readAhead = 1 << 20

// at gives n bytes at off, valid until the next call; nil if the file is shorter.
func (r *segmentReader) at(off, n int64) ([]byte, error) {
	if off+n > r.size {
		return nil, nil
	}
	if off < r.start || off+n > r.start+int64(len(r.buf)) {
		want := min(max(n, readAhead), r.size-off)
		if int64(cap(r.buf)) < want {
			r.buf = make([]byte, want)
		}
		r.buf = r.buf[:want]
		r.start = off
		if _, err := r.f.ReadAt(r.buf, off); err != nil && err != io.EOF {
			r.buf = r.buf[:0]
			return nil, err
		}
	}
	return r.buf[off-r.start : off-r.start+n], nil
}

// scan calls fn for each valid frame from the start, in order, and gives the
// offset after the last one, with the reason why it is the last.
func (s *segment) scan(f vfs.File, fn func(fr *frame, payload []byte) error) (end int64, reason string, err error) {
	r := &segmentReader{f: f, size: s.size}
	off := int64(segmentHeaderSize)
	for {
		b, err := r.at(off, frameHeaderSize)
		if err != nil {
			return off, "", err
		}
		var fr frame
		if b == nil || !fr.get(b, s.salt) {
			return off, "record header is damaged", nil
		}
		if fr.length > uint64(s.size-off) {
			return off, "record is longer than its segment", nil
		}
		whole, err := r.at(off, frameHeaderSize+int64(fr.length))
		if err != nil {
			return off, "", err
		}
		if whole == nil || checksum(whole[frameHeaderSize:]) != fr.payloadCRC {
			return off, "record checksum mismatch", nil
		}
		if err := fn(&fr, whole[frameHeaderSize:]); err != nil {
			return off, "", err
		}
		off += frameSize(int(fr.length))
	}
}

// headersAfter looks at every place from off on where a frame can start, and
// reports whether there is a valid header, and the highest durable in one.
func (s *segment) headersAfter(f vfs.File, off int64) (found bool, durable uint64, err error) {
	r := &segmentReader{f: f, size: s.size}
	for off+frameHeaderSize <= s.size {
		b, err := r.at(off, min(readAhead, s.size-off))
		if err != nil {
			return false, 0, err
		}
		i := 0
		for ; i+frameHeaderSize <= len(b); i += 8 {
			var fr frame
			if binary.LittleEndian.Uint32(b[i:]) == frameMagic && fr.get(b[i:], s.salt) {
				found, durable = true, max(durable, fr.durable)
			}
		}
		off += int64(i)
	}
	return found, durable, nil
}

func syncDir(fs FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
