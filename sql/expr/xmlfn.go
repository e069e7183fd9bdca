package expr

import (
	"encoding/json"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
	"github.com/streamdb/streamdb/sql/xml"
)

// xmlArgs are the arguments of one row of a function of SQL/XML, behind its names.
type xmlArgs struct {
	Args
	c     *Call
	w     *xmlWriter
	names []string
	i     int
}

func (s *xmlArgs) null(k int) bool { return s.Null(k, s.i) }

// value appends argument k, which is not NULL.
func (s *xmlArgs) value(dst []byte, k int, escape bool) ([]byte, *pgerror.Error) {
	v, row := s.row(k, s.i)
	return s.w.append(dst, s.c.Args[k].Type(), v, row, escape)
}

// xmlFunc appends the value of a row, or says that it is NULL.
type xmlFunc func(s *xmlArgs, dst []byte) (value []byte, some bool, err *pgerror.Error)

// xmlBuilder makes a function of SQL/XML: of the names that are written in it, as
// a list in JSON, and of values of any types.
func xmlBuilder(name string, f xmlFunc) *Function {
	return &Function{Name: name, Internal: true, Args: []types.Type{types.Of(types.OIDAny)}, Variadic: true, Ret: types.XML,
		Volatility: Stable, Consts: ScalarConsts,
		Eval: func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			s := &xmlArgs{Args: args, c: c, w: x.xmlWriter()}
			if err := json.Unmarshal(args[0].Bytes(0), &s.names); err != nil {
				panic(err) // NewXML wrote them
			}
			var buf []byte
			return RowKernel(func(_ *Eval, _ Args, i int, out *columnar.Builder) *pgerror.Error {
				var some bool
				var err *pgerror.Error
				s.i = i
				buf, some, err = f(s, buf[:0])
				switch {
				case err != nil:
					return err
				case some:
					out.Bytes(buf)
				default:
					out.Null()
				}
				return nil
			})(c, x, args, n)
		}}
}

// The functions of SQL/XML that NewXML makes calls of.
var (
	XMLElement = xmlBuilder("xmlelement", xmlElement)
	XMLForest  = xmlBuilder("xmlforest", xmlForest)
	XMLConcat  = xmlBuilder("xmlconcat", xmlConcat)
	XMLPI      = xmlBuilder("xmlpi", xmlPI)
	XMLRoot    = xmlBuilder("xmlroot", xmlRoot)
)

// NewXML makes a call of a function of SQL/XML: of XMLElement with the names of
// the element and its attributes, and the values of the attributes and the
// content; of XMLForest with names and values; of XMLPI with its target.
func NewXML(fn *Function, names []string, args []Expr, pos int) Expr {
	s, err := json.Marshal(names)
	if err != nil {
		panic(err) // strings
	}
	b := columnar.NewBuilder(columnar.KindBytes, 1)
	b.Bytes(s)
	args = append([]Expr{&Const{Val: b.Build(), Typ: types.Text}}, args...)
	return &Call{Fn: fn, Args: args, Typ: types.XML, Pos: pos}
}

func xmlElement(s *xmlArgs, dst []byte) ([]byte, bool, *pgerror.Error) {
	dst = append(append(dst, '<'), s.names[0]...)
	var err *pgerror.Error
	var value []byte
	k := 1
	for _, name := range s.names[1:] {
		if !s.null(k) {
			if value, err = s.value(value[:0], k, false); err != nil {
				return dst, false, err
			}
			dst = append(append(append(dst, ' '), name...), `="`...)
			dst = append(xml.AppendAttribute(dst, text(value)), '"')
		}
		k++
	}
	open := false
	for ; k < len(s.Args); k++ {
		if s.null(k) {
			continue
		}
		if !open {
			open, dst = true, append(dst, '>')
		}
		if dst, err = s.value(dst, k, true); err != nil {
			return dst, false, err
		}
	}
	if !open {
		return append(dst, "/>"...), true, nil
	}
	return append(append(append(dst, "</"...), s.names[0]...), '>'), true, nil
}

func xmlForest(s *xmlArgs, dst []byte) (_ []byte, some bool, err *pgerror.Error) {
	for k, name := range s.names {
		if s.null(k + 1) {
			continue
		}
		some = true
		dst = append(append(append(dst, '<'), name...), '>')
		if dst, err = s.value(dst, k+1, true); err != nil {
			return dst, false, err
		}
		dst = append(append(append(dst, "</"...), name...), '>')
	}
	return dst, some, nil
}

func xmlConcat(s *xmlArgs, dst []byte) ([]byte, bool, *pgerror.Error) {
	var c xml.Concat
	some := false
	for k := 1; k < len(s.Args); k++ {
		if !s.null(k) {
			some = true
			c.Add(string(s.Bytes(k, s.i)))
		}
	}
	return c.Append(dst), some, nil
}

func xmlPI(s *xmlArgs, dst []byte) ([]byte, bool, *pgerror.Error) {
	if strings.EqualFold(s.names[0], "xml") {
		return dst, false, pgerror.New(pgerror.SyntaxError, "invalid XML processing instruction").
			WithDetail("XML processing instruction target name cannot be \"%s\".", s.names[0])
	}
	dst = append(append(dst, "<?"...), s.names[0]...)
	if len(s.Args) > 1 {
		if s.null(1) {
			return dst, false, nil
		}
		t := string(s.Bytes(1, s.i))
		if strings.Contains(t, "?>") {
			return dst, false, pgerror.New(pgerror.InvalidXMLProcessingInstruction, "invalid XML processing instruction").
				WithDetail("XML processing instruction cannot contain \"?>\".")
		}
		dst = append(append(dst, ' '), strings.TrimLeft(t, " ")...)
	}
	return append(dst, "?>"...), true, nil
}

// xmlRoot is XMLROOT of a value, a version, and a number that says what the
// grammar makes of STANDALONE.
func xmlRoot(s *xmlArgs, dst []byte) ([]byte, bool, *pgerror.Error) {
	if s.null(1) {
		return dst, false, nil
	}
	version := ""
	if !s.null(2) {
		version = string(s.Bytes(2, s.i))
	}
	standalone := map[int32]int{0: 1, 1: 0, 2: -1, 3: -2}[s.Int32(3, s.i)] // YES, NO, NO VALUE, not given
	return xml.SetDecl(dst, string(s.Bytes(1, s.i)), version, standalone), true, nil
}

// xmlMode is what the session takes for values of type xml.
func (x *Eval) xmlMode() xml.Mode {
	if x.Context != nil && x.XMLDocument {
		return xml.Document
	}
	return xml.Content
}

// xmlText is a kernel that makes a value of type xml of a text.
func xmlText(check func(x *Eval, s string) error) Kernel {
	return RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		if err := check(x, text(a.Bytes(0, i))); err != nil {
			return pgerror.As(err)
		}
		out.Bytes(a.Bytes(0, i))
		return nil
	})
}

// xmlParses are XMLPARSE by mode.
var xmlParses = [...]*Function{
	xml.Document: xmlParse("xmlparse_document", xml.Document),
	xml.Content:  xmlParse("xmlparse_content", xml.Content),
}

func xmlParse(name string, m xml.Mode) *Function {
	return &Function{Name: name, Internal: true, Args: []types.Type{types.Text}, Ret: types.XML, Strict: true, Consts: ScalarConsts,
		Eval: xmlText(func(_ *Eval, s string) error { return xml.Check(s, m) })}
}

// NewXMLParse makes XMLPARSE of a text.
func NewXMLParse(document bool, e Expr, pos int) Expr {
	m := xml.Content
	if document {
		m = xml.Document
	}
	return &Call{Fn: xmlParses[m], Args: []Expr{e}, Typ: types.XML, Pos: pos}
}

var isDocument = &Function{Name: "IS DOCUMENT", Internal: true, Operator: true, Postfix: true, Args: []types.Type{types.XML}, Ret: types.Bool,
	Strict: true, Total: true, Consts: ScalarConsts, Eval: wellFormed(func(*Eval) xml.Mode { return xml.Document })}

// NewIsDocument makes `e IS DOCUMENT` of an xml.
func NewIsDocument(e Expr, pos int) Expr {
	return &Call{Fn: isDocument, Args: []Expr{e}, Typ: types.Bool, Pos: pos}
}

// wellFormed is a kernel that says whether a text can be parsed.
func wellFormed(mode func(x *Eval) xml.Mode) Kernel {
	return RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		out.Bool(xml.Check(text(a.Bytes(0, i)), mode(x)) == nil)
		return nil
	})
}

// xmlSerializes are XMLSERIALIZE: of content or a document, indented or not.
var xmlSerializes = map[[2]bool]*Function{
	{true, false}: xmlSerialize("xmlserialize_document", true, false), {true, true}: xmlSerialize("xmlserialize_document_indent", true, true),
	{false, true}: xmlSerialize("xmlserialize_content_indent", false, true), {false, false}: xmlSerialize("xmlserialize_content", false, false),
}

func xmlSerialize(name string, document, indent bool) *Function {
	m := xml.Content
	if document {
		m = xml.Document
	}
	return &Function{Name: name, Internal: true, Args: []types.Type{types.XML}, Ret: types.Text, Strict: true, Consts: ScalarConsts,
		Eval: RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			b := a.Bytes(0, i)
			if document && xml.Check(text(b), m) != nil {
				return pgerror.New(pgerror.NotAnXMLDocument, "not an XML document")
			}
			if !indent {
				out.Bytes(b)
				return nil
			}
			return extend(out, func(dst []byte) ([]byte, error) { return xml.Indent(dst, string(b), m) })
		})}
}

// NewXMLSerialize makes XMLSERIALIZE of an xml, a text.
func NewXMLSerialize(document, indent bool, e Expr, pos int) Expr {
	return &Call{Fn: xmlSerializes[[2]bool{document, indent}], Args: []Expr{e}, Typ: types.Text, Pos: pos}
}

// collectXML is xmlagg: values one behind the other, of which the declarations
// become one.
func collectXML(_ *Eval, _ *AggregateCall, args []*columnar.Vec, lo, hi int, out *columnar.Builder) error {
	var c xml.Concat
	var last []byte
	n := 0
	for i := lo; i < hi; i++ {
		if args[0].Null(i) {
			continue
		}
		last = args[0].Bytes(i)
		c.Add(string(last))
		n++
	}
	switch n {
	case 0:
		out.Null()
	case 1:
		out.Bytes(last)
	default:
		out.Extend(c.Append)
	}
	return nil
}

// xmlComment is xmlcomment.
func xmlComment(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	s := text(a.Bytes(0, i))
	if strings.Contains(s, "--") || strings.HasSuffix(s, "-") {
		return pgerror.New(pgerror.InvalidXMLComment, "invalid XML comment")
	}
	out.Extend(func(dst []byte) []byte { return append(append(append(dst, "<!--"...), s...), "-->"...) })
	return nil
}

func init() {
	implicit := func(x *Eval, s string) error { return xml.Check(s, x.xmlMode()) }
	fn := Register(Function{Name: "xml", Args: []types.Type{types.Text}, Ret: types.XML, Strict: true, Volatility: Stable, Consts: ScalarConsts, Eval: xmlText(implicit)})
	for _, from := range []types.OID{types.OIDText, types.OIDVarchar, types.OIDBPChar} {
		RegisterCast(Cast{From: from, To: types.OIDXML, Context: CastExplicit, Fn: fn})
		RegisterCast(Cast{From: types.OIDXML, To: from, Context: CastAssignment})
	}
	one := func(name string, arg, ret types.Type, v Volatility, total bool, k Kernel) {
		Register(Function{Name: name, Args: []types.Type{arg}, Ret: ret, Strict: true, Volatility: v, Total: total, Consts: ScalarConsts, Eval: k})
	}
	same := bytesMap(func(dst, b []byte) []byte { return append(dst, b...) })
	Register(Function{Name: "text", Args: []types.Type{types.XML}, Ret: types.Text, Strict: true, Total: true, Eval: same})
	one("xmlcomment", types.Text, types.XML, Immutable, false, RowKernel(xmlComment))
	one("xmltext", types.Text, types.XML, Immutable, true, bytesMap(func(dst, b []byte) []byte { return xml.AppendEscaped(dst, text(b)) }))
	one("xml_is_well_formed", types.Text, types.Bool, Stable, true, wellFormed((*Eval).xmlMode))
	one("xml_is_well_formed_document", types.Text, types.Bool, Immutable, true, wellFormed(func(*Eval) xml.Mode { return xml.Document }))
	one("xml_is_well_formed_content", types.Text, types.Bool, Immutable, true, wellFormed(func(*Eval) xml.Mode { return xml.Content }))
	Register(Function{Name: "xmlvalidate", Args: []types.Type{types.XML, types.Text}, Ret: types.Bool, Strict: true, Consts: ScalarConsts,
		Eval: RowKernel(func(*Eval, Args, int, *columnar.Builder) *pgerror.Error {
			return pgerror.New(pgerror.FeatureNotSupported, "xmlvalidate is not implemented")
		})})
	Register(Function{Name: "xmlconcat2", Args: []types.Type{types.XML, types.XML}, Ret: types.XML, Consts: ScalarConsts,
		Eval: RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			switch l, r := a.Null(0, i), a.Null(1, i); {
			case l && r:
				out.Null()
			case l || r:
				k := 0
				if l {
					k = 1
				}
				out.Bytes(a.Bytes(k, i))
			default:
				var c xml.Concat
				c.Add(string(a.Bytes(0, i)))
				c.Add(string(a.Bytes(1, i)))
				out.Extend(c.Append)
			}
			return nil
		})})
	RegisterAggregate(Aggregate{Name: "xmlagg", Op: AggCollect, Args: []types.Type{types.XML}, Ret: types.XML, Collect: collectXML})
}
