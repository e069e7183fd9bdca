package expr

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// splitText calls f with the parts of s between delimiters; a nil delimiter
// makes every character a part.
func splitText(s, delim []byte, f func(part []byte)) {
	switch {
	case len(s) == 0:
	case delim == nil:
		for len(s) > 0 {
			_, n := utf8.DecodeRune(s)
			f(s[:n])
			s = s[n:]
		}
	case len(delim) == 0:
		f(s)
	default:
		for {
			part, rest, more := bytes.Cut(s, delim)
			f(part)
			if !more {
				return
			}
			s = rest
		}
	}
}

// splitArgs splits argument 0 by argument 1; parts equal to argument 2 are NULL.
func splitArgs(a Args, i int, out *columnar.Builder) {
	var delim []byte
	if !a.Null(1, i) {
		delim = a.Bytes(1, i)
		if delim == nil {
			delim = []byte{}
		}
	}
	nulls := len(a) > 2 && !a.Null(2, i)
	splitText(a.Bytes(0, i), delim, func(part []byte) {
		if nulls && bytes.Equal(part, a.Bytes(2, i)) {
			out.Null()
		} else {
			out.Bytes(part)
		}
	})
}

func stringToArray(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	if a.Null(0, i) {
		out.Null()
		return nil
	}
	b := x.Builder(columnar.KindBytes, 4)
	splitArgs(a, i, b)
	n := b.Len()
	out.Extend(func(dst []byte) []byte { return types.AppendList(dst, types.OIDText, b.Build(), 0, n) })
	return nil
}

func stringToTable(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	a := Args(args)
	if a.Null(0, i) {
		return 0, nil
	}
	before := out[0].Len()
	splitArgs(a, i, out[0])
	return out[0].Len() - before, nil
}

// parseIdent splits a qualified name into its parts.
func parseIdent(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	all := a.Bytes(0, i)
	bad := func(detail string) *pgerror.Error {
		err := errParam("string is not a valid identifier: \"%s\"", all)
		if detail != "" {
			err = err.WithDetail("%s", detail)
		}
		return err
	}
	isSpace := func(c byte) bool { return strings.IndexByte(" \t\n\r\f", c) >= 0 }
	s := all
	skip := func() {
		for len(s) > 0 && isSpace(s[0]) {
			s = s[1:]
		}
	}
	b := columnar.NewBuilder(columnar.KindBytes, 4)
	skip()
	for afterDot := false; ; {
		part, rest, detail := identPart(s)
		switch {
		case detail != "":
			return bad(detail)
		case part == nil && len(s) > 0 && s[0] == '.':
			return bad("No valid identifier before \".\".")
		case part == nil && afterDot:
			return bad("No valid identifier after \".\".")
		case part == nil:
			return bad("")
		}
		b.Bytes(part)
		s = rest
		skip()
		if len(s) > 0 && s[0] == '.' {
			afterDot = true
			s = s[1:]
			skip()
			continue
		}
		if len(s) > 0 && a.Bool(1, i) {
			return bad("")
		}
		break
	}
	n := b.Len()
	out.Extend(func(dst []byte) []byte { return types.AppendList(dst, types.OIDText, b.Build(), 0, n) })
	return nil
}

// identPart takes a name from the start of s; nil if there is none. detail says
// what is wrong with a quoted one.
func identPart(s []byte) (part, rest []byte, detail string) {
	if len(s) > 0 && s[0] == '"' {
		for k := 1; k < len(s); k++ {
			switch {
			case s[k] != '"':
				part = append(part, s[k])
			case k+1 < len(s) && s[k+1] == '"':
				part = append(part, '"')
				k++
			case len(part) == 0:
				return nil, nil, "Quoted identifier must not be empty."
			default:
				return part, s[k+1:], ""
			}
		}
		return nil, nil, "String has unclosed double quotes."
	}
	n := 0
	for n < len(s) {
		c := s[n]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
		if !letter && (n == 0 || c != '$' && (c < '0' || c > '9')) {
			break
		}
		n++
	}
	if n == 0 {
		return nil, s, ""
	}
	part = bytes.Clone(s[:n])
	for k, c := range part {
		if c >= 'A' && c <= 'Z' {
			part[k] = c | 0x20
		}
	}
	return part, s[n:], ""
}

var unicodeEscapes = []struct {
	prefix string
	digits int
}{{`\u`, 4}, {`\+`, 6}, {`\U`, 8}, {`\`, 4}}

// unicodeEscape reads an escape at the start of s; n is its length, 0 if it is
// none.
func unicodeEscape(s []byte) (r uint64, n int) {
	for _, e := range unicodeEscapes {
		n := len(e.prefix) + e.digits
		if len(s) < n || string(s[:len(e.prefix)]) != e.prefix {
			continue
		}
		if r, err := strconv.ParseUint(string(s[len(e.prefix):n]), 16, 64); err == nil {
			return r, n
		}
	}
	return 0, 0
}

// unistr replaces Unicode escapes by their characters.
func unistr(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	invalidPair := pgerror.New(pgerror.SyntaxError, "invalid Unicode surrogate pair")
	var dst []byte
	var high uint64
	for s := a.Bytes(0, i); len(s) > 0; {
		if s[0] != '\\' || len(s) > 1 && s[1] == '\\' {
			if high != 0 {
				return invalidPair
			}
			if s[0] == '\\' {
				s = s[1:]
			}
			dst = append(dst, s[0])
			s = s[1:]
			continue
		}
		r, n := unicodeEscape(s)
		switch {
		case n == 0:
			return pgerror.New(pgerror.SyntaxError, "invalid Unicode escape").
				WithHint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
		case r == 0 || r > utf8.MaxRune:
			return errParam("invalid Unicode code point: %s", fmt.Sprintf("%04X", r))
		case (r >= 0xdc00 && r < 0xe000) != (high != 0):
			return invalidPair
		case r >= 0xd800 && r < 0xdc00:
			high = r
		case high != 0:
			dst = utf8.AppendRune(dst, rune(0x10000+(high-0xd800)<<10+r-0xdc00))
			high = 0
		default:
			dst = utf8.AppendRune(dst, rune(r))
		}
		s = s[n:]
	}
	if high != 0 {
		return invalidPair
	}
	out.Bytes(dst)
	return nil
}

// normForm is Unicode's normal form of a name.
func normForm(name []byte) (norm.Form, *pgerror.Error) {
	switch strings.ToUpper(string(name)) {
	case "NFC":
		return norm.NFC, nil
	case "NFD":
		return norm.NFD, nil
	case "NFKC":
		return norm.NFKC, nil
	case "NFKD":
		return norm.NFKD, nil
	}
	return 0, errParam("invalid normalization form: %s", name)
}

func registerNormalize() {
	t := types.Text
	fn := func(name string, ret types.Type, f rowFunc) {
		Register(Function{Name: name, Args: []types.Type{t, t}, Defaults: []*Const{TextConst("NFC")}, Ret: ret, Strict: true, Consts: ScalarConsts, Eval: RowKernel(f)})
	}
	fn("normalize", t, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		form, err := normForm(a.Bytes(1, i))
		if err == nil {
			out.Extend(func(dst []byte) []byte { return append(dst, form.Bytes(a.Bytes(0, i))...) })
		}
		return err
	})
	fn("is_normalized", types.Bool, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		form, err := normForm(a.Bytes(1, i))
		if err == nil {
			out.Bool(form.IsNormal(a.Bytes(0, i)))
		}
		return err
	})
}

// registerPatternOps registers the comparisons byte by byte, whatever the
// collation.
func registerPatternOps() {
	for _, op := range []struct {
		symbol, name string
		holds        func(c int) bool
	}{
		{"~<~", "pattern_lt", func(c int) bool { return c < 0 }}, {"~<=~", "pattern_le", func(c int) bool { return c <= 0 }},
		{"~>=~", "pattern_ge", func(c int) bool { return c >= 0 }}, {"~>~", "pattern_gt", func(c int) bool { return c > 0 }},
	} {
		plain := bytes2Fixed(func(a, b []byte) bool { return op.holds(bytes.Compare(a, b)) })
		trimmed := bytes2Fixed(func(a, b []byte) bool {
			return op.holds(bytes.Compare(types.TrimBPChar(a), types.TrimBPChar(b)))
		})
		totalOp(op.symbol, types.Bool, plain, types.Text, types.Text)
		totalFn("text_"+op.name, types.Bool, plain, types.Text, types.Text)
		totalOp(op.symbol, types.Bool, trimmed, types.BPChar, types.BPChar)
		totalFn("bpchar_"+op.name, types.Bool, trimmed, types.BPChar, types.BPChar)
	}
}

func init() {
	t, list := types.Text, types.Of(types.OIDTextArray)
	for _, args := range [][]types.Type{{t, t}, {t, t, t}} {
		Register(Function{Name: "string_to_array", Args: args, Ret: list, Total: true, Consts: ScalarConsts, Eval: RowKernel(stringToArray)})
		RegisterTableFunction(TableFunction{Name: "string_to_table", Args: args, Cols: []types.Type{t}, Names: []string{"string_to_table"}, Eval: stringToTable})
	}
	Register(Function{Name: "parse_ident", Args: []types.Type{t, types.Bool}, ArgNames: []string{"str", "strict"}, Defaults: []*Const{BoolConst(true)},
		Ret: list, Strict: true, Consts: ScalarConsts, Eval: RowKernel(parseIdent)})
	rowFn("unistr", t, unistr, t)
	registerNormalize()
	registerPatternOps()
}
