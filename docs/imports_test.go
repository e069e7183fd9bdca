package docs_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/streamdb/streamdb/"

type goPackage struct {
	ImportPath string
	Imports    []string
	Doc        string
	GoFiles    []string
}

// packages lists the packages of the module.
func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Doc,GoFiles", "../...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var ps []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			return ps
		} else if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
}

var tableRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|[^|]*\\| ([^|]*) \\|$")

// TestImportsFollowTheTable holds the imports between packages to the table in
// ARCHITECTURE.md.
func TestImportsFollowTheTable(t *testing.T) {
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]string{}
	for _, m := range tableRow.FindAllStringSubmatch(string(text), -1) {
		rules[m[1]] = m[2]
	}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if name == "docs" {
			continue
		}
		rule, ok := rules[name]
		if !ok {
			t.Errorf("package %s has no row in ARCHITECTURE.md's table", name)
			continue
		}
		if rule == "all" || strings.HasPrefix(rule, "everything") {
			continue
		}
		allowed := strings.Split(rule, ", ")
		for _, imp := range p.Imports {
			if x, ours := strings.CutPrefix(imp, module); ours && !slices.Contains(allowed, x) {
				t.Errorf("package %s imports %s, which ARCHITECTURE.md's table does not allow", name, x)
			}
		}
	}
}

// TestPackageComments wants one package comment in each package.
func TestPackageComments(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("package %s has no package comment", p.ImportPath)
		}
	}
}

// TestOnlyTheirPackages keeps libraries in the one place that knows them.
func TestOnlyTheirPackages(t *testing.T) {
	homes := map[string]string{
		"github.com/cockroachdb/pebble":    "storage",
		"github.com/twmb/franz-go":         "sources/kafka",
		"github.com/jackc/pglogrepl":       "sources/postgres",
		"github.com/pganalyze/pg_query_go": "sql/parser,sql/planner,coord",
	}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			for lib, home := range homes {
				if strings.HasPrefix(imp, lib) && !slices.Contains(strings.Split(home, ","), name) {
					t.Errorf("package %s imports %s: only %s may", name, imp, home)
				}
			}
		}
	}
}
