package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/settings"
	"gaol/test/server/servertest"
)

const path = "/api/sandbox"

var (
	snippetUser = servertest.User{UID: 61801, GID: 61801}
	busy        = servertest.User{UID: 61802, GID: 61802} // may have one run
	root        = servertest.User{}
)

// docs is the origin of pages that may run snippets.
const docs = "https://docs.example.com"

// TestSnippets tests one server, whose zygotes stay warm.
func TestSnippets(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Tokens: servertest.Tokens(t, "ci"), Settings: func(o *settings.Settings) {
		o.PublicURL = "https://gaol.example.com/play"
		o.Tenants = map[string]quota.Limits{fmt.Sprintf("uid:%d", busy.UID): {Runs: 1}}
		o.Snippets.Origins = []string{docs}
		o.Snippets.Anonymous = &settings.Anonymous{RequestsPerMin: 3, Limits: quota.Limits{Runs: 1}}
	}})
	for _, c := range []struct {
		name string
		test func(*testing.T, *servertest.Server)
	}{
		{"Info", testInfo},
		{"Results", testResults},
		{"Permissions", testPermissions},
		{"BadRequests", testBadRequests},
		{"HostileBodies", testHostileBodies},
		{"Stream", testStream},
		{"Abort", testAbort},
		{"QuotaIsShared", testQuotaIsShared},
		{"SlowClient", testSlowClient},
		{"Origins", testOrigins},
		{"Preflight", testPreflight},
		{"Anonymous", testAnonymous},
		{"AnonymousLimit", testAnonymousLimit},
		{"AnonymousQuota", testAnonymousQuota},
		{"Metrics", testMetrics},
		{"Tools", testTools},
		{"ToolFailures", testToolFailures},
		{"Links", testLinks},
		{"NoPlayground", testNoPlayground},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, s) })
	}
	if text := s.Log.String(); strings.Contains(text, "level=ERROR") || strings.Contains(text, "panic") {
		t.Error(text)
	}
}

// output is the object of a result.
type output struct {
	Logs       []string
	Facts      map[string]any
	Derived    map[string]any
	Errors     []string
	DurationMs float64
	TimedOut   bool
}

var sixKeys = []string{"derived", "durationMs", "errors", "facts", "logs", "timedOut"}

// run runs a snippet as a user. The result must have the six keys.
func run(t *testing.T, s *servertest.Server, user servertest.User, body any) (o output) {
	t.Helper()
	res := servertest.Send(t, s.Client(t, user), http.MethodPost, path, body)
	res.Want(t, http.StatusOK)
	return outputOf(t, res)
}

func outputOf(t *testing.T, res *servertest.Response) (o output) {
	t.Helper()
	var keys map[string]json.RawMessage
	res.Into(t, &keys)
	if got := slices.Sorted(maps.Keys(keys)); !slices.Equal(got, sixKeys) {
		t.Errorf("the keys are %v", got)
	}
	res.Into(t, &o)
	return o
}

// file is a file of a snippet.
func file(name, source string) object { return object{"path": name, "source": source} }

// overTCPFrom returns a client that connects from an address of loopback, so that it has limits of its
// own.
func overTCPFrom(t *testing.T, s *servertest.Server, from string) *http.Client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", s.Address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// request is a request by TCP with headers. An empty body is none.
func request(t *testing.T, s *servertest.Server, method, path, body string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// headersWithToken are the headers of a request of the tenant ci.
func headersWithToken(more ...string) []string {
	return append([]string{"Authorization", "Bearer " + servertest.Token("ci")}, more...)
}

// snippetEvent is an event of a stream.
type snippetEvent struct{ name, data string }

// snippetEvents is a response of events that is still arriving.
type snippetEvents struct {
	t      *testing.T
	lines  *bufio.Scanner
	cancel func()
}

// follow sends a request whose response is a stream. The test cancels it at its end.
func follow(t *testing.T, s *servertest.Server, user servertest.User, path string, body object) *snippetEvents {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gaol"+path, strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	return followRequest(t, s.Client(t, user), r)
}

func followRequest(t *testing.T, c *http.Client, r *http.Request) *snippetEvents {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	res, err := c.Do(r.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("status %d, type %q", res.StatusCode, kind)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return &snippetEvents{t, lines, cancel}
}

// next returns the next event; a zero one after the last.
func (es *snippetEvents) next() (e snippetEvent) {
	es.t.Helper()
	for es.lines.Scan() {
		switch field, value, _ := strings.Cut(es.lines.Text(), ": "); field {
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			if e.name != "" {
				return e
			}
		}
	}
	return snippetEvent{}
}

// logged fails the test unless the next event is a line.
func (es *snippetEvents) logged(line string) {
	es.t.Helper()
	var data struct{ Line string }
	if e := es.next(); e.name != "log" || json.Unmarshal([]byte(e.data), &data) != nil || data.Line != line {
		es.t.Fatalf("%+v, want the line %q", e, line)
	}
}

// forever is a snippet that logs a line, and then runs until it is ended.
const forever = "console.log('started'); await new Promise(() => setInterval(() => {}, 1000))"
