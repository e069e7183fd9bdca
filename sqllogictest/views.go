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
// A view "after" is made where the query stands. A view "before" is made right
// behind the last DDL statement in front of the query, so that all the data
// which came in between reaches it as changes; it is dropped when the query has
// been checked, so that it never stands in the way of later DDL.
type viewPlan struct {
	f       *fileRunner
	sampled map[*record]bool
	due     map[int][]*record // by the index of the record behind which to make them
	made    map[*record]error // of views "before": how that went
	ids     map[*record]int
}

var (
	ddlStatement = regexp.MustCompile(`(?i)^\s*(create|alter|drop|truncate|begin|start|commit|rollback|set|end)\b`)
	viewable     = regexp.MustCompile(`(?i)^[\s(]*(select|with|values|table)\b`)
)

func planViews(f *fileRunner, records []*record) *viewPlan {
	p := &viewPlan{f: f, sampled: map[*record]bool{}, due: map[int][]*record{}, made: map[*record]error{}, ids: map[*record]int{}}
	lastDDL, n := -1, 0
	for i, r := range records {
		if r.counted() {
			n++
		}
		if f.opt.MaxRecords > 0 && n > f.opt.MaxRecords {
			break
		}
		if !f.applies(r) {
			continue
		}
		if r.kind == kindStatement && ddlStatement.MatchString(r.sql) {
			lastDDL = i
		}
		if r.kind != kindQuery || r.wantError || r.conn != "" || !viewable.MatchString(r.sql) || !p.inSample(r) {
			continue
		}
		p.sampled[r] = true
		p.ids[r] = len(p.ids) + 1
		if f.opt.AsView&ViewBefore != 0 && lastDDL >= 0 {
			p.due[lastDDL] = append(p.due[lastDDL], r)
		}
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

func (p *viewPlan) wants(r *record) bool { return p != nil && p.sampled[r] }

// after makes the views that are due behind record i.
func (p *viewPlan) after(i int) {
	for _, r := range p.due[i] {
		if !p.f.drain() {
			return
		}
		p.made[r] = p.create(p.name(r, "before"), p.f.text(r), len(r.types))
	}
}

func (p *viewPlan) name(r *record, when string) string {
	return "slt_view_" + when + "_" + strconv.Itoa(p.ids[r])
}

func (p *viewPlan) kind() string {
	if p.f.opt.PlainView {
		return "VIEW"
	}
	return "MATERIALIZED VIEW"
}

// create makes a view. Its columns get names, as those of the query need not
// differ; where their number was wrong, they keep their own.
func (p *viewPlan) create(name, sql string, columns int) error {
	c, err := p.f.client("")
	if err != nil {
		return err
	}
	names := make([]string, columns)
	for i := range names {
		names[i] = "c" + strconv.Itoa(i+1)
	}
	sql = strings.TrimRight(sql, "; \t\r\n")
	head := "CREATE " + p.kind() + " " + name
	if columns > 0 {
		err = c.exec(head+" ("+strings.Join(names, ", ")+") AS "+sql, p.f.opt.Timeout)
		var e *serverError
		if !errors.As(err, &e) || e.code != "42601" && e.code != "42P16" {
			return err
		}
	}
	return c.exec(head+" AS "+sql, p.f.opt.Timeout)
}

// check compares the answer in f.res, that of the query itself, with its views.
func (p *viewPlan) check(r *record, sql string) *verdict {
	direct := slices.Sorted(slices.Values(p.f.rsLines(&record{sort: sortNone}, sortNone)))
	width := len(p.f.res.oids)
	var v *verdict
	if made, ok := p.made[r]; ok {
		v = p.compare(r, "before", made, direct)
	}
	if p.f.opt.AsView&ViewAfter != 0 && v == nil {
		v = p.compare(r, "after", p.create(p.name(r, "after"), sql, width), direct)
	}
	return v
}

func (p *viewPlan) compare(r *record, when string, made error, direct []string) *verdict {
	name := p.name(r, when)
	var e *serverError
	if errors.As(made, &e) {
		if e.code == "0A000" {
			return nil // such a view cannot be had
		}
		return &verdict{reason: "cannot make a view " + when + ": " + e.Error()}
	}
	if made != nil {
		return &verdict{reason: "connection lost while making a view: " + made.Error(), noAnswer: true}
	}
	c, err := p.f.client("")
	if err != nil {
		return &verdict{reason: err.Error(), noAnswer: true}
	}
	var saved result
	saved, p.f.res = p.f.res, result{}
	defer func() { p.f.res = saved }()
	c.queue("SELECT * FROM "+name, false)
	if err = c.flush(); err == nil {
		err = c.receive(&p.f.res, p.f.opt.Timeout)
	}
	got := p.f.rsLines(&record{sort: sortNone}, sortNone)
	slices.Sort(got)
	viewErr := p.f.res.err
	dropErr := c.exec("DROP "+p.kind()+" "+name, p.f.opt.Timeout)
	p.f.counts(r).Views++
	switch {
	case err != nil:
		return &verdict{reason: "reading the view made " + when + ": " + err.Error(), noAnswer: true}
	case viewErr != nil:
		return &verdict{reason: "error of the view made " + when + ": " + viewErr.Error(), want: direct}
	case !sameRows(direct, got, max(p.f.opt.FloatEps, 1e-12)):
		return &verdict{reason: "the view made " + when + " differs from the query", want: direct, got: got}
	case dropErr != nil:
		return &verdict{reason: "cannot drop the view made " + when + ": " + dropErr.Error()}
	}
	return nil
}
