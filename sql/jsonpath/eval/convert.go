package eval

import (
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/jsonpath"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// The item methods that convert a value, which came with PostgreSQL 17.

// convert applies .bigint(), .boolean(), .decimal(), .integer(), .number() or
// .string().
func (e *evaluator) convert(n *jsonpath.Node, v item) (item, error) {
	switch n.Kind {
	case jsonpath.Boolean:
		return e.boolean(v)
	case jsonpath.StringOf:
		switch {
		case v.date != nil:
			return e.str(v.date.appendText(nil)), nil
		case v.is(types.JSONKindString):
			return v, nil
		case v.is(types.JSONKindNumber):
			return e.str(decimal.AppendText(nil, v.doc.Number())), nil
		case isBool(v):
			return e.str(v.doc.AppendText(nil)), nil
		}
		return v, e.cannot(n.Kind, "boolean, string, numeric, or datetime")
	}
	var text string
	switch {
	case v.is(types.JSONKindNumber):
		text = decimal.String(v.doc.Number())
	case v.is(types.JSONKindString):
		text = string(v.doc.Str())
	default:
		return v, e.cannot(n.Kind, "string or numeric")
	}
	typ := map[jsonpath.Kind]types.Type{jsonpath.Bigint: types.Int8, jsonpath.Integer: types.Int4}[n.Kind]
	if typ.OID == 0 {
		return e.numeric(n, text)
	}
	i, err := wholeNumber(v, text)
	if err != nil || typ.OID == types.OIDInt4 && int64(int32(i)) != i {
		return v, e.invalid(n.Kind, text, typ.String())
	}
	return e.number(decimal.AppendInt64(nil, i)), nil
}

// wholeNumber rounds a number; the text of a string must be that of an integer.
func wholeNumber(v item, text string) (int64, error) {
	if v.is(types.JSONKindNumber) {
		return decimal.ToInt64(v.doc.Number())
	}
	return types.ParseInt8(text)
}

func (e *evaluator) boolean(v item) (item, error) {
	var text string
	var b bool
	var err error
	switch {
	case isBool(v):
		return v, nil
	case v.is(types.JSONKindNumber):
		text = decimal.String(v.doc.Number())
		var i int32
		i, err = types.ParseInt4(text)
		b = i != 0
	case v.is(types.JSONKindString):
		text = string(v.doc.Str())
		b, err = types.ParseBool(text)
	default:
		return v, e.cannot(jsonpath.Boolean, "boolean, string, or numeric")
	}
	if err != nil {
		return v, e.invalid(jsonpath.Boolean, text, "boolean")
	}
	return item{doc: truthOf(b).doc()}, nil
}

// numeric is .number(), or .decimal() with its precision and scale.
func (e *evaluator) numeric(n *jsonpath.Node, text string) (item, error) {
	mod := int32(-1)
	if n.Left != nil {
		mods := make([]int32, 0, 2)
		for i, arg := range []*jsonpath.Node{n.Left, n.Right} {
			if arg == nil {
				break
			}
			m, err := decimal.ToInt32(arg.Num)
			if err != nil {
				return item{}, e.fail(pgerror.NonNumericSQLJSONItem, "%s of jsonpath item method .%s() is out of range for type integer", []string{"precision", "scale"}[i], n.Kind)
			}
			mods = append(mods, m)
		}
		var err error
		if mod, err = types.TypmodIn(types.OIDNumeric, mods); err != nil {
			return item{}, err
		}
	}
	num, err := decimal.ParseTypmod(nil, text, mod)
	if err != nil {
		return item{}, e.invalid(n.Kind, text, "numeric")
	}
	if decimal.IsNaN(num) || decimal.IsInf(num) {
		return item{}, e.fail(pgerror.NonNumericSQLJSONItem, "NaN or Infinity is not allowed for jsonpath item method .%s()", n.Kind)
	}
	return e.number(num), nil
}

func (e *evaluator) cannot(k jsonpath.Kind, kinds string) error {
	return e.fail(pgerror.NonNumericSQLJSONItem, "jsonpath item method .%s() can only be applied to a %s value", k, kinds)
}

func (e *evaluator) invalid(k jsonpath.Kind, text, typ string) error {
	return e.fail(pgerror.NonNumericSQLJSONItem, "argument \"%s\" of jsonpath item method .%s() is invalid for type %s", text, k, typ)
}

// dateTypes are the types that .date() and its kin make.
var dateTypes = map[jsonpath.Kind]types.OID{
	jsonpath.Date: types.OIDDate, jsonpath.Time: types.OIDTime, jsonpath.TimeTZ: types.OIDTimeTZ,
	jsonpath.Timestamp: types.OIDTimestamp, jsonpath.TimestampTZ: types.OIDTimestampTZ,
}

// asType makes a date or time that was read from text one of the type of a method.
func (e *evaluator) asType(n *jsonpath.Node, d *datetime, text string) (*datetime, error) {
	to := dateTypes[n.Kind]
	dated, timed := !d.isTime(), d.typ != types.OIDDate
	if (to == types.OIDTime || to == types.OIDTimeTZ) && (!timed || to == types.OIDTimeTZ && d.typ == types.OIDTimestamp) ||
		to != types.OIDTime && to != types.OIDTimeTZ && !dated {
		return nil, e.notRecognized(n, text)
	}
	zoned := func(t types.OID) bool { return t == types.OIDTimeTZ || t == types.OIDTimestampTZ }
	if e.Zone == nil && zoned(d.typ) != zoned(to) {
		return nil, noZone(d.typ, to)
	}
	out := e.cast(d, to)
	if n.Left == nil {
		return out, nil
	}
	digits, err := decimal.ToInt32(n.Left.Num)
	if err != nil {
		return nil, e.fail(pgerror.InvalidSQLJSONDatetime, "time precision of jsonpath item method .%s() is out of range for type integer", n.Kind)
	}
	digits = min(digits, maxDigits)
	if to == types.OIDTime || to == types.OIDTimeTZ {
		out.val = types.RoundTime(out.val, digits)
	} else {
		out.val = types.RoundTimestamp(out.val, digits)
	}
	return out, nil
}

// maxDigits is the greatest precision of a time.
const maxDigits = 6

// cast converts between the types of dates and times. Without a session's zone a
// value keeps its own.
func (e *evaluator) cast(d *datetime, to types.OID) *datetime {
	if d.typ == to {
		c := *d
		return &c
	}
	out := &datetime{typ: to, east: d.east}
	local := d.timestamp() // in the zone that is wanted
	if d.typ == types.OIDTimestampTZ {
		if e.Zone != nil {
			utc := local
			local = types.UTCToLocal(utc, e.Zone.Location)
			out.east = int((local - utc) / microsPerSecond)
		} else {
			local += int64(d.east) * microsPerSecond
		}
	}
	day, micros := types.SplitTimestamp(local)
	switch to {
	case types.OIDDate:
		out.val = day
	case types.OIDTime:
		if out.val = micros; d.isTime() {
			out.val = d.val
		}
	case types.OIDTimeTZ:
		if out.val = micros; d.isTime() {
			var west int32
			out.val, west = types.UnpackTimeTZ(d.timeTZ(e.Zone))
			out.east = -int(west)
		}
	case types.OIDTimestamp:
		out.val = local
	case types.OIDTimestampTZ:
		out.val = types.LocalToUTC(local, e.Zone.Location)
		out.east = int((local - out.val) / microsPerSecond)
	}
	return out
}

const microsPerSecond = 1000000

// notRecognized is the error of a text that is no date or time of the wanted kind.
func (e *evaluator) notRecognized(n *jsonpath.Node, s string) error {
	return e.fail(pgerror.InvalidSQLJSONDatetime, "%s format is not recognized: \"%s\"", n.Kind, s)
}
