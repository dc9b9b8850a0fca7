package session

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
	protocol "gaol/internal/session"
	"gaol/runtime"
)

// otherNode is a node that has all sandboxes whose ids begin with "b-". The test plays its part.
type otherNode struct {
	url      string
	sessions chan *websocket.Conn
	known    chan struct{} // closed: Target returns
	lost     context.Context
}

var errNoNode = service.Refuse(service.NodeLost, "the node was lost")

func (n *otherNode) Target(ctx context.Context, _ *tenant.Tenant, _ *operation.Operation, params json.RawMessage) (string, func(), error) {
	select {
	case <-n.known:
	case <-ctx.Done():
	}
	var in struct{ Sandbox string }
	_ = json.Unmarshal(params, &in)
	if strings.HasPrefix(in.Sandbox, "b-") {
		return "b", func() {}, nil
	}
	return "", func() {}, nil
}

func (n *otherNode) Dial(ctx context.Context, _ string, _ *tenant.Tenant) (*websocket.Conn, error) {
	c, _, err := websocket.Dial(ctx, n.url, &websocket.DialOptions{Subprotocols: []string{protocol.Protocol}})
	return c, err
}

func (n *otherNode) While(ctx context.Context, _ string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(n.lost, cancel)
	return ctx, func() { stop(); cancel() }
}

func (*otherNode) LostError() error { return errNoNode }

func (*otherNode) IsMerged(o *operation.Operation) bool { return o.Name == "listSandboxes" }

func (*otherNode) Merge(_ context.Context, _ *tenant.Tenant, path string, own json.RawMessage) (any, error) {
	return map[string]any{"path": path, "own": own}, nil
}

// newFleet returns a session with a server whose other node is played by the test.
func newFleet(t *testing.T) (client *websocket.Conn, n *otherNode) {
	t.Helper()
	n = &otherNode{sessions: make(chan *websocket.Conn, 1), known: make(chan struct{}), lost: t.Context()}
	ended := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{protocol.Protocol}})
		if err != nil {
			t.Error(err)
			return
		}
		c.SetReadLimit(protocol.MaxFrame)
		n.sessions <- c
		<-ended
		_ = c.CloseNow()
	}))
	t.Cleanup(web.Close)
	t.Cleanup(func() { close(ended) })
	n.url = "ws" + strings.TrimPrefix(web.URL, "http")
	s := newService(t, func(context.Context, runtime.Options) (*runtime.NodeRuntime, error) {
		return nil, errors.ErrUnsupported
	})
	return dial(t, serve(t, New(s, n))), n
}

// arrives returns the next frame that the other node gets.
func arrives(t *testing.T, c *websocket.Conn) protocol.Frame {
	t.Helper()
	_, message, err := c.Read(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	f, err := protocol.Parse(protocol.Client, message)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func wantFrame(t *testing.T, f protocol.Frame, kind protocol.Kind, id uint32, body string) {
	t.Helper()
	if f.Kind != kind || f.ID != id || string(f.Body) != body {
		t.Errorf("frame %d of %d: %q, want %d of %d: %q", f.Kind, f.ID, f.Body, kind, id, body)
	}
}

// TestRelay: the frames of a request arrive at its node in their order, also those that were sent before it was known, and
// those of the node at the client.
func TestRelay(t *testing.T) {
	client, n := newFleet(t)
	text := `{"method":"runIn","params":{"sandbox":"b-1","code":"1"},"stdin":true}`
	request(t, client, 7, text)
	send(t, client, protocol.Append(nil, protocol.KindStdin, 7, []byte("in")))
	send(t, client, protocol.AppendCredit(nil, 7, protocol.Stdout, 5))
	send(t, client, protocol.Append(nil, protocol.KindSignal, 7, []byte("SIGINT")))
	close(n.known)
	b := <-n.sessions
	wantFrame(t, arrives(t, b), protocol.KindRequest, 7, text)
	wantFrame(t, arrives(t, b), protocol.KindStdin, 7, "in")
	wantFrame(t, arrives(t, b), protocol.KindCredit, 7, string(protocol.AppendCredit(nil, 7, protocol.Stdout, 5)[5:]))
	wantFrame(t, arrives(t, b), protocol.KindSignal, 7, "SIGINT")
	send(t, client, protocol.Append(nil, protocol.KindCancel, 7))
	wantFrame(t, arrives(t, b), protocol.KindCancel, 7, "")
	send(t, b, protocol.Append(nil, protocol.KindStdout, 7, []byte("out")))
	send(t, b, protocol.AppendCredit(nil, 7, protocol.Stdin, 2))
	send(t, b, protocol.Append(nil, protocol.KindResult, 7, []byte(`{"a":1}`)))
	wantFrame(t, receive(t, client), protocol.KindStdout, 7, "out")
	wantFrame(t, receive(t, client), protocol.KindCredit, 7, string(protocol.AppendCredit(nil, 7, protocol.Stdin, 2)[5:]))
	wantFrame(t, receive(t, client), protocol.KindResult, 7, `{"a":1}`)

	request(t, client, 7, text) // the id is free again, and the session with the node is used again
	wantFrame(t, arrives(t, b), protocol.KindRequest, 7, text)
	send(t, b, protocol.Append(nil, protocol.KindError, 7, []byte(`{"status":404,"code":"not_found"}`)))
	wantFrame(t, receive(t, client), protocol.KindError, 7, `{"status":404,"code":"not_found"}`)

	request(t, client, 8, `{"method":"getSandbox","params":{"sandbox":"a-1"}}`)
	if f := receive(t, client); f.Kind != protocol.KindError || !strings.Contains(string(f.Body), "no sandbox") {
		t.Errorf("a request for this node: %d %s", f.Kind, f.Body)
	}
	request(t, client, 9, `{"method":"listSandboxes"}`)
	wantFrame(t, receive(t, client), protocol.KindResult, 9, `{"own":{"sandboxes":[]},"path":"/v1/sandboxes"}`+"\n")
}

// TestRelayCalls: calls of the client's functions get ids of the client's session, and their answers the ids of the node's.
func TestRelayCalls(t *testing.T) {
	client, n := newFleet(t)
	close(n.known)
	request(t, client, 1, `{"method":"runIn","params":{"sandbox":"b-1","code":"1"}}`)
	b := <-n.sessions
	arrives(t, b)
	body := string(binary.BigEndian.AppendUint32(nil, 5)) + "[1]"
	send(t, b, protocol.Append(nil, protocol.KindCall, 900, []byte(body)))
	call := receive(t, client)
	wantFrame(t, call, protocol.KindCall, 1, body)
	send(t, client, protocol.Append(nil, protocol.KindAnswer, call.ID, []byte("2")))
	wantFrame(t, arrives(t, b), protocol.KindAnswer, 900, "2")

	send(t, b, protocol.Append(nil, protocol.KindCall, 901, []byte(body)))
	call = receive(t, client)
	send(t, client, protocol.Append(nil, protocol.KindFailure, call.ID, []byte(`{"message":"no"}`)))
	wantFrame(t, arrives(t, b), protocol.KindFailure, 901, `{"message":"no"}`)

	send(t, b, protocol.Append(nil, protocol.KindCall, 902, []byte(body)))
	call = receive(t, client)
	send(t, b, protocol.Append(nil, protocol.KindAbandon, 902))
	wantFrame(t, receive(t, client), protocol.KindAbandon, call.ID, "")
}

// TestRelayLost: the requests of a node that is lost, or whose session ends, have errors. Later ones open another session.
func TestRelayLost(t *testing.T) {
	client, n := newFleet(t)
	close(n.known)
	for range 2 {
		request(t, client, 1, `{"method":"runIn","params":{"sandbox":"b-1","code":"1"}}`)
		b := <-n.sessions
		arrives(t, b)
		_ = b.CloseNow()
		if f := receive(t, client); f.Kind != protocol.KindError || !strings.Contains(string(f.Body), `"code":"node_lost"`) {
			t.Errorf("frame %d: %s", f.Kind, f.Body)
		}
	}
	var die context.CancelFunc
	n.lost, die = context.WithCancel(t.Context())
	request(t, client, 1, `{"method":"runIn","params":{"sandbox":"b-1","code":"1"}}`)
	arrives(t, <-n.sessions)
	die()
	if f := receive(t, client); f.Kind != protocol.KindError || !strings.Contains(string(f.Body), `"code":"node_lost"`) {
		t.Errorf("frame %d: %s", f.Kind, f.Body)
	}
}

// TestRelayRefused: a session ends for the reason for which a node has refused a frame of its client.
func TestRelayRefused(t *testing.T) {
	client, n := newFleet(t)
	close(n.known)
	request(t, client, 1, `{"method":"runIn","params":{"sandbox":"b-1","code":"1"}}`)
	b := <-n.sessions
	arrives(t, b)
	reason := protocol.ErrFrame.Error() + ": bytes without credit"
	go func() { _ = b.Close(websocket.StatusProtocolError, reason) }()
	_, _, err := client.Read(soon(t))
	for err == nil { // the canceled request was answered before
		_, _, err = client.Read(soon(t))
	}
	if end, _ := errors.AsType[websocket.CloseError](err); end.Code != websocket.StatusProtocolError || end.Reason != reason {
		t.Errorf("%v, want %q", err, reason)
	}
}

// TestRelayFlood: a client that sends many frames before the node of its request is known ends its session.
func TestRelayFlood(t *testing.T) {
	client, n := newFleet(t)
	defer close(n.known)
	request(t, client, 1, `{"method":"runIn","params":{"sandbox":"b-1","code":"1"}}`)
	for range maxPending + 1 {
		send(t, client, protocol.AppendCredit(nil, 1, protocol.Stdout, 1))
	}
	_, _, err := client.Read(soon(t))
	if err == nil { // the canceled request was answered before
		_, _, err = client.Read(soon(t))
	}
	if websocket.CloseStatus(err) != websocket.StatusProtocolError {
		t.Errorf("%v, want a protocol error", err)
	}
}
