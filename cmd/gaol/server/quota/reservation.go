package quota

import (
	"context"
	"errors"
	"os"
	"reflect"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
)

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
