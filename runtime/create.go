package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"gaol/internal/ociruntime"
	"gaol/rootfs"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/sandbox/native"
	"gaol/runtime/internal/work"
	"gaol/vfs"
	"gaol/vfs/hostfs"
)

// NodeRuntime is a sandbox. It is safe for concurrent use.
type NodeRuntime struct {
	opts     settings
	sandbox  sandbox.Sandbox // nil before it is made
	store    string          // host folder
	leases   []*rootfs.Lease // of the image, and of snapshots that are mounted
	network  *network        // nil if the rules allow no external host
	dialed   dialed          // connections to the guest's servers
	files    hostfs.Files
	queue    *semaphore.Weighted // limits concurrent runs
	contexts *semaphore.Weighted // limits contexts
	pausing  pausing
	active   sync.Map // of *Process: the active runs
	programs programs
	calls    sync.WaitGroup // runs without a waiting caller, and uses of the sandbox's network
	commands commands

	alive  context.Context // ends when Close begins, with ending held
	end    context.CancelFunc
	ending sync.Mutex
	close  sync.Once
	err    error // Close's
}

// Create makes a sandbox. It validates o once and keeps a copy. If the store lacks the
// default image, Create builds it, which takes some seconds and the network; `gaol image
// build` does that in advance.
//
// Errors name the missing feature and the cure; `gaol doctor` explains more.
func Create(ctx context.Context, o Options) (_ *NodeRuntime, err error) {
	defer wrap(&err, "create")
	prepare()
	s, err := o.check()
	if err != nil {
		return nil, err
	}
	return create(ctx, s)
}

// prepare starts what the first sandbox of a process needs whatever its options.
var prepare = sync.OnceFunc(func() {
	go native.Prepare()
	go guest.Files()
})

// check resolves options and refuses what this process cannot do.
func (o Options) check() (settings, error) {
	s, err := o.resolve()
	if err != nil {
		return s, err
	}
	return s, errors.Join(CheckPrivileges(), s.Limits.fitHost(o.Limits))
}

// CheckPrivileges reports whether this process has the privileges that Create needs, which a program
// can check before it downloads an image. The error wraps [ErrUnsupported].
func CheckPrivileges() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("needs root to make namespaces and cgroups: run it with sudo: %w", ErrUnsupported)
	}
	return nil
}

// create makes a sandbox. s is the result of Options.check.
func create(ctx context.Context, s settings) (*NodeRuntime, error) {
	image, lease, err := leaseImage(ctx, s.Options)
	if err != nil {
		return nil, err
	}
	if s, err = s.forImage(image); err != nil {
		return nil, errors.Join(err, lease.Close())
	}
	rt := newRuntime(s)
	rt.leases = []*rootfs.Lease{lease}
	if err = rt.leaseZygote(image); err == nil {
		err = rt.build(ctx, image)
	}
	if err != nil {
		return nil, errors.Join(err, rt.release())
	}
	return rt, nil
}

// newRuntime returns a runtime without a sandbox.
func newRuntime(s settings) *NodeRuntime {
	variables, _ := s.environment(nil, nil) // resolve has checked them
	s.variables = &variables
	if !s.WorkInProcess {
		s.work = work.Of(s.CgroupParent)
	}
	rt := &NodeRuntime{
		opts: s, queue: semaphore.NewWeighted(int64(s.MaxConcurrentRuns)), contexts: semaphore.NewWeighted(int64(s.MaxContexts)),
		pausing: pausing{turn: semaphore.NewWeighted(1), starts: semaphore.NewWeighted(allStarts)},
	}
	rt.alive, rt.end = context.WithCancel(context.Background())
	rt.commands.byName = maps.Clone(s.Commands)
	return rt
}

// leaseImage finds the image, or builds it if it is the default one and missing. It cannot be
// removed until the lease is closed.
func leaseImage(ctx context.Context, o Options) (*rootfs.Image, *rootfs.Lease, error) {
	store, err := rootfs.Open(o.Store)
	if err != nil {
		return nil, nil, err
	}
	image, err := store.Ensure(ctx, o.Image, rootfs.BuildOptions{Progress: o.Progress})
	if errors.Is(err, rootfs.ErrNoStore) {
		err = &OptionError{"Store", err}
	}
	if err != nil {
		return nil, nil, err
	}
	lease, err := image.Hold()
	return image, lease, err
}

// leaseZygote finds the image that the runtime's zygotes use, if that is another one, which cannot be removed meanwhile.
func (rt *NodeRuntime) leaseZygote(image *rootfs.Image) error {
	if rt.opts.Launcher != LauncherZygote {
		return nil
	}
	base, err := image.ZygoteImage()
	if err != nil || base.ID == image.ID { // build returns the error
		return nil
	}
	rt.opts.zygote = base.Root()
	return rt.hold(base)
}

// hold keeps an image from being removed while the runtime is open.
func (rt *NodeRuntime) hold(image *rootfs.Image) error {
	lease, err := image.Hold()
	if err == nil {
		rt.leases = append(rt.leases, lease)
	}
	return err
}

// forImage completes the settings by the properties of an image.
func (s settings) forImage(image *rootfs.Image) (settings, error) {
	s.image = image.Root()
	if image.Imported == nil {
		return s, nil
	}
	s.noNode, s.node, s.libraries = image.CanRun(), image.Imported.NodePath, image.Imported.Libraries
	s.env = maps.Clone(s.env) // a pool shares the settings among its runtimes
	if err := errors.Join(overlayEnv(s.env, image.Env()), overlayEnv(s.env, s.Env)); err != nil {
		return settings{}, fmt.Errorf("image %s: variables: %w", image.ID, err)
	}
	if err := s.setPermissions(s.Permissions); err != nil { // the places that Node needs are others
		return settings{}, optionError("Permissions", "%w", err)
	}
	return s, nil
}

// build makes the sandbox and the parts that its runs need. After an error the caller must call
// release, which undoes the steps so far.
func (rt *NodeRuntime) build(ctx context.Context, image *rootfs.Image) error {
	s := rt.opts
	if err := errors.Join(s.Launcher.Supports(image), s.verifySchemas(ctx)); err != nil {
		return err
	}
	if err := s.tree().CheckPlaces(s.Permissions); err != nil {
		return optionError("Permissions", "%w", err)
	}
	rt.store = image.StoreDir()
	spec, err := rt.spec()
	defer closeMounts(spec.Mounts) // the sandbox keeps its own references
	if err != nil {
		return err
	}
	rt.sandbox, err = rt.opts.Isolation.newSandbox(ctx, &spec)
	if _, ok := errors.AsType[*sandbox.AuditError](err); ok {
		err = &OptionError{"AuditDenials", err}
	}
	if err != nil {
		return err
	}
	if s.plan.Net.Egress != nil {
		if rt.network, err = rt.openNetwork(); err != nil {
			return err
		}
	}
	rt.files, err = rt.sandbox.Files()
	return err
}

// Close kills all runs, which then end with CauseCanceled and [ErrClosed], and removes the
// sandbox with its files. It returns when nothing is left of it. Further calls return the
// error of the first.
func (rt *NodeRuntime) Close() error {
	rt.close.Do(func() {
		rt.dialed.close() // before guests end, so that its users see that it was closed
		rt.ending.Lock()
		rt.end()
		rt.ending.Unlock()
		if err := rt.release(); err != nil {
			rt.err = fmt.Errorf("gaol: close: %w", err)
		}
	})
	return rt.err
}

// release undoes what build has done, in reverse order.
func (rt *NodeRuntime) release() error {
	var failed error
	if rt.files != nil {
		failed = rt.files.Close()
	}
	rt.calls.Wait() // the end of alive has canceled them
	failed = errors.Join(failed, rt.network.close())
	if rt.sandbox != nil {
		failed = errors.Join(failed, rt.sandbox.Close())
	}
	for _, lease := range slices.Backward(rt.leases) {
		failed = errors.Join(failed, lease.Close())
	}
	return failed
}

// FS gives the host access to the files of the sandbox, whether guests run or not. Operations see
// the tree as runs do: links resolve inside the guest's tree, and permissions that are enforced by
// mounts apply to the host, too. Operations have the rights of the guest's user, who owns new
// files; other permissions of runs do not restrict them. Their writes count against Limits.Disk
// and Files.
//
// Once the runtime is closed they fail with [ErrClosed], and files that are open do.
func (rt *NodeRuntime) FS() hostfs.Files { return rt.files }

// spec describes the runtime's sandbox. The caller must close the mounts, even if there is an
// error.
func (rt *NodeRuntime) spec() (spec sandbox.Spec, err error) {
	s := rt.opts
	if err := checkReserved(s.cwd, reservedForFiles); err != nil {
		return spec, optionError("Cwd", "%w", err)
	}
	spec = sandbox.Spec{
		Image: s.image, OneOverlay: s.oneOverlay, Owned: s.owned, Layer: guest.Files(),
		Dirs: vfs.Strings(vfs.Own(s.cwd)), Files: s.files, Disk: s.Limits.Disk, Inodes: s.Limits.Files,
		Limits:    sandbox.Limits{Memory: s.Limits.Memory, CPUs: s.Limits.CPUs, Pids: s.Limits.Pids},
		OpenFiles: s.Limits.OpenFiles, Commands: s.commandNames(), CgroupParent: s.CgroupParent,
		Hostname: s.Hostname, UnixSockets: s.UnixSockets,
		Plan: s.plan, Permissions: s.Permissions, World: s.tree().World(),
		AllowDegraded: s.AllowDegraded, AuditDenials: s.AuditDenials,
	}
	if s.Limits.onDisk() {
		spec.DiskDir = rt.store
	}
	if s.Isolation == IsolationOCI {
		path, err := ociruntime.Find(s.OCI.Runtime)
		if err != nil {
			return spec, optionError("OCI", "%w", err)
		}
		spec.OCI = &sandbox.OCIRuntime{Path: path, SystemdCgroup: s.OCI.SystemdCgroup}
	}
	// The tree bounds its own size. The limit of a file's length is for sparse files, which
	// occupy nothing but are read as zeros. A folder of the host that the guest writes to has
	// no such limit, and the kernel has only one for all files of a process.
	if !s.writesHost() {
		spec.FileSize = s.Limits.Disk
	}
	if s.Launcher == LauncherZygote {
		spec.Warm, spec.Park = s.warm(), max(0, cmp.Or(s.Zygote.Park, defaultPark))
	}
	if err = rt.openMounts(&spec); err == nil {
		s.configureMounts(&spec)
	}
	return spec, err
}

// writesHost reports whether guests can write to folders of the host.
func (s *settings) writesHost() bool {
	return slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Access == ReadWrite })
}

// Resources counts the processes, descriptors and sockets of a runtime's active runs, and the content
// of its tree.
type Resources = sandbox.Resources

// Resources counts the resources that the runtime uses now. Guests may change them meanwhile. At
// most 16,384 descriptors are inspected.
func (rt *NodeRuntime) Resources(ctx context.Context) (_ Resources, err error) {
	defer wrap(&err, "resources")
	ctx, done, err := rt.beginCall(ctx)
	if err != nil {
		return Resources{}, err
	}
	defer done()
	r, err := rt.sandbox.Resources(ctx)
	return r, rt.orEnded(err)
}
