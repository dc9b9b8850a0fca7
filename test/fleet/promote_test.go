package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/runtime/resultjson"
	"gaol/test/harness"
	"gaol/test/tier"
)

// generation returns the number of the engine's generation that a node has stored.
func (n *node) generation(t *testing.T) int64 {
	t.Helper()
	var state struct{ Generation struct{ Number int64 } }
	readJSON(t, filepath.Join(n.store, "fleet/state.json"), &state)
	return state.Generation.Number
}

// former returns the process of the engine that a promotion replaces, 0 if there is none.
func (n *node) former() int {
	for _, p := range programsOf(filepath.Join(n.store, "fleet/engine/nats.conf")) {
		if p.name == "nats-server" {
			return p.pid
		}
	}
	return 0
}

// engines returns how many nodes have an engine, as this node sees them.
func (n *node) engines(t *testing.T) (count int) {
	t.Helper()
	for _, s := range n.list(t).Nodes {
		if s.Engine {
			count++
		}
	}
	return count
}

// read returns when a batch run was done, as any node sees it.
func (c *chaos) read(t *testing.T, key string) (at time.Time, done bool) {
	res := c.try(t, "GET", "/v1/runs/"+key+"/wait?timeoutMs=1000", nil)
	var run resultjson.BatchRun
	if res == nil || res.Status != http.StatusOK || json.Unmarshal(res.Body, &run) != nil || run.Done == nil {
		return at, false
	}
	return *run.Done, true
}

// TestPromoteKilled kills the first machine at each step of a promotion, under load. The former engine is valid until the new
// generation is stored, and never after.
func TestPromoteKilled(t *testing.T) {
	t.Parallel()
	c := &chaos{cluster: startCluster(t, 3), accepted: map[string]time.Time{}, done: map[string]time.Time{}}
	for _, n := range c.nodes {
		c.callers = append(c.callers, n.as(t, ada))
	}
	first := c.nodes[0]
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	stopLoad := func() { cancel(); load.Wait() }
	defer stopLoad()
	for worker := range 4 { // which wait for their runs, so that none waits long on a busy machine
		load.Go(func() {
			for i := 1; ctx.Err() == nil; i++ {
				key := fmt.Sprintf("promote-%d-%d", worker, i)
				c.submit(t, key, i)
				for ctx.Err() == nil {
					if _, done := c.read(t, key); done {
						break
					}
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	for _, step := range []struct {
		name   string
		now    func(former int) bool // whether the step has begun
		stored int64
	}{
		{"started", func(int) bool { return len(harness.Glob(filepath.Join(first.store, "fleet/engine-*"))) > 0 }, 0},
		{"copied", func(former int) bool {
			now := first.former()
			return now != 0 && now != former || first.generation(t) == 1 // it was copied too fast
		}, 0},
		{"stored", func(int) bool { return first.generation(t) == 1 }, 1},
	} {
		former := first.former()
		var promoting sync.WaitGroup
		promoting.Go(func() { _, _ = first.gaolFleet("promote") }) // the server is killed
		harness.WaitFor(t, "step "+step.name, func() bool { return step.now(former) })
		first.kill(t)
		promoting.Wait()
		first.restart(t, "--fleet")
		harness.WaitFor(t, "the former engine runs, or the new ones", func() bool {
			number := first.generation(t)
			if number < step.stored {
				t.Fatalf("%s: generation %d", step.name, number)
			}
			return (first.former() == 0) == (number > 0) && first.engine() != 0
		})
		c.submit(t, step.name, 1)
		harness.WaitFor(t, "a run after step "+step.name, func() bool { _, done := c.read(t, step.name); return done })
	}
	stopLoad()
	for _, n := range c.nodes {
		harness.WaitFor(t, "node "+n.name+" knows the new generation", func() bool { return n.generation(t) == 1 && n.engines(t) == 3 })
		if _, err := os.Stat(filepath.Join(n.store, "fleet/engine")); err == nil {
			t.Errorf("node %s has the files of the former engine", n.name)
		}
		if left := harness.Glob(filepath.Join(n.store, "fleet/engine-*")); len(left) != 1 {
			t.Errorf("node %s has %q", n.name, left)
		}
	}
	for key := range c.accepted {
		var at time.Time
		harness.WaitFor(t, key+" has a result", func() (done bool) { at, done = c.read(t, key); return done })
		if before, read := c.done[key]; read && !before.Equal(at) {
			t.Errorf("%s has a second result", key)
		}
	}
	t.Logf("%d keys", len(c.accepted))
}

// TestPromoteAlone: an engine is not promoted without two other nodes, and not by a node without one. With the flag --engines 3 the
// first machine promotes it when they are live.
func TestPromoteAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for i, flags := range [][]string{{"--fleet", "--engines", "2"}, {"--engines", "3"}, {"--join", "127.0.0.1:1", "--engines", "3"}} {
		out, err := c.prepare(t, strconv.Itoa(i)).command(flags...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "want 1, or 3 with --fleet") {
			t.Errorf("%q: %v %s", flags, err, out)
		}
	}
	first := c.start(t, "a", "--fleet", "--engines", "3")
	c.start(t, "b", first.join(first.token(t))...)
	for i, want := range []string{"three engines need", "does not run the engine"} {
		if out, err := c.nodes[i].gaolFleet("promote"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("node %s: %q, %v", c.nodes[i].name, out, err)
		}
	}
	c.start(t, "c", first.join(first.token(t))...)
	harness.WaitFor(t, "each machine has an engine", func() bool {
		return !slices.ContainsFunc(c.nodes, func(n *node) bool { return n.generation(t) == 0 || n.engine() == 0 })
	})
	harness.WaitFor(t, "a second promotion is refused", func() bool {
		out, err := c.nodes[1].gaolFleet("promote")
		if err == nil || !strings.Contains(err.Error(), "three engines") && !strings.Contains(err.Error(), "yet: try again") {
			t.Fatalf("a second time: %q, %v", out, err)
		}
		return !strings.Contains(err.Error(), "try again")
	})
	harness.WaitFor(t, "gaol fleet ca export prints the authority everywhere", func() bool {
		for _, n := range c.nodes {
			out, err := n.gaolCommand([]string{"fleet", "ca", "export", "--store", n.store}).Output()
			if err != nil || !strings.Contains(string(out), "PRIVATE KEY") {
				return false
			}
		}
		return true
	})
}

// TestReplaceEngine: when one of three engines is lost with its disk, another machine replaces it, also if the promotion is interrupted.
// No batch run is lost, and then any of the three may be lost again.
func TestReplaceEngine(t *testing.T) {
	tier.Soak(t)
	t.Parallel()
	c := startCluster(t, 4)
	first := c.nodes[0]
	first.manage(t, "promote")
	c.waitEngines(t)
	keys := c.begun(t, "replace", 8, 3*time.Second)
	free := slices.IndexFunc(c.nodes, func(n *node) bool { return n.engine() == 0 })
	lost, added := c.nodes[1+free%3], c.nodes[free]
	lost.kill(t)
	if err := os.RemoveAll(lost.store); err != nil {
		t.Fatal(err)
	}
	c.nodes = slices.DeleteFunc(c.nodes, func(n *node) bool { return n == lost })
	harness.WaitFor(t, "the other engines elect a leader, and the machine is removed", func() bool {
		_, err := first.gaolFleet("remove", lost.id)
		if err != nil && !strings.Contains(err.Error(), "the engine cannot be reached") {
			t.Fatal(err)
		}
		return err == nil
	})
	started := func() bool { return len(harness.Glob(filepath.Join(added.store, "fleet/engine-*"))) > 0 }
	var promoting sync.WaitGroup
	promoting.Go(func() {
		for !started() && t.Context().Err() == nil {
			_, _ = first.gaolFleet("promote") // the server is killed, or the engines may just have no leader
		}
	})
	harness.WaitFor(t, "the other machine starts an engine", started)
	first.kill(t)
	promoting.Wait()
	first.restart(t, "--fleet")
	harness.WaitFor(t, "the engine is promoted", func() bool {
		out, err := first.gaolFleet("promote")
		if err == nil && strings.Contains(out, lost.peers) {
			t.Fatalf("%s is lost: %s", lost.peers, out)
		}
		return err == nil || strings.Contains(err.Error(), "has three engines") // the interrupted promotion has succeeded
	})
	c.waitEngines(t)
	c.wantOnce(t, keys)

	c.nodes[1].kill(t)
	c.nodes = slices.Delete(c.nodes, 1, 2)
	for i := range 4 {
		key := fmt.Sprint("again-", i)
		harness.WaitFor(t, "the remaining engines accept a batch run", func() bool {
			res := c.nodes[i%len(c.nodes)].as(t, ada).send("POST", "/v1/runs", sleeping(key, 0))
			return res.Status == http.StatusAccepted || res.Status == http.StatusOK
		})
		keys = append(keys, key)
	}
	c.wantOnce(t, keys)
}

// waitEngines waits until all nodes see three engines, which they use.
func (c *cluster) waitEngines(t *testing.T) {
	t.Helper()
	for _, n := range c.nodes {
		harness.WaitFor(t, "node "+n.name+" sees three engines", func() bool {
			return n.engines(t) == 3 && n.generation(t) == c.nodes[0].generation(t)
		})
	}
}

// wantOnce fails the test unless batch runs have one result each, whichever node is asked.
func (c *cluster) wantOnce(t *testing.T, keys []string) {
	t.Helper()
	for i, key := range keys {
		first := c.nodes[i%len(c.nodes)].as(t, ada).result(key)
		if again := c.nodes[0].as(t, ada).result(key); !again.Done.Equal(*first.Done) {
			t.Errorf("%s has two results: %+v, %+v", key, first, again)
		}
	}
}
