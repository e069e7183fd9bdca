package sqllogictest

import (
	"errors"
	"io"
	"net"
	"testing"
)

// A reader that is left in the background takes nothing of what comes after the
// connection has been handed over, whether it waits already or comes later.
func TestHandover(t *testing.T) {
	for range 50 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		near, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		h := &handover{Conn: near}
		ended := make(chan error)
		go func() {
			for {
				if _, err := h.Read(make([]byte, 8)); errors.Is(err, net.ErrClosed) {
					ended <- err
					return
				}
			}
		}()
		c, err := h.take()
		if err != nil {
			t.Fatal(err)
		}
		<-ended
		if _, err := far.Write([]byte("answer")); err != nil {
			t.Fatal(err)
		}
		far.Close()
		if got, err := io.ReadAll(c); err != nil || string(got) != "answer" {
			t.Fatalf("read %q, %v", got, err)
		}
		near.Close()
		l.Close()
	}
}
