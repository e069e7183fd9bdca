// Package sqllogictest runs test files of SQL statements and queries with
// their expected results against any server that speaks PostgreSQL's wire
// protocol. It knows SQLite's dialect of such files and that of
// sqllogictest-rs. To the runner streamdb and PostgreSQL are the same: it has
// nothing but a connection string.
package sqllogictest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrorMatch says how strictly an expected error is compared.
type ErrorMatch uint8

// The ways to compare errors. Sane takes any error, except that "not
// supported", "syntax error" and "internal error" do not stand in for another
// one that was asked for.
const (
	ErrorSane ErrorMatch = iota
	ErrorAny
	ErrorExact // the expression, the SQLSTATE or the text must match
)

// Isolation says what keeps files apart that run on one server.
type Isolation uint8

// The kinds of isolation. Auto: shared with one worker, else a database each.
const (
	IsolationAuto Isolation = iota
	IsolationShared
	IsolationDatabase
	IsolationSchema
)

// ViewMode says which queries are also checked through a view.
type ViewMode uint8

// The view modes: none, a view made where the query stands, a view made before
// the data that the query sees came in, or both.
const (
	ViewNone   ViewMode = 0
	ViewAfter  ViewMode = 1
	ViewBefore ViewMode = 2
	ViewBoth   ViewMode = ViewAfter | ViewBefore
)

// Rewrite changes the text of a statement before it is sent.
type Rewrite struct {
	From *regexp.Regexp
	To   string
}

// Options are a run's. Paths and one of DSN and Open must be given.
type Options struct {
	// Paths are files, folders, globs, or @LIST: a file that names files.
	Paths []string
	// DSN is the server's connection string.
	DSN string
	// Open starts a server for one file instead; close ends it.
	Open func(ctx context.Context) (dsn string, close func(), err error)
	// Parallel is how many files run at a time; 0 means one.
	Parallel int

	Dialect  Dialect
	Labels   []string // what skipif and onlyif know; nil: postgresql, postgres
	Errors   ErrorMatch
	Lenient  bool    // even out renderings that differ between servers
	FloatEps float64 // relative tolerance of words that are numbers
	Extended bool    // use the extended query protocol
	// Substitute runs `let` and replaces $name under `control substitution on`;
	// else both are skipped.
	Substitute bool

	Timeout    time.Duration // of one record; 0 means 30 s
	SleepScale float64       // factor on sleeps and retry pauses; 0 means 1
	MaxRecords int           // of one file; 0: all
	FailFast   bool
	Include    []string // globs; a file must match one, if there are any
	Exclude    []string // globs; a file must match none
	Parts      bool     // take *.slt.part of folders too
	Strip      string   // prefix to take off shown paths

	Isolation Isolation
	KeepState bool     // do not drop what a file has created
	InitSQL   []string // run at the start of each session; errors are ignored
	Noop      []*regexp.Regexp
	Rewrites  []Rewrite
	// Oracle makes a plain PostgreSQL stand in for a streaming database: views
	// for materialized views, and statements it cannot have are skipped.
	Oracle bool

	// Update rewrites expected results in the files to what the server says.
	Update bool

	AsView    ViewMode
	PlainView bool    // CREATE VIEW instead of CREATE MATERIALIZED VIEW
	Sample    float64 // share of the queries that AsView takes; 0 means all
	Seed      uint64
	// ViewRound is how many queries have views at a time; 0 means 200.
	ViewRound int
	// ViewsOnly runs and counts nothing but the queries that have views.
	ViewsOnly bool
	// ViewBatch is how many statements that change rows, one after another, are
	// one change to the views; 0 means 50.
	ViewBatch int

	// Keep bounds the failures kept of a file; 0 means 50.
	Keep int
	// Progress is told of each file when it is done.
	Progress func(*FileRun)
}

// Failure is one record that did not pass.
type Failure struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Kind     string   `json:"kind"`
	Reason   string   `json:"reason"`
	SQL      string   `json:"sql"`
	Expected []string `json:"expected,omitempty"`
	Actual   []string `json:"actual,omitempty"`
}

// Counts are of records.
type Counts struct {
	Pass            int `json:"pass"`
	Fail            int `json:"fail"`
	Skip            int `json:"skip"`
	ErrorTextDiffer int `json:"error_text_differs"`
	// Views are the checks made through views; they are not among the above,
	// but one that fails makes its record fail.
	Views int `json:"views,omitempty"`
}

func (c *Counts) add(d Counts) {
	c.Pass += d.Pass
	c.Fail += d.Fail
	c.Skip += d.Skip
	c.ErrorTextDiffer += d.ErrorTextDiffer
	c.Views += d.Views
}

// FileCounts are the outcome of one file, which may have been included.
type FileCounts struct {
	Counts
	Failures []Failure `json:"failures"`
}

// FileRun is the outcome of one script with all that it includes.
type FileRun struct {
	Path    string // as shown
	Files   map[string]*FileCounts
	Seconds float64
	Left    []string // objects that could not be dropped
	Fatal   error    // it could not be run
	Updated []string // files rewritten
	version string
}

// Total sums the files of a run.
func (f *FileRun) Total() Counts {
	var c Counts
	for _, x := range f.Files {
		c.add(x.Counts)
	}
	return c
}

// Summary is the outcome of a whole run.
type Summary struct {
	Server  string
	Started time.Time
	Seconds float64
	Total   Counts
	Runs    []*FileRun             // by path
	Files   map[string]*FileCounts // included files summed over their runs
}

// Fatal are the scripts that could not be run.
func (s *Summary) Fatal() []*FileRun {
	var out []*FileRun
	for _, r := range s.Runs {
		if r.Fatal != nil {
			out = append(out, r)
		}
	}
	return out
}

func (o *Options) defaults() error {
	if o.DSN == "" && o.Open == nil {
		return errors.New("sqllogictest: no server: neither a connection string nor a way to start one")
	}
	if o.Parallel <= 0 {
		o.Parallel = 1
	}
	if o.Labels == nil {
		o.Labels = []string{"postgresql", "postgres"}
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.SleepScale == 0 {
		o.SleepScale = 1
	}
	if o.Sample == 0 {
		o.Sample = 1
	}
	if o.ViewRound <= 0 {
		o.ViewRound = 200
	}
	if o.ViewBatch <= 0 {
		o.ViewBatch = 50
	}
	if o.Keep <= 0 {
		o.Keep = 50
	}
	if o.Oracle {
		o.Rewrites = append(slices.Clone(oracleRewrites), o.Rewrites...)
		o.Noop = append(slices.Clone(oracleNoops), o.Noop...)
		o.PlainView = true
	}
	switch {
	case o.ViewsOnly && o.AsView == ViewNone:
		return errors.New("sqllogictest: no views are asked for, and nothing else")
	case o.Open != nil && o.DSN == "":
		o.Isolation, o.KeepState = IsolationShared, o.KeepState || o.AsView == ViewNone // a server of its own
	case o.Isolation == IsolationAuto && o.Parallel > 1:
		o.Isolation = IsolationDatabase
	case o.Isolation == IsolationAuto:
		o.Isolation = IsolationShared
	case o.Isolation == IsolationShared && o.Parallel > 1:
		return errors.New("sqllogictest: files that share a database cannot run in parallel: they use the same names")
	}
	return nil
}

// Run runs all files. The error says why there was nothing to run; failures
// are in the summary.
func Run(ctx context.Context, o Options) (*Summary, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	scripts, err := findScripts(&o)
	if err != nil {
		return nil, err
	}
	s := &Summary{Started: time.Now(), Files: map[string]*FileCounts{}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs := make(chan script)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range min(o.Parallel, len(scripts)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			w := &worker{opt: &o, n: i + 1}
			defer w.close()
			for job := range jobs {
				run := w.run(ctx, job)
				mu.Lock()
				s.add(run, o.Keep)
				if o.Progress != nil {
					o.Progress(run)
				}
				if o.FailFast && (run.Fatal != nil || run.Total().Fail > 0) {
					cancel()
				}
				mu.Unlock()
			}
		}()
	}
	for _, job := range scripts {
		select {
		case jobs <- job:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(jobs)
	wg.Wait()
	slices.SortFunc(s.Runs, func(a, b *FileRun) int { return strings.Compare(a.Path, b.Path) })
	s.Seconds = time.Since(s.Started).Seconds()
	return s, nil
}

func (s *Summary) add(r *FileRun, keep int) {
	s.Runs = append(s.Runs, r)
	if r.version != "" {
		s.Server = r.version
	}
	for name, c := range r.Files {
		f := s.Files[name]
		if f == nil {
			f = &FileCounts{}
			s.Files[name] = f
		}
		f.Counts.add(c.Counts)
		f.Failures = append(f.Failures, c.Failures...)
		f.Failures = f.Failures[:min(len(f.Failures), keep)]
		s.Total.add(c.Counts)
	}
}

// worker runs scripts one after another, in a database or schema of its own.
type worker struct {
	opt   *Options
	n     int
	dsn   string
	name  string // of its database or schema
	ready bool
}

func (w *worker) run(ctx context.Context, job script) *FileRun {
	run := &FileRun{Path: job.shown, Files: map[string]*FileCounts{}}
	start := time.Now()
	defer func() { run.Seconds = time.Since(start).Seconds() }()
	dsn := w.opt.DSN
	if dsn == "" {
		d, stop, err := w.opt.Open(ctx)
		if err != nil {
			run.Fatal = fmt.Errorf("cannot start a server: %w", err)
			return run
		}
		defer stop()
		dsn = d
	} else if err := w.prepare(ctx); err != nil {
		run.Fatal = err
		return run
	} else if w.dsn != "" {
		dsn = w.dsn
	}
	f := newFileRunner(ctx, w.opt, job, dsn, run)
	if w.opt.Isolation == IsolationSchema {
		f.schema = w.name
	}
	f.run()
	return run
}

// prepare makes the worker's database or schema.
func (w *worker) prepare(ctx context.Context) error {
	if w.ready || w.opt.Isolation == IsolationShared {
		return nil
	}
	c, err := dial(ctx, w.opt.DSN)
	if err != nil {
		return fmt.Errorf("cannot connect: %w", err)
	}
	defer c.close()
	w.name = fmt.Sprintf("slt_%s_%d", runID(), w.n)
	if w.opt.Isolation == IsolationSchema {
		if err := c.exec(`CREATE SCHEMA "`+w.name+`"`, w.opt.Timeout); err != nil {
			return fmt.Errorf("cannot make a schema: %w", err)
		}
	} else {
		if err := c.exec(`CREATE DATABASE "`+w.name+`"`, 2*time.Minute); err != nil {
			return fmt.Errorf("cannot make a database: %w", err)
		}
		if w.dsn, err = withDatabase(w.opt.DSN, w.name); err != nil {
			return err
		}
	}
	w.ready = true
	return nil
}

func (w *worker) close() {
	if !w.ready {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := dial(ctx, w.opt.DSN)
	if err != nil {
		return
	}
	defer c.close()
	sql := `DROP DATABASE IF EXISTS "` + w.name + `"`
	if w.opt.Isolation == IsolationSchema {
		sql = `DROP SCHEMA IF EXISTS "` + w.name + `" CASCADE`
	}
	for range 10 { // sessions that were just closed may still hold it
		if c.exec(sql, time.Minute) == nil {
			return
		}
		runtime.Gosched()
		time.Sleep(300 * time.Millisecond)
	}
}
