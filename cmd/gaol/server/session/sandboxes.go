package session

import (
	"encoding/json"
	"time"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
	protocol "gaol/internal/session"
	"gaol/runtime"
)

// createParams are those of create.
type createParams struct {
	service.SandboxRequest
	Detached  bool                       `json:"detached,omitempty" doc:"Keep the sandbox when the session ends."`
	Globals   map[string]json.RawMessage `json:"globals,omitempty" doc:"Variables of all programs."`
	Functions []protocol.Function        `json:"functions,omitempty" maxItems:"1024" doc:"Functions of the client that programs can call."`
	Commands  []protocol.Command         `json:"commands,omitempty" maxItems:"1024" doc:"Programs of the sandbox that call the client. With an empty list, addCommands can add some."`
	Calls     protocol.CallLimits        `json:"calls,omitempty"`
}

// create creates a sandbox.
func create(t *task, p createParams) (any, error) {
	if p.Detached && len(p.Functions) > 0 {
		return nil, service.Invalidf("functions: a detached sandbox can have none, because they end with the session")
	}
	if p.Detached && p.Commands != nil {
		return nil, service.Invalidf("commands: a detached sandbox can have none, because they end with the session")
	}
	bindings, err := t.calls.bind(p.Globals, p.Functions)
	if err != nil {
		return nil, err
	}
	commands, err := t.calls.commands(p.Commands)
	if err != nil {
		return nil, err
	}
	f := service.HostFunctions{Bindings: bindings, Commands: commands, Calls: callLimits(p.Calls)}
	info, err := t.service.CreateSandboxWith(t.ctx, t.tenant, p.SandboxRequest, f)
	if err != nil {
		return nil, err
	}
	if !p.Detached {
		t.own(info.ID)
	}
	return info, nil
}

func callLimits(l protocol.CallLimits) runtime.CallLimits {
	return runtime.CallLimits{
		Calls: l.Calls, Concurrent: l.Concurrent, Arguments: l.Arguments, Result: l.Result,
		Timeout: time.Duration(l.TimeoutMs) * time.Millisecond,
	}
}

// SandboxParams name a sandbox.
type SandboxParams struct {
	Sandbox string `json:"sandbox" maxLength:"64"`
}

// sandboxList is the result of list.
type sandboxList struct {
	Sandboxes []*service.SandboxInfo `json:"sandboxes"`
}

func list(t *task, _ struct{}) (any, error) {
	return sandboxList{t.service.Sandboxes(t.tenant)}, nil
}

func get(t *task, p SandboxParams) (any, error) { return t.service.Sandbox(t.tenant, p.Sandbox) }

func renew(t *task, p SandboxParams) (any, error) { return t.service.Renew(t.tenant, p.Sandbox) }

// closeSandbox closes a sandbox with all that runs in it.
func closeSandbox(t *task, p SandboxParams) (any, error) {
	audit.Of(t.ctx).SetSandbox(p.Sandbox)
	err := t.service.Delete(t.tenant, p.Sandbox)
	if err == nil {
		t.disown(p.Sandbox)
	}
	return nil, err
}
