package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/streamdb/streamdb/sql/expr"
)

// Relations have no order, but functions and VALUES give their rows in one, and who
// collects these in an array or a text counts on it: array_agg(x) FROM unnest(a) x,
// ARRAY(SELECT f(x) FROM unnest(a) x). So where an aggregate that collects, or ARRAY(…),
// says nothing of an order, the rows of functions are numbered and ordered by that.

// collectsRows reports whether a query calls an aggregate whose result depends on the
// order of rows, without saying which.
func collectsRows(s *pg.SelectStmt) bool {
	found := false
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		switch n := m.Interface().(type) {
		case *pg.SubLink:
			return
		case *pg.FuncCall:
			found = found || len(n.AggOrder) == 0 && expr.Collects(n.Funcname[len(n.Funcname)-1].GetString_().GetSval())
		case *pg.JsonArrayAgg, *pg.JsonObjectAgg:
			found = true
		}
		rangeMessages(m, visit)
	}
	for _, list := range [][]*pg.Node{s.TargetList, {s.HavingClause}, s.SortClause} {
		for _, n := range list {
			visit(n.ProtoReflect())
		}
	}
	return found
}

// naturalOrder orders the query as its functions give its rows.
func (sel *selectState) naturalOrder() {
	for _, o := range sel.inputOrder {
		sel.order = append(sel.order, sortItem{item: len(sel.items), desc: o.Desc, nullsFirst: o.NullsFirst})
		sel.items = append(sel.items, selectItem{expr: o.Expr, name: "ordinality", junk: true})
	}
}
