package expr

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
	"github.com/streamdb/streamdb/sql/xml"
)

// xmlWriter turns SQL values into XML (SQL/XML:2008, 9.8).
type xmlWriter struct {
	opts *types.Options
	hex  bool // xmlbinary = hex
	json jsonWriter
	buf  []byte
}

func (x *Eval) xmlWriter() *xmlWriter {
	w := &xmlWriter{opts: x.options(), json: jsonWriter{opts: x.options()}}
	if x.Context != nil {
		w.hex = x.setting("xmlbinary") == "hex"
	}
	return w
}

// append appends a value that is not NULL; with escape, as content.
func (w *xmlWriter) append(dst []byte, t types.Type, v *columnar.Vec, row int, escape bool) ([]byte, *pgerror.Error) {
	if t.OID >= types.FirstUser {
		t = t.Storage()
	}
	if isTrueArray(t.OID) {
		return w.elements(dst, v.Bytes(row))
	}
	switch t.OID {
	case types.OIDBool:
		if v.Bools()[row] {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	case types.OIDDate:
		if d := v.Int32s()[row]; !dateFinite(d) {
			return dst, pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range").WithDetail("XML does not support infinite date values.")
		}
	case types.OIDTimestamp, types.OIDTimestampTZ:
		if ts := v.Int64s()[row]; !isFinite(ts) {
			return dst, pgerror.New(pgerror.DatetimeFieldOverflow, "timestamp out of range").WithDetail("XML does not support infinite timestamp values.")
		}
		return w.json.appendISO(dst, t, v, row), nil
	case types.OIDBytea:
		return w.binary(dst, v.Bytes(row)), nil
	case types.OIDXML:
		return types.AppendText(dst, t, v, row, w.opts), nil
	}
	if !escape {
		return types.AppendText(dst, t, v, row, w.opts), nil
	}
	w.buf = types.AppendText(w.buf[:0], t, v, row, w.opts)
	return xml.AppendEscaped(dst, text(w.buf)), nil
}

// elements appends an array: an element a value.
func (w *xmlWriter) elements(dst, b []byte) ([]byte, *pgerror.Error) {
	a := types.ReadArray(b)
	vals := columnar.NewBuilder(a.Kind(), a.N)
	a.AppendElems(vals, 0, a.N)
	v := vals.Build()
	for i := range a.N {
		if v.Null(i) {
			continue
		}
		var err *pgerror.Error
		dst = append(dst, "<element>"...)
		if dst, err = w.append(dst, types.Of(a.Elem), v, i, true); err != nil {
			return dst, err
		}
		dst = append(dst, "</element>"...)
	}
	return dst, nil
}

// binary appends bytes, in base64 in lines as libxml2 makes them, or in
// hexadecimal digits.
func (w *xmlWriter) binary(dst, b []byte) []byte {
	if w.hex {
		return append(dst, strings.ToUpper(hex.EncodeToString(b))...)
	}
	const line = 72 / 4 * 3
	for len(b) > line {
		dst = base64.StdEncoding.AppendEncode(dst, b[:line])
		dst = append(dst, "\r\n"...)
		b = b[line:]
	}
	return base64.StdEncoding.AppendEncode(dst, b)
}
