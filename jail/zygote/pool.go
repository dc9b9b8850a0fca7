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

// Options says how long a zygote is used. A zero field takes its default. Forks and
// Age are no hard bounds: an old zygote serves until its successor is warm.
type Options struct {
	Forks int           // children of one zygote, which have the same address layout; default 5,000
	Age   time.Duration // since its start; default 10 minutes

	// Patience is how long a zygote may take to fork, which is a matter of
	// milliseconds: one that takes longer hangs, and is replaced. The next one is
	// given twice as long, lest a busy machine look like a broken zygote. Default
	// 2 seconds.
	Patience time.Duration
}

const (
	defaultForks    = 5000
	defaultAge      = 10 * time.Minute
	defaultPatience = 2 * time.Second
	ahead           = 10 // a tenth of its life before the end its successor is started
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
	end    chan struct{}  // closed when Close begins
	ending sync.WaitGroup // of what happens in the background
	failed error          // of closing old ones
	groups []string       // cgroups that no zygote is in any more, for the next ones

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
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	p := &Pool{spec: s, parent: s.Cgroup, options: o, end: make(chan struct{})}
	var once sync.Once
	p.sweep = func(ctx context.Context) (err error) {
		once.Do(func() { err = Sweep(ctx, p.parent) })
		return err
	}
	return p
}

// ErrClosed is what a closed pool answers.
var ErrClosed = errors.New("the pool of zygotes is closed")

// Fork is [Zygote.Fork] with a zygote of the pool. One that turns out broken, be it
// while it starts, is replaced, and the run, which had not started, starts from the
// new one.
func (p *Pool) Fork(ctx context.Context, e *Entry, program *Program) (*Child, error) {
	return p.attempt(ctx, func(z *Zygote, patience time.Duration) (*Child, error) {
		return z.Fork(ctx, e, program, patience)
	})
}

// Park is [Zygote.Park], as Fork is [Zygote.Fork].
func (p *Pool) Park(ctx context.Context, e *Entry) (*Child, error) {
	return p.attempt(ctx, func(z *Zygote, patience time.Duration) (*Child, error) {
		return z.Park(ctx, e, patience)
	})
}

func (p *Pool) attempt(ctx context.Context, fork func(*Zygote, time.Duration) (*Child, error)) (*Child, error) {
	const attempts = 3
	var err error
	for attempt := range attempts {
		var z *Zygote
		var child *Child
		if z, err = p.get(ctx); err == nil {
			child, err = fork(z, p.options.Patience<<attempt)
		}
		if !errors.Is(err, ErrBroken) {
			return child, err
		}
		p.drop(z)
	}
	return nil, err
}

// Warm starts a zygote in the background, if there is none: the first Fork then waits
// the less.
func (p *Pool) Warm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended && p.now == nil && p.next == nil {
		p.startNext()
	}
}

// Wait returns when there is a zygote to fork from. The error says why none starts.
func (p *Pool) Wait(ctx context.Context) error {
	_, err := p.get(ctx)
	return err
}

// get returns the current zygote, which is started if there is none.
func (p *Pool) get(ctx context.Context) (*Zygote, error) {
	for waited := false; ; waited = true {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		z, next, err := p.look(waited)
		if z != nil || err != nil {
			return z, err
		}
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
}

// look returns the current zygote or else what to wait for. For who has waited, the
// failure of the last start is an error; who has not gets another start.
func (p *Pool) look(waited bool) (*Zygote, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return nil, nil, ErrClosed
	case p.now == nil && waited && p.err != nil:
		return nil, nil, p.err
	case p.next == nil && (p.now == nil || p.old(p.now)):
		p.startNext()
	}
	return p.now, p.next, nil
}

// old reports whether it is time to start the successor.
func (p *Pool) old(z *Zygote) bool {
	forks, age := int(z.forks.Load()), time.Since(z.started)
	return forks >= p.options.Forks-p.options.Forks/ahead || age >= p.options.Age-p.options.Age/ahead
}

// startNext starts a zygote in the background, which then takes the place of the
// current one.
//
// Preconditions: p.mu is held.
func (p *Pool) startNext() {
	next := make(chan struct{})
	p.next = next
	s := p.spec
	s.Cgroup = p.takeGroup()
	p.ending.Go(func() {
		ctx := context.Background()
		_ = p.sweep(ctx) // what is left over harms nobody
		z, err := Start(ctx, s)
		p.mu.Lock()
		old := p.now
		if err == nil {
			p.now = z
			p.ending.Go(func() { p.watch(z) })
		} else {
			old = nil // better an old one than none
			p.groups = append(p.groups, s.Cgroup)
		}
		p.err, p.next = err, nil
		close(next)
		p.mu.Unlock()
		p.retire(old)
	})
}

// watch clears a zygote away that died while nobody asked it for anything, and
// replaces it, so that no run has to wait. One that has never served is not: what
// kills it may kill every one.
//
// There is no such watch for zygotes that hang. They run no guest's code, so that it
// takes somebody with root's rights to stop one, and a run that finds it out loses
// Options.Patience.
func (p *Pool) watch(z *Zygote) {
	select {
	case <-z.dead:
	case <-z.gone:
		return
	case <-p.end:
		return
	}
	p.drop(z)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended && p.now == nil && p.next == nil && z.forks.Load() > 0 {
		p.startNext()
	}
}

// drop ends a zygote, which may be nil, unless somebody else does.
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

func (p *Pool) retire(z *Zygote) {
	if z == nil {
		return
	}
	z.mu.Lock() // lets a fork end
	z.broken = true
	z.mu.Unlock()
	err := z.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		err = errors.Join(err, removeGroup(z.cgroup))
	} else {
		p.groups = append(p.groups, z.cgroup)
	}
	p.failed = errors.Join(p.failed, err)
}

// Close ends the pool's zygote. Children live on. Closing twice is no error.
func (p *Pool) Close() error {
	p.mu.Lock()
	if !p.ended {
		p.ended = true
		close(p.end)
	}
	p.mu.Unlock()
	p.ending.Wait()
	p.mu.Lock()
	last := p.now
	p.mu.Unlock()
	p.drop(last)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, path := range p.groups {
		p.failed = errors.Join(p.failed, removeGroup(path))
	}
	p.groups = nil
	return p.failed
}

// takeGroup returns the path of a cgroup for the next zygote: that of one that has
// ended, or a new one. The kernel keeps a removed group for as long as anything is
// charged to it, such as pages of the image that its zygote was the first to read.
//
// Preconditions: p.mu is held.
func (p *Pool) takeGroup() string {
	if n := len(p.groups); n > 0 {
		path := p.groups[n-1]
		p.groups = p.groups[:n-1]
		return path
	}
	return groupName(p.parent)
}

func removeGroup(path string) error {
	group, err := cgroup.Open(path)
	if err != nil {
		return err
	}
	return group.Delete()
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
