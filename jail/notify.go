package jail

import (
	"errors"
	"net"
	"os"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/jail/hostcommand"
	"gaol/jail/seccomp"
	"gaol/jail/seccomp/notify"
	"gaol/jail/step"
)

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

var errNoCommandDir = errors.New("the jail was created without Commands")

// AddCommand adds a command, if the jail lacks it: a program with that name in
// hostcommand.Dir, see Command.OnCommand. The jail must have been created with Tree.Commands.
func (j *Jail) AddCommand(name string) error {
	err := hostcommand.CheckName(name)
	switch {
	case err != nil:
	case j.closed.Load():
		err = ErrClosed
	case j.commands == nil:
		err = errNoCommandDir
	default:
		err = j.commands.AddCommand(name)
	}
	return hostDirError("add", "command", err)
}

// hostDirError wraps an error of a folder in which the host writes. The folder is closed with the jail.
func hostDirError(name, target string, err error) error {
	if errors.Is(err, os.ErrClosed) {
		err = ErrClosed
	}
	return step.Wrap(name, target, err)
}

// commandOf returns the command that a process executes: all of them are names of one file. The kernel
// knows by which name.
//
// Preconditions: the process is blocked in a system call, or a wrong result is harmless.
func (j *Jail) commandOf(pid int) (string, error) {
	if j.commands == nil {
		return "", unix.EPERM
	}
	exe := "/proc/" + strconv.Itoa(pid) + "/exe"
	program, err1 := j.commands.Lstat(hostcommand.Program)
	file, err2 := os.Stat(exe)
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	if !os.SameFile(program, file) {
		return "", unix.EPERM
	}
	target, err := os.Readlink(exe)
	return path.Base(target), err
}

// openCommand opens the pipes for a process of the jail that calls a command.
func (p *Process) openCommand(c notify.Call) (requests, answers *os.File, err error) {
	name, err := p.jail.commandOf(c.PID)
	open := p.notify.command.OnCommand
	if err == nil && open == nil {
		err = unix.EPERM
	}
	if err != nil {
		return nil, nil, err
	}
	ends, err := open(name)
	return ends.Requests, ends.Answers, err
}

// AddProgram makes a folder in ProgramDir with a file of that name, which processes of the jail
// can read and not change, and a link node_modules to packages. No folder of that name may exist.
func (j *Jail) AddProgram(folder string, file File, packages string) error {
	return hostDirError("write", "program", j.programs.WriteProgram(folder, file, packages))
}

// RemoveProgram removes the files of AddProgram.
func (j *Jail) RemoveProgram(folder string) error {
	return hostDirError("remove", "program", j.programs.RemoveAll(folder))
}
