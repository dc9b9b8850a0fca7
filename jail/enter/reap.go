package enter

import (
	"errors"
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
	err := c.Signal(unix.SIGKILL, false)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
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
	first := s
	if group { // only asks whether the child exists, so that the group is still its own
		first = 0
	}
	err := kernfile.Control(c.pidfd, func(fd int) error { return unix.PidfdSendSignal(fd, first, nil, 0) })
	switch {
	case err == unix.ESRCH || err == os.ErrClosed: // a supervisor has waited for it, or that has failed
		return os.ErrProcessDone
	case err == nil && group:
		err = unix.Kill(-c.pid, s)
	}
	return os.NewSyscallError("kill", err)
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
