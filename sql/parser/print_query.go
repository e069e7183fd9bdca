package parser

import pg "github.com/pganalyze/pg_query_go/v6"

// Deparse prints a tree of PostgreSQL's grammar as SQL.
func Deparse(stmt *pg.Node) (string, error) { return deparse(stmt) }
