package sqlsmith

import (
	"fmt"
	"strings"
)

// expr is an expression of a type. With depth > 0 it may contain subqueries.
func (g *Gen) expr(t Type, depth int) string {
	if g.slip() {
		switch g.rng.IntN(4) {
		case 0:
			return "nosuchcolumn"
		case 1:
			return "nosuchfunction(" + g.expr(t, 0) + ")"
		case 2:
			return "sum(" + g.leaf(Int4) + ")"
		}
		return g.leaf(g.typ())
	}
	if depth <= 0 || g.pick(3) {
		return g.leaf(t)
	}
	sub := func(t Type) string { return g.expr(t, depth-1) }
	switch g.rng.IntN(9) {
	case 0:
		return "CASE WHEN " + g.cond(depth-1) + " THEN " + sub(t) + " ELSE " + sub(t) + " END"
	case 1:
		return "coalesce(" + sub(t) + ", " + sub(t) + ")"
	case 2:
		return "nullif(" + sub(t) + ", " + sub(t) + ")"
	case 3:
		if t != JSONB {
			return g.choose("greatest(", "least(") + sub(t) + ", " + sub(t) + ")"
		}
	case 4:
		if depth > 1 {
			return g.scalar(t, depth-2)
		}
	case 5:
		if t != JSONB {
			return "CASE " + sub(Int4) + " WHEN " + g.literal(Int4) + " THEN " + sub(t) + g.choose("", " ELSE "+sub(t)) + " END"
		}
	}
	return g.compound(t, depth, sub)
}

// leaf is a column or a constant.
func (g *Gen) leaf(t Type) string {
	if !g.pick(5) {
		if c := g.column(t); c != "" {
			return c
		}
	}
	return g.literal(t)
}

// compound is an expression with an operator or function of the type.
func (g *Gen) compound(t Type, depth int, sub func(Type) string) string {
	switch t {
	case Int4:
		return g.intExpr(sub)
	case Int8:
		return g.choose("("+sub(Int8)+g.choose(" + ", " - ", " * ")+sub(Int4)+")", "abs("+sub(Int8)+")",
			"("+sub(Int4)+")::int8", "("+sub(Int8)+" / 2)")
	case Int2:
		return g.choose("(-("+sub(Int2)+"))", "("+sub(Int2)+" % 2::int2)", "("+sub(Int2)+" # "+sub(Int2)+")")
	case Numeric:
		return g.choose("("+sub(Numeric)+g.choose(" + ", " - ", " * ")+sub(Numeric)+")", "round("+sub(Numeric)+", 1)",
			"abs("+sub(Numeric)+")", "("+sub(Int4)+")::numeric", "(-("+sub(Numeric)+"))", "("+sub(Numeric)+" / 4)", "trunc("+sub(Numeric)+")",
			"("+sub(Int8)+" * "+sub(Numeric)+")")
	case Float8:
		return g.choose("("+sub(Float8)+g.choose(" + ", " - ", " * ")+sub(Float8)+")", "("+sub(Int4)+")::float8", "abs("+sub(Float8)+")",
			"floor("+sub(Float8)+")", "("+sub(Float8)+" / 2)")
	case Text:
		return g.choose("("+sub(Text)+" || "+sub(Text)+")", "upper("+sub(Text)+")", "substr("+sub(Text)+", 2)", "left("+sub(Text)+", 1)",
			"("+sub(Int4)+")::text", "replace("+sub(Text)+", 'x', 'zz')", "concat("+sub(Text)+", "+sub(Int4)+")", "("+sub(Bool)+")::text",
			"("+sub(JSONB)+" ->> 'a')", "host("+sub(Inet)+")", "("+sub(Inet)+")::text", "to_char("+sub(Date)+", 'YYYY-MM')", "rpad("+sub(Text)+", 3, '-')")
	case Bool:
		return "(" + g.cond(depth-1) + ")"
	case Date:
		return g.choose("("+sub(Date)+g.choose(" + ", " - ")+fmt.Sprint(g.rng.IntN(40))+")", "("+sub(Timestamp)+")::date")
	case Timestamp:
		return g.choose("("+sub(Timestamp)+g.choose(" + ", " - ")+g.literal(Interval)+")", "date_trunc("+g.choose("'day'", "'month'", "'hour'")+", "+sub(Timestamp)+")",
			"("+sub(Date)+")::timestamp", "("+sub(Date)+" + "+g.literal(Interval)+")")
	case Interval:
		return g.choose("("+sub(Interval)+g.choose(" + ", " - ")+sub(Interval)+")", "(-("+sub(Interval)+"))", "("+sub(Interval)+" * 2)")
	case Inet:
		return g.choose("("+sub(Inet)+g.choose(" + ", " - ")+sub(Int4)+")", "network("+sub(Inet)+")", "("+sub(Inet)+g.choose(" & ", " | ")+sub(Inet)+")", "(~ "+sub(Inet)+")",
			"broadcast("+sub(Inet)+")", "set_masklen("+sub(Inet)+", 16)", "inet_merge("+sub(Inet)+", "+sub(Inet)+")::inet")
	case MAC:
		return g.choose("trunc("+sub(MAC)+")", "(~ "+sub(MAC)+")", "("+sub(MAC)+g.choose(" & ", " | ")+sub(MAC)+")", "macaddr8_set7bit("+sub(MAC)+")")
	case IntArray:
		return g.choose("ARRAY["+sub(Int4)+", "+sub(Int4)+"]", "("+sub(IntArray)+" || "+sub(Int4)+")", "("+sub(IntArray)+")[1:2]",
			"array_remove("+sub(IntArray)+", "+sub(Int4)+")", "array_append("+sub(IntArray)+", "+sub(Int4)+")")
	}
	return g.choose("jsonb_build_object('k', "+sub(Int4)+", 'v', "+sub(Text)+")", "("+sub(JSONB)+" -> 'a')", "to_jsonb("+sub(Int4)+")",
		"jsonb_build_array("+sub(Text)+", "+sub(Bool)+")", "to_jsonb("+sub(IntArray)+")")
}

func (g *Gen) intExpr(sub func(Type) string) string {
	return g.choose("("+sub(Int4)+g.choose(" + ", " - ", " * ")+sub(Int4)+")", "abs("+sub(Int4)+")", "length("+sub(Text)+")",
		"("+sub(Int4)+" / "+g.choose("2", "3", g.leaf(Int4))+")", "("+sub(Int4)+" % "+g.choose("2", "3")+")", "cardinality("+sub(IntArray)+")",
		"("+sub(IntArray)+")["+g.choose("1", "2", g.leaf(Int4))+"]", "("+sub(Bool)+")::int4", "date_part('day', "+sub(Date)+")::int4",
		"("+sub(Int2)+" + "+sub(Int4)+")", "strpos("+sub(Text)+", 'x')", "(-("+sub(Int4)+"))", "("+sub(Int4)+g.choose(" & ", " | ", " # ")+sub(Int4)+")",
		"num_nulls("+sub(Int4)+", "+sub(Text)+")", "masklen("+sub(Inet)+")", "("+sub(Date)+" - DATE '2024-01-01')")
}

// comparable are types whose values compare the same way everywhere.
var comparable = []Type{Int4, Int4, Int8, Int2, Numeric, Float8, Text, Bool, Date, Timestamp, Interval, IntArray, JSONB, Inet, MAC}

func (g *Gen) comparableType() Type {
	if g.pick(2) && len(g.scopes) > 0 {
		if ts := g.columnTypes(); len(ts) > 0 {
			return ts[g.rng.IntN(len(ts))]
		}
	}
	return comparable[g.rng.IntN(len(comparable))]
}

// numberTypes compare with one another.
var numberTypes = []Type{Int4, Int8, Int2, Numeric, Float8}

// pair is two expressions whose types compare.
func (g *Gen) pair(depth int) (l, r string) {
	t := g.comparableType()
	u := t
	switch {
	case g.pick(4) && strings.Contains("int4 int8 int2 numeric float8", string(t)):
		u = numberTypes[g.rng.IntN(len(numberTypes))]
	case g.pick(4) && t == Date:
		u = Timestamp
	}
	return g.expr(t, depth-1), g.expr(u, depth-1)
}

func (g *Gen) compare() string { return g.choose(" = ", " = ", " <> ", " < ", " <= ", " > ", " >= ") }

// cond is a condition. With depth > 1 it may contain subqueries.
func (g *Gen) cond(depth int) string {
	n := 16
	if depth > 1 {
		n = 26
	}
	switch g.rng.IntN(n) {
	case 0:
		return g.expr(g.comparableType(), depth-1) + " IS " + g.choose("", "NOT ") + "NULL"
	case 1, 2:
		if depth > 0 {
			return "(" + g.cond(depth-1) + g.choose(" AND ", " OR ") + g.cond(depth-1) + ")"
		}
	case 3:
		if depth > 0 {
			return "(NOT " + g.cond(depth-1) + ")"
		}
	case 4:
		l, r := g.pair(depth)
		return l + " IS " + g.choose("", "NOT ") + "DISTINCT FROM " + r
	case 5:
		t := g.comparableType()
		return g.expr(t, 0) + g.choose(" IN ", " NOT IN ") + "(" + g.literal(t) + ", " + g.leaf(t) + ")"
	case 6:
		t := g.comparableType()
		return g.expr(t, depth-1) + g.choose(" BETWEEN ", " NOT BETWEEN ", " BETWEEN SYMMETRIC ") + g.leaf(t) + " AND " + g.leaf(t)
	case 7:
		return g.expr(Text, depth-1) + g.choose(" LIKE ", " NOT LIKE ", " ILIKE ") + g.choose("'x%'", "'%y'", "'_'", "'%'")
	case 8:
		return g.leaf(Bool)
	case 9:
		return "(" + g.leaf(Bool) + ") IS " + g.choose("", "NOT ") + g.choose("TRUE", "FALSE", "UNKNOWN")
	case 10:
		// PostgreSQL takes outer joins for inner ones under x op ANY of an empty constant.
		array := strings.ReplaceAll(g.expr(IntArray, depth-1), "'{}'::int4[]", "'{1}'::int4[]")
		return g.leaf(Int4) + g.compare() + g.choose("ANY ", "ALL ") + "(" + array + ")"
	case 11:
		t, u := g.comparableType(), g.comparableType()
		return "(" + g.leaf(t) + ", " + g.leaf(u) + ")" + g.compare() + "(" + g.leaf(t) + ", " + g.leaf(u) + ")"
	case 16, 17, 18:
		return g.choose("", "NOT ") + "EXISTS (" + g.query(depth-2, g.types(1)) + ")"
	case 19, 20, 21:
		t := g.comparableType()
		return g.expr(t, 0) + g.choose(" IN ", " NOT IN ") + "(" + g.query(depth-2, []Type{t}) + ")"
	case 22, 23:
		t := g.comparableType()
		return g.expr(t, 0) + g.compare() + g.choose("ANY ", "ALL ") + "(" + g.query(depth-2, []Type{t}) + ")"
	case 24:
		t, u := g.comparableType(), g.comparableType()
		return "(" + g.expr(t, 0) + ", " + g.expr(u, 0) + ")" + g.choose(" IN ", " NOT IN ", " = ANY ", " <> ALL ") + "(" + g.query(depth-2, []Type{t, u}) + ")"
	case 25:
		t, u := g.comparableType(), g.comparableType()
		return "(" + g.expr(t, 0) + ", " + g.expr(u, 0) + ")" + g.choose(" = ", " < ") + "(" + g.one([]Type{t, u}, depth-2) + ")"
	}
	l, r := g.pair(depth)
	return l + g.compare() + r
}

// types is n random types.
func (g *Gen) types(n int) []Type {
	out := make([]Type, n)
	for i := range out {
		out[i] = g.typ()
	}
	return out
}

// scalar is a subquery with one value at most, or an ARRAY of one.
func (g *Gen) scalar(t Type, depth int) string {
	if t == IntArray && g.pick(2) {
		return "ARRAY(" + g.plain(depth, []Type{Int4}) + " ORDER BY 1)"
	}
	return "(" + g.one([]Type{t}, depth) + ")"
}

// one is a query with one row at most (mostly).
func (g *Gen) one(ts []Type, depth int) string {
	if len(ts) == 1 && g.pick(2) {
		done := g.from(depth)
		defer done.pop()
		return "SELECT " + g.aggregate(ts[0]) + done.sql + g.where(depth) + g.choose("", "", " HAVING count(*) > 1")
	}
	if g.pick(12) {
		return g.query(depth, ts)
	}
	return g.ordered(depth, ts, 1)
}

// aggregate is an aggregate call of a type over the innermost scope.
func (g *Gen) aggregate(t Type) string {
	local := g.local
	g.local = true
	defer func() { g.local = local }()
	distinct := g.choose("", "", "", "DISTINCT ")
	filter := ""
	if g.pick(5) {
		filter = " FILTER (WHERE " + g.cond(1) + ")"
	}
	arg := func(t Type) string { return g.expr(t, g.rng.IntN(2)) }
	ordered := func(fn, more string, t Type) string {
		e := arg(t)
		if distinct != "" && strings.HasPrefix(e, "'") || strings.HasPrefix(e, "E'") {
			e = "(" + e + ")::" + string(t) // of a bare literal, PostgreSQL does not see that it is the argument
		}
		order := " ORDER BY " + e + g.choose("", " DESC", " NULLS FIRST")
		if distinct == "" && more == "" && g.pick(2) {
			o := arg(g.comparableType())
			order = " ORDER BY " + o + g.choose("", " DESC NULLS LAST", " NULLS FIRST") + ", " + e
		}
		return fn + "(" + distinct + e + more + order + ")" + filter
	}
	minmax := func() string { return g.choose("min(", "max(") + distinct + arg(t) + ")" + filter }
	within := func(fn string, t Type) string {
		return fn + " WITHIN GROUP (ORDER BY " + arg(t) + g.choose("", " DESC") + ")" + filter
	}
	fraction := g.choose("0", "0.5", "0.25", "1", "0.9")
	switch t {
	case Int4:
		return g.choose(minmax(), minmax(), within("mode()", Int4), within("percentile_disc("+fraction+")", Int4), "count("+distinct+arg(g.typ())+")"+filter+"::int4")
	case Int8:
		return g.choose("count(*)"+filter, "count("+distinct+arg(g.typ())+")"+filter, "sum("+distinct+arg(Int4)+")"+filter, "sum("+arg(Int2)+")"+filter,
			within("rank("+g.literal(Int4)+")", Int4), within("dense_rank("+g.literal(Text)+")", Text), "regr_count("+arg(Float8)+", "+arg(Float8)+")"+filter)
	case Int2:
		return minmax()
	case Numeric:
		return g.choose(minmax(), "sum("+distinct+arg(Numeric)+")"+filter, "avg("+distinct+arg(Int4)+")"+filter, "avg("+arg(Numeric)+")"+filter,
			"sum("+distinct+arg(Int8)+")"+filter, g.choose("stddev(", "var_pop(", "variance(", "stddev_pop(")+arg(Int4)+")"+filter)
	case Float8:
		return g.choose(minmax(), "sum("+distinct+arg(Float8)+")"+filter, "avg("+arg(Float8)+")"+filter,
			within("percentile_cont("+fraction+")", Float8), within("cume_dist("+g.literal(Int4)+")", Int4), within("percent_rank("+g.literal(Int4)+")", Int4))
	case Text:
		return g.choose(minmax(), ordered("string_agg", ", ','", Text), within("mode()", Text), within("percentile_disc("+fraction+")", Text))
	case Bool:
		return g.choose("bool_and(", "bool_or(", "every(") + distinct + arg(Bool) + ")" + filter
	case Interval:
		return g.choose(minmax(), "sum("+arg(Interval)+")"+filter)
	case IntArray:
		return g.choose(minmax(), ordered("array_agg", "", Int4), ordered("array_agg", "", Int4))
	case JSONB:
		return ordered("jsonb_agg", "", []Type{Int4, Text, Bool}[g.rng.IntN(3)])
	}
	if t == MAC { // has no min, no max
		return g.choose(within("mode()", t), within("percentile_disc("+fraction+")", t))
	}
	return g.choose(minmax(), within("mode()", t), within("percentile_disc("+fraction+")", t))
}
