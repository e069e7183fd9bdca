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

func appendJSONPath(dst []byte, s string) ([]byte, error) { return append(dst, s...), nil }
