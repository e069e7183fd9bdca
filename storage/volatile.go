package storage

import "github.com/cockroachdb/pebble/v2/vfs"

// volatileFS is a file system that never syncs.
type volatileFS struct{ FS }

// volatileFile is a file of it.
type volatileFile struct{ vfs.File }

func (volatileFile) Sync() error     { return nil }
func (volatileFile) SyncData() error { return nil }

// SyncTo says that less than the whole file was synced, which is true.
func (volatileFile) SyncTo(int64) (fullSync bool, err error) { return false, nil }

func volatile(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return volatileFile{f}, nil
}

func (v volatileFS) Unwrap() FS { return v.FS }

func (v volatileFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return volatile(v.FS.Create(name, c))
}

func (v volatileFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return volatile(v.FS.Open(name, opts...))
}

func (v volatileFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return volatile(v.FS.OpenReadWrite(name, c, opts...))
}

func (v volatileFS) OpenDir(name string) (vfs.File, error) { return volatile(v.FS.OpenDir(name)) }

func (v volatileFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return volatile(v.FS.ReuseForWrite(from, to, c))
}
