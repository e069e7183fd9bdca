package expr

import (
	"testing"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/pgerror"
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

func TestJSONTextFunctions(t *testing.T) {
	bad := argument{types.JSON, []string{`{"a":"\u0000"}`, `{"a":1,"b":"\ud83d"}`, `["\u00e4","\ud83d\ude00"]`, `{"\u0061":5}`, `"\u0041"`, `{"a":"\\u0000"}`}}
	any := argument{types.JSON, append(append([]string{}, jsons.texts...), bad.texts...)}
	testFamilies(t, 150, []family{
		{"->", true, []argument{any, keys}}, {"->>", true, []argument{any, keys}}, {"->", true, []argument{any, places}}, {"->>", true, []argument{any, places}},
		{"#>", true, []argument{any, paths}}, {"#>>", true, []argument{any, paths}}, {"json_typeof", false, []argument{any}}, {"json_array_length", false, []argument{any}},
		{"json_strip_nulls", false, []argument{any}}, {"json_extract_path", false, []argument{any, keys, keys}}, {"json_extract_path_text", false, []argument{any, keys}},
	})
}

func TestMakeJSON(t *testing.T) {
	var fams []family
	for o, texts := range literals {
		if o == types.OIDUnknown {
			continue
		}
		a := argument{types.Of(o), texts}
		fams = append(fams, family{"to_json", false, []argument{a}}, family{"to_jsonb", false, []argument{a}},
			family{"json_build_array", false, []argument{a, a}}, family{"jsonb_build_array", false, []argument{a, words}},
			family{"json_build_object", false, []argument{a, words, words, a}}, family{"jsonb_build_object", false, []argument{a, words, words, a}})
		if isTrueArray(o) {
			fams = append(fams, family{"array_to_json", false, []argument{a}}, family{"array_to_json", false, []argument{a, flags2}})
		}
	}
	list := argument{types.Of(types.OIDTextArray), []string{"{}", "{a,b}", "{a,b,c}", "{a,NULL}", "{NULL,a}", "{{a,1},{b,2}}", "{{a,1,x},{b,2,y}}", "{{{a}}}", "{a,1,a,2}"}}
	fams = append(fams, family{"json_object", false, []argument{list}}, family{"json_object", false, []argument{list, list}}, family{"jsonb_object", false, []argument{list}}, family{"jsonb_object", false, []argument{list, list}},
		family{"json_build_object", false, nil}, family{"jsonb_build_array", false, nil}, family{"json_build_object", false, []argument{words}})
	testFamilies(t, 25, fams)
}

// TestJSONTables compares the set-returning functions.
func TestJSONTables(t *testing.T) {
	s := oracle.Connect(t)
	var exprs []string
	var got []string
	run := func(name string, typ types.Type, d string) {
		arg := literalTerm(typ, d, true)
		exprs = append(exprs, "select coalesce(string_agg(x::text, ';'), 'none') from "+name+"("+arg.sql+") x")
		got = append(got, tableText(t, name, arg.e))
	}
	for _, d := range append([]string{`{"a":"\u00e4","b":{"c":[1]},"d":null,"a":2}`}, docTexts...) {
		for _, name := range []string{"each", "each_text", "array_elements", "array_elements_text", "object_keys"} {
			run("json_"+name, types.JSON, d)
			run("jsonb_"+name, types.JSONB, d)
		}
	}
	for i, want := range s.Eval(t, exprs) {
		if got[i] != want.String() {
			t.Errorf("%s\n got %s\nwant %s", exprs[i], got[i], want)
		}
	}
}

// TestJSONAggregates aggregates the elements of arrays.
func TestJSONAggregates(t *testing.T) {
	s := oracle.Connect(t)
	var exprs []string
	var got []string
	for o, texts := range literals {
		if !isTrueArray(o) {
			continue
		}
		for _, text := range texts {
			arr := literalTerm(types.Of(o), text, true)
			c, err := EvalConst(arr.e, testContext())
			if err != nil {
				t.Fatal(err)
			}
			a := types.ReadArray(c.Val.Bytes(0))
			b := columnar.NewBuilder(a.Kind(), a.N)
			a.AppendElems(b, 0, a.N)
			elems := b.Build()
			for _, name := range []string{"json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg"} {
				col := &Column{Typ: types.Of(a.Elem)}
				args, vals, call := []Expr{col}, []*columnar.Vec{elems}, name+"(x)"
				if len(name) > 10 {
					args, vals, call = []Expr{col, col}, []*columnar.Vec{elems, elems}, name+"(x, x)"
				}
				fn, es, typ, err := ResolveAggregate(name, args, CallOptions{})
				if err != nil {
					t.Fatal(err)
				}
				ac := AggregateCall{Fn: fn, Typ: typ}
				for _, e := range es {
					ac.Args = append(ac.Args, e.Type())
				}
				out := columnar.NewBuilder(typ.Kind(), 1)
				res := "NULL"
				if err := fn.Collect(NewEval(testContext()), &ac, vals, 0, a.N, out); err != nil {
					res = "ERROR " + pgerror.As(err).Code + ": " + err.Error()
				} else if v := out.Build(); !v.Null(0) {
					res = string(types.AppendText(nil, typ, v, 0, nil))
				}
				exprs = append(exprs, "select "+call+" from unnest("+arr.sql+") x")
				got = append(got, res)
			}
		}
	}
	for i, want := range s.Eval(t, exprs) {
		if got[i] != want.String() {
			t.Errorf("%s\n got %s\nwant %s", exprs[i], got[i], want)
		}
	}
}
