package coord_test

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/streamdb/streamdb/coord"
	"github.com/streamdb/streamdb/sqllogictest"
)

// planLimit is how long the planner may take for any query.
const planLimit = 100 * time.Millisecond

// planTimes are the planning times of queries.
type planTimes struct {
	mu   sync.Mutex
	all  []planTime
	n    int
	sum  time.Duration
	slow time.Duration // what is noted
}

type planTime struct {
	sql  string
	took time.Duration
}

// measure is a coord.Options.Planning. What seems slow is planned again, since
// other processes may have had the processor.
func (p *planTimes) measure(sql string, plan func() error) error {
	begun := time.Now()
	err := plan()
	took := time.Since(begun)
	for range 4 {
		if took < planLimit/2 {
			break
		}
		begun := time.Now()
		_ = plan()
		took = min(took, time.Since(begun))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	p.sum += took
	if took >= p.slow {
		p.all = append(p.all, planTime{sql, took})
	}
	return err
}

// BenchmarkPlanSuites runs the public suites, where they are, and measures the
// planner on each query: the joins of most tables; with STREAMDB_SUITES (where they
// are), all of them. It reports the time of the slowest query and how many there are
// beyond planLimit; -v names the slowest.
func BenchmarkPlanSuites(b *testing.B) {
	root, all := os.LookupEnv("STREAMDB_SUITES")
	if !all {
		root = "../../shared/suites"
	}
	if _, err := os.Stat(filepath.Join(root, "sqlite")); err != nil {
		b.Skip("the suites are not here")
	}
	for b.Loop() {
		times := &planTimes{slow: 10 * time.Millisecond}
		times.suites(b, root, all)
		slices.SortFunc(times.all, func(a, b planTime) int { return cmp.Compare(b.took, a.took) })
		beyond := 0
		for i, p := range times.all {
			if p.took > planLimit {
				beyond++
			}
			if p.took > planLimit || i < 3 {
				b.Logf("%v: %.300s", p.took, p.sql)
			}
		}
		if times.n == 0 {
			b.Fatal("nothing was planned")
		}
		b.ReportMetric(float64(times.n), "queries")
		b.ReportMetric(float64(beyond), "beyond-limit")
		b.ReportMetric(float64(times.sum.Microseconds())/float64(times.n), "µs/query")
		if len(times.all) > 0 {
			b.ReportMetric(float64(times.all[0].took.Microseconds())/1e3, "max-ms")
		}
	}
}

// suites runs the suites under root, or the joins of most tables there.
func (p *planTimes) suites(b *testing.B, root string, all bool) {
	d := openWith(b, b.TempDir(), coord.Options{Planning: p.measure})
	defer d.close()
	o := sqllogictest.Options{DSN: "postgres://t@" + d.addr + "/streamdb?sslmode=disable", Isolation: sqllogictest.IsolationSchema,
		Labels: []string{"postgresql", "postgres"}, Timeout: 30 * time.Second, SleepScale: 0.01}
	o.Paths = []string{filepath.Join(root, "sqlite"), "@" + filepath.Join(root, "risingwave", "ENTRIES")}
	if !all {
		o.Include = []string{"**/select5.test", "e2e_test/tpch/**", "e2e_test/nexmark/**"}
	}
	if _, err := sqllogictest.Run(context.Background(), o); err != nil {
		b.Fatal(err)
	}
}
