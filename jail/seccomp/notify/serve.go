package notify

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Call is one that was refused.
type Call struct {
	PID   int // of the thread that made it, in the host's numbers
	Nr    int // the system call's number
	Args  [6]uint64
	Text  string        // the path that it named, of any bytes, at most 256; empty: none could be read. It may be a lie
	Label string        // of the refusal that answers
	Errno syscall.Errno // that it gets
}

const (
	// Unhurried is how many calls are answered at once. Later ones wait for pause.
	Unhurried = 1000
	pause     = time.Millisecond
)

// Serve answers each call with the errno of its refusal, and tells seen of it, if
// not nil, just before: a guest never knows of a refusal that seen doesn't. The
// guest waits while seen runs. Serve returns nil when no process has the filter any
// more, or on Close. Before Linux 6.11 that takes until the processes are waited for.
//
// After an error nothing is answered any more: Close then, or guests hang.
func (l *Listener) Serve(seen func(Call)) error {
	for {
		n, err := l.next()
		if err == nil {
			err = l.serve(n, seen)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed):
			return nil
		case err != nil:
			return err
		}
	}
}

// next begins with what Admit left.
func (l *Listener) next() (*notification, error) {
	if n := l.held; n != nil {
		l.held = nil
		return n, nil
	}
	return l.receive()
}

func (l *Listener) serve(n *notification, seen func(Call)) error {
	if l.answered++; l.answered > Unhurried {
		time.Sleep(pause)
	}
	c := l.describe(n)
	if !l.waits(n) {
		return nil // what describe read may be another process's
	}
	if c.Label == l.supplied && c.Label != "" {
		return l.supply(n, c)
	}
	if seen != nil {
		seen(c)
	}
	return l.refuse(n, c.Errno)
}

// describe says what the filter has to say about a call. One that it does not know,
// as the filter was another one's, gets ENOSYS.
func (l *Listener) describe(n *notification) Call {
	c := Call{PID: int(n.pid), Nr: int(n.nr), Args: n.args, Errno: unix.ENOSYS}
	r, ok := l.filter.Refusal(c.Nr, c.Args)
	if !ok {
		return c
	}
	c.Label, c.Errno = r.Label, r.Errno
	if r.Text > 0 {
		c.Text = readText(c.PID, n.args[r.Text-1])
	}
	return c
}
