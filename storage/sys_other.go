//go:build !linux

package storage

import "errors"

// punchHole is an optimization that only Linux offers in this form.
func punchHole(uintptr, int64, int64) error { return errors.ErrUnsupported }
