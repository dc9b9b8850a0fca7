package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gaol/jail"
	"gaol/jail/landlock/audit"
	"gaol/jail/seccomp"
	"gaol/rootfs"
	"gaol/vfs"
	"gaol/vfs/hostfs"
)

// NodeRuntime is a sandbox. Its methods may be called from several goroutines at
// once.
type NodeRuntime struct {
	opts     settings
	jail     *jail.Jail
	guard    *guard
	audit    *audit.Reader   // nil without AuditDenials
	store    string          // host folder
	holds    []*rootfs.Lease // of the snapshots that show in the tree
	image    *rootfs.Lease
	forks    *heaps // nil without LauncherZygote
	files    *hostfs.FS
	queue    queue    // lets runs in
	contexts queue    // has as many as there are
	live     register // the runs that go on

	parked atomic.Pointer[jail.Parked] // becomes the first run's process; mostly nil

	closing chan struct{} // closed when Close begins
	close   sync.Once
	err     error // Close's
}

// Create makes a sandbox. It validates o once and keeps a copy. It builds the
// default image if the store lacks it, which takes some seconds and the network;
// `gaol image build` does so ahead of time.
//
// Errors say what is missing and what to do; `gaol doctor` explains more.
func Create(ctx context.Context, o Options) (*NodeRuntime, error) {
	s, err := o.check()
	if err != nil {
		return nil, fmt.Errorf("gaol: create: %w", err)
	}
	rt, err := create(ctx, o, s)
	if err != nil {
		return nil, fmt.Errorf("gaol: create: %w", err)
	}
	return rt, nil
}

// check is settle, and refuses what this process can't do.
func (o Options) check() (settings, error) {
	s, err := o.settle()
	if err != nil {
		return settings{}, err
	}
	err = errors.Join(privileged(), s.limits.fitHost(o.Limits))
	return s, err
}

// create makes a sandbox of what o.check returned. Of o it takes the image.
func create(ctx context.Context, o Options, s settings) (*NodeRuntime, error) {
	image, lease, err := holdImage(ctx, o)
	if err != nil {
		return nil, err
	}
	s.image = image.Root()
	if s, err = s.forImage(o, image); err != nil {
		return nil, errors.Join(err, lease.Close())
	}
	rt := &NodeRuntime{opts: s, image: lease, queue: make(queue, s.concurrentRuns), contexts: make(queue, s.contexts), closing: make(chan struct{})}
	if err := rt.build(ctx, image); err != nil {
		return nil, errors.Join(err, rt.release())
	}
	return rt, nil
}

func (rt *NodeRuntime) build(ctx context.Context, image *rootfs.Image) (err error) {
	s := rt.opts
	if err := errors.Join(s.launcher.check(image), s.place()); err != nil {
		return err
	}
	if s.audit {
		if rt.audit, err = holdAudit(); err != nil {
			return err
		}
	}
	rt.store = image.StoreDir()
	if s.launcher == LauncherZygote { // it starts while the jail is made
		rt.forks = holdHeaps(zygoteKind{image.Root(), s.nodePath(), s.heapMiB, s.cgroupParent, s.zygote})
	}
	if rt.jail, err = rt.createJail(ctx, image); err != nil {
		return err
	}
	if rt.files, err = openFiles(rt.jail); err != nil {
		return err
	}
	if rt.guard, err = s.newGuard(s.permissions, s.plan); err != nil {
		return err
	}
	return rt.guard.restrict(rt.jail, s.degraded)
}

// release gives back what there is, the last first.
func (rt *NodeRuntime) release() error {
	var failed error
	if rt.files != nil {
		failed = rt.files.Close()
	}
	if rt.jail != nil {
		failed = errors.Join(failed, rt.jail.Close())
	}
	rt.forks.release()     // nothing starts any more that could want a zygote
	rt.live.spawned.Wait() // what is left of each is to take in what it wrote
	rt.guard.close()
	if rt.audit != nil {
		failed = errors.Join(failed, releaseAudit())
	}
	for _, lease := range rt.holds {
		failed = errors.Join(failed, lease.Close())
	}
	return errors.Join(failed, rt.image.Close())
}

func (rt *NodeRuntime) createJail(ctx context.Context, image *rootfs.Image) (*jail.Jail, error) {
	s := rt.opts
	filter, err := seccomp.Compile(nil, false)
	if err != nil {
		return nil, err
	}
	plan, err := vfs.NewPlan(image.Root(), s.cwd, s.limits.Disk, s.limits.Inodes)
	if err != nil {
		return nil, err
	}
	mounts, err := rt.openMounts()
	defer closeMounts(mounts)
	if err != nil {
		return nil, err
	}
	return jail.Create(ctx, jailSpec(s, plan, mounts, filter))
}
