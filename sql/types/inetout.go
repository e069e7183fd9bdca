package types

import (
	"encoding/binary"
	"strconv"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// AppendHost appends the address without its mask.
func (x Inet) AppendHost(dst []byte) []byte {
	if !x.V6 {
		return appendOctets(dst, x.Addr[:4])
	}
	words := x.words()
	gap, n := longestZeros(words[:])
	for i := 0; i < 8; i++ {
		switch {
		case i >= gap && i < gap+n:
			if i == gap {
				dst = append(dst, ':')
			}
			if i == 7 {
				dst = append(dst, ':')
			}
			continue
		case i > 0:
			dst = append(dst, ':')
		}
		if i == 6 && gap == 0 && (n == 6 || n == 5 && words[5] == 0xFFFF) {
			return appendOctets(dst, x.Addr[12:]) // an IPv4 address in IPv6
		}
		dst = strconv.AppendUint(dst, uint64(words[i]), 16)
	}
	return dst
}

func appendOctets(dst, b []byte) []byte {
	for i, c := range b {
		if i > 0 {
			dst = append(dst, '.')
		}
		dst = strconv.AppendUint(dst, uint64(c), 10)
	}
	return dst
}

func (x Inet) words() (w [8]uint16) {
	for i := range w {
		w[i] = binary.BigEndian.Uint16(x.Addr[2*i:])
	}
	return w
}

// longestZeros is the first longest run of at least two zeros; none is at -1.
func longestZeros(words []uint16) (at, n int) {
	at, n = -1, 1
	for i := 0; i < len(words); i++ {
		k := i
		for k < len(words) && words[k] == 0 {
			k++
		}
		if k-i > n {
			at, n = i, k-i
		}
		i = max(i, k-1)
	}
	if at < 0 {
		n = 0
	}
	return at, n
}

func (x Inet) appendMask(dst []byte) []byte {
	return strconv.AppendUint(append(dst, '/'), uint64(x.Bits), 10)
}

// AppendText appends the text form of an inet, which shows the mask of networks
// only.
func (x Inet) AppendText(dst []byte) []byte {
	if dst = x.AppendHost(dst); x.Bits != x.MaxBits() {
		dst = x.appendMask(dst)
	}
	return dst
}

// AppendFull appends the address with its mask: the text form of a cidr.
func (x Inet) AppendFull(dst []byte) []byte { return x.appendMask(x.AppendHost(dst)) }

// AppendAbbrev appends a network with no more of its address than the mask
// covers.
func (x Inet) AppendAbbrev(dst []byte) []byte {
	net := x.Network()
	switch {
	case x.V6:
		dst = net.appendAbbrevV6(dst)
	case x.Bits == 0:
		dst = append(dst, '0')
	default:
		dst = appendOctets(dst, net.Addr[:(x.Bits+7)/8])
	}
	return x.appendMask(dst)
}

// appendAbbrevV6 appends the words that the mask of a network covers, at least
// two. The run of zeros that it leaves out is the one that PostgreSQL picks: a
// run that was not the longest yet counts with the next one, from the start of
// the first.
func (x Inet) appendAbbrevV6(dst []byte) []byte {
	if x.Bits == 0 {
		return append(dst, "::"...)
	}
	words := x.words()
	shown := max((x.Bits+15)/16, 2)
	gap, n, at, run := 0, 0, 0, 0
	for i := range shown + 1 {
		switch {
		case i < shown && words[i] == 0:
			if run == 0 {
				at = i
			}
			run++
		case run > n:
			gap, n, run = at, run, 0
		}
	}
	v4 := n != shown && gap == 0 && (n == 6 || n == 5 && words[5] == 0xFFFF || n == 7 && x.Addr[14] != 0 && x.Addr[15] != 1)
	start, s := len(dst), x.Addr[:]
	for p := range shown {
		switch {
		case n > 0 && p >= gap && p < gap+n:
			if p == gap {
				dst = append(dst, ':')
			}
			if p == shown-1 {
				dst = append(dst, ':')
			}
			s = s[2:]
		case v4 && p > 5:
			if p == 6 {
				dst = append(dst, ':')
			} else {
				dst = append(dst, '.')
			}
			dst = strconv.AppendUint(dst, uint64(s[0]), 10)
			s = s[1:]
			if p != 7 || x.Bits > 120 {
				dst = strconv.AppendUint(append(dst, '.'), uint64(s[0]), 10)
				s = s[1:]
			}
		default:
			if len(dst) > start {
				dst = append(dst, ':')
			}
			dst = strconv.AppendUint(dst, uint64(binary.BigEndian.Uint16(s)), 16)
			s = s[2:]
		}
	}
	return dst
}

// The families in the binary form.
const (
	binaryV4 = 2
	binaryV6 = 3
)

func appendInetBinary(dst, b []byte, cidr bool) []byte {
	x := ReadInet(b)
	family, flag := byte(binaryV4), byte(0)
	if x.V6 {
		family = binaryV6
	}
	if cidr {
		flag = 1
	}
	dst = append(dst, family, byte(x.Bits), flag, byte(x.Len()))
	return append(dst, x.Addr[:x.Len()]...)
}

func parseInetBinary(dst, p []byte, cidr bool) ([]byte, error) {
	name := "inet"
	if cidr {
		name = "cidr"
	}
	if len(p) < 1 {
		return dst, errNoData()
	}
	if p[0] != binaryV4 && p[0] != binaryV6 {
		return dst, pgerror.New(pgerror.InvalidBinaryRepresentation, "invalid address family in external \"%s\" value", name)
	}
	x := Inet{V6: p[0] == binaryV6}
	switch {
	case len(p) < 2:
		return dst, errNoData()
	case int(p[1]) > x.MaxBits():
		return dst, pgerror.New(pgerror.InvalidBinaryRepresentation, "invalid bits in external \"%s\" value", name)
	case len(p) < 4:
		return dst, errNoData()
	case int(p[3]) != x.Len():
		return dst, pgerror.New(pgerror.InvalidBinaryRepresentation, "invalid length in external \"%s\" value", name)
	case len(p) < 4+x.Len():
		return dst, errNoData()
	}
	x.Bits = int(p[1])
	copy(x.Addr[:x.Len()], p[4:])
	if cidr && x.Network() != x {
		return dst, pgerror.New(pgerror.InvalidBinaryRepresentation, "invalid external \"cidr\" value").WithDetail("Value has bits set to right of mask.")
	}
	if len(p) > 4+x.Len() {
		return dst, errBinaryFormat("")
	}
	return x.Append(dst), nil
}
