package regex

import (
	"flag"
	"fmt"
	"math/rand"
	"regexp"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/pgerror"
)

var seed = flag.Int64("seed", 1, "seed of the random tests")

// describe shows all matches of a pattern in s: the text with each match in
// angle brackets, then the groups of each.
func describe(pattern, s, flags string, find func(re *Regexp, from int) ([]int, bool)) string {
	var f Flags
	for _, c := range flags {
		f |= map[rune]Flags{'i': ICase, 'n': NLStop | NLAnchor, 'p': NLStop, 'w': NLAnchor, 'x': Expanded, 'q': Quote, 'e': Basic, 'b': Basic}[c]
	}
	re, err := Compile([]byte(pattern), f)
	if err != nil {
		return "ERROR " + pgerror.As(err).Code + ": " + err.Error()
	}
	var out, groups strings.Builder
	last, at := 0, 0
	for n := 0; at <= len(s) && n < 50; n++ {
		loc, ok := find(re, at)
		if !ok {
			break
		}
		out.WriteString(s[last:loc[0]] + "<" + s[loc[0]:loc[1]] + ">")
		if n > 0 {
			groups.WriteByte(';')
		}
		k := 2
		if re.NumSubexp() == 0 {
			k = 0
		}
		for ; k < len(loc); k += 2 {
			if k > 2 {
				groups.WriteByte(',')
			}
			if loc[k] < 0 {
				groups.WriteString("NULL")
			} else {
				groups.WriteString("[" + s[loc[k]:loc[k+1]] + "]")
			}
		}
		last, at = loc[1], loc[1]
		if loc[0] == loc[1] {
			for at++; at < len(s) && s[at]&0xC0 == 0x80; at++ {
			}
		}
	}
	return out.String() + s[last:] + " " + groups.String()
}

// query is the same for PostgreSQL.
func query(pattern, s, flags string) string {
	q := func(x string) string { return oracle.Quote(x) }
	return fmt.Sprintf(`regexp_replace(%s, %s, '<\&>', %s) || ' ' || coalesce((select string_agg((select string_agg(coalesce('[' || g || ']', 'NULL'), ',' order by o) from unnest(m) with ordinality u(g, o)), ';' order by n) from regexp_matches(%s, %s, %s) with ordinality r(m, n)), '')`,
		q(s), q(pattern), q("g"+flags), q(s), q(pattern), q("g"+flags))
}

func compare(t *testing.T, cases [][3]string) {
	t.Helper()
	s := oracle.Connect(t)
	var exprs []string
	for _, c := range cases {
		exprs = append(exprs, query(c[0], c[1], c[2]))
	}
	bad := 0
	for i, want := range s.Eval(t, exprs) {
		c := cases[i]
		got := describe(c[0], c[1], c[2], func(re *Regexp, from int) ([]int, bool) { return re.Find(nil, []byte(c[1]), from, true) })
		if got != want.String() && !endDiffers(got, want.String(), c[0]) {
			if bad++; bad <= 15 {
				t.Errorf("%q in %q flags %q\n got %s\nwant %s", c[0], c[1], c[2], got, want)
			}
		}
		own := describe(c[0], c[1], c[2], func(re *Regexp, from int) ([]int, bool) {
			re.goAny, re.goLong, re.isPlain, re.simple = nil, nil, false, nil
			return re.Find(nil, []byte(c[1]), from, true)
		})
		viaGo := describe(c[0], c[1], c[2], func(re *Regexp, from int) ([]int, bool) {
			re.isPlain, re.simple = false, nil
			return re.Find(nil, []byte(c[1]), from, true)
		})
		if viaGo != got && bad <= 15 {
			t.Errorf("%q in %q flags %q\n the simple way differs: %s\n without: %s", c[0], c[1], c[2], got, viaGo)
			bad++
		}
		if own != got && bad <= 15 {
			t.Errorf("%q in %q flags %q\n the two ways differ: %s\n own engine: %s", c[0], c[1], c[2], got, own)
			bad++
		}
	}
	if bad > 0 {
		t.Errorf("%d differences of %d, -seed=%d", bad, len(cases), *seed)
	}
}

// endDiffers reports whether the two differ only by an empty match at the end
// of the text. For patterns with back references PostgreSQL's search stops
// before the end if the automaton had found something that the back references
// then refused.
func endDiffers(got, want, pattern string) bool {
	if !regexp.MustCompile(`\\[1-9]`).MatchString(pattern) {
		return false
	}
	i, j := strings.LastIndex(got, "<> "), strings.LastIndexByte(got, ';')
	if i < 0 {
		return false
	}
	text, groups := got[:i], ""
	if j > i {
		groups = got[i+3 : j]
	}
	return want == text+" "+groups
}

func TestRandomPatterns(t *testing.T) {
	r := rand.New(rand.NewSource(*seed))
	atoms := []string{"a", "b", "c", "a", "b", ".", "[ab]", "[^a]", `\w`, `\d`, "ab", "x", "é", `\s`, "[a-c]", `\W`, "[[:alpha:]]"}
	quants := []string{"", "", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{2,}", "{0,1}", "{1,3}?", "{2}?", "{0}"}
	var gen func(depth int) string
	groups := 0
	gen = func(depth int) string {
		var b strings.Builder
		for range 1 + r.Intn(3) {
			switch k := r.Intn(14); {
			case depth > 0 && k < 3:
				groups++
				b.WriteString("(" + gen(depth-1) + ")")
			case depth > 0 && k < 5:
				b.WriteString("(?:" + gen(depth-1) + ")")
			case depth > 0 && k == 5:
				b.WriteString([]string{"(?=", "(?!", "(?<=", "(?<!"}[r.Intn(4)] + gen(0) + ")")
				continue
			case k == 6:
				b.WriteString([]string{"^", "$", `\m`, `\M`, `\y`, `\Y`, `\A`, `\Z`}[r.Intn(8)])
				continue
			case k == 7 && groups > 0 && r.Intn(2) == 0:
				b.WriteString(fmt.Sprintf(`\%d`, 1+r.Intn(groups)))
			default:
				b.WriteString(atoms[r.Intn(len(atoms))])
			}
			b.WriteString(quants[r.Intn(len(quants))])
		}
		if depth > 0 && r.Intn(5) == 0 {
			b.WriteString("|" + gen(depth-1))
		}
		return b.String()
	}
	letters := []string{"a", "b", "c", "a", "b", "ab", "aab", " ", "x", "1", "é", "\n", "abab", "A", "_"}
	var cases [][3]string
	for range 2500 {
		groups = 0
		p := gen(3)
		var s strings.Builder
		for range r.Intn(8) {
			s.WriteString(letters[r.Intn(len(letters))])
		}
		cases = append(cases, [3]string{p, s.String(), []string{"", "", "", "i", "n", "p", "w", "in"}[r.Intn(8)]})
	}
	compare(t, cases)
}

// TestSimplePatterns favours what the simple matcher takes.
func TestSimplePatterns(t *testing.T) {
	r := rand.New(rand.NewSource(*seed))
	atoms := []string{"a", "b", "[ab]", "[^a]", ".", `\d`, `\w`, "é", "ab", "[b-d]", "(?:ab|b)", "(ab|a)", "(b|)", "(?:ba|ab|b|c)", "xyz", "=", "([^b]*)", "(a+)", "(b?)", "[[:alpha:]]", `\m`, `\M`, "^", "$"}
	quants := []string{"", "", "", "*", "+", "?", "{1,2}", "{2}", "{2,}"}
	letters := []string{"a", "b", "ab", "aab", "c", "d", "1", "é", "xyz", "=", "ba", " ", "xy"}
	var cases [][3]string
	for range 4000 {
		var p, s strings.Builder
		for range 1 + r.Intn(6) {
			a := atoms[r.Intn(len(atoms))]
			p.WriteString(a)
			if len(a) < 8 && a[0] != '(' && a != "^" && a != "$" && a != `\m` && a != `\M` {
				p.WriteString(quants[r.Intn(len(quants))])
			}
		}
		for range r.Intn(12) {
			s.WriteString(letters[r.Intn(len(letters))])
		}
		cases = append(cases, [3]string{p.String(), s.String(), []string{"", "", "i", "n"}[r.Intn(4)]})
	}
	compare(t, cases)
}

func TestPatternSyntax(t *testing.T) {
	subjects := []string{"", "abc", "a.b*c", "foo bar", "x-y_z", "a\nb", "ABC", "a]b", `back\slash`, "tab\there", "{1}", "éa", "aaa111", "<word>", "a-z"}
	patterns := []string{"", "a|", "|a", "()", "a()b", "(", ")", "a)", "(a", "[", "[a", "]", "[]", "[]a]", "[^]a]", "[a-]", "[-a]", "[a-z-9]", "[z-a]", "[a-b-c]", "{", "a{", "a{1", "a{1,", "a{1,2", "a{2,1}", "a{256}", "a{x}", "{1}", "a{,2}", "*", "a**", "a+*", "+a", "?", "a|*b", "(*a)", "^*", "$+", "(?=a)*", `\`, `a\`, `\q`, `\.`, `\*`, `\\`, `\n`, `\t`, `\x61`, `\x`, `\u0061`, `\u61`, `\U00000061`, `\0`, `\07`, `\101`, `\1`, `(a)\1`, `(a)\2`, `(a\1)`, `\cA`, `\e`, `\d+`, `\D`, `\s`, `\S`, `\w+`, `\W`, `\mfoo`, `\Mx`, `\yb`, `\Ya`, `\Aa`, `c\Z`, `[\d]`, `[\D]`, `[\w-]`, `[\n]`, `[\q]`, `[a-\d]`, `[\d-a]`, "[[:digit:]]+", "[[:foo:]]", "[[:alpha:]", "[[.a.]]", "[[.hyphen.]]", "[[.xx.]]", "[[=a=]]", "[[:<:]]a", "[[:>:]]", "[[:upper:]]", "[^[:space:]]", "(?:ab)+", "(?i)ABC", "(?x)a b # c", "(?n)^b", "(?z)a", "(?i", "(?q)a.b*c", "***=a.b*c", "***:abc", "***?abc", "***", "(?#comment)abc", "a(?#x)*", "(?e)a\\d", "(?<a)", "(?a)b", "(?", "(?<", "(?<!x)y", "a{0}b", "(a){0}b", "(a)?b", "(a|b)*c", "((a))", "(((b)))c", "a{1}{2}", "x*?", "[a-c]{2}", "[[:word:]]+", "(?b)a", "^abc$", "a$|b", "[^\n]+", ".", "a.b", "(?s)a.b", "(?p)a.b", "(?w)^b", `[\]]`, `[\\]`, "é+", "[é]", "\\é", "a{3}", "(a{1,2}){2}", `(?=a)b|a`, "[a-a]", "[[.a.]-c]", "[[=a=]-c]", "[a-[.c.]]"}
	var cases [][3]string
	for _, p := range patterns {
		for _, s := range subjects {
			cases = append(cases, [3]string{p, s, ""})
		}
		for _, f := range []string{"i", "n", "x", "q", "e"} {
			cases = append(cases, [3]string{p, "Abc\nabc a.b*c", f})
		}
	}
	compare(t, cases)
}

func BenchmarkMatch(b *testing.B) {
	url := []byte("https://www.nexmark.com/abc/def/ghi/item.htm?query=1&channel_id=12345")
	for _, p := range []string{"channel", "^https", `(&|^)channel_id=([^&]*)`, `\d+$`, `(\w+)=\1`, `(?<=id=)\d+`} {
		re, err := Compile([]byte(p), 0)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(p, func(b *testing.B) {
			var loc []int
			for b.Loop() {
				loc, _ = re.Find(loc[:0], url, 0, true)
			}
		})
	}
}
