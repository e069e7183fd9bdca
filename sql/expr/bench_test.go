package expr

import (
	"fmt"
	"math/rand"
	"syscall"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

const benchRows = 1 << 16

// benchBatch has the columns 0 and 1 int8 below 1000, 2 float8, 3 numeric with
// two decimals, 4 timestamp, 5 text of 150 bytes, 6 int4, 7 text of one of ten words.
func benchBatch(n int) columnar.Batch {
	r := rand.New(rand.NewSource(1))
	kinds := []types.Type{types.Int8, types.Int8, types.Float8, types.Numeric, types.Timestamp, types.Text, types.Int4, types.Text}
	var bs []*columnar.Builder
	for _, k := range kinds {
		bs = append(bs, columnar.NewBuilder(k.Kind(), n))
	}
	text := make([]byte, 150)
	for range n {
		bs[0].Int64(r.Int63n(1000))
		bs[1].Int64(r.Int63n(1000))
		bs[2].Float64(r.Float64())
		if err := types.ParseText(bs[3], types.Numeric, fmt.Sprintf("%d.%02d", r.Intn(100000), r.Intn(100)), nil); err != nil {
			panic(err)
		}
		bs[4].Int64(r.Int63n(1 << 50))
		for i := range text {
			text[i] = 'a' + byte(r.Intn(26))
		}
		bs[5].Bytes(text)
		bs[6].Int32(r.Int31n(100000))
		bs[7].String([]string{"apple", "google", "facebook", "baidu", "channel-1", "channel-2", "channel-33", "x", "yy", "zzz"}[r.Intn(10)])
	}
	b := columnar.Batch{N: n}
	for _, c := range bs {
		b.Cols = append(b.Cols, c.Build())
	}
	return b
}

func BenchmarkApply(b *testing.B) {
	i8, num, ts, txt, i4 := types.Int8, types.Numeric, types.Timestamp, types.Text, types.Int4
	op := func(op string, l, r Expr) Expr {
		e, err := NewOp(op, l, r, 0)
		if err != nil {
			b.Fatal(err)
		}
		return e
	}
	call := func(name string, args ...Expr) Expr {
		e, err := NewCall(name, args, CallOptions{})
		if err != nil {
			b.Fatal(err)
		}
		return e
	}
	var list []Expr
	for i := range 1000 {
		list = append(list, Int4Const(int32(97*i)))
	}
	in, err := NewIn(col(6, i4), list, false, 0)
	if err != nil {
		b.Fatal(err)
	}
	half := op("<", col(0, i8), Int8Const(500))
	kase, err := NewCase([]When{
		{op("<", col(0, i8), Int8Const(100)), Int4Const(1)},
		{op("<", col(0, i8), Int8Const(500)), Int4Const(2)},
	}, Int4Const(3), 0)
	if err != nil {
		b.Fatal(err)
	}
	cases := []struct {
		name string
		mfp  MapFilterProject
	}{
		{"pass", MapFilterProject{Outputs: []Expr{col(0, i8), col(1, i8), col(5, txt)}}},
		{"filter50+project/numbers", MapFilterProject{Filters: []Expr{half}, Outputs: []Expr{col(0, i8), op("+", col(0, i8), col(1, i8)), op("*", col(2, types.Float8), Float8Const(0.908))}}},
		{"filter2+project/numbers", MapFilterProject{Filters: []Expr{half, op(">", col(1, i8), Int8Const(100))}, Outputs: []Expr{col(0, i8), col(1, i8)}}},
		{"filter1+project/numbers", MapFilterProject{Filters: []Expr{op("<", col(0, i8), Int8Const(10))}, Outputs: []Expr{col(0, i8), col(1, i8)}}},
		{"filter50/text150", MapFilterProject{Filters: []Expr{half}, Outputs: []Expr{col(0, i8), col(5, txt)}}},
		{"filter90/text150", MapFilterProject{Filters: []Expr{op("<", col(0, i8), Int8Const(900))}, Outputs: []Expr{col(0, i8), col(5, txt)}}},
		{"project/int8+int8", MapFilterProject{Outputs: []Expr{op("+", col(0, i8), col(1, i8))}}},
		{"project/int8*const", MapFilterProject{Outputs: []Expr{op("*", col(0, i8), Int8Const(3))}}},
		{"project/int8%const", MapFilterProject{Outputs: []Expr{op("%", col(0, i8), Int8Const(123))}}},
		{"project/numeric*const", MapFilterProject{Outputs: []Expr{op("*", col(3, num), numericConst("0.908"))}}},
		{"filter/numeric>const", MapFilterProject{Filters: []Expr{op(">", col(3, num), numericConst("50000.5"))}, Outputs: []Expr{col(0, i8)}}},
		{"project/case", MapFilterProject{Outputs: []Expr{kase}}},
		{"filter/in1000", MapFilterProject{Filters: []Expr{in}, Outputs: []Expr{col(0, i8)}}},
		{"filter/text=const", MapFilterProject{Filters: []Expr{op("=", col(7, txt), TextConst("google"))}, Outputs: []Expr{col(0, i8)}}},
		{"project/date_trunc", MapFilterProject{Outputs: []Expr{call("date_trunc", TextConst("minute"), col(4, ts))}}},
		{"project/extract", MapFilterProject{Outputs: []Expr{call("extract", TextConst("hour"), col(4, ts))}}},
		{"project/ts+interval", MapFilterProject{Outputs: []Expr{op("+", col(4, ts), intervalConst("10 seconds"))}}},
	}
	batch := benchBatch(benchRows)
	for _, c := range cases {
		p, err := Compile(c.mfp)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			start := cpuTime()
			for b.Loop() {
				out, _, errs := p.Apply(testContext(), &batch, nil)
				if len(errs) > 0 || out.N == 0 {
					b.Fatal(errs, out.N)
				}
			}
			ns := float64(cpuTime()-start) / float64(b.N) / benchRows
			b.ReportMetric(ns, "ns/row")
			b.ReportMetric(1000/ns, "Mrows/s")
		})
	}
	one := benchBatch(1)
	p, err := Compile(cases[1].mfp)
	if err != nil {
		b.Fatal(err)
	}
	ctx := testContext()
	b.Run("onerow", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Apply(ctx, &one, nil)
		}
	})
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Compile(cases[1].mfp); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// cpuTime is the processor time of this process, in nanoseconds: on a shared
// machine it says more than the clock.
func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// numericConst is a numeric literal.
func numericConst(s string) Expr {
	e, err := Coerce(UnknownConst(s, 0), types.Numeric, CastExplicit, 0)
	if err != nil {
		panic(err)
	}
	return e
}

func intervalConst(s string) Expr {
	e, err := Coerce(UnknownConst(s, 0), types.Interval, CastExplicit, 0)
	if err != nil {
		panic(err)
	}
	return e
}
