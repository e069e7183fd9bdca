package expr

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Context is what evaluation may depend on besides its input.
type Context struct {
	Now        time.Time // transaction timestamp
	Statement  time.Time // statement timestamp
	Location   *time.Location
	Style      types.TimeStyle
	User       string
	Database   string
	SearchPath []string
	Epoch      dataflow.Epoch // mz_now()
	// Clock is clock_timestamp(); nil: Now.
	Clock func() time.Time
	// Random is the session's generator for random(), seeded by setseed(); nil:
	// a shared one.
	Random *rand.PCG
	// FloatDigits, ByteaEscape and XMLDocument are as in types.Options.
	FloatDigits int
	ByteaEscape bool
	XMLDocument bool
	// Setting reads a session setting; Catalog answers reg* casts and the
	// catalog information functions. All may be nil.
	Setting func(name string) (string, bool)
	// SetSetting is set_config: it gives the value that is in force then.
	SetSetting func(name, value string, local bool) (string, error)
	// Notice tells the client something about the call at a place of the statement, once
	// for it; nil: nobody listens. It may be called from several goroutines.
	Notice func(pos int, e *pgerror.Error)
	// BackendPID identifies the session's connection; Started is when the server was.
	BackendPID int32
	Started    time.Time
	// Cancel asks another session to stop its statement, or (terminate) to end;
	// it reports whether there is such a session. Nil: there is none.
	Cancel func(pid int32, terminate bool) bool
	// Client and Server are the ends of the session's connection, not valid if it
	// does not go through IP.
	Client, Server netip.AddrPort
	// Sleep waits for some seconds, or until the statement is cancelled.
	Sleep func(seconds float64) error
	Locks AdvisoryLocks
	// Sequences are those that nextval() and its like advance; nil: none.
	Sequences Sequences
	// Query runs a query of a function's own, gives its rows to emit (nil: they are
	// not wanted), and tells its columns; nil: there is none.
	Query   func(sql string, emit func(cols []QueryColumn, b *columnar.Batch) error) ([]QueryColumn, error)
	Catalog CatalogReader
}

// CatalogReader answers what SQL functions ask of the catalog.
type CatalogReader interface {
	types.NameResolver
	// Call runs a catalog information function by name (pg_get_viewdef,
	// format_type of user types, regclass lookups, …) over text arguments.
	Call(name string, args []string) (result string, null bool, err error)
}

// RowError is an error in one row of the input of an evaluation.
type RowError struct {
	Row int // row of the input batch
	Err *pgerror.Error
}

// Kernel computes n results from n arguments each. Rows with a NULL argument
// of a Strict function are already NULL in the result and need not be right:
// the caller overlays the null bitmap. Errors are reported with x.Fail(i, err)
// for row i of the arguments; the kernel goes on with the other rows. A result
// of length 1 stands for n equal values only if n is 1.
type Kernel func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec

// TableKernel appends to out (one builder a column) the rows of the function
// for row i of args and returns their number.
type TableKernel func(x *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error)

// Eval is one evaluation in progress.
type Eval struct {
	*Context
	frame   *frame          // the rows under evaluation
	skip    columnar.Bitmap // rows of the current call that are NULL anyway, may be nil
	fan     bool            // the current call has constant arguments: its row stands for all
	errs    []RowError
	opts    *types.Options
	zone    zoneCache
	table   *jsonTable // of the last JSON_TABLE
	xmlPlan *xmlTable  // of the last XMLTABLE
	scratch
	budget
}

// Fail reports that row i of the arguments of the current call has the error
// err. For rows of a strict function with a NULL argument it does nothing.
func (x *Eval) Fail(i int, err *pgerror.Error) {
	if x.skip != nil && x.skip.Get(i) {
		return
	}
	if x.fan {
		for i := range x.frame.n {
			x.errs = append(x.errs, RowError{Row: x.frame.row(i), Err: err})
		}
		return
	}
	x.errs = append(x.errs, RowError{Row: x.frame.row(i), Err: err})
}

// frame is a set of rows of the input batch under evaluation: all of them, or
// those that some condition left. Every value is computed at most once a frame.
type frame struct {
	parent *frame
	n      int
	rows   []uint32 // input row of each row; nil: all, in order
	sel    []uint32 // row of the parent of each row; nil for the root
	origin []uint32 // what a row of the root is reported as; nil: itself
	cols   []*columnar.Vec
	vals   []*columnar.Vec // by node id
}

func (f *frame) row(i int) int {
	if f.rows != nil {
		i = int(f.rows[i])
	}
	if f.origin != nil {
		i = int(f.origin[i])
	}
	return i
}

// MapFilterProject is the fused linear operator: keep the rows for which all
// Filters are true (evaluated in order), then compute Outputs for those.
type MapFilterProject struct {
	Filters []Expr
	Outputs []Expr
}
