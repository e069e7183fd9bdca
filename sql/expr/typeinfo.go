package expr

import (
	"github.com/streamdb/streamdb/sql/types"
)

// category is pg_type.typcategory, which overload resolution compares.
type category byte

const (
	catNumeric category = 'N'
	catPseudo  category = 'P'
	catString  category = 'S'
)

func categoryOf(o types.OID) category { return category(o.Category()) }

// preferred is pg_type.typispreferred.
func preferred(o types.OID) bool {
	i := types.Lookup(o)
	return i != nil && i.Preferred
}

func isPolymorphic(o types.OID) bool {
	switch o {
	case types.OIDAnyElement, types.OIDAnyArray, types.OIDAnyNonArray, types.OIDAnyCompatible, types.OIDAnyCompatibleArray,
		types.OIDAnyRange, types.OIDAnyMultirange, types.OIDAnyEnum, types.OIDAnyCompatibleNonArray:
		return true
	}
	return false
}
