package fleet

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/test/harness"
)

// testPush: all nodes use the files that were pushed, also after a restart of one, and their own again without them.
func testPush(t *testing.T, c *cluster) {
	text, err := os.ReadFile(c.tokens)
	if err != nil {
		t.Fatal(err)
	}
	var one []string
	for _, line := range strings.Split(string(text), "\n") {
		if strings.Contains(line, c.names[ada]) {
			one = append(one, line)
		}
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	onlyAda := write("tokens", strings.Join(one, "\n")+"\n")
	wantAll := func(tenant string, status int) {
		t.Helper()
		for _, n := range c.nodes {
			harness.WaitFor(t, "the tokens of node "+n.name, func() bool { return n.as(t, tenant).send("GET", "/v1/sandboxes", nil).Status == status })
		}
	}
	push := func(n *node, args ...string) {
		t.Helper()
		if out, err := n.gaolFleet(append([]string{"push"}, args...)...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	wantAll(bob, http.StatusOK)
	for what, bad := range map[string][]string{
		"an unknown setting": {write("bad.json", `{"nope": 1}`), onlyAda}, "no tokens": {"-", write("none", "what?\n")}, "a missing file": {"-", filepath.Join(dir, "missing")}, "one file": {onlyAda},
	} {
		if out, err := c.nodes[1].gaolFleet(append([]string{"push"}, bad...)...); err == nil {
			t.Errorf("%s was pushed: %s", what, out)
		}
	}
	wantAll(bob, http.StatusOK)
	settings := write("settings.json", `{"drainMs": 500, "previewHost": "`+previewHost+`", "runTimeoutMs": 4321, "server": {"requestsPerSec": 100000}, "tenant": {"requestsPerSec": 100000}}`)
	redeliveries := func() (sum int) {
		for _, n := range c.nodes {
			sum += n.metric(t, "gaol_fleet_redeliveries_total")
		}
		return sum
	}
	for _, n := range c.nodes {
		c.drain(t, n, true)
	}
	before := redeliveries()
	c.nodes[0].as(t, bob).want(http.StatusAccepted, "POST", "/v1/runs", object{"idempotencyKey": "removed", "code": "1"})
	push(c.nodes[2], settings, onlyAda)
	wantAll(bob, http.StatusUnauthorized)
	wantAll(ada, http.StatusOK)
	for _, n := range c.nodes {
		c.drain(t, n, false)
	}
	harness.WaitFor(t, "the last attempt of the run of a tenant without a token", func() bool { return redeliveries() >= before+5 })
	for _, n := range c.nodes {
		harness.WaitFor(t, "the settings of node "+n.name, func() bool {
			return n.as(t, ada).send("POST", "/v1/run", object{"code": "1", "timeoutMs": 5000}).Status == http.StatusUnprocessableEntity
		})
	}
	push(c.nodes[0])
	wantAll(bob, http.StatusOK)
	if res := c.nodes[1].as(t, bob).want(http.StatusOK, "GET", "/v1/runs/removed/wait", nil); !strings.Contains(string(res.Body), "the tenant does not exist any more") {
		t.Errorf("the run of a tenant whose token was removed: %s", res.Body)
	}
	for _, n := range c.nodes {
		if left := harness.Glob(filepath.Join(n.store, "fleet/pushed*")); len(left) > 0 {
			t.Errorf("files are left: %q", left)
		}
	}
}

// testMetrics: nodes count forwarded requests, and list each other for Prometheus.
func testMetrics(t *testing.T, c *cluster) {
	there := c.nodes[1].as(t, ada)
	id := there.create(nil)
	gateway := c.nodes[2]
	gateway.as(t, ada).wantValue(id+"/run", "__return(1)", "1")
	text := string(gateway.local(t).want(http.StatusOK, "GET", "/metrics", nil).Body)
	for _, want := range []string{
		`gaol_fleet_nodes{state="live"} 3`, `gaol_fleet_engine_up 1`, `gaol_fleet_forwards_total{status="200",to="` + c.nodes[1].id + `"}`,
		"gaol_fleet_forward_seconds_count", "gaol_fleet_queue_pending 0", "gaol_fleet_moves_total", // testPush drains nodes, whose sandboxes may move meanwhile
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics of a gateway lack %s:\n%s", want, text)
		}
	}
	targets := string(gateway.local(t).want(http.StatusOK, "GET", "/fleet/v1/targets", nil).Body)
	for _, n := range c.nodes {
		if !strings.Contains(targets, `"targets":["`+n.address+`"]`) || !strings.Contains(targets, `"node":"`+n.id+`"`) {
			t.Errorf("node %s is missing: %s", n.name, targets)
		}
	}
	gateway.as(t, ada).want(http.StatusForbidden, "GET", "/fleet/v1/targets", nil)
}
