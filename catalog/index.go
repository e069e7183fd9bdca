package catalog

import "github.com/streamdb/streamdb/sql/types"

// IndexExpr is an expression in the key of an index.
type IndexExpr struct {
	SQL  string
	Name string // of the index's column
	Type types.Type
	Call bool // a function call, which needs no parentheses
}

// ExprKey is how a key names expression i of its index; a part of a key that is not
// negative is a column.
func ExprKey(i int) int { return -1 - i }

// ExprOf is the number of the expression that a part of a key is; ok says that it is
// not a column.
func ExprOf(key int) (i int, ok bool) { return -1 - key, key < 0 }

// KeyType is the type of a part of an index's key, of which the columns are cols.
func (o *Object) KeyType(key int, cols []Column) types.Type {
	if i, ok := ExprOf(key); ok {
		return o.Exprs[i].Type
	}
	return cols[key].Type
}

// Plain says that an index has all rows, by columns only.
func (o *Object) Plain() bool { return len(o.Exprs) == 0 && o.Where == "" }

// KeyText writes a part of an index's key, of which the columns are cols.
func (o *Object) KeyText(key int, cols []Column, quote func(string) string) string {
	i, ok := ExprOf(key)
	switch {
	case !ok:
		return quote(cols[key].Name)
	case o.Exprs[i].Call:
		return o.Exprs[i].SQL
	}
	return "(" + o.Exprs[i].SQL + ")"
}

// WhereText is the WHERE clause of an index with the space before it, "" for none.
func (o *Object) WhereText() string {
	if o.Where == "" {
		return ""
	}
	return " WHERE " + o.Where
}

// KeyOrder is the order of a part of an index's key, in the bits of pg_index.indoption.
type KeyOrder uint8

// The bits of a KeyOrder.
const (
	OrderDesc KeyOrder = 1 << iota
	OrderNullsFirst
)

// Order is the order of part i of an index's key.
func (o *Object) Order(i int) KeyOrder {
	if i >= len(o.Orders) {
		return 0
	}
	return o.Orders[i]
}

// String is the order as it follows the part of the key, "" if it is the usual one.
func (k KeyOrder) String() string {
	return [...]string{"", " DESC NULLS LAST", " NULLS FIRST", " DESC"}[k&3]
}
