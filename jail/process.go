package jail

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/mounts"
	"gaol/jail/seccomp"
	"gaol/jail/seccomp/notify"
	"gaol/jail/step"
)

// Process is a process that Start started, with all its descendants.
type Process struct {
	jail   *Jail
	group  *cgroup.Group
	limits cgroup.Limits
	first  firstProcess // nil before it is started

	guestPID int // set before Start returns

	unwatched bool // it has ended; guarded by the lock of memoryWatch

	runs      atomic.Bool  // a program; it did not wait for one, or no longer
	parkedCPU atomic.Int64 // nanoseconds that it used before it got its program

	notify notifyHandler
	routes routeSockets // used by notify only

	uncharged       atomic.Bool  // memoryWatch killed it
	killedForMemory atomic.Int64 // processes that memoryWatch killed, where the kernel does not
	killedAt        time.Time    // the last one; used by memoryWatch only
	peakMemory      atomic.Int64 // that memoryWatch has seen there

	kill   sync.Once
	killed chan struct{} // closed by Kill
	done   chan struct{}
	exit   Exit
	err    error
}

// firstProcess is a jail's pid 1, or a process that Start started: a child of the host that must be waited for.
// Each launcher implements it.
type firstProcess interface {
	PID() int
	Kill() error
	Signal(s syscall.Signal, group bool) error
	Wait() (enter.Exit, error)
}

// Exit describes how a process ended and its cgroup's usage.
type Exit struct {
	Code   int            // exit status, if Signal is 0
	Signal syscall.Signal // the signal that killed it

	// Uncharged reports that it was killed because it held too much kernel memory that is
	// not charged to any cgroup: file locks, or data in sockets.
	Uncharged bool
	Usage     cgroup.Usage
}

// PID returns the process's pid in the host's namespace.
func (p *Process) PID() int { return p.first.PID() }

// GuestPID returns the process's pid in the jail.
func (p *Process) GuestPID() int { return p.guestPID }

// Signal sends a signal to the process or, with group, to all of the process group that it
// leads. It returns os.ErrProcessDone if the process has ended and was waited for. Other
// descendants get no signal: [Process.Kill] kills them all.
func (p *Process) Signal(s syscall.Signal, group bool) error {
	err := p.first.Signal(s, group)
	if errors.Is(err, unix.ESRCH) { // it has ended, and so has its group
		err = os.ErrProcessDone
	}
	return err
}

// Done is closed when the process has ended, nothing of its cgroup is left and the cgroup
// is removed, or kept for reuse by the next process of the jail.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for Done and returns how the process ended. An error means that its cgroup
// could not be killed, read or removed.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// Kill kills the process and all its descendants. It does not wait.
func (p *Process) Kill() { p.kill.Do(func() { close(p.killed) }) }

// killWhenAsked kills the cgroup after Kill was called, until the process is done: while a
// process is being started, more may join its cgroup.
func (p *Process) killWhenAsked() {
	const interval = 5 * time.Millisecond
	select {
	case <-p.done:
		return
	case <-p.killed:
	}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
		_ = p.group.Kill(ctx) // finish reports the error
		cancel()
		select {
		case <-p.done:
			return
		case <-time.After(interval):
		}
	}
}

// Usage returns the cgroup's usage so far; after the end, the same as Exit.
func (p *Process) Usage() (cgroup.Usage, error) {
	usage, err := p.usage()
	if err != nil { // in most cases the cgroup was removed, as the process has ended
		select {
		case <-p.done:
			return p.exit.Usage, p.err
		case <-time.After(killTimeout):
		}
	}
	return usage, err
}

func (p *Process) usage() (cgroup.Usage, error) {
	usage, err := p.group.Usage()
	return p.corrected(usage), err
}

// corrected returns the usage of the process without its wait for a program, and with what memoryWatch has done.
func (p *Process) corrected(u cgroup.Usage) cgroup.Usage {
	u.CPU -= time.Duration(p.parkedCPU.Load())
	u.OOMKills += p.killedForMemory.Load()
	u.PeakMemory = max(u.PeakMemory, p.peakMemory.Load())
	return u
}

// reap waits for the process, kills the rest of its cgroup, and records the exit.
func (p *Process) reap() {
	defer p.leave()
	defer uncharged.remove(p)
	exit, err := p.first.Wait()
	p.exit.Code, p.exit.Signal = exit.Code, exit.Signal
	usage, failed := p.finish()
	p.exit.Usage, p.err = usage, errors.Join(step.Wrap("wait", "", err), failed)
	p.exit.Uncharged = p.uncharged.Load()
}

// finish kills all processes in the cgroup, reads its usage and removes it.
func (p *Process) finish() (cgroup.Usage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	killErr := step.Wrap("kill", p.group.Path(), p.group.Kill(ctx))
	usage, usageErr := p.group.Usage()
	p.notify.close()
	p.routes.watched.Close() // may be nil
	p.routes.watched = nil
	removeErr := p.jail.pool.Delete(p.group, usage)
	return p.corrected(usage), errors.Join(killErr,
		step.Wrap("read", "usage", usageErr),
		step.Wrap("remove", p.group.Path(), removeErr))
}

// abandon undoes a start that failed.
func (p *Process) abandon() error {
	if p.group == nil {
		return nil
	}
	p.Kill()
	if p.first != nil {
		_, _ = p.first.Wait()
	}
	_, err := p.finish()
	return err
}

// guestPID returns a process's pid in the innermost of its pid namespaces, which the kernel
// lists last, or 0 if the process does not exist.
//
// Preconditions: the process has not been waited for, so its pid is still its own.
func guestPID(pid int) int {
	text, err := kernfile.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	if n := innermostPID(text); n != 0 {
		return n
	}
	fd, err := unix.PidfdOpen(pid, 0) // in gVisor, only pidfds show pids
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	text, _ = kernfile.ReadFile("/proc/thread-self/fdinfo/" + strconv.Itoa(fd))
	return innermostPID(text)
}

// innermostPID returns the last pid in the line NSpid, or 0. Line breaks in names of programs, which guests can set, are escaped:
// proc(5).
func innermostPID(text []byte) int {
	_, line, _ := strings.Cut(string(text), "\nNSpid:")
	line, _, _ = strings.Cut(line, "\n")
	n, _ := strconv.Atoi(line[strings.LastIndexByte(line, '\t')+1:])
	return n
}

// onListener returns the function that the launcher calls with the filter's listener, once
// the filter is in force, after notifyHandler.expect. It is nil for filters that do not notify.
func (p *Process) onListener(f *seccomp.Filter) func(*os.File, syscall.Conn) {
	if !f.Notify {
		return nil
	}
	return func(file *os.File, conn syscall.Conn) {
		l, err := notify.New(file, f)
		if err != nil {
			p.notify.fail(err)
			p.Kill() // nothing would answer its calls
			return
		}
		p.routes.jail = p.jail
		l.HandleSockets(seccomp.Netlink, p.routes.open)
		l.HandleSockets(seccomp.Command, p.openCommand)
		l.HandleConnects(seccomp.Connect, p.notify.command.Connect)
		p.notify.serve(l, conn)
	}
}

// notifyHandler answers the notifications of a process's filter, and reports the calls that
// the filter refuses.
type notifyHandler struct {
	mu       sync.Mutex
	closed   bool
	listener *notify.Listener // nil before serve
	served   chan struct{}    // closed when all notifications are answered
	failed   atomic.Pointer[error]

	command *Command // that the process is about to run, or runs
}

// expect sets the command that the process is about to run.
func (h *notifyHandler) expect(c *Command) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.command = c
}

// serve replies to notifications on a new goroutine: the launcher has to continue reading
// reports, and its execve may itself wait for a reply.
func (h *notifyHandler) serve(l *notify.Listener, conn syscall.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed { // the process has ended
		_ = l.Close()
		return
	}
	h.listener, h.served = l, make(chan struct{})
	if h.command.Zygote == nil || h.command.Script == 0 {
		h.fail(l.Admit(conn)) // the launcher's execve, which Serve would refuse
	}
	refused := h.command.Refused
	go func() {
		defer close(h.served)
		if err := l.Serve(refused); err != nil {
			h.fail(err)
			_ = l.Close() // the calls then fail with ENOSYS instead of hanging
		}
	}()
}

// fail records why the host can't answer. A closed socket is not a failure: the program
// runs or is being killed.
func (h *notifyHandler) fail(err error) {
	if err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, net.ErrClosed) {
		h.failed.Store(&err)
	}
}

// startError returns the error of a start: the host's error, if the host could not reply, as the
// process was then killed or got a wrong reply, and err otherwise.
func (h *notifyHandler) startError(err error) error {
	failed := h.failed.Load()
	h.mu.Lock()
	defer h.mu.Unlock()
	if failed == nil || err == nil && h.listener != nil {
		return err
	}
	return step.Wrap("listen", "filter", *failed)
}

// close returns when all refused calls are reported.
//
// Preconditions: nothing of the process's cgroup is left.
func (h *notifyHandler) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.listener == nil {
		return
	}
	_ = h.listener.Close()
	<-h.served
	h.listener = nil
}

// TerminalSize is the size of a terminal's window. Neither number may be zero.
type TerminalSize struct{ Rows, Cols uint16 } // characters

// Terminal is a pseudo-terminal of the jail's devpts, for one process. No process of the
// jail gets the host's end. All processes of the guest's user can open the other end, by
// its name in /dev/pts, and so read its input.
type Terminal struct {
	// Host is the host's end: writes to it are input, and reads return output. Reads fail
	// with EIO unless a process has opened the other end.
	Host *os.File

	// Guest is the other end, for the process. The guest's user owns it.
	Guest *os.File

	// Kept is the other end, too: while it is open, reads of Host wait for more output.
	Kept *os.File
}

// OpenTerminal opens a terminal. The guest can use up the 64 of its devpts: the error then
// wraps ENOSPC.
func (j *Jail) OpenTerminal(size TerminalSize) (*Terminal, error) {
	root, err := j.Root()
	if err != nil {
		return nil, step.Wrap("open", "terminal", err)
	}
	defer root.Close()
	t := &Terminal{}
	// The multiplexer of the jail's devpts, so that the terminal gets a name in it. The host's
	// end does not block a thread.
	t.Host, err = mounts.OpenBeneath(root, "dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK)
	if err == nil {
		err = kernfile.Control(t.Host, func(fd int) error { return t.openGuest(fd, j.identity.ID()+mounts.GuestUID, size) })
	}
	if err != nil {
		t.Close()
		return nil, step.Wrap("open", "terminal", err)
	}
	return t, nil
}

// openGuest opens the guest's end by the host's, as its name may be hidden in the tree.
func (t *Terminal) openGuest(host, uid int, size TerminalSize) error {
	var fs unix.Statfs_t
	err := unix.Fstatfs(host, &fs)
	if err == nil && fs.Type != unix.DEVPTS_SUPER_MAGIC {
		err = errors.New("not the jail's own devpts")
	}
	if err != nil {
		return err
	}
	if err = unix.IoctlSetPointerInt(host, unix.TIOCSPTLCK, 0); err != nil {
		return os.NewSyscallError("ioctl", err)
	}
	if t.Guest, err = openPeer(host); err != nil {
		return err
	}
	if t.Kept, err = openPeer(host); err != nil {
		return err
	}
	if err = t.Guest.Chown(uid, -1); err != nil { // devpts sets the group
		return err
	}
	return resize(host, size)
}

func openPeer(host int) (*os.File, error) {
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(host), unix.TIOCGPTPEER, flags)
	if errno != 0 {
		return nil, os.NewSyscallError("ioctl", errno)
	}
	return os.NewFile(fd, "terminal"), nil
}

// Resize sets the window size, which sends SIGWINCH to the terminal's foreground process
// group. It returns os.ErrClosed if the host's end is closed.
func (t *Terminal) Resize(size TerminalSize) error {
	return kernfile.Control(t.Host, func(fd int) error { return resize(fd, size) })
}

func resize(fd int, size TerminalSize) error {
	if size.Rows == 0 || size.Cols == 0 {
		return unix.EINVAL
	}
	return os.NewSyscallError("ioctl", unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols}))
}

// EndOfInput returns the key that means the end of the input if it is typed at the
// beginning of a line. Programs can change it.
func (t *Terminal) EndOfInput() (key byte, err error) {
	err = kernfile.Control(t.Host, func(fd int) error {
		settings, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			key = settings.Cc[unix.VEOF]
		}
		return os.NewSyscallError("ioctl", err)
	})
	return key, err
}

// Close closes all ends. Processes on the terminal get SIGHUP and the end of the input.
func (t *Terminal) Close() {
	for _, f := range []*os.File{t.Guest, t.Kept, t.Host} { // may be nil
		f.Close()
	}
}

// SetPaused stops all processes that Start has started, and returns when they have stopped, or lets them continue. Pid 1, which runs
// no code of the guest, is never stopped. After an error the processes continue.
//
// Preconditions: Start is not called before they continue.
func (j *Jail) SetPaused(ctx context.Context, paused bool) error {
	j.pausing.Lock()
	defer j.pausing.Unlock()
	j.mu.Lock()
	var groups []*cgroup.Group // of each process, so that it can be killed alone: v1 does not thaw a group whose parent is frozen
	for p := range j.live {
		if p.group != nil {
			groups = append(groups, p.group)
		}
	}
	j.mu.Unlock()
	var failed error
	for _, g := range groups {
		if failed = errors.Join(failed, g.SetFrozen(ctx, paused)); failed != nil && paused {
			break
		}
	}
	if failed != nil && paused {
		for _, g := range groups {
			failed = errors.Join(failed, g.SetFrozen(context.WithoutCancel(ctx), false))
		}
	}
	return step.Wrap("pause", j.identity.name(), failed)
}
