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
