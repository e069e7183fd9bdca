package expr

import (
	"bytes"
	"unicode/utf8"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// likeShape is the shape of a LIKE pattern that can be matched without the
// general matcher.
type likeShape uint8

const (
	likeGeneral  likeShape = iota
	likeAll                // % alone
	likeExact              // no wildcard
	likePrefix             // lit%
	likeSuffix             // %lit
	likeContains           // %lit%
	likeBoth               // lit%lit2
)

// likePattern is a prepared LIKE pattern.
type likePattern struct {
	shape    likeShape
	lit, end []byte
	pat      []byte
	octets   bool // _ stands for a byte
}

// makeLike prepares a pattern; octets is for bytea.
func makeLike(pat []byte, octets bool) likePattern {
	p := likePattern{pat: pat, octets: octets}
	// Parts between runs of %, unescaped; anything else than literals is general.
	var parts [][]byte
	var part []byte
	for i := 0; i < len(pat); i++ {
		switch c := pat[i]; c {
		case '_':
			return p
		case '%':
			if i == 0 || pat[i-1] != '%' || len(part) > 0 || len(parts) == 0 {
				parts = append(parts, part)
				part = nil
			}
			continue
		case '\\':
			if i++; i == len(pat) {
				return p // the error is found only if matching comes so far
			}
			part = append(part, pat[i])
		default:
			part = append(part, c)
		}
	}
	parts = append(parts, part)
	switch n := len(parts); {
	case n == 1:
		p.shape, p.lit = likeExact, parts[0]
	case n == 2 && len(parts[0]) == 0 && len(parts[1]) == 0:
		p.shape = likeAll
	case n == 2 && len(parts[1]) == 0:
		p.shape, p.lit = likePrefix, parts[0]
	case n == 2 && len(parts[0]) == 0:
		p.shape, p.lit = likeSuffix, parts[1]
	case n == 2:
		p.shape, p.lit, p.end = likeBoth, parts[0], parts[1]
	case n == 3 && len(parts[0]) == 0 && len(parts[2]) == 0:
		p.shape, p.lit = likeContains, parts[1]
	}
	return p
}

func (p *likePattern) match(s []byte) (bool, *pgerror.Error) {
	switch p.shape {
	case likeAll:
		return true, nil
	case likeExact:
		return bytes.Equal(s, p.lit), nil
	case likePrefix:
		return bytes.HasPrefix(s, p.lit), nil
	case likeSuffix:
		return bytes.HasSuffix(s, p.lit), nil
	case likeContains:
		return bytes.Contains(s, p.lit), nil
	case likeBoth:
		return len(s) >= len(p.lit)+len(p.end) && bytes.HasPrefix(s, p.lit) && bytes.HasSuffix(s, p.end), nil
	}
	ok, done := likeMatch(s, p.pat, p.octets)
	if !done {
		return false, errLikeEscape()
	}
	return ok, nil
}

func errLikeEscape() *pgerror.Error {
	return pgerror.New(pgerror.InvalidEscapeSequence, "LIKE pattern must not end with escape character")
}

// likeMatch matches s with pattern p. done is false if the pattern ends with an
// escape character that was needed. After a mismatch it goes back to the last %
// only: what stands before it has matched as early as possible, which is best.
func likeMatch(s, p []byte, octets bool) (ok, done bool) {
	var backS, backP []byte
	star := false
	char := func(b []byte) int {
		if octets {
			return 1
		}
		_, n := utf8.DecodeRune(b)
		return n
	}
	for len(s) > 0 {
		switch {
		case len(p) > 0 && p[0] == '%':
			for len(p) > 0 && (p[0] == '%' || p[0] == '_') {
				if p[0] == '_' {
					if len(s) == 0 {
						return false, true
					}
					s = s[char(s):]
				}
				p = p[1:]
			}
			if len(p) == 0 {
				return true, true
			}
			if len(p) == 1 && p[0] == '\\' {
				return false, false
			}
			star, backS, backP = true, s, p
			continue
		case len(p) > 0 && p[0] == '_':
			s, p = s[char(s):], p[1:]
			continue
		case len(p) > 0 && p[0] == '\\':
			if len(p) == 1 {
				return false, false
			}
			if p[1] == s[0] {
				s, p = s[1:], p[2:]
				continue
			}
		case len(p) > 0 && p[0] == s[0]:
			s, p = s[1:], p[1:]
			continue
		}
		if !star || len(backS) == 0 {
			return false, true
		}
		backS = backS[char(backS):]
		s, p = backS, backP
	}
	for len(p) > 0 && p[0] == '%' {
		p = p[1:]
	}
	return len(p) == 0, true
}

// likeOp makes the function behind LIKE and its like.
func likeOp(not, fold, octets bool) func(c *Call) (Kernel, error) {
	return func(c *Call) (Kernel, error) {
		var fixed *likePattern
		if k, ok := c.Args[1].(*Const); ok && !k.Val.Null(0) {
			p := prepareLike(k.Val.Bytes(0), fold, octets)
			fixed = &p
		}
		return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			dst, out := Result[bool](x, n)
			a := Args(args)
			var buf []byte
			for i := range dst {
				dst[i] = false
				if x.skip != nil && x.skip.Get(i) {
					continue
				}
				s := a.Bytes(0, i)
				if fold {
					buf = appendLower(buf[:0], s)
					s = buf
				}
				p := fixed
				if p == nil {
					q := prepareLike(a.Bytes(1, i), fold, octets)
					p = &q
				}
				ok, err := p.match(s)
				if err != nil {
					x.Fail(i, err)
					continue
				}
				dst[i] = ok != not
			}
			return out
		}, nil
	}
}

func prepareLike(pat []byte, fold, octets bool) likePattern {
	if fold {
		pat = appendLower(nil, pat)
	}
	return makeLike(pat, octets)
}

// likeEscape rewrites a pattern with another escape character into one that
// uses the backslash.
func likeEscape(octets bool) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		p, esc := a.Bytes(0, i), a.Bytes(1, i)
		if len(esc) > 1 && (octets || utf8.RuneCount(esc) > 1) {
			return pgerror.New(pgerror.InvalidEscapeSequence, "invalid escape string").
				WithHint("Escape string must be empty or one character.")
		}
		out.Extend(func(dst []byte) []byte {
			if len(esc) == 0 { // no escape character: a backslash is nothing special
				for _, c := range p {
					if c == '\\' {
						dst = append(dst, c)
					}
					dst = append(dst, c)
				}
				return dst
			}
			if len(esc) == 1 && esc[0] == '\\' {
				return append(dst, p...)
			}
			after := false
			for len(p) > 0 {
				c := p[:1]
				if !octets {
					c = firstChar(p)
				}
				p = p[len(c):]
				switch {
				case bytes.Equal(c, esc) && !after:
					dst = append(dst, '\\')
					after = true
					continue
				case c[0] == '\\':
					if !after {
						dst = append(dst, '\\')
					}
					dst = append(dst, '\\')
				default:
					dst = append(dst, c...)
				}
				after = false
			}
			return dst
		})
		return nil
	}
}

// similarRegexp turns a SIMILAR TO pattern into a regular expression; esc is
// the escape character, nil for none.
func similarRegexp(dst, p, esc []byte) ([]byte, *pgerror.Error) {
	dst = append(dst, "^(?:"...)
	// depth counts open brackets of a character class; start is 1 after the
	// first and 2 after a caret behind it, where a closing one is literal.
	afterEsc, quotes, depth, start := false, 0, 0, 0
	for len(p) > 0 {
		c := firstChar(p)
		p = p[len(c):]
		b := c[0]
		switch {
		case afterEsc:
			if b == '"' && depth == 0 { // separates the parts of SUBSTRING … SIMILAR
				switch quotes {
				case 0:
					dst = append(dst, "){1,1}?("...)
				case 1:
					dst = append(dst, "){1,1}(?:"...)
				default:
					return dst, pgerror.New("2200C", "SQL regular expression may not contain more than two escape-double-quote separators")
				}
				quotes++
			} else {
				// Any character may be escaped, also one that has no meaning.
				dst = append(append(dst, '\\'), c...)
				start = 3
			}
			afterEsc = false
		case len(esc) > 0 && bytes.Equal(c, esc):
			afterEsc = true
		case depth > 0:
			if b == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, c...)
			switch {
			case b == ']' && start > 2:
				depth--
			case b == '[':
				depth++
			}
			if b == '^' {
				start++
			} else {
				start = 3
			}
		case b == '[':
			dst = append(dst, b)
			depth, start = 1, 1
		case b == '%':
			dst = append(dst, ".*"...)
		case b == '_':
			dst = append(dst, '.')
		case b == '(':
			dst = append(dst, "(?:"...)
		case b == '\\' || b == '.' || b == '^' || b == '$':
			dst = append(dst, '\\', b)
		default:
			dst = append(dst, c...)
		}
	}
	return append(dst, ")$"...), nil
}

// similarEscape is similar_to_escape; legacy is similar_escape, which is not
// strict in its escape.
func similarEscape(legacy bool) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		esc := []byte{'\\'}
		if legacy && a.Null(0, i) {
			out.Null()
			return nil
		}
		if len(a) > 1 && !(legacy && a.Null(1, i)) {
			if esc = a.Bytes(1, i); utf8.RuneCount(esc) > 1 {
				return pgerror.New(pgerror.InvalidEscapeSequence, "invalid escape string").
					WithHint("Escape string must be empty or one character.")
			}
		}
		r, err := similarRegexp(nil, a.Bytes(0, i), esc)
		if err != nil {
			return err
		}
		out.Bytes(r)
		return nil
	}
}

func registerLike() {
	type pair struct{ op, name string }
	for _, k := range []struct {
		names     []pair
		not, fold bool
	}{
		{[]pair{{"~~", "like"}}, false, false}, {[]pair{{"!~~", "notlike"}}, true, false},
		{[]pair{{"~~*", "texticlike"}}, false, true}, {[]pair{{"!~~*", "texticnlike"}}, true, true},
	} {
		for _, t := range []types.Type{types.Text, types.Name, types.BPChar, types.Bytea} {
			right := types.Text
			if t == types.Bytea {
				if k.fold {
					continue
				}
				right = t
			}
			f := Function{
				Name: k.names[0].op, Operator: true, Args: []types.Type{t, right}, Ret: types.Bool, Strict: true,
				Consts: ScalarConsts, Bind: likeOp(k.not, k.fold, t == types.Bytea),
			}
			Register(f)
			if f.Name, f.Operator = k.names[0].name, false; !k.fold && t != types.BPChar {
				Register(f)
			}
		}
	}
}

func init() {
	text := types.Text
	registerLike()
	rowFn("like_escape", text, likeEscape(false), text, text)
	rowFn("like_escape", types.Bytea, likeEscape(true), types.Bytea, types.Bytea)
	rowFn("similar_to_escape", text, similarEscape(false), text)
	rowFn("similar_to_escape", text, similarEscape(false), text, text)
	Register(Function{Name: "similar_escape", Args: []types.Type{text, text}, Ret: text, Consts: ScalarConsts, Eval: RowKernel(similarEscape(true))})
}
