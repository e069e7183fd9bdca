package xml

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// AppendEscaped appends text as content: markup and carriage returns are escaped.
func AppendEscaped(dst []byte, s string) []byte { return appendText(dst, s, "&#x0d;") }

// appendText escapes text; cr is what stands for a carriage return.
func appendText(dst []byte, s, cr string) []byte {
	from := 0
	for i := range len(s) {
		var e string
		switch s[i] {
		case '&':
			e = "&amp;"
		case '<':
			e = "&lt;"
		case '>':
			e = "&gt;"
		case '\r':
			e = cr
		default:
			continue
		}
		dst = append(append(dst, s[from:i]...), e...)
		from = i + 1
	}
	return append(dst, s[from:]...)
}

// AppendAttribute appends the value of an attribute, without its quotes. All but
// ASCII is written as references to characters.
func AppendAttribute(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"':
			dst = append(dst, "&quot;"...)
		case c == '\n':
			dst = append(dst, "&#10;"...)
		case c == '\t':
			dst = append(dst, "&#9;"...)
		case c == '\r':
			dst = append(dst, "&#13;"...)
		case c == '&':
			dst = append(dst, "&amp;"...)
		case c == '<':
			dst = append(dst, "&lt;"...)
		case c == '>':
			dst = append(dst, "&gt;"...)
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = fmt.Appendf(dst, "&#x%X;", r)
			i += n
			continue
		default:
			dst = append(dst, c)
		}
		i++
	}
	return dst
}

// writer writes trees.
type writer struct {
	dst    []byte
	top    *Node       // what is written
	extra  []Namespace // declarations of ancestors that are needed
	indent bool
	level  int
	utf8   bool // attributes are written as they are
}

// AppendNode appends the text of a node, with the declarations that it needs of
// those of its ancestors.
func AppendNode(dst []byte, n *Node) []byte {
	w := writer{dst: dst, top: n}
	if n.Kind == ElementNode {
		w.collect(n)
	}
	w.node(n)
	return w.dst
}

// AppendIndented appends the text of a document or content with an element a line
// where there is no text between elements.
func AppendIndented(dst []byte, root *Node, m Mode) []byte {
	w := writer{dst: dst, top: root, indent: true, utf8: true}
	for i, n := range root.Children {
		if i > 0 && (m == Document || n.Kind != TextNode) {
			w.dst = append(w.dst, '\n')
		}
		w.level = 0
		w.node(n)
	}
	return w.dst
}

// collect finds the namespaces that are declared above the top.
func (w *writer) collect(n *Node) {
	w.need(n, n.Prefix, n.URI)
	for _, a := range n.Attrs {
		w.need(n, a.Prefix, a.URI)
	}
	for _, c := range n.Children {
		if c.Kind == ElementNode {
			w.collect(c)
		}
	}
}

func (w *writer) need(n *Node, prefix, uri string) {
	if uri == "" || prefix == "xml" {
		return
	}
	for e := n; ; e = e.Parent {
		for _, d := range e.Decls {
			if d.Prefix == prefix && d.URI != "" {
				return
			}
		}
		if e == w.top {
			break
		}
	}
	for _, d := range w.extra {
		if d.Prefix == prefix {
			return
		}
	}
	w.extra = append(w.extra, Namespace{prefix, uri})
}

func (w *writer) put(s ...string) {
	for _, s := range s {
		w.dst = append(w.dst, s...)
	}
}

func (w *writer) node(n *Node) {
	switch n.Kind {
	case DocumentNode:
		w.utf8 = true
		for _, c := range n.Children {
			w.node(c)
			w.put("\n")
		}
	case ElementNode:
		w.element(n)
	case TextNode:
		w.dst = appendText(w.dst, n.Value, "&#13;")
	case CDATANode:
		w.put("<![CDATA[", n.Value, "]]>")
	case CommentNode:
		w.put("<!--", n.Value, "-->")
	case PINode:
		w.put("<?", n.Local)
		if n.Value != "" {
			w.put(" ", n.Value)
		}
		w.put("?>")
	case EntityRefNode:
		w.put("&", n.Local, ";")
	case DoctypeNode:
		w.put(n.Value)
	case AttributeNode:
		w.put(" ", n.Name(), `="`)
		if w.utf8 {
			w.dst = appendQuoted(w.dst, n.Value)
		} else {
			w.dst = AppendAttribute(w.dst, n.Value)
		}
		w.put(`"`)
	}
}

// appendQuoted is AppendAttribute that keeps what is not ASCII.
func appendQuoted(dst []byte, s string) []byte {
	for _, r := range s {
		if r < utf8.RuneSelf {
			dst = AppendAttribute(dst, string(r))
		} else {
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

func (w *writer) declaration(d Namespace) {
	w.put(" xmlns")
	if d.Prefix != "" {
		w.put(":", d.Prefix)
	}
	w.put(`="`)
	w.dst = appendQuoted(w.dst, d.URI)
	w.put(`"`)
}

func (w *writer) element(n *Node) {
	w.put("<", n.Name())
	for _, d := range n.Decls {
		w.declaration(d)
	}
	if n == w.top {
		for _, d := range w.extra {
			w.declaration(d)
		}
	}
	for _, a := range n.Attrs {
		w.node(a)
	}
	if len(n.Children) == 0 {
		w.put("/>")
		return
	}
	w.put(">")
	lines := w.indent
	for _, c := range n.Children {
		if c.Kind == TextNode || c.Kind == EntityRefNode || c.Kind == CDATANode {
			lines = false
		}
	}
	saved := w.indent
	w.indent = lines
	w.level++
	for _, c := range n.Children {
		if lines {
			w.put("\n", strings.Repeat("  ", w.level))
		}
		w.node(c)
	}
	w.level--
	if lines {
		w.put("\n", strings.Repeat("  ", w.level))
	}
	w.indent = saved
	w.put("</", n.Name(), ">")
}
