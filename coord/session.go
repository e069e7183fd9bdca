package coord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// Session is one client session; see pgwire.Session for who calls what.
type Session struct {
	c    *Coordinator
	info pgwire.ConnInfo
	user string
	// database is what the client calls the database: there is one, and it goes by the
	// name that each client asks for.
	database string
	set      *settings
	tx       *txn
	notices  notices
	several  bool // the running statement is one of several in a query text
	// arguments are those of the function whose statements are running, calls how
	// deep such are nested.
	arguments *planner.Arguments
	calls     int
	stmts     map[string]*prepared
	portals   map[string]*portal
	rules     map[plan.ObjectID]*rules
	read      rowsRead // by statements up to now, for EXPLAIN ANALYZE
	// client and server are the ends of the connection, if it is one of IP.
	client, server netip.AddrPort
	// tempSchema is the schema of the session's temporary objects, once it has any.
	tempSchema string
	onCommit   bool // some of them are emptied or dropped at a commit

	seqMu     sync.Mutex
	values    map[plan.ObjectID]int64 // the last value got from each sequence
	lastSeq   plan.ObjectID
	lastWrite dataflow.Epoch
	changed   []string // settings to report with the next result
	started   time.Time

	text        types.Options // of the settings and the catalog of textVersion, textCat
	textVersion int
	textCat     *catalog.Snapshot
	path        []string // search_path resolved, of pathVersion and pathCat
	pathKey     string
	userSchemas []string // path without the temporary objects that are implied
	pathVersion int
	pathCat     *catalog.Snapshot

	// subqueries is held by the one query of a function that runs.
	subqueries sync.Mutex

	mu      sync.Mutex
	cancel  context.CancelCauseFunc // of the running statement
	aborted error
	ctx     context.Context // of the running statement
	state   string          // active, idle, …, for pg_stat_activity
	query   string
	queryAt time.Time
}

// Connect implements pgwire.Backend.
func (c *Coordinator) Connect(_ context.Context, params map[string]string, info pgwire.ConnInfo) (pgwire.Session, error) {
	if c.closed.Load() {
		return nil, errShutdown
	}
	s := &Session{c: c, info: info, user: params["user"], database: params["database"], set: newSettings(),
		stmts: map[string]*prepared{}, portals: map[string]*portal{}, started: c.opts.Now(), state: "idle"}
	s.client, _ = netip.ParseAddrPort(info.RemoteAddr) // no such address: it stays invalid
	s.server, _ = netip.ParseAddrPort(info.LocalAddr)
	if s.user == "" {
		s.user = "streamdb"
	}
	if s.database == "" {
		s.database = databaseName
	}
	s.set.base["session_authorization"] = s.user
	for k, v := range params {
		switch k {
		case "user", "database", "replication":
		case "options":
			if err := s.startupOptions(v); err != nil {
				return nil, err
			}
		default:
			s.startupSetting(k, v)
		}
	}
	s.tempSchema = fmt.Sprintf("pg_temp_%d", info.PID)
	s.set.onEdit = func(name string) { s.changed = append(s.changed, name) }
	c.mu.Lock()
	c.sessions[s] = struct{}{}
	c.mu.Unlock()
	return s, nil
}

// startupSetting sets a session default from a startup parameter; what is
// unknown is ignored.
func (s *Session) startupSetting(name, value string) {
	name = strings.ToLower(name)
	d := settingIndex[name]
	if d == nil || d.kind == settingReadOnly {
		return
	}
	if v, err := s.set.normalize(d, value); err == nil {
		s.set.base[name] = v
		s.set.refresh(name)
	}
}

// startupOptions reads `-c name=value` and `--name=value` switches.
func (s *Session) startupOptions(v string) error {
	words := strings.Fields(strings.ReplaceAll(v, `\ `, "\x00"))
	for i := 0; i < len(words); i++ {
		w := strings.ReplaceAll(words[i], "\x00", " ")
		switch {
		case w == "-c" && i+1 < len(words):
			i++
			w = strings.ReplaceAll(words[i], "\x00", " ")
		case strings.HasPrefix(w, "-c"):
			w = w[2:]
		case strings.HasPrefix(w, "--"):
			w = w[2:]
		default:
			return pgerror.New(pgerror.SyntaxError, "invalid command-line argument for server process: %s", w)
		}
		name, val, ok := strings.Cut(w, "=")
		if !ok {
			return pgerror.New(pgerror.SyntaxError, "invalid command-line argument for server process: %s", w)
		}
		s.startupSetting(strings.ReplaceAll(name, "-", "_"), val)
	}
	return nil
}

// ParameterStatuses implements pgwire.Session.
func (s *Session) ParameterStatuses() [][2]string {
	var out [][2]string
	for i := range settingDefs {
		if d := &settingDefs[i]; d.report {
			v, _ := s.set.get(d.name)
			out = append(out, [2]string{d.name, v})
		}
	}
	return out
}

// TextOptions implements pgwire.Formatter.
func (s *Session) TextOptions() *types.Options {
	o := &s.text
	if cat := s.snapshot(); s.textVersion != s.set.version || s.textCat != cat {
		s.textVersion, s.textCat = s.set.version, cat
		*o = types.Options{Location: s.set.zone, Style: s.set.style, Names: s.names()}
		o.FloatDigits, o.ByteaEscape, o.XMLDocument = s.set.digits, s.set.escape, s.set.xmlDocs
	}
	if s.tx != nil {
		o.Now = s.tx.started
	}
	return o
}

// TxStatus implements pgwire.Session.
func (s *Session) TxStatus() byte {
	switch {
	case s.tx == nil || !s.tx.block:
		return 'I'
	case s.tx.failed:
		return 'E'
	}
	return 'T'
}

// Close implements pgwire.Session.
func (s *Session) Close() {
	s.rollbackTx()
	for _, p := range s.portals {
		p.close()
	}
	s.dropTemporary()
	s.c.advisory.release(s, true, true)
	s.c.mu.Lock()
	delete(s.c.sessions, s)
	s.c.mu.Unlock()
}

// abort cancels the running statement, and all later ones.
func (s *Session) abort(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aborted = err
	if s.cancel != nil {
		s.cancel(err)
	}
}

// running brackets a statement: it can be cancelled, is bounded in time, and a
// panic in it is an internal error of the statement and not of the server.
func (s *Session) running(ctx context.Context, sql string, f func(ctx context.Context) error) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	if s.aborted != nil {
		defer s.mu.Unlock()
		return s.aborted
	}
	s.cancel, s.ctx, s.state, s.query, s.queryAt = cancel, ctx, "active", sql, s.c.opts.Now()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.cancel, s.ctx, s.state = nil, nil, "idle"
		if s.tx != nil && s.tx.block {
			s.state = "idle in transaction"
		}
		s.mu.Unlock()
	}()
	if d := s.set.timeout; d > 0 {
		t := time.AfterFunc(d, func() {
			cancel(pgerror.New(pgerror.QueryCanceled, "canceling statement due to statement timeout"))
		})
		defer t.Stop()
	}
	defer func() {
		if r := recover(); r != nil {
			err = s.panicked(r)
		}
		if err != nil && errors.Is(err, context.Canceled) {
			if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
				err = cause
			} else {
				err = pgerror.New(pgerror.QueryCanceled, "canceling statement due to user request")
			}
		}
	}()
	return f(ctx)
}

// Simple implements pgwire.Session: the statements of a query text are one
// implicit transaction, unless they control transactions themselves.
func (s *Session) Simple(ctx context.Context, sql string, w pgwire.ResultWriter) error {
	return s.running(ctx, sql, func(ctx context.Context) error {
		stmts, err := parser.Parse(sql)
		if err != nil {
			s.failTx()
			return err
		}
		if len(stmts) == 0 {
			return w.Complete("")
		}
		s.several = len(stmts) > 1
		defer func() { s.several = false }()
		for i := range stmts {
			p := &prepared{stmt: &stmts[i], sql: stmts[i].SQL()}
			if err := s.one(ctx, p, i == len(stmts)-1, w); err != nil {
				s.failTx()
				return err
			}
		}
		return nil
	})
}

// one runs a statement of a simple query and ends the implicit transaction
// after the last one, before its completion is told.
func (s *Session) one(ctx context.Context, p *prepared, last bool, w pgwire.ResultWriter) error {
	if err := s.admit(p.stmt); err != nil {
		return err
	}
	defer s.notices.tell(w, true)
	if err := s.analyze(p); err != nil {
		return err
	}
	s.notices.tell(w, false)
	if !isTxControl(p.stmt.Node) {
		s.beginTx()
	}
	tag, err := s.execute(ctx, p, nil, w)
	s.notices.tell(w, true)
	if err != nil {
		return err
	}
	if last && s.tx != nil && !s.tx.block {
		if err := s.commitTx(ctx); err != nil {
			return err
		}
	}
	s.report(w)
	return w.Complete(tag)
}

// report tells the client of settings that have changed.
func (s *Session) report(w pgwire.ResultWriter) {
	for _, name := range s.changed {
		v, _ := s.set.get(name)
		w.ParameterStatus(name, v)
	}
	s.changed = s.changed[:0]
}

// failTx marks the transaction as failed, or rolls an implicit one back.
func (s *Session) failTx() {
	switch {
	case s.tx == nil:
	case s.tx.block:
		s.tx.failed = true
	default:
		s.rollbackTx()
	}
}

// admit refuses all but the end of a failed transaction.
func (s *Session) admit(st *parser.Statement) error {
	if s.tx == nil || !s.tx.failed || st == nil {
		return nil
	}
	if p, ok := st.Node.(*parser.Postgres); ok {
		if t := p.Stmt.GetTransactionStmt(); t != nil {
			switch t.Kind {
			case pg.TransactionStmtKind_TRANS_STMT_COMMIT, pg.TransactionStmtKind_TRANS_STMT_ROLLBACK,
				pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
				return nil
			}
		}
	}
	return pgerror.New(pgerror.InFailedSQLTransaction, "current transaction is aborted, commands ignored until end of transaction block")
}

func isTxControl(n parser.Node) bool {
	p, ok := n.(*parser.Postgres)
	return ok && p.Stmt.GetTransactionStmt() != nil
}

// Parse implements pgwire.Session.
func (s *Session) Parse(ctx context.Context, name, sql string, paramTypes []types.OID) error {
	return s.failing(ctx, sql, func(context.Context) error {
		if name != "" && s.stmts[name] != nil {
			return pgerror.New(pgerror.DuplicatePreparedStatement, "prepared statement \"%s\" already exists", name)
		}
		p, err := s.prepare(sql, paramTypes)
		if err != nil {
			return err
		}
		p.name = name
		s.stmts[name] = p
		return nil
	})
}

// brief brackets a step that neither waits nor computes: it cannot be cancelled.
func (s *Session) brief(f func() error) (err error) {
	s.mu.Lock()
	aborted := s.aborted
	s.mu.Unlock()
	if aborted != nil {
		return aborted
	}
	defer func() {
		if r := recover(); r != nil {
			err = s.panicked(r)
		}
		if err != nil && s.tx != nil && s.tx.block {
			s.tx.failed = true
		}
	}()
	return f()
}

// panicked makes an internal error of a panic, unless it is a user's error or tells of a
// limit.
func (s *Session) panicked(r any) error {
	if err, ok := r.(*pgerror.Error); ok {
		return err
	}
	if err, ok := r.(error); ok && errors.Is(err, columnar.ErrTooLarge) {
		return pgerror.New(pgerror.ProgramLimitExceeded, "%s", err).WithHint("Make shorter values, or fewer rows of them.")
	}
	s.c.log.Error("statement panicked", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
	return pgerror.New(pgerror.InternalError, "internal error: %v", r).
		WithHint("This is a bug in streamdb; the server log has the details.")
}

// failing is running for the steps of the extended protocol: an error fails
// the transaction.
func (s *Session) failing(ctx context.Context, sql string, f func(ctx context.Context) error) error {
	err := s.running(ctx, sql, f)
	if err != nil && s.tx != nil && s.tx.block {
		s.tx.failed = true
	}
	return err
}

// prepare parses and analyzes the one statement of a text.
func (s *Session) prepare(sql string, paramTypes []types.OID) (*prepared, error) {
	stmts, err := parser.Parse(sql)
	if err != nil {
		return nil, err
	}
	p := &prepared{sql: sql, declared: paramTypes}
	switch len(stmts) {
	case 0:
		return p, nil
	case 1:
		p.stmt = &stmts[0]
	default:
		return nil, pgerror.New(pgerror.SyntaxError, "cannot insert multiple commands into a prepared statement")
	}
	if err := s.admit(p.stmt); err != nil {
		return nil, err
	}
	return p, s.analyze(p)
}

func (s *Session) statement(name string) (*prepared, error) {
	p := s.stmts[name]
	if p == nil {
		if name == "" {
			return nil, pgerror.New(pgerror.InvalidSQLStatementName, "unnamed prepared statement does not exist")
		}
		return nil, pgerror.New(pgerror.InvalidSQLStatementName, "prepared statement \"%s\" does not exist", name)
	}
	return p, nil
}

// DescribeStatement implements pgwire.Session.
func (s *Session) DescribeStatement(ctx context.Context, name string) (pgwire.StatementDesc, error) {
	var d pgwire.StatementDesc
	err := s.failing(ctx, "", func(context.Context) error {
		p, err := s.statement(name)
		if err != nil {
			return err
		}
		if err := s.refresh(p); err != nil {
			return err
		}
		for _, t := range p.params {
			d.Params = append(d.Params, t.OID)
		}
		d.Columns = p.columns
		return nil
	})
	return d, err
}

// Bind implements pgwire.Session.
func (s *Session) Bind(_ context.Context, name, statement string, params []pgwire.Param) error {
	return s.brief(func() error {
		p, err := s.statement(statement)
		if err != nil {
			return err
		}
		if err := s.admit(p.stmt); err != nil {
			return err
		}
		if err := s.refresh(p); err != nil {
			return err
		}
		if name != "" && s.portals[name] != nil {
			return pgerror.New(pgerror.DuplicateCursor, "cursor \"%s\" already exists", name)
		}
		if len(params) != len(p.params) {
			return pgerror.New(pgerror.ProtocolViolation, "bind message supplies %d parameters, but prepared statement \"%s\" requires %d", len(params), statement, len(p.params))
		}
		consts, err := s.decodeParams(p, params)
		if err != nil {
			return err
		}
		if p.stmt != nil && !isTxControl(p.stmt.Node) {
			s.beginTx()
		}
		if old := s.portals[name]; old != nil {
			old.close()
		}
		s.portals[name] = &portal{name: name, p: p, params: consts, tx: s.tx, level: s.level()}
		return nil
	})
}

// decodeParams makes constants of bound parameters.
func (s *Session) decodeParams(p *prepared, params []pgwire.Param) ([]*expr.Const, error) {
	consts := make([]*expr.Const, len(params))
	opts := s.TextOptions()
	for i, x := range params {
		t := p.params[i]
		b := columnar.NewBuilder(t.Kind(), 1)
		var err error
		switch {
		case x.Data == nil:
			b.Null()
		case x.Binary:
			err = types.ParseBinary(b, t, x.Data)
		default:
			err = types.ParseTextBytes(b, t, x.Data, opts)
		}
		if err != nil {
			e := *pgerror.As(err)
			e.Where = fmt.Sprintf("unnamed portal parameter $%d", i+1)
			return nil, &e
		}
		consts[i] = &expr.Const{Val: b.Build(), Typ: t}
	}
	return consts, nil
}

func (s *Session) portal(name string) (*portal, error) {
	p := s.portals[name]
	if p == nil {
		return nil, pgerror.New(pgerror.InvalidCursorName, "portal \"%s\" does not exist", name)
	}
	return p, nil
}

// DescribePortal implements pgwire.Session.
func (s *Session) DescribePortal(_ context.Context, name string) ([]pgwire.Column, error) {
	var cols []pgwire.Column
	err := s.brief(func() error {
		p, err := s.portal(name)
		if err == nil {
			cols = p.columns()
		}
		return err
	})
	return cols, err
}

// Execute implements pgwire.Session.
func (s *Session) Execute(ctx context.Context, name string, maxRows int, w pgwire.ResultWriter) (suspended bool, err error) {
	p, err := s.portal(name)
	if err != nil {
		s.failTx()
		return false, err
	}
	err = s.failing(ctx, p.p.sql, func(ctx context.Context) error {
		if p.p.stmt == nil {
			return w.Complete("")
		}
		if err := s.admit(p.p.stmt); err != nil {
			return err
		}
		suspended, err = s.executePortal(ctx, p, maxRows, w)
		return err
	})
	return suspended, err
}

// CloseStatement implements pgwire.Session.
func (s *Session) CloseStatement(name string) error {
	delete(s.stmts, name)
	return nil
}

// ClosePortal implements pgwire.Session.
func (s *Session) ClosePortal(name string) error {
	if p := s.portals[name]; p != nil {
		p.close()
		delete(s.portals, name)
	}
	return nil
}

// Sync implements pgwire.Session.
func (s *Session) Sync(ctx context.Context, failed bool) error {
	if s.tx == nil || s.tx.block {
		return nil
	}
	if failed || s.tx.failed {
		s.rollbackTx()
		return nil
	}
	if len(s.tx.writes) == 0 && s.tx.ddl == nil {
		return s.commitTx(ctx) // there is nothing to wait for
	}
	return s.running(ctx, "", s.commitTx)
}

// bindContext is what the session's statements are bound in.
func (s *Session) bindContext(declared []types.OID) *planner.Context {
	return &planner.Context{
		Catalog:    s.snapshot(),
		Database:   s.database,
		SearchPath: s.searchPath(),
		ParamTypes: declared,
		Session:    s.exprContext(),
		Expand:     s.expand(),
		TempSchema: s.tempSchema,
		Upsert:     s.set.bool("upsert_dml"),
		Arguments:  s.arguments,
	}
}

// searchPath is where unqualified relations are looked up: the session's
// search_path with "$user" and pg_temp resolved, after its temporary objects
// unless the path names them. It is not to be changed.
func (s *Session) searchPath() []string {
	cat := s.snapshot()
	if s.pathVersion == s.set.version && s.pathCat == cat {
		return s.path
	}
	out := []string{s.tempSchema}
	for _, p := range s.set.path {
		switch p {
		case "$user":
			p = s.user
		case catalog.SchemaTemp:
			p = s.tempSchema
		}
		if p == s.tempSchema || cat.Schema(p) != nil {
			out = append(out, p)
		}
	}
	s.userSchemas = out[1:]
	if !s.hasTemp() || slices.Contains(s.userSchemas, s.tempSchema) {
		out = s.userSchemas
	}
	s.path, s.pathKey = out, fmt.Sprintf("%q", out)
	s.pathVersion, s.pathCat = s.set.version, cat
	return out
}

// userPath is the search path without the temporary objects that are implied.
func (s *Session) userPath() []string {
	s.searchPath()
	return s.userSchemas
}

// searchPathKey is the search path as one string, to compare.
func (s *Session) searchPathKey() string {
	s.searchPath()
	return s.pathKey
}

// setConfig is set_config(): it gives the value that is in force then.
func (s *Session) setConfig(name, value string, local bool) (string, error) {
	if err := s.set.set(name, value, local); err != nil {
		return "", err
	}
	value, _ = s.set.get(name)
	return value, nil
}

// exprContext is what expressions of a statement may depend on.
func (s *Session) exprContext() *expr.Context {
	x := &expr.Context{
		Notice: s.notices.note, Statement: s.c.opts.Now(), Location: s.set.zone, Style: s.set.style, User: s.user, Database: s.database,
		SearchPath: s.userPath(), Setting: s.set.get, SetSetting: s.setConfig, Catalog: s.catalogReader(), Epoch: s.c.readEpoch(),
		Clock: s.c.opts.Now, Started: s.c.started, BackendPID: int32(s.info.PID), Client: s.client, Server: s.server,
		Cancel: s.c.cancelSession, Sleep: s.sleep, Locks: sessionLocks{s}, Sequences: sequenceValues{s}, Query: s.lockedSubquery,
	}
	x.FloatDigits, x.ByteaEscape, x.XMLDocument = s.set.digits, s.set.escape, s.set.xmlDocs
	x.Now = x.Statement
	if s.tx != nil && s.tx.explicit {
		x.Now = s.tx.started
	}
	return x
}
