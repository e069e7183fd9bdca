package expr

import (
	_ "embed" // the list
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// aliasTSV lists the functions of PostgreSQL that do what an operator, a
// comparison or another function does: their names, how, of what, and the types
// of their arguments. A test compares it with PostgreSQL's catalog.
//
//go:embed aliases.tsv
var aliasTSV string

// registerAliases makes the functions of the list, after all else is registered.
func registerAliases() {
	for line := range strings.Lines(aliasTSV) {
		if line[0] == '#' {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		var args []types.Type
		for _, name := range strings.Split(f[3], ",") {
			o, ok := types.ByName(name)
			if !ok {
				panic("expr: aliases.tsv: no type " + name)
			}
			args = append(args, types.Of(o))
		}
		if fn := makeAlias(f[0], f[1], f[2], args); fn != nil {
			Register(*fn)
		} else {
			panic("expr: aliases.tsv: nothing behind " + f[0])
		}
	}
}

func makeAlias(name, how, of string, args []types.Type) *Function {
	switch how {
	case "cmp":
		return compareAlias(name, args)
	case "greatest", "least":
		symbol := ">"
		if how == "least" {
			symbol = "<"
		}
		better := exactOverload(registry.ops[symbol], args)
		if better == nil {
			return nil
		}
		return &Function{
			Name: name, Args: args, Ret: args[0], Strict: true, Total: better.Total, Volatility: better.Volatility,
			Bind: func(c *Call) (Kernel, error) {
				kernel, call, err := bindWith(better, &Call{Args: []Expr{c.Args[0], c.Args[0]}})
				if err != nil {
					return nil, err
				}
				fold := minMaxKernel(kernel, call)
				if args[0].OID == types.OIDBPChar {
					return fold, nil
				}
				return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
					return fold(c, x, []*columnar.Vec{args[1], args[0]}, n) // of equal values the second
				}, nil
			},
		}
	}
	fns := registry.ops[of]
	if how == "function" {
		fns = registry.funcs[of]
	}
	fn := exactOverload(fns, args)
	if fn == nil {
		return nil
	}
	alias := *fn
	alias.Name, alias.Operator, alias.OID = name, false, 0
	return &alias
}

// exactOverload is the overload whose parameters are args.
func exactOverload(fns []*Function, args []types.Type) *Function {
	for _, f := range fns {
		if len(f.Args) == len(args) {
			same := true
			for i := range args {
				same = same && f.Args[i].OID == args[i].OID
			}
			if same {
				return f
			}
		}
	}
	return nil
}

// compareAlias is a three-way comparison, made of < and >.
func compareAlias(name string, args []types.Type) *Function {
	lt, gt := exactOverload(registry.ops["<"], args), exactOverload(registry.ops[">"], args)
	if lt == nil || gt == nil {
		return nil
	}
	return &Function{
		Name: name, Args: args, Ret: types.Int4, Strict: true, Total: lt.Total, Volatility: lt.Volatility, Consts: lt.Consts,
		Bind: func(c *Call) (Kernel, error) {
			less, lcall, err := bindWith(lt, c)
			if err != nil {
				return nil, err
			}
			greater, gcall, err := bindWith(gt, c)
			if err != nil {
				return nil, err
			}
			return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
				below, above := less(lcall, x, args, n).Bools(), greater(gcall, x, args, n).Bools()
				dst, out := Result[int32](x, n)
				for i := range dst {
					switch {
					case below[i]:
						dst[i] = -1
					case above[i]:
						dst[i] = 1
					default:
						dst[i] = 0
					}
				}
				return out
			}, nil
		},
	}
}
