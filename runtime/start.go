package runtime

import (
	"context"
	"time"

	"gaol/runtime/internal/enforce"
	"gaol/runtime/internal/hostcall"
)

// start starts p.program when its turn has come, and reports whether it runs: otherwise p.res and p.err are
// what became of it. ctx bounds the start and, unless p is detached, the run.
//
//	requested ── lower ── takeTurn ── launch ── end
func (rt *NodeRuntime) start(ctx context.Context, p *Process, o RunOptions) (ok bool) {
	p.rt, p.began, p.launcher, p.done = rt, time.Now(), rt.opts.Launcher, make(chan struct{})
	if isClosed(rt.closing) || p.detached && !rt.calls.begin() {
		p.err = ErrClosed
		return false
	}
	release := p.bind(ctx)
	if !p.begin(o) {
		p.cancel(nil)
		if p.detached {
			rt.calls.open.Done()
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
// runtime. They have causes of this package only, so that a caller's context may be that of another run.
func (p *Process) bind(ctx context.Context) (release func() bool) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	release = context.AfterFunc(ctx, func() { cancel(callerError{contextError(ctx)}) })
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
	p.limit, stop = withTimeout(p.life, timeout)
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
	p.limit, _ = withTimeout(p.life, o.Timeout)
	if err := p.launch(); err != nil {
		p.rt.queue.leave()
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
	if isClosed(p.rt.closing) {
		p.cancel(ErrClosed) // which bind does a moment later
	}
	return p.limit.Err() != nil
}

// launch starts the run, which finish must then end.
func (p *Process) launch() error {
	if err := p.open(); err != nil {
		p.close()
		return err
	}
	p.rt.active.add(p) // before any of its callbacks can call Processes
	if p.control != nil {
		p.reading.Go(p.control.run)
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
	p.control = &control{in: in, main: p.main, cells: p.cells, room: p.waitForFeed}
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
		p.control.translator = newTranslator(p.rt.opts.work, p.control.out)
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
		p.control.translator.stop()
	}
	if p.commands != nil {
		p.commands.close()
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
