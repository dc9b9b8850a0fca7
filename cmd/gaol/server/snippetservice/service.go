package snippetservice

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
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
	runners *runners
}

// New returns a service that is closed with s.
func New(s *service.Service, log *slog.Logger) *Service {
	n := &Service{s, &runners{log: log, byKey: map[key]*runner{}}}
	s.OnClose(n.runners.close)
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
		out, err = s.run(ctx, t, k, in)
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

// run runs a snippet when it is its turn.
func (s *Service) run(ctx context.Context, t *tenant.Tenant, k key, in snippets.Input) (*snippets.Output, error) {
	s.runners.retire(k.settings)
	r, err := s.runners.acquire(k, func() (*snippets.Runner, func() error, error) { return s.create(t, k) })
	if err != nil {
		return nil, err
	}
	opened, err := r.open()
	defer func() { s.runners.release(r, opened == nil) }()
	if err != nil {
		return nil, err
	}
	return opened.Run(ctx, in)
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

const (
	// runnerIdle is how long a runner is kept without a run: it has sandboxes that are ready.
	runnerIdle = time.Minute

	// maxRunners bounds the runners. Above it, an unused one is closed.
	maxRunners = 64
)

// key identifies a runner: runs with the same key share it.
type key struct {
	settings                   *settings.Settings
	tenant, preset             string
	adapter, code, nodeModules string
	noLint                     bool
	rules                      *lint.Rules // nil: the adapter's
}

// runner is a runner that is created lazily.
type runner struct {
	key
	uses  int
	since time.Time // it is not in use
	idle  *time.Timer
	gone  bool                             // no longer in runners.byKey
	open  func() (*snippets.Runner, error) // once
	close func() error                     // once; nothing is in use
}

// runners are the runners of all tenants.
type runners struct {
	log *slog.Logger

	mu      sync.Mutex
	byKey   map[key]*runner
	closing sync.WaitGroup
}

// acquire returns the runner of a key, which the caller releases. It calls create for a new one.
func (rs *runners) acquire(k key, create func() (*snippets.Runner, func() error, error)) (*runner, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.byKey[k]
	if r == nil {
		if len(rs.byKey) >= maxRunners && !rs.evict() {
			return nil, &service.Error{Code: service.Exceeded, Err: errors.New("too many snippets of different kinds run now"), RetryAfter: time.Second}
		}
		r = &runner{key: k}
		var done func() error
		r.open = sync.OnceValues(func() (opened *snippets.Runner, err error) {
			opened, done, err = create()
			return opened, err
		})
		r.close = func() error {
			if done == nil {
				return nil
			}
			return done()
		}
		r.idle = time.AfterFunc(runnerIdle, func() { rs.expire(r) })
		rs.byKey[k] = r
	}
	r.uses++
	r.idle.Stop()
	return r, nil
}

// release ends a use of a runner. A runner that failed to open is forgotten.
func (rs *runners) release(r *runner, failed bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.uses--
	if failed && !r.gone {
		r.gone = true
		delete(rs.byKey, r.key)
	}
	switch {
	case r.uses > 0:
	case r.gone:
		rs.closeLater(r)
	default:
		r.since = time.Now()
		r.idle.Reset(runnerIdle)
	}
}

// expire closes a runner that has not been used for some time.
func (rs *runners) expire(r *runner) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.uses == 0 && !r.gone {
		rs.remove(r)
	}
}

// evict closes the runner that has not been used for the longest time. It returns false if all are
// in use.
//
// Preconditions: rs.mu is held.
func (rs *runners) evict() bool {
	var oldest *runner
	for _, r := range rs.byKey {
		if r.uses == 0 && (oldest == nil || r.since.Before(oldest.since)) {
			oldest = r
		}
	}
	if oldest != nil {
		rs.remove(oldest)
	}
	return oldest != nil
}

// retire closes the runners of other settings, when their runs have ended.
func (rs *runners) retire(now *settings.Settings) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for k, r := range rs.byKey {
		if k.settings != now {
			rs.remove(r)
		}
	}
}

// remove forgets a runner, and closes it in the background once it is not in use.
//
// Preconditions: rs.mu is held.
func (rs *runners) remove(r *runner) {
	r.gone = true
	r.idle.Stop()
	delete(rs.byKey, r.key)
	if r.uses == 0 {
		rs.closeLater(r)
	}
}

// closeLater closes a runner that nothing uses or will use.
//
// Preconditions: rs.mu is held.
func (rs *runners) closeLater(r *runner) {
	rs.closing.Go(func() {
		if err := r.close(); err != nil {
			rs.log.Error("close a runner of snippets", "tenant", r.tenant, "err", err)
		}
	})
}

// close closes all runners. None is in use.
func (rs *runners) close() error {
	rs.mu.Lock()
	for _, r := range rs.byKey {
		rs.remove(r)
	}
	rs.mu.Unlock()
	rs.closing.Wait()
	return nil
}
