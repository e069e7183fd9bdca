package expr

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/sql/types"
)

// xpathGen makes random XPath expressions.
type xpathGen struct{ r *rand.Rand }

func (g xpathGen) pick(s string) string {
	f := strings.Split(s, "¦")
	return f[g.r.Intn(len(f))]
}

func (g xpathGen) step(depth int) string {
	s := g.pick("a¦b¦c¦*¦*¦.¦..¦@x¦@*¦text()¦node()¦comment()¦processing-instruction()¦processing-instruction('p')¦p:b¦p:*¦@p:x¦q:a¦a¦b")
	if g.r.Intn(4) == 0 {
		s = g.pick("ancestor¦ancestor-or-self¦attribute¦child¦descendant¦descendant-or-self¦following¦following-sibling¦parent¦preceding¦preceding-sibling¦self") +
			"::" + g.pick("a¦b¦*¦node()¦text()¦p:b¦p:*¦x¦comment()")
	}
	if s == "." || s == ".." {
		return s
	}
	if depth > 0 && g.r.Intn(2) == 0 {
		s += "[" + g.predicate(depth-1) + "]"
	}
	return s
}

func (g xpathGen) predicate(depth int) string {
	switch g.r.Intn(4) {
	case 0:
		return g.pick("1¦2¦3¦last()¦last()-1¦position()=2¦position()<3¦position() mod 2 = 1¦0¦-1¦1.5")
	case 1:
		return g.path(depth)
	}
	return g.expr(depth)
}

func (g xpathGen) path(depth int) string {
	var b strings.Builder
	b.WriteString(g.pick("/¦//¦¦//¦"))
	for i := range 1 + g.r.Intn(2) {
		if i > 0 {
			b.WriteString(g.pick("/¦/¦/¦//"))
		}
		b.WriteString(g.step(depth))
	}
	return b.String()
}

// expr makes an expression of any type.
func (g xpathGen) expr(depth int) string {
	if depth <= 0 {
		return g.pick("1¦2¦0.5¦'x'¦'1'¦\"y z\"¦''¦/r¦.¦@x¦//b¦//a¦text()¦true()¦false()¦position()¦last()¦-3¦1e2¦.5¦5.¦/¦//@x¦' 7 '¦12345678901¦0.000001")
	}
	e := func() string { return g.expr(depth - 1) }
	switch g.r.Intn(12) {
	case 0, 1, 2:
		return g.path(depth)
	case 3:
		return e() + g.pick(" = ¦ != ¦<¦<=¦ > ¦>=¦=¦!=") + e()
	case 4:
		return e() + g.pick(" and ¦ or ") + e()
	case 5:
		return "(" + e() + ")" + g.pick(" + ¦ - ¦ * ¦ div ¦ mod ¦+¦-") + "(" + e() + ")"
	case 6:
		return g.path(depth) + g.pick(" | ¦|") + g.path(depth)
	case 7:
		return g.pick("count¦sum¦name¦local-name¦namespace-uri¦string¦number¦boolean¦not¦string-length¦normalize-space¦floor¦ceiling¦round¦id¦lang") + "(" + g.path(depth-1) + ")"
	case 8:
		return g.pick("string¦number¦boolean¦not¦string-length¦normalize-space¦floor¦ceiling¦round¦id¦lang") + "(" + e() + ")"
	case 9:
		return g.pick("concat¦starts-with¦contains¦substring-before¦substring-after¦substring") + "(" + e() + ", " + e() + ")"
	case 10:
		return g.pick("concat¦translate¦substring¦nope¦count¦p:f") + "(" + e() + ", " + e() + "," + e() + ")"
	}
	return "(" + g.path(depth) + ")" + g.pick("[1]¦[last()]¦¦[2]/..¦/a¦//text()¦[@x]")
}

var xmlDocs = []string{
	`<r/>`, `<r><a>1</a><a x="2">2</a><b>x<c/>y</b><a>1</a></r>`,
	`<r x="1" xmlns:p="http://p"><p:b p:x="é&quot;">t &amp; u</p:b><b p:x="1" x="2"/><!--c--><?p i?><?q?><a><![CDATA[<z>]]>&#65;</a></r>`,
	`<a xmlns="http://d"><b><a x="1"/></b><c xmlns=""><a/></c></a>`,
	`<r><a><b><a><b x="5">deep</b></a></b></a><b> 3.5 </b><b>-1e1</b><a xml:lang="en-US" xml:id="i1"><b/></a></r>`,
	`<!DOCTYPE r [<!ATTLIST a x ID #IMPLIED>]><r><a x="x">v</a></r>`,
	`<?xml version="1.0" encoding="UTF-8"?><!--before--><r>
  <a>  one   two </a>
  <b>日本</b>
</r><?after x?>`,
	`<r><q:a xmlns:q="http://q"><q:b xmlns:p="http://p"><p:b/><q:b p:x=""/></q:b></q:a></r>`,
	`x<r/>`, `<r`, `<n:r/>`, ``,
}

func TestXPathAgainstPostgres(t *testing.T) {
	g := xpathGen{testRand(t)}
	paths := []string{"", "/", "//", "a[", "a]", "1 2", "..", ".", "@", "$v", "child::", "foo::a", "a:", "'x", "()", "(a)", "--1", "- - 1", "a b", "a/", "//a/", "a=", "count(a", "not", "div", "div div div", "* * *", "and", "@*|*", "a[]", "self::node()", "string(", "text(", "text", "node", "comment", "1.2.3", ".a", "a.b", "1a", "a orb", "3div2", "namespace::node()", "count(//namespace::*)", "name(//namespace::p)", "string(//namespace::p)", "//*[namespace::p]"}
	for range 2500 {
		paths = append(paths, g.expr(2))
	}
	for range 500 {
		p := []rune(g.expr(2))
		at := g.r.Intn(len(p) + 1)
		s := string(p[:at]) + g.pick("/¦[¦]¦(¦)¦'¦ ¦:¦::¦@¦*¦.¦|¦-¦1¦a¦=¦<¦!¦,¦$¦é") + string(p[min(at+g.r.Intn(2), len(p)):])
		if !strings.HasSuffix(s, "|") { // libxml2 allows that in some simple expressions
			paths = append(paths, s)
		}
	}
	path, doc := argument{types.Text, paths}, argument{types.XML, xmlDocs[:8]}
	bad := argument{types.XML, xmlDocs[8:]}
	spaces := argument{types.Of(types.OIDTextArray), []string{"{{p,http://p},{q,http://q}}", "{{p,http://p},{q,http://d}}", "{}", "{{p,q,r}}", "{a,b}", "{{p,NULL}}", `{{"",x}}`}}
	testFamilies(t, 6000, []family{
		{"xpath", false, []argument{path, doc}}, {"xpath", false, []argument{path, doc, spaces}},
		{"xpath", false, []argument{path, doc, spaces}}, {"xpath", false, []argument{path, doc, spaces}},
		{"xpath_exists", false, []argument{path, doc, spaces}}, {"xmlexists", false, []argument{path, doc}}, {"xpath", false, []argument{path, bad}},
	})
}

func TestXMLFunctionsAgainstPostgres(t *testing.T) {
	laughs := `<!DOCTYPE a [<!ENTITY e0 "ha">`
	for i := range 12 {
		laughs += fmt.Sprintf(`<!ENTITY e%d "%s">`, i+1, strings.Repeat(fmt.Sprintf("&e%d;", i), 10))
	}
	texts := append([]string{"a-", "a--b", "", "<a/><b/>", "&lt;", "]]>", "<?xml version='1.1'?>x", "<?xml version='1.0' standalone='no'?>\n<a/>", "<!DOCTYPE a><a/>x",
		laughs + "]><a>&e12;</a>", laughs + `]><a b="&e12;"/>`, laughs + "]><a>&e1;</a>", `<!DOCTYPE a [<!ENTITY e "&f;"><!ENTITY f "&e;">]><a>&e;</a>`}, xmlDocs...)
	arg := argument{types.Text, texts}
	var families []family
	for _, name := range []string{"xml", "xmlcomment", "xml_is_well_formed", "xml_is_well_formed_document", "xml_is_well_formed_content"} {
		families = append(families, family{name, false, []argument{arg}})
	}
	testFamilies(t, 400, families)
}
