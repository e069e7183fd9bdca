package expr

import (
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/types"
)

func TestJSONPaths(t *testing.T) {
	r := testRand(t)
	paths := []string{"$", "$.a", "$.a[*]", "strict $.a", "$.** ? (@ > 1)", "$.a ? (@.b == 1)", "$[0 to last]", "$[last]", "$.*", "$.keyvalue().key", "$.a.type()", "$.a.size()", `$.t.datetime()`, `$.t.datetime().type()`, `$.t.datetime("YYYY-MM-DD")`,
		`$.d[*].datetime()`, `$.d[*].datetime() ? (@ < "2017-03-10".datetime())`, `$.d[*].datetime() ? (@ == "12:00:00".datetime())`, `$.d[*].datetime() ? (@ >= "2017-03-10T12:00:00+00".datetime())`, `$.d[*].datetime("HH24:MI:SS")`, `$.d[*] ? (@ like_regex "^2017")`, `$.d[*].datetime().type()`,
		"$.a + 1", "$.a / 0", "-$.a", "$.n.double()", "$.n.floor()", "$.n[*].ceiling()", "strict $.n[*].abs()", "$.v == $x", "$y", "$x[*] ? (@ > 1)", "($.a == 1).type()", "$.a == 1 || $.zz > 3", "strict $.zz == 1", "exists($.a)", "strict exists($.zz)", "($.zz == 1) is unknown", "$.a.b.c[1 to 2].double()", "$ ? (@.a > 1 && @.b < 3)", "$.*.keyvalue()", "$.**.keyvalue()", "$.keyvalue().value.keyvalue()", "$.keyvalue().keyvalue()", "$x.keyvalue()", "$.** ? (@.type() == \"object\").keyvalue().id"}
	for range 1500 {
		paths = append(paths, oracle.JSONPath(r))
	}
	docs := []string{`{"a":1,"b":2}`, `{"a":[1,2,3],"b":{"c":"x"}}`, `[1,2.50,"xa",null,true,{"a":1}]`, `{"a":{"b":[{"c":[1,"2",3]},{"c":7}]}}`, `"xyz"`, `5`, `null`, `true`, `[]`, `{}`, `[[1,2],[3,[4]]]`, `{"a":"1.5","b":null,"k y":[true,false]}`, `[{"a":5},{"a":"x"},{"b":{"a":9}}]`,
		`{"n":[1.5,-2.5,"3e2","x",1e400],"v":7}`, `{"t":"2017-03-10T12:34:56+05:30"}`, `{"t":"2017-03-10"}`, `{"d":["2017-03-10","12:00:00","12:00:00+01","2017-03-10 12:00:00","2017-03-10T12:00:00.25+02:00","x","2017-13-01"]}`, `{"a":{"b":1},"c":[{"d":-12345.678},{"e":1e-200},{"f":"xyz","g":{}}],"long":{"h":null,"i":{"j":123456789012345678901234567890}}}`}
	vars := []string{`{}`, `{"x":[1,2],"v":"x","w x":3}`, `{"v":2,"x":7}`, `[1]`, `{"x":{"q":{"r":1}}}`}
	target, path, vs, silent := argument{types.JSONB, docs}, argument{types.Of(types.OIDJSONPath), paths}, argument{types.JSONB, vars}, argument{types.Bool, []string{"t", "f"}}
	all := []argument{target, path, vs, silent}
	testFamilies(t, 4000, []family{
		{"@?", true, all[:2]}, {"@@", true, all[:2]},
		{"jsonb_path_exists", false, all[:2]}, {"jsonb_path_exists", false, all}, {"jsonb_path_match", false, all},
		{"jsonb_path_query_array", false, all}, {"jsonb_path_query_first", false, all}, {"jsonb_path_query_array_tz", false, all},
	})
}

func TestJSONPathQuery(t *testing.T) {
	s := oracle.Connect(t)
	var exprs, got []string
	for _, path := range []string{"$.a[*]", "$.** ? (@ > 1)", "strict $.b", "strict $.zz", "$x"} {
		for _, silent := range []string{"t", "f"} {
			args := []term{literalTerm(types.JSONB, `{"a":[1,2,"x"],"b":{"c":3}}`, true), literalTerm(types.Of(types.OIDJSONPath), path, true), literalTerm(types.JSONB, `{"x":5}`, true), literalTerm(types.Bool, silent, true)}
			var es []Expr
			var sqls []string
			for _, a := range args {
				es, sqls = append(es, a.e), append(sqls, a.sql)
			}
			for _, name := range []string{"jsonb_path_query", "jsonb_path_query_tz"} {
				exprs = append(exprs, "select coalesce(string_agg(x::text, ';'), 'none') from "+name+"("+strings.Join(sqls, ", ")+") x")
				got = append(got, tableText(t, name, es...))
			}
		}
	}
	for i, want := range s.Eval(t, exprs) {
		if w := want.String(); got[i] != w && !(got[i] == "" && w == "none") {
			t.Errorf("%s\n got %s\nwant %s", exprs[i], got[i], w)
		}
	}
}
