package types

import (
	"encoding/binary"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// NamesOf are the names of the fields of a composite type.
func NamesOf(o OID) []string {
	fields := o.Fields()
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names
}

// parseRecord appends the record of a composite type that s is.
func parseRecord(dst []byte, t OID, s string, o *Options) ([]byte, error) {
	fail := func(detail string) ([]byte, error) {
		return dst, pgerror.New(pgerror.InvalidTextRepresentation, "malformed record literal: \"%s\"", s).WithDetail("%s", detail)
	}
	rest := strings.TrimLeft(s, " \t\n\r\f\v")
	if rest == "" || rest[0] != '(' {
		return fail("Missing left parenthesis.")
	}
	rest = rest[1:]
	fields := t.Fields()
	r := RecordBuilder{Names: NamesOf(t)}
	for i, f := range fields {
		if i > 0 {
			if rest == "" || rest[0] != ',' {
				return fail("Too few columns.")
			}
			rest = rest[1:]
		}
		text, null, n := recordField(rest)
		if n < 0 {
			return fail("Unexpected end of input.")
		}
		rest = rest[n:]
		b := columnar.NewBuilder(f.Type.Kind(), 1)
		if null {
			b.Null()
		} else if err := parseText(b, f.Type, text, o); err != nil {
			return dst, err
		}
		v := b.Build()
		if err := checkDomain(f.Type.OID, v); err != nil {
			return dst, err
		}
		r.Field(Of(f.Type.Storage().OID), v, 0)
	}
	if len(fields) == 0 && rest != "" && rest[0] != ')' || rest != "" && rest[0] == ',' {
		return fail("Too many columns.")
	}
	if rest == "" {
		return fail("Unexpected end of input.")
	}
	if strings.TrimLeft(rest[1:], " \t\n\r\f\v") != "" {
		return fail("Junk after right parenthesis.")
	}
	return r.Append(dst), nil
}

// recordField reads a field up to the comma or parenthesis behind it; n is its
// length, -1 if it does not end.
func recordField(s string) (text string, null bool, n int) {
	if s != "" && (s[0] == ',' || s[0] == ')') {
		return "", true, 0
	}
	var b strings.Builder
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case !quoted && (c == ',' || c == ')'):
			return b.String(), false, i
		case c == '\\':
			if i++; i == len(s) {
				return "", false, -1
			}
			b.WriteByte(s[i])
		case c == '"' && !quoted:
			quoted = true
		case c == '"' && i+1 < len(s) && s[i+1] == '"':
			i++
			b.WriteByte('"')
		case c == '"':
			quoted = false
		default:
			b.WriteByte(c)
		}
	}
	return "", false, -1
}

// parseRecordBinary appends the record of a composite type by its binary form.
func parseRecordBinary(dst []byte, t OID, p []byte) ([]byte, error) {
	if len(p) < 4 {
		return dst, errShortMessage()
	}
	fields := t.Fields()
	if n := int(int32(binary.BigEndian.Uint32(p))); n != len(fields) {
		return dst, pgerror.New(pgerror.DatatypeMismatch, "wrong number of columns: %d, expected %d", n, len(fields))
	}
	p = p[4:]
	r := RecordBuilder{Names: NamesOf(t)}
	for i, f := range fields {
		if len(p) < 8 {
			return dst, errShortMessage()
		}
		if got := OID(binary.BigEndian.Uint32(p)); got != f.Type.OID {
			return dst, pgerror.New(pgerror.DatatypeMismatch, "binary data has type %d (%s) instead of expected %d (%s) in record column %d",
				got, got.Name(), f.Type.OID, f.Type.OID.Name(), i+1)
		}
		p = p[4:]
		b := columnar.NewBuilder(f.Type.Kind(), 1)
		if int32(binary.BigEndian.Uint32(p)) == -1 {
			b.Null()
			p = p[4:]
		} else {
			field, rest, err := sized(p)
			if err == nil {
				err = parseBinary(b, f.Type, field)
			}
			if err != nil {
				return dst, err
			}
			p = rest
		}
		v := b.Build()
		if err := checkDomain(f.Type.OID, v); err != nil {
			return dst, err
		}
		r.Field(Of(f.Type.Storage().OID), v, 0)
	}
	if len(p) > 0 {
		return dst, errBinaryFormat("")
	}
	return r.Append(dst), nil
}
