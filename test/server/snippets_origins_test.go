package server

import (
	"net/http"
	"strings"
	"testing"

	"gaol/test/server/servertest"
)

const (
	body = `{"source":"console.log(1)"}`
	own  = "the server's own"
)

var origins = []struct {
	method, path, body, origin string
	status                     int
	shared                     bool
}{
	{"POST", path, body, docs, 200, true},
	{"GET", path, "", docs, 200, true},
	{"POST", path, "{", docs, 400, true}, // the page can read why
	{"POST", path, body, "", 200, false},
	{"POST", path, body, own, 200, false},
	{"POST", path, body, "https://docs.example.com.evil.example", 403, false},
	{"POST", path, body, "http://docs.example.com", 403, false},
	{"POST", path, body, "https://docs.example.com:8443", 403, false},
	{"POST", path, body, "null", 403, false},
	{"GET", path, "", "https://evil.example", 403, false},
	{"POST", path + "/", body, docs, 403, false},
	{"POST", "/v1/run", `{"code":"1"}`, docs, 403, false},
	{"GET", "/v1/sandboxes", "", docs, 403, false},
	{"POST", "/mcp", "{}", docs, 403, false},
	{"GET", "/healthz", "", docs, 403, false},
}

// Pages of the configured origins may run snippets, and use nothing else.
func testOrigins(t *testing.T, s *servertest.Server) {
	c := overTCPFrom(t, s, "127.0.0.1")
	for _, r := range origins {
		headers := headersWithToken()
		if r.origin == own {
			headers = headersWithToken("Origin", "http://"+s.Address)
		} else if r.origin != "" {
			headers = headersWithToken("Origin", r.origin)
		}
		res := servertest.Do(t, c, request(t, s, r.method, r.path, r.body, headers...))
		res.Want(t, r.status)
		allowed := res.Header.Get("Access-Control-Allow-Origin")
		if r.shared && allowed != docs || !r.shared && allowed != "" || res.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s %s of %q: shared with %q", r.method, r.path, r.origin, allowed)
		}
		exposed := res.Header.Get("Access-Control-Expose-Headers")
		if r.shared && exposed != "Retry-After" || !r.shared && exposed != "" {
			t.Errorf("%s %s of %q: exposes %q", r.method, r.path, r.origin, exposed)
		}
		if r.path == path && !strings.Contains(res.Header.Get("Vary"), "Origin") {
			t.Errorf("%s %s: Vary %q", r.method, r.path, res.Header.Get("Vary"))
		}
		if t.Failed() {
			t.Fatalf("%+v", r)
		}
	}
	res := servertest.Do(t, c, request(t, s, "POST", path, body, "Origin", docs, "Authorization", "Bearer wrong"))
	if res.Want(t, http.StatusUnauthorized); res.Header.Get("Access-Control-Allow-Origin") != docs {
		t.Error("the page cannot read that the token is wrong")
	}
	r := request(t, s, "POST", path, body, headersWithToken("Origin", docs)...)
	r.Host = "rebound.example"
	servertest.Do(t, c, r).Want(t, http.StatusMisdirectedRequest)
}

func testPreflight(t *testing.T, s *servertest.Server) {
	c := overTCPFrom(t, s, "127.0.0.1")
	ask := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type"}
	res := servertest.Do(t, c, request(t, s, http.MethodOptions, path, "", append(ask, "Origin", docs)...))
	res.Want(t, http.StatusNoContent)
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": docs, "Access-Control-Allow-Methods": "GET, POST", "Access-Control-Allow-Headers": "Accept, Authorization, Content-Type",
		"Access-Control-Max-Age": "600", "Vary": "Origin", "Access-Control-Allow-Credentials": "",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, r := range []struct {
		path, origin string
		status       int
	}{
		{path, "https://evil.example", 403}, {"/v1/run", docs, 403}, {"/mcp", docs, 403}, {"/", docs, 403}, {path, "", 401},
	} {
		headers := ask
		if r.origin != "" {
			headers = append(headers[:len(headers):len(headers)], "Origin", r.origin)
		} else {
			headers = append(headers[:len(headers):len(headers)], "Authorization", "Bearer wrong")
		}
		res := servertest.Do(t, c, request(t, s, http.MethodOptions, r.path, "", headers...))
		if res.Want(t, r.status); res.Header.Get("Access-Control-Allow-Origin")+res.Header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("%+v: %v", r, res.Header)
		}
	}
}
