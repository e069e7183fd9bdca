package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// jsonAgg is json_agg: elements that are themselves containers of SQL stand on
// lines of their own.
func jsonAgg(x *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	if lo == hi {
		out.Null()
		return nil
	}
	w, t := x.jsonWriter(), c.Args[0]
	lines := t.OID == types.OIDRecord || t.OID.IsComposite() || isTrueArray(t.OID)
	out.Extend(func(dst []byte) []byte {
		dst = append(dst, '[')
		for i := lo; i < hi; i++ {
			if i > lo {
				dst = append(dst, ", "...)
				if lines && !args[0].Null(i) {
					dst = append(dst, "\n "...)
				}
			}
			dst = w.append(dst, t, args[0], i, false)
		}
		return append(dst, ']')
	})
	return nil
}

func jsonbAgg(x *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	if lo == hi {
		out.Null()
		return nil
	}
	w := docWriter{jsonMaker: new(jsonMaker), jsonWriter: *x.jsonWriter()}
	w.Begin(false)
	for i := lo; i < hi; i++ {
		if err := w.value(c.Args[0], args[0], i); err != nil {
			return err
		}
	}
	w.End()
	out.Extend(w.Append)
	return nil
}

func jsonObjectAgg(x *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	if lo == hi {
		out.Null()
		return nil
	}
	w := x.jsonWriter()
	dst := []byte("{ ")
	var key []byte
	for i := lo; i < hi; i++ {
		if i > lo {
			dst = append(dst, ", "...)
		}
		if args[0].Null(i) {
			return errParam("field name must not be null")
		}
		var err *pgerror.Error
		if key, err = w.keyText(key[:0], c.Args[0], args[0], i); err != nil {
			return err
		}
		dst = append(types.AppendJSONString(dst, key), " : "...)
		dst = w.append(dst, c.Args[1], args[1], i, false)
	}
	out.Bytes(append(dst, " }"...))
	return nil
}

func jsonbObjectAgg(x *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	if lo == hi {
		out.Null()
		return nil
	}
	w := docWriter{jsonMaker: new(jsonMaker), jsonWriter: *x.jsonWriter()}
	w.Begin(true)
	var key []byte
	for i := lo; i < hi; i++ {
		if args[0].Null(i) {
			return errParam("field name must not be null")
		}
		var err *pgerror.Error
		if key, err = w.keyText(key[:0], c.Args[0], args[0], i); err != nil {
			return err
		}
		w.Key(key)
		if err := w.value(c.Args[1], args[1], i); err != nil {
			return err
		}
	}
	w.End()
	out.Extend(w.Append)
	return nil
}

func init() {
	elem, any := types.Of(types.OIDAnyElement), types.Of(types.OIDAny)
	agg := func(name string, ret types.Type, k CollectKernel, args ...types.Type) {
		RegisterAggregate(Aggregate{Name: name, Op: AggCollect, Args: args, Ret: ret, KeepNulls: true, Collect: k})
	}
	agg("json_agg", types.JSON, jsonAgg, elem)
	agg("jsonb_agg", types.JSONB, jsonbAgg, elem)
	agg("json_object_agg", types.JSON, jsonObjectAgg, any, any)
	agg("jsonb_object_agg", types.JSONB, jsonbObjectAgg, any, any)
}
