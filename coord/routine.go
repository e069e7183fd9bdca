package coord

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/types"
)

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
	head, returns := "CREATE FUNCTION", " RETURNS "+typeName(f.Returns)
	switch {
	case f.Procedure:
		head, returns, args = "CREATE PROCEDURE", "", nil
		for _, a := range f.All {
			add(a, map[byte]string{'o': "OUT ", 'b': "INOUT ", 'v': "VARIADIC "}[a.Mode])
		}
	case f.Table != nil:
		var cols []string
		for _, a := range f.Table {
			cols = append(cols, quoteName(a.Name)+" "+typeName(a.Type))
		}
		returns = " RETURNS TABLE(" + strings.Join(cols, ", ") + ")"
	case f.Set:
		returns = " RETURNS SETOF " + typeName(f.Returns)
	}
	options := " LANGUAGE sql"
	if !f.Procedure {
		options += " " + strings.ToUpper(f.Volatility)
	}
	if f.Strict {
		options += " STRICT"
	}
	return fmt.Sprintf("%s %s.%s(%s)%s%s AS %s", head, quoteName(o.Schema), quoteName(o.Name), strings.Join(args, ", "), returns, options, parser.QuoteString(f.Source))
}

// dropFunctions runs DROP FUNCTION, PROCEDURE and ROUTINE.
func (s *Session) dropFunctions(d *ddlState, p *prepared, n *pg.DropStmt, w pgwire.ResultWriter) error {
	var objs []*catalog.Object
	for _, x := range n.Objects {
		o, err := s.findRoutine(d, p, n.RemoveType, x.GetObjectWithArgs())
		if err != nil {
			if code := pgerror.As(err).Code; n.MissingOk && (code == pgerror.UndefinedFunction || code == pgerror.UndefinedObject) {
				w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion,
					Message: strings.ToLower(kindWords(n.RemoveType)) + " " + rawSignature(x.GetObjectWithArgs()) + " does not exist, skipping"})
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
	what := strings.ToLower(kindWords(kind))
	o, err := s.findFunction(d, p, kind, x)
	named := func() string { return strings.Join(listStrings(x.Objname), ".") + argumentsText(o) }
	switch {
	case err != nil:
		e := *pgerror.As(err)
		switch e.Code {
		case pgerror.AmbiguousFunction:
			e.Message, e.Hint = strings.Replace(e.Message, "function", what, 1), strings.Replace(e.Hint, "function", what, 1)
		case pgerror.UndefinedFunction:
			if x.ArgsUnspecified || kind != pg.ObjectType_OBJECT_ROUTINE {
				e.Message = strings.Replace(strings.Replace(e.Message, "a function", "a "+what, 1), "function ", what+" ", 1)
				e.Message = strings.Replace(e.Message, "a aggregate", "an aggregate", 1)
			}
			if x.ArgsUnspecified && kind == pg.ObjectType_OBJECT_ROUTINE {
				e.Message = strings.Replace(e.Message, "a routine", "a function", 1)
			}
		}
		return nil, &e
	case kind == pg.ObjectType_OBJECT_PROCEDURE && !o.Function.Procedure:
		return nil, pgerror.New(pgerror.WrongObjectType, "%s is not a procedure", named())
	case kind == pg.ObjectType_OBJECT_FUNCTION && o.Function.Procedure:
		return nil, pgerror.New(pgerror.WrongObjectType, "%s is not a function", named())
	case kind == pg.ObjectType_OBJECT_AGGREGATE:
		return nil, pgerror.New(pgerror.WrongObjectType, "function %s is not an aggregate", named())
	}
	return o, nil
}

// argumentsText is the types of a function's arguments in parentheses.
func argumentsText(o *catalog.Object) string {
	return strings.TrimPrefix(o.Function.Signature(o.Name), o.Name)
}

// signatureText is a function with the types of its arguments as messages tell it.
func signatureText(o *catalog.Object) string {
	return strings.ReplaceAll(o.Function.Signature(o.Name), ", ", ",")
}

// findFunction finds a function by its name and, if they are given, the types of
// its arguments. A name alone is of the kind that the statement names; the types
// of a procedure may have those of its OUT arguments among them.
func (s *Session) findFunction(d *ddlState, p *prepared, kind pg.ObjectType, x *pg.ObjectWithArgs) (*catalog.Object, error) {
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
	text := "(" + strings.Join(sig, ", ") + ")"
	for _, schema := range path {
		var fs []*catalog.Object
		for _, o := range d.cat.Functions(schema, name) {
			if x.ArgsUnspecified && (kind == pg.ObjectType_OBJECT_PROCEDURE && !o.Function.Procedure || kind == pg.ObjectType_OBJECT_FUNCTION && o.Function.Procedure) {
				continue
			}
			fs = append(fs, o)
		}
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
			all := catalog.Function{Args: o.Function.All}
			if o.Function.Signature(name) == name+text || o.Function.Procedure && all.Signature(name) == name+text {
				return o, nil
			}
		}
	}
	if x.ArgsUnspecified {
		return nil, pgerror.New(pgerror.UndefinedFunction, "could not find a function named \"%s\"", strings.Join(names, "."))
	}
	return nil, pgerror.New(pgerror.UndefinedFunction, "function %s does not exist", strings.Join(names, ".")+text)
}

// doBlock is why DO cannot be run: there is no language for it.
func doBlock(p *prepared, n *pg.DoStmt) error {
	language := "plpgsql"
	for _, a := range n.Args {
		if e := a.GetDefElem(); e.Defname == "language" {
			language = strings.ToLower(e.Arg.GetString_().GetSval())
		}
	}
	switch language {
	case "plpgsql":
		return absent(p.stmt.Node.(*parser.Postgres).Stmt)
	case "sql", "c", "internal":
		return pgerror.New(pgerror.FeatureNotSupported, "language \"%s\" does not support inline code execution", language)
	}
	return pgerror.New(pgerror.UndefinedObject, "language \"%s\" does not exist", language)
}
