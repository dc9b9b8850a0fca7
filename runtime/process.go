package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/stdio"
)

// Process is a spawned process with all its descendants. It is safe for concurrent use.
//
// Its caller need not wait for it: it releases the host's resources when it ends, or when
// its runtime is closed.
type Process struct {
	// Stdin is the process's standard input; on a terminal, the keyboard. A Write blocks
	// while the process does not read, until it ends: then the error is io.ErrClosedPipe.
	// Close ends the input; on a terminal it types the key for that, Ctrl-D, which programs
	// that read lines recognize at the beginning of a line.
	Stdin io.WriteCloser

	// Stdout and Stderr are the process's output, unless [Process.Events] is used. The
	// kernel buffers 64 KiB of each pipe, 1 MiB if it is read in large pieces, and 8 KiB of a
	// terminal. Then the process blocks until the caller reads, and it may never end if the
	// caller does not. The last output can still be read after the process's end. On a
	// terminal Stdout has everything, and Stderr is empty. io.EOF is the end.
	Stdout, Stderr io.Reader

	run      *activeRun
	limit    context.Context // of its time
	stop     context.CancelFunc
	queued   time.Duration
	terminal *sandbox.Terminal // may be nil

	mu    sync.Mutex
	ended bool  // endEvents was called
	feed  *feed // nil until Events is called
	pumps sync.WaitGroup

	done chan struct{}
	res  *Result
	err  error
}

// PID returns the process's ID, as the guest sees it.
func (p *Process) PID() int { return p.run.process.GuestPID() }

// wait waits for the process's end and releases its resources. Its place in the queue is free
// before Done is closed, so that a caller can start the next run after Done. The
// ExitEvent has what Wait returns, so it comes after that. The runtime's Close waits for all of
// it.
func (p *Process) wait() {
	rt := p.run.rt
	defer rt.active.spawned.Done()
	defer p.endEvents()
	defer close(p.done)
	defer rt.queue.leave()
	defer p.stop()
	p.res, p.err = p.run.finish(p.limit, nil)
	if p.res != nil {
		p.res.Queued = p.queued
	}
}

// Done returns a channel that is closed when nothing is left of the process and its
// descendants.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for Done and returns how the process ended. It may be called any number of
// times. The Result omits the output. If ctx ends first, there is no Result, the error wraps
// ctx.Err() and the cause of ctx, and the process continues. If the runtime's Close ended
// the process, the error is [ErrClosed], beside the Result. After Kill there is no error.
func (p *Process) Wait(ctx context.Context) (_ *Result, err error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		if !isClosed(p.done) { // if both are, the result is worth more
			return nil, fmt.Errorf("gaol: wait: %w", contextError(ctx))
		}
	}
	return p.outcome()
}

// outcome returns the result and error of Wait.
//
// Preconditions: p.done is closed.
func (p *Process) outcome() (res *Result, err error) {
	if p.res != nil {
		res = new(*p.res)
	}
	err = p.err
	wrap(&err, "wait")
	return res, err
}

// Usage returns the resources that the process and its descendants have used so far.
func (p *Process) Usage() (_ Usage, err error) {
	defer wrap(&err, "usage")
	return p.run.usage()
}

// Kill ends the process and its descendants, with CauseCanceled. It does not wait.
func (p *Process) Kill() { p.run.cancel() }

// Signal sends a signal to the process. SIGKILL is [Process.Kill]. The error wraps
// os.ErrProcessDone once the process has ended. If the signal ends the process, its cause is
// CauseSignal.
func (p *Process) Signal(s syscall.Signal) error { return p.signal(s, false) }

// SignalGroup sends a signal to the process group that the process leads. On a terminal that
// is mostly the shell's; the shell's foreground job gets signals by keys.
func (p *Process) SignalGroup(s syscall.Signal) error { return p.signal(s, true) }

func (p *Process) signal(s syscall.Signal, group bool) (err error) {
	if s < 1 || s > lastSignal {
		return fmt.Errorf("gaol: signal %d: %w", int(s), unix.EINVAL)
	}
	err = p.run.signal(s, group)
	wrap(&err, "signal")
	return err
}

// ErrNoTerminal is what Resize returns for a process without a terminal.
var ErrNoTerminal = errors.New("the process does not use a terminal")

// Resize changes the size of the process's terminal, in characters. Its foreground process
// group gets SIGWINCH. The error wraps os.ErrProcessDone once the process has ended.
func (p *Process) Resize(rows, cols uint16) (err error) {
	defer wrap(&err, "resize")
	if p.terminal == nil {
		return ErrNoTerminal
	}
	size := sandbox.TerminalSize{Rows: rows, Cols: cols}
	if err := checkSize(size); err != nil {
		return err
	}
	err = p.terminal.Resize(size)
	if errors.Is(err, os.ErrClosed) {
		err = os.ErrProcessDone
	}
	return err
}

// Events returns the process's events, up to and including its ExitEvent, as [Stream.Events]
// does. The caller must not read Stdout and Stderr any more.
//
// They begin with the output that has not been read, and with the earlier denials and calls
// that Result would list. Breaking out of the range does not end the process: it continues
// until a pipe is full, and ranging again continues with the next event.
func (p *Process) Events() iter.Seq[Event] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.feed == nil {
		f := stdio.NewFeed[Event]()
		p.feed = f
		p.run.follow(f)
		p.pumps.Go(func() { stdio.Pump(p.Stdout, followStdout(f, math.MaxInt64, nil)) })
		p.pumps.Go(func() { stdio.Pump(p.Stderr, followStderr(f, math.MaxInt64, nil)) })
		if p.ended {
			p.closeFeed()
		}
	}
	return func(yield func(Event) bool) { p.feed.All(yield) }
}

// endEvents adds the remaining output and the ExitEvent. It does not wait for the receiver.
//
// Preconditions: p.done is closed.
func (p *Process) endEvents() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.feed != nil {
		p.closeFeed()
	}
}

// closeFeed sends the last events. First the pumps must have read the rest of the output, for
// which they no longer wait for the receiver.
//
// Preconditions: p.mu is held, p.done is closed.
func (p *Process) closeFeed() {
	p.feed.End()
	p.pumps.Wait()
	res, err := p.outcome()
	p.feed.Close(ExitEvent{Result: res, Err: err})
}

// ProcessInfo describes an active run: of Spawn and SpawnCode, or of Run, Exec and Command.
type ProcessInfo struct {
	PID     int      // of its first process, as the guest sees it
	Name    string   // of the program: as the caller gave it, or the file name of code
	Args    []string // its arguments
	Started time.Time
	Usage   Usage // so far
}

// Processes lists the active runs, the oldest first.
func (rt *NodeRuntime) Processes() []ProcessInfo {
	var list []ProcessInfo
	for _, r := range rt.active.list() {
		usage, err := r.usage()
		if err != nil || r.hasEnded() {
			continue
		}
		name := r.task.command.Path
		if r.task.program != nil {
			name = path.Base(r.task.program.Path)
		}
		list = append(list, ProcessInfo{r.process.GuestPID(), name, slices.Clone(r.task.args), r.began, usage})
	}
	return list
}

// Kill ends the run whose first process has that PID, as [Process.Kill] does. The error wraps
// os.ErrProcessDone if no run has it.
func (rt *NodeRuntime) Kill(pid int) error {
	for _, r := range rt.active.list() {
		if r.process.GuestPID() == pid && !r.hasEnded() {
			r.cancel()
			return nil
		}
	}
	return fmt.Errorf("gaol: kill %d: %w", pid, os.ErrProcessDone)
}

// activeRuns is the set of a runtime's active runs.
type activeRuns struct {
	mu     sync.Mutex
	runs   map[*activeRun]struct{}
	closed bool

	spawned sync.WaitGroup // goroutines that wait for runs without a waiting caller
}

func (a *activeRuns) add(r *activeRun) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs[r] = struct{}{}
}

func (a *activeRuns) remove(r *activeRun) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.runs, r)
}

// list returns the runs, the oldest first.
func (a *activeRuns) list() []*activeRun {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.SortedFunc(maps.Keys(a.runs), func(a, b *activeRun) int {
		return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.process.GuestPID(), b.process.GuestPID()))
	})
}

// reserve reports whether another run without a waiting caller may start. The caller must
// then call spawned.Done.
func (a *activeRuns) reserve() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.spawned.Add(1)
	}
	return !a.closed
}

func (a *activeRuns) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}
