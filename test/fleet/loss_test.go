package fleet

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// lostAfter is the time after which the sandboxes of a node that was killed are lost.
const lostAfter = 15 * time.Second

// TestLoss kills a node of a fleet, and stops another one until the others declare it dead.
func TestLoss(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		testKilled(t, c.nodes[0], c.nodes[1])
	})
	t.Run("stopped", func(t *testing.T) {
		if testing.Short() {
			t.Skip("the test of a killed node needs the same time, and most of the same code")
		}
		t.Parallel()
		testStopped(t, c.nodes[0], c.nodes[2])
	})
}

// inProgress starts runs in a sandbox, by HTTP and by a session through a node, and returns when they run. The channels get what
// they end with.
func inProgress(t *testing.T, by *node, path string) (response <-chan string, failed <-chan error) {
	t.Helper()
	responses, errs := make(chan string, 1), make(chan error, 1)
	caller := by.as(t, ada)
	go func() {
		res, err := caller.Post("http://gaol"+path+"/run", "application/json", strings.NewReader(`{"code": "require('fs').writeFileSync('http', ''); setInterval(() => {}, 1000)"}`))
		if err != nil {
			responses <- err.Error()
			return
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		responses <- fmt.Sprint(res.Status, " ", string(text), " ", err)
	}()
	sb := by.dial(t, ada).Sandbox(strings.TrimPrefix(path, "/v1/sandboxes/"))
	go func() {
		_, err := sb.Run(soon(t), `require('fs').writeFileSync('session', ''); setInterval(() => {}, 1000)`, runtime.RunOptions{})
		errs <- err
	}()
	for _, file := range []string{"http", "session"} {
		harness.WaitFor(t, "the run of "+file+" is in progress", func() bool {
			return caller.send("GET", path+"/files/stat?path=/workspace/"+file, nil).Status == http.StatusOK
		})
	}
	return responses, errs
}

// wantLost fails the test unless the runs of inProgress end with the error of a lost node.
func wantLost(t *testing.T, response <-chan string, failed <-chan error) {
	t.Helper()
	if got := <-response; !strings.HasPrefix(got, "502 ") || !strings.Contains(got, `"code":"node_lost"`) {
		t.Errorf("the run of a request: %s", got)
	}
	if err := <-failed; !isCode(err, "node_lost") {
		t.Errorf("the run of a session: %v", err)
	}
}

// testKilled: the sandboxes of a node that was killed cannot be reached at first, and are lost when it is dead. Started again, it is
// a new node.
func testKilled(t *testing.T, viewer, n *node) {
	caller := viewer.as(t, ada)
	path, id := n.as(t, ada).create(nil), n.id
	response, failed := inProgress(t, viewer, path)
	n.kill(t)
	killed := time.Now()
	wantLost(t, response, failed)
	if res := caller.refused(http.StatusServiceUnavailable, "unreachable", "GET", path, nil); res.Header.Get("Retry-After") == "" {
		t.Errorf("%q", res.Header)
	}
	caller.refused(http.StatusServiceUnavailable, "unreachable", "POST", path+"/run", object{"code": "1"})
	if _, err := viewer.dial(t, ada).Sandbox(strings.TrimPrefix(path, "/v1/sandboxes/")).Info(soon(t)); !isCode(err, "unreachable") {
		t.Errorf("a session: %v", err)
	}
	if _, missing := caller.sandboxes(); !slices.Contains(missing, id) {
		t.Errorf("the list lacks %q, want %s", missing, id)
	}
	caller.create(nil)
	harness.WaitFor(t, "the killed node's sandbox is lost", func() bool {
		res := caller.send("GET", path, nil)
		var p servertest.Problem
		res.Into(t, &p)
		switch got := fmt.Sprint(res.Status, " ", p.Code); got {
		case "410 sandbox_lost":
			return true
		case "503 unreachable", "502 node_lost": // the latter if it was declared dead meanwhile
		default:
			t.Fatalf("%s: %s", got, res.Body)
		}
		return false
	})
	if after := time.Since(killed); after > lostAfter {
		t.Errorf("it is lost after %v", after)
	}
	viewer.waitState(t, id, "dead")
	if _, missing := caller.sandboxes(); slices.Contains(missing, id) {
		t.Errorf("the list lacks the dead node: %q", missing)
	}
	n.restart(t, "--join", viewer.peers)
	n.waitNew(t)
	viewer.waitState(t, n.id, "live")
	caller.wantValue(n.as(t, ada).create(nil)+"/run", "__return(1)", "1")
}

// waitNew waits until a node that finds itself dead has become a new one, and notes its id.
func (n *node) waitNew(t *testing.T) {
	t.Helper()
	id := n.waitLog(t, "the node is a new one")["node"]
	if id == "" || slices.Contains(n.ids, id) {
		t.Fatalf("the node has had the id %q before", id)
	}
	n.id = id
	n.ids = append(n.ids, id)
}

// testStopped: a node that does not answer is declared dead, and requests to it end then. When it continues it ends its sandboxes,
// and is a new node.
func testStopped(t *testing.T, viewer, n *node) {
	caller := viewer.as(t, ada)
	path, id, other := n.as(t, ada).create(nil), n.id, caller.create(nil)
	n.as(t, ada).wantValue(other+"/run", "__return(1)", "1") // by a connection that may be kept
	response, failed := inProgress(t, viewer, path)
	n.signal(t, unix.SIGSTOP)
	wantLost(t, response, failed) // when it is dead
	viewer.waitState(t, id, "dead")
	caller.refused(http.StatusGone, "sandbox_lost", "GET", path, nil)
	n.signal(t, unix.SIGCONT)
	n.waitNew(t)
	viewer.waitState(t, n.id, "live")
	for _, by := range []*node{viewer, n} {
		by.as(t, ada).refused(http.StatusGone, "sandbox_lost", "GET", path, nil)
	}
	harness.WaitFor(t, "the sandboxes of the dead node end", func() bool {
		ids, _ := n.as(t, ada).sandboxes()
		return !slices.ContainsFunc(ids, func(sandbox string) bool { return ownerOf(sandbox) == id })
	})
	caller.wantValue(n.as(t, ada).create(nil)+"/run", "__return(1)", "1")
	n.as(t, ada).wantValue(other+"/run", "__return(2)", "2")
}
