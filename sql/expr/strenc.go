package expr

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// appendBase64 appends b in base64, in lines of 76 characters.
func appendBase64(dst, b []byte) []byte {
	line := 0
	for len(b) > 0 {
		n := min(len(b), 3)
		var v uint32
		for k := range 3 {
			v <<= 8
			if k < n {
				v |= uint32(b[k])
			}
		}
		for k := range 4 {
			if k <= n {
				dst = append(dst, base64Digits[v>>(18-6*k)&63])
			} else {
				dst = append(dst, '=')
			}
		}
		b = b[n:]
		if line += 4; line == 76 && len(b) > 0 {
			dst = append(dst, '\n')
			line = 0
		}
	}
	return dst
}

// decodeBase64 reads base64, white space ignored.
func decodeBase64(dst, b []byte) ([]byte, error) {
	var v uint32
	pos, end := 0, 0
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			continue
		}
		var d int
		if c == '=' {
			if end == 0 {
				switch pos {
				case 2:
					end = 1
				case 3:
					end = 2
				default:
					return dst, errParam("unexpected \"=\" while decoding base64 sequence")
				}
			}
		} else if d = strings.IndexByte(base64Digits, c); d < 0 || c >= utf8.RuneSelf {
			return dst, errParam("invalid symbol \"%s\" found while decoding base64 sequence", firstChar(b[i:]))
		}
		v = v<<6 | uint32(d)
		if pos++; pos < 4 {
			continue
		}
		dst = append(dst, byte(v>>16))
		if end == 0 || end > 1 {
			dst = append(dst, byte(v>>8))
		}
		if end == 0 || end > 2 {
			dst = append(dst, byte(v))
		}
		v, pos = 0, 0
	}
	if pos != 0 {
		return dst, errParam("invalid base64 end sequence").
			WithHint("Input data is missing padding, is truncated, or is otherwise corrupted.")
	}
	return dst, nil
}

// appendEscape appends b with zero and high bytes as octal escapes.
func appendEscape(dst, b []byte) []byte {
	for _, c := range b {
		switch {
		case c == '\\':
			dst = append(dst, '\\', '\\')
		case c == 0 || c >= 0x80:
			dst = append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func errEncodingName(name []byte) *pgerror.Error {
	return errParam("unrecognized encoding: \"%s\"", name)
}

func encodeBytes(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	b := a.Bytes(0, i)
	var f func(dst, b []byte) []byte
	switch name := a.Bytes(1, i); {
	case strings.EqualFold(text(name), "hex"):
		f = func(dst, b []byte) []byte {
			const digits = "0123456789abcdef"
			for _, c := range b {
				dst = append(dst, digits[c>>4], digits[c&15])
			}
			return dst
		}
	case strings.EqualFold(text(name), "base64"):
		f = appendBase64
	case strings.EqualFold(text(name), "escape"):
		f = appendEscape
	default:
		return errEncodingName(name)
	}
	out.Extend(func(dst []byte) []byte { return f(dst, b) })
	return nil
}

func decodeText(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	b, name := a.Bytes(0, i), a.Bytes(1, i)
	var r []byte
	var err error
	switch {
	case strings.EqualFold(text(name), "hex"):
		r, err = types.ParseHex(nil, text(b))
	case strings.EqualFold(text(name), "base64"):
		r, err = decodeBase64(nil, b)
	case strings.EqualFold(text(name), "escape"):
		if bytes.HasPrefix(b, []byte(`\x`)) {
			// Not the hex form here: a backslash must begin an octal escape.
			return pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type bytea")
		}
		r, err = types.ParseBytea(nil, text(b))
	default:
		return errEncodingName(name)
	}
	if err != nil {
		return pgerror.As(err)
	}
	out.Bytes(r)
	return nil
}

func appendDigest(dst, sum []byte) []byte {
	const digits = "0123456789abcdef"
	for _, c := range sum {
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}

// bitIndex checks the number of a bit of b.
func bitIndex(b []byte, n int64) *pgerror.Error {
	if n < 0 || n >= int64(len(b))*8 {
		return pgerror.New(pgerror.ArraySubscriptError, "index %d out of valid range, 0..%d", n, int64(len(b))*8-1)
	}
	return nil
}

func byteIndex(b []byte, n int32) *pgerror.Error {
	if n < 0 || int(n) >= len(b) {
		return pgerror.New(pgerror.ArraySubscriptError, "index %d out of valid range, 0..%d", n, len(b)-1)
	}
	return nil
}

func registerByteBits() {
	bytea, i4, i8 := types.Bytea, types.Int4, types.Int8
	rowFn("get_bit", i4, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		b, n := a.Bytes(0, i), a.Int64(1, i)
		if err := bitIndex(b, n); err != nil {
			return err
		}
		out.Int32(int32(b[n/8] >> (n % 8) & 1))
		return nil
	}, bytea, i8)
	rowFn("set_bit", bytea, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		b, n, v := a.Bytes(0, i), a.Int64(1, i), a.Int32(2, i)
		if err := bitIndex(b, n); err != nil {
			return err
		}
		if v != 0 && v != 1 {
			return errParam("new bit must be 0 or 1")
		}
		out.Extend(func(dst []byte) []byte {
			l := len(dst)
			dst = append(dst, b...)
			p := &dst[l+int(n/8)]
			*p = *p&^(1<<(n%8)) | byte(v)<<(n%8)
			return dst
		})
		return nil
	}, bytea, i8, i4)
	rowFn("get_byte", i4, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		b, n := a.Bytes(0, i), a.Int32(1, i)
		if err := byteIndex(b, n); err != nil {
			return err
		}
		out.Int32(int32(b[n]))
		return nil
	}, bytea, i4)
	rowFn("set_byte", bytea, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		b, n, v := a.Bytes(0, i), a.Int32(1, i), a.Int32(2, i)
		if err := byteIndex(b, n); err != nil {
			return err
		}
		out.Extend(func(dst []byte) []byte {
			l := len(dst)
			dst = append(dst, b...)
			dst[l+int(n)] = byte(v)
			return dst
		})
		return nil
	}, bytea, i4, i4)
	totalFn("bit_count", i8, bytesFixed(func(b []byte) int64 {
		n := 0
		for _, c := range b {
			n += bits.OnesCount8(c)
		}
		return int64(n)
	}), bytea)
}

func registerConvert() {
	text, bytea, name := types.Text, types.Bytea, types.Name
	rowFn("convert_from", text, func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		from, err := encodingOf(x, a, 1, i, "source ")
		if err == nil {
			err = recode(a.Bytes(0, i), from, encUTF8, out)
		}
		return err
	}, bytea, name)
	rowFn("convert_to", bytea, func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		to, err := encodingOf(x, a, 1, i, "destination ")
		if err == nil {
			err = recode(a.Bytes(0, i), encUTF8, to, out)
		}
		return err
	}, text, name)
}

func init() {
	text, bytea := types.Text, types.Bytea
	rowFn("encode", text, encodeBytes, bytea, text)
	rowFn("decode", bytea, decodeText, text, text)
	md := bytesAppend(func(dst, b []byte) []byte { s := md5.Sum(b); return appendDigest(dst, s[:]) })
	totalFn("md5", text, md, text)
	totalFn("md5", text, md, bytea)
	totalFn("sha224", bytea, bytesAppend(func(dst, b []byte) []byte { s := sha256.Sum224(b); return append(dst, s[:]...) }), bytea)
	totalFn("sha256", bytea, bytesAppend(func(dst, b []byte) []byte { s := sha256.Sum256(b); return append(dst, s[:]...) }), bytea)
	totalFn("sha384", bytea, bytesAppend(func(dst, b []byte) []byte { s := sha512.Sum384(b); return append(dst, s[:]...) }), bytea)
	totalFn("sha512", bytea, bytesAppend(func(dst, b []byte) []byte { s := sha512.Sum512(b); return append(dst, s[:]...) }), bytea)
	registerByteBits()
	registerConvert()
}
