package jail

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

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
		l.HandleCommands(seccomp.Command, p.openCommand)
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
