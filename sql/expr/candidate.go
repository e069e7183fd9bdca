package expr

import (
	"github.com/streamdb/streamdb/sql/types"
)

// candidate is an overload under consideration: its parameter types spread to
// the number of actual arguments, and what to do with its arguments.
type candidate struct {
	args     []types.OID
	index    int   // in the list of overloads
	variadic bool  // trailing arguments are collected in an array
	defaults int   // arguments that were left out
	order    []int // position of each actual argument among the parameters; nil: in order
	// ambiguous says that there is another of which nothing tells it apart.
	ambiguous bool
}

// matchArgs keeps the candidates whose parameters the actual types can become
// by implicit casts (func_match_argtypes).
func matchArgs(in []types.OID, cands []candidate) []candidate {
	var out []candidate
	for _, c := range cands {
		if acceptsAll(in, c.args) {
			out = append(out, c)
		}
	}
	return out
}

func acceptsAll(in, params []types.OID) bool {
	generic := false
	for i, t := range in {
		if !canCoerce(t, params[i], CastImplicit) {
			return false
		}
		generic = generic || isPolymorphic(params[i])
	}
	if !generic {
		return true
	}
	_, err := resolveGeneric(in, params)
	return err == nil
}

// selectCandidate picks the best candidate by PostgreSQL's rules
// (func_select_candidate; manual sections 10.2 and 10.3): most exact matches,
// then most preferred types, then the category rule for unknown arguments, and
// last the assumption that unknown arguments have the type of the known ones.
// Nil: none is best.
func selectCandidate(in []types.OID, cands []candidate) *candidate {
	unknowns := 0
	for _, t := range in {
		if t == types.OIDUnknown {
			unknowns++
		}
	}
	cands = keepBest(cands, func(c candidate) int {
		n := 0
		for i, t := range in {
			if t != types.OIDUnknown && c.args[i] == t {
				n++
			}
		}
		return n
	})
	if len(cands) == 1 {
		return &cands[0]
	}
	cands = keepBest(cands, func(c candidate) int {
		n := 0
		for i, t := range in {
			if t == types.OIDUnknown {
				continue
			}
			if c.args[i] == t || categoryOf(c.args[i]) == categoryOf(t) && preferred(c.args[i]) {
				n++
			}
		}
		return n
	})
	if len(cands) == 1 {
		return &cands[0]
	}
	if unknowns == 0 {
		return nil
	}
	cands = resolveUnknowns(in, cands)
	if len(cands) == 1 {
		return &cands[0]
	}
	if unknowns == len(in) {
		return nil
	}
	return assumeSame(in, cands)
}

// keepBest keeps the candidates with the highest score.
func keepBest(cands []candidate, score func(candidate) int) []candidate {
	best := -1
	var out []candidate
	for _, c := range cands {
		switch n := score(c); {
		case n > best:
			best, out = n, append(out[:0:0], c)
		case n == best:
			out = append(out, c)
		}
	}
	return out
}

// resolveUnknowns decides a type category for each unknown argument (string if
// any candidate takes one there, else the one that all take) and keeps the
// candidates of those categories, only with preferred types where one has them.
func resolveUnknowns(in []types.OID, cands []candidate) []candidate {
	cats := make([]category, len(in))
	prefs := make([]bool, len(in))
	for i, t := range in {
		if t != types.OIDUnknown {
			continue
		}
		conflict := false
		for k, c := range cands {
			cat, pref := categoryOf(c.args[i]), preferred(c.args[i])
			switch {
			case k == 0:
				cats[i], prefs[i] = cat, pref
			case cat == cats[i]:
				prefs[i] = prefs[i] || pref
			case cat == catString:
				cats[i], prefs[i] = cat, pref
			case cats[i] != catString:
				conflict = true
			}
		}
		if conflict && cats[i] != catString {
			return cands
		}
	}
	var out []candidate
	for _, c := range cands {
		keep := true
		for i, t := range in {
			if t == types.OIDUnknown && (categoryOf(c.args[i]) != cats[i] || prefs[i] && !preferred(c.args[i])) {
				keep = false
				break
			}
		}
		if keep {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return cands
	}
	return out
}

// assumeSame takes unknown arguments to be of the one type that all the known
// ones have, if there is such a type and exactly one candidate accepts it.
func assumeSame(in []types.OID, cands []candidate) *candidate {
	known := types.OIDUnknown
	for _, t := range in {
		if t == types.OIDUnknown {
			continue
		}
		if known == types.OIDUnknown {
			known = t
		} else if t != known {
			return nil
		}
	}
	all := make([]types.OID, len(in))
	for i := range all {
		all[i] = known
	}
	var found *candidate
	for i := range cands {
		if !acceptsAll(all, cands[i].args) {
			continue
		}
		if found != nil {
			return nil
		}
		found = &cands[i]
	}
	return found
}
