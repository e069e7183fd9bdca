// Package pgwire turns bytes into messages and back: startup, TLS,
// authentication, the simple and the extended query protocol, COPY and cancel
// (PostgreSQL manual, chapter 55). What the messages mean is the Session's.
package pgwire

import (
	"context"
	"io"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Backend makes sessions.
type Backend interface {
	// Connect starts a session after authentication; params are the startup
	// parameters (user, database, application_name, options, …).
	Connect(ctx context.Context, params map[string]string, info ConnInfo) (Session, error)
}

// ConnInfo is what a session may want to know of its connection.
type ConnInfo struct {
	RemoteAddr string
	LocalAddr  string // of the server
	PID        uint32 // backend process id told to the client
	TLS        bool
}

// Column describes a result column for RowDescription.
type Column struct {
	Name     string
	Type     types.Type
	TableOID uint32
	AttrNum  int16
}

// StatementDesc is what Describe of a prepared statement tells. Columns nil
// means that no rows are returned.
type StatementDesc struct {
	Params  []types.OID
	Columns []Column
}

// Param is one bound parameter: nil Data is NULL.
type Param struct {
	Binary bool
	Data   []byte
}

// Session is one client session. Its methods are called by one goroutine, one
// at a time; a cancel request, or a client that disconnects, cancels the ctx of
// the running call. A ctx and a ResultWriter are valid during their call only.
// Errors are *pgerror.Error where they are the user's; one of severity FATAL
// ends the connection.
type Session interface {
	// ParameterStatuses are the settings to report at start.
	ParameterStatuses() [][2]string
	// Simple runs the statements of a simple query in turn; w gets each
	// result. An error ends the query; it is returned, not written.
	Simple(ctx context.Context, sql string, w ResultWriter) error
	// Parse makes a prepared statement; name "" is the unnamed one.
	Parse(ctx context.Context, name, sql string, paramTypes []types.OID) error
	DescribeStatement(ctx context.Context, name string) (StatementDesc, error)
	// Bind makes a portal of a statement and its parameters. params and their
	// Data are the connection's buffers: they may not be kept after the call.
	Bind(ctx context.Context, portal, statement string, params []Param) error
	DescribePortal(ctx context.Context, portal string) ([]Column, error)
	// Execute runs a portal for at most maxRows rows (0: all). suspended says
	// that it can be executed again for more.
	Execute(ctx context.Context, portal string, maxRows int, w ResultWriter) (suspended bool, err error)
	CloseStatement(name string) error
	ClosePortal(name string) error
	// Sync ends an implicit transaction of the extended protocol: commits it,
	// or rolls it back if failed.
	Sync(ctx context.Context, failed bool) error
	// TxStatus is 'I', 'T' or 'E' for ReadyForQuery.
	TxStatus() byte
	// Close frees all; the open transaction is rolled back.
	Close()
}

// Formatter is a Session whose settings (TimeZone, extra_float_digits,
// bytea_output) change the text forms of values. It is asked at each
// ResultWriter.Begin; nil means the defaults.
type Formatter interface {
	TextOptions() *types.Options
}

// NoticeFilter is a Session whose client does not want all notices
// (client_min_messages).
type NoticeFilter interface {
	WantsNotice(severity string) bool
}

// Presenter is a Session that knows what names in errors and notices its client is to
// be shown.
type Presenter interface {
	Present(e *pgerror.Error) *pgerror.Error
}

// ResultWriter takes the results of one statement after another. Simple
// queries: Begin, Rows…, Complete for each statement. In the extended protocol
// Begin sends nothing, as Describe has told the columns already.
type ResultWriter interface {
	// Begin announces a result with columns; not called for a statement that
	// returns none. It sends RowDescription in the simple protocol.
	Begin(cols []Column) error
	// Rows sends rows [from, to) of a batch whose columns have the announced types.
	Rows(b *columnar.Batch, from, to int) error
	// Complete ends a statement with its command tag; "" is the empty query.
	Complete(tag string) error
	// CopyIn asks the client for COPY data; the reader gives the raw bytes
	// until CopyDone (io.EOF) or CopyFail (an error with 57014).
	CopyIn(binary bool, columns int) (io.Reader, error)
	// CopyOut starts sending COPY data; each Write is one CopyData message.
	// Close ends it. Flush sends what is buffered to the client at once.
	CopyOut(binary bool, columns int) (CopyOutWriter, error)
	// Notice sends a NoticeResponse.
	Notice(e *pgerror.Error)
	// ParameterStatus tells the client of a changed setting.
	ParameterStatus(name, value string)
	// Flush sends everything buffered.
	Flush() error
}

// CopyOutWriter sends COPY data.
type CopyOutWriter interface {
	io.WriteCloser
	Flush() error
}
