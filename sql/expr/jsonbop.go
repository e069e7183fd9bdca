package expr

import (
	"strconv"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// doc is argument k of row i, a jsonb.
func (a Args) doc(k, i int) types.JSONDoc { return a.Bytes(k, i) }

// putDoc appends a part of a document, NULL if there is none; asText appends
// the text of ->> instead.
func putDoc(out *columnar.Builder, j types.JSONDoc, asText bool) {
	switch {
	case j == nil, asText && j.Kind() == types.JSONKindNull:
		out.Null()
	case !asText:
		out.Bytes(j)
	case j.Kind() == types.JSONKindString:
		out.Bytes(j.Str())
	default:
		out.Extend(j.AppendText)
	}
}

func jsonbField(asText bool) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		putDoc(out, a.doc(0, i).Get(a.Bytes(1, i)), asText)
		return nil
	}
}

func jsonbElement(asText bool) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		j, at := a.doc(0, i), a.Int32(1, i)
		if j.IsContainer() {
			j = j.At(int(at))
		} else if at != 0 && at != -1 { // a scalar counts as an array of one
			j = nil
		}
		putDoc(out, j, asText)
		return nil
	}
}

// pathStep is one element of a path; isInt says that it is an array index, too.
type pathStep struct {
	key   []byte
	index int
	isInt bool
}

// readPath takes a text array apart; ok is false if an element is NULL.
func readPath(b []byte, steps []pathStep) (path []pathStep, ok bool) {
	arr := types.ReadArray(b)
	for k := range arr.N {
		if arr.Null(k) {
			return steps, false
		}
		steps = append(steps, makeStep(arr.Bytes(k)))
	}
	return steps, true
}

func makeStep(key []byte) pathStep {
	s := pathStep{key: key}
	if n, ok := leadingInt(text(key)); ok {
		s.index, s.isInt = n, true
	}
	return s
}

// leadingInt reads an integer as C's strtol does: white space before it is
// skipped, nothing may follow.
func leadingInt(s string) (int, bool) {
	for s != "" && (s[0] == ' ' || s[0] >= '\t' && s[0] <= '\r') {
		s = s[1:]
	}
	n, err := strconv.ParseInt(s, 10, 32)
	return int(n), err == nil
}

// follow is the part of j at a path, nil if there is none.
func follow(j types.JSONDoc, path []pathStep) types.JSONDoc {
	for _, s := range path {
		switch j.Kind() {
		case types.JSONKindObject:
			j = j.Get(s.key)
		case types.JSONKindArray:
			if !s.isInt {
				return nil
			}
			j = j.At(s.index)
		default:
			return nil
		}
		if j == nil {
			return nil
		}
	}
	return j
}

func jsonbPath(asText bool) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		var buf [8]pathStep
		path, ok := readPath(a.Bytes(1, i), buf[:0])
		if !ok {
			out.Null()
			return nil
		}
		putDoc(out, follow(a.doc(0, i), path), asText)
		return nil
	}
}

// jsonbExists reports whether a text is a key of an object, a string in an
// array, or the string itself.
func jsonbExists(j types.JSONDoc, key []byte) bool {
	switch j.Kind() {
	case types.JSONKindObject:
		return j.Find(key) >= 0
	case types.JSONKindArray:
		for k := range j.Len() {
			if e := j.Elem(k); e.Kind() == types.JSONKindString && text(e.Str()) == text(key) {
				return true
			}
		}
	case types.JSONKindString:
		return text(j.Str()) == text(key)
	}
	return false
}

// jsonbExistsMany is ?| and ?&; NULLs in the array are passed over.
func jsonbExistsMany(all bool) Kernel {
	return bytes2Fixed(func(doc, keys []byte) bool {
		if len(doc) == 0 || len(keys) == 0 { // NULL
			return false
		}
		arr := types.ReadArray(keys)
		for k := range arr.N {
			if !arr.Null(k) && jsonbExists(doc, arr.Bytes(k)) != all {
				return !all
			}
		}
		return all
	})
}

// notNullDocs is a test of two documents; for NULL rows it is not called.
func notNullDocs(f func(a, b types.JSONDoc) bool) Kernel {
	return bytes2Fixed(func(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && f(a, b) })
}

func jsonbArrayLength(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	switch j := a.doc(0, i); {
	case j.Kind() == types.JSONKindArray:
		out.Int32(int32(j.Len()))
	case j.IsContainer():
		return errParam("cannot get array length of a non-array")
	default:
		return errParam("cannot get array length of a scalar")
	}
	return nil
}

// extractPath is jsonb_extract_path: the path is spread over the arguments.
func extractPath(get func(out *columnar.Builder, doc []byte, path []pathStep) *pgerror.Error) func(c *Call) (Kernel, error) {
	return func(c *Call) (Kernel, error) {
		variadic := c.Variadic
		return RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			var buf [8]pathStep
			path, ok := buf[:0], true
			if variadic {
				path, ok = readPath(a.Bytes(1, i), path)
			} else {
				for k := 1; k < len(a) && ok; k++ {
					if ok = !a.Null(k, i); ok {
						path = append(path, makeStep(a.Bytes(k, i)))
					}
				}
			}
			if !ok {
				out.Null()
				return nil
			}
			return get(out, a.Bytes(0, i), path)
		}), nil
	}
}

// jsonbScalarCast makes the cast of jsonb to a number or boolean.
func jsonbScalarCast(to types.Type, put func(out *columnar.Builder, j types.JSONDoc) error) {
	want := types.JSONKindNumber
	fn := &Function{
		Name: typName(to.OID), Args: []types.Type{types.JSONB}, Ret: to, Strict: true, Consts: ScalarConsts,
		Eval: RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			j := a.doc(0, i)
			ok := j.Kind() == want
			if to.OID == types.OIDBool {
				ok = j.Kind() == types.JSONKindTrue || j.Kind() == types.JSONKindFalse
			}
			if !ok {
				name := j.TypeName()
				if j.Kind() == types.JSONKindNumber {
					name = "numeric"
				}
				return errParam("cannot cast jsonb %s to type %s", name, to)
			}
			if err := put(out, j); err != nil {
				return pgerror.As(err)
			}
			return nil
		}),
	}
	RegisterCast(Cast{From: types.OIDJSONB, To: to.OID, Context: CastExplicit, Fn: Register(*fn)})
}

func registerJSONBCasts() {
	jsonbScalarCast(types.Bool, func(out *columnar.Builder, j types.JSONDoc) error {
		out.Bool(j.Kind() == types.JSONKindTrue)
		return nil
	})
	jsonbScalarCast(types.Numeric, func(out *columnar.Builder, j types.JSONDoc) error { out.Bytes(j.Number()); return nil })
	jsonbScalarCast(types.Int2, func(out *columnar.Builder, j types.JSONDoc) error {
		v, err := decimal.ToInt16(j.Number())
		return put(out, v, err)
	})
	jsonbScalarCast(types.Int4, func(out *columnar.Builder, j types.JSONDoc) error {
		v, err := decimal.ToInt32(j.Number())
		return put(out, v, err)
	})
	jsonbScalarCast(types.Int8, func(out *columnar.Builder, j types.JSONDoc) error {
		v, err := decimal.ToInt64(j.Number())
		return put(out, v, err)
	})
	jsonbScalarCast(types.Float4, func(out *columnar.Builder, j types.JSONDoc) error {
		v, err := decimal.ToFloat32(j.Number())
		return put(out, v, err)
	})
	jsonbScalarCast(types.Float8, func(out *columnar.Builder, j types.JSONDoc) error {
		v, err := decimal.ToFloat64(j.Number())
		return put(out, v, err)
	})
}

// put appends v unless err is set.
func put[T columnar.Fixed](out *columnar.Builder, v T, err error) error {
	if err == nil {
		columnar.Append(out, v)
	}
	return err
}

// both registers a total function and the operator that it is behind.
func both(symbol, name string, ret types.Type, k Kernel, args ...types.Type) {
	totalOp(symbol, ret, k, args...)
	totalFn(name, ret, k, args...)
}

func init() {
	doc, t, i4, list := types.JSONB, types.Text, types.Int4, types.Of(types.OIDTextArray)
	both("->", "jsonb_object_field", doc, RowKernel(jsonbField(false)), doc, t)
	both("->>", "jsonb_object_field_text", t, RowKernel(jsonbField(true)), doc, t)
	both("->", "jsonb_array_element", doc, RowKernel(jsonbElement(false)), doc, i4)
	both("->>", "jsonb_array_element_text", t, RowKernel(jsonbElement(true)), doc, i4)
	totalOp("#>", doc, RowKernel(jsonbPath(false)), doc, list)
	totalOp("#>>", t, RowKernel(jsonbPath(true)), doc, list)
	both("@>", "jsonb_contains", types.Bool, notNullDocs(types.JSONDoc.Contains), doc, doc)
	both("<@", "jsonb_contained", types.Bool, notNullDocs(func(a, b types.JSONDoc) bool { return b.Contains(a) }), doc, doc)
	both("?", "jsonb_exists", types.Bool, bytes2Fixed(func(d, k []byte) bool { return len(d) > 0 && jsonbExists(d, k) }), doc, t)
	both("?|", "jsonb_exists_any", types.Bool, jsonbExistsMany(false), doc, list)
	both("?&", "jsonb_exists_all", types.Bool, jsonbExistsMany(true), doc, list)
	totalFn("jsonb_typeof", t, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		out.String(a.doc(0, i).TypeName())
		return nil
	}), doc)
	rowFn("jsonb_array_length", i4, jsonbArrayLength, doc)
	for _, asText := range []bool{false, true} {
		name, ret := "jsonb_extract_path", doc
		if asText {
			name, ret = "jsonb_extract_path_text", t
		}
		Register(Function{Name: name, Args: []types.Type{doc, list}, Variadic: true, Ret: ret, Strict: true, Total: true, Consts: ScalarConsts,
			Bind: extractPath(func(out *columnar.Builder, d []byte, path []pathStep) *pgerror.Error {
				putDoc(out, follow(d, path), asText)
				return nil
			})})
	}
	registerJSONBCasts()
}
