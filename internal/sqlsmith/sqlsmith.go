// Package sqlsmith writes random SQL for the tests that compare streamdb with
// PostgreSQL: schemas, changes of tables, and queries of every construct that
// both know. Each query has one answer as a multiset: where the order of rows
// decides, it orders by all that can be seen of them.
package sqlsmith

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Type is the name of an SQL type.
type Type string

// The types of the columns of tables.
const (
	Int2      Type = "int2"
	Int4      Type = "int4"
	Int8      Type = "int8"
	Numeric   Type = "numeric"
	Float8    Type = "float8"
	Text      Type = "text"
	Bool      Type = "bool"
	Date      Type = "date"
	Timestamp Type = "timestamp"
	Interval  Type = "interval"
	IntArray  Type = "int4[]"
	JSONB     Type = "jsonb"
	Inet      Type = "inet"
	MAC       Type = "macaddr8"
)

// scalarTypes are what queries output.
var scalarTypes = []Type{Int4, Int4, Int4, Int8, Int2, Numeric, Float8, Text, Text, Bool, Date, Timestamp, Interval, IntArray, JSONB, Inet, MAC}

// Column is a column of a table.
type Column struct {
	Name    string
	Type    Type
	NotNull bool
}

// Table is a table that queries read.
type Table struct {
	Name    string
	Columns []Column
	Key     bool // the first column is the primary key
}

// names are the columns that tables may have: one name has one type, so that
// tables can be joined USING it.
var names = []Column{
	{Name: "a", Type: Int4}, {Name: "b", Type: Int4}, {Name: "c", Type: Int8}, {Name: "h", Type: Int2},
	{Name: "n", Type: Numeric}, {Name: "f", Type: Float8}, {Name: "s", Type: Text}, {Name: "w", Type: Text},
	{Name: "p", Type: Bool}, {Name: "d", Type: Date}, {Name: "ts", Type: Timestamp}, {Name: "iv", Type: Interval},
	{Name: "arr", Type: IntArray}, {Name: "j", Type: JSONB}, {Name: "ip", Type: Inet}, {Name: "mac", Type: MAC},
}

// Gen writes random SQL over its tables.
type Gen struct {
	Tables []Table
	// Extremes lets values be at the ends of their types, so that more
	// expressions fail.
	Extremes bool
	// Slips is how many expressions in 1000 are wrong on purpose.
	Slips int

	rng    *rand.Rand
	scopes []scope // the innermost last
	ctes   []item
	alias  int
	local  bool // only columns of the innermost scope
	slipped
}

// slipped says what was done wrong on purpose in the last query.
type slipped struct{ wrong int }

// scope is what can be referred to.
type scope []ref

// ref is a column, or an expression that counts as one.
type ref struct {
	sql string
	typ Type
}

// item is something to select from.
type item struct {
	name string
	cols []Column
}

// New makes a generator with random tables.
func New(rng *rand.Rand) *Gen {
	g := &Gen{rng: rng, Extremes: rng.IntN(5) == 0, Slips: 2}
	for i, name := range []string{"r", "q", "p3"} {
		t := Table{Name: name}
		if i > 0 && g.pick(2) {
			t.Key = true
			t.Columns = append(t.Columns, Column{Name: "id", Type: Int4, NotNull: true})
		}
		for k, c := range names {
			if k < 2 || g.pick(2) || len(t.Columns) < 2 {
				c.NotNull = g.pick(8)
				t.Columns = append(t.Columns, c)
			}
		}
		g.Tables = append(g.Tables, t)
	}
	return g
}

// Schema is the statements that make the tables.
func (g *Gen) Schema() []string {
	var out []string
	for _, t := range g.Tables {
		var cols []string
		for i, c := range t.Columns {
			s := c.Name + " " + string(c.Type)
			if t.Key && i == 0 {
				s += " PRIMARY KEY"
			} else if c.NotNull {
				s += " NOT NULL"
			}
			cols = append(cols, s)
		}
		out = append(out, "CREATE TABLE "+t.Name+" ("+strings.Join(cols, ", ")+")")
	}
	return out
}

// Change is a statement that changes a table.
func (g *Gen) Change() string {
	t := g.Tables[g.rng.IntN(len(g.Tables))]
	g.start()
	var sc scope
	for _, c := range t.Columns {
		sc = append(sc, ref{c.Name, c.Type})
	}
	slips := g.Slips
	g.Slips = 0
	defer func() { g.Slips = slips }()
	switch g.rng.IntN(8) {
	case 0, 1, 7:
		g.scopes = []scope{sc}
		return "DELETE FROM " + t.Name + " WHERE " + g.cond(1) + g.choose(" AND ", " AND ", " OR ") + g.cond(0)
	case 2, 3:
		g.scopes = []scope{sc}
		var sets []string
		for _, i := range g.rng.Perm(len(t.Columns))[:1+g.rng.IntN(2)] {
			c := t.Columns[i]
			if t.Key && i == 0 {
				continue // PostgreSQL checks keys row by row, in whatever order
			}
			v := g.literal(c.Type)
			if g.pick(3) {
				v = g.expr(c.Type, 1)
			}
			sets = append(sets, c.Name+" = "+v)
		}
		if len(sets) == 0 {
			break
		}
		return "UPDATE " + t.Name + " SET " + strings.Join(sets, ", ") + " WHERE " + g.cond(1)
	case 4:
		if g.pick(10) {
			return "DELETE FROM " + t.Name
		}
	}
	return g.Insert(t, 1+g.rng.IntN(3))
}

// Insert is an INSERT of random rows, some of them twice.
func (g *Gen) Insert(t Table, n int) string {
	var rows []string
	keys := g.rng.Perm(40)
	for k := range n {
		var vals []string
		for i, c := range t.Columns {
			switch {
			case t.Key && i == 0:
				vals = append(vals, fmt.Sprint(keys[k]))
			case c.NotNull:
				v := g.literal(c.Type)
				for strings.HasPrefix(v, "NULL") {
					v = g.literal(c.Type)
				}
				vals = append(vals, v)
			default:
				vals = append(vals, g.literal(c.Type))
			}
		}
		row := "(" + strings.Join(vals, ", ") + ")"
		rows = append(rows, row)
		if !t.Key && g.pick(4) {
			rows = append(rows, row)
		}
	}
	values := "VALUES " + strings.Join(rows, ", ")
	if t.Key {
		return "INSERT INTO " + t.Name + " SELECT * FROM (" + values + ") v WHERE column1 NOT IN (SELECT id FROM " + t.Name + ")"
	}
	return "INSERT INTO " + t.Name + " " + values
}

func (g *Gen) start() {
	g.scopes, g.ctes, g.alias, g.local, g.slipped = nil, nil, 0, false, slipped{}
}

// pick is true once in n times.
func (g *Gen) pick(n int) bool { return g.rng.IntN(n) == 0 }

func (g *Gen) choose(options ...string) string { return options[g.rng.IntN(len(options))] }

func (g *Gen) typ() Type { return scalarTypes[g.rng.IntN(len(scalarTypes))] }

// slip is true where something wrong is to be written.
func (g *Gen) slip() bool {
	if g.Slips > 0 && g.rng.IntN(1000) < g.Slips {
		g.wrong++
		return true
	}
	return false
}

// literal is a constant of a type, of few different ones.
func (g *Gen) literal(t Type) string {
	if g.pick(6) {
		return "NULL::" + string(t)
	}
	if g.Extremes && g.pick(6) {
		return g.extreme(t)
	}
	n := g.rng.IntN(5)
	switch t {
	case Int4:
		return fmt.Sprint(n)
	case Int2, Int8:
		return fmt.Sprintf("%d::%s", n, t)
	case Numeric:
		return g.choose("0", "1", "1.0", "1.00", "0.5", "-0.50", "2.25", "3") + "::numeric"
	case Float8:
		return g.choose("0", "1", "0.5", "-0.25", "2.75", "3") + "::float8"
	case Text:
		return g.choose("''", "'x'", "'y'", "'xy'", "'Z'", "'a b'")
	case Bool:
		return g.choose("true", "false")
	case Date:
		return g.choose("DATE '2024-01-01'", "DATE '2024-01-02'", "DATE '2024-02-29'", "DATE '2023-12-31'")
	case Timestamp:
		return g.choose("TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP '2024-01-01 12:30:00'", "TIMESTAMP '2024-01-02 00:00:00'", "TIMESTAMP '2024-02-29 23:59:59.5'")
	case Interval:
		return g.choose("INTERVAL '0'", "INTERVAL '1 hour'", "INTERVAL '90 seconds'", "INTERVAL '-2 hours'")
	case Inet:
		return "inet " + g.choose("'10.1.2.3'", "'10.1.2.3/8'", "'10.1.2.3/24'", "'10.1.2.4/24'", "'10.1.0.0/16'", "'::1'", "'2001:db8::/32'")
	case MAC:
		return "macaddr8 " + g.choose("'08:00:2b:01:02:03:04:05'", "'08-00-2b-01-02-03'", "'80:00:00:00:00:00:00:00'", "'ff:ff:ff:ff:ff:ff:ff:ff'")
	case IntArray:
		return g.choose("'{}'", "'{1}'", "'{1,2}'", "'{NULL,0}'", "'{2,1,1}'") + "::int4[]"
	}
	return g.choose("'{}'", "'[]'", "'1'", "'null'", `'{"a": 1}'`, `'{"a": "x", "b": [1, 2]}'`, "'\"x\"'") + "::jsonb"
}

// extreme is a constant at an end of its type.
func (g *Gen) extreme(t Type) string {
	switch t {
	case Int4:
		return g.choose("2147483647", "(-2147483648)")
	case Int2:
		return g.choose("32767::int2", "(-32768)::int2")
	case Int8:
		return g.choose("9223372036854775807", "(-9223372036854775808)") + "::int8"
	case Numeric:
		return g.choose("'NaN'", "'Infinity'", "'-Infinity'", "1e30", "1e-20") + "::numeric"
	case Float8:
		return g.choose("'NaN'", "'Infinity'", "'-Infinity'", "1e300", "'-0'") + "::float8"
	case Date:
		return g.choose("'infinity'", "'-infinity'", "'0044-03-15 BC'", "'5874897-12-31'") + "::date"
	case Timestamp:
		return g.choose("'infinity'", "'-infinity'", "'294276-12-31 23:59:59.999999'") + "::timestamp"
	case Inet:
		return "inet " + g.choose("'0.0.0.0/0'", "'255.255.255.255'", "'::/0'", "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'")
	case Text:
		return g.choose("repeat('x', 300)", "'ß'", "E'\\n'")
	}
	return "NULL::" + string(t)
}

// column is a column of some scope, an outer one with less chance; "" if there
// is none of the type.
func (g *Gen) column(t Type) string {
	for i := len(g.scopes) - 1; i >= 0; i-- {
		if i > 0 && !g.local && g.pick(4) {
			continue
		}
		if s := g.columnOf(g.scopes[i], t); s != "" {
			return s
		}
		if g.local {
			break
		}
	}
	return ""
}

func (g *Gen) columnOf(sc scope, t Type) string {
	var fit []string
	for _, c := range sc {
		if c.typ == t {
			fit = append(fit, c.sql)
		}
	}
	if len(fit) == 0 {
		return ""
	}
	return fit[g.rng.IntN(len(fit))]
}

// columnTypes are the types of the innermost scope's columns.
func (g *Gen) columnTypes() []Type {
	var out []Type
	for _, c := range g.scopes[len(g.scopes)-1] {
		if !slices.Contains(out, c.typ) {
			out = append(out, c.typ)
		}
	}
	return out
}

// anyColumn is some column of the innermost scope, of a type that can be
// ordered and shown.
func (g *Gen) anyColumn() (ref, bool) {
	sc := g.scopes[len(g.scopes)-1]
	if len(sc) == 0 {
		return ref{}, false
	}
	return sc[g.rng.IntN(len(sc))], true
}
