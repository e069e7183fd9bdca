package coord_test

import (
	"strings"
	"testing"
)

// TestJobConfig checks that the configuration of a streaming job is checked, kept
// over a restart and reset, and what the settings of RisingWave's clients do.
func TestJobConfig(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	d.exec(c, "CREATE TABLE t (a int PRIMARY KEY, b int)")
	d.exec(c, `ALTER TABLE t SET CONFIG (streaming.developer.chunk_size = 511, streaming.developer.join_encoding_type = "cpu_optimized", streaming.developer.enable_executor_row_count = TRUE)`)
	d.exec(c, "ALTER TABLE t SET CONFIG (streaming.developer.chunk_size = 12)")
	d.exec(c, "ALTER TABLE t RESET CONFIG (streaming.developer.enable_executor_row_count)")
	for q, code := range map[string]string{
		"ALTER TABLE t SET CONFIG (batch.x = 1)":                                                            "22023",
		"ALTER TABLE t SET CONFIG (streaming.x = 1)":                                                        "42704",
		"ALTER TABLE t SET CONFIG (streaming.developer.chunk_size = 'x')":                                   "22023",
		"ALTER TABLE t SET CONFIG (streaming.developer.join_encoding_type = 'x')":                           "22023",
		"ALTER TABLE t SET CONFIG (streaming.developer.chunk_size = 1, streaming.developer.chunk_size = 2)": "22023",
		"CREATE TABLE u (ctid int)":                                                                         "42701",
		"CREATE MATERIALIZED VIEW v AS SELECT a AS xmin FROM t":                                             "42701",
		"ALTER TABLE t ADD COLUMN cmax int":                                                                 "42701",
		"ALTER TABLE t RENAME b TO tableoid":                                                                "42701",
		"SELECT pg_relation_size('t', 'x')":                                                                 "22023",
		"SELECT map_from_entries(ARRAY[]::int[])":                                                           "42804",
		"INSERT INTO t VALUES (1, 1), (1, 2)":                                                               "23505",
	} {
		if _, err := c.Exec(t.Context(), q); err == nil || !strings.Contains(err.Error(), "SQLSTATE "+code) {
			t.Errorf("%s: %v, want %s", q, err, code)
		}
	}
	d.exec(c, "SET upsert_dml = true")
	d.exec(c, "INSERT INTO t VALUES (1, 1), (1, 2)")
	d.exec(c, "INSERT INTO t VALUES (1, 3) ON CONFLICT DO NOTHING")
	d.exec(c, "SET streaming_cache_refill_policy = both")
	d.exec(c, "CREATE MATERIALIZED VIEW m AS SELECT b FROM t")
	d.close()
	d = open(t, dir)
	defer d.close()
	c = d.connect()
	if got, want := d.text(c, "SELECT name, key, value FROM rw_streaming_job_config ORDER BY 1, 2"),
		"m,streaming.developer.cache_refill_policy,\"both\"\nt,streaming.developer.chunk_size,12\nt,streaming.developer.join_encoding_type,\"cpu_optimized\""; got != want {
		t.Errorf("configuration: %q, want %q", got, want)
	}
	if got := d.text(c, "SELECT a, b FROM t"); got != "1,2" {
		t.Errorf("rows after an upsert: %q", got)
	}
}
