package coord_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamdb/streamdb/internal/oracle"
)

// reply is the text of a query of one value, NULL, or its error.
func reply(c *pgx.Conn, sql string) string {
	rows, err := c.Query(context.Background(), sql, pgx.QueryExecModeSimpleProtocol)
	var out []string
	if err == nil {
		for rows.Next() {
			var vals []string
			for _, v := range rows.RawValues() {
				if v == nil {
					vals = append(vals, "NULL")
				} else {
					vals = append(vals, string(v))
				}
			}
			out = append(out, strings.Join(vals, "|"))
		}
		rows.Close()
		err = rows.Err()
	}
	if err == nil {
		return strings.Join(out, "; ")
	}
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return err.Error()
	}
	s := "ERROR " + e.Code + ": " + e.Message
	if e.Detail != "" {
		s += " DETAIL " + e.Detail
	}
	if e.Hint != "" {
		s += " HINT " + e.Hint
	}
	if e.Position != 0 {
		s += fmt.Sprintf(" AT %d", e.Position)
	}
	return s
}

var sqlJSONDocs = []string{
	`{"a":1,"b":2}`, `{"a":[1,2,3],"b":{"c":"x"}}`, `[1,2.50,"xa",null,true,{"a":1}]`, `{"a":{"b":[{"c":[1,"2",3]},{"c":7}]}}`, `"xyz"`, `5`, `null`, `true`,
	`[]`, `{}`, `[[1,2],[3,[4]]]`, `{"a":"1.5","b":null,"k y":[true,false]}`, `[{"a":5},{"a":"x"},{"b":{"a":9}}]`, `{"a":{"b":1},"c":[{"d":-12345.678},{"f":"xyz","g":{}}]}`,
}

// TestSQLJSONQuery derives what the query functions give from what PostgreSQL's
// jsonb_path_query_array gives, for random paths, ad hoc and maintained. The
// paths are rows of a table, beside the documents.
func TestSQLJSONQuery(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(1))
	var sqls, insert []string
	type pair struct{ doc, path string }
	var pairs []pair
	for len(pairs) < 600 {
		p := pair{sqlJSONDocs[r.Intn(len(sqlJSONDocs))], oracle.JSONPath(r)}
		if strings.Contains(p.path, "datetime") || strings.Contains(p.path, "keyvalue") || strings.Contains(p.path, "**") {
			continue
		}
		pairs = append(pairs, p)
		sqls = append(sqls, fmt.Sprintf("jsonb_path_query_array_tz(%s, %s, '{\"v\":\"x\",\"w x\":3}')", oracle.Quote(p.doc), oracle.Quote(p.path)))
	}
	want := s.Eval(t, sqls)
	for i, q := range sqls {
		sqls[i] = "coalesce(" + strings.TrimSuffix(strings.Replace(q, "query_array", "exists", 1), ")") + ", true), false)"
	}
	exists := s.Eval(t, sqls)
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	d.exec(c, "CREATE TABLE docs (id int PRIMARY KEY, doc jsonb, path jsonpath)")
	view := `SELECT id, JSON_QUERY(doc, path PASSING 'x' AS v, 3 AS "w x" WITH WRAPPER EMPTY ARRAY ON EMPTY) AS q, JSON_QUERY(doc, path PASSING 'x' AS v, 3 AS "w x" WITH CONDITIONAL WRAPPER) AS c,
		JSON_QUERY(doc, path PASSING 'x' AS v, 3 AS "w x" RETURNING text OMIT QUOTES DEFAULT 'none' ON EMPTY DEFAULT 'bad' ON ERROR) AS o,
		JSON_VALUE(doc, path PASSING 'x' AS v, 3 AS "w x") AS v, JSON_VALUE(doc, path PASSING 'x' AS v, 3 AS "w x" RETURNING int DEFAULT -1 ON EMPTY DEFAULT -2 ON ERROR) AS i,
		JSON_EXISTS(doc, path PASSING 'x' AS v, 3 AS "w x") AS e FROM docs`
	d.exec(c, "CREATE MATERIALIZED VIEW mv AS "+view)
	valid := map[int]bool{}
	for i, p := range pairs {
		if e := want[i]; e.Code == "" || e.Code[:4] == "2203" {
			insert = append(insert, fmt.Sprintf("(%d, %s, %s)", i, oracle.Quote(p.doc), oracle.Quote(p.path)))
			valid[i] = true
		}
		got := reply(c, fmt.Sprintf(`SELECT JSON_QUERY(%s, %s PASSING 'x' AS v, 3 AS "w x" WITH WRAPPER EMPTY ARRAY ON EMPTY ERROR ON ERROR)`, oracle.Quote(p.doc), oracle.Quote(p.path)))
		got, _, _ = strings.Cut(got, " HINT ")
		got, _, _ = strings.Cut(got, " DETAIL ")
		if got, _, _ = strings.Cut(got, " AT "); got != want[i].String() {
			t.Errorf("%s in %s\n got %s\nwant %s", p.path, p.doc, got, want[i])
		}
	}
	if len(valid) < 300 {
		t.Fatalf("only %d paths are valid", len(valid))
	}
	d.exec(c, "INSERT INTO docs VALUES "+strings.Join(insert, ", "))
	d.exec(c, "DELETE FROM docs WHERE id % 7 = 3")
	d.exec(c, "UPDATE docs SET doc = doc WHERE id % 5 = 2")
	for i, p := range pairs {
		if !valid[i] || i%7 == 3 {
			continue
		}
		if got, w := reply(c, fmt.Sprintf("SELECT q, c, o, v, i, e FROM mv WHERE id = %d", i)), derived(t, want[i])+"|"+exists[i].Text[:1]; got != w {
			t.Errorf("%s in %s\n got %s\nwant %s", p.path, p.doc, got, w)
		}
	}
	if a, b := d.text(c, "SELECT * FROM mv ORDER BY id"), d.text(c, view+" ORDER BY id"); a != b {
		t.Error("the view and its query differ")
	}
}

// derived is what the view has for a row, from the array of all that its path finds.
func derived(t *testing.T, array oracle.Result) string {
	if array.Code != "" {
		return "NULL|NULL|bad|NULL|-2"
	}
	var items []json.RawMessage
	if err := json.Unmarshal([]byte(array.Text), &items); err != nil {
		t.Fatal(err)
	}
	switch len(items) {
	case 0:
		return "[]|NULL|none|NULL|-1"
	case 1:
	default:
		return array.Text + "|" + array.Text + "|bad|NULL|-2"
	}
	one := strings.TrimSuffix(strings.TrimPrefix(array.Text, "["), "]")
	omit, value, number := one, one, "-2"
	switch one[0] {
	case '"':
		if err := json.Unmarshal([]byte(one), &omit); err != nil {
			t.Fatal(err)
		}
		value = omit
	case '[', '{':
		value = "NULL"
	case 'n':
		value, number = "NULL", "NULL"
	case 't', 'f':
		value = one[:1]
	}
	var n int32
	if _, err := fmt.Sscanf(value, "%d", &n); err == nil && fmt.Sprint(n) == value {
		number = value
	}
	return array.Text + "|" + one + "|" + omit + "|" + value + "|" + number
}

// TestSQLJSONConstructors compares constructors with the functions of
// PostgreSQL that make the same: each pair on both.
func TestSQLJSONConstructors(t *testing.T) {
	s := oracle.Connect(t)
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	d.exec(c, "SET timezone = 'UTC'")
	values := []string{"1", "-2.50", "'x\"y'::text", "NULL::int", "true", "date '2020-02-29'", "timestamptz '2020-02-29 12:00:00.5+01'", "ARRAY[1,2]", "ARRAY[ARRAY['a'],ARRAY['b']]", "'[1, 2]'::json", "'{\"b\":1,\"a\":2}'::jsonb",
		"ROW(1,'x')", "interval '1 day'", "1e400", "'NaN'::float8", "'\\x01ff'::bytea", "'5f0c3e1a-0000-0000-0000-000000000001'::uuid"}
	type pair struct{ ours, theirs string }
	var pairs []pair
	for _, v := range values {
		notNull := "CASE WHEN (" + v + ") IS NOT NULL THEN '[' || to_json(" + v + ")::text || ']' ELSE '[]' END"
		pairs = append(pairs,
			pair{"JSON_OBJECT('k': " + v + " RETURNING json)", "json_build_object('k', " + v + ")"},
			pair{"JSON_OBJECT('k': " + v + ", 'j' VALUE 2 RETURNING jsonb)", "jsonb_build_object('k', " + v + ", 'j', 2)"},
			pair{"JSON_ARRAY(" + v + " RETURNING json)", notNull},
			pair{"JSON_ARRAY(" + v + ", 5 NULL ON NULL RETURNING json)", "json_build_array(" + v + ", 5)"},
			pair{"JSON_ARRAY(" + v + " NULL ON NULL RETURNING jsonb)", "jsonb_build_array(" + v + ")"},
			pair{"JSON_SCALAR(" + v + ")", "to_json(" + v + ")"},
			pair{"JSON_SERIALIZE(JSON_ARRAY(" + v + " NULL ON NULL RETURNING jsonb))", "jsonb_build_array(" + v + ")"},
			pair{"(SELECT JSON_ARRAYAGG(x ORDER BY n NULL ON NULL RETURNING jsonb) FROM (VALUES (1, " + v + "), (2, NULL)) t(n, x))", "(SELECT jsonb_agg(x ORDER BY n) FROM (VALUES (1, " + v + "), (2, NULL)) t(n, x))"},
			pair{"(SELECT JSON_ARRAYAGG(x ORDER BY n DESC RETURNING json) FROM (VALUES (1, " + v + "), (2, NULL), (3, " + v + ")) t(n, x))",
				"(SELECT coalesce(json_agg(x ORDER BY n DESC) FILTER (WHERE NOT x IS NULL), '[]') FROM (VALUES (1, " + v + "), (2, NULL), (3, " + v + ")) t(n, x))"},
			pair{"(SELECT JSON_OBJECTAGG(n: x RETURNING json) FROM (VALUES (1, " + v + "), (2, NULL)) t(n, x))", "(SELECT json_object_agg(n, x) FROM (VALUES (1, " + v + "), (2, NULL)) t(n, x))"},
			pair{"(SELECT JSON_OBJECTAGG(n: x ABSENT ON NULL WITH UNIQUE KEYS RETURNING jsonb) FROM (VALUES (1, " + v + "), (2, NULL)) t(n, x))",
				"(SELECT coalesce(jsonb_object_agg(n, x) FILTER (WHERE NOT x IS NULL), '{}') FROM (VALUES (1, " + v + "), (2, NULL)) t(n, x))"})
	}
	texts := []string{`{"a":1}`, `[1, 2]`, `5`, `"x"`, `null`, ``, `{`, `[1,]`, `{"a":1,"a":2}`, `nul`, ` { "b" : [1] } `, `"\u0000"`, `"\ud800"`, `tru`, `01`, `1e5`, "{\"a\":\n1}"}
	for _, x := range texts {
		q := oracle.Quote(x)
		pairs = append(pairs, pair{"JSON(" + q + ")", q + "::json"}, pair{"JSON_SERIALIZE(" + q + ")", q + "::json"})
	}
	var sqls []string
	for _, p := range pairs {
		sqls = append(sqls, p.theirs)
	}
	want := s.Eval(t, sqls)
	plain := func(s string) string {
		for _, cut := range []string{" DETAIL ", " HINT ", " AT "} {
			s, _, _ = strings.Cut(s, cut)
		}
		return s
	}
	for i, p := range pairs {
		if got := plain(reply(c, "SELECT ("+p.ours+")::text")); got != want[i].String() {
			t.Errorf("%s\n got %s\nwant %s", p.ours, got, want[i])
		}
	}
	// IS JSON holds for what the cast accepts.
	sqls = nil
	for _, x := range texts {
		sqls = append(sqls, "json_typeof("+oracle.Quote(x)+"::json)")
	}
	d.exec(c, "CREATE TABLE texts (x text); CREATE MATERIALIZED VIEW kinds AS SELECT x, x IS JSON a, x IS JSON OBJECT b, x IS JSON ARRAY c, x IS JSON SCALAR d, x IS NOT JSON VALUE e FROM texts")
	for i, kind := range s.Eval(t, sqls) {
		b := func(v bool) string { return map[bool]string{true: "t", false: "f"}[v] }
		ok := kind.Code == ""
		w := strings.Join([]string{b(ok), b(kind.Text == "object"), b(kind.Text == "array"), b(ok && kind.Text != "object" && kind.Text != "array"), b(!ok)}, "|")
		d.exec(c, "DELETE FROM texts; INSERT INTO texts VALUES ("+oracle.Quote(texts[i])+")")
		if got := reply(c, "SELECT x IS JSON, x IS JSON OBJECT, x IS JSON ARRAY, x IS JSON SCALAR, x IS NOT JSON FROM texts"); got != w {
			t.Errorf("%s IS JSON\n got %s\nwant %s", texts[i], got, w)
		}
		if got := reply(c, "SELECT * FROM kinds"); got != texts[i]+"|"+w {
			t.Errorf("maintained: %s IS JSON\n got %s\nwant %s", texts[i], got, w)
		}
	}
}
