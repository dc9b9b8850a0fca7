package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"gaol/internal/session"
)

// TestMissingNodes: gaol ps prints the list that it has, and which nodes of a fleet did not reply.
func TestMissingNodes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{session.Protocol}})
		if err != nil {
			return // gaol ps fails
		}
		_ = session.NewSocket(socket, session.Client).Receive(func(f session.Frame) error {
			return socket.Write(r.Context(), websocket.MessageBinary, session.Append(nil, session.KindResult, f.ID, []byte(`{"sandboxes":[{"id":"sb-1"}],"missing":["n2"]}`)))
		})
	}))
	defer server.Close()
	got := new(fake).call(t, "", "ps", "--server", server.URL)
	if want := "gaol: the list is incomplete: no reply from nodes n2\n"; got.code != 0 || got.stderr != want || !strings.Contains(got.stdout, "sb-1") {
		t.Errorf("%+v, want %q on standard error", got, want)
	}
}
