package notify

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"gaol/jail/hostcommand"
)

// HandleCommands registers a function that opens the guest's ends of a call's pipes, for the
// calls of socket(2) that a refusal with the label matches. Serve adds the end to read from at
// the descriptor in the caller's third argument, as dup2 would, and returns the other end. It
// does not report the call. If open fails, the caller gets the errno that the error wraps, or
// else the refusal's errno. Serve closes the ends after the reply.
//
// Call HandleCommands before Serve.
func (l *Listener) HandleCommands(label string, open func(Call) (hostcommand.Ends, error)) {
	l.commandLabel, l.openCommand = label, open
}

// replyCommand adds the pipes to the caller.
func (l *Listener) replyCommand(n *notification, c Call) error {
	ends, err := l.openCommand(c)
	if err == nil {
		err = l.addAt(n, ends.Answers, uint32(c.Args[2]))
		if err == nil {
			err = l.add(n, c, ends.Requests)
		}
		ends.Close()
	}
	if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, os.ErrClosed) { // ENOENT: the caller was killed
		return nil
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		c.Errno = errno
	}
	return l.refuse(n, c.Errno)
}

// addAt adds a descriptor with a given number to the caller, which stays blocked.
func (l *Listener) addAt(n *notification, file *os.File, number uint32) error {
	a := addition{id: n.id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, source: uint32(file.Fd()), number: number, mode: unix.O_CLOEXEC}
	return l.control(func(fd int) error { return withoutSignals(func() error { return ioctl(fd, notifAddFD, &a) }) })
}
