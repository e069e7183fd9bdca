package sqllogictest

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const oidBool = 16

var numberPrefix = regexp.MustCompile(`^\s*([-+]?)((\d+)\.?(\d*)(?:[eE]([-+]?\d+))?|\.(\d+)(?:[eE]([-+]?\d+))?)`)

// sqliteValue renders a value by the letter of its column, as SQLite's own
// runner does: I is an integer cut toward zero, R has three decimals, all else
// is text with @ for what is not printable.
func sqliteValue(v []byte, null bool, letter byte, oid uint32) string {
	if null {
		return "NULL"
	}
	switch letter {
	case 'I':
		return sqliteInteger(v, oid)
	case 'R':
		if oid == oidBool {
			if string(v) == "t" {
				return "1.000"
			}
			return "0.000"
		}
		return sqliteReal(v)
	}
	if len(v) == 0 {
		return "(empty)"
	}
	for _, b := range v {
		if b < 0x20 || b > 0x7e {
			masked := bytes.Clone(v)
			for i, b := range masked {
				if b < 0x20 || b > 0x7e {
					masked[i] = '@'
				}
			}
			return string(masked)
		}
	}
	return string(v)
}

func isInteger(v []byte) bool {
	if len(v) > 0 && v[0] == '-' {
		v = v[1:]
	}
	for _, b := range v {
		if b < '0' || b > '9' {
			return false
		}
	}
	return len(v) > 0
}

func sqliteInteger(v []byte, oid uint32) string {
	if isInteger(v) {
		if string(v) == "-0" {
			return "0"
		}
		return string(v)
	}
	if oid == oidBool {
		if string(v) == "t" {
			return "1"
		}
		return "0"
	}
	m := numberPrefix.FindSubmatch(v)
	if m == nil {
		return "0"
	}
	whole, frac, exp := string(m[3]), string(m[4]), string(m[5])
	if len(m[6]) > 0 {
		frac, exp = string(m[6]), string(m[7])
	}
	shift, err := strconv.Atoi(exp)
	if exp != "" && (err != nil || shift > 10_000) {
		return "0"
	}
	digits, point := whole+frac, len(whole)+shift
	switch {
	case point <= 0:
		return "0"
	case point > len(digits):
		digits += strings.Repeat("0", point-len(digits))
	default:
		digits = digits[:point]
	}
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "0"
	}
	if m[1] != nil && string(m[1]) == "-" {
		return "-" + digits
	}
	return digits
}

func sqliteReal(v []byte) string {
	s := strings.TrimSpace(string(v))
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) || strings.ContainsAny(s, "xX_") {
		m := numberPrefix.Find(v)
		f, _ = strconv.ParseFloat(strings.TrimSpace(string(m)), 64)
	}
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'f', 3, 64)
}

func rsValue(v []byte, null bool) string {
	switch {
	case null:
		return "NULL"
	case len(v) == 0:
		return "(empty)"
	}
	return string(v)
}

// squeeze makes each run of blanks one, and takes off those at the ends.
func squeeze(s string) string {
	blank := true // at a blank, or at the start
	for i := 0; i < len(s); i++ {
		b := s[i]
		if b >= 0x80 || b < 0x20 || b == ' ' && blank {
			return strings.Join(strings.Fields(s), " ")
		}
		blank = b == ' '
	}
	if blank && s != "" {
		return s[:len(s)-1]
	}
	return s
}

func md5Values(values []string) string {
	h := md5.New()
	buf := make([]byte, 0, 4096)
	for _, v := range values {
		buf = append(append(buf, v...), '\n')
		if len(buf) > 3<<10 {
			h.Write(buf)
			buf = buf[:0]
		}
	}
	h.Write(buf)
	return hex.EncodeToString(h.Sum(nil))
}

// canon is one spelling for renderings that differ between servers and not in
// value: trailing zeros, digits past the 12th, +00:00 for +00, the key order of
// json objects.
func canon(line string) string {
	line = squeeze(line)
	for at := strings.Index(line, `{"`); at >= 0; {
		next := at + 2
		dec := json.NewDecoder(strings.NewReader(line[at:]))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) == nil {
			text := string(appendJSON(nil, v))
			end := at + int(dec.InputOffset())
			line = line[:at] + text + line[end:]
			next = at + len(text)
		}
		i := strings.Index(line[min(next, len(line)):], `{"`)
		if i < 0 {
			break
		}
		at = next + i
	}
	return canonNumbers(canonClocks(line))
}

func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		b = append(b, '{')
		for i, k := range keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(strconv.AppendQuote(b, k), ':')
			b = appendJSON(b, v[k])
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, x := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, x)
		}
		return append(b, ']')
	case json.Number:
		f, err := v.Float64()
		if err != nil || !strings.ContainsAny(string(v), ".eE") {
			return append(b, v...)
		}
		if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
			return strconv.AppendFloat(b, f, 'e', -1, 64)
		}
		at := len(b)
		if b = strconv.AppendFloat(b, f, 'f', -1, 64); bytes.IndexByte(b[at:], '.') < 0 {
			b = append(b, ".0"...)
		}
		return b
	case string:
		return strconv.AppendQuote(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	}
	return append(b, "null"...)
}

var clock = regexp.MustCompile(`(\d\d:\d\d:\d\d)(\.\d+)?([+-]\d\d(?::\d\d)*)?`)

// canonClocks writes times of day without trailing zeros of the fraction and
// of the offset.
func canonClocks(s string) string {
	if strings.Count(s, ":") < 2 {
		return s
	}
	var b strings.Builder
	for at := 0; ; {
		m := clock.FindStringSubmatchIndex(s[at:])
		if m == nil {
			b.WriteString(s[at:])
			return b.String()
		}
		start := at + m[0]
		end, text := clockAt(s, start)
		if end < 0 {
			b.WriteString(s[at : start+1])
			at = start + 1
			continue
		}
		b.WriteString(s[at:start])
		b.WriteString(text)
		at = end
	}
}

// clockAt reads the time of day at start, which must not go on with a digit or
// a colon; shorter readings are tried in turn.
func clockAt(s string, start int) (end int, text string) {
	m := clock.FindStringSubmatchIndex(s[start:])
	for i := range m {
		if m[i] >= 0 {
			m[i] += start
		}
	}
	ends := func(i int) bool { return i == len(s) || s[i] != ':' && (s[i] < '0' || s[i] > '9') }
	base := s[start:m[3]]
	frac, fracEnd := "", m[3]
	if m[4] >= 0 {
		frac, fracEnd = strings.TrimRight(strings.TrimRight(s[m[4]:m[5]], "0"), "."), m[5]
	}
	if m[6] >= 0 {
		for e := m[7]; e > m[6]; e -= 3 {
			if ends(e) {
				offset := s[m[6]:e]
				for strings.HasSuffix(offset, ":00") {
					offset = offset[:len(offset)-3]
				}
				return e, base + frac + offset
			}
		}
	}
	if ends(fracEnd) {
		return fracEnd, base + frac
	}
	if ends(m[3]) {
		return m[3], base
	}
	return -1, ""
}

var realNumber = regexp.MustCompile(`-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)`)

func isWordByte(b byte) bool {
	return b == '_' || b == '.' || b == ':' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// canonNumbers writes numbers with a fraction or an exponent with at most 12
// digits and no trailing zeros.
func canonNumbers(s string) string {
	if !strings.ContainsAny(s, ".eE") {
		return s
	}
	var b strings.Builder
	at := 0
	for at < len(s) {
		m := realNumber.FindStringIndex(s[at:])
		if m == nil {
			break
		}
		start, end := at+m[0], at+m[1]
		if start > 0 && isWordByte(s[start-1]) || end < len(s) && isWordByte(s[end]) {
			b.WriteString(s[at : start+1])
			at = start + 1
			continue
		}
		b.WriteString(s[at:start])
		b.WriteString(canonNumber(s[start:end]))
		at = end
	}
	b.WriteString(s[at:])
	return b.String()
}

// canonNumber writes one number; those far from 1 keep an exponent.
func canonNumber(s string) string {
	if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 5 {
		return s
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return s
	}
	if r.Sign() == 0 {
		return "0"
	}
	mantissa, exponent, _ := strings.Cut(new(big.Float).SetPrec(256).SetRat(r).Text('e', 11), "e")
	exp, _ := strconv.Atoi(exponent)
	sign := ""
	if mantissa[0] == '-' {
		sign, mantissa = "-", mantissa[1:]
	}
	digits := strings.TrimRight(mantissa[:1]+mantissa[2:], "0")
	switch {
	case exp <= -20 || exp >= 30:
		return sign + digits + "e" + exponent
	case exp < 0:
		return sign + "0." + strings.Repeat("0", -exp-1) + digits
	case exp >= len(digits)-1:
		return sign + digits + strings.Repeat("0", exp+1-len(digits))
	}
	return sign + digits[:exp+1] + "." + digits[exp+1:]
}

func sameFloat(a, b string, eps float64) bool {
	if a == b {
		return true
	}
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err == nil && err2 == nil && math.Abs(x-y) <= eps*max(math.Abs(x), math.Abs(y), 1e-300)
}

func sameRows(want, got []string, eps float64) bool {
	if slices.Equal(want, got) {
		return true
	}
	if eps == 0 || len(want) != len(got) {
		return false
	}
	for i := range want {
		w, g := strings.Fields(want[i]), strings.Fields(got[i])
		if len(w) != len(g) {
			return false
		}
		for j := range w {
			if !sameFloat(w[j], g[j], eps) {
				return false
			}
		}
	}
	return true
}
