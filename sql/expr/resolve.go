package expr

import (
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// CallOptions says how a function call was written.
type CallOptions struct {
	Pos      int
	Variadic bool     // the last argument is VARIADIC array
	ArgNames []string // name => value for the last len(ArgNames) arguments
	Star     bool     // f(*), aggregates only
	Ordered  int      // number of WITHIN GROUP arguments at the end, aggregates only
}

// NewCall resolves a scalar function by PostgreSQL's rules and coerces its
// arguments. A name that is a type and has one argument is a cast. Unknown
// literals (Const of type Unknown) and undetermined parameters (Param of type
// Unknown; all uses of a parameter share one *Param, which gets its type here)
// are resolved too. name is without a schema, lower case.
func NewCall(name string, args []Expr, opts CallOptions) (Expr, error) {
	return nil, pgerror.Unsupported("function " + name)
}

// NewOp resolves an operator; left is nil for a prefix operator.
func NewOp(op string, left, right Expr, pos int) (Expr, error) {
	return nil, pgerror.Unsupported("operator " + op)
}

// Coerce converts e to a type, with its modifier, as an implicit, assignment or
// explicit cast. It fails with 42846 (explicit) or 42804.
func Coerce(e Expr, to types.Type, ctx CastContext, pos int) (Expr, error) {
	return nil, pgerror.Unsupported("cast")
}

// CoerceToBool is for conditions; context names the clause ("WHERE", "CASE/WHEN", …).
func CoerceToBool(e Expr, context string, pos int) (Expr, error) {
	return nil, pgerror.Unsupported("cast")
}

// CommonType is the type of a UNION, CASE, VALUES, array or similar construct
// over exprs; context names it in errors ("CASE", "UNION", "VALUES", "ARRAY", …).
func CommonType(exprs []Expr, context string) (types.Type, error) {
	return types.Unknown, pgerror.Unsupported("cast")
}

// ResolveAggregate resolves an aggregate call and coerces its arguments (direct
// ones, then those of WITHIN GROUP).
func ResolveAggregate(name string, args []Expr, opts CallOptions) (fn *Aggregate, coerced []Expr, typ types.Type, err error) {
	return nil, nil, types.Unknown, pgerror.Unsupported("aggregate " + name)
}

// ResolveTableFunction resolves a set-returning function; cols are its output
// column types.
func ResolveTableFunction(name string, args []Expr, opts CallOptions) (fn *TableFunction, coerced []Expr, cols []types.Type, err error) {
	return nil, nil, nil, pgerror.Unsupported("function " + name)
}
