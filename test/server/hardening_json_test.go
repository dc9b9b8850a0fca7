package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	protocol "gaol/internal/session"
	"gaol/test/server/servertest"
)

// TestManyValues: no door keeps a tree of the values of a hostile text.
func TestManyValues(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	c := s.Client(t, user)
	values := `[` + strings.Repeat(`{},`, 5<<20) + `0]`
	few := `[` + strings.Repeat(`{},`, 300_000) + `0]`
	socket := openSession(t, s)
	post := func(path, body string, header ...string) func() string {
		return func() string {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://gaol"+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			return servertest.Do(t, c, r).Want(t, http.StatusBadRequest).Detail
		}
	}
	for name, send := range map[string]func() (detail string){
		"HTTP":    post("/v1/run", `{"code":"1","args":`+values+`}`),
		"unknown": post("/v1/run", `{"code":"1","x":{"y":`+values+`}}`),
		"globals": post("/v1/evaluate", `{"code":"1","globals":{"a":`+values+`}}`),
		"snippet": post("/api/sandbox", `{"x":{"y":`+few+`}}`),
		"MCP":     post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"code":`+values+`}}}`),
		"MCP without sessions": post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"code":`+values+`}}}`,
			"Mcp-Protocol-Version", "2026-07-28"),
		"session": func() string {
			return socket.request(t, `{"method":"run","params":{"code":"1","args":`+values+`}}`)
		},
		"globals of a session": func() string {
			return socket.request(t, `{"method":"evaluate","params":{"code":"1","globals":{"a":`+values+`}}}`)
		},
	} {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		detail := send()
		goruntime.ReadMemStats(&after)
		if !strings.Contains(detail, "more than") && !strings.Contains(detail, "validation failed") {
			t.Errorf("%s: %s", name, detail)
		}
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 256 { // with copies of the body, also the client's
			t.Errorf("%s: %d MiB were allocated", name, got)
		}
	}
}

// rawSession is a session with one request at a time.
type rawSession struct{ *websocket.Conn }

func openSession(t *testing.T, s *servertest.Server) rawSession {
	t.Helper()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return servertest.Dial(s.Socket, user) }}
	c, _, err := websocket.Dial(t.Context(), "ws://gaol/v1/session", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, Subprotocols: []string{protocol.Protocol},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	c.SetReadLimit(protocol.MaxFrame)
	return rawSession{c}
}

// request returns the detail of a request's error.
func (s rawSession) request(t *testing.T, body string) string {
	t.Helper()
	if err := s.Write(t.Context(), websocket.MessageBinary, protocol.Append(nil, protocol.KindRequest, 1, []byte(body))); err != nil {
		t.Fatal(err)
	}
	_, message, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, err := protocol.Parse(protocol.Server, message)
	if err != nil || f.Kind != protocol.KindError {
		t.Fatalf("%v: kind %d", err, f.Kind)
	}
	var p protocol.Problem
	if err := json.Unmarshal(f.Body, &p); err != nil {
		t.Fatal(err)
	}
	return p.Detail
}

// TestGlobalsStayText: while an evaluation runs, the server keeps a few copies of its globals' text, and no values.
func TestGlobalsStayText(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	c := s.Client(t, user)
	servertest.Send(t, c, "POST", "/v1/evaluate", `{"code":"1","globals":{"a":[{}]}}`).Want(t, http.StatusOK) // starts Node
	heap := func() int64 {
		goruntime.GC()
		goruntime.GC() // empties pools
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	body := []byte(`{"code":"console.log('started'); await new Promise(r => setTimeout(r, 1e6)); a","timeoutMs":300000,"globals":{"a":[` + strings.Repeat(`{},`, 580_000) + `0]}}`)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", "http://gaol/v1/evaluate", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	defer cancel()
	started := make([]byte, 0, 4096)
	for deadline := time.Now().Add(5 * time.Minute); !bytes.Contains(started, []byte("started")); {
		part := make([]byte, 512)
		n, err := res.Body.Read(part)
		if started = append(started, part[:n]...); err != nil || time.Now().After(deadline) {
			t.Fatalf("%v: %s", err, started)
		}
	}
	got := heap() - before
	t.Logf("%d KiB of globals keep %d KiB", len(body)>>10, got>>10)
	if got > 8*int64(len(body)) {
		t.Errorf("%d bytes of globals keep %d", len(body), got)
	}
}
