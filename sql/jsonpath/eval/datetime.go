package eval

import (
	"cmp"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/jsonpath"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/tochar"
	"github.com/streamdb/streamdb/sql/types"
)

// datetime is a value of one of the types of dates and times.
type datetime struct {
	typ  types.OID
	val  int64 // the day, the microsecond of the day, or the timestamp
	east int   // offset of the zone that was given, in seconds
}

func compileDates(templates ...string) []*tochar.Dates {
	out := make([]*tochar.Dates, len(templates))
	for i, s := range templates {
		d, err := tochar.CompileDates(s, true)
		if err != nil {
			panic(err) // the templates are fixed
		}
		out[i] = d
	}
	return out
}

// isoTemplates are what datetime() without an argument reads, tried in order.
var isoTemplates = compileDates(
	"yyyy-mm-dd",
	"HH24:MI:SS.USTZH:TZM", "HH24:MI:SS.USTZH", "HH24:MI:SS.US",
	"HH24:MI:SSTZH:TZM", "HH24:MI:SSTZH", "HH24:MI:SS",
	"yyyy-mm-dd HH24:MI:SS.USTZH:TZM", "yyyy-mm-dd HH24:MI:SS.USTZH", "yyyy-mm-dd HH24:MI:SS.US",
	"yyyy-mm-dd HH24:MI:SSTZH:TZM", "yyyy-mm-dd HH24:MI:SSTZH", "yyyy-mm-dd HH24:MI:SS",
	`yyyy-mm-dd"T"HH24:MI:SS.USTZH:TZM`, `yyyy-mm-dd"T"HH24:MI:SS.USTZH`, `yyyy-mm-dd"T"HH24:MI:SS.US`,
	`yyyy-mm-dd"T"HH24:MI:SSTZH:TZM`, `yyyy-mm-dd"T"HH24:MI:SSTZH`, `yyyy-mm-dd"T"HH24:MI:SS`,
)

// datetime reads the date or time in a string.
func (e *evaluator) datetime(n *jsonpath.Node, v item) (*datetime, error) {
	if !v.is(types.JSONKindString) {
		return nil, e.fail(pgerror.InvalidSQLJSONDatetime, "jsonpath item method .%s() can only be applied to a string", n.Kind)
	}
	s := string(v.doc.Str())
	if n.Left == nil || n.Kind != jsonpath.Datetime {
		for _, t := range isoTemplates {
			if d, err := readDatetime(t, s); err == nil {
				if n.Kind != jsonpath.Datetime {
					return e.asType(n, d, s)
				}
				return d, nil
			}
		}
		err := e.notRecognized(n, s)
		if err != errQuiet && n.Kind == jsonpath.Datetime {
			err = pgerror.As(err).WithHint("Use a datetime template argument to specify the input data format.")
		}
		return nil, err
	}
	t, err := tochar.CompileDates(n.Left.Text, true)
	if err != nil {
		return nil, err
	}
	d, err := readDatetime(t, s)
	if err != nil && !e.throwing {
		err = errQuiet
	}
	return d, err
}

func badTemplate(msg string) error { return pgerror.New(pgerror.InvalidDatetimeFormat, "%s", msg) }

// readDatetime reads a value of the type that the fields of a template make.
func readDatetime(t *tochar.Dates, s string) (*datetime, error) {
	r, err := t.Read(s)
	if err != nil {
		return nil, err
	}
	d := &datetime{east: r.East}
	zoned := t.HasZone()
	switch {
	case t.HasDate() && t.HasTime():
		d.typ = types.OIDTimestamp
		if !zoned {
			d.val, err = r.Timestamp("timestamp")
			break
		}
		d.typ = types.OIDTimestampTZ
		if !r.HasZone {
			return nil, badTemplate("missing time zone in input string for type timestamptz")
		}
		d.val, err = r.TimestampTZ("timestamptz", nil)
	case t.HasDate():
		if zoned {
			return nil, badTemplate("datetime format is zoned but not timed")
		}
		var day int32
		day, err = r.Date(s)
		d.typ, d.val = types.OIDDate, int64(day)
	case t.HasTime():
		d.typ, d.val = types.OIDTime, r.Time()
		if zoned {
			d.typ = types.OIDTimeTZ
			if !r.HasZone {
				return nil, badTemplate("missing time zone in input string for type timetz")
			}
		}
	default:
		return nil, badTemplate("datetime format is not dated and not timed")
	}
	return d, err
}

// appendText appends the value in the form of ISO 8601.
func (d *datetime) appendText(dst []byte) []byte {
	start := len(dst)
	switch d.typ {
	case types.OIDDate:
		return types.AppendDate(dst, int32(d.val))
	case types.OIDTime:
		return types.AppendTime(dst, d.val)
	case types.OIDTimeTZ:
		return types.ISOTimestamp(types.AppendTimeTZ(dst, d.timeTZ(nil)), start, true)
	case types.OIDTimestampTZ:
		return types.ISOTimestamp(types.AppendTimestampTZ(dst, d.val, time.FixedZone("", d.east)), start, true)
	}
	return types.ISOTimestamp(types.AppendTimestamp(dst, d.val), start, false)
}

// timeTZ is the timetz of a time of day; one without a zone is of the session's
// zone today.
func (d *datetime) timeTZ(o *types.Options) columnar.U128 {
	east := d.east
	if d.typ == types.OIDTime {
		now, _ := types.SplitTimestamp(types.UTCToLocal(types.TimestampTZFromTime(o.Now), o.Location))
		east = types.LocalOffset(now*types.MicrosPerDay+d.val, o.Location)
	}
	return types.PackTimeTZ(d.val, int32(-east))
}

// timestamp is the timestamp of a date or timestamp.
func (d *datetime) timestamp() int64 {
	if d.typ == types.OIDDate {
		return d.val * types.MicrosPerDay
	}
	return d.val
}

func (d *datetime) isTime() bool { return d.typ == types.OIDTime || d.typ == types.OIDTimeTZ }

// noZone is the error of a conversion that needs the session's zone.
func noZone(from, to types.OID) error {
	return pgerror.New(pgerror.FeatureNotSupported, "cannot convert value from %s to %s without time zone usage", types.Lookup(from).Name, types.Lookup(to).Name).
		WithHint("Use *_tz() function for time zone support.")
}

// compare orders two values; ok is false if there is no order between their
// types. o is needed where one type has a zone and the other none.
func (d *datetime) compare(b *datetime, o *types.Options) (c int, ok bool, err error) {
	if d.isTime() != b.isTime() {
		return 0, false, nil
	}
	zoned := func(t types.OID) bool { return t == types.OIDTimeTZ || t == types.OIDTimestampTZ }
	if zoned(d.typ) != zoned(b.typ) && o == nil {
		from, to := d.typ, b.typ
		if zoned(from) {
			from, to = to, from
		}
		return 0, false, noZone(from, to)
	}
	switch {
	case d.typ == b.typ && d.typ != types.OIDTimeTZ:
		return cmp.Compare(d.val, b.val), true, nil
	case d.isTime():
		return types.CompareTimeTZ(d.timeTZ(o), b.timeTZ(o)), true, nil
	case !zoned(d.typ) && !zoned(b.typ):
		return cmp.Compare(d.timestamp(), b.timestamp()), true, nil
	}
	utc := func(x *datetime) int64 {
		if zoned(x.typ) {
			return x.val
		}
		return types.LocalToUTC(x.timestamp(), o.Location)
	}
	return cmp.Compare(utc(d), utc(b)), true, nil
}
