// Package registry is a client of schema registries that speak Confluent's
// REST protocol (Confluent's own, Apicurio's, Redpanda's, Karapace).
package registry

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/streamdb/streamdb/sources/format"
)

// Bounds on what a registry may answer, and on how long it may take.
const (
	maxAnswer     = 16 << 20
	maxReferences = 256
	timeout       = 15 * time.Second
)

// Config says where a registry is and who asks.
type Config struct {
	// URL is its address, with a path if its interface has one, as in
	// http://host:8080/apis/ccompat/v7. Several, separated by commas, are
	// tried in turn.
	URL                string
	Username, Password string
	TLS                *tls.Config // nil: the system's certificates
}

// Client asks a registry. It is safe for concurrent use.
type Client struct {
	urls []*url.URL
	cfg  Config
	http *http.Client
}

// New makes a client; it does not connect yet.
func New(cfg Config) (*Client, error) {
	c := &Client{cfg: cfg}
	for _, s := range strings.Split(cfg.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(s))
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return nil, fmt.Errorf("invalid schema registry URL %q: an address such as http://host:8081 is wanted", s)
		}
		if p, ok := u.User.Password(); ok && cfg.Username == "" {
			c.cfg.Username, c.cfg.Password = u.User.Username(), p
		}
		u.User = nil
		u.RawQuery, u.Fragment = "", ""
		c.urls = append(c.urls, u)
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = cfg.TLS
	t.MaxIdleConnsPerHost = 4
	t.IdleConnTimeout = 30 * time.Second
	c.http = &http.Client{Transport: t, Timeout: timeout}
	return c, nil
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Schema is a registered schema.
type Schema struct {
	ID         int32       `json:"id"`
	Subject    string      `json:"subject"`
	Version    int         `json:"version"`
	Type       string      `json:"schemaType"` // "" means AVRO
	Text       string      `json:"schema"`
	References []Reference `json:"references"`
}

// Reference is a schema that another one refers to.
type Reference struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

// Error is what a registry answers instead of what was asked for.
type Error struct {
	Status  int    // of HTTP
	Code    int    // the registry's own
	Message string // the registry's own
	What    string // what was asked for
	URL     string
}

func (e *Error) Error() string {
	msg := e.Message
	switch {
	case msg == "" && e.Status == http.StatusUnauthorized:
		msg = "it refuses this user name and password"
	case msg == "":
		msg = fmt.Sprintf("it answers with HTTP status %d", e.Status)
	}
	return fmt.Sprintf("schema registry %s: %s: %s", e.URL, e.What, msg)
}

// IsNotFound reports whether the registry does not have what was asked for.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// permanent reports whether asking again would give the same answer.
func permanent(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status >= 400 && e.Status < 500 &&
		e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden &&
		e.Status != http.StatusRequestTimeout && e.Status != http.StatusTooManyRequests
}

// get asks for path (its parts, to be escaped) and decodes the answer into out.
func (c *Client) get(ctx context.Context, out any, what string, path ...string) error {
	var first error
	for _, u := range c.urls {
		err := c.getFrom(ctx, u, out, what, path)
		if err == nil || permanent(err) || ctx.Err() != nil {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func (c *Client) getFrom(ctx context.Context, base *url.URL, out any, what string, path []string) error {
	u := base.JoinPath(escapeAll(path)...)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/vnd.schemaregistry.v1+json, application/json")
	if c.cfg.Username != "" {
		req.SetBasicAuth(c.cfg.Username, c.cfg.Password)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return fmt.Errorf("schema registry %s: %s: %w", base, what, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("schema registry %s: %s: %w", base, what, err)
	}
	if len(body) > maxAnswer {
		return fmt.Errorf("schema registry %s: %s: the answer is larger than %d bytes", base, what, maxAnswer)
	}
	if resp.StatusCode != http.StatusOK {
		e := &Error{Status: resp.StatusCode, What: what, URL: base.String()}
		var j struct {
			Code    int    `json:"error_code"`
			Message string `json:"message"`
		}
		if json.Unmarshal(body, &j) == nil {
			e.Code, e.Message = j.Code, j.Message
		}
		return e
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("schema registry %s: %s: its answer is not what a schema registry gives: %w", base, what, err)
	}
	return nil
}

func escapeAll(parts []string) []string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = url.PathEscape(p)
	}
	return out
}

// Latest is the newest schema of a subject.
func (c *Client) Latest(ctx context.Context, subject string) (*Schema, error) {
	s := &Schema{}
	err := c.get(ctx, s, "subject "+subject, "subjects", subject, "versions", "latest")
	return s, err
}

// Version is a version of a subject.
func (c *Client) Version(ctx context.Context, subject string, version int) (*Schema, error) {
	s := &Schema{}
	v := fmt.Sprint(version)
	err := c.get(ctx, s, "subject "+subject+" version "+v, "subjects", subject, "versions", v)
	return s, err
}

// ByID is the schema of an id.
func (c *Client) ByID(ctx context.Context, id int32) (*Schema, error) {
	s := &Schema{}
	err := c.get(ctx, s, fmt.Sprintf("schema id %d", id), "schemas", "ids", fmt.Sprint(id))
	s.ID = id
	return s, err
}

// Ping tries whether a registry answers at all.
func (c *Client) Ping(ctx context.Context) error {
	var subjects []string
	return c.get(ctx, &subjects, "subjects", "subjects")
}

// AvroReferences are the texts of all schemas that s refers to, directly or not,
// each after those that it refers to itself.
func (c *Client) AvroReferences(ctx context.Context, s *Schema) ([]string, error) {
	if s.Type != "" && s.Type != "AVRO" {
		return nil, fmt.Errorf("%w in Avro: it is of type %s", format.ErrNoSchema, s.Type)
	}
	w := refWalk{c: c, seen: map[Reference]bool{}}
	err := w.walk(ctx, s)
	return w.texts, err
}

type refWalk struct {
	c     *Client
	seen  map[Reference]bool
	texts []string
}

func (w *refWalk) walk(ctx context.Context, s *Schema) error {
	for _, r := range s.References {
		r.Name = ""
		if w.seen[r] {
			continue
		}
		w.seen[r] = true
		if len(w.seen) > maxReferences {
			return fmt.Errorf("%w that can be used: it refers to more than %d others", format.ErrNoSchema, maxReferences)
		}
		x, err := w.c.Version(ctx, r.Subject, r.Version)
		if err != nil {
			return err
		}
		if err := w.walk(ctx, x); err != nil {
			return err
		}
		w.texts = append(w.texts, x.Text)
	}
	return nil
}

// AvroSchema implements format.SchemaSource.
func (c *Client) AvroSchema(ctx context.Context, id int32) (text string, refs []string, err error) {
	s, err := c.ByID(ctx, id)
	if err == nil {
		refs, err = c.AvroReferences(ctx, s)
	}
	if permanent(err) {
		err = fmt.Errorf("%w: %w", format.ErrNoSchema, err)
	}
	return s.Text, refs, err
}
