package xml

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The limits of libxml2, which keep what a document can cost in bounds.
const (
	maxDepth    = 256
	maxText     = 10_000_000
	maxName     = 50_000
	maxEntities = 40 // entities in entities
)

// options say how to parse.
type options struct {
	build    bool // a tree
	strict   bool // namespaces count
	expand   bool // entities are replaced in the tree
	noBlanks bool // leave out white space between elements
	// version and standalone are those of a declaration that was read before.
	version    string
	standalone bool
}

// parser reads a text; the first error ends it.
type parser struct {
	options
	s    string
	i    int
	err  string
	errS string // the text and place of the error
	errI int
	node *Node // the open element, if a tree is built
	// depth is that of elements; entities is that of entities that are being read.
	depth, entities int
	run             int // length of the text that is being read
	budget          int // bytes that entities may still expand to
	general, params map[string]*entity
	ids             map[[2]string]bool // elements and attributes that identify them
	external        bool               // there is an external subset
	paramRefs       bool
	space           []bool // xml:space="preserve" of the open elements
	attrs           []attribute
	declared        string // the DOCTYPE as it is printed
}

// attribute is an attribute of a start tag.
type attribute struct{ prefix, local, value string }

func newParser(s string, o options) *parser {
	return &parser{options: o, s: s, budget: max(1_000_000, 10*len(s))}
}

// fail notes an error, the first of all.
func (p *parser) fail(format string, args ...any) bool {
	if p.err == "" {
		p.err, p.errS, p.errI = fmt.Sprintf(format, args...), p.s, p.i
	}
	return false
}

// detail describes the error: its line, the text around it, and a mark.
func (p *parser) detail() string {
	at := min(p.errI, len(p.errS))
	line := 1 + strings.Count(p.errS[:at], "\n")
	const width = 80
	from := strings.LastIndexByte(p.errS[:at], '\n') + 1
	from = max(from, at-width)
	for from < at && !utf8.RuneStart(p.errS[from]) {
		from++
	}
	to := len(p.errS)
	if k := strings.IndexByte(p.errS[from:], '\n'); k >= 0 {
		to = max(from+k, from)
	}
	to = max(min(to, from+width), from)
	for to < len(p.errS) && to > from && !utf8.RuneStart(p.errS[to]) {
		to--
	}
	mark := []byte(p.errS[from:max(min(at, to), from)])
	for i, c := range mark {
		if c != '\t' {
			mark[i] = ' '
		}
	}
	return fmt.Sprintf("line %d: %s\n%s\n%s^", line, p.err, p.errS[from:to], mark)
}

// at reports whether the rest starts with t.
func (p *parser) at(t string) bool { return strings.HasPrefix(p.s[p.i:], t) }

// peek is the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

// take reads t if it is next.
func (p *parser) take(t string) bool {
	if p.at(t) {
		p.i += len(t)
		return true
	}
	return false
}

// skip reads white space, and reports whether there was some.
func (p *parser) skip() bool {
	from := p.i
	for p.i < len(p.s) && isBlank(p.s[p.i]) {
		p.i++
	}
	return p.i > from
}

// name reads a name; "" if there is none.
func (p *parser) name(colons, first bool) string {
	n := nameLen(p.s[p.i:], colons, first)
	if n > maxName {
		p.fail("Name too long")
		return ""
	}
	p.i += n
	return p.s[p.i-n : p.i]
}

func (p *parser) parse(m Mode) (*Node, bool) {
	var root *Node
	if p.build {
		root = &Node{Kind: DocumentNode}
		p.node = root
	}
	if m == Content {
		p.depth = 1 // content is in an element, for libxml2
		return root, p.content() && p.endOfContent()
	}
	return root, p.document()
}

// endOfContent checks that all was read.
func (p *parser) endOfContent() bool {
	if p.at("</") {
		return p.fail("chunk is not well balanced")
	}
	if p.i < len(p.s) {
		return p.fail("extra content at the end of well balanced chunk")
	}
	return true
}

func (p *parser) document() bool {
	if p.s == "" {
		return p.fail("Document is empty")
	}
	if p.at("<?xml") && len(p.s) > 5 && isBlank(p.s[5]) && !p.declaration() {
		return false
	}
	if !p.misc() {
		return false
	}
	if p.at("<!DOCTYPE") && !(p.doctype() && p.misc()) {
		return false
	}
	if p.peek() != '<' {
		return p.fail("Start tag expected, '<' not found")
	}
	if !p.element() || !p.misc() {
		return false
	}
	if p.i < len(p.s) {
		return p.fail("Extra content at the end of the document")
	}
	return true
}

// misc reads comments and processing instructions.
func (p *parser) misc() bool {
	for {
		p.skip()
		switch {
		case p.at("<?"):
			if !p.instruction() {
				return false
			}
		case p.at("<!--"):
			if !p.comment() {
				return false
			}
		default:
			return true
		}
	}
}

// declaration reads the XML declaration of a document.
func (p *parser) declaration() bool {
	p.i += len("<?xml")
	p.skip()
	v, ok := p.pseudo("version")
	switch {
	case !ok && p.err != "":
		return false
	case !ok:
		return p.fail("Malformed declaration expecting version")
	case !validVersion(v):
		return p.fail("Malformed declaration expecting version")
	case v[:2] != "1.":
		return p.fail("Unsupported version '%s'", v)
	}
	if p.at("?>") {
		p.i += 2
		return true
	}
	if !p.skip() {
		return p.fail("Blank needed here")
	}
	if e, ok := p.pseudo("encoding"); ok {
		if !validEncoding(e) {
			return p.fail("Invalid XML encoding name")
		}
		if !knownEncoding(e) {
			return p.fail("Unsupported encoding %s", e)
		}
		p.skip()
	} else if p.err != "" {
		return false
	}
	if v, ok := p.pseudo("standalone"); ok {
		if v != "yes" && v != "no" {
			return p.fail("standalone accepts only 'yes' or 'no'")
		}
		p.standalone = v == "yes"
	} else if p.err != "" {
		return false
	}
	p.skip()
	if !p.take("?>") {
		return p.fail("parsing XML declaration: '?>' expected")
	}
	return true
}

// pseudo reads `name = 'value'` of a declaration.
func (p *parser) pseudo(name string) (string, bool) {
	if !p.take(name) {
		return "", false
	}
	p.skip()
	if !p.take("=") {
		return "", p.fail("expected '='")
	}
	p.skip()
	q := p.peek()
	if q != '"' && q != '\'' {
		return "", p.fail("String not started expecting ' or \"")
	}
	k := strings.IndexByte(p.s[p.i+1:], q)
	if k < 0 {
		return "", p.fail("String not closed expecting \" or '")
	}
	v := p.s[p.i+1 : p.i+1+k]
	p.i += k + 2
	return v, true
}

// validVersion accepts a digit, a period, and digits.
func validVersion(v string) bool {
	if len(v) < 2 || v[0] < '0' || v[0] > '9' || v[1] != '.' {
		return false
	}
	return strings.Trim(v[2:], "0123456789") == ""
}

func validEncoding(e string) bool {
	for i, r := range e {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !(r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')) {
			return false
		}
	}
	return e != ""
}

// comment reads `<!-- … -->`.
func (p *parser) comment() bool {
	p.i += 4
	from := p.i
	k := strings.Index(p.s[p.i:], "--")
	if k < 0 {
		p.chars(len(p.s))
		return p.fail("Comment not terminated")
	}
	if !p.chars(p.i + k) {
		return false
	}
	if !strings.HasPrefix(p.s[p.i:], "-->") {
		return p.fail("Double hyphen within comment")
	}
	text := p.s[from:p.i]
	if len(text) > maxText {
		return p.fail("Comment too big found")
	}
	p.i += 3
	p.run = 0
	if p.build {
		p.add(&Node{Kind: CommentNode, Value: newlines(text)})
	}
	return true
}

// chars moves to a place, over characters that a document may have.
func (p *parser) chars(to int) bool {
	for p.i < to {
		if c := p.s[p.i]; c >= 0x20 && c < 0x80 {
			p.i++
			continue
		}
		r, n := utf8.DecodeRuneInString(p.s[p.i:])
		if !isChar(r) {
			return p.fail("invalid character value %d", r)
		}
		p.i += n
	}
	return true
}

// newlines makes each end of a line a line feed.
func newlines(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// instruction reads `<?target … ?>`.
func (p *parser) instruction() bool {
	p.i += 2
	target := p.name(true, true)
	switch {
	case target == "":
		return p.fail("xmlParsePI : no target name")
	case target == "xml":
		return p.fail("XML declaration allowed only at the start of the document")
	case strings.EqualFold(target, "xml"):
		return p.fail("xmlParsePITarget: invalid name")
	case p.strict && strings.Contains(target, ":"):
		return p.fail("colons are forbidden from PI names '%s'", target)
	}
	if !p.at("?>") && !p.skip() {
		return p.fail("ParsePI: PI %s space expected", target)
	}
	k := strings.Index(p.s[p.i:], "?>")
	if k < 0 {
		p.chars(len(p.s))
		return p.fail("ParsePI: PI %s never end ...", target)
	}
	text := p.s[p.i : p.i+k]
	if !p.chars(p.i + k) {
		return false
	}
	if len(text) > maxText {
		return p.fail("PI %s too big found", target)
	}
	p.i += 2
	p.run = 0
	if p.build {
		p.add(&Node{Kind: PINode, Local: target, Value: newlines(text)})
	}
	return true
}

// add appends a node to the open element.
func (p *parser) add(n *Node) {
	n.Parent = p.node
	p.node.Children = append(p.node.Children, n)
}

// addText appends text to the open element, to the text that is last there.
func (p *parser) addText(s string) bool {
	if p.run += len(s); p.run > maxText {
		return p.fail("xmlSAX2Characters: huge text node")
	}
	if !p.build || s == "" {
		return true
	}
	if n := len(p.node.Children); n > 0 && p.node.Children[n-1].Kind == TextNode {
		p.node.Children[n-1].Value += s
		return true
	}
	p.add(&Node{Kind: TextNode, Value: s})
	return true
}

// content reads what may stand within an element, up to an end tag or the end.
func (p *parser) content() bool {
	for p.i < len(p.s) {
		ok := true
		switch c := p.s[p.i]; {
		case c == '&':
			ok = p.reference()
		case c != '<':
			ok = p.text()
		case p.at("</"):
			return true
		case p.at("<?"):
			ok = p.instruction()
		case p.at("<![CDATA["):
			ok = p.cdata()
		case p.at("<!--"):
			ok = p.comment()
		default:
			ok = p.element()
		}
		if !ok {
			return false
		}
	}
	return true
}

// text reads characters up to markup.
func (p *parser) text() bool {
	from := p.i
	blank := true
	for p.i < len(p.s) {
		c := p.s[p.i]
		if c == '<' || c == '&' {
			break
		}
		blank = blank && isBlank(c)
		switch {
		case c == ']' && p.at("]]>"):
			return p.fail("Sequence ']]>' not allowed in content")
		case c >= 0x20 && c < 0x80:
			p.i++
		default:
			r, n := utf8.DecodeRuneInString(p.s[p.i:])
			if !isChar(r) {
				return p.fail("PCDATA invalid Char value %d", r)
			}
			p.i += n
		}
	}
	if blank && p.noBlanks && p.ignorable() {
		return true
	}
	return p.addText(newlines(p.s[from:p.i]))
}

// ignorable reports whether white space that was just read stands between
// elements, as well as can be told.
func (p *parser) ignorable() bool {
	kids := p.node.Children
	switch {
	case p.peek() != '<':
		return false
	case p.node.Kind != ElementNode:
		return false
	case len(p.space) > 0 && p.space[len(p.space)-1]:
		return false
	case len(kids) == 0:
		return !p.at("</")
	}
	return kids[0].Kind != TextNode && kids[len(kids)-1].Kind != TextNode
}

func (p *parser) cdata() bool {
	p.i += len("<![CDATA[")
	from := p.i
	k := strings.Index(p.s[p.i:], "]]>")
	if k < 0 {
		p.chars(len(p.s))
		return p.fail("CData section not finished")
	}
	if !p.chars(from + k) {
		return false
	}
	p.i += 3
	p.run = 0
	if k > maxText {
		return p.fail("CData section too big found")
	}
	if p.build {
		p.add(&Node{Kind: CDATANode, Value: newlines(p.s[from : from+k])})
	}
	return true
}

// qname reads a name with a prefix. What is wrong only with namespaces counts
// where those do.
func (p *parser) qname() (prefix, local string, ok bool) {
	from := p.i
	l := p.name(false, true)
	if l == "" {
		if p.peek() != ':' {
			return "", "", false
		}
		if l = p.name(true, true); l == "" {
			return "", "", false
		}
		return "", l, p.namespaceError("Failed to parse QName '%s'", l)
	}
	if p.peek() != ':' {
		return "", l, true
	}
	p.i++
	prefix = l
	if l = p.name(false, true); l == "" {
		p.name(true, false)
		return "", p.s[from:p.i], p.namespaceError("Failed to parse QName '%s:'", prefix)
	}
	if p.peek() == ':' {
		p.i++
		p.name(true, true)
		l = p.s[from+len(prefix)+1 : p.i]
		return prefix, l, p.namespaceError("Failed to parse QName '%s:%s'", prefix, l)
	}
	return prefix, l, true
}

// namespaceError is an error where namespaces count.
func (p *parser) namespaceError(format string, args ...any) bool {
	return !p.strict || p.fail(format, args...)
}

// element reads an element.
func (p *parser) element() bool {
	if p.depth > maxDepth {
		return p.fail("Excessive depth in document: %d use XML_PARSE_HUGE option", maxDepth)
	}
	start := p.i
	p.i++
	from := p.i
	prefix, local, ok := p.qname()
	if !ok {
		return p.fail("StartTag: invalid element name")
	}
	name := p.s[from:p.i]
	p.run = 0
	if !p.attributes() {
		return false
	}
	parent := p.node
	if !p.open(prefix, local) {
		return false
	}
	defer func() { p.node = parent }()
	if p.take("/>") {
		p.run = 0
		p.space = p.space[:len(p.space)-1]
		return true
	}
	if !p.take(">") {
		return p.fail("Couldn't find end of Start Tag %s line %d", name, 1+strings.Count(p.s[:start], "\n"))
	}
	p.depth++
	ok = p.content()
	p.depth--
	if !ok {
		return false
	}
	p.run = 0
	p.space = p.space[:len(p.space)-1]
	if p.i >= len(p.s) {
		return p.fail("Premature end of data in tag %s line %d", name, 1+strings.Count(p.s[:start], "\n"))
	}
	p.i += 2
	if rest := p.s[p.i:]; !strings.HasPrefix(rest, name) || nameLen(rest[len(name):], true, false) > 0 {
		end := p.name(true, true)
		if end == "" {
			end = "unparsable"
		}
		p.skip()
		p.take(">")
		return p.fail("Opening and ending tag mismatch: %s line %d and %s", name, 1+strings.Count(p.s[:start], "\n"), end)
	}
	p.i += len(name)
	p.skip()
	if !p.take(">") {
		return p.fail("expected '>'")
	}
	return true
}

// attributes reads those of a start tag.
func (p *parser) attributes() bool {
	p.attrs = p.attrs[:0]
	p.skip()
	for {
		c := p.peek()
		if c == '>' || p.at("/>") || c == 0 || c < 0x20 && !isBlank(c) {
			return true
		}
		prefix, local, ok := p.qname()
		if !ok {
			return p.fail("error parsing attribute name")
		}
		p.skip()
		if !p.take("=") {
			return p.fail("Specification mandates value for attribute %s", local)
		}
		p.skip()
		value, ok := p.attValue()
		if !ok {
			return false
		}
		for _, a := range p.attrs {
			if a.local == local && a.prefix == prefix {
				return p.fail("Attribute %s redefined", joinName(prefix, local))
			}
		}
		p.attrs = append(p.attrs, attribute{prefix, local, value})
		if c := p.peek(); c == '>' || p.at("/>") {
			return true
		}
		if !p.skip() {
			return p.fail("attributes construct error")
		}
	}
}

func joinName(prefix, local string) string {
	if prefix == "" {
		return local
	}
	return prefix + ":" + local
}

// attValue reads a quoted value.
func (p *parser) attValue() (string, bool) {
	q := p.peek()
	if q != '"' && q != '\'' {
		return "", p.fail("AttValue: \" or ' expected")
	}
	p.i++
	k := strings.IndexByte(p.s[p.i:], q)
	if raw := p.s[p.i : p.i+max(k, 0)]; k >= 0 && k <= maxText && plain(raw) {
		p.i += k + 1
		return raw, true
	}
	var b []byte
	for {
		if p.i >= len(p.s) {
			return "", p.fail("AttValue: ' expected")
		}
		c := p.s[p.i]
		switch {
		case c == q:
			p.i++
			return string(b), true
		case c == '<':
			return "", p.fail("Unescaped '<' not allowed in attributes values")
		case c == '&':
			var ok bool
			if b, ok = p.attReference(b); !ok {
				return "", false
			}
		case isBlank(c):
			if c == '\r' && p.at("\r\n") {
				p.i++
			}
			p.i++
			b = append(b, ' ')
		default:
			r, n := utf8.DecodeRuneInString(p.s[p.i:])
			if !isChar(r) {
				return "", p.fail("invalid character in attribute value")
			}
			b = append(b, p.s[p.i:p.i+n]...)
			p.i += n
		}
		if len(b) > maxText {
			return "", p.fail("AttValue length too long")
		}
	}
}

// plain reports whether a value stands for itself.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x80 || c == '<' || c == '&' {
			return false
		}
	}
	return true
}

// charRef reads `&#…;`, of which `&#` is next.
func (p *parser) charRef() (rune, bool) {
	p.i += 2
	base := 10
	if p.take("x") {
		base = 16
	}
	from := p.i
	for p.i < len(p.s) && isDigit(p.s[p.i], base) {
		p.i++
	}
	digits := p.s[from:p.i]
	if digits == "" {
		return 0, p.fail("xmlParseCharRef: invalid %s value", map[int]string{10: "decimal", 16: "hexadecimal"}[base])
	}
	if !p.take(";") {
		return 0, p.fail("CharRef: ';' expected")
	}
	v, err := strconv.ParseUint(digits, base, 32)
	if err != nil || v > utf8.MaxRune || !isChar(rune(v)) {
		return 0, p.fail("xmlParseCharRef: invalid xmlChar value %d", v)
	}
	return rune(v), true
}

func isDigit(c byte, base int) bool {
	return c >= '0' && c <= '9' || base == 16 && (c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F')
}
