package fleet

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// TestLog checks that each line of the log names the node, and that both nodes of a forwarded request log the same id.
func TestLog(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	debug := []string{"--log-level", "debug"}
	gateway := c.start(t, "a", append(debug, "--fleet")...)
	owner := c.start(t, "b", append(debug, gateway.join(gateway.token(t))...)...)
	gateway.waitState(t, owner.id, "live")
	path := owner.as(t, ada).create(nil)

	const forged = "forged"
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://gaol"+path+"/run", strings.NewReader(`{"code": "__return(1)"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Gaol-Fleet-Request": {forged}}
	servertest.Do(t, gateway.as(t, ada).Client, r).Want(t, http.StatusOK)
	session := gateway.dial(t, ada)
	if _, err := session.Sandbox(idOf(path)).Info(soon(t)); err != nil {
		t.Fatal(err)
	}
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}

	var ids []string
	for _, path := range []string{path + "/run", "/v1/session"} {
		at, by := gateway.waitRequest(t, path), owner.waitRequest(t, path)
		if at["node"] != gateway.id || by["node"] != owner.id || at["request"] != by["request"] {
			t.Errorf("%s: %v, %v", path, at, by)
		}
		ids = append(ids, at["request"])
	}
	if slices.Contains(ids, "") || slices.Contains(ids, forged) || ids[0] == ids[1] {
		t.Errorf("the ids of the requests: %q", ids)
	}
	for _, n := range c.nodes {
		_, joined, _ := strings.Cut(n.log.String(), `"node of a fleet"`)
		for line := range strings.Lines(joined[strings.Index(joined, "\n")+1:]) {
			if strings.Count(line, `"node":`) != 1 || strings.Count(line, `"request":`) > 1 {
				t.Errorf("node %s: %s", n.name, line)
			}
		}
	}
}

// waitRequest waits for the line of the log about the only request of a path.
func (n *node) waitRequest(t *testing.T, path string) (line map[string]string) {
	t.Helper()
	harness.WaitFor(t, "node "+n.name+" logs a request of "+path, func() bool {
		all := slices.DeleteFunc(n.log.with("request"), func(l map[string]string) bool { return l["path"] != path })
		if len(all) == 1 {
			line = all[0]
		}
		return len(all) == 1
	})
	return line
}
