package server

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"gaol/cmd/gaol/server/settings"
	"gaol/test/server/servertest"
)

var user = servertest.User{UID: 61001, GID: 61001}

func dialRaw(t testing.TB, s *servertest.Server) net.Conn {
	t.Helper()
	c, err := servertest.Dial(s.Socket, user)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Malformed requests get one error, and nothing that follows them is a request.
func TestMalformedRequests(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	const next = "GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\n\r\n"
	post := func(headers, body string) string {
		return "POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + headers + "\r\n" + body
	}
	for name, c := range map[string]struct {
		text   string
		status int
	}{
		"length and chunks":      {post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+next), 400},
		"chunks and length":      {post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+next), 400},
		"two lengths":            {post("Content-Length: 2\r\nContent-Length: 3\r\n", "{}"+next), 400},
		"signed length":          {post("Content-Length: +2\r\n", "{}"+next), 400},
		"negative length":        {post("Content-Length: -2\r\n", "{}"+next), 400},
		"hexadecimal length":     {post("Content-Length: 0x2\r\n", "{}"+next), 400},
		"long length":            {post("Content-Length: 99999999999999999999\r\n", "{}"+next), 400},
		"two codings":            {post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"+next), 501},
		"unknown coding":         {post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"+next), 501},
		"coding with a tab":      {post("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n"+next), 400},
		"space before the colon": {post("Content-Length : 2\r\n", "{}"+next), 400},
		"bad chunk size":         {post("Transfer-Encoding: chunked\r\n", "x\r\n{}\r\n0\r\n\r\n"+next), 400},
		"huge chunk size":        {post("Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n{}\r\n0\r\n\r\n"+next), 400},
		"chunk without its end":  {post("Transfer-Encoding: chunked\r\n", "2\r\n{}xx0\r\n\r\n"+next), 400},
		"no host":                {"GET /v1/sandboxes HTTP/1.1\r\n\r\n" + next, 400},
		"two hosts":              {"GET /v1/sandboxes HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + next, 400},
		"user in the host":       {"GET /v1/sandboxes HTTP/1.1\r\nHost: localhost@evil.example\r\n\r\n" + next, 400},
		"NUL in a header":        {"GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\nX-A: \x00\r\n\r\n" + next, 400},
		"CR in a header":         {"GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\nX-A: a\rContent-Length: 2\r\n\r\n" + next, 400},
		"no version":             {"GET /v1/sandboxes\r\n\r\n" + next, 400},
		"other version":          {"GET /v1/sandboxes HTTP/3.0\r\nHost: x\r\n\r\n" + next, 505},
		"TLS":                    {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},
		"space in the path":      {"GET /v1/sand boxes HTTP/1.1\r\nHost: x\r\n\r\n" + next, 400},
		"large header":           {"GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("a", 1<<20) + "\r\n\r\n", 431},
		"many headers":           {"GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 1<<17) + "\r\n", 431},
		"long path":              {"GET /" + strings.Repeat("a", 1<<20) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
	} {
		list := servertest.Raw(t, dialRaw(t, s), c.text, 2)
		if len(list) != 1 {
			t.Errorf("%s: %d responses", name, len(list))
		}
		if len(list) > 0 && list[0].Status != c.status {
			t.Fatalf("%s: %d, %s", name, list[0].Status, list[0].Body)
		}
	}
}

// Lines that end in LF only are accepted, as RFC 9112 allows, and separate the same requests.
func TestLinesWithoutCR(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	list := servertest.Raw(t, dialRaw(t, s), "GET /v1/sandboxes HTTP/1.1\nHost: x\n\nGET /v1/none HTTP/1.1\nHost: x\nConnection: close\n\n", 3)
	if len(list) != 2 || list[0].Status != 200 || list[1].Status != 404 {
		t.Errorf("%d responses", len(list))
	}
}

// Every request that the API cannot serve gets a problem.
func TestBadRequestsGetProblems(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	c := s.Client(t, user)
	deep := strings.Repeat(`{"a":`, 100000) + "1" + strings.Repeat("}", 100000)
	for _, r := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "//v1/sandboxes", "", 400}, {"GET", "/v1//sandboxes", "", 400}, {"GET", "/v1/./sandboxes", "", 400}, {"GET", "/v1/../v1/sandboxes", "", 400},
		{"GET", "/v1/%2e%2e/sandboxes", "", 400}, {"GET", "/v1%2fsandboxes", "", 404}, {"GET", "/v1/sandboxes/%2f%2fetc", "", 400}, {"GET", "/v1/sandboxes/a%2fb", "", 404},
		{"GET", "/v1/sandboxes/%00", "", 404}, {"GET", "/v1/sandboxes/%ff", "", 404}, {"GET", "/v1/sandboxes/" + strings.Repeat("a", 5000), "", 422},
		{"GET", "/v1/sandboxes/", "", 404}, {"GET", "/healthz/", "", 404}, {"GET", "/nothing", "", 404}, {"DELETE", "/v1/run", "", 405}, {"BREW", "/v1/run", "", 405},
		{"GET", "/v1/sandboxes?x=1", "", 422}, {"GET", "/healthz/../v1/sandboxes", "", 400},
		{"POST", "/v1/run", ``, 400}, {"POST", "/v1/run", `{`, 400}, {"POST", "/v1/run", `null`, 422}, {"POST", "/v1/run", `[]`, 422}, {"POST", "/v1/run", `{}`, 422},
		{"POST", "/v1/run", `{"code":"1"} {}`, 400}, {"POST", "/v1/run", `{"code":"1","code":"2"}`, 400}, {"POST", "/v1/run", `{"code":"1","Code":"2"}`, 422},
		{"POST", "/v1/run", "{\"code\":\"\xff\"}", 400}, {"POST", "/v1/run", `{"code":"\ud800"}`, 400}, {"POST", "/v1/run", `{"code":1}`, 422}, {"POST", "/v1/run", deep, 400},
		{"POST", "/v1/run", `{"code":"1","args":[` + strings.Repeat("1,", 500000) + `1]}`, 400},
		{"POST", "/v1/run", `{"code":"1","args":[` + strings.Repeat("1,", 9000) + `1]}`, 422},
		{"POST", "/v1/run", `{` + many(9000) + `"code":"1"}`, 422},
		{"POST", "/v1/run", `{` + many(90000) + `"code":"1"}`, 400},
		{"POST", "/v1/run", `{"code":"` + strings.Repeat("a", 33<<20) + `"}`, 413},
	} {
		res := servertest.Send(t, c, r.method, r.path, nilIfEmpty(r.body))
		res.Want(t, r.status)
		if len(res.Body) > 20<<10 {
			t.Errorf("a problem of %d bytes", len(res.Body))
		}
		if t.Failed() {
			t.Fatalf("%s %.80s %.100s", r.method, r.path, r.body)
		}
	}
	if text := s.Log.String(); strings.Contains(text, "level=ERROR") || strings.Contains(text, "panic") {
		t.Error(text)
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"x%d":%d,`, i, i)
	}
	return b.String()
}

func nilIfEmpty(body string) any {
	if body == "" {
		return nil
	}
	return body
}

// Web pages of other sites cannot use a server on loopback, with or without a name for its address.
func TestWebPages(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Tokens: servertest.Tokens(t, "web"), Settings: func(o *settings.Settings) {
		o.Origins, o.Hosts = []string{"https://tools.example"}, []string{"gaol.example"}
	}})
	_, port, _ := net.SplitHostPort(s.Address)
	for _, c := range []struct {
		name, method, host, kind, headers string
		status                            int
	}{
		{"a program", "POST", s.Address, "application/json", "", 422},
		{"a program by name", "POST", "gaol.example:" + port, "application/json", "", 422},
		{"a program by localhost", "POST", "localhost:" + port, "application/json; charset=utf-8", "", 422},
		{"an allowed page", "POST", s.Address, "application/json", "Origin: https://tools.example\r\n", 422},
		{"its own page", "POST", s.Address, "application/json", "Origin: http://" + s.Address + "\r\n", 422},
		{"DNS rebinding", "POST", "evil.example:" + port, "application/json", "Origin: http://evil.example:" + port + "\r\n", 421},
		{"DNS rebinding without an origin", "GET", "evil.example", "", "", 421},
		{"a suffix of an own name", "GET", "x.gaol.example", "", "", 421},
		{"a prefix of an own name", "GET", "gaol.example.evil.example", "", "", 421},
		{"another address", "GET", "10.0.0.1:" + port, "", "", 421},
		{"an address as a number", "GET", "2130706433:" + port, "", "", 421},
		{"another page", "POST", s.Address, "application/json", "Origin: http://evil.example\r\n", 403},
		{"another port", "POST", s.Address, "application/json", "Origin: http://127.0.0.1:1\r\n", 403},
		{"a prefix of an allowed page", "POST", s.Address, "application/json", "Origin: https://tools.example.evil.example\r\n", 403},
		{"an allowed page by HTTP", "POST", s.Address, "application/json", "Origin: http://tools.example\r\n", 403},
		{"a page without an origin", "POST", s.Address, "application/json", "Origin: null\r\n", 403},
		{"an empty host as origin", "POST", s.Address, "application/json", "Origin: http://\r\n", 403},
		{"a form", "POST", s.Address, "application/x-www-form-urlencoded", "Origin: http://evil.example\r\n", 403},
		{"a form of an old browser", "POST", s.Address, "application/x-www-form-urlencoded", "", 415},
		{"text", "POST", s.Address, "text/plain", "", 415},
		{"text that looks like JSON", "POST", s.Address, "text/plain; application/json", "", 415},
		{"no type", "POST", s.Address, "", "", 415},
		{"an image", "GET", s.Address, "", "Sec-Fetch-Site: cross-site\r\n", 403},
		{"an image of another port", "GET", s.Address, "", "Sec-Fetch-Site: same-site\r\n", 403},
		{"a WebSocket", "GET", s.Address, "", "Origin: http://evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", 403},
		{"a question of a browser", "OPTIONS", s.Address, "", "Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n", 403},
	} {
		text := c.method + " /v1/sandboxes HTTP/1.1\r\nHost: " + c.host + "\r\nAuthorization: Bearer " + servertest.Token("web") + "\r\n" + c.headers
		if c.kind != "" {
			text += "Content-Type: " + c.kind + "\r\n"
		}
		if c.method == "POST" {
			text += "Content-Length: 7\r\n\r\n{\"x\":1}"
		} else {
			text += "\r\n"
		}
		list := servertest.Raw(t, s.DialTCP(t, nil), text, 1)
		if len(list) != 1 || list[0].Want(t, c.status).Code == "" {
			t.Errorf("%s: %d responses", c.name, len(list))
			continue
		}
		if got := list[0].Header.Get("Access-Control-Allow-Origin"); got != "" || t.Failed() {
			t.Fatalf("%s: allowed origin %q", c.name, got)
		}
	}
}

// A flood of creates is refused with a time to try again, and nothing remains of it.
func TestFloodOfCreates(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Settings: func(o *settings.Settings) {
		o.Tenant.Sandboxes, o.Tenant.Requests = 2, 10
	}})
	c := s.Client(t, user)
	statuses := map[int]int{}
	for range 60 {
		r := servertest.Send(t, c, "POST", "/v1/sandboxes", "{}")
		if statuses[r.Status]++; r.Status == http.StatusTooManyRequests && r.Header.Get("Retry-After") == "" {
			t.Errorf("no Retry-After: %s", r.Body)
		}
		if r.Status >= 400 {
			r.Want(t, http.StatusTooManyRequests)
		}
	}
	if statuses[201] != 2 || statuses[429] != 58 {
		t.Errorf("%v", statuses)
	}
}
