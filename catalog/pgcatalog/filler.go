package pgcatalog

import (
	"fmt"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// filler makes the rows of a system relation column by column. A column that
// nothing fills is NULL where PostgreSQL allows it, and zero (0, false, "")
// where it does not.
type filler struct {
	rel  *relation
	n    int // number of rows, set before the first column is filled
	cols []*columnar.Vec
	// nulls are the all-NULL columns made so far: they are shared.
	nulls map[columnar.Kind]*columnar.Vec
}

func newFiller(r *relation) *filler {
	return &filler{rel: r, cols: make([]*columnar.Vec, len(r.columns))}
}

func (f *filler) column(name string) int {
	c, ok := f.rel.index[name]
	if !ok {
		panic(fmt.Sprintf("pgcatalog: %s has no column %s", f.rel.name, name))
	}
	return c
}

// each fills a column: g appends the value of row i, which may be NULL.
func (f *filler) each(name string, g func(i int, b *columnar.Builder)) {
	c := f.column(name)
	b := columnar.NewBuilder(f.rel.columns[c].Type.Kind(), f.n)
	for i := range f.n {
		g(i, b)
	}
	f.cols[c] = b.Build()
}

// oid, text, … fill a column with values that are not NULL.
func (f *filler) oid(name string, g func(i int) uint32) {
	f.each(name, func(i int, b *columnar.Builder) { b.Int64(int64(g(i))) })
}

func (f *filler) text(name string, g func(i int) string) {
	f.each(name, func(i int, b *columnar.Builder) { b.String(g(i)) })
}

// some fills a column with texts of which the empty one stands for NULL.
func (f *filler) some(name string, g func(i int) string) {
	f.each(name, func(i int, b *columnar.Builder) {
		if s := g(i); s != "" {
			b.String(s)
		} else {
			b.Null()
		}
	})
}

func (f *filler) char(name string, g func(i int) byte) {
	var x [1]byte
	f.each(name, func(i int, b *columnar.Builder) {
		x[0] = g(i)
		b.Bytes(x[:])
	})
}

func (f *filler) bool(name string, g func(i int) bool) {
	f.each(name, func(i int, b *columnar.Builder) { b.Bool(g(i)) })
}

func (f *filler) int(name string, g func(i int) int64) {
	f.each(name, func(i int, b *columnar.Builder) { appendInt(b, g(i)) })
}

func (f *filler) float(name string, g func(i int) float64) {
	f.each(name, func(i int, b *columnar.Builder) {
		if b.Kind() == columnar.KindFloat32 {
			b.Float32(float32(g(i)))
		} else {
			b.Float64(g(i))
		}
	})
}

func (f *filler) time(name string, g func(i int) time.Time) {
	f.each(name, func(i int, b *columnar.Builder) { appendTime(b, g(i)) })
}

// same makes a column equal to another one, with which it shares its values.
func (f *filler) same(name, as string) { f.cols[f.column(name)] = f.cols[f.column(as)] }

// all gives columns the same value in all rows. Those of one kind share it.
func (f *filler) all(v any, names ...string) {
	for i, name := range names {
		if c := f.column(name); i > 0 && f.cols[f.column(names[0])].Kind() == f.rel.columns[c].Type.Kind() {
			f.same(name, names[0])
			continue
		}
		f.each(name, func(_ int, b *columnar.Builder) { appendValue(b, v) })
	}
}

func appendValue(b *columnar.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.Null()
	case string:
		b.String(v)
	case []byte:
		b.Bytes(v)
	case byte:
		b.Bytes([]byte{v})
	case bool:
		b.Bool(v)
	case int:
		appendInt(b, int64(v))
	case int64:
		appendInt(b, v)
	case uint32:
		b.Int64(int64(v))
	case float64:
		b.Float64(v)
	case time.Time:
		appendTime(b, v)
	default:
		panic(fmt.Sprintf("pgcatalog: value of type %T", v))
	}
}

func appendInt(b *columnar.Builder, x int64) {
	switch b.Kind() {
	case columnar.KindInt16:
		b.Int16(int16(x))
	case columnar.KindInt32:
		b.Int32(int32(x))
	case columnar.KindFloat32:
		b.Float32(float32(x))
	case columnar.KindFloat64:
		b.Float64(float64(x))
	default:
		b.Int64(x)
	}
}

// pgEpoch is where PostgreSQL's timestamps count from.
var pgEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func appendTime(b *columnar.Builder, t time.Time) {
	if t.IsZero() {
		b.Null()
		return
	}
	b.Int64(t.UnixMicro() - pgEpoch.UnixMicro())
}

// row gives the relation a row of values by column name; others as in filler.
type row map[string]any

// rows fills the relation with few rows of literal values.
func (f *filler) rows(rs ...row) {
	f.n = len(rs)
	filled := map[string]bool{}
	for _, r := range rs {
		for name := range r {
			filled[name] = true
		}
	}
	for name := range filled {
		f.each(name, func(i int, b *columnar.Builder) {
			if v, ok := rs[i][name]; ok {
				appendValue(b, v)
			} else {
				f.missing(b, f.column(name))
			}
		})
	}
}

func (f *filler) missing(b *columnar.Builder, c int) {
	switch {
	case !f.rel.columns[c].NotNull:
		b.Null()
	case f.rel.columns[c].Type.OID.Elem() != 0:
		b.Bytes(types.AppendEmptyArray(nil, f.rel.columns[c].Type.OID.Elem()))
	case f.rel.columns[c].Type == types.Char:
		b.Bytes([]byte{0}) // what '' is as a "char"
	default:
		b.Zeros(1)
	}
}

// batch is the finished relation.
func (f *filler) batch() *columnar.Batch {
	for c, v := range f.cols {
		if v == nil {
			f.cols[c] = f.unfilled(c)
		}
	}
	return &columnar.Batch{N: f.n, Cols: f.cols}
}

func (f *filler) unfilled(c int) *columnar.Vec {
	col := &f.rel.columns[c]
	k := col.Type.Kind()
	if col.NotNull {
		b := columnar.NewBuilder(k, f.n)
		for range f.n {
			f.missing(b, c)
		}
		return b.Build()
	}
	if f.nulls == nil {
		f.nulls = map[columnar.Kind]*columnar.Vec{}
	}
	if f.nulls[k] == nil {
		b := columnar.NewBuilder(k, f.n)
		b.Nulls(f.n)
		f.nulls[k] = b.Build()
	}
	return f.nulls[k]
}

// Array columns: lists of OIDs, numbers and texts.

// oidVector is the form of an oidvector, whose subscripts begin at 0.
func oidVector(dst []byte, oids []uint32) []byte { return appendOids(dst, oids, 0) }

func oidArray(dst []byte, oids []uint32) []byte { return appendOids(dst, oids, 1) }

func appendOids(dst []byte, oids []uint32, lower int32) []byte {
	v := columnar.MakeFixed(columnar.KindInt64, len(oids))
	for i, o := range oids {
		v.Int64s()[i] = int64(o)
	}
	return types.AppendArray(dst, types.OIDOid, []types.Dim{{Len: int32(len(oids)), Lower: lower}}, v, 0, len(oids))
}

func regtypeArray(dst []byte, ts []types.Type) []byte {
	v := columnar.MakeFixed(columnar.KindInt64, len(ts))
	for i, t := range ts {
		v.Int64s()[i] = int64(t.OID)
	}
	return types.AppendList(dst, types.OIDRegtype, v, 0, len(ts))
}

// attrArray is an int2vector (lower 0) or int2[] (lower 1) of the attribute
// numbers of columns.
func attrArray(dst []byte, cols []int, lower int32) []byte {
	v := columnar.MakeFixed(columnar.KindInt16, len(cols))
	for i, c := range cols {
		v.Int16s()[i] = int16(c + 1)
	}
	return types.AppendArray(dst, types.OIDInt2, []types.Dim{{Len: int32(len(cols)), Lower: lower}}, v, 0, len(cols))
}

func textArray(dst []byte, elem types.OID, texts []string) []byte {
	b := columnar.NewBuilder(columnar.KindBytes, len(texts))
	for _, s := range texts {
		b.String(s)
	}
	return types.AppendList(dst, elem, b.Build(), 0, len(texts))
}

// extend fills a column of arrays, records and the like: g appends the form of
// row i; nil for the row leaves it NULL.
func (f *filler) extend(name string, g func(i int, dst []byte) []byte) {
	f.each(name, func(i int, b *columnar.Builder) { b.Extend(func(dst []byte) []byte { return g(i, dst) }) })
}
