package types

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/streamdb/streamdb/sql/geo"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// The form of a geometric value is its numbers in PostgreSQL's order (the high
// corner of a box first), little-endian; a path has a byte before them, 1 if it
// is closed.

// IsGeometric reports whether o is one of the geometric types, which have no
// order, and an = (of areas, lengths or nearly equal values) that is no equality.
func (o OID) IsGeometric() bool {
	switch o {
	case OIDPoint, OIDLseg, OIDPath, OIDBox, OIDPolygon, OIDLine, OIDCircle:
		return true
	}
	return false
}

// HasEquality reports whether values of the type can be grouped.
func HasEquality(t Type) bool {
	t = t.Storage()
	for e := t.OID.Elem(); e != 0; e = t.OID.Elem() {
		t = Of(e).Storage()
	}
	return !t.OID.IsGeometric() && t.OID != OIDJSON && t.OID != OIDXML
}

// AppendPoints appends the form of points.
func AppendPoints(dst []byte, ps ...geo.Point) []byte {
	for _, p := range ps {
		dst = AppendFloats(dst, p.X, p.Y)
	}
	return dst
}

// AppendFloats appends numbers of a geometric value.
func AppendFloats(dst []byte, vs ...float64) []byte {
	for _, v := range vs {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	return dst
}

// GeoFloat reads number i of a geometric value.
func GeoFloat(b []byte, i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
}

// GeoPoint reads the point whose first number is number i.
func GeoPoint(b []byte, i int) geo.Point { return geo.Point{X: GeoFloat(b, i), Y: GeoFloat(b, i+1)} }

// GeoPoints reads all points.
func GeoPoints(b []byte) []geo.Point {
	ps := make([]geo.Point, len(b)/16)
	for i := range ps {
		ps[i] = GeoPoint(b, 2*i)
	}
	return ps
}

func appendPointsText(dst, b []byte, o *Options) []byte {
	for i := range len(b) / 16 {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendFloat8(append(dst, '('), GeoFloat(b, 2*i), o)
		dst = append(AppendFloat8(append(dst, ','), GeoFloat(b, 2*i+1), o), ')')
	}
	return dst
}

func appendGeoText(dst []byte, o OID, b []byte, opt *Options) []byte {
	switch o {
	case OIDLine:
		for i := range 3 {
			dst = AppendFloat8(append(dst, "{,,"[i]), GeoFloat(b, i), opt)
		}
		return append(dst, '}')
	case OIDCircle:
		dst = appendPointsText(append(dst, '<'), b[:16], opt)
		return append(AppendFloat8(append(dst, ','), GeoFloat(b, 2), opt), '>')
	case OIDLseg:
		return append(appendPointsText(append(dst, '['), b, opt), ']')
	case OIDPath:
		if b[0] == 0 {
			return append(appendPointsText(append(dst, '['), b[1:], opt), ']')
		}
		return append(appendPointsText(append(dst, '('), b[1:], opt), ')')
	case OIDPolygon:
		return append(appendPointsText(append(dst, '('), b, opt), ')')
	}
	return appendPointsText(dst, b, opt)
}

// geoText reads the text form of a geometric value.
type geoText struct {
	typ, all string
	s        string // the rest
	err      error
}

func (g *geoText) fail() {
	if g.err == nil {
		g.err = errInput(g.typ, g.all)
	}
}

func (g *geoText) blanks() {
	for g.s != "" && isSpace(g.s[0]) {
		g.s = g.s[1:]
	}
}

// skip takes c if it comes next.
func (g *geoText) skip(c byte) bool {
	if g.s == "" || g.s[0] != c {
		return false
	}
	g.s = g.s[1:]
	return true
}

func (g *geoText) need(c byte) {
	if !g.skip(c) {
		g.fail()
	}
}

func (g *geoText) float() float64 {
	if g.err != nil {
		return 0
	}
	g.blanks()
	f, n, ok := leadFloat(g.s, 64)
	if !ok {
		g.err = pgerror.New(pgerror.NumericValueOutOfRange, "\"%s\" is out of range for type double precision", g.s[:n])
		return 0
	}
	if n == 0 {
		if f, n = specialFloat(g.s); n == 0 {
			g.fail()
			return 0
		}
	}
	g.s = g.s[n:]
	g.blanks()
	return f
}

// specialFloat reads NaN or infinity at the start of s.
func specialFloat(s string) (f float64, n int) {
	rest, sign := s, 1
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		if rest[0] == '-' {
			sign = -1
		}
		rest = rest[1:]
	}
	for _, word := range []string{"nan", "infinity", "inf"} {
		if len(rest) < len(word) || !equalFold(rest[:len(word)], word) {
			continue
		}
		if n = len(s) - len(rest) + len(word); word == "nan" {
			return NaN, n
		}
		return math.Inf(sign), n
	}
	return 0, 0
}

// pair reads two numbers, with parentheses or without.
func (g *geoText) pair(dst []byte) []byte {
	g.blanks()
	paren := g.skip('(')
	x := g.float()
	g.need(',')
	y := g.float()
	if paren {
		g.need(')')
		g.blanks()
	}
	return AppendFloats(dst, x, y)
}

// points reads n pairs, in brackets if they may be, in parentheses or without.
func (g *geoText) points(dst []byte, n int, brackets bool) (_ []byte, open bool) {
	depth := 0
	g.blanks()
	switch {
	case g.s == "":
	case g.s[0] == '[':
		if open = true; !brackets {
			g.fail()
			return dst, open
		}
		depth, g.s = 1, g.s[1:]
	case g.s[0] == '(':
		in := strings.TrimLeft(g.s[1:], " \t\n\v\f\r")
		if in != "" && in[0] == '(' || strings.LastIndexByte(g.s, '(') == 0 {
			depth, g.s = 1, in
		}
	}
	for range n {
		if dst = g.pair(dst); g.err != nil {
			return dst, open
		}
		g.skip(',')
	}
	if depth > 0 {
		if !g.skip(')') && !(open && g.skip(']')) {
			g.fail()
		}
		g.blanks()
	}
	return dst, open
}

// end fails if anything is left.
func (g *geoText) end() {
	if g.s != "" {
		g.fail()
	}
}

// count is how many pairs there are by the number of commas, 0 if there cannot
// be any.
func (g *geoText) count() int {
	if n := strings.Count(g.s, ","); n%2 == 1 {
		return (n + 1) / 2
	}
	g.fail()
	return 0
}

func (g *geoText) line(dst []byte) []byte {
	g.blanks()
	if !g.skip('{') {
		start := len(dst)
		dst, _ = g.points(dst, 2, true)
		if g.end(); g.err != nil {
			return dst
		}
		p, q := GeoPoint(dst[start:], 0), GeoPoint(dst[start:], 2)
		if geo.Same(p, q) {
			g.err = geo.ErrOnePoint(pgerror.InvalidTextRepresentation)
			return dst
		}
		var c geo.Calc
		l := c.LineOf(p, q)
		if c.Err != nil {
			g.err = c.Err
		}
		return AppendFloats(dst[:start], l.A, l.B, l.C)
	}
	var l geo.Line
	l.A = g.float()
	g.need(',')
	l.B = g.float()
	g.need(',')
	l.C = g.float()
	g.need('}')
	g.blanks()
	if g.end(); g.err == nil && !l.Valid() {
		g.err = pgerror.New(pgerror.InvalidTextRepresentation, "invalid line specification: A and B cannot both be zero")
	}
	return AppendFloats(dst, l.A, l.B, l.C)
}

func (g *geoText) circle(dst []byte) []byte {
	depth := 0
	g.blanks()
	if g.skip('<') {
		depth = 1
	} else if g.s != "" && g.s[0] == '(' {
		if in := strings.TrimLeft(g.s[1:], " \t\n\v\f\r"); in != "" && in[0] == '(' {
			depth, g.s = 1, in
		}
	}
	dst = g.pair(dst)
	g.skip(',')
	r := g.float()
	if r < 0 {
		g.fail()
	}
	if depth > 0 {
		if !g.skip(')') && !g.skip('>') {
			g.fail()
		}
		g.blanks()
	}
	g.end()
	return AppendFloats(dst, r)
}

func (g *geoText) path(dst []byte) []byte {
	n := g.count()
	g.blanks()
	paren := g.s != "" && g.s[0] == '(' && strings.LastIndexByte(g.s, '(') == 0
	if paren {
		g.s = g.s[1:]
	}
	at := len(dst)
	dst, open := g.points(append(dst, 1), n, true)
	if open {
		dst[at] = 0
	}
	if paren && g.err == nil {
		g.need(')')
		g.blanks()
	}
	g.end()
	return dst
}

func parseGeo(dst []byte, o OID, s string) ([]byte, error) {
	g := geoText{typ: o.Name(), all: s, s: s}
	start := len(dst)
	switch o {
	case OIDPoint:
		dst = g.pair(dst)
		g.end()
	case OIDLseg:
		dst, _ = g.points(dst, 2, true)
		g.end()
	case OIDBox:
		dst, _ = g.points(dst, 2, false)
		g.end()
		if g.err == nil {
			dst = orderBox(dst, start)
		}
	case OIDLine:
		dst = g.line(dst)
	case OIDCircle:
		dst = g.circle(dst)
	case OIDPath:
		dst = g.path(dst)
	case OIDPolygon:
		if n := g.count(); g.err == nil {
			dst, _ = g.points(dst, n, false)
			g.end()
		}
	}
	return dst, g.err
}

// orderBox puts the high corner of a box first.
func orderBox(dst []byte, start int) []byte {
	p, q := GeoPoint(dst[start:], 0), GeoPoint(dst[start:], 2)
	b := geo.BoxOf(q, p)
	return AppendPoints(dst[:start], b.High, b.Low)
}

func appendGeoBinary(dst []byte, o OID, b []byte) []byte {
	switch o {
	case OIDPath:
		dst = append(dst, b[0])
		b = b[1:]
		fallthrough
	case OIDPolygon:
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(b)/16))
	}
	for ; len(b) > 0; b = b[8:] {
		dst = binary.BigEndian.AppendUint64(dst, binary.LittleEndian.Uint64(b))
	}
	return dst
}

// maxGeoPoints is how many points PostgreSQL takes in a path or polygon.
const maxGeoPoints = (math.MaxInt32 - 40) / 16

func parseGeoBinary(dst []byte, o OID, p []byte) ([]byte, error) {
	start := len(dst)
	n := map[OID]int{OIDPoint: 2, OIDLseg: 4, OIDBox: 4, OIDLine: 3, OIDCircle: 3}[o]
	if n == 0 {
		if o == OIDPath {
			if len(p) < 1 {
				return dst, errNoData()
			}
			closed := byte(0)
			if p[0] != 0 {
				closed = 1
			}
			dst, p = append(dst, closed), p[1:]
		}
		if len(p) < 4 {
			return dst, errShortMessage()
		}
		k := int32(binary.BigEndian.Uint32(p))
		if k <= 0 || k >= maxGeoPoints {
			return dst, pgerror.New(pgerror.InvalidBinaryRepresentation, "invalid number of points in external \"%s\" value", o)
		}
		n, p = 2*int(k), p[4:]
	}
	if len(p) < 8*n {
		return dst, errShortMessage()
	}
	for i := range n {
		dst = binary.LittleEndian.AppendUint64(dst, binary.BigEndian.Uint64(p[8*i:]))
	}
	v := dst[start:]
	switch {
	case o == OIDBox:
		dst = orderBox(dst, start)
	case o == OIDCircle && GeoFloat(v, 2) < 0:
		return dst, pgerror.New(pgerror.InvalidBinaryRepresentation, "invalid radius in external \"circle\" value")
	case o == OIDLine && !(geo.Line{A: GeoFloat(v, 0), B: GeoFloat(v, 1)}).Valid():
		return dst, pgerror.New(pgerror.InvalidBinaryRepresentation, "invalid line specification: A and B cannot both be zero")
	}
	if len(p) > 8*n {
		return dst, errBinaryFormat("")
	}
	return dst, nil
}
