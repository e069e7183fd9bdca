package sqllogictest

import (
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Dialect is one of the two ways in which test files are written.
type Dialect uint8

// The dialects. Auto goes by the file's name: .test is SQLite's, .slt and
// .slt.part are sqllogictest-rs's.
const (
	DialectAuto Dialect = iota
	DialectSQLite
	DialectRS
)

func dialectOf(path string) Dialect {
	if strings.HasSuffix(strings.TrimSuffix(path, ".gz"), ".test") {
		return DialectSQLite
	}
	return DialectRS
}

type recordKind uint8

const (
	kindStatement recordKind = iota
	kindQuery
	kindSystem
	kindLet
	kindHalt
	kindSleep
	kindControl
	kindHashThreshold
	kindMissingInclude
	kindForeign // a directive of another runner
	kindBad     // not understood
	kindUnreadable
)

func (k recordKind) String() string {
	return [...]string{"statement", "query", "system", "let", "halt", "sleep", "control", "hash-threshold", "include", "foreign", "bad", "file"}[k]
}

type sortMode uint8

const (
	sortUnset sortMode = iota
	sortNone
	sortRows
	sortValues
)

var sortModes = map[string]sortMode{"nosort": sortNone, "rowsort": sortRows, "valuesort": sortValues}

type condition struct {
	onlyIf bool
	label  string
}

// record is one entry of a file.
type record struct {
	kind  recordKind
	file  *source
	line  int // of the header, from 1
	conds []condition
	conn  string // of a `connection` line before it

	sql    string
	types  string
	sort   sortMode
	label  string
	expect []string

	hasResult bool // there is a ----
	multiline bool
	wantError bool
	errRegex  string
	errCode   string
	errText   string
	count     int // -1: not checked

	tries    int
	backoff  time.Duration
	pause    time.Duration
	args     []string
	arg      string
	headEnd  int // lines of the body: [line, headEnd) is SQL, as 0-based indexes
	resultAt int // first line after ----, 0-based; headEnd if there is no result
	bodyEnd  int // the line after the record, 0-based
}

// source is one file, included or not.
type source struct {
	path  string
	shown string
}

var (
	hashedResult = regexp.MustCompile(`^(\d+) values hashing to ([0-9a-f]{32})$`)
	sqlstateOnly = regexp.MustCompile(`^\(([0-9A-Za-z]{5})\)$`)
	durationPart = regexp.MustCompile(`(\d+(?:\.\d+)?)\s*([a-z]+)`)
)

// foreignWords are directives of other runners: their blocks are skipped.
var foreignWords = strings.Fields(`require require-env test-env load restart reconnect unzip tags set reset continue
	loop foreach concurrentloop concurrentforeach endloop mode reset-server simple copy user nodeidx subtest`)

const maxIncludeDepth = 20

// parser collects the records of a file and of what it includes.
type parser struct {
	dialect Dialect
	records []*record
}

// counted says whether the record is one of those that are counted and limited.
func (r *record) counted() bool {
	switch r.kind {
	case kindStatement, kindQuery, kindSystem, kindLet:
		return true
	}
	return false
}

// parseFile reads a file. The error is about the place where reading stopped;
// the records before it are valid.
func parseFile(path, shown string, dialect Dialect) ([]*record, error) {
	if dialect == DialectAuto {
		dialect = dialectOf(path)
	}
	p := &parser{dialect: dialect}
	err := p.file(path, shown, 0)
	return p.records, err
}

func readText(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	if st, err := f.Stat(); err == nil {
		b.Grow(int(st.Size()) + 1)
	}
	_, err = io.Copy(&b, r)
	return b.String(), err
}

func splitLines(text string) []string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

// comment stands for a comment line of the SQLite dialect, which counts
// nowhere, not even inside a record.
const comment = "\x00"

func (p *parser) file(path, shown string, depth int) error {
	text, err := readText(path)
	if err != nil {
		return err
	}
	lines := splitLines(text)
	if p.dialect == DialectSQLite {
		for i, l := range lines {
			if strings.HasPrefix(l, "#") {
				lines[i] = comment
			} else if strings.TrimSpace(l) == "" {
				lines[i] = ""
			}
		}
	}
	f := &fileParser{parser: p, src: &source{path, shown}, lines: lines, depth: depth}
	return f.run()
}

type fileParser struct {
	*parser
	src   *source
	lines []string
	i     int
	depth int
	conds []condition
	conn  string
}

func (f *fileParser) run() error {
	for f.i < len(f.lines) {
		line := f.lines[f.i]
		f.i++
		if line == comment || strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		if err := f.entry(line, strings.Fields(line)); err != nil {
			return fmt.Errorf("%s:%d: %w", f.src.shown, f.i, err)
		}
	}
	return nil
}

func (f *fileParser) entry(line string, tok []string) error {
	switch tok[0] {
	case "skipif", "onlyif":
		c := condition{onlyIf: tok[0] == "onlyif"}
		if len(tok) > 1 {
			c.label = strings.ToLower(tok[1])
		}
		f.conds = append(f.conds, c)
		return nil
	case "connection":
		if len(tok) < 2 {
			return fmt.Errorf("connection without a name")
		}
		f.conn = tok[1]
		return nil
	case "subtest":
		return nil
	}
	r := &record{file: f.src, line: f.i, conds: f.conds, conn: f.conn, count: -1, tries: 1}
	f.conds, f.conn = nil, ""
	arg := func(i int) string {
		if i < len(tok) {
			return tok[i]
		}
		return ""
	}
	var err error
	switch tok[0] {
	case "hash-threshold":
		r.kind = kindHashThreshold
		r.count, err = strconv.Atoi(arg(1))
	case "halt":
		r.kind = kindHalt
	case "sleep":
		r.kind = kindSleep
		r.pause, err = parseDuration(strings.Join(tok[1:], " "))
	case "control":
		r.kind, r.args = kindControl, tok[1:]
	case "include":
		if len(tok) < 2 {
			return fmt.Errorf("include without a target")
		}
		return f.include(tok[1], r)
	case "statement", "query", "system", "let":
		err = f.sqlRecord(r, line, tok)
	default:
		f.skipForeign(r, line, tok[0])
	}
	if err != nil {
		return err
	}
	f.records = append(f.records, r)
	return nil
}

// skipForeign skips the block of a directive that is not ours.
func (f *fileParser) skipForeign(r *record, line, word string) {
	r.kind, r.arg = kindBad, line
	if slices.Contains(foreignWords, word) {
		r.kind = kindForeign
	}
	nested := 0
	switch word {
	case "loop", "foreach", "concurrentloop", "concurrentforeach":
		nested = 1
	}
	for f.i < len(f.lines) && (nested > 0 || f.lines[f.i] != "") {
		if nested > 0 {
			switch first, _, _ := strings.Cut(f.lines[f.i], " "); first {
			case "loop", "foreach":
				nested++
			case "endloop":
				nested--
			}
		}
		f.i++
	}
}

// include inserts the files that a pattern names. None: they are not here, and
// that is skipped, not failed.
func (f *fileParser) include(pattern string, r *record) error {
	base := filepath.Dir(f.src.path)
	hits, err := glob(filepath.Join(base, pattern))
	if err != nil {
		return err
	}
	more, err := glob(filepath.Join(base, pattern) + ".gz")
	if err != nil {
		return err
	}
	hits = append(hits, more...)
	slices.Sort(hits)
	hits = slices.Compact(hits)
	if len(hits) == 0 || f.depth > maxIncludeDepth {
		r.kind, r.arg = kindMissingInclude, pattern
		f.records = append(f.records, r)
		return nil
	}
	for _, hit := range hits {
		rel, err := filepath.Rel(base, hit)
		if err != nil {
			rel = hit
		}
		shown := strings.TrimSuffix(filepath.Join(filepath.Dir(f.src.shown), rel), ".gz")
		if err := f.parser.file(hit, shown, f.depth+1); err != nil {
			return err
		}
	}
	return nil
}

// glob is filepath.Glob that knows `**` for any number of folders.
func glob(pattern string) ([]string, error) {
	if !strings.Contains(pattern, "**") {
		return filepath.Glob(pattern)
	}
	root := pattern[:strings.Index(pattern, "**")]
	rx, err := globRegexp(pattern)
	if err != nil {
		return nil, err
	}
	var out []string
	err = filepath.WalkDir(filepath.Clean(root), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && rx.MatchString(p) {
			out = append(out, p)
		}
		return nil
	})
	return out, err
}

// globRegexp turns a pattern with `*`, `?`, `[…]` and `**` into an expression.
func globRegexp(pattern string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString("^")
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case strings.HasPrefix(pattern[i:], "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(pattern[i:], "**"):
			b.WriteString(".*")
			i++
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '[' && strings.Contains(pattern[i:], "]"):
			end := i + strings.Index(pattern[i:], "]")
			set := pattern[i+1 : end]
			if strings.HasPrefix(set, "!") {
				set = "^" + set[1:]
			}
			b.WriteString("[" + set + "]")
			i = end
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	b.WriteString("$")
	return regexp.Compile(b.String())
}

// sqlRecord reads a record with SQL and perhaps a result.
func (f *fileParser) sqlRecord(r *record, line string, tok []string) error {
	start := f.i
	if f.i < len(f.lines) && f.dialect != DialectSQLite {
		f.i++ // the first line belongs to the SQL even when it is empty
	}
	for f.i < len(f.lines) && f.lines[f.i] != "" && f.lines[f.i] != "----" {
		f.i++
	}
	r.sql = joinLines(f.lines[start:f.i])
	r.headEnd, r.resultAt, r.bodyEnd = f.i, f.i, f.i
	r.hasResult = f.i < len(f.lines) && f.lines[f.i] == "----"
	if err := r.header(line, tok); err != nil {
		return err
	}
	if r.hasResult {
		f.i++
		r.resultAt = f.i
		f.result(r, tok)
		r.bodyEnd = f.i
	}
	return nil
}

func joinLines(lines []string) string {
	kept := make([]string, 0, len(lines))
	for _, l := range lines {
		if l != comment {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}

// header reads the words after statement, query, system or let.
func (r *record) header(line string, tok []string) error {
	rest := tok[1:]
	head := ""
	if len(rest) > 0 {
		head = rest[0]
	}
	var err error
	switch {
	case tok[0] == "system":
		r.kind = kindSystem
	case tok[0] == "let":
		r.kind = kindLet
		for v := range strings.SplitSeq(strings.Join(rest, " "), ",") {
			r.args = append(r.args, strings.TrimSpace(v))
		}
	case head == "error":
		r.kind = kindStatement
		if tok[0] == "query" {
			r.kind = kindQuery
		}
		r.wantError = true
		if isRetry(rest[1:]) {
			return r.retry(rest[1:])
		}
		_, after, _ := strings.Cut(line, "error")
		after = strings.TrimSpace(after)
		if m := sqlstateOnly.FindStringSubmatch(after); m != nil {
			r.errCode = m[1]
		} else {
			r.errRegex = after
		}
	case tok[0] == "query":
		err = r.queryHeader(head, rest)
	case head == "count":
		if len(rest) < 2 {
			return fmt.Errorf("statement count without a number")
		}
		if r.count, err = strconv.Atoi(rest[1]); err == nil {
			err = r.retry(rest[2:])
		}
	case head == "maybe":
		r.kind, r.arg = kindForeign, line
	case head == "ok":
		err = r.retry(rest[1:])
	default:
		r.kind, r.arg = kindBad, line
	}
	return err
}

func (r *record) queryHeader(types string, rest []string) error {
	r.kind, r.types = kindQuery, types
	if len(rest) > 0 {
		rest = rest[1:]
	}
	if len(rest) > 0 {
		options := strings.Split(rest[0], ",")
		known := true
		for _, o := range options {
			if _, ok := sortModes[o]; !ok && o != "colnames" && o != "multiline" {
				known = false
			}
		}
		if known {
			for _, o := range options {
				if m, ok := sortModes[o]; ok && r.sort == sortUnset {
					r.sort = m
				}
			}
			rest = rest[1:]
		}
	}
	if len(rest) > 0 && rest[0] != "retry" && !strings.HasPrefix(rest[0], "#") {
		r.label, rest = rest[0], rest[1:]
	}
	return r.retry(rest)
}

func isRetry(tok []string) bool {
	return len(tok) >= 4 && tok[0] == "retry" && tok[2] == "backoff"
}

func (r *record) retry(tok []string) error {
	if !isRetry(tok) {
		return nil
	}
	n, err := strconv.Atoi(tok[1])
	if err != nil {
		return err
	}
	r.tries = max(n, 1)
	r.backoff, err = parseDuration(tok[3])
	return err
}

var durationUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "sec": time.Second,
	"secs": time.Second, "second": time.Second, "seconds": time.Second, "m": time.Minute, "min": time.Minute, "mins": time.Minute,
	"minute": time.Minute, "minutes": time.Minute, "h": time.Hour, "hour": time.Hour, "hours": time.Hour,
}

// parseDuration reads 5s, 500ms, 1m 30s; a bare number is seconds.
func parseDuration(s string) (time.Duration, error) {
	parts := durationPart.FindAllStringSubmatch(s, -1)
	if parts == nil {
		n, err := strconv.ParseFloat(s, 64)
		return time.Duration(n * float64(time.Second)), err
	}
	var d time.Duration
	for _, p := range parts {
		n, err := strconv.ParseFloat(p[1], 64)
		if err != nil {
			return 0, err
		}
		unit, ok := durationUnits[p[2]]
		if !ok {
			unit = time.Second
		}
		d += time.Duration(n * float64(unit))
	}
	return d, nil
}

// result reads what follows ----: rows end at a blank line, error texts at two,
// multiline results at EOF.
func (f *fileParser) result(r *record, tok []string) {
	isQuery := tok[0] == "query"
	multiline := isQuery && slices.Contains(tok, "multiline")
	twoBlank := r.wantError || r.kind == kindSystem
	var out []string
	for ; f.i < len(f.lines); f.i++ {
		l := f.lines[f.i]
		if multiline && !r.wantError {
			if l == "EOF" {
				f.i++
				break
			}
		} else if l == "" && (!twoBlank || f.i+1 >= len(f.lines) || f.lines[f.i+1] == "") {
			break
		}
		if l != comment {
			out = append(out, l)
		}
	}
	switch {
	case r.wantError:
		r.errText = strings.TrimSpace(strings.Join(out, "\n"))
	case multiline:
		r.multiline = true
		r.expect = []string{strings.Join(out, "\n")}
	case isQuery && len(tok) > 2 && slices.Contains(strings.Split(tok[2], ","), "colnames") && len(out) > 0:
		r.expect = out[1:]
	default:
		r.expect = out
	}
}
