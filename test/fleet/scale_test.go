package fleet

import (
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gaol/test/tier"
)

// TestScale measures runs per second of one worker, and of two, in turns. Each worker has a processor for itself, with its sandboxes;
// requests come through a third node, which is draining.
func TestScale(t *testing.T) {
	tier.Fleet(t)
	if _, err := exec.LookPath("taskset"); err != nil {
		t.Skip("taskset is not installed")
	}
	const least, turns, tries = 1.8, 5, 3
	c := startCluster(t, 1)
	gateway := c.nodes[0]
	for i, name := range []string{"b", "c"} {
		n := c.prepare(t, name)
		cmd := n.command(append([]string{"--fleet-address", "127.0.0.1:0"}, gateway.join(gateway.token(t))...)...)
		pinned := exec.Command("taskset", append([]string{"--cpu-list", strconv.Itoa(i)}, cmd.Args...)...)
		pinned.SysProcAttr = cmd.SysProcAttr
		n.run(t, pinned)
		n.waitServing(t)
		c.nodes = append(c.nodes, n)
	}
	for _, viewer := range c.nodes {
		for _, n := range c.nodes {
			viewer.waitState(t, n.id, "live")
		}
	}
	c.drain(t, gateway, true)
	var ratio float64
	for range tries { // other programs may disturb one
		var one, two []float64
		for range turns {
			c.drain(t, c.nodes[2], true)
			one = append(one, gateway.rate(t))
			c.drain(t, c.nodes[2], false)
			two = append(two, gateway.rate(t))
		}
		slices.Sort(one)
		slices.Sort(two)
		ratio = two[turns/2] / one[turns/2]
		t.Logf("one worker %.1f runs/s, two %.1f: %.2f times", one[turns/2], two[turns/2], ratio)
		if ratio >= least {
			return
		}
	}
	t.Errorf("two workers make %.2f times the runs of one, want %v", ratio, least)
}

// rate returns how many runs of 30 ms of a processor a second eight clients of the node get.
func (n *node) rate(t *testing.T) float64 {
	t.Helper()
	const code = `while (process.cpuUsage().user < 30_000); __return(1)`
	const clients, measured = 8, 4 * time.Second
	var runs atomic.Int64
	begin := time.Now()
	var load sync.WaitGroup
	for range clients {
		caller := n.as(t, ada)
		load.Go(func() {
			for time.Since(begin) < measured {
				if got := caller.value("/v1/run", code); got != "1" {
					t.Errorf("a run returns %s", got)
					return
				}
				runs.Add(1)
			}
		})
	}
	load.Wait()
	return float64(runs.Load()) / time.Since(begin).Seconds()
}
