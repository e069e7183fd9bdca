package coord_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/streamdb/streamdb/internal/oracle"
)

// allowedDifferences are the rows that the catalogs of one of the two may have alone, by the
// query or view and the row.
var allowedDifferences = []struct{ query, row, why string }{
	{"information_schema.*", `\|mv\|`, "materialized views are shown as views, so that tools see them"},
	{"information_schema.*", `(\||^)fr(_multirange)?_OID\|`, "the constructors of range types have no rows"},
	{"pg_proc|pg_identify|pg_depend", `\bfr(_multirange)?\b.*(range_constructor|\()`, "the constructors of range types have no rows"},
	{"system columns", `\|ctid\|`, "rows have no places"},
}

// TestCatalogs compares what information_schema and pg_catalog say of the same objects here
// and in PostgreSQL.
func TestCatalogs(t *testing.T) {
	s := oracle.Connect(t)
	d := open(t, t.TempDir())
	defer d.close()
	// The user's name is not to be mistaken for another value.
	c, err := pgx.Connect(context.Background(), "postgres://catalog_reader@"+d.addr+"/shop?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	schema := fmt.Sprintf("catalogs_%d", os.Getpid())
	s.Exec(t, "CREATE SCHEMA "+schema)
	defer s.Exec(t, "DROP SCHEMA "+schema+" CASCADE")
	ours, theirs := &catalogSide{conn: c, schema: schema}, &catalogSide{conn: s.Conn, schema: schema}
	d.exec(c, "CREATE SCHEMA "+schema)
	for _, x := range []*catalogSide{ours, theirs} {
		x.run(t, "SET search_path = "+schema)
		names := x.run(t, "SELECT current_database(), current_user")
		x.database, x.user, _ = strings.Cut(names[0], "|")
		for _, st := range scriptStatements(t, "testdata/catalogs/objects.sql") {
			x.run(t, st.sql)
		}
	}
	text, err := os.ReadFile("testdata/catalogs/queries.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "-- query ")[1:] {
		name, sql, _ := strings.Cut(block, "\n")
		compareCatalogs(t, name, sql, ours, theirs)
	}
	for _, v := range theirs.run(t, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'information_schema' ORDER BY 1") {
		if sql := viewQuery(t, theirs, v); sql != "" {
			compareCatalogs(t, "information_schema."+v, sql, ours, theirs)
		}
	}
}

// viewQuery asks a view of information_schema for the rows of the schema, "" if it has no
// column for one.
func viewQuery(t *testing.T, s *catalogSide, view string) string {
	var cols, conds []string
	for _, col := range s.run(t, "SELECT column_name FROM information_schema.columns WHERE table_schema = 'information_schema' AND table_name = '"+view+"' ORDER BY ordinal_position") {
		switch col {
		case "view_definition": // deparsed in another way
			continue
		case "check_clause", "generation_expression":
			cols = append(cols, "regexp_replace("+col+", '[()]', '', 'g')")
		default:
			cols = append(cols, col)
		}
		if strings.HasSuffix(col, "_schema") && !slices.Contains([]string{"domain_schema", "character_set_schema", "collation_schema", "scope_schema"}, col) {
			conds = append(conds, col+" = 'cmp'")
		}
	}
	if conds == nil {
		return ""
	}
	return "SELECT " + strings.Join(cols, ", ") + " FROM information_schema." + view + " WHERE " + strings.Join(conds, " OR ")
}

// catalogSide is one of the two that are compared.
type catalogSide struct {
	conn                   *pgx.Conn
	schema, database, user string
}

var (
	schemaWord = regexp.MustCompile(`\bcmp\b`)
	// Names and texts with OIDs in them.
	notNullName = regexp.MustCompile(`\b\d+_\d+_(\d+)_not_null`)
	oidSuffix   = regexp.MustCompile(`_\d{5,10}\b`)
)

// run gives the rows of a query as text.
func (s *catalogSide) run(t *testing.T, sql string) []string {
	t.Helper()
	results, err := s.conn.PgConn().Exec(context.Background(), schemaWord.ReplaceAllString(sql, s.schema)).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var out []string
	for _, r := range results {
		for _, row := range r.Rows {
			cells := make([]string, len(row))
			for i, v := range row {
				if cells[i] = string(v); v == nil {
					cells[i] = "NULL"
				}
				if cells[i] != "" && (cells[i] == s.user || cells[i] == s.database) { // the two may be one
					cells[i] = "NAME"
				}
			}
			line := strings.Join(cells, "|")
			line = notNullName.ReplaceAllString(strings.ReplaceAll(line, s.schema, "cmp"), "${1}_not_null")
			out = append(out, oidSuffix.ReplaceAllString(line, "_OID"))
		}
	}
	return out
}

// compareCatalogs reports the rows that only one of the two has.
func compareCatalogs(t *testing.T, name, sql string, ours, theirs *catalogSide) {
	t.Helper()
	count := map[string]int{}
	for _, row := range theirs.run(t, sql) {
		count[row]++
	}
	for _, row := range ours.run(t, sql) {
		count[row]--
	}
	var lines []string
	for row, n := range count {
		allowed := n == 0
		for _, a := range allowedDifferences {
			allowed = allowed || regexp.MustCompile("^("+a.query+")$").MatchString(name) && regexp.MustCompile(a.row).MatchString("|"+row+"|")
		}
		switch {
		case allowed:
		case n > 0:
			lines = append(lines, "only PostgreSQL: "+row)
		default:
			lines = append(lines, "only here:       "+row)
		}
	}
	if lines != nil {
		slices.Sort(lines)
		t.Errorf("%s:\n%s", name, strings.Join(lines, "\n"))
	}
}
