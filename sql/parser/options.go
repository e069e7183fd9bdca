package parser

import (
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// wordOptions are the options, of one word or more, whose value may be a bare
// word or the name of an object; without the list `SSH TUNNEL t` could not be
// told from a name of three words.
var wordOptions = map[string]bool{
	"ssh tunnel": true, "aws privatelink": true, "aws connection": true, "using ssh tunnel": true,
	"using aws privatelink": true, "compression type": true, "security protocol": true,
	"sasl mechanisms": true, "ssl mode": true, "size": true, "engine": true, "snapshot": true,
	"progress": true, "database": true, "user": true, "connection": true, "progress group id prefix": true,
	"key": true, "on error": true, "isolation": true, "schema": true, "assert not null": true, "format": true,
	"introspection debugging": true, "managed": true, "key strategy": true, "value strategy": true,
	"partition by": true, "reference": true,
}

// options reads `(option, …)`, which may be empty.
func (s *stream) options() []Option {
	var out []Option
	s.expectOp("(")
	if s.acceptOp(")") {
		return nil
	}
	for {
		out = append(out, s.option())
		// What follows a value without a comma qualifies it, as in
		// `BROKER 'b' USING SSH TUNNEL t`; it is an option of its own.
		for s.peek().kind == tokWord {
			out = append(out, s.option())
		}
		if !s.acceptOp(",") {
			break
		}
	}
	s.expectOp(")")
	return out
}

// withOptions reads `WITH (option, …)` if it comes next.
func (s *stream) withOptions() []Option {
	if s.isWith() {
		s.advance()
		return s.options()
	}
	return nil
}

// isWith reports whether `WITH (` comes next.
func (s *stream) isWith() bool {
	return s.is("with") && s.peekAt(1).kind == tokOp && s.peekAt(1).val == "("
}

// option reads `name words [=] value`.
func (s *stream) option() Option {
	o := Option{Pos: s.pos()}
	var words []string
	for t := s.peek(); t.kind == tokWord || t.kind == tokQuoted; t = s.peek() {
		if len(words) > 0 && t.kind == tokWord && (t.val == "secret" && s.peekAt(1).kind != tokOp || t.val == "map") {
			break
		}
		if len(words) > 0 && s.peekAt(1).kind == tokOp && s.peekAt(1).val == "." {
			break // only a name of one word has dots: this is the value
		}
		w := s.advance().val
		for len(words) == 0 && (s.isOp(".") || s.isOp("-")) {
			w += s.advance().val + s.label()
		}
		words = append(words, w)
	}
	if len(words) == 0 {
		s.unexpected()
		return o
	}
	explicit := s.acceptOp("=") || s.acceptOp("=>")
	o.Name = strings.Join(words, " ")
	t := s.peek()
	if o.Name == "backfill_order" && s.accept("fixed") { // RisingWave: FIXED (a -> b, …)
		from := s.peek().start
		s.expectOp("(")
		s.i = s.closing()
		o.Value = Value{Kind: ValueString, Text: "FIXED" + s.text[from:s.peek().end]}
		s.expectOp(")")
		return o
	}
	if explicit || t.kind != tokOp || t.val == "(" || t.val == "[" || t.val == "-" {
		if explicit || !s.eof() {
			o.Value = s.value()
		}
		return o
	}
	last := words[len(words)-1]
	head := strings.Join(words[:len(words)-1], " ")
	switch {
	case head == "":
	case last == "true" || last == "false":
		o.Name, o.Value = head, Value{Kind: ValueBool, Text: last}
	case wordOptions[head]:
		o.Name, o.Value = head, Value{Kind: ValueIdent, Text: last, Name: Name{Name: last, Pos: o.Pos}}
	}
	return o
}

// value reads the value of an option or a setting.
func (s *stream) value() Value {
	t := s.peek()
	switch {
	case t.kind == tokString:
		return Value{Kind: ValueString, Text: s.advance().val}
	case t.kind == tokNumber:
		return Value{Kind: ValueNumber, Text: s.advance().val}
	case t.kind == tokOp && (t.val == "-" || t.val == "+") && s.peekAt(1).kind == tokNumber:
		s.advance()
		text := s.advance().val
		if t.val == "-" {
			text = "-" + text
		}
		return Value{Kind: ValueNumber, Text: text}
	case t.kind == tokOp && (t.val == "(" || t.val == "["):
		return Value{Kind: ValueList, List: s.valueList()}
	case t.kind == tokWord && (t.val == "true" || t.val == "false"):
		return Value{Kind: ValueBool, Text: s.advance().val}
	case t.kind == tokWord && t.val == "null":
		s.advance()
		return Value{Kind: ValueNull}
	case s.is("map") && s.peekAt(1).kind == tokOp && s.peekAt(1).val == "[":
		s.advance()
		return Value{Kind: ValueMap, List: s.mapEntries()}
	case s.is("secret") && identToken(s.peekAt(1)):
		s.advance()
		n := s.name()
		return Value{Kind: ValueSecret, Text: n.Name, Name: n}
	case t.kind == tokWord || t.kind == tokQuoted:
		return s.wordValue()
	}
	s.unexpected()
	return Value{}
}

func (s *stream) wordValue() Value {
	n := Name{Pos: s.pos()}
	parts := []string{s.label()}
	for s.acceptOp(".") {
		parts = append(parts, s.label())
	}
	n.Name = parts[len(parts)-1]
	if len(parts) > 1 {
		n.Schema = parts[len(parts)-2]
	}
	if len(parts) > 2 {
		n.Database = parts[len(parts)-3]
	}
	return Value{Kind: ValueIdent, Text: strings.Join(parts, "."), Name: n}
}

func (s *stream) valueList() []Value {
	out := []Value{}
	closing := ")"
	if s.advance().val == "[" {
		closing = "]"
	}
	if s.acceptOp(closing) {
		return out
	}
	for {
		v := s.value()
		out = append(out, v)
		if s.is("using") {
			s.fail(pgerror.Unsupported("USING for one of several brokers").At(s.pos()))
		}
		if !s.acceptOp(",") {
			break
		}
	}
	s.expectOp(closing)
	return out
}

func (s *stream) mapEntries() []Value {
	out := []Value{}
	s.expectOp("[")
	for !s.isOp("]") && !s.eof() {
		out = append(out, s.value())
		if !s.acceptOp("=>") {
			s.expectOp("=")
		}
		out = append(out, s.value())
		if !s.acceptOp(",") {
			break
		}
	}
	s.expectOp("]")
	return out
}
