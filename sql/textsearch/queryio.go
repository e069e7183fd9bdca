package textsearch

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Syntax is a way of writing queries.
type Syntax uint8

// The ways.
const (
	Standard Syntax = iota // operators & | ! <-> and parentheses
	Plain                  // the whole text is one operand
	Web                    // as search engines have it
)

// QueryParser reads a query. Operand is given each operand with its weights and
// prefix, and pushes what becomes of it.
type QueryParser struct {
	Operand func(p *QueryParser, word string, weights uint8, prefix bool) error

	scan     scanner
	syntax   Syntax
	state    parseState
	open     int // parentheses
	stops    bool
	stack    []*Node // operands without an operator yet
	overflow bool    // an operator lacks operands
	tooDeep  bool
	used     int // bytes of the lexemes
}

type parseState uint8

const (
	wantFirst parseState = iota
	wantOperand
	wantOperator
)

type token uint8

const (
	tokenEnd token = iota
	tokenValue
	tokenOperator
	tokenOpen
	tokenClose
	tokenError
)

// ParseQuery appends the query that an input text says.
func ParseQuery(dst []byte, s string) ([]byte, error) {
	p := QueryParser{Operand: (*QueryParser).PushValue}
	n, err := p.Parse(s, Standard)
	if err != nil {
		return dst, err
	}
	return AppendQuery(dst, n)
}

// Parse reads a query; nil if nothing is left of it.
func (p *QueryParser) Parse(s string, syntax Syntax) (*Node, error) {
	p.scan = scanner{all: s, rest: s, query: true, web: syntax == Web}
	p.syntax = syntax
	if err := p.expression(0); err != nil {
		return nil, err
	}
	switch {
	case p.tooDeep:
		return nil, errDepth()
	case p.overflow:
		return nil, errInternal("malformed tsquery: operand not found")
	case len(p.stack) == 0:
		return nil, nil
	case len(p.stack) > 1:
		return nil, errInternal("malformed tsquery: extra nodes")
	}
	root := p.stack[0]
	if p.stops {
		root, _, _ = dropStops(root)
	}
	return root, nil
}

// PushValue pushes a lexeme.
func (p *QueryParser) PushValue(word string, weights uint8, prefix bool) error {
	if len(word) >= MaxWord {
		return pgerror.New(pgerror.ProgramLimitExceeded, "word is too long in tsquery: \"%s\"", p.scan.all)
	}
	if p.used >= maxData {
		return pgerror.New(pgerror.ProgramLimitExceeded, "value is too big in tsquery: \"%s\"", p.scan.all)
	}
	p.used += len(word) + 1
	p.stack = append(p.stack, newValue([]byte(word), weights, prefix))
	return nil
}

// PushStop pushes a stop word: it is dropped in the end.
func (p *QueryParser) PushStop() {
	p.stops = true
	p.stack = append(p.stack, &Node{Op: opStop})
}

// PushOperator makes one of the last operands.
func (p *QueryParser) PushOperator(op Op, distance int16) {
	need := 2
	if op == OpNot {
		need = 1
	}
	n := len(p.stack) - need
	if n < 0 {
		p.overflow = true
		return
	}
	kids := []*Node{p.stack[len(p.stack)-1]}
	if need == 2 {
		kids = append(kids, p.stack[n])
	}
	node := newOp(op, distance, kids...)
	for _, k := range kids {
		node.depth = max(node.depth, k.depth+1)
	}
	p.tooDeep = p.tooDeep || node.depth > maxDepth
	p.stack = append(p.stack[:n], node)
}

var priorities = [...]int{OpNot: 4, OpAnd: 2, OpOr: 1, OpPhrase: 3}

type pendingOp struct {
	op       Op
	distance int16
}

// expression reads up to the closing parenthesis or the end.
func (p *QueryParser) expression(depth int) error {
	if depth > maxDepth {
		return errDepth()
	}
	var pending []pendingOp
	reduce := func(op Op) {
		for n := len(pending); n > 0; n-- {
			last := pending[n-1]
			// Not is right-associative, unlike the others.
			if priorities[op] > priorities[last.op] || op == OpNot && priorities[op] == priorities[last.op] {
				break
			}
			pending = pending[:n-1]
			p.PushOperator(last.op, last.distance)
		}
	}
	for {
		t, op, err := p.next()
		switch {
		case err != nil:
			return err
		case t == tokenEnd, t == tokenClose:
			reduce(OpOr)
			return nil
		case t == tokenOpen:
			err = p.expression(depth + 1)
		case t == tokenError:
			err = p.scan.errSyntax()
		case t == tokenOperator:
			reduce(op.op)
			if len(pending) == 32 {
				return errInternal("tsquery stack too small")
			}
			pending = append(pending, op)
		}
		if err != nil {
			return err
		}
	}
}

func (p *QueryParser) next() (token, pendingOp, error) {
	s := &p.scan
	if p.syntax == Plain {
		if s.rest == "" {
			return tokenEnd, pendingOp{}, nil
		}
		word := s.rest
		s.rest = ""
		return tokenValue, pendingOp{}, p.Operand(p, word, 0, false)
	}
	for {
		var t token
		var op pendingOp
		var err error
		var found bool
		switch {
		case p.state == wantOperator && p.syntax == Web:
			t, op, found = p.webOperator()
		case p.state == wantOperator:
			t, op, found, err = p.operator()
		case p.syntax == Web:
			t, op, found, err = p.webOperand()
		default:
			t, op, found, err = p.operand()
		}
		if found || err != nil {
			return t, op, err
		}
		_, n := utf8.DecodeRuneInString(s.rest)
		s.rest = s.rest[n:]
	}
}

// starts reports whether the rest starts with c.
func (s *scanner) starts(c byte) bool { return s.rest != "" && s.rest[0] == c }

func (s *scanner) atSpace() bool { return s.rest != "" && IsSpace(s.rest) }

// operand looks for an operand, or what may stand before one; found is false at
// white space.
func (p *QueryParser) operand() (t token, op pendingOp, found bool, err error) {
	s := &p.scan
	switch {
	case s.starts('!'):
		s.rest, p.state = s.rest[1:], wantOperand
		return tokenOperator, pendingOp{op: OpNot}, true, nil
	case s.starts('('):
		s.rest, p.state = s.rest[1:], wantOperand
		p.open++
		return tokenOpen, op, true, nil
	case s.starts(':'):
		return tokenError, op, true, nil
	case s.atSpace():
		return tokenEnd, op, false, nil
	}
	word, _, ok, err := s.word()
	switch {
	case err != nil:
		return tokenError, op, true, err
	case ok:
		text := string(word)
		weights, prefix := s.modifiers()
		p.state = wantOperator
		return tokenValue, op, true, p.Operand(p, text, weights, prefix)
	case p.state == wantFirst:
		return tokenEnd, op, true, nil
	}
	return tokenError, op, true, pgerror.New(pgerror.SyntaxError, "no operand in tsquery: \"%s\"", s.all)
}

// modifiers reads the weights and the prefix mark behind an operand.
func (s *scanner) modifiers() (weights uint8, prefix bool) {
	if !s.starts(':') {
		return 0, false
	}
	for s.rest = s.rest[1:]; s.rest != ""; s.rest = s.rest[1:] {
		switch c := s.rest[0]; {
		case c == '*':
			prefix = true
		case c|0x20 >= 'a' && c|0x20 <= 'd':
			weights |= 1 << ('d' - (c | 0x20))
		default:
			return weights, prefix
		}
	}
	return weights, prefix
}

func (p *QueryParser) operator() (t token, op pendingOp, found bool, err error) {
	s := &p.scan
	switch {
	case s.rest == "":
		if p.open > 0 {
			return tokenError, op, true, nil
		}
		return tokenEnd, op, true, nil
	case s.rest[0] == '&':
		op.op = OpAnd
	case s.rest[0] == '|':
		op.op = OpOr
	case s.rest[0] == '<':
		rest, distance, err := phraseOperator(s.rest)
		if err != nil || rest == "" {
			return tokenError, op, true, err
		}
		s.rest, p.state = rest, wantOperand
		return tokenOperator, pendingOp{OpPhrase, distance}, true, nil
	case s.rest[0] == ')':
		s.rest = s.rest[1:]
		if p.open--; p.open < 0 {
			return tokenError, op, true, nil
		}
		return tokenClose, op, true, nil
	case IsSpace(s.rest):
		return tokenEnd, op, false, nil
	default:
		return tokenError, op, true, nil
	}
	s.rest, p.state = s.rest[1:], wantOperand
	return tokenOperator, op, true, nil
}

func errDistance() error {
	return pgerror.New(pgerror.InvalidParameterValue,
		"distance in phrase operator must be an integer value between zero and %d inclusive", maxPos)
}

// phraseOperator reads <-> or <N>; the rest is empty if there is none, or nothing
// behind it.
func phraseOperator(s string) (rest string, distance int16, err error) {
	end := 1
	if strings.HasPrefix(s, "<-") {
		end, distance = 2, 1
	} else {
		for end < len(s) && isDigit(s[end]) {
			end++
		}
		if end == 1 {
			return "", 0, nil
		}
		n, err := strconv.ParseInt(s[1:end], 10, 64)
		if err != nil || n > maxPos {
			return "", 0, errDistance()
		}
		distance = int16(n)
	}
	if end == len(s) || s[end] != '>' {
		return "", 0, nil
	}
	return s[end+1:], distance, nil
}

// webOperand looks for an operand as search engines have it.
func (p *QueryParser) webOperand() (t token, op pendingOp, found bool, err error) {
	s := &p.scan
	switch {
	case s.starts('-'):
		s.rest, p.state = s.rest[1:], wantOperand
		return tokenOperator, pendingOp{op: OpNot}, true, nil
	case s.starts('"'):
		word := s.rest[1:]
		if i := strings.IndexByte(word, '"'); i >= 0 {
			word, s.rest = word[:i], word[i+1:]
		} else {
			s.rest = ""
		}
		p.state = wantOperator
		return tokenValue, op, true, p.Operand(p, word, 0, false)
	case s.rest != "" && isOperator(s.rest[0]):
		p.state = wantOperand
		return tokenEnd, op, false, nil
	case s.atSpace():
		return tokenEnd, op, false, nil
	}
	word, _, ok, err := s.word()
	switch {
	case err != nil:
		return tokenError, op, true, err
	case ok:
		p.state = wantOperator
		return tokenValue, op, true, p.Operand(p, string(word), 0, false)
	case p.state != wantFirst:
		p.PushStop() // there must be an operand
	}
	return tokenEnd, op, true, nil
}

func (p *QueryParser) webOperator() (t token, op pendingOp, found bool) {
	s := &p.scan
	switch {
	case s.starts('"'):
	case s.orOperator():
		p.state = wantOperand
		return tokenOperator, pendingOp{op: OpOr}, true
	case s.rest == "":
		return tokenEnd, op, true
	case isOperator(s.rest[0]), IsSpace(s.rest):
		return tokenEnd, op, false
	}
	p.state = wantOperand
	return tokenOperator, pendingOp{op: OpAnd}, true
}

// orOperator takes the word "or" if it stands alone and something follows.
func (s *scanner) orOperator() bool {
	if len(s.rest) < 3 || !strings.EqualFold(s.rest[:2], "or") {
		return false
	}
	r, n := utf8.DecodeRuneInString(s.rest[2:])
	if r == '-' || r == '_' || IsAlpha(r) || r >= '0' && r <= '9' {
		return false
	}
	for rest := s.rest[2+n:]; rest != ""; {
		if !IsSpace(rest) {
			s.rest = s.rest[2:]
			return true
		}
		_, n := utf8.DecodeRuneInString(rest)
		rest = rest[n:]
	}
	return false
}

// AppendText appends the text form of a query.
func (q Query) AppendText(dst []byte) []byte {
	if n := q.Tree(); n != nil {
		return n.appendText(dst, -1, false)
	}
	return dst
}

// appendText appends a node under an operator of some priority; inPhrase says
// that it is the right operand of a phrase.
func (n *Node) appendText(dst []byte, parent int, inPhrase bool) []byte {
	if n.Op == OpValue {
		return n.appendValue(dst)
	}
	priority := priorities[n.Op]
	brackets := priority < parent || n.Op == OpPhrase && inPhrase
	if brackets {
		dst = append(dst, "( "...)
	}
	if n.Op == OpNot {
		dst = n.Kids[0].appendText(append(dst, '!'), priority, false)
	} else {
		dst = n.left().appendText(dst, priority, false)
		switch {
		case n.Op == OpOr:
			dst = append(dst, " | "...)
		case n.Op == OpAnd:
			dst = append(dst, " & "...)
		case n.Distance == 1:
			dst = append(dst, " <-> "...)
		default:
			dst = append(appendInt(append(dst, " <"...), int(n.Distance)), "> "...)
		}
		dst = n.right().appendText(dst, priority, n.Op == OpPhrase)
	}
	if brackets {
		dst = append(dst, " )"...)
	}
	return dst
}

func (n *Node) appendValue(dst []byte) []byte {
	dst = appendQuoted(dst, n.Word)
	if n.Weights == 0 && !n.Prefix {
		return dst
	}
	dst = append(dst, ':')
	if n.Prefix {
		dst = append(dst, '*')
	}
	for w := 3; w >= 0; w-- {
		if n.Weights&(1<<w) != 0 {
			dst = append(dst, 'D'-byte(w))
		}
	}
	return dst
}
