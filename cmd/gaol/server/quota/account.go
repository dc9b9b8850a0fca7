package quota

import (
	"context"
	"errors"
	"maps"
	"os"
	"reflect"
	"runtime/debug"
	"sync"
	"sync/atomic"
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

// Account is what one tenant uses.
type Account struct {
	server   *Server
	name     string
	limits   Limits
	use      amounts // by the tenant now
	requests *rate.Limiter
	slots    slots
	turns    int // that it has, or waits for

	shared  amounts // limits that the fleet shares; 0: it does not
	granted *grants // nil without a fleet
}

func (s *Server) observe(err error) {
	if e, ok := errors.AsType[*Exceeded](err); ok {
		s.observer.Refused(e)
	}
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
		maps.DeleteFunc(s.accounts, func(_ string, a *Account) bool { // a new account would be the same
			return a.use == amounts{} && a.turns == 0 && (a.granted == nil || !a.granted.kept) && a.requests.Tokens() >= float64(a.requests.Burst())
		})
		s.sweepAt = max(minSweep, 2*len(s.accounts))
	}
	l, shared := s.limitsOf(name)
	a := &Account{server: s, name: name, limits: l, requests: limiter(l.Requests), slots: tenantSlots(l), shared: shared}
	if s.ledger != nil {
		a.granted = &grants{}
	}
	s.accounts[name] = a
	return a
}

// minSweep is how many accounts there are at least before unused ones are forgotten.
const minSweep = 128

// current returns the account of the same tenant that the server has now: a may be forgotten.
//
// Preconditions: the server's lock is held.
func (a *Account) current() *Account { return a.server.account(a.name) }

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

// Admit waits for the turn of a run with limits of memory and processors, until release is called
// or ctx ends. If the run needs more than the tenant or the server has left, or if its turn does
// not come within 10 seconds, it returns an [*Exceeded].
//
// Starts take turns: as many as the processors can take, a few of each tenant, one tenant after
// another. Keeping a process or context running does not prevent others from starting.
func (a *Account) Admit(ctx context.Context, memory int64, cpus float64) (release func(), err error) {
	held, err := a.Reserve(Limits{Runs: 1, Memory: memory, CPUs: cpus})
	if err != nil {
		return nil, err
	}
	start := time.Now()
	free, err := a.Wait(ctx, Starts)
	a.server.observer.Queued(time.Since(start))
	if err != nil {
		held.Release()
		return nil, err
	}
	return func() { free(); held.Release() }, nil
}

// LargeText is from how many bytes on a text of JSON needs a slot of [Texts].
const LargeText = 64 << 10

// textRate is how many bytes of large texts a tenant can send in a second. Beside it a neighbour's requests need at most
// 2.2 times as long (make attack).
const textRate = 128 << 20

// WaitText is [Account.Wait] for [Texts]. The tenant's slot stays occupied after free for as long as [textRate] gives
// to the bytes.
func (a *Account) WaitText(ctx context.Context, bytes int) (free func(), err error) {
	return a.wait(ctx, Texts, time.Duration(bytes)*time.Second/textRate)
}

// Wait waits for a slot, first of the tenant and then of the server, until free is called or ctx ends. If the tenant's
// turn does not come in time, it returns an [*Exceeded].
func (a *Account) Wait(ctx context.Context, k Kind) (free func(), err error) {
	return a.wait(ctx, k, 0)
}

// wait is Wait, but the tenant's slot stays occupied for some time after free.
func (a *Account) wait(ctx context.Context, k Kind, rest time.Duration) (free func(), err error) {
	s := a.server
	if s.noTurns {
		return func() {}, nil
	}
	s.mu.Lock()
	a = a.current()
	a.turns++
	own, all := a.slots[k], s.slots[k]
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		a.turns--
	}
	late, cancel := context.WithTimeout(ctx, waits[k].wait)
	defer cancel()
	exceeded := &Exceeded{Limit: waits[k].limit, RetryAfter: retryAfter}
	if err = own.Acquire(late, 1); err == nil {
		exceeded.Server = true
		if err = all.Acquire(late, 1); err != nil {
			own.Release(1)
		}
	}
	if err != nil {
		leave()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		s.observe(exceeded)
		return nil, exceeded
	}
	rested := func() { own.Release(1); leave() }
	free = sync.OnceFunc(func() {
		all.Release(1)
		if rest == 0 {
			rested()
			return
		}
		time.AfterFunc(rest, rested)
	})
	if most := waits[k].most; most > 0 {
		time.AfterFunc(most, free)
	}
	return free, nil
}

// Adopt is Reserve for something that another node of the fleet holds until it has moved: it does not count twice.
func (a *Account) Adopt(u Limits) (*Reservation, error) {
	r := &Reservation{server: a.server, account: a}
	r.Moved.Store(true)
	defer r.Moved.Store(false)
	return r, r.Add(u)
}

// Reservation is a part of a tenant's quotas, and of the server's. Its methods may be called from several
// goroutines.
type Reservation struct {
	server  *Server
	account *Account
	use     amounts
	over    bool

	// Moved is set when another node also holds the reservation, and counts it against the limits.
	Moved atomic.Bool
}

// Reserve reserves a part of the quotas until the reservation is released, or returns an [*Exceeded].
func (a *Account) Reserve(u Limits) (*Reservation, error) {
	r := &Reservation{server: a.server, account: a}
	share := uint64(reservedShare)
	if u.Concurrent > 0 {
		share = repliesShare
	}
	if u.Concurrent+u.Sandboxes+u.Runs+u.Sessions+u.Connections > 0 && !spareDescriptors(share) {
		a.server.observe(errDescriptors)
		return nil, errDescriptors
	}
	if err := r.grow(u.amounts()); err != nil {
		return nil, err
	}
	return r, nil
}

// Hold adds memory to the reservation, or returns an [*Exceeded]. A negative number of bytes releases some.
func (r *Reservation) Hold(bytes int64) error { return r.Add(Limits{Bodies: bytes}) }

// Add adds to the reservation, or returns an [*Exceeded].
func (r *Reservation) Add(u Limits) error { return r.grow(u.amounts()) }

// grow adds to a reservation. After Release it does nothing.
func (r *Reservation) grow(u amounts) error {
	short, err := r.try(u)
	if short {
		err = r.obtain(u)
	}
	r.server.observe(err)
	return err
}

// try is grow without asking other nodes. It reports whether this node lacks grants.
func (r *Reservation) try(u amounts) (short bool, err error) {
	s := r.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.over {
		return false, nil
	}
	if r.use == (amounts{}) {
		r.account = r.account.current() // an unused one may have been forgotten
	}
	if err := u.check(r.account.use, r.account.limits, false); err != nil {
		return false, err
	}
	if err := u.check(s.total, s.limits, true); err != nil {
		return false, err
	}
	if err := r.checkGrants(u); err != nil {
		return true, err
	}
	r.change(u, 1)
	return false, nil
}

// Release ends the reservation. Later calls have no effect.
func (r *Reservation) Release() {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	if g := r.account.granted; g != nil && r.Moved.Load() {
		for i, n := range r.use {
			g.may[i] -= n
		}
	}
	r.change(r.use, -1)
	r.over = true
}

// change changes the sums that the reservation is a part of.
//
// Preconditions: the server's lock is held.
func (r *Reservation) change(u amounts, sign float64) {
	before := r.use[bodies]
	for _, sum := range []*amounts{&r.use, &r.account.use, &r.server.total} {
		for i, n := range u {
			sum[i] += sign * n
		}
	}
	if g := r.account.granted; g != nil {
		for i, n := range r.account.use {
			g.peak[i] = max(g.peak[i], n)
		}
	}
	if freed := before - r.use[bodies]; freed > 0 {
		r.server.released(int64(freed))
	}
}

// amounts are how much there is of what [Limits] bound, by the index of the field.
type amounts [fields]float64

func (l Limits) amounts() (a amounts) {
	for i := range a {
		if f := reflect.ValueOf(l).Field(i); f.CanInt() {
			a[i] = float64(f.Int())
		} else {
			a[i] = f.Float()
		}
	}
	return a
}

func (u amounts) byName() map[string]float64 {
	all := map[string]float64{}
	for i, n := range u {
		if n != 0 {
			all[names[i]] = n
		}
	}
	return all
}

// check returns an error if used and u together exceed most.
func (u amounts) check(used amounts, most Limits, server bool) error {
	for i, limit := range most.amounts() {
		switch {
		case u[i] <= 0:
		case u[i] > limit:
			return &Exceeded{Limit: names[i], Server: server}
		case used[i]+u[i] > limit+1e-9: // sums of fractions
			return &Exceeded{Limit: names[i], Server: server, RetryAfter: retryAfter}
		}
	}
	return nil
}

// Egress is a [runtime.Options] NetworkQuota: a connection that exceeds the limits is refused, and connects and look-ups
// wait for their turn.
func (a *Account) Egress(ctx context.Context, u runtime.NetworkUse) (release func(), err error) {
	switch {
	case u == runtime.NetworkConnection:
		var held *Reservation
		if held, err = a.Reserve(Limits{EgressConnections: 1}); err == nil {
			release = held.Release
		}
	case !spareDescriptors(reservedShare): // connects and look-ups take some
		a.server.observe(errDescriptors)
		err = errDescriptors
	case u == runtime.NetworkConnect:
		release, err = a.Wait(ctx, Connects)
	default:
		release, err = a.Wait(ctx, Lookups)
	}
	if e, ok := errors.AsType[*Exceeded](err); ok {
		err = &runtime.NetworkQuotaError{Quota: e.Limit}
	}
	return release, err
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
