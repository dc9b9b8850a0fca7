package fleet

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// testRemove: a removed node ends its sandboxes, and cannot come back with its certificate. With a new token it becomes a new node.
func testRemove(t *testing.T, c *cluster) {
	first, n := c.nodes[0], c.nodes[2]
	removed := n.id
	path := n.as(t, ada).create(nil)
	stays := c.nodes[1].as(t, ada).create(nil)
	first.as(t, ada).want(http.StatusOK, "GET", path, nil)
	first.as(t, ada).want(http.StatusNoContent, "DELETE", stays, nil)
	certificate, err := os.ReadFile(n.certificate())
	if err != nil {
		t.Fatal(err)
	}
	c.nodes[1].manage(t, "remove", removed)
	for _, viewer := range c.nodes[:2] {
		viewer.waitState(t, removed, "dead")
		viewer.as(t, ada).refused(http.StatusGone, "sandbox_lost", "GET", path, nil)
	}
	n.waitRemoved(t)
	harness.WaitFor(t, "the sandboxes of the removed node end", func() bool {
		ids, _ := n.as(t, ada).sandboxes()
		for _, id := range ids {
			if ownerOf(id) == removed {
				return false
			}
		}
		return true
	})
	servertest.Send(t, n.asRoot(t), "POST", "/v1/run", object{"code": "1", "mounts": []object{{"source": ".", "target": "/mnt"}}}).Want(t, http.StatusServiceUnavailable)
	n.as(t, ada).refused(http.StatusServiceUnavailable, "unreachable", "POST", "/v1/sandboxes", object{})
	if text := string(first.local(t).want(http.StatusOK, "GET", "/metrics", nil).Body); strings.Contains(text, removed) || !strings.Contains(text, "gaol_fleet_forwards_total") {
		t.Errorf("the metrics name the removed node %s, or no other one:\n%s", removed, text)
	}
	n.stop(t)
	t.Run("without a token", func(t *testing.T) {
		out, err := n.command("--fleet-address", n.peers, "--join", first.peers).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "--join needs a --join-token of gaol fleet token") {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("with a copy of its certificate", func(t *testing.T) {
		if err := os.WriteFile(n.certificate(), certificate, 0o600); err != nil {
			t.Fatal(err)
		}
		n.restart(t, "--join", first.peers)
		n.waitRemoved(t)
		if state := first.states(t)[removed]; state != "dead" {
			t.Errorf("the removed node is %q", state)
		}
		n.stop(t)
	})
	t.Run("with a new token", func(t *testing.T) {
		n.restart(t, first.join(first.token(t))...)
		if n.id == removed {
			t.Errorf("the node has its former id %s", removed)
		}
		for _, viewer := range c.nodes {
			viewer.waitState(t, n.id, "live")
		}
		first.as(t, ada).wantValue(n.as(t, ada).create(nil)+"/run", "__return(1)", "1")
	})
}

// certificate is the path of the node's certificate and key.
func (n *node) certificate() string { return filepath.Join(n.store, "fleet/node.pem") }

// waitRemoved waits until the node's log says that it was removed and how it can join again.
func (n *node) waitRemoved(t *testing.T) {
	t.Helper()
	harness.WaitFor(t, "node "+n.name+" logs that it was removed", func() bool {
		return strings.Contains(n.log.String(), "the node was removed: it can join with a new token")
	})
}
