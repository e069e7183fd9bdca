package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// feed adds a subscription's lines up: rows by their count, as of the last
// progress.
type feed struct {
	rows map[string]int64
	at   int64 // what was before it has been given
}

// add takes a line of epoch, progressed, diff and values, separated by tabs.
func (f *feed) add(t *testing.T, line string) {
	t.Helper()
	parts := strings.SplitN(line, "\t", 4)
	at, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || len(parts) != 4 {
		t.Fatalf("line %q: %v", line, err)
	}
	if at < f.at {
		t.Fatalf("line %q comes after the progress to %d", line, f.at)
	}
	if parts[1] == "t" {
		f.at = at
		return
	}
	diff, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || diff == 0 {
		t.Fatalf("line %q: %v", line, err)
	}
	if f.rows[parts[3]] += diff; f.rows[parts[3]] == 0 {
		delete(f.rows, parts[3])
	}
}

// TestSubscribe follows a view by COPY and by a cursor while it changes. What the
// deltas add up to must be the view.
func TestSubscribe(t *testing.T) {
	ctx := context.Background()
	s := serve(t, t.TempDir())
	c := s.connect()
	exec1(t, c, "CREATE TABLE t (k int PRIMARY KEY, g text)", "INSERT INTO t SELECT i, 'g' || i % 3 FROM generate_series(1, 9) i",
		"CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n FROM t GROUP BY g")

	cfg, err := pgconn.ParseConfig(s.dsn())
	if err != nil {
		t.Fatal(err)
	}
	sub, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close(ctx)
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := sub.CopyTo(ctx, w, "COPY (SUBSCRIBE v WITH (PROGRESS)) TO STDOUT")
		w.CloseWithError(err)
		ended <- err
	}()
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for sc := bufio.NewScanner(r); sc.Scan(); {
			lines <- sc.Text()
		}
	}()
	byCopy, byCursor := &feed{rows: map[string]int64{}}, &feed{rows: map[string]int64{}}

	reader := s.connect()
	exec1(t, reader, "BEGIN", "DECLARE cur CURSOR FOR SUBSCRIBE v WITH (PROGRESS)")
	rnd := rand.New(rand.NewPCG(testSeed(t), 0))
	for range 30 {
		k := rnd.IntN(20)
		exec1(t, c, []string{fmt.Sprintf("INSERT INTO t SELECT %d, 'g%d' WHERE NOT EXISTS (SELECT 1 FROM t WHERE k = %[1]d)", k, k%4), fmt.Sprintf("UPDATE t SET g = 'g%d' WHERE k = %d", rnd.IntN(5), k), fmt.Sprintf("DELETE FROM t WHERE k = %d", k)}[rnd.IntN(3)])
	}
	now, err := strconv.ParseInt(text(t, c, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	exec1(t, c, "CREATE TABLE other (a int)", "INSERT INTO other VALUES (1)") // the timeline goes on
	want := map[string]int64{}
	for _, line := range strings.Split(text(t, c, "SELECT * FROM v"), "\n") {
		want[strings.ReplaceAll(line, ",", "\t")]++
	}
	deadline := time.After(20 * time.Second)
	for byCopy.at <= now-1000 || !maps.Equal(byCopy.rows, want) {
		select {
		case line := <-lines:
			byCopy.add(t, line)
		case <-deadline:
			t.Fatalf("by COPY, up to %d of %d: %v, want %v", byCopy.at, now, byCopy.rows, want)
		}
	}
	for end := time.Now().Add(20 * time.Second); byCursor.at <= now-1000 || !maps.Equal(byCursor.rows, want); {
		got := text(t, reader, "FETCH 7 FROM cur WITH (timeout = '200ms')")
		for _, line := range strings.Split(got, "\n") {
			if line != "" {
				byCursor.add(t, strings.ReplaceAll(strings.ReplaceAll(line, ",", "\t"), "NULL", `\N`))
			}
		}
		if time.Now().After(end) {
			t.Fatalf("by a cursor: %v, want %v", byCursor.rows, want)
		}
	}
	exec1(t, reader, "CLOSE cur", "COMMIT")
	// UP TO ends a subscription by itself, and without a snapshot only changes come.
	exec1(t, c, "DELETE FROM t", "INSERT INTO t VALUES (1, 'one')")
	if got := text(t, c, "SUBSCRIBE v WITH (SNAPSHOT = false) UP TO 1"); got != "" {
		t.Errorf("up to the past: %q", got)
	}
	// A cancel ends it, and the connection goes on.
	if err := sub.CancelRequest(ctx); err != nil {
		t.Fatal(err)
	}
	go func() {
		for range lines {
		}
	}()
	var pe *pgconn.PgError
	if err := <-ended; !errors.As(err, &pe) || pe.Code != "57014" {
		t.Errorf("a cancelled subscription ends with %v", err)
	}
	if rs, err := sub.Exec(ctx, "SELECT 1").ReadAll(); err != nil || string(rs[0].Rows[0][0]) != "1" {
		t.Errorf("after a cancelled subscription: %v", err)
	}
	// Dropping what is followed is told.
	exec1(t, reader, "BEGIN", "DECLARE cur CURSOR FOR SUBSCRIBE v")
	exec1(t, c, "DROP MATERIALIZED VIEW v")
	if err := fetchUntilError(reader, "cur"); err == nil {
		t.Error("a cursor over a dropped view goes on")
	}
}

func fetchUntilError(c *pgx.Conn, cursor string) error {
	for range 20 {
		if _, err := textErr(c, "FETCH ALL FROM "+cursor+" WITH (timeout = '200ms')"); err != nil {
			return err
		}
	}
	return nil
}

// TestSlowSubscriber reads nothing of a subscription while its view changes a
// lot: nobody waits, and nothing is kept but what is needed.
func TestSlowSubscriber(t *testing.T) {
	s := serve(t, t.TempDir())
	c := s.connect()
	exec1(t, c, "CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 4000) i",
		"CREATE MATERIALIZED VIEW v AS SELECT k, v || '!' AS w FROM t")
	slow := s.connect()
	h, err := slow.PgConn().Hijack()
	if err != nil {
		t.Fatal(err)
	}
	h.Frontend.SendQuery(&pgproto3.Query{String: "COPY (SUBSCRIBE v) TO STDOUT"})
	if err := h.Frontend.Flush(); err != nil {
		t.Fatal(err)
	}
	before := s.metric("go_memstats_heap_inuse_bytes")
	var took []time.Duration
	for i := range 40 {
		begun := time.Now()
		exec1(t, c, fmt.Sprintf("UPDATE t SET v = repeat('%c', 100)", 'a'+i%26))
		took = append(took, time.Since(begun))
	}
	if got := text(t, c, "SELECT count(*), min(w) = max(w) FROM v"); got != "4000,t" {
		t.Errorf("the view is %s", got)
	}
	slices.Sort(took)
	if grown := s.metric("go_memstats_heap_inuse_bytes") - before; grown > 200<<20 {
		t.Errorf("the heap grew by %.0f MiB", grown/(1<<20))
	}
	t.Logf("an update of 4000 rows: %v at the median, %v at most", took[len(took)/2], took[len(took)-1])
	_ = h.Conn.Close()
	eventually(t, c, "SELECT count(*) FROM pg_stat_activity WHERE state IS NOT NULL AND pid <> pg_backend_pid()", "0")
}
