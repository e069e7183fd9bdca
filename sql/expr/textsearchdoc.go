package expr

import (
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/textsearch"
	"github.com/streamdb/streamdb/sql/textsearch/config"
	"github.com/streamdb/streamdb/sql/types"
)

var (
	regConfig = types.Of(types.OIDRegconfig)
	regDict   = types.Of(types.OIDRegdictionary)
)

// defaultConfig is the configuration where the session sets none.
const defaultConfig = "english"

// currentConfig is the configuration of the session.
func (x *Eval) currentConfig() (uint32, *pgerror.Error) {
	name := ""
	if x.Context != nil {
		name = x.setting("default_text_search_config")
	}
	if name == "" {
		name = defaultConfig
	}
	b := columnar.NewBuilder(columnar.KindInt64, 1)
	if err := types.ParseText(b, regConfig, name, nil); err != nil {
		return 0, pgerror.As(err)
	}
	return uint32(b.Build().Int64s()[0]), nil
}

// configs makes configurations; the last is kept.
type configs struct {
	pos  int // of the call
	oid  uint32
	last *config.Config
	doc  *config.Document
}

func (c *configs) of(oid uint32) (*config.Config, *pgerror.Error) {
	if c.last == nil || c.oid != oid {
		last, err := config.New(oid)
		if err != nil {
			return nil, pgerror.As(err)
		}
		c.oid, c.last, c.doc = oid, last, last.NewDocument()
	}
	return c.last, nil
}

// configFunc is a function of a text in a configuration. The arguments are those
// behind the configuration.
type configFunc = func(x *Eval, c *configs, a Args, i int, out *columnar.Builder) *pgerror.Error

// configFn registers a function with the session's configuration, and one with
// a configuration as its first argument.
func configFn(name string, ret types.Type, make func() configFunc, args ...types.Type) {
	for _, given := range []bool{false, true} {
		kernel := func(c *Call, x *Eval, vecs []*columnar.Vec, n int) *columnar.Vec {
			cfg := configs{pos: c.Pos}
			f := make()
			return RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
				var oid uint32
				var err *pgerror.Error
				if given {
					oid, a = uint32(a.Int64(0, i)), a[1:]
				} else if oid, err = x.currentConfig(); err != nil {
					return err
				}
				if _, err = cfg.of(oid); err != nil {
					return err
				}
				return f(x, &cfg, a, i, out)
			})(c, x, vecs, n)
		}
		f := Function{Name: name, Args: args, Ret: ret, Strict: true, Volatility: Stable, Notes: ret == tsQuery, Consts: ScalarConsts, Eval: kernel}
		if given {
			f.Args, f.Volatility = append([]types.Type{regConfig}, args...), Immutable
		}
		Register(f)
	}
}

// same makes a configFunc that has nothing to keep.
func same(f configFunc) func() configFunc { return func() configFunc { return f } }

// textVector is to_tsvector of a text.
func textVector(_ *Eval, c *configs, a Args, i int, out *columnar.Builder) *pgerror.Error {
	c.doc.Reset()
	c.doc.Add(text(a.Bytes(0, i)))
	return extend(out, c.doc.Append)
}

// jsonParts says which parts of a JSON document count.
type jsonParts struct{ strings, numbers, booleans, keys bool }

const partsHint = `Possible values are: "string", "numeric", "boolean", "key", and "all".`

// readJSONParts reads an argument that names parts.
func readJSONParts(j types.JSONDoc) (p jsonParts, err *pgerror.Error) {
	docs := []types.JSONDoc{j}
	switch j.Kind() {
	case types.JSONKindArray:
		docs = nil
		for k := range j.Len() {
			docs = append(docs, j.Elem(k))
		}
	case types.JSONKindObject:
		return p, errParam("wrong flag type, only arrays and scalars are allowed")
	}
	for _, d := range docs {
		if d.Kind() != types.JSONKindString {
			return p, errParam("flag array element is not a string").WithHint(partsHint)
		}
		switch s := string(d.Str()); strings.ToLower(s) {
		case "all":
			p = jsonParts{true, true, true, true}
		case "key":
			p.keys = true
		case "string":
			p.strings = true
		case "numeric":
			p.numbers = true
		case "boolean":
			p.booleans = true
		default:
			return p, errParam("wrong flag in flag array: \"%s\"", s).WithHint(partsHint)
		}
	}
	return p, nil
}

// addDoc adds the parts of a jsonb document.
func (p jsonParts) addDoc(d *config.Document, j types.JSONDoc) {
	switch j.Kind() {
	case types.JSONKindObject:
		for k := range j.Len() {
			if p.keys {
				d.Add(text(j.Key(k)))
			}
			p.addDoc(d, j.Value(k))
		}
	case types.JSONKindArray:
		for k := range j.Len() {
			p.addDoc(d, j.Elem(k))
		}
	case types.JSONKindString:
		if p.strings {
			d.Add(text(j.Str()))
		}
	case types.JSONKindNumber:
		if p.numbers {
			d.Add(string(decimal.AppendText(nil, j.Number())))
		}
	case types.JSONKindTrue, types.JSONKindFalse:
		if p.booleans && j.Kind() == types.JSONKindTrue {
			d.Add("true")
		} else if p.booleans {
			d.Add("false")
		}
	}
}

// jsonDocument adds the parts of a JSON text.
type jsonDocument struct {
	jsonParts
	doc *config.Document
}

func (d *jsonDocument) Open(bool) error  { return nil }
func (d *jsonDocument) Close(bool) error { return nil }

func (d *jsonDocument) Key(key []byte) error {
	if d.keys {
		d.doc.Add(string(key))
	}
	return nil
}

func (d *jsonDocument) Scalar(l *types.JSONLexer) error {
	switch {
	case l.Tok == types.JSONString && d.strings:
		d.doc.Add(string(l.Str))
	case l.Tok == types.JSONNumber && d.numbers, (l.Tok == types.JSONTrue || l.Tok == types.JSONFalse) && d.booleans:
		d.doc.Add(l.Text())
	}
	return nil
}

// jsonVector is to_tsvector of a JSON document, with the parts as a second
// argument or the strings.
func jsonVector(binary bool) configFunc {
	return func(_ *Eval, c *configs, a Args, i int, out *columnar.Builder) *pgerror.Error {
		parts := jsonParts{strings: true}
		if len(a) == 2 {
			var err *pgerror.Error
			if parts, err = readJSONParts(a.Bytes(1, i)); err != nil {
				return err
			}
		}
		c.doc.Reset()
		if binary {
			parts.addDoc(c.doc, a.Bytes(0, i))
		} else if err := types.ParseJSON(&types.JSONLexer{S: text(a.Bytes(0, i)), Decode: true}, &jsonDocument{parts, c.doc}); err != nil {
			return pgerror.As(err)
		}
		return extend(out, c.doc.Append)
	}
}

// textQuery is to_tsquery and its kin.
func textQuery(syntax textsearch.Syntax, phrase bool) configFunc {
	return func(x *Eval, c *configs, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return extend(out, func(dst []byte) ([]byte, error) {
			from, s := len(dst), text(a.Bytes(0, i))
			dst, err := c.last.Query(dst, s, syntax, phrase)
			if err == nil && textsearch.Query(dst[from:]).Len() == 0 {
				x.noticeEmptyQuery(c.pos, s, syntax == textsearch.Plain)
			}
			return dst, err
		})
	}
}

// noticeEmptyQuery tells that a query of text search has become empty: it may match
// nothing that its author thought of.
func (x *Eval) noticeEmptyQuery(pos int, s string, plain bool) {
	if x.Context == nil || x.Notice == nil {
		return
	}
	e := &pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: "text-search query contains only stop words or doesn't contain lexemes, ignored"}
	if s == "" || !plain && strings.TrimSpace(s) == "" {
		e.Message = "text-search query doesn't contain lexemes: \"" + s + "\""
	}
	x.Notice(pos, e)
}

// NoteConst evaluates a call with constant arguments that may have something to tell the
// client: if it is folded later, nobody listens.
func NoteConst(e Expr, session *Context) {
	c, ok := e.(*Call)
	if !ok || !c.Fn.Notes || c.Fn.Volatility != Immutable || session == nil || session.Notice == nil {
		return
	}
	for _, a := range c.Args {
		if _, ok := a.(*Const); !ok {
			return
		}
	}
	_, _ = EvalConst(e, session) // an error is told when the value is needed
}

// headliner is ts_headline(document, query [, options]).
type headliner struct {
	trees   queryTrees
	options templates[*config.Options]
	buf     []byte
}

// run calls f with what makes a headline of a text.
func (h *headliner) run(c *configs, a Args, i int, f func(line func(s string) []byte) error) *pgerror.Error {
	var options []byte
	if len(a) == 3 {
		options = a.Bytes(2, i)
	}
	o, err := h.options.of(options)
	if err == nil {
		q := h.trees.of(a.Bytes(1, i))
		err = f(func(s string) []byte {
			h.buf = c.last.Headline(h.buf[:0], s, q, o)
			return h.buf
		})
	}
	if err != nil {
		return pgerror.As(err)
	}
	return nil
}

func newHeadliner() *headliner {
	return &headliner{options: templates[*config.Options]{compile: config.ParseOptions}}
}

func textHeadline() configFunc {
	h := newHeadliner()
	return func(_ *Eval, c *configs, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return h.run(c, a, i, func(line func(string) []byte) error {
			out.Bytes(line(text(a.Bytes(0, i))))
			return nil
		})
	}
}

// jsonbHeadline makes headlines of the strings of a document.
func jsonbHeadline() configFunc {
	h := newHeadliner()
	return func(_ *Eval, c *configs, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return h.run(c, a, i, func(line func(string) []byte) error {
			var b types.JSONBuilder
			headlineDoc(&b, a.Bytes(0, i), line)
			out.Extend(b.Append)
			return nil
		})
	}
}

func headlineDoc(b *types.JSONBuilder, j types.JSONDoc, line func(string) []byte) {
	switch j.Kind() {
	case types.JSONKindObject:
		b.Begin(true)
		for k := range j.Len() {
			b.Key(j.Key(k))
			headlineDoc(b, j.Value(k), line)
		}
		b.End()
	case types.JSONKindArray:
		b.Begin(false)
		for k := range j.Len() {
			headlineDoc(b, j.Elem(k), line)
		}
		b.End()
	case types.JSONKindString:
		b.String(line(text(j.Str())))
	default:
		b.Doc(j)
	}
}

// jsonHeadlines writes a JSON text with headlines for its strings.
type jsonHeadlines struct {
	dst   []byte
	line  func(string) []byte
	value bool // a value comes before
}

func (j *jsonHeadlines) comma() {
	if j.value {
		j.dst = append(j.dst, ',')
	}
	j.value = false
}

func (j *jsonHeadlines) Open(object bool) error {
	j.comma()
	if object {
		j.dst = append(j.dst, '{')
	} else {
		j.dst = append(j.dst, '[')
	}
	return nil
}

func (j *jsonHeadlines) Close(object bool) error {
	if j.value = true; object {
		j.dst = append(j.dst, '}')
	} else {
		j.dst = append(j.dst, ']')
	}
	return nil
}

func (j *jsonHeadlines) Key(key []byte) error {
	j.comma()
	j.dst = append(types.AppendJSONString(j.dst, key), ':')
	return nil
}

func (j *jsonHeadlines) Scalar(l *types.JSONLexer) error {
	j.comma()
	if j.value = true; l.Tok == types.JSONString {
		j.dst = types.AppendJSONString(j.dst, j.line(string(l.Str)))
	} else {
		j.dst = append(j.dst, l.Text()...)
	}
	return nil
}

func jsonHeadline() configFunc {
	h := newHeadliner()
	return func(_ *Eval, c *configs, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return h.run(c, a, i, func(line func(string) []byte) error {
			j := jsonHeadlines{line: line}
			if err := types.ParseJSON(&types.JSONLexer{S: text(a.Bytes(0, i)), Decode: true}, &j); err != nil {
				return err
			}
			out.Bytes(j.dst)
			return nil
		})
	}
}

// matchText is @@ of a text and a query, or of two texts.
func matchText(query bool) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		var cfg configs
		var trees queryTrees
		var doc, q []byte
		return RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			oid, perr := x.currentConfig()
			if perr == nil {
				_, perr = cfg.of(oid)
			}
			if perr != nil {
				return perr
			}
			cfg.doc.Reset()
			cfg.doc.Add(text(a.Bytes(0, i)))
			var err error
			if doc, err = cfg.doc.Append(doc[:0]); err != nil {
				return pgerror.As(err)
			}
			if q = append(q[:0], a.Bytes(1, i)...); !query {
				if q, err = cfg.last.Query(nil, string(q), textsearch.Plain, false); err != nil {
					return pgerror.As(err)
				}
			}
			out.Bool(textsearch.Match(doc, trees.of(q)))
			return nil
		})(c, x, args, n)
	}
}

func registerDocuments() {
	configFn("to_tsvector", tsVector, same(textVector), types.Text)
	for _, t := range []types.Type{types.JSON, types.JSONB} {
		f := same(jsonVector(t == types.JSONB))
		configFn("to_tsvector", tsVector, f, t)
		configFn(typName(t.OID)+"_to_tsvector", tsVector, f, t, types.JSONB)
	}
	configFn("to_tsquery", tsQuery, same(textQuery(textsearch.Standard, true)), types.Text)
	configFn("plainto_tsquery", tsQuery, same(textQuery(textsearch.Plain, false)), types.Text)
	configFn("phraseto_tsquery", tsQuery, same(textQuery(textsearch.Plain, true)), types.Text)
	configFn("websearch_to_tsquery", tsQuery, same(textQuery(textsearch.Web, true)), types.Text)
	for _, h := range []struct {
		t types.Type
		f func() configFunc
	}{{types.Text, textHeadline}, {types.JSON, jsonHeadline}, {types.JSONB, jsonbHeadline}} {
		configFn("ts_headline", h.t, h.f, h.t, tsQuery)
		configFn("ts_headline", h.t, h.f, h.t, tsQuery, types.Text)
	}
	for _, t := range []types.Type{types.Text, tsQuery} {
		Register(Function{Name: "@@", Operator: true, Args: []types.Type{types.Text, t}, Ret: types.Bool, Strict: true,
			Volatility: Stable, Consts: ScalarConsts, Eval: matchText(t == tsQuery)})
	}
	Register(Function{Name: "get_current_ts_config", Ret: regConfig, Strict: true, Volatility: Stable,
		Eval: RowKernel(func(x *Eval, _ Args, _ int, out *columnar.Builder) *pgerror.Error {
			oid, err := x.currentConfig()
			if err == nil {
				out.Int64(int64(oid))
			}
			return err
		})})
}
