package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/cmd/gaol/server/fleet/member"
	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
)

const (
	own   = "aaaaaaaa"
	other = "bbbbbbbb"
)

// newNode returns the node own, which knows another one, and has neither listeners nor an engine.
func newNode(t *testing.T) *Fleet {
	t.Helper()
	f := &Fleet{start: "start"[:startLength]}
	f.node.Store(&identity.Node{ID: own})
	m := member.New(member.Options{Record: member.Record{ID: own}, Fenced: func(string) {}})
	text, err := json.Marshal(member.Record{ID: other, Address: "127.0.0.1:1", MinProtocol: member.Protocol, MaxProtocol: member.Protocol})
	if err != nil {
		t.Fatal(err)
	}
	m.Apply("node."+other, text)
	f.member.Store(m)
	set, err := settings.Read("", settings.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	f.service.Store(service.New(service.Options{Settings: set, Store: t.TempDir(), Peers: f, Create: func(context.Context, runtime.Options) (*runtime.NodeRuntime, error) {
		return nil, errors.ErrUnsupported
	}}))
	t.Cleanup(func() {
		if err := f.service.Load().Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return f
}

// TestTargetOfMoved: a request is performed on the node that its sandbox has moved to.
func TestTargetOfMoved(t *testing.T) {
	f := newNode(t)
	stays, left, back, theirs, mine := f.NewID("sb-"), f.NewID("sb-"), f.NewID("sb-"), "sb-"+other+"-startrandom", "sb-"+other+"-startother"
	earlier := "sb-" + own + "-0123456789abcdef"
	for id, node := range map[string]string{left: other, back: own, mine: own, earlier: other} {
		f.moved.Store(id, node)
	}
	run := operation.ByName("runIn")
	for _, test := range []struct {
		what, id  string
		forwarded bool
		node      string
	}{
		{"an own sandbox", stays, false, ""}, {"an own sandbox for another node", stays, true, ""},
		{"a sandbox that has left", left, false, other}, {"a sandbox that has left, for another node", left, true, other},
		{"a sandbox that has come back", back, false, ""}, {"a sandbox that has come back, for another node", back, true, ""},
		{"a sandbox of another node", theirs, false, other}, {"a sandbox of another node, which forwards the request", theirs, true, ""},
		{"a sandbox that has come from another node", mine, false, ""}, {"a sandbox that has come from another node, for that", mine, true, ""},
		{"a sandbox that has left before the node was started again", earlier, false, other},
	} {
		node, leave, err := f.Target(t.Context(), &tenant.Tenant{Name: "a", Forwarded: test.forwarded}, run, json.RawMessage(`{"sandbox":"`+test.id+`"}`))
		if leave(); err != nil || node != test.node {
			t.Errorf("%s: %q %v, want %q", test.what, node, err, test.node)
		}
	}
}

// TestLostMoved: a sandbox is lost if it has moved to a dead node, or to this node before its restart.
func TestLostMoved(t *testing.T) {
	f := newNode(t)
	deleted, lost, dead := "sb-"+other+"-startdeleted", "sb-"+other+"-startlost", f.NewID("sb-")
	f.moved.Store(deleted, own)
	f.adopted.Store(deleted, true)
	f.moved.Store(lost, own)
	f.moved.Store(dead, other)
	f.Member().Apply("dead."+other, []byte(`{"why": "the test"}`))
	for id, want := range map[string]error{deleted: nil, lost: errLost, dead: errLost} {
		if err := f.Lost(id); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}
}

// roundTrip is an [http.RoundTripper].
type roundTrip func(*http.Request) (*http.Response, error)

func (do roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return do(r) }

// TestHops: nodes that take each other for the node of a sandbox do not send a request to each other for ever, and clients cannot set
// the headers between nodes. A dead node forwards nothing.
func TestHops(t *testing.T) {
	f := newNode(t)
	f.metrics = newMetrics()
	var sent http.Header
	f.http = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		sent = r.Header
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
	})}
	forward := func(who *tenant.Tenant, hops int) {
		t.Helper()
		r := httptest.NewRequestWithContext(tenant.NewContext(t.Context(), who), http.MethodGet, "/v1/sandboxes/x", nil)
		r.Header = http.Header{tenantHeader: {"token:bob", "token:bob"}, callHeader: {"1"}, "Connection": {"keep-alive, " + tenantHeader}}
		sent = nil
		w := httptest.NewRecorder()
		f.Forward(w, r, other)
		if got := sent.Values(tenantHeader); len(got) != hops || hops > 0 && got[0] != "token:ada" || sent.Get(callHeader) != "" {
			t.Errorf("the headers of the next node: %v, want %d hops", sent, hops)
		}
		if want := map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[hops > 0]; w.Code != want {
			t.Errorf("status %d, want %d: %s", w.Code, want, w.Body)
		}
	}
	who := &tenant.Tenant{Name: "token:ada"}
	for hop := 1; hop <= maxHops; hop++ {
		forward(who, hop)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header = sent
		var err error
		if who, err = f.TenantOf(r); err != nil || who.Name != "token:ada" || !who.Forwarded || who.Hops != hop || r.Header.Get(tenantHeader) != "" {
			t.Fatalf("%+v %v", who, err)
		}
	}
	forward(who, 0)
	if _, err := f.Dial(t.Context(), other, who); !errors.Is(err, errNoNode) {
		t.Errorf("a session: %v", err)
	}
	f.Member().Apply("dead."+own, []byte("{}"))
	forward(&tenant.Tenant{Name: "token:ada"}, 0)
}

// TestForwardWhileStopping: requests of other nodes for a sandbox that has moved are forwarded while this node is being stopped, which
// waits for them. Others are refused.
func TestForwardWhileStopping(t *testing.T) {
	f := newNode(t)
	f.metrics = newMetrics()
	sent, replied := make(chan struct{}), make(chan struct{})
	f.http = &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		sent <- struct{}{}
		<-replied
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
	})}
	moved := f.NewID("sb-")
	f.moved.Store(moved, other)
	serve := func(forwarded bool) int {
		who := &tenant.Tenant{Name: "token:ada", Forwarded: forwarded}
		w := httptest.NewRecorder()
		f.RouteSandbox(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequestWithContext(tenant.NewContext(t.Context(), who), http.MethodGet, "/v1/sandboxes/"+moved, nil))
		return w.Code
	}
	if err := f.service.Load().Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	status := make(chan int)
	go func() { status <- serve(true) }()
	select {
	case <-sent:
	case code := <-status:
		t.Fatalf("a request of another node: %d", code)
	}
	now, stop := context.WithCancel(t.Context())
	stop()
	f.WaitForwards(now)
	waited := make(chan struct{})
	go func() {
		f.WaitForwards(t.Context())
		close(waited)
	}()
	select {
	case <-waited:
		t.Error("the stop does not wait")
	case replied <- struct{}{}:
	}
	if code := <-status; code != http.StatusOK {
		t.Errorf("a request of another node: %d", code)
	}
	<-waited
	params, run := json.RawMessage(`{"sandbox":"`+moved+`"}`), operation.ByName("runIn")
	node, leave, err := f.Target(t.Context(), &tenant.Tenant{Name: "token:ada", Forwarded: true}, run, params)
	if err != nil || node != other || f.again.Load() != 1 {
		t.Errorf("a request of a session of another node: %q, %v, %d", node, err, f.again.Load())
	}
	leave()
	f.WaitForwards(t.Context())
	if code := serve(false); code != http.StatusServiceUnavailable {
		t.Errorf("a request of a client: %d", code)
	}
}
