package coord

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
)

// execute runs an analyzed statement, writes its rows, and returns its tag.
func (s *Session) execute(ctx context.Context, p *prepared, params []*expr.Const, w pgwire.ResultWriter) (string, error) {
	if s.tx != nil && !s.tx.queried {
		s.tx.queried = !asksNothing(p.stmt.Node)
	}
	switch b := p.bound.(type) {
	case *planner.Query:
		if len(b.Calls) > 0 {
			return s.execCalls(ctx, p, b, params, w)
		}
		if len(b.Steps) > 0 {
			return s.execWritingQuery(ctx, p, b, params, w)
		}
		if p.asOf == nil {
			return s.execQuery(ctx, p, params, w)
		}
		var tag string
		err := s.asOf(ctx, p, func() (err error) {
			tag, err = s.execQuery(ctx, p, params, w)
			return err
		})
		return tag, err
	case *planner.Write:
		tag, err := s.execWrite(ctx, p, b, params, w)
		if err != errChangedForm {
			return tag, err
		}
		// It waited for who changed the table, and has the lock now.
		if err := s.refresh(p); err != nil {
			return "", err
		}
		return s.execute(ctx, p, params, w)
	}
	switch n := p.stmt.Node.(type) {
	case *parser.Postgres:
		return s.execPostgres(ctx, p, n, w)
	case *parser.Explain, *parser.Show, *parser.ShowCreate, *parser.ShowVariable:
		return s.execInfo(ctx, p, w)
	case *parser.SetVariable:
		if n.Local && !s.inBlock() {
			warn(w, pgerror.NoActiveSQLTransaction, "SET LOCAL can only be used in transaction blocks")
		}
		return n.Tag(), s.setVariable(n)
	case *parser.Subscribe:
		return s.execSubscribe(ctx, p, n, w)
	case *parser.Copy:
		return s.execCopy(ctx, p, n, w)
	case *parser.DeclareCursor:
		return n.Tag(), s.declare(ctx, p, n, params)
	case *parser.Fetch:
		return s.fetch(ctx, n, w)
	case *parser.CloseCursor:
		return s.closeCursor(n)
	case *parser.Flush, *parser.Wait:
		return n.Tag(), s.flush(ctx, w)
	case *parser.Recover: // there is nothing that would have to be restarted
		return n.Tag(), nil
	case *parser.ValidateConnection:
		return n.Tag(), s.validateConnection(ctx, n)
	}
	return s.execDDL(ctx, p, w)
}

// execQuery runs a SELECT.
func (s *Session) execQuery(ctx context.Context, p *prepared, params []*expr.Const, w pgwire.ResultWriter) (string, error) {
	if err := w.Begin(p.columns); err != nil {
		return "", err
	}
	if p.point != nil && s.pointable() {
		if n, done, err := s.runPoint(ctx, p.point, params, w); done || err != nil {
			s.read.rows += n
			return selectTag(n), err
		}
	}
	n := 0
	width := len(p.columns)
	err := s.runQuery(ctx, p.rel, params, false, func(b *columnar.Batch) error {
		n += b.N
		return w.Rows(firstCols(b, width), 0, b.N)
	})
	return selectTag(n), err
}

func selectTag(n int) string {
	if n == 1 {
		return "SELECT 1"
	}
	return "SELECT " + strconv.Itoa(n)
}

// flush waits until everything durable is visible in every view, and was delivered
// by every sink that can. (Not in a transaction that has locks, for which a sink may wait.)
func (s *Session) flush(ctx context.Context, w pgwire.ResultWriter) error {
	e := s.c.readEpoch()
	s.c.mu.RLock()
	waiting := make([]*hydration, 0, len(s.c.hydrations))
	for _, h := range s.c.hydrations {
		waiting = append(waiting, h)
	}
	s.c.mu.RUnlock()
	for _, cl := range s.c.clusterList() {
		if err := cl.done.wait(ctx, e); err != nil {
			return err
		}
	}
	for _, h := range waiting {
		if err := h.flow.out.await(ctx, e); err != nil && !h.flow.out.isDropped() {
			return err
		}
	}
	if s.tx != nil && len(s.tx.locks) > 0 {
		return nil
	}
	failed, err := s.c.awaitSinks(ctx, e)
	for _, f := range failed {
		n := *f
		n.Severity = "WARNING"
		w.Notice(&n)
	}
	return err
}

// execPostgres runs what PostgreSQL's grammar parses and no other case took.
func (s *Session) execPostgres(ctx context.Context, p *prepared, n *parser.Postgres, w pgwire.ResultWriter) (string, error) {
	st := n.Stmt
	switch {
	case st.GetTransactionStmt() != nil:
		return s.execTransaction(ctx, st.GetTransactionStmt(), w)
	case st.GetPrepareStmt() != nil:
		return "PREPARE", s.execPrepare(p, st.GetPrepareStmt())
	case st.GetExecuteStmt() != nil:
		return s.execExecute(ctx, p, st.GetExecuteStmt(), w)
	case st.GetDeallocateStmt() != nil:
		return s.deallocate(st.GetDeallocateStmt())
	case st.GetDiscardStmt() != nil:
		return s.discard(ctx, st.GetDiscardStmt())
	case st.GetTruncateStmt() != nil:
		return "TRUNCATE TABLE", s.truncate(ctx, st.GetTruncateStmt(), w)
	case st.GetCheckPointStmt() != nil:
		return "CHECKPOINT", s.c.Checkpoint(ctx)
	case st.GetLockStmt() != nil:
		return "LOCK TABLE", s.lockTables(ctx, st.GetLockStmt())
	case st.GetRefreshMatViewStmt() != nil:
		// It is always fresh: there is only its existence to check.
		if _, err := s.tableOf(st.GetRefreshMatViewStmt().Relation); err != nil {
			return "", err
		}
		return "REFRESH MATERIALIZED VIEW", s.flush(ctx, w)
	case st.GetCallStmt() != nil:
		return s.execCall(ctx, p, st.GetCallStmt(), w)
	case st.GetDoStmt() != nil:
		return "", doBlock(p, st.GetDoStmt())
	case st.GetListenStmt() != nil:
		return "LISTEN", nil
	case st.GetUnlistenStmt() != nil:
		return "UNLISTEN", nil
	case st.GetNotifyStmt() != nil:
		return "NOTIFY", nil
	case st.GetVacuumStmt() != nil:
		if st.GetVacuumStmt().IsVacuumcmd {
			return "VACUUM", nil
		}
		return "ANALYZE", nil
	case st.GetReindexStmt() != nil:
		return "REINDEX", nil
	case st.GetVariableSetStmt().GetKind() == pg.VariableSetKind_VAR_SET_MULTI:
		return "SET", s.setTransaction(st.GetVariableSetStmt(), w)
	case st.GetConstraintsSetStmt() != nil:
		return "SET CONSTRAINTS", s.setConstraints(ctx, st.GetConstraintsSetStmt())
	case isDDL(st):
		return s.execDDL(ctx, p, w)
	case len(st.GetCreateSchemaStmt().GetSchemaElts()) > 0:
		return s.createSchemaWith(ctx, st.GetCreateSchemaStmt(), w)
	case st.GetCreateExtensionStmt() != nil, st.GetDropStmt().GetRemoveType() == pg.ObjectType_OBJECT_EXTENSION:
		return s.extension(st, w)
	case st.GetAlterDefaultPrivilegesStmt() != nil:
		return "ALTER DEFAULT PRIVILEGES", nil
	case risingWaveParameter(st.GetAlterSystemStmt()):
		warn(w, pgerror.SuccessfulCompletion, "the parameter has no effect")
		return "ALTER SYSTEM", nil
	case st.GetGrantStmt() != nil:
		if st.GetGrantStmt().IsGrant {
			return "GRANT", nil
		}
		return "REVOKE", nil
	}
	if f := s.typeStatement(p, st, w); f != nil {
		d, err := s.beginDDL(ctx)
		if err != nil {
			return "", err
		}
		before, from := d.cat, len(d.changes)
		tag, err := f(d)
		if err == nil {
			err = s.checkDependents(d, before, from)
		}
		return tag, err
	}
	return "", absent(st)
}

// risingWaveParameter says whether ALTER SYSTEM sets a parameter of RisingWave's that
// there is nothing for here to be set by.
func risingWaveParameter(n *pg.AlterSystemStmt) bool {
	switch n.GetSetstmt().GetName() {
	case "barrier_interval_ms", "checkpoint_frequency", "max_concurrent_creating_streaming_jobs", "pause_on_next_bootstrap", "enable_tracing",
		"time_travel_retention_ms", "adaptive_parallelism_strategy", "per_database_isolation", "license_key", "parallel_compact_size_mb",
		"sstable_size_mb", "block_size_kb", "bloom_false_positive", "data_directory", "state_store", "backup_storage_url", "backup_storage_directory",
		"use_new_object_prefix_strategy", "enforce_secret":
		return true
	}
	return false
}

// statementName names a statement of PostgreSQL's tree in an error, after the
// name of its node.
func statementName(st *pg.Node) string {
	name := fmt.Sprintf("%T", st.Node)
	name = strings.TrimSuffix(strings.TrimPrefix(name, "*pg_query.Node_"), "Stmt")
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// setVariable runs SET and RESET.
func (s *Session) setVariable(n *parser.SetVariable) error {
	if strings.EqualFold(n.Name, "session_authorization") {
		if n.Reset || len(n.Values) == 0 || n.Values[0].Text == s.user {
			return nil
		}
		return pgerror.New(pgerror.InvalidParameterValue, "role \"%s\" does not exist", n.Values[0].Text)
	}
	if n.Reset {
		return s.set.reset(n.Name)
	}
	if len(n.Values) == 0 {
		return s.set.reset(n.Name)
	}
	words := make([]string, len(n.Values))
	for i, v := range n.Values {
		words[i] = v.Text
		if n.Name == "search_path" {
			words[i] = pathWord(v.Text)
		}
	}
	value := strings.Join(words, ", ")
	if strings.EqualFold(n.Name, "datestyle") {
		value = strings.Join(words, ",")
	}
	return s.set.set(n.Name, value, n.Local)
}

// pathWord quotes a schema name of a search_path if it needs it.
func pathWord(w string) string {
	plain := w != ""
	for i, c := range w {
		if !(c >= 'a' && c <= 'z' || c == '_' || (i > 0 && (c >= '0' && c <= '9' || c == '$'))) {
			plain = false
		}
	}
	if plain {
		return w
	}
	if parts := parsePath(w); len(parts) > 1 && !strings.ContainsAny(w, `"`) {
		return w
	}
	return quoteName(w)
}

// execPrepare runs SQL's PREPARE.
func (s *Session) execPrepare(p *prepared, n *pg.PrepareStmt) error {
	if s.stmts[n.Name] != nil {
		return pgerror.New(pgerror.DuplicatePreparedStatement, "prepared statement \"%s\" already exists", n.Name)
	}
	q := &prepared{name: n.Name, sql: p.sql, fromSQL: true}
	for _, a := range n.Argtypes {
		t, err := planner.ResolveType(s.bindContext(nil), p.stmt.Text, parser.TypeName{Node: a.GetTypeName(), Base: p.stmt.Start})
		if err != nil {
			return err
		}
		q.declared = append(q.declared, t.OID)
	}
	inner, err := innerStatement(p.stmt, n.Query)
	if err != nil {
		return err
	}
	q.stmt = inner
	if err := s.analyze(q); err != nil {
		return err
	}
	s.stmts[n.Name] = q
	return nil
}

// innerStatement is a statement inside of another one, with its positions kept.
func innerStatement(outer *parser.Statement, n *pg.Node) (*parser.Statement, error) {
	st := &parser.Statement{Text: outer.Text, Start: outer.Start, Len: outer.Len}
	base := outer.Start
	if p, ok := outer.Node.(*parser.Postgres); ok {
		base = p.Base
	}
	if n.GetSelectStmt() != nil {
		st.Node = &parser.Select{Query: parser.Query{Stmt: n, Base: base, SQL: outer.SQL()}}
	} else {
		st.Node = &parser.Postgres{Stmt: n, Base: base}
	}
	return st, nil
}

// execExecute runs SQL's EXECUTE.
func (s *Session) execExecute(ctx context.Context, p *prepared, n *pg.ExecuteStmt, w pgwire.ResultWriter) (string, error) {
	q, params, err := s.executed(p.stmt.Text, n, p.stmt.Node.(*parser.Postgres).Base)
	if err != nil || q.stmt == nil {
		return "", err
	}
	return s.execute(ctx, q, params, w)
}

// executed is the prepared statement that EXECUTE names, and its parameters; the
// locations in EXECUTE count from base in text.
func (s *Session) executed(text string, n *pg.ExecuteStmt, base int) (*prepared, []*expr.Const, error) {
	q, err := s.statement(n.Name)
	if err != nil {
		return nil, nil, err
	}
	if err := s.refresh(q); err != nil {
		return nil, nil, err
	}
	if len(n.Params) != len(q.params) {
		return nil, nil, pgerror.New(pgerror.SyntaxError, "wrong number of parameters for prepared statement \"%s\"", n.Name).
			WithDetail("Expected %d parameters but got %d.", len(q.params), len(n.Params))
	}
	consts := make([]*expr.Const, len(n.Params))
	for i, a := range n.Params {
		e, err := planner.BindExpr(s.bindContext(nil), text, &parser.Expr{Node: a, Base: base}, nil, "EXECUTE parameters", q.params[i])
		if err != nil {
			return nil, nil, err
		}
		if consts[i], err = expr.EvalConst(e, s.exprContext()); err != nil {
			return nil, nil, err
		}
	}
	return q, consts, nil
}

func (s *Session) deallocate(n *pg.DeallocateStmt) (string, error) {
	if n.Name == "" {
		clear(s.stmts)
		return "DEALLOCATE ALL", nil
	}
	if s.stmts[n.Name] == nil {
		return "", pgerror.New(pgerror.InvalidSQLStatementName, "prepared statement \"%s\" does not exist", n.Name)
	}
	delete(s.stmts, n.Name)
	return "DEALLOCATE", nil
}

func (s *Session) discard(ctx context.Context, n *pg.DiscardStmt) (string, error) {
	switch n.Target {
	case pg.DiscardMode_DISCARD_ALL:
		if s.tx != nil && s.tx.block {
			return "", pgerror.New(pgerror.ActiveSQLTransaction, "DISCARD ALL cannot run inside a transaction block")
		}
		clear(s.stmts)
		for name, p := range s.portals {
			if p.cursor {
				p.close()
				delete(s.portals, name)
			}
		}
		s.beginTx()
		if err := s.discardTemp(ctx); err != nil {
			return "", err
		}
		return "DISCARD ALL", s.set.reset("all")
	case pg.DiscardMode_DISCARD_PLANS:
		return "DISCARD PLANS", nil
	case pg.DiscardMode_DISCARD_SEQUENCES:
		s.seqMu.Lock()
		s.values, s.lastSeq = nil, 0
		s.seqMu.Unlock()
		return "DISCARD SEQUENCES", nil
	}
	s.beginTx()
	return "DISCARD TEMP", s.discardTemp(ctx)
}

// constBatch makes a batch of text rows, for statements that answer with a
// small table of their own.
func textBatch(rows [][]string, n int) *columnar.Batch {
	b := &columnar.Batch{N: len(rows)}
	for c := range n {
		bl := columnar.NewBuilder(columnar.KindBytes, len(rows))
		for _, r := range rows {
			if r[c] == nullText {
				bl.Null()
			} else {
				bl.String(r[c])
			}
		}
		b.Cols = append(b.Cols, bl.Build())
	}
	return b
}

// nullText stands for NULL in a textBatch.
const nullText = "\x00"
