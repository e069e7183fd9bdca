package coord

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// copyTo runs COPY … TO STDOUT.
func (s *Session) copyTo(ctx context.Context, p *prepared, n *parser.Copy, o *copyOptions, w pgwire.ResultWriter) (string, error) {
	var rel plan.Rel
	var cols []planner.ResultColumn
	var t *catalog.Object
	switch {
	case n.Query != nil:
		q, err := planner.BindQuery(s.bindContext(nil), p.stmt.Text, n.Query)
		if err != nil {
			return "", err
		}
		rel, cols = q.Rel, q.Columns
	case n.DML != nil:
		return s.copyWrite(ctx, n, o, w)
	default:
		t = s.snapshot().Resolve(catalog.KindTable, n.Table.Schema, n.Table.Name, s.relationPath())
		if t == nil {
			return "", undefinedRelation(n.Table.Schema, n.Table.Name)
		}
		switch t.Kind {
		case catalog.KindView:
			return "", pgerror.New(pgerror.WrongObjectType, "cannot copy from view \"%s\"", t.Name).WithHint("Try the COPY (SELECT ...) TO variant.")
		case catalog.KindSequence:
			return "", pgerror.New(pgerror.WrongObjectType, "cannot copy from sequence \"%s\"", t.Name)
		case catalog.KindIndex:
			return "", pgerror.New(pgerror.WrongObjectType, "\"%s\" is an index", t.Name)
		}
		idx, err := copyColumns(t, n.Columns)
		if err != nil {
			return "", err
		}
		all := planColumns(t)
		get := &plan.Get{ID: t.ID, Name: t.Schema + "." + t.Name, Cols: all}
		pr := &plan.Project{Input: get}
		for _, i := range idx {
			pr.Exprs = append(pr.Exprs, plan.RefTo(all, i))
			pr.Cols = append(pr.Cols, all[i])
			cols = append(cols, planner.ResultColumn{Column: all[i]})
		}
		rel = pr
	}
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = c.Name
	}
	if err := o.forced(names, t); err != nil {
		return "", err
	}
	rel, err := planner.Optimize(rel, s.optimizeOptions())
	if err != nil {
		return "", err
	}
	out, err := w.CopyOut(o.format == "binary", len(cols))
	if err != nil {
		return "", err
	}
	enc := newCopyEncoder(o, resultColumns(cols), s.TextOptions())
	if err := enc.begin(out); err != nil {
		return "", err
	}
	rows := 0
	err = s.runQuery(ctx, rel, nil, false, func(b *columnar.Batch) error {
		rows += b.N
		for i := range b.N {
			if err := enc.row(out, b, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if err := enc.end(out); err != nil {
		return "", err
	}
	return fmt.Sprintf("COPY %d", rows), out.Close()
}

// copyWrite runs COPY (INSERT … RETURNING …) TO STDOUT.
func (s *Session) copyWrite(ctx context.Context, n *parser.Copy, o *copyOptions, w pgwire.ResultWriter) (string, error) {
	q := &prepared{stmt: n.DML, sql: n.DML.SQL()}
	if err := s.analyze(q); err != nil {
		return "", err
	}
	b, ok := q.bound.(*planner.Write)
	if !ok || b.Returning == nil {
		return "", pgerror.New(pgerror.FeatureNotSupported, "COPY query must have a RETURNING clause")
	}
	c := &copyResult{ResultWriter: w, s: s, o: o, cols: q.columns}
	if _, err := s.execWrite(ctx, q, b, nil, c); err != nil {
		return "", err
	}
	if err := c.enc.end(c.out); err != nil {
		return "", err
	}
	return fmt.Sprintf("COPY %d", c.n), c.out.Close()
}

// copyResult turns a statement's result into COPY data.
type copyResult struct {
	pgwire.ResultWriter
	s    *Session
	o    *copyOptions
	cols []pgwire.Column
	out  io.WriteCloser
	enc  *copyEncoder
	n    int
}

// Begin starts the COPY data.
func (c *copyResult) Begin([]pgwire.Column) (err error) {
	if c.out, err = c.CopyOut(c.o.format == "binary", len(c.cols)); err != nil {
		return err
	}
	c.enc = newCopyEncoder(c.o, c.cols, c.s.TextOptions())
	return c.enc.begin(c.out)
}

// Rows writes rows.
func (c *copyResult) Rows(b *columnar.Batch, from, to int) error {
	for i := from; i < to; i++ {
		if err := c.enc.row(c.out, b, i); err != nil {
			return err
		}
	}
	c.n += to - from
	return nil
}

// copyEncoder writes rows in a COPY format.
type copyEncoder struct {
	o    *copyOptions
	cols []pgwire.Column
	opts *types.Options
	buf  []byte
	val  []byte
}

func newCopyEncoder(o *copyOptions, cols []pgwire.Column, opts *types.Options) *copyEncoder {
	return &copyEncoder{o: o, cols: cols, opts: opts}
}

func (e *copyEncoder) begin(w io.Writer) error {
	e.buf = e.buf[:0]
	switch {
	case e.o.format == "binary":
		e.buf = append(append(e.buf, copySignature...), 0, 0, 0, 0, 0, 0, 0, 0)
	case e.o.header:
		for i, c := range e.cols {
			if i > 0 {
				e.buf = append(e.buf, e.o.delimiter)
			}
			e.field([]byte(c.Name), false)
		}
		e.buf = append(e.buf, '\n')
	default:
		return nil
	}
	_, err := w.Write(e.buf)
	return err
}

func (e *copyEncoder) end(w io.Writer) error {
	if e.o.format != "binary" {
		return nil
	}
	_, err := w.Write([]byte{0xff, 0xff})
	return err
}

// row writes row i of a batch.
func (e *copyEncoder) row(w io.Writer, b *columnar.Batch, i int) error {
	e.buf = e.buf[:0]
	if e.o.format == "binary" {
		e.buf = binary.BigEndian.AppendUint16(e.buf, uint16(len(e.cols)))
	}
	for c := range e.cols {
		v := b.Cols[c]
		switch {
		case e.o.format == "binary":
			if v.Null(i) {
				e.buf = append(e.buf, 0xff, 0xff, 0xff, 0xff)
				continue
			}
			at := len(e.buf)
			e.buf = types.AppendBinary(append(e.buf, 0, 0, 0, 0), e.cols[c].Type, v, i)
			binary.BigEndian.PutUint32(e.buf[at:], uint32(len(e.buf)-at-4))
		default:
			if c > 0 {
				e.buf = append(e.buf, e.o.delimiter)
			}
			if v.Null(i) {
				e.buf = append(e.buf, e.o.null...)
				continue
			}
			e.val = types.AppendText(e.val[:0], e.cols[c].Type, v, i, e.opts)
			e.field(e.val, e.o.forceQuote[e.cols[c].Name] || e.o.forceQuote["*"])
		}
	}
	if e.o.format != "binary" {
		e.buf = append(e.buf, '\n')
	}
	_, err := w.Write(e.buf)
	return err
}

// field appends a value in the text or CSV format.
func (e *copyEncoder) field(v []byte, quote bool) {
	if e.o.format == "csv" {
		quote = quote || string(v) == e.o.null || string(v) == `\.` && len(e.cols) == 1
		for _, b := range v {
			if b == e.o.delimiter || b == e.o.quote || b == '\n' || b == '\r' {
				quote = true
			}
		}
		if !quote {
			e.buf = append(e.buf, v...)
			return
		}
		e.buf = append(e.buf, e.o.quote)
		for _, b := range v {
			if b == e.o.quote || b == e.o.escape {
				e.buf = append(e.buf, e.o.escape)
			}
			e.buf = append(e.buf, b)
		}
		e.buf = append(e.buf, e.o.quote)
		return
	}
	for _, b := range v {
		switch b {
		case '\\':
			e.buf = append(e.buf, '\\', '\\')
		case '\b':
			e.buf = append(e.buf, '\\', 'b')
		case '\f':
			e.buf = append(e.buf, '\\', 'f')
		case '\n':
			e.buf = append(e.buf, '\\', 'n')
		case '\r':
			e.buf = append(e.buf, '\\', 'r')
		case '\t':
			e.buf = append(e.buf, '\\', 't')
		case '\v':
			e.buf = append(e.buf, '\\', 'v')
		default:
			if b == e.o.delimiter {
				e.buf = append(e.buf, '\\')
			}
			e.buf = append(e.buf, b)
		}
	}
}
