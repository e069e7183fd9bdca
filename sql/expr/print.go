package expr

import (
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// String prints e as SQL, as EXPLAIN and pg_get_viewdef do. column names a
// column reference; nil uses Column.Name, or #index.
func String(e Expr, column func(c *Column) string) string {
	p := printer{column: column}
	p.expr(e)
	return p.String()
}

type printer struct {
	strings.Builder
	column func(c *Column) string
}

func (p *printer) list(es []Expr, sep string) {
	for i, e := range es {
		if i > 0 {
			p.WriteString(sep)
		}
		p.expr(e)
	}
}

func (p *printer) expr(e Expr) {
	switch e := e.(type) {
	case *Column:
		p.col(e)
	case *OuterColumn:
		p.WriteString(strings.Repeat("^", e.Depth))
		if e.Name != "" {
			p.WriteString(QuoteIdent(e.Name))
		} else {
			p.WriteString("#" + strconv.Itoa(e.Index))
		}
	case *Const:
		p.constant(e)
	case *Param:
		p.WriteString("$" + strconv.Itoa(e.Index))
	case *Call:
		p.call(e)
	case *Logic:
		sep := " OR "
		if e.And {
			sep = " AND "
		}
		p.WriteByte('(')
		p.list(e.Args, sep)
		p.WriteByte(')')
	case *Not:
		p.WriteString("(NOT ")
		p.expr(e.Arg)
		p.WriteByte(')')
	case *IsNull:
		p.WriteByte('(')
		p.expr(e.Arg)
		if e.Not {
			p.WriteString(" IS NOT NULL)")
		} else {
			p.WriteString(" IS NULL)")
		}
	case *Case:
		p.caseExpr(e)
	case *Coalesce:
		p.WriteString("COALESCE(")
		p.list(e.Args, ", ")
		p.WriteByte(')')
	case *ArrayCtor:
		p.WriteString("ARRAY[")
		p.list(e.Elems, ", ")
		p.WriteByte(']')
	case *Row:
		p.WriteString("ROW(")
		p.list(e.Fields, ", ")
		p.WriteByte(')')
	case *InList:
		p.WriteByte('(')
		p.expr(e.Arg)
		p.WriteString(" IN (")
		p.list(e.List, ", ")
		p.WriteString("))")
	case *ArrayOp:
		p.WriteByte('(')
		p.expr(e.Left)
		p.WriteString(" " + e.Op.Name)
		if e.All {
			p.WriteString(" ALL (")
		} else {
			p.WriteString(" ANY (")
		}
		p.expr(e.Right)
		p.WriteString("))")
	case *JSONExpr:
		p.jsonQuery(e)
	case *Subquery:
		p.subquery(e)
	}
}

func (p *printer) col(c *Column) {
	switch {
	case p.column != nil:
		p.WriteString(p.column(c))
	case c.Name != "":
		p.WriteString(QuoteIdent(c.Name))
	default:
		p.WriteString("#" + strconv.Itoa(c.Index))
	}
}

// constant prints a literal so that reading it gives the same type: plain where
// the text alone has that type, else quoted with a cast.
func (p *printer) constant(c *Const) {
	if c.Val.Null(0) {
		p.WriteString("NULL")
		if c.Typ.OID != types.OIDUnknown && c.Typ.OID != 0 {
			p.WriteString("::" + c.Typ.String())
		}
		return
	}
	typ := c.Typ
	if typ.OID == types.OIDUnknown {
		typ = types.Text
	}
	s := string(types.AppendText(nil, typ, c.Val, 0, nil))
	switch c.Typ.OID {
	case types.OIDBool:
		p.WriteString(map[bool]string{true: "true", false: "false"}[c.Val.Bools()[0]])
		return
	case types.OIDInt4:
		if s[0] != '-' {
			p.WriteString(s)
			return
		}
	case types.OIDNumeric:
		if strings.Trim(s, "0123456789.") == "" && strings.Contains(s, ".") && c.Typ.Mod < 0 {
			p.WriteString(s)
			return
		}
	}
	p.WriteString(QuoteLiteral(s))
	if c.Typ.OID != types.OIDUnknown {
		p.WriteString("::" + c.Typ.String())
	}
}

func (p *printer) call(c *Call) {
	switch {
	case c.Cast:
		if inner, ok := c.Args[0].(*Call); ok && inner.Cast && inner.Typ.OID == c.Typ.OID && inner.Typ.Mod < 0 {
			// The length coercion of a cast: one cast with a modifier.
			p.expr(inner.Args[0])
		} else {
			p.expr(c.Args[0])
		}
		p.WriteString("::" + c.Typ.String())
	case c.Fn.Postfix:
		p.WriteByte('(')
		p.expr(c.Args[0])
		p.WriteString(" " + c.Fn.Name + ")")
	case c.Fn.Operator && len(c.Args) == 2:
		p.WriteByte('(')
		p.expr(c.Args[0])
		p.WriteString(" " + c.Fn.Name + " ")
		p.expr(c.Args[1])
		p.WriteByte(')')
	case c.Fn.Operator:
		p.WriteString("(" + c.Fn.Name + " ")
		p.expr(c.Args[0])
		p.WriteByte(')')
	case c.Fn.Lambda != nil:
		p.lambda(c)
	case c.Fn.Name == "subscript" || c.Fn.Name == "slice":
		p.subscript(c)
	default:
		p.WriteString(c.Fn.Name + "(")
		if last := len(c.Args) - 1; c.Variadic {
			p.list(c.Args[:last], ", ")
			if last > 0 {
				p.WriteString(", ")
			}
			p.WriteString("VARIADIC ")
			p.expr(c.Args[last])
		} else {
			p.list(c.Args, ", ")
		}
		p.WriteByte(')')
	}
}

func (p *printer) subscript(c *Call) {
	p.expr(c.Args[0])
	step := 1
	if c.Fn.Name == "slice" {
		step = 2
	}
	for i := 1; i < len(c.Args); i += step {
		p.WriteByte('[')
		for k, e := range c.Args[i : i+step] {
			if k == 1 {
				p.WriteByte(':')
			}
			if e != Expr(openBound) {
				p.expr(e)
			}
		}
		p.WriteByte(']')
	}
}

func (p *printer) caseExpr(e *Case) {
	p.WriteString("CASE")
	for _, w := range e.Whens {
		p.WriteString(" WHEN ")
		p.expr(w.Cond)
		p.WriteString(" THEN ")
		p.expr(w.Then)
	}
	if e.Else != nil {
		p.WriteString(" ELSE ")
		p.expr(e.Else)
	}
	p.WriteString(" END")
}

func (p *printer) subquery(e *Subquery) {
	names := [...]string{"", "SCALAR", "EXISTS", "ANY", "ALL", "ARRAY"}
	p.WriteString(names[e.Kind] + "(")
	if e.Test != nil {
		p.expr(e.Test)
		p.WriteString(" IN ")
	}
	p.WriteString("subquery)")
}

// QuoteLiteral quotes a string as a SQL literal.
func QuoteLiteral(s string) string {
	s = strings.ReplaceAll(s, "'", "''")
	if strings.Contains(s, `\`) {
		return "E'" + strings.ReplaceAll(s, `\`, `\\`) + "'"
	}
	return "'" + s + "'"
}

// QuoteIdent quotes an identifier if it is not plain lower case. Key words are
// for the caller to know.
func QuoteIdent(s string) string {
	plain := s != ""
	for i, c := range s {
		if !(c == '_' || c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '$')) {
			plain = false
		}
	}
	if plain {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// ValueText is the text form of a constant; null reports NULL.
func ValueText(c *Const, ctx *Context) (s string, null bool) {
	if c.Val.Null(0) {
		return "", true
	}
	return string(types.AppendText(nil, c.Typ, c.Val, 0, ctx.Options())), false
}

// ConstOf is the literal of value i of v.
func ConstOf(t types.Type, v *columnar.Vec, i int) *Const {
	b := columnar.NewBuilder(v.Kind(), 1)
	b.AppendFrom(v, i)
	return &Const{Val: b.Build(), Typ: t}
}

// lambda prints a call that applies a lambda.
func (p *printer) lambda(c *Call) {
	l := c.Fn.Lambda
	p.WriteString(c.Fn.Name + "(")
	p.expr(c.Args[0])
	p.WriteString(", |" + strings.Join(l.Params, ", ") + "| ")
	inner := printer{column: func(col *Column) string {
		if col.Index < len(l.Params) {
			return QuoteIdent(l.Params[col.Index])
		}
		return String(c.Args[1+col.Index-len(l.Params)], p.column)
	}}
	inner.expr(l.Body)
	p.WriteString(inner.String() + ")")
}
