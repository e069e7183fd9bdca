package config

import (
	"strings"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/russian"
)

// The library's stemmers are those of Snowball 1. PostgreSQL has Snowball 2,
// which differs in four languages; what follows gives the words to the library
// in a form in which that does not matter.

// stemRussian takes ё for е.
func stemRussian(env *snowballstem.Env) bool {
	if w := env.Current(); strings.Contains(w, "ё") {
		env.SetCurrent(strings.ReplaceAll(w, "ё", "е"))
	}
	return russian.Stem(env)
}

// stemMasked makes foreign characters, those that are neither in ASCII nor in
// own, differ from their neighbours, so that a double one is not taken for a
// double consonant. Stems are what words start with.
func stemMasked(env *snowballstem.Env, stem func(*snowballstem.Env) bool, own string) bool {
	word := env.Current()
	foreign := func(r rune) bool { return (r < 'a' || r > 'z') && !strings.ContainsRune(own, r) }
	if !strings.ContainsFunc(word, foreign) {
		return stem(env)
	}
	odd, all := false, true
	masked := strings.Map(func(r rune) rune {
		if !foreign(r) {
			all = false
			return r
		}
		if odd = !odd; odd {
			return '\uE000'
		}
		return '\uE001'
	}, word)
	if all {
		return true
	}
	env.SetCurrent(masked)
	done := stem(env)
	stemmed, whole := []rune(env.Current()), []rune(word)
	for i, r := range stemmed {
		if foreign(r) && i < len(whole) {
			stemmed[i] = whole[i]
		}
	}
	env.SetCurrent(string(stemmed))
	return done
}

func stemDanish(env *snowballstem.Env) bool  { return stemMasked(env, danish.Stem, "æøå") }
func stemFinnish(env *snowballstem.Env) bool { return stemMasked(env, finnish.Stem, "äö") }

// afterI are endings of verbs that start with i. They are none if it is ï.
var afterI = func() map[string]bool {
	set := map[string]bool{}
	for _, s := range strings.Fields(`i ie ies ir ira irai iraient irais irait iras irent irez iriez irions irons iront is issaient
		issais issait issant issante issantes issants isse issent isses issez issiez issions issons it`) {
		set[s] = true
	}
	return set
}()

const frenchVowels = "aeiouyâàëéêèïîôûù"

// stemFrench hides a diaeresis: ë and ï become a consonant and a vowel while the
// word is stemmed, unless they make a following u, i or (not at the start) y a consonant.
func stemFrench(env *snowballstem.Env) bool {
	word := env.Current()
	if !strings.ContainsAny(word, "ëï") {
		return french.Stem(env)
	}
	in := []rune(word)
	var out []rune
	for i, r := range in {
		between := i+2 < len(in) && (in[i+1] == 'u' || in[i+1] == 'i') && strings.ContainsRune(frenchVowels, in[i+2])
		switch {
		case r != 'ë' && r != 'ï', between, i > 0 && i+1 < len(in) && in[i+1] == 'y':
			out = append(out, r)
		case r == 'ë':
			out = append(out, 'H', 'e')
		case afterI["i"+string(in[i+1:])]:
			out = append(out, 'H', 'ï')
		default:
			out = append(out, 'H', 'i')
		}
	}
	env.SetCurrent(string(out))
	done := french.Stem(env)
	env.SetCurrent(strings.NewReplacer("He", "ë", "Hi", "ï", "H", "").Replace(env.Current()))
	return done
}
