// Package pgcatalog is the system catalogs as PostgreSQL has them (PostgreSQL
// manual, chapter 53 and 37): relations computed from a catalog snapshot, and
// the information functions that go with them.
package pgcatalog

import (
	"time"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// Session describes a client session for pg_stat_activity.
type Session struct {
	PID          uint32
	User         string
	Application  string
	RemoteAddr   string
	Started      time.Time
	QueryStarted time.Time
	State        string
	Query        string
	TLS          bool
}

// Prepared describes a prepared statement for pg_prepared_statements.
type Prepared struct {
	Name    string
	SQL     string
	Params  []types.Type
	FromSQL bool
}

// Cursor describes an open cursor for pg_cursors.
type Cursor struct {
	Name   string
	SQL    string
	Hold   bool
	Scroll bool
}

// Setting describes a setting for pg_settings.
type Setting struct{ Name, Value, Default, Description string }

// Env is the session that reads a system catalog.
type Env interface {
	Snapshot() *catalog.Snapshot
	Database() string
	// Databases are the names that the one database goes by, that of the session first.
	Databases() []string
	User() string
	// Users are the names of those that may connect or have.
	Users() []string
	// SearchPath is the effective one, with pg_catalog in it.
	SearchPath() []string
	Settings() []Setting
	Rows(id plan.ObjectID) float64
	// LastValue is the value that a sequence gave last, and whether it gave any.
	LastValue(o *catalog.Object) (int64, bool)
	// Updatable says which columns of a view can be changed, nil if its rows cannot;
	// ColumnUses are the columns that its query names. They depend on the snapshot alone.
	Updatable(o *catalog.Object) []bool
	ColumnUses(o *catalog.Object) []ColumnUse
	Started() time.Time
	Now() time.Time
	Sessions() []Session
	Prepared() []Prepared
	Cursors() []Cursor
}

// ColumnUse is a column of a relation that a query names, by its index.
type ColumnUse struct {
	Relation plan.ObjectID
	Column   int
}

// Table is one system relation.
type Table struct {
	Schema  string
	Name    string
	OID     uint32
	Columns []catalog.Column
	Rows    func(e Env) (*columnar.Batch, error)
}
