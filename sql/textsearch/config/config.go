package config

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/textsearch"
)

// Config is a configuration at work. It is for one goroutine.
type Config struct {
	parser               *Parser
	words, ascii, simple *dictionary
}

// New makes the configuration with an OID.
func New(oid uint32) (*Config, error) {
	c := textsearch.ConfigByOID(oid)
	if c == nil {
		return nil, pgerror.New(pgerror.InternalError, "cache lookup failed for text search configuration %d", oid)
	}
	words, err := newDictionary(c.Words)
	if err != nil {
		return nil, err
	}
	ascii := words
	if c.ASCII != c.Words {
		if ascii, err = newDictionary(c.ASCII); err != nil {
			return nil, err
		}
	}
	return &Config{parser: NewParser(""), words: words, ascii: ascii, simple: &dictionary{}}, nil
}

// dictionary is that for tokens of a type, nil if they are passed over.
func (c *Config) dictionary(t TokenType) *dictionary {
	switch t {
	case tokBlank, tokTag, tokProtocol, tokEntity:
		return nil
	case tokASCIIWord, tokASCIIPart, tokASCIIHWord:
		return c.ascii
	case tokWord, tokPart, tokHWord:
		return c.words
	}
	return c.simple
}

// DictName names the dictionary of a configuration for tokens of a type, "" if
// there is none.
func DictName(c *textsearch.Config, t TokenType) string {
	switch t {
	case tokBlank, tokTag, tokProtocol, tokEntity:
		return ""
	case tokASCIIWord, tokASCIIPart, tokASCIIHWord:
		return c.ASCII
	case tokWord, tokPart, tokHWord:
		return c.Words
	}
	return textsearch.DictSimple
}

// lexeme is a lexeme and its place in a text, from 1.
type lexeme struct {
	word string
	at   int
}

// lexemes appends the lexemes of a text; last is the place of its last token.
// The places go on from one text to the next.
func (c *Config) lexemes(dst []lexeme, text string, last int) ([]lexeme, int) {
	c.parser.Reset(text)
	for {
		t, token := c.parser.Next()
		if t == 0 {
			return dst, last
		}
		if len(token) >= textsearch.MaxWord {
			continue
		}
		d := c.dictionary(t)
		if d == nil {
			continue
		}
		last++
		if w, ok := d.lexeme(token); ok {
			dst = append(dst, lexeme{w, textsearch.MakePos(last, 0).At()})
		}
	}
}

// Document makes the vector of some texts, one after the other.
type Document struct {
	c       *Config
	lexemes []lexeme
	last    int
	b       textsearch.Builder
}

// NewDocument starts an empty document.
func (c *Config) NewDocument() *Document { return &Document{c: c} }

// Reset makes the document empty.
func (d *Document) Reset() { d.lexemes, d.last = d.lexemes[:0], 0 }

// Add adds a text. It is not next to the one before: no phrase spans both.
func (d *Document) Add(text string) {
	n := len(d.lexemes)
	if d.lexemes, d.last = d.c.lexemes(d.lexemes, text, d.last); len(d.lexemes) > n {
		d.last++
	}
}

// maxPlaces is how many places of a lexeme a document keeps.
const maxPlaces = 255

// Append appends the document's vector.
func (d *Document) Append(dst []byte) ([]byte, error) {
	slices.SortFunc(d.lexemes, func(a, b lexeme) int { return cmp.Or(cmp.Compare(a.word, b.word), cmp.Compare(a.at, b.at)) })
	d.b.Reset()
	last := textsearch.MakePos(1<<20, 0).At()
	for i := 0; i < len(d.lexemes); {
		word := d.lexemes[i].word
		d.b.String(word)
		at, places := 0, 0
		for ; i < len(d.lexemes) && d.lexemes[i].word == word; i++ {
			l := d.lexemes[i]
			if places > 0 && (places >= maxPlaces || at == last || at == l.at) {
				continue
			}
			d.b.Pos(textsearch.MakePos(l.at, 0))
			at, places = l.at, places+1
		}
	}
	return d.b.Append(dst)
}

// Query appends the query that a text says; phrase says how the lexemes of one
// operand are put together: one after the other, or anywhere.
func (c *Config) Query(dst []byte, text string, syntax textsearch.Syntax, phrase bool) ([]byte, error) {
	if i := bytes.IndexByte([]byte(text), 0); i >= 0 {
		text = text[:i]
	}
	op := textsearch.OpAnd
	if phrase {
		op = textsearch.OpPhrase
	}
	var lexemes []lexeme
	p := textsearch.QueryParser{Operand: func(p *textsearch.QueryParser, word string, weights uint8, prefix bool) error {
		lexemes, _ = c.lexemes(lexemes[:0], word, 0)
		if len(lexemes) == 0 {
			p.PushStop()
			return nil
		}
		at := 0
		for i, l := range lexemes {
			for i > 0 && at+1 < l.at { // the stop words between
				p.PushStop()
				p.PushOperator(op, 1)
				at++
			}
			at = l.at
			if err := p.PushValue(l.word, weights, prefix); err != nil {
				return err
			}
			if i > 0 {
				p.PushOperator(op, 1)
			}
		}
		return nil
	}}
	n, err := p.Parse(text, syntax)
	if err != nil {
		return dst, err
	}
	return textsearch.AppendQuery(dst, n)
}
