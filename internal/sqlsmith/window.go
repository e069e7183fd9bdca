package sqlsmith

import (
	"strconv"
	"strings"
)

// windowed is a SELECT with window functions.
func (g *Gen) windowed(depth int, ts []Type) string {
	f := g.from(depth)
	defer f.pop()
	where := g.where(depth)
	// Rows that look the same are told apart by one window only, or it would be
	// open which value of one goes with which of another.
	w := window{base: g.partition()}
	w.strict = w.base + g.total()
	named := ""
	if g.pick(3) {
		named = " WINDOW win AS (" + w.base + ")"
		w.strict, w.base = "win"+g.total(), "win"
	}
	out := make([]string, len(ts))
	for i, t := range ts {
		if g.pick(4) {
			out[i] = g.expr(t, depth-1)
			continue
		}
		out[i] = g.window(t, w)
	}
	return "SELECT " + g.choose("", "", "", "", "DISTINCT ") + strings.Join(out, ", ") + f.sql + where + named
}

func (g *Gen) partition() string {
	switch c, ok := g.anyColumn(); {
	case !ok || g.pick(3):
		return ""
	default:
		if d, ok := g.anyColumn(); ok && g.pick(3) {
			return "PARTITION BY " + c.sql + ", " + d.sql
		}
		return "PARTITION BY " + c.sql
	}
}

// total is an ORDER BY that leaves no rows apart that can be told apart.
func (g *Gen) total() string {
	var by []string
	if c, ok := g.anyColumn(); ok && g.pick(2) {
		by = append(by, c.sql+g.choose("", " DESC", " NULLS FIRST"))
	}
	for _, c := range g.scopes[len(g.scopes)-1] {
		by = append(by, c.sql)
	}
	if len(by) == 0 {
		return ""
	}
	return " ORDER BY " + strings.Join(by, ", ")
}

// window is the windows of a SELECT.
type window struct {
	base   string // of windows whose order leaves rows tied
	strict string // partition and order of the one that does not
}

// window is a call of a window function of a type.
func (g *Gen) window(t Type, w window) string {
	base := w.base
	if g.pick(2) {
		base = g.partition()
	}
	arg := func(t Type) string { return g.expr(t, g.rng.IntN(2)) }
	filter := ""
	if g.pick(5) {
		filter = " FILTER (WHERE " + g.cond(1) + ")"
	}
	over := func(call string) string { return call + " OVER (" + w.strict + ")" }
	framed := func(call string) string { return call + " OVER (" + w.strict + g.frame("") + ")" }
	value := func(call string) string {
		frame := g.frame("")
		if strings.HasSuffix(frame, " GROUP") || strings.HasSuffix(frame, " TIES") {
			// PostgreSQL's counting of what is excluded is wrong where the frame does
			// not hold the current row: (array_agg(x))[n] says otherwise.
			frame = frame[:strings.Index(frame, " EXCLUDE")]
		}
		return call + " OVER (" + w.strict + frame + ")"
	}
	if g.pick(2) {
		switch e := arg(t); g.rng.IntN(5) {
		case 0:
			return over("lag(" + e + g.choose("", ", 2", ", 0", ", "+g.leaf(Int4), ", 1, "+g.leaf(t)) + ")")
		case 1:
			return over("lead(" + e + g.choose("", ", 2", ", -1", ", 1, "+g.leaf(t)) + ")")
		case 2:
			return value("first_value(" + e + ")")
		case 3:
			return value("last_value(" + e + ")")
		default:
			return value("nth_value(" + e + ", " + strconv.Itoa(1+g.rng.IntN(3)) + ")")
		}
	}
	call := ""
	switch t {
	case Int4:
		return g.choose(over("ntile("+strconv.Itoa(1+g.rng.IntN(4))+")"), g.loose(w, base, "min("+arg(Int4)+")"+filter), g.loose(w, base, "max("+arg(Int4)+")"+filter))
	case Int8:
		call = g.choose("rank()", "dense_rank()", "count(*)"+filter, "sum("+arg(Int4)+")"+filter, "count("+arg(g.typ())+")"+filter, "row_number()")
		switch {
		case call == "row_number()":
			return over(call)
		case strings.HasSuffix(call, "rank()"):
			return call + " OVER (" + base + g.someOrder() + ")"
		}
	case Numeric:
		call = g.choose("avg("+arg(Int4)+")"+filter, "sum("+arg(Numeric)+")"+filter, "stddev_samp("+arg(Int4)+")"+filter, "sum("+arg(Int8)+")"+filter)
	case Float8:
		call = g.choose("percent_rank()", "cume_dist()", "sum("+arg(Float8)+")"+filter, "avg("+arg(Float8)+")"+filter)
		if strings.HasSuffix(call, "()") {
			return call + " OVER (" + base + g.someOrder() + ")"
		}
	case Text:
		if g.pick(2) {
			return framed("string_agg(" + arg(Text) + ", ',')" + filter)
		}
		call = g.choose("min(", "max(") + arg(Text) + ")" + filter
	case Bool:
		call = g.choose("bool_and(", "bool_or(") + arg(Bool) + ")" + filter
	case IntArray:
		return framed("array_agg(" + arg(Int4) + ")" + filter)
	case JSONB:
		return framed("jsonb_agg(" + arg(Int4) + ")" + filter)
	case MAC: // has no min, no max
		return framed("last_value(" + arg(MAC) + ")")
	case Interval:
		call = g.choose("sum(", "min(", "max(") + arg(Interval) + ")" + filter
	default:
		call = g.choose("min(", "max(") + arg(t) + ")" + filter
	}
	return g.loose(w, base, call)
}

// loose is a call for which peers need not be told apart, over any frame.
func (g *Gen) loose(w window, base, call string) string {
	if g.pick(2) {
		return call + " OVER (" + w.strict + g.frame("") + ")"
	}
	c, ok := g.anyColumn()
	if !ok {
		return call + " OVER (" + base + ")"
	}
	order := " ORDER BY " + c.sql + g.choose("", " DESC", " NULLS FIRST")
	return call + " OVER (" + base + order + g.frame(c.typ) + ")"
}

func (g *Gen) someOrder() string {
	c, ok := g.anyColumn()
	if !ok {
		return ""
	}
	return " ORDER BY " + c.sql + g.choose("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
}

// frame is a frame clause. With a type, rows are ordered by one column of it,
// and peers are not told apart; else rows are.
func (g *Gen) frame(t Type) string {
	if g.pick(3) {
		return ""
	}
	exclude := g.choose("", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS")
	offset := ""
	switch t {
	case Int4, Int8, Int2:
		offset = g.choose("0", "1", "2", "100")
	case Numeric, Float8:
		offset = g.choose("0", "0.5", "1")
	case Date, Timestamp:
		offset = g.choose("INTERVAL '1 day'", "INTERVAL '1 month'", "INTERVAL '0'", "INTERVAL '12 hours'")
	case Interval:
		offset = g.choose("INTERVAL '1 hour'", "INTERVAL '0'")
	}
	unit := g.choose("ROWS", "ROWS", "GROUPS", "RANGE")
	if t != "" {
		unit = g.choose("RANGE", "GROUPS")
	}
	if unit != "RANGE" {
		offset = g.choose("0", "1", "2")
	}
	if len(g.scopes[len(g.scopes)-1]) == 0 {
		unit = "ROWS"
	}
	starts := []string{"UNBOUNDED PRECEDING", "CURRENT ROW"}
	ends := []string{"CURRENT ROW", "UNBOUNDED FOLLOWING"}
	if offset != "" && !(unit == "RANGE" && t == "") {
		starts = append(starts, offset+" PRECEDING", offset+" PRECEDING")
		ends = append(ends, offset+" FOLLOWING", offset+" FOLLOWING")
		if g.pick(4) {
			return " " + unit + " BETWEEN " + g.choose(offset+" PRECEDING AND "+offset+" PRECEDING", offset+" FOLLOWING AND UNBOUNDED FOLLOWING",
				"UNBOUNDED PRECEDING AND "+offset+" PRECEDING", offset+" FOLLOWING AND "+offset+" FOLLOWING") + exclude
		}
	}
	if g.pick(5) {
		return " " + unit + " " + g.choose(starts...) + exclude
	}
	return " " + unit + " BETWEEN " + g.choose(starts...) + " AND " + g.choose(ends...) + exclude
}
