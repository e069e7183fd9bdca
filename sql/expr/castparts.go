package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// sameParts reports whether a composite type without a name, or a map, can be
// made of another part by part.
func sameParts(from, to types.OID, ctx CastContext) bool {
	l, r := partsOf(from), partsOf(to)
	if l == nil || len(l) != len(r) || from.IsMap() != to.IsMap() {
		return false
	}
	for i := range l {
		if !CanCoerce(l[i].Type, r[i].Type, ctx) {
			return false
		}
	}
	return true
}

// partsOf are the fields of a composite type, or the key and value of a map.
func partsOf(o types.OID) []types.Field {
	if o.IsMap() {
		key, value := o.MapTypes()
		return []types.Field{{Name: "key", Type: key}, {Name: "value", Type: value}}
	}
	return o.Fields()
}

// partsCastFunc casts composites field by field, maps by their keys and values.
func partsCastFunc(from, to types.OID, ctx CastContext) *Function {
	return makeOnce(fnKey("parts", from, to, types.OID(ctx)), func() *Function {
		var casts []Expr
		for i, f := range partsOf(to) {
			e, err := coerce(&Column{Index: i, Typ: partsOf(from)[i].Type.Storage()}, f.Type, ctx, 0)
			if err != nil {
				panic("expr: cast of a composite without casts of its fields: " + err.Error())
			}
			casts = append(casts, e)
		}
		f := &Function{Name: typName(to), Args: []types.Type{types.Of(from)}, Ret: types.Of(to), Strict: true}
		for _, e := range casts {
			f.Volatility = max(f.Volatility, VolatilityOf(e))
		}
		f.Bind = func(*Call) (Kernel, error) { return castParts(casts, from, to) }
		return f
	})
}

// castParts takes values apart, casts the parts of all of them, and puts them
// together again.
func castParts(casts []Expr, from, to types.OID) (Kernel, error) {
	nodes := make([]*node, len(casts))
	sizes := make([]int, len(casts))
	for i, e := range casts {
		var c compiler
		n, err := c.compile(e)
		if err != nil {
			return nil, err
		}
		nodes[i], sizes[i] = n, len(c.nodes)
	}
	parts := partsOf(from)
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		v := args[0]
		b := make([]*columnar.Builder, len(parts))
		for i, p := range parts {
			b[i] = columnar.NewBuilder(p.Type.Kind(), n)
		}
		var owner []uint32
		for i := range n {
			switch {
			case v.Null(i):
			case from.IsMap():
				for range types.MapEntries(v.Bytes(i), b[0], b[1]) {
					owner = append(owner, uint32(i))
				}
			default:
				r := types.ReadRecord(v.Bytes(i))
				for k := range b {
					r.AppendField(b[k], k)
				}
				owner = append(owner, uint32(i))
			}
		}
		cols := make([]*columnar.Vec, len(b))
		for i := range b {
			cols[i] = b[i].Build()
		}
		made := make([]*columnar.Vec, len(nodes))
		for i := range nodes {
			made[i] = x.nested(nodes[i], sizes[i], cols, owner)
		}
		return joinParts(x, v, n, to, made, owner)
	}, nil
}

// joinParts makes the values of type to: part k of made belongs to row owner[k].
func joinParts(x *Eval, v *columnar.Vec, n int, to types.OID, made []*columnar.Vec, owner []uint32) *columnar.Vec {
	out := x.Builder(columnar.KindBytes, n)
	fields := partsOf(to)
	record := types.RecordBuilder{Names: types.NamesOf(to)}
	var m *types.MapBuilder
	if to.IsMap() {
		m = types.NewMapBuilder(to)
	}
	at := 0
	for i := range n {
		switch {
		case v.Null(i):
			out.Null()
		case m != nil:
			m.Reset()
			for ; at < len(owner) && owner[at] == uint32(i); at++ {
				if err := m.Put(made[0], at, made[1], at); err != nil {
					x.Fail(i, pgerror.As(err))
				}
			}
			out.Extend(m.Append)
		default:
			for k, f := range fields {
				record.Field(types.Of(f.Type.Storage().OID), made[k], at)
			}
			out.Extend(record.Append)
			at++
		}
	}
	return out.Build()
}

// SameFields reports whether NewFieldsByName makes one type of another: both are
// struct<…>, or arrays of those.
func SameFields(from, to types.Type) bool {
	if from.OID.IsArray() && to.OID.IsArray() {
		from, to = from.ElemType(), to.ElemType()
	}
	return from.OID.IsAnonymous() && to.OID.IsAnonymous() && from.OID.IsComposite() && to.OID.IsComposite()
}

// NewFieldsByName makes a struct<…> of another, also inside of arrays: its fields
// are those of the same names, or NULL. The two have a name in common, unless
// one has no fields.
func NewFieldsByName(e Expr, to types.Type, pos int) (Expr, error) {
	if to.OID.IsArray() {
		elem, err := NewFieldsByName(&Column{Typ: e.Type().ElemType(), Name: "x"}, to.ElemType(), pos)
		if err != nil {
			return nil, err
		}
		return NewArrayTransform(e, &Lambda{Params: []string{"x"}, Body: elem}, nil, false, pos)
	}
	from := e.Type().OID.Fields()
	row := &Row{Names: types.NamesOf(to.OID), Typ: to}
	common := 0
	for _, f := range to.OID.Fields() {
		var field Expr = NullConst(f.Type.Storage())
		for i, old := range from {
			if old.Name != f.Name {
				continue
			}
			common++
			var err error
			if field = NewField(e, i, pos); SameFields(old.Type, f.Type) {
				field, err = NewFieldsByName(field, f.Type, pos)
			} else {
				field, err = coerce(field, f.Type, CastAssignment, pos)
			}
			if err != nil {
				return nil, err
			}
		}
		row.Fields = append(row.Fields, field)
	}
	if common == 0 && len(from) > 0 {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "cannot change type %s to %s: they have no field in common", e.Type(), to).At(pos)
	}
	return &Case{Whens: []When{{Cond: &IsNull{Arg: e}, Then: NullConst(to)}}, Else: row, Typ: to}, nil
}
