package jail

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/gateway"
	"gaol/jail/hostcommand"
	"gaol/jail/kernel"
	"gaol/jail/landlock"
	"gaol/jail/mounts"
	"gaol/jail/procfs"
	"gaol/jail/seccomp"
	"gaol/jail/seccomp/notify"
	"gaol/jail/step"
	"gaol/jail/zygote"
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
	pid1     firstProcess     // nil before it is started
	pidfd    *os.File         // of pid 1
	gateway  *gateway.Gateway // nil before OpenGateway
	commands *mounts.HostDir  // of Spec.Commands; may be nil
	programs *mounts.HostDir  // of AddProgram
	disk     *os.File         // of the tree, if that is on disk
	changes  *os.File         // the folder of changes, with Tree.OneOverlay
	release  chan struct{}    // closed to end the thread that started pid 1

	pausing sync.Mutex // held by SetPaused

	mu     sync.Mutex
	closed atomic.Bool // changed with mu held
	runs   sync.WaitGroup
	live   map[*Process]struct{}
}

// starter starts the processes of a jail: the entry program does, or an OCI runtime.
type starter interface {
	// startPid1 calls mount, which mounts the tree, creates the namespaces, and starts pid 1 with a copy
	// of the calling thread's mounts.
	startPid1(top *cgroupFiles, mount func() error) error

	// launch sets p.first to a new process, in the cgroups of in, and returns when it runs c's
	// program. If it fails, it may have set p.first, which must be waited for.
	launch(ctx context.Context, p *Process, c *Command, in *cgroupFiles) error
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

// Changes opens the upper folder of the overlay of a tree with OneOverlay: it contains the changed files. It must not be
// read while processes run. The caller closes it before the jail.
func (j *Jail) Changes() (*os.File, error) {
	if j.changes == nil {
		return nil, unix.EINVAL
	}
	return os.Open("/proc/self/fd/" + strconv.Itoa(int(j.changes.Fd())))
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

// Create creates a jail. If it fails, it removes the partial jail.
func Create(ctx context.Context, s Spec) (*Jail, error) {
	if s.Filter == nil {
		return nil, &StepError{Step: "seccomp", Target: "no filter", Err: unix.EINVAL}
	}
	if s.OneOverlay && s.OCI != nil { // its runtime executes programs by their paths in the tree
		return nil, &StepError{Step: "own", Target: "image in a container", Err: errors.ErrUnsupported}
	}
	if !s.AllowDegraded && kernel.Probe().Lacks(kernel.GroupLimits) {
		return nil, &StepError{Step: "limit", Target: "memory", Err: errors.ErrUnsupported}
	}
	if s.Loopback && !s.omits(kernel.SocketLists) {
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
// Preconditions: see mounts.Stage.Open.
func (j *Jail) start() error {
	host, err := kernfile.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY)
	if err != nil {
		return step.Wrap("open", "mount namespace", err)
	}
	defer host.Close()
	stage := mounts.Prepare(j.spec.fullTree(), j.identity.ID())
	defer stage.Close()
	var top *cgroupFiles
	made := make(chan error, 1)
	go func() { // takes half as long as the tree
		var err error
		top, err = j.makeCgroups()
		made <- err
	}()
	err = stage.Open(stageDir(j.identity.stateDir()))
	defer func() { // remove closes them
		j.commands, j.programs, j.disk, j.changes = stage.Commands, stage.Programs, stage.Disk, stage.Changes
	}()
	if failed := <-made; failed != nil {
		return failed
	}
	defer top.close()
	if err != nil {
		return err
	}
	if j.program, err = stage.OpenProgram(enter.Path, unix.O_PATH); err != nil {
		return step.Wrap("open", enter.Path, err)
	}
	if err := j.starter.startPid1(top, stage.Mount); err != nil {
		return err
	}
	// Pid 1 uses a copy of this mount namespace, so the thread can leave it.
	return step.Wrap("leave", "mount namespace", unix.Setns(int(host.Fd()), unix.CLONE_NEWNS))
}

// entryProgram starts processes by package enter's program.
type entryProgram struct{ *Jail }

// startPid1 implements starter. The namespaces are made while the tree is mounted: the kernel takes as
// long for both. Pid 1 reads and prints nothing, so its descriptors 0 to 2 are /dev/null.
func (j entryProgram) startPid1(top *cgroupFiles, mount func() error) error {
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
	var mounted error
	list := enter.List{
		Steps: j.createSteps(in, init), Filter: j.spec.Filter.Program, Files: []*os.File{null, null, null}, StartIn: in.startIn,
		Meanwhile: func() { mounted = mount() },
	}
	var network chan error
	err = enter.Launch(j.program, list, func(child *enter.Child) error {
		j.pid1 = child
		if err := cmp.Or(mounted, j.openPid1()); err != nil {
			return err
		}
		if err := j.mapIDs(j.pid1.PID()); err != nil {
			return err
		}
		network = make(chan error, 1)
		go func() { network <- j.prepareNetwork() }() // takes as long as pid 1's mounts
		return nil
	})
	if network != nil {
		err = cmp.Or(err, <-network)
	}
	return err
}

// prepareNetwork sets up pid 1's network namespace.
func (j *Jail) prepareNetwork() error {
	if err := j.allowLowPorts(); err != nil {
		return step.Wrap("allow", "low ports", err)
	}
	if j.spec.omits(kernel.NetModes) { // its /proc/net shows no other namespaces
		return nil
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
	j.changes.Close()
	j.pidfd.Close()
	if j.shared != nil {
		j.shared.close()
	}
	close(j.release)
	if j.pool != nil {
		j.pool.Close()
	}
	failed = errors.Join(failed, step.Wrap("discard", "disk", mounts.DiscardDisk(j.disk)))
	return j.identity.clear(failed)
}

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
		return errors.New("a process of the jail has ended and is not reaped")
	}
}

// init locks the main goroutine to the main thread, as runtime.LockOSThread documents for
// package inits. Starting a jail uses threads that enter a mount namespace and end with
// their goroutine. Go can't end the main thread: it would stay in that namespace, and so
// would /proc/self of this process.
func init() { goruntime.LockOSThread() }

// Spec describes a jail.
type Spec struct {
	// Tree is the file tree. Create sets its Protected and Proc.
	Tree

	// Limits are the memory and the processors that /proc and /sys/fs/cgroup show to the
	// guest. If a field is zero, they show the machine's. They enforce nothing: see
	// Command.Limits.
	Limits cgroup.Limits

	// HideProcesses hides in /proc the processes that the reader may not trace: with a
	// Command.Ruleset the processes of other runs.
	HideProcesses bool

	// Loopback brings up the loopback interface, the only one of the jail.
	Loopback bool

	// Identified gives each process's cgroup an id, see Command.OnCgroup. On machines with
	// cgroup v1 it needs a v2 hierarchy beside that.
	Identified bool

	Hostname string

	// Reaper is pid 1: a static program of the image and its arguments.
	Reaper []string // the first is a guest path

	// Filter is the system call filter of pid 1, and of processes if their Command has none.
	Filter *seccomp.Filter

	// AllowDegraded omits features that the kernel lacks, see kernel.Profile. Otherwise a missing feature is an error.
	AllowDegraded bool

	// OCI, if not nil, makes the jail a container of that runtime, without zygotes.
	OCI *OCIRuntime

	// CgroupParent is the cgroup that contains the jail's, as an absolute path in the
	// hierarchy.
	CgroupParent string

	// StateDir is a folder on a local file system where live jails are registered. All
	// processes of a host that create jails must use the same. Empty: /run/gaol.
	StateDir string
}

// omits reports whether the jail does without a feature that the kernel lacks.
func (s *Spec) omits(f kernel.Feature) bool { return s.AllowDegraded && kernel.Probe().Lacks(f) }

// Program is the program that a process runs, with its files. The caller closes its own copies of
// the files; no other descriptor of the host is open in the process. With Terminal, the first file must be a
// terminal that [Jail.OpenTerminal] returned for this process alone.
type Program = zygote.Program

// Command is a process to start in a jail. Script is ignored without Zygote.
type Command struct {
	Program

	// FromRoot makes the process begin in /, if it may enter Dir. Its program enters Dir. FromRoot is
	// ignored with Zygote.
	FromRoot bool

	// Zygote forks the process. Nil: the entry program starts it.
	Zygote *zygote.Pool

	// Parked, if not nil, becomes the process, unless it has ended. It keeps the Limits,
	// OpenFiles, FileSize, Filter and Ruleset that were passed to Park.
	Parked *Parked

	// Filter replaces the jail's filter. If it notifies (seccomp.Filter.Notify), Refused,
	// which may be nil, is called for each call that it refuses by a label: before Wait
	// returns, and from one goroutine at a time.
	Filter  *seccomp.Filter
	Refused func(notify.Call)

	// Connect decides about the connects of IP sockets, TCP and UDP, if Filter has
	// seccomp.AskConnect. A connect to an address for which it returns false gets EACCES. It
	// restricts nothing: see [notify.Listener.HandleConnects].
	Connect func(to netip.AddrPort) bool

	// OnCommand, if not nil, is called when the process, or one of its descendants, calls a
	// command of the jail, from one goroutine at a time. It returns the guest's ends of the
	// pipes, which the jail closes. The errno that an error wraps becomes the caller's; with
	// EAGAIN it tries again. Spec needs Commands, and Filter seccomp.AskCommand.
	OnCommand func(name string) (hostcommand.Ends, error)

	// NoLocalhost keeps the process from localhost, which others of the jail may use. Spec needs
	// Identified.
	NoLocalhost bool

	// OnCgroup, if not nil, is called before the program runs, with the id of its cgroup, that
	// all of its sockets have. The jail must have been created with Spec.Identified.
	OnCgroup func(id uint64)

	// Ruleset, if not nil, restricts the process, see [Jail.Ruleset], with RulesetFlags
	// of landlock_restrict_self(2). The caller closes it.
	Ruleset      *os.File
	RulesetFlags uint32

	AllowDegraded bool // as in Spec, for the process's limits

	Limits    cgroup.Limits // of the process and its descendants together
	OpenFiles int64         // RLIMIT_NOFILE
	FileSize  int64         // RLIMIT_FSIZE, bytes; 0: the host process's limit
}

// name returns the program's path or name; "" for a process that waits for its program.
func (c *Command) name() string { return strings.Join(c.Args[:min(len(c.Args), 1)], "") }

// Tree describes the file tree of a jail.
type Tree = mounts.Tree

// Place is a part of the tree.
type Place = mounts.Place

// File is a file to create in the tree.
type File = mounts.File

// Errors of mounts, see package mounts.
var (
	ErrNoIDMap    = mounts.ErrNoIDMap
	ErrNotInMount = mounts.ErrNotInMount
)

// CheckOwners returns an error that wraps ErrNoIDMap if guests would see uid 65534 as the
// owner of the files of an image in the folder dir.
func CheckOwners(dir string) error { return mounts.CheckOwners(dir, FirstID) }

// CheckDisks makes a disk in a folder, as Tree.DiskDir does, and closes it.
func CheckDisks(dir string) error { return mounts.CheckDisks(dir) }

// fullTree returns the spec's tree with the parts of every jail.
func (s *Spec) fullTree() Tree {
	t := s.Tree
	if len(s.Reaper) > 0 { // without its pid 1 there is no jail
		addProgram(&t, s.Reaper[0])
	}
	// No cgroup file system is mounted in a jail: libuv needs only these files of it to size
	// Node for the limits.
	t.Layer = slices.Clip(t.Layer)
	for path, text := range s.Limits.Files() {
		t.Layer = append(t.Layer, File{Path: path, Mode: 0o444, Data: []byte(text)})
	}
	if s.OCI != nil { // the runtime executes the entry program in the tree
		addProgram(&t, enter.Path)
		t.Layer = append(t.Layer, s.limitFiles()...)
	}
	t.Protected = []string{enter.Path, enter.Reaper}
	t.Proc = procfs.Config{Hostname: s.Hostname, Memory: s.Limits.Memory, CPUs: s.Limits.CPUs}
	return t
}

// addProgram lets programs of the jail execute a file, whatever the tree hides.
func addProgram(t *Tree, path string) {
	t.Show, t.Exec = append(slices.Clip(t.Show), Place{Path: path}), append(slices.Clip(t.Exec), Place{Path: path})
}
