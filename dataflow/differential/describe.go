package differential

import (
	"fmt"
	"strings"
	"unicode"
)

// Describe lists the operators of a circuit in the order of their steps, one a
// line: its number, its name, the columns of its key if it keeps rows by one,
// how many columns it gives, and the operators that it reads. names are what
// inputs are called.
func (c *Circuit) Describe(names map[*Input]string) string {
	reads := make([][]string, len(c.nodes))
	note := func(reader *Node, from *Node) {
		reads[reader.id] = append(reads[reader.id], fmt.Sprintf("#%d", from.id))
	}
	for _, n := range c.nodes {
		for _, p := range n.out {
			for _, e := range p.readers {
				note(e.node, n)
			}
		}
		if a, ok := n.op.(*Arrangement); ok {
			for _, r := range a.readers {
				note(r, n)
			}
		}
	}
	var b strings.Builder
	for _, n := range c.nodes {
		fmt.Fprintf(&b, "#%d %s", n.id, operatorName(n.op))
		switch op := n.op.(type) {
		case *Input:
			if name := names[op]; name != "" {
				b.WriteString(" " + name)
			}
		case *Arrangement:
			fmt.Fprintf(&b, " by %v", op.layout.Key)
		}
		if len(n.out) > 0 {
			fmt.Fprintf(&b, " (%d columns)", len(n.out[0].kinds))
		}
		if len(reads[n.id]) > 0 {
			fmt.Fprintf(&b, " <- %s", strings.Join(reads[n.id], ", "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// operatorName is the name of an operator's type, as words.
func operatorName(op Operator) string {
	switch op.(type) {
	case *Arrangement:
		return "Arrange"
	case mapOp:
		return "Map"
	case *halfJoin:
		return "Semijoin"
	}
	name := fmt.Sprintf("%T", op)
	name = strings.TrimSuffix(name[strings.LastIndexByte(name, '.')+1:], "Op")
	var b strings.Builder
	for i, r := range name {
		switch {
		case i == 0:
			b.WriteRune(unicode.ToUpper(r))
		case unicode.IsUpper(r):
			b.WriteByte(' ')
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
