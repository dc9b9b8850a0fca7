package enter

import (
	"context"
	"errors"
	"net"
	"os"
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
	*Child     // the process, which is no child of this process; nil if it was not started
	supervisor *Child
	socket     *net.UnixConn // closing it makes the supervisor kill the process
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
	var pidfd *os.File
	number, value, err := ReadReport(s.socket, func(f *os.File, _ syscall.Conn) { pidfd = f })
	switch {
	case err != nil:
		return step.Wrap("start", Path, errors.Join(errEnded, err))
	case number != reportCloned:
		return l.stepError(number, syscall.Errno(value))
	case pidfd == nil:
		return step.Wrap("start", Path, errUnexpected)
	}
	s.Child = &Child{pid: int(value), pidfd: pidfd}
	return nil
}

// Wait is as [Child.Wait].
func (s *Supervised) Wait() (Exit, error) {
	exit, err := s.supervisor.Wait()
	_ = s.socket.Close()
	if s.Child != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reaped = true
		s.pidfd.Close()
	}
	return exit, err
}
