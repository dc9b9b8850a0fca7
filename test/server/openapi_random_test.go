package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// longest is the time of a request. By default, waits for ports last 30 seconds, as runs do.
const longest = 90 * time.Second

// Random requests are answered as documented, and none makes the server fail.
func TestRandomRequests(t *testing.T) {
	c, document, log := documentClient(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	g := newGenerator(t, document, seed)
	statuses := map[int]int{}
	for range harness.Fewer(3000, 150) {
		op, path, body, kind := g.request()
		if op.ID == "openSession" {
			continue
		}
		r, err := http.NewRequestWithContext(t.Context(), op.method, "http://gaol"+path, bytes.NewReader(body))
		if err != nil {
			continue // no client can send it
		}
		if kind != "" {
			r.Header.Set("Content-Type", kind)
		}
		start := time.Now()
		res := servertest.Do(t, c, r)
		statuses[res.Status]++
		// No guest listens on a port. The response to a HEAD has no body.
		noServer := res.Status == http.StatusBadGateway && (op.method == http.MethodHead || bytes.Contains(res.Body, []byte(`"code":"not_listening"`)))
		if res.Status >= 500 && !noServer {
			t.Errorf("%v: %d %s\n%s", op, res.Status, res.Body, body)
		}
		if took := time.Since(start); took > longest {
			t.Errorf("%v took %v\n%s", op, took, body)
		}
		g.remember(op, res)
		if op.ID == "takeSnapshot" && res.Status == http.StatusCreated { // it would outlive the server
			var taken struct{ Name string }
			if err := json.Unmarshal(res.Body, &taken); err != nil {
				t.Fatal(err)
			}
			servertest.Send(t, c, http.MethodDelete, "/v1/snapshots/"+url.PathEscape(taken.Name), nil).Want(t, http.StatusNoContent)
		}
	}
	t.Log(statuses)
	if t.Failed() {
		t.Logf("the server's log:\n%s", log)
	}
	if statuses[http.StatusOK] == 0 || statuses[http.StatusUnprocessableEntity] == 0 {
		t.Error("this test proves nothing")
	}
}

// remember keeps the ids of a few sandboxes for later requests.
func (g *generator) remember(op *operation, res *servertest.Response) {
	if op.ID != "createSandbox" || res.Status != http.StatusCreated {
		return
	}
	var created struct{ ID string }
	if json.Unmarshal(res.Body, &created) == nil && strings.HasPrefix(created.ID, "sb-") {
		g.ids = append(g.ids, created.ID)
		g.ids = g.ids[max(0, len(g.ids)-5):]
	}
}
