package sqllogictest

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// writeRun prints the outcome of one script and its first failures.
func writeRun(w io.Writer, r *FileRun, show int, quiet bool) {
	if r.Fatal != nil {
		fmt.Fprintf(w, "FATAL %s: %v\n", r.Path, r.Fatal)
	}
	c := r.Total()
	if c.Fail == 0 && quiet {
		return
	}
	head := "ok  "
	if c.Fail > 0 {
		head = "FAIL"
	}
	fmt.Fprintf(w, "%s %s pass=%d fail=%d skip=%d", head, r.Path, c.Pass, c.Fail, c.Skip)
	if c.ErrorTextDiffer > 0 {
		fmt.Fprintf(w, " error_text_differs=%d", c.ErrorTextDiffer)
	}
	if c.Views > 0 {
		fmt.Fprintf(w, " views=%d", c.Views)
	}
	fmt.Fprintf(w, " %.1fs", r.Seconds)
	if len(r.Left) > 0 {
		fmt.Fprintf(w, " LEFTOVERS %s", strings.Join(r.Left, ", "))
	}
	fmt.Fprintln(w)
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		for _, f := range r.Files[name].Failures {
			if show--; show < 0 {
				return
			}
			writeFailure(w, f)
		}
	}
}

func writeFailure(w io.Writer, f Failure) {
	fmt.Fprintf(w, "    %s:%d %s: %s\n", f.File, f.Line, f.Kind, f.Reason)
	fmt.Fprintf(w, "      sql: %s\n", cut(strings.Join(strings.Fields(f.SQL), " "), 200))
	for _, line := range diff(f.Expected, f.Actual) {
		fmt.Fprintf(w, "      %s\n", line)
	}
}

// diff shows two short lists of lines, common ends left out.
func diff(want, got []string) []string {
	if got == nil {
		var out []string
		for _, l := range want {
			out = append(out, "- "+l)
		}
		return out
	}
	head := 0
	for head < min(len(want), len(got)) && want[head] == got[head] {
		head++
	}
	w, g := want[head:], got[head:]
	tail := 0
	for tail < min(len(w), len(g)) && w[len(w)-1-tail] == g[len(g)-1-tail] {
		tail++
	}
	var out []string
	if head > 0 {
		out = append(out, fmt.Sprintf("  (%d equal)", head))
	}
	for _, l := range w[:len(w)-tail] {
		out = append(out, "- "+l)
	}
	for _, l := range g[:len(g)-tail] {
		out = append(out, "+ "+l)
	}
	if tail > 0 {
		out = append(out, fmt.Sprintf("  (%d equal)", tail))
	}
	return out
}

func writeTotal(w io.Writer, s *Summary) {
	clean := 0
	for _, f := range s.Files {
		if f.Fail == 0 {
			clean++
		}
	}
	fmt.Fprintf(w, "TOTAL scripts=%d files_with_records=%d clean=%d pass=%d fail=%d skip=%d", len(s.Runs), len(s.Files), clean,
		s.Total.Pass, s.Total.Fail, s.Total.Skip)
	if s.Total.Views > 0 {
		fmt.Fprintf(w, " views=%d", s.Total.Views)
	}
	fmt.Fprintf(w, " pass_rate=%.4f%% seconds=%.0f\n", 100*s.passRate(), s.Seconds)
}

func (s *Summary) passRate() float64 {
	if n := s.Total.Pass + s.Total.Fail; n > 0 {
		return float64(s.Total.Pass) / float64(n)
	}
	return 0
}

// WriteJSON writes the whole outcome.
func (s *Summary) WriteJSON(w io.Writer) error {
	type entry struct {
		Entry   string   `json:"entry"`
		Seconds float64  `json:"seconds"`
		Left    []string `json:"leftovers"`
	}
	out := struct {
		Server   string                 `json:"server"`
		Started  int64                  `json:"started"`
		Seconds  float64                `json:"seconds"`
		Total    Counts                 `json:"total"`
		PassRate float64                `json:"pass_rate"`
		Fatal    []string               `json:"fatal"`
		Entries  []entry                `json:"entries"`
		Files    map[string]*FileCounts `json:"files"`
	}{s.Server, s.Started.Unix(), s.Seconds, s.Total, s.passRate(), []string{}, []entry{}, s.Files}
	for _, r := range s.Runs {
		if r.Fatal != nil {
			out.Fatal = append(out.Fatal, r.Path+": "+r.Fatal.Error())
		}
		out.Entries = append(out.Entries, entry{r.Path, r.Seconds, append([]string{}, r.Left...)})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(out)
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string      `xml:"name,attr"`
	Class   string      `xml:"classname,attr"`
	Failure *junitError `xml:"failure,omitempty"`
	Error   *junitError `xml:"error,omitempty"`
}

type junitError struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the outcome as JUnit XML: a suite a file, with a test case
// for each failure that was kept and one for all the records that passed.
func (s *Summary) WriteJUnit(w io.Writer) error {
	all := junitSuites{Failures: s.Total.Fail, Time: fmt.Sprintf("%.1f", s.Seconds)}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		f := s.Files[name]
		suite := junitSuite{Name: name, Tests: f.Pass + f.Fail + f.Skip, Failures: f.Fail, Skipped: f.Skip}
		suite.Cases = append(suite.Cases, junitCase{Name: fmt.Sprintf("%d records passed", f.Pass), Class: name})
		for _, x := range f.Failures {
			var b strings.Builder
			writeFailure(&b, x)
			suite.Cases = append(suite.Cases, junitCase{Name: fmt.Sprintf("line %d", x.Line), Class: name,
				Failure: &junitError{clean(x.Reason), clean(b.String())}})
		}
		all.Tests += suite.Tests
		all.Suites = append(all.Suites, suite)
	}
	for _, r := range s.Fatal() {
		all.Errors++
		all.Suites = append(all.Suites, junitSuite{Name: r.Path, Tests: 1, Errors: 1, Cases: []junitCase{{Name: "script", Class: r.Path,
			Error: &junitError{"could not be run", clean(r.Fatal.Error())}}}})
	}
	b := bufio.NewWriter(w)
	if _, err := b.WriteString(xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(b)
	e.Indent("", " ")
	if err := e.Encode(all); err != nil {
		return err
	}
	return b.Flush()
}

// clean replaces what XML cannot hold.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
