package render_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/types"
)

// orderedGen writes queries whose answer depends on an order: window functions
// and aggregates WITHIN GROUP.
type orderedGen struct{ rng *rand.Rand }

func (g orderedGen) choose(options ...string) string { return options[g.rng.IntN(len(options))] }

// orderedTable is what they are over; id tells rows apart, but rows may occur twice.
const orderedTable = "CREATE TABLE w (id int, g int, k int, n numeric, t text, d interval, f float8)"

// row is a row of w as VALUES.
func (g orderedGen) row(id int) string {
	null := func(s string) string {
		if g.rng.IntN(7) == 0 {
			return "NULL"
		}
		return s
	}
	return fmt.Sprintf("(%d, %d, %s, %s, %s, %s, %s)", id, g.rng.IntN(2), null(fmt.Sprint(g.rng.IntN(9))),
		null(g.choose("1", "1.0", "1.00", "2.5", "-3", "0.25", "10.50")),
		null(g.choose("'a'", "'b'", "'a longer text with a tail'", "'a longer text with a tale'", "''")),
		null(g.choose("'1 day'", "'24 hours'", "'1 mon'", "'30 days'", "'00:00:01'")),
		null(g.choose("0.5", "-1", "1e10", "0", "3.25")))
}

func (g orderedGen) column() string { return g.choose("id", "k", "k", "n", "t", "d", "f") }

func (g orderedGen) aggregate(total bool) string {
	if total && g.rng.IntN(6) == 0 {
		return g.choose("array_agg(k)", "string_agg(t, '|')", "jsonb_agg(k)")
	}
	if !total && g.rng.IntN(3) == 0 {
		// Which of equal values that look different it is, is open.
		return g.choose("min(", "max(") + g.choose("n::numeric(8,3)", "t", "k", "f", "justify_interval(d)") + ")"
	}
	return g.choose("sum(k)", "sum(n)", "avg(n)", "count(*)", "count("+g.column()+")",
		"min(k)", "max(k)", map[bool]string{true: g.choose("min(", "max(") + g.column() + ")", false: "max(t)"}[total], "sum(d)", "avg(d)", "sum(f)", "avg(k)", "stddev(k)", "var_pop(f)", "bool_and(k > 1)", "bool_or(k > 7)",
		"bit_or(k)", "regr_slope(f, k)", "corr(k, f)")
}

// call is a window function over a frame. total: the order tells all rows apart.
func (g orderedGen) call(total bool) (fn, frame string) {
	unit := g.choose("RANGE", "GROUPS")
	if total {
		unit = g.choose("ROWS", "ROWS", "RANGE", "GROUPS")
	}
	bounds := []string{"CURRENT ROW"}
	if unit == "ROWS" {
		n := fmt.Sprint(g.rng.IntN(4))
		bounds = append(bounds, n+" PRECEDING", n+" FOLLOWING", "CURRENT ROW")
	}
	start, end := g.choose(bounds...), g.choose(bounds...)
	switch g.rng.IntN(5) {
	case 0, 1:
		start = "UNBOUNDED PRECEDING"
	case 2:
		end = "UNBOUNDED FOLLOWING"
	case 3:
		start, end = "UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"
	default:
		if strings.HasSuffix(start, "FOLLOWING") && !strings.HasSuffix(end, "FOLLOWING") || strings.HasPrefix(start, "CURRENT") && strings.HasSuffix(end, "PRECEDING") {
			start, end = end, start
		}
	}
	frame = " " + unit + " BETWEEN " + start + " AND " + end
	if g.rng.IntN(4) == 0 {
		frame += " EXCLUDE " + g.choose("CURRENT ROW", "GROUP", "TIES")
	}
	if g.rng.IntN(4) == 0 {
		frame = ""
	}
	if g.rng.IntN(3) > 0 {
		filter := ""
		if g.rng.IntN(4) == 0 {
			filter = " FILTER (WHERE " + g.choose("k > 2", "t = 'a'") + ")"
		}
		return g.aggregate(total && strings.Count(frame, "UNBOUNDED") < 2) + filter, frame
	}
	if !total {
		return g.choose("rank()", "dense_rank()", "percent_rank()", "cume_dist()"), ""
	}
	switch g.rng.IntN(4) {
	case 0:
		return g.choose("first_value(", "last_value(") + g.column() + g.choose(")", ")", ") IGNORE NULLS"), frame
	case 1:
		return "nth_value(" + g.column() + ", " + g.choose("1", "2", "5", "30") + g.choose(")", ")", ") IGNORE NULLS"), frame
	case 2:
		return g.choose("lag(", "lead(") + g.choose("k", g.column()) + g.choose(")", ", 3)", ", 0)", ") IGNORE NULLS", ", 3) IGNORE NULLS", ", -2) IGNORE NULLS"), ""
	}
	return g.choose("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(3)", "ntile(7)"), ""
}

func (g orderedGen) window() string {
	if g.rng.IntN(4) == 0 {
		return g.wide()
	}
	total := g.rng.IntN(2) == 0
	order := " ORDER BY " + g.column() + g.choose("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
	if total {
		order += ", id" + g.choose("", " DESC") + ", g, k, n, n::text, t, d, d::text, f"
	}
	sql := "SELECT id, g, n::text, d::text"
	part := g.choose("", "PARTITION BY g", "PARTITION BY g")
	for range 1 + g.rng.IntN(3) {
		fn, frame := g.call(total)
		sql += ", " + fn + " OVER (" + part + order + frame + ")"
	}
	return sql + " FROM w"
}

// wide is a query over frames by distances of the order, or of peer groups.
func (g orderedGen) wide() string {
	by := g.choose("id", "id", "k", "n", "f", "d")
	off := func() string {
		if by == "d" {
			return g.choose("'1 day'", "'10 days'", "'00:00:01'")
		}
		return fmt.Sprint(g.rng.IntN(6))
	}
	unit := g.choose("RANGE", "RANGE", "GROUPS")
	if unit == "GROUPS" {
		off = func() string { return fmt.Sprint(g.rng.IntN(6)) }
	}
	var frame string
	switch a, b := off(), off(); g.rng.IntN(9) {
	case 6:
		frame = "UNBOUNDED PRECEDING AND " + a + g.choose(" PRECEDING", " FOLLOWING")
	case 7:
		frame = a + g.choose(" PRECEDING", " FOLLOWING") + " AND UNBOUNDED FOLLOWING"
	case 8:
		frame = g.choose("UNBOUNDED PRECEDING AND CURRENT ROW", "CURRENT ROW AND UNBOUNDED FOLLOWING")
	case 0:
		frame = a + " PRECEDING AND CURRENT ROW"
	case 1:
		frame = "CURRENT ROW AND " + a + " FOLLOWING"
	case 2:
		if by != "d" && a < b {
			a, b = b, a
		}
		frame = a + " PRECEDING AND " + b + " PRECEDING"
	case 3:
		if by != "d" && a > b {
			a, b = b, a
		}
		frame = a + " FOLLOWING AND " + b + " FOLLOWING"
	default:
		frame = a + " PRECEDING AND " + b + " FOLLOWING"
	}
	if g.rng.IntN(5) == 0 {
		frame += " EXCLUDE " + g.choose("CURRENT ROW", "GROUP", "TIES")
	}
	over := " OVER (" + g.choose("", "PARTITION BY g ") + "ORDER BY " + by + g.choose("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
	sql := "SELECT id, g, n::text, d::text, " + g.aggregate(false) + over + " " + unit + " BETWEEN " + frame + ")"
	if g.rng.IntN(3) == 0 {
		sql += ", " + g.aggregate(false) + over + ")"
	}
	return sql + " FROM w"
}

// ranks is a GROUP BY with aggregates WITHIN GROUP.
func (g orderedGen) ranks() string {
	by := g.choose("k", "k", "f", "d", "n", "t")
	desc := g.choose("", " DESC")
	var aggs []string
	for range 1 + g.rng.IntN(3) {
		if g.rng.IntN(5) == 0 {
			by, desc = g.choose("k", "f", "d", "n", "t"), g.choose("", " DESC")
		}
		fraction := g.choose("0.5", "0", "1", "0.9", "0.333", "NULL::float8", "'{0.1,0.5,1}'::float8[]", "'{{0,NULL},{0.25,0.75}}'::float8[]", "(g / 2.0)")
		shown := by
		fn := "percentile_disc(" + fraction + ")"
		switch g.rng.IntN(3) {
		case 0:
			if by != "t" {
				fn = "percentile_cont(" + fraction + ")"
			}
		case 1:
			fn = "mode()"
		}
		filter := ""
		if g.rng.IntN(4) == 0 {
			filter = " FILTER (WHERE id % 3 > 0)"
		}
		agg := fn + " WITHIN GROUP (ORDER BY " + shown + desc + ")" + filter
		if strings.HasPrefix(fn, "mode") || by == "n" || by == "d" {
			// Which of equal values that look different is shown is open.
			agg = map[string]string{"n": "(" + agg + ")", "d": "(" + agg + ")"}[by]
			if agg == "" {
				agg = fn + " WITHIN GROUP (ORDER BY " + shown + desc + ")" + filter
			} else if strings.Contains(fraction, "{") && !strings.HasPrefix(fn, "mode") {
				agg = "(" + agg + ")[1] > " + map[string]string{"n": "1", "d": "'1 day'"}[by]
			} else {
				agg += " > " + map[string]string{"n": "1", "d": "'1 day'"}[by]
			}
		}
		if g.rng.IntN(4) == 0 {
			agg += ", " + g.choose("count(*)", "sum(k)", "array_agg(id ORDER BY id)")
		}
		aggs = append(aggs, agg)
	}
	return "SELECT g, " + strings.Join(aggs, ", ") + " FROM w GROUP BY g"
}

// apart are the aggregates that PostgreSQL rounds more than once, and what it does
// not have.
var apart = regexp.MustCompile(`regr_slope|corr|var_pop|IGNORE NULLS`)

// TestOrdered keeps random queries over an order up to date, with indexes of tiny
// blocks, under small changes; each epoch it compares them with the query run
// anew, and at the end with PostgreSQL.
func TestOrdered(t *testing.T) {
	srv := oracle.Connect(t)
	rounds := *queries
	for _, s := range seeds() {
		srv.Exec(t, "ROLLBACK; BEGIN; CREATE SCHEMA rendertest; SET LOCAL search_path TO rendertest; "+orderedTable)
		g := orderedGen{rand.New(rand.NewPCG(s, 5))}
		for i := range rounds {
			sql := g.window()
			if i%3 == 0 {
				sql = g.ranks()
			}
			d := newDB()
			d.exec(t, orderedTable)
			var rows []string
			for id := range 4 + g.rng.IntN(8+g.rng.IntN(100)) {
				rows = append(rows, g.row(id))
			}
			d.exec(t, "INSERT INTO w VALUES "+strings.Join(rows, ", "))
			orderedRound(t, d, g, fmt.Sprintf("-seed=%d, query %d", s, i), sql)
			if !apart.MatchString(sql) {
				orderedPostgres(t, srv, d, fmt.Sprintf("-seed=%d, query %d", s, i), sql)
			}
			if t.Failed() {
				return
			}
		}
		srv.Exec(t, "ROLLBACK")
	}
}

func orderedRound(t *testing.T, d *db, g orderedGen, pos, sql string) {
	t.Helper()
	m, err := d.maintainWith(sql, render.Options{Context: session(), Partitions: 1 << g.rng.IntN(3), BlockRows: 1 + g.rng.IntN(4)})
	if err != nil {
		t.Fatalf("%s: %s: %v", pos, sql, err)
	}
	for epoch := range 12 {
		if epoch > 0 {
			d.nudge(g.rng, m)
		}
		if g.rng.IntN(8) == 0 {
			m.df.Circuit.Forget()
		}
		m.step(dataflow.Epoch(epoch + 1))
		want, err := d.query(sql)
		got, code := m.result()
		if (err != nil) != (code != "") || err == nil && !slices.Equal(sorted(want), got) {
			t.Fatalf("%s, epoch %d:\n%s\nmaintained: %s\n  %s\nonce: %v\n  %s", pos, epoch, sql, code, strings.Join(got, "\n  "), err, strings.Join(sorted(want), "\n  "))
		}
	}
}

// nudge changes a few rows of every table.
func (d *db) nudge(rng *rand.Rand, m *maintained) {
	for id, tab := range d.tables {
		b, diffs := tab.content()
		x := &dataflow.Delta{}
		var idx []uint32
		for range 1 + rng.IntN(4) {
			i := rng.IntN(b.N)
			diff := int64(1)
			if diffs[i] > 0 && rng.IntN(4) > 0 {
				diff = -1
			}
			diffs[i] += diff
			idx, x.Diffs = append(idx, uint32(i)), append(x.Diffs, diff)
		}
		x.Batch = b.Gather(idx)
		tab.deltas = append(tab.deltas, x)
		m.push(id, x)
	}
}

// orderedPostgres compares a query run once with PostgreSQL.
func orderedPostgres(t *testing.T, srv *oracle.Server, d *db, pos, sql string) {
	t.Helper()
	srv.Exec(t, "TRUNCATE w")
	for _, tab := range d.tables {
		b, diffs := tab.content()
		var rows []string
		for i := range b.N {
			var vals []string
			for c, col := range tab.obj.Columns {
				v := "NULL"
				if !b.Cols[c].Null(i) {
					v = "'" + string(types.AppendText(nil, col.Type, b.Cols[c], i, nil)) + "'"
				}
				vals = append(vals, v)
			}
			for range diffs[i] {
				rows = append(rows, "("+strings.Join(vals, ",")+")")
			}
		}
		if len(rows) > 0 {
			srv.Exec(t, "INSERT INTO w VALUES "+strings.Join(rows, ", "))
		}
	}
	srv.Exec(t, "SAVEPOINT s")
	want, wantErr := pgRows(srv.Conn, sql)
	srv.Exec(t, "ROLLBACK TO s")
	got, err := d.query(sql)
	if code(err) != code(wantErr) || err == nil && !slices.Equal(sorted(got), sorted(want)) {
		t.Fatalf("%s:\n%s\nours: %v\n  %s\nPostgreSQL: %v\n  %s", pos, sql, err, strings.Join(sorted(got), "\n  "), wantErr, strings.Join(sorted(want), "\n  "))
	}
}
