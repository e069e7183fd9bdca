package expr

import (
	"github.com/streamdb/streamdb/sql/types"
)

// category is pg_type.typcategory, which overload resolution compares.
type category byte

const (
	catArray    category = 'A'
	catBool     category = 'B'
	catDateTime category = 'D'
	catNumeric  category = 'N'
	catPseudo   category = 'P'
	catString   category = 'S'
	catTimespan category = 'T'
	catUser     category = 'U'
	catUnknown  category = 'X'
	catInternal category = 'Z'
)

func categoryOf(o types.OID) category { return category(o.Category()) }

// preferred is pg_type.typispreferred.
func preferred(o types.OID) bool {
	i := types.Lookup(o)
	return i != nil && i.Preferred
}

// elemOf is the element type of an array type, 0 for others.
func elemOf(o types.OID) types.OID { return o.Elem() }

// arrayOf is the array type over an element type, 0 if there is none.
func arrayOf(o types.OID) types.OID { return o.Array() }

func isPolymorphic(o types.OID) bool {
	switch o {
	case types.OIDAnyElement, types.OIDAnyArray, types.OIDAnyNonArray, types.OIDAnyCompatible, types.OIDAnyCompatibleArray:
		return true
	}
	return false
}

// typesOf lists the types of expressions.
func typesOf(es []Expr) []types.Type {
	ts := make([]types.Type, len(es))
	for i, e := range es {
		ts[i] = e.Type()
	}
	return ts
}
