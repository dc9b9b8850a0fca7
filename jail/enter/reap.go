package enter

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/jail/kernfile"
)

// Child is a child of this process that has not been waited for.
type Child struct {
	pid   int
	pidfd *os.File
	conn  syscall.RawConn

	mu     sync.Mutex
	reaped bool // the kernel may have reused the pid
}

// Exit is how a process ended.
type Exit struct {
	Code   int            // exit status, if Signal is 0
	Signal syscall.Signal // the signal that killed it
}

// Adopt returns a Child for the child process pid. If it fails, it kills the process and
// waits for it.
//
// Preconditions: no other code waits for the process.
func Adopt(pid int) (*Child, error) {
	// Linux 5.10. waitid(2) with such a pidfd returns EAGAIN instead of blocking.
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL) // not waited for yet, so the pid is still its own
		_, _ = wait(unix.P_PID, pid)
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	c := &Child{pid: pid, pidfd: os.NewFile(uintptr(fd), "pidfd")}
	c.conn, err = c.pidfd.SyscallConn()
	return c, err
}

// PID returns the child's pid.
func (c *Child) PID() int { return c.pid }

// Kill kills the child. It does nothing if the child was waited for.
func (c *Child) Kill() error {
	var err error
	gone := c.conn.Control(func(fd uintptr) { err = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	if gone != nil || err == unix.ESRCH {
		return nil
	}
	return os.NewSyscallError("pidfd_send_signal", err)
}

// Signal sends a signal to the child or, with group, to all processes of the process
// group that it leads. It returns os.ErrProcessDone if the child was waited for. Signals
// to a child that has ended but was not waited for have no effect.
//
// Preconditions: with group, the child has led a session since its program started.
func (c *Child) Signal(s syscall.Signal, group bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return os.ErrProcessDone
	}
	to := c.pid
	if group {
		to = -c.pid // not reused before the child is waited for
	}
	return os.NewSyscallError("kill", unix.Kill(to, s))
}

// Wait waits until the child ends and returns how it ended. It must be called exactly
// once for each child.
func (c *Child) Wait() (Exit, error) {
	defer c.pidfd.Close()
	var exit Exit
	var err error
	tryWait := func(fd uintptr) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		exit, err = wait(unix.P_PIDFD, int(fd)) // does not block: see Adopt
		c.reaped = err == nil
		return err != unix.EAGAIN
	}
	if c.conn.Read(tryWait) != nil { // the poller could not add it: block a thread
		closed := c.conn.Control(func(fd uintptr) {
			for !tryWait(fd) {
				_, _ = kernfile.Poll(int(fd), unix.POLLIN, -1)
			}
		})
		if closed != nil {
			return Exit{}, closed
		}
	}
	return exit, os.NewSyscallError("waitid", err)
}
