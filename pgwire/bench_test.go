package pgwire

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/streamdb/streamdb/columnar"
)

// rawClient is a client whose own cost is small: it sends ready bytes and
// counts the bytes that come back.
func rawClient(b *testing.B, addr string) (net.Conn, *bufio.Reader) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { nc.Close() })
	fe := pgproto3.NewFrontend(nc, nc)
	fe.Send(&pgproto3.StartupMessage{ProtocolVersion: 196608, Parameters: map[string]string{"user": "joe"}})
	fe.Send(&pgproto3.Parse{Name: "s", Query: "lookup $1", ParameterOIDs: []uint32{20}})
	fe.Send(&pgproto3.Sync{})
	if err := fe.Flush(); err != nil {
		b.Fatal(err)
	}
	for ready := 0; ready < 2; {
		m, err := fe.Receive()
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := m.(*pgproto3.ReadyForQuery); ok {
			ready++
		}
	}
	return nc, bufio.NewReader(nc)
}

// lookupBytes is one prepared point lookup as drivers send it.
func lookupBytes(b *testing.B, syncs bool) []byte {
	var out []byte
	var err error
	for _, m := range []pgproto3.FrontendMessage{
		&pgproto3.Bind{PreparedStatement: "s", ParameterFormatCodes: []int16{1}, Parameters: [][]byte{{0, 0, 0, 0, 0, 0, 0, 42}}, ResultFormatCodes: []int16{1, 0}},
		&pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{}, &pgproto3.Sync{},
	} {
		if _, ok := m.(*pgproto3.Sync); ok && !syncs {
			continue
		}
		if out, err = m.Encode(out); err != nil {
			b.Fatal(err)
		}
	}
	return out
}

// BenchmarkPointLookup is one prepared lookup a round trip, the session free.
func BenchmarkPointLookup(b *testing.B) {
	_, _, addr := startServer(b, Options{})
	nc, br := rawClient(b, addr)
	msg := lookupBytes(b, true)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Write(msg); err != nil {
			b.Fatal(err)
		}
		readReady(b, br)
	}
}

// BenchmarkPointLookupPipelined sends 100 lookups before it reads an answer:
// the cost of the server's own work without the round trip.
func BenchmarkPointLookupPipelined(b *testing.B) {
	_, _, addr := startServer(b, Options{})
	nc, br := rawClient(b, addr)
	var msg []byte
	for i := range 100 {
		msg = append(msg, lookupBytes(b, i == 99)...)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Write(msg); err != nil {
			b.Fatal(err)
		}
		readReady(b, br)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/lookup")
}

// readReady skips messages up to ReadyForQuery.
func readReady(b *testing.B, br *bufio.Reader) {
	for {
		h, err := br.Peek(5)
		if err != nil {
			b.Fatal(err)
		}
		typ, n := h[0], int(h[1])<<24|int(h[2])<<16|int(h[3])<<8|int(h[4])
		if _, err := br.Discard(n + 1); err != nil {
			b.Fatal(err)
		}
		if typ == 'Z' {
			return
		}
	}
}

// BenchmarkRows is the encoding of a result of three columns, without a socket.
func BenchmarkRows(b *testing.B) {
	const n = 10_000
	k, t := columnar.NewBuilder(columnar.KindInt64, n), columnar.NewBuilder(columnar.KindBytes, n)
	for i := range n {
		k.Int64(int64(i) * 1000)
		t.String("some text of a row")
	}
	batch := &columnar.Batch{Cols: []*columnar.Vec{k.Build(), t.Build()}, N: n}
	client, server := net.Pipe()
	defer client.Close()
	s := NewServer(newFakeBackend(), Options{})
	defer s.Close()
	c := newConn(s, server)
	c.w.dst = io.Discard
	c.res.start(false, nil)
	if err := c.res.Begin(lookupColumns); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := c.res.Rows(batch, 0, n); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
	c.cancel(context.Canceled)
}
