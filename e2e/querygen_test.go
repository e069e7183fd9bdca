package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// queryGen writes random queries over given relations, whose answers are
// determined by SQL: what orders is total, what is divided by is not zero.
type queryGen struct {
	rnd  *rand.Rand
	base []genRel
	next int
}

type genType int

const (
	genInt genType = iota
	genText
	genNumeric
	genDate
	genBool
)

// genRel is something for FROM, and the types of its columns c0, c1, ….
type genRel struct {
	sql   string
	types []genType
}

func (g *queryGen) n(n int) int { return g.rnd.IntN(n) }

func (g *queryGen) pick(s ...string) string { return s[g.n(len(s))] }

func (g *queryGen) alias() string {
	g.next++
	return fmt.Sprintf("q%d", g.next)
}

// scope is the columns that an expression can use.
type scope []struct {
	name string
	typ  genType
}

func (r genRel) scope(alias string) scope {
	var s scope
	for i, t := range r.types {
		s = append(s, struct {
			name string
			typ  genType
		}{fmt.Sprintf("%s.c%d", alias, i), t})
	}
	return s
}

// expr writes an expression of a type.
func (g *queryGen) expr(s scope, t genType, depth int) string {
	var of []string
	for _, c := range s {
		if c.typ == t {
			of = append(of, c.name)
		}
	}
	if len(of) > 0 && (depth <= 0 || g.n(3) > 0) {
		return g.pick(of...)
	}
	if depth <= 0 {
		return g.constant(t)
	}
	sub := func(t genType) string { return g.expr(s, t, depth-1) }
	if g.n(6) == 0 {
		return fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", sub(genBool), sub(t), sub(t))
	}
	if g.n(8) == 0 {
		return fmt.Sprintf("%s(%s, %s)", g.pick("coalesce", "nullif", "greatest", "least"), sub(t), sub(t))
	}
	switch t {
	case genInt:
		switch g.n(5) {
		case 0:
			return fmt.Sprintf("length(%s)", sub(genText))
		case 1:
			return fmt.Sprintf("(%s %% %d)", sub(genInt), 2+g.n(5))
		case 2:
			return fmt.Sprintf("extract(day from %s)::int", sub(genDate))
		}
		return fmt.Sprintf("((%s %s %s) %% 1000)", sub(genInt), g.pick("+", "-", "*"), sub(genInt))
	case genText:
		return g.pick(fmt.Sprintf("upper(%s)", sub(genText)), fmt.Sprintf("left(%s || %s, 8)", sub(genText), sub(genInt)), fmt.Sprintf("substring(%s, 1, 2)", sub(genText)))
	case genNumeric:
		return g.pick(fmt.Sprintf("round(%s %s %s, 2)", sub(genNumeric), g.pick("+", "-", "*"), sub(genInt)), fmt.Sprintf("(%s / 4)", sub(genNumeric)), fmt.Sprintf("%s::numeric", sub(genInt)))
	case genDate:
		return fmt.Sprintf("(%s + %s %% 5)", sub(genDate), sub(genInt))
	}
	return g.condition(s, depth)
}

func (g *queryGen) constant(t genType) string {
	if g.n(12) == 0 {
		return "NULL::" + [...]string{"int", "text", "numeric", "date", "bool"}[t]
	}
	switch t {
	case genInt:
		return fmt.Sprint(g.n(8))
	case genText:
		return g.pick("'a'", "'bb'", "'x%'", "''")
	case genNumeric:
		return g.pick("1.5", "0.25", "10", "2.00")
	case genDate:
		return fmt.Sprintf("date '2024-01-%02d'", 1+g.n(9))
	}
	return g.pick("true", "false")
}

// condition writes a bool expression.
func (g *queryGen) condition(s scope, depth int) string {
	t := genType(g.n(4))
	sub := func(t genType) string { return g.expr(s, t, depth-1) }
	switch g.n(9) {
	case 0:
		return fmt.Sprintf("(%s AND %s)", sub(genBool), sub(genBool))
	case 1:
		return fmt.Sprintf("(%s OR NOT %s)", sub(genBool), sub(genBool))
	case 2:
		return fmt.Sprintf("(%s IS %sNULL)", sub(t), g.pick("", "NOT "))
	case 3:
		return fmt.Sprintf("(%s %sIN (%s, %s))", sub(t), g.pick("", "NOT "), sub(t), g.constant(t))
	case 4:
		return fmt.Sprintf("(%s %s %s)", sub(genText), g.pick("LIKE", "NOT LIKE", "~"), g.pick("'a%'", "'%1'", "'b'"))
	case 5:
		return fmt.Sprintf("(%s BETWEEN %s AND %s)", sub(t), sub(t), sub(t))
	case 6:
		return fmt.Sprintf("(%s IS DISTINCT FROM %s)", sub(t), sub(t))
	}
	return fmt.Sprintf("(%s %s %s)", sub(t), g.pick("=", "<>", "<", ">="), sub(t))
}

// columns writes a list of n or so expressions named c0, c1, …
func (g *queryGen) columns(s scope) (string, []genType) {
	var parts []string
	var ts []genType
	for i := range 2 + g.n(3) {
		t := genType(g.n(4))
		parts = append(parts, fmt.Sprintf("%s AS c%d", g.expr(s, t, 2), i))
		ts = append(ts, t)
	}
	return strings.Join(parts, ", "), ts
}

// from writes an item of FROM and gives its columns.
func (g *queryGen) from(depth int) (string, scope, genRel) {
	r := g.rel(depth)
	a := g.alias()
	return r.sql + " AS " + a, r.scope(a), r
}

// equal joins two scopes by an equality of columns of the same type.
func (g *queryGen) equal(l, r scope) string {
	for range 20 {
		a, b := l[g.n(len(l))], r[g.n(len(r))]
		if a.typ == b.typ {
			return a.name + " = " + b.name
		}
	}
	return g.expr(l, genInt, 1) + " = " + g.expr(r, genInt, 1)
}

// rel writes something for FROM: a relation, or a query in parentheses.
func (g *queryGen) rel(depth int) genRel {
	if depth <= 0 || g.n(6) == 0 {
		return g.base[g.n(len(g.base))]
	}
	q, ts := g.query(depth)
	return genRel{"(" + q + ")", ts}
}

// query writes a query with columns c0, c1, …
func (g *queryGen) query(depth int) (string, []genType) {
	switch g.n(11) {
	case 0, 1:
		return g.join(depth)
	case 2, 3:
		return g.aggregate(depth)
	case 4:
		return g.topK(depth)
	case 5:
		return g.window(depth)
	case 6:
		return g.setOp(depth)
	case 7:
		return g.subquery(depth)
	case 8:
		from, s, _ := g.from(depth - 1)
		cols, ts := g.columns(s)
		return "SELECT DISTINCT " + cols + " FROM " + from, ts
	case 9:
		from, s, _ := g.from(depth - 1)
		s2 := append(s, struct {
			name string
			typ  genType
		}{"gs", genInt})
		cols, ts := g.columns(s2)
		return fmt.Sprintf("SELECT %s FROM %s %s JOIN LATERAL generate_series(1, %s %% 4) AS gs ON %s", cols, from, g.pick("", "LEFT"), g.expr(s, genInt, 1), g.condition(s2, 1)), ts
	}
	from, s, _ := g.from(depth - 1)
	cols, ts := g.columns(s)
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s", cols, from, g.condition(s, 3)), ts
}

func (g *queryGen) join(depth int) (string, []genType) {
	l, ls, _ := g.from(depth - 1)
	r, rs, _ := g.from(depth - 1)
	both := append(append(scope{}, ls...), rs...)
	cols, ts := g.columns(both)
	kind := g.pick("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
	on := g.equal(ls, rs)
	if kind != "FULL JOIN" && g.n(2) == 0 {
		on += " AND " + g.condition(both, 2)
	}
	sql := fmt.Sprintf("SELECT %s FROM %s %s %s ON %s", cols, l, kind, r, on)
	if g.n(3) == 0 {
		sql += " WHERE " + g.condition(both, 2)
	}
	return sql, ts
}

func (g *queryGen) aggregate(depth int) (string, []genType) {
	from, s, _ := g.from(depth - 1)
	filter := func() string {
		if g.n(4) == 0 {
			return " FILTER (WHERE " + g.condition(s, 2) + ")"
		}
		return ""
	}
	num := func() string { return g.expr(s, g.pickType(genInt, genNumeric), 1) }
	distinct := func() string { return g.pick("", "", "DISTINCT ") }
	var parts []string
	var ts []genType
	keys := g.n(3)
	for i := range keys {
		t := genType(g.n(4))
		ts = append(ts, t)
		parts = append(parts, fmt.Sprintf("%s AS c%d", g.expr(s, t, 1), i))
	}
	for range 1 + g.n(3) {
		e, t := "", genInt
		switch g.n(7) {
		case 0:
			e = "count(*)" + filter() + "::int"
		case 1:
			e = fmt.Sprintf("count(%s%s)%s::int", distinct(), g.expr(s, genType(g.n(4)), 1), filter())
		case 2:
			e, t = fmt.Sprintf("sum(%s%s)%s::numeric", distinct(), num(), filter()), genNumeric
		case 3:
			e, t = fmt.Sprintf("round(avg(%s%s)%s, 3)", distinct(), num(), filter()), genNumeric
		case 4:
			t = genType(g.n(4))
			e = fmt.Sprintf("%s(%s)%s", g.pick("min", "max"), g.expr(s, t, 1), filter())
		case 5:
			x := g.expr(s, genText, 1)
			e, t = fmt.Sprintf("string_agg(%s, ',' ORDER BY %s)%s", x, x, filter()), genText
		case 6:
			e = fmt.Sprintf("bool_%s(%s)::int", g.pick("and", "or"), g.condition(s, 1))
		}
		parts = append(parts, fmt.Sprintf("%s AS c%d", e, len(parts)))
		ts = append(ts, t)
	}
	sql := "SELECT " + strings.Join(parts, ", ") + " FROM " + from
	if g.n(3) == 0 {
		sql += " WHERE " + g.condition(s, 2)
	}
	if keys > 0 {
		sql += " GROUP BY 1"
		if keys > 1 {
			sql += ", 2"
		}
	}
	if g.n(4) == 0 {
		sql += " HAVING count(*) > 1"
	}
	return sql, ts
}

func (g *queryGen) pickType(ts ...genType) genType { return ts[g.n(len(ts))] }

// all is ORDER BY over every column, the first one in some direction.
func (g *queryGen) all(s scope) string {
	parts := make([]string, len(s))
	at := g.n(len(s))
	for i := range s {
		parts[i] = s[(i+at)%len(s)].name
	}
	parts[0] += g.pick("", " DESC", " DESC NULLS LAST", " NULLS FIRST")
	return strings.Join(parts, ", ")
}

func (g *queryGen) topK(depth int) (string, []genType) {
	from, s, r := g.from(depth - 1)
	cols := make([]string, len(s))
	for i, c := range s {
		cols[i] = c.name
	}
	if g.n(2) == 0 {
		k := g.n(len(s))
		return fmt.Sprintf("SELECT DISTINCT ON (%s) %s FROM %s ORDER BY %s, %s", s[k].name, strings.Join(cols, ", "), from, s[k].name, g.all(s)), r.types
	}
	return fmt.Sprintf("SELECT %s FROM %s ORDER BY %s LIMIT %d OFFSET %d", strings.Join(cols, ", "), from, g.all(s), 1+g.n(6), g.n(3)), r.types
}

func (g *queryGen) window(depth int) (string, []genType) {
	from, s, _ := g.from(depth - 1)
	part := s[g.n(len(s))].name
	over := fmt.Sprintf("OVER (PARTITION BY %s ORDER BY %s)", part, g.all(s))
	i, x := g.expr(s, genInt, 1), g.expr(s, genText, 0)
	fn := g.pick("row_number() "+over, "rank() "+over, "dense_rank() "+over, "count(*) "+over, fmt.Sprintf("sum(%s) OVER (PARTITION BY %s)", i, part), fmt.Sprintf("lag(%s) %s", i, over), fmt.Sprintf("max(%s) OVER (PARTITION BY %s)", i, part))
	a := g.alias()
	sql := fmt.Sprintf("SELECT %s AS c0, %s AS c1, (%s)::int AS c2 FROM %s", i, x, fn, from)
	if g.n(2) == 0 {
		sql = fmt.Sprintf("SELECT c0, c1, c2 FROM (%s) AS %s WHERE c2 <= %d", sql, a, 1+g.n(3))
	}
	return sql, []genType{genInt, genText, genInt}
}

func (g *queryGen) setOp(depth int) (string, []genType) {
	_, _, r := g.from(depth - 1)
	ts := r.types[:min(len(r.types), 3)]
	side := func() string {
		from, s, _ := g.from(depth - 1)
		var parts []string
		for i, t := range ts {
			parts = append(parts, fmt.Sprintf("%s AS c%d", g.expr(s, t, 1), i))
		}
		return "SELECT " + strings.Join(parts, ", ") + " FROM " + from
	}
	return side() + " " + g.pick("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL") + " " + side(), ts
}

func (g *queryGen) subquery(depth int) (string, []genType) {
	from, s, _ := g.from(depth - 1)
	in, is, _ := g.from(depth - 1)
	both := append(append(scope{}, s...), is...)
	cols, ts := g.columns(s)
	t := genType(g.n(4))
	where := g.equal(s, is)
	if g.n(2) == 0 {
		where = g.condition(both, 2)
	}
	switch g.n(4) {
	case 0:
		return fmt.Sprintf("SELECT %s FROM %s WHERE %sEXISTS (SELECT 1 FROM %s WHERE %s)", cols, from, g.pick("", "NOT "), in, where), ts
	case 1:
		return fmt.Sprintf("SELECT %s FROM %s WHERE %s %sIN (SELECT %s FROM %s WHERE %s)", cols, from, g.expr(s, t, 1), g.pick("", "NOT "), g.expr(is, t, 1), in, where), ts
	case 2:
		return fmt.Sprintf("SELECT %s, (SELECT max(%s) FROM %s WHERE %s) AS c%d FROM %s", cols, g.expr(is, t, 1), in, where, len(ts), from), append(ts, t)
	}
	a := g.alias()
	e := g.expr(is, t, 1)
	return fmt.Sprintf("SELECT %s, %s.v AS c%d FROM %s %s JOIN LATERAL (SELECT %s AS v FROM %s WHERE %s ORDER BY 1 LIMIT 2) AS %s ON true", cols, a, len(ts), from, g.pick("INNER", "LEFT"), e, in, where, a), append(ts, t)
}
