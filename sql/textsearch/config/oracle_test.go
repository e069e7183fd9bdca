package config

import (
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/textsearch"
)

var (
	seed = flag.Int64("seed", 1, "seed of the random tests")
	many = flag.Int("n", 3000, "random texts")
)

var pieces = strings.Split("a|the|cat|Running|houses|foo-bar|foo-bar-baz|beta3-x|7-up|a-12b|well-known|x_y|_z|12|-5|+7|3.14|-2.5|1.2.3|-1.2.3|1e5|-1.5E-3|2e|"+
	"me@example.com|a.b-c@d.e.org|http://www.example.com/path?a=b&c=d|example.com/x_y|www.host.org:8080/|ftp://h.io|192.168.0.1|"+
	"/usr/local/bin|~/file.txt|../up|./here|..|<b>|</b>|<br/>|<a href=\"x'y\">|<!-- comment -->|<?xml version=\"1\"?>|<script>|</script>|<style>|</style>|<!DOCTYPE x>|"+
	"&amp;|&#123;|&#x1F;|&nope|&;|é|Straße|naïve|école-de|Привет|мир-и|日本語|कि|1½|№5|٣|a٣|x²|don't|it's|O'Neil|"+
	"@|#|.|,|;|:|-|--|+|/|//|\\|?|!|'|\"|<|>|=|_|~|%|$|*|(|)| |  |\t|\n|e|E|1|x|0|ab1|1ab|a.b|a.bc|a.b.|1.a|a:|a://|a-|-a|a_b.c|a/b|a/b.c/d|x@y|@y.zz|a@b.c_d.ef", "|")

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.Intn(12) {
		b.WriteString(pieces[r.Intn(len(pieces))])
		if r.Intn(2) == 0 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// query asks PostgreSQL for a text for each of the rows of some columns of
// texts; sql calls them t1, t2, …
func query(t *testing.T, s *oracle.Server, sql string, cols ...[]string) []string {
	t.Helper()
	from, args := make([]string, len(cols)), make([]any, len(cols))
	names := make([]string, len(cols))
	for i, c := range cols {
		from[i], names[i], args[i] = fmt.Sprintf("$%d::text[]", i+1), fmt.Sprintf("t%d", i+1), c
	}
	rows, err := s.Conn.Query(t.Context(), "SELECT coalesce(("+sql+")::text, 'NULL') FROM unnest("+strings.Join(from, ", ")+
		") WITH ORDINALITY AS u("+strings.Join(names, ", ")+", o) ORDER BY o", args...)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// differ reports the first differences.
func differ(t *testing.T, what func(i int) string, got, want []string) {
	t.Helper()
	bad := 0
	for i := range want {
		if got[i] != want[i] {
			if bad++; bad <= 8 {
				t.Errorf("%s\n got %s\nwant %s", what(i), got[i], want[i])
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d differences of %d, -seed=%d", bad, len(want), *seed)
	}
}

func randomTexts(t *testing.T) ([]string, *rand.Rand) {
	t.Logf("-seed=%d", *seed)
	r := rand.New(rand.NewSource(*seed))
	texts := make([]string, *many)
	for i := range texts {
		texts[i] = randomText(r)
	}
	return texts, r
}

func TestTokensAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	texts, _ := randomTexts(t)
	want := query(t, s, "SELECT string_agg(tokid || ':' || token, '|') FROM ts_parse('default', t1)", texts)
	got := make([]string, len(texts))
	p := NewParser("")
	for i, text := range texts {
		p.Reset(text)
		var out []string
		for {
			typ, token := p.Next()
			if typ == 0 {
				break
			}
			out = append(out, fmt.Sprintf("%d:%s", typ, token))
		}
		if got[i] = strings.Join(out, "|"); out == nil {
			got[i] = "NULL"
		}
	}
	differ(t, func(i int) string { return fmt.Sprintf("%q", texts[i]) }, got, want)
}

// TestCharactersAgainstPostgres looks at the first token of every character
// between two letters.
func TestCharactersAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	var b strings.Builder
	for r := rune(0x80); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) {
			b.WriteRune('é')
			b.WriteRune(r)
			b.WriteString("é ")
			b.WriteRune(r)
			b.WriteByte('\n')
		}
	}
	text := b.String()
	want := query(t, s, "SELECT md5(string_agg(tokid || ':' || token, '|')) FROM ts_parse('default', t1)", []string{text})
	var out strings.Builder
	p := NewParser(text)
	for {
		typ, token := p.Next()
		if typ == 0 {
			break
		}
		if out.Len() > 0 {
			out.WriteByte('|')
		}
		fmt.Fprintf(&out, "%d:%s", typ, token)
	}
	differ(t, func(int) string { return "the classes of characters" }, query(t, s, "SELECT md5(t1)", []string{out.String()}), want)
}

// alphabets are what random words are made of, by language.
var alphabets = map[string]string{"russian": "абвгдежзийклмнопрстуфхцчшщъыьэюяё", "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهويءآأؤإئة", "finnish": "abcdefghijklmnopqrstuvwxyzäö", "tamil": "அஆஇஈஉஊகஙசஞடணதநபமயரலவழளறனாிீுூெேைொோௌ்"}

// TestStemsAgainstPostgres compares dictionaries on stop words and on random
// words that end like stop words of the language.
func TestStemsAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	_, r := randomTexts(t)
	for _, language := range Languages() {
		t.Run(language, func(t *testing.T) {
			letters := []rune("abcdefghijklmnopqrstuvwxyzäöüßéèêàâçôûùîëïñíóúæøåışőű")
			if a := alphabets[language]; a != "" {
				letters = []rune(a)
			}
			var words, ends []string
			for w := range stopWords()[language] {
				ends = append(ends, w)
			}
			slices.Sort(ends)
			words = append(words, ends...)
			ends = append(ends, strings.Fields("ing ed s ness ational ement issement ation heit keit ung en er est ig lich ende erne ede ene isme iste ité able ment ere are ire ando endo amente issimo mente ción ador oso")...)
			for len(words) < *many {
				var b strings.Builder
				for range 1 + r.Intn(6) {
					b.WriteRune(letters[r.Intn(len(letters))])
				}
				for range r.Intn(3) {
					b.WriteString(ends[r.Intn(len(ends))])
				}
				words = append(words, b.String())
			}
			if language != "finnish" { // its stemmer takes foreign letters for consonants
				for range *many / 4 {
					words = append(words, randomWord(r, []rune("ссклмттαββγбдяab漢語")))
				}
			}
			want := query(t, s, "SELECT ts_lexize('"+language+"_stem', t1)", words)
			got := make([]string, len(words))
			for i, w := range words {
				out, err := Lexize(textsearch.DictByName(language+"_stem").OID, w)
				if err != nil {
					t.Fatal(err)
				}
				got[i] = "{" + strings.Join(out, ",") + "}"
			}
			differ(t, func(i int) string { return words[i] }, got, want)
		})
	}
}

func randomWord(r *rand.Rand, letters []rune) string {
	var b strings.Builder
	for range 2 + r.Intn(5) {
		b.WriteRune(letters[r.Intn(len(letters))])
	}
	return b.String()
}

// TestStopWordsAgainstPostgres holds the list of stop words to the server's
// files.
func TestStopWordsAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	for language, words := range stopWords() {
		want := query(t, s, `SELECT count(DISTINCT w) FROM regexp_split_to_table(pg_read_file((SELECT setting FROM pg_config WHERE name = 'SHAREDIR')
			|| '/tsearch_data/' || t1 || '.stop'), '\s+') w WHERE w <> ''`, []string{language})
		if got := fmt.Sprint(len(words)); got != want[0] {
			t.Errorf("%s: %s stop words, want %s", language, got, want[0])
		}
	}
}

// outcome is a value's text or an error as PostgreSQL says it.
func outcome(b []byte, err error, text func([]byte) []byte) string {
	if err != nil {
		e := pgerror.As(err)
		return "ERROR " + e.Code + ": " + e.Message
	}
	return string(text(b))
}

func TestVectorsAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	texts, _ := randomTexts(t)
	for _, name := range []string{"simple", "english", "russian", "german"} {
		c, err := New(textsearch.ConfigByName(name).OID)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]string, len(texts))
		doc := c.NewDocument()
		for i, text := range texts {
			doc.Reset()
			doc.Add(text)
			b, err := doc.Append(nil)
			got[i] = outcome(b, err, func(b []byte) []byte { return textsearch.Vector(b).AppendText(nil) })
		}
		differ(t, func(i int) string { return fmt.Sprintf("%s %q", name, texts[i]) }, got, query(t, s, "SELECT to_tsvector('"+name+"', t1)", texts))
	}
}

var queryPieces = append(strings.Split("&|&| || |!|!|(|)|<->|<2>|<0>|:*|:A|:abc|:*B|'|\"|or|OR|-|'a b'|\\|the|of|and|cat|dogs|running", "|"), "|", "|", " | ", " & ", " <-> ", " & ")

func randomQuery(r *rand.Rand) string {
	var b strings.Builder
	for i := range 1 + r.Intn(9) {
		switch {
		case i%2 == 0 && r.Intn(5) > 0:
			b.WriteString(pieces[r.Intn(20)])
		case r.Intn(3) > 0:
			b.WriteString([]string{" & ", " | ", " <-> ", " <3> ", " !", " or ", " "}[r.Intn(7)])
		case r.Intn(6) == 0:
			b.WriteString(pieces[r.Intn(len(pieces))])
		default:
			b.WriteString(queryPieces[r.Intn(len(queryPieces))])
		}
	}
	return b.String()
}

func TestQueriesAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	s.Exec(t, "SET client_min_messages = error")
	_, r := randomTexts(t)
	texts := make([]string, *many)
	for i := range texts {
		texts[i] = randomQuery(r)
	}
	c, err := New(textsearch.ConfigByName("english").OID)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		name   string
		syntax textsearch.Syntax
		phrase bool
	}{{"to_tsquery", textsearch.Standard, true}, {"plainto_tsquery", textsearch.Plain, false}, {"phraseto_tsquery", textsearch.Plain, true}, {"websearch_to_tsquery", textsearch.Web, true}} {
		t.Run(f.name, func(t *testing.T) {
			exprs, got := make([]string, len(texts)), make([]string, len(texts))
			for i, text := range texts {
				exprs[i] = f.name + "('english', " + oracle.Quote(text) + ")::text"
				b, err := c.Query(nil, text, f.syntax, f.phrase)
				got[i] = outcome(b, err, func(b []byte) []byte { return textsearch.Query(b).AppendText(nil) })
			}
			differ(t, func(i int) string { return fmt.Sprintf("%q", texts[i]) }, got, evaluate(t, s, exprs))
		})
	}
}

// evaluate asks PostgreSQL for expressions one by one: some may fail.
func evaluate(t *testing.T, s *oracle.Server, exprs []string) []string {
	out := make([]string, len(exprs))
	for i, r := range s.Eval(t, exprs) {
		switch {
		case r.Code != "":
			out[i] = "ERROR " + r.Code + ": " + r.Message
		case r.Null:
			out[i] = "NULL"
		default:
			out[i] = r.Text
		}
	}
	return out
}

func TestHeadlinesAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	s.Exec(t, "SET client_min_messages = error")
	_, r := randomTexts(t)
	c, err := New(textsearch.ConfigByName("english").OID)
	if err != nil {
		t.Fatal(err)
	}
	options := []string{"", "MaxWords=5, MinWords=2", "MaxWords=8,MinWords=3,ShortWord=1", "MaxFragments=2", "MaxFragments=3, MaxWords=6, MinWords=2, FragmentDelimiter=' -- '",
		"HighlightAll=true", "HighlightAll=on, MaxFragments=1", `StartSel="<<", StopSel='>'`, "MaxWords=4, MinWords=1, ShortWord=0"}
	n := *many
	texts, queries, opts, got := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	words := strings.Fields("cat dogs the of running quick brown fox houses jumped over lazy <b>bold</b> well-known http://a.com/b 12 3.5 &amp; x")
	for i := range texts {
		var b strings.Builder
		for range 3 + r.Intn(60) {
			b.WriteString(words[r.Intn(len(words))])
			b.WriteString([]string{" ", " ", " ", ", ", ". "}[r.Intn(5)])
		}
		if texts[i] = b.String(); r.Intn(4) == 0 {
			texts[i] = randomText(r)
		}
		q := []string{"cat", "cat & dog", "quick <-> brown", "fox | lazy", "cat & !dog", "hous:* & jump", "nothing", "(cat | fox) & quick", "cat <2> dog", "run | run & fox", "!nothing", "x <-> 12"}
		queries[i], opts[i] = q[r.Intn(len(q))], options[r.Intn(len(options))]
		qb, err := textsearch.ParseQuery(nil, queries[i])
		if err != nil {
			t.Fatal(err)
		}
		o, err := ParseOptions(opts[i])
		if err != nil {
			t.Fatal(err)
		}
		got[i] = string(c.Headline(nil, texts[i], textsearch.Query(qb).Tree(), o))
	}
	want := query(t, s, "SELECT ts_headline('english', t1, t2::tsquery, t3)", texts, queries, opts)
	differ(t, func(i int) string { return fmt.Sprintf("%q %s [%s]", texts[i], queries[i], opts[i]) }, got, want)
}
