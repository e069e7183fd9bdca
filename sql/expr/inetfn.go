package expr

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

var (
	inetType     = types.Of(types.OIDInet)
	cidrType     = types.Of(types.OIDCIDR)
	macType      = types.Of(types.OIDMACAddr)
	mac8Type     = types.Of(types.OIDMACAddr8)
	errInetRange = pgerror.New(pgerror.NumericValueOutOfRange, "result is out of range")
)

func putInet(out *columnar.Builder, x types.Inet) { out.Extend(x.Append) }

// inetMap is the kernel of a function from address to address.
func inetMap(f func(x types.Inet) types.Inet) Kernel {
	return bytesAppend(func(dst, b []byte) []byte { return f(types.ReadInet(b)).Append(dst) })
}

// inetText is the kernel of a text form of an address.
func inetText(f func(x types.Inet, dst []byte) []byte) Kernel {
	return bytesAppend(func(dst, b []byte) []byte { return f(types.ReadInet(b), dst) })
}

// inetInt is the kernel of a number that an address has.
func inetInt(f func(x types.Inet) int) Kernel {
	return bytesFixed(func(b []byte) int32 {
		if len(b) == 0 {
			return 0 // NULL
		}
		return int32(f(types.ReadInet(b)))
	})
}

// inetTest is the kernel of a predicate of two addresses.
func inetTest(f func(x, y types.Inet) bool) Kernel {
	return bytes2Fixed(func(a, b []byte) bool {
		return len(a) > 0 && len(b) > 0 && f(types.ReadInet(a), types.ReadInet(b))
	})
}

// inetWord is the address as a number of 128 bits.
func inetWord(x types.Inet) (hi, lo uint64) {
	if !x.V6 {
		return 0, uint64(binary.BigEndian.Uint32(x.Addr[:]))
	}
	return binary.BigEndian.Uint64(x.Addr[:]), binary.BigEndian.Uint64(x.Addr[8:])
}

// addInet moves an address by a number.
func addInet(x types.Inet, by int64) (types.Inet, *pgerror.Error) {
	hi, lo := inetWord(x)
	sum, carry := bits.Add64(lo, uint64(by), 0)
	high, over := bits.Add64(hi, uint64(by>>63), carry)
	if (over != 0) != (by < 0) || !x.V6 && (high != 0 || sum>>32 != 0) {
		return x, errInetRange
	}
	if x.V6 {
		binary.BigEndian.PutUint64(x.Addr[:], high)
		binary.BigEndian.PutUint64(x.Addr[8:], sum)
	} else {
		binary.BigEndian.PutUint32(x.Addr[:], uint32(sum))
	}
	return x, nil
}

// moveInet is the function of inet + int8; sign is -1 for inet - int8.
func moveInet(addr, by int, sign int64) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		x, err := addInet(types.ReadInet(a.Bytes(addr, i)), sign*a.Int64(by, i))
		if err == nil {
			putInet(out, x)
		}
		return err
	}
}

// subInet is how far two addresses are apart.
func subInet(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	x, y := types.ReadInet(a.Bytes(0, i)), types.ReadInet(a.Bytes(1, i))
	if x.V6 != y.V6 {
		return errParam("cannot subtract inet values of different sizes")
	}
	xh, xl := inetWord(x)
	yh, yl := inetWord(y)
	low, borrow := bits.Sub64(xl, yl, 0)
	high, _ := bits.Sub64(xh, yh, borrow)
	if int64(high) != int64(low)>>63 {
		return errInetRange
	}
	out.Int64(int64(low))
	return nil
}

// inetBits combines the bits of two addresses of a family.
func inetBits(verb string, f func(x, y byte) byte) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		x, y := types.ReadInet(a.Bytes(0, i)), types.ReadInet(a.Bytes(1, i))
		if x.V6 != y.V6 {
			return errParam("cannot %s inet values of different sizes", verb)
		}
		for k := range x.Len() {
			x.Addr[k] = f(x.Addr[k], y.Addr[k])
		}
		x.Bits = max(x.Bits, y.Bits)
		putInet(out, x)
		return nil
	}
}

// setMask is set_masklen; of a network it clears the bits behind.
func setMask(network bool) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		x, n := types.ReadInet(a.Bytes(0, i)), int(a.Int32(1, i))
		switch {
		case n == -1:
			n = x.MaxBits()
		case n < 0 || n > x.MaxBits():
			return errParam("invalid mask length: %d", n)
		}
		if x.Bits = n; network {
			x = x.Network()
		}
		putInet(out, x)
		return nil
	}
}

// mergeInet is the smallest network that has both addresses.
func mergeInet(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	x, y := types.ReadInet(a.Bytes(0, i)), types.ReadInet(a.Bytes(1, i))
	if x.V6 != y.V6 {
		return errParam("cannot merge addresses from different families")
	}
	x.Bits = min(x.Bits, y.Bits, x.CommonBits(y))
	putInet(out, x.Network())
	return nil
}

func registerInetParts() {
	text, i4 := types.Text, types.Int4
	totalFn("host", text, inetText(types.Inet.AppendHost), inetType)
	totalFn("abbrev", text, inetText(types.Inet.AppendText), inetType)
	totalFn("abbrev", text, inetText(types.Inet.AppendAbbrev), cidrType)
	totalFn("family", i4, inetInt(func(x types.Inet) int {
		if x.V6 {
			return 6
		}
		return 4
	}), inetType)
	totalFn("masklen", i4, inetInt(func(x types.Inet) int { return x.Bits }), inetType)
	totalFn("network", cidrType, inetMap(types.Inet.Network), inetType)
	totalFn("netmask", inetType, inetMap(types.Inet.Mask), inetType)
	not := func(x types.Inet) types.Inet {
		for i := range x.Len() {
			x.Addr[i] = ^x.Addr[i]
		}
		return x
	}
	hostmask := func(x types.Inet) types.Inet { return not(x.Mask()) }
	totalFn("hostmask", inetType, inetMap(hostmask), inetType)
	totalFn("broadcast", inetType, inetMap(func(x types.Inet) types.Inet {
		m := hostmask(x)
		for i := range m.Addr {
			x.Addr[i] |= m.Addr[i]
		}
		return x
	}), inetType)
	totalOp("~", inetType, inetMap(not), inetType)
	rowFn("set_masklen", inetType, setMask(false), inetType, i4)
	rowFn("set_masklen", cidrType, setMask(true), cidrType, i4)
	totalFn("inet_same_family", types.Bool, inetTest(func(x, y types.Inet) bool { return x.V6 == y.V6 }), inetType, inetType)
	rowFn("inet_merge", cidrType, mergeInet, inetType, inetType)
}

func registerInetOperators() {
	registerCompare(inetType, inetType, Immutable, cmpText)
	within := func(y, x types.Inet) bool { return x.Bits < y.Bits && x.Contains(y) }
	for symbol, f := range map[string]func(x, y types.Inet) bool{
		"<<":  within,
		"<<=": func(x, y types.Inet) bool { return y.Contains(x) },
		">>":  func(x, y types.Inet) bool { return within(y, x) },
		">>=": func(x, y types.Inet) bool { return x.Contains(y) },
		"&&":  func(x, y types.Inet) bool { return x.Contains(y) || y.Contains(x) },
	} {
		totalOp(symbol, types.Bool, inetTest(f), inetType, inetType)
	}
	rowOp("&", inetType, inetBits("AND", func(x, y byte) byte { return x & y }), inetType, inetType)
	rowOp("|", inetType, inetBits("OR", func(x, y byte) byte { return x | y }), inetType, inetType)
	rowOp("+", inetType, moveInet(0, 1, 1), inetType, types.Int8)
	rowOp("+", inetType, moveInet(1, 0, 1), types.Int8, inetType)
	rowOp("-", inetType, moveInet(0, 1, -1), inetType, types.Int8)
	rowOp("-", types.Int8, subInet, inetType, inetType)
}

func registerInetCasts() {
	relabel(cidrType, inetType, CastImplicit)
	castFn(inetType, cidrType, CastAssignment, true, inetMap(types.Inet.Network))
	full := castFn(inetType, types.Text, CastAssignment, true, inetText(types.Inet.AppendFull))
	for _, from := range []types.OID{types.OIDInet, types.OIDCIDR} {
		for _, to := range []types.OID{types.OIDText, types.OIDVarchar, types.OIDBPChar} {
			RegisterCast(Cast{From: from, To: to, Context: CastAssignment, Fn: full})
		}
	}
	castFn(macType, mac8Type, CastImplicit, true, map1(types.MAC8FromMAC))
	castFn(mac8Type, macType, CastImplicit, false, try1(func(_ *Eval, v int64) (int64, *pgerror.Error) {
		mac, err := types.MACFromMAC8(v)
		if err != nil {
			return 0, pgerror.As(err)
		}
		return mac, nil
	}))
}

// registerMACs registers the operators of hardware addresses. The inverted bit
// of the form of a macaddr8 is taken out before and put back after.
func registerMACs() {
	for _, t := range []struct {
		typ      types.Type
		all, low int64 // bits: of an address, and those that trunc clears
		sign     int64
	}{{macType, 1<<48 - 1, 1<<24 - 1, 0}, {mac8Type, -1, 1<<40 - 1, types.MAC8Sign}} {
		registerCompare(t.typ, t.typ, Immutable, cmpInt[int64])
		totalOp("~", t.typ, map1(func(v int64) int64 { return ^(v^t.sign)&t.all ^ t.sign }), t.typ)
		totalOp("&", t.typ, map2(func(v, w int64) int64 { return (v^t.sign)&(w^t.sign) ^ t.sign }), t.typ, t.typ)
		totalOp("|", t.typ, map2(func(v, w int64) int64 { return (v ^ t.sign | (w ^ t.sign)) ^ t.sign }), t.typ, t.typ)
		totalFn("trunc", t.typ, map1(func(v int64) int64 { return v &^ t.low }), t.typ)
	}
	totalFn("macaddr8_set7bit", mac8Type, map1(func(v int64) int64 { return v | 2<<56 }), mac8Type)
}

// registerPeers registers the functions that tell of the connection's two ends.
func registerPeers() {
	peer := func(name string, ret types.Type, end func(x *Eval) netip.AddrPort, put func(b *columnar.Builder, a netip.AddrPort)) {
		Register(Function{Name: name, Ret: ret, Volatility: Stable, Consts: ScalarConsts, Eval: func(_ *Call, x *Eval, _ []*columnar.Vec, _ int) *columnar.Vec {
			b := columnar.NewBuilder(ret.Kind(), 1)
			var a netip.AddrPort
			if x.Context != nil {
				a = end(x)
			}
			if a.IsValid() {
				put(b, a)
			} else {
				b.Null()
			}
			return b.Build()
		}})
	}
	addr := func(b *columnar.Builder, a netip.AddrPort) {
		ip := a.Addr()
		x := types.Inet{V6: ip.Is6(), Bits: ip.BitLen()}
		copy(x.Addr[:], ip.AsSlice())
		putInet(b, x)
	}
	port := func(b *columnar.Builder, a netip.AddrPort) { b.Int32(int32(a.Port())) }
	client, server := func(x *Eval) netip.AddrPort { return x.Client }, func(x *Eval) netip.AddrPort { return x.Server }
	peer("inet_client_addr", inetType, client, addr)
	peer("inet_client_port", types.Int4, client, port)
	peer("inet_server_addr", inetType, server, addr)
	peer("inet_server_port", types.Int4, server, port)
}

func init() {
	registerInetParts()
	registerInetOperators()
	registerInetCasts()
	registerMACs()
	registerPeers()
}
