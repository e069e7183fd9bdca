package coord_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
)

// outerJoins are queries for which the optimizer infers filters through joins, cuts
// full joins into parts by the branches of an OR, or limits a side of a join. The
// second one is for PostgreSQL, which has no full joins on such conditions.
var outerJoins = [][2]string{
	{"SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k WHERE a.k = 2"},
	{"SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON a.k = b.k AND b.x > 1 LEFT JOIN c ON b.k = c.k WHERE a.k BETWEEN 1 AND 3"},
	{"SELECT a.id, b.id, c.id FROM (SELECT * FROM a WHERE k < 3) a JOIN b ON a.k = b.k LEFT JOIN c ON c.k IS NOT DISTINCT FROM b.x AND b.x = a.x"},
	{"SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON a.k = b.x LEFT JOIN c ON b.x IS NOT DISTINCT FROM c.x WHERE a.k = 1"},
	{"SELECT a.id FROM a LEFT JOIN b ON a.k = b.k WHERE a.k > 1 AND NOT EXISTS (SELECT 1 FROM c WHERE c.k = b.k)"},
	{"SELECT a.id, b.id FROM a, b WHERE a.id = b.k AND b.k = 3 AND a.k < 70000"},
	{"SELECT a.id, c.id FROM a JOIN c ON a.k = c.id AND a.k < 100000 AND a.x IS DISTINCT FROM c.x"},
	{"SELECT a.id, b.id FROM a FULL JOIN b ON a.k = b.k OR a.x = b.x AND a.id < b.id",
		"SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k OR a.x = b.x AND a.id < b.id UNION ALL SELECT NULL, b.id FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.k = b.k OR a.x = b.x AND a.id < b.id)"},
	{"SELECT a.id, b.id FROM a FULL JOIN b ON (a.k = b.k OR a.x = b.x) AND a.id <> b.id",
		"SELECT a.id, b.id FROM a LEFT JOIN b ON (a.k = b.k OR a.x = b.x) AND a.id <> b.id UNION ALL SELECT NULL, b.id FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE (a.k = b.k OR a.x = b.x) AND a.id <> b.id)"},
	{"SELECT a.x, b.x FROM (SELECT DISTINCT x, k FROM a) a FULL JOIN b ON a.k = b.k OR a.x = b.x OR a.x = b.k",
		"SELECT a.x, b.x FROM (SELECT DISTINCT x, k FROM a) a LEFT JOIN b ON a.k = b.k OR a.x = b.x OR a.x = b.k UNION ALL SELECT NULL, b.x FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.k = b.k OR a.x = b.x OR a.x = b.k)"},
	{"SELECT a.id, b.id FROM (SELECT a.id, a.k FROM a LEFT JOIN c ON a.x = c.x AND c.id = 1 ORDER BY a.id DESC LIMIT 5) a LEFT JOIN b ON a.k = b.k"},
	{"SELECT id FROM (SELECT a.id FROM a LEFT JOIN b ON a.id = b.id UNION ALL SELECT b.id FROM b) u ORDER BY id DESC LIMIT 7"},
	{"SELECT d.id, c.id, c.x FROM d JOIN c ON d.c = c.id ORDER BY d.x, d.id LIMIT 6 OFFSET 1"},
	{"SELECT d.id, c.id FROM d LEFT JOIN c ON d.e = c.id ORDER BY d.x DESC, d.id LIMIT 6"},
}

// TestOuterJoins compares such queries, and views of them, with PostgreSQL.
func TestOuterJoins(t *testing.T) {
	pg := oracle.Connect(t)
	seed, rounds := randomly(t, 1)
	d := open(t, t.TempDir())
	defer d.close()
	for round := range rounds {
		rnd := rand.New(rand.NewPCG(seed, uint64(round)))
		c := d.connect()
		schema := fmt.Sprintf("oj%x_%d", seed&0xffffffff, round)
		defer pg.Exec(t, "DROP SCHEMA IF EXISTS "+schema+" CASCADE")
		both := func(sql, theirs string) {
			t.Helper()
			if theirs == "" {
				theirs = sql
			}
			if a, b := answer(c, sql), answer(pg.Conn, theirs); a != b {
				t.Fatalf("%s\nstreamdb:\n%s\nPostgreSQL:\n%s\n%s", sql, a, b, answer(c, "EXPLAIN "+sql))
			}
		}
		for _, sql := range []string{
			"CREATE SCHEMA " + schema + "; SET search_path = " + schema,
			"CREATE TABLE a (id int PRIMARY KEY, k int, x int); CREATE TABLE b (id bigint PRIMARY KEY, k bigint, x int); CREATE TABLE c (id smallint PRIMARY KEY, k bigint, x int)",
			"CREATE TABLE d (id int PRIMARY KEY, c smallint NOT NULL REFERENCES c, e smallint REFERENCES c, x int)",
			"INSERT INTO c SELECT i, 1, 1 FROM generate_series(1, 9) i",
		} {
			both(sql, "")
		}
		for i, q := range outerJoins {
			names := []string{"p", "q", "r"}[:1+strings.Count(q[0][:strings.Index(q[0], " FROM")], ",")]
			if a := answer(c, fmt.Sprintf("CREATE MATERIALIZED VIEW v%d (%s) AS %s", i, strings.Join(names, ", "), q[0])); strings.HasPrefix(a, "ERROR") {
				t.Fatal(q[0], a)
			}
		}
		val := func() string {
			if rnd.IntN(5) == 0 {
				return "NULL"
			}
			return fmt.Sprint(rnd.IntN(5))
		}
		for range 5 {
			for _, table := range []string{"a", "b"} {
				for range 6 {
					both(fmt.Sprintf("INSERT INTO %s VALUES (%d, %s, %s) ON CONFLICT DO NOTHING", table, rnd.IntN(30), val(), val()), "")
				}
				both(fmt.Sprintf("DELETE FROM %s WHERE id = %d", table, rnd.IntN(30)), "")
			}
			both(fmt.Sprintf("UPDATE c SET k = %s, x = %s WHERE id = %d", val(), val(), 1+rnd.IntN(9)), "")
			both(fmt.Sprintf("INSERT INTO d SELECT coalesce(max(id), 0) + 1, %d, nullif(%d, 3), %s FROM d", 1+rnd.IntN(9), 1+rnd.IntN(9), val()), "")
			for i, q := range outerJoins {
				both(q[0], q[1])
				theirs := q[1]
				if theirs == "" {
					theirs = q[0]
				}
				if a := answer(c, fmt.Sprintf("SELECT * FROM v%d", i)); a != answer(pg.Conn, theirs) {
					t.Fatalf("the view of %s has\n%s", q[0], a)
				}
			}
		}
		c.Close(context.Background())
	}
}
