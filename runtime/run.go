package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	"gaol/internal/wire"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/stdio"
)

// ErrClosed is returned by the methods of a closed runtime or pool. If closing its runtime
// ended a run, the run's error wraps ErrClosed, beside the Result.
var ErrClosed = sandbox.ErrClosed

// Run runs code as a Node program and waits for its end. The code is an ES module, or
// CommonJS if it can only be CommonJS (see [FormatAuto]). Top-level await works, and so do
// imports of node: modules, of packages, and of files relative to the working directory. The
// program is not a file: a Worker can be started from its path, but not a child process.
//
// The program may call __return(value) any number of times. Result.Value is the JSON text of
// the last value, even if the program fails later. Values are encoded as by JSON.stringify,
// with these differences: undefined is null; a Map is an object, or an array of pairs if a key
// is not a string; a Set is an array; bytes are base64, and other typed arrays are arrays of
// numbers; an error is an object with its name and message; a regular expression is a string.
// A BigInt, a cycle, a function, and an object that would be empty, such as a Promise, throw a
// TypeError in the program that names the place in the value. A value larger than
// Limits.Value throws a RangeError. See docs/evaluation.md.
//
// The error is nil whatever the program does, and if it exceeds its own limits, such as
// RunOptions.Timeout. If ctx ends the run, the error wraps ctx.Err() and the cause of ctx. If
// the runtime is closed, the error wraps [ErrClosed]. In both cases the Result, with
// CauseCanceled, is returned too, with all that the run has printed and returned so far.
func (rt *NodeRuntime) Run(ctx context.Context, code string, o RunOptions) (_ *Result, err error) {
	defer wrap(&err, "run")
	return rt.run(ctx, rt.code(code), o)
}

// Exec is Run for a program without a value: __return is not defined.
func (rt *NodeRuntime) Exec(ctx context.Context, code string, o RunOptions) (_ *Result, err error) {
	defer wrap(&err, "exec")
	return rt.run(ctx, &Process{code: &guest.Program{Code: code}}, o)
}

// Command runs a program of the image with arguments, without a shell. name is a path in the
// guest's tree, or is looked up in the run's PATH, or in /bin and /usr/bin if permissions
// hide PATH from the run. The error wraps fs.ErrNotExist if the program does not exist, and
// fs.ErrPermission if it may not be executed.
func (rt *NodeRuntime) Command(ctx context.Context, name string, args []string, o RunOptions) (_ *Result, err error) {
	defer wrap(&err, "command")
	return rt.run(ctx, imageProgram(name, args), o)
}

// run runs a program and waits for its end.
func (rt *NodeRuntime) run(ctx context.Context, p *Process, o RunOptions) (*Result, error) {
	return withEvents(ctx, o.OnEvent, func(ctx context.Context, f *feed) (*Result, error) {
		p.feed = f
		return rt.perform(ctx, p, o)
	})
}

// withEvents makes a run. If onEvent is not nil, the run is made in another goroutine, while this one calls onEvent
// with its events.
func withEvents[R any](ctx context.Context, onEvent func(Event), run func(context.Context, *feed) (*R, error)) (res *R, err error) {
	if onEvent == nil {
		return run(ctx, nil)
	}
	ctx, cancel := context.WithCancel(ctx)
	f, ended := stdio.NewFeed[Event](), make(chan struct{})
	defer func() { // onEvent may have panicked
		cancel()
		<-ended
	}()
	go func() {
		defer close(ended)
		defer f.Close()
		res, err = run(ctx, f)
	}()
	f.All(func(e Event) bool {
		onEvent(e)
		return true
	})
	return res, err
}

// perform is run without OnEvent: the events go to p.feed, if that is not nil.
func (rt *NodeRuntime) perform(ctx context.Context, p *Process, o RunOptions) (*Result, error) {
	stdout, stderr := p.sinks(rt.opts.Limits.Output, o)
	p.streams = &stdio.Streams{In: o.Stdin, Out: stdout, Err: stderr}
	if !rt.start(ctx, p, o) {
		return p.res, p.err
	}
	if o.Signals != nil {
		p.reading.Go(func() {
			stdio.PassSignals(o.Signals, p.child.Done(), func(s syscall.Signal) { _ = p.send(s, false) }) // fails if the run has ended, or there is no such signal
		})
	}
	res, err := p.end()
	if out, ok := stdout.(*stdio.Capture); ok && res != nil {
		res.Stdout, res.Truncated.Stdout = out.Kept, out.Truncated
		out = stderr.(*stdio.Capture)
		res.Stderr, res.Truncated.Stderr = out.Kept, out.Truncated
	}
	return res, err
}

// sinks returns where the output of a run goes: into the lines of an evaluation, a feed, or
// memory.
func (p *Process) sinks(limit int64, o RunOptions) (stdout, stderr stdio.Sink) {
	var onExceeded func()
	if o.OnOutputLimit == KillOnOutput {
		onExceeded = func() { p.cancel(errOutput) }
	}
	switch {
	case p.main != nil:
		return p.main.logs.sink(LogStdout), p.main.logs.sink(LogStderr)
	case p.feed != nil:
		return followStdout(p.feed, limit, onExceeded), followStderr(p.feed, limit, onExceeded)
	}
	capture := func(callback func([]byte)) stdio.Sink {
		return &stdio.Capture{Limit: limit, OnLimit: onExceeded, OnOutput: callback}
	}
	return capture(o.OnStdout), capture(o.OnStderr)
}

// The reasons for which gaol ends a run, as the causes of its context.
var (
	errTimeout = fmt.Errorf("the run's time is up: %w", context.DeadlineExceeded)
	errCPU     = errors.New("the run exceeded its CPU time")
	errOutput  = errors.New("the run exceeded its output")
	errKilled  = errors.New("the caller killed the run")
)

// wrap adds the name of the method that failed to its error. Use it with defer.
func wrap(err *error, method string) {
	if *err != nil {
		*err = fmt.Errorf("gaol: %s: %w", method, *err)
	}
}

// endReason returns why the context of a run ended, and the error beside its Result.
func endReason(limit context.Context) (Cause, error) {
	switch cause := context.Cause(limit); cause {
	case errTimeout: //nolint:errorlint // the cause of the caller's context may wrap one of an outer run
		return CauseTimeout, nil
	case errCPU:
		return CauseCPU, nil
	case errOutput:
		return CauseOutput, nil
	case errKilled: // its caller asked for that
		return CauseCanceled, nil
	default:
		return CauseCanceled, cause
	}
}

// until returns a context that also ends with another one, because of cause.
func until(ctx, end context.Context, cause error) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unwatch := context.AfterFunc(end, func() { cancel(cause) })
	return ctx, func(cause error) { unwatch(); cancel(cause) }
}

// A run waits for its turn twice, so that callers may request any number concurrently:
//
//	requested ── wait ── runtime's queue ───── wait ── process's starts ── end
//	                     MaxConcurrentRuns,            maxStarts, while
//	                     until the run's end           the run starts
//
// A run needs most of its descriptors and CPU time while it starts, so the process limits
// starts. It does not limit active runs, because the runs of one runtime, which may only be
// waiting, could then block all others.
//
// After its first turn a run waits only for starting runs, for startLease at most. So runs of one
// runtime that fit into its queue together can wait for each other.

// startLease is how long a start can block others. It takes some 10 to 50 ms, but a guest
// can delay starts in its own jail.
const startLease = 100 * time.Millisecond

// defaultConcurrentRuns is 64, or fewer if this process may have so few files open that they would
// not suffice for that many runs that all start.
func defaultConcurrentRuns() int {
	const most, ofStart = 64, 32
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return most
	}
	return int(max(1, min(most, files.Cur/ofStart)))
}

// maxStarts keeps the processors busy: a start uses about one.
var maxStarts = int64(max(4, 2*goruntime.GOMAXPROCS(0)))

// starts limits the starts of this process, in order.
var starts = semaphore.NewWeighted(maxStarts)

// releaseAfter releases a place after d, or when the returned function is called.
func releaseAfter(s *semaphore.Weighted, d time.Duration) (release func()) {
	ctx, release := context.WithTimeout(context.Background(), d)
	context.AfterFunc(ctx, func() { s.Release(1) })
	return release
}

// takeTurn waits for a run's turn. It returns false if the turn did not come. Otherwise the
// caller must call started when the run has started, and release the runtime's queue at its
// end.
func (rt *NodeRuntime) takeTurn(ctx context.Context) (started func(), ok bool) {
	// The runtime's queue comes first: a run that waits for others of its runtime must not hold
	// one of the process's few starts.
	if rt.queue.Acquire(ctx, 1) != nil {
		return nil, false
	}
	if starts.Acquire(ctx, 1) != nil {
		rt.queue.Release(1)
		return nil, false
	}
	return releaseAfter(starts, startLease), true
}

// runs returns the active runs, the oldest first.
func (rt *NodeRuntime) runs() (list []*Process) {
	rt.active.Range(func(p, _ any) bool {
		list = append(list, p.(*Process))
		return true
	})
	slices.SortFunc(list, func(a, b *Process) int {
		return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.child.GuestPID(), b.child.GuestPID()))
	})
	return list
}

// begin reports whether the runtime is open. Close then waits until the caller calls rt.calls.Done.
func (rt *NodeRuntime) begin() bool {
	rt.ending.Lock()
	defer rt.ending.Unlock()
	if rt.alive.Err() != nil {
		return false
	}
	rt.calls.Add(1)
	return true
}

// control is the host's end of a run's control channel. The guest writes the frames: one
// that violates the protocol of package wire ends the channel, and what arrived before it
// stays valid.
type control struct {
	in         *stdio.Reader
	out        *hostcall.Writer     // nil if the host sends nothing
	calls      *hostcall.Dispatcher // nil without host functions
	translator *translator          // nil if the program imports no TypeScript
	report     report
	room       func() // blocks while the consumer of events is behind
	done       func() // is called when nothing reads the channel any more
	inline     inline
}

// report gets the frames about a program: the *cell of a run, or the *cells of a context.
type report interface {
	maxFrame(kind wire.Kind) int64 // 0 refuses it
	receive(kind wire.Kind, body []byte) error
	close(err error) // why the channel has ended
}

// maxFrame returns the maximum size of a frame; 0 refuses it.
func (c *control) maxFrame(kind wire.Kind) int64 {
	switch {
	case kind == wire.KindCall:
		return c.calls.MaxFrame()
	case kind == wire.KindTranslate && c.translator != nil:
		return maxTranslation
	}
	return c.report.maxFrame(kind)
}

// run reads frames until the channel's end.
func (c *control) run(frames *wire.Reader) {
	for {
		kind, body, err := frames.Next()
		var work func()
		if err == nil {
			work, err = c.receive(kind, body)
		}
		switch {
		case err != nil:
			defer c.done()
			c.close(err)
			return
		case work == nil:
		case frames.Buffered(): // calls at the same time
			go work()
		case !c.inline.do(work, func() { c.run(frames) }):
			return
		default:
			c.in.Expect()
		}
	}
}

// inline performs calls in the goroutine that reads the control channel, unless they take long. Waking a worker takes as
// long as the rest of a call, and mostly the guest waits for its call and sends nothing meanwhile.
//
// One timer serves many calls: setting one for each would wake the goroutine that waits for timers.
type inline struct {
	mu      sync.Mutex
	calls   int    // begun so far
	current int    // number of the call that the reading goroutine performs; 0: none
	readOn  func() // reads instead of that goroutine
	recent  bool   // the call has begun since the timer fired
	ticking bool   // the timer is set
}

// inlinePeriod is how long a call keeps the control channel unread at least, and half of how long it does at most.
const inlinePeriod = time.Millisecond

// do performs a call, and reports whether its goroutine still reads: otherwise readOn does, in another one.
func (i *inline) do(work, readOn func()) (reads bool) {
	i.mu.Lock()
	i.calls++
	number := i.calls
	i.current, i.readOn, i.recent = number, readOn, true
	if !i.ticking {
		i.ticking = true
		time.AfterFunc(inlinePeriod, i.tick)
	}
	i.mu.Unlock()
	returned := false
	defer func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if reads = i.current == number; !reads {
			return
		}
		if i.current = 0; !returned { // the function has ended the goroutine, as testing.T's Fatal does
			go readOn()
		}
	}()
	work()
	returned = true
	return reads
}

// tick lets another goroutine read if a call has taken a whole period.
func (i *inline) tick() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ticking = i.recent; i.ticking {
		i.recent = false
		time.AfterFunc(inlinePeriod, i.tick)
	} else if i.current != 0 {
		go i.readOn()
		i.current = 0
	}
}

// close closes the channel. A program that continues gets EPIPE, and the end of the host's
// frames.
func (c *control) close(err error) {
	c.report.close(err)
	c.in.Close()
	c.out.Close()
}

// receive handles a frame. The caller calls work, unless it is nil.
func (c *control) receive(kind wire.Kind, body []byte) (work func(), err error) {
	switch kind {
	case wire.KindCall:
		c.room()
		call, err := wire.ParseCall(body)
		if errors.Is(err, wire.ErrDuplicateName) {
			return c.calls.Accept(call, &CallError{Code: CodeArguments, Message: "the arguments: " + err.Error()})
		}
		if err != nil {
			return nil, err
		}
		return c.calls.Accept(call, c.refusal())
	case wire.KindTranslate:
		return nil, c.translator.answer(body)
	}
	return nil, c.report.receive(kind, body)
}

// refusal returns why no function may be called now. It is nil except in a context between
// two cells.
func (c *control) refusal() error {
	if cells, ok := c.report.(*cells); !ok || cells.busy() {
		return nil
	}
	return &CallError{Code: CodeNoCell, Message: "host functions can be called while a cell is evaluated"}
}

// cell is a guest's report about one program: of a run or, in a context, of an evaluation or a
// request for completions.
type cell struct {
	number   uint32 // in a context
	maxValue int64  // bytes
	logs     *logs  // nil for Run and a request for completions, which have no lines
	value    json.RawMessage
	failure  *wire.Failure // the last error that was not caught
	noValue  string        // why the value cannot be encoded as JSON
	done     chan struct{} // in a context: closed when the guest reports the end
}

// Limits of frames. The guest's half truncates to less.
const (
	maxFailure = 256 << 10
	maxNoValue = 8 << 10
	maxOutput  = 8 << 10
)

// maxFrame returns the maximum size of a frame about the cell; 0 refuses it.
func (cl *cell) maxFrame(kind wire.Kind) int64 {
	switch {
	case kind == wire.KindValue:
		return cl.maxValue
	case kind == wire.KindFailure:
		return maxFailure
	case cl.logs == nil:
	case kind == wire.KindNoValue:
		return maxNoValue
	case kind == wire.KindOutput:
		return maxOutput
	case kind == wire.KindLog:
		return guest.MaxLogBytes(cl.logs.options.MaxLogLength) + 1
	}
	return 0
}

// close ends unfinished lines.
func (cl *cell) close(error) {
	if cl.logs != nil {
		cl.logs.ordered.flush(0)
	}
}

// receive stores the report in a frame that maxFrame has accepted. A later value or failure replaces
// the earlier one.
func (cl *cell) receive(kind wire.Kind, body []byte) error {
	switch kind {
	case wire.KindValue:
		value, err := wire.ParseValue(body)
		if err == nil {
			cl.value = value
		}
		return err
	case wire.KindFailure:
		f, err := wire.ParseFailure(body)
		if err == nil {
			cl.failure = &f
		}
		return err
	case wire.KindNoValue:
		cl.noValue = wire.ParseNoValue(body)
	case wire.KindLog, wire.KindOutput:
		return cl.logs.ordered.receive(kind, body)
	}
	return nil
}

// interrupt interrupts a program with a grace period whose time is up, and waits for its end.
// guest/grace.cjs is the guest's half.
//
// SIGURG, which other programs ignore, wakes an event loop that waits. SIGINT terminates
// running code.
func (p *Process) interrupt() {
	p.interrupted = true
	_ = p.child.Signal(unix.SIGURG, false) // it may have ended
	_ = p.child.Signal(unix.SIGINT, false)
	select {
	case <-p.child.Done():
	case <-time.After(p.grace):
	case <-p.life.Done():
	}
}
