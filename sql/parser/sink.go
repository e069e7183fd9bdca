package parser

import "github.com/streamdb/streamdb/sql/pgerror"

// createSink parses what follows CREATE SINK, in both spellings.
func (s *stream) createSink() Node {
	n := &CreateSink{IfNotExists: s.ifNotExists()}
	if !s.is("from") && !s.is("in", "cluster") {
		n.Name = s.name()
	}
	if s.accept("in", "cluster") {
		n.Cluster = s.ident()
	}
	if s.is("into") { // RisingWave: SINK INTO table
		s.sinkTarget(n)
	}
	switch {
	case s.accept("from"):
		f := s.name()
		n.From = &f
	case s.accept("as"):
		n.Changelog = s.changelog()
		q := s.queryUntil(s.sinkQueryEnd())
		n.Query = &q
	default:
		s.unexpected()
	}
	if s.is("into") {
		s.sinkTarget(n)
	}
	s.sinkClauses(n)
	return n
}

// changelog is WITH name AS CHANGELOG FROM relation, nil if that is not next.
func (s *stream) changelog() *Changelog {
	if t := s.peekAt(1); !s.is("with") || !identToken(t) || s.peekAt(2).val != "as" || s.peekAt(3).val != "changelog" || s.peekAt(4).val != "from" {
		return nil
	}
	s.expect("with")
	c := &Changelog{Name: s.ident()}
	s.expect("as", "changelog", "from")
	c.Of = s.name()
	if s.isOp(",") {
		s.refuse(pgerror.Unsupported("a further WITH query beside a changelog").At(s.pos()))
	}
	return c
}

// refuseChangelog says that a changelog up to a token is not there.
func (s *stream) refuseChangelog(end int) {
	for i := s.i + 2; i+2 < end; i++ {
		if t := s.toks[i]; t.kind == tokWord && t.val == "changelog" && s.toks[i-1].val == "as" && s.toks[i+1].val == "from" {
			s.refuse(pgerror.Unsupported("AS CHANGELOG FROM outside of a sink into a table").
				WithHint("What a changelog holds depends on when it was read; CREATE SINK ... INTO table AS WITH ... AS CHANGELOG FROM ... keeps one in a table.").
				At(Position(s.text, t.start)))
			return
		}
	}
}

// sinkQueryEnd finds the WITH (connector = …) that ends the query of a sink.
func (s *stream) sinkQueryEnd() int {
	end := len(s.toks) - 1
	for i := end - 2; i > s.i; i-- {
		if t := s.toks[i]; t.kind == tokWord && t.val == "with" && s.toks[i+1].val == "(" {
			return i
		}
	}
	return end
}

// sinkTarget is INTO KAFKA CONNECTION c (…) or INTO table [(columns)].
func (s *stream) sinkTarget(n *CreateSink) {
	s.expect("into")
	if s.peekAt(1).val == "connection" {
		n.Kind = s.label()
		s.expect("connection")
		c := s.name()
		n.Connection = &c
		if s.isOp("(") {
			n.Options = s.options()
		}
		return
	}
	t := s.name()
	n.Into = &t
	if s.isOp("(") {
		n.IntoColumns = s.columnNames()
	}
}

func (s *stream) sinkClauses(n *CreateSink) {
	for s.err == nil && !s.eof() {
		switch {
		case s.accept("key", "format"):
			n.KeyFormat = s.format()
		case s.accept("value", "format"):
			n.Format = s.format()
		case s.accept("key"):
			n.Key = s.columnNames()
			n.KeyNotEnforced = s.accept("not", "enforced")
		case s.accept("headers"):
			n.Headers = s.ident()
		case s.is("format") && s.peekAt(2).val == "encode":
			n.FormatEncode = s.formatEncode()
		case s.accept("format"):
			n.Format = s.format()
		case s.accept("envelope"):
			n.Envelope = s.envelope()
		case s.isWith():
			n.With = append(n.With, s.withOptions()...)
		default:
			s.unexpected()
		}
	}
}
