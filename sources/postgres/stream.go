package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// pending is rows of one table that are not pushed yet, in order.
type pending struct {
	t         *table
	bs        []*columnar.Builder
	n         int
	diffs     []int64
	ops       []sources.Op
	unchanged [][]uint64
	truncate  bool
}

// batch collects changes into a chunk.
type batch struct {
	s     *Source
	parts []*pending // by table; nil: nothing
	errs  []sources.RecordError
	rows  int
	bytes int64
}

func (s *Source) newBatch() *batch { return &batch{s: s, parts: make([]*pending, len(s.tables))} }

func (b *batch) table(i int) *pending {
	if b.parts[i] == nil {
		b.parts[i] = &pending{t: &b.s.tables[i], bs: b.s.tables[i].builders(0)}
	}
	return b.parts[i]
}

// truncate empties table i: what came before it in the batch is of no account.
func (b *batch) truncate(i int) {
	t := &b.s.tables[i]
	if t.Envelope == sources.EnvelopeUpsert {
		p := b.table(i)
		for _, x := range p.bs {
			x.Null()
		}
		p.ops = append(p.ops, sources.OpTruncate)
		p.unchanged = append(p.unchanged, nil)
		p.n++
	} else {
		b.parts[i] = &pending{t: t, bs: t.builders(0), truncate: true}
	}
	b.rows++
}

func (b *batch) chunk() *sources.Chunk {
	c := &sources.Chunk{Errors: b.errs, Bytes: b.bytes}
	for i, p := range b.parts {
		if p == nil {
			continue
		}
		tc := sources.TableChunk{Table: i, Ops: p.ops, Unchanged: p.unchanged, Truncate: p.truncate}
		tc.Rows = dataflow.Delta{Batch: columnar.Batch{N: p.n}, Diffs: p.diffs}
		for _, x := range p.bs {
			tc.Rows.Cols = append(tc.Rows.Cols, x.Build())
		}
		c.Tables = append(c.Tables, tc)
	}
	return c
}

// snapshot makes a slot and copies the tables as they were when it began.
func (r *run) snapshot(ctx context.Context, repl *pgconn.PgConn) error {
	r.feed.SetStatus(sources.Status{State: "snapshot", Lag: -1, Updated: time.Now()})
	if n := r.s.slot.Load(); n != 0 { // of a snapshot that did not end
		if err := r.dropOldSlot(ctx, n); err != nil {
			return err
		}
	}
	n := rand.Int64N(1<<62) + 1
	r.s.slot.Store(n)
	b := r.s.newBatch()
	for i := range r.s.tables {
		b.truncate(i)
	}
	c := b.chunk()
	c.Position = sources.Position{partSlot: n}
	if err := r.feed.Push(ctx, c); err != nil {
		return err
	}
	slot, err := pglogrepl.CreateReplicationSlot(ctx, repl, slotName(n), "pgoutput", pglogrepl.CreateReplicationSlotOptions{Mode: pglogrepl.LogicalReplication, SnapshotAction: "EXPORT_SNAPSHOT"})
	if err != nil {
		return fmt.Errorf("create the replication slot: %w", err)
	}
	at, err := pglogrepl.ParseLSN(slot.ConsistentPoint)
	if err != nil {
		return err
	}
	conn, err := pgconn.ConnectConfig(ctx, r.s.cfg)
	if err != nil {
		return connectError(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT "+literal(slot.SnapshotName)).ReadAll(); err != nil {
		return fmt.Errorf("use the exported snapshot: %w", err)
	}
	for i := range r.s.tables {
		if err := r.copyTable(ctx, conn, i); err != nil {
			return err
		}
	}
	if err := r.feed.Push(ctx, &sources.Chunk{Position: sources.Position{partSlot: n, partLSN: int64(at)}, SnapshotDone: true}); err != nil {
		return err
	}
	r.lsn = at
	return nil
}

func (r *run) dropOldSlot(ctx context.Context, n int64) error {
	conn, err := pgconn.ConnectConfig(ctx, r.s.cfg)
	if err != nil {
		return connectError(err)
	}
	defer conn.Close(ctx)
	return dropSlot(ctx, conn, slotName(n))
}

// copyTable reads one table of the snapshot.
func (r *run) copyTable(ctx context.Context, conn *pgconn.PgConn, i int) error {
	t := &r.s.tables[i]
	cols := make([]string, len(t.Columns))
	for c := range t.Columns {
		cols[c] = ident(t.Columns[c].Name)
	}
	pr, pw := io.Pipe()
	copied := make(chan error, 1)
	go func() {
		_, err := conn.CopyTo(ctx, pw, fmt.Sprintf("COPY (SELECT %s FROM %s.%s) TO STDOUT", strings.Join(cols, ", "), ident(t.schema), ident(t.name)))
		pw.CloseWithError(err)
		copied <- err
	}()
	b := r.s.newBatch()
	err := readCopy(pr, func(fields [][]byte) error {
		b.add(i, sources.OpUpsert, fields, nil)
		if b.rows < chunkRows {
			return nil
		}
		c := b.chunk()
		b = r.s.newBatch()
		return r.feed.Push(ctx, c)
	})
	pr.CloseWithError(err)
	if cerr := <-copied; cerr != nil && err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", t.Name, err)
	}
	if b.rows+len(b.errs) == 0 {
		return nil
	}
	return r.feed.Push(ctx, b.chunk())
}

// add decodes a row given as text (nil: NULL) and appends it. unchanged lists
// columns that keep their value. A value that cannot be decoded sends the row
// to the errors.
func (b *batch) add(i int, op sources.Op, vals [][]byte, unchanged []uint64) {
	p := b.table(i)
	t := p.t
	for c := range t.Columns {
		if vals[c] == nil {
			p.bs[c].Null()
			continue
		}
		b.bytes += int64(len(vals[c]))
		if err := types.ParseTextBytes(p.bs[c], t.Columns[c].Type, vals[c], nil); err != nil {
			b.errs = append(b.errs, sources.RecordError{
				Reason:    fmt.Sprintf("table %s, column %s: %s", t.Name, t.Columns[c].Name, pgerror.As(err).Message),
				Partition: t.Name, Raw: slices.Clone(vals[c]), At: time.Now(),
			})
			b.undo(p, c)
			return
		}
	}
	p.n++
	b.rows++
	if t.Envelope == sources.EnvelopeUpsert {
		p.ops = append(p.ops, op)
		p.unchanged = append(p.unchanged, unchanged)
		return
	}
	diff := int64(1)
	if op == sources.OpDelete {
		diff = -1
	}
	p.diffs = append(p.diffs, diff)
}

// undo takes the first n columns of an incomplete row back.
func (b *batch) undo(p *pending, n int) {
	for c := range n {
		p.bs[c].Truncate(p.n)
	}
}

// readCopy cuts COPY's text format into rows of fields.
func readCopy(r io.Reader, row func(fields [][]byte) error) error {
	var buf []byte
	var fields [][]byte
	for eof := false; !eof; {
		buf = slices.Grow(buf, 64<<10)
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		eof = err != nil
		at := 0
		for {
			nl := slices.Index(buf[at:], '\n')
			if nl < 0 {
				break
			}
			fields = splitCopy(fields[:0], buf[at:at+nl])
			at += nl + 1
			if err := row(fields); err != nil {
				return err
			}
		}
		buf = buf[:copy(buf, buf[at:])]
	}
	return nil
}

// splitCopy cuts a line at its tabs and undoes the backslashes in place.
func splitCopy(fields [][]byte, line []byte) [][]byte {
	start, out, null := 0, 0, false
	end := func() {
		if null {
			fields = append(fields, nil)
		} else {
			fields = append(fields, line[start:out:out])
		}
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\t':
			end()
			start, out, null = i+1, i+1, false
		case c == '\\' && i+1 < len(line):
			i++
			switch e := line[i]; e {
			case 'N':
				null = true
			case 'b':
				line[out] = '\b'
				out++
			case 'f':
				line[out] = '\f'
				out++
			case 'n':
				line[out] = '\n'
				out++
			case 'r':
				line[out] = '\r'
				out++
			case 't':
				line[out] = '\t'
				out++
			case 'v':
				line[out] = '\v'
				out++
			default:
				line[out] = e
				out++
			}
		default:
			line[out] = c
			out++
		}
	}
	end()
	return fields
}

// relation is how an upstream relation's columns map to a table's.
type relation struct {
	table int   // -1: not one of ours
	cols  []int // upstream column → ours, -1: none
}

// stream follows the slot from r.lsn.
func (r *run) stream(ctx context.Context, conn *pgconn.PgConn) error {
	name := slotName(r.s.slot.Load())
	err := pglogrepl.StartReplication(ctx, conn, name, r.lsn, pglogrepl.StartReplicationOptions{
		PluginArgs: []string{"proto_version '1'", "publication_names " + literal(ident(r.s.pub))},
	})
	if err != nil {
		var pe *pgconn.PgError
		if errors.As(err, &pe) && pe.Code == pgerror.UndefinedObject && strings.Contains(pe.Message, "slot") {
			return &fatalError{pgerror.New(pgerror.ObjectNotInPrerequisiteState, "the replication slot %s is gone upstream: changes have been missed", name).
				WithHint("Drop the source and create it again; it will take a new snapshot.")}
		}
		return fmt.Errorf("start the replication: %w", err)
	}
	st := &streamer{run: r, conn: conn, relations: map[uint32]*relation{}, batch: r.s.newBatch(), end: r.lsn}
	r.feed.SetStatus(sources.Status{State: "running", Updated: time.Now()})
	for {
		if err := st.step(ctx); err != nil {
			return err
		}
	}
}

// streamer decodes pgoutput.
type streamer struct {
	*run
	conn      *pgconn.PgConn
	relations map[uint32]*relation
	batch     *batch        // whole transactions, and the open one
	open      bool          // within a transaction
	commits   int           // transactions in batch
	end       pglogrepl.LSN // of the last transaction in batch
	walEnd    pglogrepl.LSN // the server's
	first     time.Time     // when the batch began
	told      time.Time
}

// step takes one message, or flushes when none comes.
func (s *streamer) step(ctx context.Context) error {
	deadline := s.told.Add(statusInterval)
	if s.commits > 0 && !s.open {
		deadline = s.first.Add(chunkDelay)
	}
	rctx, cancel := context.WithDeadline(ctx, deadline)
	msg, err := s.conn.ReceiveMessage(rctx)
	cancel()
	switch {
	case err != nil && pgconn.Timeout(err) && ctx.Err() == nil:
		if err := s.flush(ctx); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		if err := s.message(ctx, msg); err != nil {
			return err
		}
	}
	if time.Since(s.told) >= statusInterval {
		return s.status(ctx)
	}
	return nil
}

// status confirms what is durable, and tells that we are alive.
func (s *streamer) status(ctx context.Context) error {
	s.told = time.Now()
	if !s.open && s.commits == 0 && s.walEnd > s.end+1<<20 {
		// Nothing of ours in a long stretch: let the slot move on.
		s.end = s.walEnd
		if err := s.feed.Push(ctx, &sources.Chunk{Position: sources.Position{partLSN: int64(s.end)}}); err != nil {
			return err
		}
		s.lsn = s.end
	}
	at := pglogrepl.LSN(s.s.durable.Load())
	s.feed.SetStatus(sources.Status{State: "running", Lag: max(int64(s.walEnd)-int64(s.end), 0), Updated: time.Now()})
	return pglogrepl.SendStandbyStatusUpdate(ctx, s.conn, pglogrepl.StandbyStatusUpdate{WALWritePosition: s.lsn, WALFlushPosition: at, WALApplyPosition: at})
}

// flush pushes the transactions collected so far.
func (s *streamer) flush(ctx context.Context) error {
	if s.commits == 0 || s.open {
		return nil
	}
	c := s.batch.chunk()
	c.Position = sources.Position{partLSN: int64(s.end)}
	s.batch, s.commits = s.s.newBatch(), 0
	if err := s.feed.Push(ctx, c); err != nil {
		return err
	}
	s.lsn = s.end
	return nil
}

func (s *streamer) message(ctx context.Context, msg pgproto3.BackendMessage) error {
	switch m := msg.(type) {
	case *pgproto3.ErrorResponse:
		return pgconn.ErrorResponseToPgError(m)
	case *pgproto3.CopyDone:
		return errors.New("the upstream server has ended the stream")
	case *pgproto3.CopyData:
		switch m.Data[0] {
		case pglogrepl.PrimaryKeepaliveMessageByteID:
			k, err := pglogrepl.ParsePrimaryKeepaliveMessage(m.Data[1:])
			if err != nil {
				return err
			}
			s.walEnd = max(s.walEnd, k.ServerWALEnd)
			if k.ReplyRequested {
				return s.status(ctx)
			}
		case pglogrepl.XLogDataByteID:
			x, err := pglogrepl.ParseXLogData(m.Data[1:])
			if err != nil {
				return err
			}
			s.walEnd = max(s.walEnd, x.ServerWALEnd)
			return s.change(ctx, x.WALData)
		}
	}
	return nil
}

// change takes one message of pgoutput.
func (s *streamer) change(ctx context.Context, data []byte) error {
	msg, err := pglogrepl.Parse(data)
	if err != nil {
		return fmt.Errorf("decode pgoutput: %w", err)
	}
	switch m := msg.(type) {
	case *pglogrepl.RelationMessage:
		rel, err := s.relation(m)
		if err != nil {
			return err
		}
		s.relations[m.RelationID] = rel
	case *pglogrepl.BeginMessage:
		s.open = true
		if s.commits == 0 {
			s.first = time.Now()
		}
	case *pglogrepl.CommitMessage:
		s.open = false
		s.commits++
		s.end = m.TransactionEndLSN
		if s.batch.rows >= chunkRows || time.Since(s.first) >= chunkDelay {
			return s.flush(ctx)
		}
	case *pglogrepl.InsertMessage:
		if rel := s.relations[m.RelationID]; rel != nil && rel.table >= 0 {
			vals, un := s.tuple(rel, m.Tuple, nil)
			s.batch.add(rel.table, sources.OpUpsert, vals, un)
		}
	case *pglogrepl.UpdateMessage:
		s.update(m)
	case *pglogrepl.DeleteMessage:
		if rel := s.relations[m.RelationID]; rel != nil && rel.table >= 0 {
			vals, _ := s.tuple(rel, m.OldTuple, nil)
			s.batch.add(rel.table, sources.OpDelete, vals, nil)
		}
	case *pglogrepl.TruncateMessage:
		for _, id := range m.RelationIDs {
			if rel := s.relations[id]; rel != nil && rel.table >= 0 {
				s.batch.truncate(rel.table)
			}
		}
	}
	return nil
}

func (s *streamer) update(m *pglogrepl.UpdateMessage) {
	rel := s.relations[m.RelationID]
	if rel == nil || rel.table < 0 {
		return
	}
	t := &s.s.tables[rel.table]
	if t.Envelope == sources.EnvelopeChanges {
		old, _ := s.tuple(rel, m.OldTuple, nil)
		was := slices.Clone(old)
		s.batch.add(rel.table, sources.OpDelete, was, nil)
		vals, _ := s.tuple(rel, m.NewTuple, was)
		s.batch.add(rel.table, sources.OpUpsert, vals, nil)
		return
	}
	if m.OldTuple != nil {
		old, _ := s.tuple(rel, m.OldTuple, nil)
		was := slices.Clone(old)
		vals, un := s.tuple(rel, m.NewTuple, nil)
		for _, k := range t.Key {
			if !slices.Equal(was[k], vals[k]) && !isUnchanged(un, k) {
				vals, un := slices.Clone(vals), un
				s.batch.add(rel.table, sources.OpDelete, was, nil)
				s.batch.add(rel.table, sources.OpUpsert, vals, un)
				return
			}
		}
		s.batch.add(rel.table, sources.OpUpsert, vals, un)
		return
	}
	vals, un := s.tuple(rel, m.NewTuple, nil)
	s.batch.add(rel.table, sources.OpUpsert, vals, un)
}

func isUnchanged(un []uint64, c int) bool {
	return un != nil && un[c/64]>>(uint(c)%64)&1 != 0
}

// tuple gives a tuple's values by our columns. Values that the stream leaves
// out because they have not changed (TOAST) are taken from old if given, else
// noted in unchanged.
func (s *streamer) tuple(rel *relation, td *pglogrepl.TupleData, old [][]byte) (vals [][]byte, unchanged []uint64) {
	n := len(s.s.tables[rel.table].Columns)
	vals = make([][]byte, n)
	if td == nil {
		return vals, nil
	}
	for i, c := range td.Columns {
		if i >= len(rel.cols) || rel.cols[i] < 0 {
			continue
		}
		at := rel.cols[i]
		switch c.DataType {
		case pglogrepl.TupleDataTypeText:
			if vals[at] = c.Data; c.Data == nil {
				vals[at] = []byte{}
			}
		case pglogrepl.TupleDataTypeToast:
			if old != nil {
				vals[at] = old[at]
				continue
			}
			if unchanged == nil {
				unchanged = make([]uint64, (n+63)/64)
			}
			unchanged[at/64] |= 1 << (uint(at) % 64)
		}
	}
	return vals, unchanged
}

// relation maps a relation as the stream describes it. Columns that came after
// the source was created are left out; one that is gone is a failure.
func (s *streamer) relation(m *pglogrepl.RelationMessage) (*relation, error) {
	full := m.Namespace + "." + m.RelationName
	rel := &relation{table: slices.IndexFunc(s.s.tables, func(t table) bool { return t.Name == full })}
	if rel.table < 0 {
		return rel, nil
	}
	t := &s.s.tables[rel.table]
	found := 0
	for _, c := range m.Columns {
		i := slices.IndexFunc(t.Columns, func(x sources.Column) bool { return x.Name == c.Name })
		rel.cols = append(rel.cols, i)
		if i >= 0 {
			found++
		}
	}
	if found < len(t.Columns) {
		for _, c := range t.Columns {
			if !slices.ContainsFunc(m.Columns, func(x *pglogrepl.RelationMessageColumn) bool { return x.Name == c.Name }) {
				return nil, fmt.Errorf("column %s of table %s is gone upstream: drop the source and create it again", c.Name, full)
			}
		}
	}
	return rel, nil
}
