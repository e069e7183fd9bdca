package coord_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
)

// TestOddFunctions compares functions of encodings, sizes and words with PostgreSQL.
func TestOddFunctions(t *testing.T) {
	s := oracle.Connect(t)
	d := open(t, t.TempDir())
	defer d.close()
	var sqls []string
	for _, f := range []struct {
		format string
		args   []string
	}{
		{"to_ascii(%s)", []string{"'x'", "NULL"}},
		{"to_ascii('Karél äöüß €ÿ𐍈', %s)", []string{"'latin1'", "'LATIN2'", "'latin9'", "'win1250'", "'utf8'", "'nope'", "8", "16", "77", "-1"}},
		{"convert(%s)", []string{`'\xe4'::bytea, 'latin1', 'utf8'`, `'\xc3a4', 'utf8', 'latin1'`, `'\xff', 'utf8', 'latin1'`, `'\xe282ac', 'utf8', 'latin1'`, "'a', 'x', 'utf8'", "'a', 'utf8', 'nope'", "'a', 'utf8', 'utf8'"}},
		{"length(%s)", []string{`'\xc3a4'::bytea, 'utf8'`, `'\xc3a4'::bytea, 'latin1'`, `'\xff'::bytea, 'utf8'`, "'x'::bytea, 'nope'"}},
		{"pg_size_bytes(%s)", []string{"'1'", "'1.5 kB'", "'10TB'", "'-1e3 mb'", "'x'", "''", "'1 xb'", "'1e30 kb'", "' +12.5 Bytes '", "'1b'", "'1 PB'", "'.5gb'", "'5.'", "'1e'", "'1 e2'", "'9223372036854775807'", "'9223372036854775808'", "'-.5'"}},
		{"pg_encoding_max_length(%s)", strings.Fields("0 1 4 6 7 8 20 35 39 40 41 42 -1")},
		{"cash_words(%s)", []string{"'123.45'::money", "'-1234567.01'", "'0'", "'1'", "'999999999999.99'", "'100'", "'1100000.10'", "'101000.21'", "'120'", "'110'", "'112.12'", "'-92233720368547758.08'", "'0.01'", "'1000000000000000'"}},
		{"nameconcatoid(%s)", []string{"'abc', 5::oid", "'" + strings.Repeat("ä", 31) + "', 123456::oid", "'', 0::oid"}},
		{"oidvectortypes(%s)", []string{"'23 25'", "''", "'1043 1007'"}},
		{"pg_collation_for(%s)", []string{"'x'", "'x'::text", "'x'::varchar(3)", "NULL", "1", "ARRAY['x']"}},
	} {
		for _, a := range f.args {
			sqls = append(sqls, "SELECT "+fmt.Sprintf(f.format, a))
		}
	}
	sqls = append(sqls, "SELECT word, catcode, barelabel FROM pg_get_keywords() WHERE word LIKE 's%' ORDER BY word",
		"SELECT abbrev, utc_offset, is_dst FROM pg_timezone_abbrevs() ORDER BY 1", "SELECT name FROM pg_timezone_names() WHERE name LIKE 'Europe/B%' ORDER BY 1")
	sqls = append(sqls, "SELECT * FROM pg_sequence_parameters('sq'::regclass)", "SELECT (pg_sequence_parameters('sq'::regclass)).increment", "SELECT * FROM pg_sequence_parameters(NULL)")
	both(t, d, s, "CREATE TEMP SEQUENCE sq AS int START 7 INCREMENT 3 MAXVALUE 90 CYCLE CACHE 2; SET timezone = 'UTC'", sqls)
}

// TestNewerFunctions derives the functions that PostgreSQL 16 and 17 added from
// what version 15 can do, or from what they mean.
func TestNewerFunctions(t *testing.T) {
	s := oracle.Connect(t)
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	d.exec(c, "SET timezone = 'UTC'")
	type pair struct{ ours, theirs string }
	var pairs []pair
	for _, n := range []string{"0", "1", "10", "-1", "2147483647", "-2147483648"} {
		pairs = append(pairs, pair{"to_bin(" + n + ")", "coalesce(nullif(ltrim((" + n + ")::bit(32)::text, '0'), ''), '0')"},
			pair{"to_bin((" + n + ")::bigint)", "coalesce(nullif(ltrim((" + n + ")::bigint::bit(64)::text, '0'), ''), '0')"},
			pair{"to_oct(" + n + ")", "coalesce(nullif(ltrim((SELECT string_agg((substr('0' || (" + n + ")::bit(32)::text, 3 * g + 1, 3)::bit(3)::int)::text, '' ORDER BY g) FROM generate_series(0, 10) g), '0'), ''), '0')"})
	}
	for _, zone := range []string{"America/New_York", "Europe/Warsaw", "UTC"} {
		for _, ts := range []string{"2021-10-30 22:00:00+00", "2024-03-10 06:30:00+00", "2020-02-29 12:00:00+00"} {
			for _, iv := range []string{"1 day", "1 month -3 days", "25 hours", "1 year 2 mons 3 days 04:05:06"} {
				pairs = append(pairs, pair{fmt.Sprintf("date_add('%s'::timestamptz, '%s'::interval, '%s')", ts, iv, zone), fmt.Sprintf("zoned('%s', '%s', '%s')", ts, iv, zone)},
					pair{fmt.Sprintf("date_subtract('%s'::timestamptz, '%s'::interval, '%s')", ts, iv, zone), fmt.Sprintf("zoned('%s', -'%s'::interval, '%s')", ts, iv, zone)})
			}
		}
	}
	pairs = append(pairs, pair{"date_add(timestamptz '2024-01-31 00:00+00', '1 month')", "timestamptz '2024-01-31 00:00+00' + '1 month'"},
		pair{"(SELECT string_agg(x::text, ',') FROM generate_series(timestamptz '2024-03-09 12:00+00', '2024-03-12 12:00+00', '1 day', 'America/New_York') x)",
			"(SELECT string_agg(x::text, ',') FROM unnest(ARRAY[timestamptz '2024-03-09 12:00+00', '2024-03-10 11:00+00', '2024-03-11 11:00+00', '2024-03-12 11:00+00']) x)"},
		pair{"(SELECT any_value(x) FROM (VALUES (NULL), (5), (5)) v(x))", "5"}, pair{"(SELECT any_value(x) FROM (VALUES (NULL::text)) v(x))", "NULL"},
		pair{"(SELECT array_agg(x ORDER BY x) FROM unnest(array_shuffle(ARRAY[3,1,2,NULL])) x)", "ARRAY[1,2,3,NULL]"},
		pair{"array_length(array_sample(ARRAY[[1,2],[3,4],[5,6]], 2), 1) * 10 + array_length(array_sample(ARRAY[[1,2],[3,4],[5,6]], 2), 2)", "22"},
		pair{"array_sample(ARRAY[1,2], 0)", "'{}'"}, pair{"array_dims(array_shuffle('[5:7]={1,2,3}'::int[]))", "'[5:7]'"},
		pair{"(SELECT bool_and(random(3, 5) BETWEEN 3 AND 5) AND count(DISTINCT random(3, 5)) = 3 FROM generate_series(1, 200))", "true"},
		pair{"(SELECT bool_and(x BETWEEN 1.5 AND 1.75 AND scale(x) = 2) FROM (SELECT random(1.5, 1.75) x FROM generate_series(1, 200)) q)", "true"},
		pair{"random(-9223372036854775808, 9223372036854775807) IS NOT NULL", "true"},
		pair{"(SELECT abs(avg(random_normal(10, 2)) - 10) < 0.5 AND abs(stddev(random_normal(10, 2)) - 2) < 0.3 FROM generate_series(1, 2000))", "true"},
		pair{"random_normal(mean => 3, stddev => 0)", "3"},
		pair{"round(erf(0.5)::numeric, 12)", "0.520499877813"}, pair{"round(erfc(0.5)::numeric, 12)", "0.479500122187"}, pair{"erf('Infinity')", "1"},
		pair{"uuid_extract_version('5f0c3e1a-0000-4000-8000-000000000001')", "4"}, pair{"uuid_extract_version('5f0c3e1a-0000-4000-0000-000000000001')", "NULL"},
		pair{"uuid_extract_timestamp('c232ab00-9414-11ec-b3c8-9f6bdeced846')", "timestamptz '2022-02-22 19:22:22+00'"}, pair{"uuid_extract_timestamp('5f0c3e1a-0000-4000-8000-000000000001')", "NULL"},
		pair{"unicode_assigned('aä€')", "true"}, pair{`unicode_assigned(U&'\0378')`, "false"}, pair{"system_user", "NULL"},
		pair{"pg_basetype('small')", "'integer'"}, pair{"pg_basetype('int[]')", "'integer[]'"}, pair{"to_regtypemod('varchar(32)')", "36"}, pair{"to_regtypemod('timestamp')", "-1"}, pair{"to_regtypemod('nosuch')", "NULL"},
		pair{"jsonb_populate_record_valid(NULL::comp, '{\"a\":\"1\"}')", "true"}, pair{"jsonb_populate_record_valid(NULL::comp, '{\"a\":\"x\"}')", "false"},
		pair{"pg_input_is_valid('5', 'small')", "true"}, pair{"pg_input_is_valid('50', 'small')", "false"})
	d.exec(c, "CREATE DOMAIN small AS int CHECK (VALUE < 10); CREATE TYPE comp AS (a int)")
	s.Exec(t, `CREATE FUNCTION pg_temp.zoned(t timestamptz, i interval, z text) RETURNS timestamptz LANGUAGE plpgsql AS $$
		DECLARE r timestamptz; BEGIN PERFORM set_config('timezone', z, true); r := t + i; PERFORM set_config('timezone', 'UTC', true); RETURN r; END $$`)
	var sqls []string
	for _, p := range pairs {
		sqls = append(sqls, strings.Replace(p.theirs, "zoned(", "pg_temp.zoned(", 1))
	}
	for i, want := range s.Eval(t, sqls) {
		if got := reply(c, "SELECT ("+pairs[i].ours+")::text"); got != want.String() {
			t.Errorf("%s\n got %s\nwant %s", pairs[i].ours, got, want)
		}
	}
	sqls = nil
	inputs := [][2]string{{"5", "int"}, {"x", "int"}, {"99999999999", "integer"}, {"1.23", "numeric(2,1)"}, {"123", "numeric(2,1)"}, {"abcd", "varchar(3)"}, {"2020-02-30", "date"}, {"{1,x}", "int[]"}, {"{1", "int[]"},
		{"{", "json"}, {"[1,2)", "int4range"}, {"t", "bool"}, {"maybe", "bool"}, {"1 day", "interval"}, {"x", "uuid"}, {"25:00", "time"}}
	for _, in := range inputs {
		sqls = append(sqls, oracle.Quote(in[0])+"::"+in[1])
	}
	for i, r := range s.Eval(t, sqls) {
		want := "t|NULL|NULL|NULL|NULL"
		if r.Code != "" && !strings.HasPrefix(inputs[i][1], "varchar") {
			null := func(s string) string {
				if s == "" {
					return "NULL"
				}
				return s
			}
			want = "f|" + r.Message + "|" + null(r.Detail) + "|" + null(r.Hint) + "|" + r.Code
		} else if strings.HasPrefix(inputs[i][1], "varchar") { // a cast would cut it
			want = "f|value too long for type character varying(3)|NULL|NULL|22001"
		}
		if got := reply(c, fmt.Sprintf("SELECT pg_input_is_valid(%[1]s, '%[2]s'), e.* FROM pg_input_error_info(%[1]s, '%[2]s') e", oracle.Quote(inputs[i][0]), inputs[i][1])); got != want {
			t.Errorf("%v\n got %s\nwant %s", inputs[i], got, want)
		}
	}
	for sql, want := range map[string]string{
		"SELECT pg_input_is_valid('5', 'nosuch')": `ERROR 42704: type "nosuch" does not exist`, "SELECT random(5, 3)": "ERROR 22023: lower bound must be less than or equal to upper bound",
		"SELECT random('NaN'::numeric, 1)": "ERROR 22023: lower bound cannot be NaN", "SELECT array_sample(ARRAY[1], 2)": "ERROR 22023: sample size must be between 0 and 1",
		"SELECT date_add(now(), '1 day', 'Nowhere/Else')":               `ERROR 22023: time zone "Nowhere/Else" not recognized`,
		"CREATE MATERIALIZED VIEW m AS SELECT random(1, 2)":             "ERROR",
		"CREATE MATERIALIZED VIEW m AS SELECT array_shuffle('{1}')":     "ERROR",
		"CREATE MATERIALIZED VIEW mm AS SELECT any_value(1), to_bin(5)": "",
	} {
		if got := reply(c, sql); got != want && (want != "ERROR" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
}
