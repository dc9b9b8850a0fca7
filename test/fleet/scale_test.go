package fleet

import (
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gaol/test/tier"
)

// TestScale measures runs per second of one worker, and of two, in turns. A worker runs one program at a time, which cgroups limit to
// half a processor. Requests come through a third node, which is draining.
func TestScale(t *testing.T) {
	tier.Fleet(t)
	const least, turns, tries = 1.8, 5, 3
	c := newCluster(t)
	if err := os.WriteFile(c.config(), []byte(`{"drainMs": 500, "server": {"runs": 1}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c.startAll(t, 3)
	gateway := c.nodes[0]
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

// rate returns how many runs of 30 ms of a processor a second four clients of the node get.
func (n *node) rate(t *testing.T) float64 {
	t.Helper()
	run := object{"code": `while (process.cpuUsage().user < 30_000); __return(1)`, "limits": object{"cpus": 0.5}}
	const clients, measured = 4, 5 * time.Second
	var runs atomic.Int64
	begin := time.Now()
	var load sync.WaitGroup
	for range clients {
		caller := n.as(t, ada)
		load.Go(func() {
			for time.Since(begin) < measured {
				switch res := caller.send("POST", "/v1/run", run); res.Status {
				case http.StatusOK:
					runs.Add(1)
				case http.StatusTooManyRequests: // the workers are busy
					time.Sleep(time.Millisecond)
				default:
					t.Errorf("%d %s", res.Status, res.Body)
					return
				}
			}
		})
	}
	load.Wait()
	return float64(runs.Load()) / time.Since(begin).Seconds()
}
