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

// Session represents a client connection. Closing it deletes the sandboxes of the session and of its toolbox. The
// tenant's quotas and the server's settings apply to all calls.
type Session struct {
	service *Service
	tenant  *tenant.Tenant
	tools   func() (*sandboxtools.Toolbox, error) // opened by the first call
}

// NewSession returns a session without sandboxes. The caller ends it. Closing the service closes its sandboxes, too.
func (s *Service) NewSession(t *tenant.Tenant) *Session {
	session := &Session{service: s, tenant: t}
	session.tools = sync.OnceValues(func() (*sandboxtools.Toolbox, error) { return sandboxtools.New(session.options()) })
	s.sessions.Store(session, nil)
	return session
}

// closeTools closes all sandboxes of the tools. No call is in progress.
func (session *Session) closeTools() error {
	tools, err := session.tools()
	if err == nil {
		err = tools.Close()
	}
	session.service.sessions.Delete(session)
	return err
}

// closeTools closes the tools of all sessions of a service that is being closed: there will be no others.
func (s *Service) closeTools() (err error) {
	for session := range s.sessions.Range {
		err = errors.Join(err, session.(*Session).closeTools())
	}
	return err
}

// options are the options of the tools: its sandboxes have the permissions of the current settings, and count towards
// the tenant's quotas.
func (session *Session) options() sandboxtools.Options {
	o := sandboxtools.Options{
		Create:       session.service.base(session.tenant),
		MaxSandboxes: session.service.Account(session.tenant).Limits().Sandboxes,
		IdleLimit:    milliseconds(session.service.settings.Load().IdleTimeoutMs),
		Open:         session.create,
	}
	if session.service.trusted { // no folder of the host can be shared otherwise
		o.ProjectBase = "/"
	}
	return o
}

// create creates a sandbox of the tools, which other requests cannot find.
func (session *Session) create(ctx context.Context, o runtime.Options) (_ sandboxtools.Sandbox, err error) {
	if o.Permissions, err = session.service.permissions(policy.Permissions{}, path.Clean(o.Cwd), nil); err != nil {
		return nil, err
	}
	isolate(&o, session.service.settings.Load().Allowed[0])
	sb, err := session.service.open(ctx, session.tenant, o)
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

// CallTool calls a tool of the session.
func (s *Service) CallTool(ctx context.Context, c *Call, in *requestjson.ToolIn) (json.RawMessage, error) {
	result, err := c.Session.CallTool(ctx, in.Tool, in.Arguments)
	if sandboxtools.CodeOf(err) != sandboxtools.UnknownTool {
		audit.Of(ctx).SetAction("session " + in.Tool)
	}
	return result, err
}

// holdsFiles are the tools whose calls hold a whole file, or a large folder, in memory.
var holdsFiles = map[string]bool{"sandbox_read_file": true, "sandbox_write_file": true, "sandbox_list_directory": true}

// CallTool calls a tool, as [sandboxtools.Toolbox.Call] does. Errors that are not the tenant's fault are
// logged, and returned as an [*Error].
func (session *Session) CallTool(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if holdsFiles[tool] {
		done, err := session.service.Account(session.tenant).Wait(ctx, quota.Listings)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	if tool != "sandbox_write_file" { // whose arguments are large
		var a struct{ ImageName, ContainerID string }
		_ = json.Unmarshal(args, &a) // the tool reports invalid arguments
		audit.Of(ctx).SetSandbox(a.ContainerID)
		if _, err := session.service.serverImage(a.ImageName); err != nil && tool == "sandbox_init" {
			return nil, session.service.Convert(ctx, tool, session.tenant, err)
		}
	}
	tools, err := session.tools()
	if err != nil {
		return nil, session.service.Convert(ctx, "open tools", session.tenant, err)
	}
	result, err := tools.Call(ctx, tool, args)
	if err != nil {
		err = session.service.Convert(ctx, "call "+tool, session.tenant, err)
	}
	return result, err
}
