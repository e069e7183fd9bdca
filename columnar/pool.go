package columnar

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A fresh page costs more than the work done on it, and a fresh large slice is
// zeroed before it is filled. Bulk buffers are therefore kept in free lists by
// size class. Class c has room for 2^(c/4) * (4+c%4)/4 bytes and a little more
// (poolSlack), so that offsets of a full chunk (one more than its rows) fit the
// class of its values.
const (
	poolSlack    = 64
	poolMinShift = 12 // smaller buffers are not worth a lock
	poolMaxShift = 25
	poolClasses  = (poolMaxShift - poolMinShift) * 4
)

type freeList struct {
	mu   sync.Mutex
	bufs []*byte
}

var (
	pool      [poolClasses]freeList
	poolBytes atomic.Int64
	poolLimit atomic.Int64
)

func init() { poolLimit.Store(256 << 20) }

// SetPoolLimit bounds the bytes kept for reuse; what is freed beyond is left to
// the garbage collector.
func SetPoolLimit(bytes int64) { poolLimit.Store(bytes) }

// PoolBytes is the memory kept for reuse at present.
func PoolBytes() int64 { return poolBytes.Load() }

// poolClass is the smallest class with room for n bytes, or -1.
func poolClass(n int) int {
	n -= poolSlack
	if n <= 1<<poolMinShift {
		if n < 1<<(poolMinShift-1) {
			return -1
		}
		return 0
	}
	s := bits.Len(uint(n - 1)) // 2^(s-1) < n ≤ 2^s
	q := uint(s - 3)
	c := (s-1-poolMinShift)*4 + ((n + 1<<q - 1) >> q) - 4
	if c >= poolClasses {
		return -1
	}
	return c
}

// classSize is the capacity of the buffers of class c.
func classSize(c int) int {
	return (4+c%4)<<(c/4+poolMinShift-2) + poolSlack
}

// getBytes returns a buffer of length n with arbitrary content, 8-byte aligned.
func getBytes(n int) []byte {
	c := poolClass(n)
	if c < 0 {
		return alignedBytes(n)
	}
	size := classSize(c)
	f := &pool[c]
	f.mu.Lock()
	if l := len(f.bufs); l > 0 {
		p := f.bufs[l-1]
		f.bufs[l-1] = nil
		f.bufs = f.bufs[:l-1]
		f.mu.Unlock()
		poolBytes.Add(-int64(size))
		return unsafe.Slice(p, size)[:n]
	}
	f.mu.Unlock()
	return alignedBytes(size)[:n]
}

// putBytes gives back a buffer of getBytes that nothing refers to any more.
func putBytes(b []byte) {
	size := cap(b)
	c := poolClass(size)
	if c < 0 || classSize(c) != size {
		return
	}
	if poisonFreed {
		b = b[:size]
		for i := range b {
			b[i] = 0xDB
		}
	}
	if poolBytes.Add(int64(size)) > poolLimit.Load() {
		poolBytes.Add(-int64(size))
		return
	}
	f := &pool[c]
	f.mu.Lock()
	f.bufs = append(f.bufs, unsafe.SliceData(b))
	f.mu.Unlock()
}

// Scalar lists the types of slices that can be pooled.
type Scalar interface {
	uint8 | uint16 | uint32 | uint64 | int64 | U128 | Keyed
}

// GetSlice returns a slice of length n with arbitrary content. Give it back
// with PutSlice, or leave it to the garbage collector.
func GetSlice[T Scalar](n int) []T {
	var z T
	w := int(unsafe.Sizeof(z))
	b := getBytes(n * w)
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), cap(b)/w)[:n]
}

// PutSlice gives back a slice of GetSlice that nothing refers to any more. The
// sizes of all classes are multiples of 64, so that its capacity names the class.
func PutSlice[T Scalar](s []T) {
	if cap(s) == 0 {
		return
	}
	var z T
	putBytes(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), cap(s)*int(unsafe.Sizeof(z))))
}

// Recycle gives the buffers of a vector back, if they are pooled (made by a
// pooled Builder): nothing may refer to v or to a part of it any more.
func (v *Vec) Recycle() {
	if !v.pooled {
		return
	}
	if v.kind == KindBytes {
		putBytes(v.data[:0])
		PutSlice(v.offs)
	} else {
		putBytes(v.fixed[:0])
	}
	if v.nulls != nil {
		PutSlice([]uint64(v.nulls))
	}
	*v = Vec{kind: v.kind}
}
