package sqlsmith

import (
	"fmt"
	"slices"
	"strings"
)

// fromClause is a FROM clause whose columns are in scope until pop.
type fromClause struct {
	sql string
	pop func()
}

// from is a FROM clause.
func (g *Gen) from(depth int) fromClause {
	g.scopes = append(g.scopes, nil)
	top := len(g.scopes) - 1
	pop := func() { g.scopes = g.scopes[:top] }
	local := g.local
	g.local = false
	defer func() { g.local = local }()
	if g.pick(20) {
		return fromClause{"", pop}
	}
	parts := []string{g.joins(depth)}
	if depth > 0 && g.pick(8) {
		parts = append(parts, g.joins(depth-1))
	}
	return fromClause{" FROM " + strings.Join(parts, ", "), pop}
}

// joins is a tree of joins, a part of a FROM clause. Parts before it can be
// referred to laterally.
func (g *Gen) joins(depth int) string {
	top := len(g.scopes) - 1
	before := len(g.scopes[top])
	sql := g.item(depth, true)
	for range g.rng.IntN(3) {
		if depth < 0 {
			break
		}
		kind := g.choose(" JOIN ", " JOIN ", " LEFT JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ", " CROSS JOIN ")
		if kind == " CROSS JOIN " {
			if g.pick(2) {
				sql += kind + g.item(depth-1, true)
			}
			continue
		}
		n := len(g.scopes[top])
		it := g.item(depth-1, kind == " JOIN " || kind == " LEFT JOIN ")
		// The condition sees only what this tree joins.
		saved := g.scopes[top]
		g.scopes[top] = saved[before:]
		on := g.equi(saved[before:n], saved[n:])
		if kind != " FULL JOIN " && g.pick(3) {
			if g.pick(3) {
				on = g.cond(min(depth-1, 2))
			} else {
				on += " AND " + g.cond(min(depth-1, 2))
			}
		}
		g.scopes[top] = saved
		sql += kind + it + " ON " + on
	}
	return sql
}

// equi is an equality between columns of two lists.
func (g *Gen) equi(l, r scope) string {
	for range 5 {
		if len(l) == 0 || len(r) == 0 {
			break
		}
		c := l[g.rng.IntN(len(l))]
		if d := g.columnOf(r, c.typ); d != "" {
			return c.sql + " = " + d
		}
	}
	if c, d := g.columnOf(l, Int4), g.columnOf(r, Int4); c != "" && d != "" {
		return c + " = " + d
	}
	return g.choose("true", "1 = 1")
}

// item is a table, derived table or function, whose columns join the innermost scope.
func (g *Gen) item(depth int, lateral bool) string {
	g.alias++
	name := fmt.Sprintf("t%d", g.alias)
	top := len(g.scopes) - 1
	if g.slip() {
		return "nosuchtable " + name
	}
	add := func(cols []Column) {
		for _, c := range cols {
			g.scopes[top] = append(g.scopes[top], ref{name + "." + c.Name, c.Type})
		}
	}
	if len(g.ctes) > 0 && g.pick(3) {
		c := g.ctes[g.rng.IntN(len(g.ctes))]
		add(c.cols)
		return c.name + " " + name
	}
	if depth <= 0 || !g.pick(3) {
		t := g.Tables[g.rng.IntN(len(g.Tables))]
		if g.pick(6) {
			cols := slices.Clone(t.Columns)
			cols[0].Name = "k1"
			add(cols)
			return t.Name + " AS " + name + "(k1)"
		}
		add(t.Columns)
		return t.Name + " " + name
	}
	// Items of FROM see each other only if lateral.
	kept := g.scopes
	word := ""
	switch {
	case g.pick(3):
		s, cols := g.function(name, lateral)
		add(cols)
		return s
	case lateral && g.pick(2):
		word = "LATERAL "
	default:
		g.scopes = slices.Clone(kept[:top])
	}
	ts := g.types(1 + g.rng.IntN(3))
	var cols []Column
	for i, t := range ts {
		cols = append(cols, Column{Name: fmt.Sprintf("x%d", i), Type: t})
	}
	sql := word + "(" + g.query(depth-1, ts) + ") " + name + "(" + columnNames(cols) + ")"
	g.scopes = kept
	add(cols)
	return sql
}

// function is a table function.
func (g *Gen) function(name string, lateral bool) (sql string, cols []Column) {
	top := len(g.scopes) - 1
	kept := g.scopes[top]
	if !lateral {
		g.scopes[top] = nil
		defer func() { g.scopes[top] = kept }()
	}
	ord := g.pick(2)
	cols = []Column{{Name: "v", Type: Int4}}
	series := "generate_series(1, least(" + g.leaf(Int4) + ", 3))"
	unnest := "unnest(" + g.leaf(IntArray) + ")"
	switch g.rng.IntN(4) {
	case 0:
		sql = series
	case 1:
		sql = "ROWS FROM (" + series + ", " + unnest + ")"
		cols = append(cols, Column{Name: "u", Type: Int4})
	case 2:
		sql = "unnest(" + g.leaf(IntArray) + ", ARRAY['x', NULL])"
		cols = append(cols, Column{Name: "u", Type: Text})
	default:
		sql = unnest
	}
	if ord {
		sql += " WITH ORDINALITY"
		cols = append(cols, Column{Name: "o", Type: Int8})
	}
	return sql + " AS " + name + "(" + columnNames(cols) + ")", cols
}
