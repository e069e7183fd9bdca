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
}

func (e *Error) Error() string { return e.Message }

// New makes an error with a SQLSTATE and a formatted message.
func New(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
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
	c.Detail = fmt.Sprintf(format, args...)
	return &c
}

// WithHint is a copy of e with a hint sentence.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
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
