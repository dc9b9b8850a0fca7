package service

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/tenant"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/vfs/hostfs"
)

// Sandbox is a sandbox of a tenant. It lives until it is deleted, not used for its idle timeout, or
// older than its lifetime.
type Sandbox struct {
	ID      string
	Created time.Time

	runtime     *runtime.NodeRuntime
	owner       string
	account     *quota.Account
	held        *quota.Reservation
	service     *Service
	idleTimeout time.Duration
	expires     time.Time // at the latest

	// Guarded by service.mu, and set when it is in the list.
	uses    int
	entered int           // requests that prevent a move
	moving  chan struct{} // closed when a move has ended; nil: there is none
	tried   time.Time     // to move it, while a request used it
	idle    *time.Timer
	since   time.Time // it is not in use

	close func() error // once

	isolation   string             // its name
	permissions policy.Permissions // of all its runs
	longLived   longLived          // processes and contexts
	session     *Session           // that it ends with; nil: none

	request *requestjson.SandboxRequest // for another machine; nil: it stays here
}

// CreateSandbox creates a sandbox.
func (s *Service) CreateSandbox(ctx context.Context, c *Call, r *requestjson.SandboxRequest) (*resultjson.SandboxInfo, error) {
	return s.createSandbox(ctx, c, r, nil)
}

// createSandbox creates a sandbox, or takes over that of another machine.
func (s *Service) createSandbox(ctx context.Context, c *Call, r *requestjson.SandboxRequest, m *Moved) (*resultjson.SandboxInfo, error) {
	audit.Of(ctx).SetPermissions(r.Permissions)
	isolation, err := s.isolation(r.Isolation)
	if err != nil {
		return nil, err
	}
	tree := r.Tree
	tree.Isolation = isolation.Name // the default may change
	o, opened, err := s.options(c.Tenant, tree, r.Permissions, r.Cwd)
	if err != nil {
		return nil, err
	}
	defer opened.close()
	o.Env, o.Commands, o.Calls = r.Env, c.Commands, c.Calls
	if o.Bindings, err = c.bind(r.Globals); err != nil {
		return nil, err
	}
	set := s.settings.Load()
	idle, err := bounded("idleTimeoutMs", r.IdleTimeoutMs, set.IdleTimeoutMs)
	if err != nil {
		return nil, err
	}
	lifetime, err := bounded("lifetimeMs", r.LifetimeMs, set.LifetimeMs)
	if err != nil {
		return nil, err
	}
	if m != nil {
		o.Snapshot = m.Stored
	}
	sb, err := s.open(ctx, c.Tenant, o)
	if err != nil {
		return nil, err
	}
	if s.peers != Peers(noPeers{}) {
		sb.request = movable(c, r)
	}
	sb.isolation, sb.idleTimeout, sb.expires = isolation.Name, idle, sb.Created.Add(lifetime)
	if !c.Detached {
		sb.session = c.Session
	}
	if m != nil {
		sb.ID, sb.Created, sb.expires = m.ID, m.Created, m.Expires
		closeRuntime := sb.close
		sb.close = sync.OnceValue(func() error {
			defer s.forgetMoved(m.Stored)
			return closeRuntime()
		})
	}
	if m != nil && m.Paused {
		err = sb.runtime.Pause(ctx)
	}
	if err == nil {
		err = s.add(sb)
	}
	if err != nil {
		return nil, errors.Join(err, sb.close())
	}
	audit.Of(ctx).SetSandbox(sb.ID)
	return sb.Info(), nil
}

// open creates a sandbox that is not in the list yet.
func (s *Service) open(ctx context.Context, t *tenant.Tenant, o runtime.Options) (*Sandbox, error) {
	defer s.tenants.use(t.Name)() // before it is created
	return s.newSandbox(t, o, func() (*runtime.NodeRuntime, error) {
		done, err := s.Account(t).Wait(ctx, quota.Creates)
		if err != nil {
			return nil, err
		}
		defer done()
		return s.create(ctx, o)
	})
}

// newSandbox reserves the quota of a sandbox, and returns one from create that is not in the list yet. Closing it releases
// the quota.
func (s *Service) newSandbox(t *tenant.Tenant, o runtime.Options, create func() (*runtime.NodeRuntime, error)) (*Sandbox, error) {
	account := s.Account(t)
	l, reserve := runtime.DefaultLimits(), account.Reserve
	if strings.HasPrefix(o.Snapshot, MovedPrefix) {
		reserve = account.Adopt
	}
	held, err := reserve(quota.Limits{Sandboxes: 1, Disk: cmp.Or(o.Limits.Disk, l.Disk), Files: cmp.Or(o.Limits.Files, l.Files)})
	if err != nil {
		return nil, err
	}
	rt, err := create()
	if err != nil {
		held.Release()
		return nil, err
	}
	sb := &Sandbox{runtime: rt, ID: s.peers.NewID("sb-"), Created: time.Now(), owner: t.Name, account: account, held: held, service: s, permissions: o.Permissions, longLived: longLived{byID: map[string]entry{}}}
	unuse := s.tenants.use(t.Name)
	sb.close = sync.OnceValue(func() error {
		defer held.Release()
		defer unuse()
		return s.closeInTurn(rt.Close)
	})
	return sb, nil
}

// closeLogged closes a sandbox, and logs an error.
func (s *Service) closeLogged(sb *Sandbox) {
	if err := sb.close(); err != nil {
		s.log.Error("close a sandbox", "sandbox", sb.ID, "tenant", sb.owner, "err", err)
	}
}

// add adds a sandbox to the list, and starts its timers. From now on it can have processes and contexts.
func (s *Service) add(sb *Sandbox) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining { // or the client would get a sandbox that is closed at the same time
		return errDraining
	}
	closeRuntime := sb.close
	sb.close = sync.OnceValue(func() error { return sb.closeLongLived(closeRuntime) })
	s.sandboxes[sb.ID] = sb
	sb.since = time.Now()
	sb.idle = time.AfterFunc(sb.remaining(), sb.expire)
	return nil
}

// remaining is how long an unused sandbox lives.
//
// Preconditions: service.mu is held.
func (sb *Sandbox) remaining() time.Duration {
	return min(sb.idleTimeout, time.Until(sb.expires))
}

// expire deletes the sandbox if it is not in use, or its lifetime is over.
func (sb *Sandbox) expire() {
	s := sb.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining && (sb.uses == 0 || !time.Now().Before(sb.expires)) { // Close closes all
		sb.remove()
	}
}

// remove removes the sandbox from the list, if it has it, and closes it in the background.
//
// Preconditions: service.mu is held.
func (sb *Sandbox) remove() {
	s := sb.service
	if s.sandboxes[sb.ID] == nil {
		return
	}
	delete(s.sandboxes, sb.ID)
	sb.idle.Stop()
	s.work.Go(func() { s.closeLogged(sb) })
}

// Acquire returns a sandbox of the tenant. It is not deleted for being idle before Release, which
// the caller calls once. While the service is being stopped, only work that has begun gets one.
func (s *Service) Acquire(ctx context.Context, t *tenant.Tenant, id string) (*Sandbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining && !s.hasBegun(ctx) {
		return nil, errDraining
	}
	sb := s.sandboxes[id]
	if sb == nil || sb.owner != t.Name {
		return nil, cmp.Or[error](s.peers.Lost(id), Refuse(NotFound, "no sandbox %q", id))
	}
	if sb.moving != nil && sb.entered == 0 {
		return nil, errMoving
	}
	sb.uses++
	sb.idle.Reset(time.Until(sb.expires))
	return sb, nil
}

// Release ends a use of the sandbox, and restarts its idle timeout.
func (sb *Sandbox) Release() {
	s := sb.service
	s.mu.Lock()
	defer s.mu.Unlock()
	sb.uses--
	sb.since = time.Now()
	if sb.uses == 0 && s.sandboxes[sb.ID] != nil {
		sb.idle.Reset(sb.remaining())
	}
}

// MaxUpload is how many bytes the body of one request of the sandbox's tenant may have.
func (sb *Sandbox) MaxUpload() int64 { return sb.account.Limits().Upload }

// tenant returns the sandbox's tenant.
func (sb *Sandbox) tenant() *tenant.Tenant { return &tenant.Tenant{Name: sb.owner} }

// FS returns the sandbox's files.
func (sb *Sandbox) FS() hostfs.Files { return sb.runtime.FS() }

// Limits returns the sandbox's limits.
func (sb *Sandbox) Limits() runtime.Limits { return sb.runtime.Limits() }

// NewTransport returns a transport to servers of the sandbox.
func (sb *Sandbox) NewTransport() *http.Transport { return sb.runtime.NewTransport() }

// AddCommands adds programs that the client implements.
func (sb *Sandbox) AddCommands(_ context.Context, c *Call, _ *requestjson.InSandbox) (None, error) {
	if c.Session == nil || sb.session != c.Session {
		return None{}, Refuse(Invalid, "commands: only the session that created the sandbox can add some, because they end with it")
	}
	return None{}, sb.runtime.AddCommands(c.Commands)
}

// Info describes the sandbox.
func (sb *Sandbox) Info() *resultjson.SandboxInfo {
	sb.service.mu.Lock()
	expires := sb.since.Add(sb.idleTimeout)
	if sb.uses > 0 || expires.After(sb.expires) {
		expires = sb.expires
	}
	sb.service.mu.Unlock()
	return &resultjson.SandboxInfo{
		ID: sb.ID, Created: sb.Created, Expires: expires, LifetimeEnd: sb.expires, Isolation: sb.isolation,
		Paused: sb.runtime.Paused(), Processes: len(sb.runtime.Processes()), Missing: sb.runtime.Missing(),
	}
}

// Renew restarts the idle timeout of a sandbox, and describes it.
func (s *Service) Renew(ctx context.Context, c *Call, in *requestjson.InSandbox) (*resultjson.SandboxInfo, error) {
	sb, err := s.Acquire(ctx, c.Tenant, in.Sandbox)
	if err != nil {
		return nil, err
	}
	sb.Release()
	return sb.Info(), nil
}

// Pause stops all processes of the sandbox.
func (sb *Sandbox) Pause(ctx context.Context, _ *Call, _ *requestjson.InSandbox) (None, error) {
	return None{}, sb.runtime.Pause(ctx)
}

// Resume lets the processes continue.
func (sb *Sandbox) Resume(ctx context.Context, _ *Call, _ *requestjson.InSandbox) (None, error) {
	return None{}, sb.runtime.Resume(ctx)
}

// GetSandbox describes a sandbox without renewing it.
func (s *Service) GetSandbox(_ context.Context, c *Call, in *requestjson.InSandbox) (*resultjson.SandboxInfo, error) {
	if sb := s.find(c.Tenant, in.Sandbox); sb != nil {
		return sb.Info(), nil
	}
	return nil, cmp.Or[error](s.peers.Lost(in.Sandbox), Refuse(NotFound, "no sandbox %q", in.Sandbox))
}

// find returns a sandbox of the tenant, nil if it has none with the ID.
func (s *Service) find(t *tenant.Tenant, id string) *Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sb := s.sandboxes[id]; sb != nil && sb.owner == t.Name {
		return sb
	}
	return nil
}

// SandboxList is a list of sandboxes.
type SandboxList struct {
	Sandboxes []*resultjson.SandboxInfo `json:"sandboxes"`
	resultjson.MissingNodes
}

// ListSandboxes describes the tenant's sandboxes, the oldest first.
func (s *Service) ListSandboxes(_ context.Context, c *Call, _ *struct{}) (SandboxList, error) {
	list := []*resultjson.SandboxInfo{}
	for _, sb := range s.ofTenant(c.Tenant) {
		list = append(list, sb.Info())
	}
	return SandboxList{Sandboxes: list}, nil
}

func (s *Service) ofTenant(t *tenant.Tenant) (list []*Sandbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sb := range s.sandboxes {
		if sb.owner == t.Name {
			list = append(list, sb)
		}
	}
	slices.SortFunc(list, func(a, b *Sandbox) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Delete closes a sandbox of the tenant, with all that runs in it.
func (s *Service) Delete(ctx context.Context, c *Call, in *requestjson.InSandbox) (None, error) {
	sb, err := s.Acquire(ctx, c.Tenant, in.Sandbox)
	if err != nil {
		return None{}, err
	}
	s.mu.Lock()
	sb.remove()
	s.mu.Unlock()
	sb.Release()
	return None{}, sb.close()
}

// End closes the sandboxes of a session, in which no call is in progress. If the service is being closed, it closes them.
func (session *Session) End() {
	s := session.service
	_ = s.closeThose(func(sb *Sandbox) bool { return sb.session == session && !s.draining }) // which is logged
	if err := session.closeTools(); err != nil {
		s.log.Error("close the sandboxes of tools", "tenant", session.tenant.Name, "err", err)
	}
}

// closeThose closes the sandboxes that match.
func (s *Service) closeThose(match func(*Sandbox) bool) (err error) {
	s.mu.Lock()
	var list []*Sandbox
	for _, sb := range s.sandboxes {
		if match(sb) {
			list = append(list, sb)
			sb.remove()
		}
	}
	s.mu.Unlock()
	for _, sb := range list {
		err = errors.Join(err, sb.close()) // which remove has begun, and logs
	}
	return err
}

// EndSandboxes closes all sandboxes.
func (s *Service) EndSandboxes() error {
	return s.closeThose(func(*Sandbox) bool { return true })
}
