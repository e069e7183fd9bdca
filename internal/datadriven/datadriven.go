// Package datadriven runs tests that are files: a directive, its input, a line
// of dashes, and the expected output up to an empty line. With -rewrite the
// outputs that a test gives replace those in the file.
package datadriven

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the outputs of datadriven tests into their files")

// Case is one directive of a file.
type Case struct {
	Pos   string // file:line
	Cmd   string // the first word of the directive
	Args  map[string]string
	Input string
	Want  string
}

// Has reports whether the directive has an argument of that name.
func (c *Case) Has(name string) bool {
	_, ok := c.Args[name]
	return ok
}

// Walk runs every file under dir as a subtest. f is called once a file and
// gives the function that runs its cases in order.
func Walk(t *testing.T, dir string, f func(t *testing.T) func(c *Case) string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		name, _ := filepath.Rel(dir, path)
		t.Run(name, func(t *testing.T) { runFile(t, path, f(t)) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files == 0 {
		t.Fatalf("no test files under %s", dir)
	}
}

func runFile(t *testing.T, path string, run func(c *Case) string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	for i := 0; i < len(lines); {
		if l := lines[i]; l == "" || strings.HasPrefix(l, "#") {
			out.WriteString(l + "\n")
			i++
			continue
		}
		start := i
		c := &Case{Pos: fmt.Sprintf("%s:%d", path, i+1)}
		c.Cmd, c.Args = parseDirective(lines[i])
		i++
		var input, want []string
		for i < len(lines) && lines[i] != "----" {
			input = append(input, lines[i])
			i++
		}
		if i == len(lines) {
			t.Fatalf("%s: no ---- after the directive", c.Pos)
		}
		for i++; i < len(lines) && lines[i] != ""; i++ {
			want = append(want, lines[i])
		}
		c.Input, c.Want = strings.Join(input, "\n"), join(want)
		got := strings.TrimRight(run(c), "\n")
		if got != "" {
			got += "\n"
		}
		if got != c.Want && !*rewrite {
			t.Errorf("%s:\n%s\nwant:\n%s\ngot:\n%s", c.Pos, c.Input, c.Want, got)
		}
		out.WriteString(strings.Join(lines[start:start+1+len(input)], "\n") + "\n----\n" + got)
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func join(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// parseDirective reads `cmd arg arg=value …`.
func parseDirective(line string) (string, map[string]string) {
	fields := strings.Fields(line)
	args := map[string]string{}
	for _, f := range fields[1:] {
		k, v, _ := strings.Cut(f, "=")
		args[k] = v
	}
	return fields[0], args
}
