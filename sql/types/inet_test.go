package types

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// networks are addresses close to each other.
var networks = []string{
	"0.0.0.0/0", "0.0.0.0", "10.1.2.3", "10.1.2.3/8", "10.1.2.4/8", "10.0.0.0/8", "10.1.2.0/24", "10.1.2.3/24", "10.1.2.3/23", "10.1.2.3/25",
	"10.1.2.128/25", "127.255.255.255", "128.0.0.0/1", "255.255.255.255/32", "255.255.255.255/31", "255.255.255.255/0",
	"::/0", "::", "::1", "::1/0", "::1/127", "::ffff:10.1.2.3", "8000::/1", "7fff::/1", "2001:db8::1/64", "2001:db8::/64", "2001:db8::2/64", "2001:db8::/32",
	"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/9",
}

func TestNetworkInputs(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	octet := []string{"0", "1", "10", "127", "128", "192", "224", "240", "255", "256", "007", "1000", "a", "", "-1", " 1", "0x0a"}
	mask := []string{"", "", "", "/0", "/8", "/9", "/16", "/24", "/31", "/32", "/33", "/08", "/", "/x", "/64", "/128", "/129", "/8 ", "//8", "/255.0.0.0"}
	word := []string{"0", "0", "0", "0000", "1", "ffff", "FFFF", "2001", "db8", "00001", "g", "", "", "1.2.3.4", "::", "1.2", "1.2.3.4.5", "01.2.3.4", "1.2.3.256"}
	var in []string
	for range 6000 {
		var b strings.Builder
		for i := range 1 + r.Intn(5) {
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(octet[r.Intn(min(len(octet), 4+r.Intn(len(octet))))])
		}
		in = append(in, b.String()+pick(r, []string{"", "", "", "", ".", "x"}, mask))
		b.Reset()
		if r.Intn(4) == 0 {
			b.WriteString("::")
		}
		for i := range 1 + r.Intn(9) {
			if i > 0 {
				b.WriteString([]string{":", ":", ":", "::"}[r.Intn(4)])
			}
			b.WriteString(word[r.Intn(min(len(word), 8+r.Intn(len(word))))])
		}
		in = append(in, b.String()+pick(r, []string{"", "", "", "::", ":"}, mask))
		var w [8]string
		for i := range w {
			w[i] = word[r.Intn(9)]
		}
		in = append(in, strings.Join(w[:], ":")+pick(r, mask))
	}
	for range 200 {
		in = append(in, pick(r, []string{"0x", "0X", "0"}, []string{"", "0", "a", "0a", "0a0", "0A01", "c0a80101", "c0a801010", "zz", "ffffff"}, mask))
	}
	in = append(append(in, networks...), "", ":", "::", ":::", "/", "/8", ".", "1", "1.", ".1", "1.2.3.4.", "1.2.3.", "1.2./16", "1/8", "::1.2.3.4", "::ffff:1.2.3.4/96", "::1:1.2.3.4", " ::1", "::1 ", "1.2.3.4\n")
	compareInputs(t, s, Of(OIDInet), nil, in)
	compareInputs(t, s, Of(OIDCIDR), nil, in)
}

func TestMACInputs(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	part := []string{"08", "00", "2b", "FF", "a", "0", "100", "0x1", "0x", "-1", "+8", " 8", "g", "", "8 ", "ffffffff", "100000001", "fffffffffffffffff", "1x"}
	sep := []string{":", "-", ".", "", " "}
	var in []string
	for range 8000 {
		var b strings.Builder
		b.WriteString([]string{"", "", "", " ", "\t"}[r.Intn(5)])
		n, group, sp := []int{6, 6, 6, 8, 8, 5, 7, 9}[r.Intn(8)], 1+r.Intn(4), sep[r.Intn(len(sep))]
		width := 3 + r.Intn(len(part)-2)
		for i := range n {
			switch {
			case i == 0 || i%group != 0:
			case r.Intn(30) == 0:
				b.WriteString(sep[r.Intn(len(sep))])
			default:
				b.WriteString(sp)
			}
			b.WriteString(part[r.Intn(width)])
		}
		b.WriteString([]string{"", "", "", "", " ", "x", "  x", ":", "\n"}[r.Intn(9)])
		in = append(in, b.String())
	}
	in = append(in, "", " ", "08002b010203", "08002b:010203", "08002b-010203", "0800.2b01.0203", "0800-2b01-0203", "08:00:2b:01:02:03", "08002b0102030405", "0800.2b01.0203.0405", "08002b01:02030405", "0800:2b01:0203", "08 00 2b 01 02 03", "8:0:2b:1:2:3")
	compareInputs(t, s, Of(OIDMACAddr), nil, in)
	compareInputs(t, s, Of(OIDMACAddr8), nil, in)
}

// compareBinaryInputs lets PostgreSQL read binary forms, faulty ones too.
func compareBinaryInputs(t *testing.T, s *oracle.Server, typ Type, inputs [][]byte) {
	t.Helper()
	bad := 0
	for _, in := range inputs {
		in = append([]byte{}, in...) // nil would be NULL
		res := s.Conn.PgConn().ExecParams(t.Context(), "SELECT $1", [][]byte{in}, []uint32{uint32(typ.OID)}, []int16{1}, []int16{1}).Read()
		var got, want string
		if e, ok := res.Err.(*pgconn.PgError); ok {
			want = fmt.Sprint(e.Code, e.Message, e.Detail)
		} else if res.Err != nil {
			t.Fatal(res.Err)
		} else {
			want = fmt.Sprintf("%x", res.Rows[0][0])
		}
		b := columnar.NewBuilder(typ.Kind(), 1)
		if err := ParseBinary(b, typ, in); err != nil {
			e := pgerror.As(err)
			got = fmt.Sprint(e.Code, e.Message, e.Detail)
		} else {
			got = fmt.Sprintf("%x", AppendBinary(nil, typ, b.Build(), 0))
		}
		if want = strings.Replace(want, "incorrect binary data format in bind parameter 1", "incorrect binary data format", 1); got != want {
			if bad++; bad <= maxShown {
				t.Errorf("%s %x:\n got %s\nwant %s", typ, in, got, want)
			}
		}
	}
}

func TestNetworkBinaryInputs(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	var in [][]byte
	for range 400 {
		b := []byte{byte(1 + r.Intn(4)), []byte{0, 8, 32, 33, 128, 129, 255, 25}[r.Intn(8)], byte(r.Intn(3)), []byte{0, 4, 4, 16, 16, 17}[r.Intn(6)]}
		addr := make([]byte, []int{0, 3, 4, 4, 5, 15, 16, 16, 17}[r.Intn(9)])
		for i := range addr {
			addr[i] = byte(r.Uint32() & r.Uint32() & r.Uint32())
		}
		b = append(b, addr...)
		in = append(in, b, b[:r.Intn(len(b)+1)])
	}
	for _, o := range []OID{OIDInet, OIDCIDR, OIDMACAddr, OIDMACAddr8} {
		compareBinaryInputs(t, s, Of(o), in)
	}
}
