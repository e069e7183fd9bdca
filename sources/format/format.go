// Package format decodes records of outside systems straight into columns: one
// columnar.Builder a column, no allocation a row. A decoder is compiled once
// for the columns that are wanted; a record that does not decode leaves the
// builders as they were and gives its reason.
package format

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Column is a column that a decoder fills from a field of the record.
type Column struct {
	Field   string // name in the record; "" where the whole record is one value
	Type    types.Type
	NotNull bool
}

// Decoder appends records to builders, one for each of its columns in order.
// It is not safe for concurrent use; clones are independent.
type Decoder interface {
	// Decode appends one row. After an error the builders are as before. A
	// *RecordError says that the record is bad; any other error that the
	// decoder could not do its work (ctx ended while it waited for a schema).
	Decode(ctx context.Context, dst []*columnar.Builder, record []byte) error
	// Clone makes a decoder for another goroutine.
	Clone() Decoder
}

// RecordError is why a record does not decode.
type RecordError struct{ Reason string }

func (e *RecordError) Error() string { return e.Reason }

// badRecord makes a RecordError.
func badRecord(format string, args ...any) error {
	return &RecordError{Reason: fmt.Sprintf(format, args...)}
}

// badColumn is the error of one column's value.
func badColumn(name string, err error) error {
	if name == "" {
		return badRecord("%s", reason(err))
	}
	return badRecord("column \"%s\": %s", name, reason(err))
}

// reason is the text of an error with its detail.
func reason(err error) string {
	var e *pgerror.Error
	if errors.As(err, &e) {
		if e.Detail != "" {
			return e.Message + ": " + e.Detail
		}
		return e.Message
	}
	return err.Error()
}

// Builders makes the builders for columns with room for rows.
func Builders(cols []sources.Column, rows int) []*columnar.Builder {
	bs := make([]*columnar.Builder, len(cols))
	for i, c := range cols {
		bs[i] = columnar.NewBuilder(c.Type.Kind(), rows)
	}
	return bs
}

// truncate takes back a row that could not be finished.
func truncate(dst []*columnar.Builder, n int) {
	for _, b := range dst {
		b.Truncate(n)
	}
}

// validText reports whether b is text: UTF-8 without a zero byte.
func validText(b []byte) bool {
	const high, ones = 0x8080808080808080, 0x0101010101010101
	i := 0
	for ; i+32 <= len(b); i += 32 {
		p := (*[4]uint64)(unsafe.Pointer(&b[i]))
		if (p[0]|(p[0]-ones)|p[1]|(p[1]-ones)|p[2]|(p[2]-ones)|p[3]|(p[3]-ones))&high != 0 {
			return validTextSlow(b[i:])
		}
	}
	for ; i+8 <= len(b); i += 8 {
		x := *(*uint64)(unsafe.Pointer(&b[i]))
		if (x|(x-ones))&high != 0 { // not ASCII, or perhaps a zero byte
			return validTextSlow(b[i:])
		}
	}
	for ; i < len(b); i++ {
		if b[i]-1 >= 0x7f {
			return validTextSlow(b[i:])
		}
	}
	return true
}

func validTextSlow(b []byte) bool {
	for _, c := range b {
		if c == 0 {
			return false
		}
	}
	return utf8.Valid(b)
}

func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// plainText reports whether values of t are any text, unchanged.
func plainText(t types.Type) bool {
	return t.OID == types.OIDText || t.OID == types.OIDVarchar && t.Mod < 0
}

// appendTextValue appends the value of type t that text denotes.
func appendTextValue(b *columnar.Builder, t types.Type, text []byte) error {
	if plainText(t) {
		if !validText(text) {
			return types.CheckUTF8(text)
		}
		b.Bytes(text)
		return nil
	}
	switch t.OID {
	case types.OIDTimestamp, types.OIDTimestampTZ:
		if ts, ok := fastTimestamp(text, t.OID == types.OIDTimestampTZ); ok && t.Mod < 0 {
			b.Int64(ts)
			return nil
		}
	}
	if err := types.CheckUTF8(text); err != nil {
		return err
	}
	return types.ParseTextBytes(b, t, text, nil)
}

// fastTimestamp reads the commonest form, YYYY-MM-DD[ T]HH:MM:SS[.ffffff][Z],
// as microseconds since 2000; ok is false for every other text, valid or not.
// With zone, Z is demanded or implied (UTC); without, it is not accepted.
func fastTimestamp(s []byte, zone bool) (ts int64, ok bool) {
	if len(s) < 19 || s[4] != '-' || s[7] != '-' || (s[10] != ' ' && s[10] != 'T') || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	t := (*[19]byte)(s)
	over := 0 // negative: something is not a digit
	two := func(i int) int {
		a, b := int(t[i])-'0', int(t[i+1])-'0'
		over |= a | b | (9 - a) | (9 - b)
		return a*10 + b
	}
	year, month, day := two(0)*100+two(2), two(5), two(8)
	h, m, sec := two(11), two(14), two(17)
	if over < 0 || year == 0 || month > 12 || month == 0 || day == 0 || h > 23 || m > 59 || sec > 59 ||
		day > 28 && day > types.DaysIn(year, month) {
		return 0, false
	}
	micros := 0
	i := 19
	if i < len(s) && s[i] == '.' {
		i++
		from, scale := i, 1_000_000
		for ; i < len(s) && i < from+6 && s[i]-'0' <= 9; i++ {
			micros = micros*10 + int(s[i]-'0')
			scale /= 10
		}
		if i == from {
			return 0, false
		}
		micros *= scale
	}
	if zone && i < len(s) && s[i] == 'Z' {
		i++
	}
	if i != len(s) {
		return 0, false
	}
	return types.CivilDay(year, month, day)*types.MicrosPerDay + int64((h*60+m)*60+sec)*1_000_000 + int64(micros), true
}

// itoa is the text of a schema id.
func itoa(n int32) string { return strconv.Itoa(int(n)) }
