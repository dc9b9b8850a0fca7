package reap

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Child is a child of this process that nobody has waited for.
type Child struct {
	pid   int
	pidfd *os.File
	conn  syscall.RawConn

	mu     sync.Mutex
	reaped bool // the number may be another's
}

// Exit is how a process ended.
type Exit struct {
	Code   int            // exit status, if Signal is 0
	Signal syscall.Signal // the signal that killed it
}

// Take takes charge of a child. One that can't be taken charge of is killed and
// waited for.
//
// Preconditions: nobody else waits for it.
func Take(pid int) (*Child, error) {
	// Linux 5.10. What waits for such a pidfd gets EAGAIN.
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL) // nobody has waited for it: it is the one
		_, _ = wait(unix.P_PID, pid)
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	c := &Child{pid: pid, pidfd: os.NewFile(uintptr(fd), "pidfd")}
	c.conn, err = c.pidfd.SyscallConn()
	return c, err
}

// PID is the child's number.
func (c *Child) PID() int { return c.pid }

// Kill kills the child. One that was waited for is left alone, and is no error.
func (c *Child) Kill() error {
	var err error
	gone := c.conn.Control(func(fd uintptr) { err = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	if gone != nil || err == unix.ESRCH {
		return nil
	}
	return os.NewSyscallError("pidfd_send_signal", err)
}

// Signal sends a signal to the child or, with group, to all processes of the process
// group that bears its number. The error is os.ErrProcessDone for a child that was
// waited for; one that has ended before takes a signal without an effect.
//
// Preconditions: with group, the child has led a session from its program's start.
func (c *Child) Signal(s syscall.Signal, group bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return os.ErrProcessDone
	}
	to := c.pid
	if group {
		to = -c.pid // nobody else's as long as the child is not waited for
	}
	return os.NewSyscallError("kill", unix.Kill(to, s))
}

// Wait waits for the child's end and says how it ended. Each child has to be waited
// for, and just once.
func (c *Child) Wait() (Exit, error) {
	defer c.pidfd.Close()
	var exit Exit
	var err error
	look := func(fd uintptr) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		exit, err = wait(unix.P_PIDFD, int(fd)) // does not wait: see Take
		c.reaped = err == nil
		return err != unix.EAGAIN
	}
	if c.conn.Read(look) != nil { // the poller had no room for it: then it costs a thread
		if waited := c.conn.Control(func(fd uintptr) { block(fd, look) }); waited != nil {
			return Exit{}, waited
		}
	}
	return exit, os.NewSyscallError("waitid", err)
}

// block looks until the process has ended.
func block(pidfd uintptr, look func(uintptr) bool) {
	for !look(pidfd) {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, -1)
	}
}
