package format

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/types"
)

// TimeUnit says what a number means that is to be a timestamp.
type TimeUnit uint8

// The units since 1970. GuessUnit takes seconds, milliseconds, microseconds or
// nanoseconds by the number's size: those that give a time before the year 5138.
const (
	GuessUnit TimeUnit = iota
	Milliseconds
	Microseconds
)

// JSONOptions say what a JSON decoder reads.
type JSONOptions struct {
	// Columns are the fields of the record, which then must be an object, or
	// one column without a field: the record as a whole.
	Columns []Column
	Times   TimeUnit
}

// jsonClass is how values of a column are made.
type jsonClass uint8

const (
	jsonText jsonClass = iota
	jsonInt
	jsonFloat
	jsonNumeric
	jsonBool
	jsonDoc // jsonb
	jsonRaw // json
	jsonTime
	jsonArray
	jsonOther // by the text form
)

type jsonColumn struct {
	Column
	class jsonClass
	elem  *jsonColumn // of arrays
	lower bool        // the field's name has no upper-case letters
}

// jsonDecoder implements Decoder.
type jsonDecoder struct {
	jsonScanner
	cols   []jsonColumn
	byName map[string]int
	times  TimeUnit
	// order is the members of the last record: those of one producer come in
	// the same order.
	order []jsonMember
	exact []bool // whether a column was filled by its exact name in this record
	fold  []byte
	list  [columnar.KindBytes + 1]*columnar.Builder
	view  columnar.Vec
	shape jsonArrayReader
}

// NewJSON makes a decoder of JSON records. Members of an object go to the
// columns of their names; where a column's name has no upper-case letters, also
// members that differ in case only (a name written without quotes in SQL has
// lost its case). What is missing or null is NULL, what has no column is
// checked and passed over; of equal names the last one counts.
func NewJSON(o JSONOptions) Decoder {
	d := &jsonDecoder{times: o.Times, byName: map[string]int{}}
	for i, c := range o.Columns {
		d.cols = append(d.cols, newJSONColumn(c))
		d.byName[c.Field] = i
	}
	d.exact = make([]bool, len(d.cols))
	return d
}

func newJSONColumn(c Column) jsonColumn {
	j := jsonColumn{Column: c, class: jsonOther, lower: c.Field == strings.ToLower(c.Field)}
	switch c.Type.OID {
	case types.OIDText:
		j.class = jsonText
	case types.OIDVarchar:
		if c.Type.Mod < 0 {
			j.class = jsonText
		}
	case types.OIDInt2, types.OIDInt4, types.OIDInt8:
		j.class = jsonInt
	case types.OIDFloat4, types.OIDFloat8:
		j.class = jsonFloat
	case types.OIDNumeric:
		j.class = jsonNumeric
	case types.OIDBool:
		j.class = jsonBool
	case types.OIDJSONB:
		j.class = jsonDoc
	case types.OIDJSON:
		j.class = jsonRaw
	case types.OIDTimestamp, types.OIDTimestampTZ:
		j.class = jsonTime
	default:
		if info := types.Lookup(c.Type.OID); info != nil && info.IsArray() {
			j.class = jsonArray
			e := newJSONColumn(Column{Type: types.Type{OID: info.Elem, Mod: c.Type.Mod}})
			j.elem = &e
		}
	}
	return j
}

// Clone makes a decoder for another goroutine.
func (d *jsonDecoder) Clone() Decoder {
	return &jsonDecoder{cols: d.cols, byName: d.byName, times: d.times, exact: make([]bool, len(d.cols))}
}

// Decode appends a record.
func (d *jsonDecoder) Decode(_ context.Context, dst []*columnar.Builder, record []byte) error {
	d.reset(record)
	n := dst[0].Len()
	if len(d.cols) == 1 && d.cols[0].Field == "" {
		d.field(&d.cols[0], dst[0])
	} else {
		d.object(dst, n)
	}
	d.end()
	if d.reason != "" {
		d.build.Reset()
		truncate(dst, n)
		return &RecordError{Reason: d.reason}
	}
	return nil
}

// object reads the members of the record into row n of the columns.
func (d *jsonDecoder) object(dst []*columnar.Builder, n int) {
	if d.next() != '{' {
		if d.pos < len(d.buf) {
			d.skip()
			d.end()
			d.fail("the record is not a JSON object")
		}
		d.syntax("an object")
		return
	}
	d.open()
	clear(d.exact)
	for k := 0; d.more('{', k == 0); k++ {
		c := d.member(k)
		if d.reason != "" {
			return
		}
		if c < 0 {
			d.skip()
			continue
		}
		if dst[c].Len() > n {
			dst[c].Truncate(n)
		}
		if d.field(&d.cols[c], dst[c]); d.reason != "" {
			d.reason = fmt.Sprintf("column \"%s\": %s", d.cols[c].Field, d.reason)
			return
		}
	}
	for i, b := range dst {
		if b.Len() == n {
			d.null(&d.cols[i], b)
		}
	}
}

func (d *jsonDecoder) null(c *jsonColumn, b *columnar.Builder) {
	if c.NotNull {
		d.fail("column \"%s\" has no value and cannot be NULL", c.Field)
		return
	}
	b.Null()
}

// jsonMember is a member of a record: its key as written, with quotes and
// colon, and its column, < 0 for none.
type jsonMember struct {
	head []byte
	col  int
}

// member reads the key of member k and finds its column, -1 if it is to be
// passed over.
func (d *jsonDecoder) member(k int) int {
	c := d.next()
	if k == len(d.order) {
		d.order = append(d.order, jsonMember{col: -1})
	}
	m := &d.order[k]
	from := d.pos
	if end := from + len(m.head); c == '"' && end <= len(d.buf) && end > from && bytes.Equal(d.buf[from:end], m.head) {
		d.pos = end
		if m.col >= 0 {
			d.exact[m.col] = true
		}
		return m.col
	}
	key := d.key()
	if d.reason != "" {
		return -1
	}
	col, folded := d.find(key)
	if m.head = m.head[:0]; !folded && d.pos-from == len(key)+3 { // neither escapes nor spaces
		m.head = append(m.head, d.buf[from:d.pos]...)
		m.col = col
	}
	return col
}

// find is the column of a key, and whether only ignoring case finds one.
func (d *jsonDecoder) find(key []byte) (col int, folded bool) {
	if c, ok := d.byName[string(key)]; ok {
		d.exact[c] = true
		return c, false
	}
	d.fold = d.fold[:0]
	for _, x := range key {
		if x >= 'A' && x <= 'Z' {
			x += 'a' - 'A'
		}
		d.fold = append(d.fold, x)
	}
	c, ok := d.byName[string(d.fold)]
	switch {
	case !ok || !d.cols[c].lower:
		return -1, false
	case d.exact[c]: // the exact name has been here
		return -1, true
	}
	return c, true
}

// wrongKind says that a kind of value cannot become the column's type.
func (d *jsonDecoder) wrongKind(what string, c *jsonColumn) {
	d.fail("%s cannot be read as type %s", what, c.Type.OID.Name())
}

// field reads one value into a column.
func (d *jsonDecoder) field(c *jsonColumn, b *columnar.Builder) {
	switch x := d.next(); {
	case x == 'n' && (c.Field != "" || c.class != jsonDoc):
		if d.word("null"); d.reason == "" {
			d.null(c, b)
		}
	case c.class == jsonDoc:
		if d.value(); d.reason == "" {
			b.Extend(d.build.Append)
		}
	case c.class == jsonRaw:
		from := d.pos
		if d.skip(); d.reason == "" {
			b.Bytes(d.buf[from:d.pos])
		}
	case x == '"':
		d.pos++
		text := d.str()
		switch {
		case d.reason != "":
		case c.class == jsonText:
			if !b.ASCII(text) {
				b.Bytes(text)
			}
		default:
			if err := appendTextValue(b, c.Type, text); err != nil {
				d.fail("%s", reason(err))
			}
		}
	case x == '-' || x-'0' <= 9:
		if n := d.number(); d.reason == "" {
			d.numberField(c, b, n)
		}
	case x == 't' || x == 'f':
		d.boolField(c, b, x == 't')
	case x == '[' && c.class == jsonArray:
		d.array(c, b)
	case x == '[' || x == '{':
		d.containerField(c, b)
	default:
		d.syntax("a value")
	}
}

func (d *jsonDecoder) boolField(c *jsonColumn, b *columnar.Builder, v bool) {
	w := "false"
	if v {
		w = "true"
	}
	if d.word(w); d.reason != "" {
		return
	}
	switch c.class {
	case jsonBool:
		b.Bool(v)
	case jsonText:
		b.String(w)
	default:
		d.wrongKind("a boolean", c)
	}
}

// containerField stores an array or object as text, in jsonb's form.
func (d *jsonDecoder) containerField(c *jsonColumn, b *columnar.Builder) {
	what := "a JSON object"
	if d.buf[d.pos] == '[' {
		what = "a JSON array"
	}
	if c.class != jsonText {
		if d.skip(); d.reason == "" {
			d.wrongKind(what, c)
		}
		return
	}
	if d.value(); d.reason == "" {
		d.num = d.build.Append(d.num[:0])
		b.Extend(types.JSONDoc(d.num).AppendText)
	}
}

func (d *jsonDecoder) numberField(c *jsonColumn, b *columnar.Builder, n jsonNumber) {
	switch c.class {
	case jsonInt:
		d.intField(c, b, n)
	case jsonFloat:
		d.floatField(c, b, n)
	case jsonNumeric:
		if n.small && c.Type.Mod < 0 {
			d.num = decimal.AppendInt64(d.num[:0], n.value)
		} else {
			var err error
			if d.num, err = decimal.ParseTypmod(d.num[:0], n.text, c.Type.Mod); err != nil {
				d.fail("%s", reason(err))
				return
			}
		}
		b.Bytes(d.num)
	case jsonText:
		b.Bytes(n.text)
	case jsonTime:
		d.timeField(c, b, n)
	case jsonBool, jsonArray:
		d.wrongKind("a number", c)
	default:
		if err := appendTextValue(b, c.Type, n.text); err != nil {
			d.fail("%s", reason(err))
		}
	}
}

// integer is the value of a number that is whole, however it is written.
func (d *jsonDecoder) integer(c *jsonColumn, n jsonNumber) (v int64, ok bool) {
	if n.small {
		return n.value, true
	}
	var err error
	if d.num, err = decimal.Parse(d.num[:0], n.text); err == nil {
		if s, finite := decimal.MinScale(d.num); !finite || s > 0 {
			d.fail("%s is not a whole number", n.text)
			return 0, false
		}
		v, err = decimal.ToInt64(d.num)
	}
	if err != nil {
		d.fail("value \"%s\" is out of range for type %s", n.text, c.Type.OID.Name())
		return 0, false
	}
	return v, true
}

func (d *jsonDecoder) intField(c *jsonColumn, b *columnar.Builder, n jsonNumber) {
	v, ok := d.integer(c, n)
	if !ok {
		return
	}
	switch {
	case c.Type.OID == types.OIDInt8:
		b.Int64(v)
		return
	case c.Type.OID == types.OIDInt4 && v == int64(int32(v)):
		b.Int32(int32(v))
		return
	case c.Type.OID == types.OIDInt2 && v == int64(int16(v)):
		b.Int16(int16(v))
		return
	}
	d.fail("value \"%s\" is out of range for type %s", n.text, c.Type.OID.Name())
}

func (d *jsonDecoder) floatField(c *jsonColumn, b *columnar.Builder, n jsonNumber) {
	bits := 64
	if c.Type.OID == types.OIDFloat4 {
		bits = 32
	}
	var f float64
	if n.small && n.value != 0 && n.value < 1<<53 && n.value > -1<<53 {
		f = float64(n.value)
	} else {
		var err error
		if f, err = strconv.ParseFloat(unsafeString(n.text), bits); err != nil {
			d.fail("\"%s\" is out of range for type %s", n.text, c.Type.OID.Name())
			return
		}
	}
	if bits == 32 {
		b.Float32(float32(f))
	} else {
		b.Float64(f)
	}
}

// timeField reads a number as a moment.
func (d *jsonDecoder) timeField(c *jsonColumn, b *columnar.Builder, n jsonNumber) {
	v, ok := d.integer(c, n)
	if !ok {
		return
	}
	const max = 100_000_000_000 // seconds: the year 5138
	mul, div := int64(1000), int64(1)
	switch {
	case d.times == Microseconds:
		mul = 1
	case d.times == Milliseconds:
	case v < max && v > -max:
		mul = 1_000_000
	case v/1000 < max && v/1000 > -max:
	case v/1_000_000 < max && v/1_000_000 > -max:
		mul = 1
	default:
		mul, div = 1, 1000
	}
	if v > math.MaxInt64/mul || v < math.MinInt64/mul {
		d.fail("timestamp out of range")
		return
	}
	us := v * mul
	if r := us % div; r < 0 {
		us -= r + div
	} else {
		us -= r
	}
	ts := us/div - types.UnixEpochSecond*types.MicrosPerSecond
	if ts > us/div || !types.ValidTimestamp(ts) || ts == types.TimestampInfinity || ts == types.TimestampNegInfinity {
		d.fail("timestamp out of range")
		return
	}
	b.Int64(types.RoundTimestamp(ts, c.Type.Mod))
}

// array reads a JSON array as a SQL array; arrays in it as further dimensions.
func (d *jsonDecoder) array(c *jsonColumn, b *columnar.Builder) {
	k := c.elem.Type.Kind()
	if d.list[k] == nil {
		d.list[k] = columnar.NewBuilder(k, 16)
	}
	l := d.list[k]
	l.Truncate(0)
	a := &d.shape
	a.dims, a.leaf = a.dims[:0], -1
	d.arrayLevel(c, l, a, 0)
	if d.reason != "" {
		return
	}
	l.View(&d.view)
	if l.Len() == 0 {
		d.num = types.AppendEmptyArray(d.num[:0], c.elem.Type.OID)
	} else {
		d.num = types.AppendArray(d.num[:0], c.elem.Type.OID, a.dims, &d.view, 0, l.Len())
	}
	b.Bytes(d.num)
}

// jsonArrayReader is the shape of an array as far as it is known.
type jsonArrayReader struct {
	dims []types.Dim
	leaf int // the level whose members are elements, -1 until one was seen
}

func (d *jsonDecoder) arrayLevel(c *jsonColumn, l *columnar.Builder, a *jsonArrayReader, level int) {
	if !d.open() {
		return
	}
	if level >= types.MaxDims {
		d.fail("the array has more than %d dimensions", types.MaxDims)
		return
	}
	known := level < len(a.dims)
	if !known {
		a.dims = append(a.dims, types.Dim{Len: -1, Lower: 1})
	}
	n := int32(0)
	for first := true; d.more('[', first); first = false {
		n++
		nested := d.next() == '['
		if a.leaf < 0 && !nested {
			a.leaf = level
		}
		if nested == (a.leaf == level) || !nested && a.leaf != level {
			d.fail("malformed array: its elements are not all of the same depth")
			return
		}
		if nested {
			d.arrayLevel(c, l, a, level+1)
		} else {
			d.field(c.elem, l)
		}
	}
	switch {
	case d.reason != "":
	case a.dims[level].Len < 0:
		a.dims[level].Len = n
	case a.dims[level].Len != n:
		d.fail("malformed array: sub-arrays have different lengths")
	}
}
