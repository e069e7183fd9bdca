package parser

import (
	"errors"
	"sort"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	pgparser "github.com/pganalyze/pg_query_go/v6/parser"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Statements may have what PostgreSQL's grammar does not know:
//
//	WITH MUTUALLY RECURSIVE [(limit)] name (column type, …) AS (query), …
//	SELECT … QUALIFY condition …
//	SELECT * EXCEPT (column, …)
//	query UNION … CORRESPONDING [BY (column, …)] query
//	f(x IGNORE NULLS) OVER …, f(x) IGNORE NULLS OVER …
//	AGGREGATE:f(x ORDER BY …)
//	f(a, |x, y| expression)
//	ARRAY[…][subscript]
//	MAP {key: value, …}, MAP[key => value, …], LIST[…]
//	the types struct<name type, …>, map(type, type), map[type => type] and type LIST
//
// They are edited out of the text, or into something that PostgreSQL's grammar
// can parse. Its tree is given the positions of the text as it was, and what was
// edited out is added where the tree has room:
//
//   - the types of columns as CommonTableExpr.Ctecoltypes; the limit, as an
//     integer each, as Ctecoltypmods of the first item;
//   - the condition of QUALIFY as an operand of HAVING, a call of a function
//     whose name no SQL can spell;
//   - the columns of EXCEPT as ResTarget.Indirection;
//   - CORRESPONDING as SelectStmt.WindowClause of the set operation: a marker,
//     then the names;
//   - IGNORE NULLS as a schema of the function's name; a lambda as a call of a
//     marker, of the parameters' names and the expression;
//   - a type as TypeName.Names with a marker, and its parts as Typmods.

// The markers are names that no SQL can spell.
const (
	QualifyMarker       = "\x00qualify"
	CorrespondingMarker = "\x00corresponding"
	IgnoreNullsMarker   = "\x00ignore nulls"
	LambdaMarker        = "\x00lambda"
	StructMarker        = "\x00struct"
	MapMarker           = "\x00map"
)

// The kinds of limits of WITH MUTUALLY RECURSIVE, the first of Ctecoltypmods.
const (
	LimitReturns = 1
	LimitFails   = 2
)

// dialect is the extra clauses of a text, by the positions of what they belong to.
type dialect struct {
	text  string
	edits []edit
	items map[int32]*mutualItem
	quals map[int32]*pg.Node   // by the position of the select list
	stars map[int32][]*pg.Node // EXCEPT, by the position of its target
	sets  map[int32][]*pg.Node // CORRESPONDING, by the position of the right query's first target
	calls map[int32]*callMark  // by the position of the function's name
	types []*pg.TypeName
	err   *pgerror.Error
}

// edit replaces text[start:end].
type edit struct {
	start, end int
	with       string
}

// mutualItem is an item of WITH MUTUALLY RECURSIVE.
type mutualItem struct {
	types []*pg.Node
	limit []*pg.Node
}

// callMark is what was said in a function call.
type callMark struct {
	ignoreNulls, aggregate bool
	lambdas                map[int][]string // parameters, by the number of the argument
}

// needsDialect reports whether a text may have what PostgreSQL's grammar would
// take for something else.
func needsDialect(text string) bool {
	return strings.IndexByte(text, '|') >= 0 && lambdaLike(text) || containsFold(text, "map") || containsFold(text, "asof") || containsFold(text, "list")
}

// lambdaLike reports whether a bar follows a comma or a parenthesis.
func lambdaLike(text string) bool {
	for i := strings.IndexByte(text, '|'); i >= 0; {
		before := strings.TrimRight(text[:i], " \t\r\n")
		if before != "" && (before[len(before)-1] == ',' || before[len(before)-1] == '(') {
			return true
		}
		next := strings.IndexByte(text[i+1:], '|')
		if next < 0 {
			return false
		}
		i += 1 + next
	}
	return false
}

// containsFold is strings.Contains of a lower-case word in text of any case.
func containsFold(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i]|0x20 == word[0] && strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// parseDialect parses a text that has clauses of ours; ok tells whether it has.
func parseDialect(text string) (stmts []*pg.Node, ok bool, err error) {
	d := &dialect{
		text: text, items: map[int32]*mutualItem{}, quals: map[int32]*pg.Node{},
		stars: map[int32][]*pg.Node{}, sets: map[int32][]*pg.Node{}, calls: map[int32]*callMark{},
	}
	d.scan()
	if d.err != nil {
		return nil, true, d.err
	}
	if len(d.edits) == 0 {
		return nil, false, nil
	}
	edited := d.apply()
	res, err := grammarTree(edited)
	if err != nil {
		return nil, true, d.moved(edited, err)
	}
	for _, st := range res.Stmts {
		d.attach(st.Stmt.ProtoReflect())
		if d.err != nil {
			return nil, true, d.err
		}
		stmts = append(stmts, st.Stmt)
	}
	return stmts, true, nil
}

// replace edits text[start:end].
func (d *dialect) replace(start, end int, with string) {
	d.edits = append(d.edits, edit{start, end, with})
}

// erase blanks a part of the text out.
func (d *dialect) erase(lo, hi int) {
	blank := []byte(d.text[lo:hi])
	for i, c := range blank {
		if c != '\n' {
			blank[i] = ' '
		}
	}
	d.replace(lo, hi, string(blank))
}

// apply makes the edited text. Edits inside of others are dropped.
func (d *dialect) apply() string {
	sort.SliceStable(d.edits, func(i, j int) bool {
		a, b := d.edits[i], d.edits[j]
		return a.start < b.start || a.start == b.start && a.end > b.end
	})
	var b strings.Builder
	at, kept := 0, d.edits[:0]
	for _, e := range d.edits {
		if e.start < at {
			continue
		}
		b.WriteString(d.text[at:e.start])
		b.WriteString(e.with)
		at = e.end
		kept = append(kept, e)
	}
	d.edits = kept
	b.WriteString(d.text[at:])
	return b.String()
}

// original is the offset in the text of an offset in the edited text.
func (d *dialect) original(at int) int {
	shift := 0 // of the edited text against the text
	for _, e := range d.edits {
		start := e.start + shift
		if at < start {
			break
		}
		if at < start+len(e.with) {
			if len(e.with) == e.end-e.start {
				return at - shift
			}
			return e.start
		}
		shift += len(e.with) - (e.end - e.start)
	}
	return at - shift
}

// moved gives an error of the edited text its place in the text.
func (d *dialect) moved(edited string, err error) error {
	var e *pgparser.Error
	if !errors.As(err, &e) || e.Cursorpos <= 0 {
		return err
	}
	at := len(edited)
	n := 0
	for i := range edited {
		if n++; n == e.Cursorpos {
			at = i
			break
		}
	}
	out := *e
	out.Cursorpos = Position(d.text, d.original(at))
	return &out
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
		switch {
		case d.err != nil:
			return
		case t.kind == tokWord:
			d.word(toks, i)
		case t.kind == tokOp && t.val[0] == '|' && i > 0 && (isOp(toks[i-1], "(") || isOp(toks[i-1], ",")):
			d.lambda(toks, i)
		}
	}
}

// word looks for a clause that begins with a word.
func (d *dialect) word(toks []token, i int) {
	t := toks[i]
	switch {
	case t.val == "mutually" && i > 0 && isWord(toks[i-1], "with") && isWord(toks[i+1], "recursive"):
		d.erase(t.start, t.end)
		d.mutual(toks, i+2)
	case t.val == "qualify":
		d.qualify(toks, i)
	case t.val == "except" && i > 0 && isOp(toks[i-1], "*") && isOp(toks[i+1], "("):
		d.exceptColumns(toks, i)
	case t.val == "options" && isOp(toks[i+1], "(") && i+3 < len(toks):
		d.hints(toks, i)
	case t.val == "for" && (isWord(toks[i+1], "system_time") || isWord(toks[i+1], "system_version")):
		d.absent(t.start, "FOR "+strings.ToUpper(toks[i+1].val)+" AS OF", "AS OF at the end of a query reads all its relations as they were, while that is kept.")
	case t.val == "asof" && i > 0 && !isWord(toks[i-1], "as") && (isWord(toks[i+1], "join") || isWord(toks[i+1], "left") || isWord(toks[i+1], "inner")):
		d.absent(t.start, "ASOF JOIN", "Join LATERAL (SELECT ... WHERE right.time <= left.time ORDER BY right.time DESC LIMIT 1); write AS asof for an alias.")
	case t.val == "corresponding":
		d.corresponding(toks, i)
	case (t.val == "ignore" || t.val == "respect") && isWord(toks[i+1], "nulls"):
		d.nullTreatment(toks, i)
	case t.val == "aggregate" && isOp(toks[i+1], ":") && toks[i+2].kind == tokWord:
		d.erase(t.start, toks[i+1].end)
		d.mark(toks[i+2].start).aggregate = true
	case t.val == "array" && isOp(toks[i+1], "["):
		d.subscripted(toks, i)
	case t.val == "list" && isOp(toks[i+1], "["):
		d.listLiteral(toks, i)
	case t.val == "list" && i > 0:
		d.listType(toks, i)
	case t.val == "map" && isOp(toks[i+1], "{"):
		d.mapLiteral(toks, i)
	case t.val == "map" && isOp(toks[i+1], "[") && startsType(toks, i) && !d.inside(t.start):
		d.mapType(toks, i)
	case t.val == "map" && isOp(toks[i+1], "["):
		d.replace(t.start, t.end, "")
		d.mapBrackets(toks, i+1)
	case t.val == "struct" && toks[i+1].kind == tokOp && toks[i+1].val[0] == '<' && !d.inside(t.start):
		d.structType(toks, i)
	case t.val == "map" && isOp(toks[i+1], "(") && startsType(toks, i) && !d.inside(t.start):
		d.mapType(toks, i)
	}
}

func isWord(t token, val string) bool { return t.kind == tokWord && t.val == val }

func isOp(t token, val string) bool { return t.kind == tokOp && t.val == val }

// inside reports whether an edit covers a place.
func (d *dialect) inside(at int) bool {
	for _, e := range d.edits {
		if e.start <= at && at < e.end {
			return true
		}
	}
	return false
}

// absent says that a clause of RisingWave's is not there.
func (d *dialect) absent(at int, what, hint string) {
	if d.err == nil {
		d.err = pgerror.Unsupported(what).WithHint("%s", hint).At(Position(d.text, at))
	}
}

func (d *dialect) fail(at int, format string, args ...any) {
	if d.err == nil {
		d.err = pgerror.New(pgerror.SyntaxError, format, args...).At(Position(d.text, at))
	}
}

// closeParen is the index of the parenthesis that closes the one at i.
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

// attach puts the clauses in their places in the tree, after it got the
// positions of the text.
func (d *dialect) attach(m protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Kind() == protoreflect.Int32Kind && !fd.IsList() && strings.HasSuffix(string(fd.Name()), "location") && v.Int() >= 0 {
			m.Set(fd, protoreflect.ValueOfInt32(int32(d.original(int(v.Int())))))
		}
		return true
	})
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
	switch n := m.Interface().(type) {
	case *pg.CommonTableExpr:
		if item := d.items[n.Location]; item != nil {
			n.Ctecoltypes, n.Ctecoltypmods = item.types, item.limit
		}
	case *pg.SelectStmt:
		d.attachSelect(n)
	case *pg.ResTarget:
		n.Indirection = append(n.Indirection, d.stars[n.Location]...)
	case *pg.FuncCall:
		if mark := d.calls[n.Location]; mark != nil {
			mark.attach(n)
		}
	case *pg.TypeName:
		d.attachType(n)
	}
}

// attachSelect attaches QUALIFY and CORRESPONDING.
func (d *dialect) attachSelect(n *pg.SelectStmt) {
	if len(n.TargetList) > 0 {
		if cond := d.quals[n.TargetList[0].GetResTarget().GetLocation()]; cond != nil {
			mark := pg.MakeFuncCallNode([]*pg.Node{pg.MakeStrNode(QualifyMarker)}, []*pg.Node{proto.Clone(cond).(*pg.Node)}, -1)
			if n.HavingClause != nil {
				mark = pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, []*pg.Node{n.HavingClause, mark}, -1)
			}
			n.HavingClause = mark
		}
	}
	if n.Rarg == nil || len(d.sets) == 0 {
		return
	}
	right := n.Rarg
	for right.Larg != nil {
		right = right.Larg
	}
	if len(right.TargetList) > 0 {
		n.WindowClause = d.sets[right.TargetList[0].GetResTarget().GetLocation()]
	}
}
