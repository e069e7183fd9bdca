package parser

import (
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// subscribe parses what follows SUBSCRIBE or TAIL up to token end.
func (s *stream) subscribe(end int) *Subscribe {
	n := &Subscribe{Snapshot: true}
	s.accept("to")
	if s.isOp("(") {
		q := s.parenQuery()
		n.Query = &q
	} else {
		name := s.name()
		n.Name = &name
	}
	for s.err == nil && s.i < end {
		switch {
		case s.accept("envelope"):
			s.subscribeEnvelope(n)
		case s.accept("within", "timestamp", "order", "by"):
			n.OrderBy = append(n.OrderBy, s.indexKey("as", "up", "with"))
			for s.acceptOp(",") {
				n.OrderBy = append(n.OrderBy, s.indexKey("as", "up", "with"))
			}
		case s.isWith():
			s.subscribeOptions(n)
		case s.is("as", "of"):
			n.AsOf = s.asOf(end)
		case s.accept("up", "to"):
			e := s.exprUntil(min(end, s.until("as", "with")))
			n.UpTo = &e
		default:
			s.unexpected()
		}
	}
	return n
}

func (s *stream) subscribeEnvelope(n *Subscribe) {
	n.Envelope = s.acceptOne("upsert", "debezium")
	if n.Envelope == "" {
		s.unexpected()
		return
	}
	s.expectOp("(")
	s.expect("key")
	n.EnvelopeKey = s.columnNames()
	s.expectOp(")")
}

func (s *stream) subscribeOptions(n *Subscribe) {
	for _, o := range s.withOptions() {
		on := o.Value.Kind == ValueNone || strings.EqualFold(o.Value.Text, "true") ||
			strings.EqualFold(o.Value.Text, "on") || o.Value.Text == "1"
		switch o.Name {
		case "snapshot":
			n.Snapshot = on
		case "progress":
			n.Progress = on
		default:
			n.With = append(n.With, o)
		}
	}
}

// asOf is AS OF [AT LEAST] expr.
func (s *stream) asOf(end int) *AsOf {
	s.expect("as", "of")
	a := &AsOf{AtLeast: s.accept("at", "least")}
	a.Expr = s.exprUntil(min(end, s.until("up", "with")))
	return a
}

func (s *stream) declare() Node {
	s.expect("declare")
	n := &DeclareCursor{Name: s.ident()}
	if s.accept("subscription") { // RisingWave: DECLARE c SUBSCRIPTION CURSOR FOR s SINCE …
		s.expect("cursor", "for")
		sub := s.name()
		n.Subscription = &sub
		if s.accept("full") {
			n.Full = true
		} else if s.accept("since") {
			e := s.exprUntil(len(s.toks) - 1)
			n.Since = &e
		}
		return n
	}
	asensitive := false
	for !s.is("cursor") && s.err == nil {
		switch {
		case s.accept("binary"):
			n.Binary = true
		case s.accept("insensitive"):
			n.Insensitive = true
		case s.accept("asensitive"):
			asensitive = true
		case s.accept("scroll"):
			n.Scroll = true
		case s.accept("no", "scroll"):
			n.NoScroll = true
		default:
			s.unexpected()
		}
	}
	s.expect("cursor")
	if n.Scroll && n.NoScroll {
		s.refuse(pgerror.New(pgerror.InvalidCursorDefinition, "cannot specify both SCROLL and NO SCROLL"))
	} else if n.Insensitive && asensitive {
		s.refuse(pgerror.New(pgerror.InvalidCursorDefinition, "cannot specify both ASENSITIVE and INSENSITIVE"))
	}
	if s.accept("with", "hold") {
		n.Hold = true
	} else {
		s.accept("without", "hold")
	}
	s.expect("for")
	if s.acceptOne("subscribe", "tail") != "" {
		n.Subscribe = s.subscribe(len(s.toks) - 1)
		return n
	}
	q := s.queryWithAsOf(len(s.toks) - 1)
	n.Query = &q
	return n
}

// queryWithAsOf is a query that may end in AS OF.
func (s *stream) queryWithAsOf(end int) Query {
	at := s.lastAsOf(end)
	if at < 0 {
		return s.queryUntil(end)
	}
	q := s.queryUntil(at)
	q.AsOf = s.asOf(end)
	return q
}

// lastAsOf finds AS OF outside of parentheses before token end, -1 if there is
// none. SYSTEM_TIME AS OF and a column alias "of" are something else.
func (s *stream) lastAsOf(end int) int {
	depth, at := 0, -1
	for i := s.i; i+2 < end; i++ {
		t := s.toks[i]
		switch {
		case t.kind == tokOp && (t.val == "(" || t.val == "["):
			depth++
		case t.kind == tokOp && (t.val == ")" || t.val == "]"):
			depth--
		case depth == 0 && i > s.i && t.kind == tokWord && t.val == "as" &&
			s.toks[i+1].kind == tokWord && s.toks[i+1].val == "of" &&
			s.toks[i-1].val != "system_time" && !endsAlias(s.toks[i+2]):
			at = i
		}
	}
	return at
}

// endsAlias reports whether the token cannot begin an expression, so that `of`
// before it is an alias.
func endsAlias(t token) bool {
	return t.kind == tokOp && t.val != "(" && t.val != "-" && t.val != "+" ||
		t.kind == tokWord && reserved[t.val] && t.val != "current_timestamp" && t.val != "cast" && t.val != "case"
}

func (s *stream) fetch() Node {
	n := &Fetch{Move: s.advance().val == "move", Count: 1}
	s.fetchDirection(n)
	if s.acceptOne("from", "in") == "" && n.Cursor == "" && s.eof() {
		s.unexpected()
	}
	n.Cursor = s.ident()
	n.With = s.withOptions()
	return n
}

// fetchDirection reads the direction, unless what comes next is the cursor.
func (s *stream) fetchDirection(n *Fetch) {
	next := s.peekAt(1)
	if s.isIdent() && (next.kind == tokEOF || next.val == "with") {
		return
	}
	signed := func() int64 {
		neg := s.acceptOp("-")
		if !neg {
			s.acceptOp("+")
		}
		v := s.integer()
		if neg {
			return -v
		}
		return v
	}
	switch {
	case s.accept("next"):
	case s.accept("prior"):
		n.Direction = FetchBackward
	case s.accept("first"):
		n.Direction = FetchAbsolute
	case s.accept("last"):
		n.Direction, n.Count = FetchAbsolute, -1
	case s.accept("absolute"):
		n.Direction, n.Count = FetchAbsolute, signed()
	case s.accept("relative"):
		n.Direction, n.Count = FetchRelative, signed()
	case s.accept("all"):
		n.Count = FetchAll
	case s.accept("forward"), s.is("backward"):
		if s.accept("backward") {
			n.Direction = FetchBackward
		}
		if s.accept("all") {
			n.Count = FetchAll
		} else if k := s.peek(); k.kind == tokNumber || k.val == "-" || k.val == "+" {
			n.Count = signed()
		}
	case s.peek().kind == tokNumber, s.isOp("-"), s.isOp("+"):
		n.Count = signed()
	}
}

func (s *stream) closeCursor() Node {
	s.expect("close")
	if s.accept("all") {
		return &CloseCursor{}
	}
	return &CloseCursor{Name: s.ident()}
}
