package coord

import (
	"context"
	"fmt"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// createSubscription runs RisingWave's CREATE SUBSCRIPTION name FROM relation. A
// subscription is a name for cursors to read the changes of the relation by; it keeps
// nothing itself, so that its retention is only checked and shown.
func (s *Session) createSubscription(d *ddlState, n *parser.CreateSubscription, w pgwire.ResultWriter) error {
	schema, exists, err := s.target(d, catalog.KindSubscription, n.Name)
	if err != nil {
		return err
	}
	if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
		return err
	}
	of := d.cat.Resolve(catalog.KindTable, n.From.Schema, n.From.Name, s.relationPath())
	switch {
	case of == nil:
		return pgerror.As(undefinedRelation(n.From.Schema, n.From.Name)).At(n.From.Pos)
	case of.Kind != catalog.KindTable && of.Kind != catalog.KindMaterializedView && of.Kind != catalog.KindSource:
		return pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a table, source or materialized view", of.Name).At(n.From.Pos)
	case of.Temporary:
		return pgerror.New(pgerror.FeatureNotSupported, "subscriptions must not be of temporary tables").At(n.From.Pos)
	}
	o := &catalog.Object{Schema: schema, Name: n.Name.Name, Kind: catalog.KindSubscription, Deps: []plan.ObjectID{of.ID}, Options: map[string]string{}}
	for _, x := range n.With {
		if x.Name != "retention" {
			return pgerror.New(pgerror.InvalidParameterValue, "unrecognized parameter \"%s\"", x.Name).At(x.Pos)
		}
		if _, err := types.ParseInterval(x.Value.Text, -1, nil); err != nil {
			return pgerror.New(pgerror.InvalidParameterValue, "invalid value for option \"retention\": \"%s\"", x.Value.Text).At(x.Pos)
		}
		o.Options["retention"] = x.Value.Text
	}
	if o, err = s.c.newObject(o); err != nil {
		return err
	}
	o.SQL = subscriptionSQL(d.cat, o)
	d.apply(catalog.Change{Put: o})
	return nil
}

// subscriptionSQL writes the definition of a subscription.
func subscriptionSQL(cat *catalog.Snapshot, o *catalog.Object) string {
	of := cat.ByID(o.Deps[0])
	sql := fmt.Sprintf("CREATE SUBSCRIPTION %s.%s FROM %s.%s", quoteName(o.Schema), quoteName(o.Name), quoteName(of.Schema), quoteName(of.Name))
	if r := o.Options["retention"]; r != "" {
		sql += " WITH (retention = " + parser.QuoteString(r) + ")"
	}
	return sql
}

// declareSubscription runs DECLARE name SUBSCRIPTION CURSOR FOR subscription [FULL |
// SINCE when]: it lives until the session ends or it is closed.
func (s *Session) declareSubscription(ctx context.Context, p *prepared, n *parser.DeclareCursor) error {
	cat := s.snapshot()
	o := cat.Resolve(catalog.KindSubscription, n.Subscription.Schema, n.Subscription.Name, s.relationPath())
	if o == nil {
		return pgerror.New(pgerror.UndefinedObject, "subscription \"%s\" does not exist", n.Subscription.Name).At(n.Subscription.Pos)
	}
	of := cat.ByID(o.Deps[0])
	sub := &parser.Subscribe{Name: &parser.Name{Schema: of.Schema, Name: of.Name}, Envelope: changelogEnvelope, Snapshot: n.Full}
	if n.Since != nil && !strings.EqualFold(strings.ReplaceAll(n.Since.SQL, " ", ""), "begin()") {
		at, err := s.epochExpr(p, n.Since)
		if err != nil {
			return err
		}
		if at < s.c.readEpoch() { // else nothing has happened since
			x, err := parser.ParseExpr(fmt.Sprint(uint64(at)))
			if err != nil {
				return err
			}
			sub.AsOf = &parser.AsOf{Expr: x}
		}
	}
	st := *p.stmt
	st.Node = sub
	q := &prepared{stmt: &st, sql: p.sql}
	if err := s.analyze(q); err != nil {
		return err
	}
	running, err := s.subscribe(ctx, q, sub)
	if err != nil {
		return err
	}
	s.portals[n.Name] = &portal{name: n.Name, cursor: true, hold: true, tx: s.tx, level: s.level(), p: q, sub: running}
	return nil
}
