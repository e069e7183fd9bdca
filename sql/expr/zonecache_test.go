package expr

import (
	"math/rand"
	"testing"
	"time"

	"github.com/streamdb/streamdb/sql/types"
)

func TestZoneCache(t *testing.T) {
	r := rand.New(rand.NewSource(*seed))
	t.Logf("-seed=%d", *seed)
	var z zoneCache
	for _, name := range []string{"America/New_York", "Asia/Kolkata", "Europe/Dublin", "Australia/Lord_Howe", "UTC"} {
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 20000 {
			ts := r.Int63n(1<<61) - 1<<57
			if r.Intn(2) == 0 { // near a change of the offset
				_, end := types.TimestampTZToTime(r.Int63n(1 << 50)).In(loc).ZoneBounds()
				if !end.IsZero() {
					ts = types.TimestampTZFromTime(end) + r.Int63n(3) - 1
				}
			}
			if !types.ValidTimestamp(ts) {
				continue
			}
			if got, want := z.offset(ts, loc), types.ZoneOffset(ts, loc); got != want {
				t.Fatalf("%s at %d: %d, want %d, -seed=%d", name, ts, got, want, *seed)
			}
		}
	}
}
