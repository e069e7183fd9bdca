package coord_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/streamdb/streamdb/coord"
)

// BenchmarkRangeRead reads ten rows by a range of a key of tables of several sizes:
// the cost follows the rows returned, not those of the table.
func BenchmarkRangeRead(b *testing.B) {
	for _, rows := range []int{10_000, 100_000, 1_000_000} {
		d := openWith(b, b.TempDir(), coord.Options{})
		conn := d.connect()
		d.exec(conn, "CREATE TABLE t (id int PRIMARY KEY, n numeric, s text)")
		d.exec(conn, fmt.Sprintf("INSERT INTO t SELECT i, i * 1.5, 'key ' || i FROM generate_series(1, %d) i", rows))
		d.exec(conn, "CREATE INDEX t_n ON t (n)")
		for name, sql := range map[string]string{
			"key":   "SELECT * FROM t WHERE id >= $1 AND id < $1 + 10",
			"index": "SELECT * FROM t WHERE n >= $1 ORDER BY n LIMIT 10",
		} {
			b.Run(fmt.Sprintf("%s/%d", name, rows), func(b *testing.B) {
				at := 0
				read := func() {
					at = (at + 7919) % (rows - 20)
					r, err := conn.Query(context.Background(), sql, at+1)
					if err != nil {
						b.Fatal(err)
					}
					n := 0
					for r.Next() {
						n++
					}
					if r.Err() != nil || n != 10 {
						b.Fatal(n, r.Err())
					}
				}
				read() // the first one puts the rows in order
				for b.Loop() {
					read()
				}
			})
		}
		d.close()
	}
}
