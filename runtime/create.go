package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"gaol/jail"
	"gaol/jail/seccomp"
	"gaol/jail/zygote"
	"gaol/rootfs"
	"gaol/runtime/internal/enforce"
	"gaol/runtime/internal/zygotes"
	"gaol/vfs"
	"gaol/vfs/hostfs"
)

// NodeRuntime is a sandbox. Its methods may be called from several goroutines at once.
type NodeRuntime struct {
	opts     settings
	jail     *jail.Jail
	rules    *enforce.Rules
	audit    *enforce.AuditLog // nil without AuditDenials
	store    string            // host folder
	leases   []*rootfs.Lease   // of the image, and of snapshots that are mounted
	zygotes  *zygotes.Set      // nil without LauncherZygote
	files    *hostfs.FS
	queue    queue // limits concurrent runs
	contexts queue // limits contexts
	active   activeRuns

	parked atomic.Pointer[jail.Parked] // becomes the first run's process; nil without PoolOptions.Park

	closing chan struct{} // closed when Close begins
	close   sync.Once
	err     error // Close's
}

// Create makes a sandbox. It validates o once and keeps a copy. If the store lacks the
// default image, Create builds it, which takes some seconds and the network; `gaol image
// build` does that in advance.
//
// Errors name the missing feature and the cure; `gaol doctor` explains more.
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

// check resolves options and refuses what this process cannot do.
func (o Options) check() (settings, error) {
	s, err := o.resolve()
	if err != nil {
		return settings{}, err
	}
	err = errors.Join(checkRoot(), s.limits.fitHost(o.Limits))
	return s, err
}

// create makes a sandbox. s is the result of o.check.
func create(ctx context.Context, o Options, s settings) (*NodeRuntime, error) {
	image, lease, err := leaseImage(ctx, o)
	if err != nil {
		return nil, err
	}
	s.image = image.Root()
	if s, err = s.forImage(o, image); err != nil {
		return nil, errors.Join(err, lease.Close())
	}
	rt := &NodeRuntime{opts: s, leases: []*rootfs.Lease{lease}, queue: make(queue, s.concurrentRuns), contexts: make(queue, s.contexts), closing: make(chan struct{})}
	if err := rt.build(ctx, image); err != nil {
		return nil, errors.Join(err, rt.release())
	}
	return rt, nil
}

func (rt *NodeRuntime) build(ctx context.Context, image *rootfs.Image) (err error) {
	s := rt.opts
	if err := errors.Join(s.launcher.supports(image), s.checkPlaces()); err != nil {
		return err
	}
	if s.audit {
		if rt.audit, err = enforce.OpenAudit(); err != nil {
			return optionError("AuditDenials", "%w", err)
		}
	}
	rt.store = image.StoreDir()
	if s.launcher == LauncherZygote { // it starts while the jail is made
		kind := zygotes.Kind{Image: image.Root(), Node: s.nodePath(), HeapMiB: s.heapMiB, CgroupParent: s.cgroupParent, Options: zygote.Options(s.zygote)}
		rt.zygotes = zygotes.Acquire(kind, zygoteSpec)
	}
	if rt.jail, err = rt.createJail(ctx, image); err != nil {
		return err
	}
	if rt.files, err = openFiles(rt.jail); err != nil {
		return err
	}
	if rt.rules, err = enforce.Compile(s.permissions, s.plan, s.unixSockets); err != nil {
		return err
	}
	return rt.rules.Load(rt.jail, s.degraded)
}

// release undoes what build has done, in reverse order.
func (rt *NodeRuntime) release() error {
	var failed error
	if rt.files != nil {
		failed = rt.files.Close()
	}
	if rt.jail != nil {
		failed = errors.Join(failed, rt.jail.Close())
	}
	rt.zygotes.Release()     // nothing that needs a zygote can start any more
	rt.active.spawned.Wait() // they read what their processes have written
	rt.rules.Close()
	failed = errors.Join(failed, rt.audit.Close())
	for _, lease := range slices.Backward(rt.leases) {
		failed = errors.Join(failed, lease.Close())
	}
	return failed
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
