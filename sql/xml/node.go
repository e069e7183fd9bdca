package xml

import "strings"

// Kind is the kind of a node.
type Kind uint8

// The kinds.
const (
	DocumentNode Kind = iota
	ElementNode
	AttributeNode
	TextNode
	CDATANode
	CommentNode
	PINode
	EntityRefNode
	DoctypeNode
	NamespaceNode
)

// Namespace is a declaration: a prefix ("" for the default) and its URI.
type Namespace struct{ Prefix, URI string }

// Node is a node of a tree.
type Node struct {
	Kind          Kind
	Prefix, Local string // of elements and attributes; Local also the target, the entity, or the prefix of a namespace
	URI           string // of the namespace
	Value         string // of text, comments, attributes; the entity's text; the URI of a namespace; the text of a DOCTYPE
	Parent        *Node
	Children      []*Node
	Attrs         []*Node
	Decls         []Namespace // declared here
	order, index  int
	id            bool
}

// Name is the name with its prefix.
func (n *Node) Name() string {
	if n.Prefix == "" {
		return n.Local
	}
	return n.Prefix + ":" + n.Local
}

// Order is the place of the node in the document.
func (n *Node) Order() int { return n.order }

// Index is the place of the node among the children of its parent.
func (n *Node) Index() int { return n.index }

// IsID reports whether an attribute identifies its element.
func (n *Node) IsID() bool { return n.id || n.Local == "id" && n.URI == URI }

// number gives the nodes of a document their order.
func (n *Node) number() {
	at := 0
	var walk func(n *Node)
	walk = func(n *Node) {
		n.order = at
		at++
		for _, a := range n.Attrs {
			a.order = at
			at++
		}
		for i, c := range n.Children {
			c.index = i
			walk(c)
		}
	}
	walk(n)
}

// Root is the document that the node is in.
func (n *Node) Root() *Node {
	for n.Parent != nil {
		n = n.Parent
	}
	return n
}

// Text is the string value of the node.
func (n *Node) Text() string {
	if n.Kind != DocumentNode && n.Kind != ElementNode {
		return n.Value
	}
	if len(n.Children) == 1 && n.Children[0].Kind == TextNode {
		return n.Children[0].Value
	}
	var b strings.Builder
	n.text(&b)
	return b.String()
}

func (n *Node) text(b *strings.Builder) {
	for _, c := range n.Children {
		switch c.Kind {
		case TextNode, CDATANode, EntityRefNode:
			b.WriteString(c.Value)
		case ElementNode:
			c.text(b)
		}
	}
}

// URI is bound to the prefix xml everywhere.
const URI = "http://www.w3.org/XML/1998/namespace"

// Lookup is the URI that a prefix is bound to at an element.
func (n *Node) Lookup(prefix string) (uri string, ok bool) {
	if prefix == "xml" {
		return URI, true
	}
	for ; n != nil; n = n.Parent {
		for _, d := range n.Decls {
			if d.Prefix == prefix {
				return d.URI, d.URI != ""
			}
		}
	}
	return "", false
}

// Namespaces lists the namespaces in scope at an element as nodes.
func (n *Node) Namespaces() []*Node {
	if n.Kind != ElementNode {
		return nil
	}
	out := []*Node{{Kind: NamespaceNode, Local: "xml", Value: URI, Parent: n, order: n.order}}
	seen := map[string]bool{}
	for e := n; e != nil; e = e.Parent {
		for _, d := range e.Decls {
			if seen[d.Prefix] {
				continue
			}
			seen[d.Prefix] = true
			out = append(out, &Node{Kind: NamespaceNode, Local: d.Prefix, Value: d.URI, Parent: n, order: n.order})
		}
	}
	return out
}
