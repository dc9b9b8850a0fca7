package fleet

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/coder/websocket"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
	protocol "gaol/internal/session"
)

// named contains the fields of an input of an operation that decide where it is performed.
type named struct {
	Sandbox string `json:"sandbox"`
	placed
}

// Target returns the node that performs a request of a session; empty: this one, which keeps the sandbox until leave is called. What
// another node has relayed is for this one, unless its sandbox has moved.
func (f *Fleet) Target(ctx context.Context, t *tenant.Tenant, o *operation.Operation, params json.RawMessage) (node string, leave func(), err error) {
	var in named
	_ = json.Unmarshal(params, &in) // the operation refuses other texts
	leave = func() {}
	switch {
	case in.Sandbox != "":
		node, leave, err = f.enter(ctx, t, in.Sandbox)
	case !t.Forwarded && o.Method == http.MethodPost && slices.Contains(placedPaths, o.Path):
		node, leave, err = f.choose(ctx, t, in.placed)
	}
	if node == f.ID() {
		node = ""
	}
	if t.Forwarded && node != "" {
		stay := leave
		f.again.Add(1)
		leave = func() { f.again.Add(-1); stay() }
	}
	return node, leave, err
}

// IsMerged reports whether all nodes have a part of the result of an operation: see [Fleet.Merge].
func (f *Fleet) IsMerged(o *operation.Operation) bool {
	return o.Method == http.MethodGet && lists[o.Path] != ""
}

// Dial opens a session of a tenant on another node. The socket fails when the node is lost.
func (f *Fleet) Dial(ctx context.Context, node string, t *tenant.Tenant) (*websocket.Conn, error) {
	if t.Hops >= maxHops {
		return nil, errNoNode
	}
	conn, _, err := websocket.Dial(ctx, "https://"+node+"/v1/session", &websocket.DialOptions{
		HTTPClient: f.http, HTTPHeader: http.Header{tenantHeader: f.header(t), requestHeader: {service.RequestOf(ctx)}}, Subprotocols: []string{protocol.Protocol},
	})
	if err != nil {
		return nil, forwardError(ctx, err)
	}
	return conn, nil
}

// While returns a context that also ends when a node is lost.
func (f *Fleet) While(ctx context.Context, node string) (context.Context, context.CancelFunc) {
	return f.Member().While(ctx, node)
}

// LostError is the error of requests to a node that was lost.
func (f *Fleet) LostError() error { return errNodeLost }
