package fleet

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gaol/runtime/client"
	"gaol/test/harness"
)

// testPrograms: sandboxes are used through any node, and keep their files between requests to different ones.
func testPrograms(t *testing.T, c *cluster) {
	for _, owner := range c.nodes {
		path := owner.as(t, ada).create(nil)
		for i, n := range c.nodes {
			caller := n.as(t, ada)
			caller.wantValue(path+"/run", `const fs = require('fs'), n = fs.existsSync('n') ? +fs.readFileSync('n') : 0; fs.writeFileSync('n', n + 1 + ''); __return(n)`, fmt.Sprint(i))
			var run struct {
				Stdout, Stderr string
				ExitCode       int
			}
			caller.want(http.StatusOK, "POST", path+"/exec", object{"code": "console.log('out'); console.error('err'); process.exit(3)"}).Into(t, &run)
			if run.Stdout != "out\n" || run.Stderr != "err\n" || run.ExitCode != 3 {
				t.Errorf("exec through node %s: %+v", n.name, run)
			}
			caller.want(http.StatusOK, "POST", path+"/command", object{"command": "cat", "args": []string{"n"}}).Into(t, &run)
			if run.Stdout != fmt.Sprint(i+1) {
				t.Errorf("command through node %s: %+v", n.name, run)
			}
			var info client.Info
			caller.want(http.StatusOK, "GET", path, nil).Into(t, &info)
			if ownerOf(info.ID) != owner.id {
				t.Errorf("%+v", info)
			}
			caller.want(http.StatusUnprocessableEntity, "POST", path+"/run", object{"code": 1})
		}
	}
}

// testEvents: events of a run arrive as they happen, in order, and the run ends when its client goes.
func testEvents(t *testing.T, c *cluster) {
	path := c.nodes[0].as(t, ada).create(nil)
	for _, n := range c.nodes[1:] {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://gaol"+path+"/run", strings.NewReader(
			`{"code": "const fs = require('fs'); try { fs.unlinkSync('go') } catch {} console.log('first'); const i = setInterval(() => { if (fs.existsSync('go')) { clearInterval(i); console.log('second'); __return(2) } }, 5)"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "text/event-stream")
		res, err := n.as(t, ada).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || kind != "text/event-stream" {
			t.Fatalf("%s %s", res.Status, kind)
		}
		events := bufio.NewReader(res.Body)
		harness.Expect(t, events, `first`)
		if res := c.nodes[0].as(t, ada).upload(path+"/files?path=/workspace/go", nil); res.Status >= 300 { // the program waits for it
			t.Fatalf("%d %s", res.Status, res.Body)
		}
		if rest := harness.Expect(t, events, `"value":2`); !strings.Contains(rest, "second") || !strings.Contains(rest, "event: result") {
			t.Errorf("%q", rest)
		}
	}
}

// testFiles: files of a megabyte arrive unchanged in both directions.
func testFiles(t *testing.T, c *cluster) {
	path := c.nodes[1].as(t, ada).create(nil)
	content := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{1})
	for _, n := range c.nodes {
		_, _ = random.Read(content) // which never fails
		file := path + "/files?path=" + url.QueryEscape("/workspace/a b")
		if res := n.as(t, ada).upload(file, content); res.Status >= 300 {
			t.Errorf("%d %s", res.Status, res.Body)
		}
		for _, reader := range c.nodes {
			if res := reader.as(t, ada).want(http.StatusOK, "GET", file, nil); !bytes.Equal(res.Body, content) {
				t.Errorf("written through %s, and read through %s: %d other bytes", n.name, reader.name, len(res.Body))
			}
		}
		n.as(t, ada).refused(http.StatusNotFound, "not_found", "GET", path+"/files?path=/workspace/missing", nil)
	}
}

// testProcesses: a process that was started through one node is fed and awaited through another one.
func testProcesses(t *testing.T, c *cluster) {
	path := c.nodes[2].as(t, ada).create(nil)
	var process struct {
		ID, State string
		Result    struct{ ExitCode int }
	}
	starter, other := c.nodes[0].as(t, ada), c.nodes[1].as(t, ada)
	starter.want(http.StatusCreated, "POST", path+"/processes", object{"command": "sh", "args": []string{"-c", "cat >copy; exit 4"}}).Into(t, &process)
	one := path + "/processes/" + process.ID
	other.send("POST", one+"/stdin", object{"text": "to a "})
	starter.send("POST", one+"/stdin", object{"text": "process", "close": true})
	other.want(http.StatusOK, "GET", one+"/wait", nil).Into(t, &process)
	if process.Result.ExitCode != 4 {
		t.Errorf("%+v", process)
	}
	if got := starter.want(http.StatusOK, "GET", path+"/files?path=/workspace/copy", nil); string(got.Body) != "to a process" {
		t.Errorf("%q", got.Body)
	}
}

// testGuestServer: a server of a guest is reached through any node.
func testGuestServer(t *testing.T, c *cluster) {
	path := c.nodes[0].as(t, ada).create(nil)
	c.nodes[0].as(t, ada).want(http.StatusCreated, "POST", path+"/processes", object{
		"code": `require('http').createServer((q, s) => s.writeHead(418, { 'x-guest': 'yes' }).end(q.method + ' ' + q.url)).listen(3000, '127.0.0.1')`,
	})
	for _, n := range c.nodes {
		n.as(t, ada).want(http.StatusOK, "POST", path+"/listeners/3000/wait", nil)
		res := n.as(t, ada).send("PUT", path+"/ports/3000/a%2Fb?c=1", nil)
		if res.Status != http.StatusTeapot || string(res.Body) != "PUT /a%2Fb?c=1" || res.Header.Get("X-Guest") != "yes" {
			t.Errorf("through node %s: %d %q %q", n.name, res.Status, res.Body, res.Header)
		}
		n.as(t, ada).refused(http.StatusBadGateway, "not_listening", "GET", path+"/ports/3001/", nil)
	}
}

// testLists: each node lists the sandboxes of all nodes, the oldest first.
func testLists(t *testing.T, c *cluster) {
	var created []string
	for range 2 {
		for _, n := range c.nodes {
			created = append(created, n.as(t, bob).createAnywhere(nil))
		}
	}
	for _, n := range c.nodes {
		if got, missing := n.as(t, bob).sandboxes(); !slices.Equal(got, created) || len(missing) > 0 {
			t.Errorf("node %s lists %q without %q, want %q", n.name, got, missing, created)
		}
		infos, err := n.dial(t, bob).Sandboxes(soon(t))
		var ids []string
		for _, info := range infos {
			ids = append(ids, info.ID)
		}
		if err != nil || !slices.Equal(ids, created) {
			t.Errorf("a session with node %s lists %q %v, want %q", n.name, ids, err, created)
		}
	}
	for i, id := range created {
		c.nodes[i%2].as(t, bob).want(http.StatusNoContent, "DELETE", "/v1/sandboxes/"+id, nil)
	}
	if got, _ := c.nodes[2].as(t, bob).sandboxes(); len(got) > 0 {
		t.Errorf("%q are left", got)
	}
}

// sandboxes lists the ids of the tenant's sandboxes, and the nodes that did not answer.
func (c caller) sandboxes() (ids, missing []string) {
	c.t.Helper()
	var list struct {
		Sandboxes []client.Info
		Missing   []string
	}
	c.want(http.StatusOK, "GET", "/v1/sandboxes", nil).Into(c.t, &list)
	for _, info := range list.Sandboxes {
		ids = append(ids, info.ID)
	}
	return ids, list.Missing
}

// testSnapshots: sandboxes from a snapshot are created through any node, on that node, which gets a copy first.
func testSnapshots(t *testing.T, c *cluster) {
	other, third := c.nodes[1].as(t, ada), c.nodes[2].as(t, ada)
	path := c.nodes[0].as(t, ada).create(nil)
	other.wantValue(path+"/run", `require('fs').writeFileSync('kept', 'yes'); __return(0)`, "0")
	other.want(http.StatusCreated, "POST", path+"/snapshots", object{"name": "shot"})
	paths := []string{path}
	for i, n := range c.nodes {
		if got := n.as(t, ada).snapshots(); !slices.Equal(got, []string{"shot"}) {
			t.Errorf("node %s lists the snapshots %q", n.name, got)
		}
		path := n.as(t, ada).create(object{"snapshot": "shot"})
		c.nodes[(i+1)%3].as(t, ada).wantValue(path+"/run", `__return(require('fs').readFileSync('kept', 'utf8'))`, `"yes"`)
		paths = append(paths, path)
	}
	c.nodes[1].as(t, bob).refused(http.StatusUnprocessableEntity, "invalid", "POST", "/v1/sandboxes", object{"snapshot": "shot"})
	for _, path := range paths {
		other.want(http.StatusNoContent, "DELETE", path, nil)
	}
	third.want(http.StatusNoContent, "DELETE", "/v1/snapshots/shot", nil)
	for _, n := range c.nodes {
		if got := n.as(t, ada).snapshots(); len(got) > 0 {
			t.Errorf("node %s still lists %q", n.name, got)
		}
	}
}

// testTenants: the sandboxes of a tenant do not exist for another one, through any node.
func testTenants(t *testing.T, c *cluster) {
	for _, owner := range c.nodes {
		path := owner.as(t, ada).create(nil)
		for _, n := range c.nodes {
			stranger := n.as(t, bob)
			stranger.refused(http.StatusNotFound, "not_found", "GET", path, nil)
			stranger.refused(http.StatusNotFound, "not_found", "POST", path+"/run", object{"code": "1"})
			stranger.refused(http.StatusNotFound, "not_found", "DELETE", path, nil)
			if ids, _ := stranger.sandboxes(); len(ids) > 0 {
				t.Errorf("node %s lists %q for another tenant", n.name, ids)
			}
			if _, err := n.dial(t, bob).Sandbox(strings.TrimPrefix(path, "/v1/sandboxes/")).Info(soon(t)); !isCode(err, "not_found") {
				t.Errorf("a session with node %s: %v", n.name, err)
			}
		}
		owner.as(t, ada).want(http.StatusOK, "GET", path, nil)
	}
}

// testDelete: a sandbox is deleted through another node. Ids of nodes that never were are lost, and other ids unknown.
func testDelete(t *testing.T, c *cluster) {
	path := c.nodes[0].as(t, ada).create(nil)
	c.nodes[1].as(t, ada).want(http.StatusNoContent, "DELETE", path, nil)
	for _, n := range c.nodes {
		n.as(t, ada).refused(http.StatusNotFound, "not_found", "GET", path, nil)
		n.as(t, ada).refused(http.StatusNotFound, "not_found", "GET", "/v1/sandboxes/sb-0123", nil)
		n.as(t, ada).refused(http.StatusGone, "sandbox_lost", "GET", "/v1/sandboxes/sb-aaaaaaaa-aaaabbbbccccdddd", nil)
	}
}
