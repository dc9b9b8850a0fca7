package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/test/harness"
	"gaol/test/tier"
)

// TestRestore follows docs/fleet.md when the machine with the engine is lost with its store: a new machine continues from the backup.
func TestRestore(t *testing.T) {
	tier.Soak(t)
	t.Parallel()
	c := startCluster(t, 3)
	lost, stays, restarted := c.nodes[0], c.nodes[1], c.nodes[2]
	commands := strings.Fields(with(t, documented(t, "What to back up"), "import"))
	if want := strings.Fields("gaol fleet ca import fleet.pem gaol serve … --fleet"); !slices.Equal(commands, want) {
		t.Fatalf("the documented commands are %q, want %q: the test has to follow", commands, want)
	}
	backup, err := lost.gaolCommand([]string{"fleet", "ca", "export", "--store", lost.store}).Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fleet.pem")
	if err := os.WriteFile(file, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	paths := map[*node]string{}
	for _, n := range c.nodes {
		paths[n] = n.as(t, ada).create(nil)
		n.as(t, ada).wantValue(paths[n]+"/run", increment+" __return(next)", "1")
	}
	keys := c.begun(t, "restore", 6, 2*time.Second)

	lost.kill(t)
	if err := os.RemoveAll(lost.store); err != nil {
		t.Fatal(err)
	}
	stays.as(t, ada).wantValue(paths[stays]+"/run", increment+" __return(next)", "2")
	engine := c.prepare(t, "new")
	if out, err := engine.gaolCommand([]string{"fleet", "ca", "import", file, "--store", engine.store}).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	engine.start(t, "--fleet", "--fleet-address", lost.peers)
	restarted.stop(t)
	restarted.restart(t, "--join", engine.peers)
	if slices.Contains([]string{lost.id, stays.id, restarted.id}, engine.id) || restarted.id != restarted.ids[0] {
		t.Errorf("the new node is %s; a node was %s, and is %s", engine.id, restarted.ids[0], restarted.id)
	}
	c.nodes = []*node{engine, stays, restarted}
	for _, viewer := range c.nodes {
		for _, n := range c.nodes {
			viewer.waitState(t, n.id, "live")
		}
	}
	if line := stays.log.with("the fleet has declared this node dead: its sandboxes end"); len(line) > 0 {
		t.Errorf("node %s: %v", stays.name, line)
	}
	for i, n := range c.nodes {
		n.as(t, ada).wantValue(paths[stays]+"/run", increment+" __return(next)", fmt.Sprint(3+i))
		for _, of := range []*node{lost, restarted} {
			harness.WaitFor(t, "the sandbox of node "+of.name+" is lost", func() bool {
				return n.as(t, ada).send("GET", paths[of], nil).Status == http.StatusGone
			})
		}
		n.as(t, ada).create(nil)
	}
	for i, key := range keys {
		c.nodes[i%3].as(t, ada).submit(sleeping(key, 2*time.Second))
	}
	for _, key := range keys {
		first := engine.as(t, ada).result(key)
		if again := stays.as(t, ada).submit(sleeping(key, 2*time.Second)); again.Done == nil || !again.Done.Equal(*first.Done) {
			t.Errorf("%s has two results: %+v, %+v", key, first, again)
		}
	}
	renewBy(t, stays, engine)
}

// renewBy renews the certificate of a node by another one with the authority.
func renewBy(t *testing.T, n, by *node) {
	t.Helper()
	own, err := identity.ReadNode(filepath.Join(n.store, "fleet"))
	if err != nil {
		t.Fatal(err)
	}
	request, err := identity.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(object{"request": request.DER})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+by.peers+"/fleet/v1/renew", strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Gaol-Fleet-Call", "1")
	transport := &http.Transport{TLSClientConfig: own.Client("", "http/1.1")}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var out struct{ Certificate []byte }
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", res.Status, err)
	}
	if renewed, err := identity.NewNode(t.TempDir(), request, out.Certificate, own.CA); err != nil || renewed.ID != n.id {
		t.Errorf("renewed: %+v, %v", renewed, err)
	}
}
