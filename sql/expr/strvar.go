package expr

import (
	_ "embed" // the key words
	"strings"
	"unicode/utf8"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

//go:embed keywords.txt
var keywordsText string

// quotedWords are the key words that cannot stand unquoted everywhere.
var quotedWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(keywordsText) {
		m[w] = true
	}
	return m
}()

// appendIdent appends an identifier, quoted where that is needed.
func appendIdent(dst []byte, b []byte) []byte {
	plain := len(b) > 0 && !quotedWords[text(b)]
	for i, c := range b {
		if !(c == '_' || c >= 'a' && c <= 'z' || i > 0 && c >= '0' && c <= '9') {
			plain = false
			break
		}
	}
	if plain {
		return append(dst, b...)
	}
	dst = append(dst, '"')
	for _, c := range b {
		if c == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// appendLiteral appends a string literal.
func appendLiteral(dst []byte, b []byte) []byte {
	for _, c := range b {
		if c == '\\' {
			dst = append(dst, 'E')
			break
		}
	}
	dst = append(dst, '\'')
	for _, c := range b {
		if c == '\'' || c == '\\' {
			dst = append(dst, c)
		}
		dst = append(dst, c)
	}
	return append(dst, '\'')
}

// spreadArgs gives the arguments of a variadic call one by one: those from
// `first` on, or the elements of the array where it was written VARIADIC.
type spreadArgs struct {
	c     *Call
	x     *Eval
	a     Args
	first int
	row   int
	array types.Array
	n     int
}

func spreadRow(c *Call, x *Eval, a Args, first, i int) spreadArgs {
	s := spreadArgs{c: c, x: x, a: a, first: first, row: i, n: len(a) - first}
	if c.Variadic {
		s.n = 0
		if last := len(a) - 1; !a.Null(last, i) {
			s.array = types.ReadArray(a.Bytes(last, i))
			s.n = s.array.N
		}
	}
	return s
}

func (s *spreadArgs) null(k int) bool {
	if s.c.Variadic {
		return s.array.Null(k)
	}
	return s.a.Null(s.first+k, s.row)
}

func (s *spreadArgs) typ(k int) types.Type {
	if s.c.Variadic {
		return types.Of(s.array.Elem)
	}
	return s.c.Args[s.first+k].Type()
}

// append appends the text form of argument k.
func (s *spreadArgs) append(dst []byte, k int) []byte {
	if s.c.Variadic {
		return s.array.AppendElemText(dst, k, s.x.options())
	}
	return s.a.appendText(dst, s.x, s.typ(k), s.first+k, s.row)
}

// concatKernel is concat and concat_ws: NULLs are passed over.
func concatKernel(ws bool) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a, first := Args(args), 0
		if ws {
			first = 1
		}
		out := x.Builder(columnar.KindBytes, n)
		for i := range n {
			if ws && a.Null(0, i) || c.Variadic && a.Null(len(a)-1, i) {
				out.Null()
				continue
			}
			s := spreadRow(c, x, a, first, i)
			out.Extend(func(dst []byte) []byte {
				any := false
				for k := range s.n {
					if s.null(k) {
						continue
					}
					if ws && any {
						dst = append(dst, a.Bytes(0, i)...)
					}
					dst, any = s.append(dst, k), true
				}
				return dst
			})
		}
		return out.Build()
	}
}

// formatter is the state of format() for one row.
type formatter struct {
	args spreadArgs
	f    []byte // what is left of the format
	next int    // the next argument that is taken in order
	buf  []byte
}

func errFormatEnd() *pgerror.Error {
	return errParam("unterminated format() type specifier").WithHint("For a single \"%%\" use \"%%%%\".")
}

// number reads digits.
func (p *formatter) number() (n int, ok bool, err *pgerror.Error) {
	for len(p.f) > 0 && p.f[0] >= '0' && p.f[0] <= '9' {
		n = n*10 + int(p.f[0]-'0')
		if n > 1<<31-1 {
			return 0, false, pgerror.New(pgerror.NumericValueOutOfRange, "number is out of range")
		}
		p.f = p.f[1:]
		ok = true
	}
	if ok && len(p.f) == 0 {
		return 0, false, errFormatEnd()
	}
	return n, ok, nil
}

// spec is one conversion: %[position$][flags][width]type.
type formatSpec struct {
	arg      int // from 1; 0: the next
	widthArg int // from 1; 0: the next; -1: none
	width    int
	left     bool
}

func (p *formatter) spec() (s formatSpec, err *pgerror.Error) {
	s.widthArg = -1
	n, ok, err := p.number()
	if err != nil {
		return s, err
	}
	if ok {
		if p.f[0] != '$' {
			s.width = n
			return s, nil
		}
		if s.arg = n; n == 0 {
			return s, errParam("format specifies argument 0, but arguments are numbered from 1")
		}
		if p.f = p.f[1:]; len(p.f) == 0 {
			return s, errFormatEnd()
		}
	}
	for p.f[0] == '-' {
		s.left = true
		if p.f = p.f[1:]; len(p.f) == 0 {
			return s, errFormatEnd()
		}
	}
	if p.f[0] != '*' {
		s.width, _, err = p.number()
		return s, err
	}
	if p.f = p.f[1:]; len(p.f) == 0 {
		return s, errFormatEnd()
	}
	if n, ok, err = p.number(); err != nil {
		return s, err
	}
	s.widthArg = 0
	if ok {
		if p.f[0] != '$' {
			return s, errParam("width argument position must be ended by \"$\"")
		}
		if s.widthArg = n; n == 0 {
			return s, errParam("format specifies argument 0, but arguments are numbered from 1")
		}
		if p.f = p.f[1:]; len(p.f) == 0 {
			return s, errFormatEnd()
		}
	}
	return s, nil
}

// take is the number of the argument that position asks for.
func (p *formatter) take(position int) (int, *pgerror.Error) {
	k := position - 1
	if position == 0 {
		k = p.next
	}
	if k >= p.args.n {
		return 0, errParam("too few arguments for format()")
	}
	p.next = k + 1
	return k, nil
}

// argWidth reads a width from an argument.
func (p *formatter) argWidth(position int) (int, *pgerror.Error) {
	k, err := p.take(position)
	if err != nil || p.args.null(k) {
		return 0, err
	}
	p.buf = p.args.append(p.buf[:0], k)
	n, perr := types.ParseInt4(text(p.buf))
	if perr != nil {
		return 0, pgerror.As(perr)
	}
	return int(n), nil
}

func (p *formatter) run(dst []byte) ([]byte, *pgerror.Error) {
	for len(p.f) > 0 {
		c := p.f[0]
		p.f = p.f[1:]
		if c != '%' {
			dst = append(dst, c)
			continue
		}
		if len(p.f) == 0 {
			return dst, errFormatEnd()
		}
		if p.f[0] == '%' {
			dst = append(dst, '%')
			p.f = p.f[1:]
			continue
		}
		var err *pgerror.Error
		if dst, err = p.convert(dst); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (p *formatter) convert(dst []byte) ([]byte, *pgerror.Error) {
	s, err := p.spec()
	if err != nil {
		return dst, err
	}
	typ := p.f[0]
	if typ != 's' && typ != 'I' && typ != 'L' {
		return dst, errParam("unrecognized format() type specifier \"%s\"", firstChar(p.f)).
			WithHint("For a single \"%%\" use \"%%%%\".")
	}
	p.f = p.f[1:]
	width := s.width
	if s.widthArg >= 0 {
		if width, err = p.argWidth(s.widthArg); err != nil {
			return dst, err
		}
	}
	k, err := p.take(s.arg)
	if err != nil {
		return dst, err
	}
	from := len(dst)
	switch null := p.args.null(k); {
	case null && typ == 'I':
		return dst, pgerror.New(pgerror.NullValueNotAllowed, "null values cannot be formatted as an SQL identifier")
	case null && typ == 'L':
		dst = append(dst, "NULL"...)
	case null:
	case typ == 's':
		dst = p.args.append(dst, k)
	default:
		p.buf = p.args.append(p.buf[:0], k)
		if typ == 'I' {
			dst = appendIdent(dst, p.buf)
		} else {
			dst = appendLiteral(dst, p.buf)
		}
	}
	return padTo(dst, from, width, s.left), nil
}

// padTo brings dst[from:] to a width with blanks.
func padTo(dst []byte, from, width int, left bool) []byte {
	if width < 0 {
		width, left = -width, true
	}
	missing := width - utf8.RuneCount(dst[from:])
	if missing <= 0 {
		return dst
	}
	n := len(dst)
	for range missing {
		dst = append(dst, ' ')
	}
	if !left {
		copy(dst[from+missing:], dst[from:n])
		for i := range missing {
			dst[from+i] = ' '
		}
	}
	return dst
}

func formatKernel(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	a := Args(args)
	return RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		if a.Null(0, i) {
			out.Null()
			return nil
		}
		p := formatter{args: spreadRow(c, x, a, 1, i), f: a.Bytes(0, i)}
		if len(a) == 1 {
			p.args.n = 0
		}
		r, err := p.run(nil)
		if err != nil {
			return err
		}
		out.Bytes(r)
		return nil
	})(c, x, a, n)
}

func registerQuotes() {
	t := types.Text
	any := types.Of(types.OIDAnyElement)
	totalFn("quote_ident", t, bytesAppend(appendIdent), t)
	totalFn("quote_literal", t, bytesAppend(appendLiteral), t)
	lit := RowKernel
	totalFn("quote_literal", t, func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		return lit(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			out.Extend(func(dst []byte) []byte {
				return appendLiteral(dst, a.castText(nil, x, c.Args[0].Type(), 0, i))
			})
			return nil
		})(c, x, args, n)
	}, any).Volatility = Stable
	nullable := func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		return lit(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			out.Extend(func(dst []byte) []byte {
				if a.Null(0, i) {
					return append(dst, "NULL"...)
				}
				return appendLiteral(dst, a.castText(nil, x, c.Args[0].Type(), 0, i))
			})
			return nil
		})(c, x, args, n)
	}
	Register(Function{Name: "quote_nullable", Args: []types.Type{t}, Ret: t, Total: true, Consts: ScalarConsts, Eval: nullable})
	Register(Function{Name: "quote_nullable", Args: []types.Type{any}, Ret: t, Total: true, Volatility: Stable, Consts: ScalarConsts, Eval: nullable})
}

func init() {
	t, any := types.Text, types.Of(types.OIDAny)
	registerQuotes()
	Register(Function{Name: "concat", Args: []types.Type{any}, Variadic: true, Ret: t, Total: true, Volatility: Stable, Consts: ScalarConsts, Eval: concatKernel(false)})
	Register(Function{Name: "concat_ws", Args: []types.Type{t, any}, Variadic: true, Ret: t, Total: true, Volatility: Stable, Consts: ScalarConsts, Eval: concatKernel(true)})
	Register(Function{Name: "format", Args: []types.Type{t, any}, Variadic: true, Ret: t, Volatility: Stable, Consts: ScalarConsts, Eval: formatKernel})
	Register(Function{Name: "format", Args: []types.Type{t}, Ret: t, Volatility: Stable, Consts: ScalarConsts, Eval: formatKernel})
}
