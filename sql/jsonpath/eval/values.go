package eval

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/jsonpath"
	"github.com/streamdb/streamdb/sql/types"
)

// Value is what a path finds or what a variable stands for: a JSON value, or a
// date or time.
type Value struct{ item }

// DocValue is a JSON value.
func DocValue(doc types.JSONDoc) Value { return Value{item{doc: doc}} }

// DateValue is value row of v, of one of the types of dates and times.
func DateValue(t types.OID, v *columnar.Vec, row int) Value {
	d := &datetime{typ: t}
	switch t {
	case types.OIDDate:
		d.val = int64(v.Int32s()[row])
	case types.OIDTimeTZ:
		micros, west := types.UnpackTimeTZ(columnar.Values[columnar.U128](v)[row])
		d.val, d.east = micros, -int(west)
	default:
		d.val = v.Int64s()[row]
	}
	return Value{item{date: d}}
}

// Doc is the value as JSON; that of a date or time is a string.
func (v Value) Doc() types.JSONDoc {
	if v.date == nil {
		return v.doc
	}
	var b types.JSONBuilder
	b.String(v.date.appendText(nil))
	return b.Append(nil)
}

// Date is the type and value of a date or time; typ is 0 for other values.
func (v Value) Date() (typ types.OID, value *columnar.Vec) {
	if v.date == nil {
		return 0, nil
	}
	switch d := v.date; d.typ {
	case types.OIDDate:
		return d.typ, columnar.FromSlice([]int32{int32(d.val)}, nil)
	case types.OIDTimeTZ:
		return d.typ, columnar.FromSlice([]columnar.U128{d.timeTZ(nil)}, nil)
	default:
		return d.typ, columnar.FromSlice([]int64{d.val}, nil)
	}
}

// Find gives the values that path p finds in doc. quiet says that an error that
// is not to be reported ended the evaluation.
func Find(p *jsonpath.Path, doc types.JSONDoc, o Options) (found []Value, quiet bool, err error) {
	e, err := newEvaluator(p, doc, o)
	if err != nil {
		return nil, false, err
	}
	var items []item
	if _, err = e.item(p.Root, e.root, &items); err != nil {
		if err == errQuiet {
			return nil, true, nil
		}
		return nil, false, err
	}
	found = make([]Value, len(items))
	for i, v := range items {
		found[i] = Value{v}
	}
	return found, false, nil
}
