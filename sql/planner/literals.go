package planner

import (
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// fixedLiterals are the dates and times among the literals of a text that are to be
// written otherwise, by the bytes at which they begin.
type fixedLiterals struct {
	text  string
	edits map[int]edit
}

// note adds the literal x if what it means depends on the session: it is written so
// that it means the same to all of them.
func (f *fixedLiterals) note(x expr.Expr, session *expr.Context) {
	c, ok := x.(*expr.Call)
	if !ok || !c.Fn.Literal || !expr.TimedLiteral(c) {
		return
	}
	lit, ok := c.Args[0].(*expr.Const)
	if !ok {
		return
	}
	at, quoted := byteOf(f.text, lit.Pos), parser.QuoteString(string(lit.Val.Bytes(0)))
	if at < 0 || !strings.HasPrefix(f.text[at:], quoted) {
		return
	}
	k, err := expr.EvalConst(c, session)
	if err != nil {
		return // it is told when the value is needed
	}
	s := parser.QuoteString(string(types.AppendText(nil, c.Typ, k.Val, 0, &types.Options{Location: session.Location})))
	if e, ok := f.edits[at]; ok && e.new != s {
		s = quoted // read twice, as different types
	}
	f.edits[at] = edit{at, at + len(quoted), s}
}

// byteOf is where the character at 1-based position pos begins, -1 if there is none.
func byteOf(text string, pos int) int {
	if pos < 1 {
		return -1
	}
	for at := range text {
		if pos--; pos == 0 {
			return at
		}
	}
	return -1
}

// FixLiterals writes the dates and times in a qualified query, of which bound is the
// plan, so that they mean to every session what they mean to this one: PostgreSQL reads
// literals when a view is made. It binds the query anew if there are any.
func FixLiterals(ctx *Context, session *expr.Context, sql string, bound *Query) (*Query, string, error) {
	found := false
	var failed error
	eachExpr(bound.Rel, func(x expr.Expr) {
		if c, ok := x.(*expr.Call); ok && c.Fn.Literal && expr.TimedLiteral(c) {
			found = true
			if failed == nil {
				_, failed = expr.EvalConst(c, session)
				if failed != nil {
					failed = pgerror.As(failed).At(c.Pos)
				}
			}
		}
	})
	if failed != nil {
		return nil, "", failed
	}
	if !found {
		return bound, sql, nil
	}
	again, err := bindText(ctx, sql)
	if err != nil {
		return bound, sql, nil // such that it is not the same by itself
	}
	f := &fixedLiterals{text: sql, edits: map[int]edit{}}
	eachExpr(again.Rel, func(x expr.Expr) { f.note(x, session) })
	if sql, err = applyEdits(sql, 0, f.list()); err != nil {
		return nil, "", err
	}
	again, err = bindText(ctx, sql)
	return again, sql, err
}

func bindText(ctx *Context, sql string) (*Query, error) {
	q, err := parser.ParseQuery(sql)
	if err != nil {
		return nil, err
	}
	return BindQuery(ctx, sql, &q)
}

func (f *fixedLiterals) list() []edit {
	var out []edit
	for _, e := range f.edits {
		out = append(out, e)
	}
	return out
}

// FixExpr is FixLiterals for an expression of type typ of the definition of table.
func FixExpr(ctx *Context, text string, table *catalog.Object, typ types.Type) string {
	e, err := parser.ParseExpr(text)
	if err != nil {
		return text
	}
	v, err := BindExpr(ctx, text, &e, table, "expressions", typ)
	if err != nil {
		return text
	}
	f := &fixedLiterals{text: text, edits: map[int]edit{}}
	expr.Walk(v, func(x expr.Expr) bool { f.note(x, ctx.Session); return true })
	if out, err := applyEdits(text, 0, f.list()); err == nil {
		return out
	}
	return text
}

// notePrecision tells that a precision of fractions of seconds is more than there is.
func (b *binder) notePrecision(o types.OID, precision int32, pos int) {
	const most = 6
	if b.ctx.Session == nil || b.ctx.Session.Notice == nil || precision <= most {
		return
	}
	name, zone := "", ""
	switch o {
	case types.OIDTimeTZ:
		name, zone = "TIME", " WITH TIME ZONE"
	case types.OIDTime:
		name = "TIME"
	case types.OIDTimestampTZ:
		name, zone = "TIMESTAMP", " WITH TIME ZONE"
	case types.OIDTimestamp:
		name = "TIMESTAMP"
	case types.OIDInterval:
		if precision >= 0x7fff { // of a range of fields alone
			return
		}
		name = "INTERVAL"
	default:
		return
	}
	e := pgerror.New(pgerror.InvalidParameterValue, "%s(%d)%s precision reduced to maximum allowed, %d", name, precision, zone, most).At(pos)
	e.Severity = "WARNING"
	b.ctx.Session.Notice(pos, e)
}
