package expr

import (
	"testing"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// TestOwnFunctions calls functions that PostgreSQL 15 does not have, and compares what
// they give with their definition; an error is its SQLSTATE.
func TestOwnFunctions(t *testing.T) {
	ints, texts, nums := types.Of(types.OIDInt4Array), types.Of(types.OIDTextArray), types.Of(types.OIDNumericArray)
	type arg struct {
		typ types.Type
		val string
	}
	for _, c := range []struct {
		name string
		args []arg
		want string
	}{
		{"inet_aton", []arg{{types.Text, "10.0.5.9"}}, "167773449"},
		{"inet_aton", []arg{{types.Text, "10.0.5"}}, "22P02"},
		{"inet_aton", []arg{{types.Text, "::1"}}, "22P02"},
		{"inet_ntoa", []arg{{types.Int8, "4294967295"}}, "255.255.255.255"},
		{"inet_ntoa", []arg{{types.Int8, "4294967296"}}, "22003"},
		{"url_encode", []arg{{types.Text, "a b&ü/~"}}, "a%20b%26%C3%BC%2F~"},
		{"url_decode", []arg{{types.Text, "a%20b%26%c3%BC%2F~+"}}, "a b&ü/~+"},
		{"url_decode", []arg{{types.Text, "%4"}}, "22P02"},
		{"url_decode", []arg{{types.Text, "%ff"}}, "22021"},
		{"url_decode", []arg{{types.Text, "a%00"}}, "22021"},
		{"secure_compare", []arg{{types.Text, "ab"}, {types.Text, "ab"}}, "t"},
		{"secure_compare", []arg{{types.Text, "ab"}, {types.Text, "abc"}}, "f"},
		{"array_sort", []arg{{ints, "{3,NULL,1,2}"}}, "{1,2,3,NULL}"},
		{"array_sort", []arg{{ints, "{3,NULL,1,2}"}, {types.Bool, "t"}}, "{NULL,3,2,1}"},
		{"array_sort", []arg{{ints, "{3,NULL,1,2}"}, {types.Bool, "t"}, {types.Bool, "f"}}, "{3,2,1,NULL}"},
		{"array_sort", []arg{{ints, "{3,NULL,1}"}, {types.Bool, "f"}, {types.Bool, "t"}}, "{NULL,1,3}"},
		{"array_sort", []arg{{ints, "{{2,1},{1,9},{1,2}}"}}, "{{1,2},{1,9},{2,1}}"},
		{"array_sort", []arg{{ints, "{}"}}, "{}"},
		{"array_reverse", []arg{{ints, "{1,NULL,3}"}}, "{3,NULL,1}"},
		{"array_reverse", []arg{{ints, "{{1,2},{3,4}}"}}, "{{3,4},{1,2}}"},
		{"array_distinct", []arg{{nums, "{1.0,2,1,NULL,NULL}"}}, "{1.0,2,NULL}"},
		{"array_distinct", []arg{{ints, "{{1,2},{1,2},{2,1}}"}}, "{{1,2},{2,1}}"},
		{"array_except", []arg{{ints, "{1,2,2,3,NULL}"}, {ints, "{3,NULL}"}}, "{1,2}"},
		{"array_except", []arg{{ints, "{1}"}, {ints, "{1}"}}, "{}"},
		{"array_intersect", []arg{{ints, "{1,2,2,3}"}, {ints, "{3,2}"}}, "{2,3}"},
		{"array_union", []arg{{texts, "{a,b,a}"}, {texts, "{c,b,c}"}}, "{a,b,c}"},
		{"array_union", []arg{{texts, "{}"}, {texts, "{c,b,c}"}}, "{c,b}"},
		{"array_flatten", []arg{{ints, "{{1,2},{3,4}}"}}, "{1,2,3,4}"},
		{"array_flatten", []arg{{ints, "{{{1},{2}},{{3},{4}}}"}}, "{{1},{2},{3},{4}}"},
		{"array_min", []arg{{texts, "{b,NULL,a}"}}, "a"},
		{"array_max", []arg{{nums, "{1,NULL,3.5,2}"}}, "3.5"},
		{"array_max", []arg{{ints, "{NULL}"}}, "NULL"},
		{"array_sum", []arg{{ints, "{2147483647,NULL,1}"}}, "2147483648"},
		{"array_sum", []arg{{nums, "{1.5,2.25}"}}, "3.75"},
		{"array_sum", []arg{{types.Of(types.OIDIntervalArray), "{4:00,3 days}"}}, "3 days 04:00:00"},
		{"array_sum", []arg{{ints, "{}"}}, "NULL"},
		{"array_length", []arg{{ints, "{{1,2},{3,4},{5,6}}"}}, "3"},
		{"array_length", []arg{{ints, "{}"}}, "0"},
		{"array_join", []arg{{ints, "{1,NULL,3}"}, {types.Text, "-"}, {types.Text, "?"}}, "1-?-3"},
		{"array_contains", []arg{{ints, "{1,2,3}"}, {ints, "{3,1}"}}, "t"},
		{"array_contained", []arg{{ints, "{1,4}"}, {ints, "{3,1}"}}, "f"},
		{"array_overlaps", []arg{{ints, "{1,4}"}, {ints, "{3,1}"}}, "t"},
		{"gamma", []arg{{types.Float8, "5"}}, "24"},
		{"gamma", []arg{{types.Float8, "-1"}}, "22003"},
		{"gamma", []arg{{types.Float8, "172"}}, "22003"},
		{"gamma", []arg{{types.Float8, "-Infinity"}}, "22003"},
		{"gamma", []arg{{types.Float8, "NaN"}}, "NaN"},
		{"lgamma", []arg{{types.Float8, "1"}}, "0"},
		{"lgamma", []arg{{types.Float8, "0"}}, "22003"},
		{"lgamma", []arg{{types.Float8, "-Infinity"}}, "Infinity"},
		{"coth", []arg{{types.Float8, "Infinity"}}, "1"},
		{"crc32", []arg{{types.Bytea, "The quick brown fox jumps over the lazy dog"}}, "1095738169"},
		{"crc32c", []arg{{types.Bytea, "123456789"}}, "3808858755"},
		{"reverse", []arg{{types.Bytea, `\x123456`}}, `\x563412`},
	} {
		var args []Expr
		for _, a := range c.args {
			e, err := Coerce(UnknownConst(a.val, 0), a.typ, CastExplicit, 0)
			if err != nil {
				t.Fatal(err)
			}
			args = append(args, e)
		}
		call, err := NewCall(c.name, args, CallOptions{})
		got := ""
		if err == nil {
			var k *Const
			if k, err = EvalConst(call, testContext()); err == nil {
				if got = "NULL"; !k.Val.Null(0) {
					got = string(types.AppendText(nil, k.Typ, k.Val, 0, nil))
				}
			}
		}
		if err != nil {
			got = pgerror.As(err).Code
		}
		if got != c.want {
			t.Errorf("%s%v = %s (%v), want %s", c.name, c.args, got, err, c.want)
		}
	}
}
