package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// entry is one relation of a FROM clause under the name by which it is known:
// PostgreSQL's range table entry with its name space.
type entry struct {
	schema  string // of a relation without an alias
	name    string // "" for a join without an alias
	object  *catalog.Object
	columns []entryColumn
	// relVisible: its name can qualify columns. colsVisible: its columns can be
	// named without qualification (those that are not merged away by USING).
	relVisible, colsVisible bool
	// ofColumns says that it is the alias of USING's columns, which is no relation.
	ofColumns bool
	// origin is the name of the WITH query that it is.
	origin string
	// value says that it is a function with one value: the whole row is that.
	value bool
	// row is the type of its rows, 0 for one without a name.
	row types.OID
	// nullable says that an outer join puts NULLs where it has no row.
	nullable bool
	// joined says that it is the alias of a join.
	joined bool
}

// entryColumn is a column of an entry.
type entryColumn struct {
	name   string
	index  int // in the row of the scope
	typ    types.Type
	domain types.OID // that is its type, 0 for none
	hidden bool      // not part of *
	merged bool      // by USING or NATURAL: only visible with qualification
	// notNull says that a row of the relation has a value in it.
	notNull bool
	// table is the relation whose column a merged column is, if it is one's.
	table string
	// table and number tell the column of a table that it is.
	tableOID uint32
	attNum   int16
}

// scope is one level of names: the row that expressions of a query level (or
// of the right side of a lateral join) see. A name that is not found in it is
// looked for in parent; what is found there is an outer column.
type scope struct {
	parent *scope
	// entries are those that names are looked up in; all adds those that a join
	// alias or a non-lateral boundary hides, for hints.
	entries []*entry
	all     []*entry
	// sel is the query level whose FROM this is; nil for a lateral scope.
	sel *selectState
	// lateral says that this is what the right side of a join sees of its left
	// side; used notes whether anything referred to a column of this scope.
	lateral bool
	used    bool
	// unreachable lateral scopes belong to a RIGHT or FULL JOIN.
	unreachable bool
	// depth is the number of scopes from here outwards.
	depth int
	// kind is the clause being bound, for what is allowed in it.
	kind clause
}

func newScope(parent *scope) *scope {
	return &scope{parent: parent, depth: parent.level() + 1}
}

// level is the depth of a scope, 0 for none.
func (s *scope) level() int {
	if s == nil {
		return 0
	}
	return s.depth
}

// up is the scope that is so many levels out.
func (s *scope) up(levels int) *scope {
	for range levels {
		s = s.parent
	}
	return s
}

// blank is s with what joins to the left offer taken away, out to the scope
// around the FROM clause, as a subquery without LATERAL sees it; the hidden
// entries explain wrong references.
func (s *scope) blank(around *scope) *scope {
	if s == around {
		return s
	}
	n := newScope(s.parent.blank(around))
	n.lateral, n.all = true, s.entries
	return n
}

// columnUse says where and as what a column was named, and which table column
// it is.
type columnUse struct {
	pos      int
	table    string
	name     string
	tableOID uint32
	attNum   int16
	// lifted says that it stands before a subquery that its comparison was put into.
	lifted bool
}

// match is a column found at some level of scopes.
type match struct {
	entry *entry
	col   *entryColumn
	depth int
}

// columnRef resolves a possibly qualified column name.
func (b *binder) columnRef(s *scope, ref *pg.ColumnRef) (expr.Expr, error) {
	pos := b.pos(ref.Location)
	if t := b.ctx.trace; t != nil {
		t.ref = ref
		defer func() { t.ref = nil }()
	}
	names := make([]string, 0, len(ref.Fields))
	star := false
	for _, f := range ref.Fields {
		if f.GetAStar() != nil {
			star = true
			continue
		}
		names = append(names, f.GetString_().GetSval())
	}
	if star {
		return b.wholeRowStar(s, names, pos)
	}
	if len(names) == 1 {
		return b.unqualified(s, names[0], pos)
	}
	q, col := names[:len(names)-1], names[len(names)-1]
	if len(names) > 4 {
		return nil, pgerror.New(pgerror.SyntaxError, "improper qualified name (too many dotted names): %s", dotted(names)).At(pos)
	}
	e, depth, err := b.findEntry(s, q, pos)
	if err != nil {
		return nil, err
	}
	if e != nil {
		if err := reachable(s, e, depth, pos); err != nil {
			return nil, err
		}
		c, err := e.column(col, pos)
		if err != nil {
			return nil, err
		}
		if c != nil {
			return b.columnAt(s, match{e, c, depth}, pos), nil
		}
		if x := b.systemColumn(e, col); x != nil {
			return x, nil
		}
		return nil, b.missingColumn(s, q[len(q)-1], col, pos)
	}
	return nil, b.missingEntry(s, q, pos)
}

// reachable refuses a lateral reference across a RIGHT or FULL JOIN.
func reachable(s *scope, e *entry, depth, pos int) error {
	if !s.up(depth).unreachable {
		return nil
	}
	return pgerror.New(pgerror.InvalidColumnReference, "invalid reference to FROM-clause entry for table \"%s\"", e.name).
		WithDetail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.").At(pos)
}

// unqualified resolves a column name without qualification.
func (b *binder) unqualified(s *scope, name string, pos int) (expr.Expr, error) {
	m, err := b.findColumn(s, name, pos)
	if err != nil {
		return nil, err
	}
	if m.entry != nil {
		return b.columnAt(s, m, pos), reachable(s, m.entry, m.depth, pos)
	}
	if e, depth := soleEntryWith(s, name); e != nil {
		if x := b.systemColumn(e, name); x != nil && depth == 0 {
			return x, nil
		}
	}
	// The name of a relation stands for its whole row.
	if e, depth, err := b.findEntry(s, []string{name}, pos); err == nil && e != nil {
		return b.wholeRow(s, e, depth, pos), nil
	}
	return nil, b.missingColumn(s, "", name, pos)
}

// soleEntryWith is the only table in the innermost scope, for system columns.
func soleEntryWith(s *scope, _ string) (*entry, int) {
	if s == nil || len(s.entries) != 1 || s.entries[0].object == nil {
		return nil, 0
	}
	return s.entries[0], 0
}

// findColumn looks a name up from the innermost scope outwards; no entry in
// the result means that there is none.
func (b *binder) findColumn(s *scope, name string, pos int) (match, error) {
	for depth := 0; s != nil; depth, s = depth+1, s.parent {
		var found match
		for _, e := range s.entries {
			if !e.colsVisible {
				continue
			}
			for i := range e.columns {
				c := &e.columns[i]
				if c.merged || c.name != name {
					continue
				}
				if found.entry != nil {
					return match{}, pgerror.New(pgerror.AmbiguousColumn, "column reference \"%s\" is ambiguous", name).At(pos)
				}
				found = match{e, c, depth}
			}
		}
		if found.entry != nil {
			return found, nil
		}
	}
	return match{}, nil
}

// column finds a column of the entry by name, nil if there is none.
func (e *entry) column(name string, pos int) (*entryColumn, error) {
	var found *entryColumn
	for i := range e.columns {
		if e.columns[i].name == name {
			if found != nil {
				return nil, pgerror.New(pgerror.AmbiguousColumn, "column reference \"%s\" is ambiguous", name).At(pos)
			}
			found = &e.columns[i]
		}
	}
	return found, nil
}

// findEntry finds the relation that a qualification (table, schema.table or
// database.schema.table) means; nil if there is none.
func (b *binder) findEntry(s *scope, q []string, pos int) (*entry, int, error) {
	if len(q) == 3 {
		if q[0] != b.ctx.Database {
			return nil, 0, pgerror.New(pgerror.FeatureNotSupported,
				"cross-database references are not implemented: %s", dotted(q)).At(pos)
		}
		q = q[1:]
	}
	for depth := 0; s != nil; depth, s = depth+1, s.parent {
		var found *entry
		for _, e := range s.entries {
			if !e.relVisible || e.name == "" || !e.named(q) {
				continue
			}
			if found != nil {
				return nil, 0, pgerror.New(pgerror.DuplicateAlias, "table reference \"%s\" is ambiguous", q[len(q)-1]).At(pos)
			}
			found = e
		}
		if found != nil {
			return found, depth, nil
		}
	}
	return nil, 0, nil
}

// named reports whether a qualification means the entry.
func (e *entry) named(q []string) bool {
	if len(q) == 1 {
		return e.name == q[0]
	}
	return e.object != nil && e.schema == q[0] && e.object.Name == q[1] && e.name == q[1]
}

// columnAt makes the reference to a column that was found.
func (b *binder) columnAt(s *scope, m match, pos int) expr.Expr {
	s.up(m.depth).used = true
	if b.ctx.trace != nil && b.inView == 0 {
		b.ctx.trace.note(m.entry, m.col, b.ctx.trace.ref)
	}
	var x expr.Expr
	if m.depth == 0 {
		x = &expr.Column{Index: m.col.index, Typ: m.col.typ, Name: m.col.name, Pos: pos}
	} else {
		x = &expr.OuterColumn{Depth: m.depth, Index: m.col.index, Typ: m.col.typ, Name: m.col.name, Pos: pos}
	}
	table := m.entry.name
	if m.col.table != "" {
		table = m.col.table
	}
	if m.col.domain != 0 {
		b.domains[x] = m.col.domain
	}
	b.refs[x] = columnUse{pos: pos, table: table, name: m.col.name, tableOID: m.col.tableOID, attNum: m.col.attNum}
	return x
}

// systemColumn is one of the columns that every table of PostgreSQL has: those
// that clients ask for have a value, nil is for no such column.
func (b *binder) systemColumn(e *entry, name string) expr.Expr {
	if e.object == nil {
		return nil
	}
	value, att, typ := int64(0), int16(0), types.Oid
	switch name {
	case "xmin":
		att, typ = -2, types.Of(types.OIDXid)
	case "cmin":
		att, typ = -3, types.Of(types.OIDCid)
	case "xmax":
		att, typ = -4, types.Of(types.OIDXid)
	case "cmax":
		att, typ = -5, types.Of(types.OIDCid)
	case "tableoid":
		att, value = -6, int64(e.object.OID)
	default:
		return nil
	}
	x := oidConst(value, typ)
	b.refs[x] = columnUse{table: e.name, name: name, tableOID: e.object.OID, attNum: att}
	return x
}

// missingColumn is the error of a column that is not there, with a hint at
// what might have been meant.
func (b *binder) missingColumn(s *scope, table, name string, pos int) error {
	full := "\"" + name + "\""
	if table != "" {
		full = table + "." + name
	}
	err := pgerror.New(pgerror.UndefinedColumn, "column %s does not exist", full).At(pos)
	g := fuzzy{table: table, name: name, distance: maxFuzzyDistance + 1}
	for sc := s; sc != nil; sc = sc.parent {
		for _, e := range append(sc.entries[:len(sc.entries):len(sc.entries)], sc.hiddenEntries()...) {
			if e.name == "" {
				continue
			}
			if g.consider(e) {
				return err.WithHint("There is a column named \"%s\" in table \"%s\", but it cannot be referenced from this part of the query.", name, e.name)
			}
		}
	}
	switch {
	case g.first != "" && g.second != "":
		return err.WithHint("Perhaps you meant to reference the column \"%s\" or the column \"%s\".", g.first, g.second)
	case g.first != "":
		return err.WithHint("Perhaps you meant to reference the column \"%s\".", g.first)
	}
	return err
}

// hiddenEntries are the entries in all that are not in entries.
func (s *scope) hiddenEntries() []*entry {
	var out []*entry
next:
	for _, e := range s.all {
		for _, v := range s.entries {
			if v == e {
				continue next
			}
		}
		out = append(out, e)
	}
	return out
}

const maxFuzzyDistance = 3

// fuzzy finds the columns whose names are nearest to a wrong one, as
// PostgreSQL's searchRangeTableForCol does.
type fuzzy struct {
	table, name   string
	distance      int
	first, second string
}

// consider compares the columns of an entry; true means that one of them has
// exactly the name, so that it must be out of reach.
func (g *fuzzy) consider(e *entry) bool {
	penalty := 0
	if g.table != "" {
		penalty = levenshtein(g.table, e.name)
		if penalty > maxFuzzyDistance+1 {
			penalty = maxFuzzyDistance + 1
		}
	}
	for i := range e.columns {
		c := &e.columns[i]
		if c.hidden {
			continue
		}
		if c.name == g.name && penalty == 0 {
			return true
		}
		if penalty > g.distance {
			continue
		}
		d := levenshtein(c.name, g.name)
		if d > len(g.name)/2 {
			continue
		}
		d += penalty
		full := e.name + "." + c.name
		switch {
		case d < g.distance:
			g.distance, g.first, g.second = d, full, ""
		case d == g.distance && g.second != "":
			g.first, g.second, g.distance = "", "", d-1
		case d == g.distance && g.first != "":
			g.second = full
		case d == g.distance && d <= maxFuzzyDistance:
			g.first = full
		}
	}
	return false
}

// levenshtein is the edit distance of two names.
func levenshtein(a, b string) int {
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 0; i < len(a); i++ {
		diag := prev[0]
		prev[0] = i + 1
		for j := 0; j < len(b); j++ {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = prev[j+1]
			prev[j+1] = min(cost, min(prev[j]+1, diag+1))
		}
	}
	return prev[len(b)]
}

// missingEntry is the error of a qualification that names no relation in reach.
func (b *binder) missingEntry(s *scope, q []string, pos int) error {
	name := q[len(q)-1]
	var aliased *entry
	for sc := s; sc != nil; sc = sc.parent {
		for _, e := range append(sc.entries[:len(sc.entries):len(sc.entries)], sc.hiddenEntries()...) {
			switch {
			case e.ofColumns:
			case e.name == name:
				return pgerror.New(pgerror.UndefinedTable, "invalid reference to FROM-clause entry for table \"%s\"", name).
					WithHint("There is an entry for table \"%s\", but it cannot be referenced from this part of the query.", name).At(pos)
			case aliased == nil && (e.object != nil && e.object.Name == name || e.origin == name):
				aliased = e
			}
		}
	}
	if aliased != nil {
		return pgerror.New(pgerror.UndefinedTable, "invalid reference to FROM-clause entry for table \"%s\"", name).
			WithHint("Perhaps you meant to reference the table alias \"%s\".", aliased.name).At(pos)
	}
	return pgerror.New(pgerror.UndefinedTable, "missing FROM-clause entry for table \"%s\"", name).At(pos)
}

// expandStar lists the columns that * or a qualified star stand for.
func (b *binder) expandStar(s *scope, q []string, pos int) ([]selectItem, error) {
	var out []selectItem
	add := func(e *entry, depth int, all bool) {
		for i := range e.columns {
			c := &e.columns[i]
			if c.hidden || c.merged && !all {
				continue
			}
			out = append(out, selectItem{
				expr: b.columnAt(s, match{e, c, depth}, pos), name: c.name,
				tableOID: c.tableOID, attNum: c.attNum, pos: pos,
				entry: e.name,
			})
		}
	}
	if len(q) > 0 {
		e, depth, err := b.findEntry(s, q, pos)
		if err != nil {
			return nil, err
		}
		if e == nil {
			return nil, b.missingEntry(s, q, pos)
		}
		add(e, depth, true)
		return out, nil
	}
	any := false
	for _, e := range s.entries {
		if e.colsVisible {
			any = true
			add(e, 0, false)
		}
	}
	if !any {
		return nil, pgerror.New(pgerror.SyntaxError, "SELECT * with no tables specified is not valid").At(pos)
	}
	return out, nil
}

// shift moves the columns of entries by n places, when their relation becomes
// the right side of a join.
func shift(es []*entry, n int) {
	for _, e := range es {
		for i := range e.columns {
			e.columns[i].index += n
		}
	}
}

// newEntry makes an entry for a relation with its columns from index 0.
func newEntry(name string, cols []plan.Column) *entry {
	e := &entry{name: name, relVisible: true, colsVisible: true}
	for i, c := range cols {
		e.columns = append(e.columns, entryColumn{name: c.Name, index: i, typ: c.Type.Storage(), domain: domainType(c.Type), notNull: c.NotNull})
	}
	return e
}

// rename gives the entry an alias with column names.
func (e *entry) rename(a *pg.Alias, pos int) error {
	if a == nil {
		return nil
	}
	e.name, e.schema = a.Aliasname, ""
	names := listNames(a.Colnames)
	i := 0
	for j := range e.columns {
		if e.columns[j].hidden {
			continue
		}
		if i == len(names) {
			return nil
		}
		e.columns[j].name = names[i]
		i++
	}
	if i < len(names) {
		return pgerror.New(pgerror.InvalidColumnReference,
			"table \"%s\" has %d columns available but %d columns specified", a.Aliasname, i, len(names)).At(pos)
	}
	return nil
}
