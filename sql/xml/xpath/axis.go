package xpath

import "github.com/streamdb/streamdb/sql/xml"

// axis lists the nodes of an axis for which ok holds, in the axis's order.
func axis(n *xml.Node, name string, ok func(*xml.Node) bool) []*xml.Node {
	var out []*xml.Node
	add := func(x *xml.Node) {
		if ok(x) {
			out = append(out, x)
		}
	}
	switch name {
	case "self":
		add(n)
	case "child":
		for _, c := range n.Children {
			add(c)
		}
	case "attribute":
		for _, a := range n.Attrs {
			add(a)
		}
	case "namespace":
		for _, s := range n.Namespaces() {
			add(s)
		}
	case "parent":
		if n.Parent != nil {
			add(n.Parent)
		}
	case "descendant":
		descend(n, add)
	case "descendant-or-self":
		add(n)
		descend(n, add)
	case "ancestor-or-self":
		add(n)
		fallthrough
	case "ancestor":
		for p := n.Parent; p != nil; p = p.Parent {
			add(p)
		}
	case "following-sibling":
		for _, s := range after(n) {
			add(s)
		}
	case "preceding-sibling":
		b := before(n)
		for i := len(b) - 1; i >= 0; i-- {
			add(b[i])
		}
	case "following":
		if isLeaf(n) {
			n = n.Parent
		}
		for ; n != nil; n = n.Parent {
			for _, s := range after(n) {
				add(s)
				descend(s, add)
			}
		}
	case "preceding":
		if isLeaf(n) {
			n = n.Parent
		}
		for ; n != nil; n = n.Parent {
			b := before(n)
			for i := len(b) - 1; i >= 0; i-- {
				ascend(b[i], add)
			}
		}
	}
	return out
}

// isLeaf reports whether a node is no child of its parent.
func isLeaf(n *xml.Node) bool { return n.Kind == xml.AttributeNode || n.Kind == xml.NamespaceNode }

// after and before are the siblings of a node.
func after(n *xml.Node) []*xml.Node {
	if n.Parent == nil || isLeaf(n) {
		return nil
	}
	return n.Parent.Children[n.Index()+1:]
}

func before(n *xml.Node) []*xml.Node {
	if n.Parent == nil || isLeaf(n) {
		return nil
	}
	return n.Parent.Children[:n.Index()]
}

// descend visits what is below a node, in document order.
func descend(n *xml.Node, f func(*xml.Node)) {
	for _, c := range n.Children {
		f(c)
		descend(c, f)
	}
}

// ascend visits a node and what is below it, in reverse document order.
func ascend(n *xml.Node, f func(*xml.Node)) {
	for i := len(n.Children) - 1; i >= 0; i-- {
		ascend(n.Children[i], f)
	}
	f(n)
}
