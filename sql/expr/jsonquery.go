package expr

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/jsonpath"
	"github.com/streamdb/streamdb/sql/jsonpath/eval"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// JSONOp is one of the query functions of SQL/JSON.
type JSONOp uint8

// The query functions.
const (
	JSONExists JSONOp = iota
	JSONQuery
	JSONValue
)

func (o JSONOp) String() string { return [...]string{"JSON_EXISTS", "JSON_QUERY", "JSON_VALUE"}[o] }

// JSONWrapper says when JSON_QUERY makes an array of what it finds.
type JSONWrapper uint8

// The wrappers.
const (
	WrapNever JSONWrapper = iota
	WrapSeveral
	WrapAlways
)

// JSONSpec is what a query function says beside its operands.
type JSONSpec struct {
	Op         JSONOp
	Names      []string // of the variables
	Wrapper    JSONWrapper
	OmitQuotes bool
	// FailEmpty and FailError are ERROR ON EMPTY and ERROR ON ERROR.
	FailEmpty, FailError bool
	Column               string     // of JSON_TABLE, for messages
	Returning            types.Type // may be a domain
}

func (s *JSONSpec) equal(t *JSONSpec) bool {
	return s.Op == t.Op && s.Wrapper == t.Wrapper && s.OmitQuotes == t.OmitQuotes && s.FailEmpty == t.FailEmpty && s.FailError == t.FailError &&
		s.Column == t.Column && s.Returning == t.Returning && slices.Equal(s.Names, t.Names)
}

// JSONExpr is JSON_EXISTS, JSON_QUERY or JSON_VALUE: what Path finds in Doc.
// OnEmpty and OnError are the values where it finds nothing, or fails; nil is
// NULL. They are evaluated only for the rows that need them.
type JSONExpr struct {
	JSONSpec
	Doc, Path        Expr   // of types jsonb and jsonpath
	Passing          []Expr // values of the variables: jsonb, or dates and times
	OnEmpty, OnError Expr
	Pos              int
}

// Type is the type that values are stored as.
func (e *JSONExpr) Type() types.Type { return e.Returning.Storage() }

// operands are the expressions of e; those that are nil are left out.
func (e *JSONExpr) operands() []Expr {
	out := append([]Expr{e.Doc, e.Path}, e.Passing...)
	if e.OnEmpty != nil {
		out = append(out, e.OnEmpty)
	}
	if e.OnError != nil {
		out = append(out, e.OnError)
	}
	return out
}

// withOperands is e with other operands, in the order of operands.
func (e *JSONExpr) withOperands(list []Expr) *JSONExpr {
	c := *e
	c.Doc, c.Path, c.Passing = list[0], list[1], list[2:2+len(e.Passing):2+len(e.Passing)]
	list = list[2+len(e.Passing):]
	if e.OnEmpty != nil {
		c.OnEmpty, list = list[0], list[1:]
	}
	if e.OnError != nil {
		c.OnError = list[0]
	}
	return &c
}

// jsonOutcome is what became of a row.
type jsonOutcome uint8

const (
	jsonDone jsonOutcome = iota
	jsonEmpty
	jsonFailed
)

// jsonRun is the evaluation of a query function over some rows.
type jsonRun struct {
	*JSONSpec
	x     *Eval
	args  Args
	typs  []types.Type
	paths templates[*jsonpath.Path]
	vars  map[string]eval.Value
	fixed bool // the variables are constants
	pop   *populator
	buf   []byte
}

// jsonQuery evaluates a query function.
func (x *Eval) jsonQuery(n *node, f *frame) *columnar.Vec {
	e := n.json
	eager := 2 + len(e.Passing)
	r := jsonRun{JSONSpec: &e.JSONSpec, x: x, fixed: true, pop: newPopulator(x), paths: templates[*jsonpath.Path]{compile: jsonpath.Parse}}
	rows := 1
	for i, a := range n.args[:eager] {
		v := x.eval(a, f)
		if v.Len() != 1 {
			rows = f.n
			r.fixed = r.fixed && i < 2
		}
		r.args, r.typs = append(r.args, v), append(r.typs, a.typ)
	}
	if n.volatile {
		rows, r.fixed = f.n, false
	}
	oldFrame, oldSkip, oldFan := x.frame, x.skip, x.fan
	x.frame, x.skip, x.fan = f, nil, rows == 1 && f.n != 1
	out := columnar.NewBuilder(n.kind, rows)
	var lists [3][]uint32
	for i := range rows {
		outcome, err := r.row(i, out)
		if err != nil {
			x.Fail(i, pgerror.As(err))
		}
		if out.Len() == i {
			out.Null()
		}
		lists[outcome] = append(lists[outcome], uint32(i))
	}
	x.frame, x.skip, x.fan = oldFrame, oldSkip, oldFan
	v := out.Build()
	var behavior [3]*node
	rest := n.args[eager:]
	if e.OnEmpty != nil {
		behavior[jsonEmpty], rest = rest[0], rest[1:]
	}
	if e.OnError != nil {
		behavior[jsonFailed] = rest[0]
	}
	return x.jsonMerge(v, lists, behavior, f)
}

// jsonMerge fills in the values of the rows that found nothing or failed.
func (x *Eval) jsonMerge(v *columnar.Vec, lists [3][]uint32, behavior [3]*node, f *frame) *columnar.Vec {
	if len(lists[jsonDone]) == v.Len() {
		return v
	}
	if v.Len() != f.n { // one row stands for all
		for k, b := range behavior {
			if len(lists[k]) > 0 && b != nil {
				return x.eval(b, f)
			}
		}
		return v
	}
	m := merger{kind: v.Kind(), n: f.n}
	if done := lists[jsonDone]; len(done) > 0 {
		m.add(x.gather(v, f.n, done), done)
	}
	for k, b := range behavior {
		if rows := lists[k]; len(rows) > 0 && b != nil {
			m.add(x.eval(b, x.child(f, rows)), rows)
		}
	}
	return m.build(x)
}

// row appends the value of row i. An error is one to be raised.
func (r *jsonRun) row(i int, out *columnar.Builder) (jsonOutcome, error) {
	if r.args.Null(0, i) || r.args.Null(1, i) {
		out.Null()
		return jsonDone, nil
	}
	p, err := r.paths.of(r.args.Bytes(1, i))
	if err != nil {
		return jsonDone, err
	}
	o := eval.Options{Silent: !r.FailError, Named: r.variables(i), Zone: r.x.options()}
	doc := types.JSONDoc(r.args.Bytes(0, i))
	if r.Op == JSONExists {
		found, quiet, err := eval.Exists(p, doc, o)
		if err != nil || quiet {
			return jsonFailed, err
		}
		return r.finish(r.exists(out, found))
	}
	found, quiet, err := eval.Find(p, doc, o)
	switch {
	case err != nil || quiet:
		return jsonFailed, err
	case len(found) == 0 && r.FailEmpty:
		return jsonDone, r.errEmpty()
	case len(found) == 0:
		return jsonEmpty, nil
	case r.Op == JSONQuery:
		return r.finish(r.query(out, found))
	}
	return r.finish(r.value(out, found))
}

// finish is what an error of a value means.
func (r *jsonRun) finish(err error) (jsonOutcome, error) {
	switch {
	case err == nil:
		return jsonDone, nil
	case r.FailError:
		return jsonDone, err
	}
	return jsonFailed, nil
}

// variables are the values of the variables for row i.
func (r *jsonRun) variables(i int) map[string]eval.Value {
	if r.vars != nil && r.fixed {
		return r.vars
	}
	r.vars = make(map[string]eval.Value, len(r.Names))
	for k, name := range r.Names {
		v, row := r.args.row(2+k, i)
		r.vars[name] = jsonVariable(r.typs[2+k].OID, v, row)
	}
	return r.vars
}

var jsonNull = func() types.JSONDoc {
	var b types.JSONBuilder
	b.Null()
	return b.Append(nil)
}()

// exists appends what JSON_EXISTS gives; columns of JSON_TABLE may have another
// type than boolean.
func (r *jsonRun) exists(out *columnar.Builder, found bool) error {
	switch t := r.Returning.Storage(); {
	case r.Returning.OID == types.OIDBool:
		out.Bool(found)
		return nil
	case t.OID == types.OIDInt4:
		return r.pop.text(out, r.Returning, []byte{'0' + b2i(found)})
	}
	var b types.JSONBuilder
	b.Bool(found)
	return r.pop.value(out, r.Returning, jsonIn{doc: b.Append(nil), whole: true}, "")
}

func b2i(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// query appends what JSON_QUERY gives.
func (r *jsonRun) query(out *columnar.Builder, found []eval.Value) error {
	var doc types.JSONDoc
	switch {
	case r.Wrapper == WrapAlways, r.Wrapper == WrapSeveral && len(found) > 1:
		var b types.JSONBuilder
		b.Begin(false)
		for _, v := range found {
			b.Doc(v.Doc())
		}
		b.End()
		doc = b.Append(nil)
	case len(found) > 1:
		hint := "Use the WITH WRAPPER clause to wrap SQL/JSON items into an array."
		if r.Column != "" {
			return pgerror.New(pgerror.MoreThanOneSQLJSONItem, "JSON path expression for column \"%s\" must return single item when no wrapper is requested", r.Column).WithHint("%s", hint)
		}
		return pgerror.New(pgerror.MoreThanOneSQLJSONItem, "JSON path expression in JSON_QUERY must return single item when no wrapper is requested").WithHint("%s", hint)
	default:
		doc = found[0].Doc()
	}
	if r.Returning.OID == types.OIDJSONB && !r.OmitQuotes {
		out.Bytes(doc)
		return nil
	}
	return r.pop.unwrapped(out, r.Returning, doc, r.OmitQuotes)
}

// unwrapped appends the value of type t that doc stands for; a string stands
// for itself if omitQuotes, else for its JSON text.
func (p *populator) unwrapped(out *columnar.Builder, t types.Type, doc types.JSONDoc, omitQuotes bool) error {
	if omitQuotes && doc.Kind() == types.JSONKindString {
		p.buf = append(p.buf[:0], doc.Str()...)
		return p.text(out, t, p.buf)
	}
	return p.value(out, t, jsonIn{doc: doc, whole: true}, "")
}

// value appends what JSON_VALUE gives.
func (r *jsonRun) value(out *columnar.Builder, found []eval.Value) error {
	if len(found) > 1 {
		return r.errScalar(pgerror.MoreThanOneSQLJSONItem)
	}
	if typ, v := found[0].Date(); typ != 0 && r.Returning.OID != types.OIDJSON && r.Returning.OID != types.OIDJSONB {
		r.buf = types.AppendText(r.buf[:0], types.Of(typ), v, 0, r.x.options())
		return r.pop.text(out, r.Returning, r.buf)
	}
	doc := found[0].Doc()
	if doc.IsContainer() {
		return r.errScalar(pgerror.SQLJSONScalarRequired)
	}
	switch k := doc.Kind(); {
	case k == types.JSONKindNull:
		return r.pop.null(out, r.Returning)
	case r.Returning.OID == types.OIDJSONB:
		out.Bytes(doc)
		return nil
	case r.Returning.OID == types.OIDJSON:
		out.Extend(doc.AppendText)
		return nil
	case k == types.JSONKindTrue && !r.Returning.OID.IsDomain():
		r.buf = append(r.buf[:0], 't')
	case k == types.JSONKindFalse && !r.Returning.OID.IsDomain():
		r.buf = append(r.buf[:0], 'f')
	default:
		r.buf, _ = doc.AppendScalarText(r.buf[:0])
	}
	return r.pop.text(out, r.Returning, r.buf)
}

func (r *jsonRun) errEmpty() error {
	if r.Column != "" {
		return pgerror.New(pgerror.NoSQLJSONItem, "no SQL/JSON item found for specified path of column \"%s\"", r.Column)
	}
	return pgerror.New(pgerror.NoSQLJSONItem, "no SQL/JSON item found for specified path")
}

func (r *jsonRun) errScalar(code string) error {
	if r.Column != "" {
		return pgerror.New(code, "JSON path expression for column \"%s\" must return single scalar item", r.Column)
	}
	return pgerror.New(code, "JSON path expression in JSON_VALUE must return single scalar item")
}

// JSONBehavior makes the value of an ON EMPTY or ON ERROR clause (where) whose
// words are behavior, of the type that a query function returns. e is jsonb or
// a NULL, or has the type already; what it cannot be converted to is an error.
func JSONBehavior(e Expr, s *JSONSpec, where, behavior string) Expr {
	t := s.Returning
	if !t.OID.IsDomain() && (e.Type().OID != types.OIDJSONB || t.OID == types.OIDJSONB && !s.OmitQuotes) {
		return e
	}
	arg := types.Of(e.Type().OID)
	omit := s.OmitQuotes
	fn := makeOnce(fnKey("json behavior "+where+behavior+string([]byte{b2i(omit)}), arg.OID, t.OID, types.OID(t.Mod)), func() *Function {
		f := &Function{Name: "json_behavior", Internal: true, Args: []types.Type{arg}, Ret: types.Of(t.Storage().OID), Consts: ScalarConsts}
		f.Eval = func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			p := newPopulator(x)
			return RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
				var err error
				switch v, row := a.row(0, i); {
				case v.Null(row):
					err = p.null(out, t)
				case arg.OID == types.OIDJSONB:
					err = p.unwrapped(out, t, v.Bytes(row), omit)
				default:
					one := v.Slice(row, row+1)
					if err = p.check(t.OID, one); err == nil {
						out.AppendFrom(one, 0)
					}
				}
				if err == nil {
					return nil
				}
				return pgerror.New(pgerror.DatatypeMismatch, "could not coerce %s expression (%s) to the RETURNING type", where, behavior).
					WithDetail("%s", pgerror.As(err).Message)
			})(c, x, args, n)
		}
		return f
	})
	return &Call{Fn: fn, Args: []Expr{e}, Typ: t.Storage()}
}

// volatility is Stable if the path may compare dates and times, for which the
// session's time zone counts.
func (e *JSONExpr) volatility() Volatility {
	c, ok := e.Path.(*Const)
	if !ok {
		return Stable
	}
	if !c.Val.Null(0) {
		if p, err := jsonpath.Parse(string(c.Val.Bytes(0))); err != nil || p.HasDates() {
			return Stable
		}
	}
	for _, a := range e.Passing {
		if a.Type().OID != types.OIDJSONB {
			return Stable
		}
	}
	return Immutable
}

// jsonQuery prints a query function.
func (p *printer) jsonQuery(e *JSONExpr) {
	p.WriteString(e.Op.String() + "(")
	p.expr(e.Doc)
	p.WriteString(", ")
	if c, ok := e.Path.(*Const); ok && !c.Val.Null(0) {
		p.WriteString(QuoteLiteral(string(types.AppendText(nil, c.Typ, c.Val, 0, nil))))
	} else {
		p.expr(e.Path)
	}
	for i, a := range e.Passing {
		if i == 0 {
			p.WriteString(" PASSING ")
		} else {
			p.WriteString(", ")
		}
		p.expr(a)
		p.WriteString(" AS " + QuoteIdent(e.Names[i]))
	}
	if e.Op != JSONExists || e.Returning.OID != types.OIDBool {
		p.WriteString(" RETURNING " + e.Returning.String())
	}
	if e.Op == JSONQuery {
		p.WriteString([...]string{" WITHOUT WRAPPER", " WITH CONDITIONAL WRAPPER", " WITH UNCONDITIONAL WRAPPER"}[e.Wrapper])
		if e.OmitQuotes {
			p.WriteString(" OMIT QUOTES")
		} else {
			p.WriteString(" KEEP QUOTES")
		}
	}
	p.jsonBehavior(e.OnEmpty, e.FailEmpty, "EMPTY")
	p.jsonBehavior(e.OnError, e.FailError, "ERROR")
	p.WriteByte(')')
}

func (p *printer) jsonBehavior(e Expr, fail bool, where string) {
	switch {
	case fail:
		p.WriteString(" ERROR ON " + where)
	case e != nil:
		p.WriteString(" DEFAULT ")
		p.expr(e)
		p.WriteString(" ON " + where)
	}
}
