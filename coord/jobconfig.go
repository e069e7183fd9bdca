package coord

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

const configPrefix = "streaming."

// jobConfigKeys are the settings of a streaming job that RisingWave has: "int",
// "bool", or the words that are allowed.
var jobConfigKeys = map[string]string{
	"unique_user_stream_errors":                     "int",
	"unsafe_enable_strict_consistency":              "bool",
	"developer.cache_refill_policy":                 "default disabled streaming serving both",
	"developer.chunk_size":                          "int",
	"developer.disable_sync_log_store_dispatcher":   "bool",
	"developer.dml_channel_initial_permits":         "int",
	"developer.enable_arrangement_backfill":         "bool",
	"developer.enable_executor_row_count":           "bool",
	"developer.exchange_batched_permits":            "int",
	"developer.exchange_concurrent_barriers":        "int",
	"developer.exchange_initial_permits":            "int",
	"developer.hash_agg_max_dirty_groups_heap_size": "int",
	"developer.hash_join_entry_state_max_rows":      "int",
	"developer.high_join_amplification_threshold":   "int",
	"developer.join_encoding_type":                  "memory_optimized cpu_optimized",
	"developer.join_hash_map_evict_interval_rows":   "int",
	"developer.max_barrier_batch_size":              "int",
	"developer.over_window_cache_policy":            "full recent recent_first_n recent_last_n",
	"developer.project_expr_concurrency":            "int",
	"developer.unsafe_extreme_cache_size":           "int",
}

// alterConfig runs ALTER … SET CONFIG and RESET CONFIG; c is a copy to change.
// The settings are checked, kept and shown, as clients of RisingWave expect; there
// is nothing here that they could tune.
func (s *Session) alterConfig(d *ddlState, a *parser.AlterCmd, c *catalog.Object) error {
	switch c.Kind {
	case catalog.KindTable, catalog.KindMaterializedView, catalog.KindSource, catalog.KindSink, catalog.KindIndex:
	default:
		return pgerror.New(pgerror.WrongObjectType, "ALTER action CONFIG cannot be performed on \"%s\"", c.Name).
			WithDetail("This operation is not supported for a %s.", c.Kind)
	}
	if c.Config == nil {
		c.Config = map[string]string{}
	}
	done := map[string]bool{}
	for _, o := range a.Options {
		key, ok := strings.CutPrefix(o.Name, configPrefix)
		kind := jobConfigKeys[key]
		switch {
		case !ok:
			return pgerror.New(pgerror.InvalidParameterValue, "a configuration has only options that begin with \"%s\": \"%s\"", configPrefix, o.Name).At(o.Pos)
		case done[key]:
			return pgerror.New(pgerror.InvalidParameterValue, "option \"%s\" specified more than once", o.Name).At(o.Pos)
		case kind == "":
			return pgerror.New(pgerror.UndefinedObject, "unrecognized configuration option \"%s\"", o.Name).At(o.Pos)
		}
		done[key] = true
		if a.Action == parser.AlterResetConfig || o.Value.Kind == parser.ValueNull {
			delete(c.Config, key)
			continue
		}
		v, ok := configValue(kind, o.Value)
		if !ok {
			return pgerror.New(pgerror.InvalidParameterValue, "invalid value for option \"%s\": \"%s\"", o.Name, o.Value.Text).At(o.Pos)
		}
		c.Config[key] = v
	}
	d.apply(catalog.Change{Put: c})
	return nil
}

// configValue checks a value and writes it as TOML does.
func configValue(kind string, v parser.Value) (string, bool) {
	switch kind {
	case "int":
		n, err := strconv.ParseUint(v.Text, 10, 63)
		return strconv.FormatUint(n, 10), err == nil && v.Kind == parser.ValueNumber
	case "bool":
		return v.Text, v.Kind == parser.ValueBool
	}
	return strconv.Quote(v.Text), slices.Contains(strings.Fields(kind), v.Text)
}

// newJobConfig is the configuration that a new streaming job has from the
// session's settings.
func (s *Session) newJobConfig() map[string]string {
	if v, _ := s.set.get("streaming_cache_refill_policy"); v != "default" {
		return map[string]string{"developer.cache_refill_policy": strconv.Quote(v)}
	}
	return nil
}

var jobConfigColumns = []catalog.Column{vcol("id", types.Int4), vcol("name", types.Text), vcol("key", types.Text), vcol("value", types.Text)}

// jobConfigRows are the rows of rw_streaming_job_config.
func (s *Session) jobConfigRows() (*columnar.Batch, error) {
	r := newRowSet(jobConfigColumns)
	for _, o := range s.snapshot().Objects() {
		for _, key := range slices.Sorted(maps.Keys(o.Config)) {
			r.add(int32(o.OID), o.Name, configPrefix+key, o.Config[key])
		}
	}
	return r.batch(), nil
}
