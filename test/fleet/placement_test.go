package fleet

import (
	"net/http"
	"testing"

	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// drain sets by gaol fleet whether a node accepts new work, and waits until all nodes know.
func (c *cluster) drain(t *testing.T, n *node, yes bool) {
	t.Helper()
	command, state := "undrain", "live"
	if yes {
		command, state = "drain", "draining"
	}
	c.nodes[1].manage(t, command, n.id)
	for _, viewer := range c.nodes {
		viewer.waitState(t, n.id, state)
	}
}

// testDrain: a drained node passes new work to others, and keeps its sandboxes.
func testDrain(t *testing.T, c *cluster) {
	drained := c.nodes[0]
	caller := drained.as(t, ada)
	kept := caller.create(nil)
	c.drain(t, drained, true)
	for range 5 {
		id := caller.createAnywhere(nil)
		if ownerOf(id) == drained.id {
			t.Errorf("the drained node has the new sandbox %s", id)
		}
		caller.wantValue("/v1/sandboxes/"+id+"/run", "__return(1)", "1")
		caller.wantValue("/v1/run", "__return(2)", "2")
		if id := c.nodes[1].as(t, ada).createAnywhere(nil); ownerOf(id) != c.nodes[1].id {
			t.Errorf("an idle node has placed the sandbox %s elsewhere", id)
		}
	}
	if sb, err := drained.dial(t, ada).Create(soon(t), client.CreateOptions{}); err != nil || ownerOf(sb.ID()) == drained.id {
		t.Errorf("a sandbox of a session: %+v %v", sb, err)
	}
	for _, ofHost := range []object{{"mounts": []object{{"source": "d", "target": "/mnt"}}}, {"nodeModules": "d"}, {"hostPorts": []int{hostPort}}} {
		var info client.Info
		res := servertest.Send(t, drained.asRoot(t), "POST", "/v1/sandboxes", ofHost)
		res.Want(t, http.StatusCreated)
		res.Into(t, &info)
		if ownerOf(info.ID) != drained.id {
			t.Errorf("another node has the sandbox with %v", ofHost)
		}
		servertest.Send(t, drained.asRoot(t), "DELETE", "/v1/sandboxes/"+info.ID, nil).Want(t, http.StatusNoContent)
	}
	caller.wantValue(kept+"/run", "__return(3)", "3")
	c.nodes[2].as(t, ada).wantValue(kept+"/run", "__return(4)", "4")
	c.drain(t, drained, false)
	for range 5 {
		caller.create(nil)
	}
	if out, err := drained.gaolFleet("drain", "aaaaaaaa"); err == nil {
		t.Errorf("a node that does not exist was drained: %s", out)
	}
	t.Run("all nodes", func(t *testing.T) {
		for _, n := range c.nodes {
			c.drain(t, n, true)
			defer c.drain(t, n, false)
		}
		harness.WaitFor(t, "no node accepts new work", func() bool {
			res := c.nodes[0].as(t, ada).send("POST", "/v1/run", object{"code": "1"})
			return res.Status == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != ""
		})
	})
}
