package egress

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"
)

// turns bound how many operations happen at the same time: of one client, of the clients that contain
// it, and of this process. Each element waits for a turn. No element bounds nothing.
type turns []func(context.Context) (release func(), err error)

// Each dial takes a descriptor of this process, and each question two. Together they leave most descriptors
// to the rest, and the limits of one client leave turns to others.
var (
	ownDials   = newTurns(max(16, min(1024, openFiles()/8)))
	ownPending = newTurns(max(16, min(256, openFiles()/32)))
)

// ownWork bounds how many connections and questions of sandboxes use processors of this process. Without
// it a thousand that are ready to run delay all else that this process does by their sum. One of each
// server takes part, so that servers take turns.
var ownWork = newTurns(max(1, goruntime.GOMAXPROCS(0)/2))

func openFiles() int {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return 1024
	}
	return int(min(files.Cur, 1<<20))
}

// newTurns returns turns for n at the same time, which take the others, too. Zero: there is no limit.
func newTurns(n int, others ...turns) turns {
	var own turns
	if n > 0 {
		slots := semaphore.NewWeighted(int64(n))
		own = turns{func(ctx context.Context) (func(), error) {
			if slots.Acquire(ctx, 1) != nil {
				return nil, context.Cause(ctx)
			}
			return func() { slots.Release(1) }, nil
		}}
	}
	return slices.Concat(append([]turns{own}, others...)...)
}

// acquire waits for all turns. The caller releases them. The turns of the parts are first, so that a
// client that waits for its own occupies none of the others'.
func (t turns) acquire(ctx context.Context) (release func(), err error) {
	var held []func()
	release = func() {
		for _, r := range slices.Backward(held) {
			r()
		}
	}
	for _, take := range t {
		r, err := take(ctx)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, r)
	}
	return release, nil
}

// Use is a kind of use that a [Quota] bounds.
type Use string

// The uses.
const (
	UseConnection Use = "connection" // open
	UseConnect    Use = "connect"    // to a server, without an answer yet
	UseLookup     Use = "lookup"     // a question to the host's resolver, without an answer yet
)

// A Quota bounds the use by the clients of several servers together. It returns a [*QuotaError] if a quota is
// used up, for a connection without waiting.
type Quota func(context.Context, Use) (release func(), err error)

// QuotaError reports an exhausted quota.
type QuotaError struct{ Quota string }

// Error returns the name of the limit in an [Event].
func (e *QuotaError) Error() string { return "quota." + e.Quota }

// quotaOf returns the name of the quota that has caused an error, or "".
func quotaOf(err error) string {
	if e, ok := errors.AsType[*QuotaError](err); ok {
		return e.Error()
	}
	return ""
}

// turns returns the quota's turns, or else this process's.
func (q Quota) turns(u Use, own turns) turns {
	if q == nil {
		return own
	}
	return turns{func(ctx context.Context) (func(), error) { return q(ctx, u) }}
}
