package parser

import "github.com/streamdb/streamdb/sql/pgerror"

// piece is the text of one statement: [start, end) without the semicolon, and
// whole, the end with it. depth is an error if its tree would be too deep.
type piece struct {
	start, end, whole int
	depth             *pgerror.Error
}

// split cuts a text into statements at the semicolons outside of quotes,
// comments, parentheses and the BEGIN ATOMIC bodies of functions.
func split(text string) []piece {
	var out []piece
	l := lexer{text: text}
	start, last := -1, 0
	var parens, atomic int
	var head [4]string
	words := 0
	var depth depthMeter
	depth.reset()
	flush := func(end, whole int) {
		if start >= 0 {
			out = append(out, piece{start, end, whole, depth.err()})
		}
		start, parens, atomic, words = -1, 0, 0, 0
		depth.reset()
	}
	for {
		t := l.next()
		if t.kind == tokEOF {
			flush(last, last)
			return out
		}
		if t.kind == tokOp && t.val == ";" && parens == 0 && atomic == 0 {
			flush(last, t.end)
			last = t.end
			continue
		}
		if start < 0 {
			start = t.start
		}
		last = t.end
		depth.token(t)
		switch {
		case t.kind == tokOp && t.val == "(":
			parens++
		case t.kind == tokOp && t.val == ")" && parens > 0:
			parens--
		case t.kind == tokWord:
			if words < len(head) {
				head[words] = t.val
			}
			words++
			if createsRoutine(head) {
				atomic = atomicDepth(t.val, atomic)
			}
		}
	}
}

func createsRoutine(head [4]string) bool {
	if head[0] != "create" {
		return false
	}
	k := head[1]
	if k == "or" {
		k = head[3]
	}
	return k == "function" || k == "procedure"
}

// atomicDepth follows the nesting of BEGIN … END and CASE … END in a routine's body.
func atomicDepth(word string, depth int) int {
	switch {
	case word == "begin", word == "case" && depth > 0:
		return depth + 1
	case word == "end" && depth > 0:
		return depth - 1
	}
	return depth
}
