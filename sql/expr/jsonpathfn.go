package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/jsonpath"
	"github.com/streamdb/streamdb/sql/jsonpath/eval"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// jsonPathFunc appends what a function of paths makes of a document.
type jsonPathFunc func(p *jsonpath.Path, doc types.JSONDoc, o eval.Options, out *columnar.Builder) error

// jsonPathKernel makes the kernel of a function with the arguments target, path,
// vars and silent. zoned lets dates and times with and without a zone be
// compared.
func jsonPathKernel(f jsonPathFunc, zoned bool) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		paths := templates[*jsonpath.Path]{compile: jsonpath.Parse}
		k := RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			p, err := paths.of(a.Bytes(1, i))
			if err == nil {
				err = f(p, a.Bytes(0, i), x.pathOptions(a, i, zoned), out)
			}
			if err != nil {
				return pgerror.As(err)
			}
			return nil
		})
		return k(c, x, args, n)
	}
}

// pathOptions are those of a call for row i; an operator is silent.
func (x *Eval) pathOptions(a Args, i int, zoned bool) eval.Options {
	o := eval.Options{Silent: true}
	if len(a) == 4 {
		o = eval.Options{Vars: a.Bytes(2, i), Silent: a.Bool(3, i)}
	}
	if zoned {
		o.Zone = x.options()
	}
	return o
}

func pathExists(p *jsonpath.Path, doc types.JSONDoc, o eval.Options, out *columnar.Builder) error {
	found, quiet, err := eval.Exists(p, doc, o)
	if quiet {
		out.Null()
	} else if err == nil {
		out.Bool(found)
	}
	return err
}

func pathMatch(p *jsonpath.Path, doc types.JSONDoc, o eval.Options, out *columnar.Builder) error {
	value, known, err := eval.Match(p, doc, o)
	switch {
	case err != nil:
	case known:
		out.Bool(value)
	default:
		out.Null()
	}
	return err
}

func pathQueryArray(p *jsonpath.Path, doc types.JSONDoc, o eval.Options, out *columnar.Builder) error {
	docs, err := eval.Query(p, doc, o)
	if err != nil {
		return err
	}
	var b types.JSONBuilder
	b.Begin(false)
	for _, d := range docs {
		b.Doc(d)
	}
	b.End()
	out.Extend(b.Append)
	return nil
}

func pathQueryFirst(p *jsonpath.Path, doc types.JSONDoc, o eval.Options, out *columnar.Builder) error {
	docs, err := eval.Query(p, doc, o)
	switch {
	case err != nil:
	case len(docs) > 0:
		out.Bytes(docs[0])
	default:
		out.Null()
	}
	return err
}

func pathQuery(zoned bool) TableKernel {
	return func(x *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
		a := Args(args)
		p, err := jsonpath.Parse(text(a.Bytes(1, i)))
		if err != nil {
			return 0, err
		}
		docs, err := eval.Query(p, a.Bytes(0, i), x.pathOptions(a, i, zoned))
		for _, d := range docs {
			out[0].Bytes(d)
		}
		return len(docs), err
	}
}

func init() {
	path := types.Of(types.OIDJSONPath)
	names := []string{"target", "path", "vars", "silent"}
	args := []types.Type{types.JSONB, path, types.JSONB, types.Bool}
	empty := columnar.NewBuilder(columnar.KindBytes, 1)
	var b types.JSONBuilder
	b.Begin(true)
	b.End()
	empty.Extend(b.Append)
	defaults := []*Const{{Val: empty.Build(), Typ: types.JSONB}, BoolConst(false)}
	for _, zoned := range []bool{false, true} {
		suffix, v := "", Immutable
		if zoned {
			suffix, v = "_tz", Stable
		}
		for _, fn := range []struct {
			name string
			ret  types.Type
			f    jsonPathFunc
		}{{"exists", types.Bool, pathExists}, {"match", types.Bool, pathMatch}, {"query_array", types.JSONB, pathQueryArray}, {"query_first", types.JSONB, pathQueryFirst}} {
			Register(Function{Name: "jsonb_path_" + fn.name + suffix, Args: args, ArgNames: names, Defaults: defaults, Ret: fn.ret, Strict: true,
				Volatility: v, Consts: ScalarConsts, Eval: jsonPathKernel(fn.f, zoned)})
		}
		RegisterTableFunction(TableFunction{Name: "jsonb_path_query" + suffix, Args: args, ArgNames: names, Defaults: defaults,
			Cols: []types.Type{types.JSONB}, Names: []string{"jsonb_path_query" + suffix}, Strict: true, Volatility: v, Eval: pathQuery(zoned)})
	}
	for _, op := range []struct {
		symbol, name string
		f            jsonPathFunc
	}{{"@?", "jsonb_path_exists_opr", pathExists}, {"@@", "jsonb_path_match_opr", pathMatch}} {
		k := jsonPathKernel(op.f, false)
		Register(Function{Name: op.name, Args: args[:2], Ret: types.Bool, Strict: true, Consts: ScalarConsts, Eval: k})
		Register(Function{Name: op.symbol, Operator: true, Args: args[:2], Ret: types.Bool, Strict: true, Consts: ScalarConsts, Eval: k})
	}
}
