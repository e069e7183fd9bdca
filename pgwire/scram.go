package pgwire

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/streamdb/streamdb/sql/pgerror"
	"golang.org/x/text/unicode/norm"
)

// Verifier is what the server keeps of a password: enough to check it, not
// enough to use it (RFC 5803; PostgreSQL's pg_authid.rolpassword).
type Verifier struct {
	Iterations int
	Salt       []byte
	StoredKey  []byte
	ServerKey  []byte
}

const (
	scramMechanism  = "SCRAM-SHA-256"
	scramIterations = 4096
)

// NewVerifier makes the verifier of a password with a random salt.
func NewVerifier(password string) *Verifier {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	return deriveVerifier(password, salt, scramIterations)
}

// ParseVerifier reads the form SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey.
func ParseVerifier(s string) (*Verifier, error) {
	bad := errors.New("invalid SCRAM-SHA-256 verifier")
	rest, ok := strings.CutPrefix(s, scramMechanism+"$")
	if !ok {
		return nil, bad
	}
	head, keys, ok := strings.Cut(rest, "$")
	iter, salt, ok2 := strings.Cut(head, ":")
	stored, server, ok3 := strings.Cut(keys, ":")
	n, err := strconv.Atoi(iter)
	if !ok || !ok2 || !ok3 || err != nil || n < 1 {
		return nil, bad
	}
	v := &Verifier{Iterations: n}
	for _, f := range []struct {
		to   *[]byte
		from string
		size int
	}{{&v.Salt, salt, 0}, {&v.StoredKey, stored, sha256.Size}, {&v.ServerKey, server, sha256.Size}} {
		b, err := base64.StdEncoding.DecodeString(f.from)
		if err != nil || len(b) == 0 || f.size != 0 && len(b) != f.size {
			return nil, bad
		}
		*f.to = b
	}
	return v, nil
}

// String is the form that ParseVerifier reads.
func (v *Verifier) String() string {
	b64 := base64.StdEncoding.EncodeToString
	return scramMechanism + "$" + strconv.Itoa(v.Iterations) + ":" + b64(v.Salt) + "$" + b64(v.StoredKey) + ":" + b64(v.ServerKey)
}

func deriveVerifier(password string, salt []byte, iterations int) *Verifier {
	salted, err := pbkdf2.Key(sha256.New, saslPrep(password), salt, iterations, sha256.Size)
	if err != nil {
		panic(err) // only for key sizes that are not ours
	}
	stored := sha256.Sum256(hmacSum(salted, []byte("Client Key")))
	return &Verifier{Iterations: iterations, Salt: salt, StoredKey: stored[:], ServerKey: hmacSum(salted, []byte("Server Key"))}
}

func (v *Verifier) matches(password string) int {
	return constantTimeSame(deriveVerifier(password, v.Salt, v.Iterations).StoredKey, v.StoredKey)
}

func hmacSum(key, msg []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(msg)
	return h.Sum(nil)
}

// saslPrep normalizes a password as RFC 4013 asks; as in PostgreSQL, one that
// is not valid UTF-8 is taken as its bytes.
func saslPrep(p string) string {
	ascii := true
	for i := 0; i < len(p); i++ {
		if p[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii || !utf8.ValidString(p) {
		return p
	}
	mapped := strings.Map(func(r rune) rune {
		switch {
		case r == 0xA0, r == 0x1680, r >= 0x2000 && r <= 0x200B, r == 0x202F, r == 0x205F, r == 0x3000:
			return ' '
		case r == 0xAD, r == 0x34F, r == 0x1806, r >= 0x180B && r <= 0x180D, r == 0x200C, r == 0x200D,
			r == 0x2060, r >= 0xFE00 && r <= 0xFE0F, r == 0xFEFF:
			return -1
		}
		return r
	}, p)
	return norm.NFKC.String(mapped)
}

var mockSecret = sync.OnceValue(func() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return b
})

// mockVerifier stands in for a user that does not exist: the same salt each
// time, keys that nothing matches.
func mockVerifier(user string) *Verifier {
	seed := hmacSum(mockSecret(), []byte(user))
	return &Verifier{Iterations: scramIterations, Salt: seed[:16], StoredKey: seed, ServerKey: seed}
}

// authSCRAM is the server's side of RFC 5802 without channel binding.
func (c *conn) authSCRAM(user string, v *Verifier) error {
	known := v != nil
	if !known {
		v = mockVerifier(user)
	}
	c.w.auth(authSASL, []byte(scramMechanism+"\x00\x00"))
	body, err := c.passwordMessage()
	if err != nil {
		return err
	}
	mech, rest, ok := bytes.Cut(body, []byte{0})
	if !ok || len(rest) < 4 {
		return protocolViolation("malformed SCRAM message")
	}
	if string(mech) != scramMechanism {
		return protocolViolation("client selected an invalid SASL authentication mechanism")
	}
	n := int32(binary.BigEndian.Uint32(rest))
	if rest = rest[4:]; n != int32(len(rest)) {
		return protocolViolation("malformed SCRAM message")
	}
	x, err := newScramExchange(v, string(rest))
	if err != nil {
		return err
	}
	c.w.auth(authSASLContinue, []byte(x.serverFirst))
	if body, err = c.passwordMessage(); err != nil {
		return err
	}
	serverFinal, ok, err := x.finish(string(body))
	if err != nil {
		return err
	}
	if !ok || !known {
		return errPassword(user)
	}
	c.w.auth(authSASLFinal, []byte(serverFinal))
	return nil
}

type scramExchange struct {
	v                       *Verifier
	gs2, clientFirst, nonce string
	serverFirst             string
}

func scramError(format string, args ...any) *pgerror.Error {
	e := protocolViolation("malformed SCRAM message")
	e.Severity = "FATAL"
	return e.WithDetail(format, args...)
}

// newScramExchange reads the client's first message: gs2 header, name (that
// PostgreSQL ignores in favour of the startup packet's) and nonce.
func newScramExchange(v *Verifier, first string) (*scramExchange, error) {
	if first == "" {
		return nil, scramError("The message is empty.")
	}
	switch first[0] {
	case 'n', 'y':
	case 'p':
		return nil, scramError("The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel binding data.")
	default:
		return nil, scramError("Unexpected channel-binding flag \"%c\".", first[0])
	}
	if !strings.HasPrefix(first[1:], ",,") {
		return nil, scramError("The client uses an authorization identity, but it is not supported.")
	}
	x := &scramExchange{v: v, gs2: first[:3], clientFirst: first[3:]}
	attrs := strings.Split(x.clientFirst, ",")
	if len(attrs) < 2 || !strings.HasPrefix(attrs[0], "n=") || !strings.HasPrefix(attrs[1], "r=") || len(attrs[1]) == 2 {
		return nil, scramError("Expected a name and a nonce.")
	}
	for i := 2; i < len(attrs[1]); i++ {
		if b := attrs[1][i]; b < 0x21 || b > 0x7e {
			return nil, scramError("Non-printable characters in SCRAM nonce.")
		}
	}
	random := make([]byte, 18)
	_, _ = rand.Read(random) // never fails
	x.nonce = attrs[1][2:] + base64.StdEncoding.EncodeToString(random)
	x.serverFirst = "r=" + x.nonce + ",s=" + base64.StdEncoding.EncodeToString(v.Salt) + ",i=" + strconv.Itoa(v.Iterations)
	return x, nil
}

// finish checks the client's proof and gives the server's.
func (x *scramExchange) finish(final string) (serverFinal string, ok bool, err error) {
	i := strings.LastIndex(final, ",p=")
	if i < 0 {
		return "", false, scramError("Expected a proof.")
	}
	attrs := strings.Split(final[:i], ",")
	proof, err := base64.StdEncoding.DecodeString(final[i+3:])
	if err != nil || len(proof) != sha256.Size || len(attrs) < 2 {
		return "", false, scramError("Malformed proof in client-final-message.")
	}
	if attrs[0] != "c="+base64.StdEncoding.EncodeToString([]byte(x.gs2)) {
		return "", false, scramError("Unexpected SCRAM channel-binding attribute in client-final-message.")
	}
	if constantTimeSame([]byte(attrs[1]), []byte("r="+x.nonce)) != 1 {
		return "", false, scramError("Nonce does not match.")
	}
	msg := []byte(x.clientFirst + "," + x.serverFirst + "," + final[:i])
	sig := hmacSum(x.v.StoredKey, msg)
	for j := range sig {
		sig[j] ^= proof[j]
	}
	stored := sha256.Sum256(sig)
	if constantTimeSame(stored[:], x.v.StoredKey) != 1 {
		return "", false, nil
	}
	return "v=" + base64.StdEncoding.EncodeToString(hmacSum(x.v.ServerKey, msg)), true, nil
}
