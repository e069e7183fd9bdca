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
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// explain shows the plan of a statement or of a view, in the format asked for.
func (s *Session) explain(ctx context.Context, p *prepared, n *parser.Explain) (string, error) {
	switch n.Format {
	case "", "text", "verbose text":
		return s.explainText(ctx, p, n)
	case "json":
		text := *n
		text.Verbose = false
		out, err := s.explainText(ctx, p, &text)
		if err != nil {
			return "", err
		}
		return planJSON(out)
	}
	return "", pgerror.Unsupported("EXPLAIN (FORMAT " + strings.ToUpper(n.Format) + ")")
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
	maintained := false
	var q *planner.Query
	var rel plan.Rel
	bindQuery := func(query *parser.Query) (err error) {
		q, err = planner.BindQuery(s.bindContext(nil), p.stmt.Text, query)
		if err == nil {
			rel = q.Rel
		}
		return err
	}
	var err error
	switch st := n.Statement.Node.(type) {
	case *parser.Select:
		err = bindQuery(&st.Query)
	case *parser.CreateMaterializedView:
		maintained, err = true, bindQuery(&st.Query)
	case *parser.CreateView:
		maintained, err = true, bindQuery(&st.Query)
	case *parser.CreateTableAs:
		err = bindQuery(&st.Query)
	case *parser.Postgres:
		b, berr := planner.Bind(s.bindContext(nil), n.Statement)
		if berr != nil {
			return "", berr
		}
		if w, ok := b.(*planner.Write); ok {
			rel = w.Rows()
		}

	}
	if err != nil {
		return "", err
	}
	if rel == nil {
		return "", pgerror.Unsupported("EXPLAIN of " + n.Statement.Node.Tag())
	}
	if n.Stage == "raw" {
		return s.planText(rel, n.Stage, maintained)
	}
	opts := s.optimizeOptions()
	if maintained && q != nil {
		rel = q.Collection()
		opts = planner.Options{Maintained: true, Rows: s.c.estimateRows}
	}
	rel, err = planner.Optimize(rel, opts)
	if err != nil {
		return "", err
	}
	if n.Analyze && !maintained {
		rows := 0
		begun := s.c.opts.Now()
		if err := s.runQuery(ctx, rel, nil, false, func(b *columnar.Batch) error { rows += b.N; return nil }); err != nil {
			return "", err
		}
		text, err := s.planText(rel, n.Stage, false)
		return fmt.Sprintf("%sRows: %d\nExecution Time: %.3f ms\n", text, rows, float64(s.c.opts.Now().Sub(begun).Microseconds())/1000), err
	}
	text, err := s.planText(rel, n.Stage, maintained)
	if n.Verbose && n.Stage != "physical" {
		text += s.unusedIndexes(rel, opts)
	}
	return text, err
}

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
