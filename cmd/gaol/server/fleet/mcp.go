package fleet

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"gaol/cmd/gaol/server/tenant"
)

// message contains the fields of a JSON-RPC request of MCP that decide where it is served.
type message struct {
	Method string `json:"method"`
	Params struct {
		Name      string `json:"name"` // of a tool
		URI       string `json:"uri"`
		Arguments struct {
			SandboxID string `json:"sandboxId"`
			ContextID string `json:"contextId"`
			placed
		} `json:"arguments"`
	} `json:"params"`
}

// placedTools are the tools that any node can serve if they name no sandbox.
var placedTools = []string{"create_sandbox", "run_code", "run_command", "run_in_sandbox"}

// MCPTarget returns the node that serves a request of MCP; empty: this one, which keeps the sandbox until leave is called. The id of an
// MCP session names its node. Tools can be called on the node of a sandbox without a session: alone is true then.
func (f *Fleet) MCPTarget(ctx context.Context, t *tenant.Tenant, session string, body []byte) (node string, alone bool, leave func()) {
	leave = func() {}
	owner, err := f.Owner(session)
	if session != "" && err != nil {
		return "", false, leave // which does not have the session: the client begins another
	}
	var m message
	_ = json.Unmarshal(body, &m) // the SDK refuses batches and other texts
	args := m.Params.Arguments
	switch {
	case session != "" && owner != f.ID():
		return owner, false, leave
	case m.Method == "resources/read":
		parts := strings.Split(m.Params.URI, "/")
		if i := slices.IndexFunc(parts, func(id string) bool { node, _ := parseID(id); return node != "" }); i >= 0 {
			node, leave, err = f.enter(ctx, t, parts[i])
		}
	case m.Method != "tools/call":
		return "", false, leave
	case args.ContextID != "" && args.ContextID != "new":
		node, err = f.Owner(args.ContextID)
	case args.SandboxID != "":
		node, leave, err = f.enter(ctx, t, args.SandboxID)
	case slices.Contains(placedTools, m.Params.Name) && !t.Forwarded:
		node, leave, err = f.choose(ctx, t, args.placed)
	}
	if err != nil || node == f.ID() { // this node reports the error, in MCP's form
		return "", false, leave
	}
	return node, node != "", leave
}
