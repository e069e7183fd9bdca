package coord

import (
	"context"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// isDDL reports whether a statement in PostgreSQL's tree changes the catalog.
func isDDL(st *pg.Node) bool {
	return altersFunction(st) || st.GetCommentStmt() != nil || st.GetCreateSeqStmt() != nil || st.GetAlterSeqStmt() != nil || st.GetCreateFunctionStmt() != nil || dropsFunctions(st)
}

func dropsFunctions(st *pg.Node) bool {
	k := st.GetDropStmt().GetRemoveType()
	return k == pg.ObjectType_OBJECT_FUNCTION || k == pg.ObjectType_OBJECT_ROUTINE || k == pg.ObjectType_OBJECT_PROCEDURE
}

// postgresDDL runs what changes the catalog and is in PostgreSQL's tree.
func (s *Session) postgresDDL(d *ddlState, p *prepared, n *parser.Postgres, w pgwire.ResultWriter) (string, error) {
	switch st := n.Stmt; {
	case st.GetCreateSeqStmt() != nil:
		return "CREATE SEQUENCE", s.createSequence(d, p, st.GetCreateSeqStmt(), w)
	case st.GetAlterSeqStmt() != nil:
		return "ALTER SEQUENCE", s.alterSequence(d, p, st.GetAlterSeqStmt(), w)
	case st.GetCreateFunctionStmt() != nil:
		return s.createFunction(d, p, st.GetCreateFunctionStmt())
	case altersFunction(st):
		return s.alterFunction(d, p, st)
	case st.GetCommentStmt() != nil:
		return "COMMENT", s.commentPostgres(d, p, st.GetCommentStmt(), w)
	case dropsFunctions(st):
		return "DROP " + kindWords(st.GetDropStmt().RemoveType), s.dropFunctions(d, p, st.GetDropStmt(), w)
	}
	return "", absent(n.Stmt)
}

// truncate runs TRUNCATE.
func (s *Session) truncate(ctx context.Context, n *pg.TruncateStmt, w pgwire.ResultWriter) error {
	var tables []*catalog.Object
	have := map[*catalog.Object]bool{}
	for _, r := range n.Relations {
		t, err := s.tableOf(r.GetRangeVar())
		if err != nil {
			return err
		}
		if !have[t] {
			tables = append(tables, t)
		}
		have[t] = true
	}
	for i := 0; i < len(tables); i++ {
		for _, r := range s.snapshot().References(tables[i].ID) {
			if have[r] {
				continue
			}
			if n.Behavior != pg.DropBehavior_DROP_CASCADE {
				return pgerror.New(pgerror.FeatureNotSupported, "cannot truncate a table referenced in a foreign key constraint").
					WithDetail("Table \"%s\" references \"%s\".", r.Name, tables[i].Name).
					WithHint("Truncate table \"%s\" at the same time, or use TRUNCATE ... CASCADE.", r.Name)
			}
			w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: "truncate cascades to table \"" + r.Name + "\""})
			tables = append(tables, r)
			have[r] = true
		}
	}
	for _, t := range tables {
		if err := s.writable(t, "TRUNCATE"); err != nil {
			return err
		}
		if err := s.lockForm(ctx, t.ID, true); err != nil {
			return err
		}
		if err := s.lock(ctx, t, true); err != nil {
			return err
		}
		if err := s.clearTable(ctx, t); err != nil {
			return err
		}
		if n.RestartSeqs {
			if err := s.restartSequences(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// restartSequences begins the sequences that a table owns anew.
func (s *Session) restartSequences(ctx context.Context, t *catalog.Object) error {
	for _, u := range s.snapshot().Users(t.ID) {
		if u.Sequence == nil || u.Sequence.Table != t.ID {
			continue
		}
		d, err := s.beginDDL(ctx)
		if err != nil {
			return err
		}
		d.restart(u, restart{given: true})
	}
	return nil
}

// setConstraints runs SET CONSTRAINTS. Checks that are no longer put off are
// carried out at once.
func (s *Session) setConstraints(ctx context.Context, n *pg.ConstraintsSetStmt) error {
	tx := s.beginTx()
	if tx.constraints == nil || len(n.Constraints) == 0 {
		tx.constraints = map[string]bool{}
	}
	if len(n.Constraints) == 0 {
		tx.constraints[""] = n.Deferred
	}
	for _, r := range n.Constraints {
		name := r.GetRangeVar().GetRelname()
		found, deferrable := false, false
		for _, o := range s.snapshot().Objects() {
			for _, f := range o.Foreign {
				if f.Name == name {
					found, deferrable = true, deferrable || f.Deferrable
				}
			}
		}
		switch {
		case !found:
			return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" does not exist", name)
		case !deferrable:
			return pgerror.New(pgerror.WrongObjectType, "constraint \"%s\" is not deferrable", name)
		}
		tx.constraints[name] = n.Deferred
	}
	if n.Deferred {
		return nil
	}
	return s.checkLater(ctx)
}
