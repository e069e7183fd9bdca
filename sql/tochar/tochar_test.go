package tochar

import (
	"testing"
	"time"

	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/types"
)

// What PostgreSQL 15 makes of these; the tests of package expr compare random
// templates with a server.

func TestDates(t *testing.T) {
	local, err := types.ParseTimestamp("2024-02-29 13:05:09.123456", -1, nil)
	if err != nil {
		t.Fatal(err)
	}
	berlin, err := types.ParseZone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ template, want string }{
		{"FMDay, FMDDth FMMonth YYYY HH12:MI:SS.US a.m. IYYY-IW-ID Q J DDD WW CC RM|Month|DY", "Thursday, 29th February 2024 01:05:09.123456 p.m. 2024-09-4 1 2460370 060 09 21 II  |February |THU"},
		{`"at" HH24\"\x`, `at 13"\x`}, // a backslash quotes only a quote
		{"TZ tz OF TZH:TZM", "CET cet +01 +01:00"},
	} {
		d, err := CompileDates(c.template, false)
		if err != nil {
			t.Errorf("%s: %v", c.template, err)
			continue
		}
		if got := string(d.AppendTimestampTZ(nil, local-types.MicrosPerHour, berlin)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.template, got, c.want)
		}
	}
	d, err := CompileDates("YYYY MM DD HH24:MI:SS.MS DDD", false)
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.AppendInterval(nil, types.Span{Months: -13, Days: 400, Micros: 25*types.MicrosPerHour + 1500000})
	if want := "-0001 -01 400 25:00:01.500 010"; err != nil || string(got) != want {
		t.Errorf("got %q %v, want %q", got, err, want)
	}
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ text, template, want string }{
		{"05 Dec 2000", "DD Mon YYYY", "2000-12-05 00:00:00+00"},
		{"2006-42-4", "IYYY-IW-ID", "2006-10-19 00:00:00+00"},
		{"21 24", "CC YY", "2024-01-01 00:00:00+00"},
		{"15:12:02.020.001230", "HH24:MI:SS.MS.US", "0001-01-01 15:12:02.02123+00 BC"},
		{"2024-02-29 13:05 -05:30", "YYYY-MM-DD HH24:MI TZH:TZM", "2024-02-29 18:35:00+00"},
		{"2023-02-29", "YYYY-MM-DD", `date/time field value out of range: "2023-02-29"`},
		{"x4", "YYYY", `invalid value "x4" for "YYYY"`},
	} {
		d, err := CompileDates(c.template, false)
		if err != nil {
			t.Errorf("%s: %v", c.template, err)
			continue
		}
		r, err := d.Read(c.text)
		var got string
		if err == nil {
			var ts int64
			ts, err = r.TimestampTZ("timestamp", time.UTC)
			got = string(types.AppendTimestampTZ(nil, ts, time.UTC))
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s by %s: got %s, want %s", c.text, c.template, got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ number, template, want string }{
		{"-485.8", "9,999.99PR|", "  <485.80>|"}, {"0.1", "0.9", " 0.1"}, {"0.1", "FM9.9", ".1"}, {"148.5", "FM999.990", "148.500"},
		{"485", "RN", "        CDLXXXV"}, {"485", "FMRN", "CDLXXXV"}, {"485.8", `"Pre:"999" Post:" .999`, "Pre: 485 Post: .800"},
		{"12.45", "99V9", " 125"}, {"0.0004859", "9.99EEEE", " 4.86e-04"}, {"-12", "S99", "-12"}, {"1234", "99", " ##"}, {"485", "999th", " 485th"},
		{"NaN", "999th", `"NaN" is not a number`}, {"1", "9.9.9", "multiple decimal points"},
	} {
		n, err := CompileNumbers(c.template)
		var got []byte
		if err == nil {
			var v []byte
			if v, err = decimal.Parse(nil, c.number); err != nil {
				t.Fatal(err)
			}
			got, err = n.AppendNumeric(nil, v)
		}
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != c.want {
			t.Errorf("%s by %s: got %q, want %q", c.number, c.template, got, c.want)
		}
	}
	for _, c := range []struct{ text, template, want string }{{"12,454.8-", "99G999D9S", "-12454.8"}, {"<34.5>", "99.9PR", "-34.5"}, {"$1,000.50", "L9,999.99", "1000.50"}} {
		n, err := CompileNumbers(c.template)
		if err != nil {
			t.Fatal(err)
		}
		got, err := n.Read(nil, c.text)
		if err != nil || decimal.String(got) != c.want {
			t.Errorf("%s by %s: got %s %v, want %s", c.text, c.template, decimal.String(got), err, c.want)
		}
	}
}

func FuzzTemplates(f *testing.F) {
	f.Add("YYYY-MM-DD HH24:MI:SS", "2024-02-29 12:00:00")
	f.Add("FM9G999D99MI", "-1,234.5")
	f.Add("FXIYYY IDDD\"x\\\"\" TZH", "2024 100x +3")
	f.Fuzz(func(t *testing.T, template, s string) {
		if d, err := CompileDates(template, false); err == nil {
			d.AppendTimestamp(nil, 123456789)
			if r, err := d.Read(s); err == nil {
				_, _ = r.Date(s)
				_, _ = r.TimestampTZ("timestamp", time.UTC)
			}
		}
		if n, err := CompileNumbers(template); err == nil {
			_, _ = n.AppendFloat8(nil, -1234.5678)
			_, _ = n.Read(nil, s)
		}
	})
}
