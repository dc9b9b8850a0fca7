package snippets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"

	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/snippets/bundle"
)

// Limits of a snippet's sandbox. Node limits the size of code in worker threads only. Here, JavaScript
// code counts as heap, and WebAssembly code as memory.
const (
	heap   = 32 << 20
	memory = 128 << 20
	disk   = 8 << 20
	files  = 512
	pids   = 32 // threads of Node, and a few child processes

	maxReady = 8 // sandboxes that are kept ready
)

// sandboxes provides the sandboxes for snippets: one for each, or one for all.
//
// A fresh sandbox comes from a pool, with a process that waits for its program if the isolation
// supports that. It is closed in the background, and not reused.
type sandboxes struct {
	options runtime.Options
	pool    *runtime.Pool       // nil if one sandbox is shared
	live    *semaphore.Weighted // bounds sandboxes in use or being closed
	closers sync.WaitGroup

	mu     sync.Mutex
	shared *runtime.NodeRuntime // nil until its first use
	failed error                // the first error of closing one
}

func (s *sandboxes) init(o Options, packages *bundle.Packages) (err error) {
	if set := o.Sandbox; set.Heap != 0 || set.Limits != (runtime.Limits{}) || len(set.Mounts) > 0 || set.ReadOnlyRoot || set.MaxConcurrentRuns != 0 {
		return errors.New("option Sandbox: the runner sets Heap, Limits, Mounts, ReadOnlyRoot and MaxConcurrentRuns")
	}
	s.options = o.sandbox()
	if s.options.Permissions, err = o.permissions(); err != nil {
		return err
	}
	if packages != nil {
		s.options.Mounts = []runtime.Mount{{Source: packages.Dir(), Target: packagesDir}}
	}
	if o.Shared {
		s.options.ReadOnlyRoot, s.options.MaxConcurrentRuns = true, o.MaxConcurrent
		return nil
	}
	s.live = semaphore.NewWeighted(int64(2 * o.MaxConcurrent))
	s.pool, err = runtime.NewPool(s.options, runtime.PoolOptions{Size: min(o.MaxConcurrent, maxReady), Park: s.options.Launcher != runtime.LauncherExec && s.options.Isolation.Check(runtime.FeaturePark) == nil})
	return err
}

// sandbox returns the options of a snippet's sandbox, without its permissions.
func (o Options) sandbox() runtime.Options {
	s := o.Sandbox
	s.Heap, s.Limits = heap, runtime.Limits{Memory: memory, Disk: disk, Pids: pids, Value: maxReport}
	if s.Isolation.Check(runtime.FeatureFiles) == nil {
		s.Limits.Files = files
	}
	return s
}

// permissions returns the permissions of snippets.
func (o Options) permissions() (policy.Permissions, error) {
	most := policy.Default()
	switch o.Network {
	case "":
		most.Network = policy.Scope{Default: policy.Deny}
	case "public":
		most.Network = policy.Scope{Default: policy.Allow} // the egress guard refuses private addresses
	default:
		return most, fmt.Errorf("option Network: %q is neither empty nor public", o.Network)
	}
	p, err := policy.Narrow(most, o.Sandbox.Permissions, policy.World{})
	if err != nil {
		return most, fmt.Errorf("option Sandbox.Permissions: %w", err)
	}
	return p, nil
}

// use calls f with a sandbox.
func (s *sandboxes) use(ctx context.Context, f func(*runtime.NodeRuntime) error) error {
	if s.pool == nil {
		rt, err := s.sharedOne(ctx)
		if err != nil {
			return err
		}
		err = f(rt)
		if err != nil && ctx.Err() == nil {
			s.discard(rt)
		}
		return err
	}
	if err := s.live.Acquire(ctx, 1); err != nil {
		return err
	}
	rt, err := s.pool.Get(ctx)
	if err != nil {
		s.live.Release(1)
		return err
	}
	defer s.closers.Go(func() {
		s.note(rt.Close())
		s.live.Release(1)
	})
	return f(rt)
}

// sharedOne returns the shared sandbox, which it creates lazily.
func (s *sandboxes) sharedOne(ctx context.Context) (_ *runtime.NodeRuntime, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared == nil {
		s.shared, err = runtime.Create(ctx, s.options)
	}
	return s.shared, err
}

// discard closes a broken shared sandbox. The next snippet gets a new sandbox.
func (s *sandboxes) discard(rt *runtime.NodeRuntime) {
	s.mu.Lock()
	known := s.shared == rt
	if known {
		s.shared = nil
	}
	s.mu.Unlock()
	if known {
		s.note(rt.Close())
	}
}

// note records the error of closing a sandbox.
func (s *sandboxes) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = cmp.Or(s.failed, err)
}

// close closes all sandboxes. Precondition: none is in use.
func (s *sandboxes) close() (err error) {
	if s.pool != nil {
		err = s.pool.Close()
	}
	if rt := s.shared; rt != nil {
		s.discard(rt)
	}
	s.closers.Wait()
	return errors.Join(err, s.failed)
}
