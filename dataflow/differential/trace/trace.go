// Package trace is data at rest: immutable batches of consolidated updates,
// sorted by the hash of their key, and the spine that merges them by bounded
// work an epoch. It starts no goroutine and reads no clock.
//
// # What a batch says
//
// A Batch with Description{Lower, Upper, Since} holds, for every row r, the sum
// of the diffs of r over all epochs t with Lower ≤ t < Upper. Nothing can be
// concluded about an epoch strictly between: after merging, its times are
// forgotten. A Spine is a list of batches, oldest first, whose bounds tile
// time; the content of the collection at epoch t is the sum of the batches
// with Upper ≤ t+1, which is exact whenever no batch has Lower ≤ t < Upper-1.
// A Hold at t makes sure that none ever will.
//
// # Order
//
// Rows are sorted by (hash of the key columns, key columns in the order of
// Layout.Key, the other columns in their own order), each by physical kind and
// NULL last. Equal rows occur once, with a diff that is not zero.
//
// # Memory
//
// A batch is a list of chunks of ChunkRows rows (all but the last), each chunk
// a hash column, the data columns and, unless all are 1, a diff column: 8 bytes
// a row beyond the payload. Chunks come from and go back to the buffer pool of
// package columnar, so that merging neither grows the heap nor touches fresh
// pages. A chunk that was ever handed out through a Snapshot is left to the
// garbage collector instead.
package trace

import (
	"github.com/streamdb/streamdb/dataflow"
)

// Description bounds the epochs of a batch: Lower ≤ t < Upper. Reads at epochs
// before Since are no longer exact.
type Description struct {
	Lower, Upper, Since dataflow.Epoch
}
