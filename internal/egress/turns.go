package egress

import (
	"context"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// turns bounds how many of something happen at the same time: of one client, of those that it is a part
// of, and of this process. A nil turns bounds nothing.
type turns struct {
	slots  chan struct{} // nil: no limit
	parent *turns
}

// Each dial takes a descriptor of this process, and each question two. Together they leave most to the
// rest. Those of one client without a limit of its own leave others their turns.
var (
	ownDials   = newTurns(max(16, min(1024, openFiles()/8)), nil)
	ownPending = newTurns(max(16, min(256, openFiles()/32)), nil)
	ownEarly   = newTurns(max(16, min(256, openFiles()/64)), nil) // sockets that relays have sent before they are needed
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

// newTurns returns turns for n at the same time, which take one of parent, too.
func newTurns(n int, parent *turns) *turns {
	t := &turns{parent: parent}
	if n > 0 {
		t.slots = make(chan struct{}, n)
	}
	return t
}

// acquire waits for a turn. The caller releases it. All take the turns of the parts first, so that a
// client that waits for its own occupies none of the others'.
func (t *turns) acquire(ctx context.Context) (release func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	if t.slots != nil {
		select {
		case t.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	releaseParent, err := t.parent.acquire(ctx)
	if err != nil {
		if t.slots != nil {
			<-t.slots
		}
		return nil, err
	}
	return func() {
		releaseParent()
		if t.slots != nil {
			<-t.slots
		}
	}, nil
}

// try takes a turn of t alone if there is one now.
func (t *turns) try() (ok bool) {
	select {
	case t.slots <- struct{}{}:
		return true
	default:
		return false
	}
}
