package sqllogictest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// edit is a record whose expectation is rewritten.
type edit struct {
	r      *record
	header string   // "": as it was
	result []string // lines from ---- on; nil: none
}

// noteEdit makes the record expect what the server says; false: it passes as
// it is, or there is no answer to expect.
func (f *fileRunner) noteEdit(r *record, v *verdict) bool {
	if v == nil || v.skip || v.noAnswer {
		return false
	}
	e := edit{r: r}
	word := r.kind.String()
	switch {
	case f.res.err != nil:
		e.header = word + " error (" + f.res.err.code + ")"
	case r.kind == kindStatement && r.wantError:
		e.header = "statement ok"
	case r.kind == kindStatement:
		e.header = "statement count " + strconv.Itoa(f.res.affected)
	default:
		if r.wantError || len(r.types) != len(f.res.oids) {
			e.header = f.queryHeader(r)
			r.types = strings.Fields(e.header)[1]
		}
		e.result = append([]string{"----"}, f.expectation(r)...)
	}
	f.edits = append(f.edits, e)
	return true
}

// queryHeader is a header with the letters of the answer's types.
func (f *fileRunner) queryHeader(r *record) string {
	letters := make([]byte, 0, len(f.res.oids))
	for _, o := range f.res.oids {
		switch o {
		case 20, 21, 23, 26: // integers
			letters = append(letters, 'I')
		case 700, 701, 1700: // floats, numeric
			letters = append(letters, 'R')
		default:
			letters = append(letters, 'T')
		}
	}
	h := "query " + string(letters)
	for name, m := range sortModes {
		if m == r.sort {
			h += " " + name
		}
	}
	if r.label != "" {
		h += " " + r.label
	}
	return h
}

// expectation is the answer as the dialect writes it.
func (f *fileRunner) expectation(r *record) []string {
	mode := f.sortOf(r)
	if f.sqlite {
		values := f.rendered(r, mode)
		if f.threshold > 0 && len(values) > f.threshold {
			return []string{fmt.Sprintf("%d values hashing to %s", len(values), md5Values(values))}
		}
		return values
	}
	lines := f.rsLines(r, mode)
	if mode == sortRows && !f.valuewise {
		slices.Sort(lines)
	}
	return lines
}

// update writes the edits into their files.
func (f *fileRunner) update() {
	byFile := map[string][]edit{}
	for _, e := range f.edits {
		byFile[e.r.file.path] = append(byFile[e.r.file.path], e)
	}
	for path, edits := range byFile {
		if err := rewriteFile(path, edits); err != nil {
			f.report.Fatal = errors.Join(f.report.Fatal, fmt.Errorf("cannot rewrite: %w", err))
			continue
		}
		f.report.Updated = append(f.report.Updated, path)
	}
	slices.Sort(f.report.Updated)
}

// rewriteFile replaces the records of edits, whose lines are those of the file
// as it was read. Of several edits of one record (a file included twice) the
// last counts.
func rewriteFile(path string, edits []edit) error {
	if strings.HasSuffix(path, ".gz") {
		return fmt.Errorf("%s is compressed", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	eol := "\n"
	if strings.Contains(string(data), "\r\n") {
		eol = "\r\n"
	}
	lines := splitLines(string(data))
	byLine := map[int]edit{}
	for _, e := range edits {
		byLine[e.r.line] = e
	}
	var out []string
	for i := 0; i < len(lines); {
		e, ok := byLine[i+1]
		if !ok {
			out = append(out, lines[i])
			i++
			continue
		}
		header := lines[i]
		if e.header != "" {
			header = e.header
		}
		out = append(out, header)
		out = append(out, lines[i+1:e.r.headEnd]...)
		out = append(out, e.result...)
		i = e.r.bodyEnd
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.Join(out, eol)), st.Mode().Perm())
}
