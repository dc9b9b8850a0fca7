package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/service"
	"gaol/runtime/requestjson"
)

// CreateArgs are the arguments of create_sandbox.
type CreateArgs struct {
	Image         string            `json:"image,omitempty" jsonschema:"The name of an image of the server; by default the one called default."`
	Files         map[string]string `json:"files,omitempty" jsonschema:"Text files, by their absolute paths, or relative to /workspace."`
	Env           map[string]string `json:"env,omitempty" jsonschema:"Environment variables of all runs."`
	Permissions   map[string]any    `json:"permissions,omitempty" jsonschema:"What runs may do, by scope: fs, network, childProcess, process, env. Each is \"allow\", \"deny\", or an object with a default and rules, such as {\"network\": {\"default\": \"deny\", \"rules\": [{\"mode\": \"allow\", \"patterns\": [\"tcp://registry.npmjs.org:443\"]}]}}. By default everything inside the sandbox, with its own localhost, and no other host."`
	MemoryBytes   int64             `json:"memoryBytes,omitempty" jsonschema:"Memory of a run; 256 MiB by default."`
	CPUs          float64           `json:"cpus,omitempty" jsonschema:"Processors that a run keeps busy; 1 by default."`
	DiskBytes     int64             `json:"diskBytes,omitempty" jsonschema:"Bytes of files; 64 MiB by default."`
	IdleTimeoutMs int64             `json:"idleTimeoutMs,omitempty" jsonschema:"How long the sandbox lives without use; by default, and at most, what the server allows."`
}

// IsolatedCreateArgs are the arguments of create_sandbox if the server allows several isolations.
type IsolatedCreateArgs struct {
	CreateArgs
	Isolation string `json:"isolation,omitempty" jsonschema:"What confines the sandbox; by default the first of these."`
}

// SandboxResult is the result of create_sandbox.
type SandboxResult struct {
	SandboxID string   `json:"sandboxId" jsonschema:"The id for the other tools."`
	Isolation string   `json:"isolation" jsonschema:"What confines the sandbox."`
	Expires   string   `json:"expires" jsonschema:"When the sandbox is deleted unless it is used before, as RFC 3339."`
	Missing   []string `json:"missing,omitempty" jsonschema:"Rules that the server's kernel does not enforce."`
}

// addCreateSandbox adds create_sandbox, with an argument for the isolation if callers may choose one.
func (e *endpoint) addCreateSandbox() {
	tool := describe("create_sandbox", "Create a sandbox", createAbout, adds, false, false)
	bounds := []bound{atLeastZero("memoryBytes"), atLeastZero("cpus"), atLeastZero("diskBytes"), atLeastZero("idleTimeoutMs")}
	names := e.service.Settings().IsolationNames()
	if len(names) > 1 {
		add(e, tool, e.createSandbox, append(bounds, oneOf("isolation", names...))...)
		return
	}
	tool.Description += isolationAbout(names)
	add(e, tool, func(ctx context.Context, r *mcp.CallToolRequest, a CreateArgs) (*mcp.CallToolResult, *SandboxResult, error) {
		return e.createSandbox(ctx, r, IsolatedCreateArgs{CreateArgs: a})
	}, bounds...)
}

// isolationAbout says what confines the sandboxes of a tool that has no argument for that.
func isolationAbout(names []string) string { return " Its isolation is " + names[0] + "." }

func (e *endpoint) createSandbox(ctx context.Context, _ *mcp.CallToolRequest, a IsolatedCreateArgs) (*mcp.CallToolResult, *SandboxResult, error) {
	r := requestjson.SandboxRequest{Env: a.Env, IdleTimeoutMs: a.IdleTimeoutMs, Tree: requestjson.Tree{Image: a.Image, Isolation: a.Isolation, Files: map[string]string{}}}
	if a.MemoryBytes != 0 || a.CPUs != 0 || a.DiskBytes != 0 {
		r.Limits = &requestjson.Limits{Memory: a.MemoryBytes, CPUs: a.CPUs, Disk: a.DiskBytes}
	}
	for name, text := range a.Files {
		path, err := guestPath(name)
		if err != nil {
			return nil, nil, err
		}
		r.Files[path] = text
	}
	if a.Permissions != nil {
		text, err := json.Marshal(a.Permissions)
		if err != nil {
			return nil, nil, err
		}
		r.Permissions = text
	}
	info, err := e.service.CreateSandbox(ctx, e.tenant, r, service.Streams{})
	if err != nil {
		return nil, nil, e.explain(err)
	}
	out := &SandboxResult{info.ID, info.Isolation, info.Expires.UTC().Format(time.RFC3339), info.Missing}
	text := fmt.Sprintf("created sandbox %s, which expires at %s unless it is used", out.SandboxID, out.Expires)
	if len(out.Missing) > 0 {
		text += "\n[the server's kernel does not enforce: " + strings.Join(out.Missing, ", ") + "]"
	}
	return textResult(text), out, nil
}

// CloseArgs are the arguments of close_sandbox.
type CloseArgs struct {
	SandboxID string `json:"sandboxId" jsonschema:"The sandbox."`
}

// CloseResult is the result of close_sandbox.
type CloseResult struct {
	SandboxID string `json:"sandboxId"`
	Closed    bool   `json:"closed"`
}

func (e *endpoint) closeSandbox(_ context.Context, _ *mcp.CallToolRequest, a CloseArgs) (*mcp.CallToolResult, *CloseResult, error) {
	if err := e.service.Delete(e.tenant, a.SandboxID); err != nil {
		return nil, nil, e.explain(err)
	}
	return textResult("closed sandbox " + a.SandboxID), &CloseResult{a.SandboxID, true}, nil
}

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// newContext is the contextId that asks for a new context.
const newContext = "new"

// liveContext is a context in a sandbox, which the caller releases.
type liveContext struct {
	context *service.Context
	sb      *service.Sandbox
}

// findContext returns a context. If the call names a sandbox, it must be the context's.
func (e *endpoint) findContext(id, sandbox string) (*liveContext, error) {
	c, sb, err := e.service.FindContext(e.tenant, id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("no context %.64q: it has ended or never existed. Its variables are lost; pass contextId %q for a new one", id, newContext)
	case sandbox != "" && sandbox != sb.ID:
		sb.Release()
		return nil, fmt.Errorf("context %q is in sandbox %q, not in %.64q: omit sandboxId", id, sb.ID, sandbox)
	}
	return &liveContext{c, sb}, nil
}

// open creates a context in a sandbox, or in a new one.
func (e *endpoint) open(ctx context.Context, sandbox string) (*liveContext, error) {
	created := sandbox == ""
	if created {
		info, err := e.service.CreateSandbox(ctx, e.tenant, requestjson.SandboxRequest{}, service.Streams{})
		if err != nil {
			return nil, e.explain(err)
		}
		sandbox = info.ID
	}
	live, err := e.openIn(ctx, sandbox)
	if err != nil && created {
		_ = e.service.Delete(e.tenant, sandbox) // the error is more important
	}
	return live, err
}

func (e *endpoint) openIn(ctx context.Context, sandbox string) (*liveContext, error) {
	sb, err := e.acquire(sandbox)
	if err != nil {
		return nil, err
	}
	c, err := sb.NewContext(ctx, requestjson.ContextRequest{}, service.Streams{})
	if err != nil {
		sb.Release()
		return nil, e.explain(err)
	}
	return &liveContext{c, sb}, nil
}
