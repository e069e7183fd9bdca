package expr

import (
	"math/rand"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/types"
)

func TestLike(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	join := func(parts []string, n int) string {
		var b strings.Builder
		for range r.Intn(n) {
			b.WriteString(parts[r.Intn(len(parts))])
		}
		return b.String()
	}
	var terms []term
	for range 4000 {
		subject := join([]string{"a", "b", "ab", "ä", "A", "%", "_", `\`, "本", "aa", "Ä"}, 7)
		pat := join([]string{"a", "b", "%", "%", "_", "ä", "A", "本", `\\`, `\%`, `\_`, `\a`, "%%", "Ä"}, 6)
		if r.Intn(12) == 0 {
			pat += `\`
		}
		op := []string{"~~", "!~~", "~~*", "!~~*"}[r.Intn(4)]
		left := types.Text
		if r.Intn(5) == 0 {
			left = types.BPChar
		}
		terms = append(terms, makeTerm(&Function{Name: op, Operator: true}, []term{literalTerm(left, subject, true), literalTerm(types.Text, pat, true)}))
		esc := []string{"", "a", "ä", "%", "_", `\`, "xy", "#"}[r.Intn(8)]
		terms = append(terms, makeTerm(&Function{Name: "like_escape"}, []term{literalTerm(types.Text, pat, true), literalTerm(types.Text, esc, true)}))
		sim := join([]string{"a", "b", "%", "_", "(", ")", "|", "[", "]", "^", "$", ".", `\`, `\"`, "*", "+", "?", "{", "}", "#", `#"`, `"`, "ä"}, 8)
		terms = append(terms, makeTerm(&Function{Name: "similar_to_escape"}, []term{literalTerm(types.Text, sim, true), literalTerm(types.Text, []string{"#", `\`, "", "ab", "ä"}[r.Intn(5)], true)}))
		terms = append(terms, makeTerm(&Function{Name: "similar_to_escape"}, []term{literalTerm(types.Text, sim, true)}))
	}
	for _, pat := range []string{`\x25`, `\x5f61`, `\x2561`, `abc`, `\x5c5c`} {
		for _, v := range octets.texts {
			terms = append(terms, makeTerm(&Function{Name: "~~", Operator: true}, []term{literalTerm(types.Bytea, v, true), literalTerm(types.Bytea, pat, true)}))
		}
	}
	compareTerms(t, s, testContext(), terms)
}
