package eval

import (
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/jsonpath"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// member applies .key.
func (e *evaluator) member(n *jsonpath.Node, v item, found results) (status, error) {
	if v.is(types.JSONKindObject) {
		if m := v.doc.Get([]byte(n.Text)); m != nil {
			return e.next(n, item{doc: m}, found)
		}
		if !e.lenient {
			return false, e.fail(pgerror.SQLJSONMemberNotFound, "JSON object does not contain key \"%s\"", n.Text)
		}
		return false, nil
	}
	if !e.lenient {
		return false, e.fail(pgerror.SQLJSONMemberNotFound, "jsonpath member accessor can only be applied to an object")
	}
	return false, nil
}

// anyMember applies .*.
func (e *evaluator) anyMember(n *jsonpath.Node, v item, found results) (status, error) {
	if v.is(types.JSONKindObject) {
		return e.descend(n.Next, v.doc, found, levels{from: 1, to: 1, unwrap: e.lax}, 1)
	}
	if !e.lenient {
		return false, e.fail(pgerror.SQLJSONObjectNotFound, "jsonpath wildcard member accessor can only be applied to an object")
	}
	return false, nil
}

// anyElement applies [*].
func (e *evaluator) anyElement(n *jsonpath.Node, v item, found results) (status, error) {
	switch {
	case v.is(types.JSONKindArray):
		return e.elements(n.Next, v.doc, found, e.lax)
	case e.lax: // one value is an array of it
		return e.next(n, v, found)
	case !e.lenient:
		return false, e.fail(pgerror.SQLJSONArrayNotFound, "jsonpath wildcard array accessor can only be applied to an array")
	}
	return false, nil
}

// anyLevel applies .**.
func (e *evaluator) anyLevel(n *jsonpath.Node, v item, found results) (status, error) {
	var s status
	container := v.date == nil && v.doc.IsContainer()
	if n.From == 0 {
		saved := e.lenient
		e.lenient = true
		var err error
		s, err = e.next(n, v, found)
		e.lenient = saved
		if err == errQuiet && container { // PostgreSQL forgets it
			err = nil
		}
		if err != nil || bool(s) && found == nil {
			return s, err
		}
	}
	if container {
		return e.descend(n.Next, v.doc, found, levels{from: n.From, to: n.To, lenient: true, unwrap: e.lax}, 1)
	}
	return s, nil
}

// elements applies n, which may be nil, to the elements of an array.
func (e *evaluator) elements(n *jsonpath.Node, doc types.JSONDoc, found results, unwrap bool) (status, error) {
	return e.descend(n, doc, found, levels{from: 1, to: 1, unwrap: unwrap}, 1)
}

// levels says which levels below a container to visit, and how.
type levels struct {
	from, to uint32
	lenient  bool // structural errors are passed over
	unwrap   bool
}

// descend applies n, which may be nil, to what lies below doc; level is that of
// its direct elements.
func (e *evaluator) descend(n *jsonpath.Node, doc types.JSONDoc, found results, l levels, level uint32) (status, error) {
	var s status
	if level > l.to {
		return s, nil
	}
	for i := range doc.Len() {
		var v types.JSONDoc
		if doc.Kind() == types.JSONKindObject {
			v = doc.Value(i)
		} else {
			v = doc.Elem(i)
		}
		if level >= l.from || l.from == jsonpath.Deepest && l.to == jsonpath.Deepest && !v.IsContainer() {
			var err error
			if s, err = e.visit(n, v, found, l); err != nil || bool(s) && found == nil {
				return s, err
			}
		}
		if level < l.to && v.IsContainer() {
			var err error
			if s, err = e.descend(n, v, found, l, level+1); err != nil || bool(s) && found == nil {
				return s, err
			}
		}
	}
	return s, nil
}

func (e *evaluator) visit(n *jsonpath.Node, v types.JSONDoc, found results, l levels) (status, error) {
	if n == nil {
		if found != nil {
			*found = append(*found, item{doc: v})
		}
		return true, nil
	}
	saved := e.lenient
	e.lenient = e.lenient || l.lenient
	s, err := e.apply(n, item{doc: v}, found, l.unwrap)
	e.lenient = saved
	return s, err
}

// subscripts applies [from to to, …].
func (e *evaluator) subscripts(n *jsonpath.Node, v item, found results) (status, error) {
	single := !v.is(types.JSONKindArray)
	if single && !e.lax {
		if !e.lenient {
			return false, e.fail(pgerror.SQLJSONArrayNotFound, "jsonpath array accessor can only be applied to an array")
		}
		return false, nil
	}
	size := 1
	if !single {
		size = v.doc.Len()
	}
	saved := e.arraySize
	e.arraySize = size
	defer func() { e.arraySize = saved }()
	var s status
	for _, r := range n.Subscripts {
		from, err := e.index(r.From, v)
		to := from
		if err == nil && r.To != nil {
			to, err = e.index(r.To, v)
		}
		if err != nil {
			return false, err
		}
		if !e.lenient && (from < 0 || from > to || to >= size) {
			return false, e.fail(pgerror.InvalidSQLJSONSubscript, "jsonpath array subscript is out of bounds")
		}
		s = false
		for i := max(from, 0); i <= min(to, size-1); i++ {
			elem := v
			if !single {
				elem = item{doc: v.doc.Elem(i)}
			}
			if s, err = e.next(n, elem, found); err != nil || bool(s) && found == nil {
				return s, err
			}
		}
	}
	return s, nil
}

// index evaluates a subscript.
func (e *evaluator) index(n *jsonpath.Node, v item) (int, error) {
	var items []item
	if _, err := e.item(n, v, &items); err != nil {
		return 0, err
	}
	if len(items) != 1 || !items[0].is(types.JSONKindNumber) {
		return 0, e.fail(pgerror.InvalidSQLJSONSubscript, "jsonpath array subscript is not a single numeric value")
	}
	i, err := decimal.ToInt32(decimal.Trunc(nil, items[0].doc.Number(), 0))
	if err != nil {
		return 0, e.fail(pgerror.InvalidSQLJSONSubscript, "jsonpath array subscript is out of integer range")
	}
	return int(i), nil
}

// unwrapped evaluates n and, in lax mode, replaces arrays by their elements.
func (e *evaluator) unwrapped(n *jsonpath.Node, v item, unwrap bool) ([]item, error) {
	var items []item
	if _, err := e.item(n, v, &items); err != nil || !unwrap || !e.lax {
		return items, err
	}
	var out []item
	for _, it := range items {
		if !it.is(types.JSONKindArray) {
			out = append(out, it)
			continue
		}
		for i := range it.doc.Len() {
			out = append(out, item{doc: it.doc.Elem(i)})
		}
	}
	return out, nil
}

var arithmetic = map[jsonpath.Kind]func(dst, a, b []byte) ([]byte, error){
	jsonpath.Add: decimal.Add, jsonpath.Sub: decimal.Sub, jsonpath.Mul: decimal.Mul, jsonpath.Div: decimal.Div, jsonpath.Mod: decimal.Mod,
}

// arithmetic applies a binary operator.
func (e *evaluator) arithmetic(n *jsonpath.Node, v item, found results) (status, error) {
	left, err := e.unwrapped(n.Left, v, true)
	if err != nil {
		return false, err
	}
	right, err := e.unwrapped(n.Right, v, true)
	if err != nil {
		return false, err
	}
	if len(left) != 1 || !left[0].is(types.JSONKindNumber) {
		return false, e.fail(pgerror.SingletonSQLJSONItemRequired, "left operand of jsonpath operator %s is not a single numeric value", n.Kind)
	}
	if len(right) != 1 || !right[0].is(types.JSONKindNumber) {
		return false, e.fail(pgerror.SingletonSQLJSONItemRequired, "right operand of jsonpath operator %s is not a single numeric value", n.Kind)
	}
	r, err := arithmetic[n.Kind](nil, left[0].doc.Number(), right[0].doc.Number())
	if err != nil {
		if !e.throwing {
			err = errQuiet
		}
		return false, err
	}
	if enough(n, found) {
		return true, nil
	}
	return e.next(n, e.number(r), found)
}

// sign applies a unary operator to each value of its operand.
func (e *evaluator) sign(n *jsonpath.Node, v item, found results) (status, error) {
	items, err := e.unwrapped(n.Left, v, true)
	if err != nil {
		return false, err
	}
	var s status
	for _, it := range items {
		switch {
		case it.is(types.JSONKindNumber):
			if enough(n, found) {
				return true, nil
			}
		case enough(n, found):
			continue
		default:
			return false, e.fail(pgerror.SQLJSONNumberNotFound, "operand of unary jsonpath operator %s is not a numeric value", n.Kind)
		}
		if n.Kind == jsonpath.Minus {
			it = e.number(decimal.Neg(nil, it.doc.Number()))
		}
		t, err := e.next(n, it, found)
		if err != nil {
			return false, err
		}
		if t {
			if s = true; found == nil {
				break
			}
		}
	}
	return s, nil
}
