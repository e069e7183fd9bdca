package parser

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"
	pgparser "github.com/pganalyze/pg_query_go/v6/parser"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// grammarTree parses a text by PostgreSQL's grammar.
//
// The grammar's C code can hand over its tree as a protocol buffer or as JSON.
// Packing the former takes a multiple of the time of parsing, as each level of
// the tree measures all those below it again. JSON is written in one pass; what
// reads it here is made from the tree's own types.
func grammarTree(text string) (*pg.ParseResult, error) {
	tree, err := pgparser.ParseToJSON(text)
	if err != nil {
		return nil, err
	}
	d := treeDecoder{in: tree}
	v := reflect.New(reflect.TypeFor[pg.ParseResult]())
	if d.message(treeTypes().root, v.Elem()); d.err == nil {
		return v.Interface().(*pg.ParseResult), nil
	}
	if d.err == errTooDeep {
		return nil, d.err
	}
	return pg.Parse(text)
}

var (
	errTooDeep  = errors.New("the tree is too deep")
	errNotATree = errors.New("not the JSON of a tree")
)

// treeDepth bounds the levels of a tree.
const treeDepth = 10000

// treeType is how to read a message of the tree.
type treeType struct {
	typ    reflect.Type // a struct
	fields map[string]*treeField
}

// treeField is how to read a field.
type treeField struct {
	index   int
	kind    protoreflect.Kind
	list    bool
	wrapper reflect.Type     // of a choice (oneof): the struct around it
	enum    map[string]int64 // numbers by name
	message *treeType
}

type treeTable struct {
	root  *treeType
	types map[reflect.Type]*treeType
}

// treeTypes are made when the first text is parsed.
var treeTypes = sync.OnceValue(func() *treeTable {
	t := &treeTable{types: map[reflect.Type]*treeType{}}
	t.root = t.of(reflect.TypeFor[pg.ParseResult]())
	return t
})

func (t *treeTable) of(typ reflect.Type) *treeType {
	if m := t.types[typ]; m != nil {
		return m
	}
	m := &treeType{typ: typ, fields: map[string]*treeField{}}
	t.types[typ] = m
	msg := reflect.New(typ).Interface().(protoreflect.ProtoMessage).ProtoReflect()
	goFields := map[string]int{} // by the names of fields, and of choices
	for i := range typ.NumField() {
		tag := typ.Field(i).Tag
		for part := range strings.SplitSeq(tag.Get("protobuf"), ",") {
			if name, ok := strings.CutPrefix(part, "name="); ok {
				goFields[name] = i
			}
		}
		if name := tag.Get("protobuf_oneof"); name != "" {
			goFields[name] = i
		}
	}
	fds := msg.Descriptor().Fields()
	for i := range fds.Len() {
		fd := fds.Get(i)
		f := &treeField{kind: fd.Kind(), list: fd.IsList()}
		var ft reflect.Type
		if of := fd.ContainingOneof(); of != nil {
			f.index = goFields[string(of.Name())]
			probe := msg.New()
			probe.Set(fd, probe.NewField(fd))
			f.wrapper = reflect.ValueOf(probe.Interface()).Elem().Field(f.index).Elem().Type().Elem()
			ft = f.wrapper.Field(0).Type
		} else {
			f.index = goFields[string(fd.Name())]
			ft = typ.Field(f.index).Type
		}
		switch f.kind {
		case protoreflect.MessageKind:
			if f.list {
				ft = ft.Elem()
			}
			f.message = t.of(ft.Elem())
		case protoreflect.EnumKind:
			f.enum = map[string]int64{}
			for j := range fd.Enum().Values().Len() {
				v := fd.Enum().Values().Get(j)
				f.enum[string(v.Name())] = int64(v.Number())
			}
		}
		m.fields[fd.JSONName()] = f
	}
	return m
}

// treeDecoder reads a tree's JSON, which has no blanks.
type treeDecoder struct {
	in    string
	pos   int
	depth int
	stack []reflect.Value // elements of the lists being read
	err   error
}

func (d *treeDecoder) fail() {
	if d.err == nil {
		d.err = errNotATree
	}
}

// take reads a byte if it is the next.
func (d *treeDecoder) take(c byte) bool {
	if d.pos < len(d.in) && d.in[d.pos] == c {
		d.pos++
		return true
	}
	return false
}

func (d *treeDecoder) expect(c byte) {
	if !d.take(c) {
		d.fail()
	}
}

// message reads an object into a struct.
func (d *treeDecoder) message(t *treeType, into reflect.Value) {
	if d.depth++; d.depth > treeDepth {
		d.err = errTooDeep
	}
	d.expect('{')
	for d.err == nil && !d.take('}') {
		f := t.fields[d.text()]
		d.expect(':')
		if f == nil || d.err != nil {
			d.fail()
			break
		}
		d.field(f, into)
		d.take(',')
	}
	d.depth--
}

func (d *treeDecoder) field(f *treeField, into reflect.Value) {
	field := into.Field(f.index)
	switch {
	case f.wrapper != nil:
		w := reflect.New(f.wrapper)
		d.value(f, w.Elem().Field(0))
		field.Set(w)
	case f.list:
		d.list(f, field)
	default:
		d.value(f, field)
	}
}

func (d *treeDecoder) list(f *treeField, into reflect.Value) {
	if f.kind != protoreflect.MessageKind {
		d.fail()
		return
	}
	d.expect('[')
	from := len(d.stack)
	for d.err == nil && !d.take(']') {
		v := reflect.New(f.message.typ)
		d.message(f.message, v.Elem())
		d.stack = append(d.stack, v)
		d.take(',')
	}
	n := len(d.stack) - from
	if n > 0 {
		s := reflect.MakeSlice(into.Type(), n, n)
		for i, v := range d.stack[from:] {
			s.Index(i).Set(v)
		}
		into.Set(s)
	}
	d.stack = d.stack[:from]
}

func (d *treeDecoder) value(f *treeField, into reflect.Value) {
	switch f.kind {
	case protoreflect.MessageKind:
		v := reflect.New(f.message.typ)
		d.message(f.message, v.Elem())
		into.Set(v)
	case protoreflect.StringKind:
		into.SetString(d.text())
	case protoreflect.EnumKind:
		n, ok := f.enum[d.text()]
		if !ok {
			d.fail()
		}
		into.SetInt(n)
	case protoreflect.BoolKind:
		b := d.word() == "true"
		into.SetBool(b)
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		n, err := strconv.ParseInt(d.word(), 10, 64)
		if err != nil || into.OverflowInt(n) {
			d.fail()
			return
		}
		into.SetInt(n)
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		n, err := strconv.ParseUint(d.word(), 10, 64)
		if err != nil || into.OverflowUint(n) {
			d.fail()
			return
		}
		into.SetUint(n)
	default:
		d.fail()
	}
}

// word reads a number, true or false.
func (d *treeDecoder) word() string {
	from := d.pos
	for d.pos < len(d.in) && d.in[d.pos] != ',' && d.in[d.pos] != '}' && d.in[d.pos] != ']' {
		d.pos++
	}
	return d.in[from:d.pos]
}

// text reads a string.
func (d *treeDecoder) text() string {
	d.expect('"')
	from := d.pos
	for d.pos < len(d.in) {
		switch d.in[d.pos] {
		case '"':
			d.pos++
			return d.in[from : d.pos-1]
		case '\\':
			return d.escaped(from)
		}
		d.pos++
	}
	d.fail()
	return ""
}

// escaped reads the rest of a string in which there is an escape.
func (d *treeDecoder) escaped(from int) string {
	out := []byte(d.in[from:d.pos])
	for d.pos < len(d.in) {
		c := d.in[d.pos]
		d.pos++
		if c == '"' {
			return string(out)
		}
		if c != '\\' || d.pos == len(d.in) {
			out = append(out, c)
			continue
		}
		c = d.in[d.pos]
		d.pos++
		switch c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			out = utf8.AppendRune(out, d.unicode())
		default:
			out = append(out, c)
		}
	}
	d.fail()
	return ""
}

func (d *treeDecoder) unicode() rune {
	if d.pos+4 > len(d.in) {
		d.fail()
		return 0
	}
	n, err := strconv.ParseUint(d.in[d.pos:d.pos+4], 16, 16)
	d.pos += 4
	if err != nil || utf16.IsSurrogate(rune(n)) { // the C code escapes single bytes only
		d.fail()
	}
	return rune(n)
}
