package coord

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/catalog/pgcatalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// Version is the version of streamdb.
const Version = "0.1.0"

func versionText() string {
	return fmt.Sprintf("PostgreSQL %s (streamdb %s) on %s-%s, compiled by %s", serverVersion, Version, runtime.GOARCH, runtime.GOOS, runtime.Version())
}

// virtualBase is where the ids of virtual relations begin, far from those of
// stored objects.
const virtualBase = plan.ObjectID(1) << 48

// virtualTable is a relation that is computed when it is read: the system
// catalogs and streamdb's own state.
type virtualTable struct {
	obj  *catalog.Object
	rows func(s *Session) (*columnar.Batch, error)
}

// baseCatalog is the catalog without user objects: system schemas and virtual
// relations.
func (c *Coordinator) baseCatalog() *catalog.Snapshot {
	c.virtual = map[plan.ObjectID]*virtualTable{}
	var changes []catalog.Change
	add := func(schema, name string, oid uint32, cols []catalog.Column, rows func(s *Session) (*columnar.Batch, error)) {
		o := &catalog.Object{ID: virtualBase + plan.ObjectID(oid), OID: oid, Schema: schema, Name: name, Kind: catalog.KindVirtual, Columns: cols}
		c.virtual[o.ID] = &virtualTable{o, rows}
		changes = append(changes, catalog.Change{Put: o})
	}
	for _, t := range pgcatalog.Tables() {
		add(t.Schema, t.Name, t.OID, t.Columns, func(s *Session) (*columnar.Batch, error) { return t.Rows(&pgEnv{s}) })
	}
	oid := uint32(15000)
	for _, t := range internalTables() {
		add(catalog.SchemaInternal, t.name, oid, t.columns, t.rows)
		oid++
	}
	add(catalog.SchemaRisingWave, "rw_streaming_job_config", 15100, jobConfigColumns, (*Session).jobConfigRows)
	oid = 15101
	for _, sys := range []struct {
		schema string
		tables []systemTable
	}{{catalog.SchemaRisingWave, rwTables}, {catalog.SchemaMaterialize, mzTables}, {catalog.SchemaMaterializeInternal, mzInternalTables}} {
		for _, t := range systemTables(sys.tables) {
			add(sys.schema, t.name, oid, t.columns, t.rows)
			oid++
		}
	}
	return catalog.Empty().Apply(changes...)
}

// pgEnv is what the system catalogs ask of a session; it implements pgcatalog.Env.
type pgEnv struct{ s *Session }

// Snapshot is the catalog as the session sees it.
func (e *pgEnv) Snapshot() *catalog.Snapshot { return e.s.snapshot() }

// Database and User name where the session is and who it is.
func (e *pgEnv) Database() string { return e.s.database }

// Databases are the names that the database goes by: that of the session, and that which
// it has for whom no client has named it.
func (e *pgEnv) Databases() []string {
	if e.s.database == databaseName {
		return []string{databaseName}
	}
	return []string{e.s.database, databaseName}
}

// Users are the names of those that may connect, and of those with open sessions.
func (e *pgEnv) Users() []string {
	c := e.s.c
	out := slices.Clone(c.opts.Users)
	c.mu.RLock()
	defer c.mu.RUnlock()
	for x := range c.sessions {
		out = append(out, x.user)
	}
	return out
}

// User is the session's role.
func (e *pgEnv) User() string { return e.s.user }

// SearchPath is the effective search path.
func (e *pgEnv) SearchPath() []string { return e.s.relationPath() }

// Settings lists every setting.
func (e *pgEnv) Settings() []pgcatalog.Setting {
	out := make([]pgcatalog.Setting, len(settingDefs))
	for i := range settingDefs {
		d := &settingDefs[i]
		v, _ := e.s.set.get(d.name)
		out[i] = pgcatalog.Setting{Name: d.name, Value: v, Default: d.def, Description: d.desc}
	}
	return out
}

// Rows estimates the rows of a relation, -1 if it is not known.
func (e *pgEnv) Rows(id plan.ObjectID) float64 { return e.s.c.estimateRows(id) }

// Updatable says which columns of a view can be changed.
func (e *pgEnv) Updatable(o *catalog.Object) []bool {
	return planner.ViewColumns(e.s.bindContext(nil), o)
}

// Present implements pgwire.Presenter: types are named as the search path finds them.
func (s *Session) Present(e *pgerror.Error) *pgerror.Error {
	return e.Under(func(schema, name string) bool {
		return pgcatalog.TypeVisible(s.snapshot(), s.relationPath(), schema, name)
	})
}

// LastValue is the value that a sequence gave last.
func (e *pgEnv) LastValue(o *catalog.Object) (int64, bool) {
	q := e.s.sequenceOf(o)
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state.Last, q.state.Called
}

// ColumnUses are the columns that the query of a view names. A query that cannot be
// bound any more names none.
func (e *pgEnv) ColumnUses(o *catalog.Object) []pgcatalog.ColumnUse {
	uses, _ := planner.ColumnUses(e.s.c.bindContext(e.Snapshot()), o.Query)
	out := make([]pgcatalog.ColumnUse, len(uses))
	for i, u := range uses {
		out[i] = pgcatalog.ColumnUse(u)
	}
	return out
}

// Started is when the server began.
func (e *pgEnv) Started() time.Time { return e.s.c.started }

// Now is the present time.
func (e *pgEnv) Now() time.Time { return e.s.c.opts.Now() }

// Sessions lists the client sessions.
func (e *pgEnv) Sessions() []pgcatalog.Session {
	c := e.s.c
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out []pgcatalog.Session
	for x := range c.sessions {
		x.mu.Lock()
		app, _ := x.set.base["application_name"]
		out = append(out, pgcatalog.Session{PID: x.info.PID, User: x.user, Application: app, RemoteAddr: x.info.RemoteAddr,
			Started: x.started, QueryStarted: x.queryAt, State: x.state, Query: x.query, TLS: x.info.TLS})
		x.mu.Unlock()
	}
	return out
}

// Prepared lists the session's prepared statements.
func (e *pgEnv) Prepared() []pgcatalog.Prepared {
	var out []pgcatalog.Prepared
	for _, p := range e.s.stmts {
		if p.name != "" {
			out = append(out, pgcatalog.Prepared{Name: p.name, SQL: p.sql, Params: p.params, FromSQL: p.fromSQL})
		}
	}
	return out
}

// Cursors lists the session's open cursors.
func (e *pgEnv) Cursors() []pgcatalog.Cursor {
	var out []pgcatalog.Cursor
	for _, p := range e.s.portals {
		if p.cursor {
			out = append(out, pgcatalog.Cursor{Name: p.name, SQL: p.p.sql, Hold: p.hold, Scroll: p.scroll})
		}
	}
	return out
}

// catalogReader answers the catalog functions of SQL.
func (s *Session) catalogReader() expr.CatalogReader { return pgcatalog.NewReader(&pgEnv{s}) }

// names resolves the text forms of reg* types.
func (s *Session) names() types.NameResolver { return pgcatalog.NewReader(&pgEnv{s}) }

// internalTable is a relation of streamdb_internal.
type internalTable struct {
	name    string
	columns []catalog.Column
	rows    func(s *Session) (*columnar.Batch, error)
}

// rowSet builds the rows of a virtual relation.
type rowSet struct {
	cols []catalog.Column
	bs   []*columnar.Builder
	n    int
}

func newRowSet(cols []catalog.Column) *rowSet {
	r := &rowSet{cols: cols}
	for _, c := range cols {
		r.bs = append(r.bs, columnar.NewBuilder(c.Type.Kind(), 16))
	}
	return r
}

// add appends a row of Go values: string, int64, int32, int16, float64, bool,
// time.Time, literal, nil.
func (r *rowSet) add(vals ...any) {
	for i, v := range vals {
		b := r.bs[i]
		switch v := v.(type) {
		case nil:
			b.Null()
		case string:
			b.String(v)
		case int64:
			b.Int64(v)
		case int32:
			b.Int32(v)
		case int16:
			b.Int16(v)
		case literal:
			if err := types.ParseText(b, r.cols[i].Type, string(v), nil); err != nil {
				panic(err) // the text is the program's
			}
		case float64:
			b.Float64(v)
		case bool:
			b.Bool(v)
		case time.Time:
			if v.IsZero() {
				b.Null()
			} else {
				b.Int64(pgMicros(v))
			}
		default:
			panic(fmt.Sprintf("virtual relation: value of type %T", v))
		}
	}
	r.n++
}

func (r *rowSet) batch() *columnar.Batch {
	b := &columnar.Batch{N: r.n}
	for _, x := range r.bs {
		b.Cols = append(b.Cols, x.Build())
	}
	return b
}

func vcol(name string, t types.Type) catalog.Column { return catalog.Column{Name: name, Type: t} }

// internalTables are the relations in which streamdb tells about itself.
func internalTables() []internalTable {
	freshness := []catalog.Column{vcol("object_id", types.Int8), vcol("schema", types.Text), vcol("name", types.Text), vcol("kind", types.Text),
		vcol("cluster", types.Text), vcol("hydrated", types.Bool), vcol("epoch", types.Int8), vcol("lag_ms", types.Int8),
		vcol("last_change", types.TimestampTZ), vcol("rows", types.Int8), vcol("updates", types.Int8), vcol("errors", types.Int8)}
	srcs := []catalog.Column{vcol("object_id", types.Int8), vcol("schema", types.Text), vcol("name", types.Text), vcol("connector", types.Text),
		vcol("state", types.Text), vcol("error", types.Text), vcol("lag", types.Int8), vcol("records", types.Int8), vcol("bytes", types.Int8),
		vcol("record_errors", types.Int8), vcol("updated", types.TimestampTZ)}
	sinks := []catalog.Column{vcol("object_id", types.Int8), vcol("schema", types.Text), vcol("name", types.Text), vcol("table_schema", types.Text),
		vcol("table_name", types.Text), vcol("state", types.Text), vcol("error", types.Text), vcol("sqlstate", types.Text), vcol("since", types.TimestampTZ),
		vcol("pending", types.Int8), vcol("deliveries", types.Int8), vcol("inserted", types.Int8), vcol("deleted", types.Int8), vcol("failures", types.Int8)}
	hyd := []catalog.Column{vcol("object_id", types.Int8), vcol("schema", types.Text), vcol("name", types.Text), vcol("rows_read", types.Int8),
		vcol("rows_total", types.Int8), vcol("epoch", types.Int8)}
	objs := []catalog.Column{vcol("object_id", types.Int8), vcol("schema", types.Text), vcol("name", types.Text), vcol("kind", types.Text),
		vcol("create_sql", types.Text)}
	deps := []catalog.Column{vcol("object_id", types.Int8), vcol("depends_on", types.Int8)}
	store := []catalog.Column{vcol("name", types.Text), vcol("value", types.Int8)}
	return []internalTable{
		{"freshness", freshness, func(s *Session) (*columnar.Batch, error) { return s.freshnessRows(freshness), nil }},
		{"sources", srcs, func(s *Session) (*columnar.Batch, error) { return s.sourceRows(srcs), nil }},
		{"sinks", sinks, func(s *Session) (*columnar.Batch, error) { return s.sinkRows(sinks), nil }},
		{"hydration", hyd, func(s *Session) (*columnar.Batch, error) { return s.hydrationTable(hyd), nil }},
		{"objects", objs, func(s *Session) (*columnar.Batch, error) {
			r := newRowSet(objs)
			for _, o := range s.snapshot().Objects() {
				if o.Kind != catalog.KindVirtual && (o.Kind != catalog.KindSink || o.Parent == 0) {
					r.add(int64(o.ID), o.Schema, o.Name, o.Kind.String(), o.SQL)
				}
			}
			return r.batch(), nil
		}},
		{"dependencies", deps, func(s *Session) (*columnar.Batch, error) {
			r := newRowSet(deps)
			for _, o := range s.snapshot().Objects() {
				for _, d := range o.Deps {
					r.add(int64(o.ID), int64(d))
				}
			}
			return r.batch(), nil
		}},
		{"storage", store, func(s *Session) (*columnar.Batch, error) {
			r := newRowSet(store)
			for _, kv := range s.c.storageStats() {
				r.add(kv.name, kv.value)
			}
			return r.batch(), nil
		}},
	}
}

func (s *Session) freshnessRows(cols []catalog.Column) *columnar.Batch {
	r := newRowSet(cols)
	now := s.c.opts.Now()
	for _, o := range s.snapshot().Objects() {
		coll := s.c.collection(o.ID)
		if coll == nil {
			continue
		}
		epoch := coll.stage.done.get()
		lag := int64(0)
		if d := s.c.readEpoch(); d > epoch {
			lag = max(now.UnixMilli()-int64(epoch), 0)
		}
		var last time.Time
		if at := coll.lastAt.Load(); at > 0 {
			last = time.UnixMilli(int64(at))
		}
		r.add(int64(o.ID), o.Schema, o.Name, o.Kind.String(), o.Cluster, coll.isReady(), int64(epoch), lag, last,
			coll.rowCount.Load(), coll.updates.Load(), coll.errCount.Load())
	}
	return r.batch()
}

func (s *Session) sourceRows(cols []catalog.Column) *columnar.Batch {
	r := newRowSet(cols)
	s.c.mu.RLock()
	defer s.c.mu.RUnlock()
	for _, id := range sortedIDs(s.c.sources) {
		x := s.c.sources[id]
		st := x.currentStatus()
		errs := int64(0)
		if coll := s.c.collections[x.errors]; coll != nil {
			errs = coll.rowCount.Load()
		}
		records := int64(0)
		for _, table := range x.tables {
			if coll := s.c.collections[table]; coll != nil {
				records += coll.records.Load()
			}
		}
		r.add(int64(id), x.obj.Schema, x.obj.Name, x.obj.Options["connector"], st.State, st.Error, st.Lag, records, x.bytes.Load(), errs, st.Updated)
	}
	return r.batch()
}

func (s *Session) hydrationTable(cols []catalog.Column) *columnar.Batch {
	r := newRowSet(cols)
	cat := s.snapshot()
	s.c.mu.RLock()
	defer s.c.mu.RUnlock()
	for _, id := range sortedIDs(s.c.hydrations) {
		h := s.c.hydrations[id]
		if o := cat.ByID(id); o != nil {
			r.add(int64(id), o.Schema, o.Name, h.rows.Load(), h.total.Load(), int64(h.epoch.Load()))
		}
	}
	return r.batch()
}

type stat struct {
	name  string
	value int64
}
