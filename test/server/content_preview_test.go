package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/cmd/gaol/server/tenant"
	"gaol/test/server/servertest"
)

// newTokens returns the tokens of two tenants.
func newTokens(t testing.TB) *tenant.Tokens {
	t.Helper()
	sum := func(token string) string { s := sha256.Sum256([]byte(token)); return hex.EncodeToString(s[:]) }
	path := filepath.Join(t.TempDir(), "tokens")
	text := fmt.Sprintf("ann %s\nben %s\n", sum(annToken), sum(benToken))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := tenant.ReadTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

const (
	annToken = "0123456789abcdef0123456789abcdef"
	benToken = "fedcba9876543210fedcba9876543210"
)

// withToken adds a token to all requests.
type withToken struct {
	http.RoundTripper
	token string
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	return w.RoundTripper.RoundTrip(r)
}

// overTCP returns a client of the TCP listener, whatever host its URLs have.
func overTCP(t testing.TB, s *servertest.Server, token string) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.Address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: withToken{transport, token}}
}

// visit sends a request to a host.
func visit(t testing.TB, c *http.Client, method, host, path string, header http.Header) *servertest.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+host+path, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	return servertest.Do(t, c, r)
}

func testPreview(t *testing.T, s *servertest.Server) {
	ann := overTCP(t, s, annToken)
	ann.Transport = onLocalhost{ann.Transport}
	b := newBoxOf(t, s, ann, nil)
	b.start(t, 3000, httpServer)
	browser := overTCP(t, s, "")
	host := "3000-" + b.id + ".preview.example"
	for _, host := range []string{host, strings.ToUpper(host), host + ":8640"} {
		res := visit(t, browser, "POST", host, "/a/../b?c", http.Header{
			"Cookie": {"own=1"}, "Authorization": {"Bearer of the guest"}, "Origin": {"http://" + host}, "Content-Type": {"text/plain"},
		})
		var got echoed
		res.Into(t, &got)
		if res.Status != 200 || got.URL != "/a/../b?c" || got.Headers["cookie"] != "own=1" || got.Headers["authorization"] != "Bearer of the guest" ||
			got.Headers["host"] != "localhost:3000" || got.Headers["origin"] != "http://localhost:3000" || got.Headers["x-forwarded-host"] != host {
			t.Errorf("%s: %d %s", host, res.Status, res.Body)
		}
		if res.Header.Get("Content-Security-Policy") != "" || res.Header.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: header %v", host, res.Header)
		}
	}
	if res := visit(t, browser, "GET", host, "/", http.Header{"Origin": {"http://evil"}}); !strings.Contains(string(res.Body), `"origin":"http://evil"`) {
		t.Errorf("a foreign origin: %s", res.Body)
	}
	// The server's own credentials are for no guest.
	for _, header := range []string{"Bearer " + annToken, "Bearer " + benToken, "bearer  " + annToken} {
		if res := visit(t, browser, "GET", host, "/", http.Header{"Authorization": {header}}); res.Status != 200 || strings.Contains(string(res.Body), header[8:]) {
			t.Errorf("with a token of the server: %d %s", res.Status, res.Body)
		}
	}
	for _, c := range []struct {
		host   string
		status int
	}{
		{"3001-" + b.id + ".preview.example", http.StatusBadGateway},
		{"3000-sb-aaaaaaaaaaaaaaaaaaaaaaaaaa.preview.example", http.StatusNotFound},
		{"3000-.preview.example", http.StatusNotFound},
		{"03000-" + b.id + ".preview.example", http.StatusMisdirectedRequest},
		{"x-" + b.id + ".preview.example", http.StatusMisdirectedRequest},
		{b.id + ".preview.example", http.StatusMisdirectedRequest},
		{"preview.example", http.StatusMisdirectedRequest},
		{"3000-" + b.id + ".preview.example.evil", http.StatusMisdirectedRequest},
		{"3000-" + b.id + ".evil", http.StatusMisdirectedRequest},
		{"localhost", http.StatusUnauthorized},
	} {
		if res := visit(t, browser, "GET", c.host, "/v1/sandboxes", nil); res.Status != c.status {
			t.Errorf("host %s: %d %s, want %d", c.host, res.Status, res.Body, c.status)
		}
	}
	// The host name is a credential for the port only.
	if res := visit(t, browser, "GET", host, "/v1/sandboxes", nil); res.Status != 200 || !strings.Contains(string(res.Body), `"url":"/v1/sandboxes"`) {
		t.Errorf("the API below the host: %d %s", res.Status, res.Body)
	}
	// A unix socket serves no preview hosts.
	local := s.Client(t, alice)
	visit(t, local, "GET", host, "/nothing", nil).Want(t, http.StatusNotFound)
}

// onLocalhost sends all requests to the host localhost.
type onLocalhost struct{ http.RoundTripper }

func (o onLocalhost) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host, r.Host = "localhost", ""
	return o.RoundTripper.RoundTrip(r)
}

// On its own origin a page may set cookies, but none that other sandboxes get.
func testPreviewReplies(t *testing.T, s *servertest.Server) {
	ann := overTCP(t, s, annToken)
	ann.Transport = onLocalhost{ann.Transport}
	b := newBoxOf(t, s, ann, nil)
	b.start(t, 3000, rawServer)
	b.write(t, "/workspace/reply", "HTTP/1.1 103 Early Hints\r\nSet-Cookie: e=evil; Domain=preview.example\r\n\r\n"+
		"HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/\r\nSet-Cookie: a=1; HttpOnly\r\nSet-Cookie: b=2; Domain=preview.example; Path=/x\r\nSet-Cookie: =;;\r\n"+
		"Clear-Site-Data: \"evil\"\r\nStrict-Transport-Security: evil\r\nAlt-Svc: evil\r\nContent-Security-Policy: default-src 'self'\r\nService-Worker-Allowed: /\r\nContent-Length: 0\r\n\r\n")
	browser := overTCP(t, s, "")
	browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res := visit(t, browser, "GET", "3000-"+b.id+".preview.example", "/", nil)
	if got := fmt.Sprintf("%d %s %q %s %s", res.Status, res.Header.Get("Location"), res.Header["Set-Cookie"], res.Header.Get("Content-Security-Policy"), res.Header.Get("Service-Worker-Allowed")); got !=
		`302 http://elsewhere.example/ ["a=1; HttpOnly" "b=2; Path=/x"] default-src 'self' /` {
		t.Errorf("the response is %s", got)
	}
	if text := fmt.Sprint(res.Header); strings.Contains(text, "evil") {
		t.Errorf("the header is %s", text)
	}
}

// Without the setting, a host name is no credential.
func TestPreviewIsOff(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Tokens: newTokens(t)})
	ann := overTCP(t, s, annToken)
	ann.Transport = onLocalhost{ann.Transport}
	b := newBoxOf(t, s, ann, nil)
	for _, host := range []string{"3000-" + b.id + ".preview.example", "3000-" + b.id + ".", "3000-" + b.id, "3000-" + b.id + ".localhost"} {
		visit(t, overTCP(t, s, ""), "GET", host, "/", nil).Want(t, http.StatusMisdirectedRequest)
	}
	ben := overTCP(t, s, benToken)
	ben.Transport = onLocalhost{ben.Transport}
	visit(t, ben, "GET", "localhost", b.path("ports/3000/"), nil).Want(t, http.StatusNotFound)
}
