package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// Program is a compiled MapFilterProject. It is immutable and safe for
// concurrent use.
type Program struct {
	mfp MapFilterProject
}

// Compile prepares a MapFilterProject for evaluation. Params, OuterColumns and
// Subqueries must have been replaced.
func Compile(mfp MapFilterProject) (*Program, error) {
	return nil, pgerror.Unsupported("compile")
}

// Apply evaluates the program over a batch. diffs nil means all +1. The rows
// that pass the filters without an error are in out, with their diffs (nil if
// diffs is nil). Rows with an error are in errs, once each, by their index in
// in; only the first error of a row is kept. Columns that pass through
// unchanged are shared with in.
func (p *Program) Apply(ctx *Context, in *columnar.Batch, diffs []int64) (out columnar.Batch, outDiffs []int64, errs []RowError) {
	return
}

// ErrorBatch is the rows of an errs stream for errors of a batch with diffs:
// columns code and message (with the detail), and the diffs (nil: all +1).
func ErrorBatch(errs []RowError, diffs []int64) (columnar.Batch, []int64) {
	return columnar.Batch{}, nil
}

// EvalConst evaluates an expression without columns. The error is the row
// error, if there was one.
func EvalConst(e Expr, ctx *Context) (*Const, error) {
	return nil, pgerror.Unsupported("evaluation")
}

// FoldLiterals evaluates the calls that exist only because a literal's meaning
// depends on the session ('today'::date, '…'::timestamptz, 't'::regclass): the
// binder applies it once a statement is bound, also for maintained views.
func FoldLiterals(e Expr, ctx *Context) (Expr, error) { return e, nil }

// FoldConstants evaluates the subexpressions that are immutable, have no
// columns and do not fail.
func FoldConstants(e Expr) Expr { return e }

// String prints e as SQL, as EXPLAIN and pg_get_viewdef do. column names a
// column reference; nil uses Column.Name, or #index.
func String(e Expr, column func(c *Column) string) string { return "" }

// Equal reports whether two expressions are the same but for positions.
func Equal(a, b Expr) bool { return a == b }

// Hash is equal for equal expressions.
func Hash(e Expr) uint64 { return 0 }
