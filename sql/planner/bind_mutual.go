package planner

import (
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// mutualRecursion binds the items of WITH MUTUALLY RECURSIVE: all are in reach
// of one another, with the columns that they declare, and are iterated from
// empty until nothing changes.
func (b *binder) mutualRecursion(s *cteScope, parent *scope) error {
	r := &plan.Recursive{}
	if limit := s.ctes[0].node.Ctecoltypmods; limit != nil {
		r.FailAtLimit = limit[0].GetInteger().GetIval() == parser.LimitFails
		r.Limit = int(limit[1].GetInteger().GetIval())
	}
	for _, c := range s.ctes {
		names := listNames(c.node.Aliascolnames)
		if len(names) != len(c.node.Ctecoltypes) {
			return pgerror.New(pgerror.SyntaxError, "WITH MUTUALLY RECURSIVE needs the columns of \"%s\" and their types", c.name).At(b.pos(c.node.Location))
		}
		for i, n := range names {
			typ, err := b.typeName(c.node.Ctecoltypes[i].GetTypeName())
			if err != nil {
				return err
			}
			c.recCols = append(c.recCols, plan.Column{Name: n, Type: typ})
			c.cols = append(c.cols, outputColumn{name: n})
		}
		b.nextID++
		c.recID, c.state = b.nextID, cteRecursing
		b.recursing[c.recID] = true
		r.IDs, r.Distinct = append(r.IDs, c.recID), append(r.Distinct, false)
	}
	for _, c := range s.ctes {
		q, err := b.query(c.node.Ctequery.GetSelectStmt(), parent, s, keepUnknown)
		if err != nil {
			return err
		}
		value, err := b.declared(c, q)
		if err != nil {
			return err
		}
		r.Values = append(r.Values, value)
	}
	for _, c := range s.ctes {
		delete(b.recursing, c.recID)
	}
	for i, c := range s.ctes {
		if !b.selfContained(r.Values[i]) {
			return pgerror.Unsupported("WITH MUTUALLY RECURSIVE that refers to columns around it").At(b.pos(c.node.Location))
		}
		c.state, c.rel = cteBound, &plan.LocalGet{ID: c.recID, Cols: c.recCols}
	}
	b.shared = append(b.shared, &sharedRel{recursion: r})
	return nil
}

// declared is the query of an item in the types of its declared columns.
func (b *binder) declared(c *cte, q *boundQuery) (plan.Rel, error) {
	rel := q.collection()
	if len(q.cols) != len(c.recCols) {
		return nil, pgerror.New(pgerror.InvalidColumnReference, "WITH query \"%s\" declared %d columns, but its query has %d",
			c.name, len(c.recCols), len(q.cols)).At(b.pos(c.node.Location))
	}
	in := rel.Columns()
	p := &plan.Project{Input: rel, Cols: c.recCols}
	for i, col := range c.recCols {
		ref := plan.RefTo(in, i)
		if !expr.CanCoerce(in[i].Type, col.Type, expr.CastAssignment) || in[i].Type.OID != types.OIDUnknown && !expr.CanCoerce(in[i].Type, col.Type, expr.CastImplicit) {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "WITH query \"%s\" declared column \"%s\" of type %s, but its query gives type %s",
				c.name, col.Name, col.Type, in[i].Type).At(b.pos(c.node.Location))
		}
		e, err := expr.Coerce(ref, col.Type, expr.CastAssignment, 0)
		if err != nil {
			return nil, err
		}
		p.Exprs = append(p.Exprs, e)
	}
	return p, nil
}
