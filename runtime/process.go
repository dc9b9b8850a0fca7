package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail"
)

// Process is a spawned process, and all that descends from it. Its methods may be called
// from several goroutines at once.
//
// Nobody has to wait for it: all that it holds of the host is given back at its end, or
// at its runtime's Close.
type Process struct {
	// Stdin is what the process reads; on a terminal, what is typed. A Write waits for
	// a process that does not read, until it ends: then the error is io.ErrClosedPipe.
	// Close ends the input; on a terminal it types the key for that, Ctrl-D, as a Write
	// does. A program that reads lines takes it so at the beginning of one.
	Stdin io.WriteCloser

	// Stdout and Stderr are what the process prints, unless [Process.Events] has it. The
	// kernel holds some 64 KiB of each, 1 MiB of one that is read in large pieces, and of
	// a terminal 8 KiB; then the process waits for who reads, and so may
	// never end if nobody does. What it printed last can be read after its end, too.
	// On a terminal all is in Stdout, and Stderr is empty. io.EOF is the end.
	Stdout, Stderr io.Reader

	live   *live
	limit  context.Context // of its time
	stop   context.CancelFunc
	queued time.Duration
	resize func(rows, cols uint16) error // nil: there is no terminal

	events processEvents

	done chan struct{}
	res  *Result
	err  error
}

// PID is the process's number, as the guest has it.
func (p *Process) PID() int { return p.live.process.GuestPID() }

// attend takes the process to its end.
func (p *Process) attend() {
	rt := p.live.rt
	defer rt.live.spawned.Done()
	defer p.endEvents()
	defer close(p.done)
	defer rt.queue.leave()
	defer p.stop()
	p.res, p.err = p.live.finish(p.limit, nil)
	if p.res != nil {
		p.res.Queued = p.queued
	}
}

// Done is closed when the process has ended, and nothing is left of it or of what
// descends from it.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for Done and returns what came of the process, as often as it is called. Result
// has no output: that is for the readers. If ctx ends first, there is no Result, the error
// wraps ctx.Err() and the cause of ctx, and the process goes on. If the runtime's Close ended
// the process, the error is [ErrClosed], beside the Result. After Kill there is no error.
func (p *Process) Wait(ctx context.Context) (*Result, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		select {
		case <-p.done: // both: what came of it is worth more
		default:
			return nil, fmt.Errorf("gaol: wait: %w", contextError(ctx))
		}
	}
	return p.outcome()
}

// outcome is what came of the process.
//
// Preconditions: p.done is closed.
func (p *Process) outcome() (res *Result, err error) {
	if p.err != nil {
		err = fmt.Errorf("gaol: wait: %w", p.err)
	}
	if p.res != nil {
		res = new(Result)
		*res = *p.res
	}
	return res, err
}

// Usage is what the process and its descendants have used so far, or used in all.
func (p *Process) Usage() (Usage, error) {
	usage, err := p.live.usage()
	if err != nil {
		return Usage{}, fmt.Errorf("gaol: usage: %w", err)
	}
	return usage, nil
}

// Kill ends the process and all that descends from it, with CauseCanceled. It does not
// wait.
func (p *Process) Kill() { p.live.end() }

// Signal sends a signal to the process. SIGKILL is [Process.Kill]. The error wraps
// os.ErrProcessDone once the process has ended. If it ends by the signal, it is with
// CauseSignal.
func (p *Process) Signal(s syscall.Signal) error { return p.signal(s, false) }

// SignalGroup is Signal to all of the process group that the process leads. On a terminal
// it is mostly that of the shell; what the shell runs in front gets signals by keys.
func (p *Process) SignalGroup(s syscall.Signal) error { return p.signal(s, true) }

const lastSignal = 64 // SIGRTMAX

func (p *Process) signal(s syscall.Signal, group bool) error {
	switch {
	case s < 1 || s > lastSignal:
		return fmt.Errorf("gaol: signal %d: %w", int(s), unix.EINVAL)
	case p.live.hasEnded():
		return fmt.Errorf("gaol: signal: %w", os.ErrProcessDone)
	case s == unix.SIGKILL:
		p.Kill()
		return nil
	}
	if err := p.live.process.Signal(s, group); err != nil {
		return fmt.Errorf("gaol: signal: %w", err)
	}
	return nil
}

// ErrNoTerminal is what Resize returns for a process without a terminal.
var ErrNoTerminal = errors.New("the process has no terminal")

// Resize gives the process's terminal another size, in characters: what runs in front
// on it gets SIGWINCH. The error wraps os.ErrProcessDone once the process has ended.
func (p *Process) Resize(rows, cols uint16) error {
	if err := p.resizeTerminal(jail.TerminalSize{Rows: rows, Cols: cols}); err != nil {
		return fmt.Errorf("gaol: resize: %w", err)
	}
	return nil
}

func (p *Process) resizeTerminal(size jail.TerminalSize) error {
	if p.resize == nil {
		return ErrNoTerminal
	}
	if err := checkSize(size); err != nil {
		return err
	}
	return p.resize(size.Rows, size.Cols)
}
