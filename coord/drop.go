package coord

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// partKind says what of an object goes when something that it uses is dropped.
type partKind uint8

const (
	partWhole partKind = iota
	partColumn
	partDefault // of a column
	partCheck
	partForeign
	partKey // of a table, with its unique index
)

// piece is an object, or what of it depends on something: its column or the
// default of that (n is the column), a CHECK or foreign key (n is its place).
type piece struct {
	obj  *catalog.Object
	kind partKind
	n    int
}

// dropping is a drop that is being worked out: what goes, and by what.
type dropping struct {
	s        *Session
	d        *ddlState
	describe func(*catalog.Object) string
	roots    []piece
	inside   []*catalog.Object // of the schema or cluster that goes
	seen     map[piece]bool
	all      []piece
	also     []dependent // those that go only by CASCADE, as they are told: depth first, older ones first
	err      error
}

// dependent is a part that goes because of what it uses: on, or if that has no
// object what it is in.
type dependent struct{ piece, on piece }

// newDropping works out what goes with roots and with what is inside a schema or
// cluster.
func (s *Session) newDropping(d *ddlState, roots []piece, inside []*catalog.Object) *dropping {
	g := &dropping{s: s, d: d, describe: s.describer(d), roots: roots, inside: inside, seen: map[piece]bool{}}
	for _, r := range roots {
		g.add(r)
	}
	for _, o := range inside {
		g.add(piece{obj: o})
	}
	for _, r := range roots {
		g.visit(r)
	}
	for _, o := range inside {
		if !slices.ContainsFunc(inside, func(x *catalog.Object) bool { return catalog.Owned(o, x) }) {
			g.also = append(g.also, dependent{piece: piece{obj: o}})
		}
		g.visit(piece{obj: o})
	}
	return g
}

func (g *dropping) add(p piece) {
	g.seen[p] = true
	g.all = append(g.all, p)
}

// going reports whether a part goes already, by itself or with its object.
func (g *dropping) going(p piece) bool {
	return g.seen[p] || g.seen[piece{obj: p.obj}] || p.kind == partDefault && g.seen[piece{p.obj, partColumn, p.n}]
}

func (g *dropping) visit(p piece) {
	uses := g.usersOf(p)
	slices.SortStableFunc(uses, func(a, b piece) int {
		if x, y := useOrder(a, p), useOrder(b, p); x != y {
			return x - y
		}
		return cmp.Compare(a.obj.ID, b.obj.ID)
	})
	for _, u := range uses {
		if g.going(u) {
			continue
		}
		g.add(u)
		if (u.kind != partWhole || !catalog.Owned(u.obj, p.obj)) && u.kind != partKey {
			g.also = append(g.also, dependent{u, p})
		}
		g.visit(u)
	}
}

// usersOf are the parts that use p directly.
func (g *dropping) usersOf(p piece) []piece {
	switch p.kind {
	case partColumn:
		return g.columnUsers(p.obj, p.n)
	case partWhole:
	default:
		return nil
	}
	var out []piece
	if k := p.obj.Sink; k != nil {
		out = append(out, piece{obj: g.d.cat.ByID(k.Delivered)})
	}
	for _, u := range g.d.cat.Users(p.obj.ID) {
		if u.Kind == catalog.KindIndex && u.Table != p.obj.ID && (p.obj.Def != nil || p.obj.RowType() != 0) {
			if t := g.d.cat.ByID(u.Table); t != nil && slices.ContainsFunc(t.Columns, func(c catalog.Column) bool { return p.obj.OfType(c.Type.OID) }) {
				continue // it goes with the column
			}
		}
		if u.Kind != catalog.KindTable && (u.Def == nil || u.Def.Kind != 'c') {
			out = append(out, piece{obj: u})
			continue
		}
		out = append(out, g.partsUsing(u, p.obj)...)
	}
	for _, r := range g.d.cat.References(p.obj.ID) {
		for i, fk := range r.Foreign {
			if fk.RefTable == p.obj.ID {
				out = append(out, piece{r, partForeign, i})
			}
		}
	}
	if t := g.d.cat.ByID(p.obj.Table); p.obj.Index != nil && p.obj.Index.Unique && t != nil && !g.going(piece{obj: t}) {
		out = append(out, piece{t, partKey, int(p.obj.ID)})
		out = append(out, g.referring(t, func(fk *catalog.ForeignKey) bool { return p.obj.Plain() && sameColumns(fk.RefColumns, p.obj.Key) })...)
	}
	return out
}

// referring are the foreign keys to a table for which f holds.
func (g *dropping) referring(t *catalog.Object, f func(*catalog.ForeignKey) bool) []piece {
	var out []piece
	for _, r := range g.d.cat.References(t.ID) {
		for i := range r.Foreign {
			if r.Foreign[i].RefTable == t.ID && f(&r.Foreign[i]) {
				out = append(out, piece{r, partForeign, i})
			}
		}
	}
	return out
}

// partsUsing are the columns, defaults and checks of a table or the attributes
// of a composite type that use o: a type, a function or a sequence.
func (g *dropping) partsUsing(t, o *catalog.Object) []piece {
	ofType := o.OfType
	var out []piece
	if t.Def != nil {
		for i, f := range t.Def.Fields {
			if ofType(f.Type.OID) {
				out = append(out, piece{t, partColumn, i})
			}
		}
		return out
	}
	uses := func(text string) bool {
		if text == "" || !slices.Contains(t.Deps, o.ID) {
			return false
		}
		deps, err := planner.ExprDeps(g.s.bindContext(nil), text, t)
		return err == nil && slices.Contains(deps, o.ID)
	}
	for i, c := range t.Columns {
		switch {
		case ofType(c.Type.OID), uses(c.Generated):
			out = append(out, piece{t, partColumn, i})
		case o.Sequence != nil && c.Default == nextvalSQL(o):
			if c.Identity != "" && !g.going(piece{obj: t}) && !g.going(piece{t, partColumn, i}) && g.err == nil {
				g.err = pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop sequence %s because column %s of table %s requires it", o.Name, c.Name, t.Name).
					WithHint("You can drop column %s of table %s instead.", c.Name, t.Name)
			}
			out = append(out, piece{t, partDefault, i})
		case uses(c.Default):
			out = append(out, piece{t, partDefault, i})
		}
	}
	for i, ck := range t.Checks {
		if uses(ck.Expr) {
			out = append(out, piece{t, partCheck, i})
		}
	}
	return out
}

// columnUsers are the views, generated columns and foreign keys of other columns
// that use a column.
func (g *dropping) columnUsers(o *catalog.Object, col int) []piece {
	var out []piece
	if o.Def != nil {
		return nil
	}
	for _, u := range g.d.cat.Users(o.ID) {
		if u.Query == "" {
			continue
		}
		uses, err := planner.UsesColumn(g.s.c.bindContext(g.d.cat), u.Query, o.ID, col)
		if err != nil {
			g.err = err
		}
		if uses || sinkUses(u, o, col) {
			out = append(out, piece{obj: u})
		}
	}
	t := &tableAlter{newTable: newTable{s: g.s, d: g.d, o: o}, old: o}
	gen, err := t.generatedFrom(col)
	if err != nil {
		g.err = err
	}
	for _, i := range gen {
		out = append(out, piece{o, partColumn, i})
	}
	refs := g.referring(o, func(fk *catalog.ForeignKey) bool { return slices.Contains(fk.RefColumns, col) })
	return append(out, slices.DeleteFunc(refs, func(p piece) bool { // those that go with the column
		return p.obj.ID == o.ID && slices.Contains(p.obj.Foreign[p.n].Columns, col)
	})...)
}

// useOrder orders what uses p: what is of the type of arrays of it comes first, then what
// uses the type of its rows.
func useOrder(u, p piece) int {
	t := usedType(u, p)
	switch {
	case t != 0 && t != compositeOf(p.obj):
		return 0
	case t != 0 || p.obj.Def != nil:
		return 1
	}
	return 2
}

// usedType is the type that u uses of p, which is a type, or a relation whose rows have
// one; 0 if it uses another thing.
func usedType(u, p piece) types.OID {
	o := p.obj
	if p.kind != partWhole || o.Def == nil && o.RowType() == 0 {
		return 0
	}
	var list []types.OID
	switch {
	case u.kind == partColumn && u.obj.Def != nil:
		list = append(list, u.obj.Def.Fields[u.n].Type.OID)
	case u.kind == partColumn:
		list = append(list, u.obj.Columns[u.n].Type.OID)
	case u.kind != partWhole:
	case u.obj.Def != nil:
		list = append(list, u.obj.Def.Base.OID)
	case u.obj.Function != nil:
		for _, a := range append(slices.Clone(u.obj.Function.Args), catalog.Argument{Type: u.obj.Function.Returns}) {
			list = append(list, a.Type.OID)
		}
	}
	if i := slices.IndexFunc(list, o.OfType); i >= 0 {
		return list[i]
	}
	return 0
}

// usedText is how what u uses is told of.
func (g *dropping) usedText(u, p piece) string {
	if t := usedType(u, p); t != 0 {
		return "type " + t.Name()
	}
	return g.text(p)
}

// text is how a part is told of.
func (g *dropping) text(p piece) string {
	whole := g.describe(p.obj)
	switch p.kind {
	case partColumn:
		if p.obj.Def != nil {
			return fmt.Sprintf("column %s of composite type %s", parser.QuoteIdent(p.obj.Def.Fields[p.n].Name), strings.TrimPrefix(whole, "type "))
		}
		return fmt.Sprintf("column %s of %s", parser.QuoteIdent(p.obj.Columns[p.n].Name), whole)
	case partDefault:
		return fmt.Sprintf("default value for column %s of %s", parser.QuoteIdent(p.obj.Columns[p.n].Name), whole)
	case partCheck:
		return fmt.Sprintf("constraint %s on %s", parser.QuoteIdent(p.obj.Checks[p.n].Name), whole)
	case partForeign:
		return fmt.Sprintf("constraint %s on %s", parser.QuoteIdent(p.obj.Foreign[p.n].Name), whole)
	}
	return whole
}

// dropAll drops objs and what is inside them (container names that) with what
// depends on them, which is told, or an error without cascade.
func (s *Session) dropAll(d *ddlState, cascade bool, objs, inside []*catalog.Object, container string, w pgwire.ResultWriter) error {
	roots := make([]piece, len(objs))
	for i, o := range objs {
		roots[i] = piece{obj: o}
	}
	return s.newDropping(d, roots, inside).run(cascade, container, w)
}

// run drops what was worked out; container names the roots, "" for several objects.
func (g *dropping) run(cascade bool, container string, w pgwire.ResultWriter) error {
	if g.err != nil {
		return g.err
	}
	if len(g.also) > 0 && !cascade {
		if container == "" && len(g.roots) == 1 {
			container = g.text(g.roots[0])
		}
		return g.stillNeeded(container)
	}
	var lines []string
	for _, x := range g.also {
		lines = append(lines, "drop cascades to "+g.text(x.piece))
	}
	locked := map[plan.ObjectID]bool{}
	for _, p := range g.all {
		if !locked[p.obj.ID] {
			locked[p.obj.ID] = true
			if err := g.s.lockForm(g.s.ctx, p.obj.ID, true); err != nil {
				return err
			}
		}
	}
	if err := g.cut(w); err != nil {
		return err
	}
	switch {
	case len(lines) == 1:
		w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: lines[0]})
	case len(lines) > 1:
		w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion,
			Message: fmt.Sprintf("drop cascades to %d other objects", len(lines)), Detail: strings.Join(lines, "\n")})
	}
	return nil
}

// cut carries the drop out: parts of what stays first, for they may be of the
// types that go; then the objects, users before what they use.
func (g *dropping) cut(w pgwire.ResultWriter) error {
	cat := g.d.cat
	var ids []plan.ObjectID
	columns := map[plan.ObjectID][]int{}
	for _, p := range g.all {
		switch {
		case p.kind == partWhole:
			ids = append(ids, p.obj.ID)
		case g.seen[piece{obj: p.obj}]:
		case p.kind == partColumn:
			columns[p.obj.ID] = append(columns[p.obj.ID], p.n)
		default:
			g.cutPart(p)
		}
	}
	drops := cat.Closure(ids...)
	slices.Reverse(drops)
	var gone []catalog.Change
	for _, o := range drops {
		if g.seen[piece{obj: o}] && o.Def == nil {
			gone = append(gone, catalog.Change{Drop: o.ID})
		}
	}
	g.d.apply(gone...)
	for _, id := range sortedIDs(columns) {
		o := g.d.cat.ByID(id)
		if o.Def != nil {
			if err := g.s.removeAttributes(g.d, o, columns[id]); err != nil {
				return err
			}
			continue
		}
		t := &tableAlter{newTable: newTable{s: g.s, d: g.d, o: o.Clone()}, ctx: g.s.ctx, old: o, w: w}
		if err := t.removeColumns(columns[id]); err != nil {
			return err
		}
	}
	for _, o := range drops {
		if g.seen[piece{obj: o}] && o.Def != nil {
			g.d.apply(catalog.Change{Drop: o.ID})
		}
	}
	return nil
}

// cutPart takes a default, a check, a foreign key or a key from its table.
func (g *dropping) cutPart(p piece) {
	if p.kind == partForeign {
		g.d.dropForeign(g.d.cat.ByID(p.obj.ID), &p.obj.Foreign[p.n])
		return
	}
	c := g.d.cat.ByID(p.obj.ID).Clone()
	switch p.kind {
	case partDefault:
		c.Columns[p.n].Default = ""
	case partCheck:
		c.Checks = slices.DeleteFunc(c.Checks, func(k catalog.Check) bool { return k.Name == p.obj.Checks[p.n].Name })
	case partKey:
		c.Unique = slices.DeleteFunc(c.Unique, func(k catalog.Key) bool { return int(k.Object) == p.n })
	}
	t := &newTable{s: g.s, d: g.d, o: c}
	t.put()
}

// stillNeeded is the error of dropping something ("" for several) that others use.
func (g *dropping) stillNeeded(what string) error {
	e := pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop desired object(s) because other objects depend on them")
	if what != "" {
		e = pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", what)
	}
	var lines []string
	for _, u := range g.also {
		on := what
		if u.on.obj != nil {
			on = g.usedText(u.piece, u.on)
		}
		lines = append(lines, g.text(u.piece)+" depends on "+on)
	}
	return e.WithDetail("%s", strings.Join(lines, "\n")).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
}
