package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"gaol/cmd/gaol/server/fleet"
	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// object is a JSON object.
type object = map[string]any

// caller sends a tenant's requests to a node.
type caller struct {
	*http.Client
	t *testing.T
	n *node
}

// authorized adds a token to requests, and sends them to the TCP port of a node.
type authorized struct {
	n      *node
	secret string
	next   *http.Transport
}

// RoundTrip implements [http.RoundTripper].
func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host, r.Host = a.n.address, a.n.address
	r.Header.Set("Authorization", "Bearer "+a.secret)
	return a.next.RoundTrip(r)
}

// as returns a caller of the node.
func (n *node) as(t *testing.T, tenant string) caller {
	transport := &http.Transport{DialContext: n.space.dial}
	t.Cleanup(transport.CloseIdleConnections)
	return caller{&http.Client{Transport: &authorized{n, n.c.secrets[tenant], transport}, Timeout: time.Minute}, t, n}
}

// send sends a request with a body of JSON, or none.
func (c caller) send(method, path string, body any) *servertest.Response {
	c.t.Helper()
	return servertest.Send(c.t, c.Client, method, path, body)
}

// want sends a request, and ends the test unless the response is of a status.
func (c caller) want(status int, method, path string, body any) *servertest.Response {
	c.t.Helper()
	res := c.send(method, path, body)
	if res.Want(c.t, status); res.Status != status {
		c.t.Fatalf("%s %s of node %s", method, path, c.n.name)
	}
	return res
}

// refused sends a request, and ends the test unless the response is an error with a status and a code.
func (c caller) refused(status int, code, method, path string, body any) *servertest.Response {
	c.t.Helper()
	res := c.send(method, path, body)
	if p := res.Want(c.t, status); p.Code != code {
		c.t.Fatalf("%s %s of node %s: %d, code %q, want %q: %s", method, path, c.n.name, res.Status, p.Code, code, res.Body)
	}
	return res
}

// upload sends a body as it is.
func (c caller) upload(path string, body []byte) *servertest.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), "PUT", "http://gaol"+path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/octet-stream")
	return servertest.Do(c.t, c.Client, r)
}

// create creates a sandbox and returns its path. It must be on the node that the request was sent to.
func (c caller) create(body object) (path string) {
	c.t.Helper()
	id := c.createAnywhere(body)
	if ownerOf(id) != c.n.id {
		c.t.Fatalf("the idle node %s has placed sandbox %s elsewhere", c.n.id, id)
	}
	return "/v1/sandboxes/" + id
}

// createAnywhere creates a sandbox and returns its id.
func (c caller) createAnywhere(body object) (id string) {
	c.t.Helper()
	if body == nil {
		body = object{}
	}
	var info client.Info
	c.want(http.StatusCreated, "POST", "/v1/sandboxes", body).Into(c.t, &info)
	return info.ID
}

// value runs a program, and returns the JSON of its value.
func (c caller) value(path, code string) string {
	c.t.Helper()
	var run struct {
		Value  json.RawMessage
		Stderr string
	}
	c.want(http.StatusOK, "POST", path, object{"code": code}).Into(c.t, &run)
	return string(run.Value)
}

// wantValue fails the test unless a program has a value.
func (c caller) wantValue(path, code, want string) {
	c.t.Helper()
	if got := c.value(path, code); got != want {
		c.t.Errorf("%s of node %s returns %s, want %s", code, c.n.name, got, want)
	}
}

// ownerOf returns the node in the id of a sandbox.
func ownerOf(sandbox string) string {
	parts := strings.Split(sandbox, "-")
	if len(parts) != 3 || parts[0] != "sb" {
		return ""
	}
	return parts[1]
}

// dial opens a session of a tenant with the node.
func (n *node) dial(t *testing.T, tenant string) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Options{Address: "http://" + n.address, Token: n.c.secrets[tenant]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// soon returns a context that ends only for a test that hangs.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// gaolFleet runs gaol fleet as root of the node's machine, and returns its output.
func (n *node) gaolFleet(args ...string) (output string, err error) {
	var stdout, stderr strings.Builder
	cmd := exec.Command(n.gaol, slices.Concat([]string{"fleet"}, args, []string{"--server", n.socket})...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("gaol fleet %v: %w: %s", args, err, &stderr)
	}
	return stdout.String(), nil
}

// manage runs gaol fleet, which must succeed.
func (n *node) manage(t *testing.T, args ...string) string {
	t.Helper()
	out, err := n.gaolFleet(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// token returns a new join token of gaol fleet token, which the node may not be able to store before its engine is ready.
func (n *node) token(t *testing.T) (token string) {
	t.Helper()
	harness.WaitFor(t, "node "+n.name+" makes a join token", func() bool {
		out, err := n.gaolFleet("token")
		if err != nil && !strings.Contains(err.Error(), "engine") {
			t.Fatal(err)
		}
		words := strings.Fields(out)
		if len(words) != 6 {
			return false
		}
		token = words[5]
		return strings.Join(words[:5], " ") == "gaol serve --join "+n.peers+" --join-token"
	})
	return token
}

// join returns the flags of a machine that joins by the node.
func (n *node) join(token string) []string { return []string{"--join", n.peers, "--join-token", token} }

// list returns what gaol fleet nodes --json prints.
func (n *node) list(t *testing.T) (list fleet.NodeList) {
	t.Helper()
	if err := json.Unmarshal([]byte(n.manage(t, "nodes", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// asRoot returns a client of the node's socket.
func (n *node) asRoot(t *testing.T) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", n.socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// states returns the states of all nodes by id, as this node sees them. It does not start a command, because tests poll.
func (n *node) states(t *testing.T) map[string]string {
	t.Helper()
	client := n.asRoot(t)
	defer client.CloseIdleConnections()
	var list fleet.NodeList
	servertest.Send(t, client, "GET", "/fleet/v1/nodes", nil).Into(t, &list)
	states := map[string]string{}
	for _, s := range list.Nodes {
		states[s.ID] = string(s.State)
	}
	return states
}

// waitState waits until a node has a state, as this node sees it. The state of a node that has left is "".
func (n *node) waitState(t *testing.T, id, state string) {
	t.Helper()
	harness.WaitFor(t, fmt.Sprintf("node %s sees %s as %q", n.name, id, state), func() bool { return n.states(t)[id] == state })
}
