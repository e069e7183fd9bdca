package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/tochar"
	"github.com/streamdb/streamdb/sql/types"
)

// Formatting by templates. A template is nearly always a constant, so that one
// compiled form is enough.

// templates compiles the templates that are one argument of a function, and
// keeps the last.
type templates[T any] struct {
	compile func(s string) (T, error)
	text    string
	known   bool
	last    T
	err     error
}

func (t *templates[T]) of(s []byte) (T, error) {
	if !t.known || t.text != string(s) {
		t.text, t.known = string(s), true
		t.last, t.err = t.compile(t.text)
	}
	return t.last, t.err
}

func compileDates(s string) (*tochar.Dates, error) { return tochar.CompileDates(s, false) }

// templateKernel makes the kernel of a function whose second argument is a
// template; f appends the value for row i. An empty template gives what empty
// appends.
func templateKernel[T any](compile func(string) (T, error), empty func(out *columnar.Builder), f func(x *Eval, t T, a Args, i int, out *columnar.Builder) *pgerror.Error) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		cache := templates[T]{compile: compile}
		k := RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			s := a.Bytes(1, i)
			if len(s) == 0 {
				empty(out)
				return nil
			}
			t, err := cache.of(s)
			if err != nil {
				return pgerror.As(err)
			}
			return f(x, t, a, i, out)
		})
		return k(c, x, args, n)
	}
}

func emptyNull(out *columnar.Builder) { out.Null() }
func emptyText(out *columnar.Builder) { out.String("") }

func toCharFn(v Volatility, k Kernel, arg types.Type) {
	Register(Function{Name: "to_char", Args: []types.Type{arg, types.Text}, Ret: types.Text, Strict: true, Volatility: v, Consts: ScalarConsts, Eval: k})
}

// dateTemplate makes the kernel of to_char for a finite value of a date type.
func dateTemplate(f func(x *Eval, t *tochar.Dates, a Args, i int, dst []byte) ([]byte, error)) Kernel {
	return templateKernel(compileDates, emptyNull, func(x *Eval, t *tochar.Dates, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return extend(out, func(dst []byte) ([]byte, error) { return f(x, t, a, i, dst) })
	})
}

// timestampTemplate is dateTemplate for timestamps, which may be infinite.
func timestampTemplate(f func(x *Eval, t *tochar.Dates, ts int64, dst []byte) []byte) Kernel {
	return templateKernel(compileDates, emptyNull, func(x *Eval, t *tochar.Dates, a Args, i int, out *columnar.Builder) *pgerror.Error {
		ts := a.Int64(0, i)
		if !isFinite(ts) {
			out.Null()
			return nil
		}
		out.Extend(func(dst []byte) []byte { return f(x, t, ts, dst) })
		return nil
	})
}

// numberTemplate makes the kernel of to_char for a type of numbers.
func numberTemplate(f func(t *tochar.Numbers, a Args, i int, dst []byte) ([]byte, error)) Kernel {
	return templateKernel(tochar.CompileNumbers, emptyText, func(_ *Eval, t *tochar.Numbers, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return extend(out, func(dst []byte) ([]byte, error) { return f(t, a, i, dst) })
	})
}

// dateReader makes the kernel of a function that reads dates by a template; an
// empty one reads nothing.
func dateReader(f func(x *Eval, r tochar.Reading, s string, out *columnar.Builder) error) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		cache := templates[*tochar.Dates]{compile: compileDates}
		k := RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			t, err := cache.of(a.Bytes(1, i))
			if err != nil {
				return pgerror.As(err)
			}
			s := text(a.Bytes(0, i))
			r, err := t.Read(s)
			if err == nil {
				err = f(x, r, s, out)
			}
			if err != nil {
				return pgerror.As(err)
			}
			return nil
		})
		return k(c, x, args, n)
	}
}

func init() {
	toCharFn(Stable, timestampTemplate(func(_ *Eval, t *tochar.Dates, ts int64, dst []byte) []byte {
		return t.AppendTimestamp(dst, ts)
	}), types.Timestamp)
	toCharFn(Stable, timestampTemplate(func(x *Eval, t *tochar.Dates, ts int64, dst []byte) []byte {
		return t.AppendTimestampTZ(dst, ts, x.location())
	}), types.TimestampTZ)
	toCharFn(Stable, dateTemplate(func(_ *Eval, t *tochar.Dates, a Args, i int, dst []byte) ([]byte, error) {
		return t.AppendInterval(dst, types.UnpackInterval(Arg[columnar.U128](a, 0, i)))
	}), types.Interval)
	toCharFn(Stable, numberTemplate(func(t *tochar.Numbers, a Args, i int, dst []byte) ([]byte, error) {
		return t.AppendNumeric(dst, a.Bytes(0, i))
	}), types.Numeric)
	toCharFn(Stable, numberTemplate(func(t *tochar.Numbers, a Args, i int, dst []byte) ([]byte, error) {
		return t.AppendInt4(dst, a.Int32(0, i))
	}), types.Int4)
	toCharFn(Stable, numberTemplate(func(t *tochar.Numbers, a Args, i int, dst []byte) ([]byte, error) {
		return t.AppendInt8(dst, a.Int64(0, i))
	}), types.Int8)
	toCharFn(Stable, numberTemplate(func(t *tochar.Numbers, a Args, i int, dst []byte) ([]byte, error) {
		return t.AppendFloat4(dst, Arg[float32](a, 0, i))
	}), types.Float4)
	toCharFn(Stable, numberTemplate(func(t *tochar.Numbers, a Args, i int, dst []byte) ([]byte, error) {
		return t.AppendFloat8(dst, a.Float64(0, i))
	}), types.Float8)

	reader := func(name string, ret types.Type, v Volatility, k Kernel) {
		Register(Function{Name: name, Args: []types.Type{types.Text, types.Text}, Ret: ret, Strict: true, Volatility: v, Consts: ScalarConsts, Eval: k})
	}
	reader("to_date", types.Date, Stable, dateReader(func(_ *Eval, r tochar.Reading, s string, out *columnar.Builder) error {
		d, err := r.Date(s)
		out.Int32(d)
		return err
	}))
	reader("to_timestamp", types.TimestampTZ, Stable, dateReader(func(x *Eval, r tochar.Reading, _ string, out *columnar.Builder) error {
		ts, err := r.TimestampTZ("timestamp", x.location())
		out.Int64(ts)
		return err
	}))
	reader("to_number", types.Numeric, Stable, templateKernel(tochar.CompileNumbers, emptyNull, func(_ *Eval, t *tochar.Numbers, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return extend(out, func(dst []byte) ([]byte, error) { return t.Read(dst, text(a.Bytes(0, i))) })
	}))
}
