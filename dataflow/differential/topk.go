package differential

// Order is one ordering column. The order is the physical one of the column's
// kind (see columnar: floats with NaN greatest, bytes bytewise), NULL greatest
// in ascending order unless NullsFirst says otherwise.
//
// NullsFirst is absolute: NULLs come first if it is set, last if not, whatever
// Desc is (as plan.SortKey has it).
type Order struct {
	Col        int
	Desc       bool
	NullsFirst bool
}

// TopKOptions say which rows of each group TopK keeps.
type TopKOptions struct {
	Limit  int64 // rows per group, < 0: all after Offset
	Offset int64
	// WithTies keeps also the rows that are equal to the last kept one in the
	// order columns.
	WithTies bool
	// AppendOnly: no input diff is ever negative, so that only the rows up to
	// Offset+Limit need to be kept.
	AppendOnly bool
	// RowNumber appends an int64 column: the row's number in its group from 1,
	// Offset included. A row of multiplicity m then becomes m rows.
	RowNumber bool
}
