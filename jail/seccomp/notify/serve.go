package notify

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Call is a refused system call.
type Call struct {
	PID   int // of the calling thread, in the host's pid namespace
	Nr    int // the system call's number
	Args  [6]uint64
	Path  string        // its path argument, at most 256 arbitrary bytes; empty if it could not be read; may be forged
	Label string        // of the refusal that applies
	Errno syscall.Errno // the reply
}

const (
	// Burst is how many calls are handled without delay, after a second without calls. Others
	// wait until each has had its pause.
	Burst = 1000
	pause = time.Millisecond
)

// Serve replies to each call with the errno of its refusal. Before the reply it calls
// handle, if not nil, so that a guest never learns of a refusal before handle does. The
// guest is blocked while handle runs. Serve returns nil when no process has the filter any
// more, or after Close. Before Linux 6.11, processes have the filter until they are waited
// for.
//
// After an error no call gets a reply: Close the listener, or guests hang.
func (l *Listener) Serve(handle func(Call)) error {
	for {
		n, err := l.next()
		if err == nil {
			err = l.serve(n, handle)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed):
			return nil
		case err != nil:
			return err
		}
	}
}

// next returns the call that Admit has received, if any, or waits for one.
func (l *Listener) next() (*notification, error) {
	if n := l.pending; n != nil {
		l.pending = nil
		return n, nil
	}
	return l.receive()
}

func (l *Listener) serve(n *notification, handle func(Call)) error {
	time.Sleep(l.calls.Reserve().Delay())
	c := l.describe(n)
	if !l.isBlocked(n) {
		return nil // describe may have read another process's memory
	}
	switch c.Label {
	case "":
	case l.socketLabel:
		return l.replySocket(n, c)
	case l.commandLabel:
		return l.replyCommand(n, c)
	case l.connectLabel:
		return l.replyConnect(n, c)
	}
	if handle != nil {
		handle(c)
	}
	return l.refuse(n, c.Errno)
}

// describe returns the call with the filter's refusal. Calls that the filter does not
// refuse get ENOSYS: the loaded filter was another one.
func (l *Listener) describe(n *notification) Call {
	c := Call{PID: int(n.pid), Nr: int(n.nr), Args: n.args, Errno: unix.ENOSYS}
	r, ok := l.filter.Refusal(c.Nr, c.Args)
	if !ok {
		return c
	}
	c.Label, c.Errno = r.Label, r.Errno
	if r.PathArg > 0 {
		c.Path = readPath(c.PID, n.args[r.PathArg-1])
	}
	return c
}
