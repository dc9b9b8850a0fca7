package service

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"sync"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/tenant"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/sandboxtools"
)

// Toolbox is the set of tools of package sandboxtools for a tenant, with its own sandboxes. Calls are
// within its quotas and the server's settings.
type Toolbox struct {
	service *Service
	tenant  *tenant.Tenant
	open    func() (*sandboxtools.Toolbox, error)
}

// NewToolbox returns a toolbox without sandboxes. Close closes it, and so does the service's.
func (s *Service) NewToolbox(t *tenant.Tenant) *Toolbox {
	b := &Toolbox{service: s, tenant: t}
	b.open = sync.OnceValues(func() (*sandboxtools.Toolbox, error) { return sandboxtools.New(b.options()) })
	s.toolboxes.Store(b, nil)
	return b
}

// Close closes all sandboxes of the toolbox. No call is in progress.
func (b *Toolbox) Close() error {
	tools, err := b.open()
	if err == nil {
		err = tools.Close()
	}
	b.service.toolboxes.Delete(b)
	return err
}

// closeToolboxes closes the toolboxes of a service that is being closed: there will be no others.
func (s *Service) closeToolboxes() (err error) {
	for b := range s.toolboxes.Range {
		err = errors.Join(err, b.(*Toolbox).Close())
	}
	return err
}

// options are the options of the tools: its sandboxes have the permissions of the current settings, and count towards
// the tenant's quotas.
func (b *Toolbox) options() sandboxtools.Options {
	o := sandboxtools.Options{
		Create:       b.service.base(b.tenant),
		MaxSandboxes: b.service.Account(b.tenant).Limits().Sandboxes,
		IdleLimit:    milliseconds(b.service.settings.Load().IdleTimeoutMs),
		Open:         b.create,
	}
	if b.service.trusted { // no folder of the host can be shared otherwise
		o.ProjectBase = "/"
	}
	return o
}

// create creates a sandbox of the tools, which other requests cannot find.
func (b *Toolbox) create(ctx context.Context, o runtime.Options) (_ sandboxtools.Sandbox, err error) {
	if o.Permissions, err = b.service.permissions(policy.Permissions{}, path.Clean(o.Cwd), nil); err != nil {
		return nil, err
	}
	b.service.isolateByDefault(&o)
	sb, err := b.service.open(ctx, b.tenant, o)
	if err != nil {
		return nil, refusal(err)
	}
	return toolSandbox{sb}, nil
}

// refusal returns an error with the code that the tools have for the error of a quota.
func refusal(err error) error {
	if e, ok := AsError(err); ok && e.Code == Exceeded {
		return &sandboxtools.Error{Code: sandboxtools.Limit, Err: e}
	}
	return err
}

// toolSandbox is a sandbox of the tools.
type toolSandbox struct{ *Sandbox }

// Command implements [sandboxtools.Sandbox].
func (sb toolSandbox) Command(ctx context.Context, name string, args []string, o runtime.RunOptions) (*runtime.Result, error) {
	start := requestjson.Start{Args: args, Env: o.Env, Cwd: o.Cwd, Timeout: requestjson.Timeout{Ms: o.Timeout.Milliseconds()}}
	res, err := sb.Sandbox.Command(ctx, &Call{}, &requestjson.CommandIn{Command: requestjson.Command{Command: name, Start: start}})
	return res, refusal(err)
}

// Close implements [sandboxtools.Sandbox].
func (sb toolSandbox) Close() error { return sb.close() }

// CallTool calls a tool of the session's toolbox.
func (s *Service) CallTool(ctx context.Context, c *Call, in *requestjson.ToolIn) (json.RawMessage, error) {
	result, err := c.Session.tools.Call(ctx, in.Tool, in.Arguments)
	if sandboxtools.CodeOf(err) != sandboxtools.UnknownTool {
		audit.Of(ctx).SetAction("session " + in.Tool)
	}
	return result, err
}

// holdsFiles are the tools whose calls hold a whole file, or a large folder, in memory.
var holdsFiles = map[string]bool{"sandbox_read_file": true, "sandbox_write_file": true, "sandbox_list_directory": true}

// Call calls a tool, as [sandboxtools.Toolbox.Call] does. Errors that are not the tenant's fault are
// logged, and returned as an [*Error].
func (b *Toolbox) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	ctx, end, err := b.service.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if holdsFiles[tool] {
		done, err := b.service.Account(b.tenant).Wait(ctx, quota.Listings)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	if tool != "sandbox_write_file" { // whose arguments are large
		var a struct{ ImageName, ContainerID string }
		_ = json.Unmarshal(args, &a) // the tool reports invalid arguments
		audit.Of(ctx).SetSandbox(a.ContainerID)
		if err := b.service.CheckImage(a.ImageName); err != nil && tool == "sandbox_init" {
			return nil, err
		}
	}
	tools, err := b.open()
	if err != nil {
		return nil, b.service.Convert(ctx, "open tools", b.tenant, err)
	}
	result, err := tools.Call(ctx, tool, args)
	if err != nil {
		err = b.service.Convert(ctx, "call "+tool, b.tenant, err)
	}
	return result, err
}
