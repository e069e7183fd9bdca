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

// execCopy runs COPY.
func (s *Session) execCopy(ctx context.Context, p *prepared, n *parser.Copy, w pgwire.ResultWriter) (string, error) {
	if n.File != "" || n.Program {
		return "", pgerror.New(pgerror.InsufficientPrivilege, "COPY from or to a file or program on the server is not allowed").
			WithHint("Use COPY FROM STDIN or COPY TO STDOUT, or psql's \\copy.")
	}
	o, err := parseCopyOptions(n.Options, n.From)
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
	if err == nil {
		err = o.forced(columnNamesOf(t, cols), t)
	}
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
	in := &copyReader{s: s, t: t, cols: cols, o: o, opts: s.TextOptions()}
	if err := in.start(p, n.Where); err != nil {
		return "", err
	}
	run, policy, err := s.copyRun(ctx, t)
	if err != nil {
		return "", err
	}
	defer run.close()
	rd, err := w.CopyIn(o.format == "binary", len(cols))
	if err != nil {
		return "", err
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
		if policy != nil {
			_, err := run.onConflicts(policy, b)
			return err
		}
		return run.insert(t, b)
	}
	rows := newCopyRows(rd, o)
	skipped := 0
	for {
		fields, err := rows.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && rows.text != nil {
			err = in.where(rows, -1, rows.text, err)
		}
		if err == nil && rows.head {
			rows.head = false
			if err = in.matchHeader(fields, rows); err == nil {
				continue
			}
		}
		if err == nil {
			var bad bool
			if bad, err = in.row(fields, rows); bad {
				skipped++
			}
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
	if skipped > 0 {
		verb := "rows were"
		if skipped == 1 {
			verb = "row was"
		}
		w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: fmt.Sprintf("%d %s skipped due to data type incompatibility", skipped, verb)})
	}
	return fmt.Sprintf("COPY %d", total), nil
}

// columnNamesOf are the names of some columns of a table.
func columnNamesOf(t *catalog.Object, cols []int) []string {
	out := make([]string, len(cols))
	for i, c := range cols {
		out[i] = t.Columns[c].Name
	}
	return out
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
	// defaults, where a text stands for the default of a column, say where it does.
	defaults [][]bool
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
		k, ok := given[i]
		value := &expr.Column{Index: k, Typ: col.Type, Name: col.Name}
		if ok && !c.o.hasDefault {
			mfp.Outputs = append(mfp.Outputs, value)
			continue
		}
		e, err := c.s.defaultExpr(col, true)
		if err != nil {
			return err
		}
		if ok {
			is := &expr.Column{Index: len(c.cols) + k, Typ: types.Bool, Name: "default"}
			e = &expr.Case{Whens: []expr.When{{Cond: is, Then: e}}, Else: value, Typ: col.Type}
		}
		mfp.Outputs = append(mfp.Outputs, e)
	}
	if c.o.hasDefault {
		c.defaults = make([][]bool, len(c.cols))
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

// where adds to an error which line, and which value of which column (-1: none), it is of.
func (c *copyReader) where(at *copyRows, col int, value []byte, err error) error {
	e := *pgerror.As(err)
	e.Where = fmt.Sprintf("COPY %s, line %d", c.t.Name, at.line)
	if col >= 0 {
		e.Where += ", column " + c.t.Columns[col].Name
	}
	if value != nil {
		e.Where += ": \"" + shortened(value) + "\""
	}
	return &e
}

// matchHeader compares a header with the columns.
func (c *copyReader) matchHeader(fields []copyField, at *copyRows) error {
	fail := func(format string, args ...any) error {
		return c.where(at, -1, at.text, pgerror.New(pgerror.BadCopyFileFormat, format, args...))
	}
	if len(fields) != len(c.cols) {
		return fail("wrong number of fields in header line: got %d, expected %d", len(fields), len(c.cols))
	}
	for i, f := range fields {
		switch want := c.t.Columns[c.cols[i]].Name; {
		case f.null:
			return fail("column name mismatch in header line field %d: got null value (\"%s\"), expected \"%s\"", i+1, c.o.null, want)
		case string(f.data) != want:
			return fail("column name mismatch in header line field %d: got \"%s\", expected \"%s\"", i+1, f.data, want)
		}
	}
	return nil
}

// row adds one record, unless it is bad, and such ones are to be left out.
func (c *copyReader) row(fields []copyField, at *copyRows) (bad bool, err error) {
	where := func(col int, value []byte, err error) error { return c.where(at, col, value, err) }
	if len(fields) > len(c.cols) {
		return false, where(-1, at.text, pgerror.New(pgerror.BadCopyFileFormat, "extra data after last expected column"))
	}
	for i, col := range c.cols {
		if i == len(fields) {
			return false, where(-1, at.text, pgerror.New(pgerror.BadCopyFileFormat, "missing data for column \"%s\"", c.t.Columns[col].Name))
		}
		f := fields[i]
		name, typ, b := c.t.Columns[col].Name, c.t.Columns[col].Type, c.builders[col]
		null := f.null
		if c.o.format == "csv" && (null && c.o.forceNN[name] || c.o.forceNN["*"] && null) {
			null = false
		}
		if c.o.format == "csv" && f.quoted && (c.o.forceNull[name] || c.o.forceNull["*"]) && string(f.data) == c.o.null {
			null = true
		}
		isDefault := c.o.hasDefault && !f.quoted && string(f.raw) == c.o.def
		if isDefault && c.t.Columns[col].Default == "" && !typ.OID.IsDomain() {
			return false, where(col, f.data, pgerror.New(pgerror.BadCopyFileFormat, "unexpected default marker in COPY data").
				WithDetail("Column \"%s\" has no default value.", name))
		}
		if c.o.hasDefault {
			c.defaults[i] = append(c.defaults[i], isDefault)
		}
		switch {
		case null, isDefault:
			b.Null()
		case c.o.format == "binary":
			err = types.ParseBinary(b, typ, f.data)
		default:
			err = types.ParseTextBytes(b, typ, f.data, c.opts)
		}
		if err != nil && c.o.skip {
			c.forget(i)
			return true, nil
		}
		if err != nil {
			if c.o.format == "binary" {
				f.data = nil
			}
			return false, where(col, f.data, err)
		}
	}
	c.n++
	return false, nil
}

// forget takes the values of a row back of which the first n columns have one.
func (c *copyReader) forget(n int) {
	for i, col := range c.cols {
		if b := c.builders[col]; b.Len() > c.n {
			b.Truncate(c.n)
		}
		if c.o.hasDefault && i <= n {
			c.defaults[i] = c.defaults[i][:c.n]
		}
	}
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
	for i := range c.defaults {
		b.Cols = append(b.Cols, columnar.FromSlice(append([]bool(nil), c.defaults[i]...), nil))
		c.defaults[i] = c.defaults[i][:0]
	}
	c.n = 0
	out, _, errs := c.rows.Apply(c.s.exprContext(), &b, nil)
	if len(errs) > 0 {
		return out, errs[0].Err
	}
	return c.s.generate(c.t, out)
}
