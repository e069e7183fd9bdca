package expr

import (
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/types"
)

var docTexts = []string{"null", "true", "1", "1.50", `"a"`, `""`, "[]", "{}", "[1,2,3]", `["a","b",1,null]`, `{"a":1}`, `{"a":null,"b":[1,{"c":2}],"a b":"x"}`, `[[1,[2]],{"a":{"b":{"c":"deep"}}}]`,
	`{"a":{"b":[10,20,30]},"n":1.5e2}`, `{"":1,"x":{"":2}}`, `{"b":1,"a":2}`, `[{"a":1},{"a":2,"b":null}]`, `{"a":1.0}`, `[1,[1,2],1.0]`, `"x\ny"`, `{"k":"ä\u20ac","z":[true,false,null]}`, `[null]`, `-12`}

var (
	docs   = argument{types.JSONB, docTexts}
	jsons  = argument{types.JSON, append([]string{` { "a" : 1 , "b" : [ 1 , 2 ] } `, `{"a":1,"a":2}`, `[ ]`, "{\n}"}, docTexts...)}
	keys   = argument{types.Text, []string{"a", "b", "c", "", "n", "0", "1", "-1", "a b", "x", " 1"}}
	places = argument{types.Int4, []string{"0", "1", "2", "-1", "-2", "5", "-5", "2147483647", "-2147483648"}}
	paths  = argument{types.Of(types.OIDTextArray), []string{"{}", "{a}", "{b}", "{a,b}", "{b,1,c}", "{1}", "{0}", "{-1}", "{1,a}", "{0,1}", "{a,b,1}", "{NULL}", "{a,NULL}", "{x,y}", "{10}", "{-10}", "{b,x}", "{{a,b}}", "{b,-1}", "{b,5}", "{2,b}", `{""}`, "{1,a,b,c}"}}
	flags2 = argument{types.Bool, []string{"t", "f"}}
)

func TestJSONBFunctions(t *testing.T) {
	fams := []family{
		{"->", true, []argument{docs, keys}}, {"->>", true, []argument{docs, keys}}, {"->", true, []argument{docs, places}}, {"->>", true, []argument{docs, places}},
		{"#>", true, []argument{docs, paths}}, {"#>>", true, []argument{docs, paths}}, {"@>", true, []argument{docs, docs}}, {"<@", true, []argument{docs, docs}},
		{"?", true, []argument{docs, keys}}, {"?|", true, []argument{docs, paths}}, {"?&", true, []argument{docs, paths}}, {"||", true, []argument{docs, docs}},
		{"-", true, []argument{docs, keys}}, {"-", true, []argument{docs, places}}, {"-", true, []argument{docs, paths}}, {"#-", true, []argument{docs, paths}},
		{"jsonb_typeof", false, []argument{docs}}, {"jsonb_array_length", false, []argument{docs}}, {"jsonb_extract_path", false, []argument{docs, keys, keys}}, {"jsonb_extract_path_text", false, []argument{docs, keys}},
		{"jsonb_set", false, []argument{docs, paths, docs}}, {"jsonb_set", false, []argument{docs, paths, docs, flags2}}, {"jsonb_insert", false, []argument{docs, paths, docs}}, {"jsonb_insert", false, []argument{docs, paths, docs, flags2}},
		{"jsonb_set_lax", false, []argument{docs, paths, docs, flags2, {types.Text, []string{"use_json_null", "delete_key", "return_target", "raise_exception", "x"}}}}, {"jsonb_set_lax", false, []argument{docs, paths, docs}},
		{"jsonb_strip_nulls", false, []argument{docs}}, {"jsonb_pretty", false, []argument{docs}},
	}
	testFamilies(t, 150, fams)
	s := oracle.Connect(t)
	var terms []term
	for _, d := range docTexts {
		for _, typ := range []types.Type{types.Bool, types.Numeric, types.Int2, types.Int4, types.Int8, types.Float4, types.Float8, types.Text, types.JSON} {
			arg := literalTerm(types.JSONB, d, true)
			e, err := Coerce(arg.e, typ, CastExplicit, 0)
			terms = append(terms, term{sql: arg.sql + "::" + typ.String(), e: e, err: err})
		}
	}
	compareTerms(t, s, testContext(), terms)
}
