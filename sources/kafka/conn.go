package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/streamdb/streamdb/sources/registry"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// connOptions say how to reach a cluster.
type connOptions struct {
	brokers  []string
	clientID string
	tls      *tls.Config
	sasl     sasl.Mechanism
}

// registryOptions say how to reach a schema registry.
type registryOptions struct {
	url, username, password string
	tls                     *tls.Config
}

const defaultPort = "9092"

// connection reads the options of a cluster.
func (r *optionReader) connection() (c connOptions) {
	for _, b := range strings.Split(r.take("broker", "brokers", "bootstrap servers"), ",") {
		b = strings.TrimSpace(b)
		if b == "" {
			continue
		}
		if i := strings.Index(b, "://"); i >= 0 { // PLAINTEXT://host:port, as brokers advertise
			b = b[i+3:]
		}
		if _, _, err := net.SplitHostPort(b); err != nil {
			b = net.JoinHostPort(strings.Trim(b, "[]"), defaultPort)
		}
		c.brokers = append(c.brokers, b)
	}
	if len(c.brokers) == 0 {
		r.fail("a Kafka connection needs a BROKER")
	}
	if c.clientID = r.take("client id"); c.clientID == "" {
		c.clientID = "streamdb"
	}
	for _, name := range []string{"ssh tunnel", "using ssh tunnel", "aws privatelink", "using aws privatelink", "aws connection"} {
		if r.take(name) != "" && r.err == nil {
			r.err = pgerror.Unsupported(strings.ToUpper(name))
		}
	}
	mechanism, user, password := strings.ToUpper(r.take("sasl mechanisms", "sasl mechanism")), r.take("sasl username"), r.take("sasl password")
	wantSASL := mechanism != ""
	wantTLS := false
	protocol := strings.ToUpper(strings.ReplaceAll(r.take("security protocol"), " ", "_"))
	cert := r.tls("", &wantTLS)
	switch protocol {
	case "":
		// Materialize's defaults: SASL implies TLS.
		wantTLS = wantTLS || wantSASL
	case "PLAINTEXT":
		wantTLS, wantSASL = false, false
	case "SSL":
		wantTLS, wantSASL = true, false
	case "SASL_PLAINTEXT":
		wantTLS, wantSASL = false, true
	case "SASL_SSL":
		wantTLS, wantSASL = true, true
	default:
		r.fail("unknown SECURITY PROTOCOL \"%s\": PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL is wanted", protocol)
	}
	if wantTLS {
		c.tls = cert
	}
	if wantSASL {
		c.sasl = r.sasl(mechanism, user, password)
	}
	return c
}

func (r *optionReader) sasl(mechanism, user, password string) sasl.Mechanism {
	if user == "" {
		r.fail("SASL needs a SASL USERNAME and a SASL PASSWORD")
	}
	switch mechanism {
	case "PLAIN", "":
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	}
	r.fail("unknown SASL MECHANISMS \"%s\": PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 is wanted", mechanism)
	return nil
}

// tls reads certificates, as PEM text or (in the options that say location) as
// the path of a file. used is set if any was given.
func (r *optionReader) tls(prefix string, used *bool) *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	pem := func(name, location string) []byte {
		text := []byte(r.take(prefix + name))
		if path := r.take(prefix + location); path != "" && len(text) == 0 {
			b, err := os.ReadFile(path)
			if err != nil {
				r.fail("%s: %s", location, err)
			}
			text = b
		}
		*used = *used || len(text) > 0
		return text
	}
	if ca := pem("ssl certificate authority", "properties.ssl.ca.location"); len(ca) > 0 {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(ca) {
			r.fail("SSL CERTIFICATE AUTHORITY is no certificate in PEM form")
		}
	}
	cert, key := pem("ssl certificate", "properties.ssl.certificate.location"), pem("ssl key", "properties.ssl.key.location")
	if len(cert) > 0 || len(key) > 0 {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			r.fail("SSL CERTIFICATE and SSL KEY do not go together: %s", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if v := r.take(prefix + "properties.ssl.endpoint.identification.algorithm"); v == "none" {
		withoutHostCheck(cfg)
	}
	return cfg
}

// withoutHostCheck checks the chain of certificates but not the host's name.
func withoutHostCheck(cfg *tls.Config) {
	cfg.InsecureSkipVerify = true
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		o := x509.VerifyOptions{Roots: cfg.RootCAs, Intermediates: x509.NewCertPool()}
		for _, c := range s.PeerCertificates[1:] {
			o.Intermediates.AddCert(c)
		}
		_, err := s.PeerCertificates[0].Verify(o)
		return err
	}
}

func (r *optionReader) registry(prefix string) registryOptions {
	var used bool
	o := registryOptions{url: r.take(prefix + "url"), username: r.take(prefix + "username"), password: r.take(prefix + "password")}
	o.tls = r.tls(prefix, &used)
	if v := r.take(prefix + "strategy"); v != "" && !strings.EqualFold(v, "latest") && r.err == nil {
		r.err = pgerror.Unsupported("schema registry strategy " + v)
	}
	return o
}

func (o *registryOptions) client() (*registry.Client, error) {
	c, err := registry.New(registry.Config{URL: o.url, Username: o.username, Password: o.password, TLS: o.tls})
	if err != nil {
		return nil, pgerror.New(pgerror.InvalidParameterValue, "%s", err)
	}
	return c, nil
}

// clientOptions are those that every client of the cluster has.
func (c *connOptions) clientOptions(hooks ...kgo.Hook) []kgo.Opt {
	o := []kgo.Opt{
		kgo.SeedBrokers(c.brokers...), kgo.ClientID(c.clientID), kgo.WithHooks(hooks...),
		kgo.DisableClientMetrics(),
		kgo.RetryBackoffFn(func(n int) time.Duration { return min(100*time.Millisecond<<min(n, 6), 5*time.Second) }),
	}
	if c.tls != nil {
		o = append(o, kgo.DialTLSConfig(c.tls))
	}
	if c.sasl != nil {
		o = append(o, kgo.SASL(c.sasl))
	}
	return o
}

// connWatch keeps why brokers cannot be reached: the client's own errors speak
// of deadlines only.
type connWatch struct {
	mu     sync.Mutex
	failed map[int32]connFailure
}

type connFailure struct {
	err error
	at  time.Time
}

// failureAge is how long a failure counts that was not repeated.
const failureAge = 15 * time.Second

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (w *connWatch) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = map[int32]connFailure{}
	}
	if err == nil {
		delete(w.failed, meta.NodeID)
		return
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed) {
		return
	}
	w.failed[meta.NodeID] = connFailure{fmt.Errorf("broker %s: %w", net.JoinHostPort(meta.Host, fmt.Sprint(meta.Port)), err), time.Now()}
}

// err is why a broker could not be reached lately, nil if all could.
func (w *connWatch) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var last connFailure
	for _, f := range w.failed {
		if f.at.After(last.at) && time.Since(f.at) < failureAge {
			last = f
		}
	}
	return last.err
}

// connectTimeout is how long CREATE SOURCE and VALIDATE CONNECTION wait.
const connectTimeout = 10 * time.Second

// reach connects to the cluster, to ask it things before a source exists.
func (c *connOptions) reach(ctx context.Context) (*kadm.Client, error) {
	w := &connWatch{}
	cl, err := kgo.NewClient(append(c.clientOptions(w), kgo.RequestRetries(1))...)
	if err != nil {
		return nil, pgerror.New(pgerror.InvalidParameterValue, "invalid Kafka connection: %s", err)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := cl.Ping(ctx); err != nil {
		if why := w.err(); why != nil {
			err = why
		}
		cl.Close()
		return nil, pgerror.New(pgerror.ConnectionFailure, "cannot reach Kafka at %s: %s", strings.Join(c.brokers, ", "), err)
	}
	return kadm.NewClient(cl), nil
}

// Check checks the options of a connection by themselves.
func Check(opts map[string]string) error {
	_, err := parseConnection(opts)
	return err
}

func parseConnection(opts map[string]string) (connOptions, error) {
	r := newConnReader(opts)
	c := r.connection()
	if r.err == nil {
		r.err = r.unknown()
	}
	return c, r.err
}

// Validate tries whether the cluster of a connection answers.
func Validate(ctx context.Context, opts map[string]string) error {
	c, err := parseConnection(opts)
	if err != nil {
		return err
	}
	adm, err := c.reach(ctx)
	if err != nil {
		return err
	}
	adm.Close()
	return nil
}

// CheckRegistry checks the options of a schema registry's connection by themselves.
func CheckRegistry(opts map[string]string) error {
	o, err := parseRegistry(opts)
	if err != nil {
		return err
	}
	c, err := o.client() // which looks at the URL
	if err == nil {
		c.Close()
	}
	return err
}

func parseRegistry(opts map[string]string) (registryOptions, error) {
	r := newConnReader(opts)
	o := r.registry("")
	for _, name := range []string{"ssh tunnel", "aws privatelink"} {
		r.take(name)
	}
	if len(r.left) > 0 && r.err == nil {
		for k := range r.left {
			r.fail("unknown option \"%s\" of a schema registry connection", k)
		}
	}
	return o, r.err
}

// ValidateRegistry tries whether the schema registry of a connection answers.
func ValidateRegistry(ctx context.Context, opts map[string]string) error {
	o, err := parseRegistry(opts)
	if err != nil {
		return err
	}
	c, err := o.client()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := c.Ping(ctx); err != nil {
		return pgerror.New(pgerror.ConnectionFailure, "%s", err)
	}
	return nil
}

func newConnReader(opts map[string]string) *optionReader {
	r := &optionReader{left: map[string]string{}}
	for k, v := range opts {
		if k != "connector" && !withoutEffect[k] {
			r.left[k] = v
		}
	}
	return r
}
