package xml

import (
	"bytes"
	"strings"
)

// Decl is an XML declaration.
type Decl struct {
	Version, Encoding string // Version is "" if there is no declaration
	Standalone        int    // -1: not said
	Len               int    // bytes of the text
}

// declError is what is wrong with a declaration, as a sentence.
type declError string

func (e declError) Error() string { return string(e) }

const (
	errDeclSpace      declError = "Space required."
	errDeclVersion    declError = "Malformed declaration: missing version."
	errDeclEncoding   declError = "Missing encoding in text declaration."
	errDeclStandalone declError = "standalone accepts only 'yes' or 'no'."
	errDeclEnd        declError = "Parsing XML declaration: '?>' expected."
	errDeclChar       declError = "Invalid character value."
)

// declReader reads the parts of a declaration.
type declReader struct{ s string }

func (r *declReader) skip() bool {
	t := strings.TrimLeft(r.s, blanks)
	some := len(t) < len(r.s)
	r.s = t
	return some
}

// part reads `name = 'value'` with white space before it; found says whether the
// name was there.
func (r *declReader) part(name string, missing error) (value string, found bool, err error) {
	save := r.s
	space := r.skip()
	if !strings.HasPrefix(r.s, name) {
		r.s = save
		return "", false, nil
	}
	if !space {
		return "", true, errDeclSpace
	}
	r.s = r.s[len(name):]
	r.skip()
	if !strings.HasPrefix(r.s, "=") {
		return "", true, missing
	}
	r.s = r.s[1:]
	r.skip()
	if r.s == "" || r.s[0] != '"' && r.s[0] != '\'' {
		return "", true, missing
	}
	i := strings.IndexByte(r.s[1:], r.s[0])
	if i < 0 {
		return "", true, missing
	}
	value, r.s = r.s[1:1+i], r.s[i+2:]
	return value, true, nil
}

// ReadDecl reads the declaration at the start of s, if there is one.
func ReadDecl(s string) (d Decl, err error) {
	d.Standalone = -1
	if !strings.HasPrefix(s, "<?xml") || nameLen(s[5:], true, false) > 0 {
		return d, nil
	}
	r := declReader{s[5:]}
	var found bool
	if r.s == "" || !isBlank(r.s[0]) {
		return d, errDeclSpace
	}
	if d.Version, found, err = r.part("version", errDeclVersion); err != nil || !found {
		return Decl{Standalone: -1}, errDeclVersion
	}
	if d.Encoding, _, err = r.part("encoding", errDeclEncoding); err != nil {
		return d, err
	}
	if v, found, err := r.part("standalone", errDeclStandalone); err != nil {
		return d, err
	} else if found {
		switch v {
		case "yes":
			d.Standalone = 1
		case "no":
			d.Standalone = 0
		default:
			return d, errDeclStandalone
		}
	}
	r.skip()
	if !strings.HasPrefix(r.s, "?>") {
		return d, errDeclEnd
	}
	d.Len = len(s) - len(r.s) + 2
	for i := range d.Len {
		if s[i] > 127 {
			return d, errDeclChar
		}
	}
	return d, nil
}

// Append appends the text of a declaration without an encoding, if it says
// anything.
func (d Decl) Append(dst []byte) []byte {
	if (d.Version == "" || d.Version == "1.0") && d.Standalone < 0 {
		return dst
	}
	v := d.Version
	if v == "" {
		v = "1.0"
	}
	dst = append(dst, `<?xml version="`...)
	dst = append(append(dst, v...), '"')
	switch d.Standalone {
	case 0:
		dst = append(dst, ` standalone="no"`...)
	case 1:
		dst = append(dst, ` standalone="yes"`...)
	}
	return append(dst, "?>"...)
}

// AppendOutput appends the output form of a value: its declaration does not name
// an encoding, and is left out if nothing else is in it; then, and if there is
// none, so is a line feed at the start.
func AppendOutput(dst, value []byte) []byte {
	if !bytes.HasPrefix(value, []byte("<?xml")) {
		return append(dst, bytes.TrimPrefix(value, []byte("\n"))...)
	}
	s := string(value)
	d, err := ReadDecl(s)
	if err != nil {
		return append(dst, s...)
	}
	n := len(dst)
	dst = d.Append(dst)
	s = s[d.Len:]
	if len(dst) == n {
		s = strings.TrimPrefix(s, "\n")
	}
	return append(dst, s...)
}

// SetDecl appends a value with another declaration: a version ("" for none), and
// a standalone of -2 for that which the value has.
func SetDecl(dst []byte, s, version string, standalone int) []byte {
	d, _ := ReadDecl(s) // values are checked
	d.Version = version
	if standalone > -2 {
		d.Standalone = standalone
	}
	return append(d.Append(dst), s[d.Len:]...)
}

// Concat appends values to each other: their declarations become one.
type Concat struct {
	Text       []byte // without the declaration
	version    string
	noVersion  bool
	standalone int
	some       bool
}

// Add adds a value.
func (c *Concat) Add(s string) {
	d, _ := ReadDecl(s) // values are checked
	if !c.some {
		c.some, c.standalone = true, 1
	}
	if d.Standalone == 0 && c.standalone == 1 {
		c.standalone = 0
	}
	if d.Standalone < 0 {
		c.standalone = -1
	}
	switch {
	case d.Version == "":
		c.noVersion = true
	case c.version == "":
		c.version = d.Version
	case c.version != d.Version:
		c.noVersion = true
	}
	c.Text = append(c.Text, s[d.Len:]...)
}

// Append appends the result.
func (c *Concat) Append(dst []byte) []byte {
	d := Decl{Version: c.version, Standalone: c.standalone}
	if c.noVersion {
		d.Version = ""
	}
	if c.some && (!c.noVersion || c.standalone >= 0) {
		dst = d.Append(dst)
	}
	return append(dst, c.Text...)
}
