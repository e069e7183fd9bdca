package types

import (
	"math/bits"
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// The form of an address of type inet or cidr is one whose byte order is the
// order of SQL: the family (4 or 6), the address with the bits behind the mask
// cleared, the length of the mask, and, if any of those bits is set, they alone
// in as many bytes as the address has.

// Inet is an address and the length of its network mask.
type Inet struct {
	V6   bool
	Bits int
	Addr [16]byte // of IPv4 the first four
}

// ReadInet reads the form of an address.
func ReadInet(b []byte) Inet {
	x := Inet{V6: b[0] == 6}
	n := x.Len()
	copy(x.Addr[:], b[1:1+n])
	x.Bits = int(b[1+n])
	for i, c := range b[2+n:] {
		x.Addr[i] |= c
	}
	return x
}

// Append appends the form of an address.
func (x Inet) Append(dst []byte) []byte {
	family := byte(4)
	if x.V6 {
		family = 6
	}
	net, n := x.Network(), x.Len()
	dst = append(append(append(dst, family), net.Addr[:n]...), byte(x.Bits))
	if net.Addr != x.Addr {
		for i := range n {
			dst = append(dst, x.Addr[i]^net.Addr[i])
		}
	}
	return dst
}

// Len is the number of bytes of the address.
func (x Inet) Len() int {
	if x.V6 {
		return 16
	}
	return 4
}

// MaxBits is the length of the mask of a single address.
func (x Inet) MaxBits() int { return 8 * x.Len() }

// Mask is the network mask.
func (x Inet) Mask() Inet {
	m := Inet{V6: x.V6, Bits: x.MaxBits()}
	for i := range x.Bits {
		m.Addr[i/8] |= 0x80 >> (i % 8)
	}
	return m
}

// Network is the address with the bits behind the mask cleared.
func (x Inet) Network() Inet {
	full := x.Bits / 8
	clear(x.Addr[min(full+1, 16):])
	if full < 16 {
		x.Addr[full] &^= 0xFF >> (x.Bits % 8)
	}
	return x
}

// CommonBits is how many of their first bits two addresses of a family share.
func (x Inet) CommonBits(y Inet) int {
	for i := range x.Len() {
		if d := x.Addr[i] ^ y.Addr[i]; d != 0 {
			return 8*i + bits.LeadingZeros8(d)
		}
	}
	return x.MaxBits()
}

// Contains reports whether the network y is within the network x, or is it.
func (x Inet) Contains(y Inet) bool {
	return x.V6 == y.V6 && x.Bits <= y.Bits && x.CommonBits(y) >= x.Bits
}

// ParseInet reads an address; cidr ones have no bits set behind the mask.
func ParseInet(s string, cidr bool) (Inet, error) {
	var x Inet
	ok := false
	switch {
	case strings.IndexByte(s, ':') >= 0:
		x, ok = parseV6(s)
	case cidr:
		x, ok = parseV4Net(s)
	default:
		x, ok = parseV4(s)
	}
	name := "inet"
	if cidr {
		name = "cidr"
	}
	if !ok {
		return x, errInput(name, s)
	}
	if cidr && x.Network() != x {
		return x, pgerror.New(pgerror.InvalidTextRepresentation, "invalid cidr value: \"%s\"", s).WithDetail("Value has bits set to right of mask.")
	}
	return x, nil
}

// octets reads decimal numbers up to 255 with points between them, at most four.
// It stops at a slash or the end. A point at the end is let go if loose.
func (x *Inet) octets(s string, loose bool) (n int, rest string, ok bool) {
	for {
		v, i := 0, 0
		for ; i < len(s) && isDigit(s[i]); i++ {
			if v = 10*v + int(s[i]-'0'); v > 255 {
				return 0, "", false
			}
		}
		if i == 0 {
			return n, s, loose
		}
		if n == 4 {
			return 0, "", false
		}
		x.Addr[n] = byte(v)
		n++
		switch {
		case i == len(s) || s[i] == '/':
			return n, s[i:], true
		case s[i] != '.':
			return 0, "", false
		}
		s = s[i+1:]
	}
}

// hexBytes reads the digits of a hexadecimal number as the first bytes of an
// address.
func (x *Inet) hexBytes(s string) (n int, rest string, ok bool) {
	i := 0
	for ; i < len(s); i++ {
		v, ok := hexVal(s[i])
		if !ok {
			break
		}
		if i/2 == 4 {
			return 0, "", false
		}
		x.Addr[i/2] |= v << (4 - i%2*4)
	}
	return (i + 1) / 2, s[i:], true
}

// maskV4 reads "/n"; -1 stands for no mask.
func maskV4(s string) (n int, ok bool) {
	if s == "" {
		return -1, true
	}
	if s[0] != '/' || len(s) == 1 {
		return 0, false
	}
	for _, c := range []byte(s[1:]) {
		if !isDigit(c) {
			return 0, false
		}
		if n = 10*n + int(c-'0'); n > 32 {
			return 0, false
		}
	}
	return n, true
}

// parseV4 reads an IPv4 address of type inet: four numbers, or with a mask as
// many as it covers.
func parseV4(s string) (x Inet, ok bool) {
	n, rest, ok := x.octets(s, true)
	if !ok || n == 0 {
		return x, false
	}
	if x.Bits, ok = maskV4(rest); !ok {
		return x, false
	}
	if x.Bits < 0 {
		x.Bits = 32
		return x, n == 4
	}
	return x, x.Bits/8 <= n
}

// parseV4Net reads an IPv4 network: without a mask its class and its numbers
// tell how long that is.
func parseV4Net(s string) (x Inet, ok bool) {
	var n int
	var rest string
	if len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' {
		n, rest, ok = x.hexBytes(s[2:])
	} else {
		n, rest, ok = x.octets(s, false)
	}
	if !ok || n == 0 {
		return x, false
	}
	if x.Bits, ok = maskV4(rest); !ok || x.Bits >= 0 {
		return x, ok
	}
	switch first := x.Addr[0]; {
	case first >= 240:
		x.Bits = 32
	case first >= 224:
		x.Bits = 8
	case first >= 192:
		x.Bits = 24
	case first >= 128:
		x.Bits = 16
	default:
		x.Bits = 8
	}
	if x.Bits = max(x.Bits, 8*n); x.Bits == 8 && x.Addr[0] == 224 {
		x.Bits = 4
	}
	return x, true
}

// maskV6 reads the length of a mask: no leading zeros, up to 128.
func maskV6(s string) (n int, ok bool) {
	for i, c := range []byte(s) {
		if !isDigit(c) || i > 0 && n == 0 {
			return 0, false
		}
		if n = 10*n + int(c-'0'); n > 128 {
			return 0, false
		}
	}
	return n, s != ""
}

// dotted reads the IPv4 address that may end an IPv6 one, with the mask behind.
func dotted(dst []byte, s string) (mask int, ok bool) {
	n, v, digits := 0, 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case isDigit(c):
			if digits > 0 && v == 0 {
				return 0, false
			}
			digits++
			if v = 10*v + int(c-'0'); v > 255 {
				return 0, false
			}
		case c == '.' || c == '/':
			if n > 3 {
				return 0, false
			}
			dst[n] = byte(v)
			if n++; c == '/' {
				return maskV6(s[i+1:])
			}
			v, digits = 0, 0
		default:
			return 0, false
		}
	}
	if digits == 0 || n > 3 {
		return 0, false
	}
	dst[n] = byte(v)
	return 128, true
}

// parseV6 reads an IPv6 address: words with colons between them, "::" for zeros
// once, an IPv4 address at the end, a mask.
func parseV6(s string) (x Inet, ok bool) {
	x = Inet{V6: true, Bits: 128}
	if s[0] == ':' {
		if s = s[1:]; s == "" || s[0] != ':' {
			return x, false
		}
	}
	n, gap, word, digits, start := 0, -1, 0, 0, 0
	put := func() bool {
		if n+2 > 16 {
			return false
		}
		x.Addr[n], x.Addr[n+1] = byte(word>>8), byte(word)
		n, word, digits = n+2, 0, 0
		return true
	}
scan:
	for i := 0; i < len(s); i++ {
		c := s[i]
		if v, ok := hexVal(c); ok {
			word = word<<4 | int(v)
			if digits++; digits > 4 {
				return x, false
			}
			continue
		}
		switch {
		case c == ':':
			start = i + 1
			if digits == 0 {
				if gap >= 0 {
					return x, false
				}
				gap = n
				continue
			}
			if i+1 == len(s) || !put() {
				return x, false
			}
		case c == '.' && n+4 <= 16:
			if x.Bits, ok = dotted(x.Addr[n:], s[start:]); !ok {
				return x, false
			}
			n, digits = n+4, 0
			break scan
		case c == '/':
			if x.Bits, ok = maskV6(s[i+1:]); !ok {
				return x, false
			}
			break scan
		default:
			return x, false
		}
	}
	if digits > 0 && !put() {
		return x, false
	}
	if gap < 0 {
		return x, n == 16
	}
	if n == 16 {
		return x, false
	}
	moved := n - gap
	copy(x.Addr[16-moved:], x.Addr[gap:n])
	clear(x.Addr[gap : 16-moved])
	return x, true
}
