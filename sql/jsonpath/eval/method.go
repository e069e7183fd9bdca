package eval

import (
	"encoding/binary"
	"math"

	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/jsonpath"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// method applies an item method.
func (e *evaluator) method(n *jsonpath.Node, v item, found results) (status, error) {
	switch n.Kind {
	case jsonpath.Type:
		return e.next(n, e.str([]byte(v.typeName())), found)
	case jsonpath.Size:
		return e.size(n, v, found)
	case jsonpath.Double:
		r, err := e.double(v)
		if err != nil {
			return false, err
		}
		return e.next(n, r, found)
	case jsonpath.Bigint, jsonpath.Boolean, jsonpath.Decimal, jsonpath.Integer, jsonpath.NumberOf, jsonpath.StringOf:
		r, err := e.convert(n, v)
		if err != nil {
			return false, err
		}
		return e.next(n, r, found)
	case jsonpath.Datetime, jsonpath.Date, jsonpath.Time, jsonpath.TimeTZ, jsonpath.Timestamp, jsonpath.TimestampTZ:
		d, err := e.datetime(n, v)
		if err != nil || enough(n, found) {
			return err == nil, err
		}
		return e.next(n, item{date: d}, found)
	case jsonpath.KeyValue:
		return e.keyValue(n, v, found)
	}
	if !v.is(types.JSONKindNumber) {
		return false, e.fail(pgerror.NonNumericSQLJSONItem, "jsonpath item method .%s() can only be applied to a numeric value", n.Kind)
	}
	f := decimal.Floor
	switch n.Kind {
	case jsonpath.Abs:
		f = func(dst, a []byte) ([]byte, error) { return decimal.Abs(dst, a), nil }
	case jsonpath.Ceiling:
		f = decimal.Ceil
	}
	r, err := f(nil, v.doc.Number())
	if err != nil {
		return false, err
	}
	return e.next(n, e.number(r), found)
}

// typeName is what type() says.
func (v item) typeName() string {
	if v.date == nil {
		return v.doc.TypeName()
	}
	return v.date.typ.Name()
}

func (e *evaluator) size(n *jsonpath.Node, v item, found results) (status, error) {
	size := 1
	switch {
	case v.is(types.JSONKindArray):
		size = v.doc.Len()
	case e.lax:
	case !e.lenient:
		return false, e.fail(pgerror.SQLJSONArrayNotFound, "jsonpath item method .%s() can only be applied to an array", n.Kind)
	default:
		return false, nil
	}
	return e.next(n, e.number(decimal.AppendInt64(nil, int64(size))), found)
}

// double is a number, or the number in a string, that is in the range of float8.
func (e *evaluator) double(v item) (item, error) {
	switch {
	case v.is(types.JSONKindNumber):
		f, err := decimal.ToFloat64(v.doc.Number())
		if err != nil || math.IsInf(f, 0) {
			return v, e.fail(pgerror.NonNumericSQLJSONItem, "numeric argument of jsonpath item method .%s() is out of range for type double precision", jsonpath.Double)
		}
		return v, nil
	case v.is(types.JSONKindString):
		f, err := types.ParseFloat8(string(v.doc.Str()))
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return v, e.fail(pgerror.NonNumericSQLJSONItem, "string argument of jsonpath item method .%s() is not a valid representation of a double precision number", jsonpath.Double)
		}
		return e.number(decimal.AppendFloat64(nil, f)), nil
	}
	return v, e.fail(pgerror.NonNumericSQLJSONItem, "jsonpath item method .%s() can only be applied to a string or numeric value", jsonpath.Double)
}

// baseFactor is far beyond the offsets in a document.
const baseFactor = 10000000000

// offset is where target, a container inside of doc, would lie in PostgreSQL's
// form of doc; at is where doc lies. If target is not found, it is where doc
// ends.
func offset(doc, target types.JSONDoc, at int64) (place int64, found bool) {
	if !doc.IsContainer() || &doc[0] == &target[0] {
		return at, doc.IsContainer()
	}
	align := func() { at = (at + 3) &^ 3 }
	n := doc.Len()
	object := doc.Kind() == types.JSONKindObject
	at += 4 + 4*int64(n)
	if object {
		at += 4 * int64(n)
		for i := range n {
			at += int64(len(doc.Key(i)))
		}
	}
	for i := range n {
		var v types.JSONDoc
		if object {
			v = doc.Value(i)
		} else {
			v = doc.Elem(i)
		}
		switch v.Kind() {
		case types.JSONKindString:
			at += int64(len(v.Str()))
		case types.JSONKindNumber:
			align()
			at += numericSize(v.Number())
		case types.JSONKindArray, types.JSONKindObject:
			align()
			if at, found = offset(v, target, at); found {
				return at, true
			}
		}
	}
	return at, false
}

// numericSize is the size of a numeric in PostgreSQL.
func numericSize(enc []byte) int64 {
	sent := decimal.AppendBinary(nil, enc) // 2 bytes each: count, weight, sign, scale, the digits
	weight, scale := int16(binary.BigEndian.Uint16(sent[2:])), binary.BigEndian.Uint16(sent[6:])
	if scale <= 63 && weight >= -64 && weight <= 63 {
		return int64(len(sent)) - 2
	}
	return int64(len(sent))
}

// keyValue gives an object for each member of an object. They have an id of
// their object: where it lies in its document.
func (e *evaluator) keyValue(n *jsonpath.Node, v item, found results) (status, error) {
	if !v.is(types.JSONKindObject) {
		return false, e.fail(pgerror.SQLJSONObjectNotFound, "jsonpath item method .%s() can only be applied to an object", n.Kind)
	}
	id, _ := offset(e.base.doc, v.doc, 0)
	id += e.base.id * baseFactor
	var s status
	for i := range v.doc.Len() {
		if enough(n, found) {
			return true, nil
		}
		b := &e.build
		b.Begin(true)
		b.Key([]byte("key"))
		b.String(v.doc.Key(i))
		b.Key([]byte("value"))
		b.Doc(v.doc.Value(i))
		b.Key([]byte("id"))
		b.Number(decimal.AppendInt64(nil, id))
		b.End()
		obj := types.JSONDoc(b.Append(nil))
		saved := e.base
		e.base = base{obj, e.objects}
		e.objects++
		var err error
		s, err = e.next(n, item{doc: obj}, found)
		e.base = saved
		if err != nil || bool(s) && found == nil {
			return s, err
		}
	}
	return s, nil
}
