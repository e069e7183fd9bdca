package pgwire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"
	"time"
)

// FuzzReader: whatever comes, messages are cut the same whether the bytes come
// at once or one by one, within the limits, and their bodies are the input's.
func FuzzReader(f *testing.F) {
	f.Add([]byte("Q\x00\x00\x00\x0dselect 1\x00S\x00\x00\x00\x04"))
	f.Add([]byte("D\x00\x00\x00\x05S\x00"))
	f.Add([]byte("Q\x00\x00\x00\x03"))
	f.Add([]byte("d\x00\x00\x10\x04"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 10
		a, b := newReader(bytes.NewReader(data), limit), newReader(iotest.OneByteReader(bytes.NewReader(data)), limit)
		at := 0
		for {
			ta, ba, ea := a.message()
			tb, bb, eb := b.message()
			if ta != tb || !bytes.Equal(ba, bb) || (ea == nil) != (eb == nil) {
				t.Fatalf("at once %q %q %v; by bytes %q %q %v", ta, ba, ea, tb, bb, eb)
			}
			if ea != nil {
				if ea == io.EOF && at != len(data) {
					t.Fatalf("EOF at %d of %d", at, len(data))
				}
				return
			}
			if len(ba) > limit || data[at] != ta || !bytes.Equal(ba, data[at+5:at+5+len(ba)]) {
				t.Fatalf("message %q of %d bytes at %d", ta, len(ba), at)
			}
			at += 5 + len(ba)
		}
	})
}

// FuzzConn: no bytes of a client make a connection panic, hang, or miss its end.
func FuzzConn(f *testing.F) {
	start := "\x00\x00\x00\x12\x00\x03\x00\x00user\x00joe\x00\x00"
	f.Add([]byte(start + "Q\x00\x00\x00\x0dselect 1\x00X\x00\x00\x00\x04"))
	f.Add([]byte(start + "P\x00\x00\x00\x14\x00echo $1 $2\x00\x00\x00B\x00\x00\x00\x14\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01a\xff\xff\xff\xffE\x00\x00\x00\x09\x00\x00\x00\x00\x00S\x00\x00\x00\x04"))
	f.Add([]byte(start + "Q\x00\x00\x00\x0bcopyin\x00d\x00\x00\x00\x05xc\x00\x00\x00\x04"))
	f.Add([]byte("\x00\x00\x00\x08\x04\xd2\x16\x2f" + start))
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte("sleep")) || bytes.Contains(data, []byte("wait")) || bytes.Contains(data, []byte("panic")) ||
			bytes.Contains(data, []byte("rows")) || bytes.Contains(data, []byte("copyout")) {
			t.Skip("long by design")
		}
		b := newFakeBackend()
		s := NewServer(b, Options{MaxMessageSize: 1 << 12})
		defer s.Close()
		client, server := net.Pipe()
		s.accept(server)
		heard := make(chan []byte)
		go func() {
			out, _ := io.ReadAll(client)
			heard <- out
		}()
		_ = client.SetWriteDeadline(time.Now().Add(5 * time.Second))
		_, err := client.Write(data)
		if err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Fatalf("the server takes nothing: %v", err)
		}
		client.Close()
		if out := <-heard; bytes.Contains(out, []byte("internal error; the connection")) {
			t.Fatalf("panic: %q", out)
		}
		waitFor(t, "the connection to end", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.conns) == 0
		})
	})
}
