package textsearch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Op is what a node of a query is.
type Op uint8

// The operators, as PostgreSQL numbers them; a value is a lexeme.
const (
	OpValue Op = iota
	OpNot
	OpAnd
	OpOr
	OpPhrase
	opStop // a stop word; not in finished queries
)

// Node is a node of a query.
type Node struct {
	Op       Op
	Prefix   bool  // of a value: the start of a lexeme is enough
	Weights  uint8 // of a value: the set of weights it may have, 0: all
	Distance int16 // of a phrase
	Word     []byte
	Kids     []*Node // one of Not, two of others; the right one is the first
	crc      int32
	depth    int32 // of what is under it, while it is parsed
}

// Query is the stored form of a tsquery, which is its binary form: the number of
// nodes (uint32, big-endian), then the nodes, each before those under it, the
// right one first.
type Query []byte

// The kinds of nodes in the binary form.
const (
	kindValue    = 1
	kindOperator = 2
)

// maxDepth bounds the recursion over a query.
const maxDepth = 1 << 14

func errDepth() error {
	return pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded")
}

// newValue makes a node of a lexeme.
func newValue(word []byte, weights uint8, prefix bool) *Node {
	return &Node{Op: OpValue, Word: word, Weights: weights, Prefix: prefix, crc: crcOf(word)}
}

func newOp(op Op, distance int16, kids ...*Node) *Node {
	return &Node{Op: op, Distance: distance, Kids: kids}
}

func (n *Node) right() *Node { return n.Kids[0] }
func (n *Node) left() *Node  { return n.Kids[1] }

// crcOf is the checksum that orders lexemes: CRC-32 with its table taken from
// the wrong end, as PostgreSQL has always done.
func crcOf(word []byte) int32 {
	c := ^uint32(0)
	for _, b := range word {
		c = crc32.IEEETable[byte(c>>24)^b] ^ c<<8
	}
	return int32(^c)
}

// Len is the number of nodes.
func (q Query) Len() int { return int(binary.BigEndian.Uint32(q)) }

// Tree reads a query; it is nil if the query is empty.
func (q Query) Tree() *Node {
	if q.Len() == 0 {
		return nil
	}
	r := q[4:]
	return r.node()
}

func (q *Query) node() *Node {
	b := *q
	if b[0] == kindValue {
		end := 3 + bytes.IndexByte(b[3:], 0)
		*q = b[end+1:]
		return newValue(b[3:end:end], b[1], b[2] != 0)
	}
	n := &Node{Op: Op(b[1])}
	b = b[2:]
	if n.Op == OpPhrase {
		n.Distance = int16(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	*q = b
	kids := 2
	if n.Op == OpNot {
		kids = 1
	}
	n.Kids = make([]*Node, kids)
	for i := range n.Kids {
		n.Kids[i] = q.node()
	}
	return n
}

// AppendQuery appends the stored form of a tree (nil: the empty query).
func AppendQuery(dst []byte, n *Node) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if n == nil {
		return dst, nil
	}
	dst, count, ok := n.appendNode(dst, 0)
	if !ok {
		return dst[:start], errDepth()
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(count))
	return dst, nil
}

func (n *Node) appendNode(dst []byte, depth int) (_ []byte, count int, ok bool) {
	if depth > maxDepth {
		return dst, 0, false
	}
	if n.Op == OpValue {
		prefix := byte(0)
		if n.Prefix {
			prefix = 1
		}
		dst = append(dst, kindValue, n.Weights, prefix)
		return append(append(dst, n.Word...), 0), 1, true
	}
	dst = append(dst, kindOperator, byte(n.Op))
	if n.Op == OpPhrase {
		dst = binary.BigEndian.AppendUint16(dst, uint16(n.Distance))
	}
	count = 1
	for _, k := range n.Kids {
		c := 0
		if dst, c, ok = k.appendNode(dst, depth+1); !ok {
			return dst, 0, false
		}
		count += c
	}
	return dst, count, true
}

// ReadQuery appends the query whose binary form is p; check looks at its
// strings' encoding.
func ReadQuery(dst, p []byte, check func(string) error) ([]byte, error) {
	m := message{rest: p}
	n := int(m.uint32())
	if n > 0x3fffffff/12 {
		return dst, errInternal("invalid size of tsquery")
	}
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	var open []int // operands that are still to come, of each operator around
	if n > 0 {
		open = append(open, 1)
	}
	for i := 0; i < n && m.err == nil; i++ {
		switch {
		case len(open) == 0:
			return dst[:start], errInternal("malformed tsquery: extra nodes")
		case len(open) > maxDepth:
			return dst[:start], errDepth()
		}
		open[len(open)-1]--
		var err error
		var kids int
		if dst, kids, err = readNode(dst, &m, i == n-1, check); err != nil {
			return dst[:start], err
		}
		if kids > 0 {
			open = append(open, kids)
		}
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
	}
	if err := m.end(); err != nil {
		return dst[:start], err
	}
	if len(open) > 0 {
		return dst[:start], errInternal("malformed tsquery: operand not found")
	}
	return dst, nil
}

// readNode copies a node; kids is the number of those under it.
func readNode(dst []byte, m *message, last bool, check func(string) error) (_ []byte, kids int, err error) {
	switch kind := m.uint8(); {
	case m.err != nil:
		return dst, 0, m.err
	case kind == kindValue:
		weights, prefix := m.uint8(), m.uint8()
		word := m.string(check)
		switch {
		case m.err != nil:
			return dst, 0, m.err
		case weights > 15:
			return dst, 0, errInternal("invalid tsquery: invalid weight bitmap")
		case len(word) > MaxWord:
			return dst, 0, errInternal("invalid tsquery: operand too long")
		}
		if prefix != 0 {
			prefix = 1
		}
		dst = append(dst, kindValue, weights, prefix)
		return append(append(dst, word...), 0), 0, nil
	case kind == kindOperator:
		op := Op(m.uint8())
		if m.err == nil && (op < OpNot || op > OpPhrase) {
			return dst, 0, errInternal("invalid tsquery: unrecognized operator type %d", int8(op))
		}
		if m.err == nil && last {
			return dst, 0, errInternal("invalid pointer to right operand")
		}
		dst, kids = append(dst, kindOperator, byte(op)), 2
		switch op {
		case OpNot:
			kids = 1
		case OpPhrase:
			dst = binary.BigEndian.AppendUint16(dst, m.uint16())
		}
		return dst, kids, m.err
	default:
		return dst, 0, errInternal("unrecognized tsquery node type: %d", int8(kind))
	}
}

// size is the number of nodes of a tree, and of the bytes of PostgreSQL's form.
func (n *Node) size() (nodes, bytes int) {
	if n == nil {
		return 0, 8
	}
	nodes, bytes = 1, 12
	if n.Op == OpValue {
		return 1, 12 + 8 + len(n.Word) + 1
	}
	for _, k := range n.Kids {
		kn, kb := k.size()
		nodes, bytes = nodes+kn, bytes+kb-8
	}
	return nodes, bytes + 8
}

// CompareQueries orders queries: by their sizes, then node by node. Weights and
// prefixes do not matter.
func CompareQueries(a, b Query) int {
	if bytes.Equal(a, b) {
		return 0
	}
	x, y := a.Tree(), b.Tree()
	xn, xb := x.size()
	yn, yb := y.size()
	if c := cmp.Or(cmp.Compare(xn, yn), cmp.Compare(xb, yb)); c != 0 || xn == 0 {
		return c
	}
	return compareNodes(x, y)
}

func compareNodes(x, y *Node) int {
	if (x.Op == OpValue) != (y.Op == OpValue) {
		if x.Op == OpValue {
			return 1
		}
		return -1
	}
	if x.Op == OpValue {
		return cmp.Or(cmp.Compare(y.crc, x.crc), bytes.Compare(x.Word, y.Word))
	}
	if c := cmp.Or(cmp.Compare(y.Op, x.Op), cmp.Compare(len(y.Kids), len(x.Kids))); c != 0 {
		return c
	}
	for i := range x.Kids {
		if c := compareNodes(x.Kids[i], y.Kids[i]); c != 0 {
			return c
		}
	}
	if x.Op == OpPhrase {
		return cmp.Compare(y.Distance, x.Distance)
	}
	return 0
}

// AppendQueryKey appends a key whose byte order is that of CompareQueries.
func AppendQueryKey(dst []byte, q Query) []byte {
	t := q.Tree()
	nodes, size := t.size()
	dst = binary.BigEndian.AppendUint32(dst, uint32(nodes))
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	if t != nil {
		dst = t.appendKey(dst)
	}
	return dst
}

func (n *Node) appendKey(dst []byte) []byte {
	if n.Op == OpValue {
		dst = binary.BigEndian.AppendUint32(append(dst, 1), ^(uint32(n.crc) ^ 1<<31))
		return append(append(dst, n.Word...), 0) // a lexeme has no zero byte
	}
	dst = append(dst, 0, ^byte(n.Op))
	for _, k := range n.Kids {
		dst = k.appendKey(dst)
	}
	if n.Op == OpPhrase {
		dst = binary.BigEndian.AppendUint16(dst, ^(uint16(n.Distance) ^ 1<<15))
	}
	return dst
}

// NormQuery gives equal queries the same bytes: without weights and prefixes.
func NormQuery(q Query) Query {
	out := Query(bytes.Clone(q))
	for r := out[4:]; len(r) > 0; {
		switch {
		case r[0] == kindValue:
			r[1], r[2] = 0, 0
			r = r[3+bytes.IndexByte(r[3:], 0)+1:]
		case Op(r[1]) == OpPhrase:
			r = r[4:]
		default:
			r = r[2:]
		}
	}
	return out
}
