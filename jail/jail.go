package jail

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/gateway"
	"gaol/jail/kernfile"
	"gaol/jail/landlock"
	"gaol/jail/mounts"
	"gaol/jail/step"
)

// ErrClosed is returned by the methods of a closed jail.
var ErrClosed = errors.New("already closed")

// StepError reports which step of creating or entering a jail failed.
type StepError = step.Error

// Jail is a file tree and the processes that Start starts in it.
type Jail struct {
	spec     Spec
	identity *Identity
	program  *os.File     // the entry program
	shared   *cgroupFiles // cgroups that all processes of the jail are in
	pool     *cgroup.Pool // of the runs' cgroups
	starter  starter
	pid1     pid1             // nil before it is started
	pidfd    *os.File         // of pid 1
	gateway  *gateway.Gateway // nil before OpenGateway
	commands *mounts.HostDir  // of Spec.Commands; may be nil
	programs *mounts.HostDir  // of AddProgram
	release  chan struct{}    // closed to end the thread that started pid 1

	mu     sync.Mutex
	closed atomic.Bool // changed with mu held
	runs   sync.WaitGroup
	live   map[*Process]struct{}
}

// starter starts the processes of a jail: the entry program does, or an OCI runtime.
type starter interface {
	// extend adds the starter's files to the tree.
	extend(*Tree)

	// startPid1 creates the namespaces and starts pid 1 with a copy of the calling thread's mounts.
	startPid1(top *cgroupFiles) error

	// launch sets p.first to a new process, in the cgroups of in, and returns when it runs c's
	// program. If it fails, it may have set p.first, which must be waited for.
	launch(ctx context.Context, p *Process, c *Command, in *cgroupFiles) error
}

// pid1 is the first process of a jail.
type pid1 interface {
	PID() int
	Kill() error
	Wait() (enter.Exit, error)
}

// Alive reports whether processes can be started in the jail: it is not closed, and its
// pid 1 has not ended, which the host's OOM killer or its root may have killed. It takes one
// system call.
func (j *Jail) Alive() bool {
	alive := false
	err := kernfile.Control(j.pidfd, func(fd int) error {
		ended, err := kernfile.Poll(fd, unix.POLLIN, 0) // pidfd_open(2): readable once it has ended
		alive = ended == 0
		return err
	})
	return err == nil && alive
}

// HostIDs returns the range of host user and group ids that the jail uses: first is the
// host's number of the jail's id 0.
func (j *Jail) HostIDs() (first, count int) { return j.identity.ID(), mounts.IDsPerJail }

// Root opens the guest's root directory with O_PATH. The caller closes it; the files exist
// until then. Paths below it must be opened with [mounts.OpenIn], as they are the guest's. Mounts
// in it are in the jail's mount namespace only: the host's does not know them, so the host
// could remove a mount point.
func (j *Jail) Root() (*os.File, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed.Load() { // pid 1 may have ended, and another process may have its pid
		return nil, ErrClosed
	}
	root, err := kernfile.Open("/proc/"+strconv.Itoa(j.pid1.PID())+"/root", unix.O_PATH|unix.O_DIRECTORY)
	return root, step.Wrap("open", "root", err)
}

// Ruleset makes a Landlock ruleset for processes of the jail, see Command.Ruleset. Its
// rules apply to the files that exist now: a folder that later replaces another has none of
// its rights. The caller closes the file. For errors, see [landlock.Ruleset.Make].
func (j *Jail) Ruleset(r *landlock.Ruleset) (*os.File, error) {
	root, err := j.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return r.Make(root)
}

// Identity is a range of host users and a cgroup, for a jail or for a process outside jails. No other
// Identity of the machine shares them. If the host dies, the next host removes the cgroup.
type Identity struct {
	*slot
	stateDir string
	cgroup   string
}

// NewIdentity reserves an identity, in the same folder and with the same parent as a [Spec]'s. It
// makes the folder and sweeps it first.
func NewIdentity(ctx context.Context, stateDir, cgroupParent string) (*Identity, error) {
	stateDir = cmp.Or(stateDir, DefaultStateDir)
	if _, err := cgroup.Detect(); err != nil { // first: a sweep needs the cgroups
		return nil, step.Wrap("find", "cgroups", err)
	}
	if err := makeStateDirs(stateDir); err != nil {
		return nil, err
	}
	sweepOnce(stateDir)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := takeSlot(jailsDir(stateDir), cgroupParent)
	if err != nil {
		return nil, step.Wrap("register", stateDir, err)
	}
	return &Identity{s, stateDir, path.Join(cgroupParent, s.name())}, nil
}

// ID returns the number of the host's user and group, for a process, or of the first ones of a jail.
func (i *Identity) ID() int { return firstID + i.number*mounts.IDsPerJail }

// Cgroup returns the path of the cgroup, for [cgroup.New]. It does not exist yet.
func (i *Identity) Cgroup() string { return i.cgroup }

// Release kills the processes in the cgroup, removes it, and frees the identity.
func (i *Identity) Release() error { return i.clear(nil) }

// clear removes the cgroup with its processes and the container, and frees the identity. It does not
// free it after an error, which may be an earlier one.
func (i *Identity) clear(failed error) error {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	failed = errors.Join(failed, step.Wrap("clear", i.name(), cgroup.Remove(ctx, i.cgroup)),
		step.Wrap("remove", "container", i.removeContainer()))
	if failed != nil {
		swept.Delete(i.stateDir) // the claim stays, unlocked, for a sweep
		return errors.Join(failed, i.file.Close())
	}
	return step.Wrap("release", i.name(), i.release())
}
