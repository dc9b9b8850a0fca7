package fleet

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
)

// outage is longer than a node may be silent.
const outage = 12 * time.Second

// TestEngine stops the engine for longer than a node may be silent, and kills it.
func TestEngine(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	paths := map[string]string{}
	for _, n := range c.nodes {
		paths[n.id] = n.as(t, ada).create(nil)
	}
	before := c.nodes[1].states(t)
	t.Run("stopped", func(t *testing.T) {
		if testing.Short() {
			t.Skip("it takes as long as the engine is stopped")
		}
		testEngineStopped(t, c, paths)
	})
	t.Run("killed", func(t *testing.T) { testEngineKilled(t, c, paths) })
	for _, n := range c.nodes[:2] {
		if after := n.states(t); before[c.nodes[0].id] != "live" || !maps.Equal(subset(after, before), before) {
			t.Errorf("node %s sees %v, before %v", n.name, after, before)
		}
		if line := n.log.with("the fleet has declared this node dead: its sandboxes end"); len(line) > 0 {
			t.Errorf("node %s: %v", n.name, line)
		}
	}
}

// subset returns the entries of a map with the keys of another one.
func subset(all, of map[string]string) map[string]string {
	some := map[string]string{}
	for key := range of {
		some[key] = all[key]
	}
	return some
}

// work does what needs no engine: runs and sandboxes on each node, new ones and those in paths, also through the other node.
func (c *cluster) work(t *testing.T, paths map[string]string) {
	t.Helper()
	for i, n := range c.nodes {
		caller := n.as(t, ada)
		caller.wantValue("/v1/run", fmt.Sprintf("__return(%d)", i), fmt.Sprint(i))
		caller.wantValue(caller.create(nil)+"/run", "__return(true)", "true")
		for owner, path := range paths {
			caller.wantValue(path+"/run", fmt.Sprintf("__return(%q)", owner), fmt.Sprintf("%q", owner))
		}
		if _, missing := caller.sandboxes(); len(missing) > 0 {
			t.Errorf("the list of node %s lacks %q", n.name, missing)
		}
	}
}

// testEngineStopped: without an engine no node is declared dead, and only what needs it is refused.
func testEngineStopped(t *testing.T, c *cluster, paths map[string]string) {
	token := c.nodes[0].token(t)
	engine := c.nodes[0].engine()
	if err := unix.Kill(engine, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	c.work(t, paths)
	if out, err := c.nodes[1].gaolFleet("token"); err == nil || !strings.Contains(err.Error(), "the engine cannot be reached now") {
		t.Errorf("gaol fleet token: %q %v", out, err)
	}
	machine := c.prepare(t, "early")
	out, err := machine.command(append([]string{"--fleet-address", "127.0.0.1:0"}, c.nodes[0].join(token)...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the engine cannot be reached now") {
		t.Errorf("a machine joins without an engine: %v\n%s", err, out)
	}
	for time.Since(stopped) < outage {
		c.work(t, paths)
		time.Sleep(200 * time.Millisecond)
	}
	if err := unix.Kill(engine, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, viewer := range c.nodes {
		for _, n := range c.nodes {
			viewer.waitState(t, n.id, "live")
		}
	}
	c.work(t, paths)
}

// testEngineKilled: an engine that was killed is started again, and others can join then.
func testEngineKilled(t *testing.T, c *cluster, paths map[string]string) {
	engine := c.nodes[0].engine()
	if err := unix.Kill(engine, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.work(t, paths)
	harness.WaitFor(t, "the engine is started again", func() bool {
		now := c.nodes[0].engine()
		return now != 0 && now != engine
	})
	c.work(t, paths)
	n := c.start(t, "late", c.nodes[1].join(c.nodes[1].token(t))...)
	for _, viewer := range c.nodes {
		viewer.waitState(t, n.id, "live")
	}
	for owner, path := range paths {
		n.as(t, ada).wantValue(path+"/run", fmt.Sprintf("__return(%q)", owner), fmt.Sprintf("%q", owner))
	}
}
