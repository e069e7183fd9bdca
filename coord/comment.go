package coord

import (
	"slices"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// comment runs COMMENT ON.
func (s *Session) comment(d *ddlState, n *parser.CommentOn) error {
	text := ""
	if n.Comment != nil {
		text = *n.Comment
	}
	if n.Kind == parser.ObjectColumn || n.Kind == parser.ObjectConstraint {
		return s.commentWithin(d, n, text)
	}
	if _, ok := kindOf(n.Kind); !ok {
		return nil
	}
	o, err := s.find(d, n.Kind, n.Name)
	if err != nil {
		return err
	}
	c := o.Clone()
	c.Comment = text
	d.apply(catalog.Change{Put: c})
	return nil
}

// commentWithin comments a column or a constraint of a relation.
func (s *Session) commentWithin(d *ddlState, n *parser.CommentOn, text string) error {
	o := d.cat.Resolve(catalog.KindTable, n.Name.Schema, n.Name.Name, s.relationPath())
	if o == nil {
		return undefinedRelation(n.Name.Schema, n.Name.Name)
	}
	c := o.Clone()
	put := func() error {
		d.apply(catalog.Change{Put: c})
		return nil
	}
	if n.Kind == parser.ObjectColumn {
		i := c.Column(n.Column)
		if i < 0 {
			return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", n.Column, o.Name)
		}
		c.Columns[i].Comment = text
		return put()
	}
	if c.Primary != nil && c.Primary.Name == n.Column {
		c.Primary.Comment = text
		return put()
	}
	if i := slices.IndexFunc(c.Unique, func(k catalog.Key) bool { return k.Name == n.Column && !k.Index }); i >= 0 {
		c.Unique[i].Comment = text
		return put()
	}
	if i := slices.IndexFunc(c.Checks, func(k catalog.Check) bool { return k.Name == n.Column }); i >= 0 {
		c.Checks[i].Comment = text
		return put()
	}
	if i := slices.IndexFunc(c.Foreign, func(k catalog.ForeignKey) bool { return k.Name == n.Column }); i >= 0 {
		c.Foreign[i].Comment = text
		return put()
	}
	return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" for table \"%s\" does not exist", n.Column, o.Name)
}
