package expr

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/types"
)

func TestRegexFunctions(t *testing.T) {
	subject := argument{types.Text, []string{"", "foobarbequebaz", "abc abc", "hello world", "aäbäc", "a1b22c333", "line1\nline2", "AbCaBc", "the quick brown fox", "x=1,y=2", "aaa", "日本語 text", `back\slash`}}
	pattern := argument{types.Text, []string{"", "a", "b+", "(b..)", "(bar)(beque)", "[0-9]+", `\d`, `\s+`, `(\w)(\w*)`, "x*", "^a", "c$", "(a)|(b)", "o(?=b)", "ä", ".", "q|z", "(", "a{2}", `(\w+)=(\d)`, "nomatch", "B", "^"}}
	with := argument{types.Text, []string{"", "X", `<\&>`, `\1`, `[\2\1]`, `\\`, `\9`, `a\`, `\x`, "ä"}}
	flags := argument{types.Text, []string{"", "g", "i", "gi", "n", "x", "z", "q", "c", "gn", "e", "ig", "é"}}
	start := argument{types.Int4, []string{"1", "2", "3", "5", "20", "0", "-1", "100"}}
	number := argument{types.Int4, []string{"0", "1", "2", "3", "-1"}}
	sub := argument{types.Int4, []string{"0", "1", "2", "3", "-1"}}
	testFamilies(t, 120, []family{
		{"~", true, []argument{subject, pattern}}, {"!~", true, []argument{subject, pattern}}, {"~*", true, []argument{subject, pattern}}, {"!~*", true, []argument{subject, pattern}},
		{"~", true, []argument{{types.BPChar, subject.texts}, pattern}}, {"~", true, []argument{{types.Name, subject.texts}, pattern}},
		{"regexp_match", false, []argument{subject, pattern}}, {"regexp_match", false, []argument{subject, pattern, flags}}, {"regexp_like", false, []argument{subject, pattern}}, {"regexp_like", false, []argument{subject, pattern, flags}},
		{"regexp_replace", false, []argument{subject, pattern, with}}, {"regexp_replace", false, []argument{subject, pattern, with, flags}}, {"regexp_replace", false, []argument{subject, pattern, with, start}},
		{"regexp_replace", false, []argument{subject, pattern, with, start, number}}, {"regexp_replace", false, []argument{subject, pattern, with, start, number, flags}},
		{"regexp_count", false, []argument{subject, pattern}}, {"regexp_count", false, []argument{subject, pattern, start}}, {"regexp_count", false, []argument{subject, pattern, start, flags}},
		{"regexp_instr", false, []argument{subject, pattern}}, {"regexp_instr", false, []argument{subject, pattern, start, number}}, {"regexp_instr", false, []argument{subject, pattern, start, number, number}},
		{"regexp_instr", false, []argument{subject, pattern, start, number, number, flags, sub}}, {"regexp_substr", false, []argument{subject, pattern}}, {"regexp_substr", false, []argument{subject, pattern, start, number}},
		{"regexp_substr", false, []argument{subject, pattern, start, number, flags}}, {"regexp_substr", false, []argument{subject, pattern, start, number, flags, sub}},
		{"regexp_split_to_array", false, []argument{subject, pattern}}, {"regexp_split_to_array", false, []argument{subject, pattern, flags}}, {"substring", false, []argument{subject, pattern}},
		{"substring", false, []argument{subject, {types.Text, []string{`%#"b%#"%`, `#"%#"b%`, "%", "a%", `%#"_#"%`, `x#"`, `#"#"#"`, "[abc]%", `%(a|b)%`}}, {types.Text, []string{"#", "", "ab", `\`}}}},
	})
}

func TestRegexTables(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	subjects := []string{"", "foobarbequebaz", "abc abc", "the quick  brown fox", "aäbäc", "1,2,,3", " a b "}
	patterns := []string{"", "(b..)", `\s+`, `\s*`, ",", "(a)|(b)", "x", "", "[", "(b)(.)"}
	flags := []string{"", "g", "gi", "i", "z"}
	var exprs, got []string
	for range 400 {
		sub, pat, fl := subjects[r.Intn(len(subjects))], patterns[r.Intn(len(patterns))], flags[r.Intn(len(flags))]
		for _, name := range []string{"regexp_matches", "regexp_split_to_table"} {
			args := []term{literalTerm(types.Text, sub, true), literalTerm(types.Text, pat, true), literalTerm(types.Text, fl, true)}
			exprs = append(exprs, fmt.Sprintf("select coalesce(string_agg(x::text, ';'), 'none') from %s(%s, %s, %s) x", name, args[0].sql, args[1].sql, args[2].sql))
			got = append(got, tableText(t, name, args[0].e, args[1].e, args[2].e))
		}
	}
	for i, want := range s.Eval(t, exprs) {
		if got[i] != want.String() {
			t.Errorf("%s\n got %s\nwant %s", exprs[i], got[i], want)
		}
	}
}
