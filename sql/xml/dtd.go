package xml

import (
	"strings"
	"unicode/utf8"
)

// doctype reads `<!DOCTYPE …>`. What it declares about elements and attributes
// is read, and does not count; entities do.
func (p *parser) doctype() bool {
	p.i += len("<!DOCTYPE")
	p.skip()
	from := p.i
	if p.name(true, true) == "" {
		return p.fail("xmlParseDocTypeDecl : no DOCTYPE name !")
	}
	p.declared = "<!DOCTYPE " + p.s[from:p.i]
	p.skip()
	from = p.i
	ok, some := p.externalID(true)
	if !ok {
		return false
	}
	if some {
		p.declared += " " + p.s[from:p.i]
	}
	p.external = some
	p.skip()
	p.general, p.params, p.ids = map[string]*entity{}, map[string]*entity{}, map[[2]string]bool{}
	done := p.take(">")
	if p.take("[") { // libxml2 takes one even where the declaration has ended

		p.declared += " [\n"
		if !p.subset() {
			return false
		}
		p.declared += "]"
		if !p.take("]") {
			return p.fail("DOCTYPE improperly terminated")
		}
		p.skip()
		done = p.take(">")
	}
	if !done {
		return p.fail("DOCTYPE improperly terminated")
	}
	if p.build {
		p.add(&Node{Kind: DoctypeNode, Value: p.declared + ">"})
	}
	return true
}

// subset reads declarations up to the end or a bracket.
func (p *parser) subset() bool {
	node := p.node
	if p.build {
		p.node = &Node{Kind: DoctypeNode}
		defer func() { p.node = node }()
	}
	for {
		p.skip()
		ok := true
		from := p.i
		switch {
		case p.i >= len(p.s) || p.peek() == ']':
			return true
		case p.at("<!ELEMENT"):
			ok = p.elementDecl()
		case p.at("<!ENTITY"):
			ok = p.entityDecl()
		case p.at("<!ATTLIST"):
			ok = p.attlistDecl()
		case p.at("<!NOTATION"):
			ok = p.notationDecl()
		case p.at("<!--"):
			ok = p.comment()
		case p.at("<?"):
			ok = p.instruction()
		case p.peek() == '%':
			ok = p.paramReference()
		default:
			return p.fail("xmlParseInternalSubset: error detected in Markup declaration")
		}
		if !ok {
			return false
		}
		if p.build && p.entities == 0 && p.s[from] == '<' {
			p.declared += newlines(p.s[from:p.i]) + "\n"
		}
	}
}

// paramReference reads `%name;` between declarations, and the declarations that
// it stands for.
func (p *parser) paramReference() bool {
	p.i++
	name := p.name(true, true)
	if name == "" {
		return p.fail("PEReference: no name")
	}
	if !p.take(";") {
		return p.fail("PEReference: expecting ';'")
	}
	e := p.params[name]
	if e == nil {
		if p.standalone || !p.external && !p.paramRefs {
			return p.fail("PEReference: %%%s; not found", name)
		}
		return true
	}
	p.paramRefs = true
	if e.external {
		return true
	}
	if !p.enter(e) {
		return false
	}
	s, i := p.s, p.i
	p.s, p.i = e.value, 0
	if !p.subset() {
		return false
	}
	if p.i < len(p.s) {
		return p.fail("xmlParseInternalSubset: error detected in Markup declaration")
	}
	p.s, p.i = s, i
	p.leave(e)
	return true
}

// keyword reads the start of a declaration and the white space behind it.
func (p *parser) keyword(word string) bool {
	p.i += len(word)
	if !p.skip() {
		return p.fail("Space required after '%s'", word)
	}
	return true
}

// end reads the end of a declaration.
func (p *parser) end(what string) bool {
	p.skip()
	if !p.take(">") {
		return p.fail("%s: expected '>' at the end", what)
	}
	return true
}

// literal reads a quoted string.
func (p *parser) literal(what string) (string, bool) {
	q := p.peek()
	if q != '"' && q != '\'' {
		return "", p.fail("%s \" or ' expected", what)
	}
	p.i++
	from := p.i
	k := strings.IndexByte(p.s[p.i:], q)
	if k < 0 {
		p.chars(len(p.s))
		return "", p.fail("Unfinished %s \" or ' expected", what)
	}
	if !p.chars(from + k) {
		return "", false
	}
	p.i++
	return p.s[from : from+k], true
}

// externalID reads SYSTEM or PUBLIC with their literals; system says that PUBLIC
// needs both.
func (p *parser) externalID(system bool) (ok, some bool) {
	switch {
	case p.take("SYSTEM"):
		if !p.skip() {
			return p.fail("Space required after 'SYSTEM'"), false
		}
		_, ok = p.literal("SystemLiteral")
		return ok, true
	case p.take("PUBLIC"):
		if !p.skip() {
			return p.fail("Space required after 'PUBLIC'"), false
		}
		id, ok := p.literal("PubidLiteral")
		if !ok {
			return false, false
		}
		for _, r := range id {
			if !isPubid(r) {
				return p.fail("PubidLiteral \" or ' expected"), false
			}
		}
		space := p.skip()
		if !system && p.peek() != '"' && p.peek() != '\'' {
			return true, true
		}
		if !space {
			return p.fail("Space required after the Public Identifier"), false
		}
		_, ok = p.literal("SystemLiteral")
		return ok, true
	}
	return true, false
}

// systemID is the last literal of an external identifier, and its fragment's
// mark, which entities may not have, as a character that no URI has.
func systemID(id string) string {
	q := id[len(id)-1:]
	id = id[:len(id)-1]
	return strings.Replace(id[strings.LastIndex(id, q)+1:], "#", "##", 1)
}

func isPubid(r rune) bool {
	return r == ' ' || r == '\n' || r == '\r' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
		r < 0x80 && strings.ContainsRune("-'()+,./:=?;!*#@$_%", r)
}

func (p *parser) notationDecl() bool {
	if !p.keyword("<!NOTATION") {
		return false
	}
	name := p.name(true, true)
	if name == "" {
		return p.fail("NOTATION: Name expected here")
	}
	if !p.namespaceName(name, "notation") {
		return false
	}
	if !p.skip() {
		return p.fail("Space required after the NOTATION name'")
	}
	ok, some := p.externalID(false)
	if !ok {
		return false
	}
	if !some {
		return p.fail("NOTATION: expected SYSTEM or PUBLIC")
	}
	return p.end("NOTATION")
}

// namespaceName refuses colons in names of what is declared.
func (p *parser) namespaceName(name, what string) bool {
	return !strings.Contains(name, ":") || p.namespaceError("colons are forbidden from %s names '%s'", what, name)
}

func (p *parser) entityDecl() bool {
	if !p.keyword("<!ENTITY") {
		return false
	}
	to := p.general
	param := p.take("%")
	if param {
		if !p.skip() {
			return p.fail("Space required after '%%'")
		}
		to = p.params
	}
	e := &entity{name: p.name(true, true)}
	if e.name == "" {
		return p.fail("xmlParseEntityDecl: no name")
	}
	if !p.namespaceName(e.name, "entities") {
		return false
	}
	if !p.skip() {
		return p.fail("Space required after the entity name")
	}
	var ok bool
	if c := p.peek(); c == '"' || c == '\'' {
		if e.value, ok = p.entityValue(); !ok {
			return false
		}
	} else {
		from := p.i
		if ok, e.external = p.externalID(true); !ok {
			return false
		}
		if e.external && !validURI(systemID(p.s[from:p.i])) {
			return p.fail("Invalid URI: %s", systemID(p.s[from:p.i]))
		}
		if !e.external {
			return p.fail("EntityValue: \" or ' expected")
		}
		if space := p.skip(); !param && p.peek() != '>' {
			if !space {
				return p.fail("Space required before 'NDATA'")
			}
			if p.at("NDATA") {
				if !p.keyword("NDATA") {
					return false
				}
				p.name(true, true) // libxml2 does without one
				e.unparsed = true
			}
		}
	}
	p.skip()
	if !p.take(">") {
		return p.fail("xmlParseEntityDecl: entity %s not terminated", e.name)
	}
	if to[e.name] == nil {
		to[e.name] = e
	}
	return true
}

// entityValue reads the value of an entity: references to characters and
// parameter entities are replaced.
func (p *parser) entityValue() (string, bool) {
	raw, ok := p.literal("EntityValue:")
	if !ok {
		return "", false
	}
	if !strings.ContainsAny(raw, "&%") {
		return newlines(raw), true
	}
	inner := *p
	inner.s, inner.i = newlines(raw), 0
	v, ok := inner.expandValue(nil)
	p.err, p.errS, p.errI, p.budget = inner.err, inner.errS, inner.errI, inner.budget
	return string(v), ok
}

func (p *parser) expandValue(b []byte) ([]byte, bool) {
	for p.i < len(p.s) {
		c := p.s[p.i]
		switch {
		case p.at("&#"):
			r, ok := p.charRef()
			if !ok {
				return b, false
			}
			b = utf8.AppendRune(b, r)
		case c == '&' || c == '%':
			from := p.i
			p.i++
			name := p.name(true, true)
			if name == "" || !p.take(";") {
				return b, p.fail("EntityValue: '%c' forbidden except for entities references", c)
			}
			if c == '&' {
				b = append(b, p.s[from:p.i]...)
				break
			}
			e := p.params[name]
			if p.entities == 0 {
				return b, p.fail("PEReference: forbidden in internal subset")
			}
			if e == nil || e.external {
				break
			}
			if !p.enter(e) {
				return b, false
			}
			s, i := p.s, p.i
			p.s, p.i = e.value, 0
			var ok bool
			if b, ok = p.expandValue(b); !ok {
				return b, false
			}
			p.s, p.i = s, i
			p.leave(e)
		default:
			b = append(b, c)
			p.i++
		}
	}
	return b, true
}

func (p *parser) elementDecl() bool {
	if !p.keyword("<!ELEMENT") {
		return false
	}
	if p.name(true, true) == "" {
		return p.fail("xmlParseElementDecl: no name for Element")
	}
	if !p.skip() {
		return p.fail("Space required after the element name")
	}
	switch {
	case p.take("EMPTY"), p.take("ANY"):
	case p.peek() == '(':
		if !p.contentModel() {
			return false
		}
	default:
		return p.fail("xmlParseElementDecl: 'EMPTY', 'ANY' or '(' expected")
	}
	return p.end("xmlParseElementDecl")
}

// contentModel reads what an element may contain.
func (p *parser) contentModel() bool {
	p.i++
	p.skip()
	if p.take("#PCDATA") {
		p.skip()
		if p.take(")") {
			p.take("*")
			return true
		}
		for p.take("|") {
			p.skip()
			if p.name(true, true) == "" {
				return p.fail("xmlParseElementMixedContentDecl : Name expected")
			}
			p.skip()
		}
		if !p.take(")*") {
			return p.fail("MixedContentDecl : '|' or ')*' expected")
		}
		return true
	}
	return p.children(1)
}

// children reads a group of a content model, behind its parenthesis.
func (p *parser) children(depth int) bool {
	if depth > 128 {
		return p.fail("xmlParseElementChildrenContentDecl : depth %d too deep, use XML_PARSE_HUGE", depth)
	}
	var sep byte
	for {
		p.skip()
		if p.take("(") {
			if !p.children(depth + 1) {
				return false
			}
		} else {
			if p.name(true, true) == "" {
				return p.fail("xmlParseElementChildrenContentDecl : Name or '(' expected")
			}
			p.occurs()
		}
		p.skip()
		c := p.peek()
		switch {
		case c == ')':
			p.i++
			p.occurs()
			return true
		case c != ',' && c != '|', sep != 0 && sep != c:
			return p.fail("ContentDecl : ',' '|' or ')' expected")
		}
		sep = c
		p.i++
	}
}

func (p *parser) occurs() {
	if c := p.peek(); c == '?' || c == '*' || c == '+' {
		p.i++
	}
}

func (p *parser) attlistDecl() bool {
	if !p.keyword("<!ATTLIST") {
		return false
	}
	element := p.name(true, true)
	if element == "" {
		return p.fail("ATTLIST: no name for Element")
	}
	p.skip()
	for p.peek() != '>' {
		if p.i >= len(p.s) {
			return p.fail("expected '>'")
		}
		if !p.attDef(element) {
			return false
		}
	}
	p.i++
	return true
}

// attDef reads the declaration of one attribute.
func (p *parser) attDef(element string) bool {
	name := p.name(true, true)
	if name == "" {
		return p.fail("ATTLIST: no name for Attribute")
	}
	if !p.skip() {
		return p.fail("Space required after the attribute name")
	}
	if p.at("ID") && !p.at("IDREF") {
		p.ids[[2]string{element, name}] = true
	}
	if !p.attType() {
		return false
	}
	if !p.skip() {
		return p.fail("Space required after the attribute type")
	}
	switch {
	case p.take("#REQUIRED"), p.take("#IMPLIED"):
	default:
		if p.take("#FIXED") && !p.skip() {
			return p.fail("Space required after '#FIXED'")
		}
		if _, ok := p.attValue(); !ok {
			return p.fail("Attribute default value declaration error")
		}
	}
	if p.peek() != '>' && !p.skip() {
		return p.fail("Space required after the attribute default value")
	}
	p.skip()
	return true
}

func (p *parser) attType() bool {
	for _, w := range []string{"CDATA", "IDREFS", "IDREF", "ID", "ENTITY", "ENTITIES", "NMTOKENS", "NMTOKEN"} {
		if p.take(w) {
			return true
		}
	}
	first := false
	if p.take("NOTATION") {
		first = true
		if !p.skip() {
			return p.fail("Space required after 'NOTATION'")
		}
	}
	if !p.take("(") {
		return p.fail("'(' required to start ATTLIST enumeration")
	}
	for {
		p.skip()
		if p.name(true, first) == "" {
			return p.fail("NmToken expected in ATTLIST enumeration")
		}
		p.skip()
		if p.take(")") {
			return true
		}
		if !p.take("|") {
			return p.fail("')' required to finish ATTLIST enumeration")
		}
	}
}
