package coord

import (
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// copyOptions are the options of COPY (PostgreSQL manual, COPY).
type copyOptions struct {
	format     string // text, csv, binary
	delimiter  byte
	null       string
	header     bool
	match      bool // the header must name the columns
	quote      byte
	escape     byte
	forceQuote map[string]bool // columns; "*" for all
	forceNull  map[string]bool
	forceNN    map[string]bool
	// def, if hasDefault, stands for the default of a column.
	def        string
	hasDefault bool
	// skip says that rows with values that cannot be read are left out.
	skip bool
}

// copyOptionReader reads the options of one COPY.
type copyOptionReader struct {
	o    *copyOptions
	from bool
	// given are the options by their names.
	given map[string]parser.Option
}

func parseCopyOptions(opts []parser.Option, from bool) (*copyOptions, error) {
	r := &copyOptionReader{o: &copyOptions{format: "text", quote: '"'}, from: from, given: map[string]parser.Option{}}
	for _, x := range opts {
		if _, twice := r.given[x.Name]; twice {
			return nil, pgerror.New(pgerror.SyntaxError, "conflicting or redundant options").At(x.Pos)
		}
		r.given[x.Name] = x
		if err := r.read(x); err != nil {
			return nil, err
		}
	}
	return r.o, r.check()
}

// read takes one option, as far as it does not depend on others.
func (r *copyOptionReader) read(x parser.Option) error {
	o := r.o
	switch x.Name {
	case "format":
		if o.format = strings.ToLower(x.Value.Text); o.format != "text" && o.format != "csv" && o.format != "binary" {
			return pgerror.New(pgerror.InvalidParameterValue, "COPY format \"%s\" not recognized", x.Value.Text).At(x.Pos)
		}
	case "freeze", "delimiter", "null", "quote", "escape", "default", "log_verbosity", "reject_limit":
	case "header":
		b, ok := parseBoolSetting(x.Value.Text)
		o.match = strings.EqualFold(x.Value.Text, "match")
		o.header = x.Value.Kind == parser.ValueNone || b || o.match
		switch {
		case o.match && !r.from:
			return pgerror.New(pgerror.FeatureNotSupported, "cannot use \"match\" with HEADER in COPY TO")
		case x.Value.Kind != parser.ValueNone && !ok && !o.match:
			return pgerror.New(pgerror.SyntaxError, "header requires a Boolean value or \"match\"")
		}
	case "force_quote":
		return r.list(x, &o.forceQuote, true)
	case "force_not_null":
		return r.list(x, &o.forceNN, true)
	case "force_null":
		return r.list(x, &o.forceNull, true)
	case "on_error":
		switch v := strings.ToLower(x.Value.Text); {
		case !r.from:
			return pgerror.New(pgerror.FeatureNotSupported, "COPY ON_ERROR cannot be used with COPY TO").At(x.Pos)
		case v != "stop" && v != "ignore":
			return pgerror.New(pgerror.InvalidParameterValue, "COPY ON_ERROR \"%s\" not recognized", x.Value.Text).At(x.Pos)
		default:
			o.skip = v == "ignore"
		}
	case "encoding":
		switch e := strings.ToUpper(strings.NewReplacer("-", "", "_", "").Replace(x.Value.Text)); {
		case e == "UTF8" || e == "UNICODE" || e == "SQLASCII":
		case otherEncodings[e]:
			return pgerror.Unsupported("COPY encoding " + x.Value.Text)
		default:
			return pgerror.New(pgerror.InvalidParameterValue, "argument to option \"encoding\" must be a valid encoding name").At(x.Pos)
		}
	default:
		return pgerror.New(pgerror.SyntaxError, "option \"%s\" not recognized", x.Name).At(x.Pos)
	}
	return nil
}

// otherEncodings are the character sets that PostgreSQL knows besides UTF-8.
var otherEncodings = func() map[string]bool {
	m := map[string]bool{}
	for _, e := range strings.Fields(`BIG5 EUCCN EUCJIS2004 EUCJP EUCKR EUCTW GB18030 GBK ISO88591 ISO88595 ISO88596 ISO88597 ISO88598 JOHAB
		KOI8 KOI8R KOI8U LATIN1 LATIN2 LATIN3 LATIN4 LATIN5 LATIN6 LATIN7 LATIN8 LATIN9 LATIN10 MULEINTERNAL SHIFTJIS2004 SJIS UHC WIN866
		WIN874 WIN1250 WIN1251 WIN1252 WIN1253 WIN1254 WIN1255 WIN1256 WIN1257 WIN1258`) {
		m[e] = true
	}
	return m
}()

// list reads a list of columns, or * for all.
func (r *copyOptionReader) list(x parser.Option, to *map[string]bool, star bool) error {
	m := map[string]bool{}
	switch {
	case x.Value.Kind == parser.ValueList:
		for _, v := range x.Value.List {
			m[v.Text] = true
		}
	case star && x.Value.Text == "*":
		m["*"] = true
	default:
		return pgerror.New(pgerror.InvalidParameterValue, "argument to option \"%s\" must be a list of column names", x.Name).At(x.Pos)
	}
	*to = m
	return nil
}

// check compares the options with each other, in PostgreSQL's order, and gives
// them the values that they have by default.
func (r *copyOptionReader) check() error {
	o := r.o
	csv, binary := o.format == "csv", o.format == "binary"
	has := func(name string) bool { _, ok := r.given[name]; return ok }
	unsupported := func(format string, args ...any) error {
		return pgerror.New(pgerror.FeatureNotSupported, format, args...)
	}
	single := func(name string, to *byte) error {
		text := r.given[name].Value.Text
		if len(text) != 1 {
			return unsupported("COPY %s must be a single one-byte character", name)
		}
		*to = text[0]
		return nil
	}
	for _, name := range []string{"delimiter", "null", "default"} {
		if binary && has(name) {
			return pgerror.New(pgerror.SyntaxError, "cannot specify %s in BINARY mode", strings.ToUpper(name))
		}
	}
	o.delimiter, o.null = '\t', `\N`
	if csv {
		o.delimiter, o.null = ',', ""
	}
	if has("delimiter") {
		if err := single("delimiter", &o.delimiter); err != nil {
			return err
		}
	}
	if has("null") {
		o.null = r.given["null"].Value.Text
	}
	switch {
	case o.delimiter == '\n' || o.delimiter == '\r':
		return pgerror.New(pgerror.InvalidParameterValue, "COPY delimiter cannot be newline or carriage return")
	case strings.ContainsAny(o.null, "\r\n"):
		return pgerror.New(pgerror.InvalidParameterValue, "COPY null representation cannot use newline or carriage return")
	case !csv && strings.IndexByte(`\.abcdefghijklmnopqrstuvwxyz0123456789`, o.delimiter) >= 0:
		return pgerror.New(pgerror.InvalidParameterValue, "COPY delimiter cannot be \"%c\"", o.delimiter)
	case binary && o.header:
		return unsupported("cannot specify HEADER in BINARY mode")
	case !csv && has("quote"):
		return unsupported("COPY quote available only in CSV mode")
	}
	if has("quote") {
		if err := single("quote", &o.quote); err != nil {
			return err
		}
	}
	if csv && o.delimiter == o.quote {
		return pgerror.New(pgerror.InvalidParameterValue, "COPY delimiter and quote must be different")
	}
	if !csv && has("escape") {
		return unsupported("COPY escape available only in CSV mode")
	}
	if o.escape = o.quote; has("escape") {
		if err := single("escape", &o.escape); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name, words string
		from        bool
	}{{"force_quote", "force quote", false}, {"force_not_null", "force not null", true}, {"force_null", "force null", true}} {
		switch {
		case !has(f.name):
		case !csv:
			return unsupported("COPY %s available only in CSV mode", f.words)
		case f.from != r.from:
			return unsupported("COPY %s only available using COPY %s", f.words, map[bool]string{true: "FROM", false: "TO"}[f.from])
		}
	}
	switch {
	case binary:
	case strings.IndexByte(o.null, o.delimiter) >= 0:
		return unsupported("COPY delimiter must not appear in the NULL specification")
	case csv && strings.IndexByte(o.null, o.quote) >= 0:
		return unsupported("CSV quote character must not appear in the NULL specification")
	}
	return r.checkDefault()
}

// checkDefault takes what stands for the default of a column.
func (r *copyOptionReader) checkDefault() error {
	x, ok := r.given["default"]
	o := r.o
	if !ok {
		return nil
	}
	o.def, o.hasDefault = x.Value.Text, true
	switch {
	case !r.from:
		return pgerror.New(pgerror.FeatureNotSupported, "COPY DEFAULT only available using COPY FROM")
	case strings.ContainsAny(o.def, "\r\n"):
		return pgerror.New(pgerror.InvalidParameterValue, "COPY default representation cannot use newline or carriage return")
	case strings.IndexByte(o.def, o.delimiter) >= 0:
		return pgerror.New(pgerror.FeatureNotSupported, "COPY delimiter character must not appear in the DEFAULT specification")
	case o.format == "csv" && strings.IndexByte(o.def, o.quote) >= 0:
		return pgerror.New(pgerror.FeatureNotSupported, "CSV quote character must not appear in the DEFAULT specification")
	case o.def == o.null:
		return pgerror.New(pgerror.FeatureNotSupported, "NULL specification and DEFAULT specification cannot be the same")
	}
	return nil
}

// forced checks that the columns named by the options are among those copied, of the
// table t if it is one.
func (o *copyOptions) forced(columns []string, t *catalog.Object) error {
	for _, f := range []struct {
		name string
		cols map[string]bool
	}{{"FORCE_QUOTE", o.forceQuote}, {"FORCE_NOT_NULL", o.forceNN}, {"FORCE_NULL", o.forceNull}} {
		for c := range f.cols {
			if c != "*" && t != nil && t.Column(c) < 0 {
				return undefinedColumn(c, t)
			}
			if c != "*" && !slices.Contains(columns, c) {
				return pgerror.New(pgerror.InvalidColumnReference, "%s column \"%s\" not referenced by COPY", f.name, c)
			}
		}
	}
	return nil
}
