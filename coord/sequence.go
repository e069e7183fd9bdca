package coord

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"sync"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
	"github.com/streamdb/streamdb/storage"
)

// sequence is the state of a sequence. It does not belong to a transaction. The
// log has a value ahead of the present one: after a crash the sequence goes on
// there, so that no value is given twice.
type sequence struct {
	mu     sync.Mutex
	state  sequenceState
	logged sequenceState // what the log says
	ahead  int64         // how many values were logged ahead last
}

// sequenceState is where a sequence is: the last value, and whether it was given.
type sequenceState struct {
	Last   int64
	Called bool
}

// The numbers of values that the log is ahead: few at first, more where many are
// taken.
const (
	minAhead = 32
	maxAhead = 1 << 13
)

// sequenceOf is the state of a sequence as the session's transaction sees it: a
// new start of it is the transaction's own until it commits.
func (s *Session) sequenceOf(o *catalog.Object) *sequence {
	if s.tx != nil && s.tx.ddl != nil {
		if q := s.tx.ddl.sequences[o.ID]; q != nil {
			return q
		}
	}
	return s.c.sequenceOf(o)
}

func (c *Coordinator) sequenceOf(o *catalog.Object) *sequence {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.sequences[o.ID]
	if q == nil {
		q = &sequence{state: sequenceState{Last: o.Sequence.Start}}
		q.logged = q.state
		c.sequences[o.ID] = q
	}
	return q
}

// sequenceValues implements expr.Sequences for a session.
type sequenceValues struct{ s *Session }

func (v sequenceValues) find(oid uint32) (*catalog.Object, error) {
	o := v.s.snapshot().ByOID(oid)
	if o == nil {
		return nil, pgerror.New(pgerror.UndefinedTable, "could not open relation with OID %d", oid)
	}
	if o.Kind != catalog.KindSequence {
		return nil, pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a sequence", o.Name)
	}
	return o, nil
}

// Next gives the next value.
func (v sequenceValues) Next(oid uint32) (int64, error) {
	o, err := v.find(oid)
	if err != nil {
		return 0, err
	}
	if v.s.tx != nil && v.s.tx.readOnly && !o.Temporary {
		return 0, pgerror.New(pgerror.ReadOnlySQLTransaction, "cannot execute nextval() in a read-only transaction")
	}
	n, err := v.s.sequenceOf(o).next(v.s.c, o)
	if err == nil {
		v.s.noteValue(o.ID, n)
	}
	return n, err
}

func (s *Session) noteValue(id plan.ObjectID, n int64) {
	s.seqMu.Lock()
	defer s.seqMu.Unlock()
	if s.values == nil {
		s.values = map[plan.ObjectID]int64{}
	}
	s.values[id], s.lastSeq = n, id
}

// Current is the value that the session got last from a sequence.
func (v sequenceValues) Current(oid uint32) (int64, error) {
	o, err := v.find(oid)
	if err != nil {
		return 0, err
	}
	v.s.seqMu.Lock()
	defer v.s.seqMu.Unlock()
	n, ok := v.s.values[o.ID]
	if !ok {
		return 0, pgerror.New(pgerror.ObjectNotInPrerequisiteState, "currval of sequence \"%s\" is not yet defined in this session", o.Name)
	}
	return n, nil
}

// Last is the value that the session got last from any sequence.
func (v sequenceValues) Last() (int64, error) {
	v.s.seqMu.Lock()
	defer v.s.seqMu.Unlock()
	if v.s.lastSeq == 0 || v.s.snapshot().ByID(v.s.lastSeq) == nil {
		return 0, pgerror.New(pgerror.ObjectNotInPrerequisiteState, "lastval is not yet defined in this session")
	}
	return v.s.values[v.s.lastSeq], nil
}

// Set sets a sequence.
func (v sequenceValues) Set(oid uint32, n int64, called bool) error {
	o, err := v.find(oid)
	if err != nil {
		return err
	}
	if d := o.Sequence; n < d.Min || n > d.Max {
		return pgerror.New(pgerror.NumericValueOutOfRange, "setval: value %d is out of bounds for sequence \"%s\" (%d..%d)", n, o.Name, d.Min, d.Max)
	}
	if v.s.tx != nil && v.s.tx.readOnly && !o.Temporary {
		return pgerror.New(pgerror.ReadOnlySQLTransaction, "cannot execute setval() in a read-only transaction")
	}
	q := v.s.sequenceOf(o)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state = sequenceState{n, called}
	if called {
		v.s.noteValue(o.ID, n)
	}
	return q.log(v.s.c, o, q.state)
}

// next advances the sequence.
func (q *sequence) next(c *Coordinator, o *catalog.Object) (int64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := o.Sequence
	n, err := q.state.after(d, o.Name)
	if err != nil {
		return 0, err
	}
	st := sequenceState{n, true}
	if !q.covers(d, st) {
		q.ahead = min(max(2*q.ahead, minAhead), maxAhead)
		ahead := st
		for range q.ahead - 1 {
			x, err := ahead.after(d, o.Name)
			if err != nil || (d.Increment > 0) != (x > ahead.Last) { // its end, or its start again
				break
			}
			ahead.Last = x
		}
		if err := q.log(c, o, ahead); err != nil {
			return 0, err
		}
	}
	q.state = st
	return n, nil
}

// covers reports whether what is logged is at or after st.
func (q *sequence) covers(d *catalog.Sequence, st sequenceState) bool {
	if !q.logged.Called {
		return false
	}
	if d.Increment > 0 {
		return q.state.Last <= st.Last && st.Last <= q.logged.Last
	}
	return q.state.Last >= st.Last && st.Last >= q.logged.Last
}

// after is the value after the state.
func (st sequenceState) after(d *catalog.Sequence, name string) (int64, error) {
	if !st.Called {
		return st.Last, nil
	}
	n := st.Last + d.Increment
	switch {
	case d.Increment > 0 && (n > d.Max || n < st.Last):
		if d.Cycle {
			return d.Min, nil
		}
		return 0, pgerror.New(pgerror.SequenceGeneratorLimit, "nextval: reached maximum value of sequence \"%s\" (%d)", name, d.Max)
	case d.Increment < 0 && (n < d.Min || n > st.Last):
		if d.Cycle {
			return d.Max, nil
		}
		return 0, pgerror.New(pgerror.SequenceGeneratorLimit, "nextval: reached minimum value of sequence \"%s\" (%d)", name, d.Min)
	}
	return n, nil
}

// log makes a state durable. The sequence is locked.
func (q *sequence) log(c *Coordinator, o *catalog.Object, st sequenceState) error {
	q.logged = st
	if o.Temporary {
		return nil
	}
	r := &request{}
	r.sequences = map[plan.ObjectID]sequenceState{o.ID: st}
	_, err := c.timeline.commit(c.ctx, r)
	return err
}

// sequencesAt are the states for a checkpoint: what the log says.
func (c *Coordinator) sequencesAt() map[plan.ObjectID]sequenceState {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := map[plan.ObjectID]sequenceState{}
	for id, st := range c.loggedSequences {
		out[id] = st
	}
	return out
}

// settleSequences writes the exact states before the server stops.
func (c *Coordinator) settleSequences(ctx context.Context) error {
	r := &request{}
	r.sequences = map[plan.ObjectID]sequenceState{}
	cat := c.catalog.Load()
	c.mu.RLock()
	for id, q := range c.sequences {
		if o := cat.ByID(id); o != nil && !o.Temporary && q.mu.TryLock() {
			if q.logged != q.state {
				r.sequences[id] = q.state
				q.logged = q.state
			}
			q.mu.Unlock()
		}
	}
	c.mu.RUnlock()
	if len(r.sequences) == 0 {
		return nil
	}
	_, err := c.timeline.commit(ctx, r)
	return err
}

const catalogSequences = "sequence/"

// storeSequences writes the states of sequences with a checkpoint.
func (p *checkpointer) storeSequences(b *storage.Batch, states map[plan.ObjectID]sequenceState) error {
	for id, st := range states {
		if p.sequences[id] == st {
			continue
		}
		j, err := json.Marshal(st)
		if err != nil {
			return err
		}
		b.PutCatalog(fmt.Sprintf("%s%020d", catalogSequences, id), j)
	}
	for id := range p.sequences {
		if _, ok := states[id]; !ok {
			b.DeleteCatalog(fmt.Sprintf("%s%020d", catalogSequences, id))
		}
	}
	return nil
}

func (c *Coordinator) loadSequences() error {
	return c.store.ScanCatalog(catalogSequences, func(key string, v []byte) error {
		id, err := strconv.ParseUint(key[len(key)-20:], 10, 64)
		if err != nil {
			return fmt.Errorf("catalog key %q: %w", key, err)
		}
		var st sequenceState
		if err := json.Unmarshal(v, &st); err != nil {
			return err
		}
		c.noteSequence(plan.ObjectID(id), st)
		return nil
	})
}

// noteSequence notes what the log says of a sequence. It runs in the timeline,
// or in recovery, where it is the sequence's state too.
func (c *Coordinator) noteSequence(id plan.ObjectID, st sequenceState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loggedSequences[id] = st
	if c.recovering {
		c.sequences[id] = &sequence{state: st, logged: st}
	}
}

// newSequence gives a sequence object its ids and its columns as a relation.
func (s *Session) newSequence(o *catalog.Object) (*catalog.Object, error) {
	o.Columns = []catalog.Column{{Name: "last_value", Type: types.Int8, NotNull: true}, {Name: "log_cnt", Type: types.Int8, NotNull: true},
		{Name: "is_called", Type: types.Bool, NotNull: true}}
	o.SQL = sequenceSQL(o)
	return s.c.newObject(o)
}

// sequenceRow is what reading a sequence as a relation gives.
func (s *Session) sequenceRow(o *catalog.Object) *columnar.Batch {
	q := s.sequenceOf(o)
	q.mu.Lock()
	defer q.mu.Unlock()
	return &columnar.Batch{N: 1, Cols: []*columnar.Vec{columnar.FromSlice([]int64{q.state.Last}, nil),
		columnar.FromSlice([]int64{0}, nil), columnar.FromSlice([]bool{q.state.Called}, nil)}}
}

// nextvalSQL is the default of a column with a sequence of its own.
func nextvalSQL(o *catalog.Object) string {
	name := parser.QuoteIdent(o.Schema) + "." + parser.QuoteIdent(o.Name)
	return "nextval(" + parser.QuoteString(name) + "::regclass)"
}

func sequenceSQL(o *catalog.Object) string {
	d := o.Sequence
	cycle := ""
	if d.Cycle {
		cycle = " CYCLE"
	}
	return fmt.Sprintf("CREATE SEQUENCE %s.%s AS %s INCREMENT BY %d MINVALUE %d MAXVALUE %d START WITH %d CACHE %d%s",
		quoteName(o.Schema), quoteName(o.Name), typeName(d.Type), d.Increment, d.Min, d.Max, d.Start, max(d.Cache, 1), cycle)
}

// restart is RESTART among the options of a sequence.
type restart struct {
	given bool
	value *int64 // nil: the start value
}

// sequenceClauses are the options of CREATE or ALTER SEQUENCE by name.
type sequenceClauses map[string]*pg.DefElem

// number is the value of an option; false if it is not given, or as NO.
func (c sequenceClauses) number(name string) (int64, bool, error) {
	e := c[name]
	if e == nil || e.Arg == nil {
		return 0, false, nil
	}
	if f := e.Arg.GetFloat(); f != nil {
		n, err := strconv.ParseInt(f.Fval, 10, 64)
		if err != nil {
			return 0, false, pgerror.New(pgerror.NumericValueOutOfRange, "value \"%s\" is out of range for type bigint", f.Fval)
		}
		return n, true, nil
	}
	return int64(e.Arg.GetInteger().GetIval()), true, nil
}

// sequenceOptions applies the options of CREATE and ALTER SEQUENCE.
func sequenceOptions(d *catalog.Sequence, opts []*pg.Node, create bool) (r restart, err error) {
	given := sequenceClauses{}
	for _, x := range opts {
		e := x.GetDefElem()
		if given[e.Defname] != nil {
			return r, pgerror.New(pgerror.SyntaxError, "conflicting or redundant options")
		}
		given[e.Defname] = e
	}
	if d.Increment == 0 {
		d.Increment = 1
	}
	if n, ok, err := given.number("increment"); err != nil {
		return r, err
	} else if ok {
		if n == 0 {
			return r, pgerror.New(pgerror.InvalidParameterValue, "INCREMENT must not be zero")
		}
		d.Increment = n
	}
	if e := given["cycle"]; e != nil {
		d.Cycle = e.Arg.GetBoolean().GetBoolval()
	}
	if err := given.bounds(d, create); err != nil {
		return r, err
	}
	if err := given.start(d, create); err != nil {
		return r, err
	}
	if n, ok, err := given.number("cache"); err != nil {
		return r, err
	} else if ok {
		if n <= 0 {
			return r, pgerror.New(pgerror.InvalidParameterValue, "CACHE (%d) must be greater than zero", n)
		}
		d.Cache = n
	}
	return given.restart(d)
}

// bounds applies MINVALUE and MAXVALUE.
func (c sequenceClauses) bounds(d *catalog.Sequence, create bool) error {
	lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
	switch d.Type.OID {
	case types.OIDInt2:
		lo, hi = math.MinInt16, math.MaxInt16
	case types.OIDInt4:
		lo, hi = math.MinInt32, math.MaxInt32
	}
	least, most := int64(1), hi
	if d.Increment < 0 {
		least, most = lo, -1
	}
	for _, b := range []struct {
		name, word string
		at         *int64
		def        int64
	}{{"maxvalue", "MAXVALUE", &d.Max, most}, {"minvalue", "MINVALUE", &d.Min, least}} {
		n, ok, err := c.number(b.name)
		switch {
		case err != nil:
			return err
		case ok && (n < lo || n > hi):
			return pgerror.New(pgerror.InvalidParameterValue, "%s (%d) is out of range for sequence data type %s", b.word, n, typeName(d.Type))
		case ok:
			*b.at = n
		case create || c[b.name] != nil:
			*b.at = b.def
		}
	}
	if d.Min >= d.Max {
		return pgerror.New(pgerror.InvalidParameterValue, "MINVALUE (%d) must be less than MAXVALUE (%d)", d.Min, d.Max)
	}
	return nil
}

// start applies START.
func (c sequenceClauses) start(d *catalog.Sequence, create bool) error {
	n, ok, err := c.number("start")
	switch {
	case err != nil:
		return err
	case ok:
		d.Start = n
	case create && d.Increment > 0:
		d.Start = d.Min
	case create:
		d.Start = d.Max
	}
	return within(d, "START", d.Start)
}

// within checks a value against the bounds of a sequence.
func within(d *catalog.Sequence, what string, n int64) error {
	if n < d.Min {
		return pgerror.New(pgerror.InvalidParameterValue, "%s value (%d) cannot be less than MINVALUE (%d)", what, n, d.Min)
	}
	if n > d.Max {
		return pgerror.New(pgerror.InvalidParameterValue, "%s value (%d) cannot be greater than MAXVALUE (%d)", what, n, d.Max)
	}
	return nil
}

// restart reads RESTART.
func (c sequenceClauses) restart(d *catalog.Sequence) (r restart, err error) {
	if c["restart"] == nil {
		return r, nil
	}
	r.given = true
	n, ok, err := c.number("restart")
	if err != nil || !ok {
		return r, err
	}
	r.value = &n
	return r, within(d, "RESTART", n)
}

// sequenceType applies AS.
func (s *Session) sequenceType(d *catalog.Sequence, p *prepared, opts []*pg.Node) ([]*pg.Node, *pg.DefElem, error) {
	var rest []*pg.Node
	var owner *pg.DefElem
	for _, x := range opts {
		switch e := x.GetDefElem(); e.Defname {
		case "as":
			t, err := planner.ResolveType(s.bindContext(nil), p.stmt.Text, parser.TypeName{Node: e.Arg.GetTypeName(), Base: p.stmt.Start})
			if err != nil {
				return nil, nil, err
			}
			if t.OID != types.OIDInt2 && t.OID != types.OIDInt4 && t.OID != types.OIDInt8 {
				return nil, nil, pgerror.New(pgerror.InvalidParameterValue, "sequence type must be smallint, integer, or bigint")
			}
			d.Type = t
		case "owned_by":
			owner = e
		default:
			rest = append(rest, x)
		}
	}
	return rest, owner, nil
}

// ownSequence applies OWNED BY.
func (s *Session) ownSequence(d *ddlState, o *catalog.Object, owner *pg.DefElem) error {
	if owner == nil {
		return nil
	}
	names := listStrings(owner.Arg.GetList().GetItems())
	if len(names) == 1 && names[0] == "none" {
		o.Sequence.Table, o.Sequence.Column = 0, ""
		return nil
	}
	if len(names) < 2 {
		return pgerror.New(pgerror.SyntaxError, "invalid OWNED BY option").WithHint("Specify OWNED BY table.column or OWNED BY NONE.")
	}
	schema := ""
	if len(names) > 2 {
		schema = names[len(names)-3]
	}
	t := d.cat.Resolve(catalog.KindTable, schema, names[len(names)-2], s.relationPath())
	if t == nil {
		return undefinedRelation(schema, names[len(names)-2])
	}
	col := names[len(names)-1]
	if t.Column(col) < 0 {
		return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", col, t.Name)
	}
	if t.Schema != o.Schema {
		return pgerror.New(pgerror.ObjectNotInPrerequisiteState, "sequence must be in same schema as table it is linked to")
	}
	o.Sequence.Table, o.Sequence.Column = t.ID, col
	return nil
}

// createSequence runs CREATE SEQUENCE.
func (s *Session) createSequence(d *ddlState, p *prepared, n *pg.CreateSeqStmt, w pgwire.ResultWriter) error {
	name := rangeName(n.Sequence)
	schema, exists, err := s.targetIn(d, catalog.KindSequence, name, n.Sequence.Relpersistence == "t")
	if err != nil {
		return err
	}
	if skip, err := taken(exists, n.IfNotExists, w); skip || err != nil {
		return err
	}
	o := &catalog.Object{Schema: schema, Name: name.Name, Kind: catalog.KindSequence, Sequence: &catalog.Sequence{Type: types.Int8},
		Temporary: schema == s.tempSchema}
	rest, owner, err := s.sequenceType(o.Sequence, p, n.Options)
	if err != nil {
		return err
	}
	r, err := sequenceOptions(o.Sequence, rest, true)
	if err != nil {
		return err
	}
	if err := s.ownSequence(d, o, owner); err != nil {
		return err
	}
	if o, err = s.newSequence(o); err != nil {
		return err
	}
	d.apply(catalog.Change{Put: o})
	if r.given {
		d.restart(o, r)
	}
	return nil
}

// restart gives a sequence a new start that is the transaction's own until it commits.
func (d *ddlState) restart(o *catalog.Object, r restart) {
	st := sequenceState{Last: o.Sequence.Start}
	if r.value != nil {
		st.Last = *r.value
	}
	if d.sequences == nil {
		d.sequences = map[plan.ObjectID]*sequence{}
	}
	d.sequences[o.ID] = &sequence{state: st, logged: sequenceState{Last: st.Last}}
}

// alterSequence runs ALTER SEQUENCE.
func (s *Session) alterSequence(d *ddlState, p *prepared, n *pg.AlterSeqStmt, w pgwire.ResultWriter) error {
	o, err := s.find(d, parser.ObjectSequence, rangeName(n.Sequence))
	if err != nil {
		if n.MissingOk && missing(err) {
			w.Notice(&pgerror.Error{Severity: "NOTICE", Code: pgerror.SuccessfulCompletion, Message: fmt.Sprintf("relation \"%s\" does not exist, skipping", n.Sequence.Relname)})
			return nil
		}
		return err
	}
	return s.changeSequence(d, p, o, n.Options)
}

// changeSequence applies options to a sequence that is there.
func (s *Session) changeSequence(d *ddlState, p *prepared, o *catalog.Object, opts []*pg.Node) error {
	c := o.Clone()
	rest, owner, err := s.sequenceType(c.Sequence, p, opts)
	if err != nil {
		return err
	}
	r, err := sequenceOptions(c.Sequence, rest, false)
	if err != nil {
		return err
	}
	if owner != nil && c.Sequence.Identity {
		return pgerror.New(pgerror.FeatureNotSupported, "cannot change ownership of identity sequence")
	}
	if err := s.ownSequence(d, c, owner); err != nil {
		return err
	}
	c.SQL = sequenceSQL(c)
	d.apply(catalog.Change{Put: c})
	if r.given {
		d.restart(c, r)
	}
	return nil
}

// enterSequences puts the new starts of sequences into the transaction's request.
func (c *Coordinator) enterSequences(r *request, d *ddlState) {
	for id, q := range d.sequences {
		if d.cat.ByID(id) == nil {
			continue
		}
		if r.sequences == nil {
			r.sequences = map[plan.ObjectID]sequenceState{}
		}
		if !d.cat.ByID(id).Temporary {
			r.sequences[id] = q.state
		}
	}
	if len(d.sequences) == 0 {
		return
	}
	before := r.atEpoch
	r.atEpoch = func(e dataflow.Epoch) {
		if before != nil {
			before(e)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for id, q := range d.sequences {
			q.logged = q.state
			c.sequences[id] = q
		}
	}
}

// rangeName is the name in a tree of PostgreSQL's.
func rangeName(r *pg.RangeVar) parser.Name {
	return parser.Name{Database: r.Catalogname, Schema: r.Schemaname, Name: r.Relname}
}
