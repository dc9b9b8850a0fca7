package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gaol/test/harness"
	"gaol/test/tier"
)

// buildProtocols builds gaol for other versions of the protocol between nodes.
func buildProtocols(t *testing.T, oldest, newest int) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(root, "cmd/gaol/server/fleet/member/table.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	const versions = "	OldestProtocol = 1\n	Protocol       = 1\n"
	if !strings.Contains(string(text), versions) {
		t.Fatalf("%s does not contain %q: the test has to follow", source, versions)
	}
	dir := t.TempDir()
	changed, overlay, gaol := filepath.Join(dir, "table.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "gaol")
	replace, err := json.Marshal(object{"Replace": object{source: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		changed: strings.Replace(string(text), versions, fmt.Sprintf("	OldestProtocol = %d\n	Protocol       = %d\n", oldest, newest), 1),
		overlay: string(replace),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-overlay", overlay, "-o", gaol, "gaol/cmd/gaol")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	if err := os.Symlink(harness.NATS(t), filepath.Join(dir, "nats-server")); err != nil {
		t.Fatal(err)
	}
	return gaol
}

// upgrade is a fleet that is upgraded under load.
type upgrade struct {
	*cluster
	inUse []sync.RWMutex // by node: it is held for writing while the node is away, as for a load balancer
	stop  chan struct{}
}

// by calls request with the index of a node that is not away, beginning with i.
func (u *upgrade) by(i int, request func(by int)) {
	for ; ; i++ {
		if by := i % len(u.nodes); u.inUse[by].TryRLock() {
			defer u.inUse[by].RUnlock()
			request(by)
			return
		}
	}
}

// pause is the time between requests of a client: a move needs a moment without requests, and batch runs must not fill the queues.
const pause = 100 * time.Millisecond

// sandboxesOf returns how many sandboxes a node has, as gaol fleet nodes shows there.
func (n *node) sandboxesOf(t *testing.T, id string) int {
	t.Helper()
	for _, s := range n.list(t).Nodes {
		if s.ID == id {
			return s.Sandboxes
		}
	}
	t.Fatalf("node %s has left", id)
	return 0
}

// replace upgrades a node as docs/fleet.md describes: it drains it, waits until its sandboxes have moved, and starts another program.
func (u *upgrade) replace(t *testing.T, i int, gaol string) {
	t.Helper()
	n, id := u.nodes[i], u.nodes[i].id
	u.drain(t, n, true)
	for late := time.Now().Add(5 * time.Minute); n.sandboxesOf(t, id) > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(late) { // busy sandboxes are tried again after 20 s
			t.Fatalf("the sandboxes of node %s do not move", n.name)
		}
	}
	u.inUse[i].Lock()
	defer u.inUse[i].Unlock()
	n.stop(t)
	n.gaol = gaol
	flags := []string{"--fleet"}
	if i > 0 {
		flags = []string{"--join", u.nodes[0].peers}
	}
	n.restart(t, flags...)
	if n.id != id {
		t.Errorf("node %s was %s, and is %s", n.name, id, n.id)
	}
	for _, viewer := range u.nodes {
		for _, seen := range u.nodes {
			viewer.waitState(t, seen.id, "live")
		}
	}
	n.manage(t, "undrain", n.id)
}

// TestProtocolUpgrade replaces the program of all nodes one after another, twice: by one that also understands a newer protocol, and then by
// one that understands no older one. Meanwhile no run fails, each batch run has a result, and sandboxes keep their ids and files.
func TestProtocolUpgrade(t *testing.T) {
	tier.Soak(t)
	between, newer := buildProtocols(t, 1, 2), buildProtocols(t, 2, 2)
	c := newCluster(t)
	if err := os.WriteFile(c.config(), []byte(`{"drainMs": 20000}`), 0o600); err != nil { // for requests of a busy machine
		t.Fatal(err)
	}
	u := &upgrade{cluster: c.startAll(t, 3), stop: make(chan struct{})}
	u.inUse = make([]sync.RWMutex, len(u.nodes))
	var load sync.WaitGroup
	var tallies []*tally
	for i := range 5 {
		path := u.nodes[i%len(u.nodes)].as(t, ada).create(object{"files": object{"/workspace/kept": fmt.Sprint("file ", i)}})
		if i == 0 {
			u.nodes[0].as(t, ada).fill(path, 20)
		}
		k := u.countByHTTP(t, idOf(path))
		next := k.next
		k.next = func(i int) (value string, err error) {
			time.Sleep(pause)
			u.by(i, func(by int) { value, err = next(by) })
			return value, err
		}
		tallies = append(tallies, k)
		load.Go(func() { k.run(t, len(u.nodes), u.stop) })
	}
	var runs, keys atomic.Int64
	load.Go(func() {
		for ; !isClosed(u.stop); runs.Add(1) {
			time.Sleep(pause)
			u.by(int(runs.Load()), func(by int) { u.nodes[by].as(t, ada).wantValue("/v1/run", "__return(7)", "7") })
		}
	})
	load.Go(func() {
		for ; !isClosed(u.stop); keys.Add(1) {
			time.Sleep(pause)
			request := sleeping(fmt.Sprint("upgrade-", keys.Load()), 0)
			harness.WaitFor(t, "the batch run is accepted", func() (accepted bool) {
				u.by(int(keys.Load()), func(by int) { // the engine may be away
					res := u.nodes[by].as(t, ada).send("POST", "/v1/runs", request)
					if accepted = res.Status == http.StatusAccepted; !accepted {
						res.Want(t, http.StatusServiceUnavailable)
					}
				})
				return accepted
			})
		}
	})
	for _, gaol := range []string{between, newer} {
		for i := range u.nodes {
			u.replace(t, i, gaol)
		}
	}
	close(u.stop)
	load.Wait()
	for i := range keys.Load() {
		u.nodes[0].as(t, ada).result(fmt.Sprint("upgrade-", i))
	}
	for i, k := range tallies {
		if k.count == 0 {
			t.Errorf("nothing was counted in %s", k.id)
		}
		for _, n := range u.nodes {
			n.as(t, ada).wantValue("/v1/sandboxes/"+k.id+"/run", `__return(require('fs').readFileSync('kept', 'utf8'))`, fmt.Sprintf("%q", fmt.Sprint("file ", i)))
		}
		t.Logf("%d requests, the slowest took %v", k.count, k.worst)
	}
	t.Logf("%d runs, %d batch runs", runs.Load(), keys.Load())
	testStoppedGateway(t, u.nodes[1], u.nodes[2])
	testNoProtocol(t, u.cluster)
}

// testStoppedGateway: a node that is stopped first forwards the responses that others owe it.
func testStoppedGateway(t *testing.T, gateway, owner *node) {
	path := owner.as(t, ada).create(nil)
	result := make(chan string, 1)
	go func() {
		result <- gateway.as(t, ada).value(path+"/run", `require('fs').writeFileSync('begun', ''); setTimeout(() => __return('done'), 3000)`)
	}()
	harness.WaitFor(t, "the run begins", func() bool {
		return owner.as(t, ada).send("GET", path+"/files/stat?path=/workspace/begun", nil).Status == http.StatusOK
	})
	gateway.stop(t)
	if got := <-result; got != `"done"` {
		t.Errorf("the run through a node that is stopped returns %s", got)
	}
	gateway.restart(t, "--join", owner.c.nodes[0].peers)
}

// testNoProtocol: nodes without a common protocol send each other no requests.
func testNoProtocol(t *testing.T, c *cluster) {
	older := c.start(t, "older", c.nodes[0].join(c.nodes[0].token(t))...)
	for _, viewer := range c.nodes {
		for _, n := range c.nodes {
			viewer.waitState(t, n.id, "live")
		}
	}
	paths := map[*node]string{}
	for _, n := range c.nodes {
		paths[n] = n.as(t, ada).create(nil)
	}
	for _, by := range c.nodes {
		for owner, path := range paths {
			if (by == older) == (owner == older) {
				by.as(t, ada).wantValue(path+"/run", "__return(1)", "1")
			} else {
				by.as(t, ada).refused(http.StatusServiceUnavailable, "unreachable", "POST", path+"/run", object{"code": "1"})
			}
		}
		ids, missing := by.as(t, ada).sandboxes()
		for _, id := range ids {
			if (ownerOf(id) == older.id) != (by == older) && len(missing) == 0 {
				t.Errorf("node %s lists %s", by.name, id)
			}
		}
	}
	c.drain(t, older, true)
	older.as(t, ada).refused(http.StatusServiceUnavailable, "unreachable", "POST", "/v1/sandboxes", object{})
	older.as(t, ada).wantValue(paths[older]+"/run", "__return(2)", "2") // it stays
	for _, n := range c.nodes {
		for line := range strings.Lines(string(n.local(t).want(http.StatusOK, "GET", "/metrics", nil).Body)) {
			if strings.HasPrefix(line, "gaol_fleet_forwards_total") && (n == older || strings.Contains(line, older.id)) {
				t.Errorf("node %s has forwarded: %s", n.name, line)
			}
		}
	}
}
