package expr

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/binary"
	"sync"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// randomUUID is gen_random_uuid (RFC 9562, version 4).
func randomUUID(_ *Call, x *Eval, _ []*columnar.Vec, n int) *columnar.Vec {
	dst, out := Result[columnar.U128](x, n)
	buf := make([]byte, 16*n)
	rand.Read(buf) // never fails
	for i := range dst {
		dst[i] = uuidOf(buf[16*i:], 4)
	}
	return out
}

// uuidOf makes 16 bytes a UUID of a version.
func uuidOf(b []byte, version byte) columnar.U128 {
	b[6], b[8] = b[6]&0x0f|version<<4, b[8]&0x3f|0x80
	return columnar.U128{Hi: binary.BigEndian.Uint64(b), Lo: binary.BigEndian.Uint64(b[8:])}
}

// lastUUID is the time of the last UUID of version 7, in 1/4096 ms: each has one of
// its own, so that they are in the order in which they were made.
var lastUUID struct {
	sync.Mutex
	at int64
}

// timedUUIDs makes UUIDs of version 7: 48 bits of milliseconds, 12 bits of what is
// below, and random ones. shift gives the time of row i in microseconds of Unix time,
// from now.
func timedUUIDs(x *Eval, n int, shift func(i int, now int64) (int64, *pgerror.Error)) *columnar.Vec {
	dst, out := Result[columnar.U128](x, n)
	buf := make([]byte, 16*n)
	rand.Read(buf) // never fails
	for i := range dst {
		lastUUID.Lock()
		now := time.Now().UnixNano() / 1000 * 4096 / 1000
		now = max(now, lastUUID.at+1)
		lastUUID.at = now
		lastUUID.Unlock()
		micros := now * 1000 / 4096
		moved, err := shift(i, micros)
		if err != nil {
			x.Fail(i, err)
			continue
		}
		at := uint64(now + (moved-micros)*4096/1000)
		b := buf[16*i:]
		rest := binary.BigEndian.Uint64(b) // two bytes of it stay
		binary.BigEndian.PutUint64(b, at>>12<<16|at&0xfff|rest&0xf000)
		dst[i] = uuidOf(b, 7)
	}
	return out
}

// uuidV5 is uuid_generate_v5(namespace, name) (RFC 9562, section 5.5).
func uuidV5(_ *Eval, a Args, i int) (columnar.U128, *pgerror.Error) {
	space := Arg[columnar.U128](a, 0, i)
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], space.Hi)
	binary.BigEndian.PutUint64(b[8:], space.Lo)
	h := sha1.New()
	h.Write(b[:])
	h.Write(a.Bytes(1, i))
	s := h.Sum(nil)
	s[6], s[8] = s[6]&0x0f|0x50, s[8]&0x3f|0x80
	return columnar.U128{Hi: binary.BigEndian.Uint64(s), Lo: binary.BigEndian.Uint64(s[8:])}, nil
}

func init() {
	rfc := func(u columnar.U128) bool { return u.Lo>>62 == 2 }
	version := func(u columnar.U128) int16 { return int16(u.Hi >> 12 & 15) }
	totalFn("uuid_extract_version", types.Int2, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		if u := Arg[columnar.U128](a, 0, i); rfc(u) {
			out.Int16(version(u))
		} else {
			out.Null()
		}
		return nil
	}), types.UUID)
	totalFn("uuid_extract_timestamp", types.TimestampTZ, RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		u := Arg[columnar.U128](a, 0, i)
		switch {
		case rfc(u) && version(u) == 7:
			out.Int64(unixEpoch + int64(u.Hi>>16)*1000)
			return nil
		case !rfc(u) || version(u) != 1:
			out.Null()
			return nil
		}
		ticks := int64(u.Hi>>32 | u.Hi>>16&0xffff<<32 | u.Hi&0xfff<<48) // of 100 ns, since 1582-10-15
		epoch := types.TimestampTZFromTime(time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC))
		out.Int64(epoch + ticks/10)
		return nil
	}), types.UUID)
	totalFn("uuid_generate_v5", types.UUID, rowFixed(uuidV5), types.UUID, types.Text)
	for _, name := range []string{"gen_random_uuid", "uuidv4"} {
		Register(Function{Name: name, Ret: types.UUID, Strict: true, Total: true, Volatility: Volatile, Eval: randomUUID})
	}
	Register(Function{Name: "uuidv7", Ret: types.UUID, Strict: true, Total: true, Volatility: Volatile, Eval: func(_ *Call, x *Eval, _ []*columnar.Vec, n int) *columnar.Vec {
		return timedUUIDs(x, n, func(_ int, now int64) (int64, *pgerror.Error) { return now, nil })
	}})
	Register(Function{Name: "uuidv7", Args: []types.Type{types.Interval}, Ret: types.UUID, Strict: true, Volatility: Volatile, Consts: ScalarConsts,
		Eval: func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			a := Args(args)
			return timedUUIDs(x, n, func(i int, now int64) (int64, *pgerror.Error) {
				if a.Null(0, i) {
					return 0, nil
				}
				ts, err := timestampTZPlus(x, now+unixEpoch, Arg[columnar.U128](a, 0, i))
				return ts - unixEpoch, err
			})
		}})
}
