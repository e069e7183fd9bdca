package geo

import "math"

// BoxOf is the box with two opposite corners.
func BoxOf(p, q Point) Box {
	b := Box{High: q, Low: p}
	if less(q.X, p.X) {
		b.High.X, b.Low.X = p.X, q.X
	}
	if less(q.Y, p.Y) {
		b.High.Y, b.Low.Y = p.Y, q.Y
	}
	return b
}

// Width of a box.
func (c *Calc) Width(b Box) float64 { return c.sub(b.High.X, b.Low.X) }

// Height of a box.
func (c *Calc) Height(b Box) float64 { return c.sub(b.High.Y, b.Low.Y) }

// BoxArea is the area of a box.
func (c *Calc) BoxArea(b Box) float64 {
	w := c.Width(b)
	return c.mul(w, c.Height(b))
}

// BoxCenter is the center of a box.
func (c *Calc) BoxCenter(b Box) Point { return c.middle(b.High, b.Low) }

// Has reports whether a point is in the box, exactly.
func (b Box) Has(p Point) bool {
	return b.High.X >= p.X && b.Low.X <= p.X && b.High.Y >= p.Y && b.Low.Y <= p.Y
}

// BoxSame reports whether two boxes are the same but for epsilon.
func BoxSame(a, b Box) bool { return Same(a.High, b.High) && Same(a.Low, b.Low) }

// BoxOverlaps reports whether boxes have a point in common.
func BoxOverlaps(a, b Box) bool {
	return le(a.Low.X, b.High.X) && le(b.Low.X, a.High.X) && le(a.Low.Y, b.High.Y) && le(b.Low.Y, a.High.Y)
}

// BoxContains reports whether b is in a.
func BoxContains(a, b Box) bool {
	return ge(a.High.X, b.High.X) && le(a.Low.X, b.Low.X) && ge(a.High.Y, b.High.Y) && le(a.Low.Y, b.Low.Y)
}

// BoxPlaces are the operators of where boxes lie to each other.
var BoxPlaces = map[string]func(a, b Box) bool{
	"<<":  func(a, b Box) bool { return lt(a.High.X, b.Low.X) },
	"&<":  func(a, b Box) bool { return le(a.High.X, b.High.X) },
	">>":  func(a, b Box) bool { return gt(a.Low.X, b.High.X) },
	"&>":  func(a, b Box) bool { return ge(a.Low.X, b.Low.X) },
	"<<|": func(a, b Box) bool { return lt(a.High.Y, b.Low.Y) },
	"&<|": func(a, b Box) bool { return le(a.High.Y, b.High.Y) },
	"|>>": func(a, b Box) bool { return gt(a.Low.Y, b.High.Y) },
	"|&>": func(a, b Box) bool { return ge(a.Low.Y, b.Low.Y) },
	"<^":  func(a, b Box) bool { return le(a.High.Y, b.Low.Y) },
	">^":  func(a, b Box) bool { return ge(a.Low.Y, b.High.Y) },
	"~=":  BoxSame, "&&": BoxOverlaps, "?#": BoxOverlaps, "@>": BoxContains,
	"<@": func(a, b Box) bool { return BoxContains(b, a) },
}

// Orders are the comparisons of sizes, lengths and numbers of points.
var Orders = map[string]func(a, b float64) bool{"<": lt, "<=": le, "=": eq, ">=": ge, ">": gt}

// Differ reports whether two sizes differ; neither holds where one is NaN.
func Differ(a, b float64) bool { return a != b && math.Abs(a-b) > epsilon }

// Intersect is what two boxes have in common, if anything.
func Intersect(a, b Box) (Box, bool) {
	return Box{
		High: Point{least(a.High.X, b.High.X), least(a.High.Y, b.High.Y)},
		Low:  Point{greatest(a.Low.X, b.Low.X), greatest(a.Low.Y, b.Low.Y)},
	}, BoxOverlaps(a, b)
}

// Union is the smallest box with two others in it.
func Union(a, b Box) Box {
	return Box{
		High: Point{greatest(a.High.X, b.High.X), greatest(a.High.Y, b.High.Y)},
		Low:  Point{least(a.Low.X, b.Low.X), least(a.Low.Y, b.Low.Y)},
	}
}

// sides are the sides of a box, in the order in which they are looked at.
func (b Box) sides() [4]Segment {
	p, q := Point{b.Low.X, b.High.Y}, Point{b.High.X, b.Low.Y}
	return [4]Segment{{b.Low, p}, {b.High, p}, {b.Low, q}, {b.High, q}}
}

// BoxToPoint is the point of a box closest to p, and how far that is.
func (c *Calc) BoxToPoint(b Box, p Point) (Point, float64) {
	if b.Has(p) {
		return p, 0
	}
	return closest(b, func(side Segment) (Point, float64) { return c.SegmentToPoint(side, p) })
}

// closest takes the best of what the sides of a box give.
func closest(b Box, f func(side Segment) (Point, float64)) (p Point, d float64) {
	for i, side := range b.sides() {
		if q, e := f(side); i == 0 || less(e, d) {
			p, d = q, e
		}
	}
	return p, d
}

// BoxSegment reports whether a segment and a box meet.
func (c *Calc) BoxSegment(b Box, s Segment) bool {
	bounds := Box{
		High: Point{greatest(s[0].X, s[1].X), greatest(s[0].Y, s[1].Y)},
		Low:  Point{least(s[0].X, s[1].X), least(s[0].Y, s[1].Y)},
	}
	if !BoxOverlaps(bounds, b) {
		return false
	}
	if b.Has(s[0]) || b.Has(s[1]) {
		return true
	}
	for _, side := range b.sides() {
		if c.SegmentsMeet(side, s) {
			return true
		}
	}
	return false
}

// BoxToSegment is the point of a box closest to a segment.
func (c *Calc) BoxToSegment(b Box, s Segment) (Point, float64) {
	if c.BoxSegment(b, s) {
		p, _ := c.SegmentToPoint(s, c.BoxCenter(b))
		return p, 0
	}
	return c.boxToSegment(b, s)
}

// BoxSegmentDistance is how far a box and a segment are apart.
func (c *Calc) BoxSegmentDistance(b Box, s Segment) float64 {
	if c.BoxSegment(b, s) {
		return 0
	}
	_, d := c.boxToSegment(b, s)
	return d
}

func (c *Calc) boxToSegment(b Box, s Segment) (Point, float64) {
	return closest(b, func(side Segment) (Point, float64) { return c.SegmentToSegment(side, s) })
}

// BoxLine reports whether a line meets a box.
func (c *Calc) BoxLine(l Line, b Box) bool {
	corners := [5]Point{b.Low, {b.Low.X, b.High.Y}, b.High, {b.High.X, b.Low.Y}, b.Low}
	for i := range 4 {
		s := Segment{corners[i], corners[i+1]}
		if i == 1 || i == 3 {
			s[0], s[1] = s[1], s[0]
		}
		if _, ok := c.SegmentLine(s, l); ok {
			return true
		}
	}
	return false
}

// Area is that of a circle.
func (c *Calc) Area(a Circle) float64 { return c.mul(c.mul(a.Radius, a.Radius), math.Pi) }

// CircleSame reports whether two circles are the same.
func CircleSame(a, b Circle) bool {
	return (a.Radius != a.Radius && b.Radius != b.Radius || eq(a.Radius, b.Radius)) && Same(a.Center, b.Center)
}

// CirclePlaces are the operators of where circles lie to each other.
var CirclePlaces = map[string]func(c *Calc, a, b Circle) bool{
	"&&": func(c *Calc, a, b Circle) bool {
		d := c.Distance(a.Center, b.Center)
		return le(d, c.add(a.Radius, b.Radius))
	},
	"@>": func(c *Calc, a, b Circle) bool {
		d := c.Distance(a.Center, b.Center)
		return le(d, c.sub(a.Radius, b.Radius))
	},
	"<@": func(c *Calc, a, b Circle) bool {
		d := c.Distance(a.Center, b.Center)
		return le(d, c.sub(b.Radius, a.Radius))
	},
	"<<":  func(c *Calc, a, b Circle) bool { return lt(c.add(a.Center.X, a.Radius), c.sub(b.Center.X, b.Radius)) },
	"&<":  func(c *Calc, a, b Circle) bool { return le(c.add(a.Center.X, a.Radius), c.add(b.Center.X, b.Radius)) },
	">>":  func(c *Calc, a, b Circle) bool { return gt(c.sub(a.Center.X, a.Radius), c.add(b.Center.X, b.Radius)) },
	"&>":  func(c *Calc, a, b Circle) bool { return ge(c.sub(a.Center.X, a.Radius), c.sub(b.Center.X, b.Radius)) },
	"<<|": func(c *Calc, a, b Circle) bool { return lt(c.add(a.Center.Y, a.Radius), c.sub(b.Center.Y, b.Radius)) },
	"&<|": func(c *Calc, a, b Circle) bool { return le(c.add(a.Center.Y, a.Radius), c.add(b.Center.Y, b.Radius)) },
	"|>>": func(c *Calc, a, b Circle) bool { return gt(c.sub(a.Center.Y, a.Radius), c.add(b.Center.Y, b.Radius)) },
	"|&>": func(c *Calc, a, b Circle) bool { return ge(c.sub(a.Center.Y, a.Radius), c.sub(b.Center.Y, b.Radius)) },
	"~=":  func(_ *Calc, a, b Circle) bool { return CircleSame(a, b) },
}

// CircleHas reports whether a point is in a circle.
func (c *Calc) CircleHas(a Circle, p Point) bool { return c.Distance(a.Center, p) <= a.Radius }

// positive is d, or 0 if that is less.
func positive(d float64) float64 {
	if d < 0 {
		return 0
	}
	return d
}

// PointToCircle is how far a point is from a circle.
func (c *Calc) PointToCircle(p Point, a Circle) float64 {
	return positive(c.sub(c.Distance(p, a.Center), a.Radius))
}

// CircleDistance is how far two circles are apart.
func (c *Calc) CircleDistance(a, b Circle) float64 {
	d := c.Distance(a.Center, b.Center)
	return positive(c.sub(d, c.add(a.Radius, b.Radius)))
}

// Scale multiplies a circle by a point, as Mul does.
func (c *Calc) Scale(a Circle, p Point) Circle {
	center := c.Mul(a.Center, p)
	return Circle{center, c.mul(a.Radius, c.hypot(p.X, p.Y))}
}

// Unscale undoes Scale.
func (c *Calc) Unscale(a Circle, p Point) Circle {
	center := c.Div(a.Center, p)
	return Circle{center, c.div(a.Radius, c.hypot(p.X, p.Y))}
}

// Diameter is that of a circle.
func (c *Calc) Diameter(a Circle) float64 { return c.mul(a.Radius, 2) }

// BoxInCircle is the square in a circle.
func (c *Calc) BoxInCircle(a Circle) Box {
	d := c.div(a.Radius, math.Sqrt2)
	return Box{
		High: Point{c.add(a.Center.X, d), c.add(a.Center.Y, d)},
		Low:  Point{c.sub(a.Center.X, d), c.sub(a.Center.Y, d)},
	}
}

// CircleAround is the circle around a box.
func (c *Calc) CircleAround(b Box) Circle {
	center := c.BoxCenter(b)
	return Circle{center, c.Distance(center, b.High)}
}
