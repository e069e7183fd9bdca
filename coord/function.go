package coord

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// createFunction runs CREATE FUNCTION and CREATE PROCEDURE … LANGUAGE sql.
func (s *Session) createFunction(d *ddlState, p *prepared, n *pg.CreateFunctionStmt) (string, error) {
	names := listStrings(n.Funcname)
	name := parser.Name{Name: names[len(names)-1]}
	if len(names) > 1 {
		name.Schema = names[len(names)-2]
	}
	schema, _, err := s.target(d, catalog.KindFunction, name)
	if err != nil {
		return "", err
	}
	o := &catalog.Object{Schema: schema, Name: name.Name, Kind: catalog.KindFunction,
		Function: &catalog.Function{Volatility: "volatile", Procedure: n.IsProcedure}}
	options, err := functionOptions(p, n, o.Function)
	if err != nil {
		return "", err
	}
	if err := s.functionSignature(p, n, o.Function); err != nil {
		return "", err
	}
	if err := options(); err != nil {
		return "", err
	}
	exists := d.cat.Get(catalog.KindFunction, schema, o.Function.Key(o.Name))
	if exists != nil {
		if err := replaceableFunction(exists, o, n.Replace); err != nil {
			return "", err
		}
	}
	ctx := s.bindContext(nil)
	var deps []plan.ObjectID
	if o.Function.Body, o.Function.Writes, deps, err = planner.CheckFunction(ctx, withBody(o)); err != nil {
		return "", inBody(err, p.stmt.Text, o.Function.Source)
	}
	if n.SqlBody != nil { // a body in quotes is free to lose what it names
		o.Deps = deps
	}
	o.SQL = functionSQL(o)
	if exists == nil {
		if o, err = s.c.newObject(o); err != nil {
			return "", err
		}
	} else {
		o.ID, o.OID, o.Comment = exists.ID, exists.OID, exists.Comment
	}
	d.apply(catalog.Change{Put: o})
	s.rebuildViews(d, o.ID) // what uses it is planned anew
	return "CREATE " + strings.ToUpper(routine(o.Function)), nil
}

// routine is what a function is called in messages.
func routine(f *catalog.Function) string {
	if f.Procedure {
		return "procedure"
	}
	return "function"
}

// withBody is the function with its body as it was written.
func withBody(o *catalog.Object) *catalog.Object {
	c := *o
	f := *o.Function
	f.Body = f.Source
	c.Function = &f
	return &c
}

// inBody moves the position of an error in a function's body to where the body
// stands in the statement, if it stands there as it is.
func inBody(err error, text, body string) error {
	e := *pgerror.As(err)
	at := strings.Index(text, body)
	if e.Pos == 0 || body == "" || at < 0 {
		e.Pos = 0
		return &e
	}
	e.Pos += utf8.RuneCountInString(text[:at])
	return &e
}

func replaceableFunction(exists, o *catalog.Object, replace bool) error {
	a, b := exists.Function, o.Function
	invalid := func(format string, args ...any) *pgerror.Error {
		return pgerror.New(pgerror.InvalidFunctionDefinition, format, args...).
			WithHint("Use DROP %s %s first.", strings.ToUpper(routine(a)), signatureText(exists))
	}
	same := slices.EqualFunc(a.Table, b.Table, func(x, y catalog.Argument) bool { return x.Name == y.Name && x.Type == y.Type })
	switch {
	case !replace:
		return pgerror.New(pgerror.DuplicateFunction, "function \"%s\" already exists with same argument types", o.Name)
	case a.Procedure != b.Procedure:
		return pgerror.New(pgerror.WrongObjectType, "cannot change routine kind").WithDetail("\"%s\" is a %s.", o.Name, routine(a))
	case a.Procedure && (a.Table == nil) != (b.Table == nil):
		return invalid("cannot change whether a procedure has output parameters")
	case a.Returns != b.Returns || a.Set != b.Set:
		return invalid("cannot change return type of existing function")
	case !same && (len(a.Table) > 1 || len(b.Table) > 1):
		return invalid("cannot change return type of existing function").WithDetail("Row type defined by OUT parameters is different.")
	case !same:
		return invalid("cannot change return type of existing function")
	}
	for i, x := range a.Args {
		if x.Name != "" && x.Name != b.Args[i].Name {
			return invalid("cannot change name of input parameter \"%s\"", x.Name)
		}
		if x.Default != "" && b.Args[i].Default == "" {
			return invalid("cannot remove parameter defaults from existing function")
		}
	}
	return nil
}

// signatureReader reads the arguments of a function.
type signatureReader struct {
	s        *Session
	p        *prepared
	f        *catalog.Function
	defaults bool
	names    map[string]byte // by what they are: 'i' input, 'o' output
}

// typeOf resolves the type of an argument or result.
func (r *signatureReader) typeOf(t *pg.TypeName) (types.Type, error) {
	typ, err := planner.ResolveType(r.s.bindContext(nil), r.p.stmt.Text, parser.TypeName{Node: t, Base: r.p.stmt.Start})
	return types.Of(typ.OID), err
}

// functionSignature reads the arguments and the result of a function.
func (s *Session) functionSignature(p *prepared, n *pg.CreateFunctionStmt, f *catalog.Function) error {
	r := &signatureReader{s: s, p: p, f: f, names: map[string]byte{}}
	for _, x := range n.Parameters {
		if err := r.parameter(x.GetFunctionParameter()); err != nil {
			return err
		}
	}
	return r.returns(n)
}

// parameter reads one argument.
func (r *signatureReader) parameter(a *pg.FunctionParameter) error {
	t, err := r.typeOf(a.ArgType)
	if err != nil {
		if e := pgerror.As(err); e.Code == pgerror.UndefinedObject {
			return pgerror.New(e.Code, "type %s does not exist", strings.Join(listStrings(a.ArgType.Names), "."))
		}
		return err
	}
	if t.OID == types.OIDInternal || t.OID == types.OIDTrigger || t.OID == types.OIDVoid {
		return pgerror.New(pgerror.InvalidFunctionDefinition, "SQL functions cannot have arguments of type %s", t)
	}
	arg := catalog.Argument{Name: a.Name, Type: t}
	if a.Defexpr != nil {
		if err := r.defaultOf(a, &arg); err != nil {
			return err
		}
	}
	input, output := true, false
	switch a.Mode {
	case pg.FunctionParameterMode_FUNC_PARAM_OUT:
		input, output, arg.Mode = false, true, 'o'
	case pg.FunctionParameterMode_FUNC_PARAM_INOUT:
		output, arg.Mode = true, 'b'
	case pg.FunctionParameterMode_FUNC_PARAM_TABLE:
		input, output, arg.Mode = false, true, 't'
	case pg.FunctionParameterMode_FUNC_PARAM_VARIADIC:
		arg.Mode = 'v'
		if t.OID.Elem() == 0 && t.OID != types.OIDAnyArray && t.OID != types.OIDAnyCompatibleArray {
			return pgerror.New(pgerror.InvalidFunctionDefinition, "VARIADIC parameter must be an array")
		}
	default:
		arg.Mode = 'i'
	}
	if err := r.name(arg); err != nil {
		return err
	}
	f := r.f
	if input {
		if n := len(f.Args); n > 0 && f.Args[n-1].Mode == 'v' {
			return pgerror.New(pgerror.InvalidFunctionDefinition, "VARIADIC parameter must be the last input parameter")
		}
		if r.defaults && arg.Default == "" {
			return pgerror.New(pgerror.InvalidFunctionDefinition, "input parameters after one with a default value must also have defaults")
		}
		r.defaults = arg.Default != ""
		f.Args = append(f.Args, arg)
	}
	f.All = append(f.All, arg)
	if output {
		if arg.Name == "" {
			arg.Name = fmt.Sprintf("column%d", len(f.Table)+1)
		}
		f.Table = append(f.Table, arg)
	}
	return nil
}

// name refuses a name that another parameter has, but for one of RETURNS TABLE
// that an input has.
func (r *signatureReader) name(a catalog.Argument) error {
	if a.Name == "" {
		return nil
	}
	side := byte('i')
	if a.Mode == 't' {
		side = 't'
	}
	if have := r.names[a.Name]; have == side {
		return pgerror.New(pgerror.InvalidFunctionDefinition, "parameter name \"%s\" used more than once", a.Name)
	}
	r.names[a.Name] = side
	return nil
}

func (r *signatureReader) defaultOf(a *pg.FunctionParameter, arg *catalog.Argument) (err error) {
	switch a.Mode {
	case pg.FunctionParameterMode_FUNC_PARAM_OUT, pg.FunctionParameterMode_FUNC_PARAM_TABLE:
		return pgerror.New(pgerror.InvalidFunctionDefinition, "only input parameters can have default values")
	}
	if arg.Default, err = parser.DeparseExpr(a.Defexpr); err != nil || expr.IsPolymorphic(arg.Type.OID) {
		return err
	}
	if _, err = r.s.bindDefault(r.p.stmt.Text, &parser.Expr{Node: a.Defexpr, Base: r.p.stmt.Start}, a.Name, arg.Type); err == nil {
		arg.Default = r.s.fixed(arg.Default, nil, arg.Type)
	}
	return err
}

// returns reads what a function returns.
func (r *signatureReader) returns(n *pg.CreateFunctionStmt) error {
	f := r.f
	f.Returns = types.Type{OID: types.OIDRecord, Mod: -1}
	switch ret := n.ReturnType; {
	case f.Procedure:
		if f.Table == nil {
			f.Returns = types.Void
		}
		return nil
	case ret == nil && f.Table == nil:
		return pgerror.New(pgerror.InvalidFunctionDefinition, "function result type must be specified")
	case ret == nil:
		if len(f.Table) == 1 {
			f.Returns = f.Table[0].Type
		}
		return r.polymorphicResult()
	}
	ret := n.ReturnType
	f.Set = ret.Setof
	t, err := r.typeOf(ret)
	if err != nil {
		e := *pgerror.As(err)
		if e.Code == pgerror.UndefinedObject {
			e.Pos = 0
		}
		return &e
	}
	outs := slices.ContainsFunc(f.Table, func(a catalog.Argument) bool { return a.Mode != 't' })
	want := f.Returns
	if len(f.Table) == 1 {
		want = f.Table[0].Type
	}
	switch {
	case t.OID == types.OIDTrigger || t.OID == types.OIDInternal || t.OID == types.OIDCString:
		return pgerror.New(pgerror.InvalidFunctionDefinition, "SQL functions cannot return type %s", t)
	case outs && t != want:
		return pgerror.New(pgerror.InvalidFunctionDefinition, "function result type must be %s because of OUT parameters", want)
	}
	if f.Returns = want; f.Table == nil {
		f.Returns = t
	}
	return r.polymorphicResult()
}

// polymorphicResult refuses a result whose type no argument tells.
func (r *signatureReader) polymorphicResult() error {
	outs := planner.ResultTypes(r.f)
	for _, t := range outs {
		var family []types.OID
		switch t.OID {
		case types.OIDAnyElement, types.OIDAnyArray, types.OIDAnyNonArray, types.OIDAnyEnum:
			family = []types.OID{types.OIDAnyElement, types.OIDAnyArray, types.OIDAnyNonArray, types.OIDAnyEnum, types.OIDAnyRange, types.OIDAnyMultirange}
		case types.OIDAnyRange, types.OIDAnyMultirange:
			family = []types.OID{types.OIDAnyRange, types.OIDAnyMultirange}
		case types.OIDAnyCompatible, types.OIDAnyCompatibleArray, types.OIDAnyCompatibleNonArray:
			family = []types.OID{types.OIDAnyCompatible, types.OIDAnyCompatibleArray, types.OIDAnyCompatibleNonArray, types.OIDAnyCompatibleRange, types.OIDAnyCompatibleMultirange}
		default:
			continue
		}
		if slices.ContainsFunc(r.f.Args, func(a catalog.Argument) bool { return slices.Contains(family, a.Type.OID) }) {
			continue
		}
		names := make([]string, len(family))
		for i, o := range family {
			names[i] = o.Name()
		}
		list := strings.Join(names[:len(names)-1], ", ") + ", or " + names[len(names)-1]
		if len(names) == 2 {
			list = names[0] + " or " + names[1]
		}
		return pgerror.New(pgerror.InvalidFunctionDefinition, "cannot determine result data type").
			WithDetail("A result of type %s requires at least one input of type %s.", t, list)
	}
	return nil
}

// functionOptions reads LANGUAGE, AS and what else stands after the arguments;
// what it returns checks the body, which PostgreSQL does after the signature.
func functionOptions(p *prepared, n *pg.CreateFunctionStmt, f *catalog.Function) (check func() error, err error) {
	language := ""
	var body []string // in quotes
	if n.SqlBody != nil {
		language = "sql"
	}
	seen := map[string]bool{}
	for _, x := range n.Options {
		e := x.GetDefElem()
		pos := 0
		if e.Location >= 0 {
			pos = utf8.RuneCountInString(p.stmt.Text[:min(len(p.stmt.Text), p.stmt.Start+int(e.Location))]) + 1
		}
		if seen[e.Defname] && e.Defname != "set" {
			return nil, pgerror.New(pgerror.SyntaxError, "conflicting or redundant options").At(pos)
		}
		seen[e.Defname] = true
		switch e.Defname {
		case "volatility", "strict", "window", "leakproof", "parallel", "cost", "rows", "support":
			if f.Procedure {
				return nil, pgerror.New(pgerror.InvalidFunctionDefinition, "invalid attribute in procedure definition").At(pos)
			}
		}
		switch e.Defname {
		case "language":
			language = strings.ToLower(e.Arg.GetString_().GetSval())
		case "as":
			body = listStrings(e.Arg.GetList().GetItems())
		case "volatility":
			f.Volatility = e.Arg.GetString_().GetSval()
		case "strict":
			f.Strict = e.Arg.GetBoolean().GetBoolval()
		case "window":
			return nil, pgerror.Unsupported("WINDOW in CREATE FUNCTION")
		}
	}
	if language == "" {
		return nil, pgerror.New(pgerror.InvalidFunctionDefinition, "no language specified")
	}
	if err := knownLanguage(language); err != nil {
		return nil, err
	}
	return func() error { return functionSource(n, f, body) }, nil
}

// knownLanguage refuses the languages that there are not.
func knownLanguage(language string) error {
	switch language {
	case "sql":
		return nil
	case "plpgsql", "c", "internal":
		return pgerror.Unsupported("language " + language)
	}
	return pgerror.New(pgerror.UndefinedObject, "language \"%s\" does not exist", language)
}

// functionSource keeps the body of a function.
func functionSource(n *pg.CreateFunctionStmt, f *catalog.Function, body []string) error {
	switch {
	case n.SqlBody == nil && body == nil:
		return pgerror.New(pgerror.InvalidFunctionDefinition, "no function body specified")
	case n.SqlBody != nil && body != nil:
		return pgerror.New(pgerror.InvalidFunctionDefinition, "duplicate function body specified")
	case len(body) > 1:
		return pgerror.New(pgerror.InvalidFunctionDefinition, "only one AS item needed for language \"sql\"")
	case body != nil:
		f.Source = body[0]
		return nil
	}
	text, err := parser.DeparseBody(n.SqlBody)
	f.Source = text
	return err
}
