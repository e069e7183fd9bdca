package coord

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// explain shows the plan of a statement or of a view, in the format asked for.
func (s *Session) explain(ctx context.Context, p *prepared, n *parser.Explain) (string, error) {
	switch n.Format {
	case "", "text", "verbose text":
		return s.explainText(ctx, p, n)
	case "json", "xml", "yaml":
		text := *n
		text.Verbose = false
		out, err := s.explainText(ctx, p, &text)
		switch {
		case err != nil:
			return "", err
		case n.Format == "json":
			return planJSON(out)
		case n.Format == "xml":
			return planXML(out)
		}
		return planYAML(out), nil
	}
	return "", pgerror.New(pgerror.InvalidParameterValue, "unrecognized value for EXPLAIN option \"format\": \"%s\"", n.Format)
}

func (s *Session) explainText(ctx context.Context, p *prepared, n *parser.Explain) (string, error) {
	if n.View != nil {
		o, err := s.find(&ddlState{cat: s.snapshot()}, n.ViewKind, *n.View)
		if err != nil {
			return "", err
		}
		rel, err := s.c.viewPlan(s.snapshot(), o)
		if err != nil {
			return "", err
		}
		return s.planText(rel, n.Stage, true)
	}
	x, err := s.explained(p, n.Statement)
	if err != nil {
		return "", err
	}
	if n.Stage == "raw" {
		return s.planText(x.raw, n.Stage, x.maintained)
	}
	opts := s.optimizeOptions()
	if x.maintained {
		opts = planner.Options{Maintained: true, Rows: s.c.estimateRows}
	}
	if x.rel == nil {
		if x.rel, err = planner.Optimize(x.raw, opts); err != nil {
			return "", err
		}
	}
	text := ""
	for _, st := range x.steps {
		if text, err = s.stepText(text, st, n.Stage); err != nil {
			return "", err
		}
	}
	main, err := s.planText(x.rel, n.Stage, x.maintained)
	if err != nil {
		return "", err
	}
	text += main
	if n.Verbose && n.Stage != "physical" {
		text += s.unusedIndexes(x.rel, opts)
	}
	if _, view := n.Statement.Node.(*parser.CreateView); n.Analyze && !view {
		report, err := s.analyzeRun(ctx, x, n.Statement)
		return text + report, err
	}
	return text, nil
}

// explained is a statement whose plan is shown.
type explained struct {
	raw, rel   plan.Rel // as bound; optimized, nil if that is still to be done
	steps      []planner.Step
	maintained bool
	// p and params are what ANALYZE runs, nil if that is the statement itself.
	p      *prepared
	params []*expr.Const
}

// explained plans the statement of EXPLAIN.
func (s *Session) explained(p *prepared, st *parser.Statement) (*explained, error) {
	query := func(q *parser.Query) (*explained, error) {
		inner := *st
		inner.Node = &parser.Select{Query: *q}
		x := &explained{p: &prepared{stmt: &inner, sql: p.sql, declared: p.declared}}
		return x, s.explainPrepared(x)
	}
	view := func(q *parser.Query) (*explained, error) {
		b, err := planner.BindQuery(s.bindContext(nil), st.Text, q)
		if err != nil {
			return nil, err
		}
		return &explained{raw: b.Collection(), maintained: true}, nil
	}
	switch n := st.Node.(type) {
	case *parser.Select:
		return query(&n.Query)
	case *parser.CreateMaterializedView:
		return view(&n.Query)
	case *parser.CreateView:
		return view(&n.Query)
	case *parser.DeclareCursor:
		if n.Query != nil {
			return query(n.Query)
		}
	case *parser.CreateTableAs:
		q, params, err := s.tableSource(&prepared{stmt: st, sql: p.sql}, n)
		if err != nil {
			return nil, err
		}
		x := &explained{p: q, params: params}
		err = s.explainPrepared(x)
		x.p = nil
		return x, err
	case *parser.Postgres:
		if e := n.Stmt.GetExecuteStmt(); e != nil {
			q, params, err := s.executed(st.Text, e, n.Base)
			if err != nil {
				return nil, err
			}
			x := &explained{p: q, params: params}
			return x, s.explainPrepared(x)
		}
		x := &explained{p: &prepared{stmt: st, sql: p.sql, declared: p.declared}}
		return x, s.explainPrepared(x)
	}
	return nil, pgerror.Unsupported("EXPLAIN of " + st.Node.Tag())
}

// explainPrepared finds the plans of a query or of a statement that writes.
func (s *Session) explainPrepared(x *explained) error {
	if x.p.bound == nil {
		if err := s.analyze(x.p); err != nil {
			return err
		}
	}
	switch b := x.p.bound.(type) {
	case *planner.Query:
		x.raw, x.rel, x.steps = b.Rel, plan.BindParams(x.p.rel, x.params), b.Steps
	case *planner.Write:
		declared := make([]types.OID, len(b.Params))
		for i, t := range b.Params {
			declared[i] = t.OID
		}
		// Optimizing has changed what runs; what is shown is optimized as a whole.
		again, err := planner.Bind(s.bindContext(declared), x.p.stmt)
		if err != nil {
			return err
		}
		x.raw, x.steps = plan.BindParams(again.(*planner.Write).Rows(), x.params), b.Steps
	default:
		return pgerror.Unsupported("EXPLAIN of " + statementTag(x.p.stmt))
	}
	return nil
}

// statementTag names a statement in an error.
func statementTag(st *parser.Statement) string {
	if p, ok := st.Node.(*parser.Postgres); ok {
		return statementName(p.Stmt)
	}
	return st.Node.Tag()
}

// stepText adds the plan of a WITH query that is run before the statement.
func (s *Session) stepText(text string, st planner.Step, stage string) (string, error) {
	if st.Call != nil {
		return text + "With call of " + st.Call.Function.Name + "\n", nil
	}
	head, rel := "With query", st.Query
	if st.Write != nil {
		head, rel = "With "+st.Write.Kind.String()+" "+st.Write.Table.Name, st.Write.Rows()
	}
	body, err := s.planText(rel, stage, false)
	for line := range strings.Lines(body) {
		head += "\n  " + strings.TrimRight(line, "\n")
	}
	return text + head + "\n", err
}

// analyzeRun runs the statement of EXPLAIN ANALYZE, drops what it returns, and
// tells how many rows that, or what it has changed, were.
func (s *Session) analyzeRun(ctx context.Context, x *explained, st *parser.Statement) (report string, err error) {
	begun, before := s.c.opts.Now(), s.read
	w := &countingWriter{}
	var tag string
	if x.p != nil {
		tag, err = s.execute(ctx, x.p, x.params, w)
	} else {
		tag, err = s.execDDL(ctx, &prepared{stmt: st, sql: st.SQL()}, w)
	}
	took := s.c.opts.Now().Sub(begun)
	if n := s.read.sorted - before.sorted; n > 0 {
		report = fmt.Sprintf("Rows Sorted for Index Order: %d\n", n)
	}
	report += fmt.Sprintf("Rows Read: %d\n", s.read.rows-before.rows)
	if count := tag[strings.LastIndexByte(tag, ' ')+1:]; w.rows > 0 {
		report += fmt.Sprintf("Rows: %d\n", w.rows)
	} else if _, err := strconv.Atoi(count); err == nil {
		report += fmt.Sprintf("Rows: %s\n", count)
	}
	return report + fmt.Sprintf("Execution Time: %.3f ms\n", float64(took.Microseconds())/1000), err
}

// countingWriter counts the rows that a statement returns.
type countingWriter struct {
	pgwire.ResultWriter
	rows int64
}

func (w *countingWriter) Begin([]pgwire.Column) error { return nil }

func (w *countingWriter) Rows(_ *columnar.Batch, from, to int) error {
	w.rows += int64(to - from)
	return nil
}

func (w *countingWriter) Notice(*pgerror.Error) {}

// unusedIndexes tells which indexes a plan does not use, and why.
func (s *Session) unusedIndexes(rel plan.Rel, opts planner.Options) string {
	var b strings.Builder
	for _, u := range planner.UnusedIndexes(rel, opts) {
		name := "the key of " + u.Table.Name
		if o := s.snapshot().ByID(u.Index.ID); o != nil && u.Index.ID != u.Table.ID {
			name = "index " + o.Name
		}
		fmt.Fprintf(&b, "Not used: %s: %s\n", name, u.Why)
	}
	return b.String()
}

// lookupIndex is what a plan's text says of an index that a lookup uses.
var lookupIndex = regexp.MustCompile(` index=(\d+)`)

// planText is a plan as a tree of relations, or of the stage "physical" as the
// operators of the circuit that runs it.
func (s *Session) planText(rel plan.Rel, stage string, maintained bool) (string, error) {
	if stage == "physical" {
		opts := render.Options{Partitions: s.c.partitions, Once: !maintained, Context: &expr.Context{Location: zoneUTC, Database: databaseName}}
		df, err := render.Render(rel, opts)
		if err != nil {
			return "", err
		}
		defer df.Circuit.Close()
		names := map[*differential.Input]string{}
		for _, im := range df.Imports {
			names[im.Input] = im.Get.Name
		}
		return df.Circuit.Describe(names), nil
	}
	cat := s.snapshot()
	return lookupIndex.ReplaceAllStringFunc(plan.Format(rel), func(m string) string {
		id, err := strconv.ParseUint(lookupIndex.FindStringSubmatch(m)[1], 10, 64)
		if o := cat.ByID(plan.ObjectID(id)); err == nil && o != nil {
			return " index=" + o.Name
		}
		return m
	}), nil
}
