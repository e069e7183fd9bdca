package coord

import (
	"context"
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/types"
)

// notForDomains are the constraints that only tables have.
var notForDomains = map[pg.ConstrType]string{
	pg.ConstrType_CONSTR_PRIMARY: "primary key constraints not possible for domains", pg.ConstrType_CONSTR_UNIQUE: "unique constraints not possible for domains",
	pg.ConstrType_CONSTR_EXCLUSION: "exclusion constraints not possible for domains", pg.ConstrType_CONSTR_FOREIGN: "foreign key constraints not possible for domains",
	pg.ConstrType_CONSTR_GENERATED: "specifying GENERATED not supported for domains", pg.ConstrType_CONSTR_IDENTITY: "specifying GENERATED not supported for domains",
}

// domainConstraint adds a constraint, or the default, to a domain. check is the
// condition of a CHECK.
func (s *Session) domainConstraint(def *types.Definition, domain string, c *pg.Constraint) (check expr.Expr, err error) {
	switch c.Contype {
	case pg.ConstrType_CONSTR_NOTNULL:
		def.NotNull = true
	case pg.ConstrType_CONSTR_NULL:
		if def.NotNull {
			return nil, pgerror.New(pgerror.SyntaxError, "conflicting NULL/NOT NULL constraints")
		}
	case pg.ConstrType_CONSTR_DEFAULT:
		return nil, s.domainDefault(def, domain, c.RawExpr)
	case pg.ConstrType_CONSTR_CHECK:
		sql, err := parser.PrintExpr(c.RawExpr)
		if err != nil {
			return nil, err
		}
		value := &catalog.Object{Kind: catalog.KindTable, Columns: []catalog.Column{{Name: "value", Type: def.Base.Storage()}}}
		sql = s.fixed(sql, value, types.Bool)
		if check, err = expr.BindDomainCheck(sql, def.Base.Storage()); err == nil {
			err = expr.CheckTimedLiterals(check, s.exprContext())
		}
		if err != nil {
			return nil, noPosition(err)
		}
		name := c.Conname
		taken := func(n string) bool {
			return slices.ContainsFunc(def.Checks, func(c types.Check) bool { return c.Name == n })
		}
		if name == "" {
			name = domain + "_check"
			for i := 1; taken(name); i++ {
				name = fmt.Sprintf("%s_check%d", domain, i)
			}
		} else if taken(name) {
			return nil, pgerror.New(pgerror.DuplicateObject, "constraint \"%s\" for domain \"%s\" already exists", name, domain)
		}
		def.Checks = append(def.Checks, types.Check{Name: name, Expr: sql, NotValid: c.SkipValidation})
	default:
		if what := notForDomains[c.Contype]; what != "" {
			return nil, pgerror.New(pgerror.SyntaxError, "%s", what)
		}
		return nil, pgerror.New(pgerror.FeatureNotSupported, "specifying constraint deferrability not supported for domains")
	}
	return check, nil
}

// noPosition is an error without its place: in a text that the client did not send.
func noPosition(err error) error {
	e := *pgerror.As(err)
	e.Pos = 0
	return &e
}

// domainDefault sets the default of a domain, nil for none.
func (s *Session) domainDefault(def *types.Definition, domain string, n *pg.Node) error {
	def.Default = ""
	if n == nil || n.GetAConst().GetIsnull() {
		return nil
	}
	sql, err := parser.PrintExpr(n)
	if err != nil {
		return err
	}
	x, err := parser.ParseExpr(sql)
	if err != nil {
		return err
	}
	if _, err := s.bindDefault(sql, &x, domain, types.Type{OID: def.Base.Storage().OID, Mod: def.Base.Storage().Mod}); err != nil {
		return noPosition(err)
	}
	def.Default = s.fixed(sql, nil, def.Base.Storage())
	return nil
}

// alterDomain is ALTER DOMAIN. What the domain demands anew is checked against
// the rows of the tables whose columns are of it.
func (s *Session) alterDomain(d *ddlState, n *pg.AlterDomainStmt, w pgwire.ResultWriter) error {
	o, err := s.changeType(d, n.TypeName)
	if err != nil {
		return err
	}
	if o.Def.Kind != 'd' {
		return pgerror.New(pgerror.WrongObjectType, "%s is not a domain", o.Name)
	}
	named := func() int {
		return slices.IndexFunc(o.Def.Checks, func(c types.Check) bool { return c.Name == n.Name })
	}
	switch n.Subtype {
	case "T":
		err = s.domainDefault(o.Def, o.Name, n.Def)
	case "N":
		o.Def.NotNull = false
	case "O":
		o.Def.NotNull = true
		err = s.domainRows(d, o, nil)
	case "C":
		var check expr.Expr
		if check, err = s.domainConstraint(o.Def, o.Name, n.Def.GetConstraint()); err == nil && check != nil && !n.Def.GetConstraint().SkipValidation {
			err = s.domainRows(d, o, check)
		}
	case "X":
		at := named()
		if at < 0 {
			err := pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" of domain \"%s\" does not exist", n.Name, o.Name)
			if n.MissingOk {
				err.Severity, err.Code, err.Message = "NOTICE", pgerror.SuccessfulCompletion, err.Message+", skipping"
				w.Notice(err)
				return nil
			}
			return err
		}
		o.Def.Checks = slices.Delete(o.Def.Checks, at, at+1)
	case "V":
		at := named()
		if at < 0 {
			return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" of domain \"%s\" does not exist", n.Name, o.Name)
		}
		if !o.Def.Checks[at].NotValid {
			return nil
		}
		o.Def.Checks[at].NotValid = false
		check, e := expr.BindDomainCheck(o.Def.Checks[at].Expr, o.Def.Base.Storage())
		if err = e; err == nil {
			err = s.domainRows(d, o, check)
		}
	}
	if err != nil {
		return err
	}
	d.apply(catalog.Change{Put: o})
	s.rebuildUsers(d, o)
	return nil
}

// rebuildUsers lets the materialized views that use a type, not through the rows
// of a table, be computed anew.
func (s *Session) rebuildUsers(d *ddlState, o *catalog.Object) {
	for _, u := range d.cat.Users(o.ID) {
		if u.Kind == catalog.KindTable || u.Kind == catalog.KindSource {
			continue
		}
		for _, v := range d.cat.Closure(u.ID) {
			if v.Maintained() {
				d.rebuilt[v.ID] = true
			}
		}
	}
}

// column of a table.
type tableColumn struct {
	table *catalog.Object
	col   int
}

// columnsOfType are the columns of tables that are of a type, or of a domain over
// it. within is one that has it as a part of its type: an array, a range or a
// composite type; by is the type of which that is so.
func columnsOfType(cat *catalog.Snapshot, o *catalog.Object) (is []tableColumn, within *tableColumn, by *catalog.Object) {
	for _, u := range cat.Users(o.ID) {
		if u.Def != nil {
			more, in, b := columnsOfType(cat, u)
			if u.Def.Kind == 'd' && u.Def.Base.OID == types.OID(o.OID) {
				is = append(is, more...)
			} else if len(more) > 0 && within == nil {
				within, by = &more[0], o
			}
			if within == nil {
				if within, by = in, b; u.Def.Kind != 'd' && in != nil {
					by = o
				}
			}
			continue
		}
		if u.Kind != catalog.KindTable {
			continue
		}
		for i, c := range u.Columns {
			info := types.Lookup(c.Type.OID)
			switch {
			case c.Type.OID == types.OID(o.OID):
				is = append(is, tableColumn{u, i})
			case info != nil && within == nil && slices.ContainsFunc(types.UserDefined(types.OID(o.OID)), func(x *types.Info) bool { return x.OID == c.Type.OID }):
				within, by = &tableColumn{u, i}, o
			}
		}
	}
	return is, within, by
}

func typeUsedBy(by *catalog.Object, c *tableColumn) error {
	return pgerror.New(pgerror.FeatureNotSupported, "cannot alter type \"%s\" because column \"%s.%s\" uses it", by.Name, c.table.Name, c.table.Columns[c.col].Name)
}

// domainRows checks the rows of tables against what a domain demands anew: a
// condition, or if that is nil that values are not NULL.
func (s *Session) domainRows(d *ddlState, o *catalog.Object, check expr.Expr) error {
	cols, within, by := columnsOfType(d.cat, o)
	if within != nil {
		return typeUsedBy(by, within)
	}
	var prog *expr.Program
	if check != nil {
		var err error
		if prog, err = expr.Compile(expr.MapFilterProject{Outputs: []expr.Expr{check}}); err != nil {
			return err
		}
	}
	for _, c := range cols {
		if err := s.lockForm(s.ctx, c.table.ID, true); err != nil {
			return err
		}
		if err := s.lock(s.ctx, c.table, true); err != nil {
			return err
		}
		rows, err := s.presentRows(c.table)
		if err != nil {
			return err
		}
		name := c.table.Columns[c.col].Name
		for _, r := range rows {
			v := r.Cols[c.col]
			if prog == nil {
				if hasNullIn(v, r.N) {
					return pgerror.New(pgerror.NotNullViolation, "column \"%s\" of table \"%s\" contains null values", name, c.table.Name)
				}
				continue
			}
			out, _, errs := prog.Apply(s.exprContext(), &columnar.Batch{Cols: []*columnar.Vec{v}, N: r.N}, nil)
			if len(errs) > 0 {
				return errs[0].Err
			}
			ok := out.Cols[0].Bools()
			for i := range out.N {
				if !ok[i] && !out.Cols[0].Null(i) {
					return pgerror.New(pgerror.CheckViolation, "column \"%s\" of table \"%s\" contains values that violate the new constraint", name, c.table.Name)
				}
			}
		}
	}
	return nil
}

func (s *Session) renameDomainConstraint(d *ddlState, n *pg.RenameStmt) error {
	o, err := s.changeType(d, n.Object.GetList().GetItems())
	if err != nil {
		return err
	}
	find := func(name string) int {
		return slices.IndexFunc(o.Def.Checks, func(c types.Check) bool { return c.Name == name })
	}
	at := find(n.Subname)
	switch {
	case at < 0:
		return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" for domain %s does not exist", n.Subname, o.Name)
	case find(n.Newname) >= 0:
		return pgerror.New(pgerror.DuplicateObject, "constraint \"%s\" for domain %s already exists", n.Newname, o.Name)
	}
	o.Def.Checks[at].Name = n.Newname
	d.apply(catalog.Change{Put: o})
	return nil
}

// composite is a composite type that a statement changes.
func (s *Session) composite(d *ddlState, name parser.Name) (*catalog.Object, error) {
	o, err := s.find(d, parser.ObjectType, name)
	if err != nil {
		if r := s.rowTypeOf(d, name); r != nil {
			return nil, pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a composite type", r.Name)
		}
		if pgerror.As(err).Code == pgerror.UndefinedObject {
			return nil, undefinedRelation(name.Schema, name.Name)
		}
		return nil, err
	}
	if o.Def.Kind != 'c' {
		return nil, pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a composite type", o.Name)
	}
	c, def := *o, *o.Def
	def.Fields = slices.Clone(def.Fields)
	c.Def = &def
	return &c, nil
}

func attribute(o *catalog.Object, name string) int {
	return slices.IndexFunc(o.Def.Fields, func(f types.Field) bool { return f.Name == name })
}

func noAttribute(o *catalog.Object, name string) *pgerror.Error {
	return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, o.Name)
}

func (s *Session) renameAttribute(d *ddlState, n *pg.RenameStmt) error {
	o, err := s.composite(d, parser.Name{Schema: n.Relation.Schemaname, Name: n.Relation.Relname})
	if err != nil {
		return err
	}
	at := attribute(o, n.Subname)
	switch {
	case at < 0:
		return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" does not exist", n.Subname)
	case attribute(o, n.Newname) >= 0:
		return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", n.Newname, o.Name)
	}
	ctx := s.c.bindContext(d.cat)
	changes := []catalog.Change{{Put: o}}
	for _, u := range d.cat.Closure(o.ID) {
		if u.Query == "" {
			continue
		}
		v := u.Clone()
		if v.Query, err = planner.RenameAttribute(ctx, u.Query, types.OID(o.OID), n.Subname, n.Newname); err != nil {
			return err
		}
		v.SQL = viewSQL(v)
		changes = append(changes, catalog.Change{Put: v})
	}
	o.Def.Fields[at].Name = n.Newname
	for _, c := range changes {
		d.apply(c)
	}
	s.rebuildViews(d, o.ID)
	return nil
}

// alterComposite runs ALTER TYPE … ADD, DROP and ALTER ATTRIBUTE.
func (s *Session) alterComposite(d *ddlState, p *prepared, n *pg.AlterTableStmt, w pgwire.ResultWriter) error {
	o, err := s.composite(d, parser.Name{Schema: n.Relation.Schemaname, Name: n.Relation.Relname})
	if err != nil {
		return err
	}
	from := make([]int, len(o.Def.Fields)) // where each attribute was, -1: nowhere
	for i := range from {
		from[i] = i
	}
	// PostgreSQL's phases: what is dropped, what changes its type, what is added.
	for _, phase := range []pg.AlterTableType{pg.AlterTableType_AT_DropColumn, pg.AlterTableType_AT_AlterColumnType, pg.AlterTableType_AT_AddColumn} {
		for _, x := range n.Cmds {
			c := x.GetAlterTableCmd()
			if c.Subtype != phase {
				continue
			}
			switch phase {
			case pg.AlterTableType_AT_AddColumn:
				def := c.Def.GetColumnDef()
				t, err := s.typeOf(p, def.TypeName)
				if err != nil {
					return err
				}
				if attribute(o, def.Colname) >= 0 {
					return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", def.Colname, o.Name)
				}
				if err := notWithinItself(o, t); err != nil {
					return err
				}
				o.Def.Fields = append(o.Def.Fields, types.Field{Name: def.Colname, Type: t})
				from = append(from, -1)
			case pg.AlterTableType_AT_DropColumn:
				at := attribute(o, c.Name)
				if at < 0 {
					e := noAttribute(o, c.Name)
					if !c.MissingOk {
						return e
					}
					e.Severity, e.Code, e.Message = "NOTICE", pgerror.SuccessfulCompletion, e.Message+", skipping"
					w.Notice(e)
					continue
				}
				o.Def.Fields, from = slices.Delete(o.Def.Fields, at, at+1), slices.Delete(from, at, at+1)
			default:
				at := attribute(o, c.Name)
				if at < 0 {
					return noAttribute(o, c.Name)
				}
				t, err := s.typeOf(p, c.Def.GetColumnDef().GetTypeName())
				if err != nil {
					return err
				}
				if is := columnsContaining(d.cat, o); len(is) > 0 {
					return typeUsedBy(o, &is[0])
				}
				if err := notWithinItself(o, t); err != nil {
					return err
				}
				o.Def.Fields[at].Type = t
			}
		}
	}
	cascade := slices.ContainsFunc(n.Cmds, func(x *pg.Node) bool { return x.GetAlterTableCmd().Behavior == pg.DropBehavior_DROP_CASCADE })
	return s.reshape(d, o, from, cascade, w)
}

// removeAttributes takes attributes from a composite type.
func (s *Session) removeAttributes(d *ddlState, o *catalog.Object, gone []int) error {
	c, def := *o, *o.Def
	def.Fields = nil
	var from []int
	for i, f := range o.Def.Fields {
		if !slices.Contains(gone, i) {
			def.Fields, from = append(def.Fields, f), append(from, i)
		}
	}
	c.Def = &def
	return s.reshape(d, &c, from, true, &countingWriter{})
}

// reshape puts the new form of a composite type: the values that columns of
// tables have are written anew, each attribute from where it was (-1: NULL). The
// views that use an attribute that is gone go with it, if cascade says so.
func (s *Session) reshape(d *ddlState, o *catalog.Object, from []int, cascade bool, w pgwire.ResultWriter) error {
	was := d.cat.ByID(o.ID)
	d.apply(catalog.Change{Put: o})
	if err := s.reshapedViews(d, was, o, cascade, w); err != nil {
		d.apply(catalog.Change{Put: was})
		return err
	}
	if err := s.reshapeValues(d, o, &types.Reshape{Type: types.OID(o.OID), From: from, Fields: o.Def.Fields}); err != nil {
		return err
	}
	s.rebuildViews(d, o.ID)
	return nil
}

// reshapedViews sees to the views that use a composite type with new attributes:
// one whose definition has lost its meaning is dropped with what it used, or is why
// the type cannot change.
func (s *Session) reshapedViews(d *ddlState, was, o *catalog.Object, cascade bool, w pgwire.ResultWriter) error {
	var broken []*catalog.Object
	for _, u := range d.cat.Closure(o.ID) {
		if u.Query != "" && !s.sameColumns(d, u) {
			broken = append(broken, u)
		}
	}
	if len(broken) == 0 {
		return nil
	}
	var gone, changed string
	for _, f := range was.Def.Fields {
		if at := attribute(o, f.Name); at < 0 {
			gone = f.Name
		} else if o.Def.Fields[at].Type != f.Type {
			changed = f.Name
		}
	}
	what := fmt.Sprintf("column %s of composite type %s", gone, o.Name)
	lines := make([]string, len(broken))
	for i, v := range broken {
		lines[i] = fmt.Sprintf("%s %s depends on %s", v.Kind, v.Name, what)
	}
	switch {
	case gone == "" && changed != "":
		return usedByView(broken[0], changed)
	case gone == "":
		return pgerror.Unsupported(fmt.Sprintf("changing a type whose attributes %s %s takes all", broken[0].Kind, broken[0].Name))
	case !cascade:
		return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", what).
			WithDetail("%s", strings.Join(lines, "\n")).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	for i, v := range broken {
		lines[i] = fmt.Sprintf("drop cascades to %s %s", v.Kind, v.Name)
	}
	e := &pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: lines[0]}
	if len(lines) > 1 {
		e.Message, e.Detail = fmt.Sprintf("drop cascades to %d other objects", len(lines)), strings.Join(lines, "\n")
	}
	w.Notice(e)
	return s.dropAll(d, true, broken, nil, "", &countingWriter{})
}

// sameColumns reports whether the definition of a view still gives its columns.
func (s *Session) sameColumns(d *ddlState, v *catalog.Object) bool {
	query, err := parser.ParseQuery(v.Query)
	if err != nil {
		return false
	}
	q, err := planner.BindQuery(s.c.bindContext(d.cat), v.Query, &query)
	if err != nil || len(q.Columns) != len(v.Columns) {
		return false
	}
	for i, c := range v.Columns {
		if t := q.Columns[i].Declared(); t != c.Type && !(t.OID == types.OIDUnknown && c.Type == types.Text) {
			return false
		}
	}
	return true
}

// lockAlter takes the locks of a statement that changes the form of a table.
func (s *Session) lockAlter(ctx context.Context, t *catalog.Object) error {
	if err := s.lockForm(ctx, t.ID, true); err != nil {
		return err
	}
	return s.lock(ctx, t, true)
}
