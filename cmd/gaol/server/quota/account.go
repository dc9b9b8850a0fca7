package quota

import (
	"context"
	"errors"
	"maps"
	"os"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"gaol/runtime"
)

const (
	// startSlots and startsOfTenant are how many runs for each processor start at the same time:
	// of all tenants, and of one. A tenant cannot take all slots, so that another one's run
	// starts without delay.
	startSlots     = 3
	startsOfTenant = 2

	retryAfter = time.Second
)

// Server holds the accounts of all tenants.
type Server struct {
	mu       sync.Mutex
	limits   Limits // of all together
	tenant   Limits // of one, unless special has others
	special  map[string]Limits
	total    Limits // what all use
	requests *rate.Limiter
	accounts map[string]*Account
	sweepAt  int // accounts at which unused ones are forgotten
	slots    slots
	noTurns  bool
	observer Observer

	garbage   int64 // bytes released since memory was returned to the system
	returning bool  // a return, or the pause after it
}

// Account is what one tenant uses.
type Account struct {
	server   *Server
	name     string
	limits   Limits
	use      Limits // by the tenant now
	requests *rate.Limiter
	slots    slots
	turns    int // that it has, or waits for
}

// NewServer returns a server without tenants. Special overrides the limits of some tenants. Zero fields of
// tenant and special take the value of server.
func NewServer(server, tenant Limits, special map[string]Limits) *Server {
	s := &Server{accounts: map[string]*Account{}, sweepAt: minSweep, observer: Observer{func(*Exceeded) {}, func(time.Duration) {}}}
	s.Set(server, tenant, special)
	return s
}

// Observer has functions that a server calls, for metrics.
type Observer struct {
	Refused func(*Exceeded)     // a quota was exceeded
	Queued  func(time.Duration) // a run has waited for its turn, or until it gave up
}

// Observe sets the observer. It must be called before the server is used.
func (s *Server) Observe(o Observer) { s.observer = o }

func (s *Server) observe(err error) {
	if e, ok := errors.AsType[*Exceeded](err); ok {
		s.observer.Refused(e)
	}
}

// DisableTurns lets everything that the limits allow start without a turn. It is for a server with one
// tenant, and called before it is used.
func (s *Server) DisableTurns() { s.noTurns = true }

// Set replaces the limits. Reservations that exceed the new ones stay, and what waits keeps its place.
func (s *Server) Set(server, tenant Limits, special map[string]Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits, s.tenant, s.special = server, tenant.Or(server), maps.Clone(special)
	s.slots = serverSlots(server)
	s.requests = limiter(server.Requests)
	for _, a := range s.accounts {
		a.limits = s.limitsOf(a.name)
		a.requests, a.slots = limiter(a.limits.Requests), tenantSlots(a.limits)
	}
}

func (s *Server) limitsOf(name string) Limits { return s.special[name].Or(s.tenant) }

func limiter(perSec float64) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSec), max(1, int(2*perSec)))
}

// Account returns the account of a tenant.
func (s *Server) Account(name string) *Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.account(name)
}

// account returns the account of a tenant. It forgets unused accounts when there are twice
// as many as the last time: there can be a tenant for each user id.
//
// Preconditions: s.mu is held.
func (s *Server) account(name string) *Account {
	if a := s.accounts[name]; a != nil {
		return a
	}
	if len(s.accounts) >= s.sweepAt {
		maps.DeleteFunc(s.accounts, func(_ string, a *Account) bool { return a.isUnused() })
		s.sweepAt = max(minSweep, 2*len(s.accounts))
	}
	l := s.limitsOf(name)
	a := &Account{server: s, name: name, limits: l, requests: limiter(l.Requests), slots: tenantSlots(l)}
	s.accounts[name] = a
	return a
}

// minSweep is how many accounts there are at least before unused ones are forgotten.
const minSweep = 128

// isUnused reports whether a new account would be the same.
//
// Preconditions: the server's lock is held.
func (a *Account) isUnused() bool {
	return a.use == Limits{} && a.turns == 0 && a.requests.Tokens() >= float64(a.requests.Burst())
}

// current returns the account of the same tenant that the server has now: a may be forgotten.
//
// Preconditions: the server's lock is held.
func (a *Account) current() *Account { return a.server.account(a.name) }

// Usage returns what each tenant uses now.
func (s *Server) Usage() map[string]Limits {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Limits{}
	for name, a := range s.accounts {
		all[name] = a.use
	}
	return all
}

// Plus returns the sum of the limits.
func (l Limits) Plus(other Limits) Limits {
	l.change(other, 1)
	return l
}

// ServerLimits returns the limits of all tenants together.
func (a *Account) ServerLimits() Limits {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	return a.server.limits
}

// Limits returns the tenant's limits.
func (a *Account) Limits() Limits {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	return a.current().limits
}

// Request counts a request, or returns an [*Exceeded].
func (a *Account) Request() (err error) {
	defer func() { a.server.observe(err) }()
	a.server.mu.Lock()
	own, all := a.current().requests, a.server.requests
	a.server.mu.Unlock()
	if !own.Allow() {
		return &Exceeded{Limit: "requestsPerSec", RetryAfter: retryAfter}
	}
	if !all.Allow() {
		return &Exceeded{Limit: "requestsPerSec", Server: true, RetryAfter: retryAfter}
	}
	return nil
}

// Enter counts a request with a body of some bytes until the reservation is released, or returns an [*Exceeded].
func (a *Account) Enter(body int64) (*Reservation, error) {
	return a.reserve(Limits{Concurrent: 1, Bodies: body})
}

// Reserve reserves a sandbox with a disk limit until release is called, or returns an
// [*Exceeded].
func (a *Account) Reserve(disk int64) (release func(), err error) {
	return a.add(Limits{Sandboxes: 1, Disk: disk})
}

// Session counts a session until the reservation is released, or returns an [*Exceeded].
func (a *Account) Session() (*Reservation, error) { return a.reserve(Limits{Sessions: 1}) }

// Connect reserves a connection to a guest's port until release is called, or returns an
// [*Exceeded].
func (a *Account) Connect() (release func(), err error) { return a.add(Limits{Connections: 1}) }

// Admit waits for the turn of a run with limits of memory and processors, until release is called
// or ctx ends. If the run needs more than the tenant or the server has left, or if its turn does
// not come within 10 seconds, it returns an [*Exceeded].
//
// Starts take turns: as many as the processors can take, a few of each tenant, one tenant after
// another. Keeping a process or context running does not prevent others from starting.
func (a *Account) Admit(ctx context.Context, memory int64, cpus float64) (release func(), err error) {
	unreserve, err := a.add(Limits{Runs: 1, Memory: memory, CPUs: cpus})
	if err != nil {
		return nil, err
	}
	start := time.Now()
	free, err := a.server.wait(ctx, a, Starts)
	a.server.observer.Queued(time.Since(start))
	if err != nil {
		unreserve()
		a.server.observe(err)
		return nil, err
	}
	return func() { free(); unreserve() }, nil
}

// LargeText is from how many bytes on a text of JSON needs a slot of [Texts].
const LargeText = 64 << 10

// Wait waits for a slot until done is called or ctx ends. If the tenant's turn does not come in time, it returns an
// [*Exceeded].
func (a *Account) Wait(ctx context.Context, k Kind) (done func(), err error) {
	return a.server.wait(ctx, a, k)
}

// Reservation is a part of a tenant's quotas, and of the server's. Its methods may be called from several
// goroutines.
type Reservation struct {
	server  *Server
	account *Account
	use     Limits
	over    bool
}

// reserve makes a reservation if the limits allow it.
func (a *Account) reserve(u Limits) (*Reservation, error) {
	r := &Reservation{server: a.server, account: a}
	share := uint64(reservedShare)
	if u.Concurrent > 0 {
		share = repliesShare
	}
	if u.Concurrent+u.Sandboxes+u.Runs+u.Sessions+u.Connections > 0 && !spareDescriptors(share) {
		a.server.observe(errDescriptors)
		return nil, errDescriptors
	}
	return r, r.grow(u)
}

// add is reserve for a reservation that does not grow.
func (a *Account) add(u Limits) (release func(), err error) {
	r, err := a.reserve(u)
	if err != nil {
		return nil, err
	}
	return r.Release, nil
}

// Hold adds memory to the reservation, or returns an [*Exceeded]. A negative number of bytes releases some.
func (r *Reservation) Hold(bytes int64) error { return r.grow(Limits{Bodies: bytes}) }

// grow adds to a reservation. After Release it does nothing.
func (r *Reservation) grow(u Limits) (err error) {
	s := r.server
	defer func() { s.observe(err) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.over {
		return nil
	}
	if r.use == (Limits{}) {
		r.account = r.account.current() // an unused one may have been forgotten
	}
	if err := u.check(r.account.use, r.account.limits, false); err != nil {
		return err
	}
	if err := u.check(s.total, s.limits, true); err != nil {
		return err
	}
	r.change(u, 1)
	return nil
}

// Release ends the reservation. Later calls have no effect.
func (r *Reservation) Release() {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.change(r.use, -1)
	r.over = true
}

// change changes the sums that the reservation is a part of.
//
// Preconditions: the server's lock is held.
func (r *Reservation) change(u Limits, sign int) {
	for _, sum := range []*Limits{&r.use, &r.account.use, &r.server.total} {
		sum.change(u, sign)
	}
	if freed := -int64(sign) * u.Bodies; freed > 0 {
		r.server.released(freed)
	}
}

func (l *Limits) change(by Limits, sign int) {
	values := reflect.ValueOf(by)
	for i := range names {
		f, v := reflect.ValueOf(l).Elem().Field(i), values.Field(i)
		switch {
		case v.IsZero():
		case v.CanInt():
			f.SetInt(f.Int() + int64(sign)*v.Int())
		default:
			f.SetFloat(f.Float() + float64(sign)*v.Float())
		}
	}
}

// check returns an error if used and l together exceed most.
func (l Limits) check(used, most Limits, server bool) error {
	taken, limits := reflect.ValueOf(used), reflect.ValueOf(most)
	for i, name := range names {
		more, limit := number(reflect.ValueOf(l).Field(i)), number(limits.Field(i))
		switch {
		case more <= 0:
		case more > limit:
			return &Exceeded{Limit: name, Server: server}
		case number(taken.Field(i))+more > limit+1e-9: // sums of fractions
			return &Exceeded{Limit: name, Server: server, RetryAfter: retryAfter}
		}
	}
	return nil
}

// Egress is a [runtime.Options] NetworkQuota: a connection that exceeds the limits is refused, and connects and look-ups
// wait for their turn.
func (a *Account) Egress(ctx context.Context, u runtime.NetworkUse) (release func(), err error) {
	switch u {
	case runtime.NetworkConnection:
		release, err = a.add(Limits{EgressConnections: 1})
	case runtime.NetworkConnect:
		release, err = a.queue(ctx, Connects)
	default:
		release, err = a.queue(ctx, Lookups)
	}
	if e, ok := errors.AsType[*Exceeded](err); ok {
		err = &runtime.NetworkQuotaError{Quota: e.Limit}
	}
	return release, err
}

// queue waits for a slot that takes descriptors.
func (a *Account) queue(ctx context.Context, k Kind) (free func(), err error) {
	if !spareDescriptors(reservedShare) {
		err = errDescriptors
	} else {
		free, err = a.server.wait(ctx, a, k)
	}
	a.server.observe(err)
	return free, err
}

var errDescriptors = &Exceeded{Limit: "openFiles", Server: true, RetryAfter: retryAfter}

// Parts of the process's descriptors. Sandboxes, runs, sessions and connections leave an eighth for requests and their
// files, and these leave a half of it for accepting clients, replying to them, and ending what exists.
const (
	reservedShare = 8
	repliesShare  = 16
)

// spareDescriptors reports whether more of the process's descriptors are free than one of share. The lowest free number
// shows it in a microsecond: there are at least as many open descriptors below it.
func spareDescriptors(share uint64) bool {
	var most unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &most) != nil {
		return true
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return false
	}
	defer null.Close()
	return uint64(null.Fd()) < most.Cur-most.Cur/share
}

// Go collects what large requests have held only when the heap has doubled, or two minutes after they have ended.
// So the server returns that memory to the system itself when it may be much, and not often: it scans the whole heap.
const (
	muchReleased = 64 << 20
	returnDelay  = 200 * time.Millisecond // handlers still refer to released memory
	returnPause  = 10 * time.Second
)

// released counts bytes that reservations held until now.
//
// Preconditions: s.mu is held.
func (s *Server) released(bytes int64) {
	if s.garbage += bytes; s.garbage <= muchReleased || s.returning {
		return
	}
	s.returning = true
	time.AfterFunc(returnDelay, func() {
		s.mu.Lock()
		s.garbage = 0
		s.mu.Unlock()
		debug.FreeOSMemory()
		time.AfterFunc(returnPause, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.returning = false
			s.released(0)
		})
	})
}
