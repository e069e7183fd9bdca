package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/streamdb/streamdb/coord"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/storage"
)

// serverConfig is what a server is started with.
type serverConfig struct {
	dataDir            string
	pgAddr             string
	httpAddr           string // "": none
	memoryLimit        byteSize
	tlsCert, tlsKey    string
	passwordFile       string
	maxConnections     int
	checkpointInterval time.Duration
	logLevel           slog.Level
	logFormat          string
	volatile           bool // nothing is synced
}

// server is a running server.
type server struct {
	coord *coord.Coordinator
	pg    *pgwire.Server
	http  *http.Server
	log   *slog.Logger

	pgAddr, httpAddr net.Addr
	failed           chan error // the storage or a listener has failed
}

// heapShare is the part of the memory that the heap may take; the rest is for what is
// between its objects, the collector, stacks, and what comes while it is looked at.
const heapShare = 0.8

// startServer opens the database and listens.
func startServer(ctx context.Context, cfg serverConfig, log *slog.Logger) (_ *server, err error) {
	if cfg.memoryLimit > 0 {
		debug.SetMemoryLimit(int64(float64(cfg.memoryLimit) * 0.78))
	}
	relaxOnce.Do(func() {
		if os.Getenv("GOGC") == "" {
			relaxCollector(gcFloor)
		}
	})
	opts := pgwire.Options{MaxConns: cfg.maxConnections, Logger: log}
	if opts.TLSConfig, err = loadTLS(cfg.tlsCert, cfg.tlsKey); err != nil {
		return nil, err
	}
	users, err := loadUsers(cfg.passwordFile)
	if err != nil {
		return nil, err
	}
	if users != nil {
		opts.Auth = *users
	}
	s := &server{log: log, failed: make(chan error, 4)}
	// The address is taken first, so that a wrong one is told at once.
	l, err := net.Listen("tcp", cfg.pgAddr)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	s.pgAddr = l.Addr()
	var hl net.Listener
	if cfg.httpAddr != "" {
		if hl, err = net.Listen("tcp", cfg.httpAddr); err != nil {
			return nil, err
		}
		s.httpAddr = hl.Addr()
	}
	s.coord, err = coord.Open(ctx, cfg.dataDir, coord.Options{
		Logger: log, Sources: newSource, Check: checkConnection, Validate: validateConnection,
		CheckpointInterval: cfg.checkpointInterval, MemoryLimit: int64(float64(cfg.memoryLimit) * heapShare), Volatile: cfg.volatile, Users: userNames(users),
		Fatal: func(err error) {
			select {
			case s.failed <- err:
			default:
			}
		},
	})
	if err != nil {
		if hl != nil {
			hl.Close()
		}
		if errors.Is(err, storage.ErrInUse) {
			err = fmt.Errorf("%w: stop the other server, or give another --data-dir", err)
		}
		return nil, err
	}
	s.pg = pgwire.NewServer(s.coord, opts)
	go func() {
		if err := s.pg.Serve(l); err != nil && !errors.Is(err, pgwire.ErrServerClosed) {
			s.failed <- err
		}
	}()
	if hl != nil {
		s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
		go func() {
			if err := s.http.Serve(hl); err != nil && !errors.Is(err, http.ErrServerClosed) {
				s.failed <- err
			}
		}()
	}
	return s, nil
}

func loadTLS(cert, key string) (*tls.Config, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	c, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("load the TLS certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS12}, nil
}

// loadUsers reads a file of lines user:password (or user:SCRAM-SHA-256$…);
// clients then authenticate with SCRAM.
func loadUsers(file string) (*pgwire.Users, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the password file: %w", err)
	}
	users := map[string]*pgwire.Verifier{}
	for i, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		user, pw, ok := strings.Cut(line, ":")
		if !ok || user == "" || pw == "" {
			return nil, fmt.Errorf("password file %s, line %d: not user:password", file, i+1)
		}
		v, err := pgwire.ParseVerifier(pw)
		if err != nil {
			v = pgwire.NewVerifier(pw)
		}
		users[user] = v
	}
	return &pgwire.Users{Method: pgwire.MethodSCRAM, Verifiers: users}, nil
}

// userNames are the names of those that the password file has, nil without one.
func userNames(u *pgwire.Users) []string {
	if u == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(u.Verifiers))
}

// handler serves health, metrics and profiles.
func (s *server) handler() http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), s.coord.Collector())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		ok, why := s.coord.Ready()
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintln(w, why)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// stop ends the server: statements may finish until ctx ends, then everything
// is closed. State is checkpointed unless ctx has ended before.
func (s *server) stop(ctx context.Context) error {
	grace, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := s.pg.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = nil
	}
	if s.http != nil {
		err = errors.Join(err, s.http.Close())
	}
	return errors.Join(err, s.coord.Close(ctx))
}

// serveFlags declares the flags that serve and demo share.
func serveFlags(fs *flag.FlagSet, cfg *serverConfig) {
	fs.StringVar(&cfg.pgAddr, "pg-addr", "127.0.0.1:6875", "`address` for PostgreSQL clients")
	fs.StringVar(&cfg.httpAddr, "http-addr", "127.0.0.1:6876", "`address` of health checks and metrics, empty for none")
	cfg.memoryLimit = byteSize(availableMemory() / 4 * 3)
	fs.Var(&cfg.memoryLimit, "memory-limit", "`size` of memory to stay within, such as 2GiB (0: no limit; by default three quarters of what there is)")
	fs.IntVar(&cfg.maxConnections, "max-connections", 1000, "most client connections at a time")
	fs.StringVar(&cfg.tlsCert, "tls-cert", "", "`file` with the TLS certificate (PEM)")
	fs.StringVar(&cfg.tlsKey, "tls-key", "", "`file` with the key of the TLS certificate (PEM)")
	fs.StringVar(&cfg.passwordFile, "password-file", "", "`file` of user:password lines; without it, clients of this machine are trusted and others refused")
	fs.DurationVar(&cfg.checkpointInterval, "checkpoint-interval", 10*time.Second, "how often changed state is checkpointed")
	fs.TextVar(&cfg.logLevel, "log-level", slog.LevelInfo, "`level` of the log: debug, info, warn, error")
	fs.StringVar(&cfg.logFormat, "log-format", "text", "`format` of the log: text or json")
}

// check finds what flag types cannot.
func (cfg *serverConfig) check() error {
	if cfg.logFormat != "text" && cfg.logFormat != "json" {
		return fmt.Errorf("invalid value %q for flag --log-format: give text or json", cfg.logFormat)
	}
	if (cfg.tlsCert == "") != (cfg.tlsKey == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if cfg.maxConnections < 1 {
		return errors.New("--max-connections must be at least 1")
	}
	if cfg.checkpointInterval <= 0 {
		return errors.New("--checkpoint-interval must be positive")
	}
	if cfg.memoryLimit != 0 && cfg.memoryLimit < 64<<20 {
		return errors.New("--memory-limit must be at least 64MiB")
	}
	for _, a := range []string{cfg.pgAddr, cfg.httpAddr} {
		if a == "" {
			continue
		}
		_, port, err := net.SplitHostPort(a)
		if err != nil {
			return fmt.Errorf("invalid address %q: give host:port", a)
		}
		if _, err := net.LookupPort("tcp", port); err != nil {
			return fmt.Errorf("invalid address %q: %q is not a port", a, port)
		}
	}
	return nil
}

func (cfg *serverConfig) logger(w io.Writer) *slog.Logger {
	ho := &slog.HandlerOptions{Level: cfg.logLevel}
	if cfg.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, ho))
	}
	return slog.New(slog.NewTextHandler(w, ho))
}

// runServe is the command serve.
func runServe(args []string, stdout, stderr io.Writer) int {
	var cfg serverConfig
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	fs.StringVar(&cfg.dataDir, "data-dir", "", "`directory` of the database (required; made if absent)")
	serveFlags(fs, &cfg)
	if code, done := parseFlags(fs, args, stdout, stderr); done {
		return code
	}
	err := cfg.check()
	if err == nil && cfg.dataDir == "" {
		err = errors.New("--data-dir is required")
	}
	if err != nil {
		fmt.Fprintf(stderr, "streamdb serve: %v\nRun `streamdb serve --help` for the flags.\n", err)
		return exitUsage
	}
	log := cfg.logger(stderr)
	s, err := startServer(context.Background(), cfg, log)
	if err != nil {
		fmt.Fprintf(stderr, "streamdb serve: %v\n", err)
		return exitError
	}
	sigs := signals()
	fmt.Fprintf(stdout, "streamdb %s is ready: psql -h %s -p %s -U %s streamdb\n", coord.Version, host(s.pgAddr), port(s.pgAddr), "streamdb")
	return waitAndStop(s, sigs, log)
}

func host(a net.Addr) string {
	h, _, _ := net.SplitHostPort(a.String())
	if h == "::" || h == "0.0.0.0" {
		return "127.0.0.1"
	}
	return h
}

func port(a net.Addr) string {
	_, p, _ := net.SplitHostPort(a.String())
	return p
}

// signals are those that stop a server, from before it says that it is ready.
func signals() chan os.Signal {
	sigs := make(chan os.Signal, 2)
	signal.Notify(sigs, os.Interrupt, syscall.SIGTERM)
	return sigs
}

// waitAndStop serves until a signal, then stops; a second signal ends at once.
func waitAndStop(s *server, sigs chan os.Signal, log *slog.Logger) int {
	defer signal.Stop(sigs)
	code := exitOK
	select {
	case sig := <-sigs:
		log.Info("stopping", slog.String("signal", sig.String()))
	case err := <-s.failed:
		log.Error("stopping after a failure", slog.Any("error", err))
		code = exitError
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go func() {
		if sig, ok := <-sigs; ok {
			log.Warn("ending at once", slog.String("signal", sig.String()))
			os.Exit(exitError)
		}
	}()
	if err := s.stop(ctx); err != nil {
		log.Error("stop", slog.Any("error", err))
		return exitError
	}
	log.Info("stopped")
	return code
}

// openEmbedded starts a server of its own for one sqllogictest file.
func openEmbedded(ctx context.Context) (dsn string, done func(), err error) {
	dir, err := os.MkdirTemp("", "streamdb-slt-")
	if err != nil {
		return "", nil, err
	}
	cfg := serverConfig{dataDir: dir, pgAddr: "127.0.0.1:0", maxConnections: 100, checkpointInterval: time.Hour, volatile: true}
	s, err := startServer(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	done = func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // nothing needs to be kept
		_ = s.stop(ctx)
		os.RemoveAll(dir)
	}
	return fmt.Sprintf("postgres://streamdb@%s/streamdb?sslmode=disable", s.pgAddr), done, nil
}
