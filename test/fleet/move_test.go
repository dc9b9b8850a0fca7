package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/rootfs"
	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// TestMove drains nodes of a fleet of three, whose sandboxes move. Those at the end of the list stop nodes.
func TestMove(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"content", testMovedContent},
		{"processes", testMovedProcesses},
		{"paused", testMovedPaused},
		{"what stays", testUnmoved},
		{"snapshot and image", testMovedKept},
		{"delete", testDeleteMoving},
		{"load", testMoveUnderLoad},
		{"engine away", testMoveWithoutEngine},
		{"stopped node", testMovedFromStopped},
		{"hanging target", testHangingTarget},
		{"killed target", testKilledTarget},
		{"nothing is left", testNothingMovedLeft},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// moves returns the nodes to which the node has moved a sandbox.
func (n *node) moves(id string) (to []string) {
	for _, line := range n.log.with("a sandbox has moved") {
		if line["sandbox"] == id {
			to = append(to, line["peer"])
		}
	}
	return to
}

// of returns the node with an id.
func (c *cluster) of(t *testing.T, id string) *node {
	t.Helper()
	for _, n := range c.nodes {
		if n.id == id {
			return n
		}
	}
	t.Fatalf("no node %s", id)
	return nil
}

// evacuate drains a node until it has moved some sandboxes, and returns the new node of the first one.
func (c *cluster) evacuate(t *testing.T, n *node, ids ...string) *node {
	t.Helper()
	before := make([]int, len(ids))
	for i, id := range ids {
		before[i] = len(n.moves(id))
	}
	c.drain(t, n, true)
	for i, id := range ids {
		harness.WaitFor(t, "sandbox "+id+" leaves node "+n.name, func() bool {
			n.failIfEnded(t)
			return len(n.moves(id)) > before[i]
		})
	}
	to := n.moves(ids[0])
	return c.of(t, to[len(to)-1])
}

// idOf returns the id of the sandbox with a path.
func idOf(path string) string { return strings.TrimPrefix(path, "/v1/sandboxes/") }

// testMovedContent: a sandbox that moves keeps its id, its files without those that were deleted, its options and its times.
func testMovedContent(t *testing.T, c *cluster) {
	caller := c.nodes[0].as(t, ada)
	path := caller.create(object{
		"files": object{"/etc/conf": "configured", "/workspace/deleted": "x", "/workspace/kept": "kept", "/home/node/first": "home"},
		"env":   object{"SET": "by env"}, "globals": object{"given": []int{1, 2}}, "hostname": "mover", "lifetimeMs": 600_000,
		"permissions": object{"network": "deny", "childProcess": "deny"},
	})
	if res := caller.upload(path+"/files?path="+url.QueryEscape("/workspace/large"), bytes.Repeat([]byte("x"), 1<<20)); res.Status >= 300 {
		t.Fatalf("%s", res.Body)
	}
	caller.wantValue(path+"/run", `const fs = require('fs'); fs.unlinkSync('deleted'); fs.mkdirSync('dir/below', { recursive: true }); fs.writeFileSync('dir/below/f', 'f', { mode: 0o751 });
		fs.symlinkSync('../kept', 'dir/link'); fs.utimesSync('dir/below/f', 1e9, 1e9); fs.writeFileSync('/home/node/second', 'two'); __return(0)`, "0")
	const describe = `const fs = require('fs'); const denied = require('child_process').spawnSync('true').error?.code
		__return([fs.existsSync('deleted'), fs.readFileSync('/etc/conf', 'utf8'), fs.readFileSync('dir/link', 'utf8'), (fs.statSync('dir/below/f').mode & 0o777).toString(8), +fs.statSync('dir/below/f').mtime,
			fs.readFileSync('/home/node/first', 'utf8') + fs.readFileSync('/home/node/second', 'utf8'), fs.statSync('large').size, process.env.SET, given, require('os').hostname(), process.cwd(), denied ?? null])`
	var before, after client.Info
	caller.want(http.StatusOK, "GET", path, nil).Into(t, &before)
	want := caller.value(path+"/run", describe)
	from := c.nodes[0]
	for range harness.Fewer(6, 2) { // perhaps back to the first node
		to := c.evacuate(t, from, idOf(path))
		for _, n := range c.nodes {
			n.as(t, ada).wantValue(path+"/run", describe, want)
			n.as(t, ada).want(http.StatusOK, "GET", path, nil).Into(t, &after)
			if after.ID != before.ID || !after.Created.Equal(before.Created) || !after.LifetimeEnd.Equal(before.LifetimeEnd) || after.Isolation != before.Isolation {
				t.Errorf("node %s describes %+v, before %+v", n.name, after, before)
			}
			if ids, missing := n.as(t, ada).sandboxes(); strings.Join(ids, " ") != idOf(path) || len(missing) > 0 {
				t.Errorf("node %s lists %q without %q", n.name, ids, missing)
			}
			n.as(t, bob).refused(http.StatusNotFound, "not_found", "GET", path, nil)
		}
		c.drain(t, from, false)
		from = to
	}
	c.nodes[1].as(t, ada).want(http.StatusNoContent, "DELETE", path, nil)
	for _, n := range c.nodes {
		n.as(t, ada).refused(http.StatusNotFound, "not_found", "GET", path, nil)
		n.as(t, ada).refused(http.StatusNotFound, "not_found", "POST", path+"/run", object{"code": "1"})
	}
}

// testMovedProcesses: the processes and contexts of a sandbox end when it moves.
func testMovedProcesses(t *testing.T, c *cluster) {
	caller := c.nodes[2].as(t, ada)
	path := caller.create(nil)
	var process, context struct{ ID string }
	caller.want(http.StatusCreated, "POST", path+"/processes", object{"code": "setInterval(() => {}, 1000)"}).Into(t, &process)
	caller.want(http.StatusCreated, "POST", path+"/contexts", object{}).Into(t, &context)
	session := c.nodes[2].dial(t, ada)
	detached, err := session.Create(soon(t), client.CreateOptions{Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	attended, err := detached.SpawnCode(soon(t), endless, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan *servertest.Response, 1)
	go func() {
		waited <- c.nodes[0].as(t, ada).send("GET", path+"/processes/"+process.ID+"/wait?timeoutMs=60000", nil)
	}()
	c.evacuate(t, c.nodes[2], idOf(path), detached.ID())
	if res := <-waited; res.Status != http.StatusNotFound && (res.Status != http.StatusOK || !strings.Contains(string(res.Body), `"cause":"moved"`)) {
		t.Errorf("a wait for the process: %d %s", res.Status, res.Body)
	}
	if res, err := attended.Wait(soon(t)); err != nil || res.Cause != runtime.CauseMoved {
		t.Errorf("the process of a session: %+v %v", res, err)
	}
	for _, n := range c.nodes {
		n.as(t, ada).refused(http.StatusNotFound, "not_found", "GET", path+"/processes/"+process.ID, nil)
		n.as(t, ada).refused(http.StatusNotFound, "not_found", "POST", path+"/contexts/"+context.ID+"/evaluate", object{"code": "1"})
	}
	caller.want(http.StatusCreated, "POST", path+"/processes", object{"code": "1"})
	c.drain(t, c.nodes[2], false)
	if err := errors.Join(detached.Close(), session.Close()); err != nil {
		t.Error(err)
	}
	caller.want(http.StatusNoContent, "DELETE", path, nil)
}

// testMovedPaused pauses and resumes a sandbox through each node. A paused sandbox stays paused when it moves.
func testMovedPaused(t *testing.T, c *cluster) {
	caller := c.nodes[2].as(t, ada)
	path := caller.create(nil)
	c.nodes[0].as(t, ada).want(http.StatusNoContent, "POST", path+"/pause", nil)
	to := c.evacuate(t, c.nodes[2], idOf(path))
	var info client.Info
	to.as(t, ada).want(http.StatusOK, "GET", path, nil).Into(t, &info)
	if !info.Paused {
		t.Errorf("%+v", info)
	}
	caller.refused(http.StatusConflict, "paused", "POST", path+"/run", object{"code": "1"})
	caller.want(http.StatusNoContent, "POST", path+"/resume", nil)
	caller.wantValue(path+"/run", "__return(1)", "1")
	c.drain(t, c.nodes[2], false)
	caller.want(http.StatusNoContent, "DELETE", path, nil)
}

// testUnmoved: sandboxes that end with a session, and those with folders of their machine, stay on a drained node and work.
func testUnmoved(t *testing.T, c *cluster) {
	n := c.nodes[2]
	caller := n.as(t, ada)
	if err := os.WriteFile(filepath.Join(c.mounts(), "d/m"), []byte("mounted"), 0o644); err != nil {
		t.Fatal(err)
	}
	var info client.Info
	servertest.Send(t, n.asRoot(t), "POST", "/v1/sandboxes", object{"mounts": []object{{"source": "d", "target": "/mnt"}}}).Into(t, &info)
	mounted := "/v1/sandboxes/" + info.ID
	session := n.dial(t, ada)
	ends, err := session.Create(soon(t), client.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	detached, err := session.Create(soon(t), client.CreateOptions{Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	c.evacuate(t, n, detached.ID())
	for _, by := range c.nodes {
		by.as(t, ada).wantValue("/v1/sandboxes/"+ends.ID()+"/run", "__return(1)", "1")
		by.as(t, ada).wantValue("/v1/sandboxes/"+detached.ID()+"/run", "__return(2)", "2")
	}
	var run struct{ Value string }
	servertest.Send(t, n.asRoot(t), "POST", mounted+"/run", object{"code": `__return(require('fs').readFileSync('/mnt/m', 'utf8'))`}).Into(t, &run)
	if run.Value != "mounted" {
		t.Errorf("%+v", run)
	}
	if moved := append(n.moves(ends.ID()), n.moves(idOf(mounted))...); len(moved) > 0 {
		t.Errorf("moved to %q", moved)
	}
	c.drain(t, n, false)
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	harness.WaitFor(t, "the session's sandbox ends with it", func() bool {
		return caller.send("GET", "/v1/sandboxes/"+ends.ID(), nil).Status == http.StatusNotFound
	})
	caller.wantValue("/v1/sandboxes/"+detached.ID()+"/run", "__return(3)", "3")
	caller.want(http.StatusNoContent, "DELETE", "/v1/sandboxes/"+detached.ID(), nil)
	servertest.Send(t, n.asRoot(t), "DELETE", mounted, nil).Want(t, http.StatusNoContent)
}

// testMovedKept: a sandbox with a snapshot, its packages and an image that only its node has moves.
func testMovedKept(t *testing.T, c *cluster) {
	n := c.nodes[0]
	caller := n.as(t, ada)
	n.takeSnapshot(t, "base")
	n.importApp(t)
	caller.want(http.StatusOK, "POST", "/v1/images", object{
		"name": "own", "from": "app", "steps": []object{{"run": "echo made >/made"}}, "limits": object{"diskBytes": 8 << 20, "memoryBytes": 64 << 20},
	})
	path := caller.create(object{"image": "own", "snapshot": "base"})
	packages := caller.create(object{"snapshot": "base", "nodeModules": object{"hostPath": "snapshot:base", "guestPath": "/srv/node_modules"}, "cwd": "/srv"})
	run := func(by *node, command string) string {
		var result struct{ Stdout string }
		by.as(t, ada).want(http.StatusOK, "POST", path+"/command", object{"command": "/bin/sh", "args": []string{"-c", command}}).Into(t, &result)
		return result.Stdout
	}
	run(n, "echo later >>/workspace/base")
	to := c.evacuate(t, n, idOf(path), idOf(packages))
	for _, by := range c.nodes {
		if got := run(by, "cat /made /workspace/base"); got != "made\nbaselater\n" {
			t.Errorf("through node %s: %q", by.name, got)
		}
		by.as(t, ada).wantValue(packages+"/run", `__return(require('left'))`, `"base"`)
	}
	if made, copied := n.stored(t, rootfs.Open, ".own"), to.stored(t, rootfs.Open, ".own"); copied == nil || copied.ID != made.ID {
		t.Errorf("node %s has %+v, want %+v", to.name, copied, made)
	}
	c.drain(t, n, false)
	for _, path := range []string{path, packages, "/v1/snapshots/base"} {
		harness.WaitFor(t, path+" can be deleted", func() bool { return caller.send("DELETE", path, nil).Status == http.StatusNoContent })
	}
}

// fill writes some megabytes to a file of a sandbox.
func (c caller) fill(path string, megabytes int) {
	c.t.Helper()
	c.wantValue(path+"/run", fmt.Sprintf(`require('fs').writeFileSync('filling', require('crypto').randomBytes(%d << 20)); __return(0)`, megabytes), "0")
}

// testDeleteMoving: a sandbox that is deleted while it moves is deleted on both nodes.
func testDeleteMoving(t *testing.T, c *cluster) {
	n := c.nodes[0]
	caller := n.as(t, ada)
	path := caller.create(nil)
	caller.fill(path, 20)
	deleted := make(chan *servertest.Response, len(c.nodes))
	drained := make(chan struct{})
	for _, by := range c.nodes {
		go func() {
			<-drained
			deleted <- by.as(t, ada).send("DELETE", path, nil)
		}()
	}
	n.manage(t, "drain", n.id)
	close(drained)
	success := 0
	for range c.nodes {
		switch res := <-deleted; res.Status {
		case http.StatusNoContent:
			success++
		case http.StatusNotFound:
		default:
			t.Errorf("delete: %d %s", res.Status, res.Body)
		}
	}
	if success == 0 {
		t.Error("it was not deleted")
	}
	for _, by := range c.nodes {
		by.as(t, ada).refused(http.StatusNotFound, "not_found", "GET", path, nil)
		if ids, _ := by.as(t, ada).sandboxes(); len(ids) > 0 {
			t.Errorf("node %s lists %q", by.name, ids)
		}
	}
	c.drain(t, n, false)
}

// testMoveWithoutEngine: sandboxes of a draining node stay while there is no engine, and move when it is back.
func testMoveWithoutEngine(t *testing.T, c *cluster) {
	if testing.Short() {
		t.Skip("it waits for time-outs of the engine")
	}
	n := c.nodes[1]
	path := n.as(t, ada).create(nil)
	engine := c.nodes[0].engine()
	if err := unix.Kill(engine, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Kill(engine, unix.SIGCONT) }() // also when the test fails
	n.manage(t, "drain", n.id)
	var worst time.Duration
	count := 0
	for stopped := time.Now(); time.Since(stopped) < outage; {
		for _, by := range c.nodes {
			begin := time.Now()
			count++
			by.as(t, ada).wantValue(path+"/run", increment+` __return(next)`, fmt.Sprint(count))
			worst = max(worst, time.Since(begin))
		}
	}
	if len(n.moves(idOf(path))) > 0 {
		t.Error("it has moved without the engine")
	}
	if err := unix.Kill(engine, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, "the sandbox moves", func() bool { return len(n.moves(idOf(path))) > 0 })
	for _, by := range c.nodes {
		by.as(t, ada).wantValue(path+"/run", `__return(+require('fs').readFileSync('n'))`, fmt.Sprint(count))
	}
	if worst > maxPause {
		t.Errorf("a request took %v", worst)
	}
	t.Logf("%d requests while the engine was away, the slowest took %v", count, worst)
	c.drain(t, n, false)
	n.as(t, ada).want(http.StatusNoContent, "DELETE", path, nil)
}

// testMovedFromStopped: sandboxes live on under their ids when the node that they were created on has been stopped, and when it is
// started again.
func testMovedFromStopped(t *testing.T, c *cluster) {
	n := c.nodes[2]
	path := n.as(t, ada).create(object{"files": object{"/workspace/f": "content"}})
	to := c.evacuate(t, n, idOf(path))
	n.stop(t)
	const read = `__return(require('fs').readFileSync('f', 'utf8'))`
	for _, by := range c.nodes[:2] {
		by.as(t, ada).wantValue(path+"/run", read, `"content"`)
		if res, err := by.dial(t, ada).Sandbox(idOf(path)).FS().ReadFile(soon(t), "/workspace/f"); err != nil || string(res) != "content" {
			t.Errorf("%q %v", res, err)
		}
	}
	n.restart(t, "--join", c.nodes[0].peers)
	harness.WaitFor(t, "the node finds the sandbox", func() bool {
		res := n.as(t, ada).send("GET", path, nil)
		if res.Status != http.StatusOK && res.Status != http.StatusServiceUnavailable {
			t.Fatalf("%d %s", res.Status, res.Body)
		}
		return res.Status == http.StatusOK
	})
	for _, by := range c.nodes {
		by.waitState(t, n.id, "live")
		by.as(t, ada).wantValue(path+"/run", read, `"content"`)
	}
	n.as(t, ada).create(nil) // it accepts work again
	back := c.evacuate(t, to, idOf(path))
	back.as(t, ada).wantValue(path+"/run", read, `"content"`)
	c.drain(t, to, false)
}

// testHangingTarget: a sandbox stays while the node that it should move to does not answer, and moves when that continues.
func testHangingTarget(t *testing.T, c *cluster) {
	if testing.Short() {
		t.Skip("it waits until a node is dead")
	}
	n, to := c.nodes[0], c.nodes[2]
	path := n.as(t, ada).create(nil)
	c.drain(t, c.nodes[1], true)
	n.as(t, ada).sandboxes() // by a connection that is kept
	dead := to.id
	to.signal(t, unix.SIGSTOP)
	defer to.signal(t, unix.SIGCONT) // also when the test fails
	n.manage(t, "drain", n.id)
	var worst time.Duration
	count := 0
	for n.states(t)[dead] != "dead" || count == 0 {
		count++
		begin := time.Now()
		n.as(t, ada).wantValue(path+"/run", increment+` __return(next)`, fmt.Sprint(count))
		worst = max(worst, time.Since(begin))
	}
	n.as(t, ada).wantValue(path+"/run", increment+` __return(next)`, fmt.Sprint(count+1))
	if worst > lostAfter {
		t.Errorf("a request took %v", worst)
	}
	t.Logf("%d requests while the target hung, the slowest took %v", count, worst)
	to.signal(t, unix.SIGCONT)
	to.waitNew(t)
	harness.WaitFor(t, "the sandbox moves", func() bool { return len(n.moves(idOf(path))) > 0 })
	for _, by := range c.nodes {
		by.as(t, ada).wantValue(path+"/run", `__return(+require('fs').readFileSync('n'))`, fmt.Sprint(count+1))
	}
	c.drain(t, n, false)
	c.drain(t, c.nodes[1], false)
	n.as(t, ada).want(http.StatusNoContent, "DELETE", path, nil)
}

// testKilledTarget: a sandbox is lost when the node that it has moved to was killed. Started again, that node lacks the copy.
func testKilledTarget(t *testing.T, c *cluster) {
	if testing.Short() {
		t.Skip("it waits until a node is dead")
	}
	n := c.nodes[0]
	path := n.as(t, ada).create(nil)
	c.drain(t, c.nodes[1], true) // which stays
	to := c.evacuate(t, n, idOf(path))
	to.kill(t)
	killed := time.Now()
	by := c.nodes[1].as(t, ada)
	harness.WaitFor(t, "the sandbox is lost", func() bool {
		var p servertest.Problem
		res := by.send("GET", path, nil)
		res.Into(t, &p)
		switch got := fmt.Sprint(res.Status, " ", p.Code); got {
		case "410 sandbox_lost":
			return true
		case "503 unreachable", "502 node_lost":
		default:
			t.Fatalf("%s: %s", got, res.Body)
		}
		return false
	})
	if after := time.Since(killed); after > lostAfter {
		t.Errorf("it is lost after %v", after)
	}
	n.as(t, ada).refused(http.StatusGone, "sandbox_lost", "GET", path, nil)
	to.restart(t, "--join", n.peers)
	to.waitNew(t)
	n.waitState(t, to.id, "live")
	to.as(t, ada).refused(http.StatusGone, "sandbox_lost", "GET", path, nil)
	c.drain(t, n, false)
	c.drain(t, c.nodes[1], false)
}

// testNothingMovedLeft: when all sandboxes have been deleted, no files of moves are left in the stores.
func testNothingMovedLeft(t *testing.T, c *cluster) {
	caller := c.nodes[0].as(t, ada)
	ids, missing := caller.sandboxes()
	for _, id := range ids {
		caller.want(http.StatusNoContent, "DELETE", "/v1/sandboxes/"+id, nil)
	}
	if len(missing) > 0 {
		t.Errorf("the list lacks %q", missing)
	}
	for i := len(c.nodes) - 1; i >= 0; i-- {
		n := c.nodes[i]
		n.stop(t)
		snapshots := filepath.Join(n.store, "snapshots")
		if left := harness.Glob(filepath.Join(snapshots, "names/*"), filepath.Join(snapshots, "images/*"), filepath.Join(snapshots, "tmp/*"), filepath.Join(n.store, "tmp/*")); len(left) > 0 {
			t.Errorf("node %s has %q", n.name, left)
		}
	}
}
