package coord

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// copyField is one field of a record.
type copyField struct {
	data   []byte
	null   bool
	quoted bool
	raw    []byte // as it stands there
}

// copyRows cuts COPY data into records.
type copyRows struct {
	r      io.Reader
	o      *copyOptions
	buf    []byte
	at     int
	eof    bool
	line   int
	begun  bool
	head   bool   // the record is the header
	text   []byte // the record as it stands there
	fields []copyField
	arena  []byte
}

func newCopyRows(r io.Reader, o *copyOptions) *copyRows { return &copyRows{r: r, o: o} }

// maxCopyRecord bounds one record.
const maxCopyRecord = 256 << 20

// more reads more data; it reports false at the end.
func (c *copyRows) more() (bool, error) {
	if c.eof {
		return false, nil
	}
	if c.at > 0 {
		c.buf = append(c.buf[:0], c.buf[c.at:]...)
		c.at = 0
	}
	if len(c.buf) > maxCopyRecord {
		return false, pgerror.New(pgerror.ProgramLimitExceeded, "COPY record is longer than %d MiB", maxCopyRecord>>20)
	}
	c.buf = slices.Grow(c.buf, 1<<16)
	n, err := c.r.Read(c.buf[len(c.buf):cap(c.buf)])
	c.buf = c.buf[:len(c.buf)+n]
	if errors.Is(err, io.EOF) {
		c.eof = true
		return n > 0, nil
	}
	return true, err
}

// next gives the next record, io.EOF after the last.
func (c *copyRows) next() ([]copyField, error) {
	c.line++
	if c.o.format == "binary" {
		return c.nextBinary()
	}
	if !c.begun {
		c.begun = true
		if c.o.header && c.o.match {
			c.head = true
			return c.record()
		}
		if c.o.header {
			if _, err := c.record(); err != nil {
				return nil, err
			}
			c.line++
		}
	}
	return c.record()
}

func (c *copyRows) record() ([]copyField, error) {
	for {
		end, size, incomplete := c.lineEnd()
		if !incomplete {
			line := c.buf[c.at:end]
			c.at = end + size
			if string(line) == `\.` {
				c.at, c.eof = len(c.buf), true
				return nil, io.EOF
			}
			return c.split(line)
		}
		ok, err := c.more()
		if err != nil {
			return nil, err
		}
		if !ok {
			if c.at >= len(c.buf) {
				return nil, io.EOF
			}
			line := c.buf[c.at:]
			c.at = len(c.buf)
			if string(line) == `\.` {
				return nil, io.EOF
			}
			return c.split(line)
		}
	}
}

// lineEnd finds the end of the record that starts at c.at, and the length of
// its newline.
func (c *copyRows) lineEnd() (end, size int, incomplete bool) {
	inQuote := false
	for i := c.at; i < len(c.buf); i++ {
		switch b := c.buf[i]; {
		case c.o.format == "csv" && inQuote:
			if b == c.o.escape && c.o.escape != c.o.quote && i+1 < len(c.buf) {
				i++
			} else if b == c.o.quote {
				inQuote = false
			}
		case c.o.format == "csv" && b == c.o.quote:
			inQuote = true
		case c.o.format == "text" && b == '\\':
			i++
		case b == '\n':
			return i, 1, false
		case b == '\r':
			if i+1 < len(c.buf) && c.buf[i+1] == '\n' {
				return i, 2, false
			}
			if i+1 == len(c.buf) && !c.eof {
				return 0, 0, true
			}
			return i, 1, false
		}
	}
	return 0, 0, true
}

func (c *copyRows) split(line []byte) ([]copyField, error) {
	c.text = line
	c.fields, c.arena = c.fields[:0], c.arena[:0]
	if cap(c.arena) < len(line) {
		c.arena = make([]byte, 0, 2*len(line))
	}
	if c.o.format == "csv" {
		return c.splitCSV(line)
	}
	for start, i := 0, 0; ; i++ {
		if i < len(line) && line[i] == '\\' {
			i++
			continue
		}
		if i >= len(line) || line[i] == c.o.delimiter {
			raw := line[start:min(i, len(line))]
			c.fields = append(c.fields, copyField{data: c.unescape(raw), null: string(raw) == c.o.null, raw: raw})
			start = i + 1
			if i >= len(line) {
				return c.fields, nil
			}
		}
	}
}

// unescape undoes the backslashes of the text format.
func (c *copyRows) unescape(raw []byte) []byte {
	if !slices.Contains(raw, '\\') {
		return raw
	}
	at := len(c.arena)
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 == len(raw) {
			c.arena = append(c.arena, raw[i])
			continue
		}
		i++
		switch b := raw[i]; b {
		case 'b':
			c.arena = append(c.arena, '\b')
		case 'f':
			c.arena = append(c.arena, '\f')
		case 'n':
			c.arena = append(c.arena, '\n')
		case 'r':
			c.arena = append(c.arena, '\r')
		case 't':
			c.arena = append(c.arena, '\t')
		case 'v':
			c.arena = append(c.arena, '\v')
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v := int(b - '0')
			for k := 0; k < 2 && i+1 < len(raw) && raw[i+1] >= '0' && raw[i+1] <= '7'; k++ {
				i++
				v = v*8 + int(raw[i]-'0')
			}
			c.arena = append(c.arena, byte(v))
		case 'x':
			v, k := 0, 0
			for ; k < 2 && i+1 < len(raw) && hexDigit(raw[i+1]) >= 0; k++ {
				i++
				v = v*16 + hexDigit(raw[i])
			}
			if k == 0 {
				c.arena = append(c.arena, 'x')
			} else {
				c.arena = append(c.arena, byte(v))
			}
		default:
			c.arena = append(c.arena, b)
		}
	}
	return c.arena[at:]
}

func hexDigit(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}

func (c *copyRows) splitCSV(line []byte) ([]copyField, error) {
	for i := 0; ; {
		at := len(c.arena)
		quoted, open := false, false
		for i < len(line) {
			b := line[i]
			switch {
			case open && b == c.o.escape && i+1 < len(line) && (line[i+1] == c.o.quote || line[i+1] == c.o.escape):
				c.arena = append(c.arena, line[i+1])
				i++
			case b == c.o.quote:
				open = !open
				quoted = true
			case !open && b == c.o.delimiter:
				goto done
			default:
				c.arena = append(c.arena, b)
			}
			i++
		}
		if open {
			return nil, pgerror.New(pgerror.BadCopyFileFormat, "unterminated CSV quoted field")
		}
	done:
		data := c.arena[at:len(c.arena):len(c.arena)]
		c.fields = append(c.fields, copyField{data: data, quoted: quoted, null: !quoted && string(data) == c.o.null, raw: data})
		if i >= len(line) {
			return c.fields, nil
		}
		i++
	}
}

var copySignature = []byte("PGCOPY\n\xff\r\n\x00")

// need makes n bytes available; false at the end of the data.
func (c *copyRows) need(n int) (bool, error) {
	for len(c.buf)-c.at < n {
		ok, err := c.more()
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func (c *copyRows) nextBinary() ([]copyField, error) {
	cut := func() error { return pgerror.New(pgerror.BadCopyFileFormat, "unexpected EOF in COPY data") }
	if !c.begun {
		c.begun = true
		if ok, err := c.need(19); err != nil || !ok {
			return nil, errors.Join(err, cut())
		}
		if string(c.buf[c.at:c.at+11]) != string(copySignature) {
			return nil, pgerror.New(pgerror.BadCopyFileFormat, "COPY file signature not recognized")
		}
		ext := int(binary.BigEndian.Uint32(c.buf[c.at+15:]))
		c.at += 19
		if ext < 0 || ext > maxCopyRecord {
			return nil, pgerror.New(pgerror.BadCopyFileFormat, "invalid COPY file header (wrong length)")
		}
		if ok, err := c.need(ext); err != nil || !ok {
			return nil, errors.Join(err, cut())
		}
		c.at += ext
	}
	if ok, err := c.need(2); err != nil || !ok {
		if err == nil && len(c.buf) == c.at {
			return nil, io.EOF
		}
		return nil, errors.Join(err, cut())
	}
	n := int(int16(binary.BigEndian.Uint16(c.buf[c.at:])))
	c.at += 2
	if n == -1 {
		return nil, io.EOF
	}
	c.fields, c.arena = c.fields[:0], c.arena[:0]
	for range n {
		if ok, err := c.need(4); err != nil || !ok {
			return nil, errors.Join(err, cut())
		}
		l := int(int32(binary.BigEndian.Uint32(c.buf[c.at:])))
		c.at += 4
		if l == -1 {
			c.fields = append(c.fields, copyField{null: true})
			continue
		}
		if l < 0 || l > maxCopyRecord {
			return nil, pgerror.New(pgerror.BadCopyFileFormat, "invalid field size")
		}
		if ok, err := c.need(l); err != nil || !ok {
			return nil, errors.Join(err, cut())
		}
		c.fields = append(c.fields, copyField{data: slices.Clone(c.buf[c.at : c.at+l])})
		c.at += l
	}
	return c.fields, nil
}
