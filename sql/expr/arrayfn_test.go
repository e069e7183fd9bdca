package expr

import (
	"testing"

	"github.com/streamdb/streamdb/sql/types"
)

func TestArrayFunctions(t *testing.T) {
	ints := argument{types.Of(types.OIDInt4Array), []string{"{}", "{1}", "{1,2,3}", "{NULL}", "{1,NULL,2}", "[0:2]={1,2,3}", "[5:5]={7}", "{{1,2},{3,4}}", "{{1,2}}", "{{5,6,7}}", "[2:3][0:1]={{1,2},{3,4}}", "{{{1}}}", "{3,1,2,1}", "[-2:-1]={1,2}", "{2,2,2}"}}
	texts := argument{types.Of(types.OIDTextArray), []string{"{}", "{a,b}", "{NULL,a}", `{"x y","",NULL}`, "{{a,b},{c,d}}", "[0:1]={a,b}"}}
	nums := argument{types.Of(types.OIDNumericArray), []string{"{1.0,2}", "{1,2.00}", "{NaN}", "{}", "{1}"}}
	num := argument{types.Numeric, []string{"1", "1.00", "2", "NaN"}}
	elem := argument{types.Int4, []string{"1", "2", "3", "7", "0", "-1", "100"}}
	small := argument{types.Int4, []string{"-1", "0", "1", "2", "3", "4", "2147483647"}}
	word := argument{types.Text, []string{"a", "b", "", "x y", ",", "NULL"}}
	testFamilies(t, 80, []family{
		{"array_append", false, []argument{ints, elem}}, {"array_prepend", false, []argument{elem, ints}}, {"array_cat", false, []argument{ints, ints}},
		{"||", true, []argument{ints, ints}}, {"||", true, []argument{ints, elem}}, {"||", true, []argument{elem, ints}}, {"||", true, []argument{texts, texts}}, {"||", true, []argument{nums, ints}},
		{"array_remove", false, []argument{ints, elem}}, {"array_replace", false, []argument{ints, elem, elem}}, {"array_position", false, []argument{ints, elem}}, {"array_position", false, []argument{ints, elem, small}},
		{"array_positions", false, []argument{ints, elem}}, {"array_remove", false, []argument{nums, num}}, {"array_position", false, []argument{nums, num}}, {"array_remove", false, []argument{texts, word}},
		{"array_fill", false, []argument{elem, {types.Of(types.OIDInt4Array), []string{"{}", "{2}", "{2,3}", "{0}", "{-1}", "{NULL}", "{{1}}", "{1,1,1,1,1,1,1}", "{100000000,100000000}"}}}},
		{"array_fill", false, []argument{elem, {types.Of(types.OIDInt4Array), []string{"{2}", "{2,3}", "{}"}}, {types.Of(types.OIDInt4Array), []string{"{0}", "{2,-3}", "{NULL}", "{{1}}", "{2147483646}"}}}},
		{"trim_array", false, []argument{ints, small}}, {"array_length", false, []argument{ints, small}}, {"array_lower", false, []argument{ints, small}}, {"array_upper", false, []argument{ints, small}},
		{"array_ndims", false, []argument{ints}}, {"cardinality", false, []argument{ints}}, {"array_dims", false, []argument{ints}},
		{"&&", true, []argument{ints, ints}}, {"@>", true, []argument{ints, ints}}, {"<@", true, []argument{ints, ints}}, {"@>", true, []argument{texts, texts}}, {"&&", true, []argument{nums, nums}},
		{"array_to_string", false, []argument{ints, word}}, {"array_to_string", false, []argument{texts, word, word}},
	})
}
