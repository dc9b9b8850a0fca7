package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/jail/cgroup"
	"gaol/policy"
	"gaol/rootfs"
	"gaol/runtime"
	"gaol/runtime/snippets"
)

// Options are the options of a [Service].
type Options struct {
	Settings *settings.Settings
	Store    string // of images; empty: the SDK's default
	Cache    string // a folder; empty: [snippets.ServerCache]
	Log      *slog.Logger

	// CgroupParent is the cgroup below which each tenant has one. Empty: "/gaol/tenants".
	CgroupParent string

	// Peers are the other machines of a fleet. Nil: there are none.
	Peers Peers

	// Create replaces [runtime.Create] in tests.
	Create func(context.Context, runtime.Options) (*runtime.NodeRuntime, error)
}

// Service runs programs and keeps sandboxes for tenants. Its methods may be called from several
// goroutines.
type Service struct {
	Batch Batch // set before the first request

	settings     atomic.Pointer[settings.Settings]
	trusted      bool // see settings.Trusted
	store, cache string
	log          *slog.Logger
	create       func(context.Context, runtime.Options) (*runtime.NodeRuntime, error)
	peers        Peers
	quotas       *quota.Server
	pools        *shared[poolKey, *runtime.Pool]
	runners      *shared[runnerKey, *snippets.Runner]
	tenants      *tenants
	metrics      *Metrics
	retained     retained      // processes and contexts that have ended
	closing      chan struct{} // has room for the sandboxes that are closed at the same time

	ctx    context.Context // of all runs
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // requests, and the closing of sandboxes

	mu        sync.Mutex
	draining  bool
	refusing  bool // see Accept
	sandboxes map[string]*Sandbox

	sessions          sync.Map // keys of *Session
	snapshots, images *kept
}

// New returns a service. The caller closes it.
func New(o Options) *Service {
	s := &Service{store: o.Store, cache: cmp.Or(o.Cache, snippets.ServerCache), log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), create: o.Create, peers: o.Peers, trusted: o.Settings.Trusted, sandboxes: map[string]*Sandbox{}, retained: retained{byName: map[string][]*program{}}}
	if s.create == nil {
		s.create = runtime.Create
	}
	if s.peers == nil {
		s.peers = noPeers{}
	}
	s.keep()
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.quotas = quota.NewServer(o.Settings.Server, o.Settings.Tenant, o.Settings.Limits())
	s.tenants = &tenants{parent: cmp.Or(o.CgroupParent, "/gaol/tenants"), log: s.log, uses: map[string]int{}}
	if s.trusted { // as a program that embeds gaol: nothing has to be divided between tenants
		s.tenants.parent, s.tenants.shared = o.CgroupParent, true // other programs may use the cgroup, too
		s.quotas.DisableTurns()
	}
	s.tenants.removeEmpty()
	s.closing = make(chan struct{}, 2*goruntime.NumCPU())
	s.pools, s.runners = newShared[poolKey, *runtime.Pool](s), newShared[runnerKey, *snippets.Runner](s)
	s.Set(o.Settings)
	s.metrics = NewMetrics()
	s.quotas.Observe(quota.Observer{Refused: s.metrics.Refused, Queued: func(d time.Duration) { s.metrics.queue.Observe(d.Seconds()) }})
	s.metrics.registry.MustRegister(prometheus.CollectorFunc(s.collectUsage))
	s.forgetAllMoved()
	return s
}

// Set replaces the settings. Sandboxes keep the permissions that they were created with.
func (s *Service) Set(o *settings.Settings) {
	s.settings.Store(o)
	s.quotas.Set(o.Server, o.Tenant, o.Named, o.Limits())
}

// Log returns the log.
func (s *Service) Log() *slog.Logger { return s.log }

// Settings returns the settings.
func (s *Service) Settings() *settings.Settings { return s.settings.Load() }

// Account returns the quotas of a tenant.
func (s *Service) Account(t *tenant.Tenant) *quota.Account { return s.quotas.Account(t.Name) }

// Quotas returns the quotas of all tenants.
func (s *Service) Quotas() *quota.Server { return s.quotas }

// base returns the options that all sandboxes of a tenant have.
func (s *Service) base(t *tenant.Tenant) runtime.Options {
	o := runtime.Options{
		Store: s.store, Launcher: runtime.LauncherZygote, CgroupParent: s.tenants.cgroup(t.Name),
		Zygote: runtime.ZygoteOptions{CgroupParent: s.tenants.parent},
	}
	if !s.trusted { // otherwise they have the bounds of the process
		o.NetworkQuota = s.Account(t).Egress
	}
	return o
}

var (
	errDraining = Refuse(Draining, "the server is being stopped")
	errRefusing = &Error{Code: Unreachable, Err: errors.New("this machine is not in its fleet any more"), RetryAfter: retryLater}
)

// begunKey is the context key of the service that has counted the context's work.
type begunKey struct{}

func (s *Service) hasBegun(ctx context.Context) bool { return ctx.Value(begunKey{}) == s }

// Begin counts a piece of work, which Close waits for until end is called. The returned context also ends with the
// service. Parts of such work are not counted, and not refused when the service is stopped meanwhile.
func (s *Service) Begin(ctx context.Context) (_ context.Context, end func(), err error) {
	if s.hasBegun(ctx) {
		return ctx, func() {}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return nil, nil, errDraining
	}
	if s.refusing {
		return nil, nil, errRefusing
	}
	s.work.Add(1)
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, begunKey{}, s))
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
		s.work.Done()
	}, nil
}

// Draining reports whether the service accepts nothing new.
func (s *Service) Draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining || s.refusing
}

// Accept sets whether the service accepts new work.
func (s *Service) Accept(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusing = !yes
}

// Close refuses new work, waits for the current requests until ctx ends, cancels the rest, and closes
// all sandboxes.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	finished := make(chan struct{})
	go func() {
		s.work.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		s.cancel(errDraining)
		<-finished
	}
	s.cancel(nil)
	err := s.EndSandboxes()
	s.work.Wait()
	err = errors.Join(err, s.closeTools())
	s.runners.close()
	s.pools.close()
	err = errors.Join(err, runtime.CloseIdle())
	s.tenants.close()
	return err
}

// Check returns an error if the service cannot run programs: if the image of sandboxes that name none
// is missing, or if this machine cannot make a jail of an isolation that requests may name. It makes one of each,
// and closes it.
func (s *Service) Check(ctx context.Context) error {
	store, err := rootfs.Open(s.store)
	if err != nil {
		return err
	}
	image := "" // the default one, which need not be the one named default
	if allowed := s.Settings().Images; len(allowed) > 0 && !slices.Contains(allowed, defaultImage) {
		image = allowed[0]
		_, err = store.Lookup(image)
	} else {
		_, err = store.Stored(rootfs.BuildOptions{})
	}
	if err != nil {
		return fmt.Errorf("image %s: %w", cmp.Or(image, defaultImage), err)
	}
	var failed []error
	for _, i := range s.Settings().Allowed {
		o := runtime.Options{Image: image, Store: s.store, CgroupParent: s.tenants.parent, Launcher: runtime.LauncherExec}
		isolate(&o, i)
		rt, err := s.create(ctx, o)
		if err == nil {
			err = errors.Join(ctx.Err(), rt.Close())
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("isolation %s: %w", i.Name, err))
		}
	}
	return errors.Join(failed...)
}

// closeInTurn closes a sandbox or a pool when it is its turn. Closing a sandbox waits for the kernel to end its processes,
// with a time limit: a thousand together, for example at the end of the server, would exceed it.
func (s *Service) closeInTurn(one func() error) error {
	s.closing <- struct{}{}
	defer func() { <-s.closing }()
	return one()
}

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
		return nil, nil, nil, cmp.Or[error](s.peers.Lost(id), Refuse(NotFound, "no such sandbox"))
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
	p, _ := s.permissions(policy.Permissions{}, "", nil) // which cannot exceed the server's
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

// tenants knows which tenants have sandboxes, and removes the cgroups of others.
type tenants struct {
	parent string // of their cgroups
	log    *slog.Logger
	shared bool // parent also has jails of other programs: there are no cgroups of tenants

	mu   sync.Mutex
	uses map[string]int // sandboxes and pools of a tenant with a cgroup, also while they are created
}

// cgroup is the parent of a tenant's jails, so that tenants share the processors equally.
func (ts *tenants) cgroup(name string) string {
	if ts.shared {
		return ts.parent
	}
	return filepath.Join(ts.parent, strings.ReplaceAll(name, ":", "-"))
}

// use keeps the cgroup of a tenant until done is called. For a tenant without one it removes the cgroups of tenants without
// sandboxes first, so that there are not many more than tenants were active at the same time.
func (ts *tenants) use(name string) (done func()) {
	if ts.shared {
		return func() {}
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if _, known := ts.uses[name]; !known {
		maps.DeleteFunc(ts.uses, func(name string, n int) bool { return n == 0 && removeCgroup(ts.cgroup(name)) })
	}
	ts.uses[name]++
	return sync.OnceFunc(func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		ts.uses[name]--
	})
}

// close removes all cgroups. All sandboxes are closed.
func (ts *tenants) close() {
	if ts.shared {
		return
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	deadline := time.Now().Add(time.Second)
	for name := range ts.uses {
		for !removeCgroup(ts.cgroup(name)) {
			if time.Now().After(deadline) {
				ts.log.Error("a cgroup remains", "path", ts.cgroup(name))
				break
			}
			time.Sleep(time.Millisecond) // the kernel needs a moment after the last process
		}
	}
	removeCgroup(ts.parent)
}

// removeEmpty removes empty tenant cgroups that a killed server left behind. It skips jail and zygote cgroups, because another
// server may be about to start a process in one.
func (ts *tenants) removeEmpty() {
	if ts.shared {
		return // another program may be about to use one
	}
	parent, err := cgroup.Open(ts.parent)
	if err != nil {
		return
	}
	for _, dir := range append(parent.Dirs(), parent.OtherDirs()...) {
		entries, _ := os.ReadDir(dir) // missing: there is nothing to remove
		for _, e := range entries {
			if name := e.Name(); strings.HasPrefix(name, "uid-") || strings.HasPrefix(name, "token-") {
				_ = unix.Rmdir(filepath.Join(dir, name)) // fails for groups in use
			}
		}
	}
}

// removeCgroup removes a cgroup without children in all hierarchies, and reports whether none is left.
func removeCgroup(path string) bool {
	g, err := cgroup.Open(path)
	if err != nil {
		return false
	}
	gone := true
	for _, dir := range append(g.Dirs(), g.OtherDirs()...) {
		if err := unix.Rmdir(dir); err != nil && err != unix.ENOENT {
			gone = false
		}
	}
	return gone
}
