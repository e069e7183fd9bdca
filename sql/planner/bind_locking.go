package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// locking checks FOR UPDATE and its kin. They lock nothing: a transaction reads
// at one moment, and writers do not wait for it. What PostgreSQL refuses is
// refused.
func (sel *selectState) locking() error {
	s := sel.stmt
	for _, n := range s.LockingClause {
		l := n.GetLockingClause()
		word := LockWord(l.Strength)
		refuse := func(what string) error {
			return pgerror.New(pgerror.FeatureNotSupported, "%s is not allowed with %s", word, what)
		}
		switch {
		case s.DistinctClause != nil:
			return refuse("DISTINCT clause")
		case len(s.GroupClause) > 0:
			return refuse("GROUP BY clause")
		case s.HavingClause != nil:
			return refuse("HAVING clause")
		case len(sel.aggs) > 0:
			return refuse("aggregate functions")
		case len(sel.windows) > 0:
			return refuse("window functions")
		case len(sel.srfs) > 0:
			return refuse("set-returning functions in the target list")
		}
		for _, r := range l.LockedRels {
			name := r.GetRangeVar()
			found := false
			for _, e := range sel.scope.entries {
				found = found || e.relVisible && e.name == name.Relname
			}
			if !found {
				return pgerror.New(pgerror.UndefinedTable, "relation \"%s\" in %s clause not found in FROM clause", name.Relname, word).At(sel.pos(name.Location))
			}
		}
	}
	return nil
}

// lockingOf refuses FOR UPDATE of what has no rows of tables.
func lockingOf(s *pg.SelectStmt, format string) error {
	for _, n := range s.LockingClause {
		return pgerror.New(pgerror.FeatureNotSupported, format, LockWord(n.GetLockingClause().Strength))
	}
	return nil
}

// LockWord is how a row lock is written.
func LockWord(s pg.LockClauseStrength) string {
	switch s {
	case pg.LockClauseStrength_LCS_FORKEYSHARE:
		return "FOR KEY SHARE"
	case pg.LockClauseStrength_LCS_FORSHARE:
		return "FOR SHARE"
	case pg.LockClauseStrength_LCS_FORNOKEYUPDATE:
		return "FOR NO KEY UPDATE"
	}
	return "FOR UPDATE"
}
