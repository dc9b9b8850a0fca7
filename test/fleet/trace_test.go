package fleet

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"gaol/test/server/servertest"
)

// collector receives traces.
type collector struct {
	mu     sync.Mutex
	traces tracepb.TracesData
	err    error
}

// ServeHTTP implements [http.Handler].
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		err = proto.UnmarshalOptions{Merge: true}.Unmarshal(text, &c.traces)
	}
	if err != nil {
		c.err = err
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// span is a span of a node.
type span struct {
	node string
	*tracepb.Span
}

// named returns the spans with a name.
func (c *collector) named(t *testing.T, name string) (list []span) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		t.Error(c.err)
	}
	for _, rs := range c.traces.ResourceSpans {
		var service string
		for _, a := range rs.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				if s.Name == name {
					list = append(list, span{service, s})
				}
			}
		}
	}
	return list
}

// links returns the traces that a span is linked to.
func (s span) links() (traces string) {
	for _, l := range s.Links {
		traces += hex.EncodeToString(l.TraceId)
	}
	return traces
}

// A forwarded request is one trace with spans of both nodes, which link to the client's. The node that performs it writes the line of
// the audit log, with the node that has forwarded it. A batch run has a trace of its own.
func TestTraces(t *testing.T) {
	t.Parallel()
	received := &collector{}
	server := httptest.NewServer(received)
	defer server.Close()
	c := newCluster(t)
	c.traces = server.URL
	log := filepath.Join(c.dir, "audit")
	if err := os.WriteFile(c.config(), []byte(fmt.Sprintf(`{"drainMs": 500, "auditLog": %q}`, log)), 0o600); err != nil {
		t.Fatal(err)
	}
	gateway := c.start(t, "a", "--fleet")
	owner := c.start(t, "b", gateway.join(gateway.token(t))...)
	gateway.waitState(t, owner.id, "live")
	path := owner.as(t, ada).create(nil)
	const clients = "11111111111111111111111111111111"
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://gaol"+path+"/run", strings.NewReader(`{"code": "__return(1)"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Traceparent": {"00-" + clients + "-2222222222222222-01"}, "Gaol-Fleet-Trace": {"00-33333333333333333333333333333333-2222222222222222-01"}}
	servertest.Do(t, gateway.as(t, ada).Client, r).Want(t, http.StatusOK)
	if _, err := gateway.dial(t, ada).Sandbox(idOf(path)).Info(soon(t)); err != nil {
		t.Fatal(err)
	}
	gateway.as(t, ada).submit(sleeping("key", time.Millisecond))
	gateway.as(t, ada).result("key")
	owner.stop(t)
	gateway.stop(t)
	served, forwarded := received.named(t, "POST /v1/sandboxes/{id}/run"), received.named(t, "forward")
	if len(served) != 1 || served[0].node != "b" || served[0].links() != clients {
		t.Fatalf("%+v", served)
	}
	if len(forwarded) != 1 || forwarded[0].node != "a" || forwarded[0].links() != clients || len(forwarded[0].ParentSpanId) > 0 ||
		!bytes.Equal(forwarded[0].SpanId, served[0].ParentSpanId) || !bytes.Equal(forwarded[0].TraceId, served[0].TraceId) {
		t.Errorf("%+v, want the parent of %+v", forwarded, served)
	}
	if batch := received.named(t, "POST /v1/run"); len(batch) != 1 || len(batch[0].ParentSpanId)+len(batch[0].Links) > 0 {
		t.Errorf("%+v", batch)
	}
	wantGateways(t, log, map[string]string{
		"POST /v1/sandboxes": "", "POST /v1/sandboxes/{id}/run": gateway.id, "session getSandbox": gateway.id, "POST /v1/runs": "", "POST /v1/run": "",
	})
}

// wantGateways fails the test unless an audit log has one line for each action, with a gateway.
func wantGateways(t *testing.T, log string, want map[string]string) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var e struct{ Action, Gateway string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		gateway, ok := want[e.Action]
		if seen[e.Action]++; ok && (e.Gateway != gateway || seen[e.Action] > 1) {
			t.Errorf("%s, want the gateway %q, once", line, gateway)
		}
	}
	for action := range want {
		if seen[action] == 0 {
			t.Errorf("no line for %s:\n%s", action, text)
		}
	}
}
