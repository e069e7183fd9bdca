package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// refersTo reports whether a tree names a relation without a schema. It does
// not see that an inner WITH may hide the name, nor does PostgreSQL mind.
func refersTo(n *pg.Node, name string) bool {
	found := false
	walkTree(n.ProtoReflect(), func(m proto.Message) bool {
		if r, ok := m.(*pg.RangeVar); ok && r.Schemaname == "" && r.Relname == name {
			found = true
		}
		return !found
	})
	return found
}

// walkTree visits the messages of a tree, parents first; f returns false to stop.
func walkTree(m protoreflect.Message, f func(proto.Message) bool) bool {
	if !f(m.Interface()) {
		return false
	}
	going := true
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Kind() != protoreflect.MessageKind:
		case fd.IsList():
			l := v.List()
			for i := 0; i < l.Len() && going; i++ {
				going = walkTree(l.Get(i).Message(), f)
			}
		default:
			going = walkTree(v.Message(), f)
		}
		return going
	})
	return going
}

// recursionOrder sorts the items of WITH RECURSIVE so that each comes after
// those that it refers to.
func (b *binder) recursionOrder(ctes []*cte) ([]*cte, error) {
	var out []*cte
	state := map[*cte]int{}
	var visit func(c *cte) error
	visit = func(c *cte) error {
		switch state[c] {
		case 1:
			return pgerror.New(pgerror.FeatureNotSupported, "mutual recursion between WITH items is not implemented").At(b.pos(c.node.Location))
		case 2:
			return nil
		}
		state[c] = 1
		for _, d := range ctes {
			if d != c && refersTo(c.node.Ctequery, d.name) {
				if err := visit(d); err != nil {
					return err
				}
			}
		}
		state[c] = 2
		out = append(out, c)
		return nil
	}
	for _, c := range ctes {
		if err := visit(c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// recursiveCTE binds `non-recursive term UNION [ALL] recursive term`.
func (b *binder) recursiveCTE(c *cte, parent *scope, s *cteScope) error {
	q := c.node.Ctequery.GetSelectStmt()
	pos := b.pos(c.node.Location)
	if q.Op != pg.SetOperation_SETOP_UNION {
		return pgerror.New(pgerror.InvalidRecursion,
			"recursive query \"%s\" does not have the form non-recursive-term UNION [ALL] recursive-term", c.name).At(pos)
	}
	if err := b.plainUnion(q); err != nil {
		return err
	}
	if q.WithClause != nil {
		var err error
		if s, err = b.with(q.WithClause, parent, s); err != nil {
			return err
		}
	}
	c.state = cteFirst
	first, err := b.recursiveTerm(q.Larg, parent, s)
	if err != nil {
		return err
	}
	if err := resolveOutput(first); err != nil {
		return err
	}
	if err := b.checkRecursion(c, q.Rarg); err != nil {
		return err
	}
	c.cols = make([]outputColumn, len(first.cols))
	for i, col := range first.cols {
		c.cols[i].name, c.cols[i].domain = col.name, col.domain // they are no longer columns of a table
	}
	if err := c.rename(b); err != nil {
		return err
	}
	track, err := b.track(c, q, parent, s)
	if err != nil {
		return err
	}
	recursive := q.Rarg
	if track != nil {
		if first.rel, err = track.start(first.rel); err != nil {
			return err
		}
		if recursive, err = track.carry(q.Rarg); err != nil {
			return err
		}
	}
	b.nextID++
	c.recID = b.nextID
	c.recCols = append([]plan.Column(nil), first.rel.Columns()...)
	for i := range c.recCols {
		c.recCols[i].NotNull = false
		if i < len(c.cols) {
			c.recCols[i].Name = c.cols[i].name
		}
	}
	c.state = cteRecursing
	b.recursing[c.recID] = true
	step, err := b.recursiveTerm(recursive, parent, s)
	delete(b.recursing, c.recID)
	if err != nil {
		return err
	}
	value, err := b.recursiveUnion(c, first, step, q, track)
	if err != nil {
		return err
	}
	var body plan.Rel = &plan.LocalGet{ID: c.recID, Cols: c.recCols}
	if track != nil {
		body = track.shown(body)
	}
	r := &plan.Recursive{IDs: []int{c.recID}, Values: []plan.Rel{value}, Distinct: []bool{!q.All}, Body: body}
	b.workingTable(r, value.(*plan.SetOp))
	b.completeCTE(c, r)
	return nil
}

// workingTable makes a recursion over the last rows added of one whose step needs it.
func (b *binder) workingTable(r *plan.Recursive, value *plan.SetOp) {
	id, set := r.IDs[0], r.Distinct[0]
	var start, step []plan.Rel
	linear := true
	for _, in := range value.Inputs {
		if countLocal(in, id) == 0 {
			start = append(start, in)
			continue
		}
		step = append(step, in)
		linear = linear && b.linear(in, id, set)
	}
	if linear {
		return
	}
	together := func(rels []plan.Rel) plan.Rel {
		if len(rels) == 1 {
			return rels[0]
		}
		return &plan.SetOp{Kind: plan.Union, All: true, Inputs: rels, Cols: value.Cols}
	}
	b.nextID++
	r.IDs, r.Distinct, r.Working = []int{b.nextID, id}, []bool{set, set}, true
	r.Values = []plan.Rel{together(start), together(step)}
}

// linear reports whether what a recursive term makes of its rows is what it
// makes of some of them and of the others, so that it may be given all rows
// and not only the last ones. In a set, removing duplicates changes nothing.
func (b *binder) linear(r plan.Rel, id int, set bool) bool {
	if countLocal(r, id) == 0 {
		return true
	}
	switch r := r.(type) {
	case *plan.Distinct:
		if !set {
			return false
		}
	case *plan.SetOp:
		if r.Kind != plan.Union || !r.All && !set {
			return false
		}
	case *plan.TopK, *plan.Window, *plan.Aggregate, *plan.Assert:
		return false
	}
	ok := true
	plan.Children(r, func(c plan.Rel) { ok = ok && b.linear(c, id, set) })
	return ok
}

// plainUnion refuses the clauses that may not follow the UNION of a recursive query.
func (b *binder) plainUnion(q *pg.SelectStmt) error {
	switch {
	case len(q.SortClause) > 0:
		return notImplemented("ORDER BY").At(b.pos(nodeLocation(q.SortClause[0])))
	case q.LimitOffset != nil:
		return notImplemented("OFFSET").At(b.pos(nodeLocation(q.LimitOffset)))
	case q.LimitCount != nil:
		return notImplemented("LIMIT").At(b.pos(nodeLocation(q.LimitCount)))
	case len(q.LockingClause) > 0:
		return notImplemented("FOR UPDATE/SHARE")
	}
	return nil
}

func notImplemented(clause string) *pgerror.Error {
	return pgerror.New(pgerror.FeatureNotSupported, "%s in a recursive query is not implemented", clause)
}

// recursiveTerm binds one side of the UNION of a recursive query.
func (b *binder) recursiveTerm(s *pg.SelectStmt, parent *scope, ctes *cteScope) (*boundQuery, error) {
	q, err := b.query(s, parent, ctes, keepUnknown)
	if err != nil {
		return nil, err
	}
	return &boundQuery{rel: q.collection(), cols: q.cols}, nil
}

// recursiveUnion makes the body of the recursion. The types are those of the
// non-recursive term; the recursive term must agree.
func (b *binder) recursiveUnion(c *cte, first, step *boundQuery, q *pg.SelectStmt, track *tracking) (plan.Rel, error) {
	carried := 0
	if track != nil {
		carried = len(track.cols)
	}
	if len(first.cols) != len(step.cols)-carried {
		return nil, pgerror.New(pgerror.SyntaxError, "each UNION query must have the same number of columns").
			At(b.pos(firstTargetLocation(q.Rarg)))
	}
	before := first.rel.Columns()
	if track != nil {
		var err error
		if step.rel, err = track.next(step.rel); err != nil {
			return nil, err
		}
		for i := range carried { // combineSets goes by cols
			first.cols = append(first.cols[:len(first.cols):len(first.cols)], outputColumn{name: track.cols[i].Name})
		}
	}
	u, err := b.combineSets(plan.Union, q.All, "UNION", first, step)
	if err != nil {
		return nil, err
	}
	for i, col := range u.rel.Columns() {
		was, is := before[i].Type, col.Type
		if d := first.cols[i].domain; d != 0 {
			was = types.Of(d)
		}
		if d := u.cols[i].domain; d != 0 {
			is = types.Of(d)
		}
		if was.OID != is.OID || was.Mod != is.Mod {
			return nil, pgerror.New(pgerror.DatatypeMismatch,
				"recursive query \"%s\" column %d has type %s in non-recursive term but type %s overall",
				c.name, i+1, was, is).
				WithHint("Cast the output of the non-recursive term to the correct type.").
				At(b.pos(targetLocation(q.Larg, i)))
		}
	}
	s := u.rel.(*plan.SetOp)
	s.Cols = c.recCols
	return s, nil
}

func targetLocation(s *pg.SelectStmt, i int) int32 {
	for s.Larg != nil {
		s = s.Larg
	}
	if i < len(s.TargetList) {
		return nodeLocation(s.TargetList[i].GetResTarget().GetVal())
	}
	return -1
}

// checkRecursion refuses what SQL does not allow in a recursive term: the
// recursive reference in a subquery, on the nullable side of an outer join, in
// INTERSECT or EXCEPT, more than once, or under an aggregate.
func (b *binder) checkRecursion(c *cte, s *pg.SelectStmt) error {
	k := recursionCheck{b: b, name: c.name}
	k.query(s, "")
	return k.err
}

type recursionCheck struct {
	b     *binder
	name  string
	found int
	err   error
}

func (k *recursionCheck) fail(pos int32, format string, args ...any) {
	if k.err == nil {
		k.err = pgerror.New(pgerror.InvalidRecursion, format, args...).At(k.b.pos(pos))
	}
}

// query looks through a query of the recursive term. where says in what
// forbidden place it is, "" in none.
func (k *recursionCheck) query(s *pg.SelectStmt, where string) {
	switch s.Op {
	case pg.SetOperation_SETOP_INTERSECT, pg.SetOperation_SETOP_EXCEPT:
		side := "INTERSECT"
		if s.Op == pg.SetOperation_SETOP_EXCEPT {
			side = "EXCEPT"
		}
		k.query(s.Larg, where)
		k.query(s.Rarg, side)
		return
	case pg.SetOperation_SETOP_UNION:
		k.query(s.Larg, where)
		k.query(s.Rarg, where)
		return
	}
	before := k.found
	for _, n := range s.FromClause {
		k.from(n, where)
	}
	inSub := func(n proto.Message) {
		if n == nil {
			return
		}
		walkTree(n.ProtoReflect(), func(m proto.Message) bool {
			if l, ok := m.(*pg.SubLink); ok && refersTo(l.Subselect, k.name) {
				k.reference(refLocation(l.Subselect, k.name), "a subquery")
				return false
			}
			return k.err == nil
		})
	}
	for _, t := range s.TargetList {
		inSub(t)
	}
	if s.WhereClause != nil {
		inSub(s.WhereClause)
	}
	if k.found > before && k.err == nil {
		k.aggregates(s)
	}
}

// aggregates refuses an aggregate over the recursive reference.
func (k *recursionCheck) aggregates(s *pg.SelectStmt) {
	for _, t := range s.TargetList {
		walkTree(t.ProtoReflect(), func(m proto.Message) bool {
			switch m := m.(type) {
			case *pg.SubLink:
				return true
			case *pg.FuncCall:
				name := m.Funcname[len(m.Funcname)-1].GetString_().GetSval()
				if m.Over == nil && expr.IsAggregate(name) {
					k.fail(m.Location, "aggregate functions are not allowed in a recursive query's recursive term")
					return false
				}
			}
			return true
		})
	}
}

func (k *recursionCheck) from(n *pg.Node, where string) {
	switch n := n.GetNode().(type) {
	case *pg.Node_RangeVar:
		if n.RangeVar.Schemaname == "" && n.RangeVar.Relname == k.name {
			k.reference(n.RangeVar.Location, where)
		}
	case *pg.Node_RangeSubselect:
		k.query(n.RangeSubselect.Subquery.GetSelectStmt(), where)
	case *pg.Node_JoinExpr:
		l, r := where, where
		switch n.JoinExpr.Jointype {
		case pg.JoinType_JOIN_LEFT:
			r = "an outer join"
		case pg.JoinType_JOIN_RIGHT:
			l = "an outer join"
		case pg.JoinType_JOIN_FULL:
			l, r = "an outer join", "an outer join"
		}
		k.from(n.JoinExpr.Larg, l)
		k.from(n.JoinExpr.Rarg, r)
	}
}

func (k *recursionCheck) reference(loc int32, where string) {
	k.found++
	switch {
	case where != "":
		k.fail(loc, "recursive reference to query \"%s\" must not appear within %s", k.name, where)
	case k.found > 1:
		k.fail(loc, "recursive reference to query \"%s\" must not appear more than once", k.name)
	}
}

func refLocation(n *pg.Node, name string) int32 {
	loc := int32(-1)
	walkTree(n.ProtoReflect(), func(m proto.Message) bool {
		if r, ok := m.(*pg.RangeVar); ok && r.Schemaname == "" && r.Relname == name {
			loc = r.Location
			return false
		}
		return true
	})
	return loc
}
