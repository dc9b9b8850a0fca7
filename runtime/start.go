package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/wire"
	"gaol/runtime/internal/enforce"
	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/work"
)

// start starts p.program when its turn has come, and reports whether it runs: otherwise p.res and p.err are
// what became of it. ctx bounds the start and, unless p is detached, the run.
//
//	requested ── lower ── takeTurn ── launch ── end
func (rt *NodeRuntime) start(ctx context.Context, p *Process, o RunOptions) (ok bool) {
	p.rt, p.began, p.launcher, p.done = rt, time.Now(), rt.opts.Launcher, make(chan struct{})
	if rt.Paused() {
		p.err = ErrPaused
		return false
	}
	if rt.alive.Err() != nil || p.detached && !rt.begin() {
		p.err = ErrClosed
		return false
	}
	release := p.bind(ctx)
	if !p.begin(o) {
		p.cancel(nil)
		if p.detached {
			rt.calls.Done()
		}
		return false
	}
	if p.detached {
		go p.wait()
		if !release() { // ctx ended as it began
			<-p.done
			return p.err == nil
		}
	}
	return true
}

// bind makes p.life and p.limit, which end with the caller's context, until release is called, and with the
// runtime. The cause of a caller's context is wrapped, because that may be the context of another run: see endReason.
func (p *Process) bind(ctx context.Context) (release func() bool) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	release = context.AfterFunc(ctx, func() { cancel(fmt.Errorf("%w", work.ContextError(ctx))) })
	unwatch := context.AfterFunc(p.rt.alive, func() { cancel(ErrClosed) })
	p.life, p.limit, p.cancel = life, life, func(cause error) {
		cancel(cause)
		release()
		unwatch()
	}
	return release
}

func (p *Process) begin(o RunOptions) (ok bool) {
	timeout := o.Timeout
	if p.detached {
		timeout = DefaultTimeout // a caller waits, and its own may have no limit
	}
	var stop func()
	p.limit, stop = p.rt.pausing.withTimeout(p.life, timeout)
	err := p.lower(p.limit, p.rt.opts, o)
	if err != nil {
		return p.fail(err)
	}
	stop()
	p.limit = p.life
	asked := time.Now()
	started, ok := p.rt.takeTurn(p.life)
	p.began = time.Now()
	p.queued = p.began.Sub(asked)
	if !ok { // only its context or its runtime can end a run before its turn
		p.fail(nil)
		p.res.Duration = 0
		return false
	}
	defer started()
	p.limit, _ = p.rt.pausing.withTimeout(p.life, o.Timeout)
	if err := p.launchUnlessPaused(); err != nil {
		p.rt.queue.Release(1)
		return p.fail(err)
	}
	return true
}

// fail sets the result of a run that was canceled before its program began, or the error why it could
// not start. It returns false.
func (p *Process) fail(err error) (ok bool) {
	p.err = err
	if p.mustEnd() {
		p.res = &Result{
			ExitCode: killedCode, Signal: killedSignal, Duration: time.Since(p.began), Queued: p.queued,
			Launcher: p.launcher, LauncherReason: p.reason,
		}
		p.res.Cause, p.err = endReason(p.limit)
	}
	return false
}

// mustEnd reports whether p.limit has ended.
func (p *Process) mustEnd() bool {
	if p.rt.alive.Err() != nil {
		p.cancel(ErrClosed) // which bind does a moment later
	}
	return p.limit.Err() != nil
}

// launchUnlessPaused calls launch. A Pause waits meanwhile.
func (p *Process) launchUnlessPaused() error {
	starts := p.rt.pausing.starts
	if !starts.TryAcquire(1) {
		return ErrPaused
	}
	defer starts.Release(1)
	return p.launch()
}

// launch starts the run, which finish must then end.
func (p *Process) launch() error {
	if err := p.open(); err != nil {
		p.close()
		return err
	}
	p.rt.active.Store(p, nil) // before any of its callbacks can call Processes
	if p.control != nil {
		p.reading.Add(1)
		p.control.done = p.reading.Done
		go p.control.run(wire.NewReader(p.control.in, p.control.maxFrame))
	}
	p.streams.Start()
	return nil
}

func (p *Process) open() (err error) {
	rt, c := p.rt, &p.command
	if err := p.streams.Open(&p.pipes); err != nil {
		return err
	}
	if p.code != nil {
		if err := p.openControl(); err != nil {
			return err
		}
	}
	if len(p.functions) > 0 || rt.opts.Commands != nil {
		p.openCalls()
	}
	p.denials = enforce.NewDenials(p.permissions, c.Dir)
	if p.feed != nil {
		p.observe()
	}
	if rt.network != nil {
		p.joinNetwork()
	}
	c.Denied, c.Files = p.denials.Add, p.pipes.Guest
	p.child, err = rt.sandbox.Start(p.limit, c)
	c.Files, c.File = nil, nil // they are not needed any more
	p.pipes.CloseGuest()       // otherwise the host's own copies would keep the outputs open
	return err
}

// openControl adds the descriptors that only a Node program gets: its code, and the control
// channel. internal/guest/prelude.cjs documents the descriptors.
func (p *Process) openControl() error {
	in, err := p.pipes.FromGuest()
	if err != nil {
		return err
	}
	p.control = &control{in: in, report: p.main, room: p.waitForFeed}
	if p.cells != nil {
		p.control.report = p.cells
	}
	text, err := p.code.Open()
	if err != nil {
		return err
	}
	p.pipes.Guest = append(p.pipes.Guest, text)
	if len(p.functions) == 0 && p.cells == nil && !p.code.TypeScript {
		return nil
	}
	out, err := p.pipes.ToGuest()
	if err != nil {
		return err
	}
	p.control.out = hostcall.NewWriter(out)
	if p.code.TypeScript {
		t := &translator{work: p.rt.opts.work, out: p.control.out}
		t.ctx, t.cancel = context.WithCancel(context.Background())
		p.control.translator = t
	}
	return nil
}

// close releases the resources of a run.
func (p *Process) close() {
	p.leaveNetwork()
	p.stopCalls()
	p.pipes.Close()
}

func (p *Process) stopCalls() {
	p.calls.Stop() // nil if the run can make none
	if p.control != nil && p.control.translator != nil {
		p.control.translator.cancel()
		p.control.translator.out.Close() // an answer may wait for the guest
	}
	if p.commands != nil {
		p.commands.end()       // its calls; the program makes no further ones, because it has ended
		p.commands.work.Wait() // does not wait for functions of the host: the dispatcher has been stopped
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// end waits for the run's end, and leaves the runtime's queue.
func (p *Process) end() (*Result, error) {
	defer p.rt.queue.Release(1)
	defer p.cancel(nil)
	res, err := p.finish()
	if res != nil {
		res.Queued = p.queued
	}
	return res, err
}

// finish waits for the run's end, or ends it, and returns its result. With CauseCanceled there
// may be an error beside the result: see endReason.
func (p *Process) finish() (*Result, error) {
	defer p.close()
	defer p.rt.active.Delete(p)
	cause := p.supervise()
	<-p.child.Done()
	res := &Result{Duration: time.Since(p.began), Launcher: p.launcher, LauncherReason: p.reason} // without the time that callbacks take for the rest of the output
	p.leaveNetwork()
	p.drain()
	exit, err := p.child.Wait() // last, because the kernel delivers its records late
	if err == nil {
		err = p.streams.Failed()
	}
	if err != nil {
		return nil, err
	}
	p.addReport(res)
	res.conclude(cause, exit, p.streams.StderrTail())
	res.Usage.Network = p.networkUsage()
	switch {
	case p.interrupted:
		res.Cause = CauseTimeout // even if it has exited since
	case res.Cause == CauseNone && errors.Is(context.Cause(p.limit), errOutput): // it ended before it could be killed
		res.Cause = CauseOutput
	}
	// After the kernel's own reports: a hint that repeats one of them is dropped.
	p.denials.AddHint(res.ExitCode, p.streams.StderrTail())
	text, failed := string(p.streams.StderrTail()), res.ExitCode != 0
	if p.main != nil && p.main.logs != nil && p.main.failure != nil {
		p.addErrorHint(p.main.failure)
		text, failed = text+allMessages(p.main.failure), true
	}
	if failed {
		p.addLimits(text, exit.Usage.FileMemory)
	}
	p.addDenials(res, nil)
	if res.Cause == CauseCanceled {
		_, err = endReason(p.limit)
	}
	return res, err
}

// drain reads all that the run has written. The run has ended.
//
// Whatever could wait is released first: no guest reads the results of functions that still
// run, a follower may be slow, and another run may hold a pipe open. Then nothing delays the
// readers.
func (p *Process) drain() {
	p.stopCalls()
	p.followed().End() // nothing waits for a follower any more
	if _, ends := p.child.(sandbox.Flusher); !ends {
		p.pipes.End()
	}
	p.streams.Drain()
	p.reading.Wait()
}

// followed returns the run's feed, or nil.
func (p *Process) followed() *feed {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.feed
}

// addReport adds the reports and calls of the run.
func (p *Process) addReport(res *Result) {
	p.addCalls(res)
	if main := p.main; main != nil {
		res.Value = main.value
		if main.logs == nil && main.failure != nil { // Evaluate has another form for it
			res.Error = newGuestError(main.failure, nil)
		}
	}
}

func (p *Process) addCalls(res *Result) {
	if calls := p.calls; calls != nil {
		res.Calls, res.Truncated.Calls = calls.Records()
	}
}

// addErrorHint adds the denial that the error of a snippet hints at. Programs print theirs.
func (p *Process) addErrorHint(f *wire.Failure) { p.denials.AddError(allMessages(f)) }

// allMessages returns the messages of an error, which may be nil, and of its causes, a line each.
func allMessages(f *wire.Failure) string {
	if f == nil {
		return ""
	}
	text := f.Name + ": " + f.Message + "\n" + allMessages(f.Cause)
	for _, one := range f.Errors { // package wire limits their number
		text += allMessages(one)
	}
	return text
}

// addDenials adds the denials that are not in before.
func (p *Process) addDenials(res *Result, before []Denial) {
	list, truncated := p.denials.Since(before)
	res.Denials, res.Truncated.Denials = list, truncated
}

// supervise waits for the end of the run. It kills a run that exceeds a limit which the
// kernel does not enforce, and returns why it did.
func (p *Process) supervise() Cause {
	var checkCPU <-chan time.Time // never, without a limit
	if p.rt.opts.Limits.CPUTime > 0 {
		checkCPU = time.After(0)
	}
	for {
		select {
		case <-p.child.Done():
			if !p.mustEnd() { // otherwise that may have killed it during its start
				return CauseNone
			}
		case <-checkCPU:
			if left := p.cpuLeft(); left > 0 {
				checkCPU = time.After(left)
				continue
			}
			p.cancel(errCPU)
		case <-p.limit.Done():
		}
		cause, _ := endReason(p.limit)
		if cause == CauseTimeout && p.grace > 0 {
			p.interrupt()
		}
		p.child.Kill()
		return cause
	}
}

// cpuLeft returns a time in which the run cannot exceed its CPU time, at least 2 ms, or 0 if
// it has exceeded it. The kernel limits CPU time only for single processes.
func (p *Process) cpuLeft() time.Duration {
	const least = 2 * time.Millisecond
	l := p.rt.opts.Limits
	used, err := p.child.Usage()
	if err == nil && used.CPU >= l.CPUTime {
		return 0
	}
	return max(time.Duration(float64(l.CPUTime-used.CPU)/l.CPUs), least)
}

// The exit status and signal of a run that gaol killed.
const (
	killedCode   = 128 + int(syscall.SIGKILL)
	killedSignal = "SIGKILL"
)

// conclude fills in how the run ended. killed is why gaol killed it, if it did.
func (r *Result) conclude(killed Cause, exit sandbox.Exit, stderrTail []byte) {
	r.ExitCode = exit.Code
	if exit.Signal != 0 {
		r.ExitCode = 128 + int(exit.Signal)
		r.Signal = unix.SignalName(exit.Signal)
	}
	r.Usage = Usage{CPU: exit.Usage.CPU, PeakMemory: exit.Usage.PeakMemory, PeakPids: exit.Usage.PeakPids}
	r.Cause = causeOf(killed, exit, stderrTail)
	if r.ExitCode == 0 || r.Signal != "" || r.Cause != CauseNone && r.Cause != CausePids {
		r.Error = nil // the reported error was caught, or something else ended the run
	}
}

// causeOf returns why a run ended. If gaol did not end it, memory takes precedence: a program
// whose child was killed for memory mostly fails with an unrelated error.
func causeOf(killed Cause, exit sandbox.Exit, stderrTail []byte) Cause {
	refused := exit.Code != 0 || exit.Signal == unix.SIGABRT // libuv aborts if it cannot start a thread
	switch byGaol := killed != CauseNone && exit.Signal == unix.SIGKILL; {
	case byGaol:
		return killed
	case exit.Uncharged, exit.Usage.OOMKills > 0:
		return CauseMemory
	case isHeapFull(exit, stderrTail):
		return CauseMemory
	case refused && exit.Usage.PidsRefused > 0:
		return CausePids
	case exit.Signal != 0:
		return CauseSignal
	}
	return CauseNone
}

// isHeapFull reports whether Node aborted because its heap, which is a little smaller than
// the run's memory, was full. V8 reports it on standard error. A program can fake that, but
// gains nothing.
func isHeapFull(exit sandbox.Exit, stderrTail []byte) bool {
	return exit.Signal == unix.SIGABRT && bytes.Contains(stderrTail, []byte("JavaScript heap out of memory"))
}

// leaveNetwork ends the reports of a run that has ended. A second call does nothing.
func (p *Process) leaveNetwork() {
	if p.client == nil {
		return
	}
	p.client.End()
	if p.owner != 0 {
		p.rt.network.remove(p.owner)
		p.owner = 0
	}
}

// networkUsage returns the run's use of external hosts so far.
func (p *Process) networkUsage() (u NetworkUsage) {
	if p.client != nil {
		u = NetworkUsage(p.client.Usage())
	}
	return u
}
