package service

import (
	"context"

	"gaol/cmd/gaol/server/tenant"
)

// Use returns a sandbox of the tenant for one request that is not a run. The context also ends with
// the service. The caller calls release.
func (s *Service) Use(ctx context.Context, t *tenant.Tenant, id string) (_ context.Context, _ *Sandbox, release func(), err error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	sb, err := s.Acquire(t, id)
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
		return nil, nil, nil, refuse(NotFound, "no such sandbox")
	}
	if err := convert(sb.account.Request()); err != nil {
		return nil, nil, nil, err
	}
	return s.Use(ctx, &tenant.Tenant{Name: sb.owner}, id)
}

// MaxUpload is how many bytes the body of one request of the sandbox's tenant may have.
func (sb *Sandbox) MaxUpload() int64 { return sb.account.Limits().Upload }

// tenant returns the sandbox's tenant.
func (sb *Sandbox) tenant() *tenant.Tenant { return &tenant.Tenant{Name: sb.owner} }
