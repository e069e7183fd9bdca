package coord

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// copyOptions are the options of COPY (PostgreSQL manual, COPY).
type copyOptions struct {
	format     string // text, csv, binary
	delimiter  byte
	null       string
	header     bool
	quote      byte
	escape     byte
	forceQuote map[string]bool // columns; "*" for all
	forceNull  map[string]bool
	forceNN    map[string]bool
}

func parseCopyOptions(opts []parser.Option) (*copyOptions, error) {
	o := &copyOptions{format: "text", quote: '"'}
	given := map[string]bool{}
	text := func(x parser.Option) string { return x.Value.Text }
	single := func(x parser.Option) (byte, error) {
		if len(x.Value.Text) != 1 {
			return 0, pgerror.New(pgerror.FeatureNotSupported, "COPY %s must be a single one-byte character", x.Name)
		}
		return x.Value.Text[0], nil
	}
	list := func(x parser.Option) map[string]bool {
		m := map[string]bool{}
		if x.Value.Kind != parser.ValueList {
			m[x.Value.Text] = true
		}
		for _, v := range x.Value.List {
			m[v.Text] = true
		}
		return m
	}
	for _, x := range opts {
		if x.Name == "format" {
			o.format = strings.ToLower(text(x))
		}
	}
	switch o.format {
	case "text":
		o.delimiter, o.null = '\t', `\N`
	case "csv":
		o.delimiter = ','
	case "binary":
	default:
		return nil, pgerror.New(pgerror.InvalidParameterValue, "COPY format \"%s\" not recognized", o.format)
	}
	for _, x := range opts {
		if given[x.Name] {
			return nil, pgerror.New(pgerror.SyntaxError, "conflicting or redundant options").At(x.Pos)
		}
		given[x.Name] = true
		var err error
		switch x.Name {
		case "format", "freeze":
		case "delimiter":
			o.delimiter, err = single(x)
		case "null":
			o.null = text(x)
		case "header":
			b, ok := parseBoolSetting(text(x))
			o.header = x.Value.Kind == parser.ValueNone || ok && b || strings.EqualFold(text(x), "match")
		case "quote":
			o.quote, err = single(x)
		case "escape":
			o.escape, err = single(x)
		case "force_quote":
			o.forceQuote = list(x)
		case "force_not_null":
			o.forceNN = list(x)
		case "force_null":
			o.forceNull = list(x)
		case "encoding":
			if e := strings.ToUpper(strings.ReplaceAll(text(x), "-", "")); e != "UTF8" && e != "SQL_ASCII" {
				err = pgerror.Unsupported("COPY encoding " + text(x))
			}
		default:
			err = pgerror.New(pgerror.SyntaxError, "option \"%s\" not recognized", x.Name).At(x.Pos)
		}
		if err != nil {
			return nil, err
		}
	}
	if o.escape == 0 {
		o.escape = o.quote
	}
	if o.format == "csv" && o.delimiter == o.quote {
		return nil, pgerror.New(pgerror.InvalidParameterValue, "COPY delimiter and quote must be different")
	}
	return o, nil
}

// execCopy runs COPY.
func (s *Session) execCopy(ctx context.Context, p *prepared, n *parser.Copy, w pgwire.ResultWriter) (string, error) {
	if n.File != "" || n.Program {
		return "", pgerror.New(pgerror.InsufficientPrivilege, "COPY from or to a file or program on the server is not allowed").
			WithHint("Use COPY FROM STDIN or COPY TO STDOUT, or psql's \\copy.")
	}
	o, err := parseCopyOptions(n.Options)
	if err != nil {
		return "", err
	}
	switch {
	case n.Subscribe != nil:
		return s.copySubscribe(ctx, p, n, o, w)
	case n.From:
		return s.copyFrom(ctx, n, o, w)
	}
	return s.copyTo(ctx, p, n, o, w)
}

// copyColumns are the columns that a COPY of a table names, or all.
func copyColumns(t *catalog.Object, names []string) ([]int, error) {
	var cols []int
	for _, name := range names {
		i := slices.IndexFunc(t.Columns, func(c catalog.Column) bool { return c.Name == name })
		if i < 0 {
			return nil, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, t.Name)
		}
		if slices.Contains(cols, i) {
			return nil, pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", name)
		}
		cols = append(cols, i)
	}
	if len(names) == 0 {
		for i := range t.Columns {
			cols = append(cols, i)
		}
	}
	return cols, nil
}

func (s *Session) copyFrom(ctx context.Context, n *parser.Copy, o *copyOptions, w pgwire.ResultWriter) (string, error) {
	t := s.snapshot().Resolve(catalog.KindTable, n.Table.Schema, n.Table.Name, s.relationPath())
	if t == nil {
		return "", undefinedRelation(n.Table.Schema, n.Table.Name)
	}
	if err := s.writable(t, "COPY"); err != nil {
		return "", err
	}
	cols, err := copyColumns(t, n.Columns)
	if err != nil {
		return "", err
	}
	if n.Where != nil {
		return "", pgerror.Unsupported("COPY … WHERE")
	}
	if len(t.PrimaryKey) > 0 || len(t.Unique) > 0 {
		if err := s.lock(ctx, t); err != nil {
			return "", err
		}
	}
	rd, err := w.CopyIn(o.format == "binary", len(cols))
	if err != nil {
		return "", err
	}
	in := &copyReader{s: s, t: t, cols: cols, o: o, opts: s.TextOptions()}
	if err := in.start(); err != nil {
		return "", drain(rd, err)
	}
	total := 0
	bytes := 0
	flush := func() error {
		b, err := in.batch()
		if err != nil {
			return err
		}
		total += b.N
		if bytes += b.MemSize(); bytes > maxWriteBytes {
			return pgerror.New(pgerror.ConfigurationLimitExceeded, "COPY writes more than %d MiB in one transaction", maxWriteBytes>>20)
		}
		return s.insertRows(ctx, t, b)
	}
	rows := newCopyRows(rd, o)
	for {
		fields, err := rows.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = in.row(fields, rows)
		}
		if err == nil && in.n >= 1<<15 {
			err = flush()
		}
		if err != nil {
			return "", drain(rd, err)
		}
	}
	if err := flush(); err != nil {
		return "", err
	}
	return fmt.Sprintf("COPY %d", total), nil
}

// drain reads what the client still sends after an error, and returns the error.
func drain(r io.Reader, err error) error {
	if e := (*pgerror.Error)(nil); errors.As(err, &e) && e.Code == pgerror.QueryCanceled {
		return err
	}
	_, _ = io.Copy(io.Discard, r)
	return err
}

// copyReader makes table rows of COPY's fields.
type copyReader struct {
	s        *Session
	t        *catalog.Object
	cols     []int
	o        *copyOptions
	opts     *types.Options
	builders []*columnar.Builder
	defaults []*expr.Const // of the columns that are not given
	n        int
}

func (c *copyReader) start() error {
	c.builders = make([]*columnar.Builder, len(c.t.Columns))
	c.defaults = make([]*expr.Const, len(c.t.Columns))
	for i, col := range c.t.Columns {
		c.builders[i] = columnar.NewBuilder(col.Type.Kind(), 0)
		if slices.Contains(c.cols, i) {
			continue
		}
		e := nullConst(col)
		if col.Default != "" {
			x, err := parser.ParseExpr(col.Default)
			if err != nil {
				return err
			}
			if e, err = planner.BindExpr(c.s.bindContext(nil), col.Default, &x, nil, "DEFAULT expressions", col.Type); err != nil {
				return err
			}
		}
		v, err := expr.EvalConst(e, c.s.exprContext())
		if err != nil {
			return err
		}
		c.defaults[i] = v
	}
	return nil
}

// row adds one record.
func (c *copyReader) row(fields []copyField, at *copyRows) error {
	where := func(col int, value []byte, err error) error {
		e := *pgerror.As(err)
		e.Where = fmt.Sprintf("COPY %s, line %d", c.t.Name, at.line)
		if col >= 0 {
			e.Where += ", column " + c.t.Columns[col].Name
			if value != nil {
				e.Where += ": \"" + shortened(value) + "\""
			}
		}
		return &e
	}
	if len(fields) < len(c.cols) {
		return where(-1, nil, pgerror.New(pgerror.BadCopyFileFormat, "missing data for column \"%s\"", c.t.Columns[c.cols[len(fields)]].Name))
	}
	if len(fields) > len(c.cols) {
		return where(-1, nil, pgerror.New(pgerror.BadCopyFileFormat, "extra data after last expected column"))
	}
	for i, f := range fields {
		col := c.cols[i]
		name, typ, b := c.t.Columns[col].Name, c.t.Columns[col].Type, c.builders[col]
		null := f.null
		if c.o.format == "csv" && (null && c.o.forceNN[name] || c.o.forceNN["*"] && null) {
			null = false
		}
		if c.o.format == "csv" && f.quoted && (c.o.forceNull[name] || c.o.forceNull["*"]) && string(f.data) == c.o.null {
			null = true
		}
		var err error
		switch {
		case null:
			b.Null()
		case c.o.format == "binary":
			err = types.ParseBinary(b, typ, f.data)
		default:
			err = types.ParseTextBytes(b, typ, f.data, c.opts)
		}
		if err != nil {
			if c.o.format == "binary" {
				f.data = nil
			}
			return where(col, f.data, err)
		}
	}
	for i, d := range c.defaults {
		if d != nil {
			c.builders[i].AppendFrom(d.Val, 0)
		}
	}
	c.n++
	return nil
}

// shortened is a value as the context of an error shows it.
func shortened(value []byte) string {
	const most = 100
	if len(value) <= most {
		return string(value)
	}
	return strings.ToValidUTF8(string(value[:most]), "") + "..."
}

func (c *copyReader) batch() (columnar.Batch, error) {
	b := columnar.Batch{N: c.n}
	for _, x := range c.builders {
		b.Cols = append(b.Cols, x.Build())
	}
	c.n = 0
	return b, nil
}

// copyField is one field of a record.
type copyField struct {
	data   []byte
	null   bool
	quoted bool
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
			c.fields = append(c.fields, copyField{data: c.unescape(raw), null: string(raw) == c.o.null})
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
		c.fields = append(c.fields, copyField{data: data, quoted: quoted, null: !quoted && string(data) == c.o.null})
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

// copyTo runs COPY … TO STDOUT.
func (s *Session) copyTo(ctx context.Context, p *prepared, n *parser.Copy, o *copyOptions, w pgwire.ResultWriter) (string, error) {
	var rel plan.Rel
	var cols []planner.ResultColumn
	switch {
	case n.Query != nil:
		q, err := planner.BindQuery(s.bindContext(nil), p.stmt.Text, n.Query)
		if err != nil {
			return "", err
		}
		rel, cols = q.Rel, q.Columns
	case n.DML != nil:
		return "", pgerror.Unsupported("COPY of a data-modifying statement")
	default:
		t := s.snapshot().Resolve(catalog.KindTable, n.Table.Schema, n.Table.Name, s.relationPath())
		if t == nil {
			return "", undefinedRelation(n.Table.Schema, n.Table.Name)
		}
		if t.Kind == catalog.KindView {
			return "", pgerror.New(pgerror.WrongObjectType, "cannot copy from view \"%s\"", t.Name).WithHint("Try the COPY (SELECT ...) TO variant.")
		}
		idx, err := copyColumns(t, n.Columns)
		if err != nil {
			return "", err
		}
		all := planColumns(t)
		get := &plan.Get{ID: t.ID, Name: t.Schema + "." + t.Name, Cols: all}
		pr := &plan.Project{Input: get}
		for _, i := range idx {
			pr.Exprs = append(pr.Exprs, plan.RefTo(all, i))
			pr.Cols = append(pr.Cols, all[i])
			cols = append(cols, planner.ResultColumn{Column: all[i]})
		}
		rel = pr
	}
	rel, err := planner.Optimize(rel, s.optimizeOptions())
	if err != nil {
		return "", err
	}
	out, err := w.CopyOut(o.format == "binary", len(cols))
	if err != nil {
		return "", err
	}
	enc := newCopyEncoder(o, resultColumns(cols), s.TextOptions())
	if err := enc.begin(out); err != nil {
		return "", err
	}
	rows := 0
	err = s.runQuery(ctx, rel, nil, false, func(b *columnar.Batch) error {
		rows += b.N
		for i := range b.N {
			if err := enc.row(out, b, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if err := enc.end(out); err != nil {
		return "", err
	}
	return fmt.Sprintf("COPY %d", rows), out.Close()
}

// copyEncoder writes rows in a COPY format.
type copyEncoder struct {
	o    *copyOptions
	cols []pgwire.Column
	opts *types.Options
	buf  []byte
	val  []byte
}

func newCopyEncoder(o *copyOptions, cols []pgwire.Column, opts *types.Options) *copyEncoder {
	return &copyEncoder{o: o, cols: cols, opts: opts}
}

func (e *copyEncoder) begin(w io.Writer) error {
	e.buf = e.buf[:0]
	switch {
	case e.o.format == "binary":
		e.buf = append(append(e.buf, copySignature...), 0, 0, 0, 0, 0, 0, 0, 0)
	case e.o.header:
		for i, c := range e.cols {
			if i > 0 {
				e.buf = append(e.buf, e.o.delimiter)
			}
			e.field([]byte(c.Name), c.Name)
		}
		e.buf = append(e.buf, '\n')
	default:
		return nil
	}
	_, err := w.Write(e.buf)
	return err
}

func (e *copyEncoder) end(w io.Writer) error {
	if e.o.format != "binary" {
		return nil
	}
	_, err := w.Write([]byte{0xff, 0xff})
	return err
}

// row writes row i of a batch.
func (e *copyEncoder) row(w io.Writer, b *columnar.Batch, i int) error {
	e.buf = e.buf[:0]
	if e.o.format == "binary" {
		e.buf = binary.BigEndian.AppendUint16(e.buf, uint16(len(e.cols)))
	}
	for c := range e.cols {
		v := b.Cols[c]
		switch {
		case e.o.format == "binary":
			if v.Null(i) {
				e.buf = append(e.buf, 0xff, 0xff, 0xff, 0xff)
				continue
			}
			at := len(e.buf)
			e.buf = types.AppendBinary(append(e.buf, 0, 0, 0, 0), e.cols[c].Type, v, i)
			binary.BigEndian.PutUint32(e.buf[at:], uint32(len(e.buf)-at-4))
		default:
			if c > 0 {
				e.buf = append(e.buf, e.o.delimiter)
			}
			if v.Null(i) {
				e.buf = append(e.buf, e.o.null...)
				continue
			}
			e.val = types.AppendText(e.val[:0], e.cols[c].Type, v, i, e.opts)
			e.field(e.val, e.cols[c].Name)
		}
	}
	if e.o.format != "binary" {
		e.buf = append(e.buf, '\n')
	}
	_, err := w.Write(e.buf)
	return err
}

// field appends a value in the text or CSV format.
func (e *copyEncoder) field(v []byte, column string) {
	if e.o.format == "csv" {
		quote := e.o.forceQuote[column] || e.o.forceQuote["*"] || string(v) == e.o.null || string(v) == `\.` && len(e.cols) == 1
		for _, b := range v {
			if b == e.o.delimiter || b == e.o.quote || b == '\n' || b == '\r' {
				quote = true
			}
		}
		if !quote {
			e.buf = append(e.buf, v...)
			return
		}
		e.buf = append(e.buf, e.o.quote)
		for _, b := range v {
			if b == e.o.quote || b == e.o.escape {
				e.buf = append(e.buf, e.o.escape)
			}
			e.buf = append(e.buf, b)
		}
		e.buf = append(e.buf, e.o.quote)
		return
	}
	for _, b := range v {
		switch b {
		case '\\':
			e.buf = append(e.buf, '\\', '\\')
		case '\b':
			e.buf = append(e.buf, '\\', 'b')
		case '\f':
			e.buf = append(e.buf, '\\', 'f')
		case '\n':
			e.buf = append(e.buf, '\\', 'n')
		case '\r':
			e.buf = append(e.buf, '\\', 'r')
		case '\t':
			e.buf = append(e.buf, '\\', 't')
		case '\v':
			e.buf = append(e.buf, '\\', 'v')
		default:
			if b == e.o.delimiter {
				e.buf = append(e.buf, '\\')
			}
			e.buf = append(e.buf, b)
		}
	}
}
