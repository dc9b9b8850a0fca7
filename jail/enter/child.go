package enter

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/step"
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

// killTimeout is how long the supervisor may take to kill the descendants of a failed program.
const killTimeout = 30 * time.Second

// Supervised is a process that another program has started, such as an OCI runtime. Its parent
// is the supervisor, a child of this process: the entry program, which waits for the process and
// ends as it does. When this process ends, the supervisor kills the process.
type Supervised struct {
	*Child     // is waited for by the supervisor; nil if it was not started
	supervisor *Child
	socket     *net.UnixConn // closing it makes the supervisor kill the process
}

// Starter is a program that starts a process, writes its pid to PIDFile and ends with status 0.
type Starter struct {
	Args    []string
	Files   []*os.File // the descriptors from 0 on
	Limits  []Limit
	PIDFile string
}

// Supervise makes program, the entry program, execute by and supervise the process that it starts.
// If by ends with another status than 0, the error wraps syscall.ECHILD. The end of ctx kills it.
// After an error, all its descendants have been killed.
func Supervise(ctx context.Context, program *os.File, by Starter) (*Supervised, error) {
	host, socket, err := SocketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, step.Wrap("make", "socket", err)
	}
	l := List{Steps: []Step{CloseOthers()}, Files: by.Files}
	for _, limit := range by.Limits {
		l.Steps = append(l.Steps, limit.Step())
	}
	l.Steps = append(l.Steps, supervise(by.PIDFile, by.Args))
	first, err := start(program, l.open(socket), len(by.Files), nil)
	socket.Close()
	if err != nil {
		_ = host.Close()
		return nil, step.Wrap("start", Path, StartError(err))
	}
	s := &Supervised{socket: host}
	s.supervisor, err = Adopt(first.Pid)
	_ = first.Release()
	if err != nil {
		_ = host.Close()
		return nil, step.Wrap("start", Path, err)
	}
	end := func() { _ = host.CloseWrite() } // the supervisor kills the program and its children
	stop := context.AfterFunc(ctx, end)
	err = s.await(&l)
	if !stop() || err != nil {
		err = errors.Join(err, ctx.Err())
		end()
		defer time.AfterFunc(killTimeout, func() { _ = s.supervisor.Kill() }).Stop() // a process may not end
		if exit, _ := s.Wait(); errors.Is(err, errEnded) && exit.Code == otherVersionExit {
			err = ErrOtherVersion
		}
		return nil, err
	}
	return s, nil
}

// await sends the list and reads the report of the process.
func (s *Supervised) await(l *List) error {
	message, err := l.encode()
	if err != nil {
		return err
	}
	if err := write(s.socket, message); err != nil {
		return step.Wrap("start", Path, err)
	}
	var pidfd *os.File
	number, value, err := ReadReport(s.socket, func(f *os.File, _ syscall.Conn) { pidfd = f })
	if err == nil && number == reportCloned && pidfd != nil {
		s.Child = &Child{pid: int(value), pidfd: pidfd}
		return nil
	}
	pidfd.Close() // may be nil
	switch {
	case err != nil:
		return step.Wrap("start", Path, errors.Join(errEnded, err))
	case number != reportCloned:
		return l.stepError(number, syscall.Errno(value))
	}
	return step.Wrap("start", Path, errUnexpected)
}

// Wait is as [Child.Wait].
func (s *Supervised) Wait() (Exit, error) {
	exit, err := s.supervisor.Wait()
	_ = s.socket.Close()
	if p := s.Child; p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.reaped = true
		p.pidfd.Close()
	}
	return exit, err
}
