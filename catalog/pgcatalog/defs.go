package pgcatalog

import (
	"strings"

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

// indexDef is the statement that makes an index, on a table under this name.
func (r *rel) indexDef(table string) string {
	s := "CREATE "
	if r.unique {
		s += "UNIQUE "
	}
	return s + "INDEX " + quoteIdent(r.name) + " ON " + table + " USING btree (" + r.table.keyNames(r.key) + ")"
}

// def is the definition of a constraint as ALTER TABLE ADD takes it; pretty
// leaves out parentheses that are not needed.
func (c *constraintRow) def(pretty bool) string {
	switch c.kind {
	case 'p':
		return "PRIMARY KEY (" + c.table.keyNames(c.key) + ")"
	case 'u':
		return "UNIQUE (" + c.table.keyNames(c.key) + ")"
	}
	if pretty {
		return "CHECK (" + c.expr + ")"
	}
	return "CHECK ((" + c.expr + "))"
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

// text prints an argument as CREATE FUNCTION takes it.
func (a argument) text(defaults bool) string {
	var b strings.Builder
	switch a.mode {
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
	b.WriteString(a.typ.OID.Name())
	if defaults && a.deflt != "" {
		b.WriteString(" DEFAULT " + a.deflt)
	}
	return b.String()
}

// argList is pg_get_function_arguments; without defaults it is
// pg_get_function_identity_arguments.
func (p *proc) argList(defaults bool) string {
	var parts []string
	for _, a := range p.arguments() {
		if a.mode == 't' || !defaults && a.mode == 'o' {
			continue
		}
		parts = append(parts, a.text(defaults))
	}
	return strings.Join(parts, ", ")
}

// result is pg_get_function_result.
func (p *proc) result() string {
	var cols []string
	for _, a := range p.arguments() {
		if a.mode == 't' {
			cols = append(cols, quoteIdent(a.name)+" "+a.typ.OID.Name())
		}
	}
	if cols != nil {
		return "TABLE(" + strings.Join(cols, ", ") + ")"
	}
	s := p.returns().OID.Name()
	if p.set {
		s = "SETOF " + s
	}
	return s
}

// def is pg_get_functiondef.
func (p *proc) def() string {
	s := "CREATE OR REPLACE FUNCTION " + p.schema() + "." + quoteIdent(p.name) + "(" + p.argList(true) + ")\n RETURNS " + p.result() + "\n LANGUAGE "
	if p.lang == langSQL {
		s += "sql"
	} else {
		s += "internal"
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
		s += "\n " + strings.Join(attrs, " ")
	}
	return s + "\nAS $function$" + p.src + "$function$\n"
}
