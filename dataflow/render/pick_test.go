package render_test

import (
	"slices"
	"testing"

	"github.com/streamdb/streamdb/internal/datadriven"
	"github.com/streamdb/streamdb/internal/oracle"
)

// picks are queries with what PostgreSQL 15 does not have, and what says the
// same in its SQL.
var picks = []struct{ sql, same string }{
	{"SELECT a, first_value(b ORDER BY s, b), last_value(b ORDER BY s, b) FROM r GROUP BY a",
		"SELECT a, (array_agg(b ORDER BY s, b))[1], (array_agg(b ORDER BY s DESC, b DESC))[1] FROM r GROUP BY a"},
	{"SELECT first_value(b ORDER BY s DESC NULLS LAST, b NULLS FIRST), last_value(s ORDER BY b NULLS FIRST, s), first_value(a ORDER BY a) FILTER (WHERE b > 0) FROM r",
		"SELECT (array_agg(b ORDER BY s DESC NULLS LAST, b NULLS FIRST))[1], (array_agg(s ORDER BY b DESC NULLS LAST, s DESC))[1], (array_agg(a ORDER BY a) FILTER (WHERE b > 0))[1] FROM r"},
	{"SELECT s, first_value(DISTINCT a ORDER BY a DESC) FROM r GROUP BY s", "SELECT s, (array_agg(DISTINCT a ORDER BY a DESC))[1] FROM r GROUP BY s"},
	{"SELECT first_value(b IGNORE NULLS ORDER BY a, b) FROM r", "SELECT (array_agg(b ORDER BY a, b) FILTER (WHERE b IS NOT NULL))[1] FROM r"},
	{"SELECT s, first_value(n ORDER BY n, a)::float8 FROM r GROUP BY s", "SELECT s, (array_agg(n ORDER BY n, a))[1]::float8 FROM r GROUP BY s"},
	{"SELECT s, arg_min(a, b ORDER BY a), arg_max(a, n ORDER BY a) FROM r GROUP BY s",
		"SELECT s, (array_agg(a ORDER BY b, a) FILTER (WHERE b IS NOT NULL AND a IS NOT NULL))[1], (array_agg(a ORDER BY n DESC, a) FILTER (WHERE n IS NOT NULL AND a IS NOT NULL))[1] FROM r GROUP BY s"},
	{"SELECT a, arg_min(s, b) OVER (ORDER BY a ROWS 2 PRECEDING) FROM p", "SELECT a, (SELECT (array_agg(s ORDER BY b, a) FILTER (WHERE s IS NOT NULL))[1] FROM (SELECT * FROM p x WHERE x.a <= y.a ORDER BY a DESC LIMIT 3) z) FROM p y"},
	{"SELECT s, approx_count_distinct(n) FROM r GROUP BY s", "SELECT s, count(DISTINCT n) FROM r GROUP BY s"},
	{"SELECT a, b, lag(b IGNORE NULLS) OVER (ORDER BY a, b, s) FROM r",
		"SELECT a, b, (SELECT (array_agg(b ORDER BY i DESC))[1] FROM (SELECT *, row_number() OVER (ORDER BY a, b, s) i FROM r) x WHERE x.i < y.i AND b IS NOT NULL) FROM (SELECT *, row_number() OVER (ORDER BY a, b, s) i FROM r) y"},
	{"SELECT a, b, lead(b, 2, -1) IGNORE NULLS OVER (ORDER BY a, b, s) FROM r",
		"SELECT a, b, coalesce((SELECT (array_agg(b ORDER BY i))[2] FROM (SELECT *, row_number() OVER (ORDER BY a, b, s) i FROM r) x WHERE x.i > y.i AND b IS NOT NULL), -1) FROM (SELECT *, row_number() OVER (ORDER BY a, b, s) i FROM r) y"},
	{"SELECT a, first_value(s IGNORE NULLS) OVER w, last_value(s) IGNORE NULLS OVER w FROM p WINDOW w AS (ORDER BY a ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
		"SELECT a, l[1], l[cardinality(l)] FROM (SELECT a, array_remove(array_agg(s) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), NULL) l FROM p) x"},
	{"SELECT a, nth_value(b, 2) IGNORE NULLS OVER (ORDER BY a, b, s ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) FROM p",
		"SELECT a, (array_remove(array_agg(b) OVER (ORDER BY a, b, s ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW), NULL))[2] FROM p"},
	{"SELECT * EXCEPT (r.n, q.s) FROM r JOIN q USING (a)", "SELECT a, r.b, r.s, q.b, q.n FROM r JOIN q USING (a)"},
	{"SELECT r.* EXCEPT (n) FROM r", "SELECT a, b, s FROM r"},
	{"SELECT a, b FROM r UNION CORRESPONDING BY (b, a) SELECT b, s, a FROM q", "SELECT b, a FROM r UNION SELECT b, a FROM q"},
	{"SELECT a, s FROM r INTERSECT CORRESPONDING SELECT b, s FROM q", "SELECT s FROM r INTERSECT SELECT s FROM q"},
	{"SELECT a, s FROM r EXCEPT ALL CORRESPONDING SELECT s, b FROM q", "SELECT s FROM r EXCEPT ALL SELECT s FROM q"},
	{"SELECT s, AGGREGATE:array_sum(b) FROM r GROUP BY s", "SELECT s, sum(b) FROM r GROUP BY s"},
	{"SELECT a, array_transform(ARRAY[a, b, NULL], |x| x * 2 + r.a), array_filter(ARRAY[a, b], |x| x > r.b - 1) FROM r",
		"SELECT a, ARRAY[a*2+a, b*2+a, NULL], (SELECT coalesce(array_agg(x), '{}') FROM (VALUES (1, a), (2, b)) v(i, x) WHERE x > r.b - 1) FROM r"},
	{"SELECT (row(a, s)::struct<x int, \"y z\" varchar>).x, (row(a, s)::struct<x int, \"y z\" varchar>).\"y z\" FROM r", "SELECT a, s FROM r"},
	{"SELECT (row(a, row(b, s))::struct<x int, y struct<b int, s text>>).y::struct<p text, q varchar>::text FROM r", "SELECT row(b, s)::text FROM r"},
	{"SELECT MAP{'k': a, 'l': b}['l'], map_length(MAP{1: a}), map_contains(MAP{a: 1, -1: 2}, b) FROM p", "SELECT b, 1, a = b FROM p"},
	{"SELECT MAP{1: a, 2: b}::text, to_jsonb(MAP{'x': a}), (MAP{'1': a}::map(int, text))[1] FROM r",
		"SELECT '{1:' || coalesce(a::text, 'NULL') || ',2:' || coalesce(b::text, 'NULL') || '}', jsonb_build_object('x', a), a::text FROM r"},
	{"SELECT map_keys(m), map_values(m), map_entries(m)::text FROM (SELECT map_from_key_values(ARRAY[1, a + 2], ARRAY[b, 5]) m FROM p) x", "SELECT ARRAY[1, a + 2], ARRAY[b, 5], ARRAY[row(1, b), row(a + 2, 5)]::text FROM p"},
	{"SELECT map_cat(MAP{1: a}, MAP{2: b})::text, map_insert(MAP{1: a, 2: 0}, 1, b)::text, map_delete(MAP{1: a, 2: b}, 1)::text FROM p",
		"SELECT format('{1:%s,2:%s}', a, b), format('{2:0,1:%s}', b), format('{2:%s}', b) FROM p"},
	{"SELECT map_values(map_filter(MAP{'x': a, 'y': b}, |k, v| v > p.b - 1 AND k <> 'z')) FROM p", "SELECT CASE WHEN a > b - 1 THEN ARRAY[a, b] ELSE ARRAY[b] END FROM p"},
	{"SELECT map_values(jsonb_populate_map(MAP{'x': a}, jsonb_build_object('y', b))), (map_from_entries(ARRAY[row('q', a)]))['q'] FROM r", "SELECT ARRAY[a, b], a FROM r"},
	{"SELECT s, min(s::bytea), max(s::bytea) FROM r GROUP BY s", "SELECT s, s::bytea, s::bytea FROM (SELECT DISTINCT s FROM r) x"},
	{"SELECT x FROM r, range(0, b) x", "SELECT x FROM r, generate_series(0, b - 1) x"},
	{"SELECT x FROM r, range(b, a, -1) x", "SELECT x FROM r, generate_series(b, a + 1, -1) x"},
}

// TestPicks compares queries with their equivalents in PostgreSQL, and with
// themselves maintained under random changes.
func TestPicks(t *testing.T) {
	d, setup := genDB(t)
	srv := oracle.Connect(t)
	srv.Exec(t, "ROLLBACK; BEGIN; CREATE SCHEMA picktest; SET LOCAL search_path TO picktest")
	defer srv.Exec(t, "ROLLBACK")
	for _, sql := range setup {
		srv.Exec(t, sql)
	}
	for _, p := range picks {
		srv.Exec(t, "SAVEPOINT s")
		want, err := pgRows(srv.Conn, p.same)
		if err != nil {
			t.Fatalf("%s: %s", p.same, err)
		}
		got, err := d.query(p.sql)
		if err != nil || !slices.Equal(sorted(got), sorted(want)) {
			t.Errorf("%s\n     ours: %v %v\nPostgreSQL: %v", p.sql, sorted(got), err, sorted(want))
			continue
		}
		d.checkMaintained(t, &datadriven.Case{Pos: p.sql, Input: p.sql})
	}
}
