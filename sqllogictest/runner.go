package sqllogictest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fileRunner runs one script.
//
// Records of the main session are pipelined: they are sent ahead, and their
// answers are judged in order. That changes nothing for the server, which
// takes one query after another. Whatever is not a plain record waits for all
// answers first.
type fileRunner struct {
	ctx    context.Context
	opt    *Options
	script script
	dsn    string
	schema string
	report *FileRun
	sqlite bool

	conns map[string]*client
	down  error // no connection can be made any more

	pending []*record // sent or queued, not yet judged
	queued  int       // of them, in the output buffer
	bytes   int       // of SQL in pending
	res     result

	labels    map[string]string // digest by result label
	threshold int
	sort      sortMode
	valuewise bool
	subst     bool
	vars      map[string]string
	created   []object
	views     *viewPlan
	edits     []edit
	done      int
	halted    bool // nothing more is to be read
	stop      bool // nothing more is to be judged
}

const (
	maxPending = 64
	maxBytes   = 32 << 10 // less than the socket buffers take, so that a write never waits for the reader
)

func newFileRunner(ctx context.Context, o *Options, s script, dsn string, run *FileRun) *fileRunner {
	f := &fileRunner{ctx: ctx, opt: o, script: s, dsn: dsn, report: run, conns: map[string]*client{},
		labels: map[string]string{}, vars: map[string]string{}}
	d := o.Dialect
	if d == DialectAuto {
		d = dialectOf(s.path)
	}
	f.sqlite = d == DialectSQLite
	return f
}

func (f *fileRunner) run() {
	records, err := parseFile(f.script.path, f.script.shown, f.opt.Dialect)
	if f.opt.AsView != ViewNone {
		f.views = planViews(f, records)
	}
	for _, r := range records {
		if f.opt.ViewsOnly || f.halted || f.stop || f.ctx.Err() != nil {
			break
		}
		f.record(r)
	}
	f.drain()
	if err != nil && !f.halted && !f.stop {
		f.fail(&record{kind: kindUnreadable, file: &source{f.script.path, f.script.shown}}, &verdict{reason: "cannot read: " + err.Error()})
	}
	f.reset()
	for _, c := range f.conns {
		c.close()
	}
	if f.views != nil {
		f.views.run()
	}
	if f.opt.Update && f.ctx.Err() == nil {
		f.update()
	}
}

// record runs, queues or skips one entry of the file.
func (f *fileRunner) record(r *record) {
	if r.counted() {
		if f.done++; f.opt.MaxRecords > 0 && f.done > f.opt.MaxRecords {
			f.halted = true
			return
		}
	}
	for _, c := range r.conds {
		if c.onlyIf != slices.Contains(f.opt.Labels, c.label) {
			if r.kind == kindStatement || r.kind == kindQuery {
				f.skip(r)
			}
			return
		}
	}
	switch r.kind {
	case kindStatement, kindQuery:
		f.statement(r)
	case kindHalt:
		f.halted = true
	case kindHashThreshold, kindControl, kindSleep, kindLet, kindBad:
		if f.drain() {
			f.directive(r)
		}
	default:
		f.skip(r)
	}
}

// directive runs an entry that is no plain statement, all answers being in.
func (f *fileRunner) directive(r *record) {
	switch r.kind {
	case kindHashThreshold:
		f.threshold = r.count
	case kindControl:
		f.control(r.args)
	case kindSleep:
		f.sleep(r.pause)
	case kindLet:
		if f.opt.Substitute {
			f.let(r)
		} else {
			f.skip(r)
		}
	case kindBad:
		f.fail(r, &verdict{reason: "unknown record: " + r.arg})
	}
}

func (f *fileRunner) control(args []string) {
	if len(args) < 2 {
		return
	}
	switch args[0] {
	case "sortmode":
		f.sort = sortModes[args[1]]
	case "resultmode":
		f.valuewise = args[1] == "valuewise"
	case "substitution":
		f.subst = args[1] == "on"
	}
}

func (f *fileRunner) sleep(d time.Duration) {
	t := time.NewTimer(time.Duration(float64(d) * f.opt.SleepScale))
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.ctx.Done():
	}
}

var variable = regexp.MustCompile(`\\\$|\$\{(\w+)(?::([^}]*))?\}|\$([A-Za-z_]\w*)`)

// substitute replaces $name, ${name} and ${name:default} by variables of `let`,
// then by the environment; \$ is a plain dollar sign.
func (f *fileRunner) substitute(sql string) string {
	return variable.ReplaceAllStringFunc(sql, func(m string) string {
		g := variable.FindStringSubmatch(m)
		name := g[1] + g[3]
		if name == "" {
			return "$"
		}
		if v, ok := f.vars[name]; ok {
			return v
		}
		if v, ok := os.LookupEnv(name); ok {
			return v
		}
		switch name {
		case "__TEST_DIR__":
			return filepath.Dir(f.script.path)
		case "__NOW__":
			return strconv.FormatInt(time.Now().UnixNano(), 10)
		}
		if strings.Contains(m, ":") {
			return g[2]
		}
		return m
	})
}

// let binds the columns of the one row of a query to variables.
func (f *fileRunner) let(r *record) {
	err := f.execute(r, f.text(r))
	switch {
	case err != nil:
		f.fail(r, &verdict{reason: err.Error()})
	case f.res.err != nil:
		f.fail(r, &verdict{reason: "error: " + f.res.err.Error()})
	case f.res.rows != 1 || len(f.res.oids) != len(r.args):
		f.fail(r, &verdict{reason: fmt.Sprintf("expected one row of %d columns, got %d of %d", len(r.args), f.res.rows, len(f.res.oids))})
	default:
		for i, name := range r.args {
			v, null := f.res.value(0, i)
			f.vars[name] = rsValue(v, null)
		}
		f.counts(r).Pass++
	}
}

// text is the statement as it is sent.
func (f *fileRunner) text(r *record) string {
	sql := r.sql
	if f.subst && f.opt.Substitute {
		sql = f.substitute(sql)
	}
	for _, w := range f.opt.Rewrites {
		sql = w.From.ReplaceAllString(sql, w.To)
	}
	return sql
}

// statement runs a statement or query record.
func (f *fileRunner) statement(r *record) {
	if f.subst && !f.opt.Substitute && strings.Contains(r.sql, "$") {
		f.skip(r)
		return
	}
	for _, rx := range f.opt.Noop {
		if rx.MatchString(r.sql) {
			f.skip(r)
			return
		}
	}
	sql := f.text(r)
	if r.conn != "" || r.tries > 1 || mayCopy(sql) {
		if f.drain() {
			f.alone(r, sql)
		}
		return
	}
	if len(sql) > maxBytes/2 && !f.drain() {
		return
	}
	c, err := f.client("")
	if err != nil {
		f.fail(r, &verdict{reason: err.Error()})
		return
	}
	f.send(c, sql)
	f.pending = append(f.pending, r)
	f.queued++
	f.bytes += len(sql)
	if f.queued >= maxPending/2 || f.bytes >= maxBytes/2 {
		if c.flush() == nil {
			f.queued = 0
		}
	}
	if len(f.pending) >= maxPending || f.bytes >= maxBytes {
		f.judgePending(len(f.pending) / 2)
	}
}

// mayCopy reports whether a statement may ask for COPY data, which the next
// query must not be mistaken for.
func mayCopy(sql string) bool {
	const word = "stdin"
	for i := 0; i+len(word) <= len(sql); i++ {
		if sql[i]|0x20 == 's' && strings.EqualFold(sql[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

func (f *fileRunner) send(c *client, sql string) {
	c.queue(sql, f.opt.Extended && !manyStatements(sql) && !mayCopy(sql))
}

// manyStatements reports whether there may be a second statement, which the
// extended protocol does not take.
func manyStatements(sql string) bool {
	i := strings.IndexByte(sql, ';')
	return i >= 0 && strings.TrimSpace(sql[i+1:]) != ""
}

// drain waits for all answers; false: the run is to end.
func (f *fileRunner) drain() bool {
	if len(f.pending) > 0 {
		f.judgePending(len(f.pending))
	}
	return !f.stop
}

// judgePending receives and judges the answers of the n oldest records sent.
func (f *fileRunner) judgePending(n int) {
	for n > 0 && len(f.pending) > 0 && !f.stop {
		c := f.conns[""]
		err := c.flush()
		f.queued = 0
		for err == nil && n > 0 {
			r := f.pending[0]
			if err = c.receive(&f.res, f.opt.Timeout); errors.Is(err, errConnLost) {
				break
			}
			f.pending = f.pending[1:]
			f.bytes -= len(r.sql)
			n--
			f.conclude(r, err)
			err = nil
			if c.broken || f.stop {
				break
			}
		}
		if err != nil { // the record at the head took the session down
			r := f.pending[0]
			f.pending = f.pending[1:]
			f.bytes -= len(r.sql)
			n--
			f.conclude(r, err)
		}
		if c.broken && len(f.pending) > 0 && !f.stop {
			f.resend()
		}
	}
	if len(f.pending) == 0 || f.stop {
		f.pending, f.bytes = f.pending[:0:0], 0
	}
}

// resend sends what a lost session has not run on a new one.
func (f *fileRunner) resend() {
	c, err := f.client("")
	for len(f.pending) > 0 && err != nil {
		f.fail(f.pending[0], &verdict{reason: err.Error()})
		f.pending = f.pending[1:]
	}
	for _, r := range f.pending {
		f.send(c, f.text(r))
	}
}

// alone runs a record by itself, with its retries.
func (f *fileRunner) alone(r *record, sql string) {
	for try := 1; ; try++ {
		err := f.execute(r, sql)
		v := f.judge(r, err)
		if v == nil || v.skip || try >= r.tries || f.down != nil || f.ctx.Err() != nil {
			f.settle(r, v)
			return
		}
		f.sleep(r.backoff)
	}
}

// execute runs a statement on the session that its record names, and waits.
func (f *fileRunner) execute(r *record, sql string) error {
	c, err := f.client(r.conn)
	if err != nil {
		return err
	}
	f.send(c, sql)
	if err := c.flush(); err != nil {
		return err
	}
	return c.receive(&f.res, f.opt.Timeout)
}

func (f *fileRunner) conclude(r *record, err error) { f.settle(r, f.judge(r, err)) }

func (f *fileRunner) settle(r *record, v *verdict) {
	switch {
	case f.opt.Update && f.noteEdit(r, v):
		f.counts(r).Pass++
	case v == nil:
		f.counts(r).Pass++
		if f.views != nil {
			f.views.passed[r] = true
		}
	case v.skip:
		f.skip(r)
	default:
		f.fail(r, v)
	}
}

func (f *fileRunner) counts(r *record) *FileCounts {
	c := f.report.Files[r.file.shown]
	if c == nil {
		c = &FileCounts{}
		f.report.Files[r.file.shown] = c
	}
	return c
}

func (f *fileRunner) skip(r *record) { f.counts(r).Skip++ }

func (f *fileRunner) fail(r *record, v *verdict) {
	c := f.counts(r)
	c.Fail++
	if len(c.Failures) < f.opt.Keep {
		c.Failures = append(c.Failures, Failure{File: r.file.shown, Line: r.line, Kind: r.kind.String(), Reason: v.reason,
			SQL: cut(r.sql, 600), Expected: short(v.want), Actual: short(v.got)})
	}
	if f.opt.FailFast {
		f.stop = true
	}
}

func cut(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "")
	}
	return s
}

// short bounds what is kept of a result.
func short(lines []string) []string {
	const most = 12
	if lines == nil {
		return nil
	}
	out := make([]string, 0, min(len(lines), most+1))
	for _, l := range lines[:min(len(lines), most)] {
		out = append(out, cut(l, 300))
	}
	if len(lines) > most {
		out = append(out, "... "+strconv.Itoa(len(lines))+" in all")
	}
	return out
}

// client is the session of a name, connected if need be.
func (f *fileRunner) client(name string) (*client, error) {
	c := f.conns[name]
	if c != nil && !c.broken {
		return c, nil
	}
	if f.down != nil {
		return nil, f.down
	}
	var err error
	for try := range 6 {
		if c, err = f.connect(); err == nil {
			f.conns[name] = c
			return c, nil
		}
		if f.ctx.Err() != nil {
			break
		}
		time.Sleep(min(2*time.Second, 200*time.Millisecond<<try))
	}
	f.down = fmt.Errorf("connection lost: cannot connect: %w", err)
	return nil, f.down
}

func (f *fileRunner) connect() (*client, error) {
	ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
	defer cancel()
	c, err := dial(ctx, f.dsn)
	if err != nil {
		return nil, err
	}
	f.report.version = c.version
	if f.schema != "" {
		if err := c.exec(`SET search_path TO "`+f.schema+`"`, f.opt.Timeout); err != nil {
			c.close()
			return nil, err
		}
	}
	for _, sql := range f.opt.InitSQL {
		var se *serverError
		if err := c.exec(sql, f.opt.Timeout); err != nil && !errors.As(err, &se) {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// exec runs a statement whose result does not matter.
func (c *client) exec(sql string, timeout time.Duration) error {
	var r result
	c.queue(sql, false)
	if err := c.flush(); err != nil {
		return err
	}
	if err := c.receive(&r, timeout); err != nil {
		return err
	}
	if r.err != nil {
		return r.err
	}
	return nil
}
