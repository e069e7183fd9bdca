package coord

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// comment runs COMMENT ON.
func (s *Session) comment(d *ddlState, n *parser.CommentOn) error {
	text := ""
	if n.Comment != nil {
		text = *n.Comment
	}
	switch n.Kind {
	case parser.ObjectColumn:
		return s.commentColumn(d, n, text)
	case parser.ObjectConstraint:
		return s.commentConstraint(d, n, text)
	case parser.ObjectSchema:
		sc := d.cat.Schema(n.Name.Name)
		if sc == nil {
			return pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", n.Name.Name)
		}
		c := *sc
		c.Comment = text
		d.apply(catalog.Change{PutSchema: &c})
		return nil
	case parser.ObjectTable, parser.ObjectView, parser.ObjectMaterializedView, parser.ObjectSequence, parser.ObjectIndex:
		if o := s.commented(d, n.Name); o == nil {
			if t := s.keyIndexTable(d, n.Name); t != nil && n.Kind == parser.ObjectIndex {
				c := t.Clone()
				c.Primary.IndexComment = text
				d.apply(catalog.Change{Put: c})
				return nil
			}
			return s.noRelation(d, n.Name)
		}
	}
	o, err := s.find(d, n.Kind, n.Name)
	if err != nil {
		e := *pgerror.As(err)
		e.Hint = "" // it tells how to drop
		return &e
	}
	c := o.Clone()
	c.Comment = text
	d.apply(catalog.Change{Put: c})
	return nil
}

// commented is the relation or index of a name, nil if there is none.
func (s *Session) commented(d *ddlState, n parser.Name) *catalog.Object {
	if n.Schema == catalog.SchemaTemp {
		n.Schema = s.tempSchema
	}
	return d.cat.Resolve(catalog.KindTable, n.Schema, n.Name, s.relationPath())
}

// noRelation is the error of a relation that is not there.
func (s *Session) noRelation(d *ddlState, n parser.Name) error {
	if n.Schema != "" && n.Schema != catalog.SchemaTemp && d.cat.Schema(n.Schema) == nil {
		return pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", n.Schema)
	}
	return undefinedRelation(n.Schema, n.Name)
}

// keyIndexTable is the table whose primary key has the name, nil if there is none.
func (s *Session) keyIndexTable(d *ddlState, n parser.Name) *catalog.Object {
	path := s.relationPath()
	if n.Schema != "" {
		path = []string{n.Schema}
	}
	for _, p := range path {
		if t := d.cat.PrimaryNamed(p, n.Name); t != nil {
			return t
		}
	}
	return nil
}

// commentColumn comments a column of a relation, or an attribute of a composite type.
func (s *Session) commentColumn(d *ddlState, n *parser.CommentOn, text string) error {
	o := s.commented(d, n.Name)
	if o == nil {
		if t, err := s.composite(d, n.Name); err == nil {
			at := attribute(t, n.Column)
			if at < 0 {
				return noAttribute(t, n.Column)
			}
			t.Def.Fields[at].Comment = text
			d.apply(catalog.Change{Put: t})
			return nil
		}
		return s.noRelation(d, n.Name)
	}
	if o.Kind == catalog.KindSequence || o.Kind == catalog.KindIndex {
		kinds := map[catalog.Kind]string{catalog.KindSequence: "sequences", catalog.KindIndex: "indexes"}
		return pgerror.New(pgerror.WrongObjectType, "cannot set comment on relation \"%s\"", o.Name).
			WithDetail("This operation is not supported for %s.", kinds[o.Kind])
	}
	c := o.Clone()
	i := c.Column(n.Column)
	if i < 0 {
		return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", n.Column, o.Name)
	}
	if o.Kind == catalog.KindVirtual {
		return systemCatalog(o)
	}
	c.Columns[i].Comment = text
	d.apply(catalog.Change{Put: c})
	return nil
}

func systemCatalog(o *catalog.Object) error {
	return pgerror.New(pgerror.InsufficientPrivilege, "permission denied: \"%s\" is a system catalog", o.Name)
}

// commentConstraint comments a constraint of a table.
func (s *Session) commentConstraint(d *ddlState, n *parser.CommentOn, text string) error {
	o := s.commented(d, n.Name)
	if o == nil {
		return s.noRelation(d, n.Name)
	}
	c := o.Clone()
	if at := constraintComment(c, n.Column); at != nil {
		*at = text
		d.apply(catalog.Change{Put: c})
		return nil
	}
	return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" for table \"%s\" does not exist", n.Column, o.Name)
}

// constraintComment is where the comment on a constraint of a table is kept, nil
// if there is no such constraint.
func constraintComment(c *catalog.Object, name string) *string {
	if c.Primary != nil && c.Primary.Name == name {
		return &c.Primary.Comment
	}
	if i := slices.IndexFunc(c.Unique, func(k catalog.Key) bool { return k.Name == name && !k.Index }); i >= 0 {
		return &c.Unique[i].Comment
	}
	if i := slices.IndexFunc(c.Checks, func(k catalog.Check) bool { return k.Name == name }); i >= 0 {
		return &c.Checks[i].Comment
	}
	if i := slices.IndexFunc(c.Foreign, func(k catalog.ForeignKey) bool { return k.Name == name }); i >= 0 {
		return &c.Foreign[i].Comment
	}
	return nil
}

// commentPostgres runs COMMENT ON the objects whose names are PostgreSQL's tree:
// types, domains and their constraints, functions, and what there is none of.
func (s *Session) commentPostgres(d *ddlState, p *prepared, n *pg.CommentStmt, w pgwire.ResultWriter) error {
	list := n.Object.GetList().GetItems()
	switch n.Objtype {
	case pg.ObjectType_OBJECT_TYPE, pg.ObjectType_OBJECT_DOMAIN:
		o, err := s.commentedType(d, p, n.Object.GetTypeName(), n.Objtype == pg.ObjectType_OBJECT_DOMAIN)
		if err != nil {
			return err
		}
		o.Comment = n.Comment
		d.apply(catalog.Change{Put: o})
		return nil
	case pg.ObjectType_OBJECT_DOMCONSTRAINT:
		o, err := s.commentedType(d, p, list[0].GetTypeName(), true)
		if err != nil {
			return err
		}
		name := list[1].GetString_().GetSval()
		at := slices.IndexFunc(o.Def.Checks, func(c types.Check) bool { return c.Name == name })
		if at < 0 {
			return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" for domain %s does not exist", name, typeName(types.Of(types.OID(o.OID))))
		}
		o.Def.Checks[at].Comment = n.Comment
		d.apply(catalog.Change{Put: o})
		return nil
	case pg.ObjectType_OBJECT_FUNCTION, pg.ObjectType_OBJECT_ROUTINE, pg.ObjectType_OBJECT_PROCEDURE, pg.ObjectType_OBJECT_AGGREGATE:
		o, err := s.findRoutine(d, p, n.Objtype, n.Object.GetObjectWithArgs())
		if err != nil {
			return err
		}
		c := *o
		c.Comment = n.Comment
		d.apply(catalog.Change{Put: &c})
		return nil
	case pg.ObjectType_OBJECT_COLUMN:
		return pgerror.New(pgerror.SyntaxError, "column name must be qualified")
	case pg.ObjectType_OBJECT_DATABASE:
		if name := n.Object.GetString_().GetSval(); name != s.database {
			warn(w, pgerror.InvalidCatalogName, "database \""+name+"\" does not exist")
		}
		return nil
	case pg.ObjectType_OBJECT_ROLE:
		if name := n.Object.GetString_().GetSval(); name != s.user {
			return pgerror.New(pgerror.UndefinedObject, "role \"%s\" does not exist", name)
		}
		return nil
	}
	return s.commentOnNone(d, n, list)
}

// commentedType is a copy of the type of COMMENT ON TYPE or DOMAIN.
func (s *Session) commentedType(d *ddlState, p *prepared, t *pg.TypeName, domain bool) (*catalog.Object, error) {
	typ, err := s.typeOf(p, t)
	if err != nil {
		return nil, noPosition(err)
	}
	if info := types.Lookup(typ.OID); domain && (info == nil || info.Kind != 'd') {
		return nil, pgerror.New(pgerror.WrongObjectType, "%s is not a domain", quotedType(typ))
	}
	if o := d.cat.ByOID(uint32(typ.OID)); o == nil || o.Def == nil {
		return nil, pgerror.New(pgerror.InsufficientPrivilege, "permission denied for type %s", typeName(typ))
	}
	return s.changeType(d, t.Names)
}

// quotedType is a type's name as messages quote it.
func quotedType(t types.Type) string { return "\"" + typeName(t) + "\"" }

// commentOnNone is the error of a comment on an object of a kind of which there
// is none here.
func (s *Session) commentOnNone(d *ddlState, n *pg.CommentStmt, list []*pg.Node) error {
	what := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(n.Objtype.String(), "OBJECT_"), "_", " "))
	name := n.Object.GetString_().GetSval()
	switch n.Objtype {
	case pg.ObjectType_OBJECT_TRIGGER, pg.ObjectType_OBJECT_POLICY, pg.ObjectType_OBJECT_RULE:
		on := nodeName(list[:len(list)-1])
		if s.commented(d, on) == nil {
			return s.noRelation(d, on)
		}
		of := "table"
		if n.Objtype == pg.ObjectType_OBJECT_RULE {
			of = "relation"
		}
		return pgerror.New(pgerror.UndefinedObject, "%s \"%s\" for %s \"%s\" does not exist", what, nodeName(list).Name, of, on.Name)
	case pg.ObjectType_OBJECT_FOREIGN_TABLE:
		if on := nodeName(list); s.commented(d, on) == nil {
			return s.noRelation(d, on)
		}
		return pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a foreign table", nodeName(list).Name)
	case pg.ObjectType_OBJECT_EXTENSION, pg.ObjectType_OBJECT_TABLESPACE, pg.ObjectType_OBJECT_PUBLICATION,
		pg.ObjectType_OBJECT_SUBSCRIPTION, pg.ObjectType_OBJECT_EVENT_TRIGGER:
		return pgerror.New(pgerror.UndefinedObject, "%s \"%s\" does not exist", what, name)
	case pg.ObjectType_OBJECT_FDW:
		return pgerror.New(pgerror.UndefinedObject, "foreign-data wrapper \"%s\" does not exist", name)
	case pg.ObjectType_OBJECT_FOREIGN_SERVER:
		return pgerror.New(pgerror.UndefinedObject, "server \"%s\" does not exist", name)
	}
	return pgerror.Unsupported("COMMENT ON " + strings.ToUpper(what))
}
