package types

import (
	"cmp"
	"math"
	"math/bits"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// Span is the value of an interval. Its parts are independent: a month has no fixed
// number of days, nor a day of hours.
type Span struct {
	Months, Days int32
	Micros       int64
}

// Pack is the stored form.
func (i Span) Pack() columnar.U128 {
	return columnar.U128{Hi: uint64(uint32(i.Months))<<32 | uint64(uint32(i.Days)), Lo: uint64(i.Micros)}
}

// UnpackInterval reads the stored form.
func UnpackInterval(v columnar.U128) Span {
	return Span{Months: int32(v.Hi >> 32), Days: int32(v.Hi), Micros: int64(v.Lo)}
}

// total is the length in microseconds, 30 days a month and 24 hours a day, as
// a signed 128-bit integer: what comparisons go by.
func (i Span) total() (hi int64, lo uint64) {
	d := int64(i.Months)*30 + int64(i.Days)
	u := uint64(d)
	if d < 0 {
		u = -u
	}
	h, l := bits.Mul64(u, MicrosPerDay)
	if d < 0 {
		var b uint64
		l, b = bits.Sub64(0, l, 0)
		h, _ = bits.Sub64(0, h, b)
	}
	l, c := bits.Add64(l, uint64(i.Micros), 0)
	h, _ = bits.Add64(h, uint64(i.Micros>>63), c)
	return int64(h), l
}

// CompareInterval orders intervals by their length.
func CompareInterval(a, b Span) int {
	ah, al := a.total()
	bh, bl := b.total()
	switch {
	case ah != bh:
		return cmp.Compare(ah, bh)
	default:
		return cmp.Compare(al, bl)
	}
}

// intervalKey is an order-preserving key: equal for equal intervals, ordered
// physically as they are.
func intervalKey(v columnar.U128) columnar.U128 {
	hi, lo := UnpackInterval(v).total()
	return columnar.U128{Hi: uint64(hi) ^ 1<<63, Lo: lo}
}

// NormInterval is the one representative of all intervals as long as v: as
// many whole days in months as there are, then in days, all of one sign.
func NormInterval(v columnar.U128) columnar.U128 {
	hi, lo := UnpackInterval(v).total()
	neg := hi < 0
	if neg {
		var b uint64
		lo, b = bits.Sub64(0, lo, 0)
		h, _ := bits.Sub64(0, uint64(hi), b)
		hi = int64(h)
	}
	days, micros := bits.Div64(uint64(hi), lo, MicrosPerDay)
	months := min(days/30, math.MaxInt32)
	days -= months * 30
	if days > math.MaxInt32 { // only at the end of the range
		micros += (days - math.MaxInt32) * MicrosPerDay
		days = math.MaxInt32
	}
	i := Span{int32(months), int32(days), int64(micros)}
	if neg {
		i = Span{-i.Months, -i.Days, -i.Micros}
	}
	return i.Pack()
}

// AppendInterval appends the text form of an interval, in PostgreSQL's own style.
func AppendInterval(dst []byte, i Span) []byte {
	zero, before := true, false
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if !zero {
			dst = append(dst, ' ')
		}
		if before && n > 0 {
			dst = append(dst, '+')
		}
		dst = append(append(appendInt(dst, n), ' '), unit...)
		if n != 1 {
			dst = append(dst, 's')
		}
		zero, before = false, n < 0
	}
	part(int64(i.Months/12), "year")
	part(int64(i.Months%12), "mon")
	part(int64(i.Days), "day")
	if i.Micros == 0 && !zero {
		return dst
	}
	if !zero {
		dst = append(dst, ' ')
	}
	u := uint64(i.Micros)
	if i.Micros < 0 {
		dst = append(dst, '-')
		u = -u
	} else if before {
		dst = append(dst, '+')
	}
	if h := u / MicrosPerHour; h < 100 {
		dst = append2(dst, int(h))
	} else {
		dst = appendInt(dst, int64(h))
	}
	u %= MicrosPerHour
	dst = append2(append(dst, ':'), int(u/MicrosPerMinute))
	return appendSeconds(append(dst, ':'), int64(u%MicrosPerMinute))
}

func errIntervalRange() error {
	return pgerror.New(pgerror.DatetimeFieldOverflow, "interval out of range")
}

// ApplyTypmod drops the fields that modifier mod leaves out and rounds the
// seconds to its precision. As in PostgreSQL, rounding wraps at the ends of
// the range.
func (i Span) ApplyTypmod(mod int32) Span {
	if mod < 0 {
		return i
	}
	switch mod >> 16 & intervalFullRange {
	case intervalYear:
		i = Span{Months: i.Months / 12 * 12}
	case intervalMonth, intervalYear | intervalMonth:
		i = Span{Months: i.Months}
	case intervalDay:
		i.Micros = 0
	case intervalHour, intervalDay | intervalHour:
		i.Micros = i.Micros / MicrosPerHour * MicrosPerHour
	case intervalMinute, intervalDay | intervalHour | intervalMinute, intervalHour | intervalMinute:
		i.Micros = i.Micros / MicrosPerMinute * MicrosPerMinute
	}
	i.Micros = roundMicros(i.Micros, mod&intervalFullPrec)
	return i
}

// IntervalLength is the length in microseconds, of which the low 64 bits.
func IntervalLength(v columnar.U128) int64 {
	_, lo := UnpackInterval(v).total()
	return int64(lo)
}
