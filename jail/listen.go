package jail

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"gaol/jail/seccomp"
	"gaol/jail/seccomp/notify"
)

// filter is the filter of a command's process.
func (j *Jail) filter(c *Command) *seccomp.Filter {
	if c.Filter != nil {
		return c.Filter
	}
	return j.spec.Filter
}

// listening is for whoever launches the process, to be called once the filter is on.
// It is nil for a filter that asks nobody.
func (p *Process) listening(f *seccomp.Filter) func(*os.File, syscall.Conn) {
	if !f.Notify {
		return nil
	}
	return func(file *os.File, conn syscall.Conn) {
		l, err := notify.New(file, f)
		if err != nil {
			p.hearing.fail(err)
			p.Kill() // its calls would have no answer
			return
		}
		p.routes.jail = p.jail
		l.HandleSockets(seccomp.Netlink, p.routes.socket)
		p.hearing.begin(l, conn)
	}
}

// hearing answers the calls of a process that its filter refuses, and tells of them.
type hearing struct {
	mu       sync.Mutex
	ended    bool
	listener *notify.Listener // nil before it begins
	heard    chan struct{}    // closed when all is answered
	failed   atomic.Pointer[error]

	refused  func(notify.Call)
	executes bool // the launcher is to become the program by an execve
}

// expect says what is going to run, and whom to tell of its calls.
func (h *hearing) expect(c *Command) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused, h.executes = c.Refused, c.Zygote == nil || c.Script == 0
	if h.refused == nil {
		h.refused = func(notify.Call) {}
	}
}

func (h *hearing) begin(l *notify.Listener, conn syscall.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended { // so is the process
		_ = l.Close()
		return
	}
	h.listener, h.heard = l, make(chan struct{})
	refused, executes := h.refused, h.executes
	go func() {
		defer close(h.heard)
		if executes {
			h.fail(l.Admit(context.Background(), conn)) // Serve has the launcher's execve fail
		}
		if l.Serve(refused) != nil {
			_ = l.Close() // its calls are refused with ENOSYS, and do not hang
		}
	}()
}

// fail notes why the host can't answer. That a socket is closed, as the program runs or is
// being killed, is no reason.
func (h *hearing) fail(err error) {
	if err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, net.ErrClosed) {
		h.failed.Store(&err)
	}
}

// startError is what a start's own error comes from, if that is the host's failure to
// answer: the process was killed for it, or had a wrong answer.
func (h *hearing) startError(err error) error {
	failed := h.failed.Load()
	h.mu.Lock()
	defer h.mu.Unlock()
	if failed == nil || err == nil && h.listener != nil {
		return err
	}
	return stepError("listen", "filter", *failed)
}

// end returns when all that was refused is told.
//
// Preconditions: nothing of the process's group is left.
func (h *hearing) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	if h.listener == nil {
		return
	}
	_ = h.listener.Close()
	<-h.heard
	h.listener = nil
}
