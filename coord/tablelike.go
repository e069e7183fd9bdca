package coord

import (
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// likeSource is the relation or composite type of LIKE.
func (n *newTable) likeSource(l *parser.Like) (*catalog.Object, error) {
	t := n.s.commented(n.d, l.Name)
	if t == nil {
		c, err := n.s.composite(n.d, l.Name)
		if err != nil {
			return nil, pgerror.As(err).At(l.Name.Pos)
		}
		for _, f := range c.Def.Fields {
			c.Columns = append(c.Columns, catalog.Column{Name: f.Name, Type: f.Type, Comment: f.Comment})
		}
		return c, nil
	}
	if t.Kind == catalog.KindSequence || t.Kind == catalog.KindIndex {
		kinds := map[catalog.Kind]string{catalog.KindSequence: "sequences", catalog.KindIndex: "indexes"}
		return nil, pgerror.New(pgerror.WrongObjectType, "relation \"%s\" is invalid in LIKE clause", t.Name).
			WithDetail("This operation is not supported for %s.", kinds[t.Kind]).At(l.Name.Pos)
	}
	return t, nil
}

// like takes over the columns of another relation, and what INCLUDING says.
func (n *newTable) like(l *parser.Like) error {
	t, err := n.likeSource(l)
	if err != nil {
		return err
	}
	base := len(n.o.Columns)
	for i, c := range t.Columns {
		if n.o.Column(c.Name) >= 0 {
			return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", c.Name)
		}
		identity := c.Identity
		if !l.Including["comments"] {
			c.Comment = ""
		}
		if !l.Including["generated"] {
			c.Generated = ""
		}
		if c.Identity != "" {
			c.Default = ""
		}
		if !l.Including["identity"] {
			c.Identity = ""
		}
		if !l.Including["defaults"] {
			c.Default = ""
		}
		if t.Kind != catalog.KindTable {
			c.NotNull = false
		}
		n.o.Columns = append(n.o.Columns, c)
		if identity != "" && c.Identity != "" {
			if err := n.sequenceFor(base+i, nil); err != nil {
				return err
			}
		}
	}
	for _, d := range t.Deps { // sequences of defaults
		if l.Including["defaults"] && !slices.Contains(n.o.Deps, d) && t.Kind == catalog.KindTable {
			n.o.Deps = append(n.o.Deps, d)
		}
	}
	if l.Including["constraints"] {
		for _, c := range t.Checks {
			if !l.Including["comments"] {
				c.Comment = ""
			}
			c.NotValid = false // there are no rows from before
			n.o.Checks = append(n.o.Checks, c)
		}
	}
	if l.Including["indexes"] {
		return n.likeKeys(t, base)
	}
	return nil
}

// likeKeys takes over the primary key and the UNIQUE constraints.
func (n *newTable) likeKeys(t *catalog.Object, base int) error {
	for i, k := range t.Keys() {
		if k.Index {
			continue // it comes with the other indexes
		}
		cols := make([]int, len(k.Columns))
		for j, c := range k.Columns {
			cols[j] = base + c
		}
		c := parser.Constraint{Kind: parser.ConstraintUnique, NullsNotDistinct: k.NullsNotDistinct}
		if t.Primary != nil && i == 0 {
			c.Kind = parser.ConstraintPrimaryKey
		}
		if err := n.key(&c, cols); err != nil {
			return err
		}
	}
	return nil
}

// likeIndexes makes the indexes of LIKE … INCLUDING INDEXES that belong to no
// constraint, on the table that is there now.
func (n *newTable) likeIndexes(l *parser.Like, w pgwire.ResultWriter) error {
	t, err := n.likeSource(l)
	if err != nil || t.Kind != catalog.KindTable || !l.Including["indexes"] {
		return err
	}
	for _, x := range n.d.cat.Users(t.ID) {
		if x.Kind != catalog.KindIndex || x.Table != t.ID || x.Index != nil && (x.Index.Constraint || x.Index.Internal) {
			continue
		}
		stmts, err := parser.Parse(indexSQL(t, x))
		if err != nil {
			return err
		}
		index := stmts[0].Node.(*parser.CreateIndex)
		index.Name, index.On = parser.Name{}, parser.Name{Schema: n.o.Schema, Name: n.o.Name}
		if index.Where != nil {
			index.Where.SQL = x.Where // without the parentheses of the statement
		}
		mark := len(n.d.changes)
		if err := n.s.createIndex(n.d, &prepared{stmt: &stmts[0], sql: stmts[0].SQL()}, index, w); err != nil {
			return err
		}
		if !l.Including["comments"] || x.Comment == "" {
			continue
		}
		for _, c := range n.d.changes[mark:] {
			if c.Put != nil && c.Put.Kind == catalog.KindIndex {
				o := c.Put.Clone()
				o.Comment = x.Comment
				n.d.apply(catalog.Change{Put: o})
				break
			}
		}
	}
	return nil
}
