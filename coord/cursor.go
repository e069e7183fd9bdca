package coord

import (
	"context"
	"fmt"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
)

// declare runs DECLARE CURSOR.
func (s *Session) declare(ctx context.Context, p *prepared, n *parser.DeclareCursor, params []*expr.Const) error {
	if !n.Hold && n.Subscription == nil && !s.inBlock() {
		return pgerror.New(pgerror.NoActiveSQLTransaction, "DECLARE CURSOR can only be used in transaction blocks")
	}
	if s.portals[n.Name] != nil {
		return pgerror.New(pgerror.DuplicateCursor, "cursor \"%s\" already exists", n.Name)
	}
	if n.Subscription != nil {
		return s.declareSubscription(ctx, p, n)
	}
	c := &portal{name: n.Name, cursor: true, hold: n.Hold, scroll: n.Scroll || !n.NoScroll, tx: s.tx, level: s.level()}
	if n.Subscribe != nil {
		st := *p.stmt
		st.Node = n.Subscribe
		q := &prepared{stmt: &st, sql: p.sql}
		if err := s.analyze(q); err != nil {
			return err
		}
		sub, err := s.subscribe(ctx, q, n.Subscribe)
		if err != nil {
			return err
		}
		c.p, c.sub = q, sub
		s.portals[n.Name] = c
		return nil
	}
	q, err := s.cursorQuery(p, n)
	if err != nil {
		return err
	}
	if err := declarable(n, q); err != nil {
		return err
	}
	c.p = q
	rows, err := s.stream(q.rel, params)
	if err != nil {
		return err
	}
	c.rows = rows
	s.portals[n.Name] = c
	return nil
}

// level is the number of savepoints of the open transaction.
func (s *Session) level() int {
	if s.tx == nil {
		return 0
	}
	return len(s.tx.saves)
}

// declarable checks that a cursor can have the query and the options together.
func declarable(n *parser.DeclareCursor, q *prepared) error {
	b, _ := q.bound.(*planner.Query)
	if b != nil && b.Writes() {
		return pgerror.New(pgerror.FeatureNotSupported, "DECLARE CURSOR must not contain data-modifying statements in WITH")
	}
	locking := n.Query.Stmt.GetSelectStmt().GetLockingClause()
	if len(locking) == 0 {
		return nil
	}
	strength := planner.LockWord(locking[0].GetLockingClause().Strength)
	switch {
	case n.Hold:
		return pgerror.New(pgerror.FeatureNotSupported, "DECLARE CURSOR WITH HOLD ... %s is not supported", strength).
			WithDetail("Holdable cursors must be READ ONLY.")
	case n.Scroll:
		return pgerror.New(pgerror.FeatureNotSupported, "DECLARE SCROLL CURSOR ... %s is not supported", strength).
			WithDetail("Scrollable cursors must be READ ONLY.")
	case n.Insensitive:
		return pgerror.New(pgerror.InvalidCursorDefinition, "DECLARE INSENSITIVE CURSOR ... %s is not valid", strength).
			WithDetail("Insensitive cursors must be READ ONLY.")
	}
	return nil
}

// cursorQuery analyzes the query of DECLARE.
func (s *Session) cursorQuery(p *prepared, n *parser.DeclareCursor) (*prepared, error) {
	st := *p.stmt
	st.Node = &parser.Select{Query: *n.Query}
	q := &prepared{stmt: &st, sql: p.sql, declared: p.declared}
	return q, s.analyze(q)
}

func (s *Session) cursor(name string) (*portal, error) {
	c := s.portals[name]
	if c == nil {
		return nil, pgerror.New(pgerror.InvalidCursorName, "cursor \"%s\" does not exist", name)
	}
	return c, nil
}

func (s *Session) closeCursor(n *parser.CloseCursor) (string, error) {
	if n.Name == "" {
		for name, p := range s.portals {
			if p.cursor {
				p.close()
				delete(s.portals, name)
			}
		}
		return n.Tag(), nil
	}
	c, err := s.cursor(n.Name)
	if err != nil {
		return "", err
	}
	c.close()
	delete(s.portals, n.Name)
	return n.Tag(), nil
}

// fetch runs FETCH and MOVE.
func (s *Session) fetch(ctx context.Context, n *parser.Fetch, w pgwire.ResultWriter) (string, error) {
	c, err := s.cursor(n.Cursor)
	if err != nil {
		return "", err
	}
	if c.sub != nil {
		return s.fetchSubscription(ctx, c, n, w)
	}
	emit := func(b *columnar.Batch, from, to int) error {
		if n.Move {
			return nil
		}
		return w.Rows(firstCols(b, len(c.columns())), from, to)
	}
	if c.failed {
		return "", pgerror.New(pgerror.ObjectNotInPrerequisiteState, "portal \"%s\" cannot be run", c.name)
	}
	if !n.Move {
		if err := w.Begin(c.columns()); err != nil {
			return "", err
		}
	}
	rows, err := c.move(ctx, n, emit)
	c.failed = err != nil
	return fmt.Sprintf("%s %d", n.Tag(), rows), err
}

// move carries out a FETCH on the cursor's rows. Position 0 is before the
// first row; pos is the row the cursor is on. What was read is kept, so that
// the cursor can go back.
func (c *portal) move(ctx context.Context, n *parser.Fetch, emit func(b *columnar.Batch, from, to int) error) (int64, error) {
	switch n.Direction {
	case parser.FetchForward:
		if n.Count < 0 {
			return c.backward(-n.Count, emit)
		}
		if n.Count == 0 {
			return c.one(ctx, c.pos, emit)
		}
		return c.forward(ctx, n.Count, emit)
	case parser.FetchBackward:
		if n.Count < 0 {
			return c.forward(ctx, -n.Count, emit)
		}
		if n.Count == 0 {
			return c.one(ctx, c.pos, emit)
		}
		return c.backward(n.Count, emit)
	case parser.FetchAbsolute:
		at := n.Count
		if at < 0 {
			if err := c.fill(ctx, parser.FetchAll); err != nil {
				return 0, err
			}
			at = c.read() + 1 + at
		}
		return c.one(ctx, max(at, 0), emit)
	}
	return c.one(ctx, max(c.pos+n.Count, 0), emit)
}

// read is the number of rows kept so far.
func (c *portal) read() int64 {
	var n int64
	for _, b := range c.buffer {
		n += int64(b.batch.N)
	}
	return n
}

// fill reads until n rows are kept, or all.
func (c *portal) fill(ctx context.Context, n int64) error {
	for have := c.read(); have < n; {
		want := int64(0)
		if n != parser.FetchAll {
			want = n - have
		}
		got, ended, err := c.rows.take(ctx, want, func(b *columnar.Batch, from, to int) error {
			part := b.Slice(from, to)
			c.buffer = append(c.buffer, bufferedRows{&part})
			return nil
		})
		if err != nil {
			return err
		}
		have += got
		if ended {
			return nil
		}
	}
	return nil
}

// rowAt finds kept row i (1-based).
func (c *portal) rowAt(i int64) (*columnar.Batch, int) {
	for _, b := range c.buffer {
		if i <= int64(b.batch.N) {
			return b.batch, int(i - 1)
		}
		i -= int64(b.batch.N)
	}
	return nil, 0
}

// one moves to row at and gives it, if there is one.
func (c *portal) one(ctx context.Context, at int64, emit func(b *columnar.Batch, from, to int) error) (int64, error) {
	if err := c.fill(ctx, at); err != nil {
		return 0, err
	}
	c.pos = min(at, c.read()+1)
	if b, i := c.rowAt(at); b != nil && at > 0 {
		return 1, emit(b, i, i+1)
	}
	return 0, nil
}

func (c *portal) forward(ctx context.Context, n int64, emit func(b *columnar.Batch, from, to int) error) (int64, error) {
	to := parser.FetchAll
	if n != parser.FetchAll {
		to = c.pos + n
	}
	if err := c.fill(ctx, to); err != nil {
		return 0, err
	}
	have := c.read()
	var given int64
	for c.pos < to && c.pos < have {
		b, i := c.rowAt(c.pos + 1)
		end := i + int(min(int64(b.N-i), to-c.pos))
		if err := emit(b, i, end); err != nil {
			return given, err
		}
		given += int64(end - i)
		c.pos += int64(end - i)
	}
	if given < n {
		c.pos = have + 1
	}
	return given, nil
}

func (c *portal) backward(n int64, emit func(b *columnar.Batch, from, to int) error) (int64, error) {
	if !c.scroll {
		return 0, pgerror.New(pgerror.ObjectNotInPrerequisiteState, "cursor can only scan forward").
			WithHint("Declare it with SCROLL option to enable backward scan.")
	}
	var given int64
	for given < n && c.pos > 1 {
		c.pos--
		b, i := c.rowAt(c.pos)
		if b == nil {
			continue
		}
		if err := emit(b, i, i+1); err != nil {
			return given, err
		}
		given++
	}
	if given < n {
		c.pos = 0
	}
	return given, nil
}
