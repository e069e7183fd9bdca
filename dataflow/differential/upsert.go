package differential

// The operations in the int16 op column of Upsert.
const (
	UpsertPut      = 0 // the row of this key is now this one
	UpsertDelete   = 1 // the row of this key is gone; only the key columns count
	UpsertTruncate = 2 // all rows are gone; no column counts
)

// UpsertOptions say where Upsert finds what is not data.
type UpsertOptions struct {
	// OpCol is the int16 column of the operation.
	OpCol int
	// UnchangedCol is a KindBytes column, < 0: none. Bit c (little-endian: byte
	// c/8, bit c%8) of its value says that output column c keeps the value it
	// had, whatever this record holds there; NULL or a short value: no such
	// column. What it had is the current row of the key, or, if there is none,
	// the row that the record just before deleted: an update that changes the
	// key arrives as delete and put.
	UnchangedCol int
}
