package snippetservice

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
	"gaol/runtime/snippets"
	"gaol/runtime/snippets/lint"
)

// Service runs snippets. Its methods may be called concurrently.
type Service struct {
	service *service.Service
	runners *service.Shared[key, *snippets.Runner]
}

// New returns a service that is closed with s.
func New(s *service.Service, log *slog.Logger) *Service {
	n := &Service{s, service.NewShared[key, *snippets.Runner](log)}
	s.OnClose(n.runners.Close)
	return n
}

// Run runs a snippet of a tenant. onLog, if not nil, is called with each line as it arrives. Errors are
// of package service. For an input that breaks a rule of package snippets the error is a
// [*snippets.InputError], beside an output that reports it. If ctx ends the snippet, the error is beside
// the output so far.
func (s *Service) Run(ctx context.Context, t *tenant.Tenant, r Request, onLog func(string)) (out *snippets.Output, err error) {
	in, k, err := s.check(t, r, onLog)
	if err != nil {
		return nil, err
	}
	audit.Of(ctx).SetCode(r.code())
	audit.Of(ctx).SetPermissions([]byte(strconv.Quote(k.preset)))
	var bad *snippets.InputError
	err = s.service.Admit(ctx, t, snippets.Limits(), func() error {
		err := s.runners.Use(k, func() (*snippets.Runner, func() error, error) { return s.create(t, k) }, func(r *snippets.Runner) (err error) {
			out, err = r.Run(ctx, in)
			return err
		})
		if errors.As(err, &bad) {
			return nil
		}
		return err
	})
	if bad != nil {
		return out, bad
	}
	s.record(ctx, out, err)
	return out, err
}

// Output is like Run, but returns no error for an input that breaks a rule: the output reports it.
func (s *Service) Output(ctx context.Context, t *tenant.Tenant, r Request, onLog func(string)) (*snippets.Output, error) {
	out, err := s.Run(ctx, t, r, onLog)
	if _, bad := errors.AsType[*snippets.InputError](err); bad && out != nil {
		return out, nil
	}
	return out, err
}

// Check returns an error for a request that is malformed, or that names objects that the server
// lacks.
func (s *Service) Check(r Request) error {
	_, _, err := s.check(&tenant.Tenant{}, r, nil)
	return err
}

// check returns the input for the SDK, and the key of the runner.
func (s *Service) check(t *tenant.Tenant, r Request, onLog func(string)) (in snippets.Input, k key, err error) {
	set := s.service.Settings()
	if r.usesHost() {
		if err := s.checkHost(&r); err != nil {
			return in, k, err
		}
	}
	if in, err = r.Input(maxTimeout(set), onLog); err != nil {
		return in, k, err
	}
	adapter, err := r.adapter(set)
	if err != nil {
		return in, k, err
	}
	preset, err := r.preset(set)
	if err != nil {
		return in, k, err
	}
	k = newKey(set, t.Name, preset, adapter)
	if r.usesHost() {
		k.nodeModules, k.noLint = r.NodeModules, r.NoLint
	}
	return in, k, nil
}

// newKey returns the key of runs with these settings.
func newKey(set *settings.Settings, tenant, preset string, adapter snippets.Adapter) key {
	return key{
		settings: set, tenant: tenant, preset: preset, adapter: adapter.Name, code: adapter.Code,
		nodeModules: set.Snippets.NodeModules, noLint: set.Snippets.NoLint, rules: set.Snippets.Rules(adapter.Name),
	}
}

// create creates a runner in the cgroup of its tenant.
func (s *Service) create(t *tenant.Tenant, k key) (_ *snippets.Runner, closeAll func() error, err error) {
	place, cache, done := s.service.External(t)
	permissions, network := restrict(place.Permissions, k.preset)
	r, err := snippets.New(snippets.Options{
		Adapter: snippets.Adapter{Name: k.adapter, Code: k.code}, NodeModules: k.nodeModules, NoLint: k.noLint, Rules: k.rules,
		Network: network, Permissions: permissions,
		Store: place.Store, CgroupParent: place.CgroupParent, Isolation: place.Isolation, OCI: place.OCI, Zygote: place.Zygote, NetworkQuota: place.NetworkQuota, Cache: filepath.Join(cache, "packages"),
	})
	if err != nil {
		done()
		return nil, nil, err
	}
	return r, func() error {
		defer done()
		return r.Close()
	}, nil
}

// record adds the end of a run to the audit log and the metrics.
func (s *Service) record(ctx context.Context, out *snippets.Output, err error) {
	if out == nil {
		s.service.Record(ctx, service.KindSnippet, runtime.ExitEvent{Err: err})
		return
	}
	e := &runtime.Evaluation{Denials: out.Denials, Usage: out.Usage, Duration: time.Duration(out.DurationMs * float64(time.Millisecond))}
	switch {
	case err != nil:
		e.Cause = runtime.CauseCanceled
	case out.TimedOut:
		e.Cause = runtime.CauseTimeout
	}
	s.service.Record(ctx, service.KindSnippet, runtime.ExitEvent{Evaluation: e})
}

// key identifies a runner: runs with the same key share it.
type key struct {
	settings                   *settings.Settings
	tenant, preset             string
	adapter, code, nodeModules string
	noLint                     bool
	rules                      *lint.Rules // nil: the adapter's
}
