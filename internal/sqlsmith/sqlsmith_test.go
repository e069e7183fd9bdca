package sqlsmith

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamdb/streamdb/coord"
	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/pgwire"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "seed of the first world; 0: one of the time, which is printed")
	worlds    = flag.Int("worlds", 12, "how many worlds at most; 0: as many as there is time for")
	duration  = flag.Duration("duration", time.Minute, "for how long")
	failures  = flag.Int("failures", 1, "how many failures to go on after")
	logPath   = flag.String("log", "", "a prefix of files for the statements before each failure")
	ignore    = flag.String("ignore", "", "a regular expression of messages of streamdb that are known")
	adHocOnly = flag.Bool("adhoc", false, "no views")
)

// connectStreamdb starts a server within the test.
func connectStreamdb(t *testing.T) *pgx.Conn {
	ctx := context.Background()
	c, err := coord.Open(ctx, t.TempDir(), coord.Options{MemoryLimit: 4 << 30})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := pgwire.NewServer(c, pgwire.Options{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	conn, err := pgx.Connect(ctx, "postgres://t@"+l.Addr().String()+"/streamdb?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close(ctx)
		srv.Close()
		<-done
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// answer is what a server says to a statement.
type answer struct {
	rows    [][]string
	oids    []uint32
	tag     string
	code    string
	message string
}

const null = "\x00NULL"

func ask(c *pgx.Conn, sql string) answer {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Second)
	defer cancel()
	var a answer
	results, err := c.PgConn().Exec(ctx, sql).ReadAll()
	for _, r := range results {
		a.tag = r.CommandTag.String()
		for _, f := range r.FieldDescriptions {
			a.oids = append(a.oids, f.DataTypeOID)
		}
		for _, row := range r.Rows {
			out := make([]string, len(row))
			for i, v := range row {
				out[i] = null
				if v != nil {
					out[i] = canonical(a.oids[i], string(v))
				}
			}
			a.rows = append(a.rows, out)
		}
	}
	if err != nil {
		var e *pgconn.PgError
		if !errors.As(err, &e) {
			panic(fmt.Sprintf("connection lost: %v in %s", err, sql))
		}
		return answer{code: e.Code, message: e.Message}
	}
	return a
}

// canonical is one text for all the values that PostgreSQL may choose among
// when equal ones look different.
func canonical(oid uint32, s string) string {
	switch oid {
	case 1700:
		if strings.Contains(s, ".") {
			s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
		}
	case 701:
		if s == "-0" {
			s = "0"
		}
	}
	return s
}

// runtime reports whether an error hangs on values, so that it depends on the
// plan whether it is met.
func (a *answer) runtime() bool {
	return strings.HasPrefix(a.code, "22") || a.code == "21000" || strings.HasPrefix(a.code, "54")
}

// differ says how two answers differ, "" if they don't.
func differ(ours, theirs *answer, ordered bool) string {
	switch {
	case ours.code != theirs.code:
		return "errors differ"
	case ours.code != "":
		if ours.message != theirs.message && !ours.runtime() {
			return "messages differ"
		}
		return ""
	case !slices.Equal(ours.oids, theirs.oids):
		return fmt.Sprintf("types differ: %v, %v", ours.oids, theirs.oids)
	case len(ours.rows) != len(theirs.rows):
		return "numbers of rows differ"
	}
	if !ordered {
		slices.SortFunc(ours.rows, slices.Compare)
		slices.SortFunc(theirs.rows, slices.Compare)
	}
	for i, row := range ours.rows {
		for c, v := range row {
			if w := theirs.rows[i][c]; v != w && !(ours.oids[c] == 701 && near(v, w)) {
				return fmt.Sprintf("row %d column %d differs", i, c)
			}
		}
	}
	return ""
}

func near(v, w string) bool {
	x, err := strconv.ParseFloat(v, 64)
	y, err2 := strconv.ParseFloat(w, 64)
	return err == nil && err2 == nil && math.Abs(x-y) <= 1e-9*max(math.Abs(x), math.Abs(y), 1e-6)
}

func (a *answer) String() string {
	if a.code != "" {
		return "ERROR " + a.code + ": " + a.message
	}
	var b strings.Builder
	for _, r := range a.rows {
		b.WriteString(strings.ReplaceAll(strings.Join(r, "|"), "\x00", "") + "\n")
		if b.Len() > 2000 {
			return b.String() + "...\n"
		}
	}
	return b.String()
}

// world is tables, views over them and queries, in both servers.
type world struct {
	t      *testing.T
	seed   uint64
	ours   *pgx.Conn
	theirs *pgx.Conn
	g      *Gen
	log    []string
	views  []Query
	counts *counts
	apart  bool // the servers' tables differ
}

// counts is what a run has done.
type counts struct{ queries, wrong, reads, views, changes, runtime, timeouts, failed int }

// both runs a statement that must go the same way in both.
func (w *world) both(sql string) bool {
	w.log = append(w.log, sql)
	ours, theirs := ask(w.ours, sql), ask(w.theirs, sql)
	// Which of several constraints fails first is open.
	constraints := strings.HasPrefix(ours.code, "23") && strings.HasPrefix(theirs.code, "23")
	if w.apart {
		return theirs.code == "" // one has failed for a value: so the transactions end in other ways
	}
	if ours.code != theirs.code || ours.tag != theirs.tag {
		w.apart = ours.code == "" || theirs.code == ""
		// What fails for some value may not be computed where no row needs it.
		if value := ours.runtime() || theirs.runtime(); value {
			w.counts.runtime++
		} else if !constraints {
			w.fail("statement", sql, "", &ours, &theirs)
		}
	}
	return theirs.code == ""
}

func (w *world) fail(what, sql, how string, ours, theirs *answer) {
	if *ignore != "" && regexp.MustCompile(*ignore).MatchString(ours.message) {
		return
	}
	w.counts.failed++
	w.write(sql)
	w.t.Errorf("-seed=%d: %s: %s\n%s\nours:\n%s\nPostgreSQL:\n%s", w.seed, what, how, sql, ours, theirs)
}

// write keeps the statements that led to a failure.
func (w *world) write(sql string) {
	if *logPath == "" {
		return
	}
	text := strings.Join(append(slices.Clone(w.log), sql), ";\n") + ";\n"
	if err := os.WriteFile(fmt.Sprintf("%s%d.sql", *logPath, w.counts.failed), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// compare asks ours of streamdb and theirs of PostgreSQL.
func (w *world) compare(what, ours, theirs string, q *Query) {
	o, p := ask(w.ours, ours), ask(w.theirs, theirs)
	if o.code != p.code && (o.runtime() || p.runtime()) && (o.code == "" || p.code == "" || o.runtime() && p.runtime()) {
		w.counts.runtime++
		return
	}
	if o.code == "57014" || p.code == "57014" || o.code == "53200" {
		w.counts.timeouts++
		return
	}
	if p.code == "0A000" && strings.HasPrefix(p.message, "FULL JOIN is only supported") {
		return
	}
	if p.code == "XX000" {
		return // PostgreSQL stumbles over itself, as over nth_value behind EXCLUDE
	}
	if polymorphic := "could not determine polymorphic type"; o.code != "" && p.code != "" && strings.HasPrefix(o.message, polymorphic) != strings.HasPrefix(p.message, polymorphic) {
		return // a mistake that is not made on purpose, beside another
	}
	if ungrouped := "subquery uses ungrouped column"; strings.HasPrefix(o.message, ungrouped) && strings.HasPrefix(p.message, ungrouped) {
		return // which of several is named
	}
	if q.Wrong > 1 && o.code != "" && p.code != "" {
		return // which mistake is seen first is open
	}
	if d := differ(&o, &p, q.Ordered); d != "" {
		w.fail(what, theirs, d, &o, &p)
	}
}

func (w *world) adHoc() {
	q := w.g.Query()
	w.counts.queries++
	if q.Wrong > 0 {
		w.counts.wrong++
	}
	w.compare("query", q.SQL, q.SQL, &q)
}

// view makes a materialized view of a query.
func (w *world) view() {
	slips := w.g.Slips
	w.g.Slips = 0
	q := w.g.Query()
	w.g.Slips = slips
	q.Ordered = false
	name := fmt.Sprintf("v%d", len(w.views))
	cols := make([]string, q.Columns)
	for i := range cols {
		cols[i] = "c" + strconv.Itoa(i)
	}
	sql := "CREATE MATERIALIZED VIEW " + name + " (" + strings.Join(cols, ", ") + ") AS " + q.SQL
	if p := ask(w.theirs, "EXPLAIN "+q.SQL); p.code != "" {
		return
	}
	w.log = append(w.log, sql)
	if o := ask(w.ours, sql); o.code != "" {
		if !o.runtime() {
			w.fail("view", sql, "", &o, &answer{})
		}
		return
	}
	w.views = append(w.views, q)
	w.counts.views++
}

func (w *world) readViews() {
	if w.apart {
		return
	}
	for i := range w.views {
		w.counts.reads++
		w.compare(fmt.Sprintf("view v%d", i), fmt.Sprintf("SELECT * FROM v%d", i), w.views[i].SQL, &w.views[i])
	}
}

// run is the world's history.
func (w *world) run() {
	for _, s := range w.g.Schema() {
		w.both(s)
	}
	views := 3
	if *adHocOnly {
		views = 0
	}
	for range views {
		w.view()
	}
	for _, t := range w.g.Tables {
		w.both(w.g.Insert(t, 2+w.g.rng.IntN(6)))
	}
	w.readViews()
	for range views {
		w.view()
	}
	for range 4 {
		if w.apart || w.counts.failed >= *failures {
			break
		}
		for range 8 {
			w.adHoc()
		}
		w.both("BEGIN")
		end := "COMMIT"
		for range 1 + w.g.rng.IntN(3) {
			w.counts.changes++
			if !w.both(w.g.Change()) {
				break
			}
		}
		if w.g.pick(8) {
			end = "ROLLBACK"
		}
		w.both(end)
		w.readViews()
	}
	for i := range w.views {
		ask(w.ours, fmt.Sprintf("DROP MATERIALIZED VIEW v%d", i))
	}
	for _, t := range w.g.Tables {
		w.both("DROP TABLE " + t.Name)
	}
}

// TestAgainstPostgreSQL lets streamdb and PostgreSQL live through the same
// worlds.
func TestAgainstPostgreSQL(t *testing.T) {
	srv := oracle.Connect(t)
	srv.Exec(t, "SET search_path TO pg_temp; SET statement_timeout = '4s'; SET jit = off")
	ours := connectStreamdb(t)
	if a := ask(ours, "SET statement_timeout = '4s'"); a.code != "" {
		t.Fatal(a.String())
	}
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	var c counts
	begun := time.Now()
	n := 0
	for ; (n < *worlds || *worlds == 0) && time.Since(begun) < *duration && c.failed < *failures; n++ {
		w := &world{t: t, seed: seed + uint64(n), ours: ours, theirs: srv.Conn, counts: &c}
		w.g = New(rand.New(rand.NewPCG(w.seed, 1)))
		w.run()
		if (n+1)%1000 == 0 { // a long run may be cut off
			t.Logf("after %d worlds: %+v", n+1, c)
		}
	}
	t.Logf("seed %d, %d worlds: %+v", seed, n, c)
}
