package service

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"gaol/runtime/resultjson"
)

const (
	// maxLongLived is how many active processes and contexts a sandbox has. It is less than the
	// runs that the SDK lets a sandbox have, so that some are left for others.
	maxLongLived = 48

	// retryLater is when to retry a request that exceeds the current room in a sandbox or
	// process.
	retryLater = time.Second
)

// longLived are the processes and contexts of a sandbox: active ones, and ended ones that are
// retained.
type longLived struct {
	mu        sync.Mutex
	closed    bool
	active    int
	processes map[string]*Process
	contexts  map[string]*Context
	work      sync.WaitGroup // of active ones
}

// newID returns an ID that is not used again and that cannot be guessed.
func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// start calls do, which starts a process or context, when it is the tenant's turn. Once that has
// ended, release must be called, which returns its quota, and then, when its end is recorded, leave.
func (sb *Sandbox) start(ctx context.Context, doing string, do func() error) (release, leave func(), err error) {
	free, leave, err := sb.longLived.reserve()
	if err != nil {
		return nil, nil, err
	}
	l := sb.Limits()
	unadmit, err := sb.account.Admit(ctx, l.Memory, l.CPUs)
	if err != nil {
		free()
		leave()
		return nil, nil, convert(err)
	}
	release = func() { unadmit(); free() }
	if err := do(); err != nil {
		release()
		leave()
		return nil, nil, sb.fail(doing, startError(err))
	}
	return release, leave, nil
}

// fail converts an error of the SDK, and logs it if it is not the tenant's fault.
func (sb *Sandbox) fail(doing string, err error) error {
	return sb.service.Convert(doing, sb.tenant(), err)
}

// reserve counts a process or context until free is called. Closing the sandbox waits for leave.
func (l *longLived) reserve() (free, leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, Refuse(Closed, "the sandbox has been deleted")
	}
	if l.active >= maxLongLived {
		return nil, nil, exceeded("the sandbox has %d active processes and contexts, the most it may have", maxLongLived)
	}
	l.active++
	l.work.Add(1)
	free = func() {
		l.mu.Lock()
		l.active--
		l.mu.Unlock()
	}
	return free, l.work.Done, nil
}

// closeLongLived calls closeRuntime, which ends all processes and contexts, and forgets them.
func (sb *Sandbox) closeLongLived(closeRuntime func() error) error {
	l := &sb.longLived
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	err := closeRuntime()
	l.work.Wait()
	sb.service.retained.removeSandbox(sb.owner, sb)
	return err
}

// byAge returns the values of a map, the oldest first.
func byAge[T any](l *longLived, m *map[string]T, started func(T) time.Time) []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(*m), func(a, b T) int { return started(a).Compare(started(b)) })
}

// find returns the value with an ID.
func find[T any](l *longLived, m *map[string]T, kind, id string) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := (*m)[id]
	if !ok {
		return v, Refuse(NotFound, "no %s %q in the sandbox", kind, id)
	}
	return v, nil
}

// insert adds a value.
func insert[T any](l *longLived, m *map[string]T, id string, v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *m == nil {
		*m = map[string]T{}
	}
	(*m)[id] = v
}

const (
	// retainTime is how long a process or context is kept after its end.
	retainTime = 10 * time.Minute

	// retainCount and retainBytes bound the retained entries of one tenant. The oldest are dropped
	// first, but never the newest.
	retainCount = 256
	retainBytes = 32 << 20
)

// retained are the processes and contexts of all tenants that have ended.
type retained struct {
	mu     sync.Mutex
	byName map[string][]*retainee // of a tenant, the oldest first
}

// retainee is a process or context that has ended.
type retainee struct {
	sandbox *Sandbox
	id      string
	bytes   int
	expiry  *time.Timer
}

// retain keeps a process or context that has ended for a while.
func (sb *Sandbox) retain(id string, bytes int) {
	r := &sb.service.retained
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		r.byName = map[string][]*retainee{}
	}
	e := &retainee{sandbox: sb, id: id, bytes: bytes}
	e.expiry = time.AfterFunc(retainTime, func() { r.remove(sb, id) })
	all := slices.Concat(r.byName[sb.owner], []*retainee{e})
	total := 0
	for i := len(all) - 1; i >= 0; i-- {
		total += all[i].bytes
		if n := len(all) - i; n > 1 && (n > retainCount || total > retainBytes) {
			for _, old := range all[:i+1] {
				old.forget()
			}
			all = slices.Clone(all[i+1:])
			break
		}
	}
	r.byName[sb.owner] = all
}

// forget removes an ended process or context from its sandbox.
func (e *retainee) forget() {
	e.expiry.Stop()
	l := &e.sandbox.longLived
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.processes, e.id)
	delete(l.contexts, e.id)
}

// remove forgets one process or context, if it is retained.
func (r *retained) remove(sb *Sandbox, id string) {
	r.removeFunc(sb.owner, func(e *retainee) bool { return e.sandbox == sb && e.id == id })
}

// removeSandbox forgets all processes and contexts of a sandbox.
func (r *retained) removeSandbox(owner string, sb *Sandbox) {
	r.removeFunc(owner, func(e *retainee) bool { return e.sandbox == sb })
}

func (r *retained) removeFunc(owner string, match func(*retainee) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(r.byName[owner], func(e *retainee) bool {
		if match(e) {
			e.forget()
			return true
		}
		return false
	})
	if len(left) == 0 {
		delete(r.byName, owner)
		return
	}
	r.byName[owner] = left
}

// Usage returns the sandbox's current usage.
func (sb *Sandbox) Usage(ctx context.Context) (*resultjson.SandboxUsage, error) {
	done, err := sb.service.listings.wait(ctx, sb.owner)
	if err != nil {
		return nil, err
	}
	defer done()
	r, err := sb.runtime.Resources(ctx)
	if err != nil {
		return nil, sb.fail("count resources", err)
	}
	return &resultjson.SandboxUsage{
		RunningProcesses: r.Processes, ExitedProcesses: sb.service.retained.count(sb), OpenFds: r.Descriptors,
		Sockets: r.Sockets, SocketListeners: r.Listeners, SocketConnections: r.Connections, Pipes: r.Pipes, Ptys: r.Terminals,
		MemoryBytes: r.Memory, DiskBytes: r.Disk, Inodes: r.Inodes, Truncated: r.Truncated,
	}, nil
}

// count returns how many ended processes and contexts of a sandbox are retained.
func (r *retained) count(sb *Sandbox) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.byName[sb.owner] {
		if e.sandbox == sb {
			n++
		}
	}
	return n
}
