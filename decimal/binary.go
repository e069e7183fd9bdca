package decimal

import (
	"encoding/binary"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// The sign words of PostgreSQL's binary form of numeric.
const (
	pgPos    = 0x0000
	pgNeg    = 0x4000
	pgNaN    = 0xC000
	pgPosInf = 0xD000
	pgNegInf = 0xF000
)

// AppendBinary appends PostgreSQL's binary form (numeric_send): the number of
// base-10000 digits, the exponent of the first, sign, display scale, digits;
// all as big-endian 16-bit words.
func AppendBinary(dst, a []byte) []byte {
	x := decode(a)
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	h := dst[start:]
	switch x.form {
	case nan:
		binary.BigEndian.PutUint16(h[4:], pgNaN)
		return dst
	case posInf:
		binary.BigEndian.PutUint16(h[4:], pgPosInf)
		binary.BigEndian.PutUint16(h[6:], 0x20)
		return dst
	case negInf:
		binary.BigEndian.PutUint16(h[4:], pgNegInf)
		binary.BigEndian.PutUint16(h[6:], 0x20)
		return dst
	}
	binary.BigEndian.PutUint16(h[6:], uint16(x.scale))
	if x.isZero() {
		return dst
	}
	if x.neg {
		binary.BigEndian.PutUint16(h[4:], pgNeg)
	}
	var buf [48]byte
	ds := x.appendCoef(buf[:0])
	weight := floorDiv4(len(ds) - x.scale - 1)
	// The first digit may have fewer than 4 decimals.
	first := len(ds) - x.scale - weight*decDigits
	last := start + 8
	n := 0
	for k := first; len(ds) > 0; k = decDigits {
		d := 0
		for i := range k {
			d *= 10
			if i < len(ds) {
				d += int(ds[i] - '0')
			}
		}
		ds = ds[min(k, len(ds)):]
		dst = binary.BigEndian.AppendUint16(dst, uint16(d))
		n++
		if d != 0 {
			last = len(dst)
			binary.BigEndian.PutUint16(dst[start:], uint16(n))
		}
	}
	binary.BigEndian.PutUint16(dst[start+2:], uint16(weight))
	return dst[:last]
}

func errBinary(what string) error {
	return pgerror.New(pgerror.InvalidBinaryRepresentation, "invalid %s in external \"numeric\" value", what)
}

// ParseBinary appends the number that PostgreSQL's binary form b holds.
func ParseBinary(dst, b []byte) ([]byte, error) {
	if len(b) < 8 {
		return dst, pgerror.New(pgerror.ProtocolViolation, "insufficient data left in message")
	}
	n := int(binary.BigEndian.Uint16(b))
	weight := int(int16(binary.BigEndian.Uint16(b[2:])))
	sign := binary.BigEndian.Uint16(b[4:])
	scale := int(binary.BigEndian.Uint16(b[6:]))
	switch sign {
	case pgPos, pgNeg:
	case pgNaN:
		return AppendNaN(dst), nil
	case pgPosInf:
		return AppendInf(dst, 1), nil
	case pgNegInf:
		return AppendInf(dst, -1), nil
	default:
		return dst, errBinary("sign")
	}
	if scale > MaxScale {
		return dst, errBinary("scale")
	}
	if len(b)-8 < n*2 {
		return dst, pgerror.New(pgerror.ProtocolViolation, "insufficient data left in message")
	}
	ds := make([]byte, 0, n*decDigits)
	for b = b[8 : 8+n*2]; len(b) > 0; b = b[2:] {
		d := binary.BigEndian.Uint16(b)
		if d > 9999 {
			return dst, errBinary("digit")
		}
		ds = append(ds, byte('0'+d/1000), byte('0'+d/100%10), byte('0'+d/10%10), byte('0'+d%10))
	}
	var x num
	if n > 0 {
		x, _ = parseDigits(ds, 0, len(ds), x)
	}
	// The last digit stands for 10^(4*(weight-n+1)); digits beyond the display
	// scale are cut, as numeric_recv does.
	x.neg = sign == pgNeg
	x.scale = (n - 1 - weight) * decDigits
	if x.isZero() {
		x.scale = 0
	}
	x.roundTo(scale, true)
	return x.finish(dst)
}
