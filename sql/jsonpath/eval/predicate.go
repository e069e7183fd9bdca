package eval

import (
	"bytes"

	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/jsonpath"
	"github.com/streamdb/streamdb/sql/types"
)

// truth is the value of a predicate.
type truth uint8

const (
	no truth = iota
	yes
	unknown
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

var truthDocs = func() (docs [3]types.JSONDoc) {
	var b types.JSONBuilder
	for t := range docs {
		switch truth(t) {
		case unknown:
			b.Null()
		default:
			b.Bool(truth(t) == yes)
		}
		docs[t] = b.Append(nil)
	}
	return docs
}()

// doc is the truth value as JSON: unknown is null.
func (t truth) doc() types.JSONDoc { return truthDocs[t] }

// filter evaluates a predicate with v as the current value.
func (e *evaluator) filter(n *jsonpath.Node, v item) (truth, error) {
	saved := e.current
	e.current = v
	defer func() { e.current = saved }()
	return e.predicate(n, v)
}

// predicate evaluates a predicate. Errors are only those that are always
// reported.
func (e *evaluator) predicate(n *jsonpath.Node, v item) (truth, error) {
	switch n.Kind {
	case jsonpath.And, jsonpath.Or:
		decided := truthOf(n.Kind == jsonpath.Or)
		left, err := e.predicate(n.Left, v)
		if err != nil || left == decided {
			return left, err
		}
		right, err := e.predicate(n.Right, v)
		if right == yes+no-decided { // the left side decides
			return left, err
		}
		return right, err
	case jsonpath.Not:
		t, err := e.predicate(n.Left, v)
		if t != unknown {
			t = truthOf(t == no)
		}
		return t, err
	case jsonpath.IsUnknown:
		t, err := e.predicate(n.Left, v)
		return truthOf(t == unknown), err
	case jsonpath.Exists:
		return e.exists(n.Left, v)
	case jsonpath.StartsWith:
		return e.pairs(n, v, false, startsWith)
	case jsonpath.LikeRegex:
		return e.pairs(n, v, false, func(a, _ item) (truth, error) {
			if !a.is(types.JSONKindString) {
				return unknown, nil
			}
			return truthOf(n.Regex.Match(a.doc.Str())), nil
		})
	}
	return e.pairs(n, v, true, func(a, b item) (truth, error) { return e.compare(n.Kind, a, b) })
}

func (e *evaluator) exists(n *jsonpath.Node, v item) (truth, error) {
	s, err := e.quietly(func() (status, error) {
		if e.lax {
			return e.item(n, v, nil)
		}
		var items []item
		_, err := e.item(n, v, &items)
		return len(items) > 0, err
	})
	if err == errQuiet {
		return unknown, nil
	}
	return truthOf(bool(s)), err
}

// pairs evaluates a predicate that holds if it does for some pair of values of
// its operands.
func (e *evaluator) pairs(n *jsonpath.Node, v item, unwrapRight bool, holds func(a, b item) (truth, error)) (truth, error) {
	var left, right []item
	_, err := e.quietly(func() (status, error) {
		var err error
		if left, err = e.unwrapped(n.Left, v, true); err != nil {
			return false, err
		}
		if n.Right == nil {
			right = []item{{}}
			return true, nil
		}
		right, err = e.unwrapped(n.Right, v, unwrapRight)
		return true, err
	})
	if err == errQuiet {
		return unknown, nil
	}
	if err != nil {
		return unknown, err
	}
	result := no
	for _, a := range left {
		for _, b := range right {
			t, err := holds(a, b)
			switch {
			case err != nil:
				return unknown, err
			case t == no:
			case t == yes && e.lax:
				return yes, nil
			case t == unknown && !e.lax:
				return unknown, nil
			case t == yes:
				result = yes
			case result == no:
				result = unknown
			}
		}
	}
	return result, nil
}

func startsWith(a, b item) (truth, error) {
	if !a.is(types.JSONKindString) || !b.is(types.JSONKindString) {
		return unknown, nil
	}
	return truthOf(bytes.HasPrefix(a.doc.Str(), b.doc.Str())), nil
}

// compare applies a comparison to two values.
func (e *evaluator) compare(op jsonpath.Kind, a, b item) (truth, error) {
	var c int
	switch {
	case a.date != nil && b.date != nil:
		var ok bool
		var err error
		if c, ok, err = a.date.compare(b.date, e.Zone); err != nil || !ok {
			return unknown, err
		}
	case a.is(types.JSONKindNull) || b.is(types.JSONKindNull):
		if a.is(types.JSONKindNull) != b.is(types.JSONKindNull) {
			return truthOf(op == jsonpath.NotEqual), nil
		}
	case a.date != nil || b.date != nil:
		return unknown, nil
	case isBool(a) && isBool(b):
		c = int(a.kind()) - int(b.kind()) // false comes before true
	case a.kind() != b.kind():
		return unknown, nil
	case a.is(types.JSONKindNumber):
		c = decimal.Compare(a.doc.Number(), b.doc.Number())
	case a.is(types.JSONKindString):
		c = bytes.Compare(a.doc.Str(), b.doc.Str())
	default:
		return unknown, nil
	}
	switch op {
	case jsonpath.Equal:
		return truthOf(c == 0), nil
	case jsonpath.NotEqual:
		return truthOf(c != 0), nil
	case jsonpath.Less:
		return truthOf(c < 0), nil
	case jsonpath.Greater:
		return truthOf(c > 0), nil
	case jsonpath.LessOrEqual:
		return truthOf(c <= 0), nil
	}
	return truthOf(c >= 0), nil
}

func isBool(v item) bool { return v.is(types.JSONKindTrue) || v.is(types.JSONKindFalse) }
