package service

import (
	"context"
	"slices"
	"sync"
	"time"

	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

const (
	// maxLongLived bounds the active processes and contexts of a sandbox. The SDK allows more runs, so that others can
	// start beside them.
	maxLongLived = 48

	// retryLater is when to retry a request that a sandbox or process has no room for now.
	retryLater = time.Second
)

// longLived are the processes and contexts of a sandbox: active ones, and ended ones that are
// retained.
type longLived struct {
	mu     sync.Mutex
	closed bool
	active int
	byID   map[string]entry
	work   sync.WaitGroup // of active ones
}

// entry is a [Process] or a [Context].
type entry interface{ common() *program }

// program is the common part of processes and contexts.
type program struct {
	ID string

	sandbox *Sandbox
	started time.Time
	unadmit func()        // returns its quota
	ended   chan struct{} // closed when it has ended and is retained

	// Of an ended one, guarded by retained.mu.
	bytes  int
	expiry *time.Timer
}

func (p *program) common() *program { return p }

// start starts a process or context by do when it is the tenant's turn. The caller then adds it to the sandbox, and when
// it has ended calls release, and then retain.
func (sb *Sandbox) start(ctx context.Context, prefix string, do func(context.Context) error) (p program, err error) {
	ctx, end, err := sb.service.Begin(ctx)
	if err != nil {
		return p, err
	}
	defer end()
	if err := sb.longLived.reserve(); err != nil {
		return p, err
	}
	l := sb.Limits()
	unadmit, err := sb.account.Admit(ctx, l.Memory, l.CPUs)
	if err == nil {
		if err = startError(do(ctx)); err != nil {
			unadmit()
		}
	}
	if err != nil {
		sb.longLived.free()
		sb.longLived.work.Done()
		return p, err
	}
	return program{ID: sb.service.peers.NewID(prefix), sandbox: sb, started: time.Now(), unadmit: unadmit, ended: make(chan struct{})}, nil
}

// reserve counts a process or context until free is called. Closing the sandbox waits for its work.
func (l *longLived) reserve() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return Refuse(Closed, "the sandbox has been deleted")
	}
	if l.active >= maxLongLived {
		return exceeded("the sandbox has %d active processes and contexts, the most it may have", maxLongLived)
	}
	l.active++
	l.work.Add(1)
	return nil
}

func (l *longLived) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active--
}

// release returns the quota of a program that has ended.
func (p *program) release() {
	p.unadmit()
	p.sandbox.longLived.free()
}

// closeLongLived calls closeRuntime, which ends all processes and contexts, and forgets them.
func (sb *Sandbox) closeLongLived(closeRuntime func() error) error {
	l := &sb.longLived
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	err := closeRuntime()
	l.work.Wait()
	sb.service.retained.remove(sb.owner, func(p *program) bool { return p.sandbox == sb })
	return err
}

// add adds a process or context.
func (l *longLived) add(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byID[e.common().ID] = e
}

// find returns the process or context with an ID.
func find[T entry](sb *Sandbox, kind, id string) (T, error) {
	l := &sb.longLived
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.byID[id].(T)
	if !ok {
		return e, Refuse(NotFound, "no %s %q in the sandbox", kind, id)
	}
	return e, nil
}

// describe describes the processes or the contexts of a sandbox, the oldest first.
func describe[T entry, Info any](sb *Sandbox, info func(T) Info) []Info {
	l := &sb.longLived
	l.mu.Lock()
	var found []T
	for _, e := range l.byID {
		if e, ok := e.(T); ok {
			found = append(found, e)
		}
	}
	l.mu.Unlock()
	slices.SortFunc(found, func(a, b T) int { return a.common().started.Compare(b.common().started) })
	list := []Info{}
	for _, e := range found {
		list = append(list, info(e))
	}
	return list
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
	byName map[string][]*program // of a tenant, the oldest first
}

// retain keeps a process or context that has ended for a while.
func (p *program) retain(bytes int) {
	defer p.sandbox.longLived.work.Done()
	p.sandbox.service.retained.add(p, bytes)
	close(p.ended)
}

func (r *retained) add(p *program, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.bytes, p.expiry = bytes, time.AfterFunc(retainTime, p.forget)
	owner := p.sandbox.owner
	r.byName[owner] = append(r.byName[owner], p)
	all, total := r.byName[owner], 0
	for _, p := range all {
		total += p.bytes
	}
	for len(all) > 1 && (len(all) > retainCount || total > retainBytes) {
		all[0].drop()
		total -= all[0].bytes
		all = slices.Delete(all, 0, 1)
	}
	r.byName[owner] = all
}

// drop removes an ended process or context from its sandbox.
func (p *program) drop() {
	p.expiry.Stop()
	l := &p.sandbox.longLived
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, p.ID)
}

// forget forgets a process or context, if it is retained.
func (p *program) forget() {
	p.sandbox.service.retained.remove(p.sandbox.owner, func(other *program) bool { return other == p })
}

// remove forgets retained processes and contexts.
func (r *retained) remove(owner string, match func(*program) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(r.byName[owner], func(p *program) bool {
		if !match(p) {
			return false
		}
		p.drop()
		return true
	})
	if len(left) == 0 {
		delete(r.byName, owner)
		return
	}
	r.byName[owner] = left
}

// Usage returns the sandbox's current usage.
func (sb *Sandbox) Usage(ctx context.Context, _ *Call, _ *requestjson.InSandbox) (*resultjson.SandboxUsage, error) {
	r, err := sb.runtime.Resources(ctx)
	if err != nil {
		return nil, err
	}
	return &resultjson.SandboxUsage{Resources: r, ExitedProcesses: sb.service.retained.count(sb)}, nil
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
