package coord_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestPointReads compares prepared reads by key, which take a way of their own,
// with a model, under random changes, in a table, in a view by its key, and
// through an index; also in a transaction that has changed the rows itself.
func TestPointReads(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	ctx := context.Background()
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(ctx)
	for _, sql := range []string{
		"CREATE TABLE p (a int, b text, v bigint, PRIMARY KEY (a, b))",
		"CREATE INDEX p_v ON p (v)",
		"CREATE MATERIALIZED VIEW m AS SELECT a, b, max(v) AS v FROM p GROUP BY a, b",
	} {
		d.exec(c, sql)
	}
	type key struct {
		a int32
		b string
	}
	model := map[key]int64{}
	rows := func(sql string, args ...any) string {
		t.Helper()
		got, err := c.Query(ctx, sql, args...)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		var out []string
		for got.Next() {
			v, err := got.Values()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprint(v...))
		}
		if err := got.Err(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return strings.Join(out, ";")
	}
	change := func() {
		k := key{int32(r.IntN(8)), fmt.Sprintf("key %d", r.IntN(8))}
		switch _, there := model[k]; {
		case there && r.IntN(2) == 0:
			d.exec(c, fmt.Sprintf("DELETE FROM p WHERE a = %d AND b = '%s'", k.a, k.b))
			delete(model, k)
		case there:
			v := r.Int64N(50)
			d.exec(c, fmt.Sprintf("UPDATE p SET v = %d WHERE a = %d AND b = '%s'", v, k.a, k.b))
			model[k] = v
		default:
			v := r.Int64N(50)
			d.exec(c, fmt.Sprintf("INSERT INTO p VALUES (%d, '%s', %d)", k.a, k.b, v))
			model[k] = v
		}
	}
	check := func() {
		t.Helper()
		k := key{int32(r.IntN(8)), fmt.Sprintf("key %d", r.IntN(8))}
		v, there := model[k]
		for _, q := range []string{"SELECT v, a FROM p WHERE a = $1 AND b = $2", "SELECT v, a FROM m WHERE b = $2 AND $1 = a",
			"SELECT v, a FROM p WHERE a = $1 AND b = $2 AND v >= 0"} {
			want := ""
			if there {
				want = fmt.Sprint(v, k.a)
			}
			if got := rows(q, k.a, k.b); got != want {
				t.Fatalf("%s with %v: %q, want %q", q, k, got, want)
			}
		}
		n, x := 0, r.Int64N(50)
		for _, v := range model {
			if v == x {
				n++
			}
		}
		got := rows("SELECT b FROM p WHERE v = $1", x)
		if got != "" {
			n -= strings.Count(got, ";") + 1
		}
		if n != 0 {
			t.Fatalf("v = %d: %q, off by %d rows", x, got, n)
		}
	}
	for range 150 {
		if r.IntN(6) == 0 {
			d.exec(c, "BEGIN")
			for range 1 + r.IntN(4) {
				change()
				check()
			}
			d.exec(c, "COMMIT")
		} else {
			change()
		}
		check()
	}
	if got := rows("SELECT v FROM p WHERE a = $1 AND b = $2", nil, "key 1"); got != "" {
		t.Errorf("a NULL key gives %q", got)
	}
	d.exec(c, "CREATE TABLE broken (k int PRIMARY KEY, d int)")
	d.exec(c, "CREATE MATERIALIZED VIEW bm AS SELECT k, max(10 / d) AS x FROM broken GROUP BY k")
	d.exec(c, "INSERT INTO broken VALUES (1, 5), (2, 0)")
	var x int
	err := c.QueryRow(ctx, "SELECT x FROM bm WHERE k = $1", 1).Scan(&x)
	if err == nil || !strings.Contains(err.Error(), "22012") {
		t.Errorf("a row error of the view: %v", err)
	}
	d.exec(c, "DELETE FROM broken WHERE k = 2")
	if err := c.QueryRow(ctx, "SELECT x FROM bm WHERE k = $1", 1).Scan(&x); err != nil || x != 2 {
		t.Errorf("after the row error: %d, %v", x, err)
	}
}
