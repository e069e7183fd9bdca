// Package pgerror is the error that users see: PostgreSQL's SQLSTATE, message,
// detail, hint and position (PostgreSQL manual, appendix A and section 53.8).
package pgerror

import (
	"errors"
	"fmt"
)

// Error is a user error. Message is lower-case without a full stop; Detail and
// Hint are sentences. Pos is the 1-based character position in the statement,
// 0 where there is none.
type Error struct {
	Severity   string // "" means ERROR
	Code       string // SQLSTATE
	Message    string
	Detail     string
	Hint       string
	Pos        int
	Where      string
	Schema     string
	Table      string
	Column     string
	Constraint string
	DataType   string

	message, detail, hint named
}

// Name is an argument of a message that is told by the name that it has for who reads
// it: a type outside of the schemas of the search path comes with its schema.
// visible says whether a type is found without.
type Name interface {
	Under(visible func(schema, name string) bool) string
}

// named is a text with names in it, as it was made.
type named struct {
	format string
	args   []any
}

// text makes a text and keeps, if there are names in it, what it is made of.
func text(format string, args []any) (string, named) {
	for _, a := range args {
		if _, ok := a.(Name); ok {
			return fmt.Sprintf(format, args...), named{format, args}
		}
	}
	return fmt.Sprintf(format, args...), named{}
}

func (n *named) under(text *string, visible func(schema, name string) bool) {
	if n.args == nil {
		return
	}
	args := append([]any(nil), n.args...)
	for i, a := range args {
		if x, ok := a.(Name); ok {
			args[i] = x.Under(visible)
		}
	}
	if fmt.Sprintf(n.format, n.args...) == *text { // else it has been changed since
		*text = fmt.Sprintf(n.format, args...)
	}
}

// Under is e with the names that its texts have in them as they are for a reader.
func (e *Error) Under(visible func(schema, name string) bool) *Error {
	if e.message.args == nil && e.detail.args == nil && e.hint.args == nil {
		return e
	}
	c := *e
	c.message.under(&c.Message, visible)
	c.detail.under(&c.Detail, visible)
	c.hint.under(&c.Hint, visible)
	return &c
}

func (e *Error) Error() string { return e.Message }

// New makes an error with a SQLSTATE and a formatted message.
func New(code, format string, args ...any) *Error {
	e := &Error{Code: code}
	e.Message, e.message = text(format, args)
	return e
}

// At is a copy of e at a 1-based character position, unless it has one.
func (e *Error) At(pos int) *Error {
	if e.Pos != 0 || pos <= 0 {
		return e
	}
	c := *e
	c.Pos = pos
	return &c
}

// WithDetail is a copy of e with a detail sentence.
func (e *Error) WithDetail(format string, args ...any) *Error {
	c := *e
	c.Detail, c.detail = text(format, args)
	return &c
}

// WithHint is a copy of e with a hint sentence.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint, c.hint = text(format, args)
	return &c
}

// As finds the *Error in err; any other error becomes an internal error.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: InternalError, Message: err.Error()}
}

// Unsupported says that a feature does not exist yet, by its name.
func Unsupported(feature string) *Error {
	return New(FeatureNotSupported, "%s is not supported", feature)
}
