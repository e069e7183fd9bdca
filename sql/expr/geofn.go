package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/geo"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// geoForm is how functions of geometry take and give values of a type.
type geoForm[T any] struct {
	typ types.Type
	get func(a Args, k, i int) T
	put func(out *columnar.Builder, v T)
}

func geoBytes[T any](o types.OID, read func(b []byte) T, put func(dst []byte, v T) []byte) geoForm[T] {
	return geoForm[T]{
		types.Of(o),
		func(a Args, k, i int) T { return read(a.Bytes(k, i)) },
		func(out *columnar.Builder, v T) { out.Extend(func(dst []byte) []byte { return put(dst, v) }) },
	}
}

func geoFixed[T columnar.Fixed](t types.Type) geoForm[T] {
	return geoForm[T]{t, func(a Args, k, i int) T { return Arg[T](a, k, i) }, func(out *columnar.Builder, v T) { columnar.Append(out, v) }}
}

var (
	geoInt   = geoFixed[int32](types.Int4)
	geoNum   = geoFixed[float64](types.Float8)
	geoBool  = geoForm[bool]{types.Bool, func(a Args, k, i int) bool { return a.Bool(k, i) }, func(out *columnar.Builder, v bool) { out.Bool(v) }}
	geoPoint = geoBytes(types.OIDPoint, func(b []byte) geo.Point { return types.GeoPoint(b, 0) },
		func(dst []byte, p geo.Point) []byte { return types.AppendPoints(dst, p) })
	geoLseg = geoBytes(types.OIDLseg, func(b []byte) geo.Segment { return geo.Segment{types.GeoPoint(b, 0), types.GeoPoint(b, 2)} },
		func(dst []byte, s geo.Segment) []byte { return types.AppendPoints(dst, s[0], s[1]) })
	geoBox = geoBytes(types.OIDBox, func(b []byte) geo.Box { return geo.Box{High: types.GeoPoint(b, 0), Low: types.GeoPoint(b, 2)} },
		func(dst []byte, b geo.Box) []byte { return types.AppendPoints(dst, b.High, b.Low) })
	geoLine = geoBytes(types.OIDLine, func(b []byte) geo.Line {
		return geo.Line{A: types.GeoFloat(b, 0), B: types.GeoFloat(b, 1), C: types.GeoFloat(b, 2)}
	}, func(dst []byte, l geo.Line) []byte { return types.AppendFloats(dst, l.A, l.B, l.C) })
	geoCircle = geoBytes(types.OIDCircle, func(b []byte) geo.Circle {
		return geo.Circle{Center: types.GeoPoint(b, 0), Radius: types.GeoFloat(b, 2)}
	}, func(dst []byte, c geo.Circle) []byte {
		return types.AppendFloats(types.AppendPoints(dst, c.Center), c.Radius)
	})
	geoPath = geoBytes(types.OIDPath, func(b []byte) geo.Path { return geo.Path{Closed: b[0] != 0, Points: types.GeoPoints(b[1:])} },
		func(dst []byte, p geo.Path) []byte {
			closed := byte(0)
			if p.Closed {
				closed = 1
			}
			return types.AppendPoints(append(dst, closed), p.Points...)
		})
	geoPolygon = geoBytes(types.OIDPolygon, func(b []byte) geo.Polygon { return types.GeoPoints(b) },
		func(dst []byte, p geo.Polygon) []byte { return types.AppendPoints(dst, p...) })
)

// maybe is a result that may be missing.
type maybe[T any] struct {
	v  T
	ok bool
}

// geoMaybe is the form of results that are NULL where they are missing.
func geoMaybe[T any](f geoForm[T]) geoForm[maybe[T]] {
	return geoForm[maybe[T]]{typ: f.typ, put: func(out *columnar.Builder, m maybe[T]) {
		if m.ok {
			f.put(out, m.v)
		} else {
			out.Null()
		}
	}}
}

// near makes a result of the point that is closest to something, at distance d.
func near(p geo.Point, d float64) maybe[geo.Point] { return maybe[geo.Point]{p, d == d} }

func given[T any](v T, ok bool) maybe[T] { return maybe[T]{v, ok} }

// register registers a strict function, or an operator if its name is none.
func register(name string, f Function) {
	c := name[0] | 0x20
	f.Name, f.Operator, f.Strict, f.Consts = name, c < 'a' || c > 'z', true, ScalarConsts
	f.Fuzzy = f.Operator
	Register(f)
}

// geo1 registers a function, or a prefix operator, of one argument.
func geo1[A, R any](name string, ret geoForm[R], x geoForm[A], f func(c *geo.Calc, a A) R) {
	register(name, Function{Args: []types.Type{x.typ}, Ret: ret.typ, Eval: RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		var c geo.Calc
		r := f(&c, x.get(a, 0, i))
		if c.Err == nil {
			ret.put(out, r)
		}
		return c.Err
	})})
}

// geo2 registers a function or operator of two arguments.
func geo2[A, B, R any](name string, ret geoForm[R], x geoForm[A], y geoForm[B], f func(c *geo.Calc, a A, b B) R) {
	register(name, Function{Args: []types.Type{x.typ, y.typ}, Ret: ret.typ, Eval: RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		var c geo.Calc
		r := f(&c, x.get(a, 0, i), y.get(a, 1, i))
		if c.Err == nil {
			ret.put(out, r)
		}
		return c.Err
	})})
}

// bothWays registers a symmetric operator of two types in either order.
func bothWays[A, B, R any](name string, ret geoForm[R], x geoForm[A], y geoForm[B], f func(c *geo.Calc, a A, b B) R) {
	geo2(name, ret, x, y, f)
	geo2(name, ret, y, x, func(c *geo.Calc, b B, a A) R { return f(c, a, b) })
}

// flipped registers an operator and the one with its arguments exchanged.
func flipped[A, B any](name, other string, x geoForm[A], y geoForm[B], f func(c *geo.Calc, a A, b B) bool) {
	geo2(name, geoBool, x, y, f)
	geo2(other, geoBool, y, x, func(c *geo.Calc, b B, a A) bool { return f(c, a, b) })
}

// pure makes a function of Calc of one that cannot fail.
func pure[A, B, R any](f func(a A, b B) R) func(c *geo.Calc, a A, b B) R {
	return func(_ *geo.Calc, a A, b B) R { return f(a, b) }
}

// pure1 is pure of one argument.
func pure1[A, R any](f func(a A) R) func(c *geo.Calc, a A) R {
	return func(_ *geo.Calc, a A) R { return f(a) }
}

// geoOrder registers comparisons of what measure gives.
func geoOrder[T any](x geoForm[T], measure func(c *geo.Calc, v T) float64, but string) {
	for symbol, f := range geo.Orders {
		if symbol != but {
			geo2(symbol, geoBool, x, x, func(c *geo.Calc, a, b T) bool {
				m := measure(c, a)
				return f(m, measure(c, b))
			})
		}
	}
}

func registerPoints() {
	for symbol, f := range map[string]func(p, q geo.Point) bool{
		"<<": geo.Left, ">>": geo.Right, "<<|": geo.Below, "<^": geo.Below, "|>>": geo.Above, ">^": geo.Above,
		"?-": geo.Level, "?|": geo.Plumb, "~=": geo.Same, "<>": func(p, q geo.Point) bool { return !geo.Same(p, q) },
		"isvertical": geo.Plumb, "ishorizontal": geo.Level,
	} {
		geo2(symbol, geoBool, geoPoint, geoPoint, pure(f))
	}
	geo2("+", geoPoint, geoPoint, geoPoint, (*geo.Calc).Add)
	geo2("-", geoPoint, geoPoint, geoPoint, (*geo.Calc).Sub)
	geo2("*", geoPoint, geoPoint, geoPoint, (*geo.Calc).Mul)
	geo2("/", geoPoint, geoPoint, geoPoint, (*geo.Calc).Div)
	geo2("<->", geoNum, geoPoint, geoPoint, (*geo.Calc).Distance)
	geo2("slope", geoNum, geoPoint, geoPoint, (*geo.Calc).Slope)
	geo2("point", geoPoint, geoNum, geoNum, pure(func(x, y float64) geo.Point { return geo.Point{X: x, Y: y} }))
	geo2("line", geoLine, geoPoint, geoPoint, (*geo.Calc).LineOf)
	geo2("lseg", geoLseg, geoPoint, geoPoint, pure(func(p, q geo.Point) geo.Segment { return geo.Segment{p, q} }))
	geo2("box", geoBox, geoPoint, geoPoint, pure(geo.BoxOf))
	geo2("circle", geoCircle, geoPoint, geoNum, pure(func(p geo.Point, r float64) geo.Circle { return geo.Circle{Center: p, Radius: r} }))
}

func registerLines() {
	for _, name := range []string{"?-", "ishorizontal"} {
		geo1(name, geoBool, geoLine, pure1(geo.Line.Horizontal))
		geo1(name, geoBool, geoLseg, pure1(geo.Segment.Horizontal))
	}
	for _, name := range []string{"?|", "isvertical"} {
		geo1(name, geoBool, geoLine, pure1(geo.Line.Vertical))
		geo1(name, geoBool, geoLseg, pure1(geo.Segment.Vertical))
	}
	for _, name := range []string{"?||", "isparallel"} {
		geo2(name, geoBool, geoLine, geoLine, func(c *geo.Calc, l, m geo.Line) bool { return !c.LinesMeet(l, m) })
		geo2(name, geoBool, geoLseg, geoLseg, (*geo.Calc).Parallel)
	}
	for _, name := range []string{"?-|", "isperp"} {
		geo2(name, geoBool, geoLine, geoLine, (*geo.Calc).LinesPerpendicular)
		geo2(name, geoBool, geoLseg, geoLseg, (*geo.Calc).Perpendicular)
	}
	geo2("=", geoBool, geoLine, geoLine, (*geo.Calc).LinesEqual)
	geo2("?#", geoBool, geoLine, geoLine, (*geo.Calc).LinesMeet)
	geo2("#", geoMaybe(geoPoint), geoLine, geoLine, func(c *geo.Calc, l, m geo.Line) maybe[geo.Point] { return given(c.Cross(l, m)) })
	geo2("<->", geoNum, geoLine, geoLine, (*geo.Calc).LineDistance)
	geoOrder(geoLseg, (*geo.Calc).Length, "=")
	geo2("=", geoBool, geoLseg, geoLseg, pure(geo.SegmentsEqual))
	geo2("<>", geoBool, geoLseg, geoLseg, pure(func(s, t geo.Segment) bool { return !geo.SegmentsEqual(s, t) }))
	for _, name := range []string{"@-@", "length"} {
		geo1(name, geoNum, geoLseg, (*geo.Calc).Length)
		geo1(name, geoNum, geoPath, (*geo.Calc).PathLength)
	}
	for _, name := range []string{"@@", "point"} {
		geo1(name, geoPoint, geoLseg, (*geo.Calc).Middle)
	}
	geo2("?#", geoBool, geoLseg, geoLseg, (*geo.Calc).SegmentsMeet)
	geo2("#", geoMaybe(geoPoint), geoLseg, geoLseg, func(c *geo.Calc, s, t geo.Segment) maybe[geo.Point] { return given(c.SegmentsCross(s, t)) })
	geo2("?#", geoBool, geoLseg, geoLine, func(c *geo.Calc, s geo.Segment, l geo.Line) bool {
		_, ok := c.SegmentLine(s, l)
		return ok
	})
	geo2("?#", geoBool, geoLseg, geoBox, func(c *geo.Calc, s geo.Segment, b geo.Box) bool { return c.BoxSegment(b, s) })
	geo2("?#", geoBool, geoLine, geoBox, (*geo.Calc).BoxLine)
}

// registerClosest registers ## and <-> of points, segments, lines and boxes.
func registerClosest() {
	point := geoMaybe(geoPoint)
	geo2("##", point, geoPoint, geoLine, func(c *geo.Calc, p geo.Point, l geo.Line) maybe[geo.Point] { return near(c.LineToPoint(l, p)) })
	geo2("##", point, geoPoint, geoLseg, func(c *geo.Calc, p geo.Point, s geo.Segment) maybe[geo.Point] { return near(c.SegmentToPoint(s, p)) })
	geo2("##", point, geoPoint, geoBox, func(c *geo.Calc, p geo.Point, b geo.Box) maybe[geo.Point] { return near(c.BoxToPoint(b, p)) })
	geo2("##", point, geoLseg, geoBox, func(c *geo.Calc, s geo.Segment, b geo.Box) maybe[geo.Point] { return near(c.BoxToSegment(b, s)) })
	geo2("##", point, geoLine, geoLseg, func(c *geo.Calc, l geo.Line, s geo.Segment) maybe[geo.Point] { return given(c.ClosestToLine(l, s)) })
	geo2("##", point, geoLseg, geoLseg, func(c *geo.Calc, s, t geo.Segment) maybe[geo.Point] { return given(c.ClosestOnSegment(s, t)) })
	second := func(_ geo.Point, d float64) float64 { return d }
	bothWays("<->", geoNum, geoPoint, geoLine, func(c *geo.Calc, p geo.Point, l geo.Line) float64 { return second(c.LineToPoint(l, p)) })
	bothWays("<->", geoNum, geoPoint, geoLseg, func(c *geo.Calc, p geo.Point, s geo.Segment) float64 { return second(c.SegmentToPoint(s, p)) })
	bothWays("<->", geoNum, geoPoint, geoBox, func(c *geo.Calc, p geo.Point, b geo.Box) float64 { return second(c.BoxToPoint(b, p)) })
	bothWays("<->", geoNum, geoLseg, geoLine, func(c *geo.Calc, s geo.Segment, l geo.Line) float64 { return second(c.SegmentToLine(s, l)) })
	bothWays("<->", geoNum, geoLseg, geoBox, func(c *geo.Calc, s geo.Segment, b geo.Box) float64 { return c.BoxSegmentDistance(b, s) })
	geo2("<->", geoNum, geoLseg, geoLseg, func(c *geo.Calc, s, t geo.Segment) float64 { return second(c.SegmentToSegment(s, t)) })
	bothWays("<->", geoNum, geoPoint, geoPath, (*geo.Calc).PointToPath)
	bothWays("<->", geoNum, geoPoint, geoCircle, (*geo.Calc).PointToCircle)
	bothWays("<->", geoNum, geoPoint, geoPolygon, (*geo.Calc).PointToPolygon)
	bothWays("<->", geoNum, geoCircle, geoPolygon, (*geo.Calc).CircleToPolygon)
	geo2("<->", geoNum, geoCircle, geoCircle, (*geo.Calc).CircleDistance)
	geo2("<->", geoNum, geoPolygon, geoPolygon, (*geo.Calc).PolygonDistance)
	geo2("<->", geoMaybe(geoNum), geoPath, geoPath, func(c *geo.Calc, p, q geo.Path) maybe[float64] { return given(c.PathDistance(p, q)) })
	geo2("<->", geoNum, geoBox, geoBox, func(c *geo.Calc, a, b geo.Box) float64 {
		center := c.BoxCenter(a)
		return c.Distance(center, c.BoxCenter(b))
	})
	geo2("<@", geoBool, geoPoint, geoLine, (*geo.Calc).OnLine)
	geo2("<@", geoBool, geoPoint, geoLseg, (*geo.Calc).OnSegment)
	geo2("<@", geoBool, geoLseg, geoLine, func(c *geo.Calc, s geo.Segment, l geo.Line) bool { return c.OnLine(s[0], l) && c.OnLine(s[1], l) })
	geo2("<@", geoBool, geoLseg, geoBox, pure(func(s geo.Segment, b geo.Box) bool { return b.Has(s[0]) && b.Has(s[1]) }))
	flipped("<@", "@>", geoPoint, geoBox, pure(func(p geo.Point, b geo.Box) bool { return b.Has(p) }))
	flipped("<@", "@>", geoPoint, geoPath, (*geo.Calc).OnPath)
	flipped("<@", "@>", geoPoint, geoPolygon, func(c *geo.Calc, p geo.Point, ps geo.Polygon) bool { return c.Inside(p, ps) })
	flipped("@>", "<@", geoCircle, geoPoint, (*geo.Calc).CircleHas)
}

func init() {
	registerPoints()
	registerLines()
	registerClosest()
	registerBoxes()
	registerCircles()
	registerPaths()
	registerPolygons()
	registerGeoCasts()
}

var errOpenPath = pgerror.New(pgerror.InvalidParameterValue, "open path cannot be converted to polygon")
