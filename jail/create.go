package jail

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/procfs"
	"gaol/jail/reap"
)

// DefaultStateDir is where live jails are registered.
const DefaultStateDir = "/run/gaol"

// Jail holds a tree of files and the processes that Start makes in it.
type Jail struct {
	spec    Spec
	slot    *slot
	program *os.File     // the entry program
	shared  *groups      // the jail's, where its runs have none of their own
	pool    *cgroup.Pool // of the runs' groups
	pid1    *reap.Child  // nil before it is made
	pidfd   *os.File     // of pid 1
	keeper  chan struct{}

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup
	live   map[*Process]struct{}
}

// Create makes a jail. Nothing of it is left if it fails.
func Create(ctx context.Context, s Spec) (*Jail, error) {
	if s.StateDir == "" {
		s.StateDir = DefaultStateDir
	}
	if s.Filter == nil {
		return nil, &StepError{"seccomp", "no filter", unix.EINVAL}
	}
	if s.Loopback {
		if err := CheckSocketLists(); err != nil {
			return nil, stepError("list", "sockets", err)
		}
	}
	// Cleaning up needs to know the cgroups, so they come first.
	if _, err := cgroup.Detect(); err != nil {
		return nil, stepError("find", "cgroups", err)
	}
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
	// Without its pid 1 there is no jail.
	s.Show = append(slices.Clone(s.Show), Place{Path: s.reaper()})
	s.Exec = append(slices.Clone(s.Exec), Place{Path: s.reaper()})
	j := &Jail{spec: s, slot: sl, keeper: make(chan struct{}), live: map[*Process]struct{}{}}
	if err := j.startKeeper(); err != nil {
		return nil, errors.Join(err, j.end())
	}
	return j, nil
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
	host, err := openFD("/proc/thread-self/ns/mnt", unix.O_RDONLY)
	if err != nil {
		return stepError("open", "mount namespace", err)
	}
	defer host.Close()
	mounts := beginDetach(&j.spec, j.slot.firstHostID())
	defer mounts.close()
	top, err := j.makeGroups()
	if err != nil {
		return err
	}
	defer top.close()
	if err := stage(stageDir(j.spec.StateDir), &j.spec, j.slot.firstHostID(), mounts); err != nil {
		return err
	}
	if j.program, err = openProgram(mounts.owner); err != nil {
		return stepError("open", enter.Path, err)
	}
	if err := j.startPid1(top); err != nil {
		return err
	}
	// The jail has its own copy of the mounts by now: drop this thread's.
	return stepError("leave", "mount namespace", unix.Setns(int(host.Fd()), unix.CLONE_NEWNS))
}

func (j *Jail) startPid1(top *groups) error {
	null, err := openFD(os.DevNull, unix.O_RDWR)
	if err != nil {
		return stepError("open", os.DevNull, err)
	}
	defer null.Close()
	init, err := j.openInit(top)
	if err != nil {
		return stepError("make", "cgroup", err)
	}
	if init != nil {
		defer init.Close()
	}
	p, err := newPass([]*os.File{null, null, null}, nil)
	if err != nil {
		return err
	}
	// The cgroup namespace begins there, above the group that pid 1 is put into.
	if p.born = top.born; p.born == nil {
		p.born = j.shared.born
	}
	list := enter.List{Steps: j.makingSteps(p, top, p.groupFD(init)), Filter: j.spec.Filter.Program}
	return p.run(j.program, list, func(child *reap.Child) error {
		j.pid1 = child
		return j.meetPid1(child.PID())
	})
}

// meetPid1 does what pid 1 can't do for itself, and it waits for.
func (j *Jail) meetPid1(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return stepError("open", "pid 1", os.NewSyscallError("pidfd_open", err))
	}
	j.pidfd = os.NewFile(uintptr(fd), "pid 1")
	ids := fmt.Sprintf("0 %d %d\n", j.slot.firstHostID(), idsEach)
	for _, file := range []string{"uid_map", "gid_map"} {
		if err := writeFile("/proc/"+strconv.Itoa(pid)+"/"+file, ids); err != nil {
			return stepError("map", "user ids", err)
		}
	}
	return stepError("hide", "/proc/net", procfs.HideNet(pid))
}

func writeFile(path, text string) error {
	f, err := openFD(path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}
