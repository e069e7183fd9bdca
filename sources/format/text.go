package format

import (
	"context"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// textDecoder takes the record as the text form of one column's value.
type textDecoder struct{ col Column }

// NewText makes a decoder whose one column is the record as text, or the value
// of another type that the text denotes.
func NewText(c Column) Decoder { return textDecoder{c} }

func (d textDecoder) Clone() Decoder { return d }

func (d textDecoder) Decode(_ context.Context, dst []*columnar.Builder, record []byte) error {
	if err := appendTextValue(dst[0], d.col.Type, record); err != nil {
		return badColumn(d.col.Field, err)
	}
	return nil
}

// bytesDecoder takes the record as it is.
type bytesDecoder struct{}

// NewBytes makes a decoder whose one column, bytea, is the record.
func NewBytes() Decoder { return bytesDecoder{} }

func (bytesDecoder) Clone() Decoder { return bytesDecoder{} }

func (bytesDecoder) Decode(_ context.Context, dst []*columnar.Builder, record []byte) error {
	dst[0].Bytes(record)
	return nil
}

// CSVOptions say what a CSV decoder reads.
type CSVOptions struct {
	Columns   []Column // all columns of the file, in its order
	Delimiter byte     // 0: a comma
	// Skip says of each column whether it has no builder.
	Skip []bool
}

// csvDecoder implements Decoder.
type csvDecoder struct {
	cols  []Column
	skip  []bool
	delim byte
	tmp   []byte
}

// NewCSV makes a decoder of records that are one line of CSV each, as COPY
// reads it: quotes double inside of quotes, an empty field without quotes is
// NULL.
func NewCSV(o CSVOptions) Decoder {
	d := &csvDecoder{cols: o.Columns, skip: o.Skip, delim: o.Delimiter}
	if d.delim == 0 {
		d.delim = ','
	}
	return d
}

func (d *csvDecoder) Clone() Decoder { return &csvDecoder{cols: d.cols, skip: d.skip, delim: d.delim} }

func (d *csvDecoder) Decode(_ context.Context, dst []*columnar.Builder, record []byte) error {
	n := dst[0].Len()
	if err := d.line(dst, record); err != nil {
		truncate(dst, n)
		return err
	}
	return nil
}

func (d *csvDecoder) line(dst []*columnar.Builder, b []byte) error {
	if l := len(b); l > 0 && b[l-1] == '\n' {
		b = b[:l-1]
	}
	if l := len(b); l > 0 && b[l-1] == '\r' {
		b = b[:l-1]
	}
	i, k, out := 0, 0, 0
	for {
		if k == len(d.cols) {
			return badRecord("the line has more than %d fields", len(d.cols))
		}
		field, quoted, next, err := d.field(b, i)
		if err != nil {
			return err
		}
		if d.skip == nil || !d.skip[k] {
			if err := d.store(&d.cols[k], dst[out], field, quoted); err != nil {
				return err
			}
			out++
		}
		k++
		if next > len(b) {
			break
		}
		i = next
	}
	if k < len(d.cols) {
		return badRecord("the line has %d fields where %d are expected", k, len(d.cols))
	}
	return nil
}

func (d *csvDecoder) store(c *Column, b *columnar.Builder, field []byte, quoted bool) error {
	if len(field) == 0 && !quoted {
		if c.NotNull {
			return badRecord("column \"%s\" has no value and cannot be NULL", c.Field)
		}
		b.Null()
		return nil
	}
	if c.Type.OID == types.OIDBytea && !quoted && field[0] != '\\' {
		b.Bytes(field)
		return nil
	}
	if err := appendTextValue(b, c.Type, field); err != nil {
		return badColumn(c.Field, err)
	}
	return nil
}

// field reads the field at i. next is the place after its delimiter, more than
// len(b) if it is the last one.
func (d *csvDecoder) field(b []byte, i int) (field []byte, quoted bool, next int, err error) {
	from := i
	for i < len(b) && b[i] != d.delim && b[i] != '"' {
		if b[i] == '\n' || b[i] == '\r' {
			return nil, false, 0, badRecord("the record has more than one line")
		}
		i++
	}
	if i == len(b) || b[i] == d.delim {
		return b[from:i], false, i + 1, nil
	}
	d.tmp = append(d.tmp[:0], b[from:i]...)
	for inside := false; ; i++ {
		switch {
		case i == len(b) && inside:
			return nil, false, 0, badRecord("unterminated CSV quoted field")
		case i == len(b) || !inside && b[i] == d.delim:
			return d.tmp, true, i + 1, nil
		case b[i] == '"' && inside && i+1 < len(b) && b[i+1] == '"':
			i++
			d.tmp = append(d.tmp, '"')
		case b[i] == '"':
			inside = !inside
		case !inside && (b[i] == '\n' || b[i] == '\r'):
			return nil, false, 0, badRecord("the record has more than one line")
		default:
			d.tmp = append(d.tmp, b[i])
		}
	}
}
