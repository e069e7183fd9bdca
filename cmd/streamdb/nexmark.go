package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// nexmarkQuery is one query of Nexmark as streamdb and PostgreSQL both say it.
type nexmarkQuery struct{ name, sql string }

// nexmarkQueries are the queries over the tables bid, auction and person. What
// windows are in others is arithmetic here, so that PostgreSQL can check it.
var nexmarkQueries = []nexmarkQuery{
	{"q0", `SELECT auction, bidder, price, date_time, extra FROM bid`},
	{"q1", `SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid`},
	{"q2", `SELECT auction, price FROM bid WHERE auction % 123 = 0`},
	{"q3", `SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')`},
	{"q4", `SELECT q.category, avg(q.final) AS final FROM (
  SELECT max(b.price) AS final, a.category FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.date_time BETWEEN a.date_time AND a.expires GROUP BY a.id, a.category) q
GROUP BY q.category`},
	{"q5", `WITH hop AS (
  SELECT b.auction, date_bin('2 seconds', b.date_time, timestamp '2000-01-01') + interval '2 seconds' * (g.i - 4) AS starts
  FROM bid b CROSS JOIN generate_series(0, 4) AS g(i)),
num AS (SELECT auction, starts, count(*) AS num FROM hop GROUP BY auction, starts),
top AS (SELECT starts, max(num) AS num FROM num GROUP BY starts)
SELECT n.auction, n.num, n.starts FROM num n JOIN top t ON n.starts = t.starts AND n.num = t.num`},
	{"q7", `SELECT b.auction, b.price, b.bidder, b.date_time FROM bid b JOIN (
  SELECT max(price) AS price, date_bin('10 seconds', date_time, timestamp '2000-01-01') + interval '10 seconds' AS ends
  FROM bid GROUP BY 2) m ON b.price = m.price AND b.date_time BETWEEN m.ends - interval '10 seconds' AND m.ends`},
	{"q8", `SELECT p.id, p.name, p.starts FROM (
  SELECT DISTINCT id, name, date_bin('10 seconds', date_time, timestamp '2000-01-01') AS starts FROM person) p JOIN (
  SELECT DISTINCT seller, date_bin('10 seconds', date_time, timestamp '2000-01-01') AS starts FROM auction) a
ON p.id = a.seller AND p.starts = a.starts`},
	{"q9", `SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
  auction, bidder, price, bid_time FROM (
  SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_time,
    row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.bidder, b.extra) AS rn
  FROM auction a JOIN bid b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires) q
WHERE rn <= 1`},
	{"q17", `SELECT auction, date_time::date AS day, count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
FROM bid GROUP BY auction, date_time::date`},
	{"q18", `SELECT auction, bidder, price, channel, url, date_time, extra FROM (
  SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC, extra) AS rn FROM bid) q
WHERE rn <= 1`},
	{"q19", `SELECT * FROM (
  SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time, bidder, extra) AS rn FROM bid) q
WHERE rn <= 10`},
	{"q20", `SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time AS bid_time, b.extra AS bid_extra,
  a.item_name, a.description, a.initial_bid, a.reserve, a.date_time, a.expires, a.seller, a.category, a.extra
FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10`},
}

// nexmarkOptions are the flags of `streamdb bench nexmark`.
type nexmarkOptions struct {
	events     int64
	seed       int64
	queries    string
	verify     string
	json       bool
	cpuprofile string
}

// nexmarkResult is the outcome of one query.
type nexmarkResult struct {
	Query     string  `json:"query"`
	Events    int64   `json:"events"`
	Seconds   float64 `json:"seconds"`
	CPU       float64 `json:"cpu_seconds"`
	PerSecond float64 `json:"events_per_second"`
	PerCore   float64 `json:"events_per_cpu_second"`
	Rows      int64   `json:"rows"`
	Verified  string  `json:"verified,omitempty"`
}

// runBench is the command bench.
func runBench(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 || args[0] != "nexmark" {
		if len(args) > 0 && (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
			fmt.Fprintln(stdout, "usage: streamdb bench nexmark [flags]\n\nRuns Nexmark's queries from the built-in generator, each over a server of its own.")
			return exitOK
		}
		fmt.Fprintln(stderr, "streamdb bench: name a benchmark: nexmark\nRun `streamdb bench nexmark --help` for the flags.")
		return exitUsage
	}
	var o nexmarkOptions
	fs := flag.NewFlagSet("bench nexmark", flag.ContinueOnError)
	fs.Int64Var(&o.events, "events", 1_000_000, "`number` of events")
	fs.Int64Var(&o.seed, "seed", 42, "`seed` of the generator")
	fs.StringVar(&o.queries, "queries", "", "`names` of the queries, separated by commas (default: all)")
	fs.StringVar(&o.verify, "verify", "", "`dsn` of a PostgreSQL that computes the same queries over the same rows; the answers must be equal")
	fs.BoolVar(&o.json, "json", false, "print one JSON object a query")
	fs.StringVar(&o.cpuprofile, "cpuprofile", "", "`file` for a CPU profile")
	if code, done := parseFlags(fs, args[1:], stdout, stderr); done {
		return code
	}
	if err := benchNexmark(o, stdout); err != nil {
		fmt.Fprintf(stderr, "streamdb bench nexmark: %v\n", err)
		return exitError
	}
	return exitOK
}

func benchNexmark(o nexmarkOptions, stdout io.Writer) error {
	var wanted []string
	if o.queries != "" {
		wanted = strings.Split(o.queries, ",")
		for _, w := range wanted {
			if !slices.ContainsFunc(nexmarkQueries, func(q nexmarkQuery) bool { return q.name == w }) {
				return fmt.Errorf("unknown query %q", w)
			}
		}
	}
	if o.cpuprofile != "" {
		f, err := os.Create(o.cpuprofile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	ctx := context.Background()
	var oracle *nexmarkOracle
	if o.verify != "" {
		var err error
		if oracle, err = newNexmarkOracle(ctx, o); err != nil {
			return err
		}
		defer oracle.close(ctx)
	}
	failed := 0
	for _, q := range nexmarkQueries {
		if wanted != nil && !slices.Contains(wanted, q.name) {
			continue
		}
		r, err := runNexmarkQuery(ctx, o, q, oracle)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		if r.Verified != "" && r.Verified != "equal" {
			failed++
		}
		if o.json {
			j, _ := json.Marshal(r)
			fmt.Fprintf(stdout, "%s\n", j)
			continue
		}
		fmt.Fprintf(stdout, "%-4s %9.0f events/s %9.0f events/CPU-s %8.2f s %9d rows %s\n", r.Query, r.PerSecond, r.PerCore, r.Seconds, r.Rows, r.Verified)
	}
	if failed > 0 {
		return fmt.Errorf("%d queries differ from PostgreSQL's answer", failed)
	}
	return nil
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// runNexmarkQuery maintains one query over the whole stream, and measures from
// the start of the source until the view has seen its last event.
func runNexmarkQuery(ctx context.Context, o nexmarkOptions, q nexmarkQuery, oracle *nexmarkOracle) (*nexmarkResult, error) {
	dir, err := os.MkdirTemp("", "streamdb-nexmark-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := startServer(ctx, serverConfig{dataDir: filepath.Join(dir, "data"), pgAddr: "127.0.0.1:0", maxConnections: 10, checkpointInterval: time.Hour}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer func() {
		c, cancel := context.WithCancel(ctx)
		cancel()
		_ = s.stop(c)
	}()
	conn, err := pgx.Connect(ctx, fmt.Sprintf("postgres://streamdb@%s/streamdb?sslmode=disable", s.pgAddr))
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	begun, cpu := time.Now(), cpuSeconds()
	// One transaction: the view is there before the source's first event.
	for _, sql := range []string{"BEGIN",
		fmt.Sprintf("CREATE SOURCE nexmark FROM LOAD GENERATOR NEXMARK (SEED %d, EVENTS %d, RATE 0) FOR ALL TABLES", o.seed, o.events),
		"CREATE MATERIALIZED VIEW v AS " + q.sql, "COMMIT"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return nil, err
		}
	}
	for {
		var state string
		if err := conn.QueryRow(ctx, "SELECT state FROM streamdb_internal.sources WHERE name = 'nexmark'").Scan(&state); err != nil {
			return nil, err
		}
		if state == "finished" {
			break
		}
		if state == "failed" {
			return nil, errors.New("the source has failed")
		}
		time.Sleep(2 * time.Millisecond)
	}
	r := &nexmarkResult{Query: q.name, Events: o.events}
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM v").Scan(&r.Rows); err != nil {
		return nil, err
	}
	r.Seconds, r.CPU = time.Since(begun).Seconds(), cpuSeconds()-cpu
	r.PerSecond, r.PerCore = float64(o.events)/r.Seconds, float64(o.events)/r.CPU
	if oracle != nil {
		r.Verified, err = oracle.compare(ctx, conn, q)
	}
	return r, err
}
