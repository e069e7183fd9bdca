package expr

import (
	"fmt"
	"math"
	"math/rand"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// group is the rows that an aggregate is tried on.
type group struct {
	args []types.Type
	rows [][]string // literals; "NULL" is NULL
}

func (g *group) vectors(t *testing.T) []*columnar.Vec {
	var out []*columnar.Vec
	for k, typ := range g.args {
		b := columnar.NewBuilder(typ.Kind(), len(g.rows))
		for _, row := range g.rows {
			if row[k] == "NULL" {
				b.Null()
			} else if err := types.ParseText(b, typ, row[k], nil); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, b.Build())
	}
	return out
}

// sql is the call over a VALUES list, in the order of the rows.
func (g *group) sql(a *Aggregate) string {
	var rows []string
	for i, row := range g.rows {
		vals := []string{fmt.Sprint(i)}
		for k, v := range row {
			if v != "NULL" {
				v = oracle.Quote(v)
			}
			vals = append(vals, v+"::"+g.args[k].String())
		}
		rows = append(rows, "("+strings.Join(vals, ", ")+")")
	}
	from := "(SELECT 0 AS o, NULL::int4 AS a0, NULL::int4 AS a1 WHERE false) v"
	if len(rows) > 0 {
		from = "(VALUES " + strings.Join(rows, ", ") + ") v(o, a0, a1)"
		from = strings.Replace(from, "a0, a1", []string{"", "a0", "a0, a1"}[len(g.args)], 1)
		from = strings.Replace(from, "(o, )", "(o)", 1)
	} else {
		for k, t := range g.args {
			from = strings.Replace(from, fmt.Sprintf("NULL::int4 AS a%d", k), fmt.Sprintf("NULL::%s AS a%d", t, k), 1)
		}
	}
	call := a.Name + "(" + strings.Join([]string{"a0", "a1"}[:len(g.args)], ", ") + " ORDER BY o)"
	switch {
	case len(g.args) == 0:
		call = a.Name + "(*)"
	case a.Ordered && len(g.args) == 1:
		call = a.Name + "() WITHIN GROUP (ORDER BY a0)"
	case a.Ordered: // the direct argument is a constant
		direct := "NULL"
		if len(g.rows) > 0 && g.rows[0][0] != "NULL" {
			direct = oracle.Quote(g.rows[0][0])
		}
		call = fmt.Sprintf("%s(%s::%s) WITHIN GROUP (ORDER BY a1)", a.Name, direct, g.args[0])
	}
	return "(SELECT " + call + " FROM " + from + ")"
}

// sortRows puts the rows in the order of the last argument, as WITHIN GROUP does.
func (g *group) sortRows(t *testing.T) {
	k := len(g.args) - 1
	v := g.vectors(t)[k]
	idx := make([]int, len(g.rows))
	for i := range idx {
		idx[i] = i
	}
	sort.SliceStable(idx, func(a, b int) bool {
		i, j := idx[a], idx[b]
		if v.Null(i) || v.Null(j) {
			return !v.Null(i) && v.Null(j)
		}
		return types.Compare(g.args[k], v, i, v, j) < 0
	})
	rows := make([][]string, len(idx))
	for i, j := range idx {
		rows[i] = g.rows[j]
	}
	g.rows = rows
}

func resultText(typ types.Type, out *columnar.Builder, err error) string {
	if err != nil {
		e := pgerror.As(err)
		return "ERROR " + e.Code + ": " + e.Message
	}
	v := out.Build()
	s := "NULL"
	if !v.Null(0) {
		s = QuoteLiteral(string(types.AppendText(nil, typ, v, 0, nil)))
	}
	return typ.OID.Name() + "|" + s
}

// closeEnough compares results; floats may differ in the last digits, since
// PostgreSQL rounds after each row.
func closeEnough(got, want string) bool {
	if got == want {
		return true
	}
	gt, gv, _ := strings.Cut(got, "|")
	wt, wv, _ := strings.Cut(want, "|")
	if gt != wt || gt != "real" && gt != "double precision" {
		return false
	}
	a, err1 := strconv.ParseFloat(strings.Trim(gv, "'"), 64)
	b, err2 := strconv.ParseFloat(strings.Trim(wv, "'"), 64)
	eps := 1e-12
	if gt == "real" {
		eps = 1e-6
	}
	return err1 == nil && err2 == nil && math.Abs(a-b) <= eps*max(1, math.Abs(a), math.Abs(b))
}

// moderate leaves out the values whose sums depend on the order of addition.
var moderate = map[types.OID][]string{
	types.OIDFloat8:   {"0", "1", "-1", "2.5", "-2.5", "0.5", "100", "0.25", "NaN", "Infinity", "-Infinity"},
	types.OIDFloat4:   {"0", "1", "-1", "2.5", "-2.5", "0.5", "100", "0.25", "NaN", "Infinity", "-Infinity"},
	types.OIDInterval: {"0", "1 day", "-1 day", "1 mon", "1 year 2 mons 3 days 04:05:06.789", "-1 year 2 days", "24:00:00", "-00:00:01"},
}

// notInPostgres tells the aggregates that PostgreSQL 15 does not have.
func notInPostgres(a *Aggregate) bool {
	switch a.Name {
	case "first_value", "last_value", "arg_min", "arg_max", "approx_percentile", "approx_count_distinct", "list_agg", "map_agg":
		return true
	case "min", "max":
		return a.Args[0].OID == types.OIDBytea
	}
	return Newer(a.Name)
}

func TestAggregatesAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	t.Logf("-seed=%d", *seed)
	r := rand.New(rand.NewSource(*seed))
	x := NewEval(testContext())
	for a := range AllAggregates() {
		if *only != "" && a.Name != *only || strings.Contains(a.Name, "json") || notInPostgres(a) {
			continue
		}
		var sqls, gots []string
		for range *many {
			g := randomGroup(r, a)
			if g == nil {
				continue
			}
			sqls = append(sqls, fmt.Sprintf("format('%%s|%%L', pg_typeof(%s), %s)", g.sql(a), g.sql(a)))
			gots = append(gots, evalGroup(t, x, a, g))
		}
		for i, want := range s.Eval(t, sqls) {
			if !closeEnough(gots[i], want.String()) {
				t.Errorf("%s\n got %s\nwant %s\n-seed=%d", sqls[i], gots[i], want, *seed)
			}
		}
	}
}

func randomGroup(r *rand.Rand, a *Aggregate) *group {
	g := &group{args: concrete(r, a.Args)}
	for k, p := range g.args {
		if a.Args[k].OID == types.OIDAnyArray {
			g.args[k] = types.Of(types.OIDInt4Array)
		}
		if literals[p.OID] == nil && moderate[p.OID] == nil {
			return nil
		}
	}
	special := r.Intn(4) == 0
	for range r.Intn(7) {
		var row []string
		for k, p := range g.args {
			vals := moderate[p.OID]
			if vals == nil {
				vals = literals[p.OID]
			} else if !special {
				vals = vals[:8]
			}
			if a.Ordered && k == 0 && len(g.args) == 2 {
				vals = []string{"0", "0.5", "1", "0.3", "-1"}
				if p.OID.IsArray() {
					vals = []string{"{0,0.5}", "{}", "{0.3,NULL,1}", "{{0.1},{0.9}}", "{2}"}
				}
				if len(g.rows) > 0 {
					vals = []string{g.rows[0][0]}
				}
			}
			v := vals[r.Intn(len(vals))]
			if r.Intn(8) == 0 && !(a.Ordered && k == 0 && len(g.args) == 2) {
				v = "NULL"
			}
			row = append(row, v)
		}
		g.rows = append(g.rows, row)
	}
	return g
}

// evalGroup computes the aggregate over the group; where it is invertible, also
// after rows that were added and taken back.
func evalGroup(t *testing.T, x *Eval, a *Aggregate, g *group) string {
	if a.Ordered {
		g.sortRows(t)
	}
	vecs := g.vectors(t)
	es := make([]Expr, len(g.args))
	for i, p := range g.args {
		es[i] = &Column{Index: i, Typ: p}
	}
	opts := CallOptions{Star: len(es) == 0}
	if a.Ordered {
		opts.Ordered = 1
	}
	fn, _, typ, err := ResolveAggregate(a.Name, es, opts)
	if err != nil {
		t.Fatal(err)
	}
	if fn != a {
		t.Fatalf("%s%v resolves to %v", a.Name, g.args, fn.Args)
	}
	out := columnar.NewBuilder(typ.Kind(), 1)
	err = a.Collect(x, &AggregateCall{Fn: a, Args: g.args, Typ: typ}, vecs, 0, len(g.rows), out)
	got := resultText(typ, out, err)
	acc, invertible := NewAccumulator(a, g.args, typ)
	if acc == nil {
		return got
	}
	for round := range 3 {
		for i := range g.rows {
			diff := int64(1)
			if round == 1 {
				diff = -1
			}
			if round == 1 && !invertible {
				continue
			}
			if err = acc.Add(x, vecs, i, diff); err != nil {
				break
			}
		}
		if round == 1 && !invertible {
			acc.Reset()
		}
	}
	out = columnar.NewBuilder(typ.Kind(), 1)
	if err == nil {
		err = acc.Value(x, out)
	}
	if again := resultText(typ, out, err); again != got {
		t.Errorf("%s%v over %v: %s, by its accumulator %s", a.Name, g.args, g.rows, got, again)
	}
	return got
}
