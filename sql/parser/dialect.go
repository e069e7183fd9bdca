package parser

import (
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Queries may have two clauses that PostgreSQL's grammar does not know:
//
//	WITH MUTUALLY RECURSIVE [(limit)] name (column type, …) AS (query), …
//	SELECT … QUALIFY condition …
//
// They are blanked out of the text, which PostgreSQL's grammar then parses with
// all positions as they were, and added to the tree where it has room:
//
//   - the types of columns as CommonTableExpr.Ctecoltypes; the limit, as an
//     integer each, as Ctecoltypmods of the first item;
//   - the condition of QUALIFY as an operand of HAVING, a call of a function
//     whose name no SQL can spell.

// QualifyMarker is the name of the function that marks QUALIFY's condition.
const QualifyMarker = "\x00qualify"

// The kinds of limits of WITH MUTUALLY RECURSIVE, the first of Ctecoltypmods.
const (
	LimitReturns = 1
	LimitFails   = 2
)

// dialect is the extra clauses of a text.
type dialect struct {
	text  string
	blank []byte
	items map[int32]*mutualItem
	quals map[int32]*pg.Node // by the position of the select list
	err   *pgerror.Error
}

// mutualItem is an item of WITH MUTUALLY RECURSIVE.
type mutualItem struct {
	types []*pg.Node
	limit []*pg.Node
}

// parseDialect parses a text that PostgreSQL's grammar refuses, if it has
// clauses of ours; ok tells.
func parseDialect(text string) (stmts []*pg.Node, ok bool, err error) {
	lower := strings.ToLower(text)
	if !strings.Contains(lower, "mutually") && !strings.Contains(lower, "qualify") {
		return nil, false, nil
	}
	d := &dialect{text: text, blank: []byte(text), items: map[int32]*mutualItem{}, quals: map[int32]*pg.Node{}}
	d.scan()
	if d.err != nil {
		return nil, true, d.err
	}
	if len(d.items) == 0 && len(d.quals) == 0 {
		return nil, false, nil
	}
	res, err := pg.Parse(string(d.blank))
	if err != nil {
		return nil, true, err
	}
	for _, st := range res.Stmts {
		d.attach(st.Stmt.ProtoReflect())
		stmts = append(stmts, st.Stmt)
	}
	return stmts, true, nil
}

// scan finds the clauses.
func (d *dialect) scan() {
	l := lexer{text: d.text}
	var toks []token
	for {
		t := l.next()
		toks = append(toks, t)
		if t.kind == tokEOF {
			break
		}
	}
	for i, t := range toks {
		if d.err != nil {
			return
		}
		if t.kind != tokWord {
			continue
		}
		switch {
		case t.val == "mutually" && i > 0 && isWord(toks[i-1], "with") && isWord(toks[i+1], "recursive"):
			d.erase(t.start, t.end)
			d.mutual(toks, i+2)
		case t.val == "qualify":
			d.qualify(toks, i)
		}
	}
}

func isWord(t token, val string) bool { return t.kind == tokWord && t.val == val }

func isOp(t token, val string) bool { return t.kind == tokOp && t.val == val }

// erase blanks a part of the text out.
func (d *dialect) erase(lo, hi int) {
	for i := lo; i < hi; i++ {
		if d.blank[i] != '\n' {
			d.blank[i] = ' '
		}
	}
}

func (d *dialect) fail(at int, format string, args ...any) {
	if d.err == nil {
		d.err = pgerror.New(pgerror.SyntaxError, format, args...).At(Position(d.text, at))
	}
}

// close is the index of the parenthesis that closes the one at i.
func closeParen(toks []token, i int) int {
	depth := 0
	for ; i < len(toks)-1; i++ {
		if isOp(toks[i], "(") {
			depth++
		} else if isOp(toks[i], ")") {
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return i
}

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
	// The same text with nothing but this condition, in the same place.
	alone := []byte(strings.Repeat(" ", lo) + "SELECT " + d.text[toks[i].end:hi])
	res, err := pg.Parse(string(alone))
	if err != nil || len(res.Stmts) != 1 {
		return // not our clause: the word is a name
	}
	targets := res.Stmts[0].Stmt.GetSelectStmt().GetTargetList()
	if len(targets) != 1 || targets[0].GetResTarget().Name != "" {
		return
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

// attach puts the clauses in their places in the tree.
func (d *dialect) attach(m protoreflect.Message) {
	switch n := m.Interface().(type) {
	case *pg.CommonTableExpr:
		if item := d.items[n.Location]; item != nil {
			n.Ctecoltypes, n.Ctecoltypmods = item.types, item.limit
		}
	case *pg.SelectStmt:
		if len(n.TargetList) > 0 {
			if cond := d.quals[n.TargetList[0].GetResTarget().GetLocation()]; cond != nil {
				mark := pg.MakeFuncCallNode([]*pg.Node{pg.MakeStrNode(QualifyMarker)}, []*pg.Node{proto.Clone(cond).(*pg.Node)}, -1)
				if n.HavingClause != nil {
					mark = pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, []*pg.Node{n.HavingClause, mark}, -1)
				}
				n.HavingClause = mark
			}
		}
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Kind() != protoreflect.MessageKind:
		case fd.IsList():
			for i := range v.List().Len() {
				d.attach(v.List().Get(i).Message())
			}
		default:
			d.attach(v.Message())
		}
		return true
	})
}
