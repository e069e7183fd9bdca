package geo

import (
	"math"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// through is the line through a point with a slope.
func (c *Calc) through(p Point, slope float64) Line {
	switch {
	case inf(slope):
		return Line{-1, 0, p.X}
	case slope == 0:
		return Line{0, -1, p.Y}
	}
	l := Line{slope, -1, c.sub(p.Y, c.mul(slope, p.X))}
	if l.C == 0 {
		l.C = 0 // not -0
	}
	return l
}

// ErrOnePoint says that two points are needed for a line.
func ErrOnePoint(code string) *pgerror.Error {
	return pgerror.New(code, "invalid line specification: must be two distinct points")
}

// LineOf is the line through two points.
func (c *Calc) LineOf(p, q Point) Line {
	if Same(p, q) {
		c.fail(ErrOnePoint(pgerror.InvalidParameterValue))
	}
	return c.through(p, c.Slope(p, q))
}

// Valid reports whether l is a line at all.
func (l Line) Valid() bool { return !zero(l.A) || !zero(l.B) }

// Vertical reports whether the line is.
func (l Line) Vertical() bool { return zero(l.B) }

// Horizontal reports whether the line is.
func (l Line) Horizontal() bool { return zero(l.A) }

// LinesEqual reports whether two lines are the same.
func (c *Calc) LinesEqual(l, m Line) bool {
	for _, v := range []float64{l.A, l.B, l.C, m.A, m.B, m.C} {
		if v != v {
			return same(l.A, m.A) && same(l.B, m.B) && same(l.C, m.C)
		}
	}
	ratio := 1.0
	switch {
	case !zero(m.A):
		ratio = c.div(l.A, m.A)
	case !zero(m.B):
		ratio = c.div(l.B, m.B)
	case !zero(m.C):
		ratio = c.div(l.C, m.C)
	}
	return eq(l.A, c.mul(ratio, m.A)) && eq(l.B, c.mul(ratio, m.B)) && eq(l.C, c.mul(ratio, m.C))
}

// LinesPerpendicular reports whether two lines are.
func (c *Calc) LinesPerpendicular(l, m Line) bool {
	switch {
	case zero(l.A):
		return zero(m.B)
	case zero(m.A):
		return zero(l.B)
	case zero(l.B):
		return zero(m.A)
	case zero(m.B):
		return zero(l.A)
	}
	return eq(c.div(c.mul(l.A, m.A), c.mul(l.B, m.B)), -1)
}

// Cross is the point where two lines meet; ok is false if they do not.
func (c *Calc) Cross(l, m Line) (p Point, ok bool) {
	switch {
	case !zero(l.B):
	case !zero(m.B):
		l, m = m, l
	default:
		return p, false
	}
	if eq(m.A, c.mul(l.A, c.div(m.B, l.B))) {
		return p, false
	}
	p.X = c.div(c.sub(c.mul(l.B, m.C), c.mul(m.B, l.C)), c.sub(c.mul(l.A, m.B), c.mul(m.A, l.B)))
	p.Y = c.div(-c.add(c.mul(l.A, p.X), l.C), l.B)
	if p.X == 0 {
		p.X = 0
	}
	if p.Y == 0 {
		p.Y = 0
	}
	return p, true
}

// LinesMeet reports whether two lines cross.
func (c *Calc) LinesMeet(l, m Line) bool {
	_, ok := c.Cross(l, m)
	return ok
}

// LineDistance is how far parallel lines are apart.
func (c *Calc) LineDistance(l, m Line) float64 {
	if c.LinesMeet(l, m) {
		return 0
	}
	ratio := 1.0
	usable := func(a float64) bool { return !zero(a) && a == a }
	switch {
	case usable(l.A) && usable(m.A):
		ratio = c.div(l.A, m.A)
	case usable(l.B) && usable(m.B):
		ratio = c.div(l.B, m.B)
	}
	return c.div(math.Abs(c.sub(l.C, c.mul(ratio, m.C))), c.hypot(l.A, l.B))
}

func (c *Calc) lineSlope(l Line) float64 {
	switch {
	case zero(l.A):
		return 0
	case zero(l.B):
		return math.Inf(1)
	}
	return c.div(l.A, -l.B)
}

func (c *Calc) lineNormal(l Line) float64 {
	switch {
	case zero(l.A):
		return math.Inf(1)
	case zero(l.B):
		return 0
	}
	return c.div(l.B, l.A)
}

// OnLine reports whether a point is on a line.
func (c *Calc) OnLine(p Point, l Line) bool {
	return zero(c.add(c.add(c.mul(l.A, p.X), c.mul(l.B, p.Y)), l.C))
}

// LineToPoint is the point of a line closest to p, and how far that is; NaN if
// there is none.
func (c *Calc) LineToPoint(l Line, p Point) (Point, float64) {
	q, ok := c.Cross(c.through(p, c.lineNormal(l)), l)
	if !ok {
		return p, math.NaN()
	}
	return q, c.Distance(q, p)
}

// Vertical reports whether the segment is.
func (s Segment) Vertical() bool { return eq(s[0].X, s[1].X) }

// Horizontal reports whether the segment is.
func (s Segment) Horizontal() bool { return eq(s[0].Y, s[1].Y) }

// SegmentsEqual reports whether two segments have the same ends in order.
func SegmentsEqual(s, t Segment) bool { return Same(s[0], t[0]) && Same(s[1], t[1]) }

// Length is that of a segment.
func (c *Calc) Length(s Segment) float64 { return c.Distance(s[0], s[1]) }

// Middle is the point in the middle of a segment.
func (c *Calc) Middle(s Segment) Point { return c.middle(s[0], s[1]) }

func (c *Calc) slopeOf(s Segment) float64 { return c.Slope(s[0], s[1]) }

// Parallel reports whether two segments are.
func (c *Calc) Parallel(s, t Segment) bool { return eq(c.slopeOf(s), c.slopeOf(t)) }

// Perpendicular reports whether two segments are.
func (c *Calc) Perpendicular(s, t Segment) bool { return eq(c.slopeOf(s), c.normal(t[0], t[1])) }

// OnSegment reports whether a point is on a segment.
func (c *Calc) OnSegment(p Point, s Segment) bool {
	a := c.Distance(p, s[0])
	return eq(a+c.Distance(p, s[1]), c.Length(s))
}

// SegmentLine is the point where a segment meets a line.
func (c *Calc) SegmentLine(s Segment, l Line) (p Point, ok bool) {
	p, ok = c.Cross(c.through(s[0], c.slopeOf(s)), l)
	switch {
	case !ok || !c.OnSegment(p, s):
		return p, false
	case Same(s[0], p): // rather the end itself than what rounding made of it
		return s[0], true
	case Same(s[1], p):
		return s[1], true
	}
	return p, true
}

// SegmentsCross is the point where two segments meet.
func (c *Calc) SegmentsCross(s, t Segment) (p Point, ok bool) {
	p, ok = c.SegmentLine(s, c.through(t[0], c.slopeOf(t)))
	return p, ok && c.OnSegment(p, t)
}

// SegmentsMeet reports whether two segments cross.
func (c *Calc) SegmentsMeet(s, t Segment) bool {
	_, ok := c.SegmentsCross(s, t)
	return ok
}

// SegmentToPoint is the point of a segment closest to p, and how far that is.
func (c *Calc) SegmentToPoint(s Segment, p Point) (Point, float64) {
	q, _ := c.SegmentToLine(s, c.through(p, c.normal(s[0], s[1])))
	return q, c.Distance(q, p)
}

// SegmentToLine is the point of a segment closest to a line, and how far that is.
func (c *Calc) SegmentToLine(s Segment, l Line) (Point, float64) {
	if p, ok := c.SegmentLine(s, l); ok {
		return p, 0
	}
	_, d := c.LineToPoint(l, s[0])
	_, e := c.LineToPoint(l, s[1])
	if d < e {
		return s[0], d
	}
	return s[1], e
}

// SegmentToSegment is the point of s closest to t, and how far that is.
func (c *Calc) SegmentToSegment(s, t Segment) (Point, float64) {
	if p, ok := c.SegmentsCross(s, t); ok {
		return p, 0
	}
	p, d := c.SegmentToPoint(s, t[0])
	if q, e := c.SegmentToPoint(s, t[1]); less(e, d) {
		p, d = q, e
	}
	for _, end := range s {
		if _, e := c.SegmentToPoint(t, end); less(e, d) {
			p, d = end, e
		}
	}
	return p, d
}

// ClosestOnSegment is the point of t closest to s, unless they are parallel.
func (c *Calc) ClosestOnSegment(s, t Segment) (Point, bool) {
	if c.slopeOf(s) == c.slopeOf(t) {
		return Point{}, false
	}
	p, d := c.SegmentToSegment(t, s)
	return p, d == d
}

// ClosestToLine is the point of s closest to a line, unless they are parallel.
func (c *Calc) ClosestToLine(l Line, s Segment) (Point, bool) {
	if c.slopeOf(s) == c.lineSlope(l) {
		return Point{}, false
	}
	p, d := c.SegmentToLine(s, l)
	return p, d == d
}
