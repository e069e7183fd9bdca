package xml

import "strings"

// entity is a declared entity.
type entity struct {
	name     string
	value    string
	external bool
	unparsed bool
	open     bool // it is being read
	checked  bool // its value was read as content
	size     int  // what it expands to, once it was
}

var predefined = map[string]string{"lt": "<", "gt": ">", "amp": "&", "quot": "\"", "apos": "'"}

// entityRef reads `&name;`; text is that of a predefined one. With neither, the
// reference is to one that is not known and need not be.
func (p *parser) entityRef() (e *entity, text string, ok bool) {
	p.i++
	name := p.name(true, true)
	if name == "" {
		return nil, "", p.fail("xmlParseEntityRef: no name")
	}
	if !p.take(";") {
		return nil, "", p.fail("EntityRef: expecting ';'")
	}
	if t, ok := predefined[name]; ok {
		return nil, t, true
	}
	e = p.general[name]
	switch {
	case e == nil && (p.standalone || !p.external && !p.paramRefs):
		return nil, "", p.fail("Entity '%s' not defined", name)
	case e == nil:
		return &entity{name: name, external: true}, "", true
	case e.unparsed:
		return nil, "", p.fail("Entity reference to unparsed entity %s", name)
	}
	return e, "", true
}

// enter notes that an entity is being read; it fails if it is read already, too
// many are, or their texts grow too long.
func (p *parser) enter(e *entity) bool {
	p.budget -= len(e.value)
	if e.open || p.entities >= maxEntities || p.budget < 0 {
		return p.fail("Detected an entity reference loop")
	}
	e.open = true
	p.entities++
	return true
}

func (p *parser) leave(e *entity) {
	e.open = false
	p.entities--
}

// attReference appends what a reference in the value of an attribute stands for.
func (p *parser) attReference(b []byte) ([]byte, bool) {
	if p.at("&#") {
		r, ok := p.charRef()
		return append(b, string(r)...), ok
	}
	e, text, ok := p.entityRef()
	switch {
	case !ok:
		return b, false
	case e == nil:
		return append(b, text...), true
	case e.external && p.general[e.name] == nil:
		return b, true
	case e.external:
		return b, p.fail("Attribute references external entity '%s'", e.name)
	case strings.Contains(e.value, "<"):
		return b, p.fail("'<' in entity '%s' is not allowed in attributes values", e.name)
	case !p.enter(e):
		return b, false
	}
	defer p.leave(e)
	s, i := p.s, p.i
	p.s, p.i = e.value, 0
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == '&':
			if b, ok = p.attReference(b); !ok {
				return b, false
			}
		case isBlank(c):
			b = append(b, ' ')
			p.i++
		default:
			b = append(b, c)
			p.i++
		}
	}
	p.s, p.i = s, i
	return b, true
}

// reference reads a reference in content.
func (p *parser) reference() bool {
	if p.at("&#") {
		r, ok := p.charRef()
		return ok && p.addText(string(r))
	}
	e, text, ok := p.entityRef()
	switch {
	case !ok:
		return false
	case e == nil:
		return p.addText(text)
	}
	keep := p.build && !p.expand
	if e.external || e.checked && !p.build {
		p.budget -= max(e.size, len(e.value))
		if p.budget < 0 {
			return p.fail("Detected an entity reference loop")
		}
		if keep {
			p.add(&Node{Kind: EntityRefNode, Local: e.name})
		}
		return true
	}
	budget := p.budget
	if !p.enter(e) {
		return false
	}
	parent := p.node
	if keep {
		p.node = &Node{Kind: ElementNode, Parent: parent}
	}
	s, i, depth := p.s, p.i, p.depth
	p.s, p.i = e.value, 0
	if !p.content() {
		return false
	}
	if p.i < len(p.s) {
		return p.fail("chunk is not well balanced")
	}
	p.s, p.i, p.depth = s, i, depth
	p.leave(e)
	e.checked, e.size = true, budget-p.budget
	if keep {
		value := p.node.Text()
		p.node = parent
		p.add(&Node{Kind: EntityRefNode, Local: e.name, Value: value})
	}
	return true
}
