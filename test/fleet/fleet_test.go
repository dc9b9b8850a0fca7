package fleet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gaol/test/harness"
)

// TestFleet runs tests on one fleet of three nodes. Those at the end of the list stop nodes.
func TestFleet(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"ports", testPorts},
		{"refused tokens", testRefusedTokens},
		{"other clients of the listener for nodes", testForeignClients},
		{"programs", testPrograms},
		{"events", testEvents},
		{"files", testFiles},
		{"processes", testProcesses},
		{"guest server", testGuestServer},
		{"lists", testLists},
		{"snapshots", testSnapshots},
		{"other tenants", testTenants},
		{"delete", testDelete},
		{"MCP", testMCP},
		{"previews", testPreview},
		{"session", testSession},
		{"session: processes", testSessionProcesses},
		{"session: contexts", testSessionContexts},
		{"session: cancel", testSessionCancel},
		{"session: functions", testSessionFunctions},
		{"push", testPush},
		{"metrics", testMetrics},
		{"drain", testDrain},
		{"restart", testRestart},
		{"remove", testRemove},
		{"nothing is left", testNothingLeft},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// testPorts: a node of a fleet listens for clients and other nodes, and only the first one runs an engine.
func testPorts(t *testing.T, c *cluster) {
	for i, n := range c.nodes {
		if ports := listening(t, n.Process.Pid); len(ports) != 2 {
			t.Errorf("node %s listens on %q", n.name, ports)
		}
		if engine := n.engine(); (engine != 0) != (i == 0) {
			t.Errorf("node %s has the engine %d", n.name, engine)
		}
	}
	for _, address := range listening(t, c.nodes[0].engine()) {
		if !strings.HasPrefix(address, "0100007F:") {
			t.Errorf("the engine listens on %s, which is not a loopback address", address)
		}
	}
	list := c.nodes[1].list(t)
	if list.Own != c.nodes[1].id || len(list.Nodes) != len(c.nodes) {
		t.Errorf("%+v", list)
	}
	for _, s := range list.Nodes {
		at := slices.IndexFunc(c.nodes, func(n *node) bool { return n.id == s.ID })
		if at < 0 || s.Address != c.nodes[at].peers || s.Engine != (at == 0) || s.State != "live" {
			t.Errorf("%+v", s)
		}
	}
}

// testNothingLeft: when all nodes have been stopped, none of their processes, cgroups and files of addresses is left.
func testNothingLeft(t *testing.T, c *cluster) {
	caller := c.nodes[0].as(t, ada)
	caller.create(nil) // what a stop has to end
	pids := map[int]bool{}
	for _, n := range slices.Backward(c.nodes) {
		pids[n.Process.Pid] = true
		n.stop(t)
	}
	if left := programsOf(c.dir); len(left) > 0 {
		t.Errorf("processes are left: %+v", left)
	}
	for _, dir := range c.cgroups() {
		if strings.HasPrefix(filepath.Base(dir), "j") || len(harness.ProcessesIn([]string{dir})) > 0 {
			t.Errorf("the cgroup %s is left", dir)
		}
	}
	for pid := range pids {
		if left := harness.Glob(zygotesOf("/sys/fs/cgroup/*", pid), zygotesOf("/sys/fs/cgroup", pid)); len(left) > 0 {
			t.Errorf("cgroups are left: %q", left)
		}
	}
	for _, n := range c.nodes {
		left := harness.Glob(n.socket, filepath.Join(n.store, "fleet/engine/*.ports"))
		if len(left) > 0 {
			t.Errorf("files are left: %q", left)
		}
		if _, err := os.Stat(n.certificate()); err != nil {
			t.Errorf("node %s has no certificate for its next start: %v", n.name, err)
		}
	}
}
