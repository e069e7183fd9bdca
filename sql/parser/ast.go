package parser

import (
	pg "github.com/pganalyze/pg_query_go/v6"
)

// Statement is one statement of a query text. Node is either *Postgres, for
// what PostgreSQL's grammar is used for as it is, or one of this package's own
// statement types, whose syntax goes beyond PostgreSQL's.
type Statement struct {
	Text  string // the whole query text that the statement is part of
	Start int    // byte offset of the statement in Text
	Len   int    // its length in bytes, without the semicolon
	Node  Node
}

// SQL is the statement's own text.
func (s *Statement) SQL() string { return s.Text[s.Start : s.Start+s.Len] }

// Node is the syntax tree of a statement.
type Node interface {
	// Tag is the command tag, such as "CREATE SOURCE", without a row count.
	Tag() string
}

// Postgres is a statement in PostgreSQL's own tree. Its locations are byte
// offsets from Base in the statement's Text.
type Postgres struct {
	Stmt *pg.Node
	Base int
}

// Query is a query embedded in a statement: a SelectStmt of PostgreSQL's tree
// whose locations count from Base, and its text.
type Query struct {
	Stmt *pg.Node
	Base int
	SQL  string
	// AsOf and UpTo of `SELECT … AS OF t`; nil if absent.
	AsOf *AsOf
}

// Expr is an expression embedded in a statement, as Query is a query.
type Expr struct {
	Node *pg.Node
	Base int
	SQL  string
}

// Select is a query as a statement: SELECT, VALUES, TABLE or WITH … SELECT.
type Select struct{ Query Query }

// AsOf is `AS OF [AT LEAST] expr`.
type AsOf struct {
	AtLeast bool
	Expr    Expr
}

// Name is a possibly qualified name. Pos is its 1-based character position.
type Name struct {
	Database, Schema, Name string
	Pos                    int
}

// Option is `NAME [=] VALUE` in parentheses or after WITH. Name is lower-case,
// with single blanks between words ("security protocol") or dots
// ("properties.bootstrap.server").
type Option struct {
	Name  string
	Value Value
	Pos   int
}

// ValueKind says how an option's value was written.
type ValueKind uint8

// The kinds of option values.
const (
	ValueNone   ValueKind = iota // the name alone, as in (SSL)
	ValueString                  // 'text'
	ValueNumber                  // 10, -1.5
	ValueBool                    // true, false
	ValueIdent                   // a word or a qualified name
	ValueSecret                  // SECRET name
	ValueList                    // (a, b, …) or [a, b, …]
	ValueMap                     // MAP['k' => 'v', …]: List holds k, v, k, v …
	ValueNull                    // NULL
)

// Value is the value of an option. Text holds the string, the number, the word
// or the secret's name (also in Name).
type Value struct {
	Kind ValueKind
	Text string
	Name Name
	List []Value
}

// TypeName is a type as written.
type TypeName struct {
	Node *pg.TypeName
	Base int
	SQL  string
}

// ClauseConflict is of two clauses of a column that do not go together: what the error
// says of them.
type ClauseConflict struct {
	Message string
	Pos     int
}

// ColumnDef is a column of CREATE TABLE or CREATE SOURCE.
type ColumnDef struct {
	Conflict  *ClauseConflict // the first one
	Name      string
	Type      TypeName
	Collation string
	NotNull   bool
	Null      bool // NULL was written
	Default   *Expr
	Generated *Expr  // GENERATED ALWAYS AS (…) STORED, RisingWave's AS expr
	Identity  string // "", "always", "by default"
	// SequenceOptions are of an identity column, in PostgreSQL's tree.
	SequenceOptions []*pg.Node
	PrimaryKey      bool
	Unique          bool
	// Keys are the PRIMARY KEY and UNIQUE constraints, as those of the table are.
	Keys       []Constraint
	Checks     []Constraint
	References []Constraint
	Pos        int
}

// ConstraintKind is the kind of a table constraint.
type ConstraintKind uint8

// The kinds of constraints.
const (
	ConstraintPrimaryKey ConstraintKind = iota + 1
	ConstraintUnique
	ConstraintCheck
	ConstraintForeignKey
)

// Constraint is a table constraint.
type Constraint struct {
	Kind    ConstraintKind
	Name    string
	Columns []string
	Check   *Expr
	// RefTable, RefColumns, OnDelete and OnUpdate are of FOREIGN KEY; the actions are
	// "" (no action), "restrict", "cascade", "set null", "set default".
	RefTable           Name
	RefColumns         []string
	OnDelete, OnUpdate string
	SetColumns         []string // of ON DELETE SET NULL (…)
	MatchFull          bool
	// Deferrable and Deferred are of keys and foreign keys, NotValid of what ALTER
	// TABLE adds, NullsNotDistinct of UNIQUE.
	Deferrable, Deferred bool
	NotValid             bool
	NullsNotDistinct     bool
	// UsingIndex is the index that becomes the key.
	UsingIndex string
	// NotEnforced is PRIMARY KEY … NOT ENFORCED, which sources accept.
	NotEnforced bool
	Pos         int
}

// Watermark is `WATERMARK FOR column AS expr [WITH TTL]`.
type Watermark struct {
	Column string
	Expr   Expr
	TTL    bool
	Pos    int
}

// CreateTable is CREATE TABLE of a table that clients write to.
type CreateTable struct {
	Name        Name
	IfNotExists bool
	Temp        bool
	Columns     []ColumnDef
	Constraints []Constraint
	Like        []Like
	Watermarks  []Watermark
	AppendOnly  bool
	// OnConflict is RisingWave's table-wide choice: "", "overwrite", "ignore", "do update if not null".
	OnConflict string
	// Version are the columns of WITH VERSION COLUMN.
	Version []string
	// OnCommit is of a temporary table: "", "drop", "delete rows".
	OnCommit string
	With     []Option
}

// Like is LIKE table [INCLUDING what …] in CREATE TABLE.
type Like struct {
	Name  Name
	After int // columns that stand before it
	// Including are the lower-case names of what is taken over beside the columns.
	Including map[string]bool
}

// CreateTableAs is CREATE TABLE … AS query or EXECUTE, and SELECT … INTO.
type CreateTableAs struct {
	Name        Name
	IfNotExists bool
	Temp        bool
	Columns     []string
	Query       Query // or an ExecuteStmt
	WithNoData  bool
	OnCommit    string
	With        []Option
}

// CreateTableFromSource is Materialize's CREATE TABLE … FROM SOURCE.
type CreateTableFromSource struct {
	Name        Name
	IfNotExists bool
	Columns     []ColumnDef
	Constraints []Constraint
	Source      Name
	Reference   *Name
	Options     []Option // TEXT COLUMNS, EXCLUDE COLUMNS, …
	Format      *FormatSpec
	Includes    []Include
	Envelope    *Envelope
	With        []Option
}

// SourceKind is what a source reads from.
type SourceKind uint8

// The kinds of sources.
const (
	SourceKafka SourceKind = iota + 1
	SourcePostgres
	SourceLoadGenerator
	SourceWebhook
	SourceFile
	// SourceConnector is RisingWave's `WITH (connector = '…')`: the connector's name is in With.
	SourceConnector
)

// CreateSource is CREATE SOURCE in the three spellings, and RisingWave's
// CREATE TABLE with a connector (Table true).
type CreateSource struct {
	Name        Name
	Table       bool
	OrReplace   bool
	IfNotExists bool
	Temp        bool
	Cluster     string
	// Columns are the declared columns; a source may also give names only
	// (then the Type.Node is nil).
	Columns     []ColumnDef
	Wildcard    bool // RisingWave's (*, …): the columns of the schema too
	Constraints []Constraint
	Watermarks  []Watermark
	AppendOnly  bool
	OnConflict  string
	Version     []string

	Kind SourceKind
	// Connection is the named connection, if any; Brokers and Topic are of the short form.
	Connection *Name
	Broker     string
	Topic      string
	// Generator is the load generator's name, lower-case.
	Generator string
	// Options are those in the parentheses after the connection or the generator.
	Options []Option
	// KeyFormat is nil without KEY FORMAT; Format is the value's.
	KeyFormat *FormatSpec
	Format    *FormatSpec
	Includes  []Include
	Envelope  *Envelope
	// ExternalTables of multi-output sources.
	ForAllTables bool
	ForTables    []ExternalTable
	ForSchemas   []string
	Expose       *Name // EXPOSE PROGRESS AS
	With         []Option
	// FormatEncode is RisingWave's FORMAT x ENCODE y (…).
	FormatEncode *FormatEncode
	// Body and the rest are of a webhook source.
	BodyFormat string
	Check      *Expr
}

// ExternalTable is one of FOR TABLES (…).
type ExternalTable struct {
	Name  Name
	Alias *Name
}

// FormatSpec is Materialize's FORMAT clause.
type FormatSpec struct {
	// Kind is "avro", "protobuf", "json", "text", "bytes", "csv", "regex".
	Kind string
	// Registry is the schema registry by connection or by URL.
	RegistryConnection *Name
	RegistryURL        string
	RegistryOptions    []Option
	// InlineSchema is USING SCHEMA '…'; Message is of protobuf; Pattern of regex.
	InlineSchema string
	Message      string
	Pattern      string
	// Columns (0 with HEADER), Header names and Delimiter are of CSV.
	Columns     int
	Header      bool
	HeaderNames []string
	Delimiter   string
	// Array is FORMAT JSON ARRAY of webhooks.
	Array   bool
	Options []Option
}

// FormatEncode is RisingWave's FORMAT … ENCODE ….
type FormatEncode struct {
	Format  string // "plain", "upsert", "debezium", "debezium_mongo", "maxwell", "canal", "native", "none"
	Encode  string // "json", "avro", "protobuf", "bytes", "csv", "native", "none", "text", "parquet"
	Options []Option
	// Key is KEY ENCODE … of sinks.
	KeyEncode  string
	KeyOptions []Option
}

// Include is INCLUDE metadata AS name.
type Include struct {
	// Kind is "key", "partition", "offset", "timestamp", "headers", "header", "payload", "file", "topic" …
	Kind   string
	Header string // INCLUDE HEADER 'name'
	Alias  string // "" for the default
	Type   *TypeName
	Bytes  bool
	Pos    int
}

// Envelope is ENVELOPE ….
type Envelope struct {
	Kind    string // "none", "upsert", "debezium", "materialize"
	Options []Option
}

// CreateSecret is CREATE SECRET name AS expr.
type CreateSecret struct {
	Name        Name
	IfNotExists bool
	Value       Expr
	With        []Option
}

// CreateConnection is CREATE CONNECTION name TO kind (options).
type CreateConnection struct {
	Name        Name
	OrReplace   bool
	IfNotExists bool
	// Kind is "kafka", "confluent schema registry", "postgres", "ssh tunnel", "aws", "mysql" …
	Kind    string
	Options []Option
	With    []Option
}

// Changelog is RisingWave's WITH name AS CHANGELOG FROM relation.
type Changelog struct {
	Name string
	Of   Name
}

// CreateSink is CREATE SINK in both spellings.
type CreateSink struct {
	Name        Name
	IfNotExists bool
	Cluster     string
	// From is the relation; Query is RisingWave's AS query. One is set.
	From  *Name
	Query *Query
	// Changelog says that Query reads, under a name, the changes of a relation.
	Changelog *Changelog
	// Into is RisingWave's SINK INTO table.
	Into        *Name
	IntoColumns []string
	// Kind is "kafka" …; Connection and Options are Materialize's INTO KAFKA CONNECTION c (…).
	Kind           string
	Connection     *Name
	Options        []Option
	Key            []string
	KeyNotEnforced bool
	Headers        string
	KeyFormat      *FormatSpec
	Format         *FormatSpec
	Envelope       *Envelope
	With           []Option
	FormatEncode   *FormatEncode
}

// CreateView is CREATE VIEW.
type CreateView struct {
	Name        Name
	OrReplace   bool
	IfNotExists bool
	Temp        bool
	Recursive   bool
	Columns     []string
	Query       Query
	With        []Option
	CheckOption string // "", "local" or "cascaded"
}

// CreateMaterializedView is CREATE MATERIALIZED VIEW.
type CreateMaterializedView struct {
	Name        Name
	OrReplace   bool
	IfNotExists bool
	Columns     []string
	Cluster     string
	With        []Option
	Query       Query
	WithNoData  bool
	// EmitOnWindowClose is RisingWave's EMIT ON WINDOW CLOSE.
	EmitOnWindowClose bool
}

// CreateIndex is CREATE INDEX.
type CreateIndex struct {
	Name         Name // the name may be empty
	IfNotExists  bool
	Unique       bool
	Default      bool
	Concurrently bool
	Cluster      string
	On           Name
	Using        string
	Keys         []IndexKey
	Include      []string
	Distributed  []Expr
	// NullsNotDistinct is of a unique index.
	NullsNotDistinct bool
	With             []Option
	Where            *Expr
}

// IndexKey is a key of an index. Column is set if the key is a plain column.
type IndexKey struct {
	Column     string
	Expr       Expr
	Desc       bool
	NullsFirst bool
}

// CreateCluster is CREATE CLUSTER name (options).
type CreateCluster struct {
	Name        string
	IfNotExists bool
	Options     []Option
	Pos         int
}

// CreateSchema is CREATE SCHEMA.
type CreateSchema struct {
	Name        Name
	IfNotExists bool
	Owner       string
}

// ObjectKind is a kind of object in DROP, ALTER, SHOW and COMMENT.
type ObjectKind string

// The kinds of objects, as they are written.
const (
	ObjectTable            ObjectKind = "TABLE"
	ObjectSource           ObjectKind = "SOURCE"
	ObjectView             ObjectKind = "VIEW"
	ObjectMaterializedView ObjectKind = "MATERIALIZED VIEW"
	ObjectIndex            ObjectKind = "INDEX"
	ObjectConnection       ObjectKind = "CONNECTION"
	ObjectSecret           ObjectKind = "SECRET"
	ObjectSink             ObjectKind = "SINK"
	ObjectCluster          ObjectKind = "CLUSTER"
	ObjectSchema           ObjectKind = "SCHEMA"
	ObjectDatabase         ObjectKind = "DATABASE"
	ObjectRole             ObjectKind = "ROLE"
	ObjectColumn           ObjectKind = "COLUMN"
	ObjectType             ObjectKind = "TYPE"
	ObjectSequence         ObjectKind = "SEQUENCE"
	ObjectFunction         ObjectKind = "FUNCTION"
	ObjectDomain           ObjectKind = "DOMAIN"
	ObjectSubscription     ObjectKind = "SUBSCRIPTION"
	ObjectConstraint       ObjectKind = "CONSTRAINT"
)

// Drop is DROP kind [IF EXISTS] names [CASCADE|RESTRICT].
type Drop struct {
	Kind         ObjectKind
	IfExists     bool
	Concurrently bool
	Names        []Name
	Cascade      bool
}

// AlterAction is what ALTER does.
type AlterAction uint8

// The actions of ALTER.
const (
	AlterRename           AlterAction = iota + 1 // NewName
	AlterSetSchema                               // NewName
	AlterOwner                                   // NewName
	AlterAddColumn                               // ColumnDef, IfNotExists
	AlterDropColumn                              // Column, IfExists, Cascade
	AlterRenameColumn                            // Column, NewName
	AlterSetDefault                              // Column, Expr
	AlterDropDefault                             // Column
	AlterSetNotNull                              // Column
	AlterDropNotNull                             // Column
	AlterColumnType                              // Column, Type, Expr (USING)
	AlterAddConstraint                           // Constraint
	AlterDropConstraint                          // NewName is the constraint
	AlterSetOptions                              // Options
	AlterResetOptions                            // Options (names only)
	AlterSwap                                    // NewName (RisingWave, Materialize: ALTER … SWAP WITH n)
	AlterSetCluster                              // NewName
	AlterSecretValue                             // Expr (ALTER SECRET s AS …)
	AlterTuning                                  // Column is the name, NewName the value (RisingWave: ALTER … SET PARALLELISM = n)
	AlterAddSubsource                            // Tables
	AlterSinkFrom                                // Tables: the relation (ALTER SINK s SET FROM r)
	AlterRenameConstraint                        // Column is the constraint, NewName
	AlterValidate                                // NewName is the constraint
	AlterAddIdentity                             // Column, NewName is "always" or "by default", Sequence
	AlterSetIdentity                             // Column, NewName ("" to keep it), Sequence
	AlterDropIdentity                            // Column, IfExists
	AlterDropExpression                          // Column, IfExists
	AlterSetConfig                               // Options (RisingWave: ALTER … SET CONFIG (…))
	AlterResetConfig                             // Options (names only)
	AlterNothing                                 // accepted and without an effect here
	AlterConstraintTiming                        // NewName is the constraint; Column when it is checked: "", "deferrable", "deferred"
)

// Alter is ALTER kind [IF EXISTS] name actions.
type Alter struct {
	Kind     ObjectKind
	IfExists bool
	Name     Name
	Actions  []AlterCmd
}

// AlterCmd is one action of ALTER.
type AlterCmd struct {
	Action      AlterAction
	Column      string
	NewName     string
	IfExists    bool
	IfNotExists bool
	Cascade     bool
	ColumnDef   *ColumnDef
	Constraint  *Constraint
	Type        TypeName
	Expr        *Expr
	Options     []Option
	Sequence    []*pg.Node // options of an identity column's sequence
	Tables      []ExternalTable
	Pos         int
}

// Show is SHOW kind of objects: `SHOW [plural] [FROM schema | ON relation]
// [LIKE 'pattern' | WHERE expr]`.
type Show struct {
	// Kind is "tables", "sources", "views", "materialized views", "indexes",
	// "columns", "schemas", "databases", "connections", "secrets", "sinks",
	// "clusters", "objects", "roles", "types", "functions", "subsources",
	// "jobs", "progress" …
	Kind string
	Full bool
	// In is the schema (FROM or IN), or the relation of columns and indexes.
	In      *Name
	Cluster string
	Like    *string
	Where   *Expr
}

// ShowCreate is SHOW CREATE kind name.
type ShowCreate struct {
	Kind ObjectKind
	Name Name
}

// ShowVariable is SHOW of a setting; Name is lower-case, "all" for all of
// them. It also stands for SHOW TIME ZONE and such.
type ShowVariable struct {
	Name string
	Pos  int
}

// SetVariable is SET, RESET and SET TIME ZONE. Without Values it resets to the
// default; Name "all" with Reset is RESET ALL.
type SetVariable struct {
	Name   string
	Local  bool
	Reset  bool
	Values []Value
	Pos    int
}

// Subscribe is SUBSCRIBE or TAIL. Either Name or Query is set.
type Subscribe struct {
	Name        *Name
	Query       *Query
	Envelope    string // "", "upsert", "debezium"
	EnvelopeKey []string
	OrderBy     []IndexKey // WITHIN TIMESTAMP ORDER BY
	Snapshot    bool
	Progress    bool
	With        []Option
	AsOf        *AsOf
	UpTo        *Expr
}

// Copy is COPY in every form.
type Copy struct {
	Table     *Name
	Columns   []string
	Query     *Query     // COPY (query) TO
	DML       *Statement // COPY (INSERT … RETURNING …) TO
	Subscribe *Subscribe // COPY (SUBSCRIBE …) TO
	From      bool       // FROM, else TO
	File      string     // '' for STDIN and STDOUT
	Program   bool
	Options   []Option // in the new spelling, whichever was written: format, delimiter, null, header, quote, escape, force_quote, force_not_null, encoding
	Where     *Expr
}

// DeclareCursor is DECLARE; either Query or Subscribe is set.
type DeclareCursor struct {
	Name      string
	Query     *Query
	Subscribe *Subscribe
	Binary    bool
	Hold      bool
	Scroll    bool
	NoScroll  bool
	// Insensitive cursors see nothing that comes after them: all are.
	Insensitive bool
	// Subscription and Since are of RisingWave's SUBSCRIPTION CURSOR.
	Subscription *Name
	Since        *Expr
	Full         bool // what the relation holds comes first
}

// FetchDirection is where a FETCH moves.
type FetchDirection uint8

// The directions of FETCH and MOVE.
const (
	FetchForward FetchDirection = iota
	FetchBackward
	FetchAbsolute
	FetchRelative
)

// FetchAll as a Count means all rows.
const FetchAll = int64(1<<63 - 1)

// Fetch is FETCH or MOVE.
type Fetch struct {
	Cursor    string
	Direction FetchDirection
	Count     int64
	Move      bool
	With      []Option // timeout
}

// CloseCursor is CLOSE name or CLOSE ALL (an empty name).
type CloseCursor struct{ Name string }

// Explain is EXPLAIN. Stage is "" (PostgreSQL's spelling), "raw",
// "decorrelated", "locally optimized", "optimized", "physical", "timestamp",
// "filter pushdown", "query".
type Explain struct {
	Stage   string
	Plan    bool
	Format  string // "", "text", "json", …
	Analyze bool
	Verbose bool
	Options []Option // whatever else was in parentheses or after WITH
	// needsAnalyze is an option that ANALYZE must be said with.
	needsAnalyze string
	Statement    *Statement
	// View is EXPLAIN … FOR [MATERIALIZED] VIEW | INDEX n (a plan that exists).
	ViewKind ObjectKind
	View     *Name
}

// Flush is RisingWave's FLUSH: wait until all earlier writes are visible.
type Flush struct{}

// Recover is RisingWave's RECOVER: restart what runs from the last checkpoint.
type Recover struct{}

// Wait is RisingWave's WAIT: wait for background DDL, all of it or that of one object.
type Wait struct {
	Kind ObjectKind
	Name *Name
}

// CreateSubscription is RisingWave's CREATE SUBSCRIPTION name FROM relation.
type CreateSubscription struct {
	Name        Name
	IfNotExists bool
	From        Name
	With        []Option
}

// ValidateConnection is VALIDATE CONNECTION name.
type ValidateConnection struct{ Name Name }

// CommentOn is COMMENT ON kind name IS 'text' (nil: NULL). Column is the column,
// or the constraint, of the relation Name.
type CommentOn struct {
	Kind    ObjectKind
	Name    Name
	Column  string
	Comment *string
}
