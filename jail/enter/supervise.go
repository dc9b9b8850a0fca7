package enter

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/step"
)

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
	host, socket, err := kernfile.SocketPair(unix.SOCK_STREAM)
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
