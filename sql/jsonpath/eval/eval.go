// Package eval applies SQL/JSON paths to jsonb values. It follows PostgreSQL's
// rules, which follow ISO SQL's: lax paths wrap and unwrap arrays and pass
// over structural errors, predicates turn errors into unknown.
package eval

import (
	"errors"

	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/jsonpath"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Options say how a path is applied.
type Options struct {
	Vars types.JSONDoc // an object, or nil
	// Named are variables with values of their own, which may be dates and times.
	Named  map[string]Value
	Silent bool // errors end the evaluation, but are not reported
	// Zone says which dates and times may be compared across types, and how;
	// nil allows none.
	Zone *types.Options
}

// item is a value met on the way: a JSON value, or a date or time, for which
// JSON has no type.
type item struct {
	doc  types.JSONDoc
	date *datetime
}

func (v item) kind() types.JSONKind {
	if v.date != nil {
		return types.JSONKindString // as which it is shown
	}
	return v.doc.Kind()
}

func (v item) is(k types.JSONKind) bool { return v.date == nil && v.doc.Kind() == k }

// base is what offsets of objects, which are their ids, count from.
type base struct {
	doc types.JSONDoc
	id  int64
}

type evaluator struct {
	Options
	lax       bool
	lenient   bool // structural errors are passed over
	throwing  bool // errors are reported
	root      item
	current   item
	base      base
	objects   int64 // bases given out so far
	arraySize int   // that last refers to, -1 outside of subscripts
	build     types.JSONBuilder
}

// errQuiet is an error that is not reported.
var errQuiet = errors.New("error while a path was applied")

// status is whether items were found, for callers that do not want them all.
type status bool

// results collects items; nil means that the first one is enough.
type results = *[]item

func newEvaluator(p *jsonpath.Path, doc types.JSONDoc, o Options) (*evaluator, error) {
	if o.Vars != nil && o.Vars.Kind() != types.JSONKindObject {
		return nil, pgerror.New(pgerror.InvalidParameterValue, "\"vars\" argument is not an object").
			WithDetail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.")
	}
	e := &evaluator{Options: o, lax: !p.Strict, lenient: !p.Strict, throwing: !o.Silent, root: item{doc: doc}, objects: 1, arraySize: -1}
	if o.Vars != nil {
		e.objects = 2
	}
	e.current = e.root
	e.base = base{doc, 0}
	return e, nil
}

// Query gives the values that path p finds in doc; a silent error ends them.
func Query(p *jsonpath.Path, doc types.JSONDoc, o Options) (found []types.JSONDoc, err error) {
	e, err := newEvaluator(p, doc, o)
	if err != nil {
		return nil, err
	}
	var items []item
	if _, err = e.item(p.Root, e.root, &items); err != nil && err != errQuiet {
		return nil, err
	}
	for _, v := range items {
		found = append(found, e.asDoc(v))
	}
	return found, nil
}

// Exists reports whether path p finds anything in doc; quiet says that a silent
// error left it unknown.
func Exists(p *jsonpath.Path, doc types.JSONDoc, o Options) (found, quiet bool, err error) {
	e, err := newEvaluator(p, doc, o)
	if err != nil {
		return false, false, err
	}
	var s status
	if e.lax {
		s, err = e.item(p.Root, e.root, nil)
	} else { // any error counts, also behind the first value
		var items []item
		_, err = e.item(p.Root, e.root, &items)
		s = len(items) > 0
	}
	if err == errQuiet {
		return false, true, nil
	}
	return bool(s), false, err
}

// Match gives the boolean that the predicate p makes of doc; known is false if
// it is unknown.
func Match(p *jsonpath.Path, doc types.JSONDoc, o Options) (value, known bool, err error) {
	docs, err := Query(p, doc, o)
	if err != nil {
		return false, false, err
	}
	if len(docs) == 1 {
		switch docs[0].Kind() {
		case types.JSONKindTrue, types.JSONKindFalse:
			return docs[0].Kind() == types.JSONKindTrue, true, nil
		case types.JSONKindNull:
			return false, false, nil
		}
	}
	if !o.Silent {
		err = pgerror.New(pgerror.SingletonSQLJSONItemRequired, "single boolean result is expected")
	}
	return false, false, err
}

// fail makes an error, if errors are reported.
func (e *evaluator) fail(code, format string, args ...any) error {
	if !e.throwing {
		return errQuiet
	}
	return pgerror.New(code, format, args...)
}

// quietly runs f without reporting errors.
func (e *evaluator) quietly(f func() (status, error)) (status, error) {
	saved := e.throwing
	e.throwing = false
	defer func() { e.throwing = saved }()
	return f()
}

// next goes on with v behind node n: with its accessor, or as a result.
func (e *evaluator) next(n *jsonpath.Node, v item, found results) (status, error) {
	if n.Next != nil {
		return e.item(n.Next, v, found)
	}
	if found != nil {
		*found = append(*found, v)
	}
	return true, nil
}

// item applies node n and its accessors to v.
func (e *evaluator) item(n *jsonpath.Node, v item, found results) (status, error) {
	return e.apply(n, v, found, e.lax)
}

// enough reports whether nothing behind n can change that there is a result.
func enough(n *jsonpath.Node, found results) bool { return n.Next == nil && found == nil }

// apply is item; unwrap says whether an array stands for its elements.
func (e *evaluator) apply(n *jsonpath.Node, v item, found results, unwrap bool) (status, error) {
	k := n.Kind
	switch {
	case k.IsPredicate():
		t, err := e.predicate(n, v)
		if err != nil || enough(n, found) {
			return true, err
		}
		return e.next(n, item{doc: t.doc()}, found)
	case k >= jsonpath.Add && k <= jsonpath.Mod:
		return e.arithmetic(n, v, found)
	case k == jsonpath.Plus || k == jsonpath.Minus:
		return e.sign(n, v, found)
	}
	if unwrap && v.is(types.JSONKindArray) {
		switch {
		case k == jsonpath.Type || k == jsonpath.Size:
		case k == jsonpath.Filter, k == jsonpath.Key, k == jsonpath.AnyKey, k.IsMethod():
			return e.elements(n, v.doc, found, false)
		}
	}
	switch k {
	case jsonpath.Root:
		saved := e.base
		e.base = base{e.root.doc, 0}
		defer func() { e.base = saved }()
		return e.next(n, e.root, found)
	case jsonpath.Current:
		return e.next(n, e.current, found)
	case jsonpath.Key:
		return e.member(n, v, found)
	case jsonpath.AnyKey:
		return e.anyMember(n, v, found)
	case jsonpath.AnyLevel:
		return e.anyLevel(n, v, found)
	case jsonpath.AnyElem:
		return e.anyElement(n, v, found)
	case jsonpath.Subscript:
		return e.subscripts(n, v, found)
	case jsonpath.Filter:
		t, err := e.filter(n.Left, v)
		if err != nil || t != yes {
			return false, err
		}
		return e.next(n, v, found)
	case jsonpath.Last:
		if enough(n, found) {
			return true, nil
		}
		return e.next(n, e.number(decimal.AppendInt64(nil, int64(e.arraySize)-1)), found)
	case jsonpath.Null, jsonpath.True, jsonpath.False, jsonpath.String, jsonpath.Number, jsonpath.Variable:
		return e.literal(n, found)
	}
	return e.method(n, v, found)
}

func (e *evaluator) number(enc []byte) item {
	e.build.Number(enc)
	return item{doc: e.build.Append(nil)}
}

func (e *evaluator) str(s []byte) item {
	e.build.String(s)
	return item{doc: e.build.Append(nil)}
}

// literal goes on with the value of a literal or variable.
func (e *evaluator) literal(n *jsonpath.Node, found results) (status, error) {
	if enough(n, found) && n.Kind != jsonpath.Variable {
		return true, nil
	}
	saved := e.base
	defer func() { e.base = saved }()
	v, err := e.value(n)
	if err != nil {
		return false, err
	}
	return e.next(n, v, found)
}

// value is the value of a literal or variable.
func (e *evaluator) value(n *jsonpath.Node) (item, error) {
	switch n.Kind {
	case jsonpath.True:
		return item{doc: yes.doc()}, nil
	case jsonpath.False:
		return item{doc: no.doc()}, nil
	case jsonpath.String:
		return e.str([]byte(n.Text)), nil
	case jsonpath.Number:
		return e.number(n.Num), nil
	case jsonpath.Variable:
		if v, ok := e.Named[n.Text]; ok {
			e.base = base{v.doc, 1}
			return v.item, nil
		}
		if e.Vars == nil {
			if e.Named != nil {
				return item{}, errNoVariable(n)
			}
			break
		}
		doc := e.Vars.Get([]byte(n.Text))
		if doc == nil { // always reported
			return item{}, errNoVariable(n)
		}
		e.base = base{e.Vars, 1}
		return item{doc: doc}, nil
	}
	return item{doc: unknown.doc()}, nil
}

// asDoc is the JSON value that shows v.
func (e *evaluator) asDoc(v item) types.JSONDoc {
	if v.date != nil {
		return e.str(v.date.appendText(nil)).doc
	}
	return v.doc
}

func errNoVariable(n *jsonpath.Node) error {
	return pgerror.New(pgerror.UndefinedObject, "could not find jsonpath variable \"%s\"", n.Text)
}
