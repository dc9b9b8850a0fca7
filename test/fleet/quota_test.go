package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
)

// maxRuns is the limit of a tenant's runs in the fleet, and enough is how many of them must be reached at once.
const (
	maxRuns = 20
	enough  = 18
)

// TestQuotas uses up the limits of a tenant, which all nodes share.
func TestQuotas(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	c.limit(t, maxRuns)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"flood of all nodes", testFloodAll},
		{"flood of one node", testFloodOne},
		{"moved sandboxes", testQuotaMoves},
		{"lower limits", testLowerLimits},
		{"without an engine", testQuotaWithoutEngine},
		{"killed node", testQuotaKilled},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// limit gives all nodes the settings with a limit of runs, and waits until they use them.
func (c *cluster) limit(t *testing.T, runs int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings")
	text := fmt.Sprintf(`{"drainMs": 500, "runTimeoutMs": %d, "server": {"requestsPerSec": 100000}, "tenant": {"requestsPerSec": 100000, "runs": %d}, "tenants": {"token:%s": {"sandboxes": 6}}}`, 1_000_000+runs, runs, c.names[bob])
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.nodes[0].manage(t, "push", path, c.tokens)
	for _, n := range c.nodes {
		harness.WaitFor(t, "the limits of node "+n.name, func() bool {
			return n.as(t, bob).send("POST", "/v1/run", object{"code": "1", "timeoutMs": 1_000_001 + runs}).Status == http.StatusUnprocessableEntity
		})
	}
}

// activeRuns returns how many runs of ada have processes, on all nodes: they share the cgroups of this machine. On an idle node there can
// be up to four more, which wait for the next runs.
func (c *cluster) activeRuns() (n int) {
	below := "/gaol/tenants/token-" + c.names[ada] + "/*/r*/cgroup.procs"
	for _, procs := range harness.Glob("/sys/fs/cgroup/pids"+below, "/sys/fs/cgroup"+below) {
		if slices.ContainsFunc(harness.ProcessesIn([]string{filepath.Dir(procs)}), func(pid string) bool {
			_, zombie := os.Readlink("/proc/" + pid + "/exe")
			return zombie == nil
		}) {
			n++
		}
	}
	return n
}

// sample counts the runs until stop is called, which fails the test if they have exceeded the limit.
func (c *cluster) sample(t *testing.T) (stop func()) {
	var samples, most int
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(5 * time.Millisecond):
				most = max(most, c.activeRuns())
				samples++
			}
		}
	}()
	return func() {
		close(end)
		<-ended
		t.Logf("at most %d runs at once, in %d samples", most, samples)
		if most > maxRuns {
			t.Errorf("%d runs at once, the limit is %d", most, maxRuns)
		}
	}
}

// flood sends requests for runs to nodes, from each more at once than the limit, until stop is called. They succeed, or exceed the quota.
// Most runs are long, so that the limit is also reached where runs start slowly.
func (c *cluster) flood(t *testing.T, nodes ...*node) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	for _, n := range nodes {
		caller := n.as(t, ada)
		for i := range maxRuns + 12 {
			duration := 30 * time.Second
			if i%4 == 0 {
				duration = 100 * time.Millisecond
			}
			senders.Go(func() {
				for ctx.Err() == nil {
					status, retry, err := caller.runFor(ctx, duration)
					switch {
					case status == http.StatusTooManyRequests && retry != "":
						time.Sleep(50 * time.Millisecond)
					case status != http.StatusOK && ctx.Err() == nil:
						t.Errorf("node %s: %d %v", n.name, status, err)
						return
					}
				}
			})
		}
	}
	stop = sync.OnceFunc(func() { cancel(); senders.Wait() })
	t.Cleanup(stop)
	return stop
}

// runFor runs a program for some time, or until ctx ends.
func (c caller) runFor(ctx context.Context, d time.Duration) (status int, retry string, err error) {
	body := fmt.Sprintf(`{"code": "setTimeout(() => __return(1), %d)", "limits": {"memoryBytes": 67108864}}`, d.Milliseconds())
	r, err := http.NewRequestWithContext(ctx, "POST", "http://gaol/v1/run", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := c.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Header.Get("Retry-After"), err
}

// waitRuns waits until a tenant has a number of runs.
func (c *cluster) waitRuns(t *testing.T, what string, n int) {
	t.Helper()
	harness.WaitFor(t, what, func() bool { return c.activeRuns() >= n })
}

func testFloodAll(t *testing.T, c *cluster) {
	defer c.sample(t)()
	stop := c.flood(t, c.nodes...)
	for range harness.Fewer(5, 2) {
		c.waitRuns(t, "three nodes together reach the limit", enough)
		time.Sleep(500 * time.Millisecond) // of a flood, for samples
	}
	stop()
}

// testFloodOne: a node gets what the others do not use any more.
func testFloodOne(t *testing.T, c *cluster) {
	defer c.sample(t)()
	stop := c.flood(t, c.nodes[2])
	c.waitRuns(t, "one node reaches the limit", enough)
	stop()
}

// processes starts processes in a new sandbox of the node, and returns the paths of both.
func (c caller) processes(n int) (sandbox string, paths []string) {
	c.t.Helper()
	sandbox = c.create(object{"limits": object{"memoryBytes": 64 << 20}})
	for range n {
		var process struct{ ID string }
		c.want(http.StatusCreated, "POST", sandbox+"/processes", object{"command": "sleep", "args": []string{"600"}}).Into(c.t, &process)
		paths = append(paths, sandbox+"/processes/"+process.ID)
	}
	return sandbox, paths
}

// testQuotaMoves: sandboxes move although the tenant has as many as it may, and none is counted twice or lost.
func testQuotaMoves(t *testing.T, c *cluster) {
	from, other := c.nodes[1], c.nodes[0].as(t, bob)
	var paths, ids []string
	for range 6 {
		path := from.as(t, bob).create(nil)
		paths, ids = append(paths, path), append(ids, idOf(path))
	}
	refused := func() {
		t.Helper()
		other.refused(http.StatusTooManyRequests, "quota", "POST", "/v1/sandboxes", object{})
	}
	refused()
	c.evacuate(t, from, ids...)
	refused()
	c.drain(t, from, false)
	other.want(http.StatusNoContent, "DELETE", paths[0], nil)
	paths[0] = ""
	harness.WaitFor(t, "another sandbox has room", func() bool {
		res := other.send("POST", "/v1/sandboxes", object{})
		if res.Status != http.StatusCreated {
			return false
		}
		var info struct{ ID string }
		res.Into(t, &info)
		paths[0] = "/v1/sandboxes/" + info.ID
		return true
	})
	refused()
	for _, path := range paths {
		other.want(http.StatusNoContent, "DELETE", path, nil)
	}
}

// testLowerLimits: grants shrink as runs end.
func testLowerLimits(t *testing.T, c *cluster) {
	stop := c.flood(t, c.nodes...)
	c.waitRuns(t, "the limit is reached", enough)
	c.limit(t, 4)
	const unused = 3 * 4 // sandboxes that wait for the next runs
	stop()               // otherwise it takes until the long runs have ended
	defer c.flood(t, c.nodes...)()
	harness.WaitFor(t, "the lower limit holds", func() bool { return c.activeRuns() <= 4+unused })
	for range 50 {
		if n := c.activeRuns(); n > 4+unused {
			t.Errorf("%d runs, the limit is 4", n)
		}
		time.Sleep(20 * time.Millisecond)
	}
	c.limit(t, maxRuns)
	c.waitRuns(t, "the former limit is reached", enough)
}

// testQuotaWithoutEngine: a node uses its grants.
func testQuotaWithoutEngine(t *testing.T, c *cluster) {
	caller := c.nodes[1].as(t, ada)
	sandbox, processes := caller.processes(6)
	for _, path := range processes[:3] {
		caller.want(http.StatusNoContent, "DELETE", path, nil)
	}
	engine := c.nodes[0].engine()
	if err := unix.Kill(engine, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resume := sync.OnceFunc(func() { _ = unix.Kill(engine, unix.SIGCONT) })
	defer resume()
	harness.WaitFor(t, "the processes have ended, and their grants are free", func() bool {
		return caller.send("POST", sandbox+"/run", object{"code": "1"}).Status == http.StatusOK
	})
	for range 5 {
		caller.wantValue(sandbox+"/run", "__return(1)", "1")
	}
	var left int
	for ; left <= maxRuns; left++ {
		if res := caller.send("POST", sandbox+"/processes", object{"command": "sleep", "args": []string{"600"}}); res.Status != http.StatusCreated {
			if res.Status != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
				t.Errorf("%d %s", res.Status, res.Body)
			}
			break
		}
	}
	t.Logf("%d more processes without an engine", left)
	if left < 3 || left >= maxRuns-3 {
		t.Errorf("%d more processes without an engine, of which 3 had been granted", left)
	}
	resume()
	caller.want(http.StatusNoContent, "DELETE", sandbox, nil)
}

// testQuotaKilled: what a killed node had returns when it is dead.
func testQuotaKilled(t *testing.T, c *cluster) {
	n, caller := c.nodes[2], c.nodes[1].as(t, ada)
	n.as(t, ada).processes(15)
	c.nodes[0].as(t, ada).processes(5)
	sandbox, _ := caller.processes(0)
	sleep := object{"command": "sleep", "args": []string{"600"}}
	caller.refused(http.StatusTooManyRequests, "quota", "POST", sandbox+"/processes", sleep)
	n.kill(t)
	var made int
	harness.WaitFor(t, "another node gets what the killed one had", func() bool {
		if caller.send("POST", sandbox+"/processes", sleep).Status == http.StatusCreated {
			made++
		}
		return made == 15
	})
	c.nodes[1].waitState(t, n.id, "dead")
	caller.refused(http.StatusTooManyRequests, "quota", "POST", sandbox+"/processes", sleep)
}
