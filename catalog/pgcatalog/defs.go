package pgcatalog

import "strings"

// qualified is the name of a relation with its schema.
func (r *rel) qualified() string { return quoteIdent(r.schema) + "." + quoteIdent(r.name) }

// keyNames are the names of the columns of an index or key.
func (r *rel) keyNames(key []int) string {
	var b strings.Builder
	for i, k := range key {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoteIdent(r.obj.Columns[k].Name))
	}
	return b.String()
}

// indexDef is the statement that makes an index.
func (r *rel) indexDef() string {
	s := "CREATE "
	if r.unique {
		s += "UNIQUE "
	}
	return s + "INDEX " + quoteIdent(r.name) + " ON " + r.table.qualified() + " USING btree (" + r.table.keyNames(r.key) + ")"
}

// def is the definition of a constraint as ALTER TABLE ADD takes it.
func (c *constraintRow) def() string {
	switch c.kind {
	case 'p':
		return "PRIMARY KEY (" + c.table.keyNames(c.key) + ")"
	case 'u':
		return "UNIQUE (" + c.table.keyNames(c.key) + ")"
	}
	return "CHECK ((" + c.expr + "))"
}
