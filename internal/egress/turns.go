package egress

import (
	"context"
	"errors"
	goruntime "runtime"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"
)

// turns bounds how many operations happen at the same time: of one client, of the clients that contain
// it, and of this process. A nil turns bounds nothing.
type turns struct {
	take   func(context.Context) (release func(), err error) // waits for a turn
	parent *turns
}

// Each dial takes a descriptor of this process, and each question two. Together they leave most descriptors
// to the rest, and the limits of one client leave turns to others.
var (
	ownDials   = newTurns(max(16, min(1024, openFiles()/8)), nil)
	ownPending = newTurns(max(16, min(256, openFiles()/32)), nil)
)

// ownWork bounds how many connections and questions of sandboxes use processors of this process. Without
// it a thousand that are ready to run delay all else that this process does by their sum. One of each
// server takes part, so that servers take turns.
var ownWork = newTurns(max(1, goruntime.GOMAXPROCS(0)/2), nil)

func openFiles() int {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return 1024
	}
	return int(min(files.Cur, 1<<20))
}

// newTurns returns turns for n at the same time, which take one of parent, too. Zero: there is no limit.
func newTurns(n int, parent *turns) *turns {
	if n <= 0 {
		return &turns{take: func(context.Context) (func(), error) { return func() {}, nil }, parent: parent}
	}
	slots := semaphore.NewWeighted(int64(n))
	return &turns{parent: parent, take: func(ctx context.Context) (func(), error) {
		if slots.Acquire(ctx, 1) != nil {
			return nil, context.Cause(ctx)
		}
		return func() { slots.Release(1) }, nil
	}}
}

// acquire waits for a turn. The caller releases it. All take the turns of the parts first, so that a
// client that waits for its own occupies none of the others'.
func (t *turns) acquire(ctx context.Context) (release func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	own, err := t.take(ctx)
	if err != nil {
		return nil, err
	}
	parents, err := t.parent.acquire(ctx)
	if err != nil {
		own()
		return nil, err
	}
	return func() { parents(); own() }, nil
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
func (q Quota) turns(u Use, own *turns) *turns {
	if q == nil {
		return own
	}
	return &turns{take: func(ctx context.Context) (func(), error) { return q(ctx, u) }}
}
