package parser

import (
	"slices"
	"sort"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// createTable parses what follows CREATE [TEMP] TABLE. A table with a
// connector is a CreateSource.
func (s *stream) createTable(h createHead) Node {
	start := s.i
	n := &CreateTable{Temp: h.temp, IfNotExists: s.ifNotExists(), Name: s.name()}
	switch {
	case s.is("from"):
		return s.tableFromSource(n)
	case s.accept("as"):
		return s.tableAs(n, nil, nil)
	case s.accept("on", "commit"):
		n.OnCommit = s.onCommit()
		s.expect("as")
		return s.tableAs(n, nil, nil)
	case s.isWith():
		with := s.withOptions()
		if s.accept("as") {
			return s.tableAs(n, nil, with)
		}
	case s.isOp("("):
		if cols, ok := s.namesThenAs(); ok {
			with := s.withOptions()
			if s.accept("on", "commit") {
				n.OnCommit = s.onCommit()
			}
			s.expect("as")
			return s.tableAs(n, cols, with)
		}
		d := s.tableElements()
		n.Columns, n.Constraints, n.Like, n.Watermarks = d.columns, d.constraints, d.like, d.watermarks
		if s.is("from") {
			return s.tableFromSource(n)
		}
		if !d.wildcard && s.tableClauses(n) {
			return n
		}
	}
	if s.err != nil {
		return nil
	}
	s.i = start
	return s.createSource(h, true)
}

// namesThenAs reads `(a, b) [WITH (…)]` if AS follows.
func (s *stream) namesThenAs() ([]string, bool) {
	j := s.i + 1
	for identToken(s.toks[min(j, len(s.toks)-1)]) {
		j++
		t := s.toks[min(j, len(s.toks)-1)]
		if t.kind != tokOp || t.val != "," {
			break
		}
		j++
	}
	after := s.toks[min(j+1, len(s.toks)-1)]
	if s.toks[min(j, len(s.toks)-1)].val != ")" || after.val != "as" && after.val != "with" && after.val != "on" {
		return nil, false
	}
	if after.val == "with" { // a source's WITH, unless AS follows it
		save := s.i
		s.i = j + 1
		s.withOptions()
		isAs := s.is("as")
		if s.err != nil {
			return nil, false
		}
		s.i = save
		if !isAs {
			return nil, false
		}
	}
	return s.columnNames(), true
}

// tableClauses reads what follows the columns of a plain table. False without
// an error means that it is not one.
func (s *stream) tableClauses(n *CreateTable) bool {
	for s.err == nil && !s.eof() {
		switch {
		case s.accept("append", "only"):
			n.AppendOnly = true
		case s.is("on", "conflict"):
			n.OnConflict, n.Version = s.tableOnConflict()
		case s.accept("on", "commit"):
			n.OnCommit = s.onCommit()
		case s.accept("without", "oids"):
		case s.accept("engine"):
			s.tableEngine()
		case s.accept("tablespace"), s.accept("using"):
			s.ident() // how it is stored is the server's choice
		case s.isWith():
			n.With = append(n.With, s.withOptions()...)
			if findOption(n.With, "connector") != nil {
				return false
			}
		case s.is("include"), s.is("format"):
			return false
		default:
			s.unexpected()
		}
	}
	return s.err == nil
}

// tableEngine reads the name of RisingWave's ENGINE = name.
func (s *stream) tableEngine() {
	s.acceptOp("=")
	pos := s.pos()
	if e := s.label(); e != "hummock" && s.err == nil {
		s.refuse(pgerror.Unsupported("ENGINE " + e).WithHint("A table is kept in the server's own storage.").At(pos))
	}
}

// onCommit reads what follows ON COMMIT.
func (s *stream) onCommit() string {
	switch {
	case s.accept("preserve", "rows"):
		return ""
	case s.accept("delete", "rows"):
		return "delete rows"
	case s.accept("drop"):
		return "drop"
	}
	s.unexpected()
	return ""
}

// tableOnConflict is ON CONFLICT action [WITH VERSION COLUMN (column, …)].
func (s *stream) tableOnConflict() (action string, version []string) {
	s.expect("on", "conflict")
	switch {
	case s.accept("overwrite"), s.accept("do", "update", "full"):
		action = "overwrite"
	case s.accept("ignore"), s.accept("do", "nothing"):
		action = "ignore"
	case s.accept("do", "update", "if", "not", "null"):
		action = "do update if not null"
	default:
		s.unexpected()
	}
	if s.accept("with", "version", "column") {
		version = s.columnNames()
	}
	return action, version
}

func (s *stream) tableAs(t *CreateTable, cols []string, with []Option) Node {
	n := &CreateTableAs{Name: t.Name, IfNotExists: t.IfNotExists, Temp: t.Temp, OnCommit: t.OnCommit, Columns: cols, With: with}
	end := len(s.toks) - 1
	if cut := s.tail("with", "no", "data"); cut >= 0 {
		n.WithNoData, end = true, cut
	} else if cut := s.tail("with", "data"); cut >= 0 {
		end = cut
	}
	if s.is("execute") {
		n.Query.SQL = s.text[s.peek().start:s.toks[end-1].end]
		n.Query.Stmt, n.Query.Base = s.embed("", end, "")
	} else {
		n.Query = s.queryUntil(end)
	}
	if s.err == nil {
		s.i = len(s.toks) - 1
	}
	return n
}

// tableFromSource is FROM SOURCE s (REFERENCE r, …), and RisingWave's
// FROM s TABLE 'r'.
func (s *stream) tableFromSource(t *CreateTable) Node {
	n := &CreateTableFromSource{
		Name: t.Name, IfNotExists: t.IfNotExists, Columns: t.Columns, Constraints: t.Constraints,
	}
	s.expect("from")
	if s.accept("source") {
		n.Source = s.name()
		if s.isOp("(") {
			n.Options = s.options()
		}
		for i, o := range n.Options {
			if o.Name == "reference" {
				r := o.Value.Name
				if o.Value.Kind == ValueString {
					r = Name{Name: o.Value.Text, Pos: o.Pos}
				}
				n.Reference = &r
				n.Options = append(n.Options[:i:i], n.Options[i+1:]...)
				break
			}
		}
	} else {
		n.Source = s.name()
		s.expect("table")
		r := Name{Pos: s.pos(), Name: s.str()}
		if schema, name, ok := strings.Cut(r.Name, "."); ok {
			r.Schema, r.Name = schema, name
		}
		n.Reference = &r
	}
	for s.err == nil && !s.eof() {
		switch {
		case s.accept("format"):
			n.Format = s.format()
		case s.is("include"):
			n.Includes = append(n.Includes, s.includes()...)
		case s.accept("envelope"):
			n.Envelope = s.envelope()
		case s.isWith():
			n.With = append(n.With, s.withOptions()...)
		default:
			s.unexpected()
		}
	}
	return n
}

// elements are what stands in the parentheses of CREATE TABLE or CREATE SOURCE.
type elements struct {
	columns     []ColumnDef
	constraints []Constraint
	like        []Like
	watermarks  []Watermark
	wildcard    bool
}

// tableElements reads `(element, …)`, which may be empty.
func (s *stream) tableElements() elements {
	var d elements
	s.expectOp("(")
	if s.acceptOp(")") {
		return d
	}
	for s.err == nil {
		s.tableElement(&d)
		if !s.acceptOp(",") || s.isOp(")") { // RisingWave lets a comma stand before the parenthesis
			break
		}
	}
	s.expectOp(")")
	return d
}

func (s *stream) tableElement(d *elements) {
	end := s.until(",")
	switch {
	case s.acceptOp("*"):
		d.wildcard = true
	case s.is("watermark", "for"):
		w := Watermark{Pos: s.pos()}
		s.expect("watermark", "for")
		w.Column = s.ident()
		s.expect("as")
		w.Expr = s.exprUntil(min(end, s.until("with")))
		if s.accept("with", "ttl") {
			w.TTL = true
		}
		d.watermarks = append(d.watermarks, w)
	case s.accept("like"):
		d.like = append(d.like, s.likeClause(len(d.columns)))
	case end == s.i+1 && s.isIdent(): // a bare column name
		pos := s.pos()
		d.columns = append(d.columns, ColumnDef{Name: s.ident(), Pos: pos})
	default:
		s.columnOrConstraint(d, end)
	}
}

// likeParts is what LIKE can take over.
var likeParts = []string{"comments", "compression", "constraints", "defaults", "generated", "identity", "indexes", "statistics", "storage"}

func (s *stream) likeClause(after int) Like {
	l := Like{Name: s.name(), After: after, Including: map[string]bool{}}
	for {
		word := s.acceptOne("including", "excluding")
		if word == "" {
			return l
		}
		what := s.label()
		if what == "all" {
			for _, p := range likeParts {
				l.Including[p] = word == "including"
			}
			continue
		}
		if !slices.Contains(likeParts, what) {
			s.i--
			s.unexpected()
			return l
		}
		l.Including[what] = word == "including"
	}
}

// columnOrConstraint hands an element to PostgreSQL's grammar, without what it
// does not know: NOT ENFORCED and RisingWave's `name type AS expr`.
func (s *stream) columnOrConstraint(d *elements, end int) {
	start := s.i
	stop, enforced := end, true
	if end-2 > start && s.toks[end-2].val == "not" && s.toks[end-1].val == "enforced" {
		stop, enforced = end-2, false
	}
	var generated *Expr
	if at := s.generatedAs(stop); at > 0 {
		s.i = at + 1
		e := s.exprUntil(stop)
		generated, stop, s.i = &e, at, start
	}
	if s.err != nil {
		return
	}
	stmt, base := s.embed("CREATE TABLE x (", stop, ")")
	if stmt == nil {
		return
	}
	for _, el := range stmt.GetCreateStmt().GetTableElts() {
		switch {
		case el.GetColumnDef() != nil:
			c := s.columnDef(el.GetColumnDef(), base, stop)
			switch {
			case generated == nil:
			case proctime(generated): // it changes with the row only
				c.Default = generated
			default:
				c.Generated = generated
			}
			d.columns = append(d.columns, c)
		case el.GetConstraint() != nil:
			if c, ok := s.constraint(el.GetConstraint(), base, stop); ok {
				c.NotEnforced = !enforced
				d.constraints = append(d.constraints, c)
			}
		default:
			s.fail(syntaxErrorAt(s.text, s.toks[start]))
		}
	}
	if s.err == nil {
		s.i = end
	}
}

// proctime says whether an expression is RisingWave's proctime(): the time at which a
// row came in, as the expression of a generated column.
func proctime(e *Expr) bool {
	f := e.Node.GetFuncCall()
	return len(f.GetArgs()) == 0 && len(f.GetFuncname()) == 1 && f.Funcname[0].GetString_().GetSval() == "proctime"
}

// generatedAs finds the AS of `name type AS expr`, 0 if there is none.
func (s *stream) generatedAs(stop int) int {
	at := s.until("as")
	if at >= stop || at < s.i+2 || s.toks[at].val != "as" {
		return 0
	}
	for i := s.i; i < at; i++ {
		if s.toks[i].kind == tokWord && s.toks[i].val == "generated" {
			return 0
		}
	}
	return at
}

// columnDef reads PostgreSQL's tree of a column; stop is the token after it. The
// texts of expressions are found by the places of the clauses.
func (s *stream) columnDef(c *pg.ColumnDef, base, stop int) ColumnDef {
	d := ColumnDef{
		Name: c.Colname,
		Type: TypeName{Node: c.TypeName, Base: base},
		Pos:  Position(s.text, base+int(c.Location)),
	}
	if c.CollClause != nil {
		names := c.CollClause.Collname
		d.Collation = names[len(names)-1].GetString_().GetSval()
	}
	starts := s.constraintStarts(c.Constraints, base)
	typeEnd := s.toks[stop-1].end
	if len(starts) > 0 {
		typeEnd = starts[0]
	}
	if c.CollClause != nil {
		typeEnd = min(typeEnd, base+int(c.CollClause.Location))
	}
	if c.TypeName != nil {
		d.Type.SQL = strings.TrimSpace(s.text[base+int(c.TypeName.Location) : typeEnd])
	}
	if c.CollClause != nil {
		starts = append(starts, base+int(c.CollClause.Location))
	}
	var last *Constraint // that attributes belong to
	for _, k := range c.Constraints {
		attr := k.GetConstraint()
		if m := d.conflict(attr.Contype); m != "" && d.Conflict == nil {
			d.Conflict = &ClauseConflict{Message: m, Pos: Position(s.text, base+int(attr.Location))}
		}
		if last == nil || !last.attribute(attr) {
			last = s.columnConstraint(&d, attr, base, starts, stop)
		}
	}
	return d
}

// conflict says how a further clause does not go with what the column has, "" if it does.
func (d *ColumnDef) conflict(k pg.ConstrType) string {
	def, id, gen := k == pg.ConstrType_CONSTR_DEFAULT, k == pg.ConstrType_CONSTR_IDENTITY, k == pg.ConstrType_CONSTR_GENERATED
	hasDef, hasID, hasGen := d.Default != nil, d.Identity != "", d.Generated != nil
	switch {
	case k == pg.ConstrType_CONSTR_NULL && (d.NotNull || hasID), (k == pg.ConstrType_CONSTR_NOTNULL || id) && d.Null:
		return "conflicting NULL/NOT NULL declarations"
	case def && hasDef:
		return "multiple default values specified"
	case id && hasID:
		return "multiple identity specifications"
	case gen && hasGen:
		return "multiple generation clauses specified"
	case (def || hasDef) && (id || hasID):
		return "both default and identity specified"
	case (def || hasDef) && (gen || hasGen):
		return "both default and generation expression specified"
	case (id || hasID) && (gen || hasGen):
		return "both identity and generation expression specified"
	}
	return ""
}

// attribute applies DEFERRABLE and the like, which stand as constraints after
// the one that they belong to.
func (c *Constraint) attribute(k *pg.Constraint) bool {
	switch k.Contype {
	case pg.ConstrType_CONSTR_ATTR_DEFERRABLE:
		c.Deferrable = true
	case pg.ConstrType_CONSTR_ATTR_NOT_DEFERRABLE, pg.ConstrType_CONSTR_ATTR_IMMEDIATE:
	case pg.ConstrType_CONSTR_ATTR_DEFERRED:
		c.Deferrable, c.Deferred = true, true
	default:
		return false
	}
	return true
}

// constraintStarts are the offsets where the constraints of a column begin, in order.
func (s *stream) constraintStarts(list []*pg.Node, base int) []int {
	var out []int
	for _, k := range list {
		out = append(out, base+int(k.GetConstraint().GetLocation()))
	}
	sort.Ints(out)
	return out
}

func (s *stream) columnConstraint(d *ColumnDef, k *pg.Constraint, base int, starts []int, stop int) *Constraint {
	switch k.Contype {
	case pg.ConstrType_CONSTR_NOTNULL:
		d.NotNull = true
	case pg.ConstrType_CONSTR_NULL:
		d.Null = true
	case pg.ConstrType_CONSTR_DEFAULT:
		d.Default = &Expr{Node: k.RawExpr, Base: base, SQL: s.textAfter(base+int(k.Location), starts, stop)}
	case pg.ConstrType_CONSTR_GENERATED:
		d.Generated = &Expr{Node: k.RawExpr, Base: base, SQL: s.parenText(base+int(k.Location), stop)}
	case pg.ConstrType_CONSTR_IDENTITY:
		d.Identity, d.SequenceOptions = identityKind(k.GeneratedWhen), k.Options
	default:
		c, ok := s.constraint(k, base, stop)
		if !ok {
			return nil
		}
		switch c.Kind {
		case ConstraintCheck:
			d.Checks = append(d.Checks, c)
			return &d.Checks[len(d.Checks)-1]
		case ConstraintForeignKey:
			c.Columns = []string{d.Name}
			d.References = append(d.References, c)
			return &d.References[len(d.References)-1]
		}
		c.Columns = []string{d.Name}
		d.PrimaryKey = d.PrimaryKey || c.Kind == ConstraintPrimaryKey
		d.Unique = d.Unique || c.Kind == ConstraintUnique
		d.Keys = append(d.Keys, c)
		return &d.Keys[len(d.Keys)-1]
	}
	return nil
}

func identityKind(when string) string {
	if when == "a" {
		return "always"
	}
	return "by default"
}

// textAfter is the text from the token after the one at an offset up to the next
// of the given offsets, or to the end of the element.
func (s *stream) textAfter(offset int, ends []int, stop int) string {
	from := s.tokenAt(offset) + 1
	if s.toks[from-1].val == "constraint" {
		from += 2
	}
	for _, e := range ends {
		if e > offset {
			stop = min(stop, s.tokenAt(e))
		}
	}
	if from >= stop {
		return ""
	}
	return s.text[s.toks[from].start:s.toks[stop-1].end]
}

// parenText is the text in the first parentheses after an offset.
func (s *stream) parenText(offset, stop int) string {
	for i := s.tokenAt(offset); i < stop; i++ {
		if s.toks[i].val == "(" && s.toks[i].kind == tokOp {
			save := s.i
			s.i = i + 1
			end := s.closing()
			s.i = save
			if end > i+1 {
				return s.text[s.toks[i+1].start:s.toks[end-1].end]
			}
			return ""
		}
	}
	return ""
}

// tokenAt is the index of the token that begins at an offset.
func (s *stream) tokenAt(offset int) int {
	return sort.Search(len(s.toks)-1, func(i int) bool { return s.toks[i].start >= offset })
}

var refActions = map[string]string{"a": "", "r": "restrict", "c": "cascade", "n": "set null", "d": "set default"}

// constraint reads PostgreSQL's tree of a CHECK, key or foreign key
// constraint; false for the attributes that stand as constraints in the tree.
func (s *stream) constraint(k *pg.Constraint, base, stop int) (Constraint, bool) {
	c := Constraint{Name: k.Conname, Pos: Position(s.text, base+int(k.Location)), Deferrable: k.Deferrable, Deferred: k.Initdeferred,
		NotValid: k.SkipValidation, NullsNotDistinct: k.NullsNotDistinct, UsingIndex: k.Indexname}
	switch k.Contype {
	case pg.ConstrType_CONSTR_PRIMARY:
		c.Kind, c.Columns = ConstraintPrimaryKey, stringList(k.Keys)
	case pg.ConstrType_CONSTR_UNIQUE:
		c.Kind, c.Columns = ConstraintUnique, stringList(k.Keys)
	case pg.ConstrType_CONSTR_CHECK:
		c.Kind = ConstraintCheck
		c.Check = &Expr{Node: k.RawExpr, Base: base, SQL: s.parenText(base+int(k.Location), stop)}
	case pg.ConstrType_CONSTR_FOREIGN:
		c.Kind, c.Columns = ConstraintForeignKey, stringList(k.FkAttrs)
		c.RefTable = rangeVarName(k.Pktable)
		c.RefTable.Pos = Position(s.text, base+int(k.Pktable.Location))
		c.RefColumns = stringList(k.PkAttrs)
		c.OnDelete, c.OnUpdate = refActions[k.FkDelAction], refActions[k.FkUpdAction]
		c.SetColumns, c.MatchFull = stringList(k.FkDelSetCols), k.FkMatchtype == "f"
		if k.FkMatchtype == "p" {
			s.fail(pgerror.New(pgerror.FeatureNotSupported, "MATCH PARTIAL not yet implemented").At(c.Pos))
		}
	case pg.ConstrType_CONSTR_EXCLUSION:
		s.fail(pgerror.Unsupported("EXCLUDE").At(c.Pos))
		return c, false
	default:
		return c, false
	}
	return c, true
}

func stringList(list []*pg.Node) []string {
	var out []string
	for _, n := range list {
		out = append(out, n.GetString_().GetSval())
	}
	return out
}
