package textsearch

// dropStops drops stop words and the operators that have lost operands. What a
// phrase loses is added to the distances of the phrases around it: before and
// after say how much, to the left and to the right of the node. If nothing is
// left of a node, both are the same.
func dropStops(n *Node) (kept *Node, before, after int16) {
	switch n.Op {
	case OpValue:
		return n, 0, 0
	case opStop:
		return nil, 0, 0
	case OpNot:
		var kid *Node
		if kid, before, after = dropStops(n.Kids[0]); kid == nil {
			return nil, before, after
		}
		n.Kids[0] = kid
		return n, before, after
	}
	l, lBefore, lAfter := dropStops(n.left())
	r, rBefore, rAfter := dropStops(n.right())
	phrase := n.Op == OpPhrase
	switch {
	case l == nil && r == nil:
		if phrase {
			before = lBefore + n.Distance + rBefore
		} else {
			before = max(lBefore, rBefore)
		}
		return nil, before, before
	case l == nil:
		if phrase {
			rBefore += lBefore + n.Distance
		}
		return r, rBefore, rAfter
	case r == nil:
		if phrase {
			lAfter += n.Distance + rAfter
		}
		return l, lBefore, lAfter
	}
	n.Kids[0], n.Kids[1] = r, l
	if phrase {
		n.Distance += lAfter + rBefore
		return n, lBefore, rAfter
	}
	return n, 0, 0
}

// dropNots takes out what is negated; nil if the rest may be true of anything.
func dropNots(n *Node) *Node {
	switch n.Op {
	case OpValue:
		return n
	case OpNot:
		return nil
	}
	r, l := dropNots(n.right()), dropNots(n.left())
	switch {
	case r != nil && l != nil:
		return newOp(n.Op, n.Distance, r, l)
	case n.Op == OpOr:
		return nil
	case r != nil:
		return r
	}
	return l
}

// AppendIndexable appends the part of a query that an index could answer
// (querytree): T if there is none.
func AppendIndexable(dst []byte, q Query) []byte {
	n := q.Tree()
	if n == nil {
		return dst
	}
	if n = dropNots(n); n == nil {
		return append(dst, 'T')
	}
	return n.appendText(dst, -1, false)
}
