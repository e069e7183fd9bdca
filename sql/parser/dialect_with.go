package parser

import (
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// mutual reads the limit and the items that follow WITH MUTUALLY RECURSIVE.
func (d *dialect) mutual(toks []token, i int) {
	var limit []*pg.Node
	if isOp(toks[i], "(") {
		end := closeParen(toks, i)
		limit = d.limit(toks[i+1 : end])
		d.erase(toks[i].start, toks[end].end)
		i = end + 1
	}
	for {
		name := toks[i]
		if !isOp(toks[i+1], "(") {
			d.fail(toks[i+1].start, "WITH MUTUALLY RECURSIVE needs the columns of \"%s\" and their types", name.val)
			return
		}
		end := closeParen(toks, i+1)
		item := &mutualItem{limit: limit}
		limit = nil
		d.items[int32(name.start)] = item
		d.columns(toks[i+2:end], toks[end], item)
		// AS (query), and on to the next item.
		i = end + 1
		for i < len(toks)-1 && !isOp(toks[i], "(") {
			i++
		}
		i = closeParen(toks, i) + 1
		if i >= len(toks)-1 || !isOp(toks[i], ",") || d.err != nil {
			return
		}
		i++
	}
}

// limit reads [RETURN AT | ERROR AT] RECURSION LIMIT [=] n.
func (d *dialect) limit(toks []token) []*pg.Node {
	kind, i := int32(LimitReturns), 0
	at := func(word string) bool {
		if i < len(toks) && isWord(toks[i], word) {
			i++
			return true
		}
		return false
	}
	if at("error") {
		kind = LimitFails
		at("at")
	} else if at("return") {
		at("at")
	} else {
		kind = LimitFails
	}
	if !at("recursion") || !at("limit") {
		if len(toks) > 0 {
			d.fail(toks[0].start, "expected RECURSION LIMIT")
		}
		return nil
	}
	if i < len(toks) && isOp(toks[i], "=") {
		i++
	}
	if i == len(toks)-1 && toks[i].kind == tokNumber {
		if n, err := strconv.ParseInt(d.text[toks[i].start:toks[i].end], 10, 32); err == nil && n > 0 {
			return []*pg.Node{pg.MakeIntNode(int64(kind)), pg.MakeIntNode(n)}
		}
	}
	d.fail(toks[len(toks)-1].start, "RECURSION LIMIT must be a number greater than zero")
	return nil
}

// columns reads `name type, …` up to the closing parenthesis.
func (d *dialect) columns(toks []token, closing token, item *mutualItem) {
	for i := 0; i < len(toks); {
		j, depth := i, 0
		for j < len(toks) && (depth > 0 || !isOp(toks[j], ",")) {
			if isOp(toks[j], "(") {
				depth++
			} else if isOp(toks[j], ")") {
				depth--
			}
			j++
		}
		end := closing.start
		if j < len(toks) {
			end = toks[j].start
		}
		if j-i < 2 {
			d.fail(end, "expected the type of the column")
			return
		}
		lo := toks[i+1].start
		typ, err := ParseType(d.text[lo:toks[j-1].end])
		if err != nil {
			d.fail(lo, "%s", pgerror.As(err).Message)
			return
		}
		item.types = append(item.types, &pg.Node{Node: &pg.Node_TypeName{TypeName: typ.Node}})
		d.erase(lo, toks[j-1].end)
		i = j + 1
	}
}

// afterQualify are the words that end the condition of QUALIFY.
var afterQualify = map[string]bool{
	"order": true, "limit": true, "offset": true, "fetch": true, "for": true, "window": true,
	"union": true, "intersect": true, "except": true,
}

// qualify takes the condition at token i out, if it belongs to a SELECT.
func (d *dialect) qualify(toks []token, i int) {
	list := selectList(toks, i)
	if list < 0 || i+1 >= len(toks)-1 || isOp(toks[i+1], ",") || isOp(toks[i+1], ")") || isOp(toks[i+1], ".") || isOp(toks[i-1], ".") || isOp(toks[i-1], ",") || isWord(toks[i-1], "as") {
		return
	}
	end, depth := i+1, 0
	for ; end < len(toks)-1; end++ {
		t := toks[end]
		if isOp(t, "(") {
			depth++
		} else if isOp(t, ")") {
			if depth--; depth < 0 {
				break
			}
		} else if depth == 0 && (t.kind == tokWord && afterQualify[t.val] || isOp(t, ";")) {
			break
		}
	}
	lo, hi := toks[i].start, toks[end-1].end
	// This condition alone, in the same place.
	targets := d.parseAt(toks[i].end, hi)
	if len(targets) != 1 || targets[0].GetResTarget().Name != "" {
		return // not our clause: the word is a name
	}
	d.quals[int32(toks[list].start)] = targets[0].GetResTarget().Val
	d.erase(lo, hi)
}

// selectList is the token with which the list of the SELECT begins that token i
// belongs to, -1 if it belongs to none.
func selectList(toks []token, i int) int {
	depth := 0
	for j := i - 1; j >= 0; j-- {
		switch {
		case isOp(toks[j], ")"):
			depth++
		case isOp(toks[j], "("):
			if depth--; depth < 0 {
				return -1
			}
		case depth == 0 && isWord(toks[j], "select"):
			j++
			if isWord(toks[j], "all") {
				j++
			} else if isWord(toks[j], "distinct") {
				if j++; isWord(toks[j], "on") && isOp(toks[j+1], "(") {
					j = closeParen(toks, j+1) + 1
				}
			}
			return j
		}
	}
	return -1
}

// hints erases Materialize's OPTIONS (AGGREGATE INPUT GROUP SIZE = n, …), which there is
// no use for.
func (d *dialect) hints(toks []token, i int) {
	switch toks[i+2].val {
	case "aggregate", "distinct", "limit", "expected":
	default:
		return
	}
	for k := i + 2; k < len(toks) && toks[k].kind != tokEOF; k++ {
		if isOp(toks[k], ")") {
			d.erase(toks[i].start, toks[k].end)
			return
		}
	}
}
