package expr

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// TestISOLiterals checks that what is taken for the same in all sessions by its form reads
// alike under all of them.
func TestISOLiterals(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	same := 0
	for range 5000 {
		typ, s := types.Of(types.OIDDate), fmt.Sprintf("%04d-%02d-%02d", r.IntN(3000), r.IntN(14), r.IntN(33))
		if r.IntN(2) == 0 {
			typ, s = types.Timestamp, s+fmt.Sprintf(" %02d:%02d:%02d", r.IntN(26), r.IntN(62), r.IntN(62))
		}
		if variesBySession(typ, []byte(s)) {
			continue
		}
		var first *columnar.Vec
		for i, opts := range anySession {
			b := columnar.NewBuilder(typ.Kind(), 1)
			err := parseText(opts, typ.OID, -1, []byte(s), b)
			switch {
			case err != nil && first != nil:
				t.Fatalf("%s is an error in session %d only: %v", s, i, err)
			case err != nil:
			case i == 0:
				first = b.Build()
				same++
			case first == nil || !columnar.EqualAt(b.Build(), 0, first, 0):
				t.Fatalf("%s is another value in session %d", s, i)
			}
		}
	}
	if same == 0 {
		t.Error("nothing was read")
	}
}
