package pgcatalog

import (
	"sync"

	"github.com/streamdb/streamdb/sql/types"
)

// opclasses are the default operator classes of btree indexes by type.
var opclasses = sync.OnceValue(func() map[types.OID]uint32 {
	m := map[types.OID]uint32{}
	t := readRows("pg_opclass")
	for i := range t.rows {
		if t.get(i, "opcdefault") == "1" {
			m[types.OID(number(t.get(i, "opcintype")))] = uint32(number(t.get(i, "oid")))
		}
	}
	return m
})

// opclassOf is the operator class of an index on a column of the type.
func opclassOf(t types.Type) uint32 {
	o := t.OID
	i := infoOf(t)
	switch {
	case opclasses()[o] != 0:
	case i.IsArray():
		o = types.OIDAnyArray
	case i.Category == 'S':
		o = types.OIDText
	case i.Category == 'N': // oid aliases
		o = types.OIDOid
	}
	return opclasses()[o]
}
