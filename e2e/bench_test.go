package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// cpuTime is the CPU time of a process so far, from /proc.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip(err)
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	var ticks int64
	for _, i := range []int{11, 12} { // utime, stime
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

const pointRows = 100_000

// BenchmarkPointSelect looks rows up by key through a prepared statement, on
// streamdb (in a table, and in a view by its key) and on PostgreSQL. server-ns/op
// is the CPU time that the server's process spends on one.
func BenchmarkPointSelect(b *testing.B) {
	ctx := context.Background()
	lookups := func(b *testing.B, c *pgx.Conn, pid int, sql string) {
		var id, v int64
		var name string
		for i := range 2000 {
			if err := c.QueryRow(ctx, sql, int64(i)).Scan(&id, &v, &name); err != nil {
				b.Fatal(err)
			}
		}
		before := cpuTime(b, pid)
		n := 0
		for b.Loop() {
			n++
			if err := c.QueryRow(ctx, sql, int64(n*7919%pointRows)).Scan(&id, &v, &name); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((cpuTime(b, pid)-before).Nanoseconds())/float64(n), "server-ns/op")
	}
	fill := []string{"CREATE TABLE point (id bigint PRIMARY KEY, v bigint, name text)",
		fmt.Sprintf("INSERT INTO point SELECT i, i * 2, 'row ' || i FROM generate_series(0, %d) i", pointRows-1)}
	s := serve(b, b.TempDir())
	c := s.connect()
	exec1(b, c, fill...)
	exec1(b, c, "CREATE MATERIALIZED VIEW point_view AS SELECT id, max(v) AS v, max(name) AS name FROM point GROUP BY id")
	b.Run("streamdb/table", func(b *testing.B) { lookups(b, c, s.cmd.Process.Pid, "SELECT id, v, name FROM point WHERE id = $1") })
	b.Run("streamdb/view", func(b *testing.B) {
		lookups(b, c, s.cmd.Process.Pid, "SELECT id, v, name FROM point_view WHERE id = $1")
	})
	b.Run("postgres", func(b *testing.B) {
		dsn := os.Getenv("STREAMDB_TEST_PG_DSN")
		if dsn == "" {
			b.Skip("STREAMDB_TEST_PG_DSN is not set")
		}
		pg, err := pgx.Connect(ctx, dsn)
		if err != nil {
			b.Fatal(err)
		}
		defer pg.Close(ctx)
		exec1(b, pg, "DROP TABLE IF EXISTS point")
		exec1(b, pg, fill...)
		exec1(b, pg, "ANALYZE point")
		var pid int
		if err := pg.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			b.Fatal(err)
		}
		lookups(b, pg, pid, "SELECT id, v, name FROM point WHERE id = $1")
		exec1(b, pg, "DROP TABLE point")
	})
}

// BenchmarkInsertVisible inserts single rows, and reads each from a view three
// operators deep as soon as it is acknowledged. ack-p50-us is the commit (a sync
// of the log in it), visible-p50-us the read right after it.
func BenchmarkInsertVisible(b *testing.B) {
	ctx := context.Background()
	s := serve(b, b.TempDir())
	c := s.connect()
	exec1(b, c, "CREATE TABLE dim (k bigint PRIMARY KEY, name text)", "INSERT INTO dim SELECT i, 'dim ' || i FROM generate_series(0, 99) i",
		"CREATE TABLE fact (id bigint, k bigint, v bigint)", "INSERT INTO fact SELECT i, i % 100, i FROM generate_series(1, 100000) i",
		"CREATE MATERIALIZED VIEW deep AS SELECT k, total FROM (SELECT d.k, sum(f.v) AS total FROM fact f JOIN dim d ON d.k = f.k WHERE f.v >= 0 GROUP BY d.k) x WHERE total > 0")
	var before, after int64
	if err := c.QueryRow(ctx, "SELECT total::bigint FROM deep WHERE k = 7").Scan(&before); err != nil {
		b.Fatal(err)
	}
	var acks, reads []time.Duration
	for b.Loop() {
		t0 := time.Now()
		if _, err := c.Exec(ctx, "INSERT INTO fact VALUES (0, 7, 1)"); err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		if err := c.QueryRow(ctx, "SELECT total::bigint FROM deep WHERE k = 7").Scan(&after); err != nil {
			b.Fatal(err)
		}
		acks, reads = append(acks, t1.Sub(t0)), append(reads, time.Since(t1))
		if before++; after != before {
			b.Fatalf("the view shows %d, want %d", after, before)
		}
	}
	slices.Sort(acks)
	slices.Sort(reads)
	b.ReportMetric(float64(acks[len(acks)/2].Nanoseconds())/1e3, "ack-p50-us")
	b.ReportMetric(float64(reads[len(reads)/2].Nanoseconds())/1e3, "visible-p50-us")
}

// BenchmarkBulkInsert inserts many rows into tables of growing size, with a
// primary key, a unique text or a foreign key to check. ns/row should hardly
// depend on the size.
func BenchmarkBulkInsert(b *testing.B) {
	const rows = 100_000
	s := serve(b, b.TempDir())
	c := s.connect()
	exec1(b, c, "CREATE TABLE parent (id bigint PRIMARY KEY)", "INSERT INTO parent SELECT generate_series(0, 999999)")
	for _, kind := range []struct{ name, columns string }{
		{"key", "id bigint PRIMARY KEY, k bigint, s text"},
		{"unique", "id bigint PRIMARY KEY, k bigint, s text UNIQUE"},
		{"foreign", "id bigint PRIMARY KEY, k bigint REFERENCES parent, s text"},
	} {
		for _, size := range []int{0, 300_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, size), func(b *testing.B) {
				fill := func(from, n int) {
					exec1(b, c, fmt.Sprintf("INSERT INTO bulk SELECT g, g %% 1000000, 's' || g FROM generate_series(%d, %d) g", from+1, from+n))
				}
				n := 0
				for b.Loop() {
					b.StopTimer()
					exec1(b, c, "DROP TABLE IF EXISTS bulk", "CREATE TABLE bulk ("+kind.columns+")")
					if size > 0 {
						fill(0, size)
					}
					b.StartTimer()
					fill(size, rows)
					n += rows
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/row")
			})
		}
	}
}
