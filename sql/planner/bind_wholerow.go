package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// wholeRow is the row of a relation as one value. A function's result of one
// column is that column.
func (b *binder) wholeRow(s *scope, e *entry, depth, pos int) expr.Expr {
	if t := b.ctx.trace; t != nil {
		t.ref = nil
	}
	var fields []expr.Expr
	var names []string
	var there expr.Expr // a column that is NULL only where an outer join has no row
	for i := range e.columns {
		c := &e.columns[i]
		if c.hidden && !(e.nullable && there == nil && c.notNull) {
			continue
		}
		x := b.columnAt(s, match{e, c, depth}, pos)
		if there == nil && c.notNull {
			there = x
		}
		if !c.hidden {
			fields, names = append(fields, x), append(names, c.name)
		}
	}
	if len(fields) == 1 && e.value {
		return fields[0]
	}
	row := expr.NewNamedRow(fields, names)
	if e.row != 0 { // an alias for columns does not change their names in the type
		if typed := types.NamesOf(e.row); len(typed) == len(names) {
			names = typed
		}
		row = expr.NewTypedRow(fields, names, e.row)
	}
	row = b.withShape(row)
	if !e.nullable || there == nil {
		return row
	}
	typ := row.Type()
	whole := &expr.Case{Whens: []expr.When{{Cond: expr.NewIsNull(there, false), Then: nullConst(typ)}}, Else: row, Typ: typ}
	if b.extended == nil {
		b.extended = map[expr.Expr]expr.Expr{}
	}
	b.extended[whole] = row
	return whole
}

// outerRow is the row of a relation that an outer join may have no row of: its
// fields are NULL then, as those of no row are.
func (b *binder) outerRow(e expr.Expr) expr.Expr {
	if row := b.extended[e]; row != nil {
		return row
	}
	return e
}

// presence gives the rows of a side of an outer join a column that tells whether they
// are there, if the whole row of one that has no such column may be asked for.
func (b *binder) presence(side *fromItem) {
	at := -1
	for _, e := range side.entries {
		if slices.ContainsFunc(e.columns, func(c entryColumn) bool { return c.notNull }) || !mentioned(b.src.text, e.name) {
			continue
		}
		if at < 0 {
			at = plan.Arity(side.rel)
			side.rel = extend(side.rel, []expr.Expr{boolConst(true)}, []plan.Column{{Name: "present", Type: types.Bool, NotNull: true}})
		}
		e.columns = append(e.columns, entryColumn{index: at, typ: types.Bool, hidden: true, merged: true, notNull: true})
	}
}

// mentioned says whether a text has a name more than once where it does not qualify
// a column.
func mentioned(text, name string) bool {
	text, name = strings.ToLower(text), strings.ToLower(name)
	word := func(i int) bool {
		return i >= 0 && i < len(text) && (isLetter(text[i]) || text[i] == '_' || text[i] >= '0' && text[i] <= '9')
	}
	n := 0
	for i := 0; name != "" && n < 2; {
		at := strings.Index(text[i:], name)
		if at < 0 {
			break
		}
		i += at + len(name)
		rest := strings.TrimLeft(text[i:], "\" ")
		if !word(i-len(name)-1) && !word(i) && (!strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, ".*")) {
			n++
		}
	}
	return n > 1
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 0x80 }

// nullable notes that an outer join puts NULLs for the rows of relations.
func nullable(es []*entry) {
	for _, e := range es {
		e.nullable = !e.joined // that is a row made of columns in any case
	}
}

// wholeRowStar is `t.*` inside of an expression: the whole row.
func (b *binder) wholeRowStar(s *scope, q []string, pos int) (expr.Expr, error) {
	if len(q) == 0 {
		return nil, pgerror.New(pgerror.SyntaxError, "row expansion via \"*\" is not supported here").At(pos)
	}
	e, depth, err := b.findEntry(s, q, pos)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, b.missingEntry(s, q, pos)
	}
	return b.wholeRow(s, e, depth, pos), nil
}

// column binds a column; `t.f` is also the call of a function with the row of t.
func (x exprBinder) column(ref *pg.ColumnRef) (expr.Expr, error) {
	e, err := x.columnRef(x.scope, ref)
	if err == nil {
		return e, nil
	}
	if a := x.namedArgument(ref); a != nil {
		return a, nil
	}
	n := len(ref.Fields) - 1
	if n < 1 || pgerror.As(err).Code != pgerror.UndefinedColumn || ref.Fields[n].GetString_() == nil {
		return nil, err
	}
	pos := x.pos(ref.Location)
	of, depth, e2 := x.findEntry(x.scope, listNames(ref.Fields[:n]), pos)
	if e2 != nil || of == nil {
		return nil, err
	}
	if call := x.attributeCall(x.wholeRow(x.scope, of, depth, pos), ref.Fields[n], ref.Location); call != nil {
		return call, nil
	}
	return nil, err
}

// attributeCall is the call of a function with a row, written like one of its
// fields; nil if there is no such function.
func (x exprBinder) attributeCall(row expr.Expr, name *pg.Node, loc int32) expr.Expr {
	if t := row.Type().OID; t != types.OIDRecord && !t.IsComposite() {
		return nil
	}
	arg := &pg.Node{Node: &pg.Node_ParamRef{ParamRef: &pg.ParamRef{Location: loc}}}
	if x.given == nil {
		x.given = map[*pg.Node]expr.Expr{}
	}
	x.given[arg] = row
	defer delete(x.given, arg)
	e, err := x.anyCall(&pg.FuncCall{Funcname: []*pg.Node{name}, Args: []*pg.Node{arg}, Funcformat: pg.CoercionForm_COERCE_EXPLICIT_CALL, Location: loc})
	if err != nil {
		return nil
	}
	return e
}

// funcCall binds a call; `a(t)` is also the field a of a row.
func (x exprBinder) funcCall(f *pg.FuncCall) (expr.Expr, error) {
	e, err := x.anyCall(f)
	if err == nil || len(f.Args) != 1 || len(f.Funcname) != 1 || pgerror.As(err).Code != pgerror.UndefinedFunction ||
		f.AggStar || f.AggDistinct || f.FuncVariadic || f.AggFilter != nil || f.Over != nil || f.AggOrder != nil {
		return e, err
	}
	arg, e2 := x.expr(f.Args[0])
	if e2 != nil {
		return nil, err
	}
	fields := x.shapeOf(arg)
	if i := slices.IndexFunc(fields, func(c types.Field) bool { return c.Name == f.Funcname[0].GetString_().GetSval() }); i >= 0 {
		return x.field(arg, fields, i, x.pos(f.Location)), nil
	}
	return nil, err
}
