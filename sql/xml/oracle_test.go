package xml

import (
	"flag"
	"math/rand"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
)

var (
	seed = flag.Int64("seed", 1, "seed of the random tests")
	many = flag.Int("n", 20000, "random texts")
)

// seeds are texts that are changed at random.
var seeds = []string{
	`<a/>`, `<a>b</a>`, `<a b="c" d='e'>x<f/>y</a>`, `text`, ``, ` <a/> `, `<a/><b/>`, `<?xml version="1.0"?><a/>`,
	`<?xml version='1.1' encoding="UTF-8" standalone="yes"?><a>&lt;&amp;&#65;&#x41;</a>`, `<!-- c --><a/><?p i?>`,
	`<a><![CDATA[<x>]]></a>`, `<p:a xmlns:p="http://e.x/" p:b="1"><p:c/></p:a>`, `<a xmlns="http://e.x"><b xmlns=""/></a>`,
	`<!DOCTYPE a><a/>`, `<!DOCTYPE a SYSTEM "x.dtd"><a>&foo;</a>`, `<!DOCTYPE a PUBLIC "-//x" "y"><a/>`,
	`<!DOCTYPE a [<!ENTITY e "v"> <!ELEMENT a (#PCDATA|b)*>]><a b="&e;">&e;</a>`,
	`<!DOCTYPE a [<!ENTITY e "<b>x</b>"><!ENTITY f "&e;&e;">]><a>&f;</a>`,
	`<!DOCTYPE a [<!ENTITY % p "<!ENTITY e 'x'>"> %p; ]><a>&e;</a>`,
	`<!DOCTYPE a [<!ELEMENT a (b,(c|d)+,e?)><!ATTLIST a x CDATA #REQUIRED y (p|q) "p" z NMTOKEN #IMPLIED><!NOTATION n SYSTEM "s"><!ENTITY u SYSTEM "f" NDATA n>]><a/>`,
	`<!DOCTYPE a [<!ENTITY e SYSTEM "file:///x"><!-- c --><?p x?>]><a>&e;</a>`,
	"<a\tb = \"x\r\ny\"\n>é日本</a >", `<a.b-c_d1/>`, `<é/>`, `x &gt; y ]] > z`, `<a xml:space="preserve" xml:lang="en"> </a>`,
	`<a><b><c>d</c></b><b/></a>`, `<?pi?>`, `<?xml-stylesheet href="x"?><a/>`,
}

var bits = strings.Split(`<|>|/|"|'|=| |&|;|#|!|-|--|?|]|]]>|[|:|x|1|.|é|&lt;|&#0;|&#x1F;|&#xD;|&e;|&#|<b>|</b>|</a>|<!--|-->|<?|?>|<![CDATA[|<?xml version="1.0"?>|xmlns="u"|xmlns:p="v"|b="c"|%|%p;|(|)|||*|+|,|<!DOCTYPE a>|<!ENTITY e "x">|`+"\x01|\x7f|\u0080|\ufffe|\n|\r|\t|\U00010000|\u00b7|\u0300|SYSTEM|PUBLIC|ANY|EMPTY|xml|XML|\"\"", "|")

func mutate(r *rand.Rand) string {
	s := seeds[r.Intn(len(seeds))]
	for range r.Intn(4) {
		at := r.Intn(len(s) + 1)
		to := min(at+r.Intn(4), len(s))
		switch r.Intn(4) {
		case 0:
			to = at
		case 1:
			s = s[:at] + s[to:]
			continue
		case 2:
			from := r.Intn(len(s) + 1)
			s = s[:at] + s[from:min(from+r.Intn(12), len(s))] + s[at:]
			continue
		}
		s = s[:at] + bits[r.Intn(len(bits))] + s[to:]
	}
	return strings.ToValidUTF8(s, "é")
}

// TestWellFormed: PostgreSQL and this package agree on which texts are documents
// and which are content.
func TestWellFormed(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	t.Logf("-seed=%d", *seed)
	texts := append([]string(nil), seeds...)
	for range *many {
		if s := mutate(r); strings.Count(s, "%p;") < 2 { // of two in a row libxml2 says that they are in a loop
			texts = append(texts, s)
		}
	}
	for _, depth := range []int{255, 256, 257, 258, 259} {
		texts = append(texts, strings.Repeat("<a>", depth)+strings.Repeat("</a>", depth))
	}
	rows, err := s.Conn.Query(t.Context(), "SELECT xml_is_well_formed_document(x), xml_is_well_formed_content(x) FROM unnest($1::text[]) WITH ORDINALITY AS u(x, o) ORDER BY o", texts)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	bad, good := 0, 0
	for i := 0; rows.Next(); i++ {
		var want [2]bool
		if err := rows.Scan(&want[0], &want[1]); err != nil {
			t.Fatal(err)
		}
		for m, w := range want {
			err := Check(texts[i], Mode(m))
			if w {
				good++
			}
			if (err == nil) == w {
				continue
			}
			if bad++; bad <= 10 {
				t.Errorf("%q as %s: got %v, want well-formed %t", texts[i], [...]string{"document", "content"}[m], err, w)
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d well-formed, %d differ", good, 2*len(texts), bad)
}
