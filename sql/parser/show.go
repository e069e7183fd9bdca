package parser

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// showKinds are the kinds of objects that SHOW lists, by spelling.
var showKinds = []string{
	"materialized views", "network policies", "internal tables", "default privileges", "system privileges", "role membership", "subscription cursors",
	"cluster replicas", "catalogs", "tables", "sources", "views", "indexes", "columns", "schemas",
	"databases", "connections", "secrets", "sinks", "clusters", "objects", "roles", "types", "functions",
	"subsources", "subscriptions", "jobs", "cursors", "parameters", "processlist", "privileges",
}

func (s *stream) show() Node {
	s.expect("show")
	if s.is("redacted", "create") {
		s.advance()
	}
	if s.accept("create") {
		n := &ShowCreate{Kind: s.objectKind()}
		if n.Kind == "" && s.accept("function") {
			n.Kind = ObjectFunction
		}
		if n.Kind == "" {
			s.unexpected()
			return nil
		}
		n.Name = s.objectName(n.Kind)
		return n
	}
	full := s.is("full") && s.peekAt(1).kind == tokWord && s.accept("full")
	for _, k := range showKinds {
		if s.accept(strings.Split(k, " ")...) {
			return s.showObjects(&Show{Kind: strings.TrimPrefix(k, "subscription "), Full: full})
		}
	}
	if s.accept("index") || s.accept("keys") {
		return s.showObjects(&Show{Kind: "indexes"})
	}
	return s.showVariable()
}

func (s *stream) showObjects(n *Show) Node {
	for s.err == nil && !s.eof() {
		switch {
		case s.accept("in", "cluster"), s.accept("from", "cluster"):
			n.Cluster = s.ident()
		case s.accept("from"), s.accept("in"), s.accept("on"):
			in := s.name()
			n.In = &in
		case s.accept("like"):
			text := s.str()
			n.Like = &text
		case s.accept("ilike"):
			text := strings.ToLower(s.str())
			n.Like = &text
		case s.accept("where"):
			e := s.exprUntil(len(s.toks) - 1)
			n.Where = &e
		default:
			s.unexpected()
		}
	}
	return n
}

// describe is DESCRIBE relation.
func (s *stream) describe() Node {
	s.advance()
	if (s.is("fragments") || s.is("fragment")) && s.peekAt(1).kind != tokEOF && s.peekAt(1).kind != tokOp {
		return s.absent("DESCRIBE FRAGMENTS", "EXPLAIN PHYSICAL PLAN FOR MATERIALIZED VIEW shows the operators of a view.")
	}
	s.accept("table")
	n := s.name()
	return &Show{Kind: "relation", In: &n}
}

func (s *stream) showVariable() Node {
	n := &ShowVariable{Pos: s.pos()}
	switch {
	case s.accept("time", "zone"):
		n.Name = "timezone"
	case s.accept("transaction", "isolation", "level"):
		n.Name = "transaction_isolation"
	case s.accept("session", "authorization"):
		n.Name = "session_authorization"
	case s.accept("all"):
		n.Name = "all"
	default:
		n.Name = s.settingName()
	}
	return n
}

// settingName is a name of any number of parts, lower-case.
func (s *stream) settingName() string {
	parts := []string{s.ident()}
	for s.acceptOp(".") {
		parts = append(parts, s.label())
	}
	return strings.ToLower(strings.Join(parts, "."))
}

// set parses SET; nil without an error leaves the statement to PostgreSQL's
// grammar (SET TRANSACTION, SET CONSTRAINTS, FROM CURRENT).
func (s *stream) set() Node {
	s.expect("set")
	n := &SetVariable{Pos: s.pos()}
	switch {
	case s.is("session", "authorization"), s.is("transaction"), s.is("constraints"):
	case s.accept("local"):
		n.Local = true
	default:
		s.accept("session")
	}
	switch {
	case s.is("transaction"), s.is("constraints"), s.is("characteristics"):
		return nil
	case s.accept("time", "zone"):
		s.setTimeZone(n)
		return n
	case s.accept("xml", "option"):
		if !s.is("document") && !s.is("content") {
			s.unexpected()
			return nil
		}
		n.Name, n.Values = "xmloption", []Value{{Kind: ValueString, Text: s.advance().val}}
		return n
	case s.accept("names"):
		n.Name = "client_encoding"
		if s.peek().kind == tokString {
			n.Values = []Value{s.value()}
		} else if !s.eof() {
			s.expect("default")
		}
		return n
	case s.is("schema") && (s.peekAt(1).kind == tokString || identToken(s.peekAt(1)) && s.peekAt(2).kind == tokEOF):
		s.advance()
		n.Name, n.Values = "search_path", []Value{s.value()}
		return n
	case s.is("role") && s.peekAt(1).val != "=" && s.peekAt(1).val != "to":
		s.advance()
		n.Name, n.Values = "role", []Value{{Kind: ValueString, Text: s.advance().val}}
		return n
	case s.accept("session", "authorization"):
		n.Name = "session_authorization"
		if v := s.advance(); v.val != "default" || v.kind != tokWord {
			n.Values = []Value{{Kind: ValueString, Text: v.val}}
		}
		return n
	}
	n.Name = s.settingName()
	if s.is("from", "current") {
		return nil
	}
	if !s.acceptOp("=") {
		s.expect("to")
	}
	if s.accept("default") {
		return n
	}
	for s.err == nil {
		n.Values = append(n.Values, s.settingValue())
		if !s.acceptOp(",") {
			break
		}
	}
	return n
}

// settingValue is a literal or a word; words that are reserved elsewhere (on)
// are values here.
func (s *stream) settingValue() Value {
	if s.isOp("(") {
		s.unexpected()
	}
	return s.value()
}

func (s *stream) setTimeZone(n *SetVariable) {
	n.Name = "timezone"
	switch {
	case s.accept("local"), s.accept("default"):
	case s.accept("interval"):
		// INTERVAL '+00:00' HOUR TO MINUTE
		n.Values = []Value{{Kind: ValueString, Text: intervalZone(s.str())}}
		if s.accept("hour") {
			s.accept("to", "minute")
		}
	default:
		n.Values = []Value{s.settingValue()}
	}
}

// intervalZone writes an interval east of UTC ("-3:30") in POSIX notation, whose
// sign is the other way round; other texts stay.
func intervalZone(text string) string {
	sign, other, hm := "+", "-", strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(hm, "-"):
		sign, other, hm = "-", "+", hm[1:]
	case strings.HasPrefix(hm, "+"):
		hm = hm[1:]
	}
	h, m, _ := strings.Cut(hm, ":")
	hours, err := strconv.Atoi(h)
	minutes := 0
	if err == nil && m != "" {
		minutes, err = strconv.Atoi(m)
	}
	if err != nil || hours < 0 || minutes < 0 || minutes > 59 {
		return text
	}
	hm = fmt.Sprintf("%02d", hours)
	if minutes > 0 {
		hm += fmt.Sprintf(":%02d", minutes)
	}
	return "<" + sign + hm + ">" + other + hm
}

func (s *stream) reset() Node {
	s.expect("reset")
	n := &SetVariable{Reset: true, Pos: s.pos()}
	switch {
	case s.accept("all"):
		n.Name = "all"
	case s.accept("time", "zone"):
		n.Name = "timezone"
	case s.accept("transaction", "isolation", "level"):
		n.Name = "transaction_isolation"
	case s.accept("session", "authorization"):
		n.Name = "session_authorization"
	default:
		n.Name = s.settingName()
	}
	return n
}

// explainStages are Materialize's names of plans.
var explainStages = []string{
	"raw", "decorrelated", "locally optimized", "optimized", "physical", "logical", "query", "timestamp",
	"filter pushdown", "analyze",
}

func (s *stream) explain() Node {
	s.expect("explain")
	n := &Explain{}
	if s.isOp("(") && !s.parenIsQuery() {
		for _, o := range s.copyOptionList() {
			s.explainOption(n, o)
		}
		if o := n.needsAnalyze; o != "" && !n.Analyze {
			s.refuse(pgerror.New(pgerror.InvalidParameterValue, "EXPLAIN option %s requires ANALYZE", o))
		}
	}
	for _, st := range explainStages {
		words := strings.Split(st, " ")
		next := s.peekAt(len(words))
		if s.is(words...) && next.kind == tokWord && (next.val == "plan" || next.val == "for" || next.val == "with" || next.val == "as") && st != "analyze" {
			s.accept(words...)
			n.Stage = st
		}
	}
	if s.is("broken") || s.is("replan") { // of Materialize
		s.advance()
	}
	if s.is("analyze") && slices.Contains([]string{"memory", "cpu", "hints", "cluster"}, s.peekAt(1).val) && s.peekAt(2).kind != tokEOF {
		return s.absent("EXPLAIN ANALYZE "+strings.ToUpper(s.peekAt(1).val), "streamdb_internal.freshness has the rows and updates of views; EXPLAIN ANALYZE of a query tells how many rows were read.")
	}
	n.Plan = s.accept("plan")
	n.Analyze = n.Analyze || s.accept("analyze") || s.accept("analyse")
	n.Verbose = n.Verbose || s.accept("verbose")
	if s.is("with") && s.peekAt(1).val == "(" {
		n.Options = append(n.Options, s.withOptions()...)
	}
	if s.accept("as") {
		n.Format = s.label()
		if s.accept("text") {
			n.Format = "verbose text"
		}
	}
	// A plan that exists may be named without FOR.
	if s.accept("for") || s.is("materialized") || s.is("view") || s.is("index") {
		for _, kind := range []ObjectKind{ObjectMaterializedView, ObjectView, ObjectIndex} {
			if s.accept(strings.Fields(strings.ToLower(string(kind)))...) {
				v := s.name()
				n.ViewKind, n.View = kind, &v
				return n
			}
		}
	}
	s.explainStatement(n)
	return n
}

// parenIsQuery reports whether the parenthesis opens a query, as in EXPLAIN (SELECT 1).
func (s *stream) parenIsQuery() bool {
	i := s.i
	for s.toks[i].kind == tokOp && s.toks[i].val == "(" && i < len(s.toks)-1 {
		i++
	}
	switch s.toks[i].val {
	case "select", "with", "values", "table":
		return s.toks[i].kind == tokWord
	}
	return false
}

// explainOptions are those of PostgreSQL and of related systems that change
// nothing in what is shown here.
var explainOptions = []string{"costs", "settings", "generic_plan", "buffers", "serialize", "wal", "timing", "summary",
	"memory", "trace", "types", "distsql", "backfill", "verbose", "analyze"}

func (s *stream) explainOption(n *Explain, o Option) {
	text := strings.ToLower(o.Value.Text)
	on, known := true, true
	switch {
	case o.Value.Kind == ValueNone, text == "true", text == "on", text == "1":
	case text == "false", text == "off", text == "0":
		on = false
	default:
		known = false
	}
	switch o.Name {
	case "format":
		switch n.Format = text; text {
		case "text", "json", "yaml", "xml":
		default:
			s.refuse(pgerror.New(pgerror.InvalidParameterValue, "unrecognized value for EXPLAIN option \"format\": \"%s\"", text).At(o.Pos))
		}
		return
	case "logical", "physical":
		n.Stage = o.Name
		return
	case "serialize":
		known = true
	}
	if !slices.Contains(explainOptions, o.Name) {
		s.refuse(pgerror.New(pgerror.SyntaxError, "unrecognized EXPLAIN option \"%s\"", o.Name).At(o.Pos))
	} else if !known {
		s.refuse(pgerror.New(pgerror.SyntaxError, "%s requires a Boolean value", o.Name))
	}
	switch o.Name {
	case "analyze":
		n.Analyze = on
		return
	case "verbose":
		n.Verbose = on
		return
	case "wal", "timing", "serialize":
		if on && o.Value.Text != "none" {
			n.needsAnalyze = strings.ToUpper(o.Name)
		}
	}
	n.Options = append(n.Options, o)
}

func (s *stream) explainStatement(n *Explain) {
	if s.err != nil {
		return
	}
	if s.eof() || s.is("explain") {
		s.unexpected()
		return
	}
	last := len(s.toks) - 1
	p := piece{start: s.peek().start, end: s.toks[last-1].end, whole: s.toks[last].end}
	node, err := parsePiece(s.text, p)
	if err != nil {
		s.fail(asError(err))
		return
	}
	n.Statement = &Statement{Text: s.text, Start: p.start, Len: p.end - p.start, Node: node}
	s.i = last
}
