package storage

import (
	"bytes"
	"errors"
	"io"
	iofs "io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func readAll(fs FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

// writeFileAtomic makes a small private file: after a crash it is there whole
// or not at all.
func writeFileAtomic(fs FS, dir, name string, content []byte) error {
	tmp := fs.PathJoin(dir, name+".tmp")
	f, err := fs.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if fd := f.Fd(); fd != vfs.InvalidFd {
		err = makePrivate(fd)
	}
	if err == nil {
		_, err = f.Write(bytes.Clone(content)) // a vfs.File may scribble on it
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(tmp, fs.PathJoin(dir, name)); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

// makeDir makes a directory that a crash does not take away. Directories above
// it may be closed to us, in which case they were not made now.
func makeDir(fs FS, dir string) error {
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for up := fs.PathDir(dir); ; up = fs.PathDir(up) {
		if err := syncDir(fs, up); err != nil && !errors.Is(err, iofs.ErrPermission) {
			return err
		}
		if up == fs.PathDir(up) {
			return nil
		}
	}
}
