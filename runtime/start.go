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
	p.rt, p.began, p.launcher = rt, time.Now(), rt.opts.Launcher
	p.killed, p.done = make(chan struct{}), make(chan struct{})
	if isClosed(rt.closing) || p.detached && !rt.active.reserve() {
		p.err = ErrClosed
		return false
	}
	if ok = p.begin(ctx, o); p.detached && !ok {
		rt.active.spawned.Done()
	}
	return ok
}

func (p *Process) begin(ctx context.Context, o RunOptions) (ok bool) {
	if !p.prepare(ctx, o) {
		return false
	}
	asked := time.Now()
	started, ok := p.rt.takeTurn(ctx)
	p.began = time.Now()
	p.queued = p.began.Sub(asked)
	if !ok { // only its context or its runtime can end a run before its turn
		p.fail(ctx, nil)
		p.res.Duration = 0
		return false
	}
	defer started()
	if p.detached {
		return p.detach(ctx, o.Timeout)
	}
	p.limit, p.stop = withTimeout(ctx, o.Timeout)
	if err := p.launch(); err != nil {
		return p.giveUp(p.limit, err)
	}
	return true
}

// detach launches a process that no longer depends on ctx once it runs. A goroutine waits for it.
func (p *Process) detach(ctx context.Context, timeout time.Duration) (ok bool) {
	p.limit, p.stop = withTimeout(context.WithoutCancel(ctx), timeout)
	unwatch := context.AfterFunc(ctx, p.stop)
	err := p.launch()
	switch isActive := unwatch(); { // whether ctx was still active
	case !isActive && err == nil: // it began just as ctx ended
		_, err = p.finish()
		fallthrough
	case !isActive:
		return p.giveUp(ctx, err)
	case err != nil:
		return p.giveUp(p.limit, err)
	}
	go p.wait()
	return true
}

// giveUp undoes the turn of a run that could not start.
func (p *Process) giveUp(limit context.Context, err error) (ok bool) {
	p.fail(limit, err)
	p.stop()
	p.rt.queue.leave()
	return false
}

// prepare lowers the options of the run, in the time that a waiting caller gives it.
func (p *Process) prepare(ctx context.Context, o RunOptions) (ok bool) {
	timeout := o.Timeout
	if p.detached {
		timeout = DefaultTimeout // its own may have no limit
	}
	limit, stop := bound(ctx, p.rt.alive, ErrClosed, timeout)
	defer stop()
	if err := p.lower(limit, p.rt.opts, o); err != nil {
		return p.fail(limit, err)
	}
	return true
}

// fail sets the result of a run that was canceled before its program began, or the error why it could
// not start. It returns false.
func (p *Process) fail(limit context.Context, err error) (ok bool) {
	res := &Result{
		ExitCode: killedCode, Signal: killedSignal, Cause: CauseCanceled, Duration: time.Since(p.began), Queued: p.queued,
		Launcher: p.launcher, LauncherReason: p.reason,
	}
	switch {
	case limit.Err() != nil:
		res.Cause = endCause(limit)
	case !isClosed(p.rt.closing): // if it is closed, that explains the error
		p.err = err
		return false
	}
	if p.res = res; res.Cause == CauseCanceled {
		p.err = p.rt.cancellation(limit)
	}
	return false
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
	p.control = &control{in: in, main: p.main, cells: p.program.cells, room: p.waitForFeed}
	text, err := p.code.Open()
	if err != nil {
		return err
	}
	p.pipes.Guest = append(p.pipes.Guest, text)
	if len(p.functions) == 0 && p.program.cells == nil && !p.code.TypeScript {
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
	if p.network != nil {
		p.network.end()
	}
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
