package coord_test

import (
	"context"
	"strings"
	"testing"
)

// sqlJSONCases are what PostgreSQL 17's manual says of SQL/JSON: an expression
// over j, the document, and what it gives. Messages and positions are those of
// the statement SELECT expression.
var sqlJSONCases = []struct{ doc, sql, want string }{
	// Constructors.
	{`1`, `JSON_OBJECT()`, `{}`},
	{`1`, `JSON_OBJECT('code' VALUE 'P123', 'title': 'Jaws')`, `{"code" : "P123", "title" : "Jaws"}`},
	{`1`, `JSON_OBJECT('a': j, 'b': NULL RETURNING jsonb)`, `{"a": 1, "b": null}`},
	{`1`, `JSON_OBJECT('a': '[1]' FORMAT JSON, 'b': '[1]')`, `{"a" : [1], "b" : "[1]"}`},
	{`1`, `JSON_OBJECT('a': NULL, 'b': 1 ABSENT ON NULL)`, `{"b" : 1}`},
	{`1`, `JSON_OBJECT('a': 1, 'a': 2)`, `{"a" : 1, "a" : 2}`},
	{`1`, `JSON_OBJECT('a': 1, 'a': 2 WITH UNIQUE KEYS)`, `ERROR 22030: duplicate JSON object key value: "a"`},
	{`1`, `JSON_OBJECT('a': 1, 'a': NULL ABSENT ON NULL WITH UNIQUE RETURNING jsonb)`, `ERROR 22030: duplicate JSON object key value`},
	{`1`, `JSON_OBJECT(NULL: 1)`, `ERROR 22004: null value not allowed for object key`},
	{`1`, `JSON_OBJECT('a': 1 RETURNING bytea)`, `\x7b226122203a20317d`},
	{`1`, `JSON_OBJECT('a': 1 RETURNING varchar(3))`, `ERROR 22001: value too long for type character varying(3)`},
	{`1`, `JSON_OBJECT('a': 1 RETURNING int)`, `ERROR 42846: cannot cast type json to integer AT 8`},
	{`1`, `JSON_OBJECT('a': 1 FORMAT JSON)`, `ERROR 42804: cannot use non-string types with explicit FORMAT JSON clause AT 27`},
	{`1`, `JSON_OBJECT('a': '{' FORMAT JSON)`, `ERROR 22P02: invalid input syntax for type json DETAIL The input string ended unexpectedly.`},
	{`1`, `JSON_ARRAY()`, `[]`},
	{`1`, `JSON_ARRAY(1, NULL, 'x', j)`, `[1, "x", 1]`},
	{`1`, `JSON_ARRAY(1, NULL NULL ON NULL RETURNING json)`, `[1, null]`},
	{`1`, `JSON_ARRAY(SELECT x FROM (VALUES (3), (1), (NULL)) v(x) ORDER BY x)`, `[1, 3]`},
	{`1`, `JSON_ARRAY(SELECT x FROM (VALUES (3), (1)) v(x) ORDER BY x DESC LIMIT 1 RETURNING jsonb)`, `[3]`},
	{`1`, `JSON_ARRAY(SELECT 1 WHERE false)`, `NULL`},
	{`1`, `JSON_ARRAY(SELECT 1, 2)`, `ERROR 42601: subquery must return only one column AT 8`},
	{`1`, `JSON('{"a" : 1, "a" : 2}')`, `{"a" : 1, "a" : 2}`},
	{`1`, `JSON('{"a":1,"a":2}' WITH UNIQUE KEYS)`, `ERROR 22030: duplicate JSON object key value`},
	{`1`, `JSON('\x7b7d'::bytea FORMAT JSON ENCODING UTF8)`, `{}`},
	{`1`, `JSON(NULL)`, `NULL`},
	{`1`, `JSON_SCALAR(123.45)`, `123.45`},
	{`1`, `JSON_SCALAR('x')`, `"x"`},
	{`1`, `JSON_SCALAR(NULL::int)`, `NULL`},
	{`1`, `JSON_SERIALIZE('{ "a" : 1 } ')`, `{ "a" : 1 } `},
	{`1`, `JSON_SERIALIZE('{ "a" : 1 } ' RETURNING bytea)`, `\x7b20226122203a2031207d20`},
	{`1`, `JSON_SERIALIZE('1' RETURNING int)`, `ERROR 42804: cannot use type integer in RETURNING clause of JSON_SERIALIZE() HINT Try returning a string type or bytea.`},
	{`1`, `(SELECT JSON_OBJECTAGG(k: v WITH UNIQUE KEYS) FROM (VALUES ('a', j), ('a', j)) t(k, v))`, `ERROR 22030: duplicate JSON object key value`},
	{`1`, `(SELECT JSON_ARRAYAGG(v) FILTER (WHERE v > 1) FROM (VALUES (1), (2), (NULL)) t(v))`, `[2]`},
	{`1`, `(SELECT string_agg(x::text, ';' ORDER BY x) FROM (SELECT JSON_ARRAYAGG(v RETURNING jsonb) OVER (ORDER BY v) x FROM (VALUES (1), (2)) t(v)) q)`, `[1];[1, 2]`},
	// IS JSON.
	{`1`, `'{"a":1,"a":2}' IS JSON WITH UNIQUE KEYS`, `f`},
	{`1`, `'[{"a":1},{"a":2}]' IS JSON ARRAY WITH UNIQUE KEYS`, `t`},
	{`{"a":1}`, `j IS JSON OBJECT WITH UNIQUE KEYS`, `t`},
	{`1`, `NULL IS JSON`, `NULL`},
	{`1`, `1 IS JSON`, `ERROR 42804: cannot use type integer in IS JSON predicate`},
	// JSON_EXISTS.
	{`{"key1": [1,2,3]}`, `JSON_EXISTS(j, 'strict $.key1[*] ? (@ > $x)' PASSING 2 AS x)`, `t`},
	{`{"a": [1,2,3]}`, `JSON_EXISTS(j, 'lax $.a[5]' ERROR ON ERROR)`, `f`},
	{`{"a": [1,2,3]}`, `JSON_EXISTS(j, 'strict $.a[5]' ERROR ON ERROR)`, `ERROR 22033: jsonpath array subscript is out of bounds`},
	{`{"a": [1,2,3]}`, `JSON_EXISTS(j, 'strict $.a[5]')`, `f`},
	{`{"a": [1,2,3]}`, `JSON_EXISTS(j, 'strict $.a[5]' UNKNOWN ON ERROR)`, `NULL`},
	{`{"a": [1,2,3]}`, `JSON_EXISTS(j, 'strict $.a[5]' TRUE ON ERROR)`, `t`},
	{`{"a": [1,2,3]}`, `JSON_EXISTS(NULL::jsonb, '$')`, `NULL`},
	{`{"a": [1,2,3]}`, `JSON_EXISTS(j, '$' EMPTY ARRAY ON ERROR)`, `ERROR 42601: invalid ON ERROR behavior DETAIL Only ERROR, TRUE, FALSE, or UNKNOWN is allowed in ON ERROR for JSON_EXISTS(). AT 27`},
	// JSON_QUERY.
	{`[1,[2,3],null]`, `JSON_QUERY(j, 'lax $[*][$off]' PASSING 1 AS off WITH CONDITIONAL WRAPPER)`, `3`},
	{`{"a": "[1, 2]"}`, `JSON_QUERY(j, 'lax $.a' OMIT QUOTES)`, `[1, 2]`},
	{`{"a": "[1, 2]"}`, `JSON_QUERY(j, 'lax $.a' RETURNING int[] OMIT QUOTES ERROR ON ERROR)`, `ERROR 22P02: malformed array literal: "[1, 2]" DETAIL Missing "]" after array dimensions.`},
	{`[1,2]`, `JSON_QUERY(j, '$[*]')`, `NULL`},
	{`[1,2]`, `JSON_QUERY(j, '$[*]' ERROR ON ERROR)`, `ERROR 22034: JSON path expression in JSON_QUERY must return single item when no wrapper is requested HINT Use the WITH WRAPPER clause to wrap SQL/JSON items into an array.`},
	{`[1,2]`, `JSON_QUERY(j, '$[*]' WITH WRAPPER)`, `[1, 2]`},
	{`[1]`, `JSON_QUERY(j, '$[*]' WITH CONDITIONAL WRAPPER)`, `1`},
	{`[1]`, `JSON_QUERY(j, '$' WITH UNCONDITIONAL WRAPPER)`, `[[1]]`},
	{`"aaa"`, `JSON_QUERY(j, '$' RETURNING text)`, `"aaa"`},
	{`"aaa"`, `JSON_QUERY(j, '$' RETURNING text OMIT QUOTES)`, `aaa`},
	{`"aaa"`, `JSON_QUERY(j, '$' OMIT QUOTES)`, `NULL`},
	{`"aaa"`, `JSON_QUERY(j, '$' RETURNING char(3) ERROR ON ERROR)`, `ERROR 22001: value too long for type character(3)`},
	{`"aaa"`, `JSON_QUERY(j, '$' RETURNING char(3) OMIT QUOTES ERROR ON ERROR)`, `aaa`},
	{`"aaa"`, `JSON_QUERY(j, '$' WITH WRAPPER OMIT QUOTES)`, `ERROR 42601: SQL/JSON QUOTES behavior must not be specified when WITH WRAPPER is used AT 8`},
	{`[]`, `JSON_QUERY(j, '$[*]' EMPTY OBJECT ON EMPTY)`, `{}`},
	{`[]`, `JSON_QUERY(j, '$[*]' ERROR ON EMPTY NULL ON ERROR)`, `ERROR 22035: no SQL/JSON item found for specified path`},
	{`[]`, `JSON_QUERY(j, '$[*]' DEFAULT '"none"' ON EMPTY)`, `"none"`},
	{`[3,4]`, `JSON_QUERY(j, '$[*]' RETURNING bigint[] EMPTY OBJECT ON ERROR)`, `ERROR 42804: could not coerce ON ERROR expression (EMPTY OBJECT) to the RETURNING type DETAIL expected JSON array`},
	{`[3,4]`, `JSON_QUERY(j, '$' RETURNING bigint[])`, `{3,4}`},
	{`[1,2,null,"3"]`, `JSON_QUERY(j, '$[*]' RETURNING int[] WITH WRAPPER)`, `{1,2,NULL,3}`},
	{`[1,2,null,"a"]`, `JSON_QUERY(j, '$[*]' RETURNING int[] WITH WRAPPER ERROR ON ERROR)`, `ERROR 22P02: invalid input syntax for type integer: "a"`},
	{`[[1,2],[3]]`, `JSON_QUERY(j, '$' RETURNING int[] ERROR ON ERROR)`, `ERROR 22P02: malformed JSON array DETAIL Multidimensional arrays must have sub-arrays with matching dimensions.`},
	{`"123.1"`, `JSON_QUERY(j, '$' RETURNING float8 OMIT QUOTES ERROR ON ERROR)`, `123.1`},
	{`"123.1"`, `JSON_QUERY(j, '$' RETURNING float8 ERROR ON ERROR)`, `ERROR 22P02: invalid input syntax for type double precision: ""123.1""`},
	{`[1,2]`, `JSON_QUERY(j, '$' RETURNING bytea)`, `\x5b312c20325d`},
	{`[1,2]`, `JSON_QUERY(j, '$' RETURNING int FORMAT JSON)`, `ERROR 0A000: cannot use JSON format with non-string output types AT 40`},
	{`{"a":1,"b":"x","c":[{"d":2}]}`, `JSON_QUERY(j, '$' RETURNING sj_rec)`, `(1,x,"{(2)}")`},
	{`{"a":"y"}`, `JSON_QUERY(j, '$' RETURNING sj_rec ERROR ON ERROR)`, `ERROR 22P02: invalid input syntax for type integer: "y"`},
	{`"(1,x,)"`, `JSON_QUERY(j, '$' RETURNING sj_rec OMIT QUOTES)`, `(1,x,)`},
	{`"(1,x,)"`, `JSON_QUERY(j, '$' RETURNING sj_rec ERROR ON ERROR)`, `ERROR 22023: cannot call populate_composite on a scalar`},
	// JSON_VALUE.
	{`"123.45"`, `JSON_VALUE(j, '$' RETURNING float)`, `123.45`},
	{`"03:04 2015-02-01"`, `JSON_VALUE(j, '$.datetime("HH24:MI YYYY-MM-DD")' RETURNING date)`, `2015-02-01`},
	{`[1,2]`, `JSON_VALUE(j, 'strict $[$off]' PASSING 1 AS off)`, `2`},
	{`[1,2]`, `JSON_VALUE(j, 'strict $[*]' DEFAULT 9 ON ERROR)`, `9`},
	{`[1,2]`, `JSON_VALUE(j, '$[*]' ERROR ON ERROR)`, `ERROR 22034: JSON path expression in JSON_VALUE must return single scalar item`},
	{`[1,2]`, `JSON_VALUE(j, '$' ERROR ON ERROR)`, `ERROR 2203F: JSON path expression in JSON_VALUE must return single scalar item`},
	{`{}`, `JSON_VALUE(j, '$' ERROR ON ERROR)`, `ERROR 2203F: JSON path expression in JSON_VALUE must return single scalar item`},
	{`true`, `JSON_VALUE(j, '$')`, `t`},
	{`true`, `JSON_VALUE(j, '$' RETURNING jsonb)`, `true`},
	{`"x"`, `JSON_VALUE(j, '$' RETURNING json)`, `"x"`},
	{`null`, `JSON_VALUE(j, '$' DEFAULT 'd' ON EMPTY DEFAULT 'e' ON ERROR)`, `NULL`},
	{`{}`, `JSON_VALUE(j, '$.a' DEFAULT 'd' ON EMPTY DEFAULT 'e' ON ERROR)`, `d`},
	{`{}`, `JSON_VALUE(j, 'strict $.a' DEFAULT 'd' ON EMPTY DEFAULT 'e' ON ERROR)`, `e`},
	{`{}`, `JSON_VALUE(j, '$.a' ERROR ON EMPTY DEFAULT 'e' ON ERROR)`, `ERROR 22035: no SQL/JSON item found for specified path`},
	{`"x"`, `JSON_VALUE(j, '$' RETURNING int DEFAULT 2 + 3 ON ERROR)`, `5`},
	{`"7"`, `JSON_VALUE(j, '$' RETURNING int DEFAULT 1 / 0 ON ERROR)`, `7`},
	{`"x"`, `JSON_VALUE(j, '$' RETURNING int DEFAULT 1 / 0 ON ERROR)`, `ERROR 22012: division by zero`},
	{`"x"`, `JSON_VALUE(j, '$' RETURNING int ERROR ON ERROR)`, `ERROR 22P02: invalid input syntax for type integer: "x"`},
	{`99999999999`, `JSON_VALUE(j, '$' RETURNING int ERROR ON ERROR)`, `ERROR 22003: value "99999999999" is out of range for type integer`},
	{`7`, `JSON_VALUE(j, '$' RETURNING sj_small ERROR ON ERROR)`, `7`},
	{`70`, `JSON_VALUE(j, '$' RETURNING sj_small ERROR ON ERROR)`, `ERROR 23514: value for domain sj_small violates check constraint "sj_small_check"`},
	{`70`, `JSON_VALUE(j, '$' RETURNING sj_small DEFAULT 3 ON ERROR)`, `3`},
	{`70`, `JSON_VALUE(j, '$' RETURNING sj_small DEFAULT 33 ON ERROR)`, `ERROR 42804: could not coerce ON ERROR expression (DEFAULT) to the RETURNING type DETAIL value for domain sj_small violates check constraint "sj_small_check"`},
	{`1`, `JSON_VALUE(j, '$' RETURNING int FORMAT JSON)`, `ERROR 42601: cannot specify FORMAT JSON in RETURNING clause of JSON_VALUE() AT 40`},
	{`1`, `JSON_VALUE(j, '$' RETURNING record)`, `ERROR 0A000: returning pseudo-types is not supported in SQL/JSON functions`},
	{`1`, `JSON_VALUE(j, '$' EMPTY ARRAY ON EMPTY)`, `ERROR 42601: invalid ON EMPTY behavior DETAIL Only ERROR, NULL, or DEFAULT expression is allowed in ON EMPTY for JSON_VALUE(). AT 26`},
	{`1`, `JSON_VALUE(j, '$' DEFAULT j ON EMPTY)`, `ERROR 42804: DEFAULT expression must not contain column references AT 34`},
	{`1`, `JSON_VALUE(j, '$' DEFAULT (SELECT 1) ON EMPTY)`, `ERROR 42804: can only specify a constant, non-aggregate function, or operator expression for DEFAULT AT 34`},
	{`1`, `JSON_VALUE(j, '$' DEFAULT generate_series(1, 2) ON EMPTY)`, `ERROR 42804: DEFAULT expression must not return a set AT 34`},
	{`1`, `JSON_VALUE(j, '$' RETURNING int DEFAULT date '2020-01-01' ON EMPTY)`, `ERROR 42846: cannot cast behavior expression of type date to integer HINT You will need to explicitly cast the expression to type integer. AT 53`},
	{`1`, `JSON_VALUE(j, 1)`, `ERROR 42804: JSON path expression must be of type jsonpath, not of type integer AT 22`},
	{`1`, `JSON_VALUE(j, '$' || '.a' DEFAULT 'none' ON EMPTY)`, `none`},
	{`1`, `JSON_VALUE(j, '$x')`, `ERROR 42704: could not find jsonpath variable "x"`},
	{`null`, `JSON_VALUE(j, '$d' PASSING date '2018-02-21' AS d)`, `2018-02-21`},
	{`null`, `JSON_VALUE(j, '$d' PASSING timestamp '2018-02-21 12:34:56' AS d RETURNING timestamp)`, `2018-02-21 12:34:56`},
	{`null`, `JSON_QUERY(j, '$d' PASSING timestamptz '2018-02-21 12:34:56+10' AS d)`, `"2018-02-21T02:34:56+00:00"`},
	{`null`, `JSON_EXISTS(j, '$d ? (@ < "2018-03-01".datetime())' PASSING date '2018-02-21' AS d)`, `t`},
	{`null`, `JSON_QUERY(j, '$d' PASSING NULL::int AS d)`, `null`},
	{`null`, `JSON_QUERY(j, '$d' PASSING ARRAY[1,2] AS d)`, `[1, 2]`},
	{`null`, `JSON_VALUE('{"a":5}', '$.a' RETURNING int)`, `5`},
	{`null`, `JSON_VALUE('{"a":5}'::json, '$.a' RETURNING int)`, `5`},
	{`null`, `JSON_QUERY(NULL FORMAT JSON, '$')`, `NULL`},
	{`null`, `JSON_VALUE(1, '$')`, `ERROR 42846: cannot cast type integer to jsonb AT 19`},
}

// sqlJSONTables are FROM clauses of JSON_TABLE over the documents and their rows.
var sqlJSONTables = []struct{ doc, from, want string }{
	{`[{"a":1},{"a":"x"},{}]`, `JSON_TABLE(j, '$[*]' COLUMNS (id FOR ORDINALITY, a int))`, `1|1; 2|NULL; 3|NULL`},
	{`[{"a":1},{"a":"x"},{}]`, `JSON_TABLE(j, '$[*]' COLUMNS (id FOR ORDINALITY, a int DEFAULT -1 ON EMPTY DEFAULT -2 ON ERROR))`, `1|1; 2|-2; 3|-1`},
	{`[{"a":1},{"a":"x"},{}]`, `JSON_TABLE(j, '$[*]' COLUMNS (a int ERROR ON EMPTY))`, `ERROR 22035: no SQL/JSON item found for specified path of column "a"`},
	{`[{"a":[1,2]}]`, `JSON_TABLE(j, '$[*]' COLUMNS (a int PATH '$.a[*]' ERROR ON ERROR))`, `ERROR 22034: JSON path expression for column "a" must return single scalar item`},
	{`[{"a":[1,2]}]`, `JSON_TABLE(j, '$[*]' COLUMNS (a jsonb PATH '$.a[*]' ERROR ON ERROR))`, `ERROR 22034: JSON path expression for column "a" must return single item when no wrapper is requested HINT Use the WITH WRAPPER clause to wrap SQL/JSON items into an array.`},
	{`[{"a":[1,2]},5]`, `JSON_TABLE(j, '$[*]' COLUMNS (a jsonb, w jsonb PATH '$.a[*]' WITH WRAPPER, t text FORMAT JSON PATH '$.a', i int[] PATH '$.a', "B c" int EXISTS PATH '$.a', e text EXISTS PATH '$.a'))`,
		`[1, 2]|[1, 2]|[1, 2]|{1,2}|1|true; NULL|NULL|NULL|NULL|0|false`},
	{`["x", "[1]"]`, `JSON_TABLE(j, '$[*]' COLUMNS (a text PATH '$', b json PATH '$', c jsonb PATH '$' OMIT QUOTES, d text FORMAT JSON PATH '$'))`, `x|"x"|NULL|"x"; [1]|"[1]"|[1]|"[1]"`},
	{`[{"a":1,"b":[1,2]},{"a":2,"b":[]},{"a":3}]`, `JSON_TABLE(j, '$[*]' COLUMNS (a int, NESTED PATH '$.b[*]' COLUMNS (n FOR ORDINALITY, b int PATH '$')))`, `1|1|1; 1|2|2; 2|NULL|NULL; 3|NULL|NULL`},
	{`[{"a":1,"b":[1,2],"c":["x"]},{"a":2,"c":["y","z"]}]`, `JSON_TABLE(j, '$[*]' AS root COLUMNS (NESTED PATH '$.b[*]' AS pb COLUMNS (b int PATH '$'), a int, NESTED '$.c[*]' COLUMNS (c text PATH '$')))`,
		`1|1|NULL; 1|2|NULL; 1|NULL|x; 2|NULL|y; 2|NULL|z`},
	{`{"a":[{"b":[{"c":1},{"c":2}]},{"b":[]}]}`, `JSON_TABLE(j, '$' COLUMNS (NESTED '$.a[*]' COLUMNS (x FOR ORDINALITY, NESTED '$.b[*]' COLUMNS (y FOR ORDINALITY, c int))))`, `1|1|1; 1|2|2; 2|NULL|NULL`},
	{`{"a":[1,2,3]}`, `JSON_TABLE(j, '$.a[*] ? (@ >= $lo)' PASSING 2 AS lo COLUMNS (a int PATH '$', b int PATH '$ ? (@ > $lo)'))`, `2|NULL; 3|3`},
	{`{"a":1}`, `JSON_TABLE(j, 'strict $.b' COLUMNS (a int PATH '$'))`, ``},
	{`{"a":1}`, `JSON_TABLE(j, 'strict $.b' COLUMNS (a int PATH '$') ERROR ON ERROR)`, `ERROR 2203A: JSON object does not contain key "b"`},
	{`{"a":1}`, `JSON_TABLE(j, '$' COLUMNS (a int PATH '$', a int))`, `ERROR 42712: duplicate JSON_TABLE column or path name: a AT 66`},
	{`{"a":1}`, `JSON_TABLE(j, '$' COLUMNS (x FOR ORDINALITY, y FOR ORDINALITY))`, `ERROR 42601: cannot use more than one FOR ORDINALITY column AT 68`},
	{`{"a":1}`, `JSON_TABLE(j, '$' COLUMNS (a int) NULL ON ERROR)`, `ERROR 42601: invalid ON ERROR behavior DETAIL Only EMPTY [ ARRAY ] or ERROR is allowed in the top-level ON ERROR clause. AT 57`},
	{`{"a":1}`, `JSON_TABLE(j, '$' COLUMNS (a int EMPTY ARRAY ON ERROR))`, `ERROR 42601: invalid ON ERROR behavior for column "a" DETAIL Only ERROR, NULL, or DEFAULT expression is allowed in ON ERROR for scalar columns. AT 56`},
	{`{"a":1}`, `JSON_TABLE(j, '$' COLUMNS (a int)) AS f(x, y)`, `ERROR 42P10: JSON_TABLE function has 1 columns available but 2 columns specified`},
	{`{"a":{"a":5,"b":"q","c":[{"d":1}]}}`, `JSON_TABLE(j, '$' COLUMNS (r sj_rec PATH '$.a', s sj_small PATH '$.a.a'))`, `(5,q,"{(1)}")|5`},
}

// TestSQLJSON runs the cases ad hoc and, where they give rows, in a view that
// is made before the document is there.
func TestSQLJSON(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	d.exec(c, `SET timezone = 'UTC'; CREATE TYPE sj_in AS (d int); CREATE TYPE sj_rec AS (a int, b text, c sj_in[]); CREATE DOMAIN sj_small AS int CHECK (VALUE < 10);
		CREATE TABLE docs (j jsonb)`)
	run := func(doc, sql, want string) {
		d.exec(c, "DELETE FROM docs; INSERT INTO docs VALUES ('"+strings.ReplaceAll(doc, "'", "''")+"')")
		if got := reply(c, sql); got != want {
			t.Errorf("%s with %s\n got %s\nwant %s", sql, doc, got, want)
			return
		}
		d.exec(c, "DELETE FROM docs")
		made := reply(c, "CREATE MATERIALIZED VIEW v AS "+sql)
		if made != "" {
			if !strings.HasPrefix(want, made[:11]) {
				t.Errorf("view of %s: %s", sql, made)
			}
			return
		}
		d.exec(c, "INSERT INTO docs VALUES ('"+strings.ReplaceAll(doc, "'", "''")+"')")
		if got := reply(c, "TABLE v"); got != want && (len(got) < 11 || !strings.HasPrefix(want, got[:11])) && !sameRows(got, want) {
			t.Errorf("view of %s with %s\n got %s\nwant %s", sql, doc, got, want)
		}
		d.exec(c, "DELETE FROM docs")
		if got := reply(c, "TABLE v"); got != "" {
			t.Errorf("view of %s without rows: %s", sql, got)
		}
		again := strings.TrimSuffix(strings.TrimPrefix(reply(c, "SELECT pg_get_viewdef('v'::regclass)"), " "), ";")
		if made := reply(c, "CREATE VIEW w AS "+again); made != "" {
			t.Errorf("definition %s: %s", again, made)
		}
		d.exec(c, "DROP MATERIALIZED VIEW v; DROP VIEW w")
	}
	for _, x := range sqlJSONCases {
		run(x.doc, "SELECT "+x.sql+" FROM docs", x.want)
	}
	for _, x := range sqlJSONTables {
		run(x.doc, "SELECT t.* FROM docs, "+x.from+map[bool]string{true: "", false: " AS t"}[strings.Contains(x.from, " AS f(")], x.want)
	}
}

// sameRows compares rows in any order.
func sameRows(a, b string) bool {
	x, y := strings.Split(a, "; "), strings.Split(b, "; ")
	if len(x) != len(y) {
		return false
	}
	count := map[string]int{}
	for i := range x {
		count[x[i]]++
		count[y[i]]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
