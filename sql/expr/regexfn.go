package expr

import (
	"math"
	"sync"
	"unicode/utf8"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/regex"
	"github.com/streamdb/streamdb/sql/types"
)

// regexCache keeps the compiled forms of patterns that come with the data.
var regexCache = struct {
	sync.Mutex
	m map[string]*regex.Regexp
}{m: map[string]*regex.Regexp{}}

const maxRegexCache = 1000

func compileRegex(pattern []byte, f regex.Flags) (*regex.Regexp, *pgerror.Error) {
	key := string(append([]byte{byte(f)}, pattern...))
	regexCache.Lock()
	re := regexCache.m[key]
	regexCache.Unlock()
	if re != nil {
		return re, nil
	}
	re, err := regex.Compile(pattern, f)
	if err != nil {
		return nil, pgerror.As(err)
	}
	regexCache.Lock()
	if len(regexCache.m) >= maxRegexCache {
		clear(regexCache.m)
	}
	regexCache.m[key] = re
	regexCache.Unlock()
	return re, nil
}

// regexFlags reads the flags argument of a function; name is the function if
// it has no use for g.
func regexFlags(s []byte, name, hint string) (f regex.Flags, global bool, err *pgerror.Error) {
	for i, c := range s {
		switch c {
		case 'g':
			global = true
		case 'b', 'e': // both mean basic syntax
			f |= regex.Basic
			f &^= regex.Quote
		case 'c':
			f &^= regex.ICase
		case 'i':
			f |= regex.ICase
		case 'm', 'n':
			f |= regex.NLStop | regex.NLAnchor
		case 'p':
			f = f&^regex.NLAnchor | regex.NLStop
		case 'q':
			f |= regex.Quote
			f &^= regex.Basic
		case 's':
			f &^= regex.NLStop | regex.NLAnchor
		case 't':
			f &^= regex.Expanded
		case 'w':
			f = f&^regex.NLStop | regex.NLAnchor
		case 'x':
			f |= regex.Expanded
		default:
			return 0, false, errParam("invalid regular expression option: \"%s\"", firstChar(s[i:]))
		}
	}
	if global && name != "" {
		err = errParam("%s does not support the \"global\" option", name)
		if hint != "" {
			err = err.WithHint("%s", hint)
		}
	}
	return f, global, err
}

// regexCall is a pattern with its flags, for one row.
type regexCall struct {
	x      *Eval
	re     *regex.Regexp
	global bool
	loc    []int
}

// regexSource gives the pattern of each row of a call; constant ones are
// compiled once.
type regexSource struct {
	pattern, flags int // arguments; flags < 0: none
	name, hint     string
	base           regex.Flags
	checks         []rangeCheck // of other arguments, made before all else
	fixed          *regexCall
}

// rangeCheck says that an int argument must lie between two values.
type rangeCheck struct {
	arg      int
	name     string
	min, max int32
}

func (r *regexSource) make(pattern, flags []byte) (c regexCall, err *pgerror.Error) {
	f, global, err := regexFlags(flags, r.name, r.hint)
	if err != nil {
		return c, err
	}
	c.global = global
	c.re, err = compileRegex(pattern, f|r.base)
	return c, err
}

// prepare compiles a constant pattern. An error is left for the rows, since
// there may be none.
func (r *regexSource) prepare(c *Call) {
	constant := func(k int) ([]byte, bool) {
		if k < 0 || k >= len(c.Args) {
			return nil, true
		}
		e, ok := c.Args[k].(*Const)
		if !ok || e.Val.Null(0) {
			return nil, false
		}
		return e.Val.Bytes(0), true
	}
	p, ok1 := constant(r.pattern)
	f, ok2 := constant(r.flags)
	if ok1 && ok2 {
		if call, err := r.make(p, f); err == nil {
			r.fixed = &call
		}
	}
}

// row is the pattern of row i.
func (r *regexSource) row(x *Eval, a Args, i int) (regexCall, *pgerror.Error) {
	for _, c := range r.checks {
		if c.arg < len(a) {
			if v := a.Int32(c.arg, i); v < c.min || v > c.max {
				return regexCall{}, errParam("invalid value for parameter \"%s\": %d", c.name, v)
			}
		}
	}
	if r.fixed != nil {
		c := *r.fixed
		c.x = x
		return c, nil
	}
	var flags []byte
	if r.flags >= 0 && r.flags < len(a) {
		flags = a.Bytes(r.flags, i)
	}
	c, err := r.make(a.Bytes(r.pattern, i), flags)
	c.x = x
	return c, err
}

// regexOp makes the function behind ~ and its like.
func regexOp(not bool, base regex.Flags) func(c *Call) (Kernel, error) {
	return func(c *Call) (Kernel, error) {
		src := regexSource{pattern: 1, flags: -1, base: base}
		src.prepare(c)
		return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			dst, out := Result[bool](x, n)
			a := Args(args)
			for i := range dst {
				dst[i] = false
				if i%pollRows == pollRows-1 {
					x.poll()
				}
				if x.skip != nil && x.skip.Get(i) {
					continue
				}
				re, err := src.row(x, a, i)
				if err != nil {
					x.Fail(i, err)
					continue
				}
				dst[i] = re.re.Match(a.Bytes(0, i)) != not
			}
			return out
		}, nil
	}
}

// regexFn registers a function over a pattern, which is argument 1.
func regexFn(src regexSource, name string, ret types.Type, f func(re regexCall, a Args, i int, out *columnar.Builder) *pgerror.Error, args ...types.Type) {
	src.pattern = 1
	Register(Function{Name: name, Args: args, Ret: ret, Strict: true, Consts: ScalarConsts, Bind: func(c *Call) (Kernel, error) {
		src := src
		src.prepare(c)
		return RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			re, err := src.row(x, a, i)
			if err != nil {
				return err
			}
			return f(re, a, i, out)
		}), nil
	}})
}

// next is where the search goes on after a match: one character further after
// an empty one.
func nextSearch(s []byte, from, to int) int {
	if from < to {
		return to
	}
	_, w := utf8.DecodeRune(s[to:])
	return to + max(w, 1)
}

// each calls f with every match of s from byte `at` on.
func (c *regexCall) each(s []byte, at int, groups bool, f func(loc []int) bool) {
	for ask := at + pollGrown; at <= len(s); {
		if at >= ask {
			ask = at + pollGrown
			c.x.poll()
		}
		loc, ok := c.re.Find(c.loc[:0], s, at, groups)
		c.loc = loc
		if !ok || !f(loc) {
			return
		}
		at = nextSearch(s, loc[0], loc[1])
	}
}

// groupArray adds the groups of a match (all of it, if there are none) to a
// text array.
func groupArray(dst, s []byte, loc []int) []byte {
	if len(loc) > 2 {
		loc = loc[2:]
	}
	b := columnar.NewBuilder(columnar.KindBytes, len(loc)/2)
	for k := 0; k < len(loc); k += 2 {
		if loc[k] < 0 {
			b.Null()
		} else {
			b.Bytes(s[loc[k]:loc[k+1]])
		}
	}
	return types.AppendList(dst, types.OIDText, b.Build(), 0, len(loc)/2)
}

func regexpMatch(re regexCall, a Args, i int, out *columnar.Builder) *pgerror.Error {
	s := a.Bytes(0, i)
	loc, ok := re.re.Find(nil, s, 0, true)
	if !ok {
		out.Null()
		return nil
	}
	out.Extend(func(dst []byte) []byte { return groupArray(dst, s, loc) })
	return nil
}

// expandReplacement appends a replacement, where \1 to \9 and \& stand for
// parts of the match.
func expandReplacement(dst, with, s []byte, loc []int) []byte {
	for i := 0; i < len(with); i++ {
		c := with[i]
		if c != '\\' || i+1 == len(with) {
			dst = append(dst, c)
			continue
		}
		switch n := with[i+1]; {
		case n == '&':
			dst = append(dst, s[loc[0]:loc[1]]...)
		case n >= '1' && n <= '9':
			if k := 2 * int(n-'0'); k < len(loc) && loc[k] >= 0 {
				dst = append(dst, s[loc[k]:loc[k+1]]...)
			}
		case n == '\\':
			dst = append(dst, c)
		default: // the backslash stands for itself
			dst = append(dst, c)
			continue
		}
		i++
	}
	return dst
}

// needsGroups reports whether a replacement refers to groups.
func needsGroups(with []byte) bool {
	for i := 0; i+1 < len(with); i++ {
		if with[i] == '\\' {
			if i++; with[i] >= '1' && with[i] <= '9' {
				return true
			}
		}
	}
	return false
}

// replaceMatches replaces match number n from byte `at` on, or all if n is 0.
func (c *regexCall) replaceMatches(dst, s, with []byte, at, n int) []byte {
	last, count := 0, 0
	start, ask := len(dst), pollGrown
	c.each(s, at, needsGroups(with), func(loc []int) bool {
		if count++; n > 0 && count < n {
			return true
		}
		dst = append(dst, s[last:loc[0]]...)
		dst = expandReplacement(dst, with, s, loc)
		last = loc[1]
		if n := len(dst) - start; n >= ask {
			ask = c.x.along(n)
		}
		return n == 0
	})
	return append(dst, s[last:]...)
}

// startAt is the byte offset of the character that argument k says, from 1;
// past the end it is -1.
func startAt(a Args, k, i int, s []byte) int {
	if k >= len(a) {
		return 0
	}
	n := a.Int32(k, i)
	at := skipChars(s, int64(n-1))
	if at == len(s) && utf8.RuneCount(s) < int(n-1) {
		return -1
	}
	return at
}

// intArg is an int argument that may be left out.
func intArg(a Args, k, i int, def int32) int32 {
	if k >= len(a) {
		return def
	}
	return a.Int32(k, i)
}

func regexpReplace(re regexCall, a Args, i int, out *columnar.Builder) *pgerror.Error {
	n := 1
	if re.global {
		n = 0
	}
	out.Extend(func(dst []byte) []byte { return re.replaceMatches(dst, a.Bytes(0, i), a.Bytes(2, i), 0, n) })
	return nil
}

// regexpReplaceAt is regexp_replace with a start and a number.
func regexpReplaceAt(re regexCall, a Args, i int, out *columnar.Builder) *pgerror.Error {
	s := a.Bytes(0, i)
	at, n := startAt(a, 3, i, s), intArg(a, 4, i, 1)
	if at < 0 {
		out.Bytes(s)
		return nil
	}
	out.Extend(func(dst []byte) []byte { return re.replaceMatches(dst, s, a.Bytes(2, i), at, int(n)) })
	return nil
}

func regexpCount(re regexCall, a Args, i int, out *columnar.Builder) *pgerror.Error {
	s := a.Bytes(0, i)
	at, n := startAt(a, 2, i, s), int32(0)
	if at >= 0 {
		re.each(s, at, false, func([]int) bool { n++; return true })
	}
	out.Int32(n)
	return nil
}

// nth finds match number n from byte `at` on, and in it group sub (0: all of
// it); nil if there is none.
func (c *regexCall) nth(s []byte, at int, n, sub int32) (found []int) {
	if sub == 1 && c.re.NumSubexp() == 0 {
		sub = 0
	}
	if at < 0 || int(sub) > c.re.NumSubexp() {
		return nil
	}
	c.each(s, at, sub > 0, func(loc []int) bool {
		if n--; n > 0 {
			return true
		}
		if loc[2*sub] >= 0 {
			found = loc[2*sub : 2*sub+2]
		}
		return false
	})
	return found
}

func regexpInstr(re regexCall, a Args, i int, out *columnar.Builder) *pgerror.Error {
	s := a.Bytes(0, i)
	n, end, sub := intArg(a, 3, i, 1), intArg(a, 4, i, 0), intArg(a, 6, i, 0)
	pos := int32(0)
	if loc := re.nth(s, startAt(a, 2, i, s), n, sub); loc != nil {
		pos = int32(utf8.RuneCount(s[:loc[end]])) + 1
	}
	out.Int32(pos)
	return nil
}

func regexpSubstr(re regexCall, a Args, i int, out *columnar.Builder) *pgerror.Error {
	s := a.Bytes(0, i)
	if loc := re.nth(s, startAt(a, 2, i, s), intArg(a, 3, i, 1), intArg(a, 5, i, 0)); loc != nil {
		out.Bytes(s[loc[0]:loc[1]])
	} else {
		out.Null()
	}
	return nil
}

// splitMatches calls f with the pieces of s between matches; empty matches at
// the ends and right after another do not count.
func (c *regexCall) splitMatches(s []byte, f func(piece []byte)) {
	last, prev := 0, 0
	c.each(s, 0, false, func(loc []int) bool {
		if loc[0] < len(s) && loc[1] > prev {
			f(s[last:loc[0]])
			last = loc[1]
		}
		prev = loc[1]
		return true
	})
	f(s[last:])
}

func regexpSplit(re regexCall, a Args, i int, out *columnar.Builder) *pgerror.Error {
	b := columnar.NewBuilder(columnar.KindBytes, 4)
	re.splitMatches(a.Bytes(0, i), func(piece []byte) { b.Bytes(piece) })
	n := b.Len()
	out.Extend(func(dst []byte) []byte { return types.AppendList(dst, types.OIDText, b.Build(), 0, n) })
	return nil
}

// substringRegex is substring(text from pattern): the first group, or all of
// the match if there is none.
func substringRegex(re regexCall, a Args, i int, out *columnar.Builder) *pgerror.Error {
	s := a.Bytes(0, i)
	loc, ok := re.re.Find(nil, s, 0, true)
	if ok && len(loc) > 2 {
		loc = loc[2:4]
	}
	if !ok || loc[0] < 0 {
		out.Null()
		return nil
	}
	out.Bytes(s[loc[0]:loc[1]])
	return nil
}

// substringSimilar is substring(text similar pattern escape).
func substringSimilar(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	esc := a.Bytes(2, i)
	if utf8.RuneCount(esc) > 1 {
		return pgerror.New(pgerror.InvalidEscapeSequence, "invalid escape string").
			WithHint("Escape string must be empty or one character.")
	}
	p, err := similarRegexp(nil, a.Bytes(1, i), esc)
	if err != nil {
		return err
	}
	re, err := compileRegex(p, 0)
	if err != nil {
		return err
	}
	return substringRegex(regexCall{x: x, re: re}, a, i, out)
}

func registerRegexTables() {
	t := types.Text
	table := func(name string, col types.Type, refuse string, f func(re *regexCall, s []byte, out *columnar.Builder)) {
		for n := 2; n <= 3; n++ {
			src := regexSource{pattern: 1, flags: 2, name: refuse}
			RegisterTableFunction(TableFunction{Name: name, Args: slicesRepeat(t, n), Cols: []types.Type{col}, Names: []string{name}, Strict: true,
				Eval: func(x *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
					re, err := src.row(x, args, i)
					if err != nil {
						return 0, err
					}
					before := out[0].Len()
					f(&re, Args(args).Bytes(0, i), out[0])
					return out[0].Len() - before, nil
				}})
		}
	}
	table("regexp_matches", types.Of(types.OIDTextArray), "", func(re *regexCall, s []byte, out *columnar.Builder) {
		re.each(s, 0, true, func(loc []int) bool {
			out.Extend(func(dst []byte) []byte { return groupArray(dst, s, loc) })
			return re.global
		})
	})
	table("regexp_split_to_table", t, "regexp_split_to_table()", func(re *regexCall, s []byte, out *columnar.Builder) {
		re.splitMatches(s, func(piece []byte) { out.Bytes(piece) })
	})
}

func init() {
	t, i4, list := types.Text, types.Int4, types.Of(types.OIDTextArray)
	for _, left := range []types.Type{t, types.Name, types.BPChar} {
		for _, op := range []struct {
			symbol string
			not    bool
			base   regex.Flags
		}{{"~", false, 0}, {"!~", true, 0}, {"~*", false, regex.ICase}, {"!~*", true, regex.ICase}} {
			Register(Function{Name: op.symbol, Operator: true, Args: []types.Type{left, t}, Ret: types.Bool, Strict: true, Consts: ScalarConsts, Bind: regexOp(op.not, op.base)})
		}
	}
	none := regexSource{flags: -1}
	at := func(k int, name string, checks ...rangeCheck) regexSource {
		return regexSource{flags: k, name: name + "()", checks: checks}
	}
	from := func(k int) rangeCheck { return rangeCheck{k, "start", 1, math.MaxInt32} }
	nth := func(k int, min int32) rangeCheck { return rangeCheck{k, "n", min, math.MaxInt32} }
	sub := func(k int) rangeCheck { return rangeCheck{k, "subexpr", 0, math.MaxInt32} }
	match := regexSource{flags: 2, name: "regexp_match()", hint: "Use the regexp_matches function instead."}
	regexFn(match, "regexp_match", list, regexpMatch, t, t)
	regexFn(match, "regexp_match", list, regexpMatch, t, t, t)
	like := func(re regexCall, a Args, i int, out *columnar.Builder) *pgerror.Error {
		out.Bool(re.re.Match(a.Bytes(0, i)))
		return nil
	}
	regexFn(none, "regexp_like", types.Bool, like, t, t)
	regexFn(at(2, "regexp_like"), "regexp_like", types.Bool, like, t, t, t)
	regexFn(none, "regexp_replace", t, regexpReplace, t, t, t)
	regexFn(regexSource{flags: 3}, "regexp_replace", t, regexpReplace, t, t, t, t)
	replaceAt := regexSource{flags: 5, checks: []rangeCheck{from(3), nth(4, 0)}}
	for n, args := 4, []types.Type{t, t, t, i4, i4, t}; n <= len(args); n++ {
		regexFn(replaceAt, "regexp_replace", t, regexpReplaceAt, args[:n]...)
	}
	for n, args := 2, []types.Type{t, t, i4, t}; n <= len(args); n++ {
		regexFn(at(3, "regexp_count", from(2)), "regexp_count", i4, regexpCount, args[:n]...)
	}
	for n, args := 2, []types.Type{t, t, i4, i4, i4, t, i4}; n <= len(args); n++ {
		regexFn(at(5, "regexp_instr", from(2), nth(3, 1), rangeCheck{4, "endoption", 0, 1}, sub(6)), "regexp_instr", i4, regexpInstr, args[:n]...)
	}
	for n, args := 2, []types.Type{t, t, i4, i4, t, i4}; n <= len(args); n++ {
		regexFn(at(4, "regexp_substr", from(2), nth(3, 1), sub(5)), "regexp_substr", t, regexpSubstr, args[:n]...)
	}
	regexFn(at(2, "regexp_split_to_array"), "regexp_split_to_array", list, regexpSplit, t, t)
	regexFn(at(2, "regexp_split_to_array"), "regexp_split_to_array", list, regexpSplit, t, t, t)
	regexFn(none, "substring", t, substringRegex, t, t)
	rowFn("substring", t, substringSimilar, t, t, t)
	registerRegexTables()
}
