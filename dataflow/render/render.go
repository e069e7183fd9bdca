package render

import (
	"github.com/streamdb/streamdb/sql/expr"
)

// Options says how to render.
type Options struct {
	// Once makes a circuit for a single epoch with all input, thrown away after.
	Once bool
	// Partitions is the number of parts of the key space; 0 means 1.
	Partitions int
	// Context is what expressions may depend on besides their input.
	Context *expr.Context
}
