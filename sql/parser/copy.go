package parser

import "github.com/streamdb/streamdb/sql/pgerror"

// copyStatement parses COPY in the present and the old spelling of its options.
func (s *stream) copyStatement() Node {
	s.expect("copy")
	n := &Copy{}
	if s.accept("binary") { // PostgreSQL 7 spelling
		n.Options = []Option{{Name: "format", Value: Value{Kind: ValueString, Text: "binary"}}}
	}
	if s.isOp("(") {
		s.copyQuery(n)
		s.expect("to")
	} else {
		t := s.name()
		n.Table = &t
		if s.isOp("(") {
			n.Columns = s.columnNames()
		}
		switch s.acceptOne("from", "to") {
		case "from":
			n.From = true
		case "":
			s.unexpected()
		}
	}
	n.Program = s.accept("program")
	switch {
	case !n.Program && n.From && s.accept("stdin"), !n.Program && !n.From && s.accept("stdout"):
	case !n.Program && (s.is("stdin") || s.is("stdout")): // PostgreSQL takes either for either
		s.advance()
	default:
		n.File = s.str()
	}
	s.copyOptions(n)
	return n
}

// copyQuery is the parenthesized query, SUBSCRIBE, or DML with RETURNING.
func (s *stream) copyQuery(n *Copy) {
	s.expectOp("(")
	end := s.closing()
	switch {
	case s.acceptOne("subscribe", "tail") != "":
		n.Subscribe = s.subscribe(end)
	case s.is("insert"), s.is("update"), s.is("delete"), s.is("merge"):
		if end <= s.i {
			s.unexpected()
			return
		}
		start, stop := s.peek().start, s.toks[end-1].end
		stmt, base := s.embed("", end, "")
		if stmt != nil {
			n.DML = &Statement{Text: s.text, Start: start, Len: stop - start, Node: &Postgres{Stmt: stmt, Base: base}}
		}
	default:
		q := s.queryWithAsOf(end)
		n.Query = &q
	}
	s.expectOp(")")
}

func (s *stream) copyOptions(n *Copy) {
	paren := s.isOp("(") || s.is("with") && s.peekAt(1).val == "("
	s.accept("with")
	if paren {
		n.Options = append(n.Options, s.copyOptionList()...)
	}
	add := func(name string, v Value) {
		n.Options = append(n.Options, Option{Name: name, Value: v, Pos: s.pos()})
	}
	for s.err == nil && !s.eof() {
		switch {
		case n.From && s.accept("where"):
			e := s.exprUntil(len(s.toks) - 1)
			n.Where = &e
		case s.is("where") && !n.From:
			s.refuse(pgerror.New(pgerror.SyntaxError, "WHERE clause not allowed with COPY TO").At(s.pos()))
		case paren:
			s.unexpected()
		case s.is("binary"), s.is("csv"), s.is("text"):
			add("format", Value{Kind: ValueString, Text: s.advance().val})
		case s.is("delimiter"), s.is("delimiters"), s.is("null"), s.is("quote"), s.is("escape"), s.is("encoding"):
			name := s.advance().val
			if name == "delimiters" {
				name = "delimiter"
			}
			s.accept("as")
			add(name, Value{Kind: ValueString, Text: s.str()})
		case s.accept("using", "delimiters"):
			add("delimiter", Value{Kind: ValueString, Text: s.str()})
		case s.accept("header"):
			add("header", Value{Kind: ValueBool, Text: "true"})
		case s.accept("freeze"):
		case s.accept("force"):
			s.copyForce(add)
		default:
			s.unexpected()
		}
	}
}

func (s *stream) copyForce(add func(string, Value)) {
	name := "force_quote"
	switch {
	case s.accept("quote"):
	case s.accept("not", "null"):
		name = "force_not_null"
	case s.accept("null"):
		name = "force_null"
	default:
		s.unexpected()
		return
	}
	v := Value{Kind: ValueList}
	if s.acceptOp("*") {
		v = Value{Kind: ValueString, Text: "*"}
	} else {
		for {
			v.List = append(v.List, Value{Kind: ValueIdent, Text: s.ident()})
			if !s.acceptOp(",") {
				break
			}
		}
	}
	add(name, v)
}

// copyOptionList is `(name [value], …)`.
func (s *stream) copyOptionList() []Option {
	var out []Option
	s.expectOp("(")
	for s.err == nil {
		o := Option{Pos: s.pos(), Name: s.label()}
		switch {
		case s.isOp(","), s.isOp(")"):
		case s.acceptOp("*"):
			o.Value = Value{Kind: ValueString, Text: "*"}
		default:
			s.acceptOp("=")
			o.Value = s.value()
		}
		out = append(out, o)
		if !s.acceptOp(",") {
			break
		}
	}
	s.expectOp(")")
	return out
}
