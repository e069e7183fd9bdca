package expr

import (
	"strconv"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// jsonIn is a part of a JSON value: of a jsonb, or of the text of a json.
type jsonIn struct {
	doc  types.JSONDoc
	text []byte // trimmed; nil if it is a jsonb
	// whole says that a scalar stands for its JSON text: a string with its
	// quotes, the word null.
	whole bool
}

// jsonInOf is a whole value of json or jsonb.
func jsonInOf(t types.OID, b []byte) jsonIn {
	if t == types.OIDJSON {
		return jsonIn{text: trimJSON(b)}
	}
	return jsonIn{doc: b}
}

func (v *jsonIn) kind() types.JSONKind {
	if v.text == nil {
		return v.doc.Kind()
	}
	switch v.text[0] {
	case '{':
		return types.JSONKindObject
	case '[':
		return types.JSONKindArray
	case '"':
		return types.JSONKindString
	case 't':
		return types.JSONKindTrue
	case 'f':
		return types.JSONKindFalse
	case 'n':
		return types.JSONKindNull
	}
	return types.JSONKindNumber
}

// appendText appends the JSON text.
func (v *jsonIn) appendText(dst []byte) []byte {
	if v.text == nil {
		return v.doc.AppendText(dst)
	}
	return append(dst, v.text...)
}

// appendString appends what a string says.
func (v *jsonIn) appendString(dst []byte) []byte {
	if v.text == nil {
		return append(dst, v.doc.Str()...)
	}
	return append(dst, unquote(v.text, nil)...)
}

// each calls f with the elements of an array.
func (v *jsonIn) each(f func(e jsonIn) error) (err error) {
	if v.text == nil {
		for i := range v.doc.Len() {
			if err := f(jsonIn{doc: v.doc.Elem(i)}); err != nil {
				return err
			}
		}
		return nil
	}
	eachElement(v.text, func(val []byte) bool {
		err = f(jsonIn{text: val})
		return err == nil
	})
	return err
}

// member is the value of a key of an object; of equal ones the last.
func (v *jsonIn) member(key string) (m jsonIn, ok bool) {
	if v.text == nil {
		d := v.doc.Get([]byte(key))
		return jsonIn{doc: d}, d != nil
	}
	eachMember(v.text, func(k, val []byte) bool {
		if string(k) == key {
			m, ok = jsonIn{text: val}, true
		}
		return true
	})
	return m, ok
}

// populator makes SQL values of JSON values, as json_populate_record does.
type populator struct {
	ctx     *Context
	opts    *types.Options
	domains map[types.OID]Kernel
	buf     []byte
}

func newPopulator(x *Eval) *populator { return &populator{ctx: x.Context, opts: x.options()} }

// value appends to b the value of type t that v stands for; key names it in hints.
func (p *populator) value(b *columnar.Builder, t types.Type, v jsonIn, key string) error {
	return p.valueOver(b, t, v, key, nil)
}

// valueOver is value; base is the record whose fields count where v, an object,
// has none, or nil.
func (p *populator) valueOver(b *columnar.Builder, t types.Type, v jsonIn, key string, base []byte) error {
	k := v.kind()
	if k == types.JSONKindNull && !v.whole {
		return p.null(b, t)
	}
	if t.OID.IsDomain() {
		return p.domain(b, t, func(b *columnar.Builder, base types.Type) error { return p.value(b, base, v, key) })
	}
	// A string is read by the type's input function, whatever the type.
	if k != types.JSONKindString || v.whole {
		switch {
		case isTrueArray(t.OID):
			return p.array(b, t, v, key)
		case t.OID.IsComposite():
			rec, err := p.composite(nil, types.NamesOf(t.OID), t.OID.Fields(), v, base)
			if err == nil {
				b.Bytes(rec)
			}
			return err
		}
	}
	p.buf = p.buf[:0]
	if asJSON := t.OID == types.OIDJSON || t.OID == types.OIDJSONB; k == types.JSONKindString && !v.whole && !asJSON {
		p.buf = v.appendString(p.buf)
	} else if k == types.JSONKindString && v.text != nil { // its escapes are not kept
		p.buf = types.AppendJSONString(p.buf, v.appendString(nil))
	} else {
		if t.OID == types.OIDJSONB && v.text == nil {
			b.Bytes(v.doc)
			return nil
		}
		p.buf = v.appendText(p.buf)
	}
	return types.ParseTextBytes(b, t, p.buf, p.opts)
}

// text appends the value of type t with the text form s.
func (p *populator) text(b *columnar.Builder, t types.Type, s []byte) error {
	if t.OID.IsDomain() {
		return p.domain(b, t, func(b *columnar.Builder, base types.Type) error { return p.text(b, base, s) })
	}
	return types.ParseTextBytes(b, t, s, p.opts)
}

func (p *populator) null(b *columnar.Builder, t types.Type) error {
	if t.OID.IsDomain() {
		return p.domain(b, t, func(b *columnar.Builder, _ types.Type) error {
			b.Null()
			return nil
		})
	}
	b.Null()
	return nil
}

// domain appends a value of a domain: one of the type behind it that passes the
// domain's constraints.
func (p *populator) domain(b *columnar.Builder, t types.Type, make func(b *columnar.Builder, base types.Type) error) error {
	one := columnar.NewBuilder(t.Kind(), 1)
	if err := make(one, t.Storage()); err != nil {
		return err
	}
	v := one.Build()
	if err := p.check(t.OID, v); err != nil {
		return err
	}
	b.AppendFrom(v, 0)
	return nil
}

// check checks the one value of v against the constraints of a domain.
func (p *populator) check(domain types.OID, v *columnar.Vec) error {
	k := p.domains[domain]
	if k == nil {
		var err error
		if k, err = domainKernel(domain); err != nil {
			return err
		}
		if p.domains == nil {
			p.domains = map[types.OID]Kernel{}
		}
		p.domains[domain] = k
	}
	return checkValues(k, v, p.ctx)
}

// checkValues runs the constraints of a domain over v.
func checkValues(k Kernel, v *columnar.Vec, ctx *Context) error {
	x := NewEval(ctx)
	x.frame = x.newFrame(v.Len(), 0)
	k(nil, x, []*columnar.Vec{v}, v.Len())
	if len(x.errs) > 0 {
		return x.errs[0].Err
	}
	return nil
}

// composite appends the record with some fields that the object v stands for.
// Fields that v does not have are taken from base, if that is not nil.
func (p *populator) composite(dst []byte, names []string, fields []types.Field, v jsonIn, base []byte) ([]byte, error) {
	if v.kind() != types.JSONKindObject {
		return dst, errShape("populate_composite", "an array", v.kind() != types.JSONKindArray)
	}
	r := types.RecordBuilder{Names: names}
	var old types.RecordReader
	if base != nil {
		old = types.ReadRecord(base)
	}
	for i, f := range fields {
		one := columnar.NewBuilder(f.Type.Kind(), 1)
		m, ok := v.member(f.Name)
		var err error
		switch {
		case ok:
			var inner []byte
			if f.Type.OID.IsComposite() && base != nil && i < old.N && !old.Null(i) {
				was := columnar.NewBuilder(columnar.KindBytes, 1)
				old.AppendField(was, i)
				inner = was.Build().Bytes(0)
			}
			err = p.valueOver(one, f.Type, m, f.Name, inner)
		case base != nil && i < old.N:
			old.AppendField(one, i)
		default:
			err = p.null(one, f.Type)
		}
		if err != nil {
			return dst, err
		}
		r.Field(types.Of(f.Type.Storage().OID), one.Build(), 0)
	}
	return r.Append(dst), nil
}

// arrayFiller collects the elements of an array of arrays, whose depth is
// known once the first element that is no array, or an empty array, is met.
type arrayFiller struct {
	p     *populator
	elem  types.Type
	key   string
	out   *columnar.Builder
	ndim  int // 0: not known yet
	dims  [types.MaxDims]int32
	known [types.MaxDims]bool
	sizes [types.MaxDims]int32
}

func (p *populator) array(b *columnar.Builder, t types.Type, v jsonIn, key string) error {
	elem := t.ElemType()
	f := arrayFiller{p: p, elem: elem, key: key, out: columnar.NewBuilder(elem.Kind(), 0)}
	if err := f.level(v, 0); err != nil {
		return err
	}
	f.dims[0] = f.sizes[0]
	vals := f.out.Build()
	b.Extend(func(dst []byte) []byte {
		if vals.Len() == 0 {
			return types.AppendEmptyArray(dst, elem.OID)
		}
		dims := make([]types.Dim, f.ndim)
		for i := range dims {
			dims[i] = types.Dim{Lower: 1, Len: f.dims[i]}
		}
		return types.AppendArray(dst, elem.OID, dims, vals, 0, vals.Len())
	})
	return nil
}

// level adds the elements of an array of some level of nesting.
func (f *arrayFiller) level(v jsonIn, level int) error {
	if v.kind() != types.JSONKindArray {
		return f.expectedArray(level)
	}
	if level == types.MaxDims {
		return pgerror.New(pgerror.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", level+1, types.MaxDims)
	}
	first := true
	err := v.each(func(e jsonIn) error {
		if first && f.ndim == 0 && e.kind() != types.JSONKindArray {
			f.ndim = level + 1
		}
		first = false
		if f.ndim == level+1 {
			f.sizes[level]++
			return f.p.value(f.out, f.elem, e, f.key)
		}
		if err := f.level(e, level+1); err != nil {
			return err
		}
		return f.endLevel(level + 1)
	})
	if first && f.ndim == 0 {
		f.ndim = level + 1
	}
	return err
}

// endLevel checks that the array that ended is as long as those before.
func (f *arrayFiller) endLevel(level int) error {
	switch n := f.sizes[level]; {
	case !f.known[level]:
		f.dims[level], f.known[level] = n, true
	case f.dims[level] != n:
		return pgerror.New(pgerror.InvalidTextRepresentation, "malformed JSON array").
			WithDetail("Multidimensional arrays must have sub-arrays with matching dimensions.")
	}
	f.sizes[level] = 0
	f.sizes[level-1]++
	return nil
}

func (f *arrayFiller) expectedArray(level int) error {
	err := pgerror.New(pgerror.InvalidTextRepresentation, "expected JSON array")
	if level == 0 {
		if f.key == "" {
			return err
		}
		return err.WithHint("See the value of key \"%s\".", f.key)
	}
	at := ""
	for _, n := range f.sizes[:level] {
		at += "[" + strconv.Itoa(int(n)) + "]"
	}
	if f.key == "" {
		return err.WithHint("See the array element %s.", at)
	}
	return err.WithHint("See the array element %s of key \"%s\".", at, f.key)
}
