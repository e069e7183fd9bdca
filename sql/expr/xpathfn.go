package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
	"github.com/streamdb/streamdb/sql/xml"
	"github.com/streamdb/streamdb/sql/xml/xpath"
)

// xpaths keeps expressions by their texts while rows are evaluated, and the last
// document.
type xpaths struct {
	exprs map[string]*xpath.Expr
	text  string
	doc   *xml.Node
}

// maxXPaths bounds how many expressions are kept.
const maxXPaths = 256

// expr is the expression with that text; code is that of an error in it.
func (c *xpaths) expr(s []byte, code string) (*xpath.Expr, *pgerror.Error) {
	if e := c.exprs[string(s)]; e != nil {
		return e, nil
	}
	e, err := xpath.Compile(string(s))
	if err != nil {
		return nil, pgerror.New(code, "invalid XPath expression").WithDetail("%s", err.Error())
	}
	if c.exprs == nil || len(c.exprs) >= maxXPaths {
		c.exprs = map[string]*xpath.Expr{}
	}
	c.exprs[string(s)] = e
	return e, nil
}

// document is a value as a tree.
func (c *xpaths) document(b []byte) (*xml.Node, *pgerror.Error) {
	if c.doc != nil && c.text == string(b) {
		return c.doc, nil
	}
	s := string(b)
	body := s
	if d, err := xml.ReadDecl(s); err == nil {
		body = s[d.Len:]
	}
	doc, err := xml.ParseDocument(body)
	if err != nil {
		return nil, pgerror.As(err)
	}
	c.text, c.doc = s, doc
	return doc, nil
}

func evalXPath(e *xpath.Expr, at *xml.Node, spaces map[string]string) (xpath.Value, *pgerror.Error) {
	v, err := e.Eval(at, spaces)
	if err != nil {
		return v, pgerror.New(pgerror.InternalError, "could not create XPath object").WithDetail("%s", err.Error())
	}
	return v, nil
}

// xmlSpaces reads an array of pairs of prefixes and URIs.
func xmlSpaces(a types.Array) (map[string]string, *pgerror.Error) {
	m := map[string]string{}
	for i := 0; i < a.N; i += 2 {
		if a.Null(i) || a.Null(i+1) {
			return nil, pgerror.New(pgerror.NullValueNotAllowed, "neither namespace name nor URI may be null")
		}
		prefix, uri := string(a.Bytes(i)), string(a.Bytes(i+1))
		if err := addSpace(m, prefix, uri); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func addSpace(m map[string]string, prefix, uri string) *pgerror.Error {
	if prefix == "" {
		return pgerror.New(pgerror.InternalError, "could not register XML namespace with name \"%s\" and URI \"%s\"", prefix, uri)
	}
	m[prefix] = uri
	return nil
}

// appendXMLNode appends the text of a node that a query found.
func appendXMLNode(dst []byte, n *xml.Node) ([]byte, *pgerror.Error) {
	switch n.Kind {
	case xml.AttributeNode, xml.TextNode:
		return xml.AppendEscaped(dst, n.Text()), nil
	case xml.NamespaceNode:
		return dst, pgerror.New(pgerror.OutOfMemory, "could not copy node") // as PostgreSQL says
	}
	return xml.AppendNode(dst, n), nil
}

// xpathValues lists what an expression gives as values of type xml.
func xpathValues(v xpath.Value, out *columnar.Builder) *pgerror.Error {
	switch v.Kind {
	case xpath.Nodes:
		var buf []byte
		for _, n := range v.Nodes {
			var err *pgerror.Error
			if buf, err = appendXMLNode(buf[:0], n); err != nil {
				return err
			}
			out.Bytes(buf)
		}
	case xpath.Number:
		out.Bytes(types.AppendFloat8(nil, v.Num, nil))
	default:
		out.Bytes(xml.AppendEscaped(nil, v.Text()))
	}
	return nil
}

// xpathCall registers a function of an expression, a document and, perhaps,
// namespaces.
func xpathCall(name string, spaces bool, ret types.Type, result func(v xpath.Value, out *columnar.Builder) *pgerror.Error) {
	args := []types.Type{types.Text, types.XML}
	if spaces {
		args = append(args, types.Of(types.OIDTextArray))
	}
	Register(Function{Name: name, Args: args, Ret: ret, Strict: true, Consts: ScalarConsts,
		Eval: func(c *Call, x *Eval, vecs []*columnar.Vec, n int) *columnar.Vec {
			var cache xpaths
			return RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
				v, err := cache.query(a, i, spaces)
				if err != nil {
					return err
				}
				return result(v, out)
			})(c, x, vecs, n)
		}})
}

// query evaluates the call of row i.
func (c *xpaths) query(a Args, i int, spaces bool) (v xpath.Value, err *pgerror.Error) {
	var pairs types.Array
	if spaces {
		pairs = types.ReadArray(a.Bytes(2, i))
		if pairs.NDim != 0 && (pairs.NDim != 2 || pairs.Dims[1].Len != 2) {
			return v, pgerror.New(pgerror.DataException, "invalid array for XML namespace mapping").
				WithDetail("The array must be two-dimensional with length of the second axis equal to 2.")
		}
	}
	path := a.Bytes(0, i)
	if len(path) == 0 {
		return v, pgerror.New(pgerror.DataException, "empty XPath expression")
	}
	doc, err := c.document(a.Bytes(1, i))
	if err != nil {
		return v, err
	}
	m, err := xmlSpaces(pairs)
	if err != nil {
		return v, err
	}
	e, err := c.expr(path, pgerror.InternalError)
	if err != nil {
		return v, err
	}
	return evalXPath(e, doc, m)
}

func init() {
	list := func(v xpath.Value, out *columnar.Builder) *pgerror.Error {
		b := columnar.NewBuilder(columnar.KindBytes, 1)
		if err := xpathValues(v, b); err != nil {
			return err
		}
		vals := b.Build()
		out.Extend(func(dst []byte) []byte { return types.AppendList(dst, types.OIDXML, vals, 0, vals.Len()) })
		return nil
	}
	some := func(v xpath.Value, out *columnar.Builder) *pgerror.Error {
		out.Bool(v.Kind != xpath.Nodes || len(v.Nodes) > 0)
		return nil
	}
	for _, spaces := range []bool{false, true} {
		xpathCall("xpath", spaces, types.Of(types.OIDXMLArray), list)
		xpathCall("xpath_exists", spaces, types.Bool, some)
	}
	xpathCall("xmlexists", false, types.Bool, some)
}
