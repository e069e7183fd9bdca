package types

import (
	"fmt"
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// SplitName takes a name apart at its dots: parts without quotes are folded to
// lower case.
func SplitName(s string) ([]string, error) {
	var parts []string
	i := skipBlanks(s, 0)
	for {
		part, next, ok := namePart(s, i)
		if !ok {
			return nil, pgerror.New(pgerror.InvalidName, "invalid name syntax")
		}
		parts = append(parts, part)
		i = skipBlanks(s, next)
		if i == len(s) {
			return parts, nil
		}
		if s[i] != '.' {
			return nil, pgerror.New(pgerror.InvalidName, "invalid name syntax")
		}
		i = skipBlanks(s, i+1)
	}
}

func skipBlanks(s string, i int) int {
	for i < len(s) && strings.IndexByte(" \t\n\r\f", s[i]) >= 0 {
		i++
	}
	return i
}

// namePart reads one part of a name, which begins at i.
func namePart(s string, i int) (part string, next int, ok bool) {
	if i < len(s) && s[i] == '"' {
		var b strings.Builder
		for i++; i < len(s); i++ {
			if s[i] != '"' {
				b.WriteByte(s[i])
				continue
			}
			if i+1 == len(s) || s[i+1] != '"' {
				return b.String(), i + 1, true
			}
			b.WriteByte('"')
			i++
		}
		return "", i, false
	}
	from := i
	for i < len(s) && s[i] != '.' && strings.IndexByte(" \t\n\r\f", s[i]) < 0 {
		i++
	}
	return strings.ToLower(s[from:i]), i, i > from
}

// String is the name of the type.
func (o OID) String() string { return o.Name() }

// Under is the name of the type for who finds some types without their schemas.
func (o OID) Under(visible func(schema, name string) bool) string {
	i := Lookup(o)
	switch {
	case i == nil || o < FirstUser || o.IsAnonymous():
		return o.Name()
	case i.IsArray():
		return i.Elem.Under(visible) + "[]"
	case i.Schema == "" || visible(i.Schema, i.Name):
		return quoteTypeName(i.Name)
	}
	return quoteTypeName(i.Schema) + "." + quoteTypeName(i.Name)
}

// Under is the type for who finds some types without their schemas.
func (t Type) Under(visible func(schema, name string) bool) string {
	if t.OID < FirstUser {
		return t.String()
	}
	return t.OID.Under(visible)
}

// Signature is a text in which types are named: %s stands for each of them.
type Signature struct {
	Format string
	Types  []OID
}

// String is the text.
func (t Signature) String() string {
	return t.Under(func(schema, _ string) bool { return schema == "public" })
}

// Under is the text for who finds some types without their schemas.
func (t Signature) Under(visible func(schema, name string) bool) string {
	args := make([]any, len(t.Types))
	for i, o := range t.Types {
		args[i] = o.Under(visible)
	}
	return fmt.Sprintf(t.Format, args...)
}
