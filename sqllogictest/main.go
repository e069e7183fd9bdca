package sqllogictest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Env is what Main needs of the program around it.
type Env struct {
	Context context.Context // nil: the background
	Stdout  io.Writer
	Stderr  io.Writer
	// Open starts a server for one file where no --dsn is given; nil: a dsn is
	// required.
	Open func(ctx context.Context) (dsn string, close func(), err error)
}

// Exit codes of Main.
const (
	exitOK       = 0
	exitFailed   = 1 // some record failed
	exitCannot   = 2 // the run could not be made
	usageSummary = `usage: streamdb slt [flags] PATH...

Runs sqllogictest files: scripts, folders, globs, or @LIST (a file that lists
scripts). Names ending in .test are in SQLite's dialect, .slt and .slt.part in
that of sqllogictest-rs; a file may be gzipped (NAME.gz).

Exit code: 0 all passed, 1 some record failed, 2 could not run.

`
)

type stringList []string

func (l *stringList) String() string     { return strings.Join(*l, ", ") }
func (l *stringList) Set(s string) error { *l = append(*l, s); return nil }

// choice is a flag that takes one of some names.
type choice[T any] struct {
	to    *T
	names map[string]T
	value string
}

func (c *choice[T]) String() string { return c.value }
func (c *choice[T]) Set(s string) error {
	v, ok := c.names[s]
	if !ok {
		return errors.New("not one of the choices")
	}
	*c.to, c.value = v, s
	return nil
}

// outputs are where a run's outcome goes besides standard output.
type outputs struct {
	json, junit string
	show        int
	quiet       bool
}

// Main is the command `slt`: it parses its arguments, runs, prints, and gives
// the exit code.
func Main(args []string, env Env) int {
	ctx := env.Context
	if ctx == nil {
		ctx = context.Background()
	}
	o, out, err := parseFlags(args, env)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(env.Stderr, "slt: %v\nRun `streamdb slt --help` for the flags.\n", err)
		return exitCannot
	}
	o.Progress = func(r *FileRun) { writeRun(env.Stdout, r, out.show, out.quiet) }
	s, err := Run(ctx, o)
	if err != nil {
		fmt.Fprintln(env.Stderr, "slt:", strings.TrimPrefix(err.Error(), "sqllogictest: "))
		return exitCannot
	}
	writeTotal(env.Stdout, s)
	for path, write := range map[string]func(io.Writer) error{out.json: s.WriteJSON, out.junit: s.WriteJUnit} {
		if err := writeFile(path, write); err != nil {
			fmt.Fprintln(env.Stderr, "slt:", err)
			return exitCannot
		}
	}
	switch {
	case len(s.Fatal()) > 0 || ctx.Err() != nil:
		return exitCannot
	case s.Total.Fail > 0:
		return exitFailed
	}
	return exitOK
}

func writeFile(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func parseFlags(args []string, env Env) (Options, outputs, error) {
	var o Options
	var out outputs
	fs := flag.NewFlagSet("slt", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // Main prints what is wrong
	fs.Usage = func() {}
	var labels, noops, rewrites, initSQL, include, exclude stringList
	var sample string
	noDefaultLabels := fs.Bool("no-default-labels", false, "do not answer to postgresql and postgres")
	fs.StringVar(&o.DSN, "dsn", "", "connection string of a server; without one, a server is started for each file")
	fs.IntVar(&o.Parallel, "jobs", 1, "files at a time")
	fs.Var(&choice[Dialect]{to: &o.Dialect, value: "auto", names: map[string]Dialect{"auto": DialectAuto, "sqlite": DialectSQLite, "rs": DialectRS}},
		"dialect", "auto, sqlite or rs")
	fs.Var(&labels, "label", "one more `label` for skipif and onlyif (repeatable)")
	fs.Var(&choice[ErrorMatch]{to: &o.Errors, value: "sane", names: map[string]ErrorMatch{"any": ErrorAny, "sane": ErrorSane, "regex": ErrorExact}},
		"error-match", "any: every error will do; sane: unless it is vague in place of another; regex: the text must match")
	fs.Var(&choice[Isolation]{to: &o.Isolation, value: "auto", names: map[string]Isolation{"auto": IsolationAuto, "shared": IsolationShared,
		"database": IsolationDatabase, "schema": IsolationSchema}}, "isolation", "auto, shared, database or schema: what keeps jobs on one server apart")
	fs.Var(&choice[ViewMode]{to: &o.AsView, value: "no", names: map[string]ViewMode{"no": ViewNone, "after": ViewAfter, "before": ViewBefore, "both": ViewBoth}},
		"as-view", "after, before or both: also check queries through views made where they stand, or before the data came")
	fs.BoolVar(&o.PlainView, "plain-view", false, "with --as-view: plain views, not materialized ones")
	fs.StringVar(&sample, "sample", "100%", "with --as-view: share of the queries to check")
	fs.BoolVar(&o.ViewsOnly, "views-only", false, "with --as-view: run no other queries than those checked")
	fs.IntVar(&o.ViewRound, "view-round", 200, "with --as-view: queries that have views at a time")
	fs.IntVar(&o.ViewBatch, "view-batch", 50, "with --as-view: consecutive statements that change rows and are one change to the views")
	fs.Uint64Var(&o.Seed, "seed", 1, "seed of the sample")
	fs.BoolVar(&o.Lenient, "lenient", false, "rs dialect: even out trailing zeros, digits past the 12th, +00:00 for +00, json key order")
	fs.Float64Var(&o.FloatEps, "float-eps", 0, "rs dialect: relative tolerance of words that are numbers")
	fs.BoolVar(&o.Extended, "extended", false, "use the extended query protocol")
	fs.BoolVar(&o.Substitute, "substitute", false, "run `let` records and replace $variables instead of skipping both")
	fs.DurationVar(&o.Timeout, "timeout", 30*time.Second, "of one record")
	fs.Float64Var(&o.SleepScale, "sleep-scale", 1, "factor on sleeps and retry pauses")
	fs.IntVar(&o.MaxRecords, "max-records", 0, "at most so many records a file")
	fs.BoolVar(&o.FailFast, "fail-fast", false, "stop at the first failure")
	fs.Var(&include, "include", "run only files that match the `glob` (repeatable)")
	fs.Var(&exclude, "exclude", "leave out files that match the `glob` (repeatable)")
	fs.BoolVar(&o.Parts, "parts", false, "in folders, run *.slt.part too")
	fs.StringVar(&o.Strip, "strip", "", "`prefix` to take off shown paths")
	fs.BoolVar(&o.KeepState, "keep", false, "do not drop what a file has created")
	fs.Var(&initSQL, "init-sql", "`statement` to run at the start of each session (repeatable)")
	fs.Var(&noops, "noop", "skip records whose SQL matches the `expression` (repeatable)")
	fs.Var(&rewrites, "rewrite", "`REGEX=>TEXT`: change the SQL before it is sent (repeatable)")
	fs.BoolVar(&o.Oracle, "oracle", false, "for a plain PostgreSQL: views for materialized views, what it cannot have is skipped")
	fs.BoolVar(&o.Update, "update", false, "rewrite the expected results in the files")
	fs.IntVar(&out.show, "show", 3, "failures to print of a file")
	fs.BoolVar(&out.quiet, "quiet", false, "print only files with failures, and the totals")
	fs.StringVar(&out.json, "json", "", "write the whole outcome to this `file`")
	fs.StringVar(&out.junit, "junit", "", "write JUnit XML to this `file`")
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(env.Stdout, usageSummary)
		fs.SetOutput(env.Stdout)
		fs.PrintDefaults()
	}
	if err != nil {
		return o, out, err
	}
	o.Paths, o.Include, o.Exclude, o.InitSQL = fs.Args(), include, exclude, initSQL
	if o.DSN == "" {
		o.Open = env.Open
	}
	if len(o.Paths) == 0 {
		return o, out, errors.New("no paths; see slt --help")
	}
	o.Labels = []string{}
	for _, l := range labels {
		o.Labels = append(o.Labels, strings.ToLower(l))
	}
	if !*noDefaultLabels {
		o.Labels = append(o.Labels, "postgresql", "postgres")
	}
	return o, out, parsePatterns(&o, sample, noops, rewrites)
}

func parsePatterns(o *Options, sample string, noops, rewrites []string) error {
	s, percent := strings.CutSuffix(sample, "%")
	share, err := strconv.ParseFloat(s, 64)
	if percent {
		share /= 100
	}
	if err != nil || share <= 0 || share > 1 {
		return fmt.Errorf("--sample %s: not a share", sample)
	}
	o.Sample = share
	for _, n := range noops {
		rx, err := regexp.Compile(n)
		if err != nil {
			return err
		}
		o.Noop = append(o.Noop, rx)
	}
	for _, r := range rewrites {
		from, to, ok := strings.Cut(r, "=>")
		rx, err := regexp.Compile(from)
		if !ok || err != nil {
			return fmt.Errorf("--rewrite %s: not of the form REGEX=>TEXT", r)
		}
		o.Rewrites = append(o.Rewrites, Rewrite{rx, to})
	}
	return nil
}
