package expr

import (
	"bytes"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// mapChars appends b with every character mapped, one to one.
func mapChars(dst, b []byte, ascii func(c byte) byte, other func(r rune) rune) []byte {
	for i := 0; i < len(b); {
		if c := b[i]; c < utf8.RuneSelf {
			dst = append(dst, ascii(c))
			i++
			continue
		}
		r, w := utf8.DecodeRune(b[i:])
		dst = utf8.AppendRune(dst, other(r))
		i += w
	}
	return dst
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func upperByte(c byte) byte {
	if c >= 'a' && c <= 'z' {
		c -= 'a' - 'A'
	}
	return c
}

func appendLower(dst, b []byte) []byte { return mapChars(dst, b, lowerByte, unicode.ToLower) }
func appendUpper(dst, b []byte) []byte { return mapChars(dst, b, upperByte, unicode.ToUpper) }

func isAlnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// appendInitcap makes the first letter of each word upper case, others lower.
func appendInitcap(dst, b []byte) []byte {
	word := false
	for i := 0; i < len(b); {
		r, w := utf8.DecodeRune(b[i:])
		if word {
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		} else {
			dst = utf8.AppendRune(dst, unicode.ToUpper(r))
		}
		word = isAlnum(r)
		i += w
	}
	return dst
}

func appendReverse(dst, b []byte) []byte {
	for len(b) > 0 {
		_, w := utf8.DecodeLastRune(b)
		dst = append(dst, b[len(b)-w:]...)
		b = b[:len(b)-w]
	}
	return dst
}

// substr is the part of b from position `from` (1 is the first) of length n in
// units that skip counts; n < 0 means to the end.
func substr(b []byte, from, n int64, skip func(b []byte, n int64) int) []byte {
	end := int64(math.MaxInt64)
	if n >= 0 {
		end = from + n
	}
	from = max(from, 1)
	if end <= from {
		return b[:0]
	}
	b = b[skip(b, from-1):]
	if n < 0 {
		return b
	}
	return b[:skip(b, end-from)]
}

func skipBytes(b []byte, n int64) int { return int(min(max(n, 0), int64(len(b)))) }

// substrFn is substr and substring with a length, which must not be negative.
func substrFn(skip func(b []byte, n int64) int) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		n := a.Int32(2, i)
		if n < 0 {
			return errSubstring()
		}
		out.Bytes(substr(a.Bytes(0, i), int64(a.Int32(1, i)), int64(n), skip))
		return nil
	}
}

func errSubstring() *pgerror.Error {
	return pgerror.New(pgerror.SubstringError, "negative substring length not allowed")
}

// overlayFn replaces part of a string by another.
func overlayFn(skip func(b []byte, n int64) int, count func(b []byte) int) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		b, with, from := a.Bytes(0, i), a.Bytes(1, i), int64(a.Int32(2, i))
		n := int64(count(with))
		if len(a) > 3 {
			n = int64(a.Int32(3, i))
		}
		if from <= 0 {
			return errSubstring()
		}
		rest := from + n
		if rest > math.MaxInt32 || rest < math.MinInt32 {
			return pgerror.New(pgerror.NumericValueOutOfRange, "integer out of range")
		}
		out.Extend(func(dst []byte) []byte {
			dst = append(dst, substr(b, 1, from-1, skip)...)
			dst = append(dst, with...)
			return append(dst, substr(b, rest, -1, skip)...)
		})
		return nil
	}
}

// strpos is the position of sub in b in characters, 0 if it does not occur.
func strpos(b, sub []byte) int32 {
	i := bytes.Index(b, sub)
	if i < 0 {
		return 0
	}
	return int32(utf8.RuneCount(b[:i])) + 1
}

func bytePos(b, sub []byte) int32 { return int32(bytes.Index(b, sub) + 1) }

// trimEnds cuts characters that occur in set from the ends of b.
func trimEnds(b, set []byte, left, right bool) []byte {
	if isASCII(set) {
		var in [utf8.RuneSelf]bool
		for _, c := range set {
			in[c] = true
		}
		for left && len(b) > 0 && b[0] < utf8.RuneSelf && in[b[0]] {
			b = b[1:]
		}
		for right && len(b) > 0 && b[len(b)-1] < utf8.RuneSelf && in[b[len(b)-1]] {
			b = b[:len(b)-1]
		}
		return b
	}
	has := func(r rune) bool { return bytes.ContainsRune(set, r) }
	if left {
		b = bytes.TrimLeftFunc(b, has)
	}
	if right {
		b = bytes.TrimRightFunc(b, has)
	}
	return b
}

func trimByteEnds(b, set []byte, left, right bool) []byte {
	for left && len(b) > 0 && bytes.IndexByte(set, b[0]) >= 0 {
		b = b[1:]
	}
	for right && len(b) > 0 && bytes.IndexByte(set, b[len(b)-1]) >= 0 {
		b = b[:len(b)-1]
	}
	return b
}

func registerTrims() {
	for _, t := range []struct {
		name        string
		left, right bool
	}{{"btrim", true, true}, {"ltrim", true, false}, {"rtrim", false, true}} {
		blank := []byte{' '}
		totalFn(t.name, types.Text, bytesPart(func(b []byte, _, _ int32) []byte { return trimEnds(b, blank, t.left, t.right) }), types.Text)
		two := func(trim func(b, set []byte, left, right bool) []byte) Kernel {
			return RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
				out.Bytes(trim(a.Bytes(0, i), a.Bytes(1, i), t.left, t.right))
				return nil
			})
		}
		totalFn(t.name, types.Text, two(trimEnds), types.Text, types.Text)
		totalFn(t.name, types.Bytea, two(trimByteEnds), types.Bytea, types.Bytea)
	}
}

// pad is lpad and rpad.
func pad(left bool) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		b, n := a.Bytes(0, i), int64(a.Int32(1, i))
		fill := []byte{' '}
		if len(a) > 2 {
			fill = a.Bytes(2, i)
		}
		n = max(n, 0)
		have := int64(utf8.RuneCount(b))
		if len(fill) > 0 && 4*n+4 > int64(maxAlloc) {
			return errTooLong()
		}
		if have >= n || len(fill) == 0 {
			out.Bytes(b[:skipChars(b, n)])
			return nil
		}
		out.Extend(func(dst []byte) []byte {
			if !left {
				dst = append(dst, b...)
			}
			missing, chars := n-have, int64(utf8.RuneCount(fill))
			for ; missing >= chars; missing -= chars {
				dst = append(dst, fill...)
			}
			dst = append(dst, fill[:skipChars(fill, missing)]...)
			if left {
				dst = append(dst, b...)
			}
			return dst
		})
		return nil
	}
}

func repeatText(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	b, n := a.Bytes(0, i), int64(max(a.Int32(1, i), 0))
	if int64(len(b))*n+4 > int64(maxAlloc) {
		return errTooLong()
	}
	out.Extend(func(dst []byte) []byte {
		from := len(dst)
		dst = slices.Grow(dst, len(b)*int(n))
		dst = dst[:from+len(b)*int(n)]
		for k := copy(dst[from:], b); k > 0 && from+k < len(dst); {
			k += copy(dst[from+k:], dst[from:from+k])
		}
		return dst
	})
	return nil
}

func replaceText(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	b, from, to := a.Bytes(0, i), a.Bytes(1, i), a.Bytes(2, i)
	if len(from) == 0 {
		out.Bytes(b)
		return nil
	}
	out.Extend(func(dst []byte) []byte {
		start, ask := len(dst), pollGrown
		for {
			k := bytes.Index(b, from)
			if k < 0 {
				return append(dst, b...)
			}
			dst = append(append(dst, b[:k]...), to...)
			b = b[k+len(from):]
			if n := len(dst) - start; n >= ask {
				ask = x.along(n)
			}
		}
	})
	return nil
}

// translateText replaces characters of from by those of to, or drops them.
func translateText(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	b, from, to := a.Bytes(0, i), a.Bytes(1, i), a.Bytes(2, i)
	out.Extend(func(dst []byte) []byte {
		for len(b) > 0 {
			c := firstChar(b)
			b = b[len(c):]
			k := indexChar(from, c)
			if k < 0 {
				dst = append(dst, c...)
				continue
			}
			dst = append(dst, firstChar(to[skipChars(to, int64(k)):])...)
		}
		return dst
	})
	return nil
}

// indexChar is the number of the first character of b that is c, -1 if none.
func indexChar(b, c []byte) int {
	for k := 0; len(b) > 0; k++ {
		d := firstChar(b)
		if bytes.Equal(c, d) {
			return k
		}
		b = b[len(d):]
	}
	return -1
}

// splitPart is field n of b, from the end if n is negative.
func splitPart(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	b, sep, n := a.Bytes(0, i), a.Bytes(1, i), int(a.Int32(2, i))
	if n == 0 {
		return errParam("field position must not be zero")
	}
	if len(b) == 0 || len(sep) == 0 {
		if len(b) > 0 && (n == 1 || n == -1) {
			out.Bytes(b)
		} else {
			out.String("")
		}
		return nil
	}
	if n < 0 {
		for ; n < -1; n++ {
			k := bytes.LastIndex(b, sep)
			if k < 0 {
				out.String("")
				return nil
			}
			b = b[:k]
		}
		if k := bytes.LastIndex(b, sep); k >= 0 {
			b = b[k+len(sep):]
		}
		out.Bytes(b)
		return nil
	}
	for ; n > 1; n-- {
		k := bytes.Index(b, sep)
		if k < 0 {
			out.String("")
			return nil
		}
		b = b[k+len(sep):]
	}
	if k := bytes.Index(b, sep); k >= 0 {
		b = b[:k]
	}
	out.Bytes(b)
	return nil
}

func leftText(b []byte, n, _ int32) []byte {
	if n < 0 {
		n = int32(max(utf8.RuneCount(b)+int(n), 0))
	}
	return b[:skipChars(b, int64(n))]
}

func rightText(b []byte, n, _ int32) []byte {
	if n == math.MinInt32 { // its opposite wraps to itself
		return b
	}
	if n < 0 {
		return b[skipChars(b, -int64(n)):]
	}
	return b[skipChars(b, int64(utf8.RuneCount(b))-int64(n)):]
}

func asciiCode(b []byte) int32 {
	if len(b) == 0 {
		return 0
	}
	r, _ := utf8.DecodeRune(b)
	return r
}

func chr(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	switch r := a.Int32(0, i); {
	case r < 0:
		return errParam("character number must be positive")
	case r == 0:
		return pgerror.New(pgerror.ProgramLimitExceeded, "null character not permitted")
	case r > unicode.MaxRune:
		return pgerror.New(pgerror.ProgramLimitExceeded, "requested character too large for encoding: %d", r)
	case r >= 0xD800 && r <= 0xDFFF:
		return pgerror.New(pgerror.ProgramLimitExceeded, "requested character not valid for encoding: %d", r)
	default:
		out.Extend(func(dst []byte) []byte { return utf8.AppendRune(dst, r) })
	}
	return nil
}

func countChars(b []byte) int32 { return int32(utf8.RuneCount(b)) }

func appendHex(dst []byte, u uint64) []byte {
	const digits = "0123456789abcdef"
	n := 1
	for v := u >> 4; v > 0; v >>= 4 {
		n++
	}
	for k := n - 1; k >= 0; k-- {
		dst = append(dst, digits[u>>(4*k)&15])
	}
	return dst
}

func concatOp(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	out.Extend(func(dst []byte) []byte { return append(append(dst, a.Bytes(0, i)...), a.Bytes(1, i)...) })
	return nil
}

// concatAny is || of a text and a value of any type, as text.
func concatAny(textFirst bool) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		a := Args(args)
		out := x.Builder(columnar.KindBytes, n)
		for i := range n {
			if a.anyNull(i) {
				out.Null()
				continue
			}
			out.Extend(func(dst []byte) []byte {
				if textFirst {
					return a.castText(append(dst, a.Bytes(0, i)...), x, c.Args[1].Type(), 1, i)
				}
				return append(a.castText(dst, x, c.Args[0].Type(), 0, i), a.Bytes(1, i)...)
			})
		}
		return out.Build()
	}
}

func registerCases() {
	text := types.Text
	totalFn("lower", text, bytesAppend(appendLower), text)
	totalFn("upper", text, bytesAppend(appendUpper), text)
	totalFn("initcap", text, bytesAppend(appendInitcap), text)
	totalFn("reverse", text, bytesAppend(appendReverse), text)
}

func registerLengths() {
	text, i4 := types.Text, types.Int4
	chars := bytesFixed(countChars)
	bpchars := bytesFixed(func(b []byte) int32 { return countChars(types.TrimBPChar(b)) })
	for _, name := range []string{"length", "char_length", "character_length"} {
		totalFn(name, i4, chars, text)
		totalFn(name, i4, bpchars, types.BPChar)
	}
	octets := bytesFixed(func(b []byte) int32 { return int32(len(b)) })
	totalFn("length", i4, octets, types.Bytea)
	for _, t := range []types.Type{text, types.BPChar, types.Bytea} {
		totalFn("octet_length", i4, octets, t)
	}
	bits := bytesFixed(func(b []byte) int32 { return int32(8 * len(b)) })
	totalFn("bit_length", i4, bits, text)
	totalFn("bit_length", i4, bits, types.Bytea)
	totalFn("ascii", i4, bytesFixed(asciiCode), text)
	rowFn("chr", text, chr, i4)
}

func registerSubstrings() {
	text, bytea, i4 := types.Text, types.Bytea, types.Int4
	rest := func(skip func(b []byte, n int64) int) Kernel {
		return bytesPart(func(b []byte, from, _ int32) []byte { return substr(b, int64(from), -1, skip) })
	}
	for _, name := range []string{"substr", "substring"} {
		totalFn(name, text, rest(skipChars), text, i4)
		rowFn(name, text, substrFn(skipChars), text, i4, i4)
		totalFn(name, bytea, rest(skipBytes), bytea, i4)
		rowFn(name, bytea, substrFn(skipBytes), bytea, i4, i4)
	}
	chars, octets := overlayFn(skipChars, utf8.RuneCount), overlayFn(skipBytes, func(b []byte) int { return len(b) })
	rowFn("overlay", text, chars, text, text, i4)
	rowFn("overlay", text, chars, text, text, i4, i4)
	rowFn("overlay", bytea, octets, bytea, bytea, i4)
	rowFn("overlay", bytea, octets, bytea, bytea, i4, i4)
	totalFn("strpos", i4, bytes2Fixed(strpos), text, text)
	totalFn("position", i4, bytes2Fixed(strpos), text, text)
	totalFn("position", i4, bytes2Fixed(bytePos), bytea, bytea)
	totalFn("left", text, bytesPart(leftText), text, i4)
	totalFn("right", text, bytesPart(rightText), text, i4)
	prefix := bytes2Fixed(bytes.HasPrefix)
	totalFn("starts_with", types.Bool, prefix, text, text)
	totalOp("^@", types.Bool, prefix, text, text)
	rowFn("split_part", text, splitPart, text, text, i4)
}

func init() {
	text, i4 := types.Text, types.Int4
	registerCases()
	registerLengths()
	registerSubstrings()
	registerTrims()
	rowFn("lpad", text, pad(true), text, i4)
	rowFn("lpad", text, pad(true), text, i4, text)
	rowFn("rpad", text, pad(false), text, i4)
	rowFn("rpad", text, pad(false), text, i4, text)
	rowFn("repeat", text, repeatText, text, i4)
	totalFn("replace", text, RowKernel(replaceText), text, text, text)
	totalFn("translate", text, RowKernel(translateText), text, text, text)
	totalFn("to_hex", text, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		out.Extend(func(dst []byte) []byte { return appendHex(dst, uint64(uint32(a.Int32(0, i)))) })
		return nil
	}), i4)
	totalFn("to_hex", text, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		out.Extend(func(dst []byte) []byte { return appendHex(dst, uint64(a.Int64(0, i))) })
		return nil
	}), types.Int8)
	totalOp("||", text, RowKernel(concatOp), text, text)
	totalOp("||", types.Bytea, RowKernel(concatOp), types.Bytea, types.Bytea)
	any := types.Of(types.OIDAnyNonArray)
	for _, f := range []*Function{totalOp("||", text, concatAny(true), text, any), totalOp("||", text, concatAny(false), any, text)} {
		f.Volatility = Stable
	}
}
