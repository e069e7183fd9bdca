package coord

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/types"
)

// describeRelation is RisingWave's DESCRIBE: columns, fields of their structs, keys,
// indexes and comments.
func (s *Session) describeRelation(cat *catalog.Snapshot, n *parser.Show) ([]pgwire.Column, [][]string, error) {
	cols := textColumns("name", "type", "is_hidden", "description")
	o, err := s.showRelation(cat, n.In)
	if err != nil {
		return nil, nil, err
	}
	var rows [][]string
	for _, c := range o.Columns {
		rows = append(rows, []string{c.Name, typeName(c.Type), fmt.Sprint(c.Hidden), orNull(c.Comment)})
		rows = append(rows, fieldRows(c.Name, c.Type)...)
	}
	key := o.PrimaryKey
	names := columnsText(o, key, ", ", false)
	if o.Kind == catalog.KindTable && key == nil {
		rows = append(rows, []string{planner.RowIDColumn, typeName(types.UUID), "true", nullText})
		names = planner.RowIDColumn
	} else if o.Kind == catalog.KindMaterializedView {
		names = columnsText(o, o.Key, ", ", false)
	}
	if names != "" {
		rows = append(rows, []string{"primary key", names, nullText, nullText}, []string{"distribution key", names, nullText, nullText})
	}
	for _, x := range cat.Objects() {
		if x.Kind == catalog.KindIndex && x.Table == o.ID && (x.Index == nil || !x.Index.Internal) {
			rows = append(rows, []string{x.Name, describeIndex(x), nullText, orNull(x.Comment)})
		}
	}
	return cols, append(rows, []string{"table description", o.Name, nullText, orNull(o.Comment)}), nil
}

// fieldRows are the fields of a struct, and theirs.
func fieldRows(name string, t types.Type) [][]string {
	var rows [][]string
	info := types.Lookup(t.OID)
	if info == nil || info.Kind != 'c' || info.Definition == nil {
		return nil
	}
	for _, f := range info.Definition.Fields {
		full := name + "." + f.Name
		rows = append(rows, []string{full, typeName(f.Type), "false", nullText})
		rows = append(rows, fieldRows(full, f.Type)...)
	}
	return rows
}

func describeIndex(x *catalog.Object) string {
	same := func(name string) string { return name }
	keys := make([]string, len(x.Key))
	in := map[int]bool{}
	for i, k := range x.Key {
		keys[i] = x.KeyText(k, x.Columns, same)
		in[k] = true
	}
	var rest []string
	for i, c := range x.Columns {
		if x.PlainIndex() && !in[i] {
			rest = append(rest, c.Name)
		}
	}
	out := "index(" + strings.Join(keys, ", ") + ")"
	if rest != nil {
		out += " include(" + strings.Join(rest, ", ") + ")"
	}
	return out + " distributed by(" + keys[0] + ")"
}

func orNull(text string) string {
	if text == "" {
		return nullText
	}
	return text
}

// showSessions is RisingWave's SHOW PROCESSLIST.
func (s *Session) showSessions() ([]pgwire.Column, [][]string) {
	env := &pgEnv{s}
	now := env.Now()
	var rows [][]string
	for _, x := range env.Sessions() {
		took, query := nullText, nullText
		if x.State == "active" {
			took, query = fmt.Sprintf("%dms", now.Sub(x.QueryStarted).Milliseconds()), x.Query
		}
		rows = append(rows, []string{fmt.Sprint(x.PID), x.User, x.RemoteAddr, databaseName, took, query})
	}
	return textColumns("id", "user", "host", "database", "time", "info"), rows
}

// showCursors lists the session's cursors.
func (s *Session) showCursors() ([]pgwire.Column, [][]string) {
	var rows [][]string
	for _, c := range (&pgEnv{s}).Cursors() {
		rows = append(rows, []string{c.Name, c.SQL})
	}
	return textColumns("name", "query"), rows
}

// showFunctions lists the functions of users.
func (s *Session) showFunctions(cat *catalog.Snapshot, n *parser.Show) ([]pgwire.Column, [][]string, error) {
	cols := textColumns("name", "arguments", "return_type", "language", "comment")
	schemas, err := s.showSchemas(cat, n)
	var rows [][]string
	for _, o := range cat.Objects() {
		if f := o.Function; f != nil && slices.Contains(schemas, o.Schema) {
			args := make([]string, len(f.Args))
			for i, a := range f.Args {
				args[i] = typeName(a.Type)
			}
			rows = append(rows, []string{o.Name, strings.Join(args, ", "), typeName(f.Returns), "sql", o.Comment})
		}
	}
	return cols, rows, err
}

// showTypes lists the types of users.
func (s *Session) showTypes(cat *catalog.Snapshot, n *parser.Show) ([]pgwire.Column, [][]string, error) {
	schemas, err := s.showSchemas(cat, n)
	var rows [][]string
	for _, o := range cat.Objects() {
		if o.Kind == catalog.KindType && slices.Contains(schemas, o.Schema) {
			rows = append(rows, []string{o.Name, o.Comment})
		}
	}
	return textColumns("name", "comment"), rows, err
}

// showCreateFunction is SHOW CREATE FUNCTION, for each function of the name.
func (s *Session) showCreateFunction(cat *catalog.Snapshot, n parser.Name) ([][]string, error) {
	schemas := s.searchPath()
	if n.Schema != "" {
		schemas = []string{n.Schema}
	}
	reader := s.catalogReader()
	var rows [][]string
	for _, o := range cat.Objects() {
		if o.Function == nil || o.Name != n.Name || !slices.Contains(schemas, o.Schema) {
			continue
		}
		def, _, err := reader.Call("pg_get_functiondef", []string{fmt.Sprint(o.OID)})
		if err != nil {
			return nil, err
		}
		rows = append(rows, []string{o.Schema + "." + o.Name, strings.TrimRight(def, "\n")})
	}
	if rows == nil {
		return nil, pgerror.New(pgerror.UndefinedFunction, "function %s does not exist", dottedName(n)).At(n.Pos)
	}
	return rows, nil
}

// whereShown keeps the rows that WHERE of a SHOW is true for.
func (s *Session) whereShown(cols []pgwire.Column, rows [][]string, where *parser.Expr) ([][]string, error) {
	var b strings.Builder
	b.WriteString("SELECT * FROM (VALUES ")
	for i, r := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(")
		for c, v := range r {
			if c > 0 {
				b.WriteString(", ")
			}
			if v == nullText {
				b.WriteString("NULL::text")
			} else {
				b.WriteString(parser.QuoteString(v) + "::text")
			}
		}
		b.WriteString(")")
	}
	if len(rows) == 0 {
		b.WriteString("(" + strings.TrimSuffix(strings.Repeat("NULL::text, ", len(cols)), ", ") + ")")
	}
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = quoteName(c.Name)
	}
	fmt.Fprintf(&b, ") AS shown(%s) WHERE (%s)", strings.Join(names, ", "), where.SQL)
	var out [][]string
	_, err := s.lockedSubquery(b.String(), func(_ []expr.QueryColumn, batch *columnar.Batch) error {
		for i := range batch.N {
			row := make([]string, len(cols))
			for c, v := range batch.Cols {
				if row[c] = nullText; !v.Null(i) {
					row[c] = string(v.Bytes(i))
				}
			}
			out = append(out, row)
		}
		return nil
	})
	if err != nil {
		e := *pgerror.As(err)
		e.Pos = 0
		return nil, &e
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return out, nil
}
