package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/rootfs"
	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/harness"
)

// snapshots lists the names of the tenant's snapshots.
func (c caller) snapshots() (names []string) {
	c.t.Helper()
	var list struct {
		Snapshots []client.SnapshotInfo
		Missing   []string
	}
	c.want(http.StatusOK, "GET", "/v1/snapshots", nil).Into(c.t, &list)
	for _, info := range list.Snapshots {
		names = append(names, info.Name)
	}
	return append(names, list.Missing...)
}

// stored returns the snapshot or the image in the node's store whose name ends with a text, nil if there is none.
func (n *node) stored(t *testing.T, open func(string) (*rootfs.Store, error), end string) *rootfs.Image {
	t.Helper()
	store, err := open(n.store)
	if err != nil {
		t.Fatal(err)
	}
	list, err := store.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if slices.ContainsFunc(i.Names, func(name string) bool { return strings.HasSuffix(name, end) }) {
			return i
		}
	}
	return nil
}

// keepers returns the nodes whose stores have a snapshot or an image of a tenant.
func (c *cluster) keepers(t *testing.T, open func(string) (*rootfs.Store, error), name string) (with, without []*node) {
	t.Helper()
	for _, n := range c.nodes {
		if n.stored(t, open, "."+name) != nil {
			with = append(with, n)
		} else {
			without = append(without, n)
		}
	}
	return with, without
}

// takeSnapshot takes a snapshot of a new sandbox of the node, with a file of the same name as the snapshot, and a package.
func (n *node) takeSnapshot(t *testing.T, name string) {
	t.Helper()
	caller := n.as(t, ada)
	path := caller.create(object{"files": object{"/workspace/" + name: name, "/workspace/node_modules/left/index.js": "module.exports = " + fmt.Sprintf("%q", name)}})
	caller.want(http.StatusCreated, "POST", path+"/snapshots", object{"name": name})
	caller.want(http.StatusNoContent, "DELETE", path, nil)
}

// wantSnapshot creates a sandbox from a snapshot through the node, and deletes it. It returns the node of the sandbox.
func (n *node) wantSnapshot(t *testing.T, name string) (owner string) {
	t.Helper()
	caller := n.as(t, ada)
	id := caller.createAnywhere(object{"snapshot": name})
	caller.wantValue("/v1/sandboxes/"+id+"/run", fmt.Sprintf(`__return(require('fs').readFileSync(%q, 'utf8'))`, name), fmt.Sprintf("%q", name))
	caller.want(http.StatusNoContent, "DELETE", "/v1/sandboxes/"+id, nil)
	return ownerOf(id)
}

// TestCopies tests the copies of snapshots and images in a fleet of three nodes.
func TestCopies(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"two copies", testTwoCopies},
		{"names", testCopiedNames},
		{"one name", testNameTakenTwice},
		{"deleted while away", testDeletedWhileAway},
		{"session", testCopiedBySession},
		{"packages", testCopiedPackages},
		{"damaged", testDamagedCopy},
		{"image", testCopiedImage},
		{"large image", testLargeImage},
		{"hanging node", testCopyToHangingNode},
		{"lost node", testCopyOfLostNode},
		{"single node", testNoCopy},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// testTwoCopies: a snapshot is on two nodes when it has been taken, and a deletion through any node deletes all copies.
func testTwoCopies(t *testing.T, c *cluster) {
	for i, n := range harness.Some(c.nodes) {
		n.takeSnapshot(t, "two")
		with, without := c.keepers(t, rootfs.OpenSnapshots, "two")
		if len(with) != 2 || !slices.Contains(with, n) {
			t.Fatalf("%d copies", len(with))
		}
		if a, b := with[0].stored(t, rootfs.OpenSnapshots, ".two"), with[1].stored(t, rootfs.OpenSnapshots, ".two"); a.ID != b.ID || a.Size != b.Size {
			t.Errorf("%+v and %+v", a, b)
		}
		if owner := without[0].wantSnapshot(t, "two"); owner != without[0].id {
			t.Errorf("the sandbox is on %s, not on %s, which got the request", owner, without[0].id)
		}
		if with, _ := c.keepers(t, rootfs.OpenSnapshots, "two"); len(with) != 3 {
			t.Errorf("%d copies after the use on the third node", len(with))
		}
		c.nodes[(i+1)%3].as(t, ada).want(http.StatusNoContent, "DELETE", "/v1/snapshots/two", nil)
		if with, _ := c.keepers(t, rootfs.OpenSnapshots, "two"); len(with) != 0 {
			t.Errorf("%d copies are left", len(with))
		}
		for _, n := range c.nodes {
			n.as(t, ada).refused(http.StatusNotFound, "not_found", "DELETE", "/v1/snapshots/two", nil)
			n.as(t, ada).refused(http.StatusUnprocessableEntity, "invalid", "POST", "/v1/sandboxes", object{"snapshot": "two"})
		}
	}
}

// testCopiedNames: a name is used once in the fleet, for each tenant. A snapshot that is in use keeps its name.
func testCopiedNames(t *testing.T, c *cluster) {
	c.nodes[0].takeSnapshot(t, "name")
	for _, n := range c.nodes {
		path := n.as(t, ada).create(nil)
		n.as(t, ada).refused(http.StatusConflict, "conflict", "POST", path+"/snapshots", object{"name": "name"})
		n.as(t, ada).want(http.StatusNoContent, "DELETE", path, nil)
		if got := n.as(t, ada).snapshots(); !slices.Equal(got, []string{"name"}) {
			t.Errorf("node %s lists %q", n.name, got)
		}
		if got := n.as(t, bob).snapshots(); len(got) > 0 {
			t.Errorf("node %s lists %q for another tenant", n.name, got)
		}
		n.as(t, bob).refused(http.StatusNotFound, "not_found", "DELETE", "/v1/snapshots/name", nil)
	}
	path := c.nodes[1].as(t, bob).create(nil)
	c.nodes[1].as(t, bob).want(http.StatusCreated, "POST", path+"/snapshots", object{"name": "name"})
	used := c.nodes[2].as(t, ada).create(object{"snapshot": "name"})
	for _, n := range c.nodes {
		n.as(t, ada).refused(http.StatusConflict, "conflict", "DELETE", "/v1/snapshots/name", nil)
		n.wantSnapshot(t, "name")
	}
	c.nodes[0].as(t, ada).want(http.StatusNoContent, "DELETE", used, nil)
	c.nodes[0].as(t, ada).want(http.StatusNoContent, "DELETE", "/v1/snapshots/name", nil)
	if got := c.nodes[2].as(t, bob).snapshots(); !slices.Equal(got, []string{"name"}) {
		t.Errorf("the other tenant has %q", got)
	}
	c.nodes[2].as(t, bob).want(http.StatusNoContent, "DELETE", "/v1/snapshots/name", nil)
}

// testCopiedBySession: a session takes, lists, uses and removes snapshots as HTTP does.
func testCopiedBySession(t *testing.T, c *cluster) {
	taker, user := c.nodes[0].dial(t, ada), c.nodes[1].dial(t, ada)
	sb, err := taker.Create(soon(t), client.CreateOptions{Files: map[string][]byte{"/workspace/a": []byte("session")}})
	if err == nil {
		_, err = sb.Snapshot(soon(t), "session")
	}
	if err != nil {
		t.Fatal(err)
	}
	if with, _ := c.keepers(t, rootfs.OpenSnapshots, "session"); len(with) != 2 {
		t.Errorf("%d copies", len(with))
	}
	if _, err := sb.Snapshot(soon(t), "session"); !isCode(err, "conflict") {
		t.Errorf("the name again: %v", err)
	}
	for _, n := range c.nodes {
		by := n.dial(t, ada)
		if list, err := by.Snapshots(soon(t)); err != nil || len(list) != 1 {
			t.Errorf("%+v %v", list, err)
		}
		sb, err := by.Create(soon(t), client.CreateOptions{Snapshot: "session"})
		if err != nil {
			t.Fatal(err)
		}
		if ownerOf(sb.ID()) != n.id {
			t.Errorf("the sandbox %s is not on %s", sb.ID(), n.id)
		}
		if text, err := sb.FS().ReadFile(soon(t), "/workspace/a"); err != nil || string(text) != "session" {
			t.Errorf("%q %v", text, err)
		}
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := user.RemoveSnapshot(soon(t), "session"); err != nil {
		t.Error(err)
	}
	if with, _ := c.keepers(t, rootfs.OpenSnapshots, "session"); len(with) != 0 {
		t.Errorf("%d copies are left", len(with))
	}
}

// testCopiedPackages: the node_modules of a snapshot are mounted on nodes that did not have it.
func testCopiedPackages(t *testing.T, c *cluster) {
	c.nodes[0].takeSnapshot(t, "packages")
	_, without := c.keepers(t, rootfs.OpenSnapshots, "packages")
	if len(without) != 1 {
		t.Fatalf("%d nodes have no copy", len(without))
	}
	body := object{"code": `__return(require('left'))`, "nodeModules": "snapshot:packages"}
	var run struct{ Value, Stderr string }
	without[0].as(t, ada).want(http.StatusOK, "POST", "/v1/run", body).Into(t, &run)
	if run.Value != "packages" {
		t.Errorf("%+v", run)
	}
	if with, _ := c.keepers(t, rootfs.OpenSnapshots, "packages"); len(with) != 3 {
		t.Errorf("%d copies", len(with))
	}
	sb, err := without[0].dial(t, ada).Create(soon(t), client.CreateOptions{NodeModules: "snapshot:packages"})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := sb.Run(soon(t), `__return(require('left'))`, runtime.RunOptions{}); err != nil || string(res.Value) != `"packages"` {
		t.Errorf("%+v %v", res, err)
	}
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
	c.nodes[0].as(t, ada).want(http.StatusNoContent, "DELETE", "/v1/snapshots/packages", nil)
}

// damage changes a byte of a file in the node's copy of a snapshot.
func (n *node) damage(t *testing.T, snapshot string) {
	t.Helper()
	root := n.stored(t, rootfs.OpenSnapshots, "."+snapshot).Root()
	found := harness.Glob(filepath.Join(root, snapshot), filepath.Join(root, "*", snapshot), filepath.Join(root, "*/*", snapshot))
	if len(found) != 1 {
		t.Fatalf("%s has %q", root, found)
	}
	text, err := os.ReadFile(found[0])
	if err == nil {
		err = os.WriteFile(found[0], bytes.ToUpper(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// testDamagedCopy: a copy whose content has changed is refused. The node uses another one, and refuses the request if there is none.
func testDamagedCopy(t *testing.T, c *cluster) {
	for range 5 { // the holders answer in any order
		c.nodes[0].takeSnapshot(t, "damaged")
		with, without := c.keepers(t, rootfs.OpenSnapshots, "damaged")
		if len(with) != 2 {
			t.Fatalf("%d copies", len(with))
		}
		with[0].damage(t, "damaged")
		if owner := without[0].wantSnapshot(t, "damaged"); owner != without[0].id {
			t.Errorf("the sandbox is on %s, which has a damaged copy or was not asked", owner)
		}
		c.nodes[1].as(t, ada).want(http.StatusNoContent, "DELETE", "/v1/snapshots/damaged", nil)
	}
	for _, n := range c.nodes {
		if left := harness.Glob(filepath.Join(n.store, "tmp/*"), filepath.Join(n.store, "snapshots/tmp/*")); len(left) > 0 {
			t.Errorf("node %s has %q", n.name, left)
		}
	}
}

// importApp imports a small image under the name app into the node's store.
func (n *node) importApp(t *testing.T) *rootfs.Image {
	t.Helper()
	store, err := rootfs.Open(n.store)
	if err != nil {
		t.Fatal(err)
	}
	image, err := store.Import(t.Context(), harness.ShellImage(t, "sh", "cat"), rootfs.ImportOptions{Name: "app"})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// output runs a shell command in an image, and returns its output.
func (c caller) output(image, command string) string {
	c.t.Helper()
	var result struct{ Stdout string }
	c.want(http.StatusOK, "POST", "/v1/command", object{"image": image, "command": "/bin/sh", "args": []string{"-c", command}}).Into(c.t, &result)
	return result.Stdout
}

// testCopiedImage: images of the server and of tenants are copied to nodes that need them, with the same id.
func testCopiedImage(t *testing.T, c *cluster) {
	app := c.nodes[0].importApp(t)
	for _, n := range c.nodes {
		if got := n.as(t, ada).output("app", "echo $0"); got != "/bin/sh\n" {
			t.Errorf("node %s: %q", n.name, got)
		}
		if copied := n.stored(t, rootfs.Open, "app"); copied == nil || copied.ID != app.ID {
			t.Errorf("node %s has %+v", n.name, copied)
		}
	}
	c.nodes[1].as(t, ada).want(http.StatusOK, "POST", "/v1/images", object{
		"name": "mine", "from": "app", "steps": []object{{"run": "echo made >/made"}}, "limits": object{"diskBytes": 8 << 20, "memoryBytes": 64 << 20},
	})
	made := c.nodes[1].stored(t, rootfs.Open, ".mine")
	for _, n := range c.nodes {
		if got := n.as(t, ada).output("mine", "cat /made"); got != "made\n" {
			t.Errorf("node %s: %q", n.name, got)
		}
		if copied := n.stored(t, rootfs.Open, ".mine"); copied == nil || copied.ID != made.ID {
			t.Errorf("node %s has %+v, want %+v", n.name, copied, made)
		}
		n.as(t, bob).refused(http.StatusUnprocessableEntity, "invalid", "POST", "/v1/command", object{"image": "mine", "command": "/bin/sh"})
		n.as(t, ada).refused(http.StatusUnprocessableEntity, "invalid", "POST", "/v1/command", object{"image": "none", "command": "/bin/sh"})
		var list struct{ Images []struct{ Name string } }
		n.as(t, ada).want(http.StatusOK, "GET", "/v1/images", nil).Into(t, &list)
		if len(list.Images) != 1 || list.Images[0].Name != "mine" {
			t.Errorf("node %s lists %+v", n.name, list)
		}
	}
	harness.WaitFor(t, "no zygote uses the image", func() bool {
		return c.nodes[2].as(t, ada).send("DELETE", "/v1/images/mine", nil).Status == http.StatusNoContent
	})
	if with, _ := c.keepers(t, rootfs.Open, "mine"); len(with) != 0 {
		t.Errorf("%d copies are left", len(with))
	}
}

// testLargeImage: the first use of an image that another node has takes not much longer than to copy its files.
func testLargeImage(t *testing.T, c *cluster) {
	if testing.Short() {
		t.Skip("it copies an image of 200 MB")
	}
	dir := harness.ShellImage(t, "sh")
	content := make([]byte, 200<<20)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(content) // which never fails
	store, err := rootfs.Open(c.nodes[0].store)
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "large"), content, 0o644)); err != nil {
		t.Fatal(err)
	}
	image, err := store.Import(t.Context(), dir, rootfs.ImportOptions{Name: "large"})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if out, err := exec.Command("cp", "-a", image.Root(), filepath.Join(c.dir, "copy")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	copied := time.Since(begin)
	begin = time.Now()
	c.nodes[1].as(t, ada).output("large", "true")
	used := time.Since(begin)
	t.Logf("the first use took %v, and cp %v", used, copied)
	if got := c.nodes[1].stored(t, rootfs.Open, "large"); got == nil || got.ID != image.ID {
		t.Errorf("%+v, want %+v", got, image)
	}
	if most := copied*3/2 + 3*time.Second; used > most {
		t.Errorf("the first use took %v, want at most %v", used, most)
	}
}

// testCopyToHangingNode: a snapshot is taken although a node does not answer, which might be asked to get the copy first.
func testCopyToHangingNode(t *testing.T, c *cluster) {
	if testing.Short() {
		t.Skip("it waits until a node is dead")
	}
	n, hanging := c.nodes[0], c.nodes[2]
	path := n.as(t, ada).create(nil)
	n.as(t, ada).snapshots() // by a connection that is kept
	hanging.signal(t, unix.SIGSTOP)
	defer hanging.signal(t, unix.SIGCONT) // also when the test fails
	begin := time.Now()
	for i := 0; n.states(t)[hanging.id] != "dead"; i++ {
		name := fmt.Sprintf("hang%d", i)
		n.as(t, ada).want(http.StatusCreated, "POST", path+"/snapshots", object{"name": name})
		n.as(t, ada).want(http.StatusNoContent, "DELETE", "/v1/snapshots/"+name, nil)
	}
	if took := time.Since(begin); took > 2*lostAfter {
		t.Errorf("the last snapshot was taken after %v", took)
	}
	hanging.signal(t, unix.SIGCONT)
	hanging.waitNew(t)
	n.waitState(t, hanging.id, "live")
	n.as(t, ada).want(http.StatusNoContent, "DELETE", path, nil)
}

// testNameTakenTwice: of several nodes that take a snapshot of a name at the same time, one succeeds.
func testNameTakenTwice(t *testing.T, c *cluster) {
	var paths []string
	for _, n := range c.nodes {
		paths = append(paths, n.as(t, ada).create(nil))
	}
	for round := range 3 {
		name := fmt.Sprintf("twice%d", round)
		statuses := make(chan int, len(c.nodes))
		for i, n := range c.nodes {
			go func() { statuses <- n.as(t, ada).send("POST", paths[i]+"/snapshots", object{"name": name}).Status }()
		}
		got := map[int]int{}
		for range c.nodes {
			got[<-statuses]++
		}
		if got[http.StatusCreated] != 1 || got[http.StatusConflict] != len(c.nodes)-1 {
			t.Errorf("statuses %v", got)
		}
		for i, n := range c.nodes { // also a loser gets no copy by that
			n.as(t, ada).refused(http.StatusConflict, "conflict", "POST", paths[i]+"/snapshots", object{"name": name})
		}
		c.nodes[2].as(t, ada).want(http.StatusNoContent, "DELETE", "/v1/snapshots/"+name, nil)
		c.nodes[1].as(t, ada).refused(http.StatusNotFound, "not_found", "DELETE", "/v1/snapshots/"+name, nil)
	}
	c.nodes[0].as(t, ada).refused(http.StatusUnprocessableEntity, "invalid", "POST", paths[0]+"/snapshots", object{"name": "../x"})
	for i, n := range c.nodes {
		n.as(t, ada).want(http.StatusNoContent, "DELETE", paths[i], nil)
	}
}

// testDeletedWhileAway: the copies of a node that was away are deleted when it comes back, if the snapshot was deleted or its name is
// used for another one. Others stay.
func testDeletedWhileAway(t *testing.T, c *cluster) {
	first, away := c.nodes[0], c.nodes[2]
	for _, name := range []string{"deleted", "replaced", "kept"} {
		away.takeSnapshot(t, name)
	}
	replaced := away.stored(t, rootfs.OpenSnapshots, ".replaced")
	away.stop(t)
	for _, name := range []string{"deleted", "replaced"} {
		first.as(t, ada).want(http.StatusNoContent, "DELETE", "/v1/snapshots/"+name, nil)
	}
	path := first.as(t, ada).create(object{"files": object{"/workspace/replaced": "anew"}})
	first.as(t, ada).want(http.StatusCreated, "POST", path+"/snapshots", object{"name": "replaced"})
	first.as(t, ada).want(http.StatusNoContent, "DELETE", path, nil)
	away.restart(t, "--join", first.peers)
	harness.WaitFor(t, "the former copies are deleted", func() bool {
		other := away.stored(t, rootfs.OpenSnapshots, ".replaced")
		return away.stored(t, rootfs.OpenSnapshots, ".deleted") == nil && (other == nil || other.ID != replaced.ID)
	})
	if got := away.as(t, ada).snapshots(); !slices.Equal(got, []string{"kept", "replaced"}) {
		t.Errorf("the node that was away lists %q", got)
	}
	for _, name := range []string{"replaced", "kept"} {
		first.as(t, ada).want(http.StatusNoContent, "DELETE", "/v1/snapshots/"+name, nil)
	}
	first.waitState(t, away.id, "live")
}

// testCopyOfLostNode: a snapshot survives the node that has taken it.
func testCopyOfLostNode(t *testing.T, c *cluster) {
	lost := c.nodes[2]
	lost.takeSnapshot(t, "survivor")
	lost.kill(t)
	for _, n := range c.nodes[:2] {
		if owner := n.wantSnapshot(t, "survivor"); owner != n.id {
			t.Errorf("the sandbox is on %s, not on %s", owner, n.id)
		}
	}
	if with, _ := c.keepers(t, rootfs.OpenSnapshots, "survivor"); len(with) != 3 {
		t.Errorf("%d copies", len(with))
	}
	c.nodes[0].as(t, ada).want(http.StatusNoContent, "DELETE", "/v1/snapshots/survivor", nil)
}

// testNoCopy: without other nodes a snapshot is taken without a copy.
func testNoCopy(t *testing.T, _ *cluster) {
	if testing.Short() {
		t.Skip("it starts another fleet")
	}
	c := startCluster(t, 1)
	c.nodes[0].takeSnapshot(t, "alone")
	c.nodes[0].wantSnapshot(t, "alone")
	c.nodes[0].as(t, ada).want(http.StatusNoContent, "DELETE", "/v1/snapshots/alone", nil)
}
