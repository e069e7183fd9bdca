// Package expr is typed scalar, aggregate and table functions: the expression
// tree, the registry of functions, operators and casts with PostgreSQL's
// resolution rules (PostgreSQL manual, chapter 10), and vectorized evaluation.
package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// Expr is a typed scalar expression over the columns of one input.
type Expr interface {
	Type() types.Type
}

// Column is a reference to column Index of the input.
type Column struct {
	Index int
	Typ   types.Type
	Name  string // for messages and EXPLAIN
	Pos   int    // where the column was named, 0 if not known
}

// Const is a literal: a vector of length 1. Typ may be Unknown while binding.
type Const struct {
	Val *columnar.Vec
	Typ types.Type
	Pos int // 1-based position in the statement, 0 if none
}

// Param is $Index (1-based). Parameters are replaced by constants before a plan runs.
type Param struct {
	Index int
	Typ   types.Type
	Pos   int
}

// Call applies a function, operator or cast. Typ is the result type with its
// modifier. Pos is where the call is in the statement, for errors.
type Call struct {
	Fn   *Function
	Args []Expr
	Typ  types.Type
	Pos  int
	Cast bool // print as Args[0]::Typ
	// Variadic says that the last argument is an array of arguments: the call
	// was written with VARIADIC.
	Variadic bool
}

// Logic is AND or OR over two or more arguments, three-valued, evaluated left
// to right: an argument is evaluated only for the rows that the earlier ones
// leave undecided.
type Logic struct {
	And  bool
	Args []Expr
}

// Not is three-valued negation.
type Not struct{ Arg Expr }

// IsNull is `Arg IS [NOT] NULL`.
type IsNull struct {
	Arg Expr
	Not bool
}

// Case is a searched CASE: conditions are bool, branches have the type Typ.
// Only the branch that is chosen is evaluated for a row. A nil Else is NULL.
type Case struct {
	Whens []When
	Else  Expr
	Typ   types.Type
}

// When is one branch of a CASE.
type When struct{ Cond, Then Expr }

// Coalesce is the first argument that is not NULL; later ones are not evaluated.
type Coalesce struct {
	Args []Expr
	Typ  types.Type
}

// ArrayCtor is ARRAY[…] of type Typ (an array type).
type ArrayCtor struct {
	Elems []Expr
	Typ   types.Type
}

// Row is ROW(…), a record. Names are those of the fields where it is the whole
// row of a relation: what json calls them.
type Row struct {
	Fields []Expr
	Names  []string
	Typ    types.Type
	// literals are the fields that were of unknown type, for a cast of the row.
	literals []Expr
}

// InList is `Arg = one of List`, three-valued; NOT IN is Not over it. Op is the
// equality operator. Long lists of constants are evaluated by a hashed set.
type InList struct {
	Op   *Function
	Arg  Expr
	List []Expr
	Pos  int
}

// ArrayOp is `Left Op ANY(Right)` or, with All, `Left Op ALL(Right)`, where
// Right is an array.
type ArrayOp struct {
	Op          *Function
	All         bool
	Left, Right Expr
	Pos         int
}

// Rel is a relation inside an expression (implemented by plan.Rel).
type Rel interface{ IsRel() }

// OuterColumn refers to a column of an enclosing query: Depth 1 is the query
// directly around. It occurs only before decorrelation.
type OuterColumn struct {
	Depth int
	Index int
	Typ   types.Type
	Name  string
	Pos   int
}

// SubqueryKind says how a subquery is used as a scalar.
type SubqueryKind uint8

// The uses of a subquery.
const (
	SubqueryScalar SubqueryKind = iota + 1 // its single value; 21000 if more rows
	SubqueryExists
	SubqueryAny   // Test holds for some row (IN is `= ANY`)
	SubqueryAll   // Test holds for all rows
	SubqueryArray // ARRAY(SELECT …)
)

// Subquery is a subquery in an expression, before decorrelation. For Any and
// All, Test is a bool expression over the subquery's columns (as Column with
// Index from 0) and the outer row (as OuterColumn, Depth 1).
type Subquery struct {
	Kind SubqueryKind
	Rel  Rel
	Test Expr
	Typ  types.Type
	Pos  int
}

// Type implementations.
func (e *Column) Type() types.Type      { return e.Typ }
func (e *Const) Type() types.Type       { return e.Typ }
func (e *Param) Type() types.Type       { return e.Typ }
func (e *Call) Type() types.Type        { return e.Typ }
func (e *Logic) Type() types.Type       { return types.Bool }
func (e *Not) Type() types.Type         { return types.Bool }
func (e *IsNull) Type() types.Type      { return types.Bool }
func (e *Case) Type() types.Type        { return e.Typ }
func (e *Coalesce) Type() types.Type    { return e.Typ }
func (e *ArrayCtor) Type() types.Type   { return e.Typ }
func (e *Row) Type() types.Type         { return e.Typ }
func (e *InList) Type() types.Type      { return types.Bool }
func (e *ArrayOp) Type() types.Type     { return types.Bool }
func (e *OuterColumn) Type() types.Type { return e.Typ }
func (e *Subquery) Type() types.Type    { return e.Typ }
