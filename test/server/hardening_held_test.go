package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"gaol/cmd/gaol/server/settings"
	protocol "gaol/internal/session"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// TestHeldMemory: the values of a request count towards its tenant's quota bodyBytes until it ends, in all doors, and
// values in globals do not.
func TestHeldMemory(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Settings: func(o *settings.Settings) {
		o.Tenant.Bodies, o.Tenant.Requests, o.Server.Requests = 2<<20, 1e6, 1e6
	}})
	c := s.Client(t, user)
	args := `[` + strings.Repeat(`"",`, 4095) + `""]` // 1 MiB
	short := `{"code":"1","args":` + args + `}`
	ctx, cancel := context.WithCancel(t.Context())
	held := make(chan bool)
	go func() {
		defer close(held)
		for ctx.Err() == nil { // the other request may be the first
			post(ctx, c, `{"code":"setInterval(() => {}, 1000)","timeoutMs":300000,"args":`+args+`}`)
		}
	}()
	var res *servertest.Response
	harness.WaitFor(t, "a second request exceeds the quota", func() bool {
		res = servertest.Send(t, c, "POST", "/v1/run", short)
		return res.Status != http.StatusOK
	})
	if p := res.Want(t, http.StatusTooManyRequests); !strings.Contains(p.Detail, "bodyBytes") || res.Header.Get("Retry-After") == "" {
		t.Errorf("%+v, %v", p, res.Header)
	}
	mcp := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + args + `}}`
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://gaol/mcp", strings.NewReader(mcp))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if !servertest.IsFleet() { // whose nodes have a quota each: the other one serves the request that is held
		servertest.Do(t, c, r).Want(t, http.StatusTooManyRequests)
	}
	if detail := openSession(t, s).request(t, `{"method":"run","params":`+short+`}`); !strings.Contains(detail, "bodyBytes") {
		t.Errorf("a session: %s", detail)
	}
	globals := `{"code":"a.length","globals":{"a":[` + strings.Repeat(`1,`, 100_000) + `1]}}`
	servertest.Send(t, c, "POST", "/v1/evaluate", globals).Want(t, http.StatusOK)
	cancel()
	<-held
	harness.WaitFor(t, "the memory is released", func() bool {
		return servertest.Send(t, c, "POST", "/v1/run", short).Status == http.StatusOK
	})
}

// post sends a request that takes until ctx ends, unless it is refused.
func post(ctx context.Context, c *http.Client, body string) {
	r, err := http.NewRequestWithContext(ctx, "POST", "http://gaol/v1/run", strings.NewReader(body))
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", "application/json")
	if res, err := c.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}

// TestUnreadInput: the input of a session's requests that no program reads counts towards the quota bodyBytes. Only the
// request that exceeds it ends.
func TestUnreadInput(t *testing.T) {
	const requests = 6
	s := servertest.Start(t, servertest.Options{Settings: func(o *settings.Settings) { o.Tenant.Bodies = (requests - 1) * protocol.Window }})
	socket := openSession(t, s)
	start := func(id uint32, input int) {
		t.Helper()
		socket.send(t, protocol.KindRequest, id, []byte(`{"method":"run","params":{"code":"setInterval(() => {}, 1000)","timeoutMs":300000}}`))
		for range input / protocol.MaxChunk {
			socket.send(t, protocol.KindStdin, id, make([]byte, protocol.MaxChunk))
		}
	}
	for id := range uint32(requests) {
		start(id+1, protocol.Window)
	}
	least := uint32(requests - 1)
	if servertest.IsFleet() {
		least = 1 // requests do not arrive at the other node in their order
	}
	refused := socket.end(t)
	if refused.Kind != protocol.KindError || !bytes.Contains(refused.Body, []byte("bodyBytes")) || refused.ID < least {
		t.Errorf("request %d, kind %d: %s", refused.ID, refused.Kind, refused.Body)
	}
	over := map[uint32]bool{refused.ID: true}
	ended := func(id uint32) {
		t.Helper()
		for !over[id] {
			f := socket.end(t)
			over[f.ID] = true
			if overQuota := bytes.Contains(f.Body, []byte("bodyBytes")); overQuota && (f.ID < least || f.ID > requests) {
				t.Errorf("request %d: %s", f.ID, f.Body)
			}
		}
	}
	for id := range uint32(3) { // they make room for another one
		socket.send(t, protocol.KindCancel, id+1, nil)
		ended(id + 1)
	}
	start(100, protocol.Window)
	socket.send(t, protocol.KindCancel, 100, nil)
	ended(100)
}

// send sends a frame.
func (s rawSession) send(t *testing.T, kind protocol.Kind, id uint32, body []byte) {
	t.Helper()
	if err := s.Write(t.Context(), websocket.MessageBinary, protocol.Append(nil, kind, id, body)); err != nil {
		t.Fatal(err)
	}
}

// end returns the frame that ends the next request.
func (s rawSession) end(t *testing.T) protocol.Frame {
	t.Helper()
	for {
		_, message, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f, err := protocol.Parse(protocol.Server, message)
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind == protocol.KindError || f.Kind == protocol.KindResult {
			return f
		}
	}
}
