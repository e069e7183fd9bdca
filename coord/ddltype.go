package coord

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// typeStatement is what runs a statement about types, nil if st is none.
func (s *Session) typeStatement(p *prepared, st *pg.Node, w pgwire.ResultWriter) func(d *ddlState) (string, error) {
	switch n := st.Node.(type) {
	case *pg.Node_CreateEnumStmt:
		return func(d *ddlState) (string, error) { return "CREATE TYPE", s.createEnum(d, n.CreateEnumStmt) }
	case *pg.Node_CompositeTypeStmt:
		return func(d *ddlState) (string, error) { return "CREATE TYPE", s.createComposite(d, p, n.CompositeTypeStmt) }
	case *pg.Node_CreateRangeStmt:
		return func(d *ddlState) (string, error) { return "CREATE TYPE", s.createRange(d, p, n.CreateRangeStmt) }
	case *pg.Node_CreateDomainStmt:
		return func(d *ddlState) (string, error) { return "CREATE DOMAIN", s.createDomain(d, p, n.CreateDomainStmt) }
	case *pg.Node_AlterEnumStmt:
		return func(d *ddlState) (string, error) { return "ALTER TYPE", s.alterEnum(d, n.AlterEnumStmt, w) }
	case *pg.Node_AlterDomainStmt:
		return func(d *ddlState) (string, error) { return "ALTER DOMAIN", s.alterDomain(d, n.AlterDomainStmt, w) }
	case *pg.Node_AlterTableStmt:
		if n.AlterTableStmt.Objtype == pg.ObjectType_OBJECT_TYPE {
			return func(d *ddlState) (string, error) { return "ALTER TYPE", s.alterComposite(d, p, n.AlterTableStmt, w) }
		}
	case *pg.Node_AlterObjectSchemaStmt:
		if k := n.AlterObjectSchemaStmt.ObjectType; k == pg.ObjectType_OBJECT_TYPE || k == pg.ObjectType_OBJECT_DOMAIN {
			return func(d *ddlState) (string, error) {
				return typeTag(k), s.moveType(d, n.AlterObjectSchemaStmt)
			}
		}
	case *pg.Node_AlterOwnerStmt:
		if k := n.AlterOwnerStmt.ObjectType; k == pg.ObjectType_OBJECT_TYPE || k == pg.ObjectType_OBJECT_DOMAIN {
			return func(d *ddlState) (string, error) {
				_, err := s.changeType(d, n.AlterOwnerStmt.Object.GetList().GetItems())
				return typeTag(k), err
			}
		}
	case *pg.Node_RenameStmt:
		switch n.RenameStmt.RenameType {
		case pg.ObjectType_OBJECT_DOMCONSTRAINT:
			return func(d *ddlState) (string, error) { return "ALTER DOMAIN", s.renameDomainConstraint(d, n.RenameStmt) }
		case pg.ObjectType_OBJECT_ATTRIBUTE:
			return func(d *ddlState) (string, error) { return "ALTER TYPE", s.renameAttribute(d, n.RenameStmt) }
		case pg.ObjectType_OBJECT_TYPE:
			return func(d *ddlState) (string, error) { return "ALTER TYPE", s.renameType(d, n.RenameStmt) }
		case pg.ObjectType_OBJECT_DOMAIN:
			return func(d *ddlState) (string, error) { return "ALTER DOMAIN", s.renameType(d, n.RenameStmt) }
		}
	}
	return nil
}

// nodeName is a name of the tree.
func nodeName(list []*pg.Node) parser.Name {
	parts := make([]string, len(list))
	for i, n := range list {
		parts[i] = n.GetString_().GetSval()
	}
	var n parser.Name
	n.Name = parts[len(parts)-1]
	if len(parts) > 1 {
		n.Schema = parts[len(parts)-2]
	}
	if len(parts) > 2 {
		n.Database = parts[len(parts)-3]
	}
	return n
}

func dottedName(n parser.Name) string {
	if n.Schema == "" {
		return n.Name
	}
	return n.Schema + "." + n.Name
}

// putType adds a type of that name. What follows the first OID is left to the
// array, the multirange and its array.
func (s *Session) putType(d *ddlState, n parser.Name, def *types.Definition) error {
	schema, exists, err := s.target(d, catalog.KindType, n)
	if err != nil {
		return err
	}
	if exists != nil {
		return pgerror.New(pgerror.DuplicateObject, "type \"%s\" already exists", n.Name)
	}
	if o := d.cat.Get(catalog.KindTable, schema, n.Name); o != nil && o.Relation() {
		return pgerror.New(pgerror.DuplicateObject, "type \"%s\" already exists", n.Name)
	}
	id, err := s.c.store.AllocateIDs(4)
	if err != nil {
		return diskError(err)
	}
	o := &catalog.Object{ID: plan.ObjectID(id), OID: uint32(firstUserOID + id), Schema: schema, Name: n.Name, Kind: catalog.KindType, Def: def}
	def.Array = types.OID(o.OID + 1)
	if def.Kind == 'r' {
		def.Multirange, def.MultirangeArray = types.OID(o.OID+2), types.OID(o.OID+3)
	}
	d.apply(catalog.Change{Put: o})
	return nil
}

// maxName is the longest name of an object or label.
const maxName = 63

func (s *Session) createEnum(d *ddlState, n *pg.CreateEnumStmt) error {
	var names []string
	for _, v := range n.Vals {
		l := v.GetString_().GetSval()
		if err := checkLabel(l); err != nil {
			return err
		}
		if slices.Contains(names, l) {
			return pgerror.New(pgerror.UniqueViolation, "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"")
		}
		names = append(names, l)
	}
	return s.putType(d, nodeName(n.TypeName), &types.Definition{Kind: 'e', Labels: types.NewLabels(names)})
}

func checkLabel(l string) error {
	if len(l) > maxName {
		return pgerror.New(pgerror.InvalidName, "invalid enum label \"%s\"", l).WithDetail("Labels must be 63 bytes or less.")
	}
	return nil
}

// typeOf resolves a type name of the statement.
func (s *Session) typeOf(p *prepared, t *pg.TypeName) (types.Type, error) {
	base := 0
	if n, ok := p.stmt.Node.(*parser.Postgres); ok {
		base = n.Base
	}
	return planner.ResolveType(s.bindContext(nil), p.stmt.Text, parser.TypeName{Node: t, Base: base})
}

func (s *Session) createComposite(d *ddlState, p *prepared, n *pg.CompositeTypeStmt) error {
	def := &types.Definition{Kind: 'c'}
	for _, c := range n.Coldeflist {
		col := c.GetColumnDef()
		t, err := s.typeOf(p, col.TypeName)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(def.Fields, func(f types.Field) bool { return f.Name == col.Colname }) {
			return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", col.Colname)
		}
		def.Fields = append(def.Fields, types.Field{Name: col.Colname, Type: t})
	}
	return s.putType(d, parser.Name{Schema: n.Typevar.Schemaname, Name: n.Typevar.Relname}, def)
}

func (s *Session) createRange(d *ddlState, p *prepared, n *pg.CreateRangeStmt) error {
	name := nodeName(n.TypeName)
	def := &types.Definition{Kind: 'r', MultirangeName: name.Name + "_multirange"}
	if strings.Contains(name.Name, "range") {
		def.MultirangeName = strings.Replace(name.Name, "range", "multirange", 1)
	}
	for _, o := range n.Params {
		e := o.GetDefElem()
		switch e.Defname {
		case "subtype":
			t, err := s.typeOf(p, e.Arg.GetTypeName())
			if err != nil {
				return noPosition(err)
			}
			if !hasOrder(t) {
				return pgerror.New(pgerror.UndefinedObject, "data type %s has no default operator class for access method \"btree\"", types.Of(t.OID)).
					WithHint("You must specify an operator class for the range type or define a default operator class for the subtype.")
			}
			def.Subtype = t.Storage().OID
		case "multirange_type_name":
			names := e.Arg.GetTypeName().GetNames()
			def.MultirangeName = nodeName(names).Name
		case "subtype_diff", "collation", "subtype_opclass", "canonical":
		default:
			return pgerror.New(pgerror.SyntaxError, "type attribute \"%s\" not recognized", e.Defname)
		}
	}
	if def.Subtype == 0 {
		return pgerror.New(pgerror.SyntaxError, "type attribute \"subtype\" is required")
	}
	return s.putType(d, name, def)
}

func (s *Session) createDomain(d *ddlState, p *prepared, n *pg.CreateDomainStmt) error {
	base, err := s.typeOf(p, n.TypeName)
	if err != nil {
		return err
	}
	name := nodeName(n.Domainname)
	def := &types.Definition{Kind: 'd', Base: base}
	if parent := types.Lookup(base.OID); base.OID.IsDomain() {
		def.Default = parent.Definition.Default
	}
	for _, c := range n.Constraints {
		if _, err := s.domainConstraint(def, name.Name, c.GetConstraint()); err != nil {
			return err
		}
	}
	return s.putType(d, name, def)
}

// changeType resolves a type that a statement changes and gives copies of the
// object and its definition.
func (s *Session) changeType(d *ddlState, list []*pg.Node) (*catalog.Object, error) {
	o, err := s.find(d, parser.ObjectType, nodeName(list))
	if err != nil {
		if r := s.rowTypeOf(d, nodeName(list)); r != nil {
			return nil, pgerror.New(pgerror.WrongObjectType, "%s is a table's row type", r.RowType()).WithHint("Use ALTER TABLE instead.")
		}
		return nil, err
	}
	c, def := *o, *o.Def
	c.Def = &def
	def.Labels, def.Checks = slices.Clone(def.Labels), slices.Clone(def.Checks)
	def.Fields = slices.Clone(def.Fields)
	return &c, nil
}

// alterEnum is ALTER TYPE … ADD VALUE and RENAME VALUE.
func (s *Session) alterEnum(d *ddlState, n *pg.AlterEnumStmt, w pgwire.ResultWriter) error {
	o, err := s.changeType(d, n.TypeName)
	if err != nil {
		return err
	}
	if o.Def.Kind != 'e' {
		return pgerror.New(pgerror.WrongObjectType, "%s is not an enum", o.Name)
	}
	if err := checkLabel(n.NewVal); err != nil {
		return err
	}
	find := func(l string) int {
		return slices.IndexFunc(o.Def.Labels, func(x types.Label) bool { return x.Name == l })
	}
	if n.OldVal != "" {
		at := find(n.OldVal)
		switch {
		case at < 0:
			return pgerror.New(pgerror.InvalidParameterValue, "\"%s\" is not an existing enum label", n.OldVal)
		case find(n.NewVal) >= 0:
			return pgerror.New(pgerror.DuplicateObject, "enum label \"%s\" already exists", n.NewVal)
		}
		o.Def.Labels[at].Name = n.NewVal
		renamed, err := s.labelUsers(d, o, n.OldVal, n.NewVal)
		if err != nil {
			return err
		}
		d.apply(catalog.Change{Put: o})
		d.apply(renamed...)
		return nil
	}
	if find(n.NewVal) >= 0 {
		e := pgerror.New(pgerror.DuplicateObject, "enum label \"%s\" already exists", n.NewVal)
		if n.SkipIfNewValExists {
			e.Severity, e.Message = "NOTICE", e.Message+", skipping"
			w.Notice(e)
			return nil
		}
		return e
	}
	at := len(o.Def.Labels)
	if n.NewValNeighbor != "" {
		if at = find(n.NewValNeighbor); at < 0 {
			return pgerror.New(pgerror.InvalidParameterValue, "\"%s\" is not an existing enum label", n.NewValNeighbor)
		}
		if n.NewValIsAfter {
			at++
		}
	}
	if o.Def.Labels, err = types.InsertLabel(o.Def.Labels, at, n.NewVal); err != nil {
		return err
	}
	d.apply(catalog.Change{Put: o})
	return nil
}

func typeTag(k pg.ObjectType) string {
	if k == pg.ObjectType_OBJECT_DOMAIN {
		return "ALTER DOMAIN"
	}
	return "ALTER TYPE"
}

// moveType runs ALTER TYPE … SET SCHEMA.
func (s *Session) moveType(d *ddlState, n *pg.AlterObjectSchemaStmt) error {
	o, err := s.changeType(d, n.Object.GetList().GetItems())
	if err != nil {
		return err
	}
	if d.cat.Schema(n.Newschema) == nil {
		return pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", n.Newschema)
	}
	if n.Newschema == o.Schema {
		return nil
	}
	if d.cat.Get(catalog.KindType, n.Newschema, o.Name) != nil {
		return pgerror.New(pgerror.DuplicateObject, "type \"%s\" already exists in schema \"%s\"", o.Name, n.Newschema)
	}
	was := d.cat.ByID(o.ID)
	o.Schema = n.Newschema
	return s.typeRenamed(d, was, o)
}

func (s *Session) renameType(d *ddlState, n *pg.RenameStmt) error {
	o, err := s.changeType(d, n.Object.GetList().GetItems())
	if err != nil {
		return err
	}
	if _, exists, err := s.target(d, catalog.KindType, parser.Name{Schema: o.Schema, Name: n.Newname}); err != nil {
		return err
	} else if exists != nil {
		return pgerror.New(pgerror.DuplicateObject, "type \"%s\" already exists", n.Newname)
	}
	was := d.cat.ByID(o.ID)
	o.Name = n.Newname
	return s.typeRenamed(d, was, o)
}

// labelUsers are the changes of what names a label of an enum that is renamed.
func (s *Session) labelUsers(d *ddlState, o *catalog.Object, old, label string) ([]catalog.Change, error) {
	ctx := s.c.bindContext(d.cat)
	var out []catalog.Change
	for _, u := range d.cat.Closure(o.ID) {
		nu := u.Clone()
		var err error
		rename := func(text *string, table *catalog.Object) {
			if err == nil && *text != "" && strings.Contains(*text, parser.QuoteString(old)) {
				*text, err = planner.RenameLabel(ctx, *text, table, types.OID(o.OID), old, label)
			}
		}
		switch {
		case u.Query != "":
			rename(&nu.Query, nil)
			nu.SQL = viewSQL(nu)
		case u.Kind == catalog.KindTable:
			for i := range nu.Columns {
				c := &nu.Columns[i]
				if c.Default == parser.QuoteString(old) {
					if c.Type.OID == types.OID(o.OID) {
						c.Default = parser.QuoteString(label)
					}
				} else {
					rename(&c.Default, u)
				}
				rename(&nu.Columns[i].Generated, u)
			}
			for i := range nu.Checks {
				rename(&nu.Checks[i].Expr, u)
			}
			nu.SQL = tableSQL(d.cat, nu)
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, catalog.Change{Put: nu})
	}
	return out, nil
}

// typeRenamed puts a type under its new name, and names it so in what uses it.
func (s *Session) typeRenamed(d *ddlState, was, o *catalog.Object) error {
	users := d.cat.Users(o.ID)
	d.apply(catalog.Change{Put: o})
	var err error
	rename := func(text *string, query bool) {
		if err == nil && *text != "" {
			*text, err = planner.RenameType(*text, query, was.Schema, was.Name, o.Schema, o.Name)
		}
	}
	for _, u := range users {
		nu := u.Clone()
		switch {
		case u.Query != "":
			rename(&nu.Query, true)
			nu.SQL = viewSQL(nu)
		case u.Function != nil:
			f := *u.Function
			rename(&f.Body, true)
			nu.Function = &f
			nu.SQL = functionSQL(nu)
		case u.Kind == catalog.KindTable:
			for i := range nu.Columns {
				rename(&nu.Columns[i].Default, false)
				rename(&nu.Columns[i].Generated, false)
			}
			for i := range nu.Checks {
				rename(&nu.Checks[i].Expr, false)
			}
			nu.SQL = tableSQL(d.cat, nu)
		default:
			continue
		}
		if err != nil {
			return err
		}
		d.apply(catalog.Change{Put: nu})
	}
	return nil
}
