package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSuiteAsViews takes a fixed random share of the queries of SQLite's suite,
// where it is (or STREAMDB_SUITES says), as materialized views made before their data and after: they must
// say what the queries say, and the queries what PostgreSQL says.
// STREAMDB_SUITE_SAMPLE and STREAMDB_SUITE_SEED take another share.
func TestSuiteAsViews(t *testing.T) {
	root := os.Getenv("STREAMDB_SUITES")
	if root == "" {
		root = "../../shared/suites"
	}
	failing, err := postgresFails(filepath.Join(root, "PG15.tsv"))
	if err != nil {
		t.Skip("the suites are not here")
	}
	sample, seed := os.Getenv("STREAMDB_SUITE_SAMPLE"), os.Getenv("STREAMDB_SUITE_SEED")
	if sample == "" {
		sample = "5%"
		if testing.Short() {
			sample = "0.1%"
		}
	}
	if seed == "" {
		seed = "1"
	}
	report := filepath.Join(t.TempDir(), "report.json")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "slt", "-jobs", "2", "-as-view", "both", "-views-only", "-sample", sample, "-seed", seed,
		"-view-round", "600", "-timeout", "2m", "-strip", root+"/", "-quiet", "-json", report, filepath.Join(root, "sqlite")).CombinedOutput()
	data, readErr := os.ReadFile(report)
	if readErr != nil {
		t.Fatalf("no report: %v\n%s", err, out)
	}
	var got struct {
		Total struct{ Pass, Fail, Views int }
		Fatal []string
		Files map[string]struct {
			Fail     int
			Failures []struct {
				Line             int
				Reason, SQL      string
				Expected, Actual []string
			}
		}
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	for _, f := range got.Fatal {
		t.Error(f)
	}
	for name, f := range got.Files {
		if f.Fail != len(f.Failures) {
			t.Errorf("%s: only %d of %d failures are told", name, len(f.Failures), f.Fail)
		}
		for _, x := range f.Failures {
			if strings.Contains(x.Reason, "view") || !slices.Contains(failing[name], x.Line) {
				t.Errorf("%s:%d: %s\n%s\nwant %q\ngot %q", name, x.Line, x.Reason, x.SQL, x.Expected, x.Actual)
			}
		}
	}
	t.Logf("seed %s, %s: %d queries pass, %d fail as on PostgreSQL, %d views", seed, sample, got.Total.Pass, got.Total.Fail, got.Total.Views)
	if got.Total.Views < got.Total.Pass*19/10 {
		t.Errorf("only %d views of %d queries could be made", got.Total.Views, got.Total.Pass)
	}
}

// postgresFails reads which lines of which files fail on PostgreSQL.
func postgresFails(path string) (map[string][]int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string][]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		c := strings.Split(lines.Text(), "\t")
		if len(c) < 6 || c[1] != "plain" {
			continue
		}
		for n := range strings.SplitSeq(c[5], ",") {
			if line, err := strconv.Atoi(n); err == nil {
				out[c[0]] = append(out[c[0]], line)
			}
		}
	}
	return out, lines.Err()
}
