// Package geo is PostgreSQL's geometry: points, lines, line segments, boxes,
// paths, polygons and circles of the plane, what they measure, and how they
// meet. Comparisons allow for a difference of 1e-6, as PostgreSQL's do.
package geo

import (
	"math"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Point is a place in the plane.
type Point struct{ X, Y float64 }

// Segment is the line between two points.
type Segment [2]Point

// Line is Ax + By + C = 0.
type Line struct{ A, B, C float64 }

// Box is a rectangle with sides parallel to the axes.
type Box struct{ High, Low Point }

// Circle is a disc.
type Circle struct {
	Center Point
	Radius float64
}

// Path is a chain of segments.
type Path struct {
	Closed bool
	Points []Point
}

// Polygon is a closed chain of segments and what is inside.
type Polygon []Point

// Calc computes. It keeps the first error; results after it mean nothing.
type Calc struct{ Err *pgerror.Error }

const epsilon = 1e-6

func zero(a float64) bool  { return math.Abs(a) <= epsilon }
func eq(a, b float64) bool { return a == b || math.Abs(a-b) <= epsilon }
func lt(a, b float64) bool { return a+epsilon < b }
func le(a, b float64) bool { return a <= b+epsilon }
func gt(a, b float64) bool { return a > b+epsilon }
func ge(a, b float64) bool { return a+epsilon >= b }

// less orders numbers exactly, NaN after all.
func less(a, b float64) bool { return a < b || b != b && a == a }

func same(a, b float64) bool { return a == b || a != a && b != b }

func least(a, b float64) float64 {
	if less(a, b) {
		return a
	}
	return b
}

func greatest(a, b float64) float64 {
	if less(b, a) {
		return a
	}
	return b
}

var (
	errOver  = pgerror.New(pgerror.NumericValueOutOfRange, "value out of range: overflow")
	errUnder = pgerror.New(pgerror.NumericValueOutOfRange, "value out of range: underflow")
	errZero  = pgerror.New(pgerror.DivisionByZero, "division by zero")
)

func inf(a float64) bool { return math.IsInf(a, 0) }

func (c *Calc) fail(err *pgerror.Error) {
	if c.Err == nil {
		c.Err = err
	}
}

func (c *Calc) add(a, b float64) float64 {
	r := a + b
	if inf(r) && !inf(a) && !inf(b) {
		c.fail(errOver)
	}
	return r
}

func (c *Calc) sub(a, b float64) float64 { return c.add(a, -b) }

func (c *Calc) mul(a, b float64) float64 {
	r := a * b
	switch {
	case inf(r) && !inf(a) && !inf(b):
		c.fail(errOver)
	case r == 0 && a != 0 && b != 0:
		c.fail(errUnder)
	}
	return r
}

func (c *Calc) div(a, b float64) float64 {
	if b == 0 && a == a {
		c.fail(errZero)
		return 0
	}
	r := a / b
	switch {
	case inf(r) && !inf(a):
		c.fail(errOver)
	case r == 0 && a != 0 && !inf(b):
		c.fail(errUnder)
	}
	return r
}

func (c *Calc) hypot(x, y float64) float64 {
	switch {
	case inf(x) || inf(y):
		return math.Inf(1)
	case x != x || y != y:
		return math.NaN()
	}
	if x, y = math.Abs(x), math.Abs(y); x < y {
		x, y = y, x
	}
	if y == 0 {
		return x
	}
	q := y / x
	r := x * math.Sqrt(1+float64(q*q))
	switch {
	case inf(r):
		c.fail(errOver)
	case r == 0:
		c.fail(errUnder)
	}
	return r
}

// Distance is how far two points are apart.
func (c *Calc) Distance(p, q Point) float64 { return c.hypot(c.sub(p.X, q.X), c.sub(p.Y, q.Y)) }

// Same reports whether two points are the same but for epsilon.
func Same(p, q Point) bool {
	if p.X != p.X || p.Y != p.Y || q.X != q.X || q.Y != q.Y {
		return same(p.X, q.X) && same(p.Y, q.Y)
	}
	return eq(p.X, q.X) && eq(p.Y, q.Y)
}

// Left reports whether p is to the left of q.
func Left(p, q Point) bool { return lt(p.X, q.X) }

// Right reports whether p is to the right of q.
func Right(p, q Point) bool { return gt(p.X, q.X) }

// Above reports whether p is above q.
func Above(p, q Point) bool { return gt(p.Y, q.Y) }

// Below reports whether p is below q.
func Below(p, q Point) bool { return lt(p.Y, q.Y) }

// Level reports whether two points are on one horizontal line.
func Level(p, q Point) bool { return eq(p.Y, q.Y) }

// Plumb reports whether two points are on one vertical line.
func Plumb(p, q Point) bool { return eq(p.X, q.X) }

// Add moves p by q.
func (c *Calc) Add(p, q Point) Point { return Point{c.add(p.X, q.X), c.add(p.Y, q.Y)} }

// Sub moves p back by q.
func (c *Calc) Sub(p, q Point) Point { return Point{c.sub(p.X, q.X), c.sub(p.Y, q.Y)} }

// Mul scales and turns p by q: the product of complex numbers.
func (c *Calc) Mul(p, q Point) Point {
	return Point{c.sub(c.mul(p.X, q.X), c.mul(p.Y, q.Y)), c.add(c.mul(p.X, q.Y), c.mul(p.Y, q.X))}
}

// Div undoes Mul.
func (c *Calc) Div(p, q Point) Point {
	d := c.add(c.mul(q.X, q.X), c.mul(q.Y, q.Y))
	x := c.div(c.add(c.mul(p.X, q.X), c.mul(p.Y, q.Y)), d)
	return Point{x, c.div(c.sub(c.mul(p.Y, q.X), c.mul(p.X, q.Y)), d)}
}

func (c *Calc) middle(p, q Point) Point {
	x := c.div(c.add(p.X, q.X), 2)
	return Point{x, c.div(c.add(p.Y, q.Y), 2)}
}

// Slope is that of the line through two points.
func (c *Calc) Slope(p, q Point) float64 {
	switch {
	case eq(p.X, q.X):
		return math.Inf(1)
	case eq(p.Y, q.Y):
		return 0
	}
	return c.div(c.sub(p.Y, q.Y), c.sub(p.X, q.X))
}

// normal is the slope of the perpendicular on the line through two points.
func (c *Calc) normal(p, q Point) float64 {
	switch {
	case eq(p.X, q.X):
		return 0
	case eq(p.Y, q.Y):
		return math.Inf(1)
	}
	return c.div(c.sub(p.X, q.X), c.sub(q.Y, p.Y))
}
