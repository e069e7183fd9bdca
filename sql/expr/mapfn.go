package expr

import (
	"errors"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// The functions of maps. Their types follow from that of the map in ways that
// polymorphism has no words for, so that they are made for each call.

// mapFuncs make the calls, by name; see registerMaps for their arguments.
var mapFuncs map[string]func(name string, args []Expr, pos int) (Expr, error)

// IsMapFunction reports whether name is a function of maps.
func IsMapFunction(name string) bool { return mapFuncs[name] != nil }

// NewMapCall makes a call of a function of maps.
func NewMapCall(name string, args []Expr, pos int) (Expr, error) {
	return mapFuncs[name](name, args, pos)
}

// mapCall is a call of a function made for it.
func mapCall(name string, ret types.Type, strict bool, k Kernel, args []Expr, pos int) Expr {
	oids := []types.OID{ret.OID}
	sig := make([]types.Type, len(args))
	for i, a := range args {
		sig[i] = types.Of(a.Type().OID)
		oids = append(oids, sig[i].OID)
	}
	fn := makeOnce(fnKey("map "+name, oids...), func() *Function {
		return &Function{Name: name, Args: sig, Ret: types.Of(ret.OID), Strict: strict, Consts: ScalarConsts, Eval: k}
	})
	return &Call{Fn: fn, Args: args, Typ: ret, Pos: pos}
}

// mapArg checks that the first argument is a map, and the number of them.
func mapArg(name string, args []Expr, n, pos int) (types.OID, error) {
	if len(args) != n {
		return 0, noFunction(name, args, CallOptions{Pos: pos})
	}
	if t := args[0].Type(); !t.OID.IsMap() {
		return 0, pgerror.New(pgerror.DatatypeMismatch, "the first argument of %s must be a map, not %s", name, t).At(pos)
	}
	return args[0].Type().OID, nil
}

// mapAndKey is mapArg for functions whose second argument is a key, which it converts.
func mapAndKey(name string, args []Expr, n, pos int) (types.OID, Expr, error) {
	m, err := mapArg(name, args, n, pos)
	if err != nil {
		return 0, nil, err
	}
	key, err := intoKey(args[1], m, pos)
	return m, key, err
}

// intoKey makes an argument one of a map's key type, intoValue one of its
// values' type.
func intoKey(e Expr, m types.OID, pos int) (Expr, error) {
	key, _ := m.MapTypes()
	return coerceArg(e, key, pos)
}

func intoValue(e Expr, m types.OID, pos int) (Expr, error) {
	_, value := m.MapTypes()
	return coerceArg(e, value, pos)
}

func coerceArg(e Expr, t types.Type, pos int) (Expr, error) {
	if !CanCoerce(e.Type(), t, CastAssignment) {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "cannot convert type %s to %s", e.Type(), t).At(pos)
	}
	return coerce(e, t, CastAssignment, pos)
}

// entriesOf are the keys and values of the map in row i of an argument.
// A map that is NULL has none.
func entriesOf(m types.OID, a Args, k, i int) (keys, values *columnar.Vec, n int) {
	kt, vt := m.MapTypes()
	kb, vb := columnar.NewBuilder(kt.Kind(), 4), columnar.NewBuilder(vt.Kind(), 4)
	if !a.Null(k, i) {
		n = types.MapEntries(a.Bytes(k, i), kb, vb)
	}
	return kb.Build(), vb.Build(), n
}

// findKey is the place of a key among those of a map, -1 if it is not there.
func findKey(m types.OID, keys *columnar.Vec, n int, v *columnar.Vec, row int) int {
	kt, _ := m.MapTypes()
	for i := range n {
		if types.Compare(kt, keys, i, v, row) == 0 {
			return i
		}
	}
	return -1
}

// NewMap makes MAP {key: value, …} of the keys and values in turn.
func NewMap(items []Expr, pos int) (Expr, error) {
	if len(items) == 0 {
		return nil, pgerror.New(pgerror.IndeterminateDatatype, "cannot determine type of empty map").
			WithHint("Explicitly cast to the desired type, for example MAP{}::map(int,int).").At(pos)
	}
	if len(items)%2 != 0 {
		return nil, pgerror.New(pgerror.SyntaxError, "MAP needs a value for each key").At(pos)
	}
	var keys, values []Expr
	for i := 0; i < len(items); i += 2 {
		keys, values = append(keys, items[i]), append(values, items[i+1])
	}
	keys, key, err := coerceAll(keys, "MAP", pos)
	if err != nil {
		return nil, err
	}
	values, value, err := coerceAll(values, "MAP", pos)
	if err != nil {
		return nil, err
	}
	m, err := types.MapOf(textType(key), textType(value))
	if err != nil {
		return nil, pgerror.As(err).At(pos)
	}
	args := make([]Expr, 0, len(items))
	for i := range keys {
		args = append(args, keys[i], values[i])
	}
	return mapCall("map", types.Of(m), false, mapKernel(m, func(_ *Eval, a Args, i int, b *types.MapBuilder) error {
		for k := 0; k < len(a); k += 2 {
			kv, kr := a.row(k, i)
			vv, vr := a.row(k+1, i)
			if err := b.Put(kv, kr, vv, vr); err != nil {
				return err
			}
		}
		return nil
	}), args, pos), nil
}

// EmptyMap is a map without entries.
func EmptyMap(t types.Type) Expr {
	b := columnar.NewBuilder(columnar.KindBytes, 1)
	b.Extend(types.NewMapBuilder(t.OID).Append)
	return &Const{Val: b.Build(), Typ: t}
}

// textType is text for a literal of unknown type.
func textType(t types.Type) types.Type {
	if t.OID == types.OIDUnknown {
		return types.Text
	}
	return t
}

// mapKernel makes a map of each row.
func mapKernel(m types.OID, f func(x *Eval, a Args, i int, b *types.MapBuilder) error) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		out := x.Builder(columnar.KindBytes, n)
		a := Args(args)
		b := types.NewMapBuilder(m)
		for i := range n {
			if c.Fn.Strict && a.anyNull(i) {
				out.Null()
				continue
			}
			b.Reset()
			switch err := f(x, a, i, b); err {
			case nil:
				out.Extend(b.Append)
			case errNoMap:
				out.Null()
			default:
				x.Fail(i, pgerror.As(err))
				out.Null()
			}
		}
		return out.Build()
	}
}

// errNoMap says that the map is NULL.
var errNoMap = errors.New("no map")

// mapFromArrays is map_from_key_values.
func mapFromArrays(name string, args []Expr, pos int) (Expr, error) {
	if len(args) != 2 || !args[0].Type().OID.IsArray() || !args[1].Type().OID.IsArray() {
		return nil, noFunction(name, args, CallOptions{Pos: pos})
	}
	m, err := types.MapOf(args[0].Type().ElemType(), args[1].Type().ElemType())
	if err != nil {
		return nil, pgerror.As(err).At(pos)
	}
	return mapCall(name, types.Of(m), true, mapKernel(m, func(_ *Eval, a Args, i int, b *types.MapBuilder) error {
		l, r := types.ReadArray(a.Bytes(0, i)), types.ReadArray(a.Bytes(1, i))
		if l.N != r.N {
			return pgerror.New(pgerror.ArraySubscriptError, "map keys and values have different length")
		}
		kb, vb := columnar.NewBuilder(l.Kind(), l.N), columnar.NewBuilder(r.Kind(), r.N)
		l.AppendElems(kb, 0, l.N)
		r.AppendElems(vb, 0, r.N)
		keys, values := kb.Build(), vb.Build()
		for k := range l.N {
			if err := b.Put(keys, k, values, k); err != nil {
				return err
			}
		}
		return nil
	}), args, pos), nil
}

// mapFromEntries is map_from_entries, of an array of pairs.
func mapFromEntries(name string, args []Expr, pos int) (Expr, error) {
	if len(args) != 1 {
		return nil, noFunction(name, args, CallOptions{Pos: pos})
	}
	arg := args[0]
	fields := arg.Type().OID.Elem().Fields()
	if rows, ok := arg.(*ArrayCtor); ok && fields == nil && len(rows.Elems) > 0 {
		var keys, values []Expr
		for _, e := range rows.Elems {
			r, ok := e.(*Row)
			if !ok || len(r.Fields) != 2 {
				return nil, pgerror.New(pgerror.DatatypeMismatch, "the entries of a map must be records of two fields").At(pos)
			}
			keys, values = append(keys, r.Fields[0]), append(values, r.Fields[1])
		}
		key, err := CommonType(keys, "MAP")
		if err != nil {
			return nil, err
		}
		value, err := CommonType(values, "MAP")
		if err != nil {
			return nil, err
		}
		fields = []types.Field{{Name: "key", Type: textType(key)}, {Name: "value", Type: textType(value)}}
		if arg, err = NewArrayOf(rows.Elems, types.Of(types.StructOf(fields).Array()), pos); err != nil {
			return nil, err
		}
	}
	if len(fields) != 2 {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "invalid map entries type, expected an array of pairs, got: %s", types.Of(arg.Type().OID)).At(pos)
	}
	m, err := types.MapOf(fields[0].Type, fields[1].Type)
	if err != nil {
		return nil, pgerror.As(err).At(pos)
	}
	return mapCall(name, types.Of(m), true, mapKernel(m, func(_ *Eval, a Args, i int, b *types.MapBuilder) error {
		arr := types.ReadArray(a.Bytes(0, i))
		for k := range arr.N {
			if arr.Null(k) {
				return pgerror.New(pgerror.NullValueNotAllowed, "map entries must not be NULL")
			}
			r := types.ReadRecord(arr.Bytes(k))
			key := element(fields[0].Type.Kind(), func(b *columnar.Builder) { r.AppendField(b, 0) })
			value := element(fields[1].Type.Kind(), func(b *columnar.Builder) { r.AppendField(b, 1) })
			if err := b.Put(key, 0, value, 0); err != nil {
				return err
			}
		}
		return nil
	}), []Expr{arg}, pos), nil
}

// mapPart is map_keys, map_values or map_entries.
func mapPart(name string, args []Expr, pos int) (Expr, error) {
	m, err := mapArg(name, args, 1, pos)
	if err != nil {
		return nil, err
	}
	elem, value := m.MapTypes()
	switch name {
	case "map_entries":
		// A map is the array of its entries.
		ret := types.Of(m.EntryOf().Array())
		return mapCall(name, ret, true, func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec { return x.expand(args[0], n) }, args, pos), nil
	case "map_values":
		elem = value
	}
	ret := elem.ArrayType()
	if elem.OID.IsArray() || ret.OID == 0 {
		return nil, pgerror.Unsupported("an array of values of type " + elem.String()).At(pos)
	}
	return mapCall(name, ret, true, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		part, values, n := entriesOf(m, a, 0, i)
		if name == "map_values" {
			part = values
		}
		out.Extend(func(dst []byte) []byte { return types.AppendList(dst, elem.OID, part, 0, n) })
		return nil
	}), args, pos), nil
}

// mapAccess is map_access, also written map[key].
func mapAccess(name string, args []Expr, pos int) (Expr, error) {
	m, key, err := mapAndKey(name, args, 2, pos)
	if err != nil {
		return nil, err
	}
	_, value := m.MapTypes()
	return mapCall(name, value, true, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		keys, values, n := entriesOf(m, a, 0, i)
		v, row := a.row(1, i)
		if at := findKey(m, keys, n, v, row); at < 0 {
			out.Null()
		} else {
			out.AppendFrom(values, at)
		}
		return nil
	}), []Expr{args[0], key}, pos), nil
}

// mapContains is map_contains, mapLength map_length.
func mapContains(name string, args []Expr, pos int) (Expr, error) {
	m, key, err := mapAndKey(name, args, 2, pos)
	if err != nil {
		return nil, err
	}
	return mapCall(name, types.Bool, true, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		keys, _, n := entriesOf(m, a, 0, i)
		v, row := a.row(1, i)
		out.Bool(findKey(m, keys, n, v, row) >= 0)
		return nil
	}), []Expr{args[0], key}, pos), nil
}

func mapLength(name string, args []Expr, pos int) (Expr, error) {
	if _, err := mapArg(name, args, 1, pos); err != nil {
		return nil, err
	}
	return mapCall(name, types.Int4, true, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		arr := types.ReadArray(a.Bytes(0, i))
		out.Int32(int32(arr.N))
		return nil
	}), args, pos), nil
}

// mapCat is map_cat: of a key in both maps the second one's value counts.
func mapCat(name string, args []Expr, pos int) (Expr, error) {
	m, err := mapArg(name, args, 2, pos)
	if err != nil {
		return nil, err
	}
	second, err := coerceArg(args[1], types.Of(m), pos)
	if err != nil {
		return nil, err
	}
	return mapCall(name, types.Of(m), false, mapKernel(m, func(_ *Eval, a Args, i int, b *types.MapBuilder) error {
		if a.Null(0, i) && a.Null(1, i) {
			return errNoMap
		}
		keys, values, n := entriesOf(m, a, 0, i)
		later, more, count := entriesOf(m, a, 1, i)
		return putOver(b, m, keys, values, n, later, more, count)
	}), []Expr{args[0], second}, pos), nil
}

// putOver puts the entries of a map that another does not replace, then the
// other's.
func putOver(b *types.MapBuilder, m types.OID, keys, values *columnar.Vec, n int, later, more *columnar.Vec, count int) error {
	for k := range n {
		if findKey(m, later, count, keys, k) < 0 {
			if err := b.Put(keys, k, values, k); err != nil {
				return err
			}
		}
	}
	for k := range count {
		if err := b.Put(later, k, more, k); err != nil {
			return err
		}
	}
	return nil
}

// mapInsert is map_insert, mapDelete map_delete.
func mapInsert(name string, args []Expr, pos int) (Expr, error) {
	m, key, err := mapAndKey(name, args, 3, pos)
	if err != nil {
		return nil, err
	}
	value, err := intoValue(args[2], m, pos)
	if err != nil {
		return nil, err
	}
	return mapCall(name, types.Of(m), false, mapKernel(m, func(_ *Eval, a Args, i int, b *types.MapBuilder) error {
		if a.Null(0, i) || a.Null(1, i) {
			return errNoMap
		}
		kv, kr := a.row(1, i)
		vv, vr := a.row(2, i)
		keys, values, n := entriesOf(m, a, 0, i)
		return putOver(b, m, keys, values, n, kv.Gather([]uint32{uint32(kr)}), vv.Gather([]uint32{uint32(vr)}), 1)
	}), []Expr{args[0], key, value}, pos), nil
}

func mapDelete(name string, args []Expr, pos int) (Expr, error) {
	m, key, err := mapAndKey(name, args, 2, pos)
	if err != nil {
		return nil, err
	}
	return mapCall(name, types.Of(m), true, mapKernel(m, func(_ *Eval, a Args, i int, b *types.MapBuilder) error {
		keys, values, n := entriesOf(m, a, 0, i)
		v, row := a.row(1, i)
		gone := findKey(m, keys, n, v, row)
		for k := range n {
			if k != gone {
				if err := b.Put(keys, k, values, k); err != nil {
					return err
				}
			}
		}
		return nil
	}), []Expr{args[0], key}, pos), nil
}

// mapPopulate is jsonb_populate_map: a map overlaid with the members of an object.
func mapPopulate(name string, args []Expr, pos int) (Expr, error) {
	m, err := mapArg(name, args, 2, pos)
	if err != nil {
		return nil, err
	}
	key, value := m.MapTypes()
	if key.OID != types.OIDText && key.OID != types.OIDVarchar {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "cannot convert jsonb to a map with non-string keys").At(pos)
	}
	doc, err := coerceArg(args[1], types.JSONB, pos)
	if err != nil {
		return nil, err
	}
	return mapCall(name, types.Of(m), false, mapKernel(m, func(x *Eval, a Args, i int, b *types.MapBuilder) error {
		if a.Null(1, i) {
			return errNoMap
		}
		v := jsonIn{doc: a.doc(1, i)}
		if v.kind() != types.JSONKindObject {
			return pgerror.New(pgerror.InvalidParameterValue, "cannot convert jsonb to a map: it is no object")
		}
		keys, values, n := columnar.NewBuilder(key.Kind(), 4), columnar.NewBuilder(value.Kind(), 4), 0
		p := newPopulator(x)
		for n = 0; n < v.doc.Len(); n++ {
			k := v.doc.Key(n)
			keys.Bytes(k)
			if err := p.value(values, value, jsonIn{doc: v.doc.Value(n)}, string(k)); err != nil {
				return err
			}
		}
		old, have, size := entriesOf(m, a, 0, i)
		return putOver(b, m, old, have, size, keys.Build(), values.Build(), n)
	}), []Expr{args[0], doc}, pos), nil
}

// NewMapFilter is map_filter: the entries for which the lambda is true; NULL if
// there are none.
func NewMapFilter(m Expr, l *Lambda, captured []Expr, pos int) (Expr, error) {
	oid := m.Type().OID
	if l.Body.Type().OID != types.OIDBool {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "lambda of map_filter must give boolean, not %s", l.Body.Type()).At(pos)
	}
	key, value := oid.MapTypes()
	kernel := func(body *node, nodes int) Kernel {
		return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			kb, vb := columnar.NewBuilder(key.Kind(), n), columnar.NewBuilder(value.Kind(), n)
			var owner []uint32
			for i := range n {
				if !args[0].Null(i) {
					for range types.MapEntries(args[0].Bytes(i), kb, vb) {
						owner = append(owner, uint32(i))
					}
				}
			}
			keys, values := kb.Build(), vb.Build()
			made := x.nested(body, nodes, around([]*columnar.Vec{keys, values}, args[1:], owner), owner)
			out, b := columnar.NewBuilder(columnar.KindBytes, n), types.NewMapBuilder(oid)
			at := 0
			for i := range n {
				b.Reset()
				kept := 0
				for ; at < len(owner) && owner[at] == uint32(i); at++ {
					if !made.Null(at) && made.Bools()[at] {
						kept++
						if err := b.Put(keys, at, values, at); err != nil {
							x.Fail(i, pgerror.As(err))
						}
					}
				}
				if kept == 0 {
					out.Null()
				} else {
					out.Extend(b.Append)
				}
			}
			return out.Build()
		}
	}
	fn := lambdaFn("map_filter", l, types.Of(oid), types.Of(oid), kernel)
	return &Call{Fn: fn, Args: append([]Expr{m}, captured...), Typ: m.Type(), Pos: pos}, nil
}

// registerMaps lists the functions of maps with the others. Calls are made by
// NewMapCall.
func registerMaps() {
	any, arr := types.Of(types.OIDAny), types.Of(types.OIDAnyArray)
	for name, args := range map[string][]types.Type{
		"map_from_key_values": {arr, arr}, "map_from_entries": {arr}, "map_build": {arr}, "map_keys": {any}, "map_values": {any}, "map_entries": {any},
		"map_access": {any, any}, "map_contains": {any, any}, "map_length": {any}, "map_cat": {any, any}, "map_insert": {any, any, any},
		"map_delete": {any, any}, "jsonb_populate_map": {any, types.JSONB},
	} {
		Register(Function{Name: name, Args: args, Ret: any, Bind: func(c *Call) (Kernel, error) {
			return nil, pgerror.New(pgerror.UndefinedFunction, "function %s needs a map", c.Fn.Name)
		}})
	}
}

func init() {
	registerMaps()
	mapFuncs = map[string]func(name string, args []Expr, pos int) (Expr, error){
		"map_from_key_values": mapFromArrays, "map_from_entries": mapFromEntries, "map_build": mapFromEntries,
		"map_keys": mapPart, "map_values": mapPart, "map_entries": mapPart,
		"map_access": mapAccess, "map_contains": mapContains, "map_length": mapLength,
		"map_cat": mapCat, "map_insert": mapInsert, "map_delete": mapDelete, "jsonb_populate_map": mapPopulate,
		"map": func(_ string, args []Expr, pos int) (Expr, error) { return NewMap(args, pos) },
	}
}
