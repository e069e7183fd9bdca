package coord_test

import (
	"context"
	"fmt"
	"testing"
)

// TestValueFunctionsBehindExclude holds first_value, last_value and nth_value
// against the array of their frames. PostgreSQL is no oracle here: it miscounts
// what is excluded if the frame does not hold the current row.
func TestValueFunctionsBehindExclude(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	conn := d.connect()
	ctx := context.Background()
	d.exec(conn, "CREATE TABLE x (id int PRIMARY KEY, g int, k int, v int)")
	d.exec(conn, "INSERT INTO x SELECT i, i % 3, i * 7 % 11 / 2, nullif(i % 5, 0) FROM generate_series(1, 60) i")
	bounds := []string{"UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "2 FOLLOWING", "UNBOUNDED FOLLOWING"}
	n := 0
	for _, unit := range []string{"ROWS", "GROUPS", "RANGE"} {
		for i, lo := range bounds[:6] {
			for _, hi := range bounds[max(i, 1):] {
				for _, exclude := range []string{"CURRENT ROW", "GROUP", "TIES", "NO OTHERS"} {
					order := "k, id"
					if unit == "RANGE" {
						order = "k"
					}
					if unit != "RANGE" && n%2 == 0 {
						order = "k" // rows of equal k in the order that all functions of a window see
					}
					n++
					view := fmt.Sprintf(`SELECT id, g, v, first_value(v) OVER w AS f, last_value(v) OVER w AS l, nth_value(v, 2) OVER w AS n, array_agg(v) OVER w AS a
						FROM x WINDOW w AS (PARTITION BY g ORDER BY %s %s BETWEEN %s AND %s EXCLUDE %s)`, order, unit, lo, hi, exclude)
					wrong := fmt.Sprintf(`SELECT count(*) FROM (%s) y
						WHERE f IS DISTINCT FROM a[1] OR l IS DISTINCT FROM a[cardinality(a)] OR n IS DISTINCT FROM a[2]`, view)
					var rows int
					if err := conn.QueryRow(ctx, wrong).Scan(&rows); err != nil {
						t.Fatal(wrong, err)
					}
					if rows != 0 {
						t.Errorf("%d rows differ: %s", rows, view)
					}
				}
			}
		}
	}
}
