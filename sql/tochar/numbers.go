package tochar

import (
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// numberFlags says what a template of numbers has.
type numberFlags uint16

const (
	hasPoint    numberFlags = 1 << iota
	hasZero                 // a 0 before the point
	hasFill                 // FM
	hasSign                 // S
	hasBrackets             // PR
	hasMinus                // MI, SG
	hasPlus                 // PL, SG
	hasShift                // V
	hasRoman                // RN
	hasExponent             // EEEE
	hasBlank                // B
)

// patternID is what a pattern of a number template stands for.
type patternID uint8

const (
	patternComma patternID = iota
	patternPoint
	patternZero
	patternNine
	patternBlank
	patternISOCurrency
	patternExponent
	patternFill
	patternGroup
	patternCurrency
	patternMinus
	patternPlus
	patternBrackets
	patternRoman
	patternSign
	patternSpell
	patternLocaleSign
	patternOrdinal
	patternShift
)

type pattern struct {
	id   patternID
	name string
}

// numberPatterns are the patterns by their names, in upper and in lower case.
var numberPatterns = func() map[string]*pattern {
	m := map[string]*pattern{}
	for _, p := range []pattern{
		{patternComma, ","}, {patternPoint, "."}, {patternZero, "0"}, {patternNine, "9"}, {patternBlank, "B"}, {patternISOCurrency, "C"},
		{patternPoint, "D"}, {patternExponent, "EEEE"}, {patternFill, "FM"}, {patternGroup, "G"}, {patternCurrency, "L"}, {patternMinus, "MI"},
		{patternPlus, "PL"}, {patternBrackets, "PR"}, {patternRoman, "RN"}, {patternSign, "SG"}, {patternSpell, "SP"}, {patternLocaleSign, "S"},
		{patternOrdinal, "TH"}, {patternShift, "V"},
	} {
		m[p.name] = &p
		low := pattern{p.id, strings.ToLower(p.name)}
		m[low.name] = &low
	}
	return m
}()

const longestPattern = len("EEEE")

// numberPart is a pattern of a template, or a character between patterns.
type numberPart struct {
	pattern *pattern // nil for a character
	text    string
}

// Numbers is a template of numbers, ready for use.
type Numbers struct {
	parts     []numberPart
	flags     numberFlags
	pre, post int  // digits before and after the point
	shift     int  // digits after V
	zeroFrom  int  // 1 + the place of the first 0, 0 if there is none
	zeroTo    int  // the places up to the last 0
	signFirst bool // S comes before the point …
	signAt    int  // … after so many digits
}

func (t *Numbers) has(f numberFlags) bool { return t.flags&f != 0 }

func badNumber(format string, args ...any) *pgerror.Error {
	return pgerror.New(pgerror.SyntaxError, format, args...)
}

// CompileNumbers reads a template of numbers.
func CompileNumbers(s string) (*Numbers, error) {
	t := &Numbers{parts: make([]numberPart, 0, len(s))}
	for s != "" {
		if p := longestPrefix(numberPatterns, s, longestPattern); p != nil {
			s = s[len(p.name):]
			if err := t.add(p.id); err != nil {
				return nil, err
			}
			t.parts = append(t.parts, numberPart{pattern: p})
			continue
		}
		if s[0] == '"' {
			var chars []string
			chars, s = quoted(s[1:])
			for _, c := range chars {
				t.parts = append(t.parts, numberPart{text: c})
			}
			continue
		}
		if strings.HasPrefix(s, `\"`) {
			s = s[1:]
		}
		n := charLen(s)
		t.parts = append(t.parts, numberPart{text: s[:n]})
		s = s[n:]
	}
	return t, nil
}

// add notes what a pattern says of the whole template.
func (t *Numbers) add(id patternID) error {
	if t.has(hasExponent) && id != patternExponent {
		return badNumber("\"EEEE\" must be the last pattern used")
	}
	switch id {
	case patternNine, patternZero:
		return t.addDigit(id == patternZero)
	case patternBlank:
		if t.pre == 0 && t.post == 0 && !t.has(hasZero) {
			t.flags |= hasBlank
		}
	case patternPoint:
		switch {
		case t.has(hasPoint):
			return badNumber("multiple decimal points")
		case t.has(hasShift):
			return badNumber("cannot use \"V\" and decimal point together")
		}
		t.flags |= hasPoint
	case patternFill:
		t.flags |= hasFill
	case patternLocaleSign, patternMinus, patternPlus, patternSign, patternBrackets:
		return t.addSign(id)
	case patternRoman:
		t.flags |= hasRoman
	case patternShift:
		if t.has(hasPoint) {
			return badNumber("cannot use \"V\" and decimal point together")
		}
		t.flags |= hasShift
	case patternExponent:
		switch {
		case t.has(hasExponent):
			return badNumber("cannot use \"EEEE\" twice")
		case t.has(hasBlank | hasFill | hasSign | hasBrackets | hasMinus | hasPlus | hasRoman | hasShift):
			return badNumber("\"EEEE\" is incompatible with other formats").
				WithDetail("\"EEEE\" may only be used together with digit and decimal point patterns.")
		}
		t.flags |= hasExponent
	}
	return nil
}

func (t *Numbers) addDigit(zero bool) error {
	if t.has(hasBrackets) {
		if zero {
			return badNumber("\"0\" must be ahead of \"PR\"")
		}
		return badNumber("\"9\" must be ahead of \"PR\"")
	}
	if zero && !t.has(hasZero|hasPoint) {
		t.flags |= hasZero
		t.zeroFrom = t.pre + 1
	}
	switch {
	case !zero && t.has(hasShift):
		t.shift++
	case t.has(hasPoint):
		t.post++
	default:
		t.pre++
	}
	if zero {
		t.zeroTo = t.pre + t.post
	}
	return nil
}

func (t *Numbers) addSign(id patternID) error {
	switch id {
	case patternLocaleSign:
		switch {
		case t.has(hasSign):
			return badNumber("cannot use \"S\" twice")
		case t.has(hasPlus | hasMinus | hasBrackets):
			return badNumber("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together")
		}
		t.flags |= hasSign
		if !t.has(hasPoint) {
			t.signFirst, t.signAt = true, t.pre
		}
	case patternBrackets:
		if t.has(hasSign | hasPlus | hasMinus) {
			return badNumber("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together")
		}
		t.flags |= hasBrackets
	case patternMinus, patternPlus, patternSign:
		name, flags := "MI", hasMinus
		switch id {
		case patternPlus:
			name, flags = "PL", hasPlus
		case patternSign:
			name, flags = "SG", hasPlus|hasMinus
		}
		if t.has(hasSign) {
			return badNumber("cannot use \"S\" and \"%s\" together", name)
		}
		t.flags |= flags
	}
	return nil
}
