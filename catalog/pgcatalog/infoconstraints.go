package pgcatalog

import (
	"slices"
	"strconv"
	"strings"
)

// The views of information_schema about constraints.

func init() {
	define(map[string]definition{
		".table_constraints":       personal(tableConstraints),
		".check_constraints":       personal(checkConstraints),
		".key_column_usage":        personal(keyColumns),
		".constraint_column_usage": personal(constraintColumns),
		".constraint_table_usage":  personal(constraintTables),
		".referential_constraints": personal(referentialConstraints),
		".domain_constraints":      personal(infoDomainConstraints),
	})
}

// infoConstraint is a constraint as information_schema sees it: NOT NULL is a
// check with a name made of numbers.
type infoConstraint struct {
	constraintRow
	typ    string
	clause string
	schema string
}

// checkClause is a condition as check_constraints shows it.
func checkClause(c *constraintRow) string { return strings.TrimPrefix(c.def(false, nil), "CHECK ") }

func (m *model) infoConstraints() []infoConstraint {
	names := map[byte]string{'p': "PRIMARY KEY", 'u': "UNIQUE", 'f': "FOREIGN KEY", 'c': "CHECK"}
	var out []infoConstraint
	for _, c := range m.constraints() {
		x := infoConstraint{constraintRow: c, typ: names[c.kind], schema: c.table.schema}
		if c.kind == 'c' {
			x.clause = checkClause(&c)
		}
		out = append(out, x)
	}
	for _, r := range m.ofKind("r") {
		for num, c := range r.attrs {
			if c.NotNull {
				name := strconv.Itoa(int(r.nsp)) + "_" + strconv.Itoa(int(r.oid)) + "_" + strconv.Itoa(num) + "_not_null"
				out = append(out, infoConstraint{constraintRow: constraintRow{name: name, kind: 'c', table: r}, typ: "CHECK",
					clause: c.Name + " IS NOT NULL", schema: r.schema})
			}
		}
	}
	return out
}

func tableConstraints(m *model, e Env, f *filler) {
	cs := m.infoConstraints()
	f.n = len(cs)
	f.all(e.Database(), "constraint_catalog", "table_catalog")
	f.text("constraint_schema", func(i int) string { return cs[i].schema })
	f.text("constraint_name", func(i int) string { return cs[i].name })
	f.same("table_schema", "constraint_schema")
	f.text("table_name", func(i int) string { return cs[i].table.name })
	f.text("constraint_type", func(i int) string { return cs[i].typ })
	f.text("is_deferrable", func(i int) string { return yesNo(cs[i].foreign != nil && cs[i].foreign.Deferrable) })
	f.text("initially_deferred", func(i int) string { return yesNo(cs[i].foreign != nil && cs[i].foreign.Deferred) })
	f.all("YES", "enforced")
	f.some("nulls_distinct", func(i int) string {
		if cs[i].kind == 'u' {
			return yesNo(!cs[i].index.nullsNotDistinct())
		}
		return ""
	})
}

func checkConstraints(m *model, e Env, f *filler) {
	cs := slices.DeleteFunc(m.infoConstraints(), func(c infoConstraint) bool { return c.clause == "" })
	for _, c := range m.domainConstraints() {
		cs = append(cs, infoConstraint{constraintRow: c, clause: checkClause(&c), schema: c.domain.Schema})
	}
	f.n = len(cs)
	f.all(e.Database(), "constraint_catalog")
	f.text("constraint_schema", func(i int) string { return cs[i].schema })
	f.text("constraint_name", func(i int) string { return cs[i].name })
	f.text("check_clause", func(i int) string { return cs[i].clause })
}

// keyColumn is a column of a constraint.
type keyColumn struct {
	c     constraintRow
	table *rel
	col   int
	pos   int
}

func (f *filler) keyColumns(e Env, ks []keyColumn) {
	f.n = len(ks)
	f.all(e.Database(), "constraint_catalog", "table_catalog")
	f.text("constraint_schema", func(i int) string { return ks[i].c.table.schema })
	f.text("constraint_name", func(i int) string { return ks[i].c.name })
	f.text("table_schema", func(i int) string { return ks[i].table.schema })
	f.text("table_name", func(i int) string { return ks[i].table.name })
	f.text("column_name", func(i int) string { return ks[i].table.obj.Columns[ks[i].col].Name })
}

func keyColumns(m *model, e Env, f *filler) {
	var ks []keyColumn
	for _, c := range m.constraints() {
		if c.kind == 'c' {
			continue
		}
		for pos, k := range c.key {
			ks = append(ks, keyColumn{c, c.table, k, pos})
		}
	}
	f.keyColumns(e, ks)
	f.int("ordinal_position", func(i int) int64 { return int64(ks[i].pos) + 1 })
	f.number("position_in_unique_constraint", func(i int) int64 {
		c := ks[i].c
		if c.foreign == nil || c.index == nil {
			return -1
		}
		return int64(slices.Index(c.index.key, c.foreign.RefColumns[ks[i].pos])) + 1
	})
}

// used are the table and the columns that a constraint stands for: of a foreign
// key, those that it refers to.
func (c *constraintRow) used() (*rel, []int) {
	if c.foreign != nil {
		return c.ref, c.foreign.RefColumns
	}
	return c.table, c.key
}

func constraintColumns(m *model, e Env, f *filler) {
	var ks []keyColumn
	for _, c := range m.constraints() {
		t, cols := c.used()
		for _, k := range cols {
			ks = append(ks, keyColumn{c: c, table: t, col: k})
		}
	}
	f.keyColumns(e, ks)
}

func constraintTables(m *model, e Env, f *filler) {
	cs := slices.DeleteFunc(m.constraints(), func(c constraintRow) bool { return c.kind == 'c' })
	f.n = len(cs)
	f.all(e.Database(), "constraint_catalog", "table_catalog")
	table := func(i int) *rel { t, _ := cs[i].used(); return t }
	f.text("table_schema", func(i int) string { return table(i).schema })
	f.text("table_name", func(i int) string { return table(i).name })
	f.text("constraint_schema", func(i int) string { return cs[i].table.schema })
	f.text("constraint_name", func(i int) string { return cs[i].name })
}

func referentialConstraints(m *model, e Env, f *filler) {
	var cs []constraintRow
	for _, c := range m.constraints() {
		if c.kind == 'f' {
			cs = append(cs, c)
		}
	}
	f.n = len(cs)
	f.all(e.Database(), "constraint_catalog", "unique_constraint_catalog")
	f.text("constraint_schema", func(i int) string { return cs[i].table.schema })
	f.text("constraint_name", func(i int) string { return cs[i].name })
	f.text("unique_constraint_schema", func(i int) string { return cs[i].ref.schema })
	f.some("unique_constraint_name", func(i int) string {
		if cs[i].index == nil {
			return ""
		}
		return cs[i].index.name
	})
	f.text("match_option", func(i int) string {
		if cs[i].foreign.MatchFull {
			return "FULL"
		}
		return "NONE"
	})
	rule := func(action string) string {
		if action == "" {
			return "NO ACTION"
		}
		return strings.ToUpper(action)
	}
	f.text("update_rule", func(i int) string { return rule(cs[i].foreign.OnUpdate) })
	f.text("delete_rule", func(i int) string { return rule(cs[i].foreign.OnDelete) })
}

// infoDomainConstraints is information_schema.domain_constraints.
func infoDomainConstraints(m *model, e Env, f *filler) {
	cs := m.domainConstraints()
	f.n = len(cs)
	f.all(e.Database(), "constraint_catalog", "domain_catalog")
	f.text("constraint_schema", func(i int) string { return cs[i].domain.Schema })
	f.text("constraint_name", func(i int) string { return cs[i].name })
	f.same("domain_schema", "constraint_schema")
	f.text("domain_name", func(i int) string { return cs[i].domain.Name })
	f.all("NO", "is_deferrable", "initially_deferred")
}
