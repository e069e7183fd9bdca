package planner

import (
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// recordFunction says where a function that returns records takes their fields from.
type recordFunction uint8

const (
	toRecord       recordFunction = iota + 1 // the query's column definitions
	populateRecord                           // its first argument, or column definitions
)

var recordFunctions = map[string]recordFunction{
	"json_to_record": toRecord, "jsonb_to_record": toRecord, "json_to_recordset": toRecord, "jsonb_to_recordset": toRecord,
	"json_populate_record": populateRecord, "jsonb_populate_record": populateRecord,
	"json_populate_recordset": populateRecord, "jsonb_populate_recordset": populateRecord,
}

func (x exprBinder) needDefinitions(call *pg.FuncCall) error {
	return pgerror.New(pgerror.SyntaxError, "a column definition list is required for functions returning \"record\"").At(x.pos(call.Location))
}

// expand makes columns of the fields of a function's one composite value.
func (b *binder) expand(c *tableCall) {
	if len(c.cols) != 1 || c.fields != nil {
		return
	}
	typ := c.cols[0].Type
	fields := b.shapeOf(&expr.Column{Typ: typ})
	if fields == nil {
		return
	}
	c.raw, c.cols = typ, nil
	for _, f := range fields {
		c.cols = append(c.cols, plan.Column{Name: f.Name, Type: f.Type})
	}
	c.fields = func(elem expr.Expr) ([]expr.Expr, error) {
		out := make([]expr.Expr, len(fields))
		for i := range fields {
			out[i] = b.field(elem, fields, i, 0)
		}
		return out, nil
	}
}

// populated makes of the documents that json[b]_populate_recordset goes
// through the fields of records like its first argument.
func (x exprBinder) populated(c *tableCall, call *pg.FuncCall, name string) error {
	base, pos := c.args[0], x.pos(call.Location)
	typ := base.Type()
	if typ.OID == types.OIDRecord {
		return x.needDefinitions(call)
	}
	doc := c.cols[0].Type
	if _, err := expr.NewPopulated(name, base, nullConst(doc), pos); err != nil {
		return err
	}
	rec := &tableCall{cols: []plan.Column{{Name: name, Type: typ}}}
	x.expand(rec)
	c.raw, c.cols = doc, rec.cols
	c.fields = func(elem expr.Expr) ([]expr.Expr, error) {
		e, err := expr.NewPopulated(name, base, elem, pos)
		if err != nil {
			return nil, err
		}
		return rec.fields(e)
	}
	return nil
}

// columnDefs binds a column definition list.
func (x exprBinder) columnDefs(defs []*pg.Node) ([]plan.Column, error) {
	var cols []plan.Column
	for _, n := range defs {
		d := n.GetColumnDef()
		typ, err := x.typeName(d.TypeName)
		if err != nil {
			return nil, err
		}
		if d.TypeName.Setof {
			return nil, pgerror.New(pgerror.InvalidTableDefinition, "column \"%s\" cannot be declared SETOF", d.Colname).At(x.pos(d.Location))
		}
		for _, c := range cols {
			if c.Name == d.Colname {
				return nil, pgerror.New(pgerror.DuplicateColumn, "column name \"%s\" specified more than once", d.Colname)
			}
		}
		cols = append(cols, plan.Column{Name: d.Colname, Type: typ})
	}
	return cols, nil
}

// recordCall binds a function that returns records, whose columns the query
// defines.
func (x exprBinder) recordCall(call *pg.FuncCall, name string, defs []*pg.Node) (*tableCall, error) {
	pos := x.pos(call.Location)
	args, names, err := x.args(call)
	if err != nil {
		return nil, err
	}
	opts := expr.CallOptions{Pos: pos, Variadic: call.FuncVariadic, ArgNames: names}
	kind := recordFunctions[name]
	if kind == 0 {
		return nil, x.noDefinitions(name, args, opts, defs)
	}
	cols, err := x.columnDefs(defs)
	if err != nil {
		return nil, err
	}
	c := &tableCall{}
	resolved := args
	if strings.HasSuffix(name, "set") {
		if c.set, c.args, c.cols, err = resolveSet(name, args, opts); err != nil {
			return nil, err
		}
		resolved, c.raw = c.args, c.cols[0].Type
	} else {
		e, err := expr.NewCall(name, args, opts)
		if err != nil {
			return nil, err
		}
		resolved = e.(*expr.Call).Args
		c.call = resolved[0]
		if kind == populateRecord {
			c.call = resolved[1]
		}
		c.raw = c.call.Type()
	}
	var base expr.Expr
	if kind == populateRecord {
		base = resolved[0]
	}
	c.cols = nil
	for _, col := range cols {
		c.cols = append(c.cols, plan.Column{Name: col.Name, Type: col.Type})
	}
	c.fields, err = x.recordFields(base, cols, x.pos(defs[0].GetColumnDef().GetLocation()), pos)
	return c, err
}

// recordFields gives the fields that a query defines of documents: by the names
// that it gives, or those of the record base.
func (x exprBinder) recordFields(base expr.Expr, cols []plan.Column, defsPos, pos int) (func(doc expr.Expr) ([]expr.Expr, error), error) {
	row, _ := base.(*expr.Row)
	switch {
	case base == nil:
	case base.Type().OID.IsComposite():
		return nil, pgerror.New(pgerror.SyntaxError, "a column definition list is redundant for a function returning a named composite type").At(defsPos)
	case row != nil:
		if len(row.Fields) != len(cols) {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "function return row and query-specified return row do not match").
				WithDetail("Returned row contains %d attribute%s, but query expects %d.", len(row.Fields), plural1(len(row.Fields)), len(cols))
		}
		for i, f := range row.Fields {
			if f.Type().OID != cols[i].Type.OID {
				return nil, pgerror.New(pgerror.DatatypeMismatch, "function return row and query-specified return row do not match").
					WithDetail("Returned type %s at ordinal position %d, but query expects %s.", f.Type().OID, i+1, cols[i].Type.OID)
			}
		}
	case !expr.IsNullConst(expr.StripRelabel(base)):
		return nil, pgerror.Unsupported("a column definition list for a record that is not a row constructor").At(pos)
	}
	return func(doc expr.Expr) ([]expr.Expr, error) {
		out := make([]expr.Expr, len(cols))
		for i, c := range cols {
			if row == nil {
				out[i] = expr.NewJSONField(doc, c.Name, c.Type, nil, pos)
				continue
			}
			name := "f" + strconv.Itoa(i+1)
			if row.Names != nil {
				name = row.Names[i]
			}
			out[i] = expr.NewJSONField(doc, name, c.Type, row.Fields[i], pos)
		}
		return out, nil
	}, nil
}

func plural1(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// noDefinitions is why a function cannot have a column definition list.
func (x exprBinder) noDefinitions(name string, args []expr.Expr, opts expr.CallOptions, defs []*pg.Node) error {
	at := x.pos(defs[0].GetColumnDef().GetLocation())
	if expr.IsTableFunction(name) {
		_, _, cols, err := resolveSet(name, args, opts)
		if err != nil {
			return err
		}
		if len(cols) > 1 {
			return pgerror.New(pgerror.SyntaxError, "a column definition list is redundant for a function with OUT parameters").At(at)
		}
	} else if _, err := expr.NewCall(name, args, opts); err != nil {
		return err
	}
	return pgerror.New(pgerror.SyntaxError, "a column definition list is only allowed for functions returning \"record\"").At(at)
}
