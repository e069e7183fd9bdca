package coord

import (
	"fmt"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/types"
)

// mzRole is the id of the one role in Materialize's catalog.
const mzRole = "u1"

// mzTables are the relations of Materialize's mz_catalog. An id is u and the number of
// the object, or s and the OID for what is the system's. A cluster has one replica.
var mzTables = []systemTable{
	{"mz_databases", "id text, oid oid, name text, owner_id text, privileges text[]", func(_ *Session, _ *catalog.Snapshot, add func(...any)) {
		add(mzDatabase, int64(5), databaseName, mzRole, nil)
	}},
	{"mz_schemas", "id text, oid oid, database_id text, name text, owner_id text, privileges text[]", func(_ *Session, cat *catalog.Snapshot, add func(...any)) {
		for _, sc := range cat.Schemas() {
			add(mzSchemaID(sc), int64(sc.OID), mzDatabase, sc.Name, mzRole, nil)
		}
	}},
	{"mz_roles", "id text, oid oid, name text, inherit bool", func(s *Session, _ *catalog.Snapshot, add func(...any)) {
		add(mzRole, int64(ownerOID), s.user, true)
	}},
	{"mz_clusters", "id text, name text, owner_id text, privileges text[], managed bool, size text, replication_factor int8, disk bool",
		mzClusters(func(id, name string, add func(...any)) { add(id, name, mzRole, nil, true, "", int64(1), true) })},
	{"mz_cluster_replicas", "id text, name text, cluster_id text, size text, owner_id text, disk bool",
		mzClusters(func(id, _ string, add func(...any)) { add(id, "r1", id, "", mzRole, true) })},
	{"mz_tables", mzObject + ", owner_id text, privileges text[], create_sql text, redacted_create_sql text, source_id text",
		mzOfKinds(func(_ *catalog.Snapshot, o *catalog.Object) []any { return []any{mzRole, nil, o.SQL, o.SQL, nil} }, catalog.KindTable, catalog.KindVirtual)},
	{"mz_views", mzObject + ", definition text, owner_id text, privileges text[], create_sql text, redacted_create_sql text",
		mzOfKinds(func(_ *catalog.Snapshot, o *catalog.Object) []any { return []any{o.Query, mzRole, nil, o.SQL, o.SQL} }, catalog.KindView)},
	{"mz_materialized_views", mzObject + ", cluster_id text, definition text, owner_id text, privileges text[], create_sql text, redacted_create_sql text",
		mzOfKinds(func(cat *catalog.Snapshot, o *catalog.Object) []any {
			return []any{mzClusterID(cat, o), o.Query, mzRole, nil, o.SQL, o.SQL}
		}, catalog.KindMaterializedView)},
	{"mz_sources", mzObject + ", type text, connection_id text, size text, envelope_type text, key_format text, value_format text, cluster_id text, owner_id text, privileges text[], create_sql text, redacted_create_sql text",
		mzSources},
	{"mz_sinks", mzObject + ", type text, connection_id text, size text, envelope_type text, format text, cluster_id text, owner_id text, create_sql text, redacted_create_sql text",
		mzOfKinds(func(cat *catalog.Snapshot, o *catalog.Object) []any {
			kind := "table"
			if o.Discards {
				kind = "blackhole"
			}
			return []any{kind, nil, nil, nil, nil, mzClusterID(cat, o), mzRole, o.SQL, o.SQL}
		}, catalog.KindSink)},
	{"mz_connections", mzObject + ", type text, owner_id text, privileges text[], create_sql text, redacted_create_sql text",
		mzOfKinds(func(_ *catalog.Snapshot, o *catalog.Object) []any {
			return []any{strings.ReplaceAll(o.Options["connector"], " ", "-"), mzRole, nil, o.SQL, o.SQL}
		}, catalog.KindConnection)},
	{"mz_secrets", mzObject + ", owner_id text, privileges text[]",
		mzOfKinds(func(*catalog.Snapshot, *catalog.Object) []any { return []any{mzRole, nil} }, catalog.KindSecret)},
	{"mz_types", mzObject + ", category text, owner_id text, privileges text[]",
		mzOfKinds(func(_ *catalog.Snapshot, o *catalog.Object) []any {
			return []any{map[byte]string{'e': "enum", 'c': "composite", 'd': "pseudo", 'r': "range"}[o.Def.Kind], mzRole, nil}
		}, catalog.KindType)},
	{"mz_indexes", "id text, oid oid, name text, on_id text, cluster_id text, owner_id text, create_sql text, redacted_create_sql text", func(_ *Session, cat *catalog.Snapshot, add func(...any)) {
		eachIndex(cat, func(o, t *catalog.Object) {
			add(mzID(o), int64(o.OID), o.Name, mzID(t), mzClusterID(cat, o), mzRole, o.SQL, o.SQL)
		})
	}},
	{"mz_index_columns", "index_id text, index_position int8, on_position int8, on_expression text, nullable bool", mzIndexColumns},
	{"mz_columns", "id text, name text, position int8, nullable bool, type text, \"default\" text, type_oid oid, type_mod int4", mzColumns},
	{"mz_objects", mzObject + ", type text, owner_id text, cluster_id text, privileges text[]", mzObjects(false)},
	{"mz_relations", mzObject + ", type text, owner_id text, cluster_id text, privileges text[]", mzObjects(true)},
}

// mzInternalTables are the relations of mz_internal.
var mzInternalTables = []systemTable{
	{"mz_object_dependencies", "object_id text, referenced_object_id text", func(_ *Session, cat *catalog.Snapshot, add func(...any)) {
		eachDependency(cat, func(o, u *catalog.Object) { add(mzID(o), mzID(u)) })
	}},
	{"mz_comments", "id text, object_type text, object_sub_id int4, comment text", func(_ *Session, cat *catalog.Snapshot, add func(...any)) {
		for _, o := range cat.Objects() {
			if o.Kind == catalog.KindVirtual {
				continue
			}
			if o.Comment != "" {
				add(mzID(o), mzKind(o), nil, o.Comment)
			}
			for i, c := range o.Columns {
				if c.Comment != "" && o.Relation() {
					add(mzID(o), mzKind(o), int32(i+1), c.Comment)
				}
			}
		}
	}},
	{"mz_hydration_statuses", "object_id text, replica_id text, hydrated bool", ofJobs(func(s *Session, o *catalog.Object, ready bool) []any {
		return []any{mzID(o), mzClusterID(s.snapshot(), o), ready}
	})},
	{"mz_source_statuses", "id text, name text, type text, last_status_change_at timestamptz, status text, error text, details jsonb", mzSourceStatuses},
	{"mz_object_fully_qualified_names", "id text, name text, object_type text, schema_id text, schema_name text, database_id text, database_name text, cluster_id text",
		func(_ *Session, cat *catalog.Snapshot, add func(...any)) {
			for _, o := range cat.Objects() {
				if sc := cat.Schema(o.Schema); sc != nil && shown(o) {
					add(mzID(o), o.Name, mzKind(o), mzSchemaID(sc), sc.Name, mzDatabase, databaseName, mzClusterID(cat, o))
				}
			}
		}},
	{"mz_sessions", "id text, connection_id int8, role_id text, client_ip text, connected_at timestamptz", func(s *Session, _ *catalog.Snapshot, add func(...any)) {
		for _, x := range (&pgEnv{s}).Sessions() {
			add(fmt.Sprint(x.PID), int64(x.PID), mzRole, x.RemoteAddr, x.Started)
		}
	}},
}

const (
	mzDatabase = "u1"
	mzObject   = "id text, oid oid, schema_id text, name text"
)

func mzID(o *catalog.Object) string {
	if o.Kind == catalog.KindVirtual {
		return fmt.Sprintf("s%d", o.OID)
	}
	return fmt.Sprintf("u%d", o.ID)
}

func mzSchemaID(sc *catalog.Schema) string {
	if sc.System {
		return fmt.Sprintf("s%d", sc.OID)
	}
	return fmt.Sprintf("u%d", sc.OID)
}

// mzKind is Materialize's name of an object's kind.
func mzKind(o *catalog.Object) string { return strings.ReplaceAll(o.Kind.String(), " ", "-") }

// mzDefaultCluster is the id of the default cluster.
const mzDefaultCluster = "u1"

func mzClusterID(cat *catalog.Snapshot, o *catalog.Object) any {
	switch o.Kind {
	case catalog.KindMaterializedView, catalog.KindIndex, catalog.KindSink, catalog.KindSource:
	default:
		return nil
	}
	if c := cat.Get(catalog.KindCluster, "", o.Cluster); c != nil {
		return mzID(c)
	}
	return mzDefaultCluster
}

func mzClusters(row func(id, name string, add func(...any))) func(*Session, *catalog.Snapshot, func(...any)) {
	return func(_ *Session, cat *catalog.Snapshot, add func(...any)) {
		row(mzDefaultCluster, defaultCluster, add)
		for _, o := range cat.Objects() {
			if o.Kind == catalog.KindCluster {
				row(mzID(o), o.Name, add)
			}
		}
	}
}

func mzHead(cat *catalog.Snapshot, o *catalog.Object) []any {
	var schema any
	if sc := cat.Schema(o.Schema); sc != nil {
		schema = mzSchemaID(sc)
	}
	return []any{mzID(o), int64(o.OID), schema, o.Name}
}

// mzOfKinds lists objects with id, oid, schema and name, and what rest has of them.
func mzOfKinds(rest func(*catalog.Snapshot, *catalog.Object) []any, kinds ...catalog.Kind) func(*Session, *catalog.Snapshot, func(...any)) {
	return func(_ *Session, cat *catalog.Snapshot, add func(...any)) {
		for _, o := range cat.Objects() {
			for _, k := range kinds {
				if o.Kind == k && shown(o) {
					add(append(mzHead(cat, o), rest(cat, o)...)...)
				}
			}
		}
	}
}

// mzSources lists sources and their subsources.
func mzSources(s *Session, cat *catalog.Snapshot, add func(...any)) {
	for _, o := range cat.Objects() {
		if o.Kind != catalog.KindSource || o.Options["role"] == "errors" {
			continue
		}
		kind := strings.ReplaceAll(o.Options["connector"], " ", "-")
		if o.Parent != 0 {
			kind = "subsource"
		}
		add(append(mzHead(cat, o), kind, nil, nil, o.Options["envelope"], nil, nil, mzClusterID(cat, o), mzRole, nil, o.SQL, o.SQL)...)
	}
}

func mzIndexColumns(_ *Session, cat *catalog.Snapshot, add func(...any)) {
	eachIndex(cat, func(o, t *catalog.Object) {
		for i, k := range o.Key {
			if x, ok := catalog.ExprOf(k); ok {
				add(mzID(o), int64(i+1), nil, o.Exprs[x].SQL, true)
				continue
			}
			c := t.Column(o.Columns[k].Name)
			add(mzID(o), int64(i+1), int64(c+1), nil, c < 0 || !t.Columns[c].NotNull)
		}
	})
}

func mzColumns(_ *Session, cat *catalog.Snapshot, add func(...any)) {
	for _, o := range cat.Objects() {
		if !o.Relation() {
			continue
		}
		for i, c := range o.Columns {
			var def any
			if c.Default != "" {
				def = c.Default
			}
			if !c.Hidden {
				add(mzID(o), c.Name, int64(i+1), !c.NotNull, typeName(types.Of(c.Type.OID)), def, int64(c.Type.OID), c.Type.Mod)
			}
		}
	}
}

func mzObjects(relations bool) func(*Session, *catalog.Snapshot, func(...any)) {
	return func(_ *Session, cat *catalog.Snapshot, add func(...any)) {
		for _, o := range cat.Objects() {
			if o.Schema != "" && (shown(o) || o.Kind == catalog.KindSource) && (!relations || o.Relation() && o.Kind != catalog.KindSequence) {
				add(append(mzHead(cat, o), mzKind(o), mzRole, mzClusterID(cat, o), nil)...)
			}
		}
	}
}

func mzSourceStatuses(s *Session, cat *catalog.Snapshot, add func(...any)) {
	for _, o := range cat.Objects() {
		if o.Kind != catalog.KindSource || o.Parent != 0 {
			continue
		}
		if st := s.c.sourceStatus(o.ID); st != nil {
			var failure any
			if st.Error != "" {
				failure = st.Error
			}
			add(mzID(o), o.Name, strings.ReplaceAll(o.Options["connector"], " ", "-"), st.Updated, st.State, failure, nil)
		}
	}
}
