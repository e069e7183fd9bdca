package coord

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// ownerOID is the one role, which owns everything.
const ownerOID = int32(10)

// systemTable is a relation of the catalogs of RisingWave and Materialize.
type systemTable struct {
	name, columns string // columns are names with types
	rows          func(s *Session, cat *catalog.Snapshot, add func(vals ...any))
}

// literal is a value of any type as text.
type literal string

// stamps are the columns about when an object was made, which is not kept.
const stamps = ", initialized_at timestamptz, created_at timestamptz, initialized_at_cluster_version text, created_at_cluster_version text"

// rwTables are the relations of RisingWave's rw_catalog. Ids are the OIDs of pg_catalog.
// What there is no counterpart of here is empty or NULL: fragments and actors stand for
// a whole view, index, table or sink, which one dataflow keeps.
var rwTables = []systemTable{
	{"rw_tables", "id int4, name text, schema_id int4, owner int4, definition text, append_only bool, acl text[]" + stamps,
		ofKinds(func(_ *catalog.Snapshot, o *catalog.Object) []any {
			return []any{o.SQL, o.AppendOnly, nil, nil, nil, nil, nil}
		}, catalog.KindTable)},
	{"rw_materialized_views", "id int4, name text, schema_id int4, owner int4, definition text, append_only bool, acl text[]" + stamps + ", background_ddl bool",
		ofKinds(func(_ *catalog.Snapshot, o *catalog.Object) []any {
			return []any{o.SQL, o.Grows, nil, nil, nil, nil, nil, true}
		}, catalog.KindMaterializedView)},
	{"rw_views", "id int4, name text, schema_id int4, owner int4, definition text, acl text[]",
		ofKinds(func(_ *catalog.Snapshot, o *catalog.Object) []any { return []any{o.SQL, nil} }, catalog.KindView)},
	{"rw_sources", "id int4, name text, schema_id int4, owner int4, connector text, columns text[], format text, row_encode text, append_only bool, associated_table_id int4, connection_id int4, definition text, acl text[]" +
		stamps + ", is_shared bool, connector_props jsonb, format_encode_options jsonb", ofKinds(rwSource, catalog.KindSource)},
	{"rw_sinks", "id int4, name text, schema_id int4, owner int4, connector text, sink_type text, connection_id int4, definition text, acl text[]" +
		stamps + ", connector_props jsonb, format_encode_options jsonb", ofKinds(rwSink, catalog.KindSink)},
	{"rw_indexes", "id int4, name text, primary_table_id int4, key_columns int2[], include_columns int2[], schema_id int4, owner int4, definition text, acl text[]" + stamps, rwIndexes},
	{"rw_functions", "id int4, name text, schema_id int4, owner int4, type text, arg_type_ids int4[], return_type_id int4, language text, link text, acl text[]", ofKinds(rwFunction, catalog.KindFunction)},
	{"rw_connections", "id int4, name text, schema_id int4, owner int4, type text, provider text, connection_params jsonb, acl text[]",
		ofKinds(func(_ *catalog.Snapshot, o *catalog.Object) []any {
			return []any{strings.ToUpper(o.Options["connector"]), nil, nil, nil}
		}, catalog.KindConnection)},
	{"rw_secrets", "id int4, name text, schema_id int4, owner int4, type text, acl text[]",
		ofKinds(func(*catalog.Snapshot, *catalog.Object) []any { return []any{"META", nil} }, catalog.KindSecret)},
	{"rw_subscriptions", "id int4, name text, schema_id int4, owner int4, definition text, acl text[]" + stamps,
		ofKinds(func(_ *catalog.Snapshot, o *catalog.Object) []any { return []any{o.SQL, nil, nil, nil, nil, nil} }, catalog.KindSubscription)},
	{"rw_databases", "id int4, name text, owner int4, acl text[], resource_group text", func(_ *Session, _ *catalog.Snapshot, add func(...any)) {
		add(int32(5), databaseName, ownerOID, nil, "default")
	}},
	{"rw_schemas", "id int4, name text, owner int4, acl text[]", func(_ *Session, cat *catalog.Snapshot, add func(...any)) {
		for _, sc := range cat.Schemas() {
			add(int32(sc.OID), sc.Name, ownerOID, nil)
		}
	}},
	{"rw_users", "id int4, name text, is_super bool, create_db bool, create_user bool, can_login bool", func(s *Session, _ *catalog.Snapshot, add func(...any)) {
		add(ownerOID, s.user, true, true, true, true)
	}},
	{"rw_columns", "relation_id int4, name text, position int4, is_hidden bool, is_primary_key bool, is_distribution_key bool, is_generated bool, is_nullable bool, generation_expression text, data_type text, type_oid int4, type_len int2, udt_type text", rwColumns},
	{"rw_system_tables", "id int4, name text, schema_id int4, owner int4, definition text, acl text[]",
		ofKinds(func(*catalog.Snapshot, *catalog.Object) []any { return []any{"", nil} }, catalog.KindVirtual)},
	{"rw_relations", "id int4, name text, relation_type text, schema_id int4, owner int4, definition text, acl text[]", rwRelations},
	{"rw_relation_info", "schemaname text, relationname text, relationowner int4, definition text, relationtype text, relationid int4, relationtimezone text, fragments text, initialized_at timestamptz, created_at timestamptz", rwRelationInfo},
	{"rw_depend", "objid int4, refobjid int4", rwDepend},
	{"rw_description", "objoid int4, classoid int4, objsubid int4, description text", rwDescription},
	{"rw_types", "id int4, name text, input_oid text, typelem int4, typarray int4", func(_ *Session, _ *catalog.Snapshot, add func(...any)) {
		for _, t := range types.All() {
			add(int32(t.OID), t.Name, t.Input, int32(t.Elem), int32(t.Array))
		}
	}},
	{"rw_table_stats", "id int4, total_key_count int8, total_key_size int8, total_value_size int8, total_compressed_size int8", func(s *Session, cat *catalog.Snapshot, add func(...any)) {
		for _, o := range cat.Objects() {
			if c := s.c.collection(o.ID); c != nil {
				add(int32(o.OID), c.rowCount.Load(), nil, nil, nil)
			}
		}
	}},
	{"rw_ddl_progress", "ddl_id int8, ddl_statement text, create_type text, progress text, initialized_at timestamptz", rwProgress},
	{"rw_streaming_jobs", "job int4, name text, status text, parallelism text, max_parallelism int4, resource_group text",
		ofJobs(func(_ *Session, o *catalog.Object, ready bool) []any {
			return []any{int32(o.OID), o.Name, jobStatus(ready), "ADAPTIVE", processors(), "default"}
		})},
	{"rw_table_fragments", "table_id int4, status text, parallelism text, max_parallelism int4",
		ofJobs(func(_ *Session, o *catalog.Object, ready bool) []any {
			return []any{int32(o.OID), jobStatus(ready), "ADAPTIVE", processors()}
		})},
	{"rw_streaming_parallelism", "id int4, name text, relation_type text, parallelism text",
		ofJobs(func(_ *Session, o *catalog.Object, _ bool) []any {
			return []any{int32(o.OID), o.Name, o.Kind.String(), "ADAPTIVE"}
		})},
	{"rw_fragments", "fragment_id int4, table_id int4, distribution_type text, state_table_ids int4[], upstream_fragment_ids int4[], flags text[], parallelism int4, max_parallelism int4, node jsonb",
		ofJobs(func(s *Session, o *catalog.Object, _ bool) []any {
			return []any{int32(o.OID), int32(o.OID), "HASH", literal("{}"), upstream(s, o), jobFlags(o), processors(), processors(), nil}
		})},
	{"rw_fragment_parallelism", "id int4, name text, relation_type text, fragment_id int4, distribution_type text, state_table_ids int4[], upstream_fragment_ids int4[], flags text[], parallelism int4",
		ofJobs(func(s *Session, o *catalog.Object, _ bool) []any {
			return []any{int32(o.OID), o.Name, o.Kind.String(), int32(o.OID), "HASH", literal("{}"), upstream(s, o), jobFlags(o), processors()}
		})},
	{"rw_actors", "actor_id int4, fragment_id int4, worker_id int4, state text",
		ofJobs(func(_ *Session, o *catalog.Object, _ bool) []any {
			return []any{int32(o.OID), int32(o.OID), int32(1), "RUNNING"}
		})},
	{"rw_internal_tables", "id int4, name text, schema_id int4, owner int4, definition text, acl text[]" + stamps + ", job_id int4", none},
	{"rw_internal_table_info", "id int4, name text, job_id int4, job_name text, job_type text, schema_name text, owner text", none},
	{"rw_worker_nodes", "id int4, host text, port text, type text, state text, parallelism int4, is_streaming bool, is_serving bool, is_unschedulable bool, internal_rpc_host_addr text, rw_version text, total_memory_bytes int8, total_cpu_cores int8, started_at timestamptz, resource_group text",
		func(s *Session, _ *catalog.Snapshot, add func(...any)) {
			add(int32(1), "", "", "WORKER_TYPE_COMPUTE_NODE", "RUNNING", processors(), true, true, false, "", Version, nil, int64(processors()), s.c.started, "default")
		}},
	{"rw_event_logs", "unique_id text, timestamp timestamptz, event_type text, info jsonb", none},
	{"rw_rate_limit", "fragment_id int4, fragment_type text[], node_name text, table_id int4, rate_limit int4", none},
	{"rw_meta_snapshot", "meta_snapshot_id int8, hummock_version_id int8, safe_epoch int8, safe_epoch_ts timestamp, max_committed_epoch int8, max_committed_epoch_ts timestamp, remarks text, state_table_info jsonb", none},
	{"rw_recovery_info", "database_id int4, database_name text, recovery_state text, last_recovery_time timestamptz", none},
	{"rw_resource_groups", "name text, streaming_workers int8, parallelism int8, databases int8, streaming_jobs int8", none},
}

func none(*Session, *catalog.Snapshot, func(...any)) {}

// systemTables makes the relations.
func systemTables(tables []systemTable) []internalTable {
	out := make([]internalTable, len(tables))
	for i, t := range tables {
		var cols []catalog.Column
		for _, c := range strings.Split(t.columns, ", ") {
			name, typ, _ := strings.Cut(c, " ")
			ct, ok := types.ParseName(typ)
			if !ok {
				panic("system relation: type " + typ)
			}
			cols = append(cols, vcol(strings.Trim(name, `"`), ct))
		}
		out[i] = internalTable{t.name, cols, func(s *Session) (*columnar.Batch, error) {
			r := newRowSet(cols)
			t.rows(s, s.snapshot(), r.add)
			return r.batch(), nil
		}}
	}
	return out
}

// shown says whether an object is one of a user's; the collections that sinks and
// keys have are not.
func shown(o *catalog.Object) bool {
	return o.Parent == 0 && (o.Index == nil || !o.Index.Internal)
}

func schemaID(cat *catalog.Snapshot, o *catalog.Object) any {
	if sc := cat.Schema(o.Schema); sc != nil {
		return int32(sc.OID)
	}
	return nil
}

// ofKinds lists objects with id, name, schema and owner, and what rest has of them.
func ofKinds(rest func(*catalog.Snapshot, *catalog.Object) []any, kinds ...catalog.Kind) func(*Session, *catalog.Snapshot, func(...any)) {
	return func(_ *Session, cat *catalog.Snapshot, add func(...any)) {
		for _, o := range cat.Objects() {
			for _, k := range kinds {
				if o.Kind == k && shown(o) {
					add(append([]any{int32(o.OID), o.Name, schemaID(cat, o), ownerOID}, rest(cat, o)...)...)
				}
			}
		}
	}
}

// ofJobs lists what a dataflow or a source keeps up to date, and tables.
func ofJobs(row func(s *Session, o *catalog.Object, ready bool) []any) func(*Session, *catalog.Snapshot, func(...any)) {
	return func(s *Session, cat *catalog.Snapshot, add func(...any)) {
		for _, o := range cat.Objects() {
			switch o.Kind {
			case catalog.KindTable, catalog.KindMaterializedView, catalog.KindSink, catalog.KindIndex:
				if c := s.c.collection(o.ID); c != nil && shown(o) {
					add(row(s, o, c.isReady())...)
				}
			}
		}
	}
}

func jobStatus(ready bool) string {
	if ready {
		return "CREATED"
	}
	return "CREATING"
}

func processors() int32 { return int32(runtime.GOMAXPROCS(0)) }

func jobFlags(o *catalog.Object) literal {
	switch o.Kind {
	case catalog.KindTable:
		return "{MVIEW,DML}"
	case catalog.KindSink:
		return "{STREAM_SCAN,SINK}"
	}
	return "{MVIEW,STREAM_SCAN}"
}

// upstream are the ids of what an object reads.
func upstream(s *Session, o *catalog.Object) literal {
	var ids []string
	for _, d := range o.Deps {
		if u := s.snapshot().ByID(d); u != nil && s.c.collection(d) != nil {
			ids = append(ids, fmt.Sprint(u.OID))
		}
	}
	return literal("{" + strings.Join(ids, ",") + "}")
}

func rwSource(_ *catalog.Snapshot, o *catalog.Object) []any {
	names := make([]string, len(o.Columns))
	for i, c := range o.Columns {
		names[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(c.Name) + `"`
	}
	var format, encode any
	if f := o.Options["format"]; f != "" {
		format = strings.ToUpper(f)
	}
	if e := o.Options["encode"]; e != "" {
		encode = strings.ToUpper(e)
	}
	return []any{strings.ToUpper(o.Options["connector"]), literal("{" + strings.Join(names, ",") + "}"), format, encode, o.AppendOnly, nil, nil, o.SQL, nil,
		nil, nil, nil, nil, true, nil, nil}
}

func rwSink(_ *catalog.Snapshot, o *catalog.Object) []any {
	kind := "UPSERT"
	if o.Discards {
		return []any{"BLACKHOLE", kind, nil, o.SQL, nil, nil, nil, nil, nil, nil, nil}
	}
	if o.Sink.InsertsOnly {
		kind = "APPEND_ONLY"
	}
	return []any{"TABLE", kind, nil, o.SQL, nil, nil, nil, nil, nil, nil, nil}
}

func rwFunction(_ *catalog.Snapshot, o *catalog.Object) []any {
	f := o.Function
	kind := "scalar"
	switch {
	case f.Procedure:
		kind = "procedure"
	case f.Set:
		kind = "table"
	}
	args := make([]string, len(f.Args))
	for i, a := range f.Args {
		args[i] = fmt.Sprint(uint32(a.Type.OID))
	}
	return []any{kind, literal("{" + strings.Join(args, ",") + "}"), int32(f.Returns.OID), "sql", nil, nil}
}

// eachIndex gives the indexes of users with their relations.
func eachIndex(cat *catalog.Snapshot, f func(o, t *catalog.Object)) {
	for _, o := range cat.Objects() {
		if t := cat.ByID(o.Table); o.Kind == catalog.KindIndex && shown(o) && t != nil {
			f(o, t)
		}
	}
}

// eachDependency gives the objects of users with each that they use.
func eachDependency(cat *catalog.Snapshot, f func(o, u *catalog.Object)) {
	for _, o := range cat.Objects() {
		deps := o.Deps
		if o.Kind == catalog.KindIndex {
			deps = []plan.ObjectID{o.Table}
		}
		for _, id := range deps {
			if u := cat.ByID(id); u != nil && shown(o) && shown(u) {
				f(o, u)
			}
		}
	}
}

// rwIndexes lists indexes with their columns, of which an expression's number is 0.
func rwIndexes(_ *Session, cat *catalog.Snapshot, add func(...any)) {
	eachIndex(cat, func(o, t *catalog.Object) {
		number := func(k int) string { return fmt.Sprint(t.Column(o.Columns[k].Name) + 1) }
		var keys, rest []string
		in := map[int]bool{}
		for _, k := range o.Key {
			if _, ok := catalog.ExprOf(k); ok {
				keys = append(keys, "0")
				continue
			}
			keys, in[k] = append(keys, number(k)), true
		}
		for k := range o.Columns {
			if o.PlainIndex() && !in[k] {
				rest = append(rest, number(k))
			}
		}
		add(int32(o.OID), o.Name, int32(t.OID), literal("{"+strings.Join(keys, ",")+"}"), literal("{"+strings.Join(rest, ",")+"}"),
			schemaID(cat, o), ownerOID, o.SQL, nil, nil, nil, nil, nil)
	})
}

func rwColumns(_ *Session, cat *catalog.Snapshot, add func(...any)) {
	for _, o := range cat.Objects() {
		if !o.Relation() && o.Kind != catalog.KindSink || !shown(o) && o.Parent == 0 {
			continue
		}
		key := map[int]bool{}
		for _, k := range o.PrimaryKey {
			key[k] = true
		}
		if o.Kind == catalog.KindMaterializedView {
			for _, k := range o.Key {
				key[k] = true
			}
		}
		for i, c := range o.Columns {
			var generated any
			if c.Generated != "" {
				generated = c.Generated
			}
			info := types.Lookup(c.Type.OID)
			add(int32(o.OID), c.Name, int32(i+1), c.Hidden, key[i], key[i], c.Generated != "", !c.NotNull, generated,
				typeName(c.Type), int32(c.Type.OID), int16(info.Len), info.Name)
		}
	}
}

// rwRelations lists what can be read or is written to, by what RisingWave calls it.
func rwRelations(_ *Session, cat *catalog.Snapshot, add func(...any)) {
	for _, o := range cat.Objects() {
		what := o.Kind.String()
		switch o.Kind {
		case catalog.KindVirtual:
			what = "system table"
		case catalog.KindTable, catalog.KindSource, catalog.KindIndex, catalog.KindSink, catalog.KindSubscription, catalog.KindMaterializedView, catalog.KindView:
		default:
			continue
		}
		if shown(o) {
			add(int32(o.OID), o.Name, what, schemaID(cat, o), ownerOID, o.SQL, nil)
		}
	}
}

func rwRelationInfo(s *Session, cat *catalog.Snapshot, add func(...any)) {
	zone, _ := s.set.get("timezone")
	for _, o := range cat.Objects() {
		switch o.Kind {
		case catalog.KindTable, catalog.KindSource, catalog.KindIndex, catalog.KindSink, catalog.KindMaterializedView:
			if shown(o) {
				add(o.Schema, o.Name, ownerOID, o.SQL, strings.ToUpper(o.Kind.String()), int32(o.OID), zone, nil, nil, nil)
			}
		}
	}
}

func rwDepend(_ *Session, cat *catalog.Snapshot, add func(...any)) {
	eachDependency(cat, func(o, u *catalog.Object) { add(int32(o.OID), int32(u.OID)) })
}

func rwDescription(_ *Session, cat *catalog.Snapshot, add func(...any)) {
	const class = int32(1259) // pg_class
	for _, o := range cat.Objects() {
		if !o.Relation() || o.Kind == catalog.KindVirtual {
			continue
		}
		if o.Comment != "" {
			add(int32(o.OID), class, nil, o.Comment)
		}
		for i, c := range o.Columns {
			if c.Comment != "" {
				add(int32(o.OID), class, int32(i+1), c.Comment)
			}
		}
	}
}

// rwProgress lists what is being hydrated.
func rwProgress(s *Session, cat *catalog.Snapshot, add func(...any)) {
	s.c.mu.RLock()
	defer s.c.mu.RUnlock()
	for _, id := range sortedIDs(s.c.hydrations) {
		h := s.c.hydrations[id]
		if o := cat.ByID(id); o != nil {
			done, total := h.rows.Load(), h.total.Load()
			add(int64(o.OID), o.SQL, "BACKGROUND", fmt.Sprintf("%.2f%%", 100*float64(done)/float64(max(total, done, 1))), nil)
		}
	}
}
