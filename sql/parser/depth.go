package parser

import "github.com/streamdb/streamdb/sql/pgerror"

// maxDepth bounds the depth of a statement's tree. PostgreSQL's grammar itself
// builds chains like 1+1+1… of any length, but what walks the tree afterwards
// (in C, on a thread's stack) recurses: a deeper tree would crash the process.
const maxDepth = 3000

// depthMeter estimates, from the tokens of a statement, how deep its tree gets:
// the nesting of parentheses and CASE, plus the operators in a row at each
// level. It errs on the high side only within one operand of AND or of a list.
type depthMeter struct {
	levels []depthLevel
	total  int
	most   int
}

// depthLevel is an open parenthesis or CASE. ops are the operators since the
// last place where an expression began anew, chain the joins and set operations.
type depthLevel struct {
	ops, chain int
	isCase     bool
}

func (m *depthMeter) reset() {
	m.levels = append(m.levels[:0], depthLevel{})
	m.total, m.most = 0, 0
}

// token takes the next token of the statement.
func (m *depthMeter) token(t token) {
	top := &m.levels[len(m.levels)-1]
	switch t.kind {
	case tokOp:
		switch t.val {
		case "(", "[":
			m.push(false)
		case ")", "]":
			m.pop()
		case ",":
			m.fresh(top)
		case ".", ";":
		default:
			m.operator(&top.ops)
		}
	case tokWord:
		switch t.val {
		case "case":
			m.push(true)
		case "end":
			if top.isCase {
				m.pop()
			}
		case "join", "union", "intersect", "except":
			m.operator(&top.chain)
		case "not", "is", "isnull", "notnull", "collate", "at", "in", "like", "ilike", "similar", "between", "escape":
			m.operator(&top.ops)
		case "when", "then", "else", "and", "or", "where", "from", "on", "having", "by", "select", "values", "set":
			m.fresh(top)
		}
	}
}

func (m *depthMeter) operator(count *int) {
	*count++
	m.total++
	m.most = max(m.most, m.total)
}

// fresh forgets the operators of an expression that has ended.
func (m *depthMeter) fresh(l *depthLevel) {
	m.total -= l.ops
	l.ops = 0
}

func (m *depthMeter) push(isCase bool) {
	m.levels = append(m.levels, depthLevel{isCase: isCase})
	m.total++
	m.most = max(m.most, m.total)
}

func (m *depthMeter) pop() {
	if len(m.levels) > 1 {
		l := m.levels[len(m.levels)-1]
		m.levels = m.levels[:len(m.levels)-1]
		m.total -= l.ops + l.chain + 1
	}
}

// checkDepth refuses a text whose tree would be too deep.
func checkDepth(text string) *pgerror.Error {
	var m depthMeter
	m.reset()
	for l := (lexer{text: text}); ; {
		t := l.next()
		if t.kind == tokEOF {
			return m.err()
		}
		m.token(t)
	}
}

func (m *depthMeter) err() *pgerror.Error {
	if m.most <= maxDepth {
		return nil
	}
	return pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded").
		WithHint("The statement nests expressions, or chains operators, joins or set operations, more than %d deep.", maxDepth)
}
