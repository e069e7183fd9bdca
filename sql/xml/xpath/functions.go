package xpath

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/streamdb/streamdb/sql/xml"
)

// function is a function of the core library: how many arguments it may have,
// and what it does with them.
type function struct {
	min, max int
	eval     func(v *evaluation, args []Value, at focus) Value
}

const manyArgs = 1 << 20

var functions map[string]function

func init() {
	functions = map[string]function{
		"last":     {0, 0, func(v *evaluation, _ []Value, at focus) Value { return v.place(at.size, errSize) }},
		"position": {0, 0, func(v *evaluation, _ []Value, at focus) Value { return v.place(at.pos, errPosition) }},
		"count": {1, 1, func(v *evaluation, a []Value, _ focus) Value {
			if a[0].Kind != Nodes {
				return v.fail(errType)
			}
			return numeric(float64(len(a[0].Nodes)))
		}},
		"id":            {1, 1, idFunction},
		"local-name":    {0, 1, named(func(n *xml.Node) string { return n.Local })},
		"name":          {0, 1, named((*xml.Node).Name)},
		"namespace-uri": {0, 1, named(func(n *xml.Node) string { return n.URI })},
		"string":        {0, 1, func(_ *evaluation, a []Value, at focus) Value { return text(argument(a, at).Text()) }},
		"concat": {2, manyArgs, func(_ *evaluation, a []Value, _ focus) Value {
			var b strings.Builder
			for _, x := range a {
				b.WriteString(x.Text())
			}
			return text(b.String())
		}},
		"starts-with": {2, 2, func(_ *evaluation, a []Value, _ focus) Value {
			return boolean(strings.HasPrefix(a[0].Text(), a[1].Text()))
		}},
		"contains": {2, 2, func(_ *evaluation, a []Value, _ focus) Value {
			return boolean(strings.Contains(a[0].Text(), a[1].Text()))
		}},
		"substring-before": {2, 2, func(_ *evaluation, a []Value, _ focus) Value {
			before, _, ok := strings.Cut(a[0].Text(), a[1].Text())
			if !ok {
				before = ""
			}
			return text(before)
		}},
		"substring-after": {2, 2, func(_ *evaluation, a []Value, _ focus) Value {
			_, after, _ := strings.Cut(a[0].Text(), a[1].Text())
			return text(after)
		}},
		"substring": {2, 3, substring},
		"string-length": {0, 1, func(_ *evaluation, a []Value, at focus) Value {
			return numeric(float64(utf8.RuneCountInString(argument(a, at).Text())))
		}},
		"normalize-space": {0, 1, func(_ *evaluation, a []Value, at focus) Value {
			return text(strings.Join(strings.FieldsFunc(argument(a, at).Text(), func(r rune) bool { return r < utf8.RuneSelf && isBlank(byte(r)) }), " "))
		}},
		"translate": {3, 3, translate},
		"boolean":   {1, 1, func(_ *evaluation, a []Value, _ focus) Value { return boolean(a[0].Truth()) }},
		"not":       {1, 1, func(_ *evaluation, a []Value, _ focus) Value { return boolean(!a[0].Truth()) }},
		"true":      {0, 0, func(*evaluation, []Value, focus) Value { return boolean(true) }},
		"false":     {0, 0, func(*evaluation, []Value, focus) Value { return boolean(false) }},
		"lang":      {1, 1, lang},
		"number":    {0, 1, func(_ *evaluation, a []Value, at focus) Value { return numeric(argument(a, at).Number()) }},
		"sum": {1, 1, func(v *evaluation, a []Value, _ focus) Value {
			if a[0].Kind != Nodes {
				return v.fail(errType)
			}
			sum := 0.0
			for _, n := range a[0].Nodes {
				sum += toNumber(n.Text())
			}
			return numeric(sum)
		}},
		"floor":   {1, 1, rounded(math.Floor)},
		"ceiling": {1, 1, rounded(math.Ceil)},
		"round":   {1, 1, rounded(round)},
	}
}

// place is a place in a list, which there is only in predicates.
func (v *evaluation) place(n int, e Error) Value {
	if n == 0 {
		return v.fail(e)
	}
	return numeric(float64(n))
}

func (v *evaluation) call(c call, at focus) Value {
	args := make([]Value, len(c.args))
	for i, a := range c.args {
		args[i] = v.eval(a, at)
	}
	if v.err != nil {
		return Value{}
	}
	if c.prefix != "" {
		if _, ok := v.space(c.prefix); !ok {
			return v.fail(errPrefix)
		}
		return v.fail(errFunction)
	}
	f, ok := functions[c.name]
	switch {
	case !ok:
		return v.fail(errFunction)
	case len(args) < f.min || len(args) > f.max:
		return v.fail(errArity)
	}
	return f.eval(v, args, at)
}

// argument is the only argument; without it, the node at hand.
func argument(a []Value, at focus) Value {
	if len(a) == 0 {
		return Value{Nodes: []*xml.Node{at.node}}
	}
	return a[0]
}

// named is a function of the name of the first node.
func named(f func(*xml.Node) string) func(*evaluation, []Value, focus) Value {
	return func(v *evaluation, a []Value, at focus) Value {
		x := argument(a, at)
		if x.Kind != Nodes {
			return v.fail(errType)
		}
		if len(x.Nodes) == 0 {
			return text("")
		}
		switch n := x.Nodes[0]; n.Kind {
		case xml.ElementNode, xml.AttributeNode, xml.PINode, xml.NamespaceNode:
			return text(f(n))
		}
		return text("")
	}
}

func rounded(f func(float64) float64) func(*evaluation, []Value, focus) Value {
	return func(_ *evaluation, a []Value, _ focus) Value { return numeric(f(a[0].Number())) }
}

// round rounds to the next integer, halves up.
func round(f float64) float64 {
	if f >= -0.5 && f < 0.5 {
		return math.Copysign(0, f)
	}
	r := math.Floor(f)
	if f-r >= 0.5 {
		r++
	}
	return r
}

// substring counts characters from 1; bounds are rounded.
func substring(_ *evaluation, a []Value, _ focus) Value {
	from := round(a[1].Number())
	to := math.Inf(1)
	if len(a) == 3 {
		to = from + round(a[2].Number())
	}
	var b strings.Builder
	i := 0.0
	for _, r := range a[0].Text() {
		if i++; i >= from && i < to {
			b.WriteRune(r)
		}
	}
	return text(b.String())
}

func translate(_ *evaluation, a []Value, _ focus) Value {
	from, to := []rune(a[1].Text()), []rune(a[2].Text())
	m := make(map[rune]rune, len(from))
	for i, r := range from {
		if _, ok := m[r]; ok {
			continue
		}
		m[r] = -1
		if i < len(to) {
			m[r] = to[i]
		}
	}
	return text(strings.Map(func(r rune) rune {
		if t, ok := m[r]; ok {
			return t
		}
		return r
	}, a[0].Text()))
}

// lang reports whether the language of the node at hand is the argument, or a
// variety of it.
func lang(_ *evaluation, a []Value, at focus) Value {
	want := a[0].Text()
	for n := at.node; n != nil; n = n.Parent {
		for _, x := range n.Attrs {
			if x.Local == "lang" && x.URI == xml.URI {
				ok := len(x.Value) >= len(want) && strings.EqualFold(x.Value[:len(want)], want) && (len(x.Value) == len(want) || x.Value[len(want)] == '-')
				return boolean(ok)
			}
		}
	}
	return boolean(false)
}

// idFunction finds the elements whose xml:id is among the words of the argument.
func idFunction(v *evaluation, a []Value, _ focus) Value {
	words := map[string]bool{}
	add := func(s string) {
		for _, w := range strings.FieldsFunc(s, func(r rune) bool { return r < utf8.RuneSelf && isBlank(byte(r)) }) {
			words[w] = true
		}
	}
	if a[0].Kind == Nodes {
		for _, n := range a[0].Nodes {
			add(n.Text())
		}
	} else {
		add(a[0].Text())
	}
	var out []*xml.Node
	descend(v.root, func(n *xml.Node) {
		for _, x := range n.Attrs {
			if x.IsID() && words[x.Value] {
				out = append(out, n)
				delete(words, x.Value)
			}
		}
	})
	return Value{Nodes: out}
}
