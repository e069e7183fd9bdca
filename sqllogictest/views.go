package sqllogictest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// viewPlan checks sampled queries through views: what a view over the query
// gives must be what the query gives.
//
// It does so in rounds, when the script has been run as it is (or instead): a round makes
// views of some of the queries only, so that a change of a table has only so
// many views to reach. For each the script is run again from its start, without
// the queries. A view "before" is made right behind the last DDL statement in
// front of its query, so that all the data which came in between reaches it as
// changes; a view "after" is made where the query stands. Both are dropped
// before the next DDL statement, so that they never stand in its way. Changes of
// rows that follow each other are made by some at a time.
type viewPlan struct {
	f       *fileRunner
	records []*record // up to the end of what is run
	queries map[*record]bool
	rounds  [][]int // of sampled queries, as indexes of records
	due     map[int][]int
	passed  map[*record]bool
	own     bool // the script has transactions of its own
}

var (
	ddlStatement = regexp.MustCompile(`(?i)^\s*(create|alter|drop|truncate|begin|start|commit|rollback|set|end)\b`)
	rowStatement = regexp.MustCompile(`(?i)^\s*(insert|update|delete)\b`)
	transaction  = regexp.MustCompile(`(?i)^\s*(begin|start|commit|rollback|end)\b`)
	viewable     = regexp.MustCompile(`(?i)^[\s(]*(select|with|values|table)\b`)
	hasEffects   = regexp.MustCompile(`(?i)\b(nextval|setval|set_config)\s*\(|^[\s(]*with\b.*\b(insert|update|delete|merge)\b|\bfor\s+update\b|\binto\b`)
)

func planViews(f *fileRunner, records []*record) *viewPlan {
	p := &viewPlan{f: f, queries: map[*record]bool{}, due: map[int][]int{}, passed: map[*record]bool{}}
	lastDDL, n := -1, 0
	var round []int
	for i, r := range records {
		if r.counted() {
			n++
		}
		applies := f.applies(r)
		if f.opt.MaxRecords > 0 && n > f.opt.MaxRecords || applies && r.kind == kindHalt {
			break
		}
		p.records = records[:i+1]
		if !applies {
			continue
		}
		if r.kind == kindStatement && ddlStatement.MatchString(r.sql) {
			lastDDL = i
			p.own = p.own || transaction.MatchString(r.sql)
		}
		if r.kind != kindQuery || r.wantError || r.conn != "" || !viewable.MatchString(r.sql) || hasEffects.MatchString(r.sql) {
			continue
		}
		p.queries[r] = true
		if !p.inSample(r) {
			continue
		}
		if f.opt.AsView&ViewBefore != 0 && lastDDL >= 0 {
			p.due[lastDDL] = append(p.due[lastDDL], i)
		}
		if round = append(round, i); len(round) == f.opt.ViewRound {
			p.rounds = append(p.rounds, round)
			round = nil
		}
	}
	if len(round) > 0 {
		p.rounds = append(p.rounds, round)
	}
	return p
}

func (f *fileRunner) applies(r *record) bool {
	for _, c := range r.conds {
		if c.onlyIf != slices.Contains(f.opt.Labels, c.label) {
			return false
		}
	}
	return true
}

// inSample is the same for the same seed, whatever else runs.
func (p *viewPlan) inSample(r *record) bool {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %d", p.f.opt.Seed, r.file.shown, r.line)
	x := h.Sum64()
	x ^= x >> 31 // FNV's low bits are the better ones
	return float64(x%1_000_003)/1_000_003 < p.f.opt.Sample
}

// run runs the rounds.
func (p *viewPlan) run() {
	for _, round := range p.rounds {
		if p.f.stop || p.f.down != nil || p.f.ctx.Err() != nil {
			return
		}
		p.round(round)
	}
}

// viewRound is one run of the script with the views of some of its queries.
type viewRound struct {
	p     *viewPlan
	f     *fileRunner // with a report of its own
	views []*view     // that are there
	block []*viewed   // that stand where the script is
	open  int         // statements in the transaction that is open
}

// viewed is a query with its views.
type viewed struct {
	r     *record
	views []*view
	want  []string // sorted rows of the query itself
}

// view is one of a query, under test.
type view struct {
	q    *viewed
	when string
	name string
	made error
}

func (p *viewPlan) round(queries []int) {
	opt := *p.f.opt
	opt.AsView, opt.Update, opt.KeepState, opt.FailFast, opt.MaxRecords = ViewNone, false, false, false, 0
	w := &viewRound{p: p, f: newFileRunner(p.f.ctx, &opt, p.f.script, p.f.dsn, &FileRun{Files: map[string]*FileCounts{}})}
	w.f.schema = p.f.schema
	first, last := queries[0], queries[len(queries)-1]
	before := map[int]*viewed{}
	for i, r := range p.records[:last+1] {
		if p.f.stop || w.f.halted || p.f.ctx.Err() != nil {
			break
		}
		if p.queries[r] {
			if i >= first && slices.Contains(queries, i) {
				w.endBatch()
				w.queue(r, i, before[i])
			}
			continue
		}
		w.check()
		rows := p.inBatch(i)
		if w.open > 0 && (!rows || w.open == p.f.opt.ViewBatch) {
			w.endBatch()
		}
		if rows && (w.open > 0 || i < last && p.inBatch(i+1)) {
			w.batch(r)
		}
		if r.kind == kindStatement && w.f.applies(r) && ddlStatement.MatchString(r.sql) {
			w.drop()
		}
		w.f.record(r)
		w.makeBefore(i, first, last, before)
	}
	w.endBatch()
	w.check()
	w.drop()
	w.f.drain()
	w.f.reset()
	p.f.report.Left = append(p.f.report.Left, w.f.report.Left...)
	for _, c := range w.f.conns {
		c.close()
	}
}

// inBatch reports whether a record changes rows, and may do so together with
// others in one transaction.
func (p *viewPlan) inBatch(i int) bool {
	r := p.records[i]
	return p.f.opt.ViewBatch > 1 && !p.own && r.kind == kindStatement && r.conn == "" && !r.wantError && (p.passed[r] || p.f.opt.ViewsOnly) && rowStatement.MatchString(r.sql)
}

// batch counts a statement into the transaction, which it opens if need be.
func (w *viewRound) batch(r *record) {
	if w.open++; w.open == 1 {
		w.f.record(&record{kind: kindStatement, file: r.file, line: r.line, sql: "BEGIN", count: -1})
	}
}

func (w *viewRound) endBatch() {
	if w.open > 0 {
		w.f.record(&record{kind: kindStatement, file: w.p.records[0].file, sql: "COMMIT", count: -1})
		w.open = 0
	}
}

// queue puts a query, which may have a view already, into the block that is
// checked next.
func (w *viewRound) queue(r *record, i int, q *viewed) {
	if q == nil {
		q = &viewed{r: r}
	}
	if w.p.f.opt.AsView&ViewAfter != 0 {
		q.views = append(q.views, &view{q: q, when: "after", name: "slt_view_after_" + strconv.Itoa(i)})
	}
	w.block = append(w.block, q)
}

// makeBefore makes the views of the round's queries that are due behind record i.
func (w *viewRound) makeBefore(i, first, last int, before map[int]*viewed) {
	var vs []*view
	for _, at := range w.p.due[i] {
		if at >= first && at <= last {
			q := &viewed{r: w.p.records[at]}
			q.views = []*view{{q: q, when: "before", name: "slt_view_before_" + strconv.Itoa(at)}}
			before[at] = q
			vs = append(vs, q.views...)
		}
	}
	if len(vs) > 0 && w.f.drain() {
		w.create(vs)
	}
}

// check compares the block's views with their queries.
func (w *viewRound) check() {
	if len(w.block) == 0 || !w.f.drain() {
		return
	}
	block := w.block
	w.block = nil
	var after, made []*view
	for _, q := range block {
		for _, v := range q.views {
			if v.when == "after" {
				after = append(after, v)
			}
		}
	}
	w.create(after)
	w.each(len(block), func(i int) string { return w.f.text(block[i].r) }, func(i int, err error) {
		q := block[i]
		if w.p.f.opt.ViewsOnly {
			w.p.f.settle(q.r, w.f.judge(q.r, err))
		}
		if err != nil || w.f.res.err != nil {
			return // there is nothing to compare with
		}
		q.want = w.rows()
		for _, v := range q.views {
			e := (*serverError)(nil)
			switch {
			case v.made == nil:
				made = append(made, v)
			case errors.As(v.made, &e) && e.code == "0A000": // such a view cannot be had
			default:
				w.fail(q.r, &verdict{reason: "cannot make a view " + v.when + ": " + v.made.Error()})
			}
		}
	})
	w.each(len(made), func(i int) string { return "SELECT * FROM " + made[i].name }, func(i int, err error) {
		v := made[i]
		w.p.f.counts(v.q.r).Views++
		if bad := w.compare(v, err); bad != nil {
			w.fail(v.q.r, bad)
		}
	})
}

func (w *viewRound) rows() []string {
	return slices.Sorted(slices.Values(w.f.rsLines(&record{sort: sortNone}, sortNone)))
}

// compare compares the answer of a view with that of its query.
func (w *viewRound) compare(v *view, err error) *verdict {
	if err == nil && w.f.res.err != nil {
		err = w.f.res.err
	}
	if err != nil {
		return &verdict{reason: "error of the view made " + v.when + ": " + err.Error(), want: v.q.want}
	}
	if got := w.rows(); !sameRows(v.q.want, got, max(w.f.opt.FloatEps, 1e-12)) {
		return &verdict{reason: "the view made " + v.when + " differs from the query", want: v.q.want, got: got}
	}
	return nil
}

// fail makes a record fail that has passed by itself.
func (w *viewRound) fail(r *record, bad *verdict) {
	c := w.p.f.counts(r)
	if w.p.passed[r] {
		c.Pass--
		delete(w.p.passed, r)
	} else if c.Fail > 0 {
		c.Fail--
	}
	w.p.f.fail(r, bad)
}

func (w *viewRound) kind() string {
	if w.p.f.opt.PlainView {
		return "VIEW"
	}
	return "MATERIALIZED VIEW"
}

// create makes views. Their columns get names, as those of a query need not
// differ; where their number was wrong, they keep their own.
func (w *viewRound) create(vs []*view) {
	named := func(v *view, columns int) string {
		names := make([]string, columns)
		for i := range names {
			names[i] = "c" + strconv.Itoa(i+1)
		}
		list := ""
		if columns > 0 {
			list = " (" + strings.Join(names, ", ") + ")"
		}
		return "CREATE " + w.kind() + " " + v.name + list + " AS " + strings.TrimRight(w.f.text(v.q.r), "; \t\r\n")
	}
	var again []*view
	done := func(v *view, err error, last bool) {
		e := w.f.res.err
		switch {
		case err != nil:
			v.made = err
		case e == nil:
			v.made = nil
			w.views = append(w.views, v)
		default:
			v.made = e
			if !last && (e.code == "42601" || e.code == "42P16") {
				again = append(again, v)
			}
		}
	}
	w.each(len(vs), func(i int) string { return named(vs[i], len(vs[i].q.r.types)) }, func(i int, err error) { done(vs[i], err, false) })
	w.each(len(again), func(i int) string { return named(again[i], 0) }, func(i int, err error) { done(again[i], err, true) })
}

// drop drops the views that are there.
func (w *viewRound) drop() {
	if len(w.views) == 0 || !w.f.drain() {
		return
	}
	names := make([]string, len(w.views))
	for i, v := range w.views {
		names[i] = v.name
	}
	c, err := w.f.client("")
	if err == nil {
		err = c.exec("DROP "+w.kind()+" "+strings.Join(names, ", "), w.f.opt.Timeout)
	}
	if err != nil {
		w.fail(w.views[0].q.r, &verdict{reason: "cannot drop the views: " + err.Error()})
	}
	w.views = nil
}

// each sends n statements ahead of their answers, and tells of each answer,
// which is in f.res, in order. What a lost session did not run gets its error.
func (w *viewRound) each(n int, sql func(int) string, done func(int, error)) {
	for at := 0; at < n; {
		c, err := w.f.client("")
		to, size := at, 0
		for err == nil && to < min(n, at+maxPending) {
			s := sql(to)
			if size += len(s); size > maxBytes && to > at {
				break
			}
			w.f.send(c, s)
			to++
		}
		if err == nil {
			err = c.flush()
		} else {
			to = n
		}
		for ; at < to; at++ {
			if err == nil {
				err = c.receive(&w.f.res, w.f.opt.Timeout)
			}
			done(at, err)
			if c != nil && !c.broken {
				err = nil
			}
		}
	}
}
