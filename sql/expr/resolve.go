package expr

import (
	"slices"
	"strings"
	"sync"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// CallOptions says how a function call was written.
type CallOptions struct {
	Pos      int
	Variadic bool     // the last argument is VARIADIC array
	ArgNames []string // name => value for the last len(ArgNames) arguments
	Star     bool     // f(*), aggregates only
	Ordered  int      // number of WITHIN GROUP arguments at the end, aggregates only
	Distinct bool     // f(DISTINCT …), aggregates only; changes error texts only
}

// signature is what resolution needs to know of an overload.
type signature struct {
	args     []types.Type
	names    []string
	defaults int
	variadic bool
	// strict says that of two that differ in what can be left out only, none is meant:
	// PostgreSQL's rule. Built-in functions may be declared with fewer defaults here.
	strict bool
}

// NewCall resolves a scalar function by PostgreSQL's rules and coerces its
// arguments. A name that is a type and has one argument is a cast. Unknown
// literals (Const of type Unknown) and undetermined parameters (Param of type
// Unknown; all uses of a parameter share one *Param, which gets its type here)
// are resolved too. name is without a schema, lower case.
func NewCall(name string, args []Expr, opts CallOptions) (Expr, error) {
	return newCall(name, registry.funcs[name], args, opts)
}

// newCall is NewCall of one of some overloads.
func newCall(name string, fns []*Function, args []Expr, opts CallOptions) (Expr, error) {
	sigs := make([]signature, len(fns))
	for i, f := range fns {
		sigs[i] = signature{args: f.Args, names: f.ArgNames, defaults: len(f.Defaults), variadic: f.Variadic}
	}
	if len(opts.ArgNames) == 0 && len(args) == 1 && !opts.Variadic {
		if e, err := castByName(name, args[0], sigs, opts.Pos); e != nil || err != nil {
			return e, err
		}
	}
	c, err := findFunction(name, args, sigs, opts)
	if err != nil {
		return nil, err
	}
	fn := fns[c.index]
	if n := len(fn.Args); opts.Variadic && n > 0 && fn.Args[n-1].OID == types.OIDAny {
		if last := args[len(args)-1]; !last.Type().Storage().OID.IsArray() {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "VARIADIC argument must be an array").At(PosOf(last))
		}
	}
	full, params, err := arrange(args, c, fn.Args, fn.Defaults, opts)
	if err != nil {
		return nil, err
	}
	full, ret, err := coerceArgs(full, params, fn.Ret, opts.Pos)
	if err != nil {
		return nil, err
	}
	return &Call{Fn: fn, Args: full, Typ: ret, Pos: opts.Pos, Variadic: opts.Variadic && !c.variadic}, nil
}

// castByName is the rule that `typename(x)` is a cast where no function of that
// name takes exactly x and the cast is trivial or through the text form.
func castByName(name string, arg Expr, sigs []signature, pos int) (Expr, error) {
	to, ok := typeByName(name)
	if !ok {
		return nil, nil
	}
	from := arg.Type().OID
	for _, s := range sigs {
		if len(s.args) == 1 && s.args[0].OID == from {
			return nil, nil
		}
	}
	kind, _ := findPath(from, to, CastExplicit)
	isOID := func(o types.OID) bool { return o == types.OIDOid || isReg(o) }
	sameBits := kind == pathRelabel || from == types.OIDInt4 && isOID(to) || isOID(from) && to == types.OIDInt4 // for PostgreSQL
	if from != types.OIDUnknown && !sameBits && kind != pathIO {
		return nil, nil
	}
	return coerce(arg, types.Of(to), CastExplicit, pos)
}

// findFunction picks the overload for a call (func_get_detail).
func findFunction(name string, args []Expr, sigs []signature, opts CallOptions) (*candidate, error) {
	in := oidsOf(args)
	cands := functionCandidates(in, sigs, opts)
	var c *candidate
	if at := slices.IndexFunc(cands, func(c candidate) bool { return equalOIDs(c.args, in) }); at >= 0 {
		c = &cands[at]
	} else {
		matching := matchArgs(in, cands)
		switch len(matching) {
		case 0:
			return nil, noFunction(name, args, opts)
		case 1:
			c = &matching[0]
		default:
			c = selectCandidate(in, matching)
		}
	}
	if c != nil && !c.ambiguous {
		return c, nil
	}
	return nil, pgerror.New(pgerror.AmbiguousFunction, "function %s is not unique", signatureText(name, args, opts)).
		WithHint("Could not choose a best candidate function. You might need to add explicit type casts.").At(opts.Pos)
}

func noFunction(name string, args []Expr, opts CallOptions) error {
	return pgerror.New(pgerror.UndefinedFunction, "function %s does not exist", signatureText(name, args, opts)).
		WithHint("No function matches the given name and argument types. You might need to add explicit type casts.").At(opts.Pos)
}

// signatureText is name(type, name => type, …) for messages.
func signatureText(name string, args []Expr, opts CallOptions) types.Signature {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(name, "%", "%%"))
	b.WriteByte('(')
	if opts.Star {
		b.WriteByte('*')
	}
	for i := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		if k := i - (len(args) - len(opts.ArgNames)); k >= 0 {
			b.WriteString(strings.ReplaceAll(opts.ArgNames[k], "%", "%%"))
			b.WriteString(" => ")
		}
		b.WriteString("%s")
	}
	b.WriteByte(')')
	return types.Signature{Format: b.String(), Types: oidsOf(args)}
}

// functionCandidates lists the overloads that fit the number and names of the
// arguments (FuncnameGetCandidates). Of candidates with equal parameter types
// the one without variadic spreading wins, and of built-in ones that with fewest defaults.
func functionCandidates(in []types.OID, sigs []signature, opts CallOptions) []candidate {
	var out []candidate
	for i, s := range sigs {
		c, ok := fit(in, s, opts)
		if !ok {
			continue
		}
		c.index = i
		dup := false
		for k := range out {
			if equalOIDs(out[k].args, c.args) {
				dup = true
				switch {
				case out[k].variadic && !c.variadic || out[k].variadic == c.variadic && !s.strict && out[k].defaults > c.defaults:
					out[k] = c
				case out[k].variadic == c.variadic && s.strict:
					out[k].ambiguous = true
				}
			}
		}
		if !dup {
			out = append(out, c)
		}
	}
	return out
}

// fit matches one signature with the arguments' number and names.
func fit(in []types.OID, s signature, opts CallOptions) (candidate, bool) {
	n := len(in)
	var c candidate
	if len(opts.ArgNames) > 0 {
		return fitNamed(in, s, opts)
	}
	if opts.Variadic && !s.variadic {
		return c, false
	}
	np := len(s.args)
	if s.variadic && !opts.Variadic && n >= np {
		c.variadic = true
		c.args = make([]types.OID, n)
		last := s.args[np-1].OID
		for i := range c.args {
			if i < np-1 {
				c.args[i] = s.args[i].OID
			} else {
				c.args[i] = spread(last)
			}
		}
		return c, true
	}
	if n > np || n < np-s.defaults {
		return c, false
	}
	c.defaults = np - n
	c.args = make([]types.OID, n)
	for i := range c.args {
		c.args[i] = s.args[i].OID
	}
	return c, true
}

// spread is the parameter type of one argument of a variadic parameter.
func spread(array types.OID) types.OID {
	switch array {
	case types.OIDAny:
		return types.OIDAny
	case types.OIDAnyArray:
		return types.OIDAnyElement
	case types.OIDAnyCompatibleArray:
		return types.OIDAnyCompatible
	}
	return array.Elem()
}

func fitNamed(in []types.OID, s signature, opts CallOptions) (candidate, bool) {
	c := candidate{args: make([]types.OID, len(in)), order: make([]int, len(in))}
	positional := len(in) - len(opts.ArgNames)
	if len(s.names) == 0 || len(in) > len(s.args) {
		return c, false
	}
	used := make([]bool, len(s.args))
	for i := range in {
		p := i
		if i >= positional {
			p = -1
			for k, name := range s.names {
				if name == opts.ArgNames[i-positional] {
					p = k
				}
			}
		}
		if p < 0 || used[p] {
			return c, false
		}
		used[p] = true
		c.order[i], c.args[i] = p, s.args[p].OID
	}
	for p, u := range used {
		if !u && p < len(s.args)-s.defaults {
			return c, false
		}
	}
	c.defaults = len(s.args) - len(in)
	return c, true
}

// arrange puts the arguments in the order of the parameters, with defaults, and
// gives the parameter type of each.
func arrange(args []Expr, c *candidate, params []types.Type, defaults []*Const, opts CallOptions) ([]Expr, []types.Type, error) {
	np := len(params)
	if c.order != nil {
		full := make([]Expr, np)
		for i, p := range c.order {
			full[p] = args[i]
		}
		for p := range full {
			if full[p] == nil {
				full[p] = defaults[p-(np-len(defaults))]
			}
		}
		return full, params, nil
	}
	if c.variadic {
		full := append([]Expr(nil), args...)
		ps := make([]types.Type, len(args))
		for i := range ps {
			ps[i] = types.Of(c.args[i])
		}
		return full, ps, nil
	}
	full := append([]Expr(nil), args...)
	for p := len(args); p < np; p++ {
		full = append(full, defaults[p-(np-len(defaults))])
	}
	return full, params, nil
}

// coerceArgs coerces the arguments to the parameter types of the chosen
// overload and finds the result type.
func coerceArgs(args []Expr, params []types.Type, ret types.Type, pos int) ([]Expr, types.Type, error) {
	in, ps := oidsOf(args), make([]types.OID, len(params))
	for i, p := range params {
		ps[i] = p.OID
	}
	g, err := resolveGeneric(in, ps)
	if err != nil {
		return nil, ret, pgerror.As(err).At(pos)
	}
	for i, p := range params {
		t, err := g.actual(p)
		if err == nil {
			args[i], err = coerce(args[i], types.Of(t.OID), CastImplicit, pos)
		}
		if err != nil {
			return nil, ret, pgerror.As(err).At(pos)
		}
	}
	ret, err = g.actual(ret)
	if err != nil {
		return nil, ret, pgerror.As(err).At(pos)
	}
	return args, ret, nil
}

// NewOp resolves an operator; left is nil for a prefix operator.
func NewOp(op string, left, right Expr, pos int) (Expr, error) {
	args := []Expr{left, right}
	if left == nil {
		args = args[1:]
	}
	if op == "!=" {
		op = "<>"
	}
	if l, r, ok := rowPair(left, right); ok {
		return compareRows(op, l, r, pos)
	}
	fn, err := findOperator(op, oidsOf(args), pos)
	if err != nil {
		return nil, err
	}
	full, ret, err := coerceArgs(append([]Expr(nil), args...), fn.Args, fn.Ret, pos)
	if err != nil {
		return nil, err
	}
	if len(full) == 2 && ret.OID == types.OIDBool {
		full[1] = similarRecord(full[0], full[1])
	}
	return &Call{Fn: fn, Args: full, Typ: ret, Pos: pos}, nil
}

// operatorTypes is an operator with the types of its arguments; a prefix operator has
// no left one.
type operatorTypes struct {
	op          string
	left, right types.OID
}

// foundOperators remembers the overloads for built-in types, whose choice goes through
// all of an operator.
var foundOperators = struct {
	sync.RWMutex
	fns map[operatorTypes]*Function
}{fns: map[operatorTypes]*Function{}}

// findOperator picks the overload of an operator for argument types (oper and
// left_oper).
func findOperator(op string, in []types.OID, pos int) (*Function, error) {
	k := operatorTypes{op: op, right: in[len(in)-1]}
	if len(in) == 2 {
		k.left = in[0]
	}
	if k.left >= types.FirstUser || k.right >= types.FirstUser {
		return chooseOperator(op, in, pos)
	}
	foundOperators.RLock()
	f := foundOperators.fns[k]
	foundOperators.RUnlock()
	if f != nil {
		return f, nil
	}
	f, err := chooseOperator(op, in, pos)
	if err == nil {
		foundOperators.Lock()
		foundOperators.fns[k] = f
		foundOperators.Unlock()
	}
	return f, err
}

func chooseOperator(op string, in []types.OID, pos int) (*Function, error) {
	fns := registry.ops[op]
	exact := in
	if len(in) == 2 {
		// A literal beside a known type is first taken to be of that type.
		switch {
		case in[0] == types.OIDUnknown && in[1] != types.OIDUnknown:
			exact = []types.OID{in[1], in[1]}
		case in[1] == types.OIDUnknown && in[0] != types.OIDUnknown:
			exact = []types.OID{in[0], in[0]}
		}
	}
	var cands []candidate
	for i, f := range fns {
		if len(f.Args) != len(in) {
			continue
		}
		args := make([]types.OID, len(in))
		for k, a := range f.Args {
			args[k] = a.OID
		}
		if equalOIDs(args, exact) {
			return f, nil
		}
		cands = append(cands, candidate{args: args, index: i})
	}
	matching := matchArgs(in, cands)
	if len(matching) == 1 {
		return fns[matching[0].index], nil
	}
	if len(matching) > 1 {
		if c := selectCandidate(in, matching); c != nil {
			return fns[c.index], nil
		}
		return nil, pgerror.New(pgerror.AmbiguousFunction, "operator is not unique: %s", operatorText(op, in)).
			WithHint("Could not choose a best candidate operator. You might need to add explicit type casts.").At(pos)
	}
	hint := "No operator matches the given name and argument types. You might need to add explicit type casts."
	if len(in) == 1 {
		hint = "No operator matches the given name and argument type. You might need to add an explicit type cast."
	}
	return nil, pgerror.New(pgerror.UndefinedFunction, "operator does not exist: %s", operatorText(op, in)).WithHint("%s", hint).At(pos)
}

func operatorText(op string, in []types.OID) types.Signature {
	op = strings.ReplaceAll(op, "%", "%%")
	if len(in) == 1 {
		return types.Signature{Format: op + " %s", Types: in}
	}
	return types.Signature{Format: "%s " + op + " %s", Types: in}
}

func oidsOf(es []Expr) []types.OID {
	out := make([]types.OID, len(es))
	for i, e := range es {
		out[i] = e.Type().OID
	}
	return out
}

func equalOIDs(a, b []types.OID) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Coerce converts e to a type, with its modifier, as an implicit, assignment or
// explicit cast. It fails with 42846 (explicit) or 42804.
func Coerce(e Expr, to types.Type, ctx CastContext, pos int) (Expr, error) {
	if to.OID == types.OIDUnknown {
		return e, nil
	}
	return coerce(e, to, ctx, pos)
}

// CoerceToBool is for conditions; context names the clause ("WHERE", "CASE/WHEN", …).
func CoerceToBool(e Expr, context string, pos int) (Expr, error) {
	if t := e.Type(); !CanCoerce(t, types.Bool, CastAssignment) || t.OID != types.OIDBool && t.OID != types.OIDUnknown {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "argument of %s must be type %s, not type %s", context, "boolean", t.OID).At(pos)
	}
	return coerce(e, types.Bool, CastAssignment, pos)
}

// CommonType is the type of a UNION, CASE, VALUES, array or similar construct
// over exprs; context names it in errors ("CASE", "UNION", "VALUES", "ARRAY", …).
// It has a modifier only if all have the same.
func CommonType(exprs []Expr, context string) (types.Type, error) {
	typ, err := matchTypes(exprs, context)
	if err != nil {
		return typ, err
	}
	for _, e := range exprs {
		if t := e.Type(); !CanCoerce(t, typ, CastImplicit) {
			return typ, pgerror.New(pgerror.CannotCoerce, "%s could not convert type %s to %s", context, t.OID, typ.OID).At(PosOf(e))
		}
	}
	return typ, nil
}

// matchTypes is CommonType without the check that all can be converted.
func matchTypes(exprs []Expr, context string) (types.Type, error) {
	first := exprs[0].Type()
	same := true
	for _, e := range exprs[1:] {
		same = same && e.Type() == first
	}
	if same && first.OID != types.OIDUnknown {
		return first, nil
	}
	typ := types.Of(first.OID)
	for _, e := range exprs[1:] {
		t := e.Type()
		switch {
		case t.OID == types.OIDUnknown || t.OID == typ.OID:
		case typ.OID == types.OIDUnknown:
			typ = types.Of(t.OID)
		case categoryOf(t.OID) != categoryOf(typ.OID):
			return typ, pgerror.New(pgerror.DatatypeMismatch, "%s types %s and %s cannot be matched", context, typ.OID, t.OID).At(PosOf(e))
		case !preferred(typ.OID) && canCoerce(typ.OID, t.OID, CastImplicit) && !canCoerce(t.OID, typ.OID, CastImplicit):
			typ = types.Of(t.OID)
		}
	}
	if typ.OID == types.OIDUnknown {
		return types.Text, nil
	}
	return typ, nil
}

// PosOf is the leftmost position of an expression in its statement, 0 if not known.
func PosOf(e Expr) int {
	switch e := e.(type) {
	case *Const:
		return e.Pos
	case *Param:
		return e.Pos
	case *Column:
		return e.Pos
	case *OuterColumn:
		return e.Pos
	case *Subquery:
		return e.Pos
	case *Call:
		pos := e.Pos
		for _, a := range e.Args {
			if p := PosOf(a); p > 0 && (pos == 0 || p < pos) {
				pos = p
			}
		}
		return pos
	}
	return 0
}

// ResolveAggregate resolves an aggregate call and coerces its arguments (direct
// ones, then those of WITHIN GROUP).
func ResolveAggregate(name string, args []Expr, opts CallOptions) (fn *Aggregate, coerced []Expr, typ types.Type, err error) {
	aggs := registry.aggs[name]
	if opts.Star {
		for _, a := range aggs {
			if len(a.Args) == 0 {
				return a, nil, a.Ret, nil
			}
		}
		if len(aggs) > 0 {
			return nil, nil, typ, pgerror.New(pgerror.UndefinedFunction, "function %s does not exist", signatureText(name, args, opts)).
				WithHint("No function matches the given name and argument types. You might need to add explicit type casts.").At(opts.Pos)
		}
	}
	if len(args) == 0 && name == "count" {
		return nil, nil, typ, pgerror.New(pgerror.WrongObjectType, "count(*) must be used to call a parameterless aggregate function").At(opts.Pos)
	}
	sigs := make([]signature, len(aggs))
	for i, a := range aggs {
		sigs[i] = signature{args: a.Args, variadic: a.Variadic}
	}
	c, err := findFunction(name, args, sigs, opts)
	if err != nil {
		return nil, nil, typ, err
	}
	fn = aggs[c.index]
	if err := checkOrdered(fn, opts); err != nil {
		return nil, nil, typ, err
	}
	full, params, err := arrange(args, c, fn.Args, nil, opts)
	if err != nil {
		return nil, nil, typ, err
	}
	coerced, typ, err = coerceArgs(full, params, fn.Ret, opts.Pos)
	return fn, coerced, typ, err
}

// checkOrdered checks that WITHIN GROUP is there exactly where it must be.
func checkOrdered(fn *Aggregate, opts CallOptions) error {
	switch {
	case fn.Ordered && opts.Ordered == 0:
		return pgerror.New(pgerror.WrongObjectType, "WITHIN GROUP is required for ordered-set aggregate %s", fn.Name).At(opts.Pos)
	case !fn.Ordered && opts.Ordered > 0:
		return pgerror.New(pgerror.WrongObjectType, "%s is not an ordered-set aggregate, so it cannot have WITHIN GROUP", fn.Name).At(opts.Pos)
	case fn.Ordered && opts.Distinct:
		return pgerror.New(pgerror.WrongObjectType, "cannot use DISTINCT with WITHIN GROUP").At(opts.Pos)
	}
	return nil
}

// ResolveTableFunction resolves a set-returning function; cols are its output
// column types.
func ResolveTableFunction(name string, args []Expr, opts CallOptions) (fn *TableFunction, coerced []Expr, cols []types.Type, err error) {
	fns := registry.tables[name]
	sigs := make([]signature, len(fns))
	for i, f := range fns {
		sigs[i] = signature{args: f.Args, names: f.ArgNames, defaults: len(f.Defaults), variadic: f.Variadic}
	}
	c, err := findFunction(name, args, sigs, opts)
	if err != nil {
		return nil, nil, nil, err
	}
	fn = fns[c.index]
	full, params, err := arrange(args, c, fn.Args, fn.Defaults, opts)
	if err != nil {
		return nil, nil, nil, err
	}
	in, ps := oidsOf(full), make([]types.OID, len(params))
	for i, p := range params {
		ps[i] = p.OID
	}
	g, err := resolveGeneric(in, ps)
	if err != nil {
		return nil, nil, nil, pgerror.As(err).At(opts.Pos)
	}
	if coerced, _, err = coerceArgs(full, params, types.Void, opts.Pos); err != nil {
		return nil, nil, nil, err
	}
	for _, t := range fn.Cols {
		t, err := g.actual(t)
		if err != nil {
			return nil, nil, nil, pgerror.As(err).At(opts.Pos)
		}
		cols = append(cols, t)
	}
	return fn, coerced, cols, nil
}
