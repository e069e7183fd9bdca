package textsearch

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// TestDepth reads queries that are nested as deep as can be, and deeper.
func TestDepth(t *testing.T) {
	const code = pgerror.StatementTooComplex
	nots := func(n int) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(n+1))
		for range n {
			b = append(b, kindOperator, byte(OpNot))
		}
		return append(b, kindValue, 0, 0, 'a', 0)
	}
	ok := func(string) error { return nil }
	if _, err := ReadQuery(nil, nots(maxDepth-1), ok); err != nil {
		t.Error(err)
	}
	if _, err := ReadQuery(nil, nots(1<<20), ok); err == nil || pgerror.As(err).Code != code {
		t.Errorf("binary: %v", err)
	}
	for _, s := range []string{strings.Repeat("a & ", 1<<17) + "a", strings.Repeat("(", 1<<20) + "a"} {
		if _, err := ParseQuery(nil, s); err == nil || pgerror.As(err).Code != code {
			t.Errorf("%.20s…: %.80v", s, err)
		}
	}
	q, err := ParseQuery(nil, strings.Repeat("a & ", 1000)+"a")
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadQuery(nil, q, ok)
	if err != nil || string(again) != string(q) {
		t.Errorf("binary form of a long query: %v", err)
	}
}
