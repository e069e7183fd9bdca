package textsearch

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// parsed is a lexeme of an input, with its positions.
type parsed struct {
	word string
	pos  []Pos
}

// ParseVector appends the vector that an input text says.
func ParseVector(dst []byte, s string) ([]byte, error) {
	sc := scanner{all: s, rest: s}
	var words []parsed
	total := 0
	for {
		word, pos, ok, err := sc.word()
		if err != nil {
			return dst, err
		}
		if !ok {
			break
		}
		if len(word) >= MaxWord {
			return dst, pgerror.New(pgerror.ProgramLimitExceeded, "word is too long (%d bytes, max %d bytes)", len(word), MaxWord-1)
		}
		if total > maxData {
			return dst, errVectorTooLong(total)
		}
		total += len(word)
		words = append(words, parsed{string(word), slices.Clone(pos)})
	}
	return appendWords(dst, words)
}

// appendWords appends the vector of lexemes in any order.
func appendWords(dst []byte, words []parsed) ([]byte, error) {
	slices.SortStableFunc(words, func(a, b parsed) int { return strings.Compare(a.word, b.word) })
	var b Builder
	for i := 0; i < len(words); {
		pos := words[i].pos
		j := i + 1
		for ; j < len(words) && words[j].word == words[i].word; j++ {
			pos = append(pos, words[j].pos...)
		}
		b.String(words[i].word)
		if len(pos) > 0 {
			for _, p := range sortPos(pos) {
				b.Pos(p)
			}
		}
		i = j
	}
	return b.Append(dst)
}

// appendQuoted appends a lexeme in quotes.
func appendQuoted(dst, word []byte) []byte {
	dst = append(dst, '\'')
	for _, c := range word {
		if c == '\'' || c == '\\' {
			dst = append(dst, c)
		}
		dst = append(dst, c)
	}
	return append(dst, '\'')
}

// AppendText appends the text form of a vector.
func (v Vector) AppendText(dst []byte) []byte {
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ' ')
		}
		word, n, _ := v.entry(i)
		dst = appendQuoted(dst, word)
		for k := range n {
			p := v.Pos(i, k)
			if k == 0 {
				dst = append(dst, ':')
			} else {
				dst = append(dst, ',')
			}
			dst = appendInt(dst, p.At())
			if w := p.Weight(); w > 0 {
				dst = append(dst, 'D'-w)
			}
		}
	}
	return dst
}

// AppendBinary appends the binary form of a vector.
func (v Vector) AppendBinary(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(v.Len()))
	for i := range v.Len() {
		word, n, _ := v.entry(i)
		dst = append(append(dst, word...), 0)
		dst = binary.BigEndian.AppendUint16(dst, uint16(n))
		for k := range n {
			dst = binary.BigEndian.AppendUint16(dst, uint16(v.Pos(i, k)))
		}
	}
	return dst
}

// message reads a binary form.
type message struct {
	rest []byte
	err  error
}

func (m *message) fail(err error) {
	if m.err == nil {
		m.err = err
	}
	m.rest = nil
}

func (m *message) bytes(n int) []byte {
	if len(m.rest) < n {
		m.fail(pgerror.New(pgerror.ProtocolViolation, "insufficient data left in message"))
		return make([]byte, n)
	}
	b := m.rest[:n]
	m.rest = m.rest[n:]
	return b
}

func (m *message) uint8() uint8   { return m.bytes(1)[0] }
func (m *message) uint16() uint16 { return binary.BigEndian.Uint16(m.bytes(2)) }
func (m *message) uint32() uint32 { return binary.BigEndian.Uint32(m.bytes(4)) }

func (m *message) string(check func(string) error) string {
	i := bytes.IndexByte(m.rest, 0)
	if i < 0 {
		m.fail(pgerror.New(pgerror.ProtocolViolation, "invalid string in message"))
		return ""
	}
	s := string(m.bytes(i))
	m.bytes(1)
	if err := check(s); err != nil {
		m.fail(err)
	}
	return s
}

func (m *message) end() error {
	if m.err == nil && len(m.rest) > 0 {
		return pgerror.New(pgerror.InvalidBinaryRepresentation, "incorrect binary data format")
	}
	return m.err
}

func errInternal(format string, args ...any) error {
	return pgerror.New(pgerror.InternalError, format, args...)
}

// ReadVector appends the vector whose binary form is p; check looks at its
// strings' encoding.
func ReadVector(dst, p []byte, check func(string) error) ([]byte, error) {
	m := message{rest: p}
	n := int32(m.uint32())
	if n < 0 {
		return dst, errInternal("invalid size of tsvector")
	}
	var words []parsed
	for i := int32(0); i < n && m.err == nil; i++ {
		w := parsed{word: m.string(check)}
		count := int(m.uint16())
		switch {
		case len(w.word) > MaxWord:
			return dst, errInternal("invalid tsvector: lexeme too long")
		case count > maxPosCount:
			return dst, errInternal("unexpected number of tsvector positions")
		}
		for k := range count {
			w.pos = append(w.pos, Pos(m.uint16()))
			if k > 0 && w.pos[k].At() <= w.pos[k-1].At() && m.err == nil {
				return dst, errInternal("position information is misordered")
			}
		}
		words = append(words, w)
	}
	if err := m.end(); err != nil {
		return dst, err
	}
	return appendWords(dst, words)
}
