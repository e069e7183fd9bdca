package types

import (
	"slices"
	"sync"
)

// A table or view has a type: that of its rows. Its OID follows from the
// relation's, so that catalogs need not keep it: an even one is the type, the next
// that of arrays of it.
const (
	firstRow OID = 1 << 29
	lastRow  OID = firstAnonymous
)

// rows are the row types that are known, by their OIDs; see users.
var rows sync.Map // OID → *Info

// RowOf is the type of the rows of a relation.
func RowOf(relation uint32) OID { return firstRow + OID(relation)<<1 }

// IsRow reports whether o is the type of the rows of a relation, or of arrays of them.
func (o OID) IsRow() bool { return o >= firstRow && o < lastRow }

// Relation is the relation that o is the row type of, or the type of arrays of that; 0
// for others.
func (o OID) Relation() uint32 {
	if !o.IsRow() {
		return 0
	}
	return uint32(o-firstRow) >> 1
}

// DefineRow makes the row type of a relation known, or known anew: its columns
// change.
func DefineRow(relation uint32, schema, name string, fields []Field) {
	o := RowOf(relation)
	if have, ok := rows.Load(o); ok {
		t := have.(*Info)
		if t.Name == name && t.Schema == schema && slices.Equal(t.Definition.Fields, fields) {
			return
		}
	}
	t := compositeInfo(o, schema, name, &Definition{Kind: 'c', Array: o + 1, Fields: fields})
	rows.Store(o, t)
	rows.Store(o+1, arrayInfo(t))
}

func lookupRow(o OID) *Info {
	if t, ok := rows.Load(o); ok {
		return t.(*Info)
	}
	return nil
}
