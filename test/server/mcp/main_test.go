package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

func TestMain(m *testing.M) { harness.Main(m) }

var (
	alice = servertest.User{UID: 4001, GID: 4001}
	bob   = servertest.User{UID: 4002, GID: 4002}
)

// start starts a server with the sandbox tools, to which all users may connect. It returns the socket.
func start(t *testing.T, change func(*settings.Settings)) (socket string) {
	t.Helper()
	set, err := settings.Read("", settings.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	set.DrainMs = 1
	if change != nil {
		change(set)
	}
	socket = filepath.Join(servertest.PublicDir(t), "gaol.sock")
	log := &servertest.Log{}
	options := server.Options{Version: "test", SandboxTools: true, Options: service.Options{
		Settings: set, Store: os.Getenv(harness.StoreVar), Log: slog.New(slog.NewTextHandler(log, nil)),
		CgroupParent: harness.Parent + "/tenants",
	}}
	_, serveNodes := servertest.JoinFleet(t, &options)
	s := server.New(options)
	serveNodes(s)
	servertest.SetAudit(t, s, set.AuditLog)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, nil) }()
	t.Cleanup(func() {
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(log)
		}
	})
	return socket
}

// client is an HTTP client that connects as a user.
func client(t *testing.T, socket string, user servertest.User) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return servertest.Dial(socket, user) }}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// session is a connected client.
type session struct {
	*mcp.ClientSession
	t        *testing.T
	progress chan *mcp.ProgressNotificationParams
}

// connect connects as a user, with a protocol version; empty for the newest.
func connect(t *testing.T, socket string, user servertest.User, version string) *session {
	t.Helper()
	return dial(t, &mcp.StreamableClientTransport{Endpoint: "http://gaol/mcp", HTTPClient: client(t, socket, user), MaxRetries: -1}, version)
}

func dial(t *testing.T, transport mcp.Transport, version string) *session {
	t.Helper()
	s := &session{t: t, progress: make(chan *mcp.ProgressNotificationParams, 100)}
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { s.progress <- r.Params },
	})
	cs, err := c.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	s.ClientSession = cs
	t.Cleanup(func() { _ = cs.Close() })
	return s
}

// in returns the session for a part of a test.
func (s *session) in(t *testing.T) *session {
	part := *s
	part.t = t
	return &part
}

// result is a result of a tool.
type result struct {
	*mcp.CallToolResult
	text string
}

type args = map[string]any

// call calls a tool.
func (s *session) call(name string, a args) *result {
	s.t.Helper()
	r, err := s.CallTool(s.t.Context(), &mcp.CallToolParams{Name: name, Arguments: a})
	if err != nil {
		s.t.Fatalf("%s: %v", name, err)
	}
	res := &result{CallToolResult: r}
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			res.text += text.Text
		}
	}
	return res
}

// ok calls a tool that must succeed, and decodes its structured content into out.
func (s *session) ok(name string, a args, out any) *result {
	s.t.Helper()
	r := s.call(name, a)
	if r.IsError {
		s.t.Fatalf("%s: %s", name, r.text)
	}
	r.decode(s.t, out)
	return r
}

// fails calls a tool that must fail with texts in its message.
func (s *session) fails(name string, a args, texts ...string) *result {
	s.t.Helper()
	r := s.call(name, a)
	if !r.IsError {
		s.t.Errorf("%s succeeded: %s", name, r.text)
	}
	for _, text := range texts {
		if !strings.Contains(r.text, text) {
			s.t.Errorf("%s: no %q in %q", name, text, r.text)
		}
	}
	return r
}

func (r *result) decode(t *testing.T, out any) {
	t.Helper()
	if out == nil {
		return
	}
	text, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// create creates a sandbox.
func (s *session) create(a args) (id string) {
	s.t.Helper()
	var out struct{ SandboxID string }
	s.ok("create_sandbox", a, &out)
	return out.SandboxID
}
