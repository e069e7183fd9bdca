package planner

import (
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// binder is the state of binding one statement.
type binder struct {
	ctx *Context
	src source
	// params holds the one *expr.Param of each parameter number.
	params map[int32]*expr.Param
	// shared are the uncorrelated CTEs and views, in the order in which they
	// were completed: each is bound once, and computed once if used twice.
	shared []*sharedRel
	views  map[plan.ObjectID]*sharedRel
	rowIDs map[plan.ObjectID]*sharedRel // tables with their row ids
	nextID int
	deps   []plan.ObjectID // used by the statement itself
	deep   []plan.ObjectID // also by its views
	inView int             // nesting of views being bound
	depth  int             // nesting of expressions and queries
	// refs tells where columns were named, for the errors of grouping.
	refs   map[expr.Expr]columnUse
	shapes shapes // of the records in it
	// domains are the expressions whose type is a domain.
	domains map[expr.Expr]types.OID
	// recursing are the ids of the recursions being bound.
	recursing map[int]bool
	// natural says that the query that is bound next is wanted in the order in which
	// functions and VALUES give its rows.
	natural bool
	// collated are the expressions that have a collation by a COLLATE clause.
	collated map[*pg.Node]explicitCollation
	// linkNames are the names of the columns of scalar subqueries.
	linkNames map[*pg.SubLink]string
	// given are the expressions that parameters without a number stand for.
	given map[*pg.Node]expr.Expr
	// extended are the rows behind those that outer joins may put NULL for.
	extended map[expr.Expr]expr.Expr
	// writes says that WITH may change tables; steps are the WITH queries that
	// are run before the rest then.
	writes     bool
	inner      bool // within the query of INSERT
	steps      []Step
	transients int
	// function is what the body of a SQL function that is being bound sees;
	// inlined is the nesting of such bodies.
	function *functionScope
	inlined  int
	checking bool // the body is that of a function that is being made
	// top is the query that is the statement.
	top *pg.SelectStmt
	// rows, if not nil, takes the volatile queries of `(a, b) = (SELECT …)`.
	rows *sharedRows
	// mergeVerbs are the words of the actions of the MERGE being bound.
	mergeVerbs []string
	// mergeAction is what merge_action() stands for in a RETURNING clause.
	mergeAction expr.Expr
}

// source maps the byte locations of a tree to positions in the text.
type source struct {
	text  string
	base  int
	ascii bool
	// silent is set in views: their text is not the user's, so that errors
	// have no position.
	silent bool
	// marks[i] is the number of characters before byte i*markStride.
	marks []int
}

const markStride = 256

func newSource(text string, base int) source {
	s := source{text: text, base: base, ascii: true}
	for i := 0; i < len(text); i++ {
		if text[i] >= 0x80 {
			s.ascii = false
			break
		}
	}
	if !s.ascii {
		n := 0
		for i := 0; i < len(text); i++ {
			if i%markStride == 0 {
				s.marks = append(s.marks, n)
			}
			if utf8.RuneStart(text[i]) {
				n++
			}
		}
	}
	return s
}

// pos is the 1-based character position of a location in the tree, 0 if it has none.
func (s *source) pos(loc int32) int {
	at := s.base + int(loc)
	if loc < 0 || s.silent || at > len(s.text) {
		return 0
	}
	if s.ascii || at < 0 {
		return at + 1
	}
	if at == len(s.text) {
		return utf8.RuneCountInString(s.text) + 1
	}
	n := s.marks[at/markStride]
	for i := at / markStride * markStride; i < at; i++ {
		if utf8.RuneStart(s.text[i]) {
			n++
		}
	}
	return n + 1
}

func newBinder(ctx *Context, text string, base int) *binder {
	return &binder{
		ctx:    ctx,
		src:    newSource(text, base),
		params: map[int32]*expr.Param{},
		views:  map[plan.ObjectID]*sharedRel{},
		rowIDs: map[plan.ObjectID]*sharedRel{},
		refs:   map[expr.Expr]columnUse{},

		domains:   map[expr.Expr]types.OID{},
		recursing: map[int]bool{},
		linkNames: map[*pg.SubLink]string{},
	}
}

func (b *binder) pos(loc int32) int { return b.src.pos(loc) }

// Bind resolves the names and types of a query, INSERT, UPDATE, DELETE or MERGE.
func Bind(ctx *Context, stmt *parser.Statement) (Bound, error) {
	switch n := stmt.Node.(type) {
	case *parser.Select:
		return bindQuery(ctx, stmt.Text, &n.Query, true)
	case *parser.Postgres:
		b := newBinder(ctx, stmt.Text, n.Base)
		b.writes = true
		w, err := b.write(n.Stmt, nil)
		if err != nil {
			return nil, err
		}
		if w.Params, err = b.finishParams(); err != nil {
			return nil, err
		}
		w.Steps, w.DeepDeps = b.steps, b.deep
		return w, nil
	}
	return nil, pgerror.Unsupported("binding this statement")
}

// BindQuery resolves a query embedded in a statement, such as that of a view;
// text is the whole text that it is part of.
func BindQuery(ctx *Context, text string, q *parser.Query) (*Query, error) {
	return bindQuery(ctx, text, q, false)
}

// bindQuery binds a query; writes says that its WITH may change tables.
func bindQuery(ctx *Context, text string, q *parser.Query, writes bool) (*Query, error) {
	b := newBinder(ctx, text, q.Base)
	b.writes, b.top = writes, q.Stmt.GetSelectStmt()
	bq, err := b.query(q.Stmt.GetSelectStmt(), nil, nil, resolveUnknown)
	if err != nil {
		return nil, err
	}
	params, err := b.finishParams()
	if err != nil {
		return nil, err
	}
	out := &Query{Params: params, Deps: b.deps, DeepDeps: b.deep, Columns: b.resultColumns(bq), Steps: b.steps}
	out.Calls = bq.calls
	out.Rel, err = b.finishRel(bq.sorted())
	return out, err
}

// finishRel puts the shared relations around a bound plan and gives the
// literals that depend on the session their values.
func (b *binder) finishRel(rel plan.Rel) (plan.Rel, error) {
	rel = b.withShared(rel)
	if b.ctx.Session == nil {
		return rel, nil
	}
	var failed error
	rel = mapRels(rel, func(r plan.Rel) plan.Rel {
		return plan.MapExprs(r, func(e expr.Expr) expr.Expr {
			out, err := expr.FoldLiterals(e, b.ctx.Session)
			if err != nil && failed == nil {
				failed = err
			}
			return out
		})
	})
	return rel, failed
}

func (b *binder) resultColumns(q *boundQuery) []ResultColumn {
	cols := plainRecords(q.rel.Columns())
	out := make([]ResultColumn, len(q.cols))
	for i, c := range q.cols {
		out[i] = ResultColumn{Column: cols[i], Domain: c.domain, TableOID: c.tableOID, AttrNum: c.attNum}
		out[i].Name = c.name
	}
	return out
}

// param is the parameter $n.
func (b *binder) param(n int32, pos int) (expr.Expr, error) {
	if n < 1 || n > 65535 {
		return nil, pgerror.New(pgerror.UndefinedParameter, "there is no parameter $%d", n).At(pos)
	}
	p := b.params[n]
	if p == nil {
		p = &expr.Param{Index: int(n), Typ: types.Unknown, Pos: pos}
		if int(n) <= len(b.ctx.ParamTypes) && b.ctx.ParamTypes[n-1] != 0 {
			p.Typ = types.Of(b.ctx.ParamTypes[n-1])
		}
		b.params[n] = p
	}
	return p, nil
}

// finishParams lists the types of the parameters once all is bound. One that
// no use gave a type is an error.
func (b *binder) finishParams() ([]types.Type, error) {
	n := len(b.ctx.ParamTypes)
	for i := range b.params {
		n = max(n, int(i))
	}
	if n == 0 {
		return nil, nil
	}
	out := make([]types.Type, n)
	for i := range out {
		p := b.params[int32(i+1)]
		switch {
		case p != nil && p.Typ.OID != types.OIDUnknown:
			out[i] = types.Of(p.Typ.OID)
		case p == nil && i < len(b.ctx.ParamTypes) && b.ctx.ParamTypes[i] != 0 && b.ctx.ParamTypes[i] != types.OIDUnknown:
			out[i] = types.Of(b.ctx.ParamTypes[i])
		default:
			e := pgerror.New(pgerror.IndeterminateDatatype, "could not determine data type of parameter $%d", i+1)
			return nil, e
		}
	}
	return out, nil
}

// use notes that the statement depends on an object.
func (b *binder) use(o *catalog.Object) {
	add := func(list *[]plan.ObjectID) {
		for _, id := range *list {
			if id == o.ID {
				return
			}
		}
		*list = append(*list, o.ID)
	}
	add(&b.deep)
	if b.inView == 0 {
		add(&b.deps)
	}
}

// searchPath is where unqualified names are looked up, in order.
func (b *binder) searchPath() []string {
	for _, s := range b.ctx.SearchPath {
		if s == catalog.SchemaPgCatalog {
			return b.ctx.SearchPath
		}
	}
	return append([]string{catalog.SchemaPgCatalog}, b.ctx.SearchPath...)
}

// relation finds the relation that r names.
func (b *binder) relation(r *pg.RangeVar) (*catalog.Object, error) {
	pos := b.pos(r.Location)
	if r.Catalogname != "" && r.Catalogname != b.ctx.Database {
		return nil, pgerror.New(pgerror.FeatureNotSupported,
			"cross-database references are not implemented: \"%s.%s.%s\"", r.Catalogname, r.Schemaname, r.Relname).At(pos)
	}
	if r.Schemaname != "" {
		schema := r.Schemaname
		if schema == catalog.SchemaTemp {
			schema = b.ctx.TempSchema
		}
		if o := b.ctx.Catalog.Get(catalog.KindTable, schema, r.Relname); o != nil {
			return o, nil
		}
		// PostgreSQL tells of a missing schema by the relation, too.
		return nil, pgerror.New(pgerror.UndefinedTable, "relation \"%s.%s\" does not exist", r.Schemaname, r.Relname).At(pos)
	}
	for _, schema := range b.searchPath() {
		if o := b.ctx.Catalog.Get(catalog.KindTable, schema, r.Relname); o != nil {
			return o, nil
		}
	}
	for _, schema := range catalog.LastSchemas {
		if o := b.ctx.Catalog.Get(catalog.KindTable, schema, r.Relname); o != nil {
			return o, nil
		}
	}
	return nil, pgerror.New(pgerror.UndefinedTable, "relation \"%s\" does not exist", r.Relname).At(pos)
}

// unit is the relation with one row and no columns.
func unit() plan.Rel { return &plan.Constant{Rows: columnar.Batch{N: 1}} }

// listNames are the strings of a list of String nodes.
func listNames(list []*pg.Node) []string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = n.GetString_().GetSval()
	}
	return out
}

func dotted(names []string) string { return strings.Join(names, ".") }
