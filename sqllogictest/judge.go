package sqllogictest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// verdict is why a record did not pass.
type verdict struct {
	reason    string
	want, got []string
	skip      bool // it is to be skipped after all
	noAnswer  bool // there was no answer of the server
}

// vagueCodes do not stand in for another error that was asked for: not
// supported, syntax error, internal error.
var vagueCodes = []string{"0A000", "42601", "XX000"}

// judge compares the answer in f.res (or the failure to get one) with what the
// record expects; nil: it passes.
func (f *fileRunner) judge(r *record, err error) *verdict {
	if errors.Is(err, errTimeout) {
		return &verdict{reason: fmt.Sprintf("timeout after %v", f.opt.Timeout), noAnswer: true}
	}
	if err != nil {
		reason := err.Error()
		if !strings.HasPrefix(reason, "connection lost") {
			reason = "connection lost: " + reason
		}
		return &verdict{reason: reason, noAnswer: true}
	}
	e := f.res.err
	if e == nil {
		f.track(r)
	}
	if e != nil && f.opt.Oracle && !r.wantError && oracleCannot(r.sql, e) {
		return &verdict{skip: true}
	}
	if r.wantError {
		return f.judgeError(r, e)
	}
	if e != nil {
		return &verdict{reason: "error: " + e.Error(), want: r.expect}
	}
	if r.kind == kindStatement {
		if r.count >= 0 && f.res.affected != r.count {
			got := "None"
			if f.res.affected >= 0 {
				got = strconv.Itoa(f.res.affected)
			}
			return &verdict{reason: fmt.Sprintf("expected %d rows affected, got %s", r.count, got)}
		}
		return nil
	}
	if f.sqlite {
		return f.compareSQLite(r)
	}
	return f.compareRS(r)
}

func (f *fileRunner) judgeError(r *record, e *serverError) *verdict {
	if e == nil {
		return &verdict{reason: "expected an error, but it succeeded"}
	}
	differs := r.errCode != "" && !strings.EqualFold(r.errCode, e.code) ||
		r.errText != "" && squeeze(r.errText) != squeeze(e.text()) && squeeze(r.errText) != squeeze(e.message) ||
		r.errRegex != "" && !errorMatches(r.errRegex, e)
	if !differs {
		return nil
	}
	f.counts(r).ErrorTextDiffer++
	if f.opt.Errors == ErrorExact || f.opt.Errors == ErrorSane && slices.Contains(vagueCodes, e.code) {
		want := r.errCode
		if want == "" {
			want = r.errRegex
		}
		if want == "" {
			want = r.errText
		}
		return &verdict{reason: "another error than expected", want: []string{want}, got: []string{e.Error()}}
	}
	return nil
}

func errorMatches(expr string, e *serverError) bool {
	rx, err := regexp.Compile(expr)
	if err != nil {
		return strings.Contains(e.message, expr)
	}
	return rx.MatchString(e.text()) || rx.MatchString(e.message)
}

func (f *fileRunner) sortOf(r *record) sortMode {
	switch {
	case r.sort != sortUnset:
		return r.sort
	case f.sort != sortUnset:
		return f.sort
	}
	return sortNone
}

// rendered are the values of the answer, row by row, sorted as the mode asks.
func (f *fileRunner) rendered(r *record, mode sortMode) []string {
	width := len(f.res.oids)
	values := make([]string, 0, len(f.res.cells))
	for i := range f.res.rows {
		for c := range width {
			v, null := f.res.value(i, c)
			if f.sqlite {
				letter := byte('T')
				if c < len(r.types) {
					letter = r.types[c]
				}
				values = append(values, sqliteValue(v, null, letter, f.res.oids[c]))
			} else {
				values = append(values, rsValue(v, null))
			}
		}
	}
	switch {
	case mode == sortValues:
		slices.Sort(values)
	case mode == sortRows && width > 0:
		sortRowValues(values, width)
	}
	return values
}

// sortRowValues sorts rows of so many values each.
func sortRowValues(values []string, width int) {
	if width == 1 {
		slices.Sort(values)
		return
	}
	rows := slices.Collect(slices.Chunk(slices.Clone(values), width))
	slices.SortFunc(rows, slices.Compare[[]string])
	values = values[:0]
	for _, r := range rows {
		values = append(values, r...)
	}
}

func (f *fileRunner) compareSQLite(r *record) *verdict {
	if f.res.has && len(f.res.oids) != len(r.types) {
		return &verdict{reason: fmt.Sprintf("expected %d columns, got %d", len(r.types), len(f.res.oids))}
	}
	values := f.rendered(r, f.sortOf(r))
	digest := ""
	if r.label != "" {
		digest = md5Values(values)
		if first, ok := f.labels[r.label]; ok && first != digest {
			return &verdict{reason: "differs from an earlier result with label " + r.label, want: r.expect, got: values}
		}
		f.labels[r.label] = digest
	}
	if isHashed(r) {
		return checkHash(r, values, digest)
	}
	if !slices.Equal(values, r.expect) {
		return &verdict{reason: "wrong result", want: r.expect, got: values}
	}
	return nil
}

// isHashed: the expectation has the form "N values hashing to MD5".
func isHashed(r *record) bool {
	return len(r.expect) == 1 && strings.Contains(r.expect[0], " values hashing to ") && hashedResult.MatchString(r.expect[0])
}

func checkHash(r *record, values []string, digest string) *verdict {
	m := hashedResult.FindStringSubmatch(r.expect[0])
	if m[1] != strconv.Itoa(len(values)) {
		return &verdict{reason: fmt.Sprintf("expected %s values, got %d", m[1], len(values)), want: r.expect, got: values}
	}
	if digest == "" {
		digest = md5Values(values)
	}
	if digest != m[2] {
		return &verdict{reason: "hash of " + m[1] + " values differs", want: r.expect, got: values}
	}
	return nil
}

const ignoreMark = "<slt:ignore>"

func (f *fileRunner) compareRS(r *record) *verdict {
	mode := f.sortOf(r)
	want := slices.Clone(r.expect)
	for i, w := range want {
		want[i] = strings.ReplaceAll(w, "\u2420", " ")
	}
	if isHashed(r) {
		return checkHash(r, f.rendered(r, mode), "")
	}
	got := f.rsLines(r, mode)
	wrong := &verdict{reason: "wrong result", want: want, got: got}
	if slices.ContainsFunc(want, func(w string) bool { return strings.Contains(w, ignoreMark) }) {
		text := strings.Join(f.rawLines(), "\n")
		for piece := range strings.SplitSeq(strings.Join(want, "\n"), ignoreMark) {
			i := strings.Index(text, piece)
			if i < 0 {
				return wrong
			}
			text = text[i+len(piece):]
		}
		return nil
	}
	exp, have := make([]string, len(want)), slices.Clone(got)
	for i, w := range want {
		if exp[i] = squeeze(w); f.opt.Lenient {
			exp[i] = canon(w)
		}
	}
	if f.opt.Lenient {
		for i, g := range have {
			have[i] = canon(g)
		}
	}
	if mode != sortNone && !(mode == sortRows && f.valuewise) {
		slices.Sort(exp)
		slices.Sort(have)
	}
	if !sameRows(exp, have, f.opt.FloatEps) {
		return wrong
	}
	return nil
}

// rsLines are the answer's lines: a row each, or a value each where values are
// sorted or compared one by one.
func (f *fileRunner) rsLines(r *record, mode sortMode) []string {
	if mode == sortValues || f.valuewise {
		values := f.rendered(r, mode)
		for i, v := range values {
			values[i] = squeeze(v)
		}
		if mode == sortValues {
			slices.Sort(values)
		}
		return values
	}
	width := len(f.res.oids)
	lines := make([]string, 0, f.res.rows)
	var b strings.Builder
	for i := range f.res.rows {
		b.Reset()
		for c := range width {
			if c > 0 {
				b.WriteByte(' ')
			}
			v, null := f.res.value(i, c)
			b.WriteString(squeeze(rsValue(v, null)))
		}
		lines = append(lines, b.String())
	}
	return lines
}

// rawLines are the rows with the blanks in their values kept.
func (f *fileRunner) rawLines() []string {
	lines := make([]string, 0, f.res.rows)
	for i := range f.res.rows {
		var vals []string
		for c := range f.res.oids {
			v, null := f.res.value(i, c)
			vals = append(vals, rsValue(v, null))
		}
		lines = append(lines, strings.Join(vals, " "))
	}
	return lines
}
