package docs_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "github.com/streamdb/streamdb/catalog/pgcatalog" // its set-returning functions
	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/types"
)

var rewrite = flag.Bool("rewrite", false, "write sql/functions.md from the registry, and the list in compatibility.md from PostgreSQL")

// overload is one line of the registry.
type overload struct {
	name, kind string
	args       []types.Type
}

func (o overload) signature() string {
	parts := make([]string, len(o.args))
	for i, a := range o.args {
		parts[i] = a.OID.Name()
	}
	return o.name + "(" + strings.Join(parts, ", ") + ")"
}

// registered are all functions of the registry.
func registered() []overload {
	var out []overload
	for f := range expr.AllFunctions() {
		if !f.Internal {
			out = append(out, overload{f.Name, "scalar", f.Args})
		}
	}
	for f := range expr.AllAggregates() {
		out = append(out, overload{f.Name, "aggregate", f.Args})
	}
	for f := range expr.AllTableFunctions() {
		out = append(out, overload{f.Name, "set", f.Args})
	}
	return out
}

// builtInNames are the functions that PostgreSQL has too, by name.
func builtInNames(t *testing.T) map[string]bool {
	b, err := os.ReadFile("../catalog/pgcatalog/facts/pg_proc.tsv")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Split(line, "\t"); len(f) > 1 {
			names[f[1]] = true
		}
	}
	return names
}

// TestFunctionTable holds sql/functions.md to the registry.
func TestFunctionTable(t *testing.T) {
	known := builtInNames(t)
	byName := map[string][]overload{}
	var names []string
	for _, o := range registered() {
		if byName[o.name] == nil {
			names = append(names, o.name)
		}
		byName[o.name] = append(byName[o.name], o)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("# Functions\n\nEvery function that can be called, from the registry that resolves calls. *as PostgreSQL* " +
		"means that a test compares it with a PostgreSQL server, *as PostgreSQL 17* that the server of the tests, a 15, " +
		"does not have it; *own* that PostgreSQL does not have it. Window functions without " +
		"an aggregate of their name are in [SQL](../sql.md).\n\n| function | kind | status | arguments |\n|---|---|---|---|\n")
	for _, name := range names {
		var kinds, args []string
		for _, o := range byName[name] {
			if !slices.Contains(kinds, o.kind) {
				kinds = append(kinds, o.kind)
			}
			if a := o.signature()[len(name):]; !slices.Contains(args, a) {
				args = append(args, a)
			}
		}
		status := "own"
		switch {
		case known[name]:
			status = "as PostgreSQL"
		case expr.Newer(name):
			status = "as PostgreSQL 17"
		}
		list := strings.Join(args, " ")
		if len(args) > 6 {
			list = fmt.Sprintf("%s … (%d overloads)", strings.Join(args[:6], " "), len(args))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", name, strings.Join(kinds, ", "), status, strings.ReplaceAll(list, "|", "\\|"))
	}
	golden(t, "sql/functions.md", b.String())
}

func golden(t *testing.T, file, want string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/%s is not current: go test ./docs -run %s -rewrite", file, t.Name())
	}
}

// reasons say why something of PostgreSQL's catalog is not here. Each is a
// pattern for the signature with the result type; the first that fits counts.
var reasons = []struct{ pattern, reason string }{
	{`\binternal\b|\bcstring\b|_handler\b|event_trigger|\btrigger\b|pg_node_tree|\b(any\w+|void|unknown)_?send\b|^pg_ddl_command|^(int4inc|numeric_inc|int8_sum)\(|^(anyarray|anycompatiblearray|void|unknown)_send`, "functions of the server's inside: input, output, planner and index support, triggers"},
	{`^support `, "transition, hashing and comparison functions that aggregates and indexes call"},
	{`^hash|_hash\b|^btvarstr|^btequal|^in_range|^record_image|image_|^\*[<=>]`, "transition, hashing and comparison functions that aggregates and indexes call"},
	{`^ts_stat\(|^ts_rewrite\(tsquery, text`, "text search by queries that are given as text"},
	{`^cursor_to_xml`, "what the cursors of the session give as xml: refcursor is no type"},
	{`\b(tid|cid|refcursor|txid_snapshot|pg_snapshot|pg_mcv_list|pg_ndistinct|pg_dependencies|pg_brin_\w+)\b|^currtid|^txid_|^mxid_age|^age\(xid`, "places of rows, snapshots and numbers of transactions as PostgreSQL's storage has them"},
	{`^binary_upgrade|^fmgr_|^plpgsql|^postgresql_fdw|^amvalidate|^brin_|^gin_clean|^pg_nextoid|^pg_stop_making|^pg_import_system|^pg_extension|^pg_available_ext|^pg_indexam|^satisfies_hash|^pg_partition|^pg_filenode|^pg_isolation`, "extensions, access methods, partitions and upgrades"},
	{`^pg_stat_`, "statistics of PostgreSQL's storage; streamdb's own are in streamdb_internal"},
	{`wal|replication|backup|recovery|^pg_create_restore|^pg_logical|^pg_promote|^pg_last_|replay|^pg_switch|^pg_xact|^pg_current_xact|^pg_current_snapshot|^pg_export|^pg_control|^pg_prepared_xact|^pg_get_multixact|^pg_safe_snapshot|^pg_visible_in|^pg_snapshot`, "write-ahead log, replication, recovery and transaction identifiers"},
	{`^lo_|^loread|^lowrite|^pg_ls_|^pg_read_|^pg_file|^pg_hba|^pg_ident_file|^pg_show_all_file|^pg_rotate|^pg_current_logfile|^pg_reload|^pg_config|^pg_tablespace|^pg_get_shmem|^pg_get_backend_mem|^pg_log_backend`, "files, large objects and the server's memory"},
	{`^acl|aclitem`, "privileges: there is one owner of everything"},
	{`^pg_(cursor|lock_status|prepared_statement|show_all_settings|get_catalog_foreign_keys|event_trigger\w*|options_to_table|get_publication_tables|listening_channels|notify|notification_queue_usage|settings_get_flags|identify_object\w*|get_object_address|column_compression)\b`, "what is behind system views: the views are there"},
}

func reasonOf(s string) string {
	for _, r := range reasons {
		if regexp.MustCompile(r.pattern).MatchString(s) {
			return r.reason
		}
	}
	return ""
}

// procSQL lists PostgreSQL's functions; support functions of aggregates and
// indexes are marked.
const procSQL = `
WITH support AS (
  SELECT unnest(ARRAY[aggtransfn, aggfinalfn, aggcombinefn, aggmtransfn, aggminvtransfn, aggmfinalfn])::oid AS f FROM pg_aggregate
  UNION SELECT amproc::oid FROM pg_amproc)
SELECT CASE WHEN p.oid IN (SELECT f FROM support) AND p.prokind = 'f' THEN 'support ' ELSE '' END,
  p.proname, coalesce((SELECT string_agg(format_type(a, NULL), ', ' ORDER BY o) FROM unnest(p.proargtypes) WITH ORDINALITY u(a, o)), ''),
  format_type(p.prorettype, NULL), (p.prokind = 'w' OR p.proargtypes = '2276'::oidvector AND p.prokind = 'a')::bool
FROM pg_proc p WHERE p.pronamespace = 11`

const beginList, endList = "<!-- functions: begin -->\n", "<!-- functions: end -->\n"

// TestMissingFunctions compares the registry with PostgreSQL's pg_proc,
// pg_operator and pg_cast. What is not here has a reason, and the list in
// compatibility.md says so.
func TestMissingFunctions(t *testing.T) {
	s := oracle.Connect(t)
	missing := map[string][]string{}
	note := func(what, key, name string) {
		r := reasonOf(key)
		if r == "" {
			t.Errorf("%s is missing, without a reason: %s", what, key)
		} else if !slices.Contains(missing[r], name) {
			missing[r] = append(missing[r], name)
		}
	}
	missingProcs(t, s, note)
	missingOperators(t, s, note)
	missingCasts(t, s, note)
	var b strings.Builder
	b.WriteString(beginList)
	done := map[string]bool{}
	for _, r := range reasons {
		names := missing[r.reason]
		if len(names) == 0 || done[r.reason] {
			continue
		}
		done[r.reason] = true
		slices.Sort(names)
		list := strings.Join(names, ", ")
		if len(names) > 24 {
			list = fmt.Sprintf("%s … (%d names)", strings.Join(names[:8], ", "), len(names))
		}
		fmt.Fprintf(&b, "- %s: `%s`\n", r.reason, list)
	}
	b.WriteString(endList)
	text, err := os.ReadFile("compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	i, j := strings.Index(string(text), beginList), strings.Index(string(text), endList)
	if i < 0 || j < 0 {
		t.Fatal("compatibility.md has no list of functions")
	}
	golden(t, "compatibility.md", string(text[:i])+b.String()+string(text[j+len(endList):]))
}

func missingProcs(t *testing.T, s *oracle.Server, note func(what, key, name string)) {
	have := map[string]bool{}
	for _, o := range registered() {
		have[o.signature()] = true
	}
	rows, err := s.Conn.Query(t.Context(), procSQL)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var support, name, args, ret string
		var window bool
		if err := rows.Scan(&support, &name, &args, &ret, &window); err != nil {
			t.Fatal(err)
		}
		if have[name+"("+args+")"] || window && planner.IsWindowFunction(name) {
			continue
		}
		key := name + "(" + args + ") " + ret
		if support != "" && reasonOf(key) == "" {
			key = support + key
		}
		note("function", key, name)
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
}

func missingOperators(t *testing.T, s *oracle.Server, note func(what, key, name string)) {
	have := map[string]bool{}
	for f := range expr.AllOperators() {
		o := overload{f.Name, "", f.Args}
		have[o.signature()] = true
	}
	rows, err := s.Conn.Query(t.Context(), `SELECT oprname, concat_ws(', ', CASE WHEN oprleft <> 0 THEN format_type(oprleft, NULL) END, format_type(oprright, NULL)) FROM pg_operator`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var name, args string
		if err := rows.Scan(&name, &args); err != nil {
			t.Fatal(err)
		}
		if !have[name+"("+args+")"] {
			note("operator", name+"("+args+")", name)
		}
	}
}

func missingCasts(t *testing.T, s *oracle.Server, note func(what, key, name string)) {
	rows, err := s.Conn.Query(t.Context(), `SELECT castsource, casttarget, format_type(castsource, NULL), format_type(casttarget, NULL), castcontext::text FROM pg_cast WHERE castsource <> casttarget`)
	if err != nil {
		t.Fatal(err)
	}
	context := map[string]expr.CastContext{"i": expr.CastImplicit, "a": expr.CastAssignment, "e": expr.CastExplicit}
	for rows.Next() {
		var from, to uint32
		var f, g, c string
		if err := rows.Scan(&from, &to, &f, &g, &c); err != nil {
			t.Fatal(err)
		}
		if !expr.CanCoerce(types.Of(types.OID(from)), types.Of(types.OID(to)), context[c]) {
			note("cast", f+" to "+g, "cast of "+f+" to "+g)
		}
	}
}
