package expr

import (
	"strconv"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// errRowType is the error of a function whose result has no known fields.
func errRowType(name string) *pgerror.Error {
	return pgerror.New(pgerror.FeatureNotSupported, "could not determine row type for result of %s", name).
		WithHint("Provide a non-null record argument, or call the function in the FROM clause using a column definition list.")
}

// populateRecord binds json[b]_populate_record: a record like its first
// argument, with the fields that the document has.
func populateRecord(name string, doc types.OID) func(c *Call) (Kernel, error) {
	return func(c *Call) (Kernel, error) {
		t := c.Args[0].Type()
		if !t.OID.IsComposite() && t.OID != types.OIDRecord {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "first argument of %s must be a row type", name)
		}
		return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			p := newPopulator(x)
			return RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
				var base []byte
				if !a.Null(0, i) {
					base = a.Bytes(0, i)
				} else if t.OID == types.OIDRecord {
					return errRowType(name)
				}
				if a.Null(1, i) {
					if base == nil {
						out.Null()
					} else {
						out.Bytes(base)
					}
					return nil
				}
				rec, err := p.populate(t.OID, base, doc, a.Bytes(1, i))
				if err != nil {
					return pgerror.As(err)
				}
				out.Bytes(rec)
				return nil
			})(c, x, args, n)
		}, nil
	}
}

// NewPopulated is the record like base that a document stands for, an element
// of the argument of the set-returning function of that name.
func NewPopulated(name string, base, doc Expr, pos int) (Expr, error) {
	typ, from := base.Type(), doc.Type().OID
	fn := makeOnce(fnKey(name, typ.OID), func() *Function {
		return &Function{Name: types.Of(from).String() + "_populate_record", Internal: true, Args: []types.Type{typ, types.Of(from)}, Ret: typ, Volatility: Stable,
			Consts: ScalarConsts, Bind: populateRecord(name, from)}
	})
	call := &Call{Fn: fn, Args: []Expr{base, doc}, Typ: typ, Pos: pos}
	_, err := fn.Bind(call)
	return call, err
}

// ErrRowType is the error of a function whose result has no known fields.
func ErrRowType(name string) error { return errRowType(name) }

// populate is the record of a composite type, or like base, that a document
// stands for.
func (p *populator) populate(t types.OID, base []byte, docType types.OID, doc []byte) ([]byte, error) {
	if docType == types.OIDJSON {
		if err := checkEscapes(doc); err != nil {
			return nil, err
		}
	}
	v := jsonInOf(docType, doc)
	if t.IsComposite() {
		return p.composite(nil, types.NamesOf(t), t.Fields(), v, base)
	}
	r := types.ReadRecord(base)
	fields := make([]types.Field, r.N)
	for i := range fields {
		fields[i] = types.Field{Name: fieldName(r.Names(), i), Type: r.Type(i)}
	}
	return p.composite(nil, r.Names(), fields, v, base)
}

// NewJSONField is the member of a document of the given name as a value of type
// t: a column that a query defines of the record that the document stands for.
// Without the member it is def, which may be nil.
func NewJSONField(doc Expr, name string, t types.Type, def Expr, pos int) Expr {
	from := doc.Type().OID
	args := []Expr{doc, textConst(name)}
	params := []types.Type{types.Of(from), types.Text}
	if def != nil {
		args, params = append(args, def), append(params, types.Of(def.Type().OID))
	}
	fn := makeOnce(fnKey("jsonfield"+strconv.Itoa(len(args)), from, t.OID, types.OID(t.Mod)), func() *Function {
		f := &Function{Name: types.Of(from).String() + "_field", Internal: true, Args: params, Ret: types.Of(t.Storage().OID), Volatility: Stable, Consts: ScalarConsts}
		f.Eval = func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			p := newPopulator(x)
			return RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
				if err := p.field(a, i, from, t, out); err != nil {
					return pgerror.As(err)
				}
				return nil
			})(c, x, args, n)
		}
		return f
	})
	return &Call{Fn: fn, Args: args, Typ: t.Storage(), Pos: pos}
}

func (p *populator) field(a Args, i int, from types.OID, t types.Type, out *columnar.Builder) error {
	var m jsonIn
	found := false
	if !a.Null(0, i) {
		doc := a.Bytes(0, i)
		if from == types.OIDJSON {
			if err := checkEscapes(doc); err != nil {
				return err
			}
		}
		v := jsonInOf(from, doc)
		if k := v.kind(); k != types.JSONKindObject {
			return errShape("populate_composite", "an array", k != types.JSONKindArray)
		}
		m, found = v.member(text(a.Bytes(1, i)))
	}
	switch {
	case found:
		return p.value(out, t, m, string(a.Bytes(1, i)))
	case len(a) == 3:
		v, row := a.row(2, i)
		out.AppendFrom(v, row)
		return nil
	case a.Null(0, i):
		out.Null()
		return nil
	}
	return p.null(out, t)
}

// recordElements gives the documents of the records that json[b]_to_recordset
// and json[b]_populate_recordset give; arg is which argument has the array.
func recordElements(name string, doc types.OID, arg int) TableKernel {
	return func(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
		a := Args(args)
		if a.Null(arg, i) {
			return 0, nil
		}
		if doc == types.OIDJSON {
			if err := checkEscapes(a.Bytes(arg, i)); err != nil {
				return 0, err
			}
		}
		v := jsonInOf(doc, a.Bytes(arg, i))
		switch k := v.kind(); {
		case k == types.JSONKindArray:
		case doc == types.OIDJSONB:
			return 0, errParam("cannot call %s on a non-array", name)
		default:
			return 0, errShape(name, "an object", k != types.JSONKindObject)
		}
		n := 0
		err := v.each(func(e jsonIn) error {
			if e.kind() != types.JSONKindObject {
				return errParam("argument of %s must be an array of objects", name)
			}
			if e.text == nil {
				out[0].Bytes(e.doc)
			} else {
				out[0].Bytes(e.text)
			}
			n++
			return nil
		})
		return n, err
	}
}

func init() {
	elem := types.Of(types.OIDAnyElement)
	for _, doc := range []types.Type{types.JSON, types.JSONB} {
		prefix := doc.String()
		args, defaults := []types.Type{elem, doc}, []*Const(nil)
		names := []string{"base", "from_json"}
		if doc == types.JSON {
			args, names, defaults = append(args, types.Bool), append(names, "use_json_as_text"), []*Const{BoolConst(false)}
		} else {
			names = nil
		}
		Register(Function{Name: prefix + "_populate_record", Args: args, ArgNames: names, Defaults: defaults, Ret: elem, Volatility: Stable, Consts: ScalarConsts,
			Bind: populateRecord(prefix+"_populate_record", doc.OID)})
		RegisterTableFunction(TableFunction{Name: prefix + "_populate_recordset", Args: args, ArgNames: names, Defaults: defaults, Cols: []types.Type{doc}, Volatility: Stable,
			Eval: recordElements(prefix+"_populate_recordset", doc.OID, 1)})
		RegisterTableFunction(TableFunction{Name: prefix + "_to_recordset", Args: []types.Type{doc}, Cols: []types.Type{doc}, Volatility: Stable,
			Eval: recordElements(prefix+"_to_recordset", doc.OID, 0)})
		Register(Function{Name: prefix + "_to_record", Args: []types.Type{doc}, Ret: types.Record, Strict: true, Volatility: Stable, Consts: ScalarConsts,
			Bind: func(c *Call) (Kernel, error) { return nil, errRowType(prefix + "_to_record") }})
	}
}
