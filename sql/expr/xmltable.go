package expr

import (
	"encoding/json"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
	"github.com/streamdb/streamdb/sql/xml"
	"github.com/streamdb/streamdb/sql/xml/xpath"
)

// XMLTablePlan is what XMLTABLE makes of a document: its namespaces' prefixes
// (nil: the default), and its columns.
type XMLTablePlan struct {
	Spaces  []*string        `json:"spaces,omitempty"`
	Columns []XMLTableColumn `json:"columns"`
}

// XMLTableColumn is a column: of the numbers of the rows, or of what its path,
// else its name, finds.
type XMLTableColumn struct {
	Name    string     `json:"name"`
	Type    types.Type `json:"type"`
	Ordinal bool       `json:"ordinal,omitempty"`
	Path    bool       `json:"path,omitempty"`
}

// Const is the plan as an argument of XMLTable.
func (p *XMLTablePlan) Const() *Const {
	b := columnar.NewBuilder(columnar.KindBytes, 1)
	s, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and lists of them
	}
	b.Bytes(s)
	return &Const{Val: b.Build(), Typ: types.Text}
}

// XMLTable is the function behind XMLTABLE: of a document, a plan, the path of
// the rows, the URIs of the namespaces, and the paths of the columns that have
// one. It gives the columns.
var XMLTable = &TableFunction{Name: "xmltable", Volatility: Stable, Eval: xmlTableRows}

// xmlTable is a plan made ready.
type xmlTable struct {
	text  string
	plan  XMLTablePlan
	paths xpaths
}

func (x *Eval) xmlTable(text string) (*xmlTable, error) {
	if t := x.xmlPlan; t != nil && t.text == text {
		return t, nil
	}
	t := &xmlTable{text: text}
	if err := json.Unmarshal([]byte(text), &t.plan); err != nil {
		return nil, err
	}
	x.xmlPlan = t
	return t, nil
}

func xmlTableRows(x *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	a := Args(args)
	if a.Null(0, i) {
		return 0, nil
	}
	t, err := x.xmlTable(string(a.Bytes(1, i)))
	if err != nil {
		return 0, err
	}
	rows, perr := t.rows(x, a, i, out)
	if perr != nil {
		return 0, perr
	}
	return rows, nil
}

// rows appends the rows of the document of row i.
func (t *xmlTable) rows(x *Eval, a Args, i int, out []*columnar.Builder) (int, *pgerror.Error) {
	doc, err := t.paths.document(xml.AppendOutput(nil, a.Bytes(0, i)))
	if err != nil {
		return 0, err
	}
	spaces := map[string]string{}
	next := 3
	for _, prefix := range t.plan.Spaces {
		switch {
		case a.Null(next, i):
			return 0, pgerror.New(pgerror.NullValueNotAllowed, "namespace URI must not be null")
		case prefix == nil:
			return 0, pgerror.New(pgerror.FeatureNotSupported, "DEFAULT namespace is not supported")
		}
		if err := addSpace(spaces, *prefix, string(a.Bytes(next, i))); err != nil {
			return 0, err
		}
		next++
	}
	if a.Null(2, i) {
		return 0, pgerror.New(pgerror.NullValueNotAllowed, "row filter expression must not be null")
	}
	if len(a.Bytes(2, i)) == 0 {
		return 0, pgerror.New(pgerror.DataException, "row path filter must not be empty string")
	}
	rows, err := t.paths.expr(a.Bytes(2, i), pgerror.SyntaxError)
	if err != nil {
		return 0, err
	}
	cols, err := t.columns(a, i, next)
	if err != nil {
		return 0, err
	}
	found, err := evalXPath(rows, doc, spaces)
	if err != nil || found.Kind != xpath.Nodes {
		return 0, err
	}
	for k, n := range found.Nodes {
		for c, e := range cols {
			if e == nil {
				out[c].Int32(int32(k + 1))
				continue
			}
			v, err := evalXPath(e, n, spaces)
			if err == nil {
				err = xmlCell(x, t.plan.Columns[c].Type, v, out[c])
			}
			if err != nil {
				return 0, err
			}
		}
	}
	return len(found.Nodes), nil
}

// columns are the paths of the columns, nil for that of the numbers. Those that
// are given are arguments from next on.
func (t *xmlTable) columns(a Args, i, next int) ([]*xpath.Expr, *pgerror.Error) {
	cols := make([]*xpath.Expr, len(t.plan.Columns))
	for k, c := range t.plan.Columns {
		if c.Ordinal {
			continue
		}
		path := []byte(c.Name)
		if c.Path {
			if a.Null(next, i) {
				return nil, pgerror.New(pgerror.NullValueNotAllowed, "column filter expression must not be null").
					WithDetail("Filter for column \"%s\" is null.", c.Name)
			}
			path = a.Bytes(next, i)
			next++
		}
		if len(path) == 0 {
			return nil, pgerror.New(pgerror.DataException, "column path filter must not be empty string")
		}
		var err *pgerror.Error
		if cols[k], err = t.paths.expr(path, pgerror.DataException); err != nil {
			return nil, err
		}
	}
	return cols, nil
}

// xmlCell appends what a column's path found as a value of the column's type.
func xmlCell(x *Eval, t types.Type, v xpath.Value, out *columnar.Builder) *pgerror.Error {
	isXML := t.Storage().OID == types.OIDXML && t.OID < types.FirstUser
	var s []byte
	switch v.Kind {
	case xpath.Nodes:
		switch n := len(v.Nodes); {
		case n == 0:
			out.Null()
			return nil
		case isXML:
			for _, n := range v.Nodes {
				var err *pgerror.Error
				if s, err = appendXMLNode(s, n); err != nil {
					return err
				}
			}
		case n > 1:
			return pgerror.New(pgerror.CardinalityViolation, "more than one value returned by column XPath expression")
		default:
			s = []byte(v.Nodes[0].Text())
		}
	case xpath.String:
		if s = []byte(v.Str); isXML {
			s = xml.AppendEscaped(nil, v.Str)
		}
	case xpath.Boolean:
		if t.OID.Category() == 'N' {
			v = xpath.Value{Kind: xpath.Number, Num: v.Number()}
		}
		s = []byte(v.Text())
	default:
		s = []byte(v.Text())
	}
	if err := types.ParseTextBytes(out, t, s, x.options()); err != nil {
		return pgerror.As(err)
	}
	return nil
}

// NewNotNull makes the check that a column of a table function is not NULL.
func NewNotNull(e Expr, column string) Expr {
	b := columnar.NewBuilder(columnar.KindBytes, 1)
	b.String(column)
	t := e.Type()
	fn := makeOnce(fnKey("not_null", t.OID), func() *Function {
		return &Function{Name: "not_null", Internal: true, Args: []types.Type{types.Of(t.OID), types.Text}, Ret: types.Of(t.OID), Consts: ScalarConsts,
			Eval: RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
				if a.Null(0, i) {
					return pgerror.New(pgerror.NullValueNotAllowed, "null is not allowed in column \"%s\"", a.Bytes(1, i))
				}
				v, row := a.row(0, i)
				out.AppendFrom(v, row)
				return nil
			})}
	})
	return &Call{Fn: fn, Args: []Expr{e, &Const{Val: b.Build(), Typ: types.Text}}, Typ: t}
}
