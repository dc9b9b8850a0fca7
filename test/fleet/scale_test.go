package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gaol/test/harness"
	"gaol/test/tier"
)

// TestScale measures runs per second of one worker, and of two, in turns. Cgroups limit each worker, with its sandboxes, to half a
// processor. Requests come through a third node, which is draining.
func TestScale(t *testing.T) {
	tier.Fleet(t)
	const least, turns, tries = 1.8, 5, 3
	c := startCluster(t, 1)
	gateway := c.nodes[0]
	for _, name := range []string{"b", "c"} {
		n := c.prepare(t, name)
		n.run(t, halved(t, name, n.command(append([]string{"--fleet-address", "127.0.0.1:0"}, gateway.join(gateway.token(t))...)...)))
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

// halve runs a program in groups that have half a processor. They are the root for it, as in a container.
const halve = `set -e
roots=/sys/fs/cgroup
[ -e $roots/cgroup.controllers ] || roots=$roots/*
for root in $roots; do
  group=$root/$0 own=
  mkdir $group
  for file in cpuset.cpus cpuset.mems; do
    [ ! -e $root/$file ] || cat $root/$file >$group/$file
  done
  [ ! -e $group/cpu.cfs_quota_us ] || echo 50000 >$group/cpu.cfs_quota_us
  if [ -e $group/cpu.max ]; then
    echo '50000 100000' >$group/cpu.max
    own=/init
    mkdir $group$own
  fi
  echo $$ >$group$own/cgroup.procs
done
exec unshare --mount sh -ec 'for root in '"$roots"'; do mount --bind $root/$0 $root; done; exec "$@"' "$0" "$@"`

// halved returns a command in groups that have half a processor. The test removes the groups when it ends.
func halved(t *testing.T, name string, cmd *exec.Cmd) *exec.Cmd {
	group := fmt.Sprintf("gaol-scale-%d-%s", os.Getpid(), name)
	t.Cleanup(func() {
		for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
			roots, _ := filepath.Glob(pattern + group)
			for _, root := range roots {
				harness.WaitFor(t, "the processes of "+root+" have ended", func() bool {
					return exec.Command("find", root, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+").Run() == nil
				})
			}
		}
	})
	wrapped := exec.Command("sh", append([]string{"-c", halve, group}, cmd.Args...)...)
	wrapped.Env, wrapped.SysProcAttr = cmd.Env, cmd.SysProcAttr
	return wrapped
}

// rate returns how many runs of 30 ms of a processor a second four clients of the node get.
func (n *node) rate(t *testing.T) float64 {
	t.Helper()
	const code = `while (process.cpuUsage().user < 30_000); __return(1)`
	const clients, measured = 4, 5 * time.Second
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
