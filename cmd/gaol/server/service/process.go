package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/audit"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// Process is a process that a sandbox has, with all its descendants.
type Process struct {
	program
	process *runtime.Process
	info    resultjson.ProcessInfo // of the active process, without usage
	ring    *ring
	stdin   *stdin

	// Of the process that has ended, set before ended is closed.
	final resultjson.ProcessInfo
	exit  *runtime.Result
}

// Spawn starts a process. It lives until it exits, is killed or exceeds a limit, or its sandbox ends. If the client
// wants events, the request lasts until the process has ended, and the end of the request ends the process.
func (sb *Sandbox) Spawn(ctx context.Context, c *Call, in *requestjson.SpawnIn) (*resultjson.ProcessInfo, error) {
	r := in.ProcessRequest
	if c.To != nil && r.WhenFull == "" {
		r.WhenFull = "wait"
	}
	o, err := sb.spawnOptions(r)
	if err != nil {
		return nil, err
	}
	if r.Command != "" {
		audit.Of(ctx).SetCommand(r.Command, r.Args, r.Permissions)
	} else {
		audit.Of(ctx).SetCode(r.Code, r.Permissions)
	}
	var started *runtime.Process
	common, err := sb.start(ctx, "p-", func(ctx context.Context) (err error) {
		if r.Command != "" {
			started, err = sb.runtime.Spawn(ctx, r.Command, r.Args, o)
			return err
		}
		o.Args = r.Args
		started, err = sb.runtime.SpawnCode(ctx, r.Code, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	p := newProcess(common, started, r)
	sb.longLived.add(p)
	go p.collect()
	if c.To != nil {
		return p.attend(ctx, c)
	}
	return p.Info(), nil
}

// spawnOptions checks a request and returns the SDK's options, except for arguments.
func (sb *Sandbox) spawnOptions(r requestjson.ProcessRequest) (o runtime.SpawnOptions, err error) {
	switch {
	case (r.Code == "") == (r.Command == ""):
		return o, Refuse(Invalid, "want either code or command")
	case r.Command != "" && (r.Name != "" || r.Format != ""):
		return o, Refuse(Invalid, "name and format are for code")
	}
	o = runtime.SpawnOptions{Permissions: r.Permissions, Env: r.Env, Cwd: r.Cwd, Name: r.Name, Format: formats[r.Format]}
	if t := r.Terminal; t != nil {
		if (t.Rows == 0) != (t.Cols == 0) {
			return o, Refuse(Invalid, "terminal: rows and cols need each other")
		}
		o.Terminal = t
	}
	if r.TimeoutMs > 0 { // otherwise the lifetime of the sandbox bounds it
		o.Timeout, err = bounded("timeoutMs", r.TimeoutMs, sb.service.settings.Load().LifetimeMs)
	}
	return o, err
}

// maxArgs bounds the arguments that are kept for descriptions of a process, in bytes.
const maxArgs = 4 << 10

func newProcess(common program, started *runtime.Process, r requestjson.ProcessRequest) *Process {
	p := &Process{
		program: common, process: started, ring: newRing(r.WhenFull == "wait"),
		stdin: &stdin{pipe: started.Stdin, ended: started.Done(), turn: make(chan struct{}, 1)},
	}
	p.info = resultjson.ProcessInfo{
		ID: p.ID, PID: started.PID(), State: resultjson.Running, Program: cmp.Or(r.Command, r.Name, "code"), Args: []string{},
		Started: p.started, Terminal: r.Terminal != nil,
	}
	size := 0
	for _, arg := range r.Args {
		size += len(arg)
	}
	if size <= maxArgs && len(r.Args) > 0 {
		p.info.Args = r.Args
	}
	return p
}

// collect moves the process's events to the ring until it has ended.
func (p *Process) collect() {
	go func() {
		<-p.process.Done()
		p.ring.release()
	}()
	var t translator
	for e := range p.process.Events() {
		for _, event := range t.events(e) {
			p.ring.add(event, false)
		}
		if exit, ok := e.(runtime.ExitEvent); ok {
			p.release() // before clients can see the end
			p.finish(exit)
		}
	}
}

// finish records how the process has ended.
func (p *Process) finish(exit runtime.ExitEvent) {
	p.final, p.final.Ended = p.info, new(time.Now())
	p.final.State = resultjson.Ended
	_, size := p.ring.lastID()
	size += eventSize
	last := Event{Name: EventError}
	if p.exit = exit.Result; p.exit != nil {
		if p.exit.Cause == runtime.CauseCanceled && p.sandbox.isMoving() {
			p.exit = new(*p.exit)
			p.exit.Cause = runtime.CauseMoved
		}
		p.sandbox.service.metrics.Run(KindProcess, p.exit.Cause, p.exit.Duration)
		p.final.Usage, p.final.Result = resultjson.NewProcessUsage(p.exit.Usage), p.exit
		size += len(p.final.Result.Value)
		last = Event{Name: EventResult, Data: p.final.Result}
	} else {
		err := p.sandbox.service.Convert(context.Background(), "end a process", p.sandbox.tenant(), exit.Err)
		p.final.Failure, last.Data = err.Error(), err
	}
	p.ring.add(last, true)
	p.final.LastEventID, _ = p.ring.lastID()
	p.retain(size)
}

// Process returns a process of the sandbox.
func (sb *Sandbox) Process(id string) (*Process, error) { return find[*Process](sb, "process", id) }

// ProcessList is a list of processes.
type ProcessList struct {
	Processes []*resultjson.ProcessInfo `json:"processes"`
}

// ListProcesses describes the processes that the sandbox has, the oldest first. They include ended processes that are
// retained, but not other runs.
func (sb *Sandbox) ListProcesses(context.Context, *Call, *requestjson.InSandbox) (ProcessList, error) {
	return ProcessList{describe(sb, (*Process).Info)}, nil
}

// Get describes the process.
func (p *Process) Get(context.Context, *Call, *requestjson.InProcess) (*resultjson.ProcessInfo, error) {
	return p.Info(), nil
}

// Info describes the process.
func (p *Process) Info() *resultjson.ProcessInfo {
	select {
	case <-p.ended:
		return new(p.final)
	default:
	}
	info := p.info
	info.LastEventID, _ = p.ring.lastID()
	usage, _ := p.process.Usage() // zero if it has just ended
	info.Usage = resultjson.NewProcessUsage(usage)
	return &info
}

// Signal sends a signal, such as SIGTERM, to the process, or to the process group that it leads.
// SIGKILL ends it with all its descendants.
func (p *Process) Signal(_ context.Context, _ *Call, in *requestjson.SignalIn) (None, error) {
	s := unix.SignalNum(in.Signal)
	if s == 0 {
		return None{}, Refuse(Invalid, "signal %q: want a name such as SIGTERM", in.Signal)
	}
	send := p.process.Signal
	if in.Group {
		send = p.process.SignalGroup
	}
	return None{}, ended(send(s))
}

// Resize changes the size of the process's terminal.
func (p *Process) Resize(_ context.Context, _ *Call, in *requestjson.ResizeIn) (None, error) {
	err := p.process.Resize(in.Rows, in.Cols)
	if errors.Is(err, runtime.ErrNoTerminal) {
		return None{}, &Error{Code: Conflict, Err: runtime.ErrNoTerminal}
	}
	return None{}, ended(err)
}

// errEnded is the error of a request that needs an active process.
var errEnded = Refuse(Closed, "the process has ended")

// ended converts an error of an operation on a process.
func ended(err error) error {
	if isAny(err, os.ErrProcessDone, unix.ESRCH) {
		return errEnded
	}
	return err
}

// Wait waits until the process has ended, ctx ends or the time is over, and describes it in any case.
func (p *Process) Wait(ctx context.Context, _ *Call, in *requestjson.WaitIn) (*resultjson.ProcessInfo, error) {
	ctx, cancel := waitContext(ctx, in.TimeoutMs)
	defer cancel()
	select {
	case <-p.ended:
	case <-ctx.Done():
	}
	return p.Info(), nil
}

// waitContext returns a context for waiting for some milliseconds; 0: without limit.
func waitContext(ctx context.Context, ms int64) (context.Context, context.CancelFunc) {
	if ms == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, milliseconds(ms))
}

// Delete kills the process if it is active, waits for its end, and forgets it.
func (p *Process) Delete(ctx context.Context, _ *Call, _ *requestjson.InProcess) (None, error) {
	p.process.Kill()
	select {
	case <-p.ended:
	case <-ctx.Done():
		return None{}, context.Cause(ctx)
	}
	p.forget()
	return None{}, nil
}

// attend connects the process with a client until it has ended, and forgets it. The end of ctx kills the
// process.
func (p *Process) attend(ctx context.Context, c *Call) (*resultjson.ProcessInfo, error) {
	defer context.AfterFunc(ctx, p.process.Kill)()
	err := c.To(Event{Name: EventStarted, Data: p.Info()})
	if err == nil {
		err = p.follow(context.WithoutCancel(ctx), c, 0)
	}
	if err != nil { // the client does not want the rest
		p.process.Kill()
	}
	<-p.ended
	if r := p.exit; r != nil {
		audit.Of(ctx).SetEnd(&r.ExitCode, r.Cause, r.Denials, r.Usage)
	}
	p.forget()
	return p.Info(), context.Cause(ctx)
}

// Follow passes the process's events after a number to a client, and the client's input to the process, until the last
// event, the client's error or the end of ctx. It describes the process in any case.
func (p *Process) Follow(ctx context.Context, c *Call, in *requestjson.FollowIn) (*resultjson.ProcessInfo, error) {
	if c.To == nil {
		return nil, Refuse(Invalid, "events: a client that follows a process wants them")
	}
	if last := p.Info().LastEventID; in.After > last {
		return nil, Refuse(Invalid, "event %d: the last one is %d", in.After, last)
	}
	err := p.follow(ctx, c, in.After)
	return p.Info(), err
}

// follow is Follow after an event that exists. A slow client slows down the process only if that waits for readers.
func (p *Process) follow(ctx context.Context, c *Call, after uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.Stdin != nil {
		go p.stdin.copyFrom(ctx, c.Stdin) // which the caller closes afterwards
	}
	go func() {
		for {
			select {
			case signal := <-c.Signals:
				_ = p.process.Signal(signal) // fails if the process has ended
			case <-ctx.Done():
				return
			}
		}
	}()
	p.ring.confirm(after)
	for {
		events, changed := p.ring.read(after)
		for _, e := range events {
			if err := c.To(e); err != nil {
				return fmt.Errorf("%w: %w", context.Canceled, err)
			}
			after = e.ID
			p.ring.confirm(after)
		}
		switch {
		case len(events) > 0:
			continue
		case changed == nil:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
