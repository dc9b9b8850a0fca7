package service

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"sync"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
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
	b.open = sync.OnceValues(func() (*sandboxtools.Toolbox, error) {
		tools, err := sandboxtools.New(s.toolboxOptions(t))
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.toolboxes[b] = tools // the service waits for this call before it closes them
		}
		return tools, err
	})
	return b
}

// Close closes all sandboxes of the toolbox. No call is in progress.
func (b *Toolbox) Close() error {
	b.service.mu.Lock()
	tools := b.service.toolboxes[b]
	b.service.mu.Unlock()
	if tools == nil {
		return nil
	}
	err := tools.Close()
	b.service.mu.Lock()
	defer b.service.mu.Unlock()
	delete(b.service.toolboxes, b)
	return err
}

// closeToolboxes closes the toolboxes of a service that is being closed: there will be no others.
func (s *Service) closeToolboxes() error {
	s.mu.Lock()
	open := slices.Collect(maps.Keys(s.toolboxes))
	s.mu.Unlock()
	var errs []error
	for _, b := range open {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// toolboxOptions are the options of a tenant's sandboxtools: its sandboxes have the permissions
// of the current settings, and count towards the tenant's quotas.
func (s *Service) toolboxOptions(t *tenant.Tenant) sandboxtools.Options {
	account, set := s.Account(t), s.settings.Load()
	projects := "" // no folder of the host can be shared
	if s.trusted {
		projects = "/"
	}
	return sandboxtools.Options{
		ProjectBase:  projects,
		Create:       s.base(t),
		MaxSandboxes: account.Limits().Sandboxes,
		IdleLimit:    milliseconds(set.IdleTimeoutMs),
		Start: func(ctx context.Context, l runtime.Limits) (release func(), err error) {
			release, err = account.Admit(ctx, l.Memory, l.CPUs)
			return release, s.Convert("call a tool", t, err)
		},
		Prepare: func(o *runtime.Options) (release func(), err error) {
			if s.Draining() {
				return nil, errDraining
			}
			if o.Permissions, err = s.permissions(nil, path.Clean(o.Cwd), nil); err != nil {
				return nil, err
			}
			s.isolateByDefault(o)
			release, err = account.Reserve(runtime.DefaultLimits().Disk)
			return release, s.Convert("call a tool", t, err)
		},
	}
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
	if err := b.check(ctx, tool, args); err != nil {
		return nil, err
	}
	tools, err := b.open()
	if err != nil {
		return nil, b.service.Convert("open tools", b.tenant, err)
	}
	result, err := tools.Call(ctx, tool, args)
	if sandboxtools.CodeOf(err) == sandboxtools.Internal {
		return nil, b.service.Convert("call "+tool, b.tenant, err)
	}
	return result, err
}

// check checks what only the server knows, and adds the call to the audit log. The tool itself reports
// other invalid arguments.
func (b *Toolbox) check(ctx context.Context, tool string, args json.RawMessage) error {
	var a struct {
		ImageName   string   `json:"imageName"`
		ContainerID string   `json:"containerId"`
		Executable  string   `json:"executable"`
		Args        []string `json:"args"`
	}
	if tool == "sandbox_write_file" || json.Unmarshal(args, &a) != nil {
		return nil
	}
	switch tool {
	case "sandbox_init":
		return b.service.CheckImage(a.ImageName)
	case "sandbox_command":
		audit.Of(ctx).SetCommand(a.Executable, a.Args)
	}
	audit.Of(ctx).SetSandbox(a.ContainerID)
	return nil
}
