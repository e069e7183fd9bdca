package pgwire

import (
	"context"
	"crypto/subtle"
	"net"
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// Method is how a client proves who it is.
type Method uint8

// The methods. Reject is the zero value, so that a forgotten rule refuses.
const (
	MethodReject Method = iota
	MethodTrust
	MethodPassword // cleartext; for TLS only
	MethodSCRAM    // SCRAM-SHA-256
)

// Credential is what one user must show. A MethodPassword or MethodSCRAM
// credential with a nil Verifier refuses like a wrong password, after the same
// exchange, so that a client cannot find out which users exist.
type Credential struct {
	Method   Method
	Verifier *Verifier
}

// Auth decides how a user of a connection must prove who it is. Its errors go
// to the client.
type Auth interface {
	Credential(ctx context.Context, user, database string, info ConnInfo) (Credential, error)
}

// LocalTrust believes every client of this machine and refuses all others.
type LocalTrust struct{}

// Credential trusts loopback addresses, unix sockets and in-memory pipes.
func (LocalTrust) Credential(_ context.Context, _, _ string, info ConnInfo) (Credential, error) {
	if isLocal(info.RemoteAddr) {
		return Credential{Method: MethodTrust}, nil
	}
	return Credential{}, nil
}

func isLocal(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return !strings.Contains(addr, ".") // unix sockets ("@", "", a path), "pipe"
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Users asks every client for a password by one method.
type Users struct {
	Method    Method
	Verifiers map[string]*Verifier
	// TrustLocal lets clients of this machine in without a password.
	TrustLocal bool
	// RequireTLS refuses connections of other machines that are not encrypted.
	RequireTLS bool
}

// Credential looks the user up.
func (u Users) Credential(_ context.Context, user, _ string, info ConnInfo) (Credential, error) {
	local := isLocal(info.RemoteAddr)
	if local && u.TrustLocal {
		return Credential{Method: MethodTrust}, nil
	}
	if u.RequireTLS && !info.TLS && !local {
		return Credential{}, nil
	}
	return Credential{Method: u.Method, Verifier: u.Verifiers[user]}, nil
}

func errPassword(user string) *pgerror.Error {
	e := pgerror.New(pgerror.InvalidPassword, "password authentication failed for user \"%s\"", user)
	e.Severity = "FATAL"
	return e
}

// authenticate runs the exchange that the user's credential asks for.
func (c *conn) authenticate(user, database string) error {
	cred, err := c.srv.opt.Auth.Credential(c.srv.ctx, user, database, c.info())
	if err != nil {
		return err
	}
	switch cred.Method {
	case MethodTrust:
	case MethodPassword:
		err = c.authPassword(user, cred.Verifier)
	case MethodSCRAM:
		err = c.authSCRAM(user, cred.Verifier)
	default:
		host, _, splitErr := net.SplitHostPort(c.remote)
		if splitErr != nil {
			host = c.remote
		}
		enc := "no encryption"
		if c.tls {
			enc = "SSL encryption"
		}
		err = fatal(pgerror.InvalidAuthorization,
			"no pg_hba.conf entry for host \"%s\", user \"%s\", database \"%s\", %s", host, user, database, enc)
	}
	if err != nil {
		return err
	}
	c.w.auth(authOK, nil)
	return nil
}

func (c *conn) authPassword(user string, v *Verifier) error {
	c.w.auth(authCleartext, nil)
	body, err := c.passwordMessage()
	if err != nil {
		return err
	}
	if len(body) == 0 || body[len(body)-1] != 0 {
		return protocolViolation("invalid password packet size")
	}
	known := 1
	if v == nil {
		known, v = 0, mockVerifier(user)
	}
	if v.matches(string(body[:len(body)-1]))&known != 1 {
		return errPassword(user)
	}
	return nil
}

func (c *conn) passwordMessage() ([]byte, error) {
	if err := c.w.flush(); err != nil {
		return nil, err
	}
	typ, body, err := c.r.message()
	if err != nil {
		return nil, err
	}
	if typ != 'p' {
		e := protocolViolation("expected password response, got message type %d", typ)
		e.Severity = "FATAL"
		return nil, e
	}
	return body, nil
}

func constantTimeSame(a, b []byte) int { return subtle.ConstantTimeCompare(a, b) }
