package service

import (
	"context"

	"gaol/cmd/gaol/server/tenant"
	"gaol/policy"
	"gaol/runtime"
)

// External says how to create sandboxes of a tenant that other packages own. They count towards
// its quotas while they are used: see [Service.Admit].
type External struct {
	Store        string // of images
	Cache        string // a folder for what can be made again, which may be missing
	CgroupParent string
	Isolation    runtime.Isolation
	OCI          runtime.OCIOptions
	Zygote       runtime.ZygoteOptions
	NetworkQuota runtime.NetworkQuota

	// Permissions are the most that they may have, without network.
	Permissions policy.Permissions
}

// External returns how to create sandboxes of a tenant. The caller calls done when they are closed.
func (s *Service) External(t *tenant.Tenant) (e External, done func()) {
	o := runtime.Options{Zygote: runtime.ZygoteOptions{CgroupParent: s.tenants.parent}}
	s.isolateByDefault(&o)
	e = External{Store: s.store, Cache: s.cache, CgroupParent: s.cgroup(t), Isolation: o.Isolation, OCI: o.OCI, Zygote: o.Zygote, NetworkQuota: s.networkQuota(t)}
	e.Permissions = s.settings.Load().Permissions.Over(policy.Default())
	e.Permissions.Network = policy.Scope{}
	return e, s.tenants.use(t.Name)
}

// Admit reserves a sandbox with limits, and calls do when it is the tenant's turn to start a run in
// it. Doing is for errors of do, which are logged if they are not the tenant's fault.
func (s *Service) Admit(ctx context.Context, t *tenant.Tenant, doing string, l runtime.Limits, do func(context.Context) error) error {
	account := s.Account(t)
	free, err := account.Reserve(l.Disk)
	if err != nil {
		return convert(err)
	}
	defer free()
	release, err := account.Admit(ctx, l.Memory, l.CPUs)
	if err != nil {
		return convert(err)
	}
	defer release()
	return begun(s.Convert(doing, t, do(ctx)))
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
