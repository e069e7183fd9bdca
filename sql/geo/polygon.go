package geo

import (
	"math"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Bounds is the smallest box around points.
func Bounds(ps []Point) Box {
	b := Box{ps[0], ps[0]}
	for _, p := range ps {
		b.Low = Point{bound(p.X, b.Low.X, false), bound(p.Y, b.Low.Y, false)}
		b.High = Point{bound(p.X, b.High.X, true), bound(p.Y, b.High.Y, true)}
	}
	return b
}

func bound(v, old float64, high bool) float64 {
	if high && less(old, v) || !high && less(v, old) {
		return v
	}
	return old
}

const onEdge = math.MaxInt32

// crossing tells how the way from one point to another, both as seen from the
// origin, crosses the positive X axis.
func (c *Calc) crossing(x, y, px, py float64) int {
	if zero(y) {
		switch {
		case zero(x):
			return onEdge
		case gt(x, 0):
			switch {
			case zero(py) && gt(px, 0):
				return 0
			case zero(py):
				return onEdge
			case lt(py, 0):
				return 1
			}
			return -1
		case zero(py) && !lt(px, 0):
			return onEdge
		}
		return 0
	}
	sign := -1
	if gt(y, 0) {
		sign = 1
	}
	switch {
	case zero(py) && lt(px, 0):
		return 0
	case zero(py):
		return sign
	case sign < 0 && lt(py, 0), sign > 0 && gt(py, 0):
		return 0
	case ge(x, 0) && gt(px, 0):
		return 2 * sign
	case lt(x, 0) && le(px, 0):
		return 0
	}
	z := c.sub(c.mul(c.sub(x, px), y), c.mul(c.sub(y, py), x))
	switch {
	case zero(z):
		return onEdge
	case sign < 0 && lt(z, 0), sign > 0 && gt(z, 0):
		return 0
	}
	return 2 * sign
}

// Inside reports whether a point is inside of a polygon or on its edge.
func (c *Calc) Inside(p Point, ps []Point) bool {
	total := 0
	first := c.Sub(ps[0], p)
	prev := first
	for i := range ps {
		q := first // the last edge leads back to it
		if i+1 < len(ps) {
			q = c.Sub(ps[i+1], p)
		}
		cross := c.crossing(q.X, q.Y, prev.X, prev.Y)
		if cross == onEdge {
			return true
		}
		total += cross
		prev = q
	}
	return total != 0
}

// eachEdge calls f for the edges of a chain until it returns false; a closed one
// begins with the edge from the last point to the first.
func eachEdge(ps []Point, closed bool, f func(s Segment) bool) {
	for i, p := range ps {
		k := i - 1
		if i == 0 {
			if !closed {
				continue
			}
			k = len(ps) - 1
		}
		if !f(Segment{ps[k], p}) {
			return
		}
	}
}

// meet reports whether edges of two chains cross.
func (c *Calc) meet(p, q Path) bool {
	found := false
	eachEdge(p.Points, p.Closed, func(s Segment) bool {
		eachEdge(q.Points, q.Closed, func(t Segment) bool {
			found = c.SegmentsMeet(s, t)
			return !found && c.Err == nil
		})
		return !found && c.Err == nil
	})
	return found
}

// PathsMeet reports whether two paths cross.
func (c *Calc) PathsMeet(p, q Path) bool {
	bounds := func(ps []Point) Box {
		b := Box{ps[0], ps[0]}
		for _, p := range ps[1:] {
			b = Union(Box{p, p}, b)
		}
		return b
	}
	return BoxOverlaps(bounds(p.Points), bounds(q.Points)) && c.meet(p, q)
}

// PathDistance is the least distance of edges of two paths, if they have any.
func (c *Calc) PathDistance(p, q Path) (d float64, ok bool) {
	eachEdge(p.Points, p.Closed, func(s Segment) bool {
		eachEdge(q.Points, q.Closed, func(t Segment) bool {
			if _, e := c.SegmentToSegment(s, t); !ok || less(e, d) {
				d, ok = e, true
			}
			return c.Err == nil
		})
		return c.Err == nil
	})
	return d, ok
}

// PointToPath is how far a point is from a path.
func (c *Calc) PointToPath(pt Point, p Path) float64 {
	d, ok := 0.0, false
	eachEdge(p.Points, p.Closed, func(s Segment) bool {
		if _, e := c.SegmentToPoint(s, pt); !ok || less(e, d) {
			d, ok = e, true
		}
		return true
	})
	return d
}

// PathLength is the length of a path.
func (c *Calc) PathLength(p Path) float64 {
	sum := 0.0
	eachEdge(p.Points, p.Closed, func(s Segment) bool {
		sum = c.add(sum, c.Length(s))
		return true
	})
	return sum
}

// PathArea is the area within a closed path.
func (c *Calc) PathArea(p Path) float64 {
	area := 0.0
	for i, a := range p.Points {
		b := p.Points[(i+1)%len(p.Points)]
		area = c.add(area, c.mul(a.X, b.Y))
		area = c.sub(area, c.mul(a.Y, b.X))
	}
	return c.div(math.Abs(area), 2)
}

// OnPath reports whether a point is on an open path, or in a closed one.
func (c *Calc) OnPath(pt Point, p Path) bool {
	if p.Closed {
		return c.Inside(pt, p.Points)
	}
	a := c.Distance(pt, p.Points[0])
	for i, q := range p.Points[1:] {
		b := c.Distance(pt, q)
		if eq(c.add(a, b), c.Distance(p.Points[i], q)) {
			return true
		}
		a = b
	}
	return false
}

// Move applies an operation with a point to each point of a path.
func (p Path) Move(by Point, f func(p, q Point) Point) Path {
	out := Path{p.Closed, make([]Point, len(p.Points))}
	for i, q := range p.Points {
		out.Points[i] = f(q, by)
	}
	return out
}

// PolygonPlaces are the operators that look at the bounds of polygons only.
var PolygonPlaces = map[string]func(a, b Box) bool{
	"<<":  func(a, b Box) bool { return a.High.X < b.Low.X },
	"&<":  func(a, b Box) bool { return a.High.X <= b.High.X },
	">>":  func(a, b Box) bool { return a.Low.X > b.High.X },
	"&>":  func(a, b Box) bool { return a.Low.X >= b.Low.X },
	"<<|": func(a, b Box) bool { return a.High.Y < b.Low.Y },
	"&<|": func(a, b Box) bool { return a.High.Y <= b.High.Y },
	"|>>": func(a, b Box) bool { return a.Low.Y > b.High.Y },
	"|&>": func(a, b Box) bool { return a.Low.Y >= b.Low.Y },
}

// PolygonSame reports whether two polygons have the same points in the same
// order, beginning anywhere, in either direction.
func PolygonSame(a, b Polygon) bool {
	n := len(a)
	if n != len(b) {
		return false
	}
	for i := range b {
		if !Same(b[i], a[0]) {
			continue
		}
		for _, step := range []int{1, n - 1} {
			k := 1
			for j := (i + step) % n; k < n && Same(b[j], a[k]); j = (j + step) % n {
				k++
			}
			if k == n {
				return true
			}
		}
	}
	return false
}

// PolygonsOverlap reports whether two polygons have a point in common.
func (c *Calc) PolygonsOverlap(a, b Polygon) bool {
	if !BoxOverlaps(Bounds(a), Bounds(b)) {
		return false
	}
	return c.meet(Path{true, a}, Path{true, b}) || c.Inside(a[0], b) || c.Inside(b[0], a)
}

// PolygonContains reports whether b is in a.
func (c *Calc) PolygonContains(a, b Polygon) bool {
	if !BoxContains(Bounds(a), Bounds(b)) {
		return false
	}
	in := true
	eachEdge(b, true, func(s Segment) bool {
		in = c.segmentInside(s[0], s[1], a, 0)
		return in && c.Err == nil
	})
	return in
}

// segmentInside reports whether the segment from a to b is in a polygon, whose
// edges before number start are not looked at any more.
func (c *Calc) segmentInside(a, b Point, ps Polygon, start int) bool {
	t := Segment{a, b}
	in, crossed := true, false
	for i := start; i < len(ps) && in && c.Err == nil; i++ {
		s := Segment{ps[(i+len(ps)-1)%len(ps)], ps[i]}
		switch {
		case c.OnSegment(a, s):
			if c.OnSegment(b, s) {
				return true
			}
			in = c.restInside(a, b, s, ps, i+1)
		case c.OnSegment(b, s):
			in = c.restInside(b, a, s, ps, i+1)
		default:
			if p, ok := c.SegmentsCross(t, s); ok {
				crossed = true
				in = c.segmentInside(a, p, ps, i+1) && c.segmentInside(b, p, ps, i+1)
			}
		}
	}
	if in && !crossed {
		return c.Inside(c.middle(a, b), ps)
	}
	return in
}

// restInside looks at what is left of the segment from a to b where it runs
// along the edge s, which a is on and b is not.
func (c *Calc) restInside(a, b Point, s Segment, ps Polygon, start int) bool {
	t := Segment{a, b}
	switch {
	case Same(a, s[0]):
		return !c.OnSegment(s[1], t) || c.segmentInside(b, s[1], ps, start)
	case Same(a, s[1]):
		return !c.OnSegment(s[0], t) || c.segmentInside(b, s[0], ps, start)
	case c.OnSegment(s[0], t):
		return c.segmentInside(b, s[0], ps, start)
	case c.OnSegment(s[1], t):
		return c.segmentInside(b, s[1], ps, start)
	}
	return true
}

// PointToPolygon is how far a point is from a polygon.
func (c *Calc) PointToPolygon(p Point, ps Polygon) float64 {
	if c.Inside(p, ps) {
		return 0
	}
	return c.PointToPath(p, Path{true, ps})
}

// CircleToPolygon is how far a circle is from a polygon.
func (c *Calc) CircleToPolygon(a Circle, ps Polygon) float64 {
	return positive(c.sub(c.PointToPolygon(a.Center, ps), a.Radius))
}

// PolygonDistance is how far two polygons are apart.
func (c *Calc) PolygonDistance(a, b Polygon) float64 {
	if c.PolygonsOverlap(a, b) {
		return 0
	}
	d, _ := c.PathDistance(Path{true, a}, Path{true, b})
	return d
}

// PolygonCircle is the circle whose center is the mean of the points of a
// polygon, and whose radius the mean of their distances from it.
func (c *Calc) PolygonCircle(ps Polygon) Circle {
	var a Circle
	for _, p := range ps {
		a.Center = c.Add(a.Center, p)
	}
	n := float64(len(ps))
	a.Center.X = c.div(a.Center.X, n)
	a.Center.Y = c.div(a.Center.Y, n)
	for _, p := range ps {
		a.Radius = c.add(a.Radius, c.Distance(p, a.Center))
	}
	a.Radius = c.div(a.Radius, n)
	return a
}

// Corners are the corners of a box as a polygon.
func (b Box) Corners() Polygon {
	return Polygon{b.Low, {b.Low.X, b.High.Y}, b.High, {b.High.X, b.Low.Y}}
}

// maxPoints is how many points fit into one value.
const maxPoints = (math.MaxInt32 - 40) / 16

// CirclePolygon is the polygon of n points on a circle.
func (c *Calc) CirclePolygon(n int, a Circle) Polygon {
	switch {
	case zero(a.Radius):
		c.fail(pgerror.New(pgerror.FeatureNotSupported, "cannot convert circle with radius zero to polygon"))
	case n < 2:
		c.fail(pgerror.New(pgerror.InvalidParameterValue, "must request at least 2 points"))
	case n > maxPoints:
		c.fail(pgerror.New(pgerror.ProgramLimitExceeded, "too many points requested"))
	}
	if c.Err != nil {
		return nil
	}
	step := c.div(2*math.Pi, float64(n))
	ps := make(Polygon, n)
	for i := range ps {
		angle := c.mul(step, float64(i))
		ps[i].X = c.sub(a.Center.X, c.mul(a.Radius, math.Cos(angle)))
		ps[i].Y = c.add(a.Center.Y, c.mul(a.Radius, math.Sin(angle)))
	}
	return ps
}
