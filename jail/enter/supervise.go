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

	"gaol/jail/step"
)

// killTimeout is how long the supervisor may take to kill the descendants of a failed program.
const killTimeout = 30 * time.Second

// Supervised is a process that another program has started, such as an OCI runtime. Its parent
// is the supervisor, a child of this process: the entry program, which waits for the process and
// ends as it does. When this process ends, the supervisor kills the process.
type Supervised struct {
	supervisor *Child
	socket     *net.UnixConn // closing it makes the supervisor kill the process
	pid        int
	pidfd      *os.File

	mu    sync.Mutex
	ended bool // the kernel may have reused the pid
}

// Supervise starts a supervisor, which executes args with these limits and with files as its
// descriptors. That program must start a process, write its pid to pidFile and end with status 0:
// Supervise then returns the process. If the program ends with another status, the error wraps
// syscall.ECHILD. The end of ctx kills the program. After an error, all descendants of the program
// have been killed.
func Supervise(ctx context.Context, program *os.File, files []*os.File, limits []Limit, pidFile string, args []string) (*Supervised, error) {
	host, socket, err := SocketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, step.Wrap("make", "socket", err)
	}
	l := List{Steps: []Step{CloseOthers()}, Files: files}
	for _, limit := range limits {
		l.Steps = append(l.Steps, limit.Step())
	}
	l.Steps = append(l.Steps, supervise(pidFile, args))
	first, err := start(program, l.open(socket), len(files), nil)
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
	number, value, err := ReadReport(s.socket, func(pidfd *os.File, _ syscall.Conn) { s.pidfd = pidfd })
	switch {
	case err != nil:
		return step.Wrap("start", Path, errors.Join(errEnded, err))
	case number != reportCloned:
		return l.stepError(number, syscall.Errno(value))
	case s.pidfd == nil:
		return step.Wrap("start", Path, errUnexpected)
	}
	s.pid = int(value)
	return nil
}

// PID returns the process's pid.
func (s *Supervised) PID() int { return s.pid }

// Kill kills the process. It does nothing if the process has ended.
func (s *Supervised) Kill() error {
	err := s.Signal(unix.SIGKILL, false)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Signal is as [Child.Signal].
func (s *Supervised) Signal(signal syscall.Signal, group bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return os.ErrProcessDone
	}
	to := signal
	if group { // only asks whether the process exists, so that the group is still its own
		to = 0
	}
	err := unix.PidfdSendSignal(int(s.pidfd.Fd()), to, nil, 0)
	if err == unix.ESRCH { // the supervisor has waited for it
		return os.ErrProcessDone
	}
	if group && err == nil {
		err = unix.Kill(-s.pid, signal)
	}
	return os.NewSyscallError("kill", err)
}

// Wait is as [Child.Wait].
func (s *Supervised) Wait() (Exit, error) {
	exit, err := s.supervisor.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	_ = s.socket.Close()
	s.pidfd.Close() // nil if there was no process
	return exit, err
}
