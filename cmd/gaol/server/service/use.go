package service

import (
	"context"

	"gaol/cmd/gaol/server/tenant"
	"gaol/policy"
	"gaol/runtime"
)

// Use returns a sandbox of the tenant for one request that is not a run. The context also ends with
// the service. The caller calls release.
func (s *Service) Use(ctx context.Context, t *tenant.Tenant, id string) (_ context.Context, _ *Sandbox, release func(), err error) {
	ctx, end, err := s.Begin(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	sb, err := s.Acquire(ctx, t, id)
	if err != nil {
		end()
		return nil, nil, nil, err
	}
	return ctx, sb, func() { sb.Release(); end() }, nil
}

// UseByID is Use for a request whose only credential is the sandbox's ID, which is unguessable. It
// counts as a request of the sandbox's tenant.
func (s *Service) UseByID(ctx context.Context, id string) (_ context.Context, _ *Sandbox, release func(), err error) {
	s.mu.Lock()
	sb := s.sandboxes[id]
	s.mu.Unlock()
	if sb == nil {
		return nil, nil, nil, Refuse(NotFound, "no such sandbox")
	}
	if err := sb.account.Request(); err != nil {
		return nil, nil, nil, err
	}
	return s.Use(ctx, sb.tenant(), id)
}

// PermissionsOf returns the permissions of the tenant's sandbox with an id, or the default permissions if there is
// no such sandbox.
func (s *Service) PermissionsOf(t *tenant.Tenant, id string) policy.Permissions {
	if sb := s.find(t, id); sb != nil {
		return sb.permissions.Clone()
	}
	p, _ := s.permissions(nil, "", nil) // which cannot exceed the server's
	return p
}

// Allows reports whether a tenant may create sandboxes with some permissions.
func (s *Service) Allows(p policy.Permissions) bool {
	w, _ := world("", nil) // the default folder is valid
	if _, err := policy.Narrow(s.settings.Load().Permissions, p, w); err != nil {
		return false
	}
	plan, _ := runtime.CheckPermissions(runtime.Options{Permissions: p})
	return plan != nil
}

// External returns how to create sandboxes of a tenant that other packages own, with the most permissions that they may
// have, and a folder for what can be made again, which may be missing. They count towards the tenant's quotas while they
// are used: see [Service.Admit]. The caller calls done when they are closed.
func (s *Service) External(t *tenant.Tenant) (o runtime.Options, cache string, done func()) {
	o = s.base(t)
	s.isolateByDefault(&o)
	o.Permissions = s.settings.Load().Permissions.Over(policy.Default())
	o.Permissions.Network = policy.Scope{} // which the caller chooses
	return o, s.cache, s.tenants.use(t.Name)
}

// Admit reserves a sandbox with limits, and calls do when it is the tenant's turn to start a run in it.
func (s *Service) Admit(ctx context.Context, t *tenant.Tenant, l runtime.Limits, do func() error) error {
	account := s.Account(t)
	free, err := account.Reserve(l.Disk)
	if err != nil {
		return err
	}
	defer free()
	release, err := account.Admit(ctx, l.Memory, l.CPUs)
	if err != nil {
		return err
	}
	defer release()
	return do()
}

// Trusted reports whether the only client is trusted like root.
func (s *Service) Trusted() bool { return s.trusted }

// OnClose adds a function that Close calls when all work has ended, and before it removes the
// cgroups of tenants.
func (s *Service) OnClose(do func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, do)
}
