package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime/resultjson"
	"gaol/test/server/servertest"
	"gaol/test/tier"
)

// killEvery is the time between kills of TestChaos.
const killEvery = 5 * time.Second

// chaos is a fleet under load.
type chaos struct {
	*cluster
	callers []caller

	mayLose func(node string) bool // whether a node's sandboxes may be lost
	worst   atomic.Int64           // the nanoseconds of the slowest request

	mu       sync.Mutex
	accepted map[string]time.Time // when a key was submitted
	done     map[string]time.Time // of the results that were read, by key
	again    int
	counters []*counter
	kills    map[string]time.Time // of nodes' ids
}

// counter is a sandbox with a counter in a file.
type counter struct {
	path, node string
	value      int
	unsure     int // requests since, which had no response and may have counted
	lost       bool
}

// loadCluster returns a fleet for load.
func loadCluster(t *testing.T, fleet *cluster) *chaos {
	c := &chaos{cluster: fleet, accepted: map[string]time.Time{}, done: map[string]time.Time{}, kills: map[string]time.Time{}}
	for _, n := range c.nodes {
		c.callers = append(c.callers, n.as(t, ada))
	}
	return c
}

// TestChaos kills a random node or the engine each five seconds, for the time in GAOL_TEST_CHAOS. Meanwhile it submits batch runs,
// a fifth of them twice, and counts in sandboxes. At the end each key has one result, the counters have not repeated or skipped a
// number, and only sandboxes on nodes that were killed are lost.
func TestChaos(t *testing.T) {
	tier.Alone(t)
	runChaos(t, false)
}

// TestChaosPromoted does the same with an engine on three of the nodes, which is promoted under load.
func TestChaosPromoted(t *testing.T) {
	tier.Fleet(t)
	runChaos(t, true)
}

func runChaos(t *testing.T, promote bool) {
	t.Helper()
	duration, err := time.ParseDuration(os.Getenv("GAOL_TEST_CHAOS"))
	if err != nil {
		duration = 30 * time.Second
	}
	c := loadCluster(t, startCluster(t, 4))
	c.mayLose = func(node string) bool {
		_, killed := c.kills[node]
		return killed
	}
	for i := range 6 {
		c.addCounter(t, c.nodes[i%len(c.nodes)])
	}
	end := time.Now().Add(duration)
	var load sync.WaitGroup
	for worker := range 3 {
		load.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				c.submit(t, fmt.Sprintf("chaos-%d-%d", worker, i), i)
			}
		})
	}
	load.Go(func() {
		for time.Now().Before(end) {
			c.count(t)
			c.replaceLost(t)
		}
	})
	if promote {
		c.nodes[0].manage(t, "promote")
	}
	kills := 0
	for ; time.Until(end) > killEvery; kills++ {
		time.Sleep(killEvery)
		c.killOne(t)
	}
	load.Wait()
	c.wantResults(t)
	lost, total := 0, 0
	for _, counter := range c.counters {
		if total += counter.value; counter.lost {
			lost++
		}
	}
	if len(c.accepted) == 0 || total == 0 {
		t.Error("there was no load")
	}
	t.Logf("%v, %d kills: %d keys, %d with a second attempt; %d counts, %d of %d sandboxes lost, all on killed nodes", duration, kills, len(c.accepted), c.again, total, lost, len(c.counters))
}

// wantResults waits for the results of all accepted keys, and fails the test if a key has had two.
func (c *chaos) wantResults(t *testing.T) {
	t.Helper()
	inTurn := slices.SortedFunc(maps.Keys(c.accepted), func(a, b string) int { return c.accepted[a].Compare(c.accepted[b]) })
	for _, key := range inTurn { // so that each is waited for when it is its turn
		run := c.nodes[0].as(t, ada).result(key)
		if run.Attempts > 1 {
			c.again++
		}
		if before, read := c.done[key]; read && run.Done != nil && !before.Equal(*run.Done) {
			t.Errorf("%s has a second result", key)
		}
	}
}

// try sends a request to a random node. The response is nil if the node is down.
func (c *chaos) try(t *testing.T, method, path string, body any) (res *servertest.Response) {
	return c.tryBy(t, c.callers[rand.IntN(len(c.callers))], method, path, body)
}

// tryBy is try for a node.
func (c *chaos) tryBy(t *testing.T, caller caller, method, path string, body any) (res *servertest.Response) {
	begin := time.Now()
	defer func() { c.worst.Store(max(c.worst.Load(), int64(time.Since(begin)))) }() // about
	text, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
		return nil
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://gaol"+path, strings.NewReader(string(text)))
	if err != nil {
		t.Error(err)
		return nil
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := caller.Do(r)
	if err != nil {
		return nil
	}
	defer got.Body.Close()
	res = &servertest.Response{Status: got.StatusCode, Header: got.Header}
	var raw json.RawMessage
	if json.NewDecoder(got.Body).Decode(&raw) != nil {
		return nil
	}
	res.Body = raw
	return res
}

// submit submits a batch run until it is accepted, and each fifth again. It reads some results.
func (c *chaos) submit(t *testing.T, key string, i int) {
	request := sleeping(key, time.Duration(5+rand.IntN(200))*time.Millisecond)
	if i%20 == 0 {
		request = sleeping(key, 3500*time.Millisecond)
	}
	times := 1
	if i%5 == 0 {
		times = 2
	}
	for try := 0; times > 0; try++ {
		res := c.try(t, "POST", "/v1/runs", request)
		if res == nil || res.Status == http.StatusServiceUnavailable || res.Status == http.StatusTooManyRequests {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if res.Status != http.StatusAccepted {
			t.Errorf("submit %s: %d %s", key, res.Status, res.Body)
			return
		}
		times--
	}
	res := c.try(t, "GET", "/v1/runs/"+key+"/wait?timeoutMs=100", nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted[key] = time.Now()
	var run resultjson.BatchRun
	if res != nil && res.Status == http.StatusOK && json.Unmarshal(res.Body, &run) == nil && run.Done != nil {
		c.done[key] = *run.Done
	}
}

// addCounter creates a sandbox on a node.
func (c *chaos) addCounter(t *testing.T, n *node) {
	t.Helper()
	id := n.as(t, ada).createAnywhere(object{"limits": object{"memoryBytes": 64 << 20}})
	c.counters = append(c.counters, &counter{path: "/v1/sandboxes/" + id, node: ownerOf(id)})
}

// count counts once in each sandbox, through any node.
func (c *chaos) count(t *testing.T) {
	for _, counter := range c.counters {
		if !counter.lost {
			c.countIn(t, counter, c.callers[rand.IntN(len(c.callers))])
		}
	}
}

// countIn counts once in a sandbox, through a node. It reports whether it has. A request without a response may have counted.
func (c *chaos) countIn(t *testing.T, counter *counter, by caller) (counted bool) {
	res := c.tryBy(t, by, "POST", counter.path+"/run", object{"code": increment + " __return(next)"})
	if res == nil || res.Status == http.StatusBadGateway || res.Status == http.StatusServiceUnavailable && strings.Contains(string(res.Body), "interrupted") {
		counter.unsure++
		return false
	}
	switch res.Status {
	case http.StatusOK:
		var run struct{ Value int }
		if err := json.Unmarshal(res.Body, &run); err != nil || run.Value <= counter.value || run.Value > counter.value+1+counter.unsure {
			t.Errorf("%s has counted %d (%v) after %d, %d requests had no response", counter.path, run.Value, err, counter.value, counter.unsure)
		}
		counter.value, counter.unsure = run.Value, 0
		return true
	case http.StatusGone:
		c.markLost(t, counter, res)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
	default:
		t.Errorf("%s: %d %s", counter.path, res.Status, res.Body)
	}
	return false
}

// replaceLost creates sandboxes until six are left.
func (c *chaos) replaceLost(t *testing.T) {
	var left int
	for _, counter := range c.counters {
		if !counter.lost {
			left++
		}
	}
	for ; left < 6; left++ {
		var info struct{ ID string }
		res := c.try(t, "POST", "/v1/sandboxes", object{"limits": object{"memoryBytes": 64 << 20}})
		if res != nil && res.Status == http.StatusCreated && json.Unmarshal(res.Body, &info) == nil {
			c.counters = append(c.counters, &counter{path: "/v1/sandboxes/" + info.ID, node: ownerOf(info.ID)})
		}
	}
}

// markLost notes that a sandbox is lost, whose node must have been.
func (c *chaos) markLost(t *testing.T, counter *counter, res *servertest.Response) {
	counter.lost = true
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mayLose(counter.node) {
		t.Errorf("%s is lost, and its node was not: %s", counter.path, res.Body)
	}
}

// killOne kills an engine or a node, which is started again with its address.
func (c *chaos) killOne(t *testing.T) {
	i := rand.IntN(len(c.nodes) + 1)
	if i == len(c.nodes) {
		for _, at := range rand.Perm(len(c.nodes)) {
			if engine := c.nodes[at].engine(); engine != 0 {
				_ = unix.Kill(engine, unix.SIGKILL) // it may have ended
				return
			}
		}
		return
	}
	n := c.nodes[i]
	c.mu.Lock()
	c.kills[n.id] = time.Now()
	for _, line := range n.log.with("the node is a new one") {
		c.kills[line["node"]] = time.Now()
	}
	c.mu.Unlock()
	n.kill(t)
	flags := []string{"--join", c.nodes[0].peers}
	if i == 0 {
		flags = []string{"--fleet"}
	}
	n.restart(t, flags...)
}
