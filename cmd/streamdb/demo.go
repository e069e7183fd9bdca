package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5"
)

// demoSQL is the delivery company: a running load, and the views that its
// dispatchers would watch.
var demoSQL = []string{
	`CREATE SOURCE IF NOT EXISTS delivery FROM LOAD GENERATOR LOGISTICS FOR ALL TABLES`,
	`CREATE MATERIALIZED VIEW IF NOT EXISTS open_orders AS
  SELECT zone, status, count(*) AS orders, sum(amount) AS amount
  FROM orders WHERE status NOT IN ('delivered', 'cancelled')
  GROUP BY zone, status`,
	`CREATE MATERIALIZED VIEW IF NOT EXISTS sla_by_zone AS
  SELECT zone,
         count(*) AS delivered,
         count(*) FILTER (WHERE delivered_at > promised_at) AS late,
         round(100.0 * count(*) FILTER (WHERE delivered_at > promised_at) / count(*), 1) AS late_percent,
         avg(delivered_at - placed_at) AS avg_time
  FROM orders WHERE status = 'delivered'
  GROUP BY zone`,
	`CREATE MATERIALIZED VIEW IF NOT EXISTS courier_load AS
  SELECT c.courier_id, c.name, c.vehicle, count(o.order_id) AS active_orders
  FROM couriers c LEFT JOIN orders o ON o.courier_id = c.courier_id AND o.status IN ('accepted', 'picked_up')
  GROUP BY c.courier_id, c.name, c.vehicle`,
	`CREATE MATERIALIZED VIEW IF NOT EXISTS latest_position AS
  SELECT DISTINCT ON (courier_id) courier_id, lat, lon, at
  FROM pings ORDER BY courier_id, at DESC`,
	`CREATE MATERIALIZED VIEW IF NOT EXISTS top_customers AS
  SELECT customer_id, sum(amount) AS spent, count(*) AS orders
  FROM orders WHERE status = 'delivered'
  GROUP BY customer_id ORDER BY spent DESC LIMIT 10`,
}

const demoText = `
Connect with:

    psql -h %s -p %s -U streamdb streamdb

and try:

    SELECT * FROM sla_by_zone ORDER BY late_percent DESC;
    SELECT * FROM courier_load ORDER BY active_orders DESC LIMIT 5;
    SELECT zone, status, orders FROM open_orders ORDER BY 1, 2;
    SELECT * FROM latest_position WHERE courier_id = 7;
    COPY (SUBSCRIBE open_orders) TO STDOUT;
    SELECT name, rows, lag_ms FROM streamdb_internal.freshness;
    \d sla_by_zone
    CREATE MATERIALIZED VIEW busiest AS SELECT zone, count(*) FROM orders GROUP BY zone;

Ctrl-C stops the server.
`

// runDemo is the command demo.
func runDemo(args []string, stdout, stderr io.Writer) int {
	var cfg serverConfig
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	fs.StringVar(&cfg.dataDir, "data-dir", "", "`directory` to keep the demo's data in (default: a temporary one)")
	serveFlags(fs, &cfg)
	if code, done := parseFlags(fs, args, stdout, stderr); done {
		return code
	}
	if err := cfg.check(); err != nil {
		fmt.Fprintf(stderr, "streamdb demo: %v\nRun `streamdb demo --help` for the flags.\n", err)
		return exitUsage
	}
	if cfg.dataDir == "" {
		dir, err := os.MkdirTemp("", "streamdb-demo-")
		if err != nil {
			fmt.Fprintf(stderr, "streamdb demo: %v\n", err)
			return exitError
		}
		defer os.RemoveAll(dir)
		cfg.dataDir = dir
	}
	if cfg.logLevel == slog.LevelInfo {
		cfg.logLevel = slog.LevelWarn // keep the terminal for the instructions
	}
	log := cfg.logger(stderr)
	s, err := startServer(context.Background(), cfg, log)
	if err != nil {
		fmt.Fprintf(stderr, "streamdb demo: %v\n", err)
		return exitError
	}
	if err := setUpDemo(s); err != nil {
		fmt.Fprintf(stderr, "streamdb demo: %v\n", err)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.stop(ctx)
		return exitError
	}
	sigs := signals()
	fmt.Fprintln(stdout, "streamdb is running a delivery company: orders, couriers and their pings.")
	fmt.Fprintln(stdout, "\nViews kept up to date:")
	for _, q := range demoSQL {
		fmt.Fprintf(stdout, "\n%s;\n", q)
	}
	fmt.Fprintf(stdout, demoText, host(s.pgAddr), port(s.pgAddr))
	return waitAndStop(s, sigs, log)
}

func setUpDemo(s *server) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, fmt.Sprintf("postgres://streamdb@%s/streamdb?sslmode=disable", s.pgAddr))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, q := range demoSQL {
		if _, err := conn.Exec(ctx, q); err != nil {
			return fmt.Errorf("%w\n%s", err, q)
		}
	}
	return nil
}
