package planner

import (
	"slices"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/datadriven"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// The files under testdata/lower, testdata/rules and testdata/physical have
// these directives:
//
//	ddl                     statements that make the catalog
//	lower                   the plan of a query after lowering, before any rule
//	opt                     the optimized plan
//	why                     the indexes that the optimized plan does not use, and why
//
// with the arguments
//
//	expect=Rule,Rule        rules that must change the plan
//	expect-not=Rule,Rule    rules that must not
//	disable=Rule,Rule       rules that may not
//	maintained              plan for a view, not for one answer
//	rows=table:n,table:n    what the catalog thinks the sizes of tables are
//	both                    show the plan without the expected rules, too
type planTest struct {
	cat   *testCatalog
	fired map[string]bool // by any case of any file
}

// indexes are the keys of tables, which the coordinator can look up.
func (p *planTest) indexes(id plan.ObjectID) []Index {
	o := p.cat.snap.ByID(id)
	var out []Index
	if o.PrimaryKey != nil {
		out = append(out, Index{ID: id, Key: o.PrimaryKey, Unique: true})
	}
	for i, u := range o.Unique {
		out = append(out, Index{ID: id*100 + plan.ObjectID(i), Key: u.Columns})
	}
	out = append(out, p.cat.indexes[id]...)
	for i := range out {
		for _, k := range out[i].Key {
			if k < 0 {
				x := out[i].Exprs[-1-k]
				out[i].Names = append(out[i].Names, expr.String(x, nil))
				out[i].Unequal = out[i].Unequal || types.NeedsNorm(x.Type())
				continue
			}
			out[i].Names = append(out[i].Names, o.Columns[k].Name)
			out[i].Unequal = out[i].Unequal || types.NeedsNorm(o.Columns[k].Type)
		}
	}
	return out
}

func (p *planTest) run(t *testing.T, c *datadriven.Case) string {
	if c.Cmd == "ddl" {
		if err := p.cat.ddl(c.Input); err != nil {
			return formatError(err)
		}
		return ""
	}
	b, err := p.cat.bindText(c.Input)
	if err != nil {
		return formatError(err)
	}
	q := b.(*Query)
	if c.Cmd == "lower" {
		r, err := Lower(q.Rel)
		if err != nil {
			return formatError(err)
		}
		return plan.Format(r)
	}
	fired := map[string]bool{}
	opts := Options{
		Maintained: c.Has("maintained"),
		Indexes:    p.indexes,
		Disabled:   map[string]bool{},
		Fired:      func(rule string) { fired[rule] = true },
	}
	for _, r := range list(c.Args["disable"]) {
		opts.Disabled[r] = true
	}
	if sizes := list(c.Args["rows"]); sizes != nil {
		opts.Rows = p.sizes(t, sizes)
	}
	rel := q.Rel
	if opts.Maintained {
		rel = q.Collection()
	}
	r, err := Optimize(rel, opts)
	if err != nil {
		return formatError(err)
	}
	for _, rule := range list(c.Args["expect"]) {
		if !fired[rule] {
			t.Errorf("%s: %s did not change the plan; %v did", c.Pos, rule, keys(fired))
		}
		p.fired[rule] = true
	}
	for _, rule := range list(c.Args["expect-not"]) {
		if fired[rule] {
			t.Errorf("%s: %s changed the plan", c.Pos, rule)
		}
	}
	if c.Cmd == "why" {
		var b strings.Builder
		for _, u := range UnusedIndexes(r, opts) {
			cols := p.cat.snap.ByID(u.Table.ID).Columns
			b.WriteString(u.Table.Name)
			for _, k := range u.Index.Key {
				if k < 0 {
					b.WriteString(" " + expr.String(u.Index.Exprs[-1-k], nil))
				} else {
					b.WriteString(" " + cols[k].Name)
				}
			}
			b.WriteString(": " + u.Why + "\n")
		}
		return b.String()
	}
	out := plan.Format(r)
	if c.Has("both") {
		for _, rule := range list(c.Args["expect"]) {
			opts.Disabled[rule] = true
		}
		without, err := Optimize(rel, opts)
		if err != nil {
			return formatError(err)
		}
		out = "without:\n" + plan.Format(without) + "with:\n" + out
	}
	return out
}

// sizes reads table:rows pairs.
func (p *planTest) sizes(t *testing.T, pairs []string) func(id plan.ObjectID) float64 {
	sizes := map[string]float64{}
	for _, pair := range pairs {
		name, n, _ := strings.Cut(pair, ":")
		size := 0.0
		for _, d := range n {
			size = 10*size + float64(d-'0')
		}
		sizes[name] = size
	}
	return func(id plan.ObjectID) float64 {
		o := p.cat.snap.ByID(id)
		if o == nil {
			t.Fatalf("no object %d", id)
		}
		if n, ok := sizes[o.Name]; ok {
			return n
		}
		return -1
	}
}

func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func keys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func TestPlans(t *testing.T) {
	fired := map[string]bool{}
	for _, dir := range []string{"lower", "rules", "physical"} {
		t.Run(dir, func(t *testing.T) {
			datadriven.Walk(t, "testdata/"+dir, func(t *testing.T) func(c *datadriven.Case) string {
				p := &planTest{cat: newTestCatalog(), fired: fired}
				return func(c *datadriven.Case) string { return p.run(t, c) }
			})
		})
	}
	if t.Failed() {
		return
	}
	for _, rule := range Rules() {
		if !fired[rule] {
			t.Errorf("no case of testdata expects the rule %s", rule)
		}
	}
	for rule := range fired {
		if !slices.Contains(Rules(), rule) {
			t.Errorf("the rule %s is not listed in Rules", rule)
		}
	}
}
