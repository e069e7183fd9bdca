package expr

import (
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// tableText is the rows of a set-returning function as PostgreSQL shows them:
// values, or records of several columns, joined by semicolons.
func tableText(t *testing.T, name string, args ...Expr) string {
	t.Helper()
	fn, es, cols, err := ResolveTableFunction(name, args, CallOptions{})
	if err != nil {
		return "ERROR " + pgerror.As(err).Code + ": " + err.Error()
	}
	ctx := testContext()
	vecs := make([]*columnar.Vec, len(es))
	for i, e := range es {
		c, err := EvalConst(e, ctx)
		if err != nil {
			return "ERROR " + pgerror.As(err).Code + ": " + err.Error()
		}
		if vecs[i] = c.Val; c.Val.Null(0) && fn.Strict {
			return "none"
		}
	}
	out := make([]*columnar.Builder, len(cols))
	for i, c := range cols {
		out[i] = columnar.NewBuilder(c.Kind(), 4)
	}
	n, err := fn.Eval(NewEval(ctx), vecs, 0, out)
	if err != nil {
		return "ERROR " + pgerror.As(err).Code + ": " + err.Error()
	}
	var dst []byte
	vals := make([]*columnar.Vec, len(cols))
	for i := range out {
		if vals[i] = out[i].Build(); vals[i].Len() != n {
			t.Fatalf("%s says %d rows, column %d has %d", name, n, i, vals[i].Len())
		}
	}
	any := false
	for row := range n {
		if len(cols) == 1 && vals[0].Null(row) {
			continue // string_agg passes over it
		}
		if any {
			dst = append(dst, ';')
		}
		any = true
		if len(cols) == 1 {
			dst = types.AppendText(dst, cols[0], vals[0], row, ctx.Options())
			continue
		}
		var r types.RecordBuilder
		for i := range cols {
			r.Field(cols[i], vals[i], row)
		}
		b := columnar.NewBuilder(columnar.KindBytes, 1)
		b.Extend(r.Append)
		dst = types.AppendText(dst, types.Record, b.Build(), 0, ctx.Options())
	}
	if !any {
		return "none"
	}
	return string(dst)
}
