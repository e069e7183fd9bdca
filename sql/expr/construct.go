package expr

import (
	"github.com/streamdb/streamdb/sql/pgerror"
)

// NewCase makes a searched CASE: whens have bool conditions (coerced here),
// the branches get their common type. For `CASE x WHEN v …` the binder gives
// NewOp("=", x, v) as conditions. els may be nil.
func NewCase(whens []When, els Expr, pos int) (Expr, error) {
	return nil, pgerror.Unsupported("CASE")
}

// NewCoalesce makes COALESCE(args…).
func NewCoalesce(args []Expr, pos int) (Expr, error) { return nil, pgerror.Unsupported("COALESCE") }

// NewMinMax makes GREATEST(args…) or LEAST(args…).
func NewMinMax(greatest bool, args []Expr, pos int) (Expr, error) {
	return nil, pgerror.Unsupported("GREATEST")
}

// NewNullIf makes NULLIF(a, b).
func NewNullIf(a, b Expr, pos int) (Expr, error) { return nil, pgerror.Unsupported("NULLIF") }

// NewArray makes ARRAY[elems…]; elements that are ARRAY[…] themselves make a
// multidimensional array.
func NewArray(elems []Expr, pos int) (Expr, error) { return nil, pgerror.Unsupported("ARRAY") }

// NewRow makes ROW(fields…).
func NewRow(fields []Expr) Expr { return &Row{Fields: fields} }

// NewIn makes `arg [NOT] IN (list…)`; arg may be a Row.
func NewIn(arg Expr, list []Expr, not bool, pos int) (Expr, error) {
	return nil, pgerror.Unsupported("IN")
}

// NewBetween makes `arg [NOT] BETWEEN [SYMMETRIC] lo AND hi`.
func NewBetween(arg, lo, hi Expr, not, symmetric bool, pos int) (Expr, error) {
	return nil, pgerror.Unsupported("BETWEEN")
}

// NewDistinct makes `l IS [NOT] DISTINCT FROM r`; both may be Rows.
func NewDistinct(l, r Expr, not bool, pos int) (Expr, error) {
	return nil, pgerror.Unsupported("IS DISTINCT FROM")
}

// NewArrayOp makes `left op ANY|ALL (array)`.
func NewArrayOp(op string, left, array Expr, all bool, pos int) (Expr, error) {
	return nil, pgerror.Unsupported("ANY")
}

// NewIsNull makes `arg IS [NOT] NULL`, field by field for a Row.
func NewIsNull(arg Expr, not bool) Expr { return &IsNull{Arg: arg, Not: not} }

// BoolTest is the kind of `IS [NOT] TRUE|FALSE|UNKNOWN`.
type BoolTest uint8

// The boolean tests.
const (
	IsTrue BoolTest = iota
	IsNotTrue
	IsFalse
	IsNotFalse
	IsUnknown
	IsNotUnknown
)

// NewBoolTest makes `arg IS [NOT] TRUE|FALSE|UNKNOWN`.
func NewBoolTest(arg Expr, test BoolTest, pos int) (Expr, error) {
	return nil, pgerror.Unsupported("IS TRUE")
}

// NewLogic makes AND or OR; arguments are coerced to bool, nested ones flattened.
func NewLogic(and bool, args []Expr, pos int) (Expr, error) { return nil, pgerror.Unsupported("AND") }

// NewNot makes NOT arg.
func NewNot(arg Expr, pos int) (Expr, error) { return nil, pgerror.Unsupported("NOT") }

// Subscript is one step of `expr[i]` or `expr[lo:hi]`.
type Subscript struct {
	Slice  bool
	Lo, Hi Expr // Lo is the index unless Slice; a nil bound of a slice is open
}

// NewSubscript makes arg[…][…] over an array or jsonb.
func NewSubscript(arg Expr, subs []Subscript, pos int) (Expr, error) {
	return nil, pgerror.Unsupported("subscript")
}

// KeyNorm is an expression whose physical equality is the SQL equality of e:
// e itself where bits suffice.
func KeyNorm(e Expr) Expr { return e }

// SortKey is an expression whose physical order is the SQL order of e: e itself
// where the engine's order is that, else memcomparable bytes.
func SortKey(e Expr) Expr { return e }
