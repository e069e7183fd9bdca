package expr

import (
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
	"github.com/streamdb/streamdb/sql/xml"
)

// QueryColumn is a column of what Context.Query runs.
type QueryColumn struct {
	Name string
	Type types.Type
}

// xmlExport writes queries, tables, schemas and the database as XML documents
// (SQL/XML:2008, 9.11 to 9.17).
type xmlExport struct {
	x      *Eval
	w      *xmlWriter
	nulls  bool   // NULLs are elements, else nothing
	forest bool   // a row is an element of its own, else part of one of the table
	target string // namespace
	dst    []byte
}

const xsiURI = "http://www.w3.org/2001/XMLSchema-instance"

func (e *xmlExport) put(s ...string) {
	for _, s := range s {
		e.dst = append(e.dst, s...)
	}
}

// query runs a query.
func (e *xmlExport) query(sql string, emit func(cols []QueryColumn, b *columnar.Batch) error) ([]QueryColumn, error) {
	if e.x.Context == nil || e.x.Query == nil {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "a function that runs a query is not supported here")
	}
	return e.x.Query(sql, emit)
}

// texts runs a query of the catalog, and gives its rows as texts.
func (e *xmlExport) texts(sql string) (rows [][]string, err error) {
	_, err = e.query(sql, func(_ []QueryColumn, b *columnar.Batch) error {
		for i := range b.N {
			row := make([]string, len(b.Cols))
			for k, c := range b.Cols {
				row[k] = string(c.Bytes(i))
			}
			rows = append(rows, row)
		}
		return nil
	})
	return rows, err
}

// start opens an element around rows or tables.
func (e *xmlExport) start(name string, top, schema bool) {
	e.put("<", name)
	if top {
		e.put(` xmlns:xsi="`, xsiURI, `"`)
	}
	if top && e.target != "" {
		e.put(` xmlns="`, e.target, `"`)
	}
	switch {
	case !schema:
	case e.target != "":
		e.put(` xsi:schemaLocation="`, e.target, ` #"`)
	default:
		e.put(` xsi:noNamespaceSchemaLocation="#"`)
	}
	e.put(">\n")
}

func (e *xmlExport) end(name string) { e.put("</", name, ">\n") }

// xmlTableRef is a table to be written: its SQL, and its place; of a query only
// the SQL.
type xmlTableRef struct{ sql, schema, name string }

// element is the name of the table's element, other for a query.
func (t *xmlTableRef) element(other string) string {
	if t.name == "" {
		return other
	}
	return xml.Name(t.name, true, false)
}

// rows writes what a query gives; schema is a description that goes before.
func (e *xmlExport) rows(t *xmlTableRef, schema []byte, top bool) error {
	name, row := t.element("table"), t.element("row")
	if !e.forest {
		e.start(name, top, schema != nil)
		e.put("\n")
	}
	if schema != nil {
		e.put(string(schema), "\n\n")
	}
	var names []string
	_, err := e.query(t.sql, func(cols []QueryColumn, b *columnar.Batch) error {
		if names == nil {
			for _, c := range cols {
				names = append(names, xml.Name(c.Name, true, false))
			}
		}
		for i := range b.N {
			if err := e.row(row, top, cols, names, b, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !e.forest {
		e.end(name)
	}
	return nil
}

// row writes a row.
func (e *xmlExport) row(element string, top bool, cols []QueryColumn, names []string, b *columnar.Batch, i int) error {
	if e.forest {
		e.start(element, top, false)
	} else {
		e.put("<row>\n")
	}
	for k, c := range cols {
		if b.Cols[k].Null(i) {
			if e.nulls {
				e.put("  <", names[k], ` xsi:nil="true"/>`, "\n")
			}
			continue
		}
		e.put("  <", names[k], ">")
		var err *pgerror.Error
		if e.dst, err = e.w.append(e.dst, c.Type, b.Cols[k], i, true); err != nil {
			return err
		}
		e.put("</", names[k], ">\n")
	}
	if e.forest {
		e.end(element)
	} else {
		e.put("</row>\n")
	}
	e.put("\n")
	return nil
}

// table finds a table by its oid.
func (e *xmlExport) table(oid int64) (*xmlTableRef, error) {
	rows, err := e.texts("SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname), n.nspname::text, c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = " + strconv.FormatInt(oid, 10))
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, pgerror.New(pgerror.UndefinedTable, "relation with OID %d does not exist", oid)
	}
	return &xmlTableRef{"SELECT * FROM " + rows[0][0], rows[0][1], rows[0][2]}, nil
}

// sqlString is a text as a literal.
func sqlString(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// tables lists those of a schema.
func (e *xmlExport) tables(schema string) (out []*xmlTableRef, err error) {
	rows, err := e.texts("SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname), n.nspname::text, c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace" +
		" WHERE n.nspname = " + sqlString(schema) + " AND c.relkind IN ('r', 'm', 'v') ORDER BY c.relname")
	for _, r := range rows {
		out = append(out, &xmlTableRef{"SELECT * FROM " + r[0], r[1], r[2]})
	}
	return out, err
}

// schemas lists those of the database.
func (e *xmlExport) schemas() (out []string, err error) {
	rows, err := e.texts(`SELECT nspname::text FROM pg_catalog.pg_namespace WHERE nspname !~ '^(pg_|information_schema$|mz_|streamdb_internal$)' ORDER BY nspname`)
	for _, r := range rows {
		out = append(out, r[0])
	}
	return out, err
}

// checkSchema fails if there is no such schema.
func (e *xmlExport) checkSchema(name string) error {
	rows, err := e.texts("SELECT nspname::text FROM pg_catalog.pg_namespace WHERE nspname = " + sqlString(name))
	if err == nil && len(rows) == 0 {
		err = pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", name)
	}
	return err
}

// schema writes the tables of a schema.
func (e *xmlExport) schema(name string, described []byte, top bool) error {
	tables, err := e.tables(name)
	if err != nil {
		return err
	}
	element := xml.Name(name, true, false)
	e.start(element, top, described != nil)
	e.put("\n")
	if described != nil {
		e.put(string(described), "\n\n")
	}
	for _, t := range tables {
		if err := e.rows(t, nil, false); err != nil {
			return err
		}
		e.put("\n")
	}
	e.end(element)
	return nil
}

// database writes the schemas of the database.
func (e *xmlExport) database(described []byte) error {
	schemas, err := e.schemas()
	if err != nil {
		return err
	}
	element := xml.Name(e.x.Database, true, false)
	e.start(element, true, described != nil)
	e.put("\n")
	if described != nil {
		e.put(string(described), "\n\n")
	}
	for _, s := range schemas {
		if err := e.schema(s, nil, false); err != nil {
			return err
		}
		e.put("\n")
	}
	e.end(element)
	return nil
}

// xmlParts says whether a function gives the data, their description, or both.
type xmlParts uint8

const (
	xmlData xmlParts = iota
	xmlDescribed
	xmlBoth
)

// export is the function of an object of a kind, of argument 0.
func (e *xmlExport) export(kind string, parts xmlParts, a Args, i int) error {
	var t *xmlTableRef
	var name string
	var err error
	switch kind {
	case "query":
		t = &xmlTableRef{sql: string(a.Bytes(0, i))}
	case "table":
		t, err = e.table(a.Int64(0, i))
	case "schema":
		name = string(a.Bytes(0, i))
		err = e.checkSchema(name)
	}
	if err != nil {
		return err
	}
	var described []byte
	if parts != xmlData {
		d := xmlDescriber{xmlExport: &xmlExport{x: e.x, w: e.w, nulls: e.nulls, forest: e.forest, target: e.target}}
		if err := d.describe(kind, t, name); err != nil {
			return err
		}
		if described = d.dst; parts == xmlDescribed {
			e.dst = described
			return nil
		}
	}
	switch kind {
	case "schema":
		return e.schema(name, described, true)
	case "database":
		return e.database(described)
	}
	return e.rows(t, described, true)
}

func init() {
	first := map[string]types.Type{"query": types.Text, "table": types.Of(types.OIDRegclass), "schema": types.Name}
	argNames := map[string]string{"query": "query", "table": "tbl", "schema": "schema"}
	for _, kind := range []string{"query", "table", "schema", "database"} {
		for parts, suffix := range []string{"_to_xml", "_to_xmlschema", "_to_xml_and_xmlschema"} {
			args, names := []types.Type{types.Bool, types.Bool, types.Text}, []string{"nulls", "tableforest", "targetns"}
			n := 0
			if t, ok := first[kind]; ok {
				args, names = append([]types.Type{t}, args...), append([]string{argNames[kind]}, names...)
				n = 1
			}
			v := Stable
			if kind == "query" {
				v = Volatile
			}
			Register(Function{Name: kind + suffix, Args: args, ArgNames: names, Ret: types.XML, Strict: true, Volatility: v, Queries: true, Consts: ScalarConsts,
				Eval: RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
					e := &xmlExport{x: x, w: x.xmlWriter(), nulls: a.Bool(n, i), forest: a.Bool(n+1, i), target: string(a.Bytes(n+2, i))}
					if err := e.export(kind, xmlParts(parts), a, i); err != nil {
						return pgerror.As(err)
					}
					out.Bytes(e.dst)
					return nil
				})})
		}
	}
}
