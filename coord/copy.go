package coord

import (
	"context"
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
		return s.copyFrom(ctx, p, n, o, w)
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
		for i, c := range t.Columns {
			if c.Generated == "" {
				cols = append(cols, i)
			}
		}
	}
	return cols, nil
}

func (s *Session) copyFrom(ctx context.Context, p *prepared, n *parser.Copy, o *copyOptions, w pgwire.ResultWriter) (string, error) {
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
	for _, c := range cols {
		if len(n.Columns) > 0 && t.Columns[c].Generated != "" {
			return "", pgerror.New(pgerror.InvalidColumnReference, "column \"%s\" is a generated column", t.Columns[c].Name).
				WithDetail("Generated columns cannot be used in COPY.")
		}
	}
	if err := s.lockForm(ctx, t.ID, false); err != nil {
		return "", err
	}
	if s.snapshot().ByID(t.ID) != t {
		return "", pgerror.New(pgerror.SerializationFailure, "the form of table \"%s\" has changed meanwhile", t.Name)
	}
	if len(t.Keys()) > 0 {
		if err := s.lock(ctx, t, true); err != nil {
			return "", err
		}
	}
	rd, err := w.CopyIn(o.format == "binary", len(cols))
	if err != nil {
		return "", err
	}
	in := &copyReader{s: s, t: t, cols: cols, o: o, opts: s.TextOptions()}
	if err := in.start(p, n.Where); err != nil {
		return "", drain(rd, err)
	}
	run, policy, err := s.copyRun(ctx, t)
	if err != nil {
		return "", drain(rd, err)
	}
	defer run.close()
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
		if policy != nil {
			_, err := run.onConflicts(policy, b)
			return err
		}
		return run.insert(t, b)
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
	if err := run.references(); err != nil {
		return "", err
	}
	return fmt.Sprintf("COPY %d", total), nil
}

// copyRun is what carries out a COPY to a table. The write is of an INSERT that goes
// by the table's policy for rows whose key is taken, nil if it has none.
func (s *Session) copyRun(ctx context.Context, t *catalog.Object) (*writeRun, *planner.Write, error) {
	run := &writeRun{writer: &writer{s: s, ctx: ctx}}
	if t.PrimaryKey == nil || t.OnConflict == "" && !s.set.bool("upsert_dml") {
		return run, nil, nil
	}
	stmts, err := parser.Parse("INSERT INTO " + quoteName(t.Schema) + "." + quoteName(t.Name) + " DEFAULT VALUES")
	if err != nil {
		return run, nil, err
	}
	b, err := planner.Bind(s.bindContext(nil), &stmts[0])
	if err != nil {
		return run, nil, err
	}
	w := b.(*planner.Write)
	if err := s.optimizeWrite(w); err != nil {
		return run, nil, err
	}
	run, err = s.newWriteRun(ctx, []*planner.Write{w}, nil, nil)
	return run, w, err
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
	builders []*columnar.Builder // of the columns given
	// rows makes table rows of the given columns, where WHERE admits them.
	rows *expr.Program
	n    int
}

// start prepares the rows of a COPY of statement p.
func (c *copyReader) start(p *prepared, where *parser.Expr) error {
	c.builders = make([]*columnar.Builder, len(c.t.Columns))
	mfp := expr.MapFilterProject{}
	given := map[int]int{}
	for k, i := range c.cols {
		c.builders[i] = columnar.NewBuilder(c.t.Columns[i].Type.Kind(), 0)
		given[i] = k
	}
	for i := range c.t.Columns {
		col := &c.t.Columns[i]
		if k, ok := given[i]; ok {
			mfp.Outputs = append(mfp.Outputs, &expr.Column{Index: k, Typ: col.Type, Name: col.Name})
			continue
		}
		e, err := c.s.defaultExpr(col, true)
		if err != nil {
			return err
		}
		mfp.Outputs = append(mfp.Outputs, e)
	}
	if where != nil {
		e, err := planner.BindExpr(c.s.bindContext(nil), p.stmt.Text, where, c.t, "COPY FROM WHERE conditions", types.Bool)
		if err != nil {
			return err
		}
		mfp.Filters = []expr.Expr{expr.Rewrite(e, func(x expr.Expr) expr.Expr {
			if col, ok := x.(*expr.Column); ok {
				return mfp.Outputs[col.Index]
			}
			return x
		})}
	}
	var err error
	c.rows, err = expr.Compile(mfp)
	return err
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
	for _, i := range c.cols {
		v, col := c.builders[i].Build(), &c.t.Columns[i]
		if row, err := expr.CheckDomain(col.Type.OID, v, c.s.exprContext()); err != nil {
			e := *pgerror.As(err)
			e.Where = fmt.Sprintf("COPY %s, column %s", c.t.Name, col.Name)
			if !v.Null(row) {
				e.Where += ": \"" + string(types.AppendText(nil, col.Type, v, row, c.opts)) + "\""
			}
			return b, &e
		}
		b.Cols = append(b.Cols, v)
	}
	c.n = 0
	out, _, errs := c.rows.Apply(c.s.exprContext(), &b, nil)
	if len(errs) > 0 {
		return out, errs[0].Err
	}
	return c.s.generate(c.t, out)
}
