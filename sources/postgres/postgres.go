// Package postgres reads the tables of a PostgreSQL publication: a consistent
// snapshot at the point where a replication slot begins, then the stream of
// changes from that very point (PostgreSQL manual, chapter 49 and section
// 55.4). Upstream transactions enter whole, and the slot is confirmed only up
// to what is durable here.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// The partitions of a position: how far the stream was read, and the number
// in the slot's name. A position without an LSN is that of an incomplete
// snapshot, which begins anew.
const (
	partLSN  = "lsn"
	partSlot = "slot"
)

// Bounds of a chunk. A transaction is never split, however large.
const (
	chunkRows  = 1 << 14
	chunkDelay = 2 * time.Millisecond
)

// statusInterval is how often the upstream server hears from us at least.
const statusInterval = 5 * time.Second

// Source is a publication as a source.
type Source struct {
	cfg     *pgconn.Config
	pub     string
	tables  []table
	slot    atomic.Int64  // number in the slot's name, 0 before there is one
	durable atomic.Uint64 // LSN up to which everything is durable here
}

// New makes the source. Without known tables it asks the server for those of
// the publication.
func New(ctx context.Context, cfg sources.Config) (*Source, error) {
	c, err := connConfig(cfg.Options)
	if err != nil {
		return nil, err
	}
	s := &Source{cfg: c, pub: cfg.Options["publication"]}
	if len(cfg.Tables) > 0 {
		for _, t := range cfg.Tables {
			s.tables = append(s.tables, newTable(t))
		}
		return s, nil
	}
	return s, s.discover(ctx, cfg.Options)
}

// Check checks the options of a connection by themselves.
func Check(options map[string]string) error {
	_, err := connConfig(options)
	return err
}

// Validate tries to connect.
func Validate(ctx context.Context, options map[string]string) error {
	c, err := connConfig(options)
	if err != nil {
		return err
	}
	conn, err := pgconn.ConnectConfig(ctx, c)
	if err != nil {
		return connectError(err)
	}
	return conn.Close(ctx)
}

var knownOptions = map[string]bool{
	"host": true, "port": true, "user": true, "password": true, "database": true, "ssl mode": true, "sslmode": true,
	"ssl certificate authority": true, "publication": true, "tables": true, "for all tables": true, "for schemas": true,
	"text columns": true, "exclude columns": true, "connector": true, "envelope": true, "upstream": true, "details": true,
}

// connConfig makes connection parameters of a connection's options.
func connConfig(o map[string]string) (*pgconn.Config, error) {
	for k := range o {
		if !knownOptions[k] {
			return nil, pgerror.New(pgerror.InvalidParameterValue, "unknown option \"%s\" of a Postgres source", strings.ToUpper(k)).
				WithHint("The options of a connection are HOST, PORT, USER, PASSWORD, DATABASE, SSL MODE; of a source PUBLICATION, TEXT COLUMNS, EXCLUDE COLUMNS.")
		}
	}
	if o["host"] == "" || o["database"] == "" {
		return nil, pgerror.New(pgerror.InvalidParameterValue, "a Postgres connection needs HOST and DATABASE")
	}
	mode := o["ssl mode"]
	if mode == "" {
		mode = o["sslmode"]
	}
	if mode == "" {
		mode = "prefer"
	}
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'" }
	dsn := "host=" + quote(o["host"]) + " dbname=" + quote(o["database"]) + " sslmode=" + quote(strings.ReplaceAll(mode, "_", "-"))
	for opt, key := range map[string]string{"port": "port", "user": "user", "password": "password"} {
		if o[opt] != "" {
			dsn += " " + key + "=" + quote(o[opt])
		}
	}
	c, err := pgconn.ParseConfig(dsn)
	if err != nil {
		// The error's text may hold the password.
		return nil, pgerror.New(pgerror.InvalidParameterValue, "the options of the Postgres connection are not valid").
			WithHint("Check HOST, PORT and SSL MODE (disable, prefer, require, verify-ca, verify-full).")
	}
	c.ConnectTimeout = 15 * time.Second
	for k, v := range map[string]string{"application_name": "streamdb", "datestyle": "ISO", "intervalstyle": "postgres", "extra_float_digits": "3", "timezone": "UTC", "client_encoding": "UTF8"} {
		c.RuntimeParams[k] = v
	}
	return c, nil
}

// connectError is a failed connection as a user sees it.
func connectError(err error) error {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		return pgerror.New(pgerror.ConnectionFailure, "the upstream PostgreSQL refused the connection: %s", pe.Message)
	}
	return pgerror.New(pgerror.ConnectionFailure, "cannot connect to the upstream PostgreSQL: %v", err)
}

// Tables lists what the source yields.
func (s *Source) Tables() []sources.Table {
	out := make([]sources.Table, len(s.tables))
	for i := range s.tables {
		out[i] = s.tables[i].Table
	}
	return out
}

// Durable implements sources.Source.
func (s *Source) Durable(p sources.Position) {
	if lsn, ok := p[partLSN]; ok {
		s.durable.Store(uint64(lsn))
	}
}

// Close implements sources.Source: nothing outlives Run.
func (s *Source) Close() error { return nil }

// Drop removes the replication slot.
func (s *Source) Drop(ctx context.Context) error {
	n := s.slot.Load()
	if n == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, s.cfg)
	if err != nil {
		return connectError(err)
	}
	defer conn.Close(ctx)
	return dropSlot(ctx, conn, slotName(n))
}

func slotName(n int64) string { return fmt.Sprintf("streamdb_%x", n) }

// dropSlot removes a slot if it is there. A slot whose last reader is just
// going away is waited for.
func dropSlot(ctx context.Context, conn *pgconn.PgConn, name string) error {
	for {
		_, err := conn.Exec(ctx, fmt.Sprintf("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '%s'", name)).ReadAll()
		var pe *pgconn.PgError
		if errors.As(err, &pe) && pe.Code == pgerror.ObjectInUse {
			if err := sleep(ctx, 100*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		return err
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run implements sources.Source: it goes on from a position until ctx ends,
// connecting again after failures.
func (s *Source) Run(ctx context.Context, from sources.Position, feed sources.Feed) error {
	r := &run{s: s, feed: feed, lsn: pglogrepl.LSN(from[partLSN])}
	s.slot.Store(from[partSlot])
	s.durable.Store(uint64(r.lsn))
	wait := 200 * time.Millisecond
	for {
		begun := time.Now()
		err := r.once(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var fatal *fatalError
		if errors.As(err, &fatal) {
			return fatal.err
		}
		if time.Since(begun) > time.Minute {
			wait = 200 * time.Millisecond
		}
		feed.SetStatus(sources.Status{State: "stalled", Error: err.Error(), Lag: -1, Updated: time.Now()})
		if err := sleep(ctx, wait/2+rand.N(wait)); err != nil {
			return err
		}
		wait = min(2*wait, 30*time.Second)
	}
}

// fatalError is a failure that no retry mends.
type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }

// run is one Run.
type run struct {
	s    *Source
	feed sources.Feed
	lsn  pglogrepl.LSN // everything before it has been pushed; 0: no snapshot yet
}

// once connects, takes the snapshot if there is none yet, and streams until
// something fails.
func (r *run) once(ctx context.Context) error {
	cfg := r.s.cfg.Copy()
	cfg.RuntimeParams["replication"] = "database"
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return connectError(err)
	}
	defer func() {
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		conn.Close(c)
	}()
	if r.lsn == 0 {
		if err := r.snapshot(ctx, conn); err != nil {
			return err
		}
	}
	return r.stream(ctx, conn)
}
