package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sources/loadgen"
	"github.com/streamdb/streamdb/sql/types"
)

// nexmarkOracle is a PostgreSQL with the same events in tables.
type nexmarkOracle struct{ conn *pgx.Conn }

// newNexmarkOracle loads the events into temporary tables.
func newNexmarkOracle(ctx context.Context, o nexmarkOptions) (*nexmarkOracle, error) {
	conn, err := pgx.Connect(ctx, o.verify)
	if err != nil {
		return nil, err
	}
	x := &nexmarkOracle{conn}
	src, err := loadgen.New("nexmark", map[string]string{"seed": fmt.Sprint(o.seed), "events": fmt.Sprint(o.events), "rate": "0"}, nil)
	if err != nil {
		return nil, err
	}
	tables := src.Tables()
	for _, t := range tables {
		cols := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			cols[i] = c.Name + " " + c.Type.String()
		}
		if _, err := conn.Exec(ctx, fmt.Sprintf("CREATE TEMP TABLE %s (%s)", t.Name, strings.Join(cols, ", "))); err != nil {
			return nil, err
		}
	}
	for n := int64(0); n < o.events; n += 1 << 16 {
		for _, ch := range src.Generate(n, min(n+1<<16, o.events)) {
			if err := x.load(ctx, tables[ch.Table], &ch.Rows.Batch); err != nil {
				return nil, err
			}
		}
	}
	_, err = conn.Exec(ctx, "ANALYZE bid; ANALYZE auction; ANALYZE person")
	return x, err
}

func (x *nexmarkOracle) close(ctx context.Context) { x.conn.Close(ctx) }

func (x *nexmarkOracle) load(ctx context.Context, t sources.Table, b *columnar.Batch) error {
	var buf bytes.Buffer
	var line []byte
	for i := range b.N {
		line = line[:0]
		for c, v := range b.Cols {
			if c > 0 {
				line = append(line, '\t')
			}
			line = types.AppendText(line, t.Columns[c].Type, v, i, nil)
		}
		buf.Write(append(line, '\n'))
	}
	_, err := x.conn.PgConn().CopyFrom(ctx, &buf, "COPY "+t.Name+" FROM STDIN")
	return err
}

// compare says "equal" if both sides have the same rows, else how they differ.
func (x *nexmarkOracle) compare(ctx context.Context, conn *pgx.Conn, q nexmarkQuery) (string, error) {
	ours, err := rowsOf(ctx, conn, "COPY (SELECT * FROM v) TO STDOUT")
	if err != nil {
		return "", err
	}
	theirs, err := rowsOf(ctx, x.conn, "COPY ("+q.sql+") TO STDOUT")
	if err != nil {
		return "", err
	}
	if slices.Equal(ours, theirs) {
		return "equal", nil
	}
	return fmt.Sprintf("DIFFERENT: %d rows against %d", len(ours), len(theirs)), nil
}

// rowsOf is the sorted hashes of a COPY's rows.
func rowsOf(ctx context.Context, conn *pgx.Conn, sql string) ([][16]byte, error) {
	var out [][16]byte
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := conn.PgConn().CopyTo(ctx, pw, sql)
		pw.CloseWithError(err)
		done <- err
	}()
	data, err := io.ReadAll(pr)
	if e := <-done; e != nil {
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		if len(line) > 0 {
			h := sha256.Sum256(line)
			out = append(out, [16]byte(h[:16]))
		}
	}
	slices.SortFunc(out, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	return out, nil
}
