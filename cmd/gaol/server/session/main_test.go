package session

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	protocol "gaol/internal/session"
	"gaol/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newServer serves sessions of one tenant.
func newServer(t testing.TB) (url string) {
	t.Helper()
	s := newService(t, func(context.Context, runtime.Options) (*runtime.NodeRuntime, error) {
		return nil, &runtime.OptionError{Option: "Test", Err: errors.ErrUnsupported}
	})
	return serve(t, New(s, nil))
}

// newService returns a service that creates sandboxes by a function, which returns none: the tests need no root.
func newService(t testing.TB, create func(context.Context, runtime.Options) (*runtime.NodeRuntime, error)) *service.Service {
	t.Helper()
	o, err := settings.Read("", settings.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	o.Tenant.Requests, o.Server.Requests, o.DrainMs = 1e6, 1e6, 1
	return service.New(service.Options{Settings: o, Create: create})
}

// serve serves the sessions of a tenant until the test ends.
func serve(t testing.TB, h *Handler) (url string) {
	t.Helper()
	return serveAs(t, h, &tenant.Tenant{Name: "uid:1"})
}

func serveAs(t testing.TB, h *Handler, who *tenant.Tenant) (url string) {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(tenant.NewContext(r.Context(), who)))
	}))
	t.Cleanup(func() {
		if err := h.service.Close(context.Background()); err != nil {
			t.Error(err)
		}
		h.Close()
		web.Close()
	})
	return "ws" + strings.TrimPrefix(web.URL, "http")
}

// dial opens a session that is closed when the test ends.
func dial(t testing.TB, url string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{Subprotocols: []string{protocol.Protocol}})
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(protocol.MaxFrame)
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

func send(t testing.TB, c *websocket.Conn, frame []byte) {
	t.Helper()
	if err := c.Write(soon(t), websocket.MessageBinary, frame); err != nil {
		t.Fatal(err)
	}
}

// request sends a request.
func request(t testing.TB, c *websocket.Conn, id uint32, text string) {
	t.Helper()
	send(t, c, protocol.Append(nil, protocol.KindRequest, id, []byte(text)))
}

// receive returns the next frame.
func receive(t testing.TB, c *websocket.Conn) protocol.Frame {
	t.Helper()
	_, message, err := c.Read(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	f, err := protocol.Parse(protocol.Server, message)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// soon returns a context that ends only for a test that hangs.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
