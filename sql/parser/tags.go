package parser

// Tag implementations: the command tags of PostgreSQL where it has the
// statement, else those of Materialize.

// Tag of a query has its row count added by whoever runs it.
func (*Select) Tag() string { return "SELECT" }

// Tag of CREATE TABLE.
func (*CreateTable) Tag() string { return "CREATE TABLE" }

// Tag of CREATE TABLE AS is a SELECT with a row count in PostgreSQL.
func (*CreateTableAs) Tag() string { return "SELECT" }

// Tag of CREATE TABLE … FROM SOURCE.
func (*CreateTableFromSource) Tag() string { return "CREATE TABLE" }

// Tag of CREATE SOURCE, or of CREATE TABLE with a connector.
func (n *CreateSource) Tag() string {
	if n.Table {
		return "CREATE TABLE"
	}
	return "CREATE SOURCE"
}

// Tag of CREATE SECRET.
func (*CreateSecret) Tag() string { return "CREATE SECRET" }

// Tag of CREATE CONNECTION.
func (*CreateConnection) Tag() string { return "CREATE CONNECTION" }

// Tag of CREATE SINK.
func (*CreateSink) Tag() string { return "CREATE SINK" }

// Tag of CREATE VIEW.
func (*CreateView) Tag() string { return "CREATE VIEW" }

// Tag of CREATE MATERIALIZED VIEW.
func (*CreateMaterializedView) Tag() string { return "CREATE MATERIALIZED VIEW" }

// Tag of CREATE INDEX.
func (*CreateIndex) Tag() string { return "CREATE INDEX" }

// Tag of CREATE CLUSTER.
func (*CreateCluster) Tag() string { return "CREATE CLUSTER" }

// Tag of CREATE SCHEMA.
func (*CreateSchema) Tag() string { return "CREATE SCHEMA" }

// Tag of DROP names the kind.
func (n *Drop) Tag() string { return "DROP " + string(n.Kind) }

// Tag of ALTER names the kind.
func (n *Alter) Tag() string { return "ALTER " + string(n.Kind) }

// Tag of SHOW of objects.
func (*Show) Tag() string { return "SHOW" }

// Tag of SHOW CREATE.
func (*ShowCreate) Tag() string { return "SHOW" }

// Tag of SHOW of a setting.
func (*ShowVariable) Tag() string { return "SHOW" }

// Tag of SET and RESET.
func (n *SetVariable) Tag() string {
	if n.Reset {
		return "RESET"
	}
	return "SET"
}

// Tag of SUBSCRIBE.
func (*Subscribe) Tag() string { return "SUBSCRIBE" }

// Tag of COPY has its row count added by whoever runs it.
func (*Copy) Tag() string { return "COPY" }

// Tag of DECLARE.
func (*DeclareCursor) Tag() string { return "DECLARE CURSOR" }

// Tag of FETCH and MOVE has its row count added by whoever runs it.
func (n *Fetch) Tag() string {
	if n.Move {
		return "MOVE"
	}
	return "FETCH"
}

// Tag of CLOSE.
func (n *CloseCursor) Tag() string {
	if n.Name == "" {
		return "CLOSE CURSOR ALL"
	}
	return "CLOSE CURSOR"
}

// Tag of EXPLAIN.
func (*Explain) Tag() string { return "EXPLAIN" }

// Tag of FLUSH.
func (*Flush) Tag() string { return "FLUSH" }

// Tag of RECOVER.
func (*Recover) Tag() string { return "RECOVER" }

// Tag of WAIT.
func (*Wait) Tag() string { return "WAIT" }

// Tag of VALIDATE CONNECTION.
func (*ValidateConnection) Tag() string { return "VALIDATE CONNECTION" }

// Tag of COMMENT ON.
func (*CommentOn) Tag() string { return "COMMENT" }

// Tag of a statement in PostgreSQL's tree is known to whoever runs it.
func (*Postgres) Tag() string { return "" }

// Tag of CREATE SUBSCRIPTION.
func (*CreateSubscription) Tag() string { return "CREATE SUBSCRIPTION" }
