package fleet

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// inTurn sends each request to another node.
type inTurn struct {
	callers []caller
	last    atomic.Int64
}

// RoundTrip implements [http.RoundTripper].
func (n *inTurn) RoundTrip(r *http.Request) (*http.Response, error) {
	return n.callers[int(n.last.Add(1))%len(n.callers)].Transport.RoundTrip(r)
}

// testMCP: each request of an MCP client may go to another node, with a session and without one.
func testMCP(t *testing.T, c *cluster) {
	nodes := &inTurn{}
	for _, n := range c.nodes {
		nodes.callers = append(nodes.callers, n.as(t, ada))
	}
	for _, version := range []string{"2025-06-18", ""} {
		transport := &mcp.StreamableClientTransport{Endpoint: "http://gaol/mcp", HTTPClient: &http.Client{Transport: nodes}, MaxRetries: -1, DisableStandaloneSSE: true}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		call := func(tool string, args object) (out struct {
			SandboxID, ContextID, Content string
			Value                         any
		}) {
			t.Helper()
			res, err := session.CallTool(soon(t), &mcp.CallToolParams{Name: tool, Arguments: args})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(res.StructuredContent)
			if err != nil || res.IsError || json.Unmarshal(text, &out) != nil {
				t.Fatalf("%s: %v %s %+v", tool, err, text, res.Content)
			}
			return out
		}
		id := call("create_sandbox", object{}).SandboxID
		call("write_file", object{"sandboxId": id, "path": "/workspace/a", "content": strings.Repeat("x", 300_000)})
		context := call("run_code", object{"sandboxId": id, "contextId": "new", "code": "let n = require('fs').readFileSync('a').length; n"})
		if context.Value != 300_000.0 {
			t.Errorf("a file of %v bytes", context.Value)
		}
		for i := range len(c.nodes) {
			if got := call("run_code", object{"contextId": context.ContextID, "code": "++n"}).Value; got != float64(300_001+i) {
				t.Errorf("a context counts to %v", got)
			}
			if got := call("run_code", object{"code": "6 * 7"}).Value; got != 42.0 {
				t.Errorf("a fresh sandbox returns %v", got)
			}
		}
		for range c.nodes {
			read, err := session.ReadResource(soon(t), &mcp.ReadResourceParams{URI: "gaol://sandbox/" + id + "/workspace/a"})
			if err != nil || len(read.Contents) != 1 || len(read.Contents[0].Text) != 300_000 {
				t.Errorf("a resource: %v", err)
			}
		}
		call("close_sandbox", object{"sandboxId": id})
		for range c.nodes {
			res, err := session.CallTool(soon(t), &mcp.CallToolParams{Name: "run_code", Arguments: object{"sandboxId": id, "code": "1"}})
			if err != nil || !res.IsError {
				t.Errorf("a sandbox that was closed: %v %+v", err, res)
			}
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
}

// testPreview: each node serves the host names of the sandboxes of all nodes. Guests get no token of the server, and
// serve all paths, also those by which nodes ask each other.
func testPreview(t *testing.T, c *cluster) {
	path := c.nodes[0].as(t, ada).create(nil)
	c.nodes[0].as(t, ada).want(http.StatusCreated, "POST", path+"/processes", object{
		"code": `require('http').createServer((q, s) => s.writeHead(200, { 'content-security-policy': 'x' }).end(q.url + ' ' + q.headers.authorization)).listen(3000, '127.0.0.1')`,
	})
	c.nodes[0].as(t, ada).want(http.StatusOK, "POST", path+"/listeners/3000/wait", nil)
	host := "3000-" + strings.TrimPrefix(path, "/v1/sandboxes/") + "." + previewHost
	for _, n := range c.nodes {
		for sent, want := range map[string]string{"Bearer " + c.secrets[ada]: "undefined", "Basic Zm9v": "Basic Zm9v"} {
			r, err := http.NewRequestWithContext(soon(t), http.MethodGet, "http://"+n.address+"/fleet/v1/ping?b=1", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			r.Header.Set("Authorization", sent)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil || string(body) != "/fleet/v1/ping?b=1 "+want || len(res.Header.Values("Content-Security-Policy")) != 1 {
				t.Errorf("through node %s: %s %v %q %q", n.name, res.Status, err, body, res.Header)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
