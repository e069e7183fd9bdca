package expr

import (
	"strconv"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// NewNamedRow makes the whole row of a relation, whose fields have names.
func NewNamedRow(fields []Expr, names []string) Expr {
	row := NewRow(fields).(*Row)
	row.Names = names
	return row
}

// NewTypedRow makes a value of a composite type of its fields.
func NewTypedRow(fields []Expr, names []string, typ types.OID) Expr {
	row := NewRow(fields).(*Row)
	row.Names, row.Typ = names, types.Of(typ)
	return row
}

// jsonWriter turns SQL values into JSON text.
type jsonWriter struct {
	opts  *types.Options
	buf   []byte
	of    types.OID // a composite type
	known []string  // the names of its fields
}

// names are those of the fields of a record: its type knows the present ones, also
// where they have changed since it was made.
func (w *jsonWriter) names(t types.OID, r *types.RecordReader) []string {
	if t == types.OIDRecord {
		return r.Names()
	}
	if w.of != t {
		w.of, w.known = t, types.NamesOf(t)
	}
	if len(w.known) != r.N {
		return r.Names()
	}
	return w.known
}

func (x *Eval) jsonWriter() *jsonWriter { return &jsonWriter{opts: x.options()} }

// element makes a vector of element k of an array, or field k of a record.
func element(kind columnar.Kind, add func(b *columnar.Builder)) *columnar.Vec {
	b := columnar.NewBuilder(kind, 1)
	add(b)
	return b.Build()
}

// append appends value row of v, of type t, as JSON text. pretty puts elements
// and members on lines of their own, at the outermost level.
func (w *jsonWriter) append(dst []byte, t types.Type, v *columnar.Vec, row int, pretty bool) []byte {
	if v.Null(row) {
		return append(dst, "null"...)
	}
	if t.OID.IsComposite() {
		return w.record(dst, t.OID, v.Bytes(row), pretty)
	}
	switch t.OID {
	case types.OIDBool:
		return strconv.AppendBool(dst, v.Bools()[row])
	case types.OIDInt2, types.OIDInt4, types.OIDInt8:
		return types.AppendText(dst, t, v, row, w.opts)
	case types.OIDFloat4, types.OIDFloat8, types.OIDNumeric:
		l := len(dst)
		dst = types.AppendText(dst, t, v, row, w.opts)
		if c := dst[len(dst)-1]; c == 'N' || c == 'y' { // NaN, Infinity
			s := string(dst[l:])
			return types.AppendJSONString(dst[:l], s)
		}
		return dst
	case types.OIDJSON, types.OIDJSONB:
		return types.AppendText(dst, t, v, row, w.opts)
	case types.OIDRecord:
		return w.record(dst, t.OID, v.Bytes(row), pretty)
	case types.OIDText, types.OIDVarchar, types.OIDBPChar, types.OIDName:
		return types.AppendJSONString(dst, v.Bytes(row))
	}
	if isTrueArray(t.OID) {
		a := types.ReadArray(v.Bytes(row))
		at := 0
		return w.array(dst, &a, 0, &at, pretty)
	}
	if t.OID.IsMap() {
		return w.entries(dst, t.OID, v.Bytes(row))
	}
	w.buf = w.appendISO(w.buf[:0], t, v, row)
	return types.AppendJSONString(dst, w.buf)
}

// entries appends a map as an object.
func (w *jsonWriter) entries(dst []byte, m types.OID, b []byte) []byte {
	key, value := m.MapTypes()
	kb, vb := columnar.NewBuilder(key.Kind(), 4), columnar.NewBuilder(value.Kind(), 4)
	n := types.MapEntries(b, kb, vb)
	keys, values := kb.Build(), vb.Build()
	dst = append(dst, '{')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(types.AppendJSONString(dst, types.AppendText(nil, key, keys, i, w.opts)), ':')
		dst = w.append(dst, value, values, i, false)
	}
	return append(dst, '}')
}

func isTrueArray(o types.OID) bool {
	i := types.Lookup(o)
	return i != nil && i.IsArray()
}

// appendISO is the text form, for dates and times that of ISO 8601.
func (w *jsonWriter) appendISO(dst []byte, t types.Type, v *columnar.Vec, row int) []byte {
	if t.OID.IsComposite() {
		t = types.Record
	}
	l := len(dst)
	opts := w.opts
	switch t.OID {
	case types.OIDDate, types.OIDTimestamp, types.OIDTimestampTZ:
		opts = opts.ISO()
	}
	dst = types.AppendText(dst, t, v, row, opts)
	if t.OID != types.OIDTimestamp && t.OID != types.OIDTimestampTZ {
		return dst
	}
	return types.ISOTimestamp(dst, l, t.OID == types.OIDTimestampTZ)
}

func (w *jsonWriter) array(dst []byte, a *types.Array, level int, at *int, pretty bool) []byte {
	if a.NDim == 0 {
		return append(dst, "[]"...)
	}
	dst = append(dst, '[')
	for k := range a.Dims[level].Len {
		if k > 0 {
			dst = append(dst, ',')
			if pretty {
				dst = append(dst, "\n "...)
			}
		}
		if level+1 < a.NDim {
			dst = w.array(dst, a, level+1, at, false)
			continue
		}
		v := element(a.Kind(), func(b *columnar.Builder) { a.AppendElem(b, *at) })
		dst = w.append(dst, types.Of(a.Elem), v, 0, false)
		*at++
	}
	return append(dst, ']')
}

func fieldName(names []string, k int) string {
	if names == nil {
		return "f" + strconv.Itoa(k+1)
	}
	return names[k]
}

func (w *jsonWriter) record(dst []byte, t types.OID, b []byte, pretty bool) []byte {
	r := types.ReadRecord(b)
	names := w.names(t, &r)
	dst = append(dst, '{')
	for k := range r.N {
		if k > 0 {
			dst = append(dst, ',')
			if pretty {
				dst = append(dst, "\n "...)
			}
		}
		dst = append(types.AppendJSONString(dst, fieldName(names, k)), ':')
		v := element(r.Type(k).Kind(), func(b *columnar.Builder) { r.AppendField(b, k) })
		dst = w.append(dst, r.Type(k), v, 0, false)
	}
	return append(dst, '}')
}

// docWriter turns SQL values into jsonb.
type docWriter struct {
	*jsonMaker
	jsonWriter
}

// value adds value row of v, of type t.
func (w *docWriter) value(t types.Type, v *columnar.Vec, row int) *pgerror.Error {
	if v.Null(row) {
		w.Null()
		return nil
	}
	if t.OID.IsComposite() {
		return w.fields(t.OID, v.Bytes(row))
	}
	switch t.OID {
	case types.OIDBool:
		w.Bool(v.Bools()[row])
	case types.OIDInt2, types.OIDInt4, types.OIDInt8, types.OIDFloat4, types.OIDFloat8, types.OIDNumeric:
		w.buf = w.append(w.buf[:0], t, v, row, false)
		return w.text(w.buf)
	case types.OIDJSON:
		return w.text(v.Bytes(row))
	case types.OIDJSONB:
		w.Doc(v.Bytes(row))
	case types.OIDRecord:
		return w.fields(t.OID, v.Bytes(row))
	case types.OIDText, types.OIDVarchar, types.OIDBPChar, types.OIDName:
		w.String(v.Bytes(row))
	default:
		if isTrueArray(t.OID) {
			a := types.ReadArray(v.Bytes(row))
			at := 0
			return w.list(&a, 0, &at)
		}
		if t.OID.IsMap() {
			return w.text(w.entries(nil, t.OID, v.Bytes(row)))
		}
		w.buf = w.appendISO(w.buf[:0], t, v, row)
		w.String(w.buf)
	}
	return nil
}

// text adds a JSON text.
func (w *docWriter) text(s []byte) *pgerror.Error {
	d, err := types.ParseJSONB(nil, text(s))
	if err != nil {
		return pgerror.As(err)
	}
	w.Doc(d)
	return nil
}

func (w *docWriter) list(a *types.Array, level int, at *int) *pgerror.Error {
	w.Begin(false)
	if a.NDim > 0 {
		for range a.Dims[level].Len {
			if level+1 < a.NDim {
				if err := w.list(a, level+1, at); err != nil {
					return err
				}
				continue
			}
			v := element(a.Kind(), func(b *columnar.Builder) { a.AppendElem(b, *at) })
			if err := w.value(types.Of(a.Elem), v, 0); err != nil {
				return err
			}
			*at++
		}
	}
	w.End()
	return nil
}

func (w *docWriter) fields(t types.OID, b []byte) *pgerror.Error {
	r := types.ReadRecord(b)
	names := w.names(t, &r)
	w.Begin(true)
	for k := range r.N {
		w.Key([]byte(fieldName(names, k)))
		v := element(r.Type(k).Kind(), func(b *columnar.Builder) { r.AppendField(b, k) })
		if err := w.value(r.Type(k), v, 0); err != nil {
			return err
		}
	}
	w.End()
	return nil
}

// keyText appends the text of a value that is to be a key; numbers and
// booleans are as in JSON.
func (w *jsonWriter) keyText(dst []byte, t types.Type, v *columnar.Vec, row int) ([]byte, *pgerror.Error) {
	if t.OID.IsComposite() {
		t = types.Record
	}
	switch t.OID {
	case types.OIDJSON, types.OIDJSONB, types.OIDRecord:
		return dst, errKeyScalar()
	case types.OIDBool:
		return strconv.AppendBool(dst, v.Bools()[row]), nil
	}
	if isTrueArray(t.OID) {
		return dst, errKeyScalar()
	}
	return w.appendISO(dst, t, v, row), nil
}

func errKeyScalar() *pgerror.Error {
	return errParam("key value must be scalar, not array, composite, or json")
}

// value of argument k as a vector, its row, and its type.
func (s *spreadArgs) value(k int) (types.Type, *columnar.Vec, int) {
	if s.c.Variadic {
		return types.Of(s.array.Elem), element(s.array.Kind(), func(b *columnar.Builder) { s.array.AppendElem(b, k) }), 0
	}
	v, row := s.a.row(s.first+k, s.row)
	return s.typ(k), v, row
}

// variadicNull reports whether a VARIADIC array is NULL.
func (s *spreadArgs) variadicNull() bool { return s.c.Variadic && s.a.Null(len(s.a)-1, s.row) }

// jsonBuild are the functions that build arrays and objects of their arguments.
type jsonBuild struct {
	absent bool // NULLs are left out
	unique bool // a key may occur once
	ctor   bool // it is a constructor of SQL/JSON
}

func (o jsonBuild) arrayText(x *Eval, s *spreadArgs, dst []byte) ([]byte, *pgerror.Error) {
	w := x.jsonWriter()
	dst = append(dst, '[')
	start := len(dst)
	for k := range s.n {
		t, v, row := s.value(k)
		if o.absent && v.Null(row) {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ", "...)
		}
		dst = w.append(dst, t, v, row, false)
	}
	return append(dst, ']'), nil
}

func errPairs() *pgerror.Error {
	return errParam("argument list must have even number of elements").
		WithHint("The arguments of %s must consist of alternating keys and values.", "json_build_object()")
}

// seenKeys are the keys of an object so far; nil notes nothing.
type seenKeys map[string]bool

// add notes a key; it reports whether the key is new.
func (k seenKeys) add(key []byte) bool {
	if k == nil {
		return true
	}
	if k[string(key)] {
		return false
	}
	k[string(key)] = true
	return true
}

func (o jsonBuild) keys() seenKeys {
	if o.unique {
		return seenKeys{}
	}
	return nil
}

// errDuplicateKey is the error of json; jsonb does not name the key.
func errDuplicateKey(key []byte) *pgerror.Error {
	if key == nil {
		return pgerror.New(pgerror.DuplicateJSONObjectKey, "duplicate JSON object key value")
	}
	return pgerror.New(pgerror.DuplicateJSONObjectKey, "duplicate JSON object key value: %s", types.AppendJSONString(nil, key))
}

func (o jsonBuild) objectText(x *Eval, s *spreadArgs, dst []byte) ([]byte, *pgerror.Error) {
	w := x.jsonWriter()
	if s.n%2 != 0 {
		return dst, errPairs()
	}
	dst = append(dst, '{')
	start := len(dst)
	seen := o.keys()
	var key []byte
	for k := 0; k < s.n; k += 2 {
		vt, v, row := s.value(k + 1)
		skip := o.absent && v.Null(row)
		if skip && !o.unique {
			continue
		}
		t, kv, krow := s.value(k)
		switch {
		case !kv.Null(krow):
		case o.ctor:
			return dst, pgerror.New(pgerror.NullValueNotAllowed, "null value not allowed for object key")
		default:
			return dst, errParam("argument %d cannot be null", k+1).WithHint("Object keys should be text.")
		}
		var err *pgerror.Error
		if key, err = w.keyText(key[:0], t, kv, krow); err != nil {
			return dst, err
		}
		if !seen.add(key) {
			return dst, errDuplicateKey(key)
		}
		if skip {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ", "...)
		}
		dst = append(types.AppendJSONString(dst, key), " : "...)
		dst = w.append(dst, vt, v, row, false)
	}
	return append(dst, '}'), nil
}

func (o jsonBuild) arrayDoc(x *Eval, s *spreadArgs, dst []byte) ([]byte, *pgerror.Error) {
	w := docWriter{jsonMaker: new(jsonMaker), jsonWriter: *x.jsonWriter()}
	w.Begin(false)
	for k := range s.n {
		t, v, row := s.value(k)
		if o.absent && v.Null(row) {
			continue
		}
		if err := w.value(t, v, row); err != nil {
			return dst, err
		}
	}
	w.End()
	return w.Append(dst), nil
}

func (o jsonBuild) objectDoc(x *Eval, s *spreadArgs, dst []byte) ([]byte, *pgerror.Error) {
	w := docWriter{jsonMaker: new(jsonMaker), jsonWriter: *x.jsonWriter()}
	if s.n%2 != 0 {
		return dst, errParam("argument list must have even number of elements").
			WithHint("The arguments of %s must consist of alternating keys and values.", "jsonb_build_object()")
	}
	w.Begin(true)
	seen := o.keys()
	var key []byte
	for k := 0; k < s.n; k += 2 {
		t, v, row := s.value(k)
		if v.Null(row) {
			return dst, errParam("argument %d: key must not be null", k+1)
		}
		var err *pgerror.Error
		if key, err = w.keyText(key[:0], t, v, row); err != nil {
			return dst, err
		}
		if t, v, row = s.value(k + 1); o.absent && v.Null(row) && !o.unique {
			continue
		}
		if !seen.add(key) {
			return dst, errDuplicateKey(nil)
		}
		if o.absent && v.Null(row) {
			continue
		}
		w.Key(key)
		if err := w.value(t, v, row); err != nil {
			return dst, err
		}
	}
	w.End()
	return w.Append(dst), nil
}

// buildKernel is json[b]_build_array and _object.
func buildKernel(f func(x *Eval, s *spreadArgs, dst []byte) ([]byte, *pgerror.Error)) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		return RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			s := spreadRow(c, x, a, 0, i)
			if s.variadicNull() {
				out.Null()
				return nil
			}
			b, err := f(x, &s, nil)
			if err != nil {
				return err
			}
			out.Bytes(b)
			return nil
		})(c, x, args, n)
	}
}

// pairsObject is json[b]_object(text[]) and (text[], text[]).
func pairsObject(a Args, i int, add func(key, val []byte, null bool)) *pgerror.Error {
	keys := types.ReadArray(a.Bytes(0, i))
	key := func(k int) ([]byte, *pgerror.Error) {
		if keys.Null(k) {
			return nil, pgerror.New(pgerror.NullValueNotAllowed, "null value not allowed for object key")
		}
		return keys.Bytes(k), nil
	}
	val := func(arr *types.Array, k int) ([]byte, bool) {
		if arr.Null(k) {
			return nil, true
		}
		return arr.Bytes(k), false
	}
	if len(a) == 2 {
		vals := types.ReadArray(a.Bytes(1, i))
		if keys.NDim > 1 || keys.NDim != vals.NDim {
			return pgerror.New(pgerror.ArraySubscriptError, "wrong number of array subscripts")
		}
		if keys.N != vals.N {
			return pgerror.New(pgerror.ArraySubscriptError, "mismatched array dimensions")
		}
		for k := range keys.N {
			b, err := key(k)
			if err != nil {
				return err
			}
			v, null := val(&vals, k)
			add(b, v, null)
		}
		return nil
	}
	switch {
	case keys.NDim == 1 && keys.N%2 != 0:
		return pgerror.New(pgerror.ArraySubscriptError, "array must have even number of elements")
	case keys.NDim == 2 && keys.Dims[1].Len != 2:
		return pgerror.New(pgerror.ArraySubscriptError, "array must have two columns")
	case keys.NDim > 2:
		return pgerror.New(pgerror.ArraySubscriptError, "wrong number of array subscripts")
	}
	for k := 0; k < keys.N; k += 2 {
		b, err := key(k)
		if err != nil {
			return err
		}
		v, null := val(&keys, k+1)
		add(b, v, null)
	}
	return nil
}

func objectText(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	b := []byte{'{'}
	err := pairsObject(a, i, func(key, val []byte, null bool) {
		if len(b) > 1 {
			b = append(b, ", "...)
		}
		b = append(types.AppendJSONString(b, key), " : "...)
		if null {
			b = append(b, "null"...)
		} else {
			b = types.AppendJSONString(b, val)
		}
	})
	if err != nil {
		return err
	}
	out.Bytes(append(b, '}'))
	return nil
}

func objectDoc(m *jsonMaker, _ *Eval, a Args, i int) (bool, *pgerror.Error) {
	m.Begin(true)
	err := pairsObject(a, i, func(key, val []byte, null bool) {
		m.Key(key)
		if null {
			m.Null()
		} else {
			m.String(val)
		}
	})
	if err != nil {
		return false, err
	}
	m.End()
	return true, nil
}

// toJSON makes the kernels of to_json and its like; pretty is the number of an
// argument, 0 for none.
func toJSON(pretty int) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		w := x.jsonWriter()
		t := c.Args[0].Type()
		if t.OID == types.OIDRecord { // which knows less than what it was made of
			t = StripRelabel(c.Args[0]).Type()
		}
		return RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			v, row := a.row(0, i)
			out.Extend(func(dst []byte) []byte { return w.append(dst, t, v, row, pretty > 0 && a.Bool(pretty, i)) })
			return nil
		})(c, x, args, n)
	}
}

func toJSONB(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	w := docWriter{jsonMaker: new(jsonMaker), jsonWriter: *x.jsonWriter()}
	t := c.Args[0].Type()
	return RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		w.Reset()
		v, row := a.row(0, i)
		if err := w.value(t, v, row); err != nil {
			return err
		}
		out.Extend(w.Append)
		return nil
	})(c, x, args, n)
}

func init() {
	plain := jsonBuild{}
	any, elem, list := types.Of(types.OIDAny), types.Of(types.OIDAnyElement), types.Of(types.OIDTextArray)
	for _, f := range []struct {
		name string
		ret  types.Type
		f    func(x *Eval, s *spreadArgs, dst []byte) ([]byte, *pgerror.Error)
	}{
		{"json_build_array", types.JSON, plain.arrayText}, {"json_build_object", types.JSON, plain.objectText},
		{"jsonb_build_array", types.JSONB, plain.arrayDoc}, {"jsonb_build_object", types.JSONB, plain.objectDoc},
	} {
		Register(Function{Name: f.name, Args: []types.Type{any}, Variadic: true, Ret: f.ret, Volatility: Stable, Consts: ScalarConsts, Eval: buildKernel(f.f)})
		Register(Function{Name: f.name, Ret: f.ret, Volatility: Stable, Consts: ScalarConsts, Eval: buildKernel(f.f)})
	}
	rowFn("json_object", types.JSON, objectText, list)
	rowFn("json_object", types.JSON, objectText, list, list)
	for _, args := range [][]types.Type{{list}, {list, list}} {
		Register(Function{Name: "jsonb_object", Args: args, Ret: types.JSONB, Strict: true, Consts: ScalarConsts, Bind: docKernel(objectDoc)})
	}
	stable := func(name string, ret types.Type, k Kernel, args ...types.Type) {
		Register(Function{Name: name, Args: args, Ret: ret, Strict: true, Volatility: Stable, Consts: ScalarConsts, Eval: k})
	}
	stable("to_json", types.JSON, toJSON(0), elem)
	stable("to_jsonb", types.JSONB, toJSONB, elem)
	stable("row_to_json", types.JSON, toJSON(0), types.Record)
	stable("row_to_json", types.JSON, toJSON(1), types.Record, types.Bool)
	stable("array_to_json", types.JSON, toJSON(0), types.Of(types.OIDAnyArray))
	stable("array_to_json", types.JSON, toJSON(1), types.Of(types.OIDAnyArray), types.Bool)
}
