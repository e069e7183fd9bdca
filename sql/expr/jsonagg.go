package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// jsonAggs are the aggregates of JSON, with the choices of SQL/JSON.
type jsonAggs struct{ jsonBuild }

// array is json_agg: elements that are themselves containers of SQL stand on
// lines of their own.
func (o jsonAggs) array(x *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	if lo == hi {
		out.Null()
		return nil
	}
	w, t := x.jsonWriter(), c.Args[0]
	lines := t.OID == types.OIDRecord || t.OID.IsComposite() || isTrueArray(t.OID)
	out.Extend(func(dst []byte) []byte {
		dst = append(dst, '[')
		start := len(dst)
		for i := lo; i < hi; i++ {
			null := args[0].Null(i)
			if null && o.absent {
				continue
			}
			if len(dst) > start {
				dst = append(dst, ", "...)
				if lines && !null {
					dst = append(dst, "\n "...)
				}
			}
			dst = w.append(dst, t, args[0], i, false)
		}
		return append(dst, ']')
	})
	return nil
}

func (o jsonAggs) arrayDoc(x *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	if lo == hi {
		out.Null()
		return nil
	}
	w := docWriter{jsonMaker: new(jsonMaker), jsonWriter: *x.jsonWriter()}
	w.Begin(false)
	for i := lo; i < hi; i++ {
		if o.absent && args[0].Null(i) {
			continue
		}
		if err := w.value(c.Args[0], args[0], i); err != nil {
			return err
		}
	}
	w.End()
	out.Extend(w.Append)
	return nil
}

// eachPair calls add with the keys of the members of an object that count, and
// their rows. Where keys must be unique those of absent members count too.
func (o jsonAggs) eachPair(w *jsonWriter, c *AggregateCall, args []*columnar.Vec, lo, hi int, doc bool, add func(key []byte, i int) error) error {
	seen := o.keys()
	var key []byte
	for i := lo; i < hi; i++ {
		if args[0].Null(i) {
			if o.ctor && !doc {
				return pgerror.New(pgerror.NullValueNotAllowed, "null value not allowed for object key")
			}
			return errParam("field name must not be null")
		}
		skip := o.absent && args[1].Null(i)
		if skip && !o.unique {
			continue
		}
		var err *pgerror.Error
		if key, err = w.keyText(key[:0], c.Args[0], args[0], i); err != nil {
			return err
		}
		if !seen.add(key) {
			if doc {
				return errDuplicateKey(nil)
			}
			return errDuplicateKey(key)
		}
		if skip {
			continue
		}
		if err := add(key, i); err != nil {
			return err
		}
	}
	return nil
}

func (o jsonAggs) object(x *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	if lo == hi {
		out.Null()
		return nil
	}
	w := x.jsonWriter()
	dst := []byte("{ ")
	start := len(dst)
	err := o.eachPair(w, c, args, lo, hi, false, func(key []byte, i int) error {
		if len(dst) > start {
			dst = append(dst, ", "...)
		}
		dst = append(types.AppendJSONString(dst, key), " : "...)
		dst = w.append(dst, c.Args[1], args[1], i, false)
		return nil
	})
	if err != nil {
		return err
	}
	out.Bytes(append(dst, " }"...))
	return nil
}

func (o jsonAggs) objectDoc(x *Eval, c *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	if lo == hi {
		out.Null()
		return nil
	}
	w := docWriter{jsonMaker: new(jsonMaker), jsonWriter: *x.jsonWriter()}
	w.Begin(true)
	err := o.eachPair(&w.jsonWriter, c, args, lo, hi, true, func(key []byte, i int) error {
		w.Key(key)
		if err := w.value(c.Args[1], args[1], i); err != nil {
			return err
		}
		return nil
	})
	if err != nil {
		return err
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
	for _, o := range []jsonAggs{{}, {jsonBuild{absent: true, ctor: true}}, {jsonBuild{unique: true, ctor: true}}, {jsonBuild{absent: true, unique: true, ctor: true}}} {
		suffix := o.suffix()
		if !o.unique {
			agg("json_agg"+suffix, types.JSON, o.array, elem)
			agg("jsonb_agg"+suffix, types.JSONB, o.arrayDoc, elem)
		}
		agg("json_object_agg"+suffix, types.JSON, o.object, any, any)
		agg("jsonb_object_agg"+suffix, types.JSONB, o.objectDoc, any, any)
	}
}

// suffix is what PostgreSQL calls the variants.
func (o jsonBuild) suffix() string {
	s := ""
	if o.unique {
		s = "_unique"
	}
	if o.absent {
		s += "_strict"
	}
	return s
}
