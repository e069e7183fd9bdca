package parser

import (
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
)

// mark is what is to be said of the call whose name begins at a place.
func (d *dialect) mark(at int) *callMark {
	m := d.calls[int32(at)]
	if m == nil {
		m = &callMark{lambdas: map[int][]string{}}
		d.calls[int32(at)] = m
	}
	return m
}

// parseAt parses a list of expressions, with the positions that it has in the text.
func (d *dialect) parseAt(lo, hi int) []*pg.Node {
	stmts, err := parseTree(strings.Repeat(" ", max(lo-len("SELECT "), 0)) + "SELECT " + d.text[lo:hi])
	if err != nil || len(stmts) != 1 {
		return nil
	}
	return stmts[0].GetSelectStmt().GetTargetList()
}

// exceptColumns takes EXCEPT (columns) behind a star out.
func (d *dialect) exceptColumns(toks []token, i int) {
	switch first := toks[i+2]; {
	case isWord(first, "select"), isWord(first, "values"), isWord(first, "with"), isWord(first, "table"), isOp(first, "("):
		return // a set operation
	}
	end := closeParen(toks, i+1)
	at := i - 1 // the first token of the target
	for at >= 2 && isOp(toks[at-1], ".") {
		at -= 2
	}
	var cols []*pg.Node
	for _, t := range d.parseAt(toks[i+1].end, toks[end].start) {
		cols = append(cols, t.GetResTarget().Val)
	}
	if cols == nil {
		return
	}
	d.stars[int32(toks[at].start)] = cols
	d.erase(toks[i].start, toks[end].end)
}

// corresponding takes CORRESPONDING [BY (names)] behind a set operation out.
func (d *dialect) corresponding(toks []token, i int) {
	before := i - 1
	if before > 0 && (isWord(toks[before], "all") || isWord(toks[before], "distinct")) {
		before--
	}
	if before < 0 || !isWord(toks[before], "union") && !isWord(toks[before], "intersect") && !isWord(toks[before], "except") {
		return
	}
	mark := []*pg.Node{pg.MakeStrNode(CorrespondingMarker)}
	end := i
	if isWord(toks[i+1], "by") && isOp(toks[i+2], "(") {
		end = closeParen(toks, i+2)
		for _, t := range toks[i+3 : end] {
			if identToken(t) {
				mark = append(mark, pg.MakeStrNode(t.val))
			}
		}
	}
	d.erase(toks[i].start, toks[end].end)
	// The first target of the query that follows.
	j := end + 1
	for j < len(toks)-1 && !isWord(toks[j], "select") {
		j++
	}
	if j >= len(toks)-1 {
		d.fail(toks[i].start, "CORRESPONDING needs a SELECT on its right side")
		return
	}
	d.sets[int32(toks[selectList(toks, j+1)].start)] = mark
}

// nullTreatment takes IGNORE NULLS or RESPECT NULLS out: behind the arguments of
// a call, or behind its parenthesis.
func (d *dialect) nullTreatment(toks []token, i int) {
	open, depth := i-1, 0
	if open < 0 {
		return
	}
	if after := toks[i+2]; isOp(toks[open], ")") && (isWord(after, "over") || isWord(after, "filter")) {
		open = openParen(toks, open)
	} else {
		for ; open >= 0 && depth >= 0; open-- {
			if isOp(toks[open], ")") {
				depth++
			} else if isOp(toks[open], "(") {
				depth--
			}
		}
		open++
	}
	name := open - 1
	if name < 0 || toks[name].kind != tokWord && toks[name].kind != tokQuoted {
		return
	}
	for name >= 2 && isOp(toks[name-1], ".") {
		name -= 2
	}
	d.erase(toks[i].start, toks[i+1].end)
	if toks[i].val == "ignore" {
		d.mark(toks[name].start).ignoreNulls = true
	}
}

// openParen is the index of the parenthesis that the one at i closes.
func openParen(toks []token, i int) int {
	depth := 0
	for ; i > 0; i-- {
		if isOp(toks[i], ")") {
			depth++
		} else if isOp(toks[i], "(") {
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return i
}

// lambda takes the parameters of `|x, y| expression` out, an argument of a call.
func (d *dialect) lambda(toks []token, i int) {
	if toks[i].val != "|" {
		return
	}
	var params []string
	j := i + 1
	for {
		if !identToken(toks[j]) {
			return
		}
		params = append(params, toks[j].val)
		j++
		if toks[j].kind == tokOp && toks[j].val[0] == '|' {
			break
		}
		if !isOp(toks[j], ",") {
			return
		}
		j++
	}
	// The call that it is an argument of, and the number of the argument.
	open, depth, arg := i-1, 0, 0
	for ; open > 0; open-- {
		t := toks[open]
		switch {
		case t.kind != tokOp:
		case t.val == ")" || t.val == "]" || t.val == "}":
			depth++
		case t.val == "(" || t.val == "[" || t.val == "{":
			depth--
		case t.val == "," && depth == 0:
			arg++
		}
		if depth < 0 {
			break
		}
	}
	name := open - 1
	if name < 0 || toks[name].kind != tokWord && toks[name].kind != tokQuoted {
		return
	}
	for name >= 2 && isOp(toks[name-1], ".") {
		name -= 2
	}
	d.erase(toks[i].start, toks[j].start+1)
	d.mark(toks[name].start).lambdas[arg] = params
}

// subscripted puts parentheses around ARRAY[…] if a subscript follows it.
func (d *dialect) subscripted(toks []token, i int) {
	depth := 0
	for j := i + 1; j < len(toks)-1; j++ {
		if isOp(toks[j], "[") {
			depth++
		} else if isOp(toks[j], "]") {
			if depth--; depth == 0 {
				if isOp(toks[j+1], "[") {
					d.replace(toks[i].start, toks[i].end, "(array")
					d.replace(toks[j].start, toks[j].end, "])")
				}
				return
			}
		}
	}
}

// mapLiteral makes `MAP {key: value, …}` a call in parentheses.
func (d *dialect) mapLiteral(toks []token, i int) {
	d.replace(toks[i].start, toks[i].end, "(map")
	d.replace(toks[i].end, toks[i+1].end, "(")
	depth := 0
	for j := i + 2; j < len(toks)-1; j++ {
		t := toks[j]
		if t.kind != tokOp {
			continue
		}
		switch t.val {
		case "(", "[", "{":
			depth++
		case ")", "]":
			depth--
		case "}":
			if depth == 0 {
				d.replace(t.start, t.end, "))")
				return
			}
			depth--
		case ":":
			if depth == 0 {
				d.replace(t.start, t.end, ",")
			}
		}
	}
	d.fail(toks[i].start, "unterminated MAP literal")
}

// mapBrackets makes `[key => value, …]` behind MAP, or behind another key, a call in
// parentheses.
func (d *dialect) mapBrackets(toks []token, i int) {
	d.replace(toks[i].start, toks[i].end, "(map(")
	depth := 0
	for j := i + 1; j < len(toks)-1; j++ {
		t := toks[j]
		switch {
		case t.kind != tokOp:
		case t.val == "]" && depth == 0:
			d.replace(t.start, t.end, "))")
			return
		case t.val == "=>" && depth == 0:
			d.replace(t.start, t.end, ",")
			if isOp(toks[j+1], "[") {
				d.mapBrackets(toks, j+1)
				j = closeBracket(toks, j+1)
			}
		case t.val == "(" || t.val == "[" || t.val == "{":
			depth++
		case t.val == ")" || t.val == "]" || t.val == "}":
			depth--
		}
	}
	d.fail(toks[i].start, "unterminated MAP literal")
}

// closeBracket is the index of the bracket that closes the one at i.
func closeBracket(toks []token, i int) int {
	depth := 0
	for ; i < len(toks)-1; i++ {
		if isOp(toks[i], "[") {
			depth++
		} else if isOp(toks[i], "]") {
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return i
}

// listLiteral makes LIST[…] an array. LIST[x] may be the subscript of a column, which
// the binder finds out.
func (d *dialect) listLiteral(toks []token, i int) {
	end := closeBracket(toks, i+1)
	several, depth := isOp(toks[i+2], "[") || end == i+2, 0
	for _, t := range toks[i+2 : end] {
		switch {
		case t.kind != tokOp:
		case t.val == "," && depth == 0:
			several = true
		case t.val == "(" || t.val == "[" || t.val == "{":
			depth++
		case t.val == ")" || t.val == "]" || t.val == "}":
			depth--
		}
	}
	if !several || i > 0 && isOp(toks[i-1], ".") {
		return
	}
	if isOp(toks[end+1], "[") {
		d.replace(toks[i].start, toks[i].end, "(array")
		d.replace(toks[end].start, toks[end].end, "])")
		return
	}
	d.replace(toks[i].start, toks[i].end, "array")
}

// listType makes `type LIST` an array type, where LIST can be no name: the types of
// columns and of CAST, and casts of texts in braces.
func (d *dialect) listType(toks []token, i int) {
	at := i - 1
	for at > 0 && isWord(toks[at], "list") {
		at--
	}
	if isOp(toks[at], ")") {
		at = openParen(toks, at) - 1
	} else if isOp(toks[at], "]") {
		at -= 2
	}
	for at > 0 && toks[at].kind == tokWord && twoWordTypes[toks[at].val] {
		at--
	}
	if at < 1 || !identToken(toks[at]) {
		return
	}
	before := toks[at-1]
	switch after := toks[i+1]; {
	case isOp(before, "::"):
		text := toks[max(at-2, 0)]
		braces := text.kind == tokString && strings.HasPrefix(text.val, "{") && strings.HasSuffix(text.val, "}")
		if !braces && !isOp(after, "::") && !isWord(after, "list") && !isOp(after, "[") {
			return
		}
	case isWord(before, "as"):
		if !isOp(after, ")") && !isWord(after, "list") {
			return
		}
	case at > 1 && identToken(before) && startsType(toks, at) && (isOp(after, ",") || isOp(after, ")") || after.kind == tokWord):
	default:
		return
	}
	d.replace(toks[i].start, toks[i].end, "[]")
}

// twoWordTypes are the last words of types of several.
var twoWordTypes = map[string]bool{"precision": true, "varying": true}

// attach says in the tree what is to be said of a call.
func (c *callMark) attach(n *pg.FuncCall) {
	for i, params := range c.lambdas {
		if i >= len(n.Args) {
			continue
		}
		var args []*pg.Node
		for _, p := range params {
			args = append(args, pg.MakeAConstStrNode(p, -1))
		}
		n.Args[i] = pg.MakeFuncCallNode([]*pg.Node{pg.MakeStrNode(LambdaMarker)}, append(args, n.Args[i]), n.Location)
	}
	if c.ignoreNulls {
		n.Funcname = append([]*pg.Node{pg.MakeStrNode(IgnoreNullsMarker)}, n.Funcname...)
	}
	if c.aggregate {
		inner := proto.Clone(n).(*pg.FuncCall)
		inner.Funcname = []*pg.Node{pg.MakeStrNode("array_agg")}
		n.Args = []*pg.Node{{Node: &pg.Node_FuncCall{FuncCall: inner}}}
		n.AggOrder, n.AggFilter, n.Over = nil, nil, nil
		n.AggDistinct, n.AggWithinGroup, n.AggStar = false, false, false
	}
}

// startsType reports whether token i begins a type: of a cast, or of a column.
func startsType(toks []token, i int) bool {
	if i == 0 {
		return false
	}
	t := toks[i-1]
	if isOp(t, "::") || isWord(t, "as") || isWord(t, "type") {
		return true
	}
	return i > 1 && identToken(t) && (isOp(toks[i-2], "(") || isOp(toks[i-2], ",") || isWord(toks[i-2], "column") || isWord(toks[i-2], "add"))
}

// structType takes `struct<name type, …>` out.
func (d *dialect) structType(toks []token, i int) {
	lo := toks[i].start
	inner, end, ok := angles(d.text, toks[i].end)
	if !ok {
		return
	}
	typ := &pg.TypeName{Names: []*pg.Node{pg.MakeStrNode(StructMarker)}, Typemod: -1, Location: int32(lo)}
	for _, part := range splitTop(inner) {
		l := lexer{text: part}
		name := l.next()
		if name.kind == tokEOF && strings.TrimSpace(inner) == "" {
			break
		}
		if name.kind != tokWord && name.kind != tokQuoted {
			d.fail(lo, "expected a name and a type in struct<…>")
			return
		}
		t, err := ParseType(part[name.end:])
		if err != nil {
			d.fail(lo, "%s", asError(err).Message)
			return
		}
		typ.Typmods = append(typ.Typmods, &pg.Node{Node: &pg.Node_ColumnDef{ColumnDef: &pg.ColumnDef{Colname: name.val, TypeName: t.Node}}})
	}
	d.addType(lo, end, typ)
}

// mapType takes `map(type, type)` or `map[type => type]` out.
func (d *dialect) mapType(toks []token, i int) {
	end := closeParen(toks, i+1)
	var parts []string
	if isOp(toks[i+1], "[") {
		end = closeBracket(toks, i+1)
		for j := i + 2; j < end; j++ {
			if isOp(toks[j], "=>") {
				parts = []string{d.text[toks[i+1].end:toks[j].start], d.text[toks[j].end:toks[end].start]}
				break
			}
		}
	} else {
		parts = splitTop(d.text[toks[i+1].end:toks[end].start])
	}
	typ := &pg.TypeName{Names: []*pg.Node{pg.MakeStrNode(MapMarker)}, Typemod: -1, Location: int32(toks[i].start)}
	for _, part := range parts {
		t, err := ParseType(part)
		if err != nil || t.Node == nil {
			return
		}
		typ.Typmods = append(typ.Typmods, &pg.Node{Node: &pg.Node_TypeName{TypeName: t.Node}})
	}
	if len(parts) == 2 {
		d.addType(toks[i].start, toks[end].end, typ)
	}
}

// addType puts a name that stands for a type in the place of its text.
func (d *dialect) addType(lo, hi int, t *pg.TypeName) {
	d.replace(lo, hi, "\"\x01"+strconv.Itoa(len(d.types))+"\"")
	d.types = append(d.types, t)
}

// attachType puts a type in the place of the name that stands for it.
func (d *dialect) attachType(n *pg.TypeName) {
	if len(n.Names) != 1 {
		return
	}
	num, ok := strings.CutPrefix(n.Names[0].GetString_().GetSval(), "\x01")
	if !ok {
		return
	}
	if i, err := strconv.Atoi(num); err == nil && i < len(d.types) {
		n.Names, n.Typmods = d.types[i].Names, d.types[i].Typmods
	}
}

// angles finds the text between the angle bracket at or after start and the one
// that closes it, and the end of that.
func angles(text string, start int) (inner string, end int, ok bool) {
	l := lexer{text: text, pos: start}
	depth, from := 0, 0
	for {
		t := l.next()
		switch t.kind {
		case tokEOF, tokBad:
			return "", 0, false
		case tokOp:
			for i, c := range []byte(t.val) {
				switch c {
				case '<':
					if depth++; depth == 1 {
						from = t.start + i + 1
					}
				case '>':
					if depth--; depth == 0 {
						return text[from : t.start+i], t.start + i + 1, true
					}
				}
			}
		}
	}
}

// splitTop cuts a text at the commas outside of all brackets.
func splitTop(text string) []string {
	var out []string
	l := lexer{text: text}
	depth, from := 0, 0
	for {
		t := l.next()
		switch t.kind {
		case tokEOF, tokBad:
			return append(out, text[from:])
		case tokOp:
			for _, c := range []byte(t.val) {
				switch c {
				case '<', '(', '[':
					depth++
				case '>', ')', ']':
					depth--
				case ',':
					if depth == 0 {
						out = append(out, text[from:t.start])
						from = t.end
					}
				}
			}
		}
	}
}
