package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/types"
)

// avroOp says how a node reads a value.
type avroOp uint8

const (
	opNull avroOp = iota
	opBool
	opInt32
	opInt64
	opIntFloat32 // an integer as a float
	opIntFloat64
	opFloat32
	opFloat32To64
	opFloat64
	opText
	opBytes
	opFixed
	opEnum
	opDate
	opTime      // an integer times mul is microseconds
	opTimestamp // an integer times mul, divided by div, is microseconds since 1970
	opDecimal   // bytes, or so many as size says
	opUUIDText
	opUUIDFixed
	opDuration
	opUnion
	opArray
	opMap
	opRecord
	opJSON  // a column that holds item as jsonb
	opError // the writer's type cannot be read as the reader's
)

// avroNode reads a value as it was written into the form that the reader's type
// has: the outcome of schema resolution (the specification, "Schema
// Resolution") for one place of the schema.
type avroNode struct {
	op       avroOp
	typ      types.Type // of the column or element that a scalar becomes
	size     int        // of fixed
	mul, div int64
	scale    int       // of a decimal as written
	symbols  [][]byte  // of an enum by the writer's number; nil: not known to the reader
	writer   []string  // the writer's symbols, for messages
	item     *avroNode // of arrays, maps and opJSON
	branches []*avroNode
	fields   []avroNodeField // of a record, as written
	defaults []avroDefault   // of a record's fields that were not written
	reason   string
}

type avroNodeField struct {
	key  []byte // nil: skipped
	node *avroNode
}

// avroDefault is a default: its binary form and how to read it.
type avroDefault struct {
	key  []byte
	col  int
	node *avroNode
	data []byte
}

// avroProgram decodes what one writer's schema wrote into a decoder's columns.
type avroProgram struct {
	fields   []avroColumnOp
	defaults []avroDefault
	err      string // the schemas do not go together
}

// avroColumnOp reads one top-level field into a column.
type avroColumnOp struct {
	col  int // < 0: skip
	node *avroNode
	name string
}

// avroCompiler resolves a writer's schema against a reader's.
type avroCompiler struct{ memo map[[2]*avroType]*avroNode }

// compileAvro makes the program for columns of the reader's schema.
func compileAvro(w, r *avroType, cols []Column) (*avroProgram, error) {
	c := avroCompiler{memo: map[[2]*avroType]*avroNode{}}
	p := &avroProgram{}
	if len(cols) == 1 && cols[0].Field == "" { // the value as a whole
		n := c.column(w, r, cols[0].Type)
		if n.op == opError {
			return nil, fmt.Errorf("%s", n.reason)
		}
		p.fields = []avroColumnOp{{node: n}}
		return p, nil
	}
	if r.kind != avroRecord || w.kind != avroRecord {
		return nil, fmt.Errorf("schema is %s where a record is expected", w.kind)
	}
	written := make([]bool, len(r.fields))
	for i := range w.fields {
		wf := &w.fields[i]
		op := avroColumnOp{col: -1, name: wf.name}
		if k := r.readerField(wf.name); k >= 0 && !written[k] {
			written[k] = true
			if op.col = columnOf(cols, r.fields[k].name); op.col >= 0 {
				op.node = c.column(wf.typ, r.fields[k].typ, cols[op.col].Type)
				if op.node.op == opError {
					return nil, fmt.Errorf("field \"%s\": %s", wf.name, op.node.reason)
				}
			}
		}
		if op.col < 0 {
			op.node = c.skipper(wf.typ)
		}
		p.fields = append(p.fields, op)
	}
	for k := range r.fields {
		f := &r.fields[k]
		col := columnOf(cols, f.name)
		if written[k] || col < 0 {
			continue
		}
		d, err := c.fieldDefault(f)
		if err != nil {
			return nil, err
		}
		d.col, d.node = col, c.column(f.typ, f.typ, cols[col].Type)
		p.defaults = append(p.defaults, d)
	}
	return p, nil
}

func columnOf(cols []Column, field string) int {
	return slices.IndexFunc(cols, func(c Column) bool { return c.Field == field })
}

// readerField is the field that a writer's field of that name is read as.
func (t *avroType) readerField(name string) int {
	for i := range t.fields {
		if t.fields[i].name == name {
			return i
		}
	}
	for i := range t.fields {
		if slices.Contains(t.fields[i].aliases, name) {
			return i
		}
	}
	return -1
}

func (c *avroCompiler) fieldDefault(f *avroField) (avroDefault, error) {
	if !f.hasDef {
		return avroDefault{}, fmt.Errorf("field \"%s\" is not in the writer's schema and has no default", f.name)
	}
	b, err := f.typ.appendDefault(nil, f.def)
	if err != nil {
		return avroDefault{}, fmt.Errorf("field \"%s\": %w", f.name, err)
	}
	return avroDefault{key: []byte(f.name), node: c.resolve(f.typ, f.typ), data: b}, nil
}

// column resolves a column of SQL type t.
func (c *avroCompiler) column(w, r *avroType, t types.Type) *avroNode {
	n := c.resolve(w, r)
	if n.op == opError {
		return n
	}
	if t.OID == types.OIDJSONB {
		return &avroNode{op: opJSON, item: n, typ: t}
	}
	return n
}

// skipper reads a value only to pass it.
func (c *avroCompiler) skipper(w *avroType) *avroNode { return c.resolve(w, w) }

func mismatch(w, r *avroType) *avroNode {
	return &avroNode{op: opError, reason: fmt.Sprintf("%s was written where %s is expected", w.describe(), r.describe())}
}

func (t *avroType) describe() string {
	switch {
	case t.kind == avroUnion:
		var parts []string
		for _, b := range t.branches {
			parts = append(parts, b.describe())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case t.kind == avroFixed:
		return fmt.Sprintf("fixed(%d)", t.size)
	case t.kind == avroRecord || t.kind == avroEnum:
		return t.kind.String() + " " + t.name
	case t.logical != "":
		return t.kind.String() + " (" + t.logical + ")"
	}
	return t.kind.String()
}

// resolve makes the node that reads what w wrote as r.
func (c *avroCompiler) resolve(w, r *avroType) *avroNode {
	key := [2]*avroType{w, r}
	if n := c.memo[key]; n != nil {
		return n
	}
	n := &avroNode{}
	c.memo[key] = n // before its parts: schemas can be recursive
	*n = *c.build(w, r)
	return n
}

func (c *avroCompiler) build(w, r *avroType) *avroNode {
	if w.kind == avroUnion {
		n := &avroNode{op: opUnion}
		readable := false
		for _, b := range w.branches {
			x := c.resolve(b, r)
			readable = readable || x.op != opError
			n.branches = append(n.branches, x)
		}
		if !readable {
			return mismatch(w, r)
		}
		return n
	}
	if r.kind == avroUnion {
		return c.intoUnion(w, r)
	}
	typ, _ := r.simple()
	n := &avroNode{typ: typ}
	switch r.kind {
	case avroArray:
		if w.kind != avroArray {
			return mismatch(w, r)
		}
		n.op, n.item = opArray, c.resolve(w.item, r.item)
		n.typ, _ = r.item.simple()
	case avroMap:
		if w.kind != avroMap {
			return mismatch(w, r)
		}
		n.op, n.item = opMap, c.resolve(w.item, r.item)
	case avroRecord:
		if w.kind != avroRecord {
			return mismatch(w, r)
		}
		return c.record(w, r)
	case avroEnum:
		if w.kind != avroEnum {
			return mismatch(w, r)
		}
		enumNode(n, w, r)
	default:
		if !scalarNode(n, w, r) {
			return mismatch(w, r)
		}
	}
	if n.item != nil && n.item.op == opError {
		return &avroNode{op: opError, reason: n.item.reason}
	}
	return n
}

// intoUnion picks the branch of the reader's union that the value is read as:
// of its own name, else of its own type, else the first it can be promoted to.
func (c *avroCompiler) intoUnion(w, r *avroType) *avroNode {
	for _, b := range r.branches {
		if b.kind == w.kind && b.logical == w.logical && (w.name == "" || b.name == w.name) {
			if n := c.resolve(w, b); n.op != opError {
				return n
			}
		}
	}
	for _, same := range []bool{true, false} {
		for _, b := range r.branches {
			if same == (b.kind == w.kind) {
				if n := c.resolve(w, b); n.op != opError {
					return n
				}
			}
		}
	}
	return mismatch(w, r)
}

func (c *avroCompiler) record(w, r *avroType) *avroNode {
	n := &avroNode{op: opRecord}
	written := make([]bool, len(r.fields))
	for i := range w.fields {
		wf := &w.fields[i]
		k := r.readerField(wf.name)
		if k < 0 || written[k] {
			n.fields = append(n.fields, avroNodeField{node: c.skipper(wf.typ)})
			continue
		}
		written[k] = true
		x := c.resolve(wf.typ, r.fields[k].typ)
		if x.op == opError {
			return &avroNode{op: opError, reason: fmt.Sprintf("field \"%s\": %s", wf.name, x.reason)}
		}
		n.fields = append(n.fields, avroNodeField{key: []byte(r.fields[k].name), node: x})
	}
	for k := range r.fields {
		if written[k] {
			continue
		}
		d, err := c.fieldDefault(&r.fields[k])
		if err != nil {
			return &avroNode{op: opError, reason: err.Error()}
		}
		n.defaults = append(n.defaults, d)
	}
	return n
}

func enumNode(n *avroNode, w, r *avroType) {
	n.op, n.writer = opEnum, w.symbols
	for _, s := range w.symbols {
		switch {
		case slices.Contains(r.symbols, s):
			n.symbols = append(n.symbols, []byte(s))
		case r.enumDefault != "":
			n.symbols = append(n.symbols, []byte(r.enumDefault))
		default:
			n.symbols = append(n.symbols, nil)
		}
	}
}

// scalarNode fills n for a type without parts; false if w cannot be read as r.
func scalarNode(n *avroNode, w, r *avroType) bool {
	integer := w.kind == avroInt || w.kind == avroLong
	set := func(op avroOp, ok bool) bool { n.op = op; return ok }
	switch r.kind {
	case avroNull:
		return set(opNull, w.kind == avroNull)
	case avroBoolean:
		return set(opBool, w.kind == avroBoolean)
	case avroInt:
		switch r.logical {
		case "date":
			return set(opDate, w.kind == avroInt)
		case "time-millis":
			n.mul = 1000
			return set(opTime, w.kind == avroInt)
		}
		return set(opInt32, w.kind == avroInt)
	case avroLong:
		return longNode(n, w, r) && integer
	case avroFloat:
		if integer {
			return set(opIntFloat32, true)
		}
		return set(opFloat32, w.kind == avroFloat)
	case avroDouble:
		switch {
		case integer:
			return set(opIntFloat64, true)
		case w.kind == avroFloat:
			return set(opFloat32To64, true)
		}
		return set(opFloat64, w.kind == avroDouble)
	}
	return bytesNode(n, w, r)
}

func longNode(n *avroNode, w, r *avroType) bool {
	unit := func(logical string) (mul, div int64) {
		switch {
		case strings.HasSuffix(logical, "-millis"):
			return 1000, 1
		case strings.HasSuffix(logical, "-micros"):
			return 1, 1
		case strings.HasSuffix(logical, "-nanos"):
			return 1, 1000
		}
		return 0, 0
	}
	stamp := func(l string) bool { return strings.Contains(l, "timestamp-") }
	time := func(l string) bool { return strings.HasPrefix(l, "time-") }
	n.op = opInt64
	switch {
	case stamp(r.logical):
		n.op = opTimestamp
	case time(r.logical):
		n.op = opTime
	default:
		return true
	}
	// What was written in another unit keeps its meaning.
	if n.mul, n.div = unit(r.logical); stamp(w.logical) == stamp(r.logical) && time(w.logical) == time(r.logical) {
		n.mul, n.div = unit(w.logical)
	}
	return true
}

func bytesNode(n *avroNode, w, r *avroType) bool {
	variable := w.kind == avroString || w.kind == avroBytes
	n.size = -1
	if w.kind == avroFixed {
		n.size = w.size
	}
	switch r.kind {
	case avroString:
		n.op = opText
		if r.logical == "uuid" {
			n.op = opUUIDText
			if w.kind == avroFixed && w.logical == "uuid" {
				n.op = opUUIDFixed
				return true
			}
		}
		return variable
	case avroBytes, avroFixed:
		ok := variable
		if r.kind == avroFixed {
			ok = w.kind == avroFixed && w.size == r.size
		}
		switch r.logical {
		case "decimal":
			n.op, n.scale = opDecimal, r.scale
			if w.logical == "decimal" {
				n.scale = w.scale
			}
			return ok || w.kind == avroFixed || w.kind == avroBytes
		case "uuid":
			n.op = opUUIDFixed
		case "duration":
			n.op = opDuration
		case "":
			n.op = opBytes
			if w.kind == avroFixed {
				n.op = opFixed
			}
		}
		return ok
	}
	return false
}

// numericFits reports whether a decimal written at a scale is stored unchanged
// in numeric type t.
func (n *avroNode) numericFits() (precision int, same bool) {
	p, s, ok := decimal.SplitTypmod(n.typ.Mod)
	return p, ok && s == n.scale
}
