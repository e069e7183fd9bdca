package pgwire

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Causes for which the context of a call is cancelled.
var (
	errCancelRequest = errors.New("canceling statement due to user request")
	errTerminated    = errors.New("terminating connection due to administrator command")
	errClientGone    = errors.New("connection to client lost")
)

// errClosed ends a connection whose client has been told why, or told us to.
var errClosed = errors.New("pgwire: connection closed")

func fatal(code, format string, args ...any) *pgerror.Error {
	e := pgerror.New(code, format, args...)
	e.Severity = "FATAL"
	return e
}

func protocolViolation(format string, args ...any) *pgerror.Error {
	return pgerror.New(pgerror.ProtocolViolation, format, args...)
}

func fatalProtocol(format string, args ...any) *pgerror.Error {
	return fatal(pgerror.ProtocolViolation, format, args...)
}

func errAdminShutdown() *pgerror.Error {
	return fatal(pgerror.AdminShutdown, "terminating connection due to administrator command")
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout()
}

// isGone tells a client that went away from errors worth a warning.
func isGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, errClosed) || errors.Is(err, errClientGone)
}

// callError is what the client is told of the error of a call that ran in ctx.
// An end of the context is reported by its cause.
func callError(ctx context.Context, err error) *pgerror.Error {
	var e *pgerror.Error
	known := errors.As(err, &e)
	if known && e.Code != pgerror.QueryCanceled {
		return e
	}
	if ctx.Err() != nil {
		switch context.Cause(ctx) {
		case errCancelRequest:
			if known {
				return e
			}
			return pgerror.New(pgerror.QueryCanceled, "canceling statement due to user request")
		case errClientGone:
			return fatal(pgerror.ConnectionFailure, "connection to client lost")
		default:
			return errAdminShutdown()
		}
	}
	if known {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return pgerror.New(pgerror.QueryCanceled, "canceling statement due to statement timeout")
	}
	return pgerror.As(err)
}
