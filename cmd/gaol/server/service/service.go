package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"

	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/rootfs"
	"gaol/runtime"
)

// Options are the options of a [Service].
type Options struct {
	Settings *settings.Settings
	Store    string // of images; empty: the SDK's default
	Cache    string // a folder; empty: /var/cache/gaol
	Log      *slog.Logger

	// CgroupParent is the cgroup below which each tenant has one. Empty: "/gaol/tenants".
	CgroupParent string

	// Metrics count runs and refusals. Nil: none are kept.
	Metrics *Metrics

	// Create replaces [runtime.Create] in tests.
	Create func(context.Context, runtime.Options) (*runtime.NodeRuntime, error)
}

// Service runs programs and keeps sandboxes for tenants. Its methods may be called from several
// goroutines.
type Service struct {
	settings atomic.Pointer[settings.Settings]
	trusted  bool // see settings.Trusted
	store    string
	cache    string
	log      *slog.Logger
	create   func(context.Context, runtime.Options) (*runtime.NodeRuntime, error)
	quotas   *quota.Server
	pools    *pools
	tenants  *tenants
	metrics  *Metrics
	retained retained // processes and contexts that have ended
	closing  closing

	ctx    context.Context // of all runs
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // requests, and the closing of sandboxes

	mu        sync.Mutex
	draining  bool
	sandboxes map[string]*Sandbox
	toolboxes map[*Toolbox]bool
	closers   []func() error

	listings  turns // of large folders
	snapshots turns
	pending   pendingSnapshots
}

// New returns a service. The caller closes it.
func New(o Options) *Service {
	s := &Service{store: o.Store, cache: cmp.Or(o.Cache, "/var/cache/gaol"), log: o.Log, create: o.Create, trusted: o.Settings.Trusted, sandboxes: map[string]*Sandbox{}}
	if s.create == nil {
		s.create = runtime.Create
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.quotas = quota.NewServer(o.Settings.Server, o.Settings.Tenant, o.Settings.Limits())
	s.tenants = newTenants(cmp.Or(o.CgroupParent, "/gaol/tenants"), s.log)
	if s.trusted {
		s.trust(o.CgroupParent)
	}
	s.tenants.removeEmpty()
	s.closing = newClosing()
	s.pools = newPools(s.log, s.tenants, s.closing)
	s.addMetrics(o.Metrics)
	s.settings.Store(o.Settings)
	return s
}

// Set replaces the settings. Sandboxes keep the permissions that they were created with.
func (s *Service) Set(o *settings.Settings) {
	s.settings.Store(o)
	s.quotas.Set(o.Server, o.Tenant, o.Limits())
	s.pools.clear()
}

// Settings returns the settings.
func (s *Service) Settings() *settings.Settings { return s.settings.Load() }

// Account returns the quotas of a tenant.
func (s *Service) Account(t *tenant.Tenant) *quota.Account { return s.quotas.Account(t.Name) }

// Count counts a request of a tenant, or returns an error if there are too many.
func (s *Service) Count(t *tenant.Tenant) error { return convert(s.Account(t).Request()) }

// Enter counts a request of a tenant with a body of JSON of some bytes until the reservation is released, or
// returns an error if too many are in progress.
func (s *Service) Enter(t *tenant.Tenant, body int64) (*Reservation, error) {
	r, err := s.Account(t).Enter(body)
	return &Reservation{r}, convert(err)
}

// Reservation is a request's reservation of its tenant's quotas.
type Reservation struct{ *quota.Reservation }

// Hold reserves more memory, see [quota.Reservation].
func (r *Reservation) Hold(bytes int64) error { return convert(r.Reservation.Hold(bytes)) }

// Text waits for the turn of a large text of a tenant, see [quota.Account].
func (s *Service) Text(ctx context.Context, t *tenant.Tenant) (done func(), err error) {
	done, err = s.Account(t).Text(ctx)
	return done, convert(err)
}

// Session counts a session of a tenant until the reservation is released, or returns an error if there are too
// many.
func (s *Service) Session(t *tenant.Tenant) (*Reservation, error) {
	r, err := s.Account(t).Session()
	return &Reservation{r}, convert(err)
}

// networkQuota bounds the egress of all sandboxes of a tenant.
func (s *Service) networkQuota(t *tenant.Tenant) runtime.NetworkQuota {
	if s.trusted { // its sandboxes have the bounds of the process
		return nil
	}
	return s.Account(t).Egress
}

// Usage returns what each tenant uses now.
func (s *Service) Usage() []quota.Usage { return s.quotas.Usage() }

var errDraining = errors.New("the server is being stopped")

// Begin counts a piece of work, which Close waits for until end is called. The returned context also ends with the
// service.
func (s *Service) Begin(ctx context.Context) (_ context.Context, end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return nil, nil, &Error{Code: Draining, Err: errDraining}
	}
	s.work.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
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
	return s.draining
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
		s.cancel(&Error{Code: Draining, Err: errDraining})
		<-finished
	}
	s.cancel(nil)
	err := errors.Join(s.closeSandboxes(), s.closeToolboxes())
	for _, do := range s.closers { // nothing adds one while the service is closed
		err = errors.Join(err, do())
	}
	s.pools.clear()
	err = errors.Join(err, runtime.CloseIdle())
	s.tenants.close()
	return err
}

// Check returns an error if the service cannot run programs: if the image of sandboxes that name none
// is missing, or if this machine cannot make a jail of an isolation that requests may name. It makes one of each,
// and closes it.
func (s *Service) Check(ctx context.Context) error {
	image := defaultImage
	if allowed := s.Settings().Images; len(allowed) > 0 && !slices.Contains(allowed, image) {
		image = allowed[0]
	}
	store, err := rootfs.Open(s.store)
	if err != nil {
		return err
	}
	if _, err := store.Lookup(image); err != nil {
		return fmt.Errorf("image %s: %w", image, err)
	}
	var failed []error
	for _, i := range s.Settings().AllIsolations() {
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

// closing bounds how many sandboxes are closed at the same time. Closing one waits for the kernel to end its
// processes, with a time limit: a thousand together, for example at the end of the server, would exceed it.
type closing chan struct{}

func newClosing() closing { return make(closing, 2*goruntime.NumCPU()) }

// do calls one when it is its turn.
func (c closing) do(one func() error) error {
	c <- struct{}{}
	defer func() { <-c }()
	return one()
}
