package jail

import (
	"context"
	"errors"
	"os"
	goruntime "runtime"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/enter"
	"gaol/jail/kernfile"
	"gaol/jail/mounts"
	"gaol/jail/procfs"
	"gaol/jail/step"
)

// Create creates a jail. If it fails, it removes the partial jail.
func Create(ctx context.Context, s Spec) (*Jail, error) {
	if s.Filter == nil {
		return nil, &StepError{Step: "seccomp", Target: "no filter", Err: unix.EINVAL}
	}
	if s.Loopback {
		if err := CheckSocketLists(); err != nil {
			return nil, step.Wrap("list", "sockets", err)
		}
	}
	id, err := NewIdentity(ctx, s.StateDir, s.CgroupParent)
	if err != nil {
		return nil, err
	}
	j := &Jail{spec: s, identity: id, release: make(chan struct{}), live: map[*Process]struct{}{}}
	j.starter = entryProgram{j}
	if s.OCI != nil {
		j.starter = &container{Jail: j}
	}
	// The kernel kills pid 1 when the thread that started it ends, and all threads end with their
	// process, even if SIGKILL ends it.
	if err := kernfile.StartOnThread(j.start, func() { <-j.release }); err != nil {
		return nil, errors.Join(err, j.remove())
	}
	return j, nil
}

// start creates the cgroups, the tree and pid 1.
//
// Preconditions: see mounts.Stage.Mount.
func (j *Jail) start() error {
	host, err := kernfile.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY)
	if err != nil {
		return step.Wrap("open", "mount namespace", err)
	}
	defer host.Close()
	tree := j.spec.fullTree()
	j.starter.extend(&tree)
	stage := mounts.Prepare(tree, j.identity.ID())
	defer stage.Close()
	top, err := j.makeCgroups()
	if err != nil {
		return err
	}
	defer top.close()
	err = stage.Mount(stageDir(j.identity.stateDir))
	j.commands, j.programs = stage.Commands, stage.Programs // remove closes them
	if err != nil {
		return err
	}
	if j.program, err = stage.OpenProgram(enter.Path); err != nil {
		return step.Wrap("open", enter.Path, err)
	}
	if err := j.starter.startPid1(top); err != nil {
		return err
	}
	// The jail has its own copy of the mounts: release this thread's.
	return step.Wrap("leave", "mount namespace", unix.Setns(int(host.Fd()), unix.CLONE_NEWNS))
}

// entryProgram starts processes by package enter's program.
type entryProgram struct{ *Jail }

func (entryProgram) extend(*Tree) {}

// startPid1 implements starter. Pid 1 reads and prints nothing, so its descriptors 0 to 2 are
// /dev/null.
func (j entryProgram) startPid1(top *cgroupFiles) error {
	null, err := kernfile.Open(os.DevNull, unix.O_RDWR)
	if err != nil {
		return step.Wrap("open", os.DevNull, err)
	}
	defer null.Close()
	init, err := makeInitCgroup(top)
	if err != nil {
		return step.Wrap("make", "cgroup", err)
	}
	defer init.Close() // nil in cgroup v1
	// The cgroup namespace begins in these groups, above the group that pid 1 is moved to.
	in := top.with(j.shared)
	list := enter.List{
		Steps: j.createSteps(in, init), Filter: j.spec.Filter.Program, Files: []*os.File{null, null, null}, StartIn: in.startIn,
	}
	return enter.Launch(j.program, list, func(child *enter.Child) error {
		j.pid1 = child
		return j.prepareNamespaces()
	})
}

// prepareNamespaces does the set-up that pid 1 waits for and can't do itself.
func (j *Jail) prepareNamespaces() error {
	if err := j.openPid1(); err != nil {
		return err
	}
	if err := j.mapIDs(j.pid1.PID()); err != nil {
		return err
	}
	return j.prepareNetwork()
}

// prepareNetwork sets up pid 1's network namespace.
func (j *Jail) prepareNetwork() error {
	if err := j.allowLowPorts(); err != nil {
		return step.Wrap("allow", "low ports", err)
	}
	return step.Wrap("hide", "/proc/net", procfs.HideNet(j.pid1.PID()))
}

// mapIDs gives the user namespace of a process the jail's ids.
func (j *Jail) mapIDs(pid int) error {
	ids := mounts.AllIDs(j.identity.ID())
	return step.Wrap("map", "user ids", mounts.WriteIDMaps(pid, ids, ids))
}

func (j *Jail) openPid1() error {
	fd, err := unix.PidfdOpen(j.pid1.PID(), 0)
	if err != nil {
		return step.Wrap("open", "pid 1", os.NewSyscallError("pidfd_open", err))
	}
	j.pidfd = os.NewFile(uintptr(fd), "pid 1")
	return nil
}

// Close kills all processes of the jail and removes the jail. It returns when nothing is
// left. Later calls return nil.
func (j *Jail) Close() error {
	j.mu.Lock()
	if j.closed.Load() {
		j.mu.Unlock()
		return nil
	}
	j.closed.Store(true)
	for p := range j.live {
		p.Kill()
	}
	j.mu.Unlock()
	// A killed pid 1 waits until every process of its namespace is reaped, and the parent
	// of the runs is the host.
	j.runs.Wait()
	return j.remove()
}

// remove removes everything that Create has made so far.
func (j *Jail) remove() error {
	var failed error
	if j.pid1 != nil {
		failed = step.Wrap("kill", "pid 1", j.pid1.Kill())
		failed = errors.Join(failed, step.Wrap("wait", "pid 1", j.waitPid1()))
	}
	j.program.Close() // these may be nil
	_ = j.commands.Close()
	_ = j.programs.Close()
	j.pidfd.Close()
	if j.shared != nil {
		j.shared.close()
	}
	close(j.release)
	if j.pool != nil {
		j.pool.Close()
	}
	return j.identity.clear(failed)
}

var errNotReaped = errors.New("a process of the jail has ended and is not reaped")

// waitPid1 waits for the killed pid 1 to end, with a timeout: pid 1 can't end before all
// processes of its namespace are reaped, and their parents are outside of it.
func (j *Jail) waitPid1() error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = j.pid1.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(killTimeout):
		return errNotReaped
	}
}

// init locks the main goroutine to the main thread, as runtime.LockOSThread documents for
// package inits. Starting a jail uses threads that enter a mount namespace and end with
// their goroutine. Go can't end the main thread: it would stay in that namespace, and so
// would /proc/self of this process.
func init() { goruntime.LockOSThread() }
