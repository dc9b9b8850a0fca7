package native

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/seccomp/notify"
	"gaol/jail/zygote"
	"gaol/runtime/internal/sandbox"
)

// zygoteKind is what two sandboxes must have in common to share zygotes.
type zygoteKind struct {
	Image        string // host path of the root file system
	Node         string // guest path of Node
	HeapMiB      int64  // V8's old space
	CgroupParent string
	Options      zygote.Options
}

// zygotePool is a pool of zygotes and the number of sets that use it.
type zygotePool struct {
	*zygote.Pool
	users int
}

// sharedZygotes are the pools of this process. Sandboxes of the same kind share a pool. An unused
// pool stays until CloseIdle, because the next sandbox is mostly of the same kind.
var sharedZygotes = struct {
	sync.Mutex
	pools map[zygoteKind]*zygotePool
}{pools: map[zygoteKind]*zygotePool{}}

// zygoteSet is the zygotes of one sandbox: a pool for each heap size. It is safe for concurrent use.
type zygoteSet struct {
	kind zygoteKind // with the default heap size
	spec func(zygoteKind) zygote.Spec

	// Guarded by sharedZygotes' lock: a pool's count of users must agree with them.
	byHeap   map[int64]*zygotePool // by size in MiB
	released bool
}

// acquireSet returns the zygotes of a kind and starts the first one if there is none yet. spec
// describes how a zygote of a kind is started. The caller must call release.
func acquireSet(kind zygoteKind, spec func(zygoteKind) zygote.Spec) *zygoteSet {
	s := &zygoteSet{kind: kind, spec: spec, byHeap: map[int64]*zygotePool{}}
	s.pool(kind.HeapMiB)
	return s
}

// pool returns the pool for a heap size, which is started on first use. 0 is the size of
// the set's kind.
func (s *zygoteSet) pool(heapMiB int64) *zygote.Pool {
	sharedZygotes.Lock()
	defer sharedZygotes.Unlock()
	kind := s.kind
	kind.HeapMiB = cmp.Or(heapMiB, kind.HeapMiB)
	if p := s.byHeap[kind.HeapMiB]; p != nil {
		return p.Pool
	}
	p := sharedZygotes.pools[kind]
	if p == nil {
		p = &zygotePool{Pool: zygote.NewPool(s.spec(kind), kind.Options)}
		sharedZygotes.pools[kind] = p
	}
	p.Warm()
	if !s.released { // otherwise the sandbox was closed while a run started, and no second release comes
		s.byHeap[kind.HeapMiB] = p
		p.users++
	}
	return p.Pool
}

// release ends the use of the set's pools. It may be called on nil.
func (s *zygoteSet) release() {
	if s == nil {
		return
	}
	sharedZygotes.Lock()
	defer sharedZygotes.Unlock()
	s.released = true
	for _, p := range s.byHeap {
		p.users--
	}
}

// CloseIdle stops the zygotes that no set uses.
func CloseIdle() error {
	sharedZygotes.Lock()
	var idle []*zygotePool
	for kind, p := range sharedZygotes.pools {
		if p.users == 0 {
			idle = append(idle, p)
			delete(sharedZygotes.pools, kind)
		}
	}
	sharedZygotes.Unlock()
	var failed error
	for _, p := range idle {
		failed = errors.Join(failed, p.Close())
	}
	return failed
}

// process implements sandbox.Process.
type process struct {
	*jail.Process
	release func()
}

// Start implements sandbox.Sandbox.
func (s *Sandbox) Start(ctx context.Context, c *sandbox.Command) (sandbox.Process, error) {
	j := s.command(c)
	var p *jail.Process
	var err error
	if j.Parked, err = s.takeParked(ctx, c); err == nil {
		p, err = s.jail.Start(ctx, j)
	}
	if err != nil {
		s.parking.end()
		return nil, err
	}
	if s.parking.start != nil {
		go func() {
			<-p.Done()
			s.parking.end()
		}()
	}
	return &process{p, s.audit.watch(p.PID(), c.Denied)}, nil // the ID is known only now
}

// command returns the jail's form of a command.
func (s *Sandbox) command(c *sandbox.Command) jail.Command {
	j := jail.Command{
		Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, FromRoot: c.FromRoot,
		Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Files: c.Files,
		Terminal: c.Terminal,
		Script:   c.Script,
		Limits:   cgroup.Limits(c.Limits), OpenFiles: c.OpenFiles, FileSize: c.FileSize,
		Connect: c.Connect, OnCgroup: c.OnOwner, OnCommand: c.OnCommand,
	}
	if c.Denied != nil {
		j.Refused = func(call notify.Call) { c.Denied(refused(call)) }
	}
	s.apply(c.Rules, &j)
	if s.zygotes != nil {
		j.Zygote = s.zygotes.pool(c.HeapMiB)
	}
	return j
}

// Wait implements sandbox.Process.
func (p *process) Wait() (sandbox.Exit, error) {
	e, err := p.Process.Wait()
	return sandbox.Exit{Code: e.Code, Signal: e.Signal, Uncharged: e.Uncharged, Usage: sandbox.Usage(e.Usage)}, err
}

// Usage implements sandbox.Process.
func (p *process) Usage() (sandbox.Usage, error) {
	u, err := p.Process.Usage()
	return sandbox.Usage(u), err
}

// Release implements sandbox.Process.
func (p *process) Release() { p.release() }
