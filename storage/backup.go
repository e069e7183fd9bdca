package storage

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Backup makes dst, which must not exist or be empty, a copy of the data
// directory as of one moment during the call, without stopping anything. Block
// files are linked where dst is on the same file system. The copy
// contains the key of the secrets. It is verified before Backup returns; one
// that was cut short does not open.
func (s *Store) Backup(ctx context.Context, dst string) error {
	if err := s.use(); err != nil {
		return err
	}
	defer s.users.Done()
	if err := s.backup(ctx, dst); err != nil {
		return fmt.Errorf("back up to %s: %w", dst, diskError(err))
	}
	o := *s.opts
	o.OnCorruption = nil
	if err := Verify(ctx, dst, o); err != nil {
		return fmt.Errorf("verify the backup: %w", err)
	}
	return nil
}

func (s *Store) backup(ctx context.Context, dst string) (err error) {
	if err := makeDir(s.fs, dst); err != nil {
		return err
	}
	names, err := s.fs.List(dst)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("directory is not empty: it contains %q", names[0])
	}
	for _, d := range []string{"blocks", "log"} {
		if err := s.fs.MkdirAll(s.fs.PathJoin(dst, d), 0o700); err != nil {
			return err
		}
	}
	s.blocks.hold()
	defer s.blocks.unhold()

	s.commitMu.Lock()
	err = s.db.Checkpoint(s.fs.PathJoin(dst, "meta"), pebble.WithFlushedWAL())
	files := s.blocks.listed()
	segments := s.log.hold()
	s.commitMu.Unlock()
	defer func() { err = errors.Join(err, s.log.unhold()) }()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := errors.Join(ctx.Err(), vfs.LinkOrCopy(s.fs, f, s.fs.PathJoin(dst, "blocks", s.fs.PathBase(f)))); err != nil {
			return err
		}
	}
	for _, v := range segments {
		if err := errors.Join(ctx.Err(), s.copySegment(v, s.fs.PathJoin(dst, "log"))); err != nil {
			return err
		}
	}
	key, err := readAll(s.fs, s.path(keyFileName))
	if err != nil {
		return err
	}
	if err := writeFileAtomic(s.fs, dst, keyFileName, key); err != nil {
		return err
	}
	for _, d := range []string{"meta", "blocks", "log"} {
		if err := syncDir(s.fs, s.fs.PathJoin(dst, d)); err != nil {
			return err
		}
	}
	// The format file makes it a data directory.
	return s.writeFormat(dst)
}

// copySegment copies what is durable of a segment. Segments are not linked,
// because their files are written to again.
func (s *Store) copySegment(v segmentView, dir string) error {
	to := s.fs.PathJoin(dir, segmentName(v.seg.number))
	r, err := s.fs.Open(v.seg.path)
	if err != nil {
		return err
	}
	w, err := s.fs.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	buf := make([]byte, min(readAhead, v.end))
	for off := int64(0); off < v.end && err == nil; off += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), v.end-off)]
		if _, err = r.ReadAt(buf, off); err == nil {
			_, err = w.Write(buf)
		}
	}
	if err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close(), r.Close())
}

// Verify opens a data directory that nobody has open, reads every block and
// record and secret in it, and reports the first damage.
func Verify(ctx context.Context, dir string, options Options) (err error) {
	options.VerifyBytes = math.MaxInt64
	s, err := Open(dir, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	refs := s.state.refs()
	slices.SortFunc(refs, func(a, b BlockRef) int { return cmp.Compare(a.ID, b.ID) }) // as on disk
	for i := range refs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.Guard(func() error {
			_, release, err := s.OpenBlock(refs[i].ID)
			if err == nil {
				release()
			}
			return err
		}); err != nil {
			return err
		}
	}
	return s.scan([]byte{keySecret}, func(key, _ []byte) error {
		_, err := s.Secret(binary.BigEndian.Uint64(key[1:]))
		return err
	})
}
