package format

import (
	"math"
	"strconv"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/types"
)

// jsonColumn reads a value as jsonb; a null at the top is SQL's NULL.
func (m *avroMachine) jsonColumn(n *avroNode, b *columnar.Builder) {
	for n.op == opUnion {
		n = m.r.branch(n)
	}
	if n.op == opNull {
		b.Null()
		return
	}
	m.jsonValue(n)
	if m.r.reason == "" {
		b.Extend(m.json.Append)
	}
}

// jsonValue reads a value into the JSON builder, in the form that to_jsonb
// gives a value of the type a column would have.
func (m *avroMachine) jsonValue(n *avroNode) {
	r := &m.r
	if !r.enter() {
		return
	}
	switch n.op {
	case opNull:
		m.json.Null()
	case opBool:
		m.json.Bool(r.bool())
	case opInt32:
		m.jsonInt(int64(r.int32()))
	case opInt64:
		m.jsonInt(r.long())
	case opFloat32:
		m.jsonFloat(float64(math.Float32frombits(r.uint32())), 32)
	case opFloat32To64:
		m.jsonFloat(float64(math.Float32frombits(r.uint32())), 64)
	case opFloat64:
		m.jsonFloat(math.Float64frombits(r.uint64()), 64)
	case opIntFloat32:
		m.jsonFloat(float64(float32(r.long())), 32)
	case opIntFloat64:
		m.jsonFloat(float64(r.long()), 64)
	case opText:
		s := r.bytes()
		if !validText(s) {
			r.fail("%s", types.CheckUTF8(s))
			return
		}
		m.json.String(s)
	case opEnum:
		m.json.String(r.symbol(n))
	case opDecimal:
		if d := m.decimal(n); d != nil {
			m.json.Number(d)
		}
	case opUnion:
		m.jsonValue(r.branch(n))
	case opArray:
		m.json.Begin(false)
		for c := r.block(); c > 0; c = r.block() {
			for range c {
				if m.jsonValue(n.item); r.reason != "" {
					return
				}
			}
		}
		m.json.End()
	case opMap:
		m.jsonMap(n)
	case opRecord:
		m.jsonRecord(n)
	default:
		m.jsonScalarText(n)
	}
	r.depth--
}

// jsonScalarText writes the types whose JSON form is a string.
func (m *avroMachine) jsonScalarText(n *avroNode) {
	r := &m.r
	b := m.num2[:0]
	switch n.op {
	case opBytes:
		b = types.AppendBytea(b, r.bytes(), nil)
	case opFixed:
		b = types.AppendBytea(b, r.take(n.size), nil)
	case opDate:
		b = types.AppendDate(b, m.date())
	case opTime:
		b = types.AppendTime(b, m.time(n))
	case opTimestamp:
		ts := m.timestamp(n)
		l := len(b)
		b = types.AppendTimestamp(b, ts)
		for i := l; i < len(b); i++ { // JSON's form has a T, and the zone with minutes
			if b[i] == ' ' {
				b[i] = 'T'
				break
			}
		}
		if n.typ.OID == types.OIDTimestampTZ {
			b = append(b, "+00:00"...)
		}
	case opUUIDText, opUUIDFixed:
		b = types.AppendUUID(b, m.uuid(n))
	case opDuration:
		b = types.AppendInterval(b, m.duration())
	default:
		r.fail("%s", n.reason)
		return
	}
	m.num2 = b
	m.json.String(b)
}

func (m *avroMachine) jsonInt(x int64) {
	m.num = decimal.AppendInt64(m.num[:0], x)
	m.json.Number(m.num)
}

func (m *avroMachine) jsonFloat(f float64, bits int) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		m.num = types.AppendFloat8(m.num[:0], f, nil)
		m.json.String(m.num)
		return
	}
	m.num2 = strconv.AppendFloat(m.num2[:0], f, 'g', -1, bits)
	var err error
	if m.num, err = decimal.Parse(m.num[:0], m.num2); err != nil {
		m.r.fail("%s", reason(err))
		return
	}
	m.json.Number(m.num)
}

func (m *avroMachine) jsonMap(n *avroNode) {
	m.json.Begin(true)
	for c := m.r.block(); c > 0; c = m.r.block() {
		for range c {
			k := m.r.bytes()
			if !validText(k) {
				m.r.fail("%s", types.CheckUTF8(k))
				return
			}
			m.json.Key(k)
			if m.jsonValue(n.item); m.r.reason != "" {
				return
			}
		}
	}
	m.json.End()
}

func (m *avroMachine) jsonRecord(n *avroNode) {
	m.json.Begin(true)
	for i := range n.fields {
		f := &n.fields[i]
		if f.key == nil {
			m.skip(f.node)
		} else {
			m.json.Key(f.key)
			m.jsonValue(f.node)
		}
		if m.r.reason != "" {
			return
		}
	}
	for i := range n.defaults {
		d := &n.defaults[i]
		outer := m.r
		m.r.reset(d.data)
		m.r.depth = outer.depth
		m.json.Key(d.key)
		if m.jsonValue(d.node); m.r.reason != "" {
			return
		}
		m.r = outer
	}
	m.json.End()
}

// skip passes a value.
func (m *avroMachine) skip(n *avroNode) {
	r := &m.r
	switch n.op {
	case opNull:
	case opBool:
		r.take(1)
	case opInt32, opInt64, opIntFloat32, opIntFloat64, opEnum, opDate, opTime, opTimestamp:
		r.long()
	case opFloat32, opFloat32To64:
		r.take(4)
	case opFloat64:
		r.take(8)
	case opFixed:
		r.take(n.size)
	case opUUIDFixed:
		r.take(16)
	case opDuration:
		r.take(12)
	case opDecimal:
		if n.size >= 0 {
			r.take(n.size)
		} else {
			r.bytes()
		}
	case opText, opBytes, opUUIDText:
		r.bytes()
	case opUnion:
		if i := r.long(); uint64(i) < uint64(len(n.branches)) {
			m.skipPart(n.branches[i])
		} else {
			r.fail("union branch %d does not exist", i)
		}
	case opArray, opMap:
		for c := r.block(); c > 0; c = r.block() {
			for range c {
				if n.op == opMap {
					r.bytes()
				}
				if m.skipPart(n.item); r.reason != "" {
					return
				}
			}
		}
	case opRecord:
		for i := range n.fields {
			if m.skipPart(n.fields[i].node); r.reason != "" {
				return
			}
		}
	}
}

func (m *avroMachine) skipPart(n *avroNode) {
	if m.r.enter() {
		m.skip(n)
		m.r.depth--
	}
}
