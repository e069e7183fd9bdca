package sqllogictest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// postgres is the connection string of a real PostgreSQL.
func postgres(t testing.TB) string {
	t.Helper()
	dsn := os.Getenv("STREAMDB_TEST_PG_DSN")
	if dsn == "" {
		if os.Getenv("STREAMDB_REQUIRE_ALL") == "1" {
			t.Fatal("STREAMDB_TEST_PG_DSN is not set")
		}
		t.Skip("STREAMDB_TEST_PG_DSN is not set")
	}
	return dsn
}

func runFiles(t testing.TB, o Options) *Summary {
	t.Helper()
	o.DSN = postgres(t)
	if o.Isolation == IsolationAuto {
		o.Isolation = IsolationDatabase
	}
	s, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Fatal() {
		t.Fatal(r.Path, r.Fatal)
	}
	return s
}

func failures(s *Summary) string {
	var b strings.Builder
	for _, r := range s.Runs {
		for name, f := range r.Files {
			for _, x := range f.Failures {
				x.File = filepath.Base(name)
				writeFailure(&b, x)
			}
		}
	}
	return b.String()
}

// Both dialects in all their features pass on PostgreSQL, by either protocol.
func TestFeatures(t *testing.T) {
	for _, extended := range []bool{false, true} {
		s := runFiles(t, Options{Paths: []string{"testdata/run/features.test", "testdata/run/features.slt"}, Substitute: true, Extended: extended})
		if s.Total.Fail != 0 {
			t.Errorf("extended %v:\n%s", extended, failures(s))
		}
		if c := s.Files["testdata/run/features.slt"]; c.Pass != 23 || c.Skip != 2 { // the missing include, system
			t.Errorf("%d passed, %d skipped", c.Pass, c.Skip)
		}
		if c := s.Files["testdata/run/features.test"]; c.Pass != 12 || c.Skip != 2 { // all up to the halt
			t.Errorf("%d passed, %d skipped", c.Pass, c.Skip)
		}
		if c := s.Files["testdata/run/parts/make.slt.part"]; c == nil || c.Pass != 2 {
			t.Errorf("the included file: %+v", c)
		}
		if len(s.Runs[0].Left) > 0 || !strings.Contains(s.Server, ".") {
			t.Errorf("left %v, server %q", s.Runs[0].Left, s.Server)
		}
	}
}

// Failures are told with their places, and do not disturb what follows.
func TestFailures(t *testing.T) {
	s := runFiles(t, Options{Paths: []string{"testdata/run/failing.slt"}, Timeout: 300 * time.Millisecond})
	golden(t, "testdata/run/failing.slt.golden", fmt.Sprintf("%+v\n%s", s.Total, failures(s)))
	s = runFiles(t, Options{Paths: []string{"testdata/run/failing.slt"}, FailFast: true})
	if s.Total.Fail != 1 || s.Total.Pass != 0 {
		t.Errorf("fail-fast: %+v", s.Total)
	}
	s = runFiles(t, Options{Paths: []string{"testdata/run/failing.slt"}, Errors: ErrorExact, MaxRecords: 5})
	if s.Total.Fail != 5 {
		t.Errorf("exact errors: %+v\n%s", s.Total, failures(s))
	}
}

// After an update the files pass, and a second update changes nothing.
func TestUpdate(t *testing.T) {
	for _, name := range []string{"stale.slt", "stale.test"} {
		data, err := os.ReadFile("testdata/run/" + name)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		s := runFiles(t, Options{Paths: []string{path}, Update: true})
		if s.Total.Fail != 0 || !slices.Equal(s.Runs[0].Updated, []string{path}) {
			t.Errorf("%+v, updated %v\n%s", s.Total, s.Runs[0].Updated, failures(s))
		}
		after, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/run/"+name+".golden", string(after))
		s = runFiles(t, Options{Paths: []string{path}, Update: true, Errors: ErrorExact})
		if s.Total.Fail != 0 || len(s.Runs[0].Updated) != 0 {
			t.Errorf("the second time: %+v, updated %v", s.Total, s.Runs[0].Updated)
		}
	}
}

// A plain view agrees with its query. A materialized one of PostgreSQL, made
// before the data, does not: the check must see that.
func TestViews(t *testing.T) {
	paths := []string{"testdata/run/views.slt"}
	s := runFiles(t, Options{Paths: paths, AsView: ViewBoth, PlainView: true})
	if s.Total.Fail != 0 || s.Total.Views != 8 {
		t.Errorf("plain views: %+v\n%s", s.Total, failures(s))
	}
	s = runFiles(t, Options{Paths: paths, AsView: ViewAfter})
	if s.Total.Fail != 0 || s.Total.Views != 4 {
		t.Errorf("materialized views after: %+v\n%s", s.Total, failures(s))
	}
	s = runFiles(t, Options{Paths: paths, AsView: ViewBefore})
	if s.Total.Fail != 3 || !strings.Contains(failures(s), "the view made before differs from the query") {
		t.Errorf("materialized views before: %+v\n%s", s.Total, failures(s))
	}
	s = runFiles(t, Options{Paths: paths, AsView: ViewBoth, PlainView: true, ViewsOnly: true, ViewRound: 1})
	if s.Total != (Counts{Pass: 4, Views: 8}) {
		t.Errorf("views only: %+v\n%s", s.Total, failures(s))
	}
	part := runFiles(t, Options{Paths: paths, AsView: ViewAfter, Sample: 0.5, Seed: 7}).Total.Views
	again := runFiles(t, Options{Paths: paths, AsView: ViewAfter, Sample: 0.5, Seed: 7}).Total.Views
	if part == 0 || part == 4 || part != again {
		t.Errorf("a sample of half took %d, then %d of 4", part, again)
	}
}

func TestParallelAndIsolation(t *testing.T) {
	dir := t.TempDir()
	for i := range 6 {
		text := fmt.Sprintf("statement ok\nCREATE TABLE same(a int)\n\nstatement ok\nINSERT INTO same VALUES (%d)\n\nquery I\nSELECT a FROM same\n----\n%d\n", i, i)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.slt", i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, iso := range []Isolation{IsolationDatabase, IsolationSchema} {
		s := runFiles(t, Options{Paths: []string{dir}, Parallel: 3, Isolation: iso, Exclude: []string{"f5.*"}})
		if s.Total.Pass != 15 || s.Total.Fail != 0 {
			t.Errorf("%+v\n%s", s.Total, failures(s))
		}
	}
	if _, err := Run(t.Context(), Options{Paths: []string{dir}, DSN: "host=x", Parallel: 2, Isolation: IsolationShared}); err == nil {
		t.Error("parallel runs in one database")
	}
}

func TestMainCommand(t *testing.T) {
	dsn := postgres(t)
	dir := t.TempDir()
	jsonPath, junitPath := filepath.Join(dir, "out.json"), filepath.Join(dir, "out.xml")
	run := func(args ...string) (int, string) {
		var out bytes.Buffer
		opened := 0
		code := Main(args, Env{Context: t.Context(), Stdout: &out, Stderr: &out, Open: func(context.Context) (string, func(), error) {
			opened++
			return dsn, func() { opened-- }, nil
		}})
		if opened != 0 {
			t.Errorf("%v: %d servers left open", args, opened)
		}
		return code, out.String()
	}
	if code, out := run("--substitute", "testdata/run/features.slt"); code != exitOK || !strings.Contains(out, "TOTAL scripts=1") {
		t.Errorf("%d %s", code, out)
	}
	code, out := run("--json", jsonPath, "--junit", junitPath, "--timeout", "300ms", "testdata/run/failing.slt")
	if code != exitFailed || !strings.Contains(out, "testdata/run/failing.slt:2 query: wrong result\n      sql: SELECT 2\n      - 1\n      + 2\n") {
		t.Errorf("%d %s", code, out)
	}
	var summary struct {
		Total Counts
		Files map[string]FileCounts
	}
	data, err := os.ReadFile(jsonPath)
	if err != nil || json.Unmarshal(data, &summary) != nil || summary.Total.Fail == 0 || summary.Files["testdata/run/failing.slt"].Failures[0].Line != 2 {
		t.Errorf("%v %s", err, data)
	}
	var suites junitSuites
	data, err = os.ReadFile(junitPath)
	if err != nil || xml.Unmarshal(data, &suites) != nil || suites.Failures != summary.Total.Fail || len(suites.Suites) != 1 {
		t.Errorf("%v %s", err, data)
	}
	for _, args := range [][]string{{}, {"--nope"}, {"testdata/none.slt"}, {"--sample", "2", "x"}, {"--rewrite", "a", "x"}, {"--dialect", "x", "y"},
		{"--dsn", "host=127.0.0.1 port=1 connect_timeout=1", "--isolation", "database", "testdata/run/features.slt"}} {
		if code, out := run(args...); code != exitCannot || out == "" {
			t.Errorf("%v: %d %s", args, code, out)
		}
	}
}

// The public suites, where they are: the same counts as were found before.
func TestSuites(t *testing.T) {
	const root = "../../shared/suites"
	f, err := os.Open(filepath.Join(root, "PG15.tsv"))
	if err != nil {
		t.Skip("the suites are not here")
	}
	defer f.Close()
	want := map[string]string{}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if c := strings.Split(sc.Text(), "\t"); len(c) >= 5 {
			want[c[0]+" "+c[1]] = strings.Join(c[2:5], " ")
		}
	}
	check := func(mode string, o Options) {
		s := runFiles(t, o)
		if len(s.Files) < 3 {
			t.Errorf("only %d files", len(s.Files))
		}
		for name, c := range s.Files {
			if strings.HasPrefix(name, "e2e_test/") {
				name = "risingwave/" + name
			}
			name = strings.TrimPrefix(name, root+"/")
			if got := fmt.Sprintf("%d %d %d", c.Pass, c.Fail, c.Skip); got != want[name+" "+mode] {
				t.Errorf("%s %s: %s, want %s", name, mode, got, want[name+" "+mode])
			}
		}
	}
	check("plain", Options{Paths: []string{root + "/sqlite/test/select1.test", root + "/sqlite/test/select4.test", root + "/sqlite/test/evidence"}})
	rs := []string{"@" + root + "/risingwave/ENTRIES"}
	check("plain", Options{Paths: rs, Include: []string{"e2e_test/batch/basic/**", "e2e_test/batch/order/**", "e2e_test/over_window/**"}, SleepScale: 0.01})
	check("oracle", Options{Paths: rs, Include: []string{"e2e_test/batch/basic/**"}, Oracle: true, Lenient: true, SleepScale: 0.01})
}
