package coord

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// newTable is a table that is being defined, or given further constraints:
// the objects that come with it are made known to the catalog together.
type newTable struct {
	s    *Session
	d    *ddlState
	text string
	o    *catalog.Object
	with []*catalog.Object // indexes and sequences
}

// serials are the names of the types that stand for a sequence.
var serials = map[string]types.Type{
	"smallserial": types.Int2, "serial2": types.Int2, "serial": types.Int4, "serial4": types.Int4, "bigserial": types.Int8, "serial8": types.Int8,
}

// serialType is the type that serial and its like stand for; false for others.
func serialType(n *pg.TypeName) (types.Type, bool) {
	if n == nil || len(n.Names) != 1 || len(n.ArrayBounds) > 0 {
		return types.Type{}, false
	}
	t, ok := serials[n.Names[0].GetString_().GetSval()]
	return t, ok
}

// column makes a column of its definition, without what needs its table.
func (s *Session) column(text, table string, def *parser.ColumnDef) (catalog.Column, error) {
	col := catalog.Column{Name: def.Name, NotNull: def.NotNull || def.PrimaryKey}
	if err := notSystemColumn(def.Name); err != nil {
		return col, err
	}
	t, serial := serialType(def.Type.Node)
	if !serial {
		var err error
		if t, err = planner.ResolveType(s.bindContext(nil), text, def.Type); err != nil {
			return col, err
		}
	}
	col.Type = t
	if err := columnClauses(def, table, serial); err != nil {
		return col, err
	}
	var err error
	if col.Collation, err = columnCollation(def.Collation, t); err != nil {
		return col, err
	}
	switch {
	case def.Default != nil:
		if _, err := s.bindDefault(text, def.Default, def.Name, t); err != nil {
			return col, err
		}
		col.Default = s.fixed(def.Default.SQL, nil, t)
	case def.Identity != "":
		if t.OID != types.OIDInt2 && t.OID != types.OIDInt4 && t.OID != types.OIDInt8 {
			return col, pgerror.New(pgerror.InvalidParameterValue, "identity column type must be smallint, integer, or bigint")
		}
		col.Identity, col.NotNull = def.Identity, true
	case def.Generated != nil:
		col.Generated = def.Generated.SQL
	}
	col.NotNull = col.NotNull || serial
	return col, nil
}

// columnClauses refuses clauses of a column that do not go together. A serial column has
// a default and NOT NULL after those that are written.
func columnClauses(def *parser.ColumnDef, table string, serial bool) error {
	c := def.Conflict
	switch {
	case c != nil:
	case serial && def.Default != nil:
		c = &parser.ClauseConflict{Message: "multiple default values specified"}
	case serial && def.Identity != "":
		c = &parser.ClauseConflict{Message: "both default and identity specified"}
	case serial && def.Generated != nil:
		c = &parser.ClauseConflict{Message: "both default and generation expression specified"}
	case serial && def.Null:
		c = &parser.ClauseConflict{Message: "conflicting NULL/NOT NULL declarations"}
	default:
		return nil
	}
	return pgerror.New(pgerror.SyntaxError, "%s for column \"%s\" of table \"%s\"", c.Message, def.Name, table).At(c.Pos)
}

// bindAs binds an expression of a table's definition as a value of a type.
// mismatch is the error of one of another type.
func (s *Session) bindAs(text string, e *parser.Expr, o *catalog.Object, context string, t types.Type, mismatch func(of types.Type) error) (expr.Expr, error) {
	v, err := planner.BindExpr(s.bindContext(nil), text, e, o, context, t)
	if err == nil {
		return v, expr.CheckTimedLiterals(v, s.exprContext())
	}
	if pgerror.As(err).Code != pgerror.DatatypeMismatch {
		return v, err
	}
	if v, err = planner.BindExpr(s.bindContext(nil), text, e, o, context, types.Unknown); err != nil {
		return nil, err
	}
	return nil, mismatch(v.Type())
}

// bindDefault binds the expression of a DEFAULT.
func (s *Session) bindDefault(text string, e *parser.Expr, column string, t types.Type) (expr.Expr, error) {
	return s.bindAs(text, e, nil, "DEFAULT expressions", t, func(of types.Type) error { return defaultMismatch(column, t, of) })
}

// fixed is the text of an expression of a table's definition, of which dates and times
// mean the same to all sessions.
func (s *Session) fixed(text string, o *catalog.Object, t types.Type) string {
	return planner.FixExpr(s.bindContext(nil), text, o, t)
}

// notSystemColumn refuses the names of the columns that every table has.
func notSystemColumn(name string) error {
	switch name {
	case "ctid", "xmin", "cmin", "xmax", "cmax", "tableoid":
		return pgerror.New(pgerror.DuplicateColumn, "column name \"%s\" conflicts with a system column name", name)
	}
	return nil
}

func defaultMismatch(column string, t, of types.Type) error {
	return pgerror.New(pgerror.DatatypeMismatch, "column \"%s\" is of type %s but default expression is of type %s", column, types.Of(t.OID), types.Of(of.OID)).
		WithHint("You will need to rewrite or cast the expression.")
}

// columnCollation is the collation that a column of type t is given, "" for that of the type.
func columnCollation(name string, t types.Type) (string, error) {
	switch i := types.Lookup(t.Storage().OID); {
	case name == "":
		return "", nil
	case i != nil && i.Collation == 0:
		return "", pgerror.New(pgerror.DatatypeMismatch, "collations are not supported by type %s", t.OID)
	case !collationC(name):
		return "", pgerror.Unsupported("collation \"" + name + "\"")
	case strings.EqualFold(name, "default"):
		return "", nil
	}
	return name, nil
}

func collationC(name string) bool {
	switch strings.ToLower(name) {
	case "c", "posix", "default", "ucs_basic", "c.utf8":
		return true
	}
	return false
}

// define fills in the columns and constraints of a new table.
func (n *newTable) define(def *parser.CreateTable) error {
	o := n.o
	var constraints []parser.Constraint
	likes := def.Like
	for i := 0; i <= len(def.Columns); i++ {
		for len(likes) > 0 && likes[0].After == i {
			if err := n.like(&likes[0]); err != nil {
				return err
			}
			likes = likes[1:]
		}
		if i == len(def.Columns) {
			break
		}
		c := &def.Columns[i]
		col, err := n.s.column(n.text, n.o.Name, c)
		if err != nil {
			return err
		}
		if o.Column(col.Name) >= 0 {
			return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", col.Name)
		}
		o.Columns = append(o.Columns, col)
		constraints = append(constraints, c.Keys...)
		constraints = append(constraints, c.Checks...)
		constraints = append(constraints, c.References...)
	}
	if len(o.Columns) > 1600 {
		return pgerror.New(pgerror.TooManyColumns, "tables can have at most 1600 columns")
	}
	for i := range def.Columns {
		if err := n.columnRules(&def.Columns[i]); err != nil {
			return err
		}
	}
	constraints = append(constraints, def.Constraints...)
	// Keys come first, as foreign keys may refer to them.
	for _, foreign := range []bool{false, true} {
		for i := range constraints {
			if (constraints[i].Kind == parser.ConstraintForeignKey) == foreign {
				if err := n.constraint(&constraints[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// columnRules adds what a column's definition says beyond the column: the
// sequence of serial and identity columns, and checks what generates it.
func (n *newTable) columnRules(def *parser.ColumnDef) error {
	i := n.o.Column(def.Name)
	col := &n.o.Columns[i]
	_, serial := serialType(def.Type.Node)
	if serial || def.Identity != "" {
		return n.sequenceFor(i, def.SequenceOptions)
	}
	if def.Generated == nil {
		return nil
	}
	_, err := n.s.bindGenerated(n.text, def.Generated, n.o, col)
	return err
}

// bindGenerated binds the expression of a generated column.
func (s *Session) bindGenerated(text string, g *parser.Expr, o *catalog.Object, col *catalog.Column) (expr.Expr, error) {
	e, err := s.bindAs(text, g, o, "column generation expressions", col.Type, func(of types.Type) error { return defaultMismatch(col.Name, col.Type, of) })
	if err == nil {
		e, err = expr.FoldLiterals(e, s.exprContext())
	}
	if err != nil {
		return nil, err
	}
	if expr.VolatilityOf(e) != expr.Immutable {
		return nil, pgerror.New(pgerror.InvalidObjectDefinition, "generation expression is not immutable")
	}
	var failed error
	expr.Walk(e, func(x expr.Expr) bool {
		if c, ok := x.(*expr.Column); ok && c.Index < len(o.Columns) && o.Columns[c.Index].Generated != "" {
			failed = pgerror.New(pgerror.InvalidObjectDefinition, "cannot use generated column \"%s\" in column generation expression", o.Columns[c.Index].Name).
				WithDetail("A generated column cannot reference another generated column.").At(c.Pos)
		}
		return failed == nil
	})
	return e, failed
}

// sequenceFor gives a column a sequence of its own.
func (n *newTable) sequenceFor(i int, opts []*pg.Node) error {
	col := &n.o.Columns[i]
	seq := &catalog.Sequence{Type: col.Type, Table: n.o.ID, Column: col.Name, Identity: col.Identity != ""}
	name := n.freeName(n.o.Name, col.Name, "seq")
	schema := n.o.Schema
	var rest []*pg.Node
	for _, x := range opts {
		if d := x.GetDefElem(); d.GetDefname() == "sequence_name" {
			l := listStrings(d.GetArg().GetList().GetItems())
			if name = l[len(l)-1]; len(l) > 1 {
				schema = l[len(l)-2]
			}
			continue
		}
		rest = append(rest, x)
	}
	if _, err := sequenceOptions(seq, rest, true); err != nil {
		return err
	}
	o, err := n.s.newSequence(&catalog.Object{Schema: schema, Name: name, Kind: catalog.KindSequence, Sequence: seq, Temporary: n.o.Temporary})
	if err != nil {
		return err
	}
	n.with = append(n.with, o)
	n.o.Deps = append(n.o.Deps, o.ID)
	col.Default = nextvalSQL(o)
	return nil
}

// freeName makes a name for an object of the table that no relation has.
func (n *newTable) freeName(a, b, label string) string {
	for i := 0; ; i++ {
		l := label
		if i > 0 {
			l = fmt.Sprint(label, i)
		}
		name := catalog.ObjectName(a, b, l)
		if !n.taken(name) {
			return name
		}
	}
}

// taken reports whether a name is in use for a relation of the table's schema.
func (n *newTable) taken(name string) bool {
	if n.d.cat.Get(catalog.KindTable, n.o.Schema, name) != nil || n.o.Name == name {
		return true
	}
	if n.o.Primary != nil && n.o.Primary.Name == name {
		return true
	}
	if n.d.cat.PrimaryNamed(n.o.Schema, name) != nil {
		return true
	}
	return slices.ContainsFunc(n.with, func(o *catalog.Object) bool { return o.Name == name })
}

func listStrings(l []*pg.Node) []string {
	var out []string
	for _, x := range l {
		out = append(out, x.GetString_().GetSval())
	}
	return out
}

func (s *Session) createTable(d *ddlState, p *prepared, n *parser.CreateTable, w pgwire.ResultWriter) error {
	schema, exists, err := s.targetIn(d, catalog.KindTable, n.Name, n.Temp)
	if err != nil {
		return err
	}
	if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
		return err
	}
	if n.OnCommit != "" && schema != s.tempSchema {
		return pgerror.New(pgerror.InvalidTableDefinition, "ON COMMIT can only be used on temporary tables")
	}
	o := &catalog.Object{Schema: schema, Name: n.Name.Name, Kind: catalog.KindTable, AppendOnly: n.AppendOnly,
		Temporary: schema == s.tempSchema, OnCommit: n.OnCommit, OnConflict: n.OnConflict, Config: s.newJobConfig()}
	if o, err = s.c.newObject(o); err != nil {
		return err
	}
	t := &newTable{s: s, d: d, text: p.stmt.Text, o: o}
	if err := t.define(n); err != nil {
		return err
	}
	if n.OnConflict != "" && o.PrimaryKey == nil {
		return pgerror.New(pgerror.InvalidTableDefinition, "ON CONFLICT of a table needs a primary key")
	}
	if n.OnConflict != "" && n.OnConflict != catalog.ConflictIgnore && n.AppendOnly {
		return pgerror.New(pgerror.InvalidTableDefinition, "an append-only table can only ignore conflicts")
	}
	if err := versionColumns(o, n); err != nil {
		return err
	}
	t.put()
	for i := range n.Like {
		if err := t.likeIndexes(&n.Like[i], w); err != nil {
			return err
		}
	}
	s.onCommit = s.onCommit || n.OnCommit != ""
	return nil
}

// versionColumns takes over WITH VERSION COLUMN.
func versionColumns(o *catalog.Object, n *parser.CreateTable) error {
	if n.Version != nil && n.OnConflict == catalog.ConflictIgnore {
		return pgerror.New(pgerror.InvalidTableDefinition, "a version column needs ON CONFLICT OVERWRITE or DO UPDATE IF NOT NULL")
	}
	for _, name := range n.Version {
		c := o.Column(name)
		switch {
		case c < 0:
			return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" named as version column does not exist", name)
		case slices.Contains(o.PrimaryKey, c):
			return pgerror.New(pgerror.InvalidTableDefinition, "column \"%s\" of the primary key cannot be a version column", name)
		case slices.Contains(o.Version, c):
			return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" appears twice among the version columns", name)
		}
		o.Version = append(o.Version, c)
	}
	return nil
}

// known makes new sequences known, as defaults look them up by name.
func (n *newTable) known() {
	n.with = slices.DeleteFunc(n.with, func(x *catalog.Object) bool {
		if x.Kind == catalog.KindSequence {
			n.d.apply(catalog.Change{Put: x})
			return true
		}
		return false
	})
}

// linkSequences notes the sequences that the defaults of columns take values
// from. A default that is just nextval names its sequence with the schema.
func (n *newTable) linkSequences() {
	n.o.Deps = slices.DeleteFunc(n.o.Deps, func(d plan.ObjectID) bool {
		o := n.d.cat.ByID(d)
		return o == nil || o.Kind == catalog.KindSequence || o.Kind == catalog.KindFunction || o.Kind == catalog.KindType
	})
	n.linkExpressions()
	for i := range n.o.Columns {
		c := &n.o.Columns[i]
		if !strings.Contains(strings.ToLower(c.Default), "nextval") {
			continue
		}
		e, err := n.s.defaultExpr(c, true)
		if err != nil {
			continue // it names no sequence by a literal
		}
		expr.Walk(e, func(x expr.Expr) bool {
			k, ok := x.(*expr.Const)
			if !ok || k.Typ.OID != types.OIDRegclass || k.Val.Null(0) {
				return true
			}
			if o := n.d.cat.ByOID(uint32(k.Val.Int64s()[0])); o != nil && o.Kind == catalog.KindSequence {
				if !slices.Contains(n.o.Deps, o.ID) {
					n.o.Deps = append(n.o.Deps, o.ID)
				}
				if plainNextval(c.Default) {
					c.Default = nextvalSQL(o)
				}
			}
			return true
		})
	}
}

// linkExpressions notes the functions and types that the table's expressions
// name, and names them with their schemas.
func (n *newTable) linkExpressions() {
	ctx := n.s.bindContext(nil)
	link := func(text *string) {
		if *text == "" {
			return
		}
		deps, err := planner.ExprDeps(ctx, *text, n.o)
		if err != nil {
			return // a sequence that does not exist, told when it is used
		}
		for _, id := range deps {
			if id != n.o.ID && !slices.Contains(n.o.Deps, id) {
				n.o.Deps = append(n.o.Deps, id)
			}
		}
		if len(deps) == 0 {
			return
		}
		if q, err := planner.QualifyExpr(ctx, *text); err == nil {
			*text = q
		}
	}
	for i := range n.o.Columns {
		c := &n.o.Columns[i]
		if c.Generated != "" {
			c.Generated = n.s.fixed(c.Generated, n.o, c.Type)
		}
		link(&c.Default)
		link(&c.Generated)
	}
	for i := range n.o.Checks {
		n.o.Checks[i].Expr = n.s.fixed(n.o.Checks[i].Expr, n.o, types.Bool)
		link(&n.o.Checks[i].Expr)
	}
}

// plainNextval reports whether a default is just a call of nextval with a literal.
func plainNextval(text string) bool {
	x, err := parser.ParseExpr(text)
	if err != nil {
		return false
	}
	f := x.Node.GetFuncCall()
	if f == nil || len(f.Args) != 1 {
		return false
	}
	arg := f.Args[0]
	if t := arg.GetTypeCast(); t != nil {
		arg = t.Arg
	}
	return arg.GetAConst() != nil
}

// put makes the table and what came with it known to the transaction's catalog.
func (n *newTable) put() {
	n.known()
	n.linkSequences()
	n.o.SQL = tableSQL(n.d.cat, n.o)
	n.d.apply(catalog.Change{Put: n.o})
	for _, x := range n.with {
		n.d.apply(catalog.Change{Put: x})
	}
	for _, u := range n.d.cat.Users(n.o.ID) { // indexes have its columns
		if u.Kind == catalog.KindIndex && u.Table == n.o.ID {
			nu := *u
			nu.Columns = n.o.Columns
			n.s.retypeIndex(n.o, &nu)
			nu.SQL = indexSQL(n.o, &nu)
			n.d.apply(catalog.Change{Put: &nu})
		}
	}
}
