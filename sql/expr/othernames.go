package expr

import (
	"crypto/subtle"
	"encoding/binary"
	"hash/crc32"
	"math"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Functions that Materialize or RisingWave have and PostgreSQL has not.

// hopping is date_bin_hopping(hop, width, ts, origin): the starts of all windows
// of a width, one every hop, that ts is in.
func hopping(x *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	a := Args(args)
	hop, width, ts, origin := Arg[columnar.U128](a, 0, i), types.UnpackInterval(Arg[columnar.U128](a, 1, i)), a.Int64(2, i), int64(unixEpoch)
	if len(args) > 3 {
		origin = a.Int64(3, i)
	}
	if width.Months != 0 {
		return 0, pgerror.New(pgerror.FeatureNotSupported, "timestamps cannot be binned into intervals containing months or years")
	}
	if !isFinite(ts) {
		return 0, errTimestampRange
	}
	last, err := bin(x, hop, ts, origin)
	if err != nil {
		return 0, err
	}
	step := types.UnpackInterval(hop)
	size := int64(step.Days)*microsPerDay + step.Micros // bin has checked it
	days := int64(width.Days) * microsPerDay
	span, ok := add64(days, width.Micros)
	if !ok || days/microsPerDay != int64(width.Days) {
		return 0, errIntervalRange
	}
	if span/size >= maxSeries {
		return 0, errSeriesLong
	}
	if !types.ValidTimestamp(ts - span) {
		return 0, errTimestampRange
	}
	n := 0
	first := last
	for first-size > ts-span {
		first -= size
	}
	for v := first; v <= last; v += size {
		if v > ts-span {
			out[0].Int64(v)
			n++
		}
	}
	return n, nil
}

// unixEpoch is 1970-01-01 in microseconds since 2000-01-01.
const unixEpoch = -946684800 * 1000000

// murmur2 is the hash by which Kafka's clients choose partitions (MurmurHash2, 32
// bits, with their seed).
func murmur2(b []byte) int32 {
	const m = 0x5bd1e995
	h := uint32(0x9747b28c) ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * m
		k ^= k >> 24
		h = h*m ^ k*m
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * m
	}
	h = (h ^ h>>13) * m
	return int32(h ^ h>>15)
}

// sea is SeaHash with its default seeds: four lanes of diffused words.
func sea(b []byte) uint64 {
	lanes := [4]uint64{0x16f11fe89b0d677c, 0xb480a793d8e6c86c, 0x6fe2e5aaf078ebc9, 0x14f994a4c5259381}
	n := uint64(len(b))
	at := 0
	for len(b) > 0 {
		var word [8]byte
		b = b[copy(word[:], b):]
		lanes[at] = diffuse(lanes[at] ^ binary.LittleEndian.Uint64(word[:]))
		at = (at + 1) % 4
	}
	return diffuse(lanes[0] ^ lanes[1] ^ lanes[2] ^ lanes[3] ^ n)
}

func diffuse(x uint64) uint64 {
	const p = 0x6eed0e9da4d94a4f
	x *= p
	x ^= x >> 32 >> (x >> 60)
	return x * p
}

// isoTimestamp is try_parse_monotonic_iso8601_timestamp: the time of a text of the
// form YYYY-MM-DDThh:mm:ss.sssZ, NULL of all others.
func isoTimestamp(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	const form = "0000-00-00T00:00:00.000Z"
	s := a.Bytes(0, i)
	fits := len(s) == len(form)
	for k := 0; fits && k < len(form); k++ {
		if form[k] == '0' {
			fits = s[k] >= '0' && s[k] <= '9'
		} else {
			fits = s[k] == form[k]
		}
	}
	if fits {
		if ts, err := types.ParseTimestamp(string(s[:len(form)-1]), -1, nil); err == nil {
			out.Int64(ts)
			return nil
		}
	}
	out.Null()
	return nil
}

// inetAton is inet_aton: an IPv4 address as a number.
func inetAton(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	addr, err := netip.ParseAddr(string(a.Bytes(0, i)))
	if err != nil || !addr.Is4() {
		return pgerror.New(pgerror.InvalidTextRepresentation, "invalid IPv4 address: %q", a.Bytes(0, i))
	}
	b := addr.As4()
	out.Int64(int64(binary.BigEndian.Uint32(b[:])))
	return nil
}

// inetNtoa is inet_ntoa: the IPv4 address that a number is.
func inetNtoa(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	v := a.Int64(0, i)
	if v < 0 || v > math.MaxUint32 {
		return pgerror.New(pgerror.NumericValueOutOfRange, "IPv4 address out of range: %d", v)
	}
	out.Extend(func(dst []byte) []byte {
		return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}).AppendTo(dst)
	})
	return nil
}

// urlEncode is url_encode: all bytes but those that RFC 3986 calls unreserved as %XX.
func urlEncode(dst, b []byte) []byte {
	const digits = "0123456789ABCDEF"
	for _, c := range b {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.', c == '~':
			dst = append(dst, c)
		default:
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}

// urlDecode is url_decode: %XX is a byte, all else stands for itself.
func urlDecode(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	s, err := url.PathUnescape(string(a.Bytes(0, i)))
	if err != nil {
		return pgerror.New(pgerror.InvalidTextRepresentation, "invalid percent-encoding in %q", a.Bytes(0, i))
	}
	if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		return pgerror.New(pgerror.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\" in %q", a.Bytes(0, i))
	}
	out.Extend(func(dst []byte) []byte { return append(dst, s...) })
	return nil
}

func init() {
	type ts = []types.Type
	rowFn("inet_aton", types.Int8, inetAton, types.Text)
	rowFn("inet_ntoa", types.Text, inetNtoa, types.Int8)
	totalFn("url_encode", types.Text, bytesAppend(urlEncode), types.Text)
	rowFn("url_decode", types.Text, urlDecode, types.Text)
	totalFn("secure_compare", types.Bool, bytes2Fixed(func(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }), types.Text, types.Text)
	text, bytea := types.Text, types.Bytea
	for _, t := range []types.Type{types.Timestamp, types.TimestampTZ} {
		for _, args := range []ts{{types.Interval, types.Interval, t}, {types.Interval, types.Interval, t, t}} {
			RegisterTableFunction(TableFunction{Name: "date_bin_hopping", Args: args, Cols: ts{t}, Names: []string{"date_bin_hopping"}, Strict: true, Eval: hopping})
		}
	}
	totalFn("crc32", types.Int8, bytesFixed(func(b []byte) int64 { return int64(crc32.ChecksumIEEE(b)) }), text)
	for _, t := range []types.Type{text, bytea} {
		totalFn("kafka_murmur2", types.Int4, bytesFixed(murmur2), t)
		totalFn("seahash", types.Numeric, bytesAppend(func(dst, b []byte) []byte { return decimal.AppendInt128(dst, 0, sea(b)) }), t)
		totalFn("constant_time_eq", types.Bool, bytes2Fixed(func(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }), t, t)
	}
	rowFn("try_parse_monotonic_iso8601_timestamp", types.Timestamp, isoTimestamp, text)
	arr, elem, i4 := types.Of(types.OIDAnyCompatibleArray), types.Of(types.OIDAnyCompatible), types.Int4
	for _, l := range []struct {
		name, of string
		args     ts
	}{
		{"list_append", "array_append", ts{arr, elem}}, {"list_prepend", "array_prepend", ts{elem, arr}},
		{"list_cat", "array_cat", ts{arr, arr}}, {"list_remove", "array_remove", ts{arr, elem}},
		{"list_n_layers", "array_ndims", ts{types.Of(types.OIDAnyArray)}},
	} {
		fn := *exactOverload(registry.funcs[l.of], l.args)
		fn.Name, fn.OID = l.name, 0
		Register(fn)
	}
	Register(Function{Name: "list_length", Args: ts{types.Of(types.OIDAnyArray)}, Ret: i4, Strict: true, Total: true, Consts: ScalarConsts,
		Eval: rowFixed(func(_ *Eval, a Args, i int) (int32, *pgerror.Error) {
			l := types.ReadArray(a.Bytes(0, i))
			if l.NDim == 0 {
				return 0, nil
			}
			return l.Dims[0].Len, nil
		})})
	for _, a := range registry.aggs["array_agg"] {
		agg := *a
		agg.Name, agg.OID = "list_agg", 0
		RegisterAggregate(agg)
	}
}
