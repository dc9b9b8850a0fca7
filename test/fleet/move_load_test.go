package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/harness"
)

// increment is code that increments the number in a file.
const increment = `const fs = require('fs'), next = (fs.existsSync('n') ? +fs.readFileSync('n') : 0) + 1; fs.writeFileSync('n', next + '');`

// tally increments the number in a file of a sandbox, through each node in turn.
type tally struct {
	kind  string
	id    string
	next  func(by int) (value string, err error)
	count int
	worst time.Duration
}

// run counts until stop is closed. No request may fail, or be performed twice.
func (k *tally) run(t *testing.T, nodes int, stop <-chan struct{}) {
	for ; ; k.count++ {
		select {
		case <-stop:
			return
		default:
		}
		begin := time.Now()
		got, err := k.next(k.count % nodes)
		took := time.Since(begin)
		if want := fmt.Sprint(k.count + 1); err != nil || got != want {
			t.Errorf("%s: request %s of sandbox %s returns %s after %v: %v", k.kind, want, k.id, got, took, err)
			return
		}
		k.worst = max(k.worst, took)
	}
}

// countByHTTP counts by requests.
func (c *cluster) countByHTTP(t *testing.T, id string) *tally {
	var callers []caller
	for _, n := range c.nodes {
		callers = append(callers, n.as(t, ada))
	}
	return &tally{kind: "HTTP", id: id, next: func(by int) (string, error) {
		res, err := callers[by].Post("http://gaol/v1/sandboxes/"+id+"/run", "application/json", strings.NewReader(fmt.Sprintf(`{"code": %q}`, increment+" __return(next)")))
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		var run struct {
			Value  json.RawMessage
			Detail string
		}
		err = json.NewDecoder(res.Body).Decode(&run)
		if res.StatusCode != http.StatusOK {
			err = errors.New(res.Status + " " + run.Detail)
		}
		return string(run.Value), err
	}}
}

// countBySession counts by sessions.
func (c *cluster) countBySession(t *testing.T, id string) *tally {
	t.Helper()
	var sandboxes []*client.Sandbox
	for _, n := range c.nodes {
		sandboxes = append(sandboxes, n.dial(t, ada).Sandbox(id))
	}
	return &tally{kind: "session", id: id, next: func(by int) (string, error) {
		res, err := sandboxes[by].Run(t.Context(), increment+" __return(next)", runtime.RunOptions{})
		if err != nil {
			return "", err
		}
		return string(res.Value), nil
	}}
}

// countByMCP counts by tools of MCP, in a session of a protocol version.
func (c *cluster) countByMCP(t *testing.T, id, version string) *tally {
	t.Helper()
	var sessions []*mcp.ClientSession
	for _, n := range c.nodes {
		transport := &mcp.StreamableClientTransport{Endpoint: "http://gaol/mcp", HTTPClient: n.as(t, ada).Client, MaxRetries: -1, DisableStandaloneSSE: true}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Close() })
		sessions = append(sessions, session)
	}
	return &tally{kind: "MCP " + version, id: id, next: func(by int) (string, error) {
		res, err := sessions[by].CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code", Arguments: object{"sandboxId": id, "code": "{" + increment + " next}"}})
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(res.StructuredContent)
		var out struct{ Value json.RawMessage }
		if err = errors.Join(err, json.Unmarshal(text, &out)); res.IsError {
			content, _ := json.Marshal(res.Content) // which never fails
			err = errors.New(string(content))
		}
		return string(out.Value), err
	}}
}

// maxPause is how long a request may wait for a sandbox of 20 MB that moves.
const maxPause = 5 * time.Second

var drainMs = regexp.MustCompile(`"drainMs": \d+`)

// setDrain sets how long all nodes wait for requests before they move a sandbox.
func (c *cluster) setDrain(t *testing.T, d time.Duration) {
	t.Helper()
	text, err := os.ReadFile(c.config())
	if err != nil {
		t.Fatal(err)
	}
	text = drainMs.ReplaceAll(text, fmt.Appendf(nil, `"drainMs": %d`, d.Milliseconds()))
	if err := os.WriteFile(c.config(), text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.nodes {
		before := len(n.log.with("reload"))
		if err := n.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		harness.WaitFor(t, "node "+n.name+" reloads", func() bool { return len(n.log.with("reload")) > before })
	}
}

// testMoveUnderLoad: all nodes are drained one after another, while sandboxes are used through all of them. No request fails.
func testMoveUnderLoad(t *testing.T, c *cluster) {
	c.setDrain(t, 20*time.Second) // for requests of a busy machine
	defer c.setDrain(t, 500*time.Millisecond)
	var tallies []*tally
	at := map[string]*node{}
	for i := range 5 {
		n := c.nodes[i%len(c.nodes)]
		sb, err := n.dial(t, ada).Create(soon(t), client.CreateOptions{Detached: true})
		if err != nil {
			t.Fatal(err)
		}
		at[sb.ID()] = n
		var k *tally
		switch i {
		case 0:
			n.as(t, ada).fill("/v1/sandboxes/"+sb.ID(), 20)
			k = c.countByHTTP(t, sb.ID())
			k.kind = "HTTP, 20 MB"
		case 1:
			k = c.countByHTTP(t, sb.ID())
		case 2:
			k = c.countBySession(t, sb.ID())
		case 3:
			k = c.countByMCP(t, sb.ID(), "2025-06-18")
		case 4:
			k = c.countByMCP(t, sb.ID(), "")
		}
		tallies = append(tallies, k)
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, k := range tallies {
		running.Go(func() { k.run(t, len(c.nodes), stop) })
	}
	end := sync.OnceFunc(func() {
		close(stop)
		running.Wait()
	})
	defer end()
	for _, n := range c.nodes {
		var ids []string
		for id, on := range at {
			if on == n {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			continue
		}
		c.evacuate(t, n, ids...)
		for _, id := range ids {
			moves := n.moves(id)
			at[id] = c.of(t, moves[len(moves)-1])
		}
		c.drain(t, n, false)
	}
	end()
	for _, k := range tallies {
		t.Logf("%s: %d requests, the slowest took %v", k.kind, k.count, k.worst)
		if k.worst > maxPause {
			t.Errorf("a request of %s took %v", k.kind, k.worst)
		}
		c.nodes[0].as(t, ada).want(http.StatusNoContent, "DELETE", "/v1/sandboxes/"+k.id, nil)
	}
}
