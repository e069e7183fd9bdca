package expr

import (
	"strconv"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// jsonMaker builds jsonb values; one is used for all rows of a kernel.
type jsonMaker struct {
	types.JSONBuilder
}

// members adds the members of an object, without those that skip refuses.
func (m *jsonMaker) members(j types.JSONDoc, skip func(key []byte) bool) {
	for k := range j.Len() {
		key := j.Key(k)
		if skip != nil && skip(key) {
			continue
		}
		m.Key(key)
		m.Doc(j.Value(k))
	}
}

// elements adds the elements of an array, or the value itself if it is none.
func (m *jsonMaker) elements(j types.JSONDoc) {
	if j.Kind() != types.JSONKindArray {
		m.Doc(j)
		return
	}
	for k := range j.Len() {
		m.Doc(j.Elem(k))
	}
}

// docKernel makes a kernel of a function that builds one document a row; nil
// document and error mean NULL.
func docKernel(f func(m *jsonMaker, x *Eval, a Args, i int) (ok bool, err *pgerror.Error)) func(c *Call) (Kernel, error) {
	return func(*Call) (Kernel, error) {
		return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			var m jsonMaker
			return RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
				m.Reset()
				ok, err := f(&m, x, a, i)
				switch {
				case err != nil:
					return err
				case !ok:
					out.Null()
				default:
					out.Extend(m.Append)
				}
				return nil
			})(c, x, args, n)
		}, nil
	}
}

type docFunc = func(m *jsonMaker, x *Eval, a Args, i int) (ok bool, err *pgerror.Error)

func concatDocs(m *jsonMaker, _ *Eval, a Args, i int) (bool, *pgerror.Error) {
	l, r := a.doc(0, i), a.doc(1, i)
	lo, ro := l.Kind() == types.JSONKindObject, r.Kind() == types.JSONKindObject
	switch {
	case lo && ro:
		m.Begin(true)
		m.members(l, nil)
		m.members(r, nil)
	default:
		m.Begin(false)
		m.elements(l)
		m.elements(r)
	}
	m.End()
	return true, nil
}

// deleteKeys removes keys of an object, or strings of an array.
func deleteKeys(m *jsonMaker, j types.JSONDoc, drop func(key []byte) bool) (bool, *pgerror.Error) {
	switch j.Kind() {
	case types.JSONKindObject:
		m.Begin(true)
		m.members(j, drop)
	case types.JSONKindArray:
		m.Begin(false)
		for k := range j.Len() {
			if e := j.Elem(k); e.Kind() != types.JSONKindString || !drop(e.Str()) {
				m.Doc(e)
			}
		}
	default:
		return false, errParam("cannot delete from scalar")
	}
	m.End()
	return true, nil
}

func deleteKey(m *jsonMaker, _ *Eval, a Args, i int) (bool, *pgerror.Error) {
	key := text(a.Bytes(1, i))
	return deleteKeys(m, a.doc(0, i), func(k []byte) bool { return text(k) == key })
}

func deleteMany(m *jsonMaker, _ *Eval, a Args, i int) (bool, *pgerror.Error) {
	arr := types.ReadArray(a.Bytes(1, i))
	if arr.NDim > 1 {
		return false, pgerror.New(pgerror.ArraySubscriptError, "wrong number of array subscripts")
	}
	return deleteKeys(m, a.doc(0, i), func(k []byte) bool {
		for e := range arr.N {
			if !arr.Null(e) && text(arr.Bytes(e)) == text(k) {
				return true
			}
		}
		return false
	})
}

func deleteIndex(m *jsonMaker, _ *Eval, a Args, i int) (bool, *pgerror.Error) {
	j, at := a.doc(0, i), int(a.Int32(1, i))
	switch j.Kind() {
	case types.JSONKindObject:
		return false, errParam("cannot delete from object using integer index")
	case types.JSONKindArray:
	default:
		return false, errParam("cannot delete from scalar")
	}
	if at < 0 {
		at += j.Len()
	}
	m.Begin(false)
	for k := range j.Len() {
		if k != at {
			m.Doc(j.Elem(k))
		}
	}
	m.End()
	return true, nil
}

// pathOp is what a path of jsonb_set and its like does at its end.
type pathOp uint8

const (
	pathReplace pathOp = 1 << iota
	pathCreate         // also if it is not there
	pathDelete
	pathBefore // insert before
	pathAfter  // insert after
	pathFill   // make what the path leads through, and the elements before
)

const pathInsert = pathBefore | pathAfter

// pathSetter changes a document at a path.
type pathSetter struct {
	m     *jsonMaker
	op    pathOp
	path  types.Array
	value types.JSONDoc
}

// walk adds j with the change at step `level` of the path made in it.
func (p *pathSetter) walk(j types.JSONDoc, level int) *pgerror.Error {
	if p.path.Null(level) {
		return pgerror.New(pgerror.NullValueNotAllowed, "path element at position %d is null", level+1)
	}
	switch j.Kind() {
	case types.JSONKindObject:
		p.m.Begin(true)
		if err := p.object(j, level); err != nil {
			return err
		}
		p.m.End()
	case types.JSONKindArray:
		p.m.Begin(false)
		if err := p.array(j, level); err != nil {
			return err
		}
		p.m.End()
	default:
		if p.op&pathFill != 0 {
			return errParam("cannot replace existing key").
				WithDetail("The path assumes key is a composite object, but it is a scalar value.")
		}
		p.m.Doc(j)
	}
	return nil
}

// build adds the value inside of what the steps from level on lead through.
func (p *pathSetter) build(level int) *pgerror.Error {
	if level == p.path.N {
		p.m.Doc(p.value)
		return nil
	}
	key := p.path.Bytes(level)
	if _, err := strconv.ParseInt(text(key), 10, 64); err != nil {
		p.m.Begin(true)
		p.m.Key(key)
		if err := p.build(level + 1); err != nil {
			return err
		}
		p.m.End()
		return nil
	}
	p.m.Begin(false)
	if err := p.emptyArray(level); err != nil {
		return err
	}
	p.m.End()
	return nil
}

// emptyArray adds the elements of an array that had none.
func (p *pathSetter) emptyArray(level int) *pgerror.Error {
	at, _ := leadingInt(text(p.path.Bytes(level)))
	if at < 0 && level == 0 {
		return errOutOfArray(level, at)
	}
	if err := p.nulls(at); err != nil {
		return err
	}
	return p.build(level + 1)
}

func errOutOfArray(level, at int) *pgerror.Error {
	return errParam("path element at position %d is out of range: %d", level+1, at)
}

// nulls adds n elements that are null.
func (p *pathSetter) nulls(n int) *pgerror.Error {
	if n > maxJSONFill {
		return pgerror.New(pgerror.ProgramLimitExceeded, "total size of jsonb array elements exceeds the maximum of %d bytes", 1<<28-1)
	}
	for range n {
		p.m.Doc(types.JSONDoc{byte(types.JSONKindNull)})
	}
	return nil
}

// maxJSONFill is how many elements an assignment may add: each takes four bytes.
const maxJSONFill = 1 << 26

func (p *pathSetter) object(j types.JSONDoc, level int) *pgerror.Error {
	key := p.path.Bytes(level)
	last := level == p.path.N-1
	found := false
	for k := range j.Len() {
		name, v := j.Key(k), j.Value(k)
		if text(name) != text(key) {
			p.m.Key(name)
			p.m.Doc(v)
			continue
		}
		found = true
		switch {
		case !last:
			p.m.Key(name)
			if err := p.walk(v, level+1); err != nil {
				return err
			}
		case p.op&pathInsert != 0:
			return errParam("cannot replace existing key").WithHint("Try using the function jsonb_set to replace key value.")
		case p.op&pathDelete == 0:
			p.m.Key(name)
			p.m.Doc(p.value)
		}
	}
	if !found && last && p.op&(pathCreate|pathInsert) != 0 {
		p.m.Key(key)
		p.m.Doc(p.value)
	}
	if !found && !last && p.op&pathFill != 0 {
		p.m.Key(key)
		return p.build(level + 1)
	}
	return nil
}

func (p *pathSetter) array(j types.JSONDoc, level int) *pgerror.Error {
	n := j.Len()
	at, ok := leadingInt(text(p.path.Bytes(level)))
	if !ok {
		return pgerror.New(pgerror.InvalidTextRepresentation, "path element at position %d is not an integer: \"%s\"", level+1, p.path.Bytes(level))
	}
	last := level == p.path.N-1
	if at < 0 {
		if at += n; at < 0 {
			if p.op&pathFill != 0 {
				return errOutOfArray(level, at-n)
			}
			at = -1 // before the first
		}
	}
	if p.op&pathFill == 0 {
		at = min(at, n)
	}
	add := last && p.op&(pathCreate|pathInsert) != 0
	if at < 0 && add {
		p.m.Doc(p.value)
	}
	for k := range n {
		e := j.Elem(k)
		if k != at {
			p.m.Doc(e)
			continue
		}
		if !last {
			if err := p.walk(e, level+1); err != nil {
				return err
			}
			continue
		}
		switch {
		case p.op&pathBefore != 0:
			p.m.Doc(p.value)
			p.m.Doc(e)
		case p.op&pathAfter != 0:
			p.m.Doc(e)
			p.m.Doc(p.value)
		case p.op&pathDelete == 0:
			p.m.Doc(p.value)
		}
	}
	switch {
	case at < n:
	case p.op&pathFill != 0:
		if err := p.nulls(at - n); err != nil {
			return err
		}
		return p.build(level + 1)
	case add:
		p.m.Doc(p.value)
	}
	return nil
}

// change adds document 0 of row i with op done at the path of argument 1; what
// says it for messages.
func change(m *jsonMaker, a Args, i int, op pathOp, value types.JSONDoc, what string) (bool, *pgerror.Error) {
	j := a.doc(0, i)
	p := pathSetter{m: m, path: types.ReadArray(a.Bytes(1, i)), op: op, value: value}
	if p.path.NDim > 1 {
		return false, pgerror.New(pgerror.ArraySubscriptError, "wrong number of array subscripts")
	}
	if !j.IsContainer() {
		return false, errParam("cannot %s in scalar", what)
	}
	if p.path.N == 0 || j.Len() == 0 && op&(pathCreate|pathInsert) == 0 {
		m.Doc(j)
		return true, nil
	}
	return true, p.walk(j, 0)
}

func deletePath(m *jsonMaker, _ *Eval, a Args, i int) (bool, *pgerror.Error) {
	return change(m, a, i, pathDelete, nil, "delete path")
}

// choose makes a function that changes a path in one of two ways, as its last
// argument says.
func choose(yes, no pathOp) docFunc {
	return func(m *jsonMaker, _ *Eval, a Args, i int) (bool, *pgerror.Error) {
		op := no
		if a.Bool(3, i) {
			op = yes
		}
		return change(m, a, i, op, a.doc(2, i), "set path")
	}
}

// setLax is jsonb_set_lax: what a NULL value does is an argument.
func setLax(m *jsonMaker, x *Eval, a Args, i int) (bool, *pgerror.Error) {
	if a.Null(0, i) || a.Null(1, i) || a.Null(3, i) {
		return false, nil
	}
	set := choose(pathReplace|pathCreate, pathReplace)
	badTreatment := errParam("null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"")
	switch {
	case a.Null(4, i):
		return false, badTreatment
	case !a.Null(2, i):
		return set(m, x, a, i)
	}
	switch text(a.Bytes(4, i)) {
	case "raise_exception":
		return false, pgerror.New(pgerror.NullValueNotAllowed, "JSON value must not be null").
			WithDetail("Exception was raised because null_value_treatment is \"raise_exception\".").
			WithHint("To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.")
	case "use_json_null":
		op := pathReplace
		if a.Bool(3, i) {
			op |= pathCreate
		}
		return change(m, a, i, op, types.JSONDoc{byte(types.JSONKindNull)}, "set path")
	case "delete_key":
		return deletePath(m, x, a, i)
	case "return_target":
		m.Doc(a.doc(0, i))
		return true, nil
	}
	return false, badTreatment
}

// stripNulls drops the members of objects that are null, at all depths.
func stripNulls(m *jsonMaker, j types.JSONDoc) {
	switch j.Kind() {
	case types.JSONKindObject:
		m.Begin(true)
		for k := range j.Len() {
			if v := j.Value(k); v.Kind() != types.JSONKindNull {
				m.Key(j.Key(k))
				stripNulls(m, v)
			}
		}
		m.End()
	case types.JSONKindArray:
		m.Begin(false)
		for k := range j.Len() {
			stripNulls(m, j.Elem(k))
		}
		m.End()
	default:
		m.Doc(j)
	}
}

// appendPretty is jsonb_pretty: one member or element a line.
func appendPretty(dst []byte, j types.JSONDoc, depth int) []byte {
	indent := func(dst []byte, n int) []byte {
		dst = append(dst, '\n')
		for range n {
			dst = append(dst, "    "...)
		}
		return dst
	}
	switch j.Kind() {
	case types.JSONKindObject:
		dst = append(dst, '{')
		for k := range j.Len() {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = indent(dst, depth+1)
			dst = append(types.AppendJSONString(dst, j.Key(k)), ": "...)
			dst = appendPretty(dst, j.Value(k), depth+1)
		}
		return append(indent(dst, depth), '}')
	case types.JSONKindArray:
		dst = append(dst, '[')
		for k := range j.Len() {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = appendPretty(indent(dst, depth+1), j.Elem(k), depth+1)
		}
		return append(indent(dst, depth), ']')
	}
	return j.AppendText(dst)
}

func boolConst(b bool) *Const {
	return &Const{Val: columnar.FromSlice([]bool{b}, nil), Typ: types.Bool}
}

func textConst(s string) *Const {
	b := columnar.NewBuilder(columnar.KindBytes, 1)
	b.String(s)
	return &Const{Val: b.Build(), Typ: types.Text}
}

func init() {
	doc, list, yes := types.JSONB, types.Of(types.OIDTextArray), types.Bool
	reg := func(name string, op bool, f docFunc, args ...types.Type) *Function {
		return Register(Function{Name: name, Operator: op, Args: args, Ret: doc, Strict: true, Consts: ScalarConsts, Bind: docKernel(f)})
	}
	reg("||", true, concatDocs, doc, doc)
	reg("jsonb_concat", false, concatDocs, doc, doc)
	reg("-", true, deleteKey, doc, types.Text)
	reg("-", true, deleteMany, doc, list)
	reg("-", true, deleteIndex, doc, types.Int4)
	reg("jsonb_delete", false, deleteKey, doc, types.Text)
	reg("jsonb_delete", false, deleteIndex, doc, types.Int4)
	reg("jsonb_delete", false, deleteMany, doc, list).Variadic = true
	reg("#-", true, deletePath, doc, list)
	reg("jsonb_delete_path", false, deletePath, doc, list)
	set := reg("jsonb_set", false, choose(pathReplace|pathCreate, pathReplace), doc, list, doc, yes)
	set.Defaults, set.ArgNames = []*Const{boolConst(true)}, []string{"jsonb_in", "path", "replacement", "create_if_missing"}
	ins := reg("jsonb_insert", false, choose(pathAfter, pathBefore), doc, list, doc, yes)
	ins.Defaults, ins.ArgNames = []*Const{boolConst(false)}, []string{"jsonb_in", "path", "replacement", "insert_after"}
	lax := reg("jsonb_set_lax", false, setLax, doc, list, doc, yes, types.Text)
	lax.Strict = false
	lax.Defaults = []*Const{boolConst(true), textConst("use_json_null")}
	lax.ArgNames = []string{"jsonb_in", "path", "replacement", "create_if_missing", "null_value_treatment"}
	reg("jsonb_strip_nulls", false, func(m *jsonMaker, _ *Eval, a Args, i int) (bool, *pgerror.Error) {
		stripNulls(m, a.doc(0, i))
		return true, nil
	}, doc).Total = true
	totalFn("jsonb_pretty", types.Text, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		out.Extend(func(dst []byte) []byte { return appendPretty(dst, a.doc(0, i), 0) })
		return nil
	}), doc)
}
