package xpath

import (
	"math"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/sql/xml"
)

// Truth is the value as a boolean.
func (v Value) Truth() bool {
	switch v.Kind {
	case Nodes:
		return len(v.Nodes) > 0
	case Number:
		return v.Num != 0 && v.Num == v.Num
	case String:
		return v.Str != ""
	}
	return v.Bool
}

// Text is the value as a string.
func (v Value) Text() string {
	switch v.Kind {
	case Nodes:
		if len(v.Nodes) == 0 {
			return ""
		}
		return v.Nodes[0].Text()
	case Number:
		return FormatNumber(v.Num)
	case Boolean:
		return strconv.FormatBool(v.Bool)
	}
	return v.Str
}

// Number is the value as a number.
func (v Value) Number() float64 {
	switch v.Kind {
	case Number:
		return v.Num
	case Boolean:
		if v.Bool {
			return 1
		}
		return 0
	}
	return toNumber(v.Text())
}

// toNumber reads a number with white space around it; else it is NaN.
func toNumber(s string) float64 {
	s = strings.Trim(s, " \t\n\r")
	i := 0
	if strings.HasPrefix(s, "-") {
		i = 1
	}
	from := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	digits := i > from
	if i < len(s) && s[i] == '.' {
		i++
		at := i
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		digits = digits || i > at
	}
	if !digits {
		return math.NaN()
	}
	end := i
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '-' || s[i] == '+') {
			i++
		}
		at := i
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		if i > at {
			end = i
		}
	}
	if i < len(s) {
		return math.NaN()
	}
	f, err := strconv.ParseFloat(s[:end], 64)
	if err != nil && !math.IsInf(f, 0) {
		return math.NaN()
	}
	return f
}

// FormatNumber is a number as XPath's string() gives it, with 15 digits, and with
// an exponent if it is very large or small.
func FormatNumber(f float64) string {
	abs := math.Abs(f)
	switch {
	case f != f:
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0:
		return "0"
	case f > math.MinInt32 && f < math.MaxInt32 && f == math.Trunc(f):
		return strconv.Itoa(int(f))
	}
	if abs > 1e9 || abs < 1e-5 {
		s := strconv.FormatFloat(f, 'e', 14, 64)
		m, e, _ := strings.Cut(s, "e")
		return strings.TrimRight(strings.TrimRight(m, "0"), ".") + "e" + e
	}
	places := 15 - int(math.Floor(math.Log10(abs))) - 2
	if abs < 1 {
		places = 15 - int(math.Floor(math.Log10(abs))) - 1
	}
	s := strconv.FormatFloat(f, 'f', max(places, 0), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// equal is = or, with not, !=.
func equal(l, r Value, not bool) bool {
	if l.Kind == Nodes && r.Kind == Nodes {
		if len(l.Nodes) > 0 && len(r.Nodes) > 0 {
			return anyEqual(l.Nodes, r.Nodes, not)
		}
		return false
	}
	if r.Kind == Nodes {
		l, r = r, l
	}
	if l.Kind == Nodes && r.Kind != Boolean {
		for _, n := range l.Nodes {
			s := n.Text()
			if r.Kind == String && (s == r.Str) != not || r.Kind == Number && (toNumber(s) == r.Num) != not {
				return true
			}
		}
		return false
	}
	switch {
	case l.Kind == Boolean || r.Kind == Boolean:
		return (l.Truth() == r.Truth()) != not
	case l.Kind == Number || r.Kind == Number:
		return (l.Number() == r.Number()) != not
	}
	return (l.Str == r.Str) != not
}

// anyEqual reports whether some pair of nodes has equal (or, with not, unequal)
// texts.
func anyEqual(l, r []*xml.Node, not bool) bool {
	texts := make(map[string]bool, len(l))
	for _, n := range l {
		texts[n.Text()] = true
	}
	for _, n := range r {
		if s := n.Text(); !not && texts[s] || not && (len(texts) > 1 || !texts[s]) {
			return true
		}
	}
	return false
}

// less is <, <=, > or >=.
func less(l, r Value, op string) bool {
	holds := func(a, b float64) bool {
		switch op {
		case "<":
			return a < b
		case "<=":
			return a <= b
		case ">":
			return a > b
		}
		return a >= b
	}
	numbers := func(v Value, other Value) []float64 {
		if v.Kind != Nodes || other.Kind == Boolean {
			if v.Kind == Nodes {
				v = boolean(v.Truth())
			}
			return []float64{v.Number()}
		}
		out := make([]float64, len(v.Nodes))
		for i, n := range v.Nodes {
			out[i] = toNumber(n.Text())
		}
		return out
	}
	for _, a := range numbers(l, r) {
		for _, b := range numbers(r, l) {
			if holds(a, b) {
				return true
			}
		}
	}
	return false
}
