package kafka

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sources/format"
	"github.com/streamdb/streamdb/sql/types"
)

// program is how records become rows: compiled once, shared by all workers.
type program struct {
	table  *sources.Table
	layout *layout
	key    format.Decoder // nil: no column comes from the key
	value  format.Decoder // nil: none comes from the value
	keyAt  []int          // builders of the key's columns, in its order
	valAt  []int
	meta   []int // columns of neither
	upsert bool
	byKey  bool    // the record's key identifies the row
	skip   []int64 // by partition: records before this offset are not wanted
}

// newProgram compiles the decoders of a table. schemas are asked for writers'
// schemas; waiting is told when they cannot be had.
func newProgram(o *options, t *sources.Table, l *layout, keySchemas, schemas format.SchemaSource, waiting func(error)) (*program, error) {
	p := &program{table: t, layout: l, upsert: t.Envelope == sources.EnvelopeUpsert}
	if o.start == startOffsets {
		p.skip = o.offsets
	}
	var keyCols, valCols []format.Column
	for i, from := range l.Columns {
		c := format.Column{Field: from.Field, Type: t.Columns[i].Type, NotNull: t.Columns[i].NotNull}
		switch from.Part {
		case partKey:
			p.keyAt = append(p.keyAt, i)
			keyCols = append(keyCols, c)
		case partValue:
			p.valAt = append(p.valAt, i)
			valCols = append(valCols, c)
		default:
			p.meta = append(p.meta, i)
		}
	}
	p.byKey = p.upsert && len(keyCols) > 0
	var err error
	if len(keyCols) > 0 {
		p.key, err = newDecoder(&o.key, l.KeyFormat, keyCols, l.KeyFields, l.Key, keySchemas, waiting)
	}
	if err == nil && len(valCols) > 0 {
		p.value, err = newDecoder(&o.val, o.val.kind, valCols, l.ValueFields, l.Value, schemas, waiting)
	}
	return p, err
}

func newDecoder(f *formatOptions, kind string, cols []format.Column, fields []string, text *avroText, schemas format.SchemaSource, waiting func(error)) (format.Decoder, error) {
	switch kind {
	case "avro":
		s, err := text.parse()
		if err != nil {
			return nil, err
		}
		return format.NewAvro(format.AvroOptions{Reader: s, Columns: cols, Writers: schemas, Framed: schemas == nil && !f.bare, Waiting: waiting})
	case "json":
		return format.NewJSON(format.JSONOptions{Columns: cols, Times: timeUnit(f.times)}), nil
	case "json-or-text":
		return newLooseKey(cols), nil
	case "text":
		return format.NewText(cols[0]), nil
	case "csv":
		o := format.CSVOptions{Skip: make([]bool, len(fields))}
		if f.delim != "" {
			o.Delimiter = f.delim[0]
		}
		for i, name := range fields {
			k := slices.IndexFunc(cols, func(c format.Column) bool { return c.Field == name })
			if o.Skip[i] = k < 0; k < 0 {
				o.Columns = append(o.Columns, format.Column{Field: name, Type: types.Text})
			} else {
				o.Columns = append(o.Columns, cols[k])
			}
		}
		return format.NewCSV(o), nil
	}
	return format.NewBytes(), nil
}

func timeUnit(mode string) format.TimeUnit {
	switch mode {
	case "milli":
		return format.Milliseconds
	case "micro":
		return format.Microseconds
	}
	return format.GuessUnit
}

// looseKey decodes a key that is a JSON object with the key's columns, or, for
// one column, the value itself as text, with or without JSON's quotes.
type looseKey struct {
	cols   []format.Column
	object format.Decoder
	scalar format.Decoder
	text   format.Decoder
}

func newLooseKey(cols []format.Column) *looseKey {
	k := &looseKey{cols: cols, object: format.NewJSON(format.JSONOptions{Columns: cols})}
	if len(cols) == 1 {
		c := cols[0]
		c.Field = ""
		k.scalar, k.text = format.NewJSON(format.JSONOptions{Columns: []format.Column{c}}), format.NewText(c)
	}
	return k
}

func (k *looseKey) Clone() format.Decoder { return newLooseKey(k.cols) }

func (k *looseKey) Decode(ctx context.Context, dst []*columnar.Builder, key []byte) error {
	if k.scalar == nil || len(key) > 0 && key[0] == '{' {
		return k.object.Decode(ctx, dst, key)
	}
	if len(key) > 0 && key[0] == '"' {
		return k.scalar.Decode(ctx, dst, key)
	}
	return k.text.Decode(ctx, dst, key)
}

// worker decodes runs of records of one partition.
type worker struct {
	p     *program
	key   format.Decoder
	value format.Decoder
	bs    []*columnar.Builder
	keyB  []*columnar.Builder
	valB  []*columnar.Builder
	json  types.JSONBuilder
	buf   []byte
	// perRow is the bytes a row that columns took lately, for their size.
	perRow []float64
}

func (p *program) worker() *worker {
	w := &worker{p: p, bs: make([]*columnar.Builder, len(p.table.Columns)), perRow: make([]float64, len(p.table.Columns))}
	if p.key != nil {
		w.key = p.key.Clone()
	}
	if p.value != nil {
		w.value = p.value.Clone()
	}
	w.keyB, w.valB = make([]*columnar.Builder, len(p.keyAt)), make([]*columnar.Builder, len(p.valAt))
	return w
}

// decoded is what a run of records gave.
type decoded struct {
	chunk  sources.TableChunk
	errors []sources.RecordError
	bytes  int64
	err    error // the run could not be decoded at all
}

// decode decodes records.
func (w *worker) decode(ctx context.Context, recs []*kgo.Record) (d decoded) {
	w.begin(len(recs))
	for _, r := range recs {
		d.bytes += int64(len(r.Key) + len(r.Value))
		if r.Attrs.IsControl() || int(r.Partition) < len(w.p.skip) && r.Offset < w.p.skip[r.Partition] {
			continue
		}
		op, err := w.record(ctx, r)
		var bad *format.RecordError
		switch {
		case err == nil:
			if w.p.upsert {
				d.chunk.Ops = append(d.chunk.Ops, op)
			}
		case errors.As(err, &bad):
			d.errors = append(d.errors, sources.RecordError{
				Reason: bad.Reason, Partition: strconv.Itoa(int(r.Partition)), Offset: r.Offset, Key: r.Key, Raw: r.Value, At: time.Now(),
			})
		default:
			d.err = err
			return d
		}
	}
	w.finish(&d.chunk)
	return d
}

// begin makes builders with room for rows.
func (w *worker) begin(rows int) {
	for i, c := range w.p.table.Columns {
		w.bs[i] = columnar.NewBuilder(c.Type.Kind(), rows)
		w.bs[i].ReserveData(int(w.perRow[i]*float64(rows)*1.1) + 64)
	}
	for i, c := range w.p.keyAt {
		w.keyB[i] = w.bs[c]
	}
	for i, c := range w.p.valAt {
		w.valB[i] = w.bs[c]
	}
}

func (w *worker) finish(t *sources.TableChunk) {
	for i, b := range w.bs {
		v := b.Build()
		if t.Rows.N = v.Len(); t.Rows.N > 0 && v.Kind() == columnar.KindBytes {
			_, _, data := v.Raw()
			w.perRow[i] = float64(len(data)) / float64(t.Rows.N)
		}
		t.Rows.Cols = append(t.Rows.Cols, v)
	}
}

var (
	errNoKey   = &format.RecordError{Reason: "the record has no key"}
	errNoValue = &format.RecordError{Reason: "the record has no value (it is a tombstone, which only ENVELOPE UPSERT understands)"}
)

// record appends one record. After an error all builders are as before.
func (w *worker) record(ctx context.Context, r *kgo.Record) (sources.Op, error) {
	if err := w.recordKey(ctx, r); err != nil {
		return 0, err
	}
	op := sources.OpUpsert
	err := error(nil)
	switch {
	case r.Value != nil && w.value != nil:
		err = w.value.Decode(ctx, w.valB, r.Value)
	case r.Value != nil:
	case w.p.byKey:
		op = sources.OpDelete
		for _, b := range w.valB {
			b.Null()
		}
	default:
		err = errNoValue
	}
	if err != nil {
		w.takeBack(w.keyB)
		return 0, err
	}
	for _, c := range w.p.meta {
		if err := w.metadata(w.p.layout.Columns[c], w.bs[c], r); err != nil {
			n := w.bs[w.p.meta[0]].Len() - 1 // the first one has this row, or the failed one is the first
			if c == w.p.meta[0] {
				n++
			}
			for _, b := range w.bs {
				b.Truncate(n)
			}
			return 0, err
		}
	}
	return op, nil
}

func (w *worker) recordKey(ctx context.Context, r *kgo.Record) error {
	switch {
	case w.key == nil:
		return nil
	case r.Key != nil:
		err := w.key.Decode(ctx, w.keyB, r.Key)
		var bad *format.RecordError
		if errors.As(err, &bad) {
			return &format.RecordError{Reason: "key: " + bad.Reason}
		}
		return err
	case w.p.byKey:
		return errNoKey
	}
	for _, b := range w.keyB {
		b.Null()
	}
	return nil
}

// takeBack removes the last row.
func (w *worker) takeBack(bs []*columnar.Builder) {
	for _, b := range bs {
		b.Truncate(b.Len() - 1)
	}
}

// metadata appends a column that is neither of the key nor of the value.
func (w *worker) metadata(from columnFrom, b *columnar.Builder, r *kgo.Record) error {
	switch from.Part {
	case partPartition:
		if b.Kind() == columnar.KindBytes {
			w.buf = strconv.AppendInt(w.buf[:0], int64(r.Partition), 10)
			b.Bytes(w.buf)
		} else {
			b.Int32(r.Partition)
		}
	case partOffset:
		if b.Kind() == columnar.KindBytes {
			w.buf = strconv.AppendInt(w.buf[:0], r.Offset, 10)
			b.Bytes(w.buf)
		} else {
			b.Int64(r.Offset)
		}
	case partTimestamp:
		b.Int64(types.TimestampTZFromTime(r.Timestamp))
	case partTopic:
		b.String(r.Topic)
	case partHeader:
		return w.header(from.Field, b, r)
	default:
		w.headers(b, r)
	}
	return nil
}

// header appends the value of the last header of a name, NULL if there is none.
func (w *worker) header(name string, b *columnar.Builder, r *kgo.Record) error {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		h := &r.Headers[i]
		if h.Key != name {
			continue
		}
		if h.Value == nil {
			break
		}
		if c := w.column(b); c.Type.OID == types.OIDText {
			if err := types.CheckUTF8(h.Value); err != nil {
				return &format.RecordError{Reason: "header \"" + name + "\": " + err.Error()}
			}
		}
		b.Bytes(h.Value)
		return nil
	}
	b.Null()
	return nil
}

func (w *worker) column(b *columnar.Builder) *sources.Column {
	return &w.p.table.Columns[slices.Index(w.bs, b)]
}

// headers appends all headers: an array of objects with key and value, in
// their order; a value that is no text is written as bytea is.
func (w *worker) headers(b *columnar.Builder, r *kgo.Record) {
	j := &w.json
	j.Begin(false)
	for i := range r.Headers {
		h := &r.Headers[i]
		j.Begin(true)
		j.Key([]byte("key"))
		w.jsonText(j, []byte(h.Key))
		j.Key([]byte("value"))
		if h.Value == nil {
			j.Null()
		} else {
			w.jsonText(j, h.Value)
		}
		j.End()
	}
	j.End()
	b.Extend(j.Append)
}

func (w *worker) jsonText(j *types.JSONBuilder, v []byte) {
	if !utf8.Valid(v) || slices.Contains(v, 0) {
		w.buf = types.AppendBytea(w.buf[:0], v, nil)
		v = w.buf
	}
	j.String(v)
}
