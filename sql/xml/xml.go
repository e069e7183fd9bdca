// Package xml is XML as the type xml has it: a parser that is strict in the ways
// of libxml2 (which PostgreSQL uses), trees of nodes and their text form, XML
// declarations, and the mapping of SQL names to XML names.
package xml

import (
	"fmt"
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Mode says what a parse is for.
type Mode uint8

// The modes: one root element with what may stand around it, or what may stand
// within an element.
const (
	Document Mode = iota
	Content
)

// Check fails if s is not a value of type xml. Content with a DOCTYPE is taken
// as a document.
func Check(s string, m Mode) error {
	_, err := parseAs(s, m, options{})
	return err
}

func parseAs(s string, m Mode, o options) (*Node, error) {
	code, what := pgerror.InvalidXMLDocument, "document"
	body := s
	if m == Content {
		code, what = pgerror.InvalidXMLContent, "content"
		d, err := ReadDecl(s)
		if err != nil {
			return nil, pgerror.New(code, "invalid XML content: invalid XML declaration").WithDetail("%s", err.Error())
		}
		body = s[d.Len:]
		o.version, o.standalone = d.Version, d.Standalone == 1
		if hasDoctype(body) {
			m, body = Document, s
		} else if body == "" {
			return &Node{Kind: DocumentNode}, nil
		}
	}
	p := newParser(body, o)
	n, ok := p.parse(m)
	if !ok {
		return nil, pgerror.New(code, "invalid XML %s", what).WithDetail("%s", p.detail())
	}
	return n, nil
}

// ParseDocument reads a document for queries: namespaces must be right too, and
// references to entities stay what they are.
func ParseDocument(s string) (*Node, error) {
	p := newParser(s, options{build: true, strict: true})
	n, ok := p.parse(Document)
	if !ok {
		return nil, pgerror.New(pgerror.InvalidXMLDocument, "could not parse XML document").WithDetail("%s", p.detail())
	}
	n.number()
	return n, nil
}

// hasDoctype reports whether a DOCTYPE follows on nothing but comments and
// processing instructions.
func hasDoctype(s string) bool {
	for {
		s = strings.TrimLeft(s, blanks)
		switch {
		case strings.HasPrefix(s, "<!DOCTYPE"):
			return true
		case strings.HasPrefix(s, "<!--"):
			s = s[4:]
			i := strings.Index(s, "--")
			if i < 0 || !strings.HasPrefix(s[i+2:], ">") {
				return false
			}
			s = s[i+3:]
		case strings.HasPrefix(s, "<?"):
			i := strings.Index(s, "?>")
			if i < 0 || len(s) > 5 && strings.EqualFold(s[2:5], "xml") && isBlank(s[5]) {
				return false
			}
			s = s[i+2:]
		default:
			return false
		}
	}
}

// Indent appends a value with an element a line. The declaration of a document is
// kept, and names the encoding of the text.
func Indent(dst []byte, s string, m Mode) ([]byte, error) {
	n, err := parseAs(s, m, options{build: true, expand: true, noBlanks: true})
	if err != nil {
		return dst, err
	}
	d, err := ReadDecl(s)
	if err != nil {
		return dst, err
	}
	if hasDoctype(s[d.Len:]) {
		m = Document
	}
	if m == Document && d.Len > 0 {
		dst = fmt.Appendf(dst, `<?xml version="%s" encoding="UTF-8"`, d.Version)
		if d.Standalone >= 0 {
			dst = fmt.Appendf(dst, ` standalone="%s"`, [...]string{"no", "yes"}[d.Standalone])
		}
		dst = append(dst, "?>\n"...)
	}
	return AppendIndented(dst, n, m), nil
}
