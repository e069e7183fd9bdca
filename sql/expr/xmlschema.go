package expr

import (
	"fmt"
	"strconv"

	"github.com/streamdb/streamdb/sql/types"
	"github.com/streamdb/streamdb/sql/xml"
)

// xmlDescriber writes XML Schemas of queries, tables, schemas and the database.
type xmlDescriber struct{ *xmlExport }

// describe writes the description of an object of a kind.
func (d *xmlDescriber) describe(kind string, t *xmlTableRef, schema string) error {
	d.put("<xsd:schema\n    xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\"")
	if d.target != "" {
		d.put("\n    targetNamespace=\"", d.target, "\"\n    elementFormDefault=\"qualified\"")
	}
	d.put(">\n\n")
	var err error
	switch kind {
	case "schema":
		err = d.describeSchemas([]string{schema}, false)
	case "database":
		var all []string
		if all, err = d.schemas(); err == nil {
			err = d.describeSchemas(all, true)
		}
	default:
		err = d.describeRows(t)
	}
	d.put("</xsd:schema>")
	return err
}

// path is the name of a type of an object: its kind, and what it is in.
func (d *xmlDescriber) path(kind string, in ...string) string {
	for _, s := range append([]string{d.x.Database}, in...) {
		kind += "." + xml.Name(s, true, true)
	}
	return kind
}

// columns are those of a query or table; of the latter with their domains.
func (d *xmlDescriber) columns(t *xmlTableRef) ([]QueryColumn, error) {
	if t.name == "" {
		return d.query(t.sql, nil)
	}
	rows, err := d.texts("SELECT a.attname::text, a.atttypid::text FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace" +
		" WHERE n.nspname = " + sqlString(t.schema) + " AND c.relname = " + sqlString(t.name) + " AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum")
	if err != nil {
		return nil, err
	}
	cols := make([]QueryColumn, len(rows))
	for i, r := range rows {
		oid, err := strconv.ParseUint(r[1], 10, 32)
		if err != nil {
			return nil, err
		}
		cols[i] = QueryColumn{Name: r[0], Type: types.Of(types.OID(oid))}
	}
	return cols, nil
}

func (d *xmlDescriber) describeRows(t *xmlTableRef) error {
	cols, err := d.columns(t)
	if err != nil {
		return err
	}
	d.types(cols)
	rowType, tableType, name := "RowType", "TableType", t.element("table")
	if t.name != "" {
		rowType, tableType = d.path("RowType", t.schema, t.name), d.path("TableType", t.schema, t.name)
	}
	d.put("<xsd:complexType name=\"", rowType, "\">\n  <xsd:sequence>\n")
	for _, c := range cols {
		absent := ` minOccurs="0"`
		if d.nulls {
			absent = ` nillable="true"`
		}
		d.put("    <xsd:element name=\"", xml.Name(c.Name, true, false), "\" type=\"", d.typeName(c.Type), "\"", absent, "></xsd:element>\n")
	}
	d.put("  </xsd:sequence>\n</xsd:complexType>\n\n")
	if d.forest {
		d.put("<xsd:element name=\"", t.element("row"), "\" type=\"", rowType, "\"/>\n\n")
		return nil
	}
	d.put("<xsd:complexType name=\"", tableType, "\">\n  <xsd:sequence>\n    <xsd:element name=\"row\" type=\"", rowType,
		"\" minOccurs=\"0\" maxOccurs=\"unbounded\"/>\n  </xsd:sequence>\n</xsd:complexType>\n\n",
		"<xsd:element name=\"", name, "\" type=\"", tableType, "\"/>\n\n")
	return nil
}

// describeSchemas writes the types of schemas; in says that they are parts of
// the database's.
func (d *xmlDescriber) describeSchemas(schemas []string, in bool) error {
	var all []QueryColumn
	var body xmlDescriber
	body.xmlExport = &xmlExport{x: d.x}
	for _, s := range schemas {
		tables, err := d.tables(s)
		if err != nil {
			return err
		}
		group := "all"
		if d.forest {
			group = "sequence"
		}
		body.put("<xsd:complexType name=\"", d.path("SchemaType", s), "\">\n  <xsd:", group, ">\n")
		for _, t := range tables {
			cols, err := d.columns(t)
			if err != nil {
				return err
			}
			all = append(all, cols...)
			if d.forest {
				body.put("    <xsd:element name=\"", t.element(""), "\" type=\"", d.path("RowType", s, t.name), "\" minOccurs=\"0\" maxOccurs=\"unbounded\"/>\n")
			} else {
				body.put("    <xsd:element name=\"", t.element(""), "\" type=\"", d.path("TableType", s, t.name), "\"/>\n")
			}
		}
		body.put("  </xsd:", group, ">\n</xsd:complexType>\n\n")
		if !in {
			body.put("<xsd:element name=\"", xml.Name(s, true, false), "\" type=\"", d.path("SchemaType", s), "\"/>\n\n")
		}
	}
	d.types(all)
	if in {
		d.put("<xsd:complexType name=\"", d.path("CatalogType"), "\">\n  <xsd:all>\n")
		for _, s := range schemas {
			d.put("    <xsd:element name=\"", xml.Name(s, true, false), "\" type=\"", d.path("SchemaType", s), "\"/>\n")
		}
		d.put("  </xsd:all>\n</xsd:complexType>\n\n<xsd:element name=\"", xml.Name(d.x.Database, true, false), "\" type=\"", d.path("CatalogType"), "\"/>\n\n")
		return nil
	}
	d.dst = append(d.dst, body.dst...)
	return nil
}

// types describes the types of columns, each once, and those of domains below.
func (d *xmlDescriber) types(cols []QueryColumn) {
	var list []types.Type
	seen := map[types.OID]bool{}
	add := func(t types.Type) {
		if !seen[t.OID] {
			seen[t.OID] = true
			list = append(list, types.Of(t.OID))
		}
	}
	for _, c := range cols {
		add(c.Type)
	}
	for _, t := range list {
		if t.OID.IsDomain() { // the list grows behind the columns' types
			add(t.Storage())
		}
	}
	for _, t := range list {
		d.typ(t)
		d.put("\n")
	}
}

// xsdNames are the types that SQL/XML has names for.
var xsdNames = map[types.OID]string{
	types.OIDBPChar: "CHAR", types.OIDVarchar: "VARCHAR", types.OIDNumeric: "NUMERIC", types.OIDInt4: "INTEGER", types.OIDInt2: "SMALLINT", types.OIDInt8: "BIGINT",
	types.OIDFloat4: "REAL", types.OIDFloat8: "DOUBLE", types.OIDBool: "BOOLEAN", types.OIDTime: "TIME", types.OIDTimeTZ: "TIME_WTZ",
	types.OIDTimestamp: "TIMESTAMP", types.OIDTimestampTZ: "TIMESTAMP_WTZ", types.OIDDate: "DATE", types.OIDXML: "XML",
}

func (d *xmlDescriber) typeName(t types.Type) string {
	if s, ok := xsdNames[t.OID]; ok {
		return s
	}
	kind, schema := "UDT", "pg_catalog"
	if t.OID.IsDomain() {
		kind = "Domain"
	}
	if t.OID >= types.FirstUser {
		schema = "public"
		if rows, err := d.texts(fmt.Sprintf("SELECT n.nspname::text FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE t.oid = %d", t.OID)); err == nil && len(rows) == 1 {
			schema = rows[0][0]
		}
	}
	return d.path(kind, schema, typName(t.OID))
}

// xsdPatterns are restrictions of dates and times.
const (
	xsdDate = `\p{Nd}{4}-\p{Nd}{2}-\p{Nd}{2}`
	xsdTime = `\p{Nd}{2}:\p{Nd}{2}:\p{Nd}{2}(.\p{Nd}+)?`
	xsdZone = `(\+|-)\p{Nd}{2}:\p{Nd}{2}`
)

// typ describes a type.
func (d *xmlDescriber) typ(t types.Type) {
	if t.OID == types.OIDXML {
		d.put("<xsd:complexType mixed=\"true\">\n  <xsd:sequence>\n    <xsd:any name=\"element\" minOccurs=\"0\" maxOccurs=\"unbounded\" processContents=\"skip\"/>\n  </xsd:sequence>\n</xsd:complexType>\n")
		return
	}
	restrict := func(base string, inner ...string) {
		d.put("  <xsd:restriction base=\"xsd:", base, "\">\n")
		for _, s := range inner {
			d.put("    <xsd:", s, "/>\n")
		}
		d.put("  </xsd:restriction>\n")
	}
	limits := func(base, most, least string) {
		restrict(base, `maxInclusive value="`+most+`"`, `minInclusive value="`+least+`"`)
	}
	pattern := func(base, p string) { restrict(base, `pattern value="`+p+`"`) }
	empty := func(base string) { d.put("  <xsd:restriction base=\"xsd:", base, "\"></xsd:restriction>\n") }
	d.put("<xsd:simpleType name=\"", d.typeName(t), "\">\n")
	switch t.OID {
	case types.OIDBPChar, types.OIDVarchar, types.OIDText:
		restrict("string")
	case types.OIDBytea:
		if d.w.hex {
			restrict("hexBinary")
		} else {
			restrict("base64Binary")
		}
	case types.OIDInt2:
		limits("short", "32767", "-32768")
	case types.OIDInt4:
		limits("int", "2147483647", "-2147483648")
	case types.OIDInt8:
		limits("long", "9223372036854775807", "-9223372036854775808")
	case types.OIDFloat4:
		empty("float")
	case types.OIDFloat8:
		empty("double")
	case types.OIDBool:
		empty("boolean")
	case types.OIDTime:
		pattern("time", xsdTime)
	case types.OIDTimeTZ:
		pattern("time", xsdTime+xsdZone)
	case types.OIDTimestamp:
		pattern("dateTime", xsdDate+"T"+xsdTime)
	case types.OIDTimestampTZ:
		pattern("dateTime", xsdDate+"T"+xsdTime+xsdZone)
	case types.OIDDate:
		pattern("date", xsdDate)
	default:
		if t.OID.IsDomain() {
			d.put("  <xsd:restriction base=\"", d.typeName(t.Storage()), "\"/>\n")
		}
	}
	d.put("</xsd:simpleType>\n")
}
