package pgwire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// fakeBackend makes sessions of a toy language, enough to drive every path of
// the protocol:
//
//	select N        one int4 row
//	rows N          N rows (n int8, s text), s NULL in every third
//	echo            one row of the parameters, as text
//	sleep           until the context is cancelled
//	fail CODE TEXT  an error
//	copyin, copyin early, copyin done   reads all; fails at once; succeeds at once
//	copyout N       N rows of COPY text
//	begin, commit, notice T, set K V, panic
type fakeBackend struct {
	sleeping  chan struct{} // gets one for each sleep that starts
	cancelled chan error    // gets the cause of each sleep's end
	closed    atomic.Int64
}

func newFakeBackend() *fakeBackend {
	return &fakeBackend{sleeping: make(chan struct{}, 100), cancelled: make(chan error, 100)}
}

func (b *fakeBackend) Connect(_ context.Context, params map[string]string, _ ConnInfo) (Session, error) {
	switch db := params["database"]; db {
	case "missing":
		return nil, &pgerror.Error{Severity: "FATAL", Code: pgerror.InvalidCatalogName, Message: `database "missing" does not exist`}
	case "panic":
		panic("connect")
	}
	return &fakeSession{b: b, stmts: map[string]*fakeStmt{}, portals: map[string]*fakePortal{}, status: 'I',
		app: params["application_name"]}, nil
}

type fakeStmt struct {
	sql    string
	params []types.OID
}

type fakePortal struct {
	sql    string
	params []string
	next   int
}

type fakeSession struct {
	b       *fakeBackend
	stmts   map[string]*fakeStmt
	portals map[string]*fakePortal
	status  byte
	app     string
}

func (s *fakeSession) ParameterStatuses() [][2]string {
	return [][2]string{{"server_version", "15.0"}, {"client_encoding", "UTF8"}, {"standard_conforming_strings", "on"}, {"application_name", s.app}}
}

func (s *fakeSession) Simple(ctx context.Context, sql string, w ResultWriter) error {
	for part := range strings.SplitSeq(sql, ";") {
		p := &fakePortal{sql: strings.TrimSpace(part)}
		if p.sql == "" && strings.TrimSpace(sql) != "" {
			continue
		}
		if _, err := s.run(ctx, p, 0, w); err != nil {
			if s.status == 'T' {
				s.status = 'E'
			}
			return err
		}
	}
	return nil
}

func (s *fakeSession) Parse(_ context.Context, name, sql string, oids []types.OID) error {
	if strings.HasPrefix(sql, "bad") {
		return (&pgerror.Error{Code: pgerror.SyntaxError, Message: `syntax error at or near "bad"`}).At(1)
	}
	st := &fakeStmt{sql: sql, params: oids}
	for strings.Contains(sql, "$"+strconv.Itoa(len(st.params)+1)) {
		st.params = append(st.params, types.OIDInt4)
	}
	s.stmts[name] = st
	return nil
}

func (s *fakeSession) DescribeStatement(_ context.Context, name string) (StatementDesc, error) {
	st := s.stmts[name]
	if st == nil {
		return StatementDesc{}, pgerror.New(pgerror.InvalidSQLStatementName, "prepared statement %q does not exist", name)
	}
	return StatementDesc{Params: st.params, Columns: columnsOf(st.sql)}, nil
}

func columnsOf(sql string) []Column {
	switch verb, rest, _ := strings.Cut(sql, " "); verb {
	case "select":
		return []Column{{Name: "n", Type: types.Int4}}
	case "rows", "lookup":
		return []Column{{Name: "n", Type: types.Int8, TableOID: 7, AttrNum: 1}, {Name: "s", Type: types.Text}}
	case "echo":
		cols := []Column{}
		for range strings.Fields(rest) {
			cols = append(cols, Column{Name: "p", Type: types.Text})
		}
		return cols
	}
	return nil
}

func (s *fakeSession) Bind(_ context.Context, portal, statement string, params []Param) error {
	st := s.stmts[statement]
	if st == nil {
		return pgerror.New(pgerror.InvalidSQLStatementName, "prepared statement %q does not exist", statement)
	}
	p := s.portals[portal]
	if p == nil {
		p = &fakePortal{}
		s.portals[portal] = p
	}
	*p = fakePortal{sql: st.sql, params: p.params[:0]}
	for _, x := range params {
		switch {
		case x.Data == nil:
			p.params = append(p.params, "NULL")
		case x.Binary && len(x.Data) == 4:
			p.params = append(p.params, strconv.Itoa(int(int32(binary.BigEndian.Uint32(x.Data)))))
		case x.Binary:
			// the benchmark's path: nothing is made of it
		default:
			p.params = append(p.params, string(x.Data))
		}
	}
	return nil
}

func (s *fakeSession) DescribePortal(_ context.Context, name string) ([]Column, error) {
	p := s.portals[name]
	if p == nil {
		return nil, pgerror.New(pgerror.InvalidCursorName, "portal %q does not exist", name)
	}
	return columnsOf(p.sql), nil
}

func (s *fakeSession) Execute(ctx context.Context, name string, maxRows int, w ResultWriter) (bool, error) {
	p := s.portals[name]
	if p == nil {
		return false, pgerror.New(pgerror.InvalidCursorName, "portal %q does not exist", name)
	}
	return s.run(ctx, p, maxRows, w)
}

func (s *fakeSession) CloseStatement(name string) error { delete(s.stmts, name); return nil }
func (s *fakeSession) ClosePortal(name string) error    { delete(s.portals, name); return nil }
func (s *fakeSession) TxStatus() byte                   { return s.status }
func (s *fakeSession) Close()                           { s.b.closed.Add(1) }

func (s *fakeSession) Sync(_ context.Context, failed bool) error {
	if failed && s.status == 'T' {
		s.status = 'E'
	}
	return nil
}

var lookupColumns = columnsOf("lookup")

var lookupRow = func() *columnar.Batch {
	n, t := columnar.NewBuilder(columnar.KindInt64, 1), columnar.NewBuilder(columnar.KindBytes, 1)
	n.Int64(42)
	t.String("a value of some length")
	return &columnar.Batch{Cols: []*columnar.Vec{n.Build(), t.Build()}, N: 1}
}()

func (s *fakeSession) run(ctx context.Context, p *fakePortal, maxRows int, w ResultWriter) (bool, error) {
	if p.sql == "lookup $1" {
		if err := w.Begin(lookupColumns); err != nil {
			return false, err
		}
		if err := w.Rows(lookupRow, 0, 1); err != nil {
			return false, err
		}
		return false, w.Complete("SELECT 1")
	}
	verb, rest, _ := strings.Cut(p.sql, " ")
	n, _ := strconv.Atoi(rest)
	switch verb {
	case "", "--":
		return false, w.Complete("")
	case "select", "echo":
		return false, s.oneRow(p, n, w)
	case "rows":
		return s.rows(p, n, maxRows, w)
	case "sleep":
		s.b.sleeping <- struct{}{}
		<-ctx.Done()
		s.b.cancelled <- context.Cause(ctx)
		return false, fmt.Errorf("sleep: %w", ctx.Err())
	case "fail":
		code, text, _ := strings.Cut(rest, " ")
		return false, &pgerror.Error{Code: code, Message: text, Detail: "D", Hint: "H", Pos: 3, Where: "W", Schema: "s", Table: "t", Column: "c", DataType: "d", Constraint: "n"}
	case "copyin":
		return false, s.copyIn(rest, w)
	case "copyout":
		return false, s.copyOut(n, w)
	case "begin":
		s.status = 'T'
	case "commit":
		s.status = 'I'
	case "notice":
		w.Notice(&pgerror.Error{Message: rest})
	case "set":
		k, v, _ := strings.Cut(rest, " ")
		w.ParameterStatus(k, v)
	case "panic":
		panic("as asked")
	case "internal":
		return false, errors.New("some bug")
	}
	return false, w.Complete(strings.ToUpper(verb))
}

func (s *fakeSession) oneRow(p *fakePortal, n int, w ResultWriter) error {
	cols := columnsOf(p.sql)
	if err := w.Begin(cols); err != nil {
		return err
	}
	b := &columnar.Batch{N: 1}
	if cols[0].Type == types.Int4 {
		if len(p.params) > 0 {
			n, _ = strconv.Atoi(p.params[0])
		}
		b.Cols = append(b.Cols, columnar.FromSlice([]int32{int32(n)}, nil))
	} else {
		for _, x := range p.params {
			v := columnar.NewBuilder(columnar.KindBytes, 1)
			if x == "NULL" {
				v.Null()
			} else {
				v.String(x)
			}
			b.Cols = append(b.Cols, v.Build())
		}
	}
	if err := w.Rows(b, 0, 1); err != nil {
		return err
	}
	return w.Complete("SELECT 1")
}

func (s *fakeSession) rows(p *fakePortal, n, maxRows int, w ResultWriter) (bool, error) {
	to := n
	if maxRows > 0 {
		to = min(n, p.next+maxRows)
	}
	k, t := columnar.NewBuilder(columnar.KindInt64, 0), columnar.NewBuilder(columnar.KindBytes, 0)
	from := p.next
	for i := from; i < to; i++ {
		k.Int64(int64(i))
		if i%3 == 2 {
			t.Null()
		} else {
			t.String("s" + strconv.Itoa(i))
		}
	}
	b := &columnar.Batch{Cols: []*columnar.Vec{k.Build(), t.Build()}, N: to - from}
	if err := w.Begin(columnsOf("rows")); err != nil {
		return false, err
	}
	if err := w.Rows(b, 0, b.N); err != nil {
		return false, err
	}
	if p.next = to; maxRows > 0 && to-from == maxRows {
		return true, nil
	}
	return false, w.Complete("SELECT " + strconv.Itoa(to-from))
}

func (s *fakeSession) copyIn(how string, w ResultWriter) error {
	r, err := w.CopyIn(how == "binary", 2)
	if err != nil {
		return err
	}
	switch how {
	case "early":
		if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
			return err
		}
		return pgerror.New(pgerror.BadCopyFileFormat, "bad data")
	case "done":
		return w.Complete("COPY 0")
	case "wait":
		s.b.sleeping <- struct{}{}
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return w.Complete("COPY " + strconv.Itoa(strings.Count(string(data), "\n")))
}

func (s *fakeSession) copyOut(n int, w ResultWriter) error {
	out, err := w.CopyOut(false, 1)
	if err != nil {
		return err
	}
	for i := range n {
		if _, err := fmt.Fprintf(out, "%d\n", i); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return w.Complete("COPY " + strconv.Itoa(n))
}

// startServer serves fake sessions on loopback until the test ends.
func startServer(t testing.TB, opt Options) (*Server, *fakeBackend, string) {
	t.Helper()
	b := newFakeBackend()
	s := NewServer(b, opt)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; !errors.Is(err, ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return s, b, l.Addr().String()
}

func waitFor(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}
