package loadgen

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// datagen is RisingWave's generator of rows of declared columns. Each column is a
// sequence of numbers, or random: numbers, texts and booleans of its seed and the
// number of the row, times of the clock and these.
type datagen struct {
	table  sources.Table
	fields []field
	letter *textPool
	now    func() time.Time
}

// field makes the values of a column, an element or a field of a struct.
type field struct {
	typ      types.Type
	seed     uint64
	sequence bool
	min, max float64 // of numbers: start and end of a sequence
	integral bool
	length   int64         // of texts and arrays
	past     time.Duration // times are at most so far back
	base     time.Time     // zero: the time at which the row is made
	parts    []field       // of a struct, or the one element of an array
}

// newDatagen reads the options fields.COLUMN.… . The events of the result are the rows
// after which a sequence has ended, 0 for never.
func newDatagen(options map[string]string, declared *sources.Table) (*datagen, int64, error) {
	if declared == nil || len(declared.Columns) == 0 {
		return nil, 0, pgerror.New(pgerror.SyntaxError, "a source of datagen needs columns").
			WithHint("Write CREATE SOURCE name (column type, …) WITH (connector = 'datagen', …).")
	}
	g := &datagen{table: *declared, letter: newTextPool(3, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), now: time.Now}
	g.table.Name, g.table.Envelope = "", sources.EnvelopeAppend
	if len(g.table.Key) > 0 {
		g.table.Envelope = sources.EnvelopeUpsert
	}
	r := fieldReader{options: options, used: map[string]bool{}, start: time.Now()}
	for i, c := range declared.Columns {
		f := r.field("fields."+c.Name, c.Type, uint64(i+1))
		g.fields = append(g.fields, f)
	}
	if r.err == nil {
		r.unknown()
	}
	return g, r.events, r.err
}

// newDatagenSource makes the source of a datagen.
func newDatagenSource(options map[string]string, columns *sources.Table) (*Source, error) {
	for name := range options {
		switch {
		case strings.HasPrefix(name, "fields."), name == "datagen.rows.per.second", name == "datagen.split.num", name == "format":
		default:
			return nil, pgerror.New(pgerror.InvalidParameterValue, "unrecognized parameter \"%s\"", name).
				WithHint("The options are fields.COLUMN.… and datagen.rows.per.second.")
		}
	}
	g, events, err := newDatagen(options, columns)
	if err != nil {
		return nil, err
	}
	rate, err := rateOption(options, "datagen.rows.per.second", 10)
	return &Source{gen: g, rate: rate, events: events, batch: maxChunk}, err
}

// fieldReader reads the options of fields.
type fieldReader struct {
	options map[string]string
	used    map[string]bool
	start   time.Time
	events  int64
	err     error
}

func (r *fieldReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = pgerror.New(pgerror.InvalidParameterValue, format, args...)
	}
}

func (r *fieldReader) option(name string) (string, bool) {
	r.used[name] = true
	v, ok := r.options[name]
	return v, ok
}

func (r *fieldReader) number(name string, def float64) float64 {
	v, ok := r.option(name)
	if !ok {
		return def
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		r.fail("invalid value for option \"%s\": \"%s\"", name, v)
	}
	return f
}

// field reads what the options that begin with prefix say of a value.
func (r *fieldReader) field(prefix string, t types.Type, seed uint64) field {
	f := field{typ: t, seed: seed, length: 10}
	if v, ok := r.option(prefix + ".seed"); ok {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			r.fail("invalid value for option \"%s\": \"%s\"", prefix+".seed", v)
		}
		f.seed = uint64(n) ^ seed<<32
	}
	switch kind, _ := r.option(prefix + ".kind"); strings.ToLower(kind) {
	case "", "random":
	case "sequence":
		f.sequence = true
	default:
		r.fail("invalid value for option \"%s\": \"%s\"", prefix+".kind", kind)
	}
	info := types.Lookup(t.Storage().OID)
	switch {
	case isNumber(t):
		r.numbers(&f, prefix)
		return f
	case f.sequence && info != nil && info.Elem == 0 && info.Kind != 'c':
		r.fail("a sequence of type %s is not supported: option \"%s.kind\"", t, prefix)
	case t.OID == types.OIDBool:
	case t.OID == types.OIDTimestamp, t.OID == types.OIDTimestampTZ:
		r.times(&f, prefix)
	case t.OID == types.OIDText, t.OID == types.OIDVarchar:
		f.length = r.size(prefix, 10)
	case info != nil && info.Kind == 'c' && info.Definition != nil:
		for i, x := range info.Definition.Fields {
			f.parts = append(f.parts, r.field(prefix+"."+x.Name, x.Type, seed*31+uint64(i)+1))
		}
	case info != nil && info.Elem != 0:
		f.length = r.size(prefix, 3)
		events := r.events
		r.events = 0
		f.parts = []field{r.field(prefix+"._", t.Storage().ElemType(), seed*31+1)}
		if f.length > 0 && r.events > 0 {
			r.events = max(r.events/f.length, 1)
		}
		if events > 0 && (r.events == 0 || events < r.events) {
			r.events = events
		}
	default:
		r.fail("datagen makes no values of type %s", t)
	}
	return f
}

func isNumber(t types.Type) bool {
	switch t.OID {
	case types.OIDInt2, types.OIDInt4, types.OIDInt8, types.OIDFloat4, types.OIDFloat8, types.OIDNumeric:
		return true
	}
	return false
}

func (r *fieldReader) size(prefix string, def float64) int64 {
	n := r.number(prefix+".length", def)
	if n < 0 || n > 1<<16 || n != math.Trunc(n) {
		r.fail("invalid value for option \"%s.length\"", prefix)
		return 0
	}
	return int64(n)
}

func (r *fieldReader) numbers(f *field, prefix string) {
	low, high := prefix+".min", prefix+".max"
	if f.sequence {
		low, high = prefix+".start", prefix+".end"
	}
	f.min, f.max = r.number(low, 0), r.number(high, math.MaxInt16)
	f.integral = f.typ.OID == types.OIDInt2 || f.typ.OID == types.OIDInt4 || f.typ.OID == types.OIDInt8
	limit := map[types.OID]float64{types.OIDInt2: math.MaxInt16, types.OIDInt4: math.MaxInt32, types.OIDInt8: 1 << 53}[f.typ.OID]
	switch {
	case f.max < f.min:
		r.fail("option \"%s\" is less than \"%s\"", high, low)
	case f.integral && (f.max > limit || f.min < -limit || f.min != math.Trunc(f.min) || f.max != math.Trunc(f.max)):
		r.fail("\"%s\" or \"%s\" is out of the range of type %s", low, high, f.typ)
	case f.sequence:
		if n := int64(math.Min(f.max-f.min, 1<<62)) + 1; r.events == 0 || n < r.events {
			r.events = n
		}
	}
}

func (r *fieldReader) times(f *field, prefix string) {
	f.past = 24 * time.Hour
	if v, ok := r.option(prefix + ".max_past"); ok {
		iv, err := types.ParseInterval(v, -1, nil)
		f.past = time.Duration(iv.Micros)*time.Microsecond + time.Duration(iv.Days)*24*time.Hour + time.Duration(iv.Months)*30*24*time.Hour
		if err != nil || f.past < 0 {
			r.fail("invalid value for option \"%s.max_past\": \"%s\"", prefix, v)
		}
	}
	switch v, _ := r.option(prefix + ".max_past_mode"); v {
	case "", "absolute":
		f.base = r.start
	case "relative":
	default:
		r.fail("invalid value for option \"%s.max_past_mode\": \"%s\"", prefix, v)
	}
	if v, ok := r.option(prefix + ".basetime"); ok {
		b := columnar.NewBuilder(columnar.KindInt64, 1)
		if err := types.ParseText(b, types.TimestampTZ, v, nil); err != nil {
			r.fail("invalid value for option \"%s.basetime\": \"%s\"", prefix, v)
			return
		}
		f.base = time.UnixMicro(b.Build().Int64s()[0] + unixToPG)
	}
}

// unknown refuses options of fields that there are not.
func (r *fieldReader) unknown() {
	for name := range r.options {
		if strings.HasPrefix(name, "fields.") && !r.used[name] {
			r.fail("unrecognized parameter \"%s\"", name)
		}
	}
}

func (g *datagen) tables() []sources.Table { return []sources.Table{g.table} }

func (g *datagen) generate(from, to int64) []sources.TableChunk {
	n := int(to - from)
	bs := builders(g.table.Columns, n)
	now := g.now()
	var text []byte
	for c := range g.fields {
		for i := from; i < to; i++ {
			text = g.append(bs[c], &g.fields[c], i, now, text)
		}
	}
	ch := chunkOf(0, bs, nil)
	if g.table.Envelope == sources.EnvelopeUpsert {
		ch.Ops = make([]sources.Op, n)
	}
	return []sources.TableChunk{ch}
}

// append adds the value of row n. text is room that can be used again.
func (g *datagen) append(b *columnar.Builder, f *field, n int64, now time.Time, text []byte) []byte {
	r := eventRNG(f.seed, n)
	switch f.typ.OID {
	case types.OIDInt2:
		b.Int16(int16(f.number(n, &r)))
	case types.OIDInt4:
		b.Int32(int32(f.number(n, &r)))
	case types.OIDInt8:
		b.Int64(int64(f.number(n, &r)))
	case types.OIDFloat4:
		b.Float32(float32(f.number(n, &r)))
	case types.OIDFloat8:
		b.Float64(f.number(n, &r))
	case types.OIDBool:
		b.Bool(r.next()&1 == 1)
	case types.OIDTimestamp, types.OIDTimestampTZ:
		b.Int64(f.time(now, &r))
	default:
		text = g.text(text[:0], f, n, now, &r)
		if err := types.ParseTextBytes(b, f.typ, text, nil); err != nil {
			b.Null() // a text that is too long for its type
		}
	}
	return text
}

// number is the value of row n; those of integers are whole.
func (f *field) number(n int64, r *rng) float64 {
	if f.sequence {
		return f.min + float64(n)
	}
	if f.integral {
		return f.min + float64(r.next()%uint64(f.max-f.min+1))
	}
	return f.min + (f.max-f.min)*float64(r.next()>>11)/(1<<53)
}

// time is a time before the base, in microseconds from 2000 on.
func (f *field) time(now time.Time, r *rng) int64 {
	base := now
	if !f.base.IsZero() {
		base = f.base
	}
	if f.past > 0 {
		base = base.Add(-time.Duration(r.next() % uint64(f.past)))
	}
	return base.UnixMicro() - unixToPG
}

// text appends the text form of a value.
func (g *datagen) text(dst []byte, f *field, n int64, now time.Time, r *rng) []byte {
	info := types.Lookup(f.typ.Storage().OID)
	switch {
	case f.typ.OID == types.OIDNumeric:
		return strconv.AppendFloat(dst, f.number(n, r), 'f', -1, 64)
	case f.typ.OID == types.OIDText || f.typ.OID == types.OIDVarchar:
		return g.letter.cut(dst, r.next(), int(f.length))
	case info.Elem != 0:
		dst = append(dst, '{')
		for i := range f.length {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = g.part(dst, &f.parts[0], n*f.length+i, now)
		}
		return append(dst, '}')
	}
	dst = append(dst, '(')
	for i := range f.parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = g.part(dst, &f.parts[i], n, now)
	}
	return append(dst, ')')
}

// part appends an element or a field, in quotes.
func (g *datagen) part(dst []byte, f *field, n int64, now time.Time) []byte {
	b := columnar.NewBuilder(f.typ.Kind(), 1)
	g.append(b, f, n, now, nil)
	dst = append(dst, '"')
	for _, c := range types.AppendText(nil, f.typ, b.Build(), 0, nil) {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}
