package types

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// MAC8Sign is the bit in which the form of a macaddr8 differs from its 64 bits,
// so that the order of signed integers is that of addresses.
const MAC8Sign = math.MinInt64

// AppendMAC appends the text form of the low bytes of v.
func AppendMAC(dst []byte, v uint64, bytes int) []byte {
	for i := bytes - 1; i >= 0; i-- {
		c := byte(v >> (8 * i))
		if dst = append(dst, hexDigits[c>>4], hexDigits[c&15]); i > 0 {
			dst = append(dst, ':')
		}
	}
	return dst
}

// macForms are the forms of a macaddr: how many digits a number has at most (0:
// any), and what is between two of them.
var macForms = []struct {
	width int
	seps  string // a blank is none
}{
	{0, ":::::"}, {0, "-----"}, {2, "  :  "}, {2, "  -  "}, {2, " . . "}, {2, " - - "}, {2, "     "},
}

// ParseMAC reads a macaddr in one of its forms.
func ParseMAC(s string) (int64, error) {
	for _, f := range macForms {
		if v, ok := scanMAC(s, f.width, f.seps); ok {
			var mac int64
			for _, n := range v {
				if n < 0 || n > 255 {
					return 0, pgerror.New(pgerror.NumericValueOutOfRange, "invalid octet value in \"macaddr\" value: \"%s\"", s)
				}
				mac = mac<<8 | int64(n)
			}
			return mac, nil
		}
	}
	return 0, errInput("macaddr", s)
}

func scanMAC(s string, width int, seps string) (v [6]int32, ok bool) {
	for i := range v {
		if i > 0 && seps[i-1] != ' ' {
			if s == "" || s[0] != seps[i-1] {
				return v, false
			}
			s = s[1:]
		}
		if v[i], s, ok = scanHex(s, width); !ok {
			return v, false
		}
	}
	return v, strings.TrimLeft(s, " \t\n\v\f\r") == ""
}

// scanHex reads a hexadecimal number of at most width characters (0: any) as
// scanf does: after blanks, with a sign and 0x if there are any.
func scanHex(s string, width int) (v int32, rest string, ok bool) {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	if width == 0 {
		width = len(s)
	}
	end := min(width, len(s))
	i, neg := 0, false
	if i < end && (s[i] == '-' || s[i] == '+') {
		neg = s[i] == '-'
		i++
	}
	start := i
	if i+1 < end && s[i] == '0' && s[i+1]|0x20 == 'x' {
		i, ok = i+2, true // the 0 is a number
	}
	var n uint64
	over := false
	for ; i < end; i++ {
		d, hex := hexVal(s[i])
		if !hex {
			break
		}
		over = over || n>>60 != 0
		n = n<<4 | uint64(d)
	}
	if !ok && i == start {
		return 0, s, false
	}
	switch {
	case over:
		n = math.MaxUint64
	case neg:
		n = -n
	}
	return int32(n), s[i:], true
}

// ParseMAC8 reads a macaddr8: six or eight pairs of digits, with one sort of
// separator where there are any.
func ParseMAC8(s string) (int64, error) {
	rest := strings.TrimLeft(s, " \t\n\v\f\r")
	var v uint64
	var sep byte
	n := 0
	for len(rest) > 1 { // a last single character is not looked at
		hi, ok1 := hexVal(rest[0])
		lo, ok2 := hexVal(rest[1])
		if n++; !ok1 || !ok2 || n > 8 {
			return 0, errInput("macaddr8", s)
		}
		v = v<<8 | uint64(hi<<4|lo)
		rest = rest[2:]
		if rest != "" && (rest[0] == ':' || rest[0] == '-' || rest[0] == '.') {
			if sep != 0 && sep != rest[0] {
				return 0, errInput("macaddr8", s)
			}
			sep, rest = rest[0], rest[1:]
		}
		if (n == 6 || n == 8) && rest != "" && isSpace(rest[0]) {
			if rest = strings.TrimLeft(rest, " \t\n\v\f\r"); rest != "" {
				return 0, errInput("macaddr8", s)
			}
		}
	}
	switch n {
	case 6:
		return MAC8FromMAC(int64(v)), nil
	case 8:
		return int64(v) ^ MAC8Sign, nil
	}
	return 0, errInput("macaddr8", s)
}

// MAC8FromMAC makes a macaddr8 of a macaddr, with FF and FE in the middle.
func MAC8FromMAC(v int64) int64 {
	return (v>>24<<40 | 0xFFFE<<24 | v&0xFFFFFF) ^ MAC8Sign
}

// MACFromMAC8 is the macaddr that a macaddr8 was made of.
func MACFromMAC8(v int64) (int64, error) {
	u := uint64(v ^ MAC8Sign)
	if u>>24&0xFFFF != 0xFFFE {
		return 0, pgerror.New(pgerror.NumericValueOutOfRange, "macaddr8 data out of range to convert to macaddr").
			WithHint("Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.")
	}
	return int64(u>>40<<24 | u&0xFFFFFF), nil
}

// parseMAC8Binary reads eight bytes, or the six of a macaddr.
func parseMAC8Binary(p []byte) (int64, error) {
	switch {
	case len(p) == 6:
		return MAC8FromMAC(int64(binary.BigEndian.Uint16(p))<<32 | int64(binary.BigEndian.Uint32(p[2:]))), nil
	case len(p) < 8:
		return 0, errNoData()
	case len(p) > 8:
		return 0, errBinaryFormat("")
	}
	return int64(binary.BigEndian.Uint64(p)) ^ MAC8Sign, nil
}
