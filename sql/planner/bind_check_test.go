package planner

import (
	"fmt"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// validate panics unless every column reference of a bound plan is in range
// and has the type of what it refers to. outer are the rows around, the
// innermost last.
func validate(r plan.Rel, outer [][]plan.Column) {
	in := inputColumns(r)
	plan.Exprs(r, func(e expr.Expr) { validateExpr(e, in, outer) })
	switch r := r.(type) {
	case *plan.Join:
		validate(r.Left, outer)
		if r.Lateral {
			outer = append(outer[:len(outer):len(outer)], r.Left.Columns())
		}
		validate(r.Right, outer)
		return
	case *plan.Project:
		validateTypes(r.Exprs, r.Cols)
	case *plan.SetOp:
		for _, i := range r.Inputs {
			for c, col := range i.Columns() {
				if col.Type.OID != r.Cols[c].Type.OID {
					panic(fmt.Sprintf("set operation column %d is %s in an input and %s overall", c, col.Type, r.Cols[c].Type))
				}
			}
		}
	case *plan.Aggregate:
		validateTypes(r.GroupBy, r.Cols)
		want := len(r.GroupBy) + len(r.Aggs)
		if r.GroupingSets != nil {
			want++
		}
		if len(r.Cols) != want {
			panic("aggregate columns do not match")
		}
	case *plan.FlatMap:
		for i, c := range in {
			if r.Cols[i].Type != c.Type {
				panic("flat map does not pass its input on")
			}
		}
	case *plan.Get:
		if len(r.Cols) == 0 {
			panic("table without columns")
		}
	}
	for _, c := range r.Columns() {
		if c.Type.OID == types.OIDUnknown {
			panic(fmt.Sprintf("column %s of unknown type in %s", c.Name, plan.Describe(r)))
		}
	}
	plan.Children(r, func(c plan.Rel) { validate(c, outer) })
}

func validateTypes(es []expr.Expr, cols []plan.Column) {
	for i, e := range es {
		if e.Type() != cols[i].Type {
			panic(fmt.Sprintf("expression %d has type %s, its column %s", i, e.Type(), cols[i].Type))
		}
	}
}

// inputColumns is the row that the expressions of a node are over.
func inputColumns(r plan.Rel) []plan.Column {
	if j, ok := r.(*plan.Join); ok {
		return append(append([]plan.Column{}, j.Left.Columns()...), j.Right.Columns()...)
	}
	if in := plan.Input(r); in != nil {
		return in.Columns()
	}
	return nil
}

func validateExpr(e expr.Expr, in []plan.Column, outer [][]plan.Column) {
	check := func(what string, index int, typ types.Type, cols []plan.Column) {
		if index >= len(cols) || cols[index].Type != typ {
			panic(fmt.Sprintf("%s %d of type %s refers to %v", what, index, typ, cols))
		}
	}
	switch e := e.(type) {
	case *expr.Column:
		check("column", e.Index, e.Typ, in)
	case *expr.OuterColumn:
		if e.Depth > len(outer) {
			panic(fmt.Sprintf("outer column of depth %d in %d scopes", e.Depth, len(outer)))
		}
		check("outer column", e.Index, e.Typ, outer[len(outer)-e.Depth])
	case *expr.Subquery:
		inner := append(outer[:len(outer):len(outer)], in)
		rel := e.Rel.(plan.Rel)
		validate(rel, inner)
		if e.Test != nil {
			validateExpr(e.Test, rel.Columns(), inner)
		}
		return
	}
	expr.Children(e, func(c expr.Expr) { validateExpr(c, in, outer) })
}
