package types

import (
	"math/rand"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
)

func TestJSONPathInputs(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	tok := strings.Fields(`$ @ . .a .* .** [ ] [*] [0] , ( ) ? ?( == != <> < > <= >= = ! && || & | + - * / % 1 0 01 1. .5 1.5e3 1e 1e+ 1a 1.a "x" "a\"b" "\u00e4" "\u{1F600}" "\ud83d\ude00" "\ud83d" "\x41" "\x4" "\u12" "\q" "\ abc $v $"w" exists starts with like_regex flag "i" is unknown true null TRUE last to strict lax {1} {last} { } .type() .abs() .datetime( ) /*c*/ /* a.b \u0041b \`)
	tok = append(tok, " ", "\n", `"`, "'")
	var in []string
	for range 6000 {
		var b strings.Builder
		if r.Intn(2) == 0 {
			b.WriteString("$")
		}
		for range 1 + r.Intn(6) {
			b.WriteString(tok[r.Intn(len(tok))])
			b.WriteString([]string{"", " "}[r.Intn(2)])
		}
		in = append(in, b.String())
	}
	for range 4000 {
		in = append(in, oracle.JSONPath(r))
	}
	in = append(in, "", " ", "$.**{99999999999}", `$ ? (@ == "a" && (@.b < 3 || !exists(@.c)))`, "$[last]", "last", "@")
	compareInputs(t, s, Of(OIDJSONPath), nil, in)
}
