package expr

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// PostgreSQL's hash functions are Bob Jenkins' lookup3 over the bytes of a value; people
// use them to spread rows evenly. Those with a seed give 64 bits.

// jenkins is the state of the hash.
type jenkins struct{ a, b, c uint32 }

func newJenkins(n int, seed uint64) jenkins {
	v := 0x9e3779b9 + uint32(n) + 3923095
	h := jenkins{v, v, v}
	if seed != 0 {
		h.a += uint32(seed >> 32)
		h.b += uint32(seed)
		h.mix()
	}
	return h
}

func (h *jenkins) mix() {
	step := func(x, y, z *uint32, k int) {
		*x -= *z
		*x ^= bits.RotateLeft32(*z, k)
		*z += *y
	}
	step(&h.a, &h.b, &h.c, 4)
	step(&h.b, &h.c, &h.a, 6)
	step(&h.c, &h.a, &h.b, 8)
	step(&h.a, &h.b, &h.c, 16)
	step(&h.b, &h.c, &h.a, 19)
	step(&h.c, &h.a, &h.b, 4)
}

func (h *jenkins) final() uint64 {
	step := func(x, y *uint32, k int) {
		*x ^= *y
		*x -= bits.RotateLeft32(*y, k)
	}
	step(&h.c, &h.b, 14)
	step(&h.a, &h.c, 11)
	step(&h.b, &h.a, 25)
	step(&h.c, &h.b, 16)
	step(&h.a, &h.c, 4)
	step(&h.b, &h.a, 14)
	step(&h.c, &h.b, 24)
	return uint64(h.b)<<32 | uint64(h.c)
}

// hashBytes is the hash of bytes; its low half is that without a seed, if seed is 0.
func hashBytes(k []byte, seed uint64) uint64 {
	h := newJenkins(len(k), seed)
	for ; len(k) >= 12; k = k[12:] {
		h.a += binary.LittleEndian.Uint32(k)
		h.b += binary.LittleEndian.Uint32(k[4:])
		h.c += binary.LittleEndian.Uint32(k[8:])
		h.mix()
	}
	// The lowest byte of c is left to the length.
	var tail [13]byte
	copy(tail[:], k[:min(8, len(k))])
	if len(k) > 8 {
		copy(tail[9:], k[8:])
	}
	h.a += binary.LittleEndian.Uint32(tail[:])
	h.b += binary.LittleEndian.Uint32(tail[4:])
	h.c += uint32(tail[9])<<8 | uint32(tail[10])<<16 | uint32(tail[11])<<24
	return h.final()
}

func hashUint32(v uint32, seed uint64) uint64 {
	h := newJenkins(4, seed)
	h.a += v
	return h.final()
}

// hashInt64 gives equal integers of all widths the same hash.
func hashInt64(v int64, seed uint64) uint64 {
	high := uint32(v >> 32)
	if v < 0 {
		high = ^high
	}
	return hashUint32(uint32(v)^high, seed)
}

func hashFloat(f float64, seed uint64) uint64 {
	switch {
	case f == 0:
		return seed
	case f != f:
		f = math.Float64frombits(0x7ff8 << 48)
	}
	return hashBytes(binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)), seed)
}

// hashNumeric hashes the digits to the base of 10000, as PostgreSQL stores them, without
// zeros at the ends.
func hashNumeric(v []byte, seed uint64) uint64 {
	s := bytes.TrimPrefix(decimal.AppendText(nil, v), []byte("-"))
	if s[0] > '9' { // NaN, Infinity
		return seed
	}
	whole, frac, _ := bytes.Cut(s, []byte("."))
	for len(whole)%4 != 0 {
		whole = append([]byte("0"), whole...)
	}
	for len(frac)%4 != 0 {
		frac = append(bytes.Clone(frac), '0')
	}
	weight := len(whole)/4 - 1
	var digits []byte
	for all := append(bytes.Clone(whole), frac...); len(all) > 0; all = all[4:] {
		d := uint16(all[0]-'0')*1000 + uint16(all[1]-'0')*100 + uint16(all[2]-'0')*10 + uint16(all[3]-'0')
		if d == 0 && len(digits) == 0 {
			weight--
			continue
		}
		digits = binary.LittleEndian.AppendUint16(digits, d)
	}
	for n := len(digits); n > 0 && digits[n-1] == 0 && digits[n-2] == 0; n = len(digits) {
		digits = digits[:n-2]
	}
	if len(digits) == 0 {
		return seed - 1
	}
	return hashBytes(digits, seed) ^ uint64(int64(weight))
}

func bigEndian(u columnar.U128) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, u.Hi), u.Lo)
}

func registerHashes() {
	type value = func(a Args, i int, seed uint64) uint64
	ofInt := func(a Args, i int, seed uint64) uint64 { return hashInt64(Arg[int64](a, 0, i), seed) }
	ofText := func(a Args, i int, seed uint64) uint64 { return hashBytes(a.Bytes(0, i), seed) }
	timeTZ := func(a Args, i int, seed uint64) uint64 {
		t, west := types.UnpackTimeTZ(Arg[columnar.U128](a, 0, i))
		return hashInt64(t, seed) ^ hashUint32(uint32(west), seed)
	}
	for _, h := range []struct {
		name, suffix string
		t            types.Type
		f            value
	}{
		{"hashint2", "", types.Int2, func(a Args, i int, seed uint64) uint64 { return hashUint32(uint32(int32(Arg[int16](a, 0, i))), seed) }},
		{"hashint4", "", types.Int4, func(a Args, i int, seed uint64) uint64 { return hashUint32(uint32(a.Int32(0, i)), seed) }},
		{"hashint8", "", types.Int8, ofInt},
		{"hashfloat4", "", types.Float4, func(a Args, i int, seed uint64) uint64 { return hashFloat(float64(Arg[float32](a, 0, i)), seed) }},
		{"hashfloat8", "", types.Float8, func(a Args, i int, seed uint64) uint64 { return hashFloat(Arg[float64](a, 0, i), seed) }},
		{"hashoid", "", types.Of(types.OIDOid), func(a Args, i int, seed uint64) uint64 { return hashUint32(uint32(Arg[int64](a, 0, i)), seed) }},
		{"hashchar", "", types.Char, func(a Args, i int, seed uint64) uint64 {
			var c int8
			if b := a.Bytes(0, i); len(b) > 0 {
				c = int8(b[0])
			}
			return hashUint32(uint32(int32(c)), seed)
		}},
		{"hashname", "", types.Name, ofText},
		{"hashtext", "", types.Text, ofText},
		{"hashbpchar", "", types.BPChar, func(a Args, i int, seed uint64) uint64 {
			return hashBytes(bytes.TrimRight(a.Bytes(0, i), " "), seed)
		}},
		{"hash_numeric", "_", types.Numeric, func(a Args, i int, seed uint64) uint64 { return hashNumeric(a.Bytes(0, i), seed) }},
		{"uuid_hash", "_", types.UUID, func(a Args, i int, seed uint64) uint64 {
			return hashBytes(bigEndian(Arg[columnar.U128](a, 0, i)), seed)
		}},
		{"time_hash", "_", types.Time, ofInt},
		{"timetz_hash", "_", types.TimeTZ, timeTZ},
		{"timestamp_hash", "_", types.Timestamp, ofInt},
		{"interval_hash", "_", types.Interval, func(a Args, i int, seed uint64) uint64 {
			return hashInt64(types.IntervalLength(Arg[columnar.U128](a, 0, i)), seed)
		}},
	} {
		Register(Function{Name: h.name, Args: []types.Type{h.t}, Ret: types.Int4, Strict: true, Total: true, Consts: ScalarConsts,
			Eval: rowFixed(func(_ *Eval, a Args, i int) (int32, *pgerror.Error) { return int32(h.f(a, i, 0)), nil })})
		Register(Function{Name: h.name + h.suffix + "extended", Args: []types.Type{h.t, types.Int8}, Ret: types.Int8, Strict: true, Total: true, Consts: ScalarConsts,
			Eval: rowFixed(func(_ *Eval, a Args, i int) (int64, *pgerror.Error) {
				return int64(h.f(a, i, uint64(a.Int64(1, i)))), nil
			})})
	}
}

func init() { registerHashes() }
