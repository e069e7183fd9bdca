package xml

import "strings"

// xmlnsURI is bound to the prefix xmlns.
const xmlnsURI = "http://www.w3.org/2000/xmlns/"

// open opens an element with the attributes that were read.
func (p *parser) open(prefix, local string) bool {
	keep := len(p.space) > 0 && p.space[len(p.space)-1]
	for _, a := range p.attrs {
		if a.prefix == "xml" && a.local == "space" {
			keep = a.value == "preserve"
		}
	}
	p.space = append(p.space, keep)
	if !p.build {
		return true
	}
	n := &Node{Kind: ElementNode, Prefix: prefix, Local: local}
	p.add(n)
	p.node = n
	for _, a := range p.attrs {
		switch {
		case a.prefix == "" && a.local == "xmlns", a.prefix == "xmlns":
			if !p.declare(n, a) {
				return false
			}
		default:
			id := p.ids[[2]string{joinName(prefix, local), joinName(a.prefix, a.local)}]
			n.Attrs = append(n.Attrs, &Node{Kind: AttributeNode, Prefix: a.prefix, Local: a.local, Value: a.value, Parent: n, id: id})
		}
	}
	return p.resolve(n)
}

// declare adds a declaration of a namespace to an element.
func (p *parser) declare(n *Node, a attribute) bool {
	prefix := a.local
	if a.prefix == "" {
		prefix = ""
	}
	what := "xmlns:" + prefix
	if prefix == "" {
		what = "xmlns"
	}
	switch {
	case prefix == "xml":
		return a.value == URI || p.namespaceError("xml namespace prefix mapped to wrong URI")
	case a.value == URI && prefix == "":
		return p.namespaceError("xml namespace URI cannot be the default namespace")
	case a.value == URI:
		return p.namespaceError("xml namespace URI mapped to wrong prefix")
	case prefix == "xmlns":
		return p.namespaceError("redefinition of the xmlns prefix is forbidden")
	case a.value == xmlnsURI:
		return p.namespaceError("reuse of the xmlns namespace name is forbidden")
	case a.value == "" && prefix != "":
		return p.namespaceError("xmlns:%s: Empty XML namespace is not allowed", prefix)
	case a.value != "" && !validURI(a.value) && !p.namespaceError("%s: '%s' is not a valid URI", what, a.value):
		return false
	}
	n.Decls = append(n.Decls, Namespace{prefix, a.value})
	return true
}

// resolve finds the namespaces of an element and its attributes.
func (p *parser) resolve(n *Node) bool {
	var ok bool
	for i, a := range n.Attrs {
		if a.Prefix == "" {
			continue
		}
		if a.URI, ok = n.Lookup(a.Prefix); !ok && !p.namespaceError("Namespace prefix %s for %s on %s is not defined", a.Prefix, a.Local, n.Local) {
			return false
		}
		for _, b := range n.Attrs[:i] {
			if ok && a.URI == b.URI && a.Local == b.Local && !p.namespaceError("Namespaced Attribute %s in '%s' redefined", a.Local, a.URI) {
				return false
			}
		}
	}
	if n.URI, ok = n.Lookup(n.Prefix); !ok && n.Prefix != "" {
		return p.namespaceError("Namespace prefix %s on %s is not defined", n.Prefix, n.Local)
	}
	return true
}

// validURI reports whether s is a reference to a URI (RFC 3986).
func validURI(s string) bool {
	const others = "-._~:/?#@!$&'()*+,;=[]%"
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte(others, c) < 0:
			return false
		case c == '%' && (i+2 >= len(s) || !isDigit(s[i+1], 16) || !isDigit(s[i+2], 16)):
			return false
		}
	}
	s, fragment, _ := strings.Cut(s, "#")
	if strings.Contains(fragment, "#") {
		return false
	}
	if k := strings.IndexAny(s, ":/?"); k >= 0 && s[k] == ':' {
		if scheme := s[:k]; scheme == "" || !isLetter(scheme[0]) || strings.ContainsAny(scheme, "_~@!$&'()*,;=[]%") {
			return false
		}
		s = s[k+1:]
	}
	if rest, ok := strings.CutPrefix(s, "//"); ok {
		k := strings.IndexAny(rest+"/", "/?")
		if !validAuthority(rest[:k]) {
			return false
		}
		s = rest[k:]
	}
	return !strings.ContainsAny(s+fragment, "[]")
}

// validAuthority reports whether s is `[user@]host[:port]`.
func validAuthority(s string) bool {
	if k := strings.IndexByte(s, '@'); k >= 0 {
		if strings.ContainsAny(s[:k], "[]") {
			return false
		}
		s = s[k+1:]
	}
	if rest, ok := strings.CutPrefix(s, "["); ok {
		k := strings.IndexByte(rest, ']')
		if k < 0 || strings.ContainsAny(rest[:k], "[@") {
			return false
		}
		s = rest[k+1:]
		if s == "" {
			return true
		}
		if s[0] != ':' {
			return false
		}
	}
	host, port, ok := strings.Cut(s, ":")
	return !strings.ContainsAny(host, "[]@") && (!ok || port != "" && strings.Trim(port, "0123456789") == "")
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
