package jsonpath

import (
	"strconv"

	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/regex"
)

type parser struct {
	lexer
	tok   token
	depth int
}

// maxDepth bounds the nesting of a path.
const maxDepth = 2000

// Parse parses a path.
func Parse(s string) (*Path, error) {
	p := &parser{lexer: lexer{s: s}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind == tokEnd {
		return nil, pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", "jsonpath", s)
	}
	path := &Path{}
	if p.isKeyword("strict") || p.isKeyword("lax") {
		path.Strict = p.tok.text == "strict"
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	var err error
	if path.Root, err = p.or(); err != nil {
		return nil, err
	}
	if p.tok.kind != tokEnd {
		return nil, p.unexpected()
	}
	if err := check(path.Root, false, false); err != nil {
		return nil, err
	}
	return path, nil
}

func (p *parser) advance() (err error) {
	p.tok, err = p.next()
	return err
}

func (p *parser) unexpected() error { return syntaxError("syntax error", p.tok.seen) }

func (p *parser) isKeyword(s string) bool { return p.tok.kind == tokKeyword && p.tok.text == s }

func (p *parser) is(s string) bool {
	return (p.tok.kind == tokChar || p.tok.kind == tokOperator) && p.tok.text == s
}

// accept passes over a symbol if it is next.
func (p *parser) accept(s string) (bool, error) {
	if !p.is(s) {
		return false, nil
	}
	return true, p.advance()
}

func (p *parser) expect(s string) error {
	ok, err := p.accept(s)
	if err == nil && !ok {
		err = p.unexpected()
	}
	return err
}

func (p *parser) expectKeyword(s string) error {
	if !p.isKeyword(s) {
		return p.unexpected()
	}
	return p.advance()
}

// binary parses operands joined by operators of one precedence; predicates
// says what the operands must be.
func (p *parser) binary(operand func() (*Node, error), predicates bool, ops map[string]Kind) (*Node, error) {
	n, err := operand()
	for err == nil {
		k, ok := ops[p.tok.text]
		if !ok || !p.is(p.tok.text) {
			break
		}
		if n.isPredicate() != predicates {
			return nil, p.unexpected()
		}
		if err = p.advance(); err != nil {
			return nil, err
		}
		var right *Node
		if right, err = operand(); err == nil && right.isPredicate() != predicates {
			return nil, p.unexpected()
		}
		n = &Node{Kind: k, Left: n, Right: right}
	}
	return n, err
}

// isPredicate reports whether the node is a predicate, not a value made of one.
func (n *Node) isPredicate() bool { return n.Kind.IsPredicate() && n.Next == nil }

var (
	orOps   = map[string]Kind{"||": Or}
	andOps  = map[string]Kind{"&&": And}
	cmpOps  = map[string]Kind{"==": Equal, "!=": NotEqual, "<": Less, ">": Greater, "<=": LessOrEqual, ">=": GreaterOrEqual}
	addOps  = map[string]Kind{"+": Add, "-": Sub}
	mulOps  = map[string]Kind{"*": Mul, "/": Div, "%": Mod}
	methods = func() map[string]Kind {
		m := map[string]Kind{}
		for k, name := range names {
			if k.IsMethod() {
				m[name] = k
			}
		}
		return m
	}()
)

// deeper notes one more level of nesting.
func (p *parser) deeper() error {
	if p.depth++; p.depth > maxDepth {
		return pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded")
	}
	return nil
}

// or parses an expression or a predicate.
func (p *parser) or() (*Node, error) {
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	return p.binary(p.and, true, orOps)
}

func (p *parser) and() (*Node, error) { return p.binary(p.not, true, andOps) }

func (p *parser) not() (*Node, error) {
	if ok, err := p.accept("!"); !ok || err != nil {
		if err != nil {
			return nil, err
		}
		return p.comparison()
	}
	var n *Node
	var err error
	switch {
	case p.isKeyword("exists"):
		n, err = p.exists()
	case p.is("("):
		n, err = p.predicateInParens()
	default:
		return nil, p.unexpected()
	}
	return &Node{Kind: Not, Left: n}, err
}

// predicateInParens parses a predicate with its parentheses.
func (p *parser) predicateInParens() (*Node, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if !n.isPredicate() {
		return nil, p.unexpected()
	}
	return n, p.expect(")")
}

func (p *parser) exists() (*Node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	n, err := p.expr()
	if err != nil {
		return nil, err
	}
	return &Node{Kind: Exists, Left: n}, p.expect(")")
}

// expr parses an expression that is no predicate.
func (p *parser) expr() (*Node, error) {
	n, err := p.add()
	if err == nil && n.isPredicate() {
		err = p.unexpected()
	}
	return n, err
}

// comparison parses a predicate over expressions, or an expression.
func (p *parser) comparison() (*Node, error) {
	if p.isKeyword("exists") {
		return p.exists()
	}
	left, err := p.add()
	if err != nil || left.isPredicate() {
		return left, err
	}
	switch {
	case p.isKeyword("starts"):
		return p.startsWith(left)
	case p.isKeyword("like_regex"):
		return p.likeRegex(left)
	}
	k, ok := cmpOps[p.tok.text]
	if !ok || !p.is(p.tok.text) {
		return left, nil
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	right, err := p.expr()
	return &Node{Kind: k, Left: left, Right: right}, err
}

func (p *parser) startsWith(left *Node) (*Node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if err := p.expectKeyword("with"); err != nil {
		return nil, err
	}
	k := String
	switch p.tok.kind {
	case tokString:
	case tokVariable:
		k = Variable
	default:
		return nil, p.unexpected()
	}
	n := &Node{Kind: StartsWith, Left: left, Right: &Node{Kind: k, Text: p.tok.text}}
	return n, p.advance()
}

func (p *parser) likeRegex(left *Node) (*Node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind != tokString {
		return nil, p.unexpected()
	}
	n := &Node{Kind: LikeRegex, Left: left, Text: p.tok.text}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var flags string
	if p.isKeyword("flag") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.tok.kind != tokString {
			return nil, p.unexpected()
		}
		flags = p.tok.text
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	return n, n.compileRegex(flags)
}

// compileRegex compiles the pattern of n with flags in the notation of XQuery.
func (n *Node) compileRegex(flags string) error {
	const known = "ismxq"
	var has [len(known)]bool
	for i, c := range flags {
		k := -1
		for j, f := range known {
			if c == f {
				k = j
			}
		}
		if k < 0 {
			return pgerror.New(pgerror.SyntaxError, "invalid input syntax for type %s", "jsonpath").
				WithDetail("Unrecognized flag character \"%s\" in LIKE_REGEX predicate.", flags[i:i+len(string(c))])
		}
		has[k] = true
	}
	for j := range known {
		if has[j] {
			n.Flags += known[j : j+1]
		}
	}
	f := regex.Flags(0)
	if has[0] {
		f |= regex.ICase
	}
	switch {
	case has[4]: // q: the rest has no meaning
		f |= regex.Quote
	case has[3]:
		return pgerror.New(pgerror.FeatureNotSupported, "XQuery \"x\" flag (expanded regular expressions) is not implemented")
	default:
		if !has[1] {
			f |= regex.NLStop
		}
		if has[2] {
			f |= regex.NLAnchor
		}
	}
	var err error
	n.Regex, err = regex.Compile([]byte(n.Text), f)
	return err
}

func (p *parser) add() (*Node, error) { return p.binary(p.mul, false, addOps) }
func (p *parser) mul() (*Node, error) { return p.binary(p.unary, false, mulOps) }

func (p *parser) unary() (*Node, error) {
	k := Plus
	switch {
	case p.is("-"):
		k = Minus
	case !p.is("+"):
		return p.accessors()
	}
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.unary()
	switch {
	case err != nil:
		return nil, err
	case n.isPredicate():
		return nil, p.unexpected()
	case n.Kind != Number || n.Next != nil:
		return &Node{Kind: k, Left: n}, nil
	case k == Minus:
		n.Num = decimal.Neg(nil, n.Num)
	}
	return n, nil
}

// accessors parses a primary with the accessors behind it.
func (p *parser) accessors() (*Node, error) {
	n, err := p.primary()
	if err != nil {
		return nil, err
	}
	end := n.last()
	for p.is(".") || p.is("[") || p.is("?") {
		if end.Next, err = p.accessor(); err != nil {
			return nil, err
		}
		end = end.Next
	}
	return n, nil
}

// literals are the keywords that are values.
var literals = map[string]Kind{"null": Null, "true": True, "false": False, "last": Last}

func (p *parser) primary() (*Node, error) {
	n := &Node{Text: p.tok.text}
	switch p.tok.kind {
	case tokString:
		n.Kind = String
	case tokVariable:
		n.Kind = Variable
	case tokInt, tokNumeric:
		n.Kind = Number
		var err error
		if n.Num, err = decimal.Parse(nil, p.tok.text); err != nil {
			return nil, err
		}
	case tokKeyword:
		k, ok := literals[p.tok.text]
		if !ok {
			return nil, p.unexpected()
		}
		n.Kind = k
	default:
		switch {
		case p.is("$"):
			n.Kind = Root
		case p.is("@"):
			n.Kind = Current
		case p.is("("):
			return p.parens()
		default:
			return nil, p.unexpected()
		}
	}
	return n, p.advance()
}

// parens parses an expression or a predicate in parentheses.
func (p *parser) parens() (*Node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	if n.isPredicate() && p.isKeyword("is") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		return &Node{Kind: IsUnknown, Left: n}, p.expectKeyword("unknown")
	}
	return n, nil
}

func (p *parser) accessor() (*Node, error) {
	symbol := p.tok.text
	if err := p.advance(); err != nil {
		return nil, err
	}
	switch symbol {
	case "[":
		return p.subscripts()
	case "?":
		n, err := p.predicateInParens()
		return &Node{Kind: Filter, Left: n}, err
	}
	switch {
	case p.is("*"):
		return &Node{Kind: AnyKey}, p.advance()
	case p.is("**"):
		return p.levels()
	case p.tok.kind != tokIdent && p.tok.kind != tokString && p.tok.kind != tokKeyword:
		return nil, p.unexpected()
	}
	t := p.tok
	if err := p.advance(); err != nil {
		return nil, err
	}
	k, method := methods[t.text]
	if t.kind != tokKeyword || !method || !p.is("(") {
		if t.kind == tokKeyword {
			t.text = t.as
		}
		return &Node{Kind: Key, Text: t.text}, nil
	}
	n := &Node{Kind: k}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var err error
	switch {
	case k == Datetime && p.tok.kind == tokString:
		n.Left = &Node{Kind: String, Text: p.tok.text}
		err = p.advance()
	case k == Decimal && !p.is(")"):
		err = p.precisionAndScale(n)
	case k > Date && p.tok.kind == tokInt:
		n.Left, err = p.primary()
	}
	if err != nil {
		return nil, err
	}
	return n, p.expect(")")
}

// precisionAndScale parses the arguments of decimal(), integers with or without a sign.
func (p *parser) precisionAndScale(n *Node) error {
	for i := 0; ; i++ {
		minus := p.is("-")
		if minus || p.is("+") {
			if err := p.advance(); err != nil {
				return err
			}
		}
		if p.tok.kind != tokInt {
			return p.unexpected()
		}
		arg, err := p.primary()
		if err != nil {
			return err
		}
		if minus {
			arg.Num = decimal.Neg(nil, arg.Num)
		}
		switch i {
		case 0:
			n.Left = arg
		case 1:
			n.Right = arg
		default:
			return pgerror.New(pgerror.SyntaxError, "invalid input syntax for type jsonpath").
				WithDetail(".decimal() can only have an optional precision[,scale].")
		}
		if more, err := p.accept(","); err != nil || !more {
			return err
		}
	}
}

// subscripts parses what follows an opening bracket.
func (p *parser) subscripts() (*Node, error) {
	if ok, err := p.accept("*"); err != nil || ok {
		if err == nil {
			err = p.expect("]")
		}
		return &Node{Kind: AnyElem}, err
	}
	n := &Node{Kind: Subscript}
	for {
		var r Range
		var err error
		if r.From, err = p.expr(); err != nil {
			return nil, err
		}
		if p.isKeyword("to") {
			if err = p.advance(); err != nil {
				return nil, err
			}
			if r.To, err = p.expr(); err != nil {
				return nil, err
			}
		}
		n.Subscripts = append(n.Subscripts, r)
		if ok, err := p.accept(","); err != nil || !ok {
			if err == nil {
				err = p.expect("]")
			}
			return n, err
		}
	}
}

// levels parses ** and its levels.
func (p *parser) levels() (*Node, error) {
	n := &Node{Kind: AnyLevel, To: Deepest}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if ok, err := p.accept("{"); err != nil || !ok {
		return n, err
	}
	var err error
	if n.From, err = p.level(); err != nil {
		return nil, err
	}
	n.To = n.From
	if p.isKeyword("to") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		if n.To, err = p.level(); err != nil {
			return nil, err
		}
	}
	return n, p.expect("}")
}

func (p *parser) level() (uint32, error) {
	switch {
	case p.isKeyword("last"):
		return Deepest, p.advance()
	case p.tok.kind != tokInt:
		return 0, p.unexpected()
	}
	v, err := strconv.ParseInt(p.tok.text, 10, 32)
	if err != nil {
		return 0, pgerror.New(pgerror.NumericValueOutOfRange, "value \"%s\" is out of range for type %s", p.tok.text, "integer")
	}
	return uint32(v), p.advance()
}

// check refuses @ outside of filters and last outside of subscripts.
func check(n *Node, inFilter, inSubscript bool) error {
	for ; n != nil; n = n.Next {
		switch {
		case n.Kind == Current && !inFilter:
			return pgerror.New(pgerror.SyntaxError, "@ is not allowed in root expressions")
		case n.Kind == Last && !inSubscript:
			return pgerror.New(pgerror.SyntaxError, "LAST is allowed only in array subscripts")
		}
		for _, c := range []*Node{n.Left, n.Right} {
			if err := check(c, inFilter || n.Kind == Filter, inSubscript); err != nil {
				return err
			}
		}
		for _, r := range n.Subscripts {
			for _, c := range []*Node{r.From, r.To} {
				if err := check(c, inFilter, true); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
