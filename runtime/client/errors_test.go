package client

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/coder/websocket"

	"gaol/internal/session"
	"gaol/runtime"
)

// newFake connects to a server that replies to all requests with a frame.
func newFake(t *testing.T, kind session.Kind, body string) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{session.Protocol}})
		if err != nil {
			return // the test's Dial fails
		}
		_ = session.NewSocket(socket, session.Client).Receive(func(f session.Frame) error {
			return socket.Write(r.Context(), websocket.MessageBinary, session.Append(nil, kind, f.ID, []byte(body)))
		})
	}))
	t.Cleanup(server.Close)
	c, err := Dial(t.Context(), Options{Address: server.URL, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestErrors compares which errors each code of the server matches.
func TestErrors(t *testing.T) {
	all := []error{fs.ErrNotExist, fs.ErrPermission, runtime.ErrClosed, runtime.ErrPaused, context.Canceled, ErrSandboxLost, ErrUnreachable, ErrNodeLost, ErrEngineUnavailable}
	for code, want := range map[string][]error{
		"not_found": {fs.ErrNotExist}, "no_program": {fs.ErrNotExist}, "forbidden": {fs.ErrPermission}, "not_executable": {fs.ErrPermission},
		"closed": {runtime.ErrClosed}, "draining": {runtime.ErrClosed}, "interrupted": {runtime.ErrClosed}, "canceled": {context.Canceled}, "paused": {runtime.ErrPaused}, "quota": nil,
		"sandbox_lost": {runtime.ErrClosed, ErrSandboxLost}, "unreachable": {ErrUnreachable}, "node_lost": {ErrNodeLost}, "engine_unavailable": {ErrEngineUnavailable},
	} {
		sb := newFake(t, session.KindError, `{"code":"`+code+`","retryAfterMs":1000}`).Sandbox("sb-1")
		_, err := sb.Info(t.Context())
		got := slices.DeleteFunc(slices.Clone(all), func(target error) bool { return !errors.Is(err, target) })
		if !slices.Equal(got, want) {
			t.Errorf("%s matches %v, want %v", code, got, want)
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != code || e.RetryAfter.Seconds() != 1 {
			t.Errorf("%s: %#v", code, err)
		}
		if err, gone := sb.Close(), code == "not_found" || code == "no_program" || code == "sandbox_lost"; (err == nil) != gone {
			t.Errorf("%s: Close returned %v", code, err)
		}
	}
}

func TestMissing(t *testing.T) {
	c := newFake(t, session.KindResult, `{"sandboxes":[{"id":"sb-1"}],"snapshots":[{"name":"s"}],"missing":["n2","n3"]}`)
	sandboxes, err := c.Sandboxes(t.Context())
	snapshots, other := c.Snapshots(t.Context())
	if len(sandboxes) != 1 || sandboxes[0].ID != "sb-1" || len(snapshots) != 1 || snapshots[0].Name != "s" {
		t.Errorf("%v, %v", sandboxes, snapshots)
	}
	for text, err := range map[string]error{
		"gaol: list: the list is incomplete: no reply from nodes n2, n3":           err,
		"gaol: list snapshots: the list is incomplete: no reply from nodes n2, n3": other,
	} {
		if missing, ok := errors.AsType[*MissingError](err); !ok || !slices.Equal(missing.Nodes, []string{"n2", "n3"}) || err.Error() != text {
			t.Errorf("%v, want %s", err, text)
		}
	}
	if list, err := newFake(t, session.KindResult, `{"sandboxes":[]}`).Sandboxes(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("a complete list: %v, %v", list, err)
	}
}
