package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/egress"
	"gaol/policy"
	"gaol/runtime/internal/enforce"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/stdio"
	"gaol/runtime/internal/work"
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

	rt       *NodeRuntime
	streams  *stdio.Streams
	detached bool          // it outlives the context of its start, and a goroutine waits for it
	onEnd    func(*Result) // called before done is closed; may be nil
	queued   time.Duration
	began    time.Time
	life     context.Context // ends with the caller's and the runtime
	limit    context.Context // life with the run's Timeout; its cause is why the run must end
	cancel   context.CancelCauseFunc

	// What the run starts, which lower completes. In globals, heap, maxCalls and grace, of a snippet or a
	// context, zero is as for other programs.
	command  sandbox.Command
	code     *guest.Program // nil: a program of the image
	globals  map[string]any
	heap     int64 // bytes
	maxCalls int
	grace    time.Duration // as EvaluateOptions.Grace
	main     *cell         // the program's report; nil in a context, and for a program of the image
	cells    *cells        // the context's

	// lower sets these.
	args        []string // as the caller gave them
	folder      string   // of the program, in mounts.ProgramDir
	permissions policy.Permissions
	egress      NetworkLimits
	launcher    Launcher
	reason      string // why launcher is not the runtime's
	limits      CallLimits
	functions   []hostcall.Function

	// open sets these.
	pipes    stdio.Pipes
	control  *control             // nil: not a Node program
	calls    *hostcall.Dispatcher // nil: the run can make none
	commands *runCommands         // nil without Options.Commands
	client   *egress.Client       // nil: no egress
	owner    uint64               // of the client's sockets; 0 before the start, and after the end
	denials  *enforce.Denials
	child    sandbox.Process
	reading  sync.WaitGroup // of the control channel and of signals

	interrupted bool // by interrupt; only finish and supervise use it

	mu    sync.Mutex
	ended bool  // endEvents was called
	feed  *feed // nil unless the run is followed
	pumps sync.WaitGroup

	done chan struct{}
	res  *Result
	err  error
}

// PID returns the process's ID, as the guest sees it.
func (p *Process) PID() int { return p.child.GuestPID() }

// wait waits for the process's end and releases its resources. Its place in the queue is free
// before Done is closed, so that a caller can start the next run after Done. The
// ExitEvent has what Wait returns, so it comes after that. The runtime's Close waits for all of
// it.
func (p *Process) wait() {
	defer p.rt.calls.Done()
	defer p.endEvents()
	defer close(p.done)
	p.res, p.err = p.end()
	if p.onEnd != nil {
		p.onEnd(p.res)
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
			return nil, fmt.Errorf("gaol: wait: %w", work.ContextError(ctx))
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
	return p.usage()
}

// Kill ends the process and its descendants, with CauseCanceled. It does not wait.
func (p *Process) Kill() { p.cancel(errKilled) }

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
	err = p.send(s, group)
	wrap(&err, "signal")
	return err
}

const lastSignal = 64 // SIGRTMAX

// send sends a signal to the run's first process, or its process group. SIGKILL is Kill.
func (p *Process) send(s syscall.Signal, group bool) error {
	switch {
	case p.hasEnded():
		return os.ErrProcessDone
	case s == unix.SIGKILL:
		p.Kill()
		return nil
	}
	return p.child.Signal(s, group)
}

func (p *Process) usage() (Usage, error) {
	u, err := p.child.Usage()
	if p.hasEnded() {
		u.Memory = 0
	}
	return Usage{CPU: u.CPU, Memory: u.Memory, PeakMemory: u.PeakMemory, PeakPids: u.PeakPids, Network: p.networkUsage()}, err
}

func (p *Process) hasEnded() bool { return isClosed(p.child.Done()) }

// ErrNoTerminal is what Resize returns for a process without a terminal.
var ErrNoTerminal = errors.New("the process does not use a terminal")

// Resize changes the size of the process's terminal, in characters. Its foreground process
// group gets SIGWINCH. The error wraps os.ErrProcessDone once the process has ended.
func (p *Process) Resize(rows, cols uint16) (err error) {
	defer wrap(&err, "resize")
	if p.streams.Terminal == nil {
		return ErrNoTerminal
	}
	size := sandbox.TerminalSize{Rows: rows, Cols: cols}
	if err := checkSize(size); err != nil {
		return err
	}
	err = p.streams.Terminal.Resize(size)
	if errors.Is(err, os.ErrClosed) {
		err = os.ErrProcessDone
	}
	return err
}

// Events returns the process's events, up to and including its ExitEvent, in the order of
// RunOptions.OnEvent. The caller must not read Stdout and Stderr any more. If two goroutines range
// concurrently, the second gets nothing.
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
		p.observe()
		if p.hasEnded() { // drain may have missed the feed
			f.End()
		}
		p.pumps.Go(func() { stdio.Pump(p.Stdout, followStdout(f, math.MaxInt64, nil)) })
		p.pumps.Go(func() { stdio.Pump(p.Stderr, followStderr(f, math.MaxInt64, nil)) })
		if p.ended {
			p.closeFeed()
		}
	}
	return func(yield func(Event) bool) { p.feed.All(yield) }
}

// observe sends denials and calls to the feed, beginning with the earlier ones.
func (p *Process) observe() {
	f := p.feed
	p.denials.Observe(func(d Denial) { f.Put(DenialEvent{d}, 0) })
	if p.calls != nil {
		p.calls.Observe(func(c Call) { f.Put(CallEvent{c}, stdio.EventWeight) })
	}
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
	for _, p := range rt.runs() {
		usage, err := p.usage()
		if err != nil || p.hasEnded() {
			continue
		}
		name := p.command.Args[0]
		if p.code != nil {
			name = path.Base(p.code.Path)
		}
		list = append(list, ProcessInfo{p.child.GuestPID(), name, slices.Clone(p.args), p.began, usage})
	}
	return list
}

// Kill ends the run whose first process has that PID, as [Process.Kill] does. The error wraps
// os.ErrProcessDone if no run has it.
func (rt *NodeRuntime) Kill(pid int) error {
	for _, p := range rt.runs() {
		if p.child.GuestPID() == pid && !p.hasEnded() {
			p.Kill()
			return nil
		}
	}
	return fmt.Errorf("gaol: kill %d: %w", pid, os.ErrProcessDone)
}
