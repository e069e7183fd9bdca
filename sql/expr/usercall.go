package expr

import (
	"slices"

	"github.com/streamdb/streamdb/sql/types"
)

// Signature is what a function that the catalog has takes: the last Defaults
// parameters can be left out, the last one is spread if it is Variadic.
type Signature struct {
	Args     []types.Type
	Names    []string
	Defaults int
	Variadic bool
}

// Overload is the one of some functions that a call means.
type Overload struct {
	Index   int          // in the list
	Args    []Expr       // coerced, by parameter; nil where the default is to be taken
	Params  []types.Type // of the parameters, what they stand for if they are polymorphic
	generic generic
}

// ResolveOverload picks the function that a call means, by PostgreSQL's rules.
func ResolveOverload(name string, sigs []Signature, args []Expr, opts CallOptions) (*Overload, error) {
	list := make([]signature, len(sigs))
	for i, s := range sigs {
		list[i] = signature{args: s.Args, names: s.Names, defaults: s.Defaults, variadic: s.Variadic, strict: true}
	}
	c, err := findFunction(name, args, list, opts)
	if err != nil {
		return nil, err
	}
	sig := sigs[c.index]
	np := len(sig.Args)
	at := func(i int) int { // the parameter of argument i
		if c.order != nil {
			return c.order[i]
		}
		return min(i, np-1)
	}
	params := make([]types.Type, len(args))
	for i := range args {
		params[i] = types.Of(c.args[i])
	}
	o := &Overload{Index: c.index, Args: make([]Expr, np), Params: slices.Clone(sig.Args)}
	if o.generic, err = resolveGeneric(oidsOf(args), c.args); err != nil {
		return nil, err
	}
	for i, t := range sig.Args {
		if o.Params[i], err = o.Actual(t); err != nil {
			return nil, err
		}
	}
	full, _, err := coerceArgs(slices.Clone(args), params, types.Void, opts.Pos)
	if err != nil {
		return nil, err
	}
	for i, e := range full {
		if !c.variadic || at(i) < np-1 {
			o.Args[at(i)] = e
		}
	}
	if c.variadic {
		o.Args[np-1], err = NewArrayOf(full[np-1:], o.Params[np-1], opts.Pos)
	}
	return o, err
}

// Actual is the type that one of the function's signature stands for.
func (o *Overload) Actual(t types.Type) (types.Type, error) { return o.generic.actual(t) }

// IsPolymorphic reports whether a type of a signature stands for others.
func IsPolymorphic(t types.OID) bool { return isPolymorphic(t) }
