package loadgen

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/types"
)

func datagenTable(t *testing.T, cols string) *sources.Table {
	t.Helper()
	out := &sources.Table{}
	for _, c := range strings.Split(cols, ", ") {
		name, typ, _ := strings.Cut(c, " ")
		ct, ok := types.ParseName(typ)
		if !ok {
			t.Fatal(typ)
		}
		out.Columns = append(out.Columns, sources.Column{Name: name, Type: ct})
	}
	return out
}

// rowsOf are the rows of a chunk as text.
func rowsOf(s *Source, from, to int64) []string {
	ch := s.Generate(from, to)[0]
	var out []string
	for i := range ch.Rows.N {
		var row []byte
		for c, v := range ch.Rows.Cols {
			if c > 0 {
				row = append(row, '|')
			}
			row = types.AppendText(row, s.Tables()[0].Columns[c].Type, v, i, nil)
		}
		out = append(out, string(row))
	}
	return out
}

// TestDatagen checks the values of sequences, that random values are in their ranges and
// the same each time, and that a source ends with its shortest sequence.
func TestDatagen(t *testing.T) {
	table := datagenTable(t, "a int4, b float8, c numeric, d int4[], e text, f timestamp, g bool, h int8, i int2, j timestamptz")
	s, err := New("datagen", map[string]string{
		"fields.a.kind": "sequence", "fields.a.start": "5", "fields.a.end": "10",
		"fields.b.kind": "sequence", "fields.b.start": "1.5", "fields.b.end": "100",
		"fields.c.kind": "sequence", "fields.c.start": "2.25", "fields.c.end": "1000",
		"fields.d.length": "3", "fields.d._.kind": "sequence", "fields.d._.start": "1", "fields.d._.end": "1000",
		"fields.e.length": "7", "fields.f.max_past": "1h", "fields.f.basetime": "2024-05-01 12:00:00+00", "fields.f.seed": "3",
		"fields.h.min": "-20", "fields.h.max": "20", "fields.i.kind": "random", "fields.j.max_past_mode": "relative", "fields.j.max_past": "2 days",
		"datagen.rows.per.second": "100",
	}, table)
	if err != nil {
		t.Fatal(err)
	}
	if s.events != 6 || s.rate != 100 {
		t.Errorf("events %d, rate %g", s.events, s.rate)
	}
	all, parts := rowsOf(s, 0, 200), append(rowsOf(s, 0, 77), rowsOf(s, 77, 200)...)
	seen := map[string]bool{}
	for n, row := range all {
		f, g := strings.Split(row, "|"), strings.Split(parts[n], "|")
		if strings.Join(f[:9], "|") != strings.Join(g[:9], "|") {
			t.Errorf("row %d: %s, then %s", n, row, parts[n])
		}
		if want := fmt.Sprintf("%d|%g|%g|{%d,%d,%d}", 5+n, 1.5+float64(n), 2.25+float64(n), 3*n+1, 3*n+2, 3*n+3); strings.Join(f[:4], "|") != want {
			t.Errorf("row %d: %s, want %s", n, row, want)
		}
		at, err := time.Parse("2006-01-02 15:04:05.999999", f[5])
		if base := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC); err != nil || at.After(base) || base.Sub(at) > time.Hour {
			t.Errorf("row %d: time %s", n, f[5])
		}
		j, err := time.Parse("2006-01-02 15:04:05.999999-07", f[9])
		if d := time.Since(j); err != nil || d < 0 || d > 49*time.Hour {
			t.Errorf("row %d: time %s", n, f[9])
		}
		var h, i int
		if _, err := fmt.Sscan(f[7], &h); err != nil || h < -20 || h > 20 {
			t.Errorf("row %d: %s", n, f[7])
		}
		if _, err := fmt.Sscan(f[8], &i); err != nil || i < 0 || i > 32767 {
			t.Errorf("row %d: %s", n, f[8])
		}
		if len(f[4]) != 7 || f[6] != "t" && f[6] != "f" {
			t.Errorf("row %d: %s", n, row)
		}
		seen[f[4]] = true
	}
	if len(seen) < 190 {
		t.Errorf("%d different texts of 200", len(seen))
	}
	for _, bad := range []map[string]string{
		{"fields.a.kind": "x"}, {"fields.a.mix": "1"}, {"fields.z.min": "1"}, {"fields.a.min": "5", "fields.a.max": "1"}, {"fields.i.max": "40000"},
		{"fields.e.kind": "sequence"}, {"fields.f.max_past": "x"}, {"rows": "1"}, {"datagen.rows.per.second": "x"}, {"fields.e.length": "-1"},
	} {
		if _, err := New("datagen", bad, table); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
	if _, err := New("datagen", nil, nil); err == nil {
		t.Error("no columns: no error")
	}
	if _, err := New("datagen", nil, datagenTable(t, "a date")); err == nil {
		t.Error("dates: no error")
	}
}

// TestAuction checks that the auction house is whole: what refers to something finds it,
// and parts of the stream make the same rows as the whole.
func TestAuction(t *testing.T) {
	s, err := New("auction", map[string]string{"tick interval": "500ms", "seed": "7"}, nil)
	if err != nil || s.rate != 2 {
		t.Fatal(err, s)
	}
	s.gen.(*auction).now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	rows := func(bounds ...int64) (out [5][]string) {
		for i := range len(bounds) - 1 {
			for _, ch := range s.Generate(bounds[i], bounds[i+1]) {
				for r := range ch.Rows.N {
					var row []byte
					for c, v := range ch.Rows.Cols {
						row = types.AppendText(append(row, '|'), auctionTables[ch.Table].Columns[c].Type, v, r, nil)
					}
					out[ch.Table] = append(out[ch.Table], string(row))
				}
			}
		}
		return out
	}
	whole, parts := rows(0, 111), rows(0, 1, 5, 60, 111)
	if fmt.Sprint(whole) != fmt.Sprint(parts) {
		t.Errorf("the parts differ: %v, %v", whole, parts)
	}
	for i, want := range []int{auctionOrgs, auctionPeople, auctionOrgs, 10, 100} {
		if len(whole[i]) != want {
			t.Errorf("%s: %d rows, want %d", auctionTables[i].Name, len(whole[i]), want)
		}
	}
	if !strings.HasPrefix(whole[auctionBids][99], "|100|") || !strings.Contains(whole[auctionBids][99], "|10|") || !strings.HasPrefix(whole[auctionAuctions][9], "|10|") {
		t.Errorf("the last bid and auction: %s, %s", whole[auctionBids][99], whole[auctionAuctions][9])
	}
}
