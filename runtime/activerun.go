package runtime

import (
	"cmp"
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/wire"
	"gaol/runtime/internal/enforce"
	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/stdio"
)

// activeRun is a run from its start to its end, whether its caller waits for it, follows it
// or has spawned it.
type activeRun struct {
	rt    *NodeRuntime
	task  *task
	began time.Time

	pipes    stdio.Pipes
	streams  stdio.Streams
	control  *control             // nil: not a Node program
	calls    *hostcall.Dispatcher // nil: the run can make none
	commands *runCommands         // nil without Options.Commands
	reading  sync.WaitGroup

	hasFile bool // the program is a file
	process sandbox.Process
	network *runNetwork // nil: no egress
	denials *enforce.Denials

	mu   sync.Mutex
	feed *feed // nil unless the run is followed

	interrupted bool // by interrupt; only finish and supervise use it

	kill   sync.Once
	killed chan struct{} // closed when the caller wants the run to end
}

// startRun starts a run, which finish must then end. limit bounds the start.
func (rt *NodeRuntime) startRun(limit context.Context, t *task, s stdio.Streams) (*activeRun, error) {
	r := &activeRun{rt: rt, task: t, began: time.Now(), streams: s, killed: make(chan struct{})}
	if err := r.start(limit); err != nil {
		r.close()
		return nil, err
	}
	rt.active.add(r) // before any of its callbacks can call Processes
	if r.control != nil {
		r.reading.Go(r.control.run)
	}
	r.streams.Start()
	return r, nil
}

func (r *activeRun) start(limit context.Context) (err error) {
	rt, t := r.rt, r.task
	if err := r.streams.Open(&r.pipes); err != nil {
		return err
	}
	if t.program != nil {
		if err := r.openControl(); err != nil {
			return err
		}
	}
	if err := r.addFile(); err != nil { // before Load, whose rules name the file
		return err
	}
	if t.rules != nil {
		if err := rt.sandbox.Load(t.rules); err != nil {
			return err
		}
	}
	c := rt.command(t)
	r.openCalls(limit, &c)
	r.denials = enforce.NewDenials(cmp.Or(t.rules, rt.rules).Permissions, string(t.dir))
	if t.feed != nil {
		r.follow(t.feed)
	}
	c.Denied = r.denials.Add
	r.joinNetwork(&c)
	c.Stdin, c.Stdout, c.Stderr, c.Files = r.pipes.Guest[0], r.pipes.Guest[1], r.pipes.Guest[2], r.pipes.Guest[3:]
	r.process, err = rt.sandbox.Start(limit, &c)
	r.pipes.CloseGuest() // otherwise the host's own copies would keep the outputs open
	return err
}

// openControl adds the descriptors that only a Node program gets: its code, and the control
// channel. internal/guest/prelude.cjs documents the descriptors.
func (r *activeRun) openControl() error {
	t := r.task
	in, err := r.pipes.FromGuest()
	if err != nil {
		return err
	}
	r.control = &control{in: in, main: t.main, cells: t.cells}
	text, err := t.program.Open()
	if err != nil {
		return err
	}
	r.pipes.Guest = append(r.pipes.Guest, text)
	if len(t.functions) == 0 && t.cells == nil && !t.program.TypeScript {
		return nil
	}
	out, err := r.pipes.ToGuest()
	if err != nil {
		return err
	}
	r.control.out = hostcall.NewWriter(out)
	if t.program.TypeScript {
		r.control.translator = newTranslator(r.rt.opts.work, r.control.out)
	}
	return nil
}

// follow sends denials and calls to a feed, beginning with the earlier ones. If the run
// has ended, the feed no longer blocks the calls.
func (r *activeRun) follow(f *feed) {
	r.mu.Lock()
	r.feed = f
	r.mu.Unlock()
	r.denials.Observe(func(d enforce.Denial) { f.Put(DenialEvent{newDenial(d)}, 0) })
	if r.calls != nil {
		r.calls.Observe(func(record hostcall.Record) { f.Put(CallEvent{Call(record)}, stdio.EventWeight) }, f.WaitForRoom)
	}
	if r.process != nil && r.hasEnded() { // drain may have missed the feed
		f.End()
	}
}

// followed returns the run's feed, or nil.
func (r *activeRun) followed() *feed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.feed
}

// drain reads all that the run has written. The run has ended.
//
// Whatever could wait is released first: no guest reads the results of functions that still
// run, a follower may be slow, and another run may hold a pipe open. Then nothing delays the
// readers.
func (r *activeRun) drain() {
	r.stopCalls()
	r.followed().End()
	r.pipes.End()
	r.streams.Drain()
	r.reading.Wait()
}

func (r *activeRun) stopCalls() {
	r.calls.Stop()
	if r.control != nil {
		r.control.translator.stop()
	}
	r.commands.close()
}

// close releases the resources of a run.
func (r *activeRun) close() {
	r.network.end()
	r.removeFile()
	r.task.rules.Close()
	r.stopCalls()
	r.pipes.Close()
}

// finish waits for the run's end, or ends it, and returns its result. outputExceeded is closed
// when the output exceeds a limit that ends the run; it may be nil. With CauseCanceled there
// may be an error beside the result: see cancellation.
func (r *activeRun) finish(limit context.Context, outputExceeded <-chan struct{}) (*Result, error) {
	defer r.close()
	defer r.rt.active.remove(r)
	cause := r.supervise(limit, outputExceeded)
	exit, err := r.process.Wait()
	took := time.Since(r.began) // without the time that callbacks take for the rest of the output
	r.network.end()
	r.drain()
	r.process.Release() // last, because the kernel delivers its records late
	if err == nil {
		err = r.streams.Err()
	}
	if err != nil {
		return nil, err
	}
	res := &Result{Duration: took}
	r.addReport(res)
	res.conclude(cause, exit, r.streams.StderrTail())
	res.Usage.Network = r.network.usage()
	res.Launcher, res.LauncherReason = r.task.launcher, r.task.reason
	if res.Cause == CauseNone && isClosed(outputExceeded) { // it ended before it could be killed
		res.Cause = CauseOutput
	}
	if r.interrupted {
		res.Cause = CauseTimeout // even if it has exited since
	}
	// After the kernel's own reports: a hint that repeats one of them is dropped.
	r.denials.AddHint(res.ExitCode, r.streams.StderrTail())
	if c := r.control; c != nil && c.main != nil && c.main.logs != nil {
		r.addErrorHint(c.main.failure)
	}
	r.addDenials(res, nil)
	if res.Cause == CauseCanceled && (limit.Err() != nil || !isClosed(r.killed)) {
		return res, r.rt.cancellation(limit)
	}
	return res, nil
}

// addReport adds the reports and calls of the run.
func (r *activeRun) addReport(res *Result) {
	r.addCalls(res)
	c := r.control
	if c == nil {
		return
	}
	if main := c.main; main != nil {
		res.Value = main.value
		if main.logs == nil && main.failure != nil { // Evaluate has another form for it
			res.Error = newGuestError(main.failure, nil)
		}
	}
}

func (r *activeRun) addCalls(res *Result) {
	if calls := r.calls; calls != nil {
		records, truncated := calls.Records()
		res.Calls, res.Truncated.Calls = mapped(records, func(r hostcall.Record) Call { return Call(r) }), truncated
	}
}

// addErrorHint adds the denial that the error of a snippet hints at. Programs print theirs.
func (r *activeRun) addErrorHint(f *wire.Failure) {
	var text strings.Builder
	write := func(*wire.Failure) {}
	write = func(f *wire.Failure) {
		if f == nil {
			return
		}
		text.WriteString(f.Name + ": " + f.Message + "\n")
		write(f.Cause)
		for _, one := range f.Errors {
			write(one)
		}
	}
	write(f)
	r.denials.AddError(text.String())
}

// addDenials adds the denials that are not in before.
func (r *activeRun) addDenials(res *Result, before []enforce.Denial) {
	list, truncated := r.denials.Since(before)
	res.Denials, res.Truncated.Denials = mapped(list, newDenial), truncated
}

// cancel ends the run with CauseCanceled. It does not wait.
func (r *activeRun) cancel() { r.kill.Do(func() { close(r.killed) }) }

const lastSignal = 64 // SIGRTMAX

// signal sends a signal to the run's first process, or its process group. SIGKILL is cancel.
func (r *activeRun) signal(s syscall.Signal, group bool) error {
	switch {
	case r.hasEnded():
		return os.ErrProcessDone
	case s == unix.SIGKILL:
		r.cancel()
		return nil
	}
	return r.process.Signal(s, group)
}

// passSignals sends signals to the run until stop is called, which waits for the last one.
func (r *activeRun) passSignals(signals <-chan syscall.Signal) (stop func()) {
	if signals == nil {
		return func() {}
	}
	done := make(chan struct{})
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			select {
			case s, ok := <-signals:
				if !ok {
					return
				}
				_ = r.signal(s, false) // fails if the run has ended, or there is no such signal
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		passing.Wait()
	}
}

func (r *activeRun) usage() (Usage, error) {
	u, err := r.process.Usage()
	if r.hasEnded() {
		u.Memory = 0
	}
	return Usage{CPU: u.CPU, Memory: u.Memory, PeakMemory: u.PeakMemory, PeakPids: u.PeakPids, Network: r.network.usage()}, err
}

func (r *activeRun) hasEnded() bool { return isClosed(r.process.Done()) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// notStarted returns the result of a run that was canceled before its program began, or the
// error why it could not start.
func (rt *NodeRuntime) notStarted(limit context.Context, t *task, began time.Time, err error) (*Result, error) {
	res := t.killed(CauseCanceled)
	res.Duration = time.Since(began)
	switch {
	case limit.Err() != nil:
		res.Cause = endCause(limit)
	case !isClosed(rt.closing): // if it is closed, that explains the error
		return nil, err
	}
	if res.Cause == CauseCanceled {
		return res, rt.cancellation(limit)
	}
	return res, nil
}

// supervise waits for the end of the run. It kills a run that exceeds a limit which the
// kernel does not enforce, and returns why it did. limit is withTimeout's; outputExceeded may
// be nil.
func (r *activeRun) supervise(limit context.Context, outputExceeded <-chan struct{}) Cause {
	var checkCPU <-chan time.Time // never, without a limit
	if r.rt.opts.Limits.CPUTime > 0 {
		checkCPU = time.After(0)
	}
	for {
		cause := CauseCanceled
		select {
		case <-r.process.Done():
			switch {
			case limit.Err() != nil:
				return endCause(limit) // which may have killed it during its start
			case isClosed(r.rt.closing), isClosed(r.killed):
				return CauseCanceled // before this goroutine could kill it
			}
			return CauseNone
		case <-checkCPU:
			left := r.cpuLeft()
			if left > 0 {
				checkCPU = time.After(left)
				continue
			}
			cause = CauseCPU
		case <-outputExceeded:
			cause = CauseOutput
		case <-limit.Done():
			if cause = endCause(limit); cause == CauseTimeout && r.task.grace > 0 {
				r.interrupt()
			}
		case <-r.rt.closing:
		case <-r.killed:
		}
		r.process.Kill()
		return cause
	}
}

// cpuLeft returns a time in which the run cannot use up its CPU time, at least 2 ms, or 0 if
// it has used it up. The kernel limits CPU time only for single processes.
func (r *activeRun) cpuLeft() time.Duration {
	const least = 2 * time.Millisecond
	l := r.rt.opts.Limits
	used, err := r.process.CPU()
	if err == nil && used >= l.CPUTime {
		return 0
	}
	return max(time.Duration(float64(l.CPUTime-used)/l.CPUs), least)
}
