package coord

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// serverVersion is what clients choose their catalog queries by.
const (
	serverVersion    = "15.18"
	serverVersionNum = "150018"
)

// settingKind is how a setting's value is checked and normalized.
type settingKind uint8

const (
	settingString settingKind = iota
	settingBool
	settingInt
	settingEnum
	settingTime // milliseconds, with units
	settingSize // kB, with units; -1: none
	settingZone
	settingTextSearch // a configuration of text search
	settingDatabase
	settingReadOnly
)

// settingDef describes a setting (PostgreSQL manual, chapter 20).
type settingDef struct {
	name   string // as SHOW spells it
	kind   settingKind
	def    string
	report bool // sent in ParameterStatus
	values []string
	desc   string
}

var settingDefs = []settingDef{
	{"server_version", settingReadOnly, serverVersion, true, nil, "Shows the server version."},
	{"server_version_num", settingReadOnly, serverVersionNum, false, nil, "Shows the server version as an integer."},
	{"server_encoding", settingReadOnly, "UTF8", true, nil, "Shows the server character set encoding."},
	{"integer_datetimes", settingReadOnly, "on", true, nil, "Shows whether datetimes are integer based."},
	{"is_superuser", settingReadOnly, "on", true, nil, "Shows whether the current user is a superuser."},
	{"session_authorization", settingReadOnly, "", true, nil, "Shows the session user name."},
	{"in_hot_standby", settingReadOnly, "off", true, nil, "Shows whether hot standby is currently active."},
	{"max_identifier_length", settingReadOnly, "63", false, nil, "Shows the maximum identifier length."},
	{"max_index_keys", settingReadOnly, "32", false, nil, "Shows the maximum number of index keys."},
	{"lc_collate", settingReadOnly, "C", false, nil, "Shows the collation order locale."},
	{"lc_ctype", settingReadOnly, "C", false, nil, "Shows the character classification and case conversion locale."},
	{"block_size", settingReadOnly, "8192", false, nil, "Shows the size of a disk block."},
	{"wal_level", settingReadOnly, "logical", false, nil, "Shows the level of information written to the log."},
	{"data_checksums", settingReadOnly, "on", false, nil, "Shows whether data checksums are on."},
	{"max_connections", settingReadOnly, "1000", false, nil, "Shows the maximum number of concurrent connections."},
	{"client_encoding", settingEnum, "UTF8", true, []string{"UTF8", "UTF-8", "UNICODE", "SQL_ASCII"}, "Sets the client's character set encoding."},
	{"DateStyle", settingString, "ISO, MDY", true, nil, "Sets the display format for date and time values."},
	{"IntervalStyle", settingEnum, "postgres", true, []string{"postgres", "postgres_verbose", "sql_standard", "iso_8601"}, "Sets the display format for interval values."},
	{"TimeZone", settingZone, "UTC", true, nil, "Sets the time zone for displaying and interpreting time stamps."},
	{"standard_conforming_strings", settingEnum, "on", true, []string{"on"}, "Causes '...' strings to treat backslashes literally."},
	{"application_name", settingString, "", true, nil, "Sets the application name to be reported in statistics and logs."},
	{"default_transaction_read_only", settingBool, "off", true, nil, "Sets the default read-only status of new transactions."},
	{"default_transaction_isolation", settingEnum, "read committed", false, []string{"serializable", "repeatable read", "read committed", "read uncommitted", "strict serializable"}, "Sets the transaction isolation level of each new transaction."},
	{"default_transaction_deferrable", settingBool, "off", false, nil, "Sets the default deferrable status of new transactions."},
	{"transaction_isolation", settingEnum, "read committed", false, []string{"serializable", "repeatable read", "read committed", "read uncommitted", "strict serializable"}, "Sets the current transaction's isolation level."},
	{"transaction_read_only", settingBool, "off", false, nil, "Sets the current transaction's read-only status."},
	{"transaction_deferrable", settingBool, "off", false, nil, "Whether to defer a read-only serializable transaction."},
	{"search_path", settingString, `"$user", public`, false, nil, "Sets the schema search order for names that are not schema-qualified."},
	{"client_min_messages", settingEnum, "notice", false, []string{"debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "warning", "error"}, "Sets the message levels that are sent to the client."},
	{"log_min_messages", settingString, "warning", false, nil, "Sets the message levels that are logged."},
	{"extra_float_digits", settingInt, "1", false, nil, "Sets the number of digits displayed for floating-point values."},
	{"statement_timeout", settingTime, "0", false, nil, "Sets the maximum allowed duration of any statement."},
	{"lock_timeout", settingTime, "0", false, nil, "Sets the maximum allowed duration of any wait for a lock."},
	{"idle_in_transaction_session_timeout", settingTime, "0", false, nil, "Sets the maximum allowed idle time in a transaction."},
	{"idle_session_timeout", settingTime, "0", false, nil, "Sets the maximum allowed idle time between queries."},
	{"bytea_output", settingEnum, "hex", false, []string{"hex", "escape"}, "Sets the output format for bytea."},
	{"default_text_search_config", settingTextSearch, "pg_catalog.english", false, nil, "Sets default text search configuration."},
	{"row_security", settingBool, "on", false, nil, "Enable row security."},
	{"work_mem", settingString, "4MB", false, nil, "Sets the maximum memory to be used for query workspaces."},
	{"temp_file_limit", settingSize, "-1", false, nil, "Limits the total size of all temporary files used by each query."},
	{"enable_seqscan", settingBool, "on", false, nil, "Accepted for compatibility."},
	{"synchronous_commit", settingString, "on", false, nil, "Accepted for compatibility: commits are always synchronous."},
	{"default_table_access_method", settingString, "heap", false, nil, "Sets the default table access method for new tables."},
	{"default_tablespace", settingString, "", false, nil, "Sets the default tablespace to create tables and indexes in."},
	{"check_function_bodies", settingBool, "on", false, nil, "Check routine bodies during CREATE FUNCTION."},
	{"xmlbinary", settingEnum, "base64", false, []string{"base64", "hex"}, "Sets how binary values are to be encoded in XML."},
	{"xmloption", settingEnum, "content", false, []string{"content", "document"}, "Sets whether XML data in implicit parsing and serialization operations is to be considered as documents or content fragments."},
	{"jit", settingBool, "off", false, nil, "Accepted for compatibility."},
	{"geqo", settingBool, "on", false, nil, "Accepted for compatibility."},
	{"password_encryption", settingEnum, "scram-sha-256", false, []string{"md5", "scram-sha-256"}, "Chooses the algorithm for encrypting passwords."},
	{"role", settingString, "none", false, nil, "Sets the current role."},
	{"upsert_dml", settingBool, "off", false, nil, "Lets INSERT replace the rows whose primary key it has."},
	{"dml_wait_persistence", settingBool, "off", false, nil, "Accepted for compatibility: every statement waits until its changes are on disk."},
	{"streaming_cache_refill_policy", settingEnum, "default", false, []string{"default", "disabled", "streaming", "serving", "both"}, "Kept in the configuration of new streaming jobs; it has no effect."},
	{"database", settingDatabase, databaseName, false, nil, "Shows the database; there is one."},
	{"cluster", settingString, "default", false, nil, "Sets the cluster that new views are placed on."},
}

var settingIndex = func() map[string]*settingDef {
	m := make(map[string]*settingDef, len(settingDefs))
	for i := range settingDefs {
		m[strings.ToLower(settingDefs[i].name)] = &settingDefs[i]
	}
	return m
}()

// settings are the values of one session. Values that SET LOCAL or an open
// transaction changed are kept to be restored.
type settings struct {
	base   map[string]string // session defaults from startup parameters
	vals   map[string]string // lower-case name → value
	undo   []settingUndo     // of the open transaction, oldest first
	tx     *txn              // the open transaction, nil if there is none
	onEdit func(name string) // a reported setting has changed

	// What is asked for at every statement, kept by refresh.
	version int // counts the changes
	zone    *time.Location
	style   types.TimeStyle
	digits  int // as types.Options.FloatDigits
	escape  bool
	xmlDocs bool
	path    []string
	modes   txnModes // of new transactions
	timeout time.Duration
}

type settingUndo struct {
	name  string
	value string
	had   bool
	local bool
}

func newSettings() *settings {
	s := &settings{base: map[string]string{}, vals: map[string]string{}}
	for _, name := range []string{"timezone", "datestyle", "intervalstyle", "search_path", "default_transaction_isolation", "default_transaction_read_only", "default_transaction_deferrable", "statement_timeout"} {
		s.refresh(name)
	}
	return s
}

// get is the value of a setting, "" and false if there is none of that name.
func (s *settings) get(name string) (string, bool) {
	name = strings.ToLower(name)
	modes := s.modes
	if s.tx != nil {
		modes = s.tx.txnModes
	}
	if v, ok := modes.mode(name); ok {
		return v, true
	}
	if v, ok := s.vals[name]; ok {
		return v, true
	}
	if v, ok := s.base[name]; ok {
		return v, true
	}
	if d := settingIndex[name]; d != nil {
		return d.def, true
	}
	v, ok := foreignDefaults[name]
	return v, ok
}

// foreignDefaults are the values that settings of RisingWave and Materialize have there
// and that their clients may ask for.
var foreignDefaults = map[string]string{
	"rw_implicit_flush": "false", "implicit_flush": "false", "query_mode": "auto", "visibility_mode": "default", "background_ddl": "false",
	"streaming_parallelism": "default", "streaming_max_parallelism": "256", "batch_parallelism": "default", "streaming_use_shared_source": "true",
	"streaming_use_arrangement_backfill": "true", "streaming_use_snapshot_backfill": "true", "streaming_enable_delta_join": "false",
	"streaming_enable_bushy_join": "true", "streaming_over_window_cache_policy": "full", "source_rate_limit": "default", "backfill_rate_limit": "default",
	"dml_rate_limit": "default", "sink_rate_limit": "default", "sink_decouple": "default", "batch_enable_distributed_dml": "false",
	"rw_batch_enable_sort_agg": "true", "rw_enable_two_phase_agg": "true", "enable_two_phase_agg": "true", "enable_share_plan": "true",
	"rw_force_two_phase_agg": "false", "cdc_source_wait_streaming_start_timeout": "30", "enable_join_ordering": "true",
	"real_time_recency": "off", "emit_introspection_query_notice": "on", "auto_route_catalog_queries": "on", "welcome_message": "on",
	"current_object_missing_warnings": "on", "statement_logging_sample_rate": "0", "max_query_result_size": "1GB", "cluster_replica": "",
	"enable_session_rbac_checks": "off", "enable_rbac_checks": "off", "network_policy": "default",
}

// display is the spelling of a setting's name.
func settingDisplay(name string) string {
	if d := settingIndex[strings.ToLower(name)]; d != nil {
		return d.name
	}
	return name
}

func (s *settings) bool(name string) bool {
	v, _ := s.get(name)
	return v == "on"
}

// duration is the value of a time setting.
func (s *settings) duration(name string) time.Duration {
	v, _ := s.get(name)
	d, _ := parseTimeSetting(v)
	return d
}

// set checks, normalizes and stores a value.
func (s *settings) set(name, value string, local bool) error {
	name = strings.ToLower(name)
	d := settingIndex[name]
	if d == nil && !strings.Contains(name, ".") && !foreignSetting(name) {
		return pgerror.New(pgerror.UndefinedObject, "unrecognized configuration parameter %q", name)
	}
	if d != nil {
		v, err := s.normalize(d, value)
		if err != nil {
			return err
		}
		value = v
	}
	if _, ok := s.modes.mode(name); ok {
		if s.tx == nil {
			return nil
		}
		return s.tx.setMode(name, value)
	}
	s.put(name, value, local)
	if on := strings.ToLower(value); name == "rw_force_two_phase_agg" && (on == "true" || on == "on") {
		s.put("enable_two_phase_agg", "true", local) // as RisingWave does
	}
	return nil
}

// foreignSetting says whether a name is one of the settings of related systems
// that their clients send; they are stored and, but for implicit_flush, have no effect.
func foreignSetting(name string) bool {
	for _, p := range []string{"rw_", "streaming_", "batch_", "query_mode", "background_ddl", "implicit_flush",
		"create_compaction_group", "visibility_mode", "max_split_range_gap", "source_rate_limit", "backfill_rate_limit", "dml_rate_limit", "sink_rate_limit", "cdc_",
		"bypass_cluster_limits", "disable_purify_definition", "unsafe_", "iceberg_", "auto_route_catalog_queries", "cluster_replica", "max_query_result_size",
		"statement_logging_", "network_policy", "force_", "sink_decouple", "enable_", "max_parallel", "parallel_",
		"log_", "debug_", "lc_", "datestyle", "temp_buffers", "maintenance_work_mem", "commit_delay",
		"plan_cache_mode", "constraint_exclusion", "cursor_tuple_fraction", "from_collapse_limit", "join_collapse_limit",
		"backslash_quote", "escape_string_warning", "quote_all_identifiers", "transform_null_equals", "array_nulls",
		"gin_", "ssl_renegotiation_limit", "tcp_", "session_replication_role", "default_with_oids", "random_page_cost",
		"seq_page_cost", "effective_", "server_reset_query", "emit_", "dynamic_library_path", "local_preload_libraries",
		"timezone_abbreviations", "vacuum_", "welcome_message", "current_object_missing_warnings", "real_time_recency"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

func (s *settings) put(name, value string, local bool) {
	if s.tx != nil {
		old, had := s.vals[name]
		s.undo = append(s.undo, settingUndo{name, old, had, local})
	} else if local {
		return // SET LOCAL outside of a transaction has no effect
	}
	s.vals[name] = value
	s.refresh(name)
}

// reset gives a setting its default value back; "all" resets every one.
func (s *settings) reset(name string) error {
	name = strings.ToLower(name)
	if name == "all" {
		names := make([]string, 0, len(s.vals))
		for n := range s.vals {
			names = append(names, n)
		}
		for _, n := range names {
			s.unset(n)
		}
		return nil
	}
	d := settingIndex[name]
	if d == nil && !strings.Contains(name, ".") && !foreignSetting(name) {
		return pgerror.New(pgerror.UndefinedObject, "unrecognized configuration parameter %q", name)
	}
	if d != nil && d.kind == settingReadOnly {
		return pgerror.New(pgerror.CantChangeRuntimeParam, "parameter %q cannot be changed", d.name)
	}
	if v, ok := s.modes.mode(name); ok {
		return s.set(name, v, false)
	}
	s.unset(name)
	return nil
}

func (s *settings) unset(name string) {
	if old, had := s.vals[name]; had {
		if s.tx != nil {
			s.undo = append(s.undo, settingUndo{name, old, true, false})
		}
		delete(s.vals, name)
		s.refresh(name)
	}
}

// begin and end bracket a transaction: a rollback undoes every SET in it, a
// commit only the local ones.
func (s *settings) begin(tx *txn) { s.tx, s.undo = tx, s.undo[:0] }

func (s *settings) end(commit bool) {
	s.tx = nil
	s.rollbackTo(0, commit)
}

// rollbackTo undoes the changes made since mark (a savepoint's len(undo)).
func (s *settings) rollbackTo(mark int, localOnly bool) {
	undo := s.undo[mark:]
	for i := len(undo) - 1; i >= 0; i-- {
		u := undo[i]
		if localOnly && !u.local {
			continue
		}
		if u.had {
			s.vals[u.name] = u.value
		} else {
			delete(s.vals, u.name)
		}
		s.refresh(u.name)
	}
	s.undo = s.undo[:mark]
}

// refresh keeps the parsed forms of settings that are used often.
func (s *settings) refresh(name string) {
	s.version++
	switch name {
	case "timezone":
		v, _ := s.get(name)
		if l, _, err := loadZone(v); err == nil {
			s.zone = l
		} else {
			s.zone = time.UTC
		}
	case "datestyle":
		v, _ := s.get(name)
		s.style.SetDateStyle(v)
	case "intervalstyle":
		v, _ := s.get(name)
		s.style.SetIntervalStyle(v)
	case "extra_float_digits":
		s.digits = 0
		if v, _ := s.get(name); v != "1" && v != "2" && v != "3" {
			n, _ := strconv.Atoi(v)
			s.digits = 15 + n
		}
	case "bytea_output":
		s.escape = s.is(name, "escape")
	case "xmloption":
		s.xmlDocs = s.is(name, "document")
	case "search_path":
		v, _ := s.get(name)
		s.path = parsePath(v)
	case "default_transaction_isolation":
		s.modes.isolation, _ = s.get(name)
	case "default_transaction_read_only":
		s.modes.readOnly = s.bool(name)
	case "default_transaction_deferrable":
		s.modes.deferrable = s.bool(name)
	case "statement_timeout":
		s.timeout = s.duration(name)
	}
	if d := settingIndex[name]; d != nil && d.report && s.onEdit != nil {
		s.onEdit(d.name)
	}
}

// normalize checks a value and gives its stored spelling.
func (d *settingDef) normalize(v string) (string, error) {
	invalid := func() error {
		return pgerror.New(pgerror.InvalidParameterValue, "invalid value for parameter %q: %q", d.name, v)
	}
	switch d.kind {
	case settingReadOnly:
		return "", pgerror.New(pgerror.CantChangeRuntimeParam, "parameter %q cannot be changed", d.name)
	case settingBool:
		b, ok := parseBoolSetting(v)
		if !ok {
			return "", pgerror.New(pgerror.InvalidParameterValue, "parameter %q requires a Boolean value", d.name)
		}
		if b {
			return "on", nil
		}
		return "off", nil
	case settingInt:
		if _, err := strconv.Atoi(strings.TrimSpace(v)); err != nil {
			return "", invalid()
		}
		return strings.TrimSpace(v), nil
	case settingSize:
		n, err := parseSizeSetting(v)
		if err != nil || n < -1 {
			return "", invalid()
		}
		return formatSizeSetting(n), nil
	case settingTime:
		t, err := parseTimeSetting(v)
		if err != nil {
			return "", invalid()
		}
		return formatTimeSetting(t), nil
	case settingEnum:
		for _, x := range d.values {
			if strings.EqualFold(x, v) {
				if d.name == "client_encoding" && x != "SQL_ASCII" {
					return "UTF8", nil
				}
				return x, nil
			}
		}
		if d.name == "standard_conforming_strings" {
			if b, ok := parseBoolSetting(v); ok && b {
				return "on", nil
			}
		}
		e := invalid().(*pgerror.Error)
		if d.name == "client_encoding" {
			return "", e // PostgreSQL would list all encodings, and does not
		}
		return "", e.WithHint("Available values: %s.", strings.Join(d.values, ", "))
	case settingDatabase:
		if v != databaseName {
			return "", pgerror.New(pgerror.InvalidCatalogName, "database \"%s\" does not exist", v).WithHint("There is one database, \"%s\"; use schemas.", databaseName)
		}
		return v, nil
	case settingZone:
		_, name, err := loadZone(v)
		if err != nil {
			return "", invalid()
		}
		return name, nil
	case settingTextSearch:
		b := columnar.NewBuilder(columnar.KindInt64, 1)
		if err := types.ParseText(b, types.Of(types.OIDRegconfig), v, nil); err != nil {
			return "", invalid()
		}
		return "pg_catalog." + string(types.AppendText(nil, types.Of(types.OIDRegconfig), b.Build(), 0, nil)), nil
	}
	return v, nil
}

// normalize is settingDef.normalize where the value that is in force matters: what a
// value of DateStyle does not say stays as it is.
func (s *settings) normalize(d *settingDef, v string) (string, error) {
	if d.name != "DateStyle" {
		return d.normalize(v)
	}
	style := s.style
	if detail := style.SetDateStyle(v); detail != "" {
		return "", pgerror.New(pgerror.InvalidParameterValue, "invalid value for parameter \"DateStyle\": \"%s\"", v).WithDetail("%s", detail)
	}
	return style.DateStyle(), nil
}

// is tells whether a setting has a value.
func (s *settings) is(name, value string) bool {
	v, _ := s.get(name)
	return v == value
}

func parseBoolSetting(v string) (val, ok bool) {
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "on", "true", "t", "yes", "y", "1":
		return true, true
	case "off", "false", "f", "no", "n", "0":
		return false, true
	}
	return false, false
}

func parseTimeSetting(v string) (time.Duration, error) {
	v = strings.TrimSpace(v)
	for _, u := range []struct {
		suffix string
		unit   time.Duration
	}{{"us", time.Microsecond}, {"ms", time.Millisecond}, {"min", time.Minute}, {"s", time.Second}, {"h", time.Hour}, {"d", 24 * time.Hour}, {"", time.Millisecond}} {
		if num, ok := strings.CutSuffix(v, u.suffix); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
			if err != nil || n < 0 {
				return 0, fmt.Errorf("invalid duration %q", v)
			}
			return time.Duration(n * float64(u.unit)), nil
		}
	}
	return 0, fmt.Errorf("invalid duration %q", v)
}

func formatTimeSetting(d time.Duration) string {
	for _, u := range []struct {
		suffix string
		unit   time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}} {
		if d > 0 && d%u.unit == 0 {
			return strconv.FormatInt(int64(d/u.unit), 10) + u.suffix
		}
	}
	if d == 0 {
		return "0"
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}

// loadZone finds what a value of TimeZone means, and how it is shown: a name of
// the time zone database, POSIX notation, or hours east of UTC.
func loadZone(v string) (*time.Location, string, error) {
	v = strings.TrimSpace(v)
	if strings.EqualFold(v, "default") {
		v = "UTC"
	}
	if n, err := strconv.ParseFloat(v, 64); err == nil && n > -168 && n < 168 {
		minutes := int(math.Round(math.Abs(n) * 60))
		text := fmt.Sprintf("%02d", minutes/60)
		if minutes%60 != 0 {
			text += fmt.Sprintf(":%02d", minutes%60)
		}
		east, west := "+", "-"
		if n < 0 {
			east, west = west, east
		}
		v = "<" + east + text + ">" + west + text
	}
	l, ok := types.LoadZone(v)
	if !ok {
		return nil, "", fmt.Errorf("time zone %q is not known", v)
	}
	if name := l.String(); strings.EqualFold(name, v) {
		v = name
	}
	return l, v, nil
}

// parsePath splits a search_path into schema names.
func parsePath(v string) []string {
	var out []string
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case c == ',' || c == ' ' || c == '\t' || c == '\n':
			i++
		case c == '"' || c == '\'':
			j := i + 1
			var b strings.Builder
			for j < len(v) {
				if v[j] == c {
					if j+1 < len(v) && v[j+1] == c {
						j++
					} else {
						break
					}
				}
				b.WriteByte(v[j])
				j++
			}
			out = append(out, b.String())
			i = j + 1
		default:
			j := i
			for j < len(v) && v[j] != ',' {
				j++
			}
			out = append(out, strings.ToLower(strings.TrimSpace(v[i:j])))
			i = j
		}
	}
	return out
}

// all lists the settings for SHOW ALL and pg_settings.
func (s *settings) all() [][3]string {
	out := make([][3]string, 0, len(settingDefs))
	for i := range settingDefs {
		d := &settingDefs[i]
		v, _ := s.get(d.name)
		out = append(out, [3]string{d.name, v, d.desc})
	}
	sort.Slice(out, func(i, j int) bool { return strings.ToLower(out[i][0]) < strings.ToLower(out[j][0]) })
	return out
}

// WantsNotice implements pgwire.NoticeFilter, by client_min_messages.
func (s *Session) WantsNotice(severity string) bool {
	least, _ := s.set.get("client_min_messages")
	switch severity {
	case "NOTICE", "":
		return least != "warning" && least != "error"
	case "WARNING":
		return least != "error"
	}
	return true
}
