package parser

import (
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// objectKinds are the spellings of the kinds that DROP, ALTER, SHOW CREATE and
// COMMENT know, the longest first.
var objectKinds = []struct {
	words []string
	kind  ObjectKind
}{
	{[]string{"materialized", "view"}, ObjectMaterializedView},
	{[]string{"table"}, ObjectTable},
	{[]string{"source"}, ObjectSource},
	{[]string{"view"}, ObjectView},
	{[]string{"index"}, ObjectIndex},
	{[]string{"connection"}, ObjectConnection},
	{[]string{"secret"}, ObjectSecret},
	{[]string{"sink"}, ObjectSink},
	{[]string{"cluster"}, ObjectCluster},
	{[]string{"schema"}, ObjectSchema},
	{[]string{"database"}, ObjectDatabase},
	{[]string{"role"}, ObjectRole},
	{[]string{"user"}, ObjectRole},
	{[]string{"type"}, ObjectType},
	{[]string{"sequence"}, ObjectSequence},
	{[]string{"domain"}, ObjectDomain},
	{[]string{"subscription"}, ObjectSubscription},
}

// objectKind reads the kind of an object, "" if none comes next.
func (s *stream) objectKind() ObjectKind {
	for _, k := range objectKinds {
		if s.accept(k.words...) {
			return k.kind
		}
	}
	return ""
}

// objectName reads the name of an object of a kind: what lives outside of
// schemas has its qualification in Database.
func (s *stream) objectName(kind ObjectKind) Name {
	n := s.name()
	if (kind == ObjectSchema || kind == ObjectCluster) && n.Schema != "" && n.Database == "" {
		n.Database, n.Schema = n.Schema, ""
	}
	return n
}

func (s *stream) drop() Node {
	s.expect("drop")
	n := &Drop{Kind: s.objectKind()}
	if n.Kind == "" {
		return nil
	}
	n.Concurrently = s.accept("concurrently")
	n.IfExists = s.accept("if", "exists")
	n.Names = []Name{s.objectName(n.Kind)}
	for s.acceptOp(",") {
		n.Names = append(n.Names, s.objectName(n.Kind))
	}
	if !s.accept("restrict") {
		n.Cascade = s.accept("cascade")
	}
	return n
}

func (s *stream) alter() Node {
	s.expect("alter")
	n := &Alter{Kind: s.objectKind()}
	if n.Kind == "" || n.Kind == ObjectRole || n.Kind == ObjectType || n.Kind == ObjectDomain {
		return nil
	}
	n.IfExists = s.accept("if", "exists")
	s.accept("only")
	n.Name = s.objectName(n.Kind)
	s.acceptOp("*")
	if n.Kind == ObjectSequence && !s.is("rename") && !s.is("set", "schema") && !s.is("owner", "to") {
		return nil // its options are left to PostgreSQL's grammar
	}
	for s.err == nil {
		n.Actions = append(n.Actions, s.alterCmd(n.Kind))
		if !s.acceptOp(",") {
			break
		}
	}
	return n
}

func (s *stream) alterCmd(kind ObjectKind) AlterCmd {
	c := AlterCmd{Pos: s.pos()}
	switch {
	case s.accept("rename"):
		s.alterRename(&c)
	case s.accept("set", "schema"):
		c.Action, c.NewName = AlterSetSchema, s.ident()
	case s.accept("owner", "to"):
		c.Action, c.NewName = AlterOwner, s.label()
	case s.accept("swap", "with"):
		c.Action, c.NewName = AlterSwap, s.name().Name
	case s.accept("set", "cluster"), s.accept("in", "cluster"):
		c.Action, c.NewName = AlterSetCluster, s.ident()
	case s.accept("add", "subsource"), s.accept("add", "table"):
		c.Action = AlterAddSubsource
		c.Tables = []ExternalTable{{Name: s.name()}}
	case kind == ObjectSink && s.accept("set", "from"):
		c.Action = AlterSinkFrom
		c.Tables = []ExternalTable{{Name: s.name()}}
	case s.accept("set", "config"):
		c.Action, c.Options = AlterSetConfig, s.options()
	case s.accept("reset", "config"):
		c.Action, c.Options = AlterResetConfig, s.options()
	case s.alterTuning(&c), s.alterConnector(&c, kind):
	case s.is("set") && s.peekAt(1).val == "(", s.is("reset") && s.peekAt(1).val == "(":
		c.Action = AlterResetOptions
		if s.advance().val == "set" {
			c.Action = AlterSetOptions
		}
		c.Options = s.options()
		if kind == ObjectConnection || kind == ObjectCluster { // WITH (VALIDATE = …), WITH (WAIT …)
			s.withOptions()
		}
	case kind == ObjectSecret && (s.is("as") || s.isWith()):
		s.withOptions()
		s.expect("as")
		e := s.exprUntil(len(s.toks) - 1)
		c.Action, c.Expr = AlterSecretValue, &e
	case kind == ObjectTable, kind == ObjectSource, kind == ObjectView, kind == ObjectMaterializedView:
		s.alterColumns(&c)
	case kind == ObjectCluster && s.accept("set"):
		c.Action, c.Options = AlterSetOptions, s.options()
	default:
		s.unexpected()
	}
	return c
}

func (s *stream) alterTo() {
	if !s.acceptOp("=") {
		s.expect("to")
	}
}

func (s *stream) alterRename(c *AlterCmd) {
	switch {
	case s.accept("to"):
		c.Action, c.NewName = AlterRename, s.ident()
	case s.accept("constraint"):
		c.Action, c.Column = AlterRenameConstraint, s.ident()
		s.expect("to")
		c.NewName = s.ident()
	default:
		s.accept("column")
		c.Action, c.Column = AlterRenameColumn, s.ident()
		s.expect("to")
		c.NewName = s.ident()
	}
}

var constraintWords = map[string]bool{
	"constraint": true, "primary": true, "unique": true, "check": true, "foreign": true, "exclude": true,
}

func (s *stream) alterColumns(c *AlterCmd) {
	switch {
	case s.accept("add"):
		if t := s.peek(); t.kind == tokWord && constraintWords[t.val] {
			s.alterAddConstraint(c)
			return
		}
		s.accept("column")
		c.Action, c.IfNotExists = AlterAddColumn, s.ifNotExists()
		var d elements
		s.columnOrConstraint(&d, s.until(","))
		if s.err == nil && len(d.columns) == 1 {
			c.ColumnDef = &d.columns[0]
		} else {
			s.unexpected()
		}
	case s.accept("validate", "constraint"):
		c.Action, c.NewName = AlterValidate, s.ident()
	case s.accept("drop", "constraint"):
		c.Action, c.IfExists, c.NewName = AlterDropConstraint, s.accept("if", "exists"), s.ident()
		c.Cascade = s.acceptOne("restrict", "cascade") == "cascade"
	case s.accept("drop"):
		s.accept("column")
		c.Action, c.IfExists, c.Column = AlterDropColumn, s.accept("if", "exists"), s.ident()
		c.Cascade = s.acceptOne("restrict", "cascade") == "cascade"
	case s.accept("alter", "constraint"):
		c.Action, c.NewName = AlterConstraintTiming, s.ident()
		s.constraintTiming(c)
	case s.accept("alter"):
		s.accept("column")
		c.Column = s.ident()
		s.alterColumn(c)
	default:
		s.alterStorage(c)
	}
}

// constraintTiming reads DEFERRABLE, INITIALLY DEFERRED and their opposites.
func (s *stream) constraintTiming(c *AlterCmd) {
	for s.err == nil && !s.eof() && !s.isOp(",") {
		switch {
		case s.accept("not", "deferrable"), s.accept("initially", "immediate"):
		case s.accept("initially", "deferred"):
			c.Column = "deferred"
		case s.accept("deferrable"):
			if c.Column == "" {
				c.Column = "deferrable"
			}
		default:
			s.unexpected()
		}
	}
}

// alterStorage passes the actions that are about how PostgreSQL stores a table, and
// refuses those whose features are not there.
func (s *stream) alterStorage(c *AlterCmd) {
	c.Action = AlterNothing
	absent := func(what, hint string) {
		s.refuse(pgerror.Unsupported("ALTER TABLE "+what).WithHint("%s", hint))
	}
	switch {
	case s.accept("set", "logged"), s.accept("set", "unlogged"), s.accept("set", "without", "cluster"), s.accept("set", "without", "oids"),
		s.accept("disable", "row", "level", "security"), s.accept("no", "force", "row", "level", "security"),
		s.accept("enable", "trigger", "all"), s.accept("enable", "trigger", "user"), s.accept("disable", "trigger", "all"), s.accept("disable", "trigger", "user"):
	case s.accept("cluster", "on"), s.accept("set", "tablespace"), s.accept("set", "access", "method"):
		s.ident()
	case s.accept("replica", "identity"):
		if s.acceptOne("default", "full", "nothing") == "" {
			s.expect("using", "index")
			s.ident()
		}
	case s.accept("enable", "row", "level", "security"), s.accept("force", "row", "level", "security"):
		absent("... ROW LEVEL SECURITY", "There is one owner of everything, who sees all rows.")
	case s.is("enable"), s.is("disable"):
		absent("... "+strings.ToUpper(s.peek().val+" "+s.peekAt(1).val), "There are no triggers or rules; a materialized view is kept up to date by itself.")
	case s.is("inherit"), s.is("no", "inherit"):
		absent("... INHERIT", hintInherits)
	case s.is("attach"), s.is("detach"):
		absent("... "+strings.ToUpper(s.peek().val)+" PARTITION", hintPartitions)
	case s.is("of"), s.is("not", "of"):
		absent("... OF", "Define the columns of the table.")
	default:
		s.unexpected()
	}
}

// What to do instead of features of tables that are not there.
const (
	hintInherits   = "Make a view of the UNION ALL of the tables."
	hintPartitions = "A table needs no partitions: its rows are kept by key in any case."
)

func (s *stream) alterAddConstraint(c *AlterCmd) {
	var d elements
	s.columnOrConstraint(&d, s.until(","))
	if s.err == nil && len(d.constraints) == 1 {
		c.Action, c.Constraint = AlterAddConstraint, &d.constraints[0]
		return
	}
	s.unexpected()
}

func (s *stream) alterColumn(c *AlterCmd) {
	switch {
	case s.accept("set", "default"):
		e := s.exprUntil(s.until(","))
		c.Action, c.Expr = AlterSetDefault, &e
	case s.accept("drop", "default"):
		c.Action = AlterDropDefault
	case s.accept("set", "not", "null"):
		c.Action = AlterSetNotNull
	case s.accept("drop", "not", "null"):
		c.Action = AlterDropNotNull
	case s.accept("set", "data", "type"), s.accept("type"):
		c.Action = AlterColumnType
		c.Type = s.typeUntil(s.until(",", "using", "collate"))
		if s.accept("collate") {
			s.name()
		}
		if s.accept("using") {
			e := s.exprUntil(s.until(","))
			c.Expr = &e
		}
	case s.is("add", "generated"), s.is("set", "generated"), s.is("restart"), s.is("set", "increment"), s.is("set", "start"),
		s.is("set", "minvalue"), s.is("set", "maxvalue"), s.is("set", "no"), s.is("set", "cycle"), s.is("set", "cache"), s.is("set", "restart"):
		s.alterIdentity(c)
	case s.accept("drop", "identity"):
		c.Action, c.IfExists = AlterDropIdentity, s.accept("if", "exists")
	case s.accept("drop", "expression"):
		c.Action, c.IfExists = AlterDropExpression, s.accept("if", "exists")
	case s.accept("set", "statistics"):
		c.Action = AlterNothing
		s.value()
	case s.is("set") && s.peekAt(1).val == "(", s.is("reset") && s.peekAt(1).val == "(":
		s.advance()
		c.Action, c.Options = AlterNothing, s.options()
	case s.accept("set", "storage"), s.accept("set", "compression"):
		c.Action = AlterNothing
		s.label()
	default:
		s.unexpected()
	}
}

// alterIdentity hands ADD GENERATED and what changes an identity column to
// PostgreSQL's grammar.
func (s *stream) alterIdentity(c *AlterCmd) {
	end := s.until(",")
	stmt, _ := s.embed("ALTER TABLE x ALTER y ", end, "")
	if stmt == nil {
		return
	}
	s.i = end
	cmd := stmt.GetAlterTableStmt().GetCmds()[0].GetAlterTableCmd()
	c.Action = AlterSetIdentity
	if k := cmd.GetDef().GetConstraint(); k != nil {
		c.Action, c.NewName, c.Sequence = AlterAddIdentity, identityKind(k.GeneratedWhen), k.Options
		return
	}
	for _, o := range cmd.GetDef().GetList().GetItems() {
		if d := o.GetDefElem(); d.GetDefname() == "generated" {
			c.NewName = "by default"
			if d.GetArg().GetInteger().GetIval() == 'a' {
				c.NewName = "always"
			}
			continue
		}
		c.Sequence = append(c.Sequence, o)
	}
}

// commentOn parses COMMENT ON for the kinds that this package knows.
func (s *stream) commentOn() Node {
	s.expect("comment", "on")
	n := &CommentOn{}
	if s.accept("constraint") {
		n.Kind, n.Column = ObjectConstraint, s.ident()
		s.expect("on")
		if s.accept("domain") {
			return nil
		}
		n.Name = s.name()
		return s.commentIs(n)
	}
	if s.accept("column") {
		n.Kind = ObjectColumn
		parts := []string{s.ident()}
		pos := s.pos()
		for len(parts) < 4 && s.acceptOp(".") {
			parts = append(parts, s.label())
		}
		if len(parts) < 2 {
			return nil
		}
		n.Column = parts[len(parts)-1]
		n.Name = Name{Name: parts[len(parts)-2], Pos: pos}
		if len(parts) > 2 {
			n.Name.Schema = parts[len(parts)-3]
		}
		if len(parts) > 3 {
			n.Name.Database = parts[0]
		}
	} else {
		n.Kind = s.objectKind()
		switch n.Kind {
		case "", ObjectType, ObjectDomain, ObjectFunction, ObjectDatabase, ObjectRole:
			return nil // PostgreSQL's grammar has more of their names
		}
		n.Name = s.objectName(n.Kind)
	}
	return s.commentIs(n)
}

func (s *stream) commentIs(n *CommentOn) Node {
	s.expect("is")
	if !s.accept("null") {
		text := s.str()
		n.Comment = &text
	}
	return n
}
