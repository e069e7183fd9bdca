package coord_test

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
)

// both runs statements on streamdb and on PostgreSQL and compares what they answer.
func both(t *testing.T, d *database, s *oracle.Server, setup string, sqls []string) {
	t.Helper()
	c := d.connect()
	defer c.Close(context.Background())
	if setup != "" {
		d.exec(c, strings.ReplaceAll(setup, "pg_temp.", ""))
		s.Exec(t, setup)
	}
	for _, q := range sqls {
		if got, want := reply(c, q), reply(s.Conn, q); got != want {
			t.Errorf("%s\n got %s\nwant %s", q, got, want)
		}
	}
}

const jsonRecordTypes = `CREATE TYPE pg_temp.jr_in AS (x int, y text);
	CREATE DOMAIN pg_temp.jr_small AS int CHECK (VALUE < 10); CREATE DOMAIN pg_temp.jr_must AS text NOT NULL;
	CREATE TYPE pg_temp.jr_c AS (a int, b text, c jr_in, d int[], e jr_in[], f jsonb, g json, h numeric(5,1), i date, j varchar(3), k bool, l jr_small, m bytea);
	CREATE TYPE pg_temp.jr_d AS (a int, n jr_must)`

// TestJSONRecords compares the functions that make records of json with
// PostgreSQL, on documents with random members.
func TestJSONRecords(t *testing.T) {
	s := oracle.Connect(t)
	d := open(t, t.TempDir())
	defer d.close()
	r := rand.New(rand.NewSource(1))
	values := []string{`1`, `"1"`, `null`, `true`, `"x"`, `"abc"`, `"abcd"`, `1.25`, `1e2`, `[]`, `[1,2]`, `["1",null,3]`, `[[1,2],[3,4]]`, `[[1],[2,3]]`, `[1,[2]]`, `{}`, `{"x":1}`, `{"y":[1, 2],"x":"7"}`, `[{"x":1},{"y":null}]`,
		`[{"x":1},5]`, `"(1,q)"`, `"{1,2}"`, `"{\"(1,q)\",\"(2,)\"}"`, `"2020-02-30"`, `"2020-02-29"`, `99999999999`, `"\u0041\n"`, ` [ 1 , {"a" : 2} ] `, `9`, `12`, `"\\x01ff"`, `[[]]`, `"t"`, `{"x":{"x":1}}`}
	doc := func() string {
		keys := "abcdefghijklm"
		var m []string
		for range r.Intn(5) {
			m = append(m, fmt.Sprintf(`"%c":%s`, keys[r.Intn(len(keys))], values[r.Intn(len(values))]))
		}
		return "{" + strings.Join(m, ", ") + "}"
	}
	defs := "a int, b text, c jr_in, d int[], e jr_in[], f jsonb, g json, h numeric(5,1), i date, j varchar(3), k bool, l jr_small, m bytea"
	var sqls []string
	for range 700 {
		x := oracle.Quote(doc())
		j := []string{"json", "jsonb"}[r.Intn(2)]
		base := []string{"NULL::jr_c", "ROW(5,'old',ROW(1,'z'),'{7}',NULL,'[]','{}',2.5,'2024-01-01','abc',true,3,'q')::jr_c"}[r.Intn(2)]
		switch r.Intn(5) {
		case 0:
			sqls = append(sqls, fmt.Sprintf("SELECT %s_populate_record(%s, %s)", j, base, x))
		case 1:
			sqls = append(sqls, fmt.Sprintf("SELECT * FROM %s_populate_record(%s, %s)", j, base, x))
		case 2:
			sqls = append(sqls, fmt.Sprintf("SELECT * FROM %s_populate_recordset(%s, %s)", j, base, "'["+x[strings.Index(x, "'")+1:len(x)-1]+",{\"a\":5}]'"))
		case 3:
			sqls = append(sqls, fmt.Sprintf("SELECT * FROM %s_to_record(%s) AS t(%s)", j, x, defs))
		case 4:
			sqls = append(sqls, fmt.Sprintf("SELECT t.* FROM (VALUES (%s::%s)) v(x), %s_to_recordset(%s_build_array(x, x)) AS t(%s)", x, j, j, j, defs))
		}
	}
	for i, q := range sqls {
		if strings.Contains(q, `E'`) && strings.Contains(q, "'[") { // the escapes of the literal that was cut open
			sqls[i] = strings.Replace(q, "'[", "E'[", 1)
		}
	}
	both(t, d, s, jsonRecordTypes, sqls)
}

// TestJSONRecordForms compares the places in which the functions can stand,
// and the errors of those in which they cannot.
func TestJSONRecordForms(t *testing.T) {
	s := oracle.Connect(t)
	d := open(t, t.TempDir())
	defer d.close()
	both(t, d, s, jsonRecordTypes, []string{
		`SELECT json_populate_record(NULL::jr_in, '5')`,
		`SELECT json_populate_record(NULL::jr_in, '[1]')`,
		`SELECT jsonb_populate_record(NULL::jr_in, '[1]')`,
		`SELECT json_populate_record(NULL::jr_in, NULL)`,
		`SELECT json_populate_record(ROW(1,'q')::jr_in, NULL)`,
		`SELECT json_populate_record(1, '{}')`,
		`SELECT json_populate_record(NULL::record, '{}')`,
		`SELECT json_populate_record(ROW(1,2), '{"f1":5}'), jsonb_populate_record(ROW(1,2), NULL)`,
		`SELECT json_populate_record(NULL::jr_in, '{"x":1,"x":2,"z":3}', true)`,
		`SELECT json_populate_record(base => NULL::jr_in, from_json => '{"x":1}')`,
		`SELECT (json_populate_record(NULL::jr_in, '{"x":1}')).x`,
		`SELECT (json_populate_record(NULL::jr_in, '{"x":1}')).*`,
		`SELECT json_populate_record(NULL::jr_d, '{"n":"x"}')`,
		`SELECT json_populate_record(NULL::jr_d, '{"a":1}')`,
		`SELECT jsonb_populate_record(NULL::jr_d, '{"n":null}')`,
		`SELECT json_to_record('{}')`,
		`SELECT jsonb_to_recordset('[]')`,
		`SELECT * FROM json_to_record('{}')`,
		`SELECT * FROM json_to_recordset('{}')`,
		`SELECT * FROM json_populate_recordset(ROW(1,2), '[]')`,
		`SELECT * FROM json_to_recordset('[1]') AS x(a int)`,
		`SELECT * FROM json_to_recordset('{}') AS x(a int)`,
		`SELECT * FROM json_to_recordset('5') AS x(a int)`,
		`SELECT * FROM jsonb_to_recordset('5') AS x(a int)`,
		`SELECT * FROM jsonb_to_recordset('{}') AS x(a int)`,
		`SELECT * FROM jsonb_to_recordset('[[]]') AS x(a int)`,
		`SELECT * FROM json_populate_recordset(NULL::jr_in, '[1]') AS x`,
		`SELECT * FROM json_populate_recordset(NULL::jr_in, '5') AS x`,
		`SELECT * FROM json_to_record('5') AS x(a int)`,
		`SELECT * FROM jsonb_to_record('[]') AS x(a int)`,
		`SELECT * FROM json_to_record(NULL) AS x(a int, b text)`,
		`SELECT * FROM json_to_recordset(NULL) AS x(a int, b text)`,
		`SELECT json_populate_recordset(ROW(1,2), '[{"f1":7},{"f2":null}]') AS x`,
		`SELECT json_populate_recordset(NULL::jr_in, '[{"x":7},{"y":"a"}]') AS x`,
		`SELECT (json_populate_recordset(NULL::jr_in, '[{"x":7},{"y":"a"}]')).y`,
		`SELECT (json_populate_recordset(NULL::jr_in, '[{"x":7},{"y":"a"}]')).*`,
		`SELECT json_populate_recordset(NULL::record, '[{"f1":7}]') AS x`,
		`SELECT * FROM json_populate_recordset(NULL::record, '[{"f1":7},{"f2":null}]') AS x(f1 int, f2 text)`,
		`SELECT * FROM json_populate_recordset(ROW(1,2), '[{"f1":7},{"f2":null}]') AS x(a int, b int)`,
		`SELECT * FROM json_populate_recordset(ROW(1,2), '[{"f1":7}]') AS x(a int, b text)`,
		`SELECT * FROM json_populate_recordset(ROW(1,2), '[{"f1":7}]') AS x(a int)`,
		`SELECT * FROM json_populate_record(ROW(1,2), '{"f1":7}') AS x(a int, b int)`,
		`SELECT * FROM json_populate_record(NULL::record, '{"a":[1],"b":{"x":5}}') AS x(a int[], b jr_in)`,
		`SELECT * FROM json_populate_recordset(NULL::jr_in, '[]') AS x(a int, b text)`,
		`SELECT * FROM json_array_elements('[]') AS x(a int)`,
		`SELECT * FROM generate_series(1, 2) AS x(a int)`,
		`SELECT * FROM json_each('{}') AS x(a int, b int)`,
		`SELECT * FROM upper('x') AS x(a text)`,
		`SELECT json_populate_record(NULL::jr_in, '{"a":"\ud800"}')`,
		`SELECT * FROM json_to_record('{"a":1}') AS x(a int, a int)`,
		`SELECT * FROM json_to_record('{"a":1}') AS x(a int[], b nosuch)`,
		`SELECT * FROM json_to_record('{"a":1}') AS x(a setof int)`,
		`SELECT * FROM ROWS FROM (json_to_recordset('[{"a":1},{"a":2}]') AS (a int, b text), generate_series(1, 3)) AS x(p, q, r)`,
		`SELECT x, y FROM json_to_recordset('[{"x":1},{"y":2}]') WITH ORDINALITY AS t(x int, y int)`,
		`SELECT * FROM unnest(ARRAY[ROW(1,'a')::jr_in, ROW(2,'b')::jr_in])`,
		`SELECT t.x, t.y FROM (SELECT 1) q, unnest(ARRAY[ROW(1,'a')::jr_in, NULL]) AS t`,
		`SELECT v.i, t.* FROM (VALUES (1, '{"a":1}'::jsonb), (2, '{"a":[1]}')) v(i, j) LEFT JOIN jsonb_to_record(j) AS t(a text) ON i = 2 ORDER BY 1`,
		`SELECT v.i, t.* FROM (VALUES (1, '[{"x":1},{"x":2}]'::jsonb), (2, '[]')) v(i, j) LEFT JOIN jsonb_populate_recordset(ROW(i,'q')::jr_in, j) AS t ON true ORDER BY 1, 2`,
	})
}

// TestJSONRecordsMaintained keeps a view over them.
func TestJSONRecordsMaintained(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	d.exec(c, `CREATE TYPE jr_in AS (x int, y text); CREATE TABLE docs (id int PRIMARY KEY, j jsonb)`)
	view := `SELECT id, t.x, (p).y AS y, (p).x AS px FROM (SELECT id, j, jsonb_populate_record(ROW(0, 'none')::jr_in, j -> 0) AS p FROM docs) d, jsonb_to_recordset(j) AS t(x int[])`
	d.exec(c, "CREATE MATERIALIZED VIEW v AS "+view)
	for _, q := range []string{`INSERT INTO docs VALUES (1, '[{"x":1},{"x":[2,3]}]'), (2, '[]'), (3, '[{"y":"q"}]')`, `UPDATE docs SET j = '[{"y":"r","x":null}]' WHERE id = 3`, `DELETE FROM docs WHERE id = 1`} {
		d.exec(c, q)
		q, m := reply(c, view), reply(c, "TABLE v")
		if q != m && !sameRows(q, m) {
			t.Errorf("the view has %s, its query gives %s", m, q)
		}
	}
	if got := reply(c, "TABLE v"); got != "3|NULL|r|NULL" {
		t.Errorf("got %s", got)
	}
}
