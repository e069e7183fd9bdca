package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/streamdb/streamdb/sources/format"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s
}

// TestPaths escapes subjects and keeps a prefix of the path.
func TestPaths(t *testing.T) {
	var got []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.EscapedPath())
		user, pass, _ := r.BasicAuth()
		fmt.Fprintf(w, `{"id":7,"version":2,"schema":"%s:%s"}`, user, pass)
	})
	c := client(t, Config{URL: strings.Replace(s.URL, "http://", "http://me:se%20cret@", 1) + "/api/v7/"})
	x, err := c.Latest(context.Background(), "a/b c?#..-value")
	if err != nil || x.ID != 7 || x.Text != "me:se cret" {
		t.Errorf("%+v, %v", x, err)
	}
	if x, err = c.ByID(context.Background(), 5); err != nil || x.ID != 5 {
		t.Errorf("%+v, %v", x, err)
	}
	want := []string{"/api/v7/subjects/a%2Fb%20c%3F%23..-value/versions/latest", "/api/v7/schemas/ids/5"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

// TestErrors tells what is wrong, and whether asking again may help.
func TestErrors(t *testing.T) {
	for _, x := range []struct {
		status  int
		body    string
		message string
		noMore  bool
	}{
		{404, `{"error_code":40403,"message":"Schema not found"}`, "schema id 1: Schema not found", true},
		{404, `<html>`, "HTTP status 404", true},
		{401, ``, "refuses this user name", false},
		{500, `{"error_code":50001,"message":"the store is away"}`, "the store is away", false},
		{429, ``, "HTTP status 429", false},
		{200, `<html>`, "not what a schema registry gives", false},
		{200, `{"schema":"` + strings.Repeat("x", maxAnswer) + `"}`, "larger than", false},
		{200, `{"schema":"syntax = 'proto3'","schemaType":"PROTOBUF"}`, "type PROTOBUF", true},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(x.status)
			fmt.Fprint(w, x.body)
		})
		c := client(t, Config{URL: s.URL})
		_, _, err := c.AvroSchema(context.Background(), 1)
		if err == nil || !strings.Contains(err.Error(), x.message) {
			t.Errorf("status %d: %v, want %s", x.status, err, x.message)
		}
		if errors.Is(err, format.ErrNoSchema) != x.noMore {
			t.Errorf("status %d: %v: final is %v", x.status, err, !x.noMore)
		}
	}
	for _, url := range []string{"", "host:8081", "ftp://host", "http://"} {
		if _, err := New(Config{URL: url}); err == nil {
			t.Errorf("URL %q was accepted", url)
		}
	}
}

// TestFailover tries the addresses in turn.
func TestFailover(t *testing.T) {
	var asked atomic.Int32
	bad := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(503)
	})
	good := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `["a"]`) })
	if err := client(t, Config{URL: bad.URL + ", " + good.URL}).Ping(context.Background()); err != nil || asked.Load() != 1 {
		t.Errorf("%v, the first was asked %d times", err, asked.Load())
	}
	if err := client(t, Config{URL: bad.URL + "," + bad.URL}).Ping(context.Background()); err == nil {
		t.Error("two that fail do not answer")
	}
}

// TestReferences fetches what a schema refers to, once each, before those that
// refer to it, even if the references make a circle.
func TestReferences(t *testing.T) {
	answers := map[string]string{
		"/schemas/ids/1":            `{"schema":"top","references":[{"name":"a","subject":"a","version":1},{"name":"b","subject":"b","version":3}]}`,
		"/subjects/a/versions/1":    `{"schema":"A","references":[{"name":"b","subject":"b","version":3}]}`,
		"/subjects/b/versions/3":    `{"schema":"B"}`,
		"/schemas/ids/2":            `{"schema":"top","references":[{"name":"c","subject":"c","version":1}]}`,
		"/subjects/c/versions/1":    `{"schema":"C","references":[{"name":"c","subject":"c","version":1}]}`,
		"/schemas/ids/3":            `{"schema":"top","references":[{"name":"x","subject":"x","version":1}]}`,
		"/subjects/orders/versions": `[1]`,
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		a, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(404)
		}
		fmt.Fprint(w, a)
	})
	c := client(t, Config{URL: s.URL})
	for id, want := range map[int32]string{1: "[B A]", 2: "[C]"} {
		if _, refs, err := c.AvroSchema(context.Background(), id); err != nil || fmt.Sprint(refs) != want {
			t.Errorf("id %d: %v, %v, want %s", id, refs, err, want)
		}
	}
	if _, _, err := c.AvroSchema(context.Background(), 3); !errors.Is(err, format.ErrNoSchema) {
		t.Errorf("a reference that is not there: %v", err)
	}
}
