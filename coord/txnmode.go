package coord

import (
	"context"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// txnModes are the characteristics of a transaction, which AND CHAIN hands on.
type txnModes struct {
	isolation  string
	readOnly   bool
	deferrable bool
}

// mode is the value of a setting that the transaction keeps itself.
func (m txnModes) mode(name string) (string, bool) {
	switch name {
	case "transaction_isolation":
		return m.isolation, true
	case "transaction_read_only":
		return onOff(m.readOnly), true
	case "transaction_deferrable":
		return onOff(m.deferrable), true
	}
	return "", false
}

// repeat says whether every statement of the transaction sees one epoch.
func (m txnModes) repeat() bool {
	return m.isolation == "repeatable read" || m.isolation == "serializable" || m.isolation == "strict serializable"
}

// setMode changes a characteristic, by the name of its setting and a value that
// is one of it.
func (tx *txn) setMode(name, value string) error {
	refuse := func(format string) error { return pgerror.New(pgerror.ActiveSQLTransaction, "%s", format) }
	within := len(tx.saves) > 0
	switch name {
	case "transaction_isolation":
		switch {
		case value == tx.isolation:
		case tx.queried:
			return refuse("SET TRANSACTION ISOLATION LEVEL must be called before any query")
		case within:
			return refuse("SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction")
		}
		tx.isolation = value
	case "transaction_read_only":
		switch {
		case value == "on" || !tx.readOnly:
		case within:
			return refuse("cannot set transaction read-write mode inside a read-only transaction")
		case tx.queried:
			return refuse("transaction read-write mode must be set before any query")
		}
		tx.readOnly = value == "on"
	case "transaction_deferrable":
		switch {
		case within:
			return refuse("SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction")
		case tx.queried:
			return refuse("SET TRANSACTION [NOT] DEFERRABLE must be called before any query")
		}
		tx.deferrable = value == "on"
	}
	return nil
}

// asksNothing says whether a statement is one of those before which a
// transaction's characteristics can still be set.
func asksNothing(n parser.Node) bool {
	switch n := n.(type) {
	case *parser.SetVariable, *parser.ShowVariable, *parser.Fetch:
		return true
	case *parser.Postgres:
		st := n.Stmt
		return st.GetTransactionStmt() != nil || st.GetLockStmt() != nil || st.GetVariableSetStmt() != nil ||
			st.GetConstraintsSetStmt() != nil || st.GetListenStmt() != nil || st.GetUnlistenStmt() != nil ||
			st.GetNotifyStmt() != nil || st.GetCheckPointStmt() != nil
	}
	return false
}

// inBlock says whether statements that need a transaction block have one: BEGIN
// was said, or the statement is one of several in a query text.
func (s *Session) inBlock() bool { return s.tx != nil && s.tx.block || s.several }

func warn(w pgwire.ResultWriter, code, msg string) {
	w.Notice(&pgerror.Error{Severity: "WARNING", Code: code, Message: msg})
}

// execTransaction runs BEGIN, COMMIT, ROLLBACK and the savepoint statements.
func (s *Session) execTransaction(ctx context.Context, n *pg.TransactionStmt, w pgwire.ResultWriter) (string, error) {
	inBlock := s.tx != nil && s.tx.block
	needBlock := func(what string) error {
		if !inBlock {
			return pgerror.New(pgerror.NoActiveSQLTransaction, "%s can only be used in transaction blocks", what)
		}
		return nil
	}
	switch n.Kind {
	case pg.TransactionStmtKind_TRANS_STMT_BEGIN, pg.TransactionStmtKind_TRANS_STMT_START:
		tag := "BEGIN"
		if n.Kind == pg.TransactionStmtKind_TRANS_STMT_START {
			tag = "START TRANSACTION"
		}
		if inBlock {
			warn(w, pgerror.ActiveSQLTransaction, "there is already a transaction in progress")
		}
		tx := s.beginTx()
		tx.block, tx.explicit = true, true
		return tag, s.transactionModes(n.Options)
	case pg.TransactionStmtKind_TRANS_STMT_COMMIT, pg.TransactionStmtKind_TRANS_STMT_ROLLBACK:
		return s.endBlock(ctx, n, w)
	case pg.TransactionStmtKind_TRANS_STMT_SAVEPOINT:
		if err := needBlock("SAVEPOINT"); err != nil {
			return "", err
		}
		s.savepoint(n.SavepointName)
		return "SAVEPOINT", nil
	case pg.TransactionStmtKind_TRANS_STMT_RELEASE:
		if err := needBlock("RELEASE SAVEPOINT"); err != nil {
			return "", err
		}
		return "RELEASE", s.release(n.SavepointName)
	case pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
		if err := needBlock("ROLLBACK TO SAVEPOINT"); err != nil {
			return "", err
		}
		return "ROLLBACK", s.rollbackTo(n.SavepointName)
	}
	return "", pgerror.Unsupported("two-phase commit")
}

// endBlock runs COMMIT and ROLLBACK, and begins the next transaction of AND CHAIN.
func (s *Session) endBlock(ctx context.Context, n *pg.TransactionStmt, w pgwire.ResultWriter) (string, error) {
	tag := "ROLLBACK"
	if n.Kind == pg.TransactionStmtKind_TRANS_STMT_COMMIT {
		tag = "COMMIT"
	}
	if s.tx == nil || !s.tx.block {
		if n.Chain {
			return "", pgerror.New(pgerror.NoActiveSQLTransaction, "%s AND CHAIN can only be used in transaction blocks", tag)
		}
		warn(w, pgerror.NoActiveSQLTransaction, "there is no transaction in progress")
		if tag == "COMMIT" {
			return tag, s.commitTx(ctx)
		}
		s.rollbackTx()
		return tag, nil
	}
	modes := s.tx.txnModes
	if s.tx.failed {
		tag = "ROLLBACK"
	}
	if tag == "ROLLBACK" {
		s.rollbackTx()
	} else if err := s.commitTx(ctx); err != nil {
		return "", err
	}
	if n.Chain {
		tx := s.beginTx()
		tx.block, tx.explicit = true, true
		tx.txnModes = modes
	}
	return tag, nil
}

// transactionModes applies ISOLATION LEVEL, READ ONLY and DEFERRABLE.
func (s *Session) transactionModes(opts []*pg.Node) error {
	for _, o := range opts {
		if name, value := modeOption(o); name != "" {
			if err := s.set.set(name, value, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// modeOption is the setting that an option of BEGIN or SET TRANSACTION stands for.
func modeOption(o *pg.Node) (name, value string) {
	d := o.GetDefElem()
	v := d.GetArg().GetAConst()
	if d.GetDefname() == "transaction_isolation" {
		return d.Defname, strings.ToLower(v.GetSval().GetSval())
	}
	return d.GetDefname(), onOff(v.GetIval().GetIval() != 0)
}

// setTransaction runs SET TRANSACTION and SET SESSION CHARACTERISTICS.
func (s *Session) setTransaction(n *pg.VariableSetStmt, w pgwire.ResultWriter) error {
	switch n.Name {
	case "SESSION CHARACTERISTICS":
		for _, o := range n.Args {
			name, value := modeOption(o)
			if err := s.set.set("default_"+name, value, false); err != nil {
				return err
			}
		}
		return nil
	case "TRANSACTION":
		if !s.inBlock() {
			warn(w, pgerror.NoActiveSQLTransaction, "SET TRANSACTION can only be used in transaction blocks")
		}
		return s.transactionModes(n.Args)
	}
	return pgerror.Unsupported("SET " + n.Name)
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
