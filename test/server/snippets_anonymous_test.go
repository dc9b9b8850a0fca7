package server

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"testing"

	"gaol/cmd/gaol/server/settings"
	"gaol/test/server/servertest"
)

// Callers without a token run snippets, and reach nothing else.
func testAnonymous(t *testing.T, s *servertest.Server) {
	c := overTCPFrom(t, s, "127.0.0.2")
	res := servertest.Do(t, c, request(t, s, http.MethodPost, path, `{"source":"export const x = 1"}`))
	res.Want(t, http.StatusOK)
	if o := outputOf(t, res); o.Facts["x"] != 1.0 {
		t.Errorf("%+v", o)
	}
	servertest.Do(t, c, request(t, s, http.MethodGet, path, "")).Want(t, http.StatusOK)
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/v1/run", `{"code":"1"}`}, {"POST", "/v1/evaluate", `{"code":"1"}`}, {"GET", "/v1/sandboxes", ""}, {"POST", "/v1/sandboxes", "{}"},
		{"GET", "/v1/session", ""}, {"POST", "/mcp", "{}"}, {"GET", "/metrics", ""}, {"GET", "/v1/snapshots", ""}, {"POST", path + "/", "{}"}, {"POST", "/api/Sandbox", "{}"}, {"POST", "/api/sandbox/x", "{}"},
	} {
		servertest.Do(t, c, request(t, s, r.method, r.path, r.body)).Want(t, http.StatusUnauthorized)
	}
	for _, header := range []string{"Bearer wrong", "Bearer " + servertest.Token("other"), "Basic YTpi", ""} {
		servertest.Do(t, c, request(t, s, http.MethodPost, path, `{"source":"1"}`, "Authorization", header)).Want(t, http.StatusUnauthorized)
	}
}

// Each address is limited separately. Requests with a token do not count.
func testAnonymousLimit(t *testing.T, s *servertest.Server) {
	c := overTCPFrom(t, s, "127.0.0.3")
	send := func(c *http.Client, headers ...string) *servertest.Response {
		return servertest.Do(t, c, request(t, s, http.MethodGet, path, "", headers...))
	}
	for range 3 {
		send(c).Want(t, http.StatusOK)
	}
	res := send(c)
	res.Want(t, http.StatusTooManyRequests)
	if after, err := strconv.Atoi(res.Header.Get("Retry-After")); err != nil || after < 1 || after > 60 {
		t.Errorf("Retry-After %q", res.Header.Get("Retry-After"))
	}
	send(c, "X-Forwarded-For", "192.0.2.7").Want(t, http.StatusTooManyRequests) // 127.0.0.3 is no proxy
	send(c, headersWithToken()...).Want(t, http.StatusOK)
	send(overTCPFrom(t, s, "127.0.0.4")).Want(t, http.StatusOK)
}

// All anonymous callers together have a quota, which others do not share.
func testAnonymousQuota(t *testing.T, s *servertest.Server) {
	r := request(t, s, http.MethodPost, path, fmt.Sprintf(`{"source":%q,"timeoutMs":10000}`, forever), "Accept", "text/event-stream")
	es := followRequest(t, overTCPFrom(t, s, "127.0.0.5"), r)
	es.logged("[log] started")
	other := overTCPFrom(t, s, "127.0.0.6")
	servertest.Do(t, other, request(t, s, http.MethodPost, path, `{"source":"1"}`)).Want(t, http.StatusTooManyRequests)
	servertest.Do(t, other, request(t, s, http.MethodPost, path, `{"source":"console.log(1)"}`, headersWithToken()...)).Want(t, http.StatusOK)
}

// Without the setting, callers need a token, and no caller of the unix socket is anonymous. Behind a proxy
// that the operator names, the client's address is the one that the proxy has seen.
func TestAnonymousSettings(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Tokens: servertest.Tokens(t, "ci")})
	get := func(s *servertest.Server, headers ...string) *servertest.Response {
		return servertest.Do(t, overTCPFrom(t, s, "127.0.0.1"), request(t, s, http.MethodGet, path, "", headers...))
	}
	get(s).Want(t, http.StatusUnauthorized)

	s = servertest.Start(t, servertest.Options{Tokens: servertest.Tokens(t, "ci"), Settings: func(o *settings.Settings) {
		o.Snippets.Anonymous = &settings.Anonymous{RequestsPerMin: 1, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8")}}
	}})
	for _, r := range []struct {
		forwarded string
		status    int
	}{
		{"192.0.2.1", 200}, {"192.0.2.1", 429}, {"192.0.2.2", 200}, {"192.0.2.9, 192.0.2.2", 429}, // the client's own header does not count
		{"192.0.2.3, 10.1.2.3", 200}, {"192.0.2.3,10.1.2.4", 429}, {"2001:db8::1", 200}, {"2001:db8::2", 429}, {"2001:db8:0:1::1", 200},
		{"unknown", 200}, {"", 429}, {"192.0.2.4, unknown", 429},
	} {
		if get(s, "X-Forwarded-For", r.forwarded).Want(t, r.status); t.Failed() {
			t.Fatalf("%q", r.forwarded)
		}
	}
}
