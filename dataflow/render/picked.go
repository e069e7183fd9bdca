package render

import (
	"encoding/binary"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
)

// maxRecent bounds how many values a state holds.
const maxRecent = 64

// accumulator is the running state of a call, over its frames.
func (c *windowCall) accumulator() (acc expr.Accumulator, invertible bool) {
	if c.agg != nil {
		return expr.NewAccumulator(c.agg, c.argTypes, c.typ)
	}
	p := &picked{skipNulls: c.ignoreNulls, nth: c.nth}
	switch c.name {
	case "first_value", "nth_value":
		p.early = !c.carries.backward()
	case "last_value":
		p.early = c.carries.backward()
	default:
		p.fallback = 2
	}
	return p, false
}

// picked is the state of first_value and its kin: the value of one of the rows that
// have come, counted from the first (early) or the last.
type picked struct {
	early, skipNulls bool
	nth              int64
	fallback         int // the argument that is the value if there are not so many rows, or 0

	count int64       // of rows, as far as it matters
	kept  []pickedRow // early: the n-th row, once it has come; else the last n
}

type pickedRow struct {
	v *columnar.Vec
	i int
}

// Reset implements expr.Accumulator.
func (p *picked) Reset() { p.count, p.kept = 0, p.kept[:0] }

// Add implements expr.Accumulator.
func (p *picked) Add(_ *expr.Eval, args []*columnar.Vec, i int, _ int64) error {
	if p.skipNulls && args[0].Null(i) {
		return nil
	}
	p.put(pickedRow{args[0], i})
	return nil
}

func (p *picked) put(r pickedRow) {
	if p.count < p.nth {
		p.count++
		if !p.early || p.count == p.nth {
			p.kept = append(p.kept, r)
		}
	} else if !p.early {
		copy(p.kept, p.kept[1:])
		p.kept[len(p.kept)-1] = r
	}
}

// Value implements expr.Accumulator.
func (p *picked) Value(_ *expr.Eval, out *columnar.Builder) error {
	if p.count < p.nth {
		out.Null()
	} else {
		out.AppendFrom(p.kept[0].v, p.kept[0].i)
	}
	return nil
}

// AppendState implements expr.SavedAccumulator.
func (p *picked) AppendState(dst []byte) []byte {
	dst = binary.AppendVarint(dst, p.count)
	for _, r := range p.kept {
		var value []byte
		value = appendNullable(value, r.v, r.i)
		dst = append(binary.AppendUvarint(dst, uint64(len(value))), value...)
		dst = append(dst, byte(r.v.Kind()))
	}
	return dst
}

// LoadState implements expr.SavedAccumulator.
func (p *picked) LoadState(b []byte) error {
	p.Reset()
	count, n := binary.Varint(b)
	p.count = count
	for b = b[n:]; len(b) > 0; {
		size, n := binary.Uvarint(b)
		value := b[n : n+int(size)]
		b = b[n+int(size):]
		p.kept = append(p.kept, pickedRow{readNullable(columnar.Kind(b[0]), value), 0})
		b = b[1:]
	}
	return nil
}
