package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// restartRows is how many rows of state the restart tests make, from
// STREAMDB_TEST_RESTART_ROWS.
func restartRows(t testing.TB, usual int) int {
	v := os.Getenv("STREAMDB_TEST_RESTART_ROWS")
	if v == "" {
		return usual
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fillState makes a table of n rows, a view with a group for each, and a join
// of the table with that view, and waits for a checkpoint of all of it.
func fillState(t testing.TB, s *instance, n int) {
	t.Helper()
	c := s.connect()
	defer c.Close(context.Background())
	exec1(t, c, "CREATE TABLE fact (id bigint PRIMARY KEY, k bigint, v bigint, note text)")
	const part = 500_000
	for from := 0; from < n; from += part {
		exec1(t, c, fmt.Sprintf("INSERT INTO fact SELECT i, i %% 1000, i * 3, 'note ' || i FROM generate_series(%d, %d) i", from, min(from+part, n)-1))
	}
	exec1(t, c, "CREATE MATERIALIZED VIEW per_id AS SELECT id, sum(v) AS s, count(*) AS n, max(note) AS note FROM fact GROUP BY id",
		"CREATE MATERIALIZED VIEW joined AS SELECT k, count(*) AS n, sum(s) AS s FROM fact JOIN per_id USING (id) GROUP BY k")
	if got := text(t, c, "SELECT sum(n) FROM joined"); got != strconv.Itoa(n) {
		t.Fatalf("the join holds %s rows, want %d", got, n)
	}
}

// firstRead is how long it takes from the start of the process until a client
// has read the view, by its key, and the join.
func firstRead(t testing.TB, s *instance, n int) time.Duration {
	t.Helper()
	begun := time.Now()
	s.start("--checkpoint-interval", "1h")
	c := s.connect()
	id := n / 2
	if got, want := text(t, c, fmt.Sprintf("SELECT s, n, note FROM per_id WHERE id = %d", id)), fmt.Sprintf("%d,1,note %d", 3*id, id); got != want {
		t.Fatalf("after the restart: %s, want %s", got, want)
	}
	took := time.Since(begun)
	if got, want := text(t, c, "SELECT sum(n), count(*) FROM joined"), fmt.Sprintf("%d,1000", n); got != want {
		t.Fatalf("after the restart, the join: %s, want %s", got, want)
	}
	return took
}

// TestRestartOpensState kills a server with much state, and starts it again:
// no view may be computed anew, and changes go on from where they were.
func TestRestartOpensState(t *testing.T) {
	n := restartRows(t, 300_000)
	s := serve(t, t.TempDir(), "--checkpoint-interval", "1h")
	fillState(t, s, n)
	exec1(t, s.connect(), "CHECKPOINT")
	s.kill()
	took := firstRead(t, s, n)
	t.Logf("%d rows: first read after %v, ready after %v", n, took, s.took)
	if m := s.metric("streamdb_hydrations_total"); m != 0 {
		t.Errorf("%v views were computed anew", m)
	}
	c := s.connect()
	exec1(t, c, fmt.Sprintf("UPDATE fact SET v = v + 1000000 WHERE id = %d", n/2), "DELETE FROM fact WHERE id = 1", fmt.Sprintf("INSERT INTO fact VALUES (%d, 7, 5, 'new')", n))
	if got, want := text(t, c, fmt.Sprintf("SELECT id, s FROM per_id WHERE id IN (1, %d, %d) ORDER BY id", n/2, n)), fmt.Sprintf("%d,%d\n%d,5", n/2, 3*(n/2)+1000000, n); got != want {
		t.Errorf("after changes: %s, want %s", got, want)
	}
	if got := text(t, c, diffQuery("joined", "SELECT k, count(*) AS n, sum(s) AS s FROM fact JOIN per_id USING (id) GROUP BY k")); got != "0" {
		t.Errorf("the join differs in %s rows from its query computed anew", got)
	}
}

// TestRestartComputesAnew kills a server before any checkpoint of its views: they
// are computed from restored tables, the one over the other too.
func TestRestartComputesAnew(t *testing.T) {
	const n = 5000
	s := serve(t, t.TempDir(), "--checkpoint-interval", "1h")
	c := s.connect()
	exec1(t, c, "CREATE TABLE early (id bigint PRIMARY KEY)", "INSERT INTO early VALUES (1)")
	s.stop() // with a checkpoint of the table
	s.start("--checkpoint-interval", "1h")
	fillState(t, s, n)
	exec1(t, s.connect(), "CREATE MATERIALIZED VIEW over_early AS SELECT e.id, f.s FROM early e JOIN per_id f USING (id)")
	s.stop()
	s.start("--checkpoint-interval", "1h")
	exec1(t, s.connect(), "CREATE MATERIALIZED VIEW again AS SELECT count(*) AS n, sum(f.v) AS s FROM fact f JOIN per_id p USING (id) JOIN early e USING (id)")
	s.kill()
	firstRead(t, s, n)
	c = s.connect()
	for view, want := range map[string]string{"again": "1,3", "over_early": "1,3"} {
		if got := text(t, c, "SELECT * FROM "+view); got != want {
			t.Errorf("%s: %s, want %s", view, got, want)
		}
	}
}

// BenchmarkRestart measures the time from the start of the process to the first
// read of a view, with a million rows (STREAMDB_TEST_RESTART_ROWS) in a table, in
// a view with a group for each and in a join of the two.
func BenchmarkRestart(b *testing.B) {
	n := restartRows(b, 1_000_000)
	s := serve(b, b.TempDir())
	fillState(b, s, n)
	exec1(b, s.connect(), "CHECKPOINT")
	var reads, ready time.Duration
	rounds := 0
	for b.Loop() {
		s.kill()
		reads += firstRead(b, s, n)
		ready += s.took
		rounds++
	}
	b.ReportMetric(float64(reads.Milliseconds())/float64(rounds), "start-to-first-read-ms")
	b.ReportMetric(float64(ready.Milliseconds())/float64(rounds), "start-to-ready-ms")
}

// BenchmarkFirstWrite measures the first change of the restarted state.
func BenchmarkFirstWrite(b *testing.B) {
	n := restartRows(b, 1_000_000)
	s := serve(b, b.TempDir())
	fillState(b, s, n)
	exec1(b, s.connect(), "CHECKPOINT")
	var took time.Duration
	rounds := 0
	for b.Loop() {
		s.kill()
		firstRead(b, s, n)
		c := s.connect()
		begun := time.Now()
		exec1(b, c, "UPDATE fact SET v = v + 1 WHERE id = 77")
		var sum int64
		if err := c.QueryRow(context.Background(), "SELECT s::bigint FROM per_id WHERE id = 77", pgx.QueryExecModeSimpleProtocol).Scan(&sum); err != nil {
			b.Fatal(err)
		}
		took += time.Since(begun)
		rounds++
		c.Close(context.Background())
		b.StopTimer()
		s.stop()
		s.start()
		b.StartTimer()
	}
	b.ReportMetric(float64(took.Milliseconds())/float64(rounds), "first-change-ms")
}
