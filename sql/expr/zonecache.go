package expr

import (
	"math"
	"time"

	"github.com/streamdb/streamdb/sql/types"
)

// zoneCache remembers the offset of a time zone between two of its changes:
// timestamps mostly lie close together, and looking an offset up costs fifty
// times as much as a comparison.
type zoneCache struct {
	loc      *time.Location
	from, to int64 // timestamptz, to exclusive
	off      int   // seconds east of UTC
}

// offset is types.ZoneOffset.
func (z *zoneCache) offset(ts int64, loc *time.Location) int {
	if loc == time.UTC || loc == nil {
		return 0
	}
	if z.loc == loc && ts >= z.from && ts < z.to {
		return z.off
	}
	if !isFinite(ts) {
		return types.ZoneOffset(ts, loc)
	}
	t := types.TimestampTZToTime(ts).In(loc)
	_, off := t.Zone()
	start, end := t.ZoneBounds()
	*z = zoneCache{loc: loc, from: math.MinInt64 + 1, to: math.MaxInt64, off: off}
	if !start.IsZero() {
		z.from = types.TimestampTZFromTime(start)
	}
	if !end.IsZero() {
		z.to = types.TimestampTZFromTime(end)
	}
	return off
}

// toLocal is what a clock in loc shows at a finite timestamptz.
func (x *Eval) toLocal(ts int64, loc *time.Location) int64 {
	return ts + int64(x.zone.offset(ts, loc))*microsPerSecond
}
