package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime/resultjson"
	"gaol/test/harness"
)

// local returns a caller by the unix socket, as root.
func (n *node) local(t *testing.T) caller {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", n.socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return caller{&http.Client{Transport: transport, Timeout: time.Minute}, t, n}
}

// sleeping is the request of a batch run that returns its key after some time.
func sleeping(key string, d time.Duration) object {
	return object{"idempotencyKey": key, "code": fmt.Sprintf("setTimeout(() => __return(%q), %d)", key, d.Milliseconds()), "limits": object{"memoryBytes": 64 << 20}}
}

// submit submits a batch run.
func (c caller) submit(request object) (run resultjson.BatchRun) {
	c.t.Helper()
	c.want(http.StatusAccepted, "POST", "/v1/runs", request).Into(c.t, &run)
	return run
}

// batch describes a batch run.
func (c caller) batch(key string) (run resultjson.BatchRun) {
	c.t.Helper()
	c.want(http.StatusOK, "GET", "/v1/runs/"+key, nil).Into(c.t, &run)
	return run
}

// result waits for the result of a batch run of sleeping, and checks its value.
func (c caller) result(key string) (run resultjson.BatchRun) {
	c.t.Helper()
	harness.WaitFor(c.t, "batch run "+key+" is done", func() bool {
		res := c.send("GET", "/v1/runs/"+key+"/wait?timeoutMs=5000", nil)
		if res.Status == http.StatusServiceUnavailable { // while the engine is away
			return false
		}
		if res.Status != http.StatusOK {
			c.t.Fatalf("batch run %s of node %s: %d %s", key, c.n.name, res.Status, res.Body)
		}
		run = resultjson.BatchRun{}
		res.Into(c.t, &run)
		return run.State == resultjson.BatchDone
	})
	if run.Result == nil || string(run.Result.Value) != strconv.Quote(key) {
		c.t.Errorf("batch run %s: %+v, %+v, %+v", key, run, run.Result, run.Error)
	}
	return run
}

// waitRunning waits until a batch run has begun.
func (c caller) waitRunning(key string) {
	c.t.Helper()
	harness.WaitFor(c.t, "batch run "+key+" is running", func() bool { return c.batch(key).State == resultjson.BatchRunning })
}

// metric returns the sum of a node's metrics whose lines begin with a text.
func (n *node) metric(t *testing.T, prefix string) (sum int) {
	t.Helper()
	for line := range strings.Lines(string(n.local(t).want(http.StatusOK, "GET", "/metrics", nil).Body)) {
		if strings.HasPrefix(line, prefix) {
			f := strings.Fields(line)
			value, err := strconv.ParseFloat(f[len(f)-1], 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += int(value)
		}
	}
	return sum
}

// discarded is the metric of results that had another one.
const discarded = "gaol_fleet_results_discarded_total "

// startAlone starts the node without a fleet, and waits until it serves TCP.
func (n *node) startAlone(t *testing.T) {
	t.Helper()
	n.address = "127.0.0.1:0"
	n.run(t, n.command())
	n.waitAddress(t)
}

// Batch runs of a server without a fleet survive its SIGKILL, and stay when it makes a fleet.
func TestBatchAlone(t *testing.T) {
	t.Parallel()
	n := newCluster(t).prepare(t, "alone")
	n.startAlone(t)
	if _, err := os.Stat(filepath.Join(n.store, "fleet")); !errors.Is(err, fs.ErrNotExist) || n.engine() != 0 {
		t.Errorf("before the first batch run: %v, engine %d", err, n.engine())
	}
	caller := n.as(t, ada)
	caller.refused(http.StatusNotFound, "not_found", "GET", "/v1/runs/root", nil)
	if n.engine() != 0 {
		t.Error("a question has started the engine")
	}
	n.local(t).submit(sleeping("root", 0))
	n.local(t).result("root")
	if ports := listening(t, n.Process.Pid); len(ports) != 1 {
		t.Errorf("the server listens on %q", ports)
	}
	if ports := listening(t, n.engine()); len(ports) != 1 || !strings.HasPrefix(ports[0], "0100007F:") {
		t.Errorf("the engine listens on %q", ports)
	}
	var keys []string
	for i := range 16 {
		keys = append(keys, fmt.Sprint("key-", i))
		caller.submit(sleeping(keys[i], 300*time.Millisecond))
	}
	before := caller.result(keys[0])
	caller.waitRunning(keys[6])
	n.kill(t)
	harness.WaitFor(t, "all processes end", func() bool { return len(programsOf(n.c.dir)) == 0 })

	n.startAlone(t)
	for _, key := range keys {
		caller.result(key)
	}
	if after := caller.result(keys[0]); !after.Done.Equal(*before.Done) {
		t.Errorf("there is another result: %+v, before %+v", after, before)
	}
	caller.submit(sleeping("interrupted", 700*time.Millisecond)) // longer than the server waits when it is stopped
	caller.waitRunning("interrupted")
	n.stop(t)
	if left := programsOf(n.c.dir); len(left) > 0 {
		t.Errorf("processes are left: %+v", left)
	}

	n.address = "127.0.0.1:0"
	n.start(t, "--fleet", "--fleet-address", "127.0.0.1:0")
	if run := caller.result("interrupted"); run.Attempts < 2 {
		t.Errorf("%+v", run)
	}
	for _, key := range keys {
		caller.result(key)
	}
	n.stop(t)
	if left := programsOf(n.c.dir); len(left) > 0 {
		t.Errorf("processes are left: %+v", left)
	}
}

// TestBatch tests batch runs of one fleet of three nodes. Those at the end of the list stop nodes.
func TestBatch(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	for _, test := range []struct {
		name string
		slow string // why not with -short
		run  func(*testing.T, *cluster)
	}{
		{"anywhere", "", testBatchAnywhere},
		{"drained", "it waits for the questions to the queues that have begun before", testBatchDrained},
		{"engine killed", "", testBatchEngine},
		{"flood", "it measures latencies", testBatchFlood},
		{"killed", "", testBatchKilled},
		{"stopped", "it stops a node for 20 s", testBatchStopped},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.slow != "" && testing.Short() {
				t.Skip(test.slow)
			}
			test.run(t, c)
		})
	}
}

// testBatchAnywhere: any node finds the batch runs of all, and only those of the tenant.
func testBatchAnywhere(t *testing.T, c *cluster) {
	a, last := c.nodes[0].as(t, ada), c.nodes[2].as(t, ada)
	var keys []string
	for i := range 12 {
		keys = append(keys, fmt.Sprint("any-", i))
		last.submit(sleeping(keys[i], 200*time.Millisecond))
	}
	for _, key := range keys {
		a.result(key)
	}
	for _, n := range c.nodes {
		if run := n.as(t, ada).submit(sleeping(keys[0], 200*time.Millisecond)); run.State != resultjson.BatchDone {
			t.Errorf("submitted again: %+v", run)
		}
		n.as(t, ada).refused(http.StatusUnprocessableEntity, "invalid", "POST", "/v1/runs", sleeping(keys[0], time.Second))
		n.as(t, bob).refused(http.StatusNotFound, "not_found", "GET", "/v1/runs/"+keys[0], nil)
		n.as(t, bob).refused(http.StatusNotFound, "not_found", "DELETE", "/v1/runs/"+keys[0], nil)
	}
	last.submit(sleeping("canceled", time.Hour))
	a.waitRunning("canceled")
	var run resultjson.BatchRun
	a.want(http.StatusOK, "DELETE", "/v1/runs/canceled", nil).Into(t, &run)
	if run.Result == nil || run.Result.Cause != "canceled" {
		t.Errorf("%+v", run)
	}
	harness.WaitFor(t, "the canceled run ends", func() bool {
		var sum int
		for _, n := range c.nodes {
			sum += n.metric(t, discarded)
		}
		return sum == 1
	})
}

// testBatchDrained: a drained node takes no batch runs, but accepts them.
func testBatchDrained(t *testing.T, c *cluster) {
	drained := c.nodes[2]
	c.drain(t, drained, true)
	time.Sleep(6 * time.Second) // the questions to the queues that have begun before
	before := drained.metric(t, `gaol_http_requests_total{operation="POST /v1/run"`)
	for i := range 12 {
		drained.as(t, ada).submit(sleeping(fmt.Sprint("drained-", i), 100*time.Millisecond))
	}
	for i := range 12 {
		c.nodes[0].as(t, ada).result(fmt.Sprint("drained-", i))
	}
	if after := drained.metric(t, `gaol_http_requests_total{operation="POST /v1/run"`); after != before {
		t.Errorf("it has made %d batch runs", after-before)
	}
	c.drain(t, drained, false)
}

// testBatchEngine: without an engine, a submission fails, and succeeds with the same key afterwards. Runs in progress continue.
func testBatchEngine(t *testing.T, c *cluster) {
	last := c.nodes[2].as(t, ada)
	last.submit(sleeping("in-progress", 2*time.Second))
	last.waitRunning("in-progress")
	engine := c.nodes[0].engine()
	if err := unix.Kill(engine, unix.SIGSTOP); err != nil { // so that it is away for longer than a moment
		t.Fatal(err)
	}
	last.refused(http.StatusServiceUnavailable, "engine_unavailable", "POST", "/v1/runs", sleeping("away", 0))
	c.nodes[1].as(t, ada).wantValue("/v1/run", "__return(1)", "1")
	if err := unix.Kill(engine, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, "the batch run is accepted", func() bool {
		return last.send("POST", "/v1/runs", sleeping("away", 0)).Status == http.StatusAccepted
	})
	c.nodes[1].as(t, ada).result("away")
	c.nodes[1].as(t, ada).result("in-progress")
}

// testBatchFlood: a flood of one tenant does not delay another one by much.
func testBatchFlood(t *testing.T, c *cluster) {
	const most = 10 // times; the aim is 3, but the flood also uses the processors
	measure := func(name string) time.Duration {
		var all []time.Duration
		for i := range 15 {
			key, begin := fmt.Sprint(name, "-", i), time.Now()
			c.nodes[i%3].as(t, ada).submit(sleeping(key, 0))
			c.nodes[i%3].as(t, ada).result(key)
			all = append(all, time.Since(begin))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	quiet := measure("quiet")
	const flood = 400
	for i := range flood {
		c.nodes[i%3].as(t, bob).submit(sleeping(fmt.Sprint("flood-", i), 300*time.Millisecond))
	}
	flooded := measure("flooded")
	var left int
	for i := range flood {
		if c.nodes[i%3].as(t, bob).batch(fmt.Sprint("flood-", i)).State != resultjson.BatchDone {
			left++
		}
	}
	t.Logf("median latency %v, beside a flood %v: %.1f times; %d of %d runs of the flood were left", quiet, flooded, float64(flooded)/float64(quiet), left, flood)
	if left == 0 {
		t.Error("the flood has ended before")
	}
	if flooded > most*quiet {
		t.Errorf("want at most %d times", most)
	}
	for i := range flood {
		c.nodes[i%3].as(t, bob).result(fmt.Sprint("flood-", i))
	}
}

// begun returns the keys of new batch runs that are in progress, more than one node makes at the same time.
func (c *cluster) begun(t *testing.T, name string, n int, d time.Duration) (keys []string) {
	t.Helper()
	for i := range n {
		keys = append(keys, fmt.Sprint(name, "-", i))
		caller := c.nodes[i%len(c.nodes)].as(t, ada)
		harness.WaitFor(t, "a node that has just started reaches the engine", func() bool {
			res := caller.send("POST", "/v1/runs", sleeping(keys[i], d))
			if res.Status != http.StatusAccepted && !strings.Contains(string(res.Body), "engine_unavailable") {
				t.Fatalf("batch run %s: %d %s", keys[i], res.Status, res.Body)
			}
			return res.Status == http.StatusAccepted
		})
	}
	for _, key := range keys {
		c.nodes[0].as(t, ada).waitRunning(key)
	}
	return keys
}

// testBatchKilled: others make the batch runs of a node that is killed.
func testBatchKilled(t *testing.T, c *cluster) {
	n, viewer := c.nodes[1], c.nodes[0].as(t, ada)
	keys := c.begun(t, "killed", 9, 2500*time.Millisecond) // at most four on a node
	n.kill(t)
	killed := time.Now()
	var again int
	for _, key := range keys {
		if viewer.result(key).Attempts > 1 {
			again++
		}
	}
	t.Logf("%d of %d were made again, %v after the node was killed", again, len(keys), time.Since(killed))
	if again == 0 || time.Since(killed) > 30*time.Second {
		t.Errorf("%d were made again, after %v", again, time.Since(killed))
	}
	n.restart(t, "--join", c.nodes[0].peers)
	n.waitNew(t)
}

// testBatchStopped: the results of a node that was stopped are discarded when it continues.
func testBatchStopped(t *testing.T, c *cluster) {
	n, viewer := c.nodes[2], c.nodes[0].as(t, ada)
	before := n.metric(t, discarded)
	keys := c.begun(t, "stopped", 9, 3500*time.Millisecond)
	n.signal(t, unix.SIGSTOP)
	timer := time.After(20 * time.Second)
	results := map[string]time.Time{}
	for _, key := range keys {
		results[key] = *viewer.result(key).Done
	}
	<-timer
	n.signal(t, unix.SIGCONT)
	n.waitNew(t)
	harness.WaitFor(t, "its results are discarded", func() bool { return n.metric(t, discarded) > before })
	for key, done := range results {
		if now := viewer.result(key); !now.Done.Equal(done) {
			t.Errorf("%s has another result: %+v", key, now)
		}
	}
	c.nodes[0].waitState(t, n.id, "live")
}
