package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// columnTrace collects the columns of relations that a query names itself, not
// through its views.
type columnTrace struct {
	uses []columnTraceUse
	ref  *pg.ColumnRef // being resolved
}

type columnTraceUse struct {
	table  plan.ObjectID
	column int
	ref    *pg.ColumnRef // nil: by USING, NATURAL, a star or a whole row
}

// note records a use of a column of a relation.
func (t *columnTrace) note(e *entry, c *entryColumn, ref *pg.ColumnRef) {
	if t == nil || e == nil || e.object == nil || c.attNum < 1 {
		return
	}
	t.uses = append(t.uses, columnTraceUse{e.object.ID, int(c.attNum) - 1, ref})
}

// noteMerged records the columns that USING or NATURAL merges.
func (t *columnTrace) noteMerged(entries []*entry, c *entryColumn) {
	if t == nil {
		return
	}
	for _, e := range entries {
		for i := range e.columns {
			if &e.columns[i] == c {
				t.note(e, c, nil)
			}
		}
	}
}

// trace binds a stored query and collects the columns that it uses.
func trace(ctx *Context, query string) (*columnTrace, *Query, error) {
	q, err := parser.ParseQuery(query)
	if err != nil {
		return nil, nil, err
	}
	t := &columnTrace{}
	c := *ctx
	c.trace = t
	b, err := BindQuery(&c, query, &q)
	return t, b, err
}

// UsesColumn reports whether a stored query uses a column of a relation.
func UsesColumn(ctx *Context, query string, table plan.ObjectID, column int) (bool, error) {
	t, _, err := trace(ctx, query)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(t.uses, func(u columnTraceUse) bool { return u.table == table && u.column == column }), nil
}

// ColumnUse is a column of a relation, by its index.
type ColumnUse struct {
	Relation plan.ObjectID
	Column   int
}

// ColumnUses are the columns of relations that a stored query names itself, not through
// its views; one may be there more than once.
func ColumnUses(ctx *Context, query string) ([]ColumnUse, error) {
	t, _, err := trace(ctx, query)
	if err != nil {
		return nil, err
	}
	out := make([]ColumnUse, len(t.uses))
	for i, u := range t.uses {
		out[i] = ColumnUse{u.table, u.column}
	}
	return out, nil
}

// RenameColumn gives the text of a stored query after a column of table old was
// renamed; ctx has the catalog after it. The query keeps its meaning and the
// names of its results. Where the name is used in another way than by itself
// (USING, whole rows), the table gets its former column names by an alias.
func RenameColumn(before, ctx *Context, query string, old *catalog.Object, column int, name string) (string, error) {
	t, was, err := trace(before, query)
	if err != nil {
		return "", err
	}
	q, err := parser.ParseQuery(query)
	if err != nil {
		return "", err
	}
	same := func(text string) bool {
		_, now, err := trace(ctx, text)
		return err == nil && slices.EqualFunc(was.Columns, now.Columns, func(a, b ResultColumn) bool { return a.Name == b.Name && a.Type == b.Type })
	}
	direct := true
	for _, u := range t.uses {
		if u.table == old.ID && u.column == column && u.ref == nil {
			direct = false
		}
	}
	if direct {
		text, err := applyEdits(q.SQL, q.Base, columnEdits(t, &q, query, old.ID, column, name))
		if err == nil && same(text) {
			return text, nil
		}
	}
	text, err := applyEdits(q.SQL, q.Base, aliasEdits(&q, query, old))
	if err != nil {
		return "", err
	}
	if !same(text) {
		return "", pgerror.New(pgerror.FeatureNotSupported, "column \"%s\" cannot be renamed in a view that uses it in this way", old.Columns[column].Name)
	}
	return text, nil
}

// columnEdits replace the name of a column where it stands. What is a whole item
// of a select list keeps its name as an alias.
func columnEdits(t *columnTrace, q *parser.Query, query string, table plan.ObjectID, column int, name string) []edit {
	items := map[int32]bool{} // the places of select items that are just a column
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		if sel, ok := m.Interface().(*pg.SelectStmt); ok {
			for _, n := range sel.TargetList {
				if r := n.GetResTarget(); r.GetName() == "" && r.GetVal().GetColumnRef() != nil {
					items[r.GetVal().GetColumnRef().Location] = true
				}
			}
		}
		rangeMessages(m, visit)
	}
	visit(q.Stmt.ProtoReflect())
	var out []edit
	done := map[int32]bool{}
	for _, u := range t.uses {
		if u.table != table || u.column != column || u.ref == nil || done[u.ref.Location] {
			continue
		}
		done[u.ref.Location] = true
		at := q.Base + int(u.ref.Location)
		old := ""
		for i, f := range u.ref.Fields {
			if i > 0 {
				for at < len(query) && query[at] != '.' {
					at++
				}
				at++
				for at < len(query) && (query[at] == ' ' || query[at] == '\n' || query[at] == '\t' || query[at] == '\r') {
					at++
				}
			}
			old = f.GetString_().GetSval()
			if i < len(u.ref.Fields)-1 {
				at = nameEnd(query, at)
			}
		}
		text := parser.QuoteIdent(name)
		if items[u.ref.Location] {
			text += " AS " + parser.QuoteIdent(old)
		}
		out = append(out, edit{at, nameEnd(query, at), text})
	}
	return out
}

// aliasEdits give the uses of a table aliases with its former column names.
func aliasEdits(q *parser.Query, query string, old *catalog.Object) []edit {
	cols := ""
	for i, c := range old.Columns {
		if i > 0 {
			cols += ", "
		}
		cols += parser.QuoteIdent(c.Name)
	}
	var out []edit
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		rv, ok := m.Interface().(*pg.RangeVar)
		if !ok {
			rangeMessages(m, visit)
			return
		}
		if rv.Schemaname != old.Schema || rv.Relname != old.Name || rv.Alias != nil && len(rv.Alias.Colnames) > 0 {
			return
		}
		end := relationEnd(query, q.Base+int(rv.Location))
		if rv.Alias == nil {
			out = append(out, edit{end, end, " AS " + parser.QuoteIdent(rv.Relname) + "(" + cols + ")"})
			return
		}
		// The alias is the next identifier, or the one after AS.
		at := end
		for range 2 {
			for at < len(query) && (query[at] == ' ' || query[at] == '\n' || query[at] == '\t' || query[at] == '\r') {
				at++
			}
			stop := nameEnd(query, at)
			if word := query[at:stop]; !strings.EqualFold(word, "as") {
				out = append(out, edit{stop, stop, "(" + cols + ")"})
				return
			}
			at = stop
		}
	}
	visit(q.Stmt.ProtoReflect())
	return out
}

// RenameInExpr gives the text of an expression over the columns of one table
// after one of them was renamed.
func RenameInExpr(text, old, name string) (string, error) {
	x, err := parser.ParseExpr(text)
	if err != nil {
		return "", err
	}
	var edits []edit
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		ref, ok := m.Interface().(*pg.ColumnRef)
		if !ok {
			rangeMessages(m, visit)
			return
		}
		if ref.Fields[len(ref.Fields)-1].GetString_().GetSval() != old {
			return
		}
		at := x.Base + int(ref.Location)
		end := relationEnd(text, at)
		if len(ref.Fields) == 1 {
			end = nameEnd(text, at)
		}
		for len(ref.Fields) > 1 && nameEnd(text, at) < end {
			at = nameEnd(text, at)
			for at < end && strings.ContainsRune(" \t\n\r.", rune(text[at])) {
				at++
			}
		}
		edits = append(edits, edit{at, end, parser.QuoteIdent(name)})
	}
	visit(x.Node.ProtoReflect())
	return applyEdits(text, 0, edits)
}
