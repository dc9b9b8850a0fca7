package jail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	goruntime "runtime"
	"strconv"
	"sync"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/enter"
)

// DefaultStateDir is where live jails are registered.
const DefaultStateDir = "/run/gaol"

// Jail holds a tree of files and the processes that Start makes in it.
type Jail struct {
	spec      Spec
	slot      *slot
	container *libcontainer.Container
	pid1      *libcontainer.Process
	pidfd     *os.File      // of pid 1
	joinFiles []*os.File    // of the hierarchies that only the jail has a group in
	unified   *os.File      // the jail's group in a v2 hierarchy beside those of v1; may be nil
	keeper    chan struct{} // closed to end the thread that pid 1 depends on

	turn chan struct{} // holds one element while libcontainer starts a process

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup
	live   map[*Process]struct{}
	serial int
}

// openCgroupRoot has the cgroups library open the root of the hierarchies, which
// it does once in a process, while no thread has a mount namespace of its own:
// opened from one it would lead nowhere once that namespace is gone.
var openCgroupRoot = sync.OnceFunc(func() {
	// On v1 the root is a tmpfs, which the library refuses to hand out after
	// it has opened it for itself.
	if root, err := cgroups.OpenFile("/sys/fs/cgroup", "", unix.O_PATH|unix.O_DIRECTORY); err == nil {
		root.Close()
	}
})

// Create makes a jail. Nothing of it is left if it fails.
func Create(ctx context.Context, s Spec) (*Jail, error) {
	if s.StateDir == "" {
		s.StateDir = DefaultStateDir
	}
	if err := checkDescriptors(); err != nil {
		return nil, stepError("reserve", "file descriptors", err)
	}
	// Cleaning up needs to know the cgroups, so they come first.
	if _, err := cgroup.Detect(); err != nil {
		return nil, stepError("find", "cgroups", err)
	}
	openCgroupRoot()
	if err := makeStateDirs(s.StateDir); err != nil {
		return nil, err
	}
	sweepOnce(s.StateDir)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sl, err := takeSlot(jailsDir(s.StateDir), s.CgroupParent)
	if err != nil {
		return nil, stepError("register", s.StateDir, err)
	}
	j := &Jail{spec: s, slot: sl, keeper: make(chan struct{}), turn: make(chan struct{}, 1), live: map[*Process]struct{}{}}
	if err := j.startKeeper(); err != nil {
		return nil, errors.Join(err, j.end())
	}
	return j, nil
}

// checkDescriptors fails if Create would run out of file descriptors half-way. The
// cgroups library would keep such a failure for as long as the process lives.
func checkDescriptors() error {
	const need = 40 // about twice what Create has open at a time
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	for range need {
		fd, err := unix.FcntlInt(null.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
	}
	return nil
}

// startKeeper runs start on a thread of its own, which lives until j.keeper is
// closed. The kernel kills pid 1 when the thread that started it ends: the end
// of the process, even by SIGKILL, ends all its threads.
func (j *Jail) startKeeper() error {
	started := make(chan error)
	go func() {
		goruntime.LockOSThread() // never unlocked: the thread ends with the goroutine
		started <- j.start()
		<-j.keeper
	}()
	return <-started
}

// Preconditions: those of stage.
func (j *Jail) start() error {
	dir := stageDir(j.spec.StateDir)
	host, err := os.Open("/proc/thread-self/ns/mnt")
	if err != nil {
		return stepError("open", "mount namespace", err)
	}
	defer host.Close()
	if err := stage(dir, &j.spec, j.slot.firstHostID()); err != nil {
		return err
	}
	if err := j.startPid1(dir); err != nil {
		return err
	}
	// The jail has its own copy of the mounts by now: drop this thread's.
	return stepError("leave", "mount namespace", unix.Setns(int(host.Fd()), unix.CLONE_NEWNS))
}

func (j *Jail) startPid1(stageDir string) error {
	if err := j.makeGroup(); err != nil {
		return err
	}
	group := jailCgroup(j.spec.CgroupParent, j.slot.name())
	userNS, err := makeUserNamespace(j.slot.firstHostID())
	if err != nil {
		return stepError("make", "user namespace", err)
	}
	defer userNS.Close()
	conf := config(&j.spec, stageDir, group, j.slot.firstHostID())
	conf.Namespaces.Add(configs.NEWUSER, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), userNS.Fd()))
	container, err := libcontainer.Create(jailsDir(j.spec.StateDir), j.slot.name(), conf)
	if err != nil {
		return stepError("create", "container", err)
	}
	j.container = container
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return stepError("open", os.DevNull, err)
	}
	defer null.Close()
	host, child, err := socketPair()
	if err != nil {
		return stepError("make", "socket", err)
	}
	defer host.Close()
	p := &libcontainer.Process{
		Init:       true,
		Args:       append([]string{enter.Path, strconv.Itoa(firstExtraFile), "/"}, j.spec.Reaper...),
		Env:        []string{"PATH=/usr/bin"},
		Cwd:        "/",
		Stdin:      null,
		Stdout:     null,
		Stderr:     null,
		ExtraFiles: []*os.File{child},
	}
	err = container.Run(p)
	child.Close()
	if err != nil {
		return stepError("start", "container", err)
	}
	j.pid1 = p
	if err := errors.Join(j.openPidfd(), j.openJoinFiles(group)); err != nil {
		return stepError("open", "pid 1", err)
	}
	if err := hand(host, j.spec.Reaper[0], "/", enter.Setup{DieWithHost: true, Limits: rlimits(&Command{OpenFiles: 64}), Filter: j.spec.Filter}); err != nil {
		return err
	}
	return j.makeRoomForRuns()
}

// makeGroup makes the jail's group with all its controllers, or says why it can't
// be. libcontainer would make do with less: on v2, below a group that holds
// processes, it puts all groups into threaded mode, which they never leave.
func (j *Jail) makeGroup() error {
	_, err := cgroup.New(j.groupPath(""), cgroup.Limits{})
	return stepError("make", "cgroup", err)
}

// makeRoomForRuns moves pid 1 to a group of its own where groups that hold
// processes can't have children with limits (cgroup v2).
func (j *Jail) makeRoomForRuns() error {
	version, err := cgroup.Detect()
	if err != nil || version == cgroup.V1 {
		return stepError("find", "cgroups", err)
	}
	// Not made by New, which would want controllers in it: the jail's own group
	// can't pass any on before pid 1 has left it.
	group, err := cgroup.Open(j.groupPath("init"))
	if err != nil {
		return stepError("open", "cgroup", err)
	}
	for _, dir := range group.Dirs() {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return stepError("make", "cgroup", err)
		}
	}
	pid, err := j.pid1.Pid()
	if err != nil {
		return stepError("find", "pid 1", err)
	}
	return stepError("move", "pid 1", group.AddPID(pid))
}

func (j *Jail) groupPath(name string) string {
	return path.Join(j.spec.CgroupParent, j.slot.name(), name)
}

// rlimits of every process of a jail. The number of processes is bounded by the
// cgroup, which counts a run and not a user.
func rlimits(c *Command) []enter.Limit {
	set := func(resource int, value int64) enter.Limit {
		return enter.Limit{Resource: uint32(resource), Most: uint64(value)}
	}
	limits := []enter.Limit{
		// No core file fits into a byte, and by core(5) only this value also
		// keeps the host's handler, if it has one, from being started as root.
		set(unix.RLIMIT_CORE, 1),
		set(unix.RLIMIT_NOFILE, c.OpenFiles),
		set(unix.RLIMIT_MEMLOCK, 64<<10),
		set(unix.RLIMIT_MSGQUEUE, 0),
		set(unix.RLIMIT_SIGPENDING, 1024),
		set(unix.RLIMIT_NPROC, maxProcesses),
	}
	if c.FileSize > 0 {
		limits = append(limits, set(unix.RLIMIT_FSIZE, c.FileSize))
	}
	return limits
}

// maxProcesses bounds all runs of a jail together: a second guard behind the
// cgroups' limits.
const maxProcesses = 8192
