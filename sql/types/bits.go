package types

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// The form of a bit string: the number of bits (uint32, little-endian), then
// the bits, the first one highest in its byte; the rest of the last byte is 0.

// Bits reads the form of a bit string.
func Bits(b []byte) (n int, data []byte) { return int(binary.LittleEndian.Uint32(b)), b[4:] }

// AppendBits appends the bit string of the first n bits of data.
func AppendBits(dst []byte, n int, data []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	l := len(dst)
	full := (n + 7) / 8
	dst = append(dst, data[:min(full, len(data))]...)
	for len(dst)-l < full {
		dst = append(dst, 0)
	}
	if n%8 != 0 {
		dst[len(dst)-1] &= 0xFF << (8 - n%8)
	}
	return dst
}

func appendBitsText(dst, b []byte) []byte {
	n, data := Bits(b)
	for i := range n {
		dst = append(dst, '0'+data[i/8]>>(7-i%8)&1)
	}
	return dst
}

// FitBits makes a bit string fit the modifier of bit(n) or bit varying(n): with
// cut it is cut or padded.
func FitBits(dst []byte, t Type, b []byte, cut bool) ([]byte, error) {
	n, data := Bits(b)
	want := int(t.Mod)
	switch {
	case want <= 0 || n == want, t.OID == OIDVarbit && n < want:
		return append(dst, b...), nil
	case cut:
		return AppendBits(dst, want, data), nil
	case t.OID == OIDVarbit:
		return dst, pgerror.New(pgerror.StringDataRightTruncation, "bit string too long for type bit varying(%d)", want)
	}
	return dst, pgerror.New(pgerror.StringDataLengthMismatch, "bit string length %d does not match type bit(%d)", n, want)
}

// parseBits reads a bit string: binary digits, after b or nothing, or
// hexadecimal ones after x.
func parseBits(dst []byte, t Type, s string) ([]byte, error) {
	digits, hex := s, false
	if s != "" {
		switch s[0] {
		case 'b', 'B':
			digits = s[1:]
		case 'x', 'X':
			digits, hex = s[1:], true
		}
	}
	n := len(digits)
	if hex {
		n *= 4
	}
	var scratch [64]byte
	data := append(scratch[:0], make([]byte, (n+7)/8)...)
	for i := range len(digits) {
		c := digits[i]
		v, ok := byte(0), true
		switch {
		case !hex:
			v, ok = c-'0', c == '0' || c == '1'
		case isDigit(c):
			v = c - '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			v = c | 0x20 - 'a' + 10
		default:
			ok = false
		}
		switch {
		case !ok && hex:
			return dst, pgerror.New(pgerror.InvalidTextRepresentation, "\"%s\" is not a valid hexadecimal digit", firstRune(digits[i:]))
		case !ok:
			return dst, pgerror.New(pgerror.InvalidTextRepresentation, "\"%s\" is not a valid binary digit", firstRune(digits[i:]))
		case hex:
			data[i/2] |= v << (4 - i%2*4)
		default:
			data[i/8] |= v << (7 - i%8)
		}
	}
	return FitBits(dst, t, AppendBits(nil, n, data), false)
}

// firstRune is the first character of s.
func firstRune(s string) string {
	for i := range s {
		if i > 0 {
			return s[:i]
		}
	}
	return s
}

func appendBitsBinary(dst, b []byte) []byte {
	n, data := Bits(b)
	return append(binary.BigEndian.AppendUint32(dst, uint32(n)), data...)
}

func parseBitsBinary(dst []byte, t Type, p []byte) ([]byte, error) {
	if len(p) < 4 {
		return dst, errShortMessage()
	}
	n := int32(binary.BigEndian.Uint32(p))
	switch full := (int64(n) + 7) / 8; {
	case n < 0:
		return dst, pgerror.New(pgerror.InvalidBinaryRepresentation, "invalid length in external bit string")
	case int64(len(p)-4) < full:
		return dst, errShortMessage()
	case int64(len(p)-4) > full:
		return dst, errBinaryFormat("")
	}
	return FitBits(dst, t, AppendBits(nil, int(n), p[4:]), false)
}

// CompareBits orders bit strings by their bits, then by their lengths.
func CompareBits(x, y []byte) int {
	n, a := Bits(x)
	m, b := Bits(y)
	return cmp.Or(bytes.Compare(a, b), cmp.Compare(n, m))
}

func bitTypmod(o OID, mods []int32) (int32, error) {
	name, limit := "bit", int32(MaxBits)
	if o == OIDVarbit {
		name = "bit varying"
	}
	switch {
	case len(mods) != 1:
		return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid type modifier")
	case mods[0] < 1:
		return 0, pgerror.New(pgerror.InvalidParameterValue, "length for type %s must be at least 1", name)
	case mods[0] > limit:
		return 0, pgerror.New(pgerror.InvalidParameterValue, "length for type %s cannot exceed %d", name, limit)
	}
	return mods[0], nil
}

// MaxBits is the greatest n of bit(n).
const MaxBits = 10485760 * 8
