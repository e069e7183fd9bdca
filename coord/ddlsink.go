package coord

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// createSink runs CREATE SINK … INTO a table.
func (s *Session) createSink(d *ddlState, p *prepared, n *parser.CreateSink, w pgwire.ResultWriter) error {
	if n.Into == nil && blackhole(n) {
		return s.createBlackhole(d, p, n, w)
	}
	if n.Into == nil {
		return pgerror.Unsupported("CREATE SINK with a connector").
			WithHint("CREATE SINK … INTO table keeps a table; SUBSCRIBE tells a program of changes.")
	}
	schema, exists, err := s.target(d, catalog.KindSink, n.Name)
	if err != nil {
		return err
	}
	if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
		return err
	}
	opts, err := readSinkOptions(n.With)
	if err != nil {
		return err
	}
	t, err := s.sinkTarget(d, n)
	if err != nil {
		return err
	}
	q, sql, err := s.sinkQuery(d, p, n)
	if err != nil {
		return err
	}
	if slices.Contains(q.Deps, t.ID) {
		return feedsItself(n.Name.Name, t)
	}
	cols, err := viewColumns(q, nil)
	if err != nil {
		return err
	}
	cl, err := s.clusterName(d, n.Cluster)
	if err != nil {
		return err
	}
	o := &catalog.Object{Schema: schema, Name: n.Name.Name, Kind: catalog.KindSink, Columns: cols, Query: sql, Cluster: cl, Config: s.newJobConfig(),
		Deps: append(slices.Clone(q.Deps), t.ID), Sink: &catalog.Sink{Into: t.ID, Columns: n.IntoColumns, InsertsOnly: opts.insertsOnly, With: opts.text()}}
	if err := s.planView(o, q); err != nil {
		return err
	}
	from := o.Columns
	if n.Changelog != nil {
		if from, err = s.changelogInto(d, o, p, n); err != nil {
			return err
		}
		opts.insertsOnly = true
	}
	if opts.appendOnly && !opts.insertsOnly && !o.Grows {
		return pgerror.New(pgerror.InvalidParameterValue, "the sink cannot be append-only, as rows of its query may change or go away").
			WithHint("With force_append_only = 'true' rows that go away stay in the table, and an update adds a row.")
	}
	if _, err := planner.BindInto(s.c.bindContext(d.cat), t, n.IntoColumns, planColumns(&catalog.Object{Columns: from})); err != nil {
		return noPosition(err)
	}
	if err := sinkInto(o, t, opts, len(from)); err != nil {
		return err
	}
	return s.putSink(d, o, t)
}

// blackhole says whether a sink is RisingWave's that discards what it gets.
func blackhole(n *parser.CreateSink) bool {
	return slices.ContainsFunc(n.With, func(o parser.Option) bool { return o.Name == "connector" && o.Value.Text == "blackhole" })
}

// createBlackhole runs CREATE SINK … WITH (connector = 'blackhole'): the sink is checked
// and kept, and depends on what it reads; as nobody sees its rows, they are not computed.
func (s *Session) createBlackhole(d *ddlState, p *prepared, n *parser.CreateSink, w pgwire.ResultWriter) error {
	schema, exists, err := s.target(d, catalog.KindSink, n.Name)
	if err != nil {
		return err
	}
	if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
		return err
	}
	if n.Changelog != nil {
		return pgerror.Unsupported("AS CHANGELOG FROM in a sink that discards")
	}
	q, sql, err := s.sinkQuery(d, p, n)
	if err != nil {
		return err
	}
	cols, err := viewColumns(q, nil)
	if err != nil {
		return err
	}
	o := &catalog.Object{Schema: schema, Name: n.Name.Name, Kind: catalog.KindSink, Columns: cols, Query: sql, Deps: q.Deps, Discards: true, Config: s.newJobConfig()}
	if err := s.planView(o, q); err != nil {
		return err
	}
	if o, err = s.c.newObject(o); err != nil {
		return err
	}
	o.SQL = sinkSQL(d.cat, o)
	d.apply(catalog.Change{Put: o})
	return nil
}

// putSink adds a sink with the collection that it owns.
func (s *Session) putSink(d *ddlState, o, t *catalog.Object) error {
	sink, err := s.c.newObject(o)
	if err != nil {
		return err
	}
	own, err := s.c.newObject(&catalog.Object{Name: fmt.Sprintf("sink_%d_delivered", sink.ID), Kind: catalog.KindSink, Columns: o.Columns, Key: o.Key, Parent: sink.ID})
	if err != nil {
		return err
	}
	sink.Sink.Delivered = own.ID
	sink.Deps = append(sink.Deps, own.ID)
	d.apply(catalog.Change{Put: own}, catalog.Change{Put: sink})
	sink = sink.Clone()
	sink.SQL = sinkSQL(d.cat, sink)
	d.apply(catalog.Change{Put: sink})
	return nil
}

// sinkTarget is the table that a sink is to write.
func (s *Session) sinkTarget(d *ddlState, n *parser.CreateSink) (*catalog.Object, error) {
	t := d.cat.Resolve(catalog.KindTable, n.Into.Schema, n.Into.Name, s.relationPath())
	switch {
	case t == nil:
		return nil, pgerror.As(undefinedRelation(n.Into.Schema, n.Into.Name)).At(n.Into.Pos)
	case t.Kind != catalog.KindTable:
		return nil, pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a table", t.Name).At(n.Into.Pos)
	case t.Temporary:
		return nil, pgerror.New(pgerror.FeatureNotSupported, "sinks must not use temporary tables or views")
	}
	return t, s.lockForm(s.ctx, t.ID, false)
}

// sinkQuery is the query of a sink, bound and with its names qualified.
func (s *Session) sinkQuery(d *ddlState, p *prepared, n *parser.CreateSink) (*planner.Query, string, error) {
	query, of := n.Query, n.From
	if n.Changelog != nil {
		of = &n.Changelog.Of
	}
	if of != nil {
		if r := d.cat.Resolve(catalog.KindTable, of.Schema, of.Name, s.relationPath()); r == nil || !r.Relation() {
			return nil, "", pgerror.As(undefinedRelation(of.Schema, of.Name)).At(of.Pos)
		}
		text := "SELECT * FROM " + of.String()
		all, err := parser.ParseQuery(text)
		if err != nil {
			return nil, "", err
		}
		p, query = &prepared{stmt: &parser.Statement{Text: text}}, &all
	}
	q, sql, err := s.boundView(p, query)
	if err != nil {
		return nil, "", err
	}
	if s.usesTemporary(d, q) {
		return nil, "", pgerror.New(pgerror.FeatureNotSupported, "sinks must not use temporary tables or views")
	}
	return q, sql, nil
}

// sinkOptions are the options of a sink, in RisingWave's names.
type sinkOptions struct {
	appendOnly  bool // by type
	insertsOnly bool
	key         []string
	given       []parser.Option
}

func readSinkOptions(with []parser.Option) (*sinkOptions, error) {
	o := &sinkOptions{given: with}
	for i, x := range with {
		if slices.ContainsFunc(with[:i], func(y parser.Option) bool { return y.Name == x.Name }) {
			return nil, pgerror.New(pgerror.SyntaxError, "option \"%s\" is given more than once", x.Name).At(x.Pos)
		}
		if err := o.read(&x); err != nil {
			return nil, pgerror.As(err).At(x.Pos)
		}
	}
	return o, nil
}

func (o *sinkOptions) read(x *parser.Option) error {
	bad := pgerror.New(pgerror.InvalidParameterValue, "invalid value for option \"%s\": \"%s\"", x.Name, x.Value.Text)
	text := strings.ToLower(x.Value.Text)
	switch x.Name {
	case "connector":
		return pgerror.Unsupported("CREATE SINK ... INTO a table with a connector")
	case "type":
		switch text {
		case "append-only":
			o.appendOnly = true
		case "upsert":
		case "debezium", "retract":
			return pgerror.Unsupported("type = '" + text + "' of a sink into a table")
		default:
			return bad
		}
	case "force_append_only", "ignore_delete":
		if text != "true" && text != "false" {
			return bad
		}
		o.insertsOnly = o.insertsOnly || text == "true"
	case "snapshot":
		if text == "false" {
			return pgerror.Unsupported("snapshot = 'false' of a sink into a table")
		}
		if text != "true" {
			return bad
		}
	case "primary_key":
		for _, c := range strings.Split(x.Value.Text, ",") {
			o.key = append(o.key, strings.TrimSpace(c))
		}
	default:
		return pgerror.New(pgerror.InvalidParameterValue, "unrecognized parameter \"%s\"", x.Name)
	}
	return nil
}

// text writes the options as they are shown.
func (o *sinkOptions) text() string {
	if len(o.given) == 0 {
		return ""
	}
	out := make([]string, len(o.given))
	for i, x := range o.given {
		out[i] = x.Name + " = '" + strings.ReplaceAll(x.Value.Text, "'", "''") + "'"
	}
	return " WITH (" + strings.Join(out, ", ") + ")"
}

// sinkInto completes the definition of a sink by what its table is: its columns, and
// the key by which rows are told apart there. width is how many columns it is given.
func sinkInto(o, t *catalog.Object, opts *sinkOptions, width int) error {
	if len(o.Sink.Columns) == 0 {
		for _, c := range t.Columns {
			if !c.Hidden && len(o.Sink.Columns) < width {
				o.Sink.Columns = append(o.Sink.Columns, c.Name)
			}
		}
	}
	deletes := !opts.insertsOnly && !o.Grows
	if t.AppendOnly && deletes {
		return pgerror.New(pgerror.ObjectNotInPrerequisiteState, "cannot sink into append-only table \"%s\": rows of the query may change or go away", t.Name).
			WithHint("With type = 'append-only' and force_append_only = 'true' rows that go away stay in the table, and an update adds a row.")
	}
	own := o.Key
	if c := keyGap(o, t); c != "" && deletes {
		return noKeyColumn(c, t)
	}
	o.Key = nil
	var names []string
	for _, c := range t.PrimaryKey {
		names = append(names, t.Columns[c].Name)
		if at := slices.Index(o.Sink.Columns, t.Columns[c].Name); at >= 0 {
			o.Key = append(o.Key, at)
		}
	}
	if opts.key != nil && !slices.Equal(slices.Sorted(slices.Values(opts.key)), slices.Sorted(slices.Values(names))) {
		return pgerror.New(pgerror.InvalidParameterValue, "the key of a sink into a table is the table's primary key (%s)", strings.Join(names, ", "))
	}
	if len(o.Key) == 0 || len(o.Key) < len(t.PrimaryKey) {
		o.Key = allColumns(o)
	}
	if o.Sink.Changelog != nil && len(own) > 0 { // it tells an update from a row that goes and one that comes
		o.Key = own
	} else if o.Sink.Changelog != nil {
		o.Key = allColumns(o)
	}
	return nil
}

// keyGap is a column of a table's primary key that a sink gives no value for, "" if
// there is none.
func keyGap(o, t *catalog.Object) string {
	for _, c := range t.PrimaryKey {
		if !slices.Contains(o.Sink.Columns, t.Columns[c].Name) {
			return t.Columns[c].Name
		}
	}
	return ""
}

func noKeyColumn(name string, t *catalog.Object) error {
	return pgerror.New(pgerror.InvalidParameterValue, "the sink gives no value for column \"%s\" of the primary key of table \"%s\"", name, t.Name).
		WithHint("Without it the rows that change or go away cannot be found; with force_append_only = 'true' they stay in the table.")
}

// sinkSQL writes the definition of a sink.
func sinkSQL(cat *catalog.Snapshot, o *catalog.Object) string {
	if o.Discards {
		return fmt.Sprintf("CREATE SINK %s.%s AS %s WITH (connector = 'blackhole')", quoteName(o.Schema), quoteName(o.Name), o.Query)
	}
	in := ""
	if o.Cluster != defaultCluster && o.Cluster != "" {
		in = " IN CLUSTER " + quoteName(o.Cluster)
	}
	t, query := cat.ByID(o.Sink.Into), o.Query
	if c := o.Sink.Changelog; c != nil {
		of := cat.ByID(c.Of)
		query = fmt.Sprintf("WITH %s AS CHANGELOG FROM %s.%s %s", quoteName(c.Name), quoteName(of.Schema), quoteName(of.Name), c.Query)
	}
	return fmt.Sprintf("CREATE SINK %s.%s%s INTO %s.%s%s AS %s%s", quoteName(o.Schema), quoteName(o.Name), in,
		quoteName(t.Schema), quoteName(t.Name), columnList(o.Sink.Columns), query, o.Sink.With)
}

// sinkOrder lists the sinks so that each comes after those whose tables it reads,
// through views, sinks and the actions of foreign keys. A sink that would read what
// it writes is an error.
func sinkOrder(cat *catalog.Snapshot) ([]*catalog.Object, error) {
	into := map[plan.ObjectID][]*catalog.Object{}
	for _, o := range cat.Objects() {
		if o.Sink != nil {
			into[o.Sink.Into] = append(into[o.Sink.Into], o)
		}
	}
	if len(into) == 0 {
		return nil, nil
	}
	var out []*catalog.Object
	state := map[plan.ObjectID]int{} // 1: being visited, 2: done
	var visit func(o *catalog.Object) error
	visit = func(o *catalog.Object) error {
		if o == nil || state[o.ID] == 2 {
			return nil
		}
		if state[o.ID] == 1 {
			return errCircle
		}
		state[o.ID] = 1
		before := slices.Clone(into[o.ID])
		for _, id := range o.Deps {
			if o.Sink == nil || id != o.Sink.Into && id != o.Sink.Delivered {
				before = append(before, cat.ByID(id))
			}
		}
		for _, fk := range o.Foreign {
			if fk.RefTable != o.ID && (acts(fk.OnDelete) || acts(fk.OnUpdate)) {
				before = append(before, cat.ByID(fk.RefTable))
			}
		}
		for _, b := range before {
			if err := visit(b); err != nil {
				return err
			}
		}
		state[o.ID] = 2
		if o.Sink != nil {
			out = append(out, o)
		}
		return nil
	}
	for _, o := range slices.Backward(cat.Objects()) { // the newest is to blame
		if o.Sink == nil {
			continue
		}
		if err := visit(o); err != nil {
			return nil, feedsItself(o.Name, cat.ByID(o.Sink.Into))
		}
	}
	return out, nil
}

func feedsItself(sink string, t *catalog.Object) error {
	return pgerror.New(pgerror.InvalidObjectDefinition, "sink \"%s\" would feed itself", sink).
		WithDetail("Its query reads, perhaps through views and other sinks, what it writes to table \"%s\".", t.Name)
}

// errCircle says that an object is among those that it depends on.
var errCircle = errors.New("an object depends on itself")

// acts says whether an action of a foreign key changes the rows that refer.
func acts(action string) bool { return action != "" && action != "restrict" }

// sinkUses reports whether a sink writes a column of a table.
func sinkUses(o, t *catalog.Object, col int) bool {
	return o.Sink != nil && o.Sink.Into == t.ID && slices.Contains(o.Sink.Columns, t.Columns[col].Name)
}

// renameInSinks names a column of a table anew in the sinks that write it.
func (d *ddlState) renameInSinks(t plan.ObjectID, from, to string) {
	for _, u := range d.cat.Users(t) {
		if u.Sink == nil || u.Sink.Into != t {
			continue
		}
		c := u.Clone()
		for i, n := range c.Sink.Columns {
			if n == from {
				c.Sink.Columns[i] = to
			}
		}
		c.SQL = sinkSQL(d.cat, c)
		d.apply(catalog.Change{Put: c})
	}
}
