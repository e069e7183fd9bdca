package expr

import (
	"github.com/streamdb/streamdb/sql/geo"
	"github.com/streamdb/streamdb/sql/types"
)

func registerBoxes() {
	for symbol, f := range geo.BoxPlaces {
		geo2(symbol, geoBool, geoBox, geoBox, pure(f))
	}
	geoOrder(geoBox, (*geo.Calc).BoxArea, "")
	geo2("#", geoMaybe(geoBox), geoBox, geoBox, pure(func(a, b geo.Box) maybe[geo.Box] { return given(geo.Intersect(a, b)) }))
	move := func(symbol string, f func(c *geo.Calc, p, q geo.Point) geo.Point, turns bool) {
		geo2(symbol, geoBox, geoBox, geoPoint, func(c *geo.Calc, b geo.Box, p geo.Point) geo.Box {
			high := f(c, b.High, p)
			low := f(c, b.Low, p)
			if turns {
				return geo.BoxOf(high, low)
			}
			return geo.Box{High: high, Low: low}
		})
	}
	move("+", (*geo.Calc).Add, false)
	move("-", (*geo.Calc).Sub, false)
	move("*", (*geo.Calc).Mul, true)
	move("/", (*geo.Calc).Div, true)
	geo1("area", geoNum, geoBox, (*geo.Calc).BoxArea)
	geo1("width", geoNum, geoBox, (*geo.Calc).Width)
	geo1("height", geoNum, geoBox, (*geo.Calc).Height)
	for _, name := range []string{"@@", "center", "point"} {
		geo1(name, geoPoint, geoBox, (*geo.Calc).BoxCenter)
	}
	for _, name := range []string{"diagonal", "lseg"} {
		geo1(name, geoLseg, geoBox, pure1(func(b geo.Box) geo.Segment { return geo.Segment{b.High, b.Low} }))
	}
	geo2("bound_box", geoBox, geoBox, geoBox, pure(geo.Union))
	geo1("box", geoBox, geoPoint, pure1(func(p geo.Point) geo.Box { return geo.Box{High: p, Low: p} }))
	geo1("polygon", geoPolygon, geoBox, pure1(geo.Box.Corners))
	geo1("circle", geoCircle, geoBox, (*geo.Calc).CircleAround)
}

func registerCircles() {
	for symbol, f := range geo.CirclePlaces {
		geo2(symbol, geoBool, geoCircle, geoCircle, f)
	}
	geoOrder(geoCircle, (*geo.Calc).Area, "")
	geo2("<>", geoBool, geoCircle, geoCircle, func(c *geo.Calc, a, b geo.Circle) bool {
		area := c.Area(a)
		return geo.Differ(area, c.Area(b))
	})
	move := func(symbol string, f func(c *geo.Calc, p, q geo.Point) geo.Point) {
		geo2(symbol, geoCircle, geoCircle, geoPoint, func(c *geo.Calc, a geo.Circle, p geo.Point) geo.Circle {
			return geo.Circle{Center: f(c, a.Center, p), Radius: a.Radius}
		})
	}
	move("+", (*geo.Calc).Add)
	move("-", (*geo.Calc).Sub)
	geo2("*", geoCircle, geoCircle, geoPoint, (*geo.Calc).Scale)
	geo2("/", geoCircle, geoCircle, geoPoint, (*geo.Calc).Unscale)
	geo1("area", geoNum, geoCircle, (*geo.Calc).Area)
	geo1("radius", geoNum, geoCircle, pure1(func(a geo.Circle) float64 { return a.Radius }))
	geo1("diameter", geoNum, geoCircle, (*geo.Calc).Diameter)
	for _, name := range []string{"@@", "center", "point"} {
		geo1(name, geoPoint, geoCircle, pure1(func(a geo.Circle) geo.Point { return a.Center }))
	}
	geo1("box", geoBox, geoCircle, (*geo.Calc).BoxInCircle)
	geo1("polygon", geoPolygon, geoCircle, func(c *geo.Calc, a geo.Circle) geo.Polygon { return c.CirclePolygon(12, a) })
	geo2("polygon", geoPolygon, geoInt, geoCircle, func(c *geo.Calc, n int32, a geo.Circle) geo.Polygon { return c.CirclePolygon(int(n), a) })
}

func registerPaths() {
	size := func(p geo.Path) int32 { return int32(len(p.Points)) }
	for _, name := range []string{"#", "npoints"} {
		geo1(name, geoInt, geoPath, pure1(size))
	}
	for symbol, f := range map[string]func(n, m int32) bool{
		"<": func(n, m int32) bool { return n < m }, "<=": func(n, m int32) bool { return n <= m }, "=": func(n, m int32) bool { return n == m },
		">=": func(n, m int32) bool { return n >= m }, ">": func(n, m int32) bool { return n > m },
	} {
		geo2(symbol, geoBool, geoPath, geoPath, pure(func(p, q geo.Path) bool { return f(size(p), size(q)) }))
	}
	geo2("+", geoMaybe(geoPath), geoPath, geoPath, pure(func(p, q geo.Path) maybe[geo.Path] {
		return given(geo.Path{Points: append(p.Points, q.Points...)}, !p.Closed && !q.Closed)
	}))
	for symbol, f := range map[string]func(c *geo.Calc, p, q geo.Point) geo.Point{
		"+": (*geo.Calc).Add, "-": (*geo.Calc).Sub, "*": (*geo.Calc).Mul, "/": (*geo.Calc).Div,
	} {
		geo2(symbol, geoPath, geoPath, geoPoint, func(c *geo.Calc, p geo.Path, by geo.Point) geo.Path {
			return p.Move(by, func(p, q geo.Point) geo.Point { return f(c, p, q) })
		})
	}
	geo2("?#", geoBool, geoPath, geoPath, (*geo.Calc).PathsMeet)
	geo1("area", geoMaybe(geoNum), geoPath, func(c *geo.Calc, p geo.Path) maybe[float64] {
		if !p.Closed {
			return maybe[float64]{}
		}
		return given(c.PathArea(p), true)
	})
	geo1("isclosed", geoBool, geoPath, pure1(func(p geo.Path) bool { return p.Closed }))
	geo1("isopen", geoBool, geoPath, pure1(func(p geo.Path) bool { return !p.Closed }))
	geo1("pclose", geoPath, geoPath, pure1(func(p geo.Path) geo.Path { return geo.Path{Closed: true, Points: p.Points} }))
	geo1("popen", geoPath, geoPath, pure1(func(p geo.Path) geo.Path { return geo.Path{Points: p.Points} }))
	geo1("polygon", geoPolygon, geoPath, func(c *geo.Calc, p geo.Path) geo.Polygon {
		if !p.Closed {
			c.Err = errOpenPath
		}
		return p.Points
	})
}

func registerPolygons() {
	for symbol, f := range geo.PolygonPlaces {
		geo2(symbol, geoBool, geoPolygon, geoPolygon, pure(func(a, b geo.Polygon) bool { return f(geo.Bounds(a), geo.Bounds(b)) }))
	}
	geo2("~=", geoBool, geoPolygon, geoPolygon, pure(geo.PolygonSame))
	geo2("&&", geoBool, geoPolygon, geoPolygon, (*geo.Calc).PolygonsOverlap)
	flipped("@>", "<@", geoPolygon, geoPolygon, (*geo.Calc).PolygonContains)
	for _, name := range []string{"#", "npoints"} {
		geo1(name, geoInt, geoPolygon, pure1(func(p geo.Polygon) int32 { return int32(len(p)) }))
	}
	for _, name := range []string{"@@", "point"} {
		geo1(name, geoPoint, geoPolygon, func(c *geo.Calc, p geo.Polygon) geo.Point { return c.PolygonCircle(p).Center })
	}
	geo1("box", geoBox, geoPolygon, pure1(func(p geo.Polygon) geo.Box { return geo.Bounds(p) }))
	geo1("circle", geoCircle, geoPolygon, (*geo.Calc).PolygonCircle)
	geo1("path", geoPath, geoPolygon, pure1(func(p geo.Polygon) geo.Path { return geo.Path{Closed: true, Points: p} }))
}

func registerGeoCasts() {
	for _, c := range []struct {
		from, to types.OID
		context  CastContext
	}{
		{types.OIDPoint, types.OIDBox, CastAssignment}, {types.OIDPath, types.OIDPolygon, CastAssignment}, {types.OIDBox, types.OIDPolygon, CastAssignment},
		{types.OIDPolygon, types.OIDPath, CastAssignment}, {types.OIDLseg, types.OIDPoint, CastExplicit}, {types.OIDBox, types.OIDPoint, CastExplicit},
		{types.OIDBox, types.OIDLseg, CastExplicit}, {types.OIDBox, types.OIDCircle, CastExplicit}, {types.OIDPolygon, types.OIDPoint, CastExplicit},
		{types.OIDPolygon, types.OIDBox, CastExplicit}, {types.OIDPolygon, types.OIDCircle, CastExplicit}, {types.OIDCircle, types.OIDPoint, CastExplicit},
		{types.OIDCircle, types.OIDBox, CastExplicit}, {types.OIDCircle, types.OIDPolygon, CastExplicit},
	} {
		fn := exactOverload(registry.funcs[typName(c.to)], []types.Type{types.Of(c.from)})
		RegisterCast(Cast{From: c.from, To: c.to, Context: c.context, Fn: fn})
	}
}
