package expr

import (
	"bytes"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// The functions of type json work on the text as it was written. A stored
// value is well-formed; what can still be wrong are escapes that do not stand
// for characters, and functions that look into strings check all of them
// first, as PostgreSQL does.

// checkEscapes fails if some string of the document has no meaning as text.
func checkEscapes(doc []byte) *pgerror.Error {
	if !bytes.Contains(doc, []byte(`\u`)) {
		return nil
	}
	l := types.JSONLexer{S: text(doc), Decode: true}
	for {
		if err := l.Next(); err != nil {
			return pgerror.As(err)
		}
		if l.Tok == types.JSONEnd {
			return nil
		}
	}
}

func skipBlanks(s []byte, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// endOfString is the place after the string that starts at i.
func endOfString(s []byte, i int) int {
	for i++; s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// endOfValue is the place after the value that starts at i.
func endOfValue(s []byte, i int) int {
	switch s[i] {
	case '"':
		return endOfString(s, i)
	case '{', '[':
		depth := 0
		for ; ; i++ {
			switch s[i] {
			case '"':
				i = endOfString(s, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	for i < len(s) && s[i] != ',' && s[i] != '}' && s[i] != ']' && s[i] > ' ' {
		i++
	}
	return i
}

// trimJSON is the value without the white space around it.
func trimJSON(s []byte) []byte {
	i := skipBlanks(s, 0)
	return s[i:endOfValue(s, i)]
}

// unquote is the text of a JSON string; buf may be used for it.
func unquote(s, buf []byte) []byte {
	if bytes.IndexByte(s, '\\') < 0 {
		return s[1 : len(s)-1]
	}
	l := types.JSONLexer{S: text(s), Decode: true, Str: buf}
	if l.Next() != nil { // checkEscapes has found it before
		return nil
	}
	return l.Str
}

// eachMember calls f with the keys and values of an object in turn. The key is
// valid until the next call.
func eachMember(s []byte, f func(key, val []byte) bool) {
	var buf []byte
	for i := skipBlanks(s, 1); s[i] != '}'; i = skipBlanks(s, i) {
		if s[i] == ',' {
			i = skipBlanks(s, i+1)
		}
		end := endOfString(s, i)
		key := unquote(s[i:end], buf[:0])
		i = skipBlanks(s, skipBlanks(s, end)+1) // the colon
		end = endOfValue(s, i)
		if !f(key, s[i:end]) {
			return
		}
		i = end
	}
}

// eachElement calls f with the elements of an array in turn.
func eachElement(s []byte, f func(val []byte) bool) {
	for i := skipBlanks(s, 1); s[i] != ']'; i = skipBlanks(s, i) {
		if s[i] == ',' {
			i = skipBlanks(s, i+1)
		}
		end := endOfValue(s, i)
		if !f(s[i:end]) {
			return
		}
		i = end
	}
}

func countElements(s []byte) int {
	n := 0
	eachElement(s, func([]byte) bool { n++; return true })
	return n
}

// jsonAt is the element of an array, from the end if negative; nil if there is none.
func jsonAt(s []byte, at int) (found []byte) {
	if at < 0 {
		if at += countElements(s); at < 0 {
			return nil
		}
	}
	eachElement(s, func(val []byte) bool {
		if at == 0 {
			found = val
		}
		at--
		return at >= 0
	})
	return found
}

// jsonFollow is the part of a value at a path, nil if there is none. Of equal
// keys the last that leads to the end of the path counts.
func jsonFollow(s []byte, path []pathStep) (found []byte) {
	if len(path) == 0 {
		return s
	}
	switch s[0] {
	case '{':
		eachMember(s, func(key, val []byte) bool {
			if bytes.Equal(key, path[0].key) {
				if v := jsonFollow(val, path[1:]); v != nil {
					found = v
				}
			}
			return true
		})
	case '[':
		if !path[0].isInt {
			return nil
		}
		if v := jsonAt(s, path[0].index); v != nil {
			return jsonFollow(v, path[1:])
		}
	}
	return found
}

// putJSON appends a part of a json, NULL if there is none; asText appends the
// text of ->> instead.
func putJSON(out *columnar.Builder, s []byte, asText bool) {
	switch {
	case s == nil, asText && s[0] == 'n':
		out.Null()
	case asText && s[0] == '"':
		out.Bytes(unquote(s, nil))
	default:
		out.Bytes(s)
	}
}

func jsonField(asText bool) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		if err := checkEscapes(a.Bytes(0, i)); err != nil {
			return err
		}
		s := trimJSON(a.Bytes(0, i))
		step := [1]pathStep{{key: a.Bytes(1, i)}}
		if s[0] != '{' {
			out.Null()
			return nil
		}
		putJSON(out, jsonFollow(s, step[:]), asText)
		return nil
	}
}

func jsonElement(asText bool) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		if err := checkEscapes(a.Bytes(0, i)); err != nil {
			return err
		}
		s := trimJSON(a.Bytes(0, i))
		if s[0] != '[' {
			out.Null()
			return nil
		}
		putJSON(out, jsonAt(s, int(a.Int32(1, i))), asText)
		return nil
	}
}

func jsonPath(asText bool) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		var buf [8]pathStep
		path, ok := readPath(a.Bytes(1, i), buf[:0])
		if !ok {
			out.Null()
			return nil
		}
		if err := checkEscapes(a.Bytes(0, i)); err != nil {
			return err
		}
		putJSON(out, jsonFollow(trimJSON(a.Bytes(0, i)), path), asText)
		return nil
	}
}

func jsonTypeof(s []byte) string {
	switch s[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

func jsonArrayLength(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	switch s := trimJSON(a.Bytes(0, i)); s[0] {
	case '[':
		out.Int32(int32(countElements(s)))
	case '{':
		return errParam("cannot get array length of a non-array")
	default:
		return errParam("cannot get array length of a scalar")
	}
	return nil
}

// stripJSONNulls drops members that are null, and all white space.
func stripJSONNulls(dst, s []byte) []byte {
	switch s[0] {
	case '{':
		dst = append(dst, '{')
		first := true
		eachMember(s, func(key, val []byte) bool {
			if val[0] == 'n' {
				return true
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(types.AppendJSONString(dst, key), ':')
			dst = stripJSONNulls(dst, val)
			return true
		})
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		first := true
		eachElement(s, func(val []byte) bool {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = stripJSONNulls(dst, val)
			return true
		})
		return append(dst, ']')
	case '"':
		return types.AppendJSONString(dst, unquote(s, nil))
	}
	return append(dst, s...)
}

// errShape is the error of a set-returning function for what it cannot take apart.
func errShape(name, what string, scalar bool) *pgerror.Error {
	if scalar {
		return errParam("cannot call %s on a scalar", name)
	}
	return errParam("cannot call %s on %s", name, what)
}

// jsonEach is json_each and json_each_text.
func jsonEach(asText bool) TableKernel {
	return func(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
		if err := checkEscapes(args[0].Bytes(i)); err != nil {
			return 0, err
		}
		s := trimJSON(args[0].Bytes(i))
		switch s[0] {
		case '{':
		case '[':
			return 0, errParam("cannot deconstruct an array as an object")
		default:
			return 0, errParam("cannot deconstruct a scalar")
		}
		n := 0
		eachMember(s, func(key, val []byte) bool {
			out[0].Bytes(key)
			putJSON(out[1], val, asText)
			n++
			return true
		})
		return n, nil
	}
}

func jsonElements(name string, asText bool) TableKernel {
	return func(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
		doc := args[0].Bytes(i)
		if asText {
			if err := checkEscapes(doc); err != nil {
				return 0, err
			}
		}
		s := trimJSON(doc)
		if s[0] != '[' {
			return 0, errShape(name, "a non-array", s[0] != '{')
		}
		n := 0
		eachElement(s, func(val []byte) bool {
			putJSON(out[0], val, asText)
			n++
			return true
		})
		return n, nil
	}
}

func jsonObjectKeys(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	if err := checkEscapes(args[0].Bytes(i)); err != nil {
		return 0, err
	}
	s := trimJSON(args[0].Bytes(i))
	if s[0] != '{' {
		return 0, errShape("json_object_keys", "an array", s[0] != '[')
	}
	n := 0
	eachMember(s, func(key, _ []byte) bool {
		out[0].Bytes(key)
		n++
		return true
	})
	return n, nil
}

// jsonbEach is jsonb_each and jsonb_each_text.
func jsonbEach(name string, asText bool) TableKernel {
	return func(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
		j := types.JSONDoc(args[0].Bytes(i))
		if j.Kind() != types.JSONKindObject {
			return 0, errParam("cannot call %s on a non-object", name)
		}
		n := j.Len()
		for k := range n {
			out[0].Bytes(j.Key(k))
			putDoc(out[1], j.Value(k), asText)
		}
		return n, nil
	}
}

func jsonbElements(asText bool) TableKernel {
	return func(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
		j := types.JSONDoc(args[0].Bytes(i))
		switch j.Kind() {
		case types.JSONKindArray:
		case types.JSONKindObject:
			return 0, errParam("cannot extract elements from an object")
		default:
			return 0, errParam("cannot extract elements from a scalar")
		}
		n := j.Len()
		for k := range n {
			putDoc(out[0], j.Elem(k), asText)
		}
		return n, nil
	}
}

func jsonbObjectKeys(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	j := types.JSONDoc(args[0].Bytes(i))
	if j.Kind() != types.JSONKindObject {
		return 0, errShape("jsonb_object_keys", "an array", !j.IsContainer())
	}
	n := j.Len()
	for k := range n {
		out[0].Bytes(j.Key(k))
	}
	return n, nil
}

func registerJSONTables() {
	t := types.Text
	table := func(name string, arg types.Type, k TableKernel, names []string, cols ...types.Type) {
		RegisterTableFunction(TableFunction{Name: name, Args: []types.Type{arg}, Cols: cols, Names: names, Strict: true, Eval: k})
	}
	pair, value := []string{"key", "value"}, []string{"value"}
	table("json_each", types.JSON, jsonEach(false), pair, t, types.JSON)
	table("json_each_text", types.JSON, jsonEach(true), pair, t, t)
	table("json_array_elements", types.JSON, jsonElements("json_array_elements", false), value, types.JSON)
	table("json_array_elements_text", types.JSON, jsonElements("json_array_elements_text", true), value, t)
	table("json_object_keys", types.JSON, jsonObjectKeys, []string{"json_object_keys"}, t)
	table("jsonb_each", types.JSONB, jsonbEach("jsonb_each", false), pair, t, types.JSONB)
	table("jsonb_each_text", types.JSONB, jsonbEach("jsonb_each_text", true), pair, t, t)
	table("jsonb_array_elements", types.JSONB, jsonbElements(false), value, types.JSONB)
	table("jsonb_array_elements_text", types.JSONB, jsonbElements(true), value, t)
	table("jsonb_object_keys", types.JSONB, jsonbObjectKeys, []string{"jsonb_object_keys"}, t)
}

func init() {
	doc, t, i4, list := types.JSON, types.Text, types.Int4, types.Of(types.OIDTextArray)
	op := func(symbol, name string, ret types.Type, f rowFunc, args ...types.Type) {
		rowOp(symbol, ret, f, args...)
		if name != "" {
			rowFn(name, ret, f, args...)
		}
	}
	op("->", "json_object_field", doc, jsonField(false), doc, t)
	op("->>", "json_object_field_text", t, jsonField(true), doc, t)
	op("->", "json_array_element", doc, jsonElement(false), doc, i4)
	op("->>", "json_array_element_text", t, jsonElement(true), doc, i4)
	op("#>", "", doc, jsonPath(false), doc, list)
	op("#>>", "", t, jsonPath(true), doc, list)
	totalFn("json_typeof", t, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		out.String(jsonTypeof(trimJSON(a.Bytes(0, i))))
		return nil
	}), doc)
	rowFn("json_array_length", i4, jsonArrayLength, doc)
	rowFn("json_strip_nulls", doc, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		if err := checkEscapes(a.Bytes(0, i)); err != nil {
			return err
		}
		out.Extend(func(dst []byte) []byte { return stripJSONNulls(dst, trimJSON(a.Bytes(0, i))) })
		return nil
	}, doc)
	for _, asText := range []bool{false, true} {
		name, ret := "json_extract_path", doc
		if asText {
			name, ret = "json_extract_path_text", t
		}
		Register(Function{Name: name, Args: []types.Type{doc, list}, Variadic: true, Ret: ret, Strict: true, Consts: ScalarConsts,
			Bind: extractPath(func(out *columnar.Builder, d []byte, path []pathStep) *pgerror.Error {
				if err := checkEscapes(d); err != nil {
					return err
				}
				putJSON(out, jsonFollow(trimJSON(d), path), asText)
				return nil
			})})
	}
	registerJSONTables()
}
