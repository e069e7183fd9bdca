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

// TestPlanTimes runs the public suites, where they are, and measures the planner
// on each query: the joins of most tables; with STREAMDB_SUITES (where they are),
// all of them.
func TestPlanTimes(t *testing.T) {
	root, all := os.LookupEnv("STREAMDB_SUITES")
	if !all {
		root = "../../shared/suites"
	}
	if _, err := os.Stat(filepath.Join(root, "sqlite")); err != nil {
		t.Skip("the suites are not here")
	}
	times := &planTimes{slow: 10 * time.Millisecond}
	d := openWith(t, t.TempDir(), coord.Options{Planning: times.measure})
	defer d.close()
	o := sqllogictest.Options{DSN: "postgres://t@" + d.addr + "/streamdb?sslmode=disable", Isolation: sqllogictest.IsolationSchema,
		Labels: []string{"postgresql", "postgres"}, Timeout: 30 * time.Second, SleepScale: 0.01}
	o.Paths = []string{filepath.Join(root, "sqlite"), "@" + filepath.Join(root, "risingwave", "ENTRIES")}
	if !all {
		o.Include = []string{"**/select5.test", "e2e_test/tpch/**", "e2e_test/nexmark/**"}
	}
	if _, err := sqllogictest.Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(times.all, func(a, b planTime) int { return cmp.Compare(b.took, a.took) })
	t.Logf("%d queries planned in %v; slower than %v: %d", times.n, times.sum, times.slow, len(times.all))
	for i, p := range times.all {
		if p.took > planLimit {
			t.Errorf("the planner takes %v:\n%s", p.took, p.sql)
		} else if i < 3 {
			t.Logf("%v: %.300s", p.took, p.sql)
		}
	}
	if times.n == 0 {
		t.Error("nothing was planned")
	}
}
