package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// table is an upstream table.
type table struct {
	sources.Table
	schema, name string
}

func newTable(t sources.Table) table {
	schema, name, _ := strings.Cut(t.Name, ".")
	return table{Table: t, schema: schema, name: name}
}

func (t *table) builders(capacity int) []*columnar.Builder {
	bs := make([]*columnar.Builder, len(t.Columns))
	for i, c := range t.Columns {
		bs[i] = columnar.NewBuilder(c.Type.Kind(), capacity)
	}
	return bs
}

// literal quotes a string for SQL.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func ident(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// query runs a query and gives its rows as text.
func query(ctx context.Context, conn *pgconn.PgConn, sql string) ([][]string, error) {
	res, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var out [][]string
	for _, r := range res {
		for _, row := range r.Rows {
			vals := make([]string, len(row))
			for i, v := range row {
				vals[i] = string(v)
			}
			out = append(out, vals)
		}
	}
	return out, nil
}

// discover finds the publication's tables and checks that they can be followed.
func (s *Source) discover(ctx context.Context, o map[string]string) error {
	conn, err := pgconn.ConnectConfig(ctx, s.cfg)
	if err != nil {
		return connectError(err)
	}
	defer conn.Close(ctx)
	if err := s.checkServer(ctx, conn); err != nil {
		return err
	}
	rows, err := query(ctx, conn, "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = "+literal(s.pub)+" ORDER BY 1, 2")
	if err != nil {
		return err
	}
	published := map[string]bool{}
	for _, r := range rows {
		published[r[0]+"."+r[1]] = true
	}
	var names []string
	switch {
	case o["tables"] != "":
		names = strings.Split(o["tables"], ",")
	default:
		schemas := map[string]bool{}
		for _, x := range strings.Split(o["for schemas"], ",") {
			schemas[x] = x != ""
		}
		for _, r := range rows {
			if o["for schemas"] == "" || schemas[r[0]] {
				names = append(names, r[0]+"."+r[1])
			}
		}
	}
	asText := listOption(o["text columns"])
	excluded := listOption(o["exclude columns"])
	for _, n := range names {
		if !published[n] {
			return pgerror.New(pgerror.UndefinedTable, "table %s is not in the publication \"%s\"", n, s.pub).
				WithHint("Upstream: ALTER PUBLICATION %s ADD TABLE %s;", s.pub, n)
		}
		t, err := describe(ctx, conn, n, asText, excluded)
		if err != nil {
			return err
		}
		s.tables = append(s.tables, *t)
	}
	return nil
}

func listOption(v string) map[string]bool {
	m := map[string]bool{}
	for _, x := range strings.Split(v, ",") {
		if x = strings.TrimSpace(x); x != "" {
			if strings.Count(x, ".") == 1 {
				x = "public." + x
			}
			m[x] = true
		}
	}
	return m
}

// checkServer checks what logical replication needs.
func (s *Source) checkServer(ctx context.Context, conn *pgconn.PgConn) error {
	rows, err := query(ctx, conn, "SELECT current_setting('wal_level'), (SELECT count(*) FROM pg_publication WHERE pubname = "+literal(s.pub)+")")
	if err != nil {
		return err
	}
	if rows[0][0] != "logical" {
		return pgerror.New(pgerror.ObjectNotInPrerequisiteState, "the upstream PostgreSQL has wal_level = %s", rows[0][0]).
			WithHint("Logical replication needs wal_level = logical, and a restart of that server.")
	}
	if rows[0][1] == "0" {
		return pgerror.New(pgerror.UndefinedObject, "publication \"%s\" does not exist upstream", s.pub).
			WithHint("Upstream: CREATE PUBLICATION %s FOR ALL TABLES;", s.pub)
	}
	return nil
}

// describe reads a table's columns and replica identity. A table with a key is
// followed by it (upsert); one without must have REPLICA IDENTITY FULL, and is
// followed by whole rows.
func describe(ctx context.Context, conn *pgconn.PgConn, name string, asText, excluded map[string]bool) (*table, error) {
	t := newTable(sources.Table{Name: name})
	reg := literal(ident(t.schema)+"."+ident(t.name)) + "::regclass"
	rows, err := query(ctx, conn, fmt.Sprintf(`SELECT a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attgenerated
FROM pg_attribute a WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, reg))
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		full := name + "." + r[0]
		if r[4] != "" || excluded[full] {
			continue // generated columns are not in the stream
		}
		oid, _ := strconv.ParseUint(r[1], 10, 32)
		mod, _ := strconv.ParseInt(r[2], 10, 32)
		typ := types.Type{OID: types.OID(oid), Mod: int32(mod)}
		if asText[full] || !supported(typ) {
			typ = types.Text
		}
		t.Columns = append(t.Columns, sources.Column{Name: r[0], Type: typ, NotNull: r[3] == "t"})
	}
	key, err := query(ctx, conn, fmt.Sprintf(`SELECT a.attname FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
WHERE i.indrelid = %s AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indisvalid
  AND CASE (SELECT relreplident FROM pg_class WHERE oid = i.indrelid) WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END
ORDER BY array_position(i.indkey::int2[], a.attnum)`, reg))
	if err != nil {
		return nil, err
	}
	ident, err := query(ctx, conn, "SELECT relreplident FROM pg_class WHERE oid = "+reg)
	if err != nil {
		return nil, err
	}
	for _, k := range key {
		i := slices.IndexFunc(t.Columns, func(c sources.Column) bool { return c.Name == k[0] })
		if i < 0 {
			return nil, pgerror.New(pgerror.InvalidObjectDefinition, "key column %s of table %s must not be excluded", k[0], name)
		}
		t.Key = append(t.Key, i)
	}
	switch {
	case ident[0][0] == "n" || ident[0][0] == "d" && len(t.Key) == 0:
		return nil, pgerror.New(pgerror.ObjectNotInPrerequisiteState, "table %s has no replica identity", name).
			WithHint("Upstream, give it a primary key, or ALTER TABLE %s REPLICA IDENTITY FULL;", name)
	case len(t.Key) > 0:
		t.Envelope = sources.EnvelopeUpsert
	default:
		t.Envelope = sources.EnvelopeChanges
	}
	return &t, nil
}

// supported says whether values of a type are kept as that type; others are
// kept as text.
func supported(t types.Type) bool {
	i := types.Lookup(t.OID)
	if i == nil {
		return false
	}
	switch t.OID {
	case types.OIDRecord, types.OIDRecordArray, types.OIDRegproc, types.OIDRegprocedure, types.OIDRegclass, types.OIDRegtype, types.OIDRegrole, types.OIDRegnamespace:
		return false
	}
	return true
}
