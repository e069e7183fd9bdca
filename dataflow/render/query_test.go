package render_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/internal/datadriven"
	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// The files under testdata/query are SQL and its rows, as PostgreSQL gives them:
//
//	exec      CREATE TABLE, INSERT, DELETE
//	query     a query; its rows are compared in any order
//	ordered   a query; the order of its rows counts
//
// with once, where a query cannot be maintained (it has no place in a view), and
// ours, where PostgreSQL does not know the syntax.

// TestQueries runs every query once, and maintained while its tables grow and
// shrink.
func TestQueries(t *testing.T) {
	datadriven.Walk(t, "testdata/query", func(t *testing.T) func(c *datadriven.Case) string {
		d := newDB()
		return func(c *datadriven.Case) string {
			if c.Cmd == "exec" {
				d.exec(t, c.Input)
				return ""
			}
			rows, err := d.query(c.Input)
			if c.Cmd == "query" {
				rows = sorted(rows)
			}
			if !c.Has("once") {
				d.checkMaintained(t, c)
			}
			return outcome(rows, err)
		}
	})
}

// TestQueriesPostgres holds the expected rows to a real PostgreSQL; with
// -rewrite it writes them.
func TestQueriesPostgres(t *testing.T) {
	srv := oracle.Connect(t)
	datadriven.Walk(t, "testdata/query", func(t *testing.T) func(c *datadriven.Case) string {
		srv.Exec(t, "ROLLBACK; BEGIN; CREATE SCHEMA rendertest; SET LOCAL search_path TO rendertest")
		t.Cleanup(func() { srv.Exec(t, "ROLLBACK") })
		return func(c *datadriven.Case) string {
			if c.Cmd == "exec" {
				srv.Exec(t, strings.ReplaceAll(c.Input, " APPEND ONLY", ""))
				return ""
			}
			if c.Has("ours") {
				return c.Want
			}
			srv.Exec(t, "SAVEPOINT s")
			rows, err := pgRows(srv.Conn, c.Input)
			srv.Exec(t, "ROLLBACK TO s")
			if c.Cmd == "query" {
				rows = sorted(rows)
			}
			return outcome(rows, err)
		}
	})
}

// pgRows is the rows of a query by PostgreSQL, as rowText writes them.
func pgRows(conn *pgx.Conn, sql string) ([]string, error) {
	rs, err := conn.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		var e *pgconn.PgError
		if errors.As(err, &e) {
			return nil, &pgerror.Error{Code: e.Code, Message: e.Message}
		}
		return nil, err
	}
	var out []string
	for _, row := range rs[0].Rows {
		vals := make([]string, len(row))
		for i, v := range row {
			vals[i] = string(v)
			if v == nil {
				vals[i] = "NULL"
			}
		}
		out = append(out, strings.Join(vals, "|"))
	}
	return out, nil
}

// checkMaintained keeps a query up to date while rows of its tables come and
// go, and compares it with the query run anew after each epoch.
func (d *db) checkMaintained(t *testing.T, c *datadriven.Case) {
	for _, partitions := range []int{1, 4} {
		d := d.copy()
		m, err := d.maintainWith(c.Input, render.Options{Context: session(), Partitions: partitions, BlockRows: partitions})
		if err != nil {
			if _, err := d.query(c.Input); err == nil {
				t.Errorf("%s: maintained: %v", c.Pos, err)
			}
			return
		}
		rng := rand.New(rand.NewPCG(1, uint64(len(c.Input))))
		for epoch := range 6 {
			if epoch > 0 {
				d.disturb(rng, m)
			}
			m.step(dataflow.Epoch(epoch + 1))
			if !d.compare(t, c, m, epoch) {
				return
			}
		}
	}
}

// compare compares a maintained query with the same query run once.
func (d *db) compare(t *testing.T, c *datadriven.Case, m *maintained, epoch int) bool {
	want, err := d.query(c.Input)
	got, code := m.result()
	switch {
	case err != nil && code == "":
		t.Errorf("%s: epoch %d: maintained has rows, run once: %v", c.Pos, epoch, err)
	case err != nil:
		return true // which of several errors is found is open
	case code != "":
		t.Errorf("%s: epoch %d: maintained: %s, run once has rows", c.Pos, epoch, code)
	case !slices.Equal(sorted(want), got):
		t.Errorf("%s: epoch %d:\n%s\nmaintained:\n  %s\nonce:\n  %s", c.Pos, epoch, c.Input,
			strings.Join(got, "\n  "), strings.Join(sorted(want), "\n  "))
	default:
		return true
	}
	return false
}

// copy is a database that may change on its own.
func (d *db) copy() *db {
	c := *d
	c.tables = map[plan.ObjectID]*table{}
	for id, tab := range d.tables {
		c.tables[id] = &table{obj: tab.obj, deltas: slices.Clone(tab.deltas)}
	}
	return &c
}

// disturb deletes some rows of every table and brings back others, in the
// tables and in a maintained query alike.
func (d *db) disturb(rng *rand.Rand, m *maintained) {
	for _, id := range slices.Sorted(maps.Keys(d.tables)) {
		tab := d.tables[id]
		if tab.obj.AppendOnly {
			continue
		}
		b, diffs := tab.content()
		x := &dataflow.Delta{}
		var idx []uint32
		for i := range b.N {
			switch n := diffs[i]; {
			case rng.IntN(3) > 0:
			case n > 0 && (n > 1 || rng.IntN(2) == 0):
				idx, x.Diffs = append(idx, uint32(i)), append(x.Diffs, -1)
			case n == 0 || tab.obj.PrimaryKey == nil:
				idx, x.Diffs = append(idx, uint32(i)), append(x.Diffs, 1)
			}
		}
		if len(idx) == 0 {
			continue
		}
		x.Batch = b.Gather(idx)
		tab.deltas = append(tab.deltas, x)
		m.push(id, x)
	}
}

// content is every row that the table ever had, with its present count.
func (tab *table) content() (columnar.Batch, []int64) {
	kinds := make([]columnar.Kind, len(tab.obj.Columns))
	typs := make([]types.Type, len(tab.obj.Columns))
	for i, c := range tab.obj.Columns {
		kinds[i], typs[i] = c.Type.Kind(), c.Type
	}
	parts := make([]*columnar.Batch, len(tab.deltas))
	var diffs []int64
	for i, x := range tab.deltas {
		parts[i] = &x.Batch
		for j := range x.N {
			diffs = append(diffs, x.Diff(j))
		}
	}
	all := columnar.ConcatBatches(kinds, parts...)
	at := map[string]int{}
	var idx []uint32
	var sums []int64
	for i := range all.N {
		key := rowText(typs, &all, i)
		j, ok := at[key]
		if !ok {
			j = len(idx)
			at[key] = j
			idx, sums = append(idx, uint32(i)), append(sums, 0)
		}
		sums[j] += diffs[i]
	}
	return all.Gather(idx), sums
}
