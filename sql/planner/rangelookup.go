package planner

import (
	"strings"
	"unicode/utf8"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// RangeLookup: a read of a collection that is filtered by values of the first
// columns of a key, or by bounds or a prefix of the one after them, finds its rows
// in the order of the key. So are whole keys of types whose equality is not that of
// bits. The filter stays.
//
//	SELECT * FROM t WHERE a = 1 AND b >= 5 AND b < 9   (an index by (a, b))
//	  →  Get t lookup=(a = 1 AND b >= 5 AND b < 9)
func (o *optimizer) rangeLookup(g *plan.Get, preds []expr.Expr) *plan.Lookup {
	if !o.on("RangeLookup") {
		return nil
	}
	var best *plan.Lookup
	most := 0
	fixed := fixedValues(g, preds)
	for _, ix := range o.opts.Indexes(g.ID) {
		if ix.Useless != "" || len(ix.Key) == 0 || !impliesAll(g, preds, ix.Preds) {
			continue
		}
		l := rangeBy(ix, g, preds, withExprs(ix, g, preds, fixed), maxLookups)
		if n := weight(l); n > most {
			best, most = l, n
		}
	}
	return best
}

// weight is how much a range says of its key: the more, the fewer rows it has.
func weight(l *plan.Lookup) int {
	n := 3 * len(l.Values[0])
	if l.Lower != nil {
		n++
	}
	if l.Upper != nil {
		n++
	}
	return n
}

// rangeBy is the ranges of an index's order that preds allow, of at most so many
// different values: all of it, if they say nothing.
func rangeBy(ix Index, g *plan.Get, preds []expr.Expr, fixed map[int][]expr.Expr, most int) *plan.Lookup {
	l := &plan.Lookup{Index: ix.ID, Key: ix.Key, Unique: ix.Unique, Ordered: true, Names: ix.Names, Values: [][]expr.Expr{nil}}
	for i, k := range ix.Key {
		vals := fixed[k]
		if len(vals) == 0 || len(l.Values)*len(vals) > most || most == 1 && anyOf(vals) {
			is, t := keyPart(ix, g, i)
			if is != nil {
				l.Lower, l.Upper = boundsBy(preds, is, t)
			}
			break
		}
		var next [][]expr.Expr
		for _, prefix := range l.Values {
			for _, v := range vals {
				next = append(next, append(prefix[:len(prefix):len(prefix)], v))
			}
		}
		l.Values = next
	}
	return l
}

// keyPart recognizes a part of an index's key among expressions over a read; nil if
// the read does not have it.
func keyPart(ix Index, g *plan.Get, part int) (is func(e expr.Expr) bool, t types.Type) {
	k := ix.Key[part]
	if k < 0 {
		x := ix.Exprs[-1-k]
		return func(e expr.Expr) bool { return expr.Equal(overTable(expr.StripRelabel(e), g), x) }, x.Type()
	}
	at := sourceAt(g, k)
	if at < 0 {
		return nil, types.Type{}
	}
	return func(e expr.Expr) bool {
		c, ok := expr.StripRelabel(e).(*expr.Column)
		return ok && c.Index == at
	}, g.Cols[at].Type
}

// boundsBy are the bounds that preds set to what is recognizes, of type t.
func boundsBy(preds []expr.Expr, is func(e expr.Expr) bool, t types.Type) (lower, upper *plan.Bound) {
	for _, p := range conjuncts(preds) {
		lo, hi := boundsOf(p, is, t)
		lower = tighter(lower, lo, ">")
		upper = tighter(upper, hi, "<")
	}
	return lower, upper
}

// boundsOf are the bounds that one condition sets.
func boundsOf(p expr.Expr, is func(e expr.Expr) bool, t types.Type) (lower, upper *plan.Bound) {
	switch p := p.(type) {
	case *expr.Logic:
		if p.And {
			return boundsBy(p.Args, is, t)
		}
		return commonBounds(p.Args, is, t)
	case *expr.Call:
		if len(p.Args) != 2 {
			return nil, nil
		}
		if isComparison(p.Fn) {
			return comparisonBounds(p, is, t)
		}
		if prefix, ok := prefixOf(p); ok && is(p.Args[0]) && sameForm(types.Text, t) {
			lower = &plan.Bound{Value: expr.TextConst(prefix)}
			if next, ok := successor(prefix); ok {
				upper = &plan.Bound{Value: expr.TextConst(next), Open: true}
			}
		}
	}
	return lower, upper
}

// comparisonBounds are the bounds that a comparison sets: both, if it is an
// equality.
func comparisonBounds(p *expr.Call, is func(e expr.Expr) bool, t types.Type) (lower, upper *plan.Bound) {
	op, value := p.Fn.Name, p.Args[1]
	if !is(p.Args[0]) {
		if !is(p.Args[1]) {
			return nil, nil
		}
		value = p.Args[0]
		op = mirrored(op)
	}
	if value = keyValue(value, t); value == nil {
		return nil, nil
	}
	b := &plan.Bound{Value: value, Open: op == "<" || op == ">"}
	switch op {
	case ">", ">=":
		return b, nil
	case "<", "<=":
		return nil, b
	case "=":
		return b, b
	}
	return nil, nil
}

// mirrored is the comparison with its sides exchanged.
func mirrored(op string) string {
	switch op {
	case "<", "<=":
		return ">" + op[1:]
	case ">", ">=":
		return "<" + op[1:]
	}
	return op
}

// commonBounds are bounds that hold in every branch of an OR: those that all have,
// as in (a > 1 OR a = 1 AND b > 2), which is what (a, b) > (1, 2) means.
func commonBounds(branches []expr.Expr, is func(e expr.Expr) bool, t types.Type) (lower, upper *plan.Bound) {
	for i, b := range branches {
		lo, hi := boundsOf(b, is, t)
		if i == 0 {
			lower, upper = lo, hi
			continue
		}
		lower, upper = looser(lower, lo), looser(upper, hi)
	}
	return lower, upper
}

// looser is a bound on the same value that both imply.
func looser(a, b *plan.Bound) *plan.Bound {
	if a == nil || b == nil || !expr.Equal(a.Value, b.Value) {
		return nil
	}
	return &plan.Bound{Value: a.Value, Open: a.Open && b.Open}
}

// tighter is one of two bounds that both hold; op compares those of constants.
func tighter(a, b *plan.Bound, op string) *plan.Bound {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	e, err := expr.NewOp(op, b.Value, a.Value, 0)
	if err == nil && isTrue(e) || b.Open && !a.Open && expr.Equal(a.Value, b.Value) {
		return b
	}
	return a
}

// prefixOf is what the texts begin with for which a condition on the first argument
// holds: LIKE, ^@, starts_with and ~ with an anchor.
func prefixOf(p *expr.Call) (string, bool) {
	c, ok := p.Args[1].(*expr.Const)
	if !ok || c.Val.Null(0) || !sameForm(c.Typ, types.Text) {
		return "", false
	}
	text := string(c.Val.Bytes(0))
	switch {
	case p.Fn.Operator && p.Fn.Name == "~~":
		text = likePrefix(text)
	case p.Fn.Operator && p.Fn.Name == "^@", p.Fn.Name == "starts_with":
	case p.Fn.Operator && p.Fn.Name == "~":
		text = regexPrefix(text)
	default:
		return "", false
	}
	return text, text != "" && utf8.ValidString(text)
}

// likePrefix is the text before the first wildcard of a LIKE pattern.
func likePrefix(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '%', '_':
			return b.String()
		case '\\':
			if i++; i == len(pattern) {
				return b.String()
			}
		}
		b.WriteByte(pattern[i])
	}
	return b.String()
}

// regexPrefix is the letters and digits after the anchor of a regular expression.
func regexPrefix(pattern string) string {
	if !strings.HasPrefix(pattern, "^") || strings.Contains(pattern, "|") {
		return ""
	}
	plain := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == ' ' || c == '-'
	}
	n := 1
	for n < len(pattern) && plain(pattern[n]) {
		n++
	}
	if n > 1 && n < len(pattern) && strings.IndexByte("*?{", pattern[n]) >= 0 {
		n-- // the last one may be missing
	}
	if n < len(pattern) && pattern[n] >= 0x80 {
		return "" // perhaps a combination
	}
	return pattern[1:n]
}

// successor is the least text after all that begin with a prefix.
func successor(prefix string) (string, bool) {
	for len(prefix) > 0 {
		r, n := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-n]
		switch {
		case r == 0xD7FF:
			return prefix + string(rune(0xE000)), true
		case r < utf8.MaxRune:
			return prefix + string(r+1), true
		}
	}
	return "", false
}
