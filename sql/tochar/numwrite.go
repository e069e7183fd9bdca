package tochar

import (
	"bytes"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// numberWriter writes the digits of a number into the places of a template.
type numberWriter struct {
	t       *Numbers
	flags   numberFlags
	dst     []byte
	digits  []byte // without a sign
	at      int    // the next of them
	sign    byte   // '+', '-', or 0 if there is none to show
	signed  bool   // the sign is written
	post    int
	place   int  // places passed
	blanks  int  // places before the first digit
	last    int  // the place of the last digit, and what stands behind it
	zeroAt  int  // the first place that shows a zero
	signEnd bool // S stands behind the number
	inside  bool // a digit was just written
	// keep is the index of the last digit worth showing with FM: the last one
	// behind the point that is not 0, else the point; -1 if it does not matter.
	keep int
	end  int // where the output ends although the template does not, -1 if not
}

func (w *numberWriter) has(f numberFlags) bool { return w.flags&f != 0 }

func (w *numberWriter) write(c byte) {
	if c == 0 && w.end < 0 {
		w.end = len(w.dst)
	}
	w.dst = append(w.dst, c)
}

// prepare sets the writer up for digits in a template of pre places before the
// point.
func (w *numberWriter) prepare(pre int) {
	w.keep, w.end = -1, -1
	if w.zeroAt = w.t.zeroFrom; w.zeroAt > 0 {
		w.zeroAt--
	}
	w.signEnd = !w.t.signFirst
	signAt := w.t.signAt
	if w.has(hasRoman) {
		w.flags &= hasFill
		w.flags |= hasRoman
		pre, w.post, w.blanks, w.sign, signAt = 0, 0, 0, 0, 0
	}
	if w.has(hasPlus | hasMinus) {
		w.signed = w.has(hasMinus)
	} else {
		if w.sign != '-' && w.has(hasFill) {
			w.flags &^= hasBrackets
		}
		w.signed = w.sign == '+' && w.has(hasFill) && !w.has(hasSign)
		if pre == signAt {
			w.signEnd = true
		}
	}
	w.last = w.post + pre - 1
	if w.has(hasFill) && w.has(hasPoint) {
		w.findKeep()
	}
	if !w.signed && w.blanks == 0 {
		w.last++
	}
}

func (w *numberWriter) findKeep() {
	w.keep = bytes.IndexByte(w.digits, '.')
	if w.keep < 0 {
		return
	}
	for i := w.keep + 1; i < len(w.digits); i++ {
		if w.digits[i] != '0' {
			w.keep = i
		}
	}
	if w.t.zeroTo > w.blanks { // 0 shows zeros
		w.keep = max(w.keep, min(len(w.digits)-1, w.t.zeroTo-w.blanks))
	}
}

// next is the next character of the number, 0 at its end.
func (w *numberWriter) next() byte {
	if w.at < len(w.digits) {
		return w.digits[w.at]
	}
	return 0
}

// keepsPoint reports whether the point is the last character worth showing.
func (w *numberWriter) keepsPoint() bool { return w.keep >= 0 && w.digits[w.keep] == '.' }

// lonelyZero reports whether what comes next is the zero before the point of a
// fraction, which 9 does not show.
func (w *numberWriter) lonelyZero() bool {
	return !w.has(hasZero) && w.at == 0 && w.next() == '0' && w.post != 0
}

// digit writes the place of a 9, a 0, or the point.
func (w *numberWriter) digit(id patternID) {
	if w.has(hasRoman) {
		return
	}
	w.inside = false
	if !w.signed && (w.place >= w.blanks || w.has(hasZero) && w.zeroAt == w.place) && (!w.lonelyZero() || w.keepsPoint()) {
		w.signBefore()
	}
	switch {
	case w.place >= w.blanks:
		w.figure(id)
	case w.has(hasZero) && w.zeroAt <= w.place:
		w.write('0')
		w.inside = true
	case !w.has(hasFill):
		w.write(' ')
	}
	end := w.last
	if w.blanks > 0 {
		end++
	}
	if w.has(hasPoint) {
		end++
	}
	if w.place+1 == end && (w.keep < 0 || w.keep != w.at) {
		w.signBehind()
	}
	w.place++
}

func (w *numberWriter) signBefore() {
	switch {
	case w.has(hasSign):
		if w.signEnd {
			return
		}
		w.write(w.sign)
	case w.has(hasBrackets):
		if w.sign == '+' {
			w.write(' ')
		} else {
			w.write('<')
		}
	case w.sign == '+':
		if !w.has(hasFill) {
			w.write(' ')
		}
	case w.sign == '-':
		w.write('-')
	default:
		return
	}
	w.signed = true
}

func (w *numberWriter) signBehind() {
	switch {
	case w.signed && w.has(hasBrackets):
		if w.sign == '+' {
			w.write(' ')
		} else {
			w.write('>')
		}
	case w.has(hasSign) && w.signEnd:
		w.write(w.sign)
	}
}

// figure writes the next character of the number, if it is to be shown.
func (w *numberWriter) figure(id patternID) {
	c := w.next()
	switch {
	case c == '.':
		if !w.keepsPoint() || w.has(hasFill) {
			w.write('.')
		}
	case w.keep >= 0 && w.at > w.keep && id != patternZero:
	case w.lonelyZero():
		if !w.has(hasFill) {
			w.write(' ')
		} else if w.keepsPoint() {
			w.write('0')
		}
	default:
		w.write(c)
		w.inside = true
	}
	if c != 0 {
		w.at++
	}
}

// run writes the number by the template.
func (w *numberWriter) run() ([]byte, error) {
	for i := range w.t.parts {
		p := &w.t.parts[i]
		if p.pattern == nil {
			w.dst = append(w.dst, p.text...)
			continue
		}
		if err := w.pattern(p.pattern); err != nil {
			return w.dst, err
		}
	}
	if w.end >= 0 {
		w.dst = w.dst[:w.end]
	}
	return w.dst, nil
}

func (w *numberWriter) pattern(p *pattern) error {
	blankUnless := func(shown bool, c byte) {
		if shown {
			w.write(c)
		} else if !w.has(hasFill) {
			w.write(' ')
		}
	}
	switch p.id {
	case patternNine, patternZero, patternPoint:
		w.digit(p.id)
	case patternComma, patternGroup:
		blankUnless(w.inside, ',')
	case patternCurrency: // the locale has none
		w.write(' ')
	case patternMinus:
		blankUnless(w.sign == '-', '-')
	case patternPlus:
		blankUnless(w.sign == '+', '+')
	case patternSign:
		w.write(w.sign)
	case patternRoman:
		w.roman(p.name == "rn")
	case patternOrdinal:
		if w.has(hasRoman|hasPoint) || w.sign == '-' || w.digits[0] == '#' {
			return nil
		}
		if !isDigit(w.digits[len(w.digits)-1]) {
			return pgerror.New(pgerror.InvalidTextRepresentation, "\"%s\" is not a number", w.digits)
		}
		w.dst = append(w.dst, ordinal(w.digits, p.name)...)
	}
	return nil
}

// roman writes the number, which is in Roman numerals, in its 15 places.
func (w *numberWriter) roman(low bool) {
	digits := w.digits[w.at:]
	if !w.has(hasFill) {
		for n := 15 - len(digits); n > 0; n-- {
			w.dst = append(w.dst, ' ')
		}
	}
	style := upperCase
	if low {
		style = lowerCase
	}
	w.dst = style.append(w.dst, string(digits))
}
