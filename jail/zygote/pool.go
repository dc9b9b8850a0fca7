package zygote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
)

// Options limit the use of a zygote. Zero fields have defaults. Forks and Age are not
// strict: an old zygote is used until its successor is warm.
type Options struct {
	Forks int           // children of one zygote, which share an address space layout; default 5,000
	Age   time.Duration // since its start; default 10 minutes

	// Patience is how long a fork may take. It normally takes milliseconds: a zygote that
	// takes longer is considered hung and is replaced. The next attempt has twice as long,
	// so that a busy machine is not mistaken for a hung zygote. Default 2 seconds.
	Patience time.Duration
}

// Pool keeps a zygote warm and replaces it. It is safe for concurrent use.
type Pool struct {
	spec    Spec // its Cgroup is for the zygotes of this pool only
	options Options
	sweep   sync.Once

	mu         sync.Mutex
	now        *Zygote
	next       *successor // nil: none is being started
	closed     bool
	background sync.WaitGroup // goroutines
	closeErr   error          // of closing old zygotes
}

// successor is a zygote that is being started.
type successor struct {
	done   chan struct{} // closed when the start has ended
	zygote *Zygote       // valid then
	err    error
}

// NewPool returns a pool of zygotes that s describes. It does not start one yet. The
// zygotes' cgroup is a child of s.Cgroup. Successive zygotes share it, because the kernel keeps a removed group
// for as long as anything is charged to it, such as pages of the image that its zygote was the first to read.
func NewPool(s Spec, o Options) *Pool {
	o.Forks = cmp.Or(o.Forks, 5000)
	o.Age = cmp.Or(o.Age, 10*time.Minute)
	o.Patience = cmp.Or(o.Patience, 2*time.Second)
	s.Cgroup = fmt.Sprintf("%s/"+groupPattern, s.Cgroup, os.Getpid(), groups.Add(1))
	return &Pool{spec: s, options: o}
}

// ErrClosed is the error of a closed pool.
var ErrClosed = errors.New("the pool of zygotes is closed")

// Fork calls [Zygote.Fork]. If the zygote is broken, Fork replaces it and retries with the
// new one: the run has not started in that case.
func (p *Pool) Fork(ctx context.Context, e *Entry, program *Program) (*Child, error) {
	const attempts = 3
	var err error
	for attempt := range attempts {
		var z *Zygote
		var child *Child
		if z, err = p.get(ctx); err == nil {
			child, err = z.Fork(ctx, e, program, p.options.Patience<<attempt)
		}
		if !errors.Is(err, ErrBroken) {
			return child, err
		}
		p.drop(z)
	}
	return nil, err
}

// Warm starts a zygote in the background, unless there is one, so that the first Fork waits
// for less time.
func (p *Pool) Warm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && p.now == nil && p.next == nil {
		p.startNext()
	}
}

// Wait waits until a zygote is ready. It returns an error if none can be started.
func (p *Pool) Wait(ctx context.Context) error {
	_, err := p.get(ctx)
	return err
}

// get returns the current zygote. It starts one if there is none.
func (p *Pool) get(ctx context.Context) (*Zygote, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if p.next == nil && (p.now == nil || p.old(p.now)) {
		p.startNext()
	}
	z, next := p.now, p.next
	p.mu.Unlock()
	if z != nil {
		return z, nil
	}
	select {
	case <-next.done:
		return next.zygote, next.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// old reports whether it is time to start a successor, at nine tenths of a zygote's life.
func (p *Pool) old(z *Zygote) bool {
	forks, age := int(z.forks.Load()), time.Since(z.started)
	return forks >= p.options.Forks-p.options.Forks/10 || age >= p.options.Age-p.options.Age/10
}

// startNext starts a zygote in the background, which then replaces the current one.
//
// Preconditions: p.mu is held.
func (p *Pool) startNext() {
	next := &successor{done: make(chan struct{})}
	p.next = next
	p.background.Go(func() {
		p.sweep.Do(func() { _ = sweep(path.Dir(p.spec.Cgroup)) }) // leftover groups are harmless
		next.zygote, next.err = Start(p.spec)
		p.mu.Lock()
		old := p.now
		if next.err == nil {
			p.now = next.zygote
		} else {
			old = nil // keep the old one
		}
		p.next = nil
		close(next.done)
		p.mu.Unlock()
		p.retire(old)
	})
}

// drop closes a zygote, which may be nil, unless another goroutine does.
func (p *Pool) drop(z *Zygote) {
	p.mu.Lock()
	if p.now != z {
		z = nil
	} else {
		p.now = nil
	}
	p.mu.Unlock()
	p.retire(z)
}

// retire closes a zygote, which may be nil.
func (p *Pool) retire(z *Zygote) {
	if z == nil {
		return
	}
	z.mu.Lock() // waits for a fork
	z.broken = true
	z.mu.Unlock()
	err := z.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeErr = errors.Join(p.closeErr, err)
}

// Close closes the pool's zygote. Its children continue to run. Close is idempotent.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.background.Wait()
	p.mu.Lock()
	last := p.now
	p.mu.Unlock()
	p.drop(last)
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.closeErr, cgroup.Remove(context.Background(), p.spec.Cgroup))
}

var groups atomic.Int64

// groupPattern contains the pid of the host, for sweep.
const groupPattern = "zygote-%d-%d"

// sweep removes the groups below parent whose hosts are dead. Their zygotes died with them.
func sweep(parent string) error {
	group, err := cgroup.Open(parent)
	if err != nil {
		return err
	}
	return group.Sweep(context.Background(), func(name string) bool {
		var pid, n int
		if _, err := fmt.Sscanf(name, groupPattern, &pid, &n); err != nil {
			return true
		}
		return unix.Kill(pid, 0) != unix.ESRCH
	})
}
