package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Materialize's operators of maps, and its aggregate map_agg.

// NewMapOp makes the application of an operator that maps have: m -> key,
// m ? key, m ?& keys, m ?| keys, m @> m and m <@ m; ok tells whether it is one.
func NewMapOp(op string, left, right Expr, pos int) (e Expr, ok bool, err error) {
	if left == nil || !left.Type().OID.IsMap() && !right.Type().OID.IsMap() {
		return nil, false, nil
	}
	args := []Expr{left, right}
	switch op {
	case "->":
		e, err = NewMapCall("map_access", args, pos)
	case "?":
		e, err = NewMapCall("map_contains", args, pos)
	case "?&":
		e, err = mapHasKeys(op, args, true, pos)
	case "?|":
		e, err = mapHasKeys(op, args, false, pos)
	case "@>":
		e, err = mapHasMap(op, left, right, pos)
	case "<@":
		e, err = mapHasMap(op, right, left, pos)
	default:
		return nil, false, nil
	}
	return e, true, err
}

// mapHasKeys asks whether all of some keys, or any of them, are in a map.
func mapHasKeys(op string, args []Expr, all bool, pos int) (Expr, error) {
	m, err := mapArg(op, args, 2, pos)
	if err != nil {
		return nil, err
	}
	key, _ := m.MapTypes()
	keys, err := coerceArg(args[1], key.ArrayType(), pos)
	if err != nil {
		return nil, err
	}
	return mapCall(op, types.Bool, true, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		have, _, n := entriesOf(m, a, 0, i)
		arr := types.ReadArray(a.Bytes(1, i))
		b := columnar.NewBuilder(key.Kind(), arr.N)
		arr.AppendElems(b, 0, arr.N)
		asked, found := b.Build(), 0
		for k := range arr.N {
			if !asked.Null(k) && findKey(m, have, n, asked, k) >= 0 {
				found++
			}
		}
		out.Bool(all && found == arr.N || !all && found > 0)
		return nil
	}), []Expr{args[0], keys}, pos), nil
}

// mapHasMap asks whether a map has all entries of another.
func mapHasMap(op string, outer, inner Expr, pos int) (Expr, error) {
	t := outer.Type()
	if !t.OID.IsMap() {
		t = inner.Type()
	}
	m := t.OID
	args := []Expr{outer, inner}
	for i := range args {
		var err error
		if args[i], err = coerceArg(args[i], types.Of(m), pos); err != nil {
			return nil, err
		}
	}
	_, value := m.MapTypes()
	return mapCall(op, types.Bool, true, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		keys, values, n := entriesOf(m, a, 0, i)
		asked, want, count := entriesOf(m, a, 1, i)
		has := true
		for k := 0; has && k < count; k++ {
			at := findKey(m, keys, n, asked, k)
			has = at >= 0 && values.Null(at) == want.Null(k) && (want.Null(k) || types.Compare(value, values, at, want, k) == 0)
		}
		out.Bool(has)
		return nil
	}), args, pos), nil
}

// MapAggregate gives map_agg(key, value) the types that follow from its
// arguments: the aggregate itself, those arguments, and the map.
func MapAggregate(args []Expr, pos int) ([]Expr, types.Type, error) {
	m, err := types.MapOf(textType(args[0].Type()), textType(args[1].Type()))
	if err != nil {
		return nil, types.Type{}, pgerror.As(err).At(pos)
	}
	key, err := intoKey(args[0], m, pos)
	if err != nil {
		return nil, types.Type{}, err
	}
	value, err := intoValue(args[1], m, pos)
	return []Expr{key, value}, types.Of(m), err
}

// collectMap is map_agg: of equal keys the last one counts, NULLs do not.
func collectMap(_ *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	b := types.NewMapBuilder(c.Typ.OID)
	last := map[string]int{}
	var order []int
	var text []byte
	for i := lo; i < hi; i++ {
		if args[0].Null(i) {
			continue
		}
		text = types.AppendText(text[:0], c.Args[0], args[0], i, nil)
		if at, ok := last[string(text)]; ok {
			order[at] = i
			continue
		}
		last[string(text)] = len(order)
		order = append(order, i)
	}
	for _, i := range order {
		if err := b.Put(args[0], i, args[1], i); err != nil {
			return err
		}
	}
	if lo == hi {
		out.Null()
		return nil
	}
	out.Extend(b.Append)
	return nil
}

func init() {
	any := types.Of(types.OIDAny)
	RegisterAggregate(Aggregate{Name: "map_agg", Op: AggCollect, Args: []types.Type{any, any}, Ret: any, KeepNulls: true, Collect: collectMap})
}
