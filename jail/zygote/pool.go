package zygote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
)

// Options says how long a zygote is used. A zero field takes its default.
type Options struct {
	Forks int           // children of one zygote, which have the same address layout; default 5,000
	Age   time.Duration // since its start; default 10 minutes
}

const (
	defaultForks = 5000
	defaultAge   = 10 * time.Minute
	ahead        = 10 // a tenth of its life before the end its successor is started
)

// Pool keeps one zygote of a kind. Its methods may be called from several
// goroutines at once.
type Pool struct {
	spec    Spec
	parent  string // cgroup of the zygotes'
	options Options

	mu     sync.Mutex
	now    *Zygote
	next   chan struct{} // closed when the successor being started is there, or is not; nil: none is
	err    error         // of the last start
	ended  bool
	ending sync.WaitGroup // of what happens in the background
	failed error          // of closing old ones

	sweep func(context.Context) error // does so once
}

// NewPool returns a pool of zygotes that s describes. It starts none yet. The
// cgroup that s names is the parent of theirs.
func NewPool(s Spec, o Options) *Pool {
	if o.Forks == 0 {
		o.Forks = defaultForks
	}
	if o.Age == 0 {
		o.Age = defaultAge
	}
	p := &Pool{spec: s, parent: s.Cgroup, options: o}
	var once sync.Once
	p.sweep = func(ctx context.Context) (err error) {
		once.Do(func() { err = Sweep(ctx, p.parent) })
		return err
	}
	return p
}

// ErrClosed is what a closed pool answers.
var ErrClosed = errors.New("the pool of zygotes is closed")

// Fork is [Zygote.Fork] with a zygote of the pool. One that turns out broken is
// replaced, and the run, which had not started, starts from the new one.
func (p *Pool) Fork(ctx context.Context, r *Request) (*os.Process, error) {
	const attempts = 3
	var err error
	for range attempts {
		var z *Zygote
		if z, err = p.get(ctx); err != nil {
			return nil, err
		}
		var child *os.Process
		child, err = z.Fork(ctx, r)
		if !errors.Is(err, ErrBroken) {
			return child, err
		}
		p.drop(z)
	}
	return nil, err
}

// get returns the current zygote, which is started if there is none.
func (p *Pool) get(ctx context.Context) (*Zygote, error) {
	for {
		p.mu.Lock()
		if p.ended {
			p.mu.Unlock()
			return nil, ErrClosed
		}
		z, err := p.now, p.err
		if p.next == nil && (z == nil && err == nil || z != nil && p.old(z)) {
			p.startNext()
		}
		next := p.next
		if next == nil && z == nil {
			p.err = nil // who comes later may try again
		}
		p.mu.Unlock()
		switch {
		case z != nil:
			return z, nil
		case next == nil:
			return nil, err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// old reports whether it is time to start the successor.
func (p *Pool) old(z *Zygote) bool {
	forks, age := z.life()
	return forks >= p.options.Forks-p.options.Forks/ahead || age >= p.options.Age-p.options.Age/ahead
}

func (z *Zygote) life() (forks int, age time.Duration) {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.forks, time.Since(z.started)
}

// startNext starts a zygote in the background, which then takes the place of the
// current one.
//
// Preconditions: p.mu is held.
func (p *Pool) startNext() {
	next := make(chan struct{})
	p.next = next
	p.ending.Go(func() {
		s := p.spec
		s.Cgroup = groupName(p.parent)
		ctx := context.Background()
		_ = p.sweep(ctx) // what is left over harms nobody
		z, err := Start(ctx, s)
		p.mu.Lock()
		old := p.now
		if err == nil {
			p.now = z
		} else {
			old = nil // better an old one than none
		}
		p.err, p.next = err, nil
		close(next)
		p.mu.Unlock()
		p.retire(old)
	})
}

func (p *Pool) drop(z *Zygote) {
	p.mu.Lock()
	if p.now != z {
		z = nil // somebody else did
	} else {
		p.now, p.err = nil, nil
	}
	p.mu.Unlock()
	p.retire(z)
}

func (p *Pool) retire(z *Zygote) {
	if z == nil {
		return
	}
	z.mu.Lock() // lets a fork end
	z.broken = true
	z.mu.Unlock()
	err := z.Close()
	p.mu.Lock()
	p.failed = errors.Join(p.failed, err)
	p.mu.Unlock()
}

// Close ends the pool's zygote. Children live on.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.ending.Wait()
	p.drop(p.now)
	return p.failed
}

var groups atomic.Int64

// groupPattern tells which process has to clear the group away.
const groupPattern = "zygote-%d-%d"

func groupName(parent string) string {
	return parent + "/" + fmt.Sprintf(groupPattern, os.Getpid(), groups.Add(1))
}

// Sweep removes the groups of zygotes whose hosts are dead from parent. The zygotes
// died with them.
func Sweep(ctx context.Context, parent string) error {
	return cgroup.Sweep(ctx, parent, func(name string) bool {
		var pid, n int
		if _, err := fmt.Sscanf(name, groupPattern, &pid, &n); err != nil {
			return true
		}
		return unix.Kill(pid, 0) != unix.ESRCH
	})
}
