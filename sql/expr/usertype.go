package expr

import (
	"slices"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// BindDomainCheck binds the SQL text of a domain's CHECK over a column of the
// type behind it. It is set by package planner, which knows SQL's syntax.
var BindDomainCheck func(sql string, base types.Type) (Expr, error)

// domainConstraints are those of a domain and of the domains behind it, which
// are checked first; those of one domain by their names.
func domainConstraints(domain types.OID) (notNull bool, checks []types.Check) {
	def := types.Lookup(domain).Definition
	if def.Base.OID.IsDomain() {
		notNull, checks = domainConstraints(def.Base.OID)
	}
	own := slices.Clone(def.Checks)
	slices.SortFunc(own, func(a, b types.Check) int { return strings.Compare(a.Name, b.Name) })
	return notNull || def.NotNull, append(checks, own...)
}

// coerceDomain converts e to the type behind a domain and checks the domain's
// constraints.
func coerceDomain(e Expr, domain types.OID, ctx CastContext, pos int) (Expr, error) {
	base := types.Type{OID: domain}.Storage()
	out, err := coerce(e, base, ctx, pos)
	if notNull, checks := domainConstraints(domain); err != nil || !notNull && len(checks) == 0 {
		return out, err
	}
	fn := makeOnce(fnKey("domain", domain), func() *Function {
		t := types.Of(base.OID)
		return &Function{Name: typName(domain), Args: []types.Type{t}, Ret: t, Bind: func(*Call) (Kernel, error) { return domainKernel(domain) }}
	})
	return &Call{Fn: fn, Args: []Expr{out}, Typ: base, Pos: pos, Cast: true}, nil
}

func init() {
	types.CheckDomain = func(domain types.OID, v *columnar.Vec) error {
		_, err := CheckDomain(domain, v, &Context{})
		return err
	}
}

// CheckDomain checks the values of a column against the constraints of its
// type, if that is a domain; row is the first that fails.
func CheckDomain(domain types.OID, v *columnar.Vec, ctx *Context) (row int, err error) {
	if !domain.IsDomain() {
		return 0, nil
	}
	kernel, err := domainKernel(domain)
	if err != nil {
		return 0, err
	}
	x := NewEval(ctx)
	x.frame = x.newFrame(v.Len(), 0)
	kernel(nil, x, []*columnar.Vec{v}, v.Len())
	if len(x.errs) == 0 {
		return 0, nil
	}
	first := x.errs[0]
	for _, e := range x.errs {
		if e.Row < first.Row {
			first = e
		}
	}
	return first.Row, first.Err
}

// typeName is the name of a type as the session's search path has it.
func (x *Eval) typeName(o types.OID) string {
	if opts := x.options(); opts != nil && opts.Names != nil {
		if s, ok := opts.Names.RegName(types.OIDRegtype, uint32(o)); ok {
			return s
		}
	}
	return o.String()
}

// domainKernel checks the constraints that the domain has now.
func domainKernel(domain types.OID) (Kernel, error) {
	notNull, list := domainConstraints(domain)
	type check struct {
		cond  *node
		nodes int
		name  string
	}
	var checks []check
	for _, c := range list {
		e, err := BindDomainCheck(c.Expr, types.Type{OID: domain}.Storage())
		if err != nil {
			return nil, err
		}
		var comp compiler
		n, err := comp.compile(e)
		if err != nil {
			return nil, err
		}
		checks = append(checks, check{n, len(comp.nodes), c.Name})
	}
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		v := x.expand(args[0], n)
		if notNull && v.HasNulls() {
			for i := range n {
				if v.Null(i) {
					x.Fail(i, pgerror.New(pgerror.NotNullViolation, "domain %s does not allow null values", x.typeName(domain)))
				}
			}
		}
		if len(checks) == 0 {
			return v
		}
		rows := make([]uint32, n)
		for i := range rows {
			rows[i] = uint32(i)
		}
		for _, c := range checks {
			ok := x.nested(c.cond, c.nodes, []*columnar.Vec{v}, rows)
			for i, b := range ok.Bools()[:n] {
				if !b && !ok.Null(i) {
					x.Fail(i, pgerror.New(pgerror.CheckViolation, "value for domain %s violates check constraint \"%s\"", x.typeName(domain), c.name))
				}
			}
		}
		return v
	}, nil
}

// coerceRow makes a row constructor a value of a composite type.
func coerceRow(r *Row, to types.OID, ctx CastContext, pos int) (Expr, error) {
	fields := to.Fields()
	if len(fields) != len(r.Fields) {
		e := pgerror.New(pgerror.CannotCoerce, "cannot cast type record to %s", to).At(pos)
		if len(r.Fields) < len(fields) {
			return nil, e.WithDetail("Input has too few columns.")
		}
		return nil, e.WithDetail("Input has too many columns.")
	}
	out := &Row{Names: types.NamesOf(to), Typ: types.Of(to)}
	for i, f := range fields {
		from := r.Fields[i]
		if i < len(r.literals) && r.literals[i] != nil {
			from = r.literals[i]
		}
		if t := from.Type(); !CanCoerce(t, f.Type, ctx) {
			return nil, pgerror.New(pgerror.CannotCoerce, "cannot cast type record to %s", to).
				WithDetail("Cannot cast type %s to %s in column %d.", t.OID, f.Type.OID, i+1).At(pos)
		}
		e, err := coerce(from, f.Type, ctx, pos)
		if err != nil {
			return nil, err
		}
		out.Fields = append(out.Fields, e)
	}
	return out, nil
}

// NewField is a field of a value of a composite type.
func NewField(e Expr, i int, pos int) Expr {
	if r, ok := e.(*Row); ok {
		return r.Fields[i]
	}
	f := e.Type().OID.Fields()[i]
	return fieldCall(e, i, f.Name, f.Type.Storage(), pos)
}

// NewRecordField is a field of a record of which it is known that it has a type.
func NewRecordField(e Expr, i int, typ types.Type, pos int) Expr {
	if r, ok := e.(*Row); ok {
		return r.Fields[i]
	}
	return fieldCall(e, i, "field", typ.Storage(), pos)
}

// fieldCall is the call that takes a field from a record or composite value.
func fieldCall(e Expr, i int, name string, typ types.Type, pos int) Expr {
	oid := e.Type().OID
	fn := makeOnce(fnKey("field", oid, types.OID(i), typ.OID), func() *Function {
		return &Function{
			Name: name, Args: []types.Type{types.Of(oid)}, Ret: types.Of(typ.OID), Strict: true, Total: oid != types.OIDRecord, Consts: ScalarConsts, Field: i + 1,
			Eval: RowKernel(func(_ *Eval, a Args, row int, out *columnar.Builder) *pgerror.Error {
				r := types.ReadRecord(a.Bytes(0, row))
				if i >= r.N {
					out.Null()
					return nil
				}
				if t := r.Type(i); oid == types.OIDRecord && t.OID != typ.OID && t.Storage().OID != typ.OID {
					return pgerror.New(pgerror.DatatypeMismatch, "attribute %d of type record has wrong type", i+1).
						WithDetail("Table has type %s, but query expects %s.", t.OID, typ.OID)
				}
				r.AppendField(out, i)
				return nil
			}),
		}
	})
	return &Call{Fn: fn, Args: []Expr{e}, Typ: typ, Pos: pos}
}

// FieldOfRow is the field that a call takes from a row, nil if it does no such thing.
func FieldOfRow(c *Call) Expr {
	if c.Fn.Field == 0 {
		return nil
	}
	if r, ok := c.Args[0].(*Row); ok && c.Fn.Field <= len(r.Fields) && r.Fields[c.Fn.Field-1].Type().Storage().OID == c.Typ.OID {
		return r.Fields[c.Fn.Field-1]
	}
	return nil
}

// similarRecord is a record, or an array of records, that is compared with another:
// an error where they cannot be compared. The types of their fields are equal where
// the modifiers of the types of the records are, which the planner sees to.
func similarRecord(l, r Expr) Expr {
	lt, rt := l.Type(), r.Type()
	check := types.SimilarRecords
	switch {
	case lt == rt && (lt.Mod >= 0 || lt.OID.IsComposite() || lt.OID.Elem().IsComposite()), sameRows(l, r):
		return r
	case isRecord(lt) && isRecord(rt):
	case isRecord(lt.ElemType()) && isRecord(rt.ElemType()):
		check = types.SimilarArrays
	default:
		return r
	}
	fn := makeOnce(fnKey("similar", lt.OID, rt.OID), func() *Function {
		return &Function{
			Name: "similar", Args: []types.Type{types.Of(lt.OID), types.Of(rt.OID)}, Ret: types.Of(rt.OID), Strict: true, Internal: true, Consts: ScalarConsts,
			Eval: RowKernel(func(_ *Eval, a Args, row int, out *columnar.Builder) *pgerror.Error {
				if err := check(a.Bytes(0, row), a.Bytes(1, row)); err != nil {
					return err
				}
				out.Bytes(a.Bytes(1, row))
				return nil
			}),
		}
	})
	return &Call{Fn: fn, Args: []Expr{l, r}, Typ: rt}
}

// similarOperator is a comparison of records that fails where they cannot be compared.
func similarOperator(fn *Function) *Function {
	return makeOnce(fnKey("similar"+fn.Name, types.OIDRecord), func() *Function {
		checked := *fn
		checked.Total, checked.OID = false, 0
		checked.Eval = func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			a := Args(args)
			for i := range n {
				if a.Null(0, i) || a.Null(1, i) || x.skip != nil && x.skip.Get(i) {
					continue
				}
				if err := types.SimilarRecords(a.Bytes(0, i), a.Bytes(1, i)); err != nil {
					x.Fail(i, err)
				}
			}
			return fn.Eval(c, x, args, n)
		}
		return &checked
	})
}

func isRecord(t types.Type) bool { return t.OID == types.OIDRecord || t.OID.IsComposite() }

// sameRows reports whether two rows have fields of the same types.
func sameRows(l, r Expr) bool {
	a, ok1 := l.(*Row)
	b, ok2 := r.(*Row)
	if !ok1 || !ok2 || len(a.Fields) != len(b.Fields) {
		return false
	}
	for i, f := range a.Fields {
		if f.Type().OID != b.Fields[i].Type().OID || isRecord(f.Type()) && !sameRows(f, b.Fields[i]) {
			return false
		}
	}
	return true
}

// enumBound is enum_first or enum_last: of the type of the argument, whatever
// its value.
func enumBound(last bool) Kernel {
	return func(c *Call, x *Eval, _ []*columnar.Vec, n int) *columnar.Vec {
		labels := c.Typ.OID.Labels()
		out := columnar.NewBuilder(columnar.KindInt64, n)
		for i := range n {
			switch {
			case len(labels) == 0:
				x.Fail(i, pgerror.New(pgerror.ObjectNotInPrerequisiteState, "enum %s contains no values", c.Typ.OID))
				out.Null()
			case last:
				out.Int64(labels[len(labels)-1].Order)
			default:
				out.Int64(labels[0].Order)
			}
		}
		return out.Build()
	}
}

// enumRange is enum_range: the labels of a type, or those between two.
func enumRange(c *Call, _ *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	elem := c.Typ.OID.Elem()
	a := Args(args)
	out := columnar.NewBuilder(columnar.KindBytes, n)
	for i := range n {
		vals := columnar.NewBuilder(columnar.KindInt64, 8)
		for _, l := range elem.Labels() {
			if len(a) == 2 && (!a.Null(0, i) && l.Order < a.Int64(0, i) || !a.Null(1, i) && l.Order > a.Int64(1, i)) {
				continue
			}
			vals.Int64(l.Order)
		}
		v := vals.Build()
		out.Extend(func(dst []byte) []byte { return types.AppendList(dst, elem, v, 0, v.Len()) })
	}
	return out.Build()
}

func init() {
	enum := types.Of(types.OIDAnyEnum)
	registerCompare(enum, enum, Immutable, cmpInt[int64])
	lax := func(name string, ret types.Type, k Kernel, args ...types.Type) {
		Register(Function{Name: name, Args: args, Ret: ret, Volatility: Stable, Consts: ScalarConsts, Eval: k})
	}
	lax("enum_first", enum, enumBound(false), enum)
	lax("enum_last", enum, enumBound(true), enum)
	lax("enum_range", types.Of(types.OIDAnyArray), enumRange, enum)
	lax("enum_range", types.Of(types.OIDAnyArray), enumRange, enum, enum)
}
