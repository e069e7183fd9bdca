package storage

import (
	"runtime"
	"runtime/debug"
)

// Guard runs fn and turns the fault of a mapped page that the disk cannot
// deliver into a *CorruptionError that names the file. Every goroutine that
// reads blocks needs a Guard of its own; without one a fault ends the process.
// Any other panic passes.
func (s *Store) Guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		fault, ok := r.(interface {
			runtime.Error
			Addr() uintptr
		})
		if !ok {
			panic(r)
		}
		path, off := s.blocks.fileAt(fault.Addr())
		if path == "" {
			panic(r)
		}
		s.stats.corruptions.Add(1)
		err = &CorruptionError{File: path, Offset: off, Reason: "the disk cannot deliver this page"}
	}()
	return fn()
}
