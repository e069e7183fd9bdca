package expr

import (
	"math/rand"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/types"
)

// family describes random calls of the functions of a family: for each, how
// its arguments are made.
type family struct {
	name string // of a function, or the symbol of an operator
	op   bool
	args []argument
}

// argument is the type of an argument ("" leaves a literal untyped) and the
// texts it is chosen from.
type argument struct {
	typ   types.Type
	texts []string
}

// testFamilies compares random calls with PostgreSQL, n of each.
func testFamilies(t *testing.T, n int, fams []family) {
	t.Helper()
	s := oracle.Connect(t)
	t.Logf("-seed=%d", *seed)
	r := rand.New(rand.NewSource(*seed))
	for _, f := range fams {
		if *only != "" && f.name != *only {
			continue
		}
		var terms []term
		for range n {
			args := make([]term, len(f.args))
			for i, a := range f.args {
				if r.Intn(25) == 0 {
					args[i] = nullTerm(a.typ)
					continue
				}
				args[i] = literalTerm(a.typ, a.texts[r.Intn(len(a.texts))], a.typ.OID != types.OIDUnknown)
			}
			terms = append(terms, makeTerm(&Function{Name: f.name, Operator: f.op}, args))
		}
		t.Run(f.name, func(t *testing.T) { compareTerms(t, s, testContext(), terms) })
	}
}

func nullTerm(typ types.Type) term {
	e, err := Coerce(&Const{Val: NullVec(types.Text), Typ: types.Unknown}, typ, CastExplicit, 0)
	return term{sql: "NULL::" + typ.String(), e: e, err: err}
}

var (
	words   = argument{types.Text, []string{"", "a", "abc", "ABC def", "äöü", "hello world", "  pad ", "xyxyx", "日本語テキスト", "a,b,,c", "O'Reilly", `back\slash`, "select", "Mixed Case", "naïve café", "\t\n", "😀x😀", "aaaa", "foo.bar.baz"}}
	pieces  = argument{types.Text, []string{"", "a", "b", " ", "xy", "ä", ",", "é", "ab", "本", "😀", ".", "aa", "world"}}
	numbers = argument{types.Int4, []string{"0", "1", "2", "3", "5", "-1", "-2", "-5", "10", "100", "2147483647", "-2147483648", "1000000000"}}
	fewer   = argument{types.Int4, []string{"0", "1", "2", "3", "5", "-1", "-2", "10", "40"}}
	octets  = argument{types.Bytea, []string{`\x`, `\x00`, `\x0102ff`, "abc", `\x61626300`, `\xdeadbeef`, `\x5c5c`, `\xc3a4`}}
)

func TestStringFunctions(t *testing.T) {
	codes := argument{types.Int4, []string{"0", "-1", "1", "65", "228", "8364", "128512", "1114111", "1114112", "55296", "57343", "2147483647"}}
	testFamilies(t, 60, []family{
		{"lower", false, []argument{words}}, {"upper", false, []argument{words}}, {"initcap", false, []argument{words}}, {"reverse", false, []argument{words}},
		{"length", false, []argument{words}}, {"octet_length", false, []argument{words}}, {"bit_length", false, []argument{words}}, {"ascii", false, []argument{words}},
		{"chr", false, []argument{codes}}, {"substr", false, []argument{words, numbers}}, {"substr", false, []argument{words, numbers, numbers}},
		{"substr", false, []argument{octets, numbers, numbers}}, {"substring", false, []argument{words, numbers, numbers}},
		{"overlay", false, []argument{words, pieces, numbers}}, {"overlay", false, []argument{words, pieces, numbers, numbers}}, {"overlay", false, []argument{octets, octets, numbers, numbers}},
		{"strpos", false, []argument{words, pieces}}, {"left", false, []argument{words, numbers}}, {"right", false, []argument{words, numbers}},
		{"starts_with", false, []argument{words, pieces}}, {"split_part", false, []argument{words, pieces, numbers}},
		{"btrim", false, []argument{words}}, {"btrim", false, []argument{words, pieces}}, {"ltrim", false, []argument{words, pieces}}, {"rtrim", false, []argument{words, pieces}},
		{"btrim", false, []argument{octets, octets}}, {"ltrim", false, []argument{octets, octets}}, {"rtrim", false, []argument{octets, octets}},
		{"lpad", false, []argument{words, fewer}}, {"lpad", false, []argument{words, fewer, pieces}}, {"rpad", false, []argument{words, fewer, pieces}},
		{"repeat", false, []argument{words, fewer}}, {"replace", false, []argument{words, pieces, pieces}}, {"translate", false, []argument{words, pieces, pieces}},
		{"to_hex", false, []argument{numbers}}, {"||", true, []argument{words, words}}, {"||", true, []argument{words, numbers}}, {"||", true, []argument{octets, octets}},
		{"md5", false, []argument{words}}, {"sha224", false, []argument{octets}}, {"sha256", false, []argument{octets}}, {"sha384", false, []argument{octets}}, {"sha512", false, []argument{octets}},
		{"^@", true, []argument{words, pieces}},
		{"get_byte", false, []argument{octets, fewer}}, {"set_byte", false, []argument{octets, fewer, numbers}}, {"get_bit", false, []argument{octets, fewer}}, {"set_bit", false, []argument{octets, fewer, fewer}},
	})
}

func TestEncodings(t *testing.T) {
	enc := argument{types.Text, []string{"hex", "base64", "escape", "HEX", "utf7"}}
	long := argument{types.Bytea, append([]string{`\x` + string(make([]byte, 0)), `\x00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff`}, octets.texts...)}
	coded := argument{types.Text, []string{"", "00ff", "0", "0g", "YWJj", "YWI=", "YQ==", "YQ=", "YQ", "Y=Q=", "=YQ=", "YWJj\nYWJj", "YW Jj", "Y*Jj", "Yäj", `a\\b`, `\001`, `\400`, `\`, `\x41`, "abc"}}
	testFamilies(t, 150, []family{{"encode", false, []argument{long, enc}}, {"decode", false, []argument{coded, enc}}})
}

func TestVariadicText(t *testing.T) {
	formats := argument{types.Text, []string{"", "%s", "%I", "%L", "%%", "%", "%s %s", "%2$s %1$s", "%1$s%s", "%-10s|", "%10s|", "%*s|", "%-*s|", "%*2$s|", "%1$10s", "%0$s", "%d", "%1$", "%5", "%-", "%*", "%*1", "%*0$s", "%99999999999s", "x%3$sy", "%s%%%s", "%L%I", "%1$-5s|", "%ä"}}
	mixed := argument{types.Text, append([]string{"5", "-7", "user", "a b", "A"}, words.texts...)}
	num := argument{types.Numeric, []string{"1.50", "-3", "NaN"}}
	yes := argument{types.Bool, []string{"t", "f"}}
	list := argument{types.Of(types.OIDTextArray), []string{"{}", "{a,NULL,b}", "{1,2}", `{"x y"}`}}
	testFamilies(t, 80, []family{
		{"quote_ident", false, []argument{mixed}}, {"quote_literal", false, []argument{mixed}}, {"quote_nullable", false, []argument{mixed}}, {"quote_literal", false, []argument{num}}, {"quote_nullable", false, []argument{yes}},
		{"concat", false, []argument{mixed, num, yes, list}}, {"concat_ws", false, []argument{pieces, mixed, num, yes}}, {"concat", false, []argument{list}},
		{"format", false, []argument{formats}}, {"format", false, []argument{formats, mixed}}, {"format", false, []argument{formats, mixed, num, yes}},
	})
	s := oracle.Connect(t)
	var terms []term
	for _, f := range formats.texts {
		for _, l := range append(list.texts, "") {
			args := []term{literalTerm(types.Text, f, true), literalTerm(list.typ, l, true)}
			if l == "" {
				args[1] = nullTerm(list.typ)
			}
			for _, name := range []string{"format", "concat_ws"} {
				e, err := NewCall(name, []Expr{args[0].e, args[1].e}, CallOptions{Variadic: true})
				terms = append(terms, term{sql: name + "(" + args[0].sql + ", VARIADIC " + args[1].sql + ")", e: e, err: err})
			}
		}
	}
	compareTerms(t, s, testContext(), terms)
}

func TestSplitting(t *testing.T) {
	names := argument{types.Text, []string{"a.b", `"A b".C`, "Foo.Bar", ` x . y `, "a.", ".a", "", `""`, `"a`, `"a""b"`, "1a", "a b", "ä.ö", "a$1._b", `"x"."y".z`, "a..b", "\ta\n"}}
	escapes := argument{types.Text, []string{"", `abc`, `\0041`, `\\x`, `\u00e4`, `\+01F600`, `\U0001F600`, `\d83d\de00`, `\d83d`, `\de00`, `\d83dx`, `\d83d\\`, `\12`, `\0000`, `\+110000`, `\UFFFFFFFF`, `ä\x`}}
	form := argument{types.Text, []string{"NFC", "nfd", "NFKC", "NFKD", "x"}}
	marks := argument{types.Text, []string{"abc", "ä", "a\u0308", "ﬁ", "\u212b", "", "각", "ｶﾞ"}}
	testFamilies(t, 150, []family{
		{"string_to_array", false, []argument{words, pieces}}, {"string_to_array", false, []argument{words, pieces, pieces}},
		{"parse_ident", false, []argument{names}}, {"parse_ident", false, []argument{names, {types.Bool, []string{"t", "f"}}}}, {"unistr", false, []argument{escapes}},
		{"normalize", false, []argument{marks}}, {"normalize", false, []argument{marks, form}}, {"is_normalized", false, []argument{marks, form}},
		{"~<~", true, []argument{words, words}}, {"~>=~", true, []argument{words, words}},
		{"~<=~", true, []argument{{types.BPChar, words.texts}, {types.BPChar, words.texts}}}, {"~>~", true, []argument{{types.BPChar, words.texts}, {types.BPChar, words.texts}}},
	})
	s := oracle.Connect(t)
	var exprs, got []string
	for _, w := range words.texts {
		for _, p := range pieces.texts[:6] {
			a, b := literalTerm(types.Text, w, true), literalTerm(types.Text, p, true)
			exprs = append(exprs, "select coalesce(string_agg(x::text, ';'), 'none') from string_to_table("+a.sql+", "+b.sql+", '') x")
			got = append(got, tableText(t, "string_to_table", a.e, b.e, TextConst("")))
		}
	}
	for i, want := range s.Eval(t, exprs) {
		if w := want.String(); got[i] != w && !(got[i] == "" && w == "none") {
			t.Errorf("%s\n got %s\nwant %s", exprs[i], got[i], w)
		}
	}
}
