package mcpstdio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/mcpserver"
	"gaol/internal/strictjson"
	"gaol/runtime/client"
)

const (
	// grace is how long calls may continue after standard input has ended.
	grace = 2 * time.Second

	// maxLine bounds one message of the client.
	maxLine = 16 << 20

	// codeRejected is the code of the SDK's error for a response of HTTP that contains no reply.
	codeRejected = -32005
)

// Proxy forwards the requests of one client to a server.
type Proxy struct {
	server  *client.HTTP
	http    *http.Client
	client  mcp.Connection
	running sync.Map // jsonrpc.ID -> context.CancelFunc
}

// NewProxy returns a proxy that has not connected yet.
func NewProxy(server *client.HTTP) *Proxy {
	return &Proxy{server: server, http: &http.Client{Transport: stateless{server.Transport}, CheckRedirect: server.CheckRedirect}}
}

// stateless sends requests that the server serves without a session.
type stateless struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t stateless) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(mcpserver.StatelessHeader, "true")
	return t.RoundTripper.RoundTrip(r)
}

func (p *Proxy) transport() mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: p.server.URL + "/mcp", HTTPClient: p.http, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: -1}
}

// Check connects to the server, which must have the tools of package sandboxtools if sandboxTools is set.
func (p *Proxy) Check(ctx context.Context, sandboxTools bool) error {
	s, err := mcp.NewClient(&mcp.Implementation{Name: "gaol"}, nil).Connect(ctx, p.transport(), nil)
	if err != nil {
		return p.server.Explain(err)
	}
	defer func() { _ = s.Close() }() // there is no session to end
	for t, err := range s.Tools(ctx, nil) {
		if err != nil || !sandboxTools || strings.HasPrefix(t.Name, "sandbox_") {
			return err
		}
	}
	return errors.New("the server lacks sandbox tools: start it with gaol serve --tools sandbox")
}

// Serve serves the client until its input or ctx ends. It ends the calls that are in progress after some time then.
func (p *Proxy) Serve(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	p.client, err = (&mcp.IOTransport{Reader: io.NopCloser(in), Writer: output{out}, MaxLineLength: maxLine}).Connect(ctx)
	if err != nil {
		return err
	}
	calls, cancel := context.WithCancel(ctx)
	defer cancel()
	var pending sync.WaitGroup
	for {
		var m jsonrpc.Message
		if m, err = p.client.Read(ctx); err != nil {
			break
		}
		r, ok := m.(*jsonrpc.Request)
		switch {
		case !ok: // the server requests nothing from clients
		case r.IsCall():
			call, end := context.WithCancel(calls)
			p.running.Store(r.ID, end)
			pending.Go(func() {
				defer end()
				defer p.running.Delete(r.ID)
				p.forward(call, r)
			})
		case r.Method == "notifications/cancelled":
			if end, ok := p.running.Load(canceled(r)); ok {
				end.(context.CancelFunc)()
			}
		} // without a session, other notifications mean nothing to the server
	}
	defer time.AfterFunc(grace, cancel).Stop()
	pending.Wait()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// output is a writer that stays open: the process owns its standard output.
type output struct{ io.Writer }

// Close does nothing.
func (output) Close() error { return nil }

// canceled returns the call that a notification cancels.
func canceled(r *jsonrpc.Request) (id jsonrpc.ID) {
	var p mcp.CancelledParams
	if json.Unmarshal(r.Params, &p) == nil {
		id, _ = jsonrpc.MakeID(p.RequestID) // the zero ID, of no call, if it is invalid
	}
	return id
}

// forward sends a call to the server, and the reply and earlier notifications to the client. A canceled call has no
// reply.
func (p *Proxy) forward(ctx context.Context, r *jsonrpc.Request) {
	server, err := p.transport().Connect(ctx)
	if err == nil {
		defer func() { _ = server.Close() }() // there is no session to end
		err = server.Write(ctx, r)
	}
	for err == nil {
		var m jsonrpc.Message
		if m, err = server.Read(ctx); err != nil {
			break
		}
		_ = p.client.Write(ctx, m) // the client may have gone
		if _, replied := m.(*jsonrpc.Response); replied {
			return
		}
	}
	_ = p.client.Write(ctx, &jsonrpc.Response{ID: r.ID, Error: p.explain(err)}) // likewise
}

// explain returns the error of a call for the client.
func (p *Proxy) explain(err error) error {
	if _, unsent := errors.AsType[*url.Error](err); unsent {
		return p.server.Explain(err)
	}
	if reply, ok := errors.AsType[*jsonrpc.Error](err); ok && reply.Code != codeRejected {
		return reply
	}
	return fmt.Errorf("server: %w", err)
}

// Clients are the clients that Config knows.
var Clients = []string{"claude-code", "claude-desktop", "cursor", "vscode", "goose"}

// Command is how a client starts the proxy.
type Command struct {
	Path string
	Args []string
	Env  map[string]string
}

// files are the files of JSON to which clients add servers, and the member with the servers there.
var files = map[string]struct{ comment, member string }{
	"claude-desktop": {"claude_desktop_config.json (Settings, Developer, Edit Config)", "mcpServers"},
	"cursor":         {"~/.cursor/mcp.json, or .cursor/mcp.json in a project", "mcpServers"},
	"vscode":         {".vscode/mcp.json, or the command MCP: Open User Configuration", "servers"},
}

// goose is a file of YAML. Strings of JSON are strings of YAML, too.
const goose = `# ~/.config/goose/config.yaml
extensions:
  gaol:
    enabled: true
    type: stdio
    name: gaol
    cmd: %s
    args: %s
    envs: %s
    timeout: 300
`

// Config returns the configuration of a client that starts c, and where to paste it.
func Config(client string, c Command) (text string, err error) {
	entry := map[string]any{"command": c.Path, "args": c.Args, "env": c.Env}
	if client == "vscode" {
		entry["type"] = "stdio"
	}
	file, inFile := files[client]
	switch {
	case inFile:
		return "// " + file.comment + "\n" + encode(map[string]any{file.member: map[string]any{"gaol": entry}}, "  "), nil
	case client == "claude-code":
		return "# Run this command:\nclaude mcp add-json gaol " + quote(compact(entry)) + "\n", nil
	case client == "goose":
		return fmt.Sprintf(goose, compact(c.Path), compact(c.Args), compact(c.Env)), nil
	}
	return "", fmt.Errorf("--config %q: want one of %s", client, strings.Join(Clients, ", "))
}

func compact(v any) string { return strings.TrimSpace(encode(v, "")) }

func encode(v any, indent string) string {
	text, err := strictjson.Encode(v, indent)
	if err != nil {
		panic(err) // strings and maps of them have JSON
	}
	return string(text)
}

// quote quotes a text for the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
