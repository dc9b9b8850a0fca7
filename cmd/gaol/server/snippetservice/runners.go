package snippetservice

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/runtime/snippets"
	"gaol/runtime/snippets/lint"
)

const (
	// runnerIdle is how long a runner is kept without a run: it has sandboxes that are ready.
	runnerIdle = time.Minute

	// maxRunners bounds the runners. Above it, one that is not in use is closed.
	maxRunners = 64
)

// key says which runs share a runner.
type key struct {
	settings                   *settings.Settings
	tenant, preset             string
	adapter, code, nodeModules string
	noLint                     bool
	rules                      *lint.Rules // nil: those of the adapter
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

// runners are those of all tenants.
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
