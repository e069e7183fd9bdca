package expr

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// encodingBytes are the most bytes of a character in each of the encodings.
var encodingBytes = []int32{1, 3, 3, 3, 4, 3, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 3, 2}

const encSQLASCII, encUTF8, encLatin1 = 0, 6, 8

// singleByte are the encodings with a byte a character, by their numbers.
var singleByte = map[int32]*charmap.Charmap{
	encLatin1: charmap.ISO8859_1, 9: charmap.ISO8859_2, 10: charmap.ISO8859_3, 11: charmap.ISO8859_4, 12: charmap.ISO8859_9,
	13: charmap.ISO8859_10, 14: charmap.ISO8859_13, 15: charmap.ISO8859_14, 16: charmap.ISO8859_15, 17: charmap.ISO8859_16,
	18: charmap.Windows1256, 19: charmap.Windows1258, 20: charmap.CodePage866, 21: charmap.Windows874, 22: charmap.KOI8R,
	23: charmap.Windows1251, 24: charmap.Windows1252, 25: charmap.ISO8859_5, 26: charmap.ISO8859_6, 27: charmap.ISO8859_7,
	28: charmap.ISO8859_8, 29: charmap.Windows1250, 30: charmap.Windows1253, 31: charmap.Windows1254, 32: charmap.Windows1255,
	33: charmap.Windows1257, 34: charmap.KOI8U,
}

// asciiOf are the ASCII characters for the bytes from 128 on in the encodings
// that to_ascii knows. It works on the bytes of a text, whatever they stand for.
var asciiOf = map[int32]string{
	encLatin1: `                                  cL Y  "Ca  -R     'u .,      ?  AAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooo           `,
	9:         `                                 A L LS "SSTZ-ZZ a,l'ls ,sstz"zz  AAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoo           `,
	16:        `                                  cL YS sCa  -R     Zu .z   EeY?  AAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooo           `,
	29:        `  ' "    %S<STZZ ` + "`" + `'"".--  s>stzz   L A  "CS  -RZ  ,l'u .,as L"lz  AAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoo           `,
}

func toASCII(out *columnar.Builder, s []byte, enc int32) *pgerror.Error {
	table, ok := asciiOf[enc]
	if !ok {
		return pgerror.New(pgerror.FeatureNotSupported, "encoding conversion from %s to ASCII not supported", encodings[enc])
	}
	b := make([]byte, len(s))
	for k, c := range s {
		if b[k] = c; c >= 128 {
			b[k] = table[c-128]
		}
	}
	out.Bytes(b)
	return nil
}

// encodingOf is the encoding of that name; what is written before the name in
// the error of an unknown one.
func encodingOf(x *Eval, a Args, k, i int, what string) (int32, *pgerror.Error) {
	enc, err := encodingNumber(x, a[k:], i)
	if err == nil && enc < 0 {
		err = errParam("invalid %sencoding name \"%s\"", what, a.Bytes(k, i))
	}
	return enc, err
}

// eachRune calls f with the characters of s.
func eachRune(s []byte, enc int32, f func(r rune, raw []byte) *pgerror.Error) *pgerror.Error {
	switch enc {
	case encUTF8:
		if err := types.CheckUTF8(s); err != nil {
			return pgerror.As(err)
		}
		for len(s) > 0 {
			r, n := utf8.DecodeRune(s)
			if err := f(r, s[:n]); err != nil {
				return err
			}
			s = s[n:]
		}
		return nil
	case encSQLASCII:
		return pgerror.Unsupported("the encoding " + encodings[enc])
	}
	if m := singleByte[enc]; m != nil {
		for k, c := range s {
			if c == 0 {
				return pgerror.New(pgerror.CharacterNotInRepertoire, "invalid byte sequence for encoding \"%s\": 0x00", encodings[enc])
			}
			r := m.DecodeByte(c)
			if r == utf8.RuneError || c >= 128 && r < 160 && strings.HasPrefix(encodings[enc], "WIN") {
				return pgerror.New(pgerror.UntranslatableCharacter, "character with byte sequence %s in encoding \"%s\" has no equivalent in encoding \"UTF8\"", hexBytes(s[k:k+1]), encodings[enc])
			}
			if err := f(r, s[k:k+1]); err != nil {
				return err
			}
		}
		return nil
	}
	return pgerror.Unsupported("the encoding " + encodings[enc])
}

// convertBytes is convert(bytes, from, to).
func convertBytes(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	from, err := encodingOf(x, a, 1, i, "source ")
	if err != nil {
		return err
	}
	to, err := encodingOf(x, a, 2, i, "destination ")
	if err != nil {
		return err
	}
	return recode(a.Bytes(0, i), from, to, out)
}

// recode turns a text of one encoding into that of another.
func recode(s []byte, from, to int32, out *columnar.Builder) *pgerror.Error {
	m := singleByte[to]
	if to != encUTF8 && m == nil {
		return pgerror.Unsupported("the encoding " + encodings[to])
	}
	var dst []byte
	err := eachRune(s, from, func(r rune, raw []byte) *pgerror.Error {
		if to == encUTF8 {
			dst = utf8.AppendRune(dst, r)
			return nil
		}
		c, ok := m.EncodeRune(r)
		if !ok {
			return pgerror.New(pgerror.UntranslatableCharacter, "character with byte sequence %s in encoding \"%s\" has no equivalent in encoding \"%s\"",
				hexBytes(raw), encodings[from], encodings[to])
		}
		dst = append(dst, c)
		return nil
	})
	if err == nil {
		out.Bytes(dst)
	}
	return err
}

func hexBytes(b []byte) string {
	const digits = "0123456789abcdef"
	parts := make([]string, len(b))
	for i, c := range b {
		parts[i] = "0x" + string([]byte{digits[c>>4], digits[c&15]})
	}
	return strings.Join(parts, " ")
}

// byteUnits are the units of pg_size_bytes and the powers of two they stand for.
var byteUnits = []struct {
	name string
	bits int
}{{"bytes", 0}, {"b", 0}, {"kb", 10}, {"mb", 20}, {"gb", 30}, {"tb", 40}, {"pb", 50}}

// sizeBytes is pg_size_bytes: a number with an optional unit.
func sizeBytes(_ *Eval, a Args, i int) (int64, *pgerror.Error) {
	s := string(a.Bytes(0, i))
	bad := errParam("invalid size: \"%s\"", s)
	rest := strings.TrimLeft(s, " \t\n\r\f\v")
	n := numberPrefix(rest)
	if n == 0 {
		return 0, bad
	}
	num, perr := decimal.Parse(nil, rest[:n])
	if perr != nil {
		return 0, bad
	}
	if unit := strings.TrimSpace(rest[n:]); unit != "" {
		found := false
		for _, u := range byteUnits {
			if strings.EqualFold(unit, u.name) && u.name != "b" {
				found = true
				var err error
				if num, err = decimal.Mul(nil, num, decimal.AppendInt64(nil, 1<<u.bits)); err != nil {
					return 0, pgerror.As(err)
				}
			}
		}
		if !found {
			return 0, bad.WithDetail("Invalid size unit: \"%s\".", unit).WithHint("Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".")
		}
	}
	v, err := decimal.ToInt64(num)
	if err != nil {
		return 0, pgerror.New(pgerror.NumericValueOutOfRange, "bigint out of range")
	}
	return v, nil
}

// numberPrefix is the length of the number that s begins with.
func numberPrefix(s string) int {
	i := 0
	digits := func() bool {
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	have := digits()
	if i < len(s) && s[i] == '.' {
		i++
		have = digits() || have
	}
	if !have {
		return 0
	}
	if end := i; i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '-' || s[i] == '+') {
			i++
		}
		if !digits() {
			return end
		}
	}
	return i
}

var (
	smallWords = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	tensWords  = strings.Fields("twenty thirty forty fifty sixty seventy eighty ninety")
)

// hundredsWords is a number below 1000 in words.
func hundredsWords(v uint64) string {
	if v%100 == 0 && v > 0 {
		return smallWords[v/100] + " hundred"
	}
	tu := v % 100
	low, and := "", ""
	switch {
	case tu < 20:
		low, and = smallWords[tu], "and "
	case tu%10 == 0:
		low = tensWords[tu/10-2]
	default:
		low = tensWords[tu/10-2] + " " + smallWords[tu%10]
	}
	if v >= 100 {
		return smallWords[v/100] + " hundred " + and + low
	}
	return low
}

// cashWords is an amount of money in words.
func cashWords(cents int64) string {
	s, u := "", uint64(cents)
	if cents < 0 {
		s, u = "minus ", uint64(-cents)
	}
	dollars := u / 100
	for _, p := range []struct {
		unit uint64
		name string
	}{{1e15, "quadrillion"}, {1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}, {1e3, "thousand"}} {
		if part := dollars / p.unit % 1000; part > 0 {
			s += hundredsWords(part) + " " + p.name + " "
		}
	}
	if rest := dollars % 1000; rest > 0 || dollars == 0 {
		s += hundredsWords(rest)
	}
	if dollars == 1 {
		s += " dollar and "
	} else {
		s += " dollars and "
	}
	s += hundredsWords(u % 100)
	if u%100 == 1 {
		s += " cent"
	} else {
		s += " cents"
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// collationFor is pg_collation_for: there is one collation.
func collationFor(c *Call) (Kernel, error) {
	t := c.Args[0].Type()
	info := types.Lookup(t.Storage().OID)
	if t.OID != types.OIDUnknown && (info == nil || info.Collation == 0) {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "collations are not supported by type %s", t.OID)
	}
	return RowKernel(func(_ *Eval, _ Args, _ int, out *columnar.Builder) *pgerror.Error {
		if t.OID == types.OIDUnknown {
			out.Null()
		} else {
			out.String(`"default"`)
		}
		return nil
	}), nil
}

func init() {
	text, bytea, name, i4 := types.Text, types.Bytea, types.Name, types.Int4
	rowFn("to_ascii", text, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return toASCII(out, a.Bytes(0, i), encUTF8)
	}, text)
	rowFn("to_ascii", text, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		enc := a.Int32(1, i)
		if enc < 0 || int(enc) >= len(encodings) {
			return pgerror.New(pgerror.UndefinedObject, "%d is not a valid encoding code", enc)
		}
		return toASCII(out, a.Bytes(0, i), enc)
	}, text, i4)
	rowFn("to_ascii", text, func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		enc, err := encodingNumber(x, a[1:], i)
		if err == nil && enc < 0 {
			err = pgerror.New(pgerror.UndefinedObject, "%s is not a valid encoding name", a.Bytes(1, i))
		}
		if err != nil {
			return err
		}
		return toASCII(out, a.Bytes(0, i), enc)
	}, text, name)
	rowFn("convert", bytea, convertBytes, bytea, name, name).Volatility = Stable
	Register(Function{Name: "length", Args: []types.Type{bytea, name}, Ret: i4, Strict: true, Volatility: Stable, Consts: ScalarConsts,
		Eval: rowFixed(func(x *Eval, a Args, i int) (int32, *pgerror.Error) {
			enc, err := encodingOf(x, a, 1, i, "")
			if err != nil {
				return 0, err
			}
			n := int32(0)
			err = eachRune(a.Bytes(0, i), enc, func(rune, []byte) *pgerror.Error { n++; return nil })
			return n, err
		})})
	Register(Function{Name: "pg_size_bytes", Args: []types.Type{text}, Ret: types.Int8, Strict: true, Consts: ScalarConsts, Eval: rowFixed(sizeBytes)})
	totalFn("pg_encoding_max_length", i4, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		if n := a.Int32(0, i); n >= 0 && int(n) < len(encodingBytes) {
			out.Int32(encodingBytes[n])
		} else {
			out.Null()
		}
		return nil
	}), i4)
	totalFn("cash_words", text, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		out.String(cashWords(a.Int64(0, i)))
		return nil
	}), moneyType)
	totalFn("nameconcatoid", name, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		suffix := "_" + strconv.FormatInt(a.Int64(1, i), 10)
		s := a.Bytes(0, i)
		for len(s)+len(suffix) > 63 {
			_, n := utf8.DecodeLastRune(s)
			s = s[:len(s)-n]
		}
		out.String(string(s) + suffix)
		return nil
	}), name, types.Oid)
	Register(Function{Name: "pg_collation_for", Args: []types.Type{types.Of(types.OIDAny)}, Ret: text, Volatility: Stable, Consts: ScalarConsts, Bind: collationFor})
	rowFn("oidvectortypes", text, func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		arr := types.ReadArray(a.Bytes(0, i))
		names := make([]string, arr.N)
		for k := range names {
			v := element(arr.Kind(), func(b *columnar.Builder) { arr.AppendElem(b, k) })
			names[k] = types.OID(v.Int64s()[0]).Name()
		}
		out.String(strings.Join(names, ", "))
		return nil
	}, types.Of(types.OIDOidVector)).Volatility = Stable
}
