package format

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/types"
)

// Bounds on what a record may say: Avro's blocks of elements without bytes and
// recursive types would let a few bytes ask for any amount of work.
const (
	maxEmptyItems = 1 << 16
	maxAvroDepth  = 200
)

// avroReader reads Avro's binary form. The first failure sticks: it moves to the
// end of the input, so that reading on does no harm and only loops need to look.
type avroReader struct {
	buf    []byte
	pos    int
	items  int // elements that may still come
	depth  int
	reason string
}

func (r *avroReader) reset(buf []byte) {
	*r = avroReader{buf: buf, items: len(buf) + maxEmptyItems}
}

func (r *avroReader) fail(format string, args ...any) {
	if r.reason == "" {
		r.reason = fmt.Sprintf(format, args...)
		r.pos = len(r.buf)
	}
}

func (r *avroReader) short() { r.fail("the record ends too early") }

// long reads an int or long: zigzag, seven bits a byte.
func (r *avroReader) long() int64 {
	if r.pos < len(r.buf) {
		if b := r.buf[r.pos]; b < 0x80 {
			r.pos++
			return int64(b>>1) ^ -int64(b&1)
		}
	}
	return r.longSlow()
}

func (r *avroReader) longSlow() int64 {
	if len(r.buf)-r.pos >= 8 {
		x := binary.LittleEndian.Uint64(r.buf[r.pos:])
		if stop := ^x & 0x8080808080808080; stop != 0 {
			n := bits.TrailingZeros64(stop) // bit 7 of the last byte
			x = joinSevens(x & (1<<(n+1) - 1))
			r.pos += n>>3 + 1
			return int64(x>>1) ^ -int64(x&1)
		}
	}
	u, n := binary.Uvarint(r.buf[r.pos:])
	if n <= 0 {
		if n == 0 {
			r.short()
		} else {
			r.fail("an integer has more than 64 bits")
		}
		return 0
	}
	r.pos += n
	return int64(u>>1) ^ -int64(u&1)
}

// joinSevens joins the low seven bits of eight bytes.
func joinSevens(x uint64) uint64 {
	x = x&0x007f007f007f007f | x&0x7f007f007f007f00>>1
	x = x&0x00003fff00003fff | x&0x3fff00003fff0000>>2
	return x&0x000000000fffffff | x&0x0fffffff00000000>>4
}

// take reads n bytes.
func (r *avroReader) take(n int) []byte {
	if n > len(r.buf)-r.pos {
		r.short()
		return nil
	}
	b := r.buf[r.pos : r.pos+n : r.pos+n]
	r.pos += n
	return b
}

// bytes reads a length and so many bytes.
func (r *avroReader) bytes() []byte {
	var n int64
	if p := r.pos; p+1 < len(r.buf) && r.buf[p] >= 0x80 && r.buf[p+1] < 0x80 && r.buf[p]&1 == 0 {
		n = int64(r.buf[p]&0x7f)>>1 | int64(r.buf[p+1])<<6 // of two bytes, not negative
		r.pos = p + 2
	} else {
		n = r.long()
	}
	if uint64(n) > uint64(len(r.buf)-r.pos) {
		if n < 0 {
			r.fail("a length is negative")
		} else {
			r.short()
		}
		return nil
	}
	b := r.buf[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return b
}

func (r *avroReader) uint32() uint32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

func (r *avroReader) uint64() uint64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (r *avroReader) bool() bool {
	b := r.take(1)
	if b == nil {
		return false
	}
	if b[0] > 1 {
		r.fail("a boolean is neither 0 nor 1")
	}
	return b[0] == 1
}

// block reads the head of a block of an array or map: the number of elements,
// 0 at the end.
func (r *avroReader) block() int {
	n := r.long()
	if n < 0 {
		if r.long() < 0 || n == math.MinInt64 {
			r.fail("a block has a negative size")
			return 0
		}
		n = -n
	}
	if n > int64(r.items) {
		r.fail("an array or map has more elements than the record can hold")
		return 0
	}
	r.items -= int(n)
	return int(n)
}

// enter guards recursion.
func (r *avroReader) enter() bool {
	if r.depth++; r.depth > maxAvroDepth {
		r.fail("the record is nested more than %d levels deep", maxAvroDepth)
		return false
	}
	return true
}

// branch reads the number of a union's branch.
func (r *avroReader) branch(n *avroNode) *avroNode {
	i := r.long()
	if uint64(i) >= uint64(len(n.branches)) {
		r.fail("union branch %d does not exist", i)
		return nullNode
	}
	x := n.branches[i]
	if x.op == opError {
		r.fail("%s", x.reason)
		return nullNode
	}
	return x
}

var nullNode = &avroNode{op: opNull}

// avroMachine runs programs; it holds what they need besides their input.
type avroMachine struct {
	r    avroReader
	json types.JSONBuilder
	num  []byte
	num2 []byte
	list []*columnar.Builder // scratch for arrays, by kind of element
	view columnar.Vec
}

// run decodes one record body.
func (m *avroMachine) run(p *avroProgram, dst []*columnar.Builder, body []byte) error {
	if p.err != "" {
		return badRecord("%s", p.err)
	}
	r := &m.r
	r.reset(body)
	pos := 0 // r.pos while r is not used
	for i := range p.fields {
		f := &p.fields[i]
		if f.col >= 0 {
			next := m.quick(f.node, dst[f.col], body, pos)
			if next >= 0 {
				pos = next
				continue
			}
		}
		r.pos = pos
		if f.col < 0 {
			m.skip(f.node)
		} else {
			m.value(f.node, dst[f.col])
		}
		if r.reason != "" {
			return m.failed(f.name)
		}
		pos = r.pos
	}
	r.pos = pos
	if r.pos != len(body) {
		n := len(body) - r.pos
		return badRecord("%d bytes are left over after the record", n)
	}
	for i := range p.defaults {
		d := &p.defaults[i]
		r.reset(d.data)
		m.value(d.node, dst[d.col])
		if r.reason != "" {
			return m.failed(string(d.key))
		}
	}
	return nil
}

// quick is value for the commonest kinds, when the record does not end within the
// next eight bytes: it gives the position after the value, or -1 if it has done
// nothing.
func (m *avroMachine) quick(n *avroNode, b *columnar.Builder, buf []byte, pos int) int {
	if n.op == opUnion && pos < len(buf) && uint(buf[pos]>>1) < uint(len(n.branches)) && buf[pos]&0x81 == 0 {
		n = n.branches[buf[pos]>>1]
		pos++
		if n.op == opNull {
			b.Null()
			return pos
		}
	}
	if n.op != opInt64 && n.op != opText && n.op != opTimestamp || len(buf)-pos < 8 {
		return -1
	}
	x := binary.LittleEndian.Uint64(buf[pos:])
	stop := ^x & 0x8080808080808080
	if stop == 0 {
		return -1
	}
	last := bits.TrailingZeros64(stop) // bit 7 of the last byte
	x = joinSevens(x & (1<<(last+1) - 1))
	pos += last>>3 + 1
	v := int64(x>>1) ^ -int64(x&1)
	switch n.op {
	case opInt64:
		b.Int64(v)
		return pos
	case opTimestamp:
		ts, ok := n.timestamp(v)
		if !ok {
			return -1
		}
		b.Int64(ts)
		return pos
	}
	if uint64(v) > uint64(len(buf)-pos) || !b.ASCII(buf[pos:pos+int(v)]) {
		return -1
	}
	return pos + int(v)
}

func (m *avroMachine) failed(field string) error {
	m.json.Reset()
	if field == "" {
		return badRecord("%s", m.r.reason)
	}
	return badRecord("field \"%s\": %s", field, m.r.reason)
}

// value reads a value into a column. After a failure the column may or may not
// have got a value.
func (m *avroMachine) value(n *avroNode, b *columnar.Builder) {
	r := &m.r
	switch n.op {
	case opInt64:
		b.Int64(r.long())
	case opText:
		s := r.bytes()
		if !validText(s) {
			r.fail("%s", types.CheckUTF8(s))
			return
		}
		b.Bytes(s)
	case opTimestamp:
		b.Int64(m.timestamp(n))
	case opUnion:
		m.value(r.branch(n), b)
	case opNull:
		b.Null()
	case opInt32:
		b.Int32(r.int32())
	case opFloat64:
		b.Float64(math.Float64frombits(r.uint64()))
	case opBool:
		b.Bool(r.bool())
	case opEnum:
		b.Bytes(r.symbol(n))
	case opDecimal:
		b.Bytes(m.decimal(n))
	case opBytes:
		b.Bytes(r.bytes())
	case opFixed:
		b.Bytes(r.take(n.size))
	case opJSON:
		m.jsonColumn(n.item, b)
	case opArray:
		m.array(n, b)
	default:
		m.rareValue(n, b)
	}
}

func (m *avroMachine) rareValue(n *avroNode, b *columnar.Builder) {
	r := &m.r
	switch n.op {
	case opIntFloat32:
		b.Float32(float32(r.long()))
	case opIntFloat64:
		b.Float64(float64(r.long()))
	case opFloat32:
		b.Float32(math.Float32frombits(r.uint32()))
	case opFloat32To64:
		b.Float64(float64(math.Float32frombits(r.uint32())))
	case opDate:
		b.Int32(m.date())
	case opTime:
		b.Int64(m.time(n))
	case opUUIDText, opUUIDFixed:
		b.U128(m.uuid(n))
	case opDuration:
		b.U128(m.duration().Pack())
	case opError:
		r.fail("%s", n.reason)
	default:
		panic("format: a record or map outside of jsonb")
	}
}

// array reads an array of scalars as a SQL array.
func (m *avroMachine) array(n *avroNode, b *columnar.Builder) {
	k := int(n.typ.Kind())
	for len(m.list) <= k {
		m.list = append(m.list, nil)
	}
	if m.list[k] == nil {
		m.list[k] = columnar.NewBuilder(n.typ.Kind(), 16)
	}
	l := m.list[k]
	l.Truncate(0)
	for c := m.r.block(); c > 0; c = m.r.block() {
		for range c {
			m.value(n.item, l)
			if m.r.reason != "" {
				return
			}
		}
	}
	l.View(&m.view)
	m.num = types.AppendList(m.num[:0], n.typ.OID, &m.view, 0, l.Len())
	b.Bytes(m.num)
}

func (r *avroReader) int32() int32 {
	x := r.long()
	if x != int64(int32(x)) {
		r.fail("an int has more than 32 bits")
	}
	return int32(x)
}

func (r *avroReader) symbol(n *avroNode) []byte {
	i := r.long()
	if uint64(i) >= uint64(len(n.symbols)) {
		r.fail("enum symbol %d does not exist", i)
		return nil
	}
	s := n.symbols[i]
	if s == nil {
		r.fail("enum symbol \"%s\" is not known to the reader's schema", n.writer[i])
	}
	return s
}

// unixDays is 2000-01-01 in days since 1970.
const unixDays = types.UnixEpochSecond / 86400

func (m *avroMachine) date() int32 {
	d := int64(m.r.int32()) - unixDays
	if !types.ValidDay(d) {
		m.r.fail("date out of range")
		return 0
	}
	return int32(d)
}

func (m *avroMachine) time(n *avroNode) int64 {
	x := m.r.long()
	if x < 0 || x > types.MicrosPerDay || x*n.mul > types.MicrosPerDay {
		m.r.fail("time out of range")
		return 0
	}
	return x * n.mul
}

func (m *avroMachine) timestamp(n *avroNode) int64 {
	ts, ok := n.timestamp(m.r.long())
	if !ok {
		m.r.fail("timestamp out of range")
	}
	return ts
}

// timestamp is the timestamp that a number stands for.
func (n *avroNode) timestamp(x int64) (ts int64, ok bool) {
	if n.div > 1 {
		q := x / n.div
		if x%n.div < 0 {
			q--
		}
		x = q
	} else if n.mul > 1 {
		if x > math.MaxInt64/1000 || x < math.MinInt64/1000 {
			return 0, false
		}
		x *= 1000
	}
	ts = x - types.UnixEpochSecond*types.MicrosPerSecond
	if ts > x || !types.ValidTimestamp(ts) || ts == types.TimestampInfinity || ts == types.TimestampNegInfinity {
		return 0, false
	}
	return ts, true
}

func (m *avroMachine) uuid(n *avroNode) columnar.U128 {
	if n.op == opUUIDFixed {
		b := m.r.take(16)
		if b == nil {
			return columnar.U128{}
		}
		return columnar.U128{Hi: binary.BigEndian.Uint64(b), Lo: binary.BigEndian.Uint64(b[8:])}
	}
	s := m.r.bytes()
	if m.r.reason != "" {
		return columnar.U128{}
	}
	u, err := types.ParseUUID(unsafeString(s))
	if err != nil {
		m.r.fail("%s", reason(err))
	}
	return u
}

// duration reads months, days and milliseconds, unsigned 32-bit numbers each.
func (m *avroMachine) duration() types.Span {
	mon, day, ms := m.r.uint32(), m.r.uint32(), m.r.uint32()
	if mon > math.MaxInt32 || day > math.MaxInt32 {
		m.r.fail("interval out of range")
	}
	return types.Span{Months: int32(mon), Days: int32(day), Micros: int64(ms) * 1000}
}

var pow10 = func() (p [19]int64) {
	x := int64(1)
	for i := range p {
		p[i] = x
		x *= 10
	}
	return p
}()

// decimal reads a two's-complement big-endian number. The result is good until
// the next call.
func (m *avroMachine) decimal(n *avroNode) []byte {
	var b []byte
	if n.size >= 0 {
		b = m.r.take(n.size)
	} else {
		b = m.r.bytes()
	}
	if m.r.reason != "" {
		return nil
	}
	for len(b) > 8 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
		b = b[1:]
	}
	precision, same := n.numericFits()
	if len(b) <= 8 {
		x := int64(0)
		if len(b) > 0 {
			x = int64(int8(b[0]))
			for _, c := range b[1:] {
				x = x<<8 | int64(c)
			}
		}
		m.num = decimal.AppendInt64Scaled(m.num[:0], x, n.scale)
		if same && (precision > 18 || x < pow10[precision] && x > -pow10[precision]) {
			return m.num
		}
	} else if !m.bigDecimal(b, n.scale) {
		return nil
	}
	if n.typ.Mod < 0 {
		return m.num
	}
	var err error
	m.num2, err = decimal.ApplyTypmod(m.num2[:0], m.num, n.typ.Mod)
	if err != nil {
		m.r.fail("%s", reason(err))
		return nil
	}
	if !decimal.Equal(m.num, m.num2) {
		m.r.fail("a decimal has more digits after the point than the reader's schema allows")
		return nil
	}
	return m.num2
}

func (m *avroMachine) bigDecimal(b []byte, scale int) bool {
	x := new(big.Int).SetBytes(b)
	if b[0] >= 0x80 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	var err error
	if m.num, err = decimal.AppendBig(m.num[:0], x, scale); err != nil {
		m.r.fail("%s", reason(err))
		return false
	}
	return true
}
