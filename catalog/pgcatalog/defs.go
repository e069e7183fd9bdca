package pgcatalog

import (
	"cmp"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/types"
)

// qualified is the name of a relation with its schema.
func (r *rel) qualified() string { return quoteIdent(r.schema) + "." + quoteIdent(r.name) }

// keyNames are the names of the columns of an index or key.
func (r *rel) keyNames(key []int) string {
	var b strings.Builder
	for i, k := range key {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoteIdent(r.obj.Columns[k].Name))
	}
	return b.String()
}

// indexDef is the statement that makes an index, on a table under this name; pretty
// leaves out parentheses that are not needed.
func (r *rel) indexDef(table string, pretty bool) string {
	s := "CREATE "
	if r.unique {
		s += "UNIQUE "
	}
	s += "INDEX " + quoteIdent(r.name) + " ON " + table + " USING btree (" + r.indexKeys(pretty) + ")"
	if r.nullsNotDistinct() {
		s += " NULLS NOT DISTINCT"
	}
	switch {
	case r.obj == nil || r.obj.Where == "":
	case pretty && strings.HasPrefix(r.obj.Where, "(") && closing(r.obj.Where) == len(r.obj.Where)-1:
		s += " WHERE " + r.obj.Where[1:len(r.obj.Where)-1]
	default:
		s += r.obj.WhereText()
	}
	return s
}

// closing is where the parenthesis ends with which an expression begins, -1 for nowhere.
func closing(sql string) int {
	depth := 0
	for i := 0; i < len(sql); i++ {
		switch sql[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		case '\'', '"':
			n := strings.IndexByte(sql[i+1:], sql[i])
			if n < 0 {
				return -1
			}
			i += n + 1
		}
	}
	return -1
}

// indexKeys lists the key of an index.
func (r *rel) indexKeys(pretty bool) string {
	out := make([]string, len(r.key))
	for i := range out {
		out[i] = r.indexKey(i, pretty) + r.order(i).String()
	}
	return strings.Join(out, ", ")
}

// order is the order of a part of the key of an index.
func (r *rel) order(i int) catalog.KeyOrder {
	if r.obj == nil {
		return 0
	}
	return r.obj.Order(i)
}

// indexKey is a part of the key of an index.
func (r *rel) indexKey(i int, pretty bool) string {
	if r.obj == nil { // of a primary key
		return quoteIdent(r.table.obj.Columns[r.key[i]].Name)
	}
	if x, ok := catalog.ExprOf(r.key[i]); ok && pretty && strings.HasPrefix(r.obj.Exprs[x].SQL, "(") {
		return r.obj.Exprs[x].SQL
	}
	return r.obj.KeyText(r.key[i], r.table.obj.Columns, quoteIdent)
}

// nullsNotDistinct says of the index of a key that NULLs are equal in it.
func (r *rel) nullsNotDistinct() bool {
	for _, k := range r.table.obj.Unique {
		if k.Name == r.name {
			return k.NullsNotDistinct
		}
	}
	return false
}

// def is the definition of a constraint as ALTER TABLE ADD takes it; pretty
// leaves out parentheses that are not needed, name names another table.
func (c *constraintRow) def(pretty bool, name func(r *rel) string) string {
	text := ""
	switch c.kind {
	case 'p':
		text = "PRIMARY KEY (" + c.table.keyNames(c.key) + ")"
	case 'u':
		text = "UNIQUE (" + c.table.keyNames(c.key) + ")"
		if c.index.nullsNotDistinct() {
			text = "UNIQUE NULLS NOT DISTINCT (" + c.table.keyNames(c.key) + ")"
		}
	case 'f':
		text = c.foreignDef(name)
	default:
		if text = "CHECK ((" + c.expr + "))"; pretty {
			text = "CHECK (" + c.expr + ")"
		}
	}
	if c.invalid {
		text += " NOT VALID"
	}
	return text
}

func (c *constraintRow) foreignDef(name func(r *rel) string) string {
	f := c.foreign
	s := "FOREIGN KEY (" + c.table.keyNames(c.key) + ") REFERENCES " + name(c.ref) + "(" + c.ref.keyNames(f.RefColumns) + ")"
	if f.MatchFull {
		s += " MATCH FULL"
	}
	if f.OnUpdate != "" {
		s += " ON UPDATE " + strings.ToUpper(f.OnUpdate)
	}
	if f.OnDelete != "" {
		s += " ON DELETE " + strings.ToUpper(f.OnDelete)
		if f.SetColumns != nil {
			s += " (" + c.table.keyNames(f.SetColumns) + ")"
		}
	}
	if f.Deferrable {
		s += " DEFERRABLE"
	}
	if f.Deferred {
		s += " INITIALLY DEFERRED"
	}
	return s
}

// The languages of functions.
const (
	langInternal = 12
	langSQL      = 14
)

// argument is an argument of a function; mode is as in pg_proc.proargmodes.
type argument struct {
	mode  byte
	name  string
	typ   types.Type
	deflt string
}

// arguments are all arguments of a function, with those that are results.
func (p *proc) arguments() []argument {
	oids := p.all
	if oids == nil {
		oids = p.args
	}
	out := make([]argument, len(oids))
	in := 0
	for i, o := range oids {
		a := argument{mode: 'i', typ: types.Of(types.OID(o))}
		if p.modes != "" {
			a.mode = p.modes[i]
		} else if p.variadic != 0 && i == len(oids)-1 {
			a.mode = 'v'
		}
		if i < len(p.names) {
			a.name = p.names[i]
		}
		if a.mode == 'i' || a.mode == 'b' || a.mode == 'v' {
			if d := in - (len(p.args) - len(p.defaults)); d >= 0 {
				a.deflt = p.defaults[d]
			}
			in++
		}
		out[i] = a
	}
	return out
}

// signature prints functions as the search path names their types.
type signature struct {
	r *Reader
	m *model
	p *proc
}

func (s signature) typeName(oid uint32) string {
	name, _ := s.r.typeName(s.m, oid)
	return cmp.Or(name, types.OID(oid).Name())
}

// argument prints an argument as CREATE FUNCTION takes it.
func (s signature) argument(a argument, defaults bool) string {
	var b strings.Builder
	switch a.mode {
	case 'i':
		if s.p.kind == 'p' {
			b.WriteString("IN ")
		}
	case 'o':
		b.WriteString("OUT ")
	case 'b':
		b.WriteString("INOUT ")
	case 'v':
		b.WriteString("VARIADIC ")
	}
	if a.name != "" {
		b.WriteString(quoteIdent(a.name) + " ")
	}
	b.WriteString(s.typeName(uint32(a.typ.OID)))
	if defaults && a.deflt != "" {
		b.WriteString(" DEFAULT " + s.deflt(a))
	}
	return b.String()
}

// deflt is the default of an argument as it is shown.
func (s signature) deflt(a argument) string { return s.r.typedText(s.m, a.deflt, a.typ) }

// arguments is pg_get_function_arguments; without defaults it is
// pg_get_function_identity_arguments.
func (s signature) arguments(defaults bool) string {
	var parts []string
	for _, a := range s.p.arguments() {
		if a.mode == 't' {
			continue
		}
		parts = append(parts, s.argument(a, defaults))
	}
	return strings.Join(parts, ", ")
}

// result is pg_get_function_result, "" for a procedure.
func (s signature) result() string {
	if s.p.kind == 'p' {
		return ""
	}
	var cols []string
	for _, a := range s.p.arguments() {
		if a.mode == 't' {
			cols = append(cols, quoteIdent(a.name)+" "+s.typeName(uint32(a.typ.OID)))
		}
	}
	if cols != nil {
		return "TABLE(" + strings.Join(cols, ", ") + ")"
	}
	name := s.typeName(s.p.ret)
	if s.p.set {
		name = "SETOF " + name
	}
	return name
}

// def is pg_get_functiondef.
func (s signature) def() string {
	p := s.p
	kind, returns := "function", "\n RETURNS "+s.result()
	if p.kind == 'p' {
		kind, returns = "procedure", ""
	}
	text := "CREATE OR REPLACE " + strings.ToUpper(kind) + " " + quoteIdent(p.schema()) + "." + quoteIdent(p.name) + "(" + s.arguments(true) + ")" + returns + "\n LANGUAGE "
	if p.lang == langSQL {
		text += "sql"
	} else {
		text += "internal"
	}
	var attrs []string
	switch p.volatile {
	case 'i':
		attrs = append(attrs, "IMMUTABLE")
	case 's':
		attrs = append(attrs, "STABLE")
	}
	switch p.parallel {
	case 's':
		attrs = append(attrs, "PARALLEL SAFE")
	case 'r':
		attrs = append(attrs, "PARALLEL RESTRICTED")
	}
	if p.strict {
		attrs = append(attrs, "STRICT")
	}
	if attrs != nil {
		text += "\n " + strings.Join(attrs, " ")
	}
	return text + "\nAS $" + kind + "$" + p.src + "$" + kind + "$\n"
}
