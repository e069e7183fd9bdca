package sqllogictest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

func dump(r *record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d %s", filepath.Base(r.file.shown), r.line, r.kind)
	for _, c := range r.conds {
		fmt.Fprintf(&b, " if(%v %s)", c.onlyIf, c.label)
	}
	for _, f := range []struct {
		name string
		v    any
		show bool
	}{
		{"conn", r.conn, r.conn != ""}, {"types", r.types, r.types != ""}, {"sort", r.sort, r.sort != 0}, {"label", r.label, r.label != ""},
		{"count", r.count, r.count >= 0}, {"tries", fmt.Sprint(r.tries, "/", r.backoff), r.tries > 1}, {"pause", r.pause, r.pause > 0},
		{"args", r.args, r.args != nil}, {"arg", r.arg, r.arg != ""},
		{"error", fmt.Sprintf("%q %q %q", r.errCode, r.errRegex, r.errText), r.wantError},
	} {
		if f.show {
			fmt.Fprintf(&b, " %s=%v", f.name, f.v)
		}
	}
	if r.sql != "" {
		fmt.Fprintf(&b, "\n  sql %q", r.sql)
	}
	if r.hasResult && !r.wantError {
		fmt.Fprintf(&b, "\n  expect %q", r.expect)
	}
	return b.String() + "\n"
}

func TestParse(t *testing.T) {
	for _, f := range []string{"classic.test", "rs.slt"} {
		path := filepath.Join("testdata/parse", f)
		records, err := parseFile(path, path, DialectAuto)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, r := range records {
			b.WriteString(dump(r))
		}
		golden(t, path+".golden", b.String())
	}
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{"statement count x\nSELECT 1\n", "statement count\n", "connection\n", "include\n", "hash-threshold many\n",
		"query I retry x backoff 1s\nSELECT 1\n", "sleep long\n"} {
		path := filepath.Join(t.TempDir(), "x.slt")
		if err := os.WriteFile(path, []byte("statement ok\nSELECT 1\n\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
		records, err := parseFile(path, path, DialectAuto)
		if err == nil || len(records) != 1 {
			t.Errorf("%q: %d records, error %v", text, len(records), err)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{"5s": 5 * time.Second, "500ms": 500 * time.Millisecond, "1m 30s": 90 * time.Second,
		"1.5s": 1500 * time.Millisecond, "2": 2 * time.Second, "1h": time.Hour, "3 parsecs": 3 * time.Second} {
		if got, err := parseDuration(s); err != nil || got != want {
			t.Errorf("%q: %v %v", s, got, err)
		}
	}
}

func TestSQLiteValue(t *testing.T) {
	for _, c := range []struct {
		v      string
		letter byte
		oid    uint32
		want   string
	}{
		{"7", 'I', 23, "7"}, {"-0", 'I', 23, "0"}, {"7.9", 'I', 1700, "7"}, {"-7.9", 'I', 1700, "-7"}, {"-0.5", 'I', 1700, "0"},
		{"1e3", 'I', 701, "1000"}, {"1.25e1", 'I', 701, "12"}, {"1e-3", 'I', 701, "0"}, {".5e1", 'I', 25, "5"}, {"12abc", 'I', 25, "12"},
		{"abc", 'I', 25, "0"}, {"", 'I', 25, "0"}, {"t", 'I', oidBool, "1"}, {"f", 'I', oidBool, "0"}, {"t", 'I', 25, "0"},
		{"12345678901234567890123", 'I', 1700, "12345678901234567890123"}, {"1e22", 'I', 1700, "10000000000000000000000"},
		{"0001.5", 'I', 25, "1"}, {"+3.2", 'I', 25, "3"}, {"1e99999999999", 'I', 25, "0"},
		{"1", 'R', 23, "1.000"}, {"-0.0004", 'R', 701, "-0.000"}, {"2.0005", 'R', 1700, "2.001"}, {"NaN", 'R', 701, "nan"},
		{"Infinity", 'R', 701, "inf"}, {"-Infinity", 'R', 701, "-inf"}, {"1.5x", 'R', 25, "1.500"}, {"x", 'R', 25, "0.000"},
		{"0x10", 'R', 25, "0.000"}, {"t", 'R', oidBool, "1.000"}, {"f", 'R', oidBool, "0.000"},
		{"", 'T', 25, "(empty)"}, {"a\tb\x7f", 'T', 25, "a@b@"}, {"é", 'T', 25, "@@"}, {"a b", 'T', 25, "a b"},
	} {
		if got := sqliteValue([]byte(c.v), false, c.letter, c.oid); got != c.want {
			t.Errorf("%q as %c: %q, want %q", c.v, c.letter, got, c.want)
		}
	}
	if sqliteValue(nil, true, 'I', 23) != "NULL" || rsValue(nil, true) != "NULL" || rsValue(nil, false) != "(empty)" {
		t.Error("NULL or empty")
	}
}

func TestSqueeze(t *testing.T) {
	for in, want := range map[string]string{"": "", " ": "", "a": "a", " a  b ": "a b", "a\tb": "a b", "a b ": "a b", "a\u00a0 b": "a b", "é  é": "é é"} {
		if got := squeeze(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestCanon(t *testing.T) {
	for in, want := range map[string]string{
		"1.500 2":                    "1.5 2",
		"1.0":                        "1",
		"-0.0":                       "0",
		"3.14159265358979":           "3.14159265359",
		"1e3 1.5e-7":                 "1000 0.00000015",
		"1e40":                       "1e+40",
		"v1.50 1.2.3 a1.0":           "v1.50 1.2.3 a1.0",
		"10:00:00.100+00:00":         "10:00:00.1+00",
		"2020-01-01 10:00:00.000":    "2020-01-01 10:00:00",
		"10:00:00-05:30":             "10:00:00-05:30",
		"10:00:00.50:1":              "10:00:00.50:1",
		`x {"b": 1, "a": [1.50, 2]}`: `x {"a":[1.5,2],"b":1}`,
		`{"a": 1.0} {"a": 1}`:        `{"a":1.0} {"a":1}`,
		`{"broken {"a":1}`:           `{"broken {"a":1}`,
	} {
		if got := canon(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestGlobRegexp(t *testing.T) {
	for _, c := range []struct {
		glob, path string
		want       bool
	}{
		{"*.slt", "a.slt", true}, {"*.slt", "a/b.slt", false}, {"**/*.slt", "a/b/c.slt", true}, {"**/*.slt", "c.slt", true},
		{"a/**", "a/b/c", true}, {"a?c", "abc", true}, {"[ab]x", "bx", true}, {"[!ab]x", "bx", false}, {"a.b", "axb", false},
	} {
		rx, err := globRegexp(c.glob)
		if err != nil || rx.MatchString(c.path) != c.want {
			t.Errorf("%s on %s: %v", c.glob, c.path, err)
		}
	}
}

func TestDiff(t *testing.T) {
	got := strings.Join(diff([]string{"a", "b", "c", "d"}, []string{"a", "x", "d"}), "\n")
	if want := "  (1 equal)\n- b\n- c\n+ x\n  (1 equal)"; got != want {
		t.Error(got)
	}
}

func TestWithDatabase(t *testing.T) {
	for in, want := range map[string]string{
		"postgres://u@h:1/db?sslmode=disable": "postgres://u@h:1/new?sslmode=disable",
		"postgres://u@h?dbname=x":             "postgres://u@h/new",
		"host=h dbname=x":                     "host=h dbname=x dbname=new",
	} {
		if got, err := withDatabase(in, "new"); err != nil || got != want {
			t.Errorf("%s: %s %v", in, got, err)
		}
	}
}
