package oracle

import "math/rand"

// pathGen makes random JSON paths.
type pathGen struct{ r *rand.Rand }

func (g pathGen) pick(s ...string) string { return s[g.r.Intn(len(s))] }

func (g pathGen) expr(depth int, inFilter, inSubscript bool) string {
	if depth == 0 {
		s := []string{"$", "1", "2.50", "-1", `"x"`, "true", "false", "null", `$v`, `$"w x"`, "$", "$.a", "-3", "+7"}
		if inFilter {
			s = append(s, "@", "@", "@", "@.a", "@.b[0]")
		}
		if inSubscript {
			s = append(s, "last", "last", "0", "1")
		}
		return g.pick(s...)
	}
	sub := func() string { return g.expr(depth-1, inFilter, inSubscript) }
	switch g.r.Intn(7) {
	case 0:
		return sub() + g.pick(" + ", " - ", " * ", "/", " % ") + sub()
	case 1:
		return g.pick("-", "+", "- ") + sub()
	case 2:
		return "(" + sub() + ")"
	case 3:
		return "(" + g.pred(depth-1, inFilter, inSubscript) + ")" + g.accessor(depth-1, inFilter)
	}
	return sub() + g.accessor(depth-1, inFilter)
}

func (g pathGen) accessor(depth int, inFilter bool) string {
	switch g.r.Intn(8) {
	case 0:
		return g.pick(".a", ".b", `."k y"`, ".abs", ".is", ".Last", ".type", `."äö"`, `.\x41b`)
	case 1:
		return ".*"
	case 2:
		return ".**" + g.pick("", "{0}", "{1}", "{last}", "{1 to 2}", "{0 to last}", "{1 to last}", "{last to 2}")
	case 3:
		return "[*]"
	case 4:
		s := g.expr(depth, inFilter, true)
		if g.r.Intn(2) == 0 {
			s += " to " + g.expr(0, inFilter, true)
		}
		return "[" + s + g.pick("", ", 1", ",last") + "]"
	case 5:
		return " ? (" + g.pred(depth, true, false) + ")"
	}
	return g.pick(".type()", ".size()", ".abs()", ".floor()", ".ceiling()", ".double()", ".keyvalue()", ".datetime()", `.datetime("YYYY")`)
}

func (g pathGen) pred(depth int, inFilter, inSubscript bool) string {
	e := func() string { return g.expr(max(depth-1, 0), inFilter, inSubscript) }
	if depth > 0 {
		p := func() string { return g.pred(depth-1, inFilter, inSubscript) }
		switch g.r.Intn(7) {
		case 0:
			return p() + g.pick(" && ", " || ") + p()
		case 1:
			return "!(" + p() + ")"
		case 2:
			return "(" + p() + ")"
		case 3:
			return "(" + p() + ") is unknown"
		}
	}
	switch g.r.Intn(5) {
	case 0:
		return "exists(" + e() + ")"
	case 1:
		return e() + " starts with " + g.pick(`"x"`, `$v`)
	case 2:
		return e() + ` like_regex ` + g.pick(`"^a.b"`, `"a"`, `"("`) + g.pick("", ` flag "i"`, ` flag "qi"`, ` flag "sm"`, ` flag "x"`, ` flag "y"`)
	}
	return e() + " " + g.pick("==", "!=", "<>", "<", ">", "<=", ">=") + " " + e()
}

// JSONPath makes a random JSON path.
func JSONPath(r *rand.Rand) string {
	g := pathGen{r}
	s := g.pick("", "", "strict ", "lax ")
	if g.r.Intn(3) == 0 {
		return s + g.pred(2, false, false)
	}
	return s + g.expr(3, false, false)
}
