package coord

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/types"
)

// createFunction runs CREATE FUNCTION … LANGUAGE sql.
func (s *Session) createFunction(d *ddlState, p *prepared, n *pg.CreateFunctionStmt) (string, error) {
	if n.IsProcedure {
		return "", pgerror.Unsupported("CREATE PROCEDURE")
	}
	names := listStrings(n.Funcname)
	name := parser.Name{Name: names[len(names)-1]}
	if len(names) > 1 {
		name.Schema = names[len(names)-2]
	}
	schema, _, err := s.target(d, catalog.KindFunction, name)
	if err != nil {
		return "", err
	}
	o := &catalog.Object{Schema: schema, Name: name.Name, Kind: catalog.KindFunction, Function: &catalog.Function{Volatility: "volatile"}}
	if err := s.functionSignature(d, p, n, o.Function); err != nil {
		return "", err
	}
	if err := functionOptions(n, o.Function); err != nil {
		return "", err
	}
	exists := d.cat.Get(catalog.KindFunction, schema, o.Function.Signature(o.Name))
	if exists != nil {
		if err := replaceableFunction(exists, o, n.Replace); err != nil {
			return "", err
		}
	}
	ctx := s.bindContext(nil)
	if o.Function.Body, err = planner.CheckFunction(ctx, withBody(o)); err != nil {
		return "", err
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
	for _, u := range d.cat.Closure(o.ID) { // what uses it is planned anew
		if u.Maintained() {
			d.rebuilt[u.ID] = true
		}
	}
	return "CREATE FUNCTION", nil
}

// withBody is the function with its body as it was written.
func withBody(o *catalog.Object) *catalog.Object {
	c := *o
	f := *o.Function
	f.Body = f.Source
	c.Function = &f
	return &c
}

func replaceableFunction(exists, o *catalog.Object, replace bool) error {
	if !replace {
		return pgerror.New(pgerror.DuplicateFunction, "function \"%s\" already exists with same argument types", o.Name)
	}
	a, b := exists.Function, o.Function
	if a.Returns != b.Returns || a.Set != b.Set || !slices.EqualFunc(a.Table, b.Table, func(x, y catalog.Argument) bool { return x.Name == y.Name && x.Type == y.Type }) {
		return pgerror.New(pgerror.InvalidFunctionDefinition, "cannot change return type of existing function").
			WithHint("Use DROP FUNCTION %s first.", exists.Function.Signature(exists.Name))
	}
	for i, x := range a.Args {
		if x.Name != "" && x.Name != b.Args[i].Name {
			return pgerror.New(pgerror.InvalidFunctionDefinition, "cannot change name of input parameter \"%s\"", x.Name).
				WithHint("Use DROP FUNCTION %s first.", exists.Function.Signature(exists.Name))
		}
		if x.Default != "" && b.Args[i].Default == "" {
			return pgerror.New(pgerror.InvalidFunctionDefinition, "cannot remove parameter defaults from existing function").
				WithHint("Use DROP FUNCTION %s first.", exists.Function.Signature(exists.Name))
		}
	}
	return nil
}

// functionSignature reads the arguments and the result of a function.
func (s *Session) functionSignature(d *ddlState, p *prepared, n *pg.CreateFunctionStmt, f *catalog.Function) error {
	resolve := func(t *pg.TypeName) (types.Type, error) {
		typ, err := planner.ResolveType(s.bindContext(nil), p.stmt.Text, parser.TypeName{Node: t, Base: p.stmt.Start})
		return types.Of(typ.OID), err
	}
	defaults := false
	for _, x := range n.Parameters {
		a := x.GetFunctionParameter()
		t, err := resolve(a.ArgType)
		if err != nil {
			return err
		}
		arg := catalog.Argument{Name: a.Name, Type: t}
		if a.Defexpr != nil {
			if arg.Default, err = parser.DeparseExpr(a.Defexpr); err != nil {
				return err
			}
			if _, err := s.bindDefault(p.stmt.Text, &parser.Expr{Node: a.Defexpr, Base: p.stmt.Start}, a.Name, t); err != nil {
				return err
			}
		}
		input, output := false, false
		switch a.Mode {
		case pg.FunctionParameterMode_FUNC_PARAM_OUT:
			output, arg.Mode = true, 'o'
		case pg.FunctionParameterMode_FUNC_PARAM_INOUT:
			input, output, arg.Mode = true, true, 'b'
		case pg.FunctionParameterMode_FUNC_PARAM_TABLE:
			output, arg.Mode = true, 't'
		case pg.FunctionParameterMode_FUNC_PARAM_VARIADIC:
			input, arg.Mode = true, 'v'
			if t.OID.Elem() == 0 {
				return pgerror.New(pgerror.InvalidFunctionDefinition, "VARIADIC parameter must be an array")
			}
		default:
			input, arg.Mode = true, 'i'
		}
		if input {
			if n := len(f.Args); n > 0 && f.Args[n-1].Mode == 'v' {
				return pgerror.New(pgerror.InvalidFunctionDefinition, "VARIADIC parameter must be the last input parameter")
			}
			if defaults && arg.Default == "" {
				return pgerror.New(pgerror.InvalidFunctionDefinition, "input parameters after one with a default value must also have defaults")
			}
			defaults = arg.Default != ""
			if a.Name != "" && slices.ContainsFunc(f.Args, func(o catalog.Argument) bool { return o.Name == a.Name }) {
				return pgerror.New(pgerror.InvalidFunctionDefinition, "parameter name \"%s\" used more than once", a.Name)
			}
			f.Args = append(f.Args, arg)
		}
		if output {
			if arg.Name == "" {
				arg.Name = fmt.Sprintf("column%d", len(f.Table)+1)
			}
			f.Table = append(f.Table, arg)
		}
	}
	return s.functionReturns(d, n, f, resolve)
}

// functionReturns reads what a function returns.
func (s *Session) functionReturns(d *ddlState, n *pg.CreateFunctionStmt, f *catalog.Function, resolve func(*pg.TypeName) (types.Type, error)) error {
	f.Returns = types.Type{OID: types.OIDRecord, Mod: -1}
	r := n.ReturnType
	switch {
	case r == nil && f.Table == nil:
		return pgerror.New(pgerror.InvalidFunctionDefinition, "function result type must be specified")
	case r == nil:
		if len(f.Table) == 1 {
			f.Returns = f.Table[0].Type
		}
		return nil
	}
	f.Set = r.Setof
	names := listStrings(r.Names)
	schema := ""
	if len(names) > 1 {
		schema = names[len(names)-2]
	}
	if rel := d.cat.Resolve(catalog.KindTable, schema, names[len(names)-1], s.relationPath()); rel != nil && rel.Relation() && rel.Kind != catalog.KindVirtual && f.Table == nil {
		for _, c := range rel.Columns {
			f.Table = append(f.Table, catalog.Argument{Name: c.Name, Type: types.Of(c.Type.OID), Mode: 't'})
		}
		return nil
	}
	t, err := resolve(r)
	if err != nil {
		return err
	}
	if t.OID == types.OIDVoid {
		return pgerror.Unsupported("a SQL function that returns void")
	}
	if len(f.Table) <= 1 {
		f.Returns = t
	}
	return nil
}

// functionOptions reads LANGUAGE, AS and what else stands after the arguments.
func functionOptions(n *pg.CreateFunctionStmt, f *catalog.Function) error {
	language, given := "", false // given: a body in quotes
	if n.SqlBody != nil {
		language = "sql"
	}
	for _, x := range n.Options {
		e := x.GetDefElem()
		switch e.Defname {
		case "language":
			language = strings.ToLower(e.Arg.GetString_().GetSval())
		case "as":
			body := listStrings(e.Arg.GetList().GetItems())
			f.Source, given = body[0], true
		case "volatility":
			f.Volatility = e.Arg.GetString_().GetSval()
		case "strict":
			f.Strict = e.Arg.GetBoolean().GetBoolval()
		case "window":
			return pgerror.Unsupported("WINDOW in CREATE FUNCTION")
		}
	}
	if language == "" {
		return pgerror.New(pgerror.InvalidFunctionDefinition, "no language specified")
	}
	if language != "sql" {
		if language == "plpgsql" || language == "c" || language == "internal" {
			return pgerror.Unsupported("language " + language)
		}
		return pgerror.New(pgerror.UndefinedObject, "language \"%s\" does not exist", language)
	}
	if n.SqlBody != nil {
		text, err := parser.DeparseBody(n.SqlBody)
		if err != nil {
			return err
		}
		f.Source = text
	}
	if f.Source == "" && !given {
		return pgerror.New(pgerror.InvalidFunctionDefinition, "no function body specified")
	}
	return nil
}

// functionSQL writes the CREATE FUNCTION of a function.
func functionSQL(o *catalog.Object) string {
	f := o.Function
	var args []string
	add := func(a catalog.Argument, mode string) {
		text := mode
		if a.Name != "" {
			text += quoteName(a.Name) + " "
		}
		text += typeName(a.Type)
		if a.Default != "" {
			text += " DEFAULT " + a.Default
		}
		args = append(args, text)
	}
	for _, a := range f.Args {
		mode := ""
		if a.Mode == 'v' {
			mode = "VARIADIC "
		}
		add(a, mode)
	}
	returns := typeName(f.Returns)
	if f.Table != nil {
		var cols []string
		for _, a := range f.Table {
			cols = append(cols, quoteName(a.Name)+" "+typeName(a.Type))
		}
		returns = "TABLE(" + strings.Join(cols, ", ") + ")"
	} else if f.Set {
		returns = "SETOF " + returns
	}
	strict := ""
	if f.Strict {
		strict = " STRICT"
	}
	return fmt.Sprintf("CREATE FUNCTION %s.%s(%s) RETURNS %s LANGUAGE sql %s%s AS %s", quoteName(o.Schema), quoteName(o.Name), strings.Join(args, ", "),
		returns, strings.ToUpper(f.Volatility), strict, parser.QuoteString(f.Source))
}

// dropFunctions runs DROP FUNCTION.
func (s *Session) dropFunctions(d *ddlState, p *prepared, n *pg.DropStmt, w pgwire.ResultWriter) error {
	var objs []*catalog.Object
	for _, x := range n.Objects {
		o, err := s.findFunction(d, p, x.GetObjectWithArgs())
		if err != nil {
			if n.MissingOk && pgerror.As(err).Code == pgerror.UndefinedFunction {
				w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: "function " + rawSignature(x.GetObjectWithArgs()) + " does not exist, skipping"})
				continue
			}
			return err
		}
		objs = append(objs, o)
	}
	return s.dropAll(d, n.Behavior == pg.DropBehavior_DROP_CASCADE, objs, nil, "", w)
}

// rawSignature is a function's name with the types of its arguments as the
// statement has them.
func rawSignature(x *pg.ObjectWithArgs) string {
	args := make([]string, len(x.Objargs))
	for i, a := range x.Objargs {
		args[i] = strings.Join(listStrings(a.GetTypeName().GetNames()), ".")
		if len(a.GetTypeName().GetArrayBounds()) > 0 {
			args[i] += "[]"
		}
	}
	return strings.Join(listStrings(x.Objname), ".") + "(" + strings.Join(args, ",") + ")"
}

// findRoutine is findFunction for the kind of routines that a statement names.
func (s *Session) findRoutine(d *ddlState, p *prepared, kind pg.ObjectType, x *pg.ObjectWithArgs) (*catalog.Object, error) {
	what := map[pg.ObjectType]string{pg.ObjectType_OBJECT_PROCEDURE: "procedure", pg.ObjectType_OBJECT_ROUTINE: "routine",
		pg.ObjectType_OBJECT_AGGREGATE: "aggregate"}[kind]
	o, err := s.findFunction(d, p, x)
	switch {
	case err != nil && what != "":
		e := *pgerror.As(err)
		switch e.Code {
		case pgerror.AmbiguousFunction:
			e.Message, e.Hint = strings.Replace(e.Message, "function", what, 1), strings.Replace(e.Hint, "function", what, 1)
		case pgerror.UndefinedFunction:
			if kind != pg.ObjectType_OBJECT_ROUTINE {
				e.Message = strings.Replace(strings.Replace(e.Message, "a function", "a "+what, 1), "function ", what+" ", 1)
				e.Message = strings.Replace(e.Message, "a aggregate", "an aggregate", 1)
			}
		}
		return nil, &e
	case err == nil && kind == pg.ObjectType_OBJECT_PROCEDURE:
		return nil, pgerror.New(pgerror.WrongObjectType, "%s is not a procedure", signatureText(o))
	case err == nil && kind == pg.ObjectType_OBJECT_AGGREGATE:
		return nil, pgerror.New(pgerror.WrongObjectType, "function %s is not an aggregate", signatureText(o))
	}
	return o, err
}

// signatureText is a function with the types of its arguments as messages tell it.
func signatureText(o *catalog.Object) string {
	return strings.ReplaceAll(o.Function.Signature(o.Name), ", ", ",")
}

// findFunction finds a function by its name and, if they are given, the types of
// its arguments.
func (s *Session) findFunction(d *ddlState, p *prepared, x *pg.ObjectWithArgs) (*catalog.Object, error) {
	names := listStrings(x.Objname)
	name := names[len(names)-1]
	path := s.userPath()
	if len(names) > 1 {
		path = names[len(names)-2 : len(names)-1]
	}
	var sig []string
	for _, a := range x.Objargs {
		t, err := planner.ResolveType(s.bindContext(nil), p.stmt.Text, parser.TypeName{Node: a.GetTypeName(), Base: p.stmt.Start})
		if err != nil {
			return nil, err
		}
		sig = append(sig, types.Of(t.OID).String())
	}
	want := strings.Join(names, ".") + "(" + strings.Join(sig, ", ") + ")"
	for _, schema := range path {
		fs := d.cat.Functions(schema, name)
		if x.ArgsUnspecified {
			switch {
			case len(fs) == 1:
				return fs[0], nil
			case len(fs) > 1:
				return nil, pgerror.New(pgerror.AmbiguousFunction, "function name \"%s\" is not unique", name).
					WithHint("Specify the argument list to select the function unambiguously.")
			}
			continue
		}
		for _, o := range fs {
			if o.Function.Signature(name) == name+"("+strings.Join(sig, ", ")+")" {
				return o, nil
			}
		}
	}
	if x.ArgsUnspecified {
		return nil, pgerror.New(pgerror.UndefinedFunction, "could not find a function named \"%s\"", strings.Join(names, "."))
	}
	return nil, pgerror.New(pgerror.UndefinedFunction, "function %s does not exist", want)
}
