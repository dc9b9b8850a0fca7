package servertest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Response is a response that has been read.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Problem is an RFC 9457 problem.
type Problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Send sends a request with a body of JSON, or none if body is nil, and reads the response.
func Send(t testing.TB, c *http.Client, method, path string, body any) *Response {
	t.Helper()
	var text []byte
	switch b := body.(type) {
	case nil:
	case string:
		text = []byte(b)
	default:
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://gaol"+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return Do(t, c, r)
}

// Do sends a request and reads the response.
func Do(t testing.TB, c *http.Client, r *http.Request) *Response {
	t.Helper()
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &Response{res.StatusCode, res.Header, body}
}

// Want fails the test if the response has another status, or is an error without a problem. It
// returns the problem.
func (r *Response) Want(t testing.TB, status int) (p Problem) {
	t.Helper()
	if r.Status != status {
		t.Errorf("status %d, want %d: %s", r.Status, status, r.Body)
	}
	if r.Status < 400 {
		return p
	}
	if kind := r.Header.Get("Content-Type"); kind != "application/problem+json" {
		t.Errorf("status %d with type %q: %s", r.Status, kind, r.Body)
	}
	if err := json.Unmarshal(r.Body, &p); err != nil || p.Status != r.Status || p.Code == "" {
		t.Errorf("not a problem: %v: %s", err, r.Body)
	}
	return p
}

// Into decodes the body.
func (r *Response) Into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(r.Body, v); err != nil {
		t.Fatalf("%v: %s", err, r.Body)
	}
}

// Log keeps a server's log.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends to the log.
func (l *Log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// String returns the log.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
