package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// NewJSONBuild makes JSON_OBJECT (of keys and values in turn) or JSON_ARRAY, a
// json or jsonb.
func NewJSONBuild(object, jsonb, absent, unique bool, args []Expr, pos int) Expr {
	o := jsonBuild{absent: absent, unique: unique, ctor: true}
	name, ret, f := "json_array", types.JSON, o.arrayText
	if jsonb {
		ret, f = types.JSONB, o.arrayDoc
	}
	if object {
		name, f = "json_object", o.objectText
		if jsonb {
			f = o.objectDoc
		}
	}
	if jsonb {
		name += "_jsonb"
	}
	name += o.suffix()
	fn := makeOnce("ctor "+name, func() *Function {
		return &Function{Name: name, Internal: true, Args: []types.Type{types.Of(types.OIDAny)}, Variadic: true, Ret: ret,
			Volatility: Stable, Consts: ScalarConsts, Eval: buildKernel(f)}
	})
	return &Call{Fn: fn, Args: args, Typ: ret, Pos: pos}
}

// JSONItem is what IS JSON asks for.
type JSONItem uint8

// The items.
const (
	JSONAny JSONItem = iota
	JSONObject
	JSONArray
	JSONScalar
)

// NewIsJSON makes `e IS JSON …` of a text, json or jsonb.
func NewIsJSON(e Expr, item JSONItem, unique bool, pos int) Expr {
	oid := e.Type().OID
	name := "IS JSON" + [...]string{"", " OBJECT", " ARRAY", " SCALAR"}[item]
	if unique {
		name += " WITH UNIQUE KEYS"
	}
	fn := makeOnce(fnKey(name, oid), func() *Function {
		f := &Function{Name: name, Internal: true, Operator: true, Postfix: true, Args: []types.Type{types.Of(oid)}, Ret: types.Bool, Strict: true, Total: true, Consts: ScalarConsts}
		f.Eval = RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			out.Bool(isJSON(oid, a.Bytes(0, i), item, unique))
			return nil
		})
		return f
	})
	return &Call{Fn: fn, Args: []Expr{e}, Typ: types.Bool, Pos: pos}
}

func isJSON(oid types.OID, b []byte, item JSONItem, unique bool) bool {
	var k types.JSONKind
	switch oid {
	case types.OIDJSONB:
		k, unique = types.JSONDoc(b).Kind(), false
	case types.OIDJSON:
		in := jsonIn{text: trimJSON(b)}
		k = in.kind()
	default:
		if !unique && types.CheckJSON(text(b)) != nil || unique && checkUnique(b) != nil {
			return false
		}
		in := jsonIn{text: trimJSON(b)}
		k, unique = in.kind(), false
	}
	switch item {
	case JSONObject:
		if k != types.JSONKindObject {
			return false
		}
	case JSONArray:
		if k != types.JSONKindArray {
			return false
		}
	case JSONScalar:
		if k == types.JSONKindObject || k == types.JSONKindArray {
			return false
		}
	}
	return !unique || checkUnique(b) == nil
}

// uniqueKeys refuses objects with equal keys.
type uniqueKeys struct{ open []seenKeys }

// Open implements types.JSONHandler.
func (u *uniqueKeys) Open(bool) error {
	u.open = append(u.open, seenKeys{})
	return nil
}

// Close implements types.JSONHandler.
func (u *uniqueKeys) Close(bool) error {
	u.open = u.open[:len(u.open)-1]
	return nil
}

// Key implements types.JSONHandler.
func (u *uniqueKeys) Key(key []byte) error {
	if !u.open[len(u.open)-1].add(key) {
		return errDuplicateKey(nil)
	}
	return nil
}

// Scalar implements types.JSONHandler.
func (u *uniqueKeys) Scalar(*types.JSONLexer) error { return nil }

// checkUnique fails if b is not a JSON text in which no object has equal keys.
func checkUnique(b []byte) error {
	if err := types.CheckUTF8(text(b)); err != nil {
		return err
	}
	l := types.JSONLexer{S: text(b), Decode: true}
	return types.ParseJSON(&l, &uniqueKeys{})
}

// NewUniqueJSON makes `JSON(e WITH UNIQUE KEYS)` of a text.
func NewUniqueJSON(e Expr, pos int) Expr {
	return &Call{Fn: uniqueJSON, Args: []Expr{e}, Typ: types.JSON, Pos: pos}
}

var uniqueJSON = &Function{Name: "json_unique", Internal: true, Args: []types.Type{types.Text}, Ret: types.JSON, Strict: true, Consts: ScalarConsts,
	Eval: RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		if err := checkUnique(a.Bytes(0, i)); err != nil {
			return pgerror.As(err)
		}
		out.Bytes(a.Bytes(0, i))
		return nil
	})}
