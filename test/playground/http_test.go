package playground

import (
	"net/http"
	"strings"
	"testing"

	"gaol/cmd/gaol/server/settings"
	"gaol/test/server/servertest"
	"gaol/test/tier"
)

// request is a request to a TCP listener.
type request struct {
	method, path string
	header       map[string]string
	token        bool
	want         int
}

// The page needs no token and no origin, but the server's own host. It changes nothing for other
// requests.
func TestPlaygroundRequests(t *testing.T) {
	tier.Soak(t)
	s := servertest.Start(t, servertest.Options{Tokens: servertest.Tokens(t, "a"), Settings: func(set *settings.Settings) {
		set.Playground.FrameAncestors = []string{"https://docs.example"}
	}})
	for _, r := range []request{
		{method: "GET", path: "/", want: http.StatusOK},
		{method: "HEAD", path: "/", want: http.StatusOK},
		{method: "GET", path: "/?embed=1", want: http.StatusOK},
		{method: "GET", path: "/", token: true, want: http.StatusOK},
		{method: "GET", path: "/main.js", want: http.StatusOK},
		{method: "GET", path: "/", header: map[string]string{"Sec-Fetch-Site": "cross-site"}, want: http.StatusOK}, // a link on another site
		{method: "GET", path: "/embed.js", header: map[string]string{"Sec-Fetch-Site": "cross-site"}, want: http.StatusOK},
		{method: "GET", path: "/embed.js", header: map[string]string{"Origin": "https://docs.example"}, want: http.StatusOK},
		{method: "GET", path: "/", header: map[string]string{"Host": "evil.example"}, want: http.StatusMisdirectedRequest},
		{method: "GET", path: "/main.js", header: map[string]string{"Host": "evil.example"}, want: http.StatusMisdirectedRequest},
		{method: "POST", path: "/", want: http.StatusUnauthorized},
		{method: "POST", path: "/", token: true, want: http.StatusNotFound},
		{method: "PUT", path: "/main.js", token: true, want: http.StatusNotFound},
		{method: "GET", path: "/index.html", want: http.StatusUnauthorized},
		{method: "GET", path: "/main.js/", want: http.StatusUnauthorized},
		{method: "GET", path: "//main.js", want: http.StatusBadRequest},
		{method: "GET", path: "/v1/sandboxes", want: http.StatusUnauthorized},
		{method: "GET", path: "/v1/sandboxes", token: true, header: map[string]string{"Sec-Fetch-Site": "cross-site"}, want: http.StatusForbidden},
		{method: "GET", path: "/v1/sandboxes", token: true, header: map[string]string{"Origin": "https://docs.example"}, want: http.StatusForbidden},
		{method: "GET", path: "/v1/sandboxes", token: true, want: http.StatusOK},
	} {
		r.check(t, s)
	}
	if got := servertest.Send(t, s.Client(t, servertest.User{}), "GET", "/", nil); got.Status != http.StatusOK {
		t.Errorf("on the unix socket: status %d", got.Status)
	}
}

func (r *request) send(t *testing.T, s *servertest.Server) *servertest.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), r.method, "http://"+s.Address+r.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.token {
		req.Header.Set("Authorization", "Bearer "+servertest.Token("a"))
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	req.Host = r.header["Host"]
	req.Close = true
	return servertest.Do(t, http.DefaultClient, req)
}

func (r *request) check(t *testing.T, s *servertest.Server) {
	t.Helper()
	got := r.send(t, s)
	if got.Status != r.want {
		t.Errorf("%s %s %v, token %t: status %d, want %d", r.method, r.path, r.header, r.token, got.Status, r.want)
	}
	policy := got.Header.Get("Content-Security-Policy")
	want := "default-src 'none'; frame-ancestors 'none'; sandbox"
	if path, _, _ := strings.Cut(r.path, "?"); path == "/" && got.Status == http.StatusOK {
		want = "frame-ancestors https://docs.example"
	}
	if !strings.Contains(policy, want) {
		t.Errorf("%s %s: policy %q, want %q", r.method, r.path, policy, want)
	}
}

// A server without the playground treats its paths as any other.
func TestPlaygroundOff(t *testing.T) {
	tier.Soak(t)
	s := servertest.Start(t, servertest.Options{Tokens: servertest.Tokens(t, "a"), Settings: func(set *settings.Settings) { set.Playground.Off = true }})
	for _, r := range []request{
		{method: "GET", path: "/", want: http.StatusUnauthorized},
		{method: "GET", path: "/main.js", want: http.StatusUnauthorized},
		{method: "GET", path: "/", token: true, want: http.StatusNotFound},
		{method: "GET", path: "/embed.js", token: true, want: http.StatusNotFound},
		{method: "GET", path: "/", token: true, header: map[string]string{"Sec-Fetch-Site": "cross-site"}, want: http.StatusForbidden},
	} {
		r.check(t, s)
	}
}
